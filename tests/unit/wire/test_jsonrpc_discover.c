/*
 * tests/unit/wire/test_jsonrpc_discover.c: what the calling side of the jsonrpc wire learns from rpc.discover, and what
 * it does while the peer has not answered: the test is the server.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

static void test_wire_jsonrpc__discover_answers(void **state) {
    (void)state;
    static const char *const others[] = {"'result':null", "'result':{'methods':[]}", "'error':5",
                                         "'result':{'info':{'x-everywire':{'streams':false}}}"};
    char text[200];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        world w;
        world_call(&w);
        (void)call_stream(&w, "/x/y");
        hear(&w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
        (void)snprintf(text, sizeof text, RPC "'id':$9,%s}", others[i]);
        say(&w, text);
        hear(&w, RPC "'id':$1,'method':'/x/y'}");
        say(&w, text); /* twice */
        assert_int_equal(world_dropped(&w), 1);
        world_done(&w);
    }
}

#define NO_ANSWER                                                                                                      \
    "the peer has not answered rpc.discover, which a call with chunks or with a hop count needs; if the peer is not "  \
    "everywire, add ?discover=no to its target"

/*
 * A peer that is paused: nothing is sent to it without its chunks or its hop count. Calls wait until their own deadline;
 * without one, for limits.stream_idle_ms. An answer counts whenever it arrives.
 */
static void test_wire_jsonrpc__discover_silence(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_stream(&w, "/x/a");
    hear(&w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
    rig_call *b = call_plain(&w, "/x/b", ""); /* plain calls do not wait */
    hear(&w, RPC "'id':$1,'method':'/x/b'}");
    rig_call *brief = rig_open(w.pair, &(rig_request){.key = "/x/c", .stream = true, .timeout_ms = 5000});
    rig_call *patient = rig_open(w.pair, &(rig_request){.key = "/x/d", .hops = 1, .timeout_ms = 120 * 1000});
    rig_advance(&w.r, 4999);
    check_runs(brief);
    rig_advance(&w.r, 1);
    check_failed(brief, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    rig_advance(&w.r, 24999);
    check_runs(a);
    rig_advance(&w.r, 1);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, NO_ANSWER);
    rig_call *c = call_stream(&w, "/x/e");
    rig_advance(&w.r, 29999);
    hear_nothing(&w);
    check_runs(patient);
    say(&w, RPC "'id':$1,'result':1}"); /* an answer to something else decides nothing */
    check_done(b, "1");
    hear_nothing(&w);
    say(&w, RPC "'id':$9,'result':{'info':{'x-everywire':{'streams':true}},'methods':[]}}");
    hear(&w, RPC "'id':$2,'method':'/x/d?hops=1'}\n" RPC "'id':$3,'method':'/x/e?stream=true'}");
    uint64_t dropped = world_dropped(&w);
    (void)call_stream(&w, "/x/y");
    hear(&w, RPC "'id':$4,'method':'/x/y?stream=true'}");
    say(&w, RPC "'id':$9,'result':null}"); /* a repeated answer is dropped */
    assert_int_equal(world_dropped(&w), dropped + 1);
    rig_advance(&w.r, 29999); /* a call that was sent waits for its answer as any other */
    check_runs(patient);
    say(&w, RPC "'id':$2,'result':2}\n" RPC "'id':$3,'stream':1,'result':null}\n" RPC
                "'id':$3,'stream':2,'data':5}\n" RPC "'id':$3,'stream':3,'data':{'result':6}}");
    check_done(patient, "2");
    check_chunks(c, "5");
    check_done(c, "6");
    world_done(&w);
}

/* However short the wait is, and whatever else is tried: a call with a hop count never leaves without it. */
static void test_wire_jsonrpc__discover_no_time(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_SERVER, &(world_options){.limits = {.stream_idle_ms = 1}});
    for (int i = 0; i < 3; i++) {
        rig_call *a = rig_open(w.pair, &(rig_request){.key = "/x/a", .hops = 1});
        rig_call *b = rig_open(w.pair, &(rig_request){.key = "/x/a", .stream = true});
        rig_advance(&w.r, 1);
        check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, NO_ANSWER);
        check_failed(b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, NO_ANSWER);
    }
    hear(&w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
    say(&w, RPC "'id':$9,'result':{'info':{'x-everywire':{'streams':true}},'methods':[]}}");
    (void)rig_open(w.pair, &(rig_request){.key = "/x/a", .hops = 1});
    hear(&w, RPC "'id':$1,'method':'/x/a?hops=1'}");
    world_done(&w);
}

/* An everywire that cannot give its list still understands streams and hop counts. */
static void test_wire_jsonrpc__discover_refused(void **state) {
    (void)state;
    static const char *const statuses[] = {"RESOURCE_EXHAUSTED", "UNAUTHENTICATED"};
    char text[200];
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        world w;
        world_call(&w);
        (void)rig_open(w.pair, &(rig_request){.key = "/x/a", .hops = 1});
        hear(&w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
        (void)snprintf(text, sizeof text,
                       RPC "'id':$9,'error':"
                           "{'code':-32000,'message':'m','data':{'status':'%s'}}}",
                       statuses[i]);
        say(&w, text);
        hear(&w, RPC "'id':$1,'method':'/x/a?hops=1'}");
        world_done(&w);
    }
}

/* The user states that the peer is not everywire: it is not asked. */
static void test_wire_jsonrpc__discover_not(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_SERVER, &(world_options){.options = EW__JR_PEER_FOREIGN});
    rig_call *a = call_stream(&w, "/x/y");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    say(&w, RPC "'id':$1,'stream':1,'result':1}\n" RPC "'id':$1,'stream':2,'data':2}\n" RPC "'id':$1,'stream':3}");
    check_chunks(a, "2");
    check_done(a, "1");
    world_done(&w);
}

/* A listing shows it as well. */
static void test_wire_jsonrpc__listing(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = rig_open(w.pair, &(rig_request){.list = true});
    hear(&w, RPC "'id':$1,'method':'rpc.discover','params':{}}");
    say(&w, RPC
        "'id':$1,'result':{'info':{'x-everywire':{'streams':true}},'methods':[{'name':'/a/b','x-everywire':{'k':1}},"
        "{'name':'m'}]}}");
    check_done(a,
               "{\"/a/b\":{\"k\":1},\"/method/m\":{\"key\":\"/method/m\",\"name\":\"m\",\"actionType\":\"method\"}}");
    (void)call_stream(&w, "/x/y");
    hear(&w, RPC "'id':$2,'method':'/x/y?stream=true'}");
    rig_call *b = rig_open(w.pair, &(rig_request){.list = true});
    hear(&w, RPC "'id':$3,'method':'rpc.discover','params':{}}");
    say(&w, RPC "'id':$3,'error':{'code':-32601,'message':'no'}}");
    check_failed(b, EW_STATUS_UNIMPLEMENTED, EW_ORIGIN_ACTION,
                 "the peer cannot list its actions: it does not know rpc.discover");
    rig_call *c = rig_open(w.pair, &(rig_request){.list = true});
    hear(&w, RPC "'id':$4,'method':'rpc.discover','params':{}}");
    say(&w, RPC "'id':$4,'result':[]}");
    check_failed(c, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the answer to rpc.discover is no OpenRPC document");
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__discover_answers), cmocka_unit_test(test_wire_jsonrpc__discover_silence),
        cmocka_unit_test(test_wire_jsonrpc__discover_no_time), cmocka_unit_test(test_wire_jsonrpc__discover_refused),
        cmocka_unit_test(test_wire_jsonrpc__discover_not),     cmocka_unit_test(test_wire_jsonrpc__listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
