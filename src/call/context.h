/*
 * call/context.h: what the calls of one executor share: their memory, their number, access, observers. The owner of the
 * executor attaches one before the first call. Used by the executor's thread, except where noted.
 */
#ifndef EW_CALL_CONTEXT_H
#define EW_CALL_CONTEXT_H

#include "base/executor.h"

typedef struct ew__observer ew__observer;
typedef struct ew__gate ew__gate;

typedef struct ew__call_context {
    ew__observer *observer;                  /* first of a chain (call/call.h); NULL: none */
    ew__gate *gate;                          /* access policy (call/access.h); NULL disables access control */
    uint32_t live;                           /* calls that were opened and that their callee has not ended */
    uint8_t stack_traces;                    /* ew_stack_traces: which callers get those of upstreams */
    atomic_uint *live_all;                   /* `live` of all executors of a program; may be NULL */
    void (*on_idle)(ew__executor *executor); /* the last live call has ended; may be NULL */
    ew__pieces memory;                       /* of calls */
    ew__pieces pieces;                       /* of what does not fit in there */
    atomic_ullong dropped;                   /* late events. Any thread */
} ew__call_context;

/* Attaches it: executor->calls. */
void ew__call_context_init(ew__call_context *context, ew__executor *executor);
/* Before ew__executor_done, when no call is left. */
void ew__call_context_done(ew__call_context *context);

#endif
