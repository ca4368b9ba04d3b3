/*
 * frame/sha1.c: SHA-1, all of the text at once.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/sha1.h"

#include "base/util.h"

#define BLOCK 64

static uint32_t rotate(uint32_t word, unsigned n) { return word << n | word >> (32 - n); }

static uint32_t read_word(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The function and constant of a round. */
static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d) {
    switch (round / 20) {
    case 0:
        return ((b & c) | (~b & d)) + UINT32_C(0x5a827999);
    case 1:
        return (b ^ c ^ d) + UINT32_C(0x6ed9eba1);
    case 2:
        return ((b & c) | (b & d) | (c & d)) + UINT32_C(0x8f1bbcdc);
    default:
        return (b ^ c ^ d) + UINT32_C(0xca62c1d6);
    }
}

static void add_block(uint32_t state[5], const uint8_t *block) {
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (unsigned i = 0; i < 80; i++) {
        w[i] = i < 16 ? read_word(block + (size_t)4 * i) : rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        uint32_t next = rotate(a, 5) + mix(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void ew__sha1(ew_str text, uint8_t out[EW__SHA1_SIZE]) {
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *p = (const uint8_t *)text.ptr;
    uint8_t last[2 * BLOCK] = {0};
    size_t whole = text.len / BLOCK * BLOCK, rest = text.len - whole;
    for (size_t at = 0; at < whole; at += BLOCK) {
        add_block(state, p + at);
    }
    /* What is left, a bit that ends it, and the number of bits at the end of the last block. */
    size_t n_last = rest + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    if (rest > 0) {
        memcpy(last, p + whole, rest);
    }
    last[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++) {
        last[n_last - 1 - i] = (uint8_t)((uint64_t)text.len * 8 >> (8 * i));
    }
    for (size_t at = 0; at < n_last; at += BLOCK) {
        add_block(state, last + at);
    }
    for (size_t i = 0; i < EW__SHA1_SIZE; i++) {
        out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
