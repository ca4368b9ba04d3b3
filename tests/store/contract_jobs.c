/*
 * tests/store/contract_jobs.c: a job's way through a store: what was put in comes out, and each change is seen whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

static ew__job full_job(contract *c, const char *id) {
    ew__job job = contract_job(c, id);
    job.function = S("runner#pkg.act");
    job.params = S("{\"a\":1.0,\"b\":12345678901234567890,\"c\":[\"x\",null]}");
    job.trace = S("{\"traceparent\":\"00-1-2-01\"}");
    job.correlation = S("{\"customer\":\"7\"}");
    job.unique_key = S("only one");
    job.run_at = job.enqueued_at + 1234;
    job.timeout_ms = 7000;
    job.result_ttl_ms = 9000;
    job.max_retries = 3;
    return job;
}

static void expect_same(const ew__job *a, const ew__job *b) {
    assert_true(ew__str_is(a->id, b->id));
    assert_true(ew__str_is(a->function, b->function));
    assert_true(ew__str_is(a->queue, b->queue));
    assert_true(ew__str_is(a->params, b->params));
    assert_true(ew__str_is(a->trace, b->trace));
    assert_true(ew__str_is(a->correlation, b->correlation));
    assert_true(ew__str_is(a->unique_key, b->unique_key));
    assert_int_equal(a->enqueued_at, b->enqueued_at);
    assert_int_equal(a->run_at, b->run_at);
    assert_int_equal(a->timeout_ms, b->timeout_ms);
    assert_int_equal(a->result_ttl_ms, b->result_ttl_ms);
    assert_int_equal(a->max_retries, b->max_retries);
}

static void test_contract__comes_back_as_it_was(void **state) {
    contract *c = *state;
    ew__job job = full_job(c, "j1");
    contract_add(c, job);
    for (int turn = 0; turn < 2; turn++) {
        ew__job got = contract_get(c, "j1");
        expect_same(&got, &job);
        assert_int_equal(got.status, EW__JOB_PENDING);
        assert_int_equal(got.epoch, 0);
        assert_int_equal(got.retries, 0);
        assert_int_equal(got.lost, 0);
        assert_int_equal(got.chunks, 0);
        assert_int_equal(got.started_at, 0);
        assert_int_equal(got.ended_at, 0);
        assert_int_equal(got.result.len, 0);
        assert_int_equal(got.last_error.len, 0);
        assert_int_equal(got.error.len, 0);
        assert_int_equal(got.worker.len, 0);
        assert_false(got.cancel);
        contract_reopen(c);
    }
}

static void test_contract__optional_things_are_empty(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.trace.len, 0);
    assert_int_equal(got.correlation.len, 0);
    assert_int_equal(got.unique_key.len, 0);
    assert_int_equal(got.dlq.len, 0);
}

static void test_contract__an_id_is_taken_once(void **state) {
    contract *c = *state;
    contract_add(c, full_job(c, "j1"));
    ew__job other = contract_job(c, "j1");
    other.queue = S("elsewhere");
    ew__store_request *op = contract_enqueue_op(c, other);
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_int_equal(op->u.enqueue.ret, EW__ENQUEUED_DUPLICATE);
    assert_text(contract_get(c, "j1").function, "runner#pkg.act");
    assert_int_equal(contract_claim_of(c, "w", "elsewhere", 9)->ret_n, 0);
    /* also when it has ended long since */
    ew__job done = contract_job(c, "j2");
    contract_add(c, done);
    done = contract_claim(c, "w", "j2");
    contract_must_change(c, &done, EW__JOB_COMPLETED);
    op = contract_enqueue_op(c, contract_job(c, "j2"));
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_int_equal(op->u.enqueue.ret, EW__ENQUEUED_DUPLICATE);
    assert_int_equal(contract_get(c, "j2").status, EW__JOB_COMPLETED);
}

static void test_contract__absent(void **state) {
    contract *c = *state;
    assert_int_equal(contract_get_err(c, "nobody"), EW_ENOTFOUND);
    ew__job ghost = contract_job(c, "nobody");
    ghost.worker = S("w");
    ghost.epoch = 1;
    assert_int_equal(contract_do(c, contract_change(c, &ghost, EW__JOB_COMPLETED)), EW_ENOTFOUND);
    assert_int_equal(contract_chunk(c, &ghost, "1"), EW_ENOTFOUND);
    assert_int_equal(contract_renew(c, &ghost), EW__LEASE_GONE);
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("nobody"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_ENOTFOUND);
    op = contract_op(c, EW__OP_REQUEUE);
    op->u.requeue = (ew__op_requeue){.id = S("nobody"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_ENOTFOUND);
    assert_int_equal(contract_get_err(c, "nobody"), EW_ENOTFOUND); /* and nothing was made by the way */
}

static void test_contract__odd_texts(void **state) {
    contract *c = *state;
    static const char *const odd[] = {
        "it's \"quoted\" \\ %s $1 ?1 :x @y",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
        "a b\tc",
        "{}[]*?^",
        "rrq:job:x",
        "-1",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        ew__job job = contract_job(c, odd[i]);
        if (strchr(odd[i], '\t') != NULL)
            job.id = S("a b c");
        job.function = S(odd[i][0] == 'a' ? "f" : odd[i]);
        job.queue = contract_text(c, "%zu %s", i, odd[i][0] == 'a' ? "q" : odd[i]);
        job.params = S("{\"\xc3\xa4\":\"\xf0\x9f\x98\x80 \\u0000 \\\" '\"}");
        contract_add(c, job);
        ew__store_request *op = contract_op(c, EW__OP_CLAIM);
        ew__claim_queue queue = {.name = job.queue, .max = 5};
        op->u.claim = (ew__op_claim){.worker = S("w'\"\xc3\xa4"),
                                     .queues = &queue,
                                     .n_queues = 1,
                                     .max = 5,
                                     .now = contract_now(c),
                                     .lease_ms = contract_lease(c)};
        assert_int_equal(contract_do(c, op), EW_OK);
        assert_int_equal(op->u.claim.ret_n, 1);
        ew__job got = op->u.claim.ret[0];
        expect_same(&got, &job);
        assert_text(got.worker, "w'\"\xc3\xa4");
        op = contract_change(c, &got, EW__JOB_FAILED);
        op->u.change.last_error = S("bytes \x01\x1f\xff\xfe that are no text\n");
        op->u.change.error = S("{\"message\":\"\xe2\x82\xac\"}");
        op->u.change.dlq = job.queue;
        assert_int_equal(contract_do(c, op), EW_OK);
        ew__store_request *get = contract_op(c, EW__OP_GET);
        get->u.get.id = job.id;
        assert_int_equal(contract_do(c, get), EW_OK);
        assert_text(get->u.get.ret.last_error, "bytes \x01\x1f\xff\xfe that are no text\n");
        assert_text(get->u.get.ret.error, "{\"message\":\"\xe2\x82\xac\"}");
        assert_true(ew__str_is(get->u.get.ret.dlq, job.queue));
    }
}

/* A JSON object with a text of n bytes. */
static ew_str large_json(contract *c, size_t n, char fill) {
    char *text = ew__arena_alloc(&c->arena, n + 8);
    assert_non_null(text);
    memset(text, fill, n + 8);
    memcpy(text, "{\"t\":\"", 6);
    memcpy(text + n + 6, "\"}", 2);
    return ew__str(text, n + 8);
}

static void test_contract__large(void **state) {
    contract *c = *state;
    ew__job job = contract_job(c, "large");
    job.params = large_json(c, 1 << 20, 'p');
    contract_add(c, job);
    ew__job got = contract_claim(c, "w", "large");
    assert_true(ew__str_is(got.params, job.params));
    ew__store_request *op = contract_change(c, &got, EW__JOB_COMPLETED);
    op->u.change.result = large_json(c, 1 << 20, 'r');
    assert_int_equal(contract_do(c, op), EW_OK);
    contract_reopen(c);
    got = contract_get(c, "large");
    assert_true(ew__str_is(got.params, job.params));
    assert_true(ew__str_is(got.result, op->u.change.result));
}

static void test_contract__completed(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    ew__store_request *op = contract_change(c, &job, EW__JOB_COMPLETED);
    op->u.change.result = S("[1,\"two\",{\"three\":3}]");
    op->u.change.now = contract_now(c) + 5;
    assert_int_equal(contract_do(c, op), EW_OK);
    for (int turn = 0; turn < 2; turn++) {
        ew__job got = contract_get(c, "j1");
        assert_int_equal(got.status, EW__JOB_COMPLETED);
        assert_text(got.result, "[1,\"two\",{\"three\":3}]");
        assert_int_equal(got.ended_at, op->u.change.now);
        assert_true(got.started_at > 0 && got.started_at <= got.ended_at);
        assert_text(got.worker, "w1");
        contract_reopen(c);
    }
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 0);
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_COMPLETED)), EW_ESTALE); /* once only */
}

/* A result may be "null" or nothing that looks like much. */
static void test_contract__small_results(void **state) {
    contract *c = *state;
    static const char *const results[] = {"null", "0", "\"\"", "false", "{}"};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "j%zu", i);
        contract_add_id(c, id);
        ew__job job = contract_claim(c, "w1", id);
        ew__store_request *op = contract_change(c, &job, EW__JOB_COMPLETED);
        op->u.change.result = S(results[i]);
        assert_int_equal(contract_do(c, op), EW_OK);
        ew__job got = contract_get(c, id);
        assert_int_equal(got.status, EW__JOB_COMPLETED);
        if (i > 0) /* RRQ's "null" is also how it says that there is none */
            assert_text(got.result, results[i]);
    }
}

static void test_contract__retrying(void **state) {
    contract *c = *state;
    int64_t later = contract_now(c) + 60000;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    ew__store_request *op = contract_change(c, &job, EW__JOB_RETRYING);
    op->u.change.run_at = later;
    op->u.change.retries = 1;
    op->u.change.last_error = S("it did not work");
    op->u.change.error = S("{\"status\":\"INTERNAL\"}");
    assert_int_equal(contract_do(c, op), EW_OK);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_RETRYING);
    assert_int_equal(got.run_at, later);
    assert_int_equal(got.retries, 1);
    assert_text(got.last_error, "it did not work");
    assert_text(got.error, "{\"status\":\"INTERNAL\"}");
    assert_int_equal(got.ended_at, 0);
    /* not due yet, and then it is */
    assert_int_equal(contract_claim_of(c, "w2", "q", 9)->ret_n, 0);
    ew__store_request *claim = contract_op(c, EW__OP_CLAIM);
    ew__claim_queue queue = {.name = S("q"), .max = 1};
    claim->u.claim = (ew__op_claim){
        .worker = S("w2"), .queues = &queue, .n_queues = 1, .max = 1, .now = later, .lease_ms = contract_lease(c)};
    assert_int_equal(contract_do(c, claim), EW_OK);
    assert_int_equal(claim->u.claim.ret_n, 1);
    got = claim->u.claim.ret[0];
    assert_int_equal(got.retries, 1);
    assert_int_equal(got.epoch, 2);
    /* a later success leaves the error where it was */
    contract_must_change(c, &got, EW__JOB_COMPLETED);
    got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_COMPLETED);
    assert_text(got.last_error, "it did not work");
    assert_int_equal(got.retries, 1);
}

static void test_contract__handed_back(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    contract_must_change(c, &job, EW__JOB_PENDING);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_PENDING);
    assert_int_equal(got.retries, 0);
    assert_int_equal(got.epoch, 1);
    got = contract_claim(c, "w2", "j1");
    assert_int_equal(got.epoch, 2);
}

/* Handed back with a delay: no attempt counts, it is due later and not before, and others are not held up by it. */
static void test_contract__handed_back_for_later(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    ew__store_request *op = contract_change(c, &job, EW__JOB_PENDING);
    int64_t due = op->u.change.now + 60000;
    op->u.change.run_at = due;
    op->u.change.last_error = S("its action is not there");
    assert_int_equal(contract_do(c, op), EW_OK);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_PENDING);
    assert_int_equal(got.retries, 0);
    assert_int_equal(got.run_at, due);
    assert_text(got.last_error, "its action is not there");
    contract_add_id(c, "j2");
    const ew__op_claim *claim = contract_claim_of(c, "w2", "q", 9);
    assert_text(contract_ids(c, claim->ret, claim->ret_n), "j2");
    assert_int_equal(claim->ret_next, due);
    /* the claim of before is over: its worker cannot hand the job back once more, nor end it */
    op = contract_change(c, &job, EW__JOB_PENDING);
    assert_int_equal(contract_do(c, op), EW_ESTALE);
    op = contract_change(c, &job, EW__JOB_FAILED);
    assert_int_equal(contract_do(c, op), EW_ESTALE);
    ew__claim_queue queue = {.name = S("q"), .max = 9};
    op = contract_op(c, EW__OP_CLAIM);
    op->u.claim = (ew__op_claim){
        .worker = S("w2"), .queues = &queue, .n_queues = 1, .max = 9, .now = due, .lease_ms = contract_lease(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_text(contract_ids(c, op->u.claim.ret, op->u.claim.ret_n), "j1");
    assert_int_equal(op->u.claim.ret[0].epoch, 2);
    assert_int_equal(contract_do(c, contract_change(c, &job, EW__JOB_PENDING)), EW_ESTALE);
}

static void test_contract__failed(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    ew__store_request *op = contract_change(c, &job, EW__JOB_FAILED);
    op->u.change.retries = 1;
    op->u.change.last_error = S("for ever");
    op->u.change.dlq = S("letters");
    assert_int_equal(contract_do(c, op), EW_OK);
    contract_reopen(c);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_FAILED);
    assert_int_equal(got.retries, 1);
    assert_text(got.last_error, "for ever");
    assert_int_equal(got.ended_at, op->u.change.now);
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 0);
    ew__op_list *list = contract_list(c, &(ew__op_list){.dlq = S("letters"), .status = EW__JOB_STATUSES, .limit = 5});
    assert_text(contract_ids(c, list->ret, list->ret_n), "j1");
    assert_int_equal(contract_list(c, &(ew__op_list){.dlq = S("x"), .status = EW__JOB_STATUSES, .limit = 5})->ret_n, 0);
}

static void test_contract__cancelled_by_its_worker(void **state) {
    contract *c = *state;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    contract_must_change(c, &job, EW__JOB_CANCELLED);
    ew__job got = contract_get(c, "j1");
    assert_int_equal(got.status, EW__JOB_CANCELLED);
    assert_true(got.ended_at > 0);
    assert_int_equal(contract_claim_of(c, "w1", "q", 9)->ret_n, 0);
}

static void test_contract__what_cannot_be_is_refused(void **state) {
    contract *c = *state;
    if (!c->checks)
        skip();
    ew__job bad[6];
    for (size_t i = 0; i < 6; i++)
        bad[i] = contract_job(c, "bad");
    bad[0].function = S(" ");
    bad[1].queue = S("");
    bad[2].params = S("{");
    bad[3].timeout_ms = 0;
    bad[4].id = S("");
    bad[5].timeout_ms = EW__JOB_TIMEOUT_MAX_MS + 1;
    for (size_t i = 0; i < 6; i++) {
        ew__store_request *op = contract_enqueue_op(c, bad[i]);
        assert_int_equal(contract_do(c, op), EW_EINVAL);
        assert_true(op->problem[0] != '\0');
    }
    assert_int_equal(contract_get_err(c, "bad"), EW_ENOTFOUND);
    ew__store_request *op = contract_enqueue_op(c, contract_job(c, "bad"));
    op->u.enqueue.dedup = EW__DEDUP_RATE;
    assert_int_equal(contract_do(c, op), EW_EINVAL); /* no key */
}

contract_tests contract_tests_jobs(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__comes_back_as_it_was),
        cmocka_unit_test(test_contract__optional_things_are_empty),
        cmocka_unit_test(test_contract__an_id_is_taken_once),
        cmocka_unit_test(test_contract__absent),
        cmocka_unit_test(test_contract__odd_texts),
        cmocka_unit_test(test_contract__large),
        cmocka_unit_test(test_contract__completed),
        cmocka_unit_test(test_contract__small_results),
        cmocka_unit_test(test_contract__retrying),
        cmocka_unit_test(test_contract__handed_back),
        cmocka_unit_test(test_contract__handed_back_for_later),
        cmocka_unit_test(test_contract__failed),
        cmocka_unit_test(test_contract__cancelled_by_its_worker),
        cmocka_unit_test(test_contract__what_cannot_be_is_refused),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
