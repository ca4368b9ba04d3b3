/*
 * tests/unit/call/test_stack_trace.c: which callers see stack traces, and what is left of details without them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call/stack_trace.h"
#include "support/fail_env.h"
#include <everywire/app.h>
#include <everywire/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK "\"Error: no\\n    at run (/srv/app.js:1:2)\""

static void test_call_stack_trace__policy(void **state) {
    (void)state;
    const ew__who remote = {.kind = EW__WHO_TOKEN, .accepted = true}, local = {.local = true};
    ew__call_context calls = {.stack_traces = EW_STACK_TRACES_LOCAL};
    ew__executor executor = {.calls = &calls};
    assert_true(ew__stack_trace_is_shown(&executor, &local));
    assert_true(ew__stack_trace_is_shown(&executor, &ew__who_owner));
    assert_false(ew__stack_trace_is_shown(&executor, &remote));
    assert_false(ew__stack_trace_is_shown(&executor, NULL));
    calls.stack_traces = EW_STACK_TRACES_ALL;
    assert_true(ew__stack_trace_is_shown(&executor, &remote));
    assert_true(ew__stack_trace_is_shown(&executor, NULL));
    calls.stack_traces = EW_STACK_TRACES_NONE;
    assert_false(ew__stack_trace_is_shown(&executor, &local));
    assert_false(ew__stack_trace_is_shown(&executor, &ew__who_owner));
}

static void expect(const char *json, const char *expected) {
    ew__arena arena;
    ew_str text = ew_str_from(json);
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    ew__stack_trace_remove(&arena, ew_env_default(), &text);
    if (!ew__str_is(text, ew_str_from(expected)))
        fail_msg("%s became %.*s instead of %s", json, (int)text.len, text.ptr ? text.ptr : "", expected);
    if (strcmp(json, expected) == 0)
        assert_ptr_equal(text.ptr, json); /* no copy */
    ew__arena_done(&arena);
}

static void test_call_stack_trace__removed(void **state) {
    (void)state;
    expect("{\"stack\":" STACK "}", "");
    expect(" { \"stack\" : " STACK " } ", " {} ");
    expect("{\"stack\":" STACK ",\"traceId\":\"1\"}", "{\"traceId\":\"1\"}");
    expect("{\"traceId\":\"1\",\"stack\":" STACK "}", "{\"traceId\":\"1\"}");
    expect("{\"a\":1 ,\n\"stack\":" STACK "\n, \"b\":2}", "{\"a\":1 ,\n\"b\":2}");
    expect("{\"a\":1 , \"stack\":" STACK " }", "{\"a\":1 }");
    expect("{\"stack\":\"a\",\"stack\":\"b\"}", "");
    expect("{\"x\":0,\"stack\":\"a\",\"stack\":\"b\"}", "{\"x\":0}");
    expect("{\"code\":5,\"details\":{\"stack\":" STACK ",\"k\":[{\"stack\":\"s\"},1]}}",
           "{\"code\":5,\"details\":{\"k\":[{},1]}}");
    expect("[{\"stack\":" STACK "}]", "[{}]");
    expect("{\"a\":{\"stackTrace\":\"\"},\"stack_trace\":\"\",\"stacktrace\":\"\",\"traceback\":\"Traceback\\n\"}",
           "{\"a\":{}}");
    expect("{\"stack\":\"\\\\\",\"b\":\"\\\"stack\\\":\"}", "{\"b\":\"\\\"stack\\\":\"}");
}

static void test_call_stack_trace__kept(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "null",
                                        "\"stack\"",
                                        "[\"stack\",\"stack\"]",
                                        "{\"a\":\"stack\",\"b\":\"x\"}",
                                        "{\"stack\":[1,2]}",
                                        "{\"stack\":null, \"stack\" : 1}",
                                        "{\"stack\":{\"name\":\"x\"}}",
                                        "{\"Stack\":\"x\",\"stacks\":\"y\"}",
                                        "{\"a\":\"\\\"stack\\\":\\\"x\\\"\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], texts[i]);
}

/* An upstream chooses size and depth: the time is linear in the size. */
static void test_call_stack_trace__large(void **state) {
    (void)state;
    enum { DEPTH = 100, ROWS = 20000 };
    size_t room = DEPTH * 16 + ROWS * 64, n = 0;
    char *json = malloc(room);
    assert_non_null(json);
    for (int i = 0; i < DEPTH; i++)
        n += (size_t)snprintf(json + n, room - n, "{\"a\":");
    n += (size_t)snprintf(json + n, room - n, "[0");
    for (int i = 0; i < ROWS; i++)
        n += (size_t)snprintf(json + n, room - n, ",{\"stack\":\"x\",\"i\":%d}", i);
    n += (size_t)snprintf(json + n, room - n, "]");
    for (int i = 0; i < DEPTH; i++)
        n += (size_t)snprintf(json + n, room - n, "}");
    ew__arena arena;
    ew_str text = ew__str(json, n);
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    ew__stack_trace_remove(&arena, ew_env_default(), &text);
    assert_int_equal(text.len, n - (size_t)ROWS * strlen("\"stack\":\"x\","));
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    ew__arena_done(&arena);
    free(json);
}

/* Without memory nothing is shown. */
static void test_call_stack_trace__no_memory(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    for (uint64_t n = 1;; n++) {
        ew__arena arena;
        ew_str text = EW_STR("{\"stack\":\"x\",\"b\":1}");
        ew__arena_init(&arena, &t.env, NULL, 0);
        ew__test_env_fail_at(&t, n, false);
        ew__stack_trace_remove(&arena, &t.env, &text);
        bool failed = ew__test_env_failed(&t) > 0;
        assert_true(ew__str_is(text, failed ? EW_STR("") : EW_STR("{\"b\":1}")));
        ew__arena_done(&arena);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        if (!failed)
            break;
        assert_true(n < 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_stack_trace__policy),    cmocka_unit_test(test_call_stack_trace__removed),
        cmocka_unit_test(test_call_stack_trace__kept),      cmocka_unit_test(test_call_stack_trace__large),
        cmocka_unit_test(test_call_stack_trace__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
