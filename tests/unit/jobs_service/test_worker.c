/*
 * tests/unit/jobs_service/test_worker.c: apps that work: what becomes of jobs whose actions stream, fail, ask for another
 * try, never end; runners; the ends of an app.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_support.h"
#include "support/json_or.h"
#include <pthread.h>
#include <stdatomic.h>

#define STR(text) ew_str_from(text)

/* ---- actions ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void count_to(ew_call *call, void *arg) {
    int64_t n = json_int_or(ew_call_input(call), "/n", 3);
    (void)arg;
    for (int64_t i = 1; i <= n; i++)
        (void)ew_call_chunkf(call, "{\"i\":%lld}", (long long)i);
    (void)ew_call_donef(call, "%lld", (long long)n);
}

/* Asks for another try until its attempt is the third. */
static void third_time(ew_call *call, void *arg) {
    (void)arg;
    if (ew_call_attempt(call) < 3)
        (void)ew_call_fail_with(call, &(ew_fault){.status = EW_STATUS_UNAVAILABLE,
                                                  .message = EW_STR("not yet"),
                                                  .retryable = true,
                                                  .retry_after_ms = 5});
    else
        (void)ew_call_donef(call, "%u", (unsigned)ew_call_attempt(call));
}

static void broken(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail_with(call, &(ew_fault){.status = EW_STATUS_NOT_FOUND,
                                              .message = EW_STR("no such \"thing\""),
                                              .details = EW_STR("{\"thing\":1}")});
}

static void on_cancel(ew_call *call, void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "told to stop");
}

static void forever(ew_call *call, void *arg) {
    (void)ew_call_chunk(call, EW_STR("\"running\""));
    (void)ew_call_on_cancel(call, on_cancel, arg);
}

/* Does not listen, and ends long after everybody has gone. */
static void stubborn_end(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void stubborn(ew_call *call, void *arg) { (void)ew_call_after(call, 400, stubborn_end, arg); }

/* Takes its time, unless it is told to stop. */
static void polite(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    (void)ew_call_after(call, 300, stubborn_end, NULL);
}

static void tell_context(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "{\"context\":%j,\"labels\":%j,\"wire\":%q,\"trace\":%q,\"deadline\":%b}",
                        ew_call_context(call), ew_call_labels(call), ew_call_wire(call), ew_call_trace_id(call),
                        ew_call_deadline_ms(call) > 0);
}

/* ---- the world ---- */

typedef struct world {
    place place;
    ew_jobs *jobs;
    ew_app *app;
    atomic_int cancels;
} world;

static int begin(void **state) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    place_open(&w->place);
    w->jobs = open_jobs(&w->place, NULL);
    *state = w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    (void)ew_app_free(w->app);
    (void)ew_jobs_free(w->jobs);
    place_close(&w->place);
    free(w);
    return 0;
}

static void add_actions(world *w, ew_app *app) {
    assert_int_equal(ew_app_action(app, "/flow/echo", echo, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/count", count_to, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/third", third_time, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/broken", broken, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/forever", forever, &w->cancels, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/stubborn", stubborn, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/polite", polite, &w->cancels, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/context", tell_context, NULL, NULL), EW_OK);
}

static void make_worker(world *w, const ew_app_options *app_options, const ew_worker_options *options) {
    w->app = ew_app_new_with("worker", app_options);
    assert_non_null(w->app);
    add_actions(w, w->app);
    if (ew_app_jobs(w->app, w->place.store, NULL) != EW_OK || ew_app_worker(w->app, options) != EW_OK)
        fail_msg("%s", ew_app_error(w->app));
}

static void start_worker(world *w, const ew_app_options *app_options, const ew_worker_options *options) {
    make_worker(w, app_options, options);
    if (ew_app_start(w->app) != EW_OK)
        fail_msg("%s", ew_app_error(w->app));
}

static const ew_worker_options quick = {.base_retry_ms = 5, .max_retry_ms = 20};

static said run_job(world *w, const char *function, const char *params) {
    char id[64];
    must_enqueue(w->jobs, &(ew_job_options){.function = STR(function), .params = STR(params)}, id);
    return wait_for(w->jobs, id);
}

/* ---- what becomes of jobs ---- */

static void test_api_worker__runs_jobs(void **state) {
    world *w = *state;
    start_worker(w, NULL, &quick);
    assert_int_equal(ew_app_listeners(w->app), 0); /* it is nothing but a worker */
    said s = run_job(w, "echo", "{\"a\":[1,2]}");
    expect_text(&s, "/status", "COMPLETED");
    expect_json(&s, "/result", "{\"a\":[1,2]}");
    expect_json(&s, "/attempts", "1");
    s = run_job(w, "/flow/echo", "7");
    expect_json(&s, "/result", "7");
    s = run_job(w, "#echo", "8");
    expect_json(&s, "/result", "8");
    s = run_job(w, "nobody#echo", "9"); /* without runners what precedes the # means nothing, as to a runner */
    expect_json(&s, "/result", "9");
}

typedef struct heard {
    uint64_t n, last;
    bool in_order;
    uint64_t stop_at;
} heard;

static bool on_chunk(uint64_t seq, ew_str chunk, void *ud) {
    heard *h = ud;
    h->in_order = h->in_order && seq > h->last && json_int_or(chunk, "/i", 0) == (int64_t)seq;
    h->last = seq;
    h->n++;
    return h->stop_at == 0 || h->n < h->stop_at;
}

static void test_api_worker__keeps_chunks(void **state) {
    world *w = *state;
    char id[64];
    heard h = {.in_order = true};
    ew_answer *answer = NULL;
    start_worker(w, NULL, &quick);
    /* more than fit at once, from a handler that does not wait for room */
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("count"), .params = EW_STR("{\"n\":700}")}, id);
    ew_err err = ew_jobs_wait(w->jobs, STR(id), WAIT_MS, on_chunk, &h, &answer);
    said s = take(err, answer);
    expect_json(&s, "/result", "700");
    expect_json(&s, "/chunks", "700");
    assert_int_equal(h.n, 700);
    assert_true(h.in_order);
    h = (heard){.in_order = true, .stop_at = 2}; /* it has ended; what it has said is still there */
    err = ew_jobs_wait(w->jobs, STR(id), WAIT_MS, on_chunk, &h, &answer);
    assert_int_equal(take(err, answer).err, EW_ECANCELLED);
    assert_int_equal(h.n, 2);
}

static void test_api_worker__tries_again(void **state) {
    world *w = *state; /* it says itself when: the back-off would be too long for this test */
    start_worker(w, NULL, &(ew_worker_options){.base_retry_ms = 3600000, .no_jitter = true});
    said s = run_job(w, "third", "{}");
    expect_text(&s, "/status", "COMPLETED");
    expect_json(&s, "/result", "3");
    expect_json(&s, "/attempts", "3");
}

static void test_api_worker__gives_up_in_the_end(void **state) {
    world *w = *state;
    char id[64];
    unsigned twice = 2;
    ew_answer *answer = NULL;
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("broken"), .max_retries = &twice}, id);
    said s = wait_for(w->jobs, id);
    expect_text(&s, "/status", "FAILED"); /* an action's own NOT_FOUND is tried again */
    expect_json(&s, "/attempts", "2");
    expect_text(&s, "/error/status", "NOT_FOUND");
    expect_text(&s, "/error/message", "no such \"thing\"");
    expect_json(&s, "/error/details/thing", "1");
    ew_err err = ew_jobs_dlq_stats(w->jobs, EW_STR(""), &answer);
    s = take(err, answer);
    expect_json(&s, "/total", "1");
    expect_json(&s, "/queues/default", "1");
    expect_json(&s, "/functions/broken", "1");
    err = ew_jobs_requeue(w->jobs, EW_STR(""), NULL, EW_STR("elsewhere"), true, &answer);
    s = take(err, answer);
    expect_json(&s, "/requeued", "1");
    err = ew_jobs_requeue(w->jobs, EW_STR(""), NULL, EW_STR("elsewhere"), false, &answer);
    s = take(err, answer);
    expect_json(&s, "/requeued", "1");
    expect_text(&s, "/job_ids/0", id);
    s = show(w->jobs, id);
    expect_text(&s, "/status", "PENDING");
    expect_text(&s, "/queue_name", "elsewhere");
}

static void on_enqueued(ew_err err, ew_answer *answer, void *ud) {
    (void)ew_answer_free(answer);
    atomic_fetch_add((atomic_int *)ud, err == EW_OK);
}

/* More than a page of them. */
static void test_api_worker__many_dead_letters_come_back(void **state) {
    enum { N = 450 };
    world *w = *state;
    atomic_int kept = 0;
    ew_answer *answer = NULL;
    said s = {.err = EW_OK};
    for (int i = 0; i < N; i++)
        assert_int_equal(ew_jobs_enqueue_async(
                             w->jobs, &(ew_job_options){.function = EW_STR("nothing"), .max_retries = &(unsigned){1}},
                             on_enqueued, &kept),
                         EW_OK);
    for (int i = 0; i < 2000 && atomic_load(&kept) < N; i++)
        (void)usleep(5000);
    assert_int_equal(atomic_load(&kept), N);
    start_worker(w, NULL, &(ew_worker_options){.burst = true, .concurrency = 100});
    assert_int_equal(ew_app_wait(w->app), EW_OK);
    ew_err err = ew_jobs_dlq_stats(w->jobs, EW_STR(""), &answer);
    s = take(err, answer);
    expect_json(&s, "/total", "450");
    expect_json(&s, "/errors/no such action: nothing", "450");
    const struct {
        unsigned limit;
        bool dry_run;
        const char *n;
    } cases[] = {{0, true, "450"}, {210, true, "210"}, {230, false, "230"}, {0, false, "220"}, {0, false, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err = ew_jobs_requeue(w->jobs, EW_STR(""), &(ew_jobs_filter){.limit = cases[i].limit}, EW_STR(""),
                              cases[i].dry_run, &answer);
        assert_int_equal(err, EW_OK);
        assert_true(ew_str_eq(ew_json_get(ew_answer_json(answer), "/requeued"), STR(cases[i].n)));
        (void)ew_answer_free(answer);
    }
    err = ew_jobs_queues(w->jobs, false, 0, &answer);
    s = take(err, answer);
    expect_json(&s, "/queues/0/pending", "450");
}

/* It may still be defined; a name that can never be one is final. */
static void test_api_worker__an_unknown_action_uses_up_its_attempts(void **state) {
    world *w = *state;
    char id[64];
    unsigned thrice = 3;
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("nothing"), .max_retries = &thrice}, id);
    said s = wait_for(w->jobs, id);
    expect_text(&s, "/status", "FAILED");
    expect_text(&s, "/last_error", "no such action: nothing");
    expect_text(&s, "/error/status", "NOT_FOUND");
    expect_json(&s, "/attempts", "3");
    s = run_job(w, "echo#", "{}");
    expect_text(&s, "/status", "FAILED");
    expect_json(&s, "/attempts", "1");
}

static void test_api_worker__has_a_time(void **state) {
    world *w = *state;
    char id[64];
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("forever"), .timeout_ms = 50}, id);
    said s = wait_for(w->jobs, id);
    expect_text(&s, "/status", "FAILED"); /* at once, as in RRQ */
    expect_json(&s, "/attempts", "1");
    assert_non_null(strstr(s.json, "timed out"));
    assert_int_equal(atomic_load(&w->cancels), 1);
}

static void test_api_worker__a_timeout_may_be_an_error(void **state) {
    world *w = *state;
    char id[64];
    unsigned twice = 2;
    start_worker(w, NULL, &(ew_worker_options){.base_retry_ms = 5, .retry_timeouts = true});
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("stubborn"), .timeout_ms = 30, .max_retries = &twice},
                 id);
    said s = wait_for(w->jobs, id);
    expect_text(&s, "/status", "FAILED");
    expect_json(&s, "/attempts", "2");
}

static void test_api_worker__cancels_what_runs(void **state) {
    world *w = *state;
    char id[64];
    ew_answer *answer = NULL;
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("forever")}, id);
    (void)becomes(w->jobs, id, "ACTIVE");
    ew_err err = ew_jobs_cancel(w->jobs, STR(id), &answer);
    said s = take(err, answer);
    assert_int_equal(s.err, EW_OK);
    expect_text(&s, "/status", "CANCELLING");
    s = wait_for(w->jobs, id);
    expect_text(&s, "/status", "CANCELLED");
    assert_int_equal(atomic_load(&w->cancels), 1);
}

static void test_api_worker__handlers_know_the_job(void **state) {
    world *w = *state;
    char id[64];
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs,
                 &(ew_job_options){.function = EW_STR("context"),
                                   .id = EW_STR("the id"),
                                   .correlation = EW_STR("{\"who\":\"me\"}"),
                                   .trace = EW_STR("{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-"
                                                   "b7ad6b7169203331-01\"}")},
                 id);
    said s = wait_for(w->jobs, id);
    expect_text(&s, "/result/context/job_id", "the id");
    expect_json(&s, "/result/context/attempt", "1");
    expect_text(&s, "/result/context/queue_name", "default");
    expect_text(&s, "/result/labels/who", "me");
    expect_text(&s, "/result/wire", "jobs");
    expect_text(&s, "/result/trace", "0af7651916cd43dd8448eb211c80319c");
    expect_json(&s, "/result/deadline", "true");
    assert_true(ew_json_get(STR(s.json), "/result/context/worker_id").len > 10);
    assert_true(ew_json_get(STR(s.json), "/result/context/enqueue_time").len > 10);
}

/* ---- the end of an app ---- */

static void test_api_worker__lets_jobs_end(void **state) {
    world *w = *state;
    char id[64];
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("polite"), .params = EW_STR("5")}, id);
    (void)becomes(w->jobs, id, "ACTIVE");
    ew_app_stop(w->app);
    assert_int_equal(ew_app_wait(w->app), EW_OK);
    said s = show(w->jobs, id);
    expect_text(&s, "/status", "COMPLETED");
    expect_json(&s, "/result", "5");
}

static void test_api_worker__hands_jobs_back(void **state) {
    world *w = *state;
    char id[64];
    ew_answer *answer = NULL;
    start_worker(w, &(ew_app_options){.drain_ms = 50}, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("forever")}, id);
    (void)becomes(w->jobs, id, "ACTIVE");
    ew_app_stop(w->app);
    assert_int_equal(ew_app_wait(w->app), EW_OK);
    said s = show(w->jobs, id);
    expect_text(&s, "/status", "PENDING");
    expect_json(&s, "/attempts", "0");
    ew_err err = ew_jobs_workers(w->jobs, &answer);
    s = take(err, answer);
    assert_string_equal(s.json, "{\"workers\":[]}");
}

static void test_api_worker__can_be_freed_while_it_works(void **state) {
    world *w = *state;
    char id[64];
    start_worker(w, NULL, &quick);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("forever")}, id);
    (void)becomes(w->jobs, id, "ACTIVE");
    w->app = ew_app_free(w->app);
    said s = show(w->jobs, id);
    expect_text(&s, "/status", "PENDING");
}

static void test_api_worker__a_burst_ends_by_itself(void **state) {
    world *w = *state;
    char id[3][64];
    for (int i = 0; i < 3; i++)
        must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("echo")}, id[i]);
    start_worker(w, NULL, &(ew_worker_options){.burst = true});
    assert_int_equal(ew_app_wait(w->app), EW_OK);
    for (int i = 0; i < 3; i++) {
        said s = show(w->jobs, id[i]);
        expect_text(&s, "/status", "COMPLETED");
    }
}

/* ---- queues, runners, schedules ---- */

static void test_api_worker__works_on_its_queues_only(void **state) {
    world *w = *state;
    char other[64], mine[64];
    ew_worker_queue queues[] = {{.name = "mine", .concurrency = 1}};
    start_worker(w, NULL, &(ew_worker_options){.queues = queues, .n_queues = 1});
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("echo"), .queue = EW_STR("other")}, other);
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("echo"), .queue = EW_STR("mine")}, mine);
    said s = wait_for(w->jobs, mine);
    expect_text(&s, "/status", "COMPLETED");
    s = show(w->jobs, other);
    expect_text(&s, "/status", "PENDING");
}

/* A program with a port of RRQ's, in this one. */
static ew_app *start_runner(world *w, char target[64]) {
    ew_app *runner = ew_app_new_with("runner", &(ew_app_options){.threads = 1});
    int port = 0;
    assert_non_null(runner);
    add_actions(w, runner);
    assert_int_equal(ew_app_listen(runner, "rrq=127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(runner), EW_OK);
    assert_int_equal(ew_app_listener(runner, 0, NULL, NULL, &port), EW_OK);
    (void)snprintf(target, 64, "rrq://127.0.0.1:%d", port);
    return runner;
}

static void test_api_worker__gives_jobs_to_runners(void **state) {
    world *w = *state;
    char target[64], id[64];
    unsigned twice = 2;
    ew_app *there = start_runner(w, target);
    ew_worker_runner runners[] = {{.name = "there", .target = target, .max_in_flight = 4},
                                  {.name = "away", .target = "rrq://127.0.0.1:1"}};
    ew_worker_queue queues[] = {{.name = "default"}, {.name = "far", .runner = "there"}};
    start_worker(
        w, NULL,
        &(ew_worker_options){.base_retry_ms = 5, .queues = queues, .n_queues = 2, .runners = runners, .n_runners = 2});
    said s = run_job(w, "context", "{}"); /* an action of its own */
    expect_text(&s, "/result/wire", "jobs");
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("there#context"), .id = EW_STR("the id")}, id);
    s = wait_for(w->jobs, id);
    expect_text(&s, "/result/wire", "rrq");
    expect_text(&s, "/result/context/job_id", "the id");
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("context"), .queue = EW_STR("far")}, id);
    s = wait_for(w->jobs, id);
    expect_text(&s, "/result/wire", "rrq");
    s = run_job(w, "there#nothing", "{}"); /* it has no such handler: a dead letter at once */
    expect_text(&s, "/status", "FAILED");
    expect_json(&s, "/attempts", "1");
    s = run_job(w, "nobody#echo", "{}");
    expect_text(&s, "/status", "FAILED");
    expect_json(&s, "/attempts", "1");
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("there#forever"), .timeout_ms = 100}, id);
    s = wait_for(w->jobs, id);
    expect_text(&s, "/status", "FAILED");
    assert_non_null(strstr(s.json, "timed out"));
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("there#broken"), .max_retries = &twice}, id);
    s = wait_for(w->jobs, id);
    expect_json(&s, "/attempts", "2"); /* it has the handler, which fails */
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("away#echo"), .max_retries = &twice}, id);
    s = wait_for(w->jobs, id);
    expect_json(&s, "/attempts", "2");
    assert_non_null(strstr(s.json, "Runner transport error: "));
    (void)ew_app_free(there);
}

static void test_api_worker__refuses_bad_options(void **state) {
    world *w = *state;
    ew_worker_queue no_name[] = {{.name = ""}}, twice[] = {{.name = "a"}, {.name = "rrq:queue:a"}},
                    nobody[] = {{.name = "a", .runner = "nobody"}};
    ew_worker_cron bad_time[] = {{.schedule = "61 * * * *", .function = "f"}},
                   no_zone[] = {{.schedule = "@daily", .zone = "Nowhere/Else", .function = "f"}};
    ew_worker_runner bad_target[] = {{.name = "r", .target = "nonsense"}};
    const struct {
        ew_worker_options options;
        const char *why;
    } cases[] = {
        {{.queues = no_name, .n_queues = 1}, "name"},          {{.queues = twice, .n_queues = 2}, "twice"},
        {{.queues = nobody, .n_queues = 1}, "nobody"},         {{.default_runner = "nobody"}, "nobody"},
        {{.crons = bad_time, .n_crons = 1}, "61 * * * *"},     {{.crons = no_zone, .n_crons = 1}, "zone"},
        {{.runners = bad_target, .n_runners = 1}, "runner r"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew_app *app = ew_app_new("bad");
        assert_int_equal(ew_app_worker(app, NULL), EW_EINVAL); /* it has no jobs */
        assert_int_equal(ew_app_jobs(app, w->place.store, NULL), EW_OK);
        assert_int_not_equal(ew_app_worker(app, &cases[i].options), EW_OK);
        if (!strstr(ew_app_error(app), cases[i].why))
            fail_msg("'%s' does not say '%s'", ew_app_error(app), cases[i].why);
        (void)ew_app_free(app);
    }
}

static void test_api_worker__makes_jobs_of_schedules(void **state) {
    world *w = *state;
    ew_worker_cron crons[] = {{.schedule = "* * * * * *", .function = "echo", .params = "{\"by\":\"cron\"}"}};
    start_worker(w, NULL, &(ew_worker_options){.crons = crons, .n_crons = 1});
    ew_answer *answer = NULL;
    said s = {.err = EW_OK};
    for (int i = 0; i < WAIT_MS / 20; i++) {
        ew_err err = ew_jobs_list(w->jobs, &(ew_jobs_filter){.status = EW_STR("COMPLETED"), .limit = 1}, &answer);
        s = take(err, answer);
        if (ew_json_get(STR(s.json), "/jobs/0").len)
            break;
        (void)usleep(20000);
    }
    expect_text(&s, "/jobs/0/params/by", "cron");
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_api_worker__runs_jobs),
        T(test_api_worker__keeps_chunks),
        T(test_api_worker__tries_again),
        T(test_api_worker__gives_up_in_the_end),
        T(test_api_worker__many_dead_letters_come_back),
        T(test_api_worker__an_unknown_action_uses_up_its_attempts),
        T(test_api_worker__has_a_time),
        T(test_api_worker__a_timeout_may_be_an_error),
        T(test_api_worker__cancels_what_runs),
        T(test_api_worker__handlers_know_the_job),
        T(test_api_worker__lets_jobs_end),
        T(test_api_worker__hands_jobs_back),
        T(test_api_worker__can_be_freed_while_it_works),
        T(test_api_worker__a_burst_ends_by_itself),
        T(test_api_worker__works_on_its_queues_only),
        T(test_api_worker__gives_jobs_to_runners),
        T(test_api_worker__refuses_bad_options),
        T(test_api_worker__makes_jobs_of_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
