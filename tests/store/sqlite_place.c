/*
 * tests/store/sqlite_place.c: see sqlite_place.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite_place.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t place_now_ns(void *ud) {
    place *p = ud;
    return ew_env_default()->now_ns(NULL) + EW__MS(atomic_load(&p->ahead_ms));
}

static uint64_t place_wall_ms(void *ud) {
    place *p = ud;
    return ew_env_default()->wall_ms(NULL) + (uint64_t)atomic_load(&p->ahead_ms) + (uint64_t)atomic_load(&p->wall_ms);
}

void place_make(place *p) {
    (void)umask(022); /* files that a test writes itself must not be writable for its group */
    memset(p, 0, sizeof *p);
    p->env = *ew_env_default();
    p->env.ud = p;
    p->env.now_ns = place_now_ns;
    p->env.wall_ms = place_wall_ms;
    const char *tmp = getenv("TMPDIR");
    if (tmp == NULL) /* in memory, if that can be: these tests are about what is written, not about how long it takes */
        tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(p->folder, sizeof p->folder, "%.40s/ewjobs.XXXXXX", tmp);
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->path, sizeof p->path, "%s/jobs.db", p->folder);
    (void)snprintf(p->spec, sizeof p->spec, "sqlite:%s", p->path);
}

void place_clear(place *p) {
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[128];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(path, sizeof path, "%s%s", p->path, ends[i]);
        (void)unlink(path);
    }
}

void place_remove(place *p) {
    place_clear(p);
    (void)rmdir(p->folder);
}

ew__store *place_open(place *p) {
    char problem[256] = "";
    ew__store *store = NULL;
    if (ew__jobs_open(&p->env, p->spec, &store, problem, sizeof problem) != EW_OK)
        print_error("%s\n", problem);
    return store;
}

void place_sleep(place *p, uint64_t ms) { atomic_fetch_add(&p->ahead_ms, (long long)ms); }

static sqlite3 *open_db(const place *p) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(p->path, &db, SQLITE_OPEN_READWRITE, "unix"), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    return db;
}

void place_sql(const place *p, const char *sql) {
    sqlite3 *db = open_db(p);
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void first_column(const place *p, const char *sql, char *ret, size_t size) {
    sqlite3 *db = open_db(p);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    ret[0] = '\0';
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_text(stmt, 0) != NULL)
        (void)snprintf(ret, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int64_t place_number(const place *p, const char *sql) {
    char text[64];
    first_column(p, sql, text, sizeof text);
    return strtoll(text, NULL, 10);
}

bool place_is_sound(const place *p) {
    char text[256];
    first_column(p, "PRAGMA integrity_check", text, sizeof text);
    if (strcmp(text, "ok") != 0)
        print_error("integrity_check: %s\n", text);
    return strcmp(text, "ok") == 0;
}
