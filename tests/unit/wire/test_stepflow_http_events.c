/*
 * tests/unit/wire/test_stepflow_http_events.c: answers that are streams: what a component server asks us in them, how we
 * reply, and how they end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "unit/wire/stepflow_http_back.h"
#include "unit/wire/stepflow_http_call.h"
#include "unit/wire/stepflow_http_ear.h"
#include "wire/stepflow/blob_id.h"

#define STREAM "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
#define VALUE_ID "666c1aa02e8068c6d5cc1d3295009432c16790bec28ec8ce119d0d1a18d61319" /* of {"k":"v"} */

/* ---- a stream of the test's ---- */

static void say_chunk(world *w, rig_pair *pair, const char *text) {
    char size[20], *bytes = expand(w, text);
    (void)snprintf(size, sizeof size, "%zx\r\n", strlen(bytes));
    rig_say(pair, size, strlen(size));
    rig_say(pair, bytes, strlen(bytes));
    say_text(pair, "\r\n");
    free(bytes);
}

static void say_event(world *w, rig_pair *pair, const char *text) {
    size_t n = strlen(text) + 20;
    char *event = malloc(n);
    assert_non_null(event);
    (void)snprintf(event, n, "data: %s\n\n", text);
    say_chunk(w, pair, event);
    free(event);
}

/* A call whose answer has become a stream. */
static rig_call *begin_stream_as(world *w, rig_pair **ret_pair, rig_options options, const char *fields) {
    heard.len = heard.n = 0;
    options.serve = &ear;
    world_init(w, NULL, NULL, options);
    *ret_pair = server(w);
    rig_call *rc = begin_call(w, *ret_pair);
    heard.len = heard.n = 0;
    say_text(*ret_pair, STREAM);
    say_text(*ret_pair, fields);
    say_text(*ret_pair, "\r\n");
    return rc;
}

static rig_call *begin_stream(world *w, rig_pair **ret_pair) {
    return begin_stream_as(w, ret_pair, (rig_options){.seed = 1}, "");
}

#define CHECK_OVER(w, pair, rc, result)                                                                                \
    do {                                                                                                               \
        check_done(w, rc, result);                                                                                     \
        assert_true(is_over(pair));                                                                                    \
    } while (0)

/* ---- what is asked ---- */

static void test_wire_stepflow_http_events__blobs(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        rig_pair *pair;
        ew__blobs *blobs = NULL;
        rig_call *rc = begin_stream_as(&w, &pair, (rig_options){.split = (rig_split)split},
                                       "stepflow-instance-id: 72480f631435479e\r\n");
        assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 100000, &blobs), EW_OK);
        client_site(&w)->blobs = blobs;
        say_event(&w, pair,
                  RPC "'id':'put-1','method':'blobs/put','params':{'data':{'k':'v'},'blob_type':'data',"
                      "'observability':null}}");
#define REPLY RPC "'id':'put-1','result':{'blob_id':'" VALUE_ID "'}}"
        char expected[400], *head = hear_reply_head(&w, REPLY);
        (void)snprintf(expected, sizeof expected,
                       "POST / HTTP/1.1\r\n" HOST "User-Agent: everywire/" EW_VERSION_STRING "\r\n" JSON BOTH
                       "Content-Length: %zu\r\nStepflow-Instance-Id: 72480f631435479e\r\nConnection: close\r\n",
                       sizeof REPLY - 1);
        assert_string_equal(head, expected);
        free(head);
        say_event(&w, pair, RPC "'id':7,'method':'blobs/get','params':{'blob_id':'" VALUE_ID "'}}");
        hear_reply(&w, RPC "'id':7,'result':{'data':{'k':'v'},'blob_type':'data'}}");
        assert_int_equal(rc->ended, 0);
        hear_nothing(pair);
        say_event(&w, pair, OUTPUT("$1", "{'same':true}"));
        CHECK_OVER(&w, pair, rc, "{'same':true}");
        assert_int_equal(heard.n, 0);
        world_done(&w);
        blobs->free(blobs);
    }
}

#define NO_METHOD                                                                                                      \
    "{'code':-32601,'message':'Method not found (components are run here one by one: there are no flows and no "       \
    "runs): "
#define NULL_DATA(code, message) "{'code':" #code ",'message':'" message "','data':null}"
#define BAD_PUT NULL_DATA(-32602, "blobs/put wants data, and data or flow as its blob_type")
static const struct {
    const char *ask, *reply;
} questions[] = {
    {"'id':'a','method':'runs/submit','params':{}", ERROR("'a'", NO_METHOD "runs/submit','data':null}")},
    {"'id':'\xc3\xa9','method':'flows\\/\xc3\xa9\\'','params':{}",
     ERROR("'\\u00e9'", NO_METHOD "flows\\/\\u00e9\\'','data':null}")},
    {"'id':12345678901234567890,'method':'initialize'",
     ERROR("12345678901234567890", NO_METHOD "initialize','data':null}")},
    {"'id':1,'method':'blobs/put','params':{}", ERROR("1", BAD_PUT)},
    {"'id':1,'method':'blobs/put','params':{'data':1,'blob_type':'binary'}", ERROR("1", BAD_PUT)},
    {"'id':1,'method':'blobs/put'", ERROR("1", BAD_PUT)},
    {"'id':1,'method':'blobs/put','params':{'data':1}",
     RPC "'id':1,'result':{'blob_id':'6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b'}}"},
    {"'id':1,'method':'blobs/put','params':{'data':'\xc3\xa9','blob_type':'flow'}",
     RPC "'id':1,'result':{'blob_id':'f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086'}}"},
    {"'id':1,'method':'blobs/get','params':{'blob_id':"
     "'f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086'}",
     RPC "'id':1,'result':{'data':'\\u00e9','blob_type':'flow'}}"},
    {"'id':1,'method':'blobs/get','params':{'blob_id':'x'}",
     ERROR("1", NULL_DATA(-32000, "Failed to get blob: there is none of that id"))},
    {"'id':1,'method':'blobs/get','params':{'blob_id':7}", ERROR("1", NULL_DATA(-32602, "blobs/get wants a blob_id"))},
    {"'id':1,'method':'blobs/get','params':[]", ERROR("1", NULL_DATA(-32602, "blobs/get wants a blob_id"))},
    {"'id':1,'method':'blobs/put','params':{'data':'01234567890123456789012345678901234567890123456789'}",
     ERROR("1", NULL_DATA(-32000, "Failed to put blob: the store is full"))},
};

/* Every request gets a reply, or its server would wait for ever. */
static void test_wire_stepflow_http_events__asks(void **state) {
    (void)state;
    world w;
    rig_pair *pair;
    ew__blobs *blobs = NULL;
    rig_call *rc = begin_stream(&w, &pair);
    assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 700, &blobs), EW_OK);
    client_site(&w)->blobs = blobs;
    for (size_t i = 0; i < N_OF(questions); i++) {
        char text[400];
        for (int full = 0; i + 1 == N_OF(questions) && full < 20; full++) { /* until there is no room for more */
            (void)snprintf(text, sizeof text, RPC "'id':1,'method':'blobs/put','params':{'data':%d}}", 100 + full);
            say_event(&w, pair, text);
            heard.len = heard.n = 0;
        }
        (void)snprintf(text, sizeof text, RPC "%s}", questions[i].ask);
        say_event(&w, pair, text);
        hear_reply(&w, questions[i].reply);
    }
    client_site(&w)->blobs = NULL; /* who has none does not know the methods */
    say_event(&w, pair, RPC "'id':1,'method':'blobs/put','params':{'data':1}}");
    char *head = hear_reply_head(&w, ERROR("1", NO_METHOD "blobs/put','data':null}"));
    check_line(head, "Connection: close");
    assert_null(strstr(head, "Stepflow-Instance-Id")); /* it has said none */
    free(head);
    say_event(&w, pair, RPC "'id':1,'method':'blobs/get','params':{'blob_id':'x'}}");
    hear_reply(&w, ERROR("1", NO_METHOD "blobs/get','data':null}"));
    assert_int_equal(rc->ended, 0);
    world_done(&w);
    blobs->free(blobs);
}

/* ---- how streams are written ---- */

static void test_wire_stepflow_http_events__forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        "data: {'id':$1,'result':{'output':7},'jsonrpc':'2.0'}\n\n",
        "data:{'id':$1,'result':{'output':7}}\n\n",
        "data: {'id':$1,'result':{'output':7}}\r\n\r\n",
        "data: {'id':$1,\ndata: 'result':{'output':\ndata: 7}}\n\n",
        ": hello\n\n:\n\ndata: {'id':$1,'result':{'output':7}}\n\n",
        "event: message\nid: 4\nretry: 10\ndata: {'id':$1,'result':{'output':7}}\n\n",
        /* passed over: no JSON, no message, notifications, answers to others */
        "data: this is not json\n\ndata: [1]\n\ndata: {}\n\ndata: " RPC
        "'method':'progress_update','params':{}}\n\ndata: " RPC
        "'id':null,'method':'blobs/get','params':{}}\n\ndata: " OUTPUT("'other'", "1") "\n\ndata: " ERROR(
            "null", "{'code':1,'message':'x'}") "\n\ndata: {'id':$1,'result':{'output':7}}\n\n",
    };
    for (size_t i = 0; i < N_OF(forms); i++) {
        for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
            world w;
            rig_pair *pair;
            rig_call *rc = begin_stream_as(&w, &pair, (rig_options){.split = (rig_split)split}, "");
            say_chunk(&w, pair, forms[i]);
            CHECK_OVER(&w, pair, rc, "7");
            assert_int_equal(heard.n, 0);
            assert_int_equal(rig_dropped(&w.r, RIG_CLIENT), i + 1 == N_OF(forms) ? 7 : 0);
            world_done(&w);
        }
    }
}

/* ---- how they end ---- */

/* With its last event a stream is over, however it goes on. */
static void test_wire_stepflow_http_events__last_event(void **state) {
    (void)state;
    static const char *const after[] = {"", "0\r\n\r\n", "data: more", "5\r\nab", "nonsense"};
    for (size_t i = 0; i < N_OF(after); i++) {
        for (int how = 0; how < 3; how++) {
            world w;
            rig_pair *pair;
            rig_call *rc = begin_stream(&w, &pair);
            char *event = expand(&w, "data: " OUTPUT("$1", "{'r':4}") "\n\n"), size[20];
            (void)snprintf(size, sizeof size, "%zx\r\n", strlen(event));
            rig_say(pair, size, strlen(size));
            rig_say(pair, event, strlen(event));
            rig_say(pair, "\r\n", 2);
            rig_say(pair, after[i], strlen(after[i]));
            if (how == 1)
                rig_say_eof(pair);
            rig_run(&w.r);
            if (how == 2)
                rig_cut(pair, RIG_SERVER, RIG_RESET);
            rig_run(&w.r);
            free(event);
            check_done(&w, rc, "{'r':4}");
            assert_int_equal(is_over(pair), i != 1 || how != 0);
            world_done(&w);
        }
    }
}

/* A stream that has come to its end leaves the connection free, and nothing behind. */
static void test_wire_stepflow_http_events__kept(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        rig_pair *pair;
        rig_call *rc = begin_stream_as(&w, &pair, (rig_options){.split = (rig_split)split}, "");
        say_chunk(&w, pair, ":\n\ndata: " OUTPUT("$1", "5")); /* the last one may lack its blank line */
        assert_int_equal(rc->ended, 0);
        say_text(pair, "0\r\n\r\n");
        check_done(&w, rc, "5");
        for (int i = 0; i < 2; i++) {
            rc = begin_call(&w, pair); /* nobody is greeted again */
            say_text(pair, STREAM "\r\n");
            say_chunk(&w, pair, "da");
            say_chunk(&w, pair, "ta: {'id':$1,");
            assert_int_equal(rc->ended, 0);
            say_chunk(&w, pair, "'result':{'output':6}}");
            say_text(pair, "0\r\n\r\n");
            check_done(&w, rc, "6");
            assert_false(is_over(pair));
        }
        world_done(&w);
    }
}

static void test_wire_stepflow_http_events__no_last_event(void **state) {
    (void)state;
    static const char asks[] = "data: " RPC "'id':1,'method':'runs/get','params':{}}\n\n";
    static const struct {
        const char *chunk, *then; /* NULL: a reset */
        bool eof;
        ew_status status;
        ew_origin origin;
        const char *message;
    } table[] = {
        {asks, "0\r\n\r\n", false, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT,
         "the stream ended without an answer to the call"},
        {": nothing\n\n", "0\r\n\r\n", true, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT,
         "the stream ended without an answer to the call"},
        {"data: {'id':$1,'result':{'ou", "0\r\n\r\n", true, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT,
         "the stream ended without an answer to the call"},
        {asks, "", true, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT,
         "the server closed the connection before the end of its answer"},
        {asks, NULL, false, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST},
        {asks, "zz\r\n", false, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "bad chunk"},
        {"what is that\n\n", "", false, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL,
         "the server sent a line that belongs to no stream"},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        world w;
        rig_pair *pair;
        rig_call *rc = begin_stream(&w, &pair);
        say_chunk(&w, pair, table[i].chunk);
        if (table[i].then)
            say_text(pair, table[i].then);
        else
            rig_cut(pair, RIG_SERVER, RIG_RESET);
        if (table[i].eof)
            rig_say_eof(pair);
        rig_run(&w.r);
        peer_check_failed(rc, table[i].status, table[i].origin, table[i].message, (int)i);
        assert_true(is_over(pair));
        world_done(&w);
    }
}

static void test_wire_stepflow_http_events__errors(void **state) {
    (void)state;
    world w;
    rig_pair *pair;
    rig_call *rc = begin_stream(&w, &pair);
    say_event(&w, pair, "{'id':$1,'error':{'code':-32100,'message':'Component execution failed: x','data':{}}}");
    check_failed(rc, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "Component execution failed: x");
    assert_true(is_over(pair));
    world_done(&w);
    rc = begin_stream(&w, &pair);
    say_event(&w, pair, "{'id':$1,'result':{}}");
    check_failed(rc, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the server's result has no output");
    assert_true(is_over(pair));
    world_done(&w);
    world_plain(&w); /* in a stream a name is not tried again */
    pair = server(&w);
    rc = open_call(pair, "bare", "1");
    shake_hands(&w, pair);
    hear_execute(&w, pair, 1, "'/bare'", "1");
    say_text(pair, STREAM "\r\n");
    say_event(&w, pair, "{'id':$1,'error':{'code':-32001,'message':'no'}}");
    check_failed(rc, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "no");
    hear_nothing(pair);
    world_done(&w);
}

static void test_wire_stepflow_http_events__given_up(void **state) {
    (void)state;
    world w;
    rig_pair *pair;
    rig_call *rc = begin_stream(&w, &pair);
    say_event(&w, pair, RPC "'id':1,'method':'m','params':{}}");
    rig_call_cancel(rc);
    rig_run(&w.r);
    check_failed(rc, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    assert_true(is_over(pair));
    world_done(&w);
    world_plain(&w);
    pair = server(&w);
    rc = rig_open(pair, &(rig_request){.key = "/e", .timeout_ms = 100});
    rig_run(&w.r);
    shake_hands(&w, pair);
    say_text(pair, STREAM "\r\n");
    say_chunk(&w, pair, ":\n\n");
    rig_advance(&w.r, 100);
    check_failed(rc, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    assert_true(is_over(pair));
    world_done(&w);
}

/* ---- limits ---- */

static ew_err busy(ew__conn *conn, const void *bytes, size_t n) {
    (void)conn;
    (void)bytes;
    (void)n;
    return EW_EBUSY;
}

/* What cannot be answered ends the call: its server waits for it. */
static void test_wire_stepflow_http_events__no_way_to_reply(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        world w;
        rig_pair *pair;
        rig_call *rc = begin_stream(&w, &pair);
        ew__conn *conn = &pair->end[RIG_CLIENT].conn;
        ew__conn_ops ops = *conn->ops;
        ops.one_shot = how ? busy : NULL;
        conn->ops = &ops;
        say_event(&w, pair, RPC "'id':1,'method':'m','params':{}}");
        check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                     "what the server asked for could not be sent to it");
        assert_true(is_over(pair));
        world_done(&w);
    }
}

static void test_wire_stepflow_http_events__large(void **state) {
    (void)state;
    enum { N = 300 * 1000 };
    char *event = malloc(N + 200), *result = malloc(N + 200);
    assert_true(event && result);
    (void)snprintf(result, N + 200, "'%0*d'", N, 7);
    (void)snprintf(event, N + 200, "{'id':$1,'result':{'output':%s}}", result);
    for (int limited = 0; limited < 2; limited++) {
        world w;
        rig_pair *pair;
        rig_call *rc = begin_stream_as(
            &w, &pair, (rig_options){.split = RIG_RANDOM, .limits = {.frame_bytes = limited ? 200000 : 0}}, "");
        say_event(&w, pair, event);
        if (limited)
            check_failed(rc, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "an event of the stream is too large");
        else
            CHECK_OVER(&w, pair, rc, result);
        world_done(&w);
    }
    free(event);
    free(result);
}

/* What a server calls itself is passed on only if it fits into a head. */
static void test_wire_stepflow_http_events__instance(void **state) {
    (void)state;
    static const struct {
        const char *fields, *line;
    } table[] = {
        {"Stepflow-Instance-Id: a b\r\n", "Stepflow-Instance-Id: a b"},
        {"Stepflow-Instance-Id: 0123456789012345678901234567890123456789012345678901234567890123456789012345678\r\n",
         "Stepflow-Instance-Id: 0123456789012345678901234567890123456789012345678901234567890123456789012345678"},
        {"Stepflow-Instance-Id: 01234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n",
         NULL},
        {"Stepflow-Instance-Id:\r\n", NULL},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        world w;
        rig_pair *pair;
        (void)begin_stream_as(&w, &pair, (rig_options){.seed = 1}, table[i].fields);
        say_event(&w, pair, RPC "'id':1,'method':'m','params':{}}");
        char *head = hear_reply_head(&w, ERROR("1", NO_METHOD "m','data':null}"));
        if (table[i].line)
            check_line(head, table[i].line);
        else
            assert_null(strstr(head, "Instance"));
        free(head);
        world_done(&w);
    }
}

/* It holds for one answer: behind one address there may be several. */
static void test_wire_stepflow_http_events__other_instance(void **state) {
    (void)state;
    world w;
    rig_pair *pair;
    rig_call *rc = begin_stream_as(&w, &pair, (rig_options){.seed = 1}, "Stepflow-Instance-Id: one\r\n");
    char *last = expand(&w, "data: " OUTPUT("$1", "1") "\n\n"), size[20];
    (void)snprintf(size, sizeof size, "%zx\r\n", strlen(last));
    rig_say(pair, size, strlen(size));
    rig_say(pair, last, strlen(last));
    free(last);
    say_text(pair, "\r\n0\r\n\r\n");
    check_done(&w, rc, "1");
    (void)begin_call(&w, pair);
    say_text(pair, STREAM "\r\n");
    say_event(&w, pair, RPC "'id':1,'method':'m','params':{}}");
    char *head = hear_reply_head(&w, ERROR("1", NO_METHOD "m','data':null}"));
    assert_null(strstr(head, "Instance"));
    free(head);
    world_done(&w);
}

/* ---- both sides of ours ---- */

static void test_wire_stepflow_http_events__both(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        back put, get;
        ew__blobs *blobs = NULL;
        world_init(&w, NULL, NULL, (rig_options){.split = (rig_split)split});
        assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 100000, &blobs), EW_OK);
        client_site(&w)->blobs = blobs;
        server_site(&w)->instance = &w.instance;
        rig_pair *pair = rig_connect(&w.r);
        rig_call *rc = open_call(pair, "/hold", "1");
        ew_call *call = w.r.held;
        w.r.held = NULL;
        assert_non_null(call);
        ask(&w, call, &put, "blobs/put", "{\"data\":{\"k\":\"v\"}}");
        check_back(&put, EW_STATUS_OK, EW_ORIGIN_ACTION, "{'blob_id':'" VALUE_ID "'}");
        ask(&w, call, &get, "blobs/get", "{\"blob_id\":\"" VALUE_ID "\"}");
        check_back(&get, EW_STATUS_OK, EW_ORIGIN_ACTION, "{'data':{'k':'v'},'blob_type':'data'}");
        ask(&w, call, &get, "runs/submit", "{}");
        assert_int_equal(get.status, EW_STATUS_UNIMPLEMENTED);
        assert_true(ew__sf_greeting_of(client_site(&w))->everywire);
        finish(&w, call, "[\"\xc3\xa9\"]");
        check_done(&w, rc, "['\\u00e9']");
        if (split == RIG_WHOLE) /* the end of the stream came with its last event */
            assert_int_equal(rig_capacity(pair), 1);
        world_done(&w);
        blobs->free(blobs);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_events__blobs),
        cmocka_unit_test(test_wire_stepflow_http_events__asks),
        cmocka_unit_test(test_wire_stepflow_http_events__forms),
        cmocka_unit_test(test_wire_stepflow_http_events__last_event),
        cmocka_unit_test(test_wire_stepflow_http_events__kept),
        cmocka_unit_test(test_wire_stepflow_http_events__no_last_event),
        cmocka_unit_test(test_wire_stepflow_http_events__errors),
        cmocka_unit_test(test_wire_stepflow_http_events__given_up),
        cmocka_unit_test(test_wire_stepflow_http_events__no_way_to_reply),
        cmocka_unit_test(test_wire_stepflow_http_events__large),
        cmocka_unit_test(test_wire_stepflow_http_events__instance),
        cmocka_unit_test(test_wire_stepflow_http_events__other_instance),
        cmocka_unit_test(test_wire_stepflow_http_events__both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
