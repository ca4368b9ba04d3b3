/*
 * store/store_thread.c: the thread around a backend of jobs. See jobs.h.
 *
 * Operations wait in a bounded queue. The thread takes what is there, lets the backend do it together, completes
 * them, and then notifies the watchers. While it works further operations gather: the more there is to do, the larger the
 * batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store_thread.h"
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_MS 1000                   /* the longest sleep, whatever a backend says */
#define MISSED_MS 50                   /* until a hint is tried again for which there was no memory */
#define BATCH_BYTES ((size_t)16 << 20) /* of params and results: a batch stays in memory until it is written */

static ew__store_thread *self_of(ew__store *store) { return ew__container_of(store, ew__store_thread, store); }

void ew__store_thread_wake(ew__store_thread *self) {
    uint64_t one = 1;
    while (write(self->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

/* ---- ends ---- */

static void complete_on_executor(ew__task *task) {
    ew__store_request *op = ew__container_of(task, ew__store_request, task);
    op->done(op);
}

/* The op is its owner's again. */
static void finish(ew__store_request *op) {
    if (op->executor == NULL) {
        op->done(op);
        return;
    }
    op->task.fn = complete_on_executor;
    ew__executor_post(op->executor, &op->task);
}

static void fail(ew__store_request *op, ew_err err, const char *problem) {
    op->err = err;
    (void)snprintf(op->problem, sizeof op->problem, "%s", problem);
}

static ew__store_request *take_first(ew__fifo *list) { return EW__ITEM(ew__fifo_pop(list), ew__store_request, node); }

/* Ends all of a list, in order. */
static void finish_all(ew__fifo list, ew_err err, const char *problem) {
    ew__store_request *op;
    while ((op = take_first(&list)) != NULL) {
        fail(op, err, problem);
        finish(op);
    }
}

/* ---- submitting ---- */

static void store_thread_submit(ew__store *store, ew__store_request *op) {
    static const char full[] = "too many operations wait for the store";
    ew__store_thread *self = self_of(store);
    pthread_mutex_lock(&self->lock);
    bool taken = self->n_waiting < EW__STORE_QUEUE, asleep = false;
    if (taken) {
        ew__fifo_push(&self->waiting, &op->node);
        self->n_waiting++;
    } else if (op->executor == NULL) { /* done must not be called in here; the thread does it, without the backend */
        ew__fifo_push(&self->refused, &op->node);
    }
    if (taken || op->executor == NULL) { /* the op may be gone as soon as the lock is */
        asleep = self->asleep;
        self->asleep = false;
        op = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    if (asleep) {
        ew__store_thread_wake(self);
    }
    if (op != NULL) {
        fail(op, EW_ELIMIT, full);
        finish(op);
    }
}

/* ---- batches ---- */

static const char *key_problem(const ew__op_enqueue *enqueue) {
    if (enqueue->dedup == EW__DEDUP_NONE) {
        return NULL;
    }
    if (enqueue->key.len == 0 || enqueue->key.len > EW__JOB_NAME_MAX) {
        return enqueue->key.len == 0 ? "the key cannot be empty" : "the key is too long";
    }
    return enqueue->key_ttl_ms > 0 ? NULL : "the time of the key must be positive";
}

/* Of a text that is JSON. */
static bool is_object(ew_str json) {
    size_t i = 0;
    while (i < json.len && strchr(" \t\r\n", json.ptr[i]) != NULL) {
        i++;
    }
    return i < json.len && json.ptr[i] == '{';
}

/* Why no store could do it; NULL. */
static const char *find_problem(const ew__store_thread *self, const ew__store_request *op) {
    if (op->kind != EW__OP_ENQUEUE) {
        return op->kind < EW__OP_KINDS ? NULL : "no such operation";
    }
    const char *problem = ew__job_problem(&op->u.enqueue.job);
    if (problem == NULL) {
        problem = key_problem(&op->u.enqueue);
    }
    if (problem == NULL && self->store.objects_only && !is_object(op->u.enqueue.job.params)) {
        problem = "this store keeps only params that are a JSON object";
    }
    return problem;
}

unsigned ew__store_thread_hints(const ew__store_request *op) {
    if (op->err != EW_OK) {
        return 0;
    }
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        return op->u.enqueue.ret == EW__ENQUEUED_NEW ||
                       (op->u.enqueue.ret == EW__ENQUEUED_KNOWN && op->u.enqueue.dedup == EW__DEDUP_DEBOUNCE)
                   ? EW__CHANGED_QUEUES
                   : 0;
    case EW__OP_CHANGE:
        return ew__job_is_final(op->u.change.status) ? EW__CHANGED_JOBS : EW__CHANGED_QUEUES;
    case EW__OP_CHUNKS:
        return EW__CHANGED_JOBS;
    case EW__OP_CANCEL:
        return op->u.cancel.ret == EW__CANCELLED_NOW     ? EW__CHANGED_JOBS
               : op->u.cancel.ret == EW__CANCELLED_ASKED ? EW__CHANGED_CANCELS
                                                         : 0;
    case EW__OP_REQUEUE:
        return EW__CHANGED_QUEUES;
    case EW__OP_PAUSE:
        return op->u.pause.on ? 0 : EW__CHANGED_QUEUES;
    default:
        return 0;
    }
}

static size_t weight(const ew__store_request *op) {
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        return op->u.enqueue.job.params.len;
    case EW__OP_CHANGE:
        return op->u.change.result.len + op->u.change.error.len;
    default:
        return 0;
    }
}

/* What waits becomes a batch. Under the lock. */
static size_t take_batch(ew__store_thread *self) {
    size_t n = 0, bytes = 0;
    while (n < EW__STORE_BATCH && bytes < BATCH_BYTES && self->waiting.first != NULL) {
        ew__store_request *op = take_first(&self->waiting);
        bytes += weight(op);
        self->batch[n++] = op;
    }
    self->n_waiting -= n;
    return n;
}

static void run_batch(ew__store_thread *self, size_t n) {
    ew__fifo list = {NULL, NULL};
    unsigned hints = 0;
    for (size_t i = 0; i < n; i++) {
        ew__store_request *op = self->batch[i];
        const char *problem = find_problem(self, op);
        fail(op, problem != NULL ? EW_EINVAL : EW_EIO, problem != NULL ? problem : "");
        if (problem == NULL) {
            ew__fifo_push(&list, &op->node);
        }
    }
    if (list.first != NULL) {
        self->backend->ops->run(self->backend, EW__ITEM(list.first, ew__store_request, node));
    }
    for (size_t i = 0; i < n; i++) { /* while the ops are still ours */
        hints |= ew__store_thread_hints(self->batch[i]);
    }
    for (size_t i = 0; i < n; i++) {
        finish(self->batch[i]);
    }
    if (hints != 0) {
        ew__store_thread_notify(self, hints);
    }
}

/* ---- the thread ---- */

static int sleep_ms(const ew__store_thread *self, bool idle) {
    uint64_t ms = WAIT_MS, each = self->backend->idle_ms;
    if (!idle) {
        return 0;
    }
    if (each != 0) {
        uint64_t passed = (self->store.env->now_ns(self->store.env->ud) - self->looked_at) / 1000000;
        ms = passed >= each ? 0 : each - passed;
    }
    ms = self->missed != 0 && ms > MISSED_MS ? MISSED_MS : ms;
    return (int)(ms < WAIT_MS ? ms : WAIT_MS);
}

static void look(ew__store_thread *self) {
    self->looked_at = self->store.env->now_ns(self->store.env->ud);
    unsigned hints = self->backend->ops->look(self->backend);
    if (hints != 0 || self->missed != 0) {
        ew__store_thread_notify(self, hints);
    }
}

/* Sleeps until there is something to do (not at all unless idle), and looks whether others have done something. */
static void wait_and_look(ew__store_thread *self, bool idle) {
    struct pollfd fds[2] = {{.fd = self->wake, .events = POLLIN},
                            {.fd = self->backend->ops->watch_fd(self->backend), .events = POLLIN}};
    uint64_t each = self->backend->idle_ms;
    int ms = sleep_ms(self, idle), n = poll(fds, 2, ms);
    if (idle) {
        pthread_mutex_lock(&self->lock);
        self->asleep = false;
        pthread_mutex_unlock(&self->lock);
    }
    if (n > 0 && fds[0].revents != 0) {
        uint64_t count;
        (void)!read(self->wake, &count, sizeof count);
    }
    uint64_t passed = self->store.env->now_ns(self->store.env->ud) - self->looked_at;
    bool readable = n > 0 && fds[1].revents != 0, slept = idle && n == 0;
    if (readable || slept || (each != 0 && passed >= EW__MS(each))) {
        look(self);
    }
}

/* False at the end. */
static bool turn(ew__store_thread *self) {
    pthread_mutex_lock(&self->lock);
    bool closing = self->closing, wants = self->want != self->backend_want;
    unsigned want = self->backend_want = self->want;
    ew__fifo refused = ew__fifo_take(&self->refused);
    size_t n = closing ? 0 : take_batch(self);
    bool idle = n == 0 && refused.first == NULL && !closing;
    self->asleep = idle;
    pthread_mutex_unlock(&self->lock);
    if (wants && self->backend->ops->want != NULL) {
        self->backend->ops->want(self->backend, want);
    }
    finish_all(refused, EW_ELIMIT, "too many operations wait for the store");
    if (closing) {
        return false;
    }
    if (n > 0) {
        run_batch(self, n);
    }
    wait_and_look(self, idle);
    return true;
}

static void *thread_main(void *arg) {
    ew__store_thread *self = arg;
    while (turn(self)) {
    }
    finish_all(self->waiting, EW_ECLOSED, "the store is closed");
    return NULL;
}

/* ---- making and freeing ---- */

static const char *store_thread_notice(ew__store *store) {
    ew__store_thread *self = self_of(store);
    return self->backend->ops->notice(self->backend);
}

static void free_parts(ew__store_thread *self) {
    self->backend->ops->free(self->backend);
    if (self->wake >= 0) {
        (void)close(self->wake);
    }
    pthread_cond_destroy(&self->notified);
    pthread_mutex_destroy(&self->lock);
    ew__free(self->store.env, self, sizeof *self);
}

static void store_thread_free(ew__store *store) {
    ew__store_thread *self = self_of(store);
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_mutex_unlock(&self->lock);
    ew__store_thread_wake(self);
    (void)pthread_join(self->thread, NULL);
    free_parts(self);
}

ew_err ew__jobs_thread(const ew_env *env, ew__backend *backend, ew__store **ret) {
    static const ew__store_ops ops = {.submit = store_thread_submit,
                                      .watch = ew__store_thread_watch,
                                      .notice = store_thread_notice,
                                      .free = store_thread_free};
    *ret = NULL;
    ew__store_thread *self = ew__zalloc(env, sizeof *self);
    if (self == NULL) {
        backend->ops->free(backend);
        return EW_ENOMEM;
    }
    self->store = (ew__store){.ops = &ops, .env = env, .name = backend->name, .objects_only = backend->objects_only};
    self->backend = backend;
    self->looked_at = env->now_ns(env->ud);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->notified, NULL);
    self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->wake < 0 || !ew__thread_start(&self->thread, thread_main, self)) {
        free_parts(self);
        return EW_EIO;
    }
    *ret = &self->store;
    return EW_OK;
}
