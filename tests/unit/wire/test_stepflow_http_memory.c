/*
 * tests/unit/wire/test_stepflow_http_memory.c: sessions of Stepflow over HTTP in which each allocation fails in turn,
 * alone and with all after it: calls back, what servers ask, the Blob HTTP API. Nothing is expected but what the rig
 * checks in the end: every call has ended once, and nothing is left. (The contract's scenarios have the same for plain
 * calls with everywire on both sides.)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "unit/wire/stepflow_http_back.h"
#include "unit/wire/stepflow_http_call.h"
#include "wire/stepflow/blob_id.h"

typedef struct session {
    const ew__wire *calls;
    const ew__http_guest *guest;
    void (*play)(world *w);
} session;

static void life(const session *s, rig_split split, uint64_t fail_at, bool all, uint64_t *ret_failed) {
    world w;
    ew__blobs *blobs = NULL;
    world_init(&w, s->calls, s->guest, (rig_options){.split = split, .limits = {.runtime_wait_ms = 1000}});
    ew__test_env_fail_at(&w.r.env, fail_at, all);
    (void)ew__blobs_memory(&w.r.env.env, ew__blob_id, 100000, &blobs);
    client_site(&w)->blobs = server_site(&w)->blobs = blobs;
    server_site(&w)->instance = &w.instance;
    s->play(&w);
    *ret_failed = ew__test_env_failed(&w.r.env);
    ew__test_env_fail_at(&w.r.env, 0, false);
    rig_check_no_hang(&w.r);
    if (blobs)
        blobs->free(blobs);
    client_site(&w)->blobs = server_site(&w)->blobs = NULL;
    world_done(&w);
}

static void every_life(const session *s) {
    for (int split = RIG_WHOLE; split <= RIG_BYTES; split++) {
        uint64_t failed = 1, n = 1;
        for (; failed > 0 && n < 5000; n++) {
            life(s, (rig_split)split, n, false, &failed);
            life(s, (rig_split)split, n, true, &failed);
        }
        assert_int_equal(failed, 0);
        assert_true(n > 10);
    }
}

/* The last id of the form "0-ew..." that was said on this connection becomes $1; false: none was. */
static bool find_id(world *w, rig_pair *pair) {
    const char *got = raw_end(pair)->got, *at = NULL;
    for (const char *next = got; next && (next = strstr(next, "\"0-ew")) != NULL; next++)
        at = next;
    const char *end = at ? strchr(at + 1, '"') : NULL;
    if (!end || (size_t)(end - at) + 2 > sizeof w->ids[1])
        return false;
    memset(w->ids[1], 0, sizeof w->ids[1]);
    memcpy(w->ids[1], at, (size_t)(end - at) + 1);
    return true;
}

/* ---- a component server ---- */

static void play_server(world *w) {
    back a = {.ends = true}, b = {.again = 3};
    rig_pair *pair = runtime(w), *other = runtime(w);
    post(w, pair, RPC "'id':'\xc3\xa9','method':'initialize','params':{'capabilities':{'blobApiUrl':'http:\\/\\/h'}}}");
    post(w, pair, RPC "'id':'\xc3\xa9','method':'components/list'}");
    post(w, pair, RPC "'id':1,'method':'components/info','params':{'component':'/\xc3\xa9'}}");
    post(w, pair, EXECUTE("'\xc3\xa9'", "/nope", "1"));
    post(w, pair, EXECUTE("1", "same", "1"));
    post(w, pair, EXECUTE("'\xc3\xa9'", "/echo", "['\xc3\xa9']"));
    post(w, pair, EXECUTE("1", "/fail", "{'message':'\xc3\xa9','details':['\xc3\xa9']}"));
    post(w, pair, "nonsense");
    post(w, pair, RPC "'id':'x','result':1}");
    post(w, pair,
         RPC "'id':'\xc3\xa9','method':'components/execute','params':{'component':'/hold','run_id':'r',"
             "'observability':{'trace_id':'0af7651916cd43dd8448eb211c80319c','span_id':'b7ad6b7169203331'}}}");
    ew_call *call = w->r.held;
    w->r.held = NULL;
    if (!call)
        return;
    ask_with(w, call, &b, "m", "{\"a\":\n\"\xc3\xa9\"}");
    if (find_id(w, pair))
        post(w, other, RPC "'id':$1,'result':['\xc3\xa9']}");
    ask_with(w, call, &b, "n", "{}");
    if (find_id(w, pair))
        post(w, other, RPC "'id':$1,'error':{'code':-32000,'message':'\\u00e9'}}");
    rig_advance(&w->r, 15000);
    ask_with(w, call, &a, "o", "{}");
    rig_cut(pair, RIG_CLIENT, RIG_RESET);
    rig_run(&w->r);
    ew_call_unref(call);
}

static void play_server_end(world *w) {
    back b = {.again = 1};
    rig_pair *pair = runtime(w);
    post(w, pair, EXECUTE("'\xc3\xa9'", "/hold", "1"));
    ew_call *call = w->r.held;
    w->r.held = NULL;
    if (!call)
        return;
    ask_with(w, call, &b, "m", "{}");
    (void)ew_call_done(call, EW_STR("[\"\xc3\xa9\"]"));
    rig_run(&w->r);
    ew_call_unref(call);
    post(w, pair, EXECUTE("1", "/echo", "1"));
}

static void test_wire_stepflow_http_memory__server(void **state) {
    (void)state;
    every_life(&(session){.play = play_server});
    every_life(&(session){.play = play_server_end});
}

/* ---- a runtime ---- */

/* What the server says, with the id that it was asked with last. */
static void say_as(world *w, rig_pair *pair, const char *head, const char *body) {
    const char *got = raw_end(pair)->got, *at = NULL;
    for (const char *next = got; next && (next = strstr(next, "\"id\":\"ew")) != NULL; next++)
        at = next + 5;
    const char *end = at ? strchr(at + 1, '"') : NULL;
    if (!end)
        return;
    memset(w->ids[1], 0, sizeof w->ids[1]);
    memcpy(w->ids[1], at, (size_t)(end - at) + 1);
    say_message(w, pair, head, body);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define EVENTS OK_HEAD "Content-Type: text/event-stream\r\nStepflow-Instance-Id: i\r\n"

static void greet(world *w, rig_pair *pair) {
    say_as(w, pair, OK_HEAD, RPC "'id':$1,'result':{'server_protocol_version':1}}");
    say_as(w, pair, "HTTP/1.1 202 Accepted\r\n", "");
}

static void play_runtime(world *w) {
    rig_pair *a = server(w), *b = server(w), *c = server(w);
    client_site(w)->blob_api = EW_STR("http://127.0.0.1:1/b");
    (void)rig_open(a, &(rig_request){.key = "\xc3\xa9", .input = EW_STR("[\"\xc3\xa9\"]"), .context = "{\"x\":\n1}"});
    (void)open_call(b, "/b", "1");
    (void)open_list(c);
    rig_run(&w->r);
    greet(w, a);
    say_as(w, a, OK_HEAD, RPC "'id':$1,'error':{'code':-32001,'message':'no','data':{'c':1}}}");
    say_as(w, a, OK_HEAD, RPC "'id':$1,'result':{'output':['\xc3\xa9']}}");
    say_as(w, b, EVENTS,
           "data: " RPC "'id':'\xc3\xa9','method':'blobs/put','params':{'data':['\xc3\xa9']}}\n\ndata: " RPC
           "'id':1,'method':'blobs/get','params':{'blob_id':'x'}}\n\ndata: " RPC
           "'id':1,'method':'\xc3\xa9'}\n\ndata: " RPC "'id':$1,\ndata: 'result':{'output':1}}\n\n");
    say_as(w, c, OK_HEAD, RPC "'id':$1,'result':{'components':[{'component':'/a','description':'d'}]}}");
    (void)open_call(c, "/c", "1");
    say_as(w, c, "HTTP/1.1 400 Bad Request\r\n", "{'error':{'code':-32600,'message':'\\u00e9'}}");
}

static void play_refusal(world *w) {
    rig_pair *a = server(w), *b = server(w);
    (void)open_call(a, "/a", "1");
    (void)open_call(b, "/b", "1");
    say_as(w, a, "HTTP/1.1 503 No\r\n", "{'error':'\\u00e9'}");
    a = server(w);
    b = server(w);
    (void)open_call(a, "/a", "1");
    (void)open_call(b, "/b", "1");
    rig_say_eof(a);
    rig_advance(&w->r, 2000);
}

static void test_wire_stepflow_http_memory__runtime(void **state) {
    (void)state;
    every_life(&(session){.play = play_runtime});
    every_life(&(session){.play = play_refusal});
}

/* ---- both ---- */

static void play_both(world *w) {
    back b = {.ended = 0};
    rig_pair *pair = rig_connect(&w->r);
    (void)open_call(pair, "/hold", "1");
    ew_call *call = w->r.held;
    w->r.held = NULL;
    if (!call)
        return;
    ask_with(w, call, &b, "blobs/put", "{\"data\":[\"\xc3\xa9\"]}");
    (void)ew_call_done(call, EW_STR("7"));
    rig_run(&w->r);
    ew_call_unref(call);
}

static void play_blobs(world *w) {
    server_site(w)->path = client_site(w)->path = EW_STR("/b");
    rig_pair *pair = rig_connect(&w->r);
    static const char id[] = "{\"blob_id\":\"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b\"}";
    (void)open_call(pair, "blobs/put", "{\"data\":1}");
    (void)open_call(pair, "blobs/put", "{\"data\":\"\xc3\xa9\"}");
    (void)open_call(pair, "blobs/get", id);
    (void)open_call(pair, "blobs/get", "{\"blob_id\":\"nope\"}");
    (void)open_call(pair, "blobs/get", "{\"blob_id\":\"..\"}");
}

static void test_wire_stepflow_http_memory__both(void **state) {
    (void)state;
    every_life(&(session){.play = play_both});
    every_life(&(session){.calls = &ew__wire_blobs, .guest = &ew__blobs_guest, .play = play_blobs});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_memory__server),
        cmocka_unit_test(test_wire_stepflow_http_memory__runtime),
        cmocka_unit_test(test_wire_stepflow_http_memory__both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
