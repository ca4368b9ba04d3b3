/*
 * tests/e2e/rrq_runner.c: a runner with the handlers that the captured sessions of other runners were made with, for
 * test_rrq_captures.py. They do what those did, as far as the library has words for it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdlib.h>
#include <string.h>

static void echo(ew_call *call, void *arg) {
    (void)arg;
    ew_call_donef(call, "{\"params\":%j,\"context\":%j}", ew_call_input(call), ew_call_context(call));
}

static void pong(ew_call *call, void *arg) {
    (void)arg;
    ew_call_done(call, EW_STR("\"pong\""));
}

static void nothing(ew_call *call, void *arg) {
    (void)arg;
    ew_call_done(call, EW_STR("null"));
}

/* There the result was a number that JSON does not have, which left as null. */
static void nan_result(ew_call *call, void *arg) {
    (void)arg;
    ew_call_done(call, EW_STR("{\"v\":null}"));
}

static void unserializable(ew_call *call, void *arg) {
    (void)arg;
    ew_call_done(call, EW_STR("<object>"));
}

static void slept(ew_call *call, void *arg) {
    (void)arg;
    int64_t ms = 0;
    if (ew_call_input_int(call, "/ms", &ms))
        ew_call_donef(call, "{\"slept_ms\":%d}", ms);
}

static void stop(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static void sleep_ms(ew_call *call, void *arg) {
    int64_t ms = 0;
    if (!ew_call_input_int(call, "/ms", &ms))
        return;
    ew_call_on_cancel(call, stop, arg);
    if (ew_call_after(call, ms > 0 ? (uint64_t)ms : 0, slept, arg) != EW_OK) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
    }
}

static void fail(ew_call *call, void *arg) {
    (void)arg;
    ew_str message = EW_STR("boom");
    if (ew_call_input_str(call, "/message", &message))
        ew_call_fail_with(call, &(ew_fault){.status = EW_STATUS_INTERNAL, .message = message});
}

static void fail_empty(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail(call, EW_STATUS_INTERNAL, "");
}

static void retry(ew_call *call, void *arg) {
    (void)arg;
    double seconds = 0;
    if (!ew_call_input_double(call, "/defer_seconds", &seconds))
        return;
    ew_call_fail_with(call, &(ew_fault){.status = EW_STATUS_UNAVAILABLE,
                                        .message = EW_STR("again please"),
                                        .retryable = true,
                                        .retry_after_ms = (uint64_t)(seconds * 1000)});
}

static void custom_retry(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail_with(call, &(ew_fault){.status = EW_STATUS_UNAVAILABLE,
                                        .message = EW_STR("later"),
                                        .retryable = true,
                                        .retry_after_ms = 1500});
}

static void raise_timeout(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail(call, EW_STATUS_DEADLINE_EXCEEDED, "handler timed out by itself");
}

static void custom_error(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail_with(
        call, &(ew_fault){.status = EW_STATUS_ABORTED, .message = EW_STR("custom"), .details = EW_STR("{\"a\":1}")});
}

static void big(ew_call *call, void *arg) {
    (void)arg;
    int64_t n = 0;
    if (!ew_call_input_int(call, "/bytes", &n))
        return;
    char *text = n > 0 && n < 1 << 28 ? malloc((size_t)n + 2) : NULL;
    if (text == NULL) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    memset(text, 'x', (size_t)n + 2);
    text[0] = text[n + 1] = '"';
    ew_call_done(call, (ew_str){text, (size_t)n + 2});
    free(text);
}

int main(int argc, char **argv) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } handlers[] = {
        {"/job/echo", echo},
        {"/job/pong", pong},
        {"/job/nothing", nothing},
        {"/job/nan", nan_result},
        {"/job/unserializable", unserializable},
        {"/job/sleep", sleep_ms},
        {"/job/fail", fail},
        {"/job/fail_empty", fail_empty},
        {"/job/retry", retry},
        {"/job/custom_retry", custom_retry},
        {"/job/raise_timeout", raise_timeout},
        {"/job/custom_error", custom_error},
        {"/job/big", big},
    };
    ew_app *app = ew_app_new("rrq-runner");
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        ew_app_action(app, handlers[i].key, handlers[i].fn, NULL, NULL);
    }
    return ew_app_main(app, argc, argv);
}
