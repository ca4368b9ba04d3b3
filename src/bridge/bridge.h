/*
 * bridge/bridge.h: a handler that opens an outgoing call and relays all that happens on either side. It is the callee's
 * end of one call (near) and the caller's end of another (far), on the same executor; what carries the far one, and whether
 * that leads to another loop, it does not know. May include: base, json, call.
 *
 * Payloads are passed on as they lie in the memory of the call that brought them: nothing is parsed, and large ones are
 * not copied.
 */
#ifndef EW_BRIDGE_BRIDGE_H
#define EW_BRIDGE_BRIDGE_H

#include "call/call.h"

#define EW__HOPS_MAX 8        /* everywires that a call may cross */
#define EW__FAR_PAUSE_MS 1000 /* one that could not be reached is passed over so long, if there are others */

typedef struct ew__upstream ew__upstream;

/* Where calls go: a peer that has actions. Its owner keeps it in front of its own memory. */
struct ew__upstream {
    atomic_uint refs;
    void (*free)(ew__upstream *far); /* the last reference has gone. Any thread */
    /* Opens a call that was made with ew__call_new, on its executor's thread: it ends exactly once. */
    void (*open)(ew__upstream *far, ew_call *call);
    /* As ew__wire.refuses; NULL: everything can be carried. */
    const char *(*refuses)(const ew_request_options *options);
    const char *wire;         /* the name of the wire that leads there; or NULL */
    bool traces;              /* the wire tells the peer of the trace */
    bool here;                /* it is no other everywire: a call may come from as far as it likes */
    atomic_ullong down_until; /* it could not be reached: others are tried first until then */
    atomic_uint calls;        /* that are on their way */
};

ew__upstream *ew__upstream_ref(ew__upstream *far);
void ew__upstream_unref(ew__upstream *far);

/* What one action needs: who has it, and by what name. It never changes; one reference for each action. */
typedef struct ew__bridge {
    atomic_uint refs;
    const ew_env *env;
    atomic_uint turn; /* of the next call */
    uint32_t n_fars;
    ew__upstream **fars;
    ew_str *names; /* of the action, at each of them */
    size_t size;
} ew__bridge;

/* References to fars are taken; names are copied. NULL: no memory. */
ew__bridge *ew__bridge_new(const ew_env *env, ew__upstream *const *fars, const ew_str *names, uint32_t n);
void ew__bridge_drop(void *ud); /* for ew__action.drop: the bridge */
/* ew__action.ops; ops_ud is the ew__bridge. */
extern const ew__callee_ops ew__bridge_callee;

#endif
