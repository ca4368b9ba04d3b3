/*
 * tests/unit/handler/test_exec_keep.c: processes that stay and run one call after the other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/handler/exec_world.h"

#include "handler/exec_process.h"

static const char *marked[] = {NULL, NULL}; /* set by main */

/* Does as it is told by its input, which is a row of words: ["text hello","result 1"]. */
static const char *const puppet_script = "import sys, os, time, json, signal\n"
                                         "def say(text):\n"
                                         "    sys.stdout.write(text + '\\n'); sys.stdout.flush()\n"
                                         "n = 0\n"
                                         "for line in sys.stdin:\n"
                                         "    n += 1\n"
                                         "    for word in json.loads(line):\n"
                                         "        word, _, rest = word.partition(' ')\n"
                                         "        if word == 'text': say(rest)\n"
                                         "        elif word == 'half': sys.stdout.write(rest); sys.stdout.flush()\n"
                                         "        elif word == 'result': say('{\"result\":%s}' % rest)\n"
                                         "        elif word == 'error': say('{\"error\":%s}' % rest)\n"
                                         "        elif word == 'chunk': say('{\"chunk\":%s}' % rest)\n"
                                         "        elif word == 'who': say('{\"result\":[%d,%d]}' % (os.getpid(), n))\n"
                                         "        elif word == 'env': say('{\"result\":%s}' % json.dumps([k for k in "
                                         "sorted(os.environ) if 'EVERYWIRE' in k]))\n"
                                         "        elif word == 'sleep': time.sleep(float(rest))\n"
                                         "        elif word == 'exit': os._exit(int(rest))\n"
                                         "        elif word == 'kill': os.kill(os.getpid(), int(rest))\n"
                                         "        elif word == 'close': os.close(1)\n"
                                         "        elif word == 'deaf': signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                                         "        elif word == 'long': say('x' * int(rest))\n";

static const char *const puppet_argv[] = {"/usr/bin/env", "python3", "-c", puppet_script, NULL};

static ew_exec_options puppet(void) {
    return (ew_exec_options){.argv = puppet_argv, .environment = marked, .keep = true, .grace_ms = 200};
}

/* Which process answers, and how many calls it has had. */
static int who(shop *s, int *ret_n) {
    visit v = {0};
    int pid = 0, n = 0;
    ask(&v, s, "[\"who\"]");
    if (v.status != EW_STATUS_OK)
        fail_msg("%s: %s", ew_status_name(v.status), v.message);
    assert_int_equal(sscanf(v.result, "[%d,%d]", &pid, &n), 2);
    visit_free(&v);
    if (ret_n)
        *ret_n = n;
    return pid;
}

static void run_until_processes(shop *s, unsigned n) {
    uint64_t until = ew__executor_read_clock(&s->w.loop.executor) + PATIENCE_NS;
    while (s->exec->n_processes != n) {
        if (ew__executor_read_clock(&s->w.loop.executor) > until)
            fail_msg("%u processes, expected %u", s->exec->n_processes, n);
        uv_run(s->w.loop.uv, UV_RUN_ONCE);
    }
}

static void one_after_the_other(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit v = {.chunks = true}, e = {0};
    int n = 0;
    (void)state;
    shop_init(&s, &options);
    int pid = who(&s, &n);
    assert_int_equal(n, 1);
    ask(&v, &s, "[\"text hello\", \n\"chunk 2\",\"result {\\\"a\\\": 1}\"]");
    assert_string_equal(v.said, "\"hello\"\n2\n");
    assert_string_equal(v.result, "{\"a\": 1}");
    ask(&e, &s, "[\"error \\\"no\\\"\"]");
    assert_fault(&e, EW_STATUS_INTERNAL, "no");
    assert_int_equal(who(&s, &n), pid);
    assert_int_equal(n, 4);
    assert_int_equal(s.exec->n_processes, 1);
    visit_free(&v);
    visit_free(&e);
    shop_done(&s);
    assert_int_equal(count_marked(marked[0]), 0);
}

static void many_calls_few_processes(void **state) {
    enum { N = 100 };
    ew_exec_options options = puppet();
    static visit v[N];
    static char input[N][32];
    shop s;
    (void)state;
    memset(v, 0, sizeof v);
    options.processes = 3;
    shop_init(&s, &options);
    for (int i = 0; i < N; i++) {
        (void)snprintf(input[i], sizeof input[i], "[\"result %d\"]", i);
        visit_open(&v[i], &s, input[i]);
        assert_true(s.exec->n_processes <= 3);
    }
    assert_int_equal(s.exec->n_waiting, N - 3);
    for (int i = 0; i < N; i++) {
        char want[16];
        visit_wait(&v[i]);
        (void)snprintf(want, sizeof want, "%d", i);
        assert_string_equal(v[i].result, want);
        visit_free(&v[i]);
    }
    assert_int_equal(s.exec->n_processes, 3);
    shop_done(&s);
}

static void no_input_streams(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit v = {.has_input = true};
    (void)state;
    shop_init(&s, &options);
    ask(&v, &s, "[]");
    assert_fault(&v, EW_STATUS_UNIMPLEMENTED, "/usr/bin/env takes no input stream");
    visit_free(&v);
    shop_done(&s);
}

static void environment(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    (void)state;
    shop_init(&s, &options);
    assert_answer(&s, "[\"env\"]", "[\"EVERYWIRE_KEY\"]"); /* nothing that belongs to one call */
    shop_done(&s);
}

/* ---- what it says when nobody has asked ---- */

static void strays(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit v = {.chunks = true};
    (void)state;
    shop_init(&s, &options);
    /* in the same write as the result, later, and half a line */
    assert_answer(
        &s, "[\"half {\\\"result\\\":1}\\nnoise\\n\",\"sleep 0.05\",\"text {\\\"result\\\":7}\",\"half rest\"]", "1");
    run_until_logged(&s.w, "I /usr/bin/env (outside of calls): noise\n");
    run_until_logged(&s.w, "(outside of calls): {\"result\":7}\n");
    run_until_bytes(&s.w, &s.exec->processes->strays.n, strlen("rest"));
    ask(&v, &s, "[\"chunk 2\",\"result 3\"]");
    assert_string_equal(v.said, "2\n");
    assert_string_equal(v.result, "3");
    assert_true(logged(&s.w, "(outside of calls): rest\n"));
    visit_free(&v);
    shop_done(&s);
}

/* The next call comes in the very moment when the first ends: what was written before it is not its own. */
static void strays_and_a_hasty_caller(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit next = {.chunks = true}, v = {.then = &next, .then_input = "[\"chunk 2\",\"result 3\"]"};
    (void)state;
    shop_init(&s, &options);
    ask(&v, &s, "[\"half {\\\"result\\\":1}\\nnoise\\n{\\\"result\\\":9}\\n\"]");
    assert_string_equal(v.result, "1");
    visit_wait(&next);
    assert_string_equal(next.said, "2\n");
    assert_string_equal(next.result, "3");
    assert_true(logged(&s.w, "(outside of calls): noise\n"));
    visit_free(&v);
    visit_free(&next);
    shop_done(&s);
}

/* ---- when it goes ---- */

static void dies_between_calls(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    (void)state;
    shop_init(&s, &options);
    int pid = who(&s, NULL);
    kill(pid, SIGKILL);
    while (runs(pid))
        usleep(1000); /* we have not heard of it when the next call comes */
    int next = who(&s, NULL);
    assert_int_not_equal(next, pid);
    assert_true(s.exec->pause_ms == 0); /* that was nobody's call */
    assert_true(logged(&s.w, "W /usr/bin/env was killed by SIGKILL between calls\n"));
    assert_answer(&s, "[\"result 1\",\"exit 4\"]", "1");
    run_until_logged(&s.w, "W /usr/bin/env exited with code 4 between calls\n");
    run_until_processes(&s, 0);
    assert_int_not_equal(who(&s, NULL), next);
    shop_done(&s);
}

static void dies_in_a_call(void **state) {
    static const uint64_t pauses[] = {100, 200, 400, 800, 1600, 2000, 2000};
    const ew_exec_options options = puppet();
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &options);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        ask(&v, &s, i == 1 ? "[\"text x\",\"kill 9\"]" : "[\"exit 64\"]");
        assert_fault(&v, EW_STATUS_UNAVAILABLE,
                     i == 1 ? "/usr/bin/env was killed by SIGKILL" : "/usr/bin/env exited with code 64");
        assert_string_equal(v.details, i == 1 ? "{\"signal\":\"SIGKILL\"}" : "{\"exit\":64}");
        assert_true(v.retryable);
        visit_free(&v);
        assert_true(s.exec->pause_ms == pauses[i]);
        assert_true(s.exec->start_at > 0);
    }
    visit_open(&v, &s, "[\"result 1\"]");
    uint64_t start_at = s.exec->start_at;
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_true(ew__executor_read_clock(&s.w.loop.executor) >= start_at); /* it waited */
    assert_true(s.exec->pause_ms == 0);
    visit_free(&v);
    shop_done(&s);
}

/* What it wrote before it died counts. */
static void answers_and_dies(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    (void)state;
    shop_init(&s, &options);
    for (int i = 0; i < 5; i++)
        assert_answer(&s, "[\"text x\",\"half {\\\"result\\\":1}\",\"exit 3\"]", "1");
    assert_true(s.exec->pause_ms == 0);
    shop_done(&s);
}

static void closes_its_output(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &options);
    ask(&v, &s, "[\"deaf\",\"close\",\"sleep 600\"]");
    assert_fault(&v, EW_STATUS_UNAVAILABLE, "/usr/bin/env has closed its output");
    assert_true(v.retryable);
    int pid = who(&s, NULL);
    assert_answer(&s, "[\"result 1\",\"close\",\"sleep 600\"]", "1");
    run_until_processes(&s, 0); /* its end was noticed */
    assert_int_not_equal(who(&s, NULL), pid);
    visit_free(&v);
    shop_done(&s);
    assert_int_equal(count_marked(marked[0]), 0);
}

static void cancel_ends_it(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit v = {.chunks = true}, next = {0};
    (void)state;
    shop_init(&s, &options);
    int pid = who(&s, NULL), other = 0;
    visit_open(&v, &s, "[\"deaf\",\"text on\",\"sleep 600\"]");
    run_until(&s.w, &v.n_chunks, 1);
    visit_open(&next, &s, "[\"who\"]");
    ew__call_cancel(v.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_CANCELLED);
    assert_false(runs(pid));
    visit_wait(&next);
    assert_int_equal(sscanf(next.result, "[%d", &other), 1);
    assert_int_not_equal(other, pid);
    assert_true(s.exec->pause_ms == 0);
    visit_free(&v);
    visit_free(&next);
    shop_done(&s);
}

static void limits_end_it(void **state) {
    ew_exec_options options = puppet();
    shop s;
    visit late = {0}, lengthy = {0};
    (void)state;
    options.timeout_ms = 10000; /* long enough to start Python on a busy machine */
    options.output_bytes = 1000;
    shop_init(&s, &options);
    int pid = who(&s, NULL);
    ask(&lengthy, &s, "[\"long 2000\",\"result 1\"]");
    assert_fault(&lengthy, EW_STATUS_RESOURCE_EXHAUSTED, "a line of /usr/bin/env is longer than 1000 bytes");
    int next = who(&s, NULL);
    assert_int_not_equal(next, pid);
    ask(&late, &s, "[\"sleep 600\"]");
    assert_fault(&late, EW_STATUS_DEADLINE_EXCEEDED, "/usr/bin/env took longer than 10000 ms");
    assert_int_not_equal(who(&s, NULL), next);
    assert_answer(&s, "[\"text a\",\"result 1\",\"long 100000\"]", "1"); /* between calls no line is too long */
    visit_free(&late);
    visit_free(&lengthy);
    shop_done(&s);
}

static void cannot_start(void **state) {
    static const char *const none[] = {"./there-is-no-such-program", NULL};
    shop s;
    visit v = {0};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = none, .keep = true});
    for (int i = 0; i < 3; i++) {
        ask(&v, &s, "[]");
        assert_fault(&v, EW_STATUS_FAILED_PRECONDITION,
                     "cannot start ./there-is-no-such-program: no such file or directory");
        visit_free(&v);
    }
    shop_done(&s);
}

/* A slow caller: the process is not read from; then all comes, and it has the next call. */
static void slow_caller(void **state) {
    const ew_exec_options options = puppet();
    shop s;
    visit v = {.chunks = true, .slow = true};
    (void)state;
    shop_init(&s, &options);
    visit_open(&v, &s, "[\"chunk 1\",\"chunk 2\",\"chunk 3\",\"result 4\",\"text stray\"]");
    for (unsigned i = 1; i <= 3; i++) {
        run_until(&s.w, &v.n_chunks, i);
        run_ms(&s.w, 50);
        assert_int_equal(v.n_chunks, i);
        ew__call_room(v.call);
    }
    visit_wait(&v);
    assert_string_equal(v.result, "4");
    assert_answer(&s, "[\"result 5\"]", "5");
    run_until_logged(&s.w, "stray");
    visit_free(&v);
    shop_done(&s);
}

/* Those that wait for calls see the end of file, and go. */
static void close_with_idle_ones(void **state) {
    ew_exec_options options = puppet();
    shop s;
    visit v[3] = {0};
    (void)state;
    options.processes = 3;
    shop_init(&s, &options);
    for (int i = 0; i < 3; i++)
        visit_open(&v[i], &s, "[\"sleep 0.2\",\"result 1\"]");
    for (int i = 0; i < 3; i++) {
        visit_wait(&v[i]);
        visit_free(&v[i]);
    }
    assert_int_equal(s.exec->n_processes, 3);
    shop_close(&s);
    assert_false(logged(&s.w, "was killed")); /* eof was enough */
    assert_int_equal(count_marked(marked[0]), 0);
    world_done(&s.w);
}

int main(void) {
    marked[0] = own_mark();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(many_calls_few_processes),
        cmocka_unit_test(no_input_streams),
        cmocka_unit_test(environment),
        cmocka_unit_test(strays),
        cmocka_unit_test(strays_and_a_hasty_caller),
        cmocka_unit_test(dies_between_calls),
        cmocka_unit_test(dies_in_a_call),
        cmocka_unit_test(answers_and_dies),
        cmocka_unit_test(closes_its_output),
        cmocka_unit_test(cancel_ends_it),
        cmocka_unit_test(limits_end_it),
        cmocka_unit_test(cannot_start),
        cmocka_unit_test(slow_caller),
        cmocka_unit_test(close_with_idle_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
