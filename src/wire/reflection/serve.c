/*
 * wire/reflection/serve.c: the runtime: calls that a manager sends. To the call model this is their caller's end. Every
 * run belongs to the connection it came on: it is cancelled with it, and answered nowhere else.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/reflection.h"

#define NONE ((ew_str){NULL, 0})

static ew__rf_call *rf_call(ew__rpc_call *entry) { return (ew__rf_call *)(void *)entry; }

/* The caller's end may be reached from any connection's event: its trace is the run's handle. */
static ew_str trace_id(ew_call *call) { return ew__str(ew__call_trace(call)->trace_id, sizeof call->trace.trace_id); }

static void refuse(ew__rf_peer *peer, const ew__rpc *message, int64_t code, ew_status status, const char *text) {
    if (message->id.len)
        ew__rf_refuse(peer, message->id, code, status, text);
    else
        ew__rpc_late(&peer->calls);
}

/* "BEFORE NAME AFTER", with as much of the peer's own text as a message for people should have. */
static void refuse_name(ew__rf_peer *peer, const ew__rpc *message, int64_t code, ew_status status, const char *before,
                        ew_str name, const char *after) {
    ew__buf text;
    ew__buf_init(&text, ew__rf_executor(peer)->env, SIZE_MAX / 2);
    (void)ew__buf_cstr(&text, before);
    (void)ew__buf_str(&text, ew__str(name.ptr, name.len < 400 ? name.len : 400));
    (void)ew__buf_cstr(&text, after);
    (void)ew__buf_char(&text, '\0');
    refuse(peer, message, code, status, text.err ? "out of memory" : text.ptr);
    ew__buf_done(&text);
}

static void respond(ew__rf_peer *peer, const ew__rpc *message, ew_str result) {
    ew__rpc_out out;
    if (message->id.len == 0)
        return;
    ew__rpc_put_result(&out, message->id, 0, result);
    ew__rf_send(peer, &out, NULL);
}

/* ---- what the call tells its caller: onto the wire ---- */

/*
 * Whether the manager knows what runActionState would say. One that counts hops is a gateway of ours: it has named the
 * trace, and cancels by the id of its request. (Before it sends input it waits for the message.)
 */
static bool knows_state(const ew_call *call) {
    return call->hops && call->trace.has_parent && !call->wants_chunks && !call->has_input;
}

static void on_accepted(ew_call *call) {
    ew__rf_call *entry = call->caller_ud;
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew__conn *conn = peer->peer.conn;
    ew__rpc_out out;
    if (entry->base.id.len == 0 || knows_state(call))
        return;
    ew__rf_put_state(&out, entry->base.id, trace_id(call));
    conn->unhurried = ew__call_is_elsewhere(call);
    ew__rf_send(peer, &out, NULL);
    if (call->wants_chunks && conn->ops->hurry && !peer->closed && !conn->unhurried)
        conn->ops->hurry(conn);
    conn->unhurried = false;
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    ew__rf_call *entry = call->caller_ud;
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew__rpc_out out;
    if (entry->base.id.len == 0)
        return EW_OK;
    ew__rf_put_chunk(&out, entry->base.id, json);
    if (!ew__rpc_fits(&peer->calls, out.len) || !ew__rpc_has_place(&peer->calls, out.len))
        return EW_ELIMIT;
    ew__rf_send(peer, &out, NULL);
    return peer->closed ? EW_ENOMEM : ew__rpc_call_pace(&entry->base);
}

static ew_err on_row(ew_call *call, const ew_str *row, size_t *n) {
    ew__rf_call *entry = call->caller_ud;
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    size_t around = ew__rf_around_chunk(entry->base.id);
    if (entry->base.id.len == 0 || !ew__rf_is_short(around + EW__ROW_CHUNK) ||
        !ew__rpc_fits(&peer->calls, around + EW__ROW_CHUNK)) {
        *n = 1;
        return on_chunk(call, row[0]);
    }
    if (!ew__rpc_has_place(&peer->calls, *n * around + ew__row_bytes(row, *n)))
        return EW_ELIMIT;
    ew__rf_send_row(peer, entry->base.id, row, *n);
    return peer->closed ? EW_ENOMEM : ew__rpc_call_pace(&entry->base);
}

static void send_fault(ew__rf_call *entry, const ew_fault *fault) {
    if (entry->base.id.len)
        ew__rf_send_error(ew__rf_of(&entry->base), entry->base.id, 0, fault, trace_id(entry->base.call));
}

static void send_result(ew__rf_call *entry, ew_str result) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    ew__rpc_out out;
    if (entry->base.id.len == 0)
        return;
    ew__rf_put_result(&out, entry->base.id, result, trace_id(entry->base.call));
    bool fits = ew__rpc_fits(&peer->calls, out.len);
    if (EW__LIKELY(fits && ew__rpc_has_place(&peer->calls, out.len)))
        ew__rf_send(peer, &out, entry->base.call);
    else
        send_fault(entry, &(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                                      .message = fits ? EW_STR("too many bytes wait for this connection")
                                                      : EW_STR("the result is too large for this connection")});
}

/* Takes a call off the connection; the caller's reference is given back. */
static void let_go(ew__rf_call *entry) {
    ew__rf_peer *peer = ew__rf_of(&entry->base);
    if (entry->came.ended) { /* its handler is still being called: it never was on the list */
        *entry->came.ended = true;
        ew__rpc_call_stop_waiting(&entry->base);
    } else {
        ew__rpc_call_remove(&entry->base);
    }
    ew__call_release(entry->base.call); /* entry is gone with it */
    ew__rf_check_drained(peer);
}

static void on_end(ew_call *call, const ew__end *end) {
    ew__rf_call *entry = call->caller_ud;
    if (end->status == EW_STATUS_OK)
        send_result(entry, end->result);
    else
        send_fault(entry, &end->fault);
    let_go(entry);
}

static void on_input_room(ew_call *call) { ew__rpc_call_unblock(&((ew__rf_call *)call->caller_ud)->base); }

static const ew__caller_ops caller = {
    .accepted = on_accepted, .chunk = on_chunk, .chunk_row = on_row, .end = on_end, .input_room = on_input_room};

static void give_up(ew__rf_call *entry, ew_status status, const char *message) {
    send_fault(entry, &(ew_fault){.status = status, .message = ew_str_from(message)});
    let_go(entry);
}

void ew__rf_give_up_large(ew__rf_call *entry, const char *problem) {
    give_up(entry, EW_STATUS_RESOURCE_EXHAUSTED, problem);
}

void ew__rf_serve_overrun(ew__rf_call *entry) {
    give_up(entry, EW_STATUS_RESOURCE_EXHAUSTED, "overrun: the input was not taken, and held up its connection");
}

void ew__rf_serve_gone(ew__rf_peer *peer) {
    while (peer->calls.served.first) {
        ew_call *call = peer->calls.served.first->call;
        ew__rpc_call_remove(peer->calls.served.first);
        ew__call_release(call);
    }
}

/* ---- runAction ---- */

/* The message's bytes go away; what the call keeps is copied into its memory. */
static ew__rf_call *fill_call(ew__rf_peer *peer, ew_call *call, const ew__rpc *message, const ew__rf_run *run) {
    ew__rf_call *entry = ew_call_alloc(call, sizeof *entry);
    ew__arena *arena = &call->arena;
    if (!entry)
        return NULL;
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    call->deep = peer->calls.deep;
    entry->base.input_open = run->stream_input;
    entry->base.size = (uint32_t)(message->params.len + message->id.len);
    call->caller_ud = entry;
    call->wire = ew__wire_reflection.name;
    call->wants_chunks = run->stream;
    call->has_input = run->stream_input;
    call->hops = run->hops;
    uint64_t most = call->executor->limits->call_ms;
    if (most)
        call->deadline = call->executor->now + EW__MS(most);
    if (run->traceparent.len)
        (void)ew__trace_continue(&call->trace, &call->executor->rng, run->traceparent); /* a bad one: a new trace */
    bool none = run->input.len == 0 || run->input.ptr[0] == 'n';
    ew_str input = none && run->init.len ? run->init : run->input;
    if (ew__arena_str(arena, message->id, &entry->base.id) != EW_OK ||
        ew__arena_str(arena, run->context, &call->context) != EW_OK ||
        ew__arena_str(arena, run->labels, &call->labels) != EW_OK)
        return NULL;
    return input.len && ew__arena_str(arena, input, &call->input) != EW_OK ? NULL : entry;
}

/*
 * Makes a call that has not ended at once one that can be found. How long its input may be silent is not watched:
 * people type there, and pings tell whether the manager still lives.
 */
static ew_err keep(ew__rf_call *entry) {
    entry->came.ended = NULL;
    ew__rpc_call_add(&entry->base);
    bool named = entry->base.id.len && entry->base.id.ptr[0] != 'n';
    return named ? ew__rpc_call_index(&entry->base) : EW_OK;
}

static void open_call(ew__rf_peer *peer, const ew__rpc *message, const ew__rf_run *run, ew__action *action) {
    ew_call *call = ew__call_new(ew__rf_executor(peer), &caller, NULL);
    ew__rf_call *entry = call ? fill_call(peer, call, message, run) : NULL;
    bool ended = false;
    if (!entry) {
        if (call)
            ew__call_release(call);
        refuse(peer, message, 0, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory, or too many calls");
        return;
    }
    entry->came.ended = &ended;
    call->served.who = ew__conn_who(peer->peer.conn);
    ew__call_open(call, action);
    if (!ended && keep(entry) != EW_OK)
        give_up(entry, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

static void refuse_action(ew__rf_peer *peer, const ew__rpc *message, ew_str name, ew_err why) {
    static const char several[] = "several actions have this name, use a key: ";
    char text[512];
    if (why == EW_ENOTFOUND) {
        refuse_name(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_NOT_FOUND, "action ", name, " not found");
        return;
    }
    memcpy(text, several, sizeof several - 1);
    size_t n = sizeof several - 1;
    n += ew__actions_matches(peer->peer.conn->site->actions, name, text + n, sizeof text - 1 - n);
    text[n] = '\0';
    refuse(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, text);
}

/* problem: what is wrong with it; NULL: nothing. */
static void start_run(ew__rf_peer *peer, const ew__rpc *message, const ew__rf_run *run, const char *problem) {
    const ew__site *site = peer->peer.conn->site;
    ew__action *action = NULL;
    ew_fault fault;
    if (ew__rpc_busy(&peer->calls, site->draining || peer->draining, &fault)) {
        if (message->id.len)
            ew__rf_send_error(peer, message->id, 0, &fault, NONE);
        else
            ew__rpc_late(&peer->calls);
        return;
    }
    if (!problem && message->id.len && peer->calls.served.n && ew__rpc_call_find(&peer->calls.served, message->id))
        problem = "a call with this id still runs";
    if (problem) {
        refuse(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, problem);
        return;
    }
    ew_err err = site->actions ? ew__actions_find(site->actions, run->key, &action) : EW_ENOTFOUND;
    if (err == EW_OK)
        open_call(peer, message, run, action);
    else
        refuse_action(peer, message, run->key, err);
}

static void run_action(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    ew__rf_run run;
    start_run(peer, message, &run, ew__rf_read_run(doc, message->params, &run));
}

bool ew__rf_took_run(ew__rf_peer *peer, ew_str text) {
    ew_str id, params;
    ew__rf_run run;
    if (!ew__rf_is_run(text, &id, &params, &run))
        return false;
    start_run(peer, &(ew__rpc){.kind = EW__RPC_REQUEST, .id = id, .params = params}, &run, NULL);
    return true;
}

/* ---- input and cancelling ---- */

static ew__rf_call *find(ew__rf_peer *peer, const ew__rf_about *about) {
    ew__rpc_call *entry = about->request_id.len ? ew__rpc_call_find(&peer->calls.served, about->request_id) : NULL;
    return entry ? rf_call(entry) : NULL;
}

/* The manager may name a run by the trace id that it was told. */
static ew__rf_call *find_trace(ew__rf_peer *peer, ew_str id) {
    if (id.len != sizeof((ew__trace *)0)->trace_id)
        return NULL;
    for (ew__rpc_call *entry = peer->calls.served.first; entry; entry = entry->next)
        if (ew__str_is(trace_id(entry->call), id))
            return rf_call(entry);
    return NULL;
}

static void give_input(ew__rf_call *entry, ew_str json) {
    ew_call *call = ew_call_ref(entry->base.call); /* the handler may end the call in it, and entry goes with it */
    ew_err err = ew__call_input(call, json);
    if (call->caller_open && err == EW_FULL)
        ew__rpc_call_block(&entry->base, 1, json.len);
    ew_call_unref(call);
}

static void input_chunk(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message, bool end) {
    ew__rf_about about;
    ew__rf_read_about(doc, message->params, &about);
    ew__rf_call *entry = find(peer, &about);
    if (!entry || !entry->base.input_open) {
        refuse(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_NOT_FOUND, "no run with this requestId takes input");
        return;
    }
    respond(peer, message, EW_STR("null")); /* most send it as a notification */
    if (peer->closed)
        return;
    if (!end) {
        give_input(entry, about.chunk.len ? about.chunk : EW_STR("null"));
        return;
    }
    entry->base.input_open = false;
    ew__call_input_end(entry->base.call); /* it may have ended, and entry gone */
}

/* By the trace id, as the CLI does; by requestId too, so that a run can be stopped before its trace id is known. */
static void cancel_action(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    ew__rf_about about;
    ew__rf_read_about(doc, message->params, &about);
    if (about.trace_id.len == 0 && about.request_id.len == 0) {
        refuse(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, "traceId is required");
        return;
    }
    /* Several runs may belong to one trace: whoever names the request means no other. */
    ew__rf_call *entry = about.request_id.len ? find(peer, &about) : find_trace(peer, about.trace_id);
    if (!entry) {
        refuse(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_NOT_FOUND, "Action not found or already completed");
        return;
    }
    respond(peer, message, EW_STR("{\"message\":\"Action cancelled\"}"));
    if (!peer->closed)
        ew__call_cancel(entry->base.call, EW__CANCEL_ASKED);
}

/* ---- lists ---- */

/* Before the manager has answered register, the kind of its ids tells its generation; a null tells nothing. */
static void list_actions(ew__rf_peer *peer, const ew__rpc *message) {
    ew__conn *conn = peer->peer.conn;
    bool undecided = peer->dialect == EW__RF_UNDECIDED;
    char kind = message->id.len ? message->id.ptr[0] : 'n';
    bool wrapped = undecided ? kind == '"' || kind == 'n' : peer->dialect == EW__RF_CURRENT;
    bool flat = undecided ? kind != '"' : peer->dialect == EW__RF_FIRST;
    ew__buf list, own;
    ew_str seen;
    ew_fault fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED,
                      .message = EW_STR("the list is too large for this connection")};
    ew__buf_init(&list, ew__rf_executor(peer)->env, SIZE_MAX / 2);
    ew_err err = ew__gate_list(conn->executor, ew__conn_who(conn), ew__wire_reflection.name, conn->site->actions, &own,
                               &seen, &fault);
    if (err == EW_OK)
        err = ew__rf_write_listing(&list, seen, flat, wrapped);
    if (err == EW_OK && ew__rpc_fits(&peer->calls, list.len + message->id.len + 64))
        respond(peer, message, ew__buf_view(&list));
    else
        refuse(peer, message, 0, fault.status, fault.message.ptr);
    ew__buf_done(&list);
    ew__buf_done(&own);
}

static void list_values(ew__rf_peer *peer, const ew__rpc *message) {
    char buf[EW__RF_TEXT_ROOM];
    ew_str type = ew_json_typeof(message->params) == EW_JSON_OBJECT
                      ? ew__rf_member_text(message->params, EW_STR("type"), buf, sizeof buf)
                      : NONE;
    if (ew__str_is(type, EW_STR("defaultModel")) || ew__str_is(type, EW_STR("middleware"))) {
        respond(peer, message, EW_STR("{\"values\":{}}"));
        return;
    }
    refuse_name(peer, message, EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, "'type' ", type,
                " is not supported. Only 'defaultModel' and 'middleware' are supported");
}

/* ---- all ---- */

static void configure(ew__rf_peer *peer, const ew__rpc *message) {
    respond(peer, message, EW_STR("null"));
    ew__rf_configured(peer, message->params);
}

void ew__rf_serve(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    char buf[EW__RF_TEXT_ROOM];
    ew_str method = ew__rpc_text(message->method, buf, sizeof buf);
#define IS(name) ew__str_is(method, EW_STR(name))
    if (IS("runAction"))
        run_action(peer, doc, message);
    else if (IS("sendInputStreamChunk") || IS("streamInputChunk")) /* what drafts called it */
        input_chunk(peer, doc, message, false);
    else if (IS("endInputStream") || IS("endStreamInput"))
        input_chunk(peer, doc, message, true);
    else if (IS("cancelAction"))
        cancel_action(peer, doc, message);
    else if (IS("listActions"))
        list_actions(peer, message);
    else if (IS("listValues"))
        list_values(peer, message);
    else if (IS("configure"))
        configure(peer, message);
    else
        refuse_name(peer, message, EW__RPC_METHOD_NOT_FOUND, EW_STATUS_UNIMPLEMENTED, "Method not found: ", method, "");
#undef IS
}
