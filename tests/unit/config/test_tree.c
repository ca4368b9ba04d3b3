/*
 * tests/unit/config/test_tree.c: YAML to a tree: what stands where, what is refused and at which place, variables, limits,
 * memory that fails.
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
#include <stdio.h>
#include <stdlib.h>

/* ---- what a text becomes ---- */

typedef struct tree {
    ew__test_env env;
    ew__arena arena;
    ew__problems problems;
    ew__node *root;
    ew_err err;
    char said[8192]; /* the problems, "LINE:COLUMN: MESSAGE\n" each */
} tree;

static const char *variable(void *ud, const char *name) {
    (void)ud;
    return strcmp(name, "HOST") == 0    ? "127.0.0.1"
           : strcmp(name, "EMPTY") == 0 ? ""
           : strcmp(name, "LONG") == 0  ? getenv("EW_TEST_LONG")
                                        : NULL;
}

static void tree_read(tree *t, ew_str yaml) {
    ew__test_env_init(&t->env, 1);
    ew__arena_init(&t->arena, &t->env.env, NULL, 0);
    ew__problems_init(&t->problems, &t->arena);
    t->err = ew__tree_read(&t->arena, yaml, variable, NULL, &t->problems, &t->root);
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

/* The tree in one line: texts with ' around them if they had quotes, and their places. */
static void describe(const ew__node *node, ew__buf *out) {
    if (node->kind == EW__NODE_TEXT) {
        const char *mark = node->plain ? "" : "'";
        (void)ew__buf_printf(out, "%s%.*s%s@%u:%u", mark, (int)node->text.len, node->text.ptr, mark, node->line,
                             node->column);
        return;
    }
    bool map = node->kind == EW__NODE_MAP;
    (void)ew__buf_printf(out, "%c", map ? '{' : '[');
    for (const ew__node *item = node->first; item; item = item->next) {
        (void)ew__buf_cstr(out, item == node->first ? "" : " ");
        if (map) {
            (void)ew__buf_printf(out, "%.*s=", (int)item->key->text.len, item->key->text.ptr);
        }
        describe(item, out);
    }
    (void)ew__buf_printf(out, "%c@%u:%u", map ? '}' : ']', node->line, node->column);
}

static void expect_tree(const char *yaml, const char *expected) {
    tree t;
    ew__buf out;
    tree_read(&t, ew_str_from(yaml));
    assert_string_equal(t.said, "");
    assert_int_equal(t.err, EW_OK);
    ew__buf_init(&out, &t.env.env, 1 << 20);
    describe(t.root, &out);
    (void)ew__buf_char(&out, 0);
    assert_string_equal(out.ptr, expected);
    ew__buf_done(&out);
    tree_done(&t);
}

static void expect_problems(const char *yaml, ew_err err, const char *expected) {
    tree t;
    tree_read(&t, ew_str_from(yaml));
    assert_string_equal(t.said, expected);
    assert_int_equal(t.err, err);
    assert_true(t.root || err != EW_OK);
    tree_done(&t);
}

/* ---- reading ---- */

static void test_config_tree__places(void **state) {
    (void)state;
    expect_tree("a: 1\nb:\n  - x\n  - 'y'\nc: {d: \"e\", f: [g]}\n",
                "{a=1@1:4 b=[x@3:5 'y'@4:5]@3:3 c={d='e'@5:8 f=[g@5:17]@5:16}@5:4}@1:1");
    expect_tree("a: |\n  one\n  two\nb: >-\n  one\n  two\n", "{a='one\ntwo\n'@1:4 b='one two'@4:4}@1:1");
    expect_tree("\xc3\xa4\xc3\xb6: {\xe2\x82\xac: x}\n", "{\xc3\xa4\xc3\xb6={\xe2\x82\xac=x@1:9}@1:5}@1:1");
    expect_tree("\xef\xbb\xbfroot: 1", "{root=1@1:7}@1:1");
    expect_tree("a:\r\n  b: c\r\n", "{a={b=c@2:6}@2:3}@1:1");
    expect_tree("%YAML 1.2\n---\na: b\n...\n", "{a=b@3:4}@3:1");
    expect_tree("{\"a\": [1, 2.50, true, null]}", "{a=[1@1:8 2.50@1:11 true@1:17 null@1:23]@1:7}@1:1");
    expect_tree("a:\nb: ~", "{a=@1:3 b=~@2:4}@1:1");
    expect_tree("[]", "[]@1:1");
}

static void test_config_tree__empty(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\n", "# nothing\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tree t;
        tree_read(&t, ew_str_from(texts[i]));
        assert_int_equal(t.err, EW_OK);
        assert_null(t.root);
        assert_string_equal(t.said, "");
        tree_done(&t);
    }
}

static void test_config_tree__getters(void **state) {
    (void)state;
    tree t;
    bool truth = false;
    tree_read(&t, EW_STR("a: [x, y]\nb: true\nc: 'true'\nd: ~\ne: ''\nf: yes\ng: FALSE\n"));
    const ew__node *a = ew__node_get(t.root, "a"), *b = ew__node_get(t.root, "b");
    assert_string_equal(ew__node_at(a, 1)->text.ptr, "y");
    assert_null(ew__node_at(a, 2));
    assert_ptr_equal(ew__node_at(b, 7), b);
    assert_null(ew__node_get(t.root, "z"));
    assert_null(ew__node_get(a, "x"));
    assert_null(ew__node_get(NULL, "x"));
    assert_true(ew__node_bool(b, &truth) && truth);
    assert_true(ew__node_bool(ew__node_get(t.root, "g"), &truth) && !truth);
    assert_false(ew__node_bool(ew__node_get(t.root, "c"), &truth));
    assert_false(ew__node_bool(ew__node_get(t.root, "f"), &truth));
    assert_false(ew__node_bool(a, &truth));
    assert_true(ew__node_is_null(ew__node_get(t.root, "d")));
    assert_false(ew__node_is_null(ew__node_get(t.root, "e")));
    assert_false(ew__node_is_null(a));
    tree_done(&t);
}

/* ---- what is refused ---- */

static void test_config_tree__refused(void **state) {
    (void)state;
    expect_problems("a: &x 1\nb: *x\n", EW_OK,
                    "1:4: anchors (&NAME) are not supported: write the value again where it is needed\n"
                    "2:4: aliases (*NAME) are not supported: write the value again\n");
    expect_problems("a: !!str 5\nb: !x {}\n", EW_OK,
                    "1:4: tags (!TAG) are not supported; quotes make a text of anything\n"
                    "2:4: tags (!TAG) are not supported; quotes make a text of anything\n");
    expect_problems("a: 1\nb: 2\na: 3\n", EW_OK, "3:1: the key a is repeated; it is in line 1 already\n");
    expect_problems("x:\n  <<: {a: 1}\n  b: 2\n", EW_OK, "2:3: merge keys (<<) are not supported: write the members\n");
    expect_problems("? [a, b]\n: 1\nc: 2\n", EW_OK, "1:3: a key must be a text\n");
    expect_problems("? {a: b}\n: {c: [d]}\n", EW_OK, "1:3: a key must be a text\n");
    expect_problems("a: 1\n---\nb: 2\n", EW_ESYNTAX,
                    "2:1: a second document begins here (---): a configuration is one\n");
    expect_tree("'<<': 1\n", "{<<=1@1:7}@1:1"); /* a name like any other in quotes */
}

static void test_config_tree__no_yaml(void **state) {
    (void)state;
    expect_problems("a: [1, 2\nb: 3\n", EW_ESYNTAX,
                    "2:2: did not find expected ',' or ']' (while parsing a flow sequence that begins in line 1)\n");
    expect_problems("a: b: c\n", EW_ESYNTAX,
                    "1:5: mapping values are not allowed in this context; a text that has \": \" in it or ends with "
                    "\":\" needs quotes\n");
    expect_problems("a:\n\t- b\n", EW_ESYNTAX,
                    "2:1: found character that cannot start any token while scanning for the next token\n");
    expect_problems("a: 1\nb: \xff\n", EW_ESYNTAX, "2:4: not text in UTF-8: invalid leading UTF-8 octet\n");
    expect_problems("a: \"b\n", EW_ESYNTAX,
                    "2:1: found unexpected end of stream (while scanning a quoted scalar that begins in line 1)\n");
    expect_problems(
        "a: [x, ${HOST}]\n", EW_ESYNTAX,
        "1:9: did not find expected ',' or ']' while parsing a flow sequence; a variable in [ ] or { } needs "
        "quotes around its text\n");
    expect_problems("a: *x\n", EW_OK, "1:4: aliases (*NAME) are not supported: write the value again\n");
}

/* A repeated key is found among many, too, where an index does it. */
static void test_config_tree__many_keys(void **state) {
    (void)state;
    ew__test_env env;
    ew__buf yaml;
    tree t;
    ew__test_env_init(&env, 1);
    ew__buf_init(&yaml, &env.env, 1 << 20);
    for (unsigned i = 0; i < 1000; i++) {
        (void)ew__buf_printf(&yaml, "key%u: %u\n", i, i);
    }
    (void)ew__buf_cstr(&yaml, "key3: x\nkey999: y\nkey1000: z\n");
    tree_read(&t, ew__buf_view(&yaml));
    assert_string_equal(t.said, "1001:1: the key key3 is repeated; it is in line 4 already\n"
                                "1002:1: the key key999 is repeated; it is in line 1000 already\n");
    assert_int_equal(t.root->n, 1001);
    assert_string_equal(ew__node_get(t.root, "key3")->text.ptr, "3");
    tree_done(&t);
    ew__buf_done(&yaml);
}

/* ---- variables ---- */

static void test_config_tree__variables(void **state) {
    (void)state;
    expect_tree("a: ${HOST}:${PORT:-80}\n", "{a=127.0.0.1:80@1:4}@1:1");
    expect_tree("a: '${EMPTY}|${EMPTY:-x}|${NONE:-}|${HOST:-y}'\n", "{a='|x||127.0.0.1'@1:4}@1:1");
    expect_tree("a: $${HOST} $HOST $ $$ $$${HOST} ${HOST:-a:-b}\n",
                "{a=${HOST} $HOST $ $$ $${HOST} 127.0.0.1@1:4}@1:1");
    expect_tree("${HOST}: b\n", "{${HOST}=b@1:10}@1:1"); /* keys have none */
    expect_tree("[\"${NONE:-a b}\", '${HOST}']", "['a b'@1:2 '127.0.0.1'@1:18]@1:1");
    expect_tree("a: |\n  x ${HOST}\n", "{a='x 127.0.0.1\n'@1:4}@1:1");
}

static void test_config_tree__variable_problems(void **state) {
    (void)state;
    expect_problems("a: x ${NONE} y\n", EW_OK, "1:6: the variable NONE is not set\n");
    expect_problems("a: \"\\t\\\"${NONE}\"\n", EW_OK, "1:9: the variable NONE is not set\n");
    expect_problems("a: $${NONE} \xc3\xa4 ${NONE}\n", EW_OK, "1:15: the variable NONE is not set\n");
    expect_problems("a: |\n  one\n  two ${NONE}\n", EW_OK, "3:7: the variable NONE is not set\n");
    expect_problems("- ${HOST}\r\n- ${NONE}\r\n- ${NONE2}\n", EW_OK,
                    "2:3: the variable NONE is not set\n3:3: the variable NONE2 is not set\n");
    expect_problems("a: b${HOST\n", EW_OK, "1:5: ${ without a }; $${ stands for ${ itself\n");
    expect_problems("a: '${}'\nb: '${1A}'\nc: '${A-b}'\nd: '${A b}'\n", EW_OK,
                    "1:5: not ${NAME} or ${NAME:-DEFAULT}; $${ stands for ${ itself\n"
                    "2:5: not ${NAME} or ${NAME:-DEFAULT}; $${ stands for ${ itself\n"
                    "3:5: not ${NAME} or ${NAME:-DEFAULT}; $${ stands for ${ itself\n"
                    "4:5: not ${NAME} or ${NAME:-DEFAULT}; $${ stands for ${ itself\n");
    /* written as an escape it is nowhere to be found: the place is that of the text */
    expect_problems("a: \"x\\x24{NONE}\"\n", EW_OK, "1:4: the variable NONE is not set\n");
}

static void test_config_tree__variables_are_limited(void **state) {
    (void)state;
    static char value[EW__CONFIG_BYTES / 4 + 1];
    memset(value, 'x', sizeof value - 1);
    assert_int_equal(setenv("EW_TEST_LONG", value, 1), 0);
    expect_problems("- ${LONG}\n- ${LONG}\n- ${LONG}\n- ${LONG}\n- ${LONG}\n", EW_OK,
                    "5:3: too much text comes from variables\n");
    expect_problems("- ${LONG}${LONG}${LONG}${LONG}${LONG}\n", EW_OK, "1:3: too much text comes from variables\n");
    (void)unsetenv("EW_TEST_LONG");
}

/* ---- limits ---- */

static void expect_big(ew__buf *yaml, ew_err err, const char *expected) {
    tree t;
    tree_read(&t, ew__buf_view(yaml));
    assert_string_equal(t.said, expected);
    assert_int_equal(t.err, err);
    tree_done(&t);
    ew__buf_clear(yaml);
}

static void test_config_tree__limits(void **state) {
    (void)state;
    ew__buf yaml;
    ew__buf_init(&yaml, ew_env_default(), 4 << 20);
    for (int deep = 32; deep <= 33; deep++) {
        for (int i = 0; i < deep; i++) {
            (void)ew__buf_char(&yaml, '[');
        }
        for (int i = 0; i < deep; i++) {
            (void)ew__buf_char(&yaml, ']');
        }
        expect_big(&yaml, deep == 32 ? EW_OK : EW_ESYNTAX,
                   deep == 32 ? "" : "1:33: lists and maps are more than 32 levels deep\n");
    }
    for (size_t n = EW__CONFIG_NODES - 1; n <= EW__CONFIG_NODES; n++) { /* and the list */
        for (size_t i = 0; i < n; i++) {
            (void)ew__buf_cstr(&yaml, "- a\n");
        }
        expect_big(&yaml, n < EW__CONFIG_NODES ? EW_OK : EW_ESYNTAX,
                   n < EW__CONFIG_NODES ? "" : "100000:3: more than 100000 values\n");
    }
    for (size_t n = EW__CONFIG_BYTES; n <= EW__CONFIG_BYTES + 1; n++) {
        (void)ew__buf_cstr(&yaml, "a: 1\n#");
        while (yaml.len < n) {
            (void)ew__buf_char(&yaml, 'x');
        }
        expect_big(&yaml, n == EW__CONFIG_BYTES ? EW_OK : EW_ESYNTAX,
                   n == EW__CONFIG_BYTES ? "" : "0:0: larger than 1048576 bytes\n");
    }
    ew__buf_done(&yaml);
}

/* Every allocation of ours fails once: that is said, and nothing is lost or kept. */
static void test_config_tree__memory(void **state) {
    (void)state;
    ew__buf yaml;
    ew__buf_init(&yaml, ew_env_default(), 1 << 20);
    (void)ew__buf_cstr(&yaml, "a: ['${HOST}', 'x${NONE}']\nb: &x {c: d, c: e}\n");
    for (unsigned i = 0; i < 40; i++) {
        (void)ew__buf_printf(&yaml, "key%u: %u\n", i, i);
    }
    unsigned failures = 0;
    for (uint64_t n = 1;; n++) {
        ew__test_env env;
        ew__arena arena;
        ew__problems problems;
        ew__node *root;
        ew__test_env_init(&env, 1);
        ew__arena_init(&arena, &env.env, NULL, 0);
        ew__problems_init(&problems, &arena);
        ew__test_env_fail_at(&env, n, false);
        ew_err err = ew__tree_read(&arena, ew__buf_view(&yaml), variable, NULL, &problems, &root);
        bool failed = ew__test_env_failed(&env) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        ew__arena_done(&arena);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        if (!failed) {
            break;
        }
        failures++;
    }
    assert_true(failures >= 4);
    ew__buf_done(&yaml);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_tree__places),
        cmocka_unit_test(test_config_tree__empty),
        cmocka_unit_test(test_config_tree__getters),
        cmocka_unit_test(test_config_tree__refused),
        cmocka_unit_test(test_config_tree__no_yaml),
        cmocka_unit_test(test_config_tree__many_keys),
        cmocka_unit_test(test_config_tree__variables),
        cmocka_unit_test(test_config_tree__variable_problems),
        cmocka_unit_test(test_config_tree__variables_are_limited),
        cmocka_unit_test(test_config_tree__limits),
        cmocka_unit_test(test_config_tree__memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
