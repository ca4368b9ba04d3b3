/*
 * cli/waiting.c: what a verb that calls waits for: for the line that tells of it (progress.c), and for people who have to
 * do something meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>
#include <unistd.h>

#define AWAIT_STEPS 20
#define AWAIT_STEP_MS 50

/* "ws://127.0.0.1:3200": where the peer is to dial; the port is the one that was found. */
static void address_of(const char *target, const ew_client *client, char *out, size_t size) {
    const ew_scheme *scheme = ew__cli_scheme(target);
    const char *address = target + strlen(scheme->text);
    int host = (int)strlen(address);
    while (host > 0 && address[host] != ':') {
        host--;
    }
    (void)snprintf(out, size, "%s%.*s:%d", scheme->dial_url, host, address, ew_client_port(client));
}

static void tell_runtime(const char *target, const ew_client *client, bool started, char *out, size_t size) {
    const ew_scheme *scheme = ew__cli_scheme(target);
    char address[200];
    address_of(target, client, address, sizeof address);
    if (started) {
        (void)snprintf(out, size, "waiting for the runtime that was started to dial %s", address);
    } else {
        (void)snprintf(out, size, "waiting for %s to dial %s: start it with %s%s", scheme->dialler, address,
                       scheme->dial_how, address);
    }
}

static void describe(void *ud, char *out, size_t size) {
    ew__waiting *w = ud;
    unsigned long long chunks = atomic_load(&w->chunks);
    if (ew__cli_is_awaited(w->target) && ew_client_runtimes(w->client) == 0) {
        tell_runtime(w->target, w->client, w->starts, out, size);
    } else if (!atomic_load(&w->opened)) {
        (void)snprintf(out, size, "%s %.200s", w->starts ? "starting" : "connecting to", w->target);
    } else if (chunks > 0) {
        (void)snprintf(out, size, "%.200s: %llu %s so far", w->what, chunks, chunks == 1 ? "chunk" : "chunks");
    } else {
        (void)snprintf(out, size, "waiting for %.200s at %.200s", w->what, w->target);
    }
}

static void on_frame(void *ud, const ew_frame *frame) {
    (void)frame;
    atomic_store(&((ew__waiting *)ud)->opened, true);
}

void ew__waiting_with(ew__waiting *w, ew_client_options *options) {
    w->starts = options->command && options->command[0];
    if (options->trace_frames) {
        atomic_store(&w->opened, true); /* frames are shown: they tell more */
    } else if (isatty(STDERR_FILENO)) {
        options->trace_frames = on_frame;
        options->trace_ud = w;
        options->trace_bytes = 1;
    }
}

void ew__waiting_begin(ew__waiting *w, const ew_client *client) {
    w->client = client;
    ew__progress_start(describe, w);
}

void ew__cli_await(const char *target, const ew_client *client, ew_request *request) {
    char line[600];
    ew_end end;
    if (!ew__cli_is_awaited(target)) {
        return;
    }
    for (int i = 0; i < AWAIT_STEPS; i++) {
        if (ew_client_runtimes(client) > 0 || ew_request_wait(request, AWAIT_STEP_MS, &end) != EW_ETIMEOUT) {
            return;
        }
    }
    if (isatty(STDERR_FILENO)) {
        tell_runtime(target, client, false, line, sizeof line);
        (void)fprintf(stderr, "%s\n", line);
    }
}
