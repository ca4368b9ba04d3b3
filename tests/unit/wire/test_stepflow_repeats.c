/*
 * tests/unit/wire/test_stepflow_repeats.c: names that stand more than once in their object, and only those.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "json/text.h"
#include "wire/stepflow/repeats.h"
#include "support/fail_env.h"
#include "support/json_or.h"
#include <stdio.h>

/* What is said of each name in the text, in their order: '.' once, '+' later, else the value that counts. */
static void describe(ew_str json, const ew__repeats *repeats, char *out) {
    const char *end = json.ptr + json.len;
    for (const char *at = json.ptr; at < end; at++) {
        if (*at != '"')
            continue;
        const char *next = ew__json_skip_string(at, end);
        if (next < end && *next == ':') {
            uint32_t place = ew__repeats_at(repeats, (uint32_t)(at - json.ptr));
            *out++ = place == EW__REPEATS_ONCE ? '.' : place == EW__REPEATS_LATER ? '+' : json.ptr[place];
        }
        at = next - 1;
    }
    *out = '\0';
}

static void expect(const char *json, const char *expected) {
    ew__test_env env;
    ew__test_env_init(&env, 1);
    ew__repeats repeats;
    char got[64];
    assert_int_equal(ew__repeats_find(&repeats, &env.env, ew_str_from(json)), EW_OK);
    describe(ew_str_from(json), &repeats, got);
    ew__repeats_done(&repeats);
    assert_string_equal(got, expected);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

static void test_store_repeats__found(void **state) {
    (void)state;
    expect("1", "");
    expect("\"a\"", "");
    expect("{}", "");
    expect("[\"a\",\"a\"]", "");
    expect("{\"a\":1,\"b\":2}", "..");
    expect("{\"a\":1,\"b\":2,\"a\":3}", "3.+");
    expect("{\"a\":1,\"a\":2,\"a\":3}", "3++");
    expect("{\"a\":1,\"b\":2,\"b\":3,\"a\": 4}", "43++");
    expect("{\"a\":\"a\",\"b\":\"a\"}", "..");
    expect("{\"\":1,\"\":2}", "2+");
}

static void test_store_repeats__objects_apart(void **state) {
    (void)state;
    expect("[{\"a\":1},{\"a\":2}]", "..");
    expect("{\"a\":{\"a\":{\"a\":1}}}", "...");
    expect("{\"a\":{\"b\":1},\"b\":{\"a\":2}}", "....");
    expect("{\"a\":{\"b\":1,\"b\":2},\"a\":{\"b\":3,\"c\":[{\"c\":4,\"c\":5}]}}", "{2++..5+");
    expect("{\"x\":{\"a\":1},\"a\":2,\"y\":{\"a\":3,\"a\":4},\"a\":5}", "..5.4++");
}

static void test_store_repeats__escapes(void **state) {
    (void)state;
    expect("{\"a\":1,\"\\u0061\":2}", "2+");
    expect("{\"\\u0061\":1,\"a\":2}", "2+");
    expect("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "2+");
    expect("{\"\\/\":1,\"/\":2,\"\\\\\":3}", "2+.");
    expect("{\"\\ud83d\":1,\"\\uD83D\":2,\"\\ude00\":3}", "2+.");
    expect("{\"\\\"\":1,\"\\u0022\":2}", "2+");
}

/* Enough of them to make every table grow, in an object inside of an open one. */
static void test_store_repeats__many(void **state) {
    (void)state;
    enum { N = 5000 };
    ew__test_env env;
    ew__repeats repeats;
    ew__buf json;
    ew__test_env_init(&env, 2);
    ew__buf_init(&json, &env.env, 1 << 20);
    ew__buf_cstr(&json, "{\"n0\":0,\"in\":{");
    for (int i = 0; i < 2 * N; i++)
        ew__buf_printf(&json, "%s\"n%d\":%d", i > 0 ? "," : "", i % N, i);
    assert_int_equal(ew__buf_cstr(&json, "},\"n1\":1}"), EW_OK);
    assert_int_equal(ew__repeats_find(&repeats, &env.env, ew__buf_view(&json)), EW_OK);
    assert_int_equal(repeats.n, N);
    ew_str inner = ew_json_get(ew__buf_view(&json), "/in");
    ew_json_iter it = {0};
    for (int i = 0; ew_json_next(inner, &it); i++) {
        uint32_t place = ew__repeats_at(&repeats, (uint32_t)(it.key.ptr - json.ptr));
        if (i >= N) {
            assert_int_equal(place, EW__REPEATS_LATER);
            continue;
        }
        const char *value = json.ptr + place, *end = ew__json_skip_value(value, json.ptr + json.len);
        assert_int_equal(json_int_or(ew__str(value, (size_t)(end - value)), "", -1), i + N);
    }
    ew__repeats_done(&repeats);
    ew__buf_done(&json);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

/* Objects after each other: what one leaves behind would fill the tables, or be taken for the next one's. */
static void test_store_repeats__one_after_another(void **state) {
    (void)state;
    ew__test_env env;
    ew__repeats repeats;
    ew__buf json;
    ew__test_env_init(&env, 3);
    ew__buf_init(&json, ew_env_default(), 1 << 20);
    ew__buf_cstr(&json, "{\"all\":[");
    for (int i = 0; i < 10000; i++)
        ew__buf_cstr(&json, "{\"a\":1,\"b\":{\"a\":2},\"c\":3},");
    assert_int_equal(ew__buf_cstr(&json, "{\"a\":1,\"c\":2,\"a\":3}],\"a\":4}"), EW_OK);
    assert_int_equal(ew__repeats_find(&repeats, &env.env, ew__buf_view(&json)), EW_OK);
    assert_int_equal(repeats.n, 1);
    assert_true(ew__test_env_peak_bytes(&env) < 2 * json.len / 8);
    ew__repeats_done(&repeats);
    ew__buf_done(&json);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_repeats__found),
        cmocka_unit_test(test_store_repeats__objects_apart),
        cmocka_unit_test(test_store_repeats__escapes),
        cmocka_unit_test(test_store_repeats__many),
        cmocka_unit_test(test_store_repeats__one_after_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
