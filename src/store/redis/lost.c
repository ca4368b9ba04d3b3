/*
 * store/redis/lost.c: jobs whose worker was lost, and lists that hold what is no more. See redis.h.
 *
 * Our own workers are in a set, and looked at every time. Those of RRQ are found by walking over all keys, a piece at a
 * time: RRQ itself gives them minutes. Lists of dead letters likewise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"

#define SCANS_PER_CALL 8
#define CALLS_PER_WALK 12 /* if possible: with a look every 5 s, once a minute */
#define COUNT_MIN 1000
#define COUNT_MAX 10000
#define SWEEP_MAX 1000

static ew_err ask(ew__jobs_redis_store *self, ew__store_request *op, redisReply **ret) {
    ew_err err = ew__redis_end(&self->link);
    *ret = NULL;
    return err == EW_OK ? ew__redis_do(self, ret, op->problem) : err;
}

static ew_str without(ew_str text, const char *prefix) {
    size_t n = strlen(prefix);
    return text.len > n && memcmp(text.ptr, prefix, n) == 0 ? ew__str(text.ptr + n, text.len - n) : ew__str(NULL, 0);
}

/* ---- the walk ---- */

/* Workers that were found. */
typedef struct names {
    ew__arena arena;
    ew_str *items;
    size_t n, cap;
} names;

static ew_err add_name(names *all, ew_str name) {
    for (size_t i = 0; i < all->n; i++) {
        if (ew__str_is(all->items[i], name)) {
            return EW_OK;
        }
    }
    if (all->n == all->cap) {
        size_t cap = all->cap == 0 ? 32 : 2 * all->cap;
        ew_str *more = ew__arena_alloc(&all->arena, cap * sizeof *more);
        if (more == NULL) {
            return EW_ENOMEM;
        }
        if (all->n > 0) {
            memcpy(more, all->items, all->n * sizeof *more);
        }
        all->items = more;
        all->cap = cap;
    }
    ew_err err = ew__arena_str(&all->arena, name, &all->items[all->n]);
    all->n += err == EW_OK;
    return err;
}

/* More of them than can be remembered are found again by the next walk. */
static void remember_dlq(ew__jobs_redis_store *self, ew_str name) {
    const ew_env *env = self->backend.env;
    for (size_t i = 0; i < self->n_dlqs; i++) {
        if (ew__str_is(ew_str_from(self->dlqs[i]), name)) {
            return;
        }
    }
    char *copy =
        self->n_dlqs < EW__REDIS_DLQS && memchr(name.ptr, '\0', name.len) == NULL ? ew__alloc(env, name.len + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, name.ptr, name.len);
        copy[name.len] = '\0';
        self->dlqs[self->n_dlqs++] = copy;
    }
}

/* So many keys at a time that a walk is over within CALLS_PER_WALK calls, but Redis is never held up for long. */
static uint64_t step_size(ew__jobs_redis_store *self, ew__store_request *op) {
    redisReply *reply;
    ew__redis_word(&self->link, "DBSIZE");
    ew_err err = ask(self, op, &reply);
    uint64_t keys = err == EW_OK ? ew__redis_count(reply) : 0;
    freeReplyObject(reply);
    uint64_t count = keys / (SCANS_PER_CALL * CALLS_PER_WALK);
    return count < COUNT_MIN ? COUNT_MIN : count < COUNT_MAX ? count : COUNT_MAX;
}

/* One step of a walk. What is found: workers, or (workers is NULL) lists of dead letters. */
static ew_err scan(ew__jobs_redis_store *self, ew__store_request *op, uint64_t count, names *workers, bool *ret_end) {
    ew__redis_link *link = &self->link;
    char *at = workers != NULL ? self->workers_cursor : self->dlqs_cursor;
    redisReply *page;
    ew__redis_word(link, "SCAN");
    ew__redis_word(link, at);
    ew__redis_word(link, "MATCH");
    ew__redis_word(link, workers != NULL ? EW__RRQ_ACTIVE "*" : EW__RRQ_DLQ "*");
    ew__redis_word(link, "COUNT");
    ew__redis_uint(link, count);
    ew_err err = ask(self, op, &page);
    ew_str cursor = ew__redis_str(ew__redis_at(page, 0));
    const redisReply *keys = ew__redis_at(page, 1);
    for (size_t i = 0; i < ew__redis_n(keys) && err == EW_OK; i++) {
        ew_str key = ew__redis_str(keys->element[i]);
        ew_str worker = without(key, EW__RRQ_ACTIVE), dlq = without(key, EW__RRQ_DLQ);
        if (worker.len > 0 && workers != NULL) {
            err = add_name(workers, worker);
        } else if (dlq.len > 0 && workers == NULL) {
            remember_dlq(self, dlq);
        }
    }
    bool odd = cursor.len == 0 || cursor.len >= EW__REDIS_CURSOR || err != EW_OK;
    cursor = odd ? EW_STR("0") : cursor;
    memcpy(at, cursor.ptr, cursor.len);
    at[cursor.len] = '\0';
    *ret_end = ew__str_is(cursor, EW_STR("0"));
    freeReplyObject(page);
    return err;
}

static ew_err walk_on(ew__jobs_redis_store *self, ew__store_request *op, names *workers) {
    uint64_t count = step_size(self, op);
    ew_err err = EW_OK;
    bool end = false;
    for (int i = 0; i < SCANS_PER_CALL && err == EW_OK && !end; i++) {
        err = scan(self, op, count, workers, &end);
    }
    return err;
}

/* ---- lost jobs ---- */

static ew_err our_workers(ew__jobs_redis_store *self, ew__store_request *op, names *workers) {
    redisReply *reply;
    ew__redis_word(&self->link, "SMEMBERS");
    ew__redis_word(&self->link, EW__REDIS_WORKERS);
    ew_err err = ask(self, op, &reply);
    for (size_t i = 0; i < ew__redis_n(reply) && err == EW_OK; i++) {
        err = add_name(workers, ew__redis_str(reply->element[i]));
    }
    freeReplyObject(reply);
    return err;
}

static ew_err read_lost(ew__store_request *op, const redisReply *reply) {
    ew__op_expired *expired = &op->u.expired;
    size_t n = ew__redis_n(reply);
    if (n > expired->max) {
        return EW_EPROTO;
    }
    expired->ret = ew__arena_alloc(op->arena, (n + 1) * sizeof *expired->ret);
    if (expired->ret == NULL) {
        return EW_ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const redisReply *one = reply->element[i];
        ew_str id = ew__redis_str(ew__redis_at(one, 0));
        ew_err err = ew__redis_read_job(ew__redis_at(one, 1), id, op->arena, &expired->ret[expired->ret_n], NULL);
        if (err == EW_ENOMEM) {
            return err;
        }
        expired->ret_n += err == EW_OK;
    }
    return EW_OK;
}

static ew_err find_lost(ew__jobs_redis_store *self, ew__store_request *op, const names *workers) {
    ew__redis_link *link = &self->link;
    redisReply *reply;
    if (workers->n == 0) {
        return EW_OK;
    }
    ew__redis_eval(self, EW__SCRIPT_LOST, 0);
    ew__redis_uint(link, op->u.expired.max);
    ew__redis_int(link, op->u.expired.now);
    ew__redis_when(link, op->u.expired.now);
    for (size_t i = 0; i < workers->n; i++) {
        ew__redis_text(link, workers->items[i]);
    }
    ew_err err = ask(self, op, &reply);
    if (err == EW_OK) {
        err = read_lost(op, reply);
    }
    freeReplyObject(reply);
    return err;
}

void ew__redis_expired(ew__jobs_redis_store *self, ew__store_request *op) {
    names workers = {.n = 0};
    ew__arena_init(&workers.arena, self->backend.env, NULL, 0);
    op->u.expired.ret = NULL;
    op->u.expired.ret_n = 0;
    op->err = our_workers(self, op, &workers);
    if (op->err == EW_OK) {
        op->err = walk_on(self, op, &workers);
    }
    if (op->err == EW_OK) {
        op->err = find_lost(self, op, &workers);
    }
    ew__arena_done(&workers.arena);
}

/* ---- what is no more ---- */

/* Jobs go by themselves when their time is over; their ids in lists of dead letters do not. */
void ew__redis_sweep(ew__jobs_redis_store *self, ew__store_request *op) {
    ew__op_sweep *sweep = &op->u.sweep;
    uint64_t max = sweep->max < SWEEP_MAX ? sweep->max : SWEEP_MAX;
    bool end;
    sweep->ret_removed = 0;
    remember_dlq(self, EW_STR(EW__JOB_DLQ));
    op->err = scan(self, op, step_size(self, op), NULL, &end);
    for (size_t i = 0; i < self->n_dlqs && op->err == EW_OK && sweep->ret_removed < max; i++) {
        redisReply *reply;
        ew__redis_eval(self, EW__SCRIPT_SWEEP, 1);
        ew__redis_key(&self->link, EW__RRQ_DLQ, ew_str_from(self->dlqs[i]));
        ew__redis_uint(&self->link, max > 0 ? max : 1);
        op->err = ask(self, op, &reply);
        sweep->ret_removed += op->err == EW_OK ? ew__redis_count(reply) : 0;
        freeReplyObject(reply);
    }
}
