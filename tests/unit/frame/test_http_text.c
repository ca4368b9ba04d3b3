/*
 * tests/unit/frame/test_http_text.c: targets, queries, fields, reasons.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/http1.h"

/* In blocks of exactly the size that is promised, so that a memory checker sees a step beyond. */
static ew_err split(const char *target, char *path, char *query) {
    size_t n = strlen(target);
    char *in = malloc(n > 0 ? n : 1), *out = malloc(n > 0 ? n : 1);
    assert_true(in != NULL && out != NULL);
    memcpy(in, target, n);
    ew_str p = EW_STR("untouched"), q = EW_STR("untouched");
    ew_err err = ew__http_target(ew__str(in, n), out, &p, &q);
    assert_true(err == EW_OK || ew__str_is(p, EW_STR("untouched")));
    if (err == EW_OK) {
        memcpy(path, p.ptr, p.len);
        path[p.len] = '\0';
        if (q.ptr == NULL) {
            memcpy(query, "(none)", 7);
        } else {
            memcpy(query, q.ptr, q.len);
            query[q.len] = '\0';
        }
    }
    free(in);
    free(out);
    return err;
}

static void test_frame_http_text__splits_targets(void **state) {
    (void)state;
    static const struct {
        const char *target, *path, *query;
    } cases[] = {
        {"/", "/", "(none)"},
        {"/flow/echo", "/flow/echo", "(none)"},
        {"/flow%2Fecho", "/flow/echo", "(none)"},
        {"/a?", "/a", ""},
        {"/a?x=%zz?y", "/a", "x=%zz?y"},
        {"/%E2%82%AC/%f0%9f%98%80", "/\xe2\x82\xac/\xf0\x9f\x98\x80", "(none)"},
        {"/a+b%20c", "/a+b c", "(none)"},
        {"//a//", "//a//", "(none)"},
        {"/.a/..b/...", "/.a/..b/...", "(none)"},
        {"/%25%3F%23", "/%?#", "(none)"},
        {"http://h", "/", "(none)"},
        {"HTTP://h:1?x", "/", "x"},
        {"https://h/a/b?c", "/a/b", "c"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[64], query[64];
        assert_int_equal(split(cases[i].target, path, query), EW_OK);
        assert_string_equal(path, cases[i].path);
        assert_string_equal(query, cases[i].query);
    }
}

static void test_frame_http_text__refuses_targets(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",           "*",
        "a",          "?a",
        "/%",         "/%2",
        "/%2g",       "/%g2",
        "/a%00b",     "/%0a",
        "/%7f",       "/\x1f",
        "/\x7f",      "/a#b",
        "/a?b#c",     "/..",
        "/../a",      "/a/..",
        "/a/../b",    "/.",
        "/./a",       "/a/.",
        "/%2e%2e/",   "/%2E.",
        "/a%2f..",    "/a%2f%2e%2e",
        "/%c0%af",    "/%ff",
        "/%80",       "/%e2%82",
        "/%ed%a0%80", "/%f4%90%80%80",
        "/%e0%80%80", "/%f0%80%80%80",
        "/%c1%81",    "/\x80",
        "http://h#a", "http://h/..",
        "/a?\x01",    "/%-1",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[64], query[64];
        if (split(cases[i], path, query) != EW_ESYNTAX) {
            print_error("taken: %s\n", cases[i]);
            fail();
        }
    }
}

static void test_frame_http_text__finds_parameters(void **state) {
    (void)state;
    static const struct {
        const char *query, *name, *value;
        uint32_t count;
    } cases[] = {
        {"stream=true", "stream", "true", 1},
        {"a=1&stream=true&b", "stream", "true", 1},
        {"a=1&b", "b", "", 1},
        {"a=1&a=2&a", "a", "1", 3},
        {"a=b=c", "a", "b=c", 1},
        {"a=&b=1", "a", "", 1},
        {"&&a=1&", "a", "1", 1},
        {"aa=1", "a", NULL, 0},
        {"a=1", "aa", NULL, 0},
        {"", "a", NULL, 0},
        {"A=1", "a", NULL, 0},
        {"&", "", NULL, 0},
        {"=x", "", "x", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t count = 99;
        size_t n = strlen(cases[i].query);
        char *query = malloc(n > 0 ? n : 1);
        assert_non_null(query);
        memcpy(query, cases[i].query, n);
        ew_str value = ew__http_query(ew__str(query, n), ew_str_from(cases[i].name), &count);
        assert_int_equal(count, cases[i].count);
        assert_int_equal(value.ptr != NULL, cases[i].value != NULL);
        assert_true(value.ptr == NULL || ew__str_is(value, ew_str_from(cases[i].value)));
        free(query);
    }
    assert_null(ew__http_query(ew__str(NULL, 0), EW_STR("a"), NULL).ptr);
}

static void test_frame_http_text__finds_fields(void **state) {
    (void)state;
    const ew__http_field fields[] = {
        {EW_STR("Host"), EW_STR("a")}, {EW_STR("X-A"), EW_STR("1")}, {EW_STR("x-a"), EW_STR("2")}};
    ew__http_head head = {.n_fields = 3, .fields = fields};
    uint32_t count = 0;
    assert_true(ew__str_is(ew__http_head_field(&head, EW_STR("hOST"), NULL), EW_STR("a")));
    assert_true(ew__str_is(ew__http_head_field(&head, EW_STR("X-a"), &count), EW_STR("1")));
    assert_int_equal(count, 2);
    assert_null(ew__http_head_field(&head, EW_STR("X"), &count).ptr);
    assert_int_equal(count, 0);
}

static void test_frame_http_text__names_statuses(void **state) {
    (void)state;
    assert_string_equal(ew__http_reason(200), "OK");
    assert_string_equal(ew__http_reason(101), "Switching Protocols");
    assert_string_equal(ew__http_reason(431), "Request Header Fields Too Large");
    assert_string_equal(ew__http_reason(505), "HTTP Version Not Supported");
    assert_string_equal(ew__http_reason(299), "Unknown");
    assert_string_equal(ew__http_reason(-1), "Unknown");
}

static void test_frame_http_text__knows_safe_values(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = {'a', (char)c, 'b'};
        assert_int_equal(ew__http_value_ok(ew__str(text, 3)), c == '\t' || (c >= 0x20 && c != 0x7f));
    }
    assert_true(ew__http_value_ok(ew__str(NULL, 0)));
}

/* The absolute form is always read byte by byte: what it says of a path, the short form says too. */
static void test_frame_http_text__reads_paths_alike(void **state) {
    (void)state;
    for (int at = 0; at < 4; at++) {
        for (int c = 0; c < 256; c++) {
            char whole[] = "http://h/a/b", out[2][sizeof whole];
            ew_str path[2] = {{NULL, 0}, {NULL, 0}}, query[2];
            whole[8 + at] = (char)c;
            ew_err plain = ew__http_target(ew_str_from(whole + 8), out[0], &path[0], &query[0]);
            ew_err absolute = ew__http_target(ew_str_from(whole), out[1], &path[1], &query[1]);
            if (at == 0 && c != '/') { /* belongs to the host then */
                assert_int_equal(plain, EW_ESYNTAX);
                continue;
            }
            assert_int_equal(plain, absolute);
            if (plain == EW_OK) {
                assert_true(ew__str_is(path[0], path[1]) && ew__str_is(query[0], query[1]));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_http_text__splits_targets),
        cmocka_unit_test(test_frame_http_text__refuses_targets),
        cmocka_unit_test(test_frame_http_text__reads_paths_alike),
        cmocka_unit_test(test_frame_http_text__finds_parameters),
        cmocka_unit_test(test_frame_http_text__finds_fields),
        cmocka_unit_test(test_frame_http_text__names_statuses),
        cmocka_unit_test(test_frame_http_text__knows_safe_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
