/*
 * call/stack_trace.h: whether a caller sees the stack traces that upstreams put into the details of their faults, and
 * how they are removed. The bridge and the HTTP front end of the jobs use it; no wire does. May include: base, json.
 */
#ifndef EW_CALL_STACK_TRACE_H
#define EW_CALL_STACK_TRACE_H

#include "base/mem.h"
#include "call/access.h"

/*
 * By the policy of the executor (executor->calls->stack_traces, an ew_stack_traces). who is the caller; NULL: unknown, hence not on
 * this machine. Thread of the executor. Never fails.
 */
bool ew__stack_trace_is_shown(const ew__executor *executor, const ew__who *who);

/*
 * Removes members named stack, stackTrace, stack_trace, stacktrace or traceback whose value is a string, at every depth
 * of *json (valid JSON, or empty). Without such a member *json stays as it is. Otherwise it becomes a copy in the arena;
 * empty if nothing is left of an object, or without memory.
 */
void ew__stack_trace_remove(ew__arena *arena, const ew_env *env, ew_str *json);

#endif
