/*
 * api/relay.h: a call that is to be opened on another loop than the one it came to, because only that one can: the
 * connection of a runtime that has dialled us, a program of ours, a process that runs there. Used inside src/api only.
 */
#ifndef EW_API_RELAY_H
#define EW_API_RELAY_H

#include "bridge/bridge.h"
#include <pthread.h>

/* Who opens calls, and where. Its owner keeps it in front of its own memory, and fills in all of it. */
typedef struct ew__elsewhere ew__elsewhere;
struct ew__elsewhere {
    ew__far far; /* one reference for each call, beside the owner's */
    ew__home *home;
    void (*open)(ew__elsewhere *there, ew_call *call); /* home's thread; gives the call another callee, or ends it */
    pthread_mutex_t *lock;                             /* of `gone` */
    bool gone;                                         /* nothing may be posted to home any more */
};

/* The callee's end of calls of any loop, which are opened on home; its ud is the ew__elsewhere. */
extern const ew__callee_ops ew__elsewhere_callee;
/* far.open */
void ew__elsewhere_open(ew__far *far, ew_call *call);

#endif
