/*
 * tests/unit/base/test_util.c: slices, numbers, hex, the generator, log lines.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "support/fail_env.h"

static void test_base_util__slices(void **state) {
    (void)state;
    assert_true(ew__str_is_nocase(EW_STR("Content-Type"), EW_STR("cONTENT-tYPE")));
    assert_false(ew__str_is_nocase(EW_STR("abc"), EW_STR("abd")));
    assert_false(ew__str_is_nocase(EW_STR("abc"), EW_STR("ab")));
    assert_false(ew__str_is_nocase(EW_STR("@["), EW_STR("`{"))); /* the neighbours of the letters */
    assert_false(ew__str_is_nocase(EW_STR("\xc4"), EW_STR("\xe4")));
    assert_true(ew__str_is_nocase(ew__str(NULL, 0), EW_STR("")));
    assert_true(ew__str_has_prefix(EW_STR("abc"), EW_STR("ab")));
    assert_true(ew__str_has_prefix(EW_STR("abc"), EW_STR("abc")));
    assert_true(ew__str_has_prefix(EW_STR("abc"), ew__str(NULL, 0)));
    assert_true(ew__str_has_prefix(ew__str(NULL, 0), ew__str(NULL, 0)));
    assert_false(ew__str_has_prefix(EW_STR("abc"), EW_STR("abcd")));
    assert_false(ew__str_has_prefix(EW_STR("abc"), EW_STR("b")));
    assert_true(ew__str_is(ew__str_trim(EW_STR(" \t a b\t ")), EW_STR("a b")));
    assert_true(ew__str_is(ew__str_trim(EW_STR("ab")), EW_STR("ab")));
    assert_true(ew__str_is(ew__str_trim(EW_STR("\nab\r")), EW_STR("\nab\r")));
    assert_int_equal(ew__str_trim(EW_STR(" \t \t")).len, 0);
    assert_int_equal(ew__str_trim(ew__str(NULL, 0)).len, 0);
}

static void check_number(uint64_t number) {
    char expected[32], text[22];
    int n = snprintf(expected, sizeof(expected), "%" PRIu64, number);
    memset(text, '#', sizeof(text));
    assert_int_equal(ew__u64_text(number, text), n);
    assert_memory_equal(text, expected, (size_t)n);
    assert_int_equal(text[n], '#');
    uint64_t back = ~number;
    assert_true(ew__u64_parse(ew__str(text, (size_t)n), &back));
    assert_true(back == number);
}

static void test_base_util__numbers_there_and_back(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        check_number(i);
    }
    for (uint64_t power = 1; power < UINT64_MAX / 10; power *= 10) {
        check_number(power - 1);
        check_number(power);
        check_number(power + 1);
    }
    check_number(10000000000000000000u);
    check_number(UINT64_MAX - 1);
    check_number(UINT64_MAX);
    ew__test_env t;
    ew__test_env_init(&t, 5);
    ew__rng rng;
    ew__rng_init(&rng, &t.env);
    for (int i = 0; i < 20000; i++) {
        uint64_t r = ew__rng_next(&rng);
        check_number(r >> (r & 63));
    }
}

static void test_base_util__numbers_refused(void **state) {
    (void)state;
    static const char *texts[] = {"",
                                  "-1",
                                  "+1",
                                  " 1",
                                  "1 ",
                                  "0x1",
                                  "1.",
                                  "1a",
                                  "a",
                                  "/",
                                  ":",
                                  "18446744073709551616",
                                  "18446744073709551620",
                                  "99999999999999999999",
                                  "100000000000000000000"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t number = 77;
        assert_false(ew__u64_parse(ew_str_from(texts[i]), &number));
        assert_int_equal(number, 77);
    }
    uint64_t number = 0;
    assert_false(ew__u64_parse(EW_STR("1\0"), &number));
    assert_true(ew__u64_parse(EW_STR("0000000000000000000000000000018446744073709551615"), &number));
    assert_true(number == UINT64_MAX);
}

static void test_base_util__hex_there_and_back(void **state) {
    (void)state;
    uint8_t bytes[256], back[256];
    char text[513], expected[513];
    for (unsigned i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)(i * 167); /* every value once, neighbours far apart */
        (void)snprintf(expected + 2 * i, 3, "%02x", bytes[i]);
    }
    for (size_t n = 0; n <= 256; n++) {
        memset(text, '#', sizeof(text));
        ew__hex(bytes, n, text);
        assert_memory_equal(text, expected, 2 * n);
        assert_int_equal(text[2 * n], '#');
        memset(back, 0xee, sizeof(back));
        assert_true(ew__unhex(ew__str(text, 2 * n), back, n));
        assert_memory_equal(back, bytes, n);
        assert_true(n == 256 || back[n] == 0xee);
    }
}

static void test_base_util__hex_refused(void **state) {
    (void)state;
    uint8_t out[4] = {9, 9, 9, 9};
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {{"0", 0},  {"", 1},   {"000", 1}, {"000", 2}, {"0000", 1}, {"00", 2},   {"0A", 1},
                {"0g", 1}, {"g0", 1}, {"0`", 1},  {"0/", 1},  {"0:", 1},   {"000G", 2}, {"00", SIZE_MAX / 2 + 2}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(ew__unhex(ew_str_from(rows[i].text), out, rows[i].n));
    }
    for (int c = 0; c < 256; c++) {
        char text[2] = {'0', (char)c};
        bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        uint8_t one;
        assert_int_equal(ew__unhex(ew__str(text, 2), &one, 1), is_digit);
    }
    assert_int_equal(out[0] + out[1] + out[2] + out[3], 36);
}

static void zero_random(void *ud, void *bytes, size_t n) {
    (void)ud;
    memset(bytes, 0, n);
}

static void test_base_util__generator(void **state) {
    (void)state;
    ew__rng known = {{1, 2, 3, 4}};
    /* The start of the published sequence from this state. */
    static const uint64_t expected[] = {11520u, 0u, 1509978240u, 1215971899390074240u};
    for (int i = 0; i < 4; i++) {
        assert_true(ew__rng_next(&known) == expected[i]);
    }
    ew__test_env t;
    ew__test_env_init(&t, 9);
    ew__rng a, b;
    ew__rng_init(&a, &t.env);
    ew__rng_init(&b, &t.env);
    assert_true(ew__rng_next(&a) != ew__rng_next(&b));
    ew_env zero = {.random = zero_random};
    ew__rng_init(&a, &zero);
    uint64_t seen = 0;
    for (int i = 0; i < 10; i++) {
        seen |= ew__rng_next(&a);
    }
    assert_true(seen != 0);
}

/* ---- log lines ---- */

static void expect_line(const ew__test_env *t, const char *line, size_t n) {
    assert_int_equal(t->log_len, n);
    assert_memory_equal(t->log_line, line, n);
}

#define EXPECT_LINE(t, literal) expect_line(t, literal, sizeof(literal) - 1)

static void test_base_util__log(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__log(&t.env, EW_LOG_WARN, "base", "plain %d %s", 5,
            "gr\xc3\xbc\xc3\x9f"
            "e");
    EXPECT_LINE(&t, "plain 5 gr\xc3\xbc\xc3\x9f"
                    "e");
    assert_int_equal(t.log_level, EW_LOG_WARN);
    assert_string_equal(t.log_room, "base");
    ew__log(&t.env, EW_LOG_ERROR, "x", "%s", "a\nb\r\x1b[31m\x7f\x1f ~");
    EXPECT_LINE(&t, "a\\x0ab\\x0d\\x1b[31m\\x7f\\x1f ~");
    ew__log(&t.env, EW_LOG_ERROR, "x", "%c", 0);
    EXPECT_LINE(&t, "\\x00");
    ew__log(&t.env, EW_LOG_ERROR, "x", "%s",
            "\xc2\x9b"
            "2J \xc2\xa0 \x9b \xc2");
    EXPECT_LINE(&t, "\\xc2\\x9b"
                    "2J \xc2\xa0 \\x9b \\xc2");
    ew__log(&t.env, EW_LOG_DEBUG, "x", "%s", "");
    assert_int_equal(t.log_len, 0);
    assert_int_equal(t.n_logged, 5);
    ew__log(ew_env_default(), EW_LOG_ERROR, "x", "nobody hears %s", "this");
}

static void test_base_util__log_cuts_at_1024(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    char text[3000];
    memset(text, 'a', sizeof(text));
    for (int n = 1022; n <= 1026; n++) {
        ew__log(&t.env, EW_LOG_INFO, "x", "%.*s", n, text);
        assert_int_equal(t.log_len, n < 1024 ? n : 1024);
        assert_memory_equal(t.log_line, text, t.log_len);
    }
    ew__log(&t.env, EW_LOG_INFO, "x", "%.*s", 2999, text);
    assert_int_equal(t.log_len, 1024);
    /* A long name of three characters of four bytes is not cut through. */
    for (int n = 1020; n <= 1024; n++) {
        ew__log(&t.env, EW_LOG_INFO, "x", "%.*s%s", n, text, "\xf0\x9f\x98\x80zzzz");
        int whole = n == 1020 ? 1024 : n;
        assert_int_equal(t.log_len, whole);
        assert_memory_equal(t.log_line, text, (size_t)n);
    }
}

static void test_base_util__log_of_control_bytes_only(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    char text[1100];
    memset(text, '\n', sizeof(text));
    for (int n = 0; n <= 1100; n += n > 250 && n < 260 ? 1 : 50) {
        ew__log(&t.env, EW_LOG_INFO, "x", "%.*s", n, text);
        int cut = n < 1024 ? n : 1024;
        /* As many as can be are written out in full; none is lost. */
        int full = (1024 - cut) / 3 < cut ? (1024 - cut) / 3 : cut;
        assert_int_equal(t.log_len, cut + 3 * full);
        for (size_t i = 0; i < t.log_len; i++) {
            assert_true(t.log_line[i] >= 0x20 && t.log_line[i] < 0x7f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_util__slices),
        cmocka_unit_test(test_base_util__numbers_there_and_back),
        cmocka_unit_test(test_base_util__numbers_refused),
        cmocka_unit_test(test_base_util__hex_there_and_back),
        cmocka_unit_test(test_base_util__hex_refused),
        cmocka_unit_test(test_base_util__generator),
        cmocka_unit_test(test_base_util__log),
        cmocka_unit_test(test_base_util__log_cuts_at_1024),
        cmocka_unit_test(test_base_util__log_of_control_bytes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
