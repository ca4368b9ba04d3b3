/*
 * wire/http/client.h: the calling side of one HTTP connection. Used by call.c and wire.c.
 */
#ifndef EW_WIRE_HTTP_CLIENT_H
#define EW_WIRE_HTTP_CLIENT_H

#include "frame/sse.h"
#include "wire/http/http.h"

typedef struct ew__http_client {
    ew__http_ask ask;
    bool streaming;   /* the answer is a stream of blocks */
    bool paused;      /* reading waits for the caller */
    bool saw_nothing; /* the last block of the stream was empty */
    uint64_t retry_after_ms;
    ew__sse sse;
} ew__http_client;

#endif
