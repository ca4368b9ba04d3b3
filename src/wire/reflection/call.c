/*
 * wire/reflection/call.c: the manager: calls that a runtime is to run. To the call model this is their callee's end: it
 * is told their input and their cancelling, and owes each of them one end, which the runtime says, or its going.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/reflection.h"

#define NONE ((ew_str){NULL, 0})
#define STATE_MS 2000  /* for runActionState, before input is sent without it */
#define CANCEL_MS 2000 /* for the answer to a call that we cancelled */

static ew__rf_call *rf_call(ew__rpc_call *entry) { return (ew__rf_call *)(void *)entry; }

static ew__timers *timers_of(const ew__rf_call *entry) { return &entry->base.call->executor->timers; }

/* ---- the end of a call ---- */

/* Takes a call off the connection. The caller of this gives the reference back after it has ended the call. */
static ew_call *detach(ew__rf_call *entry) {
    ew_call *call = entry->base.call;
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    if (entry->base.input_open && entry->left.running &&
        !peer->closed) { /* a runtime that did not wait for all input */
        ew__rpc_out out;
        ew__rf_put_input_end(&out, entry->base.id);
        ew__rf_send(peer, &out, NULL);
    }
    ew__rpc_call_remove(&entry->base);
    ew__buf_done(&entry->left.held);
    return call;
}

static void tell_ready(ew__rf_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    ew__rf_check_drained(peer);
    if (!peer->closed && conn->ops->ready)
        conn->ops->ready(conn);
}

static void fail_as(ew__rf_call *entry, ew_origin origin, ew_status status, const char *message) {
    ew_call *call = detach(entry);
    ew__call_fail_as(call, origin, status, ew_str_from(message));
    ew_call_unref(call);
}

void ew__rf_fail(ew__rf_call *entry, ew_origin origin, ew_status status, const char *message) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    fail_as(entry, origin, status, message);
    tell_ready(peer);
}

void ew__rf_fail_all(ew__rf_peer *peer, ew_origin origin, ew_status status, const char *message) {
    while (peer->calls.sent.first)
        fail_as(rf_call(peer->calls.sent.first), origin, status, message);
}

static void done(ew__rf_call *entry, ew_str result) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew_call *call = detach(entry);
    (void)ew__call_done_valid(call, result);
    ew_call_unref(call);
    tell_ready(peer);
}

/* Our own runtimes go on with the trace that they were given. */
static void note_trace(const ew__rf_peer *peer, ew_call *call, ew_str trace_id) {
    if (trace_id.len == 0 || trace_id.len > 128 || call->outgoing.remote_trace_id.len)
        return;
    const ew__trace *own = peer->everywire ? ew__call_trace(call) : NULL;
    if (own && ew__str_is(trace_id, ew__str(own->trace_id, sizeof own->trace_id)))
        call->outgoing.remote_trace_id = ew__str(own->trace_id, sizeof own->trace_id);
    else
        (void)ew__arena_str(&call->arena, trace_id, &call->outgoing.remote_trace_id);
}

static void fail_with(ew__rf_call *entry, ew_str error) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew_call *call = detach(entry);
    char buf[EW__RF_TEXT_ROOM];
    bool is_long = error.len > sizeof buf; /* the messages of validators have many lines */
    char *text = is_long ? ew_call_alloc(call, error.len) : buf;
    ew_fault fault;
    ew_str trace;
    ew__rf_read_fault(error, text ? text : buf, text && is_long ? error.len : sizeof buf, &fault, &trace);
    note_trace(peer, call, trace);
    ew__call_fault(call, &fault);
    ew_call_unref(call);
    tell_ready(peer);
}

/* ---- what the call tells its callee: onto the wire ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach a wire opened (wire.h) */ }

static bool fits(const ew__rf_peer *peer, size_t len) {
    return ew__rpc_fits(&peer->calls, len) && (peer->message_limit == 0 || len <= peer->message_limit);
}

/* EW_OK, EW_FULL (sent; room follows), EW_ELIMIT. */
static ew_err send_input(ew__rf_call *entry, ew_str chunk) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew__rpc_out out;
    ew__rf_put_input(&out, entry->base.id, chunk);
    if (!fits(peer, out.len) || !ew__rpc_has_place(&peer->calls, out.len))
        return EW_ELIMIT;
    ew__rf_send(peer, &out, NULL);
    return peer->closed ? EW_FULL : ew__rpc_call_pace(&entry->base); /* closed: the call's end follows */
}

static ew_err hold_input(ew__rf_call *entry, ew_str chunk) {
    ew__buf *held = &entry->left.held;
    size_t len = chunk.len;
    const ew_limits *limits = entry->base.call->executor->limits;
    if (held->len + len > limits->out_max_bytes)
        return EW_ELIMIT;
    if (ew__buf_reserve(held, sizeof len + len) != EW_OK)
        return EW_ENOMEM;
    (void)ew__buf_add(held, &len, sizeof len);
    (void)ew__buf_str(held, chunk);
    return held->len < limits->out_high_bytes ? EW_OK : EW_FULL;
}

static ew_err on_input(ew_call *call, ew_str chunk) {
    ew__rf_call *entry = call->callee_ud;
    if (ew__rf_of(&entry->base)->closed)
        return EW_FULL;
    return entry->left.running ? send_input(entry, chunk) : hold_input(entry, chunk);
}

static void end_input(ew__rf_call *entry) {
    ew__rpc_out out;
    entry->base.input_open = false;
    ew__rf_put_input_end(&out, entry->base.id);
    ew__rf_send(ew__rf_of(&entry->base), &out, NULL);
}

static void on_input_end(ew_call *call) {
    ew__rf_call *entry = call->callee_ud;
    if (entry->left.running)
        end_input(entry);
    else
        entry->left.held_end = true;
}

static void send_cancel(ew__rf_call *entry);

/*
 * Runtimes drop input that comes before they have said that the action runs (the JavaScript one does): it is held back
 * until then. The call may end meanwhile.
 */
static void begin_input(ew__rf_call *entry) {
    ew_call *call = ew_call_ref(entry->base.call);
    ew__buf held = entry->left.held;
    size_t at = 0, len;
    entry->left.running = true;
    ew__buf_init(&entry->left.held, held.env, held.max);
    while (call->callee_open && at < held.len) {
        memcpy(&len, held.ptr + at, sizeof len);
        if (send_input(entry, ew__str(held.ptr + at + sizeof len, len)) < 0) {
            send_cancel(entry); /* it waits for the rest of its input */
            ew__rf_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                        "an input chunk is too large for this connection");
            break;
        }
        at += sizeof len + len;
    }
    ew__buf_done(&held);
    if (call->callee_open && entry->left.held_end)
        end_input(entry);
    else if (call->callee_open && !entry->base.waiting)
        ew__call_input_room(call);
    ew_call_unref(call);
}

static void on_no_state(ew__timer *timer, uint64_t now) {
    (void)now;
    begin_input(ew__container_of(timer, ew__rf_call, base.timer));
}

static void on_no_end(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__rf_fail(ew__container_of(timer, ew__rf_call, base.timer), EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED,
                "the call was cancelled, and the runtime has not ended it");
}

/* By the trace id, which every runtime knows; our own knows the request's id too, before it has said the other. */
static void send_cancel(ew__rf_call *entry) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew_str trace = entry->base.call->outgoing.remote_trace_id;
    char id[EW__RPC_ID_ROOM];
    ew__rpc_out out;
    ew__buf params;
    if (entry->left.asked || (trace.len == 0 && !peer->everywire))
        return; /* runActionState will bring it */
    entry->left.asked = true;
    ew__buf_init(&params, ew__rf_executor(peer)->env, SIZE_MAX / 2);
    if (peer->everywire)
        (void)ew__json_format(&params, "{\"requestId\":%j}", entry->base.id);
    else /* nothing more: the Python runtime refuses members that it does not know */
        (void)ew__json_format(&params, "{\"traceId\":%q}", trace);
    ew__rpc_put_request(&out, ew__str(id, ew__rpc_ids_next(&peer->ids, id)), EW_STR("\"cancelAction\""), 0,
                        ew__buf_view(&params));
    if (!params.err) {
        peer->n_cancels++;
        ew__rf_send(peer, &out, NULL);
    }
    ew__buf_done(&params);
}

/*
 * A caller that asked waits for the end, for a while: cancelling is up to the action. One that has gone waits for
 * nothing: whatever the runtime still says is late.
 */
static void on_cancel(ew_call *call, ew__cancel_why why) {
    ew__rf_call *entry = call->callee_ud;
    entry->left.cancelling = true;
    send_cancel(entry);
    if (why != EW__CANCEL_ASKED || ew__timer_set(timers_of(entry), &entry->base.timer,
                                                 call->executor->now + EW__MS(CANCEL_MS), on_no_end) != EW_OK)
        ew__rf_fail(entry, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

void ew__rf_leave(ew__peer *base) {
    ew__rf_peer *peer = (ew__rf_peer *)(void *)base;
    for (ew__rpc_call *at = peer->calls.sent.first; at; at = at->next)
        send_cancel(ew__container_of(at, ew__rf_call, base));
}

void ew__rf_fail_large(ew__rf_call *entry, const char *problem) {
    send_cancel(entry);
    ew__rf_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_RESOURCE_EXHAUSTED, problem);
}

void ew__rf_overrun(ew__rf_call *entry) {
    send_cancel(entry);
    ew__rf_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW__RPC_OVERRUN);
}

static void on_room(ew_call *call) { ew__rpc_call_unblock(&((ew__rf_call *)call->callee_ud)->base); }

static const ew__callee_ops callee = {
    .open = on_open, .input = on_input, .input_end = on_input_end, .cancel = on_cancel, .room = on_room};

/* ---- opening ---- */

/* Context and labels are carried; a label is a text. */
const char *ew__rf_refuses(const ew_request_options *options) {
    ew_json_iter it = {.offset_ = 0};
    if (options->notify)
        return "the reflection wire has no notifications";
    if (options->id.len)
        return "ids on the reflection wire are the manager's own";
    if (options->labels.len && ew_json_typeof(options->labels) != EW_JSON_OBJECT)
        return "labels are an object of strings";
    while (options->labels.len && ew_json_next(options->labels, &it))
        if (it.value.ptr[0] != '"')
            return "labels are an object of strings";
    return NULL;
}

uint32_t ew__rf_capacity(const ew__peer *base) {
    const ew__rf_peer *peer = (const ew__rf_peer *)(const void *)base;
    return !peer->registered || peer->closed || peer->draining ? 0 : ew__rpc_capacity(&peer->calls);
}

/* Between the payloads and the id: what is false is left out. */
static ew_str flags_of(const ew_call *call) {
    if (call->has_input)
        return call->wants_chunks ? EW_STR(",\"streamInput\":true,\"stream\":true},\"id\":")
                                  : EW_STR(",\"streamInput\":true},\"id\":");
    return call->wants_chunks ? EW_STR(",\"stream\":true},\"id\":") : EW_STR("},\"id\":");
}

#define BETWEEN_ROOM 128
#define PARENT "\",\"traceparent\":\""
#define HOPS "\",\"everywireHops\":"

/*
 * What stands between the key and the payloads; returns its length. Our own runtimes continue the caller's trace, and
 * count how many of us there were; others might not like such members.
 */
static size_t write_between(char out[BETWEEN_ROOM], const ew__rf_peer *peer, ew_call *call) {
    size_t n = 0;
    if (peer->everywire) {
        memcpy(out, PARENT, sizeof PARENT - 1);
        ew__trace_parent(ew__call_trace(call), out + sizeof PARENT - 1);
        n = sizeof PARENT - 1 + EW__TRACEPARENT_LEN;
    }
    if (!peer->everywire || !call->hops) {
        out[n] = '"';
        return n + 1;
    }
    memcpy(out + n, HOPS, sizeof HOPS - 1);
    n += sizeof HOPS - 1;
    return n + ew__u64_text(call->hops, out + n);
}

/* key: as it stands between quotes. */
static void put_run(ew__rpc_out *out, ew_str id, ew_str key, ew_str between, const ew_call *call) {
    ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"runAction\",\"params\":{\"key\":\""));
    ew__rpc_out_add(out, key);
    ew__rpc_out_add(out, between);
    if (!(call->has_input && ew__str_is(call->input, EW_STR("null")))) {
        ew__rpc_out_add(out, call->has_input ? EW_STR(",\"init\":") : EW_STR(",\"input\":"));
        ew__rpc_out_add(out, call->input);
    }
    if (call->context.len) {
        ew__rpc_out_add(out, EW_STR(",\"context\":"));
        ew__rpc_out_add(out, call->context);
    }
    if (call->labels.len) {
        ew__rpc_out_add(out, EW_STR(",\"telemetryLabels\":"));
        ew__rpc_out_add(out, call->labels);
    }
    ew__rpc_out_add(out, flags_of(call));
    ew__rpc_out_add(out, id);
    ew__rpc_out_add(out, EW_STR("}"));
}

/* EW_OK, EW_ENOMEM, EW_ELIMIT (too large for this runtime). */
static ew_err send_run(ew__rf_peer *peer, ew__rf_call *entry) {
    ew_call *call = entry->base.call;
    ew_str key = call->key;
    ew_err err = EW_OK;
    char between[BETWEEN_ROOM];
    ew__rpc_out out;
    ew__buf escaped;
    ew__buf_init(&escaped, call->executor->env, SIZE_MAX / 2);
    if (EW__UNLIKELY(!ew__rf_is_plain(key))) {
        err = ew__json_write_str(&escaped, key, false);
        key = err == EW_OK ? ew__str(escaped.ptr + 1, escaped.len - 2) : key;
    }
    put_run(&out, entry->base.id, key, ew__str(between, write_between(between, peer, call)), call);
    if (err == EW_OK && !fits(peer, out.len))
        err = EW_ELIMIT;
    if (err == EW_OK)
        ew__rf_send(peer, &out, call);
    ew__buf_done(&escaped);
    return err;
}

static ew_err send_request(ew__rf_peer *peer, ew__rf_call *entry) {
    ew__rpc_out out;
    if (entry->base.call->kind != EW__CALL_LIST)
        return send_run(peer, entry);
    ew__rpc_put_request(&out, entry->base.id, EW_STR("\"listActions\""), 0, NONE);
    if (!fits(peer, out.len))
        return EW_ELIMIT;
    ew__rf_send(peer, &out, NULL);
    return EW_OK;
}

static ew_err add_call(ew__rf_peer *peer, ew__rf_call *entry, ew_call *call) {
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    entry->base.id = ew__str(entry->left.id, ew__rpc_ids_next(&peer->ids, entry->left.id));
    entry->base.own_id = true;
    ew__buf_init(&entry->left.held, call->executor->env, SIZE_MAX / 2);
    return ew__rpc_call_send(&entry->base, &callee);
}

ew_err ew__rf_open(ew__peer *base, ew_call *call) {
    ew__rf_peer *peer = (ew__rf_peer *)(void *)base;
    if (ew__rf_capacity(base) == 0)
        return EW_EBUSY;
    call->wire = base->wire->name;
    ew__rf_call *entry = ew_call_alloc(call, sizeof *entry);
    if (!entry || add_call(peer, entry, call) != EW_OK) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return EW_OK;
    }
    ew_err err = send_request(peer, entry);
    if (err == EW_OK && call->has_input &&
        ew__timer_set(timers_of(entry), &entry->base.timer, call->executor->now + EW__MS(STATE_MS), on_no_state) !=
            EW_OK)
        err = EW_ENOMEM;
    if (err != EW_OK)
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                err != EW_ELIMIT      ? "out of memory"
                : peer->message_limit ? "the input is larger than this runtime's library accepts"
                                      : "the input is too large for this connection");
    return EW_OK;
}

/* ---- what the wire tells: into the call ---- */

static void on_state(ew__rf_call *entry, ew_str trace_id) {
    ew_call *call = entry->base.call;
    note_trace(ew__rf_of(&entry->base), call, trace_id);
    if (entry->left.cancelling) { /* a runtime that could not be asked before */
        send_cancel(entry);
        return;
    }
    if (!call->has_input || entry->left.running)
        return;
    ew__timer_stop(timers_of(entry), &entry->base.timer);
    begin_input(entry);
}

static void give_row(ew__rf_call *entry, const ew_str *row, size_t *n) {
    entry->base.all->speaks = &entry->base;
    ew_call *call = ew_call_ref(entry->base.call); /* the caller may let go while it takes the chunk */
    ew_err err = *n == 1 ? ew__call_chunk_valid(call, row[0]) : ew__call_chunk_row(call, row, n);
    if (call->callee_open && err == EW_FULL)
        ew__rpc_call_block(&entry->base, *n, ew__row_bytes(row, *n));
    ew_call_unref(call);
}

static void give_chunk(ew__rf_call *entry, ew_str json) {
    size_t n = 1;
    give_row(entry, &json, &n);
}

size_t ew__rf_took_row(ew__rf_peer *peer, const ew_str *texts, size_t n) {
    ew__rpc_call *entry = peer->calls.speaks;
    ew_str row[EW__RF_ROW];
    size_t k = 0;
    while (entry && k < n && ew__rf_is_simple_chunk(texts[k], entry->id, &row[k]))
        k++;
    if (k > 0)
        give_row(rf_call(entry), row, &k);
    return k;
}

/* The stream that spoke last mostly goes on: then its id needs no looking up, and its message no parsing. */
bool ew__rf_took_chunk(ew__rf_peer *peer, ew_str text) {
    ew__rpc_call *entry = peer->calls.speaks;
    ew_str chunk;
    if (!entry || !ew__rf_is_chunk(text, entry->id, &chunk))
        return false;
    give_chunk(rf_call(entry), chunk);
    return true;
}

void ew__rf_notified(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    char buf[EW__RF_TEXT_ROOM];
    ew_str method = ew__rpc_text(message->method, buf, sizeof buf);
    ew__rf_about about;
    ew__rf_read_about(doc, message->params, &about);
    ew__rpc_call *entry = about.request_id.len ? ew__rpc_call_find(&peer->calls.sent, about.request_id) : NULL;
    if (entry && ew__str_is(method, EW_STR("streamChunk")))
        give_chunk(rf_call(entry), about.chunk.len ? about.chunk : EW_STR("null"));
    else if (entry && ew__str_is(method, EW_STR("runActionState")))
        on_state(rf_call(entry), about.trace_id);
    else
        ew__rpc_late(&peer->calls);
}

static void on_listing(ew__rf_call *entry, ew_str result) {
    ew_str listing = ew__rf_read_listing(result);
    if (listing.len)
        done(entry, listing);
    else
        ew__rf_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, "the answer to listActions is no object");
}

static void end_run(ew__rf_call *entry, const ew__rf_result *read) {
    note_trace(ew__rf_of(&entry->base), entry->base.call, read->trace_id);
    done(entry, read->result);
}

bool ew__rf_took_known(ew__rf_peer *peer, ew_str text) {
    ew_str id, trace;
    ew__rf_result result;
    bool state = ew__rf_is_state(text, &id, &trace);
    if (!state && !ew__rf_is_result(text, &id, &result))
        return false;
    ew__rpc_call *entry = ew__rpc_call_sent(&peer->calls, id);
    if (!entry || entry->call->kind != EW__CALL_RUN)
        return false;
    if (state)
        on_state(rf_call(entry), trace);
    else
        end_run(rf_call(entry), &result);
    return true;
}

static void on_result(ew__rf_call *entry, const ew__json_doc *doc, ew_str result) {
    ew__rf_result read;
    if (ew__rf_read_result(doc, result, &read) != EW_OK) {
        ew__rf_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, "the answer to runAction has no result in it");
        return;
    }
    end_run(entry, &read);
}

static bool is_in_flight(const ew__rpc_call *base) {
    return !((const ew__rf_call *)(const void *)base)->left.cancelling;
}

/* The runtime could not read a request, so its error has no id: it answers the only request in flight. NULL: not one. */
static ew__rpc_call *unnamed(ew__rf_peer *peer, ew_str error) {
    ew__rpc_call *one;
    uint32_t n = ew__rpc_calls_count(&peer->calls, is_in_flight, &one);
    ew__rpc_log_unnamed(&peer->calls, error);
    return n == 1 && peer->n_cancels == 0 ? one : NULL;
}

/* Only calls that were sent on this connection are looked at: nobody can answer for another runtime. */
void ew__rf_answered(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    bool without_id = message->kind == EW__RPC_ERROR && ew__rpc_is_unnamed(message);
    ew__rpc_call *entry = without_id        ? unnamed(peer, message->error)
                          : message->id.len ? ew__rpc_call_find(&peer->calls.sent, message->id)
                                            : NULL;
    if (!entry && peer->n_cancels > 0)
        peer->n_cancels--; /* that to a cancelAction: the call's own end says the rest */
    else if (!entry)
        ew__rpc_late(&peer->calls);
    else if (message->kind == EW__RPC_ERROR)
        fail_with(rf_call(entry), message->error);
    else if (entry->call->kind == EW__CALL_LIST)
        on_listing(rf_call(entry), message->result);
    else
        on_result(rf_call(entry), doc, message->result);
}
