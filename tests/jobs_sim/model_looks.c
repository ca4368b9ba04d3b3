/*
 * tests/jobs_sim/model_looks.c: the operations of the model that change nothing. See model.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_sim/model.h"

#include <stdlib.h>

void model_copy_jobs(ew__store_request *op, model_job **from, size_t n, ew__job **ret, size_t *ret_n) {
    *ret = ew__arena_alloc(op->arena, (n + 1) * sizeof **ret);
    *ret_n = n;
    op->err = *ret ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; op->err == EW_OK && i < n; i++)
        op->err = ew__job_copy(&from[i]->job, op->arena, &(*ret)[i]);
}

void model_get(model *m, ew__store_request *op) {
    ew__op_get *g = &op->u.get;
    model_job *mj = model_find(m, g->id);
    op->err = mj ? ew__job_copy(&mj->job, op->arena, &g->ret) : EW_ENOTFOUND;
    if (op->err != EW_OK || !g->want_chunks)
        return;
    g->ret_chunks = ew__arena_alloc(op->arena, 256 * sizeof *g->ret_chunks);
    op->err = g->ret_chunks ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; op->err == EW_OK && i < mj->n_chunks && g->ret_n_chunks < 256; i++) {
        if (mj->chunks[i].seq <= g->after)
            continue;
        ew__chunk *chunk = &g->ret_chunks[g->ret_n_chunks++];
        chunk->seq = mj->chunks[i].seq;
        op->err = ew__arena_str(op->arena, ew_str_from(mj->chunks[i].json), &chunk->json);
    }
}

/* ---- LIST ---- */

static bool matches(const ew__op_list *l, const model_job *mj) {
    if (l->dlq.len && !(mj->dead && ew__str_is(mj->job.dlq, l->dlq)))
        return false;
    return (!l->queue.len || ew__str_is(l->queue, mj->job.queue)) &&
           (!l->function.len || ew__str_is(l->function, mj->job.function)) &&
           (l->dlq.len || l->waiting || l->status == EW__JOB_STATUSES || l->status == mj->job.status) &&
           (!l->waiting || model_waits(mj));
}

/* Waiting ones as they are due; dead letters by their end, others by their enqueue time, newest first. */
static bool comes_first(const ew__op_list *l, const model_job *a, const model_job *b) {
    if (l->waiting)
        return model_is_before(a, b);
    int64_t at_a = l->dlq.len ? a->job.ended_at : a->job.enqueued_at;
    int64_t at_b = l->dlq.len ? b->job.ended_at : b->job.enqueued_at;
    return at_a != at_b ? at_a > at_b : a->number > b->number;
}

void model_list(model *m, ew__store_request *op) {
    ew__op_list *l = &op->u.list;
    model_job **found = malloc((m->n_jobs + 1) * sizeof(model_job *));
    size_t n = 0;
    if (!found)
        abort();
    for (size_t i = 0; i < m->n_jobs; i++) {
        if (!matches(l, m->jobs[i]))
            continue;
        size_t at = n++;
        for (; at > 0 && comes_first(l, m->jobs[i], found[at - 1]); at--)
            found[at] = found[at - 1];
        found[at] = m->jobs[i];
    }
    l->ret_total = n;
    size_t first = l->offset < n ? l->offset : n, count = n - first < l->limit ? n - first : l->limit;
    model_copy_jobs(op, found + first, count, &l->ret, &l->ret_n);
    free(found);
}

/* ---- QUEUES, WORKERS ---- */

static ew__queue_stats *queue_of(const model *m, ew__store_request *op, ew_str name) {
    ew__op_queues *q = &op->u.queues;
    for (size_t i = 0; i < q->ret_n; i++) {
        if (ew__str_is(q->ret[i].name, name))
            return &q->ret[i];
    }
    ew__queue_stats *stats = &q->ret[q->ret_n++];
    *stats = (ew__queue_stats){.average_wait_ms = -1, .paused = model_is_paused(m, name)};
    op->err = ew__arena_str(op->arena, name, &stats->name);
    return stats;
}

static void note_waiting(ew__queue_stats *stats, const ew__job *job) {
    stats->pending++;
    if (stats->oldest_due == 0 || job->run_at < stats->oldest_due)
        stats->oldest_due = job->run_at;
    if (job->run_at > stats->newest_due)
        stats->newest_due = job->run_at;
}

static void note_counts(ew__queue_stats *stats, const model_job *mj, uint64_t *begun) {
    uint64_t none = 0;
    uint64_t *counts[] = {&none,          &stats->active,   &stats->retrying, &stats->completed,
                          &stats->failed, &stats->cancelled};
    ++*counts[mj->job.status];
    stats->dead += mj->dead;
    if (mj->job.started_at > 0) { /* the average so far */
        int64_t wait = mj->job.started_at - mj->job.enqueued_at, n = (int64_t)(*begun)++;
        stats->average_wait_ms = ((stats->average_wait_ms < 0 ? 0 : stats->average_wait_ms) * n + wait) / (n + 1);
    }
}

void model_queues(model *m, ew__store_request *op) {
    ew__op_queues *q = &op->u.queues;
    size_t most = m->n_jobs + m->n_paused + 1;
    uint64_t *begun = calloc(most, sizeof *begun);
    if (!begun)
        abort();
    q->ret = ew__arena_alloc(op->arena, most * sizeof *q->ret);
    op->err = q->ret ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; op->err == EW_OK && i < m->n_jobs; i++) {
        const model_job *mj = m->jobs[i];
        bool counts = q->counts && (q->max_scan == 0 || i < q->max_scan);
        q->ret_partial = q->ret_partial || (q->counts && !counts);
        if (!model_waits(mj) && !counts)
            continue;
        ew__queue_stats *stats = queue_of(m, op, mj->job.queue);
        if (model_waits(mj))
            note_waiting(stats, &mj->job);
        if (counts)
            note_counts(stats, mj, &begun[stats - q->ret]);
    }
    for (size_t i = 0; op->err == EW_OK && i < m->n_paused; i++)
        (void)queue_of(m, op, ew_str_from(m->paused[i]));
    free(begun);
}

void model_workers(model *m, ew__store_request *op) {
    ew__op_workers *w = &op->u.workers;
    w->ret = ew__arena_alloc(op->arena, (m->n_workers + 1) * sizeof *w->ret);
    op->err = w->ret ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; op->err == EW_OK && i < m->n_workers; i++) {
        if (m->workers[i].until <= m->now)
            continue;
        ew__worker_record *record = &w->ret[w->ret_n++];
        record->ttl_ms = (m->workers[i].until - m->now) / 1000000;
        op->err = ew__arena_str(op->arena, ew_str_from(m->workers[i].id), &record->id);
        if (op->err == EW_OK)
            op->err = ew__arena_str(op->arena, ew_str_from(m->workers[i].record), &record->record);
    }
}
