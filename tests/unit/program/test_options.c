/*
 * tests/unit/program/test_options.c: what a program makes of its command line and environment: how long it drains, where it
 * listens. The rest is tested with the program itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "program/main.h"
#include <stdio.h>
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
    result r = {.drain_ms = s.options.drain_ms,
                .runner = s.start[EW_START_LISTEN].value,
                .from = s.start[EW_START_LISTEN].word ? s.start[EW_START_LISTEN].word->name : NULL};
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

/* What a program with these words listens on, "wire=address ..."; or its exit code. */
static const char *listens(const char *const *words) {
    static char text[400];
    char *argv[MAX_WORDS + 2] = {(char[]){"test"}};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    ew_app *app = ew_app_new("test");
    ew__settings s = {.name = "test", .parent = 2};
    ew__arena arena;
    assert_non_null(app);
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    assert_int_equal(ew__settings_init(&s, app, &arena, argc), EW_OK);
    assert_int_equal(ew__settings_read(&s, argc, argv), -1);
    assert_int_equal(ew__app_configure(app, &s.options), EW_OK);
    int bad = ew__settings_apply(&s, app);
    text[0] = '\0';
    for (size_t i = 0; i < app->n_listeners && !bad; i++) {
        const ew__app_listener *listener = &app->listeners[i];
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%s%s=%s", n ? " " : "",
                       listener->wire ? listener->wire->name : "any", listener->address.text);
    }
    if (bad)
        (void)snprintf(text, sizeof text, "%d", bad);
    ew__arena_done(&arena);
    (void)ew_app_free(app);
    return text;
}
#define LISTENS(...) listens((const char *const[]){__VA_ARGS__})

static void test_settings__stepflow(void **state) {
    (void)state;
    assert_string_equal(LISTENS(NULL), "");
    assert_string_equal(LISTENS("--port", "0", NULL), "stepflow=127.0.0.1:0");
    assert_string_equal(LISTENS("--port=8080", "--host", "localhost", NULL), "stepflow=127.0.0.1:8080");
    assert_string_equal(LISTENS("--host", "::1", NULL), "stepflow=[::1]:0");
    assert_string_equal(LISTENS("--host", "[::1]", "--port", "9", NULL), "stepflow=[::1]:9");
    assert_string_equal(LISTENS("--port", "1", "--listen", "http=127.0.0.1:2", NULL),
                        "http=127.0.0.1:2 stepflow=127.0.0.1:1");
    assert_string_equal(LISTENS("--stdio", NULL), "any=stdio");
    assert_string_equal(LISTENS("--stdio", "--port", "1", NULL), "stepflow=127.0.0.1:1 any=stdio");
    assert_string_equal(LISTENS("--host", "0.0.0.0", "--allow-remote", NULL), "stepflow=0.0.0.0:0");
    static const char *const bad[][4] = {
        {"--port", "x", NULL},       {"--port", "65536", NULL},      {"--port", "-1", NULL}, {"--port", "", NULL},
        {"--host", "0.0.0.0", NULL}, {"--host", "some.where", NULL}, {"--host", "", NULL}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_string_equal(listens(bad[i]), "2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_settings__no_runner, clean, clean),
        cmocka_unit_test_setup_teardown(test_settings__runner_drains_for_less, clean, clean),
        cmocka_unit_test_setup_teardown(test_settings__variable, clean, clean),
        cmocka_unit_test_setup_teardown(test_settings__stepflow, clean, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
