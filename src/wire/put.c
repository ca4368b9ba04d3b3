/*
 * wire/put.c: see put.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/put.h"

#define AT_ONCE 4096 /* what a queue has room for in one run */

uint8_t *ew__put_begin(ew__out *out, size_t n) {
    if (EW__LIKELY(n <= AT_ONCE))
        return ew__out_room(out, n);
    uint8_t *memory = out->err ? NULL : ew__alloc(out->pool->env, n);
    if (!memory && !out->err)
        out->err = EW_ENOMEM;
    return memory;
}

void ew__put_end(ew__out *out, uint8_t *start, size_t n, const uint8_t *end) {
    size_t used = (size_t)(end - start);
    if (EW__LIKELY(n <= AT_ONCE)) {
        ew__out_commit(out, used);
        return;
    }
    ew__out_add(out, start, used);
    ew__free(out->pool->env, start, n);
}
