/*
 * tests/unit/wire/test_stepflow_blob_id.c: ids of values: Stepflow's own, and those of the text that serde_json writes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sha256.h"
#include "base/util.h"
#include "json/json.h"
#include "wire/stepflow/blob_id.h"
#include "support/fail_env.h"
#include <everywire/limits.h>
#include <stdio.h>

typedef char id_text[EW__BLOB_ID_LEN + 1];

static void id_of(ew_str json, id_text ret) {
    ret[EW__BLOB_ID_LEN] = '\0';
    assert_int_equal(ew__blob_id(ew_env_default(), json, ret), EW_OK);
}

static void id_of_text(ew_str text, id_text ret) {
    uint8_t digest[EW__SHA256_SIZE];
    ew__sha256_of(text.ptr, text.len, digest);
    ew__hex(digest, sizeof digest, ret);
    ret[EW__BLOB_ID_LEN] = '\0';
}

/* The same id without white space and without a byte above ASCII. */
static void expect_id(ew_str json, const char *expected) {
    id_text id;
    ew__buf other;
    id_of(json, id);
    assert_string_equal(id, expected);
    ew__buf_init(&other, ew_env_default(), 1 << 26);
    assert_int_equal(ew__json_minify(&other, json), EW_OK);
    id_of(ew__buf_view(&other), id);
    assert_string_equal(id, expected);
    ew__buf_clear(&other);
    assert_int_equal(ew__json_write_ascii(&other, json), EW_OK);
    id_of(ew__buf_view(&other), id);
    assert_string_equal(id, expected);
    ew__buf_done(&other);
}

static void expect_text(ew_str json, ew_str serde) {
    id_text expected;
    id_of_text(serde, expected);
    expect_id(json, expected);
}

/* `serde` NULL: serde_json writes what it reads. */
static void expect(const char *json, const char *serde) {
    expect_text(ew_str_from(json), ew_str_from(serde != NULL ? serde : json));
}

static void test_store_blob_id__stepflow(void **state) {
    (void)state;
    expect_id(EW_STR("{\"b\":2,\"a\":1}"), "3fb75453225c732a76b7899ea2096dda1455189c89817239732182f73fe5a09f");
    expect_id(EW_STR("{\"a\":1,\"b\":2}"), "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777");
    expect_id(EW_STR("1"), "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b");
    expect_id(EW_STR("{}"), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    expect_id(EW_STR("\"\xc3\xa9\""), "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086");
    expect_id(EW_STR("\"\\u00e9\""), "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086");
}

static void test_store_blob_id__white_space(void **state) {
    (void)state;
    expect(" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } , \"c\" : [ ] } \n", "{\"a\":[1,2],\"b\":{},\"c\":[]}");
    expect(" null ", "null");
    expect("[ true,false , null ]", "[true,false,null]");
    expect("\" a  b \"", NULL);
    expect("[[[[]]],{},[{}]]", NULL);
}

static void test_store_blob_id__strings(void **state) {
    (void)state;
    expect("\"\"", NULL);
    expect("\"\\\"\\\\\\b\\f\\n\\r\\t\"", NULL);
    expect("\"\\u0022\\u005c\\u0008\\u000c\\u000a\\u000d\\u0009\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    expect("\"\\/a/\\u002F\"", "\"/a//\"");
    expect("\"\\u0000\\u001F\\u000B\\u007f\\u0080\"", "\"\\u0000\\u001f\\u000b\x7f\xc2\x80\"");
    expect("\"\\u0041\\u00E9\\u20ac\\uD83D\\uDE00\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    expect("\"\\u2028\\uffff\"", "\"\xe2\x80\xa8\xef\xbf\xbf\"");
    expect("{\"\\u0061\\/\":\"\\\\u0061\"}", "{\"a/\":\"\\\\u0061\"}");
    expect("\"a long text that is longer than a block of the digest, and then \\u0061n \\t\\\"escape\\\" or two\"",
           "\"a long text that is longer than a block of the digest, and then an \\t\\\"escape\\\" or two\"");
}

static void test_store_blob_id__numbers(void **state) {
    (void)state;
    expect("[0,-1,1.0,1.50,1E5,-0,1e21,18446744073709551616,1e-7]",
           "[0,-1,1.0,1.5,100000.0,-0.0,1e21,1.8446744073709552e19,1e-7]");
    expect("1.000", "1.0");
    expect("{\"a\":0.10,\"b\":[65.42199999999999]}", "{\"a\":0.1,\"b\":[65.422]}");
}

static void test_store_blob_id__repeated_names(void **state) {
    (void)state;
    expect("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
    expect("{\"a\":1,\"\\u0061\":2}", "{\"a\":2}");
    expect("{\"a\":[1],\"b\":{\"c\":1,\"c\":[2]},\"a\":{\"d\":1,\"e\":2,\"d\":3},\"z\":0}",
           "{\"a\":{\"d\":3,\"e\":2},\"b\":{\"c\":[2]},\"z\":0}");
    expect("{ \"a\" : 1 , \"a\" : 2 , \"a\" : [ { \"b\" : 1 , \"b\" : 2 } ] }", "{\"a\":[{\"b\":2}]}");
    expect("[{\"a\":{\"a\":1,\"a\":2},\"a\":{\"a\":3,\"a\":{\"a\":4,\"a\":5}}},6]", "[{\"a\":{\"a\":{\"a\":5}}},6]");
    expect("{\"\":1,\"\":2,\"x\":3,\"\":4}", "{\"\":4,\"x\":3}");
    expect("{\"b\":1,\"a\":2,\"b\":{},\"a\":[]}", "{\"b\":{},\"a\":[]}");
}

/* What serde_json refuses has an id, and not that of another value. */
static void test_store_blob_id__beyond_serde(void **state) {
    (void)state;
    expect("\"\\ud83d\"", NULL);
    expect("\"\\uDE00\\uD83D\"", "\"\\ude00\\ud83d\"");
    expect("\"\\ud83dx\\ude00\"", NULL);
    expect("1e999", NULL);
    expect("[-1e400,1.5E999]", NULL);
    id_text one, other;
    id_of(EW_STR("\"\\ud83d\""), one);
    id_of(EW_STR("\"\\\\ud83d\""), other);
    assert_string_not_equal(one, other);
}

static void test_store_blob_id__not_json(void **state) {
    (void)state;
    static const char *const texts[] = {"",    " ",  "{",   "{\"a\"}",    "[1,]",    "01",
                                        "nul", "\"", "1 2", "{\"a\":1,}", "\"\xff\""};
    id_text id;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(ew__blob_id(ew_env_default(), ew_str_from(texts[i]), id), EW_ESYNTAX);
}

static void test_store_blob_id__depth(void **state) {
    (void)state;
    for (size_t depth = EW_PAYLOAD_DEPTH - 1; depth <= EW_PAYLOAD_DEPTH + 1; depth++) {
        ew__buf json;
        ew__buf_init(&json, ew_env_default(), 1 << 20);
        for (size_t i = 0; i < depth; i++)
            ew__buf_cstr(&json, i % 2 == 0 ? "[" : "{\"a\":");
        ew__buf_cstr(&json, "1");
        for (size_t i = depth; i-- > 0;)
            ew__buf_cstr(&json, i % 2 == 0 ? "]" : "}");
        if (depth <= EW_PAYLOAD_DEPTH) {
            expect_text(ew__buf_view(&json), ew__buf_view(&json));
        } else {
            id_text id;
            assert_int_equal(ew__blob_id(ew_env_default(), ew__buf_view(&json), id), EW_ELIMIT);
        }
        ew__buf_done(&json);
    }
}

/* Whoever compares names in pairs does not come back from this one. */
static void test_store_blob_id__many_names(void **state) {
    (void)state;
    enum { N = 100000 };
    ew__buf json, serde;
    ew__buf_init(&json, ew_env_default(), 1 << 26);
    ew__buf_init(&serde, ew_env_default(), 1 << 26);
    ew__buf_cstr(&json, "{ ");
    ew__buf_cstr(&serde, "{");
    for (int i = 0; i < N; i++) {
        ew__buf_printf(&json, "%s\"name number %d\" : [ %d , {} ]", i > 0 ? " , " : "", i, i);
        ew__buf_printf(&serde, "%s\"name number %d\":", i > 0 ? "," : "", i);
        if (i % 1000 == 7)
            ew__buf_printf(&serde, "\"again %d\"", i);
        else
            ew__buf_printf(&serde, "[%d,{}]", i);
    }
    for (int i = 7; i < N; i += 1000)
        ew__buf_printf(&json, ", \"name n\\u0075mber %d\" : \"again %d\" ", i, i);
    ew__buf_cstr(&json, "}");
    assert_int_equal(ew__buf_cstr(&serde, "}"), EW_OK);
    assert_int_equal(json.err, EW_OK);
    expect_text(ew__buf_view(&json), ew__buf_view(&serde));
    ew__buf_done(&json);
    ew__buf_done(&serde);
}

static void test_store_blob_id__out_of_memory(void **state) {
    (void)state;
    static const char json[] = "{\"a\":1,\"b\":{\"\\u0063\":1,\"c\":2,\"d\":[]},\"a\":{\"x\":1}}";
    id_text id, expected;
    id_of_text(EW_STR("{\"a\":{\"x\":1},\"b\":{\"c\":2,\"d\":[]}}"), expected);
    for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
        uint64_t n = 1;
        for (;; n++) {
            ew__test_env env;
            ew__test_env_init(&env, 3);
            ew__test_env_fail_at(&env, n, from_then_on == 1);
            ew_err err = ew__blob_id(&env.env, ew_str_from(json), id);
            assert_int_equal(ew__test_env_live_blocks(&env), 0);
            if (ew__test_env_failed(&env) == 0) {
                assert_int_equal(err, EW_OK);
                id[EW__BLOB_ID_LEN] = '\0';
                assert_string_equal(id, expected);
                break;
            }
            assert_int_equal(err, EW_ENOMEM);
        }
        assert_int_equal(n, 6); /* names, their table, a name without escapes, marks, what was found */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_blob_id__stepflow),       cmocka_unit_test(test_store_blob_id__white_space),
        cmocka_unit_test(test_store_blob_id__strings),        cmocka_unit_test(test_store_blob_id__numbers),
        cmocka_unit_test(test_store_blob_id__repeated_names), cmocka_unit_test(test_store_blob_id__beyond_serde),
        cmocka_unit_test(test_store_blob_id__not_json),       cmocka_unit_test(test_store_blob_id__depth),
        cmocka_unit_test(test_store_blob_id__many_names),     cmocka_unit_test(test_store_blob_id__out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
