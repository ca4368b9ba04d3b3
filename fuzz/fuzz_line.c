/*
 * fuzz/fuzz_line.c: messages of JSON-RPC on a stream: any bytes, and the same messages however they are cut. The first
 * byte of the input chooses framing, strictness and limit; the second how it is cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/line.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void check(bool holds) {
    if (!holds) {
        abort();
    }
}

/* What came out of a stream. */
typedef struct outcome {
    uint64_t hash; /* of all messages, where they stood, and everything else that happened */
    size_t n_events;
    ew_str last; /* the last valid value */
} outcome;

/* Does what a user does at one event. Returns how many bytes are done with. */
static size_t handle(ew__line *line, ew__line_event event, ew_str value, size_t place, size_t used, outcome *out) {
    bool is_value = event == EW__LINE_LIKELY || event == EW__LINE_VALUE;
    bool valid = is_value && ew__json_validate(value, NULL) == EW_OK;
    check(is_value == (value.len > 0) && value.len <= used);
    if (event == EW__LINE_LIKELY && !valid) {
        ew__line_look_closer(line);
        return 0;
    }
    if (event == EW__LINE_MORE) {
        return used;
    }
    check(value.len <= line->max);
    unsigned char kind = is_value ? valid : (unsigned char)(2 + event);
    out->hash = hash_bytes(hash_bytes(out->hash, &kind, 1), value.ptr, value.len);
    if (is_value) {
        out->hash = hash_bytes(out->hash, &place, sizeof(place));
        out->last = value;
    }
    out->n_events++;
    if (event == EW__LINE_VALUE && !valid) {
        ew__line_skip(line);
    }
    return used;
}

/* Reads what has come: data[at .. end). Returns where the bytes not yet used begin; *ret_last is the last event. */
static size_t read_piece(ew__line *line, const uint8_t *data, size_t at, size_t end, outcome *out,
                         ew__line_event *ret_last) {
    for (size_t turns = 4 * (end - at) + 16;; turns--) {
        size_t n = end - at, used, place = 0;
        char *piece = malloc(n > 0 ? n : 1); /* of its own, so that AddressSanitizer sees a read past its end */
        check(turns > 0 && piece != NULL);
        memcpy(piece, data + at, n);
        ew_str value;
        ew__line_event event = ew__line_read(line, ew__str(piece, n), &value, &used);
        check(used <= n);
        if (value.len > 0) {
            check(value.ptr >= piece && value.ptr + value.len <= piece + used);
            place = at + (size_t)(value.ptr - piece);
            value.ptr = (const char *)data + place;
        }
        free(piece);
        at += handle(line, event, value, place, used, out);
        *ret_last = event;
        if (event == EW__LINE_MORE || event == EW__LINE_FOREIGN || event == EW__LINE_BAD_HEADER) {
            return at;
        }
    }
}

/* pieces: 0 for one piece, else a seed for their sizes. */
static outcome run(ew__line line, const uint8_t *data, size_t size, uint64_t pieces) {
    outcome out = {.hash = UINT64_C(0xcbf29ce484222325)};
    ew__line_event last = EW__LINE_MORE;
    for (size_t at = 0, end = 0; end < size && last == EW__LINE_MORE;) {
        size_t n = size - end;
        if (pieces != 0) {
            pieces = pieces * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t want = 1 + (pieces >> 33) % (pieces >> 61 == 0 ? 300 : 9);
            n = n < want ? n : want;
        }
        end += n;
        at = read_piece(&line, data, at, end, &out, &last);
    }
    bool inside = ew__line_is_inside(&line);
    out.hash = hash_bytes(out.hash, &inside, 1);
    return out;
}

/* An object or array is one message, and nothing else happens. */
static void check_whole_value(ew__line line, const uint8_t *data, size_t size, outcome out) {
    ew_str text = ew__str(data, size);
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[0], 4) != NULL) {
        text = ew__str(text.ptr + 1, text.len - 1);
    }
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[text.len - 1], 4) != NULL) {
        text.len--;
    }
    bool by_value = line.framing == EW__FRAMING_LINES || line.framing == EW__FRAMING_AUTO;
    bool fits = by_value && text.len > 0 && text.len <= line.max;
    if (fits && (text.ptr[0] == '{' || text.ptr[0] == '[') && ew__json_validate(text, NULL) == EW_OK) {
        check(out.n_events == 1 && out.last.ptr == text.ptr && out.last.len == text.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t framings[] = {EW__FRAMING_LINES, EW__FRAMING_HEADERS, EW__FRAMING_WHOLE_LINES,
                                       EW__FRAMING_AUTO};
    static const size_t limits[] = {12, 64, 1000, 1 << 20};
    if (size < 2) {
        return 0;
    }
    ew__line line;
    ew__line_init(&line, (ew__framing)framings[data[0] & 3], limits[data[0] >> 3 & 3], (data[0] & 4) != 0);
    uint64_t seed = hash_bytes(data[1] + 1u, data, size) | 1;
    data += 2;
    size -= 2;
    outcome whole = run(line, data, size, 0);
    check(run(line, data, size, seed).hash == whole.hash);
    check(run(line, data, size, ~seed).hash == whole.hash);
    check_whole_value(line, data, size, whole);
    return 0;
}
