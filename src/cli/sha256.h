/*
 * cli/sha256.h: SHA-256 (FIPS 180-4) of bytes that are all there, for a demo action. No streaming, no secrets.
 */
#ifndef EW_CLI_SHA256_H
#define EW_CLI_SHA256_H

#include <everywire/base.h>

void ew__sha256(const void *bytes, size_t n, uint8_t digest[32]);

#endif
