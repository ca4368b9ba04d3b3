/*
 * tests/contract/scenarios_hard.c: what goes wrong: cancelling, deadlines, lost connections, readers that do not
 * read, many at once, going down.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"

#include <stdio.h>

/* ---- cancel ---- */

static void cancel_before(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/never"});
    rig_call_cancel(rc); /* nothing has left yet */
    rig_run(r);
    must_fail(r, rc, EW_STATUS_CANCELLED);
    MUST(r->n_opened == r->n_cancelled);
}

static void cancel_while(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_plain(rig_connect(r), "/test/never", NULL);
    MUST(r->n_opened == 1 && rc->ended == 0);
    rig_call_cancel(rc);
    rig_call_cancel(rc);
    rig_run(r);
    must_fail(r, rc, EW_STATUS_CANCELLED);
    MUST(r->n_cancelled == 1 && r->side[RIG_SERVER].executor.calls->live == 0);
}

static void cancel_after(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc = call_plain(pair, "/test/echo", "1");
    rig_call_cancel(rc);
    rig_run(r);
    must_succeed(r, rc, "1");
    must_succeed(r, call_plain(pair, "/test/echo", "2"), "2");
}

static void cancel_stream(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_stream(rig_connect(r), "/test/chunks", "{\"n\":100,\"every_ms\":10}");
    rig_advance(r, 25);
    MUST(rc->n_chunks == 3);
    rig_call_cancel(rc);
    rig_advance(r, 100);
    must_fail(r, rc, EW_STATUS_CANCELLED);
    MUST(rc->n_chunks == 3 && r->n_cancelled == 1 && r->side[RIG_SERVER].executor.calls->live == 0);
}

/* A callee may go on to its end: that end counts where the wire waits for it, and is late where it does not. */
static void cancel_ignored(rig *r, const contract_wire *w) {
    rig_call *rc = call_plain(rig_connect(r), "/test/stubborn", "{\"ms\":50}");
    rig_call_cancel(rc);
    rig_run(r);
    MUST(rc->ended == (w->cancel_is_ours ? 1 : 0));
    rig_advance(r, 100);
    if (w->cancel_is_ours) {
        must_fail(r, rc, EW_STATUS_CANCELLED);
        MUST(rig_dropped(r, RIG_SERVER) == 1);
    } else {
        must_succeed(r, rc, "\"slept\"");
    }
}

/* The caller itself goes away. */
static void let_go(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc = call_plain(pair, "/test/never", NULL);
    rig_call_release(rc);
    rig_run(r);
    MUST(r->n_cancelled == 1 && r->side[RIG_SERVER].executor.calls->live == 0 &&
         r->side[RIG_CLIENT].executor.calls->live == 0);
    must_succeed(r, call_plain(rig_connect(r), "/test/echo", "1"), "1");
}

static void let_go_of_stream(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_stream(rig_connect(r), "/test/chunks", "{\"n\":100,\"every_ms\":10}");
    rig_advance(r, 15);
    rig_call_release(rc);
    rig_advance(r, 15);
    MUST(r->n_cancelled == 1 && r->side[RIG_SERVER].executor.calls->live == 0 && rc->n_chunks == 2);
}

/* ---- deadlines ---- */

/* The callee's side keeps the deadline by itself: the caller's timer does not run. It is the caller's deadline all the same. */
static void deadline_there(rig *r, const contract_wire *w) {
    (void)w;
    r->side[RIG_CLIENT].frozen = true;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/never", .timeout_ms = 50});
    rig_run(r);
    MUST(r->seen_deadline_ms == 50);
    rig_advance(r, 49);
    MUST(rc->ended == 0);
    rig_advance(r, 1);
    must_fail(r, rc, EW_STATUS_DEADLINE_EXCEEDED);
    MUST(rc->origin == EW_ORIGIN_DEADLINE && r->n_cancelled == 1);
}

static void deadline_there_streamed(rig *r, const contract_wire *w) {
    (void)w;
    r->side[RIG_CLIENT].frozen = true;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/chunks",
                                                           .input = EW_STR("{\"n\":100,\"every_ms\":20}"),
                                                           .timeout_ms = 50,
                                                           .stream = true});
    rig_advance(r, 60);
    must_fail(r, rc, EW_STATUS_DEADLINE_EXCEEDED);
    MUST(rc->n_chunks == 3 && r->n_cancelled == 1);
}

/* So does the caller's side: the callee's clock stands, and it is cancelled. */
static void deadline_here(rig *r, const contract_wire *w) {
    r->side[RIG_SERVER].frozen = true;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/never", .timeout_ms = 50});
    rig_advance(r, 49);
    MUST(rc->ended == 0);
    rig_advance(r, 1);
    must_fail(r, rc, EW_STATUS_DEADLINE_EXCEEDED);
    rig_advance(r, w->late_ms);
    MUST(rc->origin == EW_ORIGIN_DEADLINE && r->n_cancelled == 1 && r->side[RIG_SERVER].executor.calls->live == 0);
}

static void deadline_both(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = rig_open(rig_connect(r), &(rig_request){.key = "/test/never", .timeout_ms = 50});
    rig_advance(r, 100);
    must_fail(r, rc, EW_STATUS_DEADLINE_EXCEEDED);
}

static void deadline_kept(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc =
        rig_open(pair, &(rig_request){.key = "/test/sleep", .input = EW_STR("{\"ms\":40}"), .timeout_ms = 50});
    rig_advance(r, 100);
    must_succeed(r, rc, "\"slept\"");
    must_succeed(r, call_plain(pair, "/test/echo", "1"), "1");
}

/* ---- lost connections ---- */

static void lose(rig *r, const contract_wire *w, int closer, bool stream) {
    rig_pair *pair = rig_connect(r);
    rig_call *rc = stream ? call_stream(pair, "/test/chunks", "{\"n\":100,\"every_ms\":10}")
                          : call_plain(pair, "/test/never", NULL);
    MUST(rc->ended == 0 && r->n_opened == 1);
    rig_close(pair, closer);
    rig_advance(r, w->eof_ms);
    must_fail(r, rc, EW_STATUS_UNAVAILABLE);
    MUST(rc->origin == EW_ORIGIN_CONNECT && r->n_cancelled == 1);
    MUST(r->side[RIG_SERVER].executor.calls->live == 0 && pair->end[0].gone && pair->end[1].gone);
}

static void lose_client(rig *r, const contract_wire *w) { lose(r, w, RIG_CLIENT, false); }

static void lose_server(rig *r, const contract_wire *w) { lose(r, w, RIG_SERVER, false); }

static void lose_client_streaming(rig *r, const contract_wire *w) { lose(r, w, RIG_CLIENT, true); }

static void lose_server_streaming(rig *r, const contract_wire *w) { lose(r, w, RIG_SERVER, true); }

static void lose_unsent(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/echo"});
    rig_close(pair, RIG_SERVER);
    rig_run(r);
    must_fail(r, rc, EW_STATUS_UNAVAILABLE);
}

/* What a handler says when nobody is there any more is dropped and counted. */
static void late_answer(rig *r, const contract_wire *w) {
    rig_pair *pair = rig_connect(r);
    char input[40];
    (void)snprintf(input, sizeof input, "{\"ms\":%u}", (unsigned)w->eof_ms + 50);
    rig_call *rc = call_plain(pair, "/test/stubborn", input);
    rig_close(pair, RIG_CLIENT);
    rig_advance(r, w->eof_ms);
    must_fail(r, rc, EW_STATUS_UNAVAILABLE);
    MUST(r->side[RIG_SERVER].executor.calls->live == 1 && rig_dropped(r, RIG_SERVER) == 0);
    rig_advance(r, 50);
    MUST(r->side[RIG_SERVER].executor.calls->live == 0 && rig_dropped(r, RIG_SERVER) == 1);
}

/* ---- slow readers ---- */

#define MUCH "{\"n\":60,\"size\":4000}"

/* The calling program does not take chunks: the producer waits, memory stays bounded, and all arrive later. */
static void slow_caller(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc =
        rig_open(pair, &(rig_request){.key = "/test/chunks", .input = EW_STR(MUCH), .stream = true, .full_after = 1});
    rig_run(r);
    MUST(rc->ended == 0 && rc->n_chunks < 30 && r->n_waits >= 1);
    MUST(pair->end[RIG_SERVER].peak_out <= r->limits.out_high_bytes + 5000);
    rig_call_room(rc);
    rig_run(r);
    must_succeed(r, rc, "{\"n\":60}");
    MUST(rc->n_chunks == 60);
    MUST(pair->end[RIG_SERVER].peak_out <= r->limits.out_high_bytes + 5000);
}

/* The same at the end of a stream: whatever was held back, the next call on the connection finds it as good as new. */
static void slow_caller_at_the_end(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    for (int i = 0; i < 3; i++) {
        rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/chunks",
                                                     .input = EW_STR("{\"n\":3,\"size\":10}"),
                                                     .stream = true,
                                                     .full_after = 1});
        rig_run(r);
        if (rc->ended == 0)
            rig_call_room(rc);
        rig_run(r);
        must_succeed(r, rc, "{\"n\":3}");
        MUST(rc->n_chunks == 3);
        must_succeed(r, call_plain(pair, "/test/echo", "7"), "7");
    }
}

/* The socket does not take bytes. */
static void slow_socket(rig *r, const contract_wire *w) {
    rig_pair *pair = connect_known(r, w);
    rig_stall(pair, RIG_SERVER, true);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/chunks", .input = EW_STR(MUCH), .stream = true});
    rig_run(r);
    MUST(rc->n_chunks == 0 && r->n_waits == 1 && pair->end[RIG_SERVER].peak_out <= r->limits.out_high_bytes + 5000);
    rig_advance(r, 1000);
    MUST(r->n_waits == 1);
    rig_stall(pair, RIG_SERVER, false);
    rig_run(r);
    must_succeed(r, rc, "{\"n\":60}");
    MUST(rc->n_chunks == 60 && pair->end[RIG_SERVER].n_drained >= 1);
}

/* It never does again: the call is lost, not the memory. */
static void stalled_socket(rig *r, const contract_wire *w) {
    rig_pair *pair = connect_known(r, w);
    rig_stall(pair, RIG_SERVER, true);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/test/chunks", .input = EW_STR(MUCH), .stream = true});
    rig_advance(r, r->limits.stall_ms - 1);
    MUST(rc->ended == 0 && r->n_cancelled == 0);
    rig_advance(r, 1);
    MUST(r->n_cancelled == 1 && r->side[RIG_SERVER].executor.calls->live == 0);
    must_fail(r, rc, EW_STATUS_UNAVAILABLE);
}

/* Many at once: their producers all wait, and all go on in the same turn. */
static void slow_sockets(rig *r, const contract_wire *w) {
    enum { PAIRS = 12 };
    rig_pair *pairs[PAIRS];
    rig_call *calls[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        pairs[i] = connect_known(r, w);
        rig_stall(pairs[i], RIG_SERVER, true);
        calls[i] = rig_open(
            pairs[i],
            &(rig_request){.key = "/test/chunks", .input = EW_STR("{\"n\":10,\"size\":4000}"), .stream = true});
        rig_run(r);
    }
    MUST(r->n_waits == PAIRS);
    for (int i = 0; i < PAIRS; i++)
        rig_stall(pairs[i], RIG_SERVER, false);
    rig_run(r);
    for (size_t i = 0; i < PAIRS; i++)
        must_succeed(r, calls[i], "{\"n\":10}");
}

static void small_out(ew_limits *limits) { limits->out_max_bytes = 64 * 1024; }

/* A producer that does not wait meets the hard limit. */
static void flood(rig *r, const contract_wire *w) {
    rig_pair *pair = connect_known(r, w);
    rig_stall(pair, RIG_SERVER, true);
    rig_call *rc =
        rig_open(pair, &(rig_request){.key = "/test/flood", .input = EW_STR("{\"size\":4000}"), .stream = true});
    rig_run(r);
    MUST(r->n_cancelled == 1 && pair->end[RIG_SERVER].peak_out <= r->limits.out_max_bytes + 1000);
    rig_stall(pair, RIG_SERVER, false);
    rig_run(r);
    must_fail(r, rc, EW_STATUS_RESOURCE_EXHAUSTED);
    MUST(rc->n_chunks >= 10);
    must_succeed(r, call_plain(pair, "/test/echo", "1"), "1");
}

/* ---- many ---- */

static void many(rig *r, const contract_wire *w) {
    enum { PAIRS = 3, EACH = 8 };
    (void)w;
    rig_call *calls[PAIRS][EACH] = {{NULL}};
    char inputs[PAIRS][EACH][64];
    for (int p = 0; p < PAIRS; p++) {
        rig_pair *pair = rig_connect(r);
        uint32_t capacity = rig_capacity(pair);
        for (int i = 0; i < EACH && (uint32_t)i < capacity; i++) {
            (void)snprintf(inputs[p][i], sizeof inputs[p][i], "{\"ms\":%d,\"out\":%d}", 1 + (i * 5 + p) % 7,
                           100 * p + i);
            calls[p][i] = rig_open(pair, &(rig_request){.key = "/test/sleep", .input = ew_str_from(inputs[p][i])});
        }
    }
    rig_advance(r, 20);
    for (int p = 0; p < PAIRS; p++) {
        for (int i = 0; i < EACH && calls[p][i]; i++) {
            char expected[20];
            (void)snprintf(expected, sizeof expected, "%d", 100 * p + i);
            must_succeed(r, calls[p][i], expected);
        }
    }
}

static void busy(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    uint32_t capacity = rig_capacity(pair);
    MUST(capacity > 0);
    for (uint32_t i = 0; i < capacity; i++)
        (void)rig_open(pair, &(rig_request){.key = "/test/sleep", .input = EW_STR("{\"ms\":10}")});
    MUST(rig_capacity(pair) == 0);
    rig_call *extra = rig_open(pair, &(rig_request){.key = "/test/echo"});
    must_fail(r, extra, EW_STATUS_INTERNAL); /* the rig's word for EW_EBUSY */
    rig_advance(r, 20);
    for (uint32_t i = 0; i < capacity && r->strict; i++)
        must_succeed(r, rig_nth(r, i), "\"slept\"");
    MUST(rig_capacity(pair) == capacity);
}

static void few_calls(ew_limits *limits) { limits->calls = 1; }

/* Both sides are of one kind here, so the limit meets the caller first; what matters is the status. */
static void too_many(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *first = call_plain(rig_connect(r), "/test/sleep", "{\"ms\":10}");
    must_fail(r, call_plain(rig_connect(r), "/test/echo", "1"), EW_STATUS_RESOURCE_EXHAUSTED);
    rig_advance(r, 20);
    must_succeed(r, first, "\"slept\"");
}

/* ---- both roles on one connection ---- */

static void duplex(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    r->side[RIG_CLIENT].site.actions = r->actions;
    rig_call *there = rig_open(pair, &(rig_request){.key = "/test/sleep", .input = EW_STR("{\"ms\":10,\"out\":1}")});
    rig_call *back = rig_open_from(
        pair, RIG_SERVER,
        &(rig_request){.key = "/test/chunks", .input = EW_STR("{\"n\":3,\"every_ms\":5}"), .stream = true});
    rig_advance(r, 50);
    must_succeed(r, there, "1");
    must_succeed(r, back, "{\"n\":3}");
    MUST(back->n_chunks == 3);
}

/* ---- threads ---- */

/* A handler answers from another thread: in order, in a later turn. */
static void posted(rig *r, const contract_wire *w) {
    (void)w;
    rig_call *rc = call_stream(rig_connect(r), "/test/hold", NULL);
    if (!r->held)
        return;
    r->side[RIG_SERVER].elsewhere = true;
    (void)ew_call_chunk(r->held, EW_STR("1"));
    (void)ew_call_chunkf(r->held, "{\"n\":%d}", 2);
    (void)ew_call_donef(r->held, "%d", 3);
    (void)ew_call_done(r->held, EW_STR("4"));
    MUST(rc->n_chunks == 0);
    rig_run(r);
    must_succeed(r, rc, "3");
    MUST(rc->n_chunks == 2 && rig_dropped(r, RIG_SERVER) == 1);
    r->held = ew_call_unref(r->held);
    r->side[RIG_SERVER].elsewhere = false;
    rig_run(r);
}

static void asked_elsewhere(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc = call_plain(pair, "/test/elsewhere", "{\"room\":true}");
    must_succeed(r, rc, "\"slept\"");
    rc = call_plain(pair, "/test/elsewhere", "{}");
    rig_advance(r, 10);
    must_succeed(r, rc, "\"slept\"");
}

/* ... and the connection is lost between its words. */
static void posted_too_late(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *rc = call_stream(pair, "/test/hold", NULL);
    if (!r->held)
        return;
    r->side[RIG_SERVER].elsewhere = true;
    (void)ew_call_chunk(r->held, EW_STR("1"));
    rig_close(pair, RIG_CLIENT);
    rig_run(r);
    ew_err err = ew_call_chunk(r->held, EW_STR("2"));
    MUST(err == EW_ECANCELLED);
    (void)ew_call_fail(r->held, EW_STATUS_ABORTED, "too late");
    r->held = ew_call_unref(r->held);
    rig_run(r);
    must_fail(r, rc, EW_STATUS_UNAVAILABLE);
    MUST(r->n_cancelled == 1);
}

/* ---- going down ---- */

static void drain(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    rig_call *running = call_plain(pair, "/test/sleep", "{\"ms\":50}");
    r->side[RIG_SERVER].site.draining = true;
    if (pair->end[RIG_SERVER].peer && !pair->end[RIG_SERVER].closing)
        r->serve->drain(pair->end[RIG_SERVER].peer);
    must_fail(r, call_plain(rig_connect(r), "/test/echo", "1"), EW_STATUS_UNAVAILABLE);
    MUST(running->ended == 0);
    rig_advance(r, 50);
    must_succeed(r, running, "\"slept\"");
    must_fail(r, call_plain(pair, "/test/echo", "1"), EW_STATUS_UNAVAILABLE);
    rig_advance(r, 3000);
    MUST(pair->end[RIG_SERVER].gone && pair->end[RIG_CLIENT].gone);
}

static void idle(rig *r, const contract_wire *w) {
    (void)w;
    rig_pair *pair = rig_connect(r);
    must_succeed(r, call_plain(pair, "/test/echo", "1"), "1");
    rig_advance(r, 60 * 1000);
    must_succeed(r, call_plain(pair, "/test/echo", "2"), "2");
}

const scenario scenarios_hard[] = {
    {.name = "cancel_before", .run = cancel_before},
    {.name = "cancel_while", .run = cancel_while},
    {.name = "cancel_after", .run = cancel_after},
    {.name = "cancel_stream", .needs = EW__CAN_CHUNKS, .run = cancel_stream},
    {.name = "cancel_ignored", .run = cancel_ignored},
    {.name = "let_go", .run = let_go},
    {.name = "let_go_of_stream", .needs = EW__CAN_CHUNKS, .run = let_go_of_stream},
    {.name = "deadline_there", .needs = EW__CAN_DEADLINE, .run = deadline_there},
    {.name = "deadline_there_streamed", .needs = EW__CAN_DEADLINE | EW__CAN_CHUNKS, .run = deadline_there_streamed},
    {.name = "deadline_here", .run = deadline_here},
    {.name = "deadline_both", .run = deadline_both},
    {.name = "deadline_kept", .run = deadline_kept},
    {.name = "lose_client", .run = lose_client},
    {.name = "lose_server", .run = lose_server},
    {.name = "lose_client_streaming", .needs = EW__CAN_CHUNKS, .run = lose_client_streaming},
    {.name = "lose_server_streaming", .needs = EW__CAN_CHUNKS, .run = lose_server_streaming},
    {.name = "lose_unsent", .run = lose_unsent},
    {.name = "late_answer", .run = late_answer},
    {.name = "slow_caller", .needs = EW__CAN_CHUNKS, .run = slow_caller, .large = true},
    {.name = "slow_caller_at_the_end", .needs = EW__CAN_CHUNKS, .run = slow_caller_at_the_end},
    {.name = "slow_socket", .needs = EW__CAN_CHUNKS, .run = slow_socket, .large = true},
    {.name = "slow_sockets", .needs = EW__CAN_CHUNKS, .run = slow_sockets, .large = true},
    {.name = "stalled_socket", .needs = EW__CAN_CHUNKS, .run = stalled_socket, .large = true},
    {.name = "flood", .needs = EW__CAN_CHUNKS, .run = flood, .limits = small_out, .large = true},
    {.name = "many", .run = many, .large = true},
    {.name = "busy", .run = busy, .large = true},
    {.name = "too_many", .run = too_many, .limits = few_calls},
    {.name = "duplex", .needs = EW__CAN_DUPLEX | EW__CAN_CHUNKS, .run = duplex},
    {.name = "posted", .needs = EW__CAN_CHUNKS, .run = posted},
    {.name = "asked_elsewhere", .run = asked_elsewhere},
    {.name = "posted_too_late", .needs = EW__CAN_CHUNKS, .run = posted_too_late},
    {.name = "drain", .run = drain},
    {.name = "idle", .run = idle},
    {.name = NULL},
};
