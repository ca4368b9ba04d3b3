/*
 * tests/unit/program/test_supervisor.c: the watchdog is told that we live only while every loop does, and sockets that were
 * handed over are described rightly. How a whole program behaves under a supervisor: tests/e2e/test_supervisor.py.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "program/supervisor.h"
#include "io/supervisor.h"
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- a place for messages ---- */

static char folder[] = "/tmp/ew-supervisor-XXXXXX";
static char path[64];
static int inbox;

static struct sockaddr_un name_of(const char *text) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", text);
    return name;
}

static int set_up(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/n", folder);
    struct sockaddr_un name = name_of(path);
    inbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    return bind(inbox, (const struct sockaddr *)&name, sizeof name);
}

static int tear_down(void **state) {
    (void)state;
    close(inbox);
    (void)unlink(path);
    return rmdir(folder);
}

static bool has_message(const char *want) {
    char text[256];
    ssize_t n = recv(inbox, text, sizeof text - 1, 0);
    if (n < 0)
        return false;
    text[n] = '\0';
    return strcmp(text, want) == 0;
}

/* ---- the watchdog ---- */

static atomic_bool held, blocked;

static void hold(ew_call *call, void *arg) {
    (void)arg;
    atomic_store(&blocked, true);
    while (atomic_load(&held))
        (void)usleep(1000);
    (void)ew_call_done(call, EW_STR("1"));
}

/* Each look is due. */
static bool pulse_reaches(ew__supervisor *s, ew_app *app, int tries) {
    for (int i = 0; i < tries; i++) {
        s->due_ns = 0;
        ew__supervisor_pulse(s, app);
        if (has_message("WATCHDOG=1"))
            return true;
        (void)usleep(2000);
    }
    return false;
}

static void watchdog(void **state) {
    ew__supervisor s;
    const char *address;
    char target[64];
    (void)state;
    (void)setenv("NOTIFY_SOCKET", path, 1);
    (void)setenv("WATCHDOG_USEC", "4000000", 1);
    ew__supervisor_init(&s);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_int_equal(s.tick_ns, 1000000000);

    ew_app *app = ew_app_new_with("held", &(ew_app_options){.threads = 2});
    assert_int_equal(ew_app_action(app, "/flow/hold", hold, NULL, NULL), EW_OK);
    assert_int_equal(ew_app_listen(app, "127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_true(pulse_reaches(&s, app, 1));
    assert_true(pulse_reaches(&s, app, 2000)); /* once the loops have answered the first letter */
    s.due_ns = UINT64_MAX;
    ew__supervisor_pulse(&s, app);
    assert_false(has_message("WATCHDOG=1")); /* not due */

    assert_int_equal(ew_app_listener(app, 0, NULL, &address, NULL), EW_OK);
    (void)snprintf(target, sizeof target, "http://%s", address);
    ew_client *client = NULL;
    ew_request *request = NULL;
    atomic_store(&held, true);
    assert_int_equal(ew_client_new(target, NULL, &client, NULL), EW_OK);
    assert_int_equal(ew_client_call(client, &(ew_request_options){.action = EW_STR("hold")}, &request), EW_OK);
    while (!atomic_load(&blocked))
        (void)usleep(1000);
    (void)pulse_reaches(&s, app, 1); /* the letter that the held loop does not answer */
    assert_false(pulse_reaches(&s, app, 25));
    atomic_store(&held, false);
    assert_true(pulse_reaches(&s, app, 2000));
    ew_end end;
    assert_int_equal(ew_request_wait(request, 20000, &end), EW_OK);
    ew_request_free(request);
    ew_client_free(client);
    ew_app_stop(app);
    assert_int_equal(ew_app_wait(app), EW_OK);
    assert_true(pulse_reaches(&s, app, 1)); /* nobody is left to ask */
    ew_app_free(app);
}

/* ---- sockets ---- */

static int listening_unix(const char *file, mode_t mode) {
    struct sockaddr_un name = name_of(file);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(chmod(file, mode), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void sockets(void **state) {
    char file[80], text[90];
    ew__address address;
    (void)state;
    (void)snprintf(file, sizeof file, "%s/s", folder);
    (void)snprintf(text, sizeof text, "unix:%s", file);
    static const struct {
        mode_t mode;
        bool any_user;
    } modes[] = {{0666, false}, {0660, true}, {0600, true}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        int fd = listening_unix(file, modes[i].mode);
        assert_int_equal(ew__address_passed(fd, &address), EW_OK);
        assert_string_equal(address.text, text);
        assert_int_equal(address.any_user, modes[i].any_user);
        close(fd);
        (void)unlink(file);
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(ew__address_passed(fd, &address), EW_EINVAL); /* does not listen */
    assert_int_equal(listen(fd, 1), 0);                            /* on some port of all addresses */
    assert_int_equal(ew__address_passed(fd, &address), EW_OK);
    assert_false(address.loopback);
    assert_true(address.port > 0);
    close(fd);
    assert_int_equal(ew__address_passed(fd, &address), EW_EINVAL);    /* closed */
    assert_int_equal(ew__address_passed(inbox, &address), EW_EINVAL); /* no stream */
}

static void nobody_listens(void **state) {
    char text[200];
    (void)state;
    assert_int_equal(ew__notify("", EW_STR("READY=1")), EW_EINVAL);
    assert_int_equal(ew__notify("@", EW_STR("READY=1")), EW_EINVAL);
    assert_int_equal(ew__notify("relative", EW_STR("READY=1")), EW_EINVAL);
    assert_int_not_equal(ew__notify("/no/such/socket", EW_STR("READY=1")), EW_OK);
    memset(text, 'a', sizeof text);
    text[0] = '/';
    text[sizeof((struct sockaddr_un *)0)->sun_path] = '\0';
    assert_int_equal(ew__notify(text, EW_STR("READY=1")), EW_EINVAL);
    assert_int_equal(ew__notify(path, EW_STR("READY=1")), EW_OK);
    assert_true(has_message("READY=1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watchdog),
        cmocka_unit_test(sockets),
        cmocka_unit_test(nobody_listens),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
