/*
 * tests/unit/store/stores.h: stores of blobs for tests: in memory, or in a file in a folder of its own, which is gone
 * after the test. A test's first state is the name of the store.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STORES_H
#define EW_TESTS_STORES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "store/blobs/blobs.h"
#include "support/fail_env.h"
#include "wire/stepflow/blob_id.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct store {
    const char *kind;
    ew__test_env env;
    ew_limits limits;
    char folder[64];
    char path[80];
    char spec[96];
} store;

/* Takes the file away, and what SQLite keeps beside it. */
static inline void store_wipe(store *s) {
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s%s", s->path, ends[i]);
        (void)unlink(path);
    }
}

static inline int store_setup(void **state) {
    store *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -1;
    (void)umask(022); /* files that a test writes itself must not be writable for its group */
    s->kind = *state;
    ew__test_env_init(&s->env, 11);
    ew_limits_complete(&s->limits);
    (void)snprintf(s->folder, sizeof s->folder, "/tmp/ew-store-XXXXXX");
    if (mkdtemp(s->folder) == NULL) {
        free(s);
        return -1;
    }
    (void)snprintf(s->path, sizeof s->path, "%s/blobs.db", s->folder);
    if (strcmp(s->kind, "sqlite") == 0)
        (void)snprintf(s->spec, sizeof s->spec, "sqlite:%s", s->path);
    else
        (void)snprintf(s->spec, sizeof s->spec, "%s", s->kind);
    *state = s;
    return 0;
}

static inline int store_teardown(void **state) {
    store *s = *state;
    store_wipe(s);
    int result = rmdir(s->folder); /* nothing else was left there */
    free(s);
    return result;
}

static inline ew_err store_try(store *s, ew__blobs **ret) {
    return ew__blobs_open(&s->env.env, ew__blob_id, &s->limits, s->spec, ret, NULL, 0);
}

static inline ew__blobs *store_open(store *s) {
    ew__blobs *blobs = NULL;
    assert_int_equal(store_try(s, &blobs), EW_OK);
    return blobs;
}

static inline void store_close(store *s, ew__blobs *blobs) {
    blobs->free(blobs);
    assert_int_equal(ew__test_env_live_blocks(&s->env), 0);
}

#define STORE_TEST(test, kind)                                                                                         \
    {                                                                                                                  \
        kind ": " #test, test, store_setup, store_teardown, (char[]) { kind }                                          \
    }

#endif
