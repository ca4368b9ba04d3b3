/*
 * tests/unit/store/test_blobs_sqlite.c: what is the file's own: it stays, it is shared, it may be somebody else's; and
 * the names and limits of stores.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/store/stores.h"
#include "wire/stepflow/blob_id.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>

#define ID_1 "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"

static void put(ew__blobs *blobs, const char *json) {
    char id[EW__BLOB_ID_LEN];
    assert_int_equal(blobs->put(blobs, ew_str_from(json), EW_STR("data"), id), EW_OK);
}

static ew_err get(ew__blobs *blobs, const char *id, const char *expected) {
    ew__buf out;
    ew_str type;
    ew__buf_init(&out, ew_env_default(), 1 << 20);
    ew_err err = blobs->get(blobs, ew_str_from(id), &out, &type);
    if (err == EW_OK)
        assert_true(ew__str_is(ew__buf_view(&out), ew_str_from(expected)));
    ew__buf_done(&out);
    return err;
}

/* SQL on the file, by a connection of the test's own. */
static void run_sql(const store *s, const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(s->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void expect_refused(store *s, const char *path, const char *why) {
    char problem[256] = "";
    ew__blobs *blobs = NULL;
    assert_int_equal(ew__blobs_sqlite(&s->env.env, ew__blob_id, path, &blobs, problem, sizeof problem), EW_EIO);
    assert_null(blobs);
    if (strstr(problem, why) == NULL || strstr(problem, path) != problem)
        fail_msg("%s", problem);
    assert_int_equal(ew__blobs_sqlite(&s->env.env, ew__blob_id, path, &blobs, NULL, 0), EW_EIO);
    assert_int_equal(ew__test_env_live_blocks(&s->env), 0);
}

/* What is put into a file that was removed is lost: it is not acknowledged. */
static void test_store_blobs_sqlite__removed_in_use(void **state) {
    store *s = *state;
    char id[EW__BLOB_ID_LEN], aside[512];
    ew__blobs *blobs = store_open(s);
    put(blobs, "1");
    (void)snprintf(aside, sizeof aside, "%s.aside", s->path);
    assert_int_equal(rename(s->path, aside), 0);
    assert_int_equal(blobs->put(blobs, EW_STR("2"), EW_STR("data"), id), EW_EIO);
    assert_int_equal(get(blobs, ID_1, "1"), EW_EIO);
    assert_int_equal(rename(aside, s->path), 0);
    put(blobs, "2");
    assert_int_equal(get(blobs, ID_1, "1"), EW_OK);
    store_close(s, blobs);
}

static void test_store_blobs_sqlite__stays(void **state) {
    store *s = *state;
    ew__blobs *blobs = store_open(s);
    put(blobs, "1");
    store_close(s, blobs);
    blobs = store_open(s);
    assert_int_equal(get(blobs, ID_1, "1"), EW_OK);
    put(blobs, "1");
    store_close(s, blobs);
}

static void test_store_blobs_sqlite__mode(void **state) {
    store *s = *state;
    struct stat st;
    char path[100];
    mode_t before = umask(022);
    ew__blobs *blobs = store_open(s);
    put(blobs, "1");
    (void)umask(before);
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(path, sizeof path, "%s%s", s->path, ends[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    store_close(s, blobs);
    assert_int_equal(chmod(s->path, 0640), 0); /* its owner's choice */
    store_close(s, store_open(s));
    assert_int_equal(stat(s->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void test_store_blobs_sqlite__two_handles(void **state) {
    store *s = *state;
    ew__blobs *a = store_open(s), *b = store_open(s);
    put(a, "1");
    assert_int_equal(get(b, ID_1, "1"), EW_OK);
    put(b, "1");
    put(b, "{}");
    put(a, "[]");
    assert_int_equal(get(a, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "{}"), EW_OK);
    a->free(a);
    assert_int_equal(get(b, "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945", "[]"), EW_OK);
    store_close(s, b);
}

/* A process that opens the file, new or not, and puts values of its own and such that all put; 0 when all went well. */
static int writer(const store *s, int number) {
    ew__blobs *blobs = NULL;
    ew_limits limits = s->limits;
    if (ew__blobs_open(ew_env_default(), ew__blob_id, &limits, s->spec, &blobs, NULL, 0) != EW_OK)
        return 1;
    int status = 0;
    for (int i = 0; i < 50 && status == 0; i++) {
        char json[48], id[EW__BLOB_ID_LEN];
        int n = snprintf(json, sizeof json, "[%d,%d]", i % 2 == 0 ? number : -1, i);
        if (blobs->put(blobs, ew__str(json, (size_t)n), EW_STR("data"), id) != EW_OK)
            status = 2;
        else if (get(blobs, ID_1, "1") != EW_ENOTFOUND)
            status = 3;
    }
    blobs->free(blobs);
    return status;
}

static void test_store_blobs_sqlite__processes(void **state) {
    store *s = *state;
    enum { N = 4 };
    pid_t pids[N];
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(writer(s, i));
    }
    for (int i = 0; i < N; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(s->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM blobs", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), N * 25 + 25);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
}

static void test_store_blobs_sqlite__no_database(void **state) {
    store *s = *state;
    static const char text[] =
        "This is a letter to somebody, not a database. It is long enough to be read as a header, "
        "which has a hundred bytes, and goes on for a while after that.";
    write_file(s->path, text, sizeof text);
    expect_refused(s, s->path, "not a database");
    char folder[sizeof s->path + 8];
    (void)snprintf(folder, sizeof folder, "%s/no/where", s->folder);
    expect_refused(s, folder, "no such folder");
    expect_refused(s, s->folder, "it is not a regular file");
    (void)snprintf(folder, sizeof folder, "%s/x", s->path);
    expect_refused(s, folder, "no such folder");
}

/* A file that was cut or overwritten inside is an error, not a wrong answer. */
static void test_store_blobs_sqlite__broken(void **state) {
    store *s = *state;
    ew__blobs *blobs = store_open(s);
    put(blobs, "1");
    store_close(s, blobs);
    FILE *file = fopen(s->path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4096, SEEK_SET), 0); /* behind the page with the schema */
    for (int i = 0; i < 8192; i++)
        assert_int_not_equal(fputc(0x5a, file), EOF);
    assert_int_equal(fclose(file), 0);
    blobs = store_open(s);
    assert_int_equal(get(blobs, ID_1, "1"), EW_EIO);
    assert_string_equal(s->env.log_room, "store");
    char id[EW__BLOB_ID_LEN];
    assert_int_equal(blobs->put(blobs, EW_STR("2"), EW_STR("data"), id), EW_EIO);
    store_close(s, blobs);
}

static void test_store_blobs_sqlite__not_ours(void **state) {
    store *s = *state;
    run_sql(s, "CREATE TABLE songs(title TEXT)");
    expect_refused(s, s->path, "another program");
    store_wipe(s);
    run_sql(s, "PRAGMA application_id=7");
    expect_refused(s, s->path, "another program");
    store_wipe(s);
    store_close(s, store_open(s));
    run_sql(s, "PRAGMA user_version=2");
    expect_refused(s, s->path, "later version");
    run_sql(s, "PRAGMA user_version=1");
    store_close(s, store_open(s));
}

/* A row that this program would not have written. */
static void test_store_blobs_sqlite__odd_rows(void **state) {
    store *s = *state;
    store_close(s, store_open(s));
    run_sql(s, "INSERT INTO blobs VALUES('" ID_1 "','song','1')");
    ew__blobs *blobs = store_open(s);
    assert_int_equal(get(blobs, ID_1, "1"), EW_EIO);
    store_close(s, blobs);
}

/* Another program puts the same value between our look and our put: its type is the first. */
static void test_store_blobs_sqlite__overtaken(void **state) {
    store *s = *state;
    ew__buf out;
    ew_str type;
    ew__blobs *blobs = store_open(s);
    run_sql(s, "CREATE TRIGGER before BEFORE INSERT ON blobs WHEN new.type='data' BEGIN "
               "INSERT INTO blobs VALUES(new.id,'flow',new.json); END");
    put(blobs, "1");
    ew__buf_init(&out, ew_env_default(), 1 << 20);
    assert_int_equal(blobs->get(blobs, EW_STR(ID_1), &out, &type), EW_OK);
    assert_true(ew__str_is(type, EW_STR("flow")));
    ew__buf_done(&out);
    store_close(s, blobs);
}

/* A put that fails is said, and the next one is a new one. */
static void test_store_blobs_sqlite__failing_put(void **state) {
    store *s = *state;
    char id[EW__BLOB_ID_LEN];
    ew__blobs *blobs = store_open(s);
    put(blobs, "1");
    run_sql(s, "CREATE TRIGGER no BEFORE INSERT ON blobs BEGIN SELECT raise(ABORT,'not today'); END");
    assert_int_equal(blobs->put(blobs, EW_STR("2"), EW_STR("data"), id), EW_EIO);
    assert_non_null(strstr(s->env.log_line, "not today"));
    put(blobs, "1");
    assert_int_equal(get(blobs, ID_1, "1"), EW_OK);
    run_sql(s, "DROP TRIGGER no");
    put(blobs, "2");
    store_close(s, blobs);
}

/* Names that SQLite would take for something else are files here. */
static void test_store_blobs_sqlite__names(void **state) {
    store *s = *state;
    static const char *const names[] = {":memory:", "file:x?mode=memory", "plain"};
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(s->folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ew__blobs *blobs = NULL;
        assert_int_equal(ew__blobs_sqlite(&s->env.env, ew__blob_id, names[i], &blobs, NULL, 0), EW_OK);
        put(blobs, "1");
        store_close(s, blobs);
        assert_int_equal(ew__blobs_sqlite(&s->env.env, ew__blob_id, names[i], &blobs, NULL, 0), EW_OK);
        assert_int_equal(get(blobs, ID_1, "1"), EW_OK);
        store_close(s, blobs);
        assert_int_equal(unlink(names[i]), 0);
    }
    assert_int_equal(chdir(before), 0);
}

static void test_store_blobs_sqlite__specs(void **state) {
    store *s = *state;
    static const char *const wrong[] = {"",        "Memory",    "memory:",   "sqlite",
                                        "sqlite:", "sqlite3:x", "redis://x", "/tmp/x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char problem[128] = "";
        ew__blobs *blobs = NULL;
        assert_int_equal(
            ew__blobs_open(&s->env.env, ew__blob_id, &s->limits, wrong[i], &blobs, problem, sizeof problem), EW_EINVAL);
        assert_non_null(strstr(problem, "sqlite:PATH"));
        assert_null(blobs);
    }
    ew__blobs *blobs = NULL;
    assert_int_equal(ew__blobs_sqlite(&s->env.env, ew__blob_id, "", &blobs, NULL, 0), EW_EINVAL);
}

/* Memory: full is full, but what is there can be put again, and what is small may still fit. */
static void test_store_blobs_sqlite__memory_full(void **state) {
    store *s = *state;
    char id[EW__BLOB_ID_LEN], text[900];
    ew__blobs *blobs = NULL;
    memset(text, ' ', sizeof text);
    text[0] = '1';
    s->limits.blob_bytes = 1000;
    assert_int_equal(ew__blobs_open(&s->env.env, ew__blob_id, &s->limits, "memory", &blobs, NULL, 0), EW_OK);
    assert_int_equal(blobs->put(blobs, ew__str(text, sizeof text), EW_STR("data"), id), EW_OK); /* without its spaces */
    memset(text, '2', sizeof text);
    assert_int_equal(blobs->put(blobs, ew__str(text, sizeof text), EW_STR("data"), id), EW_ELIMIT);
    assert_int_equal(blobs->put(blobs, EW_STR("1"), EW_STR("data"), id), EW_OK);
    int n = 0;
    for (ew_err err = EW_OK; err == EW_OK; n++) {
        (void)snprintf(text, sizeof text, "%d", n);
        err = blobs->put(blobs, ew_str_from(text), EW_STR("data"), id);
        assert_true(err == EW_OK || err == EW_ELIMIT);
        assert_true(n < 100);
    }
    assert_true(n > 2);
    assert_int_equal(get(blobs, ID_1, "1"), EW_OK);
    store_close(s, blobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_blobs_sqlite__removed_in_use, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__stays, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__mode, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__two_handles, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__processes, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__no_database, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__broken, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__not_ours, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__odd_rows, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__overtaken, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__failing_put, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__names, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__specs, "sqlite"),
        STORE_TEST(test_store_blobs_sqlite__memory_full, "memory"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
