/*
 * tests/unit/wire/test_stepflow_http_call.c: calls to a component server on HTTP, with a test that is the server: what it
 * is asked, and what is made of its answers. The greeting is in test_stepflow_http_greet.c, events are in
 * test_stepflow_http_events.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"
#include "unit/wire/stepflow_http_call.h"

/* ---- requests ---- */

static void test_wire_stepflow_http_call__bytes(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    client_site(&w)->path = EW_STR("/base/path");
    client_site(&w)->blob_api = EW_STR("http://127.0.0.1:9/b");
    rig_pair *pair = server(&w);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "e", .input = EW_STR("{\"a\":\n\"\xc3\xa9\"}")});
    rig_run(&w.r);
    char *head = take_head_at(pair, __LINE__), *body = take_body_at(pair, head, __LINE__), length[40];
    assert_true(peer_matches(w.ids,
                             RPC "'id':$9,'method':'initialize','params':{'runtime_protocol_version':1,"
                                 "'runtimeProtocolVersion':1,'protocol_prefix':'everywire',"
                                 "'capabilities':{'blobApiUrl':'http://127.0.0.1:9/b'}}}",
                             body, strlen(body)));
    (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    const char *begin = "POST /base/path HTTP/1.1\r\n" HOST "User-Agent: everywire/" EW_VERSION_STRING "\r\n" JSON BOTH;
    assert_memory_equal(head, begin, strlen(begin));
    assert_string_equal(head + strlen(begin), length);
    free(head);
    free(body);
    answer(&w, pair, WELCOME);
    head = hear_post_head(&w, pair, INITIALIZED);
    check_line(head, "POST /base/path HTTP/1.1");
    free(head);
    say_text(pair, ACCEPTED);
    hear_execute(&w, pair, 1, "'/e'", "{'a':'\\u00e9'}");
    answer(&w, pair, OUTPUT("$1", "{'b': [1.50, '\xc3\xa9']}"));
    check_done(&w, rc, "{'b': [1.50, '\xc3\xa9']}");
    assert_string_not_equal(w.ids[1], w.ids[9]);
    world_done(&w);
}

static unsigned n_ready;
static void on_ready(rig_end *end) {
    (void)end;
    n_ready++;
}

/* One call after the other on one connection; only the first begins with a greeting. */
static void test_wire_stepflow_http_call__kept(void **state) {
    (void)state;
    world w;
    char before[64];
    world_plain(&w);
    n_ready = 0;
    w.r.on_ready = on_ready;
    rig_pair *pair = server(&w);
    assert_int_equal(rig_capacity(pair), 1);
    rig_call *rc = open_call(pair, "/e", "1");
    assert_int_equal(rig_capacity(pair), 0);
    shake_hands(&w, pair);
    assert_int_equal(rig_capacity(pair), 0);
    assert_int_equal(n_ready, 0);
    hear_execute(&w, pair, 1, "'/e'", "1");
    memcpy(before, w.ids[1], sizeof before);
    answer(&w, pair, OUTPUT("$1", "1"));
    check_done(&w, rc, "1");
    assert_int_equal(rig_capacity(pair), 1);
    assert_int_equal(n_ready, 1);
    rc = open_call(pair, "/f", "2");
    hear_execute(&w, pair, 1, "'/f'", "2");
    assert_string_not_equal(before, w.ids[1]);
    answer(&w, pair, OUTPUT("$1", "2"));
    check_done(&w, rc, "2");
    rc = open_list(pair);
    hear_post(&w, pair, RPC "'id':$2,'method':'components/list','params':{}}");
    answer(&w, pair, RPC "'id':$2,'result':{'components':[]}}");
    check_done(&w, rc, "{}");
    assert_int_equal(n_ready, 3);
    world_done(&w);
}

/* ---- answers ---- */

typedef struct answered {
    const char *status, *body;
    const char *result; /* NULL: it failed */
    ew_status code;
    ew_origin origin;
    const char *message, *details; /* NULL: none */
    bool retryable;
} answered;

#define STRANGE_ANSWER "the server's answer is no JSON-RPC response to this request"
#define NO_OUTPUT "the server's result has no output"
#define FAILS(code, message) NULL, EW_STATUS_##code, EW_ORIGIN_ACTION, message
#define BREAKS(message) NULL, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, message, NULL, false

static const answered answers[] = {
    {"200 OK", OUTPUT("$1", "{'x':1}"), "{'x':1}", 0, 0, NULL, NULL, false},
    {"200 OK", "{'id':$1,'result':{'output':[1,2],'more':1},'jsonrpc':'2.0'}", "[1,2]", 0, 0, NULL, NULL, false},
    {"200 OK", "{'id':$1,'result':{'output':null}}", "null", 0, 0, NULL, NULL, false}, /* no version: Python's way */
    {"201 Created", OUTPUT("$1", "1"), "1", 0, 0, NULL, NULL, false},
    {"200 OK", OUTPUT("$1", "12345678901234567890.0"), "12345678901234567890.0", 0, 0, NULL, NULL, false},
    {"200 OK", "{'id':$1,'result':{'out':1}}", BREAKS(NO_OUTPUT)},
    {"200 OK", "{'id':$1,'result':[1]}", BREAKS(NO_OUTPUT)},
    {"200 OK", "{'id':$1,'result':null}", BREAKS(NO_OUTPUT)},
    /* errors of every make */
    {"200 OK",
     "{'id':$1,'error':{'code':-32003,'message':'Component execution failed: boom','data':{}},'jsonrpc':'2.0'}",
     FAILS(UNKNOWN, "Component execution failed: boom"), NULL, false},
    {"200 OK", "{'id':$1,'error':{'code':-32601,'message':'no','data':null}}", FAILS(UNIMPLEMENTED, "no"), NULL, false},
    {"200 OK", ERROR("$1", "{'code':-32100,'message':'m','data':{'status':'ABORTED','details':[1],'retryable':true}}"),
     FAILS(ABORTED, "m"), "[1]", true},
    {"400 Bad Request", "{'error':{'code':-32600,'message':'Object missing ^attempt^ - \\u00e9'}}",
     FAILS(INVALID_ARGUMENT, "Object missing 'attempt' - \xc3\xa9"), NULL, false},
    {"400 Bad Request", ERROR("$1", "{'code':-32602,'message':'bad'}"), FAILS(INVALID_ARGUMENT, "bad"), NULL, false},
    {"406 Not Acceptable", "{'error':'Accept header must include both'}",
     FAILS(UNKNOWN, "Accept header must include both"), NULL, false},
    {"500 Internal Server Error", "{'error':{'code':-32603,'message':'own'}}", FAILS(INTERNAL, "own"), NULL, false},
    {"503 Service Unavailable", ERROR("$1", "{'code':-32300,'message':'busy'}"), FAILS(UNAVAILABLE, "busy"), NULL,
     true},
    {"503 Service Unavailable", "{'error':{'code':-32300,'message':'busy'}}", FAILS(UNAVAILABLE, "busy"), NULL, true},
    {"503 Service Unavailable", ERROR("'foreign'", "{'code':-32300,'message':'busy'}"), FAILS(UNAVAILABLE, "busy"),
     NULL, true},
    {"502 Bad Gateway", "<html><body>Bad Gateway</body></html>", FAILS(UNAVAILABLE, "Bad Gateway"), NULL, false},
    {"404 Not Found", "{'detail':'Not Found'}", FAILS(NOT_FOUND, "Not Found"), NULL, false},
    {"429 Too Many Requests", "", FAILS(RESOURCE_EXHAUSTED, "Too Many Requests"), NULL, false},
    {"429 Too Many Requests", "{'error':{'message':'slow down'}}", FAILS(RESOURCE_EXHAUSTED, "slow down"), NULL, false},
    {"502 Bad Gateway", "{'error':{'code':17,'message':'upstream'}}", FAILS(UNAVAILABLE, "upstream"), NULL, false},
    {"403 Forbidden", "{'error':null}", FAILS(PERMISSION_DENIED, "Forbidden"), NULL, false},
    {"403 Forbidden", "[1]", FAILS(PERMISSION_DENIED, "Forbidden"), NULL, false},
    {"500 Oops", OUTPUT("'foreign'", "1"), FAILS(INTERNAL, "Internal Server Error"), NULL, false},
    /* what is no answer */
    {"200 OK", OUTPUT("'foreign'", "1"), BREAKS(STRANGE_ANSWER)},
    {"200 OK", OUTPUT("null", "1"), BREAKS(STRANGE_ANSWER)},
    {"200 OK", "{'result':{'output':1}}", BREAKS(STRANGE_ANSWER)},
    {"200 OK", "{'error':{'code':-32600,'message':'x'}}", FAILS(INVALID_ARGUMENT, "x"), NULL, false}, /* its answer */
    {"200 OK", ERROR("null", "{'code':-32600,'message':'x'}"), FAILS(INVALID_ARGUMENT, "x"), NULL, false},
    {"200 OK", "<html></html>", BREAKS(STRANGE_ANSWER)},
    {"200 OK", "", BREAKS(STRANGE_ANSWER)},
    {"202 Accepted", "''", BREAKS(STRANGE_ANSWER)},
    {"302 Found", "{}", BREAKS(STRANGE_ANSWER)},
    {"200 OK", RPC "'id':$1,'method':'m'}", BREAKS(STRANGE_ANSWER)},
    {"200 OK", "[" OUTPUT("$1", "1") "]", BREAKS(STRANGE_ANSWER)},
    {"200 OK", RPC "'id':$1,'result':{'output':1},'result':{'output':1}}", BREAKS(STRANGE_ANSWER)},
};

static void check_answer(rig_split split, size_t i) {
    world w;
    const answered *row = &answers[i];
    world_init(&w, NULL, NULL, (rig_options){.split = split});
    rig_pair *pair = server(&w);
    rig_call *rc = begin_call(&w, pair);
    answer_as(&w, pair, row->status, row->body);
    if (row->result) {
        check_done_at(&w, rc, row->result, (int)i);
    } else {
        peer_check_failed(rc, row->code, row->origin, row->message, (int)i);
        assert_int_equal(rc->retryable, row->retryable);
        assert_string_equal(rc->details ? rc->details : "", row->details ? row->details : "");
    }
    assert_int_equal(is_over(pair), row->origin == EW_ORIGIN_PROTOCOL && strcmp(row->message, NO_OUTPUT) != 0);
    world_done(&w);
}

static void test_wire_stepflow_http_call__answers(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OF(answers); i++) {
        check_answer(RIG_WHOLE, i);
        check_answer(RIG_BYTES, i);
    }
}

/* ---- names ---- */

static void test_wire_stepflow_http_call__names(void **state) {
    (void)state;
    static const char *const codes[] = {"-32001", "-32601"};
    for (size_t i = 0; i < N_OF(codes); i++) {
        world w;
        char text[200];
        world_plain(&w);
        rig_pair *pair = server(&w);
        rig_call *rc = open_call(pair, "add", "[1,2]");
        shake_hands(&w, pair);
        hear_execute(&w, pair, 1, "'/add'", "[1,2]");
        (void)snprintf(text, sizeof text, "{'id':$1,'error':{'code':%s,'message':'first'}}", codes[i]);
        answer(&w, pair, text);
        assert_int_equal(rc->ended, 0);
        hear_execute(&w, pair, 2, "'add'", "[1,2]");
        assert_string_not_equal(w.ids[1], w.ids[2]);
        answer(&w, pair, OUTPUT("$2", "3"));
        check_done(&w, rc, "3");
        rc = open_call(pair, "sub", "1"); /* each name anew; and only once */
        hear_execute(&w, pair, 1, "'/sub'", "1");
        answer(&w, pair, text);
        hear_execute(&w, pair, 1, "'sub'", "1");
        answer(&w, pair, "{'id':$1,'error':{'code':-32001,'message':'last'}}");
        check_failed(rc, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "last");
        rc = open_call(pair, "/mul", "1"); /* said with a slash */
        hear_execute(&w, pair, 1, "'/mul'", "1");
        answer(&w, pair, "{'id':$1,'error':{'code':-32001,'message':'no'}}");
        check_failed(rc, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "no");
        rc = open_call(pair, "div", "1"); /* another error is the end */
        hear_execute(&w, pair, 1, "'/div'", "1");
        answer(&w, pair, "{'id':$1,'error':{'code':-32100,'message':'by zero'}}");
        check_failed(rc, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "by zero");
        hear_nothing(pair);
        world_done(&w);
    }
}

/* ---- listings ---- */

static void test_wire_stepflow_http_call__lists(void **state) {
    (void)state;
    static const struct {
        const char *result, *listing;
        ew_status status;
        const char *message;
    } table[] = {
        {"'result':{'components':[{'component':'/a','description':'d'}]}",
         "{'/a':{'key':'/a','name':'a','actionType':'component','description':'d'}}", 0, NULL},
        {"'result':{}", NULL, EW_STATUS_INTERNAL, "the answer to components/list is no list of components"},
        {"'error':{'code':-32601,'message':'none'}", NULL, EW_STATUS_UNIMPLEMENTED, "none"},
        {"'error':{'code':-32001,'message':'none'}", NULL, EW_STATUS_UNIMPLEMENTED, "none"},
        {"'error':{'code':-32003,'message':'schema'}", NULL, EW_STATUS_UNKNOWN, "schema"},
    };
    world w;
    world_plain(&w);
    rig_pair *pair = server(&w);
    for (size_t i = 0; i < N_OF(table); i++) {
        char text[200];
        rig_call *rc = open_list(pair);
        if (i == 0)
            shake_hands(&w, pair);
        w.ids[1][0] = '\0';
        hear_post(&w, pair, RPC "'id':$1,'method':'components/list','params':{}}");
        (void)snprintf(text, sizeof text, "{'id':$1,%s}", table[i].result);
        answer(&w, pair, text);
        if (table[i].listing)
            check_done(&w, rc, table[i].listing);
        else
            check_failed(rc, table[i].status, i == 1 ? EW_ORIGIN_PROTOCOL : EW_ORIGIN_ACTION, table[i].message);
    }
    world_done(&w);
}

/* ---- ends ---- */

static void test_wire_stepflow_http_call__lost(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        bool eof;
        ew_status status;
        ew_origin origin;
        const char *message;
    } table[] = {
        {"", true, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, "the server closed the connection before it answered"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", true, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT,
         "the server closed the connection before the end of its answer"},
        {"", false, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST},
        {"SSH-2.0-x\r\n", false, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, NULL},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        world w;
        world_plain(&w);
        rig_pair *pair = server(&w);
        rig_call *rc = begin_call(&w, pair);
        say_text(pair, table[i].bytes);
        if (table[i].eof)
            rig_say_eof(pair);
        else if (!table[i].bytes[0])
            rig_cut(pair, RIG_SERVER, RIG_RESET);
        rig_run(&w.r);
        check_failed(rc, table[i].status, table[i].origin, table[i].message ? table[i].message : rc->message);
        assert_int_equal(rig_capacity(pair), 0);
        world_done(&w);
    }
}

/* There is no word for a cancel: the connection is closed. */
static void test_wire_stepflow_http_call__cancelled(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = server(&w);
    rig_call *rc = begin_call(&w, pair);
    rig_call_cancel(rc);
    rig_run(&w.r);
    check_failed(rc, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    assert_true(is_over(pair));
    world_done(&w);
    world_plain(&w);
    pair = server(&w);
    rc = rig_open(pair, &(rig_request){.key = "/e", .timeout_ms = 50});
    rig_run(&w.r);
    shake_hands(&w, pair);
    rig_advance(&w.r, 50);
    check_failed(rc, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    assert_true(is_over(pair));
    world_done(&w);
    world_plain(&w);
    pair = server(&w);
    rc = begin_call(&w, pair);
    rig_call_release(rc);
    rig_run(&w.r);
    assert_true(is_over(pair));
    world_done(&w);
}

/* A server that closes after its answer, and one that says something unasked. */
static void test_wire_stepflow_http_call__closes(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = server(&w);
    rig_call *rc = begin_call(&w, pair);
    say_message(&w, pair, "HTTP/1.1 200 OK\r\nConnection: close\r\n", OUTPUT("$1", "1"));
    check_done(&w, rc, "1");
    assert_true(is_over(pair));
    pair = server(&w);
    rc = begin_call(&w, pair);
    answer(&w, pair, OUTPUT("$1", "1"));
    check_done(&w, rc, "1");
    answer(&w, pair, OUTPUT("$1", "2"));
    assert_true(is_over(pair));
    world_done(&w);
}

static void test_wire_stepflow_http_call__large(void **state) {
    (void)state;
    enum { N = 300 * 1000 };
    char *text = malloc(N + 200), *input = malloc(N + 200);
    assert_true(text && input);
    (void)snprintf(input, N + 200, "\"%0*d\"", N, 7);
    (void)snprintf(text, N + 200, OUTPUT("$1", "'%0*d'"), N, 7);
    for (int limited = 0; limited < 2; limited++) {
        world w;
        world_init(
            &w, NULL, NULL,
            (rig_options){.split = RIG_RANDOM, .pipe_room = 10000, .limits = {.frame_bytes = limited ? 200000 : 0}});
        rig_pair *pair = server(&w);
        const char *sent = limited ? "1" : input;
        rig_call *rc = open_call(pair, "/e", sent);
        shake_hands(&w, pair);
        hear_execute(&w, pair, 1, "'/e'", sent);
        answer(&w, pair, text);
        if (limited)
            check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_PROTOCOL, "the answer is too large");
        else
            check_done(&w, rc, input);
        world_done(&w);
    }
    free(text);
    free(input);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_call__bytes),
        cmocka_unit_test(test_wire_stepflow_http_call__kept),
        cmocka_unit_test(test_wire_stepflow_http_call__answers),
        cmocka_unit_test(test_wire_stepflow_http_call__names),
        cmocka_unit_test(test_wire_stepflow_http_call__lists),
        cmocka_unit_test(test_wire_stepflow_http_call__lost),
        cmocka_unit_test(test_wire_stepflow_http_call__cancelled),
        cmocka_unit_test(test_wire_stepflow_http_call__closes),
        cmocka_unit_test(test_wire_stepflow_http_call__large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
