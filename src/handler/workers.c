/*
 * handler/workers.c: see workers.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/workers.h"
#include "base/list.h"
#include "base/thread.h"
#include <errno.h>
#include <stdio.h>

struct job {
    struct job *next;
    ew_call *call;
    ew__task returned; /* posted to the call's loop if the handler has returned without an end */
};

struct ew__workers {
    const ew_env *env;
    ew__callee_ops callee;
    pthread_mutex_t lock;
    pthread_cond_t work;    /* a job came, or stopping */
    pthread_cond_t stopped; /* a thread ended */
    struct job *first, *last;
    uint64_t n_jobs, n_threads, n_idle;
    const ew_limits *limits; /* read when needed: an app may still be configured after its actions */
    bool stopping;
};

/* ---- threads ---- */

/*
 * Whether an end may still come after the handler has returned: a callback is registered, or a reference exists besides
 * those of the caller, the callee and this check. A message in flight holds one as well.
 */
static bool is_kept(const ew_call *call) {
    unsigned known = call->caller_open ? 3 : 2;
    return call->local.on_cancel || call->local.on_room || call->local.on_after || call->local.on_input ||
           atomic_load(&call->refs) > known;
}

static void fail_unended(ew_call *call) {
    char text[200];
    ew_str message;
    (void)snprintf(text, sizeof text, "the handler of %.*s returned without ending the call",
                   (int)(call->key.len < 140 ? call->key.len : 140), call->key.ptr);
    ew__log(call->executor->env, EW_LOG_ERROR, "app", "%s", text);
    if (ew__arena_str(&call->arena, ew_str_from(text), &message) != EW_OK)
        message = EW_STR("the handler returned without ending the call");
    ew__call_fail_as(call, EW_ORIGIN_ACTION, EW_STATUS_INTERNAL, message);
}

/* On the call's loop, behind everything that the handler has posted. */
static void on_returned(ew__task *task) {
    ew_call *call = ew__container_of(task, struct job, returned)->call;
    if (call->callee_open && !is_kept(call))
        fail_unended(call);
    ew_call_unref(call);
}

static void run_job(struct job *job) {
    ew_call *call = job->call;
    ew__call_hold(call); /* the job is in its memory */
    if (ew_call_cancelled(call))
        (void)ew_call_fail(call, EW_STATUS_CANCELLED, "cancelled before it began");
    else
        call->action->fn(call, call->action->arg);
    if (!ew__call_unhold())
        return; /* this thread has ended it */
    job->returned.fn = on_returned;
    ew__executor_post(call->executor, &job->returned);
}

static struct job *next_job(ew__workers *workers) {
    while (!workers->first && !workers->stopping) {
        workers->n_idle++;
        pthread_cond_wait(&workers->work, &workers->lock);
        workers->n_idle--;
    }
    struct job *job = workers->first;
    if (job) {
        workers->first = job->next;
        workers->n_jobs--;
    }
    return job;
}

static void *thread_main(void *arg) {
    ew__workers *workers = arg;
    pthread_mutex_lock(&workers->lock);
    for (struct job *job; (job = next_job(workers)) != NULL;) {
        pthread_mutex_unlock(&workers->lock);
        run_job(job);
        pthread_mutex_lock(&workers->lock);
    }
    workers->n_threads--;
    pthread_cond_broadcast(&workers->stopped);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static bool start_thread(ew__workers *workers) {
    pthread_t thread;
    if (!ew__thread_start(&thread, thread_main, workers))
        return false;
    pthread_detach(thread);
    return true;
}

/* ---- the callee's end ---- */

static ew_err enqueue(ew__workers *workers, struct job *job) {
    if (workers->n_jobs >= workers->limits->worker_queue || workers->stopping)
        return EW_ELIMIT;
    if (workers->n_idle <= workers->n_jobs && workers->n_threads < workers->limits->worker_threads &&
        start_thread(workers))
        workers->n_threads++;
    if (workers->n_threads == 0)
        return EW_EIO;
    EW__TAIL_ADD(workers->first, workers->last, job);
    workers->n_jobs++;
    pthread_cond_signal(&workers->work);
    return EW_OK;
}

static void on_open(ew_call *call) {
    ew__workers *workers = call->callee_ud;
    struct job *job = ew_call_alloc(call, sizeof *job);
    ew_err err = EW_ENOMEM;
    if (job) {
        *job = (struct job){.call = call};
        pthread_mutex_lock(&workers->lock);
        err = enqueue(workers, job);
        pthread_mutex_unlock(&workers->lock);
    }
    if (err != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_ACTION, EW_STATUS_RESOURCE_EXHAUSTED,
                         err == EW_ELIMIT ? EW_STR("too many calls wait for a worker thread")
                                          : EW_STR("no worker thread could be started"));
}

const ew__callee_ops *ew__workers_callee(const ew__workers *workers) { return &workers->callee; }

/* ---- life ---- */

ew__workers *ew__workers_new(const ew_env *env, const ew_limits *limits) {
    ew__workers *workers = ew__zalloc(env, sizeof *workers);
    if (!workers)
        return NULL;
    workers->env = env;
    workers->callee = ew__local_callee;
    workers->callee.open = on_open;
    workers->limits = limits;
    pthread_mutex_init(&workers->lock, NULL);
    ew__cond_init(&workers->work);
    ew__cond_init(&workers->stopped);
    return workers;
}

bool ew__workers_free(ew__workers *workers, uint64_t ms) {
    struct timespec until = ew__cond_until(ms);
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->work);
    int err = 0;
    while (workers->n_threads > 0 && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&workers->stopped, &workers->lock, &until);
    bool clean = workers->n_threads == 0;
    pthread_mutex_unlock(&workers->lock);
    if (!clean)
        return false;
    pthread_cond_destroy(&workers->work);
    pthread_cond_destroy(&workers->stopped);
    pthread_mutex_destroy(&workers->lock);
    ew__free(workers->env, workers, sizeof *workers);
    return true;
}
