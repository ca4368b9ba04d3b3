/*
 * json/plain.h: runs of bytes that mean themselves inside a string, sixteen or eight at a time. Inline, because most
 * strings are shorter than what a call costs. May include: base.
 */
#ifndef EW_JSON_PLAIN_H
#define EW_JSON_PLAIN_H

#include "json/bits.h"
#include <stdbool.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define EW__JSON_EACH 0x0101010101010101u
#define EW__JSON_TOPS 0x8080808080808080u

/*
 * The highest bit of each byte that is 0. A byte may borrow from the next one, so that what lies behind the first may be
 * taken for such, but never what lies before it.
 */
EW__JSON_INLINE uint64_t ew__json_zeros(uint64_t v) { return (v - EW__JSON_EACH) & ~v & EW__JSON_TOPS; }

/* The first byte is the lowest, on every machine; compilers make one load of it. */
EW__JSON_INLINE uint64_t ew__json_load8(const char *at) {
    const uint8_t *p = (const uint8_t *)at;
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

EW__JSON_INLINE bool ew__json_plain_byte(unsigned char c, bool ascii) {
    return c >= 0x20 && c != '"' && c != '\\' && (!ascii || c < 0x7f);
}

/* Of eight bytes, how many are plain before the first that is not. */
EW__JSON_INLINE unsigned ew__json_plain_of_eight(const char *at, bool ascii) {
    uint64_t v = ew__json_load8(at);
    uint64_t marks = ((v - EW__JSON_EACH * 0x20) & ~v & EW__JSON_TOPS) | ew__json_zeros(v ^ EW__JSON_EACH * '"') |
                     ew__json_zeros(v ^ EW__JSON_EACH * '\\');
    if (ascii) {
        marks |= (v & EW__JSON_TOPS) | ew__json_zeros(v ^ EW__JSON_EACH * 0x7f);
    }
    return marks ? ew__bits_first(marks) / 8 : 8;
}

#if defined(__SSE2__)
/* Of sixteen bytes, a bit for each that is not plain. */
EW__JSON_INLINE unsigned ew__json_marks_of_sixteen(const char *at, bool ascii) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    if (ascii) { /* the comparison is of signed bytes: those from 0x80 on are below all others */
        __m128i outside = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)), _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f)));
        marks = _mm_or_si128(marks, outside);
    } else {
        marks = _mm_or_si128(marks, _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v));
    }
    return (unsigned)_mm_movemask_epi8(marks);
}
#endif

/* The first byte that is not plain, or end. See ew__json_plain_run. */
EW__JSON_INLINE const char *ew__json_plain_end(const char *at, const char *end, bool ascii) {
#if defined(__SSE2__)
    for (; end - at >= 16; at += 16) {
        unsigned marks = ew__json_marks_of_sixteen(at, ascii);
        if (marks != 0) {
            return at + ew__bits_first(marks);
        }
    }
#endif
    while (end - at >= 8) {
        unsigned n = ew__json_plain_of_eight(at, ascii);
        at += n;
        if (n < 8) {
            return at;
        }
    }
    while (at < end && ew__json_plain_byte((unsigned char)*at, ascii)) {
        at++;
    }
    return at;
}

#endif
