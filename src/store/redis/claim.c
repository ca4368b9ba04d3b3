/*
 * store/redis/claim.c: claims, and jobs that make no sense. See redis.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"
#include <stdio.h>

ew_err ew__redis_pack_claim(ew__jobs_redis_store *self, const ew__op_claim *claim) {
    ew__redis_link *link = &self->link;
    ew__redis_eval(self, EW__SCRIPT_CLAIM, 1 + claim->n_queues);
    ew__redis_key(link, EW__RRQ_ACTIVE, claim->worker);
    for (size_t i = 0; i < claim->n_queues; i++) {
        ew__redis_key(link, EW__RRQ_QUEUE, claim->queues[i].name);
    }
    ew__redis_text(link, claim->worker);
    ew__redis_int(link, claim->now);
    ew__redis_uint(link, claim->max);
    ew__redis_uint(link, claim->lease_ms > 0 ? claim->lease_ms : 1);
    ew__redis_when(link, claim->now);
    ew__redis_int(link, claim->now / 1000);
    for (size_t i = 0; i < claim->n_queues; i++) {
        ew__redis_uint(link, claim->queues[i].max);
    }
    return ew__redis_end(link);
}

/*
 * One job: number of its queue, id, epoch, hash as it was before. A job that cannot be run comes without a function:
 * nothing that can be run has none. Its last_error is then why.
 */
static ew_err read_claimed(const ew__op_claim *claim, ew_str worker, ew__arena *arena, const redisReply *one,
                           ew__job *ret) {
    int64_t queue = ew__redis_number(ew__redis_at(one, 0), -1);
    int64_t epoch = ew__redis_number(ew__redis_at(one, 2), -1);
    const char *why = NULL;
    if (queue < 0 || (uint64_t)queue >= claim->n_queues || epoch <= 0 || ew__redis_n(one) != 4) {
        return EW_EPROTO;
    }
    ew_err err = ew__redis_read_job(one->element[3], ew__redis_str(one->element[1]), arena, ret, &why);
    if (err == EW_OK && ret->queue.len == 0) {
        err = ew__arena_str(arena, claim->queues[queue].name, &ret->queue);
    }
    ret->status = EW__JOB_ACTIVE;
    ret->worker = worker;
    ret->started_at = claim->now;
    ret->ended_at = 0;
    ret->epoch = (uint64_t)epoch;
    if (why != NULL) {
        ret->function = ew__str(NULL, 0);
        ret->last_error = ew_str_from(why);
    }
    return err;
}

ew_err ew__redis_unpack_claim(ew__jobs_redis_store *self, ew__store_request *op, const redisReply *reply) {
    ew__op_claim *claim = &op->u.claim;
    size_t n = ew__redis_n(reply);
    if (n < 3 || n - 3 > claim->max) {
        return EW_EPROTO;
    }
    ew_str bad = ew__redis_str(reply->element[1]);
    if (bad.len > 0) {
        int len = bad.len < 120 ? (int)bad.len : 120;
        ew__log(self->backend.env, EW_LOG_WARN, "store", "redis: %.*s", len, bad.ptr);
        if (n == 3 && ew__redis_number(reply->element[2], 0) == 0) {
            (void)snprintf(op->problem, sizeof op->problem, "redis: %.*s", len, bad.ptr);
            return EW_EIO;
        }
    }
    claim->ret_n = 0;
    claim->ret_next = 0;
    (void)ew__redis_score(ew__redis_str(reply->element[0]), &claim->ret_next);
    claim->ret = ew__arena_alloc(op->arena, (n - 3 + 1) * sizeof *claim->ret);
    ew_str worker;
    if (claim->ret == NULL || ew__arena_str(op->arena, claim->worker, &worker) != EW_OK) {
        return EW_ENOMEM;
    }
    for (size_t i = 3; i < n; i++) {
        ew_err err = read_claimed(claim, worker, op->arena, reply->element[i], &claim->ret[claim->ret_n]);
        if (err != EW_OK) {
            return err;
        }
        claim->ret_n++;
    }
    return EW_OK;
}

/*
 * To the dead letters, by the same fence as everything. Fails: its lease runs out, and who claims it next tries again.
 */
static void bury(ew__jobs_redis_store *self, const ew__op_claim *claim, const ew__job *job) {
    char problem[EW__REDIS_PROBLEM];
    redisReply *reply = NULL;
    ew__op_change change = {
        .id = job->id,
        .queue = job->queue,
        .worker = claim->worker,
        .epoch = job->epoch,
        .status = EW__JOB_FAILED,
        .run_at = claim->now,
        .now = claim->now,
        .retries = job->retries,
        .lost = job->lost,
        .last_error = job->last_error,
        .dlq = job->dlq.len > 0 ? job->dlq : EW_STR(EW__JOB_DLQ),
        .result_ttl_ms = job->result_ttl_ms,
        .unique_key = job->unique_key,
    };
    ew_err err = ew__redis_pack_change(self, &change);
    if (err == EW_OK) {
        err = ew__redis_do(self, &reply, problem);
    }
    ew__log(self->backend.env, EW_LOG_WARN, "store", "job %.*s: %.*s%s", (int)(job->id.len < 100 ? job->id.len : 100),
            job->id.ptr, (int)job->last_error.len, job->last_error.ptr, err == EW_OK ? "" : " (not yet)");
    freeReplyObject(reply);
}

void ew__redis_quarantine(ew__jobs_redis_store *self, ew__store_request *op) {
    ew__op_claim *claim = &op->u.claim;
    size_t kept = 0;
    if (op->err != EW_OK) {
        return;
    }
    for (size_t i = 0; i < claim->ret_n; i++) {
        if (claim->ret[i].function.len > 0) {
            claim->ret[kept++] = claim->ret[i];
        } else {
            bury(self, claim, &claim->ret[i]);
        }
    }
    claim->ret_n = kept;
}
