/*
 * everywire/jobs.h: durable jobs: calls that are kept until they have been made. A producer enqueues, a worker (any
 * number of them, in any process) runs the action, and the store remembers what became of it.
 *
 * Stores: "sqlite:PATH", a file, with nothing to install; "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]", with RRQ's own
 * keys, so that RRQ's producers and workers share the queues. docs/jobs.md tells all of it.
 *
 * The promise: a job whose enqueue was acknowledged is run at least once, reaches exactly one final state, and at most
 * one worker's result is ever recorded for it. After a crash of its worker it is taken up again within 20 s.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_JOBS_H
#define EVERYWIRE_JOBS_H

#include <everywire/app.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the store, as producers and people use it ---- */

typedef struct ew_jobs ew_jobs;

/* What a question was answered with, or why not. The caller's until ew_answer_free. */
typedef struct ew_answer ew_answer;

/* JSON; empty when there was an error. Borrowed from the answer; NULL is an empty answer. */
EW_API ew_str ew_answer_json(const ew_answer *answer);
/* A line for people; "" when there was none. */
EW_API const char *ew_answer_problem(const ew_answer *answer);
/* NULL is fine. Returns NULL. */
EW_API ew_answer *ew_answer_free(ew_answer *answer);

/* Everything is optional; zero means the default. Texts are copied. */
typedef struct ew_jobs_options {
    const ew_env *env;      /* borrowed for the life of the handle; NULL: ew_env_default */
    const char *queue;      /* of jobs that name none; "default" */
    unsigned max_retries;   /* how often a job is run in all, unless it says so itself; 5 */
    uint64_t timeout_ms;    /* of one attempt, likewise; 300 s */
    uint64_t result_ttl_ms; /* how long a job is kept after its end, likewise; one day */
    uint64_t unique_ttl_ms; /* how long a unique key holds, likewise; 6 h */
    const char *dlq;        /* the dead-letter queue; "default" */
    /* JSON object: label to dotted path into the params, as RRQ's correlation_mappings; NULL: none */
    const char *correlation_mappings;
} ew_jobs_options;

/*
 * Opens a store. EW_OK; EW_EINVAL: not a store; EW_EUNSUPPORTED: one that needs TLS; EW_EIO, EW_EACCESS, EW_ECONNECT,
 * EW_ETIMEOUT: it cannot be opened or reached; EW_ENOMEM. problem, if not NULL, gets a line for people (problem_size
 * bytes, ended by NUL). The handle has a thread of its own.
 */
EW_API ew_err ew_jobs_open(const char *store, const ew_jobs_options *options, ew_jobs **ret_jobs, char *problem,
                           size_t problem_size);
/*
 * Opens the store that the everywire program would use: `store`, if that is not NULL; else what the variable
 * EVERYWIRE_STORE says; else what a file says: `config`, everywire.yaml (jobs:) or RRQ's rrq.toml; NULL: the one that
 * RRQ_CONFIG names, or ./rrq.toml if there is one; else sqlite:$XDG_STATE_HOME/everywire/jobs.db (or ~/.local/state).
 * The defaults of a file that was named or used become those of the handle. Errors as ew_jobs_open; EW_ESYNTAX: the
 * file has problems, and `problem` gets the first. Beside ew_app_main the one function that looks at the environment.
 */
EW_API ew_err ew_jobs_open_usual(const char *store, const char *config, ew_jobs **ret_jobs, char *problem,
                                 size_t problem_size);
/* Waits for what is under way. NULL is fine. Returns NULL. Not while another thread uses the handle. */
EW_API ew_jobs *ew_jobs_free(ew_jobs *jobs);
/* What people should know of the store, such as a Redis that can lose acknowledged jobs; "" for nothing. Borrowed. */
EW_API const char *ew_jobs_notice(const ew_jobs *jobs);

/* The dead-letter queue of the handle's jobs, for a filter. Borrowed. */
EW_API ew_str ew_jobs_dlq(const ew_jobs *jobs);

/* One job to be. function is needed; all else is optional. Slices are borrowed for the call. */
typedef struct ew_job_options {
    ew_str function; /* name or key of an action; "RUNNER#NAME": at this runner */
    ew_str params;   /* JSON; empty: {} . Redis: an object */
    ew_str queue;
    ew_str id;                     /* empty: a fresh one */
    int64_t run_at_ms;             /* not before: milliseconds since 1970; 0: now. Wins over delay_ms */
    uint64_t delay_ms;             /* not before that has passed */
    const unsigned *max_retries;   /* how often it is run in all; NULL: the handle's */
    uint64_t timeout_ms;           /* of one attempt */
    const uint64_t *result_ttl_ms; /* how long it is kept after its end; 0: for ever. NULL: the handle's */
    ew_str unique_key;             /* while the key lives, and its job exists: no new job, but that one's id */
    uint64_t unique_ttl_ms;
    ew_str debounce_key; /* runs debounce_ms after the last of these; a later one takes the place of the earlier */
    uint64_t debounce_ms;
    ew_str rate_limit_key; /* at most one in rate_limit_ms; a further one is not taken */
    uint64_t rate_limit_ms;
    ew_str trace;           /* JSON object of strings: traceparent, tracestate; empty: none */
    ew_str correlation;     /* JSON object of strings: the labels of the call; empty: as the mappings say */
    int64_t enqueued_at_ms; /* 0: now */
} ew_job_options;

/*
 * All of these may be used from any thread, wait for the store (30 s at most, unless they say otherwise) and give an
 * answer also with an error. EW_OK; EW_EINVAL: what was asked makes no sense, the problem says why; EW_ENOTFOUND;
 * EW_ECONNECT, EW_EIO, EW_ETIMEOUT, EW_ELIMIT: the store's trouble; EW_ENOMEM (the answer is NULL). ret may be NULL.
 */

/*
 * Returns once the job is kept safely. {"job_id":ID,"status":"enqueued"}; "status" is "existing" when a unique key had
 * that job, "debounced" when it took the place of an earlier one, "rate_limited" (and job_id null) when it was not
 * taken. EW_EEXISTS: there is a job of this id.
 */
EW_API ew_err ew_jobs_enqueue(ew_jobs *jobs, const ew_job_options *options, ew_answer **ret);
typedef void (*ew_jobs_done)(ew_err err, ew_answer *answer, void *ud);
/*
 * Without waiting: done is called once, on the store's thread, with an answer that becomes the callee's; it must not
 * block, nor wait for this handle. EW_OK; on any other answer (EW_EINVAL, EW_ENOMEM) done is not called.
 */
EW_API ew_err ew_jobs_enqueue_async(ew_jobs *jobs, const ew_job_options *options, ew_jobs_done done, void *ud);

/* The job as JSON. EW_ENOTFOUND. */
EW_API ew_err ew_jobs_show(ew_jobs *jobs, ew_str id, ew_answer **ret);

/* What a job has said: chunk number seq, from 1 over all its attempts. The slice lasts for the call. */
typedef bool (*ew_job_chunk_fn)(uint64_t seq, ew_str chunk, void *ud);
/*
 * Waits until the job has ended, at most timeout_ms (0: for ever): the job as JSON. EW_ETIMEOUT: the job as it is now.
 * on_chunk, if not NULL, is given what the job says meanwhile and has said (as far as that is kept), on the calling
 * thread; false from it ends the waiting (EW_ECANCELLED). A store that is away for a while is waited for, too.
 */
EW_API ew_err ew_jobs_wait(ew_jobs *jobs, ew_str id, uint64_t timeout_ms, ew_job_chunk_fn on_chunk, void *ud,
                           ew_answer **ret);
/* Ends all ew_jobs_wait of this handle with EW_ECANCELLED, also those to come. Any thread; not in a signal handler. */
EW_API void ew_jobs_interrupt(ew_jobs *jobs);

/* Which jobs. Everything is optional. */
typedef struct ew_jobs_filter {
    ew_str status; /* "PENDING" ... */
    ew_str queue, function;
    ew_str dlq;     /* dead letters of this dead-letter queue */
    bool waiting;   /* what waits in `queue`, in the order in which it is due */
    unsigned limit; /* 0: 20 */
    unsigned offset;
} ew_jobs_filter;

/* {"jobs":[...],"total":N}: newest first. */
EW_API ew_err ew_jobs_list(ew_jobs *jobs, const ew_jobs_filter *filter, ew_answer **ret);

/*
 * {"job_id":ID,"status":"CANCELLED"}; "status" is "CANCELLING" for one that runs: its worker is told. EW_ESTALE: it had
 * ended before; the answer has its status.
 */
EW_API ew_err ew_jobs_cancel(ew_jobs *jobs, ew_str id, ew_answer **ret);

/* Enqueues a copy (same function and params, new id) to the same queue or another: {"job_id":NEW,"replayed":ID}. */
EW_API ew_err ew_jobs_replay(ew_jobs *jobs, ew_str id, ew_str queue, ew_answer **ret);

/* {"job_id":ID,"status":..,"attempts":N,"events":[{"event":"enqueued","time":..,"after_ms":..},...],"total_ms":N} */
EW_API ew_err ew_jobs_trace(ew_jobs *jobs, ew_str id, ew_answer **ret);

/*
 * {"queues":[{"name","pending","oldest","newest","paused", and with counts "active","retrying","completed","failed",
 * "cancelled","dlq","average_wait_ms"}]}; "partial":true beside it when max_scan jobs were not all.
 */
EW_API ew_err ew_jobs_queues(ew_jobs *jobs, bool counts, unsigned max_scan, ew_answer **ret);
/* {"queue":NAME,"paused":true} */
EW_API ew_err ew_jobs_pause(ew_jobs *jobs, ew_str queue, bool on, ew_answer **ret);

/*
 * Dead letters that match (an id, or a filter; its limit counts, 0: all) come back to their own queues or to another,
 * with all their attempts. {"job_ids":[...],"requeued":N}; dry_run: nothing is done. EW_ESTALE: that id is no dead
 * letter.
 */
EW_API ew_err ew_jobs_requeue(ew_jobs *jobs, ew_str id, const ew_jobs_filter *filter, ew_str queue, bool dry_run,
                              ew_answer **ret);
/* {"dlq":NAME,"total":N,"oldest","newest","average_retries","queues":{..},"functions":{..},"errors":{..}} */
EW_API ew_err ew_jobs_dlq_stats(ew_jobs *jobs, ew_str dlq, ew_answer **ret);

/* {"workers":[{"worker_id","status","active_jobs","concurrency_limit","queues","timestamp","ttl_seconds"}]} */
EW_API ew_err ew_jobs_workers(ew_jobs *jobs, ew_answer **ret);

/* ---- an app that has jobs ---- */

/* A queue of a worker. */
typedef struct ew_worker_queue {
    const char *name;
    int priority;         /* greater ones are asked first; equal ones take turns */
    unsigned concurrency; /* jobs of it at a time in this worker; 0: as many as the worker may */
    unsigned rate;        /* jobs that this worker begins within rate_ms; 0: any number */
    uint64_t rate_ms;     /* 0: 1 s */
    const char *runner;   /* for jobs that name none; NULL: the default runner, or actions of this app */
} ew_worker_queue;

/* An RRQ runner whose functions the app does not know: jobs are given to it by name. */
typedef struct ew_worker_runner {
    const char *name;
    const char *target;         /* "rrq://127.0.0.1:9000": the first port; any other target that takes names will do */
    const char *const *command; /* NULL: it runs already */
    unsigned processes;         /* 0: 1 */
    unsigned max_in_flight;     /* jobs in each process at a time; 0: 1 */
    const char *const *env;     /* for the processes, as ew_import_options.environment; may be NULL */
    const char *cwd;
    uint64_t response_timeout_ms; /* 0: none beside the job's own */
} ew_worker_runner;

typedef struct ew_worker_cron {
    const char *schedule; /* 5 fields as crontab(5), 6 or 7 as RRQ (seconds first), or @daily and so on */
    const char *zone;     /* "Europe/Berlin"; NULL: UTC */
    const char *name;     /* NULL: made of function, queue, schedule and params */
    const char *function;
    const char *params; /* JSON; NULL: {} */
    const char *queue;
    bool unique; /* not while the last one of it has not ended */
} ew_worker_cron;

/* Everything is optional; zero means the default. All of it is copied. */
typedef struct ew_worker_options {
    const ew_worker_queue *queues; /* "default" */
    size_t n_queues;
    const ew_worker_runner *runners;
    size_t n_runners;
    const char *default_runner; /* NULL: actions of this app */
    const ew_worker_cron *crons;
    size_t n_crons;
    unsigned concurrency;   /* jobs at a time; 0: 10, or with runners what all of them can take */
    uint64_t lease_ms;      /* 15 s */
    uint64_t base_retry_ms; /* 5 s */
    uint64_t max_retry_ms;  /* 1 h */
    bool no_jitter;
    bool retry_timeouts;
    unsigned poison_after; /* 3 */
    bool burst;            /* ew_app_wait returns when nothing is due and nothing runs */
    const char *id;
} ew_worker_options;

/*
 * The app has jobs: its http wire serves POST /jobs/<action> (202 with the id), GET and DELETE /jobs/<id>, and
 * GET /jobs/<id>/stream. Before the start; once. Errors as ew_jobs_open; ew_app_error tells more.
 */
EW_API ew_err ew_app_jobs(ew_app *app, const char *store, const ew_jobs_options *options);

/*
 * The app also runs jobs of that store: on its own actions, those that it imports, and runners. Before the start, after
 * ew_app_jobs; once. When the app stops, running jobs have its drain time to end; the rest is handed back. An app that
 * is nothing but a worker opens no port. EW_OK; EW_EINVAL (ew_app_error tells), EW_ENOMEM; runners: as ew_app_import.
 */
EW_API ew_err ew_app_worker(ew_app *app, const ew_worker_options *options);

#ifdef __cplusplus
}
#endif
#endif
