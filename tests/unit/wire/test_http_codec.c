/*
 * tests/unit/wire/test_http_codec.c: the texts of the http wire, both ways.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/fail_env.h"
#include "wire/http/codec.h"
#include "wire/http_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- out queues as text ---- */

static ew__blocks pool;

static char *text_of(ew__out *out) {
    static char text[EW__ROW_MAX * (EW__ROW_CHUNK + 40)];
    size_t n = 0;
    assert_int_equal(out->err, EW_OK);
    while (out->bytes > 0) {
        ew__out_vec vec[1];
        assert_int_equal(ew__out_peek(out, vec, 1), 1);
        assert_true(n + vec[0].len < sizeof text);
        memcpy(text + n, vec[0].ptr, vec[0].len);
        n += vec[0].len;
        ew__out_consume(out, vec[0].len);
    }
    text[n] = '\0';
    return text;
}

static int setup(void **state) {
    (void)state;
    ew__blocks_init(&pool, ew_env_default(), 4);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    ew__blocks_done(&pool);
    return 0;
}

/* ---- heads ---- */

static void test_wire_http__date(void **state) {
    (void)state;
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {{0, "Thu, 01 Jan 1970 00:00:00 GMT"},
                {784111777000, "Sun, 06 Nov 1994 08:49:37 GMT"},
                {951782400999, "Tue, 29 Feb 2000 00:00:00 GMT"},
                {1798761599000, "Thu, 31 Dec 2026 23:59:59 GMT"},
                {4107542400000, "Mon, 01 Mar 2100 00:00:00 GMT"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[30] = {0};
        ew__http_date(rows[i].ms, out);
        assert_string_equal(out, rows[i].text);
    }
}

static void test_wire_http__head(void **state) {
    (void)state;
    ew__out out;
    ew__out_init(&out, &pool);
    ew__trace trace;
    memset(&trace, 'a', sizeof trace);
    memset(trace.span_id, 'b', sizeof trace.span_id);
    ew__http_answer answer = {.status = 200, .trace = &trace, .type = EW_STR("application/json"), .length = 12};
    ew__http_write_head(&out, &answer, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_string_equal(
        text_of(&out),
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-genkit-trace-id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
        "x-genkit-span-id: bbbbbbbbbbbbbbbb\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 12\r\n\r\n");
    ew__http_answer stream = {.status = 503, .extra = EW_STR("Retry-After: 1\r\n"), .close = true, .chunked = true};
    ew__http_write_head(&out, &stream, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_string_equal(text_of(&out), "HTTP/1.1 503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 "
                                       "GMT\r\nRetry-After: 1\r\nConnection: close\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n");
    ew__out_done(&out);
}

static void test_wire_http__block(void **state) {
    (void)state;
    ew__out out;
    ew__out_init(&out, &pool);
    ew__http_write_block(&out, true, EW_STR("data: {\"message\":"), EW_STR("12"), EW_STR("}"));
    assert_string_equal(text_of(&out), "16\r\ndata: {\"message\":12}\n\n\r\n");
    ew__http_write_block(&out, false, EW_STR("data: {\"message\":"), EW_STR("12"), EW_STR("}"));
    assert_string_equal(text_of(&out), "data: {\"message\":12}\n\n");
    for (size_t n = 1990; n < 2060; n++) { /* around the limit of the short way: the same bytes by both */
        char json[2100], expected[2200];
        memset(json, '7', n);
        (void)snprintf(expected, sizeof expected, "%zx\r\nA%.*sZ\n\n\r\n", n + 4, (int)n, json);
        ew__http_write_block(&out, true, EW_STR("A"), ew__str(json, n), EW_STR("Z"));
        assert_string_equal(text_of(&out), expected);
    }
    ew__out_done(&out);
}

/* What is written for a row is the body that the blocks would make, in fewer chunks; and what is read of it is the row. */
static void test_wire_http__rows(void **state) {
    (void)state;
    ew_str row[EW__ROW_MAX], got[EW__ROW_MAX];
    static char json[EW__ROW_CHUNK];
    ew__out out;
    ew__out_init(&out, &pool);
    memset(json, '7', sizeof json);
    json[0] = json[sizeof json - 1] = '"';
    row[0] = EW_STR("{\"i\":1}");
    row[1] = EW_STR("2");
    ew__http_write_row(&out, true, row, 2);
    assert_string_equal(text_of(&out), "30\r\ndata: {\"message\":{\"i\":1}}\n\ndata: {\"message\":2}\n\n\r\n");
    ew__http_write_row(&out, false, row, 2);
    assert_string_equal(text_of(&out), "data: {\"message\":{\"i\":1}}\n\ndata: {\"message\":2}\n\n");
    for (size_t n = 1; n <= EW__ROW_MAX; n++) { /* the longest ones need several chunks of HTTP */
        row[n - 1] = ew__str(json, sizeof json);
        ew__http_write_row(&out, false, row, n);
        size_t len = out.bytes;
        ew_str piece = ew__str(text_of(&out), len);
        assert_int_equal(ew__http_read_row(&piece, got, EW__ROW_MAX), n);
        assert_int_equal(piece.len, 0);
        for (size_t i = 0; i < n; i++)
            assert_true(ew_str_eq(got[i], row[i]));
        ew__http_write_row(&out, true, row, n);
        assert_true(out.bytes > len && out.bytes < len + n * 10);
        ew__out_consume(&out, out.bytes);
    }
    ew__out_done(&out);
}

/* Blocks that are anything else are left, and all behind them. */
static void test_wire_http__reads_rows(void **state) {
    (void)state;
    static const char good[] = "data: {\"message\":[1, \"\\n\"]}\n\n";
    static const char *const others[] = {"data: {\"message\":1}\n",
                                         "data: {\"message\":1}\n\r",
                                         "data: {\"message\": 1}\n\n",
                                         "data:{\"message\":1}\n\n",
                                         "data: {\"result\":1}\n\n",
                                         "data: {\"message\":}\n\n",
                                         "data: {\"message\":\"\xc3\xa4\"}\n\n",
                                         "error: {\"error\":{}}\n\n",
                                         "data: {\"message\":1,\"a\":2}\n\n",
                                         "data: {\"message\":1",
                                         "\n",
                                         ": x\n\n",
                                         "data: {\"message\":01}\n\n",
                                         ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[200];
        ew_str row[3] = {{NULL, 0}}, piece;
        (void)snprintf(text, sizeof text, "%s%s%s", good, good, others[i]);
        piece = ew_str_from(text);
        assert_int_equal(ew__http_read_row(&piece, row, 3), 2);
        assert_true(ew_str_eq(piece, ew_str_from(others[i])));
        assert_true(ew_str_eq(row[0], EW_STR("[1, \"\\n\"]")) && ew_str_eq(row[1], row[0]));
        piece = ew_str_from(text);
        assert_int_equal(ew__http_read_row(&piece, row, 1), 1);
        assert_int_equal(piece.len, strlen(text) - strlen(good));
    }
}

static void test_wire_http__error_body(void **state) {
    (void)state;
    ew__buf out;
    ew__buf_init(&out, ew_env_default(), 1000);
    ew_fault fault = {.status = EW_STATUS_NOT_FOUND, .message = EW_STR("a \"b\"\n"), .details = EW_STR("[1, 2]")};
    assert_int_equal(ew__http_error_body(&out, 404, &fault), EW_OK);
    assert_true(
        ew_str_eq(ew__buf_view(&out),
                  EW_STR("{\"code\":404,\"status\":\"NOT_FOUND\",\"message\":\"a \\\"b\\\"\\n\",\"details\":[1, 2]}")));
    ew__buf_done(&out);
}

/* ---- requests ---- */

static void test_wire_http__envelope(void **state) {
    (void)state;
    static const struct {
        const char *body;
        const char *input; /* NULL: refused */
    } rows[] = {{"{\"data\":{\"a\":1}}", "{\"a\":1}"},
                {" { \"data\" : [ 1 ] , \"x\":2 } ", "[ 1 ]"},
                {"{}", "null"},
                {" { } ", "null"},
                {"{\"init\":{\"a\":1}}", "null"},
                {"{\"init\":1,\"data\":2}", "2"},
                {"{\"name\":\"Ada\",\"data\":2}", "2"},
                {"{\"name\":\"Ada\"}", NULL},
                {"{\"init\":1,\"name\":\"Ada\"}", NULL},
                {"{\"Data\":1}", NULL},
                {"{\"\":1}", NULL},
                {"{\"\\u0064ata\":1}", "1"},
                {"{\"data\":1,\"data\":2}", NULL},
                {"{\"data\":1,\"d\\u0061ta\":2}", NULL},
                {"[]", NULL},
                {"1", NULL},
                {"", NULL},
                {"{\"data\":}", NULL},
                {"{\"data\":1}x", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew_str input = {NULL, 0};
        const char *problem = ew__http_read_envelope(ew_str_from(rows[i].body), &input);
        assert_int_equal(problem == NULL, rows[i].input != NULL);
        if (rows[i].input)
            assert_true(ew_str_eq(input, ew_str_from(rows[i].input)));
    }
}

static void test_wire_http__host_problem(void **state) {
    (void)state;
    static const char *const good[] = {
        "a",   "dev.example", "dev.example:80", "*.example.com",  "*.example.com:65535",
        "a_b", "127.0.0.1",   "[::1]",          "[fd00::1]:3400", "xn--bcher-kva.example"};
    static const char *const bad[] = {"",        "*",        "*:80",    "http://a.example", "a.example/", "a b",
                                      "a:",      "a:0",      "a:080",   "a:65536",          "a:x",        "::1",
                                      "[::1",    "*.",       "a.*.com", "*.*.com",          "user@a.com", "*a.com",
                                      "fd00::1", "b\xc3\xbc"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (ew__http_host_problem(ew_str_from(good[i])))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!ew__http_host_problem(ew_str_from(bad[i])))
            fail_msg("%s", bad[i]);
}

static void test_wire_http__host(void **state) {
    (void)state;
    static const char *const allowed[] = {"dev.example",    "ci.example:9000",
                                          "*.lab.example",  "*.far.test:8443",
                                          "web.test:80",    "tls.test:443",
                                          "[fd00::1]:8080", "*",
                                          "*evil.example",  NULL};
    ew__site site = {.port = 3400, .allow_hosts = allowed};
    static const struct {
        const char *host;
        bool ok, ok_with_port;
    } rows[] = {{"127.0.0.1:3400", true, true},
                {"localhost:3400", true, true},
                {"LocalHost:3400", true, true},
                {"[::1]:3400", true, true},
                {"127.0.0.1", true, false},
                {"localhost", true, false},
                {"[::1]", true, false},
                {"dev.example:3400", true, true},
                {"dev.example", true, true},
                {"ci.example:9000", true, true},
                {"ci.example", false, false},
                {"a.lab.example", true, true},
                {"A.b.LAB.example:3400", true, true},
                {"a.lab.example:3401", false, false},
                {"lab.example", false, false},
                {".lab.example", false, false},
                {"xlab.example", false, false},
                {"a.lab.example.evil", false, false},
                {"a.far.test:8443", true, true},
                {"a.far.test", false, false},
                {"a.far.test:3400", false, false},
                {"far.test:8443", false, false},
                {"web.test", true, true},
                {"web.test:80", true, true},
                {"web.test:3400", false, false},
                {"tls.test", true, true},
                {"[fd00::1]:8080", true, true},
                {"[fd00::1]", false, false},
                {"127.0.0.1:3401", false, false},
                {"localhost:", false, false},
                {"127.0.0.1:03400x", false, false},
                {"evil.example", false, false},
                {"localhost.evil.example:3400", false, false},
                {"", false, false},
                {"127.0.0.1.nip.io:3400", false, false},
                {"[::1", false, false},
                {"127.0.0.2:3400", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (ew__http_host_ok(&site, ew_str_from(rows[i].host), false) != rows[i].ok ||
            ew__http_host_ok(&site, ew_str_from(rows[i].host), true) != rows[i].ok_with_port)
            fail_msg("host %s", rows[i].host);
    }
    ew__site web = {.port = 80};
    assert_true(ew__http_host_ok(&web, EW_STR("localhost"), true));
}

static void test_wire_http__origin(void **state) {
    (void)state;
    ew__site site = {.port = 3400};
    assert_true(ew__http_origin_ok(&site, EW_STR("http://127.0.0.1:3400")));
    assert_true(ew__http_origin_ok(&site, EW_STR("http://localhost:3400")));
    static const char *const bad[] = {"null",
                                      "",
                                      "http://",
                                      "http://127.0.0.1",
                                      "http://127.0.0.1:3401",
                                      "https://127.0.0.1:3400",
                                      "http://evil.example",
                                      "http://localhost:3400.evil.example",
                                      "file://",
                                      "HTTP://evil:3400",
                                      "http://127.0.0.1:3400/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (ew__http_origin_ok(&site, ew_str_from(bad[i])))
            fail_msg("origin %s", bad[i]);
}

static void test_wire_http__types(void **state) {
    (void)state;
    assert_true(ew__http_is_json(EW_STR("application/json")));
    assert_true(ew__http_is_json(EW_STR("Application/JSON ; charset=utf-8")));
    assert_false(ew__http_is_json(EW_STR("")));
    assert_false(ew__http_is_json(EW_STR("text/plain")));
    assert_false(ew__http_is_json(EW_STR("application/json5")));
    assert_false(ew__http_is_json(EW_STR("text/plain; application/json")));
    assert_int_equal(ew__http_accepts(EW_STR("text/event-stream")), EW__ACCEPTS_STREAM);
    assert_int_equal(ew__http_accepts(EW_STR("application/json, Text/Event-Stream;q=0.5")),
                     EW__ACCEPTS_JSON | EW__ACCEPTS_STREAM);
    assert_int_equal(ew__http_accepts(EW_STR("text/html, */*;q=0.1")), EW__ACCEPTS_ANY);
    assert_int_equal(ew__http_accepts(EW_STR("application/json;x=text/event-stream")), EW__ACCEPTS_JSON);
    assert_int_equal(ew__http_accepts(EW_STR("")), 0);
}

static void test_wire_http__request(void **state) {
    (void)state;
    ew__out out;
    ew__out_init(&out, &pool);
    ew__site site = {.authority = EW_STR("127.0.0.1:3400"), .path = EW_STR("/base")};
    static ew_call call;
    call.deadline = EW__NEVER;
    call.key = EW_STR("gr\xc3\xa4t you?#%");
    call.input = EW_STR("[1]");
    memset(&call.trace, 'a', sizeof call.trace);
    call.trace.sampled = true;
    ew__http_write_request(&out, &site, &call, 0);
    assert_string_equal(
        text_of(&out),
        "POST /base/gr%C3%A4t%20you%3F%23%25 HTTP/1.1\r\nHost: 127.0.0.1:3400\r\nUser-Agent: "
        "everywire/" EW_VERSION_STRING
        "\r\ntraceparent: 00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-aaaaaaaaaaaaaaaa-01\r\nContent-Type: application/json\r\n"
        "Accept: application/json\r\nContent-Length: 12\r\n\r\n{\"data\":[1]}");
    call.key = EW_STR("/flow/x/y");
    call.wants_chunks = true;
    call.deadline = 1500000001;
    ew__http_write_request(&out, &site, &call, 0);
    const char *text = text_of(&out);
    assert_non_null(strstr(text, "POST /base/flow/x/y HTTP/1.1\r\n"));
    assert_non_null(strstr(text, "\r\nx-everywire-timeout-ms: 1501\r\n"));
    assert_non_null(strstr(text, "\r\nAccept: text/event-stream\r\n"));
    static char name[3000]; /* with its escapes longer than what is put together in one go */
    memset(name, '%', sizeof name);
    call.key = ew__str(name, sizeof name);
    ew__http_write_request(&out, &site, &call, 0);
    text = text_of(&out);
    const char *end = strstr(text, " HTTP/1.1\r\n");
    assert_true(end && end - text == (ptrdiff_t)(strlen("POST /base/") + 3 * sizeof name));
    assert_non_null(strstr(end, "\r\n\r\n{\"data\":[1]}"));
    call.kind = EW__CALL_LIST;
    ew__http_write_request(&out, &site, &call, UINT64_MAX);
    text = text_of(&out);
    assert_non_null(strstr(text, "GET /base/api/actions HTTP/1.1\r\n"));
    assert_non_null(strstr(text, "\r\nx-everywire-timeout-ms: 0\r\n"));
    ew__out_done(&out);
}

/* ---- answers ---- */

static void test_wire_http__block_meaning(void **state) {
    (void)state;
    static const struct {
        const char *json;
        bool from_error;
        ew__http_meaning meaning;
        const char *payload; /* or message */
        ew_status status;
    } rows[] = {
        {"{\"message\":{\"a\":1}}", false, EW__HTTP_CHUNK, "{\"a\":1}", EW_STATUS_OK},
        {"{\"result\":null}", false, EW__HTTP_RESULT, "null", EW_STATUS_OK},
        {"{}", false, EW__HTTP_NOTHING, "", EW_STATUS_OK},
        {"{\"error\":{\"status\":\"ABORTED\",\"message\":\"a\\nb\"}}", false, EW__HTTP_FAULT, "a\nb",
         EW_STATUS_ABORTED},
        {"{\"error\":{\"status\":\"ABORTED\",\"message\":\"x\"}}", true, EW__HTTP_FAULT, "x", EW_STATUS_ABORTED},
        {"{\"status\":\"NOT_FOUND\",\"message\":\"y\"}", true, EW__HTTP_FAULT, "y", EW_STATUS_NOT_FOUND},
        {"{\"error\":\"bare\"}", false, EW__HTTP_FAULT, "bare", EW_STATUS_UNKNOWN},
        {"{\"error\":{\"status\":\"OK\"}}", false, EW__HTTP_FAULT, "UNKNOWN", EW_STATUS_UNKNOWN},
        {"{\"error\":{\"status\":\"NO_SUCH\"}}", false, EW__HTTP_FAULT, "UNKNOWN", EW_STATUS_UNKNOWN},
        {"{\"message\":1,\"message\":2}", false, EW__HTTP_NONSENSE, "", EW_STATUS_OK},
        {"[]", false, EW__HTTP_NONSENSE, "", EW_STATUS_OK},
        {"{oops}", false, EW__HTTP_NONSENSE, "", EW_STATUS_OK},
        {"", true, EW__HTTP_NONSENSE, "", EW_STATUS_OK}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__arena memory;
        ew__http_said said;
        ew__arena_init(&memory, ew_env_default(), NULL, 0);
        ew__http_read_block(&memory, ew_str_from(rows[i].json), rows[i].from_error, &said);
        assert_int_equal(said.meaning, rows[i].meaning);
        ew_str got = said.meaning == EW__HTTP_FAULT ? said.fault.message : said.payload;
        assert_true(ew_str_eq(got, ew_str_from(rows[i].payload)));
        if (said.meaning == EW__HTTP_FAULT)
            assert_int_equal(said.fault.status, rows[i].status);
        ew__arena_done(&memory);
    }
}

static void test_wire_http__answer_meaning(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *body;
        ew__http_meaning meaning;
        const char *payload; /* or message */
        ew_status status;
    } rows[] = {
        {200, "{\"result\":[1]}", EW__HTTP_RESULT, "[1]", EW_STATUS_OK},
        {200, "{}", EW__HTTP_RESULT, "null", EW_STATUS_OK},
        {200, "hello", EW__HTTP_NONSENSE, "", EW_STATUS_OK},
        {200, "{\"result\":1,\"result\":2}", EW__HTTP_NONSENSE, "", EW_STATUS_OK},
        {200, "{\"error\":{\"status\":\"INTERNAL\",\"message\":\"m\"}}", EW__HTTP_FAULT, "m", EW_STATUS_INTERNAL},
        {404, "{\"code\":404,\"status\":\"NOT_FOUND\",\"message\":\"m\"}", EW__HTTP_FAULT, "m", EW_STATUS_NOT_FOUND},
        {409, "{\"status\":\"ABORTED\",\"message\":\"m\"}", EW__HTTP_FAULT, "m", EW_STATUS_ABORTED},
        {404, "", EW__HTTP_FAULT, "Not Found", EW_STATUS_NOT_FOUND},
        {404, "<html>no</html>", EW__HTTP_FAULT, "Not Found", EW_STATUS_NOT_FOUND},
        {503, "try later\r\nmore", EW__HTTP_FAULT, "try later", EW_STATUS_UNAVAILABLE},
        {401, "{\"error\":\"who?\"}", EW__HTTP_FAULT, "who?", EW_STATUS_UNAUTHENTICATED},
        {202, "", EW__HTTP_FAULT, "unexpected HTTP status 202 (Accepted)", EW_STATUS_UNKNOWN},
        {201, "{\"result\":1}", EW__HTTP_FAULT, "unexpected HTTP status 201 (Created)", EW_STATUS_UNKNOWN},
        {299, "text", EW__HTTP_FAULT, "unexpected HTTP status 299 (Unknown)", EW_STATUS_UNKNOWN},
        {302, "<html>", EW__HTTP_FAULT, "unexpected HTTP status 302 (Unknown)", EW_STATUS_UNKNOWN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__arena memory;
        ew__http_said said;
        ew__arena_init(&memory, ew_env_default(), NULL, 0);
        ew__http_read_answer(&memory, rows[i].code, ew_str_from(rows[i].body), &said);
        assert_int_equal(said.meaning, rows[i].meaning);
        ew_str got = said.meaning == EW__HTTP_FAULT ? said.fault.message : said.payload;
        if (!ew_str_eq(got, ew_str_from(rows[i].payload)))
            fail_msg("row %zu: %.*s", i, (int)got.len, got.ptr);
        if (said.meaning == EW__HTTP_FAULT)
            assert_int_equal(said.fault.status, rows[i].status);
        ew__arena_done(&memory);
    }
}

/* A space before it keeps an answer from being told by its first bytes: it must mean the same. */
static void check_answer(const char *spaced, size_t n) {
    ew__arena memory;
    ew__http_said quick, slow;
    ew__arena_init(&memory, ew_env_default(), NULL, 0);
    ew__http_read_answer(&memory, 200, ew__str(spaced + 1, n - 1), &quick);
    ew__http_read_answer(&memory, 200, ew__str(spaced, n), &slow);
    if (quick.meaning != slow.meaning || (quick.meaning == EW__HTTP_RESULT && !ew_str_eq(quick.payload, slow.payload)))
        fail_msg("%.*s", (int)n, spaced);
    ew__arena_done(&memory);
}

static void test_wire_http__answers_alike(void **state) {
    (void)state;
    static const char *const answers[] = {" {\"result\":1}", " {\"result\":{\"a\":[1,\"}\"]}}", " {\"result\":\"x\"}"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        char text[64];
        size_t n = strlen(answers[i]);
        memcpy(text, answers[i], n);
        for (size_t at = 1; at < n; at++) {
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                check_answer(text, n);
            }
            text[at] = answers[i][at];
            check_answer(text, at);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_http__date),          cmocka_unit_test(test_wire_http__head),
        cmocka_unit_test(test_wire_http__block),         cmocka_unit_test(test_wire_http__error_body),
        cmocka_unit_test(test_wire_http__rows),          cmocka_unit_test(test_wire_http__reads_rows),
        cmocka_unit_test(test_wire_http__envelope),      cmocka_unit_test(test_wire_http__host_problem),
        cmocka_unit_test(test_wire_http__host),          cmocka_unit_test(test_wire_http__origin),
        cmocka_unit_test(test_wire_http__types),         cmocka_unit_test(test_wire_http__request),
        cmocka_unit_test(test_wire_http__block_meaning), cmocka_unit_test(test_wire_http__answer_meaning),
        cmocka_unit_test(test_wire_http__answers_alike),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
