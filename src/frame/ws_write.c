/*
 * frame/ws_write.c: WebSocket frames to send. A message is never fragmented, so a frame is a head and a payload.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ws.h"

#include "base/util.h"

enum { FIN = 0x80, MASKED = 0x80, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

/* ---- masks ---- */

static uint64_t load(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

static uint64_t xor_word(uint8_t *to, const uint8_t *from, uint64_t mask) {
    uint64_t word = load(from) ^ mask;
    memcpy(to, &word, sizeof(word));
    return word;
}

bool ew__ws_xor(uint8_t *to, const uint8_t *from, size_t n, const uint8_t key[4]) {
    uint64_t mask, seen = 0;
    size_t i = 0;
    uint8_t twice[8] = {key[0], key[1], key[2], key[3], key[0], key[1], key[2], key[3]}, tail = 0;
    memcpy(&mask, twice, sizeof(mask));
    for (; n - i >= 32; i += 32) {
        seen |= xor_word(to + i, from + i, mask) | xor_word(to + i + 8, from + i + 8, mask) |
                xor_word(to + i + 16, from + i + 16, mask) | xor_word(to + i + 24, from + i + 24, mask);
    }
    for (; n - i >= 8; i += 8) {
        seen |= xor_word(to + i, from + i, mask);
    }
    for (; i < n; i++) {
        to[i] = from[i] ^ twice[i & 7];
        tail |= to[i];
    }
    return (seen & UINT64_C(0x8080808080808080)) == 0 && tail < 0x80;
}

void ew__ws_mask(void *bytes, size_t n, const uint8_t key[4], uint64_t offset) {
    uint8_t turned[4];
    for (unsigned i = 0; i < 4; i++) {
        turned[i] = key[(i + offset) & 3];
    }
    (void)ew__ws_xor(bytes, bytes, n, turned);
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
    size_t n = 2, more = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;
    out[0] = (uint8_t)(FIN | opcode);
    out[1] = (uint8_t)((ws->server ? 0 : MASKED) | (more == 0 ? len : more == 2 ? 126 : 127));
    for (size_t i = more; i > 0; i--) {
        out[n++] = (uint8_t)(len >> (8 * (i - 1)));
    }
    if (!ws->server) {
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
