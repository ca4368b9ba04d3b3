/*
 * base/mem.h: memory. Thin words for the env's allocator, a bump arena, pooled blocks.
 * Libc only; no locks: an arena and a block pool belong to one thread at a time.
 */
#ifndef EW_BASE_MEM_H
#define EW_BASE_MEM_H

#include <everywire/env.h>

/*
 * How many free pieces or blocks a pool keeps. None under AddressSanitizer: a pooled piece is reused
 * at once, which would hide each use after free from it.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EW__POOL_KEEP(n) 0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define EW__POOL_KEEP(n) 0
#endif
#if !defined(EW__POOL_KEEP)
#define EW__POOL_KEEP(n) (n)
#endif

/* ---- the env's allocator ---- */

void *ew__alloc(const ew_env *env, size_t size);  /* NULL when there is none; not cleared */
void *ew__zalloc(const ew_env *env, size_t size); /* cleared */
void *ew__realloc(const ew_env *env, void *ptr, size_t old_size, size_t size); /* NULL leaves the old block */
void ew__free(const ew_env *env, void *ptr, size_t size);                      /* NULL is fine */

/* ---- pooled blocks: one size, kept on a bounded free list, so that steady traffic allocates nothing ---- */

#define EW__BLOCK_SIZE ((size_t)16 * 1024)

typedef struct ew__block {
    struct ew__block *next;
    uint32_t start; /* first byte not yet consumed */
    uint32_t end;   /* first byte not yet written */
    uint8_t data[EW__BLOCK_SIZE - sizeof(void *) - 2 * sizeof(uint32_t)];
} ew__block;

typedef struct ew__blocks {
    const ew_env *env;
    ew__block *free;
    uint32_t n_free;
    uint32_t max_free; /* more than that go back to the allocator */
} ew__blocks;

void ew__blocks_init(ew__blocks *pool, const ew_env *env, uint32_t max_free);
void ew__blocks_done(ew__blocks *pool);
ew__block *ew__block_get(ew__blocks *pool); /* empty block or NULL */
void ew__block_put(ew__blocks *pool, ew__block *block);
void ew__blocks_trim(ew__blocks *pool, uint32_t keep); /* gives free blocks back to the allocator */

/*
 * ---- pooled pieces: memory of one size, kept for reuse up to a number, so that steady traffic allocates nothing
 * ----
 */

typedef struct ew__pieces {
    const ew_env *env;
    size_t size;
    void *free; /* each begins with a pointer to the next */
    uint32_t n_free;
    uint32_t max_free;
} ew__pieces;

void *ew__piece_get(ew__pieces *pieces); /* not cleared; NULL when there is none */
void ew__piece_put(ew__pieces *pieces, void *piece);
void ew__pieces_trim(ew__pieces *pieces); /* gives free pieces back to the allocator */

/* ---- arena: grows in pieces, freed at once ---- */

/*
 * The first piece is memory that the owner gives (may be none); further pieces come from a pool (if the owner sets one)
 * or from the env, and double up to 64 KiB, or hold one large value. Pointers stay valid until ew__arena_done. Every
 * pointer is aligned to 16.
 */
typedef struct ew__arena {
    const ew_env *env;
    ew__pieces *pool; /* where pieces of its size come from, if that is enough; may be NULL */
    uint8_t *at;
    uint8_t *end;
    struct ew__arena_piece *pieces; /* allocated ones, newest first */
    size_t next_size;
} ew__arena;

void ew__arena_init(ew__arena *arena, const ew_env *env, void *first, size_t first_size);
void ew__arena_done(ew__arena *arena);
void *ew__arena_alloc(ew__arena *arena, size_t size); /* NULL when there is no memory */
void *ew__arena_copy(ew__arena *arena, const void *bytes, size_t n);
ew_err ew__arena_str(ew__arena *arena, ew_str text, ew_str *ret_copy); /* an empty text stays empty */
/*
 * Makes the arena own a block that came from its env's allocator: it is freed with the rest. On failure the caller
 * keeps it.
 */
ew_err ew__arena_adopt(ew__arena *arena, void *block, size_t size);
/* Whether ptr points into memory of this arena (its first piece included). */
bool ew__arena_owns(const ew__arena *arena, const void *first, size_t first_size, const void *ptr);

#endif
