/*
 * tests/unit/wire/test_reflection_limits.c: the reflection wire when there is too much, too slow or no more, in both roles:
 * limits, back pressure, control frames, fragments, the closing handshake.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/reflection_world.h"

#define MESSAGE ((size_t)16 * 1024 * 1024) /* the preset of frame_bytes */
#define BUSY(id, message) RUN_FAULT(id, -32000, 8, message, "'refused':true")

static void runtime_with(world *w, ew_limits limits) { world_runtime_with(w, &(rig_options){.limits = limits}); }

static void manager_with(world *w, const char *version, ew_limits limits) {
    world_manager_with(w, version, &(rig_options){.limits = limits});
}

/* A string of n letters, with its quotes, as JSON. For free(). */
static char *letters(size_t n) {
    char *text = malloc(n + 3);
    assert_non_null(text);
    memset(text, 'x', n + 2);
    text[0] = text[n + 1] = '"';
    text[n + 2] = '\0';
    return text;
}

#define LARGE "the message is larger than this side accepts (limit frame_bytes)"

/* ---- messages ---- */

static void test_wire_reflection_limits__message(void **state) {
    (void)state;
    for (size_t n = MESSAGE - 1; n <= MESSAGE + 1; n++) {
        world w;
        world_runtime(&w);
        say_padded(&w, RUN("1", "/test/echo", ",'input':1"), n);
        if (n <= MESSAGE)
            hear(&w, STATE("1", "$1") RESULT("1", "1", "$1"));
        else
            hear(&w, RPC "'id':1,'error':{'code':-32000,'message':'" LARGE "','data':{'code':8,'message':'" LARGE
                         "','details':{}}}}\n");
        assert_false(world_over(&w));
        say(&w, RUN("2", "/test/echo", ",'input':2"));
        hear(&w, STATE("2", "$2") RESULT("2", "2", "$2"));
        world_done(&w);
    }
}

static void test_wire_reflection_limits__message_to_manager(void **state) {
    (void)state;
    for (size_t n = MESSAGE - 1; n <= MESSAGE + 1; n++) {
        world w;
        world_manager(&w);
        rig_call *rc = call_plain(&w, "/f/a", "1");
        hear(&w, ASK("$1", "/f/a", ",'input':1"));
        say_padded(&w, RESULT("$1", "1", "'t'"), n);
        if (n <= MESSAGE) {
            check_done(rc, "1");
            hear_nothing(&w);
        } else {
            check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_PROTOCOL, LARGE);
            hear_nothing(&w);
        }
        assert_false(world_over(&w));
        world_done(&w);
    }
}

/* A message in many frames has the same limit. */
static void test_wire_reflection_limits__fragments(void **state) {
    (void)state;
    for (int over = 0; over < 2; over++) {
        world w;
        runtime_with(&w, (ew_limits){.frame_bytes = 600});
        char message[700];
        char *text = world_expand(&w, RUN("1", "/test/echo", ",'input':1"));
        (void)snprintf(message, sizeof message, "%-*s", 600 + over, text);
        free(text);
        for (size_t i = 0; message[i]; i++) {
            put_frame(&w, (i ? WS_PART : WS_TEXT) | (message[i + 1] ? 0 : WS_FIN), message + i, 1);
            if (i % 10 == 0)
                put_frame(&w, WS_FIN | WS_PONG, "x", 1);
        }
        rig_run(&w.r);
        if (over)
            hear(&w, RPC "'id':1,'error':{'code':-32000,'message':'" LARGE "','data':{'code':8,'message':'" LARGE
                         "','details':{}}}}\n");
        else
            hear(&w, STATE("1", "$1") RESULT("1", "1", "$1"));
        world_done(&w);
    }
}

/* Control frames between the fragments, text and binary, are answered at once; the message is none the worse. */
static void test_wire_reflection_limits__ping_between(void **state) {
    (void)state;
    for (int kind = WS_TEXT; kind <= WS_BINARY; kind++) {
        world w;
        world_manager(&w);
        rig_call *rc = call_stream(&w, "/f/a");
        hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true"));
        char *text = world_expand(&w, CHUNK("$1", "'\xe2\x82\xac'"));
        size_t n = strlen(text);
        put_frame(&w, kind, text, 10);
        say_frame(&w, WS_FIN | WS_PING, "one");
        hear(&w, "(pong) one\n");
        put_frame(&w, WS_PART, text + 10, n - 16); /* inside the character */
        say_frame(&w, WS_FIN | WS_PING, "");
        hear(&w, "(pong)\n");
        put_frame(&w, WS_PART, "", 0);
        assert_int_equal(rc->n_chunks, 0);
        put_frame(&w, WS_FIN | WS_PART, text + n - 6, 6);
        rig_run(&w.r);
        assert_int_equal(rc->n_chunks, 1);
        assert_string_equal(rc->chunks[0], "\"\xe2\x82\xac\"");
        free(text);
        world_done(&w);
    }
}

/* What we send has the same limit: a result, a chunk, a list, an id. */
static void test_wire_reflection_limits__answers(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.frame_bytes = 400});
    for (size_t n = 280; n < 305; n++) { /* with its quotes it is below the limit of a payload, 350 */
        char *input = letters(n), text[600];
        (void)snprintf(text, sizeof text, RPC "'id':1,'method':'runAction','params':{'key':'echo','input':%s}}", input);
        memset(w.ids[1], 0, sizeof w.ids[1]);
        say(&w, text);
        size_t len, state_len = sizeof STATE("1", "") - 1 + 34,
                    result_len = sizeof RESULT("1", "", "") - 2 + 34 + n + 2;
        char *got = heard(&w, &len);
        if (result_len <= 400) {
            assert_int_equal(len, state_len + result_len + 1);
            assert_non_null(strstr(got, input));
        } else {
            assert_non_null(strstr(got, "\"the result is too large for this connection\""));
        }
        free(got);
        free(input);
    }
    memset(w.ids[1], 0, sizeof w.ids[1]);
    say(&w, RUN("2", "/test/chunks", ",'stream':true,'input':{'n':1,'size':400}"));
    hear_part(
        &w, "'id':2,'error':{'code':-32000,'message':'a chunk of the stream is too large: 416 bytes, the limit is 350 "
            "(set by frame_bytes)','data':{'code':8,");
    say(&w, RPC "'id':3,'method':'listActions'}");
    hear(&w, RUN_FAULT("3", -32000, 8, "the list is too large for this connection", ""));
    assert_false(world_over(&w));
    world_done(&w);
}

/* What does not fit into one piece of the queue is masked piece by piece, or sent from where it lies. */
static void test_wire_reflection_limits__large(void **state) {
    (void)state;
    for (size_t n = 4000; n < 80000; n = n * 3 + 1) {
        world w;
        char *value = letters(n), *text = malloc(n + 300);
        assert_non_null(text);
        for (size_t i = 1; i <= n; i++)
            value[i] = (char)('a' + i % 23);
        world_runtime(&w);
        (void)snprintf(text, n + 300,
                       RPC "'id':1,'method':'runAction','params':{'key':'say','stream':true,'input':[%s]}}", value);
        say(&w, text);
        (void)snprintf(text, n + 300, CHUNK("1", "%s"), value);
        hear_part(&w, text);
        world_done(&w);
        world_manager(&w);
        (void)call_plain(&w, "/f/a", value);
        (void)snprintf(text, n + 300, "'input':%s},'id':'ew", value);
        hear_part(&w, text);
        world_done(&w);
        free(text);
        free(value);
    }
}

/* ---- calls ---- */

static void test_wire_reflection_limits__calls(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.calls_per_connection = 2});
    say(&w, RUN("1", "/test/sleep", ",'input':{'ms':10}"));
    say(&w, RUN("2", "/test/sleep", ",'input':{'ms':20}"));
    hear(&w, STATE("1", "$1") STATE("2", "$2"));
    say(&w, RUN("3", "/test/echo", ""));
    hear(&w, BUSY("3", "too many calls on this connection"));
    say(&w, RPC "'method':'runAction','params':{'key':'echo'}}");
    assert_int_equal(world_dropped(&w), 1);
    rig_advance(&w.r, 10);
    hear(&w, RESULT("1", "'slept'", "$1"));
    say(&w, RUN("3", "/test/echo", ""));
    hear(&w, STATE("3", "$3") RESULT("3", "null", "$3"));
    world_done(&w);
}

/* What running calls hold in memory is limited, too: four messages of the greatest length. */
static void test_wire_reflection_limits__bytes(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.frame_bytes = 10000});
    char *input = letters(8600), text[10100];
    for (int i = 1; i <= 6; i++) {
        (void)snprintf(text, sizeof text, RPC "'id':%d,'method':'runAction','params':{'key':'never','input':%s}}", i,
                       input);
        say(&w, text);
    }
    hear_part(&w, "'id':6,'error':{'code':-32000,'message':'too many bytes of calls on this connection'");
    assert_int_equal(w.r.n_opened, 5);
    free(input);
    world_done(&w);
}

/* ---- nonsense ---- */

static void test_wire_reflection_limits__bad_messages(void **state) {
    (void)state;
    for (int role = 0; role < 2; role++) {
        world w;
        if (role)
            world_runtime(&w);
        else
            world_manager(&w);
        for (int i = 0; i < 99; i++)
            say(&w, i % 3 == 0 ? "nonsense" : i % 3 == 1 ? "[]" : "17");
        assert_false(world_over(&w));
        for (int i = 0; i < 200; i++) /* these have an id: they are answered, not counted */
            say(&w, RPC "'id':'x'}");
        assert_false(world_over(&w));
        rig_forget(w.pair, w.pair->end[w.raw].got_len);
        put(&w, "{");
        say(&w, "{"); /* nobody reads this one */
        hear(&w, RUN_FAULT("null", -32700, 3, "not JSON", "") "(close) 1008 too many messages that are no JSON-RPC\n");
        assert_true(world_over(&w));
        world_done(&w);
    }
}

static void test_wire_reflection_limits__control_frames(void **state) {
    (void)state;
    for (int role = 0; role < 2; role++) {
        world w;
        if (role)
            world_runtime(&w);
        else
            world_manager(&w);
        for (int second = 0; second < 2; second++) {
            for (int i = 0; i < 100; i++)
                put_frame(&w, WS_FIN | (i & 1 ? WS_PING : WS_PONG), "", 0);
            rig_run(&w.r);
            size_t n;
            char *got = heard(&w, &n);
            assert_int_equal(n, 50 * strlen("(pong)\n"));
            free(got);
            assert_false(world_over(&w));
            rig_advance(&w.r, 1000);
        }
        for (int i = 0; i < 101; i++)
            put_frame(&w, WS_FIN | WS_PONG, "", 0);
        rig_run(&w.r);
        hear(&w, "(close) 1008 too many control frames\n");
        assert_true(world_over(&w));
        world_done(&w);
    }
}

/* ---- runtimes that take less than we do ---- */

static void check_runtime_limit(const char *version, size_t limit) {
    for (size_t n = limit; n <= limit + 1; n++) {
        world w;
        manager_with(&w, version, (ew_limits){.head_ms = 10000});
        rig_call *other = call_plain(&w, "/f/a", "1");
        size_t len;
        char *got = heard(&w, &len);
        size_t more = n - (len - 1) + 1 - 2; /* as the last message, but a string instead of 1; its newline is ours */
        free(got);
        char *input = letters(more);
        rig_call *rc = rig_open(w.pair, &(rig_request){.key = "/f/a", .input = ew_str_from(input)});
        got = heard(&w, &len);
        if (n <= limit) {
            assert_int_equal(len - 1, limit);
            check_runs(rc);
        } else {
            assert_int_equal(len, 0);
            check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                         "the input is larger than this runtime's library accepts");
        }
        free(got);
        check_runs(other);
        free(input);
        world_done(&w);
    }
}

static void test_wire_reflection_limits__small_runtimes(void **state) {
    (void)state;
    check_runtime_limit("go/1.2.3", (size_t)32 * 1024);
    check_runtime_limit("py/0.5", (size_t)1024 * 1024);
}

static void test_wire_reflection_limits__large_input(void **state) {
    (void)state;
    world w;
    manager_with(&w, "nodejs/1", (ew_limits){.frame_bytes = 1000});
    char *input = letters(1000);
    rig_call *rc = call_plain(&w, "/f/a", input);
    check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                 "the input is too large: 1002 bytes, the limit is 875 (set by frame_bytes)");
    hear_nothing(&w);
    free(input);
    world_done(&w);
}

/* An input chunk that a Go runtime would not survive costs its own call only. */
static void test_wire_reflection_limits__small_runtime_input(void **state) {
    (void)state;
    for (int held = 0; held < 2; held++) {
        world w;
        manager_with(&w, "go/1", (ew_limits){.head_ms = 10000});
        rig_call *other = call_plain(&w, "/f/a", "1");
        rig_call *rc = rig_open(w.pair, &(rig_request){.key = "/f/b", .input_stream = true});
        hear(&w, ASK("$1", "/f/a", ",'input':1") ASK("$2", "/f/b", ",'streamInput':true"));
        char *chunk = letters((size_t)33 * 1024);
        if (!held)
            say(&w, STATE("$2", "'t'"));
        (void)rig_call_send(rc, ew_str_from(chunk));
        if (held)
            say(&w, STATE("$2", "'t'"));
        check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                     "an input chunk is too large for this connection");
        check_runs(other);
        assert_false(world_over(&w));
        say(&w, RESULT("$1", "1", "'t'"));
        check_done(other, "1");
        free(chunk);
        world_done(&w);
    }
}

/* ---- back pressure: what we send ---- */

static void test_wire_reflection_limits__slow_manager(void **state) {
    (void)state;
    world w;
    world_runtime_with(&w,
                       &(rig_options){.limits = {.out_high_bytes = 8192, .out_low_bytes = 2048}, .pipe_room = 4096});
    rig_stall(w.pair, RIG_SERVER, true);
    say(&w, RUN("1", "/test/chunks", ",'stream':true,'input':{'n':1000,'size':500}"));
    assert_true(w.pair->end[RIG_SERVER].conn.out.bytes < 8192 + 1024);
    assert_int_equal(w.r.n_waits, 1);
    rig_stall(w.pair, RIG_SERVER, false);
    rig_run(&w.r);
    assert_true(w.r.n_waits > 10 && w.pair->end[RIG_SERVER].peak_out < 8192 + 1024);
    size_t n;
    char *got = heard(&w, &n);
    assert_non_null(strstr(got, "{\"result\":{\"n\":1000}"));
    free(got);
    world_done(&w);
}

/* A producer that does not wait loses its call at the limit, not our memory. */
static void test_wire_reflection_limits__flood(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.out_high_bytes = 8192, .out_low_bytes = 2048, .out_max_bytes = 65536});
    rig_stall(w.pair, RIG_SERVER, true);
    say(&w, RUN("1", "/test/flood", ",'stream':true,'input':{'size':500}"));
    assert_int_equal(w.r.n_cancelled, 1);
    assert_true(w.pair->end[RIG_SERVER].peak_out <= 65536 + 1024);
    rig_stall(w.pair, RIG_SERVER, false);
    hear_part(&w, "'message':'the reader is too slow: its buffer is full'");
    say(&w, RUN("2", "/test/echo", ""));
    hear_part(&w, "'result':{'result':null");
    world_done(&w);
}

/* Requests of a manager that takes no answers are not read any more, and all are answered in the end. */
static void test_wire_reflection_limits__answers_pile_up(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.out_high_bytes = 4096, .out_low_bytes = 1024});
    rig_stall(w.pair, RIG_SERVER, true);
    for (int i = 0; i < 1000; i++)
        put(&w, RUN("1", "/test/echo", ",'input':'0123456789'"));
    rig_run(&w.r);
    assert_true(w.r.n_opened < 200 && w.pair->end[RIG_SERVER].conn.out.bytes < (size_t)5 * 4096);
    assert_true(world_peer(&w)->paused);
    rig_stall(w.pair, RIG_SERVER, false);
    rig_run(&w.r);
    assert_int_equal(w.r.n_opened, 1000);
    assert_false(world_peer(&w)->paused);
    world_done(&w);
}

/* ---- back pressure: what comes ---- */

/* The caller is behind and alone: the connection is not read, also what came in the same segment, in any pieces. */
static void test_wire_reflection_limits__slow_caller(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        world_manager_with(&w, "", &(rig_options){.split = (rig_split)split});
        rig_call *slow = rig_open(w.pair, &(rig_request){.key = "/f/a", .stream = true, .full_after = 2});
        hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true"));
        for (int i = 0; i < 5; i++)
            put(&w, CHUNK("$1", "1"));
        rig_run(&w.r);
        assert_int_equal(slow->n_chunks, 2);
        rig_advance(&w.r, 1000);
        rig_call_room(slow);
        assert_int_equal(slow->n_chunks, 2); /* in the next turn, not from inside */
        rig_run(&w.r);
        assert_int_equal(slow->n_chunks, 5);
        assert_true(ew__ws_is_idle(&world_peer(&w)->ws));
        world_done(&w);
    }
}

/* Another call waits for its answer: it gets that, although the caller of the stream takes nothing. */
static void test_wire_reflection_limits__beside_slow_caller(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        world_manager_with(&w, "", &(rig_options){.split = (rig_split)split});
        rig_call *slow = rig_open(w.pair, &(rig_request){.key = "/f/a", .stream = true, .full_after = 2});
        hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true"));
        for (int i = 0; i < 5; i++)
            put(&w, CHUNK("$1", "1"));
        rig_run(&w.r);
        assert_int_equal(slow->n_chunks, 2);
        rig_call *other = call_plain(&w, "/f/b", "1");
        hear(&w, ASK("$2", "/f/b", ",'input':1"));
        say(&w, RESULT("$2", "2", "'t'"));
        check_done(other, "2");
        rig_advance(&w.r, 60 * 1000);
        check_runs(slow);
        rig_call_room(slow);
        rig_run(&w.r);
        assert_int_equal(slow->n_chunks, 5);
        world_done(&w);
    }
}

/* Nothing came meanwhile: what was handed out last is given back all the same. */
static void test_wire_reflection_limits__resume_idle(void **state) {
    (void)state;
    world w;
    world_manager_with(&w, "", &(rig_options){.split = RIG_BYTES});
    rig_call *slow = rig_open(w.pair, &(rig_request){.key = "/f/a", .stream = true, .full_after = 1});
    hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true"));
    say(&w, CHUNK("$1", "1"));
    assert_true(world_peer(&w)->paused);
    rig_call_room(slow);
    rig_run(&w.r);
    assert_false(world_peer(&w)->paused);
    assert_true(ew__ws_is_idle(&world_peer(&w)->ws));
    rig_advance(&w.r, 19999);
    hear_nothing(&w);
    rig_advance(&w.r, 1);
    hear(&w, "(ping)\n");
    world_done(&w);
}

/* A caller that is so far behind that it holds up the others for a second loses its call; they go on. */
static void test_wire_reflection_limits__overrun(void **state) {
    (void)state;
    world w;
    world_manager_with(&w, "", &(rig_options){.limits = {.out_high_bytes = 1000, .out_max_bytes = 1100}});
    rig_call *slow = rig_open(w.pair, &(rig_request){.key = "/f/a", .stream = true, .full_after = 1});
    rig_call *other = call_plain(&w, "/f/b", "1");
    hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true") ASK("$2", "/f/b", ",'input':1"));
    put(&w, CHUNK("$1", "1"));
    put(&w, CHUNK("$1", "2"));
    say(&w, RESULT("$2", "2", "'t'"));
    rig_advance(&w.r, 999);
    check_runs(slow);
    check_runs(other);
    rig_advance(&w.r, 1);
    check_failed(slow, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                 "overrun: the stream was not taken, and held up its connection");
    assert_int_equal(slow->n_chunks, 1);
    check_done(other, "2");
    world_done(&w);
}

static void test_wire_reflection_limits__input_overrun(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.in_queue_items = 2});
    put(&w, RUN("1", "/test/lazy", ",'streamInput':true,'input':{'after_ms':60000}"));
    for (int i = 0; i < 5; i++)
        put(&w, INPUT("1", "1"));
    say(&w, RUN("2", "/test/echo", ""));
    hear(&w, STATE("1", "$1"));
    rig_advance(&w.r, 5000);
    hear(&w, RUN_FAULT("1", -32000, 8, "overrun: the input was not taken, and held up its connection", "'traceId':$1")
                 STATE("2", "$2") RESULT("2", "null", "$2"));
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
}

/* A handler that looks late, but looks: all of its input arrives. */
static void test_wire_reflection_limits__input_late(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.in_queue_items = 2});
    put(&w, RUN("1", "/test/lazy", ",'streamInput':true,'input':{'after_ms':1000}"));
    for (int i = 0; i < 5; i++)
        put(&w, INPUT("1", "1"));
    say(&w, INPUT_END("1"));
    hear(&w, STATE("1", "$1"));
    rig_advance(&w.r, 1000);
    hear(&w, RESULT("1", "{'sum':5,'n':5}", "$1"));
    world_done(&w);
}

/* While we do not read, the silence is ours: nobody is pinged or lost for it. */
static void test_wire_reflection_limits__paused_silence(void **state) {
    (void)state;
    world w;
    runtime_with(&w, (ew_limits){.out_high_bytes = 4096, .out_low_bytes = 1024, .stall_ms = 300000});
    rig_stall(w.pair, RIG_SERVER, true);
    for (int i = 0; i < 1000; i++)
        put(&w, RUN("1", "/test/echo", ",'input':'0123456789'"));
    rig_advance(&w.r, 120000);
    rig_stall(w.pair, RIG_SERVER, false);
    rig_run(&w.r);
    assert_int_equal(w.r.n_opened, 1000);
    size_t n;
    char *got = heard(&w, &n);
    assert_null(strstr(got, "(ping)"));
    free(got);
    assert_false(world_over(&w));
    world_done(&w);
}

/* ---- ends ---- */

/* After our close frame nothing is read and nothing is sent, whatever the handlers do. */
static void test_wire_reflection_limits__after_close(void **state) {
    (void)state;
    world w;
    world_runtime(&w);
    say(&w, RUN("1", "/test/sleep", ",'input':{'ms':100}"));
    say(&w, RUN("2", "/test/chunks", ",'stream':true,'input':{'n':9,'every_ms':50}"));
    rig_forget(w.pair, w.pair->end[w.raw].got_len);
    put_frame(&w, WS_FIN | WS_CLOSE, "", 0);
    put(&w, RUN("3", "/test/echo", ""));
    rig_run(&w.r);
    hear(&w, "(close)\n");
    assert_true(world_over(&w));
    assert_int_equal(w.r.n_opened, 2);
    rig_advance(&w.r, 150);
    hear_nothing(&w);
    rig_advance(&w.r, 5000);
    assert_null(w.pair->end[RIG_SERVER].peer); /* whoever does not close is not waited for */
    world_done(&w);
}

/* The last call ends, and with it the connection: from a timer, and while messages are taken. */
static void test_wire_reflection_limits__drain(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        world w;
        world_runtime(&w);
        if (how > 0)
            say(&w, RUN("1", "/test/never", ""));
        if (how > 0)
            hear(&w, STATE("1", "$1"));
        world_peer(&w)->peer.wire->drain(&world_peer(&w)->peer);
        if (how == 1)
            say(&w, RPC "'method':'cancelAction','params':{'requestId':1}}");
        if (how == 2) {
            hear_nothing(&w);
            assert_int_equal(ew_call_fail(world_peer(&w)->calls.served.first->call, EW_STATUS_ABORTED, "x"), EW_OK);
        }
        if (how == 0)
            hear(&w, "(close) 1001 going down\n");
        else if (how == 1)
            hear(&w, RUN_FAULT("1", -32000, 1, "stopped", "'traceId':$1") "(close) 1001 going down\n");
        else
            hear(&w, RUN_FAULT("1", -32000, 10, "x", "'traceId':$1") "(close) 1001 going down\n");
        assert_true(world_over(&w));
        world_done(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection_limits__message),
        cmocka_unit_test(test_wire_reflection_limits__message_to_manager),
        cmocka_unit_test(test_wire_reflection_limits__fragments),
        cmocka_unit_test(test_wire_reflection_limits__ping_between),
        cmocka_unit_test(test_wire_reflection_limits__answers),
        cmocka_unit_test(test_wire_reflection_limits__large),
        cmocka_unit_test(test_wire_reflection_limits__calls),
        cmocka_unit_test(test_wire_reflection_limits__bytes),
        cmocka_unit_test(test_wire_reflection_limits__bad_messages),
        cmocka_unit_test(test_wire_reflection_limits__control_frames),
        cmocka_unit_test(test_wire_reflection_limits__small_runtimes),
        cmocka_unit_test(test_wire_reflection_limits__large_input),
        cmocka_unit_test(test_wire_reflection_limits__small_runtime_input),
        cmocka_unit_test(test_wire_reflection_limits__slow_manager),
        cmocka_unit_test(test_wire_reflection_limits__flood),
        cmocka_unit_test(test_wire_reflection_limits__answers_pile_up),
        cmocka_unit_test(test_wire_reflection_limits__slow_caller),
        cmocka_unit_test(test_wire_reflection_limits__beside_slow_caller),
        cmocka_unit_test(test_wire_reflection_limits__resume_idle),
        cmocka_unit_test(test_wire_reflection_limits__overrun),
        cmocka_unit_test(test_wire_reflection_limits__input_overrun),
        cmocka_unit_test(test_wire_reflection_limits__input_late),
        cmocka_unit_test(test_wire_reflection_limits__paused_silence),
        cmocka_unit_test(test_wire_reflection_limits__after_close),
        cmocka_unit_test(test_wire_reflection_limits__drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
