/*
 * call/call_memory.h: where calls come from and go to: one pooled piece of the executor holds the call and the beginning
 * of its arena, so that a small call allocates nothing. Used by call/ only.
 */
#ifndef EW_CALL_CALL_MEMORY_H
#define EW_CALL_CALL_MEMORY_H

#include "base/executor.h"

typedef struct ew_call ew_call;

/* cleared up to the arena's first piece; NULL when there is none */
ew_call *ew__call_memory_get(ew__executor *executor);
void ew__call_memory_put(ew__executor *executor, ew_call *call); /* executor thread */

#endif
