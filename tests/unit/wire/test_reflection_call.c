/*
 * tests/unit/wire/test_reflection_call.c: the manager of the reflection wire, where a transcript cannot say it: many calls
 * at once, several runtimes, callers that open and let go inside of callbacks, faults with everything in them. The rest
 * is in tests/transcripts/reflection_call_*.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/reflection_world.h"

#define GONE "the runtime has gone before the end of the call"

/* ---- many calls ---- */

static void test_wire_reflection_call__interleaved(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    rig_call *a = call_stream(&w, "/f/a"), *b = call_stream(&w, "/f/b");
    rig_call *c = rig_open(w.pair, &(rig_request){.list = true});
    hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true") ASK("$2", "/f/b", ",'input':null,'stream':true") RPC
         "'id':$3,'method':'listActions'}\n");
    put(&w, CHUNK("$2", "20"));
    put(&w, RPC "'id':$3,'result':{'actions':{}}}");
    put(&w, CHUNK("$1", "10"));
    put(&w, RESULT("$2", "21", "'t2'"));
    put(&w, CHUNK("$2", "22")); /* late */
    put(&w, CHUNK("$1", "11"));
    say(&w, RESULT("$1", "12", "'t1'"));
    check_done(a, "12");
    check_done(b, "21");
    check_done(c, "{}");
    assert_int_equal(a->n_chunks, 2);
    assert_int_equal(b->n_chunks, 1);
    assert_string_equal(a->trace_id, "t1");
    assert_string_equal(b->trace_id, "t2");
    assert_int_equal(world_dropped(&w), 1);
    world_done(&w);
}

/* A runtime that cannot read a request answers with an error without an id: it ends the only call in flight. */
static void test_wire_reflection_call__unnamed_error(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    rig_call *a = call_plain(&w, "/f/a", "1"), *b = call_plain(&w, "/f/b", "2");
    hear(&w, ASK("$1", "/f/a", ",'input':1") ASK("$2", "/f/b", ",'input':2"));
    uint64_t logged = w.r.env.n_logged;
    say(&w, RPC "'id':null,'error':{'code':-32600,'message':'x'}}"); /* of one of two: logged */
    check_runs(a);
    check_runs(b);
    assert_int_equal(w.r.env.n_logged, logged + 1);
    say(&w, RESULT("$2", "2", "'t'"));
    check_done(b, "2");
    say(&w, RPC "'id':null,'error':{'code':-32600,'message':'x'}}");
    check_failed(a, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_ACTION, "x");
    assert_int_equal(w.r.env.n_logged, logged + 2);
    world_done(&w);
}

static void test_wire_reflection_call__capacity(void **state) {
    (void)state;
    world w;
    world_manager_with(&w, "", &(rig_options){.limits = {.calls_per_connection = 2}});
    assert_int_equal(rig_capacity(w.pair), 2);
    rig_call *a = call_plain(&w, "/f/a", "1"), *b = call_plain(&w, "/f/b", "2"), *c = call_plain(&w, "/f/c", "3");
    assert_int_equal(rig_capacity(w.pair), 0);
    check_failed(c, EW_STATUS_INTERNAL, EW_ORIGIN_LOCAL, "the connection is busy"); /* by the rig */
    hear(&w, ASK("$1", "/f/a", ",'input':1") ASK("$2", "/f/b", ",'input':2"));
    say(&w, RESULT("$2", "2", "'t'"));
    assert_int_equal(rig_capacity(w.pair), 1);
    check_done(b, "2");
    check_runs(a);
    world_peer(&w)->peer.wire->drain(&world_peer(&w)->peer);
    assert_int_equal(rig_capacity(w.pair), 0);
    world_done(&w);
}

/* ---- what goes along ---- */

static void test_wire_reflection_call__everything(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    rig_call *rc = rig_open(w.pair, &(rig_request){.key = "/f/\"x\"",
                                                   .input = EW_STR("[1.0,\n2]"),
                                                   .context = "{\"c\":1}",
                                                   .labels = "{\"l\":\"m\"}",
                                                   .stream = true});
    size_t n;
    char *got = heard(&w, &n);
    static const char expected[] = "{\"jsonrpc\":\"2.0\",\"method\":\"runAction\",\"params\":{\"key\":\"/f/\\\"x\\\"\","
                                   "\"input\":[1.0,\n2],\"context\":{\"c\":1},"
                                   "\"telemetryLabels\":{\"l\":\"m\"},\"stream\":true},\"id\":\"ew";
    assert_memory_equal(got, expected, sizeof expected - 1);
    free(got);
    check_runs(rc);
    world_done(&w);
}

/* What one of us writes another reads in the quick way. */
static void test_wire_reflection_call__written_for_ours(void **state) {
    (void)state;
    world w;
    world_manager_with(&w, "everywire/1", &(rig_options){.seed = 1});
    for (unsigned i = 0; i < 4; i++) {
        ew_str id, params;
        ew__rf_run run;
        size_t n = 0;
        rig_call *rc = rig_open(
            w.pair,
            &(rig_request){.key = i == 3 ? "/f/\"x\"" : "/f/x", .input = EW_STR("[1.0]"), .hops = (uint8_t)(i * 100)});
        char *got = heard(&w, &n);
        assert_int_equal(ew__rf_is_run(ew__str(got, n - 1), &id, &params, &run), i < 3); /* without the newline */
        if (i < 3) {
            assert_true(ew_str_eq(run.key, EW_STR("/f/x")) && ew_str_eq(run.input, EW_STR("[1.0]")));
            assert_true(run.hops == i * 100 && run.traceparent.len == EW__TRACEPARENT_LEN);
        }
        free(got);
        check_runs(rc);
    }
    world_done(&w);
}

static void test_wire_reflection_call__refuses(void **state) {
    (void)state;
    const ew__wire *wire = &ew__wire_reflection;
    assert_null(wire->refuses(&(ew_request_options){.stream = true}));
    assert_null(wire->refuses(&(ew_request_options){.labels = EW_STR("{\"a\":\"b\"}")}));
    assert_null(wire->refuses(&(ew_request_options){.labels = EW_STR("{}")}));
    assert_non_null(wire->refuses(&(ew_request_options){.labels = EW_STR("{\"a\":1}")}));
    assert_non_null(wire->refuses(&(ew_request_options){.labels = EW_STR("[\"a\"]")}));
    assert_non_null(wire->refuses(&(ew_request_options){.notify = true}));
    assert_non_null(wire->refuses(&(ew_request_options){.id = EW_STR("x")}));
}

/* ---- faults ---- */

static void test_wire_reflection_call__fault(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    rig_call *rc = call_plain(&w, "/f/a", "1");
    hear(&w, ASK("$1", "/f/a", ",'input':1"));
    say(&w, RPC "'id':$1,'error':{'code':-32000,'message':'RESOURCE_EXHAUSTED: slow \\u00e4','data':{'code':8,"
                "'message':'x','details':{'traceId':'t','details':{'a':[1]},'retryable':true,'retryAfterMs':1500}}}}");
    check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_ACTION, "slow \xc3\xa4");
    assert_string_equal(rc->details, "{\"a\":[1]}");
    assert_string_equal(rc->trace_id, "t");
    assert_true(rc->retryable && rc->retry_after_ms == 1500);
    world_done(&w);
}

/* The messages of validators have many lines: they arrive as text, whatever their length. */
static void test_wire_reflection_call__long_message(void **state) {
    (void)state;
    world w;
    char *text = malloc(20000);
    assert_non_null(text);
    world_manager(&w);
    for (size_t lines = 100; lines <= 1000; lines *= 10) {
        rig_call *rc = call_plain(&w, "/f/a", "1");
        memset(w.ids[1], 0, sizeof w.ids[1]);
        hear(&w, ASK("$1", "/f/a", ",'input':1"));
        size_t n = (size_t)snprintf(text, 100, RPC "'id':$1,'error':{'code':-32000,'message':'INTERNAL: ");
        for (size_t i = 0; i < lines; i++)
            n += (size_t)snprintf(text + n, 100, "ä line\\n");
        (void)snprintf(text + n, 100, "','data':{'code':13}}}");
        say(&w, text);
        assert_int_equal(rc->status, EW_STATUS_INTERNAL);
        assert_int_equal(strlen(rc->message), lines * strlen("ä line\n"));
        assert_memory_equal(rc->message, "ä line\nä line\n", strlen("ä line\nä line\n"));
    }
    free(text);
    world_done(&w);
}

/* ---- several runtimes ---- */

/* A runtime can answer only what it was asked itself. */
static void test_wire_reflection_call__answer_for_another(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    rig_call *rc = call_stream(&w, "/f/a");
    hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true"));
    rig_pair *first = w.pair;
    w.pair = rig_connect_raw(&w.r, RIG_SERVER);
    say(&w, RPC "'method':'register','params':{'id':'other','pid':2}}");
    say(&w, CHUNK("$1", "666"));
    say(&w, RESULT("$1", "666", "'t'"));
    say(&w, RPC "'id':$1,'error':{'code':1,'message':'no'}}");
    say(&w, RPC "'id':$1}"); /* no answer at all: told, but nobody's call fails */
    hear_part(&w, "neither method, result nor error");
    check_runs(rc);
    assert_int_equal(rc->n_chunks, 0);
    assert_int_equal(world_dropped(&w), 3);
    w.pair = first;
    say(&w, RESULT("$1", "1", "'t'"));
    check_done(rc, "1");
    world_done(&w);
}

static const char *refuse_all(rig_end *end, const ew__runtime_identity *who) {
    (void)end;
    assert_true(ew_str_eq(who->id, EW_STR("x")) && ew_str_eq(who->name, EW_STR("n")) && who->pid == 7 &&
                ew_str_eq(who->version, EW_STR("v")));
    return "not here";
}

/* Who may come is for whoever owns the connections to say. */
static void test_wire_reflection_call__greet(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_SERVER, &(rig_options){.seed = 1});
    w.r.greet = refuse_all;
    say(&w, RPC "'id':5,'method':'register','params':{'id':'x','pid':7,'name':'n','genkitVersion':'v'}}");
    hear(&w, RUN_FAULT("5", -32602, 9, "not here", ""));
    assert_int_equal(rig_capacity(w.pair), 0);
    say(&w, RPC "'method':'register','params':{'id':'x','pid':7,'name':'n','genkitVersion':'v'}}");
    hear_nothing(&w);
    assert_int_equal(rig_capacity(w.pair), 0);
    world_done(&w);
}

/* ---- callers that act inside of callbacks ---- */

/* `ready` opens calls from inside the end of another. */
static unsigned n_more;
static void open_more(rig_end *end) {
    if (n_more > 0 && end->side == RIG_CLIENT && end->peer && end->peer->wire->capacity(end->peer) > 0) {
        n_more--;
        (void)rig_open(end->pair, &(rig_request){.key = "/f/more", .input = EW_STR("0")});
    }
}

static void test_wire_reflection_call__open_in_ready(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    (void)call_plain(&w, "/f/a", "1");
    hear(&w, ASK("$1", "/f/a", ",'input':1"));
    n_more = 2;
    w.r.on_ready = open_more;
    put(&w, RESULT("$1", "1", "'t'"));
    put(&w, RESULT("$1", "1", "'t'")); /* late */
    say(&w, RPC "'method':'register','params':{'id':'again','pid':2}}");
    hear(&w, ASK("$2", "/f/more", ",'input':0") ASK("$3", "/f/more", ",'input':0"));
    say(&w, RPC "'id':$2}"); /* a failure is an end as well */
    check_failed(rig_nth(&w.r, 1), EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "neither method, result nor error");
    assert_int_equal(n_more, 0);
    say(&w, RESULT("$3", "1", "'t'"));
    check_done(rig_nth(&w.r, 2), "1");
    world_done(&w);
}

/* A caller that begins anew with each failure, at once, on the connection that has just failed. */
typedef struct stubborn {
    ew__peer *peer;
    unsigned n_opened, n_ended;
} stubborn;

static void open_again(stubborn *s);

static ew_err stubborn_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void stubborn_end(ew_call *call, const ew__end *end) {
    stubborn *s = call->caller_ud;
    assert_int_not_equal(end->status, EW_STATUS_OK);
    s->n_ended++;
    ew__call_release(call);
    if (s->n_opened < 100)
        open_again(s);
}

static const ew__caller_ops stubborn_ops = {.chunk = stubborn_chunk, .end = stubborn_end};

static void stubborn_open(ew_call *call) {
    stubborn *s = call->callee_ud;
    if (s->peer->wire->open(s->peer, call) != EW_OK) {
        s->n_opened = 1000; /* it has learnt */
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("busy"));
    }
}

static const ew__callee_ops stubborn_opening = {.open = stubborn_open};

static void open_again(stubborn *s) {
    ew_call *call = ew__call_new(s->peer->conn->executor, &stubborn_ops, s);
    assert_non_null(call);
    s->n_opened++;
    call->key = EW_STR("/f/a");
    ew__call_open_on(call, &stubborn_opening, s);
}

static void test_wire_reflection_call__open_in_failure(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    stubborn s = {.peer = &world_peer(&w)->peer};
    open_again(&s);
    rig_run(&w.r);
    rig_forget(w.pair, w.pair->end[RIG_SERVER].got_len);
    say_bytes(w.pair, "\x81\x00", 2); /* not masked */
    hear_part(&w, "(close) 1002 a client");
    assert_int_equal(s.n_opened, 1000);
    assert_int_equal(s.n_ended, 2);
    world_done(&w);
}

/* A caller that lets go while it is given a chunk. */
static ew_err release_at_chunk(ew_call *call, ew_str json) {
    bool *released = call->caller_ud;
    (void)json;
    *released = true;
    ew__call_release(call);
    return EW_FULL;
}

static void never_told(ew_call *call, const ew__end *end) {
    (void)call;
    (void)end;
    fail_msg("told after it let go");
}

static const ew__caller_ops releasing = {.chunk = release_at_chunk, .end = never_told};

static void plain_open(ew_call *call) {
    ew__peer *peer = call->callee_ud;
    assert_int_equal(peer->wire->open(peer, call), EW_OK);
}

static const ew__callee_ops plain_opening = {.open = plain_open};

static void test_wire_reflection_call__release_in_chunk(void **state) {
    (void)state;
    world w;
    bool released = false;
    world_manager(&w);
    ew_call *call = ew__call_new(&w.r.side[RIG_CLIENT].executor, &releasing, &released);
    assert_non_null(call);
    call->key = EW_STR("/f/a");
    call->wants_chunks = true;
    ew__call_open_on(call, &plain_opening, &world_peer(&w)->peer);
    hear(&w, ASK("$1", "/f/a", ",'input':null,'stream':true"));
    put(&w, STATE("$1", "'t'"));
    put(&w, CHUNK("$1", "1"));
    put(&w, CHUNK("$1", "2"));
    say(&w, RESULT("$1", "3", "'t'"));
    assert_true(released);
    hear(&w, RPC "'id':$2,'method':'cancelAction','params':{'traceId':'t'}}\n");
    assert_false(world_peer(&w)->paused);
    world_done(&w);
}

/* ---- ends ---- */

static void test_wire_reflection_call__deadline(void **state) {
    (void)state;
    world w;
    world_manager(&w);
    rig_call *rc = rig_open(w.pair, &(rig_request){.key = "/f/a", .input = EW_STR("1"), .timeout_ms = 50});
    hear(&w, ASK("$1", "/f/a", ",'input':1"));
    say(&w, STATE("$1", "'t'"));
    rig_advance(&w.r, 50);
    check_failed(rc, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    hear(&w, RPC "'id':$2,'method':'cancelAction','params':{'traceId':'t'}}\n");
    uint64_t dropped = world_dropped(&w);
    say(&w, RPC "'id':$2,'result':{}}"); /* expected */
    assert_int_equal(world_dropped(&w), dropped);
    say(&w, RESULT("$1", "1", "'t'"));
    assert_int_equal(world_dropped(&w), dropped + 1);
    world_done(&w);
}

static void test_wire_reflection_call__gone(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        world w;
        world_manager(&w);
        rig_call *a = call_plain(&w, "/f/a", "1"), *b = call_stream(&w, "/f/b");
        rig_call *c = rig_open(w.pair, &(rig_request){.key = "/f/c", .input_stream = true});
        (void)rig_call_send(c, EW_STR("1"));
        rig_run(&w.r);
        if (how == 0)
            rig_say_eof(w.pair);
        else
            rig_cut(w.pair, RIG_SERVER, how == 1 ? RIG_RESET : RIG_EOF);
        rig_run(&w.r);
        check_failed(a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
        check_failed(b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
        check_failed(c, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
        world_done(&w);
    }
}

/* ---- input ---- */

static void test_wire_reflection_call__held_input(void **state) {
    (void)state;
    world w;
    world_manager_with(&w, "",
                       &(rig_options){.limits = {.out_high_bytes = 130, .out_low_bytes = 20, .out_max_bytes = 4000}});
    rig_call *rc = rig_open(w.pair, &(rig_request){.key = "/f/a", .input_stream = true});
    hear(&w, ASK("$1", "/f/a", ",'streamInput':true"));
    char chunk[100];
    (void)snprintf(chunk, sizeof chunk, "\"%060d\"", 7);
    assert_int_equal(rig_call_send(rc, ew_str_from(chunk)), EW_OK);
    assert_int_equal(rig_call_send(rc, ew_str_from(chunk)), EW_FULL);
    assert_int_equal(rc->n_input_room, 0);
    say(&w, STATE("$1", "'t'"));
    size_t n;
    char *got = heard(&w, &n);
    assert_true(strstr(strstr(got, "sendInputStreamChunk") + 1, "sendInputStreamChunk") != NULL);
    free(got);
    assert_int_equal(rc->n_input_room, 1);
    assert_int_equal(rig_call_send(rc, ew_str_from("1")), EW_OK);
    hear(&w, INPUT("$1", "1"));
    world_done(&w);
}

/* More input than may be held loses its call, and nothing else. */
static void test_wire_reflection_call__held_too_much(void **state) {
    (void)state;
    world w;
    world_manager_with(&w, "",
                       &(rig_options){.limits = {.out_high_bytes = 100, .out_low_bytes = 20, .out_max_bytes = 400}});
    rig_call *rc = rig_open(w.pair, &(rig_request){.key = "/f/a", .input_stream = true});
    hear(&w, ASK("$1", "/f/a", ",'streamInput':true"));
    for (int i = 0; i < 100 && !rc->ended; i++)
        (void)rig_call_send(rc, EW_STR("\"0123456789012345678901234567890123456789\""));
    check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL, "an input chunk is too large for this connection");
    say(&w, STATE("$1", "'t'"));
    rig_advance(&w.r, 3000);
    hear_nothing(&w);
    assert_int_not_equal(rig_capacity(w.pair), 0);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection_call__interleaved),
        cmocka_unit_test(test_wire_reflection_call__unnamed_error),
        cmocka_unit_test(test_wire_reflection_call__capacity),
        cmocka_unit_test(test_wire_reflection_call__everything),
        cmocka_unit_test(test_wire_reflection_call__written_for_ours),
        cmocka_unit_test(test_wire_reflection_call__refuses),
        cmocka_unit_test(test_wire_reflection_call__fault),
        cmocka_unit_test(test_wire_reflection_call__long_message),
        cmocka_unit_test(test_wire_reflection_call__answer_for_another),
        cmocka_unit_test(test_wire_reflection_call__greet),
        cmocka_unit_test(test_wire_reflection_call__open_in_ready),
        cmocka_unit_test(test_wire_reflection_call__open_in_failure),
        cmocka_unit_test(test_wire_reflection_call__release_in_chunk),
        cmocka_unit_test(test_wire_reflection_call__deadline),
        cmocka_unit_test(test_wire_reflection_call__gone),
        cmocka_unit_test(test_wire_reflection_call__held_input),
        cmocka_unit_test(test_wire_reflection_call__held_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
