/*
 * everywire/frames.h: what goes over the connections of a client or an app, for people who look for a fault: each frame
 * of any wire, decoded and timed, in both directions. Set `trace_frames` in ew_client_options or ew_app_options.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_FRAMES_H
#define EVERYWIRE_FRAMES_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ew_frame_kind {
    EW_FRAME_OPENED,    /* the connection begins; no bytes */
    EW_FRAME_CLOSED,    /* it has ended; no bytes; text says why, empty: as it should */
    EW_FRAME_BYTES,     /* bytes that are no frame of a known framing */
    EW_FRAME_HTTP_HEAD, /* text is the head: first line and header fields */
    EW_FRAME_HTTP_BODY, /* a body, or one chunk of it; the end of a chunked one has no text */
    EW_FRAME_SSE,       /* one block of a streamed body: its lines */
    EW_FRAME_WEBSOCKET, /* text is the payload, unmasked */
    EW_FRAME_LENGTH,    /* four bytes of length (RRQ), text is what follows them */
    EW_FRAME_LINE       /* one JSON value of a stream of lines, or behind a Content-Length header */
} ew_frame_kind;

/* One frame. Everything is borrowed for the callback. */
typedef struct ew_frame {
    ew_frame_kind kind;
    bool out;            /* we have sent it; else it came */
    uint8_t opcode;      /* WebSocket: 1 text, 2 binary, 0 more of the last one, 8 close, 9 ping, 10 pong */
    bool fin;            /* WebSocket: the message ends with it */
    uint64_t connection; /* counted from 1 per client or app */
    uint64_t at_ns;      /* the env's clock when its last byte was seen */
    const char *wire;    /* "http", "rrq" and so on; "?" as long as it is not known */
    ew_str bytes;        /* as it was on the wire (plain text also under TLS), cut to trace_bytes */
    ew_str text;         /* what it carries, cut to trace_bytes */
    uint64_t size;       /* how long `bytes` is when not cut */
    uint64_t text_size;  /* how long `text` is when not cut */
    /*
     * Whether members of that name are secret: the actions of an app say so (their schemas, ew_action_options.secrets). A
     * name without a pointer asks whether whole payloads are. NULL: no action says anything. Kept for ew_frame_format.
     */
    bool (*is_secret)(const void *secrets, ew_str name);
    const void *secrets;
} ew_frame;

/* Told of each frame, on the loop thread of its connection: several at once if there are several loops. */
typedef void (*ew_frame_fn)(void *ud, const ew_frame *frame);

#define EW_FRAME_COLOUR 1u /* for ew_frame_format: escape sequences for a terminal */

/*
 * A frame as lines for people, each ended by a newline: "+12.3ms #1 > POST /greet HTTP/1.1". since_ns is what times are
 * counted from. Control bytes are escaped, bytes that are no text become hexadecimal digits. Secrets are left out: the
 * values of Authorization, Cookie and similar header fields, of members such as "token" and "password", of such names
 * in a query, and of members that the app's actions mark as secret (an app knows them, a client does not); where the
 * actions have secrets, parts of messages and bytes of no framing are left out whole. Writes at most size bytes, a terminating zero included (out may be NULL if size is 0); returns how many
 * bytes the whole has without that zero. Any thread; needs no memory.
 */
EW_API size_t ew_frame_format(const ew_frame *frame, uint64_t since_ns, unsigned flags, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
