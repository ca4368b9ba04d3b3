/*
 * tests/unit/io/test_child.c: programs as streams: their beginning, their standard error, and above all their end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"

static ew_err start(end *e, world *w, const char *const *argv) {
    const ew__where where = {.kind = EW__WHERE_CHILD, .argv = argv};
    end_init(e, w);
    return end_dial(e, &where);
}

#define SHELL(script) ((const char *const[]){"/bin/sh", "-c", script, NULL})

static void echo(void **state) {
    static const char *const argv[] = {"cat", NULL};
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, argv), EW_OK);
    end_send(&e, "hello", 5);
    run_until_bytes(&w, &e.n_in, 5);
    assert_string_equal(e.in, "hello");
    ew__stream_finish(&e.stream);
    run_until(&w, &e.n_closed, 1);
    assert_int_equal(e.why, EW_OK);
    assert_true(logged(&w, "D cat ended with code 0\n"));
    end_free(&e);
    assert_no_children();
    world_done(&w);
}

/* More than the socket holds: it must be written in parts, and nothing may be lost. */
static void much(void **state) {
    static const char *const argv[] = {"cat", NULL};
    const size_t n = (size_t)8 << 20;
    char *bytes = malloc(n);
    world w;
    end e;
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 + (i >> 11));
    world_init(&w);
    assert_int_equal(start(&e, &w, argv), EW_OK);
    end_send(&e, bytes, n);
    run_until_bytes(&w, &e.n_in, n);
    assert_memory_equal(e.in, bytes, n);
    assert_true(e.n_drained > 0);
    end_close(&e);
    world_done(&w);
    free(bytes);
}

static void cannot_start(void **state) {
    static const char *const argvs[][2] = {{"./there-is-no-such-program", NULL},
                                           {"there-is-no-such-program", NULL},
                                           {"/etc/passwd", NULL},
                                           {"/etc", NULL},
                                           {"", NULL}};
    world w;
    end e;
    (void)state;
    world_init(&w);
    for (size_t i = 0; i < sizeof argvs / sizeof *argvs; i++) {
        char want[100];
        assert_int_equal(start(&e, &w, argvs[i]), EW_ECONNECT);
        (void)snprintf(want, sizeof want, "cannot start %s: %s", argvs[i][0],
                       uv_strerror(i == 2 || i == 3 ? UV_EACCES : UV_ENOENT));
        assert_string_equal(e.detail, want);
        assert_no_children();
    }
    assert_int_equal(w.n_lines, 0);
    world_done(&w);
}

static void cancelled(void **state) {
    static const char *const argv[] = {"cat", NULL};
    const ew__where where = {.kind = EW__WHERE_CHILD, .argv = argv};
    world w;
    end e;
    (void)state;
    world_init(&w);
    end_init(&e, &w);
    assert_int_equal(ew__dial_start(&w.loop, &e.stream, &where, 30000, on_dialled, &e.dial), EW_OK);
    ew__dial_cancel(e.dial);
    run_until(&w, &e.n_dialled, 1);
    assert_int_equal(e.dialled, EW_ECANCELLED);
    assert_no_children();
    world_done(&w);
}

/* What it wrote before its end is read, then eof; its code is in the log. */
static void ends_by_itself(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("read x; echo got $x; exit 3")), EW_OK);
    end_send(&e, "this\nand what it never reads\n", 29);
    run_until(&w, &e.n_eof, 1);
    run_until_logged(&w, "W /bin/sh ended with code 3\n");
    assert_string_equal(e.in, "got this\n");
    assert_int_equal(e.n_closed, 0);
    assert_no_children();
    end_send(&e, "nobody hears this", 17);
    run_ms(&w, 50);
    assert_int_equal(e.n_closed, 0); /* the owner decides */
    end_close(&e);
    world_done(&w);
}

static void killed_by_a_signal(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("kill -9 $$")), EW_OK);
    run_until(&w, &e.n_eof, 1);
    run_until_logged(&w, "W /bin/sh was killed by signal 9\n");
    end_close(&e);
    world_done(&w);
}

static void standard_error(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("echo one >&2; echo two >&2; printf three >&2; echo out")), EW_OK);
    run_until(&w, &e.n_eof, 1);
    run_until_logged(&w, "ended with code 0\n");
    assert_string_equal(w.log, "I /bin/sh: one\nI /bin/sh: two\nI /bin/sh: three\nW /bin/sh ended with code 0\n");
    assert_string_equal(e.in, "out\n");
    end_close(&e);
    world_done(&w);
}

/* One line of 10 MB is one line of the log, and the next is whole. */
static void long_line(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("head -c 10000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo next >&2")),
                     EW_OK);
    run_until_logged(&w, "I /bin/sh: next\n");
    run_until(&w, &e.n_eof, 1);
    assert_true(w.n_log < 3000);
    end_close(&e);
    world_done(&w);
}

/* The child is not stopped by the flood, and we neither: all of it is read, little of it kept. */
static void flood(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("yes 'I have much to say' | head -n 1000000 >&2; echo done")), EW_OK);
    run_until(&w, &e.n_eof, 1);
    assert_string_equal(e.in, "done\n");
    end_close(&e);
    assert_true(logged(&w, " lines left out\n"));
    assert_true(w.n_lines < 200000);
    world_done(&w);
}

static void close_and_it_obeys(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("cat >/dev/null; exit 7")), EW_OK);
    end_close(&e);
    assert_true(logged(&w, "W /bin/sh ended with code 7\n"));
    assert_no_children();
    world_done(&w);
}

static void close_and_it_wants_a_signal(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, (const char *const[]){"sleep", "1000", NULL}), EW_OK);
    end_close(&e);
    assert_true(logged(&w, "W sleep was killed by signal 15\n"));
    assert_no_children();
    world_done(&w);
}

static void close_and_it_resists(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("trap '' TERM; echo ready; while :; do sleep 1; done")), EW_OK);
    run_until_bytes(&w, &e.n_in, 6);
    end_close(&e);
    assert_true(logged(&w, "W /bin/sh was killed by signal 9\n"));
    assert_no_children();
    world_done(&w);
}

static pid_t pid_in(const char *text) {
    uint64_t pid = 0;
    assert_true(ew__u64_parse(ew__str(text, strcspn(text, "\n")), &pid));
    return (pid_t)pid;
}

/* Children of the child go with it: those that hear SIGTERM and those that do not. */
static void grandchildren(void **state) {
    static const char *const scripts[] = {
        "sleep 1000 & echo $!; exit 0",
        "sleep 1000 & echo $!; cat >/dev/null",
        "(trap '' TERM; while :; do sleep 1; done) & echo $!; sleep 0.3; exit 0",
        "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1; done",
    };
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        world w;
        end e;
        world_init(&w);
        assert_int_equal(start(&e, &w, SHELL(scripts[i])), EW_OK);
        run_until_bytes(&w, &e.n_in, 2);
        pid_t pid = pid_in(e.in);
        if (i == 0 || i == 2)
            run_until(&w, &e.n_eof, 1); /* they hold the stream open: eof says that they are gone */
        end_close(&e);
        for (int k = 0; k < 1000 && runs(pid); k++) /* a killed process needs a moment to go */
            usleep(10000);
        assert_false(runs(pid));
        assert_no_children();
        world_done(&w);
    }
}

/* A child has 0, 1 and 2 and nothing else of ours, however the host opened it. */
static void descriptors_of_a_child(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    int open_one = open("/dev/null", O_RDONLY); /* not close-on-exec */
    assert_int_equal(start(&e, &w, (const char *const[]){"ls", "/proc/self/fd", NULL}), EW_OK);
    run_until(&w, &e.n_eof, 1);
    assert_string_equal(e.in, "0\n1\n2\n3\n"); /* 3 is the folder that ls reads */
    end_close(&e);
    close(open_one);
    world_done(&w);
}

static void own_group_and_plain_signals(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    sigset_t some, old;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, &old);
    signal(SIGUSR2, SIG_IGN);
    assert_int_equal(start(&e, &w, SHELL("grep -E '^Sig(Blk|Ign)' /proc/self/status; cut -d' ' -f1,5 /proc/$$/stat")),
                     EW_OK);
    run_until(&w, &e.n_eof, 1);
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    assert_non_null(strstr(e.in, "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(e.in, "SigIgn:\t0000000000000000"));
    int pid = 0, group = -1;
    assert_int_equal(sscanf(strrchr(e.in, '\t') + 18, "%d %d", &pid, &group), 2);
    assert_int_equal(pid, group);
    end_close(&e);
    world_done(&w);
}

static void note_end(void *ud, const char *how) {
    char *text = ud;
    (void)snprintf(text, 64, "%s", how);
}

/* A program that reaches us by another way: both its outputs are logged, and the signal comes at once. */
static void managed_process(void **state) {
    static const char *const vars[] = {"EW_ONE=1", "PATH=/bin:/usr/bin", NULL};
    (void)state;
    world w;
    end e;
    char how[64] = "";
    ew__where where = {.kind = EW__WHERE_CHILD,
                       .argv = SHELL("trap 'echo signal; exit 5' TERM; echo out $EW_ONE $PATH $EW_TWO; echo err >&2; "
                                     "while :; do sleep 0.05; done"),
                       .vars = vars,
                       .managed = true,
                       .ended = note_end,
                       .ended_ud = how};
    assert_int_equal(setenv("EW_ONE", "0", 1), 0);
    assert_int_equal(setenv("EW_TWO", "2", 1), 0);
    world_init(&w);
    end_init(&e, &w);
    assert_int_equal(end_dial(&e, &where), EW_OK);
    run_until_logged(&w, "sh: out 1 /bin:/usr/bin 2\n");
    run_until_logged(&w, "sh: err\n");
    assert_int_equal(e.n_in, 0);
    assert_int_equal(e.n_eof, 0);
    assert_string_equal(how, "");
    end_close(&e);
    assert_true(logged(&w, "sh: signal"));
    assert_string_equal(how, "ended with code 5");
    assert_true(w.worst >= EW_LOG_INFO); /* that is how we end it: no warning */
    world_done(&w);
    assert_no_children();
}

/* One that has something to say to us: its standard output is the stream, its standard error is logged. */
static void process_that_announces(void **state) {
    (void)state;
    world w;
    end e;
    char how[64] = "";
    ew__where where = {.kind = EW__WHERE_CHILD,
                       .argv = SHELL("echo out; echo err >&2; exit 6"),
                       .managed = true,
                       .tells = true,
                       .ended = note_end,
                       .ended_ud = how};
    world_init(&w);
    end_init(&e, &w);
    assert_int_equal(end_dial(&e, &where), EW_OK);
    run_until(&w, &e.n_eof, 1);
    assert_string_equal(e.in, "out\n");
    run_until_logged(&w, "ended with code 6");
    assert_true(logged(&w, "sh: err\n"));
    assert_false(logged(&w, "sh: out"));
    assert_string_equal(how, "ended with code 6");
    end_close(&e);
    world_done(&w);
    assert_no_children();
}

/* From the signal to the kill it may take longer than usual. */
static void grace(void **state) {
    (void)state;
    world w;
    end e;
    ew__where where = {.kind = EW__WHERE_CHILD,
                       .argv = SHELL("trap 'sleep 2.6; echo finished >&2; exit 0' TERM; echo ready >&2; "
                                     "while :; do sleep 0.05; done"),
                       .managed = true,
                       .grace_ms = 20000};
    world_init(&w);
    end_init(&e, &w);
    assert_int_equal(end_dial(&e, &where), EW_OK);
    run_until_logged(&w, "ready");
    end_close(&e);
    assert_true(logged(&w, "sh: finished"));
    world_done(&w);
    assert_no_children();
}

static void nothing_is_left(void **state) {
    static const char *const argv[] = {"cat", NULL};
    static const char *const none[] = {"./there-is-no-such-program", NULL};
    world w;
    end e;
    (void)state;
    world_init(&w);
    unsigned before = 0;
    for (int i = 0; i <= 200; i++) {
        assert_int_equal(start(&e, &w, argv), EW_OK);
        end_close(&e);
        if (i == 0) /* the loop opens one of its own when it first waits */
            before = count_descriptors();
        assert_int_equal(start(&e, &w, none), EW_ECONNECT);
    }
    assert_int_equal(count_descriptors(), before);
    assert_no_children();
    world_done(&w);
}

/* A host that ignores SIGCHLD has no zombies, and takes the code away from us. */
static void nobody_to_reap(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(start(&e, &w, SHELL("exit 3")), EW_OK);
    run_until(&w, &e.n_eof, 1);
    end_close(&e);
    signal(SIGCHLD, SIG_DFL);
    assert_true(logged(&w, "W /bin/sh ended, somebody else took its code\n"));
    world_done(&w);
}

/* Each allocation fails once: an error comes, nothing is left. */
static void without_memory(void **state) {
    static const char *const argv[] = {"cat", NULL};
    const ew__where where = {.kind = EW__WHERE_CHILD, .argv = argv};
    unsigned n_failed = 0;
    bool more = true;
    (void)state;
    for (uint64_t n = 1; more; n++) {
        world w;
        end e;
        world_init(&w);
        end_init(&e, &w);
        w.fail_at = w.n_allocations + n;
        ew_err err = ew__dial_start(&w.loop, &e.stream, &where, 30000, on_dialled, &e.dial);
        if (err == EW_OK) {
            run_until(&w, &e.n_dialled, 1);
            err = e.dialled;
        }
        if (err == EW_OK)
            end_close(&e);
        n_failed += err != EW_OK;
        assert_true(err == EW_OK || err == EW_ENOMEM || err == EW_ECONNECT);
        more = w.n_allocations >= w.fail_at;
        assert_no_children();
        world_done(&w);
    }
    assert_true(n_failed >= 2); /* the dial, the child */
}

/* Many at once from several threads: they inherit each other's descriptors for a moment, and must not be held by them. */
static void *spawn_many(void *arg) {
    static const char *const argv[] = {"cat", NULL};
    unsigned *n_echoed = arg;
    world w;
    world_init(&w);
    for (int i = 0; i < 25; i++) {
        end e;
        if (start(&e, &w, argv) != EW_OK)
            break;
        end_send(&e, "x", 1);
        run_until_bytes(&w, &e.n_in, 1);
        end_close(&e);
        ++*n_echoed;
    }
    world_done(&w);
    return NULL;
}

static void several_threads(void **state) {
    pthread_t threads[4];
    unsigned n_echoed[4] = {0, 0, 0, 0};
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spawn_many, &n_echoed[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(n_echoed[i], 25);
    }
    assert_no_children();
}

/* We die without a word: so does the child. */
static void orphan(void **state) {
    int pids[2];
    char text[32] = "";
    (void)state;
    assert_int_equal(pipe2(pids, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        world w;
        end e;
        world_init(&w);
        if (start(&e, &w, SHELL("trap '' TERM; echo $$; while :; do sleep 1; done")) == EW_OK)
            run_until_bytes(&w, &e.n_in, 2);
        _exit(write(pids[1], e.in, e.n_in) > 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(read(pids[0], text, sizeof text - 1) > 0);
    pid = pid_in(text);
    for (int k = 0; k < 1000 && runs(pid); k++)
        usleep(10000);
    assert_false(runs(pid));
    close(pids[0]);
    close(pids[1]);
}

/* SIGPIPE has its default action here: writing to a child that has ended must not raise it. */
static void it_goes_while_we_write(void **state) {
    const size_t n = (size_t)4 << 20;
    char *bytes = calloc(1, n);
    world w;
    end e;
    (void)state;
    assert_non_null(bytes);
    world_init(&w);
    assert_int_equal(start(&e, &w, SHELL("read x; sleep 0.2; echo bye; exit 0")), EW_OK);
    bytes[0] = '\n';
    end_send(&e, bytes, n);
    run_until(&w, &e.n_eof, 1);
    assert_string_equal(e.in, "bye\n");
    end_close(&e);
    assert_int_equal(e.why, EW_OK);
    world_done(&w);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo),
        cmocka_unit_test(much),
        cmocka_unit_test(cannot_start),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(ends_by_itself),
        cmocka_unit_test(killed_by_a_signal),
        cmocka_unit_test(standard_error),
        cmocka_unit_test(long_line),
        cmocka_unit_test(flood),
        cmocka_unit_test(close_and_it_obeys),
        cmocka_unit_test(close_and_it_wants_a_signal),
        cmocka_unit_test(close_and_it_resists),
        cmocka_unit_test(grandchildren),
        cmocka_unit_test(descriptors_of_a_child),
        cmocka_unit_test(own_group_and_plain_signals),
        cmocka_unit_test(managed_process),
        cmocka_unit_test(process_that_announces),
        cmocka_unit_test(grace),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(nobody_to_reap),
        cmocka_unit_test(it_goes_while_we_write),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(orphan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
