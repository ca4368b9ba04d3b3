/*
 * program/default_store.h: where jobs are if nobody says so, and what a configuration file means for the store
 * and its worker.
 */
#ifndef EW_PROGRAM_DEFAULT_STORE_H
#define EW_PROGRAM_DEFAULT_STORE_H

#include "compat/rrq/settings.h"

/*
 * "sqlite:" and jobs.db in the folder for state of this user, which is made if it is not there. EW_OK; EW_EINVAL: there is
 * none, EW_EIO: it cannot be made; problem gets a line for people.
 */
ew_err ew__default_store(char *out, size_t size, char *problem, size_t problem_size);

/* What a file says of all jobs; borrowed from it. */
void ew__jobs_defaults(const ew__config_jobs *jobs, ew_jobs_options *ret);

/* What the command line says of a worker. Names of queues may have RRQ's prefix. */
typedef struct ew__worker_words {
    const char *const *queues;
    size_t n_queues;
    unsigned concurrency;
    bool burst;
    const char *id;
} ew__worker_words;

/*
 * What a file (NULL: none) and the command line, which wins, say of the worker. Texts are borrowed, lists lie in the arena.
 * EW_OK, EW_ENOMEM.
 */
ew_err ew__worker_make(ew__arena *arena, const ew__config *config, const ew__worker_words *words,
                       ew_worker_options *ret);

/* Adds the problems that a worker would have with a file: its store's name, targets, schedules. Nothing is opened. */
void ew__config_check_jobs(const ew_env *env, ew__config *config);

/* The functions of the public headers, once src/api has checked their arguments. */
ew_err ew__jobs_open_default(const char *store, const char *path, ew_jobs **ret_jobs, char *problem,
                             size_t problem_size);

#endif
