/*
 * tests/unit/json/test_skim.c: members of a text that is not kept, however it is cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/skim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const ew__skim_name names[] = {{NULL, "id"}, {NULL, "method"}, {NULL, "result"}, {"payload", "request_id"}};
enum { ID, METHOD, RESULT, REQUEST_ID, N };

static void expect(const char *text, const char *const values[N], size_t used) {
    size_t n = strlen(text);
    for (size_t step = 1; step <= n; step += step < 8 ? 1 : n / 3 + 1) {
        ew__skim skim;
        size_t taken = 0;
        ew__skim_init(&skim, names, N);
        for (size_t at = 0; at < n; at += step)
            taken += ew__skim_feed(&skim, ew__str(text + at, step < n - at ? step : n - at));
        for (size_t i = 0; i < N; i++) {
            ew_str value = ew__skim_value(&skim, i);
            if (!ew__str_is(value, ew_str_from(values[i] ? values[i] : "")))
                fail_msg("%s: member %zu is %.*s", text, i, (int)value.len, value.ptr ? value.ptr : "");
        }
        assert_int_equal(taken, used ? used : n);
        assert_int_equal(skim.done, used != 0 || text[n - 1] == '}');
    }
}

static void test_json_skim__members(void **state) {
    (void)state;
    expect("{\"id\":1}", (const char *const[N]){"1"}, 0);
    expect("{ \"id\" : \"a\\\"}b\" , \"method\":\"m\" }", (const char *const[N]){"\"a\\\"}b\"", "\"m\""}, 0);
    expect("{\"params\":{\"id\":2,\"method\":[{\"id\":3}]},\"id\":-1.5e3}", (const char *const[N]){"-1.5e3"}, 0);
    expect("{\"result\":{\"id\":1},\"id\":null}", (const char *const[N]){"null", NULL, "{"}, 0);
    expect("{\"result\":[\"id\"],\"id\":7}", (const char *const[N]){"7", NULL, "["}, 0);
    expect("{\"payload\":{\"x\":{\"request_id\":1},\"request_id\":\"r\"}}",
           (const char *const[N]){[REQUEST_ID] = "\"r\""}, 0);
    expect("{\"other\":{\"request_id\":\"r\"}}", (const char *const[N]){NULL}, 0);
}

static void test_json_skim__unusable(void **state) {
    (void)state;
    expect("{\"id\":1,\"id\":2}", (const char *const[N]){NULL}, 0);
    expect("{\"\\u0069d\":1}", (const char *const[N]){NULL}, 0);
    expect("[{\"id\":1}]{", (const char *const[N]){NULL}, 10);
    expect("{\"id\":1}{\"id\":2}", (const char *const[N]){"1"}, 8);
    expect("{\"id\":12", (const char *const[N]){"12"}, 0);
    static const char *const invalid[] = {"{\"id\":\"a\tb\"}", "{\"id\":\"\xff\"}", "{\"id\":\"\\x\"}", "{\"id\":tru}"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        expect(invalid[i], (const char *const[N]){NULL}, 0);
    static char large[EW__SKIM_ROOM + 100];
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "{\"id\":\"", 7);
    memcpy(large + sizeof large - 3, "\"}", 2);
    expect(large, (const char *const[N]){NULL}, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_skim__members),
        cmocka_unit_test(test_json_skim__unusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
