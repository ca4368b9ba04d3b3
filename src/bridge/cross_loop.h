/*
 * bridge/cross_loop.h: calls to an upstream that lives on another loop than the call: the connection of a runtime that
 * dialled us, an executable, or a client's process.
 */
#ifndef EW_BRIDGE_CROSS_LOOP_H
#define EW_BRIDGE_CROSS_LOOP_H

#include "bridge/bridge.h"
#include <pthread.h>

/* An upstream whose calls can be opened on one executor only. The owner embeds it in its own struct and fills it in. */
typedef struct ew__loop_upstream ew__loop_upstream;
struct ew__loop_upstream {
    ew__upstream base; /* each cross-loop call holds a reference */
    ew__executor *executor;
    /* Passes a call of `executor`, which has just been opened, to the callee that serves it, or ends it. */
    void (*open)(ew__loop_upstream *upstream, ew_call *call);
    pthread_mutex_t *lock; /* of `gone` */
    bool gone;             /* no message may be posted to `executor` any more */
};

/* For base.open: opens a call of any executor. */
void ew__loop_upstream_open(ew__upstream *upstream, ew_call *call);

#endif
