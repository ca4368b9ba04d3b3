/*
 * endpoint/pool.h: the connections of a client to its target, and the calls that wait for one. Loop thread only.
 */
#ifndef EW_ENDPOINT_POOL_H
#define EW_ENDPOINT_POOL_H

#include "endpoint/link.h"

typedef struct ew__pool ew__pool;

struct ew__pool {
    ew__loop *loop;
    const ew__wire *wire;
    ew__site site;
    ew__where where; /* what it points to is borrowed */
    ew__link *links;
    struct ew__pool_wait *first, *last; /* calls that wait, in order */
    uint32_t n_waiting;
    uint32_t n_dialling;
    uint32_t n_links;
    struct ew__pool_dial *dials;
    ew__scratches scratches;
    ew__traffic traffic;
    ew__timer idle; /* closes connections that nobody uses */
    bool closing;
    void (*on_closed)(ew__pool *pool);
    void *ud;
};

/* where is copied, what it points to is borrowed. */
void ew__pool_init(ew__pool *pool, ew__loop *loop, const ew__wire *wire, const ew__site *site, const ew__where *where);
/* Opens a call that was made with ew__call_new: it ends exactly once, whatever happens to the connections. */
void ew__pool_open(ew__pool *pool, ew_call *call);
/* Fails what waits, closes all; on_closed follows, possibly at once. */
void ew__pool_close(ew__pool *pool, void (*on_closed)(ew__pool *pool));
void ew__pool_done(ew__pool *pool); /* after on_closed */

#endif
