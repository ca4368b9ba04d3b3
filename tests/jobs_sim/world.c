/*
 * tests/jobs_sim/world.c: see world.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_sim/world.h"
#include "base/list.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum event_kind { E_ARRIVE, E_ANSWER, E_HINT, E_CALL } event_kind;

typedef struct event {
    uint64_t at, order;
    event_kind kind;
    node *n; /* NULL: nobody's turn */
    uint32_t life;
    void *ptr, *ud;
    world_fn fn;
    uint64_t number;
} event;

typedef struct block {
    struct block *next, *prev;
    size_t size, pad;
} block;

/* ---- chance ---- */

static uint64_t draw(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t world_draw(world *w, uint64_t below) { return below ? draw(&w->chance) % below : 0; }

/* ---- what has happened ---- */

void world_trace(world *w, trace_kind kind, int64_t a, int64_t b, int64_t c) {
    uint64_t words[] = {w->now, (uint64_t)kind, (uint64_t)a, (uint64_t)b, (uint64_t)c};
    for (size_t i = 0; i < 5; i++)
        w->hash = (w->hash ^ words[i]) * 0x100000001b3u, w->hash ^= w->hash >> 29;
    w->trace[w->n_trace++ % WORLD_TRACE] = (trace_line){w->now, kind, a, b, c};
}

void world_print(const world *w) {
    static const char *const names[] = {"submit",   "do",    "fail-before", "fail-after", "answer",  "hint",
                                        "start",    "end",   "stop",        "crash",      "stall",   "birth",
                                        "stopping", "ended", "jump",        "change",     "claimed", "enqueued",
                                        "cancel",   "pause", "heal",        "skew"};
    uint64_t first = w->n_trace > WORLD_TRACE ? w->n_trace - WORLD_TRACE : 0;
    for (uint64_t i = first; i < w->n_trace; i++) {
        const trace_line *t = &w->trace[i % WORLD_TRACE];
        (void)fprintf(stderr, "%12.3f ms  %-11s %" PRId64 " %" PRId64 " %" PRId64 "\n", (double)t->at / 1e6,
                      names[t->kind], t->a, t->b, t->c);
    }
}

void world_fail(const world *w, const char *format, ...) {
    va_list args;
    world_print(w);
    (void)fprintf(stderr, "seed %" PRIu64 ", after %.3f ms: ", w->seed, (double)w->now / 1e6);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "\n");
    exit(1);
}

/* ---- events ---- */

static bool is_before(const event *a, const event *b) { return a->at != b->at ? a->at < b->at : a->order < b->order; }

static void push(world *w, event e) {
    if (w->n_events == w->cap_events) {
        w->cap_events = w->cap_events ? 2 * w->cap_events : 64;
        w->events = realloc(w->events, w->cap_events * sizeof *w->events);
        if (!w->events)
            abort();
    }
    size_t at = w->n_events++;
    e.order = ++w->order;
    for (; at > 0 && is_before(&e, &w->events[(at - 1) / 2]); at = (at - 1) / 2)
        w->events[at] = w->events[(at - 1) / 2];
    w->events[at] = e;
}

static event pop(world *w) {
    event first = w->events[0], last = w->events[--w->n_events];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->n_events)
            break;
        if (child + 1 < w->n_events && is_before(&w->events[child + 1], &w->events[child]))
            child++;
        if (!is_before(&w->events[child], &last))
            break;
        w->events[at] = w->events[child];
        at = child;
    }
    w->events[at] = last;
    return first;
}

void world_at(world *w, uint64_t at, node *n, world_fn fn, void *ud, uint64_t number) {
    push(w, (event){.at = at > w->now ? at : w->now,
                    .kind = E_CALL,
                    .n = n,
                    .life = n ? n->life : 0,
                    .fn = fn,
                    .ud = ud,
                    .number = number});
}

/* ---- a node's memory, clocks and chance ---- */

static void forget(node *n, block *b) {
    EW__LIST_REMOVE(n->blocks, b);
    n->n_blocks--;
    free(b);
}

static void *node_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    node *n = ud;
    block *old = ptr ? (block *)ptr - 1 : NULL;
    if (old && old->size != old_size)
        world_fail(n->w, "a block of %zu came back with %zu", old->size, old_size);
    if (new_size == 0) {
        if (old)
            forget(n, old);
        return NULL;
    }
    if (n->w->faults.no_memory && draw(&n->chance) % 1000 < n->w->faults.no_memory)
        return NULL;
    block *b = malloc(sizeof *b + new_size);
    if (!b)
        abort();
    b->size = new_size;
    EW__LIST_ADD(n->blocks, b);
    n->n_blocks++;
    if (old) {
        memcpy(b + 1, old + 1, old_size < new_size ? old_size : new_size);
        forget(n, old);
    }
    return b + 1;
}

static uint64_t node_now(void *ud) { return ((node *)ud)->w->now; }
static uint64_t node_wall_ms(void *ud) { return (uint64_t)node_wall(ud); }

static void node_random(void *ud, void *bytes, size_t n) {
    uint8_t *out = bytes;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(draw(&((node *)ud)->chance) >> 40);
}

static bool node_here(const ew__executor *executor) {
    (void)executor;
    return true;
}

static const ew__executor_ops executor_ops = {.here = node_here};

node *node_start(world *w, int index) {
    static ew_limits limits;
    node *n = &w->nodes[index];
    ew_limits_complete(&limits);
    uint32_t life = n->life + 1;
    int64_t skew = n->skew_ms;
    memset(n, 0, sizeof *n);
    n->w = w;
    n->index = index;
    n->life = life;
    n->skew_ms = skew;
    n->alive = true;
    n->chance = draw(&w->chance);
    n->env = (ew_env){node_alloc, node_now, node_wall_ms, node_random, NULL, n};
    n->executor.ops = &executor_ops;
    ew__executor_init(&n->executor, &n->env, &limits);
    line_init(&n->line, w, n);
    world_trace(w, T_BIRTH, index, life, 0);
    return n;
}

/* What is on its way to the store arrives, or (from some point on) does not. */
void node_crash(node *n) {
    world *w = n->w;
    world_trace(w, T_CRASH, n->index, 0, 0);
    for (ew__store_request *op = EW__ITEM(n->line.requests.first, ew__store_request, node);
         op && world_chance(w, 500);) {
        ew__store_request *next = ew__store_request_after(op);
        w->store.now = w->now;
        world_trace(w, T_DO, op->kind, n->index, -1);
        model_do(&w->store, op);
        op = next;
    }
    n->alive = false;
    n->worker = NULL;
    while (n->blocks)
        forget(n, n->blocks);
}

void node_end(node *n) {
    if (n->line.requests.first || n->line.watchers)
        world_fail(n->w, "worker %d left something with the store", n->index);
    ew__executor_done(&n->executor);
    if (n->n_blocks)
        world_fail(n->w, "worker %d left %zu blocks of memory", n->index, n->n_blocks);
    n->alive = false;
}

void node_stall(node *n, uint64_t ms) {
    world_trace(n->w, T_STALL, n->index, (int64_t)ms, 0);
    n->stalled_until = n->w->now + EW__MS(ms);
}

static void run_tasks(node *n) {
    uint32_t life = n->life;
    ew__fifo tasks = {NULL, NULL};
    ew__fifo_node *first;
    while (n->alive && n->life == life) { /* a task may crash the node, and its tasks with it */
        if (!tasks.first)
            tasks = ew__mailbox_take(&n->executor.mailbox);
        if (!(first = ew__fifo_pop(&tasks)))
            return;
        ew__task *task = ew__container_of(first, ew__task, node);
        task->fn(task);
    }
}

void node_turn(node *n) {
    uint32_t life = n->life;
    n->executor.now = n->w->now;
    run_tasks(n);
    if (n->alive && n->life == life)
        ew__timers_run(&n->executor.timers, n->w->now);
    run_tasks(n);
    if (n->w->node_turn && n->alive && n->life == life)
        n->w->node_turn(n);
}

/* ---- the line to the store ---- */

static void submit(ew__store *store, ew__store_request *op) {
    line *l = ew__container_of(store, line, store);
    world *w = l->w;
    uint64_t at = w->now + (1 + world_draw(w, w->faults.delay_us)) * 1000;
    l->arrive = at > l->arrive ? at : l->arrive;
    ew__fifo_push(&l->requests, &op->node);
    world_trace(w, T_SUBMIT, op->kind, l->owner ? l->owner->index : -1, 0);
    push(w, (event){.at = l->arrive,
                    .kind = E_ARRIVE,
                    .ptr = l,
                    .n = NULL,
                    .ud = l->owner,
                    .life = l->owner ? l->owner->life : 0});
}

static bool is_void(const event *e) {
    const node *n = e->n ? e->n : e->kind == E_ARRIVE ? e->ud : NULL;
    return n && (!n->alive || n->life != e->life);
}

static void arrive(world *w, event *e) {
    line *l = e->ptr;
    ew__store_request *op = EW__ITEM(ew__fifo_pop(&l->requests), ew__store_request, node);
    w->store.now = w->now;
    int from = l->owner ? l->owner->index : -1;
    bool before = w->faults.down || world_chance(w, w->faults.fail_before);
    bool after = !before && world_chance(w, w->faults.fail_after);
    if (!before)
        model_do(&w->store, op);
    world_trace(w, before ? T_FAIL_BEFORE : after ? T_FAIL_AFTER : T_DO, op->kind, from, before ? 0 : op->err);
    if (before || after)
        op->err = EW_ECONNECT;
    uint64_t at = w->now + (1 + world_draw(w, w->faults.delay_us)) * 1000;
    l->answer = at > l->answer ? at : l->answer;
    push(w,
         (event){.at = l->answer, .kind = E_ANSWER, .ptr = op, .n = l->owner, .life = l->owner ? l->owner->life : 0});
}

static void watch(ew__store *store, ew__watcher *watcher, bool on) {
    line *l = ew__container_of(store, line, store);
    if (on) {
        EW__LIST_ADD(l->watchers, watcher);
    } else {
        EW__LIST_REMOVE(l->watchers, watcher);
    }
}

static const char *notice(ew__store *store) {
    (void)store;
    return "";
}

static void free_store(ew__store *store) { (void)store; }

void line_init(line *l, world *w, node *owner) {
    static const ew__store_ops ops = {submit, watch, notice, free_store};
    memset(l, 0, sizeof *l);
    l->store.ops = &ops;
    l->store.name = "model";
    l->w = w;
    l->owner = owner;
}

static void changed(model *m, unsigned what) {
    world *w = m->ud;
    for (int i = 0; i < WORLD_NODES; i++) {
        node *n = &w->nodes[i];
        if (!n->alive || !n->line.watchers || w->faults.down || world_chance(w, w->faults.hint_lost))
            continue;
        push(w, (event){.at = w->now + (1 + world_draw(w, w->faults.delay_us)) * 1000,
                        .kind = E_HINT,
                        .n = n,
                        .life = n->life,
                        .number = what});
    }
}

static void hint(node *n, unsigned what) {
    ew__watcher *next;
    for (ew__watcher *watcher = n->line.watchers; watcher; watcher = next) {
        next = watcher->next;
        if (watcher->want & what)
            watcher->changed(watcher, watcher->want & what);
    }
}

/* ---- time ---- */

static void run_event(world *w, event *e) {
    if (is_void(e))
        return;
    if (e->n && e->n->stalled_until > w->now) {
        e->at = e->n->stalled_until;
        push(w, *e); /* in the order in which they came */
        return;
    }
    if (e->n)
        e->n->executor.now = w->now;
    switch (e->kind) {
    case E_ARRIVE:
        arrive(w, e);
        break;
    case E_ANSWER:
        world_trace(w, T_ANSWER, ((ew__store_request *)e->ptr)->kind, e->n ? e->n->index : -1,
                    ((ew__store_request *)e->ptr)->err);
        ((ew__store_request *)e->ptr)->done(e->ptr);
        break;
    case E_HINT:
        hint(e->n, (unsigned)e->number);
        break;
    case E_CALL:
        e->fn(w, e->ud, e->number);
        break;
    }
    if (e->n && e->n->alive && e->n->life == e->life)
        node_turn(e->n);
}

/* The node whose timer is next, and when. */
static node *next_timer(world *w, uint64_t *ret_at) {
    node *best = NULL;
    *ret_at = EW__NEVER;
    for (int i = 0; i < WORLD_NODES; i++) {
        node *n = &w->nodes[i];
        uint64_t at = !n->alive ? EW__NEVER : n->executor.mailbox.n > 0 ? w->now : ew__timers_next(&n->executor.timers);
        if (at != EW__NEVER && at < n->stalled_until)
            at = n->stalled_until;
        if (at < *ret_at) {
            *ret_at = at;
            best = n;
        }
    }
    return best;
}

void world_run(world *w, uint64_t until) {
    for (;;) {
        uint64_t at;
        node *n = next_timer(w, &at);
        bool is_event = w->n_events > 0 && w->events[0].at <= at;
        at = is_event ? w->events[0].at : at;
        if (at > until || (!is_event && !n))
            break;
        w->now = at > w->now ? at : w->now;
        if (++w->n_done % 2000000 == 0)
            world_fail(w, "it does not come to rest");
        if (is_event) {
            event e = pop(w);
            run_event(w, &e);
        } else {
            node_turn(n);
        }
    }
    w->now = until > w->now ? until : w->now;
}

void world_init(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->chance = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = EW__MS(1000);
    w->hash = 0xcbf29ce484222325u;
    w->faults.delay_us = 500;
    model_init(&w->store, w->now);
    w->store.changed = changed;
    w->store.ud = w;
}

void world_done(world *w) {
    for (int i = 0; i < WORLD_NODES; i++) {
        while (w->nodes[i].blocks)
            forget(&w->nodes[i], w->nodes[i].blocks);
    }
    model_done(&w->store);
    free(w->events);
}
