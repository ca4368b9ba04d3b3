/*
 * wire/jsonrpc/serve.c: calls that came by this wire. To the call model this is their caller's end: it opens them,
 * feeds their input, and is told their chunks and their end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define METHOD_ROOM 1024 /* methods with escapes are decoded, up to here */

/* ---- answers ---- */

static void respond(ew__jr_peer *peer, ew__jr_batch *batch, const ew__rpc_out *message, ew_call *owner) {
    if (batch)
        ew__jr_batch_add(peer, batch, message);
    else
        ew__jr_send(peer, message, owner);
}

/* A fault as the error object of `buf` (to be freed by the caller in any case); what does not fit is told in short. */
static ew_str error_text(ew__jr_peer *peer, ew__buf *buf, int64_t code, const ew_fault *fault) {
    ew_fault plain = {.status = fault->status};
    ew__buf line;
    ew__buf_init(buf, peer->peer.conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__jr_write_fault(buf, code, fault);
    bool fits = ew__rpc_fits(&peer->calls, buf->len + 4096);
    if (err == EW_OK && !(fits && ew__rpc_fault_has_place(&peer->calls, buf->len))) {
        ew__buf_clear(buf);
        err = ew__jr_write_fault(buf, code, &plain); /* the status is what matters */
    }
    if (err == EW_OK && ew__json_has_newline(ew__buf_view(buf))) { /* in the details */
        ew__buf_init(&line, peer->peer.conn->executor->env, SIZE_MAX / 2);
        err = ew__json_minify(&line, ew__buf_view(buf));
        ew__buf_done(buf);
        *buf = line;
    }
    return err == EW_OK ? ew__buf_view(buf) : EW_STR("{\"code\":-32603,\"message\":\"out of memory\"}");
}

static void refuse_with(ew__jr_peer *peer, ew__jr_batch *batch, ew_str id, int64_t code, const ew_fault *fault) {
    ew__rpc_out out;
    ew__buf buf;
    ew_str error = error_text(peer, &buf, code, fault);
    ew__rpc_put_error(&out, id, error);
    respond(peer, batch, &out, NULL);
    ew__buf_done(&buf);
}

static void refuse(ew__jr_peer *peer, ew__jr_batch *batch, ew_str id, int64_t code, ew_status status, ew_str message) {
    refuse_with(peer, batch, id, code, &(ew_fault){.status = status, .message = message});
}

/* ---- what the call tells its caller: onto the wire ---- */

static void on_accepted(ew_call *call) {
    ew__jr_call *entry = call->caller_ud;
    ew__conn *conn = ew__jr_peer_of(entry)->peer.conn;
    ew__rpc_out message;
    if (!entry->streams)
        return;
    entry->came.accepted = true;
    ew__rpc_put_result(&message, entry->base.id, EW__RPC_STREAM_OPEN, EW_STR("null"));
    conn->unhurried = ew__call_is_elsewhere(call);
    ew__jr_send(ew__jr_peer_of(entry), &message, NULL);
    if (conn->ops->hurry && !ew__jr_peer_of(entry)->reader.closed && !conn->unhurried)
        conn->ops->hurry(conn);
    conn->unhurried = false;
}

static ew_err on_chunk(ew_call *call, ew_str json) { return ew__jr_send_chunk(call->caller_ud, json); }

static ew_err on_row(ew_call *call, const ew_str *row, size_t *n) { return ew__jr_send_row(call->caller_ud, row, n); }

/* Follows the event that carried the end. Peers that drop the data of close frames have seen it. */
static void send_close(ew__jr_call *entry) {
    ew__rpc_out message;
    ew__rpc_put_frame(&message, entry->base.id, EW__RPC_STREAM_CLOSE, ew__str(NULL, 0));
    ew__jr_send(ew__jr_peer_of(entry), &message, NULL);
}

static void send_fault(ew__jr_call *entry, int64_t code, const ew_fault *fault) {
    ew__rpc_out message;
    ew__buf buf;
    bool event = entry->came.accepted && entry->events;
    ew_str error = error_text(ew__jr_peer_of(entry), &buf, code, fault);
    if (event)
        ew__rpc_put_event(&message, entry->base.id, EW__RPC_EVENT_ERROR, error);
    else if (entry->came.accepted)
        ew__rpc_put_close(&message, entry->base.id, true, error);
    else
        ew__rpc_put_error(&message, entry->base.id, error);
    respond(ew__jr_peer_of(entry), entry->came.batch, &message, NULL);
    if (event)
        send_close(entry);
    ew__buf_done(&buf);
}

static void put_result(ew__rpc_out *message, const ew__jr_call *entry, ew_str result) {
    if (entry->events)
        ew__rpc_put_event(message, entry->base.id, EW__RPC_EVENT_RESULT, result);
    else if (entry->streams)
        ew__rpc_put_close(message, entry->base.id, false, result);
    else
        ew__rpc_put_result(message, entry->base.id, 0, result);
}

static void send_result(ew__jr_call *entry, ew_str result) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    ew__rpc_out message;
    ew__buf line;
    ew_err err = ew__jr_one_line(peer, result, &line, &result);
    put_result(&message, entry, result);
    bool fits = ew__rpc_fits(&peer->calls, message.len), place = ew__rpc_has_place(&peer->calls, message.len);
    if (EW__LIKELY(err == EW_OK && fits && place)) {
        respond(peer, entry->came.batch, &message, entry->base.call);
        if (entry->events)
            send_close(entry);
    } else {
        send_fault(entry, 0,
                   &(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                               .message = err    ? EW_STR("out of memory")
                                          : fits ? EW_STR("the reader is too slow: too much waits for it")
                                                 : EW_STR("the result is too large for this connection")});
    }
    ew__buf_done(&line);
}

/* Takes a call off the connection; the caller's reference is given back. */
static void let_go(ew__jr_call *entry) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    ew__jr_batch *batch = entry->came.batch;
    if (entry->base.input_open && !entry->came.ended && !peer->reader.closed && !peer->reader.eof)
        ew__jr_stray_refuse(peer, entry->base.id); /* its input may go on for a while */
    if (entry->came.ended) {                       /* its handler is still being called: it never was on the list */
        *entry->came.ended = true;
        ew__rpc_call_stop_waiting(&entry->base);
    } else {
        ew__rpc_call_remove(&entry->base);
    }
    ew__call_release(entry->base.call); /* entry is gone with it */
    if (batch)
        ew__jr_batch_unref(peer, batch);
    ew__rpc_reader_check_drained(&peer->reader);
}

static void on_end(ew_call *call, const ew__end *end) {
    ew__jr_call *entry = call->caller_ud;
    if (entry->base.id.len && end->status == EW_STATUS_OK)
        send_result(entry, end->result);
    else if (entry->base.id.len)
        send_fault(entry, 0, &end->fault);
    let_go(entry);
}

static void on_input_room(ew_call *call) {
    ew__jr_call *entry = call->caller_ud;
    ew__rpc_call_unblock(&entry->base);
}

static ew_err on_call_back(ew_call *call, ew_call *outgoing) {
    ew__jr_call *entry = call->caller_ud;
    return ew__jr_open(&ew__jr_peer_of(entry)->peer, outgoing);
}

static const ew__caller_ops caller = {.accepted = on_accepted,
                                      .chunk = on_chunk,
                                      .chunk_row = on_row,
                                      .end = on_end,
                                      .input_room = on_input_room,
                                      .call_back = on_call_back};

void ew__jr_give_up(ew__jr_call *entry, int64_t code, ew_status status, const char *message) {
    if (entry->base.id.len)
        send_fault(entry, code, &(ew_fault){.status = status, .message = ew_str_from(message)});
    let_go(entry);
}

/* ---- what the wire tells: into the call ---- */

static void on_silence(ew__timer *timer, uint64_t now) {
    ew__jr_call *entry = ew__container_of(timer, ew__jr_call, base.timer);
    bool heard =
        entry->base.blocked || now < entry->base.heard_at + EW__MS(entry->base.call->executor->limits->stream_idle_ms);
    if (entry->base.blocked)
        entry->base.heard_at = now; /* it is our own reader that is slow */
    if (!heard || ew__rpc_call_watch_silence(&entry->base, on_silence) != EW_OK)
        ew__jr_give_up(entry, 0, EW_STATUS_DEADLINE_EXCEEDED, "the input stream was silent for too long");
}

/* The message's bytes go away; what the call keeps is copied into its memory. */
static ew__jr_call *fill_call(ew__jr_peer *peer, ew_call *call, const ew__rpc *message, const ew__jr_query *query) {
    ew__jr_call *entry = ew_call_alloc(call, sizeof *entry);
    if (!entry)
        return NULL;
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    call->deep = peer->calls.deep;
    entry->streams = query->stream && message->id.len;
    entry->events = entry->streams && query->stream == EW__JR_EVENTS;
    entry->base.input_open = message->stream == EW__RPC_STREAM_OPEN;
    call->caller_ud = entry;
    call->wire = ew__wire_jsonrpc.name;
    call->wants_chunks = entry->streams;
    call->has_input = entry->base.input_open;
    call->hops = query->hops;
    uint64_t most = call->executor->limits->call_ms;
    if (most)
        call->deadline = call->executor->now + EW__MS(most);
    if (ew__arena_str(&call->arena, message->id, &entry->base.id) != EW_OK)
        return NULL;
    if (message->params.len && ew__arena_str(&call->arena, message->params, &call->input) != EW_OK)
        return NULL;
    return entry;
}

/* Makes a call that has not ended at once one that can be found. */
static ew_err keep(ew__jr_call *entry, const ew__rpc *message) {
    entry->came.ended = NULL;
    entry->base.size = (uint32_t)(message->params.len + message->id.len);
    ew__rpc_call_add(&entry->base);
    ew_err err = EW_OK;
    if (entry->base.id.len && entry->base.id.ptr[0] != 'n')
        err = ew__rpc_call_index(&entry->base);
    if (err == EW_OK && entry->base.input_open) {
        entry->base.heard_at = entry->base.call->executor->now;
        err = ew__rpc_call_watch_silence(&entry->base, on_silence);
    }
    return err;
}

/* Frames that have overtaken their request. The call may end at each of them. */
static void feed(ew__jr_peer *peer, ew_str id, ew__jr_row *early) {
    const ew_env *env = peer->peer.conn->executor->env;
    ew__jr_held *item;
    while ((item = ew__jr_row_take(early)) != NULL) {
        ew__jr_call *entry = ew__jr_find(&peer->calls.served, id);
        ew__rpc frame = {.kind = EW__RPC_FRAME,
                         .stream = item->close ? EW__RPC_STREAM_CLOSE : EW__RPC_STREAM_DATA,
                         .data = ew__str(item->bytes, item->len)};
        if (entry)
            ew__jr_serve_frame(entry, &frame);
        else
            ew__rpc_late(&peer->calls);
        ew__jr_held_free(env, item);
    }
}

static void open_call(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch, ew__action *action,
                      const ew__jr_query *query) {
    ew_call *call = ew__call_new(peer->peer.conn->executor, &caller, NULL);
    ew__jr_call *entry = call ? fill_call(peer, call, message, query) : NULL;
    bool ended = false;
    if (!entry) {
        if (call)
            ew__call_release(call);
        if (message->id.len)
            refuse(peer, batch, message->id, 0, EW_STATUS_RESOURCE_EXHAUSTED,
                   EW_STR("out of memory, or too many calls"));
        return;
    }
    entry->came.batch = batch && message->id.len ? ew__jr_batch_ref(batch) : NULL;
    entry->came.ended = &ended;
    call->served.who = ew__conn_who(peer->peer.conn);
    ew__call_open(call, action);
    if (!ended && keep(entry, message) != EW_OK)
        ew__jr_give_up(entry, 0, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

/* A call with an input stream, some of which may be here already. */
static void open_stream(ew__jr_peer *peer, const ew__rpc *message, ew__action *action, const ew__jr_query *query) {
    ew__jr_row early;
    if (ew__jr_stray_claim(peer, message->id, &early) != EW_OK) {
        refuse(peer, NULL, message->id, 0, EW_STATUS_RESOURCE_EXHAUSTED,
               EW_STR("too many frames came before the request that opens their stream"));
        return;
    }
    open_call(peer, message, NULL, action, query);
    feed(peer, message->id, &early);
}

static void refuse_action(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch, ew_str name, ew_err why) {
    static const char several[] = "several actions have this name, use a key: ";
    char text[400];
    if (message->id.len == 0) {
        ew__rpc_late(&peer->calls);
        return;
    }
    if (why == EW_ENOTFOUND) {
        refuse(peer, batch, message->id, EW__RPC_METHOD_NOT_FOUND, EW_STATUS_NOT_FOUND, EW_STR("no such method"));
        return;
    }
    memcpy(text, several, sizeof several - 1);
    size_t n = sizeof several - 1;
    n += ew__actions_matches(peer->peer.conn->site->actions, name, text + n, sizeof text - n);
    refuse(peer, batch, message->id, 0, EW_STATUS_INVALID_ARGUMENT, ew__str(text, n));
}

static void discover(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch) {
    ew__conn *conn = peer->peer.conn;
    ew__rpc_out out;
    ew__buf document, line, own;
    ew_str text;
    ew_fault fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED,
                      .message = EW_STR("the list is too large for this connection")};
    ew__buf_init(&document, conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__gate_list(conn->executor, ew__conn_who(conn), ew__wire_jsonrpc.name, conn->site->actions, &own,
                               &text, &fault);
    if (err == EW_OK)
        err = ew__jr_write_discover(&document, text);
    if (err == EW_OK)
        err = ew__jr_one_line(peer, ew__buf_view(&document), &line, &text);
    else
        ew__buf_init(&line, document.env, 0);
    if (err == EW_OK && ew__rpc_fits(&peer->calls, text.len + message->id.len + 64)) {
        ew__rpc_put_result(&out, message->id, 0, text);
        respond(peer, batch, &out, NULL);
    } else {
        refuse_with(peer, batch, message->id, 0, &fault);
    }
    ew__buf_done(&line);
    ew__buf_done(&document);
    ew__buf_done(&own);
}

/* The id may be written in another way than the request wrote it: it is looked up decoded. */
static void cancel(ew__jr_peer *peer, ew_str params) {
    ew_str id = ew_json_typeof(params) == EW_JSON_OBJECT ? ew_json_member(params, EW_STR("id")) : ew__str(NULL, 0);
    ew__jr_call *entry = id.len ? ew__jr_find(&peer->calls.served, id) : NULL;
    if (entry)
        ew__call_cancel(entry->base.call, EW__CANCEL_ASKED);
    else
        ew__rpc_late(&peer->calls);
}

/* Our extension: the first message on a connection may show a token. */
static void show_token(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch) {
    ew__conn *conn = peer->peer.conn;
    char buf[EW__TOKEN_LEN + 64];
    ew__rpc_out out;
    ew_fault fault;
    ew_str token = ew_json_typeof(message->params) == EW_JSON_OBJECT
                       ? ew__rpc_text(ew_json_member(message->params, EW_STR("token")), buf, sizeof buf)
                       : ew__str(NULL, 0);
    bool good = ew__gate_present_token(conn->executor, ew__conn_who(conn), token, &fault);
    ew__rpc_reader_authenticated(&peer->reader);
    if (message->id.len && good) {
        ew__rpc_put_result(&out, message->id, 0, EW_STR("null"));
        respond(peer, batch, &out, NULL);
    } else if (message->id.len) {
        refuse_with(peer, batch, message->id, 0, &fault);
    }
}

/* Whether a message is one of somebody who may ask; else it was answered, or needs no answer. */
static bool admit(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch, ew_str method) {
    ew__conn *conn = peer->peer.conn;
    ew_fault fault;
    if (ew__str_is(method, EW_STR(EW__AUTH_METHOD))) {
        show_token(peer, message, batch);
        return false;
    }
    if (ew__gate_is_authenticated(conn->executor, ew__conn_who(conn), &fault))
        return true;
    if (message->id.len)
        refuse_with(peer, batch, message->id, 0, &fault);
    else
        ew__rpc_late(&peer->calls);
    return false;
}

/* Methods of the protocol itself: "$/..." and "rpc.", and ours. */
static bool serve_reserved(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch, ew_str method) {
    if (method.len == 0 || (method.ptr[0] != '$' && method.ptr[0] != 'r' && method.ptr[0] != 'e'))
        return false;
    if (ew__str_is(method, EW_STR(EW__AUTH_METHOD))) { /* nobody asks for it here */
        show_token(peer, message, batch);
        return true;
    }
    if (ew__str_is(method, EW_STR("rpc.discover"))) {
        if (message->id.len)
            discover(peer, message, batch);
        return true;
    }
    if (ew__str_is(method, EW_STR("$/cancelRequest")) && message->id.len == 0) {
        cancel(peer, message->params);
        return true;
    }
    if (!ew__str_has_prefix(method, EW_STR("$/")) && !ew__str_has_prefix(method, EW_STR("rpc.")))
        return false;
    refuse_action(peer, message, batch, method, EW_ENOTFOUND);
    return true;
}

static bool is_taken(const ew__jr_peer *peer, const ew__rpc *message) {
    return message->id.len && (peer->calls.served.n > 0 || message->stream) &&
           (ew__jr_find(&peer->calls.served, message->id) ||
            (message->stream == EW__RPC_STREAM_OPEN && ew__jr_find(&peer->calls.sent, message->id)));
}

static void serve_action(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch, ew_str method) {
    const ew__actions *actions = peer->peer.conn->site->actions;
    ew__action *action = NULL;
    ew_fault fault;
    ew__jr_query query;
    bool busy = ew__rpc_busy(&peer->calls, peer->reader.draining, &fault);
    ew_str name = ew__jr_action_of(method, &query);
    ew_err err = actions ? ew__actions_find(actions, name, &action) : EW_ENOTFOUND;
    if (busy && message->id.len)
        refuse_with(peer, batch, message->id, 0, &fault);
    else if (busy)
        ew__rpc_late(&peer->calls);
    else if (err != EW_OK)
        refuse_action(peer, message, batch, name, err);
    else if (query.stream && batch && message->id.len)
        refuse(peer, batch, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT,
               EW_STR("there are no streams in a batch"));
    else if (message->stream == EW__RPC_STREAM_OPEN)
        open_stream(peer, message, action, &query);
    else
        open_call(peer, message, batch, action, &query);
}

void ew__jr_serve(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch) {
    char buf[METHOD_ROOM];
    if (message->kind == EW__RPC_INVALID) {
        /* as a caller we say nothing without an id: it might be taken for the answer to another call */
        if (message->id.len || peer->peer.role == EW__SERVE)
            refuse(peer, batch, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT,
                   ew_str_from(message->problem));
        return;
    }
    ew_str method = ew__rpc_text(message->method, buf, sizeof buf);
    if (EW__UNLIKELY(peer->peer.conn->executor->calls->gate != NULL) && !admit(peer, message, batch, method)) {
        /* said so, if it can be */
    } else if (is_taken(peer, message))
        refuse(peer, batch, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT,
               EW_STR("a call with this id still runs"));
    else if (!serve_reserved(peer, message, batch, method))
        serve_action(peer, message, batch, method);
    if (message->stream == EW__RPC_STREAM_OPEN && !peer->reader.closed &&
        !ew__jr_find(&peer->calls.served, message->id))
        ew__jr_stray_refuse(peer, message->id); /* it was refused, or is over: frames that follow are for nobody */
}

void ew__jr_refuse_large(ew__jr_peer *peer, const ew__rpc *message, const char *problem) {
    if (is_taken(peer, message)) { /* an error with that id would end the call that runs */
        ew__rpc_late(&peer->calls);
        return;
    }
    refuse(peer, NULL, message->id, 0, EW_STATUS_RESOURCE_EXHAUSTED, ew_str_from(problem));
    if (message->stream == EW__RPC_STREAM_OPEN)
        ew__jr_stray_refuse(peer, message->id);
}

static void on_input(ew__jr_call *entry, ew_str json) {
    ew_call *call = ew_call_ref(entry->base.call); /* the handler may end the call in it, and entry goes with it */
    ew_err err = ew__call_input(call, json);
    if (call->caller_open && err == EW_FULL)
        ew__rpc_call_block(&entry->base, 1, json.len);
    ew_call_unref(call);
}

void ew__jr_serve_frame(ew__jr_call *entry, const ew__rpc *message) {
    if (!entry->base.input_open) {
        ew__rpc_late(entry->base.all);
        return;
    }
    entry->base.heard_at = entry->base.call->executor->now;
    if (message->stream == EW__RPC_STREAM_DATA) {
        on_input(entry, message->data.len ? message->data : EW_STR("null"));
        return;
    }
    entry->base.input_open = false;
    ew__timer_stop(&entry->base.call->executor->timers, &entry->base.timer);
    ew__call_input_end(entry->base.call); /* it may have ended, and entry gone */
}
