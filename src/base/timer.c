/*
 * base/timer.c: the timers of base/timer.h: a heap with four children per node (shallower than with two, and children
 * are neighbours in memory), each timer knowing its place so that stopping needs no search.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/timer.h"

#include <string.h>

#include "base/mem.h"

#define ARITY 4u
#define FIRST_CAP 16u
#define MAX_CAP (1u << 29) /* ARITY * index + ARITY fits 32 bits */

static bool is_before(const ew__timer *a, const ew__timer *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void place(ew__timers *timers, uint32_t at, ew__timer *timer) {
    timers->heap[at] = timer;
    timer->index = at + 1;
}

static void sift_up(ew__timers *timers, uint32_t at, ew__timer *timer) {
    while (at > 0) {
        uint32_t parent = (at - 1) / ARITY;
        if (!is_before(timer, timers->heap[parent])) {
            break;
        }
        place(timers, at, timers->heap[parent]);
        at = parent;
    }
    place(timers, at, timer);
}

/* The earliest child of a node, or n when it has none. */
static uint32_t first_child(const ew__timers *timers, uint32_t at) {
    uint32_t child = at * ARITY + 1;
    if (child >= timers->n) {
        return timers->n;
    }
    uint32_t end = timers->n - child < ARITY ? timers->n : child + ARITY;
    uint32_t best = child;
    for (uint32_t i = child + 1; i < end; i++) {
        if (is_before(timers->heap[i], timers->heap[best])) {
            best = i;
        }
    }
    return best;
}

static void sift_down(ew__timers *timers, uint32_t at, ew__timer *timer) {
    for (;;) {
        uint32_t child = first_child(timers, at);
        if (child == timers->n || !is_before(timers->heap[child], timer)) {
            break;
        }
        place(timers, at, timers->heap[child]);
        at = child;
    }
    place(timers, at, timer);
}

/* Puts a timer where it belongs, beginning at a place that is free or its own. */
static void settle(ew__timers *timers, uint32_t at, ew__timer *timer) {
    if (at > 0 && is_before(timer, timers->heap[(at - 1) / ARITY])) {
        sift_up(timers, at, timer);
    } else {
        sift_down(timers, at, timer);
    }
}

static bool is_late(const ew__timers *timers, const ew__timer *timer) { return timer->index > timers->n; }

void ew__timers_init(ew__timers *timers, const ew_env *env) { *timers = (ew__timers){.env = env}; }

void ew__timers_done(ew__timers *timers) {
    for (uint32_t i = 0; i < timers->n; i++) {
        timers->heap[i]->index = 0;
    }
    for (uint32_t i = timers->cap - timers->n_late; i < timers->cap; i++) {
        timers->heap[i]->index = 0;
    }
    ew__free(timers->env, timers->heap, timers->cap * sizeof(*timers->heap));
    timers->heap = NULL;
    timers->n = timers->n_late = timers->cap = 0;
}

static ew_err resize(ew__timers *timers, uint32_t cap) {
    ew__timer **heap = ew__realloc(timers->env, timers->heap, timers->cap * sizeof(*heap), cap * sizeof(*heap));
    if (heap == NULL) {
        return EW_ENOMEM;
    }
    uint32_t old_start = timers->cap - timers->n_late;
    uint32_t start = cap - timers->n_late;
    memmove(heap + start, heap + old_start, timers->n_late * sizeof(*heap));
    timers->heap = heap;
    timers->cap = cap;
    for (uint32_t i = start; i < cap; i++) {
        heap[i]->index = i + 1;
    }
    return EW_OK;
}

ew_err ew__timers_reserve(ew__timers *timers, uint32_t n) {
    if (n <= timers->cap) {
        return EW_OK;
    }
    return n > MAX_CAP ? EW_ENOMEM : resize(timers, n);
}

static ew_err make_room(ew__timers *timers) {
    if (timers->n + timers->n_late < timers->cap) {
        return EW_OK;
    }
    uint32_t cap = timers->cap < FIRST_CAP ? FIRST_CAP : timers->cap * 2;
    return ew__timers_reserve(timers, cap);
}

/* There is room. */
static void insert(ew__timers *timers, ew__timer *timer) {
    if (timers->running && timer->at <= timers->run_now) {
        timers->n_late++;
        place(timers, timers->cap - timers->n_late, timer);
    } else {
        timers->n++;
        sift_up(timers, timers->n - 1, timer);
    }
}

ew_err ew__timer_set(ew__timers *timers, ew__timer *timer, uint64_t at, ew__timer_fn fn) {
    if (timer->index == 0) {
        ew_err err = make_room(timers);
        if (err != EW_OK) {
            return err;
        }
    } else {
        ew__timer_stop(timers, timer);
    }
    timer->fn = fn;
    timer->at = at;
    timer->order = ++timers->order;
    insert(timers, timer);
    return EW_OK;
}

void ew__timer_stop(ew__timers *timers, ew__timer *timer) {
    if (timer->index == 0) {
        return;
    }
    uint32_t at = timer->index - 1;
    if (is_late(timers, timer)) {
        /* The lowest of the late ones takes its place: they have no order. */
        place(timers, at, timers->heap[timers->cap - timers->n_late]);
        timers->n_late--;
    } else {
        timers->n--;
        if (at < timers->n) {
            settle(timers, at, timers->heap[timers->n]);
        }
    }
    timer->index = 0;
}

uint64_t ew__timers_next(const ew__timers *timers) {
    uint64_t next = timers->n > 0 ? timers->heap[0]->at : EW__NEVER;
    for (uint32_t i = 0; i < timers->n_late; i++) {
        uint64_t at = timers->heap[timers->cap - 1 - i]->at;
        next = at < next ? at : next;
    }
    return next;
}

void ew__timers_run(ew__timers *timers, uint64_t now) { ew__timers_run_some(timers, now, UINT32_MAX); }

void ew__timers_run_some(ew__timers *timers, uint64_t now, uint32_t max) {
    if (timers->running) {
        return;
    }
    timers->running = true;
    timers->run_now = now;
    for (; max > 0 && timers->n > 0 && timers->heap[0]->at <= now; max--) {
        ew__timer *timer = timers->heap[0];
        ew__timer_stop(timers, timer);
        timer->fn(timer, now);
    }
    timers->running = false;
    while (timers->n_late > 0) {
        ew__timer *timer = timers->heap[timers->cap - timers->n_late];
        timers->n_late--;
        insert(timers, timer);
    }
}
