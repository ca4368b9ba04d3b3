/*
 * endpoint/authority.h: HOST, HOST:PORT, [V6] or [V6]:PORT of a URL, taken apart. Pure. May include: base.
 */
#ifndef EW_ENDPOINT_AUTHORITY_H
#define EW_ENDPOINT_AUTHORITY_H

#include "base/util.h"

typedef struct ew__authority {
    ew_str host; /* a slice of the text, without brackets */
    bool v6;     /* it had some */
    bool has_port;
    uint16_t port; /* 0 may have been written, too */
} ew__authority;

typedef enum ew__authority_verdict {
    EW__AUTHORITY_OK,
    EW__AUTHORITY_NO_HOST, /* it is missing, or has characters that no host has */
    EW__AUTHORITY_NO_PORT  /* what stands behind the host is no port */
} ew__authority_verdict;

ew__authority_verdict ew__authority_parse(ew_str text, ew__authority *ret);

#endif
