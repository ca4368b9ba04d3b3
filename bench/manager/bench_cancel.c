/*
 * bench/manager/bench_cancel.c: from ew_request_cancel to the handler's on_cancel, over a real socket, both ends ours:
 * two loop threads in this process, one clock. Prints p50, p99 and the longest.
 *
 *     bench_cancel reflection|jsonrpc [ROUNDS]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sem_t opened;
static _Atomic uint64_t told_at; /* of the round; 0: not yet */

static uint64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    atomic_store(&told_at, now_ns());
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "cancelled");
}

static void wait_for_it(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    (void)sem_post(&opened);
}

static bool opened_in_time(void) {
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    return sem_timedwait(&opened, &end) == 0;
}

/* Nanoseconds, or 0 when something went wrong. */
static uint64_t one_round(ew_client *client) {
    ew_request *request = NULL;
    ew_end end;
    uint64_t took = 0;
    atomic_store(&told_at, 0);
    ew_request_options options = {.action = EW_STR("/flow/wait"), .input = EW_STR("{}")};
    if (ew_client_call(client, &options, &request) != EW_OK)
        return 0;
    if (opened_in_time()) {
        struct timespec pause = {.tv_nsec = 200000}; /* both loops are asleep again: a cancel usually comes so */
        (void)nanosleep(&pause, NULL);
        uint64_t began = now_ns();
        ew_request_cancel(request);
        if (ew_request_wait(request, 10000, &end) == EW_OK && atomic_load(&told_at) > began)
            took = atomic_load(&told_at) - began;
    }
    (void)ew_request_free(request);
    return took;
}

/* The two ends, connected as the wire has it: a runtime dials its manager, a server is dialled. */
static ew_err connect_ends(const char *wire, ew_app *app, ew_client **client) {
    char text[60];
    const char *problem = NULL;
    if (strcmp(wire, "reflection") == 0) {
        ew_err err = ew_client_new("reflection://127.0.0.1:0", NULL, client, &problem);
        (void)snprintf(text, sizeof text, "ws://127.0.0.1:%d", err == EW_OK ? ew_client_port(*client) : 0);
        if (err == EW_OK)
            err = ew_app_connect(app, text);
        return err == EW_OK ? ew_app_start(app) : err;
    }
    int port = 0;
    ew_err err = ew_app_listen(app, "jsonrpc=127.0.0.1:0");
    if (err == EW_OK)
        err = ew_app_start(app);
    if (err == EW_OK)
        err = ew_app_listener(app, 0, NULL, NULL, &port);
    (void)snprintf(text, sizeof text, "jsonrpc://127.0.0.1:%d", port);
    return err == EW_OK ? ew_client_new(text, NULL, client, &problem) : err;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    const char *wire = argc > 1 ? argv[1] : "reflection";
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5000, n = 0;
    uint64_t *took = calloc(rounds + 1, sizeof *took);
    ew_app *app = ew_app_new_with("cancel", &(ew_app_options){.threads = 1});
    ew_client *client = NULL;
    if (!took || !app || rounds == 0 || sem_init(&opened, 0, 0) != 0 ||
        ew_app_action(app, "/flow/wait", wait_for_it, NULL, NULL) != EW_OK ||
        connect_ends(wire, app, &client) != EW_OK) {
        (void)fprintf(stderr, "bench_cancel: %s\n", app ? ew_app_error(app) : "no memory");
        return 1;
    }
    for (size_t i = 0; i < rounds && n == i; i++) {
        took[n] = one_round(client);
        n += took[n] > 0;
    }
    if (n == rounds) {
        qsort(took, n, sizeof *took, by_size);
        printf("%s wire, cancel to on_cancel, %zu rounds: p50 %.0f us, p99 %.0f us, most %.0f us\n", wire, n,
               (double)took[n / 2] / 1e3, (double)took[n * 99 / 100] / 1e3, (double)took[n - 1] / 1e3);
    } else {
        (void)fprintf(stderr, "bench_cancel: round %zu failed\n", n);
    }
    client = ew_client_free(client);
    app = ew_app_free(app);
    free(took);
    return n == rounds ? 0 : 1;
}
