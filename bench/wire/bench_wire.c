/*
 * bench/wire/bench_wire.c: the serving side of a wire without sockets: requests are fed from memory, answers thrown
 * away. Prints nanoseconds of CPU per request; under `valgrind --tool=callgrind` it gives instruction counts that no
 * other load disturbs.
 *
 *     bench_wire WIRE [ROUNDS] [REQUESTS-PER-ROUND] [PAYLOAD-BYTES] [DEPTH]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static bool always_here(const ew__executor *executor) {
    (void)executor;
    return true;
}

static const ew__executor_ops executor_ops = {.here = always_here};

static void throw_away(ew__conn *conn) { ew__out_consume(&conn->out, conn->out.bytes); }

static void read_on(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void closed(ew__conn *conn) {
    (void)conn;
    (void)fprintf(stderr, "the server closed the connection\n");
    exit(1);
}

static const ew__conn_ops conn_ops = {.send = throw_away, .read = read_on, .finish = closed, .abort = closed};

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t head(const char *wire, char *out, size_t capacity, size_t payload, unsigned i) {
    if (strcmp(wire, "http") == 0)
        return (size_t)snprintf(out, capacity,
                                "POST /echo HTTP/1.1\r\nHost: 127.0.0.1:3400\r\nContent-Type: "
                                "application/json\r\nContent-Length: %zu\r\n\r\n{\"data\":",
                                payload + 9);
    return (size_t)snprintf(out, capacity, "{\"jsonrpc\":\"2.0\",\"id\":\"%u\",\"method\":\"echo\",\"params\":", i);
}

/* DEPTH requests with a payload like the load generator's. */
static size_t make_requests(const char *wire, char *out, size_t capacity, size_t payload, unsigned depth) {
    size_t at = 0, text = payload - 11;
    for (unsigned i = 0; i < depth; i++) {
        at += head(wire, out + at, capacity - at, payload, i);
        at += (size_t)snprintf(out + at, capacity - at, "{\"text\":\"");
        memset(out + at, 'x', text);
        at += text;
        at += (size_t)snprintf(out + at, capacity - at, strcmp(wire, "http") == 0 ? "\"}}" : "\"}}\n");
    }
    return at;
}

int main(int argc, char **argv) {
    const ew__wire *wire = argc > 1 ? ew__wire_by_name(ew_str_from(argv[1])) : NULL;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
    unsigned requests = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 200000;
    size_t payload = argc > 4 ? strtoul(argv[4], NULL, 10) : 100;
    unsigned depth = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 16;
    if (!wire) {
        (void)fprintf(stderr, "bench_wire http|jsonrpc [ROUNDS] [REQUESTS-PER-ROUND] [PAYLOAD-BYTES] [DEPTH]\n");
        return 2;
    }
    const ew_env *env = ew_env_default();
    ew_limits limits = {0};
    ew_limits_complete(&limits);
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    if (ew__registry_init(&registry, env) != EW_OK ||
        ew__registry_add(&registry, "/flow/echo", &ew__local_callee, NULL, echo, NULL, NULL) != EW_OK)
        return 1;
    ew__executor_init(&executor, env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    ew__site site = {.port = 3400, .actions = ew__registry_get(&registry)};
    ew__conn conn = {
        .ops = &conn_ops, .executor = &executor, .site = &site, .scratch = calloc(1, wire->scratch_size + 1)};
    ew__out_init(&conn.out, &executor.blocks);
    ew__peer *peer = calloc(1, wire->serve_size);
    size_t capacity = (payload + 300) * depth;
    char *bytes = malloc(capacity);
    if (!peer || !bytes || !conn.scratch)
        return 1;
    peer->wire = wire;
    peer->conn = &conn;
    peer->role = EW__SERVE;
    if (wire->init(peer) != EW_OK)
        return 1;
    size_t n = make_requests(wire->name, bytes, capacity, payload, depth);
    double best = 1e18;
    for (unsigned r = 0; r < rounds; r++) {
        double t0 = cpu_ns();
        for (unsigned i = 0; i < requests; i += depth) {
            ew__executor_read_clock(&executor);
            wire->input(peer, (const uint8_t *)bytes, n);
        }
        double ns = (cpu_ns() - t0) / requests;
        best = ns < best ? ns : best;
    }
    printf("%s wire, %zu B payload, %u deep: best of %u rounds %.0f ns CPU per request (no kernel)\n", wire->name,
           payload, depth, rounds, best);
    wire->gone(peer, EW_OK);
    ew__out_done(&conn.out);
    ew__actions_unref(site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    free(conn.scratch);
    free(peer);
    free(bytes);
    return 0;
}
