/*
 * tests/unit/base/test_timer.c: the timer heap, by hand and against a model.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/timer.h"
#include "base/util.h"
#include "support/fail_env.h"

/* ---- one scene: timers that write down when they ran ---- */

typedef struct scene scene;

typedef struct item {
    ew__timer timer;
    scene *scene;
    int id;
} item;

struct scene {
    ew__test_env t;
    ew__timers timers;
    item items[64];
    int ran[256];
    int n_ran;
};

static void note(ew__timer *timer, uint64_t now) {
    item *it = ew__container_of(timer, item, timer);
    assert_false(ew__timer_active(timer));
    assert_true(timer->at <= now);
    assert_true(it->scene->n_ran < 256);
    it->scene->ran[it->scene->n_ran++] = it->id;
}

static void begin(scene *s) {
    memset(s, 0, sizeof(*s));
    ew__test_env_init(&s->t, 7);
    ew__timers_init(&s->timers, &s->t.env);
    for (int i = 0; i < 64; i++) {
        s->items[i].scene = s;
        s->items[i].id = i;
    }
}

static void end(scene *s) {
    ew__timers_done(&s->timers);
    for (int i = 0; i < 64; i++) {
        assert_false(ew__timer_active(&s->items[i].timer));
    }
    assert_int_equal(ew__test_env_live_blocks(&s->t), 0);
}

static void set_fn(scene *s, int id, uint64_t at, ew__timer_fn fn) {
    assert_int_equal(ew__timer_set(&s->timers, &s->items[id].timer, at, fn), EW_OK);
    assert_true(ew__timer_active(&s->items[id].timer));
}

static void set(scene *s, int id, uint64_t at) { set_fn(s, id, at, note); }

static void expect_ran(scene *s, const int *ids, int n) {
    assert_int_equal(s->n_ran, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(s->ran[i], ids[i]);
    }
    s->n_ran = 0;
}

#define EXPECT_RAN(s, ...) expect_ran(s, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void test_base_timer__runs_some(void **state) {
    (void)state;
    scene s;
    begin(&s);
    for (int i = 0; i < 5; i++) {
        set(&s, i, 10);
    }
    ew__timers_run_some(&s.timers, 10, 0);
    assert_int_equal(s.n_ran, 0);
    ew__timers_run_some(&s.timers, 10, 2);
    EXPECT_RAN(&s, 0, 1);
    set(&s, 0, 10); /* goes behind those that still wait */
    assert_int_equal(ew__timers_next(&s.timers), 10);
    ew__timers_run_some(&s.timers, 10, 3);
    EXPECT_RAN(&s, 2, 3, 4);
    ew__timers_run_some(&s.timers, 10, 3);
    EXPECT_RAN(&s, 0);
    end(&s);
}

static void test_base_timer__runs_in_order(void **state) {
    (void)state;
    scene s;
    begin(&s);
    assert_true(ew__timers_next(&s.timers) == EW__NEVER);
    ew__timers_run(&s.timers, 1000);
    set(&s, 1, 30);
    set(&s, 2, 10);
    set(&s, 3, 20);
    set(&s, 4, 10);
    assert_int_equal(ew__timers_next(&s.timers), 10);
    ew__timers_run(&s.timers, 9);
    assert_int_equal(s.n_ran, 0);
    ew__timers_run(&s.timers, 10);
    EXPECT_RAN(&s, 2, 4);
    assert_int_equal(ew__timers_next(&s.timers), 20);
    ew__timers_run(&s.timers, 11);
    assert_int_equal(s.n_ran, 0);
    ew__timers_run(&s.timers, 100);
    EXPECT_RAN(&s, 3, 1);
    assert_true(ew__timers_next(&s.timers) == EW__NEVER);
    end(&s);
}

static void test_base_timer__same_time_in_order_of_setting(void **state) {
    (void)state;
    scene s;
    begin(&s);
    for (int i = 0; i < 60; i++) {
        set(&s, (i * 7) % 60, 5);
    }
    set(&s, 0, 5); /* moved: now it is the last */
    ew__timers_run(&s.timers, 5);
    assert_int_equal(s.n_ran, 60);
    for (int i = 0; i < 59; i++) {
        assert_int_equal(s.ran[i], ((i + 1) * 7) % 60);
    }
    assert_int_equal(s.ran[59], 0);
    end(&s);
}

static void test_base_timer__moves_and_stops(void **state) {
    (void)state;
    scene s;
    begin(&s);
    ew__timer_stop(&s.timers, &s.items[0].timer);
    set(&s, 1, 10);
    set(&s, 2, 20);
    set(&s, 3, 30);
    set(&s, 1, 25);
    set(&s, 3, 5);
    ew__timer_stop(&s.timers, &s.items[2].timer);
    ew__timer_stop(&s.timers, &s.items[2].timer);
    assert_false(ew__timer_active(&s.items[2].timer));
    assert_int_equal(ew__timers_next(&s.timers), 5);
    ew__timers_run(&s.timers, EW__NEVER - 1);
    EXPECT_RAN(&s, 3, 1);
    set(&s, 1, EW__NEVER);
    assert_true(ew__timers_next(&s.timers) == EW__NEVER);
    ew__timers_run(&s.timers, EW__NEVER - 1);
    assert_int_equal(s.n_ran, 0);
    end(&s);
}

/* ---- callbacks that change other timers ---- */

static void again_at_once(ew__timer *timer, uint64_t now) {
    note(timer, now);
    scene *s = ew__container_of(timer, item, timer)->scene;
    set_fn(s, 1, now, again_at_once);
    set_fn(s, 5, 0, note); /* earlier than all that is still due */
    set_fn(s, 6, now + 1, note);
    assert_int_equal(ew__timers_next(&s->timers), 0);
}

static void test_base_timer__set_by_a_callback_waits_for_the_next_run(void **state) {
    (void)state;
    scene s;
    begin(&s);
    set_fn(&s, 1, 10, again_at_once);
    set(&s, 2, 11);
    set(&s, 3, 12);
    ew__timers_run(&s.timers, 12);
    EXPECT_RAN(&s, 1, 2, 3);
    assert_int_equal(ew__timers_next(&s.timers), 0);
    ew__timers_run(&s.timers, 12); /* the clock need not have moved */
    EXPECT_RAN(&s, 5, 1);
    ew__timer_stop(&s.timers, &s.items[1].timer);
    ew__timers_run(&s.timers, 13);
    EXPECT_RAN(&s, 5, 6);
    end(&s);
}

static void move_others(ew__timer *timer, uint64_t now) {
    note(timer, now);
    scene *s = ew__container_of(timer, item, timer)->scene;
    ew__timer_stop(&s->timers, &s->items[2].timer); /* due in this run */
    set(s, 3, now);                                 /* due in this run, set again: the next one */
    set(s, 4, now + 100);                           /* due in this run, moved away */
    set(s, 7, now - 1);
    set(s, 8, now - 2);
    ew__timer_stop(&s->timers, &s->items[7].timer); /* late and stopped */
    set(s, 8, now + 50);                            /* late and moved away */
    set(s, 9, now - 3);
    set(s, 9, now - 1);                     /* late and moved */
    ew__timers_run(&s->timers, now + 1000); /* nothing */
}

static void test_base_timer__callback_stops_and_moves_due_ones(void **state) {
    (void)state;
    scene s;
    begin(&s);
    set_fn(&s, 1, 10, move_others);
    for (int i = 2; i <= 6; i++) {
        set(&s, i, 10);
    }
    ew__timers_run(&s.timers, 20);
    EXPECT_RAN(&s, 1, 5, 6);
    ew__timers_run(&s.timers, 20);
    EXPECT_RAN(&s, 9, 3);
    ew__timers_run(&s.timers, 1000);
    EXPECT_RAN(&s, 8, 4);
    end(&s);
}

static void late_ones_and_growth(ew__timer *timer, uint64_t now) {
    note(timer, now);
    scene *s = ew__container_of(timer, item, timer)->scene;
    for (int i = 1; i < 60; i++) {
        set(s, i, i % 2 == 0 ? now : now + 1); /* the array grows while late ones lie at its end */
    }
    for (int i = 1; i < 60; i += 3) {
        ew__timer_stop(&s->timers, &s->items[i].timer);
    }
}

static void test_base_timer__grows_during_a_run(void **state) {
    (void)state;
    scene s;
    begin(&s);
    set_fn(&s, 0, 1, late_ones_and_growth);
    ew__timers_run(&s.timers, 1);
    EXPECT_RAN(&s, 0);
    for (uint64_t now = 1; now <= 2; now++) {
        ew__timers_run(&s.timers, now);
        int k = 0;
        for (int i = now == 1 ? 2 : 1; i < 60; i += 2) {
            if (i % 3 != 1) {
                assert_int_equal(s.ran[k++], i);
            }
        }
        assert_int_equal(s.n_ran, k);
        s.n_ran = 0;
    }
    end(&s);
}

static void done_inside(ew__timer *timer, uint64_t now) {
    note(timer, now);
    scene *s = ew__container_of(timer, item, timer)->scene;
    set(s, 1, now);
    set(s, 2, now + 1);
    ew__timers_done(&s->timers);
}

static void test_base_timer__done_inside_a_run(void **state) {
    (void)state;
    scene s;
    begin(&s);
    set_fn(&s, 0, 1, done_inside);
    set(&s, 3, 1);
    ew__timers_run(&s.timers, 5);
    EXPECT_RAN(&s, 0);
    set(&s, 4, 9);
    ew__timers_run(&s.timers, 9);
    EXPECT_RAN(&s, 4);
    end(&s);
}

/* ---- memory ---- */

static void test_base_timer__reserved_room_cannot_fail(void **state) {
    (void)state;
    scene s;
    begin(&s);
    assert_int_equal(ew__timers_reserve(&s.timers, 40), EW_OK);
    assert_int_equal(ew__timers_reserve(&s.timers, 10), EW_OK);
    ew__test_env_fail_at(&s.t, 1, true);
    for (int i = 0; i < 40; i++) {
        set(&s, i, (uint64_t)i);
    }
    assert_int_equal(ew__timer_set(&s.timers, &s.items[40].timer, 0, note), EW_ENOMEM);
    assert_false(ew__timer_active(&s.items[40].timer));
    set(&s, 3, 100); /* moving needs no memory */
    assert_int_equal(ew__timers_reserve(&s.timers, 41), EW_ENOMEM);
    assert_int_equal(ew__timers_reserve(&s.timers, UINT32_MAX), EW_ENOMEM);
    ew__test_env_fail_at(&s.t, 0, false);
    assert_int_equal(ew__timers_reserve(&s.timers, UINT32_MAX), EW_ENOMEM);
    ew__timers_run(&s.timers, 100);
    assert_int_equal(s.n_ran, 40);
    end(&s);
}

static void set_all_again(ew__timer *timer, uint64_t now) {
    note(timer, now);
    scene *s = ew__container_of(timer, item, timer)->scene;
    for (int i = 0; i < 8; i++) {
        set(s, i, i % 2 == 0 ? now : now + 1);
    }
}

static void test_base_timer__setting_again_in_a_run_cannot_fail(void **state) {
    (void)state;
    scene s;
    begin(&s);
    assert_int_equal(ew__timers_reserve(&s.timers, 8), EW_OK);
    ew__test_env_fail_at(&s.t, 1, true);
    for (int i = 0; i < 8; i++) {
        set_fn(&s, i, 5, i == 0 ? set_all_again : note);
    }
    ew__timers_run(&s.timers, 5);
    EXPECT_RAN(&s, 0);
    ew__timers_run(&s.timers, 5);
    EXPECT_RAN(&s, 0, 2, 4, 6);
    ew__timers_run(&s.timers, 6);
    EXPECT_RAN(&s, 1, 3, 5, 7);
    end(&s);
}

static void test_base_timer__every_allocation_may_fail(void **state) {
    (void)state;
    bool passed = false;
    for (uint64_t n = 1; !passed; n++) {
        scene s;
        begin(&s);
        ew__test_env_fail_at(&s.t, n, false);
        for (int i = 0; i < 64; i++) {
            if (ew__timer_set(&s.timers, &s.items[i].timer, (uint64_t)(64 - i), note) != EW_OK) {
                assert_false(ew__timer_active(&s.items[i].timer));
                set(&s, i, (uint64_t)(64 - i));
            }
        }
        passed = ew__test_env_failed(&s.t) == 0;
        ew__timers_run(&s.timers, 64);
        assert_int_equal(s.n_ran, 64);
        for (int i = 0; i < 64; i++) {
            assert_int_equal(s.ran[i], 63 - i);
        }
        s.n_ran = 0;
        end(&s);
        assert_true(n < 100);
    }
}

/* ---- a model: the next to run is the first of all that were due before the run, by time and order of setting ---- */

enum { N_MODEL = 150 };

typedef struct model model;

typedef struct member {
    ew__timer timer;
    model *model;
    uint64_t at;
    uint64_t order;
    uint64_t run; /* in which it was set; 0 outside of one */
    bool set;
} member;

struct model {
    ew__test_env t;
    ew__rng rng;
    ew__timers timers;
    member *members[N_MODEL];
    uint64_t order;
    uint64_t now;
    uint64_t run;
    bool running;
    uint64_t n_ran;
};

static uint64_t chance(model *m, uint64_t n) { return (ew__rng_next(&m->rng) >> 11) % n; }

/* The member that must run next, or the earliest of all that are set when `all`; NULL when there is none. */
static member *model_first(const model *m, bool all) {
    member *first = NULL;
    for (int i = 0; i < N_MODEL; i++) {
        member *x = m->members[i];
        if (!x->set || (!all && (x->at > m->now || x->run == m->run))) {
            continue;
        }
        if (first == NULL || x->at < first->at || (x->at == first->at && x->order < first->order)) {
            first = x;
        }
    }
    return first;
}

static void change(model *m);

static void model_ran(ew__timer *timer, uint64_t now) {
    member *x = ew__container_of(timer, member, timer);
    model *m = x->model;
    assert_int_equal(now, m->now);
    assert_ptr_equal(x, model_first(m, false));
    assert_false(ew__timer_active(timer));
    x->set = false;
    m->n_ran++;
    for (uint64_t i = chance(m, 4); i > 0; i--) {
        change(m);
    }
}

static void member_new(model *m, int i) {
    m->members[i] = ew__zalloc(&m->t.env, sizeof(member));
    assert_non_null(m->members[i]);
    m->members[i]->model = m;
}

/* Sets, stops, or frees and makes anew one member. */
static void change(model *m) {
    int i = (int)chance(m, N_MODEL);
    member *x = m->members[i];
    uint64_t what = chance(m, 10);
    assert_int_equal(ew__timer_active(&x->timer), x->set);
    if (what < 6) {
        x->at = chance(m, 3) == 0 ? m->now : m->now + chance(m, 40) - (m->now > 10 ? 10 : 0);
        x->order = ++m->order;
        x->run = m->running ? m->run : 0;
        x->set = true;
        assert_int_equal(ew__timer_set(&m->timers, &x->timer, x->at, model_ran), EW_OK);
        return;
    }
    ew__timer_stop(&m->timers, &x->timer);
    x->set = false;
    if (what < 8) {
        ew__free(&m->t.env, x, sizeof(*x));
        member_new(m, i);
    }
}

static void model_run(model *m) {
    m->running = true;
    m->run++;
    ew__timers_run(&m->timers, m->now);
    assert_null(model_first(m, false));
    m->running = false;
}

static void test_base_timer__random_operations_against_a_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        model m;
        memset(&m, 0, sizeof(m));
        ew__test_env_init(&m.t, seed);
        ew__rng_init(&m.rng, &m.t.env);
        ew__timers_init(&m.timers, &m.t.env);
        for (int i = 0; i < N_MODEL; i++) {
            member_new(&m, i);
        }
        for (int step = 0; step < 3000; step++) {
            for (uint64_t i = chance(&m, 5); i > 0; i--) {
                change(&m);
            }
            const member *first = model_first(&m, true);
            assert_true(ew__timers_next(&m.timers) == (first == NULL ? EW__NEVER : first->at));
            m.now += chance(&m, 8);
            model_run(&m);
        }
        assert_true(m.n_ran > 1000);
        ew__timers_done(&m.timers);
        for (int i = 0; i < N_MODEL; i++) {
            assert_false(ew__timer_active(&m.members[i]->timer));
            ew__free(&m.t.env, m.members[i], sizeof(member));
        }
        assert_int_equal(ew__test_env_live_blocks(&m.t), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_timer__runs_some),
        cmocka_unit_test(test_base_timer__runs_in_order),
        cmocka_unit_test(test_base_timer__same_time_in_order_of_setting),
        cmocka_unit_test(test_base_timer__moves_and_stops),
        cmocka_unit_test(test_base_timer__set_by_a_callback_waits_for_the_next_run),
        cmocka_unit_test(test_base_timer__callback_stops_and_moves_due_ones),
        cmocka_unit_test(test_base_timer__grows_during_a_run),
        cmocka_unit_test(test_base_timer__done_inside_a_run),
        cmocka_unit_test(test_base_timer__reserved_room_cannot_fail),
        cmocka_unit_test(test_base_timer__setting_again_in_a_run_cannot_fail),
        cmocka_unit_test(test_base_timer__every_allocation_may_fail),
        cmocka_unit_test(test_base_timer__random_operations_against_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
