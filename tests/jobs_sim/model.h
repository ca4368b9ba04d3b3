/*
 * tests/jobs_sim/model.h: a store of jobs in memory, as plain as can be: what the operations of jobs/store.h mean. It
 * does an operation at once and knows nothing of threads, executors or faults; tests/jobs_sim/world.h puts those around it.
 *
 * Leases and keys live by the model's own clock (as a Redis does), which no worker's clock can move.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_QUEUE_MODEL_H
#define EW_TESTS_QUEUE_MODEL_H

#include "jobs/store.h"

typedef struct model_chunk {
    char *json;
    uint64_t seq, epoch;
} model_chunk;

typedef struct model_job {
    ew__job job; /* its texts are this job's own */
    uint64_t lease_until;
    uint64_t number; /* of being enqueued */
    model_chunk *chunks;
    size_t n_chunks;
    bool dead; /* in its dead-letter queue */
    void *ud;  /* the test's */
} model_job;

typedef struct model_key {
    ew__dedup_mode dedup;
    char *key, *id;
    uint64_t until;
} model_key;

typedef struct model_worker {
    char *id, *record;
    uint64_t until;
} model_worker;

typedef struct model model;
struct model {
    uint64_t now; /* ns */
    model_job **jobs;
    size_t n_jobs;
    model_key *keys;
    size_t n_keys;
    model_worker *workers;
    size_t n_workers;
    char **paused;
    size_t n_paused;
    uint64_t n_enqueued;
    /* What the test wants to know; may be NULL. changed: hints for watchers. */
    void (*changed)(model *m, unsigned what);
    void (*enqueued)(model *m, model_job *job, const ew__op_enqueue *enqueue);
    void (*claimed)(model *m, model_job *job);
    /* Before a change: `job` is as it was. change NULL: a cancel of a waiting job (to CANCELLED), or a requeue. */
    void (*changing)(model *m, model_job *job, const ew__op_change *change, ew__job_status status);
    void *ud;
};

void model_init(model *m, uint64_t now);
void model_done(model *m);
/* Does the operation and sets op->err; does not call done. */
void model_do(model *m, ew__store_request *op);
model_job *model_find(model *m, ew_str id);
bool model_is_paused(const model *m, ew_str queue);
static inline bool model_waits(const model_job *mj) {
    return mj->job.status == EW__JOB_PENDING || mj->job.status == EW__JOB_RETRYING;
}
bool model_is_before(const model_job *a, const model_job *b); /* due earlier; then by id */

/* ---- model_looks.c ---- */

void model_copy_jobs(ew__store_request *op, model_job **from, size_t n, ew__job **ret, size_t *ret_n);
void model_get(model *m, ew__store_request *op);
void model_list(model *m, ew__store_request *op);
void model_queues(model *m, ew__store_request *op);
void model_workers(model *m, ew__store_request *op);

#endif
