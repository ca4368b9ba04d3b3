/*
 * tests/unit/io/test_loop.c: when a loop looks for what comes next instead of sleeping. The clock is the test's; whether
 * a loop would sleep is asked of libuv.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/handle.h"
#include "support/fail_env.h"

#define US(n) ((uint64_t)(n)*1000)

typedef struct pair {
    ew__test_env env;
    ew_limits limits;
    atomic_bool taken;
    ew__loop loop[2];
} pair;

static int setup(void **state) {
    static pair p;
    memset(&p, 0, sizeof p);
    ew__test_env_init(&p.env, 1);
    p.limits.spin_us = 100;
    ew_limits_complete(&p.limits);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ew__loop_init(&p.loop[i], &p.env.env, &p.limits, NULL), EW_OK);
        ew__loop_adopt_thread(&p.loop[i]);
        p.loop[i].spin.taken = &p.taken;
        p.loop[i].spin.last_event = p.env.now_ns;
    }
    *state = &p;
    return 0;
}

static int teardown(void **state) {
    pair *p = *state;
    for (int i = 0; i < 2; i++) {
        ew__loop_close(&p->loop[i], NULL, NULL);
        while (p->loop[i].n_handles > 0)
            (void)uv_run(p->loop[i].uv, UV_RUN_NOWAIT);
        ew__loop_done(&p->loop[i]);
    }
    assert_false(p->taken);
    return 0;
}

/* A turn in which `reads` streams were read from. Whether the next one begins without sleeping. */
static bool turn(ew__loop *loop, uint32_t reads) {
    loop->n_read = reads;
    (void)uv_run(loop->uv, UV_RUN_NOWAIT); /* before_wait, then after_wait, which reads the clock */
    return uv_backend_timeout(loop->uv) == 0;
}

/* The clock goes on by that much, and the loop notices it. */
static bool turn_after(pair *p, ew__loop *loop, uint64_t ns, uint32_t reads) {
    ew__test_env_advance(&p->env, ns);
    (void)ew__executor_read_clock(&loop->executor);
    return turn(loop, reads);
}

static void test_io_loop__sleeps_unless_a_call_was_sent_on(void **state) {
    pair *p = *state;
    assert_false(turn(&p->loop[0], 0));
    assert_false(turn(&p->loop[0], 1));
    ew__loop_expect(&p->loop[0]);
    assert_true(turn(&p->loop[0], 1));
    assert_true(p->taken);
}

static void test_io_loop__looks_for_the_time_given(void **state) {
    pair *p = *state;
    ew__loop *loop = &p->loop[0];
    ew__loop_expect(loop);
    assert_true(turn(loop, 1));
    assert_true(turn_after(p, loop, US(99), 0));
    assert_false(turn_after(p, loop, US(1), 0));
    assert_false(p->taken);
    assert_false(turn(loop, 1)); /* in vain: not again before the next call is sent on */
}

static void test_io_loop__an_answer_in_time_is_followed_by_a_look(void **state) {
    pair *p = *state;
    ew__loop *loop = &p->loop[0];
    ew__loop_expect(loop);
    assert_true(turn(loop, 1));
    for (int i = 0; i < 20; i++)
        assert_true(turn_after(p, loop, US(60), 1));
    assert_true(loop->spin.score > 0);
}

static void test_io_loop__gives_up_where_answers_take_long(void **state) {
    pair *p = *state;
    ew__loop *loop = &p->loop[0];
    int looks = 0;
    for (int i = 0; i < 50; i++) {
        ew__loop_expect(loop);
        looks += turn_after(p, loop, US(1000), 1);
        assert_false(turn_after(p, loop, US(100), 0));
    }
    assert_true(looks <= 2);
}

static void test_io_loop__looks_again_when_sleeps_are_short(void **state) {
    pair *p = *state;
    ew__loop *loop = &p->loop[0];
    loop->spin.score = -8;
    bool looks = false;
    for (int i = 0; i < 8; i++) {
        ew__loop_expect(loop);
        assert_false(looks);
        looks = turn_after(p, loop, US(150), 1); /* our own waking up is part of it */
    }
    assert_true(looks);
}

static void test_io_loop__one_at_a_time(void **state) {
    pair *p = *state;
    ew__loop_expect(&p->loop[0]);
    ew__loop_expect(&p->loop[1]);
    assert_true(turn(&p->loop[0], 1));
    assert_false(turn(&p->loop[1], 1));
    assert_false(turn_after(p, &p->loop[0], US(100), 0));
    assert_true(turn_after(p, &p->loop[1], 0, 1));
}

static void test_io_loop__never_where_nobody_may(void **state) {
    pair *p = *state;
    p->loop[0].spin.taken = NULL;
    ew__loop_expect(&p->loop[0]);
    assert_false(turn(&p->loop[0], 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_io_loop__##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(sleeps_unless_a_call_was_sent_on),
                                       TEST(looks_for_the_time_given),
                                       TEST(an_answer_in_time_is_followed_by_a_look),
                                       TEST(gives_up_where_answers_take_long),
                                       TEST(looks_again_when_sleeps_are_short),
                                       TEST(one_at_a_time),
                                       TEST(never_where_nobody_may)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
