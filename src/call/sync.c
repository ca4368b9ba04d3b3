/*
 * call/sync.c: waiting of worker threads for a call: a lock and a condition, made when a thread waits for the first
 * time.
 *
 * The order that makes it safe: a waiter publishes the sync object, then looks at the flags under its lock; the executor
 * thread changes a flag, then looks for the sync object and wakes under its lock. One of the two always sees the
 * other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "call/call.h"
#include <errno.h>

struct ew__call_sync {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static struct ew__call_sync *new_sync(const ew_env *env) {
    struct ew__call_sync *sync = ew__alloc(env, sizeof *sync);
    if (!sync)
        return NULL;
    pthread_mutex_init(&sync->lock, NULL);
    ew__cond_init(&sync->changed);
    return sync;
}

static void free_sync(const ew_env *env, struct ew__call_sync *sync) {
    pthread_cond_destroy(&sync->changed);
    pthread_mutex_destroy(&sync->lock);
    ew__free(env, sync, sizeof *sync);
}

static struct ew__call_sync *get_sync(ew_call *call) {
    struct ew__call_sync *sync = atomic_load(&call->cross_thread.sync);
    if (sync)
        return sync;
    struct ew__call_sync *fresh = new_sync(call->executor->env);
    if (!fresh)
        return NULL;
    if (atomic_compare_exchange_strong(&call->cross_thread.sync, &sync, fresh))
        return fresh;
    free_sync(call->executor->env, fresh);
    return sync;
}

void ew__call_sync_free(ew_call *call) {
    struct ew__call_sync *sync = atomic_load(&call->cross_thread.sync);
    if (sync)
        free_sync(call->executor->env, sync);
}

void ew__call_wake_waiters(ew_call *call) {
    struct ew__call_sync *sync = atomic_load(&call->cross_thread.sync);
    if (!sync)
        return;
    pthread_mutex_lock(&sync->lock);
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->lock);
}

static bool has_room(const ew_call *call) {
    return !atomic_load(&call->full) &&
           atomic_load(&call->cross_thread.posted) <= call->executor->limits->out_low_bytes;
}

/* Waits until cancelled, until there is room (if asked for), or for the time given. */
static ew_err wait_for(ew_call *call, uint64_t ms, bool room) {
    if (ew__executor_here(call->executor))
        return EW_EUNSUPPORTED;
    struct ew__call_sync *sync = get_sync(call);
    if (!sync)
        return EW_ENOMEM;
    struct timespec until = ew__cond_until(ms);
    ew_err err = EW_OK;
    pthread_mutex_lock(&sync->lock);
    for (;;) {
        if (atomic_load(&call->cancelled)) {
            err = EW_ECANCELLED;
            break;
        }
        if (room && has_room(call))
            break;
        if (pthread_cond_timedwait(&sync->changed, &sync->lock, &until) == ETIMEDOUT) {
            err = atomic_load(&call->cancelled) ? EW_ECANCELLED : room ? EW_ETIMEOUT : EW_OK;
            break;
        }
    }
    pthread_mutex_unlock(&sync->lock);
    return err;
}

ew_err ew_call_wait(ew_call *call, uint64_t ms) { return wait_for(call, ms, false); }

ew_err ew_call_wait_room(ew_call *call) { return wait_for(call, call->executor->limits->stall_ms, true); }
