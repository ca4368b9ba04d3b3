/*
 * tests/unit/bridge/world.h: a bridge between two scripted ends: the caller of the inbound call, and up to three callees of
 * the outbound one.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_BRIDGE_WORLD_H
#define EW_TESTS_BRIDGE_WORLD_H

#include "bridge/bridge.h"
#include "base/out.h"
#include "unit/call/world.h"

#define N_UPSTREAMS 3

/* The caller of the inbound call. */
typedef struct caller_side {
    ew_call *call;
    unsigned n_ends, n_chunks, n_rooms;
    ew_status status;
    ew_origin origin;
    char text[256]; /* result or message */
    char details[256];
    ew_fault fault;
    bool full;
    bool goes; /* at the next chunk */
    ew_err chunk_error;
} caller_side;

/* The upstream callee's side: one of those that a bridge has. */
typedef struct upstream_side {
    ew__upstream base;
    ew_call *call; /* that is open now */
    unsigned n_opens, n_inputs, n_input_ends, n_cancels, n_rooms, n_frees;
    ew__cancel_why why;
    char inputs[256];
    bool input_full;
    bool unreachable; /* every call ends at once, and was never sent */
    bool loses;       /* every call is lost at once after it was sent */
    bool refuses;     /* every call is refused by the peer before a handler starts */
    bool ends;        /* as soon as it is told to stop */
} upstream_side;

static caller_side caller;
static upstream_side upstreams[N_UPSTREAMS];

/* ---- inbound ---- */

static inline ew_err caller_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    if (caller.chunk_error)
        return caller.chunk_error;
    caller.n_chunks++;
    if (caller.goes) {
        ew__call_release(caller.call);
        caller.call = NULL;
    }
    return caller.full ? EW_FULL : EW_OK;
}

static inline void caller_end(ew_call *call, const ew__end *end) {
    (void)call;
    ew_str said = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    caller.n_ends++;
    caller.status = end->status;
    caller.origin = end->origin;
    caller.fault = end->fault;
    (void)snprintf(caller.details, sizeof caller.details, "%.*s", (int)end->fault.details.len,
                   end->fault.details.ptr ? end->fault.details.ptr : "");
    (void)snprintf(caller.text, sizeof caller.text, "%.*s", (int)said.len, said.ptr ? said.ptr : "");
}

static inline void caller_input_room(ew_call *call) {
    (void)call;
    caller.n_rooms++;
}

static const ew__caller_ops caller_ops = {.chunk = caller_chunk, .end = caller_end, .input_room = caller_input_room};

/* ---- upstream ---- */

static inline void upstream_fail(upstream_side *f, ew_status status, const char *message) {
    ew_call *call = f->call;
    f->call = NULL;
    (void)ew_call_fail(call, status, message);
}

static inline ew_err upstream_input(ew_call *call, ew_str chunk) {
    upstream_side *f = call->callee_ud;
    size_t n = strlen(f->inputs);
    f->n_inputs++;
    (void)snprintf(f->inputs + n, sizeof f->inputs - n, "%.*s,", (int)chunk.len, chunk.ptr);
    return f->input_full ? EW_FULL : EW_OK;
}

static inline void upstream_input_end(ew_call *call) { ((upstream_side *)call->callee_ud)->n_input_ends++; }

static inline void upstream_cancel(ew_call *call, ew__cancel_why why) {
    upstream_side *f = call->callee_ud;
    f->n_cancels++;
    f->why = why;
    if (f->ends)
        upstream_fail(f, EW_STATUS_CANCELLED, "stopped");
}

static inline void upstream_room(ew_call *call) { ((upstream_side *)call->callee_ud)->n_rooms++; }

static inline void upstream_open(ew_call *call) {
    upstream_side *f = call->callee_ud;
    f->n_opens++;
    f->call = call;
    call->outgoing.begun = !f->unreachable;
    if (f->refuses) {
        f->call = NULL;
        ew__call_fault(call,
                       &(ew_fault){.status = EW_STATUS_UNAVAILABLE, .message = EW_STR("going down"), .refused = true});
    } else if (f->unreachable || f->loses) {
        f->call = NULL;
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         f->loses ? EW_STR("lost") : EW_STR("nobody there"));
    }
}

static const ew__callee_ops upstream_ops = {.open = upstream_open,
                                            .input = upstream_input,
                                            .input_end = upstream_input_end,
                                            .cancel = upstream_cancel,
                                            .room = upstream_room};

static inline void open_upstream(ew__upstream *upstream, ew_call *call) {
    ew__call_open_on(call, &upstream_ops, ew__container_of(upstream, upstream_side, base));
}

static inline void free_upstream(ew__upstream *upstream) { ew__container_of(upstream, upstream_side, base)->n_frees++; }

static inline void upstream_done(upstream_side *f, ew_str result) {
    ew_call *call = f->call;
    f->call = NULL;
    (void)ew__call_done_valid(call, result);
}

/* ---- both ---- */

typedef struct setting {
    world w;
    ew__bridge *bridge;
    ew__action *action;
} setting;

static inline void begin(setting *s, uint32_t n) {
    ew__upstream *list[N_UPSTREAMS];
    ew_str names[N_UPSTREAMS] = {EW_STR("/flow/a"), EW_STR("b"), EW_STR("c")};
    world_init(&s->w, 1);
    memset(&caller, 0, sizeof caller);
    memset(upstreams, 0, sizeof upstreams);
    for (uint32_t i = 0; i < n; i++) {
        atomic_init(&upstreams[i].base.refs, 1);
        upstreams[i].base.open = open_upstream;
        upstreams[i].base.free = free_upstream;
        list[i] = &upstreams[i].base;
    }
    s->bridge = ew__bridge_new(s->w.executor.env, list, names, n);
    assert_non_null(s->bridge);
    assert_int_equal(ew__action_new_remote(s->w.executor.env, EW_STR("peer"), EW_STR("/flow/x"), EW_STR("{}"),
                                           &ew__bridge_callee, s->bridge, ew__bridge_drop, &s->action),
                     EW_OK);
}

static inline ew_call *make(setting *s) {
    caller.call = ew__call_new(&s->w.executor, &caller_ops, NULL);
    assert_non_null(caller.call);
    caller.call->wants_chunks = true;
    return caller.call;
}

static inline void open_inbound(setting *s) { ew__call_open(caller.call, s->action); }

static inline void finish(setting *s, uint32_t n) {
    if (caller.call)
        ew__call_release(caller.call);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(atomic_load(&upstreams[i].base.calls), 0);
    ew__action_unref(s->action);
    for (uint32_t i = 0; i < n; i++) {
        ew__upstream_unref(&upstreams[i].base);
        assert_int_equal(upstreams[i].n_frees, 1);
    }
    world_done(&s->w);
}

#endif
