/*
 * wire/progress.h: whether a peer gets on with a message that it has begun. A complete message is
 * progress, and so are 1024 further bytes of an incomplete one. Single bytes are not: a peer that
 * sends them slowly would hold a connection and its buffer without end.
 */
#ifndef EW_WIRE_PROGRESS_H
#define EW_WIRE_PROGRESS_H

#include "base/util.h"

#define EW__PROGRESS_BYTES ((size_t)1024)

typedef struct ew__progress {
    uint64_t at; /* monotonic ns of the last progress */
    size_t len;  /* bytes that were buffered then; 0: no message had begun */
    bool reset;  /* a message was completed, or reading was paused: the next note counts */
} ew__progress;

/* Notes how many bytes of an incomplete message are buffered; 0: the peer is between two messages. */
static inline void ew__progress_note(ew__progress *progress, size_t buffered, uint64_t now) {
    bool same_message = buffered > 0 && progress->len > 0 && !progress->reset;
    if (same_message && buffered < progress->len + EW__PROGRESS_BYTES)
        return;
    *progress = (ew__progress){.at = now, .len = buffered};
}

#endif
