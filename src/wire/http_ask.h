/*
 * wire/http_ask.h: one HTTP connection on which we ask: one request and one call at a time. The wire that uses it defines
 * the requests and what the answers mean; here are the connection's life and the ways in which it breaks. A user that is
 * no wire (the exporter) sends requests without a call. May include: base, frame, call.
 */
#ifndef EW_WIRE_HTTP_ASK_H
#define EW_WIRE_HTTP_ASK_H

#include "frame/http1.h"
#include "wire/wire.h"

#define EW__HTTP_READER_BYTES 384 /* room for a frame/http1 reader; checked when a peer is made */

/* Per executor: what the readers of all connections share. */
typedef struct ew__http_reading {
    ew__http1_scratch fields;
    ew__http1_limits limits; /* the executor's, in the reader's words */
} ew__http_reading;

/* Makes a reader for a peer. request: it reads requests. EW_ELIMIT: it would not fit. */
EW__MUST_USE ew_err ew__http_reader_init(ew__conn *conn, ew__http_reading *reading, void *reader, bool request);

typedef struct ew__http_ask ew__http_ask;

typedef struct ew__http_ask_ops {
    void (*head)(ew__http_ask *ask, const ew__http_head *head); /* of an answer; there is a call, or `broken` is set */
    void (*piece)(ew__http_ask *ask, ew_str piece);             /* of its body; there is a call */
    /*
     * The answer is complete; perhaps the call has ended before it. Afterwards the connection is free, or closed. If it
     * cannot be kept (keep_alive), nothing may be asked any more: a call that is left is handed to another connection.
     * A connection on which bytes follow the answer cannot be kept.
     */
    void (*end)(ew__http_ask *ask);
    /*
     * The request was sent without a call, and its answer will not come: the connection is being closed. PROTOCOL: the
     * answer is no HTTP; LOCAL: no memory; CONNECT: the server closed. NULL: requests have calls.
     */
    void (*broken)(ew__http_ask *ask, ew_origin origin);
} ew__http_ask_ops;

/* The first member of the wire's own peer. */
struct ew__http_ask {
    ew__peer peer;
    const ew__http_ask_ops *ops;
    ew_call *call;   /* a reference of our own while it runs */
    int status;      /* of the answer being read; 0 before its head */
    bool keep_alive; /* the connection can carry another request after this one */
    bool closed;     /* it will carry no more */
    bool asked;      /* a request was sent and its answer is not complete */
    uint64_t length; /* of its body; 0: not said */
    ew_str whole;    /* a body that came in one piece; it lies in what was read, and goes with END */
    ew__buf body;    /* for other answers that are collected */
    _Alignas(16) uint8_t reader[EW__HTTP_READER_BYTES];
};

static inline ew__http1 *ew__http_ask_reader(ew__http_ask *ask) { return (ew__http1 *)(void *)ask->reader; }

EW__MUST_USE ew_err ew__http_ask_init(ew__http_ask *ask, const ew__http_ask_ops *ops, ew__http_reading *reading);
void ew__http_ask_input(ew__http_ask *ask, const uint8_t *bytes, size_t n);
void ew__http_ask_eof(ew__http_ask *ask);
/* Fails the call, frees what is here. */
void ew__http_ask_gone(ew__http_ask *ask, ew_err why);
static inline uint32_t ew__http_ask_capacity(const ew__http_ask *ask) {
    return ask->call || ask->closed || ask->status ? 0 : 1;
}

/* Takes the call on: we are its callee's end from now on (callee_ud is the ask), and hold a reference. */
void ew__http_ask_take(ew__http_ask *ask, ew_call *call, const ew__callee_ops *callee);
/*
 * Takes the call off the connection (ew__call_detach) and returns the reference that the connection held, NULL without a
 * call. The caller must end the call or pass it on, then drop the reference.
 */
EW__MUST_USE ew_call *ew__http_ask_detach(ew__http_ask *ask);
/* Ends the call for a reason that lies with the connection or the protocol, and gives the connection up. */
void ew__http_ask_break_off(ew__http_ask *ask, ew_origin origin, ew_status status, const char *text);
static inline void ew__http_ask_protocol_error(ew__http_ask *ask, const char *text) {
    ew__http_ask_break_off(ask, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, text);
}
/*
 * The fault of an answer that is neither a success that the wire knows nor an error (2xx, 3xx): UNKNOWN, with a message
 * that names the code and lies in `memory`.
 */
ew_fault ew__http_unexpected(ew__arena *memory, int status);
/* Writes the head of a POST of `length` bytes of JSON, to be answered in JSON. fields: further ones, with their CRLF. */
void ew__http_write_post(ew__out *out, ew_str path, ew_str authority, ew_str fields, uint64_t length);
/* What is in conn->out is a request: it is sent; without memory for it the call fails. */
void ew__http_ask_send(ew__http_ask *ask);
/* Adds a piece to the body; too large: the call fails. */
void ew__http_ask_collect(ew__http_ask *ask, ew_str piece);
/* What was collected; at the end of the answer, and not longer. */
static inline ew_str ew__http_ask_body(const ew__http_ask *ask) {
    return ask->whole.len ? ask->whole : ew__buf_view(&ask->body);
}

#endif
