/*
 * tests/unit/frame/test_known_heads.c: heads that are recognised instead of read: what comes out must be what a reader
 * says that has never seen any.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/http_trace.h"

#define REQUEST(host, more)                                                                                            \
    "POST /echo?a=1 HTTP/1.1\r\nHost: " host "\r\n" more "Accept: application/json\r\nContent-Length: "
#define TRACE(hex) "traceparent: 00-0123456789abcdef0123456789abc" hex "-0123456789abc" hex "-01\r\n"
#define ANSWER(hex, second)                                                                                            \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-genkit-trace-id: 0123456789abcdef0123456789abc" hex        \
    "\r\nEmpty:\r\nDate: Sun, 06 Nov 1994 08:49:" second " GMT\r\nPadded:  \tx" hex " \t\r\n"
#define BODY "{\"data\":\"0123456789012345678901234567890\"}" /* 42 bytes; what is left of it is no message */

/* Three that differ in the values that vary from call to call: by the third it is known what varies. */
typedef struct family {
    const char *name;
    const char *head[3];
    const char *body;
    bool response;
} family;

static const family families[] = {
    {"request",
     {REQUEST("a:1", TRACE("def")) "42\r\n\r\n", REQUEST("a:1", TRACE("012")) "41\r\n\r\n",
      REQUEST("a:1", TRACE("9f9")) "39\r\n\r\n"},
     BODY,
     false},
    {"request without a body",
     {"GET / HTTP/1.1\r\nHost: a\r\n" TRACE("def") "\r\n", "GET / HTTP/1.1\r\nHost: a\r\n" TRACE("012") "\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n" TRACE("9f9") "\r\n"},
     "GET /next HTTP/1.1\r\nHost: a\r\n\r\n",
     false},
    {"answer",
     {ANSWER("def", "37") "Content-Length: 42\r\n\r\n", ANSWER("012", "38") "Content-Length: 41\r\n\r\n",
      ANSWER("9f9", "39") "Content-Length: 39\r\n\r\n"},
     BODY,
     true},
    {"streamed answer",
     {ANSWER("def", "37") "Transfer-Encoding: chunked\r\n\r\n",
      ANSWER("012", "38") "Transfer-Encoding: chunked\r\n\r\n",
      ANSWER("9f9", "39") "Transfer-Encoding: chunked\r\n\r\n"},
     "3\r\nabc\r\n5;x=y\r\n01234\r\n0\r\nTrailer: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
     true},
    {"answer without a body",
     {"HTTP/1.1 304 Not Modified\r\nETag: ab\r\nContent-Length: 42\r\n\r\n",
      "HTTP/1.1 304 Not Modified\r\nETag: cd\r\nContent-Length: 42\r\n\r\n",
      "HTTP/1.1 304 Not Modified\r\nETag: ef\r\nContent-Length: 42\r\n\r\n"},
     "HTTP/1.1 304 Not Modified\r\nETag: ef\r\nContent-Length: 43\r\n\r\n",
     true},
};

static void learn(const family *f, ew__http1_scratch *scratch, const ew__http1_limits *limits) {
    for (size_t i = 0; i < 3; i++) {
        http_trace t;
        http_trace_how how = {.response = f->response, .scratch = scratch, .limits = limits};
        http_trace_run(&t, &how, f->head[i], strlen(f->head[i]));
        assert_int_equal(t.heads, 1);
        http_trace_done(&t);
    }
}

/* A reader that has learnt and one that has not see the same. */
static void compare(const family *f, const ew__http1_scratch *learnt, const char *bytes, size_t n) {
    static ew__http1_scratch scratch;
    http_trace fast, slow;
    http_trace_how how = {.response = f->response, .eof = true};
    http_trace_run(&slow, &how, bytes, n);
    scratch = *learnt;
    how.scratch = &scratch;
    http_trace_run(&fast, &how, bytes, n);
    if (fast.text_len != slow.text_len || memcmp(fast.text, slow.text, slow.text_len) != 0 ||
        fast.body_len != slow.body_len || memcmp(fast.body, slow.body, slow.body_len) != 0 ||
        fast.status != slow.status || fast.closed != slow.closed) {
        fail_msg("%s: %.*s\nlearnt:\n%s\nnot learnt:\n%s", f->name, (int)n, bytes, fast.text, slow.text);
    }
    http_trace_done(&fast);
    http_trace_done(&slow);
}

static size_t write_message(const family *f, size_t head, char *out) {
    size_t n = strlen(f->head[head]), m = strlen(f->body);
    memcpy(out, f->head[head], n);
    memcpy(out + n, f->body, m);
    return n + m;
}

/* Recognised is what needs no limit any more: by a reader whose limits let no field pass. */
static bool is_recognised(const family *f, size_t taught, const char *head) {
    ew__http1_scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    ew__http1_limits limits = http_trace_limits;
    for (size_t i = 0; i < taught; i++) {
        http_trace t;
        http_trace_how how = {.response = f->response, .scratch = scratch, .limits = &limits};
        http_trace_run(&t, &how, f->head[i], strlen(f->head[i]));
        http_trace_done(&t);
    }
    limits.head_fields = 0;
    http_trace t;
    http_trace_how how = {.response = f->response, .scratch = scratch, .limits = &limits};
    http_trace_run(&t, &how, head, strlen(head));
    bool known = t.heads == 1 && !t.failed;
    http_trace_done(&t);
    free(scratch);
    return known;
}

static void test_frame_known_heads__are_recognised(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        assert_false(is_recognised(f, 0, f->head[0]));
        assert_true(is_recognised(f, 1, f->head[0]));
        assert_false(is_recognised(f, 1, f->head[1])); /* nothing is known to vary yet */
        assert_true(is_recognised(f, 2, f->head[0]));
        assert_true(is_recognised(f, 2, f->head[2]));
    }
}

/* Values that say how a message is to be read never vary; nor do names, targets and the status. */
static void test_frame_known_heads__vary_in_nothing_that_counts(void **state) {
    (void)state;
    static const family fixed[] = {
        {.name = "host",
         .head = {REQUEST("a:1", "") "42\r\n\r\n", REQUEST("b:1", "") "42\r\n\r\n", REQUEST("c:1", "") "42\r\n\r\n"}},
        {.name = "expect",
         .head = {REQUEST("a", "Expect: 100-continue\r\n") "42\r\n\r\n",
                  REQUEST("a", "Expect: 200-continue\r\n") "42\r\n\r\n",
                  REQUEST("a", "Expect: 300-continue\r\n") "42\r\n\r\n"}},
        {.name = "connection",
         .head = {REQUEST("a", "Connection: abcde\r\n") "42\r\n\r\n",
                  REQUEST("a", "Connection: bcdef\r\n") "42\r\n\r\n",
                  REQUEST("a", "Connection: close\r\n") "42\r\n\r\n"}},
        {.name = "proxy-connection",
         .head = {REQUEST("a", "Proxy-Connection: abcde\r\n") "42\r\n\r\n",
                  REQUEST("a", "Proxy-Connection: bcdef\r\n") "42\r\n\r\n",
                  REQUEST("a", "Proxy-Connection: close\r\n") "42\r\n\r\n"}},
        {.name = "upgrade",
         .head = {REQUEST("a", "Upgrade: a\r\n") "42\r\n\r\n", REQUEST("a", "Upgrade: b\r\n") "42\r\n\r\n",
                  REQUEST("a", "Upgrade: c\r\n") "42\r\n\r\n"}},
        {.name = "name",
         .head = {REQUEST("a", "x: 1\r\n") "42\r\n\r\n", REQUEST("a", "y: 1\r\n") "42\r\n\r\n",
                  REQUEST("a", "z: 1\r\n") "42\r\n\r\n"}},
        {.name = "no length to none",
         .head = {REQUEST("a", "") "0\r\n\r\n", REQUEST("a", "") "0\r\n\r\n", REQUEST("a", "") "9\r\n\r\n"}},
        {.name = "a length to none",
         .head = {REQUEST("a", "") "8\r\n\r\n", REQUEST("a", "") "7\r\n\r\n", REQUEST("a", "") "0\r\n\r\n"}},
        {.name = "target",
         .head = {"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /b HTTP/1.1\r\nHost: a\r\n\r\n",
                  "GET /c HTTP/1.1\r\nHost: a\r\n\r\n"}},
        {.name = "status",
         .head = {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", "HTTP/1.1 201 OK\r\nContent-Length: 1\r\n\r\n",
                  "HTTP/1.1 204 OK\r\nContent-Length: 1\r\n\r\n"},
         .response = true},
        {.name = "no body's length",
         .head = {"HTTP/1.1 304 OK\r\nContent-Length: 1\r\n\r\n", "HTTP/1.1 304 OK\r\nContent-Length: 2\r\n\r\n",
                  "HTTP/1.1 304 OK\r\nContent-Length: 3\r\n\r\n"},
         .response = true},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (is_recognised(&fixed[i], 2, fixed[i].head[2])) {
            fail_msg("%s was taken for one that does not count", fixed[i].name);
        }
    }
}

static void test_frame_known_heads__are_read_alike_when_one_byte_is_another(void **state) {
    (void)state;
    char text[1024];
    ew__http1_scratch *scratch = malloc(sizeof *scratch);
    assert_non_null(scratch);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        memset(scratch, 0, sizeof *scratch);
        learn(f, scratch, NULL);
        size_t n = write_message(f, 2, text);
        for (size_t at = 0; at < strlen(f->head[2]); at++) {
            char was = text[at];
            for (int b = 0; b < 256; b++) {
                text[at] = (char)b;
                compare(f, scratch, text, n);
            }
            text[at] = was;
            memmove(text + at, text + at + 1, n - at - 1); /* without it */
            compare(f, scratch, text, n - 1);
            n = write_message(f, 2, text);
            memmove(text + at + 1, text + at, n - at); /* with one more */
            compare(f, scratch, text, n + 1);
            n = write_message(f, 2, text);
            compare(f, scratch, text, at); /* nothing behind it */
        }
    }
    free(scratch);
}

/* Also by a reader of the other kind: an answer is no request. */
static void test_frame_known_heads__belong_to_one_kind_of_reader(void **state) {
    (void)state;
    ew__http1_scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        learn(&families[i], scratch, NULL);
    }
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        family other = families[i];
        other.response = !other.response;
        compare(&other, scratch, other.head[0], strlen(other.head[0]));
    }
    http_trace t; /* an answer to HEAD has no body, whatever was learnt of its head */
    http_trace_how how = {.response = true, .no_body = true, .scratch = scratch};
    http_trace_run(&t, &how, families[2].head[0], strlen(families[2].head[0]));
    assert_int_equal(t.ends, 1);
    http_trace_done(&t);
    free(scratch);
}

/* Heads that never come again do not push out those that do. */
static void test_frame_known_heads__stay_while_they_are_of_use(void **state) {
    (void)state;
    ew__http1_scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    const family *f = &families[0];
    ew__http1_limits limits = http_trace_limits;
    http_trace_how how = {.scratch = scratch, .limits = &limits};
    learn(f, scratch, &limits);
    for (int i = 0; i < 100; i++) {
        char once[64];
        http_trace t;
        int n = snprintf(once, sizeof once, "GET /once/%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
        http_trace_run(&t, &how, once, (size_t)n);
        assert_int_equal(t.ends, 1);
        http_trace_done(&t);
        limits.head_fields = 0;
        http_trace_run(&t, &how, f->head[i % 3], strlen(f->head[i % 3]));
        assert_int_equal(t.heads, 1);
        http_trace_done(&t);
        limits.head_fields = http_trace_limits.head_fields;
    }
    free(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_known_heads__are_recognised),
        cmocka_unit_test(test_frame_known_heads__vary_in_nothing_that_counts),
        cmocka_unit_test(test_frame_known_heads__are_read_alike_when_one_byte_is_another),
        cmocka_unit_test(test_frame_known_heads__belong_to_one_kind_of_reader),
        cmocka_unit_test(test_frame_known_heads__stay_while_they_are_of_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
