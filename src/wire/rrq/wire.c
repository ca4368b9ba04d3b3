/*
 * wire/rrq/wire.c: the connection of the rrq wire: bytes to frames, frames to the role that this side has, life; and
 * its table.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "wire/rrq/rrq.h"

#define SMALL ((size_t)4096)      /* messages up to here are written in one piece */
#define LARGE ((size_t)32 * 1024) /* frames from here on are read straight into memory of their own */
#define STEP ((size_t)256 * 1024) /* ... which is taken as bytes arrive: so much at first, then four times more */

static ew__rrq_peer *rrq_of(ew__peer *peer) { return (ew__rrq_peer *)(void *)peer; }

static ew__timers *timers_of(ew__rrq_peer *peer) { return &peer->peer.conn->executor->timers; }

/* ---- its end ---- */

void ew__rrq_abort(ew__rrq_peer *peer) {
    peer->closed = true;
    peer->peer.conn->ops->abort(peer->peer.conn);
}

void ew__rrq_break_off(ew__rrq_peer *peer, ew_str why) {
    ew__rrq_abort(peer);
    ew__rrq_fail_sent(peer, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, why);
}

void ew__rrq_check_drained(ew__rrq_peer *peer) {
    if (!(peer->draining || peer->broken) || peer->closed || peer->reading || peer->calls.served.first ||
        peer->calls.sent.first)
        return;
    peer->closed = true;
    peer->peer.conn->ops->finish(peer->peer.conn);
}

/* ---- frames that leave ---- */

/* Half a frame must not leave: without memory for a whole one the connection closes. */
static void sent(ew__rrq_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    if (EW__UNLIKELY(conn->out.err != EW_OK))
        ew__rrq_abort(peer);
    else
        conn->ops->send(conn);
}

void ew__rrq_send(ew__rrq_peer *peer, const ew__rpc_out *message, ew_call *owner) {
    ew__conn *conn = peer->peer.conn;
    uint8_t head[EW__LENPFX_HEAD];
    char *at = ew__rrq_message_room(peer, message->len);
    if (EW__LIKELY(at != NULL)) {
        ew__rrq_message_end(peer, at, (char *)ew__rpc_out_copy(message, (uint8_t *)at));
        return;
    }
    if (peer->closed || !ew__lenpfx_head(message->len, ew__rrq_limits(peer)->frame_bytes, head))
        return;
    peer->n_queued += sizeof head + message->len;
    ew__out_add(&conn->out, head, sizeof head);
    ew__rpc_write(&conn->out, message, owner);
    sent(peer);
}

char *ew__rrq_message_room(ew__rrq_peer *peer, size_t most) {
    if (peer->closed || most > SMALL || most > ew__rrq_limits(peer)->frame_bytes)
        return NULL;
    uint8_t *at = ew__out_room(&peer->peer.conn->out, EW__LENPFX_HEAD + most);
    return at ? (char *)at + EW__LENPFX_HEAD : NULL;
}

void ew__rrq_message_end(ew__rrq_peer *peer, char *first, const char *end) {
    size_t len = (size_t)(end - first);
    (void)ew__lenpfx_head(len, SMALL, (uint8_t *)first - EW__LENPFX_HEAD);
    ew__out_commit(&peer->peer.conn->out, EW__LENPFX_HEAD + len);
    peer->n_queued += EW__LENPFX_HEAD + len;
    sent(peer);
}

/* ---- frames that come ---- */

static void refuse_frame(ew__rrq_peer *peer, ew__lenpfx_event event, size_t size) {
    if (event == EW__LENPFX_TOO_LONG)
        ew__log(peer->peer.conn->executor->env, EW_LOG_WARN, "rrq", "a frame of %zu bytes is too long", size);
    if (peer->peer.role == EW__SERVE)
        peer->broken = true;
    else
        ew__rrq_break_off(peer, event == EW__LENPFX_EMPTY ? EW_STR("the runner sent an empty frame")
                                                          : EW_STR("the runner sent a frame that is too long"));
}

/* A peer without a token may not send that much, and no frame is that much longer than it may be. */
static bool begin_skim(ew__rrq_peer *peer, size_t size) {
    ew__conn *conn = peer->peer.conn;
    if (size > ew__skip_bytes(peer->max) || ew__conn_is_pending(conn))
        return false;
    peer->skim = ew__alloc(conn->executor->env, sizeof *peer->skim);
    if (!peer->skim)
        return false;
    ew__rrq_skim_init(peer->skim);
    peer->skip = size;
    peer->skipped = 0;
    return true;
}

static void end_skim(ew__rrq_peer *peer, const char *problem) {
    ew__skim *skim = peer->skim;
    peer->skim = NULL;
    peer->progress.reset = true;
    bool serves = peer->peer.role == EW__SERVE;
    bool told =
        !skim->stray && (serves ? ew__rrq_serve_large(peer, skim, problem) : ew__rrq_answer_large(peer, skim, problem));
    ew__free(peer->peer.conn->executor->env, skim, sizeof *skim);
    if (!told && !peer->closed)
        refuse_frame(peer, EW__LENPFX_TOO_LONG, peer->skipped);
    else if (ew__conn_is_last_refusal(peer->peer.conn))
        peer->broken = true;
}

void ew__rrq_refuse_deep(ew__rrq_peer *peer, ew_str text) {
    if (!begin_skim(peer, text.len)) {
        refuse_frame(peer, EW__LENPFX_TOO_LONG, text.len);
        return;
    }
    (void)ew__skim_feed(peer->skim, text);
    end_skim(peer, EW__RPC_TOO_DEEP);
}

/*
 * Takes what belongs to the frame that is skipped; returns how many bytes that are. Bytes that are not JSON show that the
 * peer speaks another protocol: its length is not one, and the rest would never come.
 */
static size_t skim_on(ew__rrq_peer *peer, ew_str bytes) {
    size_t n = peer->skip < bytes.len ? peer->skip : bytes.len;
    (void)ew__skim_feed(peer->skim, ew__str(bytes.ptr, n));
    peer->skip -= n;
    peer->skipped += n;
    if (peer->skip == 0 || peer->skim->stray)
        end_skim(peer, EW__RPC_TOO_LARGE);
    return n;
}

static void take_frame(ew__rrq_peer *peer, ew_str body) {
    peer->n_frames++;
    if (peer->peer.role == EW__SERVE)
        ew__rrq_serve(peer, body);
    else
        ew__rrq_answer(peer, body);
    if (ew__conn_is_last_refusal(peer->peer.conn))
        peer->broken = true;
}

/* Takes whole frames off the front; returns how many bytes are done with. */
static size_t take_frames(ew__rrq_peer *peer, ew_str bytes) {
    size_t done = 0, size = 0;
    peer->reading = true;
    peer->need = 0;
    while (!peer->closed && !peer->broken && !(peer->paused = ew__rpc_must_pause(&peer->calls))) {
        ew_str body, rest = ew__str(bytes.ptr + done, bytes.len - done);
        if (EW__UNLIKELY(peer->skim != NULL)) {
            done += skim_on(peer, rest);
            if (peer->skim)
                break;
            continue;
        }
        ew__lenpfx_event event = ew__lenpfx_read(rest, peer->max, &body, &size);
        if (event == EW__LENPFX_MORE) {
            peer->need = rest.len ? size : 0;
            break;
        }
        if (EW__UNLIKELY(event == EW__LENPFX_TOO_LONG && begin_skim(peer, size))) {
            done += EW__LENPFX_HEAD;
            continue;
        }
        if (EW__UNLIKELY(event != EW__LENPFX_FRAME)) {
            refuse_frame(peer, event, size);
            break;
        }
        done += size;
        take_frame(peer, body);
    }
    peer->reading = false;
    peer->progress.reset = peer->progress.reset || (done > 0 && !peer->skim);
    return done;
}

/* ---- patience ---- */

/* Bytes of a frame whose end has not come. */
static size_t unfinished(const ew__rrq_peer *peer) {
    return peer->skim ? peer->skipped + EW__LENPFX_HEAD : peer->in.len;
}

/* Half a frame is all that a peer may not be slow with: an idle connection is normal, for ever. */
static void on_patience(ew__timer *timer, uint64_t now) {
    ew__rrq_peer *peer = ew__container_of(timer, ew__rrq_peer, patience);
    uint64_t at = peer->progress.at + EW__MS(ew__rrq_limits(peer)->body_stall_ms);
    if (peer->closed || peer->paused || unfinished(peer) == 0)
        return;
    if (now >= at || ew__timer_set(timers_of(peer), timer, at, on_patience) != EW_OK)
        ew__rrq_abort(peer);
}

static void watch_patience(ew__rrq_peer *peer) {
    ew__executor *executor = peer->peer.conn->executor;
    ew__progress_note(&peer->progress, unfinished(peer), executor->now);
    if (unfinished(peer) == 0 || peer->paused || ew__timer_active(&peer->patience))
        return; /* it looks for itself when it fires */
    uint64_t at = peer->progress.at + EW__MS(ew__rrq_limits(peer)->body_stall_ms);
    if (ew__timer_set(&executor->timers, &peer->patience, at, on_patience) != EW_OK)
        ew__rrq_abort(peer);
}

/* ---- bytes ---- */

/* Memory for more of the frame that is being read: never more than four times what has come. */
static ew_err grow(ew__rrq_peer *peer, size_t at_least) {
    size_t want = peer->in.cap * 4 > STEP ? peer->in.cap * 4 : STEP;
    if (peer->need && want > peer->need)
        want = peer->need;
    want = want > peer->in.len + at_least ? want - peer->in.len : at_least;
    return ew__buf_reserve(&peer->in, want);
}

static uint8_t *reserve(ew__peer *base, size_t *ret_size) {
    ew__rrq_peer *peer = rrq_of(base);
    if (peer->need < LARGE || peer->in.len >= peer->need || peer->broken || peer->closed)
        return NULL;
    if (peer->in.cap == peer->in.len && grow(peer, 1) != EW_OK)
        return NULL; /* the ordinary way will meet the same error */
    size_t room = peer->in.cap - peer->in.len, left = peer->need - peer->in.len;
    *ret_size = room < left ? room : left;
    return (uint8_t *)peer->in.ptr + peer->in.len;
}

static ew_err add_bytes(ew__rrq_peer *peer, const uint8_t *bytes, size_t n) {
    if (peer->in.ptr && (const char *)bytes == peer->in.ptr + peer->in.len && peer->in.cap - peer->in.len >= n) {
        peer->in.len += n; /* they were read straight into their place */
        return EW_OK;
    }
    if (peer->need >= LARGE && peer->in.cap - peer->in.len < n && grow(peer, n) != EW_OK)
        return EW_ENOMEM;
    return ew__buf_add(&peer->in, bytes, n);
}

bool ew__rrq_give_frame(ew__rrq_peer *peer, ew_call *call) {
    size_t len = 0, cap = 0;
    if (!peer->whole || peer->in.len < LARGE)
        return false;
    char *memory = ew__buf_take(&peer->in, &len, &cap);
    if (ew__arena_adopt(&call->arena, memory, cap) == EW_OK)
        return true;
    peer->in.ptr = memory; /* as it was */
    peer->in.len = len;
    peer->in.cap = cap;
    return false;
}

static void take_buffered(ew__rrq_peer *peer) {
    if (peer->need && peer->in.len < peer->need)
        return;
    peer->whole = peer->need == peer->in.len; /* exactly one frame: its memory may become its call's */
    size_t done = take_frames(peer, ew__buf_view(&peer->in));
    peer->whole = false;
    if (peer->in.len) /* it was not given away */
        ew__buf_drop(&peer->in, done);
    if (peer->in.len == 0)
        ew__buf_done(&peer->in); /* an idle connection holds no memory */
}

static void after_frames(ew__rrq_peer *peer, bool took) {
    ew__conn *conn = peer->peer.conn;
    if (peer->closed)
        return;
    if (peer->broken)
        ew__buf_done(&peer->in);
    else
        watch_patience(peer);
    conn->ops->read(conn, !peer->paused);
    if (took && conn->out.bytes == 0 && conn->ops->acknowledge && (peer->calls.served.n || peer->calls.sent.n))
        conn->ops->acknowledge(conn);
    ew__rrq_check_drained(peer);
}

/* Adds to the frame that has begun what it lacks (or what its head does), and takes it if it is whole then. */
static size_t complete(ew__rrq_peer *peer, const uint8_t *bytes, size_t n) {
    size_t lacks = peer->paused ? n : peer->need - peer->in.len;
    n = n < lacks ? n : lacks;
    if (add_bytes(peer, bytes, n) != EW_OK)
        ew__rrq_abort(peer);
    else if (!peer->paused)
        take_buffered(peer);
    return n;
}

/* The beginning of a frame, or what waits because reading is paused. */
static size_t keep(ew__rrq_peer *peer, const uint8_t *bytes, size_t n) {
    if (!peer->closed && !peer->broken && add_bytes(peer, bytes, n) != EW_OK)
        ew__rrq_abort(peer);
    return n;
}

/* Whole frames are read where they are; only one that comes in pieces is put together. */
static void input(ew__peer *base, const uint8_t *bytes, size_t n) {
    ew__rrq_peer *peer = rrq_of(base);
    uint32_t before = peer->n_frames;
    while (n > 0 && !peer->closed && !peer->broken) { /* broken: read only to notice that the other side goes */
        size_t done = peer->in.len ? complete(peer, bytes, n) : take_frames(peer, ew__str(bytes, n));
        if (done == 0)
            done = keep(peer, bytes, n);
        bytes += done;
        n -= done;
    }
    after_frames(peer, peer->n_frames != before);
}

static void on_resume(ew__timer *timer, uint64_t now) {
    ew__rrq_peer *peer = ew__container_of(timer, ew__rrq_peer, resume);
    (void)now;
    if (peer->closed || ew__rpc_must_pause(&peer->calls))
        return;
    peer->paused = false;
    peer->progress.reset = true; /* the peer could not get on */
    if (peer->in.len)
        take_buffered(peer);
    after_frames(peer, false);
}

static void resume_later(ew__rpc_calls *all) {
    ew__rrq_peer *peer = ew__container_of(all, ew__rrq_peer, calls);
    if (!peer->paused || peer->closed || peer->reading)
        return; /* there is nothing to resume; or the loop that reads looks for itself */
    if (ew__timer_set(timers_of(peer), &peer->resume, peer->peer.conn->executor->now, on_resume) != EW_OK)
        ew__rrq_abort(peer);
}

static void drained(ew__peer *base) {
    ew__rrq_peer *peer = rrq_of(base);
    ew__rpc_calls_drained(&peer->calls);
    if (!peer->closed && base->conn->ops->ready)
        base->conn->ops->ready(base->conn);
}

/* The other side will say no more: to RRQ that is the end of the connection and of all that runs on it. */
static void eof(ew__peer *base) {
    ew__rrq_peer *peer = rrq_of(base);
    if (peer->closed)
        return;
    ew__rrq_let_go_all(peer);
    ew__rrq_fail_sent(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                      EW_STR("the runner closed the connection before the end of the call"));
    peer->draining = true;
    ew__rrq_check_drained(peer);
}

/* ---- life ---- */

/* A length below 16 MiB begins with zero, 16 MiB itself with one; no text of another wire begins with such a byte. */
static int sniff(const uint8_t *bytes, size_t n) { return n == 0 ? 0 : bytes[0] < '\t' ? 1 : -1; }

/* There are no streams, so nothing ever holds up a connection by not being taken. */
static void overrun(ew__rpc_call *entry) { ew__rrq_abort(ew__container_of(entry->all, ew__rrq_peer, calls)); }

static void abort_conn(ew__rpc_calls *all) { ew__rrq_abort(ew__container_of(all, ew__rrq_peer, calls)); }

static const ew__rpc_calls_ops calls_ops = {.overrun = overrun, .resume = resume_later, .abort = abort_conn};

/* Our extension: the first request shows the token. Its outcome is nobody's; a runner that wants none says so in vain. */
static ew_err show_token(ew__rrq_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    ew_str token = conn->site->token;
    ew__rpc_out message;
    ew__buf head, params, tail;
    if (peer->peer.role != EW__CALL || token.len == 0)
        return EW_OK;
    ew__rrq_ask ask = {.ids = {.request = EW_STR("\"" EW__AUTH_METHOD "\""), .job = EW_STR("\"" EW__AUTH_METHOD "\"")},
                       .function = EW_STR(EW__AUTH_METHOD),
                       .now_ms = ew__rrq_wall_ms(conn->scratch, conn->executor)};
    ew__buf_init(&head, conn->executor->env, SIZE_MAX / 2);
    ew__buf_init(&params, conn->executor->env, SIZE_MAX / 2);
    ew__buf_init(&tail, conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__json_format(&params, "{\"token\":%q}", token);
    if (err == EW_OK)
        err = ew__rrq_write_request(&head, &tail, &ask);
    if (err == EW_OK) {
        ew__rpc_out_begin(&message, ew__buf_view(&head));
        ew__rpc_out_add(&message, ew__buf_view(&params));
        ew__rpc_out_add(&message, ew__buf_view(&tail));
        ew__rrq_send(peer, &message, NULL);
    }
    ew__buf_done(&head);
    ew__buf_done(&params);
    ew__buf_done(&tail);
    return err;
}

static ew_err init(ew__peer *base) {
    ew__rrq_peer *peer = rrq_of(base);
    ew__buf_init(&peer->in, base->conn->executor->env, SIZE_MAX / 2); /* a frame's length is checked by its head */
    peer->max = ew__conn_frame_max(base->conn);
    peer->number = ++((ew__rrq_scratch *)base->conn->scratch)->n_peers;
    ew__rpc_calls_init(&peer->calls, base->conn, &calls_ops);
    if (base->role == EW__CALL)
        ew__rrq_ids_init(peer);
    return show_token(peer);
}

static void drain(ew__peer *base) {
    rrq_of(base)->draining = true;
    ew__rrq_check_drained(rrq_of(base));
}

static void gone(ew__peer *base, ew_err why) {
    ew__rrq_peer *peer = rrq_of(base);
    peer->closed = true;
    ew__rrq_let_go_all(peer);
    ew__rrq_fail_sent(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                      why == EW_ETIMEOUT ? EW_STR("the connection stalled")
                                         : EW_STR("the connection was lost before the end of the call"));
    ew__timer_stop(timers_of(peer), &peer->patience);
    ew__timer_stop(timers_of(peer), &peer->resume);
    ew__rpc_calls_done(&peer->calls);
    ew__free(base->conn->executor->env, peer->skim, sizeof *peer->skim);
    peer->skim = NULL;
    ew__buf_done(&peer->in);
}

static const ew_wire_info info = {
    .name = "rrq",
    .title = "RRQ",
    .can = EW_WIRE_SERVES | EW_WIRE_CALLS | EW_WIRE_CANCEL | EW_WIRE_DEADLINE | EW_WIRE_TRACE | EW_WIRE_CONTEXT |
           EW_WIRE_LABELS | EW_WIRE_LIST | EW_WIRE_OBJECT,
};

#define HINT "is the runner running? what stands behind -- is started as one"

static const ew_scheme schemes[] = {
    {.text = "rrq://",
     .form = "rrq://HOST:PORT",
     .help = "an RRQ runner: HOST:PORT",
     .hint = HINT,
     .wire = "rrq",
     .reach = EW_REACH_TCP,
     .command = EW_SCHEME_COMMAND_MAY,
     .slow_start = true},
    {.text = "rrqs://",
     .form = "rrqs://HOST:PORT",
     .help = "an RRQ runner with TLS",
     .hint = HINT,
     .wire = "rrq",
     .reach = EW_REACH_TCP,
     .tls = true},
    {.text = NULL},
};

static const ew_listener_name listeners[] = {
    {.name = "rrq", .help = "the rrq wire only", .wire = "rrq"},
    {.name = "rrqs", .help = "the rrq wire only, with TLS", .wire = "rrq", .tls = true},
    {.name = NULL},
};

static const ew_start_word start[] = {
    {.name = "--tcp-socket",
     .argument = "HOST:PORT",
     .help = "be an RRQ runner there, as RRQ tells the programs that it starts: the last\n"
             "one counts; the program ends with the one that started it",
     .wire = "rrq",
     .role = EW_START_LISTEN},
    {.name = "RRQ_RUNNER_TCP_SOCKET",
     .help = "as --tcp-socket, if that is not given",
     .wire = "rrq",
     .role = EW_START_LISTEN},
    {.name = NULL},
};

static const ew__wire_note notes[] = {
    {"target",
     " rrq://HOST:PORT is an RRQ runner, and a program behind -- is started first, told by --tcp-socket to listen "
     "there "
     "(port 0 picks a free one for both);",
     0},
    {"drain", ", for an RRQ\nrunner 100ms", 0},
    {"serve", "  everywire serve --demo --tcp-socket 127.0.0.1:9000\n", 0},
    {"serve import",
     "  everywire serve --import rrq://127.0.0.1:9000 --import py=http://127.0.0.1:8080\n"
     "  everywire serve --import 'rrq://127.0.0.1:9000#send_email,resize'\n",
     0},
    {"call",
     "  everywire call rrq://127.0.0.1:9000 send_email '{\"to\":\"a@b\"}' -- rrq-runner --settings "
     "app.runner.settings\n",
     0},
    {"list", "  everywire list rrq://127.0.0.1:9000\n", 0},
    {"bench", "  everywire bench rrq://127.0.0.1:9000 echo '{}' -n 100000 --timeout 1s\n", 2},
    {NULL, NULL, 0},
};

/*
 * drain_ms: RRQ asks a runner to end when it has drained, or given up, the jobs itself. It ends its runners one after
 * the other, with 2 s for all of them before it goes without giving back its jobs.
 */
static const ew__descriptor about = {.info = &info,
                                     .schemes = schemes,
                                     .listeners = listeners,
                                     .start = start,
                                     .notes = notes,
                                     .takes = EW__TAKES_PROCESSES,
                                     .refusal = "processes are for an rrq:// target with a command",
                                     .drain_ms = 100};

const ew__wire ew__wire_rrq = {
    .name = "rrq",
    .about = &about,
    .caps =
        EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_CANCEL | EW__CAN_DEADLINE | EW__CAN_TRACE | EW__CAN_LIST | EW__CAN_MANY,
    .serve_size = sizeof(ew__rrq_peer),
    .call_size = sizeof(ew__rrq_peer),
    .scratch_size = sizeof(ew__rrq_scratch),
    .scratch_done = ew__rrq_scratch_done,
    .on_broadcast = ew__rrq_on_broadcast,
    .sniff = sniff,
    .frames = EW__FRAMES_LENGTH,
    .init = init,
    .reserve = reserve,
    .input = input,
    .eof = eof,
    .hung_up = eof,
    .drained = drained,
    .drain = drain,
    .gone = gone,
    .open = ew__rrq_open,
    .leave = ew__rrq_leave,
    .capacity = ew__rrq_capacity,
    .most = ew__rrq_most,
    .refuses = ew__rrq_refuses,
};
