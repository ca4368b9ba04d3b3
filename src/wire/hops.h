/*
 * wire/hops.h: how many everywires a call has crossed (ew_call.hops), as the wires write it: decimal digits. Peers that
 * are bridged in a circle are stopped by it, so a count that is too large stays large. May include: base.
 */
#ifndef EW_WIRE_HOPS_H
#define EW_WIRE_HOPS_H

#include "base/util.h"

/* What a peer says: at most 255; 0: it is no number, or none is there. */
static inline uint8_t ew__hops_read(ew_str digits) {
    unsigned hops = 0;
    for (size_t i = 0; i < digits.len; i++) {
        unsigned digit = (unsigned)(unsigned char)digits.ptr[i] - '0';
        if (digit > 9)
            return 0;
        hops = hops * 10 + digit;
        hops = hops < UINT8_MAX ? hops : UINT8_MAX;
    }
    return (uint8_t)hops;
}

#endif
