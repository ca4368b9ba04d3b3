/*
 * wire/stepflow/lines_call.c: calls that leave on standard input and output: those to a server, which is greeted before
 * the first of them, and those that go back to a runtime. To the call model this is their callee's end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/lines.h"

#define NONE ((ew_str){NULL, 0})
#define CANCEL_MS 2000    /* for the answer to a call that we cancelled */
#define MESSAGE_ROOM 1024 /* messages of errors with escapes are decoded, up to here */

static ew__sl_call *sl_call_of(ew__rpc_call *entry) { return (ew__sl_call *)(void *)entry; }

/* ---- the end of a call ---- */

static void stop_waiting(ew__sl_call *entry) {
    if (entry->waits)
        ew__sl_peer_of(entry)->waiting_bytes -= entry->base.call->input.len;
    entry->waits = false;
}

/* Takes a call off the connection. The caller of this gives the reference back after it has ended the call. */
static ew_call *detach(ew__sl_call *entry) {
    stop_waiting(entry);
    ew__rpc_call_remove(&entry->base);
    return entry->base.call;
}

static void fail_as(ew__sl_call *entry, ew_origin origin, ew_status status, ew_str message) {
    ew_call *call = detach(entry);
    ew__call_fail_as(call, origin, status, message);
    ew_call_unref(call);
}

static void fail(ew__sl_call *entry, ew_origin origin, ew_status status, const char *message) {
    ew__sl_peer *peer = ew__sl_peer_of(entry);
    fail_as(entry, origin, status, ew_str_from(message));
    ew__rpc_reader_call_ended(&peer->reader);
}

void ew__sl_lost(ew__sl_peer *peer, ew_origin origin, ew_status status, ew_str message) {
    while (peer->calls.sent.first)
        fail_as(sl_call_of(peer->calls.sent.first), origin, status, message);
}

/* ---- requests ---- */

static ew_str unsent_reason(ew_err err) {
    return err == EW_ELIMIT ? EW_STR("the input is too large for this connection") : EW_STR("out of memory");
}

/* Writes the request. EW_OK, EW_ENOMEM, EW_ELIMIT (too large). */
static ew_err send_request(ew__sl_call *entry) {
    ew__sl_peer *peer = ew__sl_peer_of(entry);
    ew_call *call = entry->base.call;
    const ew_env *env = call->executor->env;
    ew__sf_request request;
    ew__buf line;
    ew__rpc_out message;
    ew_str input;
    ew_err line_err = ew__sf_plain(env, call->input, &line, &input);
    ew_err err = ew__sf_write_request(&request, env, call, entry->base.id, entry->bare, peer->everywire);
    err = err ? err : line_err;
    ew__rpc_out_begin(&message, request.head);
    if (call->kind == EW__CALL_RUN) {
        ew__rpc_out_add(&message, input);
        ew__rpc_out_add(&message, request.tail);
    }
    if (err == EW_OK && !ew__rpc_fits(&peer->calls, message.len))
        err = EW_ELIMIT;
    if (err == EW_OK)
        ew__sl_send(peer, &message, call);
    ew__buf_done(&line);
    ew__sf_request_done(&request, env);
    return err;
}

static ew_err fresh_id(ew__sl_call *entry) {
    char id[EW__RPC_ID_ROOM];
    size_t n = ew__rpc_ids_next(&ew__sl_peer_of(entry)->ids, id);
    return ew__arena_str(&entry->base.call->arena, ew__str(id, n), &entry->base.id);
}

static ew__sl_call *first_unsent(const ew__sl_peer *peer) {
    ew__rpc_call *at = peer->calls.sent.first;
    while (at && sl_call_of(at)->unsent == EW_OK)
        at = at->next;
    return sl_call_of(at);
}

/* In the order in which they were made. Those that cannot leave end only then: who is told of an end may call again. */
static void send_waiting(ew__sl_peer *peer) {
    ew__rpc_call *oldest = peer->calls.sent.first;
    ew__sl_call *entry;
    bool failed = false;
    while (oldest && oldest->next) /* the newest is the first */
        oldest = oldest->next;
    for (ew__rpc_call *at = oldest; at; at = at->prev) {
        entry = sl_call_of(at);
        if (!entry->waits)
            continue;
        stop_waiting(entry);
        entry->unsent = send_request(entry);
        failed = failed || entry->unsent != EW_OK;
    }
    while (failed && (entry = first_unsent(peer)) != NULL)
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(entry->unsent));
    if (failed)
        ew__rpc_reader_call_ended(&peer->reader);
}

/* ---- the handshake ---- */

static void on_no_hello(ew__timer *timer, uint64_t now) {
    ew__sl_peer *peer = ew__container_of(timer, ew__sl_peer, answer);
    (void)now;
    if (peer->reader.closed)
        return;
    ew__rpc_reader_abort(&peer->reader);
    ew__sl_lost(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the server has not answered initialize"));
}

/* EW_OK or EW_ENOMEM; then nothing was said. */
static ew_err greet(ew__sl_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    ew__executor *executor = conn->executor;
    uint64_t until = executor->now + EW__MS(executor->limits->runtime_wait_ms);
    ew__rpc_out message;
    ew__buf text;
    peer->hello_id_len = (uint8_t)ew__rpc_ids_next(&peer->ids, peer->hello_id);
    ew__buf_init(&text, executor->env, SIZE_MAX / 2);
    ew_err err = ew__sf_write_initialize(&text, ew__str(peer->hello_id, peer->hello_id_len), conn->site->blob_api);
    if (err == EW_OK)
        err = ew__timer_set(&executor->timers, &peer->answer, until, on_no_hello);
    if (err == EW_OK) {
        peer->state = EW__SL_GREETED;
        ew__rpc_out_begin(&message, ew__buf_view(&text));
        ew__sl_send(peer, &message, NULL);
    }
    ew__buf_done(&text);
    return err;
}

static bool is_hello(const ew__sl_peer *peer, ew_str id) {
    return peer->state == EW__SL_GREETED && ew__str_is(id, ew__str(peer->hello_id, peer->hello_id_len));
}

static void refused_hello(ew__sl_peer *peer, ew_str error) {
    static const char prefix[] = "the server refuses the handshake: ";
    char buf[MESSAGE_ROOM], text[sizeof prefix + 200];
    ew_fault fault;
    ew__sf_read_fault(error, buf, sizeof buf, &fault);
    size_t n = sizeof prefix - 1, more = fault.message.len < 200 ? fault.message.len : 200;
    memcpy(text, prefix, n);
    if (more)
        memcpy(text + n, fault.message.ptr, more);
    ew__rpc_reader_abort(&peer->reader);
    ew__sl_lost(peer, EW_ORIGIN_PROTOCOL, fault.status, ew__str(text, n + more));
}

/* The number does not count: all generations say 1. That there is one does: not only Stepflow has an initialize. */
static bool is_version(ew_str result) {
    return ew_json_typeof(result) == EW_JSON_OBJECT && (ew_json_member(result, EW_STR("server_protocol_version")).len ||
                                                        ew_json_member(result, EW_STR("serverProtocolVersion")).len);
}

static void on_hello(ew__sl_peer *peer, const ew__rpc *message) {
    ew__rpc_out text;
    ew__timer_stop(&peer->peer.conn->executor->timers, &peer->answer);
    peer->state = EW__SL_KNOWN;
    if (message->kind == EW__RPC_ERROR) {
        refused_hello(peer, message->error);
        return;
    }
    if (!is_version(message->result)) {
        ew__rpc_reader_break_off(&peer->reader,
                                 EW_STR("the peer did not answer initialize as a Stepflow component server does"));
        return;
    }
    peer->everywire = ew__sf_is_everywire(message->result);
    ew__rpc_out_begin(&text, EW__SF_INITIALIZED_TEXT);
    ew__sl_send(peer, &text, NULL);
    send_waiting(peer);
}

/* ---- what the call tells its callee: onto the wire ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach a wire opened (wire.h) */ }

static void on_no_end(ew__timer *timer, uint64_t now) {
    (void)now;
    fail(ew__container_of(timer, ew__sl_call, base.timer), EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED,
         "the call was cancelled, and the server has not ended it");
}

static void send_cancel(ew__sl_call *entry) {
    ew__rpc_out message;
    ew__rpc_out_begin(&message, EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":"));
    ew__rpc_out_add(&message, entry->base.id);
    ew__rpc_out_add(&message, EW_STR("}}"));
    ew__sl_send(ew__sl_peer_of(entry), &message, NULL);
}

/*
 * Stepflow has no word for it, and some of its programs drop a connection because of a message that they do not know:
 * only our own server is asked. A caller that asked waits for the end then, for a while. For all others the call is
 * over, and what is still said of it late.
 */
static void on_cancel(ew_call *call, ew__cancel_why why) {
    ew__sl_call *entry = call->callee_ud;
    ew__executor *executor = call->executor;
    bool asks = ew__sl_peer_of(entry)->everywire && !entry->waits && !entry->back;
    if (asks)
        send_cancel(entry);
    entry->cancelling = true;
    if (!asks || why != EW__CANCEL_ASKED ||
        ew__timer_set(&executor->timers, &entry->base.timer, executor->now + EW__MS(CANCEL_MS), on_no_end) != EW_OK)
        fail(entry, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

void ew__sl_leave(ew__peer *base) {
    ew__sl_peer *peer = (ew__sl_peer *)(void *)base;
    for (ew__rpc_call *at = peer->calls.sent.first; at && peer->everywire; at = at->next) {
        ew__sl_call *entry = ew__container_of(at, ew__sl_call, base);
        if (entry->waits || entry->back || entry->cancelling)
            continue;
        entry->cancelling = true;
        send_cancel(entry);
    }
}

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel};

/* ---- opening ---- */

static uint32_t capacity(const ew__sl_peer *peer) {
    const ew__rpc_reader *reader = &peer->reader;
    bool full = peer->waiting_bytes >= ew__rpc_limits(&peer->calls)->out_max_bytes / 2;
    return reader->closed || reader->draining || reader->eof || full ? 0 : ew__rpc_capacity(&peer->calls);
}

/* A runtime is not called for itself, only back, for a call that came. */
uint32_t ew__sl_capacity(const ew__peer *base) {
    return base->role == EW__CALL ? capacity((const ew__sl_peer *)(const void *)base) : 0;
}

static ew_err add_call(ew__sl_peer *peer, ew_call *call, ew__sl_call **ret) {
    ew__sl_call *entry = ew_call_alloc(call, sizeof *entry);
    if (!entry)
        return EW_ENOMEM;
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    ew_err err = fresh_id(entry);
    *ret = entry;
    return err == EW_OK ? ew__rpc_call_send(&entry->base, &callee) : err;
}

static void refuse(ew_call *call, ew_status status, const char *why) {
    ew__call_fail_as(call, EW_ORIGIN_LOCAL, status, ew_str_from(why));
}

static void send_now(ew__sl_call *entry) {
    ew_err err = send_request(entry);
    if (err != EW_OK)
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
}

static void wait_for_hello(ew__sl_peer *peer, ew__sl_call *entry) {
    entry->waits = true;
    peer->waiting_bytes += entry->base.call->input.len;
    if (peer->state == EW__SL_STRANGE && greet(peer) != EW_OK)
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
}

ew_err ew__sl_open(ew__peer *base, ew_call *call) {
    ew__sl_peer *peer = (ew__sl_peer *)(void *)base;
    ew__sl_call *entry = NULL;
    if (ew__sl_capacity(base) == 0)
        return EW_EBUSY;
    call->wire = EW__STEPFLOW_NAME;
    (void)ew__call_trace(call); /* it is written into the request */
    if (call->outgoing.notify)
        refuse(call, EW_STATUS_UNIMPLEMENTED, "the stepflow wire has no notifications for components");
    else if (call->has_input)
        refuse(call, EW_STATUS_INVALID_ARGUMENT, "the stepflow wire carries no input stream");
    else if (add_call(peer, call, &entry) != EW_OK)
        refuse(call, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    else if (peer->state == EW__SL_KNOWN)
        send_now(entry);
    else
        wait_for_hello(peer, entry);
    return EW_OK;
}

/* ---- back to a runtime ---- */

static void send_back(ew__sl_call *entry, const ew_call *origin) {
    ew__sl_peer *peer = ew__sl_peer_of(entry);
    ew_call *outgoing = entry->base.call;
    ew__rpc_out message;
    ew__buf text;
    entry->back = true;
    (void)ew__call_trace(outgoing);
    ew__buf_init(&text, outgoing->executor->env, (size_t)outgoing->executor->limits->frame_bytes);
    ew_err err = ew__sf_write_back(&text, origin, outgoing, entry->base.id);
    if (err == EW_OK && !ew__rpc_has_place(&peer->calls, text.len))
        err = EW_ELIMIT;
    if (err == EW_OK) {
        ew__rpc_out_begin(&message, ew__buf_view(&text));
        ew__sl_send(peer, &message, NULL);
    } else {
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
    }
    ew__buf_done(&text);
}

ew_err ew__sl_open_back(ew__sl_peer *peer, const ew_call *origin, ew_call *outgoing) {
    ew__conn *conn = peer->peer.conn;
    const char *why = ew__sf_refuses_back(outgoing);
    ew__sl_call *entry = NULL;
    if (why) {
        refuse(outgoing, outgoing->outgoing.notify ? EW_STATUS_UNIMPLEMENTED : EW_STATUS_INVALID_ARGUMENT, why);
        return EW_OK;
    }
    ew_err err = ew__sf_back_by_url(conn->site, conn->executor, ew__conn_who(conn), outgoing);
    if (err != EW_ENOTFOUND)
        return err;
    if (peer->reader.closed || peer->reader.eof || ew__rpc_capacity(&peer->calls) == 0)
        return EW_EBUSY;
    outgoing->wire = EW__STEPFLOW_NAME;
    if (add_call(peer, outgoing, &entry) != EW_OK)
        refuse(outgoing, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    else
        send_back(entry, origin);
    return EW_OK;
}

/* ---- what the peer says ---- */

/* The name that the caller gave is asked for once more, as it is, with an id of its own. */
static void ask_again(ew__sl_call *entry) {
    entry->bare = true;
    entry->base.key = NONE; /* that of its first id was removed */
    ew__rpc_call_add(&entry->base);
    ew_err err = fresh_id(entry);
    if (err == EW_OK)
        err = ew__rpc_call_index(&entry->base);
    if (err == EW_OK)
        send_now(entry);
    else
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
}

static bool is_in_flight(const ew__rpc_call *base) {
    const ew__sl_call *entry = (const ew__sl_call *)(const void *)base;
    return !entry->waits && !entry->cancelling;
}

/* The peer could not read a request, so its error has no id: it answers the only call in flight. NULL: not one. */
static ew__sl_call *unnamed(ew__sl_peer *peer, ew_str error) {
    ew__rpc_call *one;
    uint32_t n = ew__rpc_calls_count(&peer->calls, is_in_flight, &one);
    ew__rpc_log_unnamed(&peer->calls, error);
    return n == 1 ? sl_call_of(one) : NULL;
}

void ew__sl_answered(ew__sl_peer *peer, const ew__rpc *message) {
    bool without_id = message->kind == EW__RPC_ERROR && ew__rpc_is_unnamed(message);
    ew__sl_call *entry = without_id        ? unnamed(peer, message->error)
                         : message->id.len ? ew__sl_find(&peer->calls.sent, message->id)
                                           : NULL;
    if (!entry && (is_hello(peer, message->id) || (without_id && peer->state == EW__SL_GREETED))) {
        on_hello(peer, message); /* while it is not answered, no call is in flight */
        return;
    }
    if (!entry || entry->waits) {
        ew__rpc_late(&peer->calls);
        return;
    }
    ew_call *call = detach(entry);
    if (entry->back) {
        ew__sf_end_back(call, message);
    } else if (!ew__sf_end_call(call, message, entry->bare || entry->cancelling)) {
        ask_again(entry);
        return;
    }
    ew_call_unref(call);
    ew__rpc_reader_call_ended(&peer->reader);
}

bool ew__sl_misunderstood(ew__sl_peer *peer, ew_str id, ew_origin origin, ew_status status, const char *problem) {
    ew__sl_call *entry = ew__sl_find(&peer->calls.sent, id);
    if (entry)
        fail(entry, origin, status, problem);
    else if (is_hello(peer, id))
        ew__rpc_reader_break_off(&peer->reader, EW_STR("the answer to initialize cannot be read"));
    else
        return false;
    return true;
}

/* A request is always answered: its sender waits for that, perhaps for ever. */
void ew__sl_asked(ew__sl_peer *peer, const ew__rpc *message) {
    const ew__conn *conn = peer->peer.conn;
    ew__buf text;
    bool is_error = false;
    ew__buf_init(&text, conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__sf_serve_ask(conn->site, message, &text, &is_error);
    bool fits = ew__rpc_fits(&peer->calls, text.len + message->id.len + 64);
    if (err == EW_OK && fits)
        ew__sl_respond(peer, message->id, ew__buf_view(&text), is_error);
    else
        ew__sl_refuse(peer, message->id, EW__RPC_SERVER_ERROR, EW_STATUS_RESOURCE_EXHAUSTED,
                      err ? "out of memory" : "the answer is too large for this connection");
    ew__buf_done(&text);
}

/* ---- lines that cannot be read ---- */

#define HEAD_ROOM 64 /* an id stands not farther behind its message's brace */

/* Where an id of ours stands next, from `at` on; text.len: nowhere. */
static size_t next_id(const ew__sl_peer *peer, ew_str text, size_t at) {
    size_t n = strnlen(peer->ids.prefix, sizeof peer->ids.prefix);
    while (at + n <= text.len) {
        const char *quote = memchr(text.ptr + at, '"', text.len - at);
        if (!quote)
            break;
        at = (size_t)(quote - text.ptr);
        if (at + n <= text.len && memcmp(quote, peer->ids.prefix, n) == 0)
            return at;
        at++;
    }
    return text.len;
}

static size_t space_before(ew_str text, size_t at) {
    while (at > 0 && (unsigned char)text.ptr[at - 1] <= ' ')
        at--;
    return at;
}

/* Where the message begins whose id stands at `at`; text.len: it is none's. */
static size_t head_of(ew_str text, size_t at) {
    static const char name[] = "\"id\"";
    size_t colon = space_before(text, at), end = colon ? space_before(text, colon - 1) : 0;
    if (end < sizeof name || text.ptr[colon - 1] != ':' ||
        memcmp(text.ptr + end - (sizeof name - 1), name, sizeof name - 1) != 0)
        return text.len;
    for (size_t i = end, n = 0; i > 0 && n < HEAD_ROOM; i--, n++)
        if (text.ptr[i - 1] == '{')
            return i - 1;
    return text.len;
}

/* The answer that begins at `at`, if it is whole. */
static void take_rest(ew__sl_peer *peer, ew_str text, size_t at) {
    size_t end = space_before(text, text.len);
    ew__json_doc doc;
    ew__rpc message;
    if (at >= end || ew__json_parse(&doc, ew__str(text.ptr + at, end - at)) != EW_OK)
        return;
    ew__rpc_calls_mark_depth(&peer->calls, &doc);
    ew__rpc_read(&doc, 0, &message);
    if (message.kind == EW__RPC_RESULT || message.kind == EW__RPC_ERROR)
        ew__sl_answered(peer, &message);
}

/*
 * A Python server whose pipe is full leaves half of an answer and goes on on the same line, with the next one or with
 * the same again; and a print may have left its line open. Ids of ours tell whose the pieces are: the last of them may
 * be whole. If the line begins like a message, it was one, and the others will never be whole.
 */
void ew__sl_damaged(ew__sl_peer *peer, ew_str text) {
    bool printed = text.len == 0 || text.ptr[0] != '{';
    size_t last = text.len;
    for (size_t at = next_id(peer, text, 0); at < text.len; at = next_id(peer, text, at + 1))
        if (head_of(text, at) < text.len)
            last = head_of(text, at);
    take_rest(peer, text, last);
    for (size_t at = printed ? text.len : next_id(peer, text, 0); at < text.len && !peer->reader.closed;
         at = next_id(peer, text, at + 1)) {
        const char *end = memchr(text.ptr + at + 1, '"', text.len - at - 1);
        if (end && head_of(text, at) < text.len)
            (void)ew__sl_misunderstood(peer, ew__str(text.ptr + at, (size_t)(end - text.ptr) + 1 - at),
                                       EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, "the server's answer came damaged");
    }
}
