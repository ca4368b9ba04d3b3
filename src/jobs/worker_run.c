/*
 * jobs/worker_run.c: one attempt, from its start until the store has taken its end. An attempt keeps its place until
 * then: what a store that cannot be reached owes us is bounded by the number of places.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"
#include "base/list.h"

/* ---- memory ---- */

ew__attempt *ew__attempt_new(ew__worker *worker) {
    ew__attempt *attempt = ew__zalloc(worker->env, sizeof *attempt);
    if (attempt) {
        attempt->env = worker->env;
        ew__arena_init(&attempt->arena, worker->env, NULL, 0);
    }
    return attempt;
}

static void clear(ew__attempt *attempt) {
    ew__chunk_buffer_free(attempt);
    if (attempt->batch)
        ew__batch_leave(attempt->batch);
    attempt->batch = NULL;
    ew__arena_done(&attempt->arena);
}

void ew__attempt_free(ew__attempt *attempt) {
    clear(attempt);
    ew__free(attempt->env, attempt, sizeof *attempt);
}

/* It waits for the next job. */
static void keep(ew__worker *worker, ew__attempt *attempt) {
    const ew_env *env = attempt->env;
    uint32_t most = EW__POOL_KEEP(worker->options.concurrency);
    if (worker->attempts.n_spare >= most) {
        ew__attempt_free(attempt);
        return;
    }
    clear(attempt);
    memset(attempt, 0, sizeof *attempt);
    attempt->env = env;
    ew__arena_init(&attempt->arena, env, NULL, 0);
    EW__LIST_ADD(worker->attempts.spare, attempt);
    worker->attempts.n_spare++;
}

/* The job's texts: one that came alone lies well where it is. Without memory for a copy the whole batch stays. */
static void take_job(ew__attempt *attempt, ew__batch *batch, const ew__job *job) {
    bool alone = batch->op.u.claim.ret_n == 1;
    if (alone || ew__job_copy(job, &attempt->arena, &attempt->run.job) != EW_OK) {
        attempt->run.job = *job;
        attempt->batch = batch;
        batch->users++;
    }
}

/* ---- places ---- */

static void take_slot(ew__attempt *attempt) {
    ew__worker *worker = attempt->run.worker;
    while (worker->attempts.slots[worker->attempts.first_free])
        worker->attempts.first_free++;
    attempt->slot = worker->attempts.first_free++;
    worker->attempts.slots[attempt->slot] = attempt;
    worker->stats.running = ++worker->attempts.n_used;
    attempt->queue->running++;
}

static bool is_busy(const ew__attempt *attempt) { return attempt->end.busy || ew__chunk_buffer_is_busy(attempt); }

void ew__attempt_leave(ew__attempt *attempt) {
    ew__worker *worker = attempt->run.worker;
    attempt->dropped = true;
    if (is_busy(attempt))
        return;
    ew__timer_stop(&worker->timers, &attempt->timer);
    ew__chunk_buffer_drop(attempt);
    if (attempt->state == EW__RUN_ENDING)
        worker->stats.waiting_ends--;
    worker->attempts.slots[attempt->slot] = NULL;
    if (attempt->slot < worker->attempts.first_free)
        worker->attempts.first_free = attempt->slot;
    worker->stats.running = --worker->attempts.n_used;
    attempt->queue->running--;
    attempt->state = EW__RUN_LEFT;
    if (attempt->owed) {
        EW__LIST_ADD(worker->attempts.left, attempt);
        worker->attempts.n_left++;
    } else {
        keep(worker, attempt);
    }
    ew__worker_claim(worker);
    ew__worker_check(worker);
}

/* ---- the end ---- */

static void on_time(ew__timer *timer, uint64_t now);

static void count(ew__worker *worker, ew__job_status status) {
    switch (status) {
    case EW__JOB_COMPLETED:
        worker->stats.completed++;
        break;
    case EW__JOB_RETRYING:
        worker->stats.retried++;
        break;
    case EW__JOB_FAILED:
        worker->stats.failed++;
        break;
    case EW__JOB_CANCELLED:
        worker->stats.cancelled++;
        break;
    case EW__JOB_PENDING:
        worker->stats.handed_back++;
        break;
    default:
        break;
    }
}

/* The store cannot keep an end like this (a result that it does not take): the job fails with its words. */
static void refuse(ew__attempt *attempt) {
    ew__outcome *outcome = &attempt->outcome;
    attempt->refused = true;
    attempt->decided = false;
    *outcome = (ew__outcome){.kind = EW__OUTCOME_FATAL, .message = EW_STR("The store could not keep the result.")};
    ew_str problem = ew_str_from(attempt->end.problem);
    if (problem.len && ew__arena_str(&attempt->arena, problem, &problem) == EW_OK)
        outcome->message = problem;
}

static void on_end(ew__store_request *op) {
    ew__attempt *attempt = ew__container_of(op, ew__attempt, end);
    ew__worker *worker = attempt->run.worker;
    bool mine = op->err == EW_OK || (op->err == EW_ESTALE && attempt->doubt); /* most likely our own, the try before */
    ew__store_request_returned(op);
    ew__store_request_end(op);
    if (op->err == EW_EINVAL && !attempt->refused && !attempt->dropped) {
        refuse(attempt);
        ew__attempt_send_end(attempt);
        return;
    }
    if (ew__store_is_transient(op->err) && !attempt->dropped && !worker->stop.drop_ends) {
        attempt->doubt = attempt->doubt || ew__store_is_unknown(op->err);
        ew__worker_alarm_in(worker, &attempt->timer, ew__worker_backoff(worker, &attempt->tries), on_time);
        return;
    }
    if (mine)
        count(worker, op->u.change.status);
    else if (op->err == EW_ESTALE || op->err == EW_ENOTFOUND)
        worker->stats.stale++;
    else
        ew__log(worker->env, EW_LOG_ERROR, "worker", "the end of job %.*s was not kept: %s",
                (int)attempt->run.job.id.len, attempt->run.job.id.ptr, ew_err_text(op->err));
    ew__attempt_leave(attempt);
}

void ew__attempt_send_end(ew__attempt *attempt) {
    ew__worker *worker = attempt->run.worker;
    if (is_busy(attempt))
        return;
    if (worker->stop.drop_ends || attempt->dropped) {
        ew__attempt_leave(attempt);
        return;
    }
    if (ew__chunk_buffer_flush(attempt))
        return; /* its chunks come first */
    ew__timer_stop(&worker->timers, &attempt->timer);
    if (!attempt->decided) {
        uint64_t chance = ew__rng_next(&worker->executor->rng);
        ew__store_request_begin(&attempt->end, &worker->requests, EW__OP_CHANGE);
        ew__policy_ended(&worker->options.policy, &attempt->run.job, &attempt->outcome, ew__worker_wall(worker), chance,
                         &attempt->text, &attempt->end.u.change);
        attempt->end.u.change.worker = worker->id;
        attempt->decided = true;
    }
    ew__store_request_submit(&attempt->end, on_end);
}

/* The runner's words live until it returns; ours until the store has taken them. */
static ew_err copy_outcome(ew__attempt *attempt, const ew__outcome *outcome) {
    ew__outcome *own = &attempt->outcome;
    *own = *outcome;
    ew_err err = ew__arena_str(&attempt->arena, outcome->result, &own->result);
    if (err == EW_OK)
        err = ew__arena_str(&attempt->arena, outcome->message, &own->message);
    return err != EW_OK ? err : ew__arena_str(&attempt->arena, outcome->error, &own->error);
}

/* What the end of a run means that we had asked to stop. NULL: it did not even come. */
static void after_stop(ew__attempt *attempt, const ew__outcome *outcome) {
    bool success = outcome && outcome->kind == EW__OUTCOME_SUCCESS;
    ew__outcome_kind kind = attempt->why == EW__STOP_CANCELLED ? EW__OUTCOME_CANCELLED
                            : attempt->why == EW__STOP_TIMEOUT ? EW__OUTCOME_TIMEOUT
                                                               : EW__OUTCOME_BACK;
    if (success && kind != EW__OUTCOME_TIMEOUT && copy_outcome(attempt, outcome) == EW_OK)
        return; /* it was done before it saw that it should stop */
    attempt->outcome = (ew__outcome){.kind = kind};
}

static void decide(ew__attempt *attempt, const ew__outcome *outcome) {
    if (attempt->stopped) {
        after_stop(attempt, outcome);
        return;
    }
    if (!outcome) { /* only those that were asked to stop are given up */
        attempt->outcome = (ew__outcome){.kind = EW__OUTCOME_BACK};
        return;
    }
    if (copy_outcome(attempt, outcome) != EW_OK) { /* what it comes to stays, its words are gone */
        attempt->outcome = (ew__outcome){.kind = outcome->kind, .retry_after_ms = outcome->retry_after_ms};
        if (outcome->kind == EW__OUTCOME_SUCCESS) {
            attempt->outcome.kind = EW__OUTCOME_ERROR;
            attempt->outcome.message = EW_STR("There was no memory to keep the result.");
        }
    }
    if (outcome->kind == EW__OUTCOME_CANCELLED && !attempt->run.job.cancel)
        attempt->outcome.kind = EW__OUTCOME_ERROR; /* nobody had asked for that */
}

/* NULL: the run was given up. */
static void finish(ew__attempt *attempt, const ew__outcome *outcome) {
    ew__worker *worker = attempt->run.worker;
    ew__timer_stop(&worker->timers, &attempt->timer);
    if (attempt->stopped && attempt->why == EW__STOP_LOST) {
        worker->stats.stale++; /* the store has reported it */
        ew__chunk_buffer_drop(attempt);
        ew__attempt_leave(attempt);
        return;
    }
    decide(attempt, outcome);
    attempt->state = EW__RUN_ENDING;
    worker->stats.waiting_ends++;
    ew__attempt_send_end(attempt);
}

void ew__run_end(ew__run *run, const ew__outcome *outcome) {
    ew__attempt *attempt = ew__attempt_of(run);
    ew__worker *worker = run->worker;
    attempt->owed = false;
    if (attempt->state == EW__RUN_GOING || attempt->state == EW__RUN_STOPPING) {
        if (!attempt->dropped)
            finish(attempt, outcome);
    } else if (attempt->state == EW__RUN_LEFT) {
        if (!worker) {
            ew__attempt_free(attempt);
            return;
        }
        EW__LIST_REMOVE(worker->attempts.left, attempt);
        worker->attempts.n_left--;
        keep(worker, attempt);
        ew__worker_claim(worker);
    }
}

void ew__attempt_give_up(ew__attempt *attempt) {
    if (attempt->state == EW__RUN_GOING || attempt->state == EW__RUN_STOPPING)
        finish(attempt, NULL);
    else if (attempt->state == EW__RUN_ENDING)
        ew__attempt_send_end(attempt);
}

/* ---- asking for it ---- */

void ew__attempt_stop(ew__attempt *attempt, ew__stop_why why) {
    ew__worker *worker = attempt->run.worker;
    if (attempt->state == EW__RUN_STOPPING && why == EW__STOP_LOST)
        attempt->why = why;
    if (attempt->state != EW__RUN_GOING)
        return;
    attempt->state = EW__RUN_STOPPING;
    attempt->stopped = true;
    attempt->why = why;
    ew__worker_alarm_in(worker, &attempt->timer, worker->options.grace_ms, on_time);
    worker->runs->ops->stop(worker->runs, &attempt->run, why); /* may end it: it may be gone now */
}

static void on_time(ew__timer *timer, uint64_t now) {
    ew__attempt *attempt = ew__container_of(timer, ew__attempt, timer);
    (void)now;
    if (attempt->state == EW__RUN_GOING)
        ew__attempt_stop(attempt, EW__STOP_TIMEOUT);
    else
        ew__attempt_give_up(attempt);
}

/* ---- the start ---- */

/* An end that was known before the beginning. */
static void end_unbegun(ew__attempt *attempt, ew__outcome_kind kind, const char *message) {
    ew__outcome outcome = {.kind = kind, .message = ew_str_from(message), .retry_after_ms = -1};
    attempt->owed = false;
    finish(attempt, &outcome);
}

void ew__attempt_begin(ew__attempt *attempt, ew__batch *batch, const ew__job *job) {
    ew__worker *worker = attempt->run.worker;
    ew__run *run = &attempt->run;
    take_job(attempt, batch, job);
    take_slot(attempt);
    attempt->owed = true;
    run->attempt = run->job.retries + 1;
    worker->stats.claimed++;
    if (run->job.cancel) {
        end_unbegun(attempt, EW__OUTCOME_CANCELLED, "");
        return;
    }
    if (worker->phase != EW__WORKER_RUNNING) {
        end_unbegun(attempt, EW__OUTCOME_BACK, "");
        return;
    }
    if (run->job.timeout_ms <= 0) {
        end_unbegun(attempt, EW__OUTCOME_FATAL, "Invalid job timeout. Must be positive.");
        return;
    }
    int64_t ms = run->job.timeout_ms < EW__JOB_TIMEOUT_MAX_MS ? run->job.timeout_ms : EW__JOB_TIMEOUT_MAX_MS;
    run->deadline = worker->executor->now + EW__MS(ms);
    ew__worker_alarm(worker, &attempt->timer, run->deadline, on_time);
    worker->runs->ops->start(worker->runs, run); /* may end it */
}
