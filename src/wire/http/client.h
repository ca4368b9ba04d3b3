/*
 * wire/http/client.h: the calling side of one HTTP connection. Used by call.c and wire.c.
 */
#ifndef EW_WIRE_HTTP_CLIENT_H
#define EW_WIRE_HTTP_CLIENT_H

#include "frame/sse.h"
#include "wire/http/http.h"

typedef struct ew__http_client {
    ew__peer peer;
    ew_call *call;    /* a reference of our own while it runs */
    int status;       /* of the answer being read; 0 before its head */
    bool streaming;   /* the answer is a stream of blocks */
    bool keep_alive;  /* the connection can carry another call after this one */
    bool closed;      /* it will carry no more */
    bool paused;      /* reading waits for the caller */
    bool saw_nothing; /* the last block of the stream was empty */
    uint64_t retry_after_ms;
    ew__buf body;
    ew__sse sse;
    _Alignas(16) uint8_t reader[EW__HTTP_READER_BYTES];
} ew__http_client;

#endif
