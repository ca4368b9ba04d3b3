/*
 * jobs/job.h: a job as all stores keep it, and what may become of it. Nothing here knows a store or a socket. May
 * include: base, json.
 *
 *     PENDING -> ACTIVE -> COMPLETED
 *        ^         |-----> RETRYING (an attempt failed, another follows) -> ACTIVE
 *        |         |-----> FAILED (dead letter) -> PENDING (requeued by hand)
 *        |         |-----> CANCELLED
 *        `---------'       handed back, or its worker was lost
 *
 * A job that is claimed is leased to a worker for a while and carries an epoch, which grows with every claim. Whatever
 * a worker says about a job names the epoch that it was claimed with; a store takes it only while that claim still
 * holds. So a worker that was thought dead cannot overwrite what came after it.
 */
#ifndef EW_JOBS_JOB_H
#define EW_JOBS_JOB_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/util.h"

typedef enum ew__job_status {
    EW__JOB_PENDING,
    EW__JOB_ACTIVE,
    EW__JOB_RETRYING,
    EW__JOB_COMPLETED,
    EW__JOB_FAILED,
    EW__JOB_CANCELLED,
    EW__JOB_STATUSES
} ew__job_status;

/* All times are milliseconds since 1970; 0: there is none. Texts are slices of somebody's memory; empty: there is none. */
typedef struct ew__job {
    ew_str id;
    ew_str function;    /* name or key of the action; "RUNNER#NAME" names a runner, too */
    ew_str queue;       /* without a prefix: "default" */
    ew_str params;      /* JSON */
    ew_str result;      /* JSON; empty until it is COMPLETED */
    ew_str last_error;  /* plain text */
    ew_str error;       /* JSON object {"status","message","details"} of the last failure; empty: not known */
    ew_str worker;      /* that has it, or had it last */
    ew_str trace;       /* JSON object of strings: traceparent and so on */
    ew_str correlation; /* JSON object of strings: the labels of the call */
    ew_str unique_key;
    ew_str dlq; /* the name of its dead-letter queue; empty: the usual one */
    ew__job_status status;
    int64_t enqueued_at;
    int64_t run_at; /* not before */
    int64_t started_at;
    int64_t ended_at;
    int64_t timeout_ms;    /* of one attempt; > 0 */
    int64_t result_ttl_ms; /* how long it is kept after its end; 0: for ever */
    uint32_t max_retries;  /* how often it may be run in all; 0 is as 1 */
    uint32_t retries;      /* attempts that have failed */
    uint32_t lost;         /* how many workers were lost with it */
    uint64_t epoch;        /* 0: it was never claimed */
    uint64_t chunks;       /* that it has said, over all attempts */
    bool cancel;           /* it runs, and somebody wants it to stop */
} ew__job;

/* "PENDING" and so on. */
ew_str ew__job_status_name(ew__job_status status);
bool ew__job_status_parse(ew_str name, ew__job_status *ret);
static inline bool ew__job_is_final(ew__job_status status) { return status >= EW__JOB_COMPLETED; }

/* Attempts that have begun and were not taken back: those that failed, and one that runs or has succeeded. */
uint32_t ew__job_attempts(const ew__job *job);

/*
 * Appends the job as one JSON object, as users see it (docs/jobs.md): id, function_name, queue_name, status, params,
 * result, last_error, error, attempts, max_retries, timeout_seconds, result_ttl_seconds, worker_id, lost_workers,
 * chunks, unique_key, trace_context, correlation_context, and its times, RFC 3339 or null: enqueue_time,
 * next_scheduled_run_time, start_time, completion_time. The buffer keeps its error.
 */
void ew__job_write(const ew__job *job, ew__buf *out);

/* Copies all texts into the arena. EW_OK, EW_ENOMEM. */
ew_err ew__job_copy(const ew__job *job, ew__arena *arena, ew__job *ret);

/* ---- limits of what a job may be, for all stores ---- */

#define EW__JOB_ID_MAX 512
#define EW__JOB_NAME_MAX 512                        /* of functions, queues, keys */
#define EW__JOB_TIMEOUT_MAX_MS INT64_C(31536000000) /* a year */
#define EW__JOB_TTL_MAX_MS (10 * EW__JOB_TIMEOUT_MAX_MS)
#define EW__JOB_QUEUE "default"
#define EW__JOB_DLQ "default"

/* "rrq:queue:x" and "x" are the same queue "x" (likewise "rrq:dlq:"). A slice of the text. */
ew_str ew__queue_name(ew_str text);
ew_str ew__dlq_name(ew_str text);

/*
 * Why a job cannot be: NULL, or a constant line for people ("function_name cannot be empty"). Blank names, too long
 * ones, control bytes in names, a timeout that is not positive or too long, params that are no JSON.
 */
const char *ew__job_problem(const ew__job *job);

#endif
