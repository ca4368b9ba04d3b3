/*
 * tests/unit/gateway/test_remote_runtimes.c: an app as the manager of runtimes, through the public API, on real loops: a runtime's
 * actions are called from whatever loop a call came to. The runtimes are apps too, which dial the first.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/json_or.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <everywire/everywire.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 30000
#define ROUNDS 8 /* connections: the kernel deals them out to both loops */

static atomic_int cancelled, running;

static bool becomes(atomic_int *value, int wanted) {
    for (int i = 0; i < 3000; i++) {
        if (atomic_load(value) == wanted)
            return true;
        (void)usleep(10000);
    }
    return false;
}

/* ---- what the runtime offers ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void who(ew_call *call, void *arg) { (void)ew_call_donef(call, "%Q", (const char *)arg); }

static void more(ew_call *call, void *arg) {
    int64_t *left = arg;
    while (*left > 0) {
        ew_err err = ew_call_chunkf(call, "{\"left\":%lld,\"text\":%Q}", (long long)*left,
                                    "a text that has some length, so that many of them fill what there is to fill");
        --*left;
        if (err == EW_FULL) {
            (void)ew_call_on_room(call, more, left);
            return;
        }
        if (err < 0) {
            (void)ew_call_fail(call, EW_STATUS_ABORTED, ew_err_name(err));
            return;
        }
    }
    (void)ew_call_done(call, EW_STR("\"all\""));
}

static void pour(ew_call *call, void *arg) {
    (void)arg;
    int64_t *left = ew_call_alloc(call, sizeof *left);
    *left = json_int_or(ew_call_input(call), "", 10);
    more(call, left);
}

static void add_up(ew_call *call, ew_str chunk, bool end, void *arg) {
    int64_t *sum = arg, number = 0;
    if (end) {
        (void)ew_call_donef(call, "%lld", (long long)*sum);
        return;
    }
    (void)ew_json_int64(chunk, &number);
    *sum += number;
    (void)ew_call_chunkf(call, "%lld", (long long)*sum);
}

static void sum(ew_call *call, void *arg) {
    (void)arg;
    int64_t *total = ew_call_alloc(call, sizeof *total);
    *total = 0;
    if (ew_call_on_input(call, add_up, total) != EW_OK)
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "no input stream");
}

static void break_it(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail_with(call, &(ew_fault){.status = EW_STATUS_FAILED_PRECONDITION,
                                              .message = EW_STR("not yet"),
                                              .details = EW_STR("{\"a\":[1,2]}")});
}

static void stopped(ew_call *call, void *arg) {
    (void)arg;
    atomic_fetch_add(&cancelled, 1);
    atomic_fetch_sub(&running, 1);
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "stopped");
}

static void for_ever(ew_call *call, void *arg) {
    (void)arg;
    atomic_fetch_add(&running, 1);
    (void)ew_call_chunk(call, EW_STR("\"begun\""));
    (void)ew_call_on_cancel(call, stopped, NULL);
}

static void context(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "[%j,%j,%b]", ew_call_context(call), ew_call_labels(call),
                        ew_call_deadline_ms(call) >= 0);
}

/* ---- the world ---- */

typedef struct world {
    ew_app *manager;
    char http[64], jsonrpc[64], ws[64];
} world;

static ew_app *start_runtime(const world *w, const char *id, bool small) {
    ew_app *app = ew_app_new_with("runtime", &(ew_app_options){.runtime_id = id});
    assert_non_null(app);
    assert_int_equal(ew_app_action(app, "/test/who", who, (void *)(uintptr_t)id, NULL), EW_OK);
    if (!small) {
        assert_int_equal(ew_app_action(app, "/test/echo", echo, NULL, NULL), EW_OK);
        assert_int_equal(ew_app_action(app, "/test/pour", pour, NULL, NULL), EW_OK);
        assert_int_equal(ew_app_action(app, "/test/sum", sum, NULL, NULL), EW_OK);
        assert_int_equal(ew_app_action(app, "/test/break", break_it, NULL, NULL), EW_OK);
        assert_int_equal(ew_app_action(app, "/test/forever", for_ever, NULL, NULL), EW_OK);
        assert_int_equal(ew_app_action(app, "/test/context", context, NULL, NULL), EW_OK);
    }
    assert_int_equal(ew_app_connect(app, w->ws), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    return app;
}

static void setup_world(world *w, unsigned threads) {
    int port = 0;
    atomic_store(&cancelled, 0);
    atomic_store(&running, 0);
    w->manager = ew_app_new_with("manager", &(ew_app_options){.threads = threads, .runtime_grace_ms = EW_NO_GRACE});
    assert_non_null(w->manager);
    assert_int_equal(ew_app_listen(w->manager, "127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(w->manager), EW_OK);
    assert_int_equal(ew_app_listener(w->manager, 0, NULL, NULL, &port), EW_OK);
    (void)snprintf(w->http, sizeof w->http, "http://127.0.0.1:%d", port);
    (void)snprintf(w->jsonrpc, sizeof w->jsonrpc, "jsonrpc://127.0.0.1:%d", port);
    (void)snprintf(w->ws, sizeof w->ws, "ws://127.0.0.1:%d", port);
}

/* What came of a call. */
typedef struct answer {
    atomic_int chunks;
    unsigned slow_us; /* the reader takes so long for each of the first chunks */
    char text[256];
    char details[64];
    ew_status status;
} answer;

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    answer *a = ud;
    (void)request;
    (void)chunk;
    if (atomic_fetch_add(&a->chunks, 1) < 100 && a->slow_us)
        (void)usleep(a->slow_us);
}

static ew_client *client_to(const char *target) {
    ew_client *client = NULL;
    assert_int_equal(ew_client_new(target, NULL, &client, NULL), EW_OK);
    return client;
}

static void keep(answer *a, const ew_end *end) {
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    a->status = end->status;
    (void)snprintf(a->text, sizeof a->text, "%.*s", (int)text.len, text.ptr ? text.ptr : "");
    (void)snprintf(a->details, sizeof a->details, "%.*s", (int)end->fault.details.len,
                   end->fault.details.ptr ? end->fault.details.ptr : "");
}

static void ask(ew_client *client, const char *action, const char *input, bool stream, answer *a) {
    ew_request *request = NULL;
    ew_end end;
    ew_request_options options = {
        .action = ew_str_from(action), .input = ew_str_from(input), .stream = stream, .on_chunk = on_chunk, .ud = a};
    assert_int_equal(ew_client_call(client, &options, &request), EW_OK);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    keep(a, &end);
    ew_request_free(request);
}

static ew_status status_of(const world *w, const char *action) {
    answer a = {.chunks = 0};
    ew_client *client = client_to(w->http);
    ask(client, action, "null", false, &a);
    ew_client_free(client);
    return a.status;
}

/* What a runtime offers is there a moment after it has connected, and gone a moment after it has. */
static void wait_for(const world *w, const char *action, ew_status status) {
    for (int i = 0; i < 3000; i++) {
        if (status_of(w, action) == status)
            return;
        (void)usleep(10000);
    }
    fail_msg("%s never became %s", action, ew_status_name(status));
}

/* ---- tests ---- */

static void calls(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        world w;
        setup_world(&w, threads);
        ew_app *runtime = start_runtime(&w, "r", false);
        wait_for(&w, "r:/test/who", EW_STATUS_OK);
        for (int i = 0; i < ROUNDS; i++) {
            answer a = {.chunks = 0};
            ew_client *client = client_to(w.jsonrpc);
            ask(client, "/test/echo", "{\"a\":1e400}", false, &a);
            assert_string_equal(a.text, "{\"a\":1e400}");
            ask(client, "break", "null", false, &a);
            assert_int_equal(a.status, EW_STATUS_FAILED_PRECONDITION);
            assert_string_equal(a.text, "not yet");
            assert_non_null(strstr(a.details, "[1,2]"));
            ask(client, "pour", "50", true, &a);
            assert_string_equal(a.text, "\"all\"");
            assert_int_equal(atomic_load(&a.chunks), 50);
            ew_client_free(client);
        }
        ew_app_free(runtime);
        wait_for(&w, "/test/who", EW_STATUS_NOT_FOUND);
        ew_app_free(w.manager);
    }
}

/* Much more than fits anywhere, and a reader that is slow at first: nothing is lost, nothing grows beyond its limit. */
static void back_pressure(void **state) {
    (void)state;
    world w;
    setup_world(&w, 2);
    ew_app *runtime = start_runtime(&w, "r", false);
    wait_for(&w, "/test/who", EW_STATUS_OK);
    for (int i = 0; i < ROUNDS; i++) {
        answer a = {.slow_us = 2000};
        ew_client *client = client_to(w.http);
        ask(client, "pour", "40000", true, &a);
        assert_string_equal(a.text, "\"all\"");
        assert_int_equal(atomic_load(&a.chunks), 40000);
        ew_client_free(client);
    }
    ew_app_free(runtime);
    ew_app_free(w.manager);
}

static void input_streams(void **state) {
    (void)state;
    world w;
    setup_world(&w, 2);
    ew_app *runtime = start_runtime(&w, "r", false);
    wait_for(&w, "/test/who", EW_STATUS_OK);
    for (int i = 0; i < ROUNDS; i++) {
        answer a = {.chunks = 0};
        ew_client *client = client_to(w.jsonrpc);
        ew_request *request = NULL;
        ew_end end;
        ew_request_options options = {.action = EW_STR("sum"), .input_stream = true, .on_chunk = on_chunk, .ud = &a};
        assert_int_equal(ew_client_call(client, &options, &request), EW_OK);
        for (int k = 1; k <= 5000; k++) {
            char text[16];
            (void)snprintf(text, sizeof text, "%d", k);
            ew_err err = ew_request_send(request, ew_str_from(text));
            assert_true(err >= 0);
            if (err == EW_FULL)
                assert_int_equal(ew_request_wait_room(request, WAIT_MS), EW_OK);
        }
        assert_int_equal(ew_request_send_end(request), EW_OK);
        assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
        keep(&a, &end);
        assert_string_equal(a.text, "12502500");
        ew_request_free(request);
        ew_client_free(client);
    }
    ew_app_free(runtime);
    ew_app_free(w.manager);
}

static void cancel(void **state) {
    (void)state;
    world w;
    setup_world(&w, 2);
    ew_app *runtime = start_runtime(&w, "r", false);
    wait_for(&w, "/test/who", EW_STATUS_OK);
    for (int i = 0; i < ROUNDS; i++) {
        ew_client *client = client_to(w.jsonrpc);
        ew_request *request = NULL;
        ew_end end;
        /* by the caller, by a deadline, by the caller's going away */
        ew_request_options options = {.action = EW_STR("forever"), .timeout_ms = i % 3 == 1 ? 200 : 0};
        assert_int_equal(ew_client_call(client, &options, &request), EW_OK);
        assert_true(becomes(&running, 1));
        if (i % 3 == 0)
            ew_request_cancel(request);
        if (i % 3 != 2) {
            assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
            assert_int_equal(end.status, i % 3 == 1 ? EW_STATUS_DEADLINE_EXCEEDED : EW_STATUS_CANCELLED);
        }
        ew_client_free(client);
        ew_request_free(request);
        assert_true(becomes(&cancelled, i + 1));
        assert_true(becomes(&running, 0));
    }
    ew_app_free(runtime);
    ew_app_free(w.manager);
}

static void two_runtimes(void **state) {
    (void)state;
    world w;
    answer a = {.chunks = 0};
    setup_world(&w, 2);
    ew_app *first = start_runtime(&w, "a", true), *second = start_runtime(&w, "b", true);
    wait_for(&w, "a:/test/who", EW_STATUS_OK);
    wait_for(&w, "b:/test/who", EW_STATUS_OK);
    ew_client *client = client_to(w.http);
    ask(client, "/test/who", "null", false, &a);
    assert_int_equal(a.status, EW_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(a.text, "a:/test/who"));
    assert_non_null(strstr(a.text, "b:/test/who"));
    ask(client, "b:/test/who", "null", false, &a);
    assert_string_equal(a.text, "\"b\"");
    ew_app_free(second);
    wait_for(&w, "b:/test/who", EW_STATUS_NOT_FOUND);
    wait_for(&w, "/test/who", EW_STATUS_OK);
    ew_client_free(client);
    ew_app_free(first);
    ew_app_free(w.manager);
}

/* The runtime goes in the middle of a call, and so does the manager. */
static void gone(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        world w;
        ew_end end;
        ew_request *request = NULL;
        setup_world(&w, 2);
        ew_app *runtime = start_runtime(&w, "r", false);
        wait_for(&w, "/test/who", EW_STATUS_OK);
        ew_client *client = client_to(w.http);
        assert_int_equal(ew_client_call(client, &(ew_request_options){.action = EW_STR("forever")}, &request), EW_OK);
        assert_true(becomes(&running, 1));
        if (i % 2 == 0) {
            ew_app_free(runtime);
            assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
            assert_true(end.status == EW_STATUS_UNAVAILABLE || end.status == EW_STATUS_CANCELLED);
            ew_app_free(w.manager);
        } else {
            ew_app_free(w.manager);
            assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
            assert_int_equal(end.status, EW_STATUS_UNAVAILABLE);
            assert_true(becomes(&cancelled, 1));
            ew_app_free(runtime);
        }
        ew_request_free(request);
        ew_client_free(client);
    }
}

/* Calls while runtimes come and go: each ends once, well or with a reason. */
static void restless(void **state) {
    (void)state;
    world w;
    setup_world(&w, 2);
    ew_app *runtime = start_runtime(&w, "stays", false);
    wait_for(&w, "/test/echo", EW_STATUS_OK);
    ew_client *clients[4];
    for (int i = 0; i < 4; i++)
        clients[i] = client_to(i % 2 ? w.http : w.jsonrpc);
    for (int round = 0; round < 6; round++) {
        ew_request *requests[4][40];
        ew_app *guest = start_runtime(&w, "guest", true);
        for (int k = 0; k < 40; k++)
            for (int i = 0; i < 4; i++) {
                ew_request_options options = {.action = ew_str_from(k % 4 ? "/test/echo" : "guest:/test/who"),
                                              .input = EW_STR("[1]")};
                assert_int_equal(ew_client_call(clients[i], &options, &requests[i][k]), EW_OK);
            }
        ew_app_free(guest);
        for (int k = 0; k < 40; k++)
            for (int i = 0; i < 4; i++) {
                ew_end end;
                assert_int_equal(ew_request_wait(requests[i][k], WAIT_MS, &end), EW_OK);
                if (k % 4)
                    assert_int_equal(end.status, EW_STATUS_OK);
                else if (end.status != EW_STATUS_OK && end.status != EW_STATUS_NOT_FOUND &&
                         end.status != EW_STATUS_UNAVAILABLE && end.status != EW_STATUS_CANCELLED)
                    fail_msg("%s: %.*s", ew_status_name(end.status), (int)end.fault.message.len, end.fault.message.ptr);
                ew_request_free(requests[i][k]);
            }
    }
    for (int i = 0; i < 4; i++)
        ew_client_free(clients[i]);
    ew_app_free(runtime);
    ew_app_free(w.manager);
}

/* A client that listens by itself. */
static void clients_that_listen(void **state) {
    (void)state;
    world w;
    answer a = {.chunks = 0};
    ew_client *client = client_to("reflection://127.0.0.1:0"), *second = NULL;
    const char *problem = NULL;
    char target[64];
    assert_true(ew_client_port(client) > 0);
    assert_int_equal(ew_client_runtimes(client), 0);
    (void)snprintf(target, sizeof target, "reflection://127.0.0.1:%d", ew_client_port(client));
    assert_int_equal(ew_client_new(target, NULL, &second, &problem), EW_EADDRINUSE);
    assert_non_null(strstr(problem, "in use"));
    assert_int_equal(ew_client_new("reflection://0.0.0.0:0", NULL, &second, &problem), EW_EACCESS);
    ew_client_options remote = {.allow_remote = true};
    assert_int_equal(ew_client_new("reflection://0.0.0.0:0", &remote, &second, &problem), EW_EACCESS);
    assert_non_null(strstr(problem, "token"));
    remote.no_token = true;
    assert_int_equal(ew_client_new("reflection://0.0.0.0:0", &remote, &second, NULL), EW_OK);
    ew_client_free(second);
    remote = (ew_client_options){.allow_remote = true, .token = "ewt_secret"};
    assert_int_equal(ew_client_new("reflection://0.0.0.0:0", &remote, &second, NULL), EW_OK);
    ew_client_free(second);
    (void)snprintf(w.ws, sizeof w.ws, "ws://127.0.0.1:%d", ew_client_port(client));
    atomic_store(&cancelled, 0);
    atomic_store(&running, 0);
    ew_app *runtime = start_runtime(&w, "r", false);
    ask(client, "echo", "\"waits for it\"", false, &a);
    assert_string_equal(a.text, "\"waits for it\"");
    assert_int_equal(ew_client_runtimes(client), 1);
    ask(client, "r:/test/pour", "3000", true, &a);
    assert_int_equal(atomic_load(&a.chunks), 3000);
    ask(client, "ecko", "null", false, &a);
    assert_int_equal(a.status, EW_STATUS_NOT_FOUND);
    assert_non_null(strstr(a.text, "/test/echo"));
    ew_app *other = start_runtime(&w, "s", true);
    for (int i = 0; ew_client_runtimes(client) < 2 && i < 3000; i++)
        (void)usleep(10000);
    for (int i = 0; i < 500; i++) { /* until what it offers is known */
        ask(client, "who", "null", false, &a);
        if (a.status != EW_STATUS_OK)
            break;
        (void)usleep(10000);
    }
    assert_int_equal(a.status, EW_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(a.text, "r:/test/who, s:/test/who"));
    ask(client, "s:who", "null", false, &a);
    assert_string_equal(a.text, "\"s\"");
    ew_request *request = NULL;
    assert_int_equal(ew_client_call(client, &(ew_request_options){.action = EW_STR("forever")}, &request), EW_OK);
    assert_true(becomes(&running, 1));
    ew_client_free(client); /* with a call that runs */
    assert_true(becomes(&cancelled, 1));
    ew_request_free(request);
    ew_app_free(runtime);
    ew_app_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),    cmocka_unit_test(back_pressure),       cmocka_unit_test(input_streams),
        cmocka_unit_test(cancel),   cmocka_unit_test(two_runtimes),        cmocka_unit_test(gone),
        cmocka_unit_test(restless), cmocka_unit_test(clients_that_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
