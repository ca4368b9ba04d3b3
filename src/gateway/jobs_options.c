/*
 * gateway/jobs_options.c: checks, completes and copies the options of a worker.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "gateway/zone_files.h"
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define QUEUES_MAX 256
#define RUNNERS_MAX 64
#define CRONS_MAX 4096
#define PLACES_MAX 100000

/* Where problems go. */
typedef struct reading {
    ew__app_jobs *self;
    const ew_worker_options *from;
    char *problem;
    size_t size;
} reading;

static ew_err bad(reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ew_err bad(reading *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->problem, r->size, format, args);
    va_end(args);
    return EW_EINVAL;
}

static ew_err copy(reading *r, const char *text, ew_str *ret) {
    return ew__arena_str(&r->self->arena, ew_str_from(text ? text : ""), ret);
}

static ew__app_runner *find_runner(const ew__app_jobs *self, const char *name) {
    for (size_t i = 0; i < self->n_runners; i++)
        if (ew__str_is(self->runners[i].name, ew_str_from(name)))
            return &self->runners[i];
    return NULL;
}

/* ---- runners ---- */

static ew_err read_runner(reading *r, const ew_worker_runner *from) {
    ew__app_jobs *self = r->self;
    if (!from->name || !*from->name || strchr(from->name, '#') || !from->target)
        return bad(r, "a runner needs a target and a name without '#'");
    if (find_runner(self, from->name))
        return bad(r, "there are two runners %.60s", from->name);
    uint64_t places =
        (uint64_t)(from->processes ? from->processes : 1) * (from->max_in_flight ? from->max_in_flight : 1);
    if (places > PLACES_MAX)
        return bad(r, "runner %.60s: at most %d jobs at a time", from->name, PLACES_MAX);
    ew__app_runner *runner = &self->runners[self->n_runners];
    *runner = (ew__app_runner){.places = (uint32_t)places, .response_timeout_ms = from->response_timeout_ms};
    ew_err err = ew__source_new_runner(self->app, from, &runner->source);
    if (err == EW_OK) {
        self->n_runners++;
        err = copy(r, from->name, &runner->name);
    } else if (err != EW_ENOMEM) {
        (void)bad(r, "runner %.60s: %.180s", from->name, *self->app->error ? self->app->error : ew_err_text(err));
    }
    return err;
}

static ew_err read_runners(reading *r) {
    ew__app_jobs *self = r->self;
    size_t n = r->from->n_runners;
    if (n > RUNNERS_MAX)
        return bad(r, "more than %d runners", RUNNERS_MAX);
    self->runners = ew__arena_alloc(&self->arena, (n ? n : 1) * sizeof *self->runners);
    ew_err err = self->runners ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; i < n && err == EW_OK; i++)
        err = read_runner(r, &r->from->runners[i]);
    const char *usual = r->from->default_runner;
    if (err != EW_OK || !usual || !*usual)
        return err;
    self->default_runner = find_runner(self, usual);
    return self->default_runner ? EW_OK : bad(r, "there is no runner %.60s", usual);
}

/* ---- queues ---- */

static ew_err read_queue(reading *r, const ew_worker_queue *from, size_t at, ew__worker_queue *ret) {
    ew__app_jobs *self = r->self;
    if (!from->name || !*from->name)
        return bad(r, "a queue needs a name");
    if (from->runner && *from->runner && !(self->queue_runners[at] = find_runner(self, from->runner)))
        return bad(r, "queue %.60s: there is no runner %.60s", from->name, from->runner);
    ret->priority = from->priority;
    ret->concurrency = from->concurrency;
    ret->rate = from->rate;
    ret->rate_ms = from->rate_ms ? from->rate_ms : 1000;
    ew_err err = copy(r, from->name, &ret->name);
    ret->name = ew__queue_name(ret->name);
    for (size_t i = 0; i < at && err == EW_OK; i++)
        if (ew__str_is(self->options.queues[i].name, ret->name))
            err = bad(r, "queue %.60s is there twice", from->name);
    return err;
}

static ew_err read_queues(reading *r) {
    ew__app_jobs *self = r->self;
    size_t n = r->from->n_queues ? r->from->n_queues : 1;
    if (n > QUEUES_MAX)
        return bad(r, "more than %d queues", QUEUES_MAX);
    ew__worker_queue *queues = ew__arena_alloc(&self->arena, n * sizeof *queues);
    self->queue_runners = ew__arena_alloc(&self->arena, n * sizeof(ew__app_runner *));
    if (!queues || !self->queue_runners)
        return EW_ENOMEM;
    memset(queues, 0, n * sizeof *queues);
    memset((void *)self->queue_runners, 0, n * sizeof(ew__app_runner *));
    self->options.queues = queues;
    self->options.n_queues = n;
    if (r->from->n_queues == 0) {
        queues[0].name = self->jobs->queue;
        return EW_OK;
    }
    ew_err err = EW_OK;
    for (size_t i = 0; i < n && err == EW_OK; i++)
        err = read_queue(r, &r->from->queues[i], i, &queues[i]);
    return err;
}

bool ew__app_jobs_is_own(const ew__app_jobs *self, ew_str queue) {
    for (size_t i = 0; self->works && i < self->options.n_queues; i++)
        if (ew__str_is(self->options.queues[i].name, queue))
            return !self->queue_runners[i] && !self->default_runner;
    return false;
}

/* ---- schedules ---- */

/* What tells the ticks of one schedule from those of others, in all workers. */
static ew_err name_cron(reading *r, const ew_worker_cron *from, ew__worker_cron *ret) {
    ew__buf text;
    ew__buf_init(&text, r->self->env, SIZE_MAX / 2);
    if (from->name && *from->name)
        (void)ew__buf_cstr(&text, from->name);
    else
        (void)ew__buf_printf(&text, "%s %.*s %s %s", from->function, (int)ret->job.queue.len, ret->job.queue.ptr,
                             from->schedule, from->params ? from->params : "{}");
    ew_err err = text.err ? text.err : ew__arena_str(&r->self->arena, ew__buf_view(&text), &ret->name);
    ew__buf_clear(&text);
    if (err == EW_OK && from->unique) { /* as RRQ names it, so that its workers and ours agree */
        (void)ew__buf_printf(&text, "cron:%s", from->name && *from->name ? from->name : from->function);
        err = text.err ? text.err : ew__arena_str(&r->self->arena, ew__buf_view(&text), &ret->unique);
        ret->unique_ttl_ms = r->self->jobs->unique_ttl_ms;
    }
    ew__buf_done(&text);
    return err;
}

static ew_err check_schedule(reading *r, const ew_worker_cron *from) {
    ew__cron *cron = NULL;
    char why[120] = "";
    ew_err err =
        ew__cron_parse(r->self->env, ew_str_from(from->schedule), from->zone, ew__zone_open, &cron, why, sizeof why);
    ew__cron_free(r->self->env, cron);
    if (err == EW_OK || err == EW_ENOMEM)
        return err;
    return bad(r, "schedule '%.60s' of %.60s: %s", from->schedule, from->function,
               err == EW_ENOTFOUND ? "no such time zone" : why);
}

static ew_err read_cron(reading *r, const ew_worker_cron *from, ew__worker_cron *ret) {
    const ew_jobs *jobs = r->self->jobs;
    if (!from->function || !*from->function || !from->schedule)
        return bad(r, "a schedule needs a function");
    ew_err err = check_schedule(r, from);
    if (err == EW_OK)
        err = copy(r, from->schedule, &ret->schedule);
    if (err == EW_OK)
        err = copy(r, from->zone, &ret->zone);
    if (err == EW_OK)
        err = copy(r, from->function, &ret->job.function);
    if (err == EW_OK)
        err = copy(r, from->params && *from->params ? from->params : "{}", &ret->job.params);
    if (err == EW_OK && from->queue && *from->queue)
        err = copy(r, from->queue, &ret->job.queue);
    if (err != EW_OK)
        return err;
    ret->job.queue = ret->job.queue.len ? ew__queue_name(ret->job.queue) : jobs->queue;
    ret->job.timeout_ms = jobs->timeout_ms;
    ret->job.max_retries = jobs->max_retries;
    ret->job.result_ttl_ms = jobs->result_ttl_ms;
    ew__job whole = ret->job;
    whole.id = EW_STR("x"); /* each tick's job gets its own */
    const char *problem = ew__job_problem(&whole);
    if (!problem && jobs->requests.store->objects_only && ew_json_typeof(ret->job.params) != EW_JSON_OBJECT)
        problem = "params must be a JSON object";
    return problem ? bad(r, "schedule of %.60s: %s", from->function, problem) : name_cron(r, from, ret);
}

static ew_err read_crons(reading *r) {
    ew__app_jobs *self = r->self;
    size_t n = r->from->n_crons;
    if (n > CRONS_MAX)
        return bad(r, "more than %d schedules", CRONS_MAX);
    ew__worker_cron *crons = ew__arena_alloc(&self->arena, (n ? n : 1) * sizeof *crons);
    if (!crons)
        return EW_ENOMEM;
    memset(crons, 0, (n ? n : 1) * sizeof *crons);
    self->options.crons = crons;
    self->options.n_crons = n;
    ew_err err = EW_OK;
    for (size_t i = 0; i < n && err == EW_OK; i++)
        err = read_cron(r, &r->from->crons[i], &crons[i]);
    return err;
}

/* ---- all of it ---- */

static uint32_t all_places(const ew__app_jobs *self) {
    uint64_t n = 0;
    for (size_t i = 0; i < self->n_runners; i++)
        n += self->runners[i].places;
    return n < PLACES_MAX ? (uint32_t)n : PLACES_MAX;
}

ew_err ew__app_jobs_read(ew__app_jobs *self, const ew_worker_options *options, char *problem, size_t problem_size) {
    static const ew_worker_options none;
    reading r = {.self = self, .from = options ? options : &none, .problem = problem, .size = problem_size};
    const ew_worker_options *from = r.from;
    ew_err err = read_runners(&r);
    if (err == EW_OK)
        err = read_queues(&r);
    if (err == EW_OK)
        err = read_crons(&r);
    if (err == EW_OK)
        err = copy(&r, from->id, &self->options.id);
    if (err != EW_OK)
        return err;
    ew__worker_options *to = &self->options;
    to->policy = (ew__policy){.base_retry_ms = from->base_retry_ms,
                              .max_retry_ms = from->max_retry_ms,
                              .no_jitter = from->no_jitter,
                              .retry_timeouts = from->retry_timeouts,
                              .poison_after = from->poison_after,
                              .dlq = self->jobs->dlq};
    to->concurrency = from->concurrency ? from->concurrency : all_places(self);
    to->lease_ms = from->lease_ms;
    to->burst = from->burst;
    to->open_zone = ew__zone_open;
    to->pid = (uint32_t)getpid();
    return EW_OK;
}
