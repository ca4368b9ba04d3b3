/*
 * tests/unit/jobs/test_worker_life.c: the worker in a simulated world without chance: leases, lost workers, stopping,
 * chunks, schedules, options.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/jobs/stage.h"

/* ---- leases ---- */

static void test_jobs_worker_life__keeps_its_leases(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    job("a")->timeout_ms = 600000;
    actor *a = begin(0, &options), *b = begin(1, &options);
    world_pass(&s->w, 300000);
    assert_int_equal(s->n_runs, 1);
    assert_int_equal(job("a")->epoch, 1);
    assert_int_equal(job("a")->lost, 0);
    succeed(run_of("a"));
    world_pass(&s->w, 100);
    ASSERT_STATUS("a", "COMPLETED");
    quit(a);
    quit(b);
}

static void test_jobs_worker_life__a_stalled_worker(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    actor *b = begin(1, &options);
    node_stall(&s->w.nodes[0], 40000);
    world_pass(&s->w, 22000); /* lease + scan, and a little */
    assert_int_equal(s->n_runs, 2);
    assert_int_equal(s->runs[1].node, 1);
    assert_int_equal(s->runs[1].run->job.lost, 1);
    assert_int_equal(stats(b)->recovered, 1);
    world_pass(&s->w, 18100);
    assert_int_equal(s->runs[0].stopped, EW__STOP_LOST);
    succeed(&s->runs[0]); /* nobody wants it */
    world_pass(&s->w, 100);
    ASSERT_STATUS("a", "ACTIVE");
    succeed(&s->runs[1]);
    world_pass(&s->w, 100);
    ASSERT_STATUS("a", "COMPLETED");
    assert_int_equal(stats(a)->completed + stats(a)->handed_back, 0);
    assert_int_equal(stats(a)->stale, 1); /* not even said to the store, which has told it so */
    quit(a);
    quit(b);
}

/* A renewal that fails is tried again long before the lease is over. */
static void test_jobs_worker_life__a_renewal_that_fails(void **state) {
    (void)state;
    ew__worker_options options = usual();
    options.renew_ms = 9000;
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 8900);
    s->w.faults.down = true;
    world_pass(&s->w, 300);
    s->w.faults.down = false;
    actor *b = begin(1, &options);
    world_pass(&s->w, 40000);
    assert_int_equal(job("a")->epoch, 1);
    assert_int_equal(s->n_runs, 1);
    quit(a);
    quit(b);
}

/* The store refuses what a run says that is not ours any more: that tells it, before the next renewal does. */
static void test_jobs_worker_life__a_chunk_that_is_refused(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    job("a")->epoch = 2;
    assert_int_equal(ew__run_chunk(run_of("a")->run, EW_STR("1")), EW_OK);
    world_pass(&s->w, 10);
    assert_int_equal(run_of("a")->stopped, EW__STOP_LOST);
    assert_int_equal(ew__run_chunk(run_of("a")->run, EW_STR("2")), EW_EENDED);
    succeed(run_of("a"));
    quit(a);
}

/* One that ends before it hears that it was lost is refused by the store. */
static void test_jobs_worker_life__a_late_end(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    actor *b = begin(1, &options);
    s->w.nodes[0].stalled_until = s->w.now + EW__MS(30000);
    world_pass(&s->w, 29000);
    assert_int_equal(s->n_runs, 2);
    s->w.nodes[0].executor.now = s->w.now;
    succeed(&s->runs[0]);
    world_pass(&s->w, 2000);
    ASSERT_STATUS("a", "ACTIVE");
    assert_int_equal(stats(a)->stale, 1);
    assert_int_equal(stats(a)->running, 0);
    succeed(&s->runs[1]);
    world_pass(&s->w, 100);
    ASSERT_STATUS("a", "COMPLETED");
    quit(a);
    quit(b);
}

static void poison(ew_str id) {
    ew__worker_options options = usual();
    options.id = id;
    order("a", "default", 0);
    actor *b = NULL;
    for (int i = 0; i < 3; i++) {
        begin(0, &options);
        world_pass(&s->w, 25000);
        assert_int_equal(s->n_runs, i + 1);
        s->runs[i].run = NULL;
        node_crash(&s->w.nodes[0]);
    }
    b = begin(1, &options);
    world_pass(&s->w, 25000);
    assert_int_equal(s->n_runs, 3);
    ASSERT_STATUS("a", "FAILED");
    assert_int_equal(stats(b)->poisoned, 1);
    assert_int_equal(job("a")->lost, 3);
    assert_int_equal(job("a")->retries, 0);
    quit(b);
}

static void test_jobs_worker_life__poison_pill(void **state) {
    (void)state;
    poison(EW_STR(""));
}

/* A worker that comes back with the same name was lost nevertheless. */
static void test_jobs_worker_life__poison_pill_of_one_name(void **state) {
    (void)state;
    poison(EW_STR("same"));
}

/* A claim whose answer was lost is put back by the worker itself, and no worker counts as lost. */
static void test_jobs_worker_life__unknown_claim(void **state) {
    (void)state;
    ew__worker_options options = usual();
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    s->w.faults.fail_after = 1000;
    order("a", "default", 0);
    world_pass(&s->w, 3);
    s->w.faults.fail_after = 0;
    ASSERT_STATUS("a", "ACTIVE");
    world_pass(&s->w, 25000);
    assert_int_equal(s->n_runs, 1);
    assert_int_equal(job("a")->lost, 0);
    assert_int_equal(job("a")->epoch, 2);
    quit(a);
}

static void test_jobs_worker_life__record(void **state) {
    (void)state;
    static const ew__worker_queue queues[] = {{.name = {"a\"b", 3}}, {.name = {"c", 1}}};
    ew__worker_options options = usual();
    options.queues = queues;
    options.n_queues = 2;
    options.pid = 4242;
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    assert_int_equal(s->w.store.n_workers, 1);
    char expected[300];
    ew_str id = ew__worker_id(a->worker);
    assert_true(id.len == strlen("rrq_worker_4242_123456") && memcmp(id.ptr, "rrq_worker_4242_", 16) == 0);
    (void)snprintf(
        expected, sizeof expected,
        "{\"active_jobs\":0,\"concurrency_limit\":4,\"queues\":[\"rrq:queue:a\\\"b\",\"rrq:queue:c\"],"
        "\"status\":\"idle (no jobs)\",\"timestamp\":\"2025-06-15T15:06:41.000+00:00\",\"worker_id\":\"%.*s\"}",
        (int)id.len, id.ptr);
    assert_string_equal(s->w.store.workers[0].record, expected);
    quit(a);
    assert_int_equal(s->w.store.n_workers, 0); /* it said goodbye */
}

/* ---- stopping ---- */

static void test_jobs_worker_life__hand_back(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    order("b", "default", 0);
    order("c", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    stop_worker(a, 2000);
    order("d", "default", 0);
    world_pass(&s->w, 1000);
    succeed(run_of("a"));
    world_pass(&s->w, 900);
    ASSERT_STATUS("a", "COMPLETED");
    assert_int_equal(run_of("b")->stopped, -1);
    world_pass(&s->w, 200);
    assert_int_equal(run_of("b")->stopped, EW__STOP_SHUTDOWN);
    end(run_of("b"), (ew__outcome){.kind = EW__OUTCOME_ERROR});
    world_pass(&s->w, 100);
    ASSERT_STATUS("b", "PENDING");
    assert_int_equal(job("b")->retries, 0);
    assert_int_equal(job("b")->run_at <= wall(), 1);
    assert_string_equal(job("b")->last_error.ptr, "Job execution interrupted by worker shutdown. Re-queued.");
    ASSERT_STATUS("c", "ACTIVE");
    assert_false(a->ended);
    world_pass(&s->w, 5000); /* c does not mind */
    ASSERT_STATUS("c", "PENDING");
    ASSERT_STATUS("d", "PENDING");
    assert_int_equal(s->n_runs, 3);
    assert_int_equal(stats(a)->handed_back, 2);
    release(a);
}

static void test_jobs_worker_life__second_stop(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    stop_worker(a, 600000);
    world_pass(&s->w, 1000);
    ASSERT_STATUS("a", "ACTIVE");
    stop_worker(a, 600000);
    assert_int_equal(run_of("a")->stopped, EW__STOP_SHUTDOWN);
    world_pass(&s->w, 10);
    ASSERT_STATUS("a", "PENDING");
    release(a);
}

static void test_jobs_worker_life__stop_without_a_store(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    s->w.faults.down = true;
    s->obedient = true;
    stop_worker(a, 0);
    world_pass(&s->w, 14000);
    assert_false(a->ended); /* it may come back */
    world_pass(&s->w, 3000);
    release(a);
    ASSERT_STATUS("a", "ACTIVE"); /* others will find it */
}

static void test_jobs_worker_life__claimed_while_stopping(void **state) {
    (void)state;
    ew__worker_options options = usual();
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    s->w.faults.delay_us = 200000;
    order("a", "default", 0);
    while (job("a")->status != EW__JOB_ACTIVE)
        world_pass(&s->w, 1);
    stop_worker(a, 1000);
    world_pass(&s->w, 1500);
    assert_int_equal(s->n_runs, 0);
    ASSERT_STATUS("a", "PENDING");
    release(a);
}

static void test_jobs_worker_life__never_started(void **state) {
    (void)state;
    ew__worker_options options = usual();
    node *n = node_start(&s->w, 0);
    ew__worker *worker;
    assert_int_equal(ew__worker_new(&n->executor, &n->line.store, &s->actors[0].runs, &options, on_ended, &s->actors[0],
                                    &worker, NULL, 0),
                     EW_OK);
    ew__worker_free(worker);
    node_end(n);
}

/* ---- chunks ---- */

static void test_jobs_worker_life__chunks(void **state) {
    (void)state;
    ew__worker_options options = usual();
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    seen *run = run_of("a");
    assert_int_equal(ew__run_chunk(run->run, EW_STR("0")), EW_OK); /* leaves at once */
    char text[16];
    for (int i = 1; i <= 64; i++) {
        int n = snprintf(text, sizeof text, "%d", i);
        assert_int_equal(ew__run_chunk(run->run, ew__str(text, (size_t)n)), i < 64 ? EW_OK : EW_FULL);
    }
    assert_int_equal(ew__run_chunk(run->run, EW_STR("65")), EW_ELIMIT); /* dropped */
    assert_int_equal(run->rooms, 0);
    world_pass(&s->w, 10);
    assert_int_equal(run->rooms, 1);
    assert_int_equal(ew__run_chunk(run->run, EW_STR("\"last\"")), EW_OK);
    succeed(run); /* the end waits for it */
    world_pass(&s->w, 10);
    model_job *mj = model_find(&s->w.store, EW_STR("a"));
    assert_int_equal(mj->n_chunks, 66);
    for (int i = 0; i < 65; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        assert_string_equal(mj->chunks[i].json, text);
    }
    assert_string_equal(mj->chunks[65].json, "\"last\"");
    ASSERT_STATUS("a", "COMPLETED");
    quit(a);
}

static void test_jobs_worker_life__large_chunks(void **state) {
    (void)state;
    static char large[EW__JOB_CHUNK_BYTES_MAX + 1];
    ew__worker_options options = usual();
    memset(large, '1', sizeof large);
    order("a", "default", 0);
    actor *a = begin(0, &options);
    world_pass(&s->w, 100);
    seen *run = run_of("a");
    assert_int_equal(ew__run_chunk(run->run, ew__str(large, sizeof large)), EW_ELIMIT);
    assert_int_equal(ew__run_chunk(run->run, ew__str(large, sizeof large - 1)), EW_OK); /* under way already */
    assert_int_equal(ew__run_chunk(run->run, ew__str(large, 65535)), EW_OK);
    assert_int_equal(ew__run_chunk(run->run, ew__str(large, 1)), EW_FULL);
    s->w.faults.down = true;
    world_pass(&s->w, 3000);
    assert_int_equal(run->rooms, 0);
    s->w.faults.down = false;
    world_pass(&s->w, 3000);
    assert_int_equal(run->rooms, 1);
    assert_int_equal(job("a")->chunks, 3);
    quit(a);
}

/* ---- schedules ---- */

static unsigned ticks_made(void) {
    unsigned n = 0;
    for (size_t i = 0; i < s->w.store.n_jobs; i++)
        n += ew__str_is(s->w.store.jobs[i]->job.function, EW_STR("tick"));
    return n;
}

static void pause_all(void) {
    ew__store_request op = {.kind = EW__OP_PAUSE};
    op.u.pause = (ew__op_pause){.queue = EW_STR("default"), .on = true};
    do_now(&op);
}

static void test_jobs_worker_life__one_job_for_each_tick(void **state) {
    (void)state;
    static const ew__worker_cron cron = {
        .name = {"n", 1}, .schedule = {"*/10 * * * * *", 14}, .job = {.function = {"tick", 4}}};
    ew__worker_options options = usual();
    options.crons = &cron;
    options.n_crons = 1;
    pause_all();
    actor *a = begin(0, &options), *b = begin(1, &options), *c = begin(2, &options);
    world_pass(&s->w, 100 * 1000);
    assert_int_equal(ticks_made(), 10);
    assert_int_equal(stats(a)->ticks + stats(b)->ticks + stats(c)->ticks, 10);
    const ew__job *made = &s->w.store.jobs[0]->job;
    assert_int_equal(made->run_at % 10000, 0);
    assert_int_equal(made->timeout_ms, 300000);
    assert_true(ew__str_is(made->queue, EW_STR("default")) && ew__str_is(made->params, EW_STR("{}")));
    quit(a);
    quit(b);
    quit(c);
}

static void test_jobs_worker_life__clocks_that_jump(void **state) {
    (void)state;
    static const ew__worker_cron cron = {
        .name = {"n", 1}, .schedule = {"*/10 * * * * *", 14}, .job = {.function = {"tick", 4}}};
    ew__worker_options options = usual();
    options.crons = &cron;
    options.n_crons = 1;
    pause_all();
    actor *a = begin(0, &options);
    world_pass(&s->w, 30 * 1000);
    assert_int_equal(ticks_made(), 3);
    s->w.nodes[0].skew_ms = 3600 * 1000; /* what is older than a minute is left out */
    world_pass(&s->w, 31 * 1000);
    unsigned n = ticks_made();
    assert_true(n >= 3 + 3 && n <= 3 + 7 + 3);
    s->w.nodes[0].skew_ms = 0; /* none is made twice, and it goes on when the clock is there again */
    world_pass(&s->w, 60 * 1000);
    assert_int_equal(ticks_made(), n);
    s->w.nodes[0].skew_ms = -INT64_C(400) * 86400 * 1000; /* more than a day ahead: that was wrong */
    world_pass(&s->w, 61 * 1000);
    assert_true(ticks_made() >= n + 2);
    quit(a);
}

static void test_jobs_worker_life__unique_schedule(void **state) {
    (void)state;
    static const ew__worker_cron cron = {
        .name = {"n", 1}, .schedule = {"*/10 * * * * *", 14}, .job = {.function = {"tick", 4}}, .unique = {"u", 1}};
    ew__worker_options options = usual();
    options.crons = &cron;
    options.n_crons = 1;
    actor *a = begin(0, &options), *b = begin(1, &options);
    world_pass(&s->w, 45 * 1000);
    assert_int_equal(ticks_made(), 1); /* the first one has not ended */
    assert_int_equal(s->n_runs, 1);
    succeed(&s->runs[0]);
    world_pass(&s->w, 10 * 1000);
    assert_int_equal(ticks_made(), 2);
    quit(a);
    quit(b);
}

/* Ids are typed, and put into URLs and shells. Every worker makes the same one of a tick. */
static void test_jobs_worker_life__ids_of_unique_schedules(void **state) {
    (void)state;
    static const char name[] = "/flow/daily report default 0 0 * * * {\"a\":\"b c\"}";
    static const char expected[] = "cron-flow-daily-report-fc5ab54c04c41069-20";
    const ew__worker_cron cron = {.name = ew__str(name, sizeof name - 1),
                                  .schedule = EW_STR("*/10 * * * * *"),
                                  .job = {.function = EW_STR("/flow/daily report ")},
                                  .unique = EW_STR("u")};
    ew__worker_options options = usual();
    options.crons = &cron;
    options.n_crons = 1;
    pause_all();
    actor *a = begin(0, &options), *b = begin(1, &options);
    world_pass(&s->w, 15 * 1000);
    assert_int_equal(s->w.store.n_jobs, 1);
    ew_str id = s->w.store.jobs[0]->job.id;
    assert_true(ew__str_has_prefix(id, ew_str_from(expected)));
    assert_int_equal(id.len, sizeof expected - 1 + sizeof "260101T100000Z" - 1);
    for (size_t i = 0; i < id.len; i++)
        assert_non_null(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", id.ptr[i]));
    quit(a);
    quit(b);
}

/* ---- options, memory ---- */

static void test_jobs_worker_life__bad_options(void **state) {
    (void)state;
    static const ew__worker_queue unnamed = {.name = {" ", 1}}, rated = {.name = {"q", 1}, .rate = 1000001};
    static const ew__worker_cron bad = {.name = {"nightly", 7},
                                        .schedule = {"61 * * * *", 10},
                                        .job = {.function = {"f", 1}}},
                                 no_name = {.schedule = {"@daily", 6}, .job = {.function = {"f", 1}}},
                                 no_function = {.name = {"n", 1}, .schedule = {"@daily", 6}};
    const struct {
        const ew__worker_queue *queue;
        const ew__worker_cron *cron;
        const char *words;
    } cases[] = {{&unnamed, NULL, "a queue needs a name"},
                 {&rated, NULL, "rate"},
                 {NULL, &bad, "schedule nightly: the minute must be 0 to 59, not '61'"},
                 {NULL, &no_name, "needs a name"},
                 {NULL, &no_function, "function_name cannot be empty"}};
    node *n = node_start(&s->w, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew__worker_options options = usual();
        ew__worker *worker;
        char problem[200] = "";
        options.queues = cases[i].queue;
        options.n_queues = cases[i].queue != NULL;
        options.crons = cases[i].cron;
        options.n_crons = cases[i].cron != NULL;
        assert_int_equal(ew__worker_new(&n->executor, &n->line.store, &s->actors[0].runs, &options, on_ended, NULL,
                                        &worker, problem, sizeof problem),
                         EW_EINVAL);
        if (!strstr(problem, cases[i].words))
            fail_msg("%s, not %s", problem, cases[i].words);
        assert_int_equal(ew__worker_new(&n->executor, &n->line.store, &s->actors[0].runs, &options, on_ended, NULL,
                                        &worker, NULL, 0),
                         EW_EINVAL);
    }
    node_end(n);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_jobs_worker_life__##name, stage_begin, stage_end)
    const struct CMUnitTest tests[] = {
        TEST(keeps_its_leases),
        TEST(a_stalled_worker),
        TEST(a_late_end),
        TEST(poison_pill),
        TEST(poison_pill_of_one_name),
        TEST(a_renewal_that_fails),
        TEST(a_chunk_that_is_refused),
        TEST(unknown_claim),
        TEST(record),
        TEST(hand_back),
        TEST(second_stop),
        TEST(stop_without_a_store),
        TEST(claimed_while_stopping),
        TEST(never_started),
        TEST(chunks),
        TEST(large_chunks),
        TEST(one_job_for_each_tick),
        TEST(clocks_that_jump),
        TEST(unique_schedule),
        TEST(ids_of_unique_schedules),
        TEST(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
