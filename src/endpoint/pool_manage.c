/*
 * endpoint/pool_manage.c: targets that are processes of ours: a call goes to the one that has the fewest. A call that
 * no process can take waits: for one to come up, or for room. It fails when every process has failed to come up while
 * it waited; a later one makes them try again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/runner.h"
#include <stdio.h>

typedef struct manage_pool {
    ew__pool core;
    unsigned n;
    unsigned turn; /* whose it is among those that have equally much to do */
    ew__runner *runners;
} manage_pool;

static manage_pool *self_of(const ew__pool *pool) {
    return (manage_pool *)(uintptr_t)ew__container_of(pool, const manage_pool, core);
}

/* ---- the queue ---- */

/* A process that has failed is tried again for calls that came after that. */
static void want(const ew__pool *pool, manage_pool *self) {
    const struct ew__pool_wait *newest =
        pool->queue.n ? EW__ITEM(pool->queue.calls.last, struct ew__pool_wait, node) : NULL;
    for (unsigned i = 0; i < self->n && newest; i++)
        if (newest->number > self->runners[i].failed_for)
            ew__runner_want(&self->runners[i]);
}

static ew__runner *least_busy(manage_pool *self) {
    ew__runner *best = NULL;
    uint32_t most = 0;
    for (unsigned i = 0; i < self->n; i++) {
        ew__runner *runner = &self->runners[(self->turn + i) % self->n];
        uint32_t capacity = ew__runner_capacity(runner);
        if (capacity <= most)
            continue;
        best = runner;
        most = capacity;
    }
    if (best)
        self->turn = (unsigned)(best - self->runners) + 1;
    return best;
}

static void give(ew__pool *pool, manage_pool *self) {
    ew__runner *runner;
    while (pool->queue.n > 0 && (runner = least_busy(self)) != NULL) {
        ew_call *call = ew__pool_dequeue(ew__pool_first(pool));
        call->outgoing.begun = true;
        if (pool->wire->open(runner->link->peer, call) != EW_OK)
            ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("the connection refused the call"));
    }
}

static void fail_hopeless(ew__pool *pool, const manage_pool *self) {
    const ew__runner *least = &self->runners[0], *last = least;
    for (unsigned i = 1; i < self->n; i++) {
        const ew__runner *runner = &self->runners[i];
        least = runner->failed_for < least->failed_for ? runner : least;
        last = runner->failed_for > last->failed_for ? runner : last;
    }
    uint64_t until = least->failed_for; /* an end may open another call, and change all of this */
    char text[sizeof last->problem];
    if (until > 0)
        (void)snprintf(text, sizeof text, "%s", last->problem);
    while (pool->queue.n > 0 && ew__pool_first(pool)->number <= until)
        ew__call_fail_as(ew__pool_dequeue(ew__pool_first(pool)), EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         ew_str_from(text));
}

static void serve(ew__pool *pool, struct ew__pool_wait *fresh) {
    manage_pool *self = self_of(pool);
    (void)fresh;
    if (pool->closing)
        return;
    want(pool, self);
    give(pool, self);
    fail_hopeless(pool, self);
}

/* ---- life ---- */

static void close_all(ew__pool *pool) {
    manage_pool *self = self_of(pool);
    for (unsigned i = 0; i < self->n; i++)
        ew__runner_close(&self->runners[i]);
}

static bool is_closed(const ew__pool *pool) {
    const manage_pool *self = self_of(pool);
    for (unsigned i = 0; i < self->n; i++)
        if (!ew__runner_is_closed(&self->runners[i]))
            return false;
    return true;
}

static void done(ew__pool *pool) {
    manage_pool *self = self_of(pool);
    for (unsigned i = 0; i < self->n; i++)
        ew__runner_done(&self->runners[i]);
    ew__free(pool->loop->executor.env, self->runners, self->n * sizeof *self->runners);
}

static void warm(ew__pool *pool) {
    manage_pool *self = self_of(pool);
    for (unsigned i = 0; i < self->n; i++)
        ew__runner_want(&self->runners[i]);
}

static const ew__pool_ops ops = {.size = sizeof(manage_pool),
                                 .serve = serve,
                                 .close = close_all,
                                 .is_closed = is_closed,
                                 .done = done,
                                 .warm = warm};

static ew_err init_runners(manage_pool *self, const char *option, const char *variable) {
    uint16_t port = self->core.where.port;
    ew_err err = EW_OK;
    for (unsigned i = 0; i < self->n && err == EW_OK; i++) {
        self->runners[i].next = &self->runners[(i + 1) % self->n];
        err = ew__runner_init(&self->runners[i], &self->core, (uint16_t)(port ? port + i : 0), option, variable);
    }
    return err;
}

ew_err ew__pool_manage(const ew__pool_config *config, unsigned n, const char *option, const char *variable,
                       ew__pool **ret) {
    uint16_t port = config->where->port;
    if (n == 0 || (port > 0 && n - 1 > 65535u - port))
        return EW_EINVAL;
    manage_pool *self = ew__pool_new(&ops, config);
    if (!self)
        return EW_ENOMEM;
    self->runners = ew__zalloc(config->loop->executor.env, n * sizeof *self->runners);
    self->n = self->runners ? n : 0;
    ew_err err = self->runners ? init_runners(self, option, variable) : EW_ENOMEM;
    if (err == EW_OK)
        *ret = &self->core;
    else
        ew__pool_free(&self->core);
    return err;
}
