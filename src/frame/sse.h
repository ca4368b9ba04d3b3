/*
 * frame/sse.h: the blocks of a streamed answer ("data: {...}", blank line) out of bytes. Reads what every known server
 * sends: "data:" and "error:" prefixes with or without the space, several data lines in one block (joined by LF), CRLF
 * and CR line ends, comments, event:, id: and retry: lines, a byte order mark, a trailing "END", and a last block
 * without its blank line.
 * May include: base.
 */
#ifndef EW_FRAME_SSE_H
#define EW_FRAME_SSE_H

#include "base/buf.h"

typedef enum ew__sse_kind {
    EW__SSE_MORE,  /* feed again (or the stream is over, after ew__sse_feed_eof) */
    EW__SSE_DATA,  /* a block of data: lines; empty ones are passed over */
    EW__SSE_FAULT, /* a block of error: lines */
    EW__SSE_BAD    /* the stream cannot be trusted, sse->err says why; every further call says the same */
} ew__sse_kind;

typedef struct ew__sse {
    const char *in; /* bytes fed, not yet read */
    size_t in_len;
    ew__buf line;  /* an unfinished line; when finished, its text stays here until the next unfinished one */
    ew__buf block; /* payload of a block that has several lines, or whose line is no longer in memory */
    ew_str
        view; /* payload of a block that is one line: in the fed bytes or in `line`; ptr NULL when it is in `block` */
    ew_str held; /* a line read but not yet understood: it belongs to the block after the one handed out */
    size_t max_block;
    ew_err err;     /* EW_ELIMIT, EW_ENOMEM or EW_EPROTO (a line that no known server sends) */
    uint8_t kind;   /* of the block being read; EW__SSE_MORE: none */
    bool line_open; /* `line` waits for its end */
    bool holds;     /* `held` is there */
    bool started;   /* past the byte order mark */
    bool last_cr;   /* the last byte was CR: a following LF belongs to it */
    bool eof;
    bool ready; /* the block was handed out; it goes at the next call */
} ew__sse;

void ew__sse_init(ew__sse *sse, const ew_env *env, size_t max_block);
void ew__sse_done(ew__sse *sse);
/* Gives bytes; they must stay until ew__sse_next returned MORE, or the stream is dry. Not while unread bytes remain. */
void ew__sse_feed(ew__sse *sse, const void *bytes, size_t n);
/* The stream is over: a last block without its blank line is handed out. */
void ew__sse_feed_eof(ew__sse *sse);
/*
 * The next block; its payload by ew__sse_payload until the next call. A payload over max_block: EW__SSE_BAD with
 * EW_ELIMIT.
 */
ew__sse_kind ew__sse_next(ew__sse *sse);
ew_str ew__sse_payload(const ew__sse *sse);
/* Nothing but whole blocks was fed so far, and all of them were handed out: what is fed next begins a block. */
static inline bool ew__sse_is_between(const ew__sse *sse) {
    return sse->started && sse->in_len == 0 && (sse->ready || sse->kind == EW__SSE_MORE) && !sse->line_open &&
           !sse->holds && !sse->last_cr && !sse->eof && sse->err == EW_OK;
}
/* A block was handed out, and nothing is left of what was fed: ew__sse_next would say MORE, and need not be asked. */
static inline bool ew__sse_is_dry(const ew__sse *sse) {
    return sse->ready && sse->in_len == 0 && !sse->holds && !sse->eof;
}

#endif
