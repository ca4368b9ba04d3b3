/*
 * tests/unit/json/test_write.c: strings, minified values, ASCII values.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "support/fail_env.h"

static ew__test_env env;

static void check_write(ew_str text, bool ascii, const char *expected) {
    ew__buf buf;
    ew__buf_init(&buf, &env.env, 100000);
    assert_int_equal(ew__json_write_str(&buf, text, ascii), EW_OK);
    if (!ew__str_is(ew__buf_view(&buf), ew_str_from(expected))) {
        fail_msg("got %.*s instead of %s", (int)buf.len, buf.ptr, expected);
    }
    assert_int_equal(verdict(ew__buf_view(&buf), 0, NULL), EW_OK);
    ew__buf_done(&buf);
}

static void test_json_write__strings(void **state) {
    (void)state;
    check_write(EW_STR(""), false, "\"\"");
    check_write(ew__str(NULL, 0), true, "\"\"");
    check_write(EW_STR("plain"), true, "\"plain\"");
    check_write(EW_STR("\"\\/\b\f\n\r\t\x01\x1f"), false, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\"");
    check_write(EW_STR("a\0b"), false, "\"a\\u0000b\"");
    check_write(EW_STR("\x7f"), false, "\"\x7f\"");
    check_write(EW_STR("\x7f"), true, "\"\\u007f\"");
    check_write(EW_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), false, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_write(EW_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), true, "\"\\u00e9\\u20ac\\ud83d\\ude00\"");
    check_write(EW_STR("a\xff"), false, "\"a\\ufffd\"");
    check_write(EW_STR("\xc3(\xed\xa0\x80"), false, "\"\\ufffd(\\ufffd\\ufffd\\ufffd\"");
    check_write(EW_STR("\xe2\x82"), true, "\"\\ufffd\\ufffd\"");
}

/* Whatever bytes go in, valid JSON comes out; UTF-8 comes back as it was. */
static void test_json_write__round_trip(void **state) {
    (void)state;
    static char bytes[300], back[4000];
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)round % sizeof bytes;
        for (size_t i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            bytes[i] = (char)(round % 2 == 0 ? x >> 20 : x >> 20 & 0x7f);
        }
        for (int ascii = 0; ascii < 2; ascii++) {
            ew__buf buf;
            size_t len;
            ew__buf_init(&buf, &env.env, 100000);
            assert_int_equal(ew__json_write_str(&buf, ew__str(bytes, n), ascii != 0), EW_OK);
            assert_int_equal(verdict(ew__buf_view(&buf), 0, NULL), EW_OK);
            assert_int_equal(ew_json_string(ew__buf_view(&buf), back, sizeof back, &len), EW_OK);
            assert_true(round % 2 == 0 || ew__str_is(ew__str(back, len), ew__str(bytes, n)));
            for (size_t i = 0; ascii != 0 && i < buf.len; i++) {
                assert_true(buf.ptr[i] > 0 && buf.ptr[i] < 0x7f);
            }
            ew__buf_done(&buf);
        }
    }
}

static void check_change(ew_err (*change)(ew__buf *out, ew_str json), const char *json, const char *expected) {
    ew__buf buf;
    ew__buf_init(&buf, &env.env, 100000);
    assert_int_equal(ew_json_check(ew_str_from(json), NULL), EW_OK);
    assert_int_equal(change(&buf, ew_str_from(json)), EW_OK);
    if (!ew__str_is(ew__buf_view(&buf), ew_str_from(expected))) {
        fail_msg("got %.*s instead of %s", (int)buf.len, buf.ptr, expected);
    }
    assert_int_equal(verdict(ew__buf_view(&buf), 0, NULL), EW_OK);
    ew__buf_done(&buf);
}

static void test_json_write__minify(void **state) {
    (void)state;
    check_change(ew__json_minify, "1", "1");
    check_change(ew__json_minify, " \n[ 1 ,\t2 ]\r\n", "[1,2]");
    check_change(ew__json_minify, "{ \"a b\" : \" \\\" \" , \"c\":[ ] }", "{\"a b\":\" \\\" \",\"c\":[]}");
    check_change(ew__json_minify, "[1.50, 1E+2, -0, \"\\u00e9\"]", "[1.50,1E+2,-0,\"\\u00e9\"]");
    check_change(ew__json_minify, "  \"x  y\"  ", "\"x  y\"");
    check_change(ew__json_minify, "[\"\\\\\" , \"\"]", "[\"\\\\\",\"\"]");
}

static void test_json_write__ascii(void **state) {
    (void)state;
    check_change(ew__json_write_ascii, "{\"a\":1}", "{\"a\":1}");
    check_change(ew__json_write_ascii, "{\"\xc3\xa9\": \"\xf0\x9f\x98\x80 \\n \x7f \xef\xbf\xbf\"}",
                 "{\"\\u00e9\": \"\\ud83d\\ude00 \\n \\u007f \\uffff\"}");
    check_change(ew__json_write_ascii, "\"12345678\xc3\xa9 1234567890123\"", "\"12345678\\u00e9 1234567890123\"");
}

static void test_json_write__has_newline(void **state) {
    (void)state;
    assert_false(ew__json_has_newline(EW_STR("[1, 2]")));
    assert_true(ew__json_has_newline(EW_STR("[1,\n2]")));
    assert_true(ew__json_has_newline(EW_STR("[1,\r2]")));
    assert_false(ew__json_has_newline(ew__str(NULL, 0)));
}

static ew_err write_all(ew__buf *buf) {
    ew__json_write_str(buf, EW_STR("some text, long enough to need a block: \xc3\xa9\n\x01"), true);
    ew__json_minify(buf, EW_STR("[ 1, 2 ]"));
    for (int i = 0; i < 60; i++) {
        ew__json_write_ascii(buf, EW_STR("\"\xf0\x9f\x98\x80\""));
    }
    return ew__json_format(buf, "{\"a\":%q,\"b\":%g}", EW_STR("x"), 0.5);
}

static void test_json_write__no_memory(void **state) {
    (void)state;
    uint64_t n = 1;
    for (;; n++) {
        ew__buf buf;
        ew__buf_init(&buf, &env.env, 100000);
        ew__test_env_fail_at(&env, n, false);
        ew_err err = write_all(&buf);
        bool failed = ew__test_env_failed(&env) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        ew__buf_done(&buf);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        if (!failed) {
            break;
        }
    }
    assert_true(n > 2);
    ew__test_env_fail_at(&env, 0, false);
}

static void test_json_write__limit(void **state) {
    (void)state;
    for (size_t max = 0; max < 12; max++) {
        ew__buf buf;
        ew__buf_init(&buf, &env.env, max);
        assert_int_equal(ew__json_write_str(&buf, EW_STR("12345678"), false), max < 10 ? EW_ELIMIT : EW_OK);
        ew__buf_done(&buf);
    }
}

/* Every byte at every place of short texts; what is plain needs no rewriting, and most texts are plain. */
static void test_json_write__plain_line(void **state) {
    (void)state;
    for (size_t n = 0; n < 140; n++) {
        char text[140];
        memset(text, 'x', sizeof text);
        assert_int_equal(ew__json_is_plain_line(ew__str(text, n)), n >= 8 && n <= 128);
        for (size_t at = 0; at < n && n >= 8 && n < 20; at++) {
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                assert_int_equal(ew__json_is_plain_line(ew__str(text, n)), c >= 0x20 && c < 0x7f);
            }
            text[at] = 'x';
        }
    }
}

int main(void) {
    ew__test_env_init(&env, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_write__strings),     cmocka_unit_test(test_json_write__round_trip),
        cmocka_unit_test(test_json_write__minify),      cmocka_unit_test(test_json_write__ascii),
        cmocka_unit_test(test_json_write__has_newline), cmocka_unit_test(test_json_write__no_memory),
        cmocka_unit_test(test_json_write__limit),       cmocka_unit_test(test_json_write__plain_line),
    };
    return cmocka_run_group_tests_name("json_write", tests, NULL, NULL);
}
