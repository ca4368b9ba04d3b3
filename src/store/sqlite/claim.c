/*
 * store/sqlite/claim.c: what workers do with the SQLite store of jobs: claim, renew, change, say. See
 * sqlite.h.
 *
 * All of it happens inside the transaction of a batch, which has the file for writing alone: what was read a moment ago
 * still holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"

ew_err ew__sql_find(ew__jobs_file *self, ew_str id, ew_str worker, ew__sql_found *ret) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_FIND);
    *ret = (ew__sql_found){.seq = 0};
    ew__sql_text(self, stmt, 1, id);
    ew__sql_text(self, stmt, 2, worker);
    ew__sql_int(self, stmt, 3, ew__sql_mono(self));
    ew__sql_int(self, stmt, 4, self->boot);
    if (ew__sql_row(self, stmt)) {
        ret->seq = sqlite3_column_int64(stmt, 0);
        ret->status = (ew__job_status)sqlite3_column_int(stmt, 1);
        ret->epoch = (uint64_t)sqlite3_column_int64(stmt, 2);
        ret->ours = sqlite3_column_int(stmt, 3) != 0;
        ret->leased = sqlite3_column_int(stmt, 4) != 0;
        ret->cancel = sqlite3_column_int(stmt, 5) != 0;
        ret->ttl_ms = sqlite3_column_int64(stmt, 6);
        ret->chunks = (uint64_t)sqlite3_column_int64(stmt, 7);
        ret->chunks_kept = (uint64_t)sqlite3_column_int64(stmt, 8);
        ret->chunk_bytes = (uint64_t)sqlite3_column_int64(stmt, 9);
        ret->has_key = sqlite3_column_int(stmt, 10) != 0;
    }
    ew__sql_end(stmt);
    return self->code == SQLITE_OK && ret->seq == 0 ? EW_ENOTFOUND : ew__sql_err(self);
}

void ew__sql_free_key(ew__jobs_file *self, ew_str id) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_KEY_FREE);
    ew__sql_text(self, stmt, 1, id);
    ew__sql_int(self, stmt, 2, EW__DEDUP_UNIQUE);
    (void)ew__sql_do(self, stmt);
}

/* Times of the monotonic clock; lease_ms may be anything. */
static int64_t lease_end(const ew__jobs_file *self, uint64_t lease_ms) {
    int64_t now = ew__sql_mono(self);
    return lease_ms < (uint64_t)(INT64_MAX - now) ? now + (int64_t)lease_ms : INT64_MAX;
}

/* ---- CLAIM ---- */

static bool is_paused(ew__jobs_file *self, ew_str queue) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_PAUSED);
    ew__sql_text(self, stmt, 1, queue);
    bool paused = ew__sql_row(self, stmt);
    ew__sql_end(stmt);
    return paused;
}

static void note_next(ew__jobs_file *self, ew_str queue, ew__op_claim *op) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_NEXT);
    ew__sql_text(self, stmt, 1, queue);
    ew__sql_int(self, stmt, 2, op->now);
    if (ew__sql_row(self, stmt) && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        int64_t next = sqlite3_column_int64(stmt, 0);
        op->ret_next = op->ret_next == 0 || next < op->ret_next ? next : op->ret_next;
    }
    ew__sql_end(stmt);
}

static void mark_active(ew__jobs_file *self, const ew__op_claim *op, int64_t seq, ew__job *job) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_CLAIM);
    job->status = EW__JOB_ACTIVE;
    job->started_at = op->now;
    job->epoch++;
    ew__sql_int(self, stmt, 1, seq);
    ew__sql_text(self, stmt, 2, op->worker);
    ew__sql_int(self, stmt, 3, op->now);
    ew__sql_int(self, stmt, 4, (int64_t)job->epoch);
    ew__sql_int(self, stmt, 5, lease_end(self, op->lease_ms));
    ew__sql_int(self, stmt, 6, self->boot);
    (void)ew__sql_do(self, stmt);
}

#define CLAIM_AT_A_TIME 64u

/* Reads first, then marks: what a statement goes over must not change under it. False: there are no more. */
static bool claim_some(ew__jobs_file *self, ew_str queue, uint32_t max, ew__op_claim *op, ew__arena *arena) {
    int64_t seqs[CLAIM_AT_A_TIME];
    size_t n = 0;
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_DUE);
    ew__sql_text(self, stmt, 1, queue);
    ew__sql_int(self, stmt, 2, op->now);
    ew__sql_int(self, stmt, 3, max);
    while (n < max && ew__sql_row(self, stmt)) {
        ew__sql_job(self, stmt, arena, &op->ret[op->ret_n + n]);
        seqs[n++] = sqlite3_column_int64(stmt, sqlite3_column_count(stmt) - 1);
    }
    ew__sql_end(stmt);
    for (size_t i = 0; i < n && self->code == SQLITE_OK; i++) {
        ew__job *job = &op->ret[op->ret_n + i];
        mark_active(self, op, seqs[i], job);
        if (self->code == SQLITE_OK && ew__arena_str(arena, op->worker, &job->worker) != EW_OK) {
            self->code = SQLITE_NOMEM;
        }
    }
    op->ret_n += n;
    return n == max && self->code == SQLITE_OK;
}

/* Room for as many as there may be, which is seldom as many as were asked for. */
static bool make_room(ew__jobs_file *self, ew__op_claim *op, ew__arena *arena, size_t *room, size_t need) {
    if (op->ret_n + need <= *room) {
        return true;
    }
    size_t size = *room > 0 ? 2 * *room : CLAIM_AT_A_TIME;
    ew__job *more = ew__sql_room(self, arena, size, sizeof *more);
    if (more == NULL) {
        return false;
    }
    if (op->ret_n > 0) {
        memcpy(more, op->ret, op->ret_n * sizeof *more);
    }
    op->ret = more;
    *room = size;
    return true;
}

static void claim_from(ew__jobs_file *self, const ew__claim_queue *queue, ew__op_claim *op, ew__arena *arena,
                       size_t *room) {
    uint32_t left = queue->max < op->max - (uint32_t)op->ret_n ? queue->max : op->max - (uint32_t)op->ret_n;
    while (left > 0) {
        uint32_t some = left < CLAIM_AT_A_TIME ? left : CLAIM_AT_A_TIME;
        if (!make_room(self, op, arena, room, some) || !claim_some(self, queue->name, some, op, arena)) {
            return;
        }
        left -= some;
    }
}

ew_err ew__jobs_sqlite_claim(ew__jobs_file *self, ew__op_claim *op, ew__arena *arena) {
    size_t room = 0;
    op->ret = NULL;
    op->ret_n = 0;
    op->ret_next = 0;
    for (size_t i = 0; i < op->n_queues && self->code == SQLITE_OK; i++) {
        const ew__claim_queue *queue = &op->queues[i];
        if (!is_paused(self, queue->name)) {
            claim_from(self, queue, op, arena, &room);
            note_next(self, queue->name, op);
        }
    }
    return ew__sql_err(self);
}

/* ---- CHANGE ---- */

/* When something that has ended goes. 0: never. */
static int64_t expiry(ew__job_status status, int64_t now, int64_t ttl_ms) {
    if (ttl_ms <= 0) {
        return 0;
    }
    if (status == EW__JOB_FAILED && ttl_ms < EW__JOB_DEAD_TTL_MS) {
        ttl_ms = EW__JOB_DEAD_TTL_MS;
    }
    return now < INT64_MAX - ttl_ms ? now + ttl_ms : 0;
}

static void int_or_null(ew__jobs_file *self, sqlite3_stmt *stmt, int at, int64_t number, bool there) {
    if (there) {
        ew__sql_int(self, stmt, at, number);
    } else {
        ew__sql_null(stmt, at);
    }
}

ew_err ew__jobs_sqlite_change(ew__jobs_file *self, ew__op_change *op) {
    static const ew_str usual = {EW__JOB_DLQ, sizeof EW__JOB_DLQ - 1}, none = {NULL, 0};
    ew__sql_found found;
    ew_err err = ew__sql_find(self, op->id, op->worker, &found);
    if (err != EW_OK) {
        return err;
    }
    bool allowed = op->claim == EW__CLAIM_LOST ? !found.leased : found.ours;
    if (found.status != EW__JOB_ACTIVE || found.epoch != op->epoch || !allowed || op->status == EW__JOB_ACTIVE) {
        return EW_ESTALE;
    }
    bool final = ew__job_is_final(op->status);
    int64_t expires_at = final ? expiry(op->status, op->now, found.ttl_ms) : 0;
    ew_str dead = op->status != EW__JOB_FAILED ? none : op->dlq.len > 0 ? op->dlq : usual;
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_CHANGE);
    ew__sql_int(self, stmt, 1, found.seq);
    ew__sql_int(self, stmt, 2, op->status);
    int_or_null(self, stmt, 3, op->run_at, !final);
    ew__sql_int(self, stmt, 4, op->retries);
    ew__sql_int(self, stmt, 5, op->lost);
    ew__sql_text(self, stmt, 6, op->status == EW__JOB_COMPLETED ? op->result : none);
    ew__sql_text(self, stmt, 7, op->last_error);
    ew__sql_text(self, stmt, 8, op->error);
    ew__sql_text(self, stmt, 9, dead);
    ew__sql_int(self, stmt, 10, final ? op->now : 0);
    int_or_null(self, stmt, 11, expires_at, expires_at > 0);
    ew__sql_int(self, stmt, 12, found.cancel && !final);
    (void)ew__sql_do(self, stmt);
    if (final && found.has_key) {
        ew__sql_free_key(self, op->id);
    }
    return ew__sql_err(self);
}

/* ---- RENEW, EXPIRED ---- */

static void put_worker(ew__jobs_file *self, const ew__op_renew *op) {
    sqlite3_stmt *stmt = ew__sql_use(self, op->record.len > 0 ? EW__SQL_WORKER_PUT : EW__SQL_WORKER_DROP);
    ew__sql_text(self, stmt, 1, op->worker);
    if (op->record.len > 0) {
        ew__sql_text(self, stmt, 2, op->record);
        ew__sql_int(self, stmt, 3, lease_end(self, op->ttl_ms));
        ew__sql_int(self, stmt, 4, self->boot);
    }
    (void)ew__sql_do(self, stmt);
}

ew_err ew__jobs_sqlite_renew(ew__jobs_file *self, ew__op_renew *op) {
    put_worker(self, op);
    for (size_t i = 0; i < op->n_leases && self->code == SQLITE_OK; i++) {
        ew__lease *lease = &op->leases[i];
        ew__sql_found found;
        ew_err err = ew__sql_find(self, lease->id, op->worker, &found);
        lease->ret = EW__LEASE_GONE;
        if (err != EW_OK || found.status != EW__JOB_ACTIVE || found.epoch != lease->epoch || !found.ours) {
            continue;
        }
        lease->ret = found.cancel ? EW__LEASE_CANCEL : EW__LEASE_HELD;
        sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_RENEW);
        ew__sql_int(self, stmt, 1, found.seq);
        ew__sql_int(self, stmt, 2, lease_end(self, op->lease_ms));
        ew__sql_int(self, stmt, 3, self->boot);
        (void)ew__sql_do(self, stmt);
    }
    return ew__sql_err(self);
}

ew_err ew__jobs_sqlite_expired(ew__jobs_file *self, ew__op_expired *op, ew__arena *arena) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_EXPIRED);
    ew__sql_int(self, stmt, 1, ew__sql_mono(self));
    ew__sql_int(self, stmt, 2, self->boot);
    ew__sql_int(self, stmt, 3, op->max);
    ew__sql_jobs(self, stmt, arena, &op->ret, &op->ret_n);
    return ew__sql_err(self);
}

/* ---- CHUNKS ---- */

/* Drops the oldest until the rest is within the limits. */
static void trim_chunks(ew__jobs_file *self, ew__sql_found *found) {
    int64_t until = 0;
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_CHUNK_SIZES);
    ew__sql_int(self, stmt, 1, found->seq);
    while ((found->chunks_kept > EW__JOB_CHUNKS_MAX || found->chunk_bytes > EW__JOB_CHUNK_BYTES_MAX) &&
           ew__sql_row(self, stmt)) {
        until = sqlite3_column_int64(stmt, 0);
        found->chunks_kept--;
        found->chunk_bytes -= (uint64_t)sqlite3_column_int64(stmt, 1);
    }
    ew__sql_end(stmt);
    stmt = ew__sql_use(self, EW__SQL_CHUNK_DROP);
    ew__sql_int(self, stmt, 1, found->seq);
    ew__sql_int(self, stmt, 2, until);
    (void)ew__sql_do(self, stmt);
}

ew_err ew__jobs_sqlite_chunks(ew__jobs_file *self, ew__op_chunks *op) {
    ew__sql_found found;
    ew_err err = ew__sql_find(self, op->id, op->worker, &found);
    if (err != EW_OK) {
        return err;
    }
    if (found.status != EW__JOB_ACTIVE || found.epoch != op->epoch || !found.ours) {
        return EW_ESTALE;
    }
    for (size_t i = 0; i < op->n && self->code == SQLITE_OK; i++) {
        sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_CHUNK_ADD);
        ew__sql_int(self, stmt, 1, found.seq);
        ew__sql_int(self, stmt, 2, (int64_t)++found.chunks);
        ew__sql_int(self, stmt, 3, (int64_t)op->chunks[i].len);
        ew__sql_text(self, stmt, 4, op->chunks[i]);
        (void)ew__sql_do(self, stmt);
        found.chunks_kept++;
        found.chunk_bytes += op->chunks[i].len;
    }
    if (found.chunks_kept > EW__JOB_CHUNKS_MAX || found.chunk_bytes > EW__JOB_CHUNK_BYTES_MAX) {
        trim_chunks(self, &found);
    }
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_CHUNK_NOTE);
    ew__sql_int(self, stmt, 1, found.seq);
    ew__sql_int(self, stmt, 2, (int64_t)found.chunks);
    ew__sql_int(self, stmt, 3, (int64_t)found.chunks_kept);
    ew__sql_int(self, stmt, 4, (int64_t)found.chunk_bytes);
    (void)ew__sql_do(self, stmt);
    return ew__sql_err(self);
}
