/*
 * tests/unit/jobs/test_worker.c: the worker in a simulated world without chance: what it claims and when, how runs
 * end. test_worker_life.c goes on; tests/queue has the one with chance and faults.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/jobs/stage.h"

/* ---- claiming ---- */

static void test_jobs_worker__runs_a_job(void **state) {
    (void)state;
    ew__worker_options options = usual();
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    order("a", "default", 0);
    world_pass(&s->w, 5); /* by the hint */
    assert_int_equal(s->n_runs, 1);
    assert_int_equal(s->runs[0].run->attempt, 1);
    assert_int_equal(s->runs[0].run->deadline, s->runs[0].at + EW__MS(60000));
    assert_true(ew__str_is(s->runs[0].run->job.params, EW_STR("{}")));
    ASSERT_STATUS("a", "ACTIVE");
    succeed(&s->runs[0]);
    world_pass(&s->w, 5);
    ASSERT_STATUS("a", "COMPLETED");
    assert_true(ew__str_is(job("a")->result, EW_STR("\"ok\"")));
    assert_int_equal(stats(a)->completed, 1);
    assert_int_equal(stats(a)->running, 0);
    quit(a);
}

static void test_jobs_worker__without_hints(void **state) {
    (void)state;
    ew__worker_options options = usual();
    s->w.faults.hint_lost = 1000;
    options.poll_ms = 500;
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    order("a", "default", 0);
    world_pass(&s->w, 600);
    assert_int_equal(s->n_runs, 1);
    quit(a);
}

/* A hint that comes while a claim is under way, which may have missed the job. */
static void test_jobs_worker__a_hint_during_a_claim(void **state) {
    (void)state;
    ew__worker_options options = usual();
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    s->w.faults.delay_us = 200000;
    order("a", "default", 0);
    while (job("a")->status != EW__JOB_ACTIVE)
        world_pass(&s->w, 1);
    s->w.faults.delay_us = 1; /* the answer is still slow */
    order("b", "default", 0);
    world_pass(&s->w, 300);
    assert_int_equal(s->n_runs, 2);
    quit(a);
}

static void test_jobs_worker__no_more_than_places(void **state) {
    (void)state;
    char id[24];
    ew__worker_options options = usual();
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        order(id, "default", 0);
    }
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    assert_int_equal(s->n_runs, 4);
    assert_int_equal(job("j4")->epoch, 0); /* not even claimed */
    s->w.faults.hint_lost = 1000;
    succeed(&s->runs[2]);
    world_pass(&s->w, 5); /* a place that becomes free is taken at once */
    assert_int_equal(s->n_runs, 5);
    assert_string_equal(s->runs[4].id, "j4");
    for (int i = 0; i < 10; i++) {
        if (s->runs[i].run)
            succeed(&s->runs[i]);
        world_pass(&s->w, 5);
    }
    assert_int_equal(s->n_runs, 10);
    assert_int_equal(stats(a)->completed, 10);
    quit(a);
}

static void test_jobs_worker__waits_for_the_time(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("later", "default", 2500);
    actor *a = begin(0, &options);
    world_pass(&s->w, 2499);
    assert_int_equal(s->n_runs, 0);
    world_pass(&s->w, 10);
    assert_int_equal(s->n_runs, 1);
    quit(a);
}

static void test_jobs_worker__priorities_and_turns(void **state) {
    (void)state;
    static const ew__worker_queue queues[] = {
        {.name = {"x", 1}}, {.name = {"rrq:queue:y", 11}}, {.name = {"high", 4}, .priority = 9}};
    ew__worker_options options = usual();
    options.queues = queues;
    options.n_queues = 3;
    options.concurrency = 1;
    static const char *const ids[] = {"x1", "x2", "x3", "y1", "y2", "h1"};
    for (int i = 0; i < 6; i++)
        order(ids[i], ids[i][0] == 'h' ? "high" : ids[i][0] == 'x' ? "x" : "y", 0);
    actor *a = begin(0, &options);
    char got[40] = "";
    for (int i = 0; i < 6; i++) {
        world_pass(&s->w, 5);
        assert_int_equal(s->n_runs, i + 1);
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", s->runs[i].id);
        succeed(&s->runs[i]);
    }
    assert_string_equal(got, "h1 y1 x1 y2 x2 x3 ");
    quit(a);
}

static void test_jobs_worker__limits_of_queues(void **state) {
    (void)state;
    static const ew__worker_queue queues[] = {{.name = {"one", 3}, .concurrency = 1},
                                              {.name = {"rated", 5}, .rate = 2, .rate_ms = 1000}};
    char id[24];
    ew__worker_options options = usual();
    options.queues = queues;
    options.n_queues = 2;
    options.concurrency = 20;
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof id, "o%d", i);
        order(id, "one", 0);
        (void)snprintf(id, sizeof id, "r%d", i);
        order(id, "rated", 0);
    }
    actor *a = begin(0, &options);
    world_pass(&s->w, 900);
    assert_int_equal(s->n_runs, 3); /* one, and two */
    world_pass(&s->w, 200);
    assert_int_equal(s->n_runs, 5); /* the next two, when they may, without any other reason */
    world_pass(&s->w, 1100);
    assert_int_equal(s->n_runs, 6);
    succeed(run_of("o0"));
    world_pass(&s->w, 5);
    assert_int_equal(s->n_runs, 7);
    assert_string_equal(s->runs[6].id, "o1");
    quit(a);
}

static void test_jobs_worker__room_of_runners(void **state) {
    (void)state;
    static const ew__worker_queue queues[] = {{.name = {"a", 1}}, {.name = {"b", 1}}};
    char id[24];
    ew__worker_options options = usual();
    options.queues = queues;
    options.n_queues = 2;
    s->room = 1; /* both queues share it */
    for (int i = 0; i < 3; i++) {
        (void)snprintf(id, sizeof id, "a%d", i);
        order(id, "a", 0);
        (void)snprintf(id, sizeof id, "b%d", i);
        order(id, "b", 0);
    }
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    assert_int_equal(s->n_runs, 1);
    assert_int_equal(job("b0")->epoch + job("a1")->epoch, 0);
    s->room = 3;
    ew__worker_room(a->worker);
    world_pass(&s->w, 50);
    assert_int_equal(s->n_runs, 3);
    s->room = 0;
    ew__worker_room(a->worker);
    world_pass(&s->w, 50);
    assert_int_equal(s->n_runs, 4); /* all places */
    quit(a);
}

static void test_jobs_worker__burst(void **state) {
    (void)state;
    ew__worker_options options = usual();
    options.burst = true;
    order("a", "default", 0);
    order("later", "default", 60000);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    assert_false(a->ended);
    succeed(&s->runs[0]);
    world_pass(&s->w, 100);
    release(a);
    ASSERT_STATUS("later", "PENDING");
}

/* ---- ends ---- */

static void test_jobs_worker__retries(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        world_pass(&s->w, 10);
        assert_int_equal(s->n_runs, (int)attempt);
        assert_int_equal(run_of("a")->run->attempt, attempt);
        end(run_of("a"), (ew__outcome){.kind = EW__OUTCOME_ERROR, .message = EW_STR("boom")});
        world_pass(&s->w, 10);
        ASSERT_STATUS("a", attempt < 3 ? "RETRYING" : "FAILED");
        world_pass(&s->w, attempt == 1 ? 950 : 1950);
        assert_int_equal(s->n_runs, (int)attempt); /* 1 s, then 2 s */
        world_pass(&s->w, 40);
    }
    assert_string_equal(job("a")->last_error.ptr, "boom");
    assert_int_equal(stats(a)->retried, 2);
    assert_int_equal(stats(a)->failed, 1);
    quit(a);
}

static void test_jobs_worker__timeout(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    order("b", "default", 0);
    job("a")->timeout_ms = job("b")->timeout_ms = 1000;
    actor *a = begin(0, &options);
    world_pass(&s->w, 990);
    succeed(run_of("b"));
    world_pass(&s->w, 20);
    ASSERT_STATUS("b", "COMPLETED");
    assert_int_equal(run_of("a")->stopped, EW__STOP_TIMEOUT);
    assert_int_equal(run_of("a")->stopped_at, run_of("a")->at + EW__MS(1000));
    succeed(run_of("a")); /* too late */
    world_pass(&s->w, 20);
    ASSERT_STATUS("a", "FAILED");
    assert_string_equal(job("a")->last_error.ptr, "Job timed out after 1s.");
    assert_true(model_find(&s->w.store, EW_STR("a"))->dead);
    quit(a);
}

/* A run that does not end is given up; its end may come after the worker is gone. */
static void test_jobs_worker__given_up(void **state) {
    (void)state;
    ew__worker_options options = usual();
    options.concurrency = 1;
    order("a", "default", 0);
    order("b", "default", 0);
    job("a")->timeout_ms = 1000;
    actor *a = begin(0, &options);
    world_pass(&s->w, 5900);
    ASSERT_STATUS("a", "ACTIVE");
    assert_int_equal(s->n_runs, 1);
    world_pass(&s->w, 200);
    ASSERT_STATUS("a", "FAILED");
    assert_int_equal(s->n_runs, 2); /* the place is free */
    succeed(run_of("b"));
    world_pass(&s->w, 20);
    assert_int_equal(ew__run_chunk(run_of("a")->run, EW_STR("1")), EW_EENDED);
    stop_worker(a, 0);
    world_pass(&s->w, 100);
    assert_non_null(run_of("a")->run);
    release(a);
}

static void test_jobs_worker__cancel(void **state) {
    (void)state;
    ew__worker_options options = usual();
    ew__store_request op = {.kind = EW__OP_CANCEL};
    order("a", "default", 0);
    order("b", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    op.u.cancel.id = EW_STR("a");
    do_now(&op);
    assert_int_equal(op.u.cancel.ret, EW__CANCELLED_ASKED);
    world_pass(&s->w, 5); /* by the hint, not by the next renewal */
    assert_int_equal(run_of("a")->stopped, EW__STOP_CANCELLED);
    end(run_of("a"), (ew__outcome){.kind = EW__OUTCOME_ERROR, .message = EW_STR("Job cancelled")});
    op.u.cancel = (ew__op_cancel){.id = EW_STR("b")};
    do_now(&op);
    world_pass(&s->w, 5);
    ASSERT_STATUS("a", "CANCELLED");
    succeed(run_of("b")); /* it was done before it saw that */
    world_pass(&s->w, 5);
    ASSERT_STATUS("b", "COMPLETED");
    assert_int_equal(stats(a)->cancelled, 1);
    quit(a);
}

static void test_jobs_worker__a_cancel_outlives_an_attempt(void **state) {
    (void)state;
    ew__worker_options options = usual();
    ew__store_request op = {.kind = EW__OP_CANCEL};
    s->w.faults.hint_lost = 1000;
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    op.u.cancel.id = EW_STR("a");
    do_now(&op);
    end(run_of("a"), (ew__outcome){.kind = EW__OUTCOME_RETRY, .retry_after_ms = 10}); /* the worker does not know yet */
    s->w.faults.hint_lost = 0;
    world_pass(&s->w, 100);
    assert_int_equal(s->n_runs, 1); /* claimed again, and not begun */
    ASSERT_STATUS("a", "CANCELLED");
    quit(a);
}

static void test_jobs_worker__store_away_at_the_end(void **state) {
    (void)state;
    ew__worker_options options = usual();
    options.concurrency = 1;
    options.poll_ms = 1000;
    order("a", "default", 0);
    order("b", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    s->w.faults.down = true;
    succeed(run_of("a"));
    world_pass(&s->w, 30000); /* twice the lease: nobody else is there */
    assert_int_equal(stats(a)->running, 1);
    assert_int_equal(stats(a)->waiting_ends, 1);
    assert_int_equal(s->n_runs, 1); /* its place is taken */
    s->w.faults.down = false;
    world_pass(&s->w, 3000);
    ASSERT_STATUS("a", "COMPLETED");
    assert_int_equal(stats(a)->completed, 1);
    assert_int_equal(s->n_runs, 2);
    quit(a);
}

/* The store has taken it, and nobody heard: the next try is refused, and that is no late end. */
static void test_jobs_worker__unknown_end(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 50);
    s->w.faults.fail_after = 1000;
    succeed(run_of("a"));
    world_pass(&s->w, 10);
    s->w.faults.fail_after = 0;
    assert_int_equal(stats(a)->waiting_ends, 1);
    world_pass(&s->w, 5000);
    ASSERT_STATUS("a", "COMPLETED");
    assert_int_equal(stats(a)->completed, 1);
    assert_int_equal(stats(a)->stale, 0);
    assert_int_equal(stats(a)->running, 0);
    quit(a);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_jobs_worker__##name, stage_begin, stage_end)
    const struct CMUnitTest tests[] = {
        TEST(runs_a_job),
        TEST(without_hints),
        TEST(a_hint_during_a_claim),
        TEST(no_more_than_places),
        TEST(waits_for_the_time),
        TEST(priorities_and_turns),
        TEST(limits_of_queues),
        TEST(room_of_runners),
        TEST(burst),
        TEST(retries),
        TEST(timeout),
        TEST(given_up),
        TEST(cancel),
        TEST(a_cancel_outlives_an_attempt),
        TEST(store_away_at_the_end),
        TEST(unknown_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
