/*
 * store/sqlite/sqlite.c: jobs in a file of SQLite: a batch of operations is one transaction. See jobs.h and
 * sqlite.h.
 *
 * An operation that is refused has written nothing, and the batch goes on. When the transaction itself fails, none of
 * it has happened, and nobody is told otherwise: what wanted to write gets the error, what only looked is looked up
 * again. After a failure of the disk the file is opened anew for the next batch, so that things go on by themselves
 * once it works.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define REMOVED "the file was removed while it was in use; put it back"

/* ---- operations ---- */

static bool writes(const ew__store_request *op) {
    switch (op->kind) {
    case EW__OP_EXPIRED:
    case EW__OP_GET:
    case EW__OP_LIST:
    case EW__OP_QUEUES:
    case EW__OP_WORKERS:
        return false;
    default:
        return true;
    }
}

static ew_err run_one(ew__jobs_file *self, ew__store_request *op) {
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        return ew__jobs_sqlite_enqueue(self, &op->u.enqueue, op->arena);
    case EW__OP_CLAIM:
        return ew__jobs_sqlite_claim(self, &op->u.claim, op->arena);
    case EW__OP_CHANGE:
        return ew__jobs_sqlite_change(self, &op->u.change);
    case EW__OP_RENEW:
        return ew__jobs_sqlite_renew(self, &op->u.renew);
    case EW__OP_EXPIRED:
        return ew__jobs_sqlite_expired(self, &op->u.expired, op->arena);
    case EW__OP_CHUNKS:
        return ew__jobs_sqlite_chunks(self, &op->u.chunks);
    case EW__OP_GET:
        return ew__jobs_sqlite_get(self, &op->u.get, op->arena);
    case EW__OP_LIST:
        return ew__jobs_sqlite_list(self, &op->u.list, op->arena);
    case EW__OP_CANCEL:
        return ew__jobs_sqlite_cancel(self, &op->u.cancel);
    case EW__OP_REQUEUE:
        return ew__jobs_sqlite_requeue(self, &op->u.requeue);
    case EW__OP_QUEUES:
        return ew__jobs_sqlite_queues(self, &op->u.queues, op->arena);
    case EW__OP_PAUSE:
        return ew__jobs_sqlite_pause(self, &op->u.pause);
    case EW__OP_WORKERS:
        return ew__jobs_sqlite_workers(self, &op->u.workers, op->arena);
    case EW__OP_SWEEP:
        return ew__jobs_sqlite_sweep(self, &op->u.sweep);
    default:
        return EW_EINVAL;
    }
}

/* ---- transactions ---- */

static void fail_op(const ew__jobs_file *self, ew__store_request *op) {
    op->err = ew__sql_err(self);
    (void)snprintf(op->problem, sizeof op->problem, "%.100s: %s", self->path,
                   self->code == SQLITE_OK ? ""
                   : self->why             ? self->why
                                           : sqlite3_errstr(self->code));
}

static void begin(ew__jobs_file *self) { (void)ew__sql_do(self, ew__sql_use(self, EW__SQL_BEGIN)); }

/* Commits, or takes everything back; then self->code is as it was. */
static void end(ew__jobs_file *self) {
    if (self->code == SQLITE_OK) {
        (void)ew__sql_do(self, ew__sql_use(self, EW__SQL_COMMIT));
    }
    if (self->db != NULL && !sqlite3_get_autocommit(self->db)) { /* many failures have rolled back already */
        int code = self->code;
        self->code = SQLITE_OK;
        (void)ew__sql_do(self, ew__sql_use(self, EW__SQL_ROLLBACK));
        self->code = code;
    }
}

/* Failures that may be the connection's: it cannot be trusted any more. */
static bool is_serious(int code) {
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_BUSY:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        return false;
    default:
        return true;
    }
}

/* Whether it can be used, after it was opened again if need be. */
static bool is_ready(ew__jobs_file *self) {
    if (self->db != NULL && (is_serious(self->code) || !sqlite3_get_autocommit(self->db))) {
        ew__log(self->env, EW_LOG_WARN, "store", "jobs: %s: %s", self->path, sqlite3_errstr(self->code));
        ew__jobs_file_close(self);
    }
    if (self->db != NULL && !ew__file_identity_holds(self->path, &self->identity)) {
        ew__log(self->env, EW_LOG_ERROR, "store", "jobs: %s was removed or replaced while it was in use", self->path);
        ew__jobs_file_close(self);
        self->removed = true;
    }
    self->code = SQLITE_OK;
    self->why = NULL;
    if (self->db == NULL) {
        self->code = ew__jobs_file_open(self, false, &self->why);
        self->version = -1;
        self->removed = self->removed && self->code != SQLITE_OK;
        if (self->removed && self->why == NULL) {
            self->why = REMOVED;
        }
    }
    return self->code == SQLITE_OK;
}

/* One operation by itself, in a transaction if it writes. */
static void run_alone(ew__jobs_file *self, ew__store_request *op) {
    bool ready = is_ready(self);
    if (ready && writes(op)) {
        begin(self);
    }
    if (self->code == SQLITE_OK) {
        op->err = run_one(self, op);
    }
    if (ready && writes(op)) {
        end(self);
    }
    if (self->code != SQLITE_OK) {
        fail_op(self, op);
    }
}

static void run_each(ew__jobs_file *self, ew__store_request *ops) {
    for (ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op)) {
        run_alone(self, op);
    }
}

/* None of the batch has been written. */
static void fail_batch(ew__jobs_file *self, ew__store_request *ops) {
    int code = self->code;
    for (ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op)) {
        if (writes(op)) {
            self->code = code;
            fail_op(self, op);
        }
    }
    for (ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op)) {
        if (!writes(op)) { /* it may have seen what then was not written */
            run_alone(self, op);
        }
    }
    self->code = self->code != SQLITE_OK ? self->code : code;
}

static void run_together(ew__jobs_file *self, ew__store_request *ops) {
    begin(self);
    for (ew__store_request *op = ops; op != NULL && self->code == SQLITE_OK; op = ew__store_request_after(op)) {
        op->err = run_one(self, op);
    }
    end(self);
    int kind = self->code & 0xff;
    if (kind == SQLITE_NOMEM || kind == SQLITE_TOOBIG) { /* one of them has failed: the others need not */
        run_each(self, ops);
    } else if (kind != SQLITE_OK) {
        fail_batch(self, ops);
    }
}

static void file_run(ew__backend *backend, ew__store_request *ops) {
    ew__jobs_file *self = ew__jobs_file_of(backend);
    bool any_writes = false;
    for (const ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op)) {
        any_writes = any_writes || writes(op);
    }
    if (!is_ready(self)) {
        for (ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op)) {
            fail_op(self, op);
        }
    } else if (any_writes) {
        run_together(self, ops);
    } else {
        run_each(self, ops);
    }
    bool failed = is_serious(self->code) || (self->code & 0xff) == SQLITE_FULL;
    self->back = self->back || (self->down && !failed && any_writes);
    self->down = failed || (self->down && !any_writes);
    if (self->back) {
        self->backend.idle_ms = 1; /* a look follows, and tells it */
    }
}

/* ---- making and freeing ---- */

/* Which boot this is, as a number; the kernel's id is a random UUID. 0: not known. */
static int64_t read_boot(void) {
    char text[64];
    uint8_t bytes[8] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    size_t digits = 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    for (ssize_t i = 0; i < n && digits < 16; i++) { /* the first 16 digits, without the dashes */
        if (text[i] != '-') {
            text[digits++] = text[i];
        }
    }
    uint64_t boot = 0;
    if (digits == 16 && ew__unhex(ew__str(text, 16), bytes, sizeof bytes)) {
        memcpy(&boot, bytes, sizeof boot);
    }
    return (int64_t)(boot >> 1);
}

static const char *file_notice(ew__backend *backend) { return ew__jobs_file_of(backend)->notice; }

static void file_free(ew__backend *backend) {
    ew__jobs_file *self = ew__jobs_file_of(backend);
    ew__jobs_file_close(self);
    ew__free(self->env, self->path, self->path_size);
    ew__free(self->env, self, sizeof *self);
}

/* SQLite gives a meaning to names like ":memory:" and "file:x"; a path with a folder has none but its own. */
static ew__jobs_file *make(const ew_env *env, const char *path) {
    static const ew__backend_ops ops = {.run = file_run,
                                        .watch_fd = ew__jobs_sqlite_watch_fd,
                                        .look = ew__jobs_sqlite_look,
                                        .want = ew__jobs_sqlite_want,
                                        .notice = file_notice,
                                        .free = file_free};
    ew__jobs_file *self = ew__zalloc(env, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->backend = (ew__backend){.ops = &ops, .env = env, .name = "sqlite"};
    self->env = env;
    self->inotify = self->watched = -1;
    self->version = -1;
    self->path_size = strlen(path) + sizeof "./";
    self->path = ew__alloc(env, self->path_size);
    if (self->path == NULL) {
        ew__free(env, self, sizeof *self);
        return NULL;
    }
    (void)snprintf(self->path, self->path_size, "%s%s", path[0] == '/' ? "" : "./", path);
    self->boot = read_boot();
    return self;
}

ew_err ew__jobs_sqlite(const ew_env *env, const char *path, ew__backend **ret, char *problem, size_t problem_size) {
    const char *why = NULL;
    *ret = NULL;
    if (path[0] == '\0') {
        return EW_EINVAL;
    }
    ew__jobs_file *self = make(env, path);
    if (self == NULL) {
        return EW_ENOMEM;
    }
    self->code = ew__jobs_file_open(self, true, &why);
    if (self->code == SQLITE_OK) {
        *ret = &self->backend;
        return EW_OK;
    }
    if (problem != NULL) {
        (void)snprintf(problem, problem_size, "%.200s: %s", path, why != NULL ? why : sqlite3_errstr(self->code));
    }
    int kind = self->code & 0xff;
    ew_err err = kind == SQLITE_PERM || kind == SQLITE_READONLY ? EW_EACCESS : ew__sql_err(self);
    file_free(&self->backend);
    return err;
}
