/*
 * json/bits.h: words for 64-bit masks, where bit i stands for byte i of a block of 64.
 * May include: libc only.
 */
#ifndef EW_JSON_BITS_H
#define EW_JSON_BITS_H

#include <stdint.h>

/* first, last: where the lowest and highest bit is. first wants one; last of none is 0. */
#if defined(__GNUC__)
#define EW__JSON_INLINE static inline __attribute__((always_inline))
EW__JSON_INLINE unsigned ew__bits_first(uint64_t mask) { return (unsigned)__builtin_ctzll(mask); }
EW__JSON_INLINE unsigned ew__bits_last(uint64_t mask) { return mask != 0 ? 63 - (unsigned)__builtin_clzll(mask) : 0; }
EW__JSON_INLINE unsigned ew__bits_count(uint64_t mask) { return (unsigned)__builtin_popcountll(mask); }
#else
#define EW__JSON_INLINE static inline
EW__JSON_INLINE unsigned ew__bits_count(uint64_t mask) {
    unsigned n = 0;
    for (; mask != 0; mask &= mask - 1) {
        n++;
    }
    return n;
}
EW__JSON_INLINE unsigned ew__bits_first(uint64_t mask) { return ew__bits_count((mask & (0 - mask)) - 1); }
EW__JSON_INLINE unsigned ew__bits_last(uint64_t mask) {
    unsigned i = 0;
    for (; mask > 1; mask >>= 1) {
        i++;
    }
    return i;
}
#endif

/*
 * Where each run of `run` that holds a bit of `starts` ends: the first byte after it. A start outside any run stays
 * where it is. *over becomes 1 when a run goes on in the next block, else 0. One addition does it: its carry ripples
 * through the run.
 */
EW__JSON_INLINE uint64_t ew__bits_past(uint64_t starts, uint64_t run, uint64_t *over) {
    uint64_t sum = run + (starts & run);
    *over = sum < run;
    return (starts | sum) & ~run;
}

#endif
