/*
 * wire/http/call.c: the calling side of one HTTP connection: one call at a time, unary or streamed. The callee's end
 * of the calls that leave by HTTP.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/client.h"
#include "wire/http/codec.h"

#define SLACK 32 /* a block is longer than its chunk by less than that */

static ew__http_client *client_of(ew__http_ask *ask) { return (ew__http_client *)(void *)ask; }

static void go_on_reading(ew__http_client *client) {
    if (!client->paused)
        return;
    client->paused = false;
    client->ask.peer.conn->ops->read(client->ask.peer.conn, true);
}

/*
 * Ends the call with what the server said; the connection may be used again when the answer is over. A reader that was
 * behind may have held it up, and takes no more.
 */
static void end_call(ew__http_client *client, const ew__http_said *said) {
    ew_call *call = ew__http_ask_detach(&client->ask);
    if (!call)
        return;
    go_on_reading(client);
    call->deep = call->deep || said->deep;
    if (said->meaning == EW__HTTP_RESULT) {
        (void)ew__call_done_valid(call, said->payload);
    } else {
        ew_fault fault = said->fault;
        fault.retry_after_ms = client->retry_after_ms;
        fault.retryable = client->retry_after_ms > 0 || fault.status == EW_STATUS_UNAVAILABLE;
        ew__call_fault(call, &fault);
    }
    ew_call_unref(call);
}

/* ---- reading ---- */

static bool is_stream_type(ew_str type) {
    ew_str bare = ew__http_media_type(type);
    return bare.len == 0 || ew__str_is_nocase(bare, EW_STR("text/event-stream")) ||
           ew__str_is_nocase(bare, EW_STR("text/plain"));
}

static void on_head(ew__http_ask *ask, const ew__http_head *head) {
    ew__http_client *client = client_of(ask);
    ew_call *call = ask->call;
    client->streaming = head->status == 200 && call->wants_chunks && call->kind == EW__CALL_RUN &&
                        is_stream_type(ew__http_head_field(head, EW_STR("content-type"), NULL));
    ew_str trace = ew__http_head_field(head, EW_STR("x-genkit-trace-id"), NULL);
    if (trace.len > 0 && trace.len <= 64)
        (void)ew__arena_str(&call->arena, trace, &call->outgoing.remote_trace_id);
    uint64_t seconds = 0;
    if (ew__u64_parse(ew__http_head_field(head, EW_STR("retry-after"), NULL), &seconds) && seconds < 1000000)
        client->retry_after_ms = seconds * 1000;
}

/* What the taker of chunks has answered. */
static void heed_taker(ew__http_client *client, ew_err err) {
    if (err != EW_FULL || !client->ask.call)
        return;
    client->paused = true;
    client->ask.peer.conn->ops->read(client->ask.peer.conn, false);
}

static void on_block(ew__http_client *client, bool from_error) {
    ew__http_said said;
    ew_call *call = client->ask.call;
    ew__http_read_block(&call->arena, ew__sse_payload(&client->sse), from_error, &said);
    client->saw_nothing = said.meaning == EW__HTTP_NOTHING;
    if (client->saw_nothing)
        return;
    if (said.meaning == EW__HTTP_NONSENSE) {
        ew__http_ask_protocol_error(&client->ask, "the server sent a block that is no message, result or error");
    } else if (said.meaning == EW__HTTP_CHUNK) {
        call->deep = call->deep || said.deep;
        heed_taker(client, ew__call_chunk_valid(call, said.payload));
    } else {
        end_call(client, &said);
    }
}

/* Blocks until the bytes are used up or the call has ended; what a server sends after the end is not looked at. */
static void take_blocks(ew__http_client *client) {
    while (client->ask.call && !ew__sse_is_dry(&client->sse)) {
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
            ew__http_ask_protocol_error(&client->ask, client->sse.err == EW_ELIMIT
                                                          ? "a block of the stream is too large"
                                                          : "the server sent a line that belongs to no stream");
            return;
        }
    }
}

/* What has been read is passed on, whoever is behind; only then reading waits. */
static void give_row(ew__http_client *client, const ew_str *row, size_t n) {
    client->saw_nothing = false;
    ew_err err = EW_OK;
    for (size_t done = 0; done < n && err >= 0 && client->ask.call;) {
        size_t some = n - done;
        err = ew__call_chunk_row(client->ask.call, row + done, &some);
        heed_taker(client, err);
        done += some;
    }
}

/*
 * The chunks of a stream as most servers write them, one behind the other: from this piece of the body and, as long as
 * it has nothing else, from those behind it. Returns what is left of the last one, for the ordinary way.
 */
static ew_str take_rows(ew__http_client *client, ew_str piece) {
    ew_str row[EW__ROW_MAX];
    size_t n = 0;
    for (;;) {
        n += ew__http_read_row(&piece, row + n, EW__ROW_MAX - n);
        if (n == EW__ROW_MAX) {
            give_row(client, row, n);
            n = 0;
            if (!client->ask.call)
                break;
        } else if (piece.len > 0 || !ew__http1_next_chunk(ew__http_ask_reader(&client->ask), &piece)) {
            break;
        }
    }
    if (n > 0)
        give_row(client, row, n);
    return piece;
}

static void on_body(ew__http_ask *ask, ew_str piece) {
    ew__http_client *client = client_of(ask);
    if (!client->streaming) {
        ew__http_ask_collect(ask, piece);
        return;
    }
    if (EW__LIKELY(client->sse.max_block >= EW__ROW_CHUNK + SLACK && ew__sse_is_between(&client->sse)))
        piece = take_rows(client, piece);
    if (piece.len == 0 || !ask->call)
        return;
    ew__sse_feed(&client->sse, piece.ptr, piece.len);
    take_blocks(client);
}

static void end_listing(ew__http_client *client, ew__http_said *said) {
    ew_str body = ew__http_ask_body(&client->ask);
    if (client->ask.status == 200) {
        ew__json_doc doc;
        bool good = ew__json_parse(&doc, body) == EW_OK && doc.type == EW_JSON_OBJECT;
        *said = (ew__http_said){.meaning = good ? EW__HTTP_RESULT : EW__HTTP_NONSENSE,
                                .payload = good ? doc.root : body,
                                .deep = good && doc.deep};
    } else if (client->ask.status == 404 || client->ask.status == 405 || client->ask.status == 501) {
        *said = (ew__http_said){
            .meaning = EW__HTTP_FAULT,
            .fault = {.status = EW_STATUS_UNIMPLEMENTED, .message = EW_STR("this server cannot list its actions")}};
    } else {
        ew__http_read_answer(&client->ask.call->arena, client->ask.status, body, said);
    }
}

static void end_unary(ew__http_client *client) {
    ew__http_said said;
    if (client->ask.call->kind == EW__CALL_LIST)
        end_listing(client, &said);
    else
        ew__http_read_answer(&client->ask.call->arena, client->ask.status, ew__http_ask_body(&client->ask), &said);
    if (said.meaning == EW__HTTP_NONSENSE)
        ew__http_ask_protocol_error(&client->ask, "the server's answer is no JSON object with a result");
    else
        end_call(client, &said);
}

static void on_end(ew__http_ask *ask) {
    ew__http_client *client = client_of(ask);
    if (ask->call && client->streaming) {
        ew__sse_feed_eof(&client->sse);
        take_blocks(client);
        ew__http_said no_result = {.meaning = EW__HTTP_RESULT, .payload = EW_STR("null")};
        if (ask->call && client->saw_nothing)
            end_call(client, &no_result);
        else if (ask->call)
            ew__http_ask_break_off(ask, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, "the stream ended without a result");
    } else if (ask->call) {
        end_unary(client);
    }
    if (client->streaming) {
        ew__sse_done(&client->sse);
        ew__sse_init(&client->sse, ask->peer.conn->executor->env,
                     (size_t)ask->peer.conn->executor->limits->frame_bytes);
    }
    client->streaming = client->saw_nothing = false;
    client->retry_after_ms = 0;
}

static const ew__http_ask_ops ask_ops = {.head = on_head, .piece = on_body, .end = on_end};

/* ---- the callee's slots ---- */

static void on_cancel(ew_call *call, ew__cancel_why why) {
    (void)why;
    /* the protocol's way to say it: go away */
    ew__http_ask_break_off(call->callee_ud, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

static void on_room(ew_call *call) { go_on_reading(call->callee_ud); }

static void on_open(ew_call *call) { (void)call; /* calls reach this wire opened (wire.h) */ }

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel, .room = on_room};

/* ---- the peer's slots ---- */

static ew__http_ask *ask_of(ew__peer *peer) { return (ew__http_ask *)(void *)peer; }

ew_err ew__http_client_init(ew__peer *peer) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    ew__http_scratch *scratch = peer->conn->scratch;
    ew__executor *executor = peer->conn->executor;
    ew__sse_init(&client->sse, executor->env, (size_t)executor->limits->frame_bytes);
    return ew__http_ask_init(&client->ask, &ask_ops, &scratch->reading);
}

uint32_t ew__http_client_capacity(const ew__peer *peer) {
    return ew__http_ask_capacity((const ew__http_ask *)(const void *)peer);
}

ew_err ew__http_client_open(ew__peer *peer, ew_call *call) {
    ew__conn *conn = peer->conn;
    if (ew__http_client_capacity(peer) == 0)
        return EW_EBUSY;
    ew__http_ask_take(ask_of(peer), call, &callee);
    call->wire = peer->wire->name;
    ew__http_write_request(&conn->out, conn->site, call, ew__executor_read_clock(conn->executor));
    ew__http_ask_send(ask_of(peer));
    return EW_OK;
}

void ew__http_client_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    ew__http_ask_input(ask_of(peer), bytes, n);
}

void ew__http_client_eof(ew__peer *peer) { ew__http_ask_eof(ask_of(peer)); }

void ew__http_client_gone(ew__peer *peer, ew_err why) {
    ew__http_client *client = (ew__http_client *)(void *)peer;
    ew__http_ask_gone(&client->ask, why);
    ew__sse_done(&client->sse);
}
