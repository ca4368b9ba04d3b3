/*
 * tests/unit/frame/test_utf8.c: UTF-8 in pieces, against a table of the RFC spelled out, for all characters.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "frame/utf8.h"

static size_t encode(uint32_t c, uint8_t out[4]) {
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) {
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    }
    out[0] = (uint8_t)((0xf0u << (4 - n)) | c);
    return n;
}

/* Whether the text is UTF-8, the same in one piece, byte by byte, and after ASCII of any length. */
static bool is_utf8(const uint8_t *bytes, size_t n) {
    uint8_t copy[64];
    ew__utf8 whole = {0};
    bool good = ew__utf8_feed(&whole, bytes, n) && ew__utf8_is_whole(&whole);
    ew__utf8 cut = {0};
    bool cut_good = true;
    for (size_t i = 0; i < n && cut_good; i++) {
        cut_good = ew__utf8_feed(&cut, bytes + i, 1);
    }
    assert_int_equal(good, cut_good && ew__utf8_is_whole(&cut));
    size_t before = 1 + (size_t)(bytes[0] + bytes[n - 1]) % 40;
    memset(copy, 'a', before);
    memcpy(copy + before, bytes, n);
    ew__utf8 late = {0};
    assert_int_equal(good, ew__utf8_feed(&late, copy, before + n) && ew__utf8_is_whole(&late));
    return good;
}

static void test_frame_utf8__all_characters(void **state) {
    (void)state;
    uint8_t bytes[4];
    for (uint32_t c = 0; c < 0x110000; c++) {
        size_t n = encode(c, bytes);
        bool want = c < 0xd800 || c > 0xdfff;
        if (is_utf8(bytes, n) != want) {
            fail_msg("U+%04X", c);
        }
        if (n > 1 && is_utf8(bytes, n - 1)) {
            fail_msg("U+%04X without its end", c);
        }
    }
}

static void test_frame_utf8__refuses(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x80\x80",
                                      "\xe0\x9f\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf0\x80\x80\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xfe",
                                      "\xff",
                                      "\xed\xa0\x80",
                                      "\xc3(",
                                      "\xe2\x82(",
                                      "\xf0\x9f\x98(",
                                      "\xc3\xa9\xa9",
                                      "a\x80",
                                      "\xe2(\xa1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (is_utf8((const uint8_t *)bad[i], strlen(bad[i]))) {
            fail_msg("case %zu", i);
        }
    }
}

/* Broken text is told at the first byte that cannot be, not at the end of the character. */
static void test_frame_utf8__fails_fast(void **state) {
    (void)state;
    static const uint8_t begins[][2] = {{0xe0, 0x9f}, {0xed, 0xa0}, {0xf0, 0x8f}, {0xf4, 0x90}, {0xc2, 0x7f}};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        ew__utf8 text = {0};
        assert_true(ew__utf8_feed(&text, begins[i], 1));
        assert_false(ew__utf8_is_whole(&text));
        assert_false(ew__utf8_feed(&text, begins[i] + 1, 1));
    }
}

/* A bad byte at every place of texts of every length up to a few words. */
static void test_frame_utf8__every_place(void **state) {
    (void)state;
    uint8_t bytes[80];
    for (size_t n = 1; n <= sizeof(bytes); n++) {
        for (size_t at = 0; at < n; at++) {
            memset(bytes, 'x', n);
            ew__utf8 text = {0};
            assert_true(ew__utf8_feed(&text, bytes, n));
            bytes[at] = 0xff;
            assert_false(ew__utf8_feed(&text, bytes, n));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_utf8__all_characters),
        cmocka_unit_test(test_frame_utf8__refuses),
        cmocka_unit_test(test_frame_utf8__fails_fast),
        cmocka_unit_test(test_frame_utf8__every_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
