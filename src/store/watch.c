/*
 * store/watch.c: watchers of changes in a store. See store_thread.h.
 *
 * A watcher with an executor is notified by a task on that executor. The task is memory of its own: it cannot be
 * withdrawn when the watcher is removed, and is ignored then. Each watcher has at most one notification under way; hints
 * that follow are added to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store_thread.h"
#include "base/list.h"

typedef struct notification {
    ew__task task;
    const ew_env *env;
    ew__watcher *watcher; /* NULL: it was removed. Changed by the executor's thread only */
} notification;

static ew__store_thread *self_of(ew__store *store) { return ew__container_of(store, ew__store_thread, store); }

/* On the executor of the watcher. */
static void arrive(ew__task *task) {
    notification *self = ew__container_of(task, notification, task);
    ew__watcher *watcher = self->watcher;
    ew__free(self->env, self, sizeof *self);
    if (watcher == NULL) {
        return;
    }
    watcher->notification = NULL; /* before pending: from then on the store may send the next one */
    watcher->changed(watcher, atomic_exchange(&watcher->pending, 0));
}

/* Under the lock; nothing is under way to this watcher. */
static void send(ew__store_thread *self, ew__watcher *watcher) {
    notification *message = ew__zalloc(self->store.env, sizeof *message);
    if (message == NULL) {
        self->missed |= atomic_exchange(&watcher->pending, 0);
        return;
    }
    *message = (notification){.task = {.fn = arrive}, .env = self->store.env, .watcher = watcher};
    watcher->notification = message;
    ew__executor_post(watcher->executor, &message->task);
}

/* A watcher without an executor that has hints. Under the lock. */
static ew__watcher *next_without_executor(const ew__store_thread *self) {
    ew__watcher *watcher = self->watchers;
    while (watcher != NULL && (watcher->executor != NULL || atomic_load(&watcher->pending) == 0)) {
        watcher = watcher->next;
    }
    return watcher;
}

void ew__store_thread_notify(ew__store_thread *self, unsigned hints) {
    ew__watcher *watcher;
    hints |= self->missed;
    self->missed = 0;
    pthread_mutex_lock(&self->lock);
    for (watcher = self->watchers; watcher != NULL; watcher = watcher->next) {
        unsigned what = hints & watcher->want;
        if (what != 0 && atomic_fetch_or(&watcher->pending, what) == 0 && watcher->executor != NULL) {
            send(self, watcher);
        }
    }
    while ((watcher = next_without_executor(self)) != NULL) {
        unsigned what = atomic_exchange(&watcher->pending, 0);
        self->notifying = watcher;
        pthread_mutex_unlock(&self->lock); /* it may want to watch, or to submit */
        watcher->changed(watcher, what);
        pthread_mutex_lock(&self->lock);
        self->notifying = NULL;
        pthread_cond_broadcast(&self->notified);
    }
    pthread_mutex_unlock(&self->lock);
}

static void add(ew__store_thread *self, ew__watcher *watcher) {
    atomic_init(&watcher->pending, 0);
    watcher->notification = NULL;
    EW__LIST_ADD(self->watchers, watcher);
}

static void take_away(ew__store_thread *self, ew__watcher *watcher) {
    EW__LIST_REMOVE(self->watchers, watcher);
    if (watcher->notification != NULL) {
        notification *message = watcher->notification;
        message->watcher = NULL;
        watcher->notification = NULL;
    }
    while (self->notifying == watcher) {
        pthread_cond_wait(&self->notified, &self->lock);
    }
}

void ew__store_thread_watch(ew__store *store, ew__watcher *watcher, bool on) {
    ew__store_thread *self = self_of(store);
    unsigned want = 0;
    pthread_mutex_lock(&self->lock);
    if (on) {
        add(self, watcher);
    } else {
        take_away(self, watcher);
    }
    for (const ew__watcher *one = self->watchers; one != NULL; one = one->next) {
        want |= one->want;
    }
    bool changed = want != self->want;
    self->want = want;
    pthread_mutex_unlock(&self->lock);
    if (changed) {
        ew__store_thread_wake(self);
    }
}
