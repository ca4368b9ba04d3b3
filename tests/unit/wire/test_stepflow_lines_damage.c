/*
 * tests/unit/wire/test_stepflow_lines_damage.c: component servers that print on their standard output what does not
 * belong there, or lose a part of what does.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_lines_world.h"

static void test_wire_stepflow_lines__prints(void **state) {
    (void)state;
    static const char *const lines[] = {
        "starting\xff up",
        "",
        "42",
        "'a text'",
        "null",
        "[]",
        "{}",
        "{'level':'info'}",
        "{'a':1}}",
        "Traceback {",
        "{broken",
        "replied {'id':$1,'result':{'out", /* what does not begin like a message says nothing */
    };
    enum { N = sizeof lines / sizeof *lines };
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        lines_with(&w, RIG_SERVER, (rig_options){.split = (rig_split)split});
        rig_call *a = call_plain(&w, "/a", "1");
        shake_hands(&w, false);
        hear_execute(&w, 1, "/a", "1");
        for (size_t i = 0; i < N; i++)
            say(&w, lines[i]);
        hear_nothing(&w);
        check_runs(a);
        say(&w, OUTPUT("$1", "1"));
        check_done(a, "1");
        a = call_plain(&w, "/a", "1");
        rig_forget(w.pair, heard_so_far(&w).len);
        for (size_t i = 0; i < 200 && !world_over(&w); i++) {
            check_runs(a);
            say(&w, lines[i % N]);
        }
        assert_true(world_over(&w)); /* enough is enough */
        check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "the peer sent something that is no JSON-RPC");
        world_done(&w);
    }
}

#define DAMAGED "the server's answer came damaged"

/* A Python server whose pipe was full: half of an answer, and the next one on the same line. */
static void test_wire_stepflow_lines__cut_answer(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        for (int small = 0; small < 2; small++) {
            world w;
            lines_with(&w, RIG_SERVER, (rig_options){.split = (rig_split)split});
            rig_call *a = call_plain(&w, "/a", "1"), *b = call_plain(&w, "/b", "1"), *c = call_plain(&w, "/c", "1");
            shake_hands(&w, false);
            hear_execute(&w, 1, "/a", "1");
            hear_execute(&w, 2, "/b", "1");
            hear_execute(&w, 3, "/c", "1");
            say_much(&w, "{'id':$1,'result':{'output':'", small ? 10 : 65536);
            check_runs(a);
            say(&w, "{'id':$2,'result':{'output':'b'},'jsonrpc':'2.0'}");
            check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, DAMAGED);
            check_done(b, "\"b\"");
            say(&w, "{'id':$3,'result':{'output':'c'},'jsonrpc':'2.0'}");
            check_done(c, "\"c\"");
            world_done(&w);
        }
    }
}

/* ... or the same again from its first byte, as often as it takes. */
static void test_wire_stepflow_lines__doubled_answer(void **state) {
    (void)state;
    world w;
    rig_call *a = call_known(&w, false);
    say_much(&w, "{'id':$1,'result':{'output':'", 65536);
    say_much(&w, "{'id':$1,'result':{'output':'", 70000);
    say(&w, "{'id':$1,'result':{'output':'whole'},'jsonrpc':'2.0'} ");
    check_done(a, "\"whole\"");
    a = call_plain(&w, "/a", "1");
    rig_call *b = call_plain(&w, "/b", "1");
    hear_execute(&w, 1, "/a", "1");
    hear_execute(&w, 2, "/b", "1");
    say_much(&w, RPC "'id' : $2 , 'result':{'output':'", 65536);
    say_much(&w, RPC "'id':$1,'result':{'output':'", 65536);
    say(&w, "");
    check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, DAMAGED);
    check_failed(b, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, DAMAGED);
    hear_nothing(&w);
    world_done(&w);
    lines_call(&w);
    (void)call_plain(&w, "/a", "1");
    hear_request(&w, 9, "initialize");
    say(&w, "{'id':$9,'result':{'server_pro{'id':$9,'result':{'server_protocol_version':1},'jsonrpc':'2.0'}");
    hear_line(&w, INITIALIZED);
    hear_execute(&w, 1, "/a", "1");
    world_done(&w);
}

/* Each bad line is looked at for itself, also when others come with it; a string that was cut goes on over lines. */
static void test_wire_stepflow_lines__damage_in_a_row(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        lines_with(&w, RIG_SERVER, (rig_options){.split = (rig_split)split});
        rig_call *a = call_plain(&w, "/a", "1"), *b = call_plain(&w, "/b", "1"), *c = call_plain(&w, "/c", "1");
        shake_hands(&w, false);
        hear_execute(&w, 1, "/a", "1");
        hear_execute(&w, 2, "/b", "1");
        hear_execute(&w, 3, "/c", "1");
        say(&w, "{broken text\n{'id':$1,'result':{'outp{'id':$2,'result':{'output':'b'}}\n{'log':'cut\n"
                "{'id':$3,'result':{'output':'c'}}");
        check_failed(a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, DAMAGED);
        check_done(b, "\"b\"");
        check_done(c, "\"c\"");
        world_done(&w);
    }
}

/* A print that has left its line open; one that shows a message: only an answer counts. */
static void test_wire_stepflow_lines__open_print(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        lines_with(&w, RIG_SERVER, (rig_options){.split = (rig_split)split});
        rig_call *a = call_plain(&w, "/a", "1"), *b = call_plain(&w, "/b", "1");
        shake_hands(&w, false);
        hear_execute(&w, 1, "/a", "1");
        hear_execute(&w, 2, "/b", "1");
        say(&w, "got: " EXECUTE("$1", "/a", "1"));
        say(&w, "first " OUTPUT("$1", "1") " then " OUTPUT("$2", "2") " \r");
        check_runs(a);
        check_done(b, "2");
        say(&w, "..." OUTPUT("$1", "1"));
        check_done(a, "1");
        hear_nothing(&w);
        world_done(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_lines__prints),
        cmocka_unit_test(test_wire_stepflow_lines__cut_answer),
        cmocka_unit_test(test_wire_stepflow_lines__doubled_answer),
        cmocka_unit_test(test_wire_stepflow_lines__damage_in_a_row),
        cmocka_unit_test(test_wire_stepflow_lines__open_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
