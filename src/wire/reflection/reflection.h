/*
 * wire/reflection/reflection.h: the reflection wire (Genkit Reflection V2): its table, what a connection keeps, and
 * what its files share. See README.md beside it.
 *
 *   wire.c     bytes to messages and to whom they are for; the life of a connection
 *   send.c     messages to bytes, pings
 *   serve.c    the runtime: calls that came        call.c     the manager: calls that leave
 *   greet.c    register, both sides                listing.c  the list of actions, both dialects
 *   known.c    the messages of most calls, told by their bytes
 *
 * Roles and directions belong together here: the runtime (EW__SERVE) dials and is the WebSocket's client, the manager
 * (EW__CALL) is its server, on a connection whose upgrade the http wire has answered.
 */
#ifndef EW_WIRE_REFLECTION_REFLECTION_H
#define EW_WIRE_REFLECTION_REFLECTION_H

#include "frame/ws.h"
#include "frame/ws_handshake.h"
#include "wire/reflection/codec.h"
#include "wire/rpc_calls.h"

extern const ew__wire ew__wire_reflection;

/* Which generation of the protocol the manager speaks; its answer to register tells. */
enum {
    EW__RF_UNDECIDED, /* no answer yet */
    EW__RF_FIRST,     /* the document: register is answered with null, listings are flat */
    EW__RF_CURRENT    /* the CLI of today: with an object, listings are {"actions":...} */
};

/* What the connections of one loop, or of one connector, share. */
typedef struct ew__rf_scratch {
    ew__ws_scratch ws;
    bool told; /* that the manager refuses us */
} ew__rf_scratch;

/* A call on this connection. It lives in the call's own memory. */
typedef struct ew__rf_call {
    ew__rpc_call base; /* first */
    union {
        struct {
            bool *ended; /* while the handler is being called: tells its caller that the call has gone */
        } came;
        struct {
            char id[EW__RPC_ID_ROOM];
            ew__buf held;    /* input that came before the runtime said that it runs: length, bytes, ... */
            bool held_end;   /* ... and its end */
            bool running;    /* runActionState has come (or was waited for in vain): input may flow */
            bool cancelling; /* the runtime was asked to stop, or will be when its trace id is known */
            bool asked;      /* it was: once is enough, however often it says its state */
        } left;
    };
} ew__rf_call;

typedef struct ew__rf_peer {
    ew__peer peer;
    ew__rpc_calls calls;
    ew__ws ws;
    ew__ws_dial *dial; /* runtime: while the opening handshake lasts */
    ew__rpc_ids ids;
    ew__buf in;             /* bytes that wait because reading is paused */
    ew__timer pulse;        /* pings, and patience with whoever does not get on */
    ew__timer resume;       /* reading goes on in the next turn */
    uint64_t opened_at;     /* the connection; later: the WebSocket on it */
    uint64_t heard_at;      /* any bytes */
    uint64_t progress_at;   /* a message was whole, or a good part of a long one came */
    uint32_t progress;      /* bytes since then */
    uint32_t n_cancels;     /* manager: answers to cancelAction that are still to come */
    uint32_t message_limit; /* manager: bytes of a message that this runtime is known to take; 0: the usual limit */
    uint16_t n_bad;         /* unreadable messages */
    ew__skim *skim;         /* of a message that is too large; NULL: none has come */
    uint8_t dialect;
    uint8_t register_id_len;
    char register_id[EW__RPC_ID_ROOM]; /* runtime: of our request */
    bool registered;                   /* manager: the runtime has said who it is */
    bool everywire;                    /* manager: it is made with this library */
    bool pinged;                       /* a ping is out since the peer was heard last */
    bool reading;                      /* messages are being taken: no second time from inside */
    bool paused;                       /* not before there is room */
    bool draining;                     /* close with the last call */
    bool closed;                       /* nothing more is read or written */
} ew__rf_peer;

static inline ew__executor *ew__rf_executor(const ew__rf_peer *peer) { return peer->peer.conn->executor; }
static inline ew__rf_peer *ew__rf_of(const ew__rpc_call *entry) {
    return ew__container_of(entry->all, ew__rf_peer, calls);
}

/* ---- wire.c ---- */

void ew__rf_abort(ew__rf_peer *peer); /* closes now; its calls end when the connection has gone */
/* Says goodbye with a close frame; what waits to be sent still leaves. Its calls end when the connection has gone. */
void ew__rf_close(ew__rf_peer *peer, uint16_t code, const char *reason);
void ew__rf_check_drained(ew__rf_peer *peer); /* a call has gone: was it the last? */
void ew__rf_resume_later(ew__rf_peer *peer);

/* ---- send.c ---- */

/* owner: large pieces in its memory may be sent from there; may be NULL. */
void ew__rf_send(ew__rf_peer *peer, const ew__rpc_out *message, ew_call *owner);
bool ew__rf_is_short(size_t length); /* a message of that length is written at once */
/* The messages of a row of chunks (ew__call_chunk_row), each of them short. */
void ew__rf_send_row(ew__rf_peer *peer, ew_str id, const ew_str *row, size_t n);
void ew__rf_send_control(ew__rf_peer *peer, const uint8_t *frame, size_t n);
/* An error for an id (empty: null). */
void ew__rf_send_error(ew__rf_peer *peer, ew_str id, int64_t code, const ew_fault *fault, ew_str trace_id);
void ew__rf_refuse(ew__rf_peer *peer, ew_str id, int64_t code, ew_status status, const char *message);
/* Begins or goes on watching the connection: pings after silence, and its end when nothing helps. */
void ew__rf_watch(ew__rf_peer *peer);

/* ---- serve.c ---- */

bool ew__rf_took_run(ew__rf_peer *peer, ew_str text); /* a text that can be told by its bytes, not parsed yet */
void ew__rf_serve(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message);
void ew__rf_give_up_large(ew__rf_call *entry, const char *problem); /* its input is too large to be read */
void ew__rf_serve_overrun(ew__rf_call *entry);
void ew__rf_serve_gone(ew__rf_peer *peer);

/* ---- call.c ---- */

ew_err ew__rf_open(ew__peer *base, ew_call *call);
void ew__rf_leave(ew__peer *base); /* as ew__wire.leave */
uint32_t ew__rf_capacity(const ew__peer *base);
const char *ew__rf_refuses(const ew_request_options *options);
#define EW__RF_ROW 32
/* How many of up to EW__RF_ROW texts, from the first on, were chunks of the stream that speaks, and were taken. */
size_t ew__rf_took_row(ew__rf_peer *peer, const ew_str *texts, size_t n);
bool ew__rf_took_chunk(ew__rf_peer *peer, ew_str text); /* a text that can be told by its bytes, not parsed yet */
bool ew__rf_took_known(ew__rf_peer *peer, ew_str text); /* the same for the two messages of each call */
void ew__rf_notified(ew__rf_peer *peer, const ew__json_doc *doc,
                     const ew__rpc *message); /* streamChunk, runActionState */
void ew__rf_answered(ew__rf_peer *peer, const ew__json_doc *doc, const ew__rpc *message);
void ew__rf_fail(ew__rf_call *entry, ew_origin origin, ew_status status, const char *message);
/* A chunk of its stream is too large to be read: the runtime is asked to stop. */
void ew__rf_fail_large(ew__rf_call *entry, const char *problem);
void ew__rf_overrun(ew__rf_call *entry); /* its stream held up the connection: the runtime is asked to stop */
void ew__rf_fail_all(ew__rf_peer *peer, ew_origin origin, ew_status status, const char *message);

/* ---- greet.c ---- */

void ew__rf_register(ew__rf_peer *peer);                            /* runtime: says who we are */
void ew__rf_registered(ew__rf_peer *peer, const ew__rpc *message);  /* runtime: the manager's answer */
void ew__rf_configured(ew__rf_peer *peer, ew_str params);           /* runtime: configure */
void ew__rf_on_register(ew__rf_peer *peer, const ew__rpc *message); /* manager */

#endif
