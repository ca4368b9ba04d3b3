/*
 * tests/unit/client/test_call_back.c: calls both ways on one connection, notifications, ids and input streams through the
 * public API, over the jsonrpc wire on real loops, on TCP and on a Unix socket.
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

#define WAIT_MS 20000

/* What the handlers of both sides have seen. */
static atomic_int noted, told, lost, refused, begun;

static bool becomes(atomic_int *value, int wanted) {
    for (int i = 0; i < 2000; i++) {
        if (atomic_load(value) == wanted)
            return true;
        (void)usleep(10000);
    }
    return false;
}

/* ---- actions of the server ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void note(ew_call *call, void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    (void)ew_call_done(call, EW_STR("null"));
}

/* Passes the end of the call that went back on to the call that it is for; the reference was for this. */
static void pass_on(ew_request *request, const ew_end *end, void *ud) {
    ew_call *call = ud;
    (void)request;
    if (end->status == EW_STATUS_OK)
        (void)ew_call_donef(call, "{\"said\":%j}", end->result);
    else
        (void)ew_call_fail_with(call, &end->fault);
    ew_call_unref(call);
}

static void pass_chunk(ew_request *request, ew_str chunk, void *ud) {
    (void)request;
    (void)ew_call_chunk(ud, chunk);
}

/* Asks its caller: {"action":NAME,"stream":BOOL}. */
static void ask(ew_call *call, void *arg) {
    (void)arg;
    ew_request_options options = {.action = json_str_or(ew_call_input(call), "/action", EW_STR("approve")),
                                  .input = ew_call_input(call),
                                  .stream = json_bool_or(ew_call_input(call), "/stream", false),
                                  .on_chunk = pass_chunk,
                                  .on_end = pass_on,
                                  .ud = ew_call_ref(call)};
    (void)ew_call_chunk(call, EW_STR("\"before\""));
    ew_err err = ew_call_back(call, &options, NULL);
    if (err != EW_OK) {
        (void)ew_call_fail(call, EW_STATUS_FAILED_PRECONDITION, ew_err_name(err));
        ew_call_unref(call);
    }
}

/* The same on a worker thread, where it may wait. */
static void ask_and_wait(ew_call *call, void *arg) {
    (void)arg;
    ew_request *request = NULL;
    ew_end end = {.status = EW_STATUS_UNKNOWN};
    ew_request_options options = {.action = EW_STR("approve"), .input = EW_STR("\"from a worker\"")};
    ew_err err = ew_call_back(call, &options, &request);
    if (err == EW_OK)
        err = ew_request_wait(request, WAIT_MS, &end);
    (void)ew_call_donef(call, "[%Q,%Q,%j]", ew_err_name(err), ew_status_name(end.status),
                        end.result.len ? end.result : EW_STR("null"));
    ew_request_free(request);
}

static void count_refused(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    (void)ud;
    if (end->status == EW_STATUS_UNAVAILABLE)
        atomic_fetch_add(&refused, 1);
}

/* Sends its caller n notifications before it answers; after its end nobody is there to be called. */
static void tell(ew_call *call, void *arg) {
    (void)arg;
    int64_t n = json_int_or(ew_call_input(call), "", 1);
    for (int64_t i = 0; i < n; i++)
        if (ew_call_back(call, &(ew_request_options){.action = EW_STR("event"), .notify = true}, NULL) != EW_OK)
            (void)ew_call_fail(call, EW_STATUS_INTERNAL, "not told");
    ew_call_ref(call);
    (void)ew_call_done(call, EW_STR("true"));
    (void)ew_call_back(call, &(ew_request_options){.action = EW_STR("event"), .on_end = count_refused}, NULL);
    ew_call_unref(call);
}

static void count_lost(ew_request *request, const ew_end *end, void *ud) {
    ew_call *call = ud;
    (void)request;
    atomic_fetch_add(&lost, end->status == EW_STATUS_UNAVAILABLE && end->origin == EW_ORIGIN_CONNECT ? 1 : 100);
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
    ew_call_unref(call);
}

static void ask_for_ever(ew_call *call, void *arg) {
    (void)arg;
    ew_request_options options = {.action = EW_STR("forever"), .on_end = count_lost, .ud = ew_call_ref(call)};
    if (ew_call_back(call, &options, NULL) != EW_OK)
        ew_call_unref(call);
}

static void add_up(ew_call *call, ew_str chunk, bool end, void *arg) {
    int64_t *sum = arg;
    if (end)
        (void)ew_call_donef(call, "%lld", (long long)*sum);
    else
        *sum += json_int_or(chunk, "/n", 0);
}

static void look(ew_call *call, void *arg) {
    if (ew_call_on_input(call, add_up, arg) != EW_OK)
        (void)ew_call_fail(call, EW_STATUS_FAILED_PRECONDITION, "no input");
}

/* Adds up the members "n" of its input, and looks at it late, so that its sender has to wait. */
static void sum(ew_call *call, void *arg) {
    (void)arg;
    int64_t *total = ew_call_alloc(call, sizeof *total);
    if (!total || ew_call_after(call, 300, look, total) != EW_OK)
        (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
    else
        *total = 0;
}

/* ---- actions of the client ---- */

static void approve(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_chunk(call, EW_STR("\"thinking\""));
    (void)ew_call_donef(call, "{\"yes\":%j}", ew_call_input(call));
}

static void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static void forever(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    atomic_fetch_add(&begun, 1);
}

/* ---- the world ---- */

typedef struct world {
    ew_app *app, *answers; /* the server; what the client lets itself be called */
    ew_client *client;
    char path[64], target[128];
} world;

static void add(ew_app *app, const char *key, ew_handler_fn fn, void *arg, bool may_block) {
    assert_int_equal(ew_app_action(app, key, fn, arg, &(ew_action_options){.may_block = may_block}), EW_OK);
}

static void start(world *w, const char *kind) {
    char listen[128];
    int port = 0;
    *w = (world){.app = ew_app_new_with("server", &(ew_app_options){.threads = 2}), .answers = ew_app_new("client")};
    assert_true(w->app && w->answers);
    add(w->app, "/s/echo", echo, NULL, false);
    add(w->app, "/s/note", note, &noted, false);
    add(w->app, "/s/ask", ask, NULL, false);
    add(w->app, "/s/ask_and_wait", ask_and_wait, NULL, true);
    add(w->app, "/s/ask_for_ever", ask_for_ever, NULL, false);
    add(w->app, "/s/tell", tell, NULL, false);
    add(w->app, "/s/sum", sum, NULL, false);
    add(w->answers, "/c/approve", approve, NULL, false);
    add(w->answers, "/c/event", note, &told, false);
    add(w->answers, "/c/forever", forever, NULL, false);
    (void)snprintf(w->path, sizeof w->path, "/tmp/ew_call_back_%d.sock", (int)getpid());
    (void)snprintf(listen, sizeof listen, "jsonrpc=unix:%s", w->path);
    bool on_unix = strcmp(kind, "unix") == 0, on_http = strcmp(kind, "http") == 0;
    assert_int_equal(ew_app_listen(w->app, on_unix   ? listen
                                           : on_http ? "http=127.0.0.1:0"
                                                     : "jsonrpc=127.0.0.1:0"),
                     EW_OK);
    assert_int_equal(ew_app_start(w->app), EW_OK);
    assert_int_equal(ew_app_listener(w->app, 0, NULL, NULL, &port), EW_OK);
    if (on_unix)
        (void)snprintf(w->target, sizeof w->target, "jsonrpc+unix:%s", w->path);
    else
        (void)snprintf(w->target, sizeof w->target, "%s://127.0.0.1:%d", on_http ? "http" : "jsonrpc", port);
    ew_client_options options = {.actions = on_http ? NULL : w->answers};
    assert_int_equal(ew_client_new(w->target, &options, &w->client, NULL), EW_OK);
    atomic_store(&noted, 0);
    atomic_store(&told, 0);
    atomic_store(&lost, 0);
    atomic_store(&begun, 0);
    atomic_store(&refused, 0);
}

static void stop(world *w) {
    ew_client_free(w->client);
    ew_app_free(w->app);
    ew_app_free(w->answers);
}

static ew_end end_of(ew_request *request) {
    ew_end end;
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    return end;
}

static void expect(world *w, const ew_request_options *options, const char *result) {
    ew_request *request = NULL;
    assert_int_equal(ew_client_call(w->client, options, &request), EW_OK);
    ew_end end = end_of(request);
    if (end.status != EW_STATUS_OK || !ew_str_eq(end.result, ew_str_from(result)))
        fail_msg("%s: %.*s", ew_status_name(end.status),
                 (int)(end.status == EW_STATUS_OK ? end.result.len : end.fault.message.len),
                 end.status == EW_STATUS_OK ? end.result.ptr : end.fault.message.ptr);
    ew_request_free(request);
}

static void expect_failure(world *w, const ew_request_options *options, ew_status status, ew_origin origin) {
    ew_request *request = NULL;
    assert_int_equal(ew_client_call(w->client, options, &request), EW_OK);
    ew_end end = end_of(request);
    assert_int_equal(end.status, status);
    assert_int_equal(end.origin, origin);
    ew_request_free(request);
}

typedef struct heard {
    char text[200];
    size_t n;
} heard;

static void hear(ew_request *request, ew_str chunk, void *ud) {
    heard *h = ud;
    (void)request;
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%.*s ", (int)chunk.len, chunk.ptr);
}

/* ---- tests; *state is the kind of socket ---- */

static void test_api_call_back__asks_its_caller(void **state) {
    world w;
    heard h = {.n = 0};
    start(&w, *state);
    expect(&w, &(ew_request_options){.action = EW_STR("ask"), .input = EW_STR("{\"q\":1}")},
           "{\"said\":{\"yes\":{\"q\":1}}}");
    expect(
        &w,
        &(ew_request_options){
            .action = EW_STR("ask"), .input = EW_STR("{\"stream\":true}"), .stream = true, .on_chunk = hear, .ud = &h},
        "{\"said\":{\"yes\":{\"stream\":true}}}");
    assert_string_equal(h.text, "\"before\" \"thinking\" ");
    expect_failure(&w, &(ew_request_options){.action = EW_STR("ask"), .input = EW_STR("{\"action\":\"nope\"}")},
                   EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION);
    expect(&w, &(ew_request_options){.action = EW_STR("ask_and_wait")},
           "[\"EW_OK\",\"OK\",{\"yes\":\"from a worker\"}]");
    stop(&w);
}

static void test_api_call_back__tells_its_caller(void **state) {
    world w;
    start(&w, *state);
    expect(&w, &(ew_request_options){.action = EW_STR("tell"), .input = EW_STR("20")}, "true");
    assert_true(becomes(&told, 20));
    assert_true(becomes(&refused, 1));
    assert_int_equal(atomic_load(&told), 20);
    stop(&w);
}

static void test_api_call_back__notifies(void **state) {
    world w;
    start(&w, *state);
    for (int i = 0; i < 5; i++)
        expect(&w, &(ew_request_options){.action = EW_STR("note"), .notify = true}, "null");
    expect(&w, &(ew_request_options){.action = EW_STR("nope"), .notify = true}, "null"); /* nobody will ever know */
    assert_true(becomes(&noted, 5));
    stop(&w);
}

static void test_api_call_back__chosen_ids(void **state) {
    world w;
    ew_request *first = NULL;
    start(&w, *state);
    expect(&w, &(ew_request_options){.action = EW_STR("echo"), .input = EW_STR("1"), .id = EW_STR("my \"id\"")}, "1");
    expect(&w, &(ew_request_options){.action = EW_STR("echo"), .input = EW_STR("2"), .id = EW_STR("my \"id\"")}, "2");
    ew_request_options held = {.action = EW_STR("sum"), .input_stream = true, .id = EW_STR("7")};
    assert_int_equal(ew_client_call(w.client, &held, &first), EW_OK);
    expect_failure(&w, &(ew_request_options){.action = EW_STR("echo"), .id = EW_STR("7")}, EW_STATUS_RESOURCE_EXHAUSTED,
                   EW_ORIGIN_LOCAL);
    assert_int_equal(ew_request_send_end(first), EW_OK);
    ew_end end = end_of(first);
    assert_true(ew_str_eq(end.result, EW_STR("0")));
    ew_request_free(first);
    stop(&w);
}

/* A sender that waits when it is told to gets everything across, however slow the other side is. */
static void test_api_call_back__sends_input(void **state) {
    enum { CHUNKS = 400, PAD = 20000 };
    world w;
    ew_request *request = NULL;
    int n_waits = 0;
    char *chunk = malloc(PAD + 100);
    assert_non_null(chunk);
    start(&w, *state);
    ew_request_options options = {.action = EW_STR("sum"), .input_stream = true};
    assert_int_equal(ew_client_call(w.client, &options, &request), EW_OK);
    int n = snprintf(chunk, PAD + 100, "{\"n\":2,\"pad\":\"%*s\"}", PAD, "");
    for (int i = 0; i < CHUNKS; i++) {
        ew_err err = ew_request_send(request, (ew_str){chunk, (size_t)n});
        if (err == EW_FULL) {
            n_waits++;
            err = ew_request_wait_room(request, WAIT_MS);
        }
        assert_int_equal(err, EW_OK);
    }
    assert_true(n_waits > 0); /* 8 MB do not fit between them */
    assert_int_equal(ew_request_send(request, EW_STR("{")), EW_ESYNTAX);
    assert_int_equal(ew_request_send_end(request), EW_OK);
    ew_end end = end_of(request);
    assert_int_equal(end.status, EW_STATUS_OK);
    assert_true(ew_str_eq(end.result, EW_STR("800")));
    assert_int_equal(ew_request_send(request, EW_STR("1")), EW_EENDED);
    assert_int_equal(ew_request_wait_room(request, WAIT_MS), EW_EENDED);
    ew_request_free(request);
    free(chunk);
    stop(&w);
}

typedef struct feeder {
    int left;
    atomic_int rooms;
} feeder;

/* On the loop: sends until it is full, or everything is sent. */
static void feed(ew_request *request, void *ud) {
    static const char pad[10000] = {0};
    static char chunk[sizeof pad + 40];
    feeder *f = ud;
    ew_err err = EW_OK;
    int n = snprintf(chunk, sizeof chunk, "{\"n\":1,\"pad\":\"%*s\"}", (int)sizeof pad, "");
    atomic_fetch_add(&f->rooms, 1);
    while (f->left > 0 && err == EW_OK) {
        err = ew_request_send(request, (ew_str){chunk, (size_t)n});
        f->left--;
    }
    if (f->left == 0 && (err == EW_OK || err == EW_FULL))
        (void)ew_request_send_end(request);
}

/* The same by callback. The first chunk is made so large that it asks for room. */
static void test_api_call_back__sends_on_room(void **state) {
    world w;
    ew_request *request = NULL;
    feeder f = {.left = 500};
    size_t size = 2 * 1024 * 1024;
    char *first = malloc(size);
    assert_non_null(first);
    start(&w, *state);
    ew_request_options options = {.action = EW_STR("sum"), .input_stream = true, .on_room = feed, .ud = &f};
    assert_int_equal(ew_client_call(w.client, &options, &request), EW_OK);
    memset(first, ' ', size);
    first[0] = '1';
    assert_int_equal(ew_request_send(request, (ew_str){first, size}), EW_FULL);
    ew_end end = end_of(request);
    if (end.status != EW_STATUS_OK)
        fail_msg("%s: %.*s", ew_status_name(end.status), (int)end.fault.message.len, end.fault.message.ptr);
    assert_true(ew_str_eq(end.result, EW_STR("500")));
    assert_true(atomic_load(&f.rooms) >= 1);
    ew_request_free(request);
    free(first);
    stop(&w);
}

/* The client goes while the server waits for its answer: that call ends, too. */
static void test_api_call_back__caller_goes(void **state) {
    world w;
    start(&w, *state);
    ew_request_options options = {.action = EW_STR("ask_for_ever")};
    assert_int_equal(ew_client_call(w.client, &options, NULL), EW_OK);
    assert_true(becomes(&begun, 1));
    w.client = ew_client_free(w.client);
    assert_true(becomes(&lost, 1));
    stop(&w);
}

/* A client that offers nothing is asked all the same, and says so. */
static void test_api_call_back__no_actions(void **state) {
    world w;
    start(&w, *state);
    ew_client_free(w.client);
    assert_int_equal(ew_client_new(w.target, NULL, &w.client, NULL), EW_OK);
    expect_failure(&w, &(ew_request_options){.action = EW_STR("ask")}, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION);
    stop(&w);
}

/* A wire of one role cannot. */
static void test_api_call_back__not_on_http(void **state) {
    world w;
    ew_request *request = NULL;
    (void)state;
    start(&w, "http");
    assert_int_equal(ew_client_call(w.client, &(ew_request_options){.action = EW_STR("ask")}, &request), EW_OK);
    ew_end end = end_of(request);
    assert_int_equal(end.status, EW_STATUS_FAILED_PRECONDITION);
    assert_true(ew_str_eq(end.fault.message, EW_STR("EW_EUNSUPPORTED")));
    ew_request_free(request);
    stop(&w);
}

#define ON_BOTH(fn)                                                                                                    \
    {#fn "__tcp", fn, NULL, NULL, "tcp"}, { #fn "__unix", fn, NULL, NULL, "unix" }

int main(void) {
    static struct CMUnitTest tests[] = {
        {"test_api_call_back__not_on_http", test_api_call_back__not_on_http, NULL, NULL, NULL},
        ON_BOTH(test_api_call_back__asks_its_caller),
        ON_BOTH(test_api_call_back__tells_its_caller),
        ON_BOTH(test_api_call_back__notifies),
        ON_BOTH(test_api_call_back__chosen_ids),
        ON_BOTH(test_api_call_back__sends_input),
        ON_BOTH(test_api_call_back__sends_on_room),
        ON_BOTH(test_api_call_back__caller_goes),
        ON_BOTH(test_api_call_back__no_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
