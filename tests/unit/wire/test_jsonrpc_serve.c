/*
 * tests/unit/wire/test_jsonrpc_serve.c: the serving side of the jsonrpc wire, message by message. What goes wrong and
 * must not is in test_jsonrpc_hazards.c, limits and time in test_jsonrpc_limits.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define INVALID(problem) FAULT(-32600, problem, "INVALID_ARGUMENT")
#define NO_METHOD FAULT(-32601, "no such method", "NOT_FOUND")

/* ---- requests ---- */

static void test_wire_jsonrpc__requests(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'echo','params':{'a':[1,2]}}");
    hear(&w, RPC "'id':1,'result':{'a':[1,2]}}");
    say(&w, RPC "'id':'x','method':'/test/echo','params':'bare'}");
    hear(&w, RPC "'id':'x','result':'bare'}");
    say(&w, RPC "'params':7,'method':'\\u0065cho','id':-1.50}");
    hear(&w, RPC "'id':-1.50,'result':7}");
    say(&w, RPC "'id':'','method':'echo'}");
    hear(&w, RPC "'id':'','result':null}");
    say(&w, RPC "'id':null,'method':'echo','params':1}");
    hear(&w, RPC "'id':null,'result':1}");
    say(&w, RPC "'id':2,'method':'deep/er','params':[]}");
    hear(&w, RPC "'id':2,'result':[]}");
    say(&w, RPC "'id':3,'method':'nope'}");
    hear(&w, RPC "'id':3,'error':" NO_METHOD "}");
    say(&w, RPC "'id':4,'method':'same'}");
    hear(&w, RPC "'id':4,'error':{'code':-32602,'message':'several actions have this name, use a key: /one/same, "
                 "/two/same','data':{'status':'INVALID_ARGUMENT'}}}");
    assert_int_equal(w.r.n_opened, 6);
    world_done(&w);
}

static void test_wire_jsonrpc__failures(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'fail','params':{'status':'ABORTED','message':'a \xc3\xa9','details':{ 'x' : 1 },"
                "'retry_after_ms':250}}");
    hear(&w,
         RPC "'id':1,'error':{'code':-32000,'message':'a \xc3\xa9','data':{'status':'ABORTED','details':{ 'x' : 1 },"
             "'retryable':true,'retry_after_ms':250}}}");
    say_part(&w, RPC "'id':2,'method':'fail','params':{'status':'NOT_FOUND','details':[1,\n2]}}");
    hear(&w, RPC "'id':2,'error':{'code':-32000,'message':'it failed','data':{'status':'NOT_FOUND','details':[1,2]}}}");
    say(&w, RPC "'id':3,'method':'invalid'}");
    assert_non_null(strstr(w.pair->end[RIG_CLIENT].got, "\"id\":3,\"error\":{\"code\":-32603,\"message\":"));
    rig_forget(w.pair, w.pair->end[RIG_CLIENT].got_len);
    say(&w, RPC "'id':4,'method':'twice'}");
    hear(&w, RPC "'id':4,'result':1}");
    world_done(&w);
}

/* Bad envelopes: the id comes back when it could be read. */
static void test_wire_jsonrpc__invalid(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, "{'id':1,'method':'echo'}");
    hear(&w, RPC "'id':1,'error':" INVALID("jsonrpc must be \\'2.0\\'") "}");
    say(&w, RPC "'id':'a','method':5}");
    hear(&w, RPC "'id':'a','error':" INVALID("method must be a string that is not empty") "}");
    say(&w, RPC "'id':[1],'method':'echo'}");
    hear(&w, RPC "'id':null,'error':" INVALID("id must be a string, a number or null") "}");
    say(&w, RPC "'id':1,'id':1,'method':'echo'}");
    hear(&w, RPC "'id':null,'error':" INVALID("a member is repeated") "}");
    say(&w, RPC "'id':2,'method':'echo','\\u006dethod':'never'}");
    hear(&w, RPC "'id':2,'error':" INVALID("a member is repeated") "}");
    say(&w, RPC "'id':3,'method':'echo','stream':'1'}");
    hear(&w, RPC "'id':3,'error':" INVALID("stream must be 0, 1, 2 or 3") "}");
    say(&w, RPC "'method':'echo','stream':1}");
    hear(&w, RPC "'id':null,'error':" INVALID("a stream needs an id") "}");
    say(&w, "{}");
    hear(&w, RPC "'id':null,'error':" INVALID("neither method, result nor error") "}");
    say(&w, "'x' 5 true");
    hear(&w, RPC "'id':null,'error':" INVALID("a message is an object") "}\n" RPC "'id':null,'error':" INVALID(
                 "a message is an object") "}\n" RPC "'id':null,'error':" INVALID("a message is an object") "}");
    assert_int_equal(w.r.n_opened, 0);
    say(&w, RPC "'id':4,'method':'echo'}");
    hear(&w, RPC "'id':4,'result':null}");
    world_done(&w);
}

static void test_wire_jsonrpc__notifications(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'method':'echo','params':1}");
    say(&w, RPC "'method':'fail'}");
    say(&w, RPC "'method':'say?stream=true','params':[1,2]}");
    assert_int_equal(w.r.n_opened, 3);
    assert_int_equal(world_dropped(&w), 0);
    say(&w, RPC "'method':'nope'}");
    say(&w, RPC "'method':'$/progress','params':{}}");
    say(&w, RPC "'method':'rpc.other'}");
    say(&w, RPC "'method':'same'}");
    assert_int_equal(world_dropped(&w), 4);
    say(&w, RPC "'method':'rpc.discover'}");
    say(&w, RPC "'method':'sleep','params':{'ms':5}}");
    rig_advance(&w.r, 10);
    assert_int_equal(w.r.n_opened, 4);
    hear_nothing(&w);
    say(&w, RPC "'id':1,'method':'$/progress'}");
    hear(&w, RPC "'id':1,'error':" NO_METHOD "}");
    say(&w, RPC "'id':2,'method':'rpc.other'}");
    hear(&w, RPC "'id':2,'error':" NO_METHOD "}");
    world_done(&w);
}

/* Handlers start in the order of their messages; answers come when they are there. */
static void test_wire_jsonrpc__order(void **state) {
    (void)state;
    world w;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world_init(&w, RIG_CLIENT, &(world_options){.split = (rig_split)split});
        say(&w,
            RPC "'id':1,'method':'sleep','params':{'ms':20,'out':'one'}}\n\n" RPC
                "'id':2,'method':'echo','params':2}" RPC "'id':3,'method':'sleep','params':{'ms':10}} \t" RPC
                "'id':4,'method':'nope'}\r\n" RPC "'method':'echo'}\n{'jsonrpc':\n'2.0',\n'id':5,'method':'echo'\n}");
        hear(&w, RPC "'id':2,'result':2}\n" RPC "'id':4,'error':" NO_METHOD "}\n" RPC "'id':5,'result':null}");
        assert_int_equal(w.r.n_opened, 5);
        rig_advance(&w.r, 10);
        hear(&w, RPC "'id':3,'result':'slept'}");
        rig_advance(&w.r, 10);
        hear(&w, RPC "'id':1,'result':'one'}");
        world_done(&w);
    }
}

/* ---- streams of input ---- */

static void test_wire_jsonrpc__input_stream(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'sum','stream':1,'params':{}}");
    hear_nothing(&w);
    say(&w, RPC "'id':'s','stream':2,'data':5}");
    say(&w, "{'id':'\\u0073','stream':2,'data':6}"); /* the same id, and no version */
    say(&w, RPC "'id':'s','stream':2}");             /* no data: null */
    say(&w, RPC "'id':'s','stream':3,'data':99}");   /* what a close frame carries does not count */
    hear(&w, RPC "'id':'s','result':{'sum':11,'n':3}}");
    /* base and frames in one piece */
    say(&w, RPC "'id':'s','method':'sum','stream':1}\n" RPC "'id':'s','stream':2,'data':1}\n" RPC
                "'id':'s','stream':2,'data':2}\n" RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','result':{'sum':3,'n':2}}");
    /* a frame is no call, whatever else it has */
    say(&w, RPC "'id':'t','method':'sum','stream':1}");
    say(&w, RPC "'id':'t','stream':2,'method':'echo','params':1,'data':4}");
    say(&w, RPC "'id':'t','stream':3,'method':'echo'}");
    hear(&w, RPC "'id':'t','result':{'sum':4,'n':1}}");
    assert_int_equal(w.r.n_opened, 3);
    assert_int_equal(world_dropped(&w), 0);
    world_done(&w);
}

static void test_wire_jsonrpc__frames_late(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s9','stream':2,'data':1}"); /* never opened */
    say(&w, RPC "'stream':2,'data':1}");
    assert_int_equal(world_dropped(&w), 1);
    rig_advance(&w.r, 4000);
    assert_int_equal(world_dropped(&w), 2);
    say(&w, RPC "'id':'s9','method':'sum','stream':1}\n" RPC "'id':'s9','stream':3}"); /* it came too late */
    hear(&w, RPC "'id':'s9','result':{'sum':0,'n':0}}");
    uint64_t before = world_dropped(&w);
    say(&w, RPC "'id':'s','method':'sleep','stream':1,'params':{'ms':10}}");
    say(&w, RPC "'id':'s','stream':2,'data':1}");
    say(&w, RPC "'id':'s','stream':3}");
    assert_int_equal(world_dropped(&w), before);
    say(&w, RPC "'id':'s','stream':2,'data':2}"); /* after its close */
    say(&w, RPC "'id':'s','stream':3}");          /* twice */
    assert_int_equal(world_dropped(&w), before + 2);
    rig_advance(&w.r, 10);
    hear(&w, RPC "'id':'s','result':'slept'}");
    say(&w, RPC "'id':'p','method':'sleep','params':{'ms':10}}"); /* a call without a stream */
    say(&w, RPC "'id':'p','stream':2,'data':2}");
    assert_int_equal(world_dropped(&w), before + 3);
    hear_nothing(&w);
    world_done(&w);
}

/* Frames that have overtaken their request wait for it, two seconds, sixteen of them. */
static void test_wire_jsonrpc__frames_early(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w,
        RPC "'id':'\\u0073','stream':2,'data':5}\n" RPC "'id':'s','stream':2,'data':6}\n" RPC
            "'id':'s','method':'sum','stream':1}\n" RPC "'id':'s','stream':2,'data':7}\n" RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','result':{'sum':18,'n':3}}");
    say(&w, RPC "'id':'t','stream':2,'data':5}\n" RPC "'id':'t','stream':3}"); /* all of it */
    rig_advance(&w.r, 1900);
    say(&w, RPC "'id':'t','method':'sum','stream':1}");
    hear(&w, RPC "'id':'t','result':{'sum':5,'n':1}}");
    assert_int_equal(world_dropped(&w), 0);
    for (int i = 0; i < 17; i++)
        say(&w, RPC "'id':'u','stream':2,'data':1}");
    assert_int_equal(world_dropped(&w), 17); /* with a hole it is no stream any more */
    say(&w,
        RPC "'id':'u','stream':2,'data':1}\n" RPC "'id':'u','method':'sum','stream':1}\n" RPC "'id':'u','stream':3}");
    hear(&w, RPC "'id':'u','error':{'code':-32000,'message':'too many frames came before the request that opens their "
                 "stream','data':{'status':'RESOURCE_EXHAUSTED'}}}");
    assert_int_equal(world_dropped(&w), 19);
    say(&w, RPC "'id':'x','method':'nope','stream':1}\n" RPC "'id':'x','stream':2,'data':1}"); /* refused: not kept */
    hear(&w, RPC "'id':'x','error':" NO_METHOD "}");
    assert_int_equal(world_dropped(&w), 20);
    world_done(&w);
}

static void test_wire_jsonrpc__open_twice(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'sum','stream':1}");
    say(&w, RPC "'id':'s','method':'sum','stream':1}");
    hear(&w, RPC "'id':'s','error':" INVALID("a call with this id still runs") "}");
    say(&w, RPC "'id':'\\u0073','method':'echo'}"); /* spelled as it came, it is the same one */
    hear(&w, RPC "'id':'\\u0073','error':" INVALID("a call with this id still runs") "}");
    say(&w, RPC "'id':'s','stream':2,'data':3}"); /* the first goes on */
    say(&w, RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','result':{'sum':3,'n':1}}");
    say(&w, RPC "'id':'s','method':'echo'}");
    hear(&w, RPC "'id':'s','result':null}");
    say(&w, RPC "'id':1,'method':'sleep','params':{'ms':1}}"); /* a number and a string are two ids, null is none */
    say(&w, RPC "'id':'1','method':'sleep','params':{'ms':1}}");
    say(&w, RPC "'id':null,'method':'sleep','params':{'ms':1}}");
    say(&w, RPC "'id':null,'method':'sleep','params':{'ms':1}}");
    rig_advance(&w.r, 1);
    hear(&w, RPC "'id':1,'result':'slept'}\n" RPC "'id':'1','result':'slept'}\n" RPC "'id':null,'result':'slept'}\n" RPC
                 "'id':null,'result':'slept'}");
    world_done(&w);
}

/* A frame that is none ends its call with that error; the connection goes on. */
static void test_wire_jsonrpc__bad_frame(void **state) {
    (void)state;
    static const char *const bad[] = {RPC "'id':'s','stream':4}", RPC "'id':'s','stream':'2','data':1}",
                                      RPC "'id':'s','stream':-1}", RPC "'id':'s','stream':2.0,'data':1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        world w;
        world_serve(&w);
        say(&w, RPC "'id':'s','method':'sum','stream':1}");
        say(&w, bad[i]);
        hear(&w, RPC "'id':'s','error':" INVALID("stream must be 0, 1, 2 or 3") "}");
        assert_int_equal(w.r.n_cancelled, 1);
        say(&w, RPC "'id':'s','stream':2,'data':1}");
        assert_true(world_dropped(&w) >= 1);
        hear_nothing(&w);
        say(&w, RPC "'id':'s','method':'echo'}");
        hear(&w, RPC "'id':'s','result':null}");
        world_done(&w);
    }
}

/* ---- streams of results ---- */

static void test_wire_jsonrpc__result_stream(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'a','method':'say?stream=true','params':[1,'x',{}]}");
    hear(&w, RPC "'id':'a','stream':1,'result':null}\n" RPC "'id':'a','stream':2,'data':1}\n" RPC
                 "'id':'a','stream':2,'data':'x'}\n" RPC "'id':'a','stream':2,'data':{}}\n" RPC
                 "'id':'a','stream':3,'data':{'result':[1,'x',{}]}}");
    say(&w, RPC "'id':'a','method':'say','params':[1,'x',{}]}"); /* not asked for: chunks are not carried */
    hear(&w, RPC "'id':'a','result':[1,'x',{}]}");
    say(&w, RPC "'id':5,'method':'fail?stream=true','params':{'status':'ABORTED','message':'m'}}");
    hear(&w, RPC "'id':5,'stream':1,'result':null}\n" RPC
                 "'id':5,'stream':3,'data':{'error':{'code':-32000,'message':'m','data':{'status':'ABORTED'}}}}");
    say(&w, RPC "'id':6,'method':'nope?stream=true'}"); /* nothing was opened: a plain error */
    hear(&w, RPC "'id':6,'error':" NO_METHOD "}");
    say(&w, RPC "'id':7,'method':'chunks?stream=true','params':{'n':2,'every_ms':5}}"); /* the base at once */
    hear(&w, RPC "'id':7,'stream':1,'result':null}\n" RPC "'id':7,'stream':2,'data':{'i':0,'pad':''}}");
    rig_advance(&w.r, 10);
    hear(&w, RPC "'id':7,'stream':2,'data':{'i':1,'pad':''}}\n" RPC "'id':7,'stream':3,'data':{'result':{'n':2}}}");
    say(&w, RPC "'id':8,'method':'relay?stream=true','stream':1}"); /* both ways under one id */
    say(&w, RPC "'id':8,'stream':2,'data':[8]}");
    hear(&w, RPC "'id':8,'stream':1,'result':null}\n" RPC "'id':8,'stream':2,'data':[8]}");
    say(&w, RPC "'id':8,'stream':3}");
    hear(&w, RPC "'id':8,'stream':3,'data':{'result':{'sum':0,'n':1}}}");
    world_done(&w);
}

/* Payloads leave on one line, otherwise as they were. */
static void test_wire_jsonrpc__one_line(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say_part(&w, RPC "'id':1,'method':'echo','params':{\n 'a' : 1,\r\n'b':'x y'}}");
    hear(&w, RPC "'id':1,'result':{'a':1,'b':'x y'}}");
    say(&w, RPC "'id':1,'method':'echo','params':{ 'a' : 1e2 }}");
    hear(&w, RPC "'id':1,'result':{ 'a' : 1e2 }}");
    say(&w, RPC "'id':1,'method':'say?stream=true','params':[{ 'a':\n1}]}");
    hear(&w, RPC "'id':1,'stream':1,'result':null}\n" RPC "'id':1,'stream':2,'data':{'a':1}}\n" RPC
                 "'id':1,'stream':3,'data':{'result':[{'a':1}]}}");
    world_done(&w);
}

/* ---- cancelling ---- */

static void test_wire_jsonrpc__cancel(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'a\\/b','method':'never'}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':'\\u0061/b'}}"); /* spelled in another way */
    hear(&w, RPC "'id':'a\\/b','error':" FAULT(-32800, "stopped", "CANCELLED") "}");
    say(&w, RPC "'id':1,'method':'never?stream=true'}");
    hear(&w, RPC "'id':1,'stream':1,'result':null}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':'1'}}"); /* another id */
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':1.0}}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':null}}");
    say(&w, RPC "'method':'$/cancelRequest','params':[1]}");
    say(&w, RPC "'method':'$/cancelRequest'}");
    assert_int_equal(world_dropped(&w), 5);
    hear_nothing(&w);
    say(&w, RPC "'id':2,'method':'$/cancelRequest','params':{'id':1}}"); /* it is a notification */
    hear(&w, RPC "'id':2,'error':" NO_METHOD "}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':1}}");
    hear(&w, RPC "'id':1,'stream':3,'data':{'error':" FAULT(-32800, "stopped", "CANCELLED") "}}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':1}}"); /* too late */
    assert_int_equal(world_dropped(&w), 6);
    say(&w, RPC "'id':3,'method':'stubborn','params':{'ms':10}}"); /* cancelling asks; the action answers */
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':3}}");
    hear_nothing(&w);
    rig_advance(&w.r, 10);
    hear(&w, RPC "'id':3,'result':'slept'}");
    world_done(&w);
}

/* ---- batches ---- */

static void test_wire_jsonrpc__batches(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, "[" RPC "'id':1,'method':'echo','params':1}," RPC "'method':'echo'},{'foo':1}," RPC
            "'id':'b','method':'nope'},7,[]," RPC "'id':null,'method':'echo'}]");
    hear(
        &w,
        "[" RPC "'id':1,'result':1}," RPC "'id':null,'error':" INVALID(
            "neither method, result nor error") "}," RPC "'id':'b','error':" NO_METHOD "}," RPC
                                                "'id':null,'error':" INVALID(
                                                    "a message is an object") "}," RPC
                                                                              "'id':null,'error':" INVALID(
                                                                                  "a message is an object") "}," RPC
                                                                                                            "'id':null,"
                                                                                                            "'result':"
                                                                                                            "null}]");
    say(&w, "[" RPC "'method':'echo'}," RPC "'method':'nope'}]"); /* only notifications */
    hear_nothing(&w);
    say(&w, "[" RPC "'id':1,'method':'sleep','params':{'ms':20}}," RPC "'id':2,'method':'echo'}," RPC
            "'id':3,'method':'sleep','params':{'ms':10}}," RPC "'method':'sleep','params':{'ms':30}}]");
    say(&w, RPC "'id':9,'method':'echo'}"); /* others do not wait for it */
    hear(&w, RPC "'id':9,'result':null}");
    rig_advance(&w.r, 10);
    hear_nothing(&w);
    rig_advance(&w.r, 10); /* the notification of the batch still runs, and holds up nothing */
    hear(&w, "[" RPC "'id':2,'result':null}," RPC "'id':3,'result':'slept'}," RPC "'id':1,'result':'slept'}]");
    say(&w, "[]");
    hear(&w, RPC "'id':null,'error':{'code':-32600,'message':'the batch is empty'}}");
    say(&w, "[" RPC "'id':1,'result':5},{'id':2,'error':{}}]"); /* answers to nothing */
    hear_nothing(&w);
    say(&w, "[" RPC "'id':4,'method':'never'}," RPC "'method':'$/cancelRequest','params':{'id':4}}]");
    hear(&w, "[" RPC "'id':4,'error':" FAULT(-32800, "stopped", "CANCELLED") "}]");
    say(&w, "[" RPC "'id':5,'method':'sleep','params':{'ms':1}}," RPC "'id':5,'method':'echo'}]");
    rig_advance(&w.r, 1);
    hear(&w, "[" RPC "'id':5,'error':" INVALID("a call with this id still runs") "}," RPC "'id':5,'result':'slept'}]");
    world_done(&w);
}

#define NO_STREAMS INVALID("there are no streams in a batch")

static void test_wire_jsonrpc__batch_streams(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, "[" RPC "'id':1,'method':'sum','stream':1}," RPC "'id':2,'stream':2,'data':1}," RPC
            "'id':3,'method':'say?stream=true','params':[]}," RPC "'id':4,'method':'echo','stream':0}," RPC
            "'method':'echo?stream=true'}]");
    hear(&w, "[" RPC "'id':1,'error':" NO_STREAMS "}," RPC "'id':2,'error':" NO_STREAMS "}," RPC
             "'id':3,'error':" NO_STREAMS "}," RPC "'id':4,'result':null}]");
    assert_int_equal(w.r.n_opened, 2);
    world_done(&w);
}

/* The connection goes while a batch is half answered: nothing is left over (rig_finish looks). */
static void test_wire_jsonrpc__batch_lost(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, "[" RPC "'id':1,'method':'echo'}," RPC "'id':2,'method':'never'}," RPC "'id':3,'method':'stubborn'}]");
    rig_cut(w.pair, RIG_CLIENT, RIG_RESET);
    rig_advance(&w.r, 100);
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
}

/* ---- listing ---- */

static void test_wire_jsonrpc__lists(void **state) {
    (void)state;
    world w;
    ew__buf listing;
    world_serve(&w);
    say(&w, RPC "'id':'d','method':'rpc.discover'}");
    const rig_end *end = &w.pair->end[RIG_CLIENT];
    ew_str text = ew__str(end->got, end->got_len - 1), document = ew_json_get(text, "/result");
    assert_int_equal(end->got[end->got_len - 1], '\n');
    assert_null(memchr(text.ptr, '\n', text.len));
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    assert_true(ew__jr_is_everywire(document));
    ew__buf_init(&listing, ew_env_default(), 100000);
    assert_int_equal(ew__jr_read_discover(&listing, document), EW_OK);
    assert_true(ew_str_eq(ew__buf_view(&listing), rig_actions()->listing));
    ew__buf_done(&listing);
    rig_forget(w.pair, end->got_len);
    w.r.side[RIG_SERVER].site.actions = NULL; /* nothing to call */
    say(&w, RPC "'id':1,'method':'echo'}");
    hear(&w, RPC "'id':1,'error':" NO_METHOD "}");
    world_done(&w);
}

/* ---- framings ---- */

static void test_wire_jsonrpc__headers(void **state) {
    (void)state;
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1,\n2]}";
    char text[300];
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        world_init(&w, RIG_CLIENT, &(world_options){.split = (rig_split)split});
        (void)snprintf(text, sizeof text,
                       "Content-Length: %zu\r\n\r\n%sContent-Type: application/vscode-jsonrpc; charset=utf-8\n"
                       "content-length:%zu\n\n%s",
                       sizeof request - 1, request, sizeof request - 1, request);
        say_part(&w, text);
        hear_bytes(&w, "Content-Length: 40\r\n\r\n" RPC "'id':1,'result':[1,\n2]}Content-Length: 40\r\n\r\n" RPC
                       "'id':1,'result':[1,\n2]}");
        say_part(&w, "Content-Length: 3\r\n\r\n{]}");
        hear_bytes(&w, "Content-Length: 72\r\n\r\n" RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}");
        assert_true(world_over(&w));
        world_done(&w);
    }
}

static void test_wire_jsonrpc__bad_headers(void **state) {
    (void)state;
    static const char *const bad[] = {"Content-Length: x\r\n\r\n", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
                                      "Content-Type: text/x; charset=latin1\r\n\r\n", "Content-Length: -1\r\n\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int stdio = 0; stdio < 2; stdio++) { /* the framing is lost: on stdio as well */
            world w;
            world_init(&w, RIG_CLIENT, &(world_options){.stdio = stdio});
            say_part(&w, bad[i]);
            const rig_end *end = &w.pair->end[RIG_CLIENT];
            assert_non_null(strstr(end->got, "{\"code\":-32700,\"message\":\"the header is not usable\"}}"));
            assert_true(world_over(&w));
            world_done(&w);
        }
    }
}

/* A listener of one framing takes no other. */
static void test_wire_jsonrpc__fixed_framing(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_CLIENT, &(world_options){.framing = EW__FRAMING_LINES});
    say_part(&w, "Content-Length: 2\r\n\r\n");
    hear(&w, RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}");
    assert_true(world_over(&w));
    world_done(&w);
    world_init(&w, RIG_CLIENT, &(world_options){.framing = EW__FRAMING_HEADERS});
    say(&w, RPC "'id':1,'method':'echo'}");
    hear_bytes(&w, "Content-Length: 88\r\n\r\n" RPC "'id':null,'error':{'code':-32700,'message':'the header is not "
                   "usable'}}");
    assert_true(world_over(&w));
    world_done(&w);
}

/* What does not begin as this wire does. A browser learns nothing. */
static void test_wire_jsonrpc__foreign(void **state) {
    (void)state;
    static const char *const silent[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /x HTTP/1.1\r\n",
                                         "PRI * HTTP/2.0\r\n"};
    static const char *const told[] = {"hello\n", "\xef\xbb\xbf{}\n", "'x'\n", "\x16\x03\x01", "null\n", "1\n"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        world w;
        world_serve(&w);
        say_part(&w, silent[i]);
        hear_nothing(&w);
        assert_true(world_over(&w));
        world_done(&w);
    }
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        world w;
        world_serve(&w);
        say_part(&w, told[i]);
        hear(&w,
             RPC "'id':null,'error':{'code':-32700,'message':'the stream begins neither with an object or array nor "
                 "with a Content-Length header'}}");
        assert_true(world_over(&w));
        say_part(&w, RPC "'id':1,'method':'echo'}\n");
        assert_int_equal(w.r.n_opened, 0);
        world_done(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__requests),      cmocka_unit_test(test_wire_jsonrpc__failures),
        cmocka_unit_test(test_wire_jsonrpc__invalid),       cmocka_unit_test(test_wire_jsonrpc__notifications),
        cmocka_unit_test(test_wire_jsonrpc__order),         cmocka_unit_test(test_wire_jsonrpc__input_stream),
        cmocka_unit_test(test_wire_jsonrpc__frames_late),   cmocka_unit_test(test_wire_jsonrpc__frames_early),
        cmocka_unit_test(test_wire_jsonrpc__open_twice),    cmocka_unit_test(test_wire_jsonrpc__bad_frame),
        cmocka_unit_test(test_wire_jsonrpc__result_stream), cmocka_unit_test(test_wire_jsonrpc__one_line),
        cmocka_unit_test(test_wire_jsonrpc__cancel),        cmocka_unit_test(test_wire_jsonrpc__batches),
        cmocka_unit_test(test_wire_jsonrpc__batch_streams), cmocka_unit_test(test_wire_jsonrpc__batch_lost),
        cmocka_unit_test(test_wire_jsonrpc__lists),         cmocka_unit_test(test_wire_jsonrpc__headers),
        cmocka_unit_test(test_wire_jsonrpc__bad_headers),   cmocka_unit_test(test_wire_jsonrpc__fixed_framing),
        cmocka_unit_test(test_wire_jsonrpc__foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
