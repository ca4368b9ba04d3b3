/*
 * Many calls at once to a real component server (components.py): one that runs, or one that the client starts.
 * calls.py runs it. Usage: many TARGET [COMMAND [ARGS]]
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <string.h>

#define MANY 50
#define LIMIT_MS 50000

typedef struct one {
    ew_request *request;
    char input[64], want[64]; /* want: what is to be found in the result */
} one;

static one all[MANY];
static int failed;

static void report(const char *name, int bad, const char *why) {
    failed += bad > 0;
    if (bad)
        printf("%s: %d calls: %s\n", name, bad, why);
}

static const char *start(ew_client *client, one *o, const char *action) {
    ew_request_options options = {
        .action = ew_str_from(action), .input = ew_str_from(o->input), .timeout_ms = LIMIT_MS};
    ew_err err = ew_client_call(client, &options, &o->request);
    return err == EW_OK ? NULL : ew_err_text(err);
}

static const char *look(one *o, ew_end *end) {
    static char text[300];
    if (!o->request)
        return "not started";
    if (ew_request_wait(o->request, LIMIT_MS, end) != EW_OK)
        return "no end";
    ew_str said = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    if (end->status == EW_STATUS_OK && memmem(said.ptr, said.len, o->want, strlen(o->want)))
        return NULL;
    (void)snprintf(text, sizeof text, "%s: %.*s, not %s", ew_status_name(end->status), (int)said.len, said.ptr,
                   o->want);
    return text;
}

static void run(ew_client *client, const char *name, const char *action) {
    const char *why = NULL;
    int bad = 0;
    ew_end end;
    for (int i = 0; i < MANY; i++) {
        const char *problem = start(client, &all[i], action);
        why = problem ? problem : why;
    }
    for (int i = 0; i < MANY; i++) {
        const char *problem = look(&all[i], &end);
        bad += problem != NULL;
        why = problem ? problem : why;
    }
    report(name, bad, why);
    for (int i = 0; i < MANY; i++)
        all[i].request = ew_request_free(all[i].request);
}

#define EACH(input_format, want_format, number)                                                                        \
    for (int i = 0; i < MANY; i++) {                                                                                   \
        (void)snprintf(all[i].input, sizeof all[i].input, input_format, number);                                       \
        (void)snprintf(all[i].want, sizeof all[i].want, want_format, number);                                          \
    }

static void blobs(ew_client *client, const char *name) {
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(all[i].input, sizeof all[i].input, "{\"data\":{\"i\":%d},\"ms\":20}", i);
        (void)snprintf(all[i].want, sizeof all[i].want, "\"equal\":true");
    }
    run(client, name, "roundtrip");
}

static void everything(ew_client *client) {
    EACH("{\"i\":%d}", "{\"i\":%d}", i)
    run(client, "calls at once", "echo");
    EACH("{\"ms\":%d}", "{\"slept_ms\":%d}", 400 - 5 * i)
    run(client, "calls that end in another order", "slow");
    blobs(client, "calls with blobs");
}

/* A process that goes takes its calls with it; the next call has it started again, handshake and all. */
static void crash(ew_client *client) {
    one o = {.input = "{}"}, beside = {.input = "{\"ms\":40000}"};
    ew_end end = {0}, other = {0};
    bool said = !start(client, &beside, "slow") && !start(client, &o, "crash") &&
                ew_request_wait(o.request, LIMIT_MS, &end) == EW_OK && end.status == EW_STATUS_UNAVAILABLE &&
                end.origin == EW_ORIGIN_CONNECT && ew_request_wait(beside.request, LIMIT_MS, &other) == EW_OK &&
                other.status == EW_STATUS_UNAVAILABLE && other.origin == EW_ORIGIN_CONNECT;
    report("a process that crashes", !said, ew_status_name(end.status));
    ew_request_free(o.request);
    ew_request_free(beside.request);
    EACH("{\"i\":%d}", "{\"i\":%d}", i)
    run(client, "calls after that", "echo");
    blobs(client, "blobs after that");
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    const char *problem = NULL;
    ew_client_options options = {.limits = {.client_queue = MANY + 1}};
    if (argc > 2)
        options.command = (const char *const *)argv + 2;
    if (argc < 2 || ew_client_new(argv[1], &options, &client, &problem) != EW_OK) {
        (void)fprintf(stderr, "many: %s\n", problem ? problem : "usage: many TARGET [COMMAND [ARGS]]");
        return 2;
    }
    everything(client);
    if (options.command)
        crash(client);
    ew_client_free(client);
    return failed ? 1 : 0;
}
