/*
 * everywire/env.h: the one door between the library and the world: memory, time, chance, log lines. A host may bring
 * its own table; without one the C library's allocator, the monotonic clock and the kernel's random bytes are used.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_ENV_H
#define EVERYWIRE_ENV_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ew_log_level { EW_LOG_ERROR, EW_LOG_WARN, EW_LOG_INFO, EW_LOG_DEBUG } ew_log_level;

/*
 * Every slot may be called from any thread of the library. alloc: grows, shrinks or gives a block of old_size bytes
 * (ptr NULL, old_size 0 for a new one; new_size 0 frees and returns NULL); NULL means "no memory" and leaves the old
 * block. now_ns: monotonic nanoseconds. wall_ms: milliseconds since 1970, for display only. random: fills n
 * unguessable bytes. log: one line without its newline, already free of control bytes; room is the part of the
 * library it comes from; may be NULL.
 */
typedef struct ew_env {
    void *(*alloc)(void *ud, void *ptr, size_t old_size, size_t new_size);
    uint64_t (*now_ns)(void *ud);
    uint64_t (*wall_ms)(void *ud);
    void (*random)(void *ud, void *bytes, size_t n);
    void (*log)(void *ud, ew_log_level level, const char *room, ew_str line);
    void *ud;
} ew_env;

/* The table that is used when none is given; its log is silent. Any thread. */
EW_API const ew_env *ew_env_default(void);

#ifdef __cplusplus
}
#endif
#endif
