/*
 * tests/unit/compat_rrq/test_toml.c: TOML to a tree: what stands where, what is refused and at which place, limits, memory that
 * fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "compat/rrq/toml.h"
#include "support/fail_env.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- what a text becomes ---- */

typedef struct tree {
    ew__test_env env;
    ew__arena arena;
    ew__problems problems;
    ew__node *root;
    ew_err err;
    char said[4096]; /* the problems, "LINE:COLUMN: MESSAGE\n" each */
} tree;

static void tree_read(tree *t, ew_str toml) {
    ew__test_env_init(&t->env, 1);
    ew__arena_init(&t->arena, &t->env.env, NULL, 0);
    ew__problems_init(&t->problems, &t->arena);
    t->err = ew__toml_read(&t->arena, toml, &t->problems, &t->root);
    ew__problems_sort(&t->problems);
    size_t n = 0;
    t->said[0] = 0;
    for (size_t i = 0; i < t->problems.n && n < sizeof t->said; i++) {
        const ew__problem *p = &t->problems.list[i];
        n += (size_t)snprintf(t->said + n, sizeof t->said - n, "%u:%u: %s\n", p->line, p->column, p->message);
    }
}

static void tree_done(tree *t) {
    ew__arena_done(&t->arena);
    assert_int_equal(ew__test_env_live_blocks(&t->env), 0);
}

/* The tree in one line: texts with ' around them unless they are plain, and, if asked for, their places. */
static void describe(const ew__node *node, ew__buf *out, bool places) {
    bool map = node->kind == EW__NODE_MAP;
    if (node->kind == EW__NODE_TEXT) {
        const char *mark = node->plain ? "" : "'";
        (void)ew__buf_printf(out, "%s%.*s%s", mark, (int)node->text.len, node->text.ptr, mark);
    } else {
        (void)ew__buf_printf(out, "%c", map ? '{' : '[');
        for (const ew__node *item = node->first; item; item = item->next) {
            (void)ew__buf_cstr(out, item == node->first ? "" : " ");
            if (map) {
                (void)ew__buf_printf(out, "%.*s=", (int)item->key->text.len, item->key->text.ptr);
            }
            describe(item, out, places);
        }
        (void)ew__buf_printf(out, "%c", map ? '}' : ']');
    }
    if (places) {
        (void)ew__buf_printf(out, "@%u:%u", node->line, node->column);
    }
}

static void expect(const char *toml, const char *expected, bool places) {
    tree t;
    ew__buf out;
    tree_read(&t, ew_str_from(toml));
    assert_string_equal(t.said, "");
    assert_int_equal(t.err, EW_OK);
    ew__buf_init(&out, &t.env.env, 1 << 20);
    describe(t.root, &out, places);
    (void)ew__buf_char(&out, 0);
    assert_string_equal(out.ptr, expected);
    ew__buf_done(&out);
    tree_done(&t);
}

static void expect_tree(const char *toml, const char *expected) { expect(toml, expected, false); }

static void expect_problems(const char *toml, ew_err err, const char *expected) {
    tree t;
    tree_read(&t, ew_str_from(toml));
    assert_string_equal(t.said, expected);
    assert_int_equal(t.err, err);
    assert_true((t.root != NULL) == (err == EW_OK));
    tree_done(&t);
}

/* One value, which must be refused. */
static void expect_bad_value(const char *value) {
    char text[256];
    tree t;
    (void)snprintf(text, sizeof text, "a = %s\n", value);
    tree_read(&t, ew_str_from(text));
    if (t.err != EW_ESYNTAX || t.problems.n != 1 || t.problems.list[0].line == 0) {
        fail_msg("%s: %d %s", text, (int)t.err, t.said);
    }
    tree_done(&t);
}

static void becomes(const char *value, const char *expected) {
    char text[256], tree_text[256];
    (void)snprintf(text, sizeof text, "a = %s\n", value);
    (void)snprintf(tree_text, sizeof tree_text, "{a=%s}", expected);
    expect_tree(text, tree_text);
}

/* ---- reading ---- */

static void test_toml__tables(void **state) {
    (void)state;
    expect_tree("", "{}");
    expect_tree("# nothing\n\n", "{}");
    expect_tree("a = 1\nb = 'x'", "{a=1 b='x'}");
    expect_tree("a = 1\r\nb = 2\r\n", "{a=1 b=2}");
    expect_tree("\xef\xbb\xbf"
                "a=1",
                "{a=1}");
    expect_tree("[a]\nx=1\n[b.c]\ny=2\n[b]\nz=3\n", "{a={x=1} b={c={y=2} z=3}}");
    expect_tree("[ a . 'b c' . \"d\" ]\nx=1\n", "{a={b c={d={x=1}}}}");
    expect_tree("a.b.c = 1\na.b.d = 2\na.e = 3\n", "{a={b={c=1 d=2} e=3}}");
    expect_tree("\"\" = 1\n'k \"x\"' = 2\n-_9 = 3\n1.2 = 4\n", "{=1 k \"x\"=2 -_9=3 1={2=4}}");
    expect_tree("[[r]]\nn=1\n[[r]]\nn=2\n[r.s]\nm=3\n[[r.t]]\nk=4\n[[r.t]]\n",
                "{r=[{n=1} {n=2 s={m=3} t=[{k=4} {}]}]}");
    expect_tree("[a]\nb.c=1\n[a.b.d]\ne=2\n", "{a={b={c=1 d={e=2}}}}");
    expect_tree("[a.b.c]\nx=1\n[a]\nb.y=2\n", "{a={b={c={x=1} y=2}}}");
}

static void test_toml__values(void **state) {
    (void)state;
    becomes("[1, 2,\n 3, # three\n]", "[1 2 3]");
    becomes("[]", "[]");
    becomes("[[1],['a'],{}]", "[[1] ['a'] {}]");
    becomes("{ b = 1, c.d = 2, \"e\" = { f = [ ] } }", "{b=1 c={d=2} e={f=[]}}");
    becomes("{}", "{}");
    becomes("true", "true");
    becomes("false # no", "false");
    expect_tree("a = \"\"\"x\"\"\"\nb = 1\n", "{a='x' b=1}");
}

static void test_toml__strings(void **state) {
    (void)state;
    becomes("\"a\\tb\\\\c\\\"d\\u00e4\\U0001F600\"", "'a\tb\\c\"d\xc3\xa4\xf0\x9f\x98\x80'");
    becomes("'C:\\x\\y'", "'C:\\x\\y'");
    becomes("\"\"", "''");
    becomes("''", "''");
    becomes("\"\"\"\none\ntwo\"\"\"", "'one\ntwo'");
    becomes("\"\"\"\r\none\r\ntwo\"\"\"", "'one\ntwo'");
    becomes("\"\"\"a \\\n\n   b\"\"\"", "'a b'");
    becomes("\"\"\"a \\  \n  b\"\"\"", "'a b'");
    becomes("\"\"\"\"q\"\"\"\"\"", "'\"q\"\"'");
    becomes("'''\n\\n '' x'''''", "'\\n '' x'''");
    becomes("\"# no comment\"", "'# no comment'");
}

static void test_toml__numbers(void **state) {
    (void)state;
    becomes("+99", "99");
    becomes("-17", "-17");
    becomes("1_000_000", "1000000");
    becomes("0xDEAD_beef", "3735928559");
    becomes("0o755", "493");
    becomes("0b1101", "13");
    becomes("0", "0");
    becomes("-0", "-0");
    becomes("9223372036854775807", "9223372036854775807");
    becomes("-9223372036854775808", "-9223372036854775808");
    becomes("0x7fffffffffffffff", "9223372036854775807");
    becomes("3.14_15", "3.1415");
    becomes("-0.01", "-0.01");
    becomes("5e+2_2", "5e+22");
    becomes("6.6E-34", "6.6e-34");
    becomes("inf", ".inf");
    becomes("-inf", "-.inf");
    becomes("+nan", ".nan");
}

static void test_toml__dates(void **state) {
    (void)state;
    static const char *const dates[] = {
        "1979-05-27T07:32:00Z",
        "1979-05-27T00:32:00.999999-07:00",
        "1979-05-27 07:32:00z",
        "1979-05-27t07:32:00",
        "1979-05-27 07:32:60",
        "2024-02-29",
        "07:32:00",
        "00:32:00.5",
    };
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "'%s'", dates[i]);
        becomes(dates[i], expected);
    }
    expect_tree("a = 1979-05-27 # day\nb = [07:32:00,1979-05-27 07:32:00]",
                "{a='1979-05-27' b=['07:32:00' '1979-05-27 07:32:00']}");
}

static void test_toml__places(void **state) {
    (void)state;
    expect("a = 1\n\n[b]\n  c = [ 2,\n    'x' ]\n[[d.e]]\n",
           "{a=1@1:5 b={c=[2@4:9 'x'@5:5]@4:7}@3:2 d={e=[{}@6:5]@6:5}@6:3}@1:1", true);
    expect("'\xc3\xa4' = \"\xe2\x82\xac\" # \xc3\xa4\nb = { c = 1 }",
           "{\xc3\xa4='\xe2\x82\xac'@1:7 b={c=1@2:11}@2:5}@1:1", true);
    expect("a = \"\"\"\nx\n\"\"\"\nb = 1", "{a='x\n'@1:5 b=1@4:5}@1:1", true);
}

/* ---- what is refused ---- */

static const char *const bad_values[] = {
    "",
    "x",
    "True",
    "01",
    "1__0",
    "_1",
    "1_",
    "+0x1",
    "0x",
    "0xg",
    "0x_1",
    "0x1_",
    "0x1__2",
    "0b2",
    "0o8",
    "1.",
    ".5",
    "1.e1",
    "1e",
    "1e_1",
    "1_.5",
    "1._5",
    "00.5",
    "9223372036854775808",
    "-9223372036854775809",
    "0x8000000000000000",
    "infinity",
    "--1",
    "1 2",
    "1979-13-01",
    "1979-02-29",
    "1979-05-32",
    "1979-5-27",
    "25:00:00",
    "12:60:00",
    "12:00:61",
    "12:00",
    "12:00:00.",
    "12:00:00Z",
    "1979-05-27T",
    "1979-05-27T07:32",
    "1979-05-27T07:32:00+1",
    "1979-05-27T07:32:00+25:00",
    "\"a",
    "'a",
    "\"a\nb\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\ud800\"",
    "\"\\U00110000\"",
    "\"a\tb\x01\"",
    "\"\x7f\"",
    "\"\"\"a",
    "'''a''",
    "\"\"\"\\ x\"\"\"",
    "[1",
    "[1 2]",
    "[,]",
    "[1,,2]",
    "{a=1",
    "{a=1,}",
    "{,}",
    "{a=1\n}",
    "{a}",
    "{a=1 b=2}",
    "1 # \x01",
    "'\xc3'",
    "\"\"\"\"\"\"\"\"\"",
};

static void test_toml__bad_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_values / sizeof *bad_values; i++) {
        expect_bad_value(bad_values[i]);
    }
}

static void test_toml__bad_lines(void **state) {
    (void)state;
    expect_problems("a\n", EW_ESYNTAX, "1:2: an = is missing behind the key\n");
    expect_problems("= 1\n", EW_ESYNTAX, "1:1: a key is missing: letters, digits, _ and -, or in quotes\n");
    expect_problems("a = 1 b = 2\n", EW_ESYNTAX, "1:7: the line should end here\n");
    expect_problems("a. = 1\n", EW_ESYNTAX, "1:4: a key is missing: letters, digits, _ and -, or in quotes\n");
    expect_problems("[a\n", EW_ESYNTAX, "1:3: the name of a table ends with ]\n");
    expect_problems("[[a]\n", EW_ESYNTAX, "1:4: the name of a table ends with ]]\n");
    expect_problems("[]\n", EW_ESYNTAX, "1:2: a key is missing: letters, digits, _ and -, or in quotes\n");
    expect_problems("\n\"\"\"a\"\"\" = 1", EW_ESYNTAX, "2:1: a key goes over one line only\n");
    expect_problems("a = 1\rb = 2", EW_ESYNTAX, "1:6: the line should end here\n");
    expect_problems("a = [1,\n", EW_ESYNTAX, "2:1: the list that begins in line 1 does not end\n");
    expect_problems("a = 'x'\nb = \xff", EW_ESYNTAX, "2:5: not text in UTF-8\n");
    expect_problems("a = '\xed\xa0\x80'", EW_ESYNTAX, "1:6: not text in UTF-8\n");
    expect_problems("\xc3\xa4 = 1", EW_ESYNTAX, "1:1: a key is missing: letters, digits, _ and -, or in quotes\n");
}

static void test_toml__nul(void **state) {
    (void)state;
    tree t;
    tree_read(&t, EW_STR("a = 1\nb = '\0'"));
    assert_int_equal(t.err, EW_ESYNTAX);
    assert_string_equal(t.said, "2:6: not text in UTF-8\n");
    tree_done(&t);
}

/* These are problems, and the reading goes on. */
static void test_toml__repeated(void **state) {
    (void)state;
    expect_problems(
        "a = 1\na = 2\nb = 1\nb = 2\n", EW_OK,
        "2:1: the key a is repeated; it is in line 1 already\n4:1: the key b is repeated; it is in line 3 already\n");
    expect_problems("[a]\n[a]\nx = 1\n", EW_OK, "2:2: the key a is repeated; it is in line 1 already\n");
    expect_problems("a = 1\n[a]\n", EW_OK, "2:2: the key a is repeated; it is in line 1 already\n");
    expect_problems("a = 1\n[a.b]\n", EW_OK, "2:2: a is in line 1 already, and cannot be added to here\n");
    expect_problems("a = { b = 1 }\na.c = 2\n", EW_OK, "2:1: a is in line 1 already, and cannot be added to here\n");
    expect_problems("a = { b.c = 1 }\n[a.b.d]\n", EW_OK, "2:2: a is in line 1 already, and cannot be added to here\n");
    expect_problems("a = [{}]\n[[a]]\n", EW_OK, "2:3: the key a is repeated; it is in line 1 already\n");
    expect_problems("[[a]]\n[a]\n", EW_OK, "2:2: the key a is repeated; it is in line 1 already\n");
    expect_problems("[a]\nb.c = 1\n[a.b]\n", EW_OK, "3:4: the key b is repeated; it is in line 2 already\n");
    expect_problems("[a.b.c]\nz = 9\n[a]\nb.c.t = 1\n", EW_OK,
                    "4:3: c is in line 1 already, and cannot be added to here\n");
    expect_problems("a.b = 1\n[a]\n", EW_OK, "2:2: the key a is repeated; it is in line 1 already\n");
    expect_problems("a = { b = 1, b = 2 }\n", EW_OK, "1:14: the key b is repeated; it is in line 1 already\n");
    expect_problems("a.b = 1\na.b.c = 2\n", EW_OK, "2:3: b is in line 1 already, and cannot be added to here\n");
}

/* ---- limits ---- */

static void repeat(char *out, const char *what, size_t n) {
    size_t len = strlen(what);
    for (size_t i = 0; i < n; i++) {
        memcpy(out + i * len, what, len);
    }
    out[n * len] = 0;
}

static void test_toml__depth(void **state) {
    (void)state;
    char text[4096] = "a = ";
    repeat(text + 4, "[", EW__CONFIG_DEPTH);
    expect_problems(text, EW_ESYNTAX, "1:36: lists and tables are more than 32 levels deep\n");
    repeat(text, "a.", EW__CONFIG_DEPTH);
    memcpy(text + 2 * EW__CONFIG_DEPTH, "a=1", 4);
    expect_problems(text, EW_ESYNTAX, "1:63: lists and tables are more than 32 levels deep\n");
    text[0] = '[';
    repeat(text + 1, "a.", EW__CONFIG_DEPTH);
    memcpy(text + 1 + 2 * EW__CONFIG_DEPTH, "a]", 3);
    expect_problems(text, EW_ESYNTAX, "1:64: lists and tables are more than 32 levels deep\n");
    memcpy(text, "a = ", 5);
    repeat(text + 4, "[", EW__CONFIG_DEPTH - 1);
    repeat(text + 3 + EW__CONFIG_DEPTH, "]", EW__CONFIG_DEPTH - 1);
    tree t;
    tree_read(&t, ew_str_from(text));
    assert_int_equal(t.err, EW_OK);
    tree_done(&t);
}

static void test_toml__size(void **state) {
    (void)state;
    size_t n = EW__CONFIG_BYTES + 1;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, '\n', n);
    tree t;
    tree_read(&t, ew__str(text, n));
    assert_string_equal(t.said, "0:0: larger than 1048576 bytes\n");
    assert_int_equal(t.err, EW_ESYNTAX);
    tree_done(&t);
    memcpy(text, "a=[", 3);
    for (size_t i = 3; i + 1 < n; i += 2) {
        memcpy(text + i, "1,", 2);
    }
    tree_read(&t, ew__str(text, n - 1));
    assert_int_equal(t.err, EW_ESYNTAX);
    assert_int_equal(t.problems.n, 1);
    assert_string_equal(t.problems.list[0].message, "more than 100000 values");
    tree_done(&t);
    free(text);
}

/* Many keys of one table, one of them twice. */
static void test_toml__many(void **state) {
    (void)state;
    size_t n = 0, size = 400000;
    char *text = malloc(size);
    assert_non_null(text);
    for (unsigned i = 0; i < 30000; i++) {
        n += (size_t)snprintf(text + n, size - n, "k%u=1\n", i);
    }
    n += (size_t)snprintf(text + n, size - n, "k7=2\n");
    tree t;
    tree_read(&t, ew__str(text, n));
    assert_string_equal(t.said, "30001:1: the key k7 is repeated; it is in line 8 already\n");
    assert_int_equal(t.err, EW_OK);
    assert_int_equal(t.root->n, 30000);
    assert_non_null(ew__node_get(t.root, "k29999"));
    tree_done(&t);
    free(text);
}

static void test_toml__no_memory(void **state) {
    (void)state;
    static const char text[] =
        "a = 'x'\nb.c = [1, 2.5, { d = \"\\u00e4\" }]\n[t]\nk1=1\nk2=1\nk3=1\nk4=1\nk5=1\nk6=1\nk7=1\nk8=1\n"
        "k9=1\nk10=1\nk11=1\nk12=1\nk13=1\nk14=1\nk15=1\nk16=1\nk17=1\nk18=1\n[[l]]\nx='''y'''\n";
    for (unsigned n = 1; n < 1000; n++) {
        ew__test_env env;
        ew__arena arena;
        ew__problems problems;
        ew__node *root;
        ew__test_env_init(&env, 1);
        ew__arena_init(&arena, &env.env, NULL, 0);
        ew__problems_init(&problems, &arena);
        ew__test_env_fail_at(&env, n, true);
        ew_err err = ew__toml_read(&arena, EW_STR(text), &problems, &root);
        ew__arena_done(&arena);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        if (err == EW_OK) {
            assert_true(n > 3);
            return;
        }
        assert_int_equal(err, EW_ENOMEM);
        assert_null(root);
    }
    fail_msg("it never had enough");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toml__tables),     cmocka_unit_test(test_toml__values),
        cmocka_unit_test(test_toml__strings),    cmocka_unit_test(test_toml__numbers),
        cmocka_unit_test(test_toml__dates),      cmocka_unit_test(test_toml__places),
        cmocka_unit_test(test_toml__bad_values), cmocka_unit_test(test_toml__bad_lines),
        cmocka_unit_test(test_toml__nul),        cmocka_unit_test(test_toml__repeated),
        cmocka_unit_test(test_toml__depth),      cmocka_unit_test(test_toml__size),
        cmocka_unit_test(test_toml__many),       cmocka_unit_test(test_toml__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
