/*
 * gateway/away.c: see away.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/away.h"
#include "gateway/app.h"
#include "call/input_queue.h"

#define AWAY_MEMBER "\"everywireAway\":true"

/* A call that waits, in its own memory. */
typedef struct away_call {
    ew__list_node node;
    ew_call *call; /* the callee's reference, which its end gives back */
    ew__app_loop *loop;
    uint64_t until;
} away_call;

/* ---- the queue ---- */

static void on_time(ew__timer *timer, uint64_t now);

static away_call *first_of(const ew__away_calls *calls) { return EW__ITEM(calls->waiting.first, away_call, node); }

/* All wait for the same time, so the first is the first to end. Without memory for a timer nothing may wait. */
static bool set_timer(ew__app_loop *loop) {
    ew__timers *timers = &loop->loop.executor.timers;
    ew__away_calls *calls = &loop->away;
    const away_call *first = first_of(calls);
    if (!first) {
        ew__timer_stop(timers, &calls->timer);
        return true;
    }
    return ew__timer_active(&calls->timer) || ew__timer_set(timers, &calls->timer, first->until, on_time) == EW_OK;
}

static void take_out(away_call *call) {
    ew__away_calls *calls = &call->loop->away;
    if (calls->cursor == &call->node)
        calls->cursor = call->node.next;
    ew__list_remove(&calls->waiting, &call->node);
    calls->n--;
}

/* ---- ends ---- */

void ew__away_fail(ew_call *call, ew_str message) {
    ew__call_fault_as(call, EW_ORIGIN_CONNECT,
                      &(ew_fault){.status = EW_STATUS_UNAVAILABLE,
                                  .message = message,
                                  .retryable = true,
                                  .refused = true, /* no handler has started */
                                  .retry_after_ms = EW__AWAY_RETRY_MS});
}

static void fail_away(ew_call *call) { ew__away_fail(call, EW_STR("the runtime that offers this action is away")); }

static void on_time(ew__timer *timer, uint64_t now) {
    ew__app_loop *loop = ew__container_of(timer, ew__app_loop, away.timer);
    away_call *waiting;
    while ((waiting = first_of(&loop->away)) && waiting->until <= now) {
        take_out(waiting);
        fail_away(waiting->call);
    }
    if (!set_timer(loop))
        ew__away_close(loop);
}

void ew__away_close(ew__app_loop *loop) {
    away_call *waiting;
    while ((waiting = first_of(&loop->away))) {
        take_out(waiting);
        fail_away(waiting->call);
    }
    (void)set_timer(loop);
}

/* ---- the callee ---- */

static void on_open(ew_call *call) {
    ew__executor *executor = call->executor;
    ew__app_loop *loop = ew__container_of(ew__loop_of(executor), ew__app_loop, loop);
    bool full = loop->away.n >= executor->limits->client_queue;
    bool ends = loop->closing || atomic_load(&loop->app->lifecycle.draining);
    away_call *waiting = full || ends ? NULL : ew__arena_alloc(&call->arena, sizeof *waiting);
    if (!waiting) {
        fail_away(call);
        return;
    }
    *waiting = (away_call){.call = call, .loop = loop, .until = executor->now + EW__MS(executor->limits->reconnect_ms)};
    call->callee_ud = waiting;
    ew__list_add_last(&loop->away.waiting, &waiting->node);
    loop->away.n++;
    if (!set_timer(loop)) {
        take_out(waiting);
        fail_away(call);
    }
}

static ew_err on_input(ew_call *call, ew_str chunk) { return ew__input_queue_add(call, chunk); }

static void on_cancel(ew_call *call, ew__cancel_why why) {
    away_call *waiting = call->callee_ud;
    ew__app_loop *loop = waiting->loop;
    (void)why;
    take_out(waiting);
    ew__call_fail_as(call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("the call was cancelled"));
    (void)set_timer(loop); /* the earlier time is kept, or the timer stops */
}

static const ew__callee_ops callee = {.open = on_open, .input = on_input, .cancel = on_cancel};

/* The action that takes the call now: the same one, or one of the same key. NULL: none yet. */
static ew__action *find(const ew__actions *actions, const ew__action *away) {
    ew__action *action = NULL;
    bool found = ew__actions_find(actions, away->long_key, &action) == EW_OK && !action->away;
    if (!found)
        found = ew__actions_find(actions, away->key, &action) == EW_OK && !action->away;
    return found && action->long_key.len ? action : NULL; /* one of our own was not meant, and checks its input first */
}

/* Passing a call on may end others, and open new ones: the cursor is kept by take_out. */
void ew__away_refresh(ew__app_loop *loop) {
    ew__away_calls *calls = &loop->away;
    if (calls->n == 0)
        return;
    ew__actions *actions = ew__registry_get(&loop->app->registry);
    calls->cursor = calls->waiting.first;
    for (uint32_t n = calls->n; n > 0 && calls->cursor; n--) {
        away_call *waiting = EW__ITEM(calls->cursor, away_call, node);
        calls->cursor = calls->cursor->next;
        ew__action *action = find(actions, waiting->call->action);
        if (!action)
            continue;
        take_out(waiting);
        ew__call_pass(waiting->call, action);
    }
    calls->cursor = NULL;
    ew__actions_unref(actions);
    if (!set_timer(loop))
        ew__away_close(loop);
}

/* ---- the action ---- */

/* The runtime's own descriptor, with a mark. */
static ew_err write_descriptor(ew__buf *out, ew_str descriptor) {
    ew_str rest = ew__str(descriptor.ptr + 1, descriptor.len - 1); /* a JSON object, so it begins with a brace */
    ew_json_iter it = {.offset_ = 0};
    (void)ew__buf_cstr(out, ew_json_next(descriptor, &it) ? "{" AWAY_MEMBER "," : "{" AWAY_MEMBER);
    return ew__buf_str(out, rest);
}

ew_err ew__away_action_new(const ew_env *env, ew_str runtime, const ew__action *action, ew__action **ret) {
    ew__buf descriptor;
    ew__buf_init(&descriptor, env, SIZE_MAX / 2);
    ew_err err = write_descriptor(&descriptor, action->descriptor);
    if (err == EW_OK)
        err = ew__action_new_remote(env, runtime, action->key, ew__buf_view(&descriptor), &callee, NULL, NULL, ret);
    if (err == EW_OK)
        (*ret)->away = true;
    ew__buf_done(&descriptor);
    return err;
}
