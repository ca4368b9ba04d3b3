/*
 * base/out.h: bytes on their way out of a connection: a chain of pooled blocks, and references to memory that
 * somebody else keeps until it has left. An empty queue holds no memory. One thread.
 */
#ifndef EW_BASE_OUT_H
#define EW_BASE_OUT_H

#include "base/mem.h"

typedef struct ew__out {
    ew__blocks *pool;
    ew__block *head;
    ew__block *tail;
    size_t bytes; /* in all, references included */
    ew_err err;   /* first failure; later appends do nothing, so that a row of appends needs one check */
} ew__out;

typedef struct ew__out_vec {
    const uint8_t *ptr;
    size_t len;
} ew__out_vec;

/* Told once when a referenced run has left or was given up. */
typedef void (*ew__out_release)(void *ud);

void ew__out_init(ew__out *out, ew__blocks *pool);
void ew__out_done(ew__out *out); /* drops what is left; releases references */

/*
 * At least n contiguous bytes to write into (n <= 4 KiB), then ew__out_commit with what was used. NULL when there is
 * no memory.
 */
uint8_t *ew__out_room(ew__out *out, size_t n);
void ew__out_commit(ew__out *out, size_t used);
void ew__out_add(ew__out *out, const void *bytes, size_t n);
static inline void ew__out_str(ew__out *out, ew_str text) { ew__out_add(out, text.ptr, text.len); }

/* Queues a reference. release(ud) is called once in any case, also on failure. */
void ew__out_ref(ew__out *out, const void *bytes, size_t n, ew__out_release release, void *ud);

/* Fills up to max vectors with what is to be sent first; returns how many. */
unsigned ew__out_peek(const ew__out *out, ew__out_vec *vec, unsigned max);
void ew__out_consume(ew__out *out, size_t n);

#endif
