/*
 * tests/unit/json/test_value.c: strings, integers, doubles and booleans out of text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include <locale.h>
#include <math.h>

static void check_string(const char *value, ew_err err, ew_str expected) {
    char buf[64];
    for (size_t capacity = 0; capacity <= sizeof buf; capacity++) {
        size_t len = 99;
        memset(buf, '~', sizeof buf);
        ew_err got = ew_json_string(ew_str_from(value), buf, capacity, &len);
        if (err != EW_OK) {
            assert_int_equal(got, err);
            assert_int_equal(len, 0);
            continue;
        }
        assert_int_equal(len, expected.len);
        assert_int_equal(got, capacity < expected.len ? EW_ELIMIT : EW_OK);
        if (got == EW_OK) {
            assert_memory_equal(buf, expected.ptr, expected.len);
        }
        for (size_t i = capacity; i < sizeof buf; i++) {
            assert_int_equal(buf[i], '~');
        }
    }
}

static void test_json_value__strings(void **state) {
    (void)state;
    check_string("\"\"", EW_OK, EW_STR(""));
    check_string("\"plain text of some length\"", EW_OK, EW_STR("plain text of some length"));
    check_string(" \"a\" ", EW_OK, EW_STR("a"));
    check_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", EW_OK, EW_STR("\"\\/\b\f\n\r\t"));
    check_string("\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00x\"", EW_OK, EW_STR("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80x"));
    check_string("\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"", EW_OK, EW_STR("\xc3\xa9\xf0\x9f\x98\x80\x7f"));
    check_string("\"a\\u0000b\"", EW_OK, EW_STR("a\0b"));
    check_string("\"\\ud800\"", EW_ETYPE, EW_STR(""));
    check_string("\"x\\udc00\"", EW_ETYPE, EW_STR(""));
    check_string("\"\\ud800\\ud800\"", EW_ETYPE, EW_STR(""));
    check_string("\"\\ud800\\n\"", EW_ETYPE, EW_STR(""));
    check_string("1", EW_ETYPE, EW_STR(""));
    check_string("null", EW_ETYPE, EW_STR(""));
    check_string("\"", EW_ETYPE, EW_STR(""));
    check_string("", EW_ENOTFOUND, EW_STR(""));
}

/* An absent value and one of another type are two things, and neither becomes a default. */
static void test_json_value__absent_and_other(void **state) {
    (void)state;
    ew_str json = EW_STR("{\"s\":\"\\n\",\"n\":1,\"x\":1e999,\"t\":true,\"z\":null}");
    static const struct {
        const char *pointer;
        ew_err text, integer, number, flag;
    } rows[] = {
        {"/s", EW_OK, EW_ETYPE, EW_ETYPE, EW_ETYPE},
        {"/n", EW_ETYPE, EW_OK, EW_OK, EW_ETYPE},
        {"/x", EW_ETYPE, EW_ETYPE, EW_ETYPE, EW_ETYPE},
        {"/t", EW_ETYPE, EW_ETYPE, EW_ETYPE, EW_OK},
        {"/z", EW_ETYPE, EW_ETYPE, EW_ETYPE, EW_ETYPE},
        {"/none", EW_ENOTFOUND, EW_ENOTFOUND, EW_ENOTFOUND, EW_ENOTFOUND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew_str value = ew_json_get(json, rows[i].pointer);
        char buf[8];
        size_t len = 7;
        int64_t integer = 77;
        uint64_t natural = 77;
        double number = 77;
        bool flag = false;
        assert_int_equal(ew_json_string(value, buf, sizeof buf, &len), rows[i].text);
        assert_int_equal(len, rows[i].text == EW_OK ? 1 : 0);
        assert_int_equal(ew_json_int64(value, &integer), rows[i].integer);
        assert_int_equal(ew_json_uint64(value, &natural), rows[i].integer);
        assert_int_equal(ew_json_double(value, &number), rows[i].number);
        assert_int_equal(ew_json_bool(value, &flag), rows[i].flag);
        assert_int_equal(integer, rows[i].integer == EW_OK ? 1 : 77);
        assert_int_equal(natural, rows[i].integer == EW_OK ? 1 : 77);
        assert_int_equal((int)number, rows[i].number == EW_OK ? 1 : 77);
        assert_int_equal(flag, rows[i].flag == EW_OK);
    }
}

static void check_integer(const char *text, bool fits, int64_t number, bool fits_u, uint64_t number_u) {
    int64_t got = 77;
    uint64_t got_u = 77;
    assert_int_equal(ew_json_int64(ew_str_from(text), &got), fits ? EW_OK : EW_ETYPE);
    assert_true(got == (fits ? number : 77));
    assert_int_equal(ew_json_uint64(ew_str_from(text), &got_u), fits_u ? EW_OK : EW_ETYPE);
    assert_true(got_u == (fits_u ? number_u : 77));
}

static void test_json_value__integers(void **state) {
    (void)state;
    check_integer("0", true, 0, true, 0);
    check_integer("-0", true, 0, true, 0);
    check_integer(" 12 ", true, 12, true, 12);
    check_integer("-1", true, -1, false, 0);
    check_integer("9223372036854775806", true, INT64_MAX - 1, true, INT64_MAX - 1);
    check_integer("9223372036854775807", true, INT64_MAX, true, INT64_MAX);
    check_integer("9223372036854775808", false, 0, true, (uint64_t)INT64_MAX + 1);
    check_integer("-9223372036854775807", true, -INT64_MAX, false, 0);
    check_integer("-9223372036854775808", true, INT64_MIN, false, 0);
    check_integer("-9223372036854775809", false, 0, false, 0);
    check_integer("18446744073709551614", false, 0, true, UINT64_MAX - 1);
    check_integer("18446744073709551615", false, 0, true, UINT64_MAX);
    check_integer("18446744073709551616", false, 0, false, 0);
    check_integer("184467440737095516150", false, 0, false, 0);
    check_integer("1.0", false, 0, false, 0);
    check_integer("1e3", false, 0, false, 0);
    check_integer("\"1\"", false, 0, false, 0);
    check_integer("true", false, 0, false, 0);
    check_integer("-", false, 0, false, 0);
}

static void check_double(const char *text, double expected) {
    double got = 777;
    (void)ew_json_double(ew_str_from(text), &got);
    if (got != expected || signbit(got) != signbit(expected)) {
        fail_msg("%s: %.17g instead of %.17g", text, got, expected);
    }
}

static void check_doubles(void) {
    static const char *const texts[] = {
        "0",
        "-0",
        "1",
        "-1",
        "0.1",
        "0.75",
        "123.456",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "123456789012345e-5",
        "1234567890123456e-5",
        "9007199254740993",
        "9007199254740992.9999",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "4.9e-324",
        "2.4e-324",
        "1e-400",
        "0.1e-6",
        "3.141592653589793238462643383279502884197",
        "5e-324",
        "0.000000000000000000000000000000000001234567890123456789",
        "100000000000000000000000000000000000000000",
        "1E+2",
        "1e-2",
        "0e999999999",
        "0.0e-999999999999999999999",
        "8.5",
        "8.50000",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_double(texts[i], strtod(texts[i], NULL));
    }
    check_double("1e400", 777);
    check_double("-1e400", 777);
    check_double("1e99999999999999999999", 777);
    check_double("1e-99999999999999999999", 0);
    check_double("\"1\"", 777);
    check_double("null", 777);
    check_double("", 777);
}

static void test_json_value__doubles(void **state) {
    (void)state;
    check_doubles();
}

/* Half way between two doubles, and the same with one more digit somewhere behind: it must be seen. */
static void test_json_value__long_doubles(void **state) {
    (void)state;
    static char text[4000];
    for (size_t zeros = 0; zeros < 2000; zeros += 83) {
        size_t len = (size_t)snprintf(text, sizeof text, "9007199254740993.");
        memset(text + len, '0', zeros + 1);
        len += zeros + 1;
        text[len] = '\0';
        check_double(text, 9007199254740992.0);
        text[len - 1] = '1';
        check_double(text, 9007199254740994.0);
        memset(text, '0',
               sizeof text); /* the digits after a long row of zeros, and before an exponent that takes them back */
        len = 2 + zeros;
        text[1] = '.';
        snprintf(text + len, sizeof text - len, "12345678901234567890e%zu", zeros);
        check_double(text, 0.1234567890123456789);
    }
    memset(text, '7', sizeof text);
    snprintf(text + 3000, sizeof text - 3000, "e-2999");
    check_double(text, 7.777777777777777777777777);
}

/* A comma as decimal point must change nothing. Only where such a locale is installed. */
static void test_json_value__locale(void **state) {
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL) {
        printf("SKIP: locale de_DE.UTF-8 not present\n");
        skip();
    }
    check_double("0.1234567890123456789", 0.1234567890123456789);
    check_double("2.5", 2.5);
    char buf[32];
    ew_json_format(buf, sizeof buf, "%g", 0.1);
    assert_string_equal(buf, "0.1");
    setlocale(LC_NUMERIC, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_value__strings),      cmocka_unit_test(test_json_value__absent_and_other),
        cmocka_unit_test(test_json_value__integers),     cmocka_unit_test(test_json_value__doubles),
        cmocka_unit_test(test_json_value__long_doubles), cmocka_unit_test(test_json_value__locale),
    };
    return cmocka_run_group_tests_name("json_value", tests, NULL, NULL);
}
