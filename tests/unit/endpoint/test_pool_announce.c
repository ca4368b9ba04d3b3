/*
 * tests/unit/endpoint/test_pool_announce.c: a process that chooses its port itself and says so: it is started, heard,
 * dialled, lost, ended and started again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/endpoint/pool_world.h"

static void begin_with(const char *const *argv) {
    world_init(&w);
    most = 60;
    n_pool_closed = 0;
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .argv = argv};
    ew__pool_config config = config_of(&where);
    assert_int_equal(ew__pool_announce(&config, &pool), EW_OK);
}

static void begin(const char *mode) {
    static const char *argv[4];
    argv[0] = self;
    argv[1] = "--runner";
    argv[2] = mode;
    begin_with(argv);
}

static void calls(void **state) {
    (void)state;
    asked a[20];
    char authority[32];
    begin("plain");
    run_ms(&w, 50);
    assert_int_equal(atomic_load(&pool->traffic.dialled), 0); /* nothing is started before the first call */
    long pid = ask("pid");
    assert_true(lives(pid));
    assert_int_equal(ask("pid"), pid);
    (void)snprintf(authority, sizeof authority, "127.0.0.1:%u", pool->where.port);
    assert_true(ew__str_is(pool->site.authority, ew_str_from(authority)));
    assert_int_equal(atomic_load(&pool->traffic.dialled), 1);
    most = 1;
    for (int i = 0; i < 5; i++)
        start_call(&a[i], "mute", 0);
    RUN_WHILE(&w, pool->n_links < 5); /* many connections, each with its call */
    for (int i = 0; i < 5; i++) {
        ew__call_cancel(a[i].call, EW__CANCEL_ASKED);
        expect(&a[i], EW_STATUS_CANCELLED, "");
    }
    run_until_logged(&w, "aside cancel "); /* its lines are still the log's */
    start_call(&a[0], "print", 0);
    expect(&a[0], EW_STATUS_OK, "");
    run_until_logged(&w, "{\"port\":2}"); /* it has said so already: that is nothing but a line */
    assert_int_equal(ask("pid"), pid);
    finish();
    assert_false(lives(pid));
}

static void cancel_all(asked *a, int n) {
    for (int i = 0; i < n; i++) {
        ew__call_cancel(a[i].call, EW__CANCEL_ASKED);
        expect(&a[i], EW_STATUS_CANCELLED, "");
    }
}

/* A few calls too many wait for the places of those that end; many do not, nor few if nothing ends. */
static void a_few_wait(void **state) {
    (void)state;
    asked a[63];
    begin("plain");
    (void)ask("pid");
    for (int i = 0; i < 63; i++) /* all end at once, again and again */
        start_call(&a[i], "pid", 0);
    assert_int_equal(pool->queue.n, 3);
    assert_int_equal(ew__dial_pool_of(pool)->n_dials, 0);
    for (int i = 0; i < 63; i++)
        expect(&a[i], EW_STATUS_OK, "");
    assert_int_equal(atomic_load(&pool->traffic.dialled), 1);
    most = 16;
    for (int i = 0; i < 17; i++)
        start_call(&a[i], "mute", 0);
    assert_int_equal(pool->queue.n, 1);
    assert_int_equal(ew__dial_pool_of(pool)->n_dials, 0);
    uint64_t since = w.loop.executor.now;
    RUN_WHILE(&w, pool->n_links < 2); /* nobody answers */
    assert_true(ew__executor_read_clock(&w.loop.executor) - since >= EW__MS(8));
    assert_int_equal(pool->queue.n, 0);
    for (int i = 17; i < 36; i++) /* 15 more have a place, four do not: a quarter of what one takes */
        start_call(&a[i], "mute", 0);
    assert_int_equal(pool->queue.n, 4);
    assert_int_equal(ew__dial_pool_of(pool)->n_dials, 1);
    cancel_all(a, 36);
    finish();
    begin("plain"); /* closed while one waits */
    (void)ask("pid");
    most = 4;
    for (int i = 0; i < 5; i++)
        start_call(&a[i], "mute", 0);
    assert_int_equal(ew__dial_pool_of(pool)->n_dials, 1); /* of four, one is a quarter */
    most = 8;
    (void)ask("pid");
    for (int i = 5; i < 13; i++)
        start_call(&a[i], "mute", 0);
    finish();
    for (int i = 0; i < 13; i++)
        assert_int_equal(a[i].n_ends, 1);
}

/* The one that was full and has answered is filled up again, and the other one left alone. */
static void one_is_filled(void **state) {
    (void)state;
    asked a[3], b[2];
    begin("plain");
    most = 1;
    start_call(&a[0], "mute", 0);
    start_call(&a[1], "mute", 0);
    RUN_WHILE(&w, pool->n_links < 2);
    most = 2;
    start_call(&b[0], "pid", 0);
    ew__link *full = line_capacity(pool->links->peer) == 0 ? pool->links : pool->links->next;
    start_call(&b[1], "pid", 0);
    expect(&b[0], EW_STATUS_OK, "");
    expect(&b[1], EW_STATUS_OK, "");
    start_call(&a[2], "mute", 0);
    assert_int_equal(line_capacity(full->peer), 0);
    cancel_all(a, 3);
    finish();
}

static void noise(void **state) {
    (void)state;
    begin("noisy");
    (void)ask("pid");
    assert_true(logged(&w, "hello"));
    assert_true(logged(&w, "{\"port\":65537}"));
    assert_true(logged(&w, "xxxxx"));
    assert_false(logged(&w, "listening")); /* that was for us */
    finish();
}

/* Programs that do not come up: each call that waits is told why, and a later one tries again. */
static void does_not_start(void **state) {
    (void)state;
    asked a, b;
    static const char *const missing[] = {"./there-is-no-such-program", NULL};
    begin_with(missing);
    for (int i = 0; i < 2; i++) {
        start_call(&a, "pid", 0);
        start_call(&b, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
        expect(&b, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
    }
    finish();
    begin("crash");
    for (int i = 0; i < 2; i++) {
        start_call(&a, "pid", 0);
        start_call(&b, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, " ended with code 7 before it said where it listens");
        expect(&b, EW_STATUS_UNAVAILABLE, " ended with code 7 before it said where it listens");
    }
    finish();
    begin("coward");
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, " ended with code 6 before it"); /* said so, or accepted */
    finish();
}

static void does_not_listen(void **state) {
    (void)state;
    asked a;
    begin("silent");
    w.limits.runtime_wait_ms = 300;
    for (int i = 0; i < 2; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, " has not said where it listens after 0.3 s");
    }
    finish();
    begin("lies");
    w.limits.runner_wait_ms = 300;
    for (int i = 0; i < 2; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, " does not accept connections on 127.0.0.1:");
    }
    assert_non_null(strstr(a.text, " after 0.3 s"));
    finish();
    begin("door"); /* a moment too early */
    assert_true(ask("pid") > 0);
    finish();
}

/* What starts and ends, starts and ends is not started as fast as it can be. */
static void pauses(void **state) {
    (void)state;
    asked a;
    begin("crash");
    uint64_t begin_at = ew__executor_read_clock(&w.loop.executor);
    for (int i = 0; i < 4; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, " ended with code 7");
    }
    assert_true(ew__executor_read_clock(&w.loop.executor) - begin_at >= EW__MS(100 + 200 + 400));
    start_call(&a, "pid", 20); /* it waits for its turn, and has a deadline */
    expect(&a, EW_STATUS_DEADLINE_EXCEEDED, "");
    start_call(&a, "pid", 0);
    finish(); /* while it waits to be started again */
    assert_int_equal(a.status, EW_STATUS_CANCELLED);
}

/* Calls that wait for a process keep their own limits. */
static void waits(void **state) {
    (void)state;
    asked a, b, c;
    begin("slow");
    start_call(&a, "pid", 50);
    start_call(&b, "pid", 0);
    start_call(&c, "pid", 0);
    expect(&a, EW_STATUS_DEADLINE_EXCEEDED, "");
    ew__call_cancel(b.call, EW__CANCEL_ASKED);
    expect(&b, EW_STATUS_CANCELLED, "");
    expect(&c, EW_STATUS_OK, "");
    finish();
    begin("slow"); /* nobody waits any more when it comes up */
    start_call(&a, "pid", 50);
    expect(&a, EW_STATUS_DEADLINE_EXCEEDED, "");
    run_ms(&w, 600);
    (void)ask("pid");
    finish();
    begin("silent"); /* closed while it is being started */
    start_call(&a, "pid", 0);
    finish();
    assert_int_equal(a.status, EW_STATUS_CANCELLED);
    begin("silent"); /* while it is waited for */
    start_call(&a, "pid", 0);
    run_ms(&w, 150);
    finish();
    begin("lies"); /* and while it is dialled */
    start_call(&a, "pid", 0);
    run_ms(&w, 150);
    finish();
    begin("plain"); /* never started */
    finish();
}

static void it_dies(void **state) {
    (void)state;
    asked a, b;
    begin("plain");
    long pid = ask("pid");
    unsigned port = pool->where.port;
    pool->site.state[0] = 7;
    start_call(&a, "mute", 0);
    start_call(&b, "exit", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    expect(&b, EW_STATUS_UNAVAILABLE, "lost");
    long next = ask("pid");
    assert_true(next != pid && !lives(pid));
    assert_true(pool->where.port != port); /* the kernel gives none twice in a row */
    assert_int_equal(pool->site.state[0], 0);
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

/* It runs, but does not listen any more: it is given a while, and then another one is started. */
static void it_is_deaf(void **state) {
    (void)state;
    asked a;
    begin("plain");
    long pid = ask("pid");
    w.limits.runner_wait_ms = 300;
    start_call(&a, "deaf", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    start_call(&a, "pid", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "does not accept connections");
    w.limits.runner_wait_ms = 15000;
    assert_true(ask("pid") != pid);
    assert_false(lives(pid));
    start_call(&a, "hangup", 0); /* a lost connection is nothing: there is another one */
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    (void)ask("pid");
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
    begin("stubborn");
    long pid = ask("pid");
    finish();
    assert_false(lives(pid));
    begin("parent");
    pid = ask("pid");
    long child = child_of_runner();
    assert_true(lives(pid) && lives(child));
    finish();
    assert_false(lives(pid));
    assert_false(lives(child));
    begin("plain"); /* a child that has the connection and the output, too: its parent's end is the end of the calls */
    pid = ask("pid");
    start_call(&a, "heir", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    child = child_of_runner();
    assert_true(ask("pid") != pid); /* when nothing is left of the first */
    assert_false(lives(child));
    finish();
}

/* Each allocation of a short life fails once: nothing hangs, nothing is lost or ended twice. */
static void no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1, quiet = 0; quiet < 1; n++) {
        asked a, b;
        begin("plain");
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
        start_call(&b, "pid", 0); /* memory is back: so is service */
        expect(&b, EW_STATUS_OK, "");
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
        cmocka_unit_test(calls),      cmocka_unit_test(a_few_wait),     cmocka_unit_test(one_is_filled),
        cmocka_unit_test(noise),      cmocka_unit_test(does_not_start), cmocka_unit_test(does_not_listen),
        cmocka_unit_test(pauses),     cmocka_unit_test(waits),          cmocka_unit_test(it_dies),
        cmocka_unit_test(it_is_deaf), cmocka_unit_test(nobody_is_left), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
