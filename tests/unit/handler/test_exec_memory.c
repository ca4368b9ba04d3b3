/*
 * tests/unit/handler/test_exec_memory.c: each allocation fails once: every call still has one end, and nothing is left.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/handler/exec_world.h"

/* Whether the allocation was reached. */
static bool run_with(uint64_t n, const ew_exec_options *options, const char *input, bool streams, bool closes) {
    const char *problem = NULL;
    shop s;
    visit v = {.chunks = true, .has_input = streams, .closes = closes};
    memset(&s, 0, sizeof s);
    world_init(&s.w);
    s.w.fail_at = s.w.n_allocations + n;
    ew_err err = ew__exec_new(&s.w.env, &s.w.limits, "/tool/test", options, &s.exec, &problem);
    assert_true(err == EW_OK || err == EW_ENOMEM);
    if (err == EW_OK) {
        ew__exec_settle(s.exec, &s.w.loop);
        v.shop = &s;
        v.call = ew__call_new(&s.w.loop.executor, &visit_ops, &v);
        if (v.call) {
            v.call->input = ew_str_from(input);
            v.call->wants_chunks = true;
            v.call->has_input = streams;
            v.call->deadline = ew__executor_read_clock(&s.w.loop.executor) + EW__MS(30000);
            ew__call_open_on(v.call, &ew__exec_callee, s.exec);
            if (streams && !v.n_ends)
                (void)ew__call_input(v.call, EW_STR("[1,\n2]"));
            ew__call_input_end(v.call);
            visit_wait(&v);
            assert_int_equal(v.n_ends, 1);
            assert_true(v.status == EW_STATUS_OK || v.status == EW_STATUS_RESOURCE_EXHAUSTED ||
                        v.status == EW_STATUS_FAILED_PRECONDITION || v.status == EW_STATUS_UNAVAILABLE ||
                        v.status == EW_STATUS_NOT_FOUND);
        }
        bool closed = v.call && closes;
        visit_free(&v);
        if (closed)
            run_until(&s.w, &s.n_closed, 1);
        else
            shop_close(&s);
        assert_no_children();
    }
    assert_int_equal(s.w.loop.executor.calls->live, 0);
    bool reached = s.w.n_allocations >= s.w.fail_at;
    world_done(&s.w);
    return reached;
}

static void each_fails(const ew_exec_options *options, const char *input, bool streams) {
    for (int closes = 0; closes < 2; closes++) {
        uint64_t n = 1;
        while (n < 1000 && run_with(n, options, input, streams, closes))
            n++;
        assert_true(n > 5 && n < 1000);
    }
}

#define COMMON .grace_ms = 200, .timeout_ms = 20000

static void lines(void **state) {
    static const char *const variables[] = {"A=b", "HOME", NULL};
    static const ew_exec_exit exits[] = {{3, EW_STATUS_NOT_FOUND}};
    (void)state;
    each_fails(&(ew_exec_options){.argv = SHELL("echo text; echo '{\"chunk\":1}'; printf half; sleep 0.05; echo; cat"),
                                  .environment = variables,
                                  .folder = "/",
                                  .exits = exits,
                                  .n_exits = 1,
                                  COMMON},
               "[1,\n2]", false);
}

static void an_error(void **state) {
    (void)state;
    each_fails(
        &(ew_exec_options){.argv = SHELL("echo '{\"error\":{\"status\":\"NOT_FOUND\",\"message\":\"\\u0041\"}}'"),
                           COMMON},
        "1", false);
}

static void a_stream(void **state) {
    (void)state;
    each_fails(&(ew_exec_options){.argv = SHELL("cat"), COMMON}, "1", true);
}

static void one_value(void **state) {
    (void)state;
    each_fails(&(ew_exec_options){.argv = SHELL("cat"), .output = EW_EXEC_JSON, COMMON}, "1", false);
    each_fails(&(ew_exec_options){.argv = SHELL("cat"), .output = EW_EXEC_TEXT, COMMON}, "1", false);
}

static void a_kept_one(void **state) {
    (void)state;
    each_fails(&(ew_exec_options){.argv = SHELL("while read x; do echo text; echo '{\"result\":1}'; echo stray; done"),
                                  .keep = true,
                                  COMMON},
               "[1,\n2]", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),     cmocka_unit_test(an_error),   cmocka_unit_test(a_stream),
        cmocka_unit_test(one_value), cmocka_unit_test(a_kept_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
