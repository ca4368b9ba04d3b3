/*
 * store/redis/list.c: lists of jobs. See redis.h.
 *
 * RRQ keeps no index of jobs by time or function. So, as RRQ's own tools do, a list in general looks at all jobs; but
 * at four fields of each, in pipelines, and for a few seconds at most: the lists of a huge store are of what was seen
 * by then. Only the jobs that are shown are read whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "store/redis/redis.h"
#include <stdio.h>
#include <stdlib.h>

#define PAGE 1000
#define LONGEST_MS 5000

/* A job that matches. */
typedef struct pick {
    int64_t at;   /* later ones come first */
    uint64_t pos; /* then by the order in which they were found */
    size_t len;
    char *id;
} pick;

typedef struct listing {
    ew__jobs_redis_store *self;
    ew__store_request *op;
    ew__op_list *list;
    pick *picks;
    size_t n, cap, want; /* no more than `want` are needed in the end */
    uint64_t total, seen;
    char cursor[24];
    bool last;
} listing;

/* ---- what matches, in order ---- */

static int compare(const void *left, const void *right) {
    const pick *a = left, *b = right;
    if (a->at != b->at) {
        return a->at > b->at ? -1 : 1;
    }
    if (a->pos != b->pos) {
        return a->pos < b->pos ? -1 : 1;
    }
    size_t n = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->id, b->id, n);
    return order != 0 ? order : a->len < b->len ? -1 : a->len > b->len;
}

static void drop_from(listing *l, size_t first) {
    for (size_t i = first; i < l->n; i++) {
        ew__free(l->self->backend.env, l->picks[i].id, l->picks[i].len);
    }
    l->n = first < l->n ? first : l->n;
}

/* The best ones, each once: a walk over all keys may show a key twice. */
static void cut(listing *l) {
    size_t kept = 0;
    if (l->n > 0) {
        qsort(l->picks, l->n, sizeof *l->picks, compare);
    }
    for (size_t i = 0; i < l->n; i++) {
        if (kept > 0 && compare(&l->picks[kept - 1], &l->picks[i]) == 0) {
            ew__free(l->self->backend.env, l->picks[i].id, l->picks[i].len);
            l->total--;
        } else {
            l->picks[kept++] = l->picks[i];
        }
    }
    l->n = kept;
    drop_from(l, l->want < kept ? l->want : kept);
}

static ew_err add(listing *l, ew_str id, int64_t at, uint64_t pos) {
    const ew_env *env = l->self->backend.env;
    l->total++;
    if (id.len == 0 || l->want == 0) {
        return EW_OK;
    }
    if (l->n >= 2 * l->want && l->n >= PAGE) {
        cut(l);
    }
    if (l->n == l->cap) {
        size_t cap = l->cap == 0 ? 64 : 2 * l->cap;
        pick *picks = ew__realloc(env, l->picks, l->cap * sizeof *picks, cap * sizeof *picks);
        if (picks == NULL) {
            return EW_ENOMEM;
        }
        l->picks = picks;
        l->cap = cap;
    }
    char *copy = ew__alloc(env, id.len);
    if (copy == NULL) {
        return EW_ENOMEM;
    }
    memcpy(copy, id.ptr, id.len);
    l->picks[l->n++] = (pick){.at = at, .pos = pos, .len = id.len, .id = copy};
    return EW_OK;
}

static bool matches(const ew__op_list *list, const redisReply *fields) {
    ew__job_status status;
    ew_str queue = ew__redis_str(ew__redis_at(fields, 1));
    if (!ew__job_status_parse(ew__redis_str(ew__redis_at(fields, 0)), &status)) {
        return false;
    }
    queue = queue.len > 0 ? ew__queue_name(queue) : EW_STR(EW__JOB_QUEUE);
    return (list->status == EW__JOB_STATUSES || list->waiting || list->status == status) &&
           (list->dlq.len == 0 || status == EW__JOB_FAILED) &&
           (list->queue.len == 0 || list->waiting || ew__str_is(queue, list->queue)) &&
           (list->function.len == 0 || ew__str_is(ew__redis_str(ew__redis_at(fields, 2)), list->function));
}

/* ---- pages of ids ---- */

static void ask_page(listing *l) {
    ew__redis_link *link = &l->self->link;
    if (l->list->dlq.len > 0 || l->list->waiting) {
        bool dead = l->list->dlq.len > 0;
        ew__redis_word(link, dead ? "LRANGE" : "ZRANGE");
        ew__redis_key(link, dead ? EW__RRQ_DLQ : EW__RRQ_QUEUE, dead ? l->list->dlq : l->list->queue);
        ew__redis_uint(link, l->seen);
        ew__redis_uint(link, l->seen + PAGE - 1);
        return;
    }
    ew__redis_word(link, "SCAN");
    ew__redis_word(link, l->cursor);
    ew__redis_word(link, "MATCH");
    ew__redis_word(link, EW__RRQ_JOB "*");
    ew__redis_word(link, "COUNT");
    ew__redis_uint(link, PAGE);
}

/* The ids, or the keys, of a page. Borrowed from it. */
static const redisReply *open_page(listing *l, const redisReply *page) {
    if (l->list->dlq.len > 0 || l->list->waiting) {
        l->last = ew__redis_n(page) < PAGE;
        return page;
    }
    ew_str cursor = ew__redis_str(ew__redis_at(page, 0));
    l->last = cursor.len == 0 || cursor.len >= sizeof l->cursor || ew__str_is(cursor, EW_STR("0"));
    if (!l->last) {
        memcpy(l->cursor, cursor.ptr, cursor.len);
        l->cursor[cursor.len] = '\0';
    }
    return ew__redis_at(page, 1);
}

static ew_str id_of(const listing *l, const redisReply *name) {
    ew_str text = ew__redis_str(name);
    size_t prefix = sizeof EW__RRQ_JOB - 1;
    bool key = l->list->dlq.len == 0 && !l->list->waiting;
    return !key ? text : text.len > prefix ? ew__str(text.ptr + prefix, text.len - prefix) : ew__str(NULL, 0);
}

static ew_err ask_fields(listing *l, const redisReply *ids) {
    ew__redis_link *link = &l->self->link;
    ew_err err = EW_OK;
    for (size_t i = 0; i < ew__redis_n(ids) && err == EW_OK; i++) {
        ew__redis_word(link, "HMGET");
        ew__redis_key(link, EW__RRQ_JOB, id_of(l, ids->element[i]));
        ew__redis_word(link, "status");
        ew__redis_word(link, "queue_name");
        ew__redis_word(link, "function_name");
        ew__redis_word(link, l->list->dlq.len > 0 ? "completion_time" : "enqueue_time");
        err = ew__redis_end(link);
    }
    return err;
}

static ew_err read_fields(listing *l, const redisReply *ids, size_t i, const redisReply *fields) {
    bool ordered = l->list->dlq.len > 0 || l->list->waiting;
    int64_t at = 0;
    uint64_t pos = ordered ? l->seen + i : 0;
    if (!matches(l->list, fields)) {
        return EW_OK;
    }
    if (!l->list->waiting) {
        (void)ew__when_parse(ew__redis_str(ew__redis_at(fields, 3)), &at);
    }
    return add(l, id_of(l, ids->element[i]), at, pos);
}

static ew_err look_at_page(listing *l, const redisReply *page) {
    const redisReply *ids = open_page(l, page);
    ew_err err = ask_fields(l, ids);
    if (err != EW_OK) { /* what was asked would be answered to somebody else */
        ew__redis_close(&l->self->link);
        return err;
    }
    for (size_t i = 0; i < ew__redis_n(ids); i++) {
        redisReply *fields = NULL;
        ew_err read = ew__redis_reply(&l->self->link, &fields);
        if (read != EW_OK) {
            return read;
        }
        err = err == EW_OK ? read_fields(l, ids, i, fields) : err;
        freeReplyObject(fields);
    }
    l->seen += ew__redis_n(ids);
    return err;
}

static ew_err collect(listing *l) {
    uint64_t end = ew__redis_now(l->self) + EW__MS(LONGEST_MS);
    ew_err err = EW_OK;
    while (err == EW_OK && !l->last && ew__redis_now(l->self) < end) {
        redisReply *page = NULL;
        ask_page(l);
        err = ew__redis_end(&l->self->link);
        if (err == EW_OK) {
            err = ew__redis_do(l->self, &page, l->op->problem);
        }
        if (err == EW_OK) {
            err = look_at_page(l, page);
        }
        freeReplyObject(page);
    }
    cut(l);
    return err;
}

/* ---- the jobs themselves ---- */

/* Picks from `first` on, read whole. Those that have gone meanwhile are left out. */
static ew_err read_some(listing *l, size_t first, size_t n) {
    ew__redis_link *link = &l->self->link;
    ew_err err = EW_OK;
    if (!l->picks) {
        return EW_OK;
    }
    for (size_t i = first; i < first + n && err == EW_OK; i++) {
        ew__redis_word(link, "HGETALL");
        ew__redis_key(link, EW__RRQ_JOB, ew__str(l->picks[i].id, l->picks[i].len));
        err = ew__redis_end(link);
    }
    if (err != EW_OK) {
        ew__redis_close(link);
        return err;
    }
    for (size_t i = first; i < first + n; i++) {
        redisReply *hash = NULL;
        ew_err read = ew__redis_reply(link, &hash);
        if (read != EW_OK) {
            return read;
        }
        if (err == EW_OK && ew__redis_n(hash) > 0) {
            ew__job *job = &l->list->ret[l->list->ret_n];
            ew_err got = ew__redis_read_job(hash, ew__str(l->picks[i].id, l->picks[i].len), l->op->arena, job, NULL);
            l->list->ret_n += got == EW_OK;
            err = got == EW_ENOMEM ? got : EW_OK;
        }
        freeReplyObject(hash);
    }
    return err;
}

static ew_err read_jobs(listing *l) {
    size_t first = l->list->offset < l->n ? l->list->offset : l->n, n = l->n - first;
    n = n < l->list->limit ? n : l->list->limit;
    l->list->ret = ew__arena_alloc(l->op->arena, (n + 1) * sizeof *l->list->ret);
    ew_err err = l->list->ret != NULL ? EW_OK : EW_ENOMEM;
    for (size_t done = 0; done < n && err == EW_OK; done += 128) {
        err = read_some(l, first + done, n - done < 128 ? n - done : 128);
    }
    return err;
}

/* What waits, without a look at each: the queue is in order. */
static ew_err collect_waiting(listing *l) {
    ew__redis_link *link = &l->self->link;
    redisReply *reply = NULL;
    ew__redis_word(link, "ZCARD");
    ew__redis_key(link, EW__RRQ_QUEUE, l->list->queue);
    ew_err err = ew__redis_end(link);
    if (err == EW_OK) {
        err = ew__redis_do(l->self, &reply, l->op->problem);
    }
    uint64_t total = ew__redis_count(reply);
    freeReplyObject(reply);
    reply = NULL;
    if (err != EW_OK || l->list->limit == 0) {
        l->total = total;
        return err;
    }
    ew__redis_word(link, "ZRANGE");
    ew__redis_key(link, EW__RRQ_QUEUE, l->list->queue);
    ew__redis_uint(link, l->list->offset);
    ew__redis_uint(link, (uint64_t)l->list->offset + l->list->limit - 1);
    err = ew__redis_end(link);
    if (err == EW_OK) {
        err = ew__redis_do(l->self, &reply, l->op->problem);
    }
    for (size_t i = 0; i < ew__redis_n(reply) && err == EW_OK; i++) {
        err = add(l, ew__redis_str(reply->element[i]), 0, i);
    }
    freeReplyObject(reply);
    l->total = total;
    return err;
}

void ew__redis_list(ew__jobs_redis_store *self, ew__store_request *op) {
    listing l = {.self = self, .op = op, .list = &op->u.list, .cursor = "0"};
    bool plain = l.list->waiting && l.list->dlq.len == 0 && l.list->function.len == 0;
    l.list->ret = NULL;
    l.list->ret_n = 0;
    l.want = plain ? l.list->limit : (size_t)l.list->offset + l.list->limit;
    op->err = plain ? collect_waiting(&l) : collect(&l);
    if (plain) {
        uint32_t offset = l.list->offset;
        l.list->offset = 0; /* only what is shown was asked for */
        op->err = op->err == EW_OK ? read_jobs(&l) : op->err;
        l.list->offset = offset;
    } else if (op->err == EW_OK) {
        op->err = read_jobs(&l);
    }
    l.list->ret_total = l.total;
    if ((op->err == EW_ECONNECT || op->err == EW_ETIMEOUT) && op->problem[0] == '\0') {
        (void)snprintf(op->problem, sizeof op->problem, "%s", self->link.problem);
    }
    drop_from(&l, 0);
    ew__free(self->backend.env, l.picks, l.cap * sizeof *l.picks);
}
