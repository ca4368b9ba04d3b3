/*
 * tests/unit/wire/stepflow_http_back.h: calls back to a runtime: components/execute of an action that the test itself
 * plays, and calls that go back on it, as client/request.c makes them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_HTTP_BACK_H
#define EW_TESTS_STEPFLOW_HTTP_BACK_H

#include "unit/wire/stepflow_http_world.h"

typedef struct back {
    world *w;
    ew_call *origin; /* borrowed */
    ew_call *call;   /* while it runs */
    const char *method, *params;
    bool notify, wants_chunks, has_input;
    uint64_t timeout_ms;
    unsigned again; /* how often it is tried again when it has failed, at once */
    bool ends;      /* when it has failed, so has the call that it belongs to */
    unsigned ended;
    ew_err refused; /* what the wire said to it */
    ew_status status;
    ew_origin from;
    bool retryable;
    char text[400]; /* result or message */
    char details[100];
} back;

static inline void back_open(back *b);

static inline ew_err back_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static inline void back_end(ew_call *call, const ew__end *end) {
    back *b = call->caller_ud;
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    b->ended++;
    b->call = NULL;
    b->status = end->status;
    b->from = end->origin;
    b->retryable = end->fault.retryable;
    (void)snprintf(b->text, sizeof b->text, "%.*s", (int)text.len, text.ptr);
    (void)snprintf(b->details, sizeof b->details, "%.*s", (int)end->fault.details.len,
                   end->fault.details.len ? end->fault.details.ptr : "");
    ew__call_release(call);
    if (end->status != EW_STATUS_OK && b->ends)
        (void)ew_call_fail(b->origin, EW_STATUS_ABORTED, "what I asked for has failed");
    if (end->status != EW_STATUS_OK && b->again > 0) {
        b->again--;
        back_open(b);
    }
}

static const ew__caller_ops back_caller = {.chunk = back_chunk, .end = back_end};

static inline void back_hand_over(ew_call *call) {
    back *b = call->callee_ud;
    ew_call *origin = b->origin;
    b->refused = origin->caller_open ? origin->caller->call_back(origin, call) : EW_EENDED;
    if (b->refused != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("not taken"));
}

static const ew__callee_ops back_opening = {.open = back_hand_over};

static inline void back_open(back *b) {
    ew_call *call = ew__call_new(b->origin->executor, &back_caller, b);
    b->refused = EW_ENOMEM;
    if (!call)
        return;
    b->call = call;
    call->key = ew_str_from(b->method);
    call->input = ew_str_from(b->params);
    call->outgoing.notify = b->notify;
    call->wants_chunks = b->wants_chunks;
    call->has_input = b->has_input;
    memcpy(call->trace.trace_id, "11112222333344445555666677778888", 32);
    memcpy(call->trace.span_id, "aaaabbbbccccdddd", 16);
    if (b->timeout_ms)
        call->deadline = ew__executor_read_clock(call->executor) + EW__MS(b->timeout_ms);
    ew__call_open_on(call, &back_opening, b);
}

/* A call back; params as JSON, as they are. */
static inline void ask_with(world *w, ew_call *origin, back *b, const char *method, const char *params) {
    b->w = w;
    b->origin = origin;
    b->method = method;
    b->params = params;
    back_open(b);
    rig_run(&w->r);
}

static inline void ask(world *w, ew_call *origin, back *b, const char *method, const char *params) {
    *b = (back){.w = w};
    ask_with(w, origin, b, method, params);
}

static inline void check_back_at(const back *b, ew_status status, ew_origin from, const char *text, int line) {
    char *want = expand(b->w, text);
    if (b->ended != 1 || b->status != status || b->from != from || strcmp(b->text, want) != 0)
        fail_msg("line %d: ended %u times: %s of origin %d: %s", line, b->ended, ew_status_name(b->status), b->from,
                 b->text);
    free(want);
}
#define check_back(b, status, from, text) check_back_at((b), (status), (from), (text), __LINE__)
#define GONE "the call that it belongs to has ended, or its runtime has gone"

/* components/execute comes, and its handler is the test: the call, for ew_call_unref. */
static inline ew_call *take_execute(world *w, rig_pair *pair, const char *body) {
    assert_null(w->r.held);
    post(w, pair, body);
    ew_call *call = w->r.held;
    assert_non_null(call);
    w->r.held = NULL;
    return call;
}

static inline ew_call *executed(world *w, rig_pair *pair) {
    return take_execute(w, pair, EXECUTE("'x'", "/hold", "1"));
}

/* The handler is done. */
static inline void finish(world *w, ew_call *call, const char *result) {
    assert_int_equal(ew_call_done(call, ew_str_from(result)), EW_OK);
    rig_run(&w->r);
    ew_call_unref(call);
}

/* A reply of the runtime, as a request of its own. */
static inline void reply_at(world *w, int status, const char *body, const char *answer, int line) {
    rig_pair *pair = runtime(w);
    post(w, pair, body);
    free(hear_head_at(w, pair, status, answer, line));
}
#define reply(w, status, body, answer) reply_at((w), (status), (body), (answer), __LINE__)
#define NOBODY ERROR("null", FAULT(-32600, "no pending request has this id", "INVALID_ARGUMENT"))

#endif
