/*
 * tests/support/wire_world.h: one end of a wire on the rig, and a test that is its peer on one connection. The header
 * of a wire's tests (unit/wire/<wire>_world.h) adds how its messages are framed. Texts: support/wire_peer.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_WIRE_WORLD_H
#define EW_TESTS_WIRE_WORLD_H

#include "support/wire_peer.h"

typedef struct world {
    rig r;
    rig_pair *pair;
    int raw; /* the test's side */
    peer_ids ids;
} world;

/* A rig of its own, on which the test is the side `raw`. Seed 0: 1. */
void world_begin(world *w, const ew__wire *wire, int raw, const rig_options *options);
/* The same with a connection. */
void world_start(world *w, const ew__wire *wire, int raw, const rig_options *options);
static inline void world_done(world *w) { rig_finish(&w->r); }

static inline ew__peer *world_wire(const world *w) { return w->pair->end[1 - w->raw].peer; }
/* Whether the wire has closed the connection, or its sending side. */
static inline bool world_over(const world *w) { return w->pair->end[w->raw].saw_eof; }
static inline uint64_t world_dropped(world *w) { return rig_dropped(&w->r, 1 - w->raw); }
/* The bytes that have arrived and were not yet dropped. */
ew_str heard_so_far(const world *w);

static inline char *world_expand(world *w, const char *text) { return peer_expand(w->ids, text); }
static inline bool world_matches(world *w, const char *pattern, const char *got, size_t n) {
    return peer_matches(w->ids, pattern, got, n);
}
#define hear_nothing(w) hear_at((w), "", __LINE__)

/* ---- calls of the rig's client over the wire ---- */

rig_call *call_plain(world *w, const char *key, const char *input);
rig_call *call_stream(world *w, const char *key);
rig_call *call_input(world *w, const char *key);
#define check_done(rc, result) peer_check_done((rc), (result), __LINE__)
/* The chunks so far, with a space between two. */
#define check_chunks(rc, joined) check_chunks_at((rc), (joined), __LINE__)
void check_chunks_at(const rig_call *rc, const char *joined, int line);

#endif
