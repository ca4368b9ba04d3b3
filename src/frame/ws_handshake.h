/*
 * frame/ws_handshake.h: how a WebSocket begins (RFC 6455, section 4), both sides, pure. Extensions are never offered
 * and never taken. Who may come in (Host, Origin, a token) is decided elsewhere, before ew__ws_accept.
 * May include: base.
 */
#ifndef EW_FRAME_WS_HANDSHAKE_H
#define EW_FRAME_WS_HANDSHAKE_H

#include "base/buf.h"
#include "frame/http1.h"

#define EW__WS_KEY_SIZE 16
#define EW__WS_KEY_TEXT 24    /* the key as base64 */
#define EW__WS_ACCEPT_TEXT 28 /* the answer to it */

/* ---- a server ---- */

typedef struct ew__ws_verdict {
    int status;                      /* 101, or the refusal: 400, 405, 426 */
    const char *why;                 /* refusals: for people */
    const char *fields;              /* header lines that belong to the answer, each with its CRLF */
    char accept[EW__WS_ACCEPT_TEXT]; /* 101: the value of Sec-WebSocket-Accept */
} ew__ws_verdict;

/* Judges a request that wants to become a WebSocket. The head comes from the HTTP/1 reader, whose guard has seen it. */
void ew__ws_accept(const ew__http_head *head, ew__ws_verdict *ret);

/*
 * The answer to a request that is taken (status 101). protocol: the one of those offered that was chosen, or empty:
 * EW_EINVAL if the request did not offer it. After it, frames.
 */
ew_err ew__ws_accept_write(const ew__http_head *head, const ew__ws_verdict *verdict, ew_str protocol, ew__buf *out);

/* Whether a request offers a subprotocol: exactly that name in Sec-WebSocket-Protocol. */
bool ew__ws_offers(const ew__http_head *head, ew_str protocol);

/* ---- a client ---- */

#define EW__WS_ANSWER_MAX 8192 /* bytes of the head of an answer */

typedef enum ew__ws_dialled {
    EW__WS_DIAL_MORE,    /* feed again */
    EW__WS_DIAL_OPEN,    /* what was not used is frames */
    EW__WS_DIAL_REFUSED, /* an HTTP answer other than 101: status, reason */
    EW__WS_DIAL_BAD      /* no answer to this request, or none at all: why. The connection is of no use */
} ew__ws_dialled;

typedef struct ew__ws_dial {
    ew__buf head; /* the answer, as far as it has come */
    ew_str offered;
    ew_str protocol; /* OPEN: the subprotocol chosen, in `offered`, or empty */
    ew_str reason;   /* REFUSED: the server's words, in `head` */
    const char *why; /* BAD */
    int status;      /* REFUSED */
    uint8_t event;
    char key[EW__WS_KEY_TEXT];
} ew__ws_dial;

/*
 * key: random bytes, new ones for every dial. offered: subprotocols, separated by commas, or empty; borrowed for the
 * dial's life.
 */
void ew__ws_dial_init(ew__ws_dial *dial, const ew_env *env, const uint8_t key[EW__WS_KEY_SIZE], ew_str offered);
void ew__ws_dial_done(ew__ws_dial *dial);

/*
 * Writes the request. target: path and query; fields: further header lines (Origin, Authorization), each with its CRLF,
 * or empty. EW_EINVAL: one of them could not stand in a head. EW_ENOMEM, EW_ELIMIT: from the buffer.
 */
ew_err ew__ws_dial_write(const ew__ws_dial *dial, ew_str host, ew_str target, ew_str fields, ew__buf *out);

/*
 * Reads the answer. *ret_used: how many of the bytes belong to it. Once it has said something other than MORE it says
 * the same again and uses nothing. No memory is BAD too.
 */
ew__ws_dialled ew__ws_dial_feed(ew__ws_dial *dial, const void *bytes, size_t n, size_t *ret_used);

#endif
