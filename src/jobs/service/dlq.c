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

/* Operations that were submitted together, and how many are still under way. */
typedef struct batch {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t open;
    ew__store_request ops[PAGE];
} batch;

static void on_done(ew__store_request *op) {
    batch *b = op->ud;
    pthread_mutex_lock(&b->lock);
    if (--b->open == 0)
        pthread_cond_signal(&b->ended);
    pthread_mutex_unlock(&b->lock);
}

/* All of a page at once: the store does them together. Stores answer within a bounded time. */
static void requeue_page(ew__question *q, batch *b, ew_str queue, int64_t now) {
    const ew__op_list *list = &q->op.u.list;
    ew__store *store = q->jobs->store;
    b->open = list->ret_n;
    for (size_t i = 0; i < list->ret_n; i++) {
        b->ops[i] = (ew__store_request){.kind = EW__OP_REQUEUE, .arena = &q->arena, .done = on_done, .ud = b};
        b->ops[i].u.requeue = (ew__op_requeue){.id = list->ret[i].id, .queue = queue, .now = now};
        store->ops->submit(store, &b->ops[i]);
    }
    pthread_mutex_lock(&b->lock);
    while (b->open > 0)
        pthread_cond_wait(&b->ended, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* Adds the ids of those that came back. Whoever else has requeued one first is no error. */
static ew_err note_page(ew__question *q, const batch *b, uint64_t *n, uint32_t *stay) {
    for (size_t i = 0; i < q->op.u.list.ret_n; i++) {
        const ew__store_request *op = &b->ops[i];
        if (op->err != EW_OK && op->err != EW_ENOTFOUND && op->err != EW_ESTALE) {
            (void)snprintf(q->answer->problem, sizeof q->answer->problem, "after %llu jobs: %s", (unsigned long long)*n,
                           op->problem[0] ? op->problem : ew_err_text(op->err));
            return op->err;
        }
        if (op->err == EW_OK)
            (void)ew__json_format(&q->answer->json, "%s%q", (*n)++ ? "," : "", op->u.requeue.id);
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

static ew_err one_page(ew__question *q, const ew_jobs_filter *filter, requeueing *r, batch *b) {
    ew__question_page(q, EW__OP_LIST);
    ew_err err = ew__jobs_prepare_list(filter, &q->op, q->answer->problem, sizeof q->answer->problem);
    if (err != EW_OK)
        return err;
    ew__op_list *list = &q->op.u.list;
    if (list->dlq.len == 0)
        list->dlq = q->jobs->dlq;
    list->waiting = false;
    list->offset = filter->offset + r->offset;
    list->limit = r->limit && r->limit - r->n < PAGE ? (uint32_t)(r->limit - r->n) : PAGE;
    err = ew__question_ask(q);
    if (err != EW_OK)
        return err;
    uint32_t stay = 0;
    if (r->dry_run) {
        for (size_t i = 0; i < list->ret_n; i++)
            (void)ew__json_format(&q->answer->json, "%s%q", r->n++ ? "," : "", list->ret[i].id);
        stay = (uint32_t)list->ret_n;
    } else {
        requeue_page(q, b, r->queue, r->now);
        err = note_page(q, b, &r->n, &stay);
    }
    r->offset += stay;
    r->over = list->ret_n < list->limit || (r->limit && r->n >= r->limit);
    return err;
}

static ew_err requeue_many(ew__question *q, const ew_jobs_filter *filter, requeueing *r) {
    batch *b = ew__alloc(q->jobs->env, sizeof *b);
    ew_err err = b ? EW_OK : EW_ENOMEM;
    if (!b)
        return err;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->ended, NULL);
    (void)ew__buf_cstr(&q->answer->json, "{\"job_ids\":[");
    while (err == EW_OK && !r->over && !q->answer->json.err)
        err = one_page(q, filter, r, b);
    (void)ew__json_format(&q->answer->json, "],\"requeued\":%llu}", (unsigned long long)r->n);
    pthread_cond_destroy(&b->ended);
    pthread_mutex_destroy(&b->lock);
    ew__free(q->jobs->env, b, sizeof *b);
    return err;
}

static ew_err requeue_one(ew__question *q, ew_str id, const requeueing *r) {
    if (r->dry_run) {
        q->op.u.get.id = id;
    } else {
        ew__question_next(q, EW__OP_REQUEUE);
        q->op.u.requeue = (ew__op_requeue){.id = id, .queue = r->queue, .now = r->now};
    }
    ew_err err = ew__question_ask(q);
    if (err == EW_OK && r->dry_run && q->op.u.get.ret.status != EW__JOB_FAILED &&
        q->op.u.get.ret.status != EW__JOB_CANCELLED)
        err = EW_ESTALE;
    if (err == EW_ESTALE)
        (void)snprintf(q->answer->problem, sizeof q->answer->problem, "the job is no dead letter");
    if (err == EW_OK)
        (void)ew__json_format(&q->answer->json, "{\"job_ids\":[%q],\"requeued\":1}", id);
    return err;
}

ew_err ew_jobs_requeue(ew_jobs *jobs, ew_str id, const ew_jobs_filter *filter, ew_str queue, bool dry_run,
                       ew_answer **ret) {
    static const ew_jobs_filter all;
    ew__question q;
    ew_err err = ew__question_begin(&q, jobs, EW__OP_GET);
    if (err != EW_OK)
        return err;
    requeueing r = {.queue = ew__queue_name(queue), .dry_run = dry_run, .now = now_of(jobs)};
    if (!filter)
        filter = &all;
    r.limit = filter->limit;
    err = id.len ? requeue_one(&q, id, &r) : requeue_many(&q, filter, &r);
    return ew__question_end(&q, err, ret);
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

static ew_err count_page(ew__question *q, stats *s, ew_str dlq, uint32_t *offset, bool *over) {
    ew__question_page(q, EW__OP_LIST);
    q->op.u.list = (ew__op_list){.status = EW__JOB_STATUSES, .dlq = dlq, .limit = PAGE, .offset = *offset};
    ew_err err = ew__question_ask(q);
    for (size_t i = 0; i < q->op.u.list.ret_n && err == EW_OK; i++)
        err = count_job(s, &q->op.u.list.ret[i]);
    if (err == EW_OK) {
        *offset += (uint32_t)q->op.u.list.ret_n;
        *over = q->op.u.list.ret_n < PAGE;
        s->total = q->op.u.list.ret_total > s->n ? q->op.u.list.ret_total : s->n;
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

ew_err ew_jobs_dlq_stats(ew_jobs *jobs, ew_str dlq, ew_answer **ret) {
    ew__question q;
    ew_err err = ew__question_begin(&q, jobs, EW__OP_LIST);
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
        err = count_page(&q, &s, name, &offset, &over);
    if (err == EW_OK)
        write_stats(&q.answer->json, &s, name);
    ew__map_done(&s.queues.by_name);
    ew__map_done(&s.functions.by_name);
    ew__map_done(&s.errors.by_name);
    ew__arena_done(&s.arena);
    return ew__question_end(&q, err, ret);
}
