/*
 * tests/unit/base/test_when.c: times read and written, beside a calendar that counts days one by one; ids.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/when.h"
#include "support/fail_env.h"

#define LAST_MS INT64_C(253402300799999)

/* Parses a copy that ends where the text ends, so that AddressSanitizer sees a look past it. */
static bool parse(ew_str text, int64_t *ret) {
    char *copy = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(copy);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    bool is = ew__when_parse(ew__str(copy, text.len), ret);
    free(copy);
    return is;
}

static void expect(const char *text, int64_t ms) {
    int64_t got = -77;
    if (!parse(ew_str_from(text), &got) || got != ms) {
        fail_msg("%s is %" PRId64 ", not %" PRId64, text, got, ms);
    }
}

static void refuse(ew_str text) {
    int64_t got = -77;
    if (parse(text, &got)) {
        fail_msg("%.*s was taken", (int)text.len, text.ptr);
    }
    assert_true(got == -77);
}

#define SECONDS(n) ((n)*INT64_C(1000))

static void test_base_when__known_times(void **state) {
    (void)state;
    expect("1970-01-01T00:00:00Z", 0);
    expect("1970-01-01T00:00:00.001Z", 1);
    expect("1970-01-01T00:00:59Z", SECONDS(59));
    expect("1969-12-31T23:59:59.999Z", -1);
    expect("1969-12-31T23:59:59.9999Z", -1); /* cut, not rounded */
    expect("1969-12-31T23:59:59Z", SECONDS(-1));
    expect("1985-04-12T23:20:50.52Z", SECONDS(482196050) + 520); /* of RFC 3339 */
    expect("2026-03-01T10:00:00.123456789Z", SECONDS(1772359200) + 123);
    expect("2000-02-29T00:00:00Z", SECONDS(951782400));
    expect("2038-01-19T03:14:08Z", SECONDS(2147483648));
    expect("0000-01-01T00:00:00Z", SECONDS(-62167219200));
    expect("0000-02-29T00:00:00Z", SECONDS(-62162121600)); /* the year 0 is a leap year */
    expect("0000-03-01T00:00:00Z", SECONDS(-62162035200));
    expect("0001-01-01T00:00:00Z", SECONDS(-62135596800));
    expect("9999-12-31T23:59:59.999Z", LAST_MS);
}

static void test_base_when__letters_and_zones(void **state) {
    (void)state;
    const int64_t ten = SECONDS(1772359200);
    expect("2026-03-01t10:00:00z", ten);
    expect("2026-03-01 10:00:00Z", ten);
    expect("2026-03-01T10:00:00", ten); /* naive is UTC */
    expect("2026-03-01 10:00:00.5", ten + 500);
    expect("2026-03-01T10:00:00+00:00", ten);
    expect("2026-03-01T10:00:00-00:00", ten);
    expect("2026-03-01T12:00:00+02:00", ten);
    expect("2026-03-01T06:30:00.25-03:30", ten + 250);
    expect("2026-03-02T09:59:00+23:59", ten); /* over the border of a day */
    expect("2026-02-28T10:01:00-23:59", ten);
    expect("2024-02-29T23:30:00-01:00", SECONDS(1709253000)); /* is in March */
    expect("2027-01-01T00:30:00+01:00", SECONDS(1798759800)); /* is in the year before */
    expect("1970-01-01T00:00:00+00:01", SECONDS(-60));
    expect("0000-01-01T00:00:00+23:59", SECONDS(-62167219200 - 86340));
    expect("9999-12-31T23:59:59.999-23:59", LAST_MS + SECONDS(86340));
    expect("2016-12-31T23:59:60Z", SECONDS(1483228799)); /* a leap second */
    expect("2016-12-31T23:59:60.75Z", SECONDS(1483228799) + 750);
    expect("2016-12-31T15:59:60-08:00", SECONDS(1483228799));
}

static void test_base_when__fractions(void **state) {
    (void)state;
    static const char digits[] = "98765432109876543210987654321098765432109876543210987654321";
    for (int n = 0; n < (int)sizeof(digits); n++) {
        int64_t ms = n == 0 ? 0 : n == 1 ? 900 : n == 2 ? 980 : 987;
        static const char *zones[] = {"", "Z", "z", "+00:00"};
        for (size_t z = 0; z < sizeof(zones) / sizeof(zones[0]); z++) {
            char text[128];
            (void)snprintf(text, sizeof(text), "1970-01-01T00:00:01%s%.*s%s", n > 0 ? "." : "", n, digits, zones[z]);
            expect(text, 1000 + ms);
        }
    }
    expect("1970-01-01T00:00:00.000999999999Z", 0);
    expect("1970-01-01T00:00:00.0009Z", 0);
    expect("1970-01-01T00:00:00.999999999999Z", 999);
    expect("1970-01-01T00:00:00.012Z", 12);
}

/* ---- what is no time ---- */

static void test_base_when__refused(void **state) {
    (void)state;
    static const char *texts[] = {
        "", "2", "now", "null", "2026-03-01", "10:00:00", "2026-03-01T10:00", "2026-03-01T10:00Z", "1772359200",
        "2026-03-01T10:00:0", "2026-03-01T10:00:0Z", "2026-3-01T10:00:00Z", "2026-03-1T10:00:00Z", "26-03-01T10:00:00Z",
        "20260301T100000Z", "+2026-03-01T10:00:00Z", "-2026-03-01T10:00:00Z", "12026-03-01T10:00:00Z",
        " 2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z ", "2026-03-01T10:00:00ZZ", "2026-03-01T10:00:00 Z",
        /* numbers out of their range */
        "2026-00-01T10:00:00Z", "2026-13-01T10:00:00Z", "2026-99-01T10:00:00Z", "2026-03-00T10:00:00Z",
        "2026-03-32T10:00:00Z", "2026-04-31T10:00:00Z", "2026-06-31T10:00:00Z", "2026-09-31T10:00:00Z",
        "2026-11-31T10:00:00Z", "2026-02-29T10:00:00Z", "2024-02-30T10:00:00Z", "1900-02-29T10:00:00Z",
        "2100-02-29T10:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T10:60:00Z", "2026-03-01T10:00:61Z",
        "2026-03-01T99:00:00Z", "2026-03-01T10:99:00Z", "2026-03-01T10:00:99Z",
        /* fractions and zones */
        "2026-03-01T10:00:00.", "2026-03-01T10:00:00.Z", "2026-03-01T10:00:00.+01:00", "2026-03-01T10:00:00,5Z",
        "2026-03-01T10:00:00.5.5Z", "2026-03-01T10:00:00.-5Z", "2026-03-01T10:00:00.5 Z", "2026-03-01T10:00:00.5x",
        "2026-03-01T10:00:00+", "2026-03-01T10:00:00+1", "2026-03-01T10:00:00+01", "2026-03-01T10:00:00+0100",
        "2026-03-01T10:00:00+01:0", "2026-03-01T10:00:00+01:000", "2026-03-01T10:00:00+1:00",
        "2026-03-01T10:00:00+24:00", "2026-03-01T10:00:00+01:60", "2026-03-01T10:00:00+01:00Z",
        "2026-03-01T10:00:00Z+01:00", "2026-03-01T10:00:00*01:00", "2026-03-01T10:00:00+01-00",
        "2026-03-01T10:00:00+a1:00", "2026-03-01T10:00:00UTC"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        refuse(ew_str_from(texts[i]));
    }
    refuse(ew__str(NULL, 0));
    refuse(EW_STR("2026-03-01T10:00:00\xe2\x88\x92"
                  "01:00")); /* the minus sign of typesetters */
    refuse(EW_STR("2026-03-01T10:00:00Z\0"));
    refuse(EW_STR("2026-03-01T10:00:00\0"));
    refuse(EW_STR("2026-03-01\0"
                  "10:00:00Z"));
}

/* Every byte at every place of a good text, but digits for digits: their ranges are tested elsewhere. */
static void test_base_when__every_byte_counts(void **state) {
    (void)state;
    static const char good[] = "2011-11-11T11:11:11.111+11:11";
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        for (int c = 0; c < 256; c++) {
            char text[sizeof(good)];
            memcpy(text, good, sizeof(good));
            text[at] = (char)c;
            if (good[at] >= '0' && good[at] <= '9' && c >= '0' && c <= '9') {
                continue;
            }
            bool is = text[at] == good[at] || (at == 10 && (c == 't' || c == ' ')) || (at == 23 && c == '-');
            int64_t ms;
            if (parse(ew__str(text, sizeof(text) - 1), &ms) != is) {
                fail_msg("byte %d at %zu should%s be taken", c, at, is ? "" : " not");
            }
        }
    }
    for (size_t n = 0; n < sizeof(good) - 1; n++) { /* cut everywhere */
        int64_t ms;
        assert_int_equal(parse(ew__str(good, n), &ms), n == 19 || (n >= 21 && n <= 23));
    }
}

/* ---- the calendar ---- */

static int days_of(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* Every day of ten thousand years, counted; the first day that a month does not have is refused. */
static void test_base_when__every_day(void **state) {
    (void)state;
    int64_t day = -719528;
    uint32_t wobble = 1;
    for (int year = 0; year <= 9999; year++) {
        for (int month = 1; month <= 12; month++) {
            for (int d = 1; d <= days_of(year, month) + 1; d++) {
                wobble = wobble * 1664525 + 1013904223;
                uint32_t of_day = wobble % 86400000, second = of_day / 1000;
                char text[64], back[EW__WHEN_LEN + 1];
                (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02u:%02u:%02u.%03uZ", year, month, d, second / 3600,
                               second / 60 % 60, second % 60, of_day % 1000);
                int64_t ms = 0;
                if (d > days_of(year, month)) {
                    assert_false(ew__when_parse(ew_str_from(text), &ms));
                    continue;
                }
                if (!ew__when_parse(ew_str_from(text), &ms) || ms != day * 86400000 + of_day) {
                    fail_msg("%s is %" PRId64, text, ms);
                }
                day++;
                if (ms >= 0) {
                    back[EW__WHEN_LEN] = 0;
                    ew__when_write((uint64_t)ms, back);
                    assert_string_equal(back, text);
                }
            }
        }
    }
    assert_true(day * 86400000 == LAST_MS + 1);
}

static void expect_written(uint64_t ms, const char *expected) {
    char out[EW__WHEN_LEN + 2];
    memset(out, '#', sizeof(out));
    ew__when_write(ms, out);
    assert_int_equal(out[EW__WHEN_LEN], '#'); /* not a byte more */
    out[EW__WHEN_LEN] = 0;
    assert_string_equal(out, expected);
}

static void test_base_when__written(void **state) {
    (void)state;
    expect_written(0, "1970-01-01T00:00:00.000Z");
    expect_written(1, "1970-01-01T00:00:00.001Z");
    expect_written(999, "1970-01-01T00:00:00.999Z");
    expect_written(86399999, "1970-01-01T23:59:59.999Z");
    expect_written(86400000, "1970-01-02T00:00:00.000Z");
    expect_written(UINT64_C(951782400000), "2000-02-29T00:00:00.000Z");
    expect_written(UINT64_C(1772359200123), "2026-03-01T10:00:00.123Z");
    expect_written((uint64_t)LAST_MS, "9999-12-31T23:59:59.999Z");
    expect_written((uint64_t)LAST_MS + 1, "9999-12-31T23:59:59.999Z");
    expect_written(UINT64_MAX, "9999-12-31T23:59:59.999Z");
}

static void test_base_when__there_and_back(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 3);
    ew__rng rng;
    ew__rng_init(&rng, &t.env);
    for (int i = 0; i < 200000; i++) {
        uint64_t ms = ew__rng_next(&rng) % (uint64_t)(LAST_MS + 1);
        char text[EW__WHEN_LEN];
        int64_t back = -1;
        ew__when_write(ms, text);
        assert_true(ew__when_parse(ew__str(text, sizeof(text)), &back));
        assert_true((uint64_t)back == ms);
    }
}

/* With a memo it is the same, whatever was written before. */
static void test_base_when__again(void **state) {
    (void)state;
    static const uint64_t times[] = {0,
                                     1,
                                     999,
                                     1000,
                                     1001,
                                     999,
                                     UINT64_C(1700000000123),
                                     0,
                                     5,
                                     UINT64_C(1700000000999),
                                     UINT64_C(1700000001000),
                                     UINT64_C(1700000000999),
                                     LAST_MS - 1,
                                     LAST_MS,
                                     LAST_MS + 1,
                                     LAST_MS + 5000,
                                     UINT64_MAX,
                                     UINT64_MAX,
                                     LAST_MS - 7};
    ew__when_memo memo = {0};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        char text[EW__WHEN_LEN], again[EW__WHEN_LEN];
        ew__when_write(times[i], text);
        ew__when_write_again(&memo, times[i], again);
        assert_memory_equal(text, again, sizeof(text));
    }
}

/* ---- ids ---- */

static size_t digit_value(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = memchr(digits, c, 16);
    assert_non_null(at);
    return (size_t)(at - digits);
}

static void test_base_when__ids(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 4);
    ew__rng rng;
    ew__rng_init(&rng, &t.env);
    char before[EW__UUID_LEN] = {0};
    bool variants[16] = {false};
    unsigned seen[EW__UUID_LEN] = {0}; /* which digits stood where */
    for (int i = 0; i < 2000; i++) {
        char id[EW__UUID_LEN + 1];
        id[EW__UUID_LEN] = '#';
        ew__uuid_write(&rng, id);
        assert_int_equal(id[EW__UUID_LEN], '#');
        for (size_t at = 0; at < EW__UUID_LEN; at++) {
            bool dash = at == 8 || at == 13 || at == 18 || at == 23;
            if (dash) {
                assert_int_equal(id[at], '-');
            } else {
                seen[at] |= 1u << digit_value(id[at]);
            }
        }
        assert_int_equal(id[14], '4');
        variants[digit_value(id[19])] = true;
        assert_memory_not_equal(id, before, EW__UUID_LEN);
        memcpy(before, id, EW__UUID_LEN);
    }
    for (int v = 0; v < 16; v++) {
        assert_int_equal(variants[v], v >= 8 && v <= 11);
    }
    for (size_t at = 0; at < EW__UUID_LEN; at++) { /* everywhere else is chance */
        bool fixed = at == 8 || at == 13 || at == 14 || at == 18 || at == 19 || at == 23;
        assert_true(fixed || seen[at] == 0xffff);
    }
    ew__rng one = {{1, 2, 3, 4}}, two = {{1, 2, 3, 4}};
    char a[EW__UUID_LEN], b[EW__UUID_LEN];
    ew__uuid_write(&one, a);
    ew__uuid_write(&two, b);
    assert_memory_equal(a, b, EW__UUID_LEN); /* the same chance, the same id */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_when__known_times),
        cmocka_unit_test(test_base_when__letters_and_zones),
        cmocka_unit_test(test_base_when__fractions),
        cmocka_unit_test(test_base_when__refused),
        cmocka_unit_test(test_base_when__every_byte_counts),
        cmocka_unit_test(test_base_when__every_day),
        cmocka_unit_test(test_base_when__written),
        cmocka_unit_test(test_base_when__there_and_back),
        cmocka_unit_test(test_base_when__again),
        cmocka_unit_test(test_base_when__ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
