/*
 * handler/workers.h: handlers that may block: a bounded number of threads, made when needed, and a bounded queue of
 * calls for them. May include: base, json, call.
 */
#ifndef EW_HANDLER_WORKERS_H
#define EW_HANDLER_WORKERS_H

#include "call/call.h"

typedef struct ew__workers ew__workers;

/* Threads start when the first call needs one. limits is borrowed. NULL: no memory. */
ew__workers *ew__workers_new(const ew_env *env, const ew_limits *limits);
/* The callee's table for actions that run here; its ud is the workers. */
const ew__callee_ops *ew__workers_callee(const ew__workers *workers);
/*
 * Waits for the threads, at most that long, and frees everything. A handler that still blocks then keeps its thread
 * and this memory: false, and the loops that its call belongs to must stay too.
 */
bool ew__workers_free(ew__workers *workers, uint64_t ms);

#endif
