/*
 * wire/jsonrpc/jsonrpc.h: the jsonrpc wire: its table, what a connection keeps, and what its files share. See README.md
 * beside it.
 *
 *   wire.c     messages and to whom they are for; the life of a connection
 *   send.c     messages to bytes
 *   serve.c    calls that came        batch.c  answers that leave together
 *   call.c     calls that leave       ask.c    what kind of peer this is
 *   stray.c    frames of calls that have not come yet, or have gone
 *
 * The calls themselves, how they are found and back pressure in both directions: wire/rpc_calls.h; bytes to messages:
 * wire/rpc_reader.h.
 */
#ifndef EW_WIRE_JSONRPC_JSONRPC_H
#define EW_WIRE_JSONRPC_JSONRPC_H

#include "wire/jsonrpc/codec.h"
#include "wire/rpc_reader.h"

extern const ew__wire ew__wire_jsonrpc;

/* Options of a target: bits of ew__site.options. */
enum {
    EW__JR_FRAMING = 3,           /* an ew__framing */
    EW__JR_PEER_FOREIGN = 1 << 2, /* the peer is not everywire: rpc.discover is not sent */
    EW__JR_PEER_PARAMS = 1 << 3,  /* the peer requires the member `params`: null is sent when there is no input */
    EW__JR_PEER_EVENTS = 1 << 4   /* the frames of the peer's streams are events: chunks, then a result or an error */
};

typedef struct ew__jr_peer ew__jr_peer;
typedef struct ew__jr_batch ew__jr_batch;

/* The end that an event has carried; the close frame ends the call. */
enum { EW__JR_END_NONE, EW__JR_END_RESULT, EW__JR_END_ERROR };

/* Where a call that leaves stands. */
enum {
    EW__JR_ASKING,   /* not sent: the peer was asked what it is */
    EW__JR_SENT,     /* no answer yet */
    EW__JR_STREAMING /* the base response came and opened a stream; the close frame ends the call */
};

/* A frame that came too early, or input that cannot leave yet; and a row of them. */
typedef struct ew__jr_held {
    struct ew__jr_held *next;
    size_t len;
    bool close;
    char bytes[];
} ew__jr_held;

typedef struct ew__jr_row {
    ew__jr_held *first, *last;
    uint32_t n, bytes;
} ew__jr_row;

/*
 * A call on this connection. Its timer: rpc.discover is not answered; the incoming stream is silent; or (cancelled) the
 * answer does not come.
 */
typedef struct ew__jr_call {
    ew__rpc_call base;
    bool streams;    /* came: its result goes out as a stream */
    bool events;     /* the frames of its result stream are events (EW__JR_EVENTS) */
    bool cancelling; /* sent: the peer was asked to stop */
    uint8_t phase;   /* sent */
    union {
        struct {
            ew__jr_batch *batch; /* its answer leaves with others */
            bool *ended;         /* while the handler is being called: tells its caller that the call has gone */
            bool accepted;       /* its stream was opened */
        } came;
        struct {
            ew__jr_row held;
            ew_str base; /* the result of the base response; later the end that an event has carried */
            uint8_t end; /* EW__JR_END_NONE ... */
        } left;
    };
} ew__jr_call;

/* Whether the peer is an everywire instance (ask.c). */
enum {
    EW__JR_UNKNOWN, /* rpc.discover was not sent */
    EW__JR_ASKED,   /* rpc.discover was not answered yet: calls that need the answer wait */
    EW__JR_EVERYWIRE,
    EW__JR_OTHER
};

/* Both roles are one struct: a connection is used both ways, whoever dialled. */
struct ew__jr_peer {
    ew__peer peer;
    ew__rpc_reader reader;
    ew__rpc_calls calls; /* of each that left we have a reference */
    ew__rpc_ids ids;
    struct ew__jr_strays *strays;   /* frames of no call; made when the first comes */
    size_t batch_bytes;             /* answers of batches that are not complete yet */
    char asked_id[EW__RPC_ID_ROOM]; /* of rpc.discover */
    uint8_t asked_id_len;
    uint8_t kind;    /* EW__JR_UNKNOWN ... */
    uint8_t framing; /* of what we write */
};

static inline const ew_limits *ew__jr_limits(const ew__jr_peer *peer) { return peer->peer.conn->executor->limits; }

static inline ew__jr_peer *ew__jr_peer_of(const ew__jr_call *entry) {
    return ew__container_of(entry->base.all, ew__jr_peer, calls);
}

static inline ew__jr_call *ew__jr_call_of(ew__rpc_call *entry) { /* NULL: NULL */
    return (ew__jr_call *)(void *)entry;
}

static inline ew__jr_call *ew__jr_find(const ew__rpc_list *list, ew_str id) { /* NULL: none */
    return ew__jr_call_of(ew__rpc_call_find(list, id));
}

/* ---- wire.c ---- */

/* One message, alone or of a batch, to whom it is for. */
void ew__jr_take(ew__jr_peer *peer, const ew__json_doc *doc, ew__jr_batch *batch);

/* ---- send.c ---- */

/*
 * Sends a message whose pieces hold no raw newline. owner: large pieces in its memory are sent from there; may be
 * NULL.
 */
void ew__jr_send(ew__jr_peer *peer, const ew__rpc_out *message, ew_call *owner);
/* Sends an error for an id (empty: null) that belongs to no call. */
void ew__jr_send_error(ew__jr_peer *peer, ew_str id, int64_t code, const char *message);
/* A payload as it may be sent: itself, or without white space in *buf (to be freed by the caller in any case). */
ew_err ew__jr_one_line(const ew__jr_peer *peer, ew_str json, ew__buf *buf, ew_str *ret);
/* One frame of a stream: EW_OK, EW_FULL (sent; room follows), EW_ELIMIT, EW_ENOMEM. */
ew_err ew__jr_send_chunk(ew__jr_call *entry, ew_str json);
ew_err ew__jr_send_row(ew__jr_call *entry, const ew_str *row, size_t *n); /* likewise */

/* ---- serve.c ---- */

/* Text and its envelope, from a peer. batch NULL: it came alone. */
void ew__jr_serve(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch);
void ew__jr_serve_frame(ew__jr_call *entry, const ew__rpc *message);
/* Ends a call that came with a fault of the wire's own; code 0: by status. */
void ew__jr_give_up(ew__jr_call *entry, int64_t code, ew_status status, const char *message);

/* Answers a request that is too large, or nested too deep, to be read. */
void ew__jr_refuse_large(ew__jr_peer *peer, const ew__rpc *message, const char *problem);

/* ---- stray.c ---- */

ew_err ew__jr_row_add(const ew_env *env, ew__jr_row *row, ew_str json, bool close); /* EW_OK or EW_ENOMEM */
ew__jr_held *ew__jr_row_take(ew__jr_row *row); /* the first, or NULL; to be freed by ew__jr_held_free */
void ew__jr_held_free(const ew_env *env, ew__jr_held *item);
uint32_t ew__jr_row_clear(const ew_env *env, ew__jr_row *row); /* how many there were */

/* A frame for no call: kept for a moment, in case it has overtaken its request. */
void ew__jr_stray(ew__jr_peer *peer, const ew__rpc *message);
/* The request of a stream has come: what came before it. EW_OK, or EW_ELIMIT: too much did, and is lost. */
ew_err ew__jr_stray_claim(ew__jr_peer *peer, ew_str id, ew__jr_row *ret);
/* A call has ended before its input did: frames for it are dropped from now on. */
void ew__jr_stray_refuse(ew__jr_peer *peer, ew_str id);
void ew__jr_strays_free(ew__jr_peer *peer);

/* ---- batch.c ---- */

void ew__jr_serve_batch(ew__jr_peer *peer, ew_str array);
void ew__jr_batch_add(ew__jr_peer *peer, ew__jr_batch *batch, const ew__rpc_out *message);
ew__jr_batch *ew__jr_batch_ref(ew__jr_batch *batch);
void ew__jr_batch_unref(ew__jr_peer *peer, ew__jr_batch *batch); /* the last one sends it */

/* ---- call.c ---- */

ew_err ew__jr_open(ew__peer *base, ew_call *call);
void ew__jr_leave(ew__peer *base); /* as ew__wire.leave */
uint32_t ew__jr_capacity(const ew__peer *base);
ew__sharing ew__jr_sharing(const ew__peer *base);
const char *ew__jr_refuses(const ew_request_options *options);
void ew__jr_answer(ew__jr_call *entry, const ew__rpc *message);
void ew__jr_fail_with(ew__jr_call *entry, ew_str error); /* the peer's error */
/*
 * The peer reports an error without an id: it could not read a request. It is the end of the only call whose params are
 * neither an object nor an array, or of the only call in flight. It is logged in any case.
 */
void ew__jr_unnamed_error(ew__jr_peer *peer, ew_str error);
void ew__jr_answer_frame(ew__jr_call *entry, const ew__rpc *message);
void ew__jr_answer_chunk(ew__jr_call *entry, ew_str data);                /* of a stream that is open */
void ew__jr_answer_row(ew__jr_call *entry, const ew_str *row, size_t *n); /* ew__call_chunk_row */
void ew__jr_send_now(ew__jr_call *entry);                                 /* the peer is known now */
void ew__jr_fail(ew__jr_call *entry, ew_origin origin, ew_status status, const char *message);
void ew__jr_overrun(ew__jr_call *entry); /* its stream held up the connection: the peer is asked to stop */
/* A piece of its stream, or its answer, is too large to be read. A peer that still streams is asked to stop. */
void ew__jr_fail_large(ew__jr_call *entry, const char *problem);
void ew__jr_fail_sent(ew__jr_peer *peer, ew_origin origin, ew_status status, ew_str message);

/* ---- ask.c ---- */

/* Lets a call wait for the kind of the peer, for a limited time. Sends rpc.discover once per connection. */
void ew__jr_ask(ew__jr_peer *peer, ew__jr_call *entry);
/* Whether the call cannot be sent before the kind of the peer is known. */
bool ew__jr_asks_first(const ew__jr_peer *peer, const ew_call *call);
/* Whether this id is that of an rpc.discover that was not answered yet. */
bool ew__jr_asked(const ew__jr_peer *peer, ew_str id);
/* Stores the kind of the peer and sends the calls that waited for it. */
void ew__jr_learn(ew__jr_peer *peer, bool everywire);

#endif
