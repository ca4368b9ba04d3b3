/*
 * tests/unit/json/test_read.c: members, iterators, JSON pointers, repeated names.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"
#include "support/json_or.h"

static void assert_text(ew_str got, const char *expected) {
    if (expected == NULL ? got.ptr != NULL : !ew__str_is(got, ew_str_from(expected)) || got.ptr == NULL) {
        fail_msg("got %.*s instead of %s", (int)got.len, got.ptr != NULL ? got.ptr : "",
                 expected != NULL ? expected : "nothing");
    }
}

static void test_json_read__typeof(void **state) {
    (void)state;
    assert_int_equal(ew_json_typeof(EW_STR("null")), EW_JSON_NULL);
    assert_int_equal(ew_json_typeof(EW_STR(" true")), EW_JSON_BOOL);
    assert_int_equal(ew_json_typeof(EW_STR("false")), EW_JSON_BOOL);
    assert_int_equal(ew_json_typeof(EW_STR("-1")), EW_JSON_NUMBER);
    assert_int_equal(ew_json_typeof(EW_STR("9")), EW_JSON_NUMBER);
    assert_int_equal(ew_json_typeof(EW_STR("\n\"\"")), EW_JSON_STRING);
    assert_int_equal(ew_json_typeof(EW_STR("[]")), EW_JSON_ARRAY);
    assert_int_equal(ew_json_typeof(EW_STR("{}")), EW_JSON_OBJECT);
    assert_int_equal(ew_json_typeof(EW_STR("")), EW_JSON_NONE);
    assert_int_equal(ew_json_typeof(EW_STR("  ")), EW_JSON_NONE);
    assert_int_equal(ew_json_typeof(ew__str(NULL, 0)), EW_JSON_NONE);
}

/* The examples of RFC 6901, section 5, and the odd ones. */
static void test_json_read__pointers(void **state) {
    (void)state;
    ew_str json =
        EW_STR(" {\"foo\":[\"bar\", "
               "\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,"
               "\"~1\":9,\"\\u00e9\":10,\"x\":{\"\":{\"\":11}},\"10\":12} ");
    static const struct {
        const char *pointer, *value;
    } cases[] = {
        {"/foo", "[\"bar\", \"baz\"]"},
        {"/foo/0", "\"bar\""},
        {"/foo/1", "\"baz\""},
        {"/", "0"},
        {"/a~1b", "1"},
        {"/c%d", "2"},
        {"/e^f", "3"},
        {"/g|h", "4"},
        {"/i\\j", "5"},
        {"/k\"l", "6"},
        {"/ ", "7"},
        {"/m~0n", "8"},
        {"/~01", "9"},
        {"/\xc3\xa9", "10"},
        {"/x//", "11"},
        {"/10", "12"},
        {"/foo/2", NULL},
        {"/foo/-", NULL},
        {"/foo/00", NULL},
        {"/foo/01", NULL},
        {"/foo/+1", NULL},
        {"/foo/1x", NULL},
        {"/foo/", NULL},
        {"/foo/0/0", NULL},
        {"foo", NULL},
        {"/m~n", NULL},
        {"/m~2n", NULL},
        {"/m~", NULL},
        {"/a/b", NULL},
        {"/none", NULL},
        {"/10/", NULL},
        {"/foo/99999999999999999999999", NULL},
        {"/x", "{\"\":{\"\":11}}"},
    };
    assert_int_equal(ew_json_check(json, NULL), EW_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_text(ew_json_get(json, cases[i].pointer), cases[i].value);
    }
    ew_str all = ew_json_get(json, "");
    assert_true(all.ptr == json.ptr + 1 && all.len == json.len - 2);
}

static void test_json_read__pointer_to_all(void **state) {
    (void)state;
    assert_text(ew_json_get(EW_STR("  [1 , 2 ] \n"), ""), "[1 , 2 ]");
    assert_text(ew_json_get(EW_STR(" 5 "), ""), "5");
    assert_text(ew_json_get(EW_STR("5"), "/0"), NULL);
    assert_text(ew_json_get(EW_STR(""), ""), NULL);
    assert_text(ew_json_get(EW_STR("  "), ""), NULL);
    assert_text(ew_json_get(ew__str(NULL, 0), "/a"), NULL);
    assert_text(ew_json_get(EW_STR("5"), NULL), NULL);
    assert_text(ew_json_get(EW_STR("[[[[1]]]]"), "/0/0/0/0"), "1");
    assert_text(ew_json_get(EW_STR("{\"a\":1,\"a\":2}"), "/a"), "1");
}

static void test_json_read__members(void **state) {
    (void)state;
    ew_str json = EW_STR("{\"a/b\":1, \"~0\" : [ 2 ],\"s\":\"}\\\"{\",\"d\\u0061ta\":{\"x\":3}}");
    assert_text(ew_json_member(json, EW_STR("a/b")), "1");
    assert_text(ew_json_member(json, EW_STR("~0")), "[ 2 ]");
    assert_text(ew_json_member(json, EW_STR("s")), "\"}\\\"{\"");
    assert_text(ew_json_member(json, EW_STR("data")), "{\"x\":3}");
    assert_text(ew_json_member(json, EW_STR("x")), NULL);
    assert_text(ew_json_member(EW_STR("[1]"), EW_STR("0")), NULL);
    assert_text(ew_json_member(EW_STR("\"a\""), EW_STR("a")), NULL);
    assert_text(ew_json_member(ew__str(NULL, 0), EW_STR("a")), NULL);
}

static void test_json_read__walks(void **state) {
    (void)state;
    ew_str object = EW_STR(" { \"a\" : 1 , \"b\":[2,3],\"\\\"\":{}, \"c\":\"x,y\" } ");
    static const char *const keys[] = {"\"a\"", "\"b\"", "\"\\\"\"", "\"c\""}, *const values[] = {"1", "[2,3]", "{}",
                                                                                                  "\"x,y\""};
    ew_json_iter it = {{0}, {0}, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_true(ew_json_next(object, &it));
        assert_text(it.key, keys[i]);
        assert_text(it.value, values[i]);
    }
    assert_false(ew_json_next(object, &it));
    assert_false(ew_json_next(object, &it));
    ew_str array = EW_STR("[ true ,[],\n\"]\" , -1.5e3]");
    static const char *const elements[] = {"true", "[]", "\"]\"", "-1.5e3"};
    memset(&it, 0, sizeof it);
    for (size_t i = 0; i < 4; i++) {
        assert_true(ew_json_next(array, &it));
        assert_null(it.key.ptr);
        assert_text(it.value, elements[i]);
    }
    assert_false(ew_json_next(array, &it));
}

static void test_json_read__walks_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"{}", "[]", " { } ", "[\n]", "1", "\"[1]\"", "null", ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ew_json_iter it = {{0}, {0}, 0};
        assert_false(ew_json_next(ew_str_from(texts[i]), &it));
    }
    ew_json_iter it = {{0}, {0}, 0};
    assert_false(ew_json_next(ew__str(NULL, 0), &it));
}

/* Text that is cut or wrong must not lead outside; what comes out does not matter. */
static void test_json_read__stays_inside(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\":[1,{\"b\\u00e9\":\"x\\\\\"}],\"c\\ud83d\\ude00\":-1.5e3,\"d\":{\"e\":[true,null]},\"f\":\"g\"}";
    for (size_t from = 0; from < sizeof text - 1; from++) {
        for (size_t len = 0; from + len < sizeof text; len++) {
            char *copy = malloc(len > 0 ? len : 1);
            assert_non_null(copy);
            memcpy(copy, text + from, len);
            ew_str cut = {copy, len};
            ew_json_iter it = {{0}, {0}, 0};
            for (int i = 0; i < 200 && ew_json_next(cut, &it); i++) {
                assert_true(it.value.ptr >= copy && it.value.ptr + it.value.len <= copy + len);
            }
            ew_json_get(cut, "/a/1/b\xc3\xa9");
            ew_json_get(cut, "/c~0/d/e/1");
            json_double_or(cut, "/c", 0);
            char buf[64];
            size_t need;
            ew_json_string(cut, buf, sizeof buf, &need);
            bool repeated;
            ew__json_find_in(cut, EW_STR("f"), &repeated);
            free(copy);
        }
    }
}

static void check_find(const char *text, const char *name, const char *value, bool expected) {
    static ew__json_doc doc;
    bool repeated = !expected;
    assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
    assert_text(ew__json_find(&doc, ew_str_from(name), &repeated), value);
    assert_int_equal(repeated, expected);
    assert_text(ew__json_find(&doc, ew_str_from(name), NULL), value);
    repeated = !expected;
    assert_text(ew__json_find_in(ew_str_from(text), ew_str_from(name), &repeated), value);
    assert_int_equal(repeated, expected);
    assert_text(ew__json_find_in(ew_str_from(text), ew_str_from(name), NULL), value);
    char outer[512];
    snprintf(outer, sizeof outer, "{\"x\":{\"id\":0},\"y\":%s,\"z\":{\"id\":0}}", text);
    assert_int_equal(ew__json_parse(&doc, ew_str_from(outer)), EW_OK);
    ew_str parent = ew__json_find(&doc, EW_STR("y"), NULL);
    repeated = !expected;
    assert_text(ew__json_find_under(&doc, parent, ew_str_from(name), &repeated), value);
    assert_int_equal(repeated, expected);
}

static void test_json_read__repeated_names(void **state) {
    (void)state;
    check_find("{\"id\":1,\"b\":2}", "id", "1", false);
    check_find("{\"id\":1,\"b\":2}", "b", "2", false);
    check_find("{\"id\":1,\"b\":2}", "c", NULL, false);
    check_find("{\"id\":1,\"b\":2,\"id\":3}", "id", "1", true);
    check_find("{\"id\":1,\"id\":1}", "id", "1", true);
    check_find("{\"id\":1,\"\\u0069d\":3}", "id", "1", true);
    check_find("{\"i\\u0064\":1,\"b\":3}", "id", "1", false);
    check_find("{\"i\\u0064\":1,\"\\u0069d\":3}", "id", "1", true);
    check_find("{\"id\":{\"id\":2}}", "id", "{\"id\":2}", false);
    check_find("{\"\":1,\"\":2}", "", "1", true);
    check_find("{}", "id", NULL, false);
    check_find("{\"a name of more than sixteen bytes\":1,\"a name of more than sixteen bytez\":2}",
               "a name of more than sixteen bytez", "2", false);
    check_find("{\"a name of more than sixteen bytes\":1,\"a name of more than sixteen bytes\":2}",
               "a name of more than sixteen bytes", "1", true);
}

/* Names of every length: differing in any one byte they are different. */
static void test_json_read__name_lengths(void **state) {
    (void)state;
    static ew__json_doc doc;
    char text[256], name[64];
    for (size_t n = 1; n < 40; n++) {
        memset(name, 'n', n);
        name[n] = '\0';
        snprintf(text, sizeof text, "{\"%s\":1}", name);
        assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
        assert_text(ew__json_find(&doc, ew_str_from(name), NULL), "1");
        for (size_t i = 0; i < n; i++) {
            name[i] = 'm';
            assert_text(ew__json_find(&doc, ew_str_from(name), NULL), NULL);
            name[i] = 'n';
        }
        assert_text(ew__json_find(&doc, ew__str(name, n - 1), NULL), NULL);
    }
}

/* The repetition, or the first one, behind the last node. */
static void test_json_read__beyond_the_nodes(void **state) {
    (void)state;
    static ew__json_doc doc;
    char text[4096];
    for (int n = 40; n < 70; n++) {
        bool repeated = false;
        size_t len = (size_t)snprintf(text, sizeof text, " {\"a\":1");
        for (int i = 0; i < n; i++) {
            len += (size_t)snprintf(text + len, sizeof text - len, ",\"m%d\":[%d]", i, i);
        }
        snprintf(text + len, sizeof text - len, ",\"b\":2,\"\\u0061\":3,\"c\" :4,\"c\":5}");
        assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
        assert_text(ew__json_find(&doc, EW_STR("a"), &repeated), "1");
        assert_true(repeated);
        assert_text(ew__json_find(&doc, EW_STR("a"), NULL), "1");
        assert_text(ew__json_find(&doc, EW_STR("b"), &repeated), "2");
        assert_false(repeated);
        assert_text(ew__json_find(&doc, EW_STR("c"), &repeated), "4");
        assert_true(repeated);
        assert_text(ew__json_find(&doc, EW_STR("c"), NULL), "4");
        assert_text(ew__json_find(&doc, EW_STR("none"), &repeated), NULL);
        assert_false(repeated);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_read__typeof),         cmocka_unit_test(test_json_read__pointers),
        cmocka_unit_test(test_json_read__pointer_to_all), cmocka_unit_test(test_json_read__members),
        cmocka_unit_test(test_json_read__walks),          cmocka_unit_test(test_json_read__walks_nothing),
        cmocka_unit_test(test_json_read__stays_inside),   cmocka_unit_test(test_json_read__repeated_names),
        cmocka_unit_test(test_json_read__name_lengths),   cmocka_unit_test(test_json_read__beyond_the_nodes),
    };
    return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
