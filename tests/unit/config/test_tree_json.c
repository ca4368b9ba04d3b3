/*
 * tests/unit/config/test_tree_json.c: YAML values as JSON text: what plain texts stand for, every digit, and what JSON
 * cannot say; and the text that two values share only if they say the same.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "config/tree.h"
#include "support/fail_env.h"
#include <everywire/json.h>
#include <stdio.h>

static const char *no_variable(void *ud, const char *name) {
    (void)ud;
    (void)name;
    return NULL;
}

typedef struct tree {
    ew__test_env env;
    ew__arena arena;
    ew__problems problems;
    ew__node *root;
    ew__buf out;
} tree;

static void tree_read(tree *t, const char *yaml) {
    ew__test_env_init(&t->env, 1);
    ew__arena_init(&t->arena, &t->env.env, NULL, 0);
    ew__problems_init(&t->problems, &t->arena);
    ew__buf_init(&t->out, &t->env.env, 1 << 20);
    assert_int_equal(ew__tree_read(&t->arena, ew_str_from(yaml), no_variable, NULL, &t->problems, &t->root), EW_OK);
}

static void tree_done(tree *t) {
    ew__buf_done(&t->out);
    ew__arena_done(&t->arena);
    assert_int_equal(ew__test_env_live_blocks(&t->env), 0);
}

static void expect(const char *yaml, const char *json) {
    tree t;
    tree_read(&t, yaml);
    assert_int_equal(ew__node_json(t.root, &t.out, &t.problems), EW_OK);
    assert_int_equal(ew_json_check(ew__buf_view(&t.out), NULL), EW_OK);
    (void)ew__buf_char(&t.out, 0);
    assert_string_equal(t.out.ptr, json);
    assert_int_equal(t.problems.n, 0);
    tree_done(&t);
}

static void expect_problem(const char *yaml, unsigned line, unsigned column, const char *message) {
    tree t;
    tree_read(&t, yaml);
    assert_int_equal(ew__node_json(t.root, &t.out, &t.problems), EW_ESYNTAX);
    assert_true(t.problems.n > 0);
    assert_int_equal(t.problems.list[0].line, line);
    assert_int_equal(t.problems.list[0].column, column);
    assert_string_equal(t.problems.list[0].message, message);
    tree_done(&t);
}

static void test_config_json__values(void **state) {
    (void)state;
    expect("[null, ~, Null, NULL, nUll, '', \"null\"]", "[null,null,null,null,\"nUll\",\"\",\"null\"]");
    expect("[true, True, TRUE, false, tRue, 'true', yes, no, on, off, y, n]",
           "[true,true,true,false,\"tRue\",\"true\",\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\"]");
    expect("a:\nb: {}\nc: []\nd:\n- e\n- f: g\n", "{\"a\":null,\"b\":{},\"c\":[],\"d\":[\"e\",{\"f\":\"g\"}]}");
    expect("1: {2.5: x, true: y, '': z}", "{\"1\":{\"2.5\":\"x\",\"true\":\"y\",\"\":\"z\"}}");
    expect("text", "\"text\"");
    expect("2026-11-16", "\"2026-11-16\"");
    expect("12:30:45", "\"12:30:45\"");
    expect("0x1F-", "\"0x1F-\"");
}

static void test_config_json__numbers(void **state) {
    (void)state;
    expect("[0, -0, 7, -12, +3, 007, -00, 10]", "[0,-0,7,-12,3,7,-0,10]");
    expect("[123456789012345678901234567890, -9223372036854775809]",
           "[123456789012345678901234567890,-9223372036854775809]");
    expect("[1.0, 1.50, -.5, .25, 3., +1.e3, 1e5, 1E-7, 2.5e+10, 00.5]",
           "[1.0,1.50,-0.5,0.25,3.0,1.0e3,1e5,1e-7,2.5e+10,0.5]");
    expect("3.14159265358979323846264338327950288", "3.14159265358979323846264338327950288");
    expect("[0x1F, 0xffffffffffffffff, 0o17, 0o1777777777777777777777]",
           "[31,18446744073709551615,15,18446744073709551615]");
    expect(
        "[1e, 1.2.3, '1', 1_000, 0b1, 0x, 0o8, ., -, +, e5, 1 2, --1, 0xg]",
        "[\"1e\",\"1.2.3\",\"1\",\"1_000\",\"0b1\",\"0x\",\"0o8\",\".\",\"-\",\"+\",\"e5\",\"1 2\",\"--1\",\"0xg\"]");
    expect("- \"5\"\n- '1.5'\n- |-\n  7\n", "[\"5\",\"1.5\",\"7\"]");
}

static void test_config_json__strings(void **state) {
    (void)state;
    expect("\"a\\\"b\\\\c/d\\n\\t\\0\\x1f\"", "\"a\\\"b\\\\c/d\\n\\u0009\\u0000\\u001f\"");
    expect("\"\\u00e4 \\u20ac \\U0001F600\"", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    expect("'\"quoted\": \\'", "\"\\\"quoted\\\": \\\\\"");
    expect("|\n  one\n  two\n", "\"one\\ntwo\\n\"");
    expect("\"k\\n\": v", "{\"k\\n\":\"v\"}");
}

static void test_config_json__not_in_json(void **state) {
    (void)state;
    expect_problem(".inf", 1, 1, "JSON has no number .inf; quotes make a text of it");
    expect_problem("[-.INF, +.Inf, .nan]", 1, 2, "JSON has no number -.INF; quotes make a text of it");
    expect_problem("a: 1\nb: .NaN\n", 2, 4, "JSON has no number .NaN; quotes make a text of it");
    expect_problem("0x10000000000000000", 1, 1, "JSON has no number 0x10000000000000000; quotes make a text of it");
    expect("['.inf', -.nan, .infinity]", "[\".inf\",\"-.nan\",\".infinity\"]");
}

/* A value that had a problem before is none, and has no second one. */
static void test_config_json__bad_before(void **state) {
    (void)state;
    tree t;
    tree_read(&t, "[1, !!str 2, 3]");
    assert_int_equal(t.problems.n, 1);
    assert_int_equal(ew__node_json(t.root, &t.out, &t.problems), EW_ESYNTAX);
    assert_int_equal(t.problems.n, 1);
    tree_done(&t);
}

static void test_config_json__memory(void **state) {
    (void)state;
    tree t;
    tree_read(&t, "{a: [b, 'a long text that makes the buffer grow beyond its first piece, which is not large at all "
                  "but may be larger than one thinks at first', 1, true, null, 0x10]}");
    for (uint64_t n = 1;; n++) {
        ew__buf_done(&t.out);
        ew__test_env_fail_at(&t.env, n, false);
        ew_err err = ew__node_json(t.root, &t.out, &t.problems);
        bool failed = ew__test_env_failed(&t.env) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        t.out.err = EW_OK;
        if (!failed) {
            break;
        }
        assert_true(n < 50);
    }
    tree_done(&t);
}

/* ---- the same or not ---- */

static bool same(const char *a, const char *b) {
    tree x, y;
    tree_read(&x, a);
    tree_read(&y, b);
    assert_int_equal(ew__node_print(x.root, &x.out), EW_OK);
    assert_int_equal(ew__node_print(y.root, &y.out), EW_OK);
    bool is = ew__str_is(ew__buf_view(&x.out), ew__buf_view(&y.out));
    tree_done(&x);
    tree_done(&y);
    return is;
}

static void test_config_json__print(void **state) {
    (void)state;
    assert_true(same("a: [b, c]\n", "# new\n'a':\n  - b\n  - c\n") == false); /* a key in quotes is written otherwise */
    assert_true(same("a: [b, c]\n", "# new\na:\n  - b\n  - c\n"));
    assert_true(same("a: 'x'", "{a: \"x\"}"));
    assert_false(same("a: 5", "a: '5'"));
    assert_false(same("[a, b]", "[ab]"));
    assert_false(same("[[a], b]", "[[a, b]]"));
    assert_false(same("{a: b}", "[a, b]"));
    assert_false(same("{a: b}", "{a: c}"));
    assert_false(same("{a: b}", "{c: b}"));
    assert_false(same("'p1:a'", "a"));
    assert_false(same("[a]", "['a]']"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_json__values),     cmocka_unit_test(test_config_json__numbers),
        cmocka_unit_test(test_config_json__strings),    cmocka_unit_test(test_config_json__not_in_json),
        cmocka_unit_test(test_config_json__bad_before), cmocka_unit_test(test_config_json__memory),
        cmocka_unit_test(test_config_json__print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
