/*
 * gateway/jobs.c: the jobs of an app: opening their store, the worker on the first loop from its start to its end, and
 * its metrics.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "base/thread.h"
#include <stdio.h>
#include <time.h>

#define LOOK_MS 200 /* how often the numbers are copied for /metrics */
#define POLL_MS 10  /* from one look whether the worker is known to the next, at first */
#define POLL_MAX_MS 200

/* ---- what is asked for ---- */

ew_err ew__app_add_jobs(ew_app *app, const char *store, const ew_jobs_options *options) {
    if (ew__app_may_change(app, "cannot add jobs") != EW_OK)
        return EW_EINVAL;
    if (app->jobs)
        return ew__app_fail(app, EW_EINVAL, "the app has jobs already");
    ew__app_jobs *self = ew__zalloc(app->env, sizeof *self);
    if (!self)
        return ew__app_failed(app, EW_ENOMEM, "cannot add jobs");
    self->app = app;
    self->env = app->env;
    ew_jobs_options all = {.env = app->env};
    if (options) {
        all = *options;
        all.env = options->env ? options->env : app->env;
    }
    ew__arena_init(&self->arena, self->env, NULL, 0);
    atomic_init(&self->over, true);
    ew_err err = ew__jobs_service_open(store, &all, &self->jobs, app->error, sizeof app->error);
    if (err != EW_OK) {
        ew__arena_done(&self->arena);
        ew__free(self->env, self, sizeof *self);
        return ew__app_failed(app, err, "cannot add jobs");
    }
    app->jobs = self;
    return EW_OK;
}

static void free_runners(ew__app_jobs *self) {
    for (size_t i = 0; i < self->n_runners; i++)
        ew__source_free(self->runners[i].source);
    self->n_runners = 0;
}

ew_err ew__app_add_worker(ew_app *app, const ew_worker_options *options) {
    char problem[sizeof app->error] = "";
    if (app->lifecycle.started || !app->jobs || app->jobs->works) {
        (void)snprintf(app->error, sizeof app->error, "a worker wants ew_app_jobs before it, and is made once");
        return EW_EINVAL;
    }
    ew__app_jobs *self = app->jobs;
    ew_err err = ew__app_jobs_read(self, options, problem, sizeof problem);
    if (err != EW_OK) {
        free_runners(self);
        (void)snprintf(app->error, sizeof app->error, "%s", *problem ? problem : ew_err_text(err));
        return err;
    }
    self->works = true;
    app->error[0] = '\0';
    return EW_OK;
}

bool ew__app_works(const ew_app *app) { return app->jobs && app->jobs->works; }

/* ---- the worker ---- */

static void copy_numbers(ew__app_jobs *self) {
    const ew__worker_stats *from = ew__worker_stats_of(self->worker);
    ew__app_jobs_numbers *to = &self->numbers;
#define COPY(name) atomic_store_explicit(&to->name, from->name, memory_order_relaxed)
    COPY(claimed);
    COPY(completed);
    COPY(retried);
    COPY(failed);
    COPY(cancelled);
    COPY(handed_back);
    COPY(stale);
    COPY(recovered);
    COPY(poisoned);
    COPY(ticks);
    COPY(running);
    COPY(waiting_ends);
#undef COPY
}

static void on_look(ew__timer *timer, uint64_t now) {
    ew__app_jobs *self = ew__container_of(timer, ew__app_jobs, look);
    copy_numbers(self);
    (void)ew__timer_set(&self->app->loops[0].loop.executor.timers, timer, now + EW__MS(LOOK_MS), on_look);
}

/* By itself (burst), or because it was asked to: the app may end. */
static void on_ended(ew__worker *worker, void *ud) {
    ew__app_jobs *self = ud;
    (void)worker;
    ew__timer_stop(&self->app->loops[0].loop.executor.timers, &self->look);
    copy_numbers(self);
    atomic_store(&self->over, true);
    ew__app_worker_over(self->app);
}

static void start_worker(ew__task *task) {
    ew__app_jobs *self = ew__container_of(task, ew__app_jobs, start_task);
    ew__executor *executor = &self->app->loops[0].loop.executor;
    (void)ew__timer_set(&executor->timers, &self->look, executor->now + EW__MS(LOOK_MS), on_look);
    self->started_at = executor->now;
    ew__worker_start(self->worker);
}

static ew_err make_worker(ew__app_jobs *self) {
    ew_app *app = self->app;
    ew__executor *executor = &app->loops[0].loop.executor;
    char problem[160] = "";
    self->runs.ops = &ew__app_runs;
    ew_err err = ew__worker_new(executor, self->jobs->requests.store, &self->runs, &self->options, on_ended, self,
                                &self->worker, problem, sizeof problem);
    if (err != EW_OK) {
        (void)snprintf(app->error, sizeof app->error, "worker: %s", *problem ? problem : ew_err_text(err));
        return err;
    }
    atomic_store(&self->over, false);
    self->start_task.fn = start_worker;
    ew__executor_post(executor, &self->start_task); /* once the loop runs */
    return EW_OK;
}

static ew_err start_runners(ew__app_jobs *self) {
    ew_err err = EW_OK;
    for (size_t i = 0; i < self->n_runners && err == EW_OK; i++) {
        ew__source *source = self->runners[i].source;
        err = source->ops->start(source);
        self->runners[i].started = err == EW_OK;
    }
    return err;
}

static void stop_runners(ew__app_jobs *self) {
    for (size_t i = 0; i < self->n_runners; i++) {
        ew__app_runner *runner = &self->runners[i];
        if (runner->started)
            runner->source->ops->stop(runner->source);
        runner->started = false;
    }
}

/* ---- requests under /jobs ---- */

static bool is_local(const ew__jobs_http *http, ew_str queue) {
    return ew__app_jobs_is_own(ew__container_of(http, ew__app_jobs_http, http)->jobs, queue);
}

static void close_http(ew__part *part) { ew__jobs_http_close(&ew__container_of(part, ew__app_jobs_http, part)->http); }

static void http_closed(ew__jobs_http *http) {
    ew__part_closed(&ew__container_of(http, ew__app_jobs_http, http)->part);
}

ew_err ew__app_jobs_open_http(ew_app *app) {
    ew__app_jobs *self = app->jobs;
    if (!self)
        return EW_OK;
    self->http = ew__zalloc(self->env, app->n_loops * sizeof *self->http);
    if (!self->http)
        return EW_ENOMEM;
    self->n_http = app->n_loops;
    for (size_t i = 0; i < self->n_http; i++) {
        ew__jobs_http_init(&self->http[i].http, self->jobs, &app->loops[i].loop.executor);
        self->http[i].http.is_local = is_local;
        self->http[i].http.closed = http_closed;
        self->http[i].part.close = close_http;
        self->http[i].jobs = self;
    }
    return EW_OK;
}

/* ---- the start ---- */

ew_err ew__app_jobs_start(ew_app *app) {
    ew__app_jobs *self = app->jobs;
    if (!self)
        return EW_OK;
    const char *notice = ew_jobs_notice(self->jobs);
    if (*notice)
        ew__log(app->env, EW_LOG_WARN, "jobs", "%s", notice);
    for (size_t i = 0; i < self->n_http; i++)
        ew__part_add(&app->loops[i], &self->http[i].part);
    if (!self->works)
        return EW_OK;
    ew_err err = start_runners(self);
    return err == EW_OK ? make_worker(self) : err;
}

/* ---- the end ---- */

static void stop_worker(ew__task *task) {
    ew__app_jobs *self = ew__container_of(task, ew__app_jobs, stop_task);
    bool now = atomic_load(&self->stop_now);
    atomic_store(&self->stop_sent, false);
    if (atomic_load(&self->over))
        return;
    ew__worker_stop(self->worker, now ? 0 : ew__app_drain_ms(self->app));
    if (now)
        ew__worker_stop(self->worker, 0);
}

/* A letter can be under way only once; one that is reads `stop_now` when it arrives. */
void ew__app_jobs_stop(ew_app *app) {
    ew__app_jobs *self = app->jobs;
    if (!self || !self->worker || atomic_load(&self->over))
        return;
    if (atomic_load(&app->lifecycle.draining))
        atomic_store(&self->stop_now, true);
    if (atomic_exchange(&self->stop_sent, true))
        return;
    ew__executor *executor = &app->loops[0].loop.executor;
    self->stop_task.fn = stop_worker;
    ew__executor_post(executor, &self->stop_task);
}

void ew__app_jobs_refresh(ew__app_loop *loop) {
    ew__app_jobs *self = loop->app->jobs;
    if (self && self->worker && loop == &loop->app->loops[0] && !atomic_load(&self->over))
        ew__worker_room(self->worker); /* jobs may have waited for an import to be asked */
}

bool ew__app_jobs_over(const ew_app *app) { return !app->jobs || atomic_load(&app->jobs->over); }

void ew__app_jobs_reap(ew_app *app) {
    ew__app_jobs *self = app->jobs;
    if (!self)
        return;
    stop_runners(self);
    if (self->worker)
        ew__worker_free(self->worker);
    self->worker = NULL;
    ew__free(self->env, self->http, self->n_http * sizeof *self->http);
    self->http = NULL;
    self->n_http = 0;
}

void ew__app_jobs_never(ew_app *app) {
    if (app->jobs)
        atomic_store(&app->jobs->over, true);
}

void ew__app_jobs_free(ew_app *app) {
    ew__app_jobs *self = app->jobs;
    if (!self)
        return;
    free_runners(self);
    (void)ew__jobs_service_free(self->jobs);
    ew__arena_done(&self->arena);
    ew__free(self->env, self, sizeof *self);
    app->jobs = NULL;
}

/* ---- metrics and events ---- */

static void write_line(ew__buf *out, const char *name, const char *type, const char *help, uint64_t number) {
    (void)ew__buf_printf(out, "# HELP everywire_jobs_%s %s\n# TYPE everywire_jobs_%s %s\neverywire_jobs_%s %llu\n",
                         name, help, name, type, name, (unsigned long long)number);
}

void ew__app_jobs_measure(ew_app *app, ew__buf *out) {
    static const char counter[] = "counter", gauge[] = "gauge";
    if (!ew__app_works(app))
        return;
    const ew__app_jobs_numbers *n = &app->jobs->numbers;
    write_line(out, "claimed_total", counter, "Jobs that this worker has taken.", atomic_load(&n->claimed));
    write_line(out, "completed_total", counter, "Jobs that have ended well.", atomic_load(&n->completed));
    write_line(out, "retried_total", counter, "Attempts that failed, and are followed by another.",
               atomic_load(&n->retried));
    write_line(out, "failed_total", counter, "Jobs that became dead letters.", atomic_load(&n->failed));
    write_line(out, "cancelled_total", counter, "Jobs that were cancelled while they ran.", atomic_load(&n->cancelled));
    write_line(out, "handed_back_total", counter, "Jobs that went back to their queue when the worker stopped.",
               atomic_load(&n->handed_back));
    write_line(out, "stale_total", counter, "Ends that came too late: another worker had the job.",
               atomic_load(&n->stale));
    write_line(out, "recovered_total", counter, "Jobs of lost workers that were put back.", atomic_load(&n->recovered));
    write_line(out, "poisoned_total", counter, "Jobs that were given up after too many lost workers.",
               atomic_load(&n->poisoned));
    write_line(out, "ticks_total", counter, "Jobs that this worker made of schedules.", atomic_load(&n->ticks));
    write_line(out, "running", gauge, "Jobs that run now.", atomic_load(&n->running));
    write_line(out, "waiting_ends", gauge, "Ends that the store has not taken yet.", atomic_load(&n->waiting_ends));
}

void ew__app_jobs_say(const ew_app *app, ew__buf *out) {
    if (!ew__app_works(app))
        return;
    const ew__app_jobs *self = app->jobs;
    (void)ew__json_format(out, "{\"event\":\"working\",\"worker_id\":%q,\"store\":%Q,\"queues\":[",
                          ew__worker_id(self->worker), self->jobs->requests.store->name);
    for (size_t i = 0; i < self->options.n_queues; i++)
        (void)ew__json_format(out, "%s%q", i ? "," : "", self->options.queues[i].name);
    (void)ew__buf_cstr(out, "]}\n");
}

/* Whether its record is there. */
static bool is_known(const ew__app_jobs *self) {
    ew__store_request op;
    bool found = false;
    ew__store_request_begin(&op, &self->jobs->requests, EW__OP_WORKERS);
    if (ew__store_do(self->jobs->requests.store, &op) == EW_OK)
        for (size_t i = 0; i < op.u.workers.ret_n && !found; i++)
            found = ew__str_is(op.u.workers.ret[i].id, ew__worker_id(self->worker));
    ew__store_request_end(&op);
    return found;
}

void ew__app_jobs_wait(ew_app *app, uint64_t ms) {
    ew__app_jobs *self = app->jobs;
    if (!ew__app_works(app))
        return;
    uint64_t until = self->env->now_ns(self->env->ud) + EW__MS(ms), pause = POLL_MS;
    while (!atomic_load(&self->over) && !is_known(self) && self->env->now_ns(self->env->ud) < until) {
        struct timespec step = {.tv_nsec = (long)(pause * 1000000)};
        (void)nanosleep(&step, NULL);
        pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS;
    }
}
