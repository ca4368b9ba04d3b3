/*
 * tests/unit/wire/test_jsonrpc_duplex.c: a jsonrpc connection used both ways, notifications and ids of the program's
 * choice, and how a connection ends for those who call.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define LOST "the connection was lost before the end of the call"

/* ---- a caller that chooses more than rig_open lets it ---- */

typedef struct outcome {
    world *w;
    int side;
    unsigned ended;
    ew_status status;
    ew_origin origin;
    char text[200]; /* result or message */
} outcome;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    outcome *o = call->caller_ud;
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    o->ended++;
    o->status = end->status;
    o->origin = end->origin;
    (void)snprintf(o->text, sizeof o->text, "%.*s", (int)text.len, text.ptr);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void on_open(ew_call *call) {
    const outcome *o = call->callee_ud;
    ew__peer *peer = o->w->pair->end[o->side].peer;
    assert_int_equal(peer->wire->open(peer, call), EW_OK);
}

static const ew__callee_ops opening = {.open = on_open};

static void open_with(world *w, int side, outcome *o, const char *id, bool notify, uint8_t hops) {
    *o = (outcome){.w = w, .side = side};
    ew_call *call = ew__call_new(&w->r.side[side].executor, &caller, o);
    assert_non_null(call);
    call->key = EW_STR("/x/y");
    call->input = EW_STR("[1,\n2]");
    call->outgoing.wire_id = ew_str_from(id);
    call->outgoing.notify = notify;
    call->hops = hops;
    ew__call_open_on(call, &opening, o);
    rig_run(&w->r);
}

static void open_call(world *w, int side, outcome *o, const char *id, bool notify) {
    open_with(w, side, o, id, notify, 0);
}

static void test_wire_jsonrpc__notify(void **state) {
    (void)state;
    world w;
    outcome o;
    world_call(&w);
    open_call(&w, RIG_CLIENT, &o, "", true);
    hear(&w, RPC "'method':'/x/y','params':[1,2]}");
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.status, EW_STATUS_OK);
    assert_string_equal(o.text, "null");
    world_done(&w);
    world_init(&w, RIG_SERVER, &(world_options){.limits = {.frame_bytes = 30}});
    open_call(&w, RIG_CLIENT, &o, "", true);
    hear_nothing(&w);
    assert_int_equal(o.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(o.origin, EW_ORIGIN_LOCAL);
    world_done(&w);
}

#define DISCOVER RPC "'id':$1,'method':'rpc.discover','params':{}}"
#define EVERYWIRE RPC "'id':$1,'result':{'openrpc':'1.3.2','info':{'x-everywire':{'streams':true}},'methods':[]}}"

/* A notification that has crossed everywires waits until the peer is known, like a call: a circle of them must end. */
static void test_wire_jsonrpc__notify_hops(void **state) {
    (void)state;
    static const struct {
        const char *answer, *heard; /* of one */
    } rows[] = {{EVERYWIRE, RPC "'method':'/x/y?hops=3','params':[1,2]}\n"},
                {RPC "'id':$1,'error':{'code':-32601,'message':'no'}}", RPC "'method':'/x/y','params':[1,2]}\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        outcome a, b;
        char both[300];
        (void)snprintf(both, sizeof both, "%s%s", rows[i].heard, rows[i].heard);
        world_call(&w);
        open_with(&w, RIG_CLIENT, &a, "", true, 3);
        hear(&w, DISCOVER);
        open_with(&w, RIG_CLIENT, &b, "", true, 3);
        hear_nothing(&w);
        assert_true(a.ended == 0 && b.ended == 0);
        say(&w, rows[i].answer);
        hear_bytes(&w, both);
        assert_true(a.ended == 1 && b.ended == 1 && a.status == EW_STATUS_OK && b.status == EW_STATUS_OK);
        assert_string_equal(a.text, "null");
        open_with(&w, RIG_CLIENT, &a, "", true, 3); /* known by now */
        hear_bytes(&w, rows[i].heard);
        assert_int_equal(a.ended, 1);
        world_done(&w);
    }
}

/* While the peer is silent, a notification with a hop count waits, then fails: the count is never dropped. */
static void test_wire_jsonrpc__notify_hops_silent(void **state) {
    (void)state;
    world w;
    outcome a, b;
    world_call(&w);
    open_with(&w, RIG_CLIENT, &a, "", true, 3);
    hear(&w, DISCOVER);
    rig_advance(&w.r, 29999);
    assert_int_equal(a.ended, 0);
    rig_advance(&w.r, 1);
    hear_nothing(&w);
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.status, EW_STATUS_UNAVAILABLE);
    open_with(&w, RIG_CLIENT, &b, "", true, 3);
    rig_advance(&w.r, 29999);
    say(&w, EVERYWIRE); /* late, but it counts */
    hear(&w, RPC "'method':'/x/y?hops=3','params':[1,2]}");
    assert_true(b.ended == 1 && b.status == EW_STATUS_OK);
    world_done(&w);
}

/* A waiting notification ends with its connection. */
static void test_wire_jsonrpc__notify_hops_lost(void **state) {
    (void)state;
    world w;
    outcome o;
    world_call(&w);
    open_with(&w, RIG_CLIENT, &o, "", true, 3);
    hear(&w, DISCOVER);
    rig_close(w.pair, RIG_CLIENT);
    rig_run(&w.r);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.status, EW_STATUS_UNAVAILABLE);
    world_done(&w);
}

/* A connection that is going down stays for it, and goes with it. */
static void test_wire_jsonrpc__notify_hops_drains(void **state) {
    (void)state;
    world w;
    outcome o;
    world_call(&w);
    open_with(&w, RIG_CLIENT, &o, "", true, 3);
    hear(&w, DISCOVER);
    ew__peer *peer = w.pair->end[RIG_CLIENT].peer;
    peer->wire->drain(peer);
    rig_run(&w.r);
    assert_false(w.pair->end[RIG_SERVER].saw_eof);
    say(&w, EVERYWIRE);
    hear(&w, RPC "'method':'/x/y?hops=3','params':[1,2]}");
    assert_true(o.ended == 1 && o.status == EW_STATUS_OK);
    assert_true(w.pair->end[RIG_SERVER].saw_eof);
    world_done(&w);
}

/* The other way round: who serves asks whom it calls back. */
static void test_wire_jsonrpc__hops_back(void **state) {
    (void)state;
    world w;
    outcome o;
    world_serve(&w);
    open_with(&w, RIG_SERVER, &o, "", false, 4);
    hear(&w, DISCOVER);
    say(&w, EVERYWIRE);
    hear(&w, RPC "'id':$2,'method':'/x/y?hops=4','params':[1,2]}");
    say(&w, RPC "'id':$2,'result':1}");
    assert_string_equal(o.text, "1");
    world_done(&w);
}

static void test_wire_jsonrpc__chosen_ids(void **state) {
    (void)state;
    world w;
    outcome a, b, c;
    world_call(&w);
    open_call(&w, RIG_CLIENT, &a, "7", false);
    hear(&w, RPC "'id':'7','method':'/x/y','params':[1,2]}"); /* a string, always */
    open_call(&w, RIG_CLIENT, &b, "7", false);
    assert_int_equal(b.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(b.origin, EW_ORIGIN_LOCAL);
    assert_string_equal(b.text, "a call with this id still runs");
    open_call(&w, RIG_CLIENT, &c, "a\"\n\xc3\xa9", false);
    hear(&w, RPC "'id':'a\\'\\n\xc3\xa9','method':'/x/y','params':[1,2]}");
    say(&w, RPC "'id':7,'result':0}"); /* a number is another id */
    assert_int_equal(world_dropped(&w), 1);
    say(&w, RPC "'id':'\\u0037','result':1}\n" RPC "'id':'\\u0061\\u0022\\u000a\\u00e9','result':2}");
    assert_string_equal(a.text, "1");
    assert_string_equal(c.text, "2");
    open_call(&w, RIG_CLIENT, &a, "7", false); /* free again */
    hear(&w, RPC "'id':'7','method':'/x/y','params':[1,2]}");
    world_done(&w);
}

/* ---- both ways ---- */

/* One id is two: each side has its own. */
static void test_wire_jsonrpc__same_id_both_ways(void **state) {
    (void)state;
    world w;
    outcome o;
    world_serve(&w);
    open_call(&w, RIG_SERVER, &o, "1", false);
    hear(&w, RPC "'id':'1','method':'/x/y','params':[1,2]}");
    say(&w, RPC "'id':'1','method':'sleep','params':{'ms':5}}"); /* the peer's own call */
    say(&w, RPC "'id':'1','result':'mine'}");                    /* the answer to ours */
    assert_string_equal(o.text, "\"mine\"");
    rig_advance(&w.r, 5);
    hear(&w, RPC "'id':'1','result':'slept'}");
    open_call(&w, RIG_SERVER, &o, "2", false); /* but frames could not be told apart: no stream with that id */
    hear(&w, RPC "'id':'2','method':'/x/y','params':[1,2]}");
    say(&w, RPC "'id':'\\u0032','method':'sum','stream':1}");
    hear(&w, RPC "'id':'\\u0032','error':" FAULT(-32600, "a call with this id still runs", "INVALID_ARGUMENT") "}");
    say(&w, RPC "'id':'2','result':3}");
    assert_string_equal(o.text, "3");
    assert_int_equal(w.r.n_opened, 1);
    world_done(&w);
}

/* A server that calls its client, with streams in all four directions. */
static void test_wire_jsonrpc__both_ways(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'c-1','method':'relay?stream=true','stream':1}");
    hear(&w, RPC "'id':'c-1','stream':1,'result':null}");
    rig_call *a = rig_open_from(w.pair, RIG_SERVER, &(rig_request){.key = "ask", .stream = true, .input_stream = true});
    answer_discover(&w, true);
    hear(&w, RPC "'id':$1,'method':'ask?stream=true','stream':1}");
    say(&w, RPC "'id':$1,'stream':1,'result':null}\n" RPC "'id':'c-1','stream':2,'data':1}\n" RPC
                "'id':$1,'stream':2,'data':'p'}");
    hear(&w, RPC "'id':'c-1','stream':2,'data':1}");
    check_chunks(a, "\"p\"");
    assert_int_equal(rig_call_send(a, EW_STR("5")), EW_OK);
    rig_call_send_end(a);
    hear(&w, RPC "'id':$1,'stream':2,'data':5}\n" RPC "'id':$1,'stream':3}");
    say(&w, RPC "'id':$1,'stream':3,'data':{'result':6}}\n" RPC "'id':'c-1','stream':3}");
    hear(&w, RPC "'id':'c-1','stream':3,'data':{'result':{'sum':1,'n':1}}}");
    check_done(a, "6");
    world_done(&w);
}

/* The side that dialled serves, too. */
static void test_wire_jsonrpc__client_serves(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_SERVER, &(world_options){.client_actions = rig_actions()});
    rig_call *a = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    say(&w, RPC "'id':'s-1','method':'echo','params':[1]}");
    hear(&w, RPC "'id':'s-1','result':[1]}");
    say(&w, RPC "'method':'event','params':1}"); /* unknown: dropped */
    assert_int_equal(world_dropped(&w), 1);
    say(&w, "[" RPC "'id':'s-2','method':'echo'}," RPC "'id':$1,'result':4}]"); /* a mixed batch */
    hear(&w, "[" RPC "'id':'s-2','result':null}]");
    check_done(a, "4");
    world_done(&w);
}

/* Without actions a request is still answered: nobody waits for ever. */
static void test_wire_jsonrpc__pure_client(void **state) {
    (void)state;
    world w;
    world_call(&w);
    say(&w, RPC "'id':1,'method':'echo'}");
    hear(&w, RPC "'id':1,'error':" FAULT(-32601, "no such method", "NOT_FOUND") "}");
    world_done(&w);
}

/* A connection that is used both ways gets more room before it stops reading: both sides stopping would be for ever. */
static void test_wire_jsonrpc__pause_both_ways(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_CLIENT,
               &(world_options){.limits = {.out_high_bytes = 1000, .out_low_bytes = 500, .out_max_bytes = 100000}});
    rig_call *a = rig_open_from(w.pair, RIG_SERVER, &(rig_request){.key = "ask"});
    hear(&w, RPC "'id':$1,'method':'ask'}");
    rig_stall(w.pair, RIG_SERVER, true);
    char text[400];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(text, sizeof text, RPC "'id':%d,'method':'echo','params':'%0100d'}", i, i);
        say(&w, text);
    }
    assert_int_equal(w.r.n_opened, 100);
    say(&w, RPC "'id':$1,'result':1}"); /* the answer that we wait for gets through */
    check_done(a, "1");
    rig_stall(w.pair, RIG_SERVER, false);
    world_done(&w);
}

static void test_wire_jsonrpc__drains_both_ways(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    rig_call *a = rig_open_from(w.pair, RIG_SERVER, &(rig_request){.key = "ask"});
    hear(&w, RPC "'id':$1,'method':'ask'}");
    ew__peer *peer = w.pair->end[RIG_SERVER].peer;
    peer->wire->drain(peer);
    assert_int_equal(peer->wire->capacity(peer), 0);
    assert_false(world_over(&w)); /* a call of ours is still out */
    say(&w, RPC "'id':$1,'result':1}");
    check_done(a, "1");
    assert_true(world_over(&w));
    world_done(&w);
}

/* ---- the end of a connection ---- */

static void test_wire_jsonrpc__connection_ends(void **state) {
    (void)state;
    static const char *const junk[] = {"HTTP/1.1 400 Bad Request\r\n", "hello\n"};
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", ""), *b = call_stream(&w, "/x/z");
    say_eof(&w);
    check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    check_failed(b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    assert_int_equal(rig_capacity(w.pair), 0);
    assert_true(world_over(&w));
    world_done(&w);
    for (size_t i = 0; i < 2; i++) {
        world_call(&w);
        a = call_plain(&w, "/x/y", "");
        rig_forget(w.pair, w.pair->end[RIG_SERVER].got_len);
        say_part(&w, junk[i]);
        check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the peer does not speak JSON-RPC");
        hear_nothing(&w); /* as a caller we say nothing that could be taken for an answer */
        assert_true(world_over(&w));
        world_done(&w);
    }
    world_call(&w);
    a = call_plain(&w, "/x/y", "");
    rig_forget(w.pair, w.pair->end[RIG_SERVER].got_len);
    say(&w, "{]");
    check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the peer sent something that is no JSON-RPC");
    hear_nothing(&w);
    world_done(&w);
}

/* A program that prints a line by mistake is still understood. */
static void test_wire_jsonrpc__stdio_server(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_SERVER, &(world_options){.stdio = true});
    rig_call *a = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    say(&w, "starting up ...\n[1,\n}");
    check_runs(a);
    say(&w, RPC "'id':$1,'result':1}");
    check_done(a, "1");
    hear_nothing(&w);
    rig_call *b = call_plain(&w, "/x/y", "");
    for (int i = 0; i < 100; i++)
        say(&w, "log line");
    check_failed(b, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the peer sent something that is no JSON-RPC");
    world_done(&w);
}

/* A server that answers in the other framing is understood, and from then on spoken to in it. */
static void test_wire_jsonrpc__framings(void **state) {
    (void)state;
    char text[300];
    world w;
    world_call(&w);
    rig_call *a = call_plain(&w, "/x/y", "");
    hear(&w, RPC "'id':$1,'method':'/x/y'}");
    (void)snprintf(text, sizeof text, "Content-Length: %zu\r\n\r\n" RPC "'id':$1,'result':1}",
                   strlen(RPC "'id':,'result':1}") + strlen(w.ids[1]));
    say_part(&w, text);
    check_done(a, "1");
    assert_int_equal(w.r.env.n_logged, 1);
    (void)call_plain(&w, "/x/y", "");
    hear_bytes(&w, "Content-Length: 55\r\n\r\n" RPC "'id':$2,'method':'/x/y'}");
    world_done(&w);
    world_init(&w, RIG_SERVER, &(world_options){.framing = EW__FRAMING_HEADERS});
    (void)call_plain(&w, "/x/y", "[1,\n2]");
    hear_bytes(&w, "Content-Length: 71\r\n\r\n" RPC "'id':$1,'method':'/x/y','params':[1,\n2]}");
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__notify),
        cmocka_unit_test(test_wire_jsonrpc__notify_hops),
        cmocka_unit_test(test_wire_jsonrpc__notify_hops_silent),
        cmocka_unit_test(test_wire_jsonrpc__notify_hops_lost),
        cmocka_unit_test(test_wire_jsonrpc__notify_hops_drains),
        cmocka_unit_test(test_wire_jsonrpc__hops_back),
        cmocka_unit_test(test_wire_jsonrpc__chosen_ids),
        cmocka_unit_test(test_wire_jsonrpc__same_id_both_ways),
        cmocka_unit_test(test_wire_jsonrpc__both_ways),
        cmocka_unit_test(test_wire_jsonrpc__client_serves),
        cmocka_unit_test(test_wire_jsonrpc__pure_client),
        cmocka_unit_test(test_wire_jsonrpc__pause_both_ways),
        cmocka_unit_test(test_wire_jsonrpc__drains_both_ways),
        cmocka_unit_test(test_wire_jsonrpc__connection_ends),
        cmocka_unit_test(test_wire_jsonrpc__stdio_server),
        cmocka_unit_test(test_wire_jsonrpc__framings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
