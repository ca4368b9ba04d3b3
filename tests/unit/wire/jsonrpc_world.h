/*
 * tests/unit/wire/jsonrpc_world.h: one end of the jsonrpc wire, and a test that is its peer, line by line.
 *
 * Texts: support/wire_peer.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_JSONRPC_WORLD_H
#define EW_TESTS_JSONRPC_WORLD_H

#include "support/wire_world.h"
#include "wire/jsonrpc/jsonrpc.h"

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
    world_begin(w, &ew__wire_jsonrpc, raw, &(rig_options){.limits = options->limits, .split = options->split});
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

static inline ew__jr_peer *world_peer(const world *w) { return (ew__jr_peer *)(void *)world_wire(w); }

/* ---- saying ---- */

/* Exactly this: no newline is added. */
static inline void say_part(world *w, const char *text) {
    char *bytes = world_expand(w, text);
    say_bytes(w->pair, bytes, strlen(bytes));
    free(bytes);
}

static inline void say(world *w, const char *line) {
    char *bytes = world_expand(w, line);
    size_t n = strlen(bytes);
    bytes[n] = '\n';
    say_bytes(w->pair, bytes, n + 1);
    free(bytes);
}

static inline void say_eof(world *w) {
    rig_say_eof(w->pair);
    rig_run(&w->r);
}

/* ---- hearing ---- */

static inline void hear_at(world *w, const char *pattern, int line) {
    rig_run(&w->r);
    ew_str got = heard_so_far(w);
    peer_check_text(w->ids, pattern, got.ptr, got.len, line);
    if (got.len)
        rig_forget(w->pair, got.len);
}

/* All that came since is exactly these lines, each with its newline. */
#define hear(w, lines) hear_at((w), lines "\n", __LINE__)
#define hear_bytes(w, bytes) hear_at((w), (bytes), __LINE__)

/* The peer is asked what it is, with the first call that wants a stream; the test says everywire or not. */
static inline void answer_discover(world *w, bool everywire) {
    hear(w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
    say(w, everywire ? RPC "'id':$9,'result':{'openrpc':'1.3.2','info':{'x-everywire':{'streams':true}},'methods':[]}}"
                     : RPC "'id':$9,'error':{'code':-32601,'message':'no'}}");
}

#endif
