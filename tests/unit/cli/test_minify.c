/*
 * ew_json_minify: white space goes, strings stay, in place and at the limits of the room.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *in, const char *out) {
    char buf[256];
    int n = ew_json_minify(ew_str_from(in), buf, sizeof buf);
    assert_int_equal(n, strlen(out));
    assert_memory_equal(buf, out, (size_t)n);
    /* in place */
    memcpy(buf, in, strlen(in));
    n = ew_json_minify((ew_str){buf, strlen(in)}, buf, strlen(in));
    assert_int_equal(n, strlen(out));
    assert_memory_equal(buf, out, (size_t)n);
    /* exactly as much room as it takes, and one byte less */
    assert_int_equal(ew_json_minify(ew_str_from(in), buf, strlen(out)), strlen(out));
    if (*out) {
        assert_int_equal(ew_json_minify(ew_str_from(in), buf, strlen(out) - 1), EW_ELIMIT);
    }
}

static void test_cli_minify__values(void **state) {
    (void)state;
    expect("1", "1");
    expect(" \r\n\t1 ", "1");
    expect("\"a b\"", "\"a b\"");
    expect("\" \\\" \\\\\" ", "\" \\\" \\\\\"");
    expect("{ \"a b\" : [ 1 ,\n2 , {\t} ] , \"c\":\"\\\\\" }", "{\"a b\":[1,2,{}],\"c\":\"\\\\\"}");
    expect("[true, false ,null, -1.5e+3]", "[true,false,null,-1.5e+3]");
    expect("\"\xc3\xa9 \xf0\x9f\x98\x80\"", "\"\xc3\xa9 \xf0\x9f\x98\x80\"");
    expect("", "");
    expect("  ", "");
}

/* Nothing here is JSON: the promise is only that it stays inside its memory. */
static void test_cli_minify__cut_text(void **state) {
    (void)state;
    const char *cut[] = {"\"", "\"abc", "\"abc\\", "{\"a\":\"\\\\"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        size_t n = strlen(cut[i]);
        char *exact = malloc(n), *out = malloc(n);
        assert_non_null(exact);
        assert_non_null(out);
        memcpy(exact, cut[i], n);
        assert_int_equal(ew_json_minify((ew_str){exact, n}, out, n), n);
        free(exact);
        free(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_minify__values),
        cmocka_unit_test(test_cli_minify__cut_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
