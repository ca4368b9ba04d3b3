/*
 * tests/unit/gateway/test_telemetry.c: the spans of an app's calls arrive at a telemetry server: through the public API, on
 * real loops, with a server that is well, silent, away, named by the program or by a peer.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/app.h"
#include "support/json_or.h"
#include "support/port.h"
#include "support/sink.h"
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_MS 20000

typedef struct rig {
    ew_app *app, *answers;
    ew_client *client;
    char target[64];
    ew_env env;
    atomic_uint n_lines;
    char line[512]; /* the last but one write wins; read when the app has stopped */
} rig;

static void keep_line(void *ud, ew_log_level level, const char *room, ew_str line) {
    rig *r = ud;
    if (level > EW_LOG_WARN || strcmp(room, "telemetry") != 0)
        return;
    (void)snprintf(r->line, sizeof r->line, "%.*s", (int)line.len, line.ptr);
    atomic_fetch_add(&r->n_lines, 1);
}

/* ---- actions ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static ew_call *_Atomic held;

static void hold(ew_call *call, void *arg) {
    (void)arg;
    atomic_store(&held, ew_call_ref(call));
}

static void pass_on(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    if (end->status == EW_STATUS_OK)
        (void)ew_call_done(ud, end->result);
    else
        (void)ew_call_fail_with(ud, &end->fault);
    ew_call_unref(ud);
}

/* Asks its caller, on the same connection. */
static void ask(ew_call *call, void *arg) {
    ew_request_options options = {
        .action = EW_STR("/tool/approve"), .input = EW_STR("1"), .on_end = pass_on, .ud = ew_call_ref(call)};
    (void)arg;
    assert_int_equal(ew_call_back(call, &options, NULL), EW_OK);
}

/* Calls another action of this app through a client: arg is where it stands. */
static void relay(ew_call *call, void *arg) {
    ew_request_options options = {.action = EW_STR("/flow/echo"),
                                  .input = EW_STR("\"relayed\""),
                                  .parent = call,
                                  .on_end = pass_on,
                                  .ud = ew_call_ref(call)};
    assert_int_equal(ew_client_call(*(ew_client **)arg, &options, NULL), EW_OK);
}

/* ---- the rig ---- */

static void rig_init(rig *r, const char *wire, ew_app_options options) {
    char listen[64];
    int port = 0;
    memset(r, 0, sizeof *r);
    r->env = *ew_env_default();
    r->env.log = keep_line;
    r->env.ud = r;
    options.env = &r->env;
    options.threads = options.threads ? options.threads : 1;
    r->app = ew_app_new_with("telemetry", &options);
    r->answers = ew_app_new("answers");
    assert_true(r->app && r->answers);
    assert_int_equal(ew_app_action(r->app, "/flow/echo", echo, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(r->app, "/flow/hold", hold, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(r->app, "/flow/ask", ask, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_action(r->app, "/flow/relay", relay, &r->client, NULL), EW_OK);
    assert_int_equal(ew_app_action(r->answers, "/tool/approve", echo, NULL, NULL), EW_OK);
    (void)snprintf(listen, sizeof listen, "%s=127.0.0.1:0", wire);
    assert_int_equal(ew_app_listen(r->app, listen), EW_OK);
    assert_int_equal(ew_app_start(r->app), EW_OK);
    assert_int_equal(ew_app_listener(r->app, 0, NULL, NULL, &port), EW_OK);
    (void)snprintf(r->target, sizeof r->target, "%s://127.0.0.1:%d", wire, port);
    ew_client_options client = {.actions = strcmp(wire, "http") == 0 ? NULL : r->answers};
    assert_int_equal(ew_client_new(r->target, &client, &r->client, NULL), EW_OK);
}

static void rig_done(rig *r) {
    ew_client_free(r->client);
    ew_app_stop(r->app);
    assert_int_equal(ew_app_wait(r->app), EW_OK);
    ew_app_free(r->app);
    ew_app_free(r->answers);
}

static const char *url_of(const sink *s) {
    static char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", s->port);
    return url;
}

static ew_request *begin(rig *r, const char *action, const char *traceparent) {
    ew_request *request = NULL;
    ew_request_options options = {
        .action = ew_str_from(action), .input = EW_STR("\"in\""), .traceparent = ew_str_from(traceparent)};
    assert_int_equal(ew_client_call(r->client, &options, &request), EW_OK);
    return request;
}

static void finish(ew_request *request) {
    ew_end end;
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    if (end.status != EW_STATUS_OK)
        fail_msg("%.*s", (int)end.fault.message.len, end.fault.message.ptr);
    ew_request_free(request);
}

static void call(rig *r, const char *action) { finish(begin(r, action, NULL)); }

static ew_str span_of(sink *s, size_t i) {
    ew_json_iter it = {0};
    const char *body = sink_body(s, i);
    assert_non_null(body);
    assert_int_equal(ew_json_check(ew_str_from(body), NULL), EW_OK);
    assert_true(ew_json_next(ew_json_get(ew_str_from(body), "/spans"), &it));
    return it.value;
}

static void assert_json(ew_str json, const char *pointer, const char *wanted) {
    ew_str value = ew_json_get(json, pointer);
    if (!ew_str_eq(value, ew_str_from(wanted)))
        fail_msg("%s is %.*s, not %s", pointer, (int)value.len, value.ptr, wanted);
}

static bool same(ew_str a, const char *at, ew_str b, const char *bt) {
    ew_str x = ew_json_get(a, at), y = ew_json_get(b, bt);
    return x.len > 0 && ew_str_eq(x, y);
}

/* ---- the tests ---- */

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void test_telemetry__call(void **state) {
    rig r;
    sink s;
    uint64_t exported = 0, dropped = 0;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, "http", (ew_app_options){.telemetry = url_of(&s)});
    finish(begin(&r, "echo", PARENT));
    assert_true(sink_wait(&s, 1));
    ew_str span = span_of(&s, 0);
    assert_json(span, "/traceId", "\"0af7651916cd43dd8448eb211c80319c\"");
    assert_json(span, "/attributes/genkit:key", "\"/flow/echo\"");
    assert_json(span, "/attributes/genkit:input", "\"\\\"in\\\"\"");
    assert_json(span, "/attributes/genkit:output", "\"\\\"in\\\"\"");
    assert_json(span, "/attributes/genkit:state", "\"success\"");
    assert_true(json_double_or(span, "/endTime", 0) >= json_double_or(span, "/startTime", 0));
    double now = (double)ew_env_default()->wall_ms(NULL);
    assert_true(now - json_double_or(span, "/startTime", 0) < 60000);
    for (int i = 0; i < 2000 && exported == 0; i++, (void)usleep(1000))
        ew__app_telemetry_count(r.app, &exported, &dropped);
    assert_int_equal(exported, 1);
    assert_int_equal(dropped, 0);
    rig_done(&r);
    assert_int_equal(s.n_posts, 1);
    sink_stop(&s);
}

static void test_telemetry__realtime(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, "http", (ew_app_options){.telemetry = url_of(&s), .telemetry_realtime = true});
    ew_request *request = begin(&r, "hold", NULL);
    assert_true(sink_wait(&s, 1)); /* while it runs */
    assert_json(span_of(&s, 0), "/endTime", "0");
    ew_call *running = atomic_load(&held);
    assert_int_equal(ew_call_done(running, EW_STR("1")), EW_OK);
    ew_call_unref(running);
    finish(request);
    assert_true(sink_wait(&s, 2));
    assert_json(span_of(&s, 1), "/attributes/genkit:output", "\"1\"");
    assert_true(same(span_of(&s, 0), "/spanId", span_of(&s, 1), "/spanId"));
    rig_done(&r);
    sink_stop(&s);
}

/* A call that goes back to the caller is a child of the one that it goes back on. */
static void test_telemetry__call_back(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, "jsonrpc", (ew_app_options){.telemetry = url_of(&s), .telemetry_realtime = true});
    call(&r, "ask");
    assert_true(sink_wait(&s, 1));
    rig_done(&r); /* flushes */
    ew_str parent = {0}, child = {0};
    for (size_t i = 0; sink_body(&s, i); i++) {
        ew_json_iter it = {0};
        while (ew_json_next(ew_json_get(ew_str_from(sink_body(&s, i)), "/spans"), &it)) {
            if (ew_str_eq(ew_json_get(it.value, "/spanKind"), EW_STR("\"CLIENT\"")))
                child = it.value;
            else
                parent = it.value;
        }
    }
    assert_true(same(parent, "/traceId", child, "/traceId"));
    assert_true(same(parent, "/spanId", child, "/parentSpanId"));
    assert_json(parent, "/attributes/genkit:isRoot", "true");
    assert_json(child, "/attributes/genkit:path", "\"/{ask,t:flow}/{approve,t:action,s:tool}\"");
    assert_json(child, "/attributes/genkit:output", "\"1\"");
    sink_stop(&s);
}

/* A call of a client that is made for another one continues its trace. */
static void test_telemetry__parent(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, "http", (ew_app_options){.telemetry = url_of(&s)});
    call(&r, "relay");
    rig_done(&r);
    ew_str inner = {0}, outer = {0};
    for (size_t i = 0; sink_body(&s, i); i++) {
        ew_json_iter it = {0};
        while (ew_json_next(ew_json_get(ew_str_from(sink_body(&s, i)), "/spans"), &it))
            *(ew_str_eq(ew_json_get(it.value, "/displayName"), EW_STR("\"echo\"")) ? &inner : &outer) = it.value;
    }
    assert_true(same(inner, "/traceId", outer, "/traceId"));
    assert_true(same(outer, "/spanId", inner, "/parentSpanId"));
    sink_stop(&s);
}

/* What is queued when the app stops still arrives, from all loops. */
static void test_telemetry__flush(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, false));
    rig_init(&r, "http", (ew_app_options){.telemetry = url_of(&s), .threads = 2});
    for (int i = 0; i < 20; i++)
        call(&r, "echo");
    rig_done(&r);
    assert_int_equal(s.n_posts, 20);
    sink_stop(&s);
}

/* A server that is away or says nothing: every call still ends as it should; what does not fit is counted. */
static void test_telemetry__dead_server(void **state) {
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        rig r;
        sink s;
        char url[64];
        uint64_t exported = 0, dropped = 0;
        assert_true(sink_start(&s, 0, false));
        atomic_store(&s.mode, SINK_SILENT);
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", silent ? s.port : free_port());
        rig_init(&r, "http", (ew_app_options){.telemetry = url, .limits = {.trace_queue_items = 50}});
        for (int i = 0; i < 200; i++)
            call(&r, "echo");
        ew__app_telemetry_count(r.app, &exported, &dropped);
        assert_int_equal(exported, 0);
        assert_true(dropped >= 140 && dropped <= 150);
        rig_done(&r);
        assert_true(silent || r.n_lines == 1);
        sink_stop(&s);
    }
}

static bool push_and_wait(rig *r, sink *s, const char *url, unsigned posts) {
    ew__app_telemetry_pushed(r->app, ew_str_from(url));
    for (int i = 0; i < 100 && atomic_load(&s->n_posts) < posts; i++) {
        call(r, "echo");
        (void)usleep(2000);
    }
    return atomic_load(&s->n_posts) >= posts;
}

static void test_telemetry__pushed(void **state) {
    rig r;
    sink s, t;
    char other[64], evil[64];
    (void)state;
    assert_true(sink_start(&s, 0, true));
    assert_true(sink_start(&t, 0, true));
    (void)snprintf(other, sizeof other, "http://localhost:%u", t.port);
    (void)snprintf(evil, sizeof evil, "http://0.0.0.0:%u", s.port);
    rig_init(&r, "http", (ew_app_options){.threads = 2});
    assert_false(push_and_wait(&r, &s, evil, 1));
    assert_false(push_and_wait(&r, &s, "", 1));
    assert_int_equal(r.n_lines, 1);
    assert_true(push_and_wait(&r, &s, url_of(&s), 3));
    assert_true(push_and_wait(&r, &t, other, 3)); /* and on to another */
    rig_done(&r);
    assert_non_null(strstr(r.line, "on this machine only"));
    unsigned before = atomic_load(&t.n_posts);
    rig_init(&r, "http", (ew_app_options){.telemetry = url_of(&s)}); /* the program's own wins */
    assert_false(push_and_wait(&r, &t, other, before + 1));
    rig_done(&r);
    sink_stop(&s);
    sink_stop(&t);
}

static void test_telemetry__bad_url(void **state) {
    rig r;
    (void)state;
    rig_init(&r, "http", (ew_app_options){.telemetry = "ftp://localhost:4033", .threads = 2});
    call(&r, "echo");
    rig_done(&r);
    assert_int_equal(r.n_lines, 1);
    assert_non_null(strstr(r.line, "looks like http://HOST:PORT"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_telemetry__call),      cmocka_unit_test(test_telemetry__realtime),
        cmocka_unit_test(test_telemetry__call_back), cmocka_unit_test(test_telemetry__parent),
        cmocka_unit_test(test_telemetry__flush),     cmocka_unit_test(test_telemetry__dead_server),
        cmocka_unit_test(test_telemetry__pushed),    cmocka_unit_test(test_telemetry__bad_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
