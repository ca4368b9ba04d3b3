/*
 * tests/jobs_sim/sim_check.c: what must hold always, seen from the store and from the runs; and in the end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

static char *dup_text(ew_str text) {
    char *copy = malloc(text.len + 1);
    if (!copy)
        abort();
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return copy;
}

record *sim_record(sim *s, ew_str id) {
    for (record *r = s->records; r; r = r->next) {
        if (ew__str_is(ew_str_from(r->id), id))
            return r;
    }
    return NULL;
}

srun *sim_find_run(const record *r, uint64_t epoch) {
    for (srun *run = r->runs; run; run = run->sibling) {
        if (run->epoch == epoch)
            return run;
    }
    return NULL;
}

void sim_free_records(sim *s) {
    while (s->records) {
        record *r = s->records;
        s->records = r->next;
        free(r->id);
        free(r->tick);
        free(r);
    }
    while (s->runs) {
        srun *run = s->runs;
        s->runs = run->next;
        free(run);
    }
}

/* ---- jobs come, and are taken ---- */

static void enqueued(model *m, model_job *mj, const ew__op_enqueue *e) {
    sim *s = sim_of(m->ud);
    if (sim_record(s, mj->job.id))
        world_fail(&s->w, "there are two jobs %.*s", (int)mj->job.id.len, mj->job.id.ptr);
    record *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->id = dup_text(mj->job.id);
    if (ew__str_has_prefix(e->key, EW_STR("cron:")) && e->dedup == EW__DEDUP_RATE)
        r->tick = dup_text(e->key);
    else if (ew__str_has_prefix(mj->job.id, EW_STR("cron-")))
        r->tick = dup_text(mj->job.id);
    for (const record *other = s->records; r->tick && other; other = other->next) {
        if (other->tick && strcmp(other->tick, r->tick) == 0)
            world_fail(&s->w, "two jobs of the tick %s", r->tick);
    }
    r->number = ++s->n_records;
    r->early = !s->healed;
    r->next = s->records;
    s->records = r;
    mj->ud = r;
    world_trace(&s->w, T_ENQUEUED, r->number, 0, 0);
}

static void claimed(model *m, model_job *mj) {
    sim *s = sim_of(m->ud);
    record *r = mj->ud;
    world_trace(&s->w, T_CLAIMED, r->number, (int64_t)mj->job.epoch, 0);
    if (mj->job.epoch <= r->epoch)
        world_fail(&s->w, "job %d was claimed with an epoch that it had before", r->number);
    if (r->finals)
        world_fail(&s->w, "job %d was claimed after its end", r->number);
    r->epoch = mj->job.epoch;
}

/* ---- changes ---- */

#define CHECK(s, r, what, text)                                                                                        \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            world_fail(&(s)->w, "job %d: %s", (r)->number, text);                                                      \
    } while (0)

/* All that a run has said is there before its end. In doubt things are there twice, but never out of order. */
static void check_chunks(sim *s, const record *r, const model_job *mj, const srun *run) {
    unsigned last = 0;
    for (size_t i = 0; i < mj->n_chunks; i++) {
        unsigned long long epoch;
        unsigned number;
        if (mj->chunks[i].epoch != run->epoch)
            continue;
        if (sscanf(mj->chunks[i].json, "[%llu,%u]", &epoch, &number) != 2 || epoch != run->epoch)
            world_fail(&s->w, "job %d: a chunk of another run: %s", r->number, mj->chunks[i].json);
        CHECK(s, r, number <= last + 1, "a chunk is missing");
        last = number > last ? number : last;
    }
    CHECK(s, r, last == run->chunks_said, "it ended before all of its chunks were kept");
}

static void check_completed(sim *s, const record *r, const model_job *mj, const ew__op_change *c, const srun *run) {
    char expected[64];
    CHECK(s, r, run && run->ended && run->kind == EW__OUTCOME_SUCCESS, "completed, but no run of it has succeeded");
    (void)snprintf(expected, sizeof expected, "{\"job\":%d,\"epoch\":%llu}", r->number,
                   (unsigned long long)mj->job.epoch);
    if (!ew__str_is(c->result, ew_str_from(expected)))
        world_fail(&s->w, "job %d: the result is %.*s, not %s", r->number, (int)c->result.len, c->result.ptr, expected);
    CHECK(s, r, !(run->stopped && run->why == EW__STOP_TIMEOUT), "completed after its time was over");
    CHECK(s, r, c->retries == mj->job.retries && c->lost == mj->job.lost, "an end that counts as a failure");
    check_chunks(s, r, mj, run);
}

static bool timed_out(const srun *run) {
    return (run->stopped && run->why == EW__STOP_TIMEOUT) || (run->ended && run->kind == EW__OUTCOME_TIMEOUT);
}

/* RETRYING or FAILED by its own worker. */
static void check_failed(sim *s, const record *r, const model_job *mj, const ew__op_change *c, const srun *run) {
    uint32_t max = mj->job.max_retries ? mj->job.max_retries : 1;
    CHECK(s, r, run != NULL, "failed, and was never run");
    CHECK(s, r, c->retries == mj->job.retries + 1 && c->lost == mj->job.lost, "wrong counts after a failure");
    bool no_memory = s->o.faults.no_memory && run->ended && run->kind == EW__OUTCOME_SUCCESS;
    bool failed = timed_out(run) || no_memory || (run->ended && run->kind != EW__OUTCOME_SUCCESS);
    CHECK(s, r, failed, "failed, but its run did not");
    bool at_once = timed_out(run) ? !s->o.retry_timeouts : run->kind == EW__OUTCOME_FATAL;
    if (run->stopped && !timed_out(run))
        world_fail(&s->w, "job %d: failed because it was stopped", r->number);
    bool last = at_once || c->retries >= max;
    CHECK(s, r, last == (c->status == EW__JOB_FAILED), last ? "retried too often" : "a dead letter too early");
    if (c->status == EW__JOB_RETRYING && run->ended && run->kind == EW__OUTCOME_RETRY && run->retry_after_ms >= 0 &&
        !run->stopped)
        CHECK(s, r, c->run_at == c->now + run->retry_after_ms, "not retried when it wanted");
    if (c->status == EW__JOB_RETRYING)
        CHECK(s, r, c->run_at >= c->now && c->run_at <= c->now + 2000, "a strange time for a retry");
}

static void check_held(sim *s, const record *r, const model_job *mj, const ew__op_change *c) {
    const srun *run = sim_find_run(r, c->epoch);
    switch (c->status) {
    case EW__JOB_COMPLETED:
        check_completed(s, r, mj, c, run);
        break;
    case EW__JOB_RETRYING:
    case EW__JOB_FAILED:
        check_failed(s, r, mj, c, run);
        break;
    case EW__JOB_PENDING:
        CHECK(s, r, c->retries == mj->job.retries && c->lost == mj->job.lost, "handing back costs an attempt");
        CHECK(s, r,
              !run || (run->stopped && run->why == EW__STOP_SHUTDOWN) || (run->ended && run->kind == EW__OUTCOME_BACK),
              "handed back for no reason");
        break;
    default:
        CHECK(s, r, c->status == EW__JOB_CANCELLED && mj->job.cancel && r->cancel_asked, "cancelled, and nobody asked");
        break;
    }
}

static void check_lost(sim *s, const record *r, const model_job *mj, const ew__op_change *c) {
    uint32_t lost = mj->job.lost + 1;
    const sim_options *o = &s->o;
    bool trouble = o->crashes || o->stalls || o->downs || o->stops || o->faults.fail_before || o->faults.fail_after ||
                   o->faults.no_memory;
    CHECK(s, r, trouble, "a worker without any trouble has lost its lease");
    CHECK(s, r, mj->lease_until <= s->w.now, "taken from a worker whose lease lives");
    CHECK(s, r, c->retries == mj->job.retries, "a lost worker counts as a failed attempt");
    if (c->status == EW__JOB_CANCELLED) {
        CHECK(s, r, mj->job.cancel, "cancelled, and nobody asked");
        return;
    }
    if (c->status == EW__JOB_PENDING && c->lost == mj->job.lost) {
        CHECK(s, r, !sim_find_run(r, mj->job.epoch), "a lost worker was not counted");
        return;
    }
    CHECK(s, r, c->lost == lost, "lost workers are miscounted");
    CHECK(s, r, c->status == (lost >= SIM_POISON ? EW__JOB_FAILED : EW__JOB_PENDING), "poison pills are miscounted");
}

static void changing(model *m, model_job *mj, const ew__op_change *c, ew__job_status status) {
    sim *s = sim_of(m->ud);
    record *r = mj->ud;
    world_trace(&s->w, T_CHANGE, r->number, c ? (int64_t)c->epoch : -1, status);
    if (!c && status == EW__JOB_PENDING) {
        r->finals = 0; /* requeued by hand */
        r->cancel_asked = false;
        return;
    }
    CHECK(s, r, r->finals == 0, "changed after its end");
    if (c) {
        CHECK(s, r, c->epoch == r->epoch && c->epoch == mj->job.epoch, "changed by an old claim");
        if (c->claim == EW__CLAIM_LOST)
            check_lost(s, r, mj, c);
        else
            check_held(s, r, mj, c);
    }
    if (ew__job_is_final(status)) {
        r->finals++;
        r->final = status;
        s->n_final++;
    }
}

void sim_watch(sim *s) {
    s->w.store.enqueued = enqueued;
    s->w.store.claimed = claimed;
    s->w.store.changing = changing;
}

/* ---- runs ---- */

void sim_check_start(sim *s, node *n, const ew__run *run) {
    record *r = sim_record(s, run->job.id);
    uint32_t all = 0, of_queue = 0, shared = 0;
    int queue = sim_queue(run->job.queue);
    CHECK(s, r, sim_find_run(r, run->job.epoch) == NULL, "one claim was run twice");
    CHECK(s, r, run->attempt == run->job.retries + 1, "the attempt has a wrong number");
    CHECK(s, r, run->deadline == s->w.now + EW__MS(run->job.timeout_ms), "a wrong deadline");
    CHECK(s, r, !s->stopping[n->index], "begun after the stop");
    for (const srun *other = s->runs; other; other = other->next) {
        if (other->n != n || other->life != n->life || !other->run || other->stopped)
            continue;
        all++;
        of_queue += other->queue == queue;
        shared += other->queue != 0;
    }
    CHECK(s, r, all < s->o.concurrency, "more than may run at a time");
    CHECK(s, r, queue != 1 || s->o.queue_concurrency == 0 || of_queue < s->o.queue_concurrency,
          "more of one queue than may run at a time");
    CHECK(s, r, queue == 0 || s->o.room == 0 || shared < s->o.room, "claimed without room");
    if (queue == 2 && s->o.rate) {
        uint64_t *starts = s->rate_starts[n->index];
        CHECK(s, r, starts[s->o.rate - 1] == 0 || s->w.now - starts[s->o.rate - 1] >= EW__MS(1000), "begun too often");
        memmove(starts + 1, starts, 7 * sizeof *starts);
        starts[0] = s->w.now;
    }
}

void sim_check_stop(const srun *run, ew__stop_why why) {
    sim *s = run->s;
    const model_job *mj = model_find(&s->w.store, ew_str_from(run->r->id));
    CHECK(s, run->r, !run->stopped, "stopped twice");
    switch (why) {
    case EW__STOP_TIMEOUT:
        CHECK(s, run->r, s->w.now >= run->run->deadline, "stopped before its time was over");
        break;
    case EW__STOP_CANCELLED:
        CHECK(s, run->r, run->r->cancel_asked, "stopped, and nobody wants it cancelled");
        break;
    case EW__STOP_LOST:
        CHECK(s, run->r, !mj || mj->job.epoch != run->epoch || mj->job.status != EW__JOB_ACTIVE,
              "stopped as lost, but it was not");
        break;
    case EW__STOP_SHUTDOWN:
        CHECK(s, run->r, s->stopping[run->n->index], "stopped by a shutdown that is none");
        break;
    }
}

/* ---- in the end ---- */

bool sim_is_settled(sim *s) {
    for (const record *r = s->records; r; r = r->next) {
        if (r->early && r->finals == 0)
            return false;
    }
    return true;
}

void sim_check_settled(sim *s) {
    for (const record *r = s->records; r; r = r->next) {
        const model_job *mj = model_find(&s->w.store, ew_str_from(r->id));
        if (!r->early)
            continue;
        if (r->finals != 1)
            world_fail(&s->w, "job %d has not ended: %s in %s, due in %lld ms", r->number,
                       mj ? ew__job_status_name(mj->job.status).ptr : "gone", mj ? mj->job.queue.ptr : "",
                       mj ? (long long)(mj->job.run_at - (int64_t)(WORLD_WALL_MS + s->w.now / 1000000)) : 0);
        if (!mj)
            continue; /* its time was over */
        CHECK(s, r, mj->job.status == r->final, "has another end than it had");
        CHECK(s, r, mj->lease_until == 0, "has ended, and is leased");
        CHECK(s, r, mj->dead == (r->final == EW__JOB_FAILED), "is no dead letter, or should not be one");
    }
}

void sim_check_ticks(sim *s, const char *name, int64_t from, int64_t to, int64_t every) {
    char key[64];
    for (int64_t tick = (from / every + 1) * every; tick <= to; tick += every) {
        const record *r = s->records;
        (void)snprintf(key, sizeof key, "cron:%s:%lld", name, (long long)tick);
        while (r && (!r->tick || strcmp(r->tick, key) != 0))
            r = r->next;
        if (!r)
            world_fail(&s->w, "no job was made of the tick %s", key);
    }
}
