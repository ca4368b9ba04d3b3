/*
 * wire/jsonrpc/send.c: messages to bytes, and back pressure. The protocol has no credit: a producer of ours waits while
 * the connection's queue is long, and a peer's producer is held back by not reading, which its transport passes on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define SMALL ((size_t)4096)      /* messages up to here are written in one piece */
#define LARGE ((size_t)16 * 1024) /* payloads from here on are sent from where they lie */
#define GUARD_MS 5000             /* a taker that is behind may hold up the connection for that long */

/* ---- messages ---- */

bool ew__jr_fits(const ew__jr_peer *peer, size_t len) { return len <= ew__jr_limits(peer)->frame_bytes; }

bool ew__jr_has_place(const ew__jr_peer *peer, size_t len) {
    size_t waits = peer->peer.conn->out.bytes;
    return waits == 0 || waits + len <= ew__jr_limits(peer)->out_max_bytes;
}

static void release_call(void *call) { ew_call_unref(call); }

static void write_small(ew__out *out, const char *head, size_t head_len, const ew__rpc_out *message, size_t tail) {
    uint8_t *at = ew__out_room(out, head_len + message->len + tail);
    if (!at)
        return;
    memcpy(at, head, head_len);
    at += head_len;
    for (unsigned i = 0; i < message->n; i++) {
        memcpy(at, message->piece[i].ptr, message->piece[i].len);
        at += message->piece[i].len;
    }
    if (tail)
        *at = '\n';
    ew__out_commit(out, head_len + message->len + tail);
}

static void write_large(ew__out *out, const char *head, size_t head_len, const ew__rpc_out *message, size_t tail,
                        ew_call *owner) {
    ew__out_add(out, head, head_len);
    for (unsigned i = 0; i < message->n; i++) {
        ew_str piece = message->piece[i];
        if (piece.len >= LARGE && owner && ew__call_owns(owner, piece))
            ew__out_ref(out, piece.ptr, piece.len, release_call, ew_call_ref(owner));
        else
            ew__out_str(out, piece);
    }
    ew__out_add(out, "\n", tail);
}

/* Half a message must not leave: without memory for a whole one the connection closes. */
void ew__jr_send(ew__jr_peer *peer, const ew__rpc_out *message, ew_call *owner) {
    ew__conn *conn = peer->peer.conn;
    char head[EW__LINE_HEAD_ROOM];
    if (peer->closed)
        return;
    size_t head_len = peer->framing == EW__FRAMING_HEADERS ? ew__line_head(EW__FRAMING_HEADERS, message->len, head) : 0;
    size_t tail = peer->framing == EW__FRAMING_HEADERS ? 0 : 1;
    if (EW__LIKELY(message->len <= SMALL))
        write_small(&conn->out, head, head_len, message, tail);
    else
        write_large(&conn->out, head, head_len, message, tail, owner);
    if (EW__UNLIKELY(conn->out.err != EW_OK))
        ew__jr_abort(peer);
    else
        conn->ops->send(conn);
}

void ew__jr_send_error(ew__jr_peer *peer, ew_str id, int64_t code, const char *message) {
    ew__rpc_out out;
    ew__buf error;
    ew__buf_init(&error, peer->peer.conn->home->env, SIZE_MAX / 2);
    (void)ew__rpc_write_error(&error, code, ew_str_from(message), ew__str(NULL, 0));
    ew__rpc_put_error(&out, id,
                      error.err ? EW_STR("{\"code\":-32603,\"message\":\"out of memory\"}") : ew__buf_view(&error));
    ew__jr_send(peer, &out, NULL);
    ew__buf_done(&error);
}

ew_err ew__jr_one_line(const ew__jr_peer *peer, ew_str json, ew__buf *buf, ew_str *ret) {
    *ret = json;
    ew__buf_init(buf, peer->peer.conn->home->env, SIZE_MAX / 2);
    if (EW__LIKELY(!ew__json_has_newline(json)) || peer->framing == EW__FRAMING_HEADERS)
        return EW_OK;
    ew_err err = ew__json_minify(buf, json);
    *ret = ew__buf_view(buf);
    return err;
}

/* ---- producers of ours ---- */

static bool has_room(const ew__jr_peer *peer) {
    return peer->peer.conn->out.bytes < ew__jr_limits(peer)->out_high_bytes;
}

static void wait(ew__jr_call *entry) {
    ew__jr_peer *peer = entry->peer;
    if (entry->waiting)
        return;
    entry->waiting = true;
    entry->wait_prev = peer->waiting_last;
    entry->wait_next = NULL;
    if (peer->waiting_last)
        peer->waiting_last->wait_next = entry;
    else
        peer->waiting = entry;
    peer->waiting_last = entry;
    peer->n_waiting++;
}

void ew__jr_stop_waiting(ew__jr_call *entry) {
    ew__jr_peer *peer = entry->peer;
    if (!entry->waiting)
        return;
    entry->waiting = false;
    if (entry->wait_prev)
        entry->wait_prev->wait_next = entry->wait_next;
    else
        peer->waiting = entry->wait_next;
    if (entry->wait_next)
        entry->wait_next->wait_prev = entry->wait_prev;
    else
        peer->waiting_last = entry->wait_prev;
    peer->n_waiting--;
}

ew_err ew__jr_send_chunk(ew__jr_call *entry, ew_str json) {
    ew__jr_peer *peer = entry->peer;
    ew__rpc_out message;
    ew__buf line;
    ew_err err = ew__jr_one_line(peer, json, &line, &json);
    ew__rpc_put_frame(&message, entry->id, EW__RPC_STREAM_DATA, json);
    if (err == EW_OK && (!ew__jr_fits(peer, message.len) || !ew__jr_has_place(peer, message.len)))
        err = EW_ELIMIT;
    if (err == EW_OK)
        ew__jr_send(peer, &message, NULL);
    ew__buf_done(&line);
    if (err != EW_OK)
        return err;
    if (peer->closed)
        return EW_ENOMEM; /* a producer that does not wait must learn that nobody listens */
    if (has_room(peer))
        return EW_OK;
    wait(entry);
    return EW_FULL;
}

static void go_on(ew__jr_call *entry) {
    ew__jr_stop_waiting(entry);
    if (entry->sent)
        ew__call_input_room(entry->call);
    else
        ew__call_room(entry->call);
}

/* Only those that wait now, in turn: who goes on may wait again, end calls or fill the queue. */
void ew__jr_drained(ew__peer *base) {
    ew__jr_peer *peer = (ew__jr_peer *)(void *)base;
    for (uint32_t n = peer->n_waiting; n > 0 && peer->waiting && has_room(peer); n--)
        go_on(peer->waiting);
    if (peer->paused && !ew__jr_must_pause(peer))
        ew__jr_resume_later(peer);
    if (!peer->closed && base->conn->ops->ready)
        base->conn->ops->ready(base->conn);
}

/* ---- producers of the peer ---- */

/*
 * Answers that nobody takes must not pile up. A connection used both ways gets more room: when both sides stop reading
 * because of what they have to send, neither goes on.
 */
bool ew__jr_must_pause(const ew__jr_peer *peer) {
    const ew_limits *limits = ew__jr_limits(peer);
    uint64_t most = peer->sent.n ? limits->out_max_bytes / 2 : 4 * limits->out_high_bytes;
    return peer->n_blocked > 0 || peer->peer.conn->out.bytes >= most;
}

static ew__jr_call *first_blocked(const ew__jr_list *list) {
    for (ew__jr_call *entry = list->first; entry; entry = entry->next)
        if (entry->blocked)
            return entry;
    return NULL;
}

/* It held up everybody else on the connection for too long: it loses its call. */
static void on_guard(ew__timer *timer, uint64_t now) {
    ew__jr_peer *peer = ew__container_of(timer, ew__jr_peer, guard);
    static const char why[] = "overrun: the stream was not taken, and held up its connection";
    ew__jr_call *entry;
    (void)now;
    while (!peer->closed && (entry = first_blocked(&peer->served)) != NULL)
        ew__jr_give_up(entry, 0, EW_STATUS_RESOURCE_EXHAUSTED, why);
    while (!peer->closed && (entry = first_blocked(&peer->sent)) != NULL)
        ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, why);
}

void ew__jr_block(ew__jr_call *entry) {
    ew__jr_peer *peer = entry->peer;
    ew__home *home = peer->peer.conn->home;
    if (entry->blocked)
        return;
    entry->blocked = true;
    if (peer->n_blocked++ == 0 &&
        ew__timer_set(&home->timers, &peer->guard, home->now + EW__MS(GUARD_MS), on_guard) != EW_OK)
        ew__jr_abort(peer);
}

void ew__jr_unblock(ew__jr_call *entry) {
    ew__jr_peer *peer = entry->peer;
    ew__home *home = peer->peer.conn->home;
    if (!entry->blocked)
        return;
    entry->blocked = false;
    entry->heard_at = home->now; /* the silence was ours */
    if (--peer->n_blocked > 0)
        return;
    ew__timer_stop(&home->timers, &peer->guard);
    if (peer->paused && !ew__jr_must_pause(peer))
        ew__jr_resume_later(peer);
}

/* The timer looks again when it fires: a frame only notes its time. */
ew_err ew__jr_watch_silence(ew__jr_call *entry, ew__timer_fn fn) {
    ew__home *home = entry->peer->peer.conn->home;
    uint64_t at = entry->heard_at + EW__MS(home->limits->stream_idle_ms);
    return ew__timer_set(&home->timers, &entry->timer, at, fn);
}
