/*
 * tests/unit/frame/test_http_guard.c: the guard by itself, without llhttp behind it: every byte in every place of a line.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/util.h"
#include "frame/http_guard.h"
#include "support/http_trace.h"

static int first_line(bool request, const char *line, size_t n) {
    ew__http_guard guard = {.request = request};
    return ew__http_guard_first_line(&guard, line, n, &http_trace_limits);
}

static int field_line(const char *line, size_t n) {
    ew__http_guard guard = {.request = true, .minor = 1};
    return ew__http_guard_field_line(&guard, line, n, &http_trace_limits);
}

/* What may stand in a method or field name, said apart from the table under test. */
static bool is_token(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static void test_frame_guard__every_byte_of_a_field(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char name[] = "Xa-b: value";
        name[2] = (char)c;
        assert_int_equal(field_line(name, sizeof(name) - 1) == 0, is_token(c) || c == ':');
        for (size_t at = 0; at < 20; at++) {
            char value[] = "X: 01234567890123456";
            assert_int_equal(sizeof(value) - 1, 20);
            if (at >= 2) {
                value[at] = (char)c;
                assert_int_equal(field_line(value, 20) == 0, c == '\t' || (c >= 0x20 && c != 0x7f));
            }
        }
    }
}

static void test_frame_guard__two_bad_bytes_do_not_hide_each_other(void **state) {
    (void)state;
    static const char fillers[] = {'a', '\t', '\x80', '\xff', ' ', '~'};
    for (size_t f = 0; f < sizeof(fillers); f++) {
        for (size_t n = 0; n < 40; n++) {
            char line[64] = "X:";
            memset(line + 2, fillers[f], n);
            assert_int_equal(field_line(line, n + 2), 0);
            for (size_t at = 0; at < n; at++) {
                line[2 + at] = at % 2 == 0 ? '\x1f' : '\x7f';
                assert_int_equal(field_line(line, n + 2), 400);
                line[2 + at] = fillers[f];
            }
        }
    }
}

static void test_frame_guard__every_byte_of_a_request_line(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char method[] = "GXT / HTTP/1.1", target[] = "GET /x/y HTTP/1.1", version[] = "GET / HTTP/1.1";
        method[1] = (char)c;
        assert_int_equal(first_line(true, method, sizeof(method) - 1) == 0, is_token(c));
        target[5] = (char)c;
        assert_int_equal(first_line(true, target, sizeof(target) - 1) == 0, c > 0x20 && c < 0x7f && c != '#');
        version[13] = (char)c;
        assert_int_equal(first_line(true, version, sizeof(version) - 1) == 0, c == '0' || c == '1');
        assert_int_equal(first_line(true, version, sizeof(version) - 1) == 505, c >= '2' && c <= '9');
    }
}

static void test_frame_guard__status_lines(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int status;
    } cases[] = {
        {"HTTP/1.1 200 OK", 0},
        {"HTTP/1.0 999 ", 0},
        {"HTTP/1.1 404", 0},
        {"HTTP/1.1 200 a\tb \x80", 0},
        {"HTTP/1.1 20", 400},
        {"HTTP/1.1 099 x", 400},
        {"HTTP/1.1 2x0 x", 400},
        {"HTTP/1.1 200x", 400},
        {"HTTP/1.1\t200 x", 400},
        {"HTTP/1.1 ", 400},
        {"HTTP/1.1", 400},
        {"HTTP/1", 400},
        {"", 400},
        {"HTTP/3.0 200 OK", 505},
        {"HTTP/1.1 200 \x7f", 400},
        {"http/1.1 200 OK", 400},
        {"HTTP/1.1  200 OK", 400},
        {"HTTP/1.11 200 OK", 400},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(first_line(false, cases[i].line, strlen(cases[i].line)), cases[i].status);
    }
}

static void test_frame_guard__hosts(void **state) {
    (void)state;
    static const struct {
        const char *value;
        bool sane;
    } cases[] = {
        {"localhost", true},
        {"a.b-c_d~:80", true},
        {"127.0.0.1:65535", true},
        {"[::1]", true},
        {"[::ffff:1.2.3.4]:1", true},
        {"  a  ", true},
        {"", false},
        {"a:65536", false},
        {"a:", false},
        {"a:b", false},
        {":80", false},
        {"[::1", false},
        {"[]", false},
        {"[::1]x", false},
        {"[::g]", false},
        {"a,b", false},
        {"a b", false},
        {"u@a", false},
        {"a/b", false},
        {"a?b", false},
        {"a:1:2", false},
        {"a%20", false},
        {"\xc3\xa9", false},
        {"a:000000080", false},
        {"[fe80::1%eth0]", false},
        {"a\\b", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[64] = "hOsT:";
        memcpy(line + 5, cases[i].value, strlen(cases[i].value) + 1);
        assert_int_equal(field_line(line, strlen(line)), cases[i].sane ? 0 : 400);
    }
}

static void test_frame_guard__lengths(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int64_t length; /* -1: refused */
    } cases[] = {
        {"0", 0},
        {"007", 7},
        {" \t12\t", 12},
        {"9223372036854775806", INT64_MAX - 1},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", -1},
        {"18446744073709551616", -1},
        {"", -1},
        {"1 2", -1},
        {"+1", -1},
        {"1.0", -1},
        {"1e1", -1},
        {"1,1", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[64] = "Content-Length:";
        memcpy(line + 15, cases[i].value, strlen(cases[i].value) + 1);
        ew__http_guard guard = {.request = true, .minor = 1};
        int status = ew__http_guard_field_line(&guard, line, strlen(line), &http_trace_limits);
        assert_int_equal(status, cases[i].length < 0 ? 400 : 0);
        assert_true(status != 0 || guard.length == (uint64_t)cases[i].length);
    }
}

static void test_frame_guard__authority_of_absolute_targets(void **state) {
    (void)state;
    ew_str none = {NULL, 0};
    assert_true(ew__http_guard_authority(EW_STR("/a"), EW_STR("b")));
    assert_true(ew__http_guard_authority(EW_STR("http://LocalHost:1/a"), EW_STR("localhost:1")));
    assert_true(ew__http_guard_authority(EW_STR("https://a?x"), EW_STR("a")));
    assert_true(ew__http_guard_authority(EW_STR("http://a"), none));
    assert_false(ew__http_guard_authority(EW_STR("http://a/"), EW_STR("b")));
    assert_false(ew__http_guard_authority(EW_STR("http://a:80/"), EW_STR("a")));
    assert_false(ew__http_guard_authority(EW_STR("http://u@a/"), EW_STR("a")));
    assert_false(ew__http_guard_authority(EW_STR("http:///x"), none));
    assert_false(ew__http_guard_authority(EW_STR("http://u@a/"), none));
}

/* Two bytes of framing in all combinations after each legal beginning: accepted are only the ones listed. */
static void test_frame_guard__chunk_ends(void **state) {
    (void)state;
    static const char *const starts[] = {"3",   "3\r\nabc", "3\r\nabc\r\n0", "3\r\nabc\r\n0\r\n",
                                         "3;a", "3;a=b",    "3;a=\"b\""};
    for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (int c = 0; c < 256; c++) {
            for (int d = 0; d < 256; d++) {
                char bytes[32];
                size_t n = strlen(starts[s]), at = 0;
                memcpy(bytes, starts[s], n);
                bytes[n] = (char)c;
                bytes[n + 1] = (char)d;
                ew__http_guard guard = {.request = true};
                ew__http_guard_chunks_begin(&guard);
                int status = 0;
                while (status == 0 && at < n + 2 && !ew__http_guard_chunks_over(&guard)) {
                    size_t used = 0;
                    status = ew__http_guard_chunks(&guard, bytes + at, n + 2 - at, &http_trace_limits, &used);
                    at += used;
                }
                if (c == '\r' || c == '\n' || d == '\n') {
                    assert_int_equal(status == 0, c == '\r' && d == '\n');
                }
            }
        }
    }
}

/* A chunk that is taken whole is what the guard finds step by step, and one byte less of it is not taken. */
static void test_frame_guard__whole_chunks(void **state) {
    (void)state;
    static const char *const good[] = {"1\r\na\r\n", "5\r\n\r\n\r\n1\r\n", "0A\r\n0123456789\r\n",
                                       "000b\r\n0123456789a\r\n"};
    static const char *const others[] = {"0\r\n\r\n",
                                         "00001\r\na\r\n",
                                         "1;a\r\na\r\n",
                                         "1\na\r\n",
                                         "1\r\naa\r\n",
                                         "2\r\na\r\n",
                                         "1\r\na\n\n",
                                         " 1\r\na\r\n",
                                         "\r\na\r\n",
                                         "g\r\na\r\n",
                                         "0000\r\na\r\n",
                                         "-1\r\na\r\n",
                                         ""};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ew__http_guard guard = {.request = true};
        ew_str data;
        size_t n = strlen(good[i]), used = 0;
        ew__http_guard_chunks_begin(&guard);
        assert_int_equal(ew__http_guard_whole_chunk(&guard, good[i], n - 1, &data), 0);
        assert_int_equal(ew__http_guard_whole_chunk(&guard, good[i], n, &data), n);
        assert_int_equal(ew__http_guard_chunks(&guard, good[i], n, &http_trace_limits, &used), 0);
        assert_true(ew__http_guard_behind_data(&guard));
        assert_int_equal(used, n - 2);
        assert_true(data.ptr + data.len == good[i] + used);
        assert_int_equal(ew__http_guard_whole_chunk(&guard, good[i], n, &data), 0); /* not between two chunks */
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ew__http_guard guard = {.request = true};
        ew_str data;
        ew__http_guard_chunks_begin(&guard);
        assert_int_equal(ew__http_guard_whole_chunk(&guard, others[i], strlen(others[i]), &data), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_guard__every_byte_of_a_field),
        cmocka_unit_test(test_frame_guard__two_bad_bytes_do_not_hide_each_other),
        cmocka_unit_test(test_frame_guard__every_byte_of_a_request_line),
        cmocka_unit_test(test_frame_guard__status_lines),
        cmocka_unit_test(test_frame_guard__hosts),
        cmocka_unit_test(test_frame_guard__lengths),
        cmocka_unit_test(test_frame_guard__authority_of_absolute_targets),
        cmocka_unit_test(test_frame_guard__chunk_ends),
        cmocka_unit_test(test_frame_guard__whole_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
