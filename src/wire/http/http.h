/*
 * wire/http/http.h: the http wire (Genkit's Action HTTP protocol): its table and what its files share. See README.md
 * beside it.
 */
#ifndef EW_WIRE_HTTP_HTTP_H
#define EW_WIRE_HTTP_HTTP_H

#include "wire/http_ask.h"

extern const ew__wire ew__wire_http;

/* Per executor: what all connections of this wire share. */
typedef struct ew__http_scratch {
    ew__http_reading reading;
    uint64_t date_until; /* monotonic ns: when `date` is out of date */
    char date[29];       /* "Sun, 15 Nov 2026 21:03:11 GMT" */
} ew__http_scratch;

/* The struct behind ew__peer is an ew__http_server (serve.h) or an ew__http_client (client.h), told apart by role. */
ew_err ew__http_server_init(ew__peer *peer);
void ew__http_server_input(ew__peer *peer, const uint8_t *bytes, size_t n);
uint8_t *ew__http_server_reserve(ew__peer *peer, size_t *ret_size);
void ew__http_server_eof(ew__peer *peer);
void ew__http_server_hung_up(ew__peer *peer);
void ew__http_server_drained(ew__peer *peer);
void ew__http_server_gone(ew__peer *peer, ew_err why);

ew_err ew__http_client_init(ew__peer *peer);
void ew__http_client_input(ew__peer *peer, const uint8_t *bytes, size_t n);
void ew__http_client_eof(ew__peer *peer);
void ew__http_client_gone(ew__peer *peer, ew_err why);
ew_err ew__http_client_open(ew__peer *peer, ew_call *call);
uint32_t ew__http_client_capacity(const ew__peer *peer);

#endif
