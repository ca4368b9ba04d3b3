/*
 * jobs/worker.h: who runs jobs: claims what is due and can start, keeps the leases, says what became of each job,
 * takes up what others have lost, makes the jobs of schedules. It lives on one executor; the jobs are kept by a store and
 * run by whoever implements ew__runs. Time, chance and memory come from the executor: in the tests all of it is simulated.
 * May include: base, json.
 *
 * The promise: a job whose enqueue was acknowledged is run at least once, reaches exactly one final state, and at most
 * one worker's result is ever recorded for it. After a crash it is taken up again within lease + scan.
 */
#ifndef EW_JOBS_WORKER_H
#define EW_JOBS_WORKER_H

#include "base/executor.h"
#include "jobs/cron.h"
#include "jobs/policy.h"
#include "jobs/store.h"

typedef struct ew__worker ew__worker;
typedef struct ew__run ew__run;
typedef struct ew__runs ew__runs;

/* ---- one attempt ---- */

/*
 * Made by the worker, which owns it; the runner may use it until it has called ew__run_end. One that was given up stays
 * the runner's until then, also after the worker was freed.
 */
struct ew__run {
    ew__job job;        /* ACTIVE; its texts live as long as the run */
    uint32_t attempt;   /* from 1 */
    uint64_t deadline;  /* monotonic ns, counted from the start of the attempt */
    ew__worker *worker; /* NULL: given up, and the worker was freed */
    void *ud;           /* the runner's */
};

/*
 * A chunk that the run has produced. Bounded: EW_FULL asks to wait (room follows); a chunk sent nevertheless is dropped
 * (EW_ELIMIT), as is what is longer than a job's chunks may be in all. EW_EENDED: nobody wants it any more. EW_ENOMEM.
 * In doubt (a store that was lost meanwhile) a chunk is kept twice rather than not at all.
 */
ew_err ew__run_chunk(ew__run *run, ew_str json);
/* The end; exactly once; may be called inside start. The run is not the runner's any more. Executor thread. */
void ew__run_end(ew__run *run, const ew__outcome *outcome);

typedef enum ew__stop_why {
    EW__STOP_CANCELLED, /* somebody wants the job cancelled */
    EW__STOP_TIMEOUT,   /* its time is over */
    EW__STOP_LOST,      /* another worker has it now: nobody wants the end */
    EW__STOP_SHUTDOWN   /* we are going down; the job will be handed back */
} ew__stop_why;

typedef struct ew__runs_ops {
    /*
     * How many jobs of this queue could start now; UINT32_MAX: any number. A job is claimed only if there is room.
     * Queues may share what they tell: one claim brings no more than the smallest of all answers.
     */
    uint32_t (*room)(ew__runs *runs, ew_str queue);
    void (*start)(ew__runs *runs, ew__run *run);
    /*
     * Asks for the end, which must follow (ew__run_end; may be called inside), with whatever outcome: the worker knows
     * why. A success counts as such, but after STOP_TIMEOUT and STOP_LOST. One that does not come within grace_ms is
     * given up: the worker goes on without it, and a later end is dropped.
     */
    void (*stop)(ew__runs *runs, ew__run *run, ew__stop_why why);
    void (*chunk_room)(ew__runs *runs, ew__run *run); /* after EW_FULL; may be NULL */
} ew__runs_ops;

struct ew__runs {
    const ew__runs_ops *ops;
};

/* ---- the worker ---- */

typedef struct ew__worker_queue {
    ew_str name;
    int32_t priority;     /* greater ones are asked first; equal ones take turns */
    uint32_t concurrency; /* jobs of it at a time; 0: as many as the worker may */
    uint32_t rate;        /* jobs begun within rate_ms, at most; 0: any number */
    uint64_t rate_ms;     /* 1 s */
} ew__worker_queue;

typedef struct ew__worker_cron {
    ew_str name; /* tells ticks of one from those of others, over all workers */
    ew_str schedule, zone;
    ew__job job;   /* function, queue, params, timeout_ms, max_retries, result_ttl_ms; the rest is made for each tick */
    ew_str unique; /* not empty: as enqueue with this unique key */
    int64_t unique_ttl_ms;
} ew__worker_cron;

typedef struct ew__worker_options {
    ew_str id;    /* empty: one is made, as RRQ does: rrq_worker_PID_HEX */
    uint32_t pid; /* for that; 0: any number */
    const ew__worker_queue *queues;
    size_t n_queues; /* 0: "default" */
    const ew__worker_cron *crons;
    size_t n_crons;
    ew__zone_opener open_zone; /* for schedules; NULL: all are in UTC */
    ew__policy policy;
    uint32_t concurrency; /* jobs at a time; 0: 10 */
    uint64_t lease_ms;    /* 15 s */
    uint64_t renew_ms;    /* a third of the lease */
    uint64_t scan_ms;     /* how often lost jobs are looked for, and old results removed; 5 s */
    uint64_t poll_ms;     /* the longest time between two looks at the queues, should no hint come; 1 s */
    uint64_t record_ms;   /* how long a worker that says nothing counts as alive; 60 s, at least twice renew_ms */
    uint64_t grace_ms;    /* for the end of a run that was asked to stop; 5 s */
    bool burst;           /* ends when nothing is due and nothing runs */
} ew__worker_options;

typedef struct ew__worker_stats {
    uint64_t claimed, completed, retried, failed, cancelled, handed_back;
    uint64_t stale;     /* ends that came too late and were refused */
    uint64_t recovered; /* jobs of lost workers that were put back */
    uint64_t poisoned;
    uint64_t ticks; /* of schedules, that this worker made a job of */
    uint32_t running;
    uint32_t waiting_ends; /* ends that the store has not taken yet */
} ew__worker_stats;

/*
 * Options are copied. ended is called once, after ew__worker_stop or at the end of a burst: nothing runs any more.
 * EW_OK; EW_EINVAL (a bad schedule, no queue name; problem says which), EW_ENOMEM. Executor thread, as all of these.
 */
ew_err ew__worker_new(ew__executor *executor, ew__store *store, ew__runs *runs, const ew__worker_options *options,
                      void (*ended)(ew__worker *worker, void *ud), void *ud, ew__worker **ret, char *problem,
                      size_t problem_size);
void ew__worker_start(ew__worker *worker);
/* Claims no more. What runs may end within grace_ms; the rest is stopped and handed back. A second call: at once. */
void ew__worker_stop(ew__worker *worker, uint64_t grace_ms);
void ew__worker_free(ew__worker *worker); /* after ended, or never started */
void ew__worker_room(ew__worker *worker); /* ops->room may have grown */
const ew__worker_stats *ew__worker_stats_of(const ew__worker *worker);
ew_str ew__worker_id(const ew__worker *worker);

#endif
