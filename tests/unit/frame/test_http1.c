/*
 * tests/unit/frame/test_http1.c: the HTTP/1 reader: events, limits, lifetimes, memory.
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

#include "base/util.h"
#include "support/fail_env.h"
#include "support/http_trace.h"

#define POST_HEAD "POST /x HTTP/1.1\r\nHost: localhost\r\n"
#define CHUNKED_HEAD POST_HEAD "Transfer-Encoding: chunked\r\n\r\n"

/* Runs `bytes` whole and in every cut; all must give `text`. */
static void expect(const http_trace_how *how, const char *bytes, const char *text) {
    http_trace t;
    http_trace_run(&t, how, bytes, strlen(bytes));
    assert_string_equal(t.text, text);
    http_trace_same(&t, how, bytes, bytes, strlen(bytes));
    http_trace_done(&t);
}

static void expect_refused(const http_trace_how *how, const char *bytes, int status) {
    http_trace t;
    http_trace_run(&t, how, bytes, strlen(bytes));
    if (!t.failed || t.status != status || t.heads != 0) {
        print_error("%s\ngives\n%s\n", bytes, t.text);
        fail();
    }
    assert_true(strlen(t.why) > 0);
    http_trace_same(&t, how, bytes, bytes, strlen(bytes));
    http_trace_done(&t);
}

static const http_trace_how request, response = {.response = true};

/* ---- requests ---- */

static void test_frame_http1__reads_a_post(void **state) {
    (void)state;
    expect(&request,
           "POST /flow/echo?stream=true HTTP/1.1\r\nHost: 127.0.0.1:3400\r\nX:\r\nAccept: \t a, b "
           "\t\r\nContent-Length: 5\r\n\r\nhello",
           "head 3 /flow/echo?stream=true 0 1.1 keep length 5\nHost=127.0.0.1:3400\nX=\nAccept=a, "
           "b\nContent-Length=5\nbody hello\nend\n");
}

static void test_frame_http1__reads_one_after_the_other(void **state) {
    (void)state;
    expect(&request,
           "GET /a HTTP/1.1\r\nHost: a\r\n\r\n" POST_HEAD
           "content-length: 2\r\n\r\nhi\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b "
           "HTTP/1.1\r\nHost: a\r\n\r\nDELETE /c HTTP/1.1\r\nHost: a\r\n\r\nPUT /d HTTP/1.1\r\nHost: a\r\n\r\n",
           "head 1 /a 0 1.1 keep no length\nHost=a\nend\n"
           "head 3 /x 0 1.1 keep length 2\nHost=localhost\ncontent-length=2\nbody hi\nend\n"
           "head 4 * 0 1.1 keep no length\nHost=a\nend\nhead 2 /b 0 1.1 keep no length\nHost=a\nend\n"
           "head 5 /c 0 1.1 keep no length\nHost=a\nend\nhead 0 /d 0 1.1 keep no length\nHost=a\nend\n");
}

static void test_frame_http1__reads_chunks(void **state) {
    (void)state;
    expect(
        &request,
        CHUNKED_HEAD "5\r\nhello\r\n00A;n;q=\"a b\"\r\n 0123456 8\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "head 3 /x 0 1.1 keep chunked no length\nHost=localhost\nTransfer-Encoding=chunked\nbody hello 0123456 8\nend\n"
        "head 1 / 0 1.1 keep no length\nHost=a\nend\n");
    expect(&request,
           CHUNKED_HEAD
           "1\r\na\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\nConnection: close\r\nY:\r\n\r\n",
           "head 3 /x 0 1.1 keep chunked no length\nHost=localhost\nTransfer-Encoding=chunked\nbody a\nend\n");
    expect(&request, CHUNKED_HEAD "2;a=b;c=\"d;\\\"\";e\r\nab\r\n1;f;g;h=i\r\nc\r\n0;j=k;l=m\r\n\r\n",
           "head 3 /x 0 1.1 keep chunked no length\nHost=localhost\nTransfer-Encoding=chunked\nbody abc\nend\n");
    expect(&request, POST_HEAD "transfer-encoding: \tCHUNKED \r\n\r\n0\r\n\r\n",
           "head 3 /x 0 1.1 keep chunked no length\nHost=localhost\ntransfer-encoding=CHUNKED\nend\n");
}

static void test_frame_http1__refuses_bad_chunks(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "\r\n",
        "g\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello",
        "+5\r\n",
        "0x5\r\n",
        "5\nhello",
        "5\r\nhello0\r\n",
        "5\r\nhello\n0",
        "5\rhello",
        "5;\r\nhello",
        "5;a=\r\n",
        "5;=b\r\n",
        "5;a\x01=b\r\n",
        "5;a=\"b\r\n",
        "5;a=\"b\"c",
        "5;a b\r\n",
        "5;a\nb\r\n",
        "8000000000000000\r\n",
        "ffffffffffffffff\r\n",
        "00000000000000005\r\n",
        "10000000000000000\r\n",
        "0\r\n: x\r\n",
        "0\r\n a: b\r\n",
        "0\r\na b: c\r\n",
        "0\r\na: b\nc: d\r\n",
        "0\r\na: b\rc",
        "0\r\n\rX",
        "0\r\na\r\n\r\n",
        "5_\r\n",
        "-1\r\n",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        char bytes[256];
        http_trace t;
        (void)snprintf(bytes, sizeof(bytes), CHUNKED_HEAD "%s", bodies[i]);
        http_trace_run(&t, &request, bytes, strlen(bytes));
        if (!t.failed || t.status != 400 || t.ends != 0) {
            print_error("%s\ngives\n%s\n", bytes, t.text);
            fail();
        }
        http_trace_same(&t, &request, bodies[i], bytes, strlen(bytes));
        http_trace_done(&t);
    }
}

static void test_frame_http1__knows_when_the_connection_ends(void **state) {
    (void)state;
    static const char after[] = "\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char *const heads[] = {
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, CLOSE\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\t\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: ,,\tclose \t,x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        char bytes[256];
        http_trace t;
        (void)snprintf(bytes, sizeof(bytes), "%s%s", heads[i], after);
        http_trace_run(&t, &request, bytes, strlen(bytes));
        assert_int_equal(t.ends, 1);
        assert_true(t.closed && !t.failed);
        http_trace_same(&t, &request, heads[i], bytes, strlen(bytes));
        http_trace_done(&t);
    }
    expect(&request, "GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
           "head 1 /a 0 1.0 keep no length\nConnection=Keep-Alive\nend\nhead 1 /b 0 1.0 no length\nend\n");
}

static void test_frame_http1__tells_expect_and_upgrade(void **state) {
    (void)state;
    expect(&request, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 0\r\n\r\n",
           "head 3 / 0 1.1 keep expect length 0\nHost=a\nExpect=100-Continue\nContent-Length=0\nend\n");
    expect(&request, "POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
           "head 3 / 0 1.0 no length\nExpect=100-continue\nend\n");
    http_trace_how stop = {.upgrade = true};
    expect(&stop,
           "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x85",
           "head 1 /ws 0 1.1 keep upgrade no length\nHost=a\nConnection=keep-alive, Upgrade\nUpgrade=websocket\nend\n");
    /* An owner that does not switch reads on. */
    expect(
        &request,
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "head 1 /ws 0 1.1 keep upgrade no length\nHost=a\nConnection=Upgrade\nUpgrade=h2c\nend\n"
        "head 1 / 0 1.1 keep no length\nHost=a\nend\n");
}

static void test_frame_http1__leaves_what_follows_an_upgrade(void **state) {
    (void)state;
    static const char bytes[] =
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x80mask";
    ew__http1_scratch scratch = {0};
    ew__http1 *http = malloc(ew__http1_size());
    assert_non_null(http);
    ew__http1_init(http, ew_env_default(), &http_trace_limits, true, &scratch);
    assert_true(ew__http1_idle(http));
    assert_int_equal(ew__http1_feed(http, bytes, 10), EW_OK);
    assert_int_equal(ew__http1_next(http), EW__HTTP_MORE);
    assert_false(ew__http1_idle(http));
    assert_int_equal(ew__http1_feed(http, bytes + 10, sizeof(bytes) - 11), EW_OK);
    assert_int_equal(ew__http1_next(http), EW__HTTP_HEAD_DONE);
    assert_int_equal(ew__http1_feed(http, bytes, 1), EW_EINVAL);
    assert_int_equal(ew__http1_next(http), EW__HTTP_END);
    assert_int_equal(ew__http1_unread(http), 6);
    ew__http1_done(http);
    free(http);
}

static void test_frame_http1__refuses_at_once(void **state) {
    (void)state;
    /* No end of the head is in sight: the answer may not wait for it. */
    static const char *const starts[] = {
        "\x16\x03\x01",
        "{\"a\"",
        "\n",
        "\r\r",
        "\r\n\r",
        "\r\n\n",
        " GET",
        "get / HTTP/1.1",
        "\x80",
        "GET / HTTP/1.1\n",
        "GET / HTTP/1.1\rH",
        "GET / HTTP/1.1\r\n H",
        "GET / HTTP/1.1\r\n\tH",
        "GET / HTTP/1.1\r\n:",
        "GET / HTTP/1.1\r\n\rX",
        "GET / HTTP/1.1\r\nHost: a\r\r",
        "GET / HTTP/1.1\r\nHost: a\nb",
        "GET /x\r\n",
        "GET / HTTP/1.1\r\nHost: a@b\r\n",
    };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        expect_refused(&request, starts[i], 400);
    }
    http_trace t;
    http_trace_run(&t, &request, "\0", 1);
    assert_true(t.failed && t.status == 400);
    http_trace_done(&t);
}

static void test_frame_http1__refuses_heads(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        int status;
    } cases[] = {
        {"GET / HTTP/2.0\r\n", 505},
        {"GET / HTTP/1.2\r\n", 505},
        {"GET / HTTP/0.9\r\n", 505},
        {"GET /\rx HTTP/2.0\r\n", 400},
        {"GET / HTTP/1.10\r\n", 400},
        {"GET / http/1.1\r\n", 400},
        {"GET  / HTTP/1.1\r\n", 400},
        {"GET /  HTTP/1.1\r\n", 400},
        {"GET / HTTP/1.1 \r\n", 400},
        {"GET /a#b HTTP/1.1\r\n", 400},
        {"GET /\x80 HTTP/1.1\r\n", 400},
        {"GET /\x7f HTTP/1.1\r\n", 400},
        {"GET * HTTP/1.1\r\n", 400},
        {"GET x HTTP/1.1\r\n", 400},
        {"GET ftp://a/ HTTP/1.1\r\n", 400},
        {"G(T / HTTP/1.1\r\n", 400},
        {"CONNECT a:1 HTTP/1.1\r\n", 501},
        {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n", 400},
        {"GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n", 400},
        {"GET / HTTP/1.1\r\nHost:\r\n", 400},
        {"GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http://u@a/ HTTP/1.0\r\n\r\n", 400},
        {POST_HEAD "Content-Length: 1\r\nContent-Length: 1\r\n", 400},
        {POST_HEAD "Content-Length: 9223372036854775808\r\n", 400},
        {POST_HEAD "Content-Length: 1, 1\r\n", 400},
        {POST_HEAD "Content-Length: -1\r\n", 400},
        {POST_HEAD "Content-Length: 0x1\r\n", 400},
        {POST_HEAD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400},
        {POST_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", 400},
        {POST_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
        {POST_HEAD "Transfer-Encoding: gzip, chunked\r\n", 501},
        {POST_HEAD "Transfer-Encoding: ,chunked\r\n", 501},
        {POST_HEAD "Transfer-Encoding:\r\n", 501},
        {POST_HEAD "Transfer-Encoding: \x0b"
                   "chunked\r\n",
         400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400},
        {POST_HEAD "A : b\r\n", 400},
        {POST_HEAD "A\r\n", 400},
        {POST_HEAD "A: b\x01\r\n", 400},
        {POST_HEAD "A: b\r\n c\r\n", 400},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_refused(&request, cases[i].bytes, cases[i].status);
    }
}

static void test_frame_http1__waits_for_the_rest(void **state) {
    (void)state;
    expect(&request, "GET / HTTP/1.1\r\nHost: a\r\n\r", "");
    expect(&request, POST_HEAD "Content-Length: 9223372036854775807\r\n\r\nab",
           "head 3 /x 0 1.1 keep length 9223372036854775807\nHost=localhost\nContent-Length=9223372036854775807\nbody "
           "ab\n");
    http_trace_how cut = {.eof = true};
    expect_refused(&cut, "GET / HTTP/1.1\r\nHost: a\r\n\r", 400);
    expect_refused(&cut, "\r", 400);
    expect(&cut, "\r\n", "");
    expect(&cut, "", "");
    expect(&cut, POST_HEAD "Content-Length: 3\r\n\r\nab",
           "head 3 /x 0 1.1 keep length 3\nHost=localhost\nContent-Length=3\nbody ab\nerror 400\n");
    expect(&cut, CHUNKED_HEAD "0\r\n\r",
           "head 3 /x 0 1.1 keep chunked no length\nHost=localhost\nTransfer-Encoding=chunked\nerror 400\n");
}

/* ---- limits ---- */

/* A request of which the named part has n bytes; for free(). */
static char *sized(const char *before, const char *filler, size_t n, const char *after) {
    size_t unit = strlen(filler), head = strlen(before), tail = strlen(after);
    char *bytes = malloc(head + unit * n + tail + 1);
    assert_non_null(bytes);
    memcpy(bytes, before, head);
    for (size_t i = 0; i < n; i++) {
        memcpy(bytes + head + i * unit, filler, unit);
    }
    memcpy(bytes + head + unit * n, after, tail + 1);
    return bytes;
}

/* Feeds the same in one piece and byte by byte. */
static void expect_limit(const ew__http1_limits *limits, char *bytes, int status) {
    for (size_t step = 0; step <= 1; step++) {
        http_trace t;
        http_trace_how how = {.limits = limits, .step = step};
        http_trace_run(&t, &how, bytes, strlen(bytes));
        if (t.failed != (status != 0) || t.status != status || (status == 0 && t.ends != 1)) {
            print_error("%s\ngives %u ends, status %d instead of %d\n", bytes, t.ends, t.status, status);
            fail();
        }
        http_trace_done(&t);
    }
    free(bytes);
}

static void test_frame_http1__head_limit(void **state) {
    (void)state;
    static const ew__http1_limits limits = {
        .head_bytes = 200, .head_fields = 100, .target_bytes = 150, .chunk_extension_bytes = 10};
    static const char before[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    size_t fixed = sizeof(before) - 1 + 4;
    for (size_t n = 199; n <= 201; n++) {
        expect_limit(&limits, sized(before, "x", n - fixed, "\r\n\r\n"), n > 200 ? 431 : 0);
        expect_limit(&limits, sized("\r\nGET / HTTP/1.1\r\nHost: a\r\nX: ", "x", n - fixed, "\r\n\r\n"),
                     n > 200 ? 431 : 0);
    }
}

static void test_frame_http1__head_limit_before_the_end(void **state) {
    (void)state;
    static const ew__http1_limits limits = {
        .head_bytes = 200, .head_fields = 100, .target_bytes = 150, .chunk_extension_bytes = 10};
    /* 201 bytes and no end in sight, or a fault that shows before them. */
    expect_limit(&limits, sized("GET / HTTP/1.1\r\nHost: a\r\nX: ", "x", 173, ""), 431);
    expect_limit(&limits, sized("GET / HTTP/1.1\r\nHost: a\r\nX: \r", "x", 1000, "\r\n\r\n"), 400);
    expect_limit(&limits, sized("GET / HTTP/1.1\r\nHost: a\r\n X: ", "x", 1000, "\r\n\r\n"), 400);
    expect_limit(&limits, sized("GET / HTTP/1.1\r\nHost: a\r\nX: ", "x", 1000, "\r\n\r\n"), 431);
    expect_limit(&limits, sized("GET / HTTP/1.1\r\nHost: a\r\nX: ", "x", 1000, "\n\r\n"), 431);
}

static void test_frame_http1__field_limit(void **state) {
    (void)state;
    static const ew__http1_limits few = {
        .head_bytes = 4096, .head_fields = 5, .target_bytes = 100, .chunk_extension_bytes = 10};
    static const ew__http1_limits many = {
        .head_bytes = 4096, .head_fields = 1000, .target_bytes = 100, .chunk_extension_bytes = 10};
    for (size_t n = 4; n <= 6; n++) {
        expect_limit(&few, sized("GET / HTTP/1.1\r\nHost: a\r\n", "A:b\r\n", n - 1, "\r\n"), n > 5 ? 431 : 0);
        expect_limit(&few, sized("GET / HTTP/1.1\r\nHost: a\r\nA:b\r\nA:b\r\nA:b\r\nA:b\r\n", " A:b\r\n", 1, "\r\n"),
                     400);
    }
    for (size_t n = EW__HTTP_FIELDS_MAX - 1; n <= EW__HTTP_FIELDS_MAX + 1; n++) {
        expect_limit(&many, sized("GET / HTTP/1.1\r\nHost: a\r\n", "A:b\r\n", n - 1, "\r\n"),
                     n > EW__HTTP_FIELDS_MAX ? 431 : 0);
    }
}

static void test_frame_http1__target_limit(void **state) {
    (void)state;
    static const ew__http1_limits limits = {
        .head_bytes = 4096, .head_fields = 5, .target_bytes = 100, .chunk_extension_bytes = 10};
    for (size_t n = 99; n <= 101; n++) {
        expect_limit(&limits, sized("GET /", "x", n - 1, " HTTP/1.1\r\nHost: a\r\n\r\n"), n > 100 ? 414 : 0);
    }
    expect_limit(&limits, sized("GET /", "x", 200, ""), 414);
    expect_limit(&limits, sized("GET /", "x", 200, " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
    expect_limit(&limits, sized("GET /\r", "x", 200, " HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    expect_limit(&limits, sized("", "G", 200, " / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    expect_limit(&limits, sized("", "G", 33, " / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    expect_limit(&limits, sized("", "G", 32, " / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
}

static void test_frame_http1__chunk_limits(void **state) {
    (void)state;
    static const ew__http1_limits limits = {
        .head_bytes = 200, .head_fields = 3, .target_bytes = 100, .chunk_extension_bytes = 10};
    for (size_t n = 9; n <= 11; n++) {
        /* The semicolon counts. */
        expect_limit(&limits, sized(CHUNKED_HEAD "1;", "e", n - 1, "\r\nx\r\n0\r\n\r\n"), n > 10 ? 400 : 0);
        expect_limit(&limits, sized(CHUNKED_HEAD "1;aaaa\r\nx\r\n1;", "e", n - 6, "\r\nx\r\n0\r\n\r\n"),
                     n > 10 ? 400 : 0);
    }
    for (size_t n = 199; n <= 201; n++) {
        expect_limit(&limits, sized(CHUNKED_HEAD "0\r\nX: ", "t", n - 7, "\r\n\r\n"), n > 200 ? 431 : 0);
    }
    for (size_t n = 2; n <= 4; n++) {
        expect_limit(&limits, sized(CHUNKED_HEAD "0\r\n", "T:\r\n", n, "\r\n"), n > 3 ? 431 : 0);
    }
    for (size_t n = 15; n <= 17; n++) {
        expect_limit(&limits, sized(CHUNKED_HEAD "", "0", n, "\r\n\r\n"), n > 16 ? 400 : 0);
    }
}

/* ---- responses ---- */

static void test_frame_http1__reads_answers(void **state) {
    (void)state;
    expect(&response,
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 404\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 "
           "\r\nTransfer-Encoding: "
           "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
           "head 0  200 1.1 keep length 2\nContent-Length=2\nbody hi\nend\nhead 0  404 1.1 keep length "
           "0\ncontent-length=0\nend\n"
           "head 0  500 1.1 keep chunked no length\nTransfer-Encoding=chunked\nbody abc\nend\n");
    expect(&response,
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 "
           "304 x\r\nContent-Length: "
           "10\r\n\r\nHTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
           "head 0  204 1.1 keep no length\nend\nhead 0  304 1.1 keep length 10\nContent-Length=10\nend\n"
           "head 0  200 1.0 keep length 1\nConnection=keep-alive\nContent-Length=1\nbody a\nend\n");
}

static void test_frame_http1__reads_until_the_end(void **state) {
    (void)state;
    http_trace_how eof = {.response = true, .eof = true};
    expect(&response, "HTTP/1.1 200 OK\r\n\r\nall\r\nof it", "head 0  200 1.1 no length\nbody all\r\nof it\n");
    expect(&eof, "HTTP/1.1 200 OK\r\n\r\nall\r\nof it", "head 0  200 1.1 no length\nbody all\r\nof it\nend\n");
    expect(&eof, "HTTP/1.1 200 OK\r\n\r\n", "head 0  200 1.1 no length\nend\n");
    expect(&eof, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
           "head 0  200 1.1 keep length 2\nContent-Length=2\nbody a\nerror 0\n");
    expect(&eof, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
           "head 0  200 1.1 keep length 1\nContent-Length=1\nbody a\nend\n");
    expect(&eof, "HTTP/1.1 200", "error 0\n");
}

static void test_frame_http1__answers_to_head(void **state) {
    (void)state;
    http_trace_how head = {.response = true, .no_body = true};
    expect(&head,
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHTTP/1.1 200 "
           "OK\r\nTransfer-Encoding: chunked\r\n\r\n",
           "head 0  200 1.1 keep length 12\nContent-Length=12\nend\nhead 0  200 1.1 keep chunked no "
           "length\nTransfer-Encoding=chunked\nend\n");
}

static void test_frame_http1__refuses_answers(void **state) {
    (void)state;
    static const char *const cases[] = {
        "X",
        "HTTP/2.0 200 OK\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 099 OK\r\n",
        "HTTP/1.1 200OK\r\n",
        "HTTP/1.1\r\n",
        "HTTP/1.1 200 O\x01K\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n",
        "HTTP/1.1 200 OK\n",
        "HTTP/1.1 200 OK\r\n A: b",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_refused(&response, cases[i], 0);
    }
    /* Announces a body that a 204 cannot have: usable, but not twice. */
    expect(&response, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
           "head 0  204 1.1 length 5\nContent-Length=5\nend\n");
}

/* ---- memory ---- */

static void test_frame_http1__is_small_and_asks_for_nothing(void **state) {
    (void)state;
    static const char bytes[] = POST_HEAD "Content-Length: 2\r\n\r\nhi" CHUNKED_HEAD "2\r\nhi\r\n0\r\n\r\n";
    assert_true(ew__http1_size() <= 400);
    ew__test_env t;
    ew__test_env_init(&t, 1);
    http_trace trace;
    http_trace_how how = {.env = &t.env};
    http_trace_run(&trace, &how, bytes, sizeof(bytes) - 1);
    assert_int_equal(trace.ends, 2);
    assert_int_equal(ew__test_env_allocations(&t), 0);
    http_trace_done(&trace);
}

static void test_frame_http1__gives_memory_back_when_idle(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__http1_scratch scratch = {0};
    ew__http1 *http = malloc(ew__http1_size());
    assert_non_null(http);
    ew__http1_init(http, &t.env, &http_trace_limits, true, &scratch);
    assert_int_equal(ew__http1_feed(http, "GET / HTTP/1.1\r\nHo", 18), EW_OK);
    assert_int_equal(ew__http1_next(http), EW__HTTP_MORE);
    assert_int_equal(ew__http1_feed(http, "st: a\r\n\r\n", 9), EW_OK);
    assert_int_equal(ew__http1_next(http), EW__HTTP_HEAD_DONE);
    assert_int_equal(ew__http1_keep_head(http), EW_OK);
    assert_int_equal(ew__http1_keep_head(http), EW_OK);
    assert_int_equal(ew__test_env_live_blocks(&t), 2);
    memset(&scratch, 0xff, sizeof(scratch));
    assert_int_equal(ew__http1_next(http), EW__HTTP_END);
    uint32_t count = 0;
    assert_true(ew__str_is(ew__http_head_field(ew__http1_head(http), EW_STR("HOST"), &count), EW_STR("a")));
    assert_int_equal(count, 1);
    assert_true(ew__http1_idle(http));
    assert_int_equal(ew__http1_next(http), EW__HTTP_MORE);
    assert_true(ew__http1_idle(http));
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
    ew__http1_done(http);
    free(http);
}

static void test_frame_http1__survives_failing_allocations(void **state) {
    (void)state;
    char *bytes = sized(POST_HEAD "Content-Length: 2\r\nX: ", "x", 2000, "\r\n\r\nhiGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        ew__test_env t;
        ew__test_env_init(&t, 1);
        ew__test_env_fail_at(&t, n, false);
        http_trace trace;
        http_trace_how how = {.env = &t.env, .step = 100, .keep = true};
        http_trace_run(&trace, &how, bytes, strlen(bytes));
        failed = ew__test_env_failed(&t) > 0;
        assert_true(failed ? trace.no_memory || (trace.failed && trace.status == 503) : trace.ends == 2);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        http_trace_done(&trace);
    }
    assert_true(n > 6);
    free(bytes);
}

/* A head that comes again is recognised: what is read must be the same as the first time, and the same as by a reader that never saw it. */
static void test_frame_http1__recognises_heads(void **state) {
    (void)state;
    static const char post[] = "POST /a?x=1 HTTP/1.1\r\nHost: h\r\nEmpty:\r\nContent-Length: 3\r\n\r\nabc";
    static const char get[] = "GET /b HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char longer[] =
        "POST /a?x=1 HTTP/1.1\r\nHost: h\r\nEmpty:\r\nContent-Length: 33\r\n\r\n123456789012345678901234567890123";
    static const char *const row[] = {post, get, post, longer, get, post, longer};
    char all[1024] = "", expected[4096] = "";
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        http_trace one;
        http_trace_how how = {.step = 4096};
        http_trace_run(&one, &how, row[i], strlen(row[i])); /* a fresh scratch: nothing is known */
        assert_false(one.failed);
        strncat(all, row[i], sizeof all - strlen(all) - 1);
        strncat(expected, one.text, sizeof expected - strlen(expected) - 1);
        http_trace_done(&one);
    }
    for (size_t step = 1; step <= 4096; step *= 4) {
        http_trace together;
        http_trace_how how = {.step = step};
        http_trace_run(&together, &how, all, strlen(all));
        assert_false(together.failed);
        assert_int_equal(together.ends, sizeof row / sizeof *row);
        assert_string_equal(together.text, expected);
        http_trace_done(&together);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_http1__recognises_heads),
        cmocka_unit_test(test_frame_http1__reads_a_post),
        cmocka_unit_test(test_frame_http1__reads_one_after_the_other),
        cmocka_unit_test(test_frame_http1__reads_chunks),
        cmocka_unit_test(test_frame_http1__refuses_bad_chunks),
        cmocka_unit_test(test_frame_http1__knows_when_the_connection_ends),
        cmocka_unit_test(test_frame_http1__tells_expect_and_upgrade),
        cmocka_unit_test(test_frame_http1__leaves_what_follows_an_upgrade),
        cmocka_unit_test(test_frame_http1__refuses_at_once),
        cmocka_unit_test(test_frame_http1__refuses_heads),
        cmocka_unit_test(test_frame_http1__waits_for_the_rest),
        cmocka_unit_test(test_frame_http1__head_limit),
        cmocka_unit_test(test_frame_http1__head_limit_before_the_end),
        cmocka_unit_test(test_frame_http1__field_limit),
        cmocka_unit_test(test_frame_http1__target_limit),
        cmocka_unit_test(test_frame_http1__chunk_limits),
        cmocka_unit_test(test_frame_http1__reads_answers),
        cmocka_unit_test(test_frame_http1__reads_until_the_end),
        cmocka_unit_test(test_frame_http1__answers_to_head),
        cmocka_unit_test(test_frame_http1__refuses_answers),
        cmocka_unit_test(test_frame_http1__is_small_and_asks_for_nothing),
        cmocka_unit_test(test_frame_http1__gives_memory_back_when_idle),
        cmocka_unit_test(test_frame_http1__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
