/*
 * fuzz/fuzz_http_serve.c: the whole serving side of the http wire between two memory buffers: any bytes, in pieces whose sizes come from the
 * input, answered by an echo and by a handler that answers later. Whatever comes, each answer is a whole one and nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/http.h"
#include <stdlib.h>

static uint64_t now_ns = 1000000000;

static uint64_t fuzz_now(void *ud) {
    (void)ud;
    return now_ns;
}

static bool always_here(const ew__home *home) {
    (void)home;
    return true;
}

static void never_posted(ew__home *home, ew__task *task) {
    (void)home;
    (void)task;
    abort();
}

static const ew__home_ops home_ops = {.here = always_here, .post = never_posted};

typedef struct world {
    ew__conn conn;
    bool over; /* the wire has closed: nothing more may be sent */
} world;

static void on_send(ew__conn *conn) {
    if (((world *)(void *)conn)->over && conn->out.bytes > 0)
        abort();
    ew__out_consume(&conn->out, conn->out.bytes);
}

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { ((world *)(void *)conn)->over = true; }

static const ew__conn_ops conn_ops = {.send = on_send, .read = on_read, .finish = on_over, .abort = on_over};

static void echo(ew_call *call, void *arg) {
    (void)arg;
    if (ew_json_check(ew_call_input(call), NULL) != EW_OK)
        abort(); /* what reaches a handler was validated */
    (void)ew_call_chunk(call, ew_call_input(call));
    (void)ew_call_done(call, ew_call_input(call));
}

static void done_later(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "{\"key\":%q}", ew_call_key(call));
}

static void later(ew_call *call, void *arg) {
    if (ew_call_after(call, 5, done_later, arg) != EW_OK)
        abort();
}

static void feed(ew__peer *peer, ew__home *home, const uint8_t *data, size_t size) {
    world *w = (world *)(void *)peer->conn;
    size_t step = size > 0 ? data[0] % 61 : 0; /* 0: all at once */
    for (size_t at = 0; at < size && !w->over;) {
        size_t n = step && step < size - at ? step : size - at, room = 0;
        uint8_t *place = peer->wire->reserve(peer, &room);
        if (place) {
            n = n < room ? n : room;
            memcpy(place, data + at, n);
        }
        peer->wire->input(peer, place ? place : data + at, n);
        at += n;
        now_ns += 1000000;
        ew__home_read_clock(home);
        ew__timers_run(&home->timers, home->now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    env.now_ns = fuzz_now;
    ew_limits limits = {.frame_bytes = 4096, .pipeline_bytes = 1024};
    ew_limits_complete(&limits);
    ew__registry registry;
    ew__home home = {.ops = &home_ops};
    if (ew__registry_init(&registry, &env) != EW_OK ||
        ew__registry_add(&registry, "/flow/echo", &ew__local_callee, NULL, echo, NULL, NULL) != EW_OK ||
        ew__registry_add(&registry, "/flow/later", &ew__local_callee, NULL, later, NULL, NULL) != EW_OK)
        abort();
    ew__home_init(&home, &env, &limits);
    ew__site site = {.port = 80, .actions = ew__registry_get(&registry)};
    world w = {
        .conn = {.ops = &conn_ops, .home = &home, .site = &site, .scratch = calloc(1, ew__wire_http.scratch_size)}};
    ew__out_init(&w.conn.out, &home.blocks);
    ew__peer *peer = calloc(1, ew__wire_http.serve_size);
    if (!peer || !w.conn.scratch)
        abort();
    *peer = (ew__peer){.wire = &ew__wire_http, .conn = &w.conn, .role = EW__SERVE};
    if (ew__wire_http.init(peer) != EW_OK)
        abort();
    feed(peer, &home, data, size);
    if (!w.over)
        ew__wire_http.eof(peer);
    ew__wire_http.gone(peer, EW_OK);
    now_ns += 1000000000;
    ew__home_read_clock(&home);
    ew__timers_run(&home.timers, home.now); /* the handler that answers later ends its call */
    if (home.live_calls != 0)
        abort();
    ew__out_done(&w.conn.out);
    ew__actions_unref(site.actions);
    ew__home_done(&home);
    ew__registry_done(&registry);
    free(w.conn.scratch);
    free(peer);
    return 0;
}
