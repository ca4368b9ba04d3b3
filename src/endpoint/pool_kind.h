/*
 * endpoint/pool_kind.h: what pool.c (the queue, and targets that are dialled), pool_listen.c (targets that are listened
 * for) and pool_manage.c with runner.c (processes of ours) know of each other.
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
} ew__pool_kind;

/* Takes a call out of the queue. */
ew_call *ew__pool_dequeue(struct ew__pool_wait *wait);
/* Fails all that wait now. */
void ew__pool_fail_waiting(ew__pool *pool, ew_origin origin, ew_status status, ew_str message);
void ew__pool_check_closed(ew__pool *pool);

#endif
