/*
 * store/store_thread.h: what the thread of a store is made of; for jobs_thread.c and jobs_watch.c. May include: base
 * json call queue.
 */
#ifndef EW_STORE_STORE_THREAD_H
#define EW_STORE_STORE_THREAD_H

#include "base/thread.h"
#include "store/jobs.h"
#include <errno.h>

#define EW__SHELL_BATCH 1024 /* operations that are done together, at most */

typedef struct ew__store_thread_list {
    ew__store_request *first, *last;
} ew__store_thread_list;

typedef struct ew__store_thread {
    ew__store store;
    ew__backend *backend;
    pthread_t thread;
    int wake; /* eventfd */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t told;  /* `telling` has changed */
    ew__store_thread_list waiting, refused;
    size_t n_waiting;
    bool asleep; /* or about to be: whoever submits must wake the thread */
    bool closing;
    ew__watcher *watchers;
    ew__watcher *telling; /* the thread calls it at this moment, without the lock */
    unsigned want;        /* of all watchers */

    /* the thread's own */
    unsigned told_want;
    unsigned missed; /* hints that could not be told for want of memory */
    uint64_t looked_at;
    ew__store_request *batch[EW__SHELL_BATCH];
} ew__store_thread;

void ew__store_thread_wake(ew__store_thread *self);
/* What an operation that is done may mean for others (ew__change). */
unsigned ew__store_thread_hints(const ew__store_request *op);
/* Tells all watchers that want it. The store's thread. */
void ew__store_thread_tell(ew__store_thread *self, unsigned hints);
void ew__store_thread_watch(ew__store *store, ew__watcher *watcher, bool on);

#endif
