/*
 * tests/unit/wire/test_stepflow_lines_serve.c: the stepflow wire on standard input, serving: what a runtime may say,
 * and what it gets. What is asked of it: test_stepflow_lines_back.c; real peers: test_stepflow_replay.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_lines_world.h"
#include "support/json_or.h"

#define HELLO(id)                                                                                                      \
    RPC "'id':" id ",'result':{'server_protocol_version':1,'serverProtocolVersion':1,'supportsBlobRefs':false,"        \
        "'x-everywire':{'version':'" EW_VERSION_STRING "'}}}"
#define MISSING(name)                                                                                                  \
    "{'code':-32001,'message':'no such component: " name "','data':{'status':'NOT_FOUND','component':'" name "'}}"
#define UNKNOWN(method) FAULT(-32601, "no such method: " method, "UNIMPLEMENTED")

/* ---- the handshake, and what runs nothing ---- */

static void test_wire_stepflow_lines__hello(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, RPC "'id':'a','method':'initialize','params':{'runtime_protocol_version':1}}");
    hear(&w, HELLO("'a'"));
    say(&w, RPC "'method':'initialized','params':{}}");
    say(&w, RPC "'method':'initialized'}");
    hear_nothing(&w);
    say(&w, RPC "'id':2,'method':'initialize','params':{'runtimeProtocolVersion':7,'capabilities':{}}}"); /* again */
    hear(&w, HELLO("2"));
    say(&w, RPC "'id':3,'method':'initialized','params':{}}");
    hear(&w, RPC "'id':3,'result':{}}");
    assert_int_equal(world_dropped(&w), 0);
    world_done(&w);
}

static void test_wire_stepflow_lines__components(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, RPC "'id':'l','method':'components/list','params':{}}");
    char *line = next_line_at(&w, __LINE__);
    ew_str first = ew_json_get(ew_str_from(line), "/result/components/0");
    assert_true(json_str_or(first, "/component", EW_STR("")).len > 1);
    assert_true(ew_str_eq(json_str_or(ew_str_from(line), "/id", EW_STR("")), EW_STR("l")));
    free(line);
    say(&w, RPC "'id':'i','method':'components/info','params':{'component':'/echo'}}");
    line = next_line_at(&w, __LINE__);
    assert_true(ew_str_eq(json_str_or(ew_str_from(line), "/result/info/component", EW_STR("")), EW_STR("/echo")));
    free(line);
    say(&w, RPC "'id':'j','method':'components/info','params':{'component':'/none'}}");
    hear(&w, RPC "'id':'j','error':" MISSING("/none") "}");
    say(&w, RPC "'id':'k','method':'components/info'}");
    hear(&w, RPC
         "'id':'k','error':" FAULT(-32602, "params.component must be the name of a component", "INVALID_ARGUMENT") "}");
    world_done(&w);
}

/* ---- components/execute ---- */

/* Nobody has said initialize. */
static void test_wire_stepflow_lines__execute(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("'req-1'", "/echo", "{'a':[1,2.50]}"));
    hear(&w, OUTPUT("'req-1'", "{'a':[1,2.50]}"));
    say(&w, EXECUTE("1", "echo", "1"));
    hear(&w, OUTPUT("1", "1"));
    say(&w, EXECUTE("''", "/test/echo", "null"));
    hear(&w, OUTPUT("''", "null"));
    say(&w, RPC "'id':-1.50,'method':'components\\/execute','params':{'component':{'name':'echo'},'input':[]}}");
    hear(&w, OUTPUT("-1.50", "[]"));
    say(&w, RPC "'id':2,'method':'components/execute','params':{'component':'\\u002fecho'}}"); /* no input: null */
    hear(&w, OUTPUT("2", "null"));
    say(&w, "{'id':3,'method':'components/execute','params':{'component':'/echo','input':3}}"); /* no version */
    hear(&w, OUTPUT("3", "3"));
    say(&w, RPC "'id':4,'method':'components/execute','params':{'component':'/echo','input':4,'attempt':2,'step_id':"
                "'s','run_id':'r','flow_id':'f','observability':{},'more':1},'extra':0}\r");
    hear(&w, OUTPUT("4", "4"));
    assert_int_equal(w.r.n_opened, 7);
    world_done(&w);
}

/* All that is written is ASCII and one line, the ids too; the values are the same. */
static void test_wire_stepflow_lines__ascii(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("'\xc3\xa9'", "/echo", "['\xc3\xa4\xf0\x9f\x98\x80','\\u00e4']"));
    hear(&w, OUTPUT("'\\u00e9'", "['\\u00e4\\ud83d\\ude00','\\u00e4']"));
    say(&w, EXECUTE("6", "/fail",
                    "{'status':'ABORTED','message':'\xc3\xa4','details':{'a':'\xc3\xa4'},"
                    "'retry_after_ms':250}"));
    hear(&w, RPC "'id':6,'error':{'code':-32100,'message':'\\u00e4','data':{'status':'ABORTED','details':{'a':"
                 "'\\u00e4'},'retryable':true,'retry_after_ms':250}}}");
    say(&w, EXECUTE("'\xc3\xa9'", "/\xc3\xa4", "1"));
    hear(&w, RPC "'id':'\\u00e9','error':" MISSING("/\\u00e4") "}");
    world_done(&w);
}

static void test_wire_stepflow_lines__refused(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("1", "/none", "1"));
    hear(&w, RPC "'id':1,'error':" MISSING("/none") "}");
    say(&w, EXECUTE("2", "same", "1"));
    hear(&w, RPC "'id':2,'error':{'code':-32602,'message':'several actions have this name, use a key: /one/same, "
                 "/two/same','data':{'status':'INVALID_ARGUMENT','component':'same'}}}");
    say(&w, RPC "'id':3,'method':'components/execute'}");
    hear(&w, RPC "'id':3,'error':" FAULT(-32602, "params must be an object with a component and an input",
                                         "INVALID_ARGUMENT") "}");
    say(&w, RPC "'id':4,'method':'components/execute','params':{'input':1}}");
    hear(&w, RPC
         "'id':4,'error':" FAULT(-32602, "params.component must be the name of a component", "INVALID_ARGUMENT") "}");
    say(&w, RPC "'id':5,'method':'blobs/put','params':{}}"); /* a runtime's own */
    hear(&w, RPC "'id':5,'error':" UNKNOWN("blobs/put") "}");
    say(&w, RPC "'id':6,'method':'components/infer_schema','params':{}}");
    hear(&w, RPC "'id':6,'error':" UNKNOWN("components/infer_schema") "}");
    say(&w, RPC "'id':7,'method':'$/cancelRequest','params':{'id':1}}"); /* it is a notification */
    hear(&w, RPC "'id':7,'error':" UNKNOWN("$/cancelRequest") "}");
    assert_int_equal(w.r.n_opened, 0);
    world_done(&w);
}

static void test_wire_stepflow_lines__notifications(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, RPC "'method':'execution_complete'}");
    say(&w, RPC "'method':'progress_update','params':{'step_id':'s','progress':0.75}}");
    say(&w, RPC "'id':null,'method':'components/list','params':{}}"); /* a null id is none here */
    say(&w, RPC "'id':null,'method':'components/execute','params':{'component':'/echo','input':1}}");
    say(&w, RPC "'method':'components/execute','params':{'component':'/echo','input':1}}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':1}}");
    say(&w, RPC "'method':'$/cancelRequest'}");
    say(&w, RPC "'id':'x','result':{}}"); /* an answer to nothing */
    say(&w, RPC "'id':null,'error':{'code':-32700,'message':'x'}}");
    hear_nothing(&w);
    assert_int_equal(world_dropped(&w), 9);
    assert_int_equal(w.r.n_opened, 0);
    world_done(&w);
}

/* Handlers start in the order of their messages; answers come when they are there. */
static void test_wire_stepflow_lines__order(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        lines_with(&w, RIG_CLIENT, (rig_options){.split = (rig_split)split});
        say(&w, EXECUTE("'one'", "/sleep", "{'ms':20,'out':1}") "\n" EXECUTE("'two'", "/echo", "2") "\r\n\n" EXECUTE(
                    "'three'", "/sleep", "{'ms':10,'out':3}"));
        hear(&w, OUTPUT("'two'", "2"));
        assert_int_equal(w.r.n_opened, 3);
        rig_advance(&w.r, 10);
        hear(&w, OUTPUT("'three'", "3"));
        rig_advance(&w.r, 10);
        hear(&w, OUTPUT("'one'", "1"));
        world_done(&w);
    }
}

#define TAKEN INVALID("a call with this id still runs")

static void test_wire_stepflow_lines__same_id(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("'\xc3\xa9'", "/sleep", "{'ms':10}"));
    say(&w, EXECUTE("'\\u00e9'", "/echo", "1")); /* the same, written in another way */
    hear(&w, RPC "'id':'\\u00e9','error':" TAKEN "}");
    say(&w, RPC "'id':'\xc3\xa9','method':'components/list'}");
    hear(&w, RPC "'id':'\\u00e9','error':" TAKEN "}");
    rig_advance(&w.r, 10);
    hear(&w, OUTPUT("'\\u00e9'", "'slept'"));
    say(&w, EXECUTE("'\xc3\xa9'", "/echo", "1"));
    hear(&w, OUTPUT("'\\u00e9'", "1"));
    assert_int_equal(w.r.n_opened, 2);
    world_done(&w);
}

static void test_wire_stepflow_lines__cancel(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("'a'", "/never", "1"));
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':'\\u0061'}}");
    assert_int_equal(w.r.n_cancelled, 1);
    char *line = next_line_at(&w, __LINE__);
    assert_non_null(strstr(line, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32100,"));
    assert_non_null(strstr(line, "\"status\":\"CANCELLED\""));
    free(line);
    hear_nothing(&w);
    world_done(&w);
}

/* What came with a call: the observability is its context; the ids of older runtimes stand in it, too. */
static void test_wire_stepflow_lines__context(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, RPC "'id':1,'method':'components/execute','params':{'component':'/about','input':{},'observability':{"
                "'trace_id':'0af7651916cd43dd8448eb211c80319c','span_id':'b7ad6b7169203331','run_id':'r'}}}");
    char *line = next_line_at(&w, __LINE__);
    ew_str output = ew_json_get(ew_str_from(line), "/result/output");
    assert_true(ew_str_eq(json_str_or(output, "/trace", EW_STR("")), EW_STR("0af7651916cd43dd8448eb211c80319c")));
    assert_true(ew_str_eq(json_str_or(output, "/context/run_id", EW_STR("")), EW_STR("r")));
    assert_true(ew_str_eq(json_str_or(output, "/wire", EW_STR("")), EW_STR("stepflow")));
    assert_true(ew_str_eq(json_str_or(output, "/key", EW_STR("")), EW_STR("/test/about")));
    free(line);
    world_done(&w);
}

/* ---- what is no request ---- */

static void test_wire_stepflow_lines__invalid(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, "{'jsonrpc':'1.0','id':1,'method':'components/list'}");
    hear(&w, RPC "'id':1,'error':" INVALID("jsonrpc must be \\'2.0\\'") "}");
    say(&w, "{'jsonrpc':2.0,'id':1,'method':'components/list'}");
    hear(&w, RPC "'id':1,'error':" INVALID("jsonrpc must be \\'2.0\\'") "}");
    say(&w, RPC "'id':'\xc3\xa9','method':5}");
    hear(&w, RPC "'id':'\\u00e9','error':" INVALID("method must be a string that is not empty") "}");
    say(&w, "{'id':2,'method':''}");
    hear(&w, RPC "'id':2,'error':" INVALID("jsonrpc must be \\'2.0\\'") "}");
    say(&w, RPC "'id':[1],'method':'components/list'}");
    hear(&w, RPC "'id':null,'error':" INVALID("id must be a string, a number or null") "}");
    say(&w, RPC "'id':3,'method':'components/list','method':'components/list'}");
    hear(&w, RPC "'id':3,'error':" INVALID("a member is repeated") "}");
    say(&w, RPC "'id':4}");
    hear(&w, RPC "'id':4,'error':" INVALID("neither method, result nor error") "}");
    say(&w, "{}");
    hear(&w, RPC "'id':null,'error':" INVALID("neither method, result nor error") "}");
    say(&w, "[" RPC "'id':1,'method':'components/list'}," RPC "'id':2,'method':'components/list'}]");
    hear(&w, RPC "'id':null,'error':" INVALID("this protocol has no batches") "}");
    say(&w, "[]");
    hear(&w, RPC "'id':null,'error':" INVALID("this protocol has no batches") "}");
    say(&w, "null");
    hear(&w, RPC "'id':null,'error':" INVALID("a message is an object") "}");
    say(&w, EXECUTE("9", "/echo", "9"));
    hear(&w, OUTPUT("9", "9"));
    world_done(&w);
}

static void test_wire_stepflow_lines__unreadable(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, "nonsense\n" EXECUTE("1", "/echo", "1"));
    hear(&w, NOT_JSON "\n" OUTPUT("1", "1"));
    say(&w, RPC "'id':2,'method':'components/execute','params':{'component':'/echo','input':}}");
    hear(&w, NOT_JSON);
    say(&w, "Content-Length: 5\n\n\n" EXECUTE("3", "/echo", "3"));
    hear(&w, NOT_JSON "\n" OUTPUT("3", "3"));
    assert_string_equal(w.r.env.log_room, "stepflow");
    for (int i = 1; i <= 100; i++) {
        assert_false(world_over(&w));
        say(&w, "no");
    }
    assert_true(world_over(&w)); /* with the hundredth in a row */
    world_done(&w);
}

static void say_long(world *w, const char *before, size_t n, const char *after) {
    char *text = malloc(n + 300);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, 200, "%s", before);
    memset(text + len, 'x', n);
    (void)snprintf(text + len + n, 100, "%s", after);
    say(w, text);
    free(text);
}

#define LARGE "the message is larger than this side accepts (limit frame_bytes)"
#define TOO_LONG FAULT(-32600, LARGE, "RESOURCE_EXHAUSTED")

/* A message that is too long is answered by its id, where that stands at its beginning; then the next line counts. */
/* One line is one message: each line gets one answer, and the next line is read afresh. */
static void test_wire_stepflow_lines__incomplete_line(void **state) {
    (void)state;
    static const char *const bad[] = {"{'id':5,'method':'components/execute',",
                                      "{",
                                      "[1,",
                                      "'params':{'a':1}",
                                      "1 2",
                                      "{'id':5,'method':'components/list','params':{}}}",
                                      "{'id':5,'x':'",
                                      "{} {}"};
    world w;
    for (unsigned split = 0; split < 3; split++) {
        lines_with(&w, RIG_CLIENT, (rig_options){.split = (rig_split)split});
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            say(&w, bad[i]);
            hear(&w, NOT_JSON);
            say(&w, EXECUTE("1", "/echo", "1"));
            hear(&w, OUTPUT("1", "1"));
        }
        world_done(&w);
    }
}

static void test_wire_stepflow_lines__too_long(void **state) {
    static const struct {
        const char *before, *heard;
    } rows[] = {
        {RPC "'id':'\\u00e9\\'x','method':'components/execute','params':{'component':'/echo','input':'",
         RPC "'id':'\\u00e9\\'x','error':" TOO_LONG "}\n"},
        {"\n { 'id' : -15e2 , 'method':'components/execute','x':'", RPC "'id':-15e2,'error':" TOO_LONG "}\n"},
        {"{'method':'components/execute','id':1,'x':'",
         RPC "'id':1,'error':" TOO_LONG "}\n"}, /* behind one other member */
        {RPC "'method':'components/execute','id':1,'x':'", RPC "'id':1,'error':" TOO_LONG "}\n"},
        {RPC "'id':{'a':1},'x':'", RPC "'id':null,'error':" FAULT(-32700, LARGE, "INVALID_ARGUMENT") "}\n"},
        {RPC "'id':01,'x':'", RPC "'id':null,'error':" FAULT(-32700, LARGE, "INVALID_ARGUMENT") "}\n"},
        {"{'id':'", RPC "'id':null,'error':" FAULT(-32700, LARGE, "INVALID_ARGUMENT") "}\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
            world w;
            lines_with(&w, RIG_CLIENT, (rig_options){.limits = {.frame_bytes = 5000}, .split = (rig_split)split});
            say_long(&w, rows[i].before, 6000, "'}}");
            hear_bytes(&w, rows[i].heard);
            say(&w, EXECUTE("2", "/echo", "2"));
            hear(&w, OUTPUT("2", "2"));
            assert_int_equal(w.r.n_opened, 1);
            world_done(&w);
        }
    }
}

/* ---- limits, and the end ---- */

static void test_wire_stepflow_lines__busy(void **state) {
    (void)state;
    world w;
    lines_with(&w, RIG_CLIENT, (rig_options){.limits = {.calls_per_connection = 1}});
    say(&w, EXECUTE("1", "/sleep", "{'ms':10}"));
    say(&w, EXECUTE("2", "/echo", "2"));
    hear(&w, RPC "'id':2,'error':" REFUSAL(-32300, "too many calls on this connection", "RESOURCE_EXHAUSTED") "}");
    say(&w, RPC "'id':3,'method':'initialize','params':{}}"); /* runs nothing */
    hear(&w, HELLO("3"));
    rig_advance(&w.r, 10);
    hear(&w, OUTPUT("1", "'slept'"));
    say(&w, EXECUTE("2", "/echo", "2"));
    hear(&w, OUTPUT("2", "2"));
    world_done(&w);
}

static void test_wire_stepflow_lines__drain(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("1", "/sleep", "{'ms':10}"));
    w.r.side[RIG_SERVER].site.draining = true;
    w.r.wire->drain(w.pair->end[RIG_SERVER].peer);
    say(&w, EXECUTE("2", "/echo", "2"));
    hear(&w, RPC "'id':2,'error':" REFUSAL(-32300, "going down", "UNAVAILABLE") "}");
    assert_false(world_over(&w));
    rig_advance(&w.r, 10);
    hear(&w, OUTPUT("1", "'slept'"));
    assert_true(world_over(&w));
    world_done(&w);
}

static void test_wire_stepflow_lines__too_large(void **state) {
    (void)state;
    world w;
    lines_with(&w, RIG_CLIENT, (rig_options){.limits = {.frame_bytes = 6000}});
    say(&w, RPC "'id':1,'method':'components/list','params':{}}");
    char *line = next_line_at(&w, __LINE__);
    assert_non_null(strstr(line, "\"result\"")); /* fits */
    free(line);
    say_long(&w, RPC "'id':'", 5800, "','method':'components/list'}");
    line = next_line_at(&w, __LINE__);
    assert_non_null(strstr(line, "\"code\":-32603,\"message\":\"the answer is too large for this connection\""));
    free(line);
    say_long(&w, RPC "'id':'", 5880, "','method':'components/execute','params':{'component':'/about'}}");
    line = next_line_at(&w, __LINE__);
    assert_non_null(strstr(line, "\"code\":-32100,\"message\":\"the result is too large for this connection\""));
    free(line);
    world_done(&w);
}

/* A runtime that has closed only its own side still gets its answers. One that has gone cancels what runs. */
static void test_wire_stepflow_lines__eof(void **state) {
    (void)state;
    world w;
    lines_serve(&w);
    say(&w, EXECUTE("1", "/sleep", "{'ms':10}"));
    say_part(&w, EXECUTE("2", "/echo", "2")); /* without its newline */
    say_eof(&w);
    hear(&w, OUTPUT("2", "2"));
    assert_false(world_over(&w));
    rig_advance(&w.r, 10);
    hear(&w, OUTPUT("1", "'slept'"));
    assert_true(world_over(&w));
    world_done(&w);
    lines_serve(&w);
    say_part(&w, RPC "'id':1,");
    say_eof(&w);
    hear(&w, RPC "'id':null,'error':" FAULT(-32700, "not JSON", "INVALID_ARGUMENT") "}");
    world_done(&w);
    lines_serve(&w);
    say(&w, EXECUTE("1", "/never", "1"));
    rig_close(w.pair, RIG_CLIENT);
    rig_run(&w.r);
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
}

/* ---- memory ---- */

/* A large input is in memory twice: as it came, and in its call. An idle connection holds nothing of it. */
static void test_wire_stepflow_lines__memory(void **state) {
    (void)state;
    enum { SIZE = 10 * 1000 * 1000, PIECE = 64 * 1024 };
    static const char before[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"components/execute\",\"params\":{"
                                 "\"component\":\"/echo\",\"input\":\"";
    world w;
    char *text = malloc(SIZE + 200);
    assert_non_null(text);
    lines_serve(&w);
    say(&w, EXECUTE("1", "/echo", "1")); /* pools are filled */
    rig_forget(w.pair, heard_so_far(&w).len);
    size_t n = sizeof before - 1, idle = ew__test_env_live_bytes(&w.r.env);
    memcpy(text, before, n);
    memset(text + n, 'x', SIZE);
    memcpy(text + n + SIZE, "\"}}\n", 4);
    n += SIZE + 4;
    ew__peer *peer = w.pair->end[RIG_SERVER].peer;
    for (size_t at = 0; at < n; at += PIECE)
        peer->wire->input(peer, (const uint8_t *)text + at, n - at < PIECE ? n - at : PIECE);
    assert_true(ew__test_env_peak_bytes(&w.r.env) - idle <= (size_t)3 * SIZE);
    rig_run(&w.r);
    assert_int_equal(w.pair->end[RIG_CLIENT].got_len,
                     SIZE + 2 + strlen("{'jsonrpc':'2.0','id':1,'result':{'output':}}\n"));
    assert_true(ew__test_env_live_bytes(&w.r.env) <= idle + (size_t)64 * 1024);
    assert_null(lines_peer(&w)->reader.in.ptr);
    free(text);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_lines__hello),
        cmocka_unit_test(test_wire_stepflow_lines__components),
        cmocka_unit_test(test_wire_stepflow_lines__execute),
        cmocka_unit_test(test_wire_stepflow_lines__ascii),
        cmocka_unit_test(test_wire_stepflow_lines__refused),
        cmocka_unit_test(test_wire_stepflow_lines__notifications),
        cmocka_unit_test(test_wire_stepflow_lines__order),
        cmocka_unit_test(test_wire_stepflow_lines__same_id),
        cmocka_unit_test(test_wire_stepflow_lines__cancel),
        cmocka_unit_test(test_wire_stepflow_lines__context),
        cmocka_unit_test(test_wire_stepflow_lines__invalid),
        cmocka_unit_test(test_wire_stepflow_lines__unreadable),
        cmocka_unit_test(test_wire_stepflow_lines__incomplete_line),
        cmocka_unit_test(test_wire_stepflow_lines__too_long),
        cmocka_unit_test(test_wire_stepflow_lines__busy),
        cmocka_unit_test(test_wire_stepflow_lines__drain),
        cmocka_unit_test(test_wire_stepflow_lines__too_large),
        cmocka_unit_test(test_wire_stepflow_lines__eof),
        cmocka_unit_test(test_wire_stepflow_lines__memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
