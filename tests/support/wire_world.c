/*
 * tests/support/wire_world.c: one end of a wire on the rig, and a test that is its peer.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/wire_world.h"

void world_begin(world *w, const ew__wire *wire, int raw, const rig_options *options) {
    rig_options all = *options;
    memset(w, 0, sizeof *w);
    w->raw = raw;
    all.seed = all.seed ? all.seed : 1;
    rig_init(&w->r, wire, &all);
}

void world_start(world *w, const ew__wire *wire, int raw, const rig_options *options) {
    world_begin(w, wire, raw, options);
    w->pair = rig_connect_raw(&w->r, raw);
}

ew_str heard_so_far(const world *w) {
    const rig_end *end = &w->pair->end[w->raw];
    return end->got_len ? ew__str(end->got, end->got_len) : EW_STR("");
}

static rig_call *open_call(world *w, const rig_request *request) {
    rig_call *rc = rig_open(w->pair, request);
    rig_run(&w->r);
    return rc;
}

rig_call *call_plain(world *w, const char *key, const char *input) {
    return open_call(w, &(rig_request){.key = key, .input = ew_str_from(input)});
}

rig_call *call_stream(world *w, const char *key) { return open_call(w, &(rig_request){.key = key, .stream = true}); }

rig_call *call_input(world *w, const char *key) {
    return open_call(w, &(rig_request){.key = key, .input_stream = true});
}

void check_chunks_at(const rig_call *rc, const char *joined, int line) {
    char got[4000] = "";
    size_t n = 0;
    for (size_t i = 0; i < rc->n_chunks && n + rc->chunk_len[i] + 2 < sizeof got; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", i ? " " : "", rc->chunks[i]);
    if (strcmp(got, joined) != 0)
        fail_msg("line %d: chunks %s", line, got);
}
