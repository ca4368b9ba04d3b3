/*
 * jobs/worker_scan.c: every worker looks now and then for jobs whose worker was lost, and puts them back; and has
 * what is too old removed. Two workers may find the same job: the store lets one of them change it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"

#define EXPIRED_MAX 100 /* jobs of lost workers recovered at once */
#define SWEEP_MAX 1000  /* old jobs removed at once */

typedef struct lost_job {
    ew__store_request op;
    ew__policy_text text;
} lost_job;

static void on_expired(ew__store_request *op);
static void on_swept(ew__store_request *op);
static void find_expired(ew__worker *worker);

/* A fifth more or less, so that workers take turns. */
static void on_scan_timer(ew__timer *timer, uint64_t now);
static void scan_later(ew__worker *worker) {
    uint64_t ms = worker->options.scan_ms * (80 + ew__rng_next(&worker->executor->rng) % 41) / 100;
    if (worker->phase == EW__WORKER_RUNNING)
        ew__worker_alarm_in(worker, &worker->scans.timer, ms > 0 ? ms : 1, on_scan_timer);
}

static void on_scan_timer(ew__timer *timer, uint64_t now) {
    (void)now;
    find_expired(ew__container_of(timer, ew__worker, scans.timer));
}

void ew__worker_scan_start(ew__worker *worker) { find_expired(worker); }

static void find_expired(ew__worker *worker) {
    ew__store_request_begin(&worker->scans.op, &worker->requests, EW__OP_EXPIRED);
    worker->scans.op.u.expired = (ew__op_expired){.now = ew__worker_wall(worker), .max = EXPIRED_MAX};
    ew__store_request_submit(&worker->scans.op, on_expired);
}

static void sweep(ew__worker *worker) {
    ew__store_request_begin(&worker->scans.op, &worker->requests, EW__OP_SWEEP);
    worker->scans.op.u.sweep = (ew__op_sweep){.now = ew__worker_wall(worker), .max = SWEEP_MAX};
    ew__store_request_submit(&worker->scans.op, on_swept);
}

static void on_swept(ew__store_request *op) {
    ew__worker *worker = ew__worker_of(op);
    ew__store_request_returned(op);
    bool more = op->err == EW_OK && op->u.sweep.ret_removed >= SWEEP_MAX;
    ew__store_request_end(op);
    if (more && worker->phase == EW__WORKER_RUNNING)
        sweep(worker);
    else
        scan_later(worker);
    ew__worker_check(worker);
}

/* ---- jobs that were lost ---- */

static void next_step(ew__worker *worker) {
    const ew__op_expired *expired = &worker->scans.op.u.expired;
    bool more = expired->ret_n >= expired->max && worker->scans.n_changed > 0;
    ew__store_request_end(&worker->scans.op);
    if (worker->phase != EW__WORKER_RUNNING)
        return;
    if (worker->scans.n_changed > 0)
        ew__worker_claim(worker);
    if (more)
        find_expired(worker);
    else
        sweep(worker);
}

static void on_changed(ew__store_request *op) {
    ew__worker *worker = ew__worker_of(op);
    ew__store_request_returned(op);
    const ew__op_change *change = &op->u.change;
    if (op->err == EW_OK) {
        worker->scans.n_changed++;
        worker->stats.recovered += change->status == EW__JOB_PENDING;
        worker->stats.poisoned += change->status == EW__JOB_FAILED;
        if (change->status == EW__JOB_FAILED)
            ew__log(worker->env, EW_LOG_WARN, "worker", "job %.*s is a dead letter: %.*s", (int)change->id.len,
                    change->id.ptr, (int)change->last_error.len, change->last_error.ptr);
    }
    ew__store_request_end(op);
    if (--worker->scans.n_lost == 0)
        next_step(worker);
    ew__worker_check(worker);
}

/* Whether this worker runs it: its lease ran out because the store could not be reached, and will be renewed. */
static bool is_running(const ew__worker *worker, const ew__job *job) {
    for (uint32_t i = 0; i < worker->options.concurrency; i++) {
        const ew__attempt *attempt = worker->attempts.slots[i];
        if (attempt && attempt->run.job.epoch == job->epoch && ew__str_is(attempt->run.job.id, job->id))
            return true;
    }
    return false;
}

static void put_back(ew__worker *worker, lost_job *lost, const ew__job *job) {
    bool own = ew__str_is(job->worker, worker->id);
    if (own && is_running(worker, job))
        return;
    ew__store_request_begin(&lost->op, &worker->requests, EW__OP_CHANGE);
    ew__op_change *change = &lost->op.u.change;
    ew__policy_lost(&worker->options.policy, job, ew__worker_wall(worker), &lost->text, change);
    if (own && worker->executor->now < worker->claims.doubt_until && change->status != EW__JOB_CANCELLED) {
        /* A claim of ours whose answer was lost: nobody has run it, and no worker was lost. */
        change->status = EW__JOB_PENDING;
        change->run_at = job->run_at > 0 && job->run_at < change->now ? job->run_at : change->now;
        change->lost = job->lost;
        change->last_error = EW_STR("");
    }
    worker->scans.n_lost++;
    ew__store_request_submit(&lost->op, on_changed);
}

static void on_expired(ew__store_request *op) {
    ew__worker *worker = ew__worker_of(op);
    ew__store_request_returned(op);
    ew__op_expired *expired = &op->u.expired;
    lost_job *lost = NULL;
    worker->scans.n_changed = 0;
    if (op->err != EW_OK)
        expired->ret_n = 0;
    if (expired->ret_n > 0)
        lost = ew__arena_alloc(&op->memory, expired->ret_n * sizeof *lost);
    if (op->err != EW_OK || (expired->ret_n > 0 && !lost) || worker->phase != EW__WORKER_RUNNING) {
        ew__store_request_end(op);
        scan_later(worker);
        ew__worker_check(worker);
        return;
    }
    for (size_t i = 0; i < expired->ret_n; i++) {
        put_back(worker, &lost[i], &expired->ret[i]);
    }
    if (worker->scans.n_lost == 0)
        next_step(worker);
    ew__worker_check(worker);
}
