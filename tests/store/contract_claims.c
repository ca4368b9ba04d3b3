/*
 * tests/store/contract_claims.c: who gets which job, and who may say what became of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

static void add_at(contract *c, const char *id, const char *queue, int64_t run_at) {
    ew__job job = contract_job(c, id);
    job.queue = S(queue);
    job.run_at = run_at;
    contract_add(c, job);
}

static ew__op_claim *claim(contract *c, const ew__claim_queue *queues, size_t n, uint32_t max, int64_t now) {
    ew__store_request *op = contract_op(c, EW__OP_CLAIM);
    op->u.claim = (ew__op_claim){
        .worker = S("w1"), .queues = queues, .n_queues = n, .max = max, .now = now, .lease_ms = contract_lease(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    return &op->u.claim;
}

static void test_contract__a_claim_takes_it(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    assert_int_equal(job.status, EW__JOB_ACTIVE);
    assert_int_equal(job.epoch, 1);
    assert_text(job.worker, "w1");
    assert_text(job.queue, "q");
    assert_true(job.started_at > 0);
    assert_int_equal(job.timeout_ms, 5000);
    assert_int_equal(contract_claim_of(c, "w2", "q", 9)->ret_n, 0);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_ACTIVE);
    assert_int_equal(got.epoch, 1);
    assert_text(got.worker, "w1");
    assert_int_equal(got.started_at, job.started_at);
    assert_int_equal(contract_claim_of(c, "w2", "q", 9)->ret_n, 0);
}

static void test_contract__claims_by_due_time(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    add_at(c, "c", "q", now - 10);
    add_at(c, "b", "q", now - 10);
    add_at(c, "a", "q", now - 5);
    add_at(c, "d", "q", now - 1000);
    add_at(c, "e", "q", 1);
    ew__op_claim *got = contract_claim_of(c, "w1", "q", 3);
    assert_text(contract_ids(c, got->ret, got->ret_n), "e d b");
    got = contract_claim_of(c, "w1", "q", 3);
    assert_text(contract_ids(c, got->ret, got->ret_n), "c a");
    assert_int_equal(got->ret_next, 0);
}

static void test_contract__claims_in_order_of_queues(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    add_at(c, "a1", "a", now - 300);
    add_at(c, "a2", "a", now - 200);
    add_at(c, "a3", "a", now - 100);
    add_at(c, "b1", "b", now - 900);
    add_at(c, "b2", "b", now - 800);
    add_at(c, "z1", "z", now - 999);
    const ew__claim_queue queues[] = {{S("b"), 1}, {S("z"), 0}, {S("none"), 9}, {S("a"), 2}};
    ew__op_claim *got = claim(c, queues, 4, 9, now);
    assert_text(contract_ids(c, got->ret, got->ret_n), "b1 a1 a2");
    got = claim(c, queues, 4, 1, now);
    assert_text(contract_ids(c, got->ret, got->ret_n), "b2");
    got = claim(c, queues, 4, 0, now);
    assert_int_equal(got->ret_n, 0);
    got = claim(c, queues, 0, 9, now);
    assert_int_equal(got->ret_n, 0);
    assert_int_equal(contract_get(c, "z1").status, EW__JOB_PENDING);
    assert_int_equal(contract_get(c, "a3").status, EW__JOB_PENDING);
}

static void test_contract__says_when_something_will_be_due(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    add_at(c, "later", "a", now + 50000);
    add_at(c, "sooner", "b", now + 40000);
    add_at(c, "elsewhere", "x", now + 10);
    const ew__claim_queue queues[] = {{S("a"), 5}, {S("b"), 5}};
    ew__op_claim *got = claim(c, queues, 2, 5, now);
    assert_int_equal(got->ret_n, 0);
    assert_int_equal(got->ret_next, now + 40000);
    got = claim(c, queues, 2, 5, now + 40000);
    assert_text(contract_ids(c, got->ret, got->ret_n), "sooner");
    assert_int_equal(got->ret_next, now + 50000);
    got = claim(c, queues, 2, 5, now + 49999);
    assert_int_equal(got->ret_n, 0);
    got = claim(c, queues, 2, 5, now + 50000);
    assert_text(contract_ids(c, got->ret, got->ret_n), "later");
    assert_int_equal(got->ret_next, 0);
    /* of the next after what was taken, too */
    add_at(c, "n1", "a", now);
    add_at(c, "n2", "a", now + 7000);
    got = claim(c, queues, 2, 5, now);
    assert_text(contract_ids(c, got->ret, got->ret_n), "n1");
    assert_int_equal(got->ret_next, now + 7000);
}

static void test_contract__paused(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    contract_pause(c, "q", true);
    contract_pause(c, "q", true);
    contract_reopen(c);
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 0);
    contract_add_id(c, "j2"); /* is taken, and waits */
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 0);
    ew__job other = contract_job(c, "j3");
    other.queue = S("other");
    contract_add(c, other);
    assert_int_equal(contract_claim_of(c, "w1", "other", 9)->ret_n, 1);
    contract_pause(c, "q", false);
    contract_pause(c, "never was", false);
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 2);
}

/* What runs goes on while its queue is paused. */
static void test_contract__paused_while_it_runs(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    contract_pause(c, "q", true);
    assert_int_equal(contract_renew(c, &job), EW__LEASE_HELD);
    contract_must_change(c, &job, EW__JOB_RETRYING);
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 0);
    contract_pause(c, "q", false);
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 1);
}

static void test_contract__many_at_once(void **state) {
    contract *c = *state;
    enum { N = 300 };
    int64_t now = contract_now(c);
    for (int i = 0; i < N; i++) {
        ew__job job = contract_job(c, "");
        job.id = contract_text(c, "j%03d", i);
        job.run_at = now - N + i;
        contract_add(c, job);
    }
    ew__op_claim *got = contract_claim_of(c, "w1", "q", 250);
    assert_int_equal(got->ret_n, 250);
    for (size_t i = 0; i < 250; i++)
        assert_true(ew__str_is(got->ret[i].id, contract_text(c, "j%03zu", i)));
    got = contract_claim_of(c, "w1", "q", 250);
    assert_int_equal(got->ret_n, 50);
    assert_text(got->ret[49].id, "j299");
}

/* ---- fences ---- */

static void expect_untouched(contract *c, const char *id, uint64_t epoch, const char *worker) {
    ew__job got = contract_get(c, id);
    assert_int_equal(got.status, EW__JOB_ACTIVE);
    assert_int_equal(got.epoch, epoch);
    assert_text(got.worker, worker);
    assert_int_equal(got.result.len, 0);
    assert_int_equal(got.chunks, 0);
    assert_int_equal(got.ended_at, 0);
    assert_int_equal(contract_claim_of(c, "w9", "q", 9)->ret_n, 0);
    assert_int_equal(
        contract_list(c, &(ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 5})->ret_n, 0);
}

static void test_contract__an_old_epoch_says_nothing(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job old = contract_claim(c, "w1", "j1");
    contract_must_change(c, &old, EW__JOB_PENDING);
    ew__job now = contract_claim(c, "w1", "j1"); /* even the same worker */
    assert_int_equal(now.epoch, 2);
    for (int status = EW__JOB_PENDING; status < EW__JOB_STATUSES; status++) {
        if (status != EW__JOB_ACTIVE)
            assert_int_equal(contract_do(c, contract_change(c, &old, (ew__job_status)status)), EW_ESTALE);
    }
    assert_int_equal(contract_chunk(c, &old, "\"late\""), EW_ESTALE);
    assert_int_equal(contract_renew(c, &old), EW__LEASE_GONE);
    expect_untouched(c, "j1", 2, "w1");
    contract_must_change(c, &now, EW__JOB_COMPLETED);
}

static void test_contract__another_worker_says_nothing(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1"), forged = job;
    forged.worker = S("w2");
    assert_int_equal(contract_do(c, contract_change(c, &forged, EW__JOB_COMPLETED)), EW_ESTALE);
    assert_int_equal(contract_chunk(c, &forged, "1"), EW_ESTALE);
    assert_int_equal(contract_renew(c, &forged), EW__LEASE_GONE);
    expect_untouched(c, "j1", 1, "w1");
    contract_must_change(c, &job, EW__JOB_COMPLETED);
}

static void test_contract__what_waits_or_has_ended_is_nobodys(void **state) {
    contract *c = *state;
    static const ew__job_status ends[] = {EW__JOB_PENDING, EW__JOB_RETRYING, EW__JOB_COMPLETED, EW__JOB_FAILED,
                                          EW__JOB_CANCELLED};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        ew__job job = contract_job(c, "");
        char id[24];
        (void)snprintf(id, sizeof id, "j%zu", i);
        job.id = S(id);
        contract_add(c, job);
        job = contract_claim(c, "w1", id);
        ew__store_request *first = contract_change(c, &job, ends[i]);
        first->u.change.run_at = contract_now(c) + 60000;
        assert_int_equal(contract_do(c, first), EW_OK);
        assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_FAILED)), EW_ESTALE);
        assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_PENDING)), EW_ESTALE);
        assert_int_equal(contract_chunk(c, &job, "1"), EW_ESTALE);
        assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE);
        ew__job got = contract_get(c, id);
        assert_int_equal(got.status, ends[i]);
        assert_int_equal(got.chunks, 0);
    }
    /* never claimed */
    contract_add_id(c, "fresh");
    ew__job fresh = contract_get(c, "fresh");
    fresh.worker = S("w1");
    assert_int_equal(contract_do(c, contract_change(c, &fresh, EW__JOB_COMPLETED)), EW_ESTALE);
    assert_int_equal(contract_get(c, "fresh").status, EW__JOB_PENDING);
}

contract_tests contract_tests_claims(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__a_claim_takes_it),
        cmocka_unit_test(test_contract__claims_by_due_time),
        cmocka_unit_test(test_contract__claims_in_order_of_queues),
        cmocka_unit_test(test_contract__says_when_something_will_be_due),
        cmocka_unit_test(test_contract__paused),
        cmocka_unit_test(test_contract__paused_while_it_runs),
        cmocka_unit_test(test_contract__many_at_once),
        cmocka_unit_test(test_contract__an_old_epoch_says_nothing),
        cmocka_unit_test(test_contract__another_worker_says_nothing),
        cmocka_unit_test(test_contract__what_waits_or_has_ended_is_nobodys),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
