/*
 * fuzz/fuzz_access.c: the serving sides of http, jsonrpc and rrq where a token is required: any bytes,
 * in pieces, from a peer that reads or does not. The first byte chooses the wire and the listener, the
 * second the size of the pieces. Nothing runs, and no connection is upgraded, unless the bytes hold the
 * token; what a peer without it makes the server keep stays small.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/http/http.h"
#include "wire/http_guest.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/reflection/reflection.h"
#include "wire/rrq/rrq.h"

#define TOKEN "ewt_right"
#define AUTH_BYTES 1024
#define OUT_HIGH 2048

enum { NOT_READING = 4, UPGRADES = 8, ONLY_UPGRADE = 16, GUEST = 32, ONLY_GUEST = 64, JOBS = 128 };

static bool reached;  /* something that requires a token */
static size_t in_use; /* bytes of memory */

typedef struct world {
    ew__conn conn;
    bool over;  /* the wire has closed */
    bool reads; /* the peer does */
} world;

static world *world_of(ew__conn *conn) { return (world *)(void *)conn; }

static void on_send(ew__conn *conn) {
    if (world_of(conn)->reads)
        ew__out_consume(&conn->out, conn->out.bytes);
}

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { world_of(conn)->over = true; }

static void on_become(ew__conn *conn, const ew__wire *wire, ew__role role, const uint8_t *rest, size_t n) {
    (void)wire;
    (void)role;
    (void)rest;
    (void)n;
    reached = true;
    on_over(conn);
}

static const ew__conn_ops conn_ops = {
    .send = on_send, .read = on_read, .finish = on_over, .abort = on_over, .become = on_become};

/* ---- what must not be reached ---- */

static void act(ew_call *call, void *arg) {
    reached = true;
    echo(call, arg);
}

static bool takes_all(const ew__site *site, ew__http_method method, ew_str path) {
    (void)path;
    return site->only_guest || method == EW__HTTP_POST;
}

static bool takes_jobs(const ew__site *site, ew__http_method method, ew_str path) {
    (void)site;
    (void)method;
    return ew__str_has_prefix(path, EW_STR("/jobs"));
}

static void on_request(ew__exchange *exchange, ew_str body) {
    ew__rpc_out message;
    (void)body;
    reached = true;
    ew__rpc_out_begin(&message, EW_STR("{}"));
    exchange->ops->answer(exchange, 200, &message, NULL);
}

static const ew__http_guest guest = {.takes = takes_all, .request = on_request};
static const ew__http_guest jobs = {.takes = takes_jobs, .request = on_request};

/* ---- one input ---- */

static void *count_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    void *grown = ew_env_default()->alloc(NULL, ptr, old_size, new_size);
    (void)ud;
    if (grown || new_size == 0)
        in_use = in_use - old_size + new_size;
    return grown;
}

static bool holds_token(const uint8_t *data, size_t size) {
    /* an escape could spell it in another way */
    return memmem(data, size, TOKEN, strlen(TOKEN)) || memchr(data, '%', size) || memchr(data, '\\', size);
}

static void feed(ew__peer *peer, size_t step, const uint8_t *data, size_t size) {
    world *w = world_of(peer->conn);
    ew__executor *executor = peer->conn->executor;
    for (size_t at = 0; at < size && !w->over;) {
        size_t n = step && step < size - at ? step : size - at, room = 0;
        uint8_t *place = peer->wire->reserve ? peer->wire->reserve(peer, &room) : NULL;
        if (place) {
            n = n < room ? n : room;
            memcpy(place, data + at, n);
        }
        peer->wire->input(peer, place ? place : data + at, n);
        at += n;
        now_ns += 1000000;
        ew__executor_read_clock(executor);
        ew__timers_run(&executor->timers, executor->now);
    }
}

static void play(ew__executor *executor, ew__site *site, const ew__wire *wire, const uint8_t *data, size_t size) {
    world w = {
        .conn = {.ops = &conn_ops, .executor = executor, .site = site, .scratch = calloc(1, wire->scratch_size + 1)},
        .reads = !(data[0] & NOT_READING)};
    ew__peer *peer = calloc(1, wire->serve_size);
    bool may = holds_token(data + 2, size - 2);
    check(peer && w.conn.scratch);
    ew__out_init(&w.conn.out, &executor->blocks);
    *peer = (ew__peer){.wire = wire, .conn = &w.conn, .role = EW__SERVE};
    check(wire->init(peer) == EW_OK);
    size_t before = in_use;
    feed(peer, data[1], data + 2, size - 2);
    check(may || !reached);
    check(may || in_use < before + size + (size_t)24 * OUT_HIGH); /* what came is kept at most once */
    if (!w.over)
        wire->eof(peer);
    wire->gone(peer, EW_OK);
    now_ns += 10000000000;
    ew__executor_read_clock(executor);
    ew__timers_run(&executor->timers, executor->now);
    check(may || !reached);
    check(executor->calls->live == 0);
    ew__out_done(&w.conn.out);
    if (wire->scratch_done)
        wire->scratch_done(w.conn.scratch);
    free(w.conn.scratch);
    free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const ew__wire *const wires[] = {&ew__wire_http, &ew__wire_jsonrpc, &ew__wire_rrq, &ew__wire_http};
    ew_env env = *ew_env_default();
    ew_limits limits = {.frame_bytes = 65536,
                        .auth_bytes = AUTH_BYTES,
                        .pipeline_bytes = 4096,
                        .batch_items = 10,
                        .out_high_bytes = OUT_HIGH,
                        .out_low_bytes = OUT_HIGH / 4};
    ew__executor executor = {.ops = &executor_ops};
    ew__registry registry;
    ew__access access;
    ew__gate gate;
    ew__tokens *tokens = NULL;
    if (size < 2)
        return 0;
    now_ns = 1000000000;
    reached = false;
    in_use = 0;
    env.now_ns = fuzz_now;
    env.random = fuzz_random;
    env.alloc = count_alloc;
    ew_limits_complete(&limits);
    check(ew__registry_init(&registry, &env) == EW_OK);
    check(ew__registry_add(&registry, "/flow/echo", &ew__local_callee, NULL, act, NULL, NULL) == EW_OK);
    ew__executor_init(&executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    ew__access_init(&access, &env, NULL);
    access.required = true;
    check(ew__tokens_one(&env, EW_STR(TOKEN), &tokens) == EW_OK);
    ew__access_set(&access, tokens);
    ew__gate_init(&gate, &access);
    executor.calls->gate = &gate;
    ew__site site = {.port = 80,
                     .actions = ew__registry_get(&registry),
                     .upgrade = data[0] & UPGRADES ? &ew__wire_reflection : NULL,
                     .only_upgrade = (data[0] & (UPGRADES | ONLY_UPGRADE)) == (UPGRADES | ONLY_UPGRADE),
                     .guest = data[0] & GUEST ? &guest : NULL,
                     .only_guest = (data[0] & (GUEST | ONLY_GUEST)) == (GUEST | ONLY_GUEST),
                     .jobs = data[0] & JOBS ? &jobs : NULL};
    play(&executor, &site, wires[data[0] & 3], data, size);
    ew__actions_unref(site.actions);
    ew__gate_done(&gate);
    ew__access_done(&access);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    check(in_use == 0);
    return 0;
}
