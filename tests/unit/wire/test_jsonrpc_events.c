/*
 * tests/unit/wire/test_jsonrpc_events.c: result streams whose frames are events (?stream=events), served and called: the
 * test is the peer.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define BASE(id) RPC "'id':" id ",'stream':1,'result':null}\n"
#define EVENT(id, name, value) RPC "'id':" id ",'stream':2,'data':{'" name "':" value "}}\n"
#define CLOSE(id) RPC "'id':" id ",'stream':3}"

/* ---- serving ---- */

/* A peer that drops the data of close frames, as the Go codec does, sees the result and the failure. */
static void test_wire_jsonrpc_events__serve(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'say?stream=events','params':[1,{ 'a':\n2},null]}");
    hear(&w, BASE("1") EVENT("1", "chunk", "1") EVENT("1", "chunk", "{'a':2}") EVENT("1", "chunk", "null")
                 EVENT("1", "result", "[1,{'a':2},null]") CLOSE("1"));
    say(&w, RPC "'id':2,'method':'fail?stream=events','params':{'status':'ABORTED','message':'m'}}");
    hear(&w, BASE("2") EVENT("2", "error", FAULT(-32000, "m", "ABORTED")) CLOSE("2"));
    say(&w, RPC "'id':3,'method':'nope?stream=events'}"); /* nothing was opened: a plain error */
    hear(&w, RPC "'id':3,'error':" FAULT(-32601, "no such method", "NOT_FOUND") "}");
    say(&w, RPC "'id':4,'method':'relay?stream=events','stream':1}"); /* input is never made of events */
    hear(&w, RPC "'id':4,'stream':1,'result':null}");
    say(&w, RPC "'id':4,'stream':2,'data':{'chunk':5}}\n" CLOSE("4"));
    hear(&w, EVENT("4", "chunk", "{'chunk':5}") EVENT("4", "result", "{'sum':0,'n':1}") CLOSE("4"));
    say(&w, RPC "'id':5,'method':'never?stream=events'}");
    hear(&w, RPC "'id':5,'stream':1,'result':null}");
    say(&w, RPC "'method':'$/cancelRequest','params':{'id':5}}");
    hear(&w, EVENT("5", "error", FAULT(-32800, "stopped", "CANCELLED")) CLOSE("5"));
    world_done(&w);
}

/* ---- calling ---- */

static void world_events(world *w) { world_init(w, RIG_SERVER, &(world_options){.options = EW__JR_PEER_EVENTS}); }

static rig_call *begin(world *w, bool everywire) {
    world_events(w);
    rig_call *a = call_stream(w, "/x/y");
    answer_discover(w, everywire);
    if (everywire)
        hear(w, RPC "'id':$1,'method':'/x/y?stream=events'}");
    else
        hear(w, RPC "'id':$1,'method':'/x/y'}"); /* a peer that sends events by agreement */
    return a;
}

static void test_wire_jsonrpc_events__call(void **state) {
    (void)state;
    for (int everywire = 0; everywire < 2; everywire++) {
        world w;
        rig_call *a = begin(&w, everywire);
        say(&w, BASE("$1") EVENT("$1", "chunk", "1") EVENT("$1", "chunk", "{'result':2}")
                    EVENT("$1", "result", "{'error':3}"));
        check_chunks(a, "1 {\"result\":2}");
        check_runs(a); /* the close frame ends it */
        say(&w, CLOSE("$1"));
        check_done(a, "{\"error\":3}");
        assert_int_equal(world_dropped(&w), 0);
        world_done(&w);
        a = begin(&w, everywire);
        say(&w, BASE("$1") EVENT("$1", "chunk", "1") EVENT("$1", "error", FAULT(-32000, "m", "ABORTED")) CLOSE("$1"));
        check_chunks(a, "1");
        check_failed(a, EW_STATUS_ABORTED, EW_ORIGIN_ACTION, "m");
        world_done(&w);
    }
}

/* Frames that overtake the response that opens their stream, as those of the Go codec may. */
static void test_wire_jsonrpc_events__early(void **state) {
    (void)state;
    world w;
    rig_call *a = begin(&w, false);
    say(&w,
        EVENT("$1", "chunk", "1") EVENT("$1", "result", "2") CLOSE("$1") "\n" RPC "'id':$1,'stream':1,'result':null}");
    check_chunks(a, "1");
    check_done(a, "2");
    world_done(&w);
}

/* A stream that is closed without an end was cut off (the Go codec does that to a silent one): it is not a success. */
static void test_wire_jsonrpc_events__no_end(void **state) {
    (void)state;
    static const struct {
        const char *frames, *message;
        bool cancels;
    } rows[] = {
        {CLOSE("$1"), "the stream was closed without a result or an error", false},
        {RPC "'id':$1,'stream':3,'data':{'result':1}}", "the stream was closed without a result or an error", false},
        {RPC "'id':$1,'stream':2,'data':5}",
         "a frame of the stream is not an event: {\"chunk\":C}, {\"result\":R} or {\"error\":E}", true},
        {RPC "'id':$1,'stream':2}",
         "a frame of the stream is not an event: {\"chunk\":C}, {\"result\":R} or {\"error\":E}", true},
        {EVENT("$1", "result", "1") EVENT("$1", "chunk", "1"),
         "a frame of the stream is not an event: {\"chunk\":C}, {\"result\":R} or {\"error\":E}", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        rig_call *a = begin(&w, true);
        say(&w, RPC "'id':$1,'stream':1,'result':null}");
        say(&w, rows[i].frames);
        check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, rows[i].message);
        if (rows[i].cancels)
            hear(&w, RPC "'method':'$/cancelRequest','params':{'id':$1}}");
        world_done(&w);
    }
}

/* Calls that want no chunks are plain, and so are the inputs of calls that have an input stream. */
static void test_wire_jsonrpc_events__others(void **state) {
    (void)state;
    world w;
    world_events(&w);
    rig_call *a = call_plain(&w, "/x/y", "1");
    hear(&w, RPC "'id':$1,'method':'/x/y','params':1}");
    say(&w, RPC "'id':$1,'result':{'chunk':1}}");
    check_done(a, "{\"chunk\":1}");
    rig_call *b = rig_open(w.pair, &(rig_request){.key = "/x/z", .stream = true, .input_stream = true});
    answer_discover(&w, true);
    hear(&w, RPC "'id':$2,'method':'/x/z?stream=events','stream':1}");
    assert_int_equal(rig_call_send(b, EW_STR("7")), EW_OK);
    hear(&w, RPC "'id':$2,'stream':2,'data':7}");
    say(&w, BASE("$2") EVENT("$2", "result", "8") CLOSE("$2"));
    check_done(b, "8");
    hear(&w, RPC "'id':$2,'stream':3}");
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc_events__serve),  cmocka_unit_test(test_wire_jsonrpc_events__call),
        cmocka_unit_test(test_wire_jsonrpc_events__early),  cmocka_unit_test(test_wire_jsonrpc_events__no_end),
        cmocka_unit_test(test_wire_jsonrpc_events__others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
