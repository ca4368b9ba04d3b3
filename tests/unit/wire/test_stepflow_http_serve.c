/*
 * tests/unit/wire/test_stepflow_http_serve.c: a component server on HTTP, with a test that is its runtime: what it is
 * asked, how it answers, and what it refuses. Calls back are in test_stepflow_http_back.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_http_world.h"

#define HELLO                                                                                                          \
    "{'server_protocol_version':1,'serverProtocolVersion':1,'supportsBlobRefs':false,"                                 \
    "'x-everywire':{'version':'" EW_VERSION_STRING "'}}"
#define MISSING(component)                                                                                             \
    "{'code':-32001,'message':'no such component: " component "','data':{'status':'NOT_FOUND','component':'" component \
    "'}}"
#define INVALID(message) FAULT(-32600, message, "INVALID_ARGUMENT")
#define BAD_PARAMS(message) FAULT(-32602, message, "INVALID_ARGUMENT")

/* ---- what is asked ---- */

static const struct {
    const char *body;
    int status;
    const char *answer;
} talks[] = {
    /* the handshake in every spelling, or none of it */
    {RPC "'id':'i','method':'initialize','params':{'runtime_protocol_version':1}}", 200,
     RPC "'id':'i','result':" HELLO "}"},
    {RPC "'id':2,'method':'initialize','params':{'runtimeProtocolVersion':1,'capabilities':{}}}", 200,
     RPC "'id':2,'result':" HELLO "}"},
    {RPC "'id':3,'method':'initialize'}", 200, RPC "'id':3,'result':" HELLO "}"},
    {RPC "'id':3,'method':'initialized'}", 200, RPC "'id':3,'result':{}}"},
    /* notifications get nothing but a status */
    {RPC "'method':'initialized','params':{}}", 202, ""},
    {RPC "'method':'initialized'}", 202, ""},
    {RPC "'method':'progress_update','params':{'step_id':'s','progress':0.75}}", 202, ""},
    {RPC "'id':null,'method':'components/list','params':{}}", 202, ""},
    {RPC "'id':null,'method':'components/execute','params':{'component':'/echo','input':1}}", 202, ""},
    /* execute */
    {EXECUTE("'e'", "/echo", "{'a':[1, 2]}"), 200, OUTPUT("'e'", "{'a':[1, 2]}")},
    {EXECUTE("1", "/test/echo", "null"), 200, OUTPUT("1", "null")},
    {EXECUTE("1", "echo", "'x'"), 200, OUTPUT("1", "'x'")},
    {EXECUTE("1", "/deep/er", "1"), 200, OUTPUT("1", "1")},
    {RPC "'id':1,'method':'components/execute','params':{'component':{'name':'echo'},'input':[]}}", 200,
     OUTPUT("1", "[]")},
    {RPC "'id':1,'method':'components\\/execute','params':{'component':'\\/echo'}}", 200, OUTPUT("1", "null")},
    {EXECUTE("1", "/say", "[1,2]"), 200, OUTPUT("1", "[1,2]")}, /* chunks are not carried */
    {EXECUTE("1", "/fail", "{'status':'ABORTED','message':'no','details':{'d':1}}"), 200,
     ERROR("1", "{'code':-32100,'message':'no','data':{'status':'ABORTED','details':{'d':1}}}")},
    {EXECUTE("1", "/fail", "{'status':'UNAVAILABLE','message':'no','retry_after_ms':7}"), 200,
     ERROR("1", "{'code':-32100,'message':'no','data':{'status':'UNAVAILABLE','retryable':true,'retry_after_ms':7}}")},
    {EXECUTE("1", "/nope", "{}"), 200, ERROR("1", MISSING("/nope"))},
    {EXECUTE("1", "/n\xc3\xa9", "{}"), 200, ERROR("1", MISSING("/n\\u00e9"))},
    {EXECUTE("1", "same", "{}"), 200,
     ERROR("1", "{'code':-32602,'message':'several actions have this name, use a key: /one/same, /two/same','data':"
                "{'status':'INVALID_ARGUMENT','component':'same'}}")},
    {RPC "'id':1,'method':'components/execute'}", 200,
     ERROR("1", BAD_PARAMS("params must be an object with a component and an input"))},
    {RPC "'id':1,'method':'components/execute','params':{'input':1}}", 200,
     ERROR("1", BAD_PARAMS("params.component must be the name of a component"))},
    {RPC "'id':1,'method':'components/execute','params':{'component':'/echo','component':'/echo'}}", 200,
     ERROR("1", BAD_PARAMS("params has a member twice"))},
    /* info */
    {RPC "'id':1,'method':'components/info','params':{'component':'/echo'}}", 200,
     RPC
     "'id':1,'result':{'info':{'component':'/echo','x-everywire':{'key':'/test/echo','descriptor':{'key':'/test/echo',"
     "'name':'echo','actionType':'test'}}}}}"},
    {RPC "'id':1,'method':'components/info','params':{'component':'/nope'}}", 200, ERROR("1", MISSING("/nope"))},
    {RPC "'id':1,'method':'components/info','params':{}}", 200,
     ERROR("1", BAD_PARAMS("params.component must be the name of a component"))},
    /* no such method */
    {RPC "'id':'u','method':'foo/bar','params':{}}", 200,
     ERROR("'u'", FAULT(-32601, "no such method: foo/bar", "UNIMPLEMENTED"))},
    {RPC "'id':1,'method':'blobs/get','params':{'blob_id':'x'}}", 200,
     ERROR("1", FAULT(-32601, "no such method: blobs/get", "UNIMPLEMENTED"))},
    /* no message */
    {"this is not json", 400, ERROR("null", FAULT(-32700, "the JSON is malformed", "INVALID_ARGUMENT"))},
    {"", 400, ERROR("null", FAULT(-32700, "the JSON is malformed", "INVALID_ARGUMENT"))},
    {RPC "'id':1,'method':'initialize'", 400,
     ERROR("null", FAULT(-32700, "the JSON is malformed", "INVALID_ARGUMENT"))},
    {"{}", 400, ERROR("null", INVALID("neither method, result nor error"))},
    {"{'jsonrpc':'1.0','id':5,'method':'initialize'}", 400, ERROR("5", INVALID("jsonrpc must be \\'2.0\\'"))},
    {"{'jsonrpc':'1.0','method':'initialized'}", 400, ERROR("null", INVALID("jsonrpc must be \\'2.0\\'"))},
    {RPC "'id':5,'method':7}", 400, ERROR("5", INVALID("method must be a string that is not empty"))},
    {RPC "'id':{},'method':'initialize'}", 400, ERROR("null", INVALID("id must be a string, a number or null"))},
    {RPC "'id':1,'method':'initialize','method':'initialize'}", 400, ERROR("1", INVALID("a member is repeated"))},
    {"[" RPC "'id':1,'method':'initialize'}]", 400, ERROR("null", INVALID("a message is an object"))},
    {"[]", 400, ERROR("null", INVALID("a message is an object"))},
    /* a reply that nobody waits for */
    {RPC "'id':'zzz','result':{'blob_id':'x'}}", 400, ERROR("null", INVALID("no pending request has this id"))},
    {RPC "'id':7,'error':{'code':-32000,'message':'x'}}", 400,
     ERROR("null", INVALID("no pending request has this id"))},
    {RPC "'id':null,'result':1}", 400, ERROR("null", INVALID("no pending request has this id"))},
    /* ids come back as they are, in ASCII */
    {EXECUTE("12345678901234567890123", "/echo", "1"), 200, OUTPUT("12345678901234567890123", "1")},
    {EXECUTE("-1.50e2", "/echo", "1"), 200, OUTPUT("-1.50e2", "1")},
    {EXECUTE("''", "/echo", "1"), 200, OUTPUT("''", "1")},
    {EXECUTE("0", "/nope", "1"), 200, ERROR("0", MISSING("/nope"))},
    {EXECUTE("'a\xc3\xa9\\u0041\\/'", "/echo", "1"), 200, OUTPUT("'a\\u00e9\\u0041\\/'", "1")},
    {EXECUTE("'\xf0\x9f\x98\x80'", "/nope", "1"), 200, ERROR("'\\ud83d\\ude00'", MISSING("/nope"))},
    {RPC "'id':'\xc3\xa9','method':'initialized'}", 200, RPC "'id':'\\u00e9','result':{}}"},
    {RPC "'id':'\xc3\xa9','method':'nope'}", 200,
     ERROR("'\\u00e9'", FAULT(-32601, "no such method: nope", "UNIMPLEMENTED"))},
    /* so do payloads, on one line; their numbers and members as they are */
    {EXECUTE("1", "/echo", "{'\xc3\xa9':\n1.0e+5,\r\n'b':[12345678901234567890, '\x7f'],'b':2}"), 200,
     OUTPUT("1", "{'\\u00e9':1.0e+5,'b':[12345678901234567890,'\\u007f'],'b':2}")},
    {EXECUTE("1", "/fail", "{'message':'n\xc3\xa9','details':['\xc3\xa9']}"), 200,
     ERROR("1", "{'code':-32100,'message':'n\\u00e9','data':{'status':'UNKNOWN','details':['\\u00e9']}}")},
};

/* All on one connection, and each on one of its own. */
static void talk(rig_split split, bool kept) {
    world w;
    rig_pair *pair = NULL;
    world_init(&w, NULL, NULL, (rig_options){.split = split});
    for (size_t i = 0; i < N_OF(talks); i++) {
        if (!pair || !kept)
            pair = runtime(&w);
        post(&w, pair, talks[i].body);
        char *head = take_head_at(pair, __LINE__), *body = take_body_at(pair, head, __LINE__);
        if ((int)strtol(head + 9, NULL, 10) != talks[i].status ||
            !peer_matches(w.ids, talks[i].answer, body, strlen(body)))
            fail_msg("%s\n%s%s", talks[i].body, head, body);
        assert_int_equal(has_line(head, "Content-Type: application/json"), talks[i].answer[0] != '\0');
        hear_nothing(pair);
        assert_false(is_over(pair));
        free(head);
        free(body);
    }
    world_done(&w);
}

static void test_wire_stepflow_http_serve__talks(void **state) {
    (void)state;
    talk(RIG_WHOLE, true);
    talk(RIG_WHOLE, false);
    talk(RIG_BYTES, true);
    talk(RIG_RANDOM, true);
}

static void test_wire_stepflow_http_serve__list(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    post(&w, pair, RPC "'id':'l','method':'components/list','params':{}}");
    char *head = take_head_at(pair, __LINE__), *body = take_body_at(pair, head, __LINE__);
    ew_str text = ew_str_from(body), one = ew_json_get(text, "/result/components/0");
    check_line(head, "HTTP/1.1 200 OK");
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    assert_true(ew__str_is(ew_json_get(text, "/id"), EW_STR("\"l\"")));
    assert_true(ew__str_is(ew_json_get(one, "/component"), EW_STR("\"/echo\"")));
    assert_non_null(strstr(body, "{\"component\":\"/one/same\","));
    free(head);
    free(body);
    world_done(&w);
}

/* What came with the call. */
static void test_wire_stepflow_http_serve__context(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
#define OBSERVED "{'trace_id':'0af7651916cd43dd8448eb211c80319c','span_id':'b7ad6b7169203331','run_id':'r'}"
#define ABOUT(context)                                                                                                 \
    "{'context':" context                                                                                              \
    ",'labels':null,'trace':'0af7651916cd43dd8448eb211c80319c','wire':'stepflow','key':'/test/about'}"
    post(&w, pair,
         RPC "'id':1,'method':'components/execute','params':{'component':'/about','input':{},'attempt':2,"
             "'observability':" OBSERVED "}}");
    hear(&w, pair, 200, OUTPUT("1", ABOUT(OBSERVED)));
    /* a trace may come by the head, as everywhere on HTTP; who says it in the message is right */
    say_message(&w, pair,
                "POST / HTTP/1.1\r\n" HOST JSON BOTH
                "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
                EXECUTE("1", "/about", "1"));
    hear(&w, pair, 200, OUTPUT("1", ABOUT("null")));
    say_message(
        &w, pair,
        "POST / HTTP/1.1\r\n" HOST JSON BOTH "traceparent: 00-11111111111111111111111111111111-b7ad6b7169203331-01\r\n",
        RPC "'id':1,'method':'components/execute','params':{'component':'/about','observability':" OBSERVED "}}");
    hear(&w, pair, 200, OUTPUT("1", ABOUT(OBSERVED)));
    world_done(&w);
}

/* ---- heads ---- */

static const struct {
    const char *head;
    int status;
    const char *answer; /* NULL: the http wire's own */
} heads[] = {
    {"POST / HTTP/1.1\r\n" HOST JSON, 200, OUTPUT("1", "2")},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: */*\r\n", 200, OUTPUT("1", "2")},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: text/event-stream;q=0.5, APPLICATION/JSON\r\n", 200, OUTPUT("1", "2")},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: application/json\r\nAccept: text/event-stream\r\n", 200,
     OUTPUT("1", "2")},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: application/json, */*;q=0.1\r\n", 200, OUTPUT("1", "2")},
    {"POST / HTTP/1.1\r\n" HOST BOTH "content-type: application/json; charset=utf-8\r\n", 200, OUTPUT("1", "2")},
    {"POST /any/path?x=y HTTP/1.1\r\n" HOST JSON BOTH, 200, OUTPUT("1", "2")}, /* a listener of its own */
    {"POST /test/echo HTTP/1.1\r\n" HOST JSON BOTH, 200, OUTPUT("1", "2")},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: application/json\r\n", 406,
     "{'error':'Accept header must include application/json and text/event-stream'}"},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: text/event-stream\r\n", 406,
     "{'error':'Accept header must include application/json and text/event-stream'}"},
    {"POST / HTTP/1.1\r\n" HOST JSON "Accept: text/html\r\n", 406,
     "{'error':'Accept header must include application/json and text/event-stream'}"},
    {"POST / HTTP/1.1\r\n" HOST BOTH "Content-Type: text/plain\r\n", 415, NULL},
    {"POST / HTTP/1.1\r\n" HOST BOTH, 415, NULL},
    {"POST / HTTP/1.1\r\n" HOST "Accept: text/html\r\n", 415, NULL}, /* first the one, then the other */
    {"POST / HTTP/1.1\r\n" HOST JSON BOTH "Content-Encoding: gzip\r\n", 415, NULL},
    {"POST / HTTP/1.1\r\n" HOST JSON BOTH "x-everywire-timeout-ms: soon\r\n", 400, NULL},
    {"POST / HTTP/1.1\r\nHost: evil.example\r\n" JSON BOTH, 403, NULL},
    {"POST / HTTP/1.1\r\n" HOST JSON BOTH "Origin: http://evil.example\r\n", 403, NULL},
    {"PUT / HTTP/1.1\r\n" HOST JSON BOTH, 405, NULL},
};

static void test_wire_stepflow_http_serve__heads(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    for (size_t i = 0; i < N_OF(heads); i++) {
        say_message(&w, pair, heads[i].head, EXECUTE("1", "/echo", "2"));
        char *head = take_head_at(pair, __LINE__), *body = take_body_at(pair, head, __LINE__);
        if ((int)strtol(head + 9, NULL, 10) != heads[i].status ||
            (heads[i].answer && !peer_matches(w.ids, heads[i].answer, body, strlen(body))))
            fail_msg("%s\n%s%s", heads[i].head, head, body);
        free(head);
        free(body);
        hear_nothing(pair);
    }
    assert_int_equal(w.r.n_opened, 8);
    world_done(&w);
}

static void test_wire_stepflow_http_serve__too_large(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL, NULL, (rig_options){.limits = {.frame_bytes = 200}});
    char pad[300];
    (void)snprintf(pad, sizeof pad, EXECUTE("1", "/echo", "'%150s'"), "");
    rig_pair *pair = runtime(&w);
    post(&w, pair, pad);
    hear(&w, pair, 413, NULL);
    assert_true(is_over(pair));
    assert_int_equal(w.r.n_opened, 0);
    pair = runtime(&w); /* without a length it shows later */
    say_text(pair, "POST / HTTP/1.1\r\n" HOST JSON BOTH "Transfer-Encoding: chunked\r\n\r\nff\r\n");
    for (int i = 0; i < 26 && !is_over(pair); i++)
        say_text(pair, "          ");
    hear(&w, pair, 413, NULL);
    assert_true(is_over(pair));
    world_done(&w);
    world_plain(&w);
    pair = runtime(&w);
    say_text(pair, "POST / HTTP/1.1\r\n" HOST JSON BOTH "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"j\r\n");
    say_text(pair, "36\r\nsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialized\",\"params\":1\r\n1\r\n}\r\n0\r\n\r\n");
    hear(&w, pair, 200, RPC "'id':1,'result':{}}");
    world_done(&w);
}

static void say_get(rig_pair *pair, const char *line) {
    char text[200];
    (void)snprintf(text, sizeof text, "%s HTTP/1.1\r\n" HOST "\r\n", line);
    say_text(pair, text);
}

/* On a listener of its own there is nothing else; on the one port the other requests are the http wire's. */
static void test_wire_stepflow_http_serve__paths(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    say_get(pair, "GET /api/actions");
    hear(&w, pair, 405, NULL);
    say_get(pair, "GET /metrics"); /* nobody is there who could tell them */
    hear(&w, pair, 404, NULL);
    world_done(&w);

    world_plain(&w);
    server_site(&w)->only_guest = false;
    pair = runtime(&w);
    post(&w, pair, EXECUTE("1", "/echo", "2"));
    hear(&w, pair, 200, OUTPUT("1", "2"));
    say_message(&w, pair, "POST /echo HTTP/1.1\r\n" HOST JSON, "{'data':3}");
    hear(&w, pair, 200, "{'result':3}");
    say_message(&w, pair, "POST /nope HTTP/1.1\r\n" HOST JSON BOTH, EXECUTE("1", "/echo", "2"));
    hear(&w, pair, 404, NULL);
    say_get(pair, "GET /");
    char *head = hear_head(&w, pair, 405, NULL);
    check_line(head, "Allow: POST");
    free(head);
    say_get(pair, "GET /api/actions");
    hear(&w, pair, 200, NULL);
    post(&w, pair, EXECUTE("1", "/echo", "4"));
    hear(&w, pair, 200, OUTPUT("1", "4"));
    world_done(&w);
}

/* ---- health ---- */

static void check_health(rig_pair *pair, int status, const char *type, const char *body) {
    char *head = take_head_at(pair, __LINE__), *got = take_body_at(pair, head, __LINE__), line[60];
    (void)snprintf(line, sizeof line, "Content-Type: %s", type);
    assert_int_equal(strtol(head + 9, NULL, 10), status);
    check_line(head, line);
    if (!peer_matches((peer_ids){""}, body, got, strlen(got)))
        fail_msg("%s", got);
    free(head);
    free(got);
}

static void test_wire_stepflow_http_serve__health(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    say_get(pair, "GET /health");
    check_health(pair, 200, "text/plain; charset=utf-8", "ok\n");
    server_site(&w)->instance = &w.instance;
    say_get(pair, "GET /health");
    check_health(pair, 200, "application/json",
                 "{'status':'healthy','instanceId':'0123456789abcdef','timestamp':$1,'service':'tests'}");
    say_get(pair, "GET /healthz");
    check_health(pair, 200, "text/plain; charset=utf-8", "ok\n");
    say_get(pair, "HEAD /health");
    char *head = take_head_at(pair, __LINE__);
    check_line(head, "HTTP/1.1 200 OK");
    free(head);
    hear_nothing(pair);
    server_site(&w)->draining = true;
    say_get(pair, "GET /health");
    check_health(pair, 503, "application/json",
                 "{'status':'draining','instanceId':'0123456789abcdef','timestamp':$1,'service':'tests'}");
    world_done(&w);
}

/* ---- going down ---- */

static void test_wire_stepflow_http_serve__draining(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *busy = runtime(&w), *idle = runtime(&w);
    post(&w, busy, EXECUTE("1", "/sleep", "{'ms':5}"));
    server_site(&w)->draining = true;
    post(&w, idle, EXECUTE("2", "/echo", "1"));
    char *head = hear_head(&w, idle, 503, ERROR("2", REFUSAL(-32300, "the server is going down", "UNAVAILABLE")));
    check_line(head, "Connection: close");
    free(head);
    assert_true(is_over(idle));
    rig_advance(&w.r, 5); /* what runs is done */
    head = hear_head(&w, busy, 200, OUTPUT("1", "'slept'"));
    check_line(head, "Connection: close");
    free(head);
    assert_true(is_over(busy));
    world_done(&w);
}

/* ---- connections ---- */

static void test_wire_stepflow_http_serve__pipelined(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    post(&w, pair, EXECUTE("1", "/sleep", "{'ms':50,'out':1}"));
    post(&w, pair, EXECUTE("2", "/echo", "2"));
    post(&w, pair, RPC "'method':'initialized'}");
    post(&w, pair, "nonsense");
    post(&w, pair, EXECUTE("3", "/sleep", "{'ms':10,'out':3}"));
    hear_nothing(pair);
    assert_int_equal(w.r.n_opened, 1);
    rig_advance(&w.r, 50);
    hear(&w, pair, 200, OUTPUT("1", "1"));
    hear(&w, pair, 200, OUTPUT("2", "2"));
    hear(&w, pair, 202, "");
    hear(&w, pair, 400, NULL);
    hear_nothing(pair);
    rig_advance(&w.r, 10);
    hear(&w, pair, 200, OUTPUT("3", "3"));
    world_done(&w);
}

static void test_wire_stepflow_http_serve__old_http(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    say_message(&w, pair, "POST / HTTP/1.0\r\n" JSON BOTH "Connection: keep-alive\r\n", EXECUTE("1", "/echo", "1"));
    char *head = hear_head(&w, pair, 200, OUTPUT("1", "1"));
    check_line(head, "Connection: keep-alive");
    free(head);
    say_message(&w, pair, "POST / HTTP/1.0\r\n" JSON, EXECUTE("1", "/echo", "2"));
    head = hear_head(&w, pair, 200, OUTPUT("1", "2"));
    check_line(head, "Connection: close");
    free(head);
    assert_true(is_over(pair));
    world_done(&w);
}

/* The runtime goes away: its call is cancelled. */
static void test_wire_stepflow_http_serve__gone(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    post(&w, pair, EXECUTE("1", "/never", "1"));
    assert_int_equal(w.r.n_opened, 1);
    rig_say_eof(pair);
    rig_run(&w.r);
    assert_int_equal(w.r.n_cancelled, 1);
    hear_nothing(pair);
    pair = runtime(&w);
    post(&w, pair, EXECUTE("1", "/never", "1"));
    rig_cut(pair, RIG_CLIENT, RIG_RESET);
    rig_run(&w.r);
    assert_int_equal(w.r.n_cancelled, 2);
    world_done(&w);
}

static void test_wire_stepflow_http_serve__deadline(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL, NULL, (rig_options){.limits = {.call_ms = 100}});
    rig_pair *pair = runtime(&w);
    post(&w, pair, EXECUTE("1", "/never", "1"));
    rig_advance(&w.r, 99);
    hear_nothing(pair);
    rig_advance(&w.r, 1);
    hear(&w, pair, 200, ERROR("1", FAULT(-32100, "the deadline has passed", "DEADLINE_EXCEEDED")));
    say_message(&w, pair, "POST / HTTP/1.1\r\n" HOST JSON BOTH "x-everywire-timeout-ms: 20\r\n",
                EXECUTE("2", "/never", "1"));
    rig_advance(&w.r, 20);
    hear(&w, pair, 200, ERROR("2", FAULT(-32100, "the deadline has passed", "DEADLINE_EXCEEDED")));
    assert_int_equal(w.r.n_cancelled, 2);
    world_done(&w);
}

/* A large payload goes through untouched, and is sent from where it lies. */
static void test_wire_stepflow_http_serve__large(void **state) {
    (void)state;
    world w;
    enum { N = 300 * 1000 };
    char *body = malloc(N + 200), *expected = malloc(N + 200);
    assert_true(body && expected);
    (void)snprintf(body, N + 200, EXECUTE("1", "/echo", "'%0*d'"), N, 7);
    (void)snprintf(expected, N + 200, OUTPUT("1", "'%0*d'"), N, 7);
    world_init(&w, NULL, NULL, (rig_options){.split = RIG_RANDOM, .pipe_room = 10000});
    rig_pair *pair = runtime(&w);
    post(&w, pair, body);
    hear(&w, pair, 200, expected);
    free(body);
    free(expected);
    world_done(&w);
}

static void test_wire_stepflow_http_serve__too_many(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL, NULL, (rig_options){.limits = {.calls = 1}});
    rig_pair *first = runtime(&w), *second = runtime(&w);
    post(&w, first, EXECUTE("1", "/sleep", "{'ms':5,'out':1}"));
    post(&w, second, EXECUTE("2", "/echo", "2"));
    hear(&w, second, 429, NULL);
    rig_advance(&w.r, 5);
    hear(&w, first, 200, OUTPUT("1", "1"));
    post(&w, second, EXECUTE("2", "/echo", "2"));
    hear(&w, second, 200, OUTPUT("2", "2"));
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_serve__talks),
        cmocka_unit_test(test_wire_stepflow_http_serve__list),
        cmocka_unit_test(test_wire_stepflow_http_serve__context),
        cmocka_unit_test(test_wire_stepflow_http_serve__heads),
        cmocka_unit_test(test_wire_stepflow_http_serve__too_large),
        cmocka_unit_test(test_wire_stepflow_http_serve__paths),
        cmocka_unit_test(test_wire_stepflow_http_serve__health),
        cmocka_unit_test(test_wire_stepflow_http_serve__draining),
        cmocka_unit_test(test_wire_stepflow_http_serve__pipelined),
        cmocka_unit_test(test_wire_stepflow_http_serve__old_http),
        cmocka_unit_test(test_wire_stepflow_http_serve__gone),
        cmocka_unit_test(test_wire_stepflow_http_serve__deadline),
        cmocka_unit_test(test_wire_stepflow_http_serve__large),
        cmocka_unit_test(test_wire_stepflow_http_serve__too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
