/*
 * base/executor.h: one thread of control with its clock, timers, random numbers, pooled memory and mailbox: an event loop
 * in production (io/loop.c), a simulated one in tests. Only its thread uses an executor; other threads post tasks to it.
 */
#ifndef EW_BASE_EXECUTOR_H
#define EW_BASE_EXECUTOR_H

#include "base/budget.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "base/timer.h"
#include "base/util.h"
#include <everywire/limits.h>
#include <stdatomic.h>

typedef struct ew__executor ew__executor;
typedef struct ew__task ew__task;
typedef struct ew__observer ew__observer;
typedef struct ew__gate ew__gate;

struct ew__task {
    ew__fifo_node node;
    void (*fn)(ew__task *task); /* runs on the executor's thread; owns the task's memory from then on */
};

typedef struct ew__executor_ops {
    bool (*here)(const ew__executor *executor); /* is the calling thread the executor's? Any thread */
    /* optional: makes the executor's thread call ew__executor_run_tasks soon. Any other thread; as ew__mailbox.wake */
    void (*wake)(ew__executor *executor);
} ew__executor_ops;

struct ew__executor {
    const ew__executor_ops *ops;
    const ew_env *env;
    const ew_limits *limits;  /* complete */
    const ew__budget *budget; /* NULL: memory is not limited */
    ew__observer *observer;   /* NULL: nobody looks */
    ew__gate *gate;           /* who may call what (call/access.h); NULL: everybody everything */
    uint8_t stack_traces;     /* ew_stack_traces: which callers see those of upstreams (call/stack_trace.h) */
    uint64_t now;             /* monotonic nanoseconds, refreshed every turn */
    ew__mailbox mailbox;      /* tasks */
    bool has_own_tasks;       /* its own thread has posted, and runs its tasks before it waits */
    ew__timers timers;
    ew__rng rng;
    ew__blocks blocks;
    ew__pieces calls;                        /* pooled memory of calls */
    ew__pieces pieces;                       /* and for what does not fit into that */
    uint32_t live_calls;                     /* opened and not yet ended by their callee */
    atomic_uint *live_all;                   /* the same over all executors of a runtime; may be NULL */
    void (*on_idle)(ew__executor *executor); /* the last call here has ended; may be NULL */
    atomic_ullong dropped;                   /* late events */
};

/* Sets everything but ops; limits must stay. */
void ew__executor_init(ew__executor *executor, const ew_env *env, const ew_limits *limits);
/* Gives pooled memory back to the allocator (when the program has become idle). */
void ew__executor_trim(ew__executor *executor);
void ew__executor_done(ew__executor *executor);
static inline bool ew__executor_here(const ew__executor *executor) { return executor->ops->here(executor); }
/* Runs the task on the executor's thread, in the order of posting. Any thread; never fails. */
void ew__executor_post(ew__executor *executor, ew__task *task);
/* Runs what has been posted so far. Returns false if there was nothing. The executor's thread. */
bool ew__executor_run_tasks(ew__executor *executor);
static inline uint64_t ew__executor_read_clock(ew__executor *executor) {
    return executor->now = executor->env->now_ns(executor->env->ud);
}

#endif
