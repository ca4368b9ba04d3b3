/*
 * jobs/service/wait.c: waiting for the end of a job, and for what it says meanwhile. Hints of the store wake those who
 * wait; each then looks for itself. Without hints they look once a second.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/service.h"
#include "base/thread.h"
#include <stdio.h>

#define FULL_PAGE 256 /* chunks that a store gives at a time */

/* On the store's thread. */
static void on_changed(ew__watcher *watcher, unsigned what) {
    ew_jobs *jobs = watcher->ud;
    (void)what;
    pthread_mutex_lock(&jobs->lock);
    jobs->changes++;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
}

/* The first one who waits; hints are then asked for until the handle is freed. */
static void watch(ew_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    bool first = !jobs->watching;
    jobs->watching = true;
    pthread_mutex_unlock(&jobs->lock);
    if (!first)
        return;
    jobs->watcher = (ew__watcher){.want = EW__CHANGED_JOBS | EW__CHANGED_BACK, .changed = on_changed, .ud = jobs};
    jobs->requests.store->ops->watch(jobs->requests.store, &jobs->watcher, true);
}

void ew__jobs_interrupt(ew_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    jobs->interrupted = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
}

typedef struct waiting {
    ew_str id;
    uint64_t until; /* monotonic ns; EW__NEVER */
    uint64_t seen;  /* of jobs->changes, before the last look */
    uint64_t after; /* the last chunk that was passed on */
    ew_job_chunk_fn on_chunk;
    void *ud;
} waiting;

static bool note_seen(ew_jobs *jobs, waiting *w) {
    pthread_mutex_lock(&jobs->lock);
    w->seen = jobs->changes;
    bool interrupted = jobs->interrupted;
    pthread_mutex_unlock(&jobs->lock);
    return !interrupted;
}

/* Until something may have changed. False: the time is over. */
static bool sleep_until_change(ew_jobs *jobs, const waiting *w) {
    uint64_t now = jobs->env->now_ns(jobs->env->ud);
    if (now >= w->until)
        return false;
    uint64_t ms = (w->until - now + 999999) / 1000000;
    struct timespec at = ew__cond_until(ms < EW__JOBS_CHECK_MS ? ms : EW__JOBS_CHECK_MS);
    int err = 0;
    pthread_mutex_lock(&jobs->lock);
    while (err == 0 && jobs->changes == w->seen && !jobs->interrupted)
        err = pthread_cond_timedwait(&jobs->changed, &jobs->lock, &at);
    pthread_mutex_unlock(&jobs->lock);
    return true;
}

/* One look. EW_OK: it has ended, all chunks were passed on; EW_EBUSY: not yet; EW_FULL: there is more to read at once. */
static ew_err look(ew__jobs_request *request, waiting *w) {
    ew__store_request_again(&request->op, EW__OP_GET);
    ew__op_get *get = &request->op.u.get;
    *get = (ew__op_get){.id = w->id, .want_chunks = w->on_chunk != NULL, .after = w->after};
    ew_err err = ew__jobs_request_run(request);
    if (err != EW_OK)
        return err;
    for (size_t i = 0; w->on_chunk && i < get->ret_n_chunks; i++) {
        w->after = get->ret_chunks[i].seq;
        if (!w->on_chunk(w->after, get->ret_chunks[i].json, w->ud))
            return EW_ECANCELLED;
    }
    if (get->ret_n_chunks >= FULL_PAGE)
        return EW_FULL;
    return ew__job_is_final(get->ret.status) ? EW_OK : EW_EBUSY;
}

/* The store may come back, as long as there is time. */
static bool is_passing(ew_err err) { return err == EW_ECONNECT || err == EW_ETIMEOUT || err == EW_EIO; }

static ew_err wait_for(ew_jobs *jobs, ew__jobs_request *request, waiting *w) {
    ew_err trouble = EW_OK;
    for (;;) {
        if (!note_seen(jobs, w))
            return EW_ECANCELLED;
        ew_err err = look(request, w);
        if (err == EW_FULL)
            continue;
        if (err != EW_EBUSY && !is_passing(err))
            return err;
        trouble = err == EW_EBUSY ? EW_OK : err;
        if (!sleep_until_change(jobs, w))
            return trouble != EW_OK ? trouble : EW_ETIMEOUT;
    }
}

ew_err ew__jobs_wait(ew_jobs *jobs, ew_str id, uint64_t timeout_ms, ew_job_chunk_fn on_chunk, void *ud,
                     ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_GET);
    if (err != EW_OK)
        return err;
    uint64_t now = jobs->env->now_ns(jobs->env->ud);
    waiting w = {.id = id, .until = EW__NEVER, .on_chunk = on_chunk, .ud = ud};
    if (timeout_ms && timeout_ms < (EW__NEVER - now) / 1000000)
        w.until = now + EW__MS(timeout_ms);
    watch(jobs);
    err = wait_for(jobs, &request, &w);
    if ((err == EW_OK || err == EW_ETIMEOUT || err == EW_ECANCELLED) && request.op.err == EW_OK &&
        request.op.u.get.ret.id.len) {
        ew__job_write(&request.op.u.get.ret, &request.answer->json);
        request.answer->problem[0] = '\0';
    }
    return ew__jobs_request_end(&request, err, ret);
}
