/*
 * tests/support/ws_peer.h: the other end of a WebSocket, for tests: makes frames, good and bad ones, and reads those that
 * the wire under test has sent. It shares no code with src/frame, so that both cannot be wrong in the same way.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_WS_PEER_H
#define EW_TESTS_WS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WS_PART = 0x00,
    WS_TEXT = 0x01,
    WS_BINARY = 0x02,
    WS_CLOSE = 0x08,
    WS_PING = 0x09,
    WS_PONG = 0x0a,
    WS_FIN = 0x80
};

#define WS_PEER_HEAD 14 /* room for the head of a frame */

/* Writes a frame of n bytes of payload to out (n + WS_PEER_HEAD bytes). first: its first byte. Returns its size. */
size_t ws_peer_frame(uint8_t *out, int first, bool mask, const void *payload, size_t n);
/* The same for a close frame; code 0: an empty one. out: at least 140 bytes. */
size_t ws_peer_close(uint8_t *out, bool mask, unsigned code, const char *reason);

/*
 * Frames as lines of text: the payload of a text frame; "(ping) PAYLOAD", "(pong) PAYLOAD", "(binary) PAYLOAD",
 * "(close) CODE REASON" of others, and "(not masked) " or "(masked) " before one that is not as `masked` says it must be;
 * "(fragment) " likewise. What is no whole frame becomes "(N bytes more)". For free(); ends with a NUL.
 */
char *ws_peer_lines(const char *bytes, size_t n, bool masked, size_t *ret_len);

/*
 * Reads one frame: returns its size and its payload (*ret, NUL-terminated, for free()), or 0 if the
 * frame is not complete. *ret_first is its first byte.
 */
size_t ws_peer_read(const char *bytes, size_t n, int *ret_first, char **ret);

#endif
