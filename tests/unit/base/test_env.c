/*
 * tests/unit/base/test_env.c: the default env, and the env of the tests itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <everywire/env.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "support/fail_env.h"

static void test_base_env__default_allocates(void **state) {
    (void)state;
    const ew_env *env = ew_env_default();
    char *p = env->alloc(env->ud, NULL, 0, 3);
    assert_non_null(p);
    memcpy(p, "abc", 3);
    p = env->alloc(env->ud, p, 3, 100000);
    assert_non_null(p);
    assert_memory_equal(p, "abc", 3);
    p = env->alloc(env->ud, p, 100000, 2);
    assert_non_null(p);
    assert_memory_equal(p, "ab", 2);
    assert_null(env->alloc(env->ud, p, 2, 0));
    assert_null(env->log);
    assert_ptr_equal(env, ew_env_default());
}

static void test_base_env__default_clocks(void **state) {
    (void)state;
    const ew_env *env = ew_env_default();
    uint64_t a = env->now_ns(env->ud);
    struct timespec wait = {0, 2000000};
    (void)nanosleep(&wait, NULL);
    uint64_t b = env->now_ns(env->ud);
    assert_true(b - a >= 2000000 && b - a < 60ull * 1000000000);
    uint64_t wall = env->wall_ms(env->ud);
    uint64_t seconds = (uint64_t)time(NULL);
    assert_true(wall / 1000 <= seconds + 1 && wall / 1000 + 2 >= seconds);
}

static void test_base_env__default_random_fills_all(void **state) {
    (void)state;
    const ew_env *env = ew_env_default();
    uint8_t bytes[1000], seen[1000] = {0};
    env->random(env->ud, bytes, 0);
    /* A byte that stays zero over 32 draws was not filled (the chance of an accident is 1000 / 2^256). */
    for (int round = 0; round < 32; round++) {
        memset(bytes, 0, sizeof(bytes));
        env->random(env->ud, bytes, sizeof(bytes) - 1);
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seen[i] |= bytes[i];
        }
    }
    for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
        assert_int_not_equal(seen[i], 0);
    }
    assert_int_equal(seen[sizeof(bytes) - 1], 0);
}

static void on_alarm(int number) { (void)number; }

/* Signals cut a long answer of the kernel short: the rest needs more calls. */
static void test_base_env__default_random_in_several_calls(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = on_alarm}, old_action;
    assert_int_equal(sigaction(SIGALRM, &action, &old_action), 0);
    const struct itimerval every_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    const ew_env *env = ew_env_default();
    const size_t n = 8u * 1024 * 1024;
    const uint8_t zeros[64] = {0};
    uint8_t *bytes = calloc(n + 1, 1);
    assert_non_null(bytes);
    assert_int_equal(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
    env->random(env->ud, bytes, n);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old_action, NULL), 0);
    assert_memory_not_equal(bytes, zeros, 64);
    assert_memory_not_equal(bytes + n - 64, zeros, 64);
    assert_int_equal(bytes[n], 0);
    free(bytes);
}

#if defined(__linux__)
/* Makes the kernel refuse one or two calls from now on. */
static bool refuse(unsigned first, unsigned second) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { FILLED = 10, NOT_FILLED, NOT_POSSIBLE };

static int random_under_filter(unsigned first, unsigned second) {
    if (!refuse(first, second)) {
        return NOT_POSSIBLE;
    }
    const ew_env *env = ew_env_default();
    uint8_t a[65] = {0}, b[65] = {0};
    env->random(env->ud, a, 64);
    env->random(env->ud, b, 64);
    unsigned zeros = 0;
    for (int i = 0; i < 64; i++) {
        zeros += a[i] == 0;
    }
    bool filled = zeros < 20 && a[64] == 0 && b[64] == 0 && memcmp(a, b, 64) != 0;
    return filled ? FILLED : NOT_FILLED;
}

/* In a child, as a filter cannot be taken away again. */
static void check_under_filter(unsigned first, unsigned second) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(random_under_filter(first, second));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_POSSIBLE) {
        print_message("SKIP: no seccomp filter here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), FILLED);
}

static void test_base_env__default_random_without_getrandom(void **state) {
    (void)state;
    check_under_filter(SYS_getrandom, SYS_getrandom); /* reads the file */
    check_under_filter(SYS_getrandom, SYS_openat);    /* has only the clock left */
}
#endif

static void test_base_env__test_env_fails_on_demand(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    const ew_env *env = &t.env;
    ew__test_env_fail_at(&t, 2, false);
    void *a = env->alloc(env->ud, NULL, 0, 10);
    void *b = env->alloc(env->ud, a, 10, 20);
    assert_non_null(a);
    assert_null(b);
    assert_int_equal(ew__test_env_failed(&t), 1);
    b = env->alloc(env->ud, NULL, 0, 5);
    assert_non_null(b);
    assert_int_equal(ew__test_env_live_blocks(&t), 2);
    assert_int_equal(ew__test_env_live_bytes(&t), 15);
    ew__test_env_fail_at(&t, 1, true);
    for (int i = 0; i < 3; i++) {
        assert_null(env->alloc(env->ud, NULL, 0, 1));
    }
    assert_int_equal(ew__test_env_failed(&t), 3);
    assert_int_equal(ew__test_env_allocations(&t), 6);
    assert_null(env->alloc(env->ud, a, 10, 0)); /* freeing never fails */
    assert_null(env->alloc(env->ud, b, 5, 0));
    ew__test_env_fail_at(&t, 0, false);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
    assert_int_equal(ew__test_env_live_bytes(&t), 0);
    assert_int_equal(ew__test_env_peak_bytes(&t), 15);
}

static void test_base_env__test_env_sees_wrong_sizes(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    t.tolerant = true;
    const ew_env *env = &t.env;
    void *a = env->alloc(env->ud, NULL, 0, 10);
    a = env->alloc(env->ud, a, 10, 12);
    assert_int_equal(t.n_wrong, 0);
    a = env->alloc(env->ud, a, 11, 20);
    assert_int_equal(t.n_wrong, 1);
    assert_null(env->alloc(env->ud, a, 21, 0));
    assert_int_equal(t.n_wrong, 2);
    char *b = env->alloc(env->ud, NULL, 4, 10);
    assert_int_equal(t.n_wrong, 3);
    volatile char *before = b;
    char kept = before[-1];
    before[-1] = (char)(kept + 1);
    assert_null(env->alloc(env->ud, b, 10, 0));
    assert_int_equal(t.n_wrong, 4);
    before[-1] = kept;
    assert_null(env->alloc(env->ud, b, 10, 0));
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_env__test_env_is_deterministic(void **state) {
    (void)state;
    ew__test_env s, t;
    ew__test_env_init(&s, 42);
    ew__test_env_init(&t, 42);
    uint8_t x[33], y[33];
    s.env.random(s.env.ud, x, 33);
    t.env.random(t.env.ud, y, 33);
    assert_memory_equal(x, y, 33);
    s.env.random(s.env.ud, x, 33);
    assert_memory_not_equal(x, y, 33);
    uint64_t start = t.env.now_ns(t.env.ud);
    uint64_t wall = t.env.wall_ms(t.env.ud);
    ew__test_env_advance(&t, 5000000);
    assert_int_equal(t.env.now_ns(t.env.ud) - start, 5000000);
    assert_int_equal(t.env.wall_ms(t.env.ud) - wall, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_env__default_allocates),
        cmocka_unit_test(test_base_env__default_clocks),
        cmocka_unit_test(test_base_env__default_random_fills_all),
        cmocka_unit_test(test_base_env__default_random_in_several_calls),
#if defined(__linux__)
        cmocka_unit_test(test_base_env__default_random_without_getrandom),
#endif
        cmocka_unit_test(test_base_env__test_env_fails_on_demand),
        cmocka_unit_test(test_base_env__test_env_sees_wrong_sizes),
        cmocka_unit_test(test_base_env__test_env_is_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
