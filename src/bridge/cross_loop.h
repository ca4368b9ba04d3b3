/*
 * bridge/cross_loop.h: a call that is to be opened on another loop than the one it came to, because only that one can: the
 * connection of a runtime that has dialled us, a program of ours, a process that runs there. Used inside src/api only.
 */
#ifndef EW_BRIDGE_CROSS_LOOP_H
#define EW_BRIDGE_CROSS_LOOP_H

#include "bridge/bridge.h"
#include <pthread.h>

/* Who opens calls, and where. Its owner keeps it in front of its own memory, and fills in all of it. */
typedef struct ew__loop_upstream ew__loop_upstream;
struct ew__loop_upstream {
    ew__upstream far; /* one reference for each call, beside the owner's */
    ew__executor *executor;
    void (*open)(ew__loop_upstream *there,
                 ew_call *call); /* executor's thread; gives the call another callee, or ends it */
    pthread_mutex_t *lock;       /* of `gone` */
    bool gone;                   /* nothing may be posted to executor any more */
};

/* The callee's end of calls of any loop, which are opened on executor; its ud is the ew__loop_upstream. */
extern const ew__callee_ops ew__loop_upstream_callee;
/* far.open */
void ew__loop_upstream_open(ew__upstream *far, ew_call *call);

#endif
