/*
 * bridge/bridge.h: a handler that forwards a call to an upstream. It is the callee of one call (inbound) and the caller
 * of another (outbound), both on the same executor. The bridge does not know the wire that carries the outbound call,
 * nor whether the upstream lives on another loop (cross_loop.h).
 *
 * Payloads are forwarded from the memory of the call that brought them: they are not parsed, and large ones are not
 * copied.
 */
#ifndef EW_BRIDGE_BRIDGE_H
#define EW_BRIDGE_BRIDGE_H

#include "call/call.h"

#define EW__HOPS_MAX 8             /* everywire instances that a call may cross */
#define EW__UPSTREAM_PAUSE_MS 1000 /* an unreachable upstream is skipped this long if there are others */

typedef struct ew__upstream ew__upstream;

/* A peer that calls are forwarded to. The owner embeds it in its own struct. */
struct ew__upstream {
    atomic_uint refs;
    void (*free)(ew__upstream *upstream); /* the last reference has been dropped. Any thread */
    /* Opens a call made by ew__call_new, on the thread of its executor. The call ends exactly once. */
    void (*open)(ew__upstream *upstream, ew_call *call);
    /* As ew__wire.refuses; NULL: everything can be carried. */
    const char *(*refuses)(const ew_request_options *options);
    const char *wire;         /* name of the wire that leads there; or NULL */
    bool traces;              /* the wire carries the trace */
    bool terminal;            /* The upstream is not an everywire instance, so no hop limit applies. */
    atomic_ullong down_until; /* unreachable: others are tried first until then */
    atomic_uint calls;        /* under way */
};

ew__upstream *ew__upstream_ref(ew__upstream *upstream);
void ew__upstream_unref(ew__upstream *upstream);

/* The upstreams that offer one action, and its name at each of them. Immutable; each action holds one reference. */
typedef struct ew__bridge {
    atomic_uint refs;
    const ew_env *env;
    atomic_uint turn; /* of the next call */
    uint32_t n_upstreams;
    ew__upstream **upstreams;
    ew_str *names; /* of the action, at each of them */
    size_t size;
} ew__bridge;

/* Takes a reference to each upstream and copies the names. NULL: out of memory. */
ew__bridge *ew__bridge_new(const ew_env *env, ew__upstream *const *upstreams, const ew_str *names, uint32_t n);
void ew__bridge_drop(void *ud); /* for ew__action.drop: the bridge */
/* ew__action.ops; ops_ud is the ew__bridge. */
extern const ew__callee_ops ew__bridge_callee;

#endif
