/*
 * tests/unit/gateway/test_app.c: apps and clients in one process, over real sockets: threads, a host's loop, actions
 * added while running, draining, handlers on worker threads, answers from elsewhere, memory given back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/fail_env.h"
#include "support/json_or.h"
#include <everywire/everywire.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define WAIT_MS 10000

/* ---- actions ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void on_cancel(ew_call *call, void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "told to stop");
}

static atomic_int begun; /* calls of forever, nap and blocking that reached their handler */

static void forever(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    atomic_fetch_add(&begun, 1);
}

static void slept(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("\"slept\""));
}

static void nap(ew_call *call, void *arg) {
    (void)ew_call_after(call, (uint64_t)json_int_or(ew_call_input(call), "", 100), slept, arg);
    atomic_fetch_add(&begun, 1);
}

/* On a worker: streams and waits; says how its waiting ended. */
static void blocking(ew_call *call, void *arg) {
    (void)arg;
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 3; i++)
        (void)ew_call_chunkf(call, "%d", i);
    ew_err err = ew_call_wait(call, (uint64_t)json_int_or(ew_call_input(call), "", 10));
    (void)ew_call_donef(call, "%Q", ew_err_name(err));
}

static void *answer_from_thread(void *arg) {
    ew_call *call = arg;
    (void)usleep(20000);
    (void)ew_call_chunk(call, EW_STR("\"from elsewhere\""));
    (void)ew_call_done(call, EW_STR("true"));
    return NULL;
}

static void later(ew_call *call, void *arg) {
    pthread_t thread;
    (void)arg;
    if (pthread_create(&thread, NULL, answer_from_thread, call) == 0)
        pthread_detach(thread);
}

/* ---- helpers ---- */

static ew_app *start_app(const ew_app_options *options, atomic_int *cancels, char target[64]) {
    ew_app *app = ew_app_new_with("test", options);
    int port = 0;
    atomic_store(&begun, 0);
    assert_non_null(app);
    assert_int_equal(ew_app_action(app, "/flow/echo", echo, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/forever", forever, cancels, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/nap", nap, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/later", later, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/blocking", blocking, NULL, &(ew_action_options){.may_block = true}),
                     EW_OK);
    assert_int_equal(ew_app_listen(app, "127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_listener(app, 0, NULL, NULL, &port), EW_OK);
    (void)snprintf(target, 64, "http://127.0.0.1:%d", port);
    return app;
}

static ew_client *new_client(const char *target, const ew_client_options *options) {
    ew_client *client = NULL;
    assert_int_equal(ew_client_new(target, options, &client, NULL), EW_OK);
    return client;
}

static ew_request *call(ew_client *client, const char *action, const char *input, uint64_t timeout_ms) {
    ew_request *request = NULL;
    ew_request_options options = {.action = ew_str_from(action), .input = ew_str_from(input), .timeout_ms = timeout_ms};
    assert_int_equal(ew_client_call(client, &options, &request), EW_OK);
    return request;
}

static void expect_result(ew_client *client, const char *action, const char *input, const char *result) {
    ew_request *request = call(client, action, input, 0);
    ew_end end;
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(end.status, EW_STATUS_OK);
    assert_int_equal(end.origin, EW_ORIGIN_ACTION);
    assert_true(ew_str_eq(end.result, ew_str_from(result)));
    assert_int_equal(end.trace_id.len, 32);
    ew_request_free(request);
}

static void expect_failure(ew_request *request, ew_status status, ew_origin origin) {
    ew_end end;
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(end.status, status);
    assert_int_equal(end.origin, origin);
    ew_request_free(request);
}

static bool becomes(atomic_int *value, int wanted) {
    for (int i = 0; i < 500; i++) {
        if (atomic_load(value) == wanted)
            return true;
        (void)usleep(10000);
    }
    return false;
}

/* ---- tests ---- */

static void test_api_app__serves_and_calls(void **state) {
    (void)state;
    char target[64];
    atomic_int cancels = 0;
    ew_app *app = start_app(&(ew_app_options){.threads = 2}, &cancels, target);
    ew_client *client = new_client(target, NULL);
    expect_result(client, "echo", "{\"a\":[1,2]}", "{\"a\":[1,2]}");
    expect_result(client, "/flow/echo", "", "null");
    expect_result(client, "blocking", "5", "\"EW_OK\"");
    expect_result(client, "later", "1", "true");
    expect_failure(call(client, "missing", "1", 0), EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION);
    expect_failure(call(client, "forever", "1", 3000), EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE);
    assert_true(becomes(&cancels, 1));
    atomic_store(&begun, 0);
    ew_request *cancelled = call(client, "forever", "1", 0);
    assert_true(becomes(&begun, 1));
    ew_request_cancel(cancelled);
    ew_request_cancel(cancelled);
    expect_failure(cancelled, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL);
    assert_true(becomes(&cancels, 2));
    client = ew_client_free(client);
    assert_null(ew_app_free(app));
}

static void test_api_app__cancels_waiting_workers(void **state) {
    (void)state;
    char target[64];
    atomic_int cancels = 0;
    ew_app *app = start_app(&(ew_app_options){.threads = 1}, &cancels, target);
    ew_client *client = new_client(target, NULL);
    ew_request *request = call(client, "blocking", "60000", 0);
    assert_true(becomes(&begun, 1));
    ew_request_cancel(request);
    expect_failure(request, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL);
    ew_client_free(client);
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    ew_app_free(app); /* would last a minute if the worker slept on */
    clock_gettime(CLOCK_MONOTONIC, &t1);
    assert_true(t1.tv_sec - t0.tv_sec < 10);
}

static void test_api_app__takes_actions_while_running(void **state) {
    (void)state;
    char target[64];
    atomic_int cancels = 0;
    ew_app *app = start_app(&(ew_app_options){.threads = 2}, &cancels, target);
    ew_client *client = new_client(target, NULL);
    expect_failure(call(client, "fresh", "1", 0), EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION);
    assert_int_equal(ew_app_action(app, "/flow/fresh", echo, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/fresh", echo, NULL, NULL), EW_EEXISTS);
    for (int i = 0; i < 100; i++) { /* the loops learn of it in their next turn */
        ew_request *request = call(client, "fresh", "7", 0);
        ew_end end;
        assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
        bool found = end.status == EW_STATUS_OK;
        ew_request_free(request);
        if (found)
            break;
        assert_true(i < 99);
        (void)usleep(10000);
    }
    ew_client_free(client);
    ew_app_free(app);
}

static void test_api_app__drains(void **state) {
    (void)state;
    char target[64];
    atomic_int cancels = 0;
    ew_app *app = start_app(&(ew_app_options){.threads = 2, .drain_ms = 5000}, &cancels, target);
    ew_client *client = new_client(target, NULL);
    ew_request *running = call(client, "nap", "300", 0);
    assert_true(becomes(&begun, 1));
    ew_app_stop(app);
    assert_int_equal(ew_app_wait(app), EW_OK);
    ew_end end;
    assert_int_equal(ew_request_wait(running, WAIT_MS, &end), EW_OK);
    assert_int_equal(end.status, EW_STATUS_OK);
    ew_request_free(running);
    expect_failure(call(client, "echo", "1", 0), EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT);
    ew_client_free(client);
    ew_app_free(app);
}

static void test_api_app__cuts_off_what_does_not_end(void **state) {
    (void)state;
    char target[64];
    atomic_int cancels = 0;
    ew_app *app = start_app(&(ew_app_options){.threads = 2, .drain_ms = 100}, &cancels, target);
    ew_client *client = new_client(target, NULL);
    ew_request *running = call(client, "forever", "1", 0);
    assert_true(becomes(&begun, 1));
    ew_app_stop(app);
    assert_int_equal(ew_app_wait(app), EW_ETIMEOUT);
    expect_failure(running, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT);
    assert_int_equal(atomic_load(&cancels), 1);
    ew_client_free(client);
    ew_app_free(app);
}

/* ---- a host's loop ---- */

struct host {
    int ends;
    int chunks;
    char result[64];
};

static void count_chunk(ew_request *request, ew_str chunk, void *ud) {
    (void)request;
    (void)chunk;
    ((struct host *)ud)->chunks++;
}

static void keep_result(ew_request *request, const ew_end *end, void *ud) {
    struct host *host = ud;
    (void)request;
    host->ends++;
    (void)snprintf(host->result, sizeof host->result, "%.*s", (int)end->result.len, end->result.ptr);
}

static void test_api_app__lives_on_a_hosts_loop(void **state) {
    (void)state;
    uv_loop_t loop;
    char target[64];
    atomic_int cancels = 0;
    struct host host = {0};
    assert_int_equal(uv_loop_init(&loop), 0);
    ew_app *app = start_app(&(ew_app_options){.loop = &loop}, &cancels, target);
    ew_client *client = new_client(target, &(ew_client_options){.loop = &loop});
    ew_request_options options = {.action = EW_STR("blocking"),
                                  .input = EW_STR("1"),
                                  .stream = true,
                                  .on_chunk = count_chunk,
                                  .on_end = keep_result,
                                  .ud = &host};
    assert_int_equal(ew_client_call(client, &options, NULL), EW_OK);
    for (int i = 0; i < 10000 && host.ends == 0; i++)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(host.ends, 1);
    assert_int_equal(host.chunks, 3);
    assert_string_equal(host.result, "\"EW_OK\"");
    ew_client_free(client);
    ew_app_free(app);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- memory ---- */

static void test_api_app__gives_its_memory_back(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew_env env = t.env; /* its memory, but the real clock: the loops wait for real time */
    env.now_ns = ew_env_default()->now_ns;
    env.wall_ms = ew_env_default()->wall_ms;
    char target[64];
    atomic_int cancels = 0;
    ew_app *app = start_app(&(ew_app_options){.threads = 2, .env = &env}, &cancels, target);
    ew_client *client = new_client(target, &(ew_client_options){.env = &env});
    expect_result(client, "echo", "{\"a\":1}", "{\"a\":1}");
    expect_result(client, "blocking", "5", "\"EW_OK\"");
    ew_client_free(client);
    ew_app_free(app);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

/* ---- refusals ---- */

static void test_api_app__refuses(void **state) {
    (void)state;
    ew_app *app = ew_app_new("x");
    assert_int_equal(ew_app_action(NULL, "/flow/x", echo, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_app_action(app, "flow/x", echo, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_app_action(app, "/flow/", echo, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_app_action(app, "/flow/x y", echo, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_app_action(app, "/flow/x", NULL, NULL, NULL), EW_EINVAL);
    assert_int_equal(ew_app_action(app, "/flow/x", echo, NULL, &(ew_action_options){.input_schema = "{"}), EW_ESYNTAX);
    assert_string_equal(ew_app_error(app), "action /flow/x: input_schema: the schema is not valid JSON");
    const ew_action_options no_schema = {.output_schema = "{\"properties\":{\"a\":{\"minLength\":true}}}"};
    assert_int_equal(ew_app_action(app, "/flow/x", echo, NULL, &no_schema), EW_EINVAL);
    assert_string_equal(ew_app_error(app),
                        "action /flow/x: output_schema: /properties/a/minLength: this must be a whole "
                        "number, 0 or more");
    assert_int_equal(ew_app_exec(app, "/flow/x", &(ew_exec_options){.argv = (const char *[]){"cat", NULL}}, &no_schema),
                     EW_EINVAL);
    assert_non_null(strstr(ew_app_error(app), "output_schema: /properties/a/minLength"));
    assert_int_equal(ew_app_action(app, "/flow/x", echo, NULL, &(ew_action_options){.metadata = "[]"}), EW_ESYNTAX);
    assert_int_equal(ew_app_action(app, "/flow/x", echo, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/x", echo, NULL, NULL), EW_EEXISTS);
    assert_int_equal(ew_app_listen(app, "nonsense"), EW_EINVAL);
    assert_int_equal(ew_app_listen(app, "127.0.0.1:99999"), EW_EINVAL);
    assert_int_equal(ew_app_listen(app, "nowire=127.0.0.1:0"), EW_EINVAL);
    assert_int_equal(ew_app_listen(app, "0.0.0.0:0"), EW_EACCESS);
    assert_int_equal(ew_app_listen(app, "[::]:0"), EW_EACCESS);
    assert_true(strlen(ew_app_error(app)) > 0);
    assert_int_equal(ew_app_wait(app), EW_EINVAL);
    ew_app_stop(app);
    assert_null(ew_app_free(app));
    assert_null(ew_app_free(NULL));
}

static void test_api_app__says_that_an_address_is_taken(void **state) {
    (void)state;
    char target[64], address[64];
    atomic_int cancels = 0;
    ew_app *first = start_app(&(ew_app_options){.threads = 1}, &cancels, target);
    const char *bound = NULL;
    assert_int_equal(ew_app_listener(first, 0, NULL, &bound, NULL), EW_OK);
    (void)snprintf(address, sizeof address, "%s", bound);
    ew_app *second = ew_app_new_with("second", &(ew_app_options){.threads = 2});
    assert_int_equal(ew_app_listen(second, address), EW_OK);
    assert_int_equal(ew_app_start(second), EW_EADDRINUSE);
    assert_non_null(strstr(ew_app_error(second), address));
    assert_null(ew_app_free(second));
    ew_app_free(first);
}

/* Puts a text there that a later failure must replace. */
static void leave_error(ew_app *app) {
    assert_int_equal(ew_app_action(app, "no key", echo, NULL, NULL), EW_EINVAL);
    assert_non_null(strstr(ew_app_error(app), "no key"));
}

static void check_error(ew_app *app, ew_err err, ew_err expected, const char *part) {
    assert_int_equal(err, expected);
    if (!strstr(ew_app_error(app), part))
        fail_msg("'%s' does not have '%s'", ew_app_error(app), part);
    leave_error(app);
}

/* Each failure leaves its own text, never that of an earlier one; a success leaves none. */
static void test_api_app__errors_are_not_stale(void **state) {
    (void)state;
    ew_app *app = ew_app_new("errors");
    const ew_exec_options program = {.argv = (const char *const[]){"/bin/true", NULL}};
    assert_non_null(app);
    leave_error(app);
    check_error(app, ew_app_action(app, "/flow/x", NULL, NULL, NULL), EW_EINVAL, "action /flow/x: the handler is NULL");
    check_error(app, ew_app_action(app, NULL, echo, NULL, NULL), EW_EINVAL, "the key is NULL");
    check_error(app, ew_app_listen(app, NULL), EW_EINVAL, "cannot add a listener: the address is NULL");
    check_error(app, ew_app_connect(app, NULL), EW_EINVAL, "cannot add a manager: the URL is NULL");
    check_error(app, ew_app_import(app, NULL, NULL), EW_EINVAL, "cannot add an import: the target is NULL");
    check_error(app, ew_app_exec(app, NULL, &program, NULL), EW_EINVAL, "cannot add an executable: the key is NULL");
    check_error(app, ew_app_exec(app, "/t/x", NULL, NULL), EW_EINVAL, "the options are NULL");
    check_error(app, ew_app_plugin(app, NULL, NULL), EW_EINVAL, "cannot load a plug-in: the path is NULL");
    check_error(app, ew_app_worker(app, NULL), EW_EINVAL, "ew_app_jobs");
    assert_int_equal(ew_app_listen(app, "127.0.0.1:0"), EW_OK);
    assert_string_equal(ew_app_error(app), "");
    leave_error(app);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_string_equal(ew_app_error(app), "");
    leave_error(app);
    check_error(app, ew_app_start(app), EW_EINVAL, "cannot start: the app has been started already");
    check_error(app, ew_app_listen(app, "127.0.0.1:0"), EW_EINVAL, "the app has been started already");
    check_error(app, ew_app_connect(app, "ws://127.0.0.1:1"), EW_EINVAL, "the app has been started already");
    check_error(app, ew_app_import(app, "http://127.0.0.1:1", NULL), EW_EINVAL, "the app has been started already");
    check_error(app, ew_app_exec(app, "/t/x", &program, NULL), EW_EINVAL, "the app has been started already");
    check_error(app, ew_app_plugin(app, "x.so", NULL), EW_EINVAL, "the app has been started already");
    check_error(app, ew_app_jobs(app, "memory:", NULL), EW_EINVAL, "the app has been started already");
    ew_app_free(app);
}

/* A client that cannot be made says why, whatever the reason. */
static void test_api_app__client_problem_is_set(void **state) {
    (void)state;
    static const char *const targets[] = {NULL, "", "nonsense", "http://", "gopher://127.0.0.1:1"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const char *problem = NULL;
        ew_client *client = NULL;
        assert_int_not_equal(ew_client_new(targets[i], NULL, &client, &problem), EW_OK);
        assert_null(client);
        assert_non_null(problem);
        assert_true(strlen(problem) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_app__serves_and_calls),
        cmocka_unit_test(test_api_app__errors_are_not_stale),
        cmocka_unit_test(test_api_app__client_problem_is_set),
        cmocka_unit_test(test_api_app__cancels_waiting_workers),
        cmocka_unit_test(test_api_app__takes_actions_while_running),
        cmocka_unit_test(test_api_app__drains),
        cmocka_unit_test(test_api_app__cuts_off_what_does_not_end),
        cmocka_unit_test(test_api_app__lives_on_a_hosts_loop),
        cmocka_unit_test(test_api_app__gives_its_memory_back),
        cmocka_unit_test(test_api_app__refuses),
        cmocka_unit_test(test_api_app__says_that_an_address_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
