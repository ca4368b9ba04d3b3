/*
 * tests/unit/base/test_err.c: names and texts of error codes, the version, public slices.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <everywire/base.h>
#include <stdio.h>
#include <string.h>

static const struct {
    ew_err err;
    const char *name;
} codes[] = {{EW_OK, "EW_OK"},
             {EW_FULL, "EW_FULL"},
#define ROW(name, number, text) {name, #name},
             EW_ERR_MAP(ROW)
#undef ROW
};

#define N_CODES (sizeof(codes) / sizeof(codes[0]))

static void test_base_err__every_code_has_its_name_and_text(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CODES; i++) {
        assert_string_equal(ew_err_name(codes[i].err), codes[i].name);
        assert_true(strlen(ew_err_text(codes[i].err)) > 3);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i].err, codes[j].err);
            assert_string_not_equal(ew_err_text(codes[i].err), ew_err_text(codes[j].err));
        }
    }
    assert_string_equal(ew_err_text(EW_ENOMEM), "out of memory");
}

static void test_base_err__other_numbers_are_not_null(void **state) {
    (void)state;
    const int numbers[] = {2, -19, -1000, 1000};
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(ew_err_name((ew_err)numbers[i]));
        assert_non_null(ew_err_text((ew_err)numbers[i]));
    }
}

static void test_base_err__version(void **state) {
    (void)state;
    char text[32];
    (void)snprintf(text, sizeof(text), "%d.%d.%d", EW_VERSION_MAJOR, EW_VERSION_MINOR, EW_VERSION_PATCH);
    assert_string_equal(ew_version(), text);
}

static void test_base_err__slices(void **state) {
    (void)state;
    ew_str none = ew_str_from(NULL);
    assert_int_equal(none.len, 0);
    assert_int_equal(ew_str_from("").len, 0);
    assert_true(ew_str_eq(none, EW_STR("")));
    assert_true(ew_str_eq(ew_str_from("abc"), EW_STR("abc")));
    assert_false(ew_str_eq(EW_STR("abc"), EW_STR("abd")));
    assert_false(ew_str_eq(EW_STR("abc"), EW_STR("ab")));
    assert_false(ew_str_eq(EW_STR("abc"), none));
    assert_false(ew_str_eq(EW_STR("a\0b"), EW_STR("a\0c")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_err__every_code_has_its_name_and_text),
        cmocka_unit_test(test_base_err__other_numbers_are_not_null),
        cmocka_unit_test(test_base_err__version),
        cmocka_unit_test(test_base_err__slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
