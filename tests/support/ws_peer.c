/*
 * tests/support/ws_peer.c: see ws_peer.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/ws_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINE_ROOM 64 /* of a line, beside the payload */

/* ---- making ---- */

static size_t put_length(uint8_t *out, size_t n, int mask) {
    size_t more = n > UINT16_MAX ? 8 : n > 125 ? 2 : 0;
    out[0] = (uint8_t)(mask | (more == 8 ? 127 : more == 2 ? 126 : (int)n));
    for (size_t i = 0; i < more; i++)
        out[1 + i] = (uint8_t)((uint64_t)n >> 8 * (more - 1 - i));
    return 1 + more;
}

size_t ws_peer_frame(uint8_t *out, int first, bool mask, const void *payload, size_t n) {
    static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d}; /* that of RFC 6455's examples */
    const uint8_t *bytes = payload;
    out[0] = (uint8_t)first;
    size_t at = 1 + put_length(out + 1, n, mask ? 0x80 : 0);
    if (mask) {
        memcpy(out + at, key, 4);
        at += 4;
    }
    for (size_t i = 0; i < n; i++)
        out[at + i] = mask ? bytes[i] ^ key[i % 4] : bytes[i];
    return at + n;
}

size_t ws_peer_close(uint8_t *out, bool mask, unsigned code, const char *reason) {
    uint8_t payload[125] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t n = strlen(reason);
    assert_true(n <= sizeof payload - 2);
    memcpy(payload + 2, reason, n);
    return ws_peer_frame(out, WS_FIN | WS_CLOSE, mask, payload, code ? n + 2 : 0);
}

/* ---- reading ---- */

typedef struct frame {
    int opcode;
    bool fin, masked;
    const uint8_t *key, *payload;
    size_t len;
} frame;

/* Its size; 0: it is not whole. */
static size_t read_frame(const uint8_t *p, size_t n, frame *ret) {
    if (n < 2)
        return 0;
    size_t more = (p[1] & 0x7f) == 127 ? 8 : (p[1] & 0x7f) == 126 ? 2 : 0;
    *ret = (frame){.opcode = p[0] & 0x7f, .fin = p[0] & 0x80, .masked = p[1] & 0x80, .len = p[1] & 0x7f};
    size_t head = 2 + more + (ret->masked ? 4 : 0);
    if (n < head)
        return 0;
    for (size_t i = 0; i < more; i++)
        ret->len = (i ? ret->len << 8 : 0) | p[2 + i];
    ret->key = p + 2 + more;
    ret->payload = p + head;
    return n - head < ret->len ? 0 : head + ret->len;
}

static size_t put_payload(char *out, const frame *f, size_t from) {
    for (size_t i = from; i < f->len; i++)
        out[i - from] = (char)(f->masked ? f->payload[i] ^ f->key[i % 4] : f->payload[i]);
    return f->len - from;
}

static size_t put_frame(char *out, const frame *f, bool masked) {
    const char *name = f->opcode == WS_TEXT     ? ""
                       : f->opcode == WS_BINARY ? "(binary)"
                       : f->opcode == WS_PING   ? "(ping)"
                       : f->opcode == WS_PONG   ? "(pong)"
                       : f->opcode == WS_CLOSE  ? "(close)"
                                                : "(no such frame)";
    bool close = f->opcode == WS_CLOSE && f->len >= 2;
    int n = snprintf(out, LINE_ROOM, "%s%s%s",
                     f->masked == masked ? ""
                     : masked            ? "(not masked) "
                                         : "(masked) ",
                     f->fin ? "" : "(fragment) ", name);
    size_t len = (size_t)n;
    if (*name && f->len)
        out[len++] = ' ';
    if (close) {
        char code[2];
        frame first = *f;
        first.len = 2;
        (void)put_payload(code, &first, 0);
        len += (size_t)snprintf(out + len, 10, "%u%s", (unsigned)((uint8_t)code[0] << 8 | (uint8_t)code[1]),
                                f->len > 2 ? " " : "");
    }
    len += put_payload(out + len, f, close ? 2 : 0);
    out[len++] = '\n';
    return len;
}

char *ws_peer_lines(const char *bytes, size_t n, bool masked, size_t *ret_len) {
    size_t len = 0, at = 0, size, room = n + LINE_ROOM;
    frame f;
    for (; at < n && (size = read_frame((const uint8_t *)bytes + at, n - at, &f)) > 0; at += size)
        room += LINE_ROOM;
    char *out = malloc(room);
    assert_non_null(out);
    at = 0;
    while (at < n && (size = read_frame((const uint8_t *)bytes + at, n - at, &f)) > 0) {
        len += put_frame(out + len, &f, masked);
        at += size;
    }
    if (at < n)
        len += (size_t)snprintf(out + len, LINE_ROOM, "(%zu bytes more)\n", n - at);
    out[len] = '\0';
    *ret_len = len;
    return out;
}

size_t ws_peer_read(const char *bytes, size_t n, int *ret_first, char **ret) {
    frame f;
    size_t size = read_frame((const uint8_t *)bytes, n, &f);
    if (size == 0)
        return 0;
    *ret_first = (uint8_t)bytes[0];
    *ret = calloc(1, f.len + 1);
    assert_non_null(*ret);
    (void)put_payload(*ret, &f, 0);
    return size;
}
