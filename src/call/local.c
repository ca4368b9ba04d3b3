/*
 * call/local.c: the callee's end of a local handler: its callbacks, its timer, its queue of early input. The
 * executor's thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call.h"
#include "base/list.h"
#include "call/input_queue.h"
#include "call/local.h"

/* ---- early input ---- */

struct ew__input_item {
    struct ew__input_item *next;
    size_t len;
    char bytes[];
};

static bool input_full(const ew_call *call) {
    const ew_limits *limits = call->executor->limits;
    return call->local.in_bytes >= limits->in_queue_bytes || call->local.in_items >= limits->in_queue_items;
}

ew_err ew__input_queue_add(ew_call *call, ew_str chunk) {
    struct ew__input_item *item = ew__alloc(call->executor->env, sizeof *item + chunk.len);
    if (!item)
        return EW_ENOMEM;
    item->len = chunk.len;
    memcpy(item->bytes, chunk.ptr, chunk.len);
    EW__TAIL_ADD(call->local.in_head, call->local.in_tail, item);
    call->local.in_bytes += chunk.len;
    call->local.in_items++;
    return input_full(call) ? EW_FULL : EW_OK;
}

struct ew__input_item *ew__input_queue_take(ew_call *call) {
    struct ew__input_item *item = call->local.in_head;
    if (!item)
        return NULL;
    call->local.in_head = item->next;
    call->local.in_bytes -= item->len;
    call->local.in_items--;
    return item;
}

ew_str ew__input_item_text(const struct ew__input_item *item) { return ew__str(item->bytes, item->len); }

void ew__input_item_free(const ew_call *call, struct ew__input_item *item) {
    ew__free(call->executor->env, item, sizeof *item + item->len);
}

void ew__input_queue_clear(ew_call *call) {
    while (call->local.in_head)
        ew__input_item_free(call, ew__input_queue_take(call));
}

void ew__input_queue_deliver(ew_call *call) {
    ew_call_ref(call); /* the handler may end the call in its callback */
    while (call->callee_open && call->local.on_input && call->local.in_head) {
        struct ew__input_item *item = ew__input_queue_take(call);
        call->local.on_input(call, ew__input_item_text(item), false, call->local.on_input_arg);
        ew__input_item_free(call, item);
    }
    if (call->callee_open && !call->local.in_head)
        ew__call_input_room(call);
    if (call->callee_open && call->local.on_input && call->input_ended) {
        ew_input_fn fn = call->local.on_input;
        call->local.on_input = NULL;
        fn(call, ew__str(NULL, 0), true, call->local.on_input_arg);
    }
    ew_call_unref(call);
}

/* ---- the callee's slots ---- */

static void local_open(ew_call *call) { call->action->fn(call, call->action->arg); }

static ew_err local_input(ew_call *call, ew_str chunk) {
    if (call->local.on_input && !call->local.in_head) {
        call->local.on_input(call, chunk, false, call->local.on_input_arg);
        return EW_OK;
    }
    return ew__input_queue_add(call, chunk);
}

static void local_input_end(ew_call *call) {
    if (call->local.on_input)
        ew__input_queue_deliver(call);
}

static void local_cancel(ew_call *call, ew__cancel_why why) {
    (void)why;
    ew_call_fn fn = call->local.on_cancel;
    call->local.on_cancel = NULL;
    if (fn)
        fn(call, call->local.on_cancel_arg);
}

static void on_room_timer(ew__timer *timer, uint64_t now) {
    ew_call *call = ew__container_of(timer, ew_call, local.room_timer);
    (void)now;
    if (atomic_load_explicit(&call->full, memory_order_relaxed))
        return; /* filled again meanwhile: the next room comes back here */
    ew_call_fn fn = call->local.on_room;
    call->local.on_room = NULL;
    if (fn)
        fn(call, call->local.on_room_arg);
}

/* Through a timer that is due at once, so that producers take turns: one burst per call and turn of the loop. */
static void local_room(ew_call *call) {
    ew__executor *executor = call->executor;
    if (call->local.on_room &&
        ew__timer_set(&executor->timers, &call->local.room_timer, executor->now, on_room_timer) != EW_OK)
        /* no memory for the turn: at once, so that it does not wait for ever */
        on_room_timer(&call->local.room_timer, executor->now);
}

const ew__callee_ops ew__local_callee = {
    .open = local_open,
    .input = local_input,
    .input_end = local_input_end,
    .cancel = local_cancel,
    .room = local_room,
};

/* ---- what a handler asks for, on the executor thread ---- */

ew_err ew__local_on_cancel(ew_call *call, ew_call_fn fn, void *arg) {
    if (!call->callee_open)
        return EW_EENDED;
    call->local.on_cancel = fn;
    call->local.on_cancel_arg = arg;
    if (fn && atomic_load_explicit(&call->cancelled, memory_order_relaxed))
        local_cancel(call, EW__CANCEL_ASKED);
    return EW_OK;
}

ew_err ew__local_on_room(ew_call *call, ew_call_fn fn, void *arg) {
    if (!call->callee_open)
        return EW_EENDED;
    call->local.on_room = fn;
    call->local.on_room_arg = arg;
    if (!fn || atomic_load_explicit(&call->full, memory_order_relaxed))
        return EW_OK;
    return ew__timer_set(&call->executor->timers, &call->local.room_timer, call->executor->now, on_room_timer);
}

static void on_after_timer(ew__timer *timer, uint64_t now) {
    ew_call *call = ew__container_of(timer, ew_call, local.after_timer);
    (void)now;
    ew_call_fn fn = call->local.on_after;
    call->local.on_after = NULL;
    if (fn)
        fn(call, call->local.on_after_arg);
}

ew_err ew__local_after(ew_call *call, uint64_t ms, ew_call_fn fn, void *arg) {
    if (!call->callee_open)
        return EW_EENDED;
    call->local.on_after = fn;
    call->local.on_after_arg = arg;
    uint64_t now = ms == 0 ? call->executor->now : ew__executor_read_clock(call->executor);
    uint64_t at = ms > (EW__NEVER - 1 - now) / 1000000 ? EW__NEVER - 1 : now + EW__MS(ms);
    return ew__timer_set(&call->executor->timers, &call->local.after_timer, at, on_after_timer);
}

ew_err ew__local_on_input(ew_call *call, ew_input_fn fn, void *arg) {
    if (!call->callee_open)
        return EW_EENDED;
    if (!call->has_input)
        return EW_EUNSUPPORTED;
    call->local.on_input = fn;
    call->local.on_input_arg = arg;
    if (fn)
        ew__input_queue_deliver(call);
    return EW_OK;
}
