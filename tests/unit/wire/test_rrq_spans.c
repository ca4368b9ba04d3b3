/*
 * tests/unit/wire/test_rrq_spans.c: a job that RRQ has given us becomes the span of a runner: what it has beside
 * Genkit's attributes, at its start and its end, and what is left out.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "observe/spans.h"
#include "unit/call/world.h"
#include "wire/rrq/rrq.h"
#include <everywire/json.h>

/* The world's wall clock begins at 2023-11-14T22:13:21Z. */
#define JOB_CONTEXT                                                                                                    \
    "{\"job_id\":\"j-1\",\"attempt\":2,\"enqueue_time\":\"2023-11-14T22:13:20.250Z\",\"queue_name\":"                  \
    "\"rrq:queue:a\\\"b\",\"deadline\":\"2023-11-14T22:14:21.000001+00:00\",\"trace_context\":null,"                   \
    "\"worker_id\":\"w \\u00e9\"}"

typedef struct bench {
    world w;
    ew__registry registry;
    ew__actions *actions;
    ew__spans spans;
    ew__buf body;
} bench;

static void on_end(ew_call *call, const ew__end *end) {
    (void)end;
    ew__call_release(call);
}

static const ew__caller_ops caller = {.end = on_end};

static void hold(ew_call *call, void *arg) {
    (void)call;
    (void)arg;
}

static void hold_open(ew_call *call) { (void)call; }

static const ew__callee_ops outgoing = {.open = hold_open};

static void bench_init(bench *b, bool realtime) {
    memset(b, 0, sizeof *b);
    world_init(&b->w, 7);
    assert_int_equal(ew__registry_init(&b->registry, &b->w.env.env), EW_OK);
    assert_int_equal(ew__registry_add(&b->registry, "/flow/a/b", &ew__local_callee, NULL, hold, NULL, NULL), EW_OK);
    b->actions = ew__registry_get(&b->registry);
    ew__spans_init(&b->spans, &b->w.executor);
    ew__buf_init(&b->body, &b->w.env.env, 1 << 24);
    ew__spans_enable(&b->spans, true, realtime);
}

static void bench_done(bench *b) {
    ew__spans_done(&b->spans);
    ew__buf_done(&b->body);
    ew__actions_unref(b->actions);
    ew__registry_done(&b->registry);
    world_done(&b->w);
}

static ew_call *open_call(bench *b, const ew__span_style *style, const char *context) {
    ew_call *call = ew__call_new(&b->w.executor, &caller, b);
    ew__action *action = NULL;
    assert_non_null(call);
    call->served.span_style = style;
    call->input = EW_STR("{}");
    call->context = ew_str_from(context);
    call->labels = EW_STR("{\"tenant\":\"t1\"}");
    assert_int_equal(ew__actions_find(b->actions, EW_STR("a/b"), &action), EW_OK);
    ew__call_open(call, action);
    return call;
}

static ew_call *open_job(bench *b, const char *context) { return open_call(b, &ew__rrq_span_style, context); }

/* The next text's only span. */
static ew_str next(bench *b) {
    ew_json_iter it = {0};
    assert_true(ew__spans_next(&b->spans, &b->body));
    ew_str text = ew__buf_view(&b->body);
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    assert_true(ew_json_next(ew_json_get(text, "/spans"), &it));
    return it.value;
}

static void assert_json(ew_str json, const char *pointer, const char *wanted) {
    ew_str value = ew_json_get(json, pointer);
    if (!ew_str_eq(value, ew_str_from(wanted)))
        fail_msg("%s is %.*s, not %s", pointer, (int)value.len, value.ptr, wanted);
}

static void assert_absent(ew_str json, const char *pointer) { assert_null(ew_json_get(json, pointer).ptr); }

/* No attribute whose name begins so. */
static void assert_none(ew_str span, const char *prefix) {
    ew_json_iter it = {0};
    ew_str attributes = ew_json_get(span, "/attributes");
    while (ew_json_next(attributes, &it))
        if (strncmp(it.key.ptr + 1, prefix, strlen(prefix)) == 0)
            fail_msg("%.*s", (int)it.key.len, it.key.ptr);
}

static void assert_job(ew_str span) {
    assert_json(span, "/displayName", "\"rrq.runner\"");
    assert_json(span, "/spanKind", "\"CONSUMER\"");
    assert_json(span, "/instrumentationLibrary/name", "\"everywire\"");
    assert_json(span, "/attributes/messaging.system", "\"redis\"");
    assert_json(span, "/attributes/messaging.destination.name", "\"rrq:queue:a\\\"b\"");
    assert_json(span, "/attributes/messaging.destination_kind", "\"queue\"");
    assert_json(span, "/attributes/messaging.operation", "\"process\"");
    assert_json(span, "/attributes/rrq.job_id", "\"j-1\"");
    assert_json(span, "/attributes/rrq.function", "\"a/b\"");
    assert_json(span, "/attributes/rrq.queue", "\"rrq:queue:a\\\"b\"");
    assert_json(span, "/attributes/rrq.attempt", "2");
    assert_json(span, "/attributes/rrq.worker_id", "\"w \\u00e9\"");
    assert_json(span, "/attributes/rrq.deadline", "\"2023-11-14T22:14:21.000001+00:00\"");
    assert_json(span, "/attributes/rrq.deadline_remaining_ms", "60000");
    assert_json(span, "/attributes/rrq.queue_wait_ms", "750");
    assert_json(span, "/attributes/tenant", "\"t1\"");
    assert_json(span, "/attributes/genkit:name", "\"a/b\"");
    assert_json(span, "/attributes/genkit:key", "\"/flow/a/b\"");
}

static void assert_unended(ew_str span) {
    static const char *const names[] = {"rrq.outcome", "rrq.duration_ms", "rrq.retry", "rrq.error", "genkit:state"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_none(span, names[i]);
}

/* ---- tests ---- */

static void test_rrq_spans__success(void **state) {
    bench b;
    (void)state;
    bench_init(&b, true);
    ew_call *call = open_job(&b, JOB_CONTEXT);
    ew_str span = next(&b);
    assert_job(span);
    assert_unended(span);
    assert_absent(span, "/attributes/genkit:metadata:context");
    ew__test_env_advance(&b.w.env, 2500000);
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    span = next(&b);
    assert_job(span);
    assert_json(span, "/attributes/rrq.outcome", "\"success\"");
    assert_json(span, "/attributes/rrq.duration_ms", "2.500");
    assert_json(span, "/attributes/genkit:state", "\"success\"");
    assert_non_null(ew_json_get(span, "/attributes/genkit:metadata:context").ptr);
    assert_none(span, "rrq.error");
    assert_none(span, "rrq.retry");
    assert_json(ew__buf_view(&b.body), "/displayName", "\"rrq.runner\"");
    bench_done(&b);
}

static void check_fault(const ew_fault *fault, const char *outcome, const char *delay, const char *type) {
    bench b;
    bench_init(&b, false);
    ew_call *call = open_job(&b, JOB_CONTEXT);
    assert_int_equal(ew_call_fail_with(call, fault), EW_OK);
    ew_str span = next(&b);
    assert_job(span);
    assert_json(span, "/attributes/rrq.outcome", outcome);
    assert_json(span, "/attributes/rrq.duration_ms", "0");
    assert_json(span, "/attributes/rrq.error_message", "\"it \\\"broke\\\"\"");
    assert_json(span, "/attributes/rrq.error_type", type);
    if (delay)
        assert_json(span, "/attributes/rrq.retry_delay_ms", delay);
    else
        assert_none(span, "rrq.retry");
    bench_done(&b);
}

static void test_rrq_spans__outcomes(void **state) {
    ew_fault fault = {.status = EW_STATUS_NOT_FOUND, .message = EW_STR("it \"broke\"")};
    (void)state;
    check_fault(&fault, "\"error\"", NULL, "\"NOT_FOUND\"");
    fault.status = EW_STATUS_DEADLINE_EXCEEDED;
    check_fault(&fault, "\"timeout\"", NULL, "\"timeout\"");
    fault.status = EW_STATUS_CANCELLED;
    check_fault(&fault, "\"cancelled\"", NULL, "\"cancelled\"");
    fault.status = EW_STATUS_UNAVAILABLE;
    fault.retryable = true;
    check_fault(&fault, "\"retry\"", NULL, "\"UNAVAILABLE\"");
    fault.retry_after_ms = 1500;
    check_fault(&fault, "\"retry\"", "1500", "\"UNAVAILABLE\"");
    fault.retryable = false;
    check_fault(&fault, "\"retry\"", "1500", "\"UNAVAILABLE\"");
}

/* What the context does not have, or has in another form than RRQ. */
static void test_rrq_spans__odd_contexts(void **state) {
    static const char *const poor[] = {"", "{}", "[1]", "{\"job_id\":null,\"attempt\":null,\"deadline\":null}"};
    bench b;
    (void)state;
    bench_init(&b, false);
    for (size_t i = 0; i < sizeof poor / sizeof *poor; i++) {
        assert_int_equal(ew_call_done(open_job(&b, poor[i]), EW_STR("1")), EW_OK);
        ew_str span = next(&b);
        assert_json(span, "/displayName", "\"rrq.runner\"");
        assert_json(span, "/attributes/rrq.function", "\"a/b\"");
        assert_json(span, "/attributes/rrq.outcome", "\"success\"");
        static const char *const names[] = {"rrq.job_id", "rrq.attempt", "rrq.deadline",
                                            "rrq.queue",  "rrq.worker",  "messaging.destination.name"};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            assert_none(span, names[k]);
    }
    ew_call *call = open_job(&b, "{\"job_id\":7,\"attempt\":\"x\",\"deadline\":\"soon\",\"enqueue_time\":"
                                 "\"2030-01-01T00:00:00Z\",\"worker_id\":{\"a\":1},\"queue_name\":true}");
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    ew_str span = next(&b);
    assert_json(span, "/attributes/rrq.job_id", "7");
    assert_json(span, "/attributes/rrq.attempt", "\"x\"");
    assert_json(span, "/attributes/rrq.deadline", "\"soon\"");
    assert_absent(span, "/attributes/rrq.deadline_remaining_ms");
    assert_json(span, "/attributes/rrq.queue_wait_ms", "0"); /* clocks differ: it cannot have waited less */
    assert_json(span, "/attributes/rrq.worker_id", "\"{\\\"a\\\":1}\"");
    assert_json(span, "/attributes/rrq.queue", "\"true\"");
    bench_done(&b);
}

/* Other wires' calls, and those that we make to runners, are no jobs of ours. */
static void test_rrq_spans__others(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    assert_int_equal(ew_call_done(open_call(&b, NULL, JOB_CONTEXT), EW_STR("1")), EW_OK);
    ew_str span = next(&b);
    assert_json(span, "/displayName", "\"a/b\"");
    assert_json(span, "/spanKind", "\"INTERNAL\"");
    assert_none(span, "rrq.");
    assert_none(span, "messaging.");
    ew_call *call = ew__call_new(&b.w.executor, &caller, &b);
    assert_non_null(call);
    call->wire = "rrq";
    call->key = EW_STR("/flow/x");
    call->context = EW_STR(JOB_CONTEXT);
    ew__call_open_on(call, &outgoing, NULL);
    assert_int_equal(ew__call_done_valid(call, EW_STR("1")), EW_OK);
    span = next(&b);
    assert_json(span, "/displayName", "\"x\"");
    assert_json(span, "/spanKind", "\"CLIENT\"");
    assert_none(span, "rrq.");
    bench_done(&b);
}

static void test_rrq_spans__no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        bench b;
        bench_init(&b, true);
        ew_call *call = open_job(&b, JOB_CONTEXT);
        ew__test_env_fail_at(&b.w.env, n, true);
        (void)ew_call_fail(call, EW_STATUS_INTERNAL, "x");
        while (ew__spans_next(&b.spans, &b.body))
            ew__spans_told(&b.spans, true);
        assert_int_equal(b.spans.exported + b.spans.dropped, 2);
        uint64_t failed = ew__test_env_failed(&b.w.env);
        ew__test_env_fail_at(&b.w.env, 0, false);
        bench_done(&b);
        if (failed == 0)
            return;
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rrq_spans__success),      cmocka_unit_test(test_rrq_spans__outcomes),
        cmocka_unit_test(test_rrq_spans__odd_contexts), cmocka_unit_test(test_rrq_spans__others),
        cmocka_unit_test(test_rrq_spans__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
