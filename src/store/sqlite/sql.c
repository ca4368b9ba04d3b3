/*
 * store/sqlite/sql.c: all statements of the SQLite store of jobs, and a few words to use them. See sqlite.h.
 *
 * Failures are kept, so that a row of these needs one check; after the first one nothing more is done.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"

#define JOB                                                                                                            \
    "j.id,j.function,j.queue,p.params,j.result,j.last_error,j.error,j.worker,p.trace,p.correlation,j.unique_key,"      \
    "j.dlq,j.status,j.enqueued_at,j.run_at,j.started_at,j.ended_at,j.timeout_ms,j.result_ttl_ms,j.max_retries,"        \
    "j.retries,j.lost,j.epoch,j.chunks,j.cancel,j.seq"
#define WITH_PARAMS " CROSS JOIN params p ON p.seq=j.seq "
#define MATCHES "(?1 IS NULL OR j.queue=?1) AND (?2 IS NULL OR j.function=?2) AND (?3<0 OR j.status=?3)"

const char *const ew__sql_texts[EW__SQLS] = {
    [EW__SQL_BEGIN] = "BEGIN IMMEDIATE",
    [EW__SQL_COMMIT] = "COMMIT",
    [EW__SQL_ROLLBACK] = "ROLLBACK",
    [EW__SQL_VERSION] = "PRAGMA data_version",
    [EW__SQL_FIND] =
        "SELECT seq,status,epoch,worker IS ?2,lease_until>?3 AND lease_boot=?4,cancel,result_ttl_ms,chunks,"
        "chunks_kept,chunk_bytes,unique_key IS NOT NULL FROM jobs WHERE id=?1",
    [EW__SQL_ADD] = "INSERT INTO jobs(id,function,queue,worker,unique_key,dlq,status,enqueued_at,run_at,due,timeout_ms,"
                    "result_ttl_ms,max_retries) VALUES(?1,?2,?3,NULL,?4,?5,0,?6,?7,?7,?8,?9,?10) "
                    "ON CONFLICT(id) DO NOTHING",
    [EW__SQL_ADD_PARAMS] = "INSERT INTO params(seq,params,trace,correlation) VALUES(?1,?2,?3,?4)",
    [EW__SQL_REPLACE] = "UPDATE jobs SET function=?2,queue=?3,run_at=?4,due=?4,timeout_ms=?5,result_ttl_ms=?6,"
                        "max_retries=?7 WHERE seq=?1",
    [EW__SQL_REPLACE_PARAMS] = "UPDATE params SET params=?2,trace=coalesce(?3,trace),correlation=?4 WHERE seq=?1",
    [EW__SQL_KEY_GET] = "SELECT k.job,j.status,j.seq FROM keys k LEFT JOIN jobs j ON j.id=k.job "
                        "WHERE k.kind=?1 AND k.key=?2 AND k.expires_at>?3",
    [EW__SQL_KEY_PUT] = "INSERT INTO keys(kind,key,job,expires_at) VALUES(?1,?2,?3,?4) "
                        "ON CONFLICT(kind,key) DO UPDATE SET job=excluded.job,expires_at=excluded.expires_at",
    [EW__SQL_KEY_FREE] = "DELETE FROM keys WHERE kind=?2 AND key=(SELECT unique_key FROM jobs WHERE id=?1) AND job=?1",
    [EW__SQL_PAUSED] = "SELECT 1 FROM paused WHERE queue=?1",
    [EW__SQL_DUE] = "SELECT " JOB " FROM jobs j INDEXED BY jobs_due" WITH_PARAMS
                    "WHERE j.queue=?1 AND j.due<=?2 ORDER BY j.due,j.id LIMIT ?3",
    [EW__SQL_NEXT] = "SELECT min(due) FROM jobs INDEXED BY jobs_due WHERE queue=?1 AND due>?2",
    [EW__SQL_CLAIM] = "UPDATE jobs SET status=1,due=NULL,worker=?2,started_at=?3,epoch=?4,lease_until=?5,lease_boot=?6 "
                      "WHERE seq=?1",
    [EW__SQL_CHANGE] = "UPDATE jobs SET status=?2,due=?3,run_at=coalesce(?3,run_at),retries=?4,lost=?5,result=?6,"
                       "last_error=coalesce(?7,last_error),error=CASE WHEN ?7 IS NULL THEN coalesce(?8,error) ELSE ?8 "
                       "END,dead=?9,dlq=coalesce(?9,dlq),ended_at=?10,expires_at=?11,cancel=?12,"
                       "started_at=CASE ?2 WHEN 0 THEN 0 ELSE started_at END,lease_until=NULL,lease_boot=NULL "
                       "WHERE seq=?1",
    [EW__SQL_RENEW] = "UPDATE jobs SET lease_until=?2,lease_boot=?3 WHERE seq=?1",
    [EW__SQL_WORKER_PUT] = "INSERT INTO workers(id,record,lease_until,lease_boot) VALUES(?1,?2,?3,?4) "
                           "ON CONFLICT(id) DO UPDATE SET record=excluded.record,lease_until=excluded.lease_until,"
                           "lease_boot=excluded.lease_boot",
    [EW__SQL_WORKER_DROP] = "DELETE FROM workers WHERE id=?1",
    [EW__SQL_EXPIRED] = "SELECT " JOB " FROM jobs j INDEXED BY jobs_leased" WITH_PARAMS
                        "WHERE j.lease_until IS NOT NULL AND (j.lease_until<=?1 OR j.lease_boot<>?2) LIMIT ?3",
    [EW__SQL_CHUNK_ADD] = "INSERT INTO chunks(job,seq,bytes,json) VALUES(?1,?2,?3,?4)",
    [EW__SQL_CHUNK_SIZES] = "SELECT seq,bytes FROM chunks WHERE job=?1 ORDER BY seq",
    [EW__SQL_CHUNK_DROP] = "DELETE FROM chunks WHERE job=?1 AND seq<=?2",
    [EW__SQL_CHUNK_NOTE] = "UPDATE jobs SET chunks=?2,chunks_kept=?3,chunk_bytes=?4 WHERE seq=?1",
    [EW__SQL_CHUNK_GET] = "SELECT seq,json FROM chunks WHERE job=?1 AND seq>?2 ORDER BY seq LIMIT ?3",
    [EW__SQL_GET] = "SELECT " JOB " FROM jobs j" WITH_PARAMS "WHERE j.id=?1",
    [EW__SQL_LIST] = "SELECT " JOB " FROM jobs j INDEXED BY jobs_enqueued" WITH_PARAMS "WHERE " MATCHES
                     " ORDER BY j.enqueued_at DESC,j.seq DESC LIMIT ?4 OFFSET ?5",
    [EW__SQL_LIST_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM jobs j WHERE " MATCHES " LIMIT ?4)",
    [EW__SQL_LIST_DEAD] = "SELECT " JOB " FROM jobs j INDEXED BY jobs_dead" WITH_PARAMS "WHERE j.dead=?6 AND " MATCHES
                          " ORDER BY j.ended_at DESC,j.seq DESC LIMIT ?4 OFFSET ?5",
    [EW__SQL_LIST_DEAD_COUNT] = "SELECT count(*) FROM jobs j INDEXED BY jobs_dead WHERE j.dead=?6 AND " MATCHES,
    [EW__SQL_LIST_WAITING] =
        "SELECT " JOB " FROM jobs j INDEXED BY jobs_due" WITH_PARAMS
        "WHERE j.queue=?6 AND j.due IS NOT NULL AND " MATCHES " ORDER BY j.due,j.id LIMIT ?4 OFFSET ?5",
    [EW__SQL_LIST_WAITING_COUNT] =
        "SELECT count(*) FROM jobs j INDEXED BY jobs_due WHERE j.queue=?6 AND j.due IS NOT NULL AND " MATCHES,
    [EW__SQL_CANCEL_NOW] = "UPDATE jobs SET status=5,due=NULL,cancel=0,ended_at=?2,expires_at=?3 WHERE seq=?1",
    [EW__SQL_CANCEL_ASK] = "UPDATE jobs SET cancel=1 WHERE seq=?1",
    [EW__SQL_REQUEUE] = "UPDATE jobs SET status=0,queue=coalesce(?2,queue),run_at=?3,due=?3,retries=0,lost=0,cancel=0,"
                        "started_at=0,ended_at=0,expires_at=NULL,dead=NULL WHERE seq=?1",
    [EW__SQL_QUEUE_NEXT] = "SELECT min(queue) FROM jobs INDEXED BY jobs_due WHERE due IS NOT NULL AND queue>?1",
    [EW__SQL_QUEUE_WAITING] =
        "SELECT count(*),(SELECT min(due) FROM jobs INDEXED BY jobs_due WHERE queue=?1 AND due IS NOT NULL),"
        "(SELECT max(due) FROM jobs INDEXED BY jobs_due WHERE queue=?1 AND due IS NOT NULL) "
        "FROM jobs INDEXED BY jobs_due WHERE queue=?1 AND due IS NOT NULL",
    [EW__SQL_QUEUE_PAUSED] = "SELECT queue FROM paused",
    [EW__SQL_QUEUE_COUNTS] = "SELECT queue,status,count(*),count(dead),count(nullif(started_at,0)),"
                             "sum(CASE WHEN started_at<>0 THEN max(started_at-enqueued_at,0) ELSE 0 END) "
                             "FROM (SELECT queue,status,dead,started_at,enqueued_at FROM jobs ORDER BY seq DESC "
                             "LIMIT ?1) GROUP BY queue,status",
    [EW__SQL_QUEUE_SEEN] = "SELECT 1 FROM jobs LIMIT 1 OFFSET ?1",
    [EW__SQL_PAUSE] = "INSERT INTO paused(queue) VALUES(?1) ON CONFLICT(queue) DO NOTHING",
    [EW__SQL_RESUME] = "DELETE FROM paused WHERE queue=?1",
    [EW__SQL_WORKERS] = "SELECT id,record,lease_until FROM workers WHERE lease_until>?1 AND lease_boot=?2 ORDER BY id",
    [EW__SQL_SWEEP_JOBS] = "SELECT seq,chunks_kept FROM jobs INDEXED BY jobs_expires WHERE expires_at<=?1 "
                           "ORDER BY expires_at LIMIT ?2",
    [EW__SQL_SWEEP_CHUNKS] = "DELETE FROM chunks WHERE job=?1",
    [EW__SQL_SWEEP_PARAMS] = "DELETE FROM params WHERE seq=?1",
    [EW__SQL_SWEEP_JOB] = "DELETE FROM jobs WHERE seq=?1",
    [EW__SQL_SWEEP_KEYS] = "DELETE FROM keys WHERE rowid IN (SELECT rowid FROM keys WHERE expires_at<=?1 LIMIT ?2)",
    [EW__SQL_SWEEP_WORKERS] = "DELETE FROM workers WHERE lease_until<=?1 OR lease_boot<>?2",
};

sqlite3_stmt *ew__sql_use(ew__jobs_file *self, ew__sql which) {
    if (self->code != SQLITE_OK) {
        return NULL;
    }
    if (self->made[which] == NULL) {
        self->code =
            sqlite3_prepare_v3(self->db, ew__sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT, &self->made[which], NULL);
    }
    return self->code == SQLITE_OK ? self->made[which] : NULL;
}

static void keep(ew__jobs_file *self, int code) {
    if (code != SQLITE_OK && self->code == SQLITE_OK) {
        self->code = code;
    }
}

void ew__sql_text(ew__jobs_file *self, sqlite3_stmt *stmt, int at, ew_str text) {
    if (stmt == NULL) {
        return;
    }
    keep(self, text.len == 0 ? sqlite3_bind_null(stmt, at)
                             : sqlite3_bind_text64(stmt, at, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8));
}

void ew__sql_int(ew__jobs_file *self, sqlite3_stmt *stmt, int at, int64_t number) {
    if (stmt != NULL) {
        keep(self, sqlite3_bind_int64(stmt, at, number));
    }
}

void ew__sql_null(sqlite3_stmt *stmt, int at) {
    if (stmt != NULL) {
        (void)sqlite3_bind_null(stmt, at);
    }
}

bool ew__sql_row(ew__jobs_file *self, sqlite3_stmt *stmt) {
    if (stmt == NULL || self->code != SQLITE_OK) {
        return false;
    }
    self->busy_ms = 0;
    int code = sqlite3_step(stmt);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        keep(self, code);
    }
    return code == SQLITE_ROW;
}

void ew__sql_end(sqlite3_stmt *stmt) {
    if (stmt != NULL) {
        (void)sqlite3_reset(stmt);
        (void)sqlite3_clear_bindings(stmt); /* what was bound may be gone soon */
    }
}

int64_t ew__sql_do(ew__jobs_file *self, sqlite3_stmt *stmt) {
    (void)ew__sql_row(self, stmt);
    int64_t changed = self->code == SQLITE_OK ? sqlite3_changes(self->db) : 0;
    ew__sql_end(stmt);
    return changed;
}

ew_str ew__sql_get(ew__jobs_file *self, sqlite3_stmt *stmt, int at, ew__arena *arena) {
    ew_str text = {NULL, 0};
    if (self->code != SQLITE_OK || sqlite3_column_type(stmt, at) == SQLITE_NULL) {
        return text;
    }
    const void *bytes = sqlite3_column_blob(stmt, at);
    int n = sqlite3_column_bytes(stmt, at);
    if (bytes == NULL || n < 0 || ew__arena_str(arena, ew__str(bytes, (size_t)n), &text) != EW_OK) {
        self->code = SQLITE_NOMEM; /* no text of ours is empty but not NULL */
        text.len = 0;
    }
    return text;
}

void ew__sql_job(ew__jobs_file *self, sqlite3_stmt *stmt, ew__arena *arena, ew__job *ret) {
    ew_str *const texts[] = {&ret->id,     &ret->function,    &ret->queue,      &ret->params,
                             &ret->result, &ret->last_error,  &ret->error,      &ret->worker,
                             &ret->trace,  &ret->correlation, &ret->unique_key, &ret->dlq};
    int at = 0;
    *ret = (ew__job){.status = EW__JOB_PENDING};
    for (; at < (int)(sizeof texts / sizeof *texts); at++) {
        *texts[at] = ew__sql_get(self, stmt, at, arena);
    }
    int status = sqlite3_column_int(stmt, at++);
    ret->status = status >= 0 && status < EW__JOB_STATUSES ? (ew__job_status)status : EW__JOB_FAILED;
    ret->enqueued_at = sqlite3_column_int64(stmt, at++);
    ret->run_at = sqlite3_column_int64(stmt, at++);
    ret->started_at = sqlite3_column_int64(stmt, at++);
    ret->ended_at = sqlite3_column_int64(stmt, at++);
    ret->timeout_ms = sqlite3_column_int64(stmt, at++);
    ret->result_ttl_ms = sqlite3_column_int64(stmt, at++);
    ret->max_retries = (uint32_t)sqlite3_column_int64(stmt, at++);
    ret->retries = (uint32_t)sqlite3_column_int64(stmt, at++);
    ret->lost = (uint32_t)sqlite3_column_int64(stmt, at++);
    ret->epoch = (uint64_t)sqlite3_column_int64(stmt, at++);
    ret->chunks = (uint64_t)sqlite3_column_int64(stmt, at++);
    ret->cancel = sqlite3_column_int(stmt, at) != 0;
}

void *ew__sql_room(ew__jobs_file *self, ew__arena *arena, size_t n, size_t size) {
    void *room =
        self->code == SQLITE_OK && n <= SIZE_MAX / size ? ew__arena_alloc(arena, n > 0 ? n * size : size) : NULL;
    if (room == NULL) {
        keep(self, SQLITE_NOMEM);
    }
    return room;
}

void *ew__sql_grow(ew__jobs_file *self, ew__arena *arena, void *items, size_t n, size_t *room, size_t size) {
    if (n < *room) {
        return items;
    }
    size_t more = *room > 0 ? 2 * *room : 16;
    void *grown = ew__sql_room(self, arena, more, size);
    if (grown != NULL) {
        *room = more;
        if (n > 0) {
            memcpy(grown, items, n * size);
        }
    }
    return grown;
}

void ew__sql_jobs(ew__jobs_file *self, sqlite3_stmt *stmt, ew__arena *arena, ew__job **ret, size_t *ret_n) {
    size_t room = 0;
    *ret = NULL;
    *ret_n = 0;
    while (ew__sql_row(self, stmt)) {
        ew__job *jobs = ew__sql_grow(self, arena, *ret, *ret_n, &room, sizeof *jobs);
        if (jobs == NULL) {
            break;
        }
        *ret = jobs;
        ew__sql_job(self, stmt, arena, &jobs[(*ret_n)++]);
    }
    ew__sql_end(stmt);
}

ew_err ew__sql_err(const ew__jobs_file *self) {
    switch (self->code & 0xff) {
    case SQLITE_OK:
        return EW_OK;
    case SQLITE_NOMEM:
        return EW_ENOMEM;
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
        return EW_ELIMIT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return EW_EBUSY;
    default:
        return EW_EIO;
    }
}
