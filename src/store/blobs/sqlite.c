/*
 * store/blobs/sqlite.c: blobs in a file of SQLite. See blobs.h.
 *
 * The file is in WAL mode, so that readers and a writer do not wait for each other, with synchronous=NORMAL: a commit is
 * then not flushed to the disk at once. A crash of this program loses nothing; one of the machine may lose the last
 * blobs, never the file. That is enough: the run that they belong to dies with the machine, and the same value put
 * again has the same id.
 *
 * SQLite has an allocator and locks of its own, for the whole process; a store here is used by one thread at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "base/util.h"
#include "json/json.h"
#include "store/blobs/blobs.h"
#include "store/file_identity.h"
#include "store/trust.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000
#define PAUSE_MS 20
#define WAL_BYTES "67108864" /* a longer log is cut when it has been copied into the file */

/* Tells our files from those of other programs, in the place that SQLite has for that: "ewbl". */
#define APPLICATION_ID 0x6577626c
#define SCHEMA_VERSION 1

enum { STATEMENT_HAS, STATEMENT_PUT, STATEMENT_GET, STATEMENTS };

typedef struct file {
    ew__blobs blobs;
    const ew_env *env;
    ew__blob_id_fn id;
    sqlite3 *db;
    char *path;
    size_t path_size;
    ew__file_identity identity; /* of the file that db has open */
    sqlite3_stmt *statements[STATEMENTS];
    bool removed;                 /* is_there was false, and that was logged */
    char distrust[EW__TRUST_WHY]; /* why the file was refused */
} file;

static file *self_of(ew__blobs *blobs) { return ew__container_of(blobs, file, blobs); }

static ew_err err_of(int code) {
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return EW_OK;
    case SQLITE_NOMEM:
        return EW_ENOMEM;
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
        return EW_ELIMIT;
    default:
        return EW_EIO;
    }
}

/* ---- put and get ---- */

/* Whether the file is still at its path; what was put into a file that was removed would be lost. */
static bool is_there(file *self) {
    bool there = ew__file_identity_holds(self->path, &self->identity);
    if (!there && !self->removed) {
        ew__log(self->env, EW_LOG_ERROR, "store", "blobs: %s was removed or replaced while it was in use", self->path);
    }
    self->removed = !there;
    return there;
}

/* The statement, with the id as its first parameter. */
static sqlite3_stmt *prepare_for(file *self, int which, const char *id) {
    sqlite3_stmt *statement = self->statements[which];
    (void)sqlite3_bind_text(statement, 1, id, EW__BLOB_ID_LEN, SQLITE_STATIC);
    return statement;
}

/* Ends a step: frees its locks and forgets what was bound, which may be gone soon. */
static ew_err finish(file *self, sqlite3_stmt *statement, int code) {
    ew_err err = err_of(code);
    if (err == EW_EIO) {
        ew__log(self->env, EW_LOG_WARN, "store", "blobs: %s", sqlite3_errmsg(self->db));
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return err;
}

/* Asked before a put: writing, even of nothing, waits for other writers. */
static ew_err has(file *self, const char *id, bool *ret) {
    sqlite3_stmt *statement = prepare_for(self, STATEMENT_HAS, id);
    int code = sqlite3_step(statement);
    *ret = code == SQLITE_ROW;
    return finish(self, statement, code);
}

static ew_err insert(file *self, const char *id, ew_str json, ew_str type) {
    sqlite3_stmt *statement = prepare_for(self, STATEMENT_PUT, id);
    int code = sqlite3_bind_text(statement, 2, type.ptr, (int)type.len, SQLITE_STATIC);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_text64(statement, 3, json.ptr, json.len, SQLITE_STATIC, SQLITE_UTF8);
    }
    return finish(self, statement, code == SQLITE_OK ? sqlite3_step(statement) : code);
}

static ew_err file_put(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]) {
    file *self = self_of(blobs);
    bool there = false;
    ew_str known = ew__blob_type(type);
    if (known.len == 0) {
        return EW_EINVAL;
    }
    ew_err err = is_there(self) ? self->id(self->env, json, ret_id) : EW_EIO;
    if (err == EW_OK) {
        err = has(self, ret_id, &there);
    }
    if (err != EW_OK || there) {
        return err;
    }
    ew__buf text;
    ew__buf_init(&text, self->env, json.len);
    err = ew__buf_reserve(&text, json.len);
    if (err == EW_OK) {
        err = ew__json_minify(&text, json);
    }
    if (err == EW_OK) {
        err = insert(self, ret_id, ew__buf_view(&text), known);
    }
    ew__buf_done(&text);
    return err;
}

/* The row that a step gave. */
static ew_err read_row(file *self, sqlite3_stmt *statement, ew__buf *out, ew_str *ret_type) {
    const void *type = sqlite3_column_blob(statement, 0), *json = sqlite3_column_blob(statement, 1);
    int type_len = sqlite3_column_bytes(statement, 0), len = sqlite3_column_bytes(statement, 1);
    if (type == NULL || json == NULL) { /* neither is ever empty */
        return sqlite3_errcode(self->db) == SQLITE_NOMEM ? EW_ENOMEM : EW_EIO;
    }
    *ret_type = ew__blob_type(ew__str(type, (size_t)type_len));
    return ret_type->len != 0 ? ew__buf_add(out, json, (size_t)len) : EW_EIO;
}

static ew_err file_get(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type) {
    file *self = self_of(blobs);
    if (id.len != EW__BLOB_ID_LEN) {
        return EW_ENOTFOUND;
    }
    if (!is_there(self)) {
        return EW_EIO;
    }
    sqlite3_stmt *statement = prepare_for(self, STATEMENT_GET, id.ptr);
    int code = sqlite3_step(statement);
    ew_err err = code == SQLITE_ROW ? read_row(self, statement, out, ret_type) : EW_ENOTFOUND;
    ew_err end = finish(self, statement, code);
    return end != EW_OK ? end : err;
}

static void file_free(ew__blobs *blobs) {
    file *self = self_of(blobs);
    for (size_t i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(self->statements[i]);
    }
    if (self->db != NULL && !ew__file_identity_holds(self->path, &self->identity)) {
        /* the last connection would remove the log by its name, and so that of the file that is there now */
        (void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    (void)sqlite3_close(self->db);
    ew__free(self->env, self->path, self->path_size);
    ew__free(self->env, self, sizeof *self);
}

/* ---- opening ---- */

/* One number, such as a pragma answers. */
static int read_number(sqlite3 *db, const char *sql, int *ret) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
        *ret = code == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
        code = sqlite3_finalize(statement);
    }
    return code;
}

/* Inside a transaction: whose file it is; makes the table in an empty one. *ret_why: for people, if it is not ours. */
static int check_schema(sqlite3 *db, const char **ret_why) {
    static const char make[] =
        "CREATE TABLE blobs(id TEXT NOT NULL PRIMARY KEY, type TEXT NOT NULL, json TEXT NOT NULL)";
    int application = 0, version = 0, tables = 0;
    char sql[128];
    int code = read_number(db, "PRAGMA application_id", &application);
    if (code == SQLITE_OK) {
        code = read_number(db, "PRAGMA user_version", &version);
    }
    if (code == SQLITE_OK) {
        code = read_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
    }
    if (code != SQLITE_OK || (application == APPLICATION_ID && version == SCHEMA_VERSION)) {
        return code;
    }
    if (application == APPLICATION_ID && version > SCHEMA_VERSION) {
        *ret_why = "a later version of this program has made it";
        return SQLITE_MISMATCH;
    }
    if (application != 0 || version != 0 || tables != 0) {
        *ret_why = "this database belongs to another program";
        return SQLITE_MISMATCH;
    }
    (void)snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID, SCHEMA_VERSION);
    code = sqlite3_exec(db, make, NULL, NULL, NULL);
    return code == SQLITE_OK ? sqlite3_exec(db, sql, NULL, NULL, NULL) : code;
}

/* Several programs may come to a new file at once: one makes the table, the others find it. */
static int take_schema(sqlite3 *db, const char **ret_why) {
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code == SQLITE_OK) {
        code = check_schema(db, ret_why);
        int end = sqlite3_exec(db, code == SQLITE_OK ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
        code = code == SQLITE_OK ? end : code;
    }
    return code;
}

/*
 * Where a file system cannot do WAL the file stays as it is, which is slower, but right. The change wants the file for
 * itself, and SQLite does not always wait for it.
 */
static int set_modes(sqlite3 *db) {
    int code = SQLITE_BUSY;
    for (int waited = 0; code == SQLITE_BUSY && waited <= BUSY_MS; waited += PAUSE_MS) {
        if (waited > 0) {
            (void)sqlite3_sleep(PAUSE_MS);
        }
        code = sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_exec(db, "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=" WAL_BYTES, NULL, NULL, NULL);
    }
    return code;
}

static int prepare_statements(file *self) {
    static const char *const sql[STATEMENTS] = {
        [STATEMENT_HAS] = "SELECT 1 FROM blobs WHERE id=?1",
        [STATEMENT_PUT] = "INSERT INTO blobs(id,type,json) VALUES(?1,?2,?3) ON CONFLICT(id) DO NOTHING",
        [STATEMENT_GET] = "SELECT type,json FROM blobs WHERE id=?1",
    };
    int code = SQLITE_OK;
    for (size_t i = 0; i < STATEMENTS && code == SQLITE_OK; i++) {
        code = sqlite3_prepare_v3(self->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &self->statements[i], NULL);
    }
    return code;
}

/*
 * SQLite would make the file readable for all; its log and index get the mode of the file. Made by its name alone: to
 * close a descriptor of a file gives up the locks that other stores of this process have on it.
 */
static int make_file(const char *path, const char **ret_why) {
    if (mknod(path, S_IFREG | S_IRUSR | S_IWUSR, 0) == 0 || errno == EEXIST) {
        return SQLITE_OK;
    }
    bool absent = errno == ENOENT || errno == ENOTDIR, denied = errno == EACCES || errno == EPERM || errno == EROFS;
    *ret_why = absent ? "there is no such folder" : denied ? "permission denied" : "it cannot be made";
    return SQLITE_CANTOPEN;
}

static int check_trust(file *self, const char *path, const char **ret_why) {
    if (ew__trust_database(path, geteuid(), self->distrust)) {
        return SQLITE_OK;
    }
    *ret_why = self->distrust;
    return SQLITE_PERM;
}

static int open_file(file *self, const char *path, const char **ret_why) {
    int code = make_file(path, ret_why);
    if (code == SQLITE_OK) {
        code = check_trust(self, path, ret_why);
    }
    if (code != SQLITE_OK) {
        return code;
    }
    code = sqlite3_open_v2(path, &self->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(self->db, 1);
        (void)sqlite3_busy_timeout(self->db, BUSY_MS);
        (void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        code = take_schema(self->db, ret_why);
    }
    if (code == SQLITE_OK) {
        code = set_modes(self->db);
    }
    if (code == SQLITE_OK) { /* again: the -wal and -shm files exist from here on */
        code = check_trust(self, path, ret_why);
    }
    return code == SQLITE_OK ? prepare_statements(self) : code;
}

/* SQLite gives a meaning to names like ":memory:" and "file:x"; a path with a folder has none but its own. */
static int open_by_name(file *self, const char *path, const char **ret_why) {
    self->path_size = strlen(path) + sizeof "./";
    self->path = ew__alloc(self->env, self->path_size);
    if (self->path == NULL) {
        return SQLITE_NOMEM;
    }
    (void)snprintf(self->path, self->path_size, "%s%s", path[0] == '/' ? "" : "./", path);
    int code = open_file(self, self->path, ret_why);
    if (code == SQLITE_OK) {
        ew__file_identity_read(self->path, &self->identity);
    }
    return code;
}

ew_err ew__blobs_sqlite(const ew_env *env, ew__blob_id_fn id, const char *path, ew__blobs **ret, char *problem,
                        size_t problem_size) {
    const char *why = NULL;
    *ret = NULL;
    if (path[0] == '\0') {
        return EW_EINVAL;
    }
    file *self = ew__zalloc(env, sizeof *self);
    if (self == NULL) {
        return EW_ENOMEM;
    }
    self->blobs = (ew__blobs){.put = file_put, .get = file_get, .free = file_free};
    self->env = env;
    self->id = id;
    int code = open_by_name(self, path, &why);
    if (code == SQLITE_OK) {
        *ret = &self->blobs;
        return EW_OK;
    }
    if (problem != NULL) {
        (void)snprintf(problem, problem_size, "%.200s: %s", path, why != NULL ? why : sqlite3_errstr(code));
    }
    file_free(&self->blobs);
    return err_of(code) == EW_ENOMEM ? EW_ENOMEM : EW_EIO;
}
