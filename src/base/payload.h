/*
 * base/payload.h: how many bytes a payload may have, so that it fits a message of every wire. See EW_ENVELOPE_BYTES.
 */
#ifndef EW_BASE_PAYLOAD_H
#define EW_BASE_PAYLOAD_H

#include <everywire/limits.h>

static inline uint64_t ew__envelope_bytes(const ew_limits *limits) {
    return limits->frame_bytes / 8 < EW_ENVELOPE_BYTES ? limits->frame_bytes / 8 : EW_ENVELOPE_BYTES;
}

static inline uint64_t ew__payload_bytes(const ew_limits *limits) {
    return limits->frame_bytes - ew__envelope_bytes(limits);
}

/*
 * How much of a message that is too large is read past, so that the connection stays usable: beyond that many bytes the
 * connection is closed. limit: of a message.
 */
static inline uint64_t ew__skip_bytes(uint64_t limit) { return limit < UINT64_MAX / 16 ? 16 * limit : UINT64_MAX; }

/* The part of a call's context and labels that counts with its input: what does not fit the allowance of the envelope. */
static inline size_t ew__payload_extra(const ew_limits *limits, size_t context_bytes) {
    size_t room = (size_t)ew__envelope_bytes(limits) / 4;
    return context_bytes > room ? context_bytes - room : 0;
}

#endif
