/*
 * tests/contract/scenarios_plain.c: what goes well: calls, errors, streams both ways, payloads.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"
#include "json/json.h"
#include "support/json_or.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- unary ---- */

static void unary(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    must_succeed(r, call_plain(pair, "/test/echo", "{\"hello\":[1,2,3]}"), "{\"hello\":[1,2,3]}");
    MUST(r->n_opened == 1);
}

static void unary_no_input(rig *r, const contract_wire *w) {
    must_succeed(r, call_plain(rig_connect(r), "/test/echo", NULL), w->objects ? "{}" : "null");
}

static void by_name(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    must_succeed(r, call_plain(pair, "echo", "1"), "1");
    must_succeed(r, call_plain(pair, "deep/er", "2"), "2");
    must_succeed(r, call_plain(pair, "/test/deep/er", "3"), "3");
}

static void in_turn(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    for (int i = 0; i < 5; i++) {
        char text[20];
        (void)snprintf(text, sizeof text, "[%d]", i);
        must_succeed(r, call_plain(pair, "/test/echo", text), text);
        MUST(rig_capacity(pair) > 0);
    }
}

static void odd_handlers(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    must_succeed(r, call_plain(pair, "/test/twice", NULL), "1");
    MUST(rig_dropped(r, RIG_SERVER) >= 2);
    must_fail(r, call_plain(pair, "/test/invalid", NULL), EW_STATUS_INTERNAL);
    must_succeed(r, call_plain(pair, "/test/echo", "\"still here\""), "\"still here\"");
}

/* ---- errors ---- */

static void not_found(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    must_fail(r, call_plain(pair, "/test/missing", "1"), EW_STATUS_NOT_FOUND);
    must_fail(r, call_stream(pair, "/test/missing", "1"), EW_STATUS_NOT_FOUND);
    must_succeed(r, call_plain(pair, "/test/echo", "1"), "1");
}

static void ambiguous(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_plain(rig_connect(r), "same", "1");
    must_fail(r, rc, EW_STATUS_INVALID_ARGUMENT);
    MUST(rc->message && strstr(rc->message, "/one/same, /two/same"));
}

static void one_status(rig *r, rig_pair *pair, ew_status status, bool stream) {
    char input[300], message[100];
    (void)snprintf(message, sizeof message, "it's \xc3\xa4 %s", ew_status_name(status));
    (void)snprintf(input, sizeof input,
                   "{\"status\":\"%s\",\"message\":\"%s\",\"details\":{\"n\":12345678901234567890,\"n\":1}}",
                   ew_status_name(status), message);
    rig_call *rc = stream ? call_stream(pair, "/test/fail", input) : call_plain(pair, "/test/fail", input);
    must_fail(r, rc, status);
    MUST(rc->origin == EW_ORIGIN_ACTION);
    MUST_BE(rc->message, message);
    MUST_BE(rc->details, "{\"n\":12345678901234567890,\"n\":1}");
}

static void statuses(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    for (int status = 1; status < EW_STATUS_COUNT; status++)
        one_status(r, pair, (ew_status)status, false);
}

static void statuses_streamed(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    for (int status = 1; status < EW_STATUS_COUNT; status++)
        one_status(r, pair, (ew_status)status, true);
}

static void retry_advice(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_plain(rig_connect(r), "/test/fail", "{\"status\":\"UNAVAILABLE\",\"retry_after_ms\":3000}");
    must_fail(r, rc, EW_STATUS_UNAVAILABLE);
    MUST(rc->retryable && rc->retry_after_ms == 3000);
}

static void small_frames(ew_limits *limits) { limits->frame_bytes = 4096; }

static void too_large(rig *r, const contract_wire *w) {
    (void)w;
    static char input[6000];
    rig_pair *pair = rig_connect(r);
    memset(input, ' ', sizeof input - 1);
    input[0] = '[';
    input[sizeof input - 2] = ']';
    must_fail(r, call_plain(pair, "/test/echo", input), EW_STATUS_RESOURCE_EXHAUSTED);
    must_succeed(r, call_plain(rig_connect(r), "/test/echo", "1"), "1");
}

/* ---- chunks ---- */

static void must_be_chunks(rig *r, const rig_call *rc, size_t n) {
    MUST(rc->n_chunks == n);
    for (size_t i = 0; i < n && r->strict; i++)
        assert_int_equal(json_int_or(ew__str(rc->chunks[i], rc->chunk_len[i]), "/i", -1), i);
}

static void stream(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_stream(rig_connect(r), "/test/chunks", "{\"n\":3}");
    must_succeed(r, rc, "{\"n\":3}");
    must_be_chunks(r, rc, 3);
}

static void streams_in_turn(rig *r, const contract_wire *w) {
    (void)w;
    static const unsigned sizes[] = {0, 1, 100};
    rig_pair *pair = rig_connect(r);
    for (size_t i = 0; i < 3; i++) {
        char input[50], result[50];
        (void)snprintf(input, sizeof input, "{\"n\":%u,\"size\":100}", sizes[i]);
        (void)snprintf(result, sizeof result, "{\"n\":%u}", sizes[i]);
        rig_call *rc = call_stream(pair, "/test/chunks", input);
        must_succeed(r, rc, result);
        must_be_chunks(r, rc, sizes[i]);
    }
}

static void stream_slowly(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_stream(rig_connect(r), "/test/chunks", "{\"n\":3,\"every_ms\":1000}");
    MUST(rc->n_chunks == 1 && rc->ended == 0);
    rig_advance(r, 1000);
    MUST(rc->n_chunks == 2 && rc->ended == 0);
    rig_advance(r, 2000);
    must_succeed(r, rc, "{\"n\":3}");
    must_be_chunks(r, rc, 3);
}

static void stream_unwanted(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_plain(rig_connect(r), "/test/chunks", "{\"n\":3}");
    must_succeed(r, rc, "{\"n\":3}");
    MUST(rc->n_chunks == 0);
}

/* ---- input ---- */

static void input_stream(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/sum", .input_stream = true});
    for (int i = 1; i <= 4; i++) {
        char text[20];
        (void)snprintf(text, sizeof text, "%d", i);
        ew_err err = rig_call_send(rc, ew_str_from(text));
        MUST(err == EW_OK);
        if (i % 2)
            rig_run(r);
    }
    MUST(rc->ended == 0);
    rig_call_send_end(rc);
    rig_run(r);
    must_succeed(r, rc, "{\"sum\":10,\"n\":4}");
}

/* A chunk that does not fit is a hole in the input: the call must not go on as if nothing had been said. */
static void input_too_large(rig *r, const contract_wire *w) {
    (void)w;
    size_t size = (size_t)r->limits.frame_bytes + 1;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '1', size);
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/sum", .input_stream = true});
    rig_run(r);
    (void)rig_call_send(rc, ew__str(text, size));
    rig_run(r);
    must_fail(r, rc, EW_STATUS_RESOURCE_EXHAUSTED);
    MUST(r->side[RIG_SERVER].executor.calls->live == 0);
    free(text);
}

static void input_none(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/sum", .input_stream = true});
    rig_call_send_end(rc);
    rig_run(r);
    must_succeed(r, rc, "{\"sum\":0,\"n\":0}");
}

static void input_and_chunks(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/relay", .input_stream = true, .stream = true});
    for (int i = 0; i < 4; i++) {
        (void)rig_call_send(rc, EW_STR("{\"i\": 0}"));
        rig_run(r);
        MUST(rc->n_chunks == (size_t)i + 1);
        if (r->strict)
            assert_string_equal(rc->chunks[i], "{\"i\": 0}");
    }
    rig_call_send_end(rc);
    rig_run(r);
    must_succeed(r, rc, "{\"sum\":0,\"n\":4}");
}

/* A handler that does not look at its input holds the sender back, by permission, and both go on later. */
static void input_backpressure(rig *r, const contract_wire *w) {
    (void)w;
    static char chunk[8000];
    rig_call *rc =
        rig_open(rig_connect(r),
                 &(rig_request){.key = "/test/lazy", .input = EW_STR("{\"after_ms\":100}"), .input_stream = true});
    memset(chunk, ' ', sizeof chunk);
    chunk[0] = '7';
    ew_err err = EW_OK;
    int n = 0;
    for (; n < 100 && err == EW_OK; n++) {
        err = rig_call_send(rc, ew__str(chunk, sizeof chunk));
        rig_run(r);
    }
    MUST(err == EW_FULL && n < 20 && rc->n_input_room == 0);
    rig_advance(r, 100);
    MUST(rc->n_input_room == 1);
    (void)rig_call_send(rc, EW_STR("1"));
    rig_call_send_end(rc);
    rig_run(r);
    char result[60];
    (void)snprintf(result, sizeof result, "{\"sum\":%d,\"n\":%d}", 7 * n + 1, n + 1);
    must_succeed(r, rc, result);
}

/* ---- what goes along ---- */

static void trace(rig *r, const contract_wire *w) {
    rig_pair *pair = rig_connect(r);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/about"});
    char id[33] = "";
    if (rc->call)
        memcpy(id, rc->call->trace.trace_id, 32);
    rig_run(r);
    MUST(rc->ended == 1 && rc->status == EW_STATUS_OK);
    if (!r->strict)
        return;
    if (!w->no_trace_back)
        assert_string_equal(rc->trace_id, id);
    assert_true(ew_str_eq(json_str_or(ew_str_from(rc->result), "/trace", EW_STR("")), ew_str_from(id)));
    assert_true(ew_str_eq(json_str_or(ew_str_from(rc->result), "/wire", EW_STR("")),
                          ew_str_from(w->told ? w->told : w->wire->name)));
}

static void context(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = rig_open(
        rig_connect(r), &(rig_request){.key = "/test/about", .context = "{\"user\": 1}", .labels = "{\"a\":\"b\"}"});
    rig_run(r);
    MUST(rc->status == EW_STATUS_OK && rc->result &&
         strstr(rc->result, "{\"context\":{\"user\": 1},\"labels\":{\"a\":\"b\"},"));
}

/* How many everywires a call has crossed, from end to end. The first one is told on a connection that is new. */
static void call_with_hops(rig *r, rig_pair *pair, rig_request request) {
    static const uint8_t counts[] = {1, 0, 9, 255};
    for (size_t i = 0; i < sizeof counts; i++) {
        request.hops = counts[i];
        r->seen_hops = 1000;
        rig_call *rc = rig_open(pair, &request);
        if (request.input_stream)
            rig_call_send_end(rc);
        rig_run(r);
        MUST(rc->ended == 1 && rc->status == EW_STATUS_OK);
        MUST(r->seen_hops == counts[i]);
    }
}

static void hops(rig *r, const contract_wire *w) {
    (void)w;
    call_with_hops(r, rig_connect(r), (rig_request){.key = "/test/echo", .input = EW_STR("{}")});
}

static void hops_streamed(rig *r, const contract_wire *w) {
    (void)w;
    call_with_hops(r, rig_connect(r), (rig_request){.key = "/test/say", .input = EW_STR("[1]"), .stream = true});
}

static void hops_of_input(rig *r, const contract_wire *w) {
    (void)w;
    call_with_hops(r, rig_connect(r), (rig_request){.key = "/test/sum", .input_stream = true});
}

static void list(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc = rig_open(pair, &(rig_request){.list = true});
    rig_run(r);
    MUST(rc->ended == 1 && rc->status == EW_STATUS_OK);
    if (r->strict) {
        ew_str key = json_str_or(ew_str_from(rc->result), "/~1test~1deep~1er/name", EW_STR(""));
        assert_true(ew_str_eq(key, EW_STR("deep/er")));
    }
    must_succeed(r, call_plain(pair, "/test/echo", "1"), "1");
}

/* ---- payloads ---- */

static const char *const payloads[] = {
    "12345678901234567890123456789012345678901234567890",
    "-0",
    "1.0000000000000000000000001e-7",
    "{\"b\":1,\"a\":2,\"b\":3,\"\":{}}",
    "\"\\u00e4\\ud83d\\ude00\\u0000\\/\\n\\r\\t\\\"\"",
    "\"\xc3\xa4\xf0\x9f\x98\x80\x7f\"",
    "\"\\ud800\"",
    "[ 1 ,\t2 , { \"a\" : [ ] } ]",
    "[\n  1,\r\n  2\n\n,3]",
    "\"data: {\\\"result\\\":1}\"",
    "true",
    "[[[[[[[[[[]]]]]]]]]]",
};
#define N_PAYLOADS (sizeof payloads / sizeof *payloads)

/* White space goes where the wire's framing is made of lines; nothing else changes. */
static void must_be_payload(rig *r, const contract_wire *w, const char *got, const char *sent) {
    char line[200];
    int n = (int)strlen(sent);
    if (!r->strict)
        return;
    memcpy(line, sent, (size_t)n + 1);
    if (w->lines && strpbrk(sent, "\r\n"))
        n = ew_json_minify(ew_str_from(sent), line, sizeof line);
    line[n] = '\0';
    ew__buf ascii;
    ew__buf_init(&ascii, ew_env_default(), SIZE_MAX / 2);
    if (w->ascii) {
        assert_int_equal(ew__json_write_ascii(&ascii, ew_str_from(line)), EW_OK);
        (void)snprintf(line, sizeof line, "%.*s", (int)ascii.len, ascii.ptr);
    }
    ew__buf_done(&ascii);
    assert_string_equal(got, line);
}

static void fidelity(rig *r, const contract_wire *w) {
    contract_wire unary = {.lines = w->all_lines, .ascii = w->ascii};
    rig_pair *pair = rig_connect(r);
    for (size_t i = 0; i < N_PAYLOADS; i++) {
        rig_call *rc = call_plain(pair, "/test/echo", payloads[i]);
        MUST(rc->ended == 1 && rc->status == EW_STATUS_OK);
        if (r->strict)
            must_be_payload(r, &unary, rc->result, payloads[i]);
    }
}

static void fidelity_of_chunks(rig *r, const contract_wire *w) {
    rig_pair *pair = rig_connect(r);
    for (size_t i = 0; i < N_PAYLOADS; i++) {
        char input[200];
        (void)snprintf(input, sizeof input, "[%s]", payloads[i]);
        rig_call *rc = call_stream(pair, "/test/say", input);
        MUST(rc->ended == 1 && rc->status == EW_STATUS_OK && rc->n_chunks == 1);
        if (r->strict) {
            must_be_payload(r, w, rc->chunks[0], payloads[i]);
            must_be_payload(r, w, rc->result, input);
        }
    }
}

static void fidelity_large(rig *r, const contract_wire *w) {
    (void)w;
    size_t size = r->split == RIG_BYTES ? (size_t)60 * 1024 : (size_t)1024 * 1024;
    char *text = malloc(size + 1);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++)
        text[i] = "0123456789abcdef"[(i * 7 + i / 251) % 16];
    text[0] = text[size - 1] = '"';
    text[size] = '\0';
    rig_pair *pair = rig_connect(r);
    must_succeed(r, call_plain(pair, "/test/echo", text), text);
    must_succeed(r, call_plain(pair, "/test/echo", "1"), "1");
    free(text);
}

const scenario scenarios_plain[] = {
    {.name = "unary", .run = unary},
    {.name = "unary_no_input", .run = unary_no_input},
    {.name = "by_name", .run = by_name},
    {.name = "in_turn", .run = in_turn},
    {.name = "odd_handlers", .run = odd_handlers},
    {.name = "not_found", .run = not_found},
    {.name = "ambiguous", .run = ambiguous},
    {.name = "statuses", .run = statuses, .large = true},
    {.name = "statuses_streamed", .needs = EW__CAN_CHUNKS, .run = statuses_streamed, .large = true},
    {.name = "retry_advice", .run = retry_advice},
    {.name = "too_large", .run = too_large, .limits = small_frames, .large = true},
    {.name = "stream", .needs = EW__CAN_CHUNKS, .run = stream},
    {.name = "streams_in_turn", .needs = EW__CAN_CHUNKS, .run = streams_in_turn, .large = true},
    {.name = "stream_slowly", .needs = EW__CAN_CHUNKS, .run = stream_slowly},
    {.name = "stream_unwanted", .run = stream_unwanted},
    {.name = "input_stream", .needs = EW__CAN_INPUT, .run = input_stream},
    {.name = "input_too_large", .needs = EW__CAN_INPUT, .run = input_too_large, .limits = small_frames, .large = true},
    {.name = "input_none", .needs = EW__CAN_INPUT, .run = input_none},
    {.name = "input_and_chunks", .needs = EW__CAN_INPUT | EW__CAN_CHUNKS, .run = input_and_chunks},
    {.name = "input_backpressure", .needs = EW__CAN_INPUT, .run = input_backpressure, .large = true},
    {.name = "trace", .needs = EW__CAN_TRACE, .run = trace},
    {.name = "context", .needs = EW__CAN_CONTEXT, .run = context},
    {.name = "hops", .run = hops},
    {.name = "hops_streamed", .needs = EW__CAN_CHUNKS, .run = hops_streamed, .large = true},
    {.name = "hops_of_input", .needs = EW__CAN_INPUT, .run = hops_of_input, .large = true},
    {.name = "list", .needs = EW__CAN_LIST, .run = list},
    {.name = "fidelity", .run = fidelity, .large = true},
    {.name = "fidelity_of_chunks", .needs = EW__CAN_CHUNKS, .run = fidelity_of_chunks, .large = true},
    {.name = "fidelity_large", .run = fidelity_large, .large = true},
    {.name = NULL},
};
