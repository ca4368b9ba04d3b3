/*
 * gateway/outbound.h: where an app calls because a peer has named a URL (ew__outbound): a few pools of connections on each loop.
 */
#ifndef EW_GATEWAY_OUTBOUND_H
#define EW_GATEWAY_OUTBOUND_H

#include "endpoint/pool.h"

#define EW__OUTBOUND_POOLS_MAX 4 /* of one loop; one that nobody uses makes room for another */

struct ew__app_loop;

/* Those of one loop; its thread only. */
typedef struct ew__app_outbound {
    ew__list pools; /* the newest use first */
    unsigned n;     /* that are not being closed */
    unsigned n_all;
    bool closing;
    bool logged_tls; /* the log has said that there is no TLS */
    void (*on_closed)(struct ew__app_loop *loop);
} ew__app_outbound;

/* The app's ew__outbound.open. */
ew_err ew__app_outbound_open(struct ew__outbound *outbound, ew__executor *executor, const ew__wire *wire, ew_str url,
                             ew_call *call);

/* How many there are to be closed; then on_closed is called for each of them, possibly at once. A second time: nothing. */
size_t ew__app_outbound_count(const struct ew__app_loop *loop);
void ew__app_outbound_close(struct ew__app_loop *loop, void (*on_closed)(struct ew__app_loop *loop));

#endif
