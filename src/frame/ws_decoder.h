/*
 * frame/ws_decoder.h: wslay's frame layer over bytes in memory. A decoder is one context of wslay (4 KiB, from the C
 * library's allocator: wslay takes no other) with room for a control frame. It belongs to a connection while a frame is
 * cut, else to the scratch of the loop.
 * Not for use outside frame.
 */
#ifndef EW_FRAME_WS_DECODER_H
#define EW_FRAME_WS_DECODER_H

#include "frame/ws.h"

typedef struct ew__ws_decoder ew__ws_decoder;

/* What the guard read in a head. */
typedef struct ew__ws_frame {
    uint64_t length;
    uint8_t opcode;
    bool fin, masked;
} ew__ws_frame;

struct ew__ws_decoder {
    void *context;     /* wslay_frame_context_ptr */
    const uint8_t *in; /* what wslay may take next */
    size_t in_len;
    ew__ws_decoder *next;
    ew__ws_frame frame;
    uint8_t n_control;
    uint8_t control[EW__WS_CONTROL_MAX];
};

/* The size of a head; its first two bytes are there. */
size_t ew__ws_head_size(const uint8_t *p);
/* The length of the payload. n >= 2: what there is of the head. False: the length is not all there. */
bool ew__ws_head_length(const uint8_t *p, size_t n, uint64_t *ret_length);

ew__ws_decoder *ew__ws_decoder_get(ew__ws_scratch *scratch); /* NULL: no memory */
/* whole: its last frame was decoded to the end. Else the context is of no more use. */
void ew__ws_decoder_put(ew__ws_scratch *scratch, ew__ws_decoder *decoder, bool whole);

/* Begins a frame: its head, all of it. False: wslay does not take it. */
bool ew__ws_decoder_begin(ew__ws_decoder *decoder, const ew__ws_frame *frame, const uint8_t *head, size_t n);

/* Gives payload; never more than the frame has left. Then ew__ws_decoder_piece until it has none. */
void ew__ws_decoder_feed(ew__ws_decoder *decoder, const uint8_t *bytes, size_t n);
/* The next piece of payload, unmasked, or len 0. It lies in the decoder. False: wslay read another frame than we. */
bool ew__ws_decoder_piece(ew__ws_decoder *decoder, ew_str *ret_piece);

#endif
