/*
 * tests/unit/handler/test_exec.c: programs as handlers, a process for each call: where they live, what they say, how
 * they end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/handler/exec_world.h"

static ew_exec_options sh(const char *const *argv) { return (ew_exec_options){.argv = argv}; }

#define ONCE(v, ...) ask_once(v, &(ew_exec_options){.argv = __VA_ARGS__}, "null")

/* ---- options ---- */

static void options_that_are_none(void **state) {
    static const char *const none[] = {NULL}, *const empty[] = {"", NULL}, *const cat[] = {"cat", NULL};
    static const char *const no_name[] = {"=x", NULL}, *const nothing[] = {"", NULL};
    static const char *const ours[] = {"EVERYWIRE_KEY=x", NULL};
    static const ew_exec_exit code = {256, EW_STATUS_OK}, status = {1, (ew_status)17};
    const ew_exec_options bad[] = {
        {.argv = NULL},
        {.argv = none},
        {.argv = empty},
        {.argv = cat, .keep = true, .output = EW_EXEC_JSON},
        {.argv = cat, .keep = true, .output = EW_EXEC_TEXT},
        {.argv = cat, .output = (ew_exec_output)3},
        {.argv = cat, .folder = ""},
        {.argv = cat, .environment = no_name},
        {.argv = cat, .environment = nothing},
        {.argv = cat, .environment = ours},
        {.argv = cat, .n_exits = 1},
        {.argv = cat, .exits = &code, .n_exits = 1},
        {.argv = cat, .exits = &status, .n_exits = 1},
    };
    ew_limits limits = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ew__exec *exec = NULL;
        const char *problem = NULL;
        assert_int_equal(ew__exec_new(ew_env_default(), &limits, "/tool/x", &bad[i], &exec, &problem), EW_EINVAL);
        assert_null(exec);
        assert_non_null(problem);
    }
    ew__exec *exec = NULL;
    const char *problem = NULL;
    assert_int_equal(ew__exec_new(ew_env_default(), &limits, "/tool/x", NULL, &exec, &problem), EW_EINVAL);
    assert_int_equal(
        ew__exec_new(ew_env_default(), &limits, "/tool/x", &(ew_exec_options){.argv = cat}, &exec, &problem), EW_OK);
    ew__exec_free(exec); /* never settled */
    ew__exec_free(NULL);
}

/* The strings of the options need not stay. */
static void options_are_copied(void **state) {
    char program[] = "/bin/sh", flag[] = "-c", script[] = "echo $X; pwd", folder[] = "/usr", variable[] = "X=kept";
    const char *argv[] = {program, flag, script, NULL}, *environment[] = {variable, NULL};
    ew_exec_exit exits[] = {{3, EW_STATUS_NOT_FOUND}};
    ew_exec_options options = {
        .argv = argv, .folder = folder, .environment = environment, .exits = exits, .n_exits = 1};
    shop s;
    (void)state;
    shop_init(&s, &options);
    memset(program, 'x', sizeof program);
    memset(script, 'x', sizeof script);
    memset(flag, 'x', sizeof flag);
    memset(folder, 'x', sizeof folder);
    memset(variable, 'x', sizeof variable);
    memset(argv, 0, sizeof argv);
    memset(&options, 0, sizeof options);
    assert_answer(&s, "1", "\"kept\\n/usr\"");
    shop_done(&s);
}

/* ---- lines ---- */

static void lines(void **state) {
    visit v = {.chunks = true};
    (void)state;
    ONCE(&v, SHELL("read line; echo \"{\\\"chunk\\\":$line}\"; echo plain; printf '{\"chunk\": [1,2] }\\r\\n'; "
                   "printf 'crlf\\r\\n'; echo; echo '{\"result\":{\"n\": 10000000000000000000001 }}'; echo ignored"));
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_string_equal(v.said, "null\n\"plain\"\n[1,2]\n\"crlf\"\n\"\"\n");
    assert_string_equal(v.result, "{\"n\": 10000000000000000000001 }");
    visit_free(&v);
}

static void text_is_the_result(void **state) {
    visit v = {.chunks = true}, quiet = {0}, none = {0}, blank = {0};
    (void)state;
    ONCE(&v, SHELL("echo one; echo '{\"chunk\":7}'; printf 'tw\\377o \"2\"\\r\\n\\nlast'"));
    assert_string_equal(v.said, "\"one\"\n7\n\"tw\\ufffdo \\\"2\\\"\"\n\"\"\n\"last\"\n");
    assert_string_equal(v.result, "\"one\\ntw\\ufffdo \\\"2\\\"\\n\\nlast\"");
    ONCE(&quiet, SHELL("echo one; echo '{\"chunk\":7}'; echo two"));
    assert_int_equal(quiet.n_chunks, 0);
    assert_string_equal(quiet.result, "\"one\\ntwo\"");
    ONCE(&none, SHELL("echo '{\"chunk\":7}'; exit 0"));
    assert_string_equal(none.result, "null");
    ONCE(&blank, SHELL("echo"));
    assert_string_equal(blank.result, "\"\"");
    visit_free(&v);
    visit_free(&quiet);
    visit_free(&none);
    visit_free(&blank);
}

/* A result without a newline at its end is one; so is an error. */
static void last_line_without_end(void **state) {
    visit v = {0}, e = {0};
    (void)state;
    ONCE(&v, SHELL("echo text; printf '{\"result\":[1]}'"));
    assert_string_equal(v.result, "[1]");
    ONCE(&e, SHELL("printf '{\"error\":\"late\"}'; exit 3"));
    assert_fault(&e, EW_STATUS_INTERNAL, "late");
    visit_free(&v);
    visit_free(&e);
}

static void errors(void **state) {
    visit v = {0}, plain = {0};
    (void)state;
    ONCE(&v, SHELL("echo '{\"error\":{\"status\":\"NOT_FOUND\",\"message\":\"no \\u00e9\",\"details\":{\"a\": 1},"
                   "\"retry_after\":0.25}}'"));
    assert_fault(&v, EW_STATUS_NOT_FOUND, "no \xc3\xa9");
    assert_string_equal(v.details, "{\"a\": 1}");
    assert_true(v.retryable);
    assert_int_equal(v.retry_ms, 250);
    ONCE(&plain, SHELL("echo '{\"error\":\"just so\"}'"));
    assert_fault(&plain, EW_STATUS_INTERNAL, "just so");
    assert_false(plain.retryable);
    visit_free(&v);
    visit_free(&plain);
}

/* The bytes of a payload are handed on as they are, wherever the reads cut them. */
static void verbatim_in_pieces(void **state) {
    visit v = {.chunks = true};
    (void)state;
    ONCE(&v, PYTHON("import sys, time\n"
                    "text = '{\"chunk\":{\"b\":1.50,\"a\":\"\\\\u00e9\",\"a\":1e2}}\\n{\"result\":\"x\"}\\n'\n"
                    "for c in text:\n"
                    "    sys.stdout.write(c); sys.stdout.flush(); time.sleep(0.002)\n"));
    assert_string_equal(v.said, "{\"b\":1.50,\"a\":\"\\u00e9\",\"a\":1e2}\n");
    assert_string_equal(v.result, "\"x\"");
    visit_free(&v);
}

/* ---- one value, text ---- */

static void json(void **state) {
    visit v = {.chunks = true}, bad = {0}, nothing = {0}, two = {0}, failed = {0};
    (void)state;
    ONCE(&v, SHELL("printf ' {\"a\": \\n[1, 2]}\\n\\n'"), .output = EW_EXEC_JSON);
    assert_string_equal(v.result, "{\"a\": \n[1, 2]}");
    assert_int_equal(v.n_chunks, 0);
    ONCE(&bad, SHELL("echo '[1,'"), .output = EW_EXEC_JSON);
    assert_fault(&bad, EW_STATUS_INTERNAL, "the output of /bin/sh is not one JSON value: look at byte 3");
    ONCE(&nothing, SHELL(":"), .output = EW_EXEC_JSON);
    assert_int_equal(nothing.status, EW_STATUS_INTERNAL);
    ONCE(&two, SHELL("echo 1 2"), .output = EW_EXEC_JSON);
    assert_int_equal(two.status, EW_STATUS_INTERNAL);
    ONCE(&failed, SHELL("echo 1; exit 2"), .output = EW_EXEC_JSON);
    assert_fault(&failed, EW_STATUS_INTERNAL, "/bin/sh exited with code 2");
    visit_free(&v);
    visit_free(&bad);
    visit_free(&nothing);
    visit_free(&two);
    visit_free(&failed);
}

static void text(void **state) {
    static const struct {
        const char *script, *result;
    } cases[] = {{"printf 'a\\nb\\n'", "\"a\\nb\""},
                 {"printf 'a\\n\\n'", "\"a\\n\""},
                 {"printf 'a\\r\\n'", "\"a\""},
                 {":", "\"\""},
                 {"printf '{\"result\":1}\\n'", "\"{\\\"result\\\":1}\""},
                 {"printf 'a\\200'", "\"a\\ufffd\""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        visit v = {.chunks = true};
        ONCE(&v, SHELL(cases[i].script), .output = EW_EXEC_TEXT);
        assert_string_equal(v.result, cases[i].result);
        assert_int_equal(v.n_chunks, 0);
        visit_free(&v);
    }
}

/* ---- how they end ---- */

static void exit_codes(void **state) {
    static const struct {
        int code;
        ew_status status;
    } cases[] = {{1, EW_STATUS_INTERNAL},
                 {2, EW_STATUS_INTERNAL},
                 {64, EW_STATUS_INVALID_ARGUMENT},
                 {65, EW_STATUS_INVALID_ARGUMENT},
                 {66, EW_STATUS_NOT_FOUND},
                 {67, EW_STATUS_INTERNAL},
                 {69, EW_STATUS_UNAVAILABLE},
                 {75, EW_STATUS_UNAVAILABLE},
                 {77, EW_STATUS_PERMISSION_DENIED},
                 {78, EW_STATUS_FAILED_PRECONDITION},
                 {124, EW_STATUS_DEADLINE_EXCEEDED},
                 {255, EW_STATUS_INTERNAL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[32], message[64], details[32];
        visit v = {0};
        (void)snprintf(script, sizeof script, "echo text; exit %d", cases[i].code);
        (void)snprintf(message, sizeof message, "/bin/sh exited with code %d", cases[i].code);
        (void)snprintf(details, sizeof details, "{\"exit\":%d}", cases[i].code);
        ONCE(&v, SHELL(script));
        assert_fault(&v, cases[i].status, message);
        assert_string_equal(v.details, details);
        assert_int_equal(v.retryable, cases[i].status == EW_STATUS_UNAVAILABLE);
        visit_free(&v);
    }
}

static void exit_codes_of_the_action(void **state) {
    static const ew_exec_exit exits[] = {{1, EW_STATUS_OK}, {64, EW_STATUS_ABORTED}, {0, EW_STATUS_DATA_LOSS}};
    static const struct {
        const char *script;
        ew_status status;
    } cases[] = {{"exit 0", EW_STATUS_DATA_LOSS},
                 {"exit 1", EW_STATUS_OK},
                 {"exit 64", EW_STATUS_ABORTED},
                 {"exit 65", EW_STATUS_INVALID_ARGUMENT}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        visit v = {0};
        ONCE(&v, SHELL(cases[i].script), .exits = exits, .n_exits = 3);
        assert_int_equal(v.status, cases[i].status);
        visit_free(&v);
    }
}

static void signals(void **state) {
    visit v = {0}, odd = {0};
    (void)state;
    ONCE(&v, SHELL("echo text; kill -SEGV $$"));
    assert_fault(&v, EW_STATUS_INTERNAL, "/bin/sh was killed by SIGSEGV");
    assert_string_equal(v.details, "{\"signal\":\"SIGSEGV\"}");
    ONCE(&odd, SHELL("kill -40 $$"));
    assert_fault(&odd, EW_STATUS_INTERNAL, "/bin/sh was killed by SIG40");
    visit_free(&v);
    visit_free(&odd);
}

/* The answer is what counts; how it ended after that is for the log. */
static void code_after_the_answer(void **state) {
    const ew_exec_options options = sh(SHELL("echo '{\"result\":1}'; echo more; exit 9"));
    shop s;
    (void)state;
    shop_init(&s, &options);
    assert_answer(&s, NULL, "1");
    run_until_logged(&s.w, "W /bin/sh exited with code 9 after its answer\n");
    shop_done(&s);
}

static void a_good_end_is_no_news(void **state) {
    const ew_exec_options options = sh(SHELL("cat"));
    shop s;
    (void)state;
    shop_init(&s, &options);
    assert_answer(&s, "[1]", "\"[1]\"");
    run_ms(&s.w, 50);
    assert_int_equal(s.w.worst, EW_LOG_DEBUG);
    shop_done(&s);
}

static void cannot_start(void **state) {
    static const char *const none[] = {"there-is-no-such-program", NULL}, *const passwd[] = {"/etc/passwd", NULL};
    static const char *const pwd[] = {"pwd", NULL};
    visit v = {0}, not_one = {0}, no_folder = {0};
    (void)state;
    ask_once(&v, &(ew_exec_options){.argv = none}, "1");
    assert_fault(&v, EW_STATUS_FAILED_PRECONDITION, "cannot start there-is-no-such-program: no such file or directory");
    ask_once(&not_one, &(ew_exec_options){.argv = passwd}, "1");
    assert_fault(&not_one, EW_STATUS_FAILED_PRECONDITION, "cannot start /etc/passwd: permission denied");
    ask_once(&no_folder, &(ew_exec_options){.argv = pwd, .folder = "/there/is/no/such"}, "1");
    assert_fault(&no_folder, EW_STATUS_FAILED_PRECONDITION,
                 "cannot start pwd: no such file or directory (in /there/is/no/such)");
    visit_free(&v);
    visit_free(&not_one);
    visit_free(&no_folder);
}

static void standard_error(void **state) {
    const ew_exec_options options = sh(SHELL("echo one >&2; echo two >&2; echo '{\"result\":1}'"));
    shop s;
    (void)state;
    shop_init(&s, &options);
    assert_answer(&s, NULL, "1");
    run_until_logged(&s.w, "I /bin/sh: one\nI /bin/sh: two\n");
    shop_done(&s);
}

/* ---- where they live ---- */

static void environment(void **state) {
    static const char *const wanted[] = {"EW_TEST_HANDED", "EW_TEST_SET=a=b", "EW_TEST_NONE",
                                         "TZ=Mars",        "EW_TEST_SET=c",   NULL};
    static const char *const env[] = {"env", NULL};
    static const char *const there[] = {"EVERYWIRE_KEY=/tool/test\\n",
                                        "EVERYWIRE_TRACEPARENT=00-",
                                        "EW_TEST_HANDED=over",
                                        "EW_TEST_SET=c",
                                        "LANG=C",
                                        "TZ=Mars",
                                        "PATH=/",
                                        "LC_ALL=C",
                                        "TMPDIR=/tmp"};
    visit v = {0};
    unsigned n = 0;
    (void)state;
    setenv("HOME", "/", 0);
    setenv("USER", "me", 0);
    setenv("LC_ALL", "C", 1);
    setenv("LANG", "C", 1);
    setenv("TMPDIR", "/tmp", 1);
    setenv("EW_TEST_HANDED", "over", 1);
    setenv("EW_TEST_SECRET", "not for you", 1);
    unsetenv("EW_TEST_NONE");
    ask_once(&v, &(ew_exec_options){.argv = env, .environment = wanted}, NULL);
    assert_int_equal(v.status, EW_STATUS_OK);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_non_null(strstr(v.result, there[i]));
    assert_null(strstr(v.result, "EW_TEST_NONE"));
    assert_null(strstr(v.result, "EW_TEST_SECRET"));
    assert_null(strstr(v.result, "a=b"));
    for (const char *at = v.result; at; at = strstr(at, "\\n") ? strstr(at, "\\n") + 2 : NULL)
        n++;
    assert_int_equal(n, 11); /* these, and HOME and USER */
    visit_free(&v);
}

static void trace_and_deadline(void **state) {
    const ew_exec_options options = {.argv = SHELL("echo $EVERYWIRE_TRACEPARENT; echo ${EVERYWIRE_DEADLINE_MS-none}"),
                                     .output = EW_EXEC_TEXT};
    ew_exec_options timed = options;
    shop s;
    visit v = {0}, late = {.deadline_ms = 30000}, both = {.deadline_ms = 900000};
    char want[128];
    int ms = 0;
    (void)state;
    shop_init(&s, &options);
    ask(&v, &s, NULL);
    ew_str id = ew_call_trace_id(v.call), span = ew_call_span_id(v.call);
    (void)snprintf(want, sizeof want, "\"00-%.*s-%.*s-0", (int)id.len, id.ptr, (int)span.len, span.ptr);
    assert_memory_equal(v.result, want, strlen(want));
    assert_non_null(strstr(v.result, "none"));
    ask(&late, &s, NULL);
    assert_int_equal(sscanf(strchr(late.result, '\\') + 2, "%d", &ms), 1);
    assert_true(ms > 0 && ms <= 30000);
    visit_free(&v);
    visit_free(&late);
    shop_close(&s);
    timed.timeout_ms = 60000;
    shop_open(&s, &timed);
    ask(&both, &s, NULL);
    assert_int_equal(sscanf(strchr(both.result, '\\') + 2, "%d", &ms), 1);
    assert_true(ms > 0 && ms <= 60000);
    visit_free(&both);
    shop_done(&s);
}

static void folder(void **state) {
    visit v = {0}, there = {0};
    static const char *const relative[] = {"./sh", "-c", "pwd", NULL};
    (void)state;
    ONCE(&v, SHELL("pwd"), .folder = "/usr");
    assert_string_equal(v.result, "\"/usr\"");
    ask_once(&there, &(ew_exec_options){.argv = relative, .folder = "/bin"}, NULL);
    assert_int_equal(there.status, EW_STATUS_OK); /* it was found there */
    visit_free(&v);
    visit_free(&there);
}

static void limits(void **state) {
    visit v = {0}, cpu = {0}, file = {0}, all = {0};
    (void)state;
    ONCE(&v, SHELL("ulimit -t; ulimit -v; ulimit -f; ulimit -n"), .cpu_s = 7, .memory_bytes = (uint64_t)512 << 20,
         .file_bytes = 1 << 20, .open_files = 30);
    assert_string_equal(v.result, "\"7\\n524288\\n2048\\n30\"");
    ONCE(&cpu, SHELL("while :; do :; done"), .cpu_s = 1);
    assert_fault(&cpu, EW_STATUS_INTERNAL, "/bin/sh was killed by SIGXCPU");
    ONCE(&file,
         PYTHON("import signal, tempfile\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
                "f = tempfile.TemporaryFile()\nf.write(bytes(100000)); f.flush()\n"),
         .file_bytes = 1000);
    assert_fault(&file, EW_STATUS_INTERNAL, "python3 was killed by SIGXFSZ");
    ONCE(&all, SHELL("echo fine"), .cpu_s = UINT64_MAX, .memory_bytes = UINT64_MAX, .open_files = UINT64_MAX,
         .file_bytes = UINT64_MAX); /* never more than we have */
    assert_string_equal(all.result, "\"fine\"");
    visit_free(&v);
    visit_free(&cpu);
    visit_free(&file);
    visit_free(&all);
}

static void descriptors(void **state) {
    visit v = {0};
    int mine = open("/dev/null", O_RDONLY); /* not close-on-exec, as a careless host's */
    (void)state;
    ONCE(&v, SHELL("ls -1 /proc/$$/fd"));
    close(mine);
    assert_string_equal(v.result, "\"0\\n1\\n2\"");
    visit_free(&v);
}

/* It leads a group of its own, and nothing that we ignore is ignored there. */
static void group(void **state) {
    visit v = {0};
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    ONCE(&v, PYTHON("import os, signal\nprint(os.getpgrp() == os.getpid(), signal.getsignal(signal.SIGHUP).name)\n"
                    "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('SigBlk')])"));
    signal(SIGPIPE, SIG_DFL);
    assert_string_equal(v.result, "\"True SIG_DFL\\n['0000000000000000']\"");
    visit_free(&v);
}

/* ---- limits on what they say ---- */

static void long_lines(void **state) {
    visit v = {0}, exact = {.chunks = true}, endless = {0};
    (void)state;
    ONCE(&v, PYTHON("print('x' * 1001, flush=True)\nimport time\ntime.sleep(60)"), .output_bytes = 1000);
    assert_fault(&v, EW_STATUS_RESOURCE_EXHAUSTED, "a line of python3 is longer than 1000 bytes");
    ONCE(&exact, PYTHON("print('x' * 1000, end='\\r\\n')\nprint('y' * 1000)\nprint('{\"result\":1}')"),
         .output_bytes = 1000);
    assert_int_equal(exact.status, EW_STATUS_OK);
    assert_int_equal(exact.n_chunks, 2);
    ONCE(&endless, SHELL("tr '\\0' x </dev/zero"), .output_bytes = 1 << 20);
    assert_fault(&endless, EW_STATUS_RESOURCE_EXHAUSTED, "a line of /bin/sh is longer than 1048576 bytes");
    visit_free(&v);
    visit_free(&exact);
    visit_free(&endless);
}

static void long_output(void **state) {
    visit all = {0}, text_ = {0}, exact = {0}, over = {0}, said = {0}, endless = {0};
    (void)state;
    ONCE(&all, SHELL("yes"), .output = EW_EXEC_JSON, .output_bytes = 100000);
    assert_fault(&all, EW_STATUS_RESOURCE_EXHAUSTED, "the output of /bin/sh is longer than 100000 bytes");
    ONCE(&text_, SHELL("yes"), .output = EW_EXEC_TEXT, .output_bytes = 100000);
    assert_int_equal(text_.status, EW_STATUS_RESOURCE_EXHAUSTED);
    ONCE(&exact, SHELL("echo 12345"), .output = EW_EXEC_TEXT, .output_bytes = 5);
    assert_string_equal(exact.result, "\"12345\"");
    ONCE(&over, SHELL("printf 123456"), .output = EW_EXEC_TEXT, .output_bytes = 5);
    assert_int_equal(over.status, EW_STATUS_RESOURCE_EXHAUSTED);
    ONCE(&endless, SHELL("echo 123; echo 45; exit 0"), .output_bytes = 5);
    assert_fault(&endless, EW_STATUS_RESOURCE_EXHAUSTED, "the output of /bin/sh is longer than 5 bytes");
    ONCE(&said, SHELL("seq 1000; echo '{\"result\":1}'"), .output_bytes = 20); /* its result is not made of them */
    assert_string_equal(said.result, "1");
    visit_free(&all);
    visit_free(&text_);
    visit_free(&exact);
    visit_free(&over);
    visit_free(&said);
    visit_free(&endless);
}

/* A large result arrives whole. */
static void large(void **state) {
    visit v = {0};
    (void)state;
    ONCE(&v, PYTHON("print('{\"result\":\"' + 'x' * 5000000 + '\"}')"));
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_int_equal(strlen(v.result), 5000002);
    visit_free(&v);
}

/* A caller that is behind: the program is not read from, and nothing is lost or re-ordered. */
static void slow_caller(void **state) {
    const ew_exec_options options = {
        .argv = PYTHON("import sys\nfor i in range(3000):\n    print('{\"chunk\":\"%06d%s\"}' % (i, 'x' * 1000))\n"
                       "sys.stdout.flush()\nsys.stderr.write('written\\n')\n")};
    shop s;
    visit v = {.chunks = true, .slow = true};
    (void)state;
    shop_init(&s, &options);
    visit_open(&v, &s, NULL);
    run_until(&s.w, &v.n_chunks, 1);
    run_ms(&s.w, 300);
    assert_int_equal(v.n_chunks, 1); /* it waits, and so does the program: 3 MB do not fit into the pipe */
    assert_false(logged(&s.w, "written"));
    for (unsigned i = 2; i <= 3000; i++) {
        ew__call_room(v.call);
        assert_int_equal(v.n_chunks, i - 1); /* not at once: other calls have their turn */
        run_until(&s.w, &v.n_chunks, i);
    }
    v.slow = false;
    ew__call_room(v.call);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_int_equal(v.n_chunks, 3000);
    for (unsigned i = 0; i < 3000; i++) {
        char want[16];
        (void)snprintf(want, sizeof want, "\"%06u", i);
        assert_memory_equal(v.said + (size_t)i * 1009, want, 7);
    }
    visit_free(&v);
    shop_done(&s);
}

/* The program has ended long ago when the caller goes on. */
static void slower_than_the_program(void **state) {
    const ew_exec_options options = {.argv = SHELL("echo 1; echo 2; echo 3; exit 66")};
    shop s;
    visit v = {.chunks = true, .slow = true};
    (void)state;
    shop_init(&s, &options);
    visit_open(&v, &s, NULL);
    run_until(&s.w, &v.n_chunks, 1);
    run_until_logged(&s.w, "ended with code 66");
    run_ms(&s.w, 1500);
    assert_int_equal(v.n_chunks, 1);
    assert_int_equal(v.n_ends, 0);
    ew__call_room(v.call);
    run_until(&s.w, &v.n_chunks, 2);
    ew__call_room(v.call);
    run_until(&s.w, &v.n_chunks, 3);
    ew__call_room(v.call);
    visit_wait(&v);
    assert_fault(&v, EW_STATUS_NOT_FOUND, "/bin/sh exited with code 66");
    visit_free(&v);
    shop_done(&s);
}

/* It has ended, and we have no time to read what it wrote: it is read all the same. */
static void busy_loop(void **state) {
    const ew_exec_options options = {.argv = PYTHON("for i in range(300): print('x' * 1000)")};
    shop s;
    visit v = {.chunks = true, .slow = true};
    (void)state;
    shop_init(&s, &options);
    visit_open(&v, &s, NULL);
    run_until(&s.w, &v.n_chunks, 1);
    run_until_logged(&s.w, "ended with code 0");
    v.slow = false;
    ew__call_room(v.call);
    for (int i = 0; i < 3 && !v.n_ends; i++) {
        usleep(1200 * 1000);
        uv_run(s.w.loop.uv, UV_RUN_NOWAIT);
    }
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_int_equal(v.n_chunks, 300);
    assert_int_equal(strlen(v.result), 300 * 1002);
    visit_free(&v);
    shop_done(&s);
}

/* A caller that cannot take a chunk has lost the call; the program is ended. */
static void chunk_is_lost(void **state) {
    const ew_exec_options options = {.argv = SHELL("echo 1; echo 2; sleep 600")};
    shop s;
    visit v = {.chunks = true, .refuse = EW_ELIMIT};
    (void)state;
    shop_init(&s, &options);
    ask(&v, &s, NULL);
    assert_int_equal(v.status, EW_STATUS_RESOURCE_EXHAUSTED);
    for (unsigned n = 0; s.w.loop.executor.calls->live > 0 && n < 1000; n++)
        run_ms(&s.w, 10);
    assert_int_equal(s.w.loop.executor.calls->live, 0);
    assert_no_children();
    visit_free(&v);
    shop_done(&s);
}

/* A host that ignores SIGCHLD takes the code away from us: that is no success. */
static void nobody_to_reap(void **state) {
    visit v = {0}, answer = {0};
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    ONCE(&v, SHELL("echo text"));
    ONCE(&answer, SHELL("echo '{\"result\":1}'"));
    signal(SIGCHLD, SIG_DFL);
    assert_fault(&v, EW_STATUS_INTERNAL, "/bin/sh ended, and its exit code was lost");
    assert_string_equal(answer.result, "1");
    visit_free(&v);
    visit_free(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_are_none),
        cmocka_unit_test(options_are_copied),
        cmocka_unit_test(lines),
        cmocka_unit_test(text_is_the_result),
        cmocka_unit_test(last_line_without_end),
        cmocka_unit_test(errors),
        cmocka_unit_test(verbatim_in_pieces),
        cmocka_unit_test(json),
        cmocka_unit_test(text),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(exit_codes_of_the_action),
        cmocka_unit_test(signals),
        cmocka_unit_test(code_after_the_answer),
        cmocka_unit_test(a_good_end_is_no_news),
        cmocka_unit_test(cannot_start),
        cmocka_unit_test(standard_error),
        cmocka_unit_test(environment),
        cmocka_unit_test(trace_and_deadline),
        cmocka_unit_test(folder),
        cmocka_unit_test(limits),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(group),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(long_output),
        cmocka_unit_test(large),
        cmocka_unit_test(slow_caller),
        cmocka_unit_test(slower_than_the_program),
        cmocka_unit_test(busy_loop),
        cmocka_unit_test(chunk_is_lost),
        cmocka_unit_test(nobody_to_reap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
