/*
 * wire/jsonrpc/call.c: calls that leave by this wire. To the call model this is their callee's end: it is told their
 * input and their cancelling, and owes each of them one end, which the peer says, or the connection's death.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define HELD_MAX 64 /* frames that came before the base response of their call */
#define HELD_MAX_BYTES (256 * 1024)
#define CANCEL_MS 2000    /* for the answer to a call that we cancelled */
#define METHOD_ROOM 64    /* names of methods that are longer are quoted in memory of their own */
#define MESSAGE_ROOM 1024 /* messages of errors with escapes are decoded, up to here */

/* ---- the end of a call ---- */

static void send_frame(ew__jr_call *entry, int stream, ew_str data) {
    ew__rpc_out message;
    ew__rpc_put_frame(&message, entry->base.id, stream, data);
    ew__jr_send(ew__jr_peer_of(entry), &message, NULL);
}

/*
 * Takes a call off the connection. The caller of this gives the reference back after it has ended the call. A peer that
 * answered before it had all input is told that no more will come.
 */
static ew_call *detach(ew__jr_call *entry) {
    ew_call *call = entry->base.call;
    if (entry->base.input_open && entry->phase != EW__JR_ASKING)
        send_frame(entry, EW__RPC_STREAM_CLOSE, ew__str(NULL, 0));
    ew__rpc_call_remove(&entry->base);
    for (uint32_t n = ew__jr_row_clear(call->executor->env, &entry->left.held); n > 0; n--)
        ew__rpc_late(entry->base.all);
    return call;
}

static void fail_as(ew__jr_call *entry, ew_origin origin, ew_status status, ew_str message) {
    ew_call *call = detach(entry);
    ew__call_fail_as(call, origin, status, message);
    ew_call_unref(call);
}

void ew__jr_fail(ew__jr_call *entry, ew_origin origin, ew_status status, const char *message) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    fail_as(entry, origin, status, ew_str_from(message));
    ew__rpc_reader_call_ended(&peer->reader);
}

void ew__jr_fail_sent(ew__jr_peer *peer, ew_origin origin, ew_status status, ew_str message) {
    while (peer->calls.sent.first)
        fail_as(ew__jr_call_of(peer->calls.sent.first), origin, status, message);
}

static void done(ew__jr_call *entry, ew_str result) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    ew_call *call = detach(entry);
    (void)ew__call_done_valid(call, result);
    ew_call_unref(call);
    ew__rpc_reader_call_ended(&peer->reader);
}

void ew__jr_fail_with(ew__jr_call *entry, ew_str error) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    char text[MESSAGE_ROOM];
    ew_fault fault;
    ew__jr_read_fault(error, text, sizeof text, &fault);
    ew_call *call = detach(entry);
    if (call->kind == EW__CALL_LIST && fault.status == EW_STATUS_NOT_FOUND) {
        fault.status = EW_STATUS_UNIMPLEMENTED;
        fault.message = EW_STR("the peer cannot list its actions: it does not know rpc.discover");
    }
    ew__call_fault(call, &fault);
    ew_call_unref(call);
    ew__rpc_reader_call_ended(&peer->reader);
}

/* ---- what the call tells its callee: onto the wire ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach a wire opened (wire.h) */ }

static ew_err on_input(ew_call *call, ew_str chunk) {
    ew__jr_call *entry = call->callee_ud;
    ew__jr_row *held = &entry->left.held;
    if (entry->phase != EW__JR_ASKING) {
        const bool *closed = &ew__jr_peer_of(entry)->reader.closed;
        ew_err err = *closed ? EW_FULL : ew__jr_send_chunk(entry, chunk);
        return *closed ? EW_FULL : err; /* the end of the connection is the call's, and follows */
    }
    if (held->bytes + chunk.len > call->executor->limits->out_max_bytes)
        return EW_ELIMIT;
    ew_err err = ew__jr_row_add(call->executor->env, held, chunk, false);
    return err == EW_OK ? EW_FULL : err;
}

static void on_input_end(ew_call *call) {
    ew__jr_call *entry = call->callee_ud;
    if (entry->phase == EW__JR_ASKING) {
        if (ew__jr_row_add(call->executor->env, &entry->left.held, ew__str(NULL, 0), true) != EW_OK)
            ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    entry->base.input_open = false;
    send_frame(entry, EW__RPC_STREAM_CLOSE, ew__str(NULL, 0));
}

static void on_no_end(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__jr_fail(ew__container_of(timer, ew__jr_call, base.timer), EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED,
                "the call was cancelled, and the peer has not ended it");
}

static void send_cancel(ew__jr_call *entry) {
    ew__rpc_out message;
    char params[EW__RPC_ID_ROOM + 8];
    size_t n = 6;
    if (entry->base.id.len > EW__RPC_ID_ROOM)
        return;
    memcpy(params, "{\"id\":", n);
    memcpy(params + n, entry->base.id.ptr, entry->base.id.len);
    n += entry->base.id.len;
    params[n++] = '}';
    ew__rpc_put_request(&message, ew__str(NULL, 0), EW_STR("\"$/cancelRequest\""), 0, ew__str(params, n));
    ew__jr_send(ew__jr_peer_of(entry), &message, NULL);
}

/*
 * A caller that asked waits for the callee's end, for a while: not every peer knows what cancelling is. One that has
 * gone waits for nothing: whatever the callee still says is late.
 */
static void on_cancel(ew_call *call, ew__cancel_why why) {
    ew__jr_call *entry = call->callee_ud;
    ew__executor *executor = call->executor;
    bool waits = why == EW__CANCEL_ASKED && entry->phase != EW__JR_ASKING;
    if (entry->phase != EW__JR_ASKING)
        send_cancel(entry);
    entry->cancelling = true;
    if (!waits ||
        ew__timer_set(&executor->timers, &entry->base.timer, executor->now + EW__MS(CANCEL_MS), on_no_end) != EW_OK)
        ew__jr_fail(entry, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

void ew__jr_leave(ew__peer *base) {
    ew__jr_peer *peer = (ew__jr_peer *)(void *)base;
    for (ew__rpc_call *at = peer->calls.sent.first; at; at = at->next) {
        ew__jr_call *entry = ew__jr_call_of(at);
        if (entry->phase == EW__JR_ASKING || entry->cancelling)
            continue;
        entry->cancelling = true;
        send_cancel(entry);
    }
}

static void on_room(ew_call *call) {
    ew__jr_call *entry = call->callee_ud;
    ew__rpc_call_unblock(&entry->base);
}

static const ew__callee_ops callee = {
    .open = on_open, .input = on_input, .input_end = on_input_end, .cancel = on_cancel, .room = on_room};

/* ---- opening ---- */

const char *ew__jr_refuses(const ew_request_options *options) {
    if (options->context.len || options->labels.len)
        return "the jsonrpc wire carries no context and no labels";
    return NULL;
}

uint32_t ew__jr_capacity(const ew__peer *base) {
    const ew__jr_peer *peer = (const ew__jr_peer *)(const void *)base;
    return peer->reader.closed || peer->reader.draining || peer->reader.eof ? 0 : ew__rpc_capacity(&peer->calls);
}

/* A foreign peer may keep state per connection, and is not asked for streams. */
ew__sharing ew__jr_sharing(const ew__peer *base) {
    const ew__jr_peer *peer = (const ew__jr_peer *)(const void *)base;
    return peer->kind == EW__JR_OTHER ? EW__SHARING_ANY : ew__rpc_sharing(&peer->calls);
}

/* The user has asked for events: of everywire, or of another peer that sends them. */
static bool wants_events(const ew__jr_peer *peer, const ew_call *call) {
    return call->wants_chunks && peer->peer.conn->site->options & EW__JR_PEER_EVENTS;
}

/* What goes into the method, so that only one of ours is told. */
static ew__jr_query query_of(const ew__jr_peer *peer, const ew_call *call) {
    bool told = peer->kind == EW__JR_EVERYWIRE && call->kind == EW__CALL_RUN;
    uint8_t form = wants_events(peer, call) ? EW__JR_EVENTS : EW__JR_CHUNKS;
    return (ew__jr_query){.stream = told && call->wants_chunks && !call->outgoing.notify ? form : EW__JR_NO_STREAM,
                          .hops = told ? call->hops : 0};
}

/* Most names are short and plain, and leave without a query: there is nothing to escape, nor to allocate. */
static bool quote_plain(ew_str action, const ew__jr_query *query, char room[METHOD_ROOM], ew_str *ret) {
    if (action.len > METHOD_ROOM - 2 || query->stream || query->hops || !ew__json_is_plain(action))
        return false;
    room[0] = '"';
    memcpy(room + 1, action.ptr, action.len);
    room[action.len + 1] = '"';
    *ret = ew__str(room, action.len + 2);
    return true;
}

/* JSON-RPC 2.0 has no null params: without input the member is left out, unless the peer requires it. */
static ew_str params_of(const ew__jr_peer *peer, const ew_call *call, ew_str input) {
    if (call->kind == EW__CALL_LIST)
        return EW_STR("{}");
    bool omit = ew_json_typeof(input) == EW_JSON_NULL && !(peer->peer.conn->site->options & EW__JR_PEER_PARAMS);
    return omit ? ew__str(NULL, 0) : input;
}

/* Writes the request. EW_OK, EW_ENOMEM, EW_ELIMIT (too large). */
static ew_err send_request(ew__jr_peer *peer, ew_call *call, ew_str id) {
    ew__jr_query query = query_of(peer, call);
    ew__buf buf, line;
    ew__rpc_out message;
    char room[METHOD_ROOM];
    ew_err err = EW_OK;
    ew_str params = call->input, method;
    ew_str action = call->kind == EW__CALL_LIST ? EW_STR("rpc.discover") : call->key;
    ew__buf_init(&buf, call->executor->env, SIZE_MAX / 2);
    if (EW__UNLIKELY(!quote_plain(action, &query, room, &method))) {
        err = ew__jr_write_method(&buf, action, &query);
        method = ew__buf_view(&buf);
    }
    ew_err line_err = ew__jr_one_line(peer, params, &line, &params);
    if (err == EW_OK)
        err = line_err;
    if (err == EW_OK) {
        ew__rpc_put_request(&message, id, method, call->has_input ? EW__RPC_STREAM_OPEN : 0,
                            params_of(peer, call, params));
        if (ew__rpc_fits(&peer->calls, message.len))
            ew__jr_send(peer, &message, line.len ? NULL : call);
        else
            err = EW_ELIMIT;
    }
    ew__buf_done(&line);
    ew__buf_done(&buf);
    return err;
}

static ew_str unsent_reason(ew_err err) {
    return err == EW_ELIMIT    ? EW_STR("the input is too large for this connection")
           : err == EW_EEXISTS ? EW_STR("a call with this id still runs")
                               : EW_STR("out of memory");
}

/* A chunk of the input cannot be sent. The peer must not take what is left for the whole input. */
static void fail_input(ew__jr_call *entry, ew_err err) {
    send_cancel(entry);
    ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                err == EW_ENOMEM ? "out of memory" : "an input chunk is too large for this connection");
}

/* Input that came while the peer was asked what it is follows its request at once. The call may end. */
static void send_held(ew__jr_call *entry) {
    ew_call *call = ew_call_ref(entry->base.call);
    ew__jr_held *item;
    ew_err err = EW_OK;
    while (err >= 0 && (item = ew__jr_row_take(&entry->left.held)) != NULL) {
        if (item->close) {
            entry->base.input_open = false;
            send_frame(entry, EW__RPC_STREAM_CLOSE, ew__str(NULL, 0));
        } else {
            err = ew__jr_send_chunk(entry, ew__str(item->bytes, item->len));
        }
        ew__jr_held_free(call->executor->env, item);
    }
    if (err < 0 && !ew__jr_peer_of(entry)->reader.closed) /* else the call ends with the connection */
        fail_input(entry, err);
    else if (err >= 0 && !entry->base.waiting)
        ew__call_input_room(call);
    ew_call_unref(call);
}

static void notify(ew__jr_peer *peer, ew_call *call) {
    ew_err err = send_request(peer, call, ew__str(NULL, 0));
    if (err == EW_OK)
        (void)ew__call_done_valid(call, EW_STR("null"));
    else
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
}

void ew__jr_send_now(ew__jr_call *entry) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    ew_call *call = entry->base.call;
    if (call->outgoing.notify) { /* it had an id only to be found here */
        notify(peer, detach(entry));
        ew_call_unref(call);
        ew__rpc_reader_call_ended(&peer->reader);
        return;
    }
    entry->phase = EW__JR_SENT;
    entry->events = wants_events(peer, call);
    ew_err err = send_request(peer, call, entry->base.id);
    if (err == EW_OK)
        send_held(entry);
    else
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
}

/* The id that the caller chose, or a fresh one; in the call's memory. */
static ew_err choose_id(ew__jr_peer *peer, ew__jr_call *entry) {
    char id[EW__RPC_ID_ROOM];
    ew_call *call = entry->base.call;
    if (call->outgoing.wire_id.len == 0)
        return ew__arena_str(&call->arena, ew__str(id, ew__rpc_ids_next(&peer->ids, id)), &entry->base.id);
    ew__buf quoted;
    ew__buf_init(&quoted, call->executor->env, SIZE_MAX / 2);
    ew_err err = ew__json_write_str(&quoted, call->outgoing.wire_id, false);
    if (err == EW_OK)
        err = ew__arena_str(&call->arena, ew__buf_view(&quoted), &entry->base.id);
    ew__buf_done(&quoted);
    return err;
}

static ew_err add_call(ew__jr_peer *peer, ew__jr_call *entry, ew_call *call) {
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    ew_err err = choose_id(peer, entry);
    return err == EW_OK ? ew__rpc_call_send(&entry->base, &callee) : err;
}

ew_err ew__jr_open(ew__peer *base, ew_call *call) {
    ew__jr_peer *peer = (ew__jr_peer *)(void *)base;
    if (ew__jr_capacity(base) == 0)
        return EW_EBUSY;
    call->wire = base->wire->name;
    bool asks = ew__jr_asks_first(peer, call);
    if (call->outgoing.notify && !asks) {
        notify(peer, call);
        return EW_OK;
    }
    ew__jr_call *entry = ew_call_alloc(call, sizeof *entry);
    ew_err err = entry ? add_call(peer, entry, call) : EW_ENOMEM;
    if (err != EW_OK) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
        return EW_OK;
    }
    if (asks)
        ew__jr_ask(peer, entry);
    else
        ew__jr_send_now(entry);
    return EW_OK;
}

/* ---- what the wire tells: into the call ---- */

static void on_silence(ew__timer *timer, uint64_t now) {
    ew__jr_call *entry = ew__container_of(timer, ew__jr_call, base.timer);
    bool heard =
        entry->base.blocked || now < entry->base.heard_at + EW__MS(entry->base.call->executor->limits->stream_idle_ms);
    if (entry->base.blocked)
        entry->base.heard_at = now; /* it is our own reader that is slow */
    if (heard && ew__rpc_call_watch_silence(&entry->base, on_silence) == EW_OK)
        return;
    send_cancel(entry);
    ew__jr_fail(entry, EW_ORIGIN_CONNECT, EW_STATUS_DEADLINE_EXCEEDED, "the stream was silent for too long");
}

void ew__jr_overrun(ew__jr_call *entry) {
    send_cancel(entry);
    ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW__RPC_OVERRUN);
}

void ew__jr_fail_large(ew__jr_call *entry, const char *problem) {
    if (entry->phase == EW__JR_STREAMING)
        send_cancel(entry);
    ew__jr_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_RESOURCE_EXHAUSTED, problem);
}

/* false: the call has ended, and entry with it. */
static bool give_row(ew__jr_call *entry, const ew_str *row, size_t *n) {
    ew_call *call = ew_call_ref(entry->base.call); /* the caller may let go while it takes the chunk */
    ew_err err = *n == 1 ? ew__call_chunk_valid(call, row[0]) : ew__call_chunk_row(call, row, n);
    bool lives = call->callee_open;
    if (lives && err == EW_FULL)
        ew__rpc_call_block(&entry->base, *n, ew__row_bytes(row, *n));
    ew_call_unref(call);
    return lives;
}

static bool give_chunk(ew__jr_call *entry, ew_str json) {
    size_t n = 1;
    return give_row(entry, &json, &n);
}

static void break_stream(ew__jr_call *entry, const char *problem) {
    send_cancel(entry);
    ew__jr_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, problem);
}

/* The end of the call is kept until the close frame. false: the call has ended, and entry with it. */
static bool keep_end(ew__jr_call *entry, uint8_t end, ew_str value) {
    entry->left.end = end;
    if (ew__arena_str(&entry->base.call->arena, value, &entry->left.base) == EW_OK)
        return true;
    ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    return false;
}

/* false: the call has ended, and entry with it. */
static bool take_event(ew__jr_call *entry, ew_str data) {
    bool object = ew_json_typeof(data) == EW_JSON_OBJECT && entry->left.end == EW__JR_END_NONE;
    ew_str chunk = object ? ew_json_member(data, EW_STR("chunk")) : ew__str(NULL, 0);
    ew_str result = object ? ew_json_member(data, EW_STR("result")) : chunk;
    ew_str error = object ? ew_json_member(data, EW_STR("error")) : chunk;
    if (chunk.len)
        return give_chunk(entry, chunk);
    if (result.len)
        return keep_end(entry, EW__JR_END_RESULT, result);
    if (error.len)
        return keep_end(entry, EW__JR_END_ERROR, error);
    break_stream(entry, "a frame of the stream is not an event: {\"chunk\":C}, {\"result\":R} or {\"error\":E}");
    return false;
}

/* The data of a frame; empty if it has none. false: the call has ended, and entry with it. */
static bool take_data(ew__jr_call *entry, ew_str data) {
    ew_str value = data.len ? data : EW_STR("null");
    return entry->events ? take_event(entry, value) : give_chunk(entry, value);
}

static void end_events(ew__jr_call *entry) {
    if (entry->left.end == EW__JR_END_RESULT)
        done(entry, entry->left.base);
    else if (entry->left.end == EW__JR_END_ERROR)
        ew__jr_fail_with(entry, entry->left.base);
    else
        ew__jr_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL,
                    "the stream was closed without a result or an error");
}

/* The close frame of everywire carries the end of the call; that of any other peer nothing. */
static void end_stream(ew__jr_call *entry, ew_str data) {
    if (entry->events) {
        end_events(entry);
        return;
    }
    bool object = ew_json_typeof(data) == EW_JSON_OBJECT;
    ew_str result = object ? ew_json_member(data, EW_STR("result")) : data;
    ew_str error = object ? ew_json_member(data, EW_STR("error")) : data;
    if (object && error.len)
        ew__jr_fail_with(entry, error);
    else
        done(entry, object && result.len ? result : entry->left.base);
}

static void deliver_held(ew__jr_call *entry) {
    ew_call *call = ew_call_ref(entry->base.call);
    bool lives = true;
    ew__jr_held *item;
    while (lives && (item = ew__jr_row_take(&entry->left.held)) != NULL) {
        ew_str data = ew__str(item->bytes, item->len);
        if (item->close) {
            end_stream(entry, data);
            lives = false;
        } else {
            lives = take_data(entry, data);
        }
        ew__jr_held_free(call->executor->env, item);
    }
    ew_call_unref(call);
}

static void open_stream(ew__jr_call *entry, ew_str result) {
    ew_call *call = entry->base.call;
    if (ew__arena_str(&call->arena, result, &entry->left.base) != EW_OK) {
        ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    entry->phase = EW__JR_STREAMING;
    entry->base.heard_at = call->executor->now;
    if (!entry->cancelling && ew__rpc_call_watch_silence(&entry->base, on_silence) != EW_OK) {
        ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    deliver_held(entry);
}

static void on_listing(ew__jr_call *entry, ew_str document) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    bool everywire = ew__jr_is_everywire(document);
    ew__buf listing;
    ew__buf_init(&listing, entry->base.call->executor->env, SIZE_MAX / 2);
    ew_err err = ew__jr_read_discover(&listing, document);
    if (err == EW_OK)
        done(entry, ew__buf_view(&listing));
    else
        ew__jr_fail(entry, err == EW_EPROTO ? EW_ORIGIN_PROTOCOL : EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL,
                    err == EW_EPROTO ? "the answer to rpc.discover is no OpenRPC document" : "out of memory");
    ew__buf_done(&listing);
    if (peer->kind <= EW__JR_ASKED)
        ew__jr_learn(peer, everywire);
}

/* A call that was cancelled has its own end: an error without an id may be the answer to the cancel. */
static bool is_in_flight(const ew__rpc_call *base) {
    const ew__jr_call *entry = (const ew__jr_call *)(const void *)base;
    return entry->phase != EW__JR_ASKING && !entry->cancelling;
}

/* JSON-RPC 2.0 allows objects and arrays as params: strict peers cannot read a request with any other value. */
static bool is_bare(const ew__rpc_call *base) {
    ew_json_type type = ew_json_typeof(base->call->input);
    return is_in_flight(base) && ((const ew__jr_call *)(const void *)base)->phase == EW__JR_SENT &&
           type != EW_JSON_OBJECT && type != EW_JSON_ARRAY && type != EW_JSON_NULL;
}

void ew__jr_unnamed_error(ew__jr_peer *peer, ew_str error) {
    ew__rpc_call *bare, *one;
    uint32_t n_bare = ew__rpc_calls_count(&peer->calls, is_bare, &bare);
    uint32_t n = ew__rpc_calls_count(&peer->calls, is_in_flight, &one);
    bool asked = peer->kind == EW__JR_ASKED;
    ew__rpc_log_unnamed(&peer->calls, error);
    if (n_bare == 1)
        ew__jr_fail_with(ew__jr_call_of(bare), error);
    else if (n == 1 && !asked)
        ew__jr_fail_with(ew__jr_call_of(one), error);
    else if (n == 0 && asked)
        ew__jr_learn(peer, false);
    else
        ew__rpc_late(&peer->calls);
}

void ew__jr_answer(ew__jr_call *entry, const ew__rpc *message) {
    if (entry->phase != EW__JR_SENT)
        ew__rpc_late(entry->base.all); /* a second answer, or one to a question that was not put */
    else if (message->kind == EW__RPC_ERROR)
        ew__jr_fail_with(entry, message->error);
    else if (message->stream == EW__RPC_STREAM_OPEN)
        open_stream(entry, message->result);
    else if (entry->base.call->kind == EW__CALL_LIST)
        on_listing(entry, message->result);
    else
        done(entry, message->result);
}

/* Frames may overtake the response that opens their stream: the reference codec sends them so. */
static void hold_frame(ew__jr_call *entry, const ew__rpc *message) {
    ew__jr_row *held = &entry->left.held;
    if (held->n >= HELD_MAX || held->bytes + message->data.len > HELD_MAX_BYTES)
        ew__jr_fail(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_RESOURCE_EXHAUSTED,
                    "too many frames came before the response that opens their stream");
    else if (ew__jr_row_add(entry->base.call->executor->env, held, message->data,
                            message->stream == EW__RPC_STREAM_CLOSE) != EW_OK)
        ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

void ew__jr_answer_row(ew__jr_call *entry, const ew_str *row, size_t *n) {
    entry->base.heard_at = entry->base.call->executor->now;
    entry->base.all->speaks = &entry->base;
    (void)give_row(entry, row, n);
}

void ew__jr_answer_chunk(ew__jr_call *entry, ew_str data) {
    size_t n = 1;
    ew__jr_answer_row(entry, &data, &n);
}

void ew__jr_answer_frame(ew__jr_call *entry, const ew__rpc *message) {
    entry->base.heard_at = entry->base.call->executor->now;
    if (entry->phase == EW__JR_SENT)
        hold_frame(entry, message);
    else if (entry->phase != EW__JR_STREAMING)
        ew__rpc_late(entry->base.all);
    else if (message->stream == EW__RPC_STREAM_CLOSE)
        end_stream(entry, message->data);
    else if (entry->events)
        (void)take_event(entry, message->data.len ? message->data : EW_STR("null"));
    else
        ew__jr_answer_chunk(entry, message->data.len ? message->data : EW_STR("null"));
}
