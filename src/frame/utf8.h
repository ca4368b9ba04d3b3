/*
 * frame/utf8.h: whether text that comes in pieces is UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above
 * U+10FFFF), told at the first byte that can belong to no such text.
 * May include: base.
 */
#ifndef EW_FRAME_UTF8_H
#define EW_FRAME_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros: at the start, or between two characters. */
typedef struct ew__utf8 {
    uint8_t need;      /* bytes that the present character still wants */
    uint8_t low, high; /* what the next of them must be, when need > 0 */
} ew__utf8;

/* False: the text is broken, whatever follows. */
bool ew__utf8_feed(ew__utf8 *text, const void *bytes, size_t n);

/* Whether the text may end here. */
static inline bool ew__utf8_is_whole(const ew__utf8 *text) { return text->need == 0; }

#endif
