/*
 * jobs/worker.c: the life of a worker: options, timers, start, stop. See worker.h and worker_state.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"
#include "base/list.h"

#include <stdio.h>

#define MAX_CONCURRENCY 100000u
#define MAX_QUEUES 4096u
#define MAX_RATE 1000000u
#define MAX_MS (UINT64_C(366) * 86400 * 1000) /* longer times mean nothing, and adding them must not overflow */

/* ---- timers ---- */

static void on_alarm(ew__timer *timer, uint64_t now);

/* The executor's timer is always set, if only for never: moving it cannot fail. */
static void set_alarm(ew__worker *worker) {
    uint64_t at = ew__timers_next(&worker->timers);
    if (worker->alarm.at != at || !ew__timer_active(&worker->alarm))
        (void)ew__timer_set(&worker->executor->timers, &worker->alarm, at, on_alarm);
}

static void on_alarm(ew__timer *timer, uint64_t now) {
    ew__worker *worker = ew__container_of(timer, ew__worker, alarm);
    (void)ew__timer_set(&worker->executor->timers, timer, EW__NEVER, on_alarm); /* takes the place that it had */
    ew__timers_run(&worker->timers, now);
    set_alarm(worker);
}

void ew__worker_alarm(ew__worker *worker, ew__timer *timer, uint64_t at, ew__timer_fn fn) {
    (void)ew__timer_set(&worker->timers, timer, at, fn); /* there is room for all of them */
    if (!worker->timers.running)
        set_alarm(worker);
}

void ew__worker_alarm_in(ew__worker *worker, ew__timer *timer, uint64_t ms, ew__timer_fn fn) {
    ew__worker_alarm(worker, timer, worker->executor->now + EW__MS(ms < MAX_MS ? ms : MAX_MS), fn);
}

/* A fifth more or less, so that many workers do not all come back in the same moment. */
uint64_t ew__worker_backoff(ew__worker *worker, uint32_t *tries) {
    uint64_t ms = EW__WORKER_BACKOFF_MS;
    for (uint32_t i = 0; i < *tries && ms < EW__WORKER_BACKOFF_MAX_MS; i++)
        ms *= 2;
    ++*tries;
    ms = ms < EW__WORKER_BACKOFF_MAX_MS ? ms : EW__WORKER_BACKOFF_MAX_MS;
    return ms * (80 + ew__rng_next(&worker->executor->rng) % 41) / 100;
}

/* ---- the end ---- */

static void on_end(ew__task *task) {
    ew__worker *worker = ew__container_of(task, ew__worker, end_task);
    worker->ended(worker, worker->ud);
}

static void end(ew__worker *worker) {
    worker->phase = EW__WORKER_ENDED;
    if (worker->watching)
        worker->requests.store->ops->watch(worker->requests.store, &worker->watcher, false);
    worker->watching = false;
    worker->end_task.fn = on_end;
    ew__executor_post(worker->executor, &worker->end_task); /* later: the owner may free the worker then */
}

void ew__worker_check(ew__worker *worker) {
    if (worker->phase == EW__WORKER_DRAINING || worker->phase == EW__WORKER_STOPPING) {
        if (worker->attempts.n_used > 0 || worker->claims.batch)
            return;
        worker->phase = EW__WORKER_LEAVING;
        ew__timer_stop(&worker->timers, &worker->stop.timer);
        ew__timer_stop(&worker->timers, &worker->leases.timer);
        ew__timer_stop(&worker->timers, &worker->scans.timer);
    }
    if (worker->phase != EW__WORKER_LEAVING)
        return;
    if (!worker->leases.goodbye_sent && !worker->leases.op.busy)
        ew__worker_goodbye(worker);
    if (worker->leases.goodbye_sent && worker->requests.n_busy == 0)
        end(worker);
}

/* Attempts are only freed later, or their slots emptied: going by slots is safe. */
static void stop_all(ew__worker *worker) {
    worker->phase = EW__WORKER_STOPPING;
    for (uint32_t i = 0; i < worker->options.concurrency; i++) {
        if (worker->attempts.slots[i])
            ew__attempt_stop(worker->attempts.slots[i], EW__STOP_SHUTDOWN);
        if (worker->stop.now && worker->attempts.slots[i] && worker->attempts.slots[i]->state == EW__RUN_STOPPING)
            ew__attempt_give_up(worker->attempts.slots[i]);
    }
}

static void on_stop_timer(ew__timer *timer, uint64_t now) {
    ew__worker *worker = ew__container_of(timer, ew__worker, stop.timer);
    (void)now;
    if (worker->phase == EW__WORKER_DRAINING) {
        ew__worker_alarm_in(worker, timer, worker->options.grace_ms + EW__WORKER_ENDS_MS, on_stop_timer);
        stop_all(worker);
    } else {
        worker->stop.drop_ends = true;
        for (uint32_t i = 0; i < worker->options.concurrency; i++) {
            if (worker->attempts.slots[i])
                ew__attempt_give_up(worker->attempts.slots[i]);
        }
    }
    ew__worker_check(worker);
}

void ew__worker_stop(ew__worker *worker, uint64_t grace_ms) {
    switch (worker->phase) {
    case EW__WORKER_NEW:
        end(worker);
        return;
    case EW__WORKER_RUNNING:
        worker->phase = EW__WORKER_DRAINING;
        ew__worker_claim_stop(worker);
        ew__worker_crons_stop(worker);
        ew__timer_stop(&worker->timers, &worker->scans.timer);
        if (grace_ms > 0) {
            ew__worker_alarm_in(worker, &worker->stop.timer, grace_ms, on_stop_timer);
        } else {
            ew__worker_alarm_in(worker, &worker->stop.timer, worker->options.grace_ms + EW__WORKER_ENDS_MS,
                                on_stop_timer);
            stop_all(worker);
        }
        break;
    case EW__WORKER_DRAINING:
    case EW__WORKER_STOPPING:
        worker->stop.now = true;
        ew__worker_alarm_in(worker, &worker->stop.timer, EW__WORKER_ENDS_MS, on_stop_timer);
        stop_all(worker);
        break;
    case EW__WORKER_LEAVING:
    case EW__WORKER_ENDED:
        return;
    }
    ew__worker_check(worker);
}

/* ---- the beginning ---- */

static void on_changed(ew__watcher *watcher, unsigned what) {
    ew__worker *worker = watcher->ud;
    if (worker->phase >= EW__WORKER_LEAVING)
        return;
    if (what & (EW__CHANGED_CANCELS | EW__CHANGED_BACK))
        ew__worker_renew(worker);
    if (what & EW__CHANGED_BACK) {
        worker->claims.tries = 0;
        for (uint32_t i = 0; i < worker->options.concurrency; i++) {
            ew__attempt *attempt = worker->attempts.slots[i];
            if (attempt && attempt->state == EW__RUN_ENDING)
                ew__attempt_send_end(attempt);
        }
    }
    if (what & (EW__CHANGED_QUEUES | EW__CHANGED_BACK))
        ew__worker_claim(worker);
}

void ew__worker_start(ew__worker *worker) {
    if (worker->phase != EW__WORKER_NEW)
        return;
    worker->phase = EW__WORKER_RUNNING;
    worker->watcher.executor = worker->executor;
    worker->watcher.want = EW__CHANGED_QUEUES | EW__CHANGED_CANCELS | EW__CHANGED_BACK;
    worker->watcher.changed = on_changed;
    worker->watcher.ud = worker;
    worker->watching = true;
    worker->requests.store->ops->watch(worker->requests.store, &worker->watcher, true);
    ew__worker_renew(worker);
    ew__worker_scan_start(worker);
    ew__worker_crons_start(worker);
    ew__worker_claim(worker);
}

void ew__worker_room(ew__worker *worker) { ew__worker_claim(worker); }
const ew__worker_stats *ew__worker_stats_of(const ew__worker *worker) { return &worker->stats; }
ew_str ew__worker_id(const ew__worker *worker) { return worker->id; }

/* ---- options ---- */

static ew_err refuse(char *problem, size_t size, const char *why) {
    if (problem && size)
        (void)snprintf(problem, size, "%s", why);
    return EW_EINVAL;
}

static uint64_t ms_or(uint64_t ms, uint64_t usual) { return ms == 0 ? usual : ms < MAX_MS ? ms : MAX_MS; }

static void complete(ew__worker_options *o) {
    o->concurrency = o->concurrency == 0 ? 10 : o->concurrency < MAX_CONCURRENCY ? o->concurrency : MAX_CONCURRENCY;
    o->lease_ms = ms_or(o->lease_ms, 15000);
    o->renew_ms = ms_or(o->renew_ms, o->lease_ms >= 3 ? o->lease_ms / 3 : 1);
    o->scan_ms = ms_or(o->scan_ms, 5000);
    o->poll_ms = ms_or(o->poll_ms, 1000);
    o->record_ms = ms_or(o->record_ms, 60000);
    if (o->record_ms < 2 * o->renew_ms)
        o->record_ms = 2 * o->renew_ms;
    o->grace_ms = ms_or(o->grace_ms, 5000);
    ew__policy_complete(&o->policy);
}

static ew_err make_id(ew__worker *worker, const ew__worker_options *options) {
    if (options->id.len)
        return ew__arena_str(&worker->arena, options->id, &worker->id);
    char text[48];
    uint64_t chance = ew__rng_next(&worker->executor->rng);
    uint32_t pid = options->pid ? options->pid : (uint32_t)(chance >> 40);
    int n = snprintf(text, sizeof text, "rrq_worker_%u_%06x", (unsigned)pid, (unsigned)(chance & 0xffffff));
    return ew__arena_str(&worker->arena, ew__str(text, (size_t)n), &worker->id);
}

static ew_err add_queue(ew__worker *worker, const ew__worker_queue *from, char *problem, size_t size) {
    ew__queue_state *queue = &worker->claims.queues[worker->claims.n_queues];
    ew_str name = ew__queue_name(from->name);
    if (ew__str_trim(name).len == 0)
        return refuse(problem, size, "a queue needs a name");
    if (from->rate > MAX_RATE)
        return refuse(problem, size, "the rate of a queue must be 1000000 at most");
    queue->priority = from->priority;
    queue->concurrency = from->concurrency;
    queue->rate = from->rate;
    queue->rate_ns = EW__MS(ms_or(from->rate_ms, 1000));
    if (queue->rate) {
        queue->begun = ew__zalloc(worker->env, queue->rate * sizeof *queue->begun);
        if (!queue->begun)
            return EW_ENOMEM;
    }
    worker->claims.n_queues++;
    return ew__arena_str(&worker->arena, name, &queue->name);
}

/* By priority; equal ones as they were given. */
static void sort_queues(ew__worker *worker) {
    for (size_t i = 0; i < worker->claims.n_queues; i++) {
        size_t at = i;
        for (; at > 0 && worker->claims.order[at - 1]->priority < worker->claims.queues[i].priority; at--)
            worker->claims.order[at] = worker->claims.order[at - 1];
        worker->claims.order[at] = &worker->claims.queues[i];
    }
}

static ew_err add_queues(ew__worker *worker, const ew__worker_options *options, char *problem, size_t size) {
    static const ew__worker_queue usual = {.name = {EW__JOB_QUEUE, sizeof EW__JOB_QUEUE - 1}};
    const ew__worker_queue *from = options->n_queues ? options->queues : &usual;
    size_t n = options->n_queues ? options->n_queues : 1;
    if (n > MAX_QUEUES)
        return refuse(problem, size, "too many queues");
    worker->claims.queues = ew__arena_alloc(&worker->arena, n * sizeof *worker->claims.queues);
    worker->claims.order = ew__arena_alloc(&worker->arena, n * sizeof(ew__queue_state *));
    worker->claims.limits = ew__arena_alloc(&worker->arena, n * sizeof *worker->claims.limits);
    if (!worker->claims.queues || !worker->claims.order || !worker->claims.limits)
        return EW_ENOMEM;
    memset(worker->claims.queues, 0, n * sizeof *worker->claims.queues);
    for (size_t i = 0; i < n; i++) {
        ew_err err = add_queue(worker, &from[i], problem, size);
        if (err != EW_OK)
            return err;
    }
    sort_queues(worker);
    return EW_OK;
}

static ew_err make_room(ew__worker *worker) {
    size_t n = worker->options.concurrency;
    worker->attempts.slots = ew__zalloc(worker->env, n * sizeof(ew__attempt *));
    worker->leases.slots = ew__zalloc(worker->env, n * sizeof *worker->leases.slots);
    if (!worker->attempts.slots || !worker->leases.slots)
        return EW_ENOMEM;
    ew_err err =
        ew__timers_reserve(&worker->timers, 2 * worker->options.concurrency + (uint32_t)worker->n_schedules + 8);
    return err != EW_OK ? err : ew__timer_set(&worker->executor->timers, &worker->alarm, EW__NEVER, on_alarm);
}

static ew_err fill(ew__worker *worker, const ew__worker_options *options, char *problem, size_t size) {
    worker->options = *options;
    complete(&worker->options);
    ew_err err = ew__arena_str(&worker->arena, worker->options.policy.dlq, &worker->options.policy.dlq);
    if (err == EW_OK)
        err = make_id(worker, options);
    if (err == EW_OK)
        err = add_queues(worker, options, problem, size);
    if (err == EW_OK)
        err = ew__worker_crons_new(worker, options, problem, size);
    return err == EW_OK ? make_room(worker) : err;
}

ew_err ew__worker_new(ew__executor *executor, ew__store *store, ew__runs *runs, const ew__worker_options *options,
                      void (*ended)(ew__worker *worker, void *ud), void *ud, ew__worker **ret, char *problem,
                      size_t problem_size) {
    ew__worker *worker = ew__zalloc(executor->env, sizeof *worker);
    *ret = NULL;
    if (problem && problem_size)
        problem[0] = 0;
    if (!worker)
        return EW_ENOMEM;
    worker->executor = executor;
    worker->env = executor->env;
    worker->requests = (ew__store_owner){.store = store, .env = executor->env, .executor = executor};
    worker->runs = runs;
    worker->ended = ended;
    worker->ud = ud;
    ew__arena_init(&worker->arena, executor->env, NULL, 0);
    ew__timers_init(&worker->timers, executor->env);
    ew_err err = fill(worker, options, problem, problem_size);
    if (err != EW_OK) {
        ew__worker_free(worker);
        return err;
    }
    *ret = worker;
    return EW_OK;
}

void ew__worker_free(ew__worker *worker) {
    const ew_env *env;
    if (!worker)
        return;
    env = worker->env;
    ew__timer_stop(&worker->executor->timers, &worker->alarm);
    while (worker->attempts.left) { /* their runners may still come: each then frees its own */
        ew__attempt *attempt = worker->attempts.left;
        EW__LIST_REMOVE(worker->attempts.left, attempt);
        attempt->run.worker = NULL;
    }
    while (worker->attempts.spare) {
        ew__attempt *attempt = worker->attempts.spare;
        EW__LIST_REMOVE(worker->attempts.spare, attempt);
        ew__attempt_free(attempt);
    }
    ew__worker_crons_free(worker);
    for (size_t i = 0; i < worker->claims.n_queues; i++)
        ew__free(env, worker->claims.queues[i].begun, worker->claims.queues[i].rate * sizeof(uint64_t));
    ew__free(env, worker->attempts.slots,
             worker->attempts.slots ? worker->options.concurrency * sizeof(ew__attempt *) : 0);
    ew__free(env, worker->leases.slots, worker->leases.slots ? worker->options.concurrency * sizeof(uint32_t) : 0);
    ew__timers_done(&worker->timers);
    ew__arena_done(&worker->arena);
    ew__free(env, worker, sizeof *worker);
}
