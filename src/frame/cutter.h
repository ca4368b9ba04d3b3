/*
 * frame/cutter.h: cuts both directions of a connection into frames for a program that observes it (trace_frames). The
 * readers of the wires do the cutting: frame/http1.h, frame/line.h, frame/lenpfx.h, and the heads of frame/ws.h after an
 * upgrade. What they refuse comes out too: the rest of a malformed head of HTTP as a head, all else as plain bytes.
 *
 * No byte is lost: the sizes of all frames of a direction add up to what was fed. Of each frame only the first `keep`
 * bytes are kept, so a long one needs no memory; lines are the exception: frame/line.h reads them whole (up to `max`).
 * When an allocation fails less is kept.
 * May include: base.
 */
#ifndef EW_FRAME_CUTTER_H
#define EW_FRAME_CUTTER_H

#include "base/buf.h"
#include "frame/line.h"
#include <everywire/frames.h>

/* The framings that a connection may begin with (ew__wire.frames). */
enum { EW__FRAMES_HTTP = 1 << 0, EW__FRAMES_LENGTH = 1 << 1, EW__FRAMES_LINES = 1 << 2 };

typedef struct ew__cutter ew__cutter;

/* Gets kind, out, opcode, fin, bytes, text and their sizes; the rest is zero. */
typedef void (*ew__cutter_fn)(ew__cutter *cutter, const ew_frame *frame);

/* One direction. */
typedef struct ew__cutter_way {
    ew__buf raw, text; /* the kept beginnings of the current frame */
    uint64_t raw_size, text_size;
    struct ew__cutter_http *http; /* the reader; NULL: not HTTP */
    uint64_t left;                /* WebSocket, lengths: bytes of the payload that are still to come */
    ew__line line;                /* lines */
    ew__buf pending;              /* lines: bytes that were fed and not used */
    uint64_t done;                /* lines: how many bytes of `pending` are in a frame already */
    uint8_t framing;
    uint8_t n_head; /* bytes in `head` */
    uint8_t head[16];
    uint8_t opcode; /* WebSocket */
    bool fin;
    bool in_payload; /* WebSocket, lengths: behind the head */
    bool events;     /* HTTP: the body is a stream of blocks */
    bool line_empty; /* HTTP: nothing but CR since the last LF */
} ew__cutter_way;

struct ew__cutter {
    ew__cutter_fn fn;
    void *ud;
    size_t keep, max;
    ew__cutter_way ways[2]; /* received, sent */
    unsigned frames;        /* EW__FRAMES_...; set by the owner once known. Several, or 0: the first byte decides */
    uint64_t heads; /* HTTP: which requests that wait for their answer were HEAD; the oldest is the lowest bit */
    unsigned n_heads;
    ew__cutter_way *first; /* HTTP: the direction of the requests, which begins */
};

/* keep: bytes of a frame that are handed out; max: the longest frame that is followed. */
void ew__cutter_init(ew__cutter *cutter, const ew_env *env, size_t keep, size_t max, ew__cutter_fn fn, void *ud);
void ew__cutter_feed(ew__cutter *cutter, bool out, const void *bytes, size_t n);
/* The connection has ended: an unfinished frame comes out, too. */
void ew__cutter_end(ew__cutter *cutter);
void ew__cutter_done(ew__cutter *cutter);

#endif
