/*
 * program/config_jobs.c: what a configuration file says of jobs, as ew_app_jobs and ew_app_worker take it. See default_store.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/target.h"
#include "gateway/zone_files.h"
#include "program/default_store.h"
#include "base/util.h"
#include "jobs/cron.h"
#include "jobs/job.h"
#include <stdio.h>

void ew__jobs_defaults(const ew__config_jobs *jobs, ew_jobs_options *ret) {
    *ret = jobs->defaults.options;
    ret->dlq = jobs->dlq;
    ret->correlation_mappings = jobs->correlation_mappings;
}

/* ---- the worker ---- */

/* What the file says of a queue; NULL: nothing. */
static const ew__config_queue *find_queue(const ew__config_jobs *jobs, ew_str name) {
    const ew__config_queue *queues = jobs ? jobs->queues.items : NULL;
    for (size_t i = 0; jobs && i < jobs->queues.n; i++) {
        if (ew__str_is(ew_str_from(queues[i].queue.name), name)) {
            return &queues[i];
        }
    }
    return NULL;
}

static void add_queue(ew_worker_queue *queues, size_t *n, const ew_worker_queue *queue) {
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(queues[i].name, queue->name) == 0) {
            return; /* named twice */
        }
    }
    queues[(*n)++] = *queue;
}

static ew_err make_queues(ew__arena *arena, const ew__config_jobs *jobs, const ew__worker_words *words,
                          ew_worker_options *ret) {
    const ew__config_queue *known = jobs ? jobs->queues.items : NULL;
    size_t n_known = jobs ? jobs->queues.n : 0, n = 0;
    ew_worker_queue *queues = ew__arena_alloc(arena, (words->n_queues + n_known + 1) * sizeof *queues);
    if (!queues) {
        return EW_ENOMEM;
    }
    for (size_t i = 0; i < words->n_queues; i++) {
        ew_str name = ew__queue_name(ew_str_from(words->queues[i])); /* the end of a C string */
        const ew__config_queue *found = find_queue(jobs, name);
        add_queue(queues, &n, found ? &found->queue : &(ew_worker_queue){.name = name.ptr});
    }
    for (size_t i = 0; i < n_known && words->n_queues == 0; i++) {
        if (!known[i].by_name) {
            add_queue(queues, &n, &known[i].queue);
        }
    }
    if (n == 0 && jobs && jobs->defaults.options.queue) {
        add_queue(queues, &n, &(ew_worker_queue){.name = jobs->defaults.options.queue});
    }
    ret->queues = queues;
    ret->n_queues = n;
    return EW_OK;
}

/* RRQ starts only those runners that a queue of the worker needs: another worker may have the ports of the others. */
static bool is_needed(const ew_worker_options *worker, const char *name) {
    bool rest = false; /* a queue without a runner of its own */
    for (size_t i = 0; i < worker->n_queues; i++) {
        const char *runner = worker->queues[i].runner;
        rest = rest || !runner;
        if (runner && strcmp(runner, name) == 0) {
            return true;
        }
    }
    return rest && worker->default_runner && strcmp(worker->default_runner, name) == 0;
}

static ew_err make_lists(ew__arena *arena, const ew__config *config, ew_worker_options *ret) {
    const ew__config_runner *from = config->jobs.runners.items;
    const ew__config_schedule *schedules = config->jobs.schedules.items;
    ew_worker_runner *runners = ew__arena_alloc(arena, (config->jobs.runners.n + 1) * sizeof *runners);
    ew_worker_cron *crons = ew__arena_alloc(arena, (config->jobs.schedules.n + 1) * sizeof *crons);
    if (!runners || !crons) {
        return EW_ENOMEM;
    }
    for (size_t i = 0; i < config->jobs.runners.n; i++) {
        const ew_worker_runner *runner = &from[i].runner;
        if (runner->target && (!config->foreign || !runner->command || is_needed(ret, runner->name))) {
            runners[ret->n_runners++] = *runner;
        }
    }
    for (size_t i = 0; i < config->jobs.schedules.n; i++) {
        crons[ret->n_crons++] = schedules[i].cron;
    }
    ret->runners = runners;
    ret->crons = crons;
    return EW_OK;
}

/* A name that is not among the runners any more would be one of nobody. */
static bool has_runner(const ew_worker_options *worker, const char *name) {
    size_t i = 0;
    while (i < worker->n_runners && strcmp(worker->runners[i].name, name) != 0) {
        i++;
    }
    return i < worker->n_runners;
}

ew_err ew__worker_make(ew__arena *arena, const ew__config *config, const ew__worker_words *words,
                       ew_worker_options *ret) {
    const ew__config_jobs *jobs = config && config->jobs.node ? &config->jobs : NULL;
    *ret = (ew_worker_options){.n_queues = 0};
    if (jobs) {
        *ret = (ew_worker_options){
            .default_runner = jobs->default_runner,
            .concurrency = jobs->worker.concurrency,
            .lease_ms = jobs->worker.lease_ms,
            .base_retry_ms = jobs->retry.base_ms,
            .max_retry_ms = jobs->retry.max_ms,
            .no_jitter = !jobs->retry.jitter,
            .retry_timeouts = jobs->retry.timeouts,
            .poison_after = jobs->poison_after,
            .burst = jobs->worker.burst,
            .id = jobs->worker.id,
        };
    }
    ret->concurrency = words->concurrency ? words->concurrency : ret->concurrency;
    ret->burst = ret->burst || words->burst;
    ret->id = words->id ? words->id : ret->id;
    ew_err err = make_queues(arena, jobs, words, ret);
    if (err == EW_OK && jobs) {
        err = make_lists(arena, config, ret);
    }
    if (ret->default_runner && !has_runner(ret, ret->default_runner)) {
        ret->default_runner = NULL;
    }
    return err;
}

/* ---- the check ---- */

static void problem_at(ew__config *config, const ew__node *map, const char *key, const char *what, const char *why) {
    const ew__node *node = ew__node_get(map, key);
    node = node ? node : map;
    ew__problem_add(&config->problems, node->line, node->column, "%s: %s", what, why);
}

/* Passwords are part of some stores: what is wrong is said without them. */
static void check_store(ew__config *config) {
    static const char *const kinds[] = {"sqlite:", "redis://", "valkey://", "unix:", "redis+unix:", NULL};
    const char *store = config->jobs.store;
    const char *key = config->foreign ? "redis_dsn" : "store";
    if (!store) {
        return;
    }
    if (strncmp(store, "rediss://", 9) == 0 || strncmp(store, "valkeys://", 10) == 0) {
        problem_at(config, config->jobs.node, key, key, "a Redis that needs TLS is not supported");
        return;
    }
    for (size_t i = 0; kinds[i]; i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(store, kinds[i], n) == 0 && store[n]) {
            return;
        }
    }
    problem_at(config, config->jobs.node, key, key, "not a store: sqlite:PATH or redis://HOST:PORT/DB");
}

static void check_schedule(const ew_env *env, ew__config *config, const ew__config_schedule *schedule) {
    char problem[160] = "";
    ew__cron *cron = NULL;
    if (!schedule->cron.schedule || schedule->node->bad) {
        return;
    }
    ew_err err = ew__cron_parse(env, ew_str_from(schedule->cron.schedule), schedule->cron.zone, ew__zone_open, &cron,
                                problem, sizeof problem);
    if (err == EW_ENOTFOUND) {
        problem_at(config, schedule->node, "zone", "zone", *problem ? problem : "there is no such zone");
    } else if (err == EW_ENOMEM) {
        config->problems.no_memory = true;
    } else if (err != EW_OK) {
        problem_at(config, schedule->node, "schedule", "schedule", *problem ? problem : ew_err_text(err));
    }
    ew__cron_free(env, cron);
}

static void check_runner(ew__config *config, const ew__config_runner *runner) {
    ew__target target;
    const char *problem = NULL, *text = runner->runner.target;
    if (text && ew__target_parse(text, &target, &problem) != EW_OK) {
        problem_at(config, runner->node, config->foreign ? "tcp_host" : "target", text, problem);
    }
}

void ew__config_check_jobs(const ew_env *env, ew__config *config) {
    const ew__config_runner *runners = config->jobs.runners.items;
    const ew__config_schedule *schedules = config->jobs.schedules.items;
    if (!config->jobs.node || config->jobs.node->bad) {
        return;
    }
    check_store(config);
    for (size_t i = 0; i < config->jobs.runners.n; i++) {
        check_runner(config, &runners[i]);
    }
    for (size_t i = 0; i < config->jobs.schedules.n; i++) {
        check_schedule(env, config, &schedules[i]);
    }
}
