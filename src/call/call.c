/*
 * call/call.c: the state machine of a call, on its executor thread. Two flags carry it: caller_open (somebody waits for
 * the end) and callee_open (somebody owes one). The doors from other threads are in post.c, waiting ones in sync.c,
 * local handlers in local.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call.h"
#include "call/call_memory.h"
#include "call/input_queue.h"
#include "json/json.h"
#include "json/text.h"
#include <stdio.h>

static void dropped(ew__executor *executor) {
    atomic_fetch_add_explicit(&executor->calls->dropped, 1, memory_order_relaxed);
}

/* ---- life ---- */

static void count_live(ew__executor *executor, int by) {
    executor->calls->live += (uint32_t)by;
    if (executor->calls->live_all)
        atomic_fetch_add_explicit(executor->calls->live_all, (unsigned)by, memory_order_acq_rel);
}

static bool too_many(const ew__executor *executor) {
    uint64_t live = executor->calls->live_all ? atomic_load_explicit(executor->calls->live_all, memory_order_relaxed)
                                              : executor->calls->live;
    return live >= executor->limits->calls || (executor->budget && ew__budget_is_spent(executor->budget));
}

ew_call *ew__call_new(ew__executor *executor, const ew__caller_ops *caller, void *ud) {
    ew_call *call = too_many(executor) ? NULL : ew__call_memory_get(executor);
    if (!call)
        return NULL;
    atomic_init(&call->refs, 1);
    call->executor = executor;
    call->caller = caller;
    call->caller_ud = ud;
    call->deadline = EW__NEVER;
    call->input = EW_STR("null");
    call->wire = "local";
    return call;
}

static void destroy(ew_call *call) {
    ew_call *lender = call->lender;
    ew__input_queue_clear(call);
    ew__call_sync_free(call);
    if (call->action)
        ew__action_unref(call->action);
    ew__call_memory_put(call->executor, call);
    ew_call_unref(lender);
}

static void unref_task(ew__task *task) { destroy(ew__container_of(task, ew_call, cross_thread.unref_task)); }

ew_call *ew_call_ref(ew_call *call) {
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
    return call;
}

ew_call *ew_call_unref(ew_call *call) {
    if (!call || atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    if (ew__executor_here(call->executor)) {
        destroy(call);
    } else {
        call->cross_thread.unref_task.fn = unref_task;
        ew__executor_post(call->executor, &call->cross_thread.unref_task);
    }
    return NULL;
}

/* ---- those who look on ---- */

static void observe_opened(ew_call *call) {
    for (ew__observer *observer = call->executor->calls->observer; observer; observer = observer->next)
        if (observer->opened)
            observer->opened(observer, call);
}

static void observe_chunks(ew_call *call, size_t n) {
    for (ew__observer *observer = call->executor->calls->observer; observer; observer = observer->next)
        if (observer->chunks)
            observer->chunks(observer, call, n);
}

static void observe_ended(ew_call *call, const ew__end *end) {
    if (!call->executor->calls->observer)
        return;
    uint64_t duration = ew__executor_read_clock(call->executor) - call->opened_at;
    for (ew__observer *observer = call->executor->calls->observer; observer; observer = observer->next)
        if (observer->ended)
            observer->ended(observer, call, end, duration);
}

static void observe_left(ew_call *call) {
    if (!call->executor->calls->observer)
        return;
    bool was_cancelled = atomic_load_explicit(&call->cancelled, memory_order_relaxed);
    uint64_t after = was_cancelled ? ew__executor_read_clock(call->executor) - call->cancelled_at : 0;
    for (ew__observer *observer = call->executor->calls->observer; observer; observer = observer->next)
        if (observer->left)
            observer->left(observer, call, after);
}

/* ---- towards the caller ---- */

static void tell_end(ew_call *call, const ew__end *end) {
    ew__executor *executor = call->executor;
    if (!call->caller_open) {
        dropped(executor);
        return;
    }
    call->caller_open = false;
    ew__timer_stop(&executor->timers, &call->deadline_timer);
    observe_ended(call, end);
    call->caller->end(call, end);
}

static ew__end make_fault(ew_origin origin, ew_status status, ew_str message) {
    ew__end end = {.status = status, .origin = origin, .fault = {.status = status, .message = message}};
    return end;
}

/* The caller is no longer there: what comes now is dropped, and nobody needs to wait for a reader. */
static void abandon(ew_call *call, ew__cancel_why why) {
    ew_call_ref(call);
    ew__call_cancel(call, why);
    ew__call_room(call);
    ew_call_unref(call);
}

static void on_deadline(ew__timer *timer, uint64_t now) {
    ew_call *call = ew__container_of(timer, ew_call, deadline_timer);
    (void)now;
    ew_call_ref(call);
    ew__end end = make_fault(EW_ORIGIN_DEADLINE, EW_STATUS_DEADLINE_EXCEEDED, EW_STR("the deadline has passed"));
    tell_end(call, &end);
    abandon(call, EW__CANCEL_DEADLINE);
    ew_call_unref(call);
}

/*
 * Our deadline went along with an outgoing call, so the peer may say that it has passed just before our own timer
 * does: it is still our deadline.
 */
static bool is_our_deadline(const ew_call *call, ew_status status) {
    return status == EW_STATUS_DEADLINE_EXCEEDED && !call->action && call->deadline != EW__NEVER &&
           call->executor->now + EW__MS(20) >= call->deadline;
}

void ew__call_detach(ew_call *call) {
    static const ew__callee_ops none = {.open = NULL};
    call->callee = &none;
    call->callee_ud = NULL;
}

/* The callee is done with the call, however that came about: its timers, its queue and its reference go. */
static ew_err finish(ew_call *call, const ew__end *end) {
    ew__executor *executor = call->executor;
    if (!call->callee_open) {
        dropped(executor);
        return EW_EENDED;
    }
    call->callee_open = false;
    ew__call_detach(call);
    ew__timer_stop(&executor->timers, &call->local.after_timer);
    ew__timer_stop(&executor->timers, &call->local.room_timer);
    tell_end(call, end);
    count_live(executor, -1);
    observe_left(call);
    ew__input_queue_clear(call);
    ew_call_unref(call);
    if (executor->calls->live == 0 && executor->calls->on_idle)
        executor->calls->on_idle(executor);
    return EW_OK;
}

/* What is wrong with a value, kept as long as the call: without memory for them the details are left out. */
static void keep_fault(ew_call *call, ew_fault *fault) {
    if (ew__arena_str(&call->arena, fault->message, &fault->message) != EW_OK)
        fault->message = EW_STR("out of memory");
    if (fault->details.len && ew__arena_str(&call->arena, fault->details, &fault->details) != EW_OK)
        fault->details = ew__str(NULL, 0);
}

/* ---- limits of payloads ---- */

static bool is_within(const ew_call *call, ew_str json, size_t others) {
    return EW__LIKELY(json.len + others <= ew__payload_bytes(call->executor->limits) &&
                      (!call->deep || ew__json_is_payload(json)));
}

/* The fault of a payload that is not within its limits; `what` is one of the few names of payloads. */
static ew_fault excess(ew_call *call, const char *what, ew_str json, size_t others) {
    uint64_t most = ew__payload_bytes(call->executor->limits);
    bool bytes = json.len + others > most;
    char text[160];
    int n = bytes ? snprintf(text, sizeof text, "%s too large: %zu bytes, the limit is %llu (set by frame_bytes)", what,
                             json.len + others, (unsigned long long)most)
                  : snprintf(text, sizeof text, "%s nested too deep: the limit is %d levels", what, EW_PAYLOAD_DEPTH);
    ew_fault fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = ew__str(text, (size_t)n)};
    keep_fault(call, &fault);
    return fault;
}

/* Whether a value fits what the action says of it; schema may be NULL. */
static bool fits(ew_call *call, const ew__schema *schema, ew__contract_part part, ew_str json, ew_fault *fault) {
    ew__schema_report report;
    if (!schema)
        return true;
    bool ok = ew__contract_fits(call->executor->env, schema, part, json, &report, fault);
    if (!ok)
        keep_fault(call, fault);
    ew__schema_report_done(&report);
    return ok;
}

ew_err ew__call_done_valid(ew_call *call, ew_str json) {
    ew__end end = {.status = EW_STATUS_OK, .origin = EW_ORIGIN_ACTION, .result = json.len ? json : EW_STR("null")};
    ew_fault fault;
    bool heard = call->callee_open && call->caller_open;
    if (!is_within(call, end.result, 0)) {
        fault = excess(call, "the result is", end.result, 0);
        ew__call_fault_as(call, EW_ORIGIN_LOCAL, &fault);
        return EW_ELIMIT;
    }
    if (call->action && heard && !fits(call, call->action->contract.output, EW__CONTRACT_RESULT, json, &fault)) {
        ew__call_fault_as(call, EW_ORIGIN_ACTION, &fault);
        return EW_ETYPE;
    }
    return finish(call, &end);
}

void ew__call_fail_as(ew_call *call, ew_origin origin, ew_status status, ew_str message) {
    ew__call_fault_as(call, origin, &(ew_fault){.status = status, .message = message});
}

/* A peer can report a fault whose status is OK. Refusing it would leave the call without an end. */
void ew__call_fault_as(ew_call *call, ew_origin origin, const ew_fault *fault) {
    bool is_failure = fault->status > EW_STATUS_OK && fault->status < EW_STATUS_COUNT;
    ew__end end = {.origin = origin, .fault = *fault};
    end.status = end.fault.status = is_failure ? fault->status : EW_STATUS_UNKNOWN;
    if (!end.fault.message.ptr)
        end.fault.message = EW_STR("");
    if (end.fault.details.len && !is_within(call, end.fault.details, end.fault.message.len))
        end.fault.details = ew__str(NULL, 0); /* the status and the message still say what failed */
    (void)finish(call, &end);
}

void ew__call_fault(ew_call *call, const ew_fault *fault) {
    bool ours = is_our_deadline(call, fault->status);
    ew__call_fault_as(call, ours ? EW_ORIGIN_DEADLINE : EW_ORIGIN_ACTION, fault);
}

/*
 * A chunk that could not be taken leaves a hole: the call is over for its caller; the callee is told to stop and still
 * owes its end.
 */
static ew_err lose_chunk(ew_call *call, ew_err err, ew_str too_much) {
    ew__end end = make_fault(EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                             err == EW_ENOMEM ? EW_STR("out of memory") : too_much);
    tell_end(call, &end);
    abandon(call, EW__CANCEL_GONE);
    return err;
}

/* Likewise for a chunk, of output or of input, that is not within the limits of a payload. */
static ew_err refuse_chunk(ew_call *call, const char *what, ew_str json) {
    ew_fault fault = excess(call, what, json, 0);
    return lose_chunk(call, EW_ELIMIT, fault.message);
}

/* EW_OK; EW_ETYPE: its action does not allow it, and the call is over likewise. */
static ew_err check_chunk(ew_call *call, ew_str json) {
    ew_fault fault;
    if (fits(call, call->action->contract.chunk, EW__CONTRACT_CHUNK, json, &fault))
        return EW_OK;
    ew__end end = {.status = fault.status, .origin = EW_ORIGIN_ACTION, .fault = fault};
    tell_end(call, &end);
    abandon(call, EW__CANCEL_GONE);
    return EW_ETYPE;
}

/* Its taker wants no more of them for now, or cannot take it. */
static ew_err heed_taker(ew_call *call, ew_err err) {
    if (err == EW_FULL)
        atomic_store(&call->full, true);
    else if (err < 0)
        return lose_chunk(call, err, EW_STR("the reader is too slow: its buffer is full"));
    return err;
}

/* Whether nobody takes a chunk now; *ret_err: then what its producer is told. */
static bool nobody_takes(const ew_call *call, ew_err *ret_err) {
    *ret_err = !call->callee_open ? EW_EENDED : !call->caller_open ? EW_ECANCELLED : EW_OK;
    return EW__UNLIKELY(*ret_err != EW_OK) || !call->wants_chunks;
}

ew_err ew__call_chunk_valid(ew_call *call, ew_str json) {
    ew_err err;
    if (nobody_takes(call, &err))
        return err;
    if (!is_within(call, json, 0))
        return refuse_chunk(call, "a chunk of the stream is", json);
    if (call->action) { /* an outgoing one has none */
        if (call->action->contract.chunk && check_chunk(call, json) != EW_OK)
            return EW_ETYPE;
        observe_chunks(call, 1);
    }
    err = call->caller->chunk(call, json);
    return EW__LIKELY(err == EW_OK) ? EW_OK : heed_taker(call, err);
}

/* The first of a row, or more of them where the taker can and nobody wants to see each. */
static ew_err take_some(ew_call *call, const ew_str *row, size_t *n) {
    ew_err err;
    bool checked = (call->action && call->action->contract.chunk) ||
                   EW__UNLIKELY(ew__payload_bytes(call->executor->limits) < EW__ROW_CHUNK);
    if (!call->caller->chunk_row || checked) {
        *n = 1;
        return ew__call_chunk_valid(call, row[0]);
    }
    if (nobody_takes(call, &err))
        return err;
    err = call->caller->chunk_row(call, row, n);
    if (call->action)
        observe_chunks(call, *n);
    return EW__LIKELY(err == EW_OK) ? EW_OK : heed_taker(call, err);
}

ew_err ew__call_chunk_row(ew_call *call, const ew_str *row, size_t *n) {
    ew_err err = EW_OK;
    size_t done = 0;
    ew_call_ref(call); /* it may end at any of them */
    while (done < *n && err == EW_OK) {
        size_t some = *n - done;
        err = take_some(call, row + done, &some);
        done += some;
    }
    ew_call_unref(call);
    *n = done;
    return err;
}

/* ---- towards the callee ---- */

/* The context and the labels travel with the input: what is too large for the envelope counts with it. */
static bool input_is_within(ew_call *call) {
    size_t others = ew__payload_extra(call->executor->limits, call->context.len + call->labels.len);
    bool context_ok = !call->deep || call->context.len == 0 || ew__json_is_payload(call->context);
    if (context_ok && is_within(call, call->input, others))
        return true;
    ew_fault fault = excess(call, context_ok ? "the input is" : "the context is",
                            context_ok ? call->input : call->context, context_ok ? others : 0);
    if (call->input.len + others <= ew__payload_bytes(call->executor->limits))
        fault.status = EW_STATUS_INVALID_ARGUMENT; /* its depth: as for text that is not JSON */
    ew__call_fault_as(call, EW_ORIGIN_LOCAL, &fault);
    return false;
}

/*
 * The one place that every served call comes by: what the action would not take never reaches it, and is refused before
 * anything was promised to the caller. Where the input comes as a stream there need not be another.
 */
static bool input_fits(ew_call *call) {
    ew_fault fault;
    const ew__schema *schema = call->action ? call->action->contract.input : NULL;
    bool streamed = call->has_input && (call->input.len == 0 || call->input.ptr[0] == 'n');
    if (!schema || streamed || fits(call, schema, EW__CONTRACT_INPUT, call->input, &fault))
        return true;
    ew__call_fault_as(call, EW_ORIGIN_LOCAL, &fault);
    return false;
}

static void begin(ew_call *call, const ew__callee_ops *callee, void *ud) {
    call->callee = callee;
    call->callee_ud = ud;
    call->caller_open = call->callee_open = true;
    call->opened_at = call->executor->now;
    ew_call_ref(call); /* the callee's */
    count_live(call->executor, 1);
    observe_opened(call);
}

static void start(ew_call *call, const ew__callee_ops *callee, void *ud) {
    ew__executor *executor = call->executor;
    begin(call, callee, ud);
    if (call->deadline != EW__NEVER &&
        ew__timer_set(&executor->timers, &call->deadline_timer, call->deadline, on_deadline) != EW_OK) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    if (!input_is_within(call) || !input_fits(call))
        return;
    if (call->caller->accepted)
        call->caller->accepted(call);
    callee->open(call);
}

/* It ends before it was accepted; those who look on see it come and go. */
static void refuse(ew_call *call, const ew_fault *fault) {
    static const ew__callee_ops nobody = {.open = NULL};
    begin(call, &nobody, NULL);
    ew__call_fault_as(call, EW_ORIGIN_LOCAL, fault);
}

void ew__call_open(ew_call *call, ew__action *action) {
    call->action = ew__action_ref(action);
    call->key = action->key;
    call->secret_input = action->secret_input;
    call->secret_output = action->secret_output;
    ew_fault fault;
    if (EW__UNLIKELY(call->executor->calls->gate != NULL) &&
        !ew__gate_authorize_call(call->executor, call->served.who, call->wire, action, &fault))
        refuse(call, &fault);
    else
        start(call, action->ops, action->ops_ud);
}

void ew__call_open_on(ew_call *call, const ew__callee_ops *callee, void *ud) { start(call, callee, ud); }

void ew__call_pass(ew_call *call, ew__action *action) {
    ew__action *before = call->action;
    call->action = ew__action_ref(action);
    call->key = action->key;
    call->secret_input = action->secret_input;
    call->secret_output = action->secret_output;
    call->callee = action->ops;
    call->callee_ud = action->ops_ud;
    ew__action_unref(before);
    action->ops->open(call);
}

void ew__call_cancel(ew_call *call, ew__cancel_why why) {
    if (!call->callee_open || atomic_load_explicit(&call->cancelled, memory_order_relaxed))
        return;
    call->cancelled_at = ew__executor_read_clock(call->executor);
    atomic_store(&call->cancelled, true);
    ew__call_wake_waiters(call);
    if (call->callee->cancel)
        call->callee->cancel(call, why);
}

void ew__call_release(ew_call *call) {
    ew__executor *executor = call->executor;
    if (call->caller_open) {
        call->caller_open = false;
        ew__timer_stop(&executor->timers, &call->deadline_timer);
        ew__end end = make_fault(EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("the caller has gone"));
        observe_ended(call, &end);
        abandon(call, EW__CANCEL_GONE);
    }
    ew_call_unref(call);
}

void ew__call_room(ew_call *call) {
    if (!call->callee_open || !atomic_load_explicit(&call->full, memory_order_relaxed))
        return;
    atomic_store(&call->full, false);
    ew__call_wake_waiters(call);
    if (call->callee->room)
        call->callee->room(call);
}

ew_err ew__call_input(ew_call *call, ew_str chunk) {
    if (!call->callee_open || call->input_ended)
        return EW_EENDED;
    if (!is_within(call, chunk, 0))
        return call->caller_open ? refuse_chunk(call, "a chunk of the input is", chunk) : EW_ELIMIT;
    ew_err err = call->callee->input ? call->callee->input(call, chunk) : EW_OK;
    if (err == EW_FULL)
        call->input_full = true; /* only a queue says that: the call has not ended meanwhile */
    else if (err < 0 && call->caller_open)
        return lose_chunk(call, err, EW_STR("an input chunk is too large for this connection"));
    return err;
}

void ew__call_input_room(ew_call *call) {
    if (!call->input_full || !call->caller_open)
        return;
    call->input_full = false;
    if (call->caller->input_room)
        call->caller->input_room(call);
}

void ew__call_input_end(ew_call *call) {
    if (!call->callee_open || call->input_ended)
        return;
    call->input_ended = true;
    if (call->callee->input_end)
        call->callee->input_end(call);
}

/* ---- what came with it ---- */

ew_str ew_call_input(const ew_call *call) { return call->input; }
ew_str ew_call_key(const ew_call *call) { return call->key; }
ew_str ew_call_wire(const ew_call *call) { return ew_str_from(call->wire); }
ew_str ew_call_context(const ew_call *call) { return call->context; }
ew_str ew_call_labels(const ew_call *call) { return call->labels; }

/* Most calls of a wire that carries no trace are over before anybody asks for one. */
enum { TRACE_NONE, TRACE_BUSY, TRACE_MADE };

/* {"traceparent":"..."}, as most write it: nothing else is in there, and what it holds is looked at by who takes it. */
static bool has_parent_only(ew_str carrier, ew_str *ret_parent) {
    const ew_str head = EW_STR("{\"traceparent\":\""), tail = EW_STR("\"}");
    if (carrier.len != head.len + EW__TRACEPARENT_LEN + tail.len)
        return false;
    *ret_parent = ew__str(carrier.ptr + head.len, EW__TRACEPARENT_LEN);
    return memcmp(carrier.ptr, head.ptr, head.len) == 0 &&
           memcmp(carrier.ptr + carrier.len - tail.len, tail.ptr, tail.len) == 0 &&
           !memchr(ret_parent->ptr, '\\', ret_parent->len) && !memchr(ret_parent->ptr, '"', ret_parent->len);
}

/* Both in one walk, for every call that goes on through a bridge comes here. The first of each counts. */
static void read_carrier(ew_str carrier, ew_str *ret_parent, ew_str *ret_state) {
    ew_json_iter it = {.offset_ = 0};
    *ret_state = ew__str(NULL, 0);
    if (has_parent_only(carrier, ret_parent))
        return;
    *ret_parent = ew__str(NULL, 0);
    while (ew_json_next(carrier, &it)) {
        ew_str name = ew__str(it.key.ptr + 1, it.key.len - 2);
        bool parent = ew__json_name_is(name, EW_STR("traceparent"));
        ew_str *ret = parent ? ret_parent : ew__json_name_is(name, EW_STR("tracestate")) ? ret_state : NULL;
        if (ret && !ret->ptr)
            *ret = ew__json_text(it.value, NULL, 0); /* a valid one has no escapes */
    }
}

static void make_trace(ew_call *call) {
    ew__rng own, *rng = &call->executor->rng;
    if (!ew__executor_here(call->executor)) { /* the executor's generator is its thread's */
        ew__rng_init(&own, call->executor->env);
        rng = &own;
    }
    if (call->served.carrier.len == 0) {
        ew__trace_new(&call->trace, rng);
        return;
    }
    ew_str parent, state;
    read_carrier(call->served.carrier, &parent, &state);
    (void)ew__trace_continue(&call->trace, rng, parent);
    if (call->trace.has_parent && ew__tracestate_ok(state))
        call->tracestate = state;
}

const ew__trace *ew__call_trace(ew_call *call) {
    unsigned char none = TRACE_NONE;
    if (atomic_load_explicit(&call->trace_state, memory_order_acquire) == TRACE_MADE)
        return &call->trace;
    if (atomic_compare_exchange_strong(&call->trace_state, &none, TRACE_BUSY)) {
        if (!call->trace.trace_id[0])
            make_trace(call);
        atomic_store_explicit(&call->trace_state, TRACE_MADE, memory_order_release);
    }
    while (atomic_load_explicit(&call->trace_state, memory_order_acquire) != TRACE_MADE) {
        /* another thread makes it: some nanoseconds */
    }
    return &call->trace;
}

/* The slot is const for its readers; that it is filled late is the call's own affair. */
static ew_call *unconst(const ew_call *call) { return (ew_call *)(uintptr_t)call; }

ew_str ew_call_trace_id(const ew_call *call) {
    return ew__str(ew__call_trace(unconst(call))->trace_id, sizeof call->trace.trace_id);
}

ew_str ew_call_span_id(const ew_call *call) {
    return ew__str(ew__call_trace(unconst(call))->span_id, sizeof call->trace.span_id);
}

uint32_t ew_call_attempt(const ew_call *call) { return call->attempt; }
bool ew_call_wants_chunks(const ew_call *call) { return call->wants_chunks; }
bool ew_call_has_input_stream(const ew_call *call) { return call->has_input; }
bool ew_call_cancelled(const ew_call *call) { return atomic_load(&call->cancelled); }
void *ew_call_alloc(ew_call *call, size_t size) { return ew__arena_alloc(&call->arena, size); }

int64_t ew_call_deadline_ms(const ew_call *call) {
    if (call->deadline == EW__NEVER)
        return -1;
    uint64_t now = call->executor->env->now_ns(call->executor->env->ud);
    return call->deadline <= now ? 0 : (int64_t)((call->deadline - now + 999999) / 1000000);
}
