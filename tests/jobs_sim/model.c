/*
 * tests/jobs_sim/model.c: see model.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_sim/model.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- texts and arrays; a test that has no memory ends ---- */

static void *must(void *ptr) {
    if (!ptr) {
        (void)fprintf(stderr, "model: no memory\n");
        abort();
    }
    return ptr;
}

static char *dup_text(ew_str text) {
    char *copy = must(malloc(text.len + 1));
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return copy;
}

static void set_text(ew_str *at, ew_str text) {
    char *copy = text.len ? dup_text(text) : NULL;
    free((void *)(uintptr_t)at->ptr);
    *at = ew__str(copy, text.len);
}

static void *grow(void *array, size_t n, size_t size) {
    return n & (n - 1) ? array : must(realloc(array, (n ? 2 * n : 1) * size)); /* at powers of two */
}

#define TEXTS(job)                                                                                                     \
    {                                                                                                                  \
        &(job)->id, &(job)->function, &(job)->queue, &(job)->params, &(job)->result, &(job)->last_error,               \
            &(job)->error, &(job)->worker, &(job)->trace, &(job)->correlation, &(job)->unique_key, &(job)->dlq         \
    }
#define N_TEXTS 12

static void free_job(model_job *mj) {
    ew_str *texts[N_TEXTS] = TEXTS(&mj->job);
    for (size_t i = 0; i < N_TEXTS; i++)
        set_text(texts[i], EW_STR(""));
    for (size_t i = 0; i < mj->n_chunks; i++)
        free(mj->chunks[i].json);
    free(mj->chunks);
    free(mj);
}

void model_init(model *m, uint64_t now) {
    memset(m, 0, sizeof *m);
    m->now = now;
}

void model_done(model *m) {
    for (size_t i = 0; i < m->n_jobs; i++)
        free_job(m->jobs[i]);
    for (size_t i = 0; i < m->n_keys; i++) {
        free(m->keys[i].key);
        free(m->keys[i].id);
    }
    for (size_t i = 0; i < m->n_workers; i++) {
        free(m->workers[i].id);
        free(m->workers[i].record);
    }
    for (size_t i = 0; i < m->n_paused; i++)
        free(m->paused[i]);
    free(m->jobs);
    free(m->keys);
    free(m->workers);
    free(m->paused);
    memset(m, 0, sizeof *m);
}

model_job *model_find(model *m, ew_str id) {
    for (size_t i = 0; i < m->n_jobs; i++) {
        if (ew__str_is(m->jobs[i]->job.id, id))
            return m->jobs[i];
    }
    return NULL;
}

bool model_is_paused(const model *m, ew_str queue) {
    for (size_t i = 0; i < m->n_paused; i++) {
        if (ew__str_is(ew_str_from(m->paused[i]), queue))
            return true;
    }
    return false;
}

static void say(model *m, unsigned what) {
    if (m->changed)
        m->changed(m, what);
}

/* ---- ENQUEUE ---- */

static void remove_key(model *m, size_t i) {
    free(m->keys[i].key);
    free(m->keys[i].id);
    m->keys[i] = m->keys[--m->n_keys];
}

static model_key *find_key(model *m, ew__dedup_mode dedup, ew_str key) {
    for (size_t i = 0; i < m->n_keys;) {
        model_key *k = &m->keys[i];
        if (k->until <= m->now) {
            remove_key(m, i);
            continue;
        }
        if (k->dedup == dedup && ew__str_is(ew_str_from(k->key), key))
            return k;
        i++;
    }
    return NULL;
}

static void add_key(model *m, const ew__op_enqueue *e) {
    m->keys = grow(m->keys, m->n_keys, sizeof *m->keys);
    m->keys[m->n_keys++] = (model_key){e->dedup, dup_text(e->key), dup_text(e->job.id), m->now + EW__MS(e->key_ttl_ms)};
}

static void drop_key(model *m, ew__dedup_mode dedup, ew_str key, ew_str id) {
    model_key *k = key.len ? find_key(m, dedup, key) : NULL;
    if (k && ew__str_is(ew_str_from(k->id), id))
        remove_key(m, (size_t)(k - m->keys));
}

static void answer(ew__store_request *op, ew__enqueued ret, ew_str id) {
    op->u.enqueue.ret = ret;
    op->err = ew__arena_str(op->arena, id, &op->u.enqueue.ret_id);
}

/* Whether the dedup mode has decided. */
static bool deduplicated(model *m, ew__store_request *op) {
    ew__op_enqueue *e = &op->u.enqueue;
    model_key *key = e->dedup != EW__DEDUP_NONE ? find_key(m, e->dedup, e->key) : NULL;
    if (!key)
        return false;
    model_job *other = model_find(m, ew_str_from(key->id));
    if (e->dedup == EW__DEDUP_RATE) {
        answer(op, EW__ENQUEUED_LIMITED, EW_STR(""));
        return true;
    }
    if (other && e->dedup == EW__DEDUP_UNIQUE) {
        answer(op, EW__ENQUEUED_KNOWN, other->job.id);
        return true;
    }
    if (other && e->dedup == EW__DEDUP_DEBOUNCE && other->job.status == EW__JOB_PENDING) {
        answer(op, EW__ENQUEUED_KNOWN, other->job.id);
        if (op->err != EW_OK)
            return true;
        set_text(&other->job.function, e->job.function);
        set_text(&other->job.queue, e->job.queue);
        set_text(&other->job.params, e->job.params);
        set_text(&other->job.correlation, e->job.correlation);
        if (e->job.trace.len)
            set_text(&other->job.trace, e->job.trace);
        other->job.run_at = e->job.run_at;
        other->job.timeout_ms = e->job.timeout_ms;
        other->job.max_retries = e->job.max_retries;
        other->job.result_ttl_ms = e->job.result_ttl_ms;
        key->until = m->now + EW__MS(e->key_ttl_ms);
        say(m, EW__CHANGED_QUEUES);
        return true;
    }
    remove_key(m, (size_t)(key - m->keys));
    return false;
}

static void do_enqueue(model *m, ew__store_request *op) {
    ew__op_enqueue *e = &op->u.enqueue;
    const char *problem = ew__job_problem(&e->job);
    if (!problem && e->dedup != EW__DEDUP_NONE && (e->key.len == 0 || e->key_ttl_ms <= 0))
        problem = "a dedup mode needs a key, and a time";
    if (problem) {
        (void)snprintf(op->problem, sizeof op->problem, "%s", problem);
        op->err = EW_EINVAL;
        return;
    }
    if (deduplicated(m, op))
        return;
    if (model_find(m, e->job.id)) {
        answer(op, EW__ENQUEUED_DUPLICATE, e->job.id);
        return;
    }
    answer(op, EW__ENQUEUED_NEW, e->job.id);
    if (op->err != EW_OK)
        return;
    if (e->dedup != EW__DEDUP_NONE)
        add_key(m, e);
    model_job *mj = must(calloc(1, sizeof *mj));
    mj->job = e->job;
    ew_str *to[N_TEXTS] = TEXTS(&mj->job);
    for (size_t i = 0; i < N_TEXTS; i++)
        to[i]->ptr = to[i]->len ? dup_text(*to[i]) : NULL;
    mj->job.status = EW__JOB_PENDING;
    mj->number = ++m->n_enqueued;
    m->jobs = grow(m->jobs, m->n_jobs, sizeof(model_job *));
    m->jobs[m->n_jobs++] = mj;
    if (m->enqueued)
        m->enqueued(m, mj, e);
    say(m, EW__CHANGED_QUEUES);
}

/* ---- CLAIM ---- */

bool model_is_before(const model_job *a, const model_job *b) {
    if (a->job.run_at != b->job.run_at)
        return a->job.run_at < b->job.run_at;
    return strcmp(a->job.id.ptr, b->job.id.ptr) < 0;
}

/* The next that waits in the queue after `last` (NULL: the first). */
static model_job *next_waiting(model *m, ew_str queue, const model_job *last) {
    model_job *best = NULL;
    for (size_t i = 0; i < m->n_jobs; i++) {
        model_job *mj = m->jobs[i];
        if (model_waits(mj) && ew__str_is(mj->job.queue, queue) && (!last || model_is_before(last, mj)) &&
            (!best || model_is_before(mj, best)))
            best = mj;
    }
    return best;
}

static size_t pick(model *m, const ew__op_claim *c, model_job **picked, int64_t *ret_next) {
    size_t n = 0;
    *ret_next = 0;
    for (size_t q = 0; q < c->n_queues; q++) {
        uint32_t of_queue = 0;
        model_job *mj = NULL;
        if (model_is_paused(m, c->queues[q].name))
            continue;
        while ((mj = next_waiting(m, c->queues[q].name, mj)) != NULL) {
            if (mj->job.run_at > c->now) {
                *ret_next = *ret_next == 0 || mj->job.run_at < *ret_next ? mj->job.run_at : *ret_next;
                break;
            }
            if (n < c->max && of_queue < c->queues[q].max) {
                picked[n++] = mj;
                of_queue++;
            }
        }
    }
    return n;
}

static void do_claim(model *m, ew__store_request *op) {
    ew__op_claim *c = &op->u.claim;
    model_job **picked = must(malloc((m->n_jobs + 1) * sizeof(model_job *)));
    c->ret_n = pick(m, c, picked, &c->ret_next);
    c->ret = ew__arena_alloc(op->arena, (c->ret_n + 1) * sizeof *c->ret);
    op->err = c->ret ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; op->err == EW_OK && i < c->ret_n; i++) { /* first what may fail */
        ew__job job = picked[i]->job;
        job.status = EW__JOB_ACTIVE;
        job.worker = c->worker;
        job.started_at = c->now;
        job.epoch++;
        op->err = ew__job_copy(&job, op->arena, &c->ret[i]);
    }
    for (size_t i = 0; op->err == EW_OK && i < c->ret_n; i++) {
        ew__job *job = &picked[i]->job;
        job->status = EW__JOB_ACTIVE;
        set_text(&job->worker, c->worker);
        job->started_at = c->now;
        job->epoch = c->ret[i].epoch;
        picked[i]->lease_until = m->now + EW__MS(c->lease_ms);
        if (m->claimed)
            m->claimed(m, picked[i]);
    }
    free(picked);
}

/* ---- CHANGE, CHUNKS, RENEW, EXPIRED ---- */

static ew_err may_change(const model_job *mj, ew_str worker, uint64_t epoch) {
    if (!mj)
        return EW_ENOTFOUND;
    bool holds = mj->job.status == EW__JOB_ACTIVE && mj->job.epoch == epoch && ew__str_is(mj->job.worker, worker);
    return holds ? EW_OK : EW_ESTALE;
}

static void do_change(model *m, ew__store_request *op) {
    ew__op_change *c = &op->u.change;
    model_job *mj = model_find(m, c->id);
    op->err = may_change(mj, c->worker, c->epoch);
    if (op->err == EW_OK && c->claim == EW__CLAIM_LOST && mj->lease_until > m->now)
        op->err = EW_ESTALE;
    if (op->err != EW_OK)
        return;
    if (m->changing)
        m->changing(m, mj, c, c->status);
    ew__job *job = &mj->job;
    job->status = c->status;
    job->retries = c->retries;
    job->lost = c->lost;
    if (c->last_error.len)
        set_text(&job->last_error, c->last_error);
    set_text(&job->error, c->error);
    mj->lease_until = 0;
    if (ew__job_is_final(c->status)) {
        job->ended_at = c->now;
        set_text(&job->result, c->status == EW__JOB_COMPLETED ? c->result : EW_STR(""));
        set_text(&job->dlq, c->dlq);
        mj->dead = c->status == EW__JOB_FAILED;
        job->cancel = false;
        drop_key(m, EW__DEDUP_UNIQUE, job->unique_key, job->id);
    } else {
        job->run_at = c->run_at;
    }
    say(m, EW__CHANGED_JOBS | (ew__job_is_final(c->status) ? 0u : (unsigned)EW__CHANGED_QUEUES));
}

/* The newest stay: so many, and of so many bytes. */
static void bound_chunks(model_job *mj) {
    size_t bytes = 0, keep = 0;
    for (size_t i = mj->n_chunks; i > 0 && keep < EW__JOB_CHUNKS_MAX; i--, keep++) {
        bytes += strlen(mj->chunks[i - 1].json);
        if (bytes > EW__JOB_CHUNK_BYTES_MAX)
            break;
    }
    size_t drop = mj->n_chunks - keep;
    for (size_t i = 0; i < drop; i++)
        free(mj->chunks[i].json);
    if (drop)
        memmove(mj->chunks, mj->chunks + drop, keep * sizeof *mj->chunks);
    mj->n_chunks = keep;
}

static void do_chunks(model *m, ew__store_request *op) {
    ew__op_chunks *c = &op->u.chunks;
    model_job *mj = model_find(m, c->id);
    op->err = may_change(mj, c->worker, c->epoch);
    for (size_t i = 0; op->err == EW_OK && i < c->n; i++) {
        mj->chunks = grow(mj->chunks, mj->n_chunks, sizeof *mj->chunks);
        mj->chunks[mj->n_chunks++] = (model_chunk){dup_text(c->chunks[i]), ++mj->job.chunks, c->epoch};
    }
    if (op->err != EW_OK)
        return;
    bound_chunks(mj);
    say(m, EW__CHANGED_JOBS);
}

static void note_worker(model *m, const ew__op_renew *r) {
    size_t i = 0;
    while (i < m->n_workers && !ew__str_is(ew_str_from(m->workers[i].id), r->worker))
        i++;
    if (i < m->n_workers) {
        free(m->workers[i].id);
        free(m->workers[i].record);
        m->workers[i] = m->workers[--m->n_workers];
    }
    if (r->record.len == 0)
        return;
    m->workers = must(realloc(m->workers, (m->n_workers + 1) * sizeof *m->workers));
    m->workers[m->n_workers++] = (model_worker){dup_text(r->worker), dup_text(r->record), m->now + EW__MS(r->ttl_ms)};
}

static void do_renew(model *m, ew__store_request *op) {
    ew__op_renew *r = &op->u.renew;
    note_worker(m, r);
    op->err = EW_OK;
    for (size_t i = 0; i < r->n_leases; i++) {
        ew__lease *lease = &r->leases[i];
        model_job *mj = model_find(m, lease->id);
        if (may_change(mj, r->worker, lease->epoch) != EW_OK) {
            lease->ret = EW__LEASE_GONE;
            continue;
        }
        mj->lease_until = m->now + EW__MS(r->lease_ms);
        lease->ret = mj->job.cancel ? EW__LEASE_CANCEL : EW__LEASE_HELD;
    }
}

static void do_expired(model *m, ew__store_request *op) {
    ew__op_expired *e = &op->u.expired;
    model_job **found = must(malloc((m->n_jobs + 1) * sizeof(model_job *)));
    size_t n = 0;
    for (size_t i = 0; i < m->n_jobs && n < e->max; i++) {
        if (m->jobs[i]->job.status == EW__JOB_ACTIVE && m->jobs[i]->lease_until <= m->now)
            found[n++] = m->jobs[i];
    }
    model_copy_jobs(op, found, n, &e->ret, &e->ret_n);
    free(found);
}

/* ---- by hand ---- */

static void do_cancel(model *m, ew__store_request *op) {
    ew__op_cancel *c = &op->u.cancel;
    model_job *mj = model_find(m, c->id);
    op->err = mj ? EW_OK : EW_ENOTFOUND;
    if (!mj)
        return;
    c->ret = ew__job_is_final(mj->job.status) ? EW__CANCELLED_LATE
             : model_waits(mj)                ? EW__CANCELLED_NOW
                                              : EW__CANCELLED_ASKED;
    if (c->ret == EW__CANCELLED_NOW) {
        if (m->changing)
            m->changing(m, mj, NULL, EW__JOB_CANCELLED);
        mj->job.status = EW__JOB_CANCELLED;
        mj->job.ended_at = c->now;
        drop_key(m, EW__DEDUP_UNIQUE, mj->job.unique_key, mj->job.id);
        say(m, EW__CHANGED_JOBS);
    } else if (c->ret == EW__CANCELLED_ASKED) {
        mj->job.cancel = true;
        say(m, EW__CHANGED_CANCELS);
    }
    c->ret_status = mj->job.status;
}

static void do_requeue(model *m, ew__store_request *op) {
    ew__op_requeue *r = &op->u.requeue;
    model_job *mj = model_find(m, r->id);
    op->err = !mj ? EW_ENOTFOUND : EW_OK;
    if (mj && mj->job.status != EW__JOB_FAILED && mj->job.status != EW__JOB_CANCELLED)
        op->err = EW_ESTALE;
    if (op->err != EW_OK)
        return;
    if (m->changing)
        m->changing(m, mj, NULL, EW__JOB_PENDING);
    mj->job.status = EW__JOB_PENDING;
    mj->job.retries = mj->job.lost = 0;
    mj->job.run_at = r->now;
    mj->job.ended_at = 0;
    mj->job.cancel = mj->dead = false;
    if (r->queue.len)
        set_text(&mj->job.queue, r->queue);
    say(m, EW__CHANGED_QUEUES);
}

static void do_pause(model *m, ew__store_request *op) {
    ew__op_pause *p = &op->u.pause;
    op->err = EW_OK;
    if (model_is_paused(m, p->queue) == p->on)
        return;
    if (p->on) {
        m->paused = must(realloc(m->paused, (m->n_paused + 1) * sizeof(char *)));
        m->paused[m->n_paused++] = dup_text(p->queue);
        return;
    }
    for (size_t i = 0; i < m->n_paused; i++) {
        if (ew__str_is(ew_str_from(m->paused[i]), p->queue)) {
            free(m->paused[i]);
            m->paused[i] = m->paused[--m->n_paused];
            break;
        }
    }
    say(m, EW__CHANGED_QUEUES);
}

static void do_sweep(model *m, ew__store_request *op) {
    ew__op_sweep *s = &op->u.sweep;
    op->err = EW_OK;
    for (size_t i = 0; i < m->n_jobs && s->ret_removed < s->max;) {
        const ew__job *job = &m->jobs[i]->job;
        int64_t ttl = job->result_ttl_ms;
        if (job->status == EW__JOB_FAILED && ttl && ttl < EW__JOB_DEAD_TTL_MS)
            ttl = EW__JOB_DEAD_TTL_MS;
        bool old = ew__job_is_final(job->status) && ttl && job->ended_at + ttl <= s->now;
        if (!old) {
            i++;
            continue;
        }
        free_job(m->jobs[i]);
        memmove(&m->jobs[i], &m->jobs[i + 1], (m->n_jobs - i - 1) * sizeof(model_job *));
        m->n_jobs--;
        s->ret_removed++;
    }
}

void model_do(model *m, ew__store_request *op) {
    static void (*const all[EW__OP_KINDS])(model * m, ew__store_request * op) = {
        do_enqueue, do_claim,  do_change,  do_renew,     do_expired, do_chunks,     model_get,
        model_list, do_cancel, do_requeue, model_queues, do_pause,   model_workers, do_sweep};
    all[op->kind](m, op);
}
