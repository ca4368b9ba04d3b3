/*
 * tests/unit/wire/test_rrq_call.c: the orchestrator's side, with runners of every kind: good, confused, stuck.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/rrq_world.h"

#define PLACES 60 /* of 64: four are left alone */

typedef struct world {
    rig r;
    rig_pair *pair;
} world;

static void begin(world *w) {
    rrq_init(&w->r, (ew_limits){0}, RIG_WHOLE);
    w->pair = rig_connect_raw(&w->r, RIG_SERVER);
}

static rig_call *call(world *w, const char *key, const char *input, const char *context, uint64_t timeout_ms) {
    rig_call *rc = rig_open(
        w->pair, &(rig_request){.key = key, .input = ew_str_from(input), .context = context, .timeout_ms = timeout_ms});
    rig_run(&w->r);
    return rc;
}

/* The request that left, and its ids. */
typedef struct asked {
    char *text;
    char request[64], job[64];
} asked;

static void read_id(const char *text, const char *name, char out[64]) {
    const char *at = strstr(text, name);
    assert_non_null(at);
    at += strlen(name);
    size_t n = strcspn(at, "'");
    assert_true(n < 64);
    memcpy(out, at, n);
    out[n] = '\0';
}

static asked hear_request(world *w) {
    asked a = {.text = hear_any(w->pair)};
    read_id(a.text, "'request_id':'", a.request);
    read_id(a.text, "'job_id':'", a.job);
    return a;
}

static void answer(world *w, const asked *a, const char *rest) {
    char text[2000];
    (void)snprintf(text, sizeof text, "{'type':'response','payload':{'job_id':'%s','request_id':'%s',%s}}", a->job,
                   a->request, rest);
    say(w->pair, text);
}

static void must_fail(const rig_call *rc, ew_status status, ew_origin origin, const char *message) {
    assert_int_equal(rc->ended, 1);
    assert_int_equal(rc->status, status);
    assert_int_equal(rc->origin, origin);
    assert_string_equal(rc->message, message);
}

/* ---- what is sent ---- */

static void test_wire_rrq_call__request(void **state) {
    (void)state;
    world w;
    begin(&w);
    rig_call *rc = call(&w, "python#send_email", "{\"to\": \"a@b\"}", NULL, 5000);
    asked a = hear_request(&w);
    char expected[1500], now[EW__WHEN_LEN + 1] = "", deadline[EW__WHEN_LEN + 1] = "", parent[64];
    const ew_env *env = w.r.side[RIG_CLIENT].executor.env;
    ew__when_write(env->wall_ms(env->ud), now);
    ew__when_write(env->wall_ms(env->ud) + 5000, deadline);
    read_id(a.text, "'traceparent':'", parent);
    assert_int_equal(strlen(parent), EW__TRACEPARENT_LEN);
    assert_memory_equal(parent + 3, rc->call->trace.trace_id, 32);
    (void)snprintf(
        expected, sizeof expected,
        "{'type':'request','payload':{'protocol_version':'2','request_id':'%s','job_id':'%s','function_name':"
        "'send_email','params':{'to': 'a@b'},'context':{'job_id':'%s','attempt':1,'enqueue_time':'%s',"
        "'queue_name':'everywire','deadline':'%s','trace_context':{'traceparent':'%s'},'worker_id':"
        "'everywire'}}}",
        a.request, a.job, a.job, now, deadline, parent);
    assert_string_equal(a.text, expected);
    assert_int_equal(strlen(a.request), EW__UUID_LEN);
    assert_string_not_equal(a.request, a.job);
    answer(&w, &a, "'status':'success','result':{'big':12345678901234567890}");
    assert_string_equal(rc->result, "{\"big\":12345678901234567890}");
    free(a.text);
    rig_finish(&w.r);
}

/* Ids of our own count up; those of another connection have nothing in common with them. */
static void test_wire_rrq_call__ids(void **state) {
    (void)state;
    world w;
    char last[64] = "";
    begin(&w);
    for (unsigned i = 1; i <= 1001; i++) {
        char end[16];
        rig_call *rc = call(&w, "f", "{}", NULL, 0);
        asked a = hear_request(&w);
        (void)snprintf(end, sizeof end, "-%012u", i);
        assert_string_equal(a.request + EW__UUID_LEN - 13, end);
        assert_string_equal(a.job + EW__UUID_LEN - 13, end);
        assert_string_not_equal(a.request, a.job);
        assert_true(i == 1 || strncmp(a.request, last, EW__UUID_LEN - 12) == 0);
        answer(&w, &a, "'status':'success','result':1");
        assert_string_equal(rc->result, "1");
        memcpy(last, a.request, sizeof last);
        free(a.text);
    }
    w.pair = rig_connect_raw(&w.r, RIG_SERVER);
    (void)call(&w, "f", "{}", NULL, 0);
    asked a = hear_request(&w);
    assert_true(strncmp(a.request, last, 8) != 0);
    free(a.text);
    rig_finish(&w.r);
}

/* What the caller's context says takes the place of what we would; the rest goes along. */
static void test_wire_rrq_call__context(void **state) {
    (void)state;
    world w;
    begin(&w);
    rig_call *rc = rig_open(
        w.pair, &(rig_request){.key = "f",
                               .context = "{\"job_id\":\"mine\",\"attempt\":7,\"queue_name\":\"mail\",\"deadline\":1,"
                                          "\"user\":{\"id\": 1},\"enqueue_time\":\"2026-01-01T00:00:00Z\"}",
                               .labels = "{\"tenant\":\"acme\"}"});
    rig_run(&w.r);
    asked a = hear_request(&w);
    assert_string_equal(a.job, "mine");
    assert_non_null(strstr(a.text, "'params':{},'context':{'job_id':'mine','attempt':7,'enqueue_time':"
                                   "'2026-01-01T00:00:00Z','queue_name':'mail','trace_context':"));
    assert_non_null(
        strstr(a.text, ",'correlation_context':{'tenant':'acme'},'worker_id':'everywire','user':{'id': 1}}"));
    answer(&w, &a, "'status':'success'");
    assert_string_equal(rc->result, "null");
    free(a.text);
    rig_finish(&w.r);
}

static void test_wire_rrq_call__refused(void **state) {
    (void)state;
    world w;
    begin(&w);
    const struct {
        const char *key, *input, *context;
    } bad[] = {{"f", "[1]", NULL},
               {"f", "1", NULL},
               {"runner#", "{}", NULL},
               {"f", "{}", "[]"},
               {"f", "{}", "{\"attempt\":\"1\"}"},
               {"f", "{}", "{\"job_id\":5}"},
               {"f", "{}", "{\"enqueue_time\":\"soon\"}"},
               {"f", "{}", "{\"correlation_context\":{\"a\":1}}"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rig_call *rc = call(&w, bad[i].key, bad[i].input, bad[i].context, 0);
        assert_int_equal(rc->ended, 1);
        assert_int_equal(rc->status, EW_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rc->origin, EW_ORIGIN_LOCAL);
    }
    hear_nothing(w.pair);
    rig_finish(&w.r);
}

/* ---- outcomes ---- */

static void test_wire_rrq_call__faults(void **state) {
    (void)state;
    static const struct {
        const char *rest;
        ew_status status;
        const char *message, *details;
        bool retryable;
        uint64_t after;
    } cases[] = {
        {"'status':'error','error':{'message':'boom','type':null,'code':null,'details':null},'result':null",
         EW_STATUS_UNKNOWN, "boom", NULL, false, 0},
        {"'status':'error','error':{'message':'a\\nb','code':'ABORTED','details':{'x':1}}", EW_STATUS_ABORTED, "a\nb",
         "{\"x\":1}", false, 0},
        {"'status':'error','error':{'message':'m','type':'handler_not_found'}", EW_STATUS_NOT_FOUND, "m",
         "{\"type\":\"handler_not_found\"}", false, 0},
        {"'status':'error','error':{'message':'m','type':'cancelled'}", EW_STATUS_CANCELLED, "m", NULL, false, 0},
        {"'status':'error','error':{'message':'m','type':'Own','code':42,'details':[1]}", EW_STATUS_UNKNOWN, "m",
         "{\"type\":\"Own\",\"code\":42,\"details\":[1]}", false, 0},
        {"'status':'error'", EW_STATUS_UNKNOWN, "the runner reports an error and does not say which", NULL, false, 0},
        {"'status':'timeout','error':{'message':'late','type':'timeout'}", EW_STATUS_DEADLINE_EXCEEDED, "late", NULL,
         false, 0},
        {"'status':'timeout'", EW_STATUS_DEADLINE_EXCEEDED, "the runner's time was over", NULL, false, 0},
        {"'status':'retry','retry_after_seconds':1.5", EW_STATUS_UNAVAILABLE, "the runner asks for a retry", NULL, true,
         1500},
        {"'status':'retry','error':{'message':'later','code':'ABORTED'},'retry_after_seconds':null", EW_STATUS_ABORTED,
         "later", NULL, true, 0},
        {"'status':'retry','retry_after_seconds':-5", EW_STATUS_UNAVAILABLE, "the runner asks for a retry", NULL, true,
         0},
        {"'status':'retry','retry_after_seconds':1e308", EW_STATUS_UNAVAILABLE, "the runner asks for a retry", NULL,
         true, 10000000000000},
    };
    world w;
    begin(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_call *rc = call(&w, "f", NULL, NULL, 0);
        asked a = hear_request(&w);
        answer(&w, &a, cases[i].rest);
        must_fail(rc, cases[i].status, EW_ORIGIN_ACTION, cases[i].message);
        assert_int_equal(rc->retryable, cases[i].retryable);
        assert_int_equal(rc->retry_after_ms, cases[i].after);
        if (cases[i].details)
            assert_string_equal(rc->details, cases[i].details);
        else
            assert_true(!rc->details || !*rc->details);
        free(a.text);
    }
    rig_finish(&w.r);
}

/* A bad outcome is the end of its own call, and of no other. */
static void test_wire_rrq_call__bad_outcomes(void **state) {
    (void)state;
    static const struct {
        const char *rest, *message;
    } cases[] = {
        {"'status':'done'", "status must be success, retry, timeout or error"},
        {"'result':1", "status must be success, retry, timeout or error"},
        {"'status':'error','error':{}", "error.message must be a string"},
        {"'status':'error','error':'boom'", "error must be an object"},
        {"'status':'success','status':'error'", "a member of the outcome is repeated"},
    };
    world w;
    begin(&w);
    rig_call *good = call(&w, "f", NULL, NULL, 0);
    asked first = hear_request(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_call *rc = call(&w, "f", NULL, NULL, 0);
        asked a = hear_request(&w);
        answer(&w, &a, cases[i].rest);
        must_fail(rc, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, cases[i].message);
        free(a.text);
    }
    rig_call *other = call(&w, "f", NULL, NULL, 0);
    asked a = hear_request(&w);
    asked wrong = a;
    memcpy(wrong.job, first.job, sizeof wrong.job);
    answer(&w, &wrong, "'status':'success'");
    must_fail(other, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the outcome is for another job");
    answer(&w, &a, "'status':'success'"); /* too late */
    say(w.pair, "{'type':'request','payload':{}}");
    say(w.pair, CANCEL("j", ""));
    assert_int_equal(good->ended, 0);
    answer(&w, &first, "'status':'success','result':1");
    assert_string_equal(good->result, "1");
    assert_true(rig_dropped(&w.r, RIG_CLIENT) >= 3);
    free(first.text);
    free(a.text);
    rig_finish(&w.r);
}

static void test_wire_rrq_call__no_request_id(void **state) {
    (void)state;
    world w;
    char text[200];
    begin(&w);
    say(w.pair, "{'type':'response','payload':{'status':'success'}}"); /* nobody waits */
    rig_call *one = call(&w, "f", NULL, NULL, 0), *two = call(&w, "f", NULL, NULL, 0);
    asked a = hear_request(&w), b = hear_request(&w);
    (void)snprintf(text, sizeof text, "{'type':'response','payload':{'job_id':'%s','status':'success'}}", a.job);
    say(w.pair, text);
    must_fail(one, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the outcome has no request_id");
    assert_int_equal(two->ended, 0);
    rig_call *three = call(&w, "f", NULL, NULL, 0);
    say(w.pair, "{'type':'response','payload':{'status':'success'}}");
    must_fail(two, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the runner sent an outcome without a request_id");
    must_fail(three, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the runner sent an outcome without a request_id");
    free(a.text);
    free(b.text);
    rig_finish(&w.r);
}

static void test_wire_rrq_call__unreadable(void **state) {
    (void)state;
    static const char *const frames[] = {"{oops", "[]", "{'type':'pong','payload':{}}", "{'type':'response'}"};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        world w;
        begin(&w);
        rig_call *one = call(&w, "f", NULL, NULL, 0), *two = call(&w, "f", NULL, NULL, 0);
        say(w.pair, frames[i]);
        must_fail(one, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the runner sent something that is no message of RRQ's");
        must_fail(two, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the runner sent something that is no message of RRQ's");
        rig_finish(&w.r);
    }
}

static void test_wire_rrq_call__list(void **state) {
    (void)state;
    world w;
    begin(&w);
    rig_call *rc = rig_open(w.pair, &(rig_request){.list = true});
    rig_run(&w.r);
    asked a = hear_request(&w);
    assert_non_null(strstr(a.text, "'function_name':'everywire.actions','params':{}"));
    answer(&w, &a, "'status':'error','error':{'message':'Handler not found','type':'handler_not_found'}");
    must_fail(rc, EW_STATUS_UNIMPLEMENTED, EW_ORIGIN_ACTION,
              "the runner cannot list its actions: RRQ has no message for it");
    free(a.text);
    rig_finish(&w.r);
}

/* ---- ends that do not come ---- */

/* After the deadline the runner may still say so itself; only then it is asked to stop. */
static void test_wire_rrq_call__deadline(void **state) {
    (void)state;
    world w;
    begin(&w);
    rig_call *rc = call(&w, "f", NULL, NULL, 100);
    asked a = hear_request(&w);
    rig_advance(&w.r, 100);
    must_fail(rc, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    rig_advance(&w.r, 999);
    hear_nothing(w.pair);
    assert_true(rig_capacity(w.pair) == PLACES - 1);
    answer(&w, &a, "'status':'timeout'");
    rig_advance(&w.r, 60 * 1000);
    hear_nothing(w.pair);
    assert_true(rig_capacity(w.pair) == PLACES);
    assert_false(is_over(w.pair));
    free(a.text);
    rig_finish(&w.r);
}

/* One that does not end is waited for, asked, and given up; others on the connection are not lost with it. */
static void test_wire_rrq_call__stuck(void **state) {
    (void)state;
    world w;
    char expected[300];
    begin(&w);
    rig_call *stuck = call(&w, "f", NULL, NULL, 100), *good = call(&w, "f", NULL, NULL, 0);
    asked a = hear_request(&w), b = hear_request(&w);
    rig_advance(&w.r, 1100);
    (void)snprintf(
        expected, sizeof expected,
        "{'type':'cancel','payload':{'protocol_version':'2','job_id':'%s','request_id':'%s','hard_kill':false}}", a.job,
        a.request);
    hear(w.pair, expected);
    assert_true(rig_capacity(w.pair) == PLACES - 2);
    rig_advance(&w.r, 2000);
    assert_true(rig_capacity(w.pair) == PLACES - 2); /* it keeps its place */
    assert_false(is_over(w.pair));
    assert_int_equal(stuck->ended, 1);
    assert_int_equal(good->ended, 0);
    answer(&w, &b, "'status':'success','result':1");
    assert_string_equal(good->result, "1");
    assert_true(wire_end(w.pair)->conn.stuck);
    assert_true(is_over(w.pair));
    free(a.text);
    free(b.text);
    rig_finish(&w.r);
}

/* When many are stuck it is given no more, so that the others come to their end. */
static void test_wire_rrq_call__sick(void **state) {
    (void)state;
    world w;
    begin(&w);
    rig_call *good = call(&w, "f", NULL, NULL, 0);
    asked a = hear_request(&w);
    for (int i = 0; i < 16; i++)
        (void)call(&w, "f", NULL, NULL, 100 + (uint64_t)i);
    rig_advance(&w.r, 3114);
    assert_true(rig_capacity(w.pair) == PLACES - 17); /* fifteen of them */
    rig_advance(&w.r, 1);
    assert_true(rig_capacity(w.pair) == 0);
    assert_false(is_over(w.pair));
    rig_forget(w.pair, raw_end(w.pair)->got_len);
    answer(&w, &a, "'status':'success'");
    assert_string_equal(good->result, "null");
    assert_true(wire_end(w.pair)->conn.stuck && is_over(w.pair));
    free(a.text);
    rig_finish(&w.r);
}

/* It comes to itself in time: everything is as before. */
static void test_wire_rrq_call__unstuck(void **state) {
    (void)state;
    world w;
    begin(&w);
    rig_call *slow = call(&w, "f", NULL, NULL, 0), *good = call(&w, "f", NULL, NULL, 0);
    asked a = hear_request(&w), b = hear_request(&w);
    rig_call_cancel(slow);
    rig_run(&w.r);
    free(hear_any(w.pair));
    rig_advance(&w.r, 1999);
    assert_int_equal(slow->ended, 0);
    rig_advance(&w.r, 1);
    must_fail(slow, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled, and the runner has not ended it");
    assert_true(rig_capacity(w.pair) == PLACES - 2);
    answer(&w, &a, "'status':'success'");
    assert_true(rig_capacity(w.pair) == PLACES - 1);
    assert_false(wire_end(w.pair)->conn.stuck);
    answer(&w, &b, "'status':'success'");
    assert_string_equal(good->result, "null");
    assert_false(is_over(w.pair));
    free(a.text);
    free(b.text);
    rig_finish(&w.r);
}

/* A cancel has a connection of its own, but not as long as its request has not left: then it follows on the same. */
static void test_wire_rrq_call__cancel_and_unsent_request(void **state) {
    (void)state;
    world w;
    begin(&w);
    w.r.asides = true;
    rig_call *sent = call(&w, "never", "{}", NULL, 0);
    asked first = hear_request(&w);
    rig_stall(w.pair, RIG_CLIENT, true);
    rig_call *unsent = call(&w, "never", "{}", NULL, 0);
    rig_call_cancel(unsent);
    rig_run(&w.r);
    assert_int_equal(w.r.n_aside, 0);
    rig_call_cancel(sent);
    rig_run(&w.r);
    assert_int_equal(w.r.n_aside, 1);
    rig_stall(w.pair, RIG_CLIENT, false);
    rig_run(&w.r);
    asked second = hear_request(&w);
    assert_non_null(strstr(second.text, "'type':'request'"));
    char *cancel = hear_any(w.pair);
    assert_non_null(strstr(cancel, "'type':'cancel'"));
    assert_non_null(strstr(cancel, second.request));
    hear_nothing(w.pair);
    answer(&w, &first, "'status':'error','error':{'message':'m','type':'cancelled'}");
    answer(&w, &second, "'status':'error','error':{'message':'m','type':'cancelled'}");
    assert_int_equal(sent->status, EW_STATUS_CANCELLED);
    assert_int_equal(unsent->status, EW_STATUS_CANCELLED);
    free(cancel);
    free(first.text);
    free(second.text);
    rig_finish(&w.r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq_call__cancel_and_unsent_request),
        cmocka_unit_test(test_wire_rrq_call__request),
        cmocka_unit_test(test_wire_rrq_call__ids),
        cmocka_unit_test(test_wire_rrq_call__context),
        cmocka_unit_test(test_wire_rrq_call__refused),
        cmocka_unit_test(test_wire_rrq_call__faults),
        cmocka_unit_test(test_wire_rrq_call__bad_outcomes),
        cmocka_unit_test(test_wire_rrq_call__no_request_id),
        cmocka_unit_test(test_wire_rrq_call__unreadable),
        cmocka_unit_test(test_wire_rrq_call__list),
        cmocka_unit_test(test_wire_rrq_call__deadline),
        cmocka_unit_test(test_wire_rrq_call__stuck),
        cmocka_unit_test(test_wire_rrq_call__sick),
        cmocka_unit_test(test_wire_rrq_call__unstuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
