/*
 * endpoint/pool_kind.h: what pool.c and the kinds of pool share: the table of a kind's operations, and the pool that
 * dials, which three kinds embed.
 */
#ifndef EW_ENDPOINT_POOL_KIND_H
#define EW_ENDPOINT_POOL_KIND_H

#include "endpoint/pool.h"

/* A call in the queue: lives in the call's own arena. */
struct ew__pool_wait {
    ew__list_node node;
    ew_call *call;
    ew__pool *pool;
    uint64_t since;
    uint64_t number; /* 1, 2, ... in the order in which they were queued */
    bool stream;     /* it gets a connection of its own if possible */
};

static inline struct ew__pool_wait *ew__pool_first(const ew__pool *pool) {
    return EW__ITEM(pool->queue.calls.first, struct ew__pool_wait, node);
}

/* The operations of a kind. All but the first four may be NULL. */
typedef struct ew__pool_ops {
    size_t size; /* of the struct that embeds ew__pool as its first member `core` */
    /*
     * Gives calls that wait to connections. fresh: this call was added at the end of the queue, nothing else has changed.
     * NULL: a connection or a process has changed.
     */
    void (*serve)(ew__pool *pool, struct ew__pool_wait *fresh);
    void (*close)(ew__pool *pool);           /* all but the links; ew__pool_check_closed when that is done */
    bool (*is_closed)(const ew__pool *pool); /* it is */
    void (*done)(ew__pool *pool);            /* frees what the kind has allocated */
    void (*warm)(ew__pool *pool);            /* ew__pool_warm */
    uint32_t (*runtimes)(const ew__pool *pool);
    const char *(*child_end)(const ew__pool *pool);

    /* For kinds that embed ew__dial_pool. */
    bool (*may_dial)(ew__pool *pool); /* now? False: it serves again later */
    /*
     * A dial has failed, and there is no connection and no other dial. True: the kind takes care of the calls that wait;
     * false: they fail.
     */
    bool (*dial_failed)(ew__pool *pool, const char *detail);
    void (*lost)(ew__pool *pool); /* the peer has ended a connection that was in use; serve follows */
    bool (*holds_eof)(ew__pool *pool, ew__link *link); /* as ew__link_owner.holds_eof */
    void (*link_closed)(ew__pool *pool, ew__link *link);
} ew__pool_ops;

/* The memory of a pool, its core initialised, the rest zeros. NULL: no memory. */
void *ew__pool_new(const ew__pool_ops *ops, const ew__pool_config *config);
/* Takes a call out of the queue. */
ew_call *ew__pool_dequeue(struct ew__pool_wait *wait);
/* Fails all that wait now. */
void ew__pool_fail_waiting(ew__pool *pool, ew_origin origin, ew_status status, ew_str message);
void ew__pool_check_closed(ew__pool *pool);

/* ---- pool_dial.c ---- */

typedef struct ew__dial_pool {
    ew__pool core;
    struct ew__pool_dial *dials;
    uint32_t n_dials;
    uint32_t fixed;       /* as in ew__pool_config */
    uint64_t max_links;   /* the same */
    ew__list roomy;       /* links that may take another call, in the order in which they are tried */
    uint64_t share_until; /* a further connection was refused lately: streams share those that exist */
    ew__timer idle;       /* closes connections without calls */
    ew__timer patience;   /* calls have waited for a place on a connection for a while */
    bool opening; /* a call has just come: fixed connections that are missing are dialled, but for no other reason */
} ew__dial_pool;

static inline ew__dial_pool *ew__dial_pool_of(const ew__pool *pool) {
    return (ew__dial_pool *)(uintptr_t)ew__container_of(pool, const ew__dial_pool, core);
}

/* As ew__pool_new, for ops whose struct embeds ew__dial_pool as its first member. */
void *ew__dial_pool_new(const ew__pool_ops *ops, const ew__pool_config *config);
/* Gives calls that wait to connections that have room, and dials pool->where for the rest. */
void ew__dial_pool_serve(ew__pool *pool);
void ew__dial_pool_close(ew__pool *pool);
bool ew__dial_pool_is_closed(const ew__pool *pool);
void ew__dial_pool_cancel(ew__pool *pool); /* the dials */

/* ---- pool_child.c ---- */

ew_err ew__pool_child(const ew__pool_config *config, ew__pool **ret);

#endif
