/*
 * wire/jsonrpc/wire.c: the connection of the jsonrpc wire: bytes to messages, messages to the role they are for, life;
 * and its table.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define BAD_MAX 100       /* unreadable messages of a process that is our only peer (stdio) */
#define EOF_GRACE_MS 1000 /* for calls of a peer that says no more and may have gone, on a socket */

static ew__jr_peer *jr_of(ew__peer *peer) { return (ew__jr_peer *)(void *)peer; }

static ew__timers *timers_of(ew__jr_peer *peer) { return &peer->peer.conn->home->timers; }

/* ---- its end ---- */

void ew__jr_abort(ew__jr_peer *peer) {
    peer->closed = true;
    peer->peer.conn->ops->abort(peer->peer.conn);
}

static void finish(ew__jr_peer *peer) {
    peer->closed = true;
    peer->peer.conn->ops->finish(peer->peer.conn);
}

void ew__jr_break_off(ew__jr_peer *peer, ew_str why) {
    ew__jr_abort(peer);
    ew__jr_fail_sent(peer, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, why);
}

void ew__jr_check_drained(ew__jr_peer *peer) {
    bool said_all = peer->eof && !peer->paused; /* what waits to be read was said before it */
    if ((peer->draining || said_all) && !peer->closed && !peer->reading && !peer->calls.served.first &&
        !peer->calls.sent.first)
        finish(peer);
}

/* ---- what came ---- */

/* It is answered, unless the answer could be taken for that to a call of the peer's own (a null id). */
static void refuse_text(ew__jr_peer *peer, const char *problem, ew_str bytes) {
    bool stdio = peer->peer.conn->stdio;
    int shown = (int)(bytes.len < 100 ? bytes.len : 100);
    if (peer->peer.role == EW__SERVE)
        ew__jr_send_error(peer, ew__str(NULL, 0), EW__RPC_PARSE_ERROR, problem);
    if (stdio)
        ew__log(peer->peer.conn->home->env, EW_LOG_WARN, "jsonrpc", "%s: %.*s", problem, shown,
                bytes.ptr ? bytes.ptr : "");
    if (stdio && ++peer->n_bad < BAD_MAX)
        return; /* a process that is our own peer may print a line by mistake: go on with the next */
    if (peer->peer.role == EW__CALL)
        ew__jr_break_off(peer, EW_STR("the peer sent something that is no JSON-RPC"));
    else
        finish(peer);
}

/* What the peer called invalid, or we do: if a call of ours is meant, that call has failed; else the peer is told. */
static void refuse_message(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch) {
    ew__jr_call *sent = message->id.len ? ew__jr_find(&peer->calls.sent, message->id) : NULL;
    bool frame = message->stream < 0 || message->stream >= EW__RPC_STREAM_DATA;
    ew__jr_call *came = message->id.len && frame ? ew__jr_find(&peer->calls.served, message->id) : NULL;
    if (sent)
        ew__jr_fail(sent, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, message->problem);
    else if (came) /* a bad frame: the answer to its call is this error */
        ew__jr_give_up(came, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, message->problem);
    else
        ew__jr_serve(peer, message, batch);
}

static void on_frame(ew__jr_peer *peer, const ew__rpc *message) {
    ew__jr_call *entry = message->id.len ? ew__jr_find(&peer->calls.sent, message->id) : NULL;
    if (entry) {
        ew__jr_answer_frame(entry, message);
        return;
    }
    entry = message->id.len ? ew__jr_find(&peer->calls.served, message->id) : NULL;
    if (entry)
        ew__jr_serve_frame(entry, message);
    else
        ew__jr_stray(peer, message);
}

static void on_answer(ew__jr_peer *peer, const ew__rpc *message) {
    ew__jr_call *entry = ew__jr_find(&peer->calls.sent, message->id);
    if (entry)
        ew__jr_answer(entry, message);
    else if (peer->kind == EW__JR_ASKED && ew__jr_asked(peer, message->id))
        ew__jr_learn(peer, message->kind == EW__RPC_RESULT && ew__jr_is_everywire(message->result));
    else
        ew__rpc_late(&peer->calls);
}

void ew__jr_take(ew__jr_peer *peer, const ew__json_doc *doc, ew__jr_batch *batch) {
    ew__rpc message;
    ew__rpc_read(doc, EW__RPC_WITH_STREAMS, &message);
    if (batch && message.kind != EW__RPC_INVALID && message.stream != 0) {
        message.kind = EW__RPC_INVALID;
        message.problem = "there are no streams in a batch";
    }
    switch (message.kind) {
    case EW__RPC_INVALID:
        refuse_message(peer, &message, batch);
        break;
    case EW__RPC_FRAME:
        on_frame(peer, &message);
        break;
    case EW__RPC_RESULT:
    case EW__RPC_ERROR:
        on_answer(peer, &message);
        break;
    default:
        ew__jr_serve(peer, &message, batch);
    }
}

static void on_text(ew__jr_peer *peer, const ew__json_doc *doc) {
    peer->heard = true;
    if (doc->type == EW_JSON_NULL)
        ew__rpc_late(&peer->calls); /* the reference codec passes over it */
    else if (doc->type == EW_JSON_ARRAY)
        ew__jr_serve_batch(peer, doc->root);
    else
        ew__jr_take(peer, doc, NULL);
}

/* Answers go out as the peer writes. One that mixes framings is understood, and told about. */
static void learn_framing(ew__jr_peer *peer) {
    if (peer->line.framing == EW__FRAMING_AUTO || peer->line.framing == peer->framing)
        return;
    if (peer->peer.role == EW__CALL)
        ew__log(peer->peer.conn->home->env, EW_LOG_WARN, "jsonrpc",
                "the peer writes Content-Length headers, we wrote lines: from now on we write headers too");
    peer->framing = peer->line.framing;
}

static void on_foreign(ew__jr_peer *peer, ew_str bytes) {
    bool http = bytes.len > 0 && bytes.ptr[0] >= 'A' && bytes.ptr[0] <= 'Z';
    if (peer->peer.role == EW__CALL)
        ew__jr_break_off(peer, EW_STR("the peer does not speak JSON-RPC"));
    else if (http) /* another protocol, perhaps of a browser: it learns nothing */
        ew__jr_abort(peer);
    else
        refuse_text(peer, "the stream begins neither with an object or array nor with a Content-Length header", bytes);
}

static ew_str first_line(ew_str bytes) {
    const char *end = bytes.len ? memchr(bytes.ptr, '\n', bytes.len) : NULL;
    return end ? ew__str(bytes.ptr, (size_t)(end - bytes.ptr)) : bytes;
}

/* What is no message. bytes: from where it begins. */
static void on_no_message(ew__jr_peer *peer, ew__line_event event, ew_str bytes) {
    switch (event) {
    case EW__LINE_FOREIGN:
        on_foreign(peer, bytes);
        break;
    case EW__LINE_TOO_LONG:
        refuse_text(peer, "the message is too long", bytes);
        break;
    case EW__LINE_BAD_HEADER:
        peer->n_bad = BAD_MAX; /* the framing is lost: no going on */
        refuse_text(peer, "the header is not usable", bytes);
        break;
    default:
        refuse_text(peer, "not JSON", first_line(bytes));
    }
}

/* Takes whole messages off the front; returns how many bytes are done with. */
static size_t take_messages(ew__jr_peer *peer, ew_str bytes) {
    size_t done = 0;
    peer->reading = true;
    while (!peer->closed && !(peer->paused = ew__rpc_must_pause(&peer->calls))) {
        ew__json_doc doc;
        ew_str value, rest = ew__str(bytes.ptr + done, bytes.len - done);
        size_t used = 0;
        ew__line_event event = ew__line_read(&peer->line, rest, &value, &used);
        if (event == EW__LINE_LIKELY || event == EW__LINE_VALUE) {
            if (EW__LIKELY(ew__json_parse(&doc, value) == EW_OK)) {
                learn_framing(peer);
                on_text(peer, &doc);
            } else if (event == EW__LINE_LIKELY) {
                ew__line_look_closer(&peer->line);
                continue;
            } else {
                ew__line_skip(&peer->line);
                on_no_message(peer, EW__LINE_BAD, rest);
            }
        } else if (event != EW__LINE_MORE) {
            on_no_message(peer, event, rest);
        }
        done += used;
        if (event == EW__LINE_MORE)
            break;
    }
    peer->reading = false;
    return done;
}

/* ---- patience ---- */

/* When the peer must have got on; EW__NEVER when nothing is expected of it. */
static uint64_t patience_until(const ew__jr_peer *peer) {
    const ew_limits *limits = ew__jr_limits(peer);
    bool inside = ew__line_is_inside(&peer->line);
    if (peer->peer.conn->stdio || peer->paused || (!peer->eof && peer->heard && !inside))
        return EW__NEVER;
    return peer->progress_at + EW__MS(peer->eof ? EOF_GRACE_MS : inside ? limits->body_stall_ms : limits->idle_ms);
}

static void on_patience(ew__timer *timer, uint64_t now) {
    ew__jr_peer *peer = ew__container_of(timer, ew__jr_peer, patience);
    uint64_t at = patience_until(peer);
    if (peer->closed || at == EW__NEVER)
        return;
    if (now >= at || ew__timer_set(timers_of(peer), timer, at, on_patience) != EW_OK)
        ew__jr_abort(peer);
}

/* A socket is not ours alone: whoever holds one without saying anything, or half a message, loses it. */
static void watch_patience(ew__jr_peer *peer) {
    peer->progress_at = peer->peer.conn->home->now;
    uint64_t at = patience_until(peer);
    if (at == EW__NEVER || (ew__timer_active(&peer->patience) && peer->patience.at <= at))
        return; /* it looks for itself when it fires */
    if (ew__timer_set(timers_of(peer), &peer->patience, at, on_patience) != EW_OK)
        ew__jr_abort(peer);
}

/* ---- bytes ---- */

static void after_messages(ew__jr_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    if (peer->closed)
        return;
    conn->ops->read(conn, !peer->paused && !peer->eof);
    if (!peer->paused)
        watch_patience(peer);
    ew__jr_check_drained(peer);
}

static void take_buffered(ew__jr_peer *peer) {
    ew__buf_drop(&peer->in, take_messages(peer, ew__buf_view(&peer->in)));
    if (peer->in.len == 0)
        ew__buf_done(&peer->in); /* an idle connection holds no memory */
}

static void input(ew__peer *base, const uint8_t *bytes, size_t n) {
    ew__jr_peer *peer = jr_of(base);
    if (peer->closed)
        return;
    if (peer->in.len == 0) { /* nothing is left over: messages are read where they are */
        size_t done = take_messages(peer, ew__str(bytes, n));
        bytes += done;
        n -= done;
        if (n > 0 && !peer->closed && ew__buf_add(&peer->in, bytes, n) != EW_OK)
            ew__jr_abort(peer);
    } else if (ew__buf_add(&peer->in, bytes, n) != EW_OK) {
        ew__jr_abort(peer);
    } else {
        take_buffered(peer);
    }
    after_messages(peer);
}

static ew__jr_call *first_with_input(const ew__jr_peer *peer) {
    for (ew__rpc_call *entry = peer->calls.served.first; entry; entry = entry->next)
        if (entry->input_open)
            return ew__jr_call_of(entry);
    return NULL;
}

/* The other side says no more. What runs may still be answered: it may have closed only its own half. */
static void act_on_eof(ew__jr_peer *peer) {
    static const char why[] = "the connection ended before the input stream did";
    ew__jr_call *entry;
    ew__jr_fail_sent(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                     EW_STR("the connection was lost before the end of the call"));
    while (!peer->closed && (entry = first_with_input(peer)) != NULL)
        ew__jr_give_up(entry, 0, EW_STATUS_UNAVAILABLE, why);
}

/* A number or null ends with the stream; half a message is an error, to a caller that of a lost connection. */
static void end_text(ew__jr_peer *peer) {
    if (peer->peer.role == EW__SERVE && peer->line.framing != EW__FRAMING_HEADERS && ew__line_is_inside(&peer->line) &&
        ew__buf_char(&peer->in, '\n') == EW_OK)
        take_buffered(peer);
    if (!peer->closed && ew__line_is_inside(&peer->line) && peer->peer.role == EW__SERVE)
        ew__jr_send_error(peer, ew__str(NULL, 0), EW__RPC_PARSE_ERROR, "the stream ended inside a message");
    ew__line_init(&peer->line, EW__FRAMING_LINES, 0, false);
    ew__buf_done(&peer->in);
}

static void end_of_input(ew__jr_peer *peer) {
    if (!peer->eof || peer->paused || peer->closed)
        return;
    end_text(peer);
    if (peer->closed)
        return;
    act_on_eof(peer);
    watch_patience(peer);
    ew__jr_check_drained(peer);
}

static void on_resume(ew__timer *timer, uint64_t now) {
    ew__jr_peer *peer = ew__container_of(timer, ew__jr_peer, resume);
    (void)now;
    if (peer->closed || ew__rpc_must_pause(&peer->calls))
        return;
    peer->paused = false;
    if (peer->in.len)
        take_buffered(peer);
    after_messages(peer);
    end_of_input(peer);
}

static void resume_later(ew__rpc_calls *all) {
    ew__jr_peer *peer = ew__container_of(all, ew__jr_peer, calls);
    if (!peer->paused || peer->closed || peer->reading)
        return; /* there is nothing to resume; or the loop that reads looks for itself */
    if (ew__timer_set(timers_of(peer), &peer->resume, peer->peer.conn->home->now, on_resume) != EW_OK)
        ew__jr_abort(peer);
}

static void eof(ew__peer *base) {
    ew__jr_peer *peer = jr_of(base);
    peer->eof = true;
    end_of_input(peer);
}

/* ---- life ---- */

/* An object, an array, or a Content-Length header: what a connection of this wire begins with. */
static int sniff(const uint8_t *bytes, size_t n) {
    static const char header[] = "content-length:";
    size_t i = 0, k = 0;
    while (i < n && (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\r' || bytes[i] == '\n'))
        i++;
    if (i == n)
        return 0;
    if (bytes[i] == '{' || bytes[i] == '[')
        return 1;
    for (; i < n && header[k]; i++, k++)
        if ((bytes[i] | 0x20) != header[k] && bytes[i] != (uint8_t)header[k])
            return -1;
    return header[k] ? 0 : 1;
}

static void overrun(ew__rpc_call *base) {
    static const char why[] = "overrun: the stream was not taken, and held up its connection";
    ew__jr_call *entry = ew__jr_call_of(base);
    if (ew__jr_peer_of(entry)->closed)
        return; /* it ends with the connection */
    if (base->sent)
        ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, why);
    else
        ew__jr_give_up(entry, 0, EW_STATUS_RESOURCE_EXHAUSTED, why);
}

static void abort_conn(ew__rpc_calls *all) { ew__jr_abort(ew__container_of(all, ew__jr_peer, calls)); }

static const ew__rpc_calls_ops calls_ops = {.overrun = overrun, .resume = resume_later, .abort = abort_conn};

static ew_err init(ew__peer *base) {
    ew__jr_peer *peer = jr_of(base);
    ew__conn *conn = base->conn;
    const ew_limits *limits = conn->home->limits;
    ew__framing framing = (ew__framing)conn->site->framing;
    ew__line_init(&peer->line, base->role == EW__SERVE ? framing : EW__FRAMING_AUTO, limits->frame_bytes, !conn->stdio);
    peer->framing = framing == EW__FRAMING_HEADERS ? EW__FRAMING_HEADERS : EW__FRAMING_LINES;
    ew__buf_init(&peer->in, conn->home->env, SIZE_MAX / 2); /* a message's length is checked as it comes */
    ew__rpc_calls_init(&peer->calls, conn, &calls_ops);
    ew__rpc_ids_init(&peer->ids, conn->home->env);
    if (base->role == EW__SERVE)
        watch_patience(peer);
    else
        peer->heard = true; /* a server may be silent until it is asked */
    return EW_OK;
}

static void drain(ew__peer *base) {
    jr_of(base)->draining = true;
    ew__jr_check_drained(jr_of(base));
}

static void gone(ew__peer *base, ew_err why) {
    ew__jr_peer *peer = jr_of(base);
    ew__timer *const timers[] = {&peer->patience, &peer->resume, &peer->answer};
    peer->closed = true;
    while (peer->calls.served.first) {
        ew__jr_call *entry = ew__jr_call_of(peer->calls.served.first);
        ew_call *call = entry->base.call;
        ew__jr_batch *batch = entry->came.batch;
        ew__rpc_call_remove(&entry->base);
        if (batch)
            ew__jr_batch_unref(peer, batch);
        ew__call_release(call);
    }
    ew__jr_fail_sent(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                     why == EW_ETIMEOUT ? EW_STR("the connection stalled")
                                        : EW_STR("the connection was lost before the end of the call"));
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        ew__timer_stop(timers_of(peer), timers[i]);
    ew__jr_strays_free(peer);
    ew__rpc_calls_done(&peer->calls);
    ew__buf_done(&peer->in);
}

const ew__wire ew__wire_jsonrpc = {
    .name = "jsonrpc",
    .caps = EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_LIST |
            EW__CAN_DUPLEX | EW__CAN_MANY | EW__CAN_STDIO,
    .serve_size = sizeof(ew__jr_peer),
    .call_size = sizeof(ew__jr_peer),
    .sniff = sniff,
    .init = init,
    .input = input,
    .eof = eof,
    .drained = ew__jr_drained,
    .drain = drain,
    .gone = gone,
    .open = ew__jr_open,
    .capacity = ew__jr_capacity,
    .refuses = ew__jr_refuses,
};
