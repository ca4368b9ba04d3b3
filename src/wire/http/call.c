/*
 * wire/http/call.c: the calling side of one HTTP connection: one call at a time, unary or streamed. The callee's end
 * of the calls that leave by HTTP.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/client.h"
#include "wire/http/codec.h"

static ew__http1 *reader_of(ew__http_client *client) { return (ew__http1 *)(void *)client->reader; }

static void close_connection(ew__http_client *client) {
    client->closed = true;
    client->peer.conn->ops->abort(client->peer.conn);
}

/* ---- ends ---- */

/* Takes the call off the connection. The caller of this gives the reference back after it has ended the call. */
static ew_call *detach(ew__http_client *client) {
    ew_call *call = client->call;
    client->call = NULL;
    return call;
}

static void forget_answer(ew__http_client *client) {
    ew__buf_done(&client->body);
    ew__sse_done(&client->sse);
    client->status = 0;
    client->streaming = client->saw_nothing = false;
    client->retry_after_ms = 0;
}

/* Ends the call for a reason that lies with the connection or the protocol, and gives the connection up. */
static void break_off(ew__http_client *client, ew_origin origin, ew_status status, const char *text) {
    ew_call *call = detach(client);
    close_connection(client);
    if (call) {
        ew__call_fail_as(call, origin, status, ew_str_from(text));
        ew_call_unref(call);
    }
}

static void protocol_error(ew__http_client *client, const char *text) {
    break_off(client, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, text);
}

/* Ends the call with what the server said; the connection may be used again when the answer is over. */
static void end_call(ew__http_client *client, const ew__http_said *said) {
    ew_call *call = detach(client);
    if (!call)
        return;
    if (said->meaning == EW__HTTP_RESULT) {
        (void)ew__call_done_valid(call, said->payload);
    } else {
        ew_fault fault = said->fault;
        fault.retry_after_ms = client->retry_after_ms;
        fault.retryable = client->retry_after_ms > 0 || fault.status == EW_STATUS_UNAVAILABLE;
        (void)ew_call_fail_with(call, &fault);
    }
    ew_call_unref(call);
}

/* ---- reading ---- */

static bool is_stream_type(ew_str type) {
    const char *semicolon = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    ew_str bare = ew__str_trim(ew__str(type.ptr, semicolon ? (size_t)(semicolon - type.ptr) : type.len));
    return bare.len == 0 || ew__str_is_nocase(bare, EW_STR("text/event-stream")) ||
           ew__str_is_nocase(bare, EW_STR("text/plain"));
}

static void on_head(ew__http_client *client, const ew__http_head *head) {
    ew_call *call = client->call;
    client->status = head->status;
    client->keep_alive = head->keep_alive;
    if (!call)
        return;
    client->streaming = head->status == 200 && call->wants_chunks && call->kind == EW__CALL_RUN &&
                        is_stream_type(ew__http_head_field(head, EW_STR("content-type"), NULL));
    ew_str trace = ew__http_head_field(head, EW_STR("x-genkit-trace-id"), NULL);
    if (trace.len > 0 && trace.len <= 64)
        (void)ew__arena_str(&call->arena, trace, &call->remote_trace_id);
    uint64_t seconds = 0;
    if (ew__u64_parse(ew__http_head_field(head, EW_STR("retry-after"), NULL), &seconds) && seconds < 1000000)
        client->retry_after_ms = seconds * 1000;
}

static void on_block(ew__http_client *client, bool from_error) {
    ew__http_said said;
    ew_call *call = client->call;
    ew__http_read_block(&call->arena, ew__sse_payload(&client->sse), from_error, &said);
    client->saw_nothing = said.meaning == EW__HTTP_NOTHING;
    if (client->saw_nothing)
        return;
    if (said.meaning == EW__HTTP_NONSENSE) {
        protocol_error(client, "the server sent a block that is no message, result or error");
    } else if (said.meaning == EW__HTTP_CHUNK) {
        if (ew__call_chunk_valid(call, said.payload) == EW_FULL && client->call) {
            client->paused = true;
            client->peer.conn->ops->read(client->peer.conn, false);
        }
    } else {
        end_call(client, &said);
    }
}

/* Blocks until the bytes are used up or the call has ended; what a server sends after the end is not looked at. */
static void take_blocks(ew__http_client *client) {
    while (client->call) {
        switch (ew__sse_next(&client->sse)) {
        case EW__SSE_MORE:
            return;
        case EW__SSE_DATA:
            on_block(client, false);
            break;
        case EW__SSE_FAULT:
            on_block(client, true);
            break;
        case EW__SSE_BAD:
            protocol_error(client, client->sse.err == EW_ELIMIT ? "a block of the stream is too large"
                                                                : "the server sent a line that belongs to no stream");
            return;
        }
    }
}

static void on_body(ew__http_client *client, ew_str piece) {
    if (!client->call)
        return;
    if (client->streaming) {
        ew__sse_feed(&client->sse, piece.ptr, piece.len);
        take_blocks(client);
    } else if (ew__buf_add(&client->body, piece.ptr, piece.len) != EW_OK) {
        bool limit = client->body.err == EW_ELIMIT;
        break_off(client, limit ? EW_ORIGIN_PROTOCOL : EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                  limit ? "the answer is too large" : "out of memory");
    }
}

static void end_listing(ew__http_client *client, ew__http_said *said) {
    ew_str body = ew__buf_view(&client->body);
    if (client->status == 200) {
        ew__json_doc doc;
        bool good = ew__json_parse(&doc, body) == EW_OK && doc.type == EW_JSON_OBJECT;
        *said =
            (ew__http_said){.meaning = good ? EW__HTTP_RESULT : EW__HTTP_NONSENSE, .payload = good ? doc.root : body};
    } else if (client->status == 404 || client->status == 405 || client->status == 501) {
        *said = (ew__http_said){
            .meaning = EW__HTTP_FAULT,
            .fault = {.status = EW_STATUS_UNIMPLEMENTED, .message = EW_STR("this server cannot list its actions")}};
    } else {
        ew__http_read_answer(&client->call->arena, client->status, body, said);
    }
}

static void end_unary(ew__http_client *client) {
    ew__http_said said;
    if (client->call->kind == EW__CALL_LIST)
        end_listing(client, &said);
    else
        ew__http_read_answer(&client->call->arena, client->status, ew__buf_view(&client->body), &said);
    if (said.meaning == EW__HTTP_NONSENSE)
        protocol_error(client, "the server's answer is no JSON object with a result");
    else
        end_call(client, &said);
}

static void on_end(ew__http_client *client) {
    if (client->call && client->streaming) {
        ew__sse_feed_eof(&client->sse);
        take_blocks(client);
        ew__http_said no_result = {.meaning = EW__HTTP_RESULT, .payload = EW_STR("null")};
        if (client->call && client->saw_nothing)
            end_call(client, &no_result);
        else if (client->call)
            break_off(client, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, "the stream ended without a result");
    } else if (client->call) {
        end_unary(client);
    }
    forget_answer(client);
    if (client->closed)
        return;
    if (!client->keep_alive)
        close_connection(client);
    else if (client->peer.conn->ops->ready)
        client->peer.conn->ops->ready(client->peer.conn);
}

static void on_reader_error(ew__http_client *client, bool eof) {
    if (!client->call)
        close_connection(client);
    else if (eof)
        break_off(client, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                  "the server closed the connection before the end of its answer");
    else
        protocol_error(client, ew__http1_error_text(reader_of(client)));
}

static void take_events(ew__http_client *client, bool eof) {
    ew__http1 *reader = reader_of(client);
    while (!client->closed) {
        switch (ew__http1_next(reader)) {
        case EW__HTTP_MORE:
            return;
        case EW__HTTP_HEAD_DONE:
            if (client->call) {
                on_head(client, ew__http1_head(reader));
                break;
            }
            close_connection(client); /* an answer that nobody asked for */
            return;
        case EW__HTTP_BODY:
            on_body(client, ew__http1_body(reader));
            break;
        case EW__HTTP_END:
            on_end(client);
            break;
        case EW__HTTP_ERROR:
            on_reader_error(client, eof);
            return;
        }
    }
}

/* ---- the callee's slots ---- */

static void on_cancel(ew_call *call, ew__cancel_why why) {
    ew__http_client *client = call->callee_ud;
    (void)why;
    /* the protocol's way to say it: go away */
    break_off(client, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

static void on_room(ew_call *call) {
    ew__http_client *client = call->callee_ud;
    if (client->paused) {
        client->paused = false;
        client->peer.conn->ops->read(client->peer.conn, true);
    }
}

static void on_open(ew_call *call) { (void)call; /* calls reach this wire opened (wire.h) */ }

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel, .room = on_room};

/* ---- the peer's slots ---- */

ew_err ew__http_client_init(ew__peer *peer) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    ew__home *home = peer->conn->home;
    ew_err err = ew__http_reader_init(peer->conn, client->reader, false);
    if (err != EW_OK)
        return err;
    ew__buf_init(&client->body, home->env, (size_t)home->limits->frame_bytes);
    ew__sse_init(&client->sse, home->env, (size_t)home->limits->frame_bytes);
    return EW_OK;
}

uint32_t ew__http_client_capacity(const ew__peer *peer) {
    const ew__http_client *client = (const ew__http_client *)(const void *)peer;
    return client->call || client->closed || client->status ? 0 : 1;
}

ew_err ew__http_client_open(ew__peer *peer, ew_call *call) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    ew__conn *conn = peer->conn;
    if (ew__http_client_capacity(peer) == 0)
        return EW_EBUSY;
    client->call = ew_call_ref(call);
    call->callee = &callee;
    call->callee_ud = client;
    call->wire = peer->wire->name;
    ew__buf_clear(&client->body);
    ew__http_write_request(&conn->out, conn->site, call, ew__home_read_clock(conn->home));
    if (conn->out.err)
        break_off(client, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    else
        conn->ops->send(conn);
    return EW_OK;
}

void ew__http_client_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    if (client->closed)
        return;
    (void)ew__http1_feed(reader_of(client), bytes, n);
    take_events(client, false);
}

void ew__http_client_eof(ew__peer *peer) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    if (client->closed)
        return;
    ew__http1_feed_eof(reader_of(client));
    take_events(client, true);
    if (client->call)
        break_off(client, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                  "the server closed the connection before it answered");
    else if (!client->closed)
        close_connection(client);
}

void ew__http_client_gone(ew__peer *peer, ew_err why) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    client->closed = true;
    ew_call *call = detach(client);
    if (call) {
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         why == EW_ETIMEOUT ? EW_STR("the connection stalled")
                                            : EW_STR("the connection was lost before the end of the call"));
        ew_call_unref(call);
    }
    ew__buf_done(&client->body);
    ew__sse_done(&client->sse);
    ew__http1_done(reader_of(client));
}
