/*
 * fuzz/fuzz_http_serve.c: the serving side of the http wire: any bytes, in pieces whose size comes from
 * the first of them. Handlers echo, answer later, fail, send chunks as one batch, or act on the process:
 * the client stops reading, a minute passes, the server drains. Responses end whole, and nothing is left.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/http/http.h"
#include "wire/instance.h"

typedef struct world {
    ew__conn conn; /* first */
    ew__site site;
    bool over;    /* the wire has closed: nothing more may be sent */
    bool stalled; /* the client does not read */
    bool was_full;
} world;

/* ---- the connection ---- */

static void on_send(ew__conn *conn) {
    world *w = (world *)(void *)conn;
    check(!w->over || conn->out.bytes == 0);
    w->was_full = w->was_full || conn->out.bytes >= conn->executor->limits->out_high_bytes;
    if (!w->stalled)
        ew__out_consume(&conn->out, conn->out.bytes);
}

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { ((world *)(void *)conn)->over = true; }

static const ew__conn_ops conn_ops = {.send = on_send, .read = on_read, .finish = on_over, .abort = on_over};

static ew_err on_scrape(struct ew__scrape *scrape, ew__buf *out) {
    (void)scrape;
    return ew__buf_cstr(out, "calls 1\n");
}

/* ---- handlers ---- */

static void done_later(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "{\"key\":%q}", ew_call_key(call));
}

static void answer_later(ew_call *call, void *arg) {
    (void)arg;
    check(ew_call_after(call, 5, done_later, NULL) == EW_OK);
}

static void stall(ew_call *call, void *arg) {
    ((world *)arg)->stalled = true;
    (void)ew_call_chunk(call, ew_call_input(call));
    answer_later(call, arg);
}

static void drain(ew_call *call, void *arg) {
    ((world *)arg)->site.draining = true;
    (void)ew_call_done(call, EW_STR("true"));
}

/* The client sends nothing for a minute after this response. */
static void sleep_minute(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("null"));
    now_ns += EW__MS(60000);
}

/* ---- one input ---- */

static void settle(world *w, ew__peer *peer) {
    ew__executor *executor = w->conn.executor;
    now_ns += 1000000;
    ew__executor_read_clock(executor);
    ew__timers_run(&executor->timers, executor->now);
    if (!w->stalled || w->conn.out.bytes < 2 * executor->limits->out_high_bytes)
        return;
    w->stalled = false;
    ew__out_consume(&w->conn.out, w->conn.out.bytes);
    if (!w->over && w->was_full)
        peer->wire->drained(peer);
    w->was_full = false;
}

static void feed(world *w, ew__peer *peer, const uint8_t *data, size_t size) {
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
        settle(w, peer);
    }
}

static void add_http_actions(ew__registry *registry, world *w) {
    const struct {
        const char *key;
        ew_handler_fn fn;
    } actions[] = {{"/flow/echo", echo},         {"/flow/later", answer_later}, {"/flow/fail", fail_with_all},
                   {"/flow/batch", send_chunks}, {"/flow/same", echo},          {"/tool/same", echo},
                   {"/test/stall", stall},       {"/test/drain", drain},        {"/test/sleep", sleep_minute}};
    ew_action_options options = {.input_schema = "{\"type\":\"object\"}"};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        check(ew__registry_add(registry, actions[i].key, &ew__local_callee, NULL, actions[i].fn, w, NULL) == EW_OK);
    check(ew__registry_add(registry, "/flow/typed", &ew__local_callee, NULL, echo, NULL, &options) == EW_OK);
}

static void run(world *w, const uint8_t *data, size_t size) {
    ew__executor *executor = w->conn.executor;
    ew__peer *peer = calloc(1, ew__wire_http.serve_size);
    check(peer && w->conn.scratch);
    ew__out_init(&w->conn.out, &executor->blocks);
    *peer = (ew__peer){.wire = &ew__wire_http, .conn = &w->conn, .role = EW__SERVE};
    check(ew__wire_http.init(peer) == EW_OK);
    feed(w, peer, data, size);
    if (!w->over)
        ew__wire_http.eof(peer);
    ew__wire_http.gone(peer, EW_OK);
    now_ns += 1000000000;
    ew__executor_read_clock(executor);
    ew__timers_run(&executor->timers, executor->now); /* handlers that answer later end their calls */
    check(executor->calls->live == 0);
    ew__out_done(&w->conn.out);
    free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const hosts[] = {"example.org", NULL};
    static ew__instance instance = {.id = "0123456789abcdef", .service = {"fuzz", 4}};
    struct ew__scrape scrape = {.write = on_scrape};
    ew_env env = *ew_env_default();
    ew_limits limits = {.frame_bytes = 4096,
                        .pipeline_bytes = 1024,
                        .out_high_bytes = 512,
                        .out_low_bytes = 128,
                        .out_max_bytes = 8192};
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    env.now_ns = fuzz_now;
    env.random = fuzz_random;
    now_ns = 1000000000;
    ew_limits_complete(&limits);
    world w = {.site = {.port = 80, .allow_hosts = hosts, .scrape = &scrape}};
    w.site.instance = size % 2 ? &instance : NULL;
    check(ew__registry_init(&registry, &env) == EW_OK);
    add_http_actions(&registry, &w);
    ew__executor_init(&executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    w.site.actions = ew__registry_get(&registry);
    w.conn = (ew__conn){.ops = &conn_ops, .executor = &executor, .site = &w.site};
    w.conn.scratch = calloc(1, ew__wire_http.scratch_size);
    run(&w, data, size);
    ew__actions_unref(w.site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    free(w.conn.scratch);
    return 0;
}
