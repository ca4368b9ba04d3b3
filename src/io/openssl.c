/*
 * io/openssl.c: see openssl.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/openssl.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define LIBRARY "libssl.so." TEXT_OF(OPENSSL_SHLIB_VERSION) /* the one whose headers we were built with */

static ew__openssl functions;
static char problem[256];
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    size_t offset;
} table[] = {
#define ROW(name) {#name, offsetof(ew__openssl, name)},
    EW__OPENSSL_FUNCTIONS(ROW)
#undef ROW
};

static void load(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        (void)snprintf(problem, sizeof problem, "TLS needs OpenSSL, whose library cannot be loaded: %.200s",
                       why ? why : LIBRARY);
        return;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *found = dlsym(library, table[i].name); /* libcrypto's, too: it is part of what libssl needs */
        if (!found) {
            (void)snprintf(problem, sizeof problem, "TLS needs OpenSSL 3: " LIBRARY " has no %s", table[i].name);
            return;
        }
        memcpy((char *)&functions + table[i].offset, &found, sizeof found);
    }
    loaded = functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
    if (!loaded)
        (void)snprintf(problem, sizeof problem, "OpenSSL could not be initialised: its configuration may be at fault");
}

const ew__openssl *ew__openssl_get(const char **ret_problem) {
    (void)pthread_once(&once, load);
    *ret_problem = problem;
    return loaded ? &functions : NULL;
}
