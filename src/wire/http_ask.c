/*
 * wire/http_ask.c: see http_ask.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http_ask.h"
#include <stdio.h>

ew_err ew__http_reader_init(ew__conn *conn, ew__http_reading *reading, void *reader, bool request) {
    const ew_limits *limits = conn->executor->limits;
    if (ew__http1_size() > EW__HTTP_READER_BYTES)
        return EW_ELIMIT;
    reading->limits = (ew__http1_limits){(uint32_t)limits->head_bytes, (uint32_t)limits->head_fields,
                                         (uint32_t)limits->target_bytes, (uint32_t)limits->chunk_extension_bytes};
    ew__http1_init(reader, conn->executor->env, &reading->limits, request, &reading->fields);
    return EW_OK;
}

static void close_connection(ew__http_ask *ask) {
    ask->closed = true;
    ask->peer.conn->ops->abort(ask->peer.conn);
}

/* ---- the call ---- */

void ew__http_ask_take(ew__http_ask *ask, ew_call *call, const ew__callee_ops *callee) {
    ask->call = ew_call_ref(call);
    call->callee = callee;
    call->callee_ud = ask;
    ew__buf_clear(&ask->body);
}

ew_call *ew__http_ask_detach(ew__http_ask *ask) {
    ew_call *call = ask->call;
    ask->call = NULL;
    if (call)
        ew__call_detach(call);
    return call;
}

ew_fault ew__http_unexpected(ew__arena *memory, int status) {
    enum { ROOM = 80 };
    char *text = ew__arena_alloc(memory, ROOM);
    ew_str message = EW_STR("unexpected HTTP status");
    if (text) {
        (void)snprintf(text, ROOM, "unexpected HTTP status %d (%s)", status, ew__http_reason(status));
        message = ew_str_from(text);
    }
    return (ew_fault){.status = EW_STATUS_UNKNOWN, .message = message};
}

void ew__http_ask_break_off(ew__http_ask *ask, ew_origin origin, ew_status status, const char *text) {
    ew_call *call = ew__http_ask_detach(ask);
    close_connection(ask);
    if (call) {
        ew__call_fail_as(call, origin, status, ew_str_from(text));
        ew_call_unref(call);
    } else if (ask->asked && ask->ops->broken) {
        ask->ops->broken(ask, origin);
    }
}

void ew__http_write_post(ew__out *out, ew_str path, ew_str authority, ew_str fields, uint64_t length) {
    char digits[20];
    ew__out_str(out, EW_STR("POST "));
    ew__out_str(out, path);
    ew__out_str(out, EW_STR(" HTTP/1.1\r\nHost: "));
    ew__out_str(out, authority);
    ew__out_str(out, EW_STR("\r\n"));
    ew__out_str(out, fields);
    ew__out_str(out, EW_STR("Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: "));
    ew__out_add(out, digits, ew__u64_text(length, digits));
    ew__out_str(out, EW_STR("\r\n\r\n"));
}

void ew__http_ask_send(ew__http_ask *ask) {
    ew__conn *conn = ask->peer.conn;
    ask->asked = true;
    if (conn->out.err) {
        ew__http_ask_break_off(ask, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    conn->ops->send(conn);
}

void ew__http_ask_collect(ew__http_ask *ask, ew_str piece) {
    if (EW__LIKELY(piece.len == ask->length && piece.len <= ask->body.max)) { /* then END comes next */
        ask->whole = piece;
        return;
    }
    if (ew__buf_add(&ask->body, piece.ptr, piece.len) == EW_OK)
        return;
    bool limit = ask->body.err == EW_ELIMIT;
    ew__http_ask_break_off(ask, limit ? EW_ORIGIN_PROTOCOL : EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                           limit ? "the answer is too large" : "out of memory");
}

/* ---- reading ---- */

static void on_head(ew__http_ask *ask, const ew__http_head *head) {
    ask->status = head->status;
    ask->keep_alive = head->keep_alive;
    ask->length = head->has_length ? head->length : 0;
    ask->ops->head(ask, head);
}

/* The server closes, and was not asked yet what the call wants of it: another connection does that. */
static void hand_on(ew__http_ask *ask) {
    ew__conn *conn = ask->peer.conn;
    ew_call *call = ew__http_ask_detach(ask);
    close_connection(ask);
    if (!conn->ops->again || conn->ops->again(conn, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         EW_STR("the server closed the connection before it was asked"));
    ew_call_unref(call);
}

/* Bytes behind the answer must not become the answer to the next request: the connection is not used again. */
static void on_end(ew__http_ask *ask) {
    ew__conn *conn = ask->peer.conn;
    if (EW__UNLIKELY(ew__http1_unread(ew__http_ask_reader(ask)) > 0))
        ask->keep_alive = false;
    ask->asked = false;
    ask->ops->end(ask);
    ew__buf_done(&ask->body);
    ask->whole = ew__str(NULL, 0);
    ask->status = 0;
    if (ask->closed)
        return;
    if (!ask->keep_alive && ask->call)
        hand_on(ask);
    else if (!ask->keep_alive)
        close_connection(ask);
    else if (conn->ops->ready && !ask->call)
        conn->ops->ready(conn);
}

static void on_reader_error(ew__http_ask *ask, bool eof) {
    if (eof && ask->call)
        ew__http_ask_break_off(ask, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                               "the server closed the connection before the end of its answer");
    else
        ew__http_ask_protocol_error(ask, ew__http1_error_text(ew__http_ask_reader(ask)));
}

static void take_events(ew__http_ask *ask, bool eof) {
    ew__http1 *reader = ew__http_ask_reader(ask);
    while (!ask->closed) {
        switch (ew__http1_next(reader)) {
        case EW__HTTP_MORE:
            return;
        case EW__HTTP_HEAD_DONE:
            if (ask->call || ask->ops->broken) {
                on_head(ask, ew__http1_head(reader));
                break;
            }
            close_connection(ask); /* an answer that nobody asked for */
            return;
        case EW__HTTP_BODY:
            if (ask->call)
                ask->ops->piece(ask, ew__http1_body(reader));
            break;
        case EW__HTTP_END:
            on_end(ask);
            break;
        case EW__HTTP_ERROR:
            on_reader_error(ask, eof);
            return;
        }
    }
}

/* ---- life ---- */

ew_err ew__http_ask_init(ew__http_ask *ask, const ew__http_ask_ops *ops, ew__http_reading *reading) {
    ew__executor *executor = ask->peer.conn->executor;
    ask->ops = ops;
    ew__buf_init(&ask->body, executor->env, (size_t)executor->limits->frame_bytes);
    return ew__http_reader_init(ask->peer.conn, reading, ask->reader, false);
}

void ew__http_ask_input(ew__http_ask *ask, const uint8_t *bytes, size_t n) {
    if (ask->closed)
        return;
    if (EW__UNLIKELY(!ask->asked)) { /* some servers send an error before they close an unused connection */
        ew__http_ask_break_off(ask, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                               "the server closed the connection before it was asked");
        return;
    }
    (void)ew__http1_feed(ew__http_ask_reader(ask), bytes, n);
    take_events(ask, false);
}

void ew__http_ask_eof(ew__http_ask *ask) {
    if (ask->closed)
        return;
    ew__http1_feed_eof(ew__http_ask_reader(ask));
    take_events(ask, true);
    if (!ask->closed)
        ew__http_ask_break_off(ask, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                               "the server closed the connection before it answered");
}

void ew__http_ask_gone(ew__http_ask *ask, ew_err why) {
    ask->closed = true;
    ew_call *call = ew__http_ask_detach(ask);
    if (call) {
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         why == EW_ETIMEOUT ? EW_STR("the connection stalled")
                                            : EW_STR("the connection was lost before the end of the call"));
        ew_call_unref(call);
    }
    ew__buf_done(&ask->body);
    ew__http1_done(ew__http_ask_reader(ask));
}
