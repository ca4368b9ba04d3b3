/*
 * call/call_memory.c: see call_memory.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call_memory.h"
#include "call/call.h"

static void *first_piece(const ew_call *call) { return (uint8_t *)(uintptr_t)call + sizeof *call; }

static size_t first_size(const ew__home *home) { return home->calls.size - sizeof(ew_call); }

ew_call *ew__call_memory_get(ew__home *home) {
    ew_call *call = ew__piece_get(&home->calls);
    if (!call)
        return NULL;
    memset((void *)call, 0, sizeof *call);
    ew__arena_init(&call->arena, home->env, first_piece(call), first_size(home));
    call->arena.pool = &home->pieces;
    return call;
}

void ew__call_memory_put(ew__home *home, ew_call *call) {
    ew__arena_done(&call->arena);
    ew__piece_put(&home->calls, call);
}

bool ew__call_owns(const ew_call *call, ew_str slice) {
    return slice.len > 0 && ew__arena_owns(&call->arena, first_piece(call), first_size(call->home), slice.ptr);
}
