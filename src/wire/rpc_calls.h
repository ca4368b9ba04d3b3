/*
 * wire/rpc_calls.h: the calls of one connection that carries many at once, both ways: which there are and how one is
 * found by its id; producers of ours that wait for room; takers that are behind and hold up the connection. Shared by
 * the wires that speak JSON-RPC over a connection of their own; what the messages are is theirs. May include: base,
 * json, call.
 */
#ifndef EW_WIRE_RPC_CALLS_H
#define EW_WIRE_RPC_CALLS_H

#include "wire/jsonrpc_envelope.h"
#include "wire/wire.h"

typedef struct ew__rpc_calls ew__rpc_calls;
typedef struct ew__rpc_places ew__rpc_places;

/*
 * One call: the first member of the wire's own struct. It lives in the call's memory, so that it needs no freeing and
 * cannot outlive it.
 */
typedef struct ew__rpc_call {
    struct ew__rpc_call *next, *prev;           /* in its list */
    struct ew__rpc_call *wait_next, *wait_prev; /* among those who wait for room */
    ew__rpc_calls *all;
    ew_call *call;
    ew_str id;         /* as it stands on the wire; empty for a notification */
    ew_str key;        /* as it is looked up; empty: it is not */
    ew__timer timer;   /* the wire's; stopped when the call is removed */
    uint64_t heard_at; /* when the last piece of its incoming stream came */
    uint32_t size;     /* came: bytes that it holds in memory while it runs */
    uint64_t behind;   /* blocked: bytes that its taker was given since it asked to wait */
    uint16_t place;    /* of its own, from 1 on; 0: it is in the map, if it is to be found at all */
    bool sent;         /* we are its caller's side on this wire; else it came */
    bool own_id;       /* the id is one of ours that count up: without escapes, and nobody else's */
    bool input_open;   /* pieces of an input stream are still to come (came), or to be sent (sent) */
    bool waiting;      /* whoever feeds us was told to wait */
    bool blocked;      /* the taker of its stream asked to wait */
    bool stream;       /* sent: it has chunks or an input stream */
} ew__rpc_call;

typedef struct ew__rpc_list {
    ew__rpc_call *first; /* the newest */
    uint32_t n;
    /*
     * Ids mostly end in a number that counts up, so the last digits are a place to find the call at. Those that find
     * their place taken are in the map, so that ids which a peer has chosen to collide gain it nothing. Both are made
     * when a call is to be found again: most end at once.
     */
    ew__rpc_places *places;
    ew__map by_key;
    bool has_map;
} ew__rpc_list;

/* What the wire does when it is told. */
#define EW__RPC_OVERRUN "overrun: the stream was not taken, and held up its connection"

typedef struct ew__rpc_calls_ops {
    void (*overrun)(ew__rpc_call *entry); /* it held up everybody else for too long: end it (it is then removed) */
    void (*resume)(ew__rpc_calls *all);   /* nothing holds up reading any more: go on in the next turn */
    void (*abort)(ew__rpc_calls *all);    /* no memory for a timer: close the connection */
} ew__rpc_calls_ops;

struct ew__rpc_calls {
    ew__conn *conn;
    const ew__rpc_calls_ops *ops;
    ew__rpc_list served;                  /* calls that came: we are their caller's end */
    ew__rpc_list sent;                    /* calls that left: we are their callee's end */
    ew__rpc_call *speaks;                 /* sent: whose stream the last piece was of; NULL: none, or it has gone */
    ew__rpc_call *waiting, *waiting_last; /* producers that were told to wait, in turn */
    uint64_t served_bytes;                /* of all calls that came and still run */
    ew__timer guard;                      /* calls whose takers are behind have held up the others for too long */
    uint64_t behind_bytes;                /* of all blocked calls */
    uint32_t n_blocked, n_waiting, n_streams;
    uint8_t n_unnamed; /* errors without an id that were logged */
    bool deep; /* a message had more than EW_PAYLOAD_DEPTH levels: the depth of payloads is checked (ew_call.deep) */
};

void ew__rpc_calls_init(ew__rpc_calls *all, ew__conn *conn, const ew__rpc_calls_ops *ops);
void ew__rpc_calls_done(ew__rpc_calls *all); /* when both lists are empty */

/*
 * A message of the connection was parsed: marks all its calls, now and later, if the message is deep (call/call.h). The
 * wire copies `deep` into calls that come; payloads that wait for their call are checked when they reach it.
 */
void ew__rpc_calls_mark_all(ew__rpc_calls *all);
static inline void ew__rpc_calls_mark_depth(ew__rpc_calls *all, const ew__json_doc *doc) {
    if (EW__UNLIKELY(doc->deep && !all->deep))
        ew__rpc_calls_mark_all(all);
}

static inline ew__rpc_list *ew__rpc_list_of(const ew__rpc_call *entry) {
    return entry->sent ? &entry->all->sent : &entry->all->served;
}

static inline const ew_limits *ew__rpc_limits(const ew__rpc_calls *all) { return all->conn->executor->limits; }

/* ---- which there are ---- */

/* all, call, id, sent and size are set. */
void ew__rpc_call_add(ew__rpc_call *entry);
void ew__rpc_call_remove(ew__rpc_call *entry);                        /* also unblocks, stops waiting and its timer */
ew__rpc_call *ew__rpc_call_find(const ew__rpc_list *list, ew_str id); /* NULL: none */
/* The call that left with an id that is this one in each byte, whatever they are; NULL: none. */
ew__rpc_call *ew__rpc_call_sent(const ew__rpc_calls *all, ew_str id);
/*
 * The call that left and that a text, not parsed yet, answers with a result, where that can be told by its bytes; *ret
 * is what ew__rpc_read would say. NULL: it is to be read in the ordinary way.
 */
ew__rpc_call *ew__rpc_call_of_result(const ew__rpc_calls *all, ew_str text, ew__rpc *ret);
/* Makes it findable by its id. EW_OK, EW_ENOMEM, EW_EEXISTS. */
EW__MUST_USE ew_err ew__rpc_call_index(ew__rpc_call *entry);
void ew__rpc_late(const ew__rpc_calls *all); /* counts an event for no call */
/* How many calls that left satisfy the predicate; *ret_one is one of them. */
uint32_t ew__rpc_calls_count(const ew__rpc_calls *all, bool (*is)(const ew__rpc_call *entry), ew__rpc_call **ret_one);
/* Logs an error of the peer that has no id; a limited number of them per connection. */
void ew__rpc_log_unnamed(ew__rpc_calls *all, ew_str error);

/*
 * A call that leaves: all, call and id are set. From now on it is findable, we are its callee's end (callee_ud is the
 * entry) and hold a reference. EW_OK; EW_ENOMEM, EW_EEXISTS: nothing has happened.
 */
EW__MUST_USE ew_err ew__rpc_call_send(ew__rpc_call *entry, const ew__callee_ops *callee);
/* How many more calls may leave. */
uint32_t ew__rpc_capacity(const ew__rpc_calls *all);

/* A fault that refuses a call before its handler starts. */
static inline ew_fault ew__refusal(ew_status status, const char *message) {
    return (ew_fault){.status = status, .message = ew_str_from(message), .refused = true};
}

/* Whether a call that arrives cannot be accepted now; *ret: the fault that refuses it. */
static inline bool ew__rpc_busy(const ew__rpc_calls *all, bool draining, ew_fault *ret) {
    const ew_limits *limits = ew__rpc_limits(all);
    if (EW__UNLIKELY(all->conn->site->draining || draining))
        *ret = ew__refusal(EW_STATUS_UNAVAILABLE, "going down");
    else if (EW__UNLIKELY(all->served.n >= limits->calls_per_connection))
        *ret = ew__refusal(EW_STATUS_RESOURCE_EXHAUSTED, "too many calls on this connection");
    else if (EW__UNLIKELY(all->served_bytes > 4 * limits->frame_bytes))
        *ret = ew__refusal(EW_STATUS_RESOURCE_EXHAUSTED, "too many bytes of calls on this connection");
    else
        return false;
    return true;
}

/* ---- producers of ours ---- */

/* Queues the pieces of a message; large ones in the owner's memory (NULL: nobody's) are sent from where they lie. */
void ew__rpc_write(ew__out *out, const ew__rpc_out *message, ew_call *owner);

/* Whether a message of that length may leave at all; whether it may join what waits to be sent already. */
static inline bool ew__rpc_fits(const ew__rpc_calls *all, size_t len) {
    return len <= ew__rpc_limits(all)->frame_bytes;
}
static inline bool ew__rpc_has_place(const ew__rpc_calls *all, size_t len) {
    size_t waits = all->conn->out.bytes;
    return waits == 0 || waits + len <= ew__rpc_limits(all)->out_max_bytes;
}
/*
 * Whether a fault of that length may join the queue with its message and details; if not, only its status is sent. A
 * short one always may: calls_per_connection limits their number.
 */
#define EW__RPC_SHORT_FAULT ((size_t)1024)
static inline bool ew__rpc_fault_has_place(const ew__rpc_calls *all, size_t len) {
    return len <= EW__RPC_SHORT_FAULT || ew__rpc_has_place(all, len);
}
static inline bool ew__rpc_has_room(const ew__rpc_calls *all) {
    return all->conn->out.bytes < ew__rpc_limits(all)->out_high_bytes;
}
ew_err ew__rpc_call_wait(ew__rpc_call *entry); /* for room; EW_FULL */
/* A piece was sent. EW_OK, or EW_FULL: there is enough in the queue, it waits now and is told when there is room. */
static inline ew_err ew__rpc_call_pace(ew__rpc_call *entry) {
    return ew__rpc_has_room(entry->all) ? EW_OK : ew__rpc_call_wait(entry);
}
void ew__rpc_call_stop_waiting(ew__rpc_call *entry);
/* The queue has become short: those that wait now are told, in turn; paused reading is resumed if it may be. */
void ew__rpc_calls_drained(ew__rpc_calls *all);

/* ---- producers of the peer ---- */

/*
 * The taker of a stream was given n_bytes in n_chunks, and asks to wait until ew__rpc_call_unblock. If no other call is
 * on the connection, reading stops. Else the taker is given more, so that the others go on, until the bytes of all
 * blocked calls reach ew__rpc_behind_max; then reading stops, and the call that is furthest behind is lost if that
 * lasts. An input stream counts as that far behind at once.
 */
void ew__rpc_call_block(ew__rpc_call *entry, size_t n_chunks, size_t n_bytes);
void ew__rpc_call_unblock(ew__rpc_call *entry);
/* Never as much as the taker's connection may queue. */
static inline uint64_t ew__rpc_behind_max(const ew__rpc_calls *all) {
    const ew_limits *limits = ew__rpc_limits(all);
    return limits->out_max_bytes > limits->out_high_bytes ? (limits->out_max_bytes - limits->out_high_bytes) / 2 : 0;
}
/* Whether blocked calls stop the reading. */
static inline bool ew__rpc_is_held_up(const ew__rpc_calls *all) {
    return EW__UNLIKELY(all->n_blocked > 0) &&
           (all->n_blocked == all->sent.n + all->served.n || all->behind_bytes >= ew__rpc_behind_max(all));
}
/* For ew__wire.sharing. */
static inline ew__sharing ew__rpc_sharing(const ew__rpc_calls *all) {
    return all->n_streams > 0                ? EW__SHARING_STREAM
           : all->sent.n + all->served.n > 0 ? EW__SHARING_CALLS
                                             : EW__SHARING_IDLE;
}
/*
 * Queued bytes at which a connection stops reading. A connection used in both directions gets more: if both sides
 * stopped reading because of their own output, neither would continue. Never above out_max_bytes, and never below
 * out_high_bytes: the connection reports `drained` only after it has reached that mark.
 */
static inline uint64_t ew__rpc_pause_bytes(const ew__rpc_calls *all) {
    const ew_limits *limits = ew__rpc_limits(all);
    uint64_t most = all->sent.n ? limits->out_max_bytes / 2 : 4 * limits->out_high_bytes;
    most = most < limits->out_max_bytes ? most : limits->out_max_bytes;
    return most > limits->out_high_bytes ? most : limits->out_high_bytes;
}
/* Whether reading pauses: takers of streams are behind, or too much output is queued. */
static inline bool ew__rpc_must_pause(const ew__rpc_calls *all) {
    return EW__UNLIKELY(all->conn->out.bytes >= ew__rpc_limits(all)->out_high_bytes &&
                        all->conn->out.bytes >= ew__rpc_pause_bytes(all)) ||
           ew__rpc_is_held_up(all);
}
/*
 * Begins or goes on watching for silence of the incoming stream: fn is called when heard_at, as it is now, is too long
 * ago. It looks again, since pieces only note their time, and goes on if there were any or the call is blocked.
 */
ew_err ew__rpc_call_watch_silence(ew__rpc_call *entry, ew__timer_fn fn); /* EW_OK or EW_ENOMEM */

#endif
