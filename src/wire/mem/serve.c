/*
 * wire/mem/serve.c: calls that came by this wire. To the call model this is their caller's end: it opens them, feeds
 * their input, and is told their chunks and their end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/mem/mem.h"

/* ---- what the call tells its caller: onto the wire ---- */

static void on_accepted(ew_call *call) {
    ew__mem_call *entry = call->caller_ud;
    ew__mem_send(entry->peer,
                 &(ew__mem_frame){.event = EW__MEM_ACCEPTED, .id = entry->id, .payload = ew_call_trace_id(call)});
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    return ew__mem_send_chunk(call->caller_ud, EW__MEM_CHUNK_OUT, json);
}

static void send_fail(ew__mem_peer *peer, uint32_t id, const ew_fault *fault) {
    ew__mem_frame frame = {
        .event = EW__MEM_FAIL,
        .id = id,
        .status = (uint8_t)fault->status,
        .flags = (uint8_t)((fault->retryable ? EW__MEM_RETRYABLE : 0) | (fault->refused ? EW__MEM_REFUSED : 0)),
        .number = fault->retry_after_ms,
        .message = fault->message,
        .details = fault->details};
    if (!ew__mem_fits(peer, &frame))
        frame.message = frame.details = ew__str(NULL, 0); /* the status is what matters */
    ew__mem_send(peer, &frame);
}

static void refuse(ew__mem_peer *peer, uint32_t id, ew_status status, ew_str message) {
    send_fail(peer, id, &(ew_fault){.status = status, .message = message});
}

/* Another peer may accept the call. */
static void refuse_busy(ew__mem_peer *peer, uint32_t id, ew_status status, ew_str message) {
    send_fail(peer, id, &(ew_fault){.status = status, .message = message, .refused = true});
}

static void on_end(ew_call *call, const ew__end *end) {
    ew__mem_call *entry = call->caller_ud;
    ew__mem_peer *peer = entry->peer;
    ew__mem_frame done = {.event = EW__MEM_DONE, .id = entry->id, .payload = end->result};
    if (end->status != EW_STATUS_OK)
        send_fail(peer, entry->id, &end->fault);
    else if (ew__mem_fits(peer, &done))
        ew__mem_send(peer, &done);
    else
        refuse(peer, entry->id, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("the result is too large for this connection"));
    ew__mem_remove(entry);
    ew__call_release(call); /* entry is gone with it */
    ew__mem_check_drained(peer);
}

static void on_input_room(ew_call *call) { ew__mem_took(call->caller_ud, 0, true); }

static const ew__caller_ops caller = {
    .accepted = on_accepted, .chunk = on_chunk, .end = on_end, .input_room = on_input_room};

/* ---- what the wire tells: into the call ---- */

static void read_deadline(ew_call *call, uint64_t ms) {
    ew__executor *executor = call->executor;
    uint64_t most = executor->limits->call_ms;
    if (most && ms > most)
        ms = most;
    if (ms == UINT64_MAX)
        return;
    uint64_t now = ew__executor_read_clock(executor);
    call->deadline = ms >= (EW__NEVER - now) / 1000000 ? EW__NEVER - 1 : now + EW__MS(ms);
}

/* The frame's bytes go away; what the call keeps is copied into its memory. */
static ew_err fill_call(ew_call *call, const ew__mem_frame *frame) {
    call->wire = ew__wire_mem.name;
    call->deep = true;
    call->wants_chunks = (frame->flags & EW__MEM_WANTS_CHUNKS) != 0;
    call->has_input = (frame->flags & EW__MEM_HAS_INPUT) != 0;
    call->attempt = (uint32_t)frame->attempt;
    call->hops = frame->hops;
    (void)ew__trace_continue(&call->trace, &call->executor->rng, frame->traceparent);
    read_deadline(call, frame->number);
    const ew_str input = ew_json_get(frame->payload, ""); /* without white space around it */
    const ew_str texts[] = {input, frame->context, frame->labels, frame->tracestate};
    ew_str *const into[] = {&call->input, &call->context, &call->labels, &call->tracestate};
    for (size_t i = 0; i < sizeof into / sizeof *into; i++)
        if (ew__arena_str(&call->arena, texts[i], into[i]) != EW_OK)
            return EW_ENOMEM;
    return EW_OK;
}

static void open_call(ew__mem_peer *peer, const ew__mem_frame *frame, ew__action *action) {
    ew_call *call = ew__call_new(peer->peer.conn->executor, &caller, NULL);
    ew__mem_call *entry = call ? ew_call_alloc(call, sizeof *entry) : NULL;
    if (!entry || fill_call(call, frame) != EW_OK) {
        if (call)
            ew__call_release(call);
        refuse(peer, frame->id, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory, or too many calls"));
        return;
    }
    call->caller_ud = entry;
    ew__mem_add(peer, entry, call, frame->id, false);
    call->served.who = ew__conn_who(peer->peer.conn);
    ew__call_open(call, action); /* it may have ended when this returns */
}

static void refuse_action(ew__mem_peer *peer, const ew__mem_frame *frame, ew_err why) {
    static const char several[] = "several actions have this name, use a key: ";
    char text[400];
    if (why == EW_ENOTFOUND) {
        refuse(peer, frame->id, EW_STATUS_NOT_FOUND, EW_STR("no such action"));
        return;
    }
    memcpy(text, several, sizeof several - 1);
    size_t n = sizeof several - 1;
    n += ew__actions_matches(peer->peer.conn->site->actions, frame->key, text + n, sizeof text - n);
    refuse(peer, frame->id, EW_STATUS_INVALID_ARGUMENT, ew__str(text, n));
}

static void list(ew__mem_peer *peer, uint32_t id) {
    ew__conn *conn = peer->peer.conn;
    ew__mem_frame frame = {.event = EW__MEM_DONE, .id = id};
    ew__buf own;
    ew_fault fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED,
                      .message = EW_STR("the list is too large for this connection")};
    ew_err err = ew__gate_list(conn->executor, ew__conn_who(conn), ew__wire_mem.name, conn->site->actions, &own,
                               &frame.payload, &fault);
    if (err == EW_OK && ew__mem_fits(peer, &frame))
        ew__mem_send(peer, &frame);
    else
        send_fail(peer, id, &fault);
    ew__buf_done(&own);
}

static ew_err on_open(ew__mem_peer *peer, const ew__mem_frame *frame) {
    const ew__site *site = peer->peer.conn->site;
    ew__action *action = NULL;
    if (ew__mem_find(&peer->served, frame->id))
        return EW_EPROTO;
    if (site->draining || peer->draining) {
        refuse_busy(peer, frame->id, EW_STATUS_UNAVAILABLE, EW_STR("going down"));
    } else if (!site->actions) {
        refuse(peer, frame->id, EW_STATUS_UNIMPLEMENTED, EW_STR("this side offers no actions"));
    } else if (peer->served.n >= peer->peer.conn->executor->limits->calls_per_connection) {
        refuse_busy(peer, frame->id, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("too many calls on this connection"));
    } else if (frame->flags & EW__MEM_LIST) {
        list(peer, frame->id);
    } else {
        ew_err err = ew__actions_find(site->actions, frame->key, &action);
        if (err == EW_OK)
            open_call(peer, frame, action);
        else
            refuse_action(peer, frame, err);
    }
    return EW_OK;
}

static void on_chunk_in(ew__mem_call *entry, ew_str json) {
    ew_call *call =
        ew_call_ref(entry->call); /* the handler may end the call while it takes the chunk, and entry with it */
    ew_err err = ew__call_input(call, json);
    bool lives = call->caller_open;
    if (lives && err == EW_OK)
        ew__mem_took(entry, json.len, false);
    else if (lives && err == EW_FULL)
        entry->owed += json.len; /* given back by on_input_room */
    else if (err == EW_EENDED)
        ew__mem_late(entry->peer);
    ew_call_unref(call);
}

ew_err ew__mem_serve(ew__mem_peer *peer, const ew__mem_frame *frame) {
    if (frame->event == EW__MEM_OPEN)
        return on_open(peer, frame);
    ew__mem_call *entry = ew__mem_find(&peer->served, frame->id);
    if (!entry) {
        ew__mem_late(peer);
        return EW_OK;
    }
    switch (frame->event) {
    case EW__MEM_CHUNK_IN:
        on_chunk_in(entry, frame->payload);
        break;
    case EW__MEM_END_IN:
        ew__call_input_end(entry->call);
        break;
    case EW__MEM_CANCEL:
        ew__call_cancel(entry->call, EW__CANCEL_ASKED);
        break;
    default: /* room-out */
        return ew__mem_given(entry, frame->number);
    }
    return EW_OK;
}
