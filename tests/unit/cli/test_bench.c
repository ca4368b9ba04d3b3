/*
 * everywire bench without calls: how a run is arranged for its target, and how its figures are shown.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include "support/json_or.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ew__bench_plan plan_of(const char *target, uint64_t connections, uint64_t depth) {
    return (ew__bench_plan){.calling = {.verb = "bench", .words = {target, "echo", NULL}, .n_words = 2},
                            .connections = connections,
                            .depth = depth,
                            .threads = 1};
}

static void expect_arranged(ew__bench_plan plan, unsigned clients, unsigned links, unsigned per_link, unsigned slots) {
    assert_null(ew__bench_arrange(&plan));
    assert_int_equal(plan.clients, clients);
    assert_int_equal(plan.links, links);
    assert_int_equal(plan.per_link, per_link);
    assert_int_equal(plan.slots, slots);
}

static void test_cli_bench__arranged(void **state) {
    char *command[] = {(char[]){"x"}, NULL};
    (void)state;
    expect_arranged(plan_of("http://h:1", 0, 1), 1, 10, 1, 10);
    expect_arranged(plan_of("http://h:1", 8, 4), 1, 32, 1, 32); /* one call each: depth is more of them */
    expect_arranged(plan_of("https://h:1", 8, 4), 1, 32, 1, 32);
    expect_arranged(plan_of("stepflow+http://h:1", 2, 3), 1, 6, 1, 6);
    expect_arranged(plan_of("jsonrpc://h:1", 8, 4), 1, 8, 4, 32);
    expect_arranged(plan_of("jsonrpc+unix:/s", 0, 4), 1, 10, 4, 40);
    expect_arranged(plan_of("reflection://h:1", 0, 32), 1, 1, 32, 32);
    ew__bench_plan plan = plan_of("jsonrpc://h:1", 3, 2);
    plan.threads = 2;
    expect_arranged(plan, 2, 3, 2, 6);
    plan.threads = 5; /* a thread without a connection would do nothing */
    expect_arranged(plan, 3, 3, 2, 6);
    plan = plan_of("rrq://h:0", 0, 8);
    plan.calling.command = command;
    expect_arranged(plan, 1, 1, 8, 8);
    plan = plan_of("stepflow+stdio:", 3, 8);
    plan.calling.command = command;
    expect_arranged(plan, 3, 3, 8, 24); /* a process each, with a thread each */
}

static void test_cli_bench__notes(void **state) {
    (void)state;
    ew__bench_plan plan = plan_of("http://h:1", 8, 4);
    assert_null(ew__bench_arrange(&plan));
    assert_non_null(strstr(plan.note, "-d 4 makes 32 connections"));
    plan = plan_of("http://h:1", 8, 1);
    assert_null(ew__bench_arrange(&plan));
    assert_null(plan.note);
    plan = plan_of("jsonrpc+stdio:", 3, 1);
    assert_null(ew__bench_arrange(&plan));
    assert_non_null(strstr(plan.note, "a process of its own"));
}

static void expect_refused(ew__bench_plan plan, const char *part) {
    const char *problem = ew__bench_arrange(&plan);
    assert_non_null(problem);
    assert_non_null(strstr(problem, part));
}

static void test_cli_bench__refused(void **state) {
    char *command[] = {(char[]){"x"}, NULL};
    (void)state;
    expect_arranged(plan_of("jsonrpc://h:1", 16000, 1), 1, 16000, 1, 16000);
    expect_refused(plan_of("jsonrpc://h:1", 16001, 1), "-c: at most 16000");
    expect_refused(plan_of("jsonrpc://h:1", 1000, 101), "at most 100000");
    expect_refused(plan_of("http://h:1", 1000, 17), "at most 16000");
    expect_refused(plan_of("reflection://h:1", 2, 1), "dials us");
    expect_refused(plan_of("jsonrpc+stdio:", 65, 1), "at most 64");
    ew__bench_plan plan = plan_of("rrq://h:0", 65, 1);
    plan.calling.command = command;
    expect_refused(plan, "at most 64");
    plan = plan_of("stepflow+http:", 2, 1);
    plan.calling.command = command;
    plan.threads = 2;
    expect_refused(plan, "--threads");
    plan = plan_of("http://h:1", 2, 1);
    plan.threads = 65;
    expect_refused(plan, "--threads: at most 64");
}

static void expect_time(double ns, const char *text) {
    char got[32];
    ew__bench_time(got, sizeof got, ns);
    assert_string_equal(got, text);
}

static void test_cli_bench__times(void **state) {
    (void)state;
    expect_time(0, "0 ns");
    expect_time(999, "999 ns");
    expect_time(1000, "1.00 us");
    expect_time(9996, "10.0 us");
    expect_time(76400, "76.4 us");
    expect_time(764000, "764 us");
    expect_time(999900, "1.00 ms");
    expect_time(1.5e9, "1.50 s");
    expect_time(7.2e12, "7200 s");
}

static ew__bench_result result_of(const ew__bench_plan *plan) {
    ew__bench_result result = {.latency = ew__hdr_new(),
                               .first_chunk = plan->stream ? ew__hdr_new() : NULL,
                               .calls = 1000,
                               .seconds = 2,
                               .bytes_in = 4000,
                               .bytes_out = 8000};
    assert_non_null(result.latency);
    for (uint64_t i = 1; i <= 1000; i++) {
        ew__hdr_record(result.latency, i * 1000);
        if (plan->stream) {
            ew__hdr_record(result.first_chunk, i * 10);
        }
    }
    result.statuses[EW_STATUS_OK] = 990;
    result.statuses[EW_STATUS_NOT_FOUND] = 10;
    result.origins[EW_ORIGIN_ACTION] = 10;
    result.failed_first = true;
    result.first_status = EW_STATUS_NOT_FOUND;
    (void)snprintf(result.first_message, sizeof result.first_message, "no \"x\" <here>");
    return result;
}

static void expect_json(const ew__text *out, const char *pointer, double wanted) {
    double got = json_double_or(ew__text_view(out), pointer, -1);
    assert_true(got > wanted - 0.001 && got < wanted + 0.001);
}

static void test_cli_bench__json(void **state) {
    (void)state;
    ew__bench_plan plan = plan_of("http://h:1", 4, 1);
    plan.stream = true;
    plan.rate = 500;
    assert_null(ew__bench_arrange(&plan));
    ew__bench_result result = result_of(&plan);
    ew__text out = {0};
    assert_int_equal(ew__bench_json(&plan, &result, &out), EW_OK);
    assert_int_equal(ew_json_check(ew__text_view(&out), NULL), EW_OK);
    expect_json(&out, "/calls", 1000);
    expect_json(&out, "/rps", 500);
    expect_json(&out, "/errors", 10);
    expect_json(&out, "/status/OK", 990);
    expect_json(&out, "/status/NOT_FOUND", 10);
    expect_json(&out, "/error_origin/action", 10);
    expect_json(&out, "/latency_us/p50", 500.223); /* the upper end of its bucket */
    expect_json(&out, "/latency_us/max", 1000);
    expect_json(&out, "/first_chunk_us/max", 10);
    expect_json(&out, "/bytes_in_per_second", 2000);
    expect_json(&out, "/rate", 500);
    ew__text_free(&out);
    ew__bench_result_free(&result);
}

static void test_cli_bench__table(void **state) {
    (void)state;
    ew__bench_plan plan = plan_of("http://h:1", 4, 1);
    assert_null(ew__bench_arrange(&plan));
    ew__bench_result result = result_of(&plan);
    result.unfinished = 3;
    ew__text out = {0};
    assert_int_equal(ew__bench_table(&plan, &result, &out), EW_OK);
    assert_int_equal(ew__text_add(&out, (ew_str){"", 1}), EW_OK);
    assert_non_null(strstr(out.ptr, "1,000  500/s"));
    assert_non_null(strstr(out.ptr, "10  NOT_FOUND"));
    assert_non_null(strstr(out.ptr, "p99.9"));
    assert_non_null(strstr(out.ptr, "3  still under way"));
    assert_null(strstr(out.ptr, "first chunk"));
    ew__text_free(&out);
    ew__bench_result_free(&result);
}

static unsigned count_of(const char *text, const char *part) {
    unsigned n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

static void test_cli_bench__plots(void **state) {
    (void)state;
    ew__bench_plan plan = plan_of("http://h:1/<a&b>\"\x01", 4, 1);
    plan.stream = true;
    assert_null(ew__bench_arrange(&plan));
    ew__bench_result result = result_of(&plan);
    ew__text out = {0};
    assert_int_equal(ew__bench_plot_svg(&plan, &result, &out), EW_OK);
    assert_int_equal(ew__text_add(&out, (ew_str){"", 1}), EW_OK);
    assert_non_null(strstr(out.ptr, "/&lt;a&amp;b>&quot; </text>"));
    assert_non_null(strstr(out.ptr, ">99 %<"));
    assert_non_null(strstr(out.ptr, ">1 ms<"));
    assert_int_equal(count_of(out.ptr, "class=\"line "), 2); /* the end, and the first chunk */
    assert_null(strstr(out.ptr, "nan"));
    ew__text_free(&out);

    assert_int_equal(ew__bench_plot_text(&result, false, &out), EW_OK);
    assert_int_equal(ew__text_add(&out, (ew_str){"", 1}), EW_OK);
    assert_non_null(strstr(out.ptr, "90 %"));
    assert_non_null(strchr(out.ptr, '#'));
    for (const char *c = out.ptr; *c; c++) {
        assert_true((unsigned char)*c < 0x80);
    }
    ew__text_free(&out);
    ew__bench_result_free(&result);
}

/* One value, none, and values that are all the same have a scale, too. */
static void test_cli_bench__plots_of_little(void **state) {
    (void)state;
    ew__bench_plan plan = plan_of("http://h:1", 4, 1);
    assert_null(ew__bench_arrange(&plan));
    for (uint64_t value = 0; value < 5000000000; value = value * 10 + 1) {
        ew__bench_result result = {.latency = ew__hdr_new(), .seconds = 1};
        ew__text out = {0};
        assert_non_null(result.latency);
        if (value > 0) {
            ew__hdr_record(result.latency, value);
        }
        assert_int_equal(ew__bench_plot_svg(&plan, &result, &out), EW_OK);
        assert_int_equal(ew__bench_plot_text(&result, true, &out), EW_OK);
        assert_int_equal(ew__text_add(&out, (ew_str){"", 1}), EW_OK);
        assert_null(strstr(out.ptr, "nan"));
        assert_null(strstr(out.ptr, "inf"));
        assert_non_null(strstr(out.ptr, "</svg>"));
        ew__text_free(&out);
        ew__bench_result_free(&result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_bench__arranged), cmocka_unit_test(test_cli_bench__notes),
        cmocka_unit_test(test_cli_bench__refused),  cmocka_unit_test(test_cli_bench__times),
        cmocka_unit_test(test_cli_bench__json),     cmocka_unit_test(test_cli_bench__table),
        cmocka_unit_test(test_cli_bench__plots),    cmocka_unit_test(test_cli_bench__plots_of_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
