/*
 * tests/contract/scenarios_limits.c: the limits of payloads and messages. A payload at the limit crosses every wire; one
 * above it fails its own call, and the connection and its other calls go on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"

#include <stdio.h>
#include <stdlib.h>

#define NESTED_MAX 1200

/* depth levels of arrays around 1; text has room for 2 * depth + 2 bytes. */
static const char *nested(size_t depth, char *text) {
    memset(text, '[', depth);
    text[depth] = '1';
    memset(text + depth + 1, ']', depth);
    text[2 * depth + 1] = '\0';
    return text;
}

/* A call that is under way on the connection while others reach a limit. Wires with one call at a time have none. */
typedef struct bystander {
    rig_pair *pair;
    rig_call *call;
} bystander;

static bystander stand_by(rig *r, const contract_wire *w) {
    rig_pair *pair = connect_known(r, w);
    rig_call *call = w->wire->caps & EW__CAN_MANY ? call_plain(pair, "/test/sleep", "{\"ms\":500}") : NULL;
    return (bystander){pair, call};
}

/* The connection that calls use: the same one, unless the wire gives each failed call's connection up. */
static rig_pair *pair_of(rig *r, const bystander *b) { return b->call ? b->pair : rig_connect(r); }

static void must_go_on(rig *r, const bystander *b) {
    must_succeed(r, call_plain(pair_of(r, b), "/test/echo", "1"), "1");
    if (!b->call)
        return;
    MUST(b->call->ended == 0);
    rig_advance(r, 500);
    must_succeed(r, b->call, "\"slept\"");
    MUST(!b->pair->end[RIG_CLIENT].gone && !b->pair->end[RIG_SERVER].gone);
}

/* ---- depth ---- */

static void depth_of_input(rig *r, const contract_wire *w) {
    static const size_t depths[] = {EW_PAYLOAD_DEPTH - 1, EW_PAYLOAD_DEPTH, EW_PAYLOAD_DEPTH + 1, EW_PAYLOAD_DEPTH + 5};
    char text[NESTED_MAX];
    bystander b = stand_by(r, w);
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        size_t levels = depths[i] - (r->objects ? 1 : 0); /* the rig puts it into an object */
        unsigned opened = r->n_opened;
        rig_call *rc = call_plain(pair_of(r, &b), "/test/echo", nested(levels, text));
        if (depths[i] <= EW_PAYLOAD_DEPTH) {
            must_succeed(r, rc, text);
        } else {
            must_fail(r, rc, EW_STATUS_INVALID_ARGUMENT);
            MUST(r->n_opened == opened);
        }
    }
    must_go_on(r, &b);
}

static void depth_of_input_chunks(rig *r, const contract_wire *w) {
    char text[NESTED_MAX];
    bystander b = stand_by(r, w);
    for (size_t depth = EW_PAYLOAD_DEPTH; depth <= EW_PAYLOAD_DEPTH + 1; depth++) {
        rig_call *rc = rig_open(b.pair, &(rig_request){.key = "/test/relay", .input_stream = true, .stream = true});
        rig_run(r);
        (void)rig_call_send(rc, ew_str_from(nested(depth, text)));
        rig_run(r);
        if (depth <= EW_PAYLOAD_DEPTH) {
            MUST(rc->ended == 0 && rc->n_chunks == 1);
            rig_call_send_end(rc);
            rig_run(r);
            MUST(rc->status == EW_STATUS_OK);
        } else {
            must_fail(r, rc, EW_STATUS_RESOURCE_EXHAUSTED);
        }
    }
    must_go_on(r, &b);
}

/* A handler that checks nothing, as a peer of another make. */
static rig_call *unchecked(rig *r, rig_pair *pair, const char *as, const char *unit, size_t n) {
    char input[100];
    (void)snprintf(input, sizeof input, "{\"as\":\"%s\",\"%s\":%zu}", as, unit, n);
    rig_call *rc = rig_open(
        pair,
        &(rig_request){.key = "/test/unchecked", .input = ew_str_from(input), .stream = strcmp(as, "chunk") == 0});
    rig_run(r);
    return rc;
}

static void depth_of(rig *r, const contract_wire *w, const char *as, size_t from, size_t to) {
    char text[NESTED_MAX];
    bystander b = stand_by(r, w);
    for (size_t depth = from; depth <= to; depth++) {
        rig_call *rc = unchecked(r, pair_of(r, &b), as, "depth", depth);
        bool fits = depth <= EW_PAYLOAD_DEPTH, details = strcmp(as, "details") == 0;
        (void)nested(depth, text);
        if (details) {
            must_fail(r, rc, EW_STATUS_ABORTED);
            if (fits)
                MUST_BE(rc->details, text);
        } else if (!fits) {
            must_fail(r, rc, EW_STATUS_RESOURCE_EXHAUSTED);
        } else if (strcmp(as, "chunk") == 0) {
            MUST(rc->status == EW_STATUS_OK && rc->n_chunks == 1);
            MUST_BE(rc->chunks[0], text);
        } else {
            must_succeed(r, rc, text);
        }
    }
    must_go_on(r, &b);
}

static void depth_of_result(rig *r, const contract_wire *w) {
    depth_of(r, w, "result", EW_PAYLOAD_DEPTH - 1, EW_PAYLOAD_DEPTH + 3);
}

static void depth_of_chunks(rig *r, const contract_wire *w) {
    depth_of(r, w, "chunk", EW_PAYLOAD_DEPTH - 1, EW_PAYLOAD_DEPTH + 3);
}

static void depth_of_details(rig *r, const contract_wire *w) {
    depth_of(r, w, "details", EW_PAYLOAD_DEPTH - 1, EW_PAYLOAD_DEPTH + 3);
}

/* ---- bytes ---- */

static void some_bytes(ew_limits *limits) { limits->frame_bytes = 64 * 1024; }

static void large_bytes(ew_limits *limits) { limits->frame_bytes = 1024 * 1024; }

static char *letters(size_t n) {
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    text[n] = '\0';
    return text;
}

static void bytes_of_input(rig *r, const contract_wire *w) {
    size_t limit = (size_t)ew__payload_bytes(&r->limits);
    bystander b = stand_by(r, w);
    for (size_t n = limit - 1; n <= limit + 1; n++) {
        char *text = letters(n - (r->objects ? sizeof "{\"value\":}" - 1 : 0));
        rig_call *rc = call_plain(pair_of(r, &b), "/test/echo", text);
        if (n <= limit)
            must_succeed(r, rc, text);
        else
            must_fail(r, rc, EW_STATUS_RESOURCE_EXHAUSTED);
        free(text);
    }
    must_go_on(r, &b);
}

static void bytes_of(rig *r, const contract_wire *w, const char *as) {
    size_t limit = (size_t)ew__payload_bytes(&r->limits);
    bystander b = stand_by(r, w);
    for (size_t n = limit - 1; n <= limit + 1; n++) {
        rig_call *rc = unchecked(r, pair_of(r, &b), as, "bytes", n);
        if (n > limit) {
            must_fail(r, rc, EW_STATUS_RESOURCE_EXHAUSTED);
            MUST(strstr(rc->message, "57344") != NULL); /* it names the limit */
        } else {
            MUST(rc->status == EW_STATUS_OK);
            MUST(strcmp(as, "chunk") != 0 || (rc->n_chunks == 1 && rc->chunk_len[0] == n));
            MUST(strcmp(as, "result") != 0 || rc->result_len == n);
        }
    }
    must_go_on(r, &b);
}

static void bytes_of_result(rig *r, const contract_wire *w) { bytes_of(r, w, "result"); }
static void bytes_of_chunks(rig *r, const contract_wire *w) { bytes_of(r, w, "chunk"); }

/* ---- messages that one side does not accept ---- */

/* The mem wire, a readable example, gives such a connection up; wires with one call at a time need not keep theirs. */
static bool skips(const contract_wire *w) { return w->skips_large; }

/* One side accepts less than the other sends. */
static void make_small(rig *r, int side) {
    static ew_limits small;
    small = r->limits;
    small.frame_bytes = 8 * 1024;
    r->side[side].executor.limits = &small;
}

static void large_request(rig *r, const contract_wire *w) {
    make_small(r, RIG_SERVER);
    char *text = letters(20000);
    bystander b = stand_by(r, w);
    if (skips(w) || !b.call)
        must_fail(r, call_plain(pair_of(r, &b), "/test/echo", text), EW_STATUS_RESOURCE_EXHAUSTED);
    if (skips(w))
        must_go_on(r, &b);
    free(text);
}

static void large_answer(rig *r, const contract_wire *w) {
    make_small(r, RIG_CLIENT);
    bystander b = stand_by(r, w);
    if (!skips(w))
        return;
    must_fail(r, unchecked(r, b.pair, "result", "bytes", 20000), EW_STATUS_RESOURCE_EXHAUSTED);
    must_fail(r, unchecked(r, b.pair, "result", "bytes", 100000), EW_STATUS_RESOURCE_EXHAUSTED);
    must_go_on(r, &b);
}

static void large_chunk(rig *r, const contract_wire *w) {
    make_small(r, RIG_CLIENT);
    bystander b = stand_by(r, w);
    if (!skips(w))
        return;
    must_fail(r, unchecked(r, b.pair, "chunk", "bytes", 20000), EW_STATUS_RESOURCE_EXHAUSTED);
    must_go_on(r, &b);
}

static void deep_messages(rig *r, const contract_wire *w) {
    static const size_t depths[] = {EW_JSON_DEPTH, EW_JSON_DEPTH + 1, 500};
    char text[NESTED_MAX];
    bystander b = stand_by(r, w);
    for (size_t i = 0; i < sizeof depths / sizeof *depths && skips(w); i++) {
        must_fail(r, unchecked(r, b.pair, "result", "depth", depths[i]), EW_STATUS_RESOURCE_EXHAUSTED);
        must_fail(r, unchecked(r, b.pair, "details", "depth", depths[i]), EW_STATUS_RESOURCE_EXHAUSTED);
        must_fail(r, call_plain(b.pair, "/test/echo", nested(depths[i], text)), EW_STATUS_RESOURCE_EXHAUSTED);
        if (w->wire->caps & EW__CAN_CHUNKS)
            must_fail(r, unchecked(r, b.pair, "chunk", "depth", depths[i]), EW_STATUS_RESOURCE_EXHAUSTED);
    }
    must_go_on(r, &b);
}

#define CHUNKS .needs = EW__CAN_CHUNKS
const scenario scenarios_limits[] = {
    {.name = "depth_of_input", .run = depth_of_input, .large = true},
    {.name = "depth_of_input_chunks",
     .needs = EW__CAN_INPUT | EW__CAN_CHUNKS,
     .run = depth_of_input_chunks,
     .large = true},
    {.name = "depth_of_result", .run = depth_of_result, .large = true},
    {.name = "depth_of_chunks", CHUNKS, .run = depth_of_chunks, .large = true},
    {.name = "depth_of_details", .run = depth_of_details, .large = true},
    {.name = "bytes_of_input", .run = bytes_of_input, .limits = some_bytes, .large = true},
    {.name = "bytes_of_result", .run = bytes_of_result, .limits = some_bytes, .large = true},
    {.name = "bytes_of_chunks", CHUNKS, .run = bytes_of_chunks, .limits = some_bytes, .large = true},
    {.name = "large_request", .run = large_request, .limits = some_bytes, .large = true},
    {.name = "large_answer", .run = large_answer, .limits = large_bytes, .large = true},
    {.name = "large_chunk", CHUNKS, .run = large_chunk, .limits = some_bytes, .large = true},
    {.name = "deep_messages", .run = deep_messages, .large = true},
    {.name = NULL},
};
