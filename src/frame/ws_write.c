/*
 * frame/ws_write.c: WebSocket frames to send. A message is never fragmented, so a frame is a head and a payload.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ws.h"

#include "base/util.h"

enum { FIN = 0x80, MASKED = 0x80, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

/* ---- masks ---- */

typedef uint64_t block __attribute__((vector_size(16)));

static block load(const uint8_t *p) {
    block bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return bytes;
}

static block xor_block(uint8_t *to, const uint8_t *from, block mask) {
    block bytes = load(from) ^ mask;
    memcpy(to, &bytes, sizeof(bytes));
    return bytes;
}

static bool xor_few(uint8_t *to, const uint8_t *from, size_t n, const uint8_t key[4]) {
    uint8_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i] ^ key[i & 3];
        seen |= to[i];
    }
    return seen < 0x80;
}

/* A block of the key, beginning with its byte `at`. */
static block spread(const uint8_t key[4], size_t at) {
    uint32_t word;
    memcpy(&word, key, sizeof(word));
    unsigned right = 8u * (unsigned)(at & 3), left = -right & 31;
    bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    word = big_endian ? word << right | word >> left : word >> right | word << left;
    uint64_t twice = (uint64_t)word << 32 | word;
    return (block){twice, twice};
}

/* The last block is read before anything is written, since it may overlap the one before it. */
bool ew__ws_xor(uint8_t *to, const uint8_t *from, size_t n, const uint8_t key[4]) {
    const size_t size = sizeof(block);
    if (n < size) {
        return xor_few(to, from, n, key);
    }
    block mask = spread(key, 0), last = load(from + n - size) ^ spread(key, n), seen = last;
    size_t i = 0;
    for (; n - i > 2 * size; i += 2 * size) {
        seen |= xor_block(to + i, from + i, mask) | xor_block(to + i + size, from + i + size, mask);
    }
    if (n - i > size) {
        seen |= xor_block(to + i, from + i, mask);
    }
    memcpy(to + n - size, &last, size);
    return ((seen[0] | seen[1]) & UINT64_C(0x8080808080808080)) == 0;
}

void ew__ws_mask(void *bytes, size_t n, const uint8_t key[4], uint64_t offset) {
    uint8_t turned[4];
    for (unsigned i = 0; (offset & 3) != 0 && i < 4; i++) {
        turned[i] = key[(i + offset) & 3];
    }
    (void)ew__ws_xor(bytes, bytes, n, (offset & 3) != 0 ? turned : key);
}

static void take_key(ew__ws_scratch *scratch, uint8_t out[4]) {
    if (scratch->n_keys == 0) {
        scratch->env->random(scratch->env->ud, scratch->keys, sizeof(scratch->keys));
        scratch->n_keys = sizeof(scratch->keys) / 4;
    }
    uint8_t *key = scratch->keys + (size_t)4 * --scratch->n_keys;
    memcpy(out, key, 4);
    memset(key, 0, 4); /* used once */
}

/* ---- frames ---- */

static size_t put_head(ew__ws *ws, uint8_t opcode, uint64_t len, uint8_t *out) {
    uint8_t masked = ws->server ? 0 : MASKED;
    size_t n = 2;
    out[0] = (uint8_t)(FIN | opcode);
    if (len < 126) {
        out[1] = (uint8_t)(masked | len);
    } else if (len <= UINT16_MAX) {
        out[1] = masked | 126;
        out[2] = (uint8_t)(len >> 8);
        out[3] = (uint8_t)len;
        n = 4;
    } else {
        out[1] = masked | 127;
        for (; n < 10; n++) {
            out[n] = (uint8_t)(len >> (8 * (9 - n)));
        }
    }
    if (masked) {
        take_key(ws->scratch, out + n);
        n += 4;
    }
    return n;
}

size_t ew__ws_head(ew__ws *ws, bool binary, uint64_t len, uint8_t out[EW__WS_HEAD_ROOM]) {
    return ws->close_sent || len >> 63 != 0 ? 0 : put_head(ws, binary ? BINARY : TEXT, len, out);
}

static size_t put_control(ew__ws *ws, uint8_t opcode, ew_str payload, uint8_t *out) {
    if (ws->close_sent || payload.len > EW__WS_CONTROL_MAX) {
        return 0;
    }
    size_t n = put_head(ws, opcode, payload.len, out);
    if (payload.len > 0) {
        memcpy(out + n, payload.ptr, payload.len);
    }
    if (!ws->server) {
        ew__ws_mask(out + n, payload.len, out + n - 4, 0);
    }
    return n + payload.len;
}

size_t ew__ws_ping(ew__ws *ws, ew_str payload, uint8_t out[EW__WS_CONTROL_ROOM]) {
    return put_control(ws, PING, payload, out);
}

size_t ew__ws_pong(ew__ws *ws, ew_str payload, uint8_t out[EW__WS_CONTROL_ROOM]) {
    return put_control(ws, PONG, payload, out);
}

/* ---- closing ---- */

bool ew__ws_code_ok(uint16_t code) {
    /* 1004 has no meaning; 1005, 1006 and 1015 say that there was none; 1012 to 1014 came after the RFC. */
    return (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
}

/* As much of a reason as fits, whole characters only; nothing if it is no UTF-8. */
static ew_str fit_reason(ew_str reason) {
    ew__utf8 check = {0};
    size_t n = reason.len < EW__WS_REASON_MAX ? reason.len : EW__WS_REASON_MAX;
    while (n < reason.len && n > 0 && ((unsigned char)reason.ptr[n] & 0xc0) == 0x80) {
        n--; /* not in the middle of a character */
    }
    bool good = ew__utf8_feed(&check, reason.ptr, n) && ew__utf8_is_whole(&check);
    return ew__str(reason.ptr, good ? n : 0);
}

size_t ew__ws_close(ew__ws *ws, uint16_t code, ew_str reason, uint8_t out[EW__WS_CONTROL_ROOM]) {
    uint8_t body[EW__WS_CONTROL_MAX];
    size_t n_body = 0;
    if (code != EW__WS_NO_CODE) {
        code = ew__ws_code_ok(code) ? code : EW__WS_INTERNAL;
        reason = fit_reason(reason);
        body[0] = (uint8_t)(code >> 8);
        body[1] = (uint8_t)code;
        if (reason.len > 0) {
            memcpy(body + 2, reason.ptr, reason.len);
        }
        n_body = 2 + reason.len;
    }
    size_t n = put_control(ws, CLOSE, ew__str(body, n_body), out);
    ws->close_sent = true;
    return n;
}

size_t ew__ws_answer(ew__ws *ws, uint8_t out[EW__WS_CONTROL_ROOM]) {
    switch ((ew__ws_event)ws->event) {
    case EW__WS_PING:
        return ew__ws_pong(ws, ws->payload, out);
    case EW__WS_CLOSE:
        return ew__ws_close(ws, ws->code, ew__str(NULL, 0), out);
    case EW__WS_ERROR:
        return ew__ws_close(ws, ws->code, ew__str(ws->why, strlen(ws->why)), out);
    default:
        return 0;
    }
}
