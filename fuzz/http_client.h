/*
 * fuzz/http_client.h: sessions of a client of HTTP with a hostile server, for the targets that define
 * CLIENT_WIRE and fill_call. The first byte of the input is the mode, the second the size of the pieces
 * in which bytes arrive. The rest is what the server sends; 0xff with the byte behind it is an event: a
 * call, a caller that cancels or leaves, time, the end of the connection, a new connection.
 *
 * Every call ends exactly once, unless its caller leaves before. A call that has ended has no callee. A
 * request is sent only when no answer is awaited. Nothing is left at the end.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_FUZZ_HTTP_CLIENT_H
#define EW_FUZZ_HTTP_CLIENT_H

#include "session.h"
#include "wire/http_ask.h"

#define CALLS 8
#define CALLS_IN_ALL 60

/* The first byte. */
enum { EAGER = 1, SLOW_READER = 2, LEAVES_AT_CHUNK = 4 };

typedef struct caller_state {
    ew_call *call; /* a reference of our own; NULL: none */
    bool open;     /* the caller has neither left nor been told the end */
} caller_state;

typedef struct world {
    ew__conn conn; /* first */
    ew__executor *executor;
    ew__peer *peer; /* NULL: there is no connection */
    uint8_t mode;
    bool over; /* the wire has closed the connection */
    bool paused;
    unsigned n_opened;
    caller_state callers[CALLS];
} world;

/* So that a call finds its world. */
typedef struct world_home {
    ew__executor executor; /* first */
    world *w;
} world_home;

/* The target's: what a call asks for. */
static void fill_call(ew_call *call, unsigned how);

static inline void open_call(world *w, unsigned how);

/* ---- the connection ---- */

static inline world *world_of(ew__conn *conn) { return (world *)(void *)conn; }

static inline void on_send(ew__conn *conn) {
    check(!world_of(conn)->over || conn->out.bytes == 0);
    ew__out_consume(&conn->out, conn->out.bytes);
}

static inline void on_read(ew__conn *conn, bool on) { world_of(conn)->paused = !on; }

static inline void on_over(ew__conn *conn) { world_of(conn)->over = true; }

static inline void on_ready(ew__conn *conn) {
    world *w = world_of(conn);
    check(!w->over && CLIENT_WIRE.capacity(w->peer) > 0);
    if (w->mode & EAGER)
        open_call(w, w->n_opened);
}

static const ew__conn_ops conn_ops = {
    .send = on_send, .read = on_read, .finish = on_over, .abort = on_over, .ready = on_ready};

static inline void connect_client(world *w) {
    w->peer = calloc(1, CLIENT_WIRE.call_size);
    check(w->peer != NULL);
    w->over = w->paused = false;
    ew__out_init(&w->conn.out, &w->executor->blocks);
    *w->peer = (ew__peer){.wire = &CLIENT_WIRE, .conn = &w->conn, .role = EW__CALL};
    check(CLIENT_WIRE.init(w->peer) == EW_OK);
}

static inline void lose_client(world *w, ew_err why) {
    ew__peer *peer = w->peer;
    if (!peer)
        return;
    w->over = true;
    w->peer = NULL;
    CLIENT_WIRE.gone(peer, why);
    ew__out_done(&w->conn.out);
    free(peer);
}

/* ---- callers ---- */

static inline void leave(caller_state *caller) {
    ew_call *call = caller->call;
    if (!caller->open)
        return;
    caller->open = false;
    ew__call_release(call);
}

static inline ew_err on_chunk(ew_call *call, ew_str json) {
    caller_state *caller = call->caller_ud;
    uint8_t mode = ew__container_of(call->executor, world_home, executor)->w->mode;
    check(caller->open && ew_json_check(json, NULL) == EW_OK);
    if (mode & LEAVES_AT_CHUNK)
        leave(caller);
    return mode & SLOW_READER ? EW_FULL : EW_OK;
}

static inline void on_end(ew_call *call, const ew__end *end) {
    caller_state *caller = call->caller_ud;
    check(caller->open && call == caller->call);
    check(end->status != EW_STATUS_OK || ew_json_check(end->result, NULL) == EW_OK);
    check(end->status == EW_STATUS_OK || end->fault.status == end->status);
    check(end->fault.details.len == 0 || ew_json_check(end->fault.details, NULL) == EW_OK);
    leave(caller);
}

static const ew__caller_ops caller_ops = {.chunk = on_chunk, .end = on_end};

/* The callee has let go of calls that have ended: whatever their callers still do has no effect. */
static inline void check_ended(const caller_state *caller) {
    if (!caller->call || caller->call->callee_open)
        return;
    check(caller->call->callee_ud == NULL && !caller->open);
    ew__call_cancel(caller->call, EW__CANCEL_ASKED);
    ew__call_room(caller->call);
}

static inline void open_call(world *w, unsigned how) {
    caller_state *caller = &w->callers[w->n_opened % CALLS];
    if (!w->peer || w->over || w->n_opened >= CALLS_IN_ALL || caller->open)
        return;
    check_ended(caller);
    ew_call_unref(caller->call);
    ew_call *call = ew__call_new(w->executor, &caller_ops, caller);
    check(call != NULL);
    *caller = (caller_state){.call = ew_call_ref(call), .open = true};
    w->n_opened++;
    if (how & 16)
        call->deadline = w->executor->now + EW__MS(1000);
    ew__trace_new(&call->trace, &w->executor->rng);
    fill_call(call, how);
    ew__call_open_on(call, &opening, w->peer);
}

/* ---- events ---- */

static inline void pass_time(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    ew__executor_read_clock(w->executor);
    ew__timers_run(&w->executor->timers, w->executor->now);
}

static inline void act(world *w, uint8_t what) {
    caller_state *caller = &w->callers[what % CALLS];
    switch (what >> 5) {
    case 0:
        open_call(w, what);
        break;
    case 1:
        if (caller->open)
            ew__call_cancel(caller->call, EW__CANCEL_ASKED);
        break;
    case 2:
        leave(caller);
        break;
    case 3:
        if (w->peer && !w->over && (what & 1))
            CLIENT_WIRE.eof(w->peer);
        else
            lose_client(w, what & 2 ? EW_ECLOSED : EW_ETIMEOUT);
        break;
    case 4:
        pass_time(w, (uint64_t)1 << (what & 15));
        break;
    case 5:
        lose_client(w, EW_OK);
        connect_client(w);
        break;
    default:
        if (caller->open)
            ew__call_room(caller->call);
    }
}

/* In memory of exactly their size, so that reading past it is seen. */
static inline void say(world *w, const uint8_t *bytes, size_t n, size_t step) {
    for (size_t at = 0; at < n && w->peer && !w->over;) {
        for (unsigned i = 0; i < CALLS && w->paused; i++)
            if (w->callers[i].open)
                ew__call_room(w->callers[i].call);
        if (w->over)
            return;
        size_t piece = step && step < n - at ? step : n - at;
        uint8_t *copy = malloc(piece);
        check(copy != NULL && !w->paused);
        memcpy(copy, bytes + at, piece);
        CLIENT_WIRE.input(w->peer, copy, piece);
        free(copy);
        at += piece;
    }
}

static inline void feed(world *w, const uint8_t *data, size_t size, size_t step) {
    for (size_t at = 0; at < size;) {
        const uint8_t *mark = memchr(data + at, 0xff, size - at);
        size_t n = mark ? (size_t)(mark - data) - at : size - at;
        if (n == 0) {
            act(w, at + 1 < size ? data[at + 1] : 0);
            at += 2;
        } else {
            say(w, data + at, n, step);
            at += n;
        }
        for (unsigned i = 0; i < CALLS; i++)
            check_ended(&w->callers[i]);
    }
}

static inline void run(world *w, const uint8_t *data, size_t size) {
    connect_client(w);
    feed(w, data + 2, size - 2, data[1] % 61);
    if (w->peer && !w->over)
        CLIENT_WIRE.eof(w->peer);
    lose_client(w, EW_OK);
    pass_time(w, 100000);
    for (unsigned i = 0; i < CALLS; i++) {
        check_ended(&w->callers[i]);
        check(!w->callers[i].open);
        ew_call_unref(w->callers[i].call);
    }
    check(w->executor->calls->live == 0 && ew__timers_next(&w->executor->timers) == EW__NEVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    env.now_ns = fuzz_now;
    env.random = fuzz_random;
    now_ns = 1000000000;
    ew_limits limits = {.frame_bytes = 4096, .head_bytes = 2048};
    ew_limits_complete(&limits);
    if (size < 2)
        return 0;
    world_home executor = {.executor = {.ops = &executor_ops}};
    ew__executor_init(&executor.executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor.executor);
    ew__site site = {.port = 80, .authority = EW_STR("h"), .path = EW_STR("/p")};
    world w = {.executor = &executor.executor, .mode = data[0]};
    w.conn = (ew__conn){.ops = &conn_ops, .executor = &executor.executor, .site = &site};
    w.conn.scratch = calloc(1, CLIENT_WIRE.scratch_size);
    check(w.conn.scratch != NULL);
    executor.w = &w;
    run(&w, data, size);
    ew__call_context_done(&calls);
    ew__executor_done(&executor.executor);
    free(w.conn.scratch);
    return 0;
}

#endif
