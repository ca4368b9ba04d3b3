/*
 * tests/unit/wire/test_reflection_memory.c: sessions of the reflection wire with peers that are not ours, in which each
 * allocation fails in turn, alone and with all after it. Nothing is expected but what the rig checks in the end: every
 * call has ended once, and nothing is left. (The contract's scenarios have the same with everywire on both sides.)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/reflection_world.h"

typedef void (*session)(world *w);

/* What came is of no interest, but it must be whole frames; the ids of the first life are those of all. */
static void forget(world *w) {
    size_t n;
    free(heard(w, &n));
}

static void life(session play, int raw, const rig_options *options, uint64_t fail_at, bool all, uint64_t *ret_failed) {
    world w;
    memset(&w, 0, sizeof w);
    w.raw = raw;
    rig_init(&w.r, &ew__wire_reflection, options);
    w.r.side[RIG_CLIENT].site.telemetry = EW_STR("http://localhost:4033");
    ew__test_env_fail_at(&w.r.env, fail_at, all);
    w.pair = rig_connect_raw(&w.r, raw);
    play(&w);
    *ret_failed = ew__test_env_failed(&w.r.env);
    ew__test_env_fail_at(&w.r.env, 0, false);
    rig_check_no_hang(&w.r);
    world_done(&w);
}

static void every_life(session play, int raw, rig_options options) {
    for (int split = RIG_WHOLE; split <= RIG_BYTES; split++) {
        uint64_t failed = 1, n = 1;
        options.seed = 1;
        options.split = (rig_split)split;
        for (; failed > 0 && n < 5000; n++) {
            life(play, raw, &options, n, false, &failed);
            life(play, raw, &options, n, true, &failed);
        }
        assert_int_equal(failed, 0);
        assert_true(n > 10);
    }
}

/* ---- the runtime ---- */

static void play_runtime(world *w) {
    put(w, RPC "'method':'configure','params':{'telemetryServerUrl':'http://x'},'id':0}");
    put(w, RPC "'method':'listActions','id':null}");
    put(w, RPC "'method':'listValues','params':{'type':'x'},'id':1}");
    put(w,
        RUN("'\\u0061'", "/test/\\u0072elay", ",'stream':true,'streamInput':true,'context':{},'telemetryLabels':{}"));
    put(w, INPUT("'a'", "1"));
    put(w, RUN("2", "/test/never", ""));
    put(w, RUN("3", "/test/nothing", ""));
    put(w, RUN("4", "same", ""));
    put(w, RUN("5", "/test/fail", ",'input':{'details':[1]}"));
    put(w, RPC "'method':'nothing','id':6}");
    put(w, "nonsense");
    put(w, RPC "'method':'cancelAction','params':{'requestId':2},'id':7}");
    put(w, INPUT("'a'", "2"));
    put_frame(w, WS_FIN | WS_PING, "x", 1);
    say(w, INPUT_END("'a'"));
    forget(w);
    say_padded(w, RUN("8", "/test/chunks", ",'stream':true,'input':{'n':3,'size':6000}"), 70000);
    rig_advance(&w->r, 25000);
    forget(w);
    put_frame(w, WS_TEXT, "{", 1);
    say_frame(w, WS_FIN | WS_CLOSE, "");
    forget(w);
}

static void test_wire_reflection_memory__runtime(void **state) {
    (void)state;
    every_life(play_runtime, RIG_CLIENT, (rig_options){.limits = {.out_high_bytes = 4096, .out_low_bytes = 1024}});
}

/* ---- the handshake ---- */

static void play_dial(world *w) {
    char accept[EW__WS_ACCEPT_TEXT + 1], text[300];
    rig_run(&w->r);
    if (!world_accept(w, accept))
        return;
    rig_forget(w->pair, w->pair->end[w->raw].got_len);
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Accept: %s\r\n\r\n",
                     accept);
    say_bytes(w->pair, text, 50);
    rig_advance(&w->r, 1000);
    rig_say(w->pair, text + 50, (size_t)n - 50);
    say(w, RUN("1", "/test/echo", ""));
    forget(w);
    if (ew__test_env_failed(&w->r.env) == 0)
        assert_int_equal(w->r.n_opened, 1);
    rig_advance(&w->r, 20000);
}

static void play_dial_slow(world *w) {
    say_bytes(w->pair, "HTTP/1.1 101 Switching", 22);
    rig_advance(&w->r, 20000);
}

static void test_wire_reflection_memory__dial(void **state) {
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        uint64_t failed = 1, n = 1;
        for (; failed > 0 && n < 1000; n++)
            life(slow ? play_dial_slow : play_dial, RIG_CLIENT, &(rig_options){.seed = 1, .handshake = true}, n, false,
                 &failed);
        assert_true(failed == 0 && n > 3);
    }
}

/* ---- the manager ---- */

static void open_calls(world *w) {
    (void)rig_open(w->pair, &(rig_request){.list = true});
    (void)rig_open(w->pair, &(rig_request){.key = "/f/a", .stream = true, .context = "{}", .labels = "{\"a\":\"b\"}"});
    (void)rig_open(w->pair, &(rig_request){.key = "/f/b", .input_stream = true});
    (void)rig_open(w->pair, &(rig_request){.key = "/f/c", .input = EW_STR("1")});
    (void)rig_open(w->pair, &(rig_request){.key = "/f/d", .timeout_ms = 500});
}

static void say_long_error(world *w, unsigned n) {
    char *text = malloc(9000);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, 200, RPC "'id':'%.14s-%u','error':{'code':-32000,'message':'", w->ids[1], n);
    for (int i = 0; i < 1000; i++)
        len += (size_t)snprintf(text + len, 100, "line\\n");
    (void)snprintf(text + len, 100, "','data':{'code':13,'details':{'traceId':'t'}}}}");
    say(w, text);
    free(text);
}

/* The ids that the wire gives are those of its seed: it has said the first one, or nothing at all. */
static void learn_ids(world *w) {
    size_t n;
    char *got = heard(w, &n), *id = strstr(got, "\"ew");
    (void)snprintf(w->ids[1], sizeof w->ids[1], "%.12s", id ? id + 1 : "nothing-known");
    free(got);
}

static void answer(world *w, const char *format, unsigned n) {
    char text[300];
    (void)snprintf(text, sizeof text, format, w->ids[1], n);
    say(w, text);
}

static void play_manager(world *w) {
    say(w, RPC "'method':'register','params':{'id':'\\u0061','pid':1.0,'name':'n'},'id':1}");
    forget(w);
    open_calls(w);
    rig_call *input = rig_nth(&w->r, 2), *plain = rig_nth(&w->r, 3);
    learn_ids(w);
    (void)rig_call_send(input, EW_STR("[1]"));
    (void)rig_call_send(input, EW_STR("[2]"));
    answer(w, RPC "'id':'%s-%u','result':{'actions':{}}}", 1);
    answer(w, RPC "'method':'streamChunk','params':{'requestId':'%s-%u','chunk':1}}", 2);
    answer(w, RPC "'method':'runActionState','params':{'requestId':'%s-%u','state':{'traceId':'t'}}}", 3);
    rig_call_send_end(input);
    rig_call_cancel(plain);
    answer(w, RPC "'method':'runActionState','params':{'requestId':'%s-%u','state':{'traceId':'t'}}}", 4);
    say_long_error(w, 2);
    if (ew__test_env_failed(&w->r.env) == 0) { /* all of it does what it is here for */
        check_done(rig_nth(&w->r, 0), "{}");
        assert_int_equal(rig_nth(&w->r, 1)->n_chunks, 1);
        assert_int_equal(rig_nth(&w->r, 1)->status, EW_STATUS_INTERNAL);
        assert_int_equal(strlen(rig_nth(&w->r, 1)->message), 5000);
    }
    rig_advance(&w->r, 3000);
    answer(w, RPC "'id':'%s-%u','result':{'result':{}}}", 3);
    say(w, "nonsense");
    forget(w);
    rig_advance(&w->r, 30000);
    forget(w);
    say_bytes(w->pair, "\x81\x00", 2); /* not masked */
    forget(w);
    rig_advance(&w->r, 30000);
}

static void test_wire_reflection_memory__manager(void **state) {
    (void)state;
    every_life(play_manager, RIG_SERVER, (rig_options){.seed = 1});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection_memory__runtime),
        cmocka_unit_test(test_wire_reflection_memory__dial),
        cmocka_unit_test(test_wire_reflection_memory__manager),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
