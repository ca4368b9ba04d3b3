/*
 * frame/http1_state.h: the inside of an HTTP/1 reader, for http1.c, known_heads.c and cutter.c only.
 */
#ifndef EW_FRAME_HTTP1_STATE_H
#define EW_FRAME_HTTP1_STATE_H

#include <llhttp.h>

#include "frame/http_guard.h"

enum {
    START,       /* between two messages */
    HEAD,        /* inside a head */
    BODY_LENGTH, /* guard.length bytes to come */
    BODY_CHUNKED,
    BODY_EOF, /* a body that ends with the connection */
    ENDING,   /* END is to be said */
    ENDED,    /* END was said */
    CLOSED,   /* nothing more is read */
    FAILED
};

enum { LEAD_NONE, LEAD_CR, LEAD_CRLF }; /* the empty line allowed before a message */

struct ew__http1 {
    llhttp_t parser;
    ew__http_guard guard;
    ew__http_head head;
    const ew__http1_limits *limits;
    ew__http1_scratch *scratch;
    const char *in; /* fed, not yet looked at */
    size_t in_len;
    ew_str body;
    const char *head_at; /* where the head's bytes lie while its slices are good */
    ew__buf part;        /* a head that came in pieces */
    char *kept;          /* field table and bytes of a kept head */
    size_t kept_size;
    uint32_t head_len;
    uint32_t line; /* where the line being scanned starts in the head */
    uint32_t seen; /* bytes of the head scanned */
    uint16_t error_status;
    uint8_t state;
    uint8_t lead;
    bool skip_body;     /* expect_no_body */
    bool head_done;     /* llhttp: headers complete */
    bool message_done;  /* llhttp: message complete */
    bool tells_interim; /* responses: 1xx answers are events, too (cutter.c) */
    bool eof;
};

/* Heads that were read before: known_heads.c. */
bool ew__http1_take_known(ew__http1 *http); /* true: what has come begins with one; HEAD_DONE */
void ew__http1_remember(ew__http1 *http, const char *bytes, size_t n);

#endif
