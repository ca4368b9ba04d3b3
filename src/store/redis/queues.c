/*
 * store/redis/queues.c: all queues with their counts, and all workers: walks over all keys. See redis.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/map.h"
#include "base/when.h"
#include "store/redis/redis.h"
#include <stdio.h>

#define PAGE 1000
#define LONGEST_MS 5000

typedef struct tally {
    ew__queue_stats stats;
    int64_t waited; /* by those that began */
    uint64_t began;
} tally;

typedef struct walk {
    ew__jobs_redis_store *self;
    ew__store_request *op;
    ew__map queues; /* name to tally; both in the arena of the op */
    uint64_t looked;
    bool partial;
    ew__worker_record *workers;
    size_t n_workers, cap_workers;
} walk;

static ew_err do_ended(walk *w, redisReply **ret) {
    ew_err err = ew__redis_end(&w->self->link);
    *ret = NULL;
    return err == EW_OK ? ew__redis_do(w->self, ret, w->op->problem) : err;
}

/* The tally of a queue, made if there is none; NULL: no memory. */
static tally *tally_of(walk *w, ew_str name) {
    tally *one = ew__map_get(&w->queues, name);
    if (one != NULL) {
        return one;
    }
    one = ew__arena_alloc(w->op->arena, sizeof *one);
    if (one == NULL) {
        return NULL;
    }
    memset(one, 0, sizeof *one);
    one->stats.average_wait_ms = -1;
    if (ew__arena_str(w->op->arena, name, &one->stats.name) != EW_OK ||
        ew__map_put(&w->queues, one->stats.name, one) != EW_OK) {
        return NULL;
    }
    return one;
}

static ew_str without(ew_str text, const char *prefix) {
    size_t n = strlen(prefix);
    return text.len > n && memcmp(text.ptr, prefix, n) == 0 ? ew__str(text.ptr + n, text.len - n) : ew__str(NULL, 0);
}

/* ---- walking ---- */

/* All keys that match, page by page; `look` is called with the names of each. */
static ew_err walk_keys(walk *w, const char *match, ew_err (*look)(walk *w, const redisReply *keys)) {
    uint64_t end = ew__redis_now(w->self) + EW__MS(LONGEST_MS);
    char cursor[24] = "0";
    bool last = false;
    ew_err err = EW_OK;
    while (err == EW_OK && !last && !w->partial) {
        redisReply *page;
        ew__redis_word(&w->self->link, "SCAN");
        ew__redis_word(&w->self->link, cursor);
        ew__redis_word(&w->self->link, "MATCH");
        ew__redis_word(&w->self->link, match);
        ew__redis_word(&w->self->link, "COUNT");
        ew__redis_uint(&w->self->link, PAGE);
        err = do_ended(w, &page);
        ew_str next = ew__redis_str(ew__redis_at(page, 0));
        last = next.len == 0 || next.len >= sizeof cursor || ew__str_is(next, EW_STR("0"));
        if (err == EW_OK && !last) {
            memcpy(cursor, next.ptr, next.len);
            cursor[next.len] = '\0';
        }
        if (err == EW_OK) {
            err = look(w, ew__redis_at(page, 1));
        }
        freeReplyObject(page);
        w->partial = w->partial || (!last && ew__redis_now(w->self) >= end);
    }
    return err;
}

static ew_err note_queues(walk *w, const redisReply *keys) {
    for (size_t i = 0; i < ew__redis_n(keys); i++) {
        ew_str name = without(ew__redis_str(keys->element[i]), EW__RRQ_QUEUE);
        if (name.len > 0 && tally_of(w, name) == NULL) {
            return EW_ENOMEM;
        }
    }
    return EW_OK;
}

/* ---- counts ---- */

static ew_err count_job(walk *w, const redisReply *fields) {
    ew__job_status status;
    int64_t enqueued, started;
    ew_str queue = ew__redis_str(ew__redis_at(fields, 1));
    if (!ew__job_status_parse(ew__redis_str(ew__redis_at(fields, 0)), &status)) {
        return EW_OK;
    }
    tally *one = tally_of(w, queue.len > 0 ? ew__queue_name(queue) : EW_STR(EW__JOB_QUEUE));
    if (one == NULL) {
        return EW_ENOMEM;
    }
    uint64_t *const counts[EW__JOB_STATUSES] = {
        [EW__JOB_ACTIVE] = &one->stats.active,       [EW__JOB_RETRYING] = &one->stats.retrying,
        [EW__JOB_COMPLETED] = &one->stats.completed, [EW__JOB_FAILED] = &one->stats.failed,
        [EW__JOB_CANCELLED] = &one->stats.cancelled,
    };
    if (counts[status] != NULL) {
        ++*counts[status];
    }
    one->stats.dead += status == EW__JOB_FAILED; /* each is in a list of dead letters until it is requeued */
    if (ew__when_parse(ew__redis_str(ew__redis_at(fields, 2)), &enqueued) &&
        ew__when_parse(ew__redis_str(ew__redis_at(fields, 3)), &started) && started >= enqueued &&
        started - enqueued <= INT64_MAX - one->waited) {
        one->waited += started - enqueued;
        one->began++;
    }
    return EW_OK;
}

static ew_err count_jobs(walk *w, const redisReply *keys) {
    ew__redis_link *link = &w->self->link;
    uint32_t most = w->op->u.queues.max_scan;
    size_t n = 0;
    ew_err err = note_queues(w, keys);
    for (size_t i = 0; i < ew__redis_n(keys) && err == EW_OK; i++) {
        ew_str id = without(ew__redis_str(keys->element[i]), EW__RRQ_JOB);
        if (id.len == 0 || w->partial) {
            continue;
        }
        if (most != 0 && w->looked >= most) {
            w->partial = true;
            continue;
        }
        ew__redis_word(link, "HMGET");
        ew__redis_key(link, EW__RRQ_JOB, id);
        ew__redis_word(link, "status");
        ew__redis_word(link, "queue_name");
        ew__redis_word(link, "enqueue_time");
        ew__redis_word(link, "start_time");
        err = ew__redis_end(link);
        w->looked++;
        n += err == EW_OK;
    }
    for (; n > 0; n--) {
        redisReply *fields;
        ew_err read = ew__redis_reply(link, &fields);
        if (read != EW_OK) {
            return read;
        }
        err = err == EW_OK ? count_job(w, fields) : err;
        freeReplyObject(fields);
    }
    return err;
}

/* ---- one queue ---- */

/* How many wait, the first and the last of them. */
static ew_err measure(walk *w, ew__queue_stats *stats) {
    ew__redis_link *link = &w->self->link;
    redisReply *replies[3] = {NULL, NULL, NULL};
    ew_err err = EW_OK;
    for (int i = 0; i < 3 && err == EW_OK; i++) {
        static const char *const words[] = {"ZCARD", "ZRANGE", "ZREVRANGE"};
        ew__redis_word(link, words[i]);
        ew__redis_key(link, EW__RRQ_QUEUE, stats->name);
        if (i > 0) {
            ew__redis_word(link, "0");
            ew__redis_word(link, "0");
            ew__redis_word(link, "WITHSCORES");
        }
        err = ew__redis_end(link);
    }
    if (err != EW_OK) {
        ew__redis_close(link);
    }
    for (int i = 0; i < 3 && err == EW_OK; i++) {
        err = ew__redis_reply(link, &replies[i]);
    }
    if (err == EW_OK) { /* a key of another type has none */
        stats->pending = ew__redis_count(replies[0]);
        (void)ew__redis_score(ew__redis_str(ew__redis_at(replies[1], 1)), &stats->oldest_due);
        (void)ew__redis_score(ew__redis_str(ew__redis_at(replies[2], 1)), &stats->newest_due);
    }
    for (int i = 0; i < 3; i++) {
        freeReplyObject(replies[i]);
    }
    return err;
}

static ew_err note_paused(walk *w) {
    redisReply *reply;
    ew__redis_word(&w->self->link, "SMEMBERS");
    ew__redis_word(&w->self->link, EW__REDIS_PAUSED);
    ew_err err = do_ended(w, &reply);
    for (size_t i = 0; i < ew__redis_n(reply) && err == EW_OK; i++) {
        ew_str name = ew__redis_str(reply->element[i]);
        tally *one = name.len > 0 ? tally_of(w, name) : NULL;
        if (one != NULL) {
            one->stats.paused = true;
        } else {
            err = name.len > 0 ? EW_ENOMEM : EW_OK;
        }
    }
    freeReplyObject(reply);
    return err;
}

static void close_walk(walk *w) {
    if ((w->op->err == EW_ECONNECT || w->op->err == EW_ETIMEOUT) && w->op->problem[0] == '\0') {
        (void)snprintf(w->op->problem, sizeof w->op->problem, "%s", w->self->link.problem);
    }
}

void ew__redis_queues(ew__jobs_redis_store *self, ew__store_request *op) {
    ew__op_queues *queues = &op->u.queues;
    walk w = {.self = self, .op = op};
    ew__map_init(&w.queues, self->backend.env);
    /* one walk for both: "rrq:[jq]*" is jobs and queues */
    ew_err err =
        queues->counts ? walk_keys(&w, "rrq:[jq]*", count_jobs) : walk_keys(&w, EW__RRQ_QUEUE "*", note_queues);
    queues->ret_partial = w.partial;
    if (err == EW_OK && w.partial && queues->counts) { /* the names of all queues nevertheless */
        w.partial = false;
        err = walk_keys(&w, EW__RRQ_QUEUE "*", note_queues);
    }
    if (err == EW_OK) {
        err = note_paused(&w);
    }
    queues->ret_n = 0;
    queues->ret = err == EW_OK ? ew__arena_alloc(op->arena, (w.queues.n + 1) * sizeof *queues->ret) : NULL;
    err = err == EW_OK && queues->ret == NULL ? EW_ENOMEM : err;
    for (size_t i = 0; i < w.queues.n && err == EW_OK; i++) {
        tally *one = w.queues.entries[i].value;
        err = measure(&w, &one->stats);
        if (queues->counts && one->began > 0) {
            one->stats.average_wait_ms = one->waited / (int64_t)one->began;
        }
        queues->ret[queues->ret_n++] = one->stats;
    }
    op->err = err;
    close_walk(&w);
    ew__map_done(&w.queues);
}

/* ---- workers ---- */

static ew_err keep_worker(walk *w, ew_str id, const redisReply *record, const redisReply *life) {
    ew__arena *arena = w->op->arena;
    int64_t ttl = ew__redis_number(life, -1);
    if (ew__redis_str(record).len == 0 || ttl <= 0) {
        return EW_OK; /* gone meanwhile, or of another type */
    }
    for (size_t i = 0; i < w->n_workers; i++) {
        if (ew__str_is(w->workers[i].id, id)) {
            return EW_OK; /* a walk may show a key twice */
        }
    }
    if (w->n_workers == w->cap_workers) {
        size_t cap = w->cap_workers == 0 ? 16 : 2 * w->cap_workers;
        ew__worker_record *more = ew__arena_alloc(arena, cap * sizeof *more);
        if (more == NULL) {
            return EW_ENOMEM;
        }
        if (w->n_workers > 0) {
            memcpy(more, w->workers, w->n_workers * sizeof *more);
        }
        w->workers = more;
        w->cap_workers = cap;
    }
    ew__worker_record *one = &w->workers[w->n_workers];
    one->ttl_ms = (uint64_t)ttl;
    ew_err err = ew__arena_str(arena, id, &one->id);
    if (err == EW_OK) {
        err = ew__arena_str(arena, ew__redis_str(record), &one->record);
    }
    w->n_workers += err == EW_OK;
    return err;
}

static ew_err note_workers(walk *w, const redisReply *keys) {
    ew_err err = EW_OK;
    for (size_t i = 0; i < ew__redis_n(keys) && err == EW_OK; i++) {
        ew_str id = without(ew__redis_str(keys->element[i]), EW__RRQ_HEALTH);
        redisReply *record = NULL, *life = NULL;
        ew__redis_word(&w->self->link, "GET");
        ew__redis_key(&w->self->link, EW__RRQ_HEALTH, id);
        err = ew__redis_end(&w->self->link);
        if (err == EW_OK) {
            err = ew__redis_reply(&w->self->link, &record);
        }
        if (err == EW_OK) {
            ew__redis_word(&w->self->link, "PTTL");
            ew__redis_key(&w->self->link, EW__RRQ_HEALTH, id);
            err = do_ended(w, &life);
        }
        if (err == EW_OK) {
            err = keep_worker(w, id, record, life);
        }
        freeReplyObject(record);
        freeReplyObject(life);
    }
    return err;
}

void ew__redis_workers(ew__jobs_redis_store *self, ew__store_request *op) {
    walk w = {.self = self, .op = op};
    op->err = walk_keys(&w, EW__RRQ_HEALTH "*", note_workers);
    op->u.workers.ret = w.workers;
    op->u.workers.ret_n = w.n_workers;
    close_walk(&w);
}
