/*
 * tests/store_redis/test_store_redis_rrq.c: what is written is what RRQ writes: keys, fields, times, lists, events,
 * lives.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store_redis/world.h"

#define DAY 86400000
#define T0 INT64_C(1772359200123) /* 2026-03-01T10:00:00.123Z */

static ew__job job_at(const char *id, int64_t at) {
    return (ew__job){.id = S(id),
                     .function = S("pkg.act"),
                     .queue = S("q"),
                     .params = S("{\"a\":1}"),
                     .enqueued_at = at,
                     .run_at = at,
                     .timeout_ms = 300000,
                     .result_ttl_ms = DAY,
                     .max_retries = 5};
}

static void expect_life(world *w, const char *key, long long ms) {
    long long ttl = server_int(&w->s, "PTTL %s", key);
    if (ttl > ms || ttl < ms - 20000)
        fail_msg("%s lives for %lld ms, not %lld", key, ttl, ms);
}

/* ---- enqueueing ---- */

static void test_rrq__enqueued(void **state) {
    world *w = *state;
    contract_add(&w->c, job_at("j1", T0));
    assert_says(world_keys(w), "rrq:job:j1 rrq:queue:q ");
    world_expect_hash(w, "rrq:job:j1", "id", "j1", "function_name", "pkg.act", "job_params", "{\"a\":1}",
                      "enqueue_time", "2026-03-01T10:00:00.123+00:00", "status", "PENDING", "current_retries", "0",
                      "next_scheduled_run_time", "2026-03-01T10:00:00.123+00:00", "max_retries", "5",
                      "job_timeout_seconds", "300", "result_ttl_seconds", "86400", "queue_name", "rrq:queue:q",
                      "result", "null", NULL);
    assert_says(server_text(&w->s, "ZSCORE rrq:queue:q j1"), "1772359200123");
    assert_int_equal(server_int(&w->s, "PTTL rrq:job:j1"), -1);
    assert_int_equal(server_int(&w->s, "PTTL rrq:queue:q"), -1);
}

static void test_rrq__enqueued_with_everything(void **state) {
    world *w = *state;
    ew__job job = job_at("j1", T0 - 123);
    job.run_at = T0 + 1000;
    job.trace = S("{\"traceparent\":\"00-a-b-01\"}");
    job.correlation = S("{\"session\":\"s1\"}");
    job.unique_key = S("u");
    job.dlq = S("letters");
    job.timeout_ms = 1500;
    job.result_ttl_ms = 0;
    contract_add(&w->c, job);
    world_expect_hash(w, "rrq:job:j1", "id", "j1", "function_name", "pkg.act", "job_params", "{\"a\":1}",
                      "enqueue_time", "2026-03-01T10:00:00+00:00", "status", "PENDING", "current_retries", "0",
                      "next_scheduled_run_time", "2026-03-01T10:00:01.123+00:00", "max_retries", "5",
                      "job_timeout_seconds", "2", "result_ttl_seconds", "0", "queue_name", "rrq:queue:q", "result",
                      "null", "trace_context", "{\"traceparent\":\"00-a-b-01\"}", "correlation_context",
                      "{\"session\":\"s1\"}", "job_unique_key", "u", "dlq_name", "letters", "ew_timeout_ms", "1500",
                      NULL);
    ew__job got = contract_get(&w->c, "j1");
    assert_int_equal(got.timeout_ms, 1500);
    assert_int_equal(got.result_ttl_ms, 0);
    assert_text(got.dlq, "letters");
}

static void test_rrq__keys_of_guards(void **state) {
    world *w = *state;
    (void)contract_dedup_enqueue(&w->c, job_at("j1", T0), EW__DEDUP_UNIQUE, "u");
    (void)contract_dedup_enqueue(&w->c, job_at("j2", T0), EW__DEDUP_RATE, "r");
    (void)contract_dedup_enqueue(&w->c, job_at("j3", T0), EW__DEDUP_DEBOUNCE, "d");
    assert_says(server_text(&w->s, "GET rrq:idempotency:u"), "j1");
    assert_says(server_text(&w->s, "GET rrq:rate_limit:r"), "j2");
    assert_says(server_text(&w->s, "GET rrq:debounce:d"), "j3");
    expect_life(w, "rrq:idempotency:u", (long long)contract_ttl(&w->c));
    expect_life(w, "rrq:rate_limit:r", (long long)contract_ttl(&w->c));
    expect_life(w, "rrq:debounce:d", (long long)contract_ttl(&w->c));
    assert_int_equal(server_int(&w->s, "HEXISTS rrq:job:j1 job_unique_key"), 0); /* producers never write it */
}

/* A key of idempotency that a producer of RRQ has made. */
static void test_rrq__a_producers_keys(void **state) {
    world *w = *state;
    world_rrq_job(w, "theirs", NULL, NULL);
    (void)server_do(&w->s, "SET rrq:idempotency:k theirs EX 100");
    ew__op_enqueue *got = contract_dedup_enqueue(&w->c, job_at("ours", T0), EW__DEDUP_UNIQUE, "k");
    assert_int_equal(got->ret, EW__ENQUEUED_KNOWN);
    assert_text(got->ret_id, "theirs");
    (void)server_do(&w->s, "SET rrq:idempotency:k gone EX 100");
    got = contract_dedup_enqueue(&w->c, job_at("ours", T0), EW__DEDUP_UNIQUE, "k");
    assert_int_equal(got->ret, EW__ENQUEUED_NEW);
    assert_says(server_text(&w->s, "GET rrq:idempotency:k"), "ours");
    (void)server_do(&w->s, "SET rrq:debounce:d theirs EX 100");
    got = contract_dedup_enqueue(&w->c, job_at("later", T0 + 5000), EW__DEDUP_DEBOUNCE, "d");
    assert_int_equal(got->ret, EW__ENQUEUED_KNOWN);
    assert_text(got->ret_id, "theirs");
    assert_says(server_text(&w->s, "HGET rrq:job:theirs next_scheduled_run_time"), "2026-03-01T10:00:05.123+00:00");
    assert_says(server_text(&w->s, "HGET rrq:job:theirs enqueue_time"), "2026-03-01T10:00:00.123456789+00:00");
    assert_says(server_text(&w->s, "ZSCORE rrq:queue:q theirs"), "1772359205123");
}

/* A job that carries its key holds the lock that RRQ's schedules look at, and both end with it. */
static void test_rrq__unique_lock(void **state) {
    world *w = *state;
    ew__job job = job_at("j1", T0);
    job.unique_key = S("cron:f");
    assert_int_equal(contract_dedup_enqueue(&w->c, job, EW__DEDUP_UNIQUE, "cron:f")->ret, EW__ENQUEUED_NEW);
    assert_says(server_text(&w->s, "GET rrq:lock:unique:cron:f"), "j1");
    ew__job got = contract_claim(&w->c, "w1", "j1");
    contract_must_change(&w->c, &got, EW__JOB_RETRYING);
    assert_says(server_text(&w->s, "GET rrq:lock:unique:cron:f"), "j1");
    got = contract_claim(&w->c, "w1", "j1");
    contract_must_change(&w->c, &got, EW__JOB_COMPLETED);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:lock:unique:cron:f rrq:idempotency:cron:f"), 0);
    /* RRQ holds it */
    world_rrq_job(w, "theirs", "job_unique_key", "cron:f", NULL);
    (void)server_do(&w->s, "SET rrq:lock:unique:cron:f theirs EX 100");
    job.id = S("j2");
    ew__op_enqueue *known = contract_dedup_enqueue(&w->c, job, EW__DEDUP_UNIQUE, "cron:f");
    assert_int_equal(known->ret, EW__ENQUEUED_KNOWN);
    assert_text(known->ret_id, "theirs");
    /* a worker of RRQ ends a job of ours: it frees the lock only */
    (void)server_do(&w->s, "DEL rrq:lock:unique:cron:f");
    assert_int_equal(contract_dedup_enqueue(&w->c, job, EW__DEDUP_UNIQUE, "cron:f")->ret, EW__ENQUEUED_NEW);
    (void)server_do(&w->s, "HSET rrq:job:j2 status COMPLETED");
    (void)server_do(&w->s, "DEL rrq:lock:unique:cron:f");
    job.id = S("j3");
    assert_int_equal(contract_dedup_enqueue(&w->c, job, EW__DEDUP_UNIQUE, "cron:f")->ret, EW__ENQUEUED_NEW);
}

/* The lock is another's by now. */
static void test_rrq__unique_lock_of_another(void **state) {
    world *w = *state;
    world_rrq_job(w, "j1", "job_unique_key", "u", NULL);
    (void)server_do(&w->s, "SET rrq:lock:unique:u other EX 100");
    ew__job got = contract_claim(&w->c, "w1", "j1");
    assert_text(got.unique_key, "u");
    contract_must_change(&w->c, &got, EW__JOB_COMPLETED);
    assert_says(server_text(&w->s, "GET rrq:lock:unique:u"), "other");
}

/* ---- what becomes of it ---- */

static void test_rrq__claimed(void **state) {
    world *w = *state;
    contract_add(&w->c, job_at("j1", T0));
    ew__store_request *op = contract_op(&w->c, EW__OP_CLAIM);
    ew__claim_queue queue = {.name = S("q"), .max = 1};
    op->u.claim = (ew__op_claim){
        .worker = S("w1"), .queues = &queue, .n_queues = 1, .max = 1, .now = T0 + 877, .lease_ms = 15000};
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_int_equal(op->u.claim.ret_n, 1);
    assert_says(world_keys(w), "ew:workers rrq:active:jobs:w1 rrq:job:j1 rrq:lock:job:j1 ");
    world_expect_hash(w, "rrq:job:j1", "id", "j1", "function_name", "pkg.act", "job_params", "{\"a\":1}",
                      "enqueue_time", "2026-03-01T10:00:00.123+00:00", "status", "ACTIVE", "current_retries", "0",
                      "next_scheduled_run_time", "2026-03-01T10:00:00.123+00:00", "max_retries", "5",
                      "job_timeout_seconds", "300", "result_ttl_seconds", "86400", "queue_name", "rrq:queue:q",
                      "result", "null", "start_time", "2026-03-01T10:00:01+00:00", "worker_id", "w1", "ew_worker", "w1",
                      "ew_epoch", "1", NULL);
    assert_says(server_text(&w->s, "GET rrq:lock:job:j1"), "w1");
    expect_life(w, "rrq:lock:job:j1", 15000);
    assert_says(server_text(&w->s, "ZSCORE rrq:active:jobs:w1 j1"), "1772359201");
}

static void expect_event(world *w, const char *id, const char *event, const char *status) {
    redisReply *all = server_do(&w->s, "XRANGE rrq:events:job:%s - +", id);
    assert_int_equal(all->elements, 1);
    redisReply *fields = all->element[0]->element[1];
    const char *const expected[] = {"event", event, "job_id", id, "status", status};
    assert_int_equal(fields->elements, 6);
    for (size_t i = 0; i < 6; i++)
        assert_says(fields->element[i]->str, expected[i]);
}

static void test_rrq__completed(void **state) {
    world *w = *state;
    contract_add(&w->c, job_at("j1", T0));
    ew__job job = contract_claim(&w->c, "w1", "j1");
    ew__store_request *op = contract_change(&w->c, &job, EW__JOB_COMPLETED);
    op->u.change.result = S("{\"r\":[1,2]}");
    op->u.change.now = T0 + 5000;
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_says(world_keys(w), "ew:workers rrq:events:job:j1 rrq:job:j1 ");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 status"), "COMPLETED");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 result"), "{\"r\":[1,2]}");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 completion_time"), "2026-03-01T10:00:05.123+00:00");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 worker_id"), "w1");
    expect_event(w, "j1", "completed", "COMPLETED");
    expect_life(w, "rrq:job:j1", DAY);
    expect_life(w, "rrq:events:job:j1", DAY);
}

static void test_rrq__for_ever(void **state) {
    world *w = *state;
    ew__job job = job_at("j1", T0);
    job.result_ttl_ms = 0;
    contract_add(&w->c, job);
    job = contract_claim(&w->c, "w1", "j1");
    contract_must_change(&w->c, &job, EW__JOB_COMPLETED);
    assert_int_equal(server_int(&w->s, "PTTL rrq:job:j1"), -1);
    assert_int_equal(server_int(&w->s, "PTTL rrq:events:job:j1"), -1);
}

static void test_rrq__failed(void **state) {
    world *w = *state;
    contract_add(&w->c, job_at("j1", T0));
    contract_add(&w->c, job_at("j2", T0 + 1));
    ew__op_claim *got = contract_claim_of(&w->c, "w1", "q", 2);
    for (size_t i = 0; i < 2; i++) {
        ew__store_request *op = contract_change(&w->c, &got->ret[i], EW__JOB_FAILED);
        op->u.change.retries = 5;
        op->u.change.last_error = S("it broke");
        op->u.change.error = S("{\"status\":\"INTERNAL\"}");
        assert_int_equal(contract_do(&w->c, op), EW_OK);
    }
    redisReply *list = server_do(&w->s, "LRANGE rrq:dlq:default 0 -1");
    assert_int_equal(list->elements, 2);
    assert_says(list->element[0]->str, "j2"); /* the newest at the head */
    assert_says(server_text(&w->s, "HGET rrq:job:j1 status"), "FAILED");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 last_error"), "it broke");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 current_retries"), "5");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 result"), "null");
    assert_int_equal(server_int(&w->s, "HEXISTS rrq:job:j1 completion_time"), 1);
    expect_event(w, "j1", "failed", "FAILED");
    expect_life(w, "rrq:job:j1", 604800000);
    expect_life(w, "rrq:events:job:j1", 604800000);
    assert_int_equal(server_int(&w->s, "PTTL rrq:dlq:default"), -1);
}

static void test_rrq__retrying_and_pending(void **state) {
    world *w = *state;
    contract_add(&w->c, job_at("j1", T0));
    ew__job job = contract_claim(&w->c, "w1", "j1");
    ew__store_request *op = contract_change(&w->c, &job, EW__JOB_RETRYING);
    op->u.change.run_at = T0 + 7000;
    op->u.change.retries = 1;
    op->u.change.last_error = S("again");
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_says(world_keys(w), "ew:workers rrq:job:j1 rrq:queue:q ");
    assert_says(server_text(&w->s, "ZSCORE rrq:queue:q j1"), "1772359207123");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 status"), "RETRYING");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 current_retries"), "1");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 next_scheduled_run_time"), "2026-03-01T10:00:07.123+00:00");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 worker_id"), "w1"); /* RRQ leaves these */
    assert_int_equal(server_int(&w->s, "HEXISTS rrq:job:j1 start_time"), 1);
    job = contract_claim(&w->c, "w2", "j1");
    contract_must_change(&w->c, &job, EW__JOB_PENDING);
    assert_says(server_text(&w->s, "HGET rrq:job:j1 status"), "PENDING");
    assert_int_equal(server_int(&w->s, "HEXISTS rrq:job:j1 worker_id"), 0); /* and removes them here */
    assert_int_equal(server_int(&w->s, "HEXISTS rrq:job:j1 start_time"), 0);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:lock:job:j1 rrq:active:jobs:w2"), 0);
}

static void test_rrq__cancelled(void **state) {
    world *w = *state;
    world_rrq_job(w, "j1", NULL, NULL);
    ew__store_request *op = contract_op(&w->c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("j1"), .now = T0};
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_says(world_keys(w), "rrq:events:job:j1 rrq:job:j1 ");
    expect_event(w, "j1", "cancelled", "CANCELLED");
    expect_life(w, "rrq:job:j1", DAY);
    assert_says(server_text(&w->s, "HGET rrq:job:j1 completion_time"), "2026-03-01T10:00:00.123+00:00");
}

static void test_rrq__requeued(void **state) {
    world *w = *state;
    world_rrq_job(w, "j1", "status", "FAILED", "current_retries", "5", "last_error", "no", "completion_time",
                  "2026-03-01T10:00:02+00:00", NULL);
    (void)server_do(&w->s, "DEL rrq:queue:q");
    (void)server_do(&w->s, "LPUSH rrq:dlq:default x j1 y");
    (void)server_do(&w->s, "EXPIRE rrq:job:j1 604800");
    ew__store_request *op = contract_op(&w->c, EW__OP_REQUEUE);
    op->u.requeue = (ew__op_requeue){.id = S("j1"), .now = T0};
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_int_equal(server_int(&w->s, "LLEN rrq:dlq:default"), 2);
    assert_int_equal(server_int(&w->s, "PTTL rrq:job:j1"), -1);
    assert_says(server_text(&w->s, "HGET rrq:job:j1 current_retries"), "0");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 status"), "PENDING");
    assert_says(server_text(&w->s, "HGET rrq:job:j1 queue_name"), "rrq:queue:q");
    assert_says(server_text(&w->s, "ZSCORE rrq:queue:q j1"), "1772359200123");
}

static void test_rrq__health(void **state) {
    world *w = *state;
    ew__store_request *op = contract_op(&w->c, EW__OP_RENEW);
    op->u.renew =
        (ew__op_renew){.worker = S("w1"), .record = S("{\"worker_id\":\"w1\"}"), .ttl_ms = 60000, .lease_ms = 15000};
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_says(server_text(&w->s, "GET rrq:health:worker:w1"), "{\"worker_id\":\"w1\"}");
    assert_int_equal(server_int(&w->s, "TTL rrq:health:worker:w1"), 60);
    op = contract_op(&w->c, EW__OP_RENEW);
    op->u.renew = (ew__op_renew){.worker = S("w1")};
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_says(world_keys(w), "");
}

static void test_rrq__chunks(void **state) {
    world *w = *state;
    contract_add(&w->c, job_at("j1", T0));
    ew__job job = contract_claim(&w->c, "w1", "j1");
    assert_int_equal(contract_chunk(&w->c, &job, "{\"n\":1}"), EW_OK);
    assert_int_equal(contract_chunk(&w->c, &job, "2"), EW_OK);
    redisReply *all = server_do(&w->s, "XRANGE ew:chunks:j1 - +");
    assert_int_equal(all->elements, 2);
    assert_says(all->element[1]->element[0]->str, "0-2");
    assert_int_equal(server_int(&w->s, "PTTL ew:chunks:j1"), -1);
    contract_must_change(&w->c, &job, EW__JOB_COMPLETED);
    expect_life(w, "ew:chunks:j1", DAY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rrq__enqueued, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__enqueued_with_everything, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__keys_of_guards, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__a_producers_keys, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__unique_lock, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__unique_lock_of_another, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__claimed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__completed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__for_ever, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__failed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__retrying_and_pending, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__cancelled, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__requeued, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__health, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rrq__chunks, world_setup, world_teardown),
    };
    if (!server_exists())
        return 0;
    server_start(&the_world.s, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop(&the_world.s);
    return failed;
}
