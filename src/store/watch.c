/*
 * store/watch.c: those who want to know what changes in a store. See jobs_thread.h.
 *
 * A watcher with a executor is told by a letter to that executor. The letter is memory of its own, because it cannot be called
 * back from the executor when the watcher goes: then it arrives for nobody. There is one letter at a time for each watcher;
 * further hints are added to it until it has arrived.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store_thread.h"

typedef struct letter {
    ew__task task;
    const ew_env *env;
    ew__watcher *watcher; /* NULL: it has gone. Changed by the executor's thread only */
} letter;

static ew__store_thread *self_of(ew__store *store) { return ew__container_of(store, ew__store_thread, store); }

/* On the executor of the watcher. */
static void arrive(ew__task *task) {
    letter *self = ew__container_of(task, letter, task);
    ew__watcher *watcher = self->watcher;
    ew__free(self->env, self, sizeof *self);
    if (watcher == NULL) {
        return;
    }
    watcher->letter = NULL; /* before pending: from then on the store may send the next one */
    watcher->changed(watcher, atomic_exchange(&watcher->pending, 0));
}

/* Under the lock; nothing is under way to this watcher. */
static void send(ew__store_thread *self, ew__watcher *watcher) {
    letter *mail = ew__zalloc(self->store.env, sizeof *mail);
    if (mail == NULL) {
        self->missed |= atomic_exchange(&watcher->pending, 0);
        return;
    }
    *mail = (letter){.task = {.fn = arrive}, .env = self->store.env, .watcher = watcher};
    watcher->letter = mail;
    ew__executor_post(watcher->executor, &mail->task);
}

/* Somebody without a executor who is to be told. Under the lock. */
static ew__watcher *next_homeless(const ew__store_thread *self) {
    ew__watcher *watcher = self->watchers;
    while (watcher != NULL && (watcher->executor != NULL || atomic_load(&watcher->pending) == 0)) {
        watcher = watcher->next;
    }
    return watcher;
}

void ew__store_thread_tell(ew__store_thread *self, unsigned hints) {
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
    while ((watcher = next_homeless(self)) != NULL) {
        unsigned what = atomic_exchange(&watcher->pending, 0);
        self->telling = watcher;
        pthread_mutex_unlock(&self->lock); /* it may want to watch, or to submit */
        watcher->changed(watcher, what);
        pthread_mutex_lock(&self->lock);
        self->telling = NULL;
        pthread_cond_broadcast(&self->told);
    }
    pthread_mutex_unlock(&self->lock);
}

static void add(ew__store_thread *self, ew__watcher *watcher) {
    atomic_init(&watcher->pending, 0);
    watcher->letter = NULL;
    EW__LIST_ADD(self->watchers, watcher);
}

static void take_away(ew__store_thread *self, ew__watcher *watcher) {
    EW__LIST_REMOVE(self->watchers, watcher);
    if (watcher->letter != NULL) {
        letter *mail = watcher->letter;
        mail->watcher = NULL;
        watcher->letter = NULL;
    }
    while (self->telling == watcher) {
        pthread_cond_wait(&self->told, &self->lock);
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
