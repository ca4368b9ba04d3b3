/*
 * tests/unit/json/test_text.c: skipping, decoding and comparing pieces of text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "json/text.h"

/* In a block of exactly its size. */
static void skip_exact(const char *(*step)(const char *at, const char *end), const char *text, size_t len,
                       size_t *ret_n) {
    char *copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, text, len);
    *ret_n = (size_t)(step(copy, copy + len) - copy);
    free(copy);
}

static void test_json_text__skip_container(void **state) {
    (void)state;
    char text[600];
    for (int n = 1; n < 200; n++) {
        size_t got, inner = (size_t)snprintf(text, sizeof text, "[{\"a]\\\"\":[[],\"%0*d\\\\\"]},{}]", n, 0);
        memcpy(text + inner, ",[1]]]]", 7);
        for (size_t extra = 0; extra <= 7; extra += 7) {
            skip_exact(ew__json_skip_container, text, inner + extra, &got);
            assert_int_equal(got, inner);
            skip_exact(ew__json_skip_container_portable, text, inner + extra, &got);
            assert_int_equal(got, inner);
        }
        skip_exact(ew__json_skip_container, text, inner - 1, &got); /* cut: stays inside */
        assert_int_equal(got, inner - 1);
    }
}

static void test_json_text__skip_string(void **state) {
    (void)state;
    char text[300];
    for (size_t n = 0; n < 100; n++) {
        size_t got;
        memset(text, 'x', sizeof text);
        text[0] = text[n + 1] = '"';
        skip_exact(ew__json_skip_string, text, n + 2, &got);
        assert_int_equal(got, n + 2);
        skip_exact(ew__json_skip_string, text, n + 40, &got);
        assert_int_equal(got, n + 2);
        skip_exact(ew__json_skip_string, text, n + 1, &got);
        assert_int_equal(got, n + 1);
        if (n > 0) {
            text[n] = '\\';
            skip_exact(ew__json_skip_string, text, n + 2, &got);
            assert_int_equal(got, n + 2);
            text[n + 3] = '"';
            skip_exact(ew__json_skip_string, text, n + 10, &got);
            assert_int_equal(got, n + 4);
            skip_exact(ew__json_skip_string, text, n + 1, &got);
            assert_int_equal(got, n + 1);
        }
    }
}

static void test_json_text__skip_value(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {{"1,2", 1},    {"true]", 4}, {"-1.5e3}", 6}, {"null \n", 4},
                 {"\"a\" ", 3}, {"{} ", 2},   {"12", 2},      {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        assert_ptr_equal(ew__json_skip_value(text, text + strlen(text)), text + cases[i].n);
    }
}

static void test_json_text__plain_run(void **state) {
    (void)state;
    char text[64];
    for (size_t n = 0; n < 40; n++) {
        for (int c = 0; c < 256; c++) {
            memset(text, 'a', sizeof text);
            text[n] = (char)c;
            bool plain = c >= 0x20 && c != '"' && c != '\\';
            assert_int_equal(ew__json_plain_run(text, text + 50, false), plain ? 50 : n);
            assert_int_equal(ew__json_plain_run(text, text + 50, true), plain && c < 0x7f ? 50 : n);
        }
    }
}

static void test_json_text__utf8(void **state) {
    (void)state;
    char bytes[4];
    for (uint32_t point = 0; point < 0x110000; point++) {
        uint32_t back = 0;
        size_t n = ew__json_utf8_put(point, bytes);
        bool surrogate = point >= 0xd800 && point <= 0xdfff;
        assert_int_equal(ew__json_utf8(bytes, bytes + n, &back), surrogate ? 0 : n);
        if (!surrogate) {
            assert_int_equal(back, point);
            assert_int_equal(ew__json_utf8(bytes, bytes + n - 1, &back), 0);
        }
        if (point > 0x10000) {
            point += 96;
        }
    }
}

static void test_json_text__utf8_bad(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3",
                                      "\xc3\x28",
                                      "\xe2\x82",
                                      "\xe2\x28\xa1",
                                      "\xf8\x88\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t point;
        assert_int_equal(ew__json_utf8(bad[i], bad[i] + strlen(bad[i]), &point), 0);
    }
}

static bool name_is(const char *raw, ew_str name) { return ew__json_name_is(ew_str_from(raw), name); }

static void test_json_text__names(void **state) {
    (void)state;
    assert_true(name_is("data", EW_STR("data")));
    assert_true(name_is("d\\u0061ta", EW_STR("data")));
    assert_true(name_is("\\u0064\\u0061\\u0074\\u0061", EW_STR("data")));
    assert_true(name_is("a\\/b\\\\\\\"\\n\\t\\r\\b\\f", EW_STR("a/b\\\"\n\t\r\b\f")));
    assert_true(name_is("\\u00E9\xc3\xa9", EW_STR("\xc3\xa9\xc3\xa9")));
    assert_true(name_is("\\ud83d\\ude00", EW_STR("\xf0\x9f\x98\x80")));
    assert_true(name_is("a\\u0000", EW_STR("a\0")));
    assert_true(name_is("", EW_STR("")));
    assert_false(name_is("data", EW_STR("dat")));
    assert_false(name_is("dat", EW_STR("data")));
    assert_false(name_is("dat\\u0061x", EW_STR("data")));
    assert_false(name_is("dat\\u0062", EW_STR("data")));
    assert_false(name_is("\\u0061", EW_STR("")));
    assert_false(name_is("\\ud83d", EW_STR("\xf0\x9f\x98\x80")));
    assert_false(name_is("\\ud83d\\u0041", EW_STR("\xf0\x9f\x98\x80")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_text__skip_container), cmocka_unit_test(test_json_text__skip_string),
        cmocka_unit_test(test_json_text__skip_value),     cmocka_unit_test(test_json_text__plain_run),
        cmocka_unit_test(test_json_text__utf8),           cmocka_unit_test(test_json_text__utf8_bad),
        cmocka_unit_test(test_json_text__names),
    };
    return cmocka_run_group_tests_name("json_text", tests, NULL, NULL);
}
