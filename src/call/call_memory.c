/*
 * call/call_memory.c: see call_memory.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call_memory.h"
#include "call/call.h"

#define LARGE ((size_t)16 * 1024) /* payloads from here on are sent from where they lie */

static void *first_piece(const ew_call *call) { return (uint8_t *)(uintptr_t)call + sizeof *call; }

static size_t first_size(const ew__executor *executor) { return executor->calls->memory.size - sizeof(ew_call); }

ew_call *ew__call_memory_get(ew__executor *executor) {
    ew_call *call = ew__piece_get(&executor->calls->memory);
    if (!call)
        return NULL;
    memset((void *)call, 0, sizeof *call);
    ew__arena_init(&call->arena, executor->env, first_piece(call), first_size(executor));
    call->arena.pool = &executor->calls->pieces;
    return call;
}

void ew__call_memory_put(ew__executor *executor, ew_call *call) {
    ew__arena_done(&call->arena);
    ew__piece_put(&executor->calls->memory, call);
}

bool ew__call_owns(const ew_call *call, ew_str slice) {
    return slice.len > 0 && ew__arena_owns(&call->arena, first_piece(call), first_size(call->executor), slice.ptr);
}

static void release(void *call) { ew_call_unref(call); }

void ew__call_write(ew_call *owner, ew__out *out, ew_str payload) {
    if (payload.len >= LARGE && owner && !ew__call_owns(owner, payload))
        owner = owner->lender && ew__call_owns(owner->lender, payload) ? owner->lender : NULL;
    if (payload.len >= LARGE && owner)
        ew__out_ref(out, payload.ptr, payload.len, release, ew_call_ref(owner));
    else
        ew__out_str(out, payload);
}
