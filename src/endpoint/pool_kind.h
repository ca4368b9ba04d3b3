/*
 * endpoint/pool_kind.h: what pool.c (the queue, and targets that are dialled), pool_child.c (a process that we speak
 * with over its standard input and output), pool_listen.c (targets that are listened for), pool_manage.c with runner.c
 * (processes of ours that are told where to listen) and pool_announce.c (one that tells us) know of each other.
 */
#ifndef EW_ENDPOINT_POOL_KIND_H
#define EW_ENDPOINT_POOL_KIND_H

#include "endpoint/pool.h"

/* A call in the queue: lives in the call's own arena. */
struct ew__pool_wait {
    struct ew__pool_wait *next, *prev;
    ew_call *call;
    ew__pool *pool;
    uint64_t since;
    uint64_t number; /* 1, 2, ... in the order in which they came to wait */
    bool stream;     /* it gets a connection of its own if possible */
};

typedef struct ew__pool_kind {
    /*
     * Gives calls that wait to connections. fresh: one was added at the end of the queue, nothing else is new. NULL: a
     * connection or a process has changed.
     */
    void (*serve)(ew__pool *pool, struct ew__pool_wait *fresh);
    void (*close)(ew__pool *pool);           /* everything but the links; ew__pool_check_closed when that is done */
    bool (*is_closed)(const ew__pool *pool); /* it is */
    void (*done)(ew__pool *pool);            /* frees what is left; may be NULL */

    /* For those that use ew__pool_serve_dialled. All may be NULL. */
    bool (*may_dial)(ew__pool *pool); /* now? False: it serves again later. NULL: always */
    /*
     * A dial has failed, and there is no connection, nor another dial. True: it has seen to the calls that wait; NULL
     * or false: they fail.
     */
    bool (*dial_failed)(ew__pool *pool, const char *detail);
    void (*lost)(ew__pool *pool); /* the other side has ended a connection that was in use; serve follows */
} ew__pool_kind;

/* Takes a call out of the queue. */
ew_call *ew__pool_dequeue(struct ew__pool_wait *wait);
/* Fails all that wait now. */
void ew__pool_fail_waiting(ew__pool *pool, ew_origin origin, ew_status status, ew_str message);
void ew__pool_check_closed(ew__pool *pool);

/* Gives calls that wait to connections that have room, and dials pool->where for the rest. */
void ew__pool_serve_dialled(ew__pool *pool);
void ew__pool_close_dials(ew__pool *pool);
bool ew__pool_no_dials(const ew__pool *pool);

/* pool_child.c */
void ew__pool_child_init(ew__pool *pool);
bool ew__pool_child_holds_eof(ew__pool *pool, ew__link *link); /* as ew__link_owner.holds_eof */
void ew__pool_child_link_closed(ew__pool *pool);

#endif
