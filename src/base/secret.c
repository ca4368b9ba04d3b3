/*
 * base/secret.c: see secret.h. All bytes are looked at, whatever was found before: no branch, no early end. Volatile
 * keeps a compiler from seeing that the rest does not matter once one byte differs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/secret.h"

bool ew__secret_same(const void *a, const void *b, size_t n) {
    const volatile uint8_t *x = a, *y = b;
    volatile uint8_t differ = 0;
    for (size_t i = 0; i < n; i++)
        differ = (uint8_t)(differ | (x[i] ^ y[i]));
    return ((uint32_t)differ - 1) >> 31; /* 0 alone has a borrow */
}

void ew__secret_wipe(void *bytes, size_t n) {
    volatile uint8_t *at = bytes;
    for (size_t i = 0; i < n; i++)
        at[i] = 0;
}
