/*
 * tests/unit/wire/test_stepflow_lines_call.c: the stepflow wire on pipes to a component server, calling: the handshake,
 * calls and what comes back for them, what a server asks. Lines that are damaged: test_stepflow_lines_damage.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_lines_world.h"
#include "support/json_or.h"

static rig_call *list(world *w) {
    rig_call *rc = rig_open(w->pair, &(rig_request){.list = true});
    rig_run(&w->r);
    return rc;
}

/* ---- the handshake ---- */

static void test_wire_stepflow_lines__handshake(void **state) {
    (void)state;
    world w;
    lines_call(&w);
    hear_nothing(&w); /* nobody calls: nothing is said */
    rig_call *a = call_plain(&w, "a", "1");
    hear(&w, RPC "'id':$9," INITIALIZE);
    rig_call *b = call_plain(&w, "/b", "2");
    rig_call *c = list(&w);
    rig_call *d = call_plain(&w, "/d", "4");
    hear_nothing(&w);
    assert_int_equal(rig_capacity(w.pair), w.r.limits.calls_per_connection - 4);
    rig_call_cancel(c); /* it has not left: it never will */
    check_failed(c, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    say(&w, RPC "'id':$9,'result':{'serverProtocolVersion':1}}");
    hear_line(&w, INITIALIZED);
    hear_execute(&w, 1, "/a", "1");
    hear_execute(&w, 2, "/b", "2");
    hear_execute(&w, 4, "/d", "4");
    hear_nothing(&w);
    say(&w, OUTPUT("$4", "'d'") "\n" OUTPUT("$1", "'a'") "\n" OUTPUT("$2", "'b'"));
    check_done(a, "\"a\"");
    check_done(b, "\"b\"");
    check_done(d, "\"d\"");
    a = call_plain(&w, "/e", "5"); /* once is enough */
    hear_execute(&w, 5, "/e", "5");
    hear_nothing(&w);
    say(&w, RPC "'id':$9,'result':{'serverProtocolVersion':1}}"); /* again: nobody asked */
    assert_int_equal(world_dropped(&w), 1);
    check_runs(a);
    world_done(&w);
}

static void test_wire_stepflow_lines__handshake_blobs(void **state) {
    (void)state;
    world w;
    lines_call(&w);
    w.r.side[RIG_CLIENT].site.blob_api = EW_STR("http://127.0.0.1:1/blobs");
    (void)call_plain(&w, "/a", "1");
    char *line = hear_request_at(&w, 9, "initialize", __LINE__);
    assert_true(ew_str_eq(json_str_or(ew_str_from(line), "/params/capabilities/blobApiUrl", EW_STR("")),
                          EW_STR("http://127.0.0.1:1/blobs")));
    free(line);
    world_done(&w);
}

#define NO_STEPFLOW "the peer did not answer initialize as a Stepflow component server does"

static void test_wire_stepflow_lines__handshake_refused(void **state) {
    static const struct {
        const char *answer, *message;
        ew_status status;
    } rows[] = {
        {RPC "'id':$9,'error':{'code':-32002,'message':'no \\u00e4'}}", "the server refuses the handshake: no \xc3\xa4",
         EW_STATUS_FAILED_PRECONDITION},
        {RPC "'id':$9,'error':'no'}", "the server refuses the handshake: no", EW_STATUS_UNKNOWN},
        {RPC "'id':null,'error':'no'}", "the server refuses the handshake: no", EW_STATUS_UNKNOWN},
        {RPC "'id':$9,'result':{'protocolVersion':'2025-06-18','capabilities':{}}}", NO_STEPFLOW, EW_STATUS_INTERNAL},
        {RPC "'id':$9,'result':1}", NO_STEPFLOW, EW_STATUS_INTERNAL},
        {RPC "'id':$9}", "the answer to initialize cannot be read", EW_STATUS_INTERNAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        lines_call(&w);
        rig_call *a = call_plain(&w, "/a", "1"), *b = list(&w);
        hear_request(&w, 9, "initialize");
        say(&w, rows[i].answer);
        check_failed(a, rows[i].status, EW_ORIGIN_PROTOCOL, rows[i].message);
        check_failed(b, rows[i].status, EW_ORIGIN_PROTOCOL, rows[i].message);
        assert_true(world_over(&w));
        hear_nothing(&w);
        assert_int_equal(rig_capacity(w.pair), 0);
        world_done(&w);
    }
}

static void test_wire_stepflow_lines__handshake_never(void **state) {
    (void)state;
    world w;
    lines_with(&w, RIG_SERVER, (rig_options){.limits = {.runtime_wait_ms = 500}});
    rig_call *a = call_plain(&w, "/a", "1");
    rig_call *b = rig_open(w.pair, &(rig_request){.key = "/b", .timeout_ms = 100});
    hear_request(&w, 9, "initialize");
    rig_advance(&w.r, 100);
    check_failed(b, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    rig_advance(&w.r, 399);
    check_runs(a);
    assert_false(world_over(&w));
    rig_advance(&w.r, 1);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, "the server has not answered initialize");
    assert_true(world_over(&w));
    world_done(&w);
}

/* What waits counts: inputs are kept in memory until they can leave. */
static void test_wire_stepflow_lines__handshake_room(void **state) {
    (void)state;
    static char input[600];
    world w;
    memset(input, '1', sizeof input - 1);
    lines_with(&w, RIG_SERVER, (rig_options){.limits = {.out_max_bytes = 2000}});
    (void)call_plain(&w, "/a", input);
    assert_int_not_equal(rig_capacity(w.pair), 0);
    rig_call *b = call_plain(&w, "/b", input);
    assert_int_equal(rig_capacity(w.pair), 0);
    rig_call_cancel(b);
    assert_int_not_equal(rig_capacity(w.pair), 0);
    shake_hands(&w, false);
    assert_int_equal(lines_peer(&w)->waiting_bytes, 0);
    world_done(&w);
}

/* Those that cannot leave are told when the others have left. */
static void test_wire_stepflow_lines__too_large(void **state) {
    (void)state;
    static char input[3000];
    world w;
    memset(input, '1', sizeof input - 1);
    lines_with(&w, RIG_SERVER, (rig_options){.limits = {.frame_bytes = 600}}); /* the envelope makes it too long */
    input[520] = '\0';
    rig_call *a = call_plain(&w, "/a", input), *b = call_plain(&w, "/b", "2"), *c = call_plain(&w, "/c", input);
    check_runs(a);
    shake_hands(&w, false);
    hear_execute(&w, 1, "/b", "2");
    check_runs(b);
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL, "the input is too large for this connection");
    check_failed(c, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL, "the input is too large for this connection");
    a = call_plain(&w, "/a", input);
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL, "the input is too large for this connection");
    static char many[3000] = "{'id':$1,'result':{'output':'"; /* and the other way */
    memset(many + strlen(many), 'x', 2800);
    say(&w, many);
    check_failed(b, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL, "the answer is too large for this connection");
    assert_false(world_over(&w));
    world_done(&w);
}

/* ---- calls ---- */

static void test_wire_stepflow_lines__calls(void **state) {
    (void)state;
    world w;
    lines_call(&w);
    rig_call *a = call_plain(&w, "/\xc3\xa4", "{\"a\":\n\"\xc3\xa4\"}");
    shake_hands(&w, false);
    char *line = hear_request_at(&w, 1, "components/execute", __LINE__);
    assert_non_null(
        strstr(line, "\"params\":{\"component\":\"/\\u00e4\",\"input\":{\"a\":\"\\u00e4\"},\"attempt\":1,"));
    assert_int_equal(json_str_or(ew_str_from(line), "/params/observability/trace_id", EW_STR("")).len, 32);
    free(line);
    say(&w, "{'id':$1,'result':{'output':{ 'x' : 1.0 }},'jsonrpc':'2.0'}"); /* as Python writes it */
    check_done(a, "{ \"x\" : 1.0 }");
    a = call_plain(&w, "/b", "1");
    hear_execute(&w, 1, "/b", "1");
    say(&w, RPC "'id':$1,'error':{'code':-32100,'message':'it','data':{'why':1}}}");
    check_failed(a, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "it");
    assert_string_equal(a->details, "{\"why\":1}");
    a = call_plain(&w, "/b", "1");
    hear_execute(&w, 1, "/b", "1");
    say(&w, RPC "'id':$1,'error':{'code':-32300,'message':'busy','data':{'status':'RESOURCE_EXHAUSTED'}}}");
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_ACTION, "busy");
    a = call_plain(&w, "/b", "1");
    hear_execute(&w, 1, "/b", "1");
    say(&w, RPC "'id':$1,'result':{'x':1}}");
    check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the server's result has no output");
    a = call_plain(&w, "/b", "1");
    hear_execute(&w, 1, "/b", "1");
    say(&w, RPC "'id':$1}");
    check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "neither method, result nor error");
    a = list(&w);
    hear(&w, RPC "'id':$2,'method':'components/list','params':{}}");
    say(&w, RPC "'id':$2,'result':{'components':[{'component':'/x','description':null,'input_schema':{'type':"
                "'object'}}]}}");
    assert_int_equal(a->status, EW_STATUS_OK);
    assert_true(ew_str_eq(json_str_or(ew_str_from(a->result), "/~1x/inputSchema/type", EW_STR("")), EW_STR("object")));
    world_done(&w);
}

/* A name without a slash is asked for with one first; some servers know it only without. */
/* A server that cannot read a request answers with an error without an id: it ends the only call in flight. */
static void test_wire_stepflow_lines__unnamed_error(void **state) {
    (void)state;
    world w;
    lines_call(&w);
    rig_call *a = call_plain(&w, "/a", "1");
    shake_hands(&w, false);
    hear_execute(&w, 1, "/a", "1");
    rig_call *b = call_plain(&w, "/b", "2");
    hear_execute(&w, 2, "/b", "2");
    say(&w, RPC "'id':null,'error':{'code':-32600,'message':'x'}}"); /* of one of two: logged */
    check_runs(a);
    check_runs(b);
    assert_int_equal(world_dropped(&w), 1);
    assert_int_equal(w.r.env.n_logged, 1);
    say(&w, RPC "'id':$2,'result':{'output':2}}");
    check_done(b, "2");
    say(&w, RPC "'id':null,'error':{'code':-32600,'message':'x'}}");
    check_failed(a, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_ACTION, "x");
    assert_int_equal(w.r.env.n_logged, 2);
    world_done(&w);
}

static void test_wire_stepflow_lines__bare(void **state) {
    (void)state;
    world w;
    lines_call(&w);
    rig_call *a = call_plain(&w, "echo", "1");
    shake_hands(&w, false);
    hear_execute(&w, 1, "/echo", "1");
    say(&w, RPC "'id':$1,'error':{'code':-32601,'message':'Component not found'}}");
    hear_execute(&w, 2, "echo", "1");
    assert_string_not_equal(w.ids[1], w.ids[2]);
    say(&w, OUTPUT("$1", "0")); /* to the first: late */
    assert_int_equal(world_dropped(&w), 1);
    check_runs(a);
    say(&w, OUTPUT("$2", "2"));
    check_done(a, "2");
    a = call_plain(&w, "echo", "1");
    hear_execute(&w, 1, "/echo", "1");
    say(&w, RPC "'id':$1,'error':{'code':-32001,'message':'no'}}");
    hear_execute(&w, 2, "echo", "1");
    say(&w, RPC "'id':$2,'error':{'code':-32001,'message':'really no'}}");
    check_failed(a, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "really no");
    a = call_plain(&w, "/echo", "1"); /* this is a key */
    hear_execute(&w, 1, "/echo", "1");
    say(&w, RPC "'id':$1,'error':{'code':-32001,'message':'no'}}");
    check_failed(a, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "no");
    hear_nothing(&w);
    assert_int_equal(lines_peer(&w)->calls.sent.n, 0);
    assert_int_equal(lines_peer(&w)->calls.sent.by_key.n, 0);
    world_done(&w);
}

/* What this wire has no words for. */
typedef struct outcome {
    world *w;
    ew_status status;
    ew_origin origin;
    char text[100];
} outcome;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    outcome *o = call->caller_ud;
    o->status = end->status;
    o->origin = end->origin;
    (void)snprintf(o->text, sizeof o->text, "%.*s", (int)end->fault.message.len, end->fault.message.ptr);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void on_open(ew_call *call) {
    const outcome *o = call->callee_ud;
    ew__peer *peer = o->w->pair->end[1 - o->w->raw].peer;
    if (peer->wire->open(peer, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("busy"));
}

static const ew__callee_ops opening = {.open = on_open};

static void open_odd(world *w, outcome *o, bool notify, bool input) {
    *o = (outcome){.w = w};
    ew_call *call = ew__call_new(&w->r.side[1 - w->raw].executor, &caller, o);
    assert_non_null(call);
    call->key = EW_STR("/a");
    call->input = EW_STR("1");
    call->outgoing.notify = notify;
    call->has_input = input;
    ew__call_open_on(call, &opening, o);
}

static void test_wire_stepflow_lines__not_carried(void **state) {
    (void)state;
    world w;
    outcome o;
    lines_call(&w);
    open_odd(&w, &o, true, false);
    assert_int_equal(o.status, EW_STATUS_UNIMPLEMENTED);
    assert_int_equal(o.origin, EW_ORIGIN_LOCAL);
    open_odd(&w, &o, false, true);
    assert_int_equal(o.status, EW_STATUS_INVALID_ARGUMENT);
    assert_int_equal(o.origin, EW_ORIGIN_LOCAL);
    hear_nothing(&w);
    world_done(&w);
    lines_serve(&w); /* a runtime is called back only */
    open_odd(&w, &o, false, false);
    assert_string_equal(o.text, "busy");
    hear_nothing(&w);
    world_done(&w);
}

static void test_wire_stepflow_lines__cancel(void **state) {
    (void)state;
    world w;
    rig_call *a = call_known(&w, true); /* one of ours is asked, and ends the call */
    rig_call_cancel(a);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    check_runs(a);
    say(&w, RPC "'id':$1,'error':{'code':-32100,'message':'stopped','data':{'status':'CANCELLED'}}}");
    check_failed(a, EW_STATUS_CANCELLED, EW_ORIGIN_ACTION, "stopped");
    world_done(&w);
    a = call_known(&w, true); /* ... or does not */
    rig_call_cancel(a);
    rig_advance(&w.r, 1999);
    check_runs(a);
    rig_advance(&w.r, 1);
    check_failed(a, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled, and the server has not ended it");
    world_done(&w);
    a = call_known(&w, true); /* who has gone does not wait */
    rig_call_release(a);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    say(&w, OUTPUT("$1", "1"));
    assert_int_equal(world_dropped(&w), 2); /* the fault that nobody waits for, and this */
    world_done(&w);
    a = call_known(&w, false); /* any other server would not understand */
    rig_call_cancel(a);
    hear_nothing(&w);
    check_failed(a, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    say(&w, OUTPUT("$1", "1"));
    assert_int_equal(world_dropped(&w), 1);
    world_done(&w);
    lines_call(&w); /* a name that is not known with a slash: cancelled, it is not asked for again */
    a = call_plain(&w, "echo", "1");
    shake_hands(&w, true);
    hear_execute(&w, 1, "/echo", "1");
    rig_call_cancel(a);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    say(&w, RPC "'id':$1,'error':{'code':-32001,'message':'no'}}");
    check_failed(a, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "no");
    hear_nothing(&w);
    world_done(&w);
}

/* ---- what a server asks ---- */

static ew_err put(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]) {
    (void)blobs;
    if (!ew_str_eq(type, EW_STR("data")))
        return EW_ELIMIT;
    memset(ret_id, 'a' + (int)json.len, EW__BLOB_ID_LEN);
    return EW_OK;
}

static ew_err get(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type) {
    (void)blobs;
    if (id.len == 0)
        return EW_ENOTFOUND;
    *ret_type = EW_STR("data");
    return ew__buf_cstr(out, id.ptr[0] == 'l' ? "[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5]"
                                              : "\"\xc3\xa4\"");
}

#define A10 "cccccccccc"
#define NO_METHOD                                                                                                      \
    "{'code':-32601,'message':'Method not found (components are run here one by one: there are no flows and no "       \
    "runs): "

static void test_wire_stepflow_lines__asked(void **state) {
    (void)state;
    world w;
    ew__blobs blobs = {.put = put, .get = get};
    rig_call *a = call_known(&w, false);
    w.r.side[RIG_CLIENT].site.blobs = &blobs;
    say(&w, RPC "'id':'\xc3\xa9','method':'blobs/put','params':{'data':12,'blob_type':'data','observability':null}}");
    hear(&w, RPC "'id':'\\u00e9','result':{'blob_id':'" A10 A10 A10 A10 A10 A10 "cccc'}}");
    say(&w, "{'jsonrpc':'2.0','id':$1,'method':'blobs/get','params':{'blob_id':'x'}}"); /* our own id: another's, too */
    hear(&w, RPC "'id':$1,'result':{'data':'\\u00e4','blob_type':'data'}}");
    say(&w, RPC "'id':2,'method':'blobs/put','params':{}}");
    hear(&w, RPC "'id':2,'error':{'code':-32602,'message':'blobs/put wants data, and data or flow as its blob_type',"
                 "'data':null}}");
    say(&w, RPC "'id':3,'method':'flows/\xc3\xa4','params':{}}");
    hear(&w, RPC "'id':3,'error':" NO_METHOD "flows/\\u00e4','data':null}}");
    say(&w, EXECUTE("4", "/echo", "1")); /* a runtime has no components */
    hear(&w, RPC "'id':4,'error':" NO_METHOD "components/execute','data':null}}");
    say(&w, RPC "'id':5,'method':7}");
    hear(&w, RPC "'id':5,'error':" INVALID("method must be a string that is not empty") "}");
    say(&w, RPC "'method':'progress_update','params':{}}\n" RPC "'id':null,'method':'blobs/put','params':{}}");
    hear_nothing(&w);
    assert_int_equal(world_dropped(&w), 2);
    say(&w, OUTPUT("$1", "1"));
    check_done(a, "1");
    w.r.side[RIG_CLIENT].site.blobs = NULL; /* none are kept */
    say(&w, RPC "'id':6,'method':'blobs/put','params':{'data':1}}");
    hear(&w, RPC "'id':6,'error':" NO_METHOD "blobs/put','data':null}}");
    world_done(&w);
}

static void test_wire_stepflow_lines__asked_too_much(void **state) {
    (void)state;
    world w;
    ew__blobs blobs = {.put = put, .get = get};
    lines_with(&w, RIG_SERVER, (rig_options){.limits = {.frame_bytes = 150}});
    w.r.side[RIG_CLIENT].site.blobs = &blobs;
    say(&w, RPC "'id':1,'method':'blobs/get','params':{'blob_id':'x'}}");
    hear(&w, RPC "'id':1,'result':{'data':'\\u00e4','blob_type':'data'}}");
    say(&w, RPC "'id':2,'method':'blobs/get','params':{'blob_id':'long'}}");
    hear(&w,
         RPC "'id':2,'error':" FAULT(-32000, "the answer is too large for this connection", "RESOURCE_EXHAUSTED") "}");
    world_done(&w);
}

/* ---- the end ---- */

static void test_wire_stepflow_lines__lost(void **state) {
    (void)state;
    world w;
    rig_call *a = call_known(&w, false), *b = call_plain(&w, "/b", "1");
    say_eof(&w);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    check_failed(b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    assert_int_equal(rig_capacity(w.pair), 0);
    world_done(&w);
    a = call_known(&w, false);
    rig_cut(w.pair, RIG_SERVER, RIG_RESET);
    rig_run(&w.r);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    world_done(&w);
    lines_call(&w); /* before the server has said a word */
    a = call_plain(&w, "/a", "1");
    say_eof(&w);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    world_done(&w);
    a = call_known(&w, false); /* half an answer is none */
    say_part(&w, "{'id':$1,'result':{'output':1}");
    say_eof(&w);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    world_done(&w);
    a = call_known(&w, false); /* going down: the last answer is waited for */
    w.r.wire->drain(w.pair->end[RIG_CLIENT].peer);
    assert_int_equal(rig_capacity(w.pair), 0);
    assert_false(world_over(&w));
    say(&w, OUTPUT("$1", "1"));
    check_done(a, "1");
    assert_true(world_over(&w));
    world_done(&w);
}

/* ---- without memory ---- */

static void forget(world *w) {
    if (heard_so_far(w).len)
        rig_forget(w->pair, heard_so_far(w).len);
}

/* The first request and all that follow are known: the seed is the same in each life. */
static void play(world *w) {
    ew__blobs blobs = {.put = put, .get = get};
    w->r.side[RIG_CLIENT].site.blobs = &blobs;
    rig_call *a = call_plain(w, "echo", "\"\xc3\xa4\"");
    rig_call *b = call_plain(w, "/b", "[1,\n2]");
    (void)list(w);
    ew_str got = heard_so_far(w);
    (void)snprintf(w->ids[9], 40, "%.*s", (int)(got.len ? 12 : 0), got.len ? strstr(got.ptr, "ew") : "");
    char text[400];
    (void)snprintf(text, sizeof text, RPC "'id':'%s-2','result':{'server_protocol_version':1,'x-everywire':{}}}",
                   w->ids[9]);
    say(w, text);
    say(w, RPC "'id':'\xc3\xa9','method':'blobs/put','params':{'data':12}}");
    say(w, RPC "'id':'\xc3\xa9','method':'other\xc3\xa9'}");
    say(w, "{'id':{}}");
    (void)snprintf(text, sizeof text, RPC "'id':'%s-1','error':{'code':-32001,'message':'no'}}", w->ids[9]);
    say(w, text);
    rig_call_cancel(b);
    (void)snprintf(text, sizeof text, RPC "'id':'%s-4','result':{'components':[{'component':'/x'}]}}", w->ids[9]);
    say(w, text);
    say_much(w, "{'id':'x','result':'", 40000);
    (void)snprintf(text, sizeof text, "{'id':'%s-5','result':{'output':1}}", w->ids[9]);
    say(w, text);
    if (ew__test_env_failed(&w->r.env) == 0) /* all of it does what it is here for */
        check_done(a, "1");
    forget(w);
    w->r.side[RIG_CLIENT].site.blobs = NULL;
    rig_advance(&w->r, 3000);
    say_eof(w); /* what was not answered ends now */
}

static void test_wire_stepflow_lines__no_memory(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split += RIG_RANDOM) {
        uint64_t failed = 1, n = 1;
        for (; failed > 0 && n < 5000; n++) {
            for (int all = 0; all < 2; all++) {
                world w;
                memset(&w, 0, sizeof w);
                w.raw = RIG_SERVER;
                rig_init(&w.r, &ew__wire_stepflow, &(rig_options){.seed = 1, .stdio = true, .split = (rig_split)split});
                ew__test_env_fail_at(&w.r.env, n, all == 1);
                w.pair = rig_connect_raw(&w.r, RIG_SERVER);
                play(&w);
                failed = ew__test_env_failed(&w.r.env);
                ew__test_env_fail_at(&w.r.env, 0, false);
                rig_check_no_hang(&w.r);
                world_done(&w);
            }
        }
        assert_true(failed == 0 && n > 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_lines__handshake),
        cmocka_unit_test(test_wire_stepflow_lines__handshake_blobs),
        cmocka_unit_test(test_wire_stepflow_lines__handshake_refused),
        cmocka_unit_test(test_wire_stepflow_lines__handshake_never),
        cmocka_unit_test(test_wire_stepflow_lines__handshake_room),
        cmocka_unit_test(test_wire_stepflow_lines__too_large),
        cmocka_unit_test(test_wire_stepflow_lines__calls),
        cmocka_unit_test(test_wire_stepflow_lines__unnamed_error),
        cmocka_unit_test(test_wire_stepflow_lines__bare),
        cmocka_unit_test(test_wire_stepflow_lines__not_carried),
        cmocka_unit_test(test_wire_stepflow_lines__cancel),
        cmocka_unit_test(test_wire_stepflow_lines__asked),
        cmocka_unit_test(test_wire_stepflow_lines__asked_too_much),
        cmocka_unit_test(test_wire_stepflow_lines__lost),
        cmocka_unit_test(test_wire_stepflow_lines__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
