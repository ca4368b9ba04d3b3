/*
 * tests/unit/wire/test_stepflow_shortest.c: the fewest digits of a double, against a slow search by printf and strtod.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire/stepflow/shortest.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double from_bits(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double read_back(uint64_t digits, int exponent) {
    char text[48];
    (void)snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
    return strtod(text, NULL);
}

/* printf rounds to the nearest decimal of so many digits, which may lie outside where its neighbour does not. */
static uint64_t search(double number, int *ret_exponent) {
    for (int n = 1; n <= 17; n++) {
        char text[48];
        (void)snprintf(text, sizeof text, "%.*e", n - 1, number);
        char *e = strchr(text, 'e');
        int exponent = (int)strtol(e + 1, NULL, 10) - (n - 1);
        uint64_t digits = 0;
        for (const char *at = text; at < e; at++)
            digits = *at >= '0' && *at <= '9' ? digits * 10 + (uint64_t)(*at - '0') : digits;
        static const int near[] = {0, 1, -1};
        for (size_t i = 0; i < 3; i++) {
            uint64_t candidate = digits + (uint64_t)(int64_t)near[i];
            if (candidate == 0 || read_back(candidate, exponent) != number)
                continue;
            for (; candidate % 10 == 0; candidate /= 10)
                exponent++;
            *ret_exponent = exponent;
            return candidate;
        }
    }
    return 0;
}

static void check(uint64_t bits) {
    double number = from_bits(bits);
    int exponent = 0, expected_exponent = 0;
    uint64_t digits = ew__shortest(number, &exponent), expected = search(number, &expected_exponent);
    if (digits != expected || exponent != expected_exponent)
        fail_msg("%a: %llue%d, not %llue%d", number, (unsigned long long)digits, exponent, (unsigned long long)expected,
                 expected_exponent);
}

static void test_store_shortest__known(void **state) {
    (void)state;
    static const struct {
        double number;
        uint64_t digits;
        int exponent;
    } known[] = {
        {1, 1, 0},
        {100, 1, 2},
        {0.1, 1, -1},
        {0.3, 3, -1},
        {0.1 + 0.2, 30000000000000004, -17},
        {5e-324, 5, -324},
        {2.2250738585072014e-308, 22250738585072014, -324},
        {1.7976931348623157e308, 17976931348623157, 292},
        {9007199254740993.0, 9007199254740992, 0},
        {5.684341886080802e-14, 5684341886080802, -29}, /* 2^-44 */
        {9.5367431640625e-7, 95367431640625, -20},
        {1e23, 1, 23},
        {9.5e-322, 95, -323},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int exponent;
        assert_int_equal(ew__shortest(known[i].number, &exponent), known[i].digits);
        assert_int_equal(exponent, known[i].exponent);
    }
}

/* Of every binary exponent, the ends: where neighbours are not equally far away. */
static void test_store_shortest__exponents(void **state) {
    (void)state;
    for (uint64_t exponent = 0; exponent < 2047; exponent++) {
        static const uint64_t mantissas[] = {0, 1, 2, ((uint64_t)1 << 52) - 1, (uint64_t)1 << 51};
        for (size_t i = 0; i < sizeof mantissas / sizeof *mantissas; i++) {
            if (exponent != 0 || mantissas[i] != 0)
                check(exponent << 52 | mantissas[i]);
        }
    }
}

static void test_store_shortest__powers_of_ten(void **state) {
    (void)state;
    for (int exponent = -323; exponent <= 308; exponent++) {
        double number = read_back(1, exponent);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        check(bits);
        check(bits + 1);
        if (bits > 1)
            check(bits - 1);
    }
}

/* ---- exact arithmetic: numbers of 32-bit words, the lowest first ---- */

enum { WORDS = 48 };

typedef struct big {
    uint32_t words[WORDS];
} big;

static big times(big n, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)n.words[i] * factor;
        n.words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    assert_int_equal(carry, 0);
    return n;
}

static big power(big n, uint32_t base, int exponent) {
    for (int i = 0; i < exponent; i++)
        n = times(n, base);
    return n;
}

static int compare(const big *a, const big *b) {
    for (int i = WORDS - 1; i >= 0; i--) {
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    }
    return 0;
}

static big from_words(uint64_t high, uint64_t low) {
    return (big){{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
}

/* left * 2^a is at least right * 2^b, for the a or b that is not below zero. */
static bool is_at_least(big left, big right, int two) {
    left = power(left, 2, two > 0 ? two : 0);
    right = power(right, 2, two < 0 ? -two : 0);
    return compare(&left, &right) >= 0;
}

/* The power is not below 10^k, and one less is. */
static void test_store_shortest__powers_are_exact(void **state) {
    (void)state;
    for (int k = -292; k <= 324; k++) {
        uint64_t p[2];
        ew__power_of_ten(k, p);
        assert_true(p[0] >> 63 == 1);
        int two = (int)floor(k * 3.3219280948873623) - 127; /* p * 2^two is near 10^k */
        big ten = power(from_words(0, 1), 10, k > 0 ? k : 0);
        big above = power(from_words(p[0], p[1]), 10, k < 0 ? -k : 0);
        big below = power(from_words(p[0] - (p[1] == 0), p[1] - 1), 10, k < 0 ? -k : 0);
        assert_true(is_at_least(above, ten, two));
        assert_false(is_at_least(below, ten, two));
    }
}

static void test_store_shortest__chance(void **state) {
    (void)state;
    ew__rng rng = {{1, 2, 3, 4}};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = ew__rng_next(&rng) >> 1;
        if (isfinite(from_bits(bits)) && bits != 0)
            check(bits);
        double few = (double)(ew__rng_next(&rng) % 100000000) / 1000; /* what people write */
        memcpy(&bits, &few, sizeof bits);
        if (bits != 0)
            check(bits);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_shortest__known),         cmocka_unit_test(test_store_shortest__exponents),
        cmocka_unit_test(test_store_shortest__powers_of_ten), cmocka_unit_test(test_store_shortest__powers_are_exact),
        cmocka_unit_test(test_store_shortest__chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
