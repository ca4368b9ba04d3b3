/*
 * program/options_jobs.c: jobs on the command line of ew_app_main: which store, and whether it is a worker. See main.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/main.h"
#include "program/default_store.h"
#include <stdio.h>
#include <stdlib.h>

#define EXIT_UNREACHED 3

static const char *store_variable(void) {
    const char *store = getenv("EVERYWIRE_STORE");
    return store && *store ? store : NULL;
}

static int no_memory(const ew__settings *s) {
    (void)fprintf(stderr, "%s: out of memory\n", s->name);
    return EXIT_FAILURE;
}

int ew__settings_find_config(ew__settings *s) {
    ew__rrq_variables variables;
    if (s->store || s->has_jobs || store_variable()) {
        return -1;
    }
    ew_err err = ew__rrq_variables_init(&variables, ew_env_default());
    const char *path = err == EW_OK ? ew__rrq_find(&variables) : NULL;
    if (path) {
        s->config = ew__arena_copy(s->arena, path, strlen(path) + 1);
        s->config_found = true;
    }
    ew__rrq_variables_done(&variables);
    return err != EW_OK || (path && !s->config) ? no_memory(s) : -1;
}

/* Whether the file asks for a worker. */
static bool file_works(const ew__settings *s) {
    return s->config && s->file.config->jobs.node && s->file.config->jobs.worker.on;
}

int ew__settings_check_jobs(const ew__settings *s) {
    const char *option = s->n_queues ? "--queue" : s->concurrency ? "--concurrency" : s->burst ? "--burst" : NULL;
    option = option ? option : s->worker_id ? "--worker-id" : NULL;
    if (option && !s->worker && !file_works(s)) {
        return ew__settings_usage(s, option, "it goes with --worker");
    }
    for (size_t i = 0; i < s->n_queues; i++) {
        if (!*s->queues[i]) {
            return ew__settings_usage(s, "--queue", "a queue has a name");
        }
    }
    return -1;
}

/* A store is never shown itself: it may hold a password. */
static int store_failed(const ew__settings *s, const char *problem, ew_err err) {
    const char *why = *problem ? problem : ew_err_text(err);
    if (err == EW_EINVAL || err == EW_EUNSUPPORTED) {
        return ew__settings_usage(s, "the store of jobs", why);
    }
    ew__log(s->options.env, EW_LOG_ERROR, "main", "the store of jobs: %s", why);
    return err == EW_ENOMEM ? EXIT_FAILURE : EXIT_UNREACHED;
}

static void log_file(const ew__settings *s) {
    const ew__problems *notes = &s->file.config->notes;
    if (s->config_found) {
        ew__log(s->options.env, EW_LOG_INFO, "config", "settings are those of RRQ, in %s", s->config);
    }
    for (size_t i = 0; i < notes->n; i++) {
        ew__log(s->options.env, EW_LOG_INFO, "config", "%s:%u:%u: %s", s->config, notes->list[i].line,
                notes->list[i].column, notes->list[i].message);
    }
}

static int add_worker(const ew__settings *s, ew_app *app) {
    ew__worker_words words = {s->queues, s->n_queues, s->concurrency, s->burst, s->worker_id};
    ew_worker_options worker;
    ew_err err = ew__worker_make(s->arena, s->config ? s->file.config : NULL, &words, &worker);
    if (err == EW_OK) {
        err = ew__app_add_worker(app, &worker);
    }
    if (err == EW_OK) {
        return 0;
    }
    const char *more = app->error;
    return err == EW_ENOMEM ? no_memory(s) : ew__settings_usage(s, "--worker", *more ? more : ew_err_text(err));
}

int ew__settings_jobs(const ew__settings *s, ew_app *app) {
    const ew__config_jobs *jobs = s->config && s->file.config->jobs.node ? &s->file.config->jobs : NULL;
    const char *store = s->store ? s->store : store_variable();
    ew_jobs_options options = {.env = NULL};
    char usual[PATH_MAX + 32], problem[400] = "";
    bool works = (s->worker || file_works(s)) && !ew__app_works(app);
    if (!s->store && !jobs && (!works || s->has_jobs)) {
        return works ? add_worker(s, app) : 0;
    }
    if (jobs) {
        log_file(s);
        ew__jobs_defaults(jobs, &options);
        store = store ? store : jobs->store;
    }
    ew_err err = store ? EW_OK : ew__default_store(usual, sizeof usual, problem, sizeof problem);
    store = store ? store : usual;
    if (err == EW_OK) {
        options.env = s->options.env;
        err = ew__app_add_jobs(app, store, &options);
        (void)snprintf(problem, sizeof problem, "%.399s", err == EW_OK ? "" : app->error);
    }
    if (err != EW_OK) {
        return store_failed(s, problem, err);
    }
    return works ? add_worker(s, app) : 0;
}
