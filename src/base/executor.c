/*
 * base/executor.c: see executor.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/executor.h"

#define FREE_BLOCKS EW__POOL_KEEP(64)
static void wake(ew__mailbox *mailbox) {
    ew__executor *executor = ew__container_of(mailbox, ew__executor, mailbox);
    if (executor->ops->wake)
        executor->ops->wake(executor);
}

void ew__executor_init(ew__executor *executor, const ew_env *env, const ew_limits *limits) {
    const ew__executor_ops *ops = executor->ops;
    memset(executor, 0, sizeof *executor);
    executor->ops = ops;
    executor->env = env;
    executor->limits = limits;
    ew__mailbox_init(&executor->mailbox, wake);
    ew__timers_init(&executor->timers, env);
    ew__rng_init(&executor->rng, env);
    ew__blocks_init(&executor->blocks, env, FREE_BLOCKS);
    ew__executor_read_clock(executor);
}

void ew__executor_done(ew__executor *executor) {
    ew__blocks_trim(&executor->blocks, 0);
    ew__blocks_done(&executor->blocks);
    ew__timers_done(&executor->timers);
    ew__mailbox_done(&executor->mailbox);
}

void ew__executor_post(ew__executor *executor, ew__task *task) {
    if (ew__executor_here(executor)) {
        executor->has_own_tasks = true;
        ew__mailbox_post_own(&executor->mailbox, &task->node);
    } else {
        (void)!ew__mailbox_post(&executor->mailbox, &task->node, 0); /* there is no limit */
    }
}

bool ew__executor_run_tasks(ew__executor *executor) {
    executor->has_own_tasks = false;
    ew__fifo tasks = ew__mailbox_take(&executor->mailbox);
    bool any = tasks.first != NULL;
    for (ew__fifo_node *node; (node = ew__fifo_pop(&tasks)) != NULL;) {
        ew__task *task = ew__container_of(node, ew__task, node);
        task->fn(task);
    }
    return any;
}
