/*
 * endpoint/pool_child.c: targets that are a process of ours, spoken with over its standard input and output. One that
 * ends as soon as it is started is not started as fast as calls come; those wait.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/pool_kind.h"
#include <stdio.h>

#define PAUSE_MS 100 /* between two starts, doubling */
#define PAUSE_MAX_MS 2000
#define WELL_MS 10000    /* who ran so long starts the pauses anew */
#define LAST_WORD_MS 200 /* a process whose output has ended is about to end itself, most of the time */

typedef struct child_pool {
    ew__dial_pool dials;
    ew__timer pause;     /* until it may be started again */
    ew__timer last_word; /* from the end of its output until that is reported, whatever became of the process */
    ew__link *at_end;    /* whose eof is held back until then; or NULL */
    uint64_t started_at; /* the last one */
    uint32_t pause_ms;   /* from one start to the next, at least */
    bool ended;
    char line[256]; /* "node ended with code 1", from its end to the next start */
} child_pool;

static child_pool *self_of(const ew__pool *pool) {
    return (child_pool *)(uintptr_t)ew__container_of(pool, const child_pool, dials.core);
}

static ew__executor *executor_of(const ew__pool *pool) { return &pool->loop->executor; }

/* ---- its beginning ---- */

static void on_pause_over(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__dial_pool_serve(&ew__container_of(timer, child_pool, pause)->dials.core);
}

static bool may_start(ew__pool *pool) {
    child_pool *child = self_of(pool);
    uint64_t now = ew__executor_read_clock(executor_of(pool)), at = child->started_at + EW__MS(child->pause_ms);
    if (now < at && (ew__timer_active(&child->pause) ||
                     ew__timer_set(&executor_of(pool)->timers, &child->pause, at, on_pause_over) == EW_OK))
        return false; /* without memory for that: too early is better than never */
    child->started_at = now;
    child->pause_ms = child->pause_ms * 2 < PAUSE_MAX_MS ? child->pause_ms * 2 : PAUSE_MAX_MS;
    if (child->pause_ms == 0)
        child->pause_ms = PAUSE_MS;
    child->ended = false;
    child->line[0] = '\0';
    return true;
}

static void serve(ew__pool *pool, struct ew__pool_wait *fresh) {
    (void)fresh;
    ew__dial_pool_serve(pool);
}

/* ---- its end ---- */

static void release_eof(child_pool *child) {
    child->at_end = NULL;
    ew__timer_stop(&executor_of(&child->dials.core)->timers, &child->last_word);
}

static void link_closed(ew__pool *pool, ew__link *link) {
    if (self_of(pool)->at_end == link)
        release_eof(self_of(pool));
}

static void tell_eof(child_pool *child) {
    ew__link *link = child->at_end;
    if (!link)
        return;
    release_eof(child);
    ew__link_eof(link);
}

static void on_last_word(ew__timer *timer, uint64_t now) {
    (void)now;
    tell_eof(ew__container_of(timer, child_pool, last_word));
}

/* The calls that are lost with it are better told how it has ended than that its output has. */
static bool holds_eof(ew__pool *pool, ew__link *link) {
    child_pool *child = self_of(pool);
    uint64_t at = executor_of(pool)->now + EW__MS(LAST_WORD_MS);
    if (child->ended || pool->closing ||
        ew__timer_set(&executor_of(pool)->timers, &child->last_word, at, on_last_word) != EW_OK)
        return false;
    child->at_end = link;
    return true;
}

static void on_ended(void *ud, const char *how) {
    ew__pool *pool = ud;
    child_pool *child = self_of(pool);
    if (executor_of(pool)->now - child->started_at >= EW__MS(WELL_MS))
        child->pause_ms = 0;
    child->ended = true;
    (void)snprintf(child->line, sizeof child->line, "%.150s %s", pool->where.argv[0], how);
    tell_eof(child);
}

static const char *child_end(const ew__pool *pool) { return self_of(pool)->line; }

/* ---- life ---- */

static void close_child(ew__pool *pool) {
    child_pool *child = self_of(pool);
    ew__timer_stop(&executor_of(pool)->timers, &child->pause);
    ew__timer_stop(&executor_of(pool)->timers, &child->last_word);
    ew__dial_pool_close(pool);
}

static const ew__pool_ops ops = {.size = sizeof(child_pool),
                                 .serve = serve,
                                 .close = close_child,
                                 .is_closed = ew__dial_pool_is_closed,
                                 .child_end = child_end,
                                 .may_dial = may_start,
                                 .holds_eof = holds_eof,
                                 .link_closed = link_closed};

ew_err ew__pool_child(const ew__pool_config *config, ew__pool **ret) {
    child_pool *child = ew__dial_pool_new(&ops, config);
    if (!child)
        return EW_ENOMEM;
    ew__pool *pool = &child->dials.core;
    child->dials.max_links = 1;
    pool->where.ended = on_ended;
    pool->where.ended_ud = pool;
    *ret = pool;
    return EW_OK;
}
