/*
 * jobs/worker_state.h: what the parts of the worker share. worker.c: its life; worker_claim.c: taking jobs;
 * worker_run.c: an attempt from its start until its end is kept; worker_chunks.c: what it says meanwhile;
 * worker_lease.c: leases and the record of the worker; worker_scan.c: what others have lost, and what is too old;
 * worker_cron.c: schedules.
 *
 * Nothing here is called by the store before the submitting function has returned, and nothing waits: every part is a
 * store request that may be under way, and timers. The timers are in a heap of the worker's own, with room for
 * all of them from the beginning: setting one cannot fail.
 */
#ifndef EW_JOBS_WORKER_STATE_H
#define EW_JOBS_WORKER_STATE_H

#include "jobs/worker.h"

#define EW__WORKER_BACKOFF_MS 100 /* after a failure of the store, doubling */
#define EW__WORKER_BACKOFF_MAX_MS 2000
#define EW__WORKER_ENDS_MS 10000 /* a worker that stops waits so long for a store that cannot be reached */
#define EW__WORKER_CHUNKS 64     /* that wait */
#define EW__WORKER_CHUNK_BYTES 65536
#define EW__WORKER_EXPIRED 100   /* jobs of lost workers taken up at once */
#define EW__WORKER_SWEEP 1000    /* old jobs removed at once */
#define EW__WORKER_LEFT 1000     /* runs that were given up and do not take places */
#define EW__WORKER_TICK_MS 60000 /* a tick that is older is left out */

typedef struct ew__my_queue {
    ew_str name;
    int32_t priority;
    uint32_t concurrency;
    uint32_t running;
    uint64_t *begun; /* a ring of the last `rate` beginnings; NULL: no rate */
    uint32_t rate, at;
    uint64_t rate_ns;
    uint32_t place; /* in the order in which queues are asked */
} ew__my_queue;

/* A batch of jobs as it came: kept while one of them still lies in its memory. */
typedef struct ew__batch {
    ew__store_request op;
    uint32_t users;
} ew__batch;

/* What was said and is not kept yet: one set is filled while the other is under way. */
typedef struct ew__chunk_buffer {
    ew__store_request op;
    struct ew__attempt *attempt;
    struct {
        ew__buf text;
        size_t len[EW__WORKER_CHUNKS];
        uint32_t n;
    } set[2];
    ew_str slices[EW__WORKER_CHUNKS];
    unsigned filling; /* which set */
    uint32_t tries;
    ew__timer timer; /* the next try */
    bool full;       /* the runner was told to wait */
    bool stuck;      /* the set that left waits for its next try */
} ew__chunk_buffer;

typedef enum ew__run_state {
    EW__RUN_GOING,
    EW__RUN_STOPPING, /* it was asked to end */
    EW__RUN_ENDING,   /* how it ended is known, the store has not taken it yet */
    EW__RUN_LEFT      /* given up: the runner still owes its end, which nobody wants */
} ew__run_state;

typedef struct ew__attempt ew__attempt;
struct ew__attempt {
    ew__run run;              /* first: the runner's view */
    ew__attempt *next, *prev; /* of those that were left, or of the spare ones */
    const ew_env *env;
    ew__arena arena;
    ew__batch *batch; /* in whose memory the job lies; NULL: in the arena */
    ew__my_queue *queue;
    uint32_t slot;
    ew__run_state state;
    ew__stop_why why;
    bool stopped;    /* why means something */
    bool owed;       /* the runner's end is still to come */
    ew__timer timer; /* going: its time; stopping: the grace; ending: the next try */
    ew__outcome outcome;
    ew__policy_text text;
    ew__store_request end;
    bool decided; /* end.op.u.change is filled in */
    bool doubt;   /* an earlier try may have been taken */
    bool refused; /* the store cannot keep this end: it becomes a failure */
    bool dropped; /* nobody wants the end any more: it leaves when nothing of it is under way */
    uint32_t tries;
    ew__chunk_buffer *said; /* NULL: nothing was ever said */
};

typedef struct ew__my_cron {
    ew__worker *worker;
    ew_str name, unique;
    int64_t unique_ttl_ms;
    ew__job job;
    ew__cron *cron;
    ew__timer timer;
    int64_t next; /* tick; 0: never */
    int64_t last; /* tick that was made, or left to others */
    bool asking;  /* `next` is being made */
    uint32_t tries;
    ew__store_request op;
} ew__my_cron;

typedef enum ew__worker_phase {
    EW__WORKER_NEW,
    EW__WORKER_RUNNING,
    EW__WORKER_DRAINING, /* no new jobs; those that run may end */
    EW__WORKER_STOPPING, /* those that run were asked to stop */
    EW__WORKER_LEAVING,  /* nothing runs; the store is told, and other requests return */
    EW__WORKER_ENDED
} ew__worker_phase;

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

    ew__my_queue *queues;
    size_t n_queues;
    ew__my_queue **order;   /* how they are asked: by priority, equal ones take turns */
    ew__claim_queue *asked; /* of the claim under way */
    ew__batch *claim;       /* under way, or NULL */
    bool asked_all;         /* the claim under way asked every queue */
    bool look_again;        /* something has happened since it left */
    uint32_t claim_tries;
    ew__my_queue *narrow; /* the queue that made the last claim small */
    bool skip_narrow;     /* it is left out once */
    ew__timer look_timer;
    uint64_t doubt_until; /* a claim may have been made that we do not know of */

    ew__attempt **slots; /* options.concurrency of them */
    uint32_t used;
    uint32_t first_free; /* no free slot is before this one */
    ew__attempt *spare;  /* for jobs to come */
    uint32_t n_spare;
    ew__attempt *left; /* given up */
    uint32_t n_left;
    ew__timer stop_timer;
    bool hurry;        /* a second stop: nothing is waited for */
    bool no_more_ends; /* the store was not reached in time: what it has not taken is dropped */

    ew__store_request renew;
    uint32_t *renewed; /* slots that the renewal under way is about */
    bool renew_again, renew_failing;
    uint32_t renew_tries;
    ew__timer renew_timer;
    bool said_goodbye;

    ew__store_request scan; /* EXPIRED or SWEEP; its memory stays while changes are under way */
    uint32_t n_lost;        /* these changes */
    uint32_t n_changed;     /* those that were taken */
    ew__timer scan_timer;

    ew__my_cron *crons;
    size_t n_crons;
};

/* ---- worker.c ---- */

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

void ew__worker_look(ew__worker *worker); /* claims, if there is room */
void ew__worker_unlook(ew__worker *worker);
void ew__batch_leave(ew__batch *batch);

ew__attempt *ew__attempt_new(ew__worker *worker);
void ew__attempt_free(ew__attempt *attempt);
void ew__attempt_begin(ew__attempt *attempt, ew__batch *batch, const ew__job *job);
void ew__attempt_stop(ew__attempt *attempt, ew__stop_why why);
void ew__attempt_give_up(ew__attempt *attempt);
void ew__attempt_send_end(ew__attempt *attempt);
void ew__attempt_leave(ew__attempt *attempt);      /* it does not take a place any more; may be freed */
bool ew__chunk_buffer_flush(ew__attempt *attempt); /* false: nothing is left to be kept */
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
