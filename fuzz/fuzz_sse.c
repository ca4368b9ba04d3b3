/*
 * fuzz/fuzz_sse.c: streamed answers: any bytes, and the same blocks however they are cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "frame/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* pieces: 0 for one piece, else a seed for their sizes. */
static uint64_t hash_blocks(const uint8_t *data, size_t size, uint64_t pieces) {
    ew__sse sse;
    ew__sse_kind kind = EW__SSE_MORE;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    ew__sse_init(&sse, ew_env_default(), 100);
    for (size_t at = 0, n = 1; n > 0 && kind != EW__SSE_BAD; at += n) {
        n = size - at;
        if (pieces != 0 && n > 0) {
            pieces = pieces * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t want = 1 + (pieces >> 33) % 9;
            n = n < want ? n : want;
        }
        char *piece = malloc(n > 0 ? n : 1); /* of its own, so that AddressSanitizer sees what outlives it */
        memcpy(piece, data + at, n);
        if (n == 0) {
            ew__sse_feed_eof(&sse);
        } else {
            ew__sse_feed(&sse, piece, n);
        }
        while ((kind = ew__sse_next(&sse)) == EW__SSE_DATA || kind == EW__SSE_FAULT) {
            ew_str payload = ew__sse_payload(&sse);
            hash = hash_bytes(hash_bytes(hash, &kind, sizeof(kind)), payload.ptr, payload.len);
        }
        free(piece);
    }
    hash = hash_bytes(hash, &sse.err, sizeof(sse.err));
    ew__sse_done(&sse);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t whole = hash_blocks(data, size, 0), seed = hash_bytes(1, data, size) | 1;
    if (hash_blocks(data, size, seed) != whole || hash_blocks(data, size, ~seed) != whole) {
        abort();
    }
    return 0;
}
