/*
 * A runner on the library, as a user writes one: what the real worker starts in worker.py. The same handlers stand in
 * handlers.py and in rust_runner. RRQ_MARKS names a file that gets a line when a handler begins, ends or is cancelled.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int marks = -1; /* set before the start */

static void mark(const char *event, const ew_call *call) {
    char line[200];
    ew_str key = ew_call_key(call);
    char id[100] = "?";
    ew_str job = {id, 1};
    if (ew_json_string(ew_json_get(ew_call_context(call), "/job_id"), id, sizeof id, &job.len) != EW_OK)
        job.len = 1;
    int n = snprintf(line, sizeof line, "%s %.*s %.*s %u %ld\n", event, (int)(key.len - strlen("/job/")),
                     key.ptr + strlen("/job/"), (int)job.len, job.ptr, (unsigned)ew_call_attempt(call), (long)getpid());
    if (marks >= 0 && (n >= (int)sizeof line || write(marks, line, (size_t)n) != n))
        fputs("runner: a mark was lost\n", stderr);
}

/* Whether this attempt is past the `times` that the job wants to go wrong: then it succeeds. */
static bool recovered(ew_call *call) {
    uint32_t attempt = ew_call_attempt(call);
    int64_t times = INT64_MAX;
    if (!ew_call_input_int(call, "/times", &times))
        return true; /* it has failed */
    if (attempt <= times)
        return false;
    ew_call_donef(call, "{\"attempt\":%u}", attempt);
    return true;
}

static void fail_with(ew_call *call, ew_status status, const char *message, uint64_t retry_ms) {
    ew_str text = ew_str_from(message);
    if (!ew_call_input_str(call, "/message", &text))
        return;
    ew_fault fault = {
        .status = status,
        .message = text,
        .details = ew_json_get(ew_call_input(call), "/details"),
        .retryable = retry_ms > 0,
        .retry_after_ms = retry_ms,
    };
    ew_call_fail_with(call, &fault);
}

static void echo(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    ew_call_done(call, ew_call_input(call));
}

static void context(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    ew_call_donef(call, "{\"context\":%j,\"labels\":%j,\"trace_id\":%q,\"in_time\":%b}", ew_call_context(call),
                  ew_call_labels(call), ew_call_trace_id(call), ew_call_deadline_ms(call) > 0);
}

static void awake(ew_call *call, void *arg) {
    (void)arg;
    mark("end", call);
    ew_call_donef(call, "{\"slept_ms\":%j}", ew_json_get(ew_call_input(call), "/ms"));
}

static void disturbed(ew_call *call, void *arg) {
    (void)arg;
    mark("cancelled", call);
    ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static void sleep_(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    int64_t ms = 0;
    if (!ew_call_input_int(call, "/ms", &ms))
        return;
    ew_call_on_cancel(call, disturbed, NULL);
    ew_call_after(call, (uint64_t)ms, awake, NULL);
}

static void fail(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    ew_status status = EW_STATUS_INTERNAL;
    ew_str code = EW_STR("INTERNAL");
    if (!ew_call_input_str(call, "/code", &code))
        return;
    (void)ew_status_from_name(code, &status);
    if (!recovered(call))
        fail_with(call, status, "it failed", 0);
}

static void retry(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    double after = 1;
    if (ew_call_input_double(call, "/after", &after) && !recovered(call))
        fail_with(call, EW_STATUS_UNAVAILABLE, "try again", (uint64_t)(after * 1000));
}

static void late(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    ew_call_fail(call, EW_STATUS_DEADLINE_EXCEEDED, "gave up by itself");
}

static void big(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    int64_t n = 0;
    if (!ew_call_input_int(call, "/bytes", &n))
        return;
    char *text = n >= 0 && n < (1 << 30) ? malloc((size_t)n + 2) : NULL;
    if (!text) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    memset(text, 'x', (size_t)n + 2);
    text[0] = text[n + 1] = '"';
    ew_call_done(call, (ew_str){text, (size_t)n + 2});
    free(text);
}

static void pid(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    ew_call_donef(call, "{\"pid\":%d}", (int)getpid());
}

static void crash(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    if (!recovered(call))
        _exit(7);
}

int main(int argc, char **argv) {
    const char *path = getenv("RRQ_MARKS");
    if (path)
        marks = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ew_app *app = ew_app_new("runner");
    ew_app_action(app, "/job/echo", echo, NULL, NULL);
    ew_app_action(app, "/job/context", context, NULL, NULL);
    ew_app_action(app, "/job/sleep", sleep_, NULL, NULL);
    ew_app_action(app, "/job/fail", fail, NULL, NULL);
    ew_app_action(app, "/job/retry", retry, NULL, NULL);
    ew_app_action(app, "/job/late", late, NULL, NULL);
    ew_app_action(app, "/job/big", big, NULL, NULL);
    ew_app_action(app, "/job/pid", pid, NULL, NULL);
    ew_app_action(app, "/job/crash", crash, NULL, NULL);
    return ew_app_main(app, argc, argv);
}
