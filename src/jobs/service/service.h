/*
 * jobs/service/service.h: the handle behind <everywire/jobs.h>, and what its files share: service.c (life, enqueue),
 * query.c (show, list, cancel, queues, workers), dlq.c (dead letters), wait.c (waiting), write.c (answers as JSON).
 * jobs_http.h serves the same operations over HTTP, without a thread that waits.
 */
#ifndef EW_JOBS_SERVICE_SERVICE_H
#define EW_JOBS_SERVICE_SERVICE_H

#include "base/mem.h"
#include "json/json.h"
#include "store/jobs.h"
#include <everywire/jobs.h>
#include <pthread.h>

#define EW__JOBS_LIMIT 20       /* of a list, unless somebody says so */
#define EW__JOBS_LIMIT_MAX 1000 /* of a list */
#define EW__JOBS_CHECK_MS 1000  /* who waits for a job looks at it so often, should no hint come */

struct ew_jobs {
    const ew_env *env;
    ew__store_owner requests;
    ew__arena arena; /* of the texts */
    ew_str queue, dlq, mappings;
    uint32_t max_retries;
    int64_t timeout_ms, result_ttl_ms, unique_ttl_ms;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    ew__rng rng; /* of ids */
    ew__watcher watcher;
    bool watching;    /* somebody has waited, so hints are asked for */
    uint64_t changes; /* hints that have come */
    bool interrupted;
};

struct ew_answer {
    const ew_env *env;
    ew__buf json;
    char problem[200];
};

/* ---- for public functions and for HTTP ---- */

/*
 * Fills in op->u.enqueue, with all texts in op->arena, which is set. EW_OK; EW_EINVAL, and in problem why (a line for
 * people); EW_ENOMEM. Any thread.
 */
ew_err ew__jobs_prepare(ew_jobs *jobs, const ew_job_options *options, ew__store_request *op, char *problem,
                        size_t problem_size);
/* Fills in op->u.list, borrowed from the filter. EW_OK, EW_EINVAL. */
ew_err ew__jobs_prepare_list(const ew_jobs_filter *filter, ew__store_request *op, char *problem, size_t problem_size);

/* Append the answer to an operation that went well, as <everywire/jobs.h> tells. The buffer keeps its error. */
void ew__jobs_write_enqueued(const ew__store_request *op, ew__buf *out);
void ew__jobs_write_list(const ew__store_request *op, ew__buf *out);
void ew__jobs_write_cancelled(const ew__store_request *op, ew__buf *out);
void ew__jobs_write_time(int64_t ms, ew__buf *out); /* RFC 3339 in quotes, or null */

/* ---- for the functions of the public header ---- */

/* The request that a public function waits for, and the answer that it returns. */
typedef struct ew__jobs_request {
    ew_jobs *jobs;
    ew__store_request op;
    ew_answer *answer;
} ew__jobs_request;

/* EW_OK, EW_ENOMEM. After EW_OK ew__jobs_request_end must follow. */
ew_err ew__jobs_request_begin(ew__jobs_request *request, ew_jobs *jobs, ew__op_kind kind);
/* Submits the operation and waits for it. Returns op.err; copies its problem into the answer. */
ew_err ew__jobs_request_run(ew__jobs_request *request);
/* The end: *ret gets the answer (freed if ret is NULL). err, or EW_ENOMEM and no answer. */
ew_err ew__jobs_request_end(ew__jobs_request *request, ew_err err, ew_answer **ret);
/* Notes a line for people in the answer, and is EW_EINVAL. */
ew_err ew__jobs_request_refuse(ew__jobs_request *request, const char *problem);

ew_answer *ew__answer_new(const ew_env *env);

/* The functions of the public headers, once src/api has checked their arguments. */
ew_answer *ew__answer_free(ew_answer *answer);
ew_err ew__jobs_service_open(const char *store, const ew_jobs_options *options, ew_jobs **ret_jobs, char *problem,
                             size_t problem_size);
ew_jobs *ew__jobs_service_free(ew_jobs *jobs);
ew_err ew__jobs_enqueue(ew_jobs *jobs, const ew_job_options *options, ew_answer **ret);
ew_err ew__jobs_enqueue_async(ew_jobs *jobs, const ew_job_options *options, ew_jobs_done done, void *ud);
ew_err ew__jobs_show_job(ew_jobs *jobs, ew_str id, ew_answer **ret);
ew_err ew__jobs_wait(ew_jobs *jobs, ew_str id, uint64_t timeout_ms, ew_job_chunk_fn on_chunk, void *ud,
                     ew_answer **ret);
void ew__jobs_interrupt(ew_jobs *jobs);
ew_err ew__jobs_list(ew_jobs *jobs, const ew_jobs_filter *filter, ew_answer **ret);
ew_err ew__jobs_cancel(ew_jobs *jobs, ew_str id, ew_answer **ret);
ew_err ew__jobs_replay(ew_jobs *jobs, ew_str id, ew_str queue, ew_answer **ret);
ew_err ew__jobs_trace(ew_jobs *jobs, ew_str id, ew_answer **ret);
ew_err ew__jobs_queues(ew_jobs *jobs, bool counts, unsigned max_scan, ew_answer **ret);
ew_err ew__jobs_pause(ew_jobs *jobs, ew_str queue, bool on, ew_answer **ret);
ew_err ew__jobs_requeue(ew_jobs *jobs, ew_str id, const ew_jobs_filter *filter, ew_str queue, bool dry_run,
                        ew_answer **ret);
ew_err ew__jobs_dlq_stats(ew_jobs *jobs, ew_str dlq, ew_answer **ret);
ew_err ew__jobs_workers(ew_jobs *jobs, ew_answer **ret);

#endif
