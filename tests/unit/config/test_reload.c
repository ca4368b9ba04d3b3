/*
 * tests/unit/config/test_reload.c: a running app whose file changes, while memory fails: everything stays, or everything
 * is taken, and nothing is lost. What callers see of it is tested by tests/e2e/test_config.py.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/app_config.h"
#include "support/fail_env.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/ew_reload_XXXXXX";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void write_file(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static size_t count_sources(const ew_app *app) {
    size_t n = 0;
    for (const ew__source *source = app->sources.first; source; source = source->next) {
        n++;
    }
    return n;
}

#define BASE "listen: 127.0.0.1:0\nlog: warn\n"

static void test_config_reload__memory(void **state) {
    (void)state;
    ew__test_env env;
    ew__app_config file;
    ew_log_level level = EW_LOG_DEBUG;
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.threads = 1});
    ew__test_env_init(&env, 1);
    write_file(BASE "actions: {/a/one: {exec: [cat]}, /a/two: {exec: [cat]}}\n");
    assert_int_equal(ew__app_config_open(&file, &env.env, path), EW_OK);
    assert_int_equal(ew_app_exec(app, "/a/own", &(ew_exec_options){.argv = (const char *[]){"cat", NULL}}, NULL),
                     EW_OK);
    assert_int_equal(ew__app_config_apply(&file, app), EW_OK);
    assert_int_equal(file.items.n, 2);
    assert_int_equal(ew_app_start(app), EW_OK);
    const ew__source *own = app->sources.first, *two = file.items.list[1].source;

    write_file(BASE
               "threads: 7\nactions: {/a/two: {exec: [cat]}, /a/three: {exec: [cat, -]}, /a/four: {exec: [cat]}}\n");
    unsigned failures = 0;
    for (uint64_t n = 1;; n++) {
        ew__test_env_fail_at(&env, n, false);
        bool taken = ew__app_config_reload(&file, app, EW_LOG_INFO, &level);
        bool failed = ew__test_env_failed(&env) > 0;
        assert_true(taken || failed);
        assert_int_equal(file.items.n, taken ? 3 : 2);
        assert_int_equal(count_sources(app), taken ? 4 : 3);
        if (taken) {
            break;
        }
        assert_int_equal(level, EW_LOG_DEBUG);
        failures++;
    }
    assert_true(failures > 15);
    assert_int_equal(level, EW_LOG_WARN);
    assert_ptr_equal(app->sources.first, own);
    assert_ptr_equal(file.items.list[0].source, two);

    ew__test_env_fail_at(&env, 0, false);
    write_file("listen: 127.0.0.1:0\n");
    assert_true(ew__app_config_reload(&file, app, EW_LOG_INFO, &level));
    assert_int_equal(level, EW_LOG_INFO);
    assert_int_equal(count_sources(app), 1);
    (void)ew_app_free(app);
    ew__app_config_close(&file);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_config_reload__memory)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
