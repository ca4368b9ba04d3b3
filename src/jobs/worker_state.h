/*
 * jobs/worker_state.h: the state of a worker, by the file that owns it. worker.c: its life; worker_claim.c: claims;
 * worker_run.c: an attempt until the store has recorded its outcome; worker_chunks.c: the chunks it produces;
 * worker_lease.c: leases and the record of the worker; worker_scan.c: jobs of lost workers, and old jobs;
 * worker_cron.c: schedules.
 *
 * Each part consists of store requests that may be under way, and timers; none blocks. The timers are in a heap of the
 * worker, which has room for all of them from the beginning: setting one cannot fail.
 */
#ifndef EW_JOBS_WORKER_STATE_H
#define EW_JOBS_WORKER_STATE_H

#include "jobs/worker.h"

#define EW__WORKER_BACKOFF_MS 100 /* after a failure of the store, doubling */
#define EW__WORKER_BACKOFF_MAX_MS 2000
#define EW__WORKER_ENDS_MS 10000 /* a worker that stops waits so long for a store that cannot be reached */

/* ---- worker_claim.c: the queues, and the claim of due jobs ---- */

typedef struct ew__queue_state {
    ew_str name;
    int32_t priority;
    uint32_t concurrency;
    uint32_t running;
    uint64_t *begun; /* a ring of the times at which the last `rate` jobs began; NULL: no rate */
    uint32_t rate, at;
    uint64_t rate_ns;
} ew__queue_state;

/* The jobs of one claim: kept while a job still lies in its memory. */
typedef struct ew__batch {
    ew__store_request op;
    uint32_t users;
} ew__batch;

typedef struct ew__claims {
    ew__queue_state *queues;
    size_t n_queues;
    ew__queue_state **order; /* of the queues in a claim: by priority, equal ones take turns */
    ew__claim_queue *limits; /* of the claim under way, for each queue */
    ew__batch *batch;        /* of the claim under way, or NULL */
    bool all_queues;         /* the claim under way names every queue */
    bool again;              /* claim again after the one under way */
    uint32_t tries;
    ew__queue_state *narrow; /* the queue that made the last claim small */
    bool skip_narrow;        /* the next claim leaves it out */
    ew__timer timer;
    uint64_t doubt_until; /* the store may have executed a claim whose result was lost */
} ew__claims;

/* ---- worker_run.c: attempts ---- */

typedef enum ew__run_state {
    EW__RUN_GOING,
    EW__RUN_STOPPING, /* the runner was asked to end it */
    EW__RUN_ENDING,   /* its outcome is known, the store has not recorded it yet */
    EW__RUN_LEFT      /* given up: the runner still owes its end, which is ignored */
} ew__run_state;

typedef struct ew__attempt ew__attempt;
struct ew__attempt {
    ew__run run;              /* first: the runner's view */
    ew__attempt *next, *prev; /* in attempts.left or attempts.spare */
    const ew_env *env;
    ew__arena arena;
    ew__batch *batch; /* in whose memory the job lies; NULL: in the arena */
    ew__queue_state *queue;
    uint32_t slot;
    ew__run_state state;
    ew__stop_why why;
    bool stopped;    /* why is set */
    bool owed;       /* the runner's end is still to come */
    ew__timer timer; /* going: its deadline; stopping: the grace time; ending: the next try */
    ew__outcome outcome;
    ew__policy_text text;
    ew__store_request end;
    bool decided; /* end.u.change is filled in */
    bool doubt;   /* the store may have executed an earlier try */
    bool refused; /* the store cannot keep this outcome: it becomes a failure */
    bool dropped; /* the outcome is not recorded: the attempt leaves when it has no request under way */
    uint32_t tries;
    struct ew__chunk_buffer *chunks; /* NULL: it has produced none */
};

typedef struct ew__attempts {
    ew__attempt **slots; /* options.concurrency of them */
    uint32_t n_used;
    uint32_t first_free; /* no free slot is before this one */
    ew__attempt *spare;  /* for jobs to come */
    uint32_t n_spare;
    ew__attempt *left; /* given up */
    uint32_t n_left;
} ew__attempts;

/* ---- worker_lease.c: the renewal of leases and of the worker's record ---- */

typedef struct ew__leases {
    ew__store_request op;
    uint32_t *slots; /* of the attempts in the renewal under way */
    bool again;      /* renew again after the one under way */
    uint32_t tries;
    ew__timer timer;
    bool goodbye_sent;
} ew__leases;

/* ---- worker_scan.c: jobs of lost workers, and old jobs ---- */

typedef struct ew__scans {
    ew__store_request op; /* EXPIRED or SWEEP; its memory stays while changes are under way */
    uint32_t n_lost;      /* changes under way */
    uint32_t n_changed;   /* changes that the store has executed */
    ew__timer timer;
} ew__scans;

/* ---- worker.c ---- */

typedef enum ew__worker_phase {
    EW__WORKER_NEW,
    EW__WORKER_RUNNING,
    EW__WORKER_DRAINING, /* no new jobs; those that run may end */
    EW__WORKER_STOPPING, /* the runner was asked to end what runs */
    EW__WORKER_LEAVING,  /* nothing runs; the store removes the record, and other requests return */
    EW__WORKER_ENDED
} ew__worker_phase;

typedef struct ew__worker_stopping {
    ew__timer timer;
    bool now;       /* a second stop: nothing is waited for */
    bool drop_ends; /* the store was not reached in time: outcomes that it has not recorded are dropped */
} ew__worker_stopping;

struct ew__worker {
    ew__executor *executor;
    const ew_env *env;
    ew__store_owner requests;
    ew__runs *runs;
    ew__arena arena; /* texts of the options */
    ew_str id;
    ew__worker_options options; /* complete; its lists are not used */
    void (*ended)(ew__worker *worker, void *ud);
    void *ud;
    ew__worker_phase phase;
    ew__worker_stats stats;
    ew__timers timers; /* the worker's own */
    ew__timer alarm;   /* on the executor: when the first of them is due */
    ew__watcher watcher;
    bool watching;
    ew__task end_task;
    ew__worker_stopping stop;
    ew__claims claims;
    ew__attempts attempts;
    ew__leases leases;
    ew__scans scans;
    struct ew__schedule *schedules; /* worker_cron.c */
    size_t n_schedules;
};

static inline ew__attempt *ew__attempt_of(ew__run *run) { return ew__container_of(run, ew__attempt, run); }
static inline int64_t ew__worker_wall(const ew__worker *worker) {
    return (int64_t)worker->env->wall_ms(worker->env->ud);
}
void ew__worker_alarm(ew__worker *worker, ew__timer *timer, uint64_t at, ew__timer_fn fn);
void ew__worker_alarm_in(ew__worker *worker, ew__timer *timer, uint64_t ms, ew__timer_fn fn);
/* The worker that submitted a request. */
static inline ew__worker *ew__worker_of(const ew__store_request *op) {
    return ew__container_of(op->owner, ew__worker, requests);
}
uint64_t ew__worker_backoff(ew__worker *worker, uint32_t *tries); /* ms; counts */
/* Goes on with ending, if it is time for that; the last thing that a callback does. */
void ew__worker_check(ew__worker *worker);

/* ---- the other parts ---- */

void ew__worker_claim(ew__worker *worker); /* claims, if there is room */
void ew__worker_claim_stop(ew__worker *worker);
void ew__batch_leave(ew__batch *batch);

ew__attempt *ew__attempt_new(ew__worker *worker);
void ew__attempt_free(ew__attempt *attempt);
void ew__attempt_begin(ew__attempt *attempt, ew__batch *batch, const ew__job *job);
void ew__attempt_stop(ew__attempt *attempt, ew__stop_why why);
void ew__attempt_give_up(ew__attempt *attempt);
void ew__attempt_send_end(ew__attempt *attempt);
void ew__attempt_leave(ew__attempt *attempt); /* it does not take a place any more; may be freed */
bool ew__chunk_buffer_is_busy(const ew__attempt *attempt);
bool ew__chunk_buffer_flush(ew__attempt *attempt); /* false: the store has all chunks */
void ew__chunk_buffer_drop(ew__attempt *attempt);
void ew__chunk_buffer_free(ew__attempt *attempt);

void ew__worker_renew(ew__worker *worker);
void ew__worker_renew_start(ew__worker *worker);
void ew__worker_goodbye(ew__worker *worker);
void ew__worker_scan_start(ew__worker *worker);
ew_err ew__worker_crons_new(ew__worker *worker, const ew__worker_options *options, char *problem, size_t size);
void ew__worker_crons_start(ew__worker *worker);
void ew__worker_crons_stop(ew__worker *worker);
void ew__worker_crons_free(ew__worker *worker);

#endif
