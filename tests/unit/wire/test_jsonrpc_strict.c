/*
 * tests/unit/wire/test_jsonrpc_strict.c: calls to peers that hold strictly to JSON-RPC 2.0 (no null params, objects and
 * arrays only, errors without an id for requests that they cannot read): the test is the server.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define REFUSED RPC "'id':null,'error':{'code':-32600,'message':'Invalid Request'}}"
#define LOGGED "the peer reports an error without an id: code -32600, Invalid Request"

static void check_refused(world *w, const rig_call *rc) {
    check_failed(rc, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_ACTION, "Invalid Request");
    assert_string_equal(w->r.env.log_line, LOGGED);
    assert_int_equal(w->r.env.log_level, EW_LOG_WARN);
}

/* Without input there is no params member, however null was written. */
static void test_wire_jsonrpc__no_params(void **state) {
    (void)state;
    world w;
    world_call(&w);
    (void)call_plain(&w, "a", "");
    (void)call_plain(&w, "b", "null");
    (void)call_input(&w, "c");
    hear(&w, RPC "'id':$1,'method':'a'}\n" RPC "'id':$2,'method':'b'}\n" RPC "'id':$3,'method':'c','stream':1}");
    (void)call_plain(&w, "d", "false");
    (void)call_plain(&w, "e", "[null]");
    hear(&w, RPC "'id':$4,'method':'d','params':false}\n" RPC "'id':$5,'method':'e','params':[null]}");
    world_done(&w);
}

/* The Go codec requires the member: the user states it with the target. */
static void test_wire_jsonrpc__null_params(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_SERVER, &(world_options){.options = EW__JR_PEER_PARAMS});
    (void)call_plain(&w, "a", "");
    (void)call_input(&w, "c");
    hear(&w, RPC "'id':$1,'method':'a','params':null}\n" RPC "'id':$3,'method':'c','stream':1,'params':null}");
    world_done(&w);
}

/* The only call in flight ends with an error that has no id, however the id is missing. */
static void test_wire_jsonrpc__unnamed_error(void **state) {
    (void)state;
    static const char *const errors[] = {REFUSED, "{'error':{'code':-32600,'message':'Invalid Request'}}",
                                         "[" REFUSED "]"};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        world w;
        world_call(&w);
        rig_call *a = call_plain(&w, "a", "{}");
        hear(&w, RPC "'id':$1,'method':'a','params':{}}");
        say(&w, errors[i]);
        check_refused(&w, a);
        assert_int_equal(world_dropped(&w), 0);
        rig_call *b = call_plain(&w, "b", "{}"); /* the connection lives */
        hear(&w, RPC "'id':$2,'method':'b','params':{}}");
        say(&w, RPC "'id':$2,'result':1}");
        check_done(b, "1");
        world_done(&w);
    }
}

/* A stream whose frames the peer cannot read ends as well. */
static void test_wire_jsonrpc__unnamed_error_of_stream(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_input(&w, "a");
    hear(&w, RPC "'id':$1,'method':'a','stream':1}");
    assert_int_equal(rig_call_send(a, EW_STR("1")), EW_OK);
    hear(&w, RPC "'id':$1,'stream':2,'data':1}");
    say(&w, RPC "'id':$1,'stream':1,'result':null}\n" REFUSED);
    check_refused(&w, a);
    hear(&w, RPC "'id':$1,'stream':3}");
    world_done(&w);
}

/* With several in flight it is logged, and ends the one whose params strict peers cannot read, if it is one. */
static void test_wire_jsonrpc__unnamed_error_of_several(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "a", "{}"), *b = call_plain(&w, "b", "[1]");
    hear(&w, RPC "'id':$1,'method':'a','params':{}}\n" RPC "'id':$2,'method':'b','params':[1]}");
    say(&w, REFUSED);
    assert_string_equal(w.r.env.log_line, LOGGED);
    assert_int_equal(world_dropped(&w), 1);
    check_runs(a);
    check_runs(b);
    rig_call *c = call_plain(&w, "c", "5"), *d = call_plain(&w, "d", "\"x\"");
    hear(&w, RPC "'id':$3,'method':'c','params':5}\n" RPC "'id':$4,'method':'d','params':'x'}");
    say(&w, REFUSED); /* either of two */
    assert_int_equal(world_dropped(&w), 2);
    say(&w, RPC "'id':$3,'result':1}");
    check_done(c, "1");
    say(&w, REFUSED);
    check_refused(&w, d);
    check_runs(a);
    check_runs(b);
    say(&w, RPC "'id':$1,'result':1}\n" RPC "'id':$2,'result':2}");
    check_done(a, "1");
    check_done(b, "2");
    say(&w, REFUSED); /* none */
    assert_int_equal(world_dropped(&w), 3);
    world_done(&w);
}

/* A peer that answers rpc.discover so is not everywire. Calls that wait for that answer are not in flight. */
static void test_wire_jsonrpc__unnamed_error_of_discover(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_stream(&w, "a");
    hear(&w, RPC "'id':$9,'method':'rpc.discover','params':{}}");
    rig_call *b = call_plain(&w, "b", "{}");
    hear(&w, RPC "'id':$2,'method':'b','params':{}}");
    say(&w, REFUSED); /* one of two */
    hear_nothing(&w);
    check_runs(b);
    say(&w, RPC "'id':$2,'result':2}");
    check_done(b, "2");
    say(&w, REFUSED);
    hear(&w, RPC "'id':$1,'method':'a'}");
    say(&w, REFUSED);
    check_refused(&w, a);
    world_done(&w);
}

/* It may be the answer to the cancel, which such a peer does not know either: the call ends as it would without it. */
static void test_wire_jsonrpc__unnamed_error_of_cancel(void **state) {
    (void)state;
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "a", "{}");
    hear(&w, RPC "'id':$1,'method':'a','params':{}}");
    rig_call_cancel(a);
    hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
    say(&w, REFUSED);
    check_runs(a);
    say(&w, RPC "'id':$1,'result':1}");
    check_done(a, "1");
    world_done(&w);
}

/* A hostile peer cannot fill the log. */
static void test_wire_jsonrpc__unnamed_errors_are_bounded(void **state) {
    (void)state;
    world w;
    world_call(&w);
    for (int i = 0; i < 150; i++)
        say(&w, REFUSED);
    assert_int_equal(w.r.env.n_logged, 100);
    assert_int_equal(world_dropped(&w), 150);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__no_params),
        cmocka_unit_test(test_wire_jsonrpc__null_params),
        cmocka_unit_test(test_wire_jsonrpc__unnamed_error),
        cmocka_unit_test(test_wire_jsonrpc__unnamed_error_of_stream),
        cmocka_unit_test(test_wire_jsonrpc__unnamed_error_of_several),
        cmocka_unit_test(test_wire_jsonrpc__unnamed_error_of_discover),
        cmocka_unit_test(test_wire_jsonrpc__unnamed_error_of_cancel),
        cmocka_unit_test(test_wire_jsonrpc__unnamed_errors_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
