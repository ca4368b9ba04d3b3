/*
 * store/jobs.h: the stores of jobs (jobs/store.h) of this build. Both have a thread of their own, which takes all
 * operations that wait, does them together (one commit of SQLite, one pipeline of Redis), and then tells their owners.
 * May include: base json call jobs.
 */
#ifndef EW_STORE_JOBS_H
#define EW_STORE_JOBS_H

#include "jobs/store.h"

/* ---- for everybody ---- */

#define EW__STORE_QUEUE 65536 /* operations that may wait; EW_ELIMIT beyond */

/*
 * The store that `spec` names: "sqlite:PATH" (a file is made if there is none, mode 0600, and its folder, 0700;
 * a file that other users can write or that belongs to one is refused, see trust.h), or
 * "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]" ("valkey://" too; "unix://PATH[?db=N]", "redis+unix:PATH"). EW_OK;
 * EW_EINVAL: not a store; EW_EUNSUPPORTED (rediss:// and others that need TLS), EW_EIO, EW_ECONNECT, EW_ETIMEOUT,
 * EW_EACCESS, EW_ENOMEM; problem, if not NULL, then gets a line for people. A Redis that cannot be reached now is
 * EW_ECONNECT: later losses are mended by dialling again.
 */
ew_err ew__jobs_open(const ew_env *env, const char *spec, ew__store **ret, char *problem, size_t problem_size);

/*
 * Submits requests of one owner, and waits until all have completed. Stores answer everything within a bounded time.
 * Sets executor and done of each. Not on the store's thread.
 */
void ew__store_do_all(ew__store *store, ew__store_request *ops, size_t n);
ew_err ew__store_do(ew__store *store, ew__store_request *op); /* the same for one request; returns op->err */

/* ---- for the stores ---- */

typedef struct ew__backend ew__backend;

/* All on the store's thread (or, in a test, on whichever thread drives it). */
typedef struct ew__backend_ops {
    /*
     * Does all operations of the list (linked by `next`, in order), and sets err of each. What one of them wrote is
     * there for the next. When it returns, everything that has err EW_OK is durable.
     */
    void (*run)(ew__backend *backend, ew__store_request *ops);
    /* A descriptor that is readable when something may have changed; -1: none now. May change between calls. */
    int (*watch_fd)(ew__backend *backend);
    /* It is readable, or idle_ms have passed since the last look: what may have changed (ew__change), 0 for nothing. */
    unsigned (*look)(ew__backend *backend);
    /* What watchers want, all of them together; so that no more is watched than that. May be NULL. */
    void (*want)(ew__backend *backend, unsigned changes);
    const char *(*notice)(ew__backend *backend);
    void (*free)(ew__backend *backend);
} ew__backend_ops;

struct ew__backend {
    const ew__backend_ops *ops;
    const ew_env *env;
    const char *name;
    bool objects_only;
    uint64_t idle_ms; /* how often it is looked at when no descriptor tells; may change between calls */
};

/* A store around a backend, which it takes over (also on failure). EW_OK, EW_ENOMEM, EW_EIO. */
ew_err ew__jobs_thread(const ew_env *env, ew__backend *backend, ew__store **ret);

ew_err ew__jobs_sqlite(const ew_env *env, const char *path, ew__backend **ret, char *problem, size_t problem_size);
ew_err ew__jobs_redis(const ew_env *env, const char *url, ew__backend **ret, char *problem, size_t problem_size);

#endif
