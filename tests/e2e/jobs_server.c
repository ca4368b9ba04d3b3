/*
 * tests/e2e/jobs_server.c: a program with jobs, for test_jobs_http.py: jobs_server STORE ROLE [OPTIONS of every serving
 * program]. ROLE is worker; producer; runner, a worker that gives its jobs to processes of this program; or plain, what
 * those are.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

/* {"n":3,"ms":20}: a chunk every so often, then the number. */
static void count_next(ew_call *call, void *arg) {
    int64_t *at = arg, n = 3, ms = 1;
    if (!ew_call_input_int(call, "/n", &n) || !ew_call_input_int(call, "/ms", &ms))
        return;
    if (*at == n) {
        (void)ew_call_donef(call, "{\"counted\":%lld}", (long long)n);
        return;
    }
    ew_err err = ew_call_chunkf(call, "{\"i\":%lld,\"text\":\"\xc3\xa4\"}", (long long)++*at);
    if (err == EW_FULL)
        (void)ew_call_on_room(call, count_next, at);
    else
        (void)ew_call_after(call, (uint64_t)ms, count_next, at);
}

static void count_up(ew_call *call, void *arg) {
    int64_t *at = ew_call_alloc(call, sizeof *at);
    (void)arg;
    if (!at) {
        (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    *at = 0;
    count_next(call, at);
}

static void fail(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail_with(
        call,
        &(ew_fault){.status = EW_STATUS_PERMISSION_DENIED, .message = EW_STR("no"), .details = EW_STR("{\"why\":1}")});
}

static void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "told to stop");
}

static void forever(ew_call *call, void *arg) {
    (void)ew_call_chunk(call, EW_STR("{\"i\":1}"));
    (void)ew_call_on_cancel(call, on_cancel, arg);
}

static void trace(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "%q", ew_call_trace_id(call));
}

static void where(ew_call *call, void *arg) {
    char folder[1000];
    const char *var = getenv("EW_TEST_VAR");
    (void)arg;
    (void)ew_call_donef(call, "{\"folder\":%Q,\"var\":%Q,\"pid\":%d,\"wire\":%q}", getcwd(folder, sizeof folder), var,
                        (int)getpid(), ew_call_wire(call));
}

static ew_err be_worker(ew_app *app, char **argv) {
    const char *const command[] = {argv[0], argv[1], "plain", NULL}, *const vars[] = {"*", "EW_TEST_VAR=set", NULL};
    ew_worker_runner runner = {.name = "self",
                               .target = "rrq://127.0.0.1:0",
                               .command = command,
                               .processes = 2,
                               .max_in_flight = 2,
                               .env = vars,
                               .cwd = "/"};
    ew_worker_options options = {.base_retry_ms = 5, .max_retry_ms = 20};
    if (strcmp(argv[2], "runner") == 0) {
        options.runners = &runner;
        options.n_runners = 1;
        options.default_runner = "self";
    }
    return ew_app_worker(app, &options);
}

int main(int argc, char **argv) {
    ew_app *app = ew_app_new("jobs");
    if (!app || argc < 3)
        return 2;
    bool plain = strcmp(argv[2], "plain") == 0, producer = strcmp(argv[2], "producer") == 0;
    bool ok = ew_app_action(app, "/flow/echo", echo, NULL, NULL) == EW_OK &&
              ew_app_action(app, "/flow/count", count_up, NULL, NULL) == EW_OK &&
              ew_app_action(app, "/flow/fail", fail, NULL, NULL) == EW_OK &&
              ew_app_action(app, "/flow/forever", forever, NULL, NULL) == EW_OK &&
              ew_app_action(app, "/flow/trace", trace, NULL, NULL) == EW_OK &&
              ew_app_action(app, "/flow/where", where, NULL, NULL) == EW_OK &&
              (plain || ew_app_jobs(app, argv[1], NULL) == EW_OK) &&
              (plain || producer || be_worker(app, argv) == EW_OK);
    if (!ok) {
        (void)fprintf(stderr, "%s\n", ew_app_error(app));
        (void)ew_app_free(app);
        return 2;
    }
    argv[2] = argv[0];
    return ew_app_main(app, argc - 2, argv + 2);
}
