/*
 * gateway/jobs.h: the jobs of an app: its store, its worker and the worker's runners, and the requests under /jobs.
 * jobs.c (life, metrics), jobs_options.c (options of the worker), jobs_run.c (how a job becomes a call).
 *
 * The store has a thread of its own; the worker lives on the app's first loop; requests on the loop that they came to.
 */
#ifndef EW_GATEWAY_JOBS_H
#define EW_GATEWAY_JOBS_H

#include "bridge/bridge.h"
#include "gateway/sources.h"
#include "jobs/service/http.h"
#include "jobs/worker.h"

struct ew__app_loop;

/* Requests under /jobs, on one loop. */
typedef struct ew__app_jobs_http {
    struct ew__app_jobs *jobs;
    ew__part part;
    ew__jobs_http http;
} ew__app_jobs_http;

/* A runner of the worker. Its numbers are the first loop's. */
typedef struct ew__app_runner {
    ew_str name;
    ew__source *source;
    bool started;
    uint32_t places;  /* jobs that all its processes take at a time */
    uint32_t running; /* there now */
    uint64_t response_timeout_ms;
} ew__app_runner;

/* What others than the first loop may read of the worker. */
typedef struct ew__app_jobs_numbers {
    atomic_ullong claimed, completed, retried, failed, cancelled, handed_back, stale, recovered, poisoned, ticks;
    atomic_uint running, waiting_ends;
} ew__app_jobs_numbers;

typedef struct ew__app_jobs {
    ew_app *app;
    const ew_env *env;
    ew_jobs *jobs;
    ew__app_jobs_http *http; /* one for each loop, once the app starts */
    size_t n_http;
    /* ---- the worker ---- */
    bool works;
    ew__arena arena;            /* of what follows */
    ew__worker_options options; /* its lists are here */
    ew__app_runner *runners;
    size_t n_runners;
    ew__app_runner **queue_runners; /* for each of options.queues; NULL: as usual */
    ew__app_runner *default_runner; /* NULL: actions of this app */
    ew__runs runs;
    ew__worker *worker;
    uint64_t started_at; /* of the worker, on the first loop's clock */
    uint64_t held_since; /* since when no job is claimed because an import has not been asked; 0: jobs are claimed */
    uint64_t unknown_since, unknown_at; /* the first and the last job of now that was handed back without its action */
    ew__timer look;                     /* copies the numbers */
    ew__app_jobs_numbers numbers;
    ew__task start_task, stop_task;
    atomic_bool stop_sent, stop_now;
    atomic_bool over; /* the worker has ended, or there is none */
} ew__app_jobs;

/* ---- jobs_options.c ---- */

/* Copies and checks; problem gets a line for people. EW_OK, EW_EINVAL, EW_ENOMEM, or as ew_app_import. */
ew_err ew__app_jobs_read(ew__app_jobs *self, const ew_worker_options *options, char *problem, size_t problem_size);
/* Whether this app works on that queue, and on nothing but its own actions. */
bool ew__app_jobs_is_own(const ew__app_jobs *self, ew_str queue);

/* ---- jobs_run.c ---- */

extern const ew__runs_ops ew__app_runs;

/* ---- for the app: start and end ---- */

/* The loops are made, no listener is bound yet. EW_OK, EW_ENOMEM. */
ew_err ew__app_jobs_open_http(ew_app *app);
/* The loops are made and do not run yet. The last thing that can fail; then _reap follows. */
ew_err ew__app_jobs_start(ew_app *app);
void ew__app_jobs_never(ew_app *app);      /* the first loop could not be run after all */
void ew__app_jobs_stop(ew_app *app);       /* the worker claims no more; a second time: at once. Any thread */
bool ew__app_jobs_over(const ew_app *app); /* the worker has ended, or there is none. Any thread */
void ew__app_jobs_refresh(struct ew__app_loop *loop); /* the list of actions has changed. Loop thread */
void ew__app_jobs_reap(ew_app *app); /* the loops have ended, and are still there if there is a worker */
void ew__app_jobs_free(ew_app *app);
void ew__app_jobs_measure(ew_app *app, ew__buf *out); /* lines for /metrics. Any thread */
void ew__app_jobs_say(const ew_app *app, ew__buf *out);
/* Waits until the worker is known to the store, at most that long. Not on a loop's thread. */
void ew__app_jobs_wait(ew_app *app, uint64_t ms);
bool ew__app_works(const ew_app *app); /* it has a worker */

/* The functions of the public headers, once src/api has checked their arguments. */
ew_err ew__app_add_jobs(ew_app *app, const char *store, const ew_jobs_options *options);
ew_err ew__app_add_worker(ew_app *app, const ew_worker_options *options);

#endif
