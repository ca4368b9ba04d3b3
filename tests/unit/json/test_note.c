/*
 * tests/unit/json/test_note.c: what the pass notes about the first two levels.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

static ew__json_doc doc;

static void parse(const char *text) {
    memset(&doc, 0xa5, sizeof doc);
    assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
    assert_int_equal(verdict(ew_str_from(text), 0, NULL), EW_OK);
}

static void assert_text(ew_str got, const char *expected) {
    if (!ew__str_is(got, ew_str_from(expected))) {
        fail_msg("got %.*s instead of %s", (int)got.len, got.ptr, expected);
    }
}

static void assert_node(unsigned index, const char *key, const char *value, ew_json_type type, unsigned level,
                        unsigned next) {
    const ew__json_node *node = &doc.nodes[index];
    assert_true(index < doc.n_nodes);
    assert_text(ew__str(doc.text.ptr + node->key, node->key_len), key);
    assert_text(ew__str(doc.text.ptr + node->value, node->value_len), value);
    assert_int_equal(node->type, type);
    assert_int_equal(node->level, level);
    assert_int_equal(node->next, next);
}

static void test_json_note__notes_two_levels(void **state) {
    (void)state;
    parse(" {\"id\" : 7 , \"params\":{ \"key\":\"k\",\"input\":{\"deep\":[1,{}]} ,\"e\":[] },\"list\":[true, null "
          ",[2]],\"x\":{}, \"last\":-1.5 } ");
    assert_int_equal(doc.type, EW_JSON_OBJECT);
    assert_true(doc.complete && doc.root_complete && !doc.has_newline && !doc.escaped_keys);
    assert_int_equal(doc.n_nodes, 12);
    assert_node(1, "id", "7", EW_JSON_NUMBER, 1, 2);
    assert_node(2, "params", "{ \"key\":\"k\",\"input\":{\"deep\":[1,{}]} ,\"e\":[] }", EW_JSON_OBJECT, 1, 6);
    assert_node(3, "key", "\"k\"", EW_JSON_STRING, 2, 4);
    assert_node(4, "input", "{\"deep\":[1,{}]}", EW_JSON_OBJECT, 2, 5);
    assert_node(5, "e", "[]", EW_JSON_ARRAY, 2, 0);
    assert_node(6, "list", "[true, null ,[2]]", EW_JSON_ARRAY, 1, 10);
    assert_node(7, "", "true", EW_JSON_BOOL, 2, 8);
    assert_node(8, "", "null", EW_JSON_NULL, 2, 9);
    assert_node(9, "", "[2]", EW_JSON_ARRAY, 2, 0);
    assert_node(10, "x", "{}", EW_JSON_OBJECT, 1, 11);
    assert_node(11, "last", "-1.5", EW_JSON_NUMBER, 1, 0);
    assert_true(doc.root.ptr == doc.text.ptr + 1 && doc.root.len == doc.text.len - 2);
}

static void test_json_note__notes_at_every_place(void **state) {
    (void)state;
    char text[512];
    for (int shift = 0; shift < 130; shift++) {
        snprintf(text, sizeof text,
                 "%*s{\"first\":\"%0*d\",\"second\" :{\"inner\":[false],\"more\":\"x\"},\"third\": 12345 }", shift, "",
                 shift + 1, 0);
        parse(text);
        assert_int_equal(doc.n_nodes, 6);
        assert_text(ew__json_find(&doc, EW_STR("second"), NULL), "{\"inner\":[false],\"more\":\"x\"}");
        assert_text(ew__json_find(&doc, EW_STR("third"), NULL), "12345");
        assert_int_equal(ew__json_find(&doc, EW_STR("first"), NULL).len, (size_t)shift + 3);
        assert_text(ew__json_find_under(&doc, ew__json_find(&doc, EW_STR("second"), NULL), EW_STR("more"), NULL),
                    "\"x\"");
    }
}

static void test_json_note__roots(void **state) {
    (void)state;
    static const struct {
        const char *text;
        ew_json_type type;
        unsigned nodes;
    } roots[] = {{" 1 ", EW_JSON_NUMBER, 1},   {"\"x\"", EW_JSON_STRING, 1}, {"null", EW_JSON_NULL, 1},
                 {"true", EW_JSON_BOOL, 1},    {"[ ]", EW_JSON_ARRAY, 1},    {"{}", EW_JSON_OBJECT, 1},
                 {"[1]", EW_JSON_ARRAY, 2},    {"[[]]", EW_JSON_ARRAY, 2},   {"[{},{}]", EW_JSON_ARRAY, 3},
                 {"[[[1]]]", EW_JSON_ARRAY, 3}};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        parse(roots[i].text);
        assert_int_equal(doc.type, roots[i].type);
        assert_int_equal(doc.n_nodes, roots[i].nodes);
        assert_null(ew__json_find(&doc, EW_STR("a"), NULL).ptr);
        assert_null(ew__json_find(&doc, EW_STR(""), NULL).ptr);
    }
}

static void test_json_note__newlines(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool newline;
    } texts[] = {{"[1]", false},  {"[1,\t2]", false}, {"[\"\\n\"]", false},
                 {"[1]\n", true}, {"\r[1]", true},    {"{\"a\":\n1}", true}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        parse(texts[i].text);
        assert_int_equal(doc.has_newline, texts[i].newline);
        assert_int_equal(ew__json_has_newline(doc.text), texts[i].newline);
    }
}

/* n members at level 1, each with an object of m members. */
static char *many(size_t n, size_t m) {
    size_t room = n * (m + 1) * 40 + 100, len = 0;
    char *text = malloc(room);
    assert_non_null(text);
    text[len++] = '{';
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, room - len, "%s\"m%zu\":{", i > 0 ? "," : "", i);
        for (size_t k = 0; k < m; k++) {
            len += (size_t)snprintf(text + len, room - len, "%s\"c%zu\":%zu", k > 0 ? "," : "", k, i * 1000 + k);
        }
        text[len++] = '}';
    }
    memcpy(text + len, "}", 2);
    return text;
}

static void test_json_note__more_values_than_nodes(void **state) {
    (void)state;
    for (size_t n = 1; n < 60; n++) {
        for (size_t m = 0; m < 60; m += n < 4 ? 1 : 13) {
            char *text = many(n, m), name[16], value[16];
            bool repeated = true;
            parse(text);
            size_t nodes = 1, noted = 0;
            for (size_t i = 0; i < n; i++) {
                noted += nodes < EW__JSON_NODES;
                nodes += nodes < EW__JSON_NODES;
                for (size_t k = 0; k < m; k++) {
                    nodes += nodes < EW__JSON_NODES - 16; /* the rest is for level 1 */
                }
            }
            assert_int_equal(doc.n_nodes, nodes);
            assert_int_equal(doc.root_complete, noted == n);
            assert_int_equal(doc.complete, nodes == 1 + n + n * m);
            for (size_t i = 0; i < n; i++) {
                snprintf(name, sizeof name, "m%zu", i);
                ew_str parent = ew__json_find(&doc, ew_str_from(name), &repeated);
                assert_false(repeated);
                assert_int_equal(ew_json_typeof(parent), EW_JSON_OBJECT);
                assert_int_equal(parent.ptr[parent.len - 1], '}');
                if (m > 0) {
                    snprintf(name, sizeof name, "c%zu", m - 1);
                    snprintf(value, sizeof value, "%zu", i * 1000 + m - 1);
                    assert_text(ew__json_find_under(&doc, parent, ew_str_from(name), &repeated), value);
                    assert_false(repeated);
                }
                assert_null(ew__json_find_under(&doc, parent, EW_STR("none"), NULL).ptr);
            }
            assert_null(ew__json_find(&doc, EW_STR("none"), &repeated).ptr);
            free(text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_note__notes_two_levels),
        cmocka_unit_test(test_json_note__notes_at_every_place),
        cmocka_unit_test(test_json_note__roots),
        cmocka_unit_test(test_json_note__newlines),
        cmocka_unit_test(test_json_note__more_values_than_nodes),
    };
    return cmocka_run_group_tests_name("json_note", tests, NULL, NULL);
}
