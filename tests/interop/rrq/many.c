/*
 * Many calls at once to a real runner (handlers.py, rust_runner): one that runs, on one connection, or several
 * processes of our own. calls.py runs it. Usage: many TARGET [PROCESSES COMMAND [ARGS]]
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 200
#define LIMIT_MS 60000
#define MOST_PROCESSES 64
#define ROUNDS 200

typedef struct job {
    ew_request *request;
    char input[64];
    char want[64]; /* the result; "" for any, "CANCELLED" for that end */
} job;

static job jobs[MANY];
static int failed;

static void report(const char *name, int bad, const char *why) {
    failed += bad > 0;
    if (bad)
        printf("%s: %d calls: %s\n", name, bad, why);
}

static const char *start(ew_client *client, job *j, const char *action) {
    ew_request_options options = {
        .action = ew_str_from(action), .input = ew_str_from(j->input), .timeout_ms = LIMIT_MS};
    ew_err err = ew_client_call(client, &options, &j->request);
    return err == EW_OK ? NULL : ew_err_text(err);
}

/* Whether the text is the same but for white space, which the Python runner writes between members. */
static bool same(ew_str got, const char *want) {
    size_t n = strlen(want), k = 0;
    for (size_t i = 0; i < got.len; i++) {
        if (got.ptr[i] != ' ' && (k >= n || got.ptr[i] != want[k++]))
            return false;
    }
    return k == n;
}

static const char *look(job *j, ew_end *end) {
    static char text[200];
    if (!j->request)
        return "not started";
    if (ew_request_wait(j->request, LIMIT_MS, end) != EW_OK)
        return "no end";
    if (strcmp(j->want, "CANCELLED") == 0)
        return end->status == EW_STATUS_CANCELLED ? NULL : ew_status_name(end->status);
    if (end->status != EW_STATUS_OK) {
        (void)snprintf(text, sizeof text, "%s: %.*s", ew_status_name(end->status), (int)end->fault.message.len,
                       end->fault.message.ptr);
        return text;
    }
    if (*j->want && !same(end->result, j->want)) {
        (void)snprintf(text, sizeof text, "%.*s is not %s", (int)end->result.len, end->result.ptr, j->want);
        return text;
    }
    return NULL;
}

/* Starts them all, cancels those that want it, waits for all. */
static void run(ew_client *client, const char *name, const char *action) {
    const char *why = NULL;
    int bad = 0;
    ew_end end;
    for (int i = 0; i < MANY; i++) {
        const char *problem = start(client, &jobs[i], action);
        why = problem ? problem : why;
    }
    for (int i = 0; i < MANY; i++) {
        if (jobs[i].request && strcmp(jobs[i].want, "CANCELLED") == 0)
            ew_request_cancel(jobs[i].request);
    }
    for (int i = 0; i < MANY; i++) {
        const char *problem = look(&jobs[i], &end);
        bad += problem != NULL;
        why = problem ? problem : why;
    }
    report(name, bad, why);
    for (int i = 0; i < MANY; i++)
        jobs[i].request = ew_request_free(jobs[i].request);
}

#define EACH(input_format, want_format)                                                                                \
    for (int i = 0; i < MANY; i++) {                                                                                   \
        (void)snprintf(jobs[i].input, sizeof jobs[i].input, input_format, i);                                          \
        (void)snprintf(jobs[i].want, sizeof jobs[i].want, want_format, i);                                             \
    }

static void one_connection(ew_client *client) {
    EACH("{\"i\":%d}", "{\"i\":%d}")
    run(client, "200 calls at once on one connection", "echo");
    EACH("{\"ms\":%d}", "{\"slept_ms\":%d}")
    run(client, "200 that end in another order", "sleep");
    for (int i = 0; i < MANY; i += 2) {
        (void)snprintf(jobs[i].input, sizeof jobs[i].input, "{\"ms\":%d}", LIMIT_MS);
        (void)snprintf(jobs[i].want, sizeof jobs[i].want, "CANCELLED");
    }
    run(client, "half of 200 cancelled", "sleep");
    EACH("{\"i\":%d}", "{\"i\":%d}")
    run(client, "200 calls after that", "echo");
}

static void retry(ew_client *client) {
    job j = {.input = "{\"after\":1.5}"};
    ew_end end = {0};
    bool said = !start(client, &j, "retry") && ew_request_wait(j.request, LIMIT_MS, &end) == EW_OK &&
                end.status == EW_STATUS_UNAVAILABLE && end.fault.retryable && end.fault.retry_after_ms == 1500;
    report("a fault says when to try again", !said, "another end");
    ew_request_free(j.request);
}

/* A process that goes takes its calls with it; the next call has it started again. */
static void crash(ew_client *client) {
    job j = {.input = "{}"};
    ew_end end = {0};
    bool said = !start(client, &j, "crash") && ew_request_wait(j.request, LIMIT_MS, &end) == EW_OK &&
                end.status == EW_STATUS_UNAVAILABLE && end.origin == EW_ORIGIN_CONNECT;
    report("a process that crashes", !said, "another end");
    ew_request_free(j.request);
    EACH("{\"ms\":%d}", "{\"slept_ms\":%d}")
    run(client, "200 calls after that", "sleep");
}

/* Asks many at once who answers, and adds those that are new to pids. Returns how many failed. */
static int who_answers(ew_client *client, int64_t *pids, unsigned *n) {
    int bad = 0;
    ew_end end;
    for (int i = 0; i < MANY; i++) {
        jobs[i].want[0] = '\0';
        (void)start(client, &jobs[i], "pid");
    }
    for (int i = 0; i < MANY; i++) {
        bool known = false;
        if (look(&jobs[i], &end)) {
            bad++;
        } else {
            int64_t pid = 0;
            (void)ew_json_int64(ew_json_get(end.result, "/pid"), &pid);
            for (unsigned k = 0; k < *n; k++)
                known = known || pids[k] == pid;
            if (!known && *n < MOST_PROCESSES)
                pids[(*n)++] = pid;
        }
        jobs[i].request = ew_request_free(jobs[i].request);
    }
    return bad;
}

/* Whether all processes answer, in the end: one may take longer than others to start. */
static void processes(ew_client *client, unsigned wanted) {
    int64_t pids[MOST_PROCESSES];
    unsigned n = 0;
    int bad = 0;
    EACH("{\"ms\":%d}", "{\"slept_ms\":%d}")
    run(client, "200 calls to several processes", "sleep");
    for (int round = 0; round < ROUNDS && n < wanted && !bad; round++)
        bad = who_answers(client, pids, &n);
    report("every process has a part", bad ? bad : n != wanted, "failed, or not that many processes");
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    const char *problem = NULL;
    ew_client_options options = {.limits = {.client_connections = 1, .client_queue = MANY + 1}};
    if (argc > 3) {
        options.processes = (unsigned)strtoul(argv[2], NULL, 10);
        options.command = (const char *const *)argv + 3;
    }
    if (argc < 2 || ew_client_new(argv[1], &options, &client, &problem) != EW_OK) {
        (void)fprintf(stderr, "many: %s\n", problem ? problem : "usage: many TARGET [PROCESSES COMMAND [ARGS]]");
        return 2;
    }
    if (options.command) {
        processes(client, options.processes);
        crash(client);
    } else {
        one_connection(client);
        retry(client);
    }
    ew_client_free(client);
    return failed ? 1 : 0;
}
