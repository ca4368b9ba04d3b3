/*
 * wire/http/serve.c: the serving side of one HTTP connection: bytes, phases, timeouts. What a head means is in
 * request.c, answers are in respond.c, WebSockets begin in upgrade.c.
 *
 * Bodies are kept in the call's own memory: one that arrives whole is copied there, a larger one grows in a buffer
 * (and is read straight into it) that the call then takes over. Memory for a body is taken as its bytes arrive, never
 * by its announced length alone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/serve.h"

#define NONE ((ew_str){NULL, 0})
#define BODY_STEP ((size_t)256 * 1024) /* a body's buffer: this at first, then what is announced */
#define PROGRESS 1024                  /* body bytes that count as progress */

static void pump(ew__http_server *server);

static ew__executor *executor_of(const ew__http_server *server) { return server->peer.conn->executor; }

/* ---- time ---- */

static void on_timer(ew__timer *timer, uint64_t now);

/* `due` moves often, the timer seldom: it looks at `due` when it fires. It is only brought forward. */
static void set_due(ew__http_server *server, uint64_t in_ms) {
    ew__executor *executor = executor_of(server);
    server->due = executor->now + EW__MS(in_ms);
    if (ew__timer_active(&server->timer) && server->timer.at <= server->due)
        return;
    if (ew__timer_set(&executor->timers, &server->timer, server->due, on_timer) != EW_OK)
        server->peer.conn->ops->abort(server->peer.conn);
}

static void on_timer(ew__timer *timer, uint64_t now) {
    ew__http_server *server = ew__container_of(timer, ew__http_server, timer);
    ew__conn *conn = server->peer.conn;
    if (server->phase == EW__HTTP_CLOSED)
        return;
    if (server->phase == EW__HTTP_RUNNING || server->phase == EW__HTTP_HELD) {
        set_due(server, executor_of(server)->limits->idle_ms);
    } else if (now < server->due) {
        (void)ew__timer_set(&executor_of(server)->timers, timer, server->due, on_timer);
    } else if (ew__http1_idle(ew__http_reader(server))) {
        server->phase = EW__HTTP_CLOSED;
        conn->ops->finish(conn);
    } else {
        server->keep_alive = false;
        ew__http_respond_error(server, 408, NONE, "the request took too long to arrive");
    }
}

/* ---- the end of an exchange ---- */

static void drop_request(ew__http_server *server) {
    ew__http_leave_guest(server);
    if (server->call)
        ew__call_release(server->call);
    server->call = NULL;
    if (server->action)
        ew__action_unref(server->action);
    server->action = NULL;
    ew__buf_done(&server->body);
    server->whole = NONE;
    server->body_known = false;
    server->reject = 0;
    server->reject_fields = NULL;
    server->websocket = false;
    server->page = EW__PAGE_NONE;
    server->stream_open = false;
    server->is_head = false;
}

void ew__http_server_rest(ew__http_server *server) {
    server->phase = EW__HTTP_CLOSED;
    ew__timer_stop(&executor_of(server)->timers, &server->timer);
    ew__buf_done(&server->ahead);
}

static void close_after_answer(ew__http_server *server) {
    ew__http_server_rest(server);
    server->peer.conn->ops->finish(server->peer.conn);
}

/*
 * Whether the client leaves so much output unread that no further request is taken. At this mark the connection owes
 * the peer a `drained` event, which resumes reading. The stream's stall timer ends a client that never reads.
 */
static bool is_backed_up(const ew__http_server *server) {
    return server->peer.conn->out.bytes >= executor_of(server)->limits->out_high_bytes;
}

void ew__http_exchange_done(ew__http_server *server) {
    bool was_running = server->phase == EW__HTTP_RUNNING;
    drop_request(server);
    if (server->phase == EW__HTTP_CLOSED)
        return;
    if (!server->keep_alive) {
        close_after_answer(server);
        return;
    }
    server->phase = is_backed_up(server) ? EW__HTTP_HELD : EW__HTTP_READING;
    if (server->phase == EW__HTTP_HELD)
        server->peer.conn->ops->read(server->peer.conn, false);
    else if (was_running && !server->in_pump)
        pump(server);
}

/* ---- bodies ---- */

static void respond_reject(ew__http_server *server) {
    const char *fields = server->reject_fields;
    ew__http_respond_error(server, server->reject, fields ? ew_str_from(fields) : NONE, server->reject_text);
}

static void refuse_now(ew__http_server *server, int status, const char *text) {
    server->keep_alive = false;
    ew__http_respond_error(server, status, NONE, text);
}

/* Room for `need` more bytes, and more than that up to the length of the body or, if that is unknown, to the limit. */
static ew_err grow_body(ew__http_server *server, size_t need) {
    size_t want = server->body.cap * 4 > BODY_STEP ? server->body.cap * 4 : BODY_STEP;
    uint64_t all = server->body_known ? server->body.len + server->body_left : executor_of(server)->limits->frame_bytes;
    if (want > all)
        want = (size_t)all;
    want = want > server->body.len + need ? want - server->body.len : need;
    return ew__buf_reserve(&server->body, want);
}

static void collect(ew__http_server *server, ew_str piece) {
    ew__buf *body = &server->body;
    if (body->ptr && piece.ptr == body->ptr + body->len && body->cap - body->len >= piece.len) {
        body->len += piece.len; /* it was read straight into its place */
    } else {
        ew_err err = body->cap - body->len >= piece.len ? EW_OK : grow_body(server, piece.len);
        if (err == EW_OK)
            err = ew__buf_add(body, piece.ptr, piece.len);
        if (err != EW_OK) {
            refuse_now(server, err == EW_ELIMIT ? 413 : 503,
                       err == EW_ELIMIT ? "the body is larger than this server accepts" : "out of memory");
            return;
        }
    }
    server->body_left -= server->body_known ? piece.len : 0;
}

static void on_body(ew__http_server *server, ew_str piece) {
    server->progress += (uint32_t)piece.len;
    if (server->reject || !server->call)
        return;
    if (server->body_known && server->body_left == piece.len && server->body.len == 0) { /* whole, in one piece */
        server->whole.ptr = ew__arena_copy(&server->call->arena, piece.ptr, piece.len);
        server->whole.len = piece.len;
        server->body_left = 0;
        if (!server->whole.ptr)
            refuse_now(server, 503, "out of memory");
        return;
    }
    collect(server, piece);
}

/* Hands the collected body to the call. */
static ew_err take_body(ew__http_server *server, ew_str *body) {
    *body = server->whole;
    if (server->whole.len || server->body.len == 0)
        return EW_OK;
    size_t len = 0, cap = 0;
    char *memory = ew__buf_take(&server->body, &len, &cap);
    if (ew__arena_adopt(&server->call->arena, memory, cap) != EW_OK) {
        ew__free(executor_of(server)->env, memory, cap);
        return EW_ENOMEM;
    }
    *body = ew__str(memory, len);
    return EW_OK;
}

uint8_t *ew__http_server_reserve(ew__peer *peer, size_t *ret_size) {
    ew__http_server *server = (ew__http_server *)(void *)peer;
    ew__buf *body = &server->body;
    if (server->phase != EW__HTTP_READING || !server->body_known || body->len == 0 || server->body_left == 0)
        return NULL;
    if (body->cap == body->len && grow_body(server, 1) != EW_OK)
        return NULL; /* the ordinary way will meet the same error and answer it */
    size_t room = body->cap - body->len;
    *ret_size = room < server->body_left ? room : (size_t)server->body_left;
    return (uint8_t *)body->ptr + body->len;
}

/* ---- events ---- */

/* A body that is not read on: of a refused request, or longer than a client without a token may send. */
static bool is_unwanted(ew__http_server *server, const ew__http_head *head) {
    ew__conn *conn = server->peer.conn;
    bool large = head->chunked || head->length > conn->executor->limits->auth_bytes;
    return head->expect_continue || server->websocket || (large && ew__conn_is_pending(conn));
}

static void on_head(ew__http_server *server) {
    const ew__http_head *head = ew__http1_head(ew__http_reader(server));
    ew__http_on_head(server, head);
    server->body_known = head->has_length;
    server->body_left = head->has_length ? head->length : 0;
    ew__buf_init(&server->body, executor_of(server)->env, (size_t)executor_of(server)->limits->frame_bytes);
    server->progress = PROGRESS; /* the head is over: the body has its own time */
    bool body_follows = head->chunked || (head->has_length && head->length > 0);
    if (server->reject && (server->reject == 413 || (body_follows && is_unwanted(server, head)))) {
        server->keep_alive = false;
        respond_reject(server);
    } else if (body_follows && head->expect_continue && ew__http1_unread(ew__http_reader(server)) == 0) {
        ew__out_str(&server->peer.conn->out, EW_STR("HTTP/1.1 100 Continue\r\n\r\n"));
        server->peer.conn->ops->send(server->peer.conn);
    }
}

static void open_call(ew__http_server *server) {
    ew_str body;
    if (take_body(server, &body) != EW_OK) {
        ew__http_respond_error(server, 503, NONE, "out of memory");
        return;
    }
    if (server->exchange.guest) {
        server->phase = EW__HTTP_RUNNING;
        ew__http_ask_guest(server, body);
        return;
    }
    const char *problem = ew__http_read_envelope(body, &server->call->input);
    if (problem) {
        ew__http_respond_error(server, 400, NONE, problem);
        return;
    }
    if (EW__UNLIKELY(server->call->input.len > ew__payload_bytes(executor_of(server)->limits))) {
        ew__http_respond_error(server, 413, NONE, "the input is larger than this server accepts (frame_bytes)");
        return;
    }
    server->phase = EW__HTTP_RUNNING;
    ew__action *action = server->action;
    server->action = NULL;
    ew__call_open(server->call, action);
    ew__action_unref(action);
}

static void on_end(ew__http_server *server) {
    if (server->reject)
        respond_reject(server);
    else if (server->websocket)
        ew__http_answer_upgrade(server, ew__http1_head(ew__http_reader(server)));
    else if (server->page)
        ew__http_respond_page(server, (ew__http_page_id)server->page);
    else
        open_call(server);
}

static void refuse_http2(ew__http_server *server) {
    ew__log(executor_of(server)->env, EW_LOG_WARN, "http",
            "refused HTTP/2 with prior knowledge: this server speaks HTTP/1.1 only");
    ew__http_write_http2_refusal(&server->peer.conn->out);
    ew__http_send_out(server);
    ew__http_exchange_done(server);
}

static void on_error(ew__http_server *server) {
    ew__http1 *reader = ew__http_reader(server);
    server->keep_alive = false;
    if (ew__http1_is_http2(reader)) {
        refuse_http2(server);
        return;
    }
    ew__http_respond_error(server, ew__http1_error_status(reader), NONE, ew__http1_error_text(reader));
}

/* Takes events until the bytes are used up, a call runs, output backs up, or the connection closes. */
static void take_events(ew__http_server *server) {
    ew__http1 *reader = ew__http_reader(server);
    while (server->phase == EW__HTTP_READING) {
        switch (ew__http1_next(reader)) {
        case EW__HTTP_MORE:
            return;
        case EW__HTTP_HEAD_DONE:
            on_head(server);
            break;
        case EW__HTTP_BODY:
            on_body(server, ew__http1_body(reader));
            break;
        case EW__HTTP_END:
            on_end(server);
            break;
        case EW__HTTP_ERROR:
            on_error(server);
            return;
        }
    }
}

/* After each run over the input: how long may the present phase last? */
static void watch_phase(ew__http_server *server, bool was_idle) {
    const ew_limits *limits = executor_of(server)->limits;
    if (server->phase != EW__HTTP_READING)
        return;
    if (ew__http1_idle(ew__http_reader(server))) {
        set_due(server, limits->idle_ms);
    } else if (was_idle) {
        set_due(server, limits->head_ms);
    } else if (server->progress >= PROGRESS) {
        server->progress = 0;
        set_due(server, limits->body_stall_ms);
    }
}

/* Keeps bytes that came while a call runs; past the limit the transport holds the sender back. */
static void keep_ahead(ew__http_server *server, const uint8_t *bytes, size_t n) {
    ew__conn *conn = server->peer.conn;
    if (n == 0)
        return;
    if (ew__buf_add(&server->ahead, bytes, n) != EW_OK)
        conn->ops->abort(conn);
    else if (server->ahead.len >= executor_of(server)->limits->pipeline_bytes)
        conn->ops->read(conn, false);
}

static void run_input(ew__http_server *server, const uint8_t *bytes, size_t n) {
    ew__http1 *reader = ew__http_reader(server);
    bool was_idle = ew__http1_idle(reader);
    (void)ew__http1_feed(reader, bytes, n);
    server->in_pump = true;
    take_events(server);
    server->in_pump = false;
    if (server->phase == EW__HTTP_RUNNING || server->phase == EW__HTTP_HELD || server->upgraded) {
        size_t unread = ew__http1_unread(reader);
        if (server->upgraded)
            ew__http_hand_over(server, bytes + n - unread, unread);
        else
            keep_ahead(server, bytes + n - unread, unread);
        ew__http1_forget(reader);
    }
    watch_phase(server, was_idle);
}

/* Goes on with what was read while a call ran. */
static void pump(ew__http_server *server) {
    ew__conn *conn = server->peer.conn;
    if (server->ahead.len > 0) {
        ew__buf ahead = server->ahead;
        ew__buf_init(&server->ahead, ahead.env, ahead.max);
        run_input(server, (const uint8_t *)ahead.ptr, ahead.len);
        ew__buf_done(&ahead);
    } else {
        watch_phase(server, true);
    }
    if (server->phase == EW__HTTP_READING)
        conn->ops->read(conn, true);
}

/* ---- the peer's slots ---- */

ew_err ew__http_server_init(ew__peer *peer) {
    ew__http_server *server = (ew__http_server *)(void *)peer;
    ew__http_scratch *scratch = peer->conn->scratch;
    ew_err err = ew__http_reader_init(peer->conn, &scratch->reading, server->reader, true);
    if (err != EW_OK)
        return err;
    server->phase = EW__HTTP_READING;
    ew__buf_init(&server->ahead, executor_of(server)->env, SIZE_MAX / 2); /* bounded by keep_ahead: it stops reading */
    ew__buf_init(&server->body, executor_of(server)->env, 0);
    set_due(server, executor_of(server)->limits->idle_ms);
    return EW_OK;
}

void ew__http_server_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    ew__http_server *server = (ew__http_server *)(void *)peer;
    if (server->phase == EW__HTTP_RUNNING || server->phase == EW__HTTP_HELD)
        keep_ahead(server, bytes, n);
    else if (server->phase == EW__HTTP_READING)
        run_input(server, bytes, n);
}

/* The client has gone: nobody will read the answer. */
void ew__http_server_eof(ew__peer *peer) {
    ew__http_server *server = (ew__http_server *)(void *)peer;
    drop_request(server);
    if (server->phase != EW__HTTP_CLOSED)
        close_after_answer(server);
}

/* Requests that are held back until earlier answers were read are still answered. */
void ew__http_server_hung_up(ew__peer *peer) {
    if (((ew__http_server *)(void *)peer)->phase == EW__HTTP_RUNNING)
        ew__http_server_eof(peer);
}

void ew__http_server_drained(ew__peer *peer) {
    ew__http_server *server = (ew__http_server *)(void *)peer;
    if (server->call && server->waiting) {
        server->waiting = false;
        ew__call_room(server->call);
    } else if (server->phase == EW__HTTP_HELD) {
        server->phase = EW__HTTP_READING;
        pump(server);
    }
}

void ew__http_server_gone(ew__peer *peer, ew_err why) {
    ew__http_server *server = (ew__http_server *)(void *)peer;
    (void)why;
    server->phase = EW__HTTP_CLOSED;
    drop_request(server);
    ew__timer_stop(&executor_of(server)->timers, &server->timer);
    ew__buf_done(&server->ahead);
    ew__http1_done(ew__http_reader(server));
}
