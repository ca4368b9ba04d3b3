/*
 * json/scan_avx2.c: the scanner for x86-64 processors with AVX2. Only the kernel is here; the scanner is scan_core.h.
 * Compiled with the flags of everything else: each function names its instruction set itself.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/scan.h"

#if EW__JSON_AVX2

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,pclmul,bmi,bmi2,popcnt")))
#define EW__SCAN static inline __attribute__((always_inline, target("avx2,pclmul,bmi,bmi2,popcnt")))

typedef struct chunk {
    __m256i lo, hi;
} chunk;

#include "json/scan_core.h"

EW__SCAN __m256i load32(const char *at) { return _mm256_loadu_si256((const __m256i *)(const void *)at); }

EW__SCAN void load_chunk(chunk *c, const char *at) {
    c->lo = load32(at);
    c->hi = load32(at + 32);
}

EW__SCAN uint64_t mask_of(__m256i lo, __m256i hi) {
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(lo) | (uint64_t)(uint32_t)_mm256_movemask_epi8(hi) << 32;
}

EW__SCAN uint64_t equal_to(const chunk *c, char byte) {
    __m256i all = _mm256_set1_epi8(byte);
    return mask_of(_mm256_cmpeq_epi8(c->lo, all), _mm256_cmpeq_epi8(c->hi, all));
}

#define TABLE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/*
 * Each bit of a class byte is a set of bytes that is a product: a set of low nibbles times a set of high nibbles. Two
 * lookups and an AND give eight such sets at once. Bytes above 0x7f get 0 from the first lookup.
 */
EW__SCAN __m256i class_of(__m256i v, __m256i low, __m256i high) {
    __m256i nibble = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    return _mm256_and_si256(_mm256_shuffle_epi8(low, v), _mm256_shuffle_epi8(high, nibble));
}

/* The bytes whose class has bit k. */
#define CLASS_BIT(lo, hi, k) mask_of(_mm256_slli_epi16(lo, 7 - (k)), _mm256_slli_epi16(hi, 7 - (k)))

EW__SCAN void classify(const chunk *c, bytes_of *b) {
    /* 1 colon 3a, 2 comma 2c, 4 open 5b 7b, 8 close 5d 7d, 16 brace 7b 7d, 64 backslash 5c, 128 control 00 to 1f */
    const char k = (char)0x80;
    __m256i low = TABLE(k, k, k, k, k, k, k, k, k, k, k | 1, k | 4 | 16, k | 2 | 64, k | 8 | 16, k, k);
    __m256i high = TABLE(k, k, 2, 1, 0, 4 | 8 | 64, 0, 4 | 8 | 16, 0, 0, 0, 0, 0, 0, 0, 0);
    __m256i lo = class_of(c->lo, low, high), hi = class_of(c->hi, low, high), any = _mm256_or_si256(lo, hi);
    /* A white space byte is the one that its own low nibble names; where there is none stands one of another nibble. */
    __m256i spaces = TABLE(' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0);
    b->space = mask_of(_mm256_cmpeq_epi8(c->lo, _mm256_shuffle_epi8(spaces, c->lo)),
                       _mm256_cmpeq_epi8(c->hi, _mm256_shuffle_epi8(spaces, c->hi)));
    any = _mm256_or_si256(_mm256_or_si256(c->lo, c->hi), _mm256_or_si256(any, _mm256_add_epi8(any, any)));
    b->special = _mm256_movemask_epi8(any) != 0;
    b->quote = equal_to(c, '"');
    b->colon = CLASS_BIT(lo, hi, 0);
    b->comma = CLASS_BIT(lo, hi, 1);
    b->open = CLASS_BIT(lo, hi, 2);
    b->close = CLASS_BIT(lo, hi, 3);
    b->brace = CLASS_BIT(lo, hi, 4);
}

EW__SCAN void classify_special(const chunk *c, special_of *x) {
    __m256i top = _mm256_set1_epi8(0x1f);
    x->backslash = equal_to(c, '\\');
    x->high = mask_of(c->lo, c->hi);
    x->control = mask_of(_mm256_cmpeq_epi8(_mm256_min_epu8(c->lo, top), c->lo),
                         _mm256_cmpeq_epi8(_mm256_min_epu8(c->hi, top), c->hi));
    x->newline = x->control != 0 ? equal_to(c, '\n') | equal_to(c, '\r') : 0;
}

EW__SCAN void classify_numbers(const chunk *c, numbers_of *n) {
    /* 128 digit 30 to 39, 1 zero 30, 2 dot 2e, 4 minus 2d */
    const char d = (char)0x80;
    __m256i low = TABLE(d | 1, d, d, d, d, d, d, d, d, d, 0, 0, 0, 4, 2, 0);
    __m256i high = TABLE(0, 0, 2 | 4, d | 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __m256i lo = class_of(c->lo, low, high), hi = class_of(c->hi, low, high);
    n->digit = mask_of(lo, hi);
    n->zero = CLASS_BIT(lo, hi, 0);
    n->dot = CLASS_BIT(lo, hi, 1);
    n->minus = CLASS_BIT(lo, hi, 2);
}

EW__SCAN void classify_exponents(const chunk *c, exponents_of *n) {
    __m256i e = _mm256_set1_epi8('e'), bit = _mm256_set1_epi8(0x20);
    n->letter =
        mask_of(_mm256_cmpeq_epi8(_mm256_or_si256(c->lo, bit), e), _mm256_cmpeq_epi8(_mm256_or_si256(c->hi, bit), e));
    n->sign = equal_to(c, '-') | equal_to(c, '+');
}

EW__SCAN void classify_escapes(const chunk *c, escapes_of *e) {
    /*
     * 1 quote 22 slash 2f, 2 b 62 f 66 n 6e, 4 r 72 t 74 u 75, 8 digits, 16 letters of hex 41 to 46 and 61 to 66, 32
     * u
     */
    __m256i low = TABLE(8, 8 | 16, 1 | 2 | 4 | 8 | 16, 8 | 16, 4 | 8 | 16, 4 | 8 | 16 | 32, 2 | 8 | 16, 8, 8, 8, 0, 0,
                        0, 0, 2, 1);
    __m256i high = TABLE(0, 0, 1, 8, 16, 0, 2 | 16, 4 | 32, 0, 0, 0, 0, 0, 0, 0, 0);
    __m256i lo = class_of(c->lo, low, high), hi = class_of(c->hi, low, high);
    e->letter = CLASS_BIT(lo, hi, 0) | CLASS_BIT(lo, hi, 1) | CLASS_BIT(lo, hi, 2);
    e->hex = CLASS_BIT(lo, hi, 3) | CLASS_BIT(lo, hi, 4);
    e->u = CLASS_BIT(lo, hi, 5);
}

/* Bit i of the result is the parity of bits 0 to i: a carry-less product with all ones. */
EW__SCAN uint64_t prefix_xor(uint64_t mask) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)mask), _mm_set1_epi8(-1), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/*
 * UTF-8, after the idea of Keiser and Lemire ("Validating UTF-8 in less than one instruction per byte", 2020): what may
 * be wrong with two neighbouring bytes shows in three nibbles, so that three lookups name the faults each nibble
 * allows, and the AND of them those that are there.
 */
enum {
    SHORT = 1,      /* lead byte, then no continuation */
    LONG = 2,       /* ASCII, then a continuation */
    OVER3 = 4,      /* e0 80..9f */
    LARGE = 8,      /* f4 90.., f5.. */
    SURROGATE = 16, /* ed a0.. */
    OVER2 = 32,     /* c0, c1 */
    OVER4 = 64,     /* f0 80..8f; also f5.. 80..8f */
    TWO = 128,      /* two continuations: fine only where a longer sequence wants them */
    ANY = SHORT | LONG | TWO
};

EW__SCAN __m256i utf8_faults(__m256i v, __m256i back1, __m256i back2, __m256i back3) {
#define B(x) ((char)(x))
    const char a = B(ANY), l = B(ANY | LARGE | OVER4);
    __m256i by_high1 = TABLE(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, B(TWO), B(TWO), B(TWO), B(TWO),
                             SHORT | OVER2, SHORT, SHORT | OVER3 | SURROGATE, SHORT | LARGE | OVER4);
    __m256i by_low1 = TABLE(B(ANY | OVER2 | OVER3 | OVER4), B(ANY | OVER2), a, a, B(ANY | LARGE), l, l, l, l, l, l, l,
                            l, B(ANY | LARGE | OVER4 | SURROGATE), l, l);
    const char c8 = B(LONG | TWO | OVER2 | OVER3 | OVER4), c9 = B(LONG | TWO | OVER2 | OVER3 | LARGE);
    const char ca = B(LONG | TWO | OVER2 | SURROGATE | LARGE);
    __m256i by_high2 =
        TABLE(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, c8, c9, ca, ca, SHORT, SHORT, SHORT, SHORT);
#undef B
    __m256i nibble = _mm256_set1_epi8(15);
    __m256i high1 = _mm256_shuffle_epi8(by_high1, _mm256_and_si256(_mm256_srli_epi16(back1, 4), nibble));
    __m256i low1 = _mm256_shuffle_epi8(by_low1, _mm256_and_si256(back1, nibble));
    __m256i high2 = _mm256_shuffle_epi8(by_high2, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
    __m256i faults = _mm256_and_si256(_mm256_and_si256(high1, low1), high2);
    /*
     * Third and fourth bytes: there, and only there, two continuations must stand; the top bit says so on both sides.
     */
    __m256i third = _mm256_subs_epu8(back2, _mm256_set1_epi8(0xe0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(back3, _mm256_set1_epi8(0xf0 - 0x80));
    __m256i wanted = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
    return _mm256_xor_si256(wanted, faults);
}

EW__SCAN bool utf8_bad(scan *s, const chunk *c, const char *at, bool first) {
    char copy[4 + BLOCK] = {0}; /* the first block has no bytes before it that could be read */
    if (first) {
        memcpy(copy + 4, at, BLOCK);
        at = copy + 4;
    }
    __m256i lo = utf8_faults(c->lo, load32(at - 1), load32(at - 2), load32(at - 3));
    __m256i hi = utf8_faults(c->hi, load32(at + 31), load32(at + 30), load32(at + 29));
    const unsigned char *last = (const unsigned char *)at + BLOCK;
    s->utf8_open = last[-1] >= 0xc0 || last[-2] >= 0xe0 || last[-3] >= 0xf0;
    __m256i both = _mm256_or_si256(lo, hi);
    return !_mm256_testz_si256(both, both);
}

TARGET bool ew__json_scan_avx2(ew__json_doc *doc, ew_str text, uint32_t limit) { return scan_any(doc, text, limit); }

TARGET const char *ew__json_skip_container_avx2(const char *at, const char *end) { return skip_container(at, end); }

#else
typedef int ew__json_scan_avx2_is_empty; /* ISO C wants something here */
#endif
