/*
 * jobs/service/dlq.c: dead letters: requeueing many of them, and what they have in common. Lists of them are read in pages,
 * so that any number of them can be.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/service.h"
#include "base/map.h"
#include <stdio.h>

#define PAGE 200
#define KINDS_MAX 100 /* different errors, functions or queues that are counted; the rest counts together */

static int64_t now_of(const ew_jobs *jobs) { return (int64_t)jobs->env->wall_ms(jobs->env->ud); }

/* ---- requeueing ---- */

/* Submits all operations of a page together, so that the store executes them as one batch. */
static void requeue_page(ew__jobs_request *request, ew__store_request *ops, ew_str queue, int64_t now) {
    const ew__op_list *list = &request->op.u.list;
    for (size_t i = 0; i < list->ret_n; i++) {
        ops[i] = (ew__store_request){.kind = EW__OP_REQUEUE, .arena = &request->op.memory};
        ops[i].u.requeue = (ew__op_requeue){.id = list->ret[i].id, .queue = queue, .now = now};
    }
    ew__store_do_all(request->jobs->requests.store, ops, list->ret_n);
}

/* Adds the ids of those that came back. Whoever else has requeued one first is no error. */
static ew_err note_page(ew__jobs_request *request, const ew__store_request *ops, uint64_t *n, uint32_t *stay) {
    for (size_t i = 0; i < request->op.u.list.ret_n; i++) {
        const ew__store_request *op = &ops[i];
        if (op->err != EW_OK && op->err != EW_ENOTFOUND && op->err != EW_ESTALE) {
            (void)snprintf(request->answer->problem, sizeof request->answer->problem, "after %llu jobs: %s",
                           (unsigned long long)*n, op->problem[0] ? op->problem : ew_err_text(op->err));
            return op->err;
        }
        if (op->err == EW_OK)
            (void)ew__json_format(&request->answer->json, "%s%q", (*n)++ ? "," : "", op->u.requeue.id);
        else
            ++*stay;
    }
    return EW_OK;
}

typedef struct requeueing {
    ew_str queue;
    bool dry_run;
    int64_t now;
    uint64_t n;      /* that came back, or would */
    uint32_t offset; /* of those that stay */
    uint32_t limit;  /* how many at most; 0: all */
    bool over;
} requeueing;

static ew_err one_page(ew__jobs_request *request, const ew_jobs_filter *filter, requeueing *r, ew__store_request *ops) {
    ew__store_request_again(&request->op, EW__OP_LIST);
    ew_err err = ew__jobs_prepare_list(filter, &request->op, request->answer->problem, sizeof request->answer->problem);
    if (err != EW_OK)
        return err;
    ew__op_list *list = &request->op.u.list;
    if (list->dlq.len == 0)
        list->dlq = request->jobs->dlq;
    list->waiting = false;
    list->offset = filter->offset + r->offset;
    list->limit = r->limit && r->limit - r->n < PAGE ? (uint32_t)(r->limit - r->n) : PAGE;
    err = ew__jobs_request_run(request);
    if (err != EW_OK)
        return err;
    uint32_t stay = 0;
    if (r->dry_run) {
        for (size_t i = 0; i < list->ret_n; i++)
            (void)ew__json_format(&request->answer->json, "%s%q", r->n++ ? "," : "", list->ret[i].id);
        stay = (uint32_t)list->ret_n;
    } else {
        requeue_page(request, ops, r->queue, r->now);
        err = note_page(request, ops, &r->n, &stay);
    }
    r->offset += stay;
    r->over = list->ret_n < list->limit || (r->limit && r->n >= r->limit);
    return err;
}

static ew_err requeue_many(ew__jobs_request *request, const ew_jobs_filter *filter, requeueing *r) {
    ew__store_request *ops = ew__alloc(request->jobs->env, PAGE * sizeof *ops);
    ew_err err = EW_OK;
    if (!ops)
        return EW_ENOMEM;
    (void)ew__buf_cstr(&request->answer->json, "{\"job_ids\":[");
    while (err == EW_OK && !r->over && !request->answer->json.err)
        err = one_page(request, filter, r, ops);
    (void)ew__json_format(&request->answer->json, "],\"requeued\":%llu}", (unsigned long long)r->n);
    ew__free(request->jobs->env, ops, PAGE * sizeof *ops);
    return err;
}

static ew_err requeue_one(ew__jobs_request *request, ew_str id, const requeueing *r) {
    if (r->dry_run) {
        request->op.u.get.id = id;
    } else {
        ew__store_request_next(&request->op, EW__OP_REQUEUE);
        request->op.u.requeue = (ew__op_requeue){.id = id, .queue = r->queue, .now = r->now};
    }
    ew_err err = ew__jobs_request_run(request);
    if (err == EW_OK && r->dry_run && request->op.u.get.ret.status != EW__JOB_FAILED &&
        request->op.u.get.ret.status != EW__JOB_CANCELLED)
        err = EW_ESTALE;
    if (err == EW_ESTALE)
        (void)snprintf(request->answer->problem, sizeof request->answer->problem, "the job is no dead letter");
    if (err == EW_OK)
        (void)ew__json_format(&request->answer->json, "{\"job_ids\":[%q],\"requeued\":1}", id);
    return err;
}

ew_err ew__jobs_requeue(ew_jobs *jobs, ew_str id, const ew_jobs_filter *filter, ew_str queue, bool dry_run,
                        ew_answer **ret) {
    static const ew_jobs_filter all;
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_GET);
    if (err != EW_OK)
        return err;
    requeueing r = {.queue = ew__queue_name(queue), .dry_run = dry_run, .now = now_of(jobs)};
    if (!filter)
        filter = &all;
    r.limit = filter->limit;
    err = id.len ? requeue_one(&request, id, &r) : requeue_many(&request, filter, &r);
    return ew__jobs_request_end(&request, err, ret);
}

/* ---- statistics ---- */

typedef struct counts {
    ew__map by_name; /* text -> uint64_t */
    uint64_t others;
} counts;

typedef struct stats {
    ew__arena arena;
    counts queues, functions, errors;
    uint64_t n, retries, total;
    int64_t oldest, newest;
} stats;

static ew_err count(stats *s, counts *c, ew_str name) {
    uint64_t *n = ew__map_get(&c->by_name, name);
    if (!n && c->by_name.n >= KINDS_MAX) {
        c->others++;
        return EW_OK;
    }
    if (!n) {
        ew_str key;
        n = ew__arena_alloc(&s->arena, sizeof *n);
        if (!n || ew__arena_str(&s->arena, name, &key) != EW_OK || ew__map_put(&c->by_name, key, n) != EW_OK)
            return EW_ENOMEM;
        *n = 0;
    }
    ++*n;
    return EW_OK;
}

static ew_err count_job(stats *s, const ew__job *job) {
    s->n++;
    s->retries += job->retries;
    if (job->ended_at && (!s->oldest || job->ended_at < s->oldest))
        s->oldest = job->ended_at;
    if (job->ended_at > s->newest)
        s->newest = job->ended_at;
    ew_err err = count(s, &s->queues, job->queue);
    if (err == EW_OK)
        err = count(s, &s->functions, job->function);
    return err == EW_OK ? count(s, &s->errors, job->last_error.len ? job->last_error : EW_STR("(none)")) : err;
}

static ew_err count_page(ew__jobs_request *request, stats *s, ew_str dlq, uint32_t *offset, bool *over) {
    ew__store_request_again(&request->op, EW__OP_LIST);
    request->op.u.list = (ew__op_list){.status = EW__JOB_STATUSES, .dlq = dlq, .limit = PAGE, .offset = *offset};
    ew_err err = ew__jobs_request_run(request);
    for (size_t i = 0; i < request->op.u.list.ret_n && err == EW_OK; i++)
        err = count_job(s, &request->op.u.list.ret[i]);
    if (err == EW_OK) {
        *offset += (uint32_t)request->op.u.list.ret_n;
        *over = request->op.u.list.ret_n < PAGE;
        s->total = request->op.u.list.ret_total > s->n ? request->op.u.list.ret_total : s->n;
    }
    return err;
}

static void write_counts(ew__buf *out, const char *name, const counts *c) {
    (void)ew__json_format(out, ",%Q:{", name);
    for (uint32_t i = 0; i < c->by_name.n; i++)
        (void)ew__json_format(out, "%s%q:%llu", i ? "," : "", c->by_name.entries[i].key,
                              (unsigned long long)*(const uint64_t *)c->by_name.entries[i].value);
    if (c->others)
        (void)ew__json_format(out, ",\"(others)\":%llu", (unsigned long long)c->others);
    (void)ew__buf_char(out, '}');
}

static void write_stats(ew__buf *out, const stats *s, ew_str dlq) {
    (void)ew__json_format(out, "{\"dlq\":%q,\"total\":%llu,\"oldest\":", dlq, (unsigned long long)s->total);
    ew__jobs_write_time(s->oldest, out);
    (void)ew__buf_cstr(out, ",\"newest\":");
    ew__jobs_write_time(s->newest, out);
    (void)ew__json_format(out, ",\"average_retries\":%g", s->n ? (double)s->retries / (double)s->n : 0.0);
    write_counts(out, "queues", &s->queues);
    write_counts(out, "functions", &s->functions);
    write_counts(out, "errors", &s->errors);
    (void)ew__buf_char(out, '}');
}

ew_err ew__jobs_dlq_stats(ew_jobs *jobs, ew_str dlq, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_LIST);
    if (err != EW_OK)
        return err;
    stats s = {.n = 0};
    uint32_t offset = 0;
    bool over = false;
    ew_str name = dlq.len ? ew__dlq_name(dlq) : jobs->dlq;
    ew__arena_init(&s.arena, jobs->env, NULL, 0);
    ew__map_init(&s.queues.by_name, jobs->env);
    ew__map_init(&s.functions.by_name, jobs->env);
    ew__map_init(&s.errors.by_name, jobs->env);
    while (err == EW_OK && !over)
        err = count_page(&request, &s, name, &offset, &over);
    if (err == EW_OK)
        write_stats(&request.answer->json, &s, name);
    ew__map_done(&s.queues.by_name);
    ew__map_done(&s.functions.by_name);
    ew__map_done(&s.errors.by_name);
    ew__arena_done(&s.arena);
    return ew__jobs_request_end(&request, err, ret);
}
