/*
 * store/store_thread.h: the thread that executes a store's requests in batches; for store_thread.c and watch.c.
 */
#ifndef EW_STORE_STORE_THREAD_H
#define EW_STORE_STORE_THREAD_H

#include "base/thread.h"
#include "store/jobs.h"
#include <errno.h>

#define EW__STORE_BATCH 1024 /* operations that are done together, at most */

typedef struct ew__store_thread {
    ew__store store;
    ew__backend *backend;
    pthread_t thread;
    int wake; /* eventfd */

    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t notified; /* `notifying` has changed */
    ew__fifo waiting, refused;
    size_t n_waiting;
    bool asleep; /* or about to sleep: the submitter must wake the thread */
    bool closing;
    ew__watcher *watchers;
    ew__watcher *notifying; /* the thread calls it at this moment, without the lock */
    unsigned want;          /* of all watchers */

    /* the thread's own */
    unsigned backend_want; /* `want` as the backend knows it */
    unsigned missed;       /* hints that no notification could be allocated for */
    uint64_t looked_at;
    ew__store_request *batch[EW__STORE_BATCH];
} ew__store_thread;

void ew__store_thread_wake(ew__store_thread *self);
/* The changes that a completed request means for watchers (ew__change). */
unsigned ew__store_thread_hints(const ew__store_request *op);
/* Notifies all watchers that want these hints. The store's thread. */
void ew__store_thread_notify(ew__store_thread *self, unsigned hints);
void ew__store_thread_watch(ew__store *store, ew__watcher *watcher, bool on);

#endif
