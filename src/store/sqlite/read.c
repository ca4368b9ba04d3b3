/*
 * store/sqlite/read.c: what people and waiting callers ask the SQLite store of jobs. See sqlite.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"

#define CHUNKS_AT_A_TIME 256
#define COUNT_BEYOND 1000 /* matches that are counted beyond those that are shown; more are not worth the time */

/* ---- one job ---- */

static void read_chunks(ew__jobs_file *self, int64_t seq, ew__op_get *op, ew__arena *arena) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_CHUNK_GET);
    op->ret_chunks = ew__sql_room(self, arena, CHUNKS_AT_A_TIME, sizeof *op->ret_chunks);
    ew__sql_int(self, stmt, 1, seq);
    ew__sql_int(self, stmt, 2, op->after <= INT64_MAX ? (int64_t)op->after : INT64_MAX);
    ew__sql_int(self, stmt, 3, CHUNKS_AT_A_TIME);
    while (op->ret_n_chunks < CHUNKS_AT_A_TIME && ew__sql_row(self, stmt)) {
        ew__chunk *chunk = &op->ret_chunks[op->ret_n_chunks++];
        chunk->seq = (uint64_t)sqlite3_column_int64(stmt, 0);
        chunk->json = ew__sql_get(self, stmt, 1, arena);
    }
    ew__sql_end(stmt);
}

ew_err ew__jobs_sqlite_get(ew__jobs_file *self, ew__op_get *op, ew__arena *arena) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_GET);
    int64_t seq = 0;
    op->ret_n_chunks = 0;
    ew__sql_text(self, stmt, 1, op->id);
    if (ew__sql_row(self, stmt)) {
        ew__sql_job(self, stmt, arena, &op->ret);
        seq = sqlite3_column_int64(stmt, sqlite3_column_count(stmt) - 1);
    }
    ew__sql_end(stmt);
    if (seq == 0 && self->code == SQLITE_OK) {
        return EW_ENOTFOUND;
    }
    if (op->want_chunks) { /* after the job: one that is seen to have ended has said everything */
        read_chunks(self, seq, op, arena);
    }
    return ew__sql_err(self);
}

/* ---- lists ---- */

static void bind_filter(ew__jobs_file *self, sqlite3_stmt *stmt, const ew__op_list *op) {
    ew_str none = {NULL, 0};
    ew__sql_text(self, stmt, 1, op->waiting && op->dlq.len == 0 ? none : op->queue);
    ew__sql_text(self, stmt, 2, op->function);
    ew__sql_int(self, stmt, 3, op->status < EW__JOB_STATUSES && !op->waiting ? (int64_t)op->status : -1);
}

static void read_list(ew__jobs_file *self, ew__sql which, ew_str name, ew__op_list *op, ew__arena *arena) {
    sqlite3_stmt *stmt = ew__sql_use(self, which);
    bind_filter(self, stmt, op);
    ew__sql_int(self, stmt, 4, op->limit);
    ew__sql_int(self, stmt, 5, op->offset);
    if (which != EW__SQL_LIST) {
        ew__sql_text(self, stmt, 6, name);
    }
    ew__sql_jobs(self, stmt, arena, &op->ret, &op->ret_n);
}

static uint64_t count_list(ew__jobs_file *self, ew__sql which, ew_str name, const ew__op_list *op) {
    sqlite3_stmt *stmt = ew__sql_use(self, which);
    bind_filter(self, stmt, op);
    if (which == EW__SQL_LIST_COUNT) {
        ew__sql_int(self, stmt, 4, (int64_t)op->limit + op->offset + COUNT_BEYOND);
    } else {
        ew__sql_text(self, stmt, 6, name);
    }
    uint64_t count = ew__sql_row(self, stmt) ? (uint64_t)sqlite3_column_int64(stmt, 0) : 0;
    ew__sql_end(stmt);
    return count;
}

ew_err ew__jobs_sqlite_list(ew__jobs_file *self, ew__op_list *op, ew__arena *arena) {
    ew__sql which = op->dlq.len > 0 ? EW__SQL_LIST_DEAD : op->waiting ? EW__SQL_LIST_WAITING : EW__SQL_LIST;
    ew_str name = op->dlq.len > 0 ? op->dlq : op->queue;
    read_list(self, which, name, op, arena);
    op->ret_total = count_list(self, which + 1, name, op); /* its count is the next in ew__sql */
    return ew__sql_err(self);
}

/* ---- queues ---- */

typedef struct found_queues {
    ew__queue_stats *all; /* by name */
    size_t n, room;
    ew__arena *arena;
} found_queues;

static int compare(ew_str a, ew_str b) {
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The queue of this name, in whichever column it is; one that was not there is added in its place. NULL: trouble. */
static ew__queue_stats *queue_of(ew__jobs_file *self, found_queues *queues, sqlite3_stmt *stmt, int at) {
    const void *bytes = sqlite3_column_blob(stmt, at);
    int n = sqlite3_column_bytes(stmt, at);
    ew_str name = ew__str(bytes != NULL ? bytes : "", bytes != NULL && n > 0 ? (size_t)n : 0);
    size_t low = 0, high = queues->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(queues->all[middle].name, name);
        if (order == 0) {
            return &queues->all[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    name = ew__sql_get(self, stmt, at, queues->arena);
    ew__queue_stats *all = ew__sql_grow(self, queues->arena, queues->all, queues->n, &queues->room, sizeof *all);
    if (self->code != SQLITE_OK || !all) {
        return NULL;
    }
    queues->all = all;
    memmove(queues->all + low + 1, queues->all + low, (queues->n++ - low) * sizeof *queues->all);
    queues->all[low] = (ew__queue_stats){.name = name, .average_wait_ms = -1};
    return &queues->all[low];
}

/* Leaps from name to name; what waits in each is counted in its index. */
static void find_waiting(ew__jobs_file *self, found_queues *queues) {
    ew_str last = {NULL, 0};
    for (;;) {
        sqlite3_stmt *next = ew__sql_use(self, EW__SQL_QUEUE_NEXT);
        if (next != NULL) {
            (void)sqlite3_bind_text64(next, 1, last.len > 0 ? last.ptr : "", last.len, SQLITE_STATIC, SQLITE_UTF8);
        }
        bool more = ew__sql_row(self, next) && sqlite3_column_type(next, 0) != SQLITE_NULL;
        ew__queue_stats *queue = more ? queue_of(self, queues, next, 0) : NULL;
        ew__sql_end(next);
        if (queue == NULL) {
            return;
        }
        sqlite3_stmt *count = ew__sql_use(self, EW__SQL_QUEUE_WAITING);
        ew__sql_text(self, count, 1, last = queue->name);
        if (ew__sql_row(self, count)) {
            queue->pending = (uint64_t)sqlite3_column_int64(count, 0);
            queue->oldest_due = sqlite3_column_int64(count, 1);
            queue->newest_due = sqlite3_column_int64(count, 2);
        }
        ew__sql_end(count);
    }
}

static void find_paused(ew__jobs_file *self, found_queues *queues) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_QUEUE_PAUSED);
    while (ew__sql_row(self, stmt)) {
        ew__queue_stats *queue = queue_of(self, queues, stmt, 0);
        if (queue != NULL) {
            queue->paused = true;
        }
    }
    ew__sql_end(stmt);
}

static void add_count(ew__queue_stats *queue, int status, uint64_t n) {
    switch (status) {
    case EW__JOB_ACTIVE:
        queue->active += n;
        break;
    case EW__JOB_RETRYING:
        queue->retrying += n;
        break;
    case EW__JOB_COMPLETED:
        queue->completed += n;
        break;
    case EW__JOB_FAILED:
        queue->failed += n;
        break;
    case EW__JOB_CANCELLED:
        queue->cancelled += n;
        break;
    default: /* what waits has been counted in its index */
        break;
    }
}

/* A row for each queue and status, those of one queue together: the average is made when the next one begins. */
static void count_all(ew__jobs_file *self, found_queues *queues, uint32_t max_scan) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_QUEUE_COUNTS);
    ew_str name = {NULL, 0};
    int64_t begun = 0, waited = 0;
    ew__sql_int(self, stmt, 1, max_scan > 0 ? (int64_t)max_scan : -1);
    while (ew__sql_row(self, stmt)) {
        ew__queue_stats *queue = queue_of(self, queues, stmt, 0);
        if (queue == NULL) {
            break;
        }
        if (!ew__str_is(name, queue->name)) {
            begun = waited = 0;
            name = queue->name;
        }
        add_count(queue, sqlite3_column_int(stmt, 1), (uint64_t)sqlite3_column_int64(stmt, 2));
        queue->dead += (uint64_t)sqlite3_column_int64(stmt, 3);
        begun += sqlite3_column_int64(stmt, 4);
        waited += sqlite3_column_int64(stmt, 5);
        queue->average_wait_ms = begun > 0 ? waited / begun : -1;
    }
    ew__sql_end(stmt);
}

ew_err ew__jobs_sqlite_queues(ew__jobs_file *self, ew__op_queues *op, ew__arena *arena) {
    found_queues queues = {.arena = arena};
    op->ret_partial = false;
    find_waiting(self, &queues);
    find_paused(self, &queues);
    if (op->counts) {
        count_all(self, &queues, op->max_scan);
    }
    if (op->counts && op->max_scan > 0) {
        sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_QUEUE_SEEN);
        ew__sql_int(self, stmt, 1, op->max_scan);
        op->ret_partial = ew__sql_row(self, stmt);
        ew__sql_end(stmt);
    }
    op->ret = queues.all;
    op->ret_n = queues.n;
    return ew__sql_err(self);
}

/* ---- workers ---- */

ew_err ew__jobs_sqlite_workers(ew__jobs_file *self, ew__op_workers *op, ew__arena *arena) {
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_WORKERS);
    int64_t now = ew__sql_mono(self);
    size_t room = 0;
    ew__sql_int(self, stmt, 1, now);
    ew__sql_int(self, stmt, 2, self->boot);
    op->ret = NULL;
    op->ret_n = 0;
    while (ew__sql_row(self, stmt)) {
        ew__worker_record *more = ew__sql_grow(self, arena, op->ret, op->ret_n, &room, sizeof *more);
        if (more == NULL) {
            break;
        }
        op->ret = more;
        ew__worker_record *record = &op->ret[op->ret_n++];
        record->id = ew__sql_get(self, stmt, 0, arena);
        record->record = ew__sql_get(self, stmt, 1, arena);
        record->ttl_ms = (uint64_t)(sqlite3_column_int64(stmt, 2) - now);
    }
    ew__sql_end(stmt);
    return ew__sql_err(self);
}
