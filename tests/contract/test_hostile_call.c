/*
 * tests/contract/test_hostile_call.c: the calling side of every wire against a hostile server. In each
 * scenario every call ends exactly once, memory stays bounded, and calls on other connections succeed
 * (hostile_finish and hostile_check_answered check that).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/hostile.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS ((uint64_t)60 * 1000)

/* ---- a call on another connection ---- */

typedef struct scene {
    hostile_call call;  /* the one that is attacked */
    hostile_call other; /* a bystander */
} scene;

static scene begin(hostile *h) {
    scene s;
    hostile_call_plain(h, hostile_connect(h), &s.other);
    hostile_call_plain(h, hostile_connect(h), &s.call);
    return s;
}

/* The next call to the same server: on this connection, or on another one if it takes no more. */
static void check_next(hostile *h, rig_pair *pair) {
    hostile_call next;
    rig_run(&h->r);
    hostile_call_plain(h, rig_capacity(pair) > 0 ? pair : hostile_connect(h), &next);
    hostile_answer(h, &next, h->wire->result, "{'next':3}");
    hostile_check_done(next.rc, "{\"next\":3}");
}

static bool is_done_with(const rig_call *rc, const char *result) {
    return rc->ended && rc->status == EW_STATUS_OK && strcmp(rc->result, result) == 0;
}

/* ---- silence ---- */

static void never_answers(hostile *h) {
    hostile_call call, other;
    hostile_call_plain(h, hostile_connect(h), &other);
    hostile_open(h, hostile_connect(h), &(rig_request){.key = "/test/echo", .input = EW_STR("{}"), .timeout_ms = 500},
                 &call);
    rig_advance(&h->r, 499);
    assert_int_equal(call.rc->ended, 0);
    rig_advance(&h->r, 1);
    assert_int_equal(call.rc->ended, 1);
    assert_int_equal(call.rc->status, EW_STATUS_DEADLINE_EXCEEDED);
    hostile_check_answered(h, &other);
    rig_advance(&h->r, MINUTE_MS);
    assert_int_equal(h->r.side[RIG_CLIENT].executor.calls->live, 0);
}

/* The caller cancels and the server answers neither the call nor the cancel. */
static void never_answers_cancel(hostile *h) {
    scene s = begin(h);
    rig_call_cancel(s.call.rc);
    rig_advance(&h->r, MINUTE_MS / 6);
    assert_int_equal(s.call.rc->ended, 1);
    assert_int_not_equal(s.call.rc->status, EW_STATUS_OK);
    hostile_check_answered(h, &s.other);
    rig_advance(&h->r, MINUTE_MS);
    assert_int_equal(h->r.side[RIG_CLIENT].executor.calls->live, 0);
}

/* The socket takes no bytes: calls with large inputs are lost, not memory. */
static void never_reads(hostile *h) {
    enum { SIZE = 20000, CALLS = 20 };
    char *input = malloc(SIZE + 16);
    hostile_call other;
    rig_call *calls[CALLS] = {NULL};
    assert_non_null(input);
    (void)snprintf(input, SIZE + 16, "{\"pad\":\"%0*d\"}", SIZE, 0);
    hostile_call_plain(h, hostile_connect(h), &other);
    rig_pair *pair = hostile_connect(h);
    rig_stall(pair, RIG_CLIENT, true);
    for (int i = 0; i < CALLS; i++) {
        calls[i] = rig_open(pair, &(rig_request){.key = "/test/echo", .input = ew_str_from(input)});
        rig_run(&h->r);
    }
    assert_true(pair->end[RIG_CLIENT].peak_out <= h->r.limits.out_max_bytes + 2 * SIZE);
    free(input);
    hostile_check_answered(h, &other);
    rig_advance(&h->r, h->r.limits.stall_ms + h->r.limits.runtime_wait_ms);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(calls[i]->ended, 1);
}

/* ---- answers ---- */

static void answers_twice(hostile *h) {
    scene s = begin(h);
    hostile_values values = {.id = s.call.id, .job = s.call.job, .value = "1"};
    hostile_put(h, s.call.pair, h->wire->result, &values);
    values.value = "2";
    hostile_put(h, s.call.pair, h->wire->result, &values);
    hostile_say(h, s.call.pair, h->wire->result, &values);
    hostile_check_done(s.call.rc, "1");
    check_next(h, s.call.pair);
    hostile_check_answered(h, &s.other);
}

static rig_call *queued;

/* A call that waited for the connection takes its place. */
static void open_queued(rig_end *end) {
    if (!queued && end->peer->wire->capacity(end->peer) > 0)
        queued = rig_open(end->pair, &(rig_request){.key = "/test/echo", .input = EW_STR("{}")});
}

/* The second answer must not count for the call that is opened when the first one ends. */
static void answers_twice_queued(hostile *h) {
    hostile_call call;
    hostile_call_plain(h, hostile_connect(h), &call);
    queued = NULL;
    h->r.on_ready = open_queued;
    hostile_values values = {.id = call.id, .job = call.job, .value = "1"};
    hostile_put(h, call.pair, h->wire->result, &values);
    values.value = "2";
    hostile_say(h, call.pair, h->wire->result, &values);
    h->r.on_ready = NULL;
    hostile_check_done(call.rc, "1");
    if (queued)
        assert_false(is_done_with(queued, "2"));
}

/* The second answer arrives later, while the connection is idle. */
static void answers_twice_later(hostile *h) {
    scene s = begin(h);
    hostile_answer(h, &s.call, h->wire->result, "1");
    hostile_check_done(s.call.rc, "1");
    hostile_answer(h, &s.call, h->wire->result, "2");
    check_next(h, s.call.pair);
    hostile_check_answered(h, &s.other);
}

static void answers_result_and_error(hostile *h) {
    scene s = begin(h);
    hostile_answer(h, &s.call, h->wire->error, "1");
    assert_int_equal(s.call.rc->ended, 1);
    assert_int_not_equal(s.call.rc->status, EW_STATUS_OK);
    hostile_answer(h, &s.call, h->wire->result, "2");
    check_next(h, s.call.pair);
    hostile_check_answered(h, &s.other);
}

static void answers_other_ids(hostile *h) {
    static const char *const ids[] = {"\"nope\"", "0", "1", "null", "true", "[]", "{}", "-1", "1e400", "\"\""};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        hostile_call call, other;
        hostile_call_plain(h, hostile_connect(h), &other);
        hostile_call_plain(h, hostile_connect(h), &call);
        hostile_values values = {.id = ids[i], .job = call.job, .value = "666"};
        hostile_say(h, call.pair, h->wire->result, &values);
        assert_false(is_done_with(call.rc, "666"));
        if (!call.rc->ended && !hostile_over(h, call.pair)) {
            hostile_answer(h, &call, h->wire->result, "5");
            hostile_check_done(call.rc, "5");
        }
        hostile_check_answered(h, &other);
    }
}

/* The id of a call on another connection of the same client. */
static void answers_id_of_other_connection(hostile *h) {
    scene s = begin(h);
    hostile_values values = {.id = s.other.id, .job = s.other.job, .value = "666"};
    hostile_say(h, s.call.pair, h->wire->result, &values);
    assert_false(is_done_with(s.call.rc, "666"));
    hostile_check_answered(h, &s.other);
}

/* The answers of one connection in reverse order, with a stray message between any two. */
static void answers_out_of_order(hostile *h) {
    enum { CALLS = 8 };
    hostile_call calls[CALLS];
    rig_pair *pair = hostile_connect(h);
    char text[24];
    for (size_t i = 0; i < CALLS; i++)
        hostile_call_plain(h, pair, &calls[i]);
    for (size_t i = CALLS; i-- > 0;) {
        for (size_t s = 0; h->wire->strays[s]; s++)
            hostile_say(h, pair, h->wire->strays[s], &(hostile_values){.id = "1"});
        (void)snprintf(text, sizeof text, "%zu", i);
        hostile_answer(h, &calls[i], h->wire->result, text);
        hostile_check_done(calls[i].rc, text);
    }
}

static void answers_after_end(hostile *h) {
    hostile_call call, other;
    hostile_call_plain(h, hostile_connect(h), &other);
    hostile_open(h, hostile_connect(h), &(rig_request){.key = "/test/echo", .input = EW_STR("{}"), .timeout_ms = 100},
                 &call);
    rig_advance(&h->r, 100);
    assert_int_equal(call.rc->ended, 1);
    assert_int_equal(call.rc->status, EW_STATUS_DEADLINE_EXCEEDED);
    if (h->wire->chunk)
        hostile_answer(h, &call, h->wire->chunk, "1");
    hostile_answer(h, &call, h->wire->result, "1");
    hostile_answer(h, &call, h->wire->result, "2");
    check_next(h, call.pair);
    hostile_check_answered(h, &other);
}

static void answers_after_release(hostile *h) {
    scene s = begin(h);
    rig_call_release(s.call.rc);
    rig_run(&h->r);
    hostile_answer(h, &s.call, h->wire->result, "1");
    assert_int_equal(s.call.rc->ended, 0);
    check_next(h, s.call.pair);
    hostile_check_answered(h, &s.other);
}

/* Chunks that the caller did not ask for, before and after the end. */
static void sends_unasked_chunks(hostile *h) {
    hostile_call call, other;
    if (!h->wire->chunk)
        return;
    hostile_call_plain(h, hostile_connect(h), &other);
    hostile_call_plain(h, hostile_connect(h), &call);
    for (int i = 0; i < 100; i++)
        hostile_answer(h, &call, h->wire->chunk, "{'i':1}");
    hostile_answer(h, &call, h->wire->result, "1");
    assert_int_equal(call.rc->ended, 1);
    assert_int_equal(call.rc->n_chunks, 0);
    for (int i = 0; i < 100; i++)
        hostile_answer(h, &call, h->wire->chunk, "{'i':1}");
    check_next(h, call.pair);
    hostile_check_answered(h, &other);
}

/* ---- closing and breaking off ---- */

typedef enum cut_kind { CUT_EOF, CUT_RESET, CUT_SILENCE } cut_kind;

static void cut_answer(const hostile_wire *wire, size_t at, cut_kind kind) {
    hostile h;
    hostile_call call, other;
    hostile_init(&h, wire, RIG_SERVER);
    hostile_call_plain(&h, hostile_connect(&h), &other);
    hostile_open(&h, hostile_connect(&h),
                 &(rig_request){.key = "/test/echo", .input = EW_STR("{}"), .timeout_ms = MINUTE_MS}, &call);
    size_t n = 0;
    char *bytes = hostile_frame(&h, wire->result, &(hostile_values){.id = call.id, .job = call.job, .value = "1"}, &n);
    hostile_say_bytes(&h, call.pair, bytes, at < n ? at : n);
    if (kind == CUT_EOF)
        rig_say_eof(call.pair);
    else if (kind == CUT_RESET)
        rig_cut(call.pair, RIG_SERVER, RIG_RESET);
    rig_run(&h.r);
    hostile_check_answered(&h, &other);
    rig_advance(&h.r, MINUTE_MS);
    assert_int_equal(call.rc->ended, 1);
    if (call.rc->status == EW_STATUS_OK && at + 1 < n) /* only a newline may be missing */
        fail_msg("%s: %zu of %zu bytes were accepted as an answer", wire->name, at, n);
    free(bytes);
    hostile_finish(&h);
}

static void closes_at_each_byte(hostile *h) {
    size_t n = 0;
    char id[40] = "\"0123456789012345678901234567890\"";
    free(hostile_frame(h, h->wire->result, &(hostile_values){.id = id, .job = id, .value = "1"}, &n));
    for (size_t at = 0; at <= n; at++)
        for (int kind = CUT_EOF; kind <= CUT_SILENCE; kind++)
            cut_answer(h->wire, at, (cut_kind)kind);
}

/* The server closes before it has read a request, and before it has answered the handshake. */
static void closes_before_request(hostile *h) {
    hostile_call other;
    hostile_call_plain(h, hostile_connect(h), &other);
    for (int kind = CUT_EOF; kind <= CUT_RESET; kind++) {
        rig_pair *pair = rig_connect_raw(&h->r, RIG_SERVER);
        rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/echo", .input = EW_STR("{}")});
        if (kind == CUT_EOF)
            rig_say_eof(pair);
        else
            rig_cut(pair, RIG_SERVER, RIG_RESET);
        rig_advance(&h->r, MINUTE_MS / 4);
        assert_int_equal(rc->ended, 1);
        assert_int_not_equal(rc->status, EW_STATUS_OK);
    }
    hostile_check_answered(h, &other);
}

/* ---- garbage ---- */

typedef struct garbage_case {
    ew_str bytes;
    bool framed; /* as one message; else as raw bytes */
    bool after;  /* behind a good answer; else instead of it */
} garbage_case;

static void put_garbage(hostile *h, rig_pair *pair, const garbage_case *c) {
    if (!c->framed) {
        rig_say(pair, c->bytes.ptr, c->bytes.len);
        return;
    }
    char *text = calloc(1, c->bytes.len + 1);
    assert_non_null(text);
    memcpy(text, c->bytes.ptr, c->bytes.len);
    hostile_put(h, pair, "$V", &(hostile_values){.value = text});
    free(text);
}

static void run_garbage(const hostile_wire *wire, const garbage_case *c) {
    hostile h;
    hostile_call call, second = {0}, other;
    hostile_init(&h, wire, RIG_SERVER);
    hostile_call_plain(&h, hostile_connect(&h), &other);
    hostile_call_plain(&h, hostile_connect(&h), &call);
    if (rig_capacity(call.pair) > 0)
        hostile_call_plain(&h, call.pair, &second);
    if (c->after)
        hostile_put(&h, call.pair, wire->result, &(hostile_values){.id = call.id, .job = call.job, .value = "1"});
    put_garbage(&h, call.pair, c);
    rig_run(&h.r);
    if (c->after)
        hostile_check_done(call.rc, "1");
    hostile_check_answered(&h, &other);
    rig_say_eof(call.pair);
    rig_advance(&h.r, MINUTE_MS);
    assert_int_equal(call.rc->ended, 1);
    assert_true(!second.rc || (second.rc->ended == 1 && second.rc->status != EW_STATUS_OK));
    hostile_finish(&h);
}

static void run_all_garbage(const hostile *h, bool after) {
    garbage_case c = {.after = after};
    for (size_t i = 0; hostile_garbage(i, &c.bytes); i++) {
        for (int framed = 0; framed < 2; framed++) {
            c.framed = framed == 1;
            run_garbage(h->wire, &c);
        }
    }
}

static void garbage_instead(hostile *h) { run_all_garbage(h, false); }

static void garbage_after(hostile *h) { run_all_garbage(h, true); }

/* ---- codes ---- */

static void every_error_code(hostile *h) {
    if (!h->wire->error)
        return;
    rig_pair *pair = hostile_connect(h);
    char *codes = strdup(h->wire->codes), *rest = codes;
    assert_non_null(codes);
    for (char *code; (code = strsep(&rest, " ")) != NULL;) {
        hostile_call call;
        rig_run(&h->r);
        pair = rig_capacity(pair) > 0 ? pair : hostile_connect(h);
        hostile_call_plain(h, pair, &call);
        hostile_answer(h, &call, h->wire->error, code);
        if (call.rc->ended != 1 || call.rc->status == EW_STATUS_OK)
            fail_msg("%s: error code %s: %u ends, status %s", h->wire->name, code, call.rc->ended,
                     ew_status_name(call.rc->status));
    }
    free(codes);
}

/* ---- handshakes ---- */

/* The server answers the handshake with anything but what it should. */
static void bad_handshake(hostile *h) {
    static const char *const texts[] = {
        "{'jsonrpc':'2.0','id':$I,'error':{'code':-32603,'message':'no'}}",
        "{'jsonrpc':'2.0','id':$I,'result':null}",
        "{'jsonrpc':'2.0','id':$I,'result':{'server_protocol_version':'x'}}",
        "{'jsonrpc':'2.0','id':$I,'result':{},'error':{}}",
        "{'jsonrpc':'2.0','id':'nope','result':{'server_protocol_version':1}}",
        "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'no'}}",
        "{'jsonrpc':'2.0','id':1,'method':'register','params':null}",
        "{'jsonrpc':'2.0','id':1,'method':'register','params':{'id':1,'pid':'x'}}",
        "{'jsonrpc':'2.0','method':'streamChunk','params':{'requestId':'1','chunk':1}}",
        "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{}}",
        "[]",
        "null",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char id[80] = "\"1\"";
        rig_pair *pair = rig_connect_raw(&h->r, RIG_SERVER);
        rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/echo", .input = EW_STR("{}")});
        rig_run(&h->r);
        char *text = hostile_take(h, pair);
        ew_str found = text ? ew_json_get(ew_str_from(text), "/id") : EW_STR("");
        if (found.len)
            (void)snprintf(id, sizeof id, "%.*s", (int)found.len, found.ptr);
        free(text);
        hostile_put(h, pair, texts[i], &(hostile_values){.id = id});
        hostile_say(h, pair, texts[i], &(hostile_values){.id = id});
        rig_say_eof(pair);
        rig_advance(&h->r, MINUTE_MS);
        assert_int_equal(rc->ended, 1);
        assert_int_not_equal(rc->status, EW_STATUS_OK);
    }
}

/* ---- floods ---- */

static void floods_with_strays(hostile *h) {
    scene s = begin(h);
    for (int round = 0; round < 2000; round++) {
        for (size_t k = 0; h->wire->strays[k]; k++)
            hostile_put(h, s.call.pair, h->wire->strays[k], &(hostile_values){.id = "1"});
        rig_run(&h->r);
    }
    if (!hostile_over(h, s.call.pair)) {
        hostile_answer(h, &s.call, h->wire->result, "1");
        hostile_check_done(s.call.rc, "1");
    }
    hostile_check_answered(h, &s.other);
}

/* Requests to the calling side, whose answers the server never reads. */
static void floods_with_requests(hostile *h) {
    hostile_call call, other;
    char pad[1001];
    (void)snprintf(pad, sizeof pad, "\"%0998d\"", 0);
    hostile_call_plain(h, hostile_connect(h), &other);
    hostile_call_plain(h, hostile_connect(h), &call);
    rig_stall(call.pair, RIG_CLIENT, true);
    for (int i = 0; i < 5000; i++) {
        hostile_put(h, call.pair, "{'jsonrpc':'2.0','id':$V,'method':'nope','params':{}}",
                    &(hostile_values){.value = pad});
        if (i % 100 == 0)
            rig_run(&h->r);
    }
    rig_run(&h->r);
    hostile_check_answered(h, &other);
    rig_advance(&h->r, h->r.limits.stall_ms + 1);
    assert_int_equal(call.rc->ended, 1);
}

/* One message that never ends. */
static void sends_endless_message(hostile *h) {
    static const char *const starts[] = {
        "{'jsonrpc':'2.0','id':'x','result':'",
        "{'jsonrpc':'2.0','method':'streamChunk','params':{'requestId':'",
        "HTTP/1.1 200 OK\r\nX: ",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{'result':'",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n{'result':'",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ",
        "HTTP/1.1 200 OK\r\n\r\n",
    };
    static char pad[4096];
    memset(pad, 'x', sizeof pad);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        hostile_call call, other;
        hostile_call_plain(h, hostile_connect(h), &other);
        hostile_call_plain(h, hostile_connect(h), &call);
        char *start = hostile_text(starts[i], &(hostile_values){0});
        hostile_say_bytes(h, call.pair, start, strlen(start));
        free(start);
        for (int k = 0; k < 200 && !call.rc->ended; k++)
            hostile_say_bytes(h, call.pair, pad, sizeof pad);
        hostile_check_answered(h, &other);
        rig_say_eof(call.pair);
        rig_advance(&h->r, MINUTE_MS);
        assert_int_equal(call.rc->ended, 1);
        assert_int_not_equal(call.rc->status, EW_STATUS_OK);
    }
}

/* Frames whose length exceeds every limit, and small ones that add up. */
static void sends_large_frames(hostile *h) {
    hostile_call call, other;
    char *value = calloc(1, 200 * 1024 + 3);
    assert_non_null(value);
    memset(value, 'x', 200 * 1024 + 2);
    value[0] = value[200 * 1024 + 1] = '"';
    hostile_call_plain(h, hostile_connect(h), &other);
    hostile_call_plain(h, hostile_connect(h), &call);
    hostile_answer(h, &call, h->wire->result, value);
    free(value);
    hostile_check_answered(h, &other);
    rig_say_eof(call.pair);
    rig_advance(&h->r, MINUTE_MS);
    assert_int_equal(call.rc->ended, 1);
    assert_int_not_equal(call.rc->status, EW_STATUS_OK);
}

/* The caller does not take chunks and the server sends thousands, while another call waits on the connection. */
static void floods_with_chunks(hostile *h) {
    hostile_call call, other, beside;
    char value[1100];
    (void)snprintf(value, sizeof value, "\"%01000d\"", 0);
    rig_request request = {.key = "/test/chunks", .input = EW_STR("{}"), .stream = true, .full_after = 1};
    hostile_call_plain(h, hostile_connect(h), &other);
    rig_pair *pair = hostile_connect(h);
    hostile_open(h, pair, &request, &call);
    if (h->wire->framing == HOSTILE_LINES) { /* the first message asks what the peer is: not everywire */
        hostile_answer(h, &call, h->wire->error, "-32601");
        char *text = hostile_take(h, pair);
        assert_non_null(text);
        ew_str id = ew_json_get(ew_str_from(text), "/id");
        (void)snprintf(call.id, sizeof call.id, "%.*s", (int)id.len, id.ptr);
        free(text);
        hostile_say(h, pair, "{'jsonrpc':'2.0','id':$I,'stream':1,'result':null}", &(hostile_values){.id = call.id});
    }
    hostile_call_plain(h, pair, &beside);
    for (int i = 0; i < 5000; i++) {
        hostile_put(h, pair, h->wire->chunk, &(hostile_values){.id = call.id, .value = value});
        if (i % 50 == 0)
            rig_run(&h->r);
    }
    hostile_check_answered(h, &other);
    rig_advance(&h->r, MINUTE_MS / 12);
    assert_int_equal(call.rc->ended, 1);
    assert_true(call.rc->n_chunks < 1000);
    hostile_check_answered(h, &beside);
}

#define MANY EW__CAN_MANY
static const hostile_scenario scenarios[] = {
    {"never_answers", never_answers, 0, HOSTILE_ANY},
    {"never_answers_cancel", never_answers_cancel, 0, HOSTILE_ANY},
    {"never_reads", never_reads, 0, HOSTILE_ANY},
    {"answers_twice", answers_twice, 0, HOSTILE_ANY},
    {"answers_twice_later", answers_twice_later, 0, HOSTILE_ANY},
    {"answers_twice_queued", answers_twice_queued, 0, HOSTILE_ANY},
    {"answers_result_and_error", answers_result_and_error, MANY, HOSTILE_NEEDS_IDS},
    {"answers_other_ids", answers_other_ids, 0, HOSTILE_NEEDS_IDS},
    {"answers_id_of_other_connection", answers_id_of_other_connection, 0, HOSTILE_NEEDS_IDS},
    {"answers_out_of_order", answers_out_of_order, MANY, HOSTILE_NEEDS_IDS},
    {"answers_after_end", answers_after_end, 0, HOSTILE_ANY},
    {"answers_after_release", answers_after_release, 0, HOSTILE_ANY},
    {"sends_unasked_chunks", sends_unasked_chunks, EW__CAN_CHUNKS, HOSTILE_NEEDS_IDS},
    {"closes_at_each_byte", closes_at_each_byte, 0, HOSTILE_ANY},
    {"closes_before_request", closes_before_request, 0, HOSTILE_ANY},
    {"garbage_instead", garbage_instead, 0, HOSTILE_ANY},
    {"garbage_after", garbage_after, 0, HOSTILE_ANY},
    {"every_error_code", every_error_code, 0, HOSTILE_ANY},
    {"every_http_2xx", hostile_http_2xx, 0, HOSTILE_NEEDS_HTTP},
    {"every_other_http_status", hostile_http_statuses, 0, HOSTILE_NEEDS_HTTP},
    {"hostile_http_events", hostile_http_events, 0, HOSTILE_NEEDS_HTTP},
    {"bad_handshake", bad_handshake, 0, HOSTILE_NEEDS_HANDSHAKE},
    {"floods_with_strays", floods_with_strays, MANY, HOSTILE_NEEDS_IDS},
    {"floods_with_requests", floods_with_requests, MANY, HOSTILE_NEEDS_IDS},
    {"sends_endless_message", sends_endless_message, 0, HOSTILE_ANY},
    {"sends_large_frames", sends_large_frames, 0, HOSTILE_ANY},
    {"floods_with_chunks", floods_with_chunks, EW__CAN_CHUNKS, HOSTILE_NEEDS_IDS},
};

int main(int argc, char **argv) {
    return hostile_main("call", scenarios, sizeof scenarios / sizeof *scenarios, RIG_SERVER, argc, argv);
}
