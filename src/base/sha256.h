/*
 * base/sha256.h: SHA-256 (FIPS 180-4), for bytes that come in pieces and for bytes that are all there. For names of
 * contents, not for secrets. Libc only.
 */
#ifndef EW_BASE_SHA256_H
#define EW_BASE_SHA256_H

#include <everywire/base.h>

#define EW__SHA256_SIZE 32

typedef struct ew__sha256 {
    uint32_t state[8];
    uint64_t n; /* bytes so far */
    uint8_t block[64];
} ew__sha256;

void ew__sha256_init(ew__sha256 *sha);
void ew__sha256_add(ew__sha256 *sha, const void *bytes, size_t n);
void ew__sha256_done(ew__sha256 *sha, uint8_t digest[EW__SHA256_SIZE]); /* init makes it usable again */

/* All at once. */
void ew__sha256_of(const void *bytes, size_t n, uint8_t digest[EW__SHA256_SIZE]);

#endif
