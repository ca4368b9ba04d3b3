/*
 * base/sha256.c: see sha256.h. The constants are the fractional parts of roots of primes, as FIPS 180-4 sections 4.2.2
 * and 5.3.3 list them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/sha256.h"
#include <string.h>

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n) { return (x >> n) | (x << (32 - n)); }

static void schedule(uint32_t w[64], const uint8_t block[64]) {
    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *b = block + 4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/*
 * One round. The standard then renames a to h; instead the caller passes them rotated by one, so that nothing is moved:
 * what was h is then a.
 */
static inline void round_of(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
                            uint32_t *h, uint32_t kw) {
    uint32_t t1 = *h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + kw;
    *d += t1;
    *h = t1 + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void compress(uint32_t state[8], const uint8_t block[64]) {
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    schedule(w, block);
    for (unsigned i = 0; i < 64; i += 8) {
        round_of(a, b, c, &d, e, f, g, &h, k[i] + w[i]);
        round_of(h, a, b, &c, d, e, f, &g, k[i + 1] + w[i + 1]);
        round_of(g, h, a, &b, c, d, e, &f, k[i + 2] + w[i + 2]);
        round_of(f, g, h, &a, b, c, d, &e, k[i + 3] + w[i + 3]);
        round_of(e, f, g, &h, a, b, c, &d, k[i + 4] + w[i + 4]);
        round_of(d, e, f, &g, h, a, b, &c, k[i + 5] + w[i + 5]);
        round_of(c, d, e, &f, g, h, a, &b, k[i + 6] + w[i + 6]);
        round_of(b, c, d, &e, f, g, h, &a, k[i + 7] + w[i + 7]);
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (unsigned i = 0; i < 8; i++) {
        state[i] += sums[i];
    }
}

void ew__sha256_init(ew__sha256 *sha) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(sha->state, first, sizeof sha->state);
    sha->n = 0;
}

void ew__sha256_add(ew__sha256 *sha, const void *bytes, size_t n) {
    const uint8_t *at = bytes;
    size_t had = sha->n % sizeof sha->block;
    if (n == 0) {
        return;
    }
    sha->n += n;
    if (had + n < sizeof sha->block) {
        memcpy(sha->block + had, at, n);
        return;
    }
    if (had > 0) {
        size_t missing = sizeof sha->block - had;
        memcpy(sha->block + had, at, missing);
        compress(sha->state, sha->block);
        at += missing;
        n -= missing;
    }
    for (; n >= sizeof sha->block; n -= sizeof sha->block, at += sizeof sha->block) {
        compress(sha->state, at);
    }
    memcpy(sha->block, at, n);
}

void ew__sha256_done(ew__sha256 *sha, uint8_t digest[EW__SHA256_SIZE]) {
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    uint64_t bits = sha->n * 8;
    for (unsigned i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    size_t had = sha->n % sizeof sha->block;
    ew__sha256_add(sha, padding, had < 56 ? 56 - had : 120 - had);
    ew__sha256_add(sha, length, sizeof length);
    for (unsigned i = 0; i < EW__SHA256_SIZE; i++) {
        digest[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void ew__sha256_of(const void *bytes, size_t n, uint8_t digest[EW__SHA256_SIZE]) {
    ew__sha256 sha;
    ew__sha256_init(&sha);
    ew__sha256_add(&sha, bytes, n);
    ew__sha256_done(&sha, digest);
}
