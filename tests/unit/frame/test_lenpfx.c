/*
 * tests/unit/frame/test_lenpfx.c: messages behind their length, at every cut and around every limit.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "frame/lenpfx.h"

#define LIMIT 1000u

typedef struct answer {
    ew__lenpfx_event event;
    size_t size;
    size_t body_at; /* offset of the body; SIZE_MAX when there is none */
    size_t body_len;
} answer;

/* Reads a copy that ends where the bytes end, so that AddressSanitizer sees a look past them. */
static answer look(const void *bytes, size_t n, uint64_t limit) {
    char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    if (n > 0) {
        memcpy(copy, bytes, n);
    }
    ew_str body = {NULL, 77};
    answer a = {.size = 77, .body_at = SIZE_MAX};
    a.event = ew__lenpfx_read(ew__str(copy, n), limit, &body, &a.size);
    a.body_len = body.len;
    if (body.ptr != NULL) {
        a.body_at = (size_t)(body.ptr - copy);
    }
    assert_int_equal(a.event == EW__LENPFX_FRAME, body.ptr != NULL);
    free(copy);
    return a;
}

static void expect_head(uint32_t len, uint64_t limit, ew__lenpfx_event event, size_t size) {
    uint8_t head[EW__LENPFX_HEAD] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    answer a = look(head, sizeof(head), limit);
    assert_int_equal(a.event, event);
    assert_true(a.size == size);
}

static void test_frame_lenpfx__lengths_are_judged_by_the_head_alone(void **state) {
    (void)state;
    expect_head(0, LIMIT, EW__LENPFX_EMPTY, 0);
    expect_head(0, 0, EW__LENPFX_EMPTY, 0);
    expect_head(0, UINT64_MAX, EW__LENPFX_EMPTY, 0);
    expect_head(1, LIMIT, EW__LENPFX_MORE, 5);
    expect_head(1, 1, EW__LENPFX_MORE, 5);
    expect_head(1, 0, EW__LENPFX_TOO_LONG, 1);
    expect_head(LIMIT - 1, LIMIT, EW__LENPFX_MORE, LIMIT + 3);
    expect_head(LIMIT, LIMIT, EW__LENPFX_MORE, LIMIT + 4);
    expect_head(LIMIT + 1, LIMIT, EW__LENPFX_TOO_LONG, LIMIT + 1);
    expect_head(16777216, 16777216, EW__LENPFX_MORE, 16777220);
    expect_head(16777217, 16777216, EW__LENPFX_TOO_LONG, 16777217);
    expect_head(0x7fffffff, LIMIT, EW__LENPFX_TOO_LONG, 0x7fffffff);
    expect_head(0x80000000, LIMIT, EW__LENPFX_TOO_LONG, 0x80000000);
    expect_head(0xffffffff, LIMIT, EW__LENPFX_TOO_LONG, 0xffffffff);
    expect_head(0xffffffff, 0xfffffffe, EW__LENPFX_TOO_LONG, 0xffffffff);
    if (SIZE_MAX > UINT32_MAX) { /* where a size has 32 bits no frame of that size can be asked for */
        expect_head(0xffffffff, 0xffffffff, EW__LENPFX_MORE, (size_t)0xffffffff + 4);
        expect_head(0xffffffff, UINT64_MAX, EW__LENPFX_MORE, (size_t)0xffffffff + 4);
    }
}

static void test_frame_lenpfx__every_byte_of_the_head_counts(void **state) {
    (void)state;
    expect_head(0x01020304, 0x01020304, EW__LENPFX_MORE, 0x01020308);
    expect_head(0x01000000, 0x00ffffff, EW__LENPFX_TOO_LONG, 0x01000000);
    expect_head(0x00010000, 0x0000ffff, EW__LENPFX_TOO_LONG, 0x00010000);
    expect_head(0x00000100, 0x000000ff, EW__LENPFX_TOO_LONG, 0x00000100);
    expect_head(0x000000ff, 0x000000ff, EW__LENPFX_MORE, 0xff + 4); /* no sign */
    expect_head(0xf0f1f2f3, LIMIT, EW__LENPFX_TOO_LONG, 0xf0f1f2f3);
}

/* Fills len bytes of a message and its head in front; returns how many bytes that are. */
static size_t make(uint8_t *out, size_t len, unsigned seed) {
    assert_true(ew__lenpfx_head(len, LIMIT, out));
    for (size_t i = 0; i < len; i++) {
        out[EW__LENPFX_HEAD + i] = (uint8_t)(seed + i * 7);
    }
    return len + EW__LENPFX_HEAD;
}

/* Frames of many lengths in one stream: at every length of what has come, the first frame is whole or it is not. */
static void test_frame_lenpfx__every_cut(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 4, 5, 255, 256, 257, LIMIT - 1, LIMIT};
    uint8_t stream[2 * (LIMIT + EW__LENPFX_HEAD)];
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t whole = make(stream, lengths[i], 1);
        size_t both = whole + make(stream + whole, lengths[i], 200);
        for (size_t n = 0; n <= both; n++) {
            answer a = look(stream, n, LIMIT);
            assert_int_equal(a.event, n < whole ? EW__LENPFX_MORE : EW__LENPFX_FRAME);
            assert_int_equal(a.size, n < EW__LENPFX_HEAD ? EW__LENPFX_HEAD : whole);
            if (n >= whole) {
                assert_int_equal(a.body_at, EW__LENPFX_HEAD);
                assert_int_equal(a.body_len, lengths[i]);
            }
        }
    }
}

/* As a reader does it: pieces come, whole frames leave, what is left over stays. */
static void test_frame_lenpfx__a_stream_in_pieces(void **state) {
    (void)state;
    uint8_t stream[64 * 80];
    size_t end = 0;
    for (unsigned i = 1; i <= 64; i++) {
        end += make(stream + end, i, i);
    }
    for (size_t step = 1; step <= 200; step++) {
        size_t at = 0;
        unsigned frames = 0;
        for (size_t come = 0; come < end;) {
            come = come + step < end ? come + step : end;
            for (;;) {
                ew_str body;
                size_t size;
                if (ew__lenpfx_read(ew__str(stream + at, come - at), LIMIT, &body, &size) != EW__LENPFX_FRAME) {
                    break;
                }
                frames++;
                assert_int_equal(body.len, frames);
                assert_int_equal((uint8_t)body.ptr[0], frames);
                at += size;
            }
        }
        assert_int_equal(frames, 64);
        assert_int_equal(at, end);
    }
}

static void expect_written(size_t len, uint64_t limit, bool is, uint32_t number) {
    uint8_t head[EW__LENPFX_HEAD + 1];
    memset(head, 0xee, sizeof(head));
    assert_int_equal(ew__lenpfx_head(len, limit, head), is);
    assert_int_equal(head[EW__LENPFX_HEAD], 0xee);
    uint32_t expected = is ? number : 0xeeeeeeee;
    for (unsigned i = 0; i < EW__LENPFX_HEAD; i++) {
        assert_int_equal(head[i], (expected >> (24 - 8 * i)) & 0xff);
    }
}

static void test_frame_lenpfx__heads_written(void **state) {
    (void)state;
    expect_written(0, LIMIT, false, 0);
    expect_written(0, 0, false, 0);
    expect_written(1, 0, false, 0);
    expect_written(1, 1, true, 1);
    expect_written(LIMIT, LIMIT, true, LIMIT);
    expect_written(LIMIT + 1, LIMIT, false, 0);
    expect_written(0x01020304, UINT64_MAX, true, 0x01020304);
    expect_written(0xffffffff, UINT64_MAX, true, 0xffffffff);
    expect_written(0xffffffff, 0xffffffff, true, 0xffffffff);
    expect_written(0xffffffff, 0xfffffffe, false, 0);
    expect_written(SIZE_MAX, LIMIT, false, 0);
#if SIZE_MAX > UINT32_MAX
    expect_written((size_t)0x100000000, UINT64_MAX, false, 0);
    expect_written(SIZE_MAX, UINT64_MAX, false, 0);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_lenpfx__lengths_are_judged_by_the_head_alone),
        cmocka_unit_test(test_frame_lenpfx__every_byte_of_the_head_counts),
        cmocka_unit_test(test_frame_lenpfx__every_cut),
        cmocka_unit_test(test_frame_lenpfx__a_stream_in_pieces),
        cmocka_unit_test(test_frame_lenpfx__heads_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
