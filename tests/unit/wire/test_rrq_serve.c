/*
 * tests/unit/wire/test_rrq_serve.c: our runner, seen by an orchestrator: what one connection has to do with another,
 * and what happens over time. Single messages are in the transcripts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/rrq_world.h"

#define NONE ((ew_limits){0})

/* ---- cancel ---- */

/* It comes on another connection, with a job that is not the request's: the request's own ids are answered, once. */
static void test_wire_rrq__cancel_request(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *one = rig_connect_raw(&r, RIG_CLIENT), *two = rig_connect_raw(&r, RIG_CLIENT);
    say(one, REQUEST("r1", "j1", "never", "{}"));
    say(one, REQUEST("r2", "j1", "never", "{}"));
    hear_nothing(one);
    say(two, CANCEL("other", ",'request_id':'r\\u0031','hard_kill':true"));
    hear(one, CANCELLED("r1", "j1"));
    say(two, CANCEL("j1", ",'request_id':'r1'"));
    hear_nothing(one);
    hear_nothing(two);
    assert_int_equal(r.n_cancelled, 1);
    rig_finish(&r);
}

/* It comes on another connection, and so may overtake its request, which then is not run. It is used up by that. */
static void test_wire_rrq__cancel_first(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *one = rig_connect_raw(&r, RIG_CLIENT), *two = rig_connect_raw(&r, RIG_CLIENT);
    say(two, CANCEL("j1", ",'request_id':'r\\u0031'"));
    say(two, CANCEL("j2", "")); /* a job without a request: what runs now is meant, not a later attempt */
    say(one, REQUEST("r2", "j2", "never", "{}"));
    hear_nothing(one);
    say(one, REQUEST("r1", "j1", "never", "{}"));
    hear(one, CANCELLED("r1", "j1"));
    say(one, REQUEST("r1", "j1", "echo", "{}"));
    hear(one, SUCCESS("r1", "j1", "{}"));
    assert_int_equal(r.n_cancelled, 0);
    say(one, CANCEL("j4", ",'request_id':'r4'")); /* on one connection the order counts */
    say(one, REQUEST("r4", "j4", "echo", "{}"));
    hear(one, SUCCESS("r4", "j4", "{}"));
    say(two, CANCEL("j3", ",'request_id':'r3'"));
    rig_advance(&r, EW__RRQ_EARLY_MS + 1); /* nothing is on its way for so long */
    say(one, REQUEST("r3", "j3", "echo", "{}"));
    hear(one, SUCCESS("r3", "j3", "{}"));
    for (int i = 0; i < 2 * EW__RRQ_EARLY_MAX; i++) { /* they are bounded: beyond it the oldest is dropped */
        char text[200];
        (void)snprintf(text, sizeof text, CANCEL("j", ",'request_id':'n%d'"), i);
        say(two, text);
    }
    say(one, REQUEST("n0", "j", "echo", "{}"));
    hear(one, SUCCESS("n0", "j", "{}"));
    say(one, REQUEST("n127", "j", "echo", "{}"));
    hear(one, CANCELLED("n127", "j"));
    rig_finish(&r);
}

static void test_wire_rrq__cancel_job(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *one = rig_connect_raw(&r, RIG_CLIENT), *two = rig_connect_raw(&r, RIG_CLIENT);
    say(one, REQUEST("a", "j", "never", "{}"));
    say(two, REQUEST("b", "j", "never", "{}"));
    say(two, REQUEST("c", "k", "never", "{}"));
    say(two, REQUEST("d", "j", "never", "{}"));
    say(one, CANCEL("j", ",'request_id':null"));
    hear(one, CANCELLED("a", "j"));
    hear_nothing(one);
    char *first = hear_any(two), *second = hear_any(two); /* in either order */
    bool order = strstr(first, "'request_id':'b'") != NULL;
    assert_string_equal(order ? first : second, CANCELLED("b", "j"));
    assert_string_equal(order ? second : first, CANCELLED("d", "j"));
    free(first);
    free(second);
    hear_nothing(two);
    say(one, CANCEL("k", ""));
    hear(two, CANCELLED("c", "k"));
    assert_int_equal(r.n_cancelled, 4);
    rig_finish(&r);
}

/* An orchestrator that gives an id twice gets two answers, and its cancel means both. */
static void test_wire_rrq__same_id_twice(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    for (int i = 0; i < 3; i++)
        say(pair, REQUEST("r", "j", "never", "{}"));
    say(pair, REQUEST("r", "j", "echo", "{}"));
    hear(pair, SUCCESS("r", "j", "{}"));
    say(pair, CANCEL("j", ",'request_id':'r'"));
    for (int i = 0; i < 3; i++)
        hear(pair, CANCELLED("r", "j"));
    hear_nothing(pair);
    rig_finish(&r);
}

/* Requests are indexed when one is asked for: without memory for that they are found all the same. */
static void test_wire_rrq__cancel_without_memory(void **state) {
    (void)state;
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        rig r;
        rrq_init(&r, NONE, RIG_WHOLE);
        rig_pair *one = rig_connect_raw(&r, RIG_CLIENT), *two = rig_connect_raw(&r, RIG_CLIENT);
        say(one, REQUEST("r1", "j1", "never", "{}"));
        say(one, REQUEST("r\\u0032", "j2", "never", "{}"));
        say(one, REQUEST("r3", "j\\u0032", "never", "{}"));
        ew__test_env_fail_at(&r.env, n, n % 2 == 0);
        say(two, n % 3 == 0 ? CANCEL("j2", "") : CANCEL("other", ",'request_id':'r2'"));
        failed = ew__test_env_failed(&r.env) > 0;
        ew__test_env_fail_at(&r.env, 0, false);
        assert_true(r.n_cancelled >= (n % 3 == 0 ? 2U : 1U)); /* all, where the answer could not leave */
        rig_finish(&r);
        assert_true(n < 100);
    }
}

/* A handler that does not stop is answered without it, and what it says later is late. */
static void test_wire_rrq__cancel_stubborn(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    say(pair, REQUEST("r", "j", "stubborn", "{'ms':5000}"));
    say(pair, REQUEST("s", "j", "stubborn", "{'ms':500}"));
    say(pair, CANCEL("j", ""));
    rig_advance(&r, 500);
    hear(pair, SUCCESS("s", "j", "'slept'"));
    rig_advance(&r, 499);
    hear_nothing(pair);
    rig_advance(&r, 1);
    hear(pair, CANCELLED("r", "j"));
    rig_advance(&r, 10000);
    hear_nothing(pair);
    assert_true(rig_dropped(&r, RIG_SERVER) >= 1);
    assert_false(is_over(pair));
    rig_finish(&r);
}

static struct {
    struct ew__broadcast broadcast;
    char text[200];
    unsigned n;
} heard;

static bool note(struct ew__broadcast *others, const ew__executor *from, const ew__wire *wire, unsigned to,
                 const ew__principal *sender, ew_str text) {
    (void)others;
    (void)from;
    assert_int_equal(sender->kind, EW__WHO_STRANGER); /* no access control: one principal */
    assert_ptr_equal(wire, &ew__wire_rrq);
    assert_int_equal(to, EW__ALL_OTHER_LOOPS);
    assert_true(text.len < sizeof heard.text);
    memcpy(heard.text, text.ptr, text.len);
    heard.text[text.len] = '\0';
    heard.n++;
    return true;
}

/* Other loops are told of what may be theirs, and do it when they are told. */
static void test_wire_rrq__other_loops(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    memset(&heard, 0, sizeof heard);
    heard.broadcast.send = note;
    r.side[RIG_SERVER].site.broadcast = &heard.broadcast;
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    say(pair, REQUEST("r", "j", "never", "{}"));
    say(pair, CANCEL("j", ",'request_id':'r'"));
    hear(pair, CANCELLED("r", "j"));
    assert_int_equal(heard.n, 0); /* it was found here */
    say(pair, CANCEL("j", ",'request_id':'elsewhere'"));
    assert_string_equal(heard.text, "[\"j\",\"elsewhere\"]");
    say(pair, CANCEL("j", ""));
    assert_string_equal(heard.text, "[\"j\"]");
    assert_int_equal(heard.n, 2);
    say(pair, REQUEST("x", "j", "never", "{}"));
    say(pair, REQUEST("y", "j", "never", "{}"));
    void *scratch = wire_end(pair)->conn.scratch;
    const ew__principal everybody = {.kind = EW__WHO_STRANGER};
    ew__rrq_on_broadcast(scratch, &r.side[RIG_SERVER].executor, &everybody, EW_STR("[\"z\",\"x\"]"));
    rig_run(&r);
    hear(pair, CANCELLED("x", "j"));
    ew__rrq_on_broadcast(scratch, &r.side[RIG_SERVER].executor, &everybody, EW_STR("[\"j\"]"));
    rig_run(&r);
    hear(pair, CANCELLED("y", "j"));
    rig_finish(&r);
}

/* ---- connections ---- */

/* What runs is still answered; nothing that follows is read. */
static void test_wire_rrq__bad_frame_while_running(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    say(pair, REQUEST("r", "j", "sleep", "{'ms':50}"));
    say(pair, "{oops");
    say(pair, REQUEST("s", "j", "echo", "{}"));
    assert_false(is_over(pair));
    rig_advance(&r, 50);
    hear(pair, SUCCESS("r", "j", "'slept'"));
    hear_nothing(pair);
    assert_true(is_over(pair));
    assert_int_equal(r.n_opened, 1);
    rig_finish(&r);
}

static void test_wire_rrq__half_close(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *one = rig_connect_raw(&r, RIG_CLIENT), *two = rig_connect_raw(&r, RIG_CLIENT);
    say(one, REQUEST("r", "j", "never", "{}"));
    say(two, REQUEST("s", "j", "never", "{}"));
    rig_say_eof(one);
    rig_run(&r);
    hear_nothing(one);
    assert_true(is_over(one));
    assert_int_equal(r.n_cancelled, 1);
    say(two, CANCEL("j", "")); /* the one that has gone is not found any more */
    hear(two, CANCELLED("s", "j"));
    rig_finish(&r);
}

/* 64 on a connection, another 64 on the next; one that ends makes room. */
static void test_wire_rrq__busy(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *one = rig_connect_raw(&r, RIG_CLIENT), *two = rig_connect_raw(&r, RIG_CLIENT);
    for (int i = 0; i < 64; i++)
        say(one, REQUEST("r", "j", "never", "{}"));
    hear_nothing(one);
    say(one, REQUEST("x", "k", "echo", "{}"));
    hear(one,
         FAILURE("x", "k", "error",
                 "'message':'Runner busy: too many in-flight requests','code':'RESOURCE_EXHAUSTED','refused':true"));
    say(two, REQUEST("y", "k", "echo", "{}"));
    hear(two, SUCCESS("y", "k", "{}"));
    say(two, CANCEL("j", ""));
    for (int i = 0; i < 64; i++)
        hear(one, CANCELLED("r", "j"));
    say(one, REQUEST("x", "k", "echo", "{}"));
    hear(one, SUCCESS("x", "k", "{}"));
    rig_finish(&r);
}

/* A connection may be silent for ever, but not in the middle of a frame. */
static void test_wire_rrq__patience(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *idle = rig_connect_raw(&r, RIG_CLIENT), *slow = rig_connect_raw(&r, RIG_CLIENT);
    rig_advance(&r, 24ULL * 3600 * 1000);
    say(idle, REQUEST("r", "j", "echo", "{}"));
    hear(idle, SUCCESS("r", "j", "{}"));
    rig_say(slow, "\0\0\x20", 3);
    rig_advance(&r, 29 * 1000);
    rig_say(slow, "\0{", 2); /* a few bytes are not progress */
    rig_advance(&r, 999);
    assert_false(is_over(slow));
    rig_advance(&r, 1);
    assert_true(is_over(slow));
    rig_pair *steady = rig_connect_raw(&r, RIG_CLIENT);
    rig_say(steady, "\0\0\x20\0{", 5);
    for (int i = 0; i < 7; i++) { /* 1 KiB within each 30 s is */
        static const char more[1024] = {0};
        rig_advance(&r, 29 * 1000);
        rig_say(steady, more, sizeof more);
    }
    rig_advance(&r, 29 * 1000);
    assert_false(is_over(steady));
    rig_advance(&r, 1000);
    assert_true(is_over(steady));
    assert_false(is_over(idle));
    rig_finish(&r);
}

/* ---- sizes ---- */

/* A frame over the limit is skipped: its request fails, and the connection goes on. */
static void test_wire_rrq__too_long(void **state) {
    (void)state;
    static const char head[] = "{\"type\":\"request\",\"payload\":{\"params\":{\"x\":\"",
                      tail[] = "\"},\"request_id\":\"r\",\"job_id\":\"j\"}}";
    enum { SIZE = 5000 };
    char frame[4 + SIZE];
    memset(frame, 'x', sizeof frame);
    memcpy(frame, "\0\0\x13\x88", 4);
    memcpy(frame + 4, head, sizeof head - 1);
    memcpy(frame + sizeof frame - (sizeof tail - 1), tail, sizeof tail - 1);
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        rig r;
        rrq_init(&r, (ew_limits){.frame_bytes = 2000}, (rig_split)split);
        rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
        rig_say(pair, frame, sizeof frame);
        rig_run(&r);
        assert_non_null(memmem(pair->end[RIG_CLIENT].got, pair->end[RIG_CLIENT].got_len, "\"request_id\":\"r\"", 16));
        assert_non_null(memmem(pair->end[RIG_CLIENT].got, pair->end[RIG_CLIENT].got_len, "RESOURCE_EXHAUSTED", 18));
        assert_false(is_over(pair));
        rig_finish(&r);
    }
}

/* Bytes of another protocol that look like the length of a frame to skip. */
static void test_wire_rrq__too_long_and_not_json(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        rig r;
        rrq_init(&r, NONE, (rig_split)split);
        rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
        static const char babble[] = "\x01\x02 220 mail.example ESMTP {\"a\":1}\r\n";
        rig_say(pair, babble, sizeof babble - 1);
        rig_run(&r);
        assert_true(is_over(pair));
        rig_finish(&r);
    }
}

/* A length promises nothing: memory is taken as bytes arrive. */
static void test_wire_rrq__promised_bytes(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    size_t before = ew__test_env_live_bytes(&r.env);
    rig_say(pair, "\x01\0\0\0{", 5); /* 16 MiB */
    rig_run(&r);
    assert_true(ew__test_env_live_bytes(&r.env) < before + 1024 * 1024);
    assert_false(is_over(pair));
    rig_pair *other = rig_connect_raw(&r, RIG_CLIENT);
    rig_say(other, "\x10\0\0\1", 4); /* more than 16 times the limit */
    rig_run(&r);
    assert_true(is_over(other));
    rig_finish(&r);
}

/* A large frame comes back byte for byte, and its memory goes when it has. */
static void large(rig_split split) {
    rig r;
    rrq_init(&r, NONE, split);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    enum { SIZE = 700 * 1000 };
    static char request[SIZE + 1000], expected[SIZE + 1000], pad[SIZE + 1];
    size_t before = ew__test_env_live_bytes(&r.env);
    for (size_t i = 0; i < SIZE; i++)
        pad[i] = "0123456789abcdef"[(i * 7 + i / 251) % 16];
    (void)snprintf(request, sizeof request, "%s%s%s",
                   "{'type':'request','payload':{'request_id':'r','job_id':'j','function_name':'echo','params':{'x':'",
                   pad, "'}," CONTEXT "}}");
    (void)snprintf(expected, sizeof expected, "%s%s%s",
                   "{'type':'response','payload':{'job_id':'j','request_id':'r','status':'success','result':{'x':'",
                   pad, "'}}}");
    for (int i = 0; i < 2; i++) {
        say(pair, request);
        hear(pair, expected);
        say(pair, REQUEST("s", "j", "echo", "{}"));
        hear(pair, SUCCESS("s", "j", "{}"));
    }
    assert_true(ew__test_env_live_bytes(&r.env) < before + 300 * 1000);
    rig_finish(&r);
}

static void test_wire_rrq__large(void **state) {
    (void)state;
    large(RIG_WHOLE);
    large(RIG_RANDOM);
}

static void test_wire_rrq__result_too_large(void **state) {
    (void)state;
    rig r;
    rrq_init(&r, (ew_limits){.frame_bytes = 400}, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    say(pair, REQUEST("r", "j", "everywire.actions", "{}"));
    hear(pair, FAILURE("r", "j", "error", "'message':'the list is too large for a frame','code':'RESOURCE_EXHAUSTED'"));
    say(pair, REQUEST("r", "j", "about", "{'x':'0123456789012345678901234567890123456789012345678901234567890123'}"));
    char *text = hear_any(pair);
    assert_true(strlen(text) <= 400);
    free(text);
    rig_finish(&r);
}

/* ---- deadlines ---- */

static void say_deadline(rig_pair *pair, const char *deadline) {
    char text[600];
    (void)snprintf(text, sizeof text,
                   "{'type':'request','payload':{'request_id':'r','job_id':'j','function_name':'never','context':{"
                   "'job_id':'j','attempt':3,'enqueue_time':'2026-01-01T12:00:00Z','queue_name':'q','deadline':%s}}}",
                   deadline);
    say(pair, text);
}

static void test_wire_rrq__deadlines(void **state) {
    (void)state;
    rig r;
    char when[EW__WHEN_LEN + 3] = "'";
    rrq_init(&r, NONE, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    const ew_env *env = r.side[RIG_SERVER].executor.env;
    ew__when_write(env->wall_ms(env->ud) + 5000, when + 1);
    when[EW__WHEN_LEN + 1] = '\'';
    say_deadline(pair, when);
    assert_int_equal(r.seen_deadline_ms, 5000);
    rig_advance(&r, 4999);
    hear_nothing(pair);
    rig_advance(&r, 1);
    hear(pair, FAILURE("r", "j", "timeout",
                       "'message':'Job execution timed out','type':'timeout','code':'DEADLINE_EXCEEDED'"));
    say_deadline(pair, when);
    hear(pair,
         FAILURE("r", "j", "timeout", "'message':'Job deadline exceeded','type':'timeout','code':'DEADLINE_EXCEEDED'"));
    assert_int_equal(r.n_opened, 1);
    say_deadline(pair, "'9999-12-31T23:59:59.999Z'");
    rig_advance(&r, 60ULL * 24 * 3600 * 1000);
    hear_nothing(pair);
    say(pair, CANCEL("j", ""));
    hear(pair, CANCELLED("r", "j"));
    rig_finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq__cancel_request),
        cmocka_unit_test(test_wire_rrq__cancel_first),
        cmocka_unit_test(test_wire_rrq__cancel_job),
        cmocka_unit_test(test_wire_rrq__same_id_twice),
        cmocka_unit_test(test_wire_rrq__cancel_without_memory),
        cmocka_unit_test(test_wire_rrq__cancel_stubborn),
        cmocka_unit_test(test_wire_rrq__other_loops),
        cmocka_unit_test(test_wire_rrq__bad_frame_while_running),
        cmocka_unit_test(test_wire_rrq__half_close),
        cmocka_unit_test(test_wire_rrq__busy),
        cmocka_unit_test(test_wire_rrq__patience),
        cmocka_unit_test(test_wire_rrq__promised_bytes),
        cmocka_unit_test(test_wire_rrq__too_long),
        cmocka_unit_test(test_wire_rrq__too_long_and_not_json),
        cmocka_unit_test(test_wire_rrq__large),
        cmocka_unit_test(test_wire_rrq__result_too_large),
        cmocka_unit_test(test_wire_rrq__deadlines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
