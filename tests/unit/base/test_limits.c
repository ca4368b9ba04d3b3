/*
 * tests/unit/base/test_limits.c: the defaults of the limits.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <everywire/limits.h>
#include <string.h>

static void test_base_limits__zeros_become_defaults(void **state) {
    (void)state;
    ew_limits limits;
    memset(&limits, 0, sizeof(limits));
    ew_limits_complete(&limits);
#define CHECK(member, value, text) assert_int_equal(limits.member, value);
    EW_LIMITS_MAP(CHECK)
#undef CHECK
    assert_int_equal(limits.frame_bytes, 16 * 1024 * 1024);
    assert_int_equal(limits.head_bytes, 32 * 1024);
    assert_true(limits.out_low_bytes < limits.out_high_bytes && limits.out_high_bytes < limits.out_max_bytes);
    ew_limits again = limits;
    ew_limits_complete(&again);
    assert_memory_equal(&again, &limits, sizeof(limits));
}

static void test_base_limits__given_values_stay(void **state) {
    (void)state;
    ew_limits limits, before;
    uint64_t number = 7;
#define FILL(member, value, text) limits.member = number++;
    EW_LIMITS_MAP(FILL)
#undef FILL
    before = limits;
    ew_limits_complete(&limits);
    assert_memory_equal(&before, &limits, sizeof(limits));
}

static void test_base_limits__marks_keep_their_order(void **state) {
    (void)state;
    ew_limits limits;
    memset(&limits, 0, sizeof(limits));
    limits.out_high_bytes = 1000;
    ew_limits_complete(&limits);
    assert_int_equal(limits.out_low_bytes, 250);
    memset(&limits, 0, sizeof(limits));
    limits.out_max_bytes = 4000;
    ew_limits_complete(&limits);
    assert_int_equal(limits.out_high_bytes, 4000);
    assert_int_equal(limits.out_low_bytes, 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_limits__zeros_become_defaults),
        cmocka_unit_test(test_base_limits__given_values_stay),
        cmocka_unit_test(test_base_limits__marks_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
