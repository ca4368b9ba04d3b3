/*
 * tests/unit/wire/rpc_calls_world.h: for tests of the calls of one connection apart from any wire: real calls on an executor
 * with a virtual clock, on a connection that is nothing but its queue. Each call has a letter; what they and the
 * connection are told is kept as a line of text.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_RPC_CALLS_WORLD_H
#define EW_TESTS_RPC_CALLS_WORLD_H

#include "unit/call/world.h"
#include "wire/rpc_calls.h"

enum {
    HIGH = 100, /* bytes in the queue at which producers wait */
    MOST = 2000,
    FRAME = 300,
    CALLS = 3,
    IDLE_MS = 1000,
    GUARD_MS = 5000, /* INPUT_HOLD_MS of rpc_calls.c */
    STREAM_HOLD_MS = 1000,
    LETTERS = 12
};

typedef struct party party;

typedef struct peer {
    world w;
    ew__site site;
    ew__conn conn;
    ew__rpc_calls all;
    party *party[LETTERS]; /* by letter; NULL: it has ended */
    bool closed;           /* the wire leaves those that overran to the connection's end */
    unsigned n_overruns;
    char told[400];
} peer;

struct party {
    ew__rpc_call base; /* first, as in a wire's own struct */
    peer *peer;
    char letter;
    bool listed;
    size_t piece;              /* bytes of the next one it sends */
    unsigned n_told;           /* that there is room */
    void (*then)(party *self); /* what it does when it is told; NULL: nothing */
    char other;                /* whose end it brings about, where it does */
};

/* ---- what is told ---- */

static void tell(peer *p, const char *what, char letter) {
    size_t n = strlen(p->told);
    const char name[] = {letter ? ' ' : 0, letter, 0};
    (void)snprintf(p->told + n, sizeof p->told - n, "%s%s%s", n ? ", " : "", what, name);
}

static void check_told(peer *p, const char *expected) {
    assert_string_equal(p->told, expected);
    p->told[0] = 0;
}

/* ---- the connection ---- */

static void queue_add(peer *p, size_t n) {
    static const uint8_t zeros[2 * MOST];
    assert_true(n <= sizeof zeros);
    ew__out_add(&p->conn.out, zeros, n);
    assert_int_equal(p->conn.out.err, EW_OK);
}

/* The queue holds so much now. */
static void queue_is(peer *p, size_t n) {
    ew__out_done(&p->conn.out);
    queue_add(p, n);
    assert_int_equal(p->conn.out.bytes, n);
}

/* ---- both ends of its calls ---- */

static void told_room(party *self, const char *what) {
    tell(self->peer, what, self->letter);
    self->n_told++;
    if (self->then)
        self->then(self);
}

static ew_err send_and_pace(party *self) {
    queue_add(self->peer, self->piece);
    return ew__rpc_call_pace(&self->base);
}

static void ignore_open(ew_call *call) { (void)call; }
static void ignore_end(ew_call *call, const ew__end *end) {
    (void)call;
    (void)end;
}
static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)json;
    return send_and_pace(call->caller_ud);
}
static ew_err on_input(ew_call *call, ew_str json) {
    (void)json;
    return send_and_pace(call->callee_ud);
}
static void on_room(ew_call *call) { told_room(call->callee_ud, "room"); }
static void on_input_room(ew_call *call) { told_room(call->caller_ud, "input room"); }

/* Of one that came the test is the handler, of one that left the program: both produce, each is told in its own way. */
static const ew__caller_ops caller = {.chunk = on_chunk, .end = ignore_end, .input_room = on_input_room};
static const ew__callee_ops callee = {.open = ignore_open, .input = on_input, .room = on_room};

static inline ew_err send_piece(party *self, size_t n) {
    self->piece = n;
    ew_call *call = self->base.call;
    return self->base.sent ? ew__call_input(call, EW_STR("1")) : ew__call_chunk_valid(call, EW_STR("1"));
}

/* A call that is not on the list yet, as while its handler is being called. */
static party *begin(peer *p, char letter, bool sent, const char *id) {
    party *self = calloc(1, sizeof *self);
    ew_call *call = ew__call_new(&p->w.executor, &caller, self);
    assert_true(self && call && letter >= 'a' && letter < 'a' + LETTERS && !p->party[letter - 'a']);
    char *raw = ew_call_alloc(call, strlen(id) + 1);
    assert_non_null(raw);
    for (size_t i = 0; i <= strlen(id); i++)
        raw[i] = id[i] == '\'' ? '"' : id[i];
    self->base = (ew__rpc_call){.all = &p->all, .call = call, .id = ew_str_from(raw), .sent = sent};
    self->peer = p;
    self->letter = letter;
    call->wants_chunks = call->has_input = true;
    ew__call_open_on(call, &callee, self);
    return p->party[letter - 'a'] = self;
}

static party *add_with(peer *p, char letter, bool sent, const char *id, uint32_t size) {
    party *self = begin(p, letter, sent, id);
    self->base.size = size;
    ew__rpc_call_add(&self->base);
    self->listed = true;
    return self;
}

static party *add(peer *p, char letter) { return add_with(p, letter, false, "", 0); }
static party *add_sent(peer *p, char letter) { return add_with(p, letter, true, "", 0); }

/* Its taker is so far behind that reading stops. */
static inline void block(party *self) {
    ew__rpc_call_block(&self->base, 1, (size_t)ew__rpc_behind_max(self->base.all));
}

/* Takes it off the connection; the call runs on. */
static void take_off(party *self) {
    if (self->listed)
        ew__rpc_call_remove(&self->base);
    else
        ew__rpc_call_stop_waiting(&self->base);
    self->listed = false;
}

/* Its memory goes, so that a memory checker sees who still looks at it. */
static void end(party *self) {
    ew_call *call = self->base.call;
    take_off(self);
    self->peer->party[self->letter - 'a'] = NULL;
    (void)ew__call_done_valid(call, EW_STR("1"));
    ew__call_release(call);
    free(self);
}

static void end_letter(peer *p, char letter) {
    if (letter && p->party[letter - 'a'])
        end(p->party[letter - 'a']);
}

/* ---- what a wire does when it is told ---- */

static void on_overrun(ew__rpc_call *entry) {
    party *self = (party *)(void *)entry;
    peer *p = self->peer;
    tell(p, "overrun", self->letter);
    if (p->closed && ++p->n_overruns < 9) /* a test that fails ends, too */
        return;
    end_letter(p, self->other);
    end(self);
}

static void on_resume(ew__rpc_calls *all) { tell(ew__container_of(all, peer, all), "resume", 0); }
static void on_abort(ew__rpc_calls *all) { tell(ew__container_of(all, peer, all), "abort", 0); }

static const ew__rpc_calls_ops ops = {.overrun = on_overrun, .resume = on_resume, .abort = on_abort};

static void start(peer *p) {
    memset(p, 0, sizeof *p);
    world_init(&p->w, 1);
    p->w.limits.out_high_bytes = HIGH;
    p->w.limits.out_max_bytes = MOST;
    p->w.limits.frame_bytes = FRAME;
    p->w.limits.calls_per_connection = CALLS;
    p->w.limits.stream_idle_ms = IDLE_MS;
    p->conn = (ew__conn){.executor = &p->w.executor, .site = &p->site};
    ew__out_init(&p->conn.out, &p->w.executor.blocks);
    ew__rpc_calls_init(&p->all, &p->conn, &ops);
}

/* Nothing is left of calls that have ended. */
static void finish(peer *p) {
    for (char letter = 'a'; letter < 'a' + LETTERS; letter++)
        end_letter(p, letter);
    assert_true(!p->all.served.first && !p->all.sent.first && !p->all.waiting && !p->all.waiting_last);
    assert_int_equal(p->all.served.n + p->all.sent.n + p->all.n_waiting + p->all.n_blocked, 0);
    assert_int_equal(p->all.served_bytes, 0);
    assert_false(ew__timer_active(&p->all.guard));
    ew__rpc_calls_done(&p->all);
    ew__out_done(&p->conn.out);
    world_done(&p->w);
}

#endif
