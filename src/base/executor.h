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
    uint64_t now;             /* monotonic nanoseconds, refreshed every turn */
    ew__mailbox mailbox;      /* tasks */
    bool has_own_tasks;       /* its own thread has posted, and runs its tasks before it waits */
    ew__timers timers;
    ew__rng rng;
    ew__blocks blocks;
    struct ew__call_context *calls; /* call/context.h; NULL while no call is made here */
};

/* Sets everything but ops; limits must stay. */
void ew__executor_init(ew__executor *executor, const ew_env *env, const ew_limits *limits);
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
