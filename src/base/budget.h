/*
 * base/budget.h: a limit on the memory of one app or one client (limits->memory_bytes). The budget is
 * an env: it counts the bytes that are allocated through it and refuses allocations beyond the limit.
 * Memory that other libraries allocate (OpenSSL, SQLite, libuv) is not counted.
 */
#ifndef EW_BASE_BUDGET_H
#define EW_BASE_BUDGET_H

#include <everywire/env.h>
#include <stdatomic.h>

/* From this size on an allocation is refused at the limit; smaller ones may use the reserve. */
#define EW__BUDGET_LARGE ((size_t)64 * 1024)

typedef struct ew__budget {
    ew_env env;                    /* the counting env; its ud is the budget */
    _Atomic(const ew_env *) inner; /* borrowed; where the memory, the clocks and the log come from */
    atomic_ullong max;             /* bytes */
    atomic_ullong used;            /* bytes, and 1 for the owner */
} ew__budget;

/*
 * A budget of `max` bytes over `inner`, which must outlive it; NULL: out of memory. An action or a
 * plug-in may outlive the app that made it, and needs the env to free its memory: the budget exists
 * until the owner has released it and every byte has been freed. Release: any thread, once.
 */
ew__budget *ew__budget_new(const ew_env *inner, uint64_t max);
void ew__budget_release(ew__budget *budget);
/*
 * Replaces both; bytes in use stay counted. Other threads may use the env meanwhile (a store that was
 * opened before): the new inner env must be able to free what the old one has allocated.
 */
void ew__budget_set(ew__budget *budget, const ew_env *inner, uint64_t max);

/* Bytes that are allocated now. The owner has not released the budget. Any thread. */
static inline uint64_t ew__budget_used(const ew__budget *budget) {
    return atomic_load_explicit(&budget->used, memory_order_relaxed) - 1;
}

/*
 * Whether new connections and calls are refused. Allocations below EW__BUDGET_LARGE still succeed until
 * the reserve, an eighth of the limit, is used up too: calls in flight can end. Any thread.
 */
static inline bool ew__budget_is_spent(const ew__budget *budget) {
    return ew__budget_used(budget) >= atomic_load_explicit(&budget->max, memory_order_relaxed);
}

/* The env that memory comes from. Any thread. */
static inline const ew_env *ew__budget_inner(const ew__budget *budget) {
    return atomic_load_explicit(&budget->inner, memory_order_acquire);
}

#endif
