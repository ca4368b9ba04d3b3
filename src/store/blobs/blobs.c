/*
 * store/blobs/blobs.c: what the stores of store/blobs/blobs.h share: their names and their types.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "base/util.h"
#include <stdio.h>

ew_str ew__blob_type(ew_str type) {
    static const ew_str known[] = {{"data", 4}, {"flow", 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ew__str_is(type, known[i])) {
            return known[i];
        }
    }
    return (ew_str){NULL, 0};
}

ew_err ew__blobs_open(const ew_env *env, ew__blob_id_fn id, const ew_limits *limits, const char *spec, ew__blobs **ret,
                      char *problem, size_t problem_size) {
    static const char file[] = "sqlite:";
    if (strcmp(spec, "memory") == 0) {
        return ew__blobs_memory(env, id, limits->blob_bytes < SIZE_MAX ? (size_t)limits->blob_bytes : SIZE_MAX, ret);
    }
    if (strncmp(spec, file, sizeof file - 1) == 0 && spec[sizeof file - 1] != '\0') {
        return ew__blobs_sqlite(env, id, spec + sizeof file - 1, ret, problem, problem_size);
    }
    if (problem != NULL) {
        (void)snprintf(problem, problem_size, "%.100s: blobs are kept in memory or in sqlite:PATH", spec);
    }
    return EW_EINVAL;
}
