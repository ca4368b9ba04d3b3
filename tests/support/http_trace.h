/*
 * tests/support/http_trace.h: runs bytes through the HTTP/1 reader and writes down what came out, so that two ways of
 * cutting the same bytes can be compared as texts. Every piece is fed from a block of its own that is freed as soon as
 * the reader may not look at it any more: a memory checker then finds what outlived it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_HTTP_TRACE_H
#define EW_TESTS_HTTP_TRACE_H

#include "frame/http1.h"

typedef struct http_trace_how {
    bool response;
    bool keep;                      /* keep every head and write it down at its END */
    bool eof;                       /* the peer closes after the bytes */
    bool no_body;                   /* all answers belong to HEAD requests */
    bool upgrade;                   /* stop after a message that upgrades */
    size_t step;                    /* bytes of a piece; 0: see cut */
    size_t cut;                     /* bytes of the first of two pieces; 0: one piece */
    const ew__http1_limits *limits; /* NULL: http_trace_limits */
    const ew_env *env;              /* NULL: the default */
    ew__http1_scratch *scratch;     /* NULL: one of its own */
} http_trace_how;

typedef struct http_trace {
    char *text; /* one line for each head, field, body, end, error */
    size_t text_len;
    char *body; /* all bodies */
    size_t body_len;
    unsigned heads, ends;
    bool failed, no_memory, closed, upgraded, bad_target;
    int status;      /* of the failure */
    const char *why; /* in words; not part of the text */
} http_trace;

extern const ew__http1_limits http_trace_limits; /* the library's defaults */

void http_trace_run(http_trace *t, const http_trace_how *how, const void *bytes, size_t n);
void http_trace_done(http_trace *t);

/*
 * Runs the bytes in every way of cutting (one by one, in pieces of 2 to 7, cut in two at every place, kept heads) and
 * ends the test unless all traces are the same as the given one.
 */
void http_trace_same(const http_trace *t, const http_trace_how *how, const char *id, const void *bytes, size_t n);

#endif
