/*
 * fuzz/http1_hash.h: what the HTTP/1 reader makes of some bytes, as one number, for a given way of cutting them. Two
 * ways must give the same.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_FUZZ_HTTP1_HASH_H
#define EW_FUZZ_HTTP1_HASH_H

#include <stdlib.h>
#include <string.h>

#include "frame/http1.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t hash_number(uint64_t hash, uint64_t number) { return hash_bytes(hash, &number, sizeof(number)); }

static uint64_t hash_text(uint64_t hash, ew_str text) {
    return hash_bytes(hash_number(hash, text.len), text.ptr, text.len);
}

static uint64_t hash_head(uint64_t hash, const ew__http_head *head) {
    hash = hash_text(hash_number(hash, (uint64_t)head->method), head->target);
    hash = hash_number(hash, (uint64_t)(head->status * 10 + head->minor));
    const bool flags[] = {head->keep_alive, head->expect_continue, head->upgrade, head->chunked, head->has_length};
    hash = hash_bytes(hash, flags, sizeof(flags));
    hash = hash_number(hash, head->length);
    for (uint32_t i = 0; i < head->n_fields; i++) {
        hash = hash_text(hash_text(hash, head->fields[i].name), head->fields[i].value);
    }
    if (head->target.len > 0) {
        char *out = malloc(head->target.len);
        ew_str path = {NULL, 0}, query = {NULL, 0};
        if (out != NULL && ew__http_target(head->target, out, &path, &query) == EW_OK) {
            hash = hash_text(hash_text(hash, path), ew__http_query(query, EW_STR("stream"), NULL));
        }
        free(out);
    }
    return hash;
}

/* pieces: 0 for one piece, else a seed for their sizes. */
static uint64_t hash_messages(const uint8_t *data, size_t size, bool request, uint64_t pieces) {
    static const ew__http1_limits limits = {
        .head_bytes = 1024, .head_fields = 20, .target_bytes = 200, .chunk_extension_bytes = 50};
    ew__http1_scratch scratch = {0};
    ew__http1 *http = malloc(ew__http1_size());
    uint64_t hash = HASH_START;
    size_t at = 0;
    if (http == NULL) {
        return 0;
    }
    ew__http1_init(http, ew_env_default(), &limits, request, &scratch);
    for (bool eof = false; !eof;) {
        ew__http_event event;
        size_t n = size - at;
        if (pieces != 0 && n > 0) {
            pieces = pieces * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t want = 1 + (pieces >> 33) % (pieces >> 60 == 0 ? 300 : 9);
            n = n < want ? n : want;
        }
        char *piece = malloc(n > 0 ? n : 1); /* of its own, so that AddressSanitizer sees what outlives it */
        memcpy(piece, data + at, n);
        at += n;
        eof = n == 0;
        if (eof) {
            ew__http1_feed_eof(http);
        } else {
            ew__http1_feed(http, piece, n);
        }
        while ((event = ew__http1_next(http)) != EW__HTTP_MORE && event != EW__HTTP_ERROR) {
            if (event == EW__HTTP_BODY) {
                hash = hash_bytes(hash, ew__http1_body(http).ptr, ew__http1_body(http).len);
                continue;
            }
            hash = hash_number(hash, (uint64_t)event);
            if (event == EW__HTTP_HEAD_DONE) {
                ew__http1_keep_head(http);
                hash = hash_head(hash, ew__http1_head(http));
            }
        }
        free(piece);
        if (event == EW__HTTP_ERROR) {
            hash = hash_number(hash, (uint64_t)ew__http1_error_status(http) + 1000);
            break;
        }
    }
    ew__http1_done(http);
    free(http);
    return hash;
}

/* Whole, cut at places that depend on the bytes, and the same backed by another seed. */
static int same_at_every_cut(const uint8_t *data, size_t size, bool request) {
    uint64_t whole = hash_messages(data, size, request, 0);
    uint64_t seed = hash_bytes(HASH_START, data, size) | 1;
    if (hash_messages(data, size, request, seed) != whole || hash_messages(data, size, request, ~seed) != whole) {
        abort();
    }
    return 0;
}

#endif
