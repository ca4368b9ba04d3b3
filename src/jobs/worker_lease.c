/*
 * jobs/worker_lease.c: the leases of what runs, and what the worker says of itself, by a timer that knows nothing of
 * the jobs. The answer tells what is to be cancelled and what another worker has taken.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"

#include "base/when.h"
#include "json/json.h"

#define RECORD_MAX ((size_t)4 * 1024 * 1024)

static void on_renewed(ew__store_request *op);

static void on_renew_timer(ew__timer *timer, uint64_t now) {
    ew__worker *worker = ew__container_of(timer, ew__worker, leases.timer);
    (void)now;
    ew__worker_renew(worker);
}

static void renew_later(ew__worker *worker, uint64_t ms) {
    ew__worker_alarm_in(worker, &worker->leases.timer, ms, on_renew_timer);
}

/* ---- the record: RRQ's, which sorts its members ---- */

static const char *status_of(const ew__worker *worker) {
    if (worker->phase != EW__WORKER_RUNNING)
        return "stopping";
    if (worker->attempts.n_used >= worker->options.concurrency)
        return "idle (concurrency limit)";
    return worker->attempts.n_used > 0 ? "running" : "idle (no jobs)";
}

/* The whole key: the name is written as JSON, then its opening quote is taken out. */
static void write_queue(ew_str name, ew__buf *out) {
    (void)ew__buf_cstr(out, "\"rrq:queue:");
    size_t start = out->len;
    if (ew__json_write_str(out, name, false) != EW_OK)
        return;
    memmove(out->ptr + start, out->ptr + start + 1, out->len - start - 1);
    out->len--;
}

static void write_record(const ew__worker *worker, ew__buf *out) {
    char when[EW__WHEN_LEN];
    ew__when_write(worker->env->wall_ms(worker->env->ud), when);
    (void)ew__buf_printf(out, "{\"active_jobs\":%u,\"concurrency_limit\":%u,\"queues\":[",
                         (unsigned)worker->attempts.n_used, (unsigned)worker->options.concurrency);
    for (size_t i = 0; i < worker->claims.n_queues; i++) {
        if (i > 0)
            (void)ew__buf_char(out, ',');
        write_queue(worker->claims.queues[i].name, out);
    }
    (void)ew__buf_printf(out, "],\"status\":\"%s\",\"timestamp\":\"%.*s+00:00\",\"worker_id\":", status_of(worker),
                         EW__WHEN_LEN - 1, when);
    (void)ew__json_write_str(out, worker->id, false);
    (void)ew__buf_char(out, '}');
}

static ew_err make_record(ew__worker *worker, ew_str *ret) {
    ew__buf text;
    ew__buf_init(&text, worker->env, RECORD_MAX);
    write_record(worker, &text);
    ew_err err = text.err != EW_OK ? text.err : ew__arena_str(&worker->leases.op.memory, ew__buf_view(&text), ret);
    ew__buf_done(&text);
    return err;
}

/* ---- asking ---- */

static bool holds(const ew__attempt *attempt) {
    return attempt && !attempt->dropped && !(attempt->stopped && attempt->why == EW__STOP_LOST);
}

/* Copies of the ids: an attempt may leave before the answer is there. */
static ew_err list_leases(ew__worker *worker, ew__op_renew *renew) {
    renew->leases = ew__arena_alloc(&worker->leases.op.memory, (worker->attempts.n_used + 1) * sizeof *renew->leases);
    if (!renew->leases)
        return EW_ENOMEM;
    for (uint32_t i = 0; i < worker->options.concurrency; i++) {
        const ew__attempt *attempt = worker->attempts.slots[i];
        if (!holds(attempt))
            continue;
        ew__lease *lease = &renew->leases[renew->n_leases];
        *lease = (ew__lease){.epoch = attempt->run.job.epoch};
        ew_err err = ew__arena_str(&worker->leases.op.memory, attempt->run.job.id, &lease->id);
        if (err != EW_OK)
            return err;
        worker->leases.slots[renew->n_leases++] = i;
    }
    return EW_OK;
}

void ew__worker_renew(ew__worker *worker) {
    ew__store_request *op = &worker->leases.op;
    if (worker->phase == EW__WORKER_NEW || worker->phase >= EW__WORKER_LEAVING)
        return;
    worker->leases.again = op->busy;
    if (op->busy)
        return;
    ew__store_request_begin(op, &worker->requests, EW__OP_RENEW);
    ew__op_renew *renew = &op->u.renew;
    *renew =
        (ew__op_renew){.worker = worker->id, .ttl_ms = worker->options.record_ms, .lease_ms = worker->options.lease_ms};
    ew_err err = make_record(worker, &renew->record);
    if (err == EW_OK)
        err = list_leases(worker, renew);
    if (err != EW_OK) {
        ew__store_request_end(op);
        renew_later(worker, ew__worker_backoff(worker, &worker->leases.tries));
        return;
    }
    renew_later(worker, worker->options.renew_ms);
    ew__store_request_submit(op, on_renewed);
}

/* ---- the answer ---- */

static void apply(ew__worker *worker, const ew__lease *lease, uint32_t slot) {
    ew__attempt *attempt = worker->attempts.slots[slot];
    if (lease->ret == EW__LEASE_HELD || !attempt || attempt->run.job.epoch != lease->epoch ||
        !ew__str_is(attempt->run.job.id, lease->id))
        return;
    if (lease->ret == EW__LEASE_GONE) {
        ew__attempt_stop(attempt, EW__STOP_LOST); /* one that is ending hears it from the store */
    } else {
        attempt->run.job.cancel = true;
        ew__attempt_stop(attempt, EW__STOP_CANCELLED);
    }
}

static void on_renewed(ew__store_request *op) {
    /* Stays busy to the end of this function: a run that ends in it may be the last, and lead to the goodbye. */
    ew__worker *worker = ew__worker_of(op);
    ew_err err = op->err;
    if (err == EW_OK) {
        worker->leases.tries = 0;
        for (size_t i = 0; i < op->u.renew.n_leases; i++)
            apply(worker, &op->u.renew.leases[i], worker->leases.slots[i]);
    } else if (worker->phase < EW__WORKER_LEAVING) {
        /* What runs goes on: perhaps nobody has taken it, and if so, the fence refuses its end. */
        uint64_t ms = ew__worker_backoff(worker, &worker->leases.tries);
        renew_later(worker, ms < worker->options.renew_ms ? ms : worker->options.renew_ms);
    }
    ew__store_request_end(op);
    ew__store_request_returned(op);
    if (worker->leases.again && err == EW_OK)
        ew__worker_renew(worker);
    ew__worker_check(worker);
}

/* ---- the last word ---- */

static void on_goodbye(ew__store_request *op) {
    ew__store_request_returned(op);
    ew__store_request_end(op); /* a store that was not reached forgets the worker after record_ms */
    ew__worker_check(ew__worker_of(op));
}

void ew__worker_goodbye(ew__worker *worker) {
    ew__store_request *op = &worker->leases.op;
    worker->leases.goodbye_sent = true;
    ew__store_request_begin(op, &worker->requests, EW__OP_RENEW);
    op->u.renew = (ew__op_renew){.worker = worker->id, .lease_ms = worker->options.lease_ms};
    ew__store_request_submit(op, on_goodbye);
}
