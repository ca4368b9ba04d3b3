/*
 * tests/store/contract_lists.c: lists of jobs, of dead letters, of queues.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

static void add_with(contract *c, const char *id, const char *queue, const char *function, int64_t enqueued_at) {
    ew__job job = contract_job(c, id);
    job.queue = S(queue);
    job.function = S(function);
    job.enqueued_at = enqueued_at;
    contract_add(c, job);
}

static void expect_list(contract *c, ew__op_list filter, const char *ids) {
    ew__op_list *list = contract_list(c, &filter);
    assert_text(contract_ids(c, list->ret, list->ret_n), ids);
    assert_true(list->ret_total >= list->ret_n);
}

static void test_contract__lists_newest_first(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .limit = 9}, "");
    add_with(c, "b", "q", "f", now - 20);
    add_with(c, "a", "q", "f", now - 30);
    add_with(c, "c", "q", "f", now - 10);
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .limit = 9}, "c b a");
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .limit = 2}, "c b");
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .limit = 2, .offset = 1}, "b a");
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .limit = 2, .offset = 2}, "a");
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .limit = 2, .offset = 9}, "");
    ew__op_list *list = contract_list(c, &(ew__op_list){.status = EW__JOB_STATUSES, .limit = 9});
    assert_text(list->ret[0].params, "{}");
    assert_text(list->ret[0].queue, "q");
    assert_int_equal(list->ret[0].enqueued_at, now - 10);
}

static void test_contract__lists_what_matches(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    add_with(c, "1", "q", "f", now - 60);
    add_with(c, "2", "q", "g", now - 50);
    add_with(c, "3", "p", "f", now - 40);
    add_with(c, "4", "p", "g", now - 30);
    add_with(c, "5", "q", "f", now - 20);
    ew__op_claim *got = contract_claim_of(c, "w", "p", 9);
    assert_int_equal(got->ret_n, 2);
    for (size_t i = 0; i < 2; i++)
        contract_must_change(c, &got->ret[i],
                             ew__str_is(got->ret[i].id, S("3")) ? EW__JOB_COMPLETED : EW__JOB_RETRYING);
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .queue = S("q"), .limit = 9}, "5 2 1");
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .function = S("f"), .limit = 9}, "5 3 1");
    expect_list(c, (ew__op_list){.status = EW__JOB_PENDING, .limit = 9}, "5 2 1");
    expect_list(c, (ew__op_list){.status = EW__JOB_COMPLETED, .limit = 9}, "3");
    expect_list(c, (ew__op_list){.status = EW__JOB_RETRYING, .queue = S("p"), .function = S("g"), .limit = 9}, "4");
    expect_list(c, (ew__op_list){.status = EW__JOB_RETRYING, .queue = S("q"), .limit = 9}, "");
    expect_list(c,
                (ew__op_list){.status = EW__JOB_STATUSES, .queue = S("q"), .function = S("f"), .limit = 1, .offset = 1},
                "1");
    expect_list(c, (ew__op_list){.status = EW__JOB_STATUSES, .queue = S("nobody's"), .limit = 9}, "");
}

static void test_contract__lists_what_waits(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    static const struct {
        const char *id;
        int64_t in;
    } jobs[] = {{"d", 3000}, {"a", -3000}, {"c", 1000}, {"b", -1000}};
    for (size_t i = 0; i < 4; i++) {
        ew__job job = contract_job(c, jobs[i].id);
        job.run_at = now + jobs[i].in;
        contract_add(c, job);
    }
    add_with(c, "other", "p", "f", now);
    ew__op_list all = {.queue = S("q"), .status = EW__JOB_STATUSES, .waiting = true, .limit = 9};
    expect_list(c, all, "a b c d");
    ew__op_list page = {.queue = S("q"), .status = EW__JOB_STATUSES, .waiting = true, .limit = 2, .offset = 1};
    expect_list(c, page, "b c");
    assert_int_equal(contract_list(c, &page)->ret_total, 4);
    ew__job job = contract_claim(c, "w", "a");
    expect_list(c, all, "b c d");
    ew__store_request *op = contract_change(c, &job, EW__JOB_RETRYING);
    op->u.change.run_at = now + 2000;
    assert_int_equal(contract_do(c, op), EW_OK);
    expect_list(c, all, "b c a d");
    assert_int_equal(contract_list(c, &all)->ret_total, 4);
}

static void make_dead(contract *c, const char *id, const char *function, const char *dlq, int64_t at) {
    ew__job job = contract_job(c, id);
    job.function = S(function);
    contract_add(c, job);
    job = contract_claim(c, "w", id);
    ew__store_request *op = contract_change(c, &job, EW__JOB_FAILED);
    op->u.change.dlq = S(dlq);
    op->u.change.now = at;
    op->u.change.last_error = S("broken");
    assert_int_equal(contract_do(c, op), EW_OK);
}

static void test_contract__lists_dead_letters(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    make_dead(c, "z", "f", "default", now + 1);
    make_dead(c, "y", "g", "default", now + 2);
    make_dead(c, "x", "f", "default", now + 3);
    make_dead(c, "w", "f", "letters", now + 4);
    contract_reopen(c);
    expect_list(c, (ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 9}, "x y z");
    expect_list(c, (ew__op_list){.dlq = S("letters"), .status = EW__JOB_STATUSES, .limit = 9}, "w");
    expect_list(c, (ew__op_list){.dlq = S("none"), .status = EW__JOB_STATUSES, .limit = 9}, "");
    expect_list(c, (ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 1, .offset = 1}, "y");
    expect_list(c, (ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .function = S("f"), .limit = 9},
                "x z");
    expect_list(c, (ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .queue = S("p"), .limit = 9}, "");
    ew__op_list *list = contract_list(c, &(ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 1});
    assert_int_equal(list->ret_total, 3);
    assert_text(list->ret[0].last_error, "broken");
    assert_text(list->ret[0].function, "f");
    list = contract_list(
        c, &(ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .function = S("f"), .limit = 1});
    assert_int_equal(list->ret_total, 2);
}

static void test_contract__queues(void **state) {
    contract *c = *state;
    int64_t now = contract_now(c);
    static const int64_t due[] = {-2000, 5000, 100};
    assert_null(contract_queue(c, "q", true));
    for (size_t i = 0; i < 3; i++) {
        ew__job job = contract_job(c, "");
        job.id = contract_text(c, "j%zu", i);
        job.run_at = now + due[i];
        contract_add(c, job);
    }
    add_with(c, "other", "p", "f", now);
    const ew__queue_stats *q = contract_queue(c, "q", false);
    assert_non_null(q);
    assert_int_equal(q->pending, 3);
    assert_int_equal(q->oldest_due, now - 2000);
    assert_int_equal(q->newest_due, now + 5000);
    assert_false(q->paused);
    q = contract_queue(c, "p", false);
    assert_non_null(q);
    assert_int_equal(q->pending, 1);
    contract_pause(c, "p", true);
    contract_pause(c, "empty", true);
    assert_true(contract_queue(c, "p", false)->paused);
    q = contract_queue(c, "empty", false); /* nothing is in it, but people want to see that it is paused */
    assert_non_null(q);
    assert_true(q->paused);
    assert_int_equal(q->pending, 0);
    assert_int_equal(q->oldest_due, 0);
    assert_int_equal(q->newest_due, 0);
    contract_pause(c, "empty", false);
    q = contract_queue(c, "empty", false);
    assert_true(q == NULL || !q->paused);
}

static void test_contract__queues_with_counts(void **state) {
    contract *c = *state;
    static const ew__job_status ends[] = {EW__JOB_COMPLETED, EW__JOB_COMPLETED, EW__JOB_FAILED,
                                          EW__JOB_CANCELLED, EW__JOB_RETRYING,  EW__JOB_ACTIVE};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "j%zu", i);
        contract_add_id(c, id);
        ew__job job = contract_claim(c, "w", id);
        if (ends[i] == EW__JOB_ACTIVE)
            continue;
        ew__store_request *op = contract_change(c, &job, ends[i]);
        op->u.change.run_at = contract_now(c) + 60000;
        assert_int_equal(contract_do(c, op), EW_OK);
    }
    contract_add_id(c, "waits");
    const ew__queue_stats *q = contract_queue(c, "q", true);
    assert_non_null(q);
    assert_int_equal(q->pending, 2); /* what waits: also what waits for its next attempt */
    assert_int_equal(q->retrying, 1);
    assert_int_equal(q->active, 1);
    assert_int_equal(q->completed, 2);
    assert_int_equal(q->failed, 1);
    assert_int_equal(q->cancelled, 1);
    assert_int_equal(q->dead, 1);
    assert_true(q->average_wait_ms >= 0);
    /* a queue in which everything has ended is seen, too */
    ew__job job = contract_job(c, "alone");
    job.queue = S("p");
    contract_add(c, job);
    job = contract_claim_of(c, "w", "p", 1)->ret[0];
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    q = contract_queue(c, "p", true);
    assert_non_null(q);
    assert_int_equal(q->pending, 0);
    assert_int_equal(q->completed, 1);
    ew__store_request *op = contract_op(c, EW__OP_QUEUES);
    op->u.queues = (ew__op_queues){.counts = true, .max_scan = 2};
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_true(op->u.queues.ret_partial);
    op = contract_op(c, EW__OP_QUEUES);
    op->u.queues = (ew__op_queues){.counts = true, .max_scan = 1000};
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_false(op->u.queues.ret_partial);
}

contract_tests contract_tests_lists(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__lists_newest_first),
        cmocka_unit_test(test_contract__lists_what_matches),
        cmocka_unit_test(test_contract__lists_what_waits),
        cmocka_unit_test(test_contract__lists_dead_letters),
        cmocka_unit_test(test_contract__queues),
        cmocka_unit_test(test_contract__queues_with_counts),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
