/*
 * tests/transcripts/lengths.h: what came on a wire of messages behind their length, as lines. Read without src/frame, so
 * that both cannot be wrong in the same way.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_TRANSCRIPTS_LENGTHS_H
#define EW_TESTS_TRANSCRIPTS_LENGTHS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Each message becomes a line; what is none of it "(N bytes more)". For free(). */
static inline char *message_lines(const char *bytes, size_t n, size_t *ret_len) {
    FILE *out;
    char *lines = NULL;
    assert_non_null(out = open_memstream(&lines, ret_len));
    while (n >= 4) {
        const unsigned char *head = (const unsigned char *)bytes;
        size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        if (len > n - 4)
            break;
        (void)fprintf(out, "%.*s\n", (int)len, bytes + 4);
        bytes += len + 4;
        n -= len + 4;
    }
    if (n)
        (void)fprintf(out, "(%zu bytes more)\n", n);
    (void)fclose(out);
    return lines;
}

#endif
