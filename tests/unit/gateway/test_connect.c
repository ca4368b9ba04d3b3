/*
 * tests/unit/gateway/test_connect.c: apps that dial a manager: its URL, who they say they are, starting, stopping, memory.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/app.h"
#include "support/fail_env.h"
#include <arpa/inet.h>
#include <everywire/everywire.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define WAIT_MS 20000

/* ---- URLs ---- */

static void test_good_urls(void **state) {
    (void)state;
    static const struct {
        const char *url, *host, *authority, *path;
        int port;
    } rows[] = {
        {"ws://localhost:3200", "localhost", "localhost:3200", "/", 3200},
        {"http://localhost:3200", "localhost", "localhost:3200", "/", 3200},
        {"WS://LocalHost:1", "LocalHost", "LocalHost:1", "/", 1},
        {"ws://127.0.0.1:65535/", "127.0.0.1", "127.0.0.1:65535", "/", 65535},
        {"ws://[::1]:80/a/b?c=d&e", "::1", "[::1]:80", "/a/b?c=d&e", 80},
        {"ws://h:1?q", "h", "h:1", "/?q", 1},
        {"ws://h", "h", "h", "/", 80},
        {"ws://[::1]/x", "::1", "[::1]", "/x", 80},
        {"ws://my_host-1.x:3200/a%20b", "my_host-1.x", "my_host-1.x:3200", "/a%20b", 3200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__manager_url url;
        const char *problem = NULL;
        assert_int_equal(ew__manager_url_parse(rows[i].url, &url, &problem), EW_OK);
        assert_null(problem);
        assert_string_equal(url.host, rows[i].host);
        assert_string_equal(url.authority, rows[i].authority);
        assert_string_equal(url.path, rows[i].path);
        assert_int_equal(url.port, rows[i].port);
        assert_false(url.tls);
    }
}

static void test_urls_with_tls(void **state) {
    (void)state;
    static const char *const urls[] = {"wss://h", "https://h", "HTTPS://h/", "wss://h:443/?key=x"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        ew__manager_url url;
        const char *problem = NULL;
        assert_int_equal(ew__manager_url_parse(urls[i], &url, &problem), EW_OK);
        assert_true(url.tls);
        assert_int_equal(url.port, 443);
        assert_string_equal(url.host, "h");
    }
}

static void test_bad_urls(void **state) {
    (void)state;
    static const struct {
        const char *url;
        ew_err err;
    } rows[] = {
        {"wss://localhost:0", EW_EINVAL},
        {"https://", EW_EINVAL},
        {"", EW_EINVAL},
        {"ws:", EW_EINVAL},
        {"ws://", EW_EINVAL},
        {"ws:///path", EW_EINVAL},
        {"ws://:3200", EW_EINVAL},
        {"localhost:3200", EW_EINVAL},
        {"reflection://localhost:3200", EW_EINVAL},
        {"ws://h:", EW_EINVAL},
        {"ws://h:0", EW_EINVAL},
        {"ws://h:65536", EW_EINVAL},
        {"ws://h:1x", EW_EINVAL},
        {"ws://h:+1", EW_EINVAL},
        {"ws://u@h:1", EW_EINVAL},
        {"ws://u:p@h:1", EW_EINVAL},
        {"ws://::1:3200", EW_EINVAL},
        {"ws://[::1", EW_EINVAL},
        {"ws://[]:1", EW_EINVAL},
        {"ws://[::1]x:1", EW_EINVAL},
        {"ws://h:1/#f", EW_EINVAL},
        {"ws://h:1#f", EW_EINVAL},
        {"ws://h:1/a b", EW_EINVAL},
        {"ws://h:1/\r\nX: y", EW_EINVAL},
        {"ws://h\r\n:1/", EW_EINVAL},
        {"ws://h:1/\xc3\xa4", EW_EINVAL},
        {" ws://h:1", EW_EINVAL},
        {"ws://h :1", EW_EINVAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__manager_url url;
        const char *problem = NULL;
        ew_err err = ew__manager_url_parse(rows[i].url, &url, &problem);
        if (err != rows[i].err)
            fail_msg("%s: %s", rows[i].url, ew_err_name(err));
        assert_non_null(problem);
    }
    char long_url[2000] = "ws://h:1/";
    memset(long_url + 9, 'x', sizeof long_url - 10);
    ew__manager_url url;
    const char *problem = NULL;
    assert_int_equal(ew__manager_url_parse(long_url, &url, &problem), EW_EINVAL);
    memset(long_url + 5, 'h', sizeof long_url - 6);
    assert_int_equal(ew__manager_url_parse(long_url, &url, &problem), EW_EINVAL);
}

/* ---- a manager that only listens ---- */

typedef struct manager {
    int fd;
    char url[64];
} manager;

static void manager_init(manager *m) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(m->fd >= 0);
    assert_int_equal(bind(m->fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(m->fd, 16), 0);
    assert_int_equal(getsockname(m->fd, (struct sockaddr *)&at, &size), 0);
    (void)snprintf(m->url, sizeof m->url, "ws://127.0.0.1:%d/x", ntohs(at.sin_port));
}

static void wait_readable(int fd) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, WAIT_MS), 1);
}

/* Takes the next connection and its request's first bytes. */
static int manager_accept(const manager *m) {
    char got[16] = "";
    wait_readable(m->fd);
    int fd = accept(m->fd, NULL, NULL);
    assert_true(fd >= 0);
    wait_readable(fd);
    assert_true(read(fd, got, 6) == 6);
    assert_string_equal(got, "GET /x");
    return fd;
}

/* ---- apps ---- */

static void test_refused(void **state) {
    (void)state;
    ew_app *app = ew_app_new("test");
    assert_int_equal(ew_app_connect(NULL, "ws://h:1"), EW_EINVAL);
    assert_int_equal(ew_app_connect(app, NULL), EW_EINVAL);
    assert_int_equal(ew_app_connect(app, "ws://h:1/#"), EW_EINVAL);
    assert_int_equal(ew_app_connect(app, "wsss://h:1"), EW_EINVAL);
    assert_non_null(strstr(ew_app_error(app), "TLS"));
    for (int i = 0; i < 32; i++)
        assert_int_equal(ew_app_connect(app, "ws://127.0.0.1:1"), EW_OK);
    assert_int_equal(ew_app_connect(app, "ws://127.0.0.1:1"), EW_ELIMIT);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_connect(app, "ws://127.0.0.1:1"), EW_EINVAL);
    (void)ew_app_free(app);
}

static void test_dials(void **state) {
    (void)state;
    manager m;
    manager_init(&m);
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.runtime_id = "rt"});
    assert_int_equal(ew_app_connect(app, m.url), EW_OK);
    assert_int_equal(ew_app_connect(app, m.url), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_listeners(app), 0);
    assert_int_equal(app->n_loops, 1);
    assert_string_equal(app->connects[0]->id, "rt");
    assert_string_equal(app->connects[1]->id, "rt-2");
    assert_true(ew__str_is(app->connects[0]->self.name, EW_STR("test")));
    int first = manager_accept(&m), second = manager_accept(&m);
    close(first); /* it comes back */
    int third = manager_accept(&m);
    ew_app_stop(app);
    assert_int_equal(ew_app_wait(app), EW_OK);
    (void)ew_app_free(app);
    close(second);
    close(third);
    close(m.fd);
}

/* With a listener and several loops, the managers are spread over them. */
static void test_loops(void **state) {
    (void)state;
    manager m;
    int fds[5];
    manager_init(&m);
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.threads = 2});
    assert_int_equal(ew_app_listen(app, "127.0.0.1:0"), EW_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ew_app_connect(app, m.url), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_listeners(app), 1);
    assert_ptr_equal(app->connects[2]->connector.loop, &app->loops[0].loop);
    assert_ptr_equal(app->connects[3]->connector.loop, &app->loops[1].loop);
    for (int i = 0; i < 5; i++)
        fds[i] = manager_accept(&m);
    (void)ew_app_free(app); /* without a stop */
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    close(m.fd);
}

static void test_never_started(void **state) {
    (void)state;
    ew_app *app = ew_app_new("test");
    assert_int_equal(ew_app_connect(app, "ws://127.0.0.1:1"), EW_OK);
    (void)ew_app_free(app);
}

/* A start that fails dials nobody. */
static void test_start_fails(void **state) {
    (void)state;
    manager m;
    char taken[64];
    manager_init(&m);
    ew_app *app = ew_app_new("test");
    (void)snprintf(taken, sizeof taken, "%s", m.url + 5);
    *strchr(taken, '/') = '\0';
    assert_int_equal(ew_app_connect(app, m.url), EW_OK);
    assert_int_equal(ew_app_listen(app, taken), EW_OK);
    assert_int_equal(ew_app_start(app), EW_EADDRINUSE);
    (void)ew_app_free(app);
    struct pollfd wait = {.fd = m.fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 100), 0);
    close(m.fd);
}

static void test_host_loop(void **state) {
    (void)state;
    manager m;
    uv_loop_t uv;
    manager_init(&m);
    assert_int_equal(uv_loop_init(&uv), 0);
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.loop = &uv});
    assert_int_equal(ew_app_connect(app, m.url), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    while (atomic_load(&app->connects[0]->connector.traffic.bytes_out) == 0 && !app->connects[0]->connector.link)
        uv_run(&uv, UV_RUN_ONCE);
    while (app->connects[0]->connector.dial)
        uv_run(&uv, UV_RUN_ONCE);
    for (int i = 0; i < 10; i++)
        uv_run(&uv, UV_RUN_NOWAIT);
    int fd = manager_accept(&m);
    (void)ew_app_free(app);
    close(fd);
    close(m.fd);
    assert_int_equal(uv_loop_close(&uv), 0);
}

/* Whichever allocation fails on the way to a started app, all of it is given back. */
static void test_no_memory(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew_env env = t.env; /* its memory, but the real clock: the loops wait for real time */
    env.now_ns = ew_env_default()->now_ns;
    env.wall_ms = ew_env_default()->wall_ms;
    uint64_t n = 0;
    do {
        ew__test_env_fail_at(&t, ++n, false);
        ew_app *app = ew_app_new_with("test", &(ew_app_options){.env = &env, .runtime_id = "x"});
        ew_err err = app ? ew_app_connect(app, "ws://127.0.0.1:1/x") : EW_ENOMEM;
        if (err == EW_OK)
            err = ew_app_connect(app, "ws://127.0.0.1:1/y");
        if (err == EW_OK)
            err = ew_app_start(app);
        assert_true(err == EW_OK || err == EW_ENOMEM);
        (void)ew_app_free(app);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
    } while (ew__test_env_failed(&t) > 0 && n < 1000);
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_urls),     cmocka_unit_test(test_urls_with_tls), cmocka_unit_test(test_bad_urls),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_dials),         cmocka_unit_test(test_loops),
        cmocka_unit_test(test_never_started), cmocka_unit_test(test_host_loop),     cmocka_unit_test(test_start_fails),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
