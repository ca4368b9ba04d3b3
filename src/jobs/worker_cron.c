/*
 * jobs/worker_cron.c: schedules. Every worker makes a job of every tick, and the store takes the first: the tick is
 * part of a key that lives longer than workers' clocks differ.
 *
 * A clock that jumps forward leaves out what is older than a minute; one that jumps back makes no tick again that this
 * worker has made (unless it was more than a day ahead: then it was wrong before).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"

#include <stdio.h>

#include "base/sha256.h"
#include "base/when.h"

#define DAY_MS INT64_C(86400000)
#define LONGEST_MS 30000u /* the clock is looked at so often */
#define TIMEOUT_MS 300000
#define TICK_MS 60000 /* a tick that is older is left out */

typedef struct ew__schedule {
    ew__worker *worker;
    ew_str name, unique;
    int64_t unique_ttl_ms;
    ew__job job;
    ew__cron *cron;
    ew__timer timer;
    int64_t next; /* tick; 0: never */
    int64_t last; /* tick that this worker has made, or left to others */
    bool making;  /* the job of `next` is being made */
    uint32_t tries;
    ew__store_request op;
} ew__schedule;

static void on_tick(ew__timer *timer, uint64_t now);
static void on_made(ew__store_request *op);

/* ---- when ---- */

static void plan(ew__schedule *cron, int64_t now) {
    bool mad = cron->last > now + DAY_MS;
    cron->next = ew__cron_next(cron->cron, !mad && cron->last > now ? cron->last : now);
}

static void wait(ew__worker *worker, ew__schedule *cron) {
    int64_t now = ew__worker_wall(worker);
    uint64_t ms = LONGEST_MS;
    if (cron->next > 0 && cron->next - now < (int64_t)ms)
        ms = cron->next > now ? (uint64_t)(cron->next - now) : 0;
    ew__worker_alarm_in(worker, &cron->timer, ms, on_tick);
}

/* ---- making a job ---- */

#define ID_NAME_MAX 40 /* bytes of the function's name in an id */
#define ID_DIGEST 8    /* bytes of the digest of the schedule's name */
#define ID_SIZE (sizeof "cron---20260301T100000Z" + ID_NAME_MAX + 2 * ID_DIGEST)

/* Replaces characters that a shell or a URL treats specially. Returns the length. */
static size_t put_plain(char *out, ew_str name) {
    size_t n = 0;
    for (size_t i = 0; i < name.len && n < ID_NAME_MAX; i++) {
        char c = name.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (plain)
            out[n++] = c;
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    return n > 0 && out[n - 1] == '-' ? n - 1 : n;
}

/*
 * The id of a tick's job: "cron-FUNCTION-DIGEST-TIME". It is the same in every worker that has the schedule, and consists
 * of letters, digits, '_' and '-'.
 */
static ew_str put_id(const ew__schedule *cron, char out[ID_SIZE]) {
    uint8_t digest[EW__SHA256_SIZE];
    char plain[ID_NAME_MAX + 1], when[EW__WHEN_LEN];
    ew__sha256_of(cron->name.ptr, cron->name.len, digest);
    ew__when_write((uint64_t)cron->next, when);
    int n = snprintf(out, ID_SIZE, "cron-%.*s-", (int)put_plain(plain, cron->job.function), plain);
    for (size_t i = 0; i < ID_DIGEST; i++)
        n += snprintf(out + n, ID_SIZE - (size_t)n, "%02x", digest[i]);
    n += snprintf(out + n, ID_SIZE - (size_t)n, "-%.4s%.2s%.2sT%.2s%.2s%.2sZ", when, when + 5, when + 8, when + 11,
                  when + 14, when + 17);
    return ew__str(out, (size_t)n);
}

/* Fills in the request, with the job's texts in the memory of the request. */
static ew_err fill(ew__worker *worker, ew__schedule *cron) {
    ew__op_enqueue *enqueue = &cron->op.u.enqueue;
    char uuid[EW__UUID_LEN], id[ID_SIZE], tick[24];
    enqueue->job = cron->job;
    enqueue->job.status = EW__JOB_PENDING;
    enqueue->job.enqueued_at = ew__worker_wall(worker);
    enqueue->job.run_at = cron->next;
    if (cron->unique.len) { /* the id tells ticks apart, so that the key can tell jobs apart */
        enqueue->job.unique_key = cron->unique;
        enqueue->dedup = EW__DEDUP_UNIQUE;
        enqueue->key = cron->unique;
        enqueue->key_ttl_ms = cron->unique_ttl_ms;
        return ew__arena_str(&cron->op.memory, put_id(cron, id), &enqueue->job.id);
    }
    int n = snprintf(tick, sizeof tick, ":%lld", (long long)cron->next);
    size_t len = sizeof "cron:" - 1 + cron->name.len + (size_t)n;
    char *key = ew__arena_alloc(&cron->op.memory, len);
    if (!key)
        return EW_ENOMEM;
    memcpy(key, "cron:", 5);
    memcpy(key + 5, cron->name.ptr, cron->name.len);
    memcpy(key + 5 + cron->name.len, tick, (size_t)n);
    enqueue->dedup = EW__DEDUP_RATE;
    enqueue->key = ew__str(key, len);
    enqueue->key_ttl_ms = DAY_MS;
    ew__uuid_write(&worker->executor->rng, uuid);
    return ew__arena_str(&cron->op.memory, ew__str(uuid, sizeof uuid), &enqueue->job.id);
}

static void make(ew__worker *worker, ew__schedule *cron) {
    ew__store_request_begin(&cron->op, &worker->requests, EW__OP_ENQUEUE);
    cron->making = true;
    if (fill(worker, cron) != EW_OK) {
        ew__store_request_end(&cron->op);
        ew__worker_alarm_in(worker, &cron->timer, ew__worker_backoff(worker, &cron->tries), on_tick);
        return;
    }
    ew__store_request_submit(&cron->op, on_made);
}

/* The tick is made, by us or by another worker; or the store will never take it. */
static void on_made(ew__store_request *op) {
    ew__worker *worker = ew__worker_of(op);
    ew__store_request_returned(op);
    ew__schedule *cron = ew__container_of(op, ew__schedule, op);
    bool again = ew__store_is_transient(op->err);
    if (op->err == EW_OK && op->u.enqueue.ret == EW__ENQUEUED_NEW)
        worker->stats.ticks++;
    else if (op->err != EW_OK && !again)
        ew__log(worker->env, EW_LOG_ERROR, "worker", "schedule %.*s: no job could be made: %s", (int)cron->name.len,
                cron->name.ptr, op->problem[0] ? op->problem : ew_err_text(op->err));
    ew__store_request_end(op);
    if (worker->phase == EW__WORKER_RUNNING && again) {
        ew__worker_alarm_in(worker, &cron->timer, ew__worker_backoff(worker, &cron->tries), on_tick);
    } else if (worker->phase == EW__WORKER_RUNNING) {
        cron->making = false;
        cron->tries = 0;
        cron->last = cron->next;
        cron->next = ew__cron_next(cron->cron, cron->last);
        ew__worker_alarm_in(worker, &cron->timer, 0, on_tick);
    }
    ew__worker_check(worker);
}

static void on_tick(ew__timer *timer, uint64_t now_ns) {
    ew__schedule *cron = ew__container_of(timer, ew__schedule, timer);
    ew__worker *worker = cron->worker;
    int64_t now = ew__worker_wall(worker);
    (void)now_ns;
    if (worker->phase != EW__WORKER_RUNNING)
        return;
    if (cron->making) { /* the store could not be reached: the same tick again */
        make(worker, cron);
        return;
    }
    if (cron->next > 0 && cron->next <= now) {
        if (now - cron->next > TICK_MS)
            cron->next = ew__cron_next(cron->cron, now - TICK_MS - 1);
        if (cron->next > 0 && cron->next <= now) {
            make(worker, cron);
            return;
        }
    } else {
        plan(cron, now); /* the clock may have jumped back */
    }
    wait(worker, cron);
}

/* ---- beginning and end ---- */

static ew_err add(ew__worker *worker, const ew__worker_cron *from, char *problem, size_t size) {
    ew__schedule *cron = &worker->schedules[worker->n_schedules];
    char zone[128] = "", why[160] = "";
    if (from->name.len == 0 || from->name.len > EW__JOB_NAME_MAX - 64) {
        (void)snprintf(problem, size, "a schedule needs a name of 1 to %d bytes", EW__JOB_NAME_MAX - 64);
        return EW_EINVAL;
    }
    if (from->zone.len >= sizeof zone) {
        (void)snprintf(problem, size, "schedule %.*s: no such zone", (int)from->name.len, from->name.ptr);
        return EW_EINVAL;
    }
    memcpy(zone, from->zone.len ? from->zone.ptr : "", from->zone.len);
    ew_err err =
        ew__cron_parse(worker->env, from->schedule, zone, worker->options.open_zone, &cron->cron, why, sizeof why);
    if (err == EW_ENOMEM)
        return err;
    if (err != EW_OK) {
        (void)snprintf(problem, size, "schedule %.*s: %s", (int)from->name.len, from->name.ptr, why);
        return EW_EINVAL;
    }
    worker->n_schedules++;
    cron->worker = worker;
    cron->unique_ttl_ms = from->unique_ttl_ms > 0 ? from->unique_ttl_ms : 6 * 3600000;
    err = ew__job_copy(&from->job, &worker->arena, &cron->job);
    if (err == EW_OK)
        err = ew__arena_str(&worker->arena, from->name, &cron->name);
    if (err == EW_OK)
        err = ew__arena_str(&worker->arena, from->unique, &cron->unique);
    ew__job *job = &cron->job;
    job->queue = job->queue.len ? ew__queue_name(job->queue) : EW_STR(EW__JOB_QUEUE);
    job->params = job->params.len ? job->params : EW_STR("{}");
    job->timeout_ms = job->timeout_ms ? job->timeout_ms : TIMEOUT_MS;
    job->id = cron->name;
    const char *bad = err == EW_OK ? ew__job_problem(job) : NULL;
    if (bad) {
        (void)snprintf(problem, size, "schedule %.*s: %s", (int)from->name.len, from->name.ptr, bad);
        return EW_EINVAL;
    }
    return err;
}

ew_err ew__worker_crons_new(ew__worker *worker, const ew__worker_options *options, char *problem, size_t size) {
    char none[1];
    if (options->n_crons == 0)
        return EW_OK;
    size_t bytes = options->n_crons * sizeof *worker->schedules;
    worker->schedules = options->n_crons < 100000 ? ew__arena_alloc(&worker->arena, bytes) : NULL;
    if (!worker->schedules)
        return EW_ENOMEM;
    memset(worker->schedules, 0, bytes);
    for (size_t i = 0; i < options->n_crons; i++) {
        ew_err err = add(worker, &options->crons[i], problem ? problem : none, problem ? size : sizeof none);
        if (err != EW_OK)
            return err;
    }
    return EW_OK;
}

void ew__worker_crons_start(ew__worker *worker) {
    int64_t now = ew__worker_wall(worker);
    for (size_t i = 0; i < worker->n_schedules; i++) {
        plan(&worker->schedules[i], now);
        wait(worker, &worker->schedules[i]);
    }
}

void ew__worker_crons_stop(ew__worker *worker) {
    for (size_t i = 0; i < worker->n_schedules; i++)
        ew__timer_stop(&worker->timers, &worker->schedules[i].timer);
}

void ew__worker_crons_free(ew__worker *worker) {
    for (size_t i = 0; i < worker->n_schedules; i++)
        ew__cron_free(worker->env, worker->schedules[i].cron);
}
