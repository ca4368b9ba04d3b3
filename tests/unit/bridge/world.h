/*
 * tests/unit/bridge/world.h: a bridge between two scripted ends: the caller of the near call, and up to three callees of
 * the far one.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_BRIDGE_WORLD_H
#define EW_TESTS_BRIDGE_WORLD_H

#include "bridge/bridge.h"
#include "base/out.h"
#include "unit/call/world.h"

#define N_FARS 3

/* The near caller's side. */
typedef struct near_side {
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
} near_side;

/* The far callee's side: one of those that a bridge has. */
typedef struct far_side {
    ew__upstream far;
    ew_call *call; /* that is open now */
    unsigned n_opens, n_inputs, n_input_ends, n_cancels, n_rooms, n_frees;
    ew__cancel_why why;
    char inputs[256];
    bool input_full;
    bool unreachable; /* every call ends at once, and was never sent */
    bool loses;       /* every call is lost at once after it was sent */
    bool refuses;     /* every call is refused by the peer before a handler starts */
    bool ends;        /* as soon as it is told to stop */
} far_side;

static near_side near_one;
static far_side fars[N_FARS];

/* ---- near ---- */

static inline ew_err near_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    if (near_one.chunk_error)
        return near_one.chunk_error;
    near_one.n_chunks++;
    if (near_one.goes) {
        ew__call_release(near_one.call);
        near_one.call = NULL;
    }
    return near_one.full ? EW_FULL : EW_OK;
}

static inline void near_end(ew_call *call, const ew__end *end) {
    (void)call;
    ew_str said = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    near_one.n_ends++;
    near_one.status = end->status;
    near_one.origin = end->origin;
    near_one.fault = end->fault;
    (void)snprintf(near_one.details, sizeof near_one.details, "%.*s", (int)end->fault.details.len,
                   end->fault.details.ptr ? end->fault.details.ptr : "");
    (void)snprintf(near_one.text, sizeof near_one.text, "%.*s", (int)said.len, said.ptr ? said.ptr : "");
}

static inline void near_input_room(ew_call *call) {
    (void)call;
    near_one.n_rooms++;
}

static const ew__caller_ops near_ops = {.chunk = near_chunk, .end = near_end, .input_room = near_input_room};

/* ---- far ---- */

static inline void far_fail(far_side *f, ew_status status, const char *message) {
    ew_call *call = f->call;
    f->call = NULL;
    (void)ew_call_fail(call, status, message);
}

static inline ew_err far_input(ew_call *call, ew_str chunk) {
    far_side *f = call->callee_ud;
    size_t n = strlen(f->inputs);
    f->n_inputs++;
    (void)snprintf(f->inputs + n, sizeof f->inputs - n, "%.*s,", (int)chunk.len, chunk.ptr);
    return f->input_full ? EW_FULL : EW_OK;
}

static inline void far_input_end(ew_call *call) { ((far_side *)call->callee_ud)->n_input_ends++; }

static inline void far_cancel(ew_call *call, ew__cancel_why why) {
    far_side *f = call->callee_ud;
    f->n_cancels++;
    f->why = why;
    if (f->ends)
        far_fail(f, EW_STATUS_CANCELLED, "stopped");
}

static inline void far_room(ew_call *call) { ((far_side *)call->callee_ud)->n_rooms++; }

static inline void far_open(ew_call *call) {
    far_side *f = call->callee_ud;
    f->n_opens++;
    f->call = call;
    call->begun = !f->unreachable;
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

static const ew__callee_ops far_ops = {
    .open = far_open, .input = far_input, .input_end = far_input_end, .cancel = far_cancel, .room = far_room};

static inline void open_far(ew__upstream *far, ew_call *call) {
    ew__call_open_on(call, &far_ops, ew__container_of(far, far_side, far));
}

static inline void free_far(ew__upstream *far) { ew__container_of(far, far_side, far)->n_frees++; }

static inline void far_done(far_side *f, ew_str result) {
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
    ew__upstream *list[N_FARS];
    ew_str names[N_FARS] = {EW_STR("/flow/a"), EW_STR("b"), EW_STR("c")};
    world_init(&s->w, 1);
    memset(&near_one, 0, sizeof near_one);
    memset(fars, 0, sizeof fars);
    for (uint32_t i = 0; i < n; i++) {
        atomic_init(&fars[i].far.refs, 1);
        fars[i].far.open = open_far;
        fars[i].far.free = free_far;
        list[i] = &fars[i].far;
    }
    s->bridge = ew__bridge_new(s->w.executor.env, list, names, n);
    assert_non_null(s->bridge);
    assert_int_equal(ew__action_new_remote(s->w.executor.env, EW_STR("peer"), EW_STR("/flow/x"), EW_STR("{}"),
                                           &ew__bridge_callee, s->bridge, ew__bridge_drop, &s->action),
                     EW_OK);
}

static inline ew_call *make(setting *s) {
    near_one.call = ew__call_new(&s->w.executor, &near_ops, NULL);
    assert_non_null(near_one.call);
    near_one.call->wants_chunks = true;
    return near_one.call;
}

static inline void open_near(setting *s) { ew__call_open(near_one.call, s->action); }

static inline void finish(setting *s, uint32_t n) {
    if (near_one.call)
        ew__call_release(near_one.call);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(atomic_load(&fars[i].far.calls), 0);
    ew__action_unref(s->action);
    for (uint32_t i = 0; i < n; i++) {
        ew__upstream_unref(&fars[i].far);
        assert_int_equal(fars[i].n_frees, 1);
    }
    world_done(&s->w);
}

#endif
