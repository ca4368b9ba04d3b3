/*
 * tests/unit/base/test_secret.c: comparing secrets: right, and in a time that tells nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/secret.h"

static void test_base_secret__every_byte_counts(void **state) {
    (void)state;
    uint8_t a[32], b[32];
    for (size_t i = 0; i < sizeof a; i++) {
        a[i] = b[i] = (uint8_t)(7 * i);
    }
    assert_true(ew__secret_same(a, b, sizeof a));
    assert_true(ew__secret_same(a, b, 0));
    for (size_t i = 0; i < sizeof a; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b[i] = (uint8_t)(a[i] ^ (1 << bit));
            assert_false(ew__secret_same(a, b, sizeof a));
        }
        b[i] = a[i];
    }
    memset(b, 0, sizeof b);
    ew__secret_wipe(a, sizeof a);
    assert_memory_equal(a, b, sizeof a);
}

/* ---- time ---- */

enum { BATCHES = 4000, RUNS = 200, N = 32 };

static uint64_t ns_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef bool (*same_fn)(const void *a, const void *b, size_t n);

static double measure(same_fn same, const uint8_t *a, const uint8_t *b) {
    volatile bool sink = false;
    uint64_t begin = ns_now();
    for (int i = 0; i < RUNS; i++) {
        sink = same(a, b, N);
    }
    (void)sink;
    return (double)(ns_now() - begin) / RUNS;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What an early end would look like: the test below must be able to see it. */
static bool leaky(const void *a, const void *b, size_t n) {
    const volatile uint8_t *x = a, *y = b;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i]) {
            return false;
        }
    }
    return true;
}

/*
 * Times of two classes of input, taken in turn, in an order drawn by chance (dudect): a difference in the first byte,
 * and one in the last. Of each the fastest quarter counts: what another process takes is only ever added. The answer is
 * the ratio of their means.
 */
static double ratio(same_fn same) {
    static double first[BATCHES], last[BATCHES];
    uint8_t secret[N], early[N], late[N];
    for (size_t i = 0; i < N; i++) {
        secret[i] = early[i] = late[i] = (uint8_t)(i * 11 + 3);
    }
    early[0] ^= 1;
    late[N - 1] ^= 1;
    unsigned chance = 12345;
    for (int i = 0; i < BATCHES; i++) {
        chance = chance * 1103515245u + 12345u;
        if (chance >> 30 & 1) {
            first[i] = measure(same, secret, early);
            last[i] = measure(same, secret, late);
        } else {
            last[i] = measure(same, secret, late);
            first[i] = measure(same, secret, early);
        }
    }
    qsort(first, BATCHES, sizeof *first, by_size);
    qsort(last, BATCHES, sizeof *last, by_size);
    double a = 0, b = 0;
    for (int i = 0; i < BATCHES / 4; i++) {
        a += first[i];
        b += last[i];
    }
    return b / a;
}

static void test_base_secret__time_does_not_tell_where(void **state) {
    (void)state;
    double honest = 0, broken = ratio(leaky);
    /* a machine that is busy may spoil one run; three in a row it does not, if there is nothing to see */
    for (int i = 0; i < 3; i++) {
        honest = ratio(ew__secret_same);
        if (fabs(honest - 1) < 0.05) {
            break;
        }
    }
    print_message(
        "a difference in the last byte takes %.3f times as long as one in the first (with an early end %.2f)\n", honest,
        broken);
    assert_true(fabs(honest - 1) < 0.05);
    assert_true(broken > 1.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_secret__every_byte_counts),
        cmocka_unit_test(test_base_secret__time_does_not_tell_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
