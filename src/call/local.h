/*
 * call/local.h: what a handler may ask of its call, on the executor thread. Used by post.c, which brings requests of
 * other threads here.
 */
#ifndef EW_CALL_LOCAL_H
#define EW_CALL_LOCAL_H

#include "call/call.h"

ew_err ew__local_on_cancel(ew_call *call, ew_call_fn fn, void *arg);
ew_err ew__local_on_room(ew_call *call, ew_call_fn fn, void *arg);
ew_err ew__local_after(ew_call *call, uint64_t ms, ew_call_fn fn, void *arg);
ew_err ew__local_on_input(ew_call *call, ew_input_fn fn, void *arg);

#endif
