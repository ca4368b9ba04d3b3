/*
 * wire/rrq/rrq.h: the rrq wire: its table, what a connection keeps, and what its files share. See README.md beside it.
 *
 *   wire.c    bytes to messages, and to whom they are for; the life of a connection
 *   serve.c   requests that came: we are the runner        index.c  how a cancel finds them
 *   call.c    requests that leave: we are the orchestrator
 */
#ifndef EW_WIRE_RRQ_RRQ_H
#define EW_WIRE_RRQ_RRQ_H

#include "frame/lenpfx.h"
#include "wire/progress.h"
#include "wire/rpc_calls.h"
#include "wire/rrq/codec.h"

extern const ew__wire ew__wire_rrq;

typedef struct ew__rrq_peer ew__rrq_peer;
typedef struct ew__rrq_call ew__rrq_call;

/* ---- index.c: the requests that run on one loop, on all of its connections ---- */

/* One request under one of its ids; those with the same id are a chain. */
typedef struct ew__rrq_place {
    struct ew__rrq_place *next, *prev;
    ew_str key; /* decoded, in the call's memory; empty: it is not in the index */
} ew__rrq_place;

#define EW__RRQ_EARLY_ID 64  /* bytes of a request's id: a cancel with a longer one is not kept */
#define EW__RRQ_EARLY_MAX 64 /* cancels that are kept; beyond it the oldest is dropped */
#define EW__RRQ_EARLY_MS 2000

/* A cancel that arrived before its request: it came on another connection, which may be faster. */
typedef struct ew__rrq_early {
    uint64_t until; /* 0: free */
    uint64_t from;  /* ew__rrq_peer.number of its connection; 0: of another loop */
    ew__principal owner;
    uint8_t len;
    char id[EW__RRQ_EARLY_ID]; /* decoded */
} ew__rrq_early;

typedef struct ew__rrq_scratch {
    ew__rrq_call *row, *row_last; /* not indexed yet, the oldest first */
    ew__map by_request, by_job;
    bool made;        /* the maps are */
    uint64_t wall_at; /* when the wall clock was looked at, and what it said */
    uint64_t wall_ms;
    ew__buf head, tail;     /* of the request that is being written */
    ew__when_memo memos[2]; /* of the times in it */
    uint64_t n_peers;       /* connections that there ever were */
    uint64_t early_until;   /* no early cancel is valid after that */
    uint32_t early_at;      /* where the next one is kept */
    ew__rrq_early early[EW__RRQ_EARLY_MAX];
} ew__rrq_scratch;

void ew__rrq_scratch_done(void *scratch);
uint64_t ew__rrq_wall_ms(ew__rrq_scratch *scratch, const ew__executor *executor); /* not looked at for each request */
void ew__rrq_index_add(ew__rrq_call *entry);
void ew__rrq_index_remove(ew__rrq_call *entry); /* in it or not */
/* The first request with these ids that this principal opened (NULL: any principal did); NULL: none. */
ew__rrq_call *ew__rrq_index_find(ew__rrq_scratch *scratch, const ew__rrq_ids *ids, const ew__principal *owner);
/* Keeps a cancel whose request is not here (yet). One without a request's id applies to what runs, and is not kept. */
void ew__rrq_early_add(ew__rrq_scratch *scratch, const ew__executor *executor, uint64_t from, const ew__rrq_ids *ids,
                       const ew__principal *owner);
/*
 * Whether a cancel of this request arrived before it; the cancel is used up. On one connection messages arrive in order:
 * a cancel does not apply to a later request of its own (from).
 */
bool ew__rrq_early_take(ew__rrq_scratch *scratch, const ew__executor *executor, uint64_t from, ew_str request,
                        const ew__principal *owner);

/* ---- calls ---- */

/* Where a request that left stands. */
enum {
    EW__RRQ_SENT,
    EW__RRQ_LATE,       /* its deadline has passed: the runner may still say so itself */
    EW__RRQ_CANCELLING, /* the runner was asked to stop */
    EW__RRQ_STUCK       /* and did not: the call has ended without it */
};

/* A call on this connection. Its timer: the end that was asked for does not come. */
struct ew__rrq_call {
    ew__rpc_call base; /* base.id: the request's id */
    ew__rrq_ids ids;
    ew__rrq_spans spans;              /* came: of its context */
    ew__rrq_place by_request, by_job; /* came */
    struct ew__rrq_call *row_next, *row_prev;
    bool in_row;     /* came: it is not indexed yet */
    bool *ended;     /* came: while the handler is being called: tells its caller that the call has gone */
    bool cancelling; /* came: its orchestrator has cancelled it */
    uint64_t end_at; /* left: n_queued behind its request */
    uint8_t phase;   /* left */
};

/* In quotes. */
typedef struct ew__rrq_own_id {
    char text[EW__UUID_LEN + 2];
} ew__rrq_own_id;

struct ew__rrq_peer {
    ew__peer peer;
    ew__buf in;     /* bytes of an incomplete frame, or bytes that wait because reading is paused */
    size_t need;    /* of the frame that `in` begins with; 0: not known */
    size_t max;     /* bytes of a frame that comes */
    ew__skim *skim; /* of a frame that is too long, while it is skipped; NULL: none is */
    size_t skip;    /* bytes of it that are still to come */
    size_t skipped; /* bytes of it that have come */
    bool whole;     /* `in` is one frame, and it is being taken */
    ew__rpc_calls calls;
    ew__timer patience; /* for the rest of a frame */
    ew__timer resume;   /* reading goes on in the next turn */
    ew__progress progress;
    ew__rrq_own_id request, job; /* calling: the last ones */
    uint64_t number;             /* of the connections of this loop, from 1 */
    uint64_t n_queued;           /* bytes that were ever put into conn->out */
    uint32_t n_stuck;
    uint32_t n_frames; /* that were taken; it wraps */
    bool reading;      /* frames are being taken: no second time from inside */
    bool paused;       /* not before there is room */
    bool broken;       /* something bad came: nothing more is read, what runs is still answered */
    bool draining;     /* finish with the last call */
    bool closed;       /* nothing more is read or written */
};

static inline const ew_limits *ew__rrq_limits(const ew__rrq_peer *peer) { return peer->peer.conn->executor->limits; }

static inline ew__rrq_peer *ew__rrq_peer_of(const ew__rrq_call *entry) {
    return ew__container_of(entry->base.all, ew__rrq_peer, calls);
}

static inline ew__rrq_call *ew__rrq_call_of(ew__rpc_call *entry) { /* NULL: NULL */
    return (ew__rrq_call *)(void *)entry;
}

/* ---- wire.c ---- */

/* Sends a message in a frame. owner: large pieces in its memory are sent from there; may be NULL. */
void ew__rrq_send(ew__rrq_peer *peer, const ew__rpc_out *message, ew_call *owner);
/*
 * Room for a small message of so many bytes at most: it is written there, and sent by telling where it ends. NULL: it is
 * to be sent by the function above.
 */
char *ew__rrq_message_room(ew__rrq_peer *peer, size_t most);
void ew__rrq_message_end(ew__rrq_peer *peer, char *first, const char *end);
void ew__rrq_check_drained(ew__rrq_peer *peer);         /* a call has gone: was it the last? */
void ew__rrq_abort(ew__rrq_peer *peer);                 /* closes now; its calls end when the connection has gone */
void ew__rrq_break_off(ew__rrq_peer *peer, ew_str why); /* calling: the peer broke the protocol */
/*
 * A frame that is too long, or nested too deep, to be read: the sender of a request gets an error, the call that an outcome is
 * for fails. false: it does not show whose it is.
 */
bool ew__rrq_serve_large(ew__rrq_peer *peer, const ew__skim *skim, const char *problem);
bool ew__rrq_answer_large(ew__rrq_peer *peer, const ew__skim *skim, const char *problem);
void ew__rrq_refuse_deep(ew__rrq_peer *peer, ew_str text); /* a whole frame that is nested too deep */
/* The memory of the frame that is being taken, if all of it is one block of our own: the call's from now on. */
bool ew__rrq_give_frame(ew__rrq_peer *peer, ew_call *call);

/* ---- serve.c ---- */

void ew__rrq_serve(ew__rrq_peer *peer, ew_str text); /* one frame */
void ew__rrq_let_go_all(ew__rrq_peer *peer);         /* the orchestrator has gone */
void ew__rrq_on_broadcast(void *scratch, ew__executor *executor, const ew__principal *sender, ew_str text);
const ew__rrq_call *ew__rrq_served(const ew_call *call); /* it came by this wire; NULL: it did not */

/* ---- spans.c ---- */

extern const ew__span_style ew__rrq_span_style;

/* ---- call.c ---- */

void ew__rrq_ids_init(ew__rrq_peer *peer);
void ew__rrq_answer(ew__rrq_peer *peer, ew_str text); /* one frame */
ew_err ew__rrq_open(ew__peer *base, ew_call *call);
void ew__rrq_leave(ew__peer *base); /* as ew__wire.leave */
uint32_t ew__rrq_capacity(const ew__peer *base);
uint64_t ew__rrq_most(const ew_limits *limits);
const char *ew__rrq_refuses(const ew_request_options *options);
void ew__rrq_fail_sent(ew__rrq_peer *peer, ew_origin origin, ew_status status, ew_str message);

#endif
