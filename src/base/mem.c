/*
 * base/mem.c: the env's allocator in plain words, and the pool of blocks. The arena is in arena.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"

#include <string.h>

/* To the env a size of 0 means "free": a block of no bytes is one of 1 byte, on the way in and on the way out. */
static size_t at_least_one(size_t size) { return size == 0 ? 1 : size; }

void *ew__alloc(const ew_env *env, size_t size) { return env->alloc(env->ud, NULL, 0, at_least_one(size)); }

void *ew__zalloc(const ew_env *env, size_t size) {
    void *ptr = ew__alloc(env, size);
    if (ptr != NULL) {
        memset(ptr, 0, at_least_one(size));
    }
    return ptr;
}

void *ew__realloc(const ew_env *env, void *ptr, size_t old_size, size_t size) {
    if (ptr == NULL) {
        return ew__alloc(env, size);
    }
    return env->alloc(env->ud, ptr, at_least_one(old_size), at_least_one(size));
}

void ew__free(const ew_env *env, void *ptr, size_t size) {
    if (ptr != NULL) {
        (void)env->alloc(env->ud, ptr, at_least_one(size), 0);
    }
}

_Static_assert(sizeof(ew__block) == EW__BLOCK_SIZE, "a block is one round size for the allocator");

void ew__blocks_init(ew__blocks *pool, const ew_env *env, uint32_t max_free) {
    *pool = (ew__blocks){.env = env, .max_free = max_free};
}

void ew__blocks_done(ew__blocks *pool) { ew__blocks_trim(pool, 0); }

ew__block *ew__block_get(ew__blocks *pool) {
    ew__block *block = pool->free;
    if (block != NULL) {
        pool->free = block->next;
        pool->n_free--;
    } else {
        block = ew__alloc(pool->env, sizeof(*block));
        if (block == NULL) {
            return NULL;
        }
    }
    block->next = NULL;
    block->start = 0;
    block->end = 0;
    return block;
}

void ew__block_put(ew__blocks *pool, ew__block *block) {
    if (block == NULL) {
        return;
    }
    if (pool->n_free >= pool->max_free) {
        ew__free(pool->env, block, sizeof(*block));
        return;
    }
    block->next = pool->free;
    pool->free = block;
    pool->n_free++;
}

void ew__blocks_trim(ew__blocks *pool, uint32_t keep) {
    while (pool->n_free > keep) {
        ew__block *block = pool->free;
        pool->free = block->next;
        pool->n_free--;
        ew__free(pool->env, block, sizeof(*block));
    }
}

/* ---- pieces ---- */

void *ew__piece_get(ew__pieces *pieces) {
    void *piece = pieces->free;
    if (!piece)
        return ew__alloc(pieces->env, pieces->size);
    memcpy(&pieces->free, piece, sizeof pieces->free);
    pieces->n_free--;
    return piece;
}

void ew__piece_put(ew__pieces *pieces, void *piece) {
    if (pieces->n_free >= pieces->max_free) {
        ew__free(pieces->env, piece, pieces->size);
        return;
    }
    memcpy(piece, &pieces->free, sizeof pieces->free);
    pieces->free = piece;
    pieces->n_free++;
}

void ew__pieces_trim(ew__pieces *pieces) {
    uint32_t max = pieces->max_free;
    pieces->max_free = 0;
    while (pieces->free)
        ew__piece_put(pieces, ew__piece_get(pieces));
    pieces->max_free = max;
}
