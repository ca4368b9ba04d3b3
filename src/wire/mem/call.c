/*
 * wire/mem/call.c: calls that leave by this wire. To the call model this is their callee's end: it is told their
 * input and their cancelling, and owes each of them one end, which the peer says, or the connection's death.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/mem/mem.h"

/* Takes a call off the connection. The caller of this gives the reference back after it has ended the call. */
static ew_call *detach(ew__mem_call *entry) {
    ew__mem_remove(entry);
    return entry->call;
}

static void fail_as(ew__mem_call *entry, ew_origin origin, ew_status status, ew_str message) {
    ew_call *call = detach(entry);
    ew__call_fail_as(call, origin, status, message);
    ew_call_unref(call);
}

void ew__mem_fail_sent(ew__mem_peer *peer, ew_origin origin, ew_status status, ew_str message) {
    while (peer->sent.first)
        fail_as(peer->sent.first, origin, status, message);
}

/* ---- what the call tells its callee: onto the wire ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach a wire opened (wire.h) */ }

static ew_err on_input(ew_call *call, ew_str chunk) {
    return ew__mem_send_chunk(call->callee_ud, EW__MEM_CHUNK_IN, chunk);
}

static void on_input_end(ew_call *call) {
    const ew__mem_call *entry = call->callee_ud;
    ew__mem_send(entry->peer, &(ew__mem_frame){.event = EW__MEM_END_IN, .id = entry->id});
}

/*
 * A caller that asked waits for the callee's end. One that has gone waits for nothing: whatever the callee still says
 * is late.
 */
static void on_cancel(ew_call *call, ew__cancel_why why) {
    ew__mem_call *entry = call->callee_ud;
    ew__mem_peer *peer = entry->peer;
    ew__mem_send(peer, &(ew__mem_frame){.event = EW__MEM_CANCEL, .id = entry->id});
    if (why == EW__CANCEL_ASKED)
        return;
    fail_as(entry, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("the call was cancelled"));
    ew__mem_check_drained(peer);
}

static void on_room(ew_call *call) { ew__mem_took(call->callee_ud, 0, true); }

static const ew__callee_ops callee = {
    .open = on_open, .input = on_input, .input_end = on_input_end, .cancel = on_cancel, .room = on_room};

/* ---- opening ---- */

uint32_t ew__mem_capacity(const ew__peer *peer) {
    const ew__mem_peer *mem = (const ew__mem_peer *)(const void *)peer;
    uint64_t most = peer->conn->executor->limits->calls_per_connection;
    if (mem->closed || mem->draining || mem->sent.n >= most)
        return 0;
    return (uint32_t)(most - mem->sent.n);
}

static uint32_t fresh_id(ew__mem_peer *peer) {
    do {
        peer->next_id++;
    } while (ew__mem_find(&peer->sent, peer->next_id));
    return peer->next_id;
}

static uint64_t ms_left(const ew_call *call) {
    int64_t ms = ew_call_deadline_ms(call);
    return ms < 0 ? UINT64_MAX : (uint64_t)ms;
}

static uint8_t flags_of(const ew_call *call) {
    return (uint8_t)((call->kind == EW__CALL_LIST ? EW__MEM_LIST : 0) |
                     (call->wants_chunks ? EW__MEM_WANTS_CHUNKS : 0) | (call->has_input ? EW__MEM_HAS_INPUT : 0));
}

ew_err ew__mem_open(ew__peer *peer, ew_call *call) {
    ew__mem_peer *mem = (ew__mem_peer *)(void *)peer;
    char traceparent[EW__TRACEPARENT_LEN];
    if (ew__mem_capacity(peer) == 0)
        return EW_EBUSY;
    ew__trace_parent(&call->trace, traceparent);
    ew__mem_frame frame = {.event = EW__MEM_OPEN,
                           .id = fresh_id(mem),
                           .flags = flags_of(call),
                           .number = ms_left(call),
                           .attempt = call->attempt,
                           .hops = call->hops,
                           .key = call->key,
                           .payload = call->input,
                           .context = call->context,
                           .labels = call->labels,
                           .traceparent = ew__str(traceparent, sizeof traceparent),
                           .tracestate = call->tracestate};
    ew__mem_call *entry = ew_call_alloc(call, sizeof *entry);
    if (!entry || !ew__mem_fits(mem, &frame)) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         entry ? EW_STR("the input is too large for this connection") : EW_STR("out of memory"));
        return EW_OK;
    }
    ew__mem_add(mem, entry, ew_call_ref(call), frame.id, true);
    call->callee = &callee;
    call->callee_ud = entry;
    call->wire = peer->wire->name;
    call->deep = true;
    ew__mem_send(mem, &frame);
    ew__call_input_room(call);
    return EW_OK;
}

/* ---- what the wire tells: into the call ---- */

static void on_accepted(ew_call *call, ew_str trace_id) {
    if (trace_id.len <= 64)
        (void)ew__arena_str(
            &call->arena, trace_id,
            &call->outgoing.remote_trace_id); /* without memory for it the caller just does not learn it */
}

static void on_chunk(ew__mem_call *entry, ew_str json) {
    ew_call *call =
        ew_call_ref(entry->call); /* the caller may let go while it takes the chunk, and entry goes with it */
    ew_err err = ew__call_chunk_valid(call, json);
    if (err == EW_FULL)
        entry->owed += json.len; /* given back by on_room */
    else if (err == EW_OK && call->callee_open)
        ew__mem_took(entry, json.len, false);
    ew_call_unref(call);
}

static void on_fail(ew__mem_call *entry, const ew__mem_frame *frame) {
    bool sound = frame->status > EW_STATUS_OK && frame->status < EW_STATUS_COUNT;
    ew_fault fault = {.status = sound ? (ew_status)frame->status : EW_STATUS_UNKNOWN,
                      .message = frame->message,
                      .details = frame->details,
                      .retryable = (frame->flags & EW__MEM_RETRYABLE) != 0,
                      .refused = (frame->flags & EW__MEM_REFUSED) != 0,
                      .retry_after_ms = frame->number};
    ew_call *call = detach(entry);
    ew__call_fault(call, &fault);
    ew_call_unref(call);
}

static void on_done(ew__mem_call *entry, ew_str result) {
    ew_call *call = detach(entry);
    (void)ew__call_done_valid(call, result);
    ew_call_unref(call);
}

/* A call ended: the next may come. */
static void tell_ready(ew__mem_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    ew__mem_check_drained(peer);
    if (!peer->closed && conn->ops->ready)
        conn->ops->ready(conn);
}

ew_err ew__mem_answer(ew__mem_peer *peer, const ew__mem_frame *frame) {
    ew__mem_call *entry = ew__mem_find(&peer->sent, frame->id);
    if (!entry) {
        ew__mem_late(peer);
        return EW_OK;
    }
    switch (frame->event) {
    case EW__MEM_ACCEPTED:
        on_accepted(entry->call, frame->payload);
        break;
    case EW__MEM_CHUNK_OUT:
        on_chunk(entry, frame->payload);
        break;
    case EW__MEM_DONE:
        on_done(entry, frame->payload);
        tell_ready(peer);
        break;
    case EW__MEM_FAIL:
        on_fail(entry, frame);
        tell_ready(peer);
        break;
    default: /* room-in */
        return ew__mem_given(entry, frame->number);
    }
    return EW_OK;
}
