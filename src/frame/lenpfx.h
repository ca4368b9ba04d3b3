/*
 * frame/lenpfx.h: messages behind their length: four bytes, big-endian, then so many bytes. Pure and without state: a
 * length is judged by its four bytes alone, so nothing that it promises is ever allocated. May include: base.
 */
#ifndef EW_FRAME_LENPFX_H
#define EW_FRAME_LENPFX_H

#include "base/util.h"

#define EW__LENPFX_HEAD 4

typedef enum ew__lenpfx_event {
    EW__LENPFX_MORE,    /* the frame is not whole yet */
    EW__LENPFX_FRAME,   /* one whole frame */
    EW__LENPFX_EMPTY,   /* a length of zero: no message of this framing */
    EW__LENPFX_TOO_LONG /* more than the limit. After these two the stream cannot be read any further */
} ew__lenpfx_event;

/*
 * Looks at the beginning of what has come. FRAME: *ret_body is the message, *ret_size how many bytes it took with its
 * head. MORE: *ret_size is how many bytes the frame has in all, or EW__LENPFX_HEAD as long as that is not known.
 * TOO_LONG: *ret_size is the length that was promised, without the head. limit is the longest message.
 */
static inline ew__lenpfx_event ew__lenpfx_read(ew_str bytes, uint64_t limit, ew_str *ret_body, size_t *ret_size) {
    *ret_size = EW__LENPFX_HEAD;
    if (EW__UNLIKELY(bytes.len < EW__LENPFX_HEAD))
        return EW__LENPFX_MORE;
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    size_t len = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | (size_t)at[3];
    *ret_size = len;
    if (EW__UNLIKELY(len == 0))
        return EW__LENPFX_EMPTY;
    if (EW__UNLIKELY(len > limit))
        return EW__LENPFX_TOO_LONG;
    *ret_size = len + EW__LENPFX_HEAD;
    if (bytes.len < len + EW__LENPFX_HEAD)
        return EW__LENPFX_MORE;
    *ret_body = ew__str(bytes.ptr + EW__LENPFX_HEAD, len);
    return EW__LENPFX_FRAME;
}

/* Writes the head of a message of that length; false: it is empty or too long, and nothing may be sent. */
static inline bool ew__lenpfx_head(size_t len, uint64_t limit, uint8_t out[EW__LENPFX_HEAD]) {
    if (len == 0 || len > limit || len > UINT32_MAX)
        return false;
    for (unsigned i = 0; i < EW__LENPFX_HEAD; i++)
        out[i] = (uint8_t)(len >> (24 - 8 * i));
    return true;
}

#endif
