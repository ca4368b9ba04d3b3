/*
 * store/sqlite/file.c: the file of the SQLite store of jobs: how it is made, whose it is, what is in it. See
 * sqlite.h.
 *
 * WAL with synchronous=FULL: a commit is on the disk before it is acknowledged, and one flush does for a whole batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000
#define CHECK_BYTES ((int64_t)256 << 20) /* larger files are not checked at the start: it would take too long */
#define NOTE_BYTES                                                                                                     \
    ((int64_t)2 << 20) /* for larger ones it is noted that they were, so that not every command does it */
#define NOTE_MS ((int64_t)3600 * 1000) /* how long that holds */
#define WAL_BYTES "67108864"           /* a longer log is cut when it has been copied into the file */

/* Tells our files from those of other programs, in the place that SQLite has for that: "ewjb". */
#define APPLICATION_ID 0x65776a62

/* ---- what is in it ---- */

/* Step n leads from version n to n+1. Steps are never changed once they were released, only added. */
static const char *const steps[] = {
    "CREATE TABLE jobs("
    "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, function TEXT NOT NULL, queue TEXT NOT NULL,"
    "status INTEGER NOT NULL, epoch INTEGER NOT NULL DEFAULT 0, due INTEGER, lease_until INTEGER, lease_boot INTEGER,"
    "expires_at INTEGER, dead TEXT, enqueued_at INTEGER NOT NULL, run_at INTEGER NOT NULL,"
    "started_at INTEGER NOT NULL DEFAULT 0, ended_at INTEGER NOT NULL DEFAULT 0, timeout_ms INTEGER NOT NULL,"
    "result_ttl_ms INTEGER NOT NULL, max_retries INTEGER NOT NULL, retries INTEGER NOT NULL DEFAULT 0,"
    "lost INTEGER NOT NULL DEFAULT 0, cancel INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0,"
    "chunks_kept INTEGER NOT NULL DEFAULT 0, chunk_bytes INTEGER NOT NULL DEFAULT 0, worker TEXT, unique_key TEXT,"
    "dlq TEXT, last_error TEXT, error TEXT, result TEXT);"
    "CREATE INDEX jobs_due ON jobs(queue,due,id) WHERE due IS NOT NULL;"
    "CREATE INDEX jobs_leased ON jobs(lease_until,lease_boot) WHERE lease_until IS NOT NULL;"
    "CREATE INDEX jobs_expires ON jobs(expires_at) WHERE expires_at IS NOT NULL;"
    "CREATE INDEX jobs_dead ON jobs(dead,ended_at) WHERE dead IS NOT NULL;"
    "CREATE INDEX jobs_enqueued ON jobs(enqueued_at);"
    /* apart from the jobs, because it may be large, and a job is written anew with each step of its life */
    "CREATE TABLE params(seq INTEGER PRIMARY KEY, params TEXT NOT NULL, trace TEXT, correlation TEXT);"
    "CREATE TABLE chunks(job INTEGER NOT NULL, seq INTEGER NOT NULL, bytes INTEGER NOT NULL, json TEXT,"
    "PRIMARY KEY(job,seq)) WITHOUT ROWID;"
    "CREATE TABLE keys(kind INTEGER NOT NULL, key TEXT NOT NULL, job TEXT NOT NULL, expires_at INTEGER NOT NULL,"
    "UNIQUE(kind,key));"
    "CREATE INDEX keys_expires ON keys(expires_at);"
    "CREATE TABLE paused(queue TEXT PRIMARY KEY) WITHOUT ROWID;"
    "CREATE TABLE workers(id TEXT PRIMARY KEY, record TEXT NOT NULL, lease_until INTEGER NOT NULL,"
    "lease_boot INTEGER NOT NULL) WITHOUT ROWID;",
};
#define SCHEMA_VERSION ((int)(sizeof steps / sizeof *steps))

/* One number, such as a pragma answers. */
static int read_number(sqlite3 *db, const char *sql, int64_t *ret) {
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    *ret = 0;
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
        *ret = code == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
        code = sqlite3_finalize(stmt);
    }
    return code;
}

static int run_steps(sqlite3 *db, int64_t version) {
    char sql[96];
    int code = SQLITE_OK;
    for (int64_t i = version; i < SCHEMA_VERSION && code == SQLITE_OK; i++) {
        code = sqlite3_exec(db, steps[i], NULL, NULL, NULL);
    }
    (void)snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID, SCHEMA_VERSION);
    return code == SQLITE_OK ? sqlite3_exec(db, sql, NULL, NULL, NULL) : code;
}

static int read_schema(sqlite3 *db, int64_t *application, int64_t *version, int64_t *tables) {
    int code = read_number(db, "PRAGMA application_id", application);
    if (code == SQLITE_OK) {
        code = read_number(db, "PRAGMA user_version", version);
    }
    return code == SQLITE_OK ? read_number(db, "SELECT count(*) FROM sqlite_schema", tables) : code;
}

/* Whose file it is: SQLITE_OK, *ret_old: with steps to be done. *ret_why: for people, if it is not ours. */
static int check_schema(sqlite3 *db, int64_t *version, bool *ret_old, const char **ret_why) {
    int64_t application = 0, tables = 0;
    int code = read_schema(db, &application, version, &tables);
    bool ours = application == APPLICATION_ID, empty = application == 0 && *version == 0 && tables == 0;
    *ret_old = ours ? *version < SCHEMA_VERSION : empty;
    if (code != SQLITE_OK || *ret_old || (ours && *version == SCHEMA_VERSION)) {
        return code;
    }
    *ret_why = ours ? "a later version of this program has made it" : "this database belongs to another program";
    return SQLITE_MISMATCH;
}

/* Does what is to be done in one transaction: what is seen of the file belongs together. */
static int in_transaction(sqlite3 *db, bool writes, bool *ret_old, const char **ret_why) {
    int64_t version = 0;
    int code = sqlite3_exec(db, writes ? "BEGIN IMMEDIATE" : "BEGIN", NULL, NULL, NULL);
    if (code == SQLITE_OK) {
        code = check_schema(db, &version, ret_old, ret_why);
        if (code == SQLITE_OK && *ret_old && writes) {
            code = run_steps(db, version);
        }
        int end = sqlite3_exec(db, code == SQLITE_OK ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
        code = code == SQLITE_OK ? end : code;
    }
    return code;
}

/* Several programs may come to a new file at once: one makes the tables, the others find them. */
static int take_schema(sqlite3 *db, const char **ret_why) {
    bool old = false;
    int code = in_transaction(db, false, &old, ret_why); /* most find everything there, and need not wait for writers */
    return code == SQLITE_OK && old ? in_transaction(db, true, &old, ret_why) : code;
}

/* ---- how it is used ---- */

/*
 * Others have the file for the time of a flush, again and again. SQLite's own way of waiting soon sleeps for a tenth of
 * a second at a time, in which a busy neighbour comes and goes a hundred times.
 */
static int wait_for_others(void *ud, int count) {
    ew__jobs_file *self = ud;
    int ms = count < 200 ? 1 : 5;
    if (self->busy_ms >= BUSY_MS) {
        return 0;
    }
    (void)poll(NULL, 0, ms);
    self->busy_ms += ms;
    return 1;
}

/*
 * Where a file system cannot do WAL the file stays as it is, which is slower, but right. The change wants the file for
 * itself, and SQLite does not always wait for it.
 */
static int set_modes(ew__jobs_file *self) {
    int code = SQLITE_BUSY;
    for (int count = 0; code == SQLITE_BUSY && (count == 0 || wait_for_others(self, count) != 0); count++) {
        code = sqlite3_exec(self->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_exec(self->db,
                            "PRAGMA synchronous=FULL; PRAGMA journal_size_limit=" WAL_BYTES
                            "; PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-8192; PRAGMA temp_store=MEMORY",
                            NULL, NULL, NULL);
    }
    return code;
}

/* The note is a key of a kind of its own, for this boot: after a crash of the machine the file is looked at again. */
static bool read_or_write_note(ew__jobs_file *self, bool writes) {
    static const char get[] = "SELECT 1 FROM keys WHERE kind=9 AND key='checked' AND job=?1 AND expires_at>?2";
    static const char put[] =
        "INSERT INTO keys(kind,key,job,expires_at) VALUES(9,'checked',?1,?2) ON CONFLICT(kind,key) "
        "DO UPDATE SET job=excluded.job,expires_at=excluded.expires_at";
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    if (sqlite3_prepare_v2(self->db, writes ? put : get, -1, &stmt, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int64(stmt, 1, self->boot);
        (void)sqlite3_bind_int64(stmt, 2, ew__sql_wall(self) + (writes ? NOTE_MS : 0));
        row = sqlite3_step(stmt) == SQLITE_ROW;
    }
    (void)sqlite3_finalize(stmt);
    return row;
}

static int quick_check(sqlite3 *db, const char **ret_why) {
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        bool row = sqlite3_step(stmt) == SQLITE_ROW;
        const void *text = row ? sqlite3_column_blob(stmt, 0) : NULL;
        bool good = text != NULL && sqlite3_column_bytes(stmt, 0) == 2 && memcmp(text, "ok", 2) == 0;
        code = sqlite3_finalize(stmt);
        if (row && !good) {
            *ret_why = "the file is damaged (PRAGMA integrity_check tells more)";
            code = SQLITE_CORRUPT;
        }
    }
    return code;
}

static int check_pages(ew__jobs_file *self, const char **ret_why) {
    int64_t pages = 0, size = 0;
    int code = read_number(self->db, "PRAGMA page_count", &pages);
    if (code == SQLITE_OK) {
        code = read_number(self->db, "PRAGMA page_size", &size);
    }
    if (code != SQLITE_OK) {
        return code;
    }
    int64_t bytes = pages * size;
    bool noted = bytes > NOTE_BYTES;
    if (bytes > CHECK_BYTES) {
        (void)snprintf(self->notice, sizeof self->notice,
                       "sqlite: the file has %lld MB and was not checked at the start", (long long)(bytes >> 20));
        return SQLITE_OK;
    }
    if (noted && read_or_write_note(self, false)) {
        return SQLITE_OK;
    }
    code = quick_check(self->db, ret_why);
    if (code == SQLITE_OK && noted) {
        (void)read_or_write_note(self, true);
    }
    return code;
}

/* ---- making it ---- */

static const char *why_not(int error) {
    return error == ENOENT || error == ENOTDIR                     ? "there is no such folder"
           : error == EACCES || error == EPERM || error == EROFS   ? "permission denied"
           : error == ENOSPC || error == EDQUOT || error == EMFILE ? "there is no room for it"
                                                                   : "it cannot be made";
}

static void flush_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

/* The folders of the path that are not there, for us alone; each is on the disk before the next. 0, or errno. */
static int make_folders(char *path) {
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        int error = mkdir(path, S_IRWXU) == 0 ? 0 : errno;
        char *before = strrchr(path, '/');
        if (error == 0 && before != NULL && before != path) {
            *before = '\0';
            flush_folder(path);
            *before = '/';
        }
        struct stat st;
        bool there = error == EEXIST || (error != 0 && stat(path, &st) == 0);
        *at = '/';
        if (error != 0 && !there) {
            return error;
        }
    }
    return 0;
}

/*
 * SQLite would make the file readable for all; its log and index get the mode of the file. Made by its name alone: to
 * close a descriptor of a file gives up the locks that other stores of this process have on it.
 */
static int make_file(ew__jobs_file *self, const char **ret_why) {
    int error = make_folders(self->path);
    if (error == 0 && mknod(self->path, S_IFREG | S_IRUSR | S_IWUSR, 0) != 0 && errno != EEXIST) {
        error = errno;
    }
    if (error == 0) {
        return SQLITE_OK;
    }
    *ret_why = why_not(error);
    return error == EACCES || error == EPERM || error == EROFS ? SQLITE_PERM : SQLITE_CANTOPEN;
}

static int check_trust(ew__jobs_file *self, const char **ret_why) {
    if (ew__trust_database(self->path, geteuid(), self->distrust)) {
        return SQLITE_OK;
    }
    *ret_why = self->distrust;
    return SQLITE_PERM;
}

int ew__jobs_file_open(ew__jobs_file *self, bool first, const char **ret_why) {
    int code = first ? make_file(self, ret_why) : SQLITE_OK;
    if (code == SQLITE_OK) {
        code = check_trust(self, ret_why);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_open_v2(self->path, &self->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    }
    if (code == SQLITE_OK) {
        self->busy_ms = 0;
        (void)sqlite3_extended_result_codes(self->db, 1);
        (void)sqlite3_busy_handler(self->db, wait_for_others, self);
        (void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        code = take_schema(self->db, ret_why);
    }
    if (code == SQLITE_OK) {
        self->busy_ms = 0;
        code = set_modes(self);
    }
    if (code == SQLITE_OK) { /* again: the -wal and -shm files exist from here on */
        code = check_trust(self, ret_why);
    }
    if (code == SQLITE_OK && first) {
        code = check_pages(self, ret_why);
    }
    if (code != SQLITE_OK) {
        ew__jobs_file_close(self);
    } else {
        ew__file_identity_read(self->path, &self->identity);
    }
    return code;
}

void ew__jobs_file_close(ew__jobs_file *self) {
    ew__jobs_sqlite_unwatch(self);
    for (size_t i = 0; i < EW__SQLS; i++) {
        (void)sqlite3_finalize(self->made[i]);
        self->made[i] = NULL;
    }
    if (self->db != NULL && !ew__file_identity_holds(self->path, &self->identity)) {
        /* the last connection would remove the log by its name, and so that of the file that is there now */
        (void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    (void)sqlite3_close(self->db);
    self->db = NULL;
}
