/*
 * tests/support/rig.c: the world and its connections. See rig.h; callers are in rig_call.c, actions in rig_actions.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PIPE_ROOM ((size_t)256 * 1024) /* what two sockets hold between them */
#define LINGER_MS 2000
#define TURNS 20000000u

/* ---- executors ---- */

static bool home_here(const ew__executor *executor) {
    return !ew__container_of(executor, rig_side, executor)->elsewhere;
}

static const ew__executor_ops executor_ops = {.here = home_here};

static bool run_tasks(rig_side *side) {
    bool was_elsewhere = side->elsewhere;
    side->elsewhere = false;
    bool any = ew__executor_run_tasks(&side->executor);
    side->elsewhere = was_elsewhere;
    return any;
}

static const ew__wire *wire_of(const rig *r, int side) { return side == RIG_SERVER ? r->serve : r->wire; }

static void init_side(rig *r, int which, const struct ew__http_guest *guest) {
    rig_side *side = &r->side[which];
    side->rig = r;
    side->executor.ops = &executor_ops;
    ew__executor_init(&side->executor, &r->env.env, &r->limits);
    ew__call_context_init(&side->calls, &side->executor);
    side->site.port = 3400;
    side->site.authority = EW_STR("127.0.0.1:3400");
    static const ew__runtime_identity self = {
        .id = {"rig", 3}, .name = {"rig", 3}, .version = {"everywire/0", 11}, .pid = 1};
    if (which == RIG_SERVER) {
        side->site.actions = r->actions;
        side->site.identity = &self;
        side->site.guest = guest;
        side->site.only_guest = guest != NULL;
    }
}

void rig_init(rig *r, const ew__wire *wire, const rig_options *options) {
    memset(r, 0, sizeof *r);
    ew__test_env_init(&r->env, options->seed);
    r->limits = options->limits;
    ew_limits_complete(&r->limits);
    r->wire = wire;
    r->split = options->split;
    r->handshake = options->handshake;
    r->stdio = options->stdio;
    r->serve = options->serve ? options->serve : wire;
    r->pipe_room = options->pipe_room ? options->pipe_room : PIPE_ROOM;
    r->chance = options->seed * 2 + 1;
    r->actions = rig_actions();
    r->last_call = &r->calls;
    r->seen_deadline_ms = -2;
    init_side(r, RIG_CLIENT, NULL);
    init_side(r, RIG_SERVER, options->guest);
    r->side[RIG_CLIENT].site.options = options->options;
}

static uint64_t draw(rig *r) {
    r->chance ^= r->chance << 13;
    r->chance ^= r->chance >> 7;
    r->chance ^= r->chance << 17;
    return r->chance;
}

uint64_t rig_dropped(rig *r, int side) { return atomic_load(&r->side[side].executor.calls->dropped); }

/* ---- pipes ---- */

static void pipe_add(rig_pipe *pipe, const uint8_t *bytes, size_t n) {
    if (pipe->start + pipe->len + n > pipe->cap) {
        size_t cap = (pipe->len + n) * 2 + 256;
        uint8_t *grown = malloc(cap);
        assert_non_null(grown);
        if (pipe->len)
            memcpy(grown, pipe->bytes + pipe->start, pipe->len);
        free(pipe->bytes);
        pipe->bytes = grown;
        pipe->cap = cap;
        pipe->start = 0;
    }
    memcpy(pipe->bytes + pipe->start + pipe->len, bytes, n);
    pipe->len += n;
}

static void pipe_take(rig_pipe *pipe, size_t n) {
    pipe->start += n;
    pipe->len -= n;
    pipe->delivered += n;
    if (pipe->len == 0)
        pipe->start = 0;
}

/* ---- an end of a connection: as io/stream.c ---- */

static rig_end *end_of(ew__conn *conn) { return ew__container_of(conn, rig_end, conn); }

static rig_end *other_end(rig_end *end) { return &end->pair->end[1 - end->side]; }

static void end_close(rig_end *end, ew_err why) {
    if (end->closing)
        return;
    end->closing = true;
    end->why = why;
    end->dirty = false;
    ew__timer_stop(&end->conn.executor->timers, &end->stall);
}

static void on_stall(ew__timer *timer, uint64_t now) {
    rig_end *end = ew__container_of(timer, rig_end, stall);
    uint64_t limit = EW__MS(end->lingering ? LINGER_MS : end->conn.executor->limits->stall_ms);
    if (!end->lingering && end->conn.out.bytes == 0)
        return;
    if (now - end->progress_at >= limit)
        end_close(end, end->lingering ? EW_OK : EW_ETIMEOUT);
    else
        (void)ew__timer_set(&end->conn.executor->timers, timer, end->progress_at + limit, on_stall);
}

static void watch_progress(rig_end *end, uint64_t limit_ms) {
    uint64_t at = end->progress_at + EW__MS(limit_ms);
    if (ew__timer_active(&end->stall) && end->stall.at <= at)
        return;
    if (ew__timer_set(&end->conn.executor->timers, &end->stall, at, on_stall) != EW_OK)
        end_close(end, EW_ENOMEM);
}

static void linger(rig_end *end) {
    if (end->lingering || end->closing)
        return;
    end->lingering = true;
    end->pair->pipe[end->side].eof = true;
    end->progress_at = end->conn.executor->now;
    watch_progress(end, LINGER_MS);
    end->reading = true;
}

static void after_write(rig_end *end, size_t n) {
    const ew_limits *limits = end->conn.executor->limits;
    end->progress_at = end->conn.executor->now;
    ew__out_consume(&end->conn.out, n);
    if (end->was_full && end->conn.out.bytes <= limits->out_low_bytes) {
        end->was_full = false;
        end->n_drained++;
        if (end->peer && end->peer->wire->drained)
            end->peer->wire->drained(end->peer);
    }
    if (end->conn.out.bytes >= limits->out_high_bytes)
        end->was_full = true;
    if (end->finishing && end->conn.out.bytes == 0)
        linger(end);
}

/* Bytes that are sent to an end that has gone vanish; the sender learns it by its reading, or by `reset`. */
static size_t write_some(rig_end *end) {
    rig_pipe *pipe = &end->pair->pipe[end->side];
    ew__out_vec vec[4];
    size_t done = 0;
    bool lost = other_end(end)->closing;
    unsigned n = ew__out_peek(&end->conn.out, vec, 4);
    for (unsigned i = 0; i < n; i++) {
        size_t fits = pipe->room > pipe->len ? pipe->room - pipe->len : 0;
        size_t take = lost || vec[i].len < fits ? vec[i].len : fits;
        if (!lost && take)
            pipe_add(pipe, vec[i].ptr, take);
        done += take;
        if (take < vec[i].len)
            break;
    }
    end->reset = end->reset || (lost && done > 0);
    return done;
}

static bool flush(rig_end *end) {
    bool moved = false;
    if (end->closing || (!end->dirty && !end->blocked))
        return false;
    if (end->conn.out.bytes > end->peak_out)
        end->peak_out = end->conn.out.bytes;
    end->dirty = false;
    bool was_blocked = end->blocked;
    end->blocked = false;
    while (!end->closing && end->conn.out.bytes > 0) {
        size_t n = write_some(end);
        if (n > 0) {
            moved = true;
            after_write(end, n);
            continue;
        }
        if (!was_blocked)
            end->progress_at = end->conn.executor->now;
        end->blocked = true;
        end->was_full = end->was_full || end->conn.out.bytes >= end->conn.executor->limits->out_high_bytes;
        watch_progress(end, end->conn.executor->limits->stall_ms);
        break;
    }
    return moved;
}

static void conn_send(ew__conn *conn) {
    rig_end *end = end_of(conn);
    if (end->closing)
        return;
    if (conn->out.bytes > end->peak_out)
        end->peak_out = conn->out.bytes;
    if (conn->out.bytes >= conn->executor->limits->out_high_bytes)
        end->was_full = true;
    end->dirty = true;
}

static void conn_read(ew__conn *conn, bool on) { end_of(conn)->reading = on; }

static void conn_finish(ew__conn *conn) {
    rig_end *end = end_of(conn);
    if (end->finishing || end->closing)
        return;
    end->finishing = true;
    if (conn->out.bytes > 0)
        end->dirty = true;
    else
        linger(end);
}

static void conn_abort(ew__conn *conn) { end_close(end_of(conn), EW_OK); }

static void conn_ready(ew__conn *conn) {
    rig_end *end = end_of(conn);
    if (end->pair->rig->on_ready)
        end->pair->rig->on_ready(end);
}

static const char *conn_greet(ew__conn *conn, const ew__runtime_identity *who) {
    rig_end *end = end_of(conn);
    return end->pair->rig->greet ? end->pair->rig->greet(end, who) : NULL;
}

/* A connection that only says these bytes. */
static ew_err conn_aside(ew__conn *conn, const void *bytes, size_t n) {
    rig_end *end = end_of(conn);
    if (!(end->peer->wire->caps & EW__ONE_SHOTS_WAIT) && !end->pair->rig->asides)
        return EW_EBUSY; /* others have ways round it, which the tests are after */
    end->pair->rig->n_aside++;
    rig_pair *pair = rig_connect_raw(end->pair->rig, end->side);
    rig_say(pair, bytes, n);
    return EW_OK;
}

/* The same kind of connection once more; a raw end is the test's. */
static ew_err conn_again(ew__conn *conn, ew_call *call) {
    const rig_end *end = end_of(conn);
    rig *r = end->pair->rig;
    rig_pair *pair = end->pair->end[!end->side].raw ? rig_connect_raw(r, !end->side) : rig_connect(r);
    rig_end *fresh = &pair->end[end->side];
    return fresh->peer && !fresh->closing ? fresh->peer->wire->open(fresh->peer, call) : EW_EBUSY;
}

/* One wire beside the rig's own. */
static void *conn_shared(ew__conn *conn, const ew__wire *wire) {
    rig_end *end = end_of(conn);
    rig_side *side = &end->pair->rig->side[end->side];
    if (wire == wire_of(end->pair->rig, end->side))
        return side->scratch;
    if (!side->shared) {
        side->shared = ew__zalloc(side->executor.env, wire->scratch_size ? wire->scratch_size : 1);
        side->other = side->shared ? wire : NULL;
    }
    assert_true(!side->shared || side->other == wire);
    return side->shared;
}

static const ew__conn_ops conn_ops = {.send = conn_send,
                                      .read = conn_read,
                                      .finish = conn_finish,
                                      .abort = conn_abort,
                                      .ready = conn_ready,
                                      .greet = conn_greet,
                                      .one_shot = conn_aside,
                                      .again = conn_again,
                                      .shared = conn_shared};

/* ---- reading ---- */

static size_t piece_size(rig *r, size_t len) {
    if (r->split == RIG_WHOLE)
        return len;
    if (r->split == RIG_BYTES)
        return 1;
    uint64_t most = draw(r) % 4 == 0 ? 5000 : 16;
    uint64_t n = 1 + draw(r) % most;
    return n < len ? (size_t)n : len;
}

/* The bytes lie in a block of exactly their size, so that a memory checker sees who reads past them. */
static void give_bytes(rig_end *end, const rig_pipe *pipe, size_t n) {
    uint8_t *copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, pipe->bytes + pipe->start, n);
    end->peer->wire->input(end->peer, copy, n);
    memset(copy, 0xdd, n);
    free(copy);
}

static void deliver_bytes(rig_end *end, rig_pipe *pipe) {
    size_t n = piece_size(end->pair->rig, pipe->len), size = 0;
    uint64_t until_cut = pipe->cut_at - pipe->delivered;
    n = n < until_cut ? n : (size_t)until_cut;
    bool wanted = end->peer && !end->finishing;
    uint8_t *place = wanted && end->peer->wire->reserve ? end->peer->wire->reserve(end->peer, &size) : NULL;
    n = place && n > size ? size : n;
    if (end->pair->rig->watch)
        end->pair->rig->watch(end->pair, 1 - end->side, pipe->bytes + pipe->start, n);
    if (place) {
        memcpy(place, pipe->bytes + pipe->start, n);
        end->peer->wire->input(end->peer, place, n);
    } else if (wanted) {
        give_bytes(end, pipe, n);
    } else if (end->raw) {
        end->got = realloc(end->got, end->got_len + n + 1);
        assert_non_null(end->got);
        memcpy(end->got + end->got_len, pipe->bytes + pipe->start, n);
        end->got_len += n;
        end->got[end->got_len] = '\0';
    }
    pipe_take(pipe, n);
    if (end->dirty && !end->closing)
        (void)flush(end);
}

static void deliver_eof(rig_end *end) {
    end->reading = false;
    end->saw_eof = true;
    if (end->raw)
        return;
    if (end->lingering || !end->peer)
        end_close(end, EW_OK);
    else if (!end->finishing)
        end->peer->wire->eof(end->peer);
}

/* As io/stdio.c: after the end of its input a process notices that nobody has the other end of its output. */
static bool nobody_reads(rig_end *end) {
    return end->conn.stdio && end->saw_eof && !end->raw && !end->lingering && other_end(end)->closing;
}

static bool deliver(rig_end *end) {
    rig_pipe *pipe = &end->pair->pipe[1 - end->side];
    if (end->closing)
        return false;
    if (pipe->delivered == pipe->cut_at) {
        rig_cut(end->pair, 1 - end->side, pipe->cut_kind);
        return true;
    }
    if (!end->reading) {
        if ((end->reset && !end->lingering) || nobody_reads(end))
            end_close(end, EW_ECLOSED);
        return end->closing;
    }
    if (pipe->len > 0)
        deliver_bytes(end, pipe);
    else if (pipe->eof)
        deliver_eof(end);
    else
        return false;
    return true;
}

/* ---- life of a connection: as endpoint/link.c ---- */

static bool reap(rig_end *end) {
    const ew_env *env = end->conn.executor->env;
    if (!end->closing || end->gone)
        return false;
    end->gone = true;
    if (end->peer) {
        const ew__wire *wire = end->peer->wire;
        size_t size = end->peer->role == EW__SERVE ? wire->serve_size : wire->call_size;
        wire->gone(end->peer, end->why);
        ew__free(env, end->peer, size);
        end->peer = NULL;
    }
    ew__out_done(&end->conn.out);
    end->pair->pipe[end->side].eof = true;
    return true;
}

static ew_err attach(rig_end *end, const ew__wire *wire, ew__role role) {
    rig_side *side = &end->pair->rig->side[end->side];
    const ew_env *env = side->executor.env;
    size_t size = role == EW__SERVE ? wire->serve_size : wire->call_size;
    if (!side->scratch)
        side->scratch = ew__zalloc(env, wire->scratch_size ? wire->scratch_size : 1);
    ew__peer *peer = side->scratch ? ew__zalloc(env, size) : NULL;
    if (!peer)
        return EW_ENOMEM;
    end->conn.scratch = side->scratch;
    *peer = (ew__peer){.wire = wire, .conn = &end->conn, .role = role};
    ew_err err = wire->init(peer);
    if (err == EW_OK)
        end->peer = peer;
    else
        ew__free(env, peer, size);
    return err;
}

static void init_end(rig_pair *pair, int which) {
    rig_end *end = &pair->end[which];
    rig_side *side = &pair->rig->side[which];
    end->pair = pair;
    end->side = which;
    end->reading = true;
    end->conn = (ew__conn){.ops = &conn_ops,
                           .executor = &side->executor,
                           .site = &side->site,
                           .upgraded = !pair->rig->handshake,
                           .stdio = pair->rig->stdio};
    ew__out_init(&end->conn.out, &side->executor.blocks);
    pair->pipe[which].room = pair->rig->pipe_room;
    pair->pipe[which].cut_at = UINT64_MAX;
}

static rig_pair *new_pair(rig *r, int raw) {
    rig_pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    pair->rig = r;
    pair->next = r->pairs;
    r->pairs = pair;
    for (int i = 0; i < 2; i++) {
        init_end(pair, i);
        pair->end[i].raw = i == raw;
        if (i == raw)
            continue;
        if (attach(&pair->end[i], wire_of(r, i), i == RIG_SERVER ? EW__SERVE : EW__CALL) != EW_OK)
            end_close(&pair->end[i], EW_ENOMEM);
    }
    if (r->on_connect)
        r->on_connect(r);
    return pair;
}

uint32_t rig_capacity(const rig_pair *pair) {
    const rig_end *end = &pair->end[RIG_CLIENT];
    return end->closing || !end->peer ? 0 : end->peer->wire->capacity(end->peer);
}

/* On a wire whose callee introduces itself first, that has happened, if it could. */
rig_pair *rig_connect(rig *r) {
    rig_pair *pair = new_pair(r, -1);
    if (rig_capacity(pair) == 0)
        rig_run(r);
    return pair;
}

rig_pair *rig_connect_raw(rig *r, int raw) { return new_pair(r, raw); }

static int raw_of(const rig_pair *pair) { return pair->end[RIG_SERVER].raw ? RIG_SERVER : RIG_CLIENT; }

void rig_say(rig_pair *pair, const void *bytes, size_t n) {
    if (n > 0 && !other_end(&pair->end[raw_of(pair)])->closing)
        pipe_add(&pair->pipe[raw_of(pair)], bytes, n);
}

void rig_say_eof(rig_pair *pair) { pair->pipe[raw_of(pair)].eof = true; }

void rig_forget(rig_pair *pair, size_t n) {
    rig_end *end = &pair->end[raw_of(pair)];
    assert_true(n <= end->got_len);
    memmove(end->got, end->got + n, end->got_len - n + 1);
    end->got_len -= n;
}

void rig_cut(rig_pair *pair, int sender, rig_cut_kind kind) {
    pair->pipe[0].len = pair->pipe[1].len = 0;
    pair->pipe[0].cut_at = pair->pipe[1].cut_at = UINT64_MAX;
    pair->pipe[sender].eof = true;
    end_close(&pair->end[sender], EW_ECLOSED);
    if (kind == RIG_RESET)
        end_close(&pair->end[1 - sender], EW_ECLOSED);
}

void rig_stall(rig_pair *pair, int side, bool on) { pair->pipe[side].room = on ? 0 : pair->rig->pipe_room; }

void rig_close(rig_pair *pair, int side) { end_close(&pair->end[side], EW_OK); }

/* ---- time ---- */

static bool run_timers(rig_side *side) {
    if (side->frozen || ew__timers_next(&side->executor.timers) > side->executor.now)
        return false;
    ew__timers_run(&side->executor.timers, side->executor.now);
    return true;
}

static bool turn(rig *r) {
    bool moved = false;
    for (int i = 0; i < 2; i++) {
        ew__executor_read_clock(&r->side[i].executor);
        moved |= run_tasks(&r->side[i]);
    }
    for (rig_pair *pair = r->pairs; pair; pair = pair->next) {
        for (int i = 0; i < 2; i++) {
            moved |= flush(&pair->end[i]);
            moved |= deliver(&pair->end[i]);
            moved |= reap(&pair->end[i]);
        }
    }
    for (int i = 0; i < 2; i++)
        moved |= run_timers(&r->side[i]);
    return moved;
}

void rig_run(rig *r) {
    for (unsigned turns = 0; turn(r); turns++)
        if (turns > TURNS)
            fail_msg("%s: the world does not come to rest", r->wire->name);
}

static uint64_t next_timer(const rig *r) {
    uint64_t next = EW__NEVER;
    for (int i = 0; i < 2; i++) {
        uint64_t at = r->side[i].frozen ? EW__NEVER : ew__timers_next(&r->side[i].executor.timers);
        next = at < next ? at : next;
    }
    return next;
}

void rig_advance(rig *r, uint64_t ms) {
    uint64_t until = r->env.now_ns + EW__MS(ms);
    rig_run(r);
    for (uint64_t next; (next = next_timer(r)) <= until;) {
        if (next > r->env.now_ns)
            ew__test_env_advance(&r->env, next - r->env.now_ns);
        rig_run(r);
    }
    ew__test_env_advance(&r->env, until - r->env.now_ns);
    rig_run(r);
}

/* ---- the end of the world ---- */

void rig_check_no_hang(rig *r) {
    r->side[0].frozen = r->side[1].frozen = r->side[0].elsewhere = r->side[1].elsewhere = false;
    for (rig_pair *pair = r->pairs; pair; pair = pair->next)
        pair->pipe[0].room = pair->pipe[1].room = r->pipe_room;
    rig_advance(r, 60 * 1000);
    for (const rig_call *rc = r->calls; rc; rc = rc->next)
        if (!rc->ended && !rc->released && strcmp(rc->key, "/test/never") != 0 && strcmp(rc->key, "/test/hold") != 0)
            fail_msg("%s: a call of %s hangs", r->wire->name, rc->key);
}

static void check_call(const rig *r, const rig_call *rc) {
    unsigned expected = rc->released ? 0 : 1;
    if (rc->ended != expected || rc->after_end != 0 || rc->call)
        fail_msg("%s: a caller was told %u ends (and %u events after it), not %u", r->wire->name, rc->ended,
                 rc->after_end, expected);
}

static void free_call(rig_call *rc) {
    for (size_t i = 0; i < rc->n_chunks; i++)
        free(rc->chunks[i]);
    free(rc->chunks);
    free(rc->chunk_len);
    free(rc->result);
    free(rc->message);
    free(rc->details);
    free(rc);
}

static void finish_pairs(rig *r) {
    while (r->pairs) {
        rig_pair *pair = r->pairs;
        if (!pair->end[0].gone || !pair->end[1].gone)
            fail_msg("%s: a connection was not closed after its other end had gone", r->wire->name);
        r->pairs = pair->next;
        free(pair->end[0].got);
        free(pair->end[1].got);
        free(pair->pipe[0].bytes);
        free(pair->pipe[1].bytes);
        free(pair);
    }
}

static void finish_side(rig *r, int which) {
    rig_side *side = &r->side[which];
    const char *name = which == RIG_CLIENT ? "client" : "server";
    if (side->executor.calls->live != 0)
        fail_msg("%s: %u calls of the %s have not ended", r->wire->name, side->executor.calls->live, name);
    if (ew__timers_next(&side->executor.timers) != EW__NEVER)
        fail_msg("%s: a timer of the %s is still set", r->wire->name, name);
    const ew__wire *wire = wire_of(r, which);
    if (side->scratch && wire->scratch_done)
        wire->scratch_done(side->scratch);
    ew__free(&r->env.env, side->scratch, side->scratch ? (wire->scratch_size ? wire->scratch_size : 1) : 0);
    if (side->shared && side->other->scratch_done)
        side->other->scratch_done(side->shared);
    ew__free(&r->env.env, side->shared, side->shared ? (side->other->scratch_size ? side->other->scratch_size : 1) : 0);
    ew__call_context_done(&side->calls);
    ew__executor_done(&side->executor);
}

void rig_finish(rig *r) {
    r->side[0].frozen = r->side[1].frozen = r->side[0].elsewhere = r->side[1].elsewhere = false;
    for (rig_pair *pair = r->pairs; pair; pair = pair->next) {
        end_close(&pair->end[RIG_CLIENT], EW_OK);
        if (pair->end[RIG_SERVER].raw)
            end_close(&pair->end[RIG_SERVER], EW_OK);
    }
    rig_advance(r, 600 * 1000);
    r->held = ew_call_unref(r->held);
    finish_pairs(r);
    while (r->calls) {
        rig_call *rc = r->calls;
        check_call(r, rc);
        r->calls = rc->next;
        free_call(rc);
    }
    finish_side(r, RIG_CLIENT);
    finish_side(r, RIG_SERVER);
    if (ew__test_env_live_blocks(&r->env) != 0)
        fail_msg("%s: %zu blocks (%zu bytes) of memory are left", r->wire->name, ew__test_env_live_blocks(&r->env),
                 ew__test_env_live_bytes(&r->env));
}
