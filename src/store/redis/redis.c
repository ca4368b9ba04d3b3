/*
 * store/redis/redis.c: jobs in Redis: the pipeline of operations, and the connection, which is made again when it is
 * lost. See redis.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"
#include <poll.h>
#include <stdio.h>

#define WINDOW_OPS 512 /* in one pipeline */
#define WINDOW_BYTES ((size_t)4 * 1024 * 1024)
#define DIAL_MS 1000 /* to connect again */
#define FIRST_DIAL_MS 5000
#define PATIENCE_MS 1000 /* that operations wait for a connection */
#define TRIES_MAX 6
#define RETRY_FIRST_MS 50
#define RETRY_MAX_MS 2000
#define EVERYTHING (EW__CHANGED_QUEUES | EW__CHANGED_JOBS | EW__CHANGED_CANCELS)

/* ---- scripts ---- */

void ew__redis_eval(ew__jobs_redis_store *self, ew__redis_script script, size_t n_keys) {
    ew__redis_word(&self->link, "EVALSHA");
    ew__redis_word(&self->link, self->shas[script]);
    ew__redis_uint(&self->link, n_keys);
}

bool ew__redis_forgot(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR && ew__str_has_prefix(ew__str(reply->str, reply->len), EW_STR("NOSCRIPT"));
}

/* One "SCRIPT LOAD" each; the answers are the names by which they are called. */
ew_err ew__redis_load(ew__jobs_redis_store *self) {
    ew__redis_link *link = &self->link;
    ew_err err = EW_OK;
    for (size_t i = 0; i < EW__SCRIPTS && err == EW_OK; i++) {
        ew__redis_word(link, "SCRIPT");
        ew__redis_word(link, "LOAD");
        ew__redis_word(link, ew__redis_scripts[i]);
        err = ew__redis_end(link);
    }
    for (size_t i = 0; i < EW__SCRIPTS && err == EW_OK; i++) {
        redisReply *reply;
        err = ew__redis_reply(link, &reply);
        if (err != EW_OK) {
            break;
        }
        ew_str sha = ew__redis_str(reply);
        err = ew__redis_err(reply, link->problem);
        if (err == EW_OK && sha.len != sizeof self->shas[i] - 1) {
            (void)snprintf(link->problem, sizeof link->problem, "redis at %.80s does not load scripts",
                           self->where.name);
            err = EW_EPROTO;
        }
        if (err == EW_OK) {
            memcpy(self->shas[i], sha.ptr, sha.len);
        }
        freeReplyObject(reply);
    }
    if (err != EW_OK) {
        ew__redis_close(link);
    }
    return err;
}

/* ---- the connection ---- */

void ew__redis_retry_failed(const ew__jobs_redis_store *self, ew__redis_retry *retry) {
    retry->ms = retry->ms == 0 ? RETRY_FIRST_MS : retry->ms * 2 < RETRY_MAX_MS ? retry->ms * 2 : RETRY_MAX_MS;
    retry->at = ew__redis_now(self) + EW__MS(retry->ms);
}

static ew_err dial(ew__jobs_redis_store *self, uint64_t timeout_ms) {
    ew_err err = ew__redis_open(&self->link, timeout_ms);
    if (err == EW_OK) {
        err = ew__redis_load(self);
    }
    if (err != EW_OK) {
        ew__redis_retry_failed(self, &self->link_retry);
        return err;
    }
    self->link_retry = (ew__redis_retry){0};
    return EW_OK;
}

static void come_back(ew__jobs_redis_store *self) {
    ew__log(self->backend.env, EW_LOG_INFO, "store", "redis at %.200s can be reached again", self->where.name);
    self->news |= EW__CHANGED_BACK | EVERYTHING;
    ew__redis_close(&self->watch); /* it may be dead without knowing it */
    self->hints = EW__HINTS_NONE;
    self->watch_retry = (ew__redis_retry){0};
}

/* Who is patient has a last try at the end of its patience, however long the pause would be. */
bool ew__redis_ready(ew__jobs_redis_store *self, bool patient) {
    if (ew__redis_is_open(&self->link)) {
        return true;
    }
    uint64_t end = ew__redis_now(self) + (patient ? EW__MS(PATIENCE_MS) : 0);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        uint64_t now = ew__redis_now(self), at = self->link_retry.at < end ? self->link_retry.at : end;
        if (self->link_retry.at > now && !patient) {
            return false;
        }
        if (at > now) {
            (void)poll(NULL, 0, (int)((at - now + EW__MS(1) - 1) / EW__MS(1)));
        }
        if (dial(self, DIAL_MS) == EW_OK) {
            come_back(self);
            return true;
        }
        if (ew__redis_now(self) >= end) {
            return false;
        }
    }
    return false;
}

/* ---- operations ---- */

static void fail(ew__jobs_redis_store *self, ew__store_request *op, ew_err err) {
    op->err = err == EW_EPROTO ? EW_EIO : err;
    (void)snprintf(op->problem, sizeof op->problem, "%s",
                   self->link.problem[0] != '\0' ? self->link.problem : ew_err_text(err));
}

/* A server that has become somebody's replica: the name may lead to another one by now. */
static void leave_replica(ew__jobs_redis_store *self, const redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR && ew__str_has_prefix(ew__str(reply->str, reply->len), EW_STR("READONLY"))) {
        self->left = true;
    }
}

/* A connection that was lost in the middle: told at once. */
static void note_loss(ew__jobs_redis_store *self) {
    if (!ew__redis_is_open(&self->link)) {
        ew__log(self->backend.env, EW_LOG_WARN, "store", "%s", self->link.problem);
    }
}

/* To operations a right that was taken away is trouble of the store like any other. */
ew_err ew__redis_op_err(const redisReply *reply, char problem[EW__REDIS_PROBLEM]) {
    ew_err err = ew__redis_err(reply, problem);
    return err == EW_EACCESS ? EW_EIO : err;
}

ew_err ew__redis_do(ew__jobs_redis_store *self, redisReply **ret, char problem[EW__REDIS_PROBLEM]) {
    problem[0] = '\0';
    *ret = NULL;
    ew_err err = ew__redis_reply(&self->link, ret);
    if (err != EW_OK) {
        (void)snprintf(problem, EW__REDIS_PROBLEM, "%s", self->link.problem);
        note_loss(self);
        return err == EW_EPROTO ? EW_EIO : err;
    }
    err = ew__redis_op_err(*ret, problem);
    if (err != EW_OK) {
        if (ew__redis_forgot(*ret)) {
            (void)ew__redis_load(self); /* the next one will do */
        }
        freeReplyObject(*ret);
        *ret = NULL;
    }
    return err;
}

/* What is in one pipeline. */
typedef struct window {
    ew__store_request *ops[WINDOW_OPS];
    size_t n;
} window;

static void pack_one(ew__jobs_redis_store *self, window *w, ew__store_request *op) {
    op->problem[0] = '\0';
    ew_err err = ew__redis_pack(self, op);
    if (err == EW_OK) {
        w->ops[w->n++] = op;
        return;
    }
    op->err = err;
    if (op->problem[0] == '\0') {
        (void)snprintf(op->problem, sizeof op->problem, "%s", ew_err_text(err));
    }
}

/*
 * The replies of a pipeline. Operations whose script the server has forgotten stay in the window, to be sent again; so
 * do those after them that change nothing twice, because they may have wanted to see what the others did.
 */
static void read_window(ew__jobs_redis_store *self, window *w) {
    size_t again = 0;
    for (size_t i = 0; i < w->n; i++) {
        ew__store_request *op = w->ops[i];
        redisReply *reply = NULL;
        ew_err err = ew__redis_reply(&self->link, &reply);
        if (err != EW_OK) {
            for (size_t k = 0; k < again; k++) {
                fail(self, w->ops[k], err);
            }
            for (; i < w->n; i++) {
                fail(self, w->ops[i], err);
            }
            w->n = 0;
            note_loss(self);
            return;
        }
        bool simple = op->kind == EW__OP_GET || op->kind == EW__OP_PAUSE;
        if (ew__redis_forgot(reply) || (again > 0 && simple)) {
            w->ops[again++] = op;
        } else {
            ew__redis_unpack(self, op, reply);
        }
        leave_replica(self, reply);
        freeReplyObject(reply);
    }
    w->n = again;
}

static void send_again(ew__jobs_redis_store *self, window *w) {
    window second = {.n = 0};
    ew_err err = ew__redis_load(self);
    for (size_t i = 0; i < w->n; i++) {
        if (err == EW_OK) {
            pack_one(self, &second, w->ops[i]);
        } else {
            fail(self, w->ops[i], err);
        }
    }
    read_window(self, &second);
    for (size_t i = 0; i < second.n; i++) {
        (void)snprintf(self->link.problem, sizeof self->link.problem, "redis at %.80s forgets scripts",
                       self->where.name);
        fail(self, second.ops[i], EW_EIO);
    }
}

/* As many operations as fit into one pipeline; returns the first that does not. */
static ew__store_request *run_window(ew__jobs_redis_store *self, ew__store_request *first) {
    window w = {.n = 0};
    ew__store_request *end = first;
    while (end != NULL && ew__redis_is_plain(end->kind) && w.n < WINDOW_OPS && self->link.out.len < WINDOW_BYTES) {
        pack_one(self, &w, end);
        end = ew__store_request_after(end);
    }
    read_window(self, &w);
    if (w.n > 0) {
        send_again(self, &w);
    }
    for (ew__store_request *op = first; op != end; op = ew__store_request_after(op)) {
        if (op->kind == EW__OP_CLAIM) {
            ew__redis_quarantine(self, op);
        }
    }
    return end;
}

static void do_alone(ew__jobs_redis_store *self, ew__store_request *op) {
    op->problem[0] = '\0';
    switch (op->kind) {
    case EW__OP_LIST:
        ew__redis_list(self, op);
        break;
    case EW__OP_QUEUES:
        ew__redis_queues(self, op);
        break;
    case EW__OP_WORKERS:
        ew__redis_workers(self, op);
        break;
    case EW__OP_EXPIRED:
        ew__redis_expired(self, op);
        break;
    default:
        ew__redis_sweep(self, op);
        break;
    }
}

/* A script that was forgotten is there again the second time; none of these does harm twice. */
static void run_alone(ew__jobs_redis_store *self, ew__store_request *op) {
    do_alone(self, op);
    if (op->err == EW_EIO && ew__str_has_prefix(ew_str_from(op->problem), EW_STR("redis: NOSCRIPT"))) {
        do_alone(self, op);
    }
    op->err = op->err == EW_EPROTO ? EW_EIO : op->err;
    if (op->err != EW_OK && op->problem[0] == '\0') {
        (void)snprintf(op->problem, sizeof op->problem, "%s", ew_err_text(op->err));
    }
}

static void run(ew__backend *backend, ew__store_request *ops) {
    ew__jobs_redis_store *self = ew__redis_self(backend);
    bool patient = true;
    while (ops != NULL) {
        if (self->left) {
            self->left = false;
            ew__redis_close(&self->link);
            ew__redis_retry_failed(self, &self->link_retry);
        }
        if (!ew__redis_ready(self, patient)) {
            patient = false;
            fail(self, ops, EW_ECONNECT);
            ops = ew__store_request_after(ops);
        } else if (ew__redis_is_plain(ops->kind)) {
            ops = run_window(self, ops);
        } else {
            run_alone(self, ops);
            ops = ew__store_request_after(ops);
        }
    }
    ew__redis_plan(self);
}

/* ---- opening ---- */

static const char *notice(ew__backend *backend) { return ew__redis_self(backend)->notice; }

static void redis_free(ew__backend *backend) {
    ew__jobs_redis_store *self = ew__redis_self(backend);
    for (size_t i = 0; i < self->n_dlqs; i++) {
        ew__free(backend->env, self->dlqs[i], strlen(self->dlqs[i]) + 1);
    }
    ew__redis_done(&self->link);
    ew__redis_done(&self->watch);
    ew__free(backend->env, self, sizeof *self);
}

ew_err ew__jobs_redis(const ew_env *env, const char *url, ew__backend **ret, char *problem, size_t problem_size) {
    static const ew__backend_ops ops = {.run = run,
                                        .watch_fd = ew__redis_watch_fd,
                                        .look = ew__redis_look,
                                        .want = ew__redis_want,
                                        .notice = notice,
                                        .free = redis_free};
    char why[EW__REDIS_PROBLEM];
    *ret = NULL;
    ew__jobs_redis_store *self = ew__zalloc(env, sizeof *self);
    if (self == NULL) {
        return EW_ENOMEM;
    }
    self->backend = (ew__backend){.ops = &ops, .env = env, .name = "redis", .objects_only = true};
    self->workers_cursor[0] = self->dlqs_cursor[0] = '0';
    ew__redis_init(&self->link, env, &self->where);
    ew__redis_init(&self->watch, env, &self->where);
    ew_err err = ew__redis_where_parse(ew_str_from(url), &self->where, why);
    if (err == EW_OK) {
        err = dial(self, FIRST_DIAL_MS);
        (void)snprintf(why, sizeof why, "%s", self->link.problem);
    }
    if (err == EW_OK) {
        ew__redis_write_notice(self);
        ew__redis_plan(self);
        *ret = &self->backend;
        return EW_OK;
    }
    if (problem != NULL && problem_size > 0) {
        (void)snprintf(problem, problem_size, "%s", why[0] != '\0' ? why : ew_err_text(err));
    }
    redis_free(&self->backend);
    return err == EW_EPROTO ? EW_ECONNECT : err;
}
