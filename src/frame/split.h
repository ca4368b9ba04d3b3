/*
 * frame/split.h: both directions of a connection, cut into frames for somebody who looks on. Unlike the readers of the
 * wires it judges nothing: what breaks a protocol is what he looks for. Which framing it is the first bytes of each
 * direction tell: HTTP/1 (with what follows an upgrade), a length of four bytes, or lines of JSON. Bytes that cannot be
 * followed any more come out as they are.
 *
 * No byte is lost: the sizes of all frames of a direction add up to what was fed. Of each frame only the first `keep`
 * bytes are kept, so a long one needs no memory; lines are the exception, their end is found by frame/line.h, which
 * wants them whole (up to `max`). Where there is no memory less is kept.
 * May include: base.
 */
#ifndef EW_FRAME_SPLIT_H
#define EW_FRAME_SPLIT_H

#include "base/buf.h"
#include "frame/line.h"
#include <everywire/frames.h>

typedef struct ew__split ew__split;

/* Gets kind, out, opcode, fin, bytes, text and their sizes; the rest is zero. */
typedef void (*ew__split_fn)(ew__split *split, const ew_frame *frame);

/* One direction. */
typedef struct ew__split_way {
    ew__buf raw, text; /* the kept beginnings of the frame at hand */
    uint64_t raw_size, text_size;
    uint64_t left;   /* bytes of the body, chunk or payload that are still to come */
    uint64_t length; /* HTTP: Content-Length */
    ew__line line;   /* lines */
    ew__buf pending; /* lines: what has come and is not used */
    uint64_t done;   /* lines: how many bytes of `pending` are in a frame already */
    uint8_t framing, state;
    uint8_t n_short; /* bytes in `head` */
    char head[160];  /* the beginning of the line at hand (HTTP), or the head of a frame */
    uint8_t opcode;  /* WebSocket */
    uint8_t key[4];
    bool fin, masked;
    bool request, chunked, has_length, upgrades, events; /* HTTP: of the message at hand */
    uint16_t status;
    bool line_empty; /* events: nothing but CR since the last LF */
} ew__split_way;

struct ew__split {
    ew__split_fn fn;
    void *ud;
    size_t keep, max;
    ew__split_way ways[2]; /* what came, what we sent */
    uint64_t heads;        /* HTTP: which requests that wait for their answer were HEAD; the oldest is the lowest bit */
    unsigned n_heads;
};

/* keep: bytes of a frame that are handed out; max: the longest frame that is followed. */
void ew__split_init(ew__split *split, const ew_env *env, size_t keep, size_t max, ew__split_fn fn, void *ud);
void ew__split_feed(ew__split *split, bool out, const void *bytes, size_t n);
/* No more will come: what is not a whole frame comes out, too. */
void ew__split_end(ew__split *split);
void ew__split_done(ew__split *split);

#endif
