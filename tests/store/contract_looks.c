/*
 * tests/store/contract_looks.c: chunks, dead letters that come back, what is swept away.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

static ew__op_get *get_chunks(contract *c, const char *id, uint64_t after) {
    ew__store_request *op = contract_op(c, EW__OP_GET);
    op->u.get.id = S(id);
    op->u.get.want_chunks = true;
    op->u.get.after = after;
    assert_int_equal(contract_do(c, op), EW_OK);
    return &op->u.get;
}

static void add_chunks(contract *c, const ew__job *job, const ew_str *chunks, size_t n) {
    ew__store_request *op = contract_op(c, EW__OP_CHUNKS);
    op->u.chunks = (ew__op_chunks){.id = job->id, .worker = job->worker, .epoch = job->epoch, .chunks = chunks, .n = n};
    assert_int_equal(contract_do(c, op), EW_OK);
}

static void test_contract__chunks(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    assert_int_equal(get_chunks(c, "j1", 0)->ret_n_chunks, 0);
    ew__job job = contract_claim(c, "w", "j1");
    const ew_str three[] = {S("{\"n\":1}"), S("\"\xc3\xa4'\\\"\""), S("null")};
    add_chunks(c, &job, three, 2);
    add_chunks(c, &job, three + 2, 1);
    add_chunks(c, &job, three, 0);
    contract_reopen(c);
    ew__op_get *got = get_chunks(c, "j1", 0);
    assert_int_equal(got->ret.chunks, 3);
    assert_int_equal(got->ret_n_chunks, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(got->ret_chunks[i].seq, i + 1);
        assert_true(ew__str_is(got->ret_chunks[i].json, three[i]));
    }
    got = get_chunks(c, "j1", 2);
    assert_int_equal(got->ret_n_chunks, 1);
    assert_int_equal(got->ret_chunks[0].seq, 3);
    assert_int_equal(get_chunks(c, "j1", 3)->ret_n_chunks, 0);
    assert_int_equal(get_chunks(c, "j1", UINT64_MAX)->ret_n_chunks, 0);
    /* without being asked for them */
    assert_int_equal(contract_get(c, "j1").chunks, 3);
    /* the next attempt goes on counting, and the first one's are still there */
    contract_must_change(c, &job, EW__JOB_RETRYING);
    job = contract_claim(c, "w", "j1");
    assert_int_equal(job.chunks, 3);
    add_chunks(c, &job, three, 1);
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    got = get_chunks(c, "j1", 2);
    assert_int_equal(got->ret.chunks, 4);
    assert_int_equal(got->ret_n_chunks, 2);
    assert_int_equal(got->ret_chunks[1].seq, 4);
}

static void test_contract__chunks_are_the_newest(void **state) {
    contract *c = *state;
    enum { N = EW__JOB_CHUNKS_MAX + 300, STEP = 100 };
    ew_str chunks[STEP];
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w", "j1");
    for (int i = 0; i < N; i += STEP) {
        for (int k = 0; k < STEP; k++)
            chunks[k] = contract_text(c, "%d", i + k + 1);
        add_chunks(c, &job, chunks, STEP);
    }
    uint64_t after = 0, seen = 0;
    for (;;) {
        ew__op_get *got = get_chunks(c, "j1", after);
        assert_int_equal(got->ret.chunks, N);
        assert_true(got->ret_n_chunks <= 256);
        if (got->ret_n_chunks == 0)
            break;
        for (size_t i = 0; i < got->ret_n_chunks; i++) {
            uint64_t seq = got->ret_chunks[i].seq;
            assert_true(after == 0 ? seq == N - EW__JOB_CHUNKS_MAX + 1 : seq == after + 1);
            assert_true(ew__str_is(got->ret_chunks[i].json, contract_text(c, "%d", (int)seq)));
            after = seq;
            seen++;
        }
    }
    assert_int_equal(seen, EW__JOB_CHUNKS_MAX);
}

static void test_contract__chunks_are_bounded(void **state) {
    contract *c = *state;
    static char big[400 * 1024];
    memset(big, '1', sizeof big);
    const ew_str one = {big, sizeof big};
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w", "j1");
    for (int i = 0; i < 5; i++)
        add_chunks(c, &job, &one, 1);
    size_t bytes = 0;
    ew__op_get *got = get_chunks(c, "j1", 0);
    assert_int_equal(got->ret.chunks, 5);
    assert_int_equal(got->ret_n_chunks, 2);
    for (size_t i = 0; i < got->ret_n_chunks; i++)
        bytes += got->ret_chunks[i].json.len;
    assert_true(bytes <= EW__JOB_CHUNK_BYTES_MAX);
    assert_int_equal(got->ret_chunks[1].seq, 5);
    const ew_str small = S("2");
    add_chunks(c, &job, &small, 1);
    got = get_chunks(c, "j1", 0);
    assert_int_equal(got->ret_n_chunks, 3);
    assert_int_equal(got->ret_chunks[2].seq, 6);
}

/* ---- requeue ---- */

static ew_err requeue(contract *c, const char *id, const char *queue) {
    ew__store_request *op = contract_op(c, EW__OP_REQUEUE);
    op->u.requeue = (ew__op_requeue){.id = S(id), .queue = S(queue), .now = contract_now(c)};
    return contract_do(c, op);
}

static void make_dead(contract *c, const char *id) {
    contract_add_id(c, id);
    ew__job job = contract_claim(c, "w", id);
    ew__store_request *op = contract_change(c, &job, EW__JOB_FAILED);
    op->u.change.retries = 5;
    op->u.change.lost = 2;
    op->u.change.last_error = S("broken");
    assert_int_equal(contract_do(c, op), EW_OK);
}

static void test_contract__requeue(void **state) {
    contract *c = *state;
    make_dead(c, "j1");
    assert_int_equal(requeue(c, "j1", ""), EW_OK);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_PENDING);
    assert_int_equal(got.retries, 0);
    assert_int_equal(got.lost, 0);
    assert_int_equal(got.ended_at, 0);
    assert_text(got.queue, "q");
    assert_int_equal(
        contract_list(c, &(ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 5})->ret_n, 0);
    got = contract_claim(c, "w", "j1");
    assert_int_equal(got.epoch, 2);
    contract_must_change(c, &got, EW__JOB_COMPLETED);
}

static void test_contract__requeue_elsewhere(void **state) {
    contract *c = *state;
    make_dead(c, "j1");
    assert_int_equal(requeue(c, "j1", "p"), EW_OK);
    assert_int_equal(contract_claim_of(c, "w", "q", 9)->ret_n, 0);
    ew__op_claim *got = contract_claim_of(c, "w", "p", 9);
    assert_text(contract_ids(c, got->ret, got->ret_n), "j1");
    assert_text(got->ret[0].queue, "p");
}

static void test_contract__requeue_of_a_cancelled_one(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w", "j1");
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("j1"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    contract_must_change(c, &job, EW__JOB_CANCELLED);
    assert_int_equal(requeue(c, "j1", ""), EW_OK);
    job = contract_claim(c, "w", "j1");
    assert_false(job.cancel); /* that was another time */
    assert_int_equal(contract_renew(c, &job), EW__LEASE_HELD);
}

static void test_contract__requeue_of_what_is_not_dead(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    assert_int_equal(requeue(c, "j1", ""), EW_ESTALE);
    ew__job job = contract_claim(c, "w", "j1");
    assert_int_equal(requeue(c, "j1", ""), EW_ESTALE);
    contract_must_change(c, &job, EW__JOB_RETRYING);
    assert_int_equal(requeue(c, "j1", "p"), EW_ESTALE);
    job = contract_claim(c, "w", "j1");
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    assert_int_equal(requeue(c, "j1", ""), EW_ESTALE);
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_COMPLETED);
}

/* ---- sweep ---- */

static void end_with_ttl(contract *c, const char *id, ew__job_status status, int64_t ttl_ms) {
    ew__job job = contract_job(c, id);
    job.result_ttl_ms = ttl_ms;
    contract_add(c, job);
    job = contract_claim(c, "w", id);
    assert_int_equal(contract_chunk(c, &job, "1"), EW_OK);
    contract_must_change(c, &job, status);
}

static void test_contract__results_live_for_a_while(void **state) {
    contract *c = *state;
    int64_t ttl = (int64_t)contract_ttl(c);
    end_with_ttl(c, "done", EW__JOB_COMPLETED, ttl);
    end_with_ttl(c, "stopped", EW__JOB_CANCELLED, ttl);
    end_with_ttl(c, "long", EW__JOB_COMPLETED, 3600000);
    end_with_ttl(c, "for ever", EW__JOB_COMPLETED, 0);
    end_with_ttl(c, "dead", EW__JOB_FAILED, ttl); /* dead letters are for people, who take longer */
    ew__job waits = contract_job(c, "waits");
    waits.result_ttl_ms = ttl;
    waits.run_at += 3600000;
    contract_add(c, waits);
    (void)contract_sweep(c, 100);
    assert_int_equal(contract_get_err(c, "done"), EW_OK);
    contract_sleep(c, contract_ttl(c) + 100);
    (void)contract_sweep(c, 100);
    assert_int_equal(contract_get_err(c, "done"), EW_ENOTFOUND);
    assert_int_equal(contract_get_err(c, "stopped"), EW_ENOTFOUND);
    assert_int_equal(contract_get_err(c, "long"), EW_OK);
    assert_int_equal(contract_get_err(c, "for ever"), EW_OK);
    assert_int_equal(contract_get_err(c, "dead"), EW_OK);
    assert_int_equal(contract_get_err(c, "waits"), EW_OK);
    ew__op_list *list = contract_list(c, &(ew__op_list){.status = EW__JOB_COMPLETED, .limit = 9});
    assert_int_equal(list->ret_n, 2);
    /* the id is free again, and the new job has nothing of the old one */
    contract_add_id(c, "done");
    ew__op_get *got = get_chunks(c, "done", 0);
    assert_int_equal(got->ret_n_chunks, 0);
    assert_int_equal(got->ret.chunks, 0);
    assert_int_equal(got->ret.status, EW__JOB_PENDING);
    assert_int_equal(got->ret.epoch, 0);
}

static void test_contract__a_requeued_one_does_not_expire(void **state) {
    contract *c = *state;
    end_with_ttl(c, "j1", EW__JOB_CANCELLED, (int64_t)contract_ttl(c));
    assert_int_equal(requeue(c, "j1", ""), EW_OK);
    contract_sleep(c, contract_ttl(c) + 100);
    (void)contract_sweep(c, 100);
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_PENDING);
    assert_text(contract_claim(c, "w", "j1").id, "j1");
}

contract_tests contract_tests_looks(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__chunks),
        cmocka_unit_test(test_contract__chunks_are_the_newest),
        cmocka_unit_test(test_contract__chunks_are_bounded),
        cmocka_unit_test(test_contract__requeue),
        cmocka_unit_test(test_contract__requeue_elsewhere),
        cmocka_unit_test(test_contract__requeue_of_a_cancelled_one),
        cmocka_unit_test(test_contract__requeue_of_what_is_not_dead),
        cmocka_unit_test(test_contract__results_live_for_a_while),
        cmocka_unit_test(test_contract__a_requeued_one_does_not_expire),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
