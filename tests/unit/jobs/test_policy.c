/*
 * tests/unit/jobs/test_policy.c: what becomes of a job: RRQ's table of outcomes, its counting and its back-off.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs/policy.h"

#define NOW INT64_C(1000000)

static ew__policy a_policy(void) {
    ew__policy policy = {.base_retry_ms = 2000, .max_retry_ms = 5000};
    ew__policy_complete(&policy);
    return policy;
}

static ew__job a_job(uint32_t max_retries, uint32_t retries) {
    return (ew__job){.id = EW_STR("j"),
                     .queue = EW_STR("q"),
                     .worker = EW_STR("w"),
                     .status = EW__JOB_ACTIVE,
                     .epoch = 4,
                     .run_at = NOW - 500,
                     .timeout_ms = 3000,
                     .max_retries = max_retries,
                     .retries = retries,
                     .lost = 1,
                     .result_ttl_ms = 77,
                     .unique_key = EW_STR("u")};
}

static ew__op_change ended(const ew__policy *policy, const ew__job *job, ew__outcome outcome, ew__policy_text *text) {
    ew__op_change change;
    ew__policy_ended(policy, job, &outcome, NOW, 12345, text, &change);
    assert_int_equal(change.claim, EW__CLAIM_HELD);
    assert_int_equal(change.epoch, 4);
    assert_int_equal(change.now, NOW);
    assert_int_equal(change.lost, 1);
    assert_int_equal(change.result_ttl_ms, 77);
    assert_true(ew__str_is(change.id, EW_STR("j")) && ew__str_is(change.queue, EW_STR("q")));
    assert_true(ew__str_is(change.worker, EW_STR("w")) && ew__str_is(change.unique_key, EW_STR("u")));
    return change;
}

static void assert_error(const ew__op_change *change, const char *expected) {
    if (!ew__str_is(change->last_error, ew_str_from(expected)))
        fail_msg("%.*s, not %s", (int)change->last_error.len, change->last_error.ptr, expected);
}

static void test_jobs_policy__usual_values(void **state) {
    (void)state;
    ew__policy policy = {0};
    ew__policy_complete(&policy);
    assert_int_equal(policy.base_retry_ms, 5000);
    assert_int_equal(policy.max_retry_ms, 3600000);
    assert_int_equal(policy.poison_after, 3);
    assert_true(ew__str_is(policy.dlq, EW_STR("default")));
}

static void test_jobs_policy__backoff(void **state) {
    (void)state;
    ew__policy policy = a_policy();
    static const uint64_t most[] = {2000, 4000, 5000, 5000};
    for (uint32_t n = 1; n <= 4; n++) {
        uint64_t seen = 0;
        for (uint64_t random = 0; random < 20000; random += 7) {
            uint64_t ms = ew__policy_backoff(&policy, n, random);
            assert_true(ms <= most[n - 1]);
            seen = ms > seen ? ms : seen;
        }
        assert_true(seen > most[n - 1] * 9 / 10); /* all of it is used */
    }
    policy.no_jitter = true;
    for (uint32_t n = 1; n <= 4; n++)
        assert_int_equal(ew__policy_backoff(&policy, n, 99), most[n - 1]);
    policy.base_retry_ms = UINT64_MAX / 2 + 1;
    policy.max_retry_ms = UINT64_MAX;
    assert_true(ew__policy_backoff(&policy, UINT32_MAX, 1) <= (uint64_t)EW__JOB_TIMEOUT_MAX_MS);
}

/* max_retries counts executions. */
static void test_jobs_policy__max_retries(void **state) {
    (void)state;
    static const struct { uint32_t max, executions; } cases[] = {{0, 1}, {1, 1}, {2, 2}, {5, 5}};
    ew__policy policy = a_policy();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew__job job = a_job(cases[i].max, 0);
        uint32_t runs = 0;
        for (;;) {
            ew__policy_text text;
            ew__op_change change = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_ERROR}, &text);
            runs++;
            assert_int_equal(change.retries, job.retries + 1);
            job.retries = change.retries;
            if (change.status == EW__JOB_FAILED)
                break;
            assert_int_equal(change.status, EW__JOB_RETRYING);
        }
        assert_int_equal(runs, cases[i].executions);
    }
}

static void test_jobs_policy__outcomes(void **state) {
    (void)state;
    ew__policy policy = a_policy();
    ew__policy_text text;
    ew__job job = a_job(5, 1);
    ew__op_change c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_SUCCESS, .result = EW_STR("[1]")}, &text);
    assert_int_equal(c.status, EW__JOB_COMPLETED);
    assert_int_equal(c.retries, 1);
    assert_true(ew__str_is(c.result, EW_STR("[1]")));
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_SUCCESS}, &text);
    assert_true(ew__str_is(c.result, EW_STR("null")));
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_RETRY, .retry_after_ms = 123456}, &text);
    assert_int_equal(c.status, EW__JOB_RETRYING);
    assert_int_equal(c.run_at, NOW + 123456); /* exactly: no cap, no jitter */
    assert_error(&c, "Job requested retry");
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_RETRY, .retry_after_ms = 0}, &text);
    assert_int_equal(c.run_at, NOW);
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_RETRY, .retry_after_ms = -1}, &text);
    assert_true(c.run_at >= NOW && c.run_at <= NOW + 4000);
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_ERROR, .retry_after_ms = 123456}, &text);
    assert_true(c.run_at <= NOW + 4000);
    assert_error(&c, "Job failed");
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_ERROR, .message = EW_STR("no"), .error = EW_STR("{}")},
              &text);
    assert_error(&c, "no");
    assert_true(ew__str_is(c.error, EW_STR("{}")));
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_FATAL}, &text);
    assert_int_equal(c.status, EW__JOB_FAILED);
    assert_int_equal(c.retries, 2);
    assert_error(&c, "Handler not found");
    assert_true(ew__str_is(c.dlq, EW_STR("default")));
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_CANCELLED}, &text);
    assert_int_equal(c.status, EW__JOB_CANCELLED);
    assert_int_equal(c.retries, 1);
}

static void test_jobs_policy__timeouts(void **state) {
    (void)state;
    ew__policy policy = a_policy();
    ew__policy_text text;
    ew__job job = a_job(5, 0);
    ew__op_change c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_TIMEOUT}, &text);
    assert_int_equal(c.status, EW__JOB_FAILED);
    assert_int_equal(c.retries, 1);
    assert_error(&c, "Job timed out after 3s.");
    policy.retry_timeouts = true;
    job.timeout_ms = 1250;
    job.dlq = EW_STR("other");
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_TIMEOUT}, &text);
    assert_int_equal(c.status, EW__JOB_RETRYING);
    assert_error(&c, "Job timed out after 1.250s.");
    job.retries = 4;
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_TIMEOUT}, &text);
    assert_int_equal(c.status, EW__JOB_FAILED);
    assert_true(ew__str_is(c.dlq, EW_STR("other")));
}

static void test_jobs_policy__handed_back(void **state) {
    (void)state;
    ew__policy policy = a_policy();
    ew__policy_text text;
    ew__job job = a_job(1, 0);
    ew__op_change c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_BACK}, &text);
    assert_int_equal(c.status, EW__JOB_PENDING);
    assert_int_equal(c.retries, 0);
    assert_int_equal(c.run_at, NOW - 500); /* its old place */
    assert_error(&c, "Job execution interrupted by worker shutdown. Re-queued.");
    job.run_at = NOW + 500; /* a clock was wrong */
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_BACK}, &text);
    assert_int_equal(c.run_at, NOW);
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_BACK, .retry_after_ms = 100}, &text);
    assert_int_equal(c.run_at, NOW + 100);
    job.cancel = true;
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_BACK}, &text);
    assert_int_equal(c.status, EW__JOB_CANCELLED);
    job.max_retries = 5;
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_ERROR}, &text);
    assert_int_equal(c.status, EW__JOB_CANCELLED);
    c = ended(&policy, &job, (ew__outcome){.kind = EW__OUTCOME_SUCCESS}, &text);
    assert_int_equal(c.status, EW__JOB_COMPLETED);
}

static void test_jobs_policy__lost_workers(void **state) {
    (void)state;
    ew__policy policy = a_policy();
    ew__policy_text text;
    ew__op_change c;
    ew__job job = a_job(5, 2);
    ew__policy_lost(&policy, &job, NOW, &text, &c);
    assert_int_equal(c.claim, EW__CLAIM_LOST);
    assert_int_equal(c.status, EW__JOB_PENDING);
    assert_int_equal(c.lost, 2);
    assert_int_equal(c.retries, 2);
    assert_int_equal(c.run_at, NOW - 500);
    assert_error(&c, "Recovered after lock expiry or worker crash.");
    job.lost = 2;
    ew__policy_lost(&policy, &job, NOW, &text, &c);
    assert_int_equal(c.status, EW__JOB_FAILED);
    assert_int_equal(c.lost, 3);
    assert_error(&c, "Poison pill: 3 workers were lost while they ran this job.");
    job.cancel = true;
    ew__policy_lost(&policy, &job, NOW, &text, &c);
    assert_int_equal(c.status, EW__JOB_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_policy__usual_values), cmocka_unit_test(test_jobs_policy__backoff),
        cmocka_unit_test(test_jobs_policy__max_retries),  cmocka_unit_test(test_jobs_policy__outcomes),
        cmocka_unit_test(test_jobs_policy__timeouts),     cmocka_unit_test(test_jobs_policy__handed_back),
        cmocka_unit_test(test_jobs_policy__lost_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
