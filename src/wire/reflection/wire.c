/*
 * wire/reflection/wire.c: the connection of the reflection wire: the opening handshake of a runtime, frames to
 * messages, messages to the role they are for, life; and its table.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "wire/reflection/reflection.h"

#define NONE ((ew_str){NULL, 0})
#define BAD_MAX 100 /* unreadable messages: their framing is whole, so that one of them need not end a connection */
#define GONE "the runtime has gone before the end of the call"
#define PROGRESS 1024 /* bytes of a long message that count as getting on */

static ew__rf_peer *rf_of(ew__peer *peer) { return (ew__rf_peer *)(void *)peer; }

/* ---- its end ---- */

void ew__rf_abort(ew__rf_peer *peer) {
    peer->closed = true;
    peer->peer.conn->ops->abort(peer->peer.conn);
}

static void finish(ew__rf_peer *peer) {
    peer->closed = true;
    peer->peer.conn->ops->finish(peer->peer.conn);
}

/* A close frame and the end of our side in one: whoever still has to say something says it to nobody. */
void ew__rf_close(ew__rf_peer *peer, uint16_t code, const char *reason) {
    uint8_t frame[EW__WS_CONTROL_ROOM];
    if (peer->closed)
        return;
    if (!peer->dial)
        ew__rf_send_control(peer, frame, ew__ws_close(&peer->ws, code, ew_str_from(reason), frame));
    if (!peer->closed)
        finish(peer);
}

void ew__rf_check_drained(ew__rf_peer *peer) {
    if (peer->draining && !peer->closed && !peer->reading && !peer->calls.served.first && !peer->calls.sent.first)
        ew__rf_close(peer, EW__WS_GOING_AWAY, "going down");
}

/* ---- messages ---- */

static void bad_message(ew__rf_peer *peer, int64_t code, const char *problem, ew_str text) {
    int shown = (int)(text.len < 100 ? text.len : 100);
    ew__log(ew__rf_executor(peer)->env, EW_LOG_WARN, "reflection", "%s: %.*s", problem, shown,
            text.len ? text.ptr : "");
    ew__rf_refuse(peer, NONE, code, EW_STATUS_INVALID_ARGUMENT, problem);
    if (++peer->n_bad >= BAD_MAX)
        ew__rf_close(peer, EW__WS_POLICY, "too many messages that are no JSON-RPC");
}

/* If a call of ours is meant, that call has failed; else the peer is told. */
static void refuse_message(ew__rf_peer *peer, const ew__rpc *message, ew_str text) {
    ew__rpc_call *sent = message->id.len ? ew__rpc_call_find(&peer->calls.sent, message->id) : NULL;
    if (sent)
        ew__rf_fail((ew__rf_call *)(void *)sent, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, message->problem);
    else if (message->id.len)
        ew__rf_refuse(peer, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, message->problem);
    else
        bad_message(peer, EW__RPC_INVALID_REQUEST, message->problem, text);
}

/* ---- messages that are refused unread ---- */

/* A message of the manager that is too large or nested too deep. false: it shows no id. */
static bool refuse_from_manager(ew__rf_peer *peer, const ew__rpc *message, ew_str request_id, const char *problem) {
    ew__rpc_call *came = request_id.len ? ew__rpc_call_find(&peer->calls.served, request_id) : NULL;
    if (message->kind == EW__RPC_REQUEST && !ew__rpc_call_find(&peer->calls.served, message->id))
        ew__rf_refuse(peer, message->id, 0, EW_STATUS_RESOURCE_EXHAUSTED, problem);
    else if (message->kind == EW__RPC_NOTIFICATION && came)
        ew__rf_give_up_large((ew__rf_call *)(void *)came, problem);
    else
        ew__rpc_late(&peer->calls);
    return message->kind != EW__RPC_INVALID;
}

static bool refuse_from_runtime(ew__rf_peer *peer, const ew__rpc *message, ew_str request_id, const char *problem) {
    bool answers = message->kind == EW__RPC_RESULT || message->kind == EW__RPC_ERROR;
    ew_str id = answers ? message->id : request_id;
    ew__rpc_call *sent = id.len ? ew__rpc_call_find(&peer->calls.sent, id) : NULL;
    if (sent && answers)
        ew__rf_fail((ew__rf_call *)(void *)sent, EW_ORIGIN_PROTOCOL, EW_STATUS_RESOURCE_EXHAUSTED, problem);
    else if (sent)
        ew__rf_fail_large((ew__rf_call *)(void *)sent, problem);
    else if (message->kind == EW__RPC_REQUEST)
        ew__rf_refuse(peer, message->id, 0, EW_STATUS_RESOURCE_EXHAUSTED, problem);
    else
        ew__rpc_late(&peer->calls);
    return message->kind != EW__RPC_INVALID;
}

/* Ends the skim. A message that shows no id may be an answer that a call waits for: the connection closes. */
static void end_skim(ew__rf_peer *peer, const char *problem) {
    ew__skim *skim = peer->skim;
    ew__rpc message;
    ew_str request_id;
    bool told = false;
    peer->skim = NULL;
    if (skim) {
        ew__rpc_read_skim(skim, &message, &request_id);
        told = peer->peer.role == EW__SERVE ? refuse_from_manager(peer, &message, request_id, problem)
                                            : refuse_from_runtime(peer, &message, request_id, problem);
        ew__free(ew__rf_executor(peer)->env, skim, sizeof *skim);
    }
    if (!told && !peer->closed)
        ew__rf_close(peer, EW__WS_TOO_BIG, problem);
}

/* Without memory for it the message shows no id. */
static void skim_piece(void *ud, ew_str piece) {
    ew__rf_peer *peer = ud;
    if (!peer->skim && peer->ws.skipped <= piece.len) {
        peer->skim = ew__alloc(ew__rf_executor(peer)->env, sizeof *peer->skim);
        if (peer->skim)
            ew__rpc_skim_init(peer->skim);
    }
    if (peer->skim)
        (void)ew__skim_feed(peer->skim, piece);
}

static void refuse_deep(ew__rf_peer *peer, ew_str text) {
    peer->ws.skipped = 0;
    skim_piece(peer, text);
    end_skim(peer, EW__RPC_TOO_DEEP);
}

static bool is_register_answer(const ew__rf_peer *peer, const ew__rpc *message) {
    return peer->register_id_len && ew__str_is(message->id, ew__str(peer->register_id, peer->register_id_len));
}

/* The manager's requests come to a runtime, its answers to register too; everything else to nobody. */
static void to_runtime(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    if (message->kind == EW__RPC_REQUEST || message->kind == EW__RPC_NOTIFICATION)
        ew__rf_serve(peer, doc, message);
    else if (is_register_answer(peer, message))
        ew__rf_registered(peer, message);
    else
        ew__rpc_late(&peer->calls);
}

static void to_manager(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    char buf[EW__RF_TEXT_ROOM];
    if (message->kind == EW__RPC_RESULT || message->kind == EW__RPC_ERROR) {
        ew__rf_answered(peer, doc, message);
        return;
    }
    if (ew__str_is(ew__rpc_text(message->method, buf, sizeof buf), EW_STR("register")))
        ew__rf_on_register(peer, message);
    else if (message->kind == EW__RPC_NOTIFICATION)
        ew__rf_notified(peer, doc, message);
    else
        ew__rf_refuse(peer, message->id, EW__RPC_METHOD_NOT_FOUND, EW_STATUS_UNIMPLEMENTED,
                      "a manager knows no such method");
}

static void on_message(ew__rf_peer *peer, ew_str text) {
    ew__json_doc doc;
    ew__rpc message;
    bool known = peer->peer.role == EW__SERVE
                     ? ew__rf_took_run(peer, text)
                     : ew__rf_took_chunk(peer, text) || (peer->calls.sent.n && ew__rf_took_known(peer, text));
    if (known)
        return;
    ew_err err = ew__json_parse(&doc, text);
    if (err == EW_ELIMIT) {
        refuse_deep(peer, text);
        return;
    }
    if (err != EW_OK) {
        bad_message(peer, EW__RPC_PARSE_ERROR, "not JSON", text);
        return;
    }
    if (doc.type == EW_JSON_ARRAY) {
        bad_message(peer, EW__RPC_INVALID_REQUEST, "this protocol has no batches", text);
        return;
    }
    ew__rpc_calls_mark_depth(&peer->calls, &doc);
    ew__rpc_read(&doc, 0, &message);
    if (message.kind == EW__RPC_INVALID)
        refuse_message(peer, &message, text);
    else if (peer->peer.role == EW__SERVE)
        to_runtime(peer, &doc, &message);
    else
        to_manager(peer, &doc, &message);
}

/* ---- frames ---- */

static void answer_frame(ew__rf_peer *peer) {
    uint8_t frame[EW__WS_CONTROL_ROOM];
    ew__rf_send_control(peer, frame, ew__ws_answer(&peer->ws, frame));
}

/* Its calls end now, not when the connection has gone. First: a caller that begins anew at once must not do so here. */
static void say_goodbye(ew__rf_peer *peer) {
    answer_frame(peer);
    if (!peer->closed)
        finish(peer);
    ew__rf_serve_gone(peer);
}

static void on_event(ew__rf_peer *peer, ew__ws_event event) {
    switch (event) {
    case EW__WS_TEXT:
    case EW__WS_BINARY:
        peer->progress = 0;
        peer->progress_at = ew__rf_executor(peer)->now;
        on_message(peer, ew__ws_payload(&peer->ws));
        break;
    case EW__WS_TOO_LARGE:
        peer->progress = 0;
        peer->progress_at = ew__rf_executor(peer)->now;
        end_skim(peer, EW__RPC_TOO_LARGE);
        break;
    case EW__WS_PING:
        answer_frame(peer);
        break;
    case EW__WS_ERROR:
        ew__log(ew__rf_executor(peer)->env, EW_LOG_WARN, "reflection", "connection closed: %s",
                ew__ws_error_text(&peer->ws));
        say_goodbye(peer);
        ew__rf_fail_all(peer, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, "the peer broke the WebSocket protocol");
        break;
    case EW__WS_CLOSE:
        say_goodbye(peer);
        ew__rf_fail_all(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, GONE);
        break;
    case EW__WS_PONG:
    case EW__WS_MORE:
        break;
    }
}

/* Where a stream comes, messages are taken many at once; those that are too many when a reader is behind go back. */
static bool take_row(ew__rf_peer *peer) {
    ew_str texts[EW__RF_ROW];
    size_t i = 0, n = peer->calls.speaks ? ew__ws_row(&peer->ws, texts, EW__RF_ROW) : 0;
    if (n == 0)
        return false;
    peer->progress = 0;
    peer->progress_at = ew__rf_executor(peer)->now;
    while (i < n && !peer->closed && !ew__rpc_must_pause(&peer->calls)) {
        size_t taken = ew__rf_took_row(peer, texts + i, n - i);
        if (taken == 0)
            on_message(peer, texts[i]);
        i += taken ? taken : 1;
    }
    if (!peer->closed)
        ew__ws_row_back(&peer->ws, texts + i, n - i);
    return true;
}

static void take_frames(ew__rf_peer *peer, const uint8_t *bytes, size_t n) {
    (void)ew__ws_feed(&peer->ws, bytes, n);
    peer->reading = true;
    while (!peer->closed && !(peer->paused = ew__rpc_must_pause(&peer->calls))) {
        if (take_row(peer))
            continue;
        ew__ws_event event = ew__ws_next(&peer->ws, ew__rf_executor(peer)->now);
        if (event == EW__WS_MORE)
            break;
        on_event(peer, event);
    }
    peer->reading = false;
    size_t unread = ew__ws_unread(&peer->ws);
    ew__ws_forget(&peer->ws);
    if (unread && !peer->closed && ew__buf_add(&peer->in, bytes + n - unread, unread) != EW_OK)
        ew__rf_abort(peer);
}

static void take_buffered(ew__rf_peer *peer) {
    ew__buf in = peer->in;
    ew__buf_init(&peer->in, in.env, in.max);
    take_frames(peer, (const uint8_t *)in.ptr, in.len);
    ew__buf_done(&in);
}

static void after_frames(ew__rf_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    if (peer->closed)
        return;
    conn->ops->read(conn, !peer->paused);
    ew__rf_watch(peer);
    ew__rf_check_drained(peer);
}

/* ---- the opening handshake ---- */

static void end_dial(ew__rf_peer *peer) {
    if (!peer->dial)
        return;
    ew__ws_dial_done(peer->dial);
    ew__free(ew__rf_executor(peer)->env, peer->dial, sizeof *peer->dial);
    peer->dial = NULL;
}

static void open_websocket(ew__rf_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    end_dial(peer);
    peer->opened_at = peer->heard_at = peer->progress_at = conn->executor->now;
    if (peer->peer.role == EW__SERVE)
        ew__rf_register(peer);
    if (peer->peer.role == EW__SERVE && !peer->closed && conn->ops->ready)
        conn->ops->ready(conn); /* nothing needs to be waited for: calls may come before the answer to it */
    if (!peer->closed)
        ew__rf_watch(peer);
}

static ew_err write_request(ew__rf_peer *peer) {
    const ew__site *site = peer->peer.conn->site;
    ew__buf request, fields;
    ew__buf_init(&request, ew__rf_executor(peer)->env, 16 * 1024);
    ew__buf_init(&fields, ew__rf_executor(peer)->env, 4096);
    if (site->token.len) {
        (void)ew__buf_cstr(&fields, "Authorization: Bearer ");
        (void)ew__buf_str(&fields, site->token);
        (void)ew__buf_cstr(&fields, "\r\n");
    }
    ew_err err = fields.err;
    if (err == EW_OK)
        err = ew__ws_dial_write(peer->dial, site->authority, site->path.len ? site->path : EW_STR("/"),
                                ew__buf_view(&fields), &request);
    ew__buf_done(&fields);
    if (err == EW_OK)
        ew__out_add(&peer->peer.conn->out, request.ptr, request.len);
    ew__buf_done(&request);
    return err == EW_OK ? peer->peer.conn->out.err : err;
}

static ew_err begin_dial(ew__rf_peer *peer) {
    const ew_env *env = ew__rf_executor(peer)->env;
    uint8_t key[EW__WS_KEY_SIZE];
    peer->dial = ew__zalloc(env, sizeof *peer->dial);
    if (!peer->dial)
        return EW_ENOMEM;
    env->random(env->ud, key, sizeof key);
    ew__ws_dial_init(peer->dial, env, key, NONE);
    ew_err err = write_request(peer);
    if (err == EW_OK) {
        peer->peer.conn->ops->send(peer->peer.conn);
        ew__rf_watch(peer);
    } else {
        end_dial(peer);
    }
    return err;
}

/* Who is refused is dialling again every few seconds: it is told once. */
static ew_log_level level_of_refusal(ew__rf_peer *peer) {
    ew__rf_scratch *scratch = peer->peer.conn->scratch;
    bool told = scratch->told;
    scratch->told = true;
    return told ? EW_LOG_DEBUG : EW_LOG_WARN;
}

/* Returns how many of the bytes belonged to the answer; the connection may be closed now. */
static size_t take_answer(ew__rf_peer *peer, const uint8_t *bytes, size_t n) {
    const ew_env *env = ew__rf_executor(peer)->env;
    size_t used = 0;
    switch (ew__ws_dial_feed(peer->dial, bytes, n, &used)) {
    case EW__WS_DIAL_MORE:
        break;
    case EW__WS_DIAL_OPEN:
        ((ew__rf_scratch *)peer->peer.conn->scratch)->told = false;
        open_websocket(peer);
        break;
    case EW__WS_DIAL_REFUSED:
        ew__log(env, level_of_refusal(peer), "reflection", "the manager refuses a WebSocket: %d %.*s",
                peer->dial->status, (int)(peer->dial->reason.len < 100 ? peer->dial->reason.len : 100),
                peer->dial->reason.ptr);
        ew__rf_abort(peer);
        break;
    case EW__WS_DIAL_BAD:
        ew__log(env, level_of_refusal(peer), "reflection", "this is no manager: %s", peer->dial->why);
        ew__rf_abort(peer);
        break;
    }
    return used;
}

/* ---- bytes ---- */

static void note_bytes(ew__rf_peer *peer, size_t n) {
    peer->heard_at = ew__rf_executor(peer)->now;
    peer->pinged = false;
    if (!ew__ws_is_idle(&peer->ws) && peer->progress + n < PROGRESS) {
        peer->progress += (uint32_t)n;
        return;
    }
    peer->progress = 0;
    peer->progress_at = peer->heard_at;
}

static void input(ew__peer *base, const uint8_t *bytes, size_t n) {
    ew__rf_peer *peer = rf_of(base);
    if (peer->closed)
        return;
    note_bytes(peer, n);
    if (peer->dial) {
        size_t used = take_answer(peer, bytes, n);
        bytes += used;
        n -= used;
    }
    if (peer->closed || peer->dial || n == 0)
        return;
    if (peer->in.len == 0) { /* nothing is left over: frames are read where they are */
        take_frames(peer, bytes, n);
    } else if (ew__buf_add(&peer->in, bytes, n) != EW_OK) {
        ew__rf_abort(peer);
    } else if (!peer->paused) {
        take_buffered(peer);
    }
    after_frames(peer);
}

static void on_resume(ew__timer *timer, uint64_t now) {
    ew__rf_peer *peer = ew__container_of(timer, ew__rf_peer, resume);
    (void)now;
    if (peer->closed || ew__rpc_must_pause(&peer->calls))
        return;
    peer->paused = false;
    peer->heard_at = peer->progress_at = ew__rf_executor(peer)->now; /* the silence was ours */
    take_buffered(peer); /* also when nothing waits: the message that was taken last is given back */
    after_frames(peer);
}

void ew__rf_resume_later(ew__rf_peer *peer) {
    ew__executor *executor = ew__rf_executor(peer);
    if (peer->closed || peer->reading || !peer->paused)
        return; /* the loop that reads looks for itself */
    if (ew__timer_set(&executor->timers, &peer->resume, executor->now, on_resume) != EW_OK)
        ew__rf_abort(peer);
}

/* Whoever says no more has gone: neither side of this protocol half-closes. */
static void eof(ew__peer *base) { ew__rf_abort(rf_of(base)); }

static void drained(ew__peer *base) {
    ew__rf_peer *peer = rf_of(base);
    ew__rpc_calls_drained(&peer->calls);
    if (!peer->closed && peer->registered && base->conn->ops->ready)
        base->conn->ops->ready(base->conn);
}

/* ---- what its calls ask for ---- */

static void on_overrun(ew__rpc_call *entry) {
    if (entry->sent)
        ew__rf_overrun((ew__rf_call *)(void *)entry);
    else
        ew__rf_serve_overrun((ew__rf_call *)(void *)entry);
}

static void on_may_read(ew__rpc_calls *all) { ew__rf_resume_later(ew__container_of(all, ew__rf_peer, calls)); }

static void on_no_memory(ew__rpc_calls *all) { ew__rf_abort(ew__container_of(all, ew__rf_peer, calls)); }

static const ew__rpc_calls_ops calls_ops = {.overrun = on_overrun, .resume = on_may_read, .abort = on_no_memory};

/* ---- life ---- */

/* A WebSocket begins as HTTP: this wire is come to through an upgrade. */
static int sniff(const uint8_t *bytes, size_t n) {
    (void)bytes;
    (void)n;
    return -1;
}

static ew_err init(ew__peer *base) {
    ew__rf_peer *peer = rf_of(base);
    ew__conn *conn = base->conn;
    ew__executor *executor = conn->executor;
    ew__ws_scratch *scratch = &((ew__rf_scratch *)conn->scratch)->ws;
    if (!scratch->env)
        ew__ws_scratch_init(scratch, executor->env);
    ew__rpc_calls_init(&peer->calls, conn, &calls_ops);
    ew__ws_init(&peer->ws, scratch, base->role == EW__CALL, (size_t)executor->limits->frame_bytes);
    peer->ws.skim = skim_piece;
    peer->ws.skim_ud = peer;
    peer->ws.skip_max = ew__skip_bytes(executor->limits->frame_bytes);
    ew__rpc_ids_init(&peer->ids, executor->env);
    ew__buf_init(&peer->in, executor->env, SIZE_MAX / 2); /* bounded by one read: reading stops when it waits */
    peer->opened_at = peer->heard_at = peer->progress_at = executor->now;
    if (base->role == EW__SERVE && !conn->upgraded)
        return begin_dial(peer);
    open_websocket(peer);
    return EW_OK;
}

static void drain(ew__peer *base) {
    rf_of(base)->draining = true;
    ew__rf_check_drained(rf_of(base));
}

static void gone(ew__peer *base, ew_err why) {
    ew__rf_peer *peer = rf_of(base);
    ew__timers *timers = &ew__rf_executor(peer)->timers;
    peer->closed = true;
    ew__rf_serve_gone(peer);
    ew__rf_fail_all(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                    why == EW_ETIMEOUT ? "the connection stalled" : GONE);
    ew__timer_stop(timers, &peer->pulse);
    ew__timer_stop(timers, &peer->resume);
    end_dial(peer);
    ew__rpc_calls_done(&peer->calls);
    ew__ws_done(&peer->ws);
    ew__free(ew__rf_executor(peer)->env, peer->skim, sizeof *peer->skim);
    peer->skim = NULL;
    ew__buf_done(&peer->in);
}

static void scratch_done(void *scratch) {
    ew__rf_scratch *shared = scratch;
    if (shared->ws.env)
        ew__ws_scratch_done(&shared->ws);
}

static const ew_wire_info info = {
    .name = "reflection",
    .title = "Genkit",
    .can = EW_WIRE_SERVES | EW_WIRE_CALLS | EW_WIRE_CHUNKS | EW_WIRE_INPUT | EW_WIRE_CANCEL | EW_WIRE_TRACE |
           EW_WIRE_CONTEXT | EW_WIRE_LABELS | EW_WIRE_LIST,
};

#define START "GENKIT_ENV=dev GENKIT_REFLECTION_V2_SERVER="
#define HINT "a runtime dials us when it is started with " START

static const ew_scheme schemes[] = {
    {.text = "reflection://",
     .form = "reflection://HOST:PORT",
     .help = "Genkit runtimes that dial us: HOST:PORT",
     .hint = HINT "ws://",
     .wire = "reflection",
     .reach = EW_REACH_LISTEN,
     .command = EW_SCHEME_COMMAND_MAY,
     .http = true,
     .dialler = "a Genkit runtime",
     .dial_how = START,
     .dial_url = "ws://"},
    {.text = "reflections://",
     .form = "reflections://HOST:PORT",
     .help = "Genkit runtimes that dial us, with TLS",
     .hint = HINT "wss://",
     .wire = "reflection",
     .reach = EW_REACH_LISTEN,
     .command = EW_SCHEME_COMMAND_MAY,
     .tls = true,
     .http = true,
     .dialler = "a Genkit runtime",
     .dial_how = START,
     .dial_url = "wss://"},
    {.text = NULL},
};

static const ew_listener_name listeners[] = {
    {.name = "reflection", .help = "Genkit runtimes dial us there", .wire = "reflection"},
    {.name = "wss", .help = "Genkit runtimes dial us there, with TLS", .wire = "reflection", .tls = true},
    {.name = "reflections", .wire = "reflection", .tls = true},
    {.name = NULL},
};

static const ew_start_word start[] = {
    {.name = "GENKIT_REFLECTION_V2_SERVER",
     .help = "as --connect; set by the Genkit CLI for the program it starts",
     .wire = "reflection",
     .role = EW_START_CONNECT},
    {.name = "GENKIT_TELEMETRY_SERVER", .help = "as --telemetry", .wire = "reflection", .role = EW_START_TELEMETRY},
    {.name = "GENKIT_ENABLE_REALTIME_TELEMETRY",
     .help = "true: send spans when calls begin, too",
     .wire = "reflection",
     .role = EW_START_REALTIME},
    {.name = "GENKIT_RUNTIME_ID", .help = "as --runtime-id", .wire = "reflection", .role = EW_START_RUNTIME_ID},
    {.name = NULL},
};

static const char *const start_variables[] = {"GENKIT_ENV=dev", NULL};

static const ew__wire_note notes[] = {
    {"target",
     " reflection://HOST:PORT listens there and waits for Genkit runtimes, or for the one that is started by the "
     "program "
     "behind --;",
     0},
    {"action",
     "; on reflection also RUNTIME:KEY,\n"
     "          where several runtimes have the same",
     0},
    {"import", "reflection://HOST:PORT: those of runtimes\nthat dial us there; ", 0},
    {"serve",
     "  everywire serve --demo --connect ws://localhost:3200\n"
     "  genkit start -- everywire serve --demo\n",
     0},
    {"call",
     "  everywire call reflection://127.0.0.1:3200 greet '\"Ada\"' --stream\n"
     "  everywire call reflection://127.0.0.1:0 greet '\"Ada\"' -- node app.js\n",
     0},
    {"list", "  everywire list reflection://127.0.0.1:0 -- node app.js\n", 0},
    {"describe", "  everywire describe reflection://127.0.0.1:0 greet -- node app.js\n", 0},
    {"bench", "  everywire bench reflection://127.0.0.1:0 greet '\"Ada\"' -d 32 -- node app.js\n", 3},
    {NULL, NULL, 0},
};

static const ew__descriptor about = {.info = &info,
                                     .schemes = schemes,
                                     .listeners = listeners,
                                     .start = start,
                                     .start_variables = start_variables,
                                     .notes = notes,
                                     .takes = EW__TAKES_TELEMETRY};

const ew__wire ew__wire_reflection = {
    .name = "reflection",
    .about = &about,
    .upgrade = true,
    .caps = EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_TRACE |
            EW__CAN_CONTEXT | EW__CAN_LIST | EW__CAN_MANY,
    .serve_size = sizeof(ew__rf_peer),
    .call_size = sizeof(ew__rf_peer),
    .scratch_size = sizeof(ew__rf_scratch),
    .scratch_done = scratch_done,
    .sniff = sniff,
    .frames = EW__FRAMES_HTTP,
    .init = init,
    .input = input,
    .eof = eof,
    .hung_up = eof,
    .drained = drained,
    .drain = drain,
    .gone = gone,
    .open = ew__rf_open,
    .leave = ew__rf_leave,
    .capacity = ew__rf_capacity,
    .refuses = ew__rf_refuses,
};
