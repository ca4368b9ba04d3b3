/*
 * tests/store/test_store_sqlite.c: the contract on SQLite, and what is the file's own: it stays, it is shared, it may
 * be somebody else's, and time is what its clocks say. SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite_place.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the contract ---- */

static ew__store *contract_open(contract *c, bool fresh) {
    place *p = c->ud;
    if (fresh)
        place_clear(p);
    return place_open(p);
}

static void contract_close(contract *c, ew__store *store) {
    (void)c;
    store->ops->free(store);
}

static void contract_pass(contract *c, uint64_t ms) { place_sleep(c->ud, ms); }

static int run_contract(void) {
    place p;
    place_make(&p);
    contract c = {.name = "sqlite",
                  .env = &p.env,
                  .open = contract_open,
                  .close = contract_close,
                  .sleep = contract_pass,
                  .lease_ms = 15000,
                  .ttl_ms = 60000,
                  .kept = true,
                  .shared = true,
                  .threads = true,
                  .checks = true,
                  .ud = &p};
    int failed = contract_run(&c);
    place_remove(&p);
    return failed;
}

/* ---- its own ---- */

/* A contract without its suite, for its words. */
typedef struct world {
    place place;
    contract c;
} world;

static int setup(void **state) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    place_make(&w->place);
    w->c = (contract){.env = &w->place.env,
                      .open = contract_open,
                      .close = contract_close,
                      .sleep = contract_pass,
                      .lease_ms = 15000,
                      .ttl_ms = 60000,
                      .kept = true,
                      .ud = &w->place};
    ew__arena_init(&w->c.arena, w->c.env, NULL, 0);
    w->c.store = contract_open(&w->c, true);
    assert_non_null(w->c.store);
    *state = w;
    return 0;
}

static void close_it(world *w) {
    if (w->c.store != NULL)
        contract_close(&w->c, w->c.store);
    w->c.store = NULL;
}

static int teardown(void **state) {
    world *w = *state;
    close_it(w);
    ew__arena_done(&w->c.arena);
    place_remove(&w->place);
    free(w);
    return 0;
}

static void expect_refused(world *w, const char *spec, ew_err expected, const char *why) {
    char problem[256] = "";
    ew__store *store = NULL;
    assert_int_equal(ew__jobs_open(w->c.env, spec, &store, problem, sizeof problem), expected);
    assert_null(store);
    if (strstr(problem, why) == NULL)
        fail_msg("%s", problem);
    assert_int_equal(ew__jobs_open(w->c.env, spec, &store, NULL, 0), expected);
}

static void test_store_sqlite__mode(void **state) {
    world *w = *state;
    static const char *const ends[] = {"", "-wal", "-shm"};
    struct stat st;
    char path[128];
    contract_add_id(&w->c, "j1");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(path, sizeof path, "%s%s", w->place.path, ends[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    assert_string_equal(w->c.store->name, "sqlite");
    assert_string_equal(w->c.store->ops->notice(w->c.store), "");
}

static void test_store_sqlite__makes_its_folder(void **state) {
    world *w = *state;
    char path[128], spec[160];
    struct stat st;
    ew__store *store = NULL;
    (void)snprintf(spec, sizeof spec, "sqlite:%s/a/b/jobs.db", w->place.folder);
    assert_int_equal(ew__jobs_open(w->c.env, spec, &store, NULL, 0), EW_OK);
    store->ops->free(store);
    assert_int_equal(ew__jobs_open(w->c.env, spec, &store, NULL, 0), EW_OK);
    store->ops->free(store);
    (void)snprintf(path, sizeof path, "%s/a/b/jobs.db", w->place.folder);
    assert_int_equal(unlink(path), 0);
    for (const char *const *folder = (const char *const[]){"a/b", "a", NULL}; *folder != NULL; folder++) {
        (void)snprintf(path, sizeof path, "%s/%s", w->place.folder, *folder);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        assert_int_equal(rmdir(path), 0);
    }
}

static void test_store_sqlite__says_whose_it_is(void **state) {
    world *w = *state;
    contract_add_id(&w->c, "j1");
    close_it(w);
    assert_int_equal(place_number(&w->place, "PRAGMA application_id"), 0x65776a62);
    assert_int_equal(place_number(&w->place, "PRAGMA user_version"), 1);
    assert_int_equal(place_number(&w->place, "SELECT count(*) FROM jobs"), 1);
    assert_true(place_is_sound(&w->place));
}

static void test_store_sqlite__of_others(void **state) {
    world *w = *state;
    close_it(w);
    place_sql(&w->place, "PRAGMA user_version=99");
    expect_refused(w, w->place.spec, EW_EIO, "a later version");
    place_sql(&w->place, "PRAGMA application_id=7");
    expect_refused(w, w->place.spec, EW_EIO, "another program");
    place_sql(&w->place, "PRAGMA application_id=0; PRAGMA user_version=0");
    expect_refused(w, w->place.spec, EW_EIO, "another program"); /* it has tables */
    place_clear(&w->place);
    FILE *file = fopen(w->place.path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        assert_true(fputs("this is no database. ", file) >= 0);
    assert_int_equal(fclose(file), 0);
    expect_refused(w, w->place.spec, EW_EIO, "not a database");
    expect_refused(w, "sqlite:", EW_EINVAL, "sqlite:PATH");
    expect_refused(w, "", EW_EINVAL, "sqlite:PATH");
    expect_refused(w, "postgres://h/db", EW_EINVAL, "sqlite:PATH");
    expect_refused(w, "sqlite:/proc/none/jobs.db", EW_EIO, "");
    expect_refused(w, "sqlite:/dev/null/jobs.db", EW_EIO, "no such folder");
}

/* A file in which pages have been written over is found out at the start. */
static void test_store_sqlite__damaged(void **state) {
    world *w = *state;
    for (int i = 0; i < 200; i++) {
        ew__job job = contract_job(&w->c, "");
        job.id = contract_text(&w->c, "j%d", i);
        contract_add(&w->c, job);
    }
    close_it(w);
    int64_t root = place_number(&w->place, "SELECT rootpage FROM sqlite_schema WHERE name='jobs_due'");
    FILE *file = fopen(w->place.path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)((root - 1) * 4096 + 8), SEEK_SET), 0);
    for (int i = 0; i < 2000; i++)
        assert_int_not_equal(fputc('x', file), EOF);
    assert_int_equal(fclose(file), 0);
    char problem[256] = "";
    ew__store *store = NULL;
    assert_int_equal(ew__jobs_open(w->c.env, w->place.spec, &store, problem, sizeof problem), EW_EIO);
    if (strstr(problem, "damaged") == NULL && strstr(problem, "malformed") == NULL)
        fail_msg("%s", problem);
}

/* ---- clocks ---- */

static ew__store_request *enqueue_now(world *w, const char *id) {
    ew__store_request *op = contract_enqueue_op(&w->c, contract_job(&w->c, id));
    (void)contract_do(&w->c, op);
    return op;
}

/* What is written to a file that was removed is lost: nothing is acknowledged until it is back. */
static void test_store_sqlite__removed_in_use(void **state) {
    world *w = *state;
    char aside[128];
    (void)snprintf(aside, sizeof aside, "%s.aside", w->place.path);
    assert_int_equal(enqueue_now(w, "before")->err, EW_OK);
    assert_int_equal(rename(w->place.path, aside), 0);
    for (int i = 0; i < 2; i++) {
        ew__store_request *op = enqueue_now(w, "lost");
        assert_int_equal(op->err, EW_EIO);
        assert_non_null(strstr(op->problem, "removed while it was in use"));
        assert_int_not_equal(access(w->place.path, F_OK), 0); /* none was made in its place */
    }
    assert_int_equal(rename(aside, w->place.path), 0);
    assert_int_equal(enqueue_now(w, "after")->err, EW_OK);
    assert_int_equal(place_number(&w->place, "SELECT count(*) FROM jobs"), 2);
    assert_int_equal(place_number(&w->place, "SELECT count(*) FROM jobs WHERE id='lost'"), 0);
}

/* A file that was put in its place is used from then on, and its log is not touched by the end of the old one. */
static void test_store_sqlite__replaced_in_use(void **state) {
    world *w = *state;
    place other;
    char from[128], to[128];
    place_make(&other);
    ew__store *second = place_open(&other);
    assert_non_null(second);
    assert_int_equal(enqueue_now(w, "old")->err, EW_OK);
    place_sql(&other, "INSERT INTO paused(queue) VALUES('q1')"); /* is in the log only */
    static const char *const suffixes[] = {"-shm", "-wal", ""};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        (void)snprintf(from, sizeof from, "%s%s", other.path, suffixes[i]);
        (void)snprintf(to, sizeof to, "%s%s", w->place.path, suffixes[i]);
        assert_int_equal(rename(from, to), 0);
    }
    assert_int_equal(enqueue_now(w, "new")->err, EW_OK);
    assert_int_equal(place_number(&w->place, "SELECT count(*) FROM paused"), 1);
    assert_int_equal(place_number(&w->place, "SELECT count(*) FROM jobs WHERE id='new'"), 1);
    assert_int_equal(place_number(&w->place, "SELECT count(*) FROM jobs WHERE id='old'"), 0);
    assert_true(place_is_sound(&w->place));
    second->ops->free(second);
    place_remove(&other);
}

static void test_store_sqlite__the_wall_clock_moves_no_lease(void **state) {
    world *w = *state;
    contract_add_id(&w->c, "j1");
    ew__job job = contract_claim(&w->c, "w1", "j1");
    atomic_store(&w->place.wall_ms, 3600 * 1000);
    assert_int_equal(contract_expired(&w->c, 9)->ret_n, 0);
    atomic_store(&w->place.wall_ms, -3600 * 1000);
    assert_int_equal(contract_expired(&w->c, 9)->ret_n, 0);
    place_sleep(&w->place, 16000); /* a clock that was put back does not keep it alive either */
    assert_int_equal(contract_expired(&w->c, 9)->ret_n, 1);
    assert_int_equal(contract_renew(&w->c, &job), EW__LEASE_HELD);
    assert_int_equal(contract_expired(&w->c, 9)->ret_n, 0);
}

static void test_store_sqlite__leases_end_with_the_boot(void **state) {
    world *w = *state;
    contract_add_id(&w->c, "j1");
    ew__job job = contract_claim(&w->c, "w1", "j1");
    assert_int_equal(contract_renew(&w->c, &job), EW__LEASE_HELD);
    close_it(w);
    place_sql(&w->place, "UPDATE jobs SET lease_boot=lease_boot-1; UPDATE workers SET lease_boot=lease_boot-1");
    w->c.store = contract_open(&w->c, false);
    assert_non_null(w->c.store);
    ew__op_expired *found = contract_expired(&w->c, 9);
    assert_int_equal(found->ret_n, 1);
    ew__store_request *op = contract_op(&w->c, EW__OP_WORKERS);
    assert_int_equal(contract_do(&w->c, op), EW_OK);
    assert_int_equal(op->u.workers.ret_n, 0);
    op = contract_change(&w->c, &found->ret[0], EW__JOB_PENDING);
    op->u.change.claim = EW__CLAIM_LOST;
    assert_int_equal(contract_do(&w->c, op), EW_OK);
}

/* ---- keeping house ---- */

static void test_store_sqlite__sweeps_in_steps(void **state) {
    world *w = *state;
    enum { N = 150 };
    for (int i = 0; i < N; i++) {
        ew__job job = contract_job(&w->c, "");
        job.id = contract_text(&w->c, "j%03d", i);
        job.result_ttl_ms = 1000;
        char key[24];
        (void)snprintf(key, sizeof key, "k%03d", i);
        (void)contract_dedup_enqueue(&w->c, job, EW__DEDUP_UNIQUE, key);
    }
    ew__op_claim *got = contract_claim_of(&w->c, "w", "q", N);
    assert_int_equal(got->ret_n, N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(contract_chunk(&w->c, &got->ret[i], "1"), EW_OK);
        contract_must_change(&w->c, &got->ret[i], EW__JOB_COMPLETED);
    }
    assert_int_equal(contract_sweep(&w->c, 1000), 0);
    place_sleep(&w->place, 70000);
    uint64_t removed = 0, steps = 0, n;
    do {
        n = contract_sweep(&w->c, 40);
        assert_true(n <= 40);
        removed += n;
    } while (n == 40 && ++steps < 100);
    assert_int_equal(removed, 2 * N); /* jobs and keys */
    close_it(w);
    assert_int_equal(place_number(&w->place, "SELECT (SELECT count(*) FROM jobs)+(SELECT count(*) FROM params)+"
                                             "(SELECT count(*) FROM chunks)+(SELECT count(*) FROM keys)"),
                     0);
    assert_true(place_is_sound(&w->place));
}

/* Every statement that is run often finds what it wants by an index. */
static void test_store_sqlite__plans(void **state) {
    world *w = *state;
    static const struct {
        const char *sql, *index;
    } plans[] = {
        {"SELECT seq FROM jobs j INDEXED BY jobs_due WHERE j.queue='q' AND j.due<=5 ORDER BY j.due,j.id LIMIT 3",
         "COVERING INDEX jobs_due"},
        {"SELECT min(due) FROM jobs INDEXED BY jobs_due WHERE queue='q' AND due>5", "COVERING INDEX jobs_due"},
        {"SELECT min(queue) FROM jobs INDEXED BY jobs_due WHERE due IS NOT NULL AND queue>'a'",
         "COVERING INDEX jobs_due"},
        {"SELECT seq FROM jobs INDEXED BY jobs_expires WHERE expires_at<=5 ORDER BY expires_at LIMIT 3",
         "COVERING INDEX jobs_expires"},
    };
    close_it(w);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(w->place.path, &db), SQLITE_OK);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        sqlite3_stmt *stmt = NULL;
        char sql[300];
        (void)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", plans[i].sql);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *detail = (const char *)sqlite3_column_text(stmt, 3);
            if (strstr(detail, "SEARCH") == NULL || strstr(detail, plans[i].index) == NULL ||
                strstr(detail, "TEMP B-TREE") != NULL)
                fail_msg("%s: %s", plans[i].sql, detail);
        }
        (void)sqlite3_finalize(stmt);
    }
    (void)sqlite3_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_store_sqlite__mode, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__makes_its_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__says_whose_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__of_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__removed_in_use, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__replaced_in_use, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__the_wall_clock_moves_no_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__leases_end_with_the_boot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__sweeps_in_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite__plans, setup, teardown),
    };
    int failed = run_contract();
    return failed + cmocka_run_group_tests_name("sqlite: its own", tests, NULL, NULL);
}
