/*
 * base/arena.c: the bump arena of base/mem.h. Nothing is given back before the end; there is no lock.
 *
 * With EW_DEBUG_ARENA every allocation is one of the env's own, of exactly its size, so that a memory checker sees a
 * write behind its end; the owner's first piece is then left alone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"

#include <string.h>

#define ALIGN ((size_t)16)
#define FIRST_SIZE ((size_t)1024)
#define LAST_SIZE ((size_t)64 * 1024)
/* From here on a value gets its own piece, so that the rest of the current one is not lost. */
#define LARGE_SIZE (LAST_SIZE / 4)

/*
 * One block that goes back to the env at the end. A bump piece begins with its own record; the record of an adopted
 * block lies in the arena itself, in a piece that is behind it in the list and so is freed after it.
 */
typedef struct ew__arena_piece {
    struct ew__arena_piece *next;
    void *block; /* NULL: this is a piece of the pool */
    size_t size;
} piece;

#define HEADER ((sizeof(piece) + ALIGN - 1) & ~(ALIGN - 1))
/* An allocator owes us only the alignment of max_align_t; where that is less than ours, a piece is made longer. */
#define SLACK (_Alignof(max_align_t) >= ALIGN ? (size_t)0 : ALIGN)

static uint8_t *align_up(uint8_t *ptr) { return ptr + (-(uintptr_t)ptr & (ALIGN - 1)); }

void ew__arena_init(ew__arena *arena, const ew_env *env, void *first, size_t first_size) {
    *arena = (ew__arena){.env = env, .next_size = FIRST_SIZE};
#if !defined(EW_DEBUG_ARENA)
    while (arena->next_size < LAST_SIZE && arena->next_size <= first_size) {
        arena->next_size *= 2;
    }
    if (first_size >= 2 * ALIGN) {
        arena->at = align_up(first);
        size_t lost = (size_t)(arena->at - (uint8_t *)first);
        /* The end is aligned too: a size that fits then still fits when it is rounded up. */
        arena->end = arena->at + ((first_size - lost) & ~(ALIGN - 1));
    }
#else
    (void)first;
    (void)first_size;
#endif
}

void ew__arena_done(ew__arena *arena) {
    piece *p = arena->pieces;
    while (p != NULL) {
        piece *next = p->next;
        if (p->block == NULL) {
            ew__piece_put(arena->pool, p);
        } else {
            ew__free(arena->env, p->block, p->size);
        }
        p = next;
    }
    arena->pieces = NULL;
    arena->at = NULL;
    arena->end = NULL;
    arena->next_size = FIRST_SIZE;
}

static void push(ew__arena *arena, piece *p, void *block, size_t size) {
    p->next = arena->pieces;
    p->block = block;
    p->size = size;
    arena->pieces = p;
}

/* A new piece with room for size bytes; their start, or NULL. */
static uint8_t *new_piece(ew__arena *arena, size_t size) {
    if (size > SIZE_MAX - HEADER - SLACK) {
        return NULL;
    }
    size_t total = HEADER + SLACK + size;
    piece *p = ew__alloc(arena->env, total);
    if (p == NULL) {
        return NULL;
    }
    push(arena, p, p, total);
    return align_up((uint8_t *)p + HEADER);
}

#if !defined(EW_DEBUG_ARENA)
/* A pooled piece if what is wanted fits into one and the arena has not outgrown them; else NULL. */
static void *alloc_pooled(ew__arena *arena, size_t room) {
    if (arena->pool == NULL || arena->next_size > arena->pool->size || room + HEADER + SLACK > arena->pool->size) {
        return NULL;
    }
    piece *p = ew__piece_get(arena->pool);
    if (p == NULL) {
        return NULL;
    }
    push(arena, p, NULL, arena->pool->size);
    uint8_t *start = align_up((uint8_t *)p + HEADER);
    arena->at = start + room;
    arena->end = start + ((arena->pool->size - HEADER - SLACK) & ~(ALIGN - 1));
    arena->next_size = arena->pool->size * 2;
    return start;
}
#endif

static void *alloc_slow(ew__arena *arena, size_t size) {
#if defined(EW_DEBUG_ARENA)
    return new_piece(arena, size);
#else
    if (size >= LARGE_SIZE) {
        return new_piece(arena, size);
    }
    size_t room = (size + ALIGN - 1) & ~(ALIGN - 1);
    void *pooled = alloc_pooled(arena, room);
    if (pooled != NULL) {
        return pooled;
    }
    size_t total = arena->next_size;
    while (total < HEADER + SLACK + room) {
        total *= 2;
    }
    size_t usable = total - HEADER - SLACK;
    uint8_t *start = new_piece(arena, usable);
    if (start == NULL) {
        return NULL;
    }
    arena->at = start + room;
    arena->end = start + usable;
    arena->next_size = total < LAST_SIZE ? total * 2 : LAST_SIZE;
    return start;
#endif
}

void *ew__arena_alloc(ew__arena *arena, size_t size) {
    if (size == 0) {
        size = 1; /* the answer must differ from "no memory" */
    }
    if (size > (size_t)(arena->end - arena->at)) {
        return alloc_slow(arena, size);
    }
    void *ptr = arena->at;
    arena->at += (size + ALIGN - 1) & ~(ALIGN - 1);
    return ptr;
}

void *ew__arena_copy(ew__arena *arena, const void *bytes, size_t n) {
    void *ptr = ew__arena_alloc(arena, n);
    if (ptr != NULL && n > 0) {
        memcpy(ptr, bytes, n);
    }
    return ptr;
}

ew_err ew__arena_str(ew__arena *arena, ew_str text, ew_str *ret_copy) {
    if (text.len == 0) {
        *ret_copy = (ew_str){NULL, 0};
        return EW_OK;
    }
    const char *copy = ew__arena_copy(arena, text.ptr, text.len);
    if (copy == NULL) {
        return EW_ENOMEM;
    }
    *ret_copy = (ew_str){copy, text.len};
    return EW_OK;
}

ew_err ew__arena_adopt(ew__arena *arena, void *block, size_t size) {
    if (block == NULL) {
        return EW_OK;
    }
    piece *record = ew__arena_alloc(arena, sizeof(*record));
    if (record == NULL) {
        return EW_ENOMEM;
    }
    push(arena, record, block, size);
    return EW_OK;
}

static bool is_within(const void *block, size_t size, const void *ptr) {
    /* As numbers: comparing pointers into different objects is not defined. */
    return (uintptr_t)ptr >= (uintptr_t)block && (uintptr_t)ptr - (uintptr_t)block < size;
}

bool ew__arena_owns(const ew__arena *arena, const void *first, size_t first_size, const void *ptr) {
    if (is_within(first, first_size, ptr)) {
        return true;
    }
    for (const piece *p = arena->pieces; p != NULL; p = p->next) {
        if (is_within(p->block ? p->block : p, p->size, ptr)) {
            return true;
        }
    }
    return false;
}
