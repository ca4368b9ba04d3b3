/*
 * wire/stepflow/lines_serve.c: what a runtime asks on standard input. To the call model this is the caller's end of the
 * calls that came.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/lines.h"

#define NONE ((ew_str){NULL, 0})

/* ---- what the call tells its caller: onto the wire ---- */

static void send_fault(ew__sl_call *entry, const ew_fault *fault) {
    ew__sl_peer *peer = ew__sl_peer_of(entry);
    const ew__executor *executor = entry->base.call->executor;
    const ew_fault plain = {.status = fault->status};
    ew__rpc_out message;
    ew__buf buf;
    ew__rpc_put_error(&message, entry->base.id, ew__sf_fault(executor, &buf, 0, fault));
    if (!ew__rpc_fault_has_place(&peer->calls, message.len)) {
        ew__buf_done(&buf);
        ew__rpc_put_error(&message, entry->base.id, ew__sf_fault(executor, &buf, 0, &plain));
    }
    ew__sl_send(peer, &message, NULL);
    ew__buf_done(&buf);
}

static void send_result(ew__sl_call *entry, ew_str result) {
    ew__sl_peer *peer = ew__sl_peer_of(entry);
    ew__rpc_out message;
    ew__buf line;
    ew_err err = ew__sf_plain(entry->base.call->executor->env, result, &line, &result);
    ew__sf_put_output(&message, entry->base.id, result);
    bool fits = ew__rpc_fits(&peer->calls, message.len), place = ew__rpc_has_place(&peer->calls, message.len);
    if (EW__LIKELY(err == EW_OK && fits && place))
        ew__sl_send(peer, &message, entry->base.call);
    else
        send_fault(entry, &(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                                      .message = err    ? EW_STR("out of memory")
                                                 : fits ? EW_STR("the reader is too slow: too much waits for it")
                                                        : EW_STR("the result is too large for this connection")});
    ew__buf_done(&line);
}

/* Takes a call off the connection; the caller's reference is given back. */
static void let_go(ew__sl_call *entry) {
    ew__sl_peer *peer = ew__sl_peer_of(entry);
    if (entry->ended) /* its handler is still being called: it never was on the list */
        *entry->ended = true;
    else
        ew__rpc_call_remove(&entry->base);
    ew__call_release(entry->base.call); /* entry is gone with it */
    ew__rpc_reader_check_drained(&peer->reader);
}

static void on_end(ew_call *call, const ew__end *end) {
    ew__sl_call *entry = call->caller_ud;
    if (end->status == EW_STATUS_OK)
        send_result(entry, end->result);
    else
        send_fault(entry, &end->fault);
    let_go(entry);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK; /* not carried */
}

static ew_err on_call_back(ew_call *call, ew_call *outgoing) {
    return ew__sl_open_back(ew__sl_peer_of(call->caller_ud), call, outgoing);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end, .call_back = on_call_back};

/* ---- components/execute ---- */

/* The id goes out as it is kept; looked up, two spellings of it are one. */
static ew_err keep_id(ew__sl_call *entry, ew_str id) {
    ew_call *call = entry->base.call;
    ew__buf line;
    ew_err err = ew__sf_plain(call->executor->env, id, &line, &id);
    if (err == EW_OK)
        err = ew__arena_str(&call->arena, id, &entry->base.id);
    ew__buf_done(&line);
    return err;
}

/* The message's bytes go away; what the call keeps is copied into its memory. */
static ew__sl_call *fill_call(ew__sl_peer *peer, ew_call *call, const ew__rpc *message, const ew__sf_run *run) {
    ew__sl_call *entry = ew_call_alloc(call, sizeof *entry);
    if (!entry)
        return NULL;
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    call->deep = peer->calls.deep;
    entry->base.size = (uint32_t)(message->params.len + message->id.len);
    call->caller_ud = entry;
    call->wire = EW__STEPFLOW_NAME;
    if (keep_id(entry, message->id) != EW_OK || ew__sf_fill_call(call, run, true) != EW_OK)
        return NULL;
    return entry;
}

static void open_call(ew__sl_peer *peer, const ew__rpc *message, const ew__sf_run *run, ew__action *action) {
    ew_call *call = ew__call_new(peer->peer.conn->executor, &caller, NULL);
    ew__sl_call *entry = call ? fill_call(peer, call, message, run) : NULL;
    bool ended = false;
    if (!entry) {
        if (call)
            ew__call_release(call);
        ew__sl_refuse(peer, message->id, EW__SF_TRANSPORT_ERROR, EW_STATUS_RESOURCE_EXHAUSTED,
                      "out of memory, or too many calls");
        return;
    }
    entry->ended = &ended;
    call->served.who = ew__conn_who(peer->peer.conn);
    ew__call_open(call, action);
    if (ended)
        return;
    entry->ended = NULL; /* from now on it can be found */
    ew__rpc_call_add(&entry->base);
    if (ew__rpc_call_index(&entry->base) != EW_OK) {
        send_fault(entry, &(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("out of memory")});
        let_go(entry);
    }
}

static void execute(ew__sl_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    const ew__conn *conn = peer->peer.conn;
    char name[EW__SF_NAME_ROOM];
    ew_fault fault;
    ew__sf_run run;
    ew__buf buf;
    ew_str error = NONE;
    if (ew__rpc_busy(&peer->calls, peer->reader.draining, &fault)) { /* the code asks the runtime to try again */
        ew__sl_respond(peer, message->id, ew__sf_fault(conn->executor, &buf, EW__SF_TRANSPORT_ERROR, &fault), true);
        ew__buf_done(&buf);
        return;
    }
    ew__action *action = ew__sf_find(conn->site, conn->executor->env, doc, message, &run, name, &buf, &error);
    if (action)
        open_call(peer, message, &run, action);
    else
        ew__sl_respond(peer, message->id, error, true);
    ew__buf_done(&buf);
}

/* ---- everything else ---- */

static void answer(ew__sl_peer *peer, const ew__rpc *message, ew__sf_method method) {
    ew__conn *conn = peer->peer.conn;
    ew__buf text;
    bool is_error = false;
    ew__buf_init(&text, conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__sf_answer(conn, ew__conn_who(conn), message, method, &text, &is_error);
    bool fits = ew__rpc_fits(&peer->calls, text.len + message->id.len + 64);
    if (err == EW_OK && fits)
        ew__sl_respond(peer, message->id, ew__buf_view(&text), is_error);
    else
        ew__sl_refuse(peer, message->id, err ? EW__SF_TRANSPORT_ERROR : EW__RPC_INTERNAL_ERROR,
                      EW_STATUS_RESOURCE_EXHAUSTED,
                      err ? "out of memory" : "the answer is too large for this connection");
    ew__buf_done(&text);
}

/* Nobody need have said initialize: a runtime that has started us again does not repeat it. */
void ew__sl_serve(ew__sl_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    ew__sf_method method = ew__sf_method_of(message->method);
    if (peer->calls.served.n > 0 && ew__sl_find(&peer->calls.served, message->id))
        ew__sl_refuse(peer, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT,
                      "a call with this id still runs");
    else if (method == EW__SF_EXECUTE)
        execute(peer, doc, message);
    else
        answer(peer, message, method);
}

/* The id may be written in another way than the request wrote it: it is looked up decoded. */
static void cancel(ew__sl_peer *peer, ew_str params) {
    ew_str id = ew_json_typeof(params) == EW_JSON_OBJECT ? ew_json_member(params, EW_STR("id")) : NONE;
    ew__sl_call *entry = id.len ? ew__sl_find(&peer->calls.served, id) : NULL;
    if (entry)
        ew__call_cancel(entry->base.call, EW__CANCEL_ASKED);
    else
        ew__rpc_late(&peer->calls);
}

void ew__sl_notified(ew__sl_peer *peer, const ew__rpc *message) {
    switch (ew__sf_method_of(message->method)) {
    case EW__SF_INITIALIZED:
        break;
    case EW__SF_CANCEL:
        cancel(peer, message->params);
        break;
    default: /* nothing runs without somebody who waits for its result */
        ew__rpc_late(&peer->calls);
    }
}
