/*
 * api/remote_call.c: a call to a runtime that is connected to this app. Two calls are joined here: the one that
 * somebody made to us, on the loop that it came to (near), and the one that we make to the runtime, on the loop that
 * its connection lives on (far). Where both are the same loop everything is passed on at once; else by letters.
 *
 * The letters are part of the relay, so that none can fail. Each holds a reference while it is under way; the relay
 * lives until both sides are done with it. The near call is touched by the near side, and by the far side as far as its
 * functions are for any thread, until the far one has ended.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/app.h"
#include "api/request.h"

typedef struct relay {
    atomic_uint refs;
    ew__remote *remote;
    ew_call *near;       /* a reference until its end has been passed on */
    ew_request *request; /* the far one */
    bool same;           /* loop */
    bool asked;          /* far: room was asked for */
    bool wants_room;     /* near: somebody waits for it */
    atomic_bool input_told;
    ew_end end;
    ew__arena arena; /* of the end */
    ew__task ask_task, room_task, input_task, end_task;
} relay;

static void unref(relay *r) {
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    const ew_env *env = r->arena.env;
    if (r->request)
        ew__request_unref(r->request);
    ew__remote_unref(r->remote);
    ew__arena_done(&r->arena);
    ew__free(env, r, sizeof *r);
}

static void ref(relay *r) { atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed); }

/* ---- far to near: the end ---- */

static void pass_end(relay *r, const ew_end *end) {
    ew_call *near = r->near;
    r->near = NULL;
    if (end->status == EW_STATUS_OK)
        (void)ew__call_done_valid(near, end->result);
    else
        (void)ew_call_fail_with(near, &end->fault);
    ew_call_unref(near);
    unref(r); /* the near side's */
}

static void on_end_letter(ew__task *task) {
    relay *r = ew__container_of(task, relay, end_task);
    pass_end(r, &r->end);
}

static void keep_end(relay *r, const ew_end *end) {
    r->end = *end;
    ew_str *const slices[] = {&r->end.result, &r->end.fault.message, &r->end.fault.details};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        if (ew__arena_str(&r->arena, *slices[i], slices[i]) == EW_OK)
            continue;
        r->end = (ew_end){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                          .fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("out of memory")}};
        return;
    }
}

static void on_far_end(ew_request *request, const ew_end *end, void *ud) {
    relay *r = ud;
    (void)request;
    if (r->same) {
        pass_end(r, end);
    } else {
        keep_end(r, end);
        r->end_task.fn = on_end_letter;
        r->near->home->ops->post(r->near->home, &r->end_task);
    }
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
    if (r->same) {
        if (r->request->call)
            ew__call_room(r->request->call);
        return;
    }
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
        return EW_OK; /* nobody listens; a cancel is under way */
    if (err != EW_FULL)
        return err;
    if (r->same) {
        r->wants_room = true;
    } else if (!r->asked) {
        r->asked = true;
        ref(r);
        r->ask_task.fn = on_ask_letter;
        r->near->home->ops->post(r->near->home, &r->ask_task);
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
    if (r->same) {
        ew__call_input_room(r->near);
        return;
    }
    if (atomic_exchange(&r->input_told, true))
        return; /* the letter is under way */
    ref(r);
    r->input_task.fn = on_input_letter;
    r->near->home->ops->post(r->near->home, &r->input_task);
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
    ref(r); /* the end may come from inside */
    ew__request_cancel(r->request, why);
    unref(r);
}

static void on_near_room(ew_call *near) {
    relay *r = near->callee_ud;
    if (r->wants_room)
        tell_room(r);
}

/* ---- the beginning ---- */

static void open_far(ew_call *call) {
    ew__runtime *runtime = ((ew__remote *)call->callee_ud)->runtime;
    if (!runtime || ew__runtime_leaving(runtime))
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the runtime has gone"));
    else if (ew__runtime_send(runtime, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("the connection to the runtime takes no further call"));
}

static const ew__callee_ops far_way = {.open = open_far};

static relay *new_relay(ew_call *near, ew__remote *remote) {
    const ew_env *env = near->home->env;
    int64_t left = ew_call_deadline_ms(near);
    relay *r = ew__zalloc(env, sizeof *r);
    if (!r)
        return NULL;
    atomic_init(&r->refs, 2); /* near and far */
    r->remote = ew__remote_ref(remote);
    r->same = near->home == remote->home;
    ew__arena_init(&r->arena, env, NULL, 0);
    ew_request_options options = {.action = near->action->key,
                                  .input = near->input,
                                  .context = near->context,
                                  .labels = near->labels,
                                  .timeout_ms = left < 0    ? 0
                                                : left == 0 ? 1
                                                            : (uint64_t)left,
                                  .stream = near->wants_chunks,
                                  .input_stream = near->has_input,
                                  .parent = near,
                                  .on_end = on_far_end,
                                  .on_room = on_far_input_room,
                                  .ud = r};
    if (ew__request_make(remote->home, &options, &far_way, remote, &r->request) != EW_OK) {
        unref(r);
        unref(r);
        return NULL;
    }
    r->request->take_chunk = on_far_chunk;
    r->near = ew_call_ref(near);
    return r;
}

/* Whether it is on its way: a loop that its runtime has left may have ended. */
static bool send_off(relay *r) {
    ew__remotes *all = r->remote->all;
    if (r->same) {
        ew__request_open(r->request);
        return true;
    }
    pthread_mutex_lock(&all->lock);
    bool gone = r->remote->gone;
    if (!gone)
        ew__request_open(r->request);
    pthread_mutex_unlock(&all->lock);
    return !gone;
}

static void on_near_open(ew_call *near) {
    relay *r = new_relay(near, near->callee_ud);
    if (!r) {
        ew__call_fail_as(near, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    near->callee_ud = r;
    if (send_off(r))
        return;
    ew__request_unref(r->request); /* its own reference; ours goes with the relay */
    r->near = NULL;
    ew__call_fail_as(near, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the runtime has gone"));
    ew_call_unref(near);
    unref(r);
    unref(r);
}

const ew__callee_ops ew__remote_callee = {.open = on_near_open,
                                          .input = on_near_input,
                                          .input_end = on_near_input_end,
                                          .cancel = on_near_cancel,
                                          .room = on_near_room};
