/*
 * base/secret.h: for bytes that somebody may want to guess: comparing them in a time that tells nothing about them, and
 * wiping them. Libc only.
 */
#ifndef EW_BASE_SECRET_H
#define EW_BASE_SECRET_H

#include <everywire/base.h>

/* Whether n bytes are the same. How long it takes depends on n alone. */
bool ew__secret_same(const void *a, const void *b, size_t n);

/* Overwrites memory that is not read again, which a compiler would leave out. */
void ew__secret_wipe(void *bytes, size_t n);

#endif
