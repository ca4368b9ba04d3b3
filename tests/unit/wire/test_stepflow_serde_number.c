/*
 * tests/unit/wire/test_stepflow_serde_number.c: numbers as serde_json writes them. The table was made by serde_json itself (its
 * reader, of 1.0.149, without float_roundtrip, and the writer that it had up to 1.0.146).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire/stepflow/serde_number.h"
#include "support/json_or.h"
#include <everywire/json.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

static const struct {
    const char *number, *text;
} table[] = {
    {"0", "0"},
    {"-0", "-0.0"},
    {"1", "1"},
    {"-1", "-1"},
    {"10", "10"},
    {"100", "100"},
    {"0.0", "0.0"},
    {"-0.0", "-0.0"},
    {"0e10", "0.0"},
    {"-0e-10", "-0.0"},
    {"1.0", "1.0"},
    {"100.0", "100.0"},
    {"1.10", "1.1"},
    {"1e0", "1.0"},
    {"1E5", "100000.0"},
    {"1e+2", "100.0"},
    {"0.1", "0.1"},
    {"0.5", "0.5"},
    {"2.5", "2.5"},
    {"-2.5", "-2.5"},
    {"3.14", "3.14"},
    {"0.1e1", "1.0"},
    {"12.34", "12.34"},
    {"1e15", "1000000000000000.0"},
    {"1e16", "1e16"},
    {"1e17", "1e17"},
    {"1e21", "1e21"},
    {"1e22", "1e22"},
    {"1e23", "1e23"},
    {"1e-4", "0.0001"},
    {"1e-5", "0.00001"},
    {"1e-6", "1e-6"},
    {"1e-7", "1e-7"},
    {"1.5e-5", "0.000015"},
    {"1.5e-6", "1.5e-6"},
    {"0.00012345", "0.00012345"},
    {"123456.789", "123456.789"},
    {"1234567890123456.0", "1234567890123456.0"},
    {"12345678901234567.0", "1.2345678901234566e16"},
    {"999999999999999.9", "1000000000000000.0"},
    {"9999999999999998", "9999999999999998"},
    {"9007199254740991", "9007199254740991"},
    {"9007199254740993", "9007199254740993"},
    {"9007199254740993.0", "9007199254740994.0"},
    {"9223372036854775807", "9223372036854775807"},
    {"9223372036854775808", "9223372036854775808"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"-9223372036854775809", "-9.223372036854776e18"},
    {"18446744073709551615", "18446744073709551615"},
    {"18446744073709551616", "1.8446744073709552e19"},
    {"18446744073709551615.0", "1.8446744073709552e19"},
    {"-18446744073709551615", "-1.8446744073709552e19"},
    {"18446744073709551616.3", "1.8446744073709552e19"},
    {"18446744073709551619.9", "1.8446744073709552e19"},
    {"123456789012345680000", "1.2345678901234567e20"},
    {"123456789012345678901234567890", "1.2345678901234568e29"},
    {"100000000000000000000", "1e20"},
    {"0.30000000000000004", "0.30000000000000004"},
    {"0.1234567890123456789", "0.12345678901234568"},
    {"5.684341886080802e-14", "5.684341886080803e-14"},
    {"5.684341886080801e-14", "5.684341886080802e-14"},
    {"5e-324", "5e-324"},
    {"4.9e-324", "5e-324"},
    {"2e-324", "0.0"},
    {"2.2250738585072014e-308", "2.2250738585072014e-308"},
    {"2.2250738585072011e-308", "2.2250738585072014e-308"},
    {"1.7976931348623157e308", "1.7976931348623157e308"},
    {"1.7976931348623157e+308", "1.7976931348623157e308"},
    {"17976931348623157e292", "1.7976931348623157e308"},
    {"1e308", "1e308"},
    {"1e-308", "1e-308"},
    {"1e-323", "1e-323"},
    {"1.2e-400", "0.0"},
    {"-1e-400", "-0.0"},
    {"1e-99999999999", "0.0"},
    {"0e99999999999", "0.0"},
    {"0.000000000000000000000000000000000001", "1e-36"},
    {"9.5367431640625e-7", "9.5367431640625e-7"},
    {"2.9802322387695312e-8", "2.9802322387695312e-8"},
    {"4.35", "4.35"},
    {"0.7", "0.7"},
    {"1.0000000000000002", "1.0000000000000002"},
    {"3.141592653589793238462643383279", "3.141592653589793"},
    {"6.02214076e23", "6.02214076e23"},
    {"1.602176634e-19", "1.6021766340000001e-19"},
    {"-273.15", "-273.15"},
    {"65.42199999999999", "65.422"},
    {"8.41", "8.41"},
    {"1e400", "1e400"},                                                           /* it refuses this one */
    {"-1e400", "-1e400"},                                                         /* it refuses this one */
    {"1.8e308", "1.8e308"},                                                       /* it refuses this one */
    {"123456789012345678901234567890e300", "123456789012345678901234567890e300"}, /* it refuses this one */
};

static void expect(ew_str number, ew_str expected) {
    char room[EW__SERDE_NUMBER_MAX];
    ew_str text = ew__serde_number(number, room);
    if (!ew__str_is(text, expected))
        fail_msg("%.*s: %.*s, not %.*s", (int)number.len, number.ptr, (int)text.len, text.ptr, (int)expected.len,
                 expected.ptr);
}

static void test_store_serde_number__table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        expect(ew_str_from(table[i].number), ew_str_from(table[i].text));
}

static void test_store_serde_number__locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8"};
    bool set = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++)
        set = setlocale(LC_ALL, names[i]) != NULL;
    test_store_serde_number__table(state);
    (void)setlocale(LC_ALL, "C");
}

/* Thousands of digits: only the first ones count, and nothing is written beyond the room. */
static void test_store_serde_number__long(void **state) {
    (void)state;
    static char text[5000];
    memset(text, '9', sizeof text);
    expect(ew__str(text, 300), EW_STR("1e300"));
    expect(ew__str(text, sizeof text), ew__str(text, sizeof text)); /* too large: as it is */
    text[1] = '.';
    expect(ew__str(text, sizeof text), EW_STR("10.0"));
    memset(text + 2, '0', sizeof text - 2);
    expect(ew__str(text, sizeof text), EW_STR("9.0"));
    memset(text, '0', sizeof text);
    text[1] = '.';
    expect(ew__str(text, sizeof text), EW_STR("0.0"));
    text[sizeof text - 1] = '1';
    expect(ew__str(text, sizeof text), EW_STR("0.0"));
    memcpy(text + sizeof text - 6, "1e4995", 6);
    expect(ew__str(text, sizeof text), EW_STR("100.0"));
}

/* Whatever comes out is a number, near the one that went in. */
static void test_store_serde_number__near(void **state) {
    (void)state;
    ew__rng rng = {{5, 6, 7, 8}};
    for (int i = 0; i < 200000; i++) {
        char number[64], room[EW__SERDE_NUMBER_MAX];
        uint64_t digits = ew__rng_next(&rng) >> (ew__rng_next(&rng) % 64);
        int exponent = (int)(ew__rng_next(&rng) % 660) - 340;
        int n = snprintf(number, sizeof number, "%llu.%llue%d", (unsigned long long)digits,
                         (unsigned long long)ew__rng_next(&rng) % 1000, exponent);
        ew_str text = ew__serde_number(ew__str(number, (size_t)n), room);
        assert_true(text.len <= 24 || text.ptr == number);
        assert_int_equal(ew_json_check(text, NULL), EW_OK);
        double read = json_double_or(text, "", -1), given = json_double_or(ew__str(number, (size_t)n), "", -1);
        if (given > 1e-290 && given < 1e290)
            assert_true(fabs(read - given) <= given * 1e-15);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_serde_number__table),
        cmocka_unit_test(test_store_serde_number__locale),
        cmocka_unit_test(test_store_serde_number__long),
        cmocka_unit_test(test_store_serde_number__near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
