/*
 * tests/unit/wire/jsonrpc_world.h: one end of the jsonrpc wire, and a test that is its peer, line by line.
 *
 * Texts are written with ' for ". $1 to $9 stand for ids that the wire makes: the first time one is heard it is
 * remembered, from then on it must be the same, and what is said with it says that id.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_JSONRPC_WORLD_H
#define EW_TESTS_JSONRPC_WORLD_H

#include "support/rig.h"
#include "wire/jsonrpc/jsonrpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RPC "{'jsonrpc':'2.0',"
#define FAULT(code, message, status) "{'code':" #code ",'message':'" message "','data':{'status':'" status "'}}"
/* The same for a call that was refused before its handler started. */
#define REFUSAL(code, message, status)                                                                                 \
    "{'code':" #code ",'message':'" message "','data':{'status':'" status "','refused':true}}"

typedef struct world {
    rig r;
    rig_pair *pair;
    int raw; /* the test's side */
    char ids[10][EW__RPC_ID_ROOM];
} world;

typedef struct world_options {
    ew_limits limits;
    bool stdio;
    rig_split split;
    ew__framing framing;
    uint32_t options;
    ew__actions *client_actions; /* what the test may call on a wire that calls */
} world_options;

/* The peer begins again, now with the knowledge that its connection is a pipe to one process. */
static inline void world_be_stdio(rig_end *end) {
    ew__peer *peer = end->peer, kept = *peer;
    end->conn.stdio = true;
    peer->wire->gone(peer, EW_OK);
    memset(peer, 0, sizeof(ew__jr_peer));
    *peer = kept;
    assert_int_equal(peer->wire->init(peer), EW_OK);
}

static inline void world_init(world *w, int raw, const world_options *options) {
    memset(w, 0, sizeof *w);
    w->raw = raw;
    rig_init(&w->r, &ew__wire_jsonrpc, &(rig_options){.seed = 1, .limits = options->limits, .split = options->split});
    w->r.side[RIG_CLIENT].site.actions = options->client_actions;
    w->r.side[1 - raw].site.options = options->options | (uint32_t)options->framing;
    w->pair = rig_connect_raw(&w->r, raw);
    if (options->stdio)
        world_be_stdio(&w->pair->end[1 - raw]);
}

/* The wire serves (with the actions of the rig) and the test calls. */
static inline void world_serve(world *w) { world_init(w, RIG_CLIENT, &(world_options){.stdio = false}); }
/* The wire calls and the test serves. */
static inline void world_call(world *w) { world_init(w, RIG_SERVER, &(world_options){.stdio = false}); }

static inline ew__jr_peer *world_peer(const world *w) { return (ew__jr_peer *)(void *)w->pair->end[1 - w->raw].peer; }

static inline void world_done(world *w) { rig_finish(&w->r); }

/* Whether the wire has closed, or said that it will say no more. */
static inline bool world_over(const world *w) { return w->pair->end[w->raw].saw_eof; }

static inline uint64_t world_dropped(world *w) { return rig_dropped(&w->r, 1 - w->raw); }

/* ---- saying ---- */

static inline char *world_expand(const world *w, const char *text) {
    size_t n = 0;
    char *out = malloc(strlen(text) + 64 * EW__RPC_ID_ROOM);
    assert_non_null(out);
    for (; *text; text++) {
        if (*text == '$' && text[1] >= '1' && text[1] <= '9') {
            const char *id = w->ids[*++text - '0'];
            memcpy(out + n, id, strlen(id));
            n += strlen(id);
        } else {
            out[n++] = *text == '\'' ? '"' : *text;
        }
    }
    out[n] = '\0';
    return out;
}

static inline void say_bytes(world *w, const void *bytes, size_t n) {
    rig_say(w->pair, bytes, n);
    rig_run(&w->r);
}

/* Exactly this: no newline is added. */
static inline void say_part(world *w, const char *text) {
    char *bytes = world_expand(w, text);
    say_bytes(w, bytes, strlen(bytes));
    free(bytes);
}

static inline void say(world *w, const char *line) {
    char *bytes = world_expand(w, line);
    size_t n = strlen(bytes);
    bytes[n] = '\n';
    say_bytes(w, bytes, n + 1);
    free(bytes);
}

static inline void say_eof(world *w) {
    rig_say_eof(w->pair);
    rig_run(&w->r);
}

/* ---- hearing ---- */

static inline size_t world_match_id(char kept[EW__RPC_ID_ROOM], const char *got, size_t n) {
    const char *end = n > 1 && got[0] == '"' ? memchr(got + 1, '"', n - 1) : NULL;
    size_t len = end ? (size_t)(end + 1 - got) : 0;
    if (len == 0 || len >= EW__RPC_ID_ROOM || (kept[0] && (strlen(kept) != len || memcmp(kept, got, len) != 0)))
        return 0;
    memcpy(kept, got, len);
    return len;
}

static inline bool world_matches(world *w, const char *pattern, const char *got, size_t n) {
    for (; *pattern; pattern++) {
        size_t used = 1;
        if (*pattern == '$' && pattern[1] >= '1' && pattern[1] <= '9')
            used = world_match_id(w->ids[*++pattern - '0'], got, n);
        else if (n == 0 || *got != (*pattern == '\'' ? '"' : *pattern))
            used = 0;
        if (used == 0)
            return false;
        got += used;
        n -= used;
    }
    return n == 0;
}

static inline void hear_bytes_at(world *w, const char *pattern, int line) {
    const rig_end *end = &w->pair->end[w->raw];
    rig_run(&w->r);
    if (!world_matches(w, pattern, end->got ? end->got : "", end->got_len))
        fail_msg("line %d: expected\n%s\ngot\n%.*s", line, pattern, (int)end->got_len, end->got ? end->got : "");
    if (end->got_len)
        rig_forget(w->pair, end->got_len);
}

/* All that came since is exactly these lines, each with its newline. */
#define hear(w, lines) hear_bytes_at((w), lines "\n", __LINE__)
#define hear_bytes(w, bytes) hear_bytes_at((w), (bytes), __LINE__)
#define hear_nothing(w) hear_bytes_at((w), "", __LINE__)

/* ---- calls of ours ---- */

static inline rig_call *call_plain(world *w, const char *key, const char *input) {
    rig_call *rc = rig_open(w->pair, &(rig_request){.key = key, .input = ew_str_from(input)});
    rig_run(&w->r);
    return rc;
}

static inline rig_call *call_stream(world *w, const char *key) {
    rig_call *rc = rig_open(w->pair, &(rig_request){.key = key, .stream = true});
    rig_run(&w->r);
    return rc;
}

static inline rig_call *call_input(world *w, const char *key) {
    rig_call *rc = rig_open(w->pair, &(rig_request){.key = key, .input_stream = true});
    rig_run(&w->r);
    return rc;
}

/* The peer is asked what it is, with the first call that wants a stream; the test says everywire or not. */
static inline void answer_discover(world *w, bool everywire) {
    hear(w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
    say(w, everywire ? RPC "'id':$9,'result':{'openrpc':'1.3.2','info':{'x-everywire':{'streams':true}},'methods':[]}}"
                     : RPC "'id':$9,'error':{'code':-32601,'message':'no'}}");
}

static inline void check_done_at(const rig_call *rc, const char *result, int line) {
    if (rc->ended != 1 || rc->status != EW_STATUS_OK || strcmp(rc->result, result) != 0)
        fail_msg("line %d: %s: %s", line, rc->ended ? ew_status_name(rc->status) : "has not ended",
                 rc->result ? rc->result : rc->message);
    assert_int_equal(rc->origin, EW_ORIGIN_ACTION);
}

static inline void check_failed_at(const rig_call *rc, ew_status status, ew_origin origin, const char *message,
                                   int line) {
    if (rc->ended != 1 || rc->status != status || rc->origin != origin || !rc->message ||
        strcmp(rc->message, message) != 0)
        fail_msg("line %d: %s (origin %d): %s", line, rc->ended ? ew_status_name(rc->status) : "has not ended",
                 (int)rc->origin, rc->message ? rc->message : rc->result);
}
#define check_done(rc, result) check_done_at((rc), (result), __LINE__)
#define check_failed(rc, status, origin, message) check_failed_at((rc), (status), (origin), (message), __LINE__)
#define check_runs(rc) assert_int_equal((rc)->ended, 0)

static inline void check_chunks_at(const rig_call *rc, const char *joined, int line) {
    char got[4000] = "";
    size_t n = 0;
    for (size_t i = 0; i < rc->n_chunks && n + rc->chunk_len[i] + 2 < sizeof got; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", i ? " " : "", rc->chunks[i]);
    if (strcmp(got, joined) != 0)
        fail_msg("line %d: chunks %s", line, got);
}
#define check_chunks(rc, joined) check_chunks_at((rc), (joined), __LINE__)

#endif
