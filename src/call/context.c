/*
 * call/context.c: see context.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/context.h"

/* Kept for the next ones. A bridged call is two: 64 at a time must not ask the allocator for each. */
#define FREE_CALLS EW__POOL_KEEP(256)
#define FREE_PIECES EW__POOL_KEEP(128)
#define PIECE_BYTES 4096
/*
 * A call and the beginning of its memory. Small, because a connection may carry thousands of calls that wait: with the
 * entry that finds it again such a call stays under 1 KiB.
 */
#define CALL_BYTES 920

void ew__call_context_init(ew__call_context *context, ew__executor *executor) {
    *context = (ew__call_context){
        .memory = {.env = executor->env, .size = CALL_BYTES, .max_free = FREE_CALLS},
        .pieces = {.env = executor->env, .size = PIECE_BYTES, .max_free = FREE_PIECES},
    };
    executor->calls = context;
}

void ew__call_context_done(ew__call_context *context) {
    ew__pieces_trim(&context->memory);
    ew__pieces_trim(&context->pieces);
}
