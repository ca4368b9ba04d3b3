/*
 * bench/manager/bench_flight.c: many requests in flight at once from one client, and what they cost in memory on both
 * sides: N calls of the demo's sleep on an RRQ runner, over so many connections. Prints the resident memory before, with
 * all in flight, and after, of this program and of the runner.
 *
 *     bench_flight RUNNER_PORT RUNNER_PID [CALLS] [CONNECTIONS]     (the runner with --limit runner_calls=CALLS/CONNECTIONS)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_MS 3000

static atomic_size_t n_done, n_failed;

static void on_end(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    (void)ud;
    if (end->status != EW_STATUS_OK && atomic_fetch_add(&n_failed, 1) == 0)
        (void)fprintf(stderr, "bench_flight: %.*s\n", (int)end->fault.message.len, end->fault.message.ptr);
    atomic_fetch_add(&n_done, 1);
}

static long rss_kib(long pid) {
    char path[64], line[256];
    long kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        (void)fclose(file);
    return kib;
}

static void pause_ms(long ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

static bool call(ew_client *client, ew_str action, ew_str input) {
    return ew_client_call(client, &(ew_request_options){.action = action, .input = input, .on_end = on_end}, NULL) ==
           EW_OK;
}

static void wait_for(size_t n) {
    for (int i = 0; i < 3000 && atomic_load(&n_done) < n; i++)
        pause_ms(10);
}

int main(int argc, char **argv) {
    long runner = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    size_t calls = argc > 3 ? strtoul(argv[3], NULL, 10) : 10000;
    size_t connections = argc > 4 ? strtoul(argv[4], NULL, 10) : 64, opened = 1;
    char target[40], input[40];
    const char *problem = "";
    ew_client *client = NULL;
    if (argc < 3 || connections == 0) {
        (void)fprintf(stderr, "bench_flight RUNNER_PORT RUNNER_PID [CALLS] [CONNECTIONS]\n");
        return 2;
    }
    (void)snprintf(target, sizeof target, "rrq://127.0.0.1:%.6s", argv[1]);
    (void)snprintf(input, sizeof input, "{\"ms\":%d}", SLEEP_MS);
    ew_client_options options = {.limits = {.runner_calls = (calls + connections - 1) / connections,
                                            .client_connections = connections,
                                            .client_queue = calls,
                                            .calls = 2 * calls}};
    if (ew_client_new(target, &options, &client, &problem) != EW_OK || !call(client, EW_STR("echo"), EW_STR("{}"))) {
        (void)fprintf(stderr, "bench_flight: %s\n", problem);
        return 1;
    }
    wait_for(1);
    long before[2] = {rss_kib(getpid()), rss_kib(runner)};
    for (size_t i = 0; i < calls; i++)
        opened += call(client, EW_STR("sleep"), ew_str_from(input));
    pause_ms(SLEEP_MS * 2 / 3);
    size_t early = atomic_load(&n_done) - 1;
    long during[2] = {rss_kib(getpid()), rss_kib(runner)};
    wait_for(opened);
    long after[2] = {rss_kib(getpid()), rss_kib(runner)};
    printf("%zu requests in flight over %zu connections (%zu ended early, %zu failed, %zu of %zu answered)\n",
           opened - 1, connections, early, atomic_load(&n_failed), atomic_load(&n_done), opened);
    for (int i = 0; i < 2; i++)
        printf("  %s: %ld KiB before, %ld with all in flight (%.2f KiB each), %ld after\n", i ? "runner" : "caller",
               before[i], during[i], (double)(during[i] - before[i]) / (double)calls, after[i]);
    bool good = atomic_load(&n_done) == calls + 1 && atomic_load(&n_failed) == 0 && early == 0;
    client = ew_client_free(client);
    return good ? 0 : 1;
}
