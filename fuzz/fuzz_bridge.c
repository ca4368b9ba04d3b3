/*
 * fuzz/fuzz_bridge.c: calls that a bridge forwards from a connection that serves one wire to a connection that calls on
 * another, with hostile bytes from both peers. The first byte of the input chooses the two wires, the second the size of
 * the pieces in which bytes arrive. Further bytes come from one of the two peers; 0xff with the byte behind it is an
 * event: the other peer speaks, time passes, a peer stops reading, ends its output or goes away.
 *
 * Whatever happens: lines that leave are JSON, every call ends, and nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/bridge.h"
#include "session.h"

#define KEY "/flow/a"

typedef struct end {
    ew__conn conn; /* first */
    ew__peer *peer;
    size_t size; /* of the peer */
    ew__site site;
    ew__buf line; /* what leaves, as far as a line is not whole; jsonrpc only */
    bool over;    /* the wire has closed */
    bool stalled; /* the peer does not read */
    bool was_full, saw_eof;
} end;

typedef struct world {
    ew__upstream base; /* first */
    ew__executor executor;
    end inbound, outbound;
    void *scratch[2];
} world;

/* ---- connections ---- */

static void on_send(ew__conn *conn) {
    end *e = (end *)(void *)conn;
    e->was_full = e->was_full || conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on; /* what was on its way already arrives nevertheless */
}

static void on_over(ew__conn *conn) { ((end *)(void *)conn)->over = true; }

static const ew__conn_ops conn_ops = {.send = on_send, .read = on_read, .finish = on_over, .abort = on_over};

static void check_lines(end *e) {
    const char *newline;
    while (e->line.len > 0 && (newline = memchr(e->line.ptr, '\n', e->line.len)) != NULL) {
        size_t n = (size_t)(newline - e->line.ptr);
        check(ew_json_check(ew__str(e->line.ptr, n), NULL) == EW_OK);
        ew__buf_drop(&e->line, n + 1);
    }
}

static void take_output(end *e) {
    ew__out *out = &e->conn.out;
    bool lines = strcmp(e->peer->wire->name, "jsonrpc") == 0 && e->site.options == 0;
    while (!e->stalled && out->bytes > 0) {
        ew__out_vec vec[1];
        check(ew__out_peek(out, vec, 1) == 1);
        if (lines)
            check(ew__buf_add(&e->line, vec[0].ptr, vec[0].len) == EW_OK);
        ew__out_consume(out, vec[0].len);
    }
    if (e->line.len > 0 && memcmp(e->line.ptr, "C", 1) == 0) /* the peer has chosen heads with a length */
        ew__buf_clear(&e->line);
    check_lines(e);
    if (!e->over && e->was_full && out->bytes <= e->conn.executor->limits->out_low_bytes) {
        e->was_full = false;
        e->peer->wire->drained(e->peer);
    }
}

static void settle(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    take_output(&w->inbound);
    take_output(&w->outbound);
    ew__executor_read_clock(&w->executor);
    ew__timers_run(&w->executor.timers, w->executor.now);
    take_output(&w->inbound);
    take_output(&w->outbound);
}

/* ---- the bridge's way out ---- */

static void on_upstream_open(ew_call *call) {
    end *outbound = call->callee_ud;
    ew__peer *peer = outbound->peer;
    if (outbound->over || peer->wire->open(peer, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("lost"));
}

static const ew__callee_ops upstream_opening = {.open = on_upstream_open};

static void open_upstream(ew__upstream *upstream, ew_call *call) {
    ew__call_open_on(call, &upstream_opening, &((world *)(void *)upstream)->outbound);
}

static void free_upstream(ew__upstream *upstream) { (void)upstream; }

static void add_bridge(world *w, ew__registry *registry, const ew_env *env) {
    ew__upstream *upstream = &w->base;
    ew__action *action = NULL;
    const ew_str name = EW_STR(KEY);
    atomic_init(&upstream->refs, 1);
    upstream->open = open_upstream;
    upstream->free = free_upstream;
    upstream->refuses = w->outbound.peer->wire->refuses;
    upstream->wire = w->outbound.peer->wire->name;
    ew__bridge *bridge = ew__bridge_new(env, &upstream, &name, 1);
    check(bridge && ew__action_new_remote(env, EW_STR("peer"), name, EW_STR("{\"key\":\"" KEY "\",\"name\":\"a\"}"),
                                          &ew__bridge_callee, bridge, ew__bridge_drop, &action) == EW_OK);
    check(ew__registry_set_remotes(registry, &action, 1) == EW_OK);
    ew__action_unref(action);
}

/* ---- what happens ---- */

/* Into the peer's own memory if it has a wish, else into a block of exactly this size. */
static size_t say(end *e, const uint8_t *bytes, size_t n) {
    size_t room = 0;
    const ew__wire *wire = e->peer->wire;
    uint8_t *place = wire->reserve ? wire->reserve(e->peer, &room) : NULL, *copy = NULL;
    if (place && room > 0)
        n = n < room ? n : room;
    else
        place = copy = malloc(n);
    check(place != NULL);
    memcpy(place, bytes, n);
    wire->input(e->peer, place, n);
    free(copy);
    return n;
}

static void act(world *w, end **speaker, uint8_t what) {
    end *e = what & 1 ? &w->outbound : &w->inbound;
    switch (what >> 5) {
    case 0:
    case 1:
        *speaker = e;
        break;
    case 2:
        settle(w, (uint64_t)1 << (what & 15));
        break;
    case 3:
        e->stalled = (what & 2) != 0;
        break;
    case 4:
        if (!e->over && !e->saw_eof)
            e->peer->wire->eof(e->peer);
        e->saw_eof = true;
        break;
    case 5:
        e->over = true; /* the connection breaks: its peer learns of it at the end */
        ew__out_consume(&e->conn.out, e->conn.out.bytes);
        break;
    default:
        if (!e->over)
            e->peer->wire->drain(e->peer);
    }
}

static void feed(world *w, const uint8_t *data, size_t size) {
    size_t step = size > 0 ? data[0] % 61 : 0; /* 0: all at once */
    end *speaker = &w->inbound;
    for (size_t at = 1; at < size && !(w->inbound.over && w->outbound.over);) {
        const uint8_t *mark = memchr(data + at, 0xff, size - at);
        size_t n = mark ? (size_t)(mark - data) - at : size - at;
        if (n == 0) {
            act(w, &speaker, at + 1 < size ? data[at + 1] : 0);
            at += 2;
        } else if (speaker->over || speaker->saw_eof) {
            at += n;
        } else {
            at += say(speaker, data + at, step && step < n ? step : n);
        }
        settle(w, 0);
    }
}

/* ---- a session ---- */

static void begin_end(world *w, end *e, const ew__wire *wire, ew__role role, void *scratch) {
    e->size = role == EW__SERVE ? wire->serve_size : wire->call_size;
    e->peer = calloc(1, e->size);
    check(e->peer != NULL && scratch != NULL);
    e->site.port = 80;
    e->site.authority = EW_STR("localhost");
    e->conn = (ew__conn){.ops = &conn_ops, .executor = &w->executor, .site = &e->site, .scratch = scratch};
    ew__out_init(&e->conn.out, &w->executor.blocks);
    ew__buf_init(&e->line, ew_env_default(), SIZE_MAX / 2);
    *e->peer = (ew__peer){.wire = wire, .conn = &e->conn, .role = role};
}

static void finish_end(end *e) {
    ew__buf_done(&e->line);
    ew__out_done(&e->conn.out);
    free(e->peer);
}

static void run(world *w, const uint8_t *data, size_t size) {
    check(w->inbound.peer->wire->init(w->inbound.peer) == EW_OK);
    check(w->outbound.peer->wire->init(w->outbound.peer) == EW_OK);
    feed(w, data, size);
    settle(w, 100);
    w->inbound.over = w->outbound.over = true;
    bool first = size > 1 && data[1] % 2; /* which of the two is lost first */
    end *ends[2] = {first ? &w->outbound : &w->inbound, first ? &w->inbound : &w->outbound};
    for (size_t i = 0; i < 2; i++) {
        ew__out_consume(&ends[i]->conn.out, ends[i]->conn.out.bytes);
        ends[i]->peer->wire->gone(ends[i]->peer, i ? EW_ECONNECT : EW_OK);
    }
    now_ns += EW__MS(120000);
    ew__executor_read_clock(&w->executor);
    ew__timers_run(&w->executor.timers, w->executor.now);
    check(w->executor.calls->live == 0 && ew__timers_next(&w->executor.timers) == EW__NEVER);
    check(atomic_load(&w->base.calls) == 0);
}

static void free_scratch(const ew__wire *wire, void *scratch) {
    if (wire->scratch_done)
        wire->scratch_done(scratch);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"jsonrpc", "rrq", "http"};
    ew_env env = *ew_env_default();
    ew_limits limits = {.frame_bytes = 4096,
                        .out_high_bytes = 512,
                        .out_low_bytes = 128,
                        .out_max_bytes = 8192,
                        .in_queue_items = 4,
                        .calls_per_connection = 10};
    if (size < 2)
        return 0;
    env.now_ns = fuzz_now;
    env.random = fuzz_random;
    now_ns = 1000000000;
    ew_limits_complete(&limits);
    const ew__wire *in = ew__wire_by_name(ew_str_from(names[data[0] % 3]));
    const ew__wire *out = ew__wire_by_name(ew_str_from(names[data[0] / 3 % 3]));
    world w = {.executor = {.ops = &executor_ops}};
    ew__registry registry;
    check(in && out && ew__registry_init(&registry, &env) == EW_OK);
    ew__executor_init(&w.executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &w.executor);
    w.scratch[0] = calloc(1, in->scratch_size + 1);
    w.scratch[1] = calloc(1, out->scratch_size + 1);
    begin_end(&w, &w.inbound, in, EW__SERVE, w.scratch[0]);
    begin_end(&w, &w.outbound, out, EW__CALL, w.scratch[1]);
    add_bridge(&w, &registry, &env);
    w.inbound.site.actions = ew__registry_get(&registry);
    run(&w, data + 1, size - 1);
    ew__actions_unref(w.inbound.site.actions);
    ew__registry_done(&registry);
    finish_end(&w.inbound);
    finish_end(&w.outbound);
    free_scratch(in, w.scratch[0]);
    free_scratch(out, w.scratch[1]);
    ew__call_context_done(&calls);
    ew__executor_done(&w.executor);
    return 0;
}
