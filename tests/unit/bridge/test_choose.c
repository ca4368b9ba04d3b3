/*
 * tests/unit/bridge/test_choose.c: who gets a call that one peer could not have; and random orders of events, after which
 * each side must have ended once and everything be back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/bridge/world.h"

/* ---- several executors of one action ---- */

static void run_one(setting *s, const char *expected) {
    make(s);
    caller.n_ends = 0;
    open_inbound(s);
    for (uint32_t i = 0; i < N_UPSTREAMS; i++)
        if (upstreams[i].call)
            upstream_done(&upstreams[i], EW_STR("\"ok\""));
    assert_int_equal(caller.n_ends, 1);
    assert_string_equal(caller.text, expected);
    ew__call_release(caller.call);
    caller.call = NULL;
}

static void test_calls_go_round(void **state) {
    (void)state;
    setting s;
    begin(&s, 3);
    for (int i = 0; i < 9; i++)
        run_one(&s, "\"ok\"");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(upstreams[i].n_opens, 3);
    finish(&s, 3);
}

static void test_one_that_is_away_is_passed_over(void **state) {
    (void)state;
    setting s;
    begin(&s, 3);
    upstreams[1].unreachable = true;
    for (int i = 0; i < 9; i++)
        run_one(&s, "\"ok\"");
    assert_int_equal(upstreams[1].n_opens, 1); /* then it has a pause */
    assert_int_equal(upstreams[0].n_opens + upstreams[2].n_opens, 9);
    world_advance(&s.w, EW__UPSTREAM_PAUSE_MS + 1);
    upstreams[1].unreachable = false;
    for (int i = 0; i < 3; i++)
        run_one(&s, "\"ok\"");
    assert_int_equal(upstreams[1].n_opens, 2);
    finish(&s, 3);
}

static void test_all_are_away(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    upstreams[0].unreachable = upstreams[1].unreachable = true;
    for (int i = 0; i < 3; i++) {
        unsigned before = upstreams[0].n_opens + upstreams[1].n_opens;
        run_one(&s, "nobody there");
        assert_int_equal(caller.status, EW_STATUS_UNAVAILABLE);
        assert_int_equal(upstreams[0].n_opens + upstreams[1].n_opens, before + 2); /* each was tried, once */
    }
    finish(&s, 2);
}

/* The peer may have run it: nobody else gets it. */
static void test_what_has_begun_is_not_repeated(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    upstreams[0].loses = true;
    run_one(&s, "lost");
    assert_int_equal(upstreams[1].n_opens, 0);
    finish(&s, 2);
}

/* A peer that goes down refuses a call before its handler starts: the next one gets it, and it has a pause. */
static void test_a_refused_call_goes_on(void **state) {
    (void)state;
    setting s;
    begin(&s, 3);
    upstreams[1].refuses = true;
    for (int i = 0; i < 9; i++)
        run_one(&s, "\"ok\"");
    assert_int_equal(upstreams[1].n_opens, 1);
    assert_int_equal(upstreams[0].n_opens + upstreams[2].n_opens, 9);
    upstreams[0].refuses = upstreams[2].refuses = true;
    run_one(&s, "going down");
    assert_true(caller.fault.refused); /* no handler was started anywhere: the caller may try another gateway */
    finish(&s, 3);
}

static void refuse_now(upstream_side *f) {
    ew_call *call = f->call;
    f->call = NULL;
    ew__call_fault(call, &(ew_fault){.status = EW_STATUS_UNAVAILABLE, .message = EW_STR("no"), .refused = true});
}

/* An upstream that has sent a chunk has started the handler, whatever it says afterwards. */
static void test_a_call_with_chunks_stays(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    make(&s);
    open_inbound(&s);
    assert_int_equal(ew__call_chunk_valid(upstreams[0].call, EW_STR("1")), EW_OK);
    refuse_now(&upstreams[0]);
    assert_int_equal(caller.n_ends, 1);
    assert_int_equal(upstreams[1].n_opens, 0);
    finish(&s, 2);
}

/* Input waits until an upstream takes it; a call whose input was handed over stays where it is. */
static void test_input_and_the_next_upstream(void **state) {
    (void)state;
    setting s;
    for (int taken = 0; taken < 3; taken++) {
        begin(&s, 2);
        ew_call *inbound = make(&s);
        inbound->has_input = true;
        open_inbound(&s);
        if (taken != 2) {
            (void)ew__call_input(inbound, EW_STR("1"));
            (void)ew__call_input(inbound, EW_STR("2"));
        }
        ew__call_input_end(inbound);
        assert_int_equal(upstreams[0].n_inputs + upstreams[0].n_input_ends, 0);
        if (taken)
            ew__call_input_room(upstreams[0].call);
        refuse_now(&upstreams[0]);
        assert_int_equal(caller.n_ends, taken != 0);
        assert_int_equal(upstreams[1].n_opens, taken == 0);
        if (taken == 0) {
            ew__call_input_room(upstreams[1].call);
            assert_string_equal(upstreams[1].inputs, "1,2,");
            assert_int_equal(upstreams[1].n_input_ends, 1);
            upstream_done(&upstreams[1], EW_STR("3"));
        }
        finish(&s, 2);
    }
}

static void test_a_cancelled_call_goes_nowhere_else(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    make(&s);
    open_inbound(&s);
    upstreams[0].call->outgoing.begun = false; /* it waits for a connection */
    ew__call_cancel(caller.call, EW__CANCEL_ASKED);
    ew_call *call = upstreams[0].call;
    ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("away"));
    assert_int_equal(caller.n_ends, 1);
    assert_int_equal(upstreams[1].n_opens, 0);
    finish(&s, 2);
}

/* ---- memory, and any order ---- */

static void test_no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 12; n++) {
        setting s;
        begin(&s, 1);
        ew_call *inbound = make(&s);
        inbound->has_input = true;
        ew__test_env_fail_at(&s.w.env, n, false);
        open_inbound(&s);
        if (caller.n_ends == 0)
            (void)ew__call_input(inbound, EW_STR("1"));
        ew__test_env_fail_at(&s.w.env, 0, false);
        if (upstreams[0].call)
            upstream_done(&upstreams[0], EW_STR("1"));
        assert_int_equal(caller.n_ends, 1);
        finish(&s, 1);
    }
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void do_something(setting *s, uint32_t what) {
    ew_call *inbound = caller.call;
    upstream_side *f = upstreams[0].call ? &upstreams[0] : &upstreams[1];
    caller.full = (what & 64) != 0;
    f->input_full = (what & 128) != 0;
    switch (what % 10) {
    case 0:
        ew__call_cancel(inbound, EW__CANCEL_ASKED);
        break;
    case 1:
    case 2:
        if (f->call)
            (void)ew__call_chunk_valid(f->call, EW_STR("1"));
        break;
    case 3:
    case 4:
        (void)ew__call_input(inbound, EW_STR("1"));
        break;
    case 5:
        ew__call_input_end(inbound);
        break;
    case 6:
        if (f->call)
            ew__call_input_room(f->call);
        break;
    case 7:
        ew__call_room(inbound);
        break;
    case 8:
        if (f->call && what & 256)
            upstream_done(f, EW_STR("1"));
        break;
    default:
        world_advance(&s->w, 10);
    }
}

static void test_any_order(void **state) {
    (void)state;
    for (uint32_t run = 1; run <= 3000; run++) {
        setting s;
        uint32_t seed = run;
        begin(&s, 2);
        upstreams[run & 1].unreachable = run % 3 == 0;
        ew_call *inbound = make(&s);
        inbound->has_input = true;
        inbound->deadline = s.w.executor.now + EW__MS(200);
        open_inbound(&s);
        for (int i = 0; i < 40; i++)
            do_something(&s, next_random(&seed));
        for (uint32_t i = 0; i < 2; i++)
            if (upstreams[i].call)
                upstream_fail(&upstreams[i], EW_STATUS_ABORTED, "over");
        assert_int_equal(caller.n_ends, 1);
        assert_true(upstreams[0].n_input_ends + upstreams[1].n_input_ends <= 1);
        finish(&s, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_go_round),
        cmocka_unit_test(test_one_that_is_away_is_passed_over),
        cmocka_unit_test(test_all_are_away),
        cmocka_unit_test(test_what_has_begun_is_not_repeated),
        cmocka_unit_test(test_a_refused_call_goes_on),
        cmocka_unit_test(test_a_call_with_chunks_stays),
        cmocka_unit_test(test_input_and_the_next_upstream),
        cmocka_unit_test(test_a_cancelled_call_goes_nowhere_else),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
