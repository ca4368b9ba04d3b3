/*
 * bench/tracing/bench_tracing.c: what tracing costs a call. Apps that differ only in their telemetry are loaded in turn
 * over the http wire, round by round: off; on, to a server on loopback that answers at once; on and realtime; on, with
 * nobody listening. Prints calls per second and CPU time of the loop's thread per call, and the ratio to off in the
 * same round (the median of the rounds). Before that the same without the kernel: what a call of our own costs when its span
 * is not wanted, dropped, queued and written.
 *
 *     bench_tracing [ROUNDS] [MILLISECONDS] [CONNECTIONS]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "support/port.h"
#include "support/sink.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define APPS 4
#define ROUNDS_MAX 99
#define CONNECTIONS_MAX 256

static const char request[] = "POST /echo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                              "Content-Length: 109\r\n\r\n{\"data\":{\"text\":\"%089d\"}}";

typedef struct target {
    const char *name;
    ew_app *app;
    int port;
    int fds[CONNECTIONS_MAX];
    double rate[ROUNDS_MAX], cpu[ROUNDS_MAX], rate_ratio[ROUNDS_MAX], cpu_ratio[ROUNDS_MAX];
} target;

static void die(const char *what) {
    (void)fprintf(stderr, "bench_tracing: %s\n", what);
    exit(1);
}

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static double seconds(clockid_t clock) {
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start(target *t, const char *name, const char *telemetry, bool realtime, unsigned connections) {
    ew_app_options options = {.threads = 1, .telemetry = telemetry, .telemetry_realtime = realtime};
    t->name = name;
    t->app = ew_app_new_with(name, &options);
    if (!t->app || ew_app_action(t->app, "/flow/echo", echo, NULL, NULL) != EW_OK ||
        ew_app_listen(t->app, "http=127.0.0.1:0") != EW_OK || ew_app_start(t->app) != EW_OK ||
        ew_app_listener(t->app, 0, NULL, NULL, &t->port) != EW_OK)
        die("cannot start an app");
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)t->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (unsigned i = 0; i < connections; i++) {
        t->fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (t->fds[i] < 0 || connect(t->fds[i], (struct sockaddr *)&at, sizeof at) != 0)
            die("cannot connect");
    }
}

/* One request on each connection, then all answers. */
static void batch(const target *t, unsigned connections, const char *text, size_t n) {
    char answer[4096];
    for (unsigned i = 0; i < connections; i++)
        if (send(t->fds[i], text, n, 0) != (ssize_t)n)
            die("cannot send");
    for (unsigned i = 0; i < connections; i++)
        if (recv(t->fds[i], answer, sizeof answer, 0) < 100 || memcmp(answer, "HTTP/1.1 200", 12) != 0)
            die("no answer");
}

static void load(target *t, unsigned round, double length, unsigned connections) {
    char text[512];
    clockid_t cpu;
    int n = snprintf(text, sizeof text, request, t->port, 7);
    if (pthread_getcpuclockid(t->app->loops[0].thread, &cpu) != 0)
        die("no clock");
    double begin = seconds(CLOCK_MONOTONIC), used = seconds(cpu), calls = 0, now;
    do {
        batch(t, connections, text, (size_t)n);
        calls += connections;
        now = seconds(CLOCK_MONOTONIC);
    } while (now - begin < length);
    t->rate[round] = calls / (now - begin);
    t->cpu[round] = (seconds(cpu) - used) / calls * 1e9;
}

/* ---- without the kernel ---- */

static bool always_here(const ew__executor *executor) {
    (void)executor;
    return true;
}

static const ew__executor_ops executor_ops = {.here = always_here};

static void release(ew_call *call, const ew__end *end) {
    (void)end;
    ew__call_release(call);
}

static const ew__caller_ops caller = {.end = release};

enum { CALLS = 200000, KEEP = 1000 };

/* take: the texts are asked for, which empties the queue; else it fills and the rest is dropped. */
static double call_ns(ew__executor *executor, ew__spans *spans, ew__action *action, bool take, ew__buf *body) {
    double best = 1e18;
    for (int round = 0; round < 5; round++) {
        double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < CALLS; i++) {
            ew_call *call = ew__call_new(executor, &caller, NULL);
            if (!call)
                die("no memory");
            call->input = EW_STR(
                "{\"text\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}");
            ew__call_open(call, action);
            if (!take || i % KEEP != KEEP - 1)
                continue;
            while (ew__spans_next(spans, body))
                ew__spans_told(spans, true);
        }
        double ns = (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS * 1e9;
        best = ns < best ? ns : best;
    }
    return best;
}

static void without_kernel(void) {
    const ew_env *env = ew_env_default();
    ew_limits limits = {0};
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    ew__action *action = NULL;
    ew__spans spans;
    ew__buf body;
    ew_limits_complete(&limits);
    if (ew__registry_init(&registry, env) != EW_OK ||
        ew__registry_add(&registry, "/flow/echo", &ew__local_callee, NULL, echo, NULL, NULL) != EW_OK)
        die("no memory");
    ew__executor_init(&executor, env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    ew__actions *actions = ew__registry_get(&registry);
    if (ew__actions_find(actions, EW_STR("/flow/echo"), &action) != EW_OK)
        die("no action");
    ew__spans_init(&spans, &executor);
    ew__buf_init(&body, env, 1 << 24);
    double off = call_ns(&executor, &spans, action, false, &body);
    ew__spans_enable(&spans, true, false);
    double full = call_ns(&executor, &spans, action, false, &body);
    while (ew__spans_next(&spans, &body))
        ew__spans_told(&spans, true);
    double written = call_ns(&executor, &spans, action, true, &body);
    printf("without the kernel, ns CPU per call: off %.0f; queue full %+.0f; queued and written %+.0f\n", off,
           full - off, written - off);
    ew__buf_done(&body);
    ew__spans_done(&spans);
    ew__actions_unref(actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
}

/* ---- the report ---- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned n) {
    qsort(values, n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void report(target *t, unsigned rounds) {
    uint64_t exported = 0, dropped = 0;
    ew__app_telemetry_count(t->app, &exported, &dropped);
    printf("%-20s %8.0f calls/s (%.2f of off) %6.0f ns CPU per call (%.2f of off); %llu spans sent, %llu dropped\n",
           t->name, median(t->rate, rounds), median(t->rate_ratio, rounds), median(t->cpu, rounds),
           median(t->cpu_ratio, rounds), (unsigned long long)exported, (unsigned long long)dropped);
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 9;
    double length = argc > 2 ? strtod(argv[2], NULL) / 1000 : 1.0;
    unsigned connections = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 64;
    static target targets[APPS];
    static sink server;
    char url[64], nobody[64];
    if (rounds < 1 || rounds > ROUNDS_MAX || connections < 1 || connections > CONNECTIONS_MAX)
        die("ROUNDS to 99, CONNECTIONS to 256");
    without_kernel();
    if (!sink_start(&server, 0, false))
        die("no telemetry server");
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", server.port);
    (void)snprintf(nobody, sizeof nobody, "http://127.0.0.1:%u", free_port());
    start(&targets[0], "off", NULL, false, connections);
    start(&targets[1], "on", url, false, connections);
    start(&targets[2], "on, realtime", url, true, connections);
    start(&targets[3], "on, server away", nobody, false, connections);
    for (unsigned i = 0; i < APPS; i++) /* credits and queues as they are under load */
        load(&targets[i], 0, 0.5, connections);
    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned i = 0; i < APPS; i++)
            load(&targets[(i + r) % APPS], r, length, connections);
        for (unsigned i = 0; i < APPS; i++) {
            targets[i].rate_ratio[r] = targets[i].rate[r] / targets[0].rate[r];
            targets[i].cpu_ratio[r] = targets[i].cpu[r] / targets[0].cpu[r];
        }
    }
    printf("tracing, %u connections, 100 B, %u rounds of %.1f s:\n", connections, rounds, length);
    for (unsigned i = 0; i < APPS; i++)
        report(&targets[i], rounds);
    for (unsigned i = 0; i < APPS; i++) {
        for (unsigned k = 0; k < connections; k++)
            close(targets[i].fds[k]);
        ew_app_free(targets[i].app);
    }
    sink_stop(&server);
    return 0;
}
