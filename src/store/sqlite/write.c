/*
 * store/sqlite/write.c: what producers and people change in the SQLite store of jobs. See sqlite.h.
 *
 * Keys are times of the wall clock: they outlive a boot, and nothing is lost when one lives longer or shorter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"

/* ---- ENQUEUE ---- */

typedef struct key_holder {
    bool held;    /* the key lives */
    int64_t seq;  /* of its job; 0: that is gone */
    bool pending; /* and it has not begun */
} key_holder;

static key_holder find_holder(ew__jobs_file *self, const ew__op_enqueue *op, ew__arena *arena, ew_str *ret_id) {
    key_holder holder = {.held = false};
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_KEY_GET);
    ew__sql_int(self, stmt, 1, op->dedup);
    ew__sql_text(self, stmt, 2, op->key);
    ew__sql_int(self, stmt, 3, ew__sql_wall(self));
    if (ew__sql_row(self, stmt)) {
        holder.held = true;
        holder.pending = sqlite3_column_type(stmt, 1) != SQLITE_NULL && sqlite3_column_int(stmt, 1) == EW__JOB_PENDING;
        holder.seq = sqlite3_column_int64(stmt, 2);
        *ret_id = ew__sql_get(self, stmt, 0, arena);
    }
    ew__sql_end(stmt);
    return holder;
}

static void put_key(ew__jobs_file *self, const ew__op_enqueue *op, ew_str id) {
    int64_t now = ew__sql_wall(self);
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_KEY_PUT);
    ew__sql_int(self, stmt, 1, op->dedup);
    ew__sql_text(self, stmt, 2, op->key);
    ew__sql_text(self, stmt, 3, id);
    ew__sql_int(self, stmt, 4, op->key_ttl_ms < INT64_MAX - now ? now + op->key_ttl_ms : INT64_MAX);
    (void)ew__sql_do(self, stmt);
}

static void put_params(ew__jobs_file *self, ew__sql which, int64_t seq, const ew__job *job) {
    sqlite3_stmt *stmt = ew__sql_use(self, which);
    ew__sql_int(self, stmt, 1, seq);
    ew__sql_text(self, stmt, 2, job->params);
    ew__sql_text(self, stmt, 3, job->trace);
    ew__sql_text(self, stmt, 4, job->correlation);
    (void)ew__sql_do(self, stmt);
}

/* False: there is a job of this id, or there was trouble. */
static bool add_job(ew__jobs_file *self, const ew__job *job) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_ADD);
    ew__sql_text(self, stmt, 1, job->id);
    ew__sql_text(self, stmt, 2, job->function);
    ew__sql_text(self, stmt, 3, job->queue);
    ew__sql_text(self, stmt, 4, job->unique_key);
    ew__sql_text(self, stmt, 5, job->dlq);
    ew__sql_int(self, stmt, 6, job->enqueued_at);
    ew__sql_int(self, stmt, 7, job->run_at);
    ew__sql_int(self, stmt, 8, job->timeout_ms);
    ew__sql_int(self, stmt, 9, job->result_ttl_ms);
    ew__sql_int(self, stmt, 10, job->max_retries);
    if (ew__sql_do(self, stmt) != 1) {
        return false;
    }
    put_params(self, EW__SQL_ADD_PARAMS, sqlite3_last_insert_rowid(self->db), job);
    return self->code == SQLITE_OK;
}

/* Debounce: what waits becomes this job. */
static void replace_job(ew__jobs_file *self, int64_t seq, const ew__job *job) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_REPLACE);
    ew__sql_int(self, stmt, 1, seq);
    ew__sql_text(self, stmt, 2, job->function);
    ew__sql_text(self, stmt, 3, job->queue);
    ew__sql_int(self, stmt, 4, job->run_at);
    ew__sql_int(self, stmt, 5, job->timeout_ms);
    ew__sql_int(self, stmt, 6, job->result_ttl_ms);
    ew__sql_int(self, stmt, 7, job->max_retries);
    (void)ew__sql_do(self, stmt);
    put_params(self, EW__SQL_REPLACE_PARAMS, seq, job);
}

/* Whether the dedup mode admits a new job. */
static bool pass_dedup(ew__jobs_file *self, ew__op_enqueue *op, ew__arena *arena) {
    if (op->dedup == EW__DEDUP_NONE) {
        return true;
    }
    ew_str id = {NULL, 0}, none = {NULL, 0};
    key_holder holder = find_holder(self, op, arena, &id);
    if (op->dedup == EW__DEDUP_RATE && holder.held) {
        op->ret = EW__ENQUEUED_LIMITED;
        op->ret_id = none;
        return false;
    }
    bool debounced = op->dedup == EW__DEDUP_DEBOUNCE && holder.pending;
    if (debounced || (op->dedup == EW__DEDUP_UNIQUE && holder.seq != 0)) {
        op->ret = EW__ENQUEUED_KNOWN;
        op->ret_id = id;
        if (debounced) {
            replace_job(self, holder.seq, &op->job);
            put_key(self, op, id);
        }
        return false;
    }
    return true;
}

ew_err ew__jobs_sqlite_enqueue(ew__jobs_file *self, ew__op_enqueue *op, ew__arena *arena) {
    if (!pass_dedup(self, op, arena) || self->code != SQLITE_OK) {
        return ew__sql_err(self);
    }
    if (ew__arena_str(arena, op->job.id, &op->ret_id) != EW_OK) {
        self->code = SQLITE_NOMEM;
    } else if (!add_job(self, &op->job)) {
        op->ret = EW__ENQUEUED_DUPLICATE;
    } else {
        op->ret = EW__ENQUEUED_NEW;
        if (op->dedup != EW__DEDUP_NONE) {
            put_key(self, op, op->job.id);
        }
    }
    return ew__sql_err(self);
}

/* ---- CANCEL, REQUEUE, PAUSE ---- */

ew_err ew__jobs_sqlite_cancel(ew__jobs_file *self, ew__op_cancel *op) {
    ew__sql_found found;
    ew_str nobody = {NULL, 0};
    ew_err err = ew__sql_find(self, op->id, nobody, &found);
    if (err != EW_OK) {
        return err;
    }
    op->ret_status = found.status;
    if (ew__job_is_final(found.status)) {
        op->ret = EW__CANCELLED_LATE;
        return EW_OK;
    }
    bool runs = found.status == EW__JOB_ACTIVE;
    op->ret = runs ? EW__CANCELLED_ASKED : EW__CANCELLED_NOW;
    if (runs && found.cancel) {
        return EW_OK;
    }
    sqlite3_stmt *stmt = ew__sql_use(self, runs ? EW__SQL_CANCEL_ASK : EW__SQL_CANCEL_NOW);
    ew__sql_int(self, stmt, 1, found.seq);
    if (!runs) {
        op->ret_status = EW__JOB_CANCELLED;
        ew__sql_int(self, stmt, 2, op->now);
        if (found.ttl_ms > 0) {
            ew__sql_int(self, stmt, 3, op->now < INT64_MAX - found.ttl_ms ? op->now + found.ttl_ms : INT64_MAX);
        } else {
            ew__sql_null(stmt, 3);
        }
    }
    (void)ew__sql_do(self, stmt);
    if (!runs && found.has_key) {
        ew__sql_free_key(self, op->id);
    }
    return ew__sql_err(self);
}

ew_err ew__jobs_sqlite_requeue(ew__jobs_file *self, ew__op_requeue *op) {
    ew__sql_found found;
    ew_str nobody = {NULL, 0};
    ew_err err = ew__sql_find(self, op->id, nobody, &found);
    if (err != EW_OK) {
        return err;
    }
    if (found.status != EW__JOB_FAILED && found.status != EW__JOB_CANCELLED) {
        return EW_ESTALE;
    }
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_REQUEUE);
    ew__sql_int(self, stmt, 1, found.seq);
    ew__sql_text(self, stmt, 2, op->queue);
    ew__sql_int(self, stmt, 3, op->now);
    (void)ew__sql_do(self, stmt);
    return ew__sql_err(self);
}

ew_err ew__jobs_sqlite_pause(ew__jobs_file *self, ew__op_pause *op) {
    sqlite3_stmt *stmt = ew__sql_use(self, op->on ? EW__SQL_PAUSE : EW__SQL_RESUME);
    ew__sql_text(self, stmt, 1, op->queue);
    (void)ew__sql_do(self, stmt);
    return ew__sql_err(self);
}

/* ---- SWEEP ---- */

#define SWEEP_AT_A_TIME 64
#define CHUNKS_PER_JOB 100 /* to remove that many is as much work as to remove a job */

static void remove_job(ew__jobs_file *self, int64_t seq) {
    static const ew__sql parts[] = {EW__SQL_SWEEP_CHUNKS, EW__SQL_SWEEP_PARAMS, EW__SQL_SWEEP_JOB};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        sqlite3_stmt *stmt = ew__sql_use(self, parts[i]);
        ew__sql_int(self, stmt, 1, seq);
        (void)ew__sql_do(self, stmt);
    }
}

/* False: there are no more. */
static bool sweep_some(ew__jobs_file *self, ew__op_sweep *op) {
    int64_t seqs[SWEEP_AT_A_TIME];
    size_t n = 0;
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_SWEEP_JOBS);
    ew__sql_int(self, stmt, 1, op->now);
    ew__sql_int(self, stmt, 2, SWEEP_AT_A_TIME);
    while (n < SWEEP_AT_A_TIME && op->ret_removed < op->max && ew__sql_row(self, stmt)) {
        seqs[n++] = sqlite3_column_int64(stmt, 0);
        op->ret_removed += 1 + (uint64_t)sqlite3_column_int64(stmt, 1) / CHUNKS_PER_JOB;
    }
    ew__sql_end(stmt);
    for (size_t i = 0; i < n && self->code == SQLITE_OK; i++) {
        remove_job(self, seqs[i]);
    }
    return n == SWEEP_AT_A_TIME && op->ret_removed < op->max && self->code == SQLITE_OK;
}

ew_err ew__jobs_sqlite_sweep(ew__jobs_file *self, ew__op_sweep *op) {
    op->ret_removed = 0;
    while (sweep_some(self, op)) {
    }
    if (op->ret_removed < op->max) {
        sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_SWEEP_KEYS);
        ew__sql_int(self, stmt, 1, op->now);
        ew__sql_int(self, stmt, 2, (int64_t)(op->max - op->ret_removed));
        op->ret_removed += (uint64_t)ew__sql_do(self, stmt);
    }
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_SWEEP_WORKERS);
    ew__sql_int(self, stmt, 1, ew__sql_mono(self));
    ew__sql_int(self, stmt, 2, self->boot);
    (void)ew__sql_do(self, stmt);
    op->ret_removed = op->ret_removed < op->max ? op->ret_removed : op->max;
    return ew__sql_err(self);
}
