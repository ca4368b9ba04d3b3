/*
 * tests/unit/observe/test_spans.c: calls become texts for a telemetry server: their form (as Genkit's own runtimes write
 * them), what is hidden, cut and dropped, and the chain of observers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "observe/spans.h"
#include "unit/call/world.h"
#include <everywire/json.h>

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

typedef struct bench {
    world w;
    ew__registry registry;
    ew__actions *actions;
    ew__spans spans;
    ew__buf body;
    unsigned n_wakes;
} bench;

/* ---- calls whose end the test decides ---- */

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

static void on_wake(ew__spans *spans, void *ud) {
    (void)spans;
    ((bench *)ud)->n_wakes++;
}

static void bench_init(bench *b, bool realtime) {
    static const char *const keys[] = {"/flow/greet", "/tool/a/b"};
    memset(b, 0, sizeof *b);
    world_init(&b->w, 7);
    assert_int_equal(ew__registry_init(&b->registry, &b->w.env.env), EW_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ew__registry_add(&b->registry, keys[i], &ew__local_callee, NULL, hold, NULL, NULL), EW_OK);
    b->actions = ew__registry_get(&b->registry);
    ew__spans_init(&b->spans, &b->w.executor);
    b->spans.wake = on_wake;
    b->spans.ud = b;
    ew__buf_init(&b->body, &b->w.env.env, 1 << 24);
    ew__spans_enable(&b->spans, true, realtime);
}

static void bench_done(bench *b) {
    ew__spans_done(&b->spans);
    assert_null(b->w.executor.calls->observer);
    ew__buf_done(&b->body);
    ew__actions_unref(b->actions);
    ew__registry_done(&b->registry);
    world_done(&b->w);
}

static ew_call *new_call(bench *b) {
    ew_call *call = ew__call_new(&b->w.executor, &caller, b);
    assert_non_null(call);
    call->input = EW_STR("{\"name\":\"Ada\"}");
    return call;
}

static ew_call *open_call(bench *b, ew_call *call, const char *key) {
    ew__action *action = NULL;
    assert_int_equal(ew__actions_find(b->actions, ew_str_from(key), &action), EW_OK);
    ew__call_open(call, action);
    return call;
}

/* ---- texts ---- */

static ew_str next(bench *b) {
    assert_true(ew__spans_next(&b->spans, &b->body));
    ew_str text = ew__buf_view(&b->body);
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    return text;
}

static void assert_nothing(bench *b) { assert_false(ew__spans_next(&b->spans, &b->body)); }

/* The only span of a text, or the index-th. */
static ew_str span_at(ew_str text, unsigned index) {
    ew_json_iter it = {0};
    ew_str spans = ew_json_get(text, "/spans");
    for (unsigned i = 0; i <= index; i++)
        assert_true(ew_json_next(spans, &it));
    return it.value;
}

static void assert_json(ew_str json, const char *pointer, const char *wanted) {
    ew_str value = ew_json_get(json, pointer);
    if (!ew_str_eq(value, ew_str_from(wanted)))
        fail_msg("%s is %.*s, not %s", pointer, (int)value.len, value.ptr, wanted);
}

static void assert_absent(ew_str json, const char *pointer) { assert_null(ew_json_get(json, pointer).ptr); }

/* ---- the form ---- */

static void test_spans__form_of_a_root(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    ew_call *call = new_call(&b);
    call->labels = EW_STR("{\"my:label\":\"v\",\"n\":1}");
    call->context = EW_STR("{\"auth\":{\"uid\":1}, \"a\":2}");
    open_call(&b, call, "/flow/greet");
    assert_nothing(&b);
    assert_int_equal(b.n_wakes, 0);
    ew__test_env_advance(&b.w.env, 1500000);
    char wanted[2048], trace[33] = "", span[17] = "";
    memcpy(trace, ew_call_trace_id(call).ptr, 32);
    memcpy(span, ew_call_span_id(call).ptr, 16);
    assert_int_equal(ew_call_done(call, EW_STR("\"Hi \\\"Ada\\\"\"")), EW_OK);
    assert_int_equal(b.n_wakes, 1);
    (void)snprintf(
        wanted, sizeof wanted,
        "{\"traceId\":\"%s\",\"spans\":{\"%s\":{\"spanId\":\"%s\",\"traceId\":\"%s\",\"startTime\":1700000001000,"
        "\"endTime\":1700000001001.500,\"attributes\":{\"genkit:type\":\"action\",\"genkit:metadata:subtype\":\"flow\","
        "\"genkit:key\":\"/flow/greet\",\"my:label\":\"v\",\"n\":1,\"genkit:name\":\"greet\",\"genkit:isRoot\":true,"
        "\"genkit:path\":\"/"
        "{greet,t:flow}\",\"genkit:metadata:context\":\"{\\\"auth\\\":\\\"<redacted>\\\",\\\"a\\\":2}\","
        "\"genkit:input\":\"{\\\"name\\\":\\\"Ada\\\"}\",\"genkit:output\":\"\\\"Hi \\\\\\\"Ada\\\\\\\"\\\"\","
        "\"genkit:state\":\"success\"},\"displayName\":\"greet\",\"links\":[],\"spanKind\":\"INTERNAL\","
        "\"sameProcessAsParentSpan\":{\"value\":true},\"status\":{\"code\":0},\"timeEvents\":{\"timeEvent\":[]},"
        "\"instrumentationLibrary\":{\"name\":\"everywire\",\"version\":\"" EW_VERSION_STRING "\"}}},"
        "\"displayName\":\"greet\",\"startTime\":1700000001000,\"endTime\":1700000001001.500}",
        trace, span, span, trace);
    next(&b);
    (void)ew__buf_char(&b.body, '\0');
    assert_string_equal(b.body.ptr, wanted);
    ew__spans_told(&b.spans, true);
    assert_int_equal(b.spans.exported, 1);
    assert_int_equal(b.spans.dropped, 0);
    assert_nothing(&b);
    bench_done(&b);
}

static void test_spans__child_of_a_stranger(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    ew_call *call = new_call(&b);
    assert_int_equal(ew__trace_continue(&call->trace, &b.w.executor.rng, EW_STR(TRACE)), EW_OK);
    open_call(&b, call, "/tool/a/b");
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    ew_str text = next(&b), span = span_at(text, 0);
    assert_json(text, "/traceId", "\"0af7651916cd43dd8448eb211c80319c\"");
    assert_json(span, "/parentSpanId", "\"b7ad6b7169203331\"");
    assert_json(span, "/attributes/genkit:path", "\"/{a/b,t:action}\"");
    assert_json(span, "/attributes/genkit:metadata:subtype", "\"tool\"");
    assert_json(span, "/sameProcessAsParentSpan/value", "false");
    assert_absent(span, "/attributes/genkit:isRoot");
    assert_absent(text, "/displayName");
    assert_absent(text, "/startTime");
    assert_absent(text, "/endTime");
    bench_done(&b);
}

static void test_spans__fault(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    ew_call *call = open_call(&b, new_call(&b), "/flow/greet");
    assert_int_equal(ew_call_fail(call, EW_STATUS_NOT_FOUND, "no \"such\" thing"), EW_OK);
    ew_str span = span_at(next(&b), 0);
    assert_json(span, "/status", "{\"code\":2,\"message\":\"no \\\"such\\\" thing\"}");
    assert_json(span, "/attributes/genkit:state", "\"error\"");
    assert_json(span, "/attributes/genkit:isFailureSource", "true");
    assert_absent(span, "/attributes/genkit:output");
    ew_str event = ew_json_get(span, "/timeEvents/timeEvent/0");
    assert_json(event, "/annotation/description", "\"exception\"");
    assert_json(event, "/annotation/attributes/exception.type", "\"NOT_FOUND\"");
    assert_json(event, "/annotation/attributes/exception.message", "\"no \\\"such\\\" thing\"");
    assert_json(event, "/annotation/attributes/exception.stacktrace", "\"NOT_FOUND: no \\\"such\\\" thing\"");
    assert_true(ew_str_eq(ew_json_get(event, "/time"), ew_json_get(span, "/endTime")));
    bench_done(&b);
}

/* A caller that lets go is an end, too, and the only one. */
static void test_spans__caller_gone(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    ew_call *call = ew_call_ref(open_call(&b, new_call(&b), "/flow/greet"));
    ew__call_release(call);
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    ew_call_unref(call);
    ew_str span = span_at(next(&b), 0);
    assert_json(span, "/attributes/genkit:state", "\"error\"");
    assert_json(span, "/timeEvents/timeEvent/0/annotation/attributes/exception.type", "\"CANCELLED\"");
    assert_nothing(&b);
    bench_done(&b);
}

static void test_spans__outgoing_child_of_ours(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    ew_call *parent = open_call(&b, new_call(&b), "/flow/greet");
    ew_call *child = new_call(&b);
    child->key = EW_STR("/tool/ask");
    child->outgoing.trace_path = EW_STR("/{greet,t:flow}");
    ew__trace_child(&child->trace, &b.w.executor.rng, ew__call_trace(parent));
    ew__call_open_on(child, &outgoing, NULL);
    char parent_span[19] = "\"";
    memcpy(parent_span + 1, ew_call_span_id(parent).ptr, 16);
    parent_span[17] = '"';
    assert_int_equal(ew__call_done_valid(child, EW_STR("true")), EW_OK);
    assert_int_equal(ew_call_done(parent, EW_STR("1")), EW_OK);
    ew_str text = next(&b); /* both in one: they are of one trace */
    ew_str span = span_at(text, 0);
    assert_json(span, "/spanKind", "\"CLIENT\"");
    assert_json(span, "/attributes/genkit:path", "\"/{greet,t:flow}/{ask,t:action,s:tool}\"");
    assert_json(span, "/parentSpanId", parent_span);
    assert_json(span, "/sameProcessAsParentSpan/value", "true");
    assert_json(span_at(text, 1), "/spanId", parent_span);
    assert_json(text, "/displayName", "\"greet\"");
    assert_nothing(&b);
    ew__spans_told(&b.spans, false);
    assert_int_equal(b.spans.dropped, 2);
    bench_done(&b);
}

/* A name that is no key, and a request for a list, which is no action. */
static void test_spans__odd_calls(void **state) {
    bench b;
    (void)state;
    bench_init(&b, true);
    ew_call *call = new_call(&b);
    call->key = EW_STR("greet");
    ew__call_open_on(call, &outgoing, NULL);
    ew_str span = span_at(next(&b), 0);
    assert_json(span, "/displayName", "\"greet\"");
    assert_json(span, "/attributes/genkit:path", "\"/{greet,t:action}\"");
    assert_absent(span, "/attributes/genkit:key");
    assert_absent(span, "/attributes/genkit:metadata:subtype");
    assert_int_equal(ew__call_done_valid(call, EW_STR("1")), EW_OK);
    next(&b);
    call = new_call(&b);
    call->kind = EW__CALL_LIST;
    ew__call_open_on(call, &outgoing, NULL);
    assert_int_equal(ew__call_done_valid(call, EW_STR("{}")), EW_OK);
    assert_nothing(&b);
    bench_done(&b);
}

static void test_spans__realtime(void **state) {
    bench b;
    (void)state;
    bench_init(&b, true);
    ew_call *call = open_call(&b, new_call(&b), "/flow/greet");
    assert_true(call->traced);
    ew_str text = next(&b), span = span_at(text, 0);
    assert_json(span, "/endTime", "0");
    assert_json(text, "/endTime", "0");
    assert_json(text, "/displayName", "\"greet\"");
    assert_json(span, "/attributes/genkit:key", "\"/flow/greet\"");
    assert_absent(span, "/attributes/genkit:state");
    assert_absent(span, "/attributes/genkit:output");
    char id[32];
    size_t n = 0;
    assert_int_equal(ew_json_string(ew_json_get(span, "/spanId"), id, sizeof id, &n), EW_OK);
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    span = span_at(next(&b), 0);
    assert_json(span, "/attributes/genkit:state", "\"success\"");
    assert_memory_equal(ew_json_get(span, "/spanId").ptr + 1, id, 16);
    /* both at once: still two texts, in order, because a text has a span once */
    call = open_call(&b, new_call(&b), "/flow/greet");
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    assert_json(span_at(next(&b), 0), "/endTime", "0");
    assert_json(span_at(next(&b), 0), "/attributes/genkit:state", "\"success\"");
    assert_nothing(&b);
    bench_done(&b);
}

/* ---- what is hidden and cut ---- */

static void check_context(const char *context, const char *wanted) {
    bench b;
    bench_init(&b, false);
    ew_call *call = new_call(&b);
    call->context = ew_str_from(context);
    open_call(&b, call, "/flow/greet");
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    ew_str value = ew_json_get(span_at(next(&b), 0), "/attributes/genkit:metadata:context");
    char text[512] = "";
    size_t n = 0;
    if (value.len)
        assert_int_equal(ew_json_string(value, text, sizeof text - 1, &n), EW_OK);
    assert_string_equal(text, wanted);
    bench_done(&b);
}

static void test_spans__redaction(void **state) {
    (void)state;
    check_context("", "");
    check_context("{}", "{}");
    check_context("{\"a\":{\"auth\":1}}", "{\"a\":{\"auth\":1}}");
    check_context("{\"auth\":\"x\",\"secrets\":[1,2],\"auths\":3}",
                  "{\"auth\":\"<redacted>\",\"secrets\":\"<redacted>\",\"auths\":3}");
    check_context("{\"\\u0061uth\":\"x\"}", "{\"\\u0061uth\":\"<redacted>\"}");
    check_context("{\"auth\":1,\"auth\":2}", "{\"auth\":\"<redacted>\",\"auth\":\"<redacted>\"}");
    check_context("[\"auth\"]", "[\"auth\"]");
}

static void test_spans__cut(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    size_t n = 200000;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    for (size_t i = 1; i + 2 < n; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    char *context = malloc(n);
    assert_non_null(context);
    memset(context, ' ', n);
    memcpy(context, "{\"auth\":\"a secret\",", 19);
    memcpy(context + n - 6, "\"b\":1}", 6);
    ew_call *call = new_call(&b);
    call->input = ew__str(text, n);
    call->context = ew__str(context, n);
    open_call(&b, call, "/flow/greet");
    assert_int_equal(ew__call_done_valid(call, EW_STR("1")), EW_OK);
    ew_str whole = next(&b), span = span_at(whole, 0);
    assert_json(span, "/truncated", "true");
    assert_json(span, "/attributes/genkit:output", "\"1\"");
    assert_absent(span, "/attributes/genkit:metadata:context");
    (void)ew__buf_char(&b.body, '\0');
    assert_null(strstr(b.body.ptr, "a secret"));
    assert_null(strstr(b.body.ptr, "fffd")); /* no half of a character */
    assert_true(b.body.len > EW__SPAN_CUT && b.body.len < EW__SPAN_CUT + 2000);
    free(text);
    free(context);
    bench_done(&b);
}

/* ---- limits ---- */

static void run_calls(bench *b, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(ew_call_done(open_call(b, new_call(b), "/flow/greet"), EW_STR("1")), EW_OK);
}

static void test_spans__full(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    b.w.limits.trace_queue_items = 10;
    run_calls(&b, 25);
    assert_int_equal(b.spans.n_items, 10);
    assert_int_equal(b.spans.dropped, 15);
    assert_int_equal(b.n_wakes, 1);
    for (int i = 0; i < 10; i++) {
        next(&b);
        ew__spans_told(&b.spans, true);
    }
    assert_nothing(&b);
    assert_int_equal(b.spans.exported, 10);
    assert_int_equal(b.spans.bytes, 0);
    b.w.limits.trace_queue_bytes = 4 * 1024; /* six of the pooled size */
    run_calls(&b, 10);
    assert_true(b.spans.n_items > 2 && b.spans.n_items < 10);
    assert_true(b.spans.bytes <= 4 * 1024);
    assert_int_equal(b.n_wakes, 2);
    bench_done(&b);
}

/* Starts use half of the queue at most: the ends of those that were told of find room. */
static void test_spans__starts_leave_room(void **state) {
    bench b;
    ew_call *calls[40];
    (void)state;
    bench_init(&b, true);
    b.w.limits.trace_queue_items = 16;
    unsigned told = 0;
    for (int i = 0; i < 40; i++) {
        calls[i] = open_call(&b, new_call(&b), "/flow/greet");
        told += calls[i]->traced;
    }
    assert_int_equal(told, 8);
    assert_int_equal(b.spans.dropped, 32);
    for (int i = 39; i >= 0; i--) /* the untold first: they leave an eighth */
        assert_int_equal(ew_call_done(calls[i], EW_STR("1")), EW_OK);
    unsigned starts = 0, ends = 0;
    while (ew__spans_next(&b.spans, &b.body)) {
        ew_str span = span_at(ew__buf_view(&b.body), 0);
        bool start = ew_str_eq(ew_json_get(span, "/endTime"), EW_STR("0"));
        starts += start;
        ends += !start;
    }
    assert_int_equal(starts, 8);
    assert_int_equal(ends, 8);
    assert_int_equal(b.spans.n_starts, 0);
    assert_int_equal(b.spans.start_bytes, 0);
    bench_done(&b);
}

static void test_spans__group_has_a_limit(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    for (int i = 0; i < 70; i++) {
        ew_call *call = new_call(&b);
        assert_int_equal(ew__trace_continue(&call->trace, &b.w.executor.rng, EW_STR(TRACE)), EW_OK);
        assert_int_equal(ew_call_done(open_call(&b, call, "/flow/greet"), EW_STR("1")), EW_OK);
    }
    unsigned texts = 0;
    for (; ew__spans_next(&b.spans, &b.body); texts++)
        ew__spans_told(&b.spans, true);
    assert_int_equal(texts, 3);
    assert_int_equal(b.spans.exported, 70);
    bench_done(&b);
}

static void test_spans__off(void **state) {
    bench b;
    (void)state;
    bench_init(&b, true);
    ew__spans_enable(&b.spans, false, false);
    run_calls(&b, 3);
    assert_nothing(&b);
    assert_int_equal(b.spans.dropped, 0);
    assert_int_equal(b.n_wakes, 0);
    bench_done(&b);
}

/* ---- memory, and others who look on ---- */

static void test_spans__no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        bench b;
        bench_init(&b, true);
        ew_call *call = new_call(&b);
        call->context = EW_STR("{\"auth\":1}");
        ew__test_env_fail_at(&b.w.env, n, true);
        open_call(&b, call, "/flow/greet");
        (void)ew_call_done(call, EW_STR("1"));
        unsigned texts = 0;
        for (; ew__spans_next(&b.spans, &b.body); texts++)
            ew__spans_told(&b.spans, true);
        assert_int_equal(b.spans.exported + b.spans.dropped, 2);
        assert_int_equal(texts, b.spans.exported);
        uint64_t failed = ew__test_env_failed(&b.w.env);
        ew__test_env_fail_at(&b.w.env, 0, false);
        bench_done(&b);
        if (failed == 0)
            return;
        assert_true(n < 100);
    }
}

typedef struct counting {
    ew__observer observer;
    unsigned n_ended;
    ew_status status;
} counting;

static void count_end(ew__observer *observer, ew_call *call, const ew__end *end, uint64_t duration_ns) {
    counting *c = (counting *)(void *)observer;
    (void)call;
    (void)duration_ns;
    c->n_ended++;
    c->status = end->status;
}

static void test_spans__chain_of_observers(void **state) {
    bench b;
    (void)state;
    bench_init(&b, false);
    counting first = {.observer = {.ended = count_end, .next = b.w.executor.calls->observer}};
    b.w.executor.calls->observer = &first.observer;
    run_calls(&b, 2);
    assert_int_equal(first.n_ended, 2);
    assert_int_equal(b.spans.n_items, 2);
    ew_call *call = ew_call_ref(open_call(&b, new_call(&b), "/flow/greet"));
    ew__call_release(call);
    assert_int_equal(first.n_ended, 3);
    assert_int_equal(first.status, EW_STATUS_CANCELLED);
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    assert_int_equal(first.n_ended, 3);
    ew_call_unref(call);
    b.w.executor.calls->observer = first.observer.next;
    bench_done(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans__form_of_a_root),
        cmocka_unit_test(test_spans__child_of_a_stranger),
        cmocka_unit_test(test_spans__fault),
        cmocka_unit_test(test_spans__caller_gone),
        cmocka_unit_test(test_spans__outgoing_child_of_ours),
        cmocka_unit_test(test_spans__odd_calls),
        cmocka_unit_test(test_spans__realtime),
        cmocka_unit_test(test_spans__redaction),
        cmocka_unit_test(test_spans__cut),
        cmocka_unit_test(test_spans__full),
        cmocka_unit_test(test_spans__starts_leave_room),
        cmocka_unit_test(test_spans__group_has_a_limit),
        cmocka_unit_test(test_spans__off),
        cmocka_unit_test(test_spans__no_memory),
        cmocka_unit_test(test_spans__chain_of_observers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
