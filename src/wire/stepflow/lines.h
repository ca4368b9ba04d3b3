/*
 * wire/stepflow/lines.h: Stepflow over standard input and output: what a connection keeps, and what its files share.
 *
 *   lines.c         messages and to whom they are for; the life of a connection; the wire's table
 *   lines_serve.c   what a runtime asks, and calls that came
 *   lines_call.c    calls that leave: to a server, after the handshake; back to a runtime
 *
 * Bytes to messages: wire/rpc_reader.h; the calls themselves and how they are found: wire/rpc_calls.h.
 */
#ifndef EW_WIRE_STEPFLOW_LINES_H
#define EW_WIRE_STEPFLOW_LINES_H

#include "wire/rpc_reader.h"
#include "wire/stepflow/stepflow.h"

/* How far a caller is with its server. */
enum {
    EW__SL_STRANGE, /* nothing was said */
    EW__SL_GREETED, /* initialize has left; calls wait for its answer */
    EW__SL_KNOWN    /* and has been answered */
};

/* A call on this connection. Its timer: the answer to a call that was cancelled does not come. */
typedef struct ew__sl_call {
    ew__rpc_call base;
    ew_err unsent;   /* sent: why it could not be */
    bool *ended;     /* came: while the handler is being called: tells its caller that the call has gone */
    bool back;       /* sent: asks the runtime something, for a call that came */
    bool waits;      /* sent: not yet, the server is being greeted */
    bool bare;       /* sent: with the name of the component as the caller gave it */
    bool cancelling; /* sent: the server was asked to stop */
} ew__sl_call;

/* Both roles are one struct. */
typedef struct ew__sl_peer {
    ew__peer peer;
    ew__rpc_reader reader;
    ew__rpc_calls calls; /* of each that left we have a reference */
    ew__rpc_ids ids;
    ew__timer answer;               /* initialize is not answered */
    size_t waiting_bytes;           /* inputs of the calls that wait for its answer */
    char hello_id[EW__RPC_ID_ROOM]; /* of initialize */
    uint8_t hello_id_len;
    uint8_t state;  /* EW__SL_STRANGE ... */
    bool everywire; /* the server is one of ours: it knows how to cancel */
} ew__sl_peer;

static inline ew__sl_peer *ew__sl_peer_of(const ew__sl_call *entry) {
    return ew__container_of(entry->base.all, ew__sl_peer, calls);
}

static inline ew__sl_call *ew__sl_find(const ew__rpc_list *list, ew_str id) { /* NULL: none */
    return (ew__sl_call *)(void *)ew__rpc_call_find(list, id);
}

/* ---- lines.c ---- */

/* A message in which all is as ew__sf_plain gives it. owner as for ew__rpc_reader_send. */
void ew__sl_send(ew__sl_peer *peer, const ew__rpc_out *message, ew_call *owner);
/* An answer to a request of the peer's: a result, or an error object. id as it came; empty: null. */
void ew__sl_respond(ew__sl_peer *peer, ew_str id, ew_str text, bool is_error);
void ew__sl_refuse(ew__sl_peer *peer, ew_str id, int64_t code, ew_status status, const char *message);

/* ---- lines_serve.c ---- */

void ew__sl_serve(ew__sl_peer *peer, const ew__json_doc *doc, const ew__rpc *message);
void ew__sl_notified(ew__sl_peer *peer, const ew__rpc *message);

/* ---- lines_call.c ---- */

ew_err ew__sl_open(ew__peer *base, ew_call *call);
void ew__sl_leave(ew__peer *base); /* as ew__wire.leave */
uint32_t ew__sl_capacity(const ew__peer *base);
/* A call back to the runtime, for one that came. As ew__wire.open. */
ew_err ew__sl_open_back(ew__sl_peer *peer, const ew_call *origin, ew_call *outgoing);
void ew__sl_answered(ew__sl_peer *peer, const ew__rpc *message); /* a result or an error */
void ew__sl_asked(ew__sl_peer *peer, const ew__rpc *message);    /* a server's request */
/* What the peer says of that id cannot be taken for an answer: who waits for one has failed. false: nobody does. */
bool ew__sl_misunderstood(ew__sl_peer *peer, ew_str id, ew_origin origin, ew_status status, const char *problem);
/* Fails every call that left. */
void ew__sl_lost(ew__sl_peer *peer, ew_origin origin, ew_status status, ew_str message);
/* A server's line is no JSON. Pieces of answers may be in it: calls end by them. */
void ew__sl_damaged(ew__sl_peer *peer, ew_str text);

#endif
