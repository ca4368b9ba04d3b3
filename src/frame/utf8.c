/*
 * frame/utf8.c: text in pieces. ASCII is passed over by words; the rest goes byte by byte, as a character may be cut
 * anywhere.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/utf8.h"

#include "base/util.h"

#define HIGH UINT64_C(0x8080808080808080)

typedef uint64_t block __attribute__((vector_size(16)));

static block load(const uint8_t *p) {
    block bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return bytes;
}

static bool is_ascii(block bytes) { return ((bytes[0] | bytes[1]) & HIGH) == 0; }

/* How many bytes at the beginning are ASCII, or a few less. */
static size_t pass_ascii(const uint8_t *p, size_t n) {
    const size_t size = sizeof(block);
    size_t i = 0;
    while (n - i >= 4 * size &&
           is_ascii(load(p + i) | load(p + i + size) | load(p + i + 2 * size) | load(p + i + 3 * size))) {
        i += 4 * size;
    }
    while (n - i >= size && is_ascii(load(p + i))) {
        i += size;
    }
    return n >= size && n - i < size && is_ascii(load(p + n - size)) ? n : i;
}

/* The first byte of a character that is not ASCII. What may follow it: RFC 3629, section 4. */
static bool begin(ew__utf8 *text, uint8_t c) {
    if (c < 0xc2 || c > 0xf4) {
        return false;
    }
    text->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    text->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    text->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    return true;
}

bool ew__utf8_feed(ew__utf8 *text, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n;) {
        if (text->need == 0 && p[i] < 0x80) {
            size_t passed = pass_ascii(p + i, n - i);
            i += passed > 0 ? passed : 1;
            continue;
        }
        if (text->need == 0) {
            if (!begin(text, p[i])) {
                return false;
            }
        } else if (p[i] < text->low || p[i] > text->high) {
            return false;
        } else {
            *text = (ew__utf8){.need = (uint8_t)(text->need - 1), .low = 0x80, .high = 0xbf};
        }
        i++;
    }
    return true;
}
