/*
 * tests/unit/handler/test_exec_input.c: what programs are given: one line, streams of lines, at the speed at which they
 * read; and nothing of it but by standard input.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/handler/exec_world.h"

#include "handler/exec_process.h"

static const char *const cat[] = {"cat", NULL};

/* ---- one line ---- */

static void one_line(void **state) {
    shop s;
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = cat, .output = EW_EXEC_JSON});
    assert_answer(&s, "{\"a\": [1,\n  2],\r\n \"b\":\"\\n\"}", "{\"a\":[1,2],\"b\":\"\\n\"}"); /* no newline inside */
    assert_answer(&s, "{\"a\": 1.50}", "{\"a\": 1.50}");                                       /* else as it came */
    assert_answer(&s, NULL, "null");
    shop_close(&s);
    shop_open(&s, &(ew_exec_options){.argv = SHELL("wc -l; wc -c </dev/null")});
    assert_answer(&s, "[1,\n2\n]", "\"1\\n0\"");
    shop_close(&s);
    shop_open(&s, &(ew_exec_options){.argv = SHELL("cat /dev/stdin")}); /* it can be opened by its name */
    assert_answer(&s, "17", "\"17\"");
    shop_done(&s);
}

/* Programs that do not read their input, however long it is, are none the worse for it. */
static void unread(void **state) {
    char *big = malloc(3000001);
    shop s;
    visit v = {0};
    (void)state;
    assert_non_null(big);
    memset(big, 'x', 3000000);
    big[0] = big[2999999] = '"';
    big[3000000] = '\0';
    v.input = ew__str(big, 3000000);
    shop_init(&s, &(ew_exec_options){.argv = SHELL("sleep 0.2; echo '{\"result\":1}'; sleep 0.1; echo more")});
    ask(&v, &s, NULL);
    assert_string_equal(v.result, "1");
    visit_free(&v);
    shop_close(&s);
    shop_open(&s, &(ew_exec_options){.argv = SHELL("exec <&-; sleep 0.2; echo closed")});
    v.input = ew__str(big, 3000000);
    ask(&v, &s, NULL);
    assert_string_equal(v.result, "\"closed\"");
    visit_free(&v);
    shop_done(&s);
    free(big);
}

/* It may take its time before it reads, longer than a peer may stall; all of it arrives. */
static void read_late(void **state) {
    char *big = malloc(5000001);
    shop s;
    visit v = {0};
    (void)state;
    assert_non_null(big);
    memset(big, 'x', 5000000);
    big[0] = big[4999999] = '"';
    v.input = ew__str(big, 5000000);
    memset(&s, 0, sizeof s);
    world_init(&s.w);
    s.w.limits.stall_ms = 100;
    shop_open(&s, &(ew_exec_options){.argv = SHELL("sleep 0.5; wc -c")});
    ask(&v, &s, NULL);
    assert_int_equal(v.status, EW_STATUS_OK);
    assert_string_equal(v.result, "\"5000001\"");
    visit_free(&v);
    shop_done(&s);
    free(big);
}

/* ---- streams ---- */

static void stream(void **state) {
    shop s;
    visit v = {.has_input = true, .chunks = true};
    (void)state;
    shop_init(&s,
              &(ew_exec_options){
                  .argv = SHELL("while read x; do echo \"{\\\"chunk\\\":$x}\"; done; echo '{\"result\":\"end\"}'")});
    visit_open(&v, &s, "0");
    assert_int_equal(ew__call_input(v.call, EW_STR("1")), EW_OK); /* before it runs */
    run_until(&s.w, &v.n_chunks, 2);
    assert_int_equal(ew__call_input(v.call, EW_STR("[2,\n3]")), EW_OK);
    run_until(&s.w, &v.n_chunks, 3);
    run_ms(&s.w, 50);
    assert_int_equal(v.n_ends, 0);
    ew__call_input_end(v.call);
    visit_wait(&v);
    assert_string_equal(v.said, "0\n1\n[2,3]\n");
    assert_string_equal(v.result, "\"end\"");
    visit_free(&v);
    shop_done(&s);
}

/* All of the stream comes while the call waits for a process. */
static void stream_that_waits(void **state) {
    shop s;
    visit on = {0}, v = {.has_input = true}, open_end = {.has_input = true}, gone = {.has_input = true};
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = SHELL("read x; echo $x; test $x = 9 && sleep 600; cat"), .processes = 1});
    on.chunks = true;
    visit_open(&on, &s, "9");
    visit_open(&v, &s, "[0]");
    visit_open(&gone, &s, "[0]");
    visit_open(&open_end, &s, "[0]");
    assert_int_equal(ew__call_input(v.call, EW_STR("1")), EW_OK);
    assert_int_equal(ew__call_input(v.call, EW_STR("2")), EW_OK);
    assert_int_equal(ew__call_input(gone.call, EW_STR("1")), EW_OK);
    ew__call_input_end(v.call);
    ew__call_input_end(open_end.call);
    run_until(&s.w, &on.n_chunks, 1);
    ew__call_cancel(on.call, EW__CANCEL_ASKED);
    ew__call_cancel(gone.call, EW__CANCEL_ASKED);
    visit_wait(&v);
    assert_string_equal(v.result, "\"[0]\\n1\\n2\"");
    visit_wait(&open_end);
    assert_string_equal(open_end.result, "\"[0]\"");
    visit_free(&on);
    visit_free(&v);
    visit_free(&gone);
    visit_free(&open_end);
    shop_done(&s);
}

/* Reads as soon as it may: when there is a file of that name. */
static const char *const late_reader = "while ! test -e $GO; do sleep 0.02; done; wc -c";

/* 10 MB through a program that begins to read late: the sender is told to wait, and when to go on. */
static void flow(shop *s, visit *v, const char *go) {
    char chunk[10001];
    unsigned n_full = 0;
    memset(chunk, 'x', sizeof chunk);
    chunk[0] = chunk[10000] = '"';
    for (unsigned n_sent = 0; n_sent < 1000; n_sent++) {
        ew_err err = ew__call_input(v->call, ew__str(chunk, sizeof chunk));
        if (err != EW_FULL) {
            assert_int_equal(err, EW_OK);
            continue;
        }
        if (n_full++ == 0) {
            run_ms(&s->w, 100);
            assert_int_equal(v->n_rooms, 0); /* it waits as long as nobody reads */
            assert_true((uint64_t)n_sent * sizeof chunk < 2 * s->w.limits.out_high_bytes);
            close(open(go, O_CREAT | O_WRONLY, 0600));
        }
        run_until(&s->w, &v->n_rooms, n_full);
    }
    assert_true(n_full > 0);
    ew__call_input_end(v->call);
    visit_wait(v);
    assert_int_equal(v->status, EW_STATUS_OK);
    assert_string_equal(v->result, "\"10002005\"");
}

/* waits: another call has the process when the stream comes. */
static void flow_through(bool waits) {
    char variable[64], *go = variable + 3;
    const char *const environment[] = {variable, NULL};
    shop s;
    visit on = {0}, v = {.has_input = true};
    (void)snprintf(variable, sizeof variable, "GO=/tmp/ew-test-exec-go-%d", (int)getpid());
    (void)unlink(go);
    shop_init(&s, &(ew_exec_options){.argv = SHELL(late_reader), .environment = environment, .processes = 1});
    if (waits)
        visit_open(&on, &s, NULL);
    visit_open(&v, &s, NULL);
    assert_int_equal(s.exec->n_waiting, waits);
    flow(&s, &v, go);
    if (waits)
        visit_wait(&on);
    (void)unlink(go);
    visit_free(&on);
    visit_free(&v);
    shop_done(&s);
}

static void back_pressure(void **state) {
    (void)state;
    flow_through(false);
}

static void back_pressure_while_waiting(void **state) {
    (void)state;
    flow_through(true);
}

/* A sender that does not wait loses its call, not our memory. */
static void sender_that_does_not_wait(void **state) {
    char chunk[10001];
    ew_err err = EW_OK;
    shop s;
    visit v = {.has_input = true};
    (void)state;
    memset(chunk, 'x', sizeof chunk);
    chunk[0] = chunk[10000] = '"';
    memset(&s, 0, sizeof s);
    world_init(&s.w);
    s.w.limits.out_max_bytes = 1 << 20;
    shop_open(&s, &(ew_exec_options){.argv = SHELL("sleep 600")});
    visit_open(&v, &s, NULL);
    for (unsigned n = 0; n < 1000 && err >= 0; n++)
        err = ew__call_input(v.call, ew__str(chunk, sizeof chunk));
    assert_int_equal(err, EW_ELIMIT);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_RESOURCE_EXHAUSTED);
    run_until_idle(&s);
    assert_no_children();
    visit_free(&v);
    shop_done(&s);
}

/* SIGPIPE has its default action here. */
static void stream_that_nobody_reads(void **state) {
    char chunk[10001];
    shop s;
    visit v = {.has_input = true, .chunks = true};
    (void)state;
    memset(chunk, 'x', sizeof chunk);
    chunk[0] = chunk[10000] = '"';
    shop_init(&s, &(ew_exec_options){.argv = SHELL("exec <&-; echo on; sleep 2; exit 0")});
    visit_open(&v, &s, NULL);
    run_until(&s.w, &v.n_chunks, 1);
    for (unsigned n = 0; n < 30; n++) {
        assert_true(ew__call_input(v.call, ew__str(chunk, sizeof chunk)) >= 0);
        run_ms(&s.w, 1);
    }
    ew__call_input_end(v.call);
    visit_wait(&v);
    assert_int_equal(v.status, EW_STATUS_OK);
    visit_free(&v);
    shop_done(&s);
}

/* ---- what is nasty anywhere else ---- */

static void nasty(void **state) {
    static const char *const inputs[] = {
        "\"$(touch /tmp/ew-pwned)\"",
        "\"`reboot`\"",
        "\"; rm -rf ~ #\"",
        "\"' OR 1=1 -- \"",
        "\"%s%s%s%n%d%x\"",
        "\"-rf\"",
        "\"--help\"",
        "\"../../../../etc/passwd\\u0000.png\"",
        "\"\\u0000\"",
        "\"\\r\\n{\\\"result\\\":\\\"mine\\\"}\\r\\n\"",
        "\"\\u202e\\u200b\\ufeff\"",
        "\"\xf0\x9f\x92\xa9 \xe7\x94\xb0\xe4\xb8\xad \xcc\xb6Z\xcc\xa1\xcc\xa8\"",
        "\"${IFS}&&|<>*?[]!{}~^()\\\\\\\"'\"",
        "\"${jndi:ldap://127.0.0.1/a}\"",
        "\"<script>alert(1)</script>\"",
        "\"() { :; }; echo vulnerable\"",
        "{\"__proto__\":{\"x\":1},\"\":\"\"}",
        "{\"result\":1}",
        "{\"error\":\"x\"}",
        "-1e999",
        "[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]",
    };
    /* answers with its arguments and with what it has read, as bytes in hex */
    static const char *const argv[] = {"python3",
                                       "-c",
                                       "import sys, json\n"
                                       "data = sys.stdin.buffer.read()\n"
                                       "print(json.dumps({'result': [sys.argv[1:], data.hex()]}))\n",
                                       "$HOME",
                                       "; exit 9",
                                       "",
                                       "*",
                                       "two words\n",
                                       NULL};
    shop s;
    (void)state;
    shop_init(&s, &(ew_exec_options){.argv = argv});
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        char want[1024] = "[[\"$HOME\", \"; exit 9\", \"\", \"*\", \"two words\\n\"], \"";
        size_t n = strlen(want);
        for (const char *at = inputs[i]; *at; at++, n += 2)
            ew__hex((const uint8_t *)at, 1, want + n);
        memcpy(want + n, "0a\"]", 5);
        assert_answer(&s, inputs[i], want);
    }
    assert_int_equal(access("/tmp/ew-pwned", F_OK), -1);
    shop_done(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line),
        cmocka_unit_test(unread),
        cmocka_unit_test(read_late),
        cmocka_unit_test(stream),
        cmocka_unit_test(stream_that_waits),
        cmocka_unit_test(back_pressure),
        cmocka_unit_test(back_pressure_while_waiting),
        cmocka_unit_test(sender_that_does_not_wait),
        cmocka_unit_test(stream_that_nobody_reads),
        cmocka_unit_test(nasty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
