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

#include "program/config.h"
#include "support/fail_env.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
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
    for (const ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
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
    const ew__source *own = ew__sources_first(&app->sources), *two = file.items.list[1].source;

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
    assert_ptr_equal(ew__sources_first(&app->sources), own);
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

/* ---- an import that moves ---- */

static void say_id(ew_call *call, void *arg) { (void)ew_call_done(call, ew_str_from(arg)); }

static ew_app *start_origin(char *id, int *ret_port) {
    ew_app *app = ew_app_new_with("origin", &(ew_app_options){.threads = 1});
    assert_int_equal(ew_app_action(app, "/flow/id", say_id, id, NULL), EW_OK);
    assert_int_equal(ew_app_listen(app, "http=127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_listener(app, 0, NULL, NULL, ret_port), EW_OK);
    return app;
}

/* A peer that accepts connections, and never answers. */
static int open_silent(int *ret_port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
    *ret_port = ntohs(name.sin_port);
    return fd;
}

typedef struct reloading {
    ew__app_config *file;
    ew_app *app;
    atomic_bool over;
} reloading;

static void *reload(void *arg) {
    reloading *self = arg;
    ew_log_level level = EW_LOG_DEBUG;
    bool taken = ew__app_config_reload(self->file, self->app, EW_LOG_INFO, &level);
    atomic_store(&self->over, true);
    return taken ? self : NULL;
}

/* What a call answers now: the number of an origin; 'n': no such action. */
static char ask_id(ew_client *client) {
    ew_request *request = NULL;
    ew_end end;
    ew_request_options options = {.action = EW_STR("/flow/id"), .timeout_ms = 60000};
    assert_int_equal(ew_client_call(client, &options, &request), EW_OK);
    assert_int_equal(ew_request_wait(request, 0, &end), EW_OK);
    bool missing = end.status == EW_STATUS_NOT_FOUND;
    if (end.status != EW_STATUS_OK && !missing)
        fail_msg("%s: %.*s", ew_status_name(end.status), (int)end.fault.message.len, end.fault.message.ptr);
    char id = missing ? 'n' : end.result.ptr[1];
    ew_request_free(request);
    return id;
}

static uint64_t now_ms(void) {
    const ew_env *env = ew_env_default();
    return env->now_ns(env->ud) / 1000000;
}

/*
 * The import moves, beside another one that never answers: each call succeeds, at the old place or the new one, and at
 * the new one before the reload is over.
 */
static void test_config_reload__import_moves(void **state) {
    (void)state;
    static char first[] = "\"1\"", second[] = "\"2\"";
    int ports[3], port = 0;
    char text[300], target[64];
    ew__app_config file;
    ew_app *origins[2] = {start_origin(first, &ports[0]), start_origin(second, &ports[1])};
    int silent = open_silent(&ports[2]);
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.threads = 1});
    (void)snprintf(text, sizeof text, BASE "imports: ['http://127.0.0.1:%d']\n", ports[0]);
    write_file(text);
    assert_int_equal(ew__app_config_open(&file, ew_env_default(), path), EW_OK);
    assert_int_equal(ew__app_config_apply(&file, app), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_wait_imports(app, 60000), EW_OK);
    assert_int_equal(ew_app_listener(app, 0, NULL, NULL, &port), EW_OK);
    ew_client *client = NULL;
    (void)snprintf(target, sizeof target, "http://127.0.0.1:%d", port);
    assert_int_equal(ew_client_new(target, NULL, &client, NULL), EW_OK);
    assert_int_equal(ask_id(client), '1');
    (void)snprintf(text, sizeof text, BASE "imports: ['http://127.0.0.1:%d', 'http://127.0.0.1:%d']\n", ports[1],
                   ports[2]);
    write_file(text);
    reloading r = {.file = &file, .app = app};
    pthread_t thread;
    void *taken = NULL;
    char last = '1';
    uint64_t begun = now_ms();
    assert_int_equal(pthread_create(&thread, NULL, reload, &r), 0);
    while (!atomic_load(&r.over) && last == '1')
        last = ask_id(client);
    if (last == 'n') /* a machine on which the new origin does not answer in that time */
        assert_true(now_ms() - begun >= 2000);
    while (!atomic_load(&r.over) && last != 'n')
        assert_int_equal(ask_id(client), '2');
    assert_int_equal(pthread_join(thread, &taken), 0);
    assert_non_null(taken);
    (void)ew_client_free(client);
    (void)ew_app_free(app);
    ew__app_config_close(&file);
    for (int i = 0; i < 2; i++)
        (void)ew_app_free(origins[i]);
    (void)close(silent);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_config_reload__memory),
                                       cmocka_unit_test(test_config_reload__import_moves)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
