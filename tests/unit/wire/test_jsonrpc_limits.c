/*
 * tests/unit/wire/test_jsonrpc_limits.c: the serving side of the jsonrpc wire when there is too much, too slow or no
 * more: limits, back pressure, patience, eof, draining.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/jsonrpc_world.h"

#define BAD_JSON RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}"

static void serve_with(world *w, ew_limits limits) { world_init(w, RIG_CLIENT, &(world_options){.limits = limits}); }

static void serve_stdio(world *w) { world_init(w, RIG_CLIENT, &(world_options){.stdio = true}); }

/* Says "before", n letters, "after" and a newline. */
static void say_long(world *w, const char *before, size_t n, const char *after) {
    char *text = malloc(n + 200);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, 100, "%s", before);
    memset(text + len, 'x', n);
    (void)snprintf(text + len + n, 100, "%s", after);
    say(w, text);
    free(text);
}

/* A fault where messages are so short that only its status fits for sure. */
#define SHORT FAULT(-32000, "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED")

/* ---- limits ---- */

static void test_wire_jsonrpc__calls_limit(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.calls_per_connection = 2});
    say(&w, RPC "'id':1,'method':'sleep','params':{'ms':10}}");
    say(&w, RPC "'id':2,'method':'sleep','params':{'ms':20}}");
    say(&w, RPC "'id':3,'method':'echo'}");
    hear(&w, RPC "'id':3,'error':" REFUSAL(-32000, "too many calls on this connection", "RESOURCE_EXHAUSTED") "}");
    say(&w, RPC "'method':'echo'}");
    assert_int_equal(world_dropped(&w), 1);
    assert_int_equal(w.r.n_opened, 2);
    rig_advance(&w.r, 10);
    hear(&w, RPC "'id':1,'result':'slept'}");
    say(&w, RPC "'id':3,'method':'echo'}");
    hear(&w, RPC "'id':3,'result':null}");
    world_done(&w);
}

static void test_wire_jsonrpc__batch_limit(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.batch_items = 2});
    say(&w, "[" RPC "'id':1,'method':'echo'}," RPC "'method':'echo'}]");
    hear(&w, "[" RPC "'id':1,'result':null}]");
    say(&w, "[" RPC "'id':1,'method':'echo'}," RPC "'method':'echo'},1]");
    hear(&w, RPC "'id':null,'error':{'code':-32600,'message':'too many messages in a batch'}}");
    assert_int_equal(w.r.n_opened, 2);
    world_done(&w);
}

/* The answers of a batch are one message: what does not fit becomes an error. */
static void test_wire_jsonrpc__batch_answers_limit(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.frame_bytes = 1210});
    say(&w, "[" RPC "'id':6,'method':'echo','params':[]}," RPC "'id':7,'method':'rpc.discover'}]");
    hear(&w, "[" RPC "'id':6,'result':[]}," RPC "'id':7,'error':" SHORT "}]");
    say_long(&w, "[" RPC "'id':1,'method':'about'}," RPC "'id':2,'method':'echo','params':'", 1050, "'}]");
    const char *got = w.pair->end[RIG_CLIENT].got;
    assert_non_null(strstr(got,
                           ",{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32000,\"message\":\"the answers of "
                           "the batch are too large\",\"data\":{\"status\":\"RESOURCE_EXHAUSTED\"}}}]\n"));
    world_done(&w);
}

#define LARGE "the message is larger than this side accepts (limit frame_bytes)"

static void test_wire_jsonrpc__message_limit(void **state) {
    (void)state;
    for (int stdio = 0; stdio < 2; stdio++) {
        world w;
        world_init(&w, RIG_CLIENT, &(world_options){.limits = {.frame_bytes = 6000}, .stdio = stdio});
        say_long(&w, RPC "'id':1,'method':'echo','params':'", 5000, "'}");
        assert_int_equal(w.r.n_opened, 1);
        rig_forget(w.pair, w.pair->end[RIG_CLIENT].got_len);
        say_long(&w, RPC "'id':1,'method':'echo','params':'", 7000, "'}");
        hear(&w, RPC "'id':1,'error':" FAULT(-32000, LARGE, "RESOURCE_EXHAUSTED") "}");
        say_long(&w, RPC "'method':'echo','params':'", 90000, "','id':3}"); /* the id is behind the payload */
        hear(&w, RPC "'id':3,'error':" FAULT(-32000, LARGE, "RESOURCE_EXHAUSTED") "}");
        assert_false(world_over(&w));
        say(&w, RPC "'id':2,'method':'echo'}");
        hear(&w, RPC "'id':2,'result':null}");
        assert_int_equal(w.r.n_opened, 2);
        say_long(&w, RPC "'params':'", 7000, "'}"); /* it shows no id */
        hear(&w, RPC "'id':null,'error':{'code':-32700,'message':'" LARGE "'}}");
        assert_int_equal(world_over(&w), !stdio); /* a process goes on with its next line */
        world_done(&w);
        world_init(&w, RIG_CLIENT, &(world_options){.limits = {.frame_bytes = 6000}, .stdio = stdio});
        static char endless[100000]; /* no end within 16 times the limit */
        memset(endless, 'x', sizeof endless);
        memcpy(endless, "{\"id\":\"", 7);
        rig_say(w.pair, endless, sizeof endless);
        rig_run(&w.r);
        assert_true(world_over(&w));
        world_done(&w);
    }
}

static void test_wire_jsonrpc__result_limit(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.frame_bytes = 300}); /* even the list is longer */
    say(&w, RPC "'id':1,'method':'chunks?stream=true','params':{'n':1,'size':400}}");
    hear(&w, RPC "'id':1,'stream':1,'result':null}\n" RPC "'id':1,'stream':3,'data':{'error':" SHORT "}}");
    say(&w, RPC "'id':1,'method':'rpc.discover'}");
    hear(&w, RPC "'id':1,'error':" SHORT "}");
    say_long(&w, RPC "'id':'", 200, "','method':'about'}"); /* the id makes it too long */
    assert_non_null(
        strstr(w.pair->end[RIG_CLIENT].got, "\"error\":{\"code\":-32000,\"message\":\"RESOURCE_EXHAUSTED\""));
    world_done(&w);
    serve_with(&w, (ew_limits){.frame_bytes = 6000});
    say_long(&w, RPC "'id':'", 5880, "','method':'about'}");
    assert_non_null(strstr(w.pair->end[RIG_CLIENT].got, "\"the result is too large for this connection\""));
    world_done(&w);
}

/* What running calls hold in memory is limited, too: four messages of the greatest length. */
static void test_wire_jsonrpc__bytes_limit(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.frame_bytes = 10000});
    for (int i = 0; i < 5; i++) {
        char before[100];
        (void)snprintf(before, sizeof before, RPC "'id':%d,'method':'sleep','params':{'ms':10,'out':1,'x':'", i);
        say_long(&w, before, 8650, "'}}");
    }
    assert_int_equal(w.r.n_opened, 5);
    say(&w, RPC "'id':9,'method':'echo'}");
    hear(&w,
         RPC "'id':9,'error':" REFUSAL(-32000, "too many bytes of calls on this connection", "RESOURCE_EXHAUSTED") "}");
    rig_advance(&w.r, 10);
    rig_forget(w.pair, w.pair->end[RIG_CLIENT].got_len);
    say(&w, RPC "'id':9,'method':'echo'}");
    hear(&w, RPC "'id':9,'result':null}");
    world_done(&w);
}

static void test_wire_jsonrpc__call_time_limit(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.call_ms = 50});
    say(&w, RPC "'id':1,'method':'never'}");
    assert_int_equal(w.r.seen_deadline_ms, 50);
    rig_advance(&w.r, 49);
    hear_nothing(&w);
    rig_advance(&w.r, 1);
    hear(&w, RPC "'id':1,'error':" FAULT(-32000, "the deadline has passed", "DEADLINE_EXCEEDED") "}");
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
}

/* ---- back pressure ---- */

/* Answers that nobody takes: no more requests are taken either, and later all of them. */
static void test_wire_jsonrpc__pause(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.out_high_bytes = 1000, .out_low_bytes = 500, .out_max_bytes = 100000});
    rig_stall(w.pair, RIG_SERVER, true);
    char *all = calloc(1, 100 * 200);
    size_t n = 0;
    assert_non_null(all);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(
            all + n, 200, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"echo\",\"params\":\"%0100d\"}\n", i + 100, i);
    rig_say(w.pair, all, n);
    rig_run(&w.r);
    /* an answer is 139 bytes, and four times out_high_bytes are the limit: 29 are more */
    assert_int_equal(w.r.n_opened, 29);
    assert_false(w.pair->end[RIG_SERVER].reading);
    rig_advance(&w.r, 1000);
    assert_int_equal(w.r.n_opened, 29);
    rig_stall(w.pair, RIG_SERVER, false);
    rig_run(&w.r);
    assert_int_equal(w.r.n_opened, 100);
    assert_true(w.pair->end[RIG_SERVER].reading);
    assert_true(w.pair->end[RIG_SERVER].peak_out < 4000 + 200);
    assert_int_equal(w.pair->end[RIG_CLIENT].got_len, 100 * 139);
    free(all);
    world_done(&w);
}

/* eof that comes while answers are not taken waits for its turn: everything that was said before it counts. */
static void test_wire_jsonrpc__pause_and_eof(void **state) {
    (void)state;
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n";
    world w;
    serve_with(&w, (ew_limits){.out_high_bytes = 100, .out_low_bytes = 50});
    rig_stall(w.pair, RIG_SERVER, true);
    for (int i = 0; i < 50; i++)
        rig_say(w.pair, request, sizeof request - 1);
    rig_run(&w.r);
    assert_true(w.r.n_opened < 50);
    ew__peer *peer = w.pair->end[RIG_SERVER].peer; /* it was on its way when reading was stopped */
    peer->wire->eof(peer);
    rig_run(&w.r);
    assert_false(world_over(&w));
    rig_stall(w.pair, RIG_SERVER, false);
    rig_run(&w.r);
    assert_int_equal(w.r.n_opened, 50);
    assert_int_equal(w.pair->end[RIG_CLIENT].got_len, 50 * 39);
    assert_true(world_over(&w));
    world_done(&w);
}

/* A producer waits while the peer does not read. */
static void test_wire_jsonrpc__producer_waits(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.out_high_bytes = 1000, .out_low_bytes = 500});
    rig_stall(w.pair, RIG_SERVER, true);
    say(&w, RPC "'id':1,'method':'chunks?stream=true','params':{'n':50,'size':100}}");
    assert_int_equal(w.r.n_waits, 1);
    assert_true(w.pair->end[RIG_SERVER].conn.out.bytes < 1400);
    rig_stall(w.pair, RIG_SERVER, false);
    rig_run(&w.r);
    assert_true(w.r.n_waits > 1);
    const char *got = w.pair->end[RIG_CLIENT].got;
    assert_non_null(strstr(got, "{\"jsonrpc\":\"2.0\",\"id\":1,\"stream\":3,\"data\":{\"result\":{\"n\":50}}}\n"));
    world_done(&w);
}

#define LAZY(ms) RPC "'id':'s','method':'lazy','stream':1,'params':{'after_ms':" #ms "}}"
#define DATA RPC "'id':'s','stream':2,'data':1}"

/* A handler that does not look at its input: the connection is not read until it does. */
static void test_wire_jsonrpc__block(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.in_queue_items = 2});
    say(&w, LAZY(1000) "\n" DATA "\n" DATA "\n" DATA "\n" DATA "\n" RPC "'id':'s','stream':3}\n" RPC
                       "'id':1,'method':'echo'}");
    hear_nothing(&w);
    assert_false(w.pair->end[RIG_SERVER].reading);
    rig_advance(&w.r, 999);
    hear_nothing(&w);
    rig_advance(&w.r, 1);
    hear(&w, RPC "'id':'s','result':{'sum':4,'n':4}}\n" RPC "'id':1,'result':null}");
    assert_true(w.pair->end[RIG_SERVER].reading);
    world_done(&w);
}

/* After five seconds the one that holds up the others loses its call. */
static void test_wire_jsonrpc__guard(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.in_queue_items = 2});
    say(&w, LAZY(60000) "\n" DATA "\n" DATA "\n" DATA "\n" DATA "\n" RPC "'id':1,'method':'echo'}");
    rig_advance(&w.r, 4999);
    hear_nothing(&w);
    rig_advance(&w.r, 1);
    hear(&w, RPC "'id':'s','error':" FAULT(-32000, "overrun: the stream was not taken, and held up its connection",
                                           "RESOURCE_EXHAUSTED") "}\n" RPC "'id':1,'result':null}");
    assert_int_equal(w.r.n_cancelled, 1);
    say(&w, DATA "\n" RPC "'id':'s','stream':3}"); /* what still comes of it is thrown away */
    hear_nothing(&w);
    world_done(&w);
}

/* ---- patience ---- */

#define SILENT                                                                                                         \
    RPC "'id':'s','error':" FAULT(-32000, "the input stream was silent for too long", "DEADLINE_EXCEEDED") "}"

static void test_wire_jsonrpc__silence(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.stream_idle_ms = 1000});
    say(&w, RPC "'id':'s','method':'sum','stream':1}");
    for (int i = 0; i < 3; i++) { /* each frame counts */
        rig_advance(&w.r, 900);
        say(&w, DATA);
    }
    rig_advance(&w.r, 999);
    hear_nothing(&w);
    rig_advance(&w.r, 1);
    hear(&w, SILENT);
    assert_int_equal(w.r.n_cancelled, 1);
    say(&w, RPC "'id':'s','method':'never','stream':1}\n" RPC "'id':'s','stream':3}"); /* ended: it may take its time */
    rig_advance(&w.r, 10000);
    hear_nothing(&w);
    world_done(&w);
}

/* While our own reader is slow the peer is not silent. */
static void test_wire_jsonrpc__silence_of_ours(void **state) {
    (void)state;
    world w;
    serve_with(&w, (ew_limits){.stream_idle_ms = 1000, .in_queue_items = 1});
    say(&w, LAZY(4000) "\n" DATA "\n" DATA "\n" DATA);
    rig_advance(&w.r, 4000);
    hear_nothing(&w);
    say(&w, RPC "'id':'s','stream':3}");
    hear(&w, RPC "'id':'s','result':{'sum':3,'n':3}}");
    world_done(&w);
}

static void test_wire_jsonrpc__patience(void **state) {
    (void)state;
    const ew_limits limits = {.idle_ms = 1000, .body_stall_ms = 300};
    world w;
    serve_with(&w, limits); /* says nothing */
    rig_advance(&w.r, 999);
    assert_false(world_over(&w));
    rig_advance(&w.r, 1);
    assert_true(world_over(&w));
    hear_nothing(&w);
    world_done(&w);
    serve_with(&w, limits); /* half a message */
    say_part(&w, RPC "'id':1,");
    rig_advance(&w.r, 200);
    say_part(&w, "'method':'echo'"); /* a few bytes are not progress */
    rig_advance(&w.r, 99);
    assert_false(world_over(&w));
    rig_advance(&w.r, 1);
    assert_true(world_over(&w));
    world_done(&w);
    serve_with(&w, limits); /* messages that end, each with the beginning of the next */
    say_part(&w, RPC "'id':1,");
    for (int i = 0; i < 10; i++) {
        rig_advance(&w.r, 200);
        say_part(&w, "'method':'echo'}\n" RPC "'id':1,");
        hear(&w, RPC "'id':1,'result':null}");
    }
    rig_advance(&w.r, 299);
    assert_false(world_over(&w));
    rig_advance(&w.r, 1);
    assert_true(world_over(&w));
    world_done(&w);
    serve_with(&w, limits); /* a message of several KiB that gets on */
    say_part(&w, RPC "'id':1,");
    for (int i = 0; i < 10; i++) {
        char spaces[1025];
        (void)snprintf(spaces, sizeof spaces, "%1024s", "");
        rig_advance(&w.r, 299);
        say_part(&w, spaces);
    }
    rig_advance(&w.r, 299);
    assert_false(world_over(&w));
    say(&w, "'method':'echo'}");
    hear(&w, RPC "'id':1,'result':null}");
    world_done(&w);
    serve_with(&w, limits); /* whoever has said something may be silent */
    say(&w, RPC "'id':1,'method':'echo'}");
    rig_advance(&w.r, 600 * 1000);
    assert_false(world_over(&w));
    world_done(&w);
    world_init(&w, RIG_CLIENT, &(world_options){.limits = limits, .stdio = true}); /* and a process anyway */
    say_part(&w, RPC "'id':1,");
    rig_advance(&w.r, 600 * 1000);
    assert_false(world_over(&w));
    world_done(&w);
}

/* ---- the end ---- */

static void test_wire_jsonrpc__eof(void **state) {
    (void)state;
    world w;
    world_serve(&w); /* nothing runs */
    say(&w, RPC "'id':1,'method':'echo'}");
    say_eof(&w);
    hear(&w, RPC "'id':1,'result':null}");
    assert_true(world_over(&w));
    world_done(&w);
    world_serve(&w); /* what is ready within a second is answered */
    say(&w, RPC "'id':1,'method':'sleep','params':{'ms':900}}\n" RPC "'id':2,'method':'never'}");
    say_eof(&w);
    rig_advance(&w.r, 999);
    hear(&w, RPC "'id':1,'result':'slept'}");
    assert_false(world_over(&w));
    assert_int_equal(w.r.n_cancelled, 0);
    rig_advance(&w.r, 1);
    hear_nothing(&w);
    assert_true(world_over(&w));
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
    serve_stdio(&w); /* a process that closes its output waits for its answers */
    say(&w, RPC "'id':1,'method':'sleep','params':{'ms':9000}}");
    say_eof(&w);
    rig_advance(&w.r, 8999);
    assert_false(world_over(&w));
    rig_advance(&w.r, 1);
    hear(&w, RPC "'id':1,'result':'slept'}");
    assert_true(world_over(&w));
    world_done(&w);
}

static void test_wire_jsonrpc__eof_in_stream(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':'s','method':'sum','stream':1}\n" DATA);
    say_eof(&w);
    hear(&w,
         RPC "'id':'s','error':" FAULT(-32000, "the connection ended before the input stream did", "UNAVAILABLE") "}");
    assert_true(world_over(&w));
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
    world_serve(&w); /* its close frame came before: nothing is lost */
    say(&w, RPC "'id':'s','method':'lazy','stream':1,'params':{'after_ms':50}}\n" DATA "\n" RPC "'id':'s','stream':3}");
    say_eof(&w);
    rig_advance(&w.r, 50);
    hear(&w, RPC "'id':'s','result':{'sum':1,'n':1}}");
    assert_true(world_over(&w));
    world_done(&w);
}

static void test_wire_jsonrpc__lost(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    say(&w, RPC "'id':1,'method':'never'}\n" RPC "'id':2,'method':'never?stream=true'}\n" RPC
                "'id':3,'method':'sum','stream':1}\n" RPC "'method':'never'}");
    assert_int_equal(w.r.n_opened, 4);
    rig_cut(w.pair, RIG_CLIENT, RIG_RESET);
    rig_run(&w.r);
    assert_int_equal(w.r.n_cancelled, 4);
    world_done(&w);
}

static void test_wire_jsonrpc__drain(void **state) {
    (void)state;
    world w;
    world_serve(&w);
    ew__peer *peer = w.pair->end[RIG_SERVER].peer;
    say(&w, RPC "'id':1,'method':'sleep','params':{'ms':10}}");
    w.r.side[RIG_SERVER].site.draining = true;
    peer->wire->drain(peer);
    say(&w, RPC "'id':2,'method':'echo'}\n" RPC "'method':'echo'}");
    hear(&w, RPC "'id':2,'error':" REFUSAL(-32000, "going down", "UNAVAILABLE") "}");
    assert_false(world_over(&w));
    rig_advance(&w.r, 10);
    hear(&w, RPC "'id':1,'result':'slept'}");
    assert_true(world_over(&w));
    assert_int_equal(w.r.n_opened, 1);
    world_done(&w);
    world_serve(&w); /* an idle one closes at once */
    peer = w.pair->end[RIG_SERVER].peer;
    peer->wire->drain(peer);
    rig_run(&w.r);
    assert_true(world_over(&w));
    world_done(&w);
}

/* ---- what is no JSON ---- */

static void test_wire_jsonrpc__bad_text(void **state) {
    (void)state;
    static const char *const bad[] = {"{'a':}",
                                      "[1,]",
                                      "{'a':01}",
                                      "{'x':'\xff'}",
                                      "{'a':1}x",
                                      "{]",
                                      "{'jsonrpc':'2.0','id':1,'method':'echo','params':[-Infinity]}",
                                      "{/*x*/}",
                                      "{'\t':1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        world w;
        world_serve(&w);
        say(&w, RPC "'id':1,'method':'sleep','params':{'ms':1}}");
        say(&w, bad[i]);
        if (strcmp(bad[i], "{'a':1}x") == 0) /* a value, then something else */
            hear(&w, RPC "'id':null,'error':" FAULT(-32600, "neither method, result nor error",
                                                    "INVALID_ARGUMENT") "}\n" BAD_JSON);
        else
            hear(&w, BAD_JSON);
        assert_true(world_over(&w)); /* a socket closes */
        world_done(&w);
        serve_stdio(&w); /* a process goes on with the next line */
        say(&w, bad[i]);
        rig_forget(w.pair, w.pair->end[RIG_CLIENT].got_len);
        say(&w, RPC "'id':1,'method':'echo'}");
        hear(&w, RPC "'id':1,'result':null}");
        world_done(&w);
    }
}

static void test_wire_jsonrpc__stdio_patience(void **state) {
    (void)state;
    world w;
    serve_stdio(&w);
    say(&w, "hello"); /* not even the first line matters */
    hear(&w, BAD_JSON);
    say(&w, "GET / HTTP/1.1");
    hear(&w, BAD_JSON);
    for (int i = 3; i < 100; i++)
        say(&w, "oops { [ \"");
    rig_forget(w.pair, w.pair->end[RIG_CLIENT].got_len);
    say(&w, RPC "'id':1,'method':'echo'}");
    hear(&w, RPC "'id':1,'result':null}");
    assert_true(w.r.env.n_logged >= 99);
    for (int i = 1; i < 100; i++) /* a message in between: they are counted anew */
        say(&w, "oops");
    rig_forget(w.pair, w.pair->end[RIG_CLIENT].got_len);
    say(&w, "the hundredth in a row");
    hear(&w, BAD_JSON);
    assert_true(world_over(&w));
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__calls_limit),
        cmocka_unit_test(test_wire_jsonrpc__batch_limit),
        cmocka_unit_test(test_wire_jsonrpc__batch_answers_limit),
        cmocka_unit_test(test_wire_jsonrpc__message_limit),
        cmocka_unit_test(test_wire_jsonrpc__result_limit),
        cmocka_unit_test(test_wire_jsonrpc__bytes_limit),
        cmocka_unit_test(test_wire_jsonrpc__call_time_limit),
        cmocka_unit_test(test_wire_jsonrpc__pause),
        cmocka_unit_test(test_wire_jsonrpc__pause_and_eof),
        cmocka_unit_test(test_wire_jsonrpc__producer_waits),
        cmocka_unit_test(test_wire_jsonrpc__block),
        cmocka_unit_test(test_wire_jsonrpc__guard),
        cmocka_unit_test(test_wire_jsonrpc__silence),
        cmocka_unit_test(test_wire_jsonrpc__silence_of_ours),
        cmocka_unit_test(test_wire_jsonrpc__patience),
        cmocka_unit_test(test_wire_jsonrpc__eof),
        cmocka_unit_test(test_wire_jsonrpc__eof_in_stream),
        cmocka_unit_test(test_wire_jsonrpc__lost),
        cmocka_unit_test(test_wire_jsonrpc__drain),
        cmocka_unit_test(test_wire_jsonrpc__bad_text),
        cmocka_unit_test(test_wire_jsonrpc__stdio_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
