/*
 * jobs/store.h: the interface of job stores: a few operations, each of which is executed wholly or not at all. SQLite,
 * Redis (src/store) and a model in the tests implement it; one suite of tests holds for all three (tests/store).
 *
 * An operation is a struct that its owner fills in and submits; the store fills in the rest and calls `done` once.
 * Until then the struct, its arena and all that it points to belong to the store. What comes back lies in op->arena.
 */
#ifndef EW_JOBS_STORE_H
#define EW_JOBS_STORE_H

#include "base/executor.h"
#include "base/list.h"
#include "jobs/job.h"

typedef enum ew__op_kind {
    EW__OP_ENQUEUE, /* a new job */
    EW__OP_CLAIM,   /* jobs that are due become ACTIVE and this worker's */
    EW__OP_CHANGE,  /* what has become of a job that is ours (or whose worker is lost) */
    EW__OP_RENEW,   /* a worker lives: its leases, and what it says of itself */
    EW__OP_EXPIRED, /* jobs whose lease has run out */
    EW__OP_CHUNKS,  /* chunks that a running job has produced */
    EW__OP_GET,     /* a job, and perhaps its chunks */
    EW__OP_LIST,    /* jobs, newest first */
    EW__OP_CANCEL,
    EW__OP_REQUEUE, /* a dead letter comes back to a queue */
    EW__OP_QUEUES,  /* all queues, with counts */
    EW__OP_PAUSE,   /* nothing is claimed from a queue, or is again */
    EW__OP_WORKERS, /* who has renewed lately */
    EW__OP_SWEEP,   /* what has outlived its time goes */
    EW__OP_KINDS
} ew__op_kind;

typedef struct ew__store ew__store;
typedef struct ew__store_request ew__store_request;

/* ---- ENQUEUE ---- */

typedef enum ew__dedup_mode {
    EW__DEDUP_NONE,
    EW__DEDUP_UNIQUE, /* while the key lives and its job exists: that job's id, and nothing new */
    EW__DEDUP_RATE,   /* while the key lives: nothing new, and no id */
    /*
     * The key's job, if it is still PENDING, gets this function, params, times, limits and queue instead (a trace only
     * if there is one; its enqueued_at stays); the key lives on.
     */
    EW__DEDUP_DEBOUNCE,
} ew__dedup_mode;

typedef enum ew__enqueued {
    EW__ENQUEUED_NEW,
    EW__ENQUEUED_KNOWN,     /* unique or debounce: ret_id is the other job's */
    EW__ENQUEUED_LIMITED,   /* rate: none */
    EW__ENQUEUED_DUPLICATE, /* there is a job with this id already: an error for who chose it */
} ew__enqueued;

typedef struct ew__op_enqueue {
    ew__job job; /* id, function, queue, params, times, trace ...; status is PENDING */
    ew__dedup_mode dedup;
    ew_str key;         /* each mode has names of its own */
    int64_t key_ttl_ms; /* > 0 */
    ew__enqueued ret;
    ew_str ret_id;
} ew__op_enqueue;

/* ---- CLAIM ---- */

typedef struct ew__claim_queue {
    ew_str name;
    uint32_t max; /* of this queue; 0: none now */
} ew__claim_queue;

/* In the order of the queues (the first is asked first); within one by run_at, then id. Paused queues give nothing. */
typedef struct ew__op_claim {
    ew_str worker;
    const ew__claim_queue *queues;
    size_t n_queues;
    uint32_t max; /* in all */
    int64_t now;  /* wall clock */
    uint64_t lease_ms;
    ew__job *ret; /* whole jobs, ACTIVE, with their new epoch */
    size_t ret_n;
    int64_t ret_next; /* when something that is not due yet will be, in these queues (paused ones aside); 0: nothing */
} ew__op_claim;

/* ---- CHANGE ---- */

/* Who may change it. In each case the job must be ACTIVE with this epoch. */
typedef enum ew__claim_state {
    EW__CLAIM_HELD, /* its worker: the lease may have run out, as long as nobody else has taken the job */
    EW__CLAIM_LOST, /* anybody: its lease has run out. A live lease refuses */
} ew__claim_state;

typedef struct ew__op_change {
    ew_str id;
    ew_str queue;  /* of the job */
    ew_str worker; /* that has claimed it */
    uint64_t epoch;
    ew__claim_state claim;
    ew__job_status status; /* what it is to be. PENDING and RETRYING: in its queue again, due at run_at */
    int64_t run_at;
    int64_t now;
    uint32_t retries, lost; /* what they are to be */
    ew_str result;          /* COMPLETED */
    ew_str last_error;      /* empty: as it was */
    ew_str error;
    ew_str dlq;            /* FAILED: the name of the dead-letter queue */
    int64_t result_ttl_ms; /* of the job */
    /*
     * Of the job: with a final status (also by CANCEL) RRQ's lock of it ends, and a key of EW__DEDUP_UNIQUE of this name,
     * if it is this job's.
     */
    ew_str unique_key;
} ew__op_change;
/* Dead letters are for people, who take longer: they are kept that long at least (0 as ever: for ever). As RRQ. */
#define EW__JOB_DEAD_TTL_MS INT64_C(604800000)
/* op->err: EW_OK; EW_ENOTFOUND: no such job; EW_ESTALE: the claim does not hold any more (or, LOST, still does). */

/* ---- RENEW ---- */

typedef enum ew__lease_state {
    EW__LEASE_HELD,
    EW__LEASE_CANCEL, /* held, and the job is to be cancelled */
    EW__LEASE_GONE    /* another claim has followed, or the job is gone: stop, nobody wants the result */
} ew__lease_state;

typedef struct ew__lease {
    ew_str id;
    uint64_t epoch;
    ew__lease_state ret;
} ew__lease;

/* A lease that has run out but was not taken by anybody is held again. */
typedef struct ew__op_renew {
    ew_str worker;
    ew_str record;   /* JSON, as RRQ's health record; empty: the worker ends, and is forgotten */
    uint64_t ttl_ms; /* of the record */
    uint64_t lease_ms;
    ew__lease *leases;
    size_t n_leases;
} ew__op_renew;

/* ---- EXPIRED ---- */

typedef struct ew__op_expired {
    int64_t now;
    uint32_t max;
    ew__job *ret; /* at least id, queue, worker, epoch, retries, lost, max_retries, dlq, unique_key, times */
    size_t ret_n;
} ew__op_expired;

/* ---- CHUNKS ---- */

/* Kept per job: the newest chunks_max, of chunk_bytes_max in all; older ones are dropped. */
#define EW__JOB_CHUNKS_MAX 1000
#define EW__JOB_CHUNK_BYTES_MAX (1024 * 1024)

typedef struct ew__chunk {
    uint64_t seq; /* from 1, over all attempts */
    ew_str json;
} ew__chunk;

/* Errors as CHANGE (HELD). */
typedef struct ew__op_chunks {
    ew_str id, worker;
    uint64_t epoch;
    const ew_str *chunks;
    size_t n;
} ew__op_chunks;

/* ---- looking ---- */

typedef struct ew__op_get {
    ew_str id;
    bool want_chunks;
    uint64_t after; /* chunks with a greater seq */
    ew__job ret;
    ew__chunk *ret_chunks; /* at most 256 at a time, in order */
    size_t ret_n_chunks;
} ew__op_get; /* EW_ENOTFOUND */

/* Empty and EW__JOB_STATUSES: any. By enqueue time, newest first; dead letters by their end, newest first. */
typedef struct ew__op_list {
    ew_str queue, function;
    ew__job_status status; /* EW__JOB_STATUSES: any */
    ew_str dlq;            /* not empty: what is in this dead-letter queue, instead of jobs in general */
    bool waiting;          /* only what waits in `queue`, in the order in which it is due */
    uint32_t limit, offset;
    ew__job *ret;
    size_t ret_n;
    uint64_t ret_total; /* that match; exact for dead letters and waiting ones, else at least what was seen */
} ew__op_list;

typedef enum ew__cancelled {
    EW__CANCELLED_NOW,   /* it waited, and is CANCELLED */
    EW__CANCELLED_ASKED, /* it runs; its worker is notified. The request stays with the job until it ends */
    EW__CANCELLED_LATE,  /* it had ended already; ret_status says how */
} ew__cancelled;

typedef struct ew__op_cancel {
    ew_str id;
    int64_t now;
    ew__cancelled ret;
    ew__job_status ret_status;
} ew__op_cancel; /* EW_ENOTFOUND */

/* A FAILED (or CANCELLED) job is PENDING again in `queue` (empty: its own), with all its attempts. */
typedef struct ew__op_requeue {
    ew_str id;
    ew_str queue;
    int64_t now;
} ew__op_requeue; /* EW_ENOTFOUND; EW_ESTALE: it is no dead letter */

typedef struct ew__queue_stats {
    ew_str name;
    /* pending: all that waits, also for another attempt; dead: its jobs that are dead letters */
    uint64_t pending, active, retrying, completed, failed, cancelled, dead;
    int64_t oldest_due, newest_due; /* run_at; 0: nothing waits */
    bool paused;
    int64_t average_wait_ms; /* from enqueue to start, over those that began; -1: not known */
} ew__queue_stats;

/* Queues in which something waits, and paused ones; with counts all that have jobs. */
typedef struct ew__op_queues {
    bool counts;       /* also what takes a look at every job (active, completed ..., average_wait_ms) */
    uint32_t max_scan; /* jobs to look at for that, at most; 0: all */
    ew__queue_stats *ret;
    size_t ret_n;
    bool ret_partial; /* max_scan was reached */
} ew__op_queues;

typedef struct ew__op_pause {
    ew_str queue;
    bool on;
} ew__op_pause;

typedef struct ew__worker_record {
    ew_str id;
    ew_str record; /* JSON */
    uint64_t ttl_ms;
} ew__worker_record;

typedef struct ew__op_workers {
    ew__worker_record *ret;
    size_t ret_n;
} ew__op_workers;

typedef struct ew__op_sweep {
    int64_t now;
    uint32_t max;
    uint64_t ret_removed; /* as many as max: there may be more */
} ew__op_sweep;

/* ---- all of them ---- */

/* A component that submits requests. */
typedef struct ew__store_owner {
    ew__store *store;
    const ew_env *env;
    ew__executor *executor; /* its requests complete on this thread; NULL: on the store's own */
    uint32_t n_busy;        /* requests under way; only counted with an executor */
} ew__store_owner;

/* Embedded in the owner's state of the operation. Must not be moved: `arena` may point to `memory`. */
struct ew__store_request {
    ew__op_kind kind;
    ew__store_owner *owner;
    ew__arena *arena;       /* for what comes back */
    ew__executor *executor; /* done is called on its thread; NULL: on the store's own */
    void (*done)(ew__store_request *op);
    bool busy;        /* from ew__store_request_submit to ew__store_request_returned */
    ew__arena memory; /* of ew__store_request_begin; usually what `arena` points to */
    /*
     * EW_OK, or what its struct says, or: EW_ECONNECT, EW_ETIMEOUT, EW_EIO: the store could not do it, or (a Redis that
     * was lost meanwhile) nobody knows whether it did; EW_EBUSY: others had it for too long; EW_ELIMIT: full;
     * EW_ENOMEM; EW_ECLOSED; EW_EINVAL: this store cannot keep such a job (problem says why). On every error all ret
     * members mean nothing.
     */
    ew_err err;
    char problem[160];  /* for people; "" */
    ew__fifo_node node; /* the store's */
    ew__task task;      /* the store's */
    union {
        ew__op_enqueue enqueue;
        ew__op_claim claim;
        ew__op_change change;
        ew__op_renew renew;
        ew__op_expired expired;
        ew__op_chunks chunks;
        ew__op_get get;
        ew__op_list list;
        ew__op_cancel cancel;
        ew__op_requeue requeue;
        ew__op_queues queues;
        ew__op_pause pause;
        ew__op_workers workers;
        ew__op_sweep sweep;
    } u;
};

/* The request that follows in the store's list; NULL: this is the last. */
static inline ew__store_request *ew__store_request_after(const ew__store_request *op) {
    return EW__ITEM(op->node.next, ew__store_request, node);
}

/* Prepares a request: empty memory of its own, kind, owner, executor and nothing else. _end must follow. */
void ew__store_request_begin(ew__store_request *op, ew__store_owner *owner, ew__op_kind kind);
/* Prepares another operation with the same memory: what the last one returned stays. */
void ew__store_request_next(ew__store_request *op, ew__op_kind kind);
/* Prepares another operation, and frees what the last one returned. */
void ew__store_request_again(ew__store_request *op, ew__op_kind kind);
void ew__store_request_submit(ew__store_request *op, void (*done)(ew__store_request *op));
/* `done` calls this first, unless the owner keeps the request busy for longer. */
void ew__store_request_returned(ew__store_request *op);
/* Frees what it returned. */
void ew__store_request_end(ew__store_request *op);

/* Errors of the connection to a store. The operation may have been executed. */
static inline bool ew__store_is_unknown(ew_err err) {
    return err == EW_ECONNECT || err == EW_ETIMEOUT || err == EW_EIO;
}
/* Errors after which the same operation may succeed later. */
static inline bool ew__store_is_transient(ew_err err) {
    return ew__store_is_unknown(err) || err == EW_EBUSY || err == EW_ELIMIT || err == EW_ENOMEM;
}

/* What may have changed, not by this store's own operations alone; hints that rather come too often than too rarely. */
typedef enum ew__change {
    EW__CHANGED_QUEUES = 1,  /* something may be due */
    EW__CHANGED_JOBS = 2,    /* a job has produced a chunk, or ended */
    EW__CHANGED_CANCELS = 4, /* a running job is to be cancelled */
    EW__CHANGED_BACK = 8,    /* the store can be reached again */
} ew__change;

/* Receives hints of changes. Added and removed by ew__store_ops.watch; one owner. */
typedef struct ew__watcher ew__watcher;
struct ew__watcher {
    ew__watcher *next, *prev; /* the store's */
    ew__executor *executor;   /* NULL: on the store's thread */
    unsigned want;            /* of ew__change */
    void (*changed)(ew__watcher *watcher, unsigned what);
    atomic_uint pending; /* the store's */
    ew__task task;       /* the store's */
    void *notification;  /* the store's */
    void *ud;
};

typedef struct ew__store_ops {
    /*
     * Any thread. Never blocks; done follows exactly once, never before this returns. Operations of one thread are done
     * in the order of their submission.
     */
    void (*submit)(ew__store *store, ew__store_request *op);
    /*
     * Adds a watcher, or takes it away: then changed is not called any more (call it on the watcher's executor, or, executor
     * NULL, on any other thread than the store's: it waits for one that is being called).
     */
    void (*watch)(ew__store *store, ew__watcher *watcher, bool on);
    /* What people should know of it: "redis 7.0.15: appendfsync everysec: ..."; "" for nothing. Any thread. */
    const char *(*notice)(ew__store *store);
    void (*free)(ew__store *store); /* what waits ends with EW_ECLOSED first. Not on the store's thread */
} ew__store_ops;

struct ew__store {
    const ew__store_ops *ops;
    const ew_env *env;
    const char *name;  /* "sqlite", "redis" */
    bool objects_only; /* params must be a JSON object */
};

#endif
