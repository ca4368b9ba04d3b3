/*
 * fuzz/fuzz_cutter.c: connections cut into frames for --verbose, and the frames as lines of text: any bytes in both
 * directions. No byte is lost, the lines contain no control bytes, and the pieces in which the bytes arrive only change
 * how bytes that are not frames are joined. The first byte of the input selects the pieces.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/cutter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) {
        abort();
    }
}

typedef struct sight {
    ew__cutter cutter;
    uint64_t size[2];
    uint64_t n_frames; /* that are some */
} sight;

static void on_frame(ew__cutter *cutter, const ew_frame *frame) {
    sight *s = cutter->ud;
    char small[64];
    check(frame->bytes.len <= frame->size && frame->text.len <= frame->text_size && frame->text_size <= frame->size);
    s->size[frame->out] += frame->size;
    s->n_frames += frame->kind != EW_FRAME_BYTES;
    if (frame->kind == EW_FRAME_BYTES && frame->size < 4) {
        return; /* garbage that came byte by byte: it looks the same every time */
    }
    ew_frame copy = *frame;
    copy.wire = "fuzz";
    size_t n = ew_frame_format(&copy, 0, 0, NULL, 0);
    char *lines = malloc(n + 1);
    check(lines != NULL && ew_frame_format(&copy, 0, 0, lines, n + 1) == n && strlen(lines) == n);
    check(ew_frame_format(&copy, 0, 0, small, sizeof small) == n && strlen(small) < sizeof small);
    for (size_t i = 0; i < n; i++) {
        check(lines[i] == '\n' || ((unsigned char)lines[i] >= 0x20 && lines[i] != 0x7f));
    }
    free(lines);
}

/* Two directions take turns, in pieces. */
static uint64_t look(const uint8_t *data, size_t size, size_t piece, size_t keep) {
    sight s = {.n_frames = 0};
    uint64_t fed[2] = {0};
    ew__cutter_init(&s.cutter, ew_env_default(), keep, 4096, on_frame, &s);
    bool out = true;
    for (size_t at = 0; at < size;) {
        const uint8_t *turn = memchr(data + at, 0xfe, size - at); /* never part of UTF-8: it passes the word */
        size_t end = turn ? (size_t)(turn - data) : size;
        for (; at < end; at += piece < end - at ? piece : end - at) {
            size_t n = piece < end - at ? piece : end - at;
            ew__cutter_feed(&s.cutter, out, data + at, n);
            fed[out] += n;
        }
        at += turn ? 1 : 0;
        out = !out;
    }
    ew__cutter_end(&s.cutter);
    ew__cutter_done(&s.cutter);
    check(s.size[0] == fed[0] && s.size[1] == fed[1]);
    return s.n_frames;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    size_t piece = 1 + data[0] % 64u;
    uint64_t whole = look(data + 1, size - 1, size, SIZE_MAX / 4);
    check(look(data + 1, size - 1, piece, 16) <= whole + size);
    (void)look(data + 1, size - 1, 1, 200);
    return 0;
}
