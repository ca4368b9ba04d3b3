/*
 * tests/store/contract_leases.c: leases that are renewed, that run out, and what workers say of themselves.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

static ew__store_request *lost(contract *c, const ew__job *job, ew__job_status status) {
    ew__store_request *op = contract_change(c, job, status);
    op->u.change.claim = EW__CLAIM_LOST;
    op->u.change.lost = job->lost + 1;
    return op;
}

static void let_it_run_out(contract *c) { contract_sleep(c, contract_lease(c) + 50); }

static void test_contract__a_live_lease_is_not_lost(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    assert_int_equal(contract_do(c, lost(c, &job, EW__JOB_PENDING)), EW_ESTALE);
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_ACTIVE);
    assert_int_equal(contract_get(c, "j1").lost, 0);
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
}

static void test_contract__expired(void **state) {
    contract *c = *state;
    ew__job job = contract_job(c, "j1");
    job.unique_key = S("u");
    job.max_retries = 4;
    contract_add(c, job);
    job = contract_claim(c, "w1", "j1");
    let_it_run_out(c);
    contract_reopen(c);
    ew__op_expired *found = contract_expired(c, 9);
    assert_int_equal(found->ret_n, 1);
    ew__job got = found->ret[0];
    assert_text(got.id, "j1");
    assert_text(got.queue, "q");
    assert_text(got.worker, "w1");
    assert_text(got.unique_key, "u");
    assert_int_equal(got.epoch, 1);
    assert_int_equal(got.retries, 0);
    assert_int_equal(got.lost, 0);
    assert_int_equal(got.max_retries, 4);
    assert_int_equal(got.result_ttl_ms, 60000);
    assert_int_equal(got.timeout_ms, 5000);
    /* only told: it is still its worker's */
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_ACTIVE);
    assert_int_equal(contract_do(c, lost(c, &got, EW__JOB_PENDING)), EW_OK);
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_PENDING);
    assert_int_equal(got.lost, 1);
    /* who was thought dead has nothing to say */
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_COMPLETED)), EW_ESTALE);
    assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE);
    got = contract_claim(c, "w2", "j1");
    assert_int_equal(got.epoch, 2);
    assert_int_equal(got.lost, 1);
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_COMPLETED)), EW_ESTALE);
    contract_must_change(c, &got, EW__JOB_COMPLETED);
}

static void test_contract__two_find_the_same_lost_job(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    (void)contract_claim(c, "w1", "j1");
    let_it_run_out(c);
    ew__job a = contract_expired(c, 9)->ret[0], b = contract_expired(c, 9)->ret[0];
    assert_int_equal(contract_do(c, lost(c, &a, EW__JOB_PENDING)), EW_OK);
    assert_int_equal(contract_do(c, lost(c, &b, EW__JOB_PENDING)), EW_ESTALE);
    ew__job got = contract_claim(c, "w2", "j1");
    assert_int_equal(got.lost, 1);
    assert_int_equal(contract_do(c, lost(c, &b, EW__JOB_PENDING)), EW_ESTALE);   /* an old epoch */
    assert_int_equal(contract_do(c, lost(c, &got, EW__JOB_PENDING)), EW_ESTALE); /* a live one */
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_ACTIVE);
}

static void test_contract__lost_for_good(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    (void)contract_claim(c, "w1", "j1");
    let_it_run_out(c);
    ew__store_request *op = lost(c, &contract_expired(c, 9)->ret[0], EW__JOB_FAILED);
    op->u.change.last_error = S("poison");
    assert_int_equal(contract_do(c, op), EW_OK);
    ew__op_list *list = contract_list(c, &(ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 5});
    assert_text(contract_ids(c, list->ret, list->ret_n), "j1");
    assert_text(contract_get(c, "j1").last_error, "poison");
}

static void test_contract__late_but_not_taken(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    contract_add_id(c, "j2");
    ew__job one = contract_claim(c, "w1", "j1"), two = contract_claim(c, "w1", "j2");
    let_it_run_out(c);
    assert_int_equal(contract_expired(c, 9)->ret_n, 2);
    assert_int_equal(contract_chunk(c, &one, "1"), EW_OK);
    contract_must_change(c, &one, EW__JOB_COMPLETED);
    /* renewed: held again */
    assert_int_equal(contract_renew(c, &two), EW__LEASE_HELD);
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    assert_int_equal(contract_do(c, lost(c, &two, EW__JOB_PENDING)), EW_ESTALE);
    contract_must_change(c, &two, EW__JOB_COMPLETED);
}

static void test_contract__renewing_keeps_it(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    for (int i = 0; i < 4; i++) {
        contract_sleep(c, contract_lease(c) / 2);
        assert_int_equal(contract_renew(c, &job), EW__LEASE_HELD);
    }
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    contract_must_change(c, &job, EW__JOB_COMPLETED);
}

static void test_contract__renews_many(void **state) {
    contract *c = *state;
    enum { N = 40 };
    ew__lease leases[N + 2];
    for (int i = 0; i < N; i++) {
        ew__job job = contract_job(c, "");
        job.id = contract_text(c, "j%02d", i);
        contract_add(c, job);
    }
    ew__op_claim *got = contract_claim_of(c, "w1", "q", N);
    assert_int_equal(got->ret_n, N);
    for (size_t i = 0; i < N; i++)
        leases[i] = (ew__lease){.id = got->ret[i].id, .epoch = got->ret[i].epoch};
    leases[N] = (ew__lease){.id = S("nobody"), .epoch = 1};
    leases[N + 1] = (ew__lease){.id = S("j00"), .epoch = 7};
    contract_must_change(c, &got->ret[3], EW__JOB_COMPLETED);
    let_it_run_out(c);
    ew__store_request *op = contract_op(c, EW__OP_RENEW);
    op->u.renew = (ew__op_renew){.worker = S("w1"),
                                 .record = S("{}"),
                                 .ttl_ms = 60000,
                                 .lease_ms = contract_lease(c),
                                 .leases = leases,
                                 .n_leases = N + 2};
    assert_int_equal(contract_do(c, op), EW_OK);
    for (size_t i = 0; i < N + 2; i++)
        assert_int_equal(leases[i].ret, i == 3 || i >= N ? EW__LEASE_GONE : EW__LEASE_HELD);
    assert_int_equal(contract_expired(c, 99)->ret_n, 0);
    let_it_run_out(c);
    assert_int_equal(contract_expired(c, 10)->ret_n, 10); /* no more than asked for */
    assert_int_equal(contract_expired(c, 99)->ret_n, N - 1);
}

/* ---- workers ---- */

static void say(contract *c, const char *worker, const char *record, uint64_t ttl_ms) {
    ew__store_request *op = contract_op(c, EW__OP_RENEW);
    op->u.renew =
        (ew__op_renew){.worker = S(worker), .record = S(record), .ttl_ms = ttl_ms, .lease_ms = contract_lease(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
}

static const ew__worker_record *find_worker(contract *c, const char *id, size_t expected) {
    ew__store_request *op = contract_op(c, EW__OP_WORKERS);
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_int_equal(op->u.workers.ret_n, expected);
    for (size_t i = 0; i < op->u.workers.ret_n; i++) {
        if (ew__str_is(op->u.workers.ret[i].id, S(id)))
            return &op->u.workers.ret[i];
    }
    return NULL;
}

static void test_contract__workers(void **state) {
    contract *c = *state;
    assert_null(find_worker(c, "w1", 0));
    say(c, "w1", "{\"status\":\"polling\"}", 60000);
    say(c, "w2", "{\"worker_id\":\"w2\"}", 60000);
    say(c, "w1", "{\"status\":\"idle\"}", 50000);
    contract_reopen(c);
    const ew__worker_record *one = find_worker(c, "w1", 2);
    assert_non_null(one);
    assert_text(one->record, "{\"status\":\"idle\"}");
    assert_true(one->ttl_ms > 30000 && one->ttl_ms <= 50000);
    say(c, "w1", "", 0); /* it ends */
    assert_null(find_worker(c, "w1", 1));
    assert_non_null(find_worker(c, "w2", 1));
    say(c, "w1", "", 0);
}

static void test_contract__workers_that_say_nothing(void **state) {
    contract *c = *state;
    say(c, "w1", "{}", contract_ttl(c));
    say(c, "w2", "{}", 10 * contract_ttl(c));
    assert_non_null(find_worker(c, "w1", 2));
    contract_sleep(c, contract_ttl(c) + 100);
    assert_null(find_worker(c, "w1", 1));
}

contract_tests contract_tests_leases(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__a_live_lease_is_not_lost),
        cmocka_unit_test(test_contract__expired),
        cmocka_unit_test(test_contract__two_find_the_same_lost_job),
        cmocka_unit_test(test_contract__lost_for_good),
        cmocka_unit_test(test_contract__late_but_not_taken),
        cmocka_unit_test(test_contract__renewing_keeps_it),
        cmocka_unit_test(test_contract__renews_many),
        cmocka_unit_test(test_contract__workers),
        cmocka_unit_test(test_contract__workers_that_say_nothing),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
