/*
 * jobs/worker_claim.c: taking jobs that are due: never more than can start now. One claim is under way at a time; the
 * next follows at once while there is more, and otherwise when a job becomes due, a place becomes free, somebody says
 * that a queue has changed, or poll_ms have passed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"
#include "base/list.h"

#define LEFT_MAX 1000 /* runs that were given up and do not take places */

static void on_timer(ew__timer *timer, uint64_t now);
static void on_claimed(ew__store_request *op);

/* ---- batches ---- */

void ew__batch_leave(ew__batch *batch) {
    if (--batch->users > 0)
        return;
    const ew_env *env = batch->op.memory.env; /* the worker may be gone */
    ew__store_request_end(&batch->op);
    ew__free(env, batch, sizeof *batch);
}

/* ---- how many ---- */

/* How many jobs of this queue may begin now by its rate; *ret_at: when that becomes more, if it is none. */
static uint32_t rate_room(const ew__queue_state *queue, uint64_t now, uint64_t *ret_at) {
    uint32_t n = 0;
    if (!queue->begun)
        return UINT32_MAX;
    /* The ring begins with the oldest: those before the window are free again. */
    while (n < queue->rate) {
        uint64_t begun = queue->begun[(queue->at + n) % queue->rate];
        if (begun != 0 && begun + queue->rate_ns > now)
            break;
        n++;
    }
    if (n == 0) {
        uint64_t at = queue->begun[queue->at] + queue->rate_ns;
        *ret_at = at < *ret_at ? at : *ret_at;
    }
    return n;
}

static void note_begun(ew__queue_state *queue, uint64_t now) {
    if (!queue->begun)
        return;
    queue->begun[queue->at] = now ? now : 1;
    queue->at = (queue->at + 1) % queue->rate;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* What was given up and still not given back counts too, once it is a lot: everything has a limit. */
static uint32_t free_places(const ew__worker *worker) {
    uint32_t all = worker->options.concurrency;
    uint32_t taken =
        worker->attempts.n_used + (worker->attempts.n_left > LEFT_MAX ? worker->attempts.n_left - LEFT_MAX : 0);
    return taken < all ? all - taken : 0;
}

/*
 * Fills in the queues of a claim, and returns how many jobs it may bring. Several queues may share the runner whose
 * room they tell: so the whole claim brings no more than the smallest of them. A queue with little room that brings
 * nothing would keep all claims small; it is left out every other time.
 */
static uint32_t plan(ew__worker *worker, ew__op_claim *claim, uint64_t *ret_at) {
    uint32_t total = free_places(worker), sum = 0;
    ew__queue_state *skip = worker->claims.skip_narrow ? worker->claims.narrow : NULL;
    worker->claims.narrow = NULL;
    worker->claims.all_queues = true;
    for (size_t i = 0; i < worker->claims.n_queues; i++) {
        ew__queue_state *queue = worker->claims.order[i];
        uint32_t max = free_places(worker);
        if (queue->concurrency)
            max = least(max, queue->concurrency > queue->running ? queue->concurrency - queue->running : 0);
        max = least(max, rate_room(queue, worker->executor->now, ret_at));
        uint32_t room = max && queue != skip ? worker->runs->ops->room(worker->runs, queue->name) : 0;
        max = least(max, room);
        worker->claims.all_queues = worker->claims.all_queues && max > 0;
        worker->claims.limits[i] = (ew__claim_queue){.name = queue->name, .max = max};
        sum += max < UINT32_MAX - sum ? max : UINT32_MAX - sum;
        if (max > 0 && room < total) {
            total = room;
            worker->claims.narrow = queue;
        }
    }
    claim->queues = worker->claims.limits;
    claim->n_queues = worker->claims.n_queues;
    return least(total, sum);
}

/* ---- asking ---- */

/* Attempts for what may come, before it comes: a job that was claimed and cannot be noted would be lost for a while. */
static uint32_t have_spares(ew__worker *worker, uint32_t n) {
    while (worker->attempts.n_spare < n) {
        ew__attempt *attempt = ew__attempt_new(worker);
        if (!attempt)
            break;
        EW__LIST_ADD(worker->attempts.spare, attempt);
        worker->attempts.n_spare++;
    }
    return least(n, worker->attempts.n_spare);
}

static void claim_later(ew__worker *worker, uint64_t ms) {
    ew__worker_alarm_in(worker, &worker->claims.timer, ms, on_timer);
}

static void on_timer(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__worker_claim(ew__container_of(timer, ew__worker, claims.timer));
}

void ew__worker_claim(ew__worker *worker) {
    uint64_t at = EW__NEVER;
    ew__op_claim claim = {.worker = worker->id};
    if (worker->phase != EW__WORKER_RUNNING)
        return;
    worker->claims.again = true;
    if (worker->claims.batch || (worker->claims.tries > 0 && ew__timer_active(&worker->claims.timer)))
        return; /* under way, or the store could not be reached and is left alone for a while */
    worker->claims.again = false;
    uint32_t max = plan(worker, &claim, &at);
    if (max == 0 && worker->claims.skip_narrow) {
        worker->claims.skip_narrow = false;
        max = plan(worker, &claim, &at);
    }
    if (max == 0) { /* an end, or room, or time will bring us here again */
        if (at != EW__NEVER)
            ew__worker_alarm(worker, &worker->claims.timer, at, on_timer);
        else
            claim_later(worker, worker->options.poll_ms);
        return;
    }
    ew__batch *batch = ew__zalloc(worker->env, sizeof *batch);
    max = batch ? have_spares(worker, max) : 0;
    if (max == 0) {
        ew__free(worker->env, batch, sizeof *batch);
        claim_later(worker, EW__WORKER_BACKOFF_MS);
        return;
    }
    ew__timer_stop(&worker->timers, &worker->claims.timer);
    ew__store_request_begin(&batch->op, &worker->requests, EW__OP_CLAIM);
    claim.max = max;
    claim.now = ew__worker_wall(worker);
    claim.lease_ms = worker->options.lease_ms;
    batch->op.u.claim = claim;
    batch->users = 1;
    worker->claims.batch = batch;
    ew__store_request_submit(&batch->op, on_claimed);
}

void ew__worker_claim_stop(ew__worker *worker) { ew__timer_stop(&worker->timers, &worker->claims.timer); }

/* ---- what came ---- */

static ew__queue_state *queue_of(ew__worker *worker, ew_str name) {
    for (size_t i = 0; i < worker->claims.n_queues; i++) {
        if (ew__str_is(worker->claims.queues[i].name, name))
            return &worker->claims.queues[i];
    }
    return &worker->claims.queues[0];
}

/* Equal ones take turns: in each group of one priority the first becomes the last. */
static void rotate(ew__worker *worker) {
    for (size_t i = 0; i < worker->claims.n_queues;) {
        ew__queue_state *first = worker->claims.order[i];
        for (i++; i < worker->claims.n_queues && worker->claims.order[i]->priority == first->priority; i++)
            worker->claims.order[i - 1] = worker->claims.order[i];
        worker->claims.order[i - 1] = first;
    }
}

static void begin_jobs(ew__worker *worker, ew__batch *batch) {
    const ew__op_claim *claim = &batch->op.u.claim;
    bool from_narrow = false;
    for (size_t i = 0;
         i < claim->ret_n && worker->attempts.spare && worker->attempts.n_used < worker->options.concurrency; i++) {
        ew__attempt *attempt = worker->attempts.spare;
        EW__LIST_REMOVE(worker->attempts.spare, attempt);
        worker->attempts.n_spare--;
        attempt->run.worker = worker;
        attempt->queue = queue_of(worker, claim->ret[i].queue);
        from_narrow = from_narrow || attempt->queue == worker->claims.narrow;
        note_begun(attempt->queue, worker->executor->now);
        ew__attempt_begin(attempt, batch, &claim->ret[i]);
    }
    worker->claims.skip_narrow =
        worker->claims.narrow && !worker->claims.skip_narrow && !from_narrow && claim->ret_n >= claim->max;
    if (claim->ret_n > 0)
        rotate(worker);
}

/* When to look again after a claim that brought all that was due. */
static uint64_t next_claim(ew__worker *worker, int64_t due) {
    int64_t now = ew__worker_wall(worker);
    uint64_t ms = worker->options.poll_ms;
    if (due > 0 && due - now < (int64_t)ms)
        ms = due > now ? (uint64_t)(due - now) : 1;
    return ms;
}

static void claim_failed(ew__worker *worker, const ew__store_request *op) {
    if (worker->claims.tries == 0)
        ew__log(worker->env, EW_LOG_WARN, "worker", "no jobs can be taken: %s; trying again",
                op->problem[0] ? op->problem : ew_err_text(op->err));
    if (ew__store_is_unknown(op->err))
        worker->claims.doubt_until =
            worker->executor->now + EW__MS(worker->options.lease_ms) + 4 * EW__MS(worker->options.scan_ms);
    claim_later(worker, ew__worker_backoff(worker, &worker->claims.tries));
}

static void on_claimed(ew__store_request *op) {
    ew__worker *worker = ew__worker_of(op);
    ew__store_request_returned(op);
    ew__batch *batch = ew__container_of(op, ew__batch, op);
    size_t n = op->err == EW_OK ? op->u.claim.ret_n : 0;
    bool more = (n > 0 && n >= op->u.claim.max) || worker->claims.skip_narrow;
    int64_t due = op->err == EW_OK ? op->u.claim.ret_next : 0;
    if (op->err != EW_OK) {
        worker->claims.batch = NULL;
        claim_failed(worker, op);
    } else {
        if (worker->claims.tries > 0)
            ew__log(worker->env, EW_LOG_INFO, "worker", "jobs can be taken again");
        worker->claims.tries = 0;
        begin_jobs(worker, batch);
        worker->claims.batch = NULL;
    }
    bool again = worker->claims.again || more, failed = op->err != EW_OK;
    bool idle = !failed && n == 0 && worker->claims.all_queues && worker->attempts.n_used == 0;
    ew__batch_leave(batch);
    if (idle && worker->options.burst && worker->phase == EW__WORKER_RUNNING) {
        ew__worker_stop(worker, 0);
        return;
    }
    if (!failed && worker->phase == EW__WORKER_RUNNING) {
        if (again)
            ew__worker_claim(worker);
        else
            claim_later(worker, next_claim(worker, due));
    }
    ew__worker_check(worker);
}
