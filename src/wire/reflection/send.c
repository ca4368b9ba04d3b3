/*
 * wire/reflection/send.c: messages to bytes: one message is one text frame, masked where we are the WebSocket's client.
 * And the pulse of a connection: a peer that is silent is pinged, one that does not answer has gone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/reflection.h"

#define NONE ((ew_str){NULL, 0})
#define ROOM ((size_t)4096) /* what the queue gives in one piece */
#define PING_MS 20000       /* of silence: then a ping */
#define PONG_MS 20000       /* of silence after it: then it has gone */

/* ---- messages ---- */

/* Where there is room for all of it the frame is written in place. */
static void write_small(ew__rf_peer *peer, const ew__rpc_out *message) {
    ew__out *out = &peer->peer.conn->out;
    uint8_t *at = ew__out_room(out, EW__WS_HEAD_ROOM + message->len);
    size_t head_len = at ? ew__ws_head(&peer->ws, false, message->len, at) : 0;
    if (head_len == 0)
        return;
    (void)ew__rpc_out_copy(message, at + head_len);
    if (peer->peer.role == EW__SERVE)
        ew__ws_mask(at + head_len, message->len, at + head_len - 4, 0);
    ew__out_commit(out, head_len + message->len);
}

static void write_masked(ew__out *out, const ew__rpc_out *message, const uint8_t key[4]) {
    uint64_t offset = 0;
    for (unsigned i = 0; i < message->n; i++) {
        ew_str piece = message->piece[i];
        for (size_t done = 0; done < piece.len;) {
            size_t n = piece.len - done < ROOM ? piece.len - done : ROOM;
            uint8_t *at = ew__out_room(out, n);
            if (!at)
                return;
            memcpy(at, piece.ptr + done, n);
            ew__ws_mask(at, n, key, offset);
            ew__out_commit(out, n);
            done += n;
            offset += n;
        }
    }
}

static void write_large(ew__rf_peer *peer, const ew__rpc_out *message, ew_call *owner) {
    ew__out *out = &peer->peer.conn->out;
    uint8_t head[EW__WS_HEAD_ROOM];
    size_t head_len = ew__ws_head(&peer->ws, false, message->len, head);
    if (head_len == 0)
        return;
    ew__out_add(out, head, head_len);
    if (peer->peer.role == EW__SERVE)
        write_masked(out, message, head + head_len - 4);
    else
        ew__rpc_write(out, message, owner);
}

/* Half a message must not leave: without memory for a whole one the connection closes. */
static void written(ew__rf_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    if (EW__UNLIKELY(conn->out.err != EW_OK))
        ew__rf_abort(peer);
    else
        conn->ops->send(conn);
}

bool ew__rf_is_short(size_t length) { return EW__WS_HEAD_ROOM + length <= ROOM; }

void ew__rf_send(ew__rf_peer *peer, const ew__rpc_out *message, ew_call *owner) {
    if (peer->closed || !ew__ws_may_send(&peer->ws))
        return;
    if (EW__LIKELY(ew__rf_is_short(message->len)))
        write_small(peer, message);
    else
        write_large(peer, message, owner);
    written(peer);
}

/* As many messages as there is room for in one run of the queue; returns how many, n if there is no memory. */
static size_t write_chunks(ew__rf_peer *peer, ew_str id, const ew_str *row, size_t n) {
    ew__out *out = &peer->peer.conn->out;
    size_t around = ew__rf_around_chunk(id), room = 0, k = 0;
    for (; k < n && room + EW__WS_HEAD_ROOM + around + row[k].len <= ROOM; k++)
        room += EW__WS_HEAD_ROOM + around + row[k].len;
    uint8_t *start = ew__out_room(out, room), *at = start;
    if (!start)
        return n;
    for (size_t i = 0; i < k; i++) {
        size_t length = around + row[i].len;
        at += ew__ws_head(&peer->ws, false, length, at);
        (void)ew__rf_write_chunk(at, id, row[i]);
        if (peer->peer.role == EW__SERVE)
            ew__ws_mask(at, length, at - 4, 0);
        at += length;
    }
    ew__out_commit(out, (size_t)(at - start));
    return k;
}

void ew__rf_send_row(ew__rf_peer *peer, ew_str id, const ew_str *row, size_t n) {
    if (peer->closed || !ew__ws_may_send(&peer->ws))
        return;
    for (size_t i = 0; i < n;)
        i += write_chunks(peer, id, row + i, n - i);
    written(peer);
}

void ew__rf_send_control(ew__rf_peer *peer, const uint8_t *frame, size_t n) {
    ew__conn *conn = peer->peer.conn;
    if (peer->closed || n == 0)
        return;
    ew__out_add(&conn->out, frame, n);
    if (conn->out.err != EW_OK)
        ew__rf_abort(peer);
    else
        conn->ops->send(conn);
}

/* What does not fit is told in short: the status is what matters. */
void ew__rf_send_error(ew__rf_peer *peer, ew_str id, int64_t code, const ew_fault *fault, ew_str trace_id) {
    static const char no_memory[] =
        "{\"code\":-32000,\"message\":\"out of memory\",\"data\":{\"code\":8,\"message\":\"out of memory\"}}";
    const ew_fault plain = {.status = fault->status};
    ew__rpc_out out;
    ew__buf buf;
    ew__buf_init(&buf, ew__rf_executor(peer)->env, SIZE_MAX / 2);
    ew_err err = ew__rf_write_fault(&buf, code, fault, trace_id);
    size_t len = buf.len + id.len + 64;
    if (err == EW_OK && !(ew__rpc_fits(&peer->calls, len) && ew__rpc_fault_has_place(&peer->calls, len))) {
        ew__buf_clear(&buf);
        err = ew__rf_write_fault(&buf, code, &plain, trace_id);
    }
    ew__rpc_put_error(&out, id, err == EW_OK ? ew__buf_view(&buf) : EW_STR(no_memory));
    ew__rf_send(peer, &out, NULL);
    ew__buf_done(&buf);
}

void ew__rf_refuse(ew__rf_peer *peer, ew_str id, int64_t code, ew_status status, const char *message) {
    ew__rf_send_error(peer, id, code, &(ew_fault){.status = status, .message = ew_str_from(message)}, NONE);
}

/* ---- the pulse ---- */

typedef struct due {
    uint64_t at;
    const char *why; /* NULL: a ping is due; else the connection's end, and its reason */
} due;

static void earlier(due *first, uint64_t at, const char *why) {
    if (at < first->at)
        *first = (due){at, why};
}

/* What comes next if the peer says nothing. */
static due next_due(const ew__rf_peer *peer) {
    const ew_limits *limits = ew__rf_executor(peer)->limits;
    due first = {EW__NEVER, NULL};
    if (peer->dial)
        return (due){peer->opened_at + EW__MS(limits->head_ms), "the opening handshake took too long"};
    if (peer->paused)
        return (due){ew__rf_executor(peer)->now + EW__MS(PING_MS), NULL}; /* the silence is ours */
    earlier(&first, peer->heard_at + EW__MS(PING_MS + (peer->pinged ? PONG_MS : 0)),
            peer->pinged ? "the peer does not answer" : NULL);
    if (peer->peer.role == EW__CALL && !peer->registered)
        earlier(&first, peer->opened_at + EW__MS(limits->head_ms), "the runtime has not registered");
    if (!ew__ws_is_idle(&peer->ws))
        earlier(&first, peer->progress_at + EW__MS(limits->body_stall_ms), "the message took too long to arrive");
    return first;
}

static void ping(ew__rf_peer *peer) {
    uint8_t frame[EW__WS_CONTROL_ROOM];
    peer->pinged = true;
    ew__rf_send_control(peer, frame, ew__ws_ping(&peer->ws, NONE, frame));
}

static void on_pulse(ew__timer *timer, uint64_t now) {
    ew__rf_peer *peer = ew__container_of(timer, ew__rf_peer, pulse);
    due next = next_due(peer);
    if (peer->closed)
        return;
    if (now >= next.at && next.why) {
        ew__log(ew__rf_executor(peer)->env, EW_LOG_WARN, "reflection", "connection closed: %s", next.why);
        if (peer->dial || peer->pinged)
            ew__rf_abort(peer); /* nobody is there to be told */
        else
            ew__rf_close(peer, EW__WS_POLICY, next.why);
        return;
    }
    if (now >= next.at && !peer->paused)
        ping(peer);
    ew__rf_watch(peer);
}

/* The timer looks for itself when it fires: what comes only notes its time. */
void ew__rf_watch(ew__rf_peer *peer) {
    ew__executor *executor = ew__rf_executor(peer);
    uint64_t at = next_due(peer).at;
    if (peer->closed || (ew__timer_active(&peer->pulse) && peer->pulse.at <= at))
        return;
    if (ew__timer_set(&executor->timers, &peer->pulse, at, on_pulse) != EW_OK)
        ew__rf_abort(peer);
}
