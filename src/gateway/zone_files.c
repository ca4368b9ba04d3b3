/*
 * gateway/zone_files.c: see zone_files.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/zone_files.h"
#include "base/mem.h"
#include <stdio.h>

#define FOLDER "/usr/share/zoneinfo/"
#define FILE_MAX ((size_t)256 * 1024)

/* Rejects names that could lead out of the folder. */
static bool is_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > 100 || name[0] == '/' || name[n - 1] == '/')
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && c != '/' && c != '_' && c != '-' && c != '+')
            return false;
    }
    return true;
}

ew_err ew__zone_open(const ew_env *env, const char *name, ew__zone **ret) {
    char path[sizeof FOLDER + 104];
    *ret = NULL;
    if (!is_name(name))
        return EW_ENOTFOUND;
    (void)snprintf(path, sizeof path, "%s%s", FOLDER, name);
    FILE *file = fopen(path, "rbe");
    if (!file)
        return EW_ENOTFOUND;
    uint8_t *bytes = ew__alloc(env, FILE_MAX);
    size_t n = bytes ? fread(bytes, 1, FILE_MAX, file) : 0;
    (void)fclose(file);
    ew_err err = !bytes ? EW_ENOMEM : n == FILE_MAX ? EW_ENOTFOUND : ew__zone_parse(env, bytes, n, ret);
    ew__free(env, bytes, FILE_MAX);
    return err;
}
