/*
 * tests/unit/json/test_format.c: text from templates.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "support/fail_env.h"
#include "support/json_or.h"

#include <float.h>
#include <limits.h>
#include <math.h>

static void test_json_format__directives(void **state) {
    (void)state;
    char buf[512];
    int len = ew_json_format(buf, sizeof buf,
                             "{\"q\":%q,\"Q\":%Q,\"Qn\":%Q,\"j\":%j,\"jn\":%j,\"s\":%s,\"d\":[%d,%d],\"u\":%u,\"ll\":[%"
                             "lld,%llu],\"z\":%zu,\"b\":[%b,%b],\"p\":\"%%\"}",
                             EW_STR("a\"\n\xff"), "c\\", (const char *)NULL, EW_STR("[1, 2]"), ew__str(NULL, 0), "null",
                             INT_MIN, 7, UINT_MAX, LLONG_MIN, ULLONG_MAX, SIZE_MAX, true, false);
    const char *expected =
        "{\"q\":\"a\\\"\\n\\ufffd\",\"Q\":\"c\\\\\",\"Qn\":null,\"j\":[1, "
        "2],\"jn\":null,\"s\":null,\"d\":[-2147483648,7],\"u\":4294967295,"
        "\"ll\":[-9223372036854775808,18446744073709551615],\"z\":18446744073709551615,\"b\":[true,false],\"p\":\"%\"}";
    assert_string_equal(buf, expected);
    assert_int_equal(len, (int)strlen(expected));
    assert_int_equal(verdict(ew_str_from(buf), 0, NULL), EW_OK);
    assert_int_equal(ew_json_format(buf, sizeof buf, ""), 0);
    assert_string_equal(buf, "");
}

static void test_json_format__capacity(void **state) {
    (void)state;
    for (size_t capacity = 0; capacity < 16; capacity++) {
        char buf[16];
        memset(buf, '~', sizeof buf);
        assert_int_equal(ew_json_format(buf, capacity, "[%q,%d]", EW_STR("ab"), 12), 9);
        for (size_t i = capacity; i < sizeof buf; i++) {
            assert_int_equal(buf[i], '~');
        }
        if (capacity > 0) {
            size_t kept = capacity - 1 < 9 ? capacity - 1 : 9;
            assert_int_equal(buf[kept], '\0');
            assert_memory_equal(buf, "[\"ab\",12]", kept);
        }
    }
    assert_int_equal(ew_json_format(NULL, 0, "%d", 12345), 5);
}

static void test_json_format__bad(void **state) {
    (void)state;
    static const char *const bad[] = {"%", "%x", "%5d", "%ld", "%l", "%ll", "%z", "%zd", "abc%", "%f", "%-d", "% d"};
    ew__test_env env;
    ew__test_env_init(&env, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char buf[32] = "before";
        assert_int_equal(ew_json_format(buf, sizeof buf, bad[i]), EW_EINVAL);
        assert_string_equal(buf, "");
        ew__buf out;
        ew__buf_init(&out, &env.env, 1000);
        ew__buf_cstr(&out, "kept");
        assert_int_equal(ew__json_format(&out, bad[i]), EW_EINVAL);
        assert_int_equal(out.err, EW_EINVAL);
        assert_true(ew__str_is(ew__buf_view(&out), EW_STR("kept")));
        ew__buf_done(&out);
    }
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

/* One directive and one argument: what is written, or NULL for EW_EINVAL. */
static void check_pair(const char *format, ew_arg arg, const char *expected) {
    char buf[64] = "before";
    int len = ew_json_format(buf, sizeof buf, format, arg);
    assert_int_equal(len, expected ? (int)strlen(expected) : EW_EINVAL);
    assert_string_equal(buf, expected ? expected : "");
}

static void test_json_format__types(void **state) {
    (void)state;
    static const char *const integers[] = {"%d", "%u", "%lld", "%llu", "%zu"};
    static const char *const texts[] = {"%q", "%Q", "%j", "%s"};
    char text[] = "1";
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        check_pair(integers[i], EW_ARG((int64_t)1 << 40), "1099511627776");
        check_pair(integers[i], EW_ARG(INT64_MIN), "-9223372036854775808");
        check_pair(integers[i], EW_ARG(UINT64_MAX), "18446744073709551615");
        check_pair(integers[i], EW_ARG((short)-3), "-3");
        check_pair(integers[i], EW_ARG((bool)true), "1");
        check_pair(integers[i], EW_ARG(1.0), NULL);
        check_pair(integers[i], EW_ARG("1"), NULL);
        check_pair(integers[i], EW_ARG(EW_STR("1")), NULL);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *expected = i < 2 ? "\"1\"" : "1";
        check_pair(texts[i], EW_ARG(text), expected);
        check_pair(texts[i], EW_ARG("1"), expected);
        check_pair(texts[i], EW_ARG(EW_STR("1")), expected);
        check_pair(texts[i], EW_ARG((const char *)NULL), i < 3 ? "null" : NULL);
        check_pair(texts[i], EW_ARG(1), NULL);
        check_pair(texts[i], EW_ARG(1.0), NULL);
        check_pair(texts[i], EW_ARG((bool)true), NULL);
    }
    check_pair("%g", EW_ARG(1.5F), "1.5");
    check_pair("%g", EW_ARG(1), NULL);
    check_pair("%g", EW_ARG("1"), NULL);
    check_pair("%b", EW_ARG((bool)true), "true");
    check_pair("%b", EW_ARG(0), "false");
    check_pair("%b", EW_ARG(2U), "true");
    check_pair("%b", EW_ARG(1.0), NULL);
    check_pair("%b", EW_ARG("1"), NULL);
}

static void test_json_format__argument_count(void **state) {
    (void)state;
    char buf[64];
    assert_int_equal(ew_json_format(buf, sizeof buf, "%d"), EW_EINVAL);
    assert_int_equal(ew_json_format(buf, sizeof buf, "%d,%d", 1), EW_EINVAL);
    assert_int_equal(ew_json_format(buf, sizeof buf, "%d", 1, 2), EW_EINVAL);
    assert_int_equal(ew_json_format(buf, sizeof buf, "1", 1), EW_EINVAL);
    assert_int_equal(ew_json_format(buf, sizeof buf, "%%", 1), EW_EINVAL);
    assert_string_equal(buf, "");
    assert_int_equal(ew_json_format(buf, sizeof buf, "%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8,
                                    9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0),
                     20);
    assert_string_equal(buf, "12345678901234567890");
}

static void check_double(double number, const char *expected) {
    char buf[64];
    ew_json_format(buf, sizeof buf, "%g", number);
    assert_string_equal(buf, expected);
}

static void test_json_format__doubles(void **state) {
    (void)state;
    check_double(0, "0");
    check_double(-0.0, "-0");
    check_double(1, "1");
    check_double(-2.5, "-2.5");
    check_double(0.1, "0.1");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(100, "100");
    check_double(12345.678, "12345.678");
    check_double(1e15, "1000000000000000");
    check_double(1e16, "10000000000000000");
    check_double(123456789012345680.0, "1.2345678901234568e17");
    check_double(1e17, "1e17");
    check_double(1e-5, "0.00001");
    check_double(1.5e-5, "0.000015");
    check_double(1e-6, "1e-6");
    check_double(1e300, "1e300");
    check_double(-1.25e-300, "-1.25e-300");
    check_double(DBL_MAX, "1.7976931348623157e308");
    check_double(DBL_TRUE_MIN, "4.94065645841247e-324");
    check_double(NAN, "null");
    check_double(INFINITY, "null");
    check_double(-INFINITY, "null");
}

/* Written, checked, read back: the same double, bit for bit. */
static void test_json_format__doubles_come_back(void **state) {
    (void)state;
    uint64_t bits = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 50000; i++) {
        double number;
        char buf[64];
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        memcpy(&number, &bits, sizeof number);
        if (i % 3 == 0) {
            number = (double)(int64_t)(bits >> 30) / 1000;
        }
        if (!isfinite(number)) {
            continue;
        }
        int len = ew_json_format(buf, sizeof buf, "%g", number);
        assert_int_equal(ew_json_check(ew__str(buf, (size_t)len), NULL), EW_OK);
        double back = json_double_or(ew__str(buf, (size_t)len), "", 1);
        if (memcmp(&back, &number, sizeof back) != 0) {
            fail_msg("%a came back as %a through %s", number, back, buf);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_format__directives),
        cmocka_unit_test(test_json_format__capacity),
        cmocka_unit_test(test_json_format__bad),
        cmocka_unit_test(test_json_format__types),
        cmocka_unit_test(test_json_format__argument_count),
        cmocka_unit_test(test_json_format__doubles),
        cmocka_unit_test(test_json_format__doubles_come_back),
    };
    return cmocka_run_group_tests_name("json_format", tests, NULL, NULL);
}
