/*
 * tests/store/contract_dedup.c: enqueueing with a key: unique, rate, debounce; and cancelling.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

static void expect(const ew__op_enqueue *op, ew__enqueued ret, const char *id) {
    assert_int_equal(op->ret, ret);
    assert_text(op->ret_id, id);
}

static void let_it_run_out(contract *c) { contract_sleep(c, contract_ttl(c) + 100); }

/* ---- unique ---- */

static void test_contract__unique_gives_the_first(void **state) {
    contract *c = *state;
    expect(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j1");
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, "j1");
    contract_reopen(c);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, "j1");
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_UNIQUE, "other"), EW__ENQUEUED_NEW, "j3");
    assert_int_equal(contract_get_err(c, "j2"), EW_ENOTFOUND);
    ew__op_claim *got = contract_claim_of(c, "w", "q", 9);
    assert_int_equal(got->ret_n, 2);
    /* while it runs, and after its end, too */
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, "j1");
    for (size_t i = 0; i < 2; i++)
        contract_must_change(c, &got->ret[i], EW__JOB_COMPLETED);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, "j1");
}

static void test_contract__unique_for_a_while(void **state) {
    contract *c = *state;
    expect(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j1");
    let_it_run_out(c);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j2");
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, "j2");
}

static void test_contract__unique_while_the_job_exists(void **state) {
    contract *c = *state;
    ew__job job = contract_job(c, "j1");
    job.result_ttl_ms = (int64_t)contract_ttl(c);
    ew__store_request *op = contract_enqueue_op(c, job);
    op->u.enqueue.dedup = EW__DEDUP_UNIQUE;
    op->u.enqueue.key = S("k");
    op->u.enqueue.key_ttl_ms = 3600000;
    assert_int_equal(contract_do(c, op), EW_OK);
    job = contract_claim(c, "w", "j1");
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    let_it_run_out(c);
    (void)contract_sweep(c, 100);
    assert_int_equal(contract_get_err(c, "j1"), EW_ENOTFOUND);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j2");
}

static void test_contract__unique_with_an_id_that_is_taken(void **state) {
    contract *c = *state;
    contract_add_id(c, "taken");
    assert_int_equal(contract_dedup_enqueue(c, contract_job(c, "taken"), EW__DEDUP_UNIQUE, "k")->ret,
                     EW__ENQUEUED_DUPLICATE);
    /* and the key was not taken by that */
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j2");
}

/* A job that carries the key itself gives it free with its end, whatever that is. */
static void test_contract__unique_until_the_end(void **state) {
    contract *c = *state;
    static const ew__job_status ends[] = {EW__JOB_COMPLETED, EW__JOB_FAILED, EW__JOB_CANCELLED};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        ew__job job = contract_job(c, "");
        char id[24];
        (void)snprintf(id, sizeof id, "j%zu", i);
        job.id = S(id);
        job.unique_key = S("k");
        expect(contract_dedup_enqueue(c, job, EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, id);
        ew__job got = contract_claim(c, "w", id);
        contract_must_change(c, &got, EW__JOB_RETRYING);
        expect(contract_dedup_enqueue(c, contract_job(c, "x"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, id);
        got = contract_claim(c, "w", id);
        contract_must_change(c, &got, ends[i]);
    }
    ew__job job = contract_job(c, "c1");
    job.unique_key = S("k");
    expect(contract_dedup_enqueue(c, job, EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "c1");
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("c1"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    expect(contract_dedup_enqueue(c, contract_job(c, "c2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "c2");
}

/* The end of a job does not free a key that is another's by now. */
static void test_contract__unique_key_of_another(void **state) {
    contract *c = *state;
    ew__job job = contract_job(c, "j1");
    job.unique_key = S("k");
    expect(contract_dedup_enqueue(c, job, EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j1");
    job = contract_claim(c, "w", "j1");
    let_it_run_out(c);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j2");
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_KNOWN, "j2");
}

/* ---- rate ---- */

static void test_contract__rate(void **state) {
    contract *c = *state;
    expect(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_RATE, "k"), EW__ENQUEUED_NEW, "j1");
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_RATE, "k"), EW__ENQUEUED_LIMITED, "");
    contract_reopen(c);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_RATE, "k"), EW__ENQUEUED_LIMITED, "");
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_RATE, "other"), EW__ENQUEUED_NEW, "j3");
    assert_int_equal(contract_get_err(c, "j2"), EW_ENOTFOUND);
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_n, 2);
    let_it_run_out(c);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_RATE, "k"), EW__ENQUEUED_NEW, "j2");
}

static void test_contract__rate_with_an_id_that_is_taken(void **state) {
    contract *c = *state;
    contract_add_id(c, "taken");
    assert_int_equal(contract_dedup_enqueue(c, contract_job(c, "taken"), EW__DEDUP_RATE, "k")->ret,
                     EW__ENQUEUED_DUPLICATE);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_RATE, "k"), EW__ENQUEUED_NEW, "j2");
}

static void test_contract__kinds_of_keys_are_apart(void **state) {
    contract *c = *state;
    expect(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_RATE, "k"), EW__ENQUEUED_NEW, "j1");
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_UNIQUE, "k"), EW__ENQUEUED_NEW, "j2");
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j3");
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_n, 3);
}

/* ---- debounce ---- */

static ew__job later(contract *c, const char *id, const char *params, int64_t run_at) {
    ew__job job = contract_job(c, id);
    job.params = S(params);
    job.run_at = run_at;
    return job;
}

static void test_contract__debounce_takes_the_place(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    ew__job first = later(c, "j1", "{\"n\":1}", now + 1000), second = later(c, "j2", "{\"n\":2}", now + 2000);
    first.trace = S("{\"traceparent\":\"one\"}");
    first.correlation = S("{\"a\":\"1\"}");
    second.function = S("g");
    second.timeout_ms = 9000;
    second.max_retries = 2;
    second.result_ttl_ms = 8000;
    expect(contract_dedup_enqueue(c, first, EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j1");
    expect(contract_dedup_enqueue(c, second, EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_KNOWN, "j1");
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_text(got.function, "g");
    assert_text(got.params, "{\"n\":2}");
    assert_int_equal(got.run_at, now + 2000);
    assert_int_equal(got.enqueued_at, first.enqueued_at);
    assert_int_equal(got.timeout_ms, 9000);
    assert_int_equal(got.result_ttl_ms, 8000);
    assert_int_equal(got.max_retries, 2);
    assert_text(got.trace, "{\"traceparent\":\"one\"}"); /* none given: kept */
    assert_int_equal(got.correlation.len, 0);            /* goes with the params */
    assert_int_equal(contract_get_err(c, "j2"), EW_ENOTFOUND);
    ew__op_list *list = contract_list(c, &(ew__op_list){.queue = S("q"), .waiting = true, .limit = 9});
    assert_int_equal(list->ret_n, 1);
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_next, now + 2000);
}

static void test_contract__debounce_into_another_queue(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    ew__job moved = later(c, "j2", "{}", now);
    moved.queue = S("p");
    expect(contract_dedup_enqueue(c, later(c, "j1", "{}", now), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j1");
    expect(contract_dedup_enqueue(c, moved, EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_KNOWN, "j1");
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_n, 0);
    ew__op_claim *got = contract_claim_of(c, "w", "p", 9);
    assert_text(contract_ids(c, got->ret, got->ret_n), "j1");
    assert_text(got->ret[0].queue, "p");
}

static void test_contract__debounce_after_it_began(void **state) {
    contract *c = *state;
    expect(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j1");
    ew__job job = contract_claim(c, "w", "j1");
    ew__job second = later(c, "j2", "{\"n\":2}", contract_now(c) + 60000);
    expect(contract_dedup_enqueue(c, second, EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j2");
    assert_text(contract_get(c, "j1").params, "{}");
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_KNOWN, "j2");
    contract_must_change(c, &job, EW__JOB_COMPLETED);
}

static void test_contract__debounce_for_a_while(void **state) {
    contract *c = *state;
    int64_t far = contract_now(c) + 3600000;
    expect(contract_dedup_enqueue(c, later(c, "j1", "{}", far), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j1");
    for (int i = 0; i < 3; i++) { /* the key lives on with each of these */
        contract_sleep(c, contract_ttl(c) / 2);
        expect(contract_dedup_enqueue(c, later(c, "j2", "{}", far), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_KNOWN, "j1");
    }
    let_it_run_out(c);
    expect(contract_dedup_enqueue(c, later(c, "j2", "{}", far), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j2");
}

static void test_contract__debounce_of_a_cancelled_one(void **state) {
    contract *c = *state;
    expect(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j1");
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("j1"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    expect(contract_dedup_enqueue(c, contract_job(c, "j2"), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j2");
    assert_text(contract_claim(c, "w", "j2").id, "j2");
    /* an id that is taken: nothing happens, and the key can be used */
    assert_int_equal(contract_dedup_enqueue(c, contract_job(c, "j1"), EW__DEDUP_DEBOUNCE, "k")->ret,
                     EW__ENQUEUED_DUPLICATE);
    expect(contract_dedup_enqueue(c, contract_job(c, "j3"), EW__DEDUP_DEBOUNCE, "k"), EW__ENQUEUED_NEW, "j3");
}

/* ---- cancelling ---- */

static ew__op_cancel *cancel(contract *c, const char *id) {
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S(id), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    return &op->u.cancel;
}

static void test_contract__cancel_what_waits(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    assert_int_equal(cancel(c, "j1")->ret, EW__CANCELLED_NOW);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_CANCELLED);
    assert_true(got.ended_at > 0);
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_n, 0);
    ew__op_cancel *again = cancel(c, "j1");
    assert_int_equal(again->ret, EW__CANCELLED_LATE);
    assert_int_equal(again->ret_status, EW__JOB_CANCELLED);
    /* one that is to be run again waits, too */
    contract_add_id(c, "j2");
    ew__job job = contract_claim(c, "w", "j2");
    contract_must_change(c, &job, EW__JOB_RETRYING);
    assert_int_equal(cancel(c, "j2")->ret, EW__CANCELLED_NOW);
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_n, 0);
}

static void test_contract__cancel_what_runs(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w", "j1");
    assert_int_equal(contract_renew(c, &job), EW__LEASE_HELD);
    assert_int_equal(cancel(c, "j1")->ret, EW__CANCELLED_ASKED);
    assert_int_equal(cancel(c, "j1")->ret, EW__CANCELLED_ASKED);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_ACTIVE);
    assert_true(got.cancel);
    assert_int_equal(contract_renew(c, &job), EW__LEASE_CANCEL);
    /* its worker has the last word: it may have been done by then */
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_COMPLETED);
    ew__op_cancel *late = cancel(c, "j1");
    assert_int_equal(late->ret, EW__CANCELLED_LATE);
    assert_int_equal(late->ret_status, EW__JOB_COMPLETED);
}

/* Nobody forgets a wish: not when the attempt fails first, and not when its worker is lost. */
static void test_contract__a_cancel_stays(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w", "j1");
    assert_int_equal(cancel(c, "j1")->ret, EW__CANCELLED_ASKED);
    contract_must_change(c, &job, EW__JOB_RETRYING);
    job = contract_claim(c, "w2", "j1");
    assert_true(job.cancel);
    assert_int_equal(contract_renew(c, &job), EW__LEASE_CANCEL);
    contract_sleep(c, contract_lease(c) + 50);
    ew__op_expired *found = contract_expired(c, 9);
    assert_int_equal(found->ret_n, 1);
    assert_true(found->ret[0].cancel);
    contract_must_change(c, &job, EW__JOB_CANCELLED);
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_CANCELLED);
}

contract_tests contract_tests_dedup(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__unique_gives_the_first),
        cmocka_unit_test(test_contract__unique_for_a_while),
        cmocka_unit_test(test_contract__unique_while_the_job_exists),
        cmocka_unit_test(test_contract__unique_with_an_id_that_is_taken),
        cmocka_unit_test(test_contract__unique_until_the_end),
        cmocka_unit_test(test_contract__unique_key_of_another),
        cmocka_unit_test(test_contract__rate),
        cmocka_unit_test(test_contract__rate_with_an_id_that_is_taken),
        cmocka_unit_test(test_contract__kinds_of_keys_are_apart),
        cmocka_unit_test(test_contract__debounce_takes_the_place),
        cmocka_unit_test(test_contract__debounce_into_another_queue),
        cmocka_unit_test(test_contract__debounce_after_it_began),
        cmocka_unit_test(test_contract__debounce_for_a_while),
        cmocka_unit_test(test_contract__debounce_of_a_cancelled_one),
        cmocka_unit_test(test_contract__cancel_what_waits),
        cmocka_unit_test(test_contract__cancel_what_runs),
        cmocka_unit_test(test_contract__a_cancel_stays),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
