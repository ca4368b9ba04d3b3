/*
 * tests/unit/compat_rrq_producer/test_producer.c: librrq_producer.so: configuration and enqueue.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/compat_rrq_producer/rig.h"
#include "support/json_or.h"

/* ---- without a server ---- */

static void test_producer__constants(void **state) {
    (void)state;
    char *error = NULL;
    expect_text(taken(lib.version()), "0.11.1");
    expect_text(taken(lib.constants(&error)), "{\"job_key_prefix\":\"rrq:job:\",\"queue_key_prefix\":\"rrq:queue:\","
                                              "\"idempotency_key_prefix\":\"rrq:idempotency:\"}");
    assert_null(error);
    expect_text(taken(lib.constants(NULL)), "{\"job_key_prefix\":\"rrq:job:\",\"queue_key_prefix\":\"rrq:queue:\","
                                            "\"idempotency_key_prefix\":\"rrq:idempotency:\"}");
    lib.string_free(NULL);
    lib.free(NULL);
}

static void test_producer__exports_nothing_else(void **state) {
    (void)state;
    static const char *const inner[] = {"ew_version", "ew_jobs_open", "ew__alloc", "ew_json_check", "ew_app_new"};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        assert_null(dlsym(lib.object, inner[i]));
}

static void test_producer__null(void **state) {
    (void)state;
    char *error = NULL;
    refused(NULL, "received null pointer");
    assert_null(lib.enqueue(NULL, "{}", &error));
    expect_text(taken(error), "producer handle is null");
    assert_null(lib.get_job_status(NULL, "{}", &error));
    expect_text(taken(error), "producer handle is null");
    assert_null(lib.wait_for_completion(NULL, NULL, &error));
    expect_text(taken(error), "producer handle is null");
    assert_null(lib.enqueue(NULL, NULL, NULL));
}

static void test_producer__bad_config(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "invalid producer config: "},
        {"{", "invalid producer config: "},
        {"[]", "invalid producer config: invalid type: sequence"},
        {"null", "invalid producer config: invalid type: null"},
        {"3", "invalid producer config: invalid type: number `3`"},
        {"{}", "invalid producer config: missing field `redis_dsn`"},
        {"{\"redis_dsn\":3}", "invalid producer config: invalid type: number `3`, expected a string"},
        {"{\"redis_dsn\":null}", "invalid producer config: invalid type: null, expected a string"},
        {"{\"redis_dsn\":\"a\",\"redis_dsn\":\"b\"}", "invalid producer config: duplicate field `redis_dsn`"},
        {"{\"redis_dsn\":\"a\",\"redis\\u005fdsn\":\"b\"}", "invalid producer config: duplicate field `redis_dsn`"},
        {"{\"redis_dsn\":\"\xff\"}", "invalid utf-8 sequence from index 14"},
        {"{\"redis_dsn\":\"\\ud800\"}", "invalid producer config: "},
        {"{\"redis_dsn\":\"a\"} x", "invalid producer config: "},
        {"{\"redis_dsn\":\"a\",\"queue_name\":3}",
         "invalid producer config: invalid type: number `3`, expected a string"},
        {"{\"redis_dsn\":\"a\",\"max_retries\":1.5}",
         "invalid producer config: invalid type: number `1.5`, expected i64"},
        {"{\"redis_dsn\":\"a\",\"job_timeout_seconds\":\"x\"}",
         "invalid producer config: invalid type: string, expected i64"},
        {"{\"redis_dsn\":\"a\",\"job_timeout_seconds\":9223372036854775808}",
         "invalid producer config: invalid type: number"},
        {"{\"redis_dsn\":\"a\",\"correlation_mappings\":[]}",
         "invalid producer config: invalid type: sequence, expected a map"},
        {"{\"redis_dsn\":\"a\",\"correlation_mappings\":{\"a\":1}}", "invalid producer config: "},
        {"{\"redis_dsn\":\"\"}", "failed to create Redis client"},
        {"{\"redis_dsn\":\"foo\"}", "failed to create Redis client"},
        {"{\"redis_dsn\":\"http://127.0.0.1\"}", "failed to create Redis client"},
        {"{\"redis_dsn\":\"redis://127.0.0.1:1/0\"}", "failed to connect to Redis"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i][0], cases[i][1]);
}

/* ---- enqueue ---- */

static void test_producer__hash(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("\"max_retries\":null,\"unknown\":[1]");
    const char *id = enqueue(handle, "{\"function_name\":\"f\",\"params\":{\"a\":1},\"more\":1,\"options\":{\"x\":1}}");
    assert_int_equal(strlen(id), 36);
    static const char *const fields[][2] = {
        {"function_name", "f"},
        {"job_params", "{\"a\":1}"},
        {"status", "PENDING"},
        {"current_retries", "0"},
        {"max_retries", "5"},
        {"job_timeout_seconds", "300"},
        {"result_ttl_seconds", "86400"},
        {"queue_name", "rrq:queue:default"},
        {"result", "null"},
        {"trace_context", ""},
        {"correlation_context", ""},
        {"job_unique_key", ""},
    };
    expect_text(field(id, "id"), id);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        expect_text(field(id, fields[i][0]), fields[i][1]);
    expect_words(field(id, "enqueue_time") + 10, "T");
    expect_text(field(id, "next_scheduled_run_time"), field(id, "enqueue_time"));
    assert_true(strlen(ask("ZSCORE rrq:queue:default %s", id)) >= 13);
    lib.free(handle);
}

static void test_producer__config_counts(void **state) {
    (void)state;
    need_redis();
    void *handle =
        open_with("\"queue_name\":\"q\",\"max_retries\":7,\"job_timeout_seconds\":11,\"result_ttl_seconds\":12,"
                  "\"idempotency_ttl_seconds\":1300,\"correlation_mappings\":{\"session\":\"params.s\",\"n\":\"a.b\"}");
    const char *id =
        enqueue(handle, "{\"function_name\":\"f\",\"params\":{\"s\":\"s1\",\"a\":{\"b\":12345678901234567890}},"
                        "\"options\":{\"unique_key\":\"u\"}}");
    expect_text(field(id, "queue_name"), "rrq:queue:q");
    expect_text(field(id, "max_retries"), "7");
    expect_text(field(id, "job_timeout_seconds"), "11");
    expect_text(field(id, "result_ttl_seconds"), "12");
    ew_str labels = ew_str_from(field(id, "correlation_context"));
    assert_true(ew_str_eq(json_str_or(labels, "/session", EW_STR("")), EW_STR("s1")));
    assert_true(ew_str_eq(json_str_or(labels, "/n", EW_STR("")), EW_STR("12345678901234567890")));
    assert_in_range(strtol(ask("TTL rrq:idempotency:u"), NULL, 10), 1290, 1300);
    lib.free(handle);
}

static void test_producer__options(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    const char *id =
        enqueue(handle, "{\"function_name\":\"rust#f\",\"options\":{\"queue_name\":\"rrq:queue:x\",\"job_id\":\"mine\","
                        "\"max_retries\":0,\"job_timeout_seconds\":2,\"result_ttl_seconds\":0,"
                        "\"trace_context\":{\"traceparent\":\"00-1\",\"b\":\"2\"}}}");
    expect_text(id, "mine");
    expect_text(field("mine", "function_name"), "rust#f");
    expect_text(field("mine", "queue_name"), "rrq:queue:x");
    expect_text(field("mine", "max_retries"), "0");
    expect_text(field("mine", "job_timeout_seconds"), "2");
    expect_text(field("mine", "result_ttl_seconds"), "0");
    expect_text(field("mine", "trace_context"), "{\"traceparent\":\"00-1\",\"b\":\"2\"}");
    assert_true(strlen(ask("ZSCORE rrq:queue:x mine")) >= 13);
    id = enqueue(handle,
                 "{\"function_name\":\"f\",\"options\":{\"queue_name\":\"x\",\"trace_context\":{}},\"params\":null}");
    expect_text(field(id, "queue_name"), "rrq:queue:x");
    expect_text(field(id, "trace_context"), "");
    expect_text(field(id, "job_params"), "{}");
    not_enqueued(handle, "{\"function_name\":\"f\",\"options\":{\"job_id\":\"mine\"}}", "job_id already exists");
    expect_text(field("mine", "function_name"), "rust#f");
    lib.free(handle);
}

static void test_producer__times(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    static const char *const cases[][2] = {
        {"\"defer_until\":\"2030-01-01T00:00:00Z\"", "1893456000000"},
        {"\"defer_until\":\"2030-01-01T00:00:00.123456+00:00\"", "1893456000123"},
        {"\"defer_until\":\"2030-01-01T02:00:00+02:00\",\"defer_by_seconds\":5", "1893456000000"},
        {"\"enqueue_time\":\"2030-01-01T00:00:00Z\",\"defer_by_seconds\":1.2345", "1893456001235"},
        {"\"enqueue_time\":\"2030-01-01T00:00:00.123456789Z\"", "1893456000123"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[256];
        snprintf(request, sizeof request, "{\"function_name\":\"f\",\"options\":{%s}}", cases[i][0]);
        expect_words(ask("ZSCORE rrq:queue:default %s", enqueue(handle, request)), cases[i][1]);
    }
    const char *id = enqueue(handle, "{\"function_name\":\"f\",\"options\":{\"defer_by_seconds\":3600}}");
    int64_t now = (int64_t)ew_env_default()->wall_ms(NULL);
    assert_in_range(strtoll(ask("ZSCORE rrq:queue:default %s", id), NULL, 10), now + 3500000, now + 3601000);
    lib.free(handle);
}

static void test_producer__unique(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    expect_text(enqueue(handle, "{\"function_name\":\"f\",\"options\":{\"unique_key\":\"u\",\"job_id\":\"a\"}}"), "a");
    expect_text(enqueue(handle, "{\"function_name\":\"g\",\"options\":{\"unique_key\":\"u\",\"job_id\":\"b\"}}"), "a");
    expect_text(ask("ZCARD rrq:queue:default"), "1");
    expect_text(field("a", "function_name"), "f");
    expect_text(ask("GET rrq:idempotency:u"), "a");
    assert_in_range(strtol(ask("TTL rrq:idempotency:u"), NULL, 10), 21500, 21600);
    ask("DEL rrq:job:a"); /* its job is gone: a stale key does not count */
    expect_text(enqueue(handle, "{\"function_name\":\"g\",\"options\":{\"unique_key\":\"u\",\"job_id\":\"b\"}}"), "b");
    enqueue(handle, "{\"function_name\":\"f\",\"options\":{\"unique_key\":\"v\",\"unique_ttl_seconds\":5,\"defer_by_"
                    "seconds\":30000}}");
    assert_in_range(strtol(ask("TTL rrq:idempotency:v"), NULL, 10), 29900, 30000);
    not_enqueued(handle, "{\"function_name\":\"f\",\"options\":{\"unique_key\":\"w\",\"job_timeout_seconds\":0}}",
                 "job_timeout_seconds must be positive");
    expect_text(ask("EXISTS rrq:idempotency:w"), "0");
    lib.free(handle);
}

static void test_producer__rate_limit(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    static const char request[] =
        "{\"mode\":\"rate_limit\",\"function_name\":\"f\",\"options\":{\"rate_limit_key\":\"k\","
        "\"rate_limit_seconds\":30,\"unique_key\":\"u\"}}";
    char *error = NULL;
    enqueue(handle, request);
    expect_text(taken(lib.enqueue(handle, request, &error)), "{\"status\":\"rate_limited\",\"job_id\":null}");
    expect_text(ask("ZCARD rrq:queue:default"), "1");
    expect_text(ask("EXISTS rrq:idempotency:u"), "0");
    assert_in_range(strtol(ask("TTL rrq:rate_limit:k"), NULL, 10), 20, 30);
    lib.free(handle);
}

static void test_producer__debounce(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("\"correlation_mappings\":{\"s\":\"s\"}");
    char first[64];
    int64_t now = (int64_t)ew_env_default()->wall_ms(NULL);
    snprintf(first, sizeof first, "%s",
             enqueue(handle, "{\"function_name\":\"f\",\"params\":{\"s\":\"1\"},\"options\":{\"debounce_key\":\"k\","
                             "\"debounce_seconds\":30,\"defer_by_seconds\":1000}}"));
    assert_in_range(strtoll(ask("ZSCORE rrq:queue:default %s", first), NULL, 10), now + 29000, now + 60000);
    expect_text(field(first, "correlation_context"), "{\"s\":\"1\"}");
    const char *second = enqueue(handle, "{\"mode\":\"debounce\",\"function_name\":\"f\",\"params\":{\"t\":2},"
                                         "\"options\":{\"debounce_key\":\"k\",\"debounce_seconds\":300}}");
    expect_text(second, first);
    expect_text(ask("ZCARD rrq:queue:default"), "1");
    expect_text(field(first, "job_params"), "{\"t\":2}");
    expect_text(field(first, "correlation_context"), "");
    assert_in_range(strtoll(ask("ZSCORE rrq:queue:default %s", first), NULL, 10), now + 299000, now + 360000);
    lib.free(handle);
}

static void test_producer__bad_enqueue(void **state) {
    (void)state;
    need_redis();
    void *handle = open_with("");
    static const char *const cases[][2] = {
        {"", "invalid enqueue request: "},
        {"[]", "invalid enqueue request: invalid type: sequence"},
        {"{}", "invalid enqueue request: missing field `function_name`"},
        {"{\"function_name\":null}", "invalid enqueue request: invalid type: null, expected a string"},
        {"{\"function_name\":\"\"}", "function_name cannot be empty"},
        {"{\"function_name\":\" \\t\"}", "function_name cannot be empty"},
        {"{\"function_name\":\"f\",\"function_name\":\"g\"}",
         "invalid enqueue request: duplicate field `function_name`"},
        {"{\"function_name\":\"f\",\"params\":[]}", "invalid enqueue request: invalid type: sequence, expected a map"},
        {"{\"function_name\":\"f\",\"params\":{\"a\":\"\\udc00\"}}", "invalid enqueue request: "},
        {"{\"function_name\":\"f\",\"options\":3}", "invalid enqueue request: invalid type: number `3`"},
        {"{\"function_name\":\"f\",\"mode\":\"zzz\"}", "invalid enqueue request: unknown variant `zzz`"},
        {"{\"function_name\":\"f\",\"mode\":\"rate_limit\"}", "rate_limit_key is required"},
        {"{\"function_name\":\"f\",\"mode\":\"debounce\"}", "debounce_key is required"},
    };
    static const char *const options[][2] = {
        {"\"queue_name\":\" \"", "queue_name cannot be empty"},
        {"\"job_id\":\"\"", "job_id cannot be empty"},
        {"\"unique_key\":\"\"", "idempotency_key cannot be empty"},
        {"\"unique_ttl_seconds\":0", "unique_ttl_seconds must be positive"},
        {"\"job_timeout_seconds\":0", "job_timeout_seconds must be positive"},
        {"\"job_timeout_seconds\":-5", "job_timeout_seconds must be positive"},
        {"\"job_timeout_seconds\":1000000000000000", "job_timeout_seconds is too large"},
        {"\"max_retries\":1.0", "invalid enqueue request: invalid type: number `1.0`, expected i64"},
        {"\"trace_context\":{\"a\":1}", "invalid enqueue request: "},
        {"\"defer_by_seconds\":-1", "defer_by_seconds must be positive"},
        {"\"defer_by_seconds\":1e300", "defer_by_seconds is too large"},
        {"\"defer_by_seconds\":1e999", "defer_by_seconds "},
        {"\"defer_until\":\"x\"", "defer_until is no time"},
        {"\"defer_until\":\"2030-01-01T00:00:00\"", "defer_until is no time"},
        {"\"enqueue_time\":\"2030-01-01\"", "enqueue_time is no time"},
        {"\"rate_limit_key\":\"a\"", "rate_limit_seconds is required"},
        {"\"rate_limit_seconds\":1", "rate_limit_key is required"},
        {"\"rate_limit_key\":\" \",\"rate_limit_seconds\":1", "rate_limit_key cannot be empty"},
        {"\"rate_limit_key\":\"a\",\"rate_limit_seconds\":0", "rate_limit_seconds must be positive"},
        {"\"debounce_key\":\"a\"", "debounce_seconds is required"},
        {"\"debounce_key\":\"a\",\"debounce_seconds\":0", "debounce_seconds must be positive"},
        {"\"debounce_key\":\"a\",\"rate_limit_seconds\":1", "rate_limit and debounce options are mutually exclusive"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        not_enqueued(handle, cases[i][0], cases[i][1]);
    not_enqueued(handle, NULL, "received null pointer");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char request[256];
        snprintf(request, sizeof request, "{\"function_name\":\"f\",\"options\":{%s}}", options[i][0]);
        not_enqueued(handle, request, options[i][1]);
    }
    expect_text(ask("DBSIZE"), "0");
    lib.free(handle);
    handle = open_with("\"queue_name\":\"\",\"job_timeout_seconds\":-1"); /* said when it matters, as RRQ does */
    not_enqueued(handle, "{\"function_name\":\"f\"}", "queue_name cannot be empty");
    not_enqueued(handle, "{\"function_name\":\"f\",\"options\":{\"queue_name\":\"q\"}}",
                 "job_timeout_seconds must be positive");
    lib.free(handle);
}

#define TEST(name) cmocka_unit_test(test_producer__##name)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(constants), TEST(exports_nothing_else), TEST(null),     TEST(bad_config),
        TEST(hash),      TEST(config_counts),        TEST(options),  TEST(times),
        TEST(unique),    TEST(rate_limit),           TEST(debounce), TEST(bad_enqueue),
    };
    return cmocka_run_group_tests_name("producer", tests, group_setup, group_teardown);
}
