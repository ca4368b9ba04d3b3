/*
 * program/default_store.c: see default_store.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/default_store.h"
#include "jobs/service/service.h"
#include "base/folders.h"
#include "base/util.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- the file that there is without a word ---- */

ew_err ew__default_store(char *out, size_t size, char *problem, size_t problem_size) {
    static const char prefix[] = "sqlite:", file[] = "/jobs.db";
    if (size < sizeof prefix + sizeof file) {
        return EW_EINVAL;
    }
    char *folder = out + sizeof prefix - 1;
    ew_err err = ew__state_folder(folder, size - sizeof prefix - sizeof file, "store", "--store or EVERYWIRE_STORE",
                                  problem, problem_size);
    if (err == EW_OK) {
        err = ew__make_folders(folder, problem, problem_size);
    }
    if (err == EW_OK) {
        memcpy(out, prefix, sizeof prefix - 1);
        memcpy(folder + strlen(folder), file, sizeof file);
    }
    return err;
}

/* ---- for programs ---- */

/* The first problem that has a place: who may write to the file matters only to those who start what it names. */
static ew_err file_problem(const char *path, const ew__config *config, char *problem, size_t problem_size) {
    for (size_t i = 0; i < config->problems.n; i++) {
        const ew__problem *p = &config->problems.list[i];
        if (p->line) {
            (void)snprintf(problem, problem_size, "%s:%u:%u: %s", path, p->line, p->column, p->message);
            return EW_ESYNTAX;
        }
    }
    return EW_OK;
}

static ew_err load(const ew_env *env, const char *path, ew__config **ret, char *problem, size_t problem_size) {
    ew_err err = ew__config_load(env, path, ew__rrq_load, ret);
    if (err == EW_EIO && (*ret)->problems.n) {
        (void)snprintf(problem, problem_size, "%s: %s", path, (*ret)->problems.list[0].message);
    }
    return err == EW_OK ? file_problem(path, *ret, problem, problem_size) : err;
}

static const char *named_store(const char *store) {
    const char *variable = getenv("EVERYWIRE_STORE");
    return store ? store : variable && *variable ? variable : NULL;
}

ew_err ew__jobs_open_default(const char *store, const char *path, ew_jobs **ret_jobs, char *problem,
                             size_t problem_size) {
    const ew_env *env = ew_env_default();
    ew__rrq_variables variables;
    ew__config *config = NULL;
    ew_jobs_options options = {.env = NULL};
    char usual[PATH_MAX + 32], nowhere[1];
    *ret_jobs = NULL;
    problem_size = problem ? problem_size : 0;
    problem = problem_size ? problem : nowhere;
    *problem = 0;
    ew_err err = ew__rrq_variables_init(&variables, env);
    store = named_store(store);
    path = err != EW_OK || path || store ? path : ew__rrq_find(&variables);
    if (err == EW_OK && path) {
        err = load(env, path, &config, problem, problem_size);
    }
    if (err == EW_OK && config && config->jobs.node) {
        ew__jobs_defaults(&config->jobs, &options);
        store = store ? store : config->jobs.store;
    }
    if (err == EW_OK && !store) {
        err = ew__default_store(usual, sizeof usual, problem, problem_size);
        store = usual;
    }
    if (err == EW_OK) {
        err = ew__jobs_service_open(store, &options, ret_jobs, problem, problem_size);
    }
    ew__config_free(config);
    ew__rrq_variables_done(&variables);
    return err;
}
