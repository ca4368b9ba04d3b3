/*
 * tests/unit/compat_rrq_producer/test_producer_jobs.c: librrq_producer.so: what became of jobs, many threads, what the real clients say.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/compat_rrq_producer/rig.h"
#include "support/json_or.h"

/* ---- what became of it ---- */

static void expect_status(void *handle, const char *id, const char *wanted) {
    char request[128], *error = NULL;
    snprintf(request, sizeof request, "{\"job_id\":\"%s\"}", id);
    const char *got = taken(lib.get_job_status(handle, request, &error));
    if (got == NULL)
        fail_msg("%s: %s", id, taken(error));
    assert_string_equal(got, wanted);
}

static void test_producer_jobs__status(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    char *error = NULL, id[64];
    expect_status(handle, "none", "{\"found\":false,\"job\":null}");
    snprintf(id, sizeof id, "%s", enqueue(handle, "{\"function_name\":\"f\"}"));
    expect_status(handle, id, "{\"found\":true,\"job\":{\"status\":\"PENDING\",\"result\":null,\"last_error\":null}}");
    freeReplyObject(redisCommand(server.context, "HSET rrq:job:%s status COMPLETED result %s last_error %s", id,
                                 "{\"b\":1,\"a\":[12345678901234567890123,2.0]}", "old \"one\""));
    expect_status(
        handle, id,
        "{\"found\":true,\"job\":{\"status\":\"COMPLETED\",\"result\":{\"b\":1,\"a\":[12345678901234567890123,2.0]},"
        "\"last_error\":\"old \\\"one\\\"\"}}");
    ask("HSET rrq:job:%s status CANCELLED result null", id);
    expect_status(
        handle, id,
        "{\"found\":true,\"job\":{\"status\":\"UNKNOWN\",\"result\":null,\"last_error\":\"old \\\"one\\\"\"}}");
    assert_null(lib.get_job_status(handle, NULL, &error));
    expect_text(taken(error), "received null pointer");
    assert_null(lib.get_job_status(handle, "{}", &error));
    expect_words(taken(error), "invalid job status request: missing field `job_id`");
    assert_null(lib.get_job_status(handle, "{\"job_id\":3}", &error));
    expect_words(taken(error), "invalid job status request: invalid type: number `3`, expected a string");
    lib.free(handle);
}

static void test_producer_jobs__bad_wait(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    static const char *const cases[][2] = {
        {"{}", "invalid wait for completion request: missing field `job_id`"},
        {"{\"job_id\":\"a\"}", "invalid wait for completion request: missing field `timeout_seconds`"},
        {"{\"job_id\":\"a\",\"timeout_seconds\":null}",
         "invalid wait for completion request: invalid type: null, expected f64"},
        {"{\"job_id\":\"a\",\"timeout_seconds\":\"x\"}",
         "invalid wait for completion request: invalid type: string, expected f64"},
        {"{\"job_id\":\"a\",\"timeout_seconds\":0}", "timeout_seconds must be positive"},
        {"{\"job_id\":\"a\",\"timeout_seconds\":1e300}", "timeout_seconds is too large"},
        {"{\"job_id\":\"a\",\"timeout_seconds\":1,\"block_interval_seconds\":-1}",
         "block_interval_seconds must be positive"},
        {"{\"job_id\":\"a\",\"timeout_seconds\":1,\"block_interval_seconds\":1e300}",
         "block_interval_seconds is too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *error = NULL;
        assert_null(lib.wait_for_completion(handle, cases[i][0], &error));
        expect_words(taken(error), cases[i][1]);
    }
    lib.free(handle);
}

typedef struct waiter {
    void *handle;
    char request[128];
    char answer[256];
} waiter;

static void *wait_thread(void *arg) {
    waiter *self = arg;
    char *error = NULL, *answer = lib.wait_for_completion(self->handle, self->request, &error);
    snprintf(self->answer, sizeof self->answer, "%s", answer != NULL ? answer : error);
    lib.string_free(answer);
    lib.string_free(error);
    return NULL;
}

static void test_producer_jobs__wait(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    char *error = NULL;
    expect_text(taken(lib.wait_for_completion(handle, "{\"job_id\":\"none\",\"timeout_seconds\":0.2}", &error)),
                "{\"completed\":false,\"job\":null}");
    const char *id = enqueue(handle, "{\"function_name\":\"f\",\"options\":{\"job_id\":\"a\"}}");
    expect_text(taken(lib.wait_for_completion(
                    handle, "{\"job_id\":\"a\",\"timeout_seconds\":0.2,\"block_interval_seconds\":0}", &error)),
                "{\"completed\":false,\"job\":null}");
    waiter waiters[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        waiters[i].handle = handle;
        snprintf(waiters[i].request, sizeof waiters[i].request,
                 "{\"job_id\":\"%s\",\"timeout_seconds\":50,\"block_interval_seconds\":0.25}", i < 2 ? id : "later");
        assert_int_equal(pthread_create(&threads[i], NULL, wait_thread, &waiters[i]), 0);
    }
    usleep(200000);
    /* as RRQ's worker ends a job */
    ask("HSET rrq:job:a status COMPLETED result 7");
    ask("XADD rrq:events:job:a * event completed job_id a status COMPLETED");
    enqueue(handle, "{\"function_name\":\"f\",\"options\":{\"job_id\":\"later\"}}");
    ask("HSET rrq:job:later status FAILED last_error why");
    ask("XADD rrq:events:job:later * event failed job_id later status FAILED");
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_string_equal(waiters[i].answer,
                            "{\"completed\":true,\"job\":{\"status\":\"COMPLETED\",\"result\":7,\"last_error\":null}}");
    expect_words(taken(lib.wait_for_completion(handle, "{\"job_id\":\"a\",\"timeout_seconds\":1e11}", &error)),
                 "{\"completed\":true,");
    assert_string_equal(waiters[2].answer,
                        "{\"completed\":true,\"job\":{\"status\":\"FAILED\",\"result\":null,\"last_error\":\"why\"}}");
    lib.free(handle);
}

/* ---- many at once ---- */

enum { THREADS = 8, JOBS = 100 };

static void *enqueue_thread(void *arg) {
    intptr_t failed = 0;
    for (int i = 0; i < JOBS; i++) {
        char *error = NULL;
        char *answer = lib.enqueue(arg,
                                   i % 10 == 9 ? "{\"function_name\":\"f\",\"options\":{\"unique_key\":\"one\"}}"
                                               : "{\"function_name\":\"f\",\"params\":{\"i\":1}}",
                                   &error);
        failed += answer == NULL;
        lib.string_free(answer);
        lib.string_free(error);
        if (i % 10 == 0) {
            answer = lib.get_job_status(arg, "{\"job_id\":\"none\"}", &error);
            failed += answer == NULL;
            lib.string_free(answer);
            lib.string_free(error);
        }
    }
    return (void *)failed;
}

static void test_producer_jobs__threads(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_thread, handle), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%d", THREADS * JOBS * 9 / 10 + 1);
    expect_text(ask("ZCARD rrq:queue:default"), wanted);
    lib.free(handle);
}

/* ---- what the real clients say ---- */

/* The calls that RRQ's clients in Python and TypeScript make, as they were recorded. */
static void replay(ew_str row, void **handle) {
    char json[4096], *error = NULL, *answer = NULL;
    ew_str body = ew_json_get(row, "/json"), call = json_str_or(row, "/call", EW_STR(""));
    assert_true(body.len > 0 && body.len < sizeof json);
    snprintf(json, sizeof json, "%.*s", (int)body.len, body.ptr);
    if (ew_str_eq(call, EW_STR("rrq_producer_new"))) {
        char *at = strstr(json, "redis://localhost:6379/0"), config[4096];
        assert_non_null(at);
        snprintf(config, sizeof config, "%.*s%s%s", (int)(at - json), json, server.dsn,
                 at + strlen("redis://localhost:6379/0"));
        lib.free(*handle);
        *handle = lib.new(config, &error);
        assert_non_null(*handle);
        return;
    }
    if (ew_str_eq(call, EW_STR("rrq_producer_enqueue"))) {
        answer = lib.enqueue(*handle, json, &error);
    } else if (ew_str_eq(call, EW_STR("rrq_producer_get_job_status"))) {
        answer = lib.get_job_status(*handle, json, &error);
    } else {
        assert_true(ew_str_eq(call, EW_STR("rrq_producer_wait_for_completion")));
        ask("HSET rrq:job:x id x function_name f status COMPLETED result 1 enqueue_time 2026-01-01T00:00:00+00:00");
        answer = lib.wait_for_completion(*handle, json, &error);
        ask("DEL rrq:job:x");
    }
    if (answer == NULL)
        fail_msg("%s: %s", json, error);
    lib.string_free(answer);
}

static const char *const recorded[] = {
    ("{\"call\":\"rrq_producer_new\",\"json\":{\"redis_dsn\":\"redis://localhost:6379/"
     "0\",\"queue_name\":\"rrq:queue:q\","
     "\"max_retries\":null,\"job_timeout_seconds\":null,\"result_ttl_seconds\":null,\"idempotency_ttl_seconds\":null,"
     "\"correlation_mappings\":{}}}"),
    ("{\"call\":\"rrq_producer_enqueue\",\"json\":{\"mode\":null,\"function_name\":\"f\",\"params\":{\"a\":1},"
     "\"options\":{"
     "\"queue_name\":null,\"job_id\":null,\"unique_key\":\"u\",\"unique_ttl_seconds\":null,\"max_retries\":null,"
     "\"job_timeout_seconds\":null,\"result_ttl_seconds\":null,\"trace_context\":null,\"defer_by_seconds\":null,"
     "\"defer_until\":\"2030-01-01T00:00:00Z\",\"enqueue_time\":null,\"rate_limit_key\":null,\"rate_limit_seconds\":"
     "null,"
     "\"debounce_key\":null,\"debounce_seconds\":null}}}"),
    ("{\"call\":\"rrq_producer_enqueue\",\"json\":{\"function_name\":\"f\",\"params\":{\"a\":1},\"options\":{\"unique_"
     "key\":\"u\","
     "\"defer_by_seconds\":5}}}"),
    ("{\"call\":\"rrq_producer_enqueue\",\"json\":{\"function_name\":\"f\",\"params\":{},\"options\":{\"debounce_key\":"
     "\"k\","
     "\"debounce_seconds\":1.5}}}"),
    ("{\"call\":\"rrq_producer_wait_for_completion\",\"json\":{\"job_id\":\"x\",\"timeout_seconds\":30.0,"
     "\"block_interval_seconds\":0.25}}"),
};

static void test_producer_jobs__recorded(void **state) {
    (void)state;
    need_redis();
    void *handle = NULL;
    char path[512], line[8192];
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
        replay(ew_str_from(recorded[i]), &handle);
    expect_text(ask("ZCARD rrq:queue:q"), "2"); /* one of three was known */
    snprintf(path, sizeof path, "%s/captures/rrq/ffi_calls.jsonl", EW_SHARED);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        print_message("SKIP: captures not present\n");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        replay(ew_str_from(line), &handle);
    if (file != NULL)
        fclose(file);
    lib.free(handle);
}

#define TEST(name) cmocka_unit_test(test_producer_jobs__##name)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(status), TEST(bad_wait), TEST(wait), TEST(threads), TEST(recorded),
    };
    return cmocka_run_group_tests_name("producer_jobs", tests, group_setup, group_teardown);
}
