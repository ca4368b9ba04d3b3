/*
 * jobs/service/query.c: what people ask of a store of jobs. See <everywire/jobs.h>.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/service.h"
#include <stdio.h>

static int64_t now_of(const ew_jobs *jobs) { return (int64_t)jobs->env->wall_ms(jobs->env->ud); }

/* ---- one job ---- */

static ew_err get(ew__jobs_request *request, ew_str id) {
    if (id.len == 0 || id.len > EW__JOB_ID_MAX)
        return ew__jobs_request_refuse(request, "an id has 1 to 512 bytes");
    request->op.u.get.id = id;
    ew_err err = ew__jobs_request_run(request);
    if (err == EW_ENOTFOUND)
        (void)snprintf(request->answer->problem, sizeof request->answer->problem, "there is no job %.*s",
                       (int)(id.len < 100 ? id.len : 100), id.ptr);
    return err;
}

ew_err ew__jobs_show_job(ew_jobs *jobs, ew_str id, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_GET);
    if (err != EW_OK)
        return err;
    err = get(&request, id);
    if (err == EW_OK)
        ew__job_write(&request.op.u.get.ret, &request.answer->json);
    return ew__jobs_request_end(&request, err, ret);
}

ew_err ew__jobs_cancel(ew_jobs *jobs, ew_str id, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_CANCEL);
    if (err != EW_OK)
        return err;
    request.op.u.cancel.id = id;
    request.op.u.cancel.now = now_of(jobs);
    err = ew__jobs_request_run(&request);
    if (err == EW_OK) {
        ew__jobs_write_cancelled(&request.op, &request.answer->json);
        if (request.op.u.cancel.ret == EW__CANCELLED_LATE)
            err = EW_ESTALE;
    }
    if (err == EW_ESTALE)
        (void)snprintf(request.answer->problem, sizeof request.answer->problem, "the job has ended already");
    return ew__jobs_request_end(&request, err, ret);
}

ew_err ew__jobs_replay(ew_jobs *jobs, ew_str id, ew_str queue, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_GET);
    if (err != EW_OK)
        return err;
    err = get(&request, id);
    if (err == EW_OK) {
        const ew__job job = request.op.u.get.ret; /* its texts lie in the arena, which stays */
        unsigned max_retries = job.max_retries;
        uint64_t ttl = (uint64_t)job.result_ttl_ms;
        ew_job_options options = {.function = job.function,
                                  .params = job.params,
                                  .queue = queue.len ? queue : job.queue,
                                  .max_retries = &max_retries,
                                  .timeout_ms = (uint64_t)job.timeout_ms,
                                  .result_ttl_ms = &ttl,
                                  .trace = job.trace,
                                  .correlation = job.correlation};
        ew__store_request_next(&request.op, EW__OP_ENQUEUE);
        err = ew__jobs_prepare(jobs, &options, &request.op, request.answer->problem, sizeof request.answer->problem);
        if (err == EW_OK)
            err = ew__jobs_request_run(&request);
    }
    if (err == EW_OK)
        (void)ew__json_format(&request.answer->json, "{\"job_id\":%q,\"replayed\":%q}", request.op.u.enqueue.job.id,
                              id);
    return ew__jobs_request_end(&request, err, ret);
}

static void write_event(ew__buf *out, const ew__job *job, const char *event, int64_t at, bool *first) {
    if (at <= 0)
        return;
    (void)ew__json_format(out, "%s{\"event\":%Q,\"time\":", *first ? "" : ",", event);
    ew__jobs_write_time(at, out);
    (void)ew__json_format(out, ",\"after_ms\":%lld}", (long long)(at - job->enqueued_at));
    *first = false;
}

static void write_trace(const ew__job *job, int64_t now, ew__buf *out) {
    static const char *const ends[EW__JOB_STATUSES] = {
        [EW__JOB_COMPLETED] = "completed", [EW__JOB_FAILED] = "failed", [EW__JOB_CANCELLED] = "cancelled"};
    bool first = true, final = ew__job_is_final(job->status);
    (void)ew__json_format(out, "{\"job_id\":%q,\"status\":%q,\"attempts\":%u,\"events\":[", job->id,
                          ew__job_status_name(job->status), ew__job_attempts(job));
    write_event(out, job, "enqueued", job->enqueued_at, &first);
    if (job->run_at > job->enqueued_at && (!job->started_at || job->run_at <= job->started_at))
        write_event(out, job, "due", job->run_at, &first);
    write_event(out, job, "started", job->started_at, &first);
    if (job->status == EW__JOB_RETRYING)
        write_event(out, job, "retry_due", job->run_at, &first);
    if (final)
        write_event(out, job, ends[job->status], job->ended_at, &first);
    (void)ew__json_format(out, "],\"total_ms\":%lld}",
                          (long long)((final && job->ended_at ? job->ended_at : now) - job->enqueued_at));
}

ew_err ew__jobs_trace(ew_jobs *jobs, ew_str id, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_GET);
    if (err != EW_OK)
        return err;
    err = get(&request, id);
    if (err == EW_OK)
        write_trace(&request.op.u.get.ret, now_of(jobs), &request.answer->json);
    return ew__jobs_request_end(&request, err, ret);
}

/* ---- many jobs ---- */

ew_err ew__jobs_prepare_list(const ew_jobs_filter *filter, ew__store_request *op, char *problem, size_t problem_size) {
    static const ew_jobs_filter all;
    ew__op_list *list = &op->u.list;
    if (!filter)
        filter = &all;
    *list = (ew__op_list){.queue = ew__queue_name(filter->queue),
                          .function = filter->function,
                          .status = EW__JOB_STATUSES,
                          .dlq = ew__dlq_name(filter->dlq),
                          .waiting = filter->waiting,
                          .limit = filter->limit ? filter->limit : EW__JOBS_LIMIT,
                          .offset = filter->offset};
    if (list->limit > EW__JOBS_LIMIT_MAX)
        list->limit = EW__JOBS_LIMIT_MAX;
    const char *why = filter->waiting && filter->queue.len == 0 ? "what waits is asked of one queue" : NULL;
    if (filter->status.len && !ew__job_status_parse(filter->status, &list->status))
        why = "a status is PENDING, ACTIVE, RETRYING, COMPLETED, FAILED or CANCELLED";
    if (why)
        (void)snprintf(problem, problem_size, "%s", why);
    return why ? EW_EINVAL : EW_OK;
}

ew_err ew__jobs_list(ew_jobs *jobs, const ew_jobs_filter *filter, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_LIST);
    if (err != EW_OK)
        return err;
    err = ew__jobs_prepare_list(filter, &request.op, request.answer->problem, sizeof request.answer->problem);
    if (err == EW_OK && (err = ew__jobs_request_run(&request)) == EW_OK)
        ew__jobs_write_list(&request.op, &request.answer->json);
    return ew__jobs_request_end(&request, err, ret);
}

/* ---- queues and workers ---- */

static void write_queue(const ew__queue_stats *queue, bool counts, ew__buf *out) {
    (void)ew__json_format(out, "{\"name\":%q,\"pending\":%llu,\"oldest\":", queue->name,
                          (unsigned long long)queue->pending);
    ew__jobs_write_time(queue->oldest_due, out);
    (void)ew__buf_cstr(out, ",\"newest\":");
    ew__jobs_write_time(queue->newest_due, out);
    (void)ew__json_format(out, ",\"paused\":%b", queue->paused);
    if (counts) {
        (void)ew__json_format(out, ",\"active\":%llu,\"retrying\":%llu,\"completed\":%llu,\"failed\":%llu",
                              (unsigned long long)queue->active, (unsigned long long)queue->retrying,
                              (unsigned long long)queue->completed, (unsigned long long)queue->failed);
        (void)ew__json_format(out, ",\"cancelled\":%llu,\"dlq\":%llu,\"average_wait_ms\":",
                              (unsigned long long)queue->cancelled, (unsigned long long)queue->dead);
        if (queue->average_wait_ms < 0)
            (void)ew__buf_cstr(out, "null");
        else
            (void)ew__json_format(out, "%lld", (long long)queue->average_wait_ms);
    }
    (void)ew__buf_char(out, '}');
}

ew_err ew__jobs_queues(ew_jobs *jobs, bool counts, unsigned max_scan, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_QUEUES);
    if (err != EW_OK)
        return err;
    ew__buf *out = &request.answer->json;
    const ew__op_queues *queues = &request.op.u.queues;
    request.op.u.queues.counts = counts;
    request.op.u.queues.max_scan = max_scan;
    err = ew__jobs_request_run(&request);
    if (err == EW_OK) {
        (void)ew__buf_cstr(out, "{\"queues\":[");
        for (size_t i = 0; i < queues->ret_n; i++) {
            (void)ew__buf_cstr(out, i ? "," : "");
            write_queue(&queues->ret[i], counts, out);
        }
        (void)ew__buf_cstr(out, queues->ret_partial ? "],\"partial\":true}" : "]}");
    }
    return ew__jobs_request_end(&request, err, ret);
}

ew_err ew__jobs_pause(ew_jobs *jobs, ew_str queue, bool on, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_PAUSE);
    if (err != EW_OK)
        return err;
    ew_str name = ew__queue_name(queue);
    request.op.u.pause = (ew__op_pause){.queue = name, .on = on};
    if (ew__str_trim(name).len == 0 || name.len > EW__JOB_NAME_MAX)
        err = ew__jobs_request_refuse(&request, "the name of a queue has 1 to 512 bytes");
    else
        err = ew__jobs_request_run(&request);
    if (err == EW_OK)
        (void)ew__json_format(&request.answer->json, "{\"queue\":%q,\"paused\":%b}", name, on);
    return ew__jobs_request_end(&request, err, ret);
}

/* A worker's own record, with how long it still counts. */
static void write_worker(const ew__worker_record *worker, ew__buf *out) {
    bool object = ew_json_check(worker->record, NULL) == EW_OK && ew_json_typeof(worker->record) == EW_JSON_OBJECT;
    ew_json_iter it = {.offset_ = 0};
    (void)ew__json_format(out, "{\"worker_id\":%q", worker->id);
    while (object && ew_json_next(worker->record, &it))
        if (!ew__str_is(it.key, EW_STR("\"worker_id\"")) && !ew__str_is(it.key, EW_STR("\"ttl_seconds\"")))
            (void)ew__json_format(out, ",%j:%j", it.key, it.value);
    (void)ew__json_format(out, ",\"ttl_seconds\":%llu}", (unsigned long long)(worker->ttl_ms / 1000));
}

ew_err ew__jobs_workers(ew_jobs *jobs, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_WORKERS);
    if (err != EW_OK)
        return err;
    ew__buf *out = &request.answer->json;
    err = ew__jobs_request_run(&request);
    if (err == EW_OK) {
        (void)ew__buf_cstr(out, "{\"workers\":[");
        for (size_t i = 0; i < request.op.u.workers.ret_n; i++) {
            (void)ew__buf_cstr(out, i ? "," : "");
            write_worker(&request.op.u.workers.ret[i], out);
        }
        (void)ew__buf_cstr(out, "]}");
    }
    return ew__jobs_request_end(&request, err, ret);
}
