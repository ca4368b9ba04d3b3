/*
 * wire/mem/codec.h: the frames of the mem wire, both ways, pure: no connection, no call. README.md beside it shows
 * them.
 */
#ifndef EW_WIRE_MEM_CODEC_H
#define EW_WIRE_MEM_CODEC_H

#include "base/out.h"

typedef enum ew__mem_event {
    EW__MEM_OPEN = 1,
    EW__MEM_CHUNK_IN,
    EW__MEM_END_IN,
    EW__MEM_CANCEL,
    EW__MEM_ACCEPTED,
    EW__MEM_CHUNK_OUT,
    EW__MEM_DONE,
    EW__MEM_FAIL,
    EW__MEM_ROOM_OUT,
    EW__MEM_ROOM_IN
} ew__mem_event;

enum { EW__MEM_LIST = 1, EW__MEM_WANTS_CHUNKS = 2, EW__MEM_HAS_INPUT = 4 }; /* flags of open */
enum { EW__MEM_RETRYABLE = 1, EW__MEM_REFUSED = 2 };                        /* flags of fail */

/* One frame; an event uses the members that its row in README.md names. */
typedef struct ew__mem_frame {
    uint8_t event; /* ew__mem_event */
    uint8_t flags;
    uint8_t status;
    uint8_t hops;
    uint32_t id;
    uint64_t number; /* open: ms until the deadline; fail: retry after ms; room: bytes */
    uint64_t attempt;
    ew_str key;
    ew_str payload; /* open: the input; chunks and done: JSON; accepted: the trace id */
    ew_str context;
    ew_str labels;
    ew_str traceparent;
    ew_str tracestate;
    ew_str message;
    ew_str details;
} ew__mem_frame;

/* Whether the event comes from the caller's side of a call. */
bool ew__mem_from_caller(uint8_t event);

/* What the frame's length field would say. */
uint64_t ew__mem_length(const ew__mem_frame *frame);
void ew__mem_write(ew__out *out, const ew__mem_frame *frame);

/*
 * The first frame of these bytes; its slices lie in them. *ret_size is its whole size, 0 when more bytes are needed.
 * EW_OK; EW_ELIMIT: longer than max; EW_EPROTO: not a frame; EW_ESYNTAX: a payload is no JSON.
 */
ew_err ew__mem_read(ew_str bytes, uint64_t max, ew__mem_frame *ret, size_t *ret_size);

#endif
