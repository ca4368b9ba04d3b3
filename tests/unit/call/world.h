/*
 * tests/unit/call/world.h: an executor for tests of calls: virtual clock, counting memory, and tasks from real threads.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_CALL_WORLD_H
#define EW_TESTS_CALL_WORLD_H

#include "call/call.h"
#include "support/fail_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct world {
    ew__executor executor;
    ew__call_context calls;
    ew__test_env env;
    ew_limits limits;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t posted;
    bool woken;
} world;

static bool world_here(const ew__executor *executor) {
    const world *w = (const world *)(const void *)executor;
    return pthread_equal(pthread_self(), w->thread) != 0;
}

static void world_wake(ew__executor *executor) {
    world *w = (world *)(void *)executor;
    pthread_mutex_lock(&w->lock);
    w->woken = true;
    pthread_cond_signal(&w->posted);
    pthread_mutex_unlock(&w->lock);
}

static const ew__executor_ops world_ops = {.here = world_here, .wake = world_wake};

static inline void world_init(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    ew__test_env_init(&w->env, seed);
    ew_limits_complete(&w->limits);
    w->thread = pthread_self();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->posted, NULL);
    w->executor.ops = &world_ops;
    ew__executor_init(&w->executor, &w->env.env, &w->limits);
    ew__call_context_init(&w->calls, &w->executor);
}

/* Runs the tasks that were posted; wait: at least one by another thread. */
static inline void world_run_tasks(world *w, bool wait) {
    do {
        pthread_mutex_lock(&w->lock);
        while (wait && !w->woken && !w->executor.has_own_tasks)
            pthread_cond_wait(&w->posted, &w->lock);
        w->woken = false;
        pthread_mutex_unlock(&w->lock);
    } while (!ew__executor_run_tasks(&w->executor) && wait);
}

static inline void world_advance(world *w, uint64_t ms) {
    ew__test_env_advance(&w->env, EW__MS(ms));
    ew__timers_run(&w->executor.timers, ew__executor_read_clock(&w->executor));
}

/* Everything must be back. */
static inline void world_done(world *w) {
    assert_int_equal(w->executor.calls->live, 0);
    assert_true(ew__timers_next(&w->executor.timers) == EW__NEVER);
    ew__call_context_done(&w->calls);
    ew__executor_done(&w->executor);
    assert_int_equal(ew__test_env_live_blocks(&w->env), 0);
    pthread_cond_destroy(&w->posted);
    pthread_mutex_destroy(&w->lock);
}

#endif
