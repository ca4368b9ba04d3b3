/*
 * tests/jobs_sim/world.h: a simulated world for workers: one virtual clock; nodes, which are executors with memory, chance
 * and a wall clock of their own, and may stall or crash; and between each of them and the model store a line with
 * delays and faults. What happens depends on the seed alone: events have a time and a number, and nothing else
 * decides.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_QUEUE_WORLD_H
#define EW_TESTS_QUEUE_WORLD_H

#include "jobs_sim/model.h"
#include "jobs/worker.h"

typedef struct world world;
typedef struct node node;

#define WORLD_WALL_MS UINT64_C(1750000000000) /* what clocks show at the beginning */
#define WORLD_NODES 5
#define WORLD_TRACE 200

typedef struct world_faults {
    uint64_t delay_us;    /* of each way between a node and the store: 1 to that, by chance */
    unsigned fail_before; /* of 1,000 operations: not done, and EW_ECONNECT */
    unsigned fail_after;  /* done, and EW_ECONNECT nevertheless */
    unsigned hint_lost;   /* of 1,000 hints */
    unsigned no_memory;   /* of 1,000 allocations of a node */
    bool down;            /* the store cannot be reached at all */
} world_faults;

/* A way to the store. One with a node gives answers in that node's turns. */
typedef struct line {
    ew__store store;
    world *w;
    node *owner;             /* NULL: a producer's */
    uint64_t arrive, answer; /* of the last operation: those of one line stay in order */
    ew__fifo requests;       /* on their way to the store, in order */
    ew__watcher *watchers;
} line;

struct node {
    world *w;
    int index;
    ew_env env;
    ew__executor executor;
    line line;
    struct block *blocks; /* all of its memory */
    size_t n_blocks;
    uint64_t chance;
    int64_t skew_ms; /* of its wall clock */
    uint64_t stalled_until;
    bool alive;
    uint32_t life; /* counts beginnings: what belongs to an earlier one is void */
    ew__worker *worker;
    void *ud;
};

typedef enum trace_kind {
    T_SUBMIT,
    T_DO,
    T_FAIL_BEFORE,
    T_FAIL_AFTER,
    T_ANSWER,
    T_HINT,
    T_START,
    T_END,
    T_STOP,
    T_CRASH,
    T_STALL,
    T_BIRTH,
    T_STOPPING,
    T_ENDED,
    T_JUMP,
    T_CHANGE,
    T_CLAIMED,
    T_ENQUEUED,
    T_CANCEL,
    T_PAUSE,
    T_HEAL,
    T_SKEW
} trace_kind;

typedef struct trace_line {
    uint64_t at;
    trace_kind kind;
    int64_t a, b, c;
} trace_line;

typedef void (*world_fn)(world *w, void *ud, uint64_t number);

struct world {
    uint64_t now; /* ns */
    uint64_t chance;
    model store;
    world_faults faults;
    node nodes[WORLD_NODES];
    struct event *events; /* a heap */
    size_t n_events, cap_events;
    uint64_t order;
    uint64_t n_done; /* events */
    uint64_t hash;   /* of the whole trace */
    trace_line trace[WORLD_TRACE];
    uint64_t n_trace;
    uint64_t seed;
    void (*node_turn)(node *n); /* after each; may be NULL */
    void *ud;
};

void world_init(world *w, uint64_t seed);
void world_done(world *w);
uint64_t world_draw(world *w, uint64_t below); /* 0 to below - 1 */
static inline bool world_chance(world *w, unsigned of_1000) { return world_draw(w, 1000) < of_1000; }
void world_trace(world *w, trace_kind kind, int64_t a, int64_t b, int64_t c);
void world_print(const world *w); /* the last events */
/* Prints a line, the seed and the last events, and ends the program. */
_Noreturn void world_fail(const world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Calls fn then; with a node: in its turn, and only if it is in the same life. */
void world_at(world *w, uint64_t at, node *n, world_fn fn, void *ud, uint64_t number);
/* Lets time pass until then. */
void world_run(world *w, uint64_t until);
static inline void world_pass(world *w, uint64_t ms) { world_run(w, w->now + EW__MS(ms)); }

node *node_start(world *w, int index); /* an executor, and no worker yet */
void node_crash(node *n);              /* all of its memory is gone; nobody is told */
void node_end(node *n);                /* an orderly end: everything must have been given back */
void node_stall(node *n, uint64_t ms);
void node_turn(node *n); /* runs what was posted, and timers that are due */
static inline int64_t node_wall(const node *n) { return (int64_t)(WORLD_WALL_MS + n->w->now / 1000000) + n->skew_ms; }

void line_init(line *l, world *w, node *owner);

#endif
