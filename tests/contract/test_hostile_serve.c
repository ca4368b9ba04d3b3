/*
 * tests/contract/test_hostile_serve.c: the serving side of every wire against a hostile client. In each
 * scenario every call ends, memory stays bounded, and a client on another connection is served
 * (hostile_finish and hostile_check_neighbour check that).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/hostile.h"

#include <stdio.h>
#include <stdlib.h>

#define TO_ECHO_OF(host) "POST /test/echo HTTP/1.1\r\n" host "Content-Type: application/json\r\n"
#define TO_ECHO TO_ECHO_OF("Host: 127.0.0.1:3400\r\n")
#define MINUTE_MS ((uint64_t)60 * 1000)

static unsigned live_calls(const hostile *h) { return h->r.side[RIG_SERVER].executor.calls->live; }

/* Text of the given size as a JSON object; for free(). */
static char *padded(size_t size) {
    char *text = malloc(size + 16);
    assert_non_null(text);
    (void)snprintf(text, size + 16, "{\"pad\":\"%0*d\"}", (int)size, 0);
    return text;
}

/* ---- a client that does not read ---- */

/* Requests whose answers are never read. */
static void never_reads(hostile *h) {
    char *value = padded(4000), id[24];
    rig_pair *pair = hostile_connect(h);
    rig_stall(pair, RIG_SERVER, true);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(id, sizeof id, "\"%d\"", i);
        hostile_request(h, pair, "/test/echo", id, value);
    }
    free(value);
    hostile_check_neighbour(h);
    assert_true(pair->end[RIG_SERVER].peak_out <= 2 * h->r.limits.out_max_bytes);
    rig_advance(&h->r, h->r.limits.stall_ms + 1);
    assert_true(pair->end[RIG_SERVER].closing);
    assert_int_equal(live_calls(h), 0);
}

/* Errors whose answers are never read: requests that no handler sees. */
static void never_reads_errors(hostile *h) {
    char *value = padded(100), id[24];
    rig_pair *pair = hostile_connect(h);
    rig_stall(pair, RIG_SERVER, true);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(id, sizeof id, "\"%d\"", i);
        hostile_request(h, pair, "/test/nope", id, value);
    }
    free(value);
    hostile_check_neighbour(h);
    assert_true(pair->end[RIG_SERVER].peak_out <= 2 * h->r.limits.out_max_bytes);
    rig_advance(&h->r, h->r.limits.stall_ms + 1);
    assert_true(pair->end[RIG_SERVER].closing);
    assert_int_equal(live_calls(h), 0);
}

static void never_reads_stream(hostile *h) {
    rig_pair *pair = hostile_connect(h);
    rig_stall(pair, RIG_SERVER, true);
    const char *template = h->wire->stream ? h->wire->stream : h->wire->request;
    hostile_say(h, pair, template,
                &(hostile_values){.id = "\"1\"", .key = "/test/chunks", .value = "{'n':1000,'size':4000}"});
    hostile_check_neighbour(h);
    rig_advance(&h->r, h->r.limits.stall_ms + 1);
    assert_int_equal(live_calls(h), 0);
    assert_true(pair->end[RIG_SERVER].peak_out <= h->r.limits.out_max_bytes);
}

/* ---- ids ---- */

/* The same id while its call runs, and again after its end. */
static void repeats_id(hostile *h) {
    rig_pair *pair = hostile_connect(h);
    for (int i = 0; i < 5; i++)
        hostile_request(h, pair, "/test/sleep", "\"same\"", "{'ms':10,'out':{'slept':1}}");
    hostile_check_neighbour(h);
    rig_advance(&h->r, MINUTE_MS / 2);
    assert_int_equal(live_calls(h), 0);
    unsigned opened = h->r.n_opened - 1; /* without the neighbour's */
    unsigned answers = hostile_count(h, pair, "{\"slept\":1}");
    assert_int_equal(answers, opened);
    if (hostile_over(h, pair))
        return;
    hostile_request(h, pair, "/test/echo", "\"same\"", "{'again':1}");
    assert_int_equal(hostile_count(h, pair, "{\"again\":1}"), 1);
}

/* Ids of every type; whatever is refused, each call that was opened has its end. */
static void odd_ids(hostile *h) {
    static const char *const ids[] = {
        "0",    "-0",          "1e999",       "1.5",
        "null", "true",        "[]",          "{}",
        "\"\"", "\"\\u0000\"", "\"\\ud800\"", "123456789012345678901234567890123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        rig_pair *pair = hostile_connect(h);
        hostile_request(h, pair, "/test/echo", ids[i], "{}");
        hostile_request(h, pair, "/test/never", ids[i], "{}");
        hostile_request(h, pair, "/test/never", ids[i], "{}");
        rig_cut(pair, RIG_CLIENT, RIG_RESET);
        rig_advance(&h->r, 2000);
        assert_int_equal(live_calls(h), 0);
    }
    char *id = padded(20000);
    hostile_request(h, hostile_connect(h), "/test/echo", id, "{}");
    free(id);
    hostile_check_neighbour(h);
}

static void cancels_unknown(hostile *h) {
    static const char *const ids[] = {"\"nope\"", "0", "null", "{}", "[]", "\"\"", "true"};
    rig_pair *pair = hostile_connect(h);
    hostile_request(h, pair, "/test/sleep", "\"mine\"", "{'ms':10,'out':{'slept':1}}");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        hostile_say(h, pair, h->wire->cancel, &(hostile_values){.id = ids[i], .job = ids[i]});
    hostile_check_neighbour(h);
    rig_advance(&h->r, 1000);
    assert_int_equal(hostile_count(h, pair, "{\"slept\":1}"), 1);
    rig_advance(&h->r, MINUTE_MS / 2);
    assert_int_equal(live_calls(h), 0);
}

/* Cancels before, twice and after the end: one answer. */
static void cancels_twice(hostile *h) {
    hostile_values values = {.id = "\"mine\"", .job = "\"mine\"", .key = "/test/never", .value = "{}"};
    rig_pair *pair = hostile_connect(h);
    hostile_say(h, pair, h->wire->cancel, &values);
    hostile_say(h, pair, h->wire->request, &values);
    assert_int_equal(live_calls(h), 1);
    hostile_put(h, pair, h->wire->cancel, &values);
    hostile_put(h, pair, h->wire->cancel, &values);
    hostile_say(h, pair, h->wire->cancel, &values);
    assert_int_equal(live_calls(h), 0);
    assert_int_equal(h->r.n_cancelled, 1);
    hostile_say(h, pair, h->wire->cancel, &values);
    unsigned ends = 0;
    for (char *text; (text = hostile_take(h, pair)) != NULL; free(text))
        ends += strstr(text, "\"CANCELLED\"") || strstr(text, "stopped");
    assert_int_equal(ends, 1);
    hostile_check_neighbour(h);
}

/* ---- messages that do not belong there ---- */

static void sends_strays(hostile *h) {
    rig_pair *pair = hostile_connect(h);
    hostile_request(h, pair, "/test/sleep", "\"mine\"", "{'ms':10,'out':{'slept':1}}");
    for (int round = 0; round < 1500; round++) {
        for (size_t s = 0; h->wire->strays[s]; s++)
            hostile_put(h, pair, h->wire->strays[s], &(hostile_values){.id = "1"});
        rig_run(&h->r);
    }
    hostile_check_neighbour(h);
    rig_advance(&h->r, 1000);
    assert_int_equal(live_calls(h), 0);
    assert_int_equal(hostile_count(h, pair, "{\"slept\":1}"), 1);
}

/* The client answers its own call: results, errors and chunks with its id. */
static void answers_own_call(hostile *h) {
    hostile_values values = {.id = "\"mine\"", .job = "\"mine\"", .value = "666"};
    rig_pair *pair = hostile_connect(h);
    hostile_request(h, pair, "/test/sleep", "\"mine\"", "{'ms':10,'out':{'slept':1}}");
    hostile_say(h, pair, h->wire->result, &values);
    if (h->wire->chunk)
        hostile_say(h, pair, h->wire->chunk, &values);
    hostile_say(h, pair, h->wire->error, &values);
    rig_advance(&h->r, 100);
    assert_int_equal(live_calls(h), 0);
    assert_true(hostile_count(h, pair, "{\"slept\":1}") <= 1);
    hostile_check_neighbour(h);
}

/* Input for calls that have none, after the end of the input, and after the end of the call. */
static void input_after_end(hostile *h) {
    hostile_values values = {.id = "\"mine\"", .key = "/test/sum", .value = "1"};
    rig_pair *pair = hostile_connect(h);
    for (int i = 0; i < 100; i++)
        hostile_say(h, pair, h->wire->input, &(hostile_values){.id = "\"none\"", .value = "1"});
    hostile_say(h, pair, h->wire->input_stream, &values);
    hostile_say(h, pair, h->wire->input, &values);
    hostile_put(h, pair, h->wire->input_end, &values);
    hostile_put(h, pair, h->wire->input, &values);
    hostile_say(h, pair, h->wire->input_end, &values);
    assert_int_equal(live_calls(h), 0);
    assert_int_equal(hostile_count(h, pair, "{\"sum\":1,\"n\":1}"), 1);
    for (int i = 0; i < 100; i++)
        hostile_say(h, pair, i % 2 ? h->wire->input : h->wire->input_end, &values);
    hostile_check_neighbour(h);
}

/* Input that the handler does not take yet. */
static void floods_with_input(hostile *h) {
    char *value = padded(1000);
    hostile_values values = {.id = "\"mine\"", .key = "/test/lazy", .value = "{'after_ms':60000}"};
    rig_pair *pair = hostile_connect(h);
    hostile_say(h, pair, h->wire->input_stream, &values);
    values.value = value;
    for (int i = 0; i < 5000; i++) {
        hostile_put(h, pair, h->wire->input, &values);
        if (i % 50 == 0)
            rig_run(&h->r);
    }
    free(value);
    hostile_check_neighbour(h);
    rig_advance(&h->r, 2 * MINUTE_MS);
    assert_int_equal(live_calls(h), 0);
}

/* ---- too much ---- */

static void opens_too_many(hostile *h) {
    char id[24];
    rig_pair *pair = hostile_connect(h);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(id, sizeof id, "\"%d\"", i);
        hostile_request(h, pair, "/test/never", id, "{}");
    }
    assert_true(h->r.n_opened <= 20 && live_calls(h) <= 20);
    hostile_check_neighbour(h);
    unsigned opened = h->r.n_opened - 1;
    rig_cut(pair, RIG_CLIENT, RIG_RESET);
    rig_advance(&h->r, 2000);
    assert_int_equal(live_calls(h), 0);
    assert_int_equal(h->r.n_cancelled, opened);
}

static void sends_endless_message(hostile *h) {
    static const char *const starts[] = {
        "{'jsonrpc':'2.0','id':'",
        "{'jsonrpc':'2.0','id':1,'method':'/test/echo','params':'",
        "POST /",
        TO_ECHO "X: ",
        TO_ECHO "Content-Length: 99999999999\r\n\r\n{'data':'",
        TO_ECHO "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n{'data':'",
        TO_ECHO "Transfer-Encoding: chunked\r\n\r\n1;",
    };
    static char pad[4096];
    memset(pad, 'x', sizeof pad);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        rig_pair *pair = hostile_connect(h);
        char *start = hostile_text(starts[i], &(hostile_values){0});
        hostile_say_bytes(h, pair, start, strlen(start));
        free(start);
        for (int k = 0; k < 200 && !hostile_over(h, pair); k++)
            hostile_say_bytes(h, pair, pad, sizeof pad);
        hostile_check_neighbour(h);
        assert_int_equal(h->r.n_opened, i + 1); /* the neighbour's */
        rig_cut(pair, RIG_CLIENT, RIG_RESET);
    }
}

static void sends_large_request(hostile *h) {
    char *value = padded(200 * 1024);
    rig_pair *pair = hostile_connect(h);
    hostile_request(h, pair, "/test/echo", "\"1\"", value);
    free(value);
    assert_int_equal(h->r.n_opened, 0);
    hostile_check_neighbour(h);
}

/* ---- closing and breaking off ---- */

typedef enum cut_kind { CUT_EOF, CUT_RESET, CUT_SILENCE } cut_kind;

static void cut_request(const hostile_wire *wire, size_t at, cut_kind kind) {
    hostile h;
    size_t n = 0;
    hostile_values values = {.id = "\"1\"", .key = "/test/never", .value = "{}"};
    hostile_init(&h, wire, RIG_CLIENT);
    rig_pair *pair = hostile_connect(&h);
    char *bytes = hostile_frame(&h, wire->request, &values, &n);
    hostile_say_bytes(&h, pair, bytes, at < n ? at : n);
    free(bytes);
    if (kind == CUT_EOF)
        rig_say_eof(pair);
    else if (kind == CUT_RESET)
        rig_cut(pair, RIG_CLIENT, RIG_RESET);
    rig_run(&h.r);
    hostile_check_neighbour(&h);
    rig_advance(&h.r, 10 * MINUTE_MS);
    unsigned opened = h.r.n_opened - 1;
    assert_true(opened <= 1);
    if (opened == 1 && at + 1 < n) /* only a newline may be missing */
        fail_msg("%s: %zu of %zu bytes were accepted as a request", wire->name, at, n);
    bool may_run = kind == CUT_SILENCE || (wire->stdio && kind == CUT_EOF); /* the peer may still read */
    assert_int_equal(live_calls(&h), opened - h.r.n_cancelled);
    assert_true(may_run || h.r.n_cancelled == opened);
    hostile_finish(&h);
}

static void closes_at_each_byte(hostile *h) {
    size_t n = 0;
    hostile_values values = {.id = "\"1\"", .key = "/test/never", .value = "{}"};
    free(hostile_frame(h, h->wire->request, &values, &n));
    for (size_t at = 0; at <= n; at++)
        for (int kind = CUT_EOF; kind <= CUT_SILENCE; kind++)
            cut_request(h->wire, at, (cut_kind)kind);
}

/* Half a message, and then silence: the connection does not stay. */
static void stops_inside_message(hostile *h) {
    size_t n = 0;
    hostile_values values = {.id = "\"1\"", .key = "/test/echo", .value = "{}"};
    char *bytes = hostile_frame(h, h->wire->request, &values, &n);
    rig_pair *pair = hostile_connect(h);
    hostile_say_bytes(h, pair, bytes, n / 2);
    free(bytes);
    rig_advance(&h->r, 2 * MINUTE_MS);
    assert_true(h->wire->stdio || hostile_over(h, pair));
    assert_int_equal(h->r.n_opened, 0);
    hostile_check_neighbour(h);
}

/* ---- garbage ---- */

static void run_garbage(const hostile_wire *wire, ew_str bytes, bool framed, bool after) {
    hostile h;
    hostile_values values = {.id = "\"1\"", .job = "\"1\"", .key = "/test/echo", .value = "{'good':1}"};
    hostile_init(&h, wire, RIG_CLIENT);
    rig_pair *pair = hostile_connect(&h);
    if (after)
        hostile_put(&h, pair, wire->request, &values);
    char *text = calloc(1, bytes.len + 1);
    assert_non_null(text);
    memcpy(text, bytes.ptr, bytes.len);
    if (framed)
        hostile_put(&h, pair, "$V", &(hostile_values){.key = "/test/never", .value = text});
    else
        rig_say(pair, bytes.ptr, bytes.len);
    free(text);
    rig_run(&h.r);
    if (after)
        assert_int_equal(hostile_count(&h, pair, "{\"good\":1}"), 1);
    hostile_check_neighbour(&h);
    rig_cut(pair, RIG_CLIENT, RIG_RESET);
    rig_advance(&h.r, 2000);
    assert_int_equal(live_calls(&h), 0);
    hostile_finish(&h);
}

static void garbage(hostile *h) {
    ew_str bytes;
    for (size_t i = 0; hostile_garbage(i, &bytes); i++)
        for (int k = 0; k < 4; k++)
            run_garbage(h->wire, bytes, k & 1, k & 2);
}

/* Heads that two readers could understand differently. The first request shows that a clean one is accepted. */
static void ambiguous_http(hostile *h) {
    static const char *const requests[] = {
        TO_ECHO "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        TO_ECHO "Content-Length: +2\r\n\r\n{}",
        TO_ECHO "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        TO_ECHO "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        TO_ECHO "Host: other\r\nContent-Length: 2\r\n\r\n{}",
        TO_ECHO_OF("") "Content-Length: 2\r\n\r\n{}",
        TO_ECHO_OF("Host: other\r\n") "Content-Length: 2\r\n\r\n{}",
        TO_ECHO_OF(" Host: 127.0.0.1:3400\r\n") "Content-Length: 2\r\n\r\n{}",
        TO_ECHO_OF("Host : 127.0.0.1:3400\r\n") "Content-Length: 2\r\n\r\n{}",
        TO_ECHO_OF("Host: 127.0.0.1:3400\n") "Content-Length: 2\r\n\r\n{}",
        TO_ECHO "Content-Length: 2\n\n{}",
        TO_ECHO "Content-Length: 2\r\nX: a\r\n b\r\n\r\n{}",
        "CONNECT 127.0.0.1:3400 HTTP/1.1\r\nHost: 127.0.0.1:3400\r\n\r\n",
    };
    rig_pair *good = hostile_connect(h);
    hostile_say_bytes(h, good, TO_ECHO "Content-Length: 2\r\n\r\n{}", strlen(TO_ECHO) + 23);
    assert_int_equal(hostile_count(h, good, "HTTP/1.1 200 "), h->wire->guest ? 0 : 1);
    h->r.n_opened = 0;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        rig_pair *pair = hostile_connect(h);
        hostile_say_bytes(h, pair, requests[i], strlen(requests[i]));
        if (hostile_count(h, pair, "HTTP/1.1 200 "))
            fail_msg("%s: accepted: %s", h->wire->name, requests[i]);
        hostile_check_neighbour(h);
        assert_int_equal(h->r.n_opened, i + 1); /* the neighbour's */
    }
}

#define MANY EW__CAN_MANY
static const hostile_scenario scenarios[] = {
    {"never_reads", never_reads, 0, HOSTILE_ANY},
    {"never_reads_errors", never_reads_errors, 0, HOSTILE_ANY},
    {"never_reads_stream", never_reads_stream, EW__CAN_CHUNKS, HOSTILE_NEEDS_IDS},
    {"repeats_id", repeats_id, MANY, HOSTILE_NEEDS_IDS},
    {"odd_ids", odd_ids, MANY, HOSTILE_NEEDS_IDS},
    {"cancels_unknown", cancels_unknown, MANY, HOSTILE_NEEDS_IDS},
    {"cancels_twice", cancels_twice, MANY, HOSTILE_NEEDS_IDS},
    {"sends_strays", sends_strays, MANY, HOSTILE_NEEDS_IDS},
    {"answers_own_call", answers_own_call, MANY, HOSTILE_NEEDS_IDS},
    {"input_after_end", input_after_end, EW__CAN_INPUT, HOSTILE_NEEDS_IDS},
    {"floods_with_input", floods_with_input, EW__CAN_INPUT, HOSTILE_NEEDS_IDS},
    {"opens_too_many", opens_too_many, 0, HOSTILE_ANY},
    {"sends_endless_message", sends_endless_message, 0, HOSTILE_ANY},
    {"sends_large_request", sends_large_request, 0, HOSTILE_ANY},
    {"closes_at_each_byte", closes_at_each_byte, 0, HOSTILE_ANY},
    {"stops_inside_message", stops_inside_message, 0, HOSTILE_ANY},
    {"garbage", garbage, 0, HOSTILE_ANY},
    {"ambiguous_http", ambiguous_http, 0, HOSTILE_NEEDS_HTTP},
};

int main(int argc, char **argv) {
    return hostile_main("serve", scenarios, sizeof scenarios / sizeof *scenarios, RIG_CLIENT, argc, argv);
}
