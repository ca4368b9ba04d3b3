/*
 * bridge/cross_loop.c: see relay.h. Two calls are joined here: the one that somebody made, on the loop that it came to (near),
 * and the one that is opened elsewhere (far). What happens on one side reaches the other by letters.
 *
 * The letters are part of the relay, so that none can fail. Each holds a reference while it is under way; the relay
 * lives until both sides are done with it. The near call is touched by the near side, and by the far side as far as its
 * functions are for any thread, until the far one has ended.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/cross_loop.h"
#include "client/request.h"

#define LARGE ((size_t)16 * 1024)

typedef struct relay {
    atomic_uint refs;
    ew__loop_upstream *there;
    ew_call *near;       /* a reference until its end has been passed on */
    ew_request *request; /* the far one */
    bool asked;          /* far: room was asked for */
    bool wants_room;     /* near: somebody waits for it */
    atomic_bool input_told;
    ew_end end;
    ew__arena arena; /* of the end */
    char *large;     /* a result that is too large for that; the near call takes it over */
    ew__task ask_task, room_task, input_task, end_task;
} relay;

static void unref(relay *r) {
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    const ew_env *env = r->arena.env;
    if (r->request)
        ew__request_unref(r->request);
    if (r->large)
        ew__free(env, r->large, r->end.result.len);
    ew__upstream_unref(&r->there->far);
    ew__arena_done(&r->arena);
    ew__free(env, r, sizeof *r);
}

static void ref(relay *r) { atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed); }

/* ---- far to near: the end ---- */

static void on_end_letter(ew__task *task) { /* near */
    relay *r = ew__container_of(task, relay, end_task);
    const ew_end *end = &r->end;
    ew_call *near = r->near;
    r->near = NULL;
    near->begun = r->request->begun;
    (void)ew__arena_str(&near->arena, end->trace_id, &near->remote_trace_id); /* for its span; may be missing */
    if (r->large && ew__arena_adopt(&near->arena, r->large, end->result.len) == EW_OK)
        r->large = NULL; /* it is sent from there */
    if (end->status == EW_STATUS_OK)
        (void)ew__call_done_valid(near, end->result);
    else
        ew__call_fault_as(near, end->origin, &end->fault);
    ew_call_unref(near);
    unref(r); /* the near side's */
}

static ew_err keep_result(relay *r, ew_str result) {
    if (result.len < LARGE)
        return ew__arena_str(&r->arena, result, &r->end.result);
    r->large = ew__alloc(r->arena.env, result.len);
    if (!r->large)
        return EW_ENOMEM;
    memcpy(r->large, result.ptr, result.len);
    r->end.result = ew__str(r->large, result.len);
    return EW_OK;
}

static void keep_end(relay *r, const ew_end *end) {
    r->end = *end;
    if (keep_result(r, end->result) != EW_OK ||
        ew__arena_str(&r->arena, end->fault.message, &r->end.fault.message) != EW_OK ||
        ew__arena_str(&r->arena, end->trace_id, &r->end.trace_id) != EW_OK ||
        ew__arena_str(&r->arena, end->fault.details, &r->end.fault.details) != EW_OK)
        r->end = (ew_end){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                          .origin = EW_ORIGIN_LOCAL,
                          .fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("out of memory")}};
}

static void on_far_end(ew_request *request, const ew_end *end, void *ud) {
    relay *r = ud;
    (void)request;
    keep_end(r, end);
    r->end_task.fn = on_end_letter;
    r->near->executor->ops->post(r->near->executor, &r->end_task);
    unref(r); /* the far side's */
}

/* ---- far to near: chunks, and back that there is room ---- */

static void on_room_letter(ew__task *task) { /* far */
    relay *r = ew__container_of(task, relay, room_task);
    r->asked = false;
    if (r->request->call)
        ew__call_room(r->request->call);
    unref(r);
}

static void tell_room(relay *r) { /* near */
    r->wants_room = false;
    ref(r);
    r->room_task.fn = on_room_letter;
    if (!ew__request_post(r->request, &r->room_task))
        unref(r);
}

/*
 * The far side was told to wait: because the reader is behind, then room follows; or because many letters were under
 * way, then they have been read by now.
 */
static void on_ask_letter(ew__task *task) { /* near */
    relay *r = ew__container_of(task, relay, ask_task);
    r->wants_room = true;
    if (r->near && !atomic_load(&r->near->full))
        tell_room(r);
    unref(r);
}

static ew_err on_far_chunk(ew_request *request, ew_str chunk) {
    relay *r = request->options.ud;
    ew_err err = ew__call_pass_chunk(r->near, chunk);
    if (err == EW_ECANCELLED || err == EW_EENDED)
        return EW_OK; /* the near call has ended */
    if (err != EW_FULL)
        return err;
    if (!r->asked) {
        r->asked = true;
        ref(r);
        r->ask_task.fn = on_ask_letter;
        r->near->executor->ops->post(r->near->executor, &r->ask_task);
    }
    return EW_FULL;
}

/* ---- near to far: input, and back that there is room ---- */

static void on_input_letter(ew__task *task) { /* near */
    relay *r = ew__container_of(task, relay, input_task);
    atomic_store(&r->input_told, false);
    if (r->near)
        ew__call_input_room(r->near);
    unref(r);
}

static void on_far_input_room(ew_request *request, void *ud) {
    relay *r = ud;
    (void)request;
    if (atomic_exchange(&r->input_told, true))
        return; /* the letter is under way */
    ref(r);
    r->input_task.fn = on_input_letter;
    r->near->executor->ops->post(r->near->executor, &r->input_task);
}

static ew_err on_near_input(ew_call *near, ew_str chunk) {
    relay *r = near->callee_ud;
    ew_err err = ew__request_input(r->request, chunk, false);
    return err == EW_EENDED ? EW_OK : err; /* the end is under way */
}

static void on_near_input_end(ew_call *near) {
    relay *r = near->callee_ud;
    if (ew__request_input(r->request, ew__str(NULL, 0), true) == EW_ENOMEM)
        ew__request_cancel(r->request, EW__CANCEL_GONE); /* it would wait for ever */
}

static void on_near_cancel(ew_call *near, ew__cancel_why why) {
    relay *r = near->callee_ud;
    ew__request_cancel(r->request, why);
}

static void on_near_room(ew_call *near) {
    relay *r = near->callee_ud;
    if (r->wants_room)
        tell_room(r);
}

/* ---- the beginning ---- */

static void open_far(ew_call *call) {
    ew__loop_upstream *there = call->callee_ud;
    there->open(there, call);
}

static const ew__callee_ops far_way = {.open = open_far};

static uint64_t time_left(const ew_call *near) {
    int64_t left = ew_call_deadline_ms(near);
    return left < 0 ? 0 : left == 0 ? 1 : (uint64_t)left;
}

/* The action whose secrets a call has: its own, or that of the call which it goes on for. */
static ew__action *marked_action(const ew_call *call) {
    while (call && !call->action)
        call = call->lender;
    return call ? ew__action_ref(call->action) : NULL;
}

static relay *new_relay(ew_call *near, ew__loop_upstream *there) {
    const ew_env *env = near->executor->env;
    relay *r = ew__zalloc(env, sizeof *r);
    if (!r)
        return NULL;
    atomic_init(&r->refs, 2); /* near and far */
    r->there = there;
    (void)ew__upstream_ref(&there->far);
    ew__arena_init(&r->arena, env, NULL, 0);
    ew_request_options options = {.action = near->key,
                                  .input = near->input,
                                  .context = near->context,
                                  .labels = near->labels,
                                  .timeout_ms = time_left(near),
                                  .stream = near->wants_chunks,
                                  .input_stream = near->has_input,
                                  .parent = near,
                                  .on_end = on_far_end,
                                  .on_room = on_far_input_room,
                                  .ud = r};
    if (ew__request_make(there->executor, &options, &far_way, there, &r->request) != EW_OK) {
        unref(r);
        unref(r);
        return NULL;
    }
    r->request->relayed = true;
    r->request->hops = near->hops;
    r->request->attempt = near->attempt;
    if (near->secret_input || near->secret_output)
        r->request->marked = marked_action(near);
    r->request->take_chunk = on_far_chunk;
    atomic_store(&r->request->told_full,
                 near->has_input); /* no input before the upstream takes it: the call may move */
    r->near = ew_call_ref(near);
    return r;
}

/* Whether it is on its way: a loop that has nothing more to do with it may have ended. */
static bool send_off(relay *r) {
    ew__loop_upstream *there = r->there;
    pthread_mutex_lock(there->lock);
    bool gone = there->gone;
    if (!gone)
        ew__request_open(r->request);
    pthread_mutex_unlock(there->lock);
    return !gone;
}

static void on_near_open(ew_call *near) {
    ew__loop_upstream *there = near->callee_ud;
    if (near->executor == there->executor) {
        there->open(there, near);
        return;
    }
    relay *r = new_relay(near, there);
    if (!r) {
        ew__call_fail_as(near, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    near->callee_ud = r;
    ref(r); /* the end may come before this is over */
    bool sent = send_off(r);
    unref(r);
    if (sent)
        return;
    ew__request_unref(r->request); /* its own reference; ours goes with the relay */
    r->near = NULL;
    ew__call_fail_as(near, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the peer has gone"));
    ew_call_unref(near);
    unref(r);
    unref(r);
}

const ew__callee_ops ew__loop_upstream_callee = {.open = on_near_open,
                                                 .input = on_near_input,
                                                 .input_end = on_near_input_end,
                                                 .cancel = on_near_cancel,
                                                 .room = on_near_room};

void ew__loop_upstream_open(ew__upstream *far, ew_call *call) {
    ew__loop_expect(ew__loop_of(call->executor));
    ew__call_open_on(call, &ew__loop_upstream_callee, ew__container_of(far, ew__loop_upstream, far));
}
