/*
 * store/jobs.c: which store of jobs a text names, and waiting for one operation. See jobs.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/jobs.h"
#include "base/thread.h"
#include <stdio.h>

/* ---- opening ---- */

/* Whether the address is of the Redis family; what of it can be used, its own reader says. */
static bool is_redis(ew_str spec) {
    static const char *const schemes[] = {"redis:", "rediss:", "valkey:", "valkeys:", "unix:", "redis+unix:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (ew__str_has_prefix(spec, ew_str_from(schemes[i]))) {
            return true;
        }
    }
    return false;
}

ew_err ew__jobs_open(const ew_env *env, const char *spec, ew__store **ret, char *problem, size_t problem_size) {
    static const char file[] = "sqlite:";
    ew__backend *backend = NULL;
    ew_err err = EW_EINVAL;
    *ret = NULL;
    if (problem != NULL && problem_size > 0) {
        problem[0] = '\0';
    }
    if (strncmp(spec, file, sizeof file - 1) == 0 && spec[sizeof file - 1] != '\0') {
        err = ew__jobs_sqlite(env, spec + sizeof file - 1, &backend, problem, problem_size);
    } else if (is_redis(ew_str_from(spec))) {
        err = ew__jobs_redis(env, spec, &backend, problem, problem_size);
    } else if (problem != NULL) { /* not repeated: what looks like no address may still hold a password */
        (void)snprintf(problem, problem_size, "jobs are kept in sqlite:PATH or redis://HOST:PORT/DB");
    }
    if (err == EW_OK) {
        err = ew__jobs_thread(env, backend, ret);
        if (err != EW_OK && problem != NULL) {
            (void)snprintf(problem, problem_size, "the store's thread cannot be started");
        }
    }
    return err;
}

/* ---- waiting ---- */

typedef struct waiter {
    ew__store_owner owner;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    size_t open;
} waiter;

static void on_done(ew__store_request *op) {
    waiter *self = ew__container_of(op->owner, waiter, owner);
    pthread_mutex_lock(&self->lock);
    if (--self->open == 0) {
        pthread_cond_signal(&self->cond);
    }
    pthread_mutex_unlock(&self->lock);
}

void ew__store_do_all(ew__store *store, ew__store_request *ops, size_t n) {
    waiter self = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER, .open = n};
    ew__store_owner *owner = n > 0 ? ops[0].owner : NULL;
    for (size_t i = 0; i < n; i++) {
        ops[i].executor = NULL;
        ops[i].done = on_done;
        ops[i].owner = &self.owner;
        store->ops->submit(store, &ops[i]);
    }
    pthread_mutex_lock(&self.lock);
    while (self.open > 0) {
        pthread_cond_wait(&self.cond, &self.lock);
    }
    pthread_mutex_unlock(&self.lock);
    for (size_t i = 0; i < n; i++) {
        ops[i].owner = owner;
    }
    pthread_cond_destroy(&self.cond);
    pthread_mutex_destroy(&self.lock);
}

ew_err ew__store_do(ew__store *store, ew__store_request *op) {
    ew__store_do_all(store, op, 1);
    return op->err;
}
