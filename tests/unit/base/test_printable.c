/*
 * tests/unit/base/test_printable.c: what a terminal must not be sent is escaped, all else stays.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/printable.h"
#include "base/util.h"

#define EXPECT(form, in, out) expect(form, EW_STR(in), out)

static void expect(ew__printable_form form, ew_str text, const char *expected) {
    char got[256];
    size_t n = ew__printable(text, form, got, sizeof got);
    assert_string_equal(got, expected);
    assert_int_equal(n, strlen(expected));
    assert_int_equal(ew__printable(text, form, NULL, 0), n);
}

static void test_base_printable__text_stays(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "a ~",
                                        "gr\xc3\xbc\xc3\x9f"
                                        "e",
                                        "\xc2\xa0",                 /* no-break space */
                                        "\xe2\x80\xa9\xe2\x80\xaf", /* around the overrides */
                                        "\xe2\x81\xa5\xe2\x81\xaa", /* around the isolates */
                                        "\xef\xbf\xbd",             /* U+FFFD itself */
                                        "\xf0\x9f\x98\x80",
                                        "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect(EW__PRINTABLE_LINE, ew_str_from(texts[i]), texts[i]);
        expect(EW__PRINTABLE_JSON, ew_str_from(texts[i]), texts[i]);
    }
}

static void test_base_printable__controls(void **state) {
    (void)state;
    EXPECT(EW__PRINTABLE_LINE, "a\x1b]0;x\x07\x7f", "a\\x1b]0;x\\x07\\x7f");
    EXPECT(EW__PRINTABLE_LINE, "\t\n\r\0", "\\x09\\x0a\\x0d\\x00");
    EXPECT(EW__PRINTABLE_LINES, "a\tb\nc\r\x1b", "a\tb\nc\\x0d\\x1b");
    EXPECT(EW__PRINTABLE_LINE,
           "\xc2\x80 \xc2\x9b"
           "31m \xc2\x9f",
           "\\xc2\\x80 \\xc2\\x9b31m \\xc2\\x9f");
    EXPECT(EW__PRINTABLE_LINE, "\xe2\x80\xaa\xe2\x80\xae", "\\xe2\\x80\\xaa\\xe2\\x80\\xae");
    EXPECT(EW__PRINTABLE_LINE, "\xe2\x81\xa6\xe2\x81\xa9", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9");
}

static void test_base_printable__broken_utf8(void **state) {
    (void)state;
    EXPECT(EW__PRINTABLE_LINE,
           "\x9b"
           "2J",
           "\\x9b2J");                           /* C1 of an 8-bit terminal */
    EXPECT(EW__PRINTABLE_LINE, "\xc2", "\\xc2"); /* cut */
    EXPECT(EW__PRINTABLE_LINE,
           "\xc2"
           "a",
           "\\xc2"
           "a");
    EXPECT(EW__PRINTABLE_LINE, "\xe2\x82", "\\xe2\\x82");
    EXPECT(EW__PRINTABLE_LINE, "\xc0\x9b", "\\xc0\\x9b"); /* overlong */
    EXPECT(EW__PRINTABLE_LINE, "\xe0\x82\x9b", "\\xe0\\x82\\x9b");
    EXPECT(EW__PRINTABLE_LINE, "\xf0\x80\x82\x9b", "\\xf0\\x80\\x82\\x9b");
    EXPECT(EW__PRINTABLE_LINE, "\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogate */
    EXPECT(EW__PRINTABLE_LINE, "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    EXPECT(EW__PRINTABLE_LINE, "\xff\xfe", "\\xff\\xfe");
}

/* The value that the JSON text has does not change. */
static void test_base_printable__json(void **state) {
    (void)state;
    EXPECT(EW__PRINTABLE_JSON, "[\r\n\t\"\\u001b\"]", "[   \"\\u001b\"]");
    EXPECT(EW__PRINTABLE_JSON, "\"\x7f\xc2\x9b\xe2\x80\xae\"", "\"\\u007f\\u009b\\u202e\"");
    EXPECT(EW__PRINTABLE_JSON, "\"\x9b\"", "\"\\ufffd\"");
}

/* No byte of any two bytes gets through that a terminal could obey. */
static void test_base_printable__all_pairs(void **state) {
    (void)state;
    for (unsigned i = 0; i < 0x10000; i++) {
        char in[2] = {(char)(i >> 8), (char)(i & 0xff)}, got[32];
        size_t n = ew__printable(ew__str(in, 2), EW__PRINTABLE_LINE, got, sizeof got);
        for (size_t k = 0; k < n; k++) {
            unsigned char c = (unsigned char)got[k];
            assert_true(c >= 0x20 && c != 0x7f);
            assert_true(c < 0x80 || (n == 2 && got[0] == in[0] && got[1] == in[1] && i >= 0xc2a0));
        }
    }
}

/* What does not fit is left out from a whole character on. */
static void test_base_printable__room(void **state) {
    (void)state;
    static const char *const expected[] = {"",
                                           "",
                                           "a",
                                           "a",
                                           "a\xc3\xbc",
                                           "a\xc3\xbc",
                                           "a\xc3\xbc",
                                           "a\xc3\xbc",
                                           "a\xc3\xbc\\x1b",
                                           "a\xc3\xbc\\x1b"
                                           "b"};
    for (size_t size = 1; size < sizeof expected / sizeof *expected; size++) {
        char got[16];
        memset(got, '#', sizeof got);
        assert_int_equal(ew__printable(EW_STR("a\xc3\xbc\x1b"
                                              "b"),
                                       EW__PRINTABLE_LINE, got, size),
                         8);
        assert_string_equal(got, expected[size]);
        assert_int_equal(got[size], '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_printable__text_stays),  cmocka_unit_test(test_base_printable__controls),
        cmocka_unit_test(test_base_printable__broken_utf8), cmocka_unit_test(test_base_printable__json),
        cmocka_unit_test(test_base_printable__all_pairs),   cmocka_unit_test(test_base_printable__room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
