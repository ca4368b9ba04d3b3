/*
 * tests/support/fail_env.c: the env of tests/support/fail_env.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/fail_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x65772d626c6f636bu
#define FREED 0x65772d667265652du
#define MAX_SIZE ((size_t)1 << 31) /* sanitizers end the program for absurd sizes; we answer "no memory" */

/* Stands before each block. The magic is last so that a write before the block's start hits it. */
typedef struct header {
    _Alignas(16) size_t size;
    uint64_t magic;
} header;

_Static_assert(sizeof(header) == 16, "blocks keep their alignment");

static void wrong(ew__test_env *t, const char *what, size_t expected, size_t given) {
    t->n_wrong++;
    if (!t->tolerant) {
        (void)fprintf(stderr, "test env: %s (expected %zu, given %zu)\n", what, expected, given);
        abort();
    }
}

/* The header of a block that comes back; NULL when it is none of ours. */
static header *check_block(ew__test_env *t, void *ptr, size_t old_size) {
    if (ptr == NULL) {
        if (old_size != 0) {
            wrong(t, "a size without a block", 0, old_size);
        }
        return NULL;
    }
    header *h = (header *)ptr - 1;
    if (h->magic != MAGIC) {
        wrong(t, "a block that is not live, or its start was written over", 0, old_size);
        return NULL;
    }
    if (h->size != old_size) {
        wrong(t, "a block came back with another size", h->size, old_size);
    }
    return h;
}

static void forget(ew__test_env *t, header *h) {
    t->blocks--;
    t->bytes -= h->size;
}

static bool must_fail(ew__test_env *t) {
    t->allocations++;
    if (t->fail_at == 0 || t->allocations < t->fail_at || (t->allocations > t->fail_at && !t->fail_on)) {
        return false;
    }
    t->n_failed++;
    return true;
}

/* Always moves the block, so that a pointer kept across a growth is found by a memory checker. */
static void *resize(ew__test_env *t, header *old, size_t new_size) {
    if (new_size > MAX_SIZE) {
        return NULL;
    }
    header *h = malloc(sizeof(*h) + new_size);
    if (h == NULL) {
        return NULL;
    }
    h->size = new_size;
    h->magic = MAGIC;
    memset(h + 1, 0xa5, new_size); /* fresh memory is never clear by luck */
    t->blocks++;
    t->bytes += new_size;
    if (old != NULL) {
        memcpy(h + 1, old + 1, old->size < new_size ? old->size : new_size);
        forget(t, old);
        old->magic = FREED;
        free(old);
    }
    t->peak_bytes = t->bytes > t->peak_bytes ? t->bytes : t->peak_bytes;
    return h + 1;
}

static void *test_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    ew__test_env *t = ud;
    (void)pthread_mutex_lock(&t->lock);
    void *result = NULL;
    header *old = check_block(t, ptr, old_size);
    if (new_size > 0) {
        result = must_fail(t) ? NULL : resize(t, old, new_size);
    } else if (old != NULL) {
        forget(t, old);
        old->magic = FREED;
        free(old);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return result;
}

static uint64_t test_now_ns(void *ud) {
    ew__test_env *t = ud;
    (void)pthread_mutex_lock(&t->lock);
    uint64_t now = t->now_ns;
    (void)pthread_mutex_unlock(&t->lock);
    return now;
}

static uint64_t test_wall_ms(void *ud) { return 1700000000000u + test_now_ns(ud) / 1000000u; }

static void test_random(void *ud, void *bytes, size_t n) {
    ew__test_env *t = ud;
    uint8_t *out = bytes;
    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < n; i++) {
        /* splitmix64, one word for each byte: slow and simple */
        uint64_t z = t->random_state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        out[i] = (uint8_t)(z >> 40);
    }
    (void)pthread_mutex_unlock(&t->lock);
}

static void test_log(void *ud, ew_log_level level, const char *room, ew_str line) {
    ew__test_env *t = ud;
    (void)pthread_mutex_lock(&t->lock);
    t->n_logged++;
    t->log_level = level;
    (void)snprintf(t->log_room, sizeof(t->log_room), "%s", room);
    t->log_len = line.len < sizeof(t->log_line) ? line.len : sizeof(t->log_line) - 1;
    if (t->log_len > 0) {
        memcpy(t->log_line, line.ptr, t->log_len);
    }
    t->log_line[t->log_len] = 0;
    (void)pthread_mutex_unlock(&t->lock);
}

void ew__test_env_init(ew__test_env *t, uint64_t seed) {
    memset(t, 0, sizeof(*t));
    t->env = (ew_env){
        .alloc = test_alloc,
        .now_ns = test_now_ns,
        .wall_ms = test_wall_ms,
        .random = test_random,
        .log = test_log,
        .ud = t,
    };
    (void)pthread_mutex_init(&t->lock, NULL);
    t->now_ns = 1000000000u;
    t->random_state = seed;
}

void ew__test_env_fail_at(ew__test_env *t, uint64_t n, bool from_then_on) {
    (void)pthread_mutex_lock(&t->lock);
    t->fail_at = n == 0 ? 0 : t->allocations + n;
    t->fail_on = from_then_on;
    t->n_failed = 0;
    (void)pthread_mutex_unlock(&t->lock);
}

/* One member, read under the lock. */
#define READER(type, name, member)                                                                                     \
    type name(ew__test_env *t) {                                                                                       \
        (void)pthread_mutex_lock(&t->lock);                                                                            \
        type value = t->member;                                                                                        \
        (void)pthread_mutex_unlock(&t->lock);                                                                          \
        return value;                                                                                                  \
    }

READER(uint64_t, ew__test_env_failed, n_failed)
READER(size_t, ew__test_env_live_blocks, blocks)
READER(size_t, ew__test_env_live_bytes, bytes)
READER(size_t, ew__test_env_peak_bytes, peak_bytes)
READER(uint64_t, ew__test_env_allocations, allocations)

void ew__test_env_advance(ew__test_env *t, uint64_t ns) {
    (void)pthread_mutex_lock(&t->lock);
    t->now_ns += ns;
    (void)pthread_mutex_unlock(&t->lock);
}
