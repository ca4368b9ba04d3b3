/*
 * tests/unit/wire/test_jsonrpc_call.c: the calling side of the jsonrpc wire: the test is the server.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define LOST "the connection was lost before the end of the call"

static void call_with(world *w, ew_limits limits) { world_init(w, RIG_SERVER, &(world_options){.limits = limits}); }

/* ---- plain calls ---- */

static void test_wire_jsonrpc__calls(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", "{ \"n\" : 1 }"), *b = call_plain(&w, "name", "");
    hear(&w, RPC "'id':$1,'method':'/x/y','params':{ 'n' : 1 }}\n" RPC "'id':$2,'method':'name'}");
    assert_string_not_equal(w.ids[1], w.ids[2]);
    say(&w, RPC "'id':$2,'result':[2]}"); /* in any order */
    check_done(b, "[2]");
    check_runs(a);
    say(&w, "{'id':$1,'result':null,'error':null}"); /* no version, and an error that is none */
    check_done(a, "null");
    rig_call *c = call_plain(&w, "a\"b\\\xc3\xa9", "[1,\n2]");
    hear(&w, RPC "'id':$3,'method':'a\\'b\\\\\xc3\xa9','params':[1,2]}");
    say(&w, "[" RPC "'id':$3,'result':3}]"); /* a batch of answers */
    check_done(c, "3");
    assert_int_equal(world_dropped(&w), 0);
    hear_nothing(&w);
    world_done(&w);
}

/* Ids: strings, no decimals, never the same on two connections. */
static void test_wire_jsonrpc__ids(void **state) {
    (void)state;
    world w;
    char first[EW__RPC_ID_ROOM];
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    memcpy(first, w.ids[1], sizeof first);
    assert_memory_equal(first, "\"ew", 3);
    rig_pair *one = w.pair;
    w.pair = rig_connect_raw(&w.r, RIG_SERVER);
    rig_call *b = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$2,'method':'/x/y'}");
    assert_string_not_equal(first, w.ids[2]);
    say(&w, RPC "'id':$1,'result':1}"); /* of the other connection: nobody's */
    assert_int_equal(world_dropped(&w), 1);
    check_runs(b);
    say(&w, RPC "'id':$2,'result':1}");
    check_done(b, "1");
    w.pair = one;
    rig_close(one, RIG_CLIENT);
    rig_run(&w.r);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    world_done(&w);
}

/* The same id in another spelling. */
static void test_wire_jsonrpc__id_spelling(void **state) {
    (void)state;
    world w;
    char text[200];
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    (void)snprintf(text, sizeof text, RPC "'id':\"\\u0065%.40s,'result':7}", w.ids[1] + 2);
    say(&w, text);
    check_done(a, "7");
    world_done(&w);
}

static void test_wire_jsonrpc__errors(void **state) {
    (void)state;
    static const struct {
        const char *error;
        ew_status status;
        const char *message, *details;
    } rows[] = {
        {"{'code':-32601,'message':'rpc: no such thing'}", EW_STATUS_NOT_FOUND, "rpc: no such thing", NULL},
        {"{'code':-32000,'message':'m','data':{'status':'ABORTED','details':{'a':1}}}", EW_STATUS_ABORTED, "m",
         "{\"a\":1}"},
        {"{'code':-32800,'message':'m\\u0021','data':[1]}", EW_STATUS_CANCELLED, "m!", "[1]"},
        {"'plain failure: \\u003cx\\u003e'", EW_STATUS_UNKNOWN, "plain failure: <x>", NULL},
        {"42", EW_STATUS_UNKNOWN, "42", NULL},
        {"{}", EW_STATUS_UNKNOWN, "{}", NULL},
    };
    world w;
    char text[300];
    world_call(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w.ids[1][0] = '\0';
        rig_call *a = call_plain(&w, "/x/y", "");
        hear(&w, RPC "'id':$1,'method':'/x/y'}");
        (void)snprintf(text, sizeof text, RPC "'id':$1,'error':%s,'result':1}", rows[i].error);
        say(&w, text);
        check_failed(a, rows[i].status, EW_ORIGIN_ACTION, rows[i].message);
        if (rows[i].details)
            assert_string_equal(a->details, rows[i].details);
    }
    world_done(&w);
}

/* Answers that fit no call are counted, nothing else; bad ones fail the call that they name. */
static void test_wire_jsonrpc__odd_answers(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", ""), *b = call_plain(&w, "/x/z", ""), *c = call_plain(&w, "/x/z", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}\n" RPC "'id':$2,'method':'/x/z'}\n" RPC "'id':$3,'method':'/x/z'}");
    say(&w, RPC "'id':'0','result':1}\n" RPC "'id':0,'result':1}\n" RPC "'result':1}\n" RPC "'id':null,'error':{}}");
    assert_int_equal(world_dropped(&w), 4);
    check_runs(a);
    say(&w, RPC "'id':$1}"); /* neither result nor error */
    check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "neither method, result nor error");
    say(&w, RPC "'id':$2,'result':1,'result':2}");
    check_failed(b, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "a member is repeated");
    check_runs(c);
    say(&w, RPC "'id':$3,'result':1}");
    check_done(c, "1");
    say(&w, RPC "'id':$3,'result':2}"); /* a second answer */
    assert_int_equal(world_dropped(&w), 5);
    say(&w, RPC "'id':$2}"); /* now it is nobody's: an error of the peer's, which has an id */
    hear(&w, RPC "'id':$2,'error':" FAULT(-32600, "neither method, result nor error", "INVALID_ARGUMENT") "}");
    say(&w, "{}"); /* a null id might be taken for an answer: nothing is said */
    hear_nothing(&w);
    world_done(&w);
}

/* ---- streams of results ---- */

static void test_wire_jsonrpc__stream_of_everywire(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_stream(&w, "/x/y");
    rig_call *b = call_stream(&w, "/x/z"); /* it is asked once */
    answer_discover(&w, true);
    hear(&w, RPC "'id':$1,'method':'/x/y?stream=true'}\n" RPC "'id':$2,'method':'/x/z?stream=true'}");
    say(&w, RPC "'id':$1,'stream':1,'result':null}\n" RPC "'id':$1,'stream':2,'data':1}\n" RPC "'id':$1,'stream':2}");
    check_chunks(a, "1 null");
    check_runs(a);
    say(&w, RPC "'id':$1,'stream':3,'data':{'result':[ 9 ]}}");
    check_done(a, "[ 9 ]");
    say(&w, RPC "'id':$2,'stream':1,'result':null}\n" RPC "'id':$2,'stream':3,'data':{'error':{'code':-32000,"
                "'message':'m','data':{'status':'DATA_LOSS'}}}}");
    check_failed(b, EW_STATUS_DATA_LOSS, EW_ORIGIN_ACTION, "m");
    rig_call *c = call_stream(&w, "/x/y"); /* known now */
    hear(&w, RPC "'id':$3,'method':'/x/y?stream=true'}");
    say(&w, RPC "'id':$3,'result':5}"); /* it has the right not to stream */
    check_done(c, "5");
    assert_int_equal(world_dropped(&w), 0);
    world_done(&w);
}

/* Rows of one stream, streams in turn, other spellings between them; and what comes after the end is nobody's. */
static void test_wire_jsonrpc__rows_of_streams(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_stream(&w, "/x/y"), *b = call_stream(&w, "/x/z");
    answer_discover(&w, true);
    hear(&w, RPC "'id':$1,'method':'/x/y?stream=true'}\n" RPC "'id':$2,'method':'/x/z?stream=true'}");
    say(&w, RPC "'id':$1,'stream':1,'result':null}\n" RPC "'id':$2,'stream':1,'result':null}");
    say(&w,
        RPC "'id':$1,'stream':2,'data':1}\n" RPC "'id':$1,'stream':2,'data':[2]}\n" RPC
            "'id':$1,'stream':2, 'data':3}\n" RPC "'id':$1,'stream':2,'data':4}" RPC "'id':$1,'stream':2,'data':5}");
    say(&w,
        RPC "'id':$2,'stream':2,'data':1}\n" RPC "'id':$1,'stream':2,'data':6}\n" RPC "'id':$2,'stream':2,'data':2}");
    check_chunks(a, "1 [2] 3 4 5 6");
    say(&w, RPC "'id':$2,'stream':3,'data':{'result':9}}\n" RPC "'id':$2,'stream':2,'data':3}");
    check_done(b, "9");
    check_chunks(b, "1 2");
    say(&w, RPC "'id':$1,'stream':2,'data':7}\n" RPC "'id':$1,'stream':2,'data':8,'data':9}");
    check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "a member is repeated");
    check_chunks(a, "1 [2] 3 4 5 6 7");
    world_done(&w);
}

/* Any other peer: the base response's result is the result, unless the close frame has one. */
static void test_wire_jsonrpc__stream_of_others(void **state) {
    (void)state;
    static const struct {
        const char *data, *result;
    } closes[] = {{"", "{\"a\":1}"},
                  {",'data':null", "{\"a\":1}"},
                  {",'data':5", "{\"a\":1}"},
                  {",'data':{'x':1}", "{\"a\":1}"},
                  {",'data':{'result':null}", "null"},
                  {",'data':{'result':[2]}", "[2]"}};
    world w;
    char text[200];
    world_call(&w);
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++) {
        w.ids[1][0] = '\0';
        rig_call *a = call_stream(&w, "Svc.Get");
        if (i == 0)
            answer_discover(&w, false);
        hear(&w, RPC "'id':$1,'method':'Svc.Get'}");
        say(&w, RPC "'id':$1,'stream':1,'result':{'a':1}}\n" RPC "'id':$1,'stream':2,'data':'x'}");
        (void)snprintf(text, sizeof text, RPC "'id':$1,'stream':3%s}", closes[i].data);
        say(&w, text);
        check_chunks(a, "\"x\"");
        check_done(a, closes[i].result);
        say(&w, text); /* closed twice, and data behind it */
        say(&w, RPC "'id':$1,'stream':2,'data':'x'}");
        assert_int_equal(world_dropped(&w), 2 * i + 2);
    }
    /* a stream that was not asked for: its chunks are dropped, its result counts */
    rig_call *b = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$2,'method':'/x/y'}");
    say(&w, RPC "'id':$2,'stream':1,'result':1}\n" RPC "'id':$2,'stream':2,'data':2}\n" RPC "'id':$2,'stream':3}");
    check_chunks(b, "");
    check_done(b, "1");
    world_done(&w);
}

/* ---- frames before their base ---- */

static void test_wire_jsonrpc__early_frames(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_stream(&w, "/x/y");
    answer_discover(&w, false);
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    say(&w, RPC "'id':$1,'stream':2,'data':0}\n" RPC "'id':$1,'stream':2}");
    check_chunks(a, "");
    say(&w, RPC "'id':$1,'stream':1,'result':{}}");
    check_chunks(a, "0 null");
    say(&w, RPC "'id':$1,'stream':2,'data':2}\n" RPC "'id':$1,'stream':3}");
    check_chunks(a, "0 null 2");
    check_done(a, "{}");
    rig_call *b = call_stream(&w, "/x/y"); /* even all of it */
    hear(&w, RPC "'id':$2,'method':'/x/y'}");
    say(&w, RPC "'id':$2,'stream':2,'data':0}\n" RPC "'id':$2,'stream':3,'data':{'result':5}}\n" RPC
                "'id':$2,'stream':2,'data':9}");
    check_runs(b);
    say(&w, RPC "'id':$2,'stream':1,'result':{}}");
    check_chunks(b, "0");
    check_done(b, "5");
    assert_int_equal(world_dropped(&w), 1);
    rig_call *c = call_stream(&w, "/x/y"); /* for nothing: the response opens no stream */
    hear(&w, RPC "'id':$3,'method':'/x/y'}");
    say(&w, RPC "'id':$3,'stream':2,'data':0}\n" RPC "'id':$3,'stream':2,'data':0}\n" RPC "'id':$3,'result':1}");
    check_chunks(c, "");
    check_done(c, "1");
    assert_int_equal(world_dropped(&w), 3);
    rig_call *d = call_stream(&w, "/x/y"); /* or is an error */
    hear(&w, RPC "'id':$4,'method':'/x/y'}");
    say(&w, RPC "'id':$4,'stream':2,'data':0}\n" RPC "'id':$4,'stream':1,'error':'no'}");
    check_failed(d, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "no");
    say(&w, RPC "'id':$4,'stream':2,'data':0}");
    assert_int_equal(world_dropped(&w), 5);
    world_done(&w);
}

static void test_wire_jsonrpc__early_frames_limit(void **state) {
    (void)state;
    static const char too_many[] = "too many frames came before the response that opens their stream";
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", ""), *b = call_plain(&w, "/x/z", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}\n" RPC "'id':$2,'method':'/x/z'}");
    for (int i = 0; i < 64; i++)
        say(&w, RPC "'id':$1,'stream':2,'data':0}");
    check_runs(a);
    say(&w, RPC "'id':$1,'stream':2,'data':0}");
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_PROTOCOL, too_many);
    char *text = calloc(1, 128 * 1024 + 200);
    assert_non_null(text);
    size_t n = (size_t)snprintf(text, 100, RPC "'id':$2,'stream':2,'data':'");
    memset(text + n, 'x', 128 * 1024 - 2);
    memcpy(text + n + 128 * 1024 - 2, "'}", 3);
    say(&w, text);
    say(&w, text);
    check_runs(b); /* 256 KiB */
    say(&w, RPC "'id':$2,'stream':2,'data':0}");
    check_failed(b, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_PROTOCOL, too_many);
    free(text);
    world_done(&w);
}

/* ---- input ---- */

static void test_wire_jsonrpc__sends_input(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_input(&w, "/x/y");
    hear(&w, RPC "'id':$1,'method':'/x/y','stream':1}");
    assert_int_equal(rig_call_send(a, EW_STR("[1,\n2]")), EW_OK);
    assert_int_equal(rig_call_send(a, EW_STR("null")), EW_OK);
    hear(&w, RPC "'id':$1,'stream':2,'data':[1,2]}\n" RPC "'id':$1,'stream':2,'data':null}");
    rig_call_send_end(a);
    hear(&w, RPC "'id':$1,'stream':3}");
    say(&w, RPC "'id':$1,'result':1}");
    check_done(a, "1");
    hear_nothing(&w);
    rig_call *b = call_input(&w, "/x/y"); /* answered before its input has ended: a close follows */
    hear(&w, RPC "'id':$2,'method':'/x/y','stream':1}");
    say(&w, RPC "'id':$2,'result':1}");
    check_done(b, "1");
    hear(&w, RPC "'id':$2,'stream':3}");
    rig_call *c = call_input(&w, "/x/y");
    hear(&w, RPC "'id':$3,'method':'/x/y','stream':1}");
    say(&w, RPC "'id':$3,'error':'no'}");
    check_failed(c, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "no");
    hear(&w, RPC "'id':$3,'stream':3}");
    world_done(&w);
}

/* While the peer is asked what it is, input waits, and follows its request. */
static void test_wire_jsonrpc__holds_input(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "/x/y", .stream = true, .input_stream = true});
    assert_int_equal(rig_call_send(a, EW_STR("1")), EW_FULL); /* the producer is asked to wait */
    assert_int_equal(rig_call_send(a, EW_STR("2")), EW_FULL);
    rig_call_send_end(a);
    rig_call *b = rig_open(w.pair, &(rig_request){.key = "/x/z", .stream = true, .input_stream = true});
    assert_int_equal(rig_call_send(b, EW_STR("3")), EW_FULL);
    answer_discover(&w, true);
    hear(&w, RPC "'id':$1,'method':'/x/y?stream=true','stream':1}\n" RPC "'id':$1,'stream':2,'data':1}\n" RPC
                 "'id':$1,'stream':2,'data':2}\n" RPC "'id':$1,'stream':3}\n" RPC
                 "'id':$2,'method':'/x/z?stream=true','stream':1}\n" RPC "'id':$2,'stream':2,'data':3}");
    assert_int_equal(b->n_input_room, 1);
    say(&w, RPC "'id':$1,'stream':1,'result':null}\n" RPC "'id':$1,'stream':3,'data':{'result':1}}");
    check_done(a, "1");
    hear_nothing(&w); /* its input was closed already */
    world_done(&w);
}

/* ---- cancelling ---- */

static void test_wire_jsonrpc__cancels(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", ""), *b = call_plain(&w, "/x/y", ""), *c = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}\n" RPC "'id':$2,'method':'/x/y'}\n" RPC "'id':$3,'method':'/x/y'}");
    rig_call_cancel(a);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    check_runs(a);
    say(&w, RPC "'id':$1,'error':{'code':-32800,'message':'ok'}}");
    check_failed(a, EW_STATUS_CANCELLED, EW_ORIGIN_ACTION, "ok");
    rig_call_cancel(b); /* a peer that does not know what that is has two seconds */
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$2}}");
    rig_advance(&w.r, 1999);
    check_runs(b);
    rig_advance(&w.r, 1);
    check_failed(b, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled, and the peer has not ended it");
    say(&w, RPC "'id':$2,'result':1}");
    assert_int_equal(world_dropped(&w), 1);
    rig_call_release(c); /* a caller that has gone waits for nothing */
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$3}}");
    assert_int_equal(w.r.side[RIG_CLIENT].executor.calls->live, 0);
    world_done(&w);
}

static void test_wire_jsonrpc__cancels_streams(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_stream(&w, "/x/y"); /* before it was sent: nothing to say */
    rig_call_cancel(a);
    check_failed(a, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    answer_discover(&w, true);
    hear_nothing(&w);
    rig_call *b = rig_open(w.pair, &(rig_request){.key = "/x/y", .stream = true, .input_stream = true});
    hear(&w, RPC "'id':$1,'method':'/x/y?stream=true','stream':1}");
    say(&w, RPC "'id':$1,'stream':1,'result':null}");
    rig_call_cancel(b);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    rig_advance(&w.r, 1000);
    say(&w, RPC "'id':$1,'stream':2,'data':1}"); /* data does not save it */
    rig_advance(&w.r, 1000);
    check_failed(b, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled, and the peer has not ended it");
    hear(&w, RPC "'id':$1,'stream':3}");
    rig_call *c = call_stream(&w, "/x/z");
    hear(&w, RPC "'id':$2,'method':'/x/z?stream=true'}");
    rig_call_cancel(c); /* cancelled first, opened then: the two seconds still run */
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$2}}");
    say(&w, RPC "'id':$2,'stream':1,'result':null}");
    rig_advance(&w.r, 2000);
    check_failed(c, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled, and the peer has not ended it");
    world_done(&w);
}

static void test_wire_jsonrpc__deadline(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "/x/y", .timeout_ms = 50});
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    rig_advance(&w.r, 50);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    assert_int_equal(a->status, EW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(a->origin, EW_ORIGIN_DEADLINE);
    assert_int_equal(w.r.side[RIG_CLIENT].executor.calls->live, 0);
    uint64_t before = world_dropped(&w);
    say(&w, RPC "'id':$1,'result':1}");
    assert_int_equal(world_dropped(&w), before + 1);
    world_done(&w);
}

/* ---- time and room ---- */

static void test_wire_jsonrpc__silent_stream(void **state) {
    (void)state;
    world w;
    call_with(&w, (ew_limits){.stream_idle_ms = 1000});
    rig_call *a = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    rig_advance(&w.r, 60 * 1000); /* before its answer a call may take its time */
    check_runs(a);
    say(&w, RPC "'id':$1,'stream':1,'result':1}");
    rig_advance(&w.r, 900);
    say(&w, RPC "'id':$1,'stream':2,'data':1}");
    rig_advance(&w.r, 999);
    check_runs(a);
    rig_advance(&w.r, 1);
    check_failed(a, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_CONNECT, "the stream was silent for too long");
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    world_done(&w);
}

/* A caller that does not take its chunks holds up no other call, until it is far behind: then it loses its own. */
static void test_wire_jsonrpc__slow_caller(void **state) {
    (void)state;
    world w;
    char big[600], text[1000];
    call_with(&w, (ew_limits){.out_high_bytes = 1000, .out_low_bytes = 100, .out_max_bytes = 3000});
    (void)snprintf(big, sizeof big, "'%0*d'", 500, 0);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "/x/y", .stream = true, .full_after = 1});
    answer_discover(&w, true);
    hear(&w, RPC "'id':$1,'method':'/x/y?stream=true'}");
    say(&w, RPC "'id':$1,'stream':1,'result':null}\n" RPC "'id':$1,'stream':2,'data':1}\n" RPC
                "'id':$1,'stream':2,'data':2}");
    check_chunks(a, "1");
    assert_false(w.pair->end[RIG_CLIENT].reading); /* it is alone: the peer waits, for as long as it takes */
    rig_advance(&w.r, 600 * 1000);
    check_runs(a);
    rig_call *b = call_plain(&w, "/x/z", "");
    hear(&w, RPC "'id':$2,'method':'/x/z'}");
    check_chunks(a, "1 2"); /* another call waits behind it */
    say(&w, RPC "'id':$2,'result':1}");
    check_done(b, "1");
    rig_call *c = call_plain(&w, "/x/z", "");
    hear(&w, RPC "'id':$3,'method':'/x/z'}");
    (void)snprintf(text, sizeof text, RPC "'id':$1,'stream':2,'data':%s}", big);
    say(&w, text);
    say(&w, text);
    assert_false(w.pair->end[RIG_CLIENT].reading); /* 1000 bytes behind */
    say(&w, RPC "'id':$3,'result':1}");
    rig_advance(&w.r, 999);
    check_runs(a);
    check_runs(c);
    rig_advance(&w.r, 1);
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                 "overrun: the stream was not taken, and held up its connection");
    check_done(c, "1");
    world_done(&w);
}

/* Input was held until the peer was known, and does not fit: the call fails, its input does not lose a chunk. */
static void test_wire_jsonrpc__held_input_too_large(void **state) {
    (void)state;
    world w;
    char chunk[300];
    call_with(&w, (ew_limits){.out_high_bytes = 400, .out_low_bytes = 100, .out_max_bytes = 600});
    (void)snprintf(chunk, sizeof chunk, "\"%0*d\"", 250, 0);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "/x/y", .stream = true, .input_stream = true});
    (void)rig_call_send(a, ew_str_from(chunk));
    (void)rig_call_send(a, ew_str_from(chunk));
    check_runs(a);
    answer_discover(&w, true);
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL, "an input chunk is too large for this connection");
    assert_non_null(strstr(w.pair->end[RIG_SERVER].got, "$/cancelRequest"));
    world_done(&w);
}

/* A peer that does not read: our producer waits, and goes on. */
static void test_wire_jsonrpc__slow_peer(void **state) {
    (void)state;
    world w;
    call_with(&w, (ew_limits){.out_high_bytes = 500, .out_low_bytes = 100});
    rig_call *a = call_input(&w, "/x/y");
    hear(&w, RPC "'id':$1,'method':'/x/y','stream':1}");
    rig_stall(w.pair, RIG_CLIENT, true);
    int n = 0;
    while (rig_call_send(a, EW_STR("\"0123456789\"")) == EW_OK && n < 100)
        n++;
    assert_in_range(n, 5, 10);
    unsigned before = a->n_input_room;
    rig_run(&w.r);
    assert_int_equal(a->n_input_room, before);
    rig_stall(w.pair, RIG_CLIENT, false);
    rig_run(&w.r);
    assert_int_equal(a->n_input_room, before + 1);
    world_done(&w);
}

static void test_wire_jsonrpc__too_large(void **state) {
    (void)state;
    world w;
    call_with(&w, (ew_limits){.frame_bytes = 200, .calls_per_connection = 2});
    char input[300];
    memset(input, '1', sizeof input);
    rig_call *a = rig_open(w.pair, &(rig_request){.key = "/x/y", .input = ew__str(input, sizeof input)});
    check_failed(a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                 "the input is too large: 300 bytes, the limit is 175 (set by frame_bytes)");
    hear_nothing(&w);
    assert_int_equal(rig_capacity(w.pair), 2);
    rig_call *b = call_input(&w, "/x/y");
    hear(&w, RPC "'id':$1,'method':'/x/y','stream':1}");
    assert_int_equal(rig_call_send(b, ew__str(input, sizeof input)),
                     EW_ELIMIT); /* a hole: no call goes on without it */
    check_failed(b, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                 "a chunk of the input is too large: 300 bytes, the limit is 175 (set by frame_bytes)");
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}\n" RPC "'id':$1,'stream':3}");
    assert_int_equal(rig_capacity(w.pair), 2);
    (void)call_plain(&w, "/x/y", "");
    assert_int_equal(rig_capacity(w.pair), 1);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__calls),           cmocka_unit_test(test_wire_jsonrpc__ids),
        cmocka_unit_test(test_wire_jsonrpc__id_spelling),     cmocka_unit_test(test_wire_jsonrpc__errors),
        cmocka_unit_test(test_wire_jsonrpc__odd_answers),     cmocka_unit_test(test_wire_jsonrpc__stream_of_everywire),
        cmocka_unit_test(test_wire_jsonrpc__rows_of_streams), cmocka_unit_test(test_wire_jsonrpc__stream_of_others),
        cmocka_unit_test(test_wire_jsonrpc__early_frames),    cmocka_unit_test(test_wire_jsonrpc__early_frames_limit),
        cmocka_unit_test(test_wire_jsonrpc__sends_input),     cmocka_unit_test(test_wire_jsonrpc__holds_input),
        cmocka_unit_test(test_wire_jsonrpc__cancels),         cmocka_unit_test(test_wire_jsonrpc__cancels_streams),
        cmocka_unit_test(test_wire_jsonrpc__deadline),        cmocka_unit_test(test_wire_jsonrpc__silent_stream),
        cmocka_unit_test(test_wire_jsonrpc__slow_caller),     cmocka_unit_test(test_wire_jsonrpc__held_input_too_large),
        cmocka_unit_test(test_wire_jsonrpc__slow_peer),       cmocka_unit_test(test_wire_jsonrpc__too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
