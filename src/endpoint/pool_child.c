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

static ew__executor *executor_of(const ew__pool *pool) { return &pool->loop->executor; }

/* ---- its beginning ---- */

static void on_pause_over(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__pool_serve_dialled(ew__container_of(timer, ew__pool, child.pause));
}

static bool may_start(ew__pool *pool) {
    ew__pool_child *child = &pool->child;
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
    ew__pool_serve_dialled(pool);
}

/* ---- its end ---- */

void ew__pool_child_link_closed(ew__pool *pool) {
    pool->child.at_end = NULL;
    ew__timer_stop(&executor_of(pool)->timers, &pool->child.last_word);
}

static void tell_eof(ew__pool *pool) {
    ew__link *link = pool->child.at_end;
    if (!link)
        return;
    ew__pool_child_link_closed(pool);
    ew__link_eof(link);
}

static void on_last_word(ew__timer *timer, uint64_t now) {
    (void)now;
    tell_eof(ew__container_of(timer, ew__pool, child.last_word));
}

/* The calls that are lost with it are better told how it has ended than that its output has. */
bool ew__pool_child_holds_eof(ew__pool *pool, ew__link *link) {
    ew__pool_child *child = &pool->child;
    uint64_t at = executor_of(pool)->now + EW__MS(LAST_WORD_MS);
    if (child->ended || pool->closing ||
        ew__timer_set(&executor_of(pool)->timers, &child->last_word, at, on_last_word) != EW_OK)
        return false;
    child->at_end = link;
    return true;
}

static void on_ended(void *ud, const char *how) {
    ew__pool *pool = ud;
    ew__pool_child *child = &pool->child;
    if (executor_of(pool)->now - child->started_at >= EW__MS(WELL_MS))
        child->pause_ms = 0;
    child->ended = true;
    (void)snprintf(child->line, sizeof child->line, "%.150s %s", pool->where.argv[0], how);
    tell_eof(pool);
}

const char *ew__pool_child_end(const ew__pool *pool) { return pool->child.line; }

/* ---- life ---- */

static void close_child(ew__pool *pool) {
    ew__timer_stop(&executor_of(pool)->timers, &pool->child.pause);
    ew__timer_stop(&executor_of(pool)->timers, &pool->child.last_word);
    ew__pool_close_dials(pool);
}

static const ew__pool_kind kind = {
    .serve = serve, .close = close_child, .is_closed = ew__pool_no_dials, .may_dial = may_start};

void ew__pool_child_init(ew__pool *pool) {
    pool->kind = &kind;
    pool->where.ended = on_ended;
    pool->where.ended_ud = pool;
}
