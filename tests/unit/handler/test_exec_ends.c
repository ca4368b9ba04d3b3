/*
 * tests/unit/handler/test_exec_ends.c: calls that wait, are cancelled, take too long, or lose their action; and that no
 * process is left behind by any of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/handler/exec_world.h"

#include "handler/exec_process.h"

static const char *marked[] = {NULL, NULL}; /* set by main */

static void assert_nothing_left(void) {
    assert_no_children();
    assert_int_equal(count_marked(marked[0]), 0);
}

/* A call that runs, as far as its first chunk shows. */
static void begin(visit *v, shop *s) {
    v->chunks = true;
    visit_open(v, s, NULL);
    run_until(&s->w, &v->n_chunks, 1);
}

/* ---- cancelling ---- */

static void cancel_and_it_obeys(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("echo on; sleep 600; echo off"), .environment = marked});
    begin(&v, &s);
    assert_true(count_marked(marked[0]) > 0);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    assert_int_equal(v.n_ends, 0); /* not before it is gone */
    visit_wait(&v);
    assert_nothing_left();
    assert_fault(&v, EW_STATUS_CANCELLED, "the call was cancelled");
    assert_int_equal(v.n_chunks, 1);
    visit_free(&v);
    shop_done(&s);
}

/* It may say goodbye: what it writes then does not kill it, nor is it heard. */
static void cancel_and_it_cleans_up(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){
                      .argv = SHELL("trap 'echo x; sleep 0.3; echo y; echo {\\\"result\\\":1}; echo cleaned >&2; "
                                    "exit 0' TERM; echo on; while :; do sleep 0.05; done"),
                      .environment = marked,
                      .grace_ms = 30000});
    begin(&v, &s);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_nothing_left();
    assert_fault(&v, EW_STATUS_CANCELLED, "the call was cancelled");
    assert_true(logged(&s.w, "cleaned"));
    assert_int_equal(v.n_chunks, 1);
    visit_free(&v);
    shop_done(&s);
}

static void cancel_and_it_resists(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("trap '' TERM HUP INT; echo on; while :; do sleep 1; done"),
                                     .environment = marked,
                                     .grace_ms = 100});
    begin(&v, &s);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    assert_nothing_left();
    assert_true(logged(&s.w, "was killed by signal 9"));
    visit_free(&v);
    shop_done(&s);
}

/* A stopped process does not hear SIGTERM. */
static void cancel_and_it_is_stopped(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){
                      .argv = SHELL("echo on; kill -STOP $$; sleep 600"), .environment = marked, .grace_ms = 100});
    begin(&v, &s);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    assert_nothing_left();
    visit_free(&v);
    shop_done(&s);
}

/* Its children go too, also those that ignore SIGTERM and outlive it. */
static void cancel_and_its_children(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s,
              &(ew_exec_options){.argv = SHELL("for i in 1 2 3; do (trap '' TERM; while :; do sleep 1; done) & done; "
                                               "(sleep 600) & echo on; wait"),
                                 .environment = marked,
                                 .grace_ms = 200});
    begin(&v, &s);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    assert_nothing_left();
    visit_free(&v);
    shop_done(&s);
}

static void cancel_at_once(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("sleep 600"), .environment = marked});
    visit_open(&v, &s, NULL);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    assert_nothing_left();
    visit_free(&v);
    shop_done(&s);
}

/* The bound, should a process not go even then: the call ends before the process does. */
static void cancel_is_bounded(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("trap '' TERM; echo on; while :; do sleep 1; done"),
                                     .environment = marked,
                                     .grace_ms = 10000});
    begin(&v, &s);
    s.exec->options.grace_ms = 0; /* the process keeps the one that it was started with */
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    assert_int_equal(s.exec->n_processes, 1);
    assert_true(count_marked(marked[0]) > 0);
    visit_free(&v);
    shop_done(&s);
    assert_nothing_left();
}

static void caller_goes(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("echo on; sleep 600"), .environment = marked});
    begin(&v, &s);
    ew__call_release(v.call);
    v.call = NULL;
    run_until_idle(&s);
    assert_nothing_left();
    assert_int_equal(v.n_ends, 0);
    visit_free(&v);
    shop_done(&s);
}

/* ---- time ---- */

static void deadline(void **state) {
    shop s;
    visit v = {.deadline_ms = 300};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("trap 'exit 0' TERM; while :; do sleep 0.05; done"),
                                     .environment = marked});
    ask(&v, &s, NULL);
    assert_fault(&v, EW_STATUS_DEADLINE_EXCEEDED, "the deadline has passed");
    run_until_idle(&s);
    assert_nothing_left();
    visit_free(&v);
    shop_done(&s);
}

static void timeout(void **state) {
    shop s;
    visit v = {0}, soon = {0}, waits = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("read x; test $x = 1 || sleep 600"),
                                     .environment = marked,
                                     .processes = 1,
                                     .timeout_ms = 700});
    visit_open(&v, &s, "2");
    visit_open(&waits, &s, "2");
    visit_wait(&v);
    visit_wait(&waits);
    assert_fault(&v, EW_STATUS_DEADLINE_EXCEEDED, "/bin/sh took longer than 700 ms");
    assert_fault(&waits, EW_STATUS_DEADLINE_EXCEEDED, "/bin/sh took longer than 700 ms");
    shop_close(&s);
    assert_nothing_left();
    shop_open(&s, &(ew_exec_options){.argv = SHELL("echo fine"), .timeout_ms = 600000});
    ask(&soon, &s, NULL);
    assert_int_equal(soon.status, EW_STATUS_OK);
    visit_free(&v);
    visit_free(&soon);
    visit_free(&waits);
    shop_done(&s);
}

/* Cancelled, then too late: it stays cancelled, and ends once. */
static void timeout_of_a_cancelled_call(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("trap '' TERM; echo on; while :; do sleep 0.1; done"),
                                     .environment = marked,
                                     .timeout_ms = 1500,
                                     .grace_ms = 2500});
    begin(&v, &s);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    visit_free(&v);
    shop_done(&s);
    assert_nothing_left();
}

/* ---- processes and the queue ---- */

static void processes_at_once(void **state) {
    enum { N = 6 };
    shop s;
    visit v[N] = {0};
    unsigned n_on = 0;
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("echo on; sleep 600"), .environment = marked, .processes = 2});
    for (int i = 0; i < N; i++) {
        v[i].chunks = true;
        visit_open(&v[i], &s, NULL);
        assert_true(s.exec->n_processes <= 2);
    }
    run_until(&s.w, &v[0].n_chunks, 1);
    run_until(&s.w, &v[1].n_chunks, 1);
    run_ms(&s.w, 200);
    for (int i = 0; i < N; i++)
        n_on += v[i].n_chunks;
    assert_int_equal(n_on, 2);
    assert_int_equal(s.exec->n_waiting, N - 2);
    for (int i = 0; i < N; i++) { /* in the order in which they came */
        run_until(&s.w, &v[i].n_chunks, 1);
        assert_true(s.exec->n_processes <= 2);
        ew__call_cancel(v[i].call, EW__CANCEL_ASKED);
        visit_wait(&v[i]);
    }
    for (int i = 0; i < N; i++)
        visit_free(&v[i]);
    shop_done(&s);
    assert_nothing_left();
}

static void queue(void **state) {
    shop s;
    visit on = {0}, first = {0}, second = {0}, third = {0}, fourth = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("read x; echo on; test $x = 1 || sleep 600"),
                                     .environment = marked,
                                     .processes = 1,
                                     .queue = 2});
    begin(&on, &s);
    visit_open(&first, &s, "1");
    visit_open(&second, &s, "1");
    visit_open(&third, &s, "1");
    assert_fault(&third, EW_STATUS_RESOURCE_EXHAUSTED, "too many calls wait for /bin/sh");
    ew__call_cancel(first.call, EW__CANCEL_ASKED);
    assert_fault(&first, EW_STATUS_CANCELLED, "cancelled before it began"); /* at once */
    visit_open(&fourth, &s, "1");
    assert_int_equal(fourth.n_ends, 0);
    ew__call_cancel(on.call, EW__CANCEL_ASKED);
    visit_wait(&second);
    assert_int_equal(second.status, EW_STATUS_OK);
    visit_wait(&fourth);
    assert_int_equal(fourth.status, EW_STATUS_OK);
    visit_free(&on);
    visit_free(&first);
    visit_free(&second);
    visit_free(&third);
    visit_free(&fourth);
    shop_done(&s);
    assert_nothing_left();
}

/* A program that cannot be started does not keep its place. */
static void many_that_cannot_start(void **state) {
    static const char *const none[] = {"./there-is-no-such-program", NULL};
    enum { N = 50 };
    shop s;
    visit v[N] = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = none, .processes = 2});
    for (int i = 0; i < N; i++)
        visit_open(&v[i], &s, NULL);
    for (int i = 0; i < N; i++) {
        visit_wait(&v[i]);
        assert_int_equal(v[i].status, EW_STATUS_FAILED_PRECONDITION);
        visit_free(&v[i]);
    }
    shop_done(&s);
}

#define HASTY                                                                                                          \
    {.argv = (const char *const[]){"./there-is-no-such-program", NULL}, .processes = 1},                               \
        {.argv = SHELL("echo '{\"result\":1}'"), .processes = 1}, {.argv = SHELL("exit 7"), .processes = 1},           \
        {.argv = SHELL("exit 7"), .processes = 2, .keep = true}, {                                                     \
        .argv = SHELL("sleep 600"), .processes = 1, .timeout_ms = 100, .grace_ms = 100                                 \
    }

/* Callers that come back in the moment when they are told the end. */
static void hasty_callers(void **state) {
    const ew_exec_options kinds[] = {HASTY};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        enum { N = 4 };
        visit v[N] = {0};
        shop s;
        shop_init(&s, &kinds[k]);
        for (int i = 0; i + 1 < N; i++)
            v[i].then = &v[i + 1];
        visit_open(&v[0], &s, NULL);
        run_until(&s.w, &v[N - 1].n_ends, 1);
        for (int i = 0; i < N; i++) {
            assert_int_equal(v[i].n_ends, 1);
            assert_int_equal(v[i].status, v[N - 1].status);
        }
        for (int i = 0; i < N; i++)
            visit_free(&v[i]);
        shop_done(&s);
    }
}

/* Callers that close the action in that moment. */
static void callers_that_close(void **state) {
    const ew_exec_options kinds[] = {HASTY};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        visit v = {.closes = true}, other = {0};
        shop s;
        shop_init(&s, &kinds[k]);
        visit_open(&v, &s, NULL);
        visit_open(&other, &s, NULL);
        visit_wait(&v);
        visit_wait(&other);
        run_until(&s.w, &s.n_closed, 1);
        assert_null(s.exec);
        assert_no_children();
        visit_free(&v);
        visit_free(&other);
        world_done(&s.w);
    }
}

/* ---- those that do not go by themselves ---- */

static void answer_and_go_on(void **state) {
    shop s;
    (void)state;
    shop_init(&s, &(ew_exec_options){
                      .argv = SHELL("trap '' TERM; echo '{\"result\":1}'; while :; do echo noise; sleep 0.1; done"),
                      .environment = marked,
                      .processes = 1,
                      .grace_ms = 100});
    assert_answer(&s, NULL, "1");
    assert_true(count_marked(marked[0]) > 0); /* the call did not wait for it */
    assert_answer(&s, NULL, "1");             /* the next did: there is one place */
    shop_done(&s);
    assert_nothing_left();
}

/* It reads to the end of file first: it sees one, although the caller has more to say. */
static void answer_and_read_on(void **state) {
    shop s;
    visit v = {.has_input = true};
    (void)state;
    shop_init(&s, &(ew_exec_options){
                      .argv = SHELL("read x; echo '{\"result\":1}'; cat >/dev/null; echo saw the end >&2; sleep 600"),
                      .environment = marked,
                      .grace_ms = 100});
    ask(&v, &s, NULL);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_int_equal(ew__call_input(v.call, EW_STR("1")), EW_EENDED);
    run_until_logged(&s.w, "saw the end");
    visit_free(&v);
    shop_done(&s);
    assert_nothing_left();
}

static void output_closed_and_going_on(void **state) {
    shop s;
    visit v = {0}, forever = {0};
    (void)state;
    shop_init(
        &s, &(ew_exec_options){.argv = SHELL("read x; echo on; exec >&-; test $x = 1 && sleep 600; sleep 0.7; exit 66"),
                               .environment = marked,
                               .grace_ms = 100});
    ask(&v, &s, "0");
    assert_fault(&v, EW_STATUS_NOT_FOUND, "/bin/sh exited with code 66"); /* its code still counts */
    forever.chunks = true;
    visit_open(&forever, &s, "1");
    run_until(&s.w, &forever.n_chunks, 1);
    run_ms(&s.w, 100);
    ew__call_cancel(forever.call, EW__CANCEL_ASKED);
    visit_wait(&forever);
    assert_int_equal(forever.status, EW_STATUS_CANCELLED);
    assert_nothing_left();
    visit_free(&v);
    visit_free(&forever);
    shop_done(&s);
}

/* Children that it leaves behind have its output open; they are ended with it. */
static void children_left_behind(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){
                      .argv = SHELL("sleep 600 & (trap '' TERM; while :; do sleep 1; done) & echo out; exit 0"),
                      .environment = marked,
                      .grace_ms = 300});
    ask(&v, &s, NULL);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_string_equal(v.result, "\"out\"");
    visit_free(&v);
    shop_done(&s);
    assert_nothing_left();
}

/* One that has left the group is not ours any more; but its having the output open does not keep the call. */
static void one_that_left_the_group(void **state) {
    shop s;
    visit v = {0};
    int pid = 0;
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = PYTHON("import os, time\n"
                                                    "pid = os.fork()\n"
                                                    "if pid == 0:\n"
                                                    "    os.setsid(); time.sleep(120); os._exit(0)\n"
                                                    "time.sleep(0.3)\n"
                                                    "print(pid, flush=True)\n"),
                                     .environment = marked,
                                     .grace_ms = 100});
    ask(&v, &s, NULL);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_int_equal(sscanf(v.result, "\"%d\"", &pid), 1);
    assert_true(pid > 1);
    kill(pid, SIGKILL);
    visit_free(&v);
    shop_done(&s);
}

/* ---- the end of the action ---- */

static void close_with_calls(void **state) {
    shop s;
    visit runs_ = {0}, starts = {0}, waits = {0}, resists = {0}, late = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){
                      .argv = SHELL("read x; test $x = 1 && trap '' TERM; echo on; while :; do sleep 0.1; done"),
                      .environment = marked,
                      .processes = 3,
                      .grace_ms = 200});
    resists.chunks = true;
    visit_open(&resists, &s, "1");
    run_until(&s.w, &resists.n_chunks, 1);
    begin(&runs_, &s);
    visit_open(&starts, &s, NULL);
    visit_open(&waits, &s, NULL);
    ew__exec_close(s.exec, on_exec_closed, &s);
    assert_fault(&runs_, EW_STATUS_UNAVAILABLE, "/bin/sh is being stopped");
    assert_true(runs_.retryable);
    assert_int_equal(starts.status, EW_STATUS_UNAVAILABLE);
    assert_int_equal(waits.status, EW_STATUS_UNAVAILABLE);
    assert_int_equal(resists.status, EW_STATUS_UNAVAILABLE);
    assert_int_equal(s.n_closed, 0);
    visit_open(&late, &s, NULL);
    assert_int_equal(late.status, EW_STATUS_UNAVAILABLE);
    run_until(&s.w, &s.n_closed, 1);
    assert_nothing_left();
    ew__exec_free(s.exec);
    visit_free(&runs_);
    visit_free(&starts);
    visit_free(&waits);
    visit_free(&resists);
    visit_free(&late);
    world_done(&s.w);
}

static void close_while_cancelling(void **state) {
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("trap '' TERM; echo on; while :; do sleep 0.1; done"),
                                     .environment = marked,
                                     .grace_ms = 300});
    begin(&v, &s);
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    shop_close(&s);
    assert_fault(&v, EW_STATUS_CANCELLED, "the call was cancelled");
    assert_nothing_left();
    visit_free(&v);
    world_done(&s.w);
}

static void close_with_nothing(void **state) {
    static const char *const cat[] = {"cat", NULL};
    const char *problem = NULL;
    shop s;
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = cat});
    ew__exec_close(s.exec, on_exec_closed, &s);
    assert_int_equal(s.n_closed, 1); /* at once */
    ew__exec_free(s.exec);
    assert_int_equal(ew__exec_new(&s.w.env, &s.w.limits, "/a/b", &(ew_exec_options){.argv = cat}, &s.exec, &problem),
                     EW_OK);
    ew__exec_close(s.exec, on_exec_closed, &s);
    assert_int_equal(s.n_closed, 2); /* also if it never had a loop */
    ew__exec_free(s.exec);
    world_done(&s.w);
}

/* ---- storms ---- */

#define STORM 200

/* A program for each temper, told by its input. */
static const char *const storm_script = "import os, sys, signal, time, json\n"
                                        "n = json.loads(sys.stdin.readline()) % 8\n"
                                        "if n in (1, 3): signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                                        "if n in (2, 3):\n"
                                        "    for i in range(2):\n"
                                        "        if os.fork() == 0: time.sleep(600); os._exit(0)\n"
                                        "if n == 4: os.close(1)\n"
                                        "if n == 5: print('{\"result\":5}', flush=True)\n"
                                        "if n == 6:\n"
                                        "    for i in range(100000): print('{\"chunk\":%d}' % i)\n"
                                        "if n == 7: print(7); sys.exit(0)\n"
                                        "time.sleep(600)\n";

static void storm_of(uint64_t seed, bool keep_them) {
    ew__rng rng = {{seed, seed ^ 0x9e3779b97f4a7c15u, ~seed, 0x1234567}};
    const char *script = keep_them ? "import sys, time\n"
                                     "for line in sys.stdin:\n"
                                     "    n = int(line)\n"
                                     "    if n % 3 == 1: time.sleep(600)\n"
                                     "    if n % 11 == 5: sys.exit(3)\n"
                                     "    print('text', flush=True)\n"
                                     "    print('{\"result\":%d}' % n, flush=True)\n"
                                   : storm_script;
    static visit v[STORM];
    static char input[STORM][8];
    unsigned open_at = 0;
    shop s;
    print_message("seed %llu\n", (unsigned long long)seed);
    memset(v, 0, sizeof v);
    shop_init(&s, &(ew_exec_options){.argv = (const char *const[]){"/usr/bin/env", "python3", "-c", script, NULL},
                                     .environment = marked,
                                     .keep = keep_them,
                                     .processes = 8,
                                     .grace_ms = 50});
    for (unsigned i = 0; i < STORM; i++) {
        (void)snprintf(input[i], sizeof input[i], "%u", (unsigned)(ew__rng_next(&rng) % 1000));
        v[i].chunks = ew__rng_next(&rng) % 2;
        v[i].slow = ew__rng_next(&rng) % 3 == 0;
        visit_open(&v[i], &s, input[i]);
        if (ew__rng_next(&rng) % 4 == 0)
            run_ms(&s.w, ew__rng_next(&rng) % 40);
        while (open_at <= i && (i - open_at > 12 || ew__rng_next(&rng) % 3 == 0)) {
            visit *next = &v[open_at++];
            if (ew__rng_next(&rng) % 3 == 0) {
                ew__call_release(next->call);
                next->call = NULL;
            } else {
                ew__call_cancel(next->call, EW__CANCEL_ASKED);
            }
        }
    }
    for (; open_at < STORM; open_at++)
        ew__call_cancel(v[open_at].call, EW__CANCEL_ASKED);
    run_until_idle(&s);
    for (unsigned i = 0; i < STORM; i++) {
        assert_int_equal(v[i].n_ends, v[i].call ? 1 : v[i].n_ends);
        assert_true(v[i].n_ends <= 1);
        visit_free(&v[i]);
    }
    shop_done(&s);
    assert_nothing_left();
}

static uint64_t fresh_seed(void) {
    const char *given = getenv("EW_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 0;
    if (!given)
        ew_env_default()->random(NULL, &seed, 4);
    return seed;
}

static void storm(void **state) {
    (void)state;
    storm_of(fresh_seed(), false);
}

static void storm_of_kept_ones(void **state) {
    (void)state;
    storm_of(fresh_seed(), true);
}

/* In the middle of one, the action goes. */
static void close_in_a_storm(void **state) {
    shop s;
    visit v[40] = {0};
    char input[40][4];
    (void)state;
    shop_init(&s,
              &(ew_exec_options){.argv = PYTHON(storm_script), .environment = marked, .processes = 20, .grace_ms = 50});
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(input[i], sizeof input[i], "%u", i);
        v[i].chunks = i % 2;
        visit_open(&v[i], &s, input[i]);
        run_ms(&s.w, 10);
        if (i % 5 == 0)
            ew__call_cancel(v[i].call, EW__CANCEL_ASKED);
    }
    shop_close(&s);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(v[i].n_ends, 1);
        visit_free(&v[i]);
    }
    assert_nothing_left();
    world_done(&s.w);
}

/* Neither memory nor descriptors are left after many calls. */
static void nothing_grows(void **state) {
    const ew_exec_options options = {.argv = SHELL("cat; echo err >&2"), .environment = marked};
    unsigned before = 0;
    shop s;
    (void)state;
    shop_init(&s, &options);
    for (int i = 0; i <= 100; i++) {
        assert_answer(&s, "[1]", "\"[1]\"");
        if (i == 0) {
            run_ms(&s.w, 50);
            before = count_descriptors();
        }
    }
    run_ms(&s.w, 50);
    assert_int_equal(count_descriptors(), before);
    shop_done(&s);
}

int main(void) {
    marked[0] = own_mark();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_and_it_obeys),
        cmocka_unit_test(cancel_and_it_cleans_up),
        cmocka_unit_test(cancel_and_it_resists),
        cmocka_unit_test(cancel_and_it_is_stopped),
        cmocka_unit_test(cancel_and_its_children),
        cmocka_unit_test(cancel_at_once),
        cmocka_unit_test(cancel_is_bounded),
        cmocka_unit_test(caller_goes),
        cmocka_unit_test(deadline),
        cmocka_unit_test(timeout),
        cmocka_unit_test(timeout_of_a_cancelled_call),
        cmocka_unit_test(processes_at_once),
        cmocka_unit_test(queue),
        cmocka_unit_test(many_that_cannot_start),
        cmocka_unit_test(hasty_callers),
        cmocka_unit_test(callers_that_close),
        cmocka_unit_test(answer_and_go_on),
        cmocka_unit_test(answer_and_read_on),
        cmocka_unit_test(output_closed_and_going_on),
        cmocka_unit_test(children_left_behind),
        cmocka_unit_test(one_that_left_the_group),
        cmocka_unit_test(close_with_calls),
        cmocka_unit_test(close_while_cancelling),
        cmocka_unit_test(close_with_nothing),
        cmocka_unit_test(storm),
        cmocka_unit_test(storm_of_kept_ones),
        cmocka_unit_test(close_in_a_storm),
        cmocka_unit_test(nothing_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
