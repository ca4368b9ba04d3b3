/*
 * tests/unit/api/test_settings.c: what a program makes of its command line and environment, as far as that does not show
 * from outside without waiting: how long it drains. The rest is tested with the program itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/app_main.h"
#include <stdlib.h>

#define MAX_WORDS 8

typedef struct result {
    uint64_t drain_ms;
    const char *runner, *from;
} result;

/* words: NULL-ended. own_drain_ms: the program's. */
static result read_words(uint64_t own_drain_ms, const char *const *words) {
    char *argv[MAX_WORDS + 2] = {(char[]){"test"}};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.drain_ms = own_drain_ms});
    ew__settings s = {.name = "test", .parent = 2};
    ew__arena arena;
    assert_non_null(app);
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    assert_int_equal(ew__settings_init(&s, app, &arena, argc), EW_OK);
    assert_int_equal(ew__settings_read(&s, argc, argv), -1);
    result r = {.drain_ms = s.options.drain_ms, .runner = s.runner, .from = s.runner_from};
    ew__arena_done(&arena);
    (void)ew_app_free(app);
    return r;
}
/* The words, and NULL. */
#define READ(own, ...) read_words(own, (const char *const[]){__VA_ARGS__})

static int clean(void **state) {
    (void)state;
    return unsetenv("RRQ_RUNNER_TCP_SOCKET");
}

static void test_settings__no_runner(void **state) {
    (void)state;
    result r = READ(0, NULL);
    assert_null(r.runner);
    assert_int_equal(r.drain_ms, 0); /* the default */
    assert_int_equal(READ(700, NULL).drain_ms, 700);
    assert_int_equal(READ(700, "--drain", "2s", NULL).drain_ms, 2000);
}

static void test_settings__runner_drains_for_less(void **state) {
    (void)state;
    result r = READ(0, "--tcp-socket", "a", "--tcp-socket=b", NULL);
    assert_string_equal(r.runner, "b");
    assert_string_equal(r.from, "--tcp-socket");
    assert_int_equal(r.drain_ms, 100);
    assert_int_equal(READ(0, "--tcp-socket", "a", "--drain", "20s", NULL).drain_ms, 20000);
    assert_int_equal(READ(0, "--drain", "0", "--tcp-socket", "a", NULL).drain_ms, 1); /* at once */
    assert_int_equal(READ(10000, "--tcp-socket", "a", NULL).drain_ms, 10000);         /* the program's own choice */
}

static void test_settings__variable(void **state) {
    (void)state;
    assert_int_equal(setenv("RRQ_RUNNER_TCP_SOCKET", "c", 1), 0);
    result r = READ(0, NULL);
    assert_string_equal(r.runner, "c");
    assert_string_equal(r.from, "RRQ_RUNNER_TCP_SOCKET");
    assert_int_equal(r.drain_ms, 100);
    r = READ(0, "--tcp-socket", "a", NULL);
    assert_string_equal(r.runner, "a");
    assert_string_equal(r.from, "--tcp-socket");
    assert_int_equal(setenv("RRQ_RUNNER_TCP_SOCKET", " ", 1), 0);
    assert_null(READ(0, NULL).runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_settings__no_runner, clean, clean),
        cmocka_unit_test_setup_teardown(test_settings__runner_drains_for_less, clean, clean),
        cmocka_unit_test_setup_teardown(test_settings__variable, clean, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
