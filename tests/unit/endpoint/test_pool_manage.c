/*
 * tests/unit/endpoint/test_pool_manage.c: processes that a pool starts, dials, loses, ends and starts again. The wire is
 * a tiny one of lines (line_wire.h), the processes are this program once more (line_runner.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/port.h"
#include "unit/endpoint/pool_world.h"

static void begin_with(const char *const *argv, unsigned n, uint16_t port) {
    world_init(&w);
    most = 60;
    n_pool_closed = 0;
    ew__where where = {.kind = EW__WHERE_TCP, .host = "localhost", .port = port, .argv = argv};
    ew__pool_config config = config_of(&where);
    assert_int_equal(ew__pool_manage(&config, n, "--tcp-socket", "RRQ_RUNNER_TCP_SOCKET", &pool), EW_OK);
}

static void begin(const char *mode, unsigned n, uint16_t port) {
    static const char *argv[4];
    argv[0] = self;
    argv[1] = "--runner";
    argv[2] = mode;
    begin_with(argv, n, port);
}

/* ---- tests ---- */

static void calls(void **state) {
    (void)state;
    begin("plain", 1, 0);
    run_ms(&w, 50);
    assert_false(logged(&w, "listens")); /* nothing is started before the first call */
    long pid = ask("pid");
    assert_true(lives(pid));
    assert_int_equal(ask("pid"), pid);
    assert_int_equal(atomic_load(&pool->traffic.dialled), 1); /* the connection that came first is the one */
    asked a[100];
    for (int i = 0; i < 100; i++) /* more than it takes at once */
        start_call(&a[i], "pid", 0);
    for (int i = 0; i < 100; i++)
        expect(&a[i], EW_STATUS_OK, "");
    finish();
    assert_false(lives(pid));
}

/* What it is told: where to listen, as its last arguments and by a variable. */
static void is_told(void **state) {
    (void)state;
    char text[64];
    asked a;
    uint16_t port = free_port();
    const char *const argv[] = {self, "--runner", "plain", "--tcp-socket", "127.0.0.1:1", NULL};
    (void)snprintf(text, sizeof text, "127.0.0.1:%u 127.0.0.1:%u", port, port);
    begin_with(argv, 1, port);
    start_call(&a, "socket", 0);
    expect(&a, EW_STATUS_OK, text);
    finish();
}

static void has(long wanted, const long *pids, int n) {
    for (int i = 0; i < n; i++)
        if (pids[i] == wanted)
            return;
    fail_msg("%ld is not there", wanted);
}

static void run_until_linked(unsigned n) {
    uint64_t until = ew__executor_read_clock(&w.loop.executor) + PATIENCE_NS;
    while (pool->n_links < n) {
        if (w.loop.executor.now > until)
            fail_msg("%u of %u connections; the log:\n%s", pool->n_links, n, w.log);
        run_ms(&w, 5);
    }
}

static void several(void **state) {
    (void)state;
    asked held, a[3];
    long pids[3];
    begin("plain", 3, 0);
    (void)ask("pid");
    run_until_linked(3);
    for (int i = 0; i < 3; i++)
        pids[i] = ask("pid"); /* in turn */
    if (pids[0] == pids[1] || pids[1] == pids[2] || pids[0] == pids[2])
        fail_msg("%ld %ld %ld; the log:\n%s", pids[0], pids[1], pids[2], w.log);
    start_call(&held, "mute", 0); /* it is the first one's turn: it has something to do now */
    for (int i = 0; i < 4; i++)
        has(ask("pid"), pids + 1, 2);
    most = 1;
    start_call(&a[0], "mute", 0);
    start_call(&a[1], "mute", 0);
    start_call(&a[2], "pid", 0); /* all are busy */
    run_ms(&w, 50);
    assert_int_equal(a[2].n_ends, 0);
    assert_int_equal(pool->queue.n, 1);
    ew__call_cancel(a[0].call, EW__CANCEL_ASKED);
    run_ms(&w, 20);
    most = 2; /* the wire would say that there is room; here the next answer does */
    start_call(&a[0], "pid", 0);
    expect(&a[0], EW_STATUS_OK, "");
    expect(&a[2], EW_STATUS_OK, "");
    finish();
    for (int i = 0; i < 3; i++)
        assert_false(lives(pids[i]));
}

static void ports_in_a_row(void **state) {
    (void)state;
    char text[32];
    uint16_t port = free_ports(2);
    begin("plain", 2, port);
    (void)ask("pid");
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof text, "listens on 127.0.0.1:%u", port + i);
        run_until_logged(&w, text);
    }
    finish();
    begin("plain", 1, 65535);
    ew__pool *second = NULL;
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = 65535, .argv = pool->where.argv};
    ew__pool_config config = config_of(&where);
    assert_int_equal(ew__pool_manage(&config, 2, "--tcp-socket", "RRQ_RUNNER_TCP_SOCKET", &second), EW_EINVAL);
    assert_int_equal(ew__pool_manage(&config, 0, "--tcp-socket", "RRQ_RUNNER_TCP_SOCKET", &second), EW_EINVAL);
    where.host = "some.where";
    assert_int_equal(ew__pool_manage(&config, 1, "--tcp-socket", "RRQ_RUNNER_TCP_SOCKET", &second), EW_EINVAL);
    assert_null(second);
    finish();
}

/* Programs that do not come up: each call that waits is told why, and a later one tries again. */
static void does_not_start(void **state) {
    (void)state;
    asked a, b;
    static const char *const missing[] = {"./there-is-no-such-program", NULL};
    begin_with(missing, 1, 0);
    start_call(&a, "pid", 0);
    start_call(&b, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
    expect(&b, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
    finish();
    for (unsigned n = 1; n <= 3; n++) {
        begin("crash", n, 0);
        for (int i = 0; i < 3; i++) {
            start_call(&a, "pid", 0);
            expect(&a, EW_STATUS_UNAVAILABLE, " ended with code 7 before it listened on 127.0.0.1:");
        }
        start_call(&a, "pid", 0);
        finish(); /* while it waits to be started again */
        assert_int_equal(a.status, EW_STATUS_CANCELLED);
    }
    begin("silent", 2, 0);
    w.limits.runner_wait_ms = 300;
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, " does not listen on 127.0.0.1:");
    assert_non_null(strstr(a.text, " after 0.3 s"));
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, " does not listen on 127.0.0.1:");
    finish();
}

static void starts_at_the_second_try(void **state) {
    (void)state;
    asked a;
    char mode[128];
    (void)snprintf(mode, sizeof mode, "flaky:/tmp/ew-manage-%ld", (long)getpid());
    (void)unlink(mode + 6);
    begin(mode, 1, free_port());
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "ended with code 3 before it listened");
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_OK, "");
    finish();
    (void)unlink(mode + 6);
    begin(mode, 2, free_ports(2)); /* one of the two fails: only the log shows it */
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_OK, "");
    run_until_logged(&w, "W ");
    assert_true(logged(&w, "ended with code 3 before it listened"));
    (void)ask("pid");
    run_until_linked(2);
    finish();
    (void)unlink(mode + 6);
}

/* A call that arrives while a failed process group is ending starts that process again, though another one answers. */
static void is_wanted_while_it_ends(void **state) {
    (void)state;
    asked a;
    char mode[128];
    (void)snprintf(mode, sizeof mode, "flaky-child:/tmp/ew-manage-ends-%ld", (long)getpid());
    (void)unlink(strchr(mode, ':') + 1);
    begin(mode, 2, free_ports(2));
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_OK, "");
    run_until_logged(&w, "ended with code 3 before it listened");
    (void)ask("pid");
    run_until_linked(2);
    finish();
    (void)unlink(strchr(mode, ':') + 1);
}

/* A port that we chose is reserved for the program. If it ends early, it is started once more without that. */
static void starts_again_without_a_reservation(void **state) {
    (void)state;
    asked a;
    char mode[128];
    (void)snprintf(mode, sizeof mode, "flaky:/tmp/ew-manage-hold-%ld", (long)getpid());
    (void)unlink(mode + 6);
    begin(mode, 1, 0);
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_OK, "");
    finish();
    (void)unlink(mode + 6);
}

static void port_in_use(void **state) {
    (void)state;
    asked a;
    char text[64];
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, n), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &n), 0);
    begin("plain", 1, ntohs(name.sin_port));
    (void)snprintf(text, sizeof text, "127.0.0.1:%u is in use: is another runner there?", ntohs(name.sin_port));
    for (int i = 0; i < 2; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, text);
    }
    close(fd);
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_OK, "");
    finish();
}

/* Calls that wait for a process keep their own limits. */
static void waits(void **state) {
    (void)state;
    asked a, b, c;
    begin("slow", 1, 0);
    start_call(&a, "pid", 50);
    start_call(&b, "pid", 0);
    start_call(&c, "pid", 0);
    expect(&a, EW_STATUS_DEADLINE_EXCEEDED, "");
    ew__call_cancel(b.call, EW__CANCEL_ASKED);
    expect(&b, EW_STATUS_CANCELLED, "");
    expect(&c, EW_STATUS_OK, "");
    finish();
    begin("silent", 1, 0); /* closed while it is being started */
    start_call(&a, "pid", 0);
    finish();
    assert_int_equal(a.status, EW_STATUS_CANCELLED);
    begin("silent", 3, 0); /* and while it is being dialled */
    start_call(&a, "pid", 0);
    run_ms(&w, 150);
    finish();
    begin("plain", 1, 0); /* never started */
    finish();
}

static void it_dies(void **state) {
    (void)state;
    asked a, b;
    uint16_t port = free_port();
    for (int fixed = 0; fixed < 2; fixed++) {
        begin("plain", 1, fixed ? port : 0);
        long pid = ask("pid");
        start_call(&a, "mute", 0);
        start_call(&b, "exit", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "lost");
        expect(&b, EW_STATUS_UNAVAILABLE, "lost");
        long next = ask("pid");
        assert_true(next != pid && !lives(pid));
        run_until_logged(&w, "ended with code 4");
        assert_int_equal(ask("bye"), next); /* it answers, and ends in the same moment */
        run_ms(&w, 300);
        assert_int_equal(pool->n_links, 0); /* nobody starts it before it is wanted */
        assert_true(ask("pid") != next);
        assert_int_equal(kill((pid_t)ask("pid"), SIGKILL), 0);
        run_until_logged(&w, "was killed by signal 9");
        (void)ask("pid");
        finish();
    }
}

/* A process whose connection is lost because it ends may be connected to for a while: no call is given to it. */
static void it_takes_its_time_to_die(void **state) {
    (void)state;
    asked a, more[8];
    begin("plain", 1, 0);
    for (int i = 0; i < 3; i++) {
        long pid = ask("pid");
        start_call(&a, "dying", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "lost");
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            start_call(&more[k], "pid", 0);
        for (size_t k = 0; k < sizeof more / sizeof *more; k++) {
            expect(&more[k], EW_STATUS_OK, "");
            assert_true(strtol(more[k].text, NULL, 10) != pid);
        }
    }
    finish();
}

/* The process runs, its connection does not: it is dialled again. */
static void it_hangs_up(void **state) {
    (void)state;
    asked a;
    begin("plain", 1, 0);
    long pid = ask("pid");
    for (int i = 0; i < 3; i++) {
        start_call(&a, "hangup", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "lost");
        assert_int_equal(ask("pid"), pid);
    }
    w.limits.runner_wait_ms = 300;
    start_call(&a, "deaf", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "does not listen");
    w.limits.runner_wait_ms = 15000;
    assert_true(ask("pid") != pid);
    assert_false(lives(pid));
    finish();
    begin("rude", 1, 0); /* each connection is closed at once */
    w.limits.runner_wait_ms = 1000;
    for (int i = 0; i < 5; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "");
    }
    run_ms(&w, 500);
    assert_true(atomic_load(&pool->traffic.dialled) < 60); /* not as fast as it can */
    finish();
}

static void it_is_stuck(void **state) {
    (void)state;
    asked a, b;
    begin("plain", 1, 0);
    long pid = ask("pid");
    start_call(&a, "stuck", 0);
    start_call(&b, "mute", 0);
    run_ms(&w, 20);
    ew__call_cancel(a.call, EW__CANCEL_ASKED);
    expect(&a, EW_STATUS_CANCELLED, "");
    expect(&b, EW_STATUS_UNAVAILABLE, "lost"); /* it shared the connection */
    assert_true(ask("pid") != pid);
    assert_false(lives(pid));
    assert_true(logged(&w, "does not end a call"));
    finish();
}

static long child_of_runner(void) {
    run_until_logged(&w, "child ");
    return strtol(strstr(w.log, "child ") + 6, NULL, 10);
}

/* All of its group goes with it: those that do not hear SIGTERM, too. */
static void nobody_is_left(void **state) {
    (void)state;
    asked a;
    begin("stubborn", 3, 0);
    long pid = ask("pid");
    finish();
    assert_false(lives(pid));
    begin("parent", 1, 0);
    pid = ask("pid");
    long child = child_of_runner();
    assert_true(lives(pid) && lives(child));
    finish();
    assert_false(lives(pid));
    assert_false(lives(child));
    begin("plain", 1, 0); /* a child that has the connection, too: its parent's end is the end of the calls */
    pid = ask("pid");
    start_call(&a, "heir", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    child = child_of_runner();
    run_ms(&w, 50); /* if that has ended the connection, it needs a moment to go */
    assert_true(lives(child));
    assert_true(ask("pid") != pid); /* when nothing is left of the first */
    assert_false(lives(child));
    finish();
}

static void one_shot(void **state) {
    (void)state;
    asked a;
    begin("plain", 2, 0);
    (void)ask("pid");
    start_call(&a, "mute", 0);
    run_ms(&w, 20);
    ew__call_cancel(a.call, EW__CANCEL_ASKED);
    expect(&a, EW_STATUS_CANCELLED, "");
    run_until_logged(&w, "aside cancel ");
    start_call(&a, "mute", 0);
    run_ms(&w, 20);
    ew__call_cancel(a.call, EW__CANCEL_ASKED);
    finish(); /* it is under way */
}

/* The same on a pool that only dials: one-shot messages, and how many connections it takes for how many calls. */
static void dialled(void **state) {
    (void)state;
    asked a[20];
    uint16_t port = free_port();
    begin("plain", 1, port);
    (void)ask("pid");
    ew__pool *other;
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = port};
    ew__pool_config config = config_of(&where);
    assert_int_equal(ew__pool_dial(&config, &other), EW_OK);
    most = 5;
    for (int i = 0; i < 20; i++) {
        memset(&a[i], 0, sizeof a[i]);
        a[i].call = ew__call_new(&w.loop.executor, &asker, &a[i]);
        a[i].call->key = EW_STR("mute");
        ew__pool_open(other, a[i].call);
    }
    assert_int_equal(ew__dial_pool_of(other)->n_dials, 4);
    while (other->queue.n > 0)
        run_ms(&w, 5);
    assert_int_equal(other->n_links, 4);
    ew__call_cancel(a[0].call, EW__CANCEL_ASKED);
    run_until_logged(&w, "aside cancel 0");
    ew__call_cancel(a[1].call, EW__CANCEL_ASKED);
    ew__pool_close(other, on_pool_closed);
    run_until(&w, &n_pool_closed, 1);
    assert_int_equal(other->one_shots.n, 0);
    ew__pool_free(other);
    n_pool_closed = 0;
    finish();
}

/* Each allocation of a short life fails once: nothing hangs, nothing is lost or ended twice. */
static void no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1, quiet = 0; quiet < 1; n++) {
        asked a;
        begin("plain", 1, 0);
        w.n_allocations = 0;
        w.fail_at = n;
        memset(&a, 0, sizeof a);
        ew__executor_read_clock(&w.loop.executor);
        a.call = ew__call_new(&w.loop.executor, &asker, &a);
        if (a.call) {
            a.call->key = EW_STR("pid");
            ew__pool_open(pool, a.call);
            run_until(&w, &a.n_ends, 1);
        }
        assert_true(!a.call || a.n_ends == 1);
        quiet = w.n_allocations < n;
        assert_true(!quiet || a.status == EW_STATUS_OK);
        w.fail_at = 0;
        finish();
        assert_true(n < 300);
    }
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--runner") == 0)
        line_runner_main(argc, argv);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(is_told),
        cmocka_unit_test(several),
        cmocka_unit_test(ports_in_a_row),
        cmocka_unit_test(does_not_start),
        cmocka_unit_test(starts_at_the_second_try),
        cmocka_unit_test(is_wanted_while_it_ends),
        cmocka_unit_test(starts_again_without_a_reservation),
        cmocka_unit_test(port_in_use),
        cmocka_unit_test(waits),
        cmocka_unit_test(it_dies),
        cmocka_unit_test(it_takes_its_time_to_die),
        cmocka_unit_test(it_hangs_up),
        cmocka_unit_test(it_is_stuck),
        cmocka_unit_test(nobody_is_left),
        cmocka_unit_test(one_shot),
        cmocka_unit_test(dialled),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
