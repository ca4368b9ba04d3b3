/*
 * tests/store_redis/test_store_redis_url.c: where a Redis server is; and names, passwords and databases of a real one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/link.h"
#include "store_redis/server.h"

static void expect(const char *url, const char *name, const char *user, const char *password, uint32_t db) {
    ew__redis_where where;
    char problem[EW__REDIS_PROBLEM];
    if (ew__redis_where_parse(ew_str_from(url), &where, problem) != EW_OK)
        fail_msg("%s: %s", url, problem);
    assert_string_equal(where.name, name);
    assert_string_equal(where.user, user);
    assert_string_equal(where.password, password);
    assert_int_equal(where.db, db);
}

static void test_url__good(void **state) {
    (void)state;
    expect("redis://127.0.0.1:6380/3", "127.0.0.1:6380", "", "", 3);
    expect("redis://localhost", "localhost:6379", "", "", 0);
    expect("redis://localhost/", "localhost:6379", "", "", 0);
    expect("REDIS://h:1", "h:1", "", "", 0);
    expect("redis://", "127.0.0.1:6379", "", "", 0);
    expect("redis://:1234", "127.0.0.1:1234", "", "", 0);
    expect("valkey://h:1/15", "h:1", "", "", 15);
    expect("redis://:secret@h:1/1", "h:1", "", "secret", 1);
    expect("redis://me:p%40ss%2Fword@h", "h:6379", "me", "p@ss/word", 0);
    expect("redis://me:a/b@c@h:7", "h:7", "me", "a/b@c", 0);
    expect("redis://me@h", "h:6379", "me", "", 0);
    expect("redis://[::1]:7/2", "[::1]:7", "", "", 2);
    expect("redis://[::1]", "[::1]:6379", "", "", 0);
    expect("redis://h?db=4&x=y", "h:6379", "", "", 4);
    expect("unix:///run/redis.sock", "/run/redis.sock", "", "", 0);
    expect("unix:/run/redis.sock?db=2", "/run/redis.sock", "", "", 2);
    expect("redis+unix:/run/r%20s.sock?db=2&user=u&pass=p%26q", "/run/r s.sock", "u", "p&q", 2);
    expect("redis+unix:///run/r.sock", "/run/r.sock", "", "", 0);
    expect("valkey+unix:///run/r.sock", "/run/r.sock", "", "", 0);
}

static void test_url__bad(void **state) {
    static const char *const urls[] = {
        "",
        "redis",
        "redis:h",
        "http://h",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:x",
        "redis://h/x",
        "redis://h/-1",
        "redis://h/9999999",
        "redis://[::1",
        "redis://[::1]x",
        "unix://",
        "unix:?db=1",
        "redis://h?db=x",
        "redis://%4@h",
        "redis://%00@h",
        "redis://a:%zz@h",
        "redis+unix:",
        "redis://h/1/2",
    };
    ew__redis_where where;
    char problem[EW__REDIS_PROBLEM], large[1200] = "redis://";
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        if (ew__redis_where_parse(ew_str_from(urls[i]), &where, problem) != EW_EINVAL)
            fail_msg("%s was taken", urls[i]);
        assert_true(problem[0] != '\0');
    }
    memset(large + 8, 'h', 1000);
    assert_int_equal(ew__redis_where_parse(ew_str_from(large), &where, problem), EW_EINVAL);
    memcpy(large, "unix://", 7);
    assert_int_equal(ew__redis_where_parse(ew_str_from(large), &where, problem), EW_EINVAL);
    (void)snprintf(large, sizeof large, "redis://:%0999d@h", 1);
    assert_int_equal(ew__redis_where_parse(ew_str_from(large), &where, problem), EW_EINVAL);
}

static void test_url__tls(void **state) {
    ew__backend *backend = NULL;
    char problem[200];
    (void)state;
    assert_int_equal(ew__jobs_redis(ew_env_default(), "rediss://h:1", &backend, problem, sizeof problem),
                     EW_EUNSUPPORTED);
    assert_non_null(strstr(problem, "TLS"));
    assert_null(backend);
    assert_int_equal(ew__jobs_redis(ew_env_default(), "valkeys://h:1", &backend, NULL, 0), EW_EUNSUPPORTED);
}

/* ---- a real one ---- */

static ew_err try_url(const char *url, char problem[200]) {
    ew__backend *backend = NULL;
    problem[0] = '\0';
    ew_err err = ew__jobs_redis(ew_env_default(), url, &backend, problem, 200);
    if (err == EW_OK)
        backend->ops->free(backend);
    else
        assert_null(backend);
    return err;
}

static void test_url__passwords(void **state) {
    server *s = *state;
    char problem[200], url[256];
    (void)server_do(s, "ACL SETUSER me on >it%ss ~* &* +@all", "'");
    (void)server_do(s, "CONFIG SET requirepass secret");
    assert_int_equal(try_url(s->url, problem), EW_EACCESS);
    (void)snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d", s->port);
    assert_int_equal(try_url(url, problem), EW_EACCESS);
    assert_null(strstr(problem, "wrong@"));
    (void)snprintf(url, sizeof url, "redis://:secret@127.0.0.1:%d", s->port);
    assert_int_equal(try_url(url, problem), EW_OK);
    (void)snprintf(url, sizeof url, "redis://me:it%%27s@127.0.0.1:%d", s->port);
    assert_int_equal(try_url(url, problem), EW_OK);
    (void)snprintf(url, sizeof url, "unix:%s/socket?user=me&pass=it%%27s", s->folder);
    assert_int_equal(try_url(url, problem), EW_OK);
    (void)server_do(s, "CONFIG SET requirepass %s", "");
    /* one that may not run scripts */
    (void)server_do(s, "ACL SETUSER weak on >w ~* &* +@all -@scripting");
    (void)snprintf(url, sizeof url, "redis://weak:w@127.0.0.1:%d", s->port);
    assert_int_equal(try_url(url, problem), EW_EACCESS);
}

static void test_url__databases(void **state) {
    server *s = *state;
    char problem[200], url[256];
    (void)snprintf(url, sizeof url, "redis://localhost:%d/15", s->port);
    assert_int_equal(try_url(url, problem), EW_OK);
    (void)snprintf(url, sizeof url, "redis://localhost:%d/16", s->port);
    assert_int_equal(try_url(url, problem), EW_EIO);
    assert_true(problem[0] != '\0');
    assert_int_equal(try_url(s->unix_url, problem), EW_OK);
}

static void test_url__nobody_there(void **state) {
    char problem[200];
    (void)state;
    assert_int_equal(try_url("redis://127.0.0.1:1", problem), EW_ECONNECT);
    assert_non_null(strstr(problem, "127.0.0.1:1"));
    assert_int_equal(try_url("unix:///nowhere/redis.sock", problem), EW_ECONNECT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url__good),
        cmocka_unit_test(test_url__bad),
        cmocka_unit_test(test_url__tls),
        cmocka_unit_test(test_url__nobody_there),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!server_exists())
        return failed;
    server s;
    server_start(&s, NULL);
    const struct CMUnitTest real[] = {
        cmocka_unit_test_prestate(test_url__passwords, &s),
        cmocka_unit_test_prestate(test_url__databases, &s),
    };
    failed += cmocka_run_group_tests(real, NULL, NULL);
    server_stop(&s);
    return failed;
}
