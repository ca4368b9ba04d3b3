/*
 * tests/unit/json/test_minify.c: ew_json_minify, into other memory and in place.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

static void test_json_minify__cases(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"1", "1"},
        {" [ 1 ,\t2 ]\r\n", "[1,2]"},
        {"{ \"a b\" : \" \\\" \" }", "{\"a b\":\" \\\" \"}"},
        {"[\"\\\\\" , \"\"]", "[\"\\\\\",\"\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[64];
        size_t len = strlen(cases[i][0]), expected = strlen(cases[i][1]);
        for (size_t capacity = 0; capacity < sizeof buf; capacity++) {
            int got = ew_json_minify(ew_str_from(cases[i][0]), buf, capacity);
            assert_int_equal(got, capacity < expected ? (int)EW_ELIMIT : (int)expected);
            assert_true(got < 0 || memcmp(buf, cases[i][1], expected) == 0);
        }
        memcpy(buf, cases[i][0], len);
        assert_int_equal(ew_json_minify(ew__str(buf, len), buf, len), (int)expected);
        assert_memory_equal(buf, cases[i][1], expected);
    }
}

static void test_json_minify__cut_text(void **state) {
    (void)state;
    static const char *const cut[] = {"\"", "\"\\", "\"a", "[ \"a\\\""};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        char buf[16];
        assert_true(ew_json_minify(ew_str_from(cut[i]), buf, sizeof buf) <= (int)strlen(cut[i]));
    }
    assert_int_equal(ew_json_minify(ew__str(NULL, 0), NULL, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json_minify__cases),
                                       cmocka_unit_test(test_json_minify__cut_text)};
    return cmocka_run_group_tests_name("json_minify", tests, NULL, NULL);
}
