/*
 * tests/unit/gateway/test_broadcast.c: what one loop of an app has to tell the others: it arrives, in order, where somebody
 * listens, has limits, and leaves nothing behind when the loops end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/app.h"
#include "support/fail_env.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOPS_MAX 3

/* ---- a wire that only listens ---- */

typedef struct ear {
    atomic_int n;        /* letters */
    atomic_int n_wrong;  /* on another loop's thread, out of order, or with another principal */
    atomic_size_t bytes; /* of all of them */
    char text[64];       /* the last */
} ear;

/* The principal of every message. */
static const ew__principal somebody = {.kind = EW__WHO_TOKEN, .digest = {7, 8, 9}};

static void told(void *scratch, ew__executor *executor, const ew__principal *sender, ew_str text) {
    ear *e = scratch;
    const ew__app_loop *loop = ew__container_of(ew__loop_of(executor), ew__app_loop, loop);
    char number[16];
    (void)snprintf(number, sizeof number, "%d", atomic_load(&e->n));
    bool here = ew__executor_here(executor) && loop->server.scratches.memory[0] == scratch;
    bool in_order = text.len == 0 || text.ptr[0] == 'x' || ew__str_is(text, ew_str_from(number));
    if (!here || !in_order || !ew__principal_equal(sender, &somebody))
        atomic_fetch_add(&e->n_wrong, 1);
    size_t n = text.len < sizeof e->text - 1 ? text.len : sizeof e->text - 1;
    memcpy(e->text, text.ptr, n);
    e->text[n] = '\0';
    atomic_fetch_add(&e->bytes, text.len);
    atomic_fetch_add(&e->n, 1);
}

static const ew__wire listening = {.name = "listening", .scratch_size = sizeof(ear), .on_broadcast = told};
static const ew__wire deaf = {.name = "deaf"};

/* ---- an app, and work on its loops ---- */

typedef struct world {
    ew__test_env env;
    ew_app *app;
    ear *ears[LOOPS_MAX];
} world;

typedef struct errand {
    ew__task task;
    ew__app_loop *loop;
    ear *made;
    atomic_bool begun, done;
    atomic_bool *held; /* it ends when this is false */
} errand;

static bool becomes(atomic_int *value, int wanted) {
    for (int i = 0; i < 3000 && atomic_load(value) != wanted; i++)
        (void)usleep(10000);
    return atomic_load(value) == wanted;
}

static void wait_for(atomic_bool *flag) {
    for (int i = 0; i < 3000 && !atomic_load(flag); i++)
        (void)usleep(10000);
    assert_true(atomic_load(flag));
}

static void make_ear(ew__task *task) {
    errand *e = ew__container_of(task, errand, task);
    e->made = ew__scratch_get(&e->loop->server.scratches, e->loop->app->env, &listening);
    atomic_store(&e->done, true);
}

static void hold(ew__task *task) {
    errand *e = ew__container_of(task, errand, task);
    atomic_store(&e->begun, true);
    for (int i = 0; i < 3000 && atomic_load(e->held); i++)
        (void)usleep(10000);
    atomic_store(&e->done, true);
}

static void run_there(errand *e, ew__app_loop *loop, void (*fn)(ew__task *task)) {
    e->loop = loop;
    e->task.fn = fn;
    ew__executor_post(&loop->loop.executor, &e->task);
}

static void world_init(world *w, unsigned n_loops) {
    memset(w, 0, sizeof *w);
    ew__test_env_init(&w->env, 1);
    w->env.env.now_ns = ew_env_default()->now_ns; /* it does not look at ud */
    w->app = ew_app_new_with("test", &(ew_app_options){.env = &w->env.env, .threads = n_loops});
    assert_non_null(w->app);
    assert_int_equal(ew_app_listen(w->app, "http=127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(w->app), EW_OK);
}

/* That loop has a connection of the wire, as far as letters are concerned. */
static void listen_on(world *w, size_t i) {
    errand e = {0};
    run_there(&e, &w->app->loops[i], make_ear);
    wait_for(&e.done);
    assert_non_null(e.made);
    w->ears[i] = e.made;
}

static void world_done(world *w) {
    (void)ew_app_free(w->app);
    assert_int_equal(ew__test_env_live_blocks(&w->env), 0);
}

static bool tell_one(world *w, size_t from, unsigned to, const ew__wire *wire, ew_str text) {
    return w->app->broadcast.send(&w->app->broadcast, &w->app->loops[from].loop.executor, wire, to, &somebody, text);
}

static bool tell(world *w, size_t from, const ew__wire *wire, ew_str text) {
    return tell_one(w, from, EW__ALL_OTHER_LOOPS, wire, text);
}

static bool tell_number(world *w, size_t from, int number) {
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    return tell(w, from, &listening, ew_str_from(text));
}

static uint64_t dropped(const world *w, size_t i) { return atomic_load(&w->app->loops[i].calls.dropped); }

/* ---- tests ---- */

static void test_broadcast__only_among_several(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 2; n++) {
        world w;
        world_init(&w, n);
        for (unsigned i = 0; i < n; i++)
            assert_ptr_equal(w.app->loops[i].server.listeners[0].site.broadcast, n > 1 ? &w.app->broadcast : NULL);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(w.app->loops[i].server.listeners[0].site.loop, i);
        world_done(&w);
    }
}

static void test_broadcast__told(void **state) {
    world w;
    (void)state;
    world_init(&w, 3);
    listen_on(&w, 0);
    listen_on(&w, 1);
    assert_true(tell(&w, 0, &listening, EW_STR("0")));
    assert_true(becomes(&w.ears[1]->n, 1));
    assert_string_equal(w.ears[1]->text, "0");
    assert_int_equal(atomic_load(&w.ears[0]->n), 0);
    assert_true(tell(&w, 2, &listening, EW_STR("xyz")));
    assert_false(tell(&w, 0, &deaf, EW_STR("nobody minds")));
    assert_true(becomes(&w.ears[0]->n, 1));
    assert_true(becomes(&w.ears[1]->n, 2));
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(w.ears[i]->text, "xyz");
        assert_int_equal(atomic_load(&w.ears[i]->n_wrong), 0);
    }
    /* where nobody listens nothing was made for it */
    assert_null(ew__scratch_find(&w.app->loops[2].server.scratches, &listening));
    assert_int_equal(dropped(&w, 0) + dropped(&w, 1) + dropped(&w, 2), 0);
    world_done(&w);
}

/* One loop only, as its connections call it. */
static void test_broadcast__one_of_them(void **state) {
    world w;
    (void)state;
    world_init(&w, 3);
    for (size_t i = 0; i < 3; i++)
        listen_on(&w, i);
    assert_true(tell_one(&w, 0, 2, &listening, EW_STR("0")));
    assert_true(becomes(&w.ears[2]->n, 1));
    assert_true(tell_one(&w, 1, 1, &listening, EW_STR("x"))); /* its own, as a letter like any other */
    assert_true(becomes(&w.ears[1]->n, 1));
    assert_false(tell_one(&w, 0, 3, &listening, EW_STR("x")));
    assert_true(tell(&w, 1, &listening, EW_STR("xx"))); /* behind them: what was not told by now will not be */
    assert_true(becomes(&w.ears[0]->n, 1));
    assert_true(becomes(&w.ears[2]->n, 2));
    assert_int_equal(atomic_load(&w.ears[1]->n), 1);
    assert_int_equal(dropped(&w, 0) + dropped(&w, 1) + dropped(&w, 2), 0);
    world_done(&w);
}

static void test_broadcast__in_order(void **state) {
    world w;
    (void)state;
    world_init(&w, 2);
    listen_on(&w, 1);
    for (int i = 0; i < 300; i++)
        assert_true(tell_number(&w, 0, i));
    assert_true(becomes(&w.ears[1]->n, 300));
    assert_int_equal(atomic_load(&w.ears[1]->n_wrong), 0);
    world_done(&w);
}

/* How many there may be. */
static void test_broadcast__limits(void **state) {
    atomic_bool held = true;
    errand e = {.held = &held};
    world w;
    (void)state;
    world_init(&w, 2);
    listen_on(&w, 1);
    run_there(&e, &w.app->loops[1], hold);
    wait_for(&e.begun);
    for (int i = 0; i < EW__BROADCASTS_MAX; i++)
        assert_true(tell_number(&w, 0, i));
    assert_int_equal(dropped(&w, 0), 0);
    for (int i = 0; i < 7; i++)
        assert_false(tell_number(&w, 0, i));
    assert_int_equal(dropped(&w, 0), 7);
    assert_int_equal(atomic_load(&w.ears[1]->n), 0);
    atomic_store(&held, false);
    assert_true(becomes(&w.ears[1]->n, EW__BROADCASTS_MAX));
    assert_true(tell(&w, 0, &listening, EW_STR("x"))); /* there is room again */
    assert_true(becomes(&w.ears[1]->n, EW__BROADCASTS_MAX + 1));
    assert_int_equal(atomic_load(&w.ears[1]->n_wrong), 0);
    assert_int_equal(dropped(&w, 0), 7);
    assert_int_equal(dropped(&w, 1), 0);
    world_done(&w);
}

/* How long each and all may be. */
static void test_broadcast__bytes(void **state) {
    const size_t frame = (size_t)16 * 1024 * 1024, most = frame + EW__BROADCAST_BYTES_MORE;
    atomic_bool held = true;
    errand e = {.held = &held};
    world w;
    char *text = malloc(most + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', most + 1);
    world_init(&w, 2);
    listen_on(&w, 1);
    run_there(&e, &w.app->loops[1], hold);
    wait_for(&e.begun);
    assert_false(tell(&w, 0, &listening, ew__str(text, most + 1)));
    for (int i = 0; i < 3; i++)
        assert_true(tell(&w, 0, &listening, ew__str(text, most)));
    assert_false(tell(&w, 0, &listening, ew__str(text, most))); /* 64 MiB, all together */
    assert_true(tell(&w, 0, &listening, ew__str(text, EW__BROADCASTS_BYTES_MAX - 3 * most)));
    assert_false(tell(&w, 0, &listening, EW_STR("x")));
    assert_int_equal(dropped(&w, 0), 3);
    atomic_store(&held, false);
    assert_true(becomes(&w.ears[1]->n, 4));
    assert_int_equal(atomic_load(&w.ears[1]->bytes), EW__BROADCASTS_BYTES_MAX);
    assert_true(tell(&w, 0, &listening, EW_STR("x")));
    assert_true(becomes(&w.ears[1]->n, 5));
    world_done(&w);
    free(text);
}

static void test_broadcast__no_memory(void **state) {
    world w;
    (void)state;
    world_init(&w, 2);
    listen_on(&w, 1);
    ew__test_env_fail_at(&w.env, 1, true);
    assert_false(tell_number(&w, 0, 0));
    ew__test_env_fail_at(&w.env, 0, false);
    assert_int_equal(dropped(&w, 0), 1);
    assert_true(tell_number(&w, 0, 0));
    assert_true(becomes(&w.ears[1]->n, 1));
    world_done(&w);
}

/* Letters that nobody opens: under way when a loop ends, and written to one that has ended. */
static void test_broadcast__the_end(void **state) {
    world w;
    (void)state;
    for (int round = 0; round < 20; round++) {
        world_init(&w, 2);
        listen_on(&w, 1);
        for (int i = 0; i < 100; i++)
            assert_true(tell_number(&w, 0, i));
        world_done(&w);
    }
    world_init(&w, 2);
    listen_on(&w, 1);
    ew_app_stop(w.app);
    size_t running = 2;
    for (int i = 0; i < 3000 && running > 0; i++) {
        (void)usleep(10000);
        pthread_mutex_lock(&w.app->lifecycle.lock);
        running = w.app->lifecycle.running;
        pthread_mutex_unlock(&w.app->lifecycle.lock);
    }
    assert_int_equal(running, 0);
    for (int i = 0; i < 5; i++)
        assert_true(tell_number(&w, 0, i));
    assert_int_equal(w.app->loops[1].broadcasts.mailbox.n, 5);
    assert_int_equal(atomic_load(&w.ears[1]->n), 0);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast__only_among_several),
        cmocka_unit_test(test_broadcast__told),
        cmocka_unit_test(test_broadcast__one_of_them),
        cmocka_unit_test(test_broadcast__in_order),
        cmocka_unit_test(test_broadcast__limits),
        cmocka_unit_test(test_broadcast__bytes),
        cmocka_unit_test(test_broadcast__no_memory),
        cmocka_unit_test(test_broadcast__the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
