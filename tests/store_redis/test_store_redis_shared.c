/*
 * tests/store_redis/test_store_redis_shared.c: one Redis with RRQ's producers and workers: jobs as they write them,
 * workers of theirs that are lost, and what must not stop anybody.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store_redis/world.h"

static ew__store_request *lost(contract *c, const ew__job *job, ew__job_status status) {
    ew__store_request *op = contract_change(c, job, status);
    op->u.change.claim = EW__CLAIM_LOST;
    op->u.change.lost = job->lost + 1;
    return op;
}

/* ---- their jobs ---- */

static void test_shared__a_job_of_rrq(void **state) {
    world *w = *state;
    world_rrq_job(w, "j1", "function_name", "rust#send", "trace_context", "{\"traceparent\":\"t\"}",
                  "correlation_context", "null", "current_retries", "2", "last_error", "before", NULL);
    ew__job job = contract_claim(&w->c, "w1", "j1");
    assert_text(job.function, "rust#send");
    assert_text(job.params, "{\"a\":1}");
    assert_text(job.queue, "q");
    assert_text(job.trace, "{\"traceparent\":\"t\"}");
    assert_int_equal(job.correlation.len, 0);
    assert_text(job.last_error, "before");
    assert_int_equal(job.enqueued_at, INT64_C(1772359200123));
    assert_int_equal(job.retries, 2);
    assert_int_equal(job.max_retries, 5);
    assert_int_equal(job.timeout_ms, 300000);
    assert_int_equal(job.result_ttl_ms, 86400000);
    assert_int_equal(job.epoch, 1);
    assert_int_equal(job.status, EW__JOB_ACTIVE);
    assert_int_equal(job.result.len, 0);
    contract_must_change(&w->c, &job, EW__JOB_COMPLETED);
}

/* What RRQ's worker takes for granted. */
static void test_shared__a_job_that_says_little(void **state) {
    world *w = *state;
    (void)server_do(&w->s, "HSET rrq:job:j1 status PENDING enqueue_time 2026-03-01T11:00:00+01:00 function_name f");
    (void)server_do(&w->s, "ZADD rrq:queue:q 1.5 j1");
    ew__job job = contract_claim(&w->c, "w1", "j1");
    assert_text(job.id, "j1");
    assert_text(job.queue, "q");
    assert_text(job.params, "{}");
    assert_int_equal(job.enqueued_at, INT64_C(1772359200000));
    assert_int_equal(job.retries, 0);
    assert_int_equal(job.max_retries, 5);
    assert_int_equal(job.timeout_ms, 300000);
    assert_int_equal(job.result_ttl_ms, 86400000);
    world_rrq_job(w, "j2", "current_retries", "x", "max_retries", "", "job_timeout_seconds", "1.5",
                  "result_ttl_seconds", "-3", "trace_context", "[1]", "correlation_context", "{\"n\":1}", NULL);
    job = contract_claim(&w->c, "w1", "j2");
    assert_int_equal(job.retries, 0);
    assert_int_equal(job.max_retries, 5);
    assert_int_equal(job.timeout_ms, 300000);
    assert_int_equal(job.result_ttl_ms, 0);
    assert_int_equal(job.trace.len, 0);
    assert_int_equal(job.correlation.len, 0);
}

/* Times that make RRQ's own script fail for everybody. */
static void test_shared__enormous_timeouts(void **state) {
    world *w = *state;
    static const char *const times[] = {"1000000000000000", "9223372036854775807", "9223372036854775",
                                        "99999999999999999999"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "j%zu", i);
        world_rrq_job(w, id, "job_timeout_seconds", times[i], "result_ttl_seconds", times[i], NULL);
        ew__job job = contract_claim(&w->c, "w1", id);
        assert_int_equal(job.timeout_ms, i < 3 ? EW__JOB_TIMEOUT_MAX_MS : 300000);
        contract_must_change(&w->c, &job, EW__JOB_COMPLETED);
        assert_true(server_int(&w->s, "PTTL rrq:job:%s", id) > 0);
    }
    world_rrq_job(w, "c", "result_ttl_seconds", "1000000000000000", NULL);
    ew__store_request *op = contract_op(&w->c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("c"), .now = contract_now(&w->c)};
    assert_int_equal(contract_do(&w->c, op), EW_OK);
}

static void expect_quarantined(world *w, const char *id, const char *why) {
    contract_add_id(&w->c, "good");
    (void)server_do(&w->s, "ZADD rrq:queue:q 9 good");
    (void)server_do(&w->s, "SET rrq:lock:unique:u %s EX 100", id);
    ew__op_claim *got = contract_claim_of(&w->c, "w1", "q", 5);
    assert_text(contract_ids(&w->c, got->ret, got->ret_n), "good"); /* the others are not held up */
    assert_says(server_text(&w->s, "HGET rrq:job:%s status", id), "FAILED");
    assert_says(server_text(&w->s, "HGET rrq:job:%s last_error", id), why);
    assert_says(server_text(&w->s, "LINDEX rrq:dlq:default 0"), id);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:lock:job:%s rrq:lock:unique:u", id), 0);
    assert_int_equal(server_int(&w->s, "ZCARD rrq:active:jobs:w1"), 1);
    assert_true(server_int(&w->s, "PTTL rrq:job:%s", id) > 0);
}

static void test_shared__no_enqueue_time(void **state) {
    world *w = *state;
    world_rrq_job(w, "bad", "enqueue_time", NULL, "job_unique_key", "u", NULL);
    expect_quarantined(w, "bad", "Failed to parse claimed job definition. Moved to DLQ.");
}

static void test_shared__bad_enqueue_time(void **state) {
    world *w = *state;
    world_rrq_job(w, "bad", "enqueue_time", "not-a-timestamp", "job_unique_key", "u", NULL);
    expect_quarantined(w, "bad", "Failed to parse claimed job definition. Moved to DLQ.");
}

static void test_shared__no_status(void **state) {
    world *w = *state;
    world_rrq_job(w, "bad", "status", NULL, "job_unique_key", "u", NULL);
    expect_quarantined(w, "bad", "Failed to parse claimed job definition. Moved to DLQ.");
}

/* RRQ would run these with {}. */
static void test_shared__bad_params(void **state) {
    world *w = *state;
    world_rrq_job(w, "bad", "job_params", "{\"a\":", "job_unique_key", "u", NULL);
    expect_quarantined(w, "bad", "job_params is not a JSON object. Moved to DLQ.");
    contract_must_change(&w->c, &(ew__job){.id = S("good"), .queue = S("q"), .worker = S("w1"), .epoch = 1},
                         EW__JOB_COMPLETED);
    (void)server_do(&w->s, "DEL rrq:job:good");
    world_rrq_job(w, "worse", "job_params", "[1]", "job_unique_key", "u", NULL);
    expect_quarantined(w, "worse", "job_params is not a JSON object. Moved to DLQ.");
}

/* ---- the queue ---- */

static void test_shared__an_entry_without_a_job(void **state) {
    world *w = *state;
    (void)server_do(&w->s, "ZADD rrq:queue:q 1 ghost");
    world_rrq_job(w, "j1", NULL, NULL);
    ew__op_claim *got = contract_claim_of(&w->c, "w1", "q", 5);
    assert_text(contract_ids(&w->c, got->ret, got->ret_n), "j1");
    assert_int_equal(server_int(&w->s, "EXISTS rrq:queue:q rrq:job:ghost rrq:lock:job:ghost"), 0);
}

static void test_shared__locked_ones_are_passed_by(void **state) {
    world *w = *state;
    for (int i = 0; i < 300; i++) {
        (void)server_do(&w->s, "ZADD rrq:queue:q %d l%d", i, i);
        (void)server_do(&w->s, "HSET rrq:job:l%d status PENDING", i);
        (void)server_do(&w->s, "SET rrq:lock:job:l%d somebody PX 60000", i);
    }
    world_rrq_job(w, "j1", NULL, NULL);
    world_rrq_job(w, "j2", NULL, NULL);
    ew__op_claim *got = contract_claim_of(&w->c, "w1", "q", 1);
    assert_text(contract_ids(&w->c, got->ret, got->ret_n), "j1");
    got = contract_claim_of(&w->c, "w1", "q", 9);
    assert_text(contract_ids(&w->c, got->ret, got->ret_n), "j2");
    assert_int_equal(server_int(&w->s, "ZCARD rrq:queue:q"), 300);
    assert_says(server_text(&w->s, "GET rrq:lock:job:l7"), "somebody");
}

/* What has ended is not run again, whoever has put it there. RRQ's own tool brings back dead letters in two steps. */
static void test_shared__ended_ones_are_not_run(void **state) {
    world *w = *state;
    world_rrq_job(w, "done", "status", "COMPLETED", NULL);
    world_rrq_job(w, "stopped", "status", "CANCELLED", NULL);
    world_rrq_job(w, "back", "status", "FAILED", NULL);
    world_rrq_job(w, "old", "status", "FAILED", NULL);
    (void)server_do(&w->s, "ZADD rrq:queue:q 1000 old");
    assert_int_equal(contract_claim_of(&w->c, "w1", "q", 9)->ret_n, 0);
    assert_int_equal(server_int(&w->s, "ZCARD rrq:queue:q"), 1);
    assert_says(server_text(&w->s, "HGET rrq:job:done status"), "COMPLETED");
    (void)server_do(&w->s, "HSET rrq:job:back status PENDING");
    assert_text(contract_claim(&w->c, "w1", "back").id, "back");
}

/* RRQ's debouncing into another queue leaves the job in the first one, too. */
static void test_shared__in_two_queues(void **state) {
    world *w = *state;
    world_rrq_job(w, "j1", "queue_name", "rrq:queue:p", NULL);
    (void)server_do(&w->s, "ZADD rrq:queue:p 1 j1");
    ew__job job = contract_claim(&w->c, "w1", "j1");
    assert_text(job.queue, "p");
    assert_int_equal(server_int(&w->s, "EXISTS rrq:queue:q rrq:queue:p"), 0);
}

/* ---- their workers ---- */

static void test_shared__a_worker_of_rrq_is_lost(void **state) {
    world *w = *state;
    contract *c = &w->c;
    world_rrq_job(w, "j1", NULL, NULL);
    world_rrq_claim(w, "j1", "r1", "r1");
    assert_int_equal(contract_expired(c, 9)->ret_n, 0); /* its lock lives */
    (void)server_do(&w->s, "SET rrq:health:worker:r1 {} EX 70");
    (void)server_do(&w->s, "DEL rrq:lock:job:j1");
    assert_int_equal(contract_expired(c, 9)->ret_n, 0); /* its worker lives: RRQ's rule */
    ew__job job = {.id = S("j1"), .queue = S("q"), .worker = S("r1")};
    assert_int_equal(contract_do(c, lost(c, &job, EW__JOB_PENDING)), EW_ESTALE);
    (void)server_do(&w->s, "DEL rrq:health:worker:r1");
    ew__op_expired *found = contract_expired(c, 9);
    assert_int_equal(found->ret_n, 1);
    job = found->ret[0];
    assert_text(job.worker, "r1");
    assert_int_equal(job.epoch, 0);
    (void)server_do(&w->s, "SET rrq:health:worker:r1 {} EX 70"); /* it is back, just in time */
    assert_int_equal(contract_do(c, lost(c, &job, EW__JOB_PENDING)), EW_ESTALE);
    (void)server_do(&w->s, "DEL rrq:health:worker:r1");
    (void)server_do(&w->s, "SET rrq:lock:job:j1 orphan-recovery-r1 PX 360000"); /* RRQ is at it itself */
    assert_int_equal(contract_do(c, lost(c, &job, EW__JOB_PENDING)), EW_ESTALE);
    (void)server_do(&w->s, "DEL rrq:lock:job:j1");
    assert_int_equal(contract_do(c, lost(c, &job, EW__JOB_PENDING)), EW_OK);
    assert_says(world_keys(w), "rrq:job:j1 rrq:queue:q ");
    job = contract_claim(c, "w1", "j1");
    assert_int_equal(job.lost, 1);
    assert_int_equal(job.epoch, 1);
}

/* RRQ's recovery has put it into the queue, and has not come further. */
static void test_shared__rrq_was_faster(void **state) {
    world *w = *state;
    contract *c = &w->c;
    world_rrq_job(w, "j1", NULL, NULL);
    world_rrq_claim(w, "j1", "r1", NULL);
    ew__job job = contract_expired(c, 9)->ret[0];
    (void)server_do(&w->s, "ZADD rrq:queue:q 1 j1");
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    assert_int_equal(contract_do(c, lost(c, &job, EW__JOB_PENDING)), EW_ESTALE);
    assert_text(contract_claim(c, "w1", "j1").worker, "w1");
    /* the entry of the dead worker goes, ours stays */
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:active:jobs:r1"), 0);
    assert_int_equal(server_int(&w->s, "ZCARD rrq:active:jobs:w1"), 1);
}

static void test_shared__what_dead_workers_leave(void **state) {
    world *w = *state;
    world_rrq_job(w, "done", NULL, NULL);
    world_rrq_job(w, "waits", NULL, NULL);
    world_rrq_job(w, "between", NULL, NULL);
    static const char *const ids[] = {"done", "waits", "between", "missing"};
    for (size_t i = 0; i < 4; i++)
        (void)server_do(&w->s, "ZADD rrq:active:jobs:r1 1 %s", ids[i]);
    (void)server_do(&w->s, "HSET rrq:job:done status COMPLETED");
    (void)server_do(&w->s, "ZREM rrq:queue:q done");
    (void)server_do(&w->s, "ZREM rrq:queue:q between"); /* its worker died after the one step, before the other */
    (void)server_do(&w->s, "SET rrq:health:worker:r1 {} EX 70");
    assert_int_equal(contract_expired(&w->c, 9)->ret_n, 0);
    assert_int_equal(server_int(&w->s, "ZCARD rrq:active:jobs:r1"), 2); /* while it lives it may still do it */
    (void)server_do(&w->s, "DEL rrq:health:worker:r1");
    assert_int_equal(contract_expired(&w->c, 9)->ret_n, 0);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:active:jobs:r1"), 0);
    ew__op_claim *got = contract_claim_of(&w->c, "w1", "q", 9);
    assert_text(contract_ids(&w->c, got->ret, got->ret_n), "waits between");
}

/* A job that we had, and that a worker of RRQ has now. */
static void test_shared__from_ours_to_theirs(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    contract_must_change(c, &job, EW__JOB_RETRYING);
    world_rrq_claim(w, "j1", "r1", "r1");
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_COMPLETED)), EW_ESTALE);
    assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE);
    assert_int_equal(contract_chunk(c, &job, "1"), EW_ESTALE);
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("j1"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_EINVAL);
    assert_says(op->problem, "it runs on an RRQ worker, which cannot cancel");
    /* also when its lock has run out: it is not ours again */
    (void)server_do(&w->s, "DEL rrq:lock:job:j1");
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_COMPLETED)), EW_ESTALE);
    assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE);
    /* and back: the epoch goes on */
    ew__job left = contract_expired(c, 9)->ret[0];
    assert_text(left.worker, "r1");
    assert_int_equal(left.epoch, 1);
    assert_int_equal(contract_do(c, lost(c, &left, EW__JOB_PENDING)), EW_OK);
    assert_int_equal(contract_claim(c, "w1", "j1").epoch, 2);
}

/* We were silent for so long that RRQ recovers a job of ours. */
static void test_shared__rrq_recovers_ours(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    (void)server_do(&w->s, "SET rrq:lock:job:j1 orphan-recovery-w1 PX 360000");
    assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE);
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_COMPLETED)), EW_ESTALE);
    assert_int_equal(contract_chunk(c, &job, "1"), EW_ESTALE);
    (void)server_do(&w->s, "ZADD rrq:queue:q 1 j1");
    (void)server_do(&w->s, "DEL rrq:lock:job:j1");
    assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE); /* it is in the queue: not ours any more */
    assert_int_equal(contract_claim(c, "w2", "j1").epoch, 2);
}

static void test_shared__many_lost(void **state) {
    world *w = *state;
    char id[24];
    for (int i = 0; i < 301; i++) {
        (void)snprintf(id, sizeof id, "j%03d", i);
        (void)server_do(&w->s, "HSET rrq:job:%s status PENDING enqueue_time 2026-03-01T10:00:00+00:00 function_name f",
                        id);
        world_rrq_claim(w, id, "r1", i % 3 == 0 ? "r1" : NULL);
    }
    assert_int_equal(contract_expired(&w->c, 100)->ret_n, 100);
    assert_int_equal(contract_expired(&w->c, 1000)->ret_n, 200);
}

/* ---- lists that hold what is no more ---- */

static void test_shared__sweep(void **state) {
    world *w = *state;
    world_rrq_job(w, "here", "status", "FAILED", NULL);
    (void)server_do(&w->s, "LPUSH rrq:dlq:default gone1 here gone2");
    (void)server_do(&w->s, "LPUSH rrq:dlq:other gone3");
    assert_int_equal(contract_sweep(&w->c, 100), 3);
    assert_int_equal(server_int(&w->s, "LLEN rrq:dlq:default"), 1);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:dlq:other"), 0);
    assert_int_equal(contract_sweep(&w->c, 100), 0);
    (void)server_do(&w->s, "LPUSH rrq:dlq:default a b c d e");
    assert_int_equal(contract_sweep(&w->c, 2), 1); /* the old end first: one of these two is a job */
    assert_int_equal(contract_sweep(&w->c, 100), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shared__a_job_of_rrq, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__a_job_that_says_little, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__enormous_timeouts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__no_enqueue_time, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__bad_enqueue_time, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__no_status, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__bad_params, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__an_entry_without_a_job, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__locked_ones_are_passed_by, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__ended_ones_are_not_run, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__in_two_queues, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__a_worker_of_rrq_is_lost, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__rrq_was_faster, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__what_dead_workers_leave, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__from_ours_to_theirs, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__rrq_recovers_ours, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__many_lost, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared__sweep, world_setup, world_teardown),
    };
    if (!server_exists())
        return 0;
    server_start(&the_world.s, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop(&the_world.s);
    return failed;
}
