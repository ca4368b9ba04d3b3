/*
 * wire/mem/mem.h: the mem wire: its table, what a connection keeps, and what its files share. See README.md beside it.
 */
#ifndef EW_WIRE_MEM_MEM_H
#define EW_WIRE_MEM_MEM_H

#include "wire/mem/codec.h"
#include "wire/wire.h"

extern const ew__wire ew__wire_mem;

#define EW__MEM_WINDOW 65536 /* bytes of chunks that may be on their way in one direction of a call */

typedef struct ew__mem_peer ew__mem_peer;

/* A call on this connection. It lives in the call's own memory, so that it needs no freeing and cannot outlive it. */
typedef struct ew__mem_call {
    struct ew__mem_call *next, *prev;
    ew__mem_peer *peer;
    ew_call *call;
    uint32_t id;
    bool sent;     /* we are its caller's side on this wire; else it came */
    bool waiting;  /* whoever feeds us was told to wait */
    int64_t room;  /* bytes of chunks that the other side still takes */
    uint64_t owed; /* bytes of chunks that were taken here and not yet given back as room */
} ew__mem_call;

typedef struct ew__mem_list {
    ew__mem_call *first;
    uint32_t n;
} ew__mem_list;

/* Both roles are one struct: a connection may be used both ways, whoever dialled. */
struct ew__mem_peer {
    ew__peer peer;
    ew__buf in;          /* bytes that are no whole frame yet */
    ew__mem_list served; /* calls that came: we are their caller's end */
    ew__mem_list sent;   /* calls that left: we are their callee's end; each with a reference of ours */
    uint32_t next_id;
    bool draining; /* finish with the last call */
    bool closed;   /* nothing more is read or written */
};

/* wire.c: the connection. */
void ew__mem_send(ew__mem_peer *peer, const ew__mem_frame *frame);
bool ew__mem_fits(const ew__mem_peer *peer, const ew__mem_frame *frame); /* not over the frame limit */
void ew__mem_late(ew__mem_peer *peer);                                   /* an event for no call */
void ew__mem_check_drained(ew__mem_peer *peer); /* a call has gone: was it the last of a draining connection? */

/* wire.c: calls on it. */
void ew__mem_add(ew__mem_peer *peer, ew__mem_call *entry, ew_call *call, uint32_t id, bool sent);
void ew__mem_remove(ew__mem_call *entry);
ew__mem_call *ew__mem_find(const ew__mem_list *list, uint32_t id);

/* wire.c: flow, the same for both directions. */
ew_err ew__mem_send_chunk(ew__mem_call *entry, uint8_t event, ew_str json); /* EW_OK, EW_FULL, EW_ELIMIT, EW_ENOMEM */
ew_err ew__mem_given(ew__mem_call *entry,
                     uint64_t bytes); /* the other side gave room; EW_EPROTO: more than it ever took */
void ew__mem_took(ew__mem_call *entry, size_t bytes,
                  bool all); /* a consumer took a chunk; all: give back whatever is owed */

/* serve.c: an event from a caller. EW_OK, or what is wrong with it: the connection is closed then. */
ew_err ew__mem_serve(ew__mem_peer *peer, const ew__mem_frame *frame);

/* call.c: an event from a callee, and the calling slots of the table. */
ew_err ew__mem_answer(ew__mem_peer *peer, const ew__mem_frame *frame);
ew_err ew__mem_open(ew__peer *peer, ew_call *call);
uint32_t ew__mem_capacity(const ew__peer *peer);
void ew__mem_fail_sent(ew__mem_peer *peer, ew_origin origin, ew_status status, ew_str message);

#endif
