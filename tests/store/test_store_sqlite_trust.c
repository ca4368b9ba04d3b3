/*
 * tests/store/test_store_sqlite_trust.c: database files that other users could have written are
 * refused. SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "store/sqlite_place.h"
#include "store/trust.h"
#include "wire/stepflow/blob_id.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A store with one connection open, so that its -wal and -shm files exist. */
typedef struct world {
    place place;
    ew__store *store;
} world;

static int setup(void **state) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    place_make(&w->place);
    w->store = place_open(&w->place);
    assert_non_null(w->store);
    *state = w;
    return 0;
}

static int teardown(void **state) {
    world *w = *state;
    w->store->ops->free(w->store);
    place_remove(&w->place);
    free(w);
    return 0;
}

static void beside(const world *w, const char *suffix, char out[128]) {
    (void)snprintf(out, 128, "%s%s", w->place.path, suffix);
}

/* `why` NULL: the store opens. */
static void expect(world *w, const char *path, const char *why) {
    char spec[160], problem[256] = "";
    ew__store *store = NULL;
    (void)snprintf(spec, sizeof spec, "sqlite:%s", path);
    ew_err err = ew__jobs_open(&w->place.env, spec, &store, problem, sizeof problem);
    assert_int_equal(err, why ? EW_EACCESS : EW_OK);
    if (why && (strstr(problem, why) == NULL || strncmp(problem, path, strlen(path)) != 0))
        fail_msg("%s", problem);
    if (store)
        store->ops->free(store);
}

static void test_store_sqlite_trust__modes(void **state) {
    world *w = *state;
    static const struct {
        mode_t mode;
        const char *why;
    } cases[] = {{0600, NULL},
                 {0640, NULL},
                 {0644, NULL},
                 {0620, "it is writable for other users (mode 0620); run chmod go-w"},
                 {0606, "it is writable for other users (mode 0606); run chmod go-w"},
                 {0600, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(chmod(w->place.path, cases[i].mode), 0);
        expect(w, w->place.path, cases[i].why);
    }
}

static void test_store_sqlite_trust__files_beside_it(void **state) {
    world *w = *state;
    static const char *const suffixes[] = {"-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[128], why[64];
        beside(w, suffixes[i], path);
        (void)snprintf(why, sizeof why, "its %s file is writable for other users", suffixes[i]);
        assert_int_equal(chmod(path, 0666), 0);
        expect(w, w->place.path, why);
        assert_int_equal(chmod(path, 0600), 0);
        expect(w, w->place.path, NULL);
    }
    char journal[128];
    beside(w, "-journal", journal);
    assert_int_equal(symlink("/dev/null", journal), 0);
    expect(w, w->place.path, "its -journal file is a symbolic link");
}

static void test_store_sqlite_trust__owner(void **state) {
    world *w = *state;
    char why[EW__TRUST_WHY] = "", expected[64];
    uid_t own = geteuid();
    assert_true(ew__trust_database(w->place.path, own, why));
    assert_false(ew__trust_database(w->place.path, own + 1, why));
    (void)snprintf(expected, sizeof expected, "it belongs to the user %lu; run as that user", (unsigned long)own);
    if (strncmp(why, expected, strlen(expected)) != 0)
        fail_msg("%s", why);
}

static void test_store_sqlite_trust__link(void **state) {
    world *w = *state;
    char link[128];
    beside(w, ".link", link);
    assert_int_equal(symlink(w->place.path, link), 0);
    expect(w, link, "it is a symbolic link; name the file that it points to");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("missing.db", link), 0);
    expect(w, link, "it is a symbolic link");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkdir(link, 0700), 0);
    expect(w, link, "it is not a regular file");
    assert_int_equal(rmdir(link), 0);
}

/* A link in the middle of the path is the choice of whoever owns the folders. */
static void test_store_sqlite_trust__linked_folder(void **state) {
    world *w = *state;
    char link[80], path[128];
    (void)snprintf(link, sizeof link, "%s.link", w->place.folder);
    (void)snprintf(path, sizeof path, "%s/jobs.db", link);
    assert_int_equal(symlink(w->place.folder, link), 0);
    expect(w, path, NULL);
    assert_int_equal(unlink(link), 0);
}

static void test_store_sqlite_trust__folder(void **state) {
    world *w = *state;
    assert_int_equal(chmod(w->place.folder, 0777), 0);
    expect(w, w->place.path, "its folder is writable for every user (mode 0777); run chmod o-w");
    assert_int_equal(chmod(w->place.folder, 01777), 0);
    expect(w, w->place.path, NULL);
    assert_int_equal(chmod(w->place.folder, 0700), 0);
}

static void test_store_sqlite_trust__blobs(void **state) {
    world *w = *state;
    char path[128], problem[256] = "";
    ew__blobs *blobs = NULL;
    beside(w, ".blobs", path);
    assert_int_equal(symlink("missing.db", path), 0);
    assert_int_equal(ew__blobs_sqlite(&w->place.env, ew__blob_id, path, &blobs, problem, sizeof problem), EW_EIO);
    assert_non_null(strstr(problem, "it is a symbolic link"));
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__modes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__files_beside_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__owner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__linked_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_sqlite_trust__blobs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
