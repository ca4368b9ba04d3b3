/*
 * tests/unit/wire/test_jsonrpc_hazards.c: what goes wrong in other implementations of the stream extension and must
 * not here (one test for each hazard that was found in the reference codec, by its number), and what that codec's own
 * 28 tests assert.
 *
 * Of the 28 these do not apply:
 *    2  a plain error as a JSON string: we send objects only (hazard 21); strings that come are read (checklist_02)
 *    5  reads after a local close report end of file: nobody reads here, calls end instead (checklist_06)
 *   11  a service that does not exist, and 12 a name without a dot: methods have no services; both are point 10
 *   14  params that cannot be serialised: the program's JSON is validated before a call is made (tests/unit/api)
 *   17  the shutdown time-out, and 18 its default: the endpoint has it (tests/unit/api); here only that an idle
 *       connection closes at once (checklist_17)
 *   25  an opened stream that nobody attaches to is forgotten: there is no attaching; frames that a handler does not
 *       look at wait for it (22), or go with its answer (hazard 11)
 *   27  the receiver's own close, and 28 closing three times: a receiver cancels its call (hazard 25)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define INVALID(problem) FAULT(-32600, problem, "INVALID_ARGUMENT")
#define NO_METHOD FAULT(-32601, "no such method", "NOT_FOUND")
#define LOST "the connection was lost before the end of the call"

static void say_many(world *w, const char *line, int n) {
    char *bytes = world_expand(w, line);
    for (int i = 0; i < n; i++) {
        rig_say(w->pair, bytes, strlen(bytes));
        rig_say(w->pair, "\n", 1);
    }
    free(bytes);
    rig_run(&w->r);
}

/* A calling world whose peer has been asked already; the call waits for its answer as $1. */
static rig_call *call_known(world *w) {
    world_call(w);
    rig_call *rc = call_stream(w, "Svc.Get");
    answer_discover(w, false);
    hear(w, RPC "'id':$1,'method':'Svc.Get'}");
    return rc;
}

/* Frames that nobody reads do not pile up: they stay with the sender. */
static void hazard_01(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'lazy','stream':1,'params':{'after_ms':3000}}");
    size_t before = ew__test_env_live_bytes(&w.r.env);
    say_many(&w, RPC "'id':'s','stream':2,'data':1}", 10000);
    assert_true(ew__test_env_live_bytes(&w.r.env) - before < 1024 * 1024);
    assert_false(w.pair->end[RIG_SERVER].reading);
    say(&w, RPC "'id':'s','stream':3}");
    rig_advance(&w.r, 3000);
    hear(&w, RPC "'id':'s','result':{'sum':10000,'n':10000}}");
    world_done(&w);
}

/* Reading stops while a stream is full, goes on when it is taken, and one that is never taken loses. */
static void hazard_02(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'lazy','stream':1,'params':{'after_ms':100000}}");
    say_many(&w, RPC "'id':'s','stream':2,'data':1}", 100);
    assert_false(w.pair->end[RIG_SERVER].reading);
    rig_advance(&w.r, 5000);
    assert_true(w.pair->end[RIG_SERVER].reading);
    hear(&w, RPC "'id':'s','error':" FAULT(-32000, "overrun: the stream was not taken, and held up its connection",
                                           "RESOURCE_EXHAUSTED") "}");
    world_done(&w);
}

/* A frame is delivered when it comes: no time passes. */
static void hazard_03(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'relay?stream=true','stream':1}");
    hear(&w, RPC "'id':'s','stream':1,'result':null}");
    uint64_t now = w.r.env.now_ns;
    for (int i = 0; i < 5; i++) {
        say(&w, RPC "'id':'s','stream':2,'data':'ping'}");
        hear(&w, RPC "'id':'s','stream':2,'data':'ping'}");
    }
    assert_int_equal(w.r.env.now_ns, now);
    world_done(&w);
}

/* A slow reader of one stream does not hold up another. */
static void hazard_04(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'slow','method':'lazy','stream':1,'params':{'after_ms':1000}}");
    say_many(&w, RPC "'id':'slow','stream':2,'data':1}", 30);
    say(&w,
        RPC "'id':'s','method':'sum','stream':1}\n" RPC "'id':'s','stream':2,'data':4}\n" RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','result':{'sum':4,'n':1}}");
    world_done(&w);
}

/* A stream without data stops nobody's output. */
static void hazard_05(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'never?stream=true'}\n" RPC "'id':2,'method':'echo'}");
    hear(&w, RPC "'id':1,'stream':1,'result':null}\n" RPC "'id':2,'result':null}");
    world_done(&w);
}

/* What we send: the base message is always first, also for a handler that sends chunks at once. */
static void hazard_06(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'say?stream=true','params':[7]}");
    hear(&w, RPC "'id':1,'stream':1,'result':null}\n" RPC "'id':1,'stream':2,'data':7}\n" RPC
                 "'id':1,'stream':3,'data':{'result':[7]}}");
    world_done(&w);
    world_call(&w);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "k", .stream = true, .input_stream = true});
    (void)rig_call_send(a, EW_STR("1"));
    answer_discover(&w, false);
    hear(&w, RPC "'id':$1,'method':'k','stream':1}\n" RPC "'id':$1,'stream':2,'data':1}");
    world_done(&w);
}

/* What we get: frames of a call of ours wait for their base, those of no call for a request, if there can be one. */
static void hazard_07(void **state) {
    (void)state;
    world w;
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'stream':2,'data':0}\n" RPC "'id':'r1','stream':2,'data':0}\n" RPC
                "'id':$1,'stream':1,'result':{'name':'race'}}\n" RPC "'id':$1,'stream':2,'data':1}\n" RPC
                "'id':$1,'stream':3}");
    check_chunks(a, "0 1");
    check_done(a, "{\"name\":\"race\"}");
    assert_int_equal(world_dropped(&w), 1);
    world_done(&w);
}

/* Ids of ours are not those that others make, and a stream that could be mistaken is refused. */
static void hazard_08(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    rig_call *a = rig_open_from(w.pair, RIG_SERVER, &(rig_request){.key = "ask"});
    hear(&w, RPC "'id':$1,'method':'ask'}");
    assert_true(w.ids[1][1] == 'e' && w.ids[1][2] == 'w');
    say(&w, RPC "'id':$1,'method':'sum','stream':1}");
    hear(&w, RPC "'id':$1,'error':" INVALID("a call with this id still runs") "}");
    say(&w, RPC "'id':$1,'stream':1,'result':1}\n" RPC "'id':$1,'stream':3}");
    check_done(a, "1");
    world_done(&w);
}

/* Opening an id again, with or without a stream, leaves the first reader as it is. */
static void hazard_09(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'sum','stream':1}\n" RPC "'id':'s','method':'echo','stream':1}\n" RPC
                "'id':'s','method':'echo'}\n" RPC "'id':'s','stream':2,'data':1}\n" RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','error':" INVALID("a call with this id still runs") "}\n" RPC "'id':'s','error':" INVALID(
                 "a call with this id still runs") "}\n" RPC "'id':'s','result':{'sum':1,'n':1}}");
    world_done(&w);
}

/* A stream that goes silent fails; it does not look like one that ended. */
static void hazard_10(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'sum','stream':1}\n" RPC "'id':'s','stream':2,'data':1}");
    rig_advance(&w.r, 30 * 1000);
    hear(&w,
         RPC "'id':'s','error':" FAULT(-32000, "the input stream was silent for too long", "DEADLINE_EXCEEDED") "}");
    world_done(&w);
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'stream':1,'result':1}");
    rig_advance(&w.r, 30 * 1000);
    check_failed(a, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_CONNECT, "the stream was silent for too long");
    world_done(&w);
}

/* Streams that nobody wants: an unknown method, an action that does not read, an error. */
static void hazard_11(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'nope','stream':1}\n" RPC "'id':1,'stream':2,'data':1}\n" RPC "'id':1,'stream':3}");
    hear(&w, RPC "'id':1,'error':" NO_METHOD "}");
    say(&w, RPC "'id':2,'method':'echo','stream':1}\n" RPC "'id':2,'stream':2,'data':1}\n" RPC "'id':2,'stream':3}");
    hear(&w, RPC "'id':2,'result':null}");
    assert_int_equal(world_dropped(&w), 4);
    world_done(&w);
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'stream':1,'error':{'code':1,'message':'m'}}\n" RPC "'id':$1,'stream':2,'data':1}");
    check_failed(a, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "m");
    assert_int_equal(world_dropped(&w), 1);
    world_done(&w);
}

/* The connection goes: what came before it counts, the close frame as well. */
static void hazard_12(void **state) {
    (void)state;
    world w;
    rig_call *a = call_known(&w), *b = call_stream(&w, "Svc.Get");
    hear(&w, RPC "'id':$2,'method':'Svc.Get'}");
    char *text = world_expand(&w, RPC "'id':$1,'stream':1,'result':1}\n" RPC "'id':$1,'stream':2,'data':5}\n" RPC
                                      "'id':$1,'stream':3}\n" RPC "'id':$2,'stream':1,'result':1}\n" RPC
                                      "'id':$2,'stream':2,'data':6}\n");
    rig_say(w.pair, text, strlen(text));
    free(text);
    say_eof(&w);
    check_chunks(a, "5");
    check_done(a, "1");
    check_chunks(b, "6");
    check_failed(b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    world_done(&w);
}

/* Going down: no new calls; those that run get their answers first, streams too. */
static void hazard_13(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'chunks?stream=true','params':{'n':2,'every_ms':10}}");
    ew__peer *peer = w.pair->end[RIG_SERVER].peer;
    peer->wire->drain(peer);
    say(&w, RPC "'id':2,'method':'echo'}");
    rig_advance(&w.r, 20);
    hear(&w, RPC "'id':1,'stream':1,'result':null}\n" RPC "'id':1,'stream':2,'data':{'i':0,'pad':''}}\n" RPC
                 "'id':2,'error':" REFUSAL(-32000, "going down",
                                           "UNAVAILABLE") "}\n" RPC "'id':1,'stream':2,'data':{'i':1,'pad':''}}\n" RPC
                                                          "'id':1,'stream':3,'data':{'result':{'n':2}}}");
    assert_true(world_over(&w));
    world_done(&w);
}

/* A peer that closes its half right behind its request gets its answer. */
static void hazard_14(void **state) {
    (void)state;
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sleep\",\"params\":{\"ms\":100}}";
    world w;
    world_serve(&w);
    rig_say(w.pair, request, sizeof request - 1);
    say_eof(&w);
    rig_advance(&w.r, 100);
    hear(&w, RPC "'id':1,'result':'slept'}");
    assert_true(world_over(&w));
    world_done(&w);
}

/* An answer to an unknown id completes nothing. */
static void hazard_15(void **state) {
    (void)state;
    static const char *const ids[] = {"'id':'0',", "'id':0,", "'id':'',", "'id':null,", "", "'id':'1',"};
    char text[100];
    world w;
    rig_call *a = call_known(&w);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        (void)snprintf(text, sizeof text, RPC "%s'result':1}", ids[i]);
        say(&w, text);
        assert_int_equal(world_dropped(&w), i + 1);
    }
    check_runs(a);
    world_done(&w);
}

/* An answer to one who only serves, a request to one who only calls: neither stops anything. */
static void hazard_16(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'0','result':1}\n" RPC "'id':1,'method':'echo'}");
    hear(&w, RPC "'id':1,'result':null}");
    world_done(&w);
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':'x','method':'m'}\n" RPC "'method':'event'}\n" RPC "'id':$1,'result':1}");
    hear(&w, RPC "'id':'x','error':" NO_METHOD "}");
    check_done(a, "1");
    world_done(&w);
}

/* A bad answer fails its own call only. */
static void hazard_17(void **state) {
    (void)state;
    static const char *const bad[] = {RPC "'id':$1}", RPC "'id':$1,'error':null}", RPC "'id':$1,'stream':7,'result':1}",
                                      RPC "'id':$1,'result':1,'result':1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        world w;
        rig_call *a = call_known(&w), *b = call_stream(&w, "Svc.Get");
        hear(&w, RPC "'id':$2,'method':'Svc.Get'}");
        say(&w, bad[i]);
        assert_int_equal(a->origin, EW_ORIGIN_PROTOCOL);
        assert_int_equal(a->status, EW_STATUS_INTERNAL);
        say(&w, RPC "'id':$2,'result':2}");
        check_done(b, "2");
        world_done(&w);
    }
}

/* Numbers as ids, batches, numbers with a point: none of them ends the connection. */
static void hazard_18(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1.50e1,'method':'echo'}");
    hear(&w, RPC "'id':1.50e1,'result':null}");
    say(&w, "[" RPC "'id':1,'method':'echo'}]");
    hear(&w, "[" RPC "'id':1,'result':null}]");
    say(&w, RPC "'id':'x','method':'echo','stream':1.0}");
    hear(&w, RPC "'id':'x','error':" INVALID("stream must be 0, 1, 2 or 3") "}");
    assert_false(world_over(&w));
    world_done(&w);
}

/* Unreadable text is answered by a server, and by a server only. */
static void hazard_19(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_CLIENT, &(world_options){.stdio = true});
    say(&w, "{oops}\n" RPC "'id':1,'method':'echo'}");
    hear(&w, RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}\n" RPC "'id':1,'result':null}");
    world_done(&w);
    rig_call *a = call_known(&w);
    say(&w, "{oops}");
    hear_nothing(&w);
    assert_int_equal(a->origin, EW_ORIGIN_PROTOCOL);
    world_done(&w);
}

/* Everything that a peer can make large has a limit: length, depth, number. */
static void hazard_20(void **state) {
    (void)state;
    char text[600];
    for (int depth = EW_PAYLOAD_DEPTH - 1; depth < EW_JSON_DEPTH; depth++) {
        world w;
        world_init(&w, RIG_CLIENT, &(world_options){.limits = {.frame_bytes = 100000, .calls_per_connection = 1}});
        (void)snprintf(text, sizeof text, RPC "'id':1,'method':'echo','params':%0*d}", 2 * depth, 0);
        char *zeros = strstr(text, "000");
        memset(zeros, '[', (size_t)depth);
        memset(zeros + depth, ']', (size_t)depth);
        say(&w, text);
        assert_int_equal(w.r.n_opened, depth <= EW_PAYLOAD_DEPTH);
        if (depth > EW_PAYLOAD_DEPTH)
            hear(&w, RPC "'id':1,'error':" FAULT(-32602, "the input is nested too deep: the limit is 120 levels",
                                                 "INVALID_ARGUMENT") "}");
        assert_false(world_over(&w));
        world_done(&w);
    }
    world w;
    world_init(&w, RIG_CLIENT, &(world_options){.limits = {.frame_bytes = 6000, .calls_per_connection = 1}});
    say(&w, RPC "'id':1,'method':'never'}\n" RPC "'id':2,'method':'never'}");
    hear(&w, RPC "'id':2,'error':" REFUSAL(-32000, "too many calls on this connection", "RESOURCE_EXHAUSTED") "}");
    say_many(&w, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
             100);
    hear(&w, RPC "'id':null,'error':{'code':-32700,'message':'the message is larger than this side accepts (limit "
                 "frame_bytes)'}}");
    assert_true(world_over(&w));
    world_done(&w);
}

/* Errors are objects with a code and a message that is not empty. */
static void hazard_21(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'fail','params':{'status':'ABORTED','message':''}}");
    hear(&w, RPC "'id':1,'error':" FAULT(-32000, "ABORTED", "ABORTED") "}");
    world_done(&w);
}

/* Names are exact, and no member of the envelope comes twice. */
static void hazard_22(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'ID':1,'method':'echo'}"); /* a notification */
    hear_nothing(&w);
    say(&w, RPC "'id':1,'Method':'echo','method':'echo'}");
    hear(&w, RPC "'id':1,'result':null}");
    say(&w, RPC "'id':1,'method':'echo','method':'never'}");
    hear(&w, RPC "'id':1,'error':" INVALID("a member is repeated") "}");
    assert_int_equal(w.r.n_opened, 2);
    world_done(&w);
}

/* `stream` above 3 is never data. */
static void hazard_23(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'relay?stream=true','stream':1}");
    hear(&w, RPC "'id':'s','stream':1,'result':null}");
    say(&w, RPC "'id':'s','stream':4,'data':1}");
    hear(&w, RPC "'id':'s','stream':3,'data':{'error':" INVALID("stream must be 0, 1, 2 or 3") "}}");
    say(&w, RPC "'id':'s','stream':4,'data':1}"); /* of no call: told, and nothing else */
    hear(&w, RPC "'id':'s','error':" INVALID("stream must be 0, 1, 2 or 3") "}");
    assert_false(world_over(&w));
    world_done(&w);
}

/* Frames of ids that are not open take little memory, and for two seconds only. */
static void hazard_24(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'echo'}");
    size_t before = ew__test_env_live_bytes(&w.r.env);
    char *text = calloc(1, 101000);
    assert_non_null(text);
    for (int i = 0; i < 50; i++) { /* long ids */
        (void)snprintf(text, 101000, RPC "'id':'%0100000d','stream':2,'data':1}", i);
        say(&w, text);
    }
    for (int i = 0; i < 3000; i++) { /* many of them */
        (void)snprintf(text, 200, RPC "'id':%d,'stream':2,'data':'%0100d'}", i, i);
        say(&w, text);
    }
    say_many(&w, RPC "'id':'x','stream':2,'data':'0123456789'}", 10000);
    assert_true(ew__test_env_live_bytes(&w.r.env) - before < 1024 * 1024);
    rig_advance(&w.r, 4000);
    assert_int_equal(world_dropped(&w), 13050);
    say(&w, RPC "'id':1,'method':'echo'}");
    assert_true(ew__test_env_live_bytes(&w.r.env) - before < 64 * 1024);
    free(text);
    world_done(&w);
}

/* The receiver stops the sender by a method, never by a new kind of frame; what still comes is thrown away. */
static void hazard_25(void **state) {
    (void)state;
    world w;
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'stream':1,'result':1}\n" RPC "'id':$1,'stream':2,'data':1}");
    rig_call_release(a);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    uint64_t before = world_dropped(&w);
    say(&w, RPC "'id':$1,'stream':2,'data':1}\n" RPC "'id':$1,'stream':3}");
    assert_int_equal(world_dropped(&w), before + 2);
    hear_nothing(&w);
    world_done(&w);
}

/* ---- what the reference codec's own tests assert ---- */

static void checklist_01_04_10(void **state) { /* calls, notifications, unknown methods */
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'0','method':'echo','params':{'text':'hi'}}");
    hear(&w, RPC "'id':'0','result':{'text':'hi'}}");
    say(&w, RPC "'method':'echo','params':{}}");
    rig_advance(&w.r, 100);
    hear_nothing(&w);
    assert_int_equal(w.r.n_opened, 2);
    say(&w, RPC "'id':'9','method':'Svc.Nosuch','params':{}}");
    hear(&w, RPC "'id':'9','error':" NO_METHOD "}");
    say_eof(&w);
    assert_true(world_over(&w));
    world_done(&w);
}

static void checklist_02_03_09_13(void **state) { /* errors as a caller sees them */
    (void)state;
    world w;
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'error':'plain'}");
    check_failed(a, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "plain");
    world_done(&w);
    rig_call *d = call_known(&w);
    say(&w, RPC "'id':$1,'error':{'code':-32602,'message':'bad x'}}");
    check_failed(d, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_ACTION, "bad x");
    world_done(&w);
}

static void checklist_06_07_16(void **state) { /* the end of a connection ends what runs, and what is tried later */
    (void)state;
    world w;
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'result':1}");
    check_done(a, "1");
    assert_int_equal(world_peer(&w)->calls.sent.n, 0);
    assert_int_equal(world_peer(&w)->calls.sent.by_key.n, 0);
    rig_call *b = call_plain(&w, "k", "");
    say_eof(&w);
    check_failed(b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    assert_int_equal(rig_capacity(w.pair), 0);
    world_done(&w);
}

static void checklist_08_26(void **state) { /* a stray brace is an error, null is nothing */
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'1','method':'echo'}\nnull\n null null\n" RPC "'id':'2','method':'echo'}");
    hear(&w, RPC "'id':'1','result':null}\n" RPC "'id':'2','result':null}");
    say(&w, "}");
    hear(&w, RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}");
    world_done(&w);
}

static void checklist_15_17_19(void **state) { /* a bad result leaves nothing behind; pending counts at once */
    (void)state;
    world w;
    world_serve(&w);
    ew__peer *peer = w.pair->end[RIG_SERVER].peer;
    say(&w, RPC "'id':1,'method':'invalid'}\n" RPC "'id':2,'method':'sleep','params':{'ms':1}}");
    assert_int_equal(world_peer(&w)->calls.served.n, 1);
    peer->wire->drain(peer);
    assert_false(world_over(&w));
    rig_advance(&w.r, 1);
    assert_true(world_over(&w));
    world_done(&w);
    world_serve(&w); /* with nothing pending no time passes */
    peer = w.pair->end[RIG_SERVER].peer;
    peer->wire->drain(peer);
    rig_run(&w.r);
    assert_true(world_over(&w));
    world_done(&w);
}

static void checklist_20_21(void **state) { /* streams as we send them */
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "Svc.Up", .input = EW_STR("{}"), .input_stream = true});
    (void)rig_call_send(a, EW_STR("\"a\""));
    (void)rig_call_send(a, EW_STR("\"b\""));
    rig_call_send_end(a);
    rig_call_send_end(a);
    hear(&w, RPC "'id':$1,'method':'Svc.Up','stream':1,'params':{}}\n" RPC "'id':$1,'stream':2,'data':'a'}\n" RPC
                 "'id':$1,'stream':2,'data':'b'}\n" RPC "'id':$1,'stream':3}");
    world_done(&w);
    world_serve(&w);
    say(&w, RPC "'id':'x','method':'say?stream=true','params':[{}]}");
    hear(&w, RPC "'id':'x','stream':1,'result':null}\n" RPC "'id':'x','stream':2,'data':{}}\n" RPC
                 "'id':'x','stream':3,'data':{'result':[{}]}}");
    world_done(&w);
}

static void checklist_22_23_24(void **state) { /* frames before anybody looks, and looking before any frame */
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'lazy','stream':1,'params':{'after_ms':100}}\n" RPC
                "'id':'s','stream':2,'data':1}\n" RPC "'id':'s','stream':3}");
    rig_advance(&w.r, 100);
    hear(&w, RPC "'id':'s','result':{'sum':1,'n':1}}");
    assert_int_equal(world_peer(&w)->calls.served.n, 0);
    say(&w, RPC "'id':'s','method':'sum','stream':1}");
    rig_advance(&w.r, 100);
    say(&w, RPC "'id':'s','stream':2,'data':1}\n" RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','result':{'sum':1,'n':1}}");
    world_done(&w);
    rig_call *a = call_known(&w);
    say(&w, RPC "'id':$1,'stream':1,'result':1}\n" RPC "'id':$1,'stream':2,'data':1}\n" RPC "'id':$1,'stream':3}");
    check_chunks(a, "1");
    check_done(a, "1");
    assert_int_equal(world_peer(&w)->calls.sent.n, 0);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hazard_01),
        cmocka_unit_test(hazard_02),
        cmocka_unit_test(hazard_03),
        cmocka_unit_test(hazard_04),
        cmocka_unit_test(hazard_05),
        cmocka_unit_test(hazard_06),
        cmocka_unit_test(hazard_07),
        cmocka_unit_test(hazard_08),
        cmocka_unit_test(hazard_09),
        cmocka_unit_test(hazard_10),
        cmocka_unit_test(hazard_11),
        cmocka_unit_test(hazard_12),
        cmocka_unit_test(hazard_13),
        cmocka_unit_test(hazard_14),
        cmocka_unit_test(hazard_15),
        cmocka_unit_test(hazard_16),
        cmocka_unit_test(hazard_17),
        cmocka_unit_test(hazard_18),
        cmocka_unit_test(hazard_19),
        cmocka_unit_test(hazard_20),
        cmocka_unit_test(hazard_21),
        cmocka_unit_test(hazard_22),
        cmocka_unit_test(hazard_23),
        cmocka_unit_test(hazard_24),
        cmocka_unit_test(hazard_25),
        cmocka_unit_test(checklist_01_04_10),
        cmocka_unit_test(checklist_02_03_09_13),
        cmocka_unit_test(checklist_06_07_16),
        cmocka_unit_test(checklist_08_26),
        cmocka_unit_test(checklist_15_17_19),
        cmocka_unit_test(checklist_20_21),
        cmocka_unit_test(checklist_22_23_24),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
