/*
 * tests/unit/endpoint/test_pool_child.c: a process that a pool speaks with over its standard input and output: how its
 * end is told, and how soon it is started again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/endpoint/pool_world.h"

static void begin(const char *mode) {
    static const char *argv[4];
    argv[0] = self;
    argv[1] = "--runner";
    argv[2] = mode;
    world_init(&w);
    most = 60;
    n_pool_closed = 0;
    ew__where where = {.kind = EW__WHERE_CHILD, .argv = argv};
    ew__pool_config config = config_of(&where);
    assert_int_equal(ew__pool_dial(&config, &pool), EW_OK);
}

static void calls(void **state) {
    (void)state;
    begin("stdio");
    long pid = ask("pid");
    assert_int_equal(ask("pid"), pid);
    assert_string_equal(ew__pool_child_end(pool), "");
    finish();
    assert_false(lives(pid));
}

/* The calls that are lost with it learn how it has ended. */
static void its_end(void **state) {
    (void)state;
    asked a, b;
    char line[300];
    begin("stdio");
    (void)snprintf(line, sizeof line, "%.150s ended with code 4", self);
    for (int i = 0; i < 3; i++) {
        long pid = ask("pid");
        start_call(&a, "mute", 0);
        start_call(&b, "exit", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "lost");
        expect(&b, EW_STATUS_UNAVAILABLE, "lost");
        assert_string_equal(a.child, line);
        assert_string_equal(b.child, line);
        assert_true(ask("pid") != pid);
        assert_string_equal(ew__pool_child_end(pool), "");
    }
    pid_t pid = (pid_t)ask("pid");
    start_call(&a, "mute", 0);
    run_ms(&w, 20);
    assert_int_equal(kill(pid, SIGKILL), 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    assert_non_null(strstr(a.child, " was killed by signal 9"));
    start_call(&a, "last", 0); /* its output ends before it does */
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    assert_non_null(strstr(a.child, " ended with code 5"));
    pid = (pid_t)ask("pid");
    assert_int_equal(ask("bye"), pid); /* what it said before its end counts */
    finish();
}

/* Its output has ended, it has not: that is the end of the connection all the same, a moment later. */
static void says_no_more(void **state) {
    (void)state;
    asked a;
    begin("stdio");
    long pid = ask("pid");
    start_call(&a, "shut", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    assert_true(ask("pid") != pid);
    start_call(&a, "shut", 0);
    run_ms(&w, 50);
    finish(); /* before that is told */
    assert_int_equal(a.n_ends, 1);
}

static void pauses(void **state) {
    (void)state;
    asked a, b;
    begin("stdio-crash");
    uint64_t begin_at = ew__executor_read_clock(&w.loop.executor);
    for (int i = 0; i < 4; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "");
    }
    assert_true(ew__executor_read_clock(&w.loop.executor) - begin_at >= EW__MS(100 + 200 + 400));
    assert_non_null(strstr(a.child, " ended with code 7"));
    start_call(&a, "pid", 20); /* it waits for its turn, and has a deadline */
    expect(&a, EW_STATUS_DEADLINE_EXCEEDED, "");
    start_call(&a, "pid", 0);
    start_call(&b, "pid", 0);
    ew__call_cancel(b.call, EW__CANCEL_ASKED);
    finish(); /* while they wait */
    assert_int_equal(a.status, EW_STATUS_CANCELLED);
    assert_int_equal(b.status, EW_STATUS_CANCELLED);
    begin("stdio");
    pool->where.argv = (const char *const[]){"./there-is-no-such-program", NULL};
    for (int i = 0; i < 2; i++) {
        start_call(&a, "pid", 0);
        expect(&a, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
        assert_string_equal(a.child, "");
    }
    finish();
}

/* A call, if there is memory for it. */
static void try_call(asked *a, const char *action) {
    memset(a, 0, sizeof *a);
    ew__executor_read_clock(&w.loop.executor);
    a->call = ew__call_new(&w.loop.executor, &asker, a);
    if (!a->call)
        return;
    a->call->key = ew_str_from(action);
    ew__pool_open(pool, a->call);
    run_until(&w, &a->n_ends, 1);
    assert_int_equal(a->n_ends, 1);
}

static void no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1, quiet = 0; quiet < 1; n++) {
        asked a, b;
        begin("stdio");
        w.n_allocations = 0;
        w.fail_at = n;
        try_call(&a, "exit");
        try_call(&b, "pid");
        quiet = w.n_allocations < n;
        assert_true(!quiet || (b.n_ends == 1 && b.status == EW_STATUS_OK));
        w.fail_at = 0;
        start_call(&b, "pid", 0); /* memory is back: so is service */
        expect(&b, EW_STATUS_OK, "");
        finish();
        assert_true(n < 300);
    }
}

/* A call that was opened on another callee. */
static void let_go(ew_call *call) { assert_int_equal(ew__pool_take(pool, call), EW_OK); }

static void takes_over(void **state) {
    static const ew__callee_ops first = {.open = let_go};
    (void)state;
    asked a;
    begin("stdio");
    memset(&a, 0, sizeof a);
    ew__executor_read_clock(&w.loop.executor);
    assert_true(ew__pool_is_idle(pool));
    a.call = ew__call_new(&w.loop.executor, &asker, &a);
    assert_non_null(a.call);
    a.call->key = EW_STR("pid");
    ew__call_open_on(a.call, &first, NULL);
    assert_false(ew__pool_is_idle(pool));
    expect(&a, EW_STATUS_OK, "");
    assert_true(ew__pool_is_idle(pool));
    w.limits.client_queue = 0;
    ew_call *call = ew__call_new(&w.loop.executor, &asker, &a);
    assert_non_null(call);
    assert_int_equal(ew__pool_take(pool, call), EW_EBUSY);
    ew__call_release(call);
    finish();
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--runner") == 0)
        line_runner_main(argc, argv);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),  cmocka_unit_test(its_end),   cmocka_unit_test(says_no_more),
        cmocka_unit_test(pauses), cmocka_unit_test(no_memory), cmocka_unit_test(takes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
