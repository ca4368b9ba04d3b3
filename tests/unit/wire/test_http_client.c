/*
 * tests/unit/wire/test_http_client.c: the clients of HTTP (http, blobs, stepflow over HTTP) against a test that is the
 * server. Whatever it answers, each call ends exactly once, and no answer reaches another call.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/rig.h"
#include "wire/http/http.h"
#include "wire/stepflow/stepflow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define STREAM "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

/* One kind of call per row. */
static const struct kind {
    const ew__wire *wire;
    rig_request request;
    const char *good; /* a body that completes the call */
} kinds[] = {
    {&ew__wire_http, {.key = "/flow/a"}, "{\"result\":7}"},
    {&ew__wire_http, {.key = "/flow/a", .stream = true}, "{\"result\":7}"},
    {&ew__wire_http, {.list = true}, "{\"/flow/a\":{}}"},
    {&ew__wire_blobs, {.key = "blobs/get", .input = {"{\"blob_id\":\"x\"}", 15}}, "{\"data\":7}"},
    {&ew__wire_blobs, {.key = "blobs/put", .input = {"{\"data\":7}", 10}}, "{\"blobId\":\"x\"}"},
    {&ew__wire_stepflow_http, {.key = "/a"}, NULL},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, STEPFLOW = N_KINDS - 1 };

static bool is_closed(const rig_pair *pair) { return pair->end[RIG_CLIENT].closing || pair->end[RIG_CLIENT].gone; }

static rig_call *ask(rig_pair *pair, const rig_request *request) {
    rig_call *rc = rig_open(pair, request);
    rig_run(pair->rig);
    return rc;
}

static void say(rig_pair *pair, const char *text) {
    rig_say(pair, text, strlen(text));
    rig_run(pair->rig);
}

/* An answer with a body, and `rest` behind it in the same read. */
static void answer(rig_pair *pair, int code, const char *body, const char *rest) {
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s%s", code,
                   strlen(body), body, rest);
    say(pair, text);
}

/* ---- every code with every kind of body ---- */

static void check_code(const struct kind *kind, const rig_call *rc, int code, const char *body) {
    char number[8];
    if (rc->ended != 1 || rc->after_end != 0)
        fail_msg("HTTP %d, body '%s': %u ends, %u events after the end", code, body, rc->ended, rc->after_end);
    if (kind->wire == &ew__wire_stepflow_http || code < 201 || code == 204 || code >= 400)
        return;
    assert_int_equal(rc->status, EW_STATUS_UNKNOWN);
    (void)snprintf(number, sizeof number, " %d ", code);
    assert_non_null(strstr(rc->message, number));
}

static void check_answers(const struct kind *kind, int code) {
    static const char *const bodies[] = {"",
                                         "text",
                                         "7",
                                         "{\"a\":1}",
                                         "{\"result\":7}",
                                         "[",
                                         "{\"error\":{\"status\":\"OK\",\"message\":\"m\"}}",
                                         "{\"status\":\"OK\",\"message\":\"m\"}"};
    rig r;
    rig_request request = kind->request;
    request.timeout_ms = 2000;
    rig_init(&r, kind->wire, &(rig_options){.seed = 1});
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
        rig_call *rc = ask(pair, &request);
        answer(pair, code, bodies[i], "");
        if (code < 200) { /* informational: the answer itself does not come */
            rig_say_eof(pair);
            rig_run(&r);
        }
        rig_call_cancel(rc);
        check_code(kind, rc, code, bodies[i]);
        rig_call_release(rc);
        rig_run(&r);
        assert_int_equal(rc->after_end, 0);
    }
    rig_advance(&r, 3000); /* past the deadline */
    rig_finish(&r);
}

static void test_wire_http_client__every_answer(void **state) {
    (void)state;
    for (size_t i = 0; i < N_KINDS; i++)
        for (int code = 100; code < 600; code++)
            check_answers(&kinds[i], code);
}

/* The connection ends, or the deadline passes, in the middle of an answer. */
static void test_wire_http_client__cut(void **state) {
    (void)state;
    static const char *const answers[] = {
        "H",
        "HTTP/1.1 202 Accepted\r\n",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"result\":7}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"res",
        STREAM "Transfer-Encoding: chunked\r\n\r\n",
        STREAM "\r\ndata: {\"message\":1}\n\n",
    };
    enum { EOF_, LOST, DEADLINE, N_CUTS };
    for (size_t i = 0; i < N_KINDS * N_CUTS; i++) {
        rig r;
        rig_request request = kinds[i / N_CUTS].request;
        request.timeout_ms = 2000;
        rig_init(&r, kinds[i / N_CUTS].wire, &(rig_options){.seed = 1});
        for (size_t a = 0; a < sizeof answers / sizeof *answers; a++) {
            rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
            rig_call *rc = ask(pair, &request);
            say(pair, answers[a]);
            if (i % N_CUTS == EOF_)
                rig_say_eof(pair);
            else if (i % N_CUTS == LOST)
                rig_cut(pair, RIG_SERVER, RIG_RESET);
            rig_run(&r);
            if (i % N_CUTS == DEADLINE)
                rig_advance(&r, 3000);
            assert_int_equal(rc->ended, 1);
            assert_true(is_closed(pair));
        }
        rig_finish(&r);
    }
}

/* ---- streams ---- */

static void test_wire_http_client__stream_ends(void **state) {
    (void)state;
    static const struct {
        const char *body;
        ew_status status;
        size_t n_chunks;
    } rows[] = {
        {"", EW_STATUS_UNAVAILABLE, 0},
        {"data: {\"message\":1}\n\n", EW_STATUS_UNAVAILABLE, 1},
        {"data: {\"message\":1}\n\ndata: {\"result\":2}\n\n", EW_STATUS_OK, 1},
        {"data: {\"message\":1}\n\ndata: {}\n\n", EW_STATUS_OK, 1},
        {"error: {\"error\":{\"status\":\"OK\",\"message\":\"m\"}}\n\n", EW_STATUS_UNKNOWN, 0},
        {"data: {\"error\":{\"status\":\"OK\"}}\n\n", EW_STATUS_UNKNOWN, 0},
        {"data: {\"error\":7}\n\n", EW_STATUS_UNKNOWN, 0},
        {"data: {\"result\":2}\n\ndata: {\"result\":3}\n\n", EW_STATUS_OK, 0},
        {"data: 7\n\n", EW_STATUS_INTERNAL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        char head[128];
        rig_init(&r, &ew__wire_http, &(rig_options){.seed = 1});
        rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
        rig_call *rc = ask(pair, &(rig_request){.key = "/flow/a", .stream = true, .timeout_ms = 2000});
        (void)snprintf(head, sizeof head, STREAM "Content-Length: %zu\r\n\r\n", strlen(rows[i].body));
        say(pair, head);
        say(pair, rows[i].body);
        assert_int_equal(rc->ended, 1);
        assert_int_equal(rc->status, rows[i].status);
        assert_int_equal(rc->n_chunks, rows[i].n_chunks);
        rig_advance(&r, 3000);
        rig_finish(&r);
    }
}

/* ---- bytes that no request asked for ---- */

static rig_call *next_call; /* opened as soon as the connection is free, as a pool does */
static const struct kind *next_kind;

static void open_next(rig_end *end) {
    if (next_kind && end->side == RIG_CLIENT && rig_capacity(end->pair) > 0 && !next_call)
        next_call = rig_open(end->pair, &next_kind->request);
}

static const char *const extra[] = {
    "\r\n",
    "x",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{\"result\":\"forged\"}",
    "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"data\":\"forged\"}",
    "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{\"blobId\":\"forged\"}",
};
enum { N_EXTRA = sizeof extra / sizeof *extra };

static void test_wire_http_client__bytes_after_answer(void **state) {
    (void)state;
    for (size_t i = 0; i < STEPFLOW * N_EXTRA; i++) {
        rig r;
        rig_init(&r, kinds[i / N_EXTRA].wire, &(rig_options){.seed = 1});
        rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
        rig_call *rc = ask(pair, &kinds[i / N_EXTRA].request);
        next_call = NULL;
        next_kind = &kinds[i / N_EXTRA];
        r.on_ready = open_next;
        answer(pair, 200, next_kind->good, extra[i % N_EXTRA]);
        assert_int_equal(rc->ended, 1);
        assert_int_equal(rc->status, EW_STATUS_OK);
        assert_true(is_closed(pair));
        assert_null(next_call);
        next_kind = NULL;
        rig_finish(&r);
    }
}

static void test_wire_http_client__bytes_while_idle(void **state) {
    (void)state;
    for (size_t i = 0; i < STEPFLOW * N_EXTRA; i++) {
        rig r;
        const struct kind *kind = &kinds[i / N_EXTRA];
        rig_init(&r, kind->wire, &(rig_options){.seed = 1});
        rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
        if (i % 2) { /* also before the first request */
            rig_call *rc = ask(pair, &kind->request);
            answer(pair, 200, kind->good, "");
            assert_int_equal(rc->status, EW_STATUS_OK);
            assert_false(is_closed(pair));
        }
        say(pair, extra[i % N_EXTRA]);
        assert_true(is_closed(pair));
        rig_call *late = ask(pair, &kind->request);
        assert_int_equal(late->status, EW_STATUS_UNAVAILABLE);
        rig_finish(&r);
    }
}

/* A call that waits for the greeting of another connection has sent nothing: the bytes are not its answer. */
static void test_wire_http_client__bytes_before_request(void **state) {
    (void)state;
    rig r;
    rig_init(&r, &ew__wire_stepflow_http, &(rig_options){.seed = 1});
    rig_pair *greets = rig_connect_raw(&r, RIG_SERVER), *waits = rig_connect_raw(&r, RIG_SERVER);
    rig_call *first = ask(greets, &kinds[STEPFLOW].request), *second = ask(waits, &kinds[STEPFLOW].request);
    say(waits, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(first->ended, 0);
    assert_int_equal(second->ended, 1);
    assert_int_equal(second->status, EW_STATUS_UNAVAILABLE);
    assert_true(is_closed(waits));
    rig_finish(&r);
}

/* ---- callers that share a connection ---- */

static void test_wire_http_client__leave(void **state) {
    (void)state;
    for (size_t i = 0; i < STEPFLOW; i++) {
        rig r;
        rig_init(&r, kinds[i].wire, &(rig_options){.seed = 1});
        rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
        rig_call *a = ask(pair, &kinds[i].request);
        ew_call *kept = ew_call_ref(a->call);
        answer(pair, 202, "accepted", "");
        assert_int_equal(a->ended, 1);
        assert_null(kept->callee_ud);
        rig_call *b = ask(pair, &kinds[i].request);
        ew__call_cancel(kept, EW__CANCEL_GONE);
        rig_call_release(a);
        rig_run(&r);
        assert_int_equal(b->ended, 0);
        answer(pair, 200, kinds[i].good, "");
        assert_int_equal(b->status, EW_STATUS_OK);
        ew_call_unref(kept);
        rig_finish(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_http_client__every_answer),
        cmocka_unit_test(test_wire_http_client__cut),
        cmocka_unit_test(test_wire_http_client__stream_ends),
        cmocka_unit_test(test_wire_http_client__bytes_after_answer),
        cmocka_unit_test(test_wire_http_client__bytes_while_idle),
        cmocka_unit_test(test_wire_http_client__bytes_before_request),
        cmocka_unit_test(test_wire_http_client__leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
