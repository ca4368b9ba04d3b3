/*
 * tests/unit/jobs/test_job.c: a job as JSON, its copies, its names, and what it may not be.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "json/json.h"
#include "jobs/job.h"
#include "support/fail_env.h"

static ew__job a_job(void) {
    return (ew__job){.id = EW_STR("j1"),
                     .function = EW_STR("mail#send"),
                     .queue = EW_STR("default"),
                     .params = EW_STR("{\"to\": \"a@b\",\n \"n\": 12345678901234567890}"),
                     .enqueued_at = 1772359200123,
                     .run_at = 1772359200123,
                     .timeout_ms = 300000,
                     .result_ttl_ms = 1500,
                     .max_retries = 5};
}

static void assert_text(const ew__buf *out, const char *expected) {
    ew_str text = ew__buf_view(out);
    if (!ew__str_is(text, ew_str_from(expected)))
        fail_msg("%.*s\n   is not\n%s", (int)text.len, text.ptr, expected);
}

static void test_jobs_job__statuses(void **state) {
    (void)state;
    static const char *const names[] = {"PENDING", "ACTIVE", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"};
    for (int i = 0; i < EW__JOB_STATUSES; i++) {
        ew__job_status status = EW__JOB_STATUSES;
        assert_true(ew__str_is(ew__job_status_name((ew__job_status)i), ew_str_from(names[i])));
        assert_true(ew__job_status_parse(ew_str_from(names[i]), &status));
        assert_int_equal(status, i);
        assert_int_equal(ew__job_is_final(status), i >= 3);
    }
    ew__job_status status = EW__JOB_FAILED;
    assert_false(ew__job_status_parse(EW_STR("pending"), &status));
    assert_false(ew__job_status_parse(EW_STR(""), &status));
    assert_int_equal(status, EW__JOB_FAILED);
    assert_true(ew__str_is(ew__job_status_name((ew__job_status)77), EW_STR("UNKNOWN")));
}

static void test_jobs_job__attempts(void **state) {
    (void)state;
    static const uint32_t expected[] = {2, 3, 2, 3, 2, 2};
    for (int i = 0; i < EW__JOB_STATUSES; i++) {
        ew__job job = {.retries = 2, .status = (ew__job_status)i};
        assert_int_equal(ew__job_attempts(&job), expected[i]);
    }
}

static void test_jobs_job__as_json(void **state) {
    (void)state;
    ew__buf out;
    ew__buf_init(&out, ew_env_default(), 1 << 20);
    ew__job job = a_job();
    ew__job_write(&job, &out);
    assert_text(&out,
                "{\"id\":\"j1\",\"function_name\":\"mail#send\",\"queue_name\":\"default\",\"status\":\"PENDING\","
                "\"params\":{\"to\":\"a@b\",\"n\":12345678901234567890},\"result\":null,\"last_error\":null,"
                "\"error\":null,\"attempts\":0,\"max_retries\":5,\"timeout_seconds\":300,\"result_ttl_seconds\":1.5,"
                "\"worker_id\":null,\"lost_workers\":0,\"chunks\":0,\"unique_key\":null,\"trace_context\":null,"
                "\"correlation_context\":null,\"enqueue_time\":\"2026-03-01T10:00:00.123Z\","
                "\"next_scheduled_run_time\":\"2026-03-01T10:00:00.123Z\",\"start_time\":null,"
                "\"completion_time\":null}");
    ew__buf_clear(&out);
    job.status = EW__JOB_COMPLETED;
    job.params = EW_STR("{no json}");
    job.result = EW_STR("[1]");
    job.last_error = EW_STR("it said \"no\"\n");
    job.error = EW_STR("{\"status\":\"INTERNAL\"}");
    job.worker = EW_STR("w");
    job.timeout_ms = 1001;
    job.result_ttl_ms = 20;
    job.lost = 2;
    job.chunks = 7;
    job.ended_at = 1;
    ew__job_write(&job, &out);
    ew_str text = ew__buf_view(&out);
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    static const char *const members[][2] = {{"/params", "\"{no json}\""},
                                             {"/result", "[1]"},
                                             {"/last_error", "\"it said \\\"no\\\"\\n\""},
                                             {"/attempts", "1"},
                                             {"/timeout_seconds", "1.001"},
                                             {"/result_ttl_seconds", "0.02"},
                                             {"/lost_workers", "2"},
                                             {"/chunks", "7"},
                                             {"/completion_time", "\"1970-01-01T00:00:00.001Z\""},
                                             {"/error/status", "\"INTERNAL\""}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        ew_str value = ew_json_get(text, members[i][0]);
        if (!ew__str_is(value, ew_str_from(members[i][1])))
            fail_msg("%s is %.*s", members[i][0], (int)value.len, value.ptr);
    }
    ew__buf_done(&out);
}

static void test_jobs_job__copy(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__job job = a_job(), copy;
    job.unique_key = EW_STR("u");
    job.dlq = EW_STR("d");
    job.epoch = 9;
    for (uint64_t n = 1;; n++) { /* each allocation fails once */
        ew__arena arena;
        ew__arena_init(&arena, &t.env, NULL, 0);
        ew__test_env_fail_at(&t, n, false);
        ew_err err = ew__job_copy(&job, &arena, &copy);
        bool failed = ew__test_env_failed(&t) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        if (err == EW_OK) {
            assert_true(ew__str_is(copy.params, job.params) && copy.params.ptr != job.params.ptr);
            assert_true(ew__str_is(copy.dlq, job.dlq) && copy.dlq.ptr != job.dlq.ptr);
            assert_true(ew__str_is(copy.unique_key, job.unique_key));
            assert_int_equal(copy.epoch, 9);
        }
        ew__arena_done(&arena);
        if (!failed)
            break;
    }
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_jobs_job__names(void **state) {
    (void)state;
    assert_true(ew__str_is(ew__queue_name(EW_STR("rrq:queue:x")), EW_STR("x")));
    assert_true(ew__str_is(ew__queue_name(EW_STR("x")), EW_STR("x")));
    assert_true(ew__str_is(ew__queue_name(EW_STR("rrq:dlq:x")), EW_STR("rrq:dlq:x")));
    assert_true(ew__str_is(ew__dlq_name(EW_STR("rrq:dlq:x")), EW_STR("x")));
    assert_int_equal(ew__queue_name(EW_STR("rrq:queue:")).len, 0);
}

static void expect_problem(const ew__job *job, const char *expected) {
    const char *problem = ew__job_problem(job);
    if (!problem || !strstr(problem, expected))
        fail_msg("%s, not: %s", problem ? problem : "no problem", expected);
}

static void test_jobs_job__problems(void **state) {
    (void)state;
    char longer[EW__JOB_NAME_MAX + 1];
    memset(longer, 'x', sizeof longer);
    ew__job good = a_job(), job = good;
    assert_null(ew__job_problem(&good));
    job.function = EW_STR("");
    expect_problem(&job, "function_name cannot be empty");
    job.function = EW_STR(" \t");
    expect_problem(&job, "function_name cannot be empty");
    job.function = ew__str(longer, sizeof longer);
    expect_problem(&job, "function_name is too long");
    job.function = ew__str(longer, sizeof longer - 1);
    assert_null(ew__job_problem(&job));
    job.function = EW_STR("a\nb");
    expect_problem(&job, "control bytes");
    job.function = EW_STR("a\x80");
    expect_problem(&job, "UTF-8");
    job = good;
    job.queue = EW_STR(" ");
    expect_problem(&job, "queue_name cannot be empty");
    job = good;
    job.id = EW_STR("");
    expect_problem(&job, "job_id cannot be empty");
    job = good;
    job.timeout_ms = 0;
    expect_problem(&job, "job_timeout_seconds must be positive");
    job.timeout_ms = EW__JOB_TIMEOUT_MAX_MS + 1;
    expect_problem(&job, "a year");
    job = good;
    job.result_ttl_ms = -1;
    expect_problem(&job, "result_ttl_seconds");
    job.result_ttl_ms = EW__JOB_TTL_MAX_MS + 1;
    expect_problem(&job, "result_ttl_seconds");
    job = good;
    job.params = EW_STR("{");
    expect_problem(&job, "params must be JSON");
    job.params = EW_STR("");
    expect_problem(&job, "params must be JSON");
    job = good;
    job.trace = EW_STR("[]");
    expect_problem(&job, "trace_context");
    job = good;
    job.correlation = EW_STR("1");
    expect_problem(&job, "correlation_context");
    job = good;
    job.unique_key = EW_STR("  ");
    expect_problem(&job, "unique_key cannot be empty");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_job__statuses), cmocka_unit_test(test_jobs_job__attempts),
        cmocka_unit_test(test_jobs_job__as_json),  cmocka_unit_test(test_jobs_job__copy),
        cmocka_unit_test(test_jobs_job__names),    cmocka_unit_test(test_jobs_job__problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
