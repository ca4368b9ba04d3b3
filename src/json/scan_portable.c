/*
 * json/scan_portable.c: the scanner for every processor. Only the kernel is here; the scanner is scan_core.h. One
 * question, "which bytes lie in this range", answers all others: with SSE2 (every x86-64 has it) or eight bytes at a
 * time in plain C.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/bits.h"

#define EW__SCAN EW__JSON_INLINE

#if defined(__SSE2__) && !defined(EW__JSON_NO_SSE2)
#include <emmintrin.h>
typedef struct chunk {
    __m128i part[4];
} chunk;
#else
typedef struct chunk {
    uint64_t part[8];
} chunk;
#endif

#include "json/scan_core.h"

#if defined(__SSE2__) && !defined(EW__JSON_NO_SSE2)

EW__SCAN void load_chunk(chunk *c, const char *at) {
    for (int i = 0; i < 4; i++) {
        c->part[i] = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
    }
}

/* The bytes from `first` to `last`, both below 0x80. Bytes above that are negative here and lie in no range. */
EW__SCAN uint64_t between(const chunk *c, int first, int last) {
    __m128i below = _mm_set1_epi8((char)(first - 1)), above = _mm_set1_epi8((char)last);
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i in = _mm_andnot_si128(_mm_cmpgt_epi8(c->part[i], above), _mm_cmpgt_epi8(c->part[i], below));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(in) << (16 * i);
    }
    return mask;
}

EW__SCAN uint64_t equal_to(const chunk *c, char byte) {
    __m128i all = _mm_set1_epi8(byte);
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(c->part[i], all)) << (16 * i);
    }
    return mask;
}

EW__SCAN uint64_t high_bits(const chunk *c) {
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(c->part[i]) << (16 * i);
    }
    return mask;
}

#else

#define EACH 0x0101010101010101u
#define TOPS 0x8080808080808080u

EW__SCAN void load_chunk(chunk *c, const char *at) {
    for (int i = 0; i < 8; i++) {
        memcpy(&c->part[i], at + 8 * i, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        c->part[i] = __builtin_bswap64(c->part[i]);
#endif
    }
}

/* The top bits of eight bytes, as the low eight bits: the product moves each to its own place in the top byte. */
EW__SCAN uint64_t gather(uint64_t tops) { return ((tops >> 7) * 0x0102040810204080u) >> 56; }

/* The bytes from `first` to `last`, both below 0x80: no byte's sum reaches its neighbour. */
EW__SCAN uint64_t between(const chunk *c, int first, int last) {
    uint64_t mask = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t v = c->part[i], seven = v & ~TOPS;
        uint64_t reaches = seven + EACH * (uint64_t)(0x80 - first), exceeds = seven + EACH * (uint64_t)(0x7f - last);
        mask |= gather(reaches & ~exceeds & ~v & TOPS) << (8 * i);
    }
    return mask;
}

EW__SCAN uint64_t equal_to(const chunk *c, char byte) { return between(c, byte, byte); }

EW__SCAN uint64_t high_bits(const chunk *c) {
    uint64_t mask = 0;
    for (int i = 0; i < 8; i++) {
        mask |= gather(c->part[i] & TOPS) << (8 * i);
    }
    return mask;
}

#endif

EW__SCAN void classify(const chunk *c, bytes_of *b) {
    uint64_t brace_open = equal_to(c, '{'), brace_close = equal_to(c, '}'), control = between(c, 0, 0x1f);
    b->special = (control | high_bits(c) | equal_to(c, '\\')) != 0;
    b->quote = equal_to(c, '"');
    b->space = equal_to(c, ' ');
    if (control != 0) {
        b->space |= equal_to(c, '\t') | equal_to(c, '\n') | equal_to(c, '\r');
    }
    b->colon = equal_to(c, ':');
    b->comma = equal_to(c, ',');
    b->open = brace_open | equal_to(c, '[');
    b->close = brace_close | equal_to(c, ']');
    b->brace = brace_open | brace_close;
}

EW__SCAN void classify_special(const chunk *c, special_of *x) {
    x->backslash = equal_to(c, '\\');
    x->high = high_bits(c);
    x->control = between(c, 0, 0x1f);
    x->newline = x->control != 0 ? equal_to(c, '\n') | equal_to(c, '\r') : 0;
}

EW__SCAN void classify_numbers(const chunk *c, numbers_of *n) {
    n->digit = between(c, '0', '9');
    n->zero = equal_to(c, '0');
    n->dot = equal_to(c, '.');
    n->minus = equal_to(c, '-');
}

EW__SCAN void classify_exponents(const chunk *c, exponents_of *n) {
    n->letter = equal_to(c, 'e') | equal_to(c, 'E');
    n->sign = equal_to(c, '-') | equal_to(c, '+');
}

EW__SCAN void classify_escapes(const chunk *c, escapes_of *e) {
    e->u = equal_to(c, 'u');
    e->letter = e->u | equal_to(c, '"') | equal_to(c, '/') | equal_to(c, 'b') | equal_to(c, 'f') | equal_to(c, 'n') |
                equal_to(c, 'r') | equal_to(c, 't');
    e->hex = between(c, '0', '9') | between(c, 'a', 'f') | between(c, 'A', 'F');
}

EW__SCAN uint64_t prefix_xor(uint64_t mask) {
    for (unsigned step = 1; step < 64; step *= 2) {
        mask ^= mask << step;
    }
    return mask;
}

/*
 * What must follow, as one number: how many continuation bytes (bits 16 and 17), and the range of the next one (lowest
 * in bits 0 to 7, highest in bits 8 to 15). 0 between characters.
 */
#define UTF8_NEEDS(n, lowest, highest) ((uint32_t)(n) << 16 | (uint32_t)(highest) << 8 | (uint32_t)(lowest))

static uint32_t utf8_lead(unsigned byte) {
    if (byte >= 0xc2 && byte <= 0xdf) {
        return UTF8_NEEDS(1, 0x80, 0xbf);
    }
    switch (byte) {
    case 0xe0:
        return UTF8_NEEDS(2, 0xa0, 0xbf);
    case 0xed:
        return UTF8_NEEDS(2, 0x80, 0x9f);
    case 0xf0:
        return UTF8_NEEDS(3, 0x90, 0xbf);
    case 0xf4:
        return UTF8_NEEDS(3, 0x80, 0x8f);
    default:
        break;
    }
    if (byte >= 0xe1 && byte <= 0xef) {
        return UTF8_NEEDS(2, 0x80, 0xbf);
    }
    return byte >= 0xf1 && byte <= 0xf3 ? UTF8_NEEDS(3, 0x80, 0xbf) : 0;
}

EW__SCAN bool utf8_bad(scan *s, const chunk *c, const char *at, bool first) {
    (void)c;
    (void)first;
    uint32_t state = s->utf8_state;
    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned byte = (unsigned char)at[i];
        if (state != 0) {
            if (byte < (state & 0xff) || byte > (state >> 8 & 0xff)) {
                return true;
            }
            state = state >> 16 == 1 ? 0 : UTF8_NEEDS((state >> 16) - 1, 0x80, 0xbf);
        } else if (byte >= 0x80) {
            state = utf8_lead(byte);
            if (state == 0) {
                return true;
            }
        }
    }
    s->utf8_state = state;
    s->utf8_open = state != 0;
    return false;
}

bool ew__json_scan_portable(ew__json_doc *doc, ew_str text, uint32_t limit) { return scan_any(doc, text, limit); }

const char *ew__json_skip_container_portable(const char *at, const char *end) { return skip_container(at, end); }
