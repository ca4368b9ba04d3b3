/*
 * store/sqlite/sqlite.h: the parts of the SQLite store of jobs, for each other. May include: base json call jobs, and
 * SQLite.
 *
 * What waits has a due time (`due`, NULL for all others), what runs a lease (`lease_until`), what has ended perhaps an
 * end of its keeping (`expires_at`), dead letters the name of their queue (`dead`): each is an index over only those
 * jobs that have one, so that what is done often does not depend on how much is kept.
 *
 * Leases are times of the monotonic clock, in milliseconds, of one boot of the machine: a jump of the wall clock moves
 * none of them, and after a boot all of them have run out.
 */
#ifndef EW_STORE_SQLITE_SQLITE_H
#define EW_STORE_SQLITE_SQLITE_H

#include "store/file_identity.h"
#include "store/jobs.h"
#include "store/trust.h"
#include <sqlite3.h>

typedef enum ew__sql {
    EW__SQL_BEGIN,
    EW__SQL_COMMIT,
    EW__SQL_ROLLBACK,
    EW__SQL_VERSION,
    EW__SQL_FIND,
    EW__SQL_ADD,
    EW__SQL_ADD_PARAMS,
    EW__SQL_REPLACE,
    EW__SQL_REPLACE_PARAMS,
    EW__SQL_KEY_GET,
    EW__SQL_KEY_PUT,
    EW__SQL_KEY_FREE,
    EW__SQL_PAUSED,
    EW__SQL_DUE,
    EW__SQL_NEXT,
    EW__SQL_CLAIM,
    EW__SQL_CHANGE,
    EW__SQL_RENEW,
    EW__SQL_WORKER_PUT,
    EW__SQL_WORKER_DROP,
    EW__SQL_EXPIRED,
    EW__SQL_CHUNK_ADD,
    EW__SQL_CHUNK_SIZES,
    EW__SQL_CHUNK_DROP,
    EW__SQL_CHUNK_NOTE,
    EW__SQL_CHUNK_GET,
    EW__SQL_GET,
    EW__SQL_LIST,
    EW__SQL_LIST_COUNT,
    EW__SQL_LIST_DEAD,
    EW__SQL_LIST_DEAD_COUNT,
    EW__SQL_LIST_WAITING,
    EW__SQL_LIST_WAITING_COUNT,
    EW__SQL_CANCEL_NOW,
    EW__SQL_CANCEL_ASK,
    EW__SQL_REQUEUE,
    EW__SQL_QUEUE_NEXT,
    EW__SQL_QUEUE_WAITING,
    EW__SQL_QUEUE_PAUSED,
    EW__SQL_QUEUE_COUNTS,
    EW__SQL_QUEUE_SEEN,
    EW__SQL_PAUSE,
    EW__SQL_RESUME,
    EW__SQL_WORKERS,
    EW__SQL_SWEEP_JOBS,
    EW__SQL_SWEEP_CHUNKS,
    EW__SQL_SWEEP_PARAMS,
    EW__SQL_SWEEP_JOB,
    EW__SQL_SWEEP_KEYS,
    EW__SQL_SWEEP_WORKERS,
    EW__SQLS
} ew__sql;
extern const char *const ew__sql_texts[EW__SQLS];

typedef struct ew__jobs_file {
    ew__backend backend;
    const ew_env *env;
    char *path;
    size_t path_size;
    sqlite3 *db;                  /* NULL: to be opened again */
    sqlite3_stmt *made[EW__SQLS]; /* prepared when they are first used */
    ew__file_identity identity;   /* of the file that db has open */
    const char *why;              /* why it could not be opened again; NULL: `code` has the reason */
    int code;                     /* the first failure of SQLite, or of memory, of what is being done; SQLITE_OK */
    int64_t boot;                 /* which boot of the machine this is; 0: not known */
    int busy_ms;                  /* waited for others by the statement that is being done */
    bool removed;                 /* the file was removed while it was open, and has not come back */
    bool down;                    /* the last batch could not be done */
    bool back;                    /* and now it could: to be told */
    /* hints */
    unsigned want;
    int inotify, watched; /* descriptors; -1 */
    int64_t version;      /* PRAGMA data_version when it was last looked at; -1: never */
    uint64_t soon_ms;     /* since a sign of a change: how soon to look again; 0: as usual */
    char notice[200];
    char distrust[EW__TRUST_WHY]; /* why the file was refused when it was last opened */
} ew__jobs_file;

static inline ew__jobs_file *ew__jobs_file_of(ew__backend *backend) {
    return ew__container_of(backend, ew__jobs_file, backend);
}

/* ---- file.c ---- */

/* SQLITE_OK; *ret_why, if it is set: for people. first: the file may have to be made, and its folder; it is checked. */
int ew__jobs_file_open(ew__jobs_file *self, bool first, const char **ret_why);
void ew__jobs_file_close(ew__jobs_file *self);

/* ---- statements (sql.c) ---- */

/* The statement, ready for values; NULL: it cannot be made, and self->code says why. One use at a time. */
sqlite3_stmt *ew__sql_use(ew__jobs_file *self, ew__sql which);
/* NULL statements are passed over by all of these. An empty text is NULL. Failures are kept in self->code. */
void ew__sql_text(ew__jobs_file *self, sqlite3_stmt *stmt, int at, ew_str text);
void ew__sql_int(ew__jobs_file *self, sqlite3_stmt *stmt, int at, int64_t number);
void ew__sql_null(sqlite3_stmt *stmt, int at);
/* True: there is a row. */
bool ew__sql_row(ew__jobs_file *self, sqlite3_stmt *stmt);
/* Ends its use. */
void ew__sql_end(sqlite3_stmt *stmt);
/* All of a statement that gives no rows; how many rows it has changed. */
int64_t ew__sql_do(ew__jobs_file *self, sqlite3_stmt *stmt);
/* A text of a row, copied; empty for NULL. */
ew_str ew__sql_get(ew__jobs_file *self, sqlite3_stmt *stmt, int at, ew__arena *arena);
/* The row as a job; the columns are EW__SQL_JOB. */
void ew__sql_job(ew__jobs_file *self, sqlite3_stmt *stmt, ew__arena *arena, ew__job *ret);
/* All rows of a statement as jobs; ends its use. */
void ew__sql_jobs(ew__jobs_file *self, sqlite3_stmt *stmt, ew__arena *arena, ew__job **ret, size_t *ret_n);
/* The array with room for another item: itself, or a larger copy. NULL: self->code. */
void *ew__sql_grow(ew__jobs_file *self, ew__arena *arena, void *items, size_t n, size_t *room, size_t size);
/* Room for n more jobs and so on in an arena; NULL: self->code. */
void *ew__sql_room(ew__jobs_file *self, ew__arena *arena, size_t n, size_t size);
/* EW_OK, or what self->code means. */
ew_err ew__sql_err(const ew__jobs_file *self);

static inline int64_t ew__sql_wall(const ew__jobs_file *self) { return (int64_t)self->env->wall_ms(self->env->ud); }
static inline int64_t ew__sql_mono(const ew__jobs_file *self) {
    return (int64_t)(self->env->now_ns(self->env->ud) / 1000000);
}

/* ---- what is known of a job before it is changed ---- */

typedef struct ew__sql_found {
    int64_t seq;
    ew__job_status status;
    uint64_t epoch;
    bool ours;   /* its worker is the one that asks */
    bool leased; /* the lease lives */
    bool cancel;
    int64_t ttl_ms;
    uint64_t chunks, chunks_kept, chunk_bytes;
    bool has_key; /* unique_key */
} ew__sql_found;

/* EW_OK, EW_ENOTFOUND, or trouble. */
ew_err ew__sql_find(ew__jobs_file *self, ew_str id, ew_str worker, ew__sql_found *ret);
/* The key of EW__DEDUP_UNIQUE that the job carries, if it is its own, is free. */
void ew__sql_free_key(ew__jobs_file *self, ew_str id);

/* ---- the operations: EW_OK, a refusal (then nothing was written), or trouble (then self->code is set) ---- */

ew_err ew__jobs_sqlite_enqueue(ew__jobs_file *self, ew__op_enqueue *op, ew__arena *arena);
ew_err ew__jobs_sqlite_cancel(ew__jobs_file *self, ew__op_cancel *op);
ew_err ew__jobs_sqlite_requeue(ew__jobs_file *self, ew__op_requeue *op);
ew_err ew__jobs_sqlite_pause(ew__jobs_file *self, ew__op_pause *op);
ew_err ew__jobs_sqlite_sweep(ew__jobs_file *self, ew__op_sweep *op);
ew_err ew__jobs_sqlite_claim(ew__jobs_file *self, ew__op_claim *op, ew__arena *arena);
ew_err ew__jobs_sqlite_change(ew__jobs_file *self, ew__op_change *op);
ew_err ew__jobs_sqlite_renew(ew__jobs_file *self, ew__op_renew *op);
ew_err ew__jobs_sqlite_expired(ew__jobs_file *self, ew__op_expired *op, ew__arena *arena);
ew_err ew__jobs_sqlite_chunks(ew__jobs_file *self, ew__op_chunks *op);
ew_err ew__jobs_sqlite_get(ew__jobs_file *self, ew__op_get *op, ew__arena *arena);
ew_err ew__jobs_sqlite_list(ew__jobs_file *self, ew__op_list *op, ew__arena *arena);
ew_err ew__jobs_sqlite_queues(ew__jobs_file *self, ew__op_queues *op, ew__arena *arena);
ew_err ew__jobs_sqlite_workers(ew__jobs_file *self, ew__op_workers *op, ew__arena *arena);

/* ---- hints (hints.c) ---- */

int ew__jobs_sqlite_watch_fd(ew__backend *backend);
unsigned ew__jobs_sqlite_look(ew__backend *backend);
void ew__jobs_sqlite_want(ew__backend *backend, unsigned changes);
void ew__jobs_sqlite_unwatch(ew__jobs_file *self);

#endif
