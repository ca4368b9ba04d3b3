/*
 * api/jobs.c: jobs (everywire/jobs.h): checks of arguments, then the service or the app.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/jobs.h"
#include "jobs/service/service.h"
#include "program/default_store.h"

ew_str ew_answer_json(const ew_answer *answer) { return answer ? ew__buf_view(&answer->json) : ew__str(NULL, 0); }

const char *ew_answer_problem(const ew_answer *answer) { return answer ? answer->problem : ""; }

ew_answer *ew_answer_free(ew_answer *answer) { return ew__answer_free(answer); }

ew_err ew_jobs_open(const char *store, const ew_jobs_options *options, ew_jobs **ret_jobs, char *problem,
                    size_t problem_size) {
    return ew__jobs_service_open(store, options, ret_jobs, problem, problem_size);
}

const char *ew_jobs_notice(const ew_jobs *jobs) {
    return jobs ? jobs->requests.store->ops->notice(jobs->requests.store) : "";
}

ew_str ew_jobs_dlq(const ew_jobs *jobs) { return jobs ? jobs->dlq : ew__str(NULL, 0); }

ew_jobs *ew_jobs_free(ew_jobs *jobs) { return ew__jobs_service_free(jobs); }

ew_err ew_jobs_enqueue(ew_jobs *jobs, const ew_job_options *options, ew_answer **ret) {
    if (ret)
        *ret = NULL;
    return jobs && options ? ew__jobs_enqueue(jobs, options, ret) : EW_EINVAL;
}

ew_err ew_jobs_enqueue_async(ew_jobs *jobs, const ew_job_options *options, ew_jobs_done done, void *ud) {
    return jobs && options && done ? ew__jobs_enqueue_async(jobs, options, done, ud) : EW_EINVAL;
}

ew_err ew_jobs_show(ew_jobs *jobs, ew_str id, ew_answer **ret) {
    return jobs ? ew__jobs_show_job(jobs, id, ret) : EW_EINVAL;
}

ew_err ew_jobs_wait(ew_jobs *jobs, ew_str id, uint64_t timeout_ms, ew_job_chunk_fn on_chunk, void *ud,
                    ew_answer **ret) {
    return jobs ? ew__jobs_wait(jobs, id, timeout_ms, on_chunk, ud, ret) : EW_EINVAL;
}

void ew_jobs_interrupt(ew_jobs *jobs) {
    if (jobs)
        ew__jobs_interrupt(jobs);
}

ew_err ew_jobs_list(ew_jobs *jobs, const ew_jobs_filter *filter, ew_answer **ret) {
    return jobs ? ew__jobs_list(jobs, filter, ret) : EW_EINVAL;
}

ew_err ew_jobs_cancel(ew_jobs *jobs, ew_str id, ew_answer **ret) {
    return jobs ? ew__jobs_cancel(jobs, id, ret) : EW_EINVAL;
}

ew_err ew_jobs_replay(ew_jobs *jobs, ew_str id, ew_str queue, ew_answer **ret) {
    return jobs ? ew__jobs_replay(jobs, id, queue, ret) : EW_EINVAL;
}

ew_err ew_jobs_trace(ew_jobs *jobs, ew_str id, ew_answer **ret) {
    return jobs ? ew__jobs_trace(jobs, id, ret) : EW_EINVAL;
}

ew_err ew_jobs_queues(ew_jobs *jobs, bool counts, unsigned max_scan, ew_answer **ret) {
    return jobs ? ew__jobs_queues(jobs, counts, max_scan, ret) : EW_EINVAL;
}

ew_err ew_jobs_pause(ew_jobs *jobs, ew_str queue, bool on, ew_answer **ret) {
    return jobs ? ew__jobs_pause(jobs, queue, on, ret) : EW_EINVAL;
}

ew_err ew_jobs_requeue(ew_jobs *jobs, ew_str id, const ew_jobs_filter *filter, ew_str queue, bool dry_run,
                       ew_answer **ret) {
    return jobs ? ew__jobs_requeue(jobs, id, filter, queue, dry_run, ret) : EW_EINVAL;
}

ew_err ew_jobs_dlq_stats(ew_jobs *jobs, ew_str dlq, ew_answer **ret) {
    return jobs ? ew__jobs_dlq_stats(jobs, dlq, ret) : EW_EINVAL;
}

ew_err ew_jobs_workers(ew_jobs *jobs, ew_answer **ret) { return jobs ? ew__jobs_workers(jobs, ret) : EW_EINVAL; }

ew_err ew_jobs_open_usual(const char *store, const char *config, ew_jobs **ret_jobs, char *problem,
                          size_t problem_size) {
    return ret_jobs ? ew__jobs_open_default(store, config, ret_jobs, problem, problem_size) : EW_EINVAL;
}

ew_err ew_app_jobs(ew_app *app, const char *store, const ew_jobs_options *options) {
    return app ? ew__app_add_jobs(app, store, options) : EW_EINVAL;
}

ew_err ew_app_worker(ew_app *app, const ew_worker_options *options) {
    return app ? ew__app_add_worker(app, options) : EW_EINVAL;
}
