/*
 * tests/support/fail_env.h: an ew_env for tests. Its n-th allocation fails on demand, it counts what is live and checks
 * the sizes that are given back; its clock stands still until it is told to move; its random bytes depend on a seed
 * only; it keeps the last log line. All of it may be used from several threads.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_FAIL_ENV_H
#define EW_TESTS_FAIL_ENV_H

#include <everywire/env.h>
#include <pthread.h>

/* Give &t.env to the code under test; the other members are read by tests through the functions below. */
typedef struct ew__test_env {
    ew_env env;
    pthread_mutex_t lock;
    uint64_t allocations; /* asked for so far, failed ones included */
    uint64_t fail_at;     /* number of the allocation that fails; 0 = none */
    bool fail_on;         /* and all after it */
    uint64_t n_failed;
    size_t blocks; /* live */
    size_t bytes;  /* live, in the sizes asked for */
    size_t peak_bytes;
    uint64_t now_ns;
    uint64_t random_state;
    bool tolerant; /* count a wrong size instead of ending the test program */
    uint64_t n_wrong;
    uint64_t n_logged;
    ew_log_level log_level; /* of the last line */
    char log_room[32];
    char log_line[1100]; /* ended by NUL */
    size_t log_len;
} ew__test_env;

/* The clock starts at one second. */
void ew__test_env_init(ew__test_env *t, uint64_t seed);

/* Lets the n-th allocation from now on fail (1 is the next), with from_then_on all after it too. 0: none fails. */
void ew__test_env_fail_at(ew__test_env *t, uint64_t n, bool from_then_on);

/* How many allocations failed since the last ew__test_env_fail_at. A loop over n ends when this is 0 after a pass. */
uint64_t ew__test_env_failed(ew__test_env *t);

size_t ew__test_env_live_blocks(ew__test_env *t);
size_t ew__test_env_live_bytes(ew__test_env *t);
size_t ew__test_env_peak_bytes(ew__test_env *t);
uint64_t ew__test_env_allocations(ew__test_env *t);
void ew__test_env_advance(ew__test_env *t, uint64_t ns);

#endif
