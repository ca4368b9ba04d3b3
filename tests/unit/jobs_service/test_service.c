/*
 * tests/unit/jobs_service/test_service.c: a store of jobs as producers and people use it, without a worker: enqueueing, keys, lists,
 * cancelling, replaying, waiting.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_support.h"
#include "support/fail_env.h"
#include "support/json_or.h"
#include <pthread.h>
#include <stdatomic.h>

#define STR(text) ew_str_from(text)

typedef struct world {
    place place;
    ew_jobs *jobs;
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
    (void)ew_jobs_free(w->jobs);
    place_close(&w->place);
    free(w);
    return 0;
}

/* ---- opening ---- */

static void test_api_jobs__refuses_what_is_no_store(void **state) {
    (void)state;
    ew_jobs *jobs = NULL;
    char problem[100] = "";
    assert_int_equal(ew_jobs_open("nonsense", NULL, &jobs, problem, sizeof problem), EW_EINVAL);
    assert_true(problem[0] != '\0');
    assert_int_equal(ew_jobs_open(NULL, NULL, &jobs, NULL, 0), EW_EINVAL);
    assert_null(jobs);
    assert_null(ew_jobs_free(NULL));
    assert_null(ew_answer_free(NULL));
    assert_string_equal(ew_answer_problem(NULL), "");
    assert_int_equal(ew_answer_json(NULL).len, 0);
}

static void test_api_jobs__refuses_bad_mappings(void **state) {
    world *w = *state;
    ew_jobs *jobs = NULL;
    char problem[100] = "";
    ew_jobs_options options = {.correlation_mappings = "[1]"};
    assert_int_equal(ew_jobs_open(w->place.store, &options, &jobs, problem, sizeof problem), EW_EINVAL);
    assert_non_null(strstr(problem, "mappings"));
}

/* ---- enqueueing ---- */

static void test_api_jobs__keeps_what_was_given(void **state) {
    world *w = *state;
    unsigned max_retries = 2;
    uint64_t ttl = 60000;
    ew_job_options options = {.function = EW_STR("greet"),
                              .params = EW_STR("{\"name\":\"A\"}"),
                              .queue = EW_STR("rrq:queue:mail"),
                              .id = EW_STR("job 1"),
                              .delay_ms = 3600000,
                              .max_retries = &max_retries,
                              .timeout_ms = 5000,
                              .result_ttl_ms = &ttl,
                              .trace = EW_STR("{\"traceparent\":\"00-aa-bb-01\"}"),
                              .correlation = EW_STR("{\"who\":\"me\"}")};
    said s = enqueue(w->jobs, &options);
    assert_int_equal(s.err, EW_OK);
    assert_string_equal(s.json, "{\"job_id\":\"job 1\",\"status\":\"enqueued\"}");
    s = show(w->jobs, "job 1");
    assert_int_equal(s.err, EW_OK);
    expect_text(&s, "/id", "job 1");
    expect_text(&s, "/function_name", "greet");
    expect_text(&s, "/queue_name", "mail");
    expect_text(&s, "/status", "PENDING");
    expect_json(&s, "/params", "{\"name\":\"A\"}");
    expect_json(&s, "/max_retries", "2");
    expect_json(&s, "/attempts", "0");
    expect_text(&s, "/trace_context/traceparent", "00-aa-bb-01");
    expect_text(&s, "/correlation_context/who", "me");
}

static void test_api_jobs__has_defaults(void **state) {
    world *w = *state;
    char id[64];
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("x")}, id);
    assert_int_equal(strlen(id), 36);
    said s = show(w->jobs, id);
    expect_text(&s, "/queue_name", "default");
    expect_json(&s, "/params", "{}");
    expect_json(&s, "/max_retries", "5");
    assert_true(json_double_or(STR(s.json), "/timeout_seconds", 0) == 300);
    assert_true(json_double_or(STR(s.json), "/result_ttl_seconds", 0) == 86400);
}

static void expect_refused(ew_jobs *jobs, const ew_job_options *options, const char *why) {
    said s = enqueue(jobs, options);
    assert_int_equal(s.err, EW_EINVAL);
    if (!strstr(s.problem, why))
        fail_msg("'%s' does not say '%s'", s.problem, why);
}

static void test_api_jobs__refuses_nonsense(void **state) {
    world *w = *state;
    ew_str f = EW_STR("f"), k = EW_STR("k");
    expect_refused(w->jobs, &(ew_job_options){.function = EW_STR("  ")}, "empty");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .params = EW_STR("{")}, "");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .unique_key = k, .debounce_key = k, .debounce_ms = 1},
                   "not two");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .rate_limit_key = k}, "window");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .debounce_key = k}, "window");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .unique_key = EW_STR("  ")}, "blank");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .trace = EW_STR("{\"a\":1}")}, "trace");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .correlation = EW_STR("7")}, "correlation");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .run_at_ms = -5}, "1970");
    expect_refused(w->jobs, &(ew_job_options){.function = f, .delay_ms = UINT64_MAX}, "ten years");
    assert_int_equal(ew_jobs_enqueue(w->jobs, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_jobs_enqueue(NULL, &(ew_job_options){.function = f}, NULL), EW_EINVAL);
}

static void test_api_jobs__an_id_is_used_once(void **state) {
    world *w = *state;
    ew_job_options options = {.function = EW_STR("f"), .id = EW_STR("one")};
    assert_int_equal(enqueue(w->jobs, &options).err, EW_OK);
    said s = enqueue(w->jobs, &options);
    assert_int_equal(s.err, EW_EEXISTS);
    assert_non_null(strstr(s.problem, "already"));
}

static void test_api_jobs__keys_guard(void **state) {
    world *w = *state;
    char first[64], second[64];
    ew_job_options unique = {.function = EW_STR("f"), .unique_key = EW_STR("u")};
    must_enqueue(w->jobs, &unique, first);
    said s = enqueue(w->jobs, &unique);
    expect_text(&s, "/status", "existing");
    expect_text(&s, "/job_id", first);

    ew_job_options rate = {.function = EW_STR("f"), .rate_limit_key = EW_STR("r"), .rate_limit_ms = 600000};
    must_enqueue(w->jobs, &rate, second);
    s = enqueue(w->jobs, &rate);
    assert_int_equal(s.err, EW_OK);
    assert_string_equal(s.json, "{\"job_id\":null,\"status\":\"rate_limited\"}");

    ew_job_options debounce = {.function = EW_STR("f"), .debounce_key = EW_STR("d"), .debounce_ms = 600000};
    must_enqueue(w->jobs, &debounce, first);
    debounce.params = EW_STR("{\"n\":2}");
    s = enqueue(w->jobs, &debounce);
    expect_text(&s, "/status", "debounced");
    expect_text(&s, "/job_id", first);
    s = show(w->jobs, first);
    expect_json(&s, "/params", "{\"n\":2}");
}

static void test_api_jobs__labels_come_from_params(void **state) {
    world *w = *state;
    char id[64], value[400];
    ew_jobs *jobs =
        open_jobs(&w->place, &(ew_jobs_options){.correlation_mappings =
                                                    "{\" customer \":\"params.customer.id\",\"ok\":\"ok\",\"n\":\"n\","
                                                    "\"none\":\"a.b\",\"list\":\"list\",\"traced\":\"n\",\"long\":"
                                                    "\"long\"}"});
    memset(value, 'x', 255);
    (void)snprintf(value + 255, sizeof value - 255, "\xc3\xa4zzz"); /* the cut would halve a character */
    char params[700];
    (void)snprintf(params, sizeof params,
                   "{\"customer\":{\"id\":\"c\\u00e4\"},\"ok\":true,\"n\":1.50,\"list\":[1],\"long\":\"%s\"}", value);
    must_enqueue(
        jobs,
        &(ew_job_options){.function = EW_STR("f"), .params = STR(params), .trace = EW_STR("{\"traced\":\"by trace\"}")},
        id);
    said s = show(jobs, id);
    expect_text(&s, "/correlation_context/customer", "c\xc3\xa4");
    expect_text(&s, "/correlation_context/ok", "true");
    expect_text(&s, "/correlation_context/n", "1.50");
    expect_text(&s, "/correlation_context/traced", "by trace");
    expect_json(&s, "/correlation_context/none", "");
    expect_json(&s, "/correlation_context/list", "");
    value[255] = '\0';
    expect_text(&s, "/correlation_context/long", value);
    (void)ew_jobs_free(jobs);
}

typedef struct told {
    atomic_int n;
    ew_err err;
    char json[200];
} told;

static void on_enqueued(ew_err err, ew_answer *answer, void *ud) {
    told *t = ud;
    ew_str json = ew_answer_json(answer);
    t->err = err;
    (void)snprintf(t->json, sizeof t->json, "%.*s", (int)json.len, json.ptr ? json.ptr : "");
    (void)ew_answer_free(answer);
    atomic_fetch_add(&t->n, 1);
}

static void test_api_jobs__enqueues_without_waiting(void **state) {
    world *w = *state;
    told t = {.n = 0};
    ew_job_options options = {.function = EW_STR("f"), .id = EW_STR("later")};
    assert_int_equal(ew_jobs_enqueue_async(w->jobs, &(ew_job_options){.function = EW_STR("")}, on_enqueued, &t),
                     EW_EINVAL);
    assert_int_equal(ew_jobs_enqueue_async(w->jobs, &options, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_jobs_enqueue_async(w->jobs, &options, on_enqueued, &t), EW_OK);
    for (int i = 0; i < WAIT_MS && atomic_load(&t.n) == 0; i++)
        (void)usleep(1000);
    assert_int_equal(atomic_load(&t.n), 1);
    assert_int_equal(t.err, EW_OK);
    assert_string_equal(t.json, "{\"job_id\":\"later\",\"status\":\"enqueued\"}");
}

/* ---- looking ---- */

static void test_api_jobs__lists(void **state) {
    world *w = *state;
    char id[64];
    for (int i = 0; i < 5; i++)
        must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f"), .queue = i < 3 ? EW_STR("a") : EW_STR("b")},
                     id);
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_list(w->jobs, NULL, &answer);
    said s = take(err, answer);
    expect_json(&s, "/total", "5");
    err = ew_jobs_list(w->jobs, &(ew_jobs_filter){.queue = EW_STR("a"), .limit = 2}, &answer);
    s = take(err, answer);
    assert_true(ew_json_get(STR(s.json), "/jobs/1").len > 0);
    expect_json(&s, "/jobs/2", "");
    err = ew_jobs_list(w->jobs, &(ew_jobs_filter){.queue = EW_STR("b"), .waiting = true}, &answer);
    s = take(err, answer);
    expect_json(&s, "/total", "2");
    err = ew_jobs_list(w->jobs, &(ew_jobs_filter){.status = EW_STR("COMPLETED")}, &answer);
    s = take(err, answer);
    expect_json(&s, "/jobs", "[]");
    err = ew_jobs_list(w->jobs, &(ew_jobs_filter){.status = EW_STR("DONE")}, &answer);
    s = take(err, answer);
    assert_int_equal(s.err, EW_EINVAL);
    assert_non_null(strstr(s.problem, "PENDING"));
    err = ew_jobs_list(w->jobs, &(ew_jobs_filter){.waiting = true}, &answer);
    s = take(err, answer);
    assert_int_equal(s.err, EW_EINVAL);
}

static void test_api_jobs__queues_and_pause(void **state) {
    world *w = *state;
    char id[64];
    ew_answer *answer = NULL;
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f"), .queue = EW_STR("a")}, id);
    ew_err err = ew_jobs_pause(w->jobs, EW_STR("rrq:queue:a"), true, &answer);
    said s = take(err, answer);
    assert_string_equal(s.json, "{\"queue\":\"a\",\"paused\":true}");
    err = ew_jobs_queues(w->jobs, true, 0, &answer);
    s = take(err, answer);
    expect_text(&s, "/queues/0/name", "a");
    expect_json(&s, "/queues/0/pending", "1");
    expect_json(&s, "/queues/0/paused", "true");
    expect_json(&s, "/queues/0/completed", "0");
    err = ew_jobs_pause(w->jobs, EW_STR(" "), true, &answer);
    s = take(err, answer);
    assert_int_equal(s.err, EW_EINVAL);
    err = ew_jobs_workers(w->jobs, &answer);
    s = take(err, answer);
    assert_string_equal(s.json, "{\"workers\":[]}");
}

static void test_api_jobs__cancels_what_waits(void **state) {
    world *w = *state;
    char id[64];
    ew_answer *answer = NULL;
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f"), .id = EW_STR("c")}, id);
    ew_err err = ew_jobs_cancel(w->jobs, EW_STR("c"), &answer);
    said s = take(err, answer);
    assert_int_equal(s.err, EW_OK);
    assert_string_equal(s.json, "{\"job_id\":\"c\",\"status\":\"CANCELLED\"}");
    err = ew_jobs_cancel(w->jobs, EW_STR("c"), &answer);
    s = take(err, answer);
    assert_int_equal(s.err, EW_ESTALE);
    expect_text(&s, "/status", "CANCELLED");
    err = ew_jobs_cancel(w->jobs, EW_STR("nobody"), &answer);
    s = take(err, answer);
    assert_int_equal(s.err, EW_ENOTFOUND);
    assert_int_equal(show(w->jobs, "nobody").err, EW_ENOTFOUND);
}

static void test_api_jobs__replays_and_tells_a_story(void **state) {
    world *w = *state;
    char id[64];
    ew_answer *answer = NULL;
    unsigned max_retries = 9;
    must_enqueue(w->jobs,
                 &(ew_job_options){.function = EW_STR("f"), .params = EW_STR("[1]"), .max_retries = &max_retries}, id);
    ew_err err = ew_jobs_replay(w->jobs, STR(id), EW_STR("again"), &answer);
    said s = take(err, answer);
    assert_int_equal(s.err, EW_OK);
    expect_text(&s, "/replayed", id);
    ew_str other = json_str_or(STR(s.json), "/job_id", EW_STR(""));
    char new_id[64];
    (void)snprintf(new_id, sizeof new_id, "%.*s", (int)other.len, other.ptr);
    assert_string_not_equal(new_id, id);
    said copy = show(w->jobs, new_id);
    expect_json(&copy, "/params", "[1]");
    expect_json(&copy, "/max_retries", "9");
    expect_text(&copy, "/queue_name", "again");
    err = ew_jobs_trace(w->jobs, STR(id), &answer);
    s = take(err, answer);
    expect_text(&s, "/events/0/event", "enqueued");
    expect_json(&s, "/events/0/after_ms", "0");
    expect_text(&s, "/status", "PENDING");
    err = ew_jobs_replay(w->jobs, EW_STR("nobody"), EW_STR(""), &answer);
    assert_int_equal(take(err, answer).err, EW_ENOTFOUND);
}

static void test_api_jobs__dead_letters_of_none(void **state) {
    world *w = *state;
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_dlq_stats(w->jobs, EW_STR(""), &answer);
    said s = take(err, answer);
    expect_json(&s, "/total", "0");
    expect_json(&s, "/oldest", "null");
    err = ew_jobs_requeue(w->jobs, EW_STR(""), NULL, EW_STR(""), false, &answer);
    s = take(err, answer);
    expect_json(&s, "/requeued", "0");
    char id[64];
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f")}, id);
    err = ew_jobs_requeue(w->jobs, STR(id), NULL, EW_STR(""), false, &answer);
    assert_int_equal(take(err, answer).err, EW_ESTALE);
}

/* ---- waiting ---- */

static void test_api_jobs__waiting_has_an_end(void **state) {
    world *w = *state;
    char id[64];
    ew_answer *answer = NULL;
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f")}, id);
    ew_err err = ew_jobs_wait(w->jobs, STR(id), 30, NULL, NULL, &answer);
    said s = take(err, answer);
    assert_int_equal(s.err, EW_ETIMEOUT);
    expect_text(&s, "/status", "PENDING");
    err = ew_jobs_wait(w->jobs, EW_STR("nobody"), 30, NULL, NULL, &answer);
    assert_int_equal(take(err, answer).err, EW_ENOTFOUND);
}

static void *interrupt_soon(void *arg) {
    (void)usleep(20000);
    ew_jobs_interrupt(arg);
    return NULL;
}

static void test_api_jobs__waiting_can_be_interrupted(void **state) {
    world *w = *state;
    char id[64];
    pthread_t thread;
    ew_answer *answer = NULL;
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f")}, id);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, w->jobs), 0);
    ew_err err = ew_jobs_wait(w->jobs, STR(id), 0, NULL, NULL, &answer);
    assert_int_equal(take(err, answer).err, EW_ECANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    err = ew_jobs_wait(w->jobs, STR(id), 0, NULL, NULL, &answer);
    assert_int_equal(take(err, answer).err, EW_ECANCELLED);
}

static void *cancel_soon(void *arg) {
    (void)usleep(20000);
    (void)ew_jobs_cancel(arg, EW_STR("w"), NULL);
    return NULL;
}

static void test_api_jobs__waiting_sees_the_end(void **state) {
    world *w = *state;
    char id[64];
    pthread_t thread;
    must_enqueue(w->jobs, &(ew_job_options){.function = EW_STR("f"), .id = EW_STR("w")}, id);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, w->jobs), 0);
    said s = wait_for(w->jobs, "w");
    assert_int_equal(s.err, EW_OK);
    expect_text(&s, "/status", "CANCELLED");
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- memory ---- */

static void ask_everything(ew_jobs *jobs) {
    ew_answer *answer = NULL;
    ew_job_options options = {.function = EW_STR("f"), .params = EW_STR("{\"n\":\"\\u00e4\"}"), .id = EW_STR("m")};
    const ew_err errs[] = {
        ew_jobs_enqueue(jobs, &options, NULL),
        ew_jobs_enqueue(jobs, &(ew_job_options){.function = EW_STR("f"), .unique_key = EW_STR("u")}, NULL),
        ew_jobs_show(jobs, EW_STR("m"), NULL),
        ew_jobs_list(jobs, NULL, &answer),
        ew_jobs_trace(jobs, EW_STR("m"), NULL),
        ew_jobs_replay(jobs, EW_STR("m"), EW_STR("q"), NULL),
        ew_jobs_queues(jobs, true, 0, NULL),
        ew_jobs_pause(jobs, EW_STR("q"), false, NULL),
        ew_jobs_workers(jobs, NULL),
        ew_jobs_cancel(jobs, EW_STR("m"), NULL),
        ew_jobs_dlq_stats(jobs, EW_STR(""), NULL),
        ew_jobs_requeue(jobs, EW_STR(""), NULL, EW_STR(""), false, NULL),
        ew_jobs_requeue(jobs, EW_STR("m"), NULL, EW_STR(""), true, NULL),
    };
    (void)ew_answer_free(answer);
    for (size_t i = 0; i < sizeof errs / sizeof *errs; i++) /* one that failed makes others fail: it is not there */
        assert_true(errs[i] == EW_OK || errs[i] == EW_ENOMEM || errs[i] == EW_ENOTFOUND || errs[i] == EW_EIO ||
                    errs[i] == EW_ESTALE);
}

/* Every allocation of ours may fail, once. */
static void test_api_jobs__survives_failing_allocations(void **state) {
    (void)state;
    for (uint64_t n = 1, failed = 1; failed > 0; n++) {
        place p;
        ew__test_env t;
        ew_jobs *jobs = NULL;
        place_open(&p);
        ew__test_env_init(&t, n);
        ew__test_env_fail_at(&t, n, false);
        ew_jobs_options options = {.env = &t.env, .correlation_mappings = "{\"n\":\"n\"}"};
        ew_err err = ew_jobs_open(p.store, &options, &jobs, NULL, 0);
        if (err == EW_OK)
            ask_everything(jobs);
        (void)ew_jobs_free(jobs);
        failed = ew__test_env_failed(&t);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        place_close(&p);
        assert_true(n < 5000);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_jobs__refuses_what_is_no_store),
        T(test_api_jobs__refuses_bad_mappings),
        T(test_api_jobs__keeps_what_was_given),
        T(test_api_jobs__has_defaults),
        T(test_api_jobs__refuses_nonsense),
        T(test_api_jobs__an_id_is_used_once),
        T(test_api_jobs__keys_guard),
        T(test_api_jobs__labels_come_from_params),
        T(test_api_jobs__enqueues_without_waiting),
        T(test_api_jobs__lists),
        T(test_api_jobs__queues_and_pause),
        T(test_api_jobs__cancels_what_waits),
        T(test_api_jobs__replays_and_tells_a_story),
        T(test_api_jobs__dead_letters_of_none),
        T(test_api_jobs__waiting_has_an_end),
        T(test_api_jobs__waiting_can_be_interrupted),
        T(test_api_jobs__waiting_sees_the_end),
        cmocka_unit_test(test_api_jobs__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
