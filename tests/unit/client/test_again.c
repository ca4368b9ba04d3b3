/*
 * tests/unit/client/test_again.c: requests that are made again, clients with a fixed number of connections, and what went
 * over them; an app and a client in one process, over real sockets.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <everywire/everywire.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS 10000

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "told to stop");
}

static void forever(ew_call *call, void *arg) { (void)ew_call_on_cancel(call, on_cancel, arg); }

static ew_app *start_app(int *ret_port) {
    ew_app *app = ew_app_new("again");
    assert_non_null(app);
    assert_int_equal(ew_app_action(app, "/flow/echo", echo, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(app, "/flow/forever", forever, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_listen(app, "127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_listener(app, 0, NULL, NULL, ret_port), EW_OK);
    return app;
}

static ew_client *client_of(const char *scheme, int port, const ew_client_options *options) {
    char target[64];
    ew_client *client = NULL;
    (void)snprintf(target, sizeof target, "%s://127.0.0.1:%d", scheme, port);
    assert_int_equal(ew_client_new(target, options, &client, NULL), EW_OK);
    return client;
}

typedef struct counting {
    int wanted;
    atomic_int ended;
    atomic_int wrong;
    size_t len;
} counting;

static void on_end(ew_request *request, const ew_end *end, void *ud) {
    counting *c = ud;
    if (end->status != EW_STATUS_OK || end->result.len != c->len) {
        atomic_fetch_add(&c->wrong, 1);
    }
    if (atomic_fetch_add(&c->ended, 1) + 1 < c->wanted && ew_request_again(request) != EW_OK) {
        atomic_fetch_add(&c->wrong, 1);
    }
}

static void many_times(const char *scheme, ew_str input, int wanted, const ew_client_options *options) {
    int port = 0;
    ew_app *app = start_app(&port);
    ew_client *client = client_of(scheme, port, options);
    counting c = {.wanted = wanted, .len = input.len};
    ew_request *request = NULL;
    ew_end end;
    ew_request_options with = {.action = EW_STR("echo"), .input = input, .on_end = on_end, .ud = &c, .repeat = true};
    assert_int_equal(ew_client_call(client, &with, &request), EW_OK);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(atomic_load(&c.ended), wanted);
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_int_equal(end.result.len, input.len);
    assert_memory_equal(end.result.ptr, input.ptr, input.len);
    /* and from here, after its end */
    c.wanted = wanted + 1;
    assert_int_equal(ew_request_again(request), EW_OK);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(end.status, EW_STATUS_OK);
    assert_memory_equal(end.result.ptr, input.ptr, input.len);
    assert_int_equal(atomic_load(&c.ended), wanted + 1);
    ew_request_free(request);
    ew_client_free(client);
    ew_app_free(app);
}

static void test_api_again__many_times(void **state) {
    (void)state;
    many_times("http", EW_STR("{\"a\":[1,2]}"), 200, NULL);
    many_times("jsonrpc", EW_STR("{\"a\":[1,2]}"), 200, NULL);
    many_times("rrq", EW_STR("{\"a\":[1,2]}"), 200, NULL);
}

static void test_api_again__large(void **state) {
    static char text[100000];
    (void)state;
    memset(text, 'x', sizeof text);
    text[0] = text[sizeof text - 1] = '"';
    many_times("http", (ew_str){text, sizeof text}, 5, NULL);
    many_times("jsonrpc", (ew_str){text, sizeof text}, 5, NULL);
}

static void test_api_again__refused(void **state) {
    (void)state;
    int port = 0;
    ew_app *app = start_app(&port);
    ew_client *client = client_of("http", port, NULL);
    ew_request *request = NULL;
    ew_end end;
    ew_request_options with = {.action = EW_STR("echo")};
    assert_int_equal(ew_client_call(client, &with, &request), EW_OK);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(ew_request_again(request), EW_EINVAL); /* did not say so */
    ew_request_free(request);
    with = (ew_request_options){.action = EW_STR("forever"), .repeat = true};
    assert_int_equal(ew_client_call(client, &with, &request), EW_OK);
    assert_int_equal(ew_request_again(request), EW_EINVAL); /* it runs */
    ew_request_cancel(request);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(end.status, EW_STATUS_CANCELLED);
    assert_int_equal(ew_request_again(request), EW_ECANCELLED);
    ew_request_free(request);
    with = (ew_request_options){.action = EW_STR("echo"), .repeat = true, .input_stream = true};
    assert_int_equal(ew_client_call(client, &with, &request), EW_EINVAL);
    ew_client_free(client);
    ew_app_free(app);
}

/* The other thread asks while on_end runs: it must not be lost, nor happen twice. */
typedef struct racing {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ends;
} racing;

static void on_racing_end(ew_request *request, const ew_end *end, void *ud) {
    racing *r = ud;
    (void)request;
    (void)end;
    pthread_mutex_lock(&r->lock);
    r->ends++;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void test_api_again__from_elsewhere(void **state) {
    (void)state;
    int port = 0;
    ew_app *app = start_app(&port);
    ew_client *client = client_of("jsonrpc", port, NULL);
    racing r = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    ew_request *request = NULL;
    ew_end end;
    ew_request_options with = {.action = EW_STR("echo"), .on_end = on_racing_end, .ud = &r, .repeat = true};
    assert_int_equal(ew_client_call(client, &with, &request), EW_OK);
    for (int i = 1; i <= 300; i++) {
        pthread_mutex_lock(&r.lock);
        while (r.ends < i)
            pthread_cond_wait(&r.changed, &r.lock);
        pthread_mutex_unlock(&r.lock);
        assert_int_equal(ew_request_again(request), EW_OK);
    }
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(r.ends, 301);
    ew_request_free(request);
    ew_client_free(client);
    ew_app_free(app);
}

static void test_api_again__connections(void **state) {
    static const char *const schemes[] = {"http", "jsonrpc", "rrq"};
    (void)state;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        int port = 0;
        ew_app *app = start_app(&port);
        ew_client_options options = {.connections = 3};
        ew_client *client = client_of(schemes[i], port, &options);
        ew_traffic traffic;
        for (int k = 0; k < 6; k++) { /* one at a time: one connection would do */
            ew_request *request = NULL;
            ew_end end;
            ew_request_options with = {.action = EW_STR("echo"), .input = EW_STR("{}")};
            assert_int_equal(ew_client_call(client, &with, &request), EW_OK);
            assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
            assert_int_equal(end.status, EW_STATUS_OK);
            ew_request_free(request);
        }
        do { /* the others were dialled beside the first call */
            ew_client_traffic(client, &traffic);
        } while (traffic.connections < 3);
        assert_int_equal(traffic.connections, 3);
        assert_true(traffic.bytes_in > 0 && traffic.bytes_out > 0);
        ew_client_free(client);
        ew_app_free(app);
    }
}

static void test_api_again__connections_refused(void **state) {
    (void)state;
    const char *command[] = {"true", NULL}, *problem = NULL;
    ew_client *client = NULL;
    ew_client_options options = {.connections = 2};
    assert_int_equal(ew_client_new("reflection://127.0.0.1:0", &options, &client, &problem), EW_EINVAL);
    assert_non_null(strstr(problem, "dialled"));
    options.command = command;
    assert_int_equal(ew_client_new("jsonrpc+stdio:", &options, &client, &problem), EW_EINVAL);
    assert_int_equal(ew_client_new("rrq://127.0.0.1:0", &options, &client, &problem), EW_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_again__many_times),  cmocka_unit_test(test_api_again__large),
        cmocka_unit_test(test_api_again__refused),     cmocka_unit_test(test_api_again__from_elsewhere),
        cmocka_unit_test(test_api_again__connections), cmocka_unit_test(test_api_again__connections_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
