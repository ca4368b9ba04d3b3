/*
 * base/budget.c: see budget.h. Memory that outlives the owner is counted, too, so that the last free
 * also frees the budget: no reference count beside `used` is needed. After the release nothing is
 * allocated through an env that has no memory left.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/budget.h"

static void give_back(ew__budget *budget, size_t n) {
    if (atomic_fetch_sub_explicit(&budget->used, n, memory_order_acq_rel) == n) {
        const ew_env *inner = ew__budget_inner(budget);
        (void)inner->alloc(inner->ud, budget, sizeof *budget, 0);
    }
}

static bool reserve(ew__budget *budget, size_t grows, size_t size) {
    uint64_t max = atomic_load_explicit(&budget->max, memory_order_relaxed);
    uint64_t limit = size < EW__BUDGET_LARGE ? max + max / 8 : max;
    uint64_t before = atomic_fetch_add_explicit(&budget->used, grows, memory_order_relaxed);
    if (before - 1 <= limit && grows <= limit - (before - 1)) {
        return true;
    }
    give_back(budget, grows);
    return false;
}

static void *counted_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    ew__budget *budget = ud;
    const ew_env *inner = ew__budget_inner(budget);
    size_t grows = new_size > old_size ? new_size - old_size : 0;
    size_t shrinks = new_size < old_size ? old_size - new_size : 0;
    if (grows > 0 && !reserve(budget, grows, new_size)) {
        return NULL;
    }
    void *block = inner->alloc(inner->ud, ptr, old_size, new_size);
    size_t gone = block != NULL || new_size == 0 ? shrinks : grows;
    if (gone > 0) {
        give_back(budget, gone);
    }
    return block;
}

static uint64_t inner_now_ns(void *ud) {
    const ew_env *inner = ew__budget_inner(ud);
    return inner->now_ns(inner->ud);
}

static uint64_t inner_wall_ms(void *ud) {
    const ew_env *inner = ew__budget_inner(ud);
    return inner->wall_ms(inner->ud);
}

static void inner_random(void *ud, void *bytes, size_t n) {
    const ew_env *inner = ew__budget_inner(ud);
    inner->random(inner->ud, bytes, n);
}

static void inner_log(void *ud, ew_log_level level, const char *room, ew_str line) {
    const ew_env *inner = ew__budget_inner(ud);
    if (inner->log != NULL) {
        inner->log(inner->ud, level, room, line);
    }
}

ew__budget *ew__budget_new(const ew_env *inner, uint64_t max) {
    ew__budget *budget = inner->alloc(inner->ud, NULL, 0, sizeof *budget);
    if (budget == NULL) {
        return NULL;
    }
    budget->env = (ew_env){.alloc = counted_alloc,
                           .now_ns = inner_now_ns,
                           .wall_ms = inner_wall_ms,
                           .random = inner_random,
                           .log = inner_log,
                           .ud = budget};
    atomic_init(&budget->used, 1);
    ew__budget_set(budget, inner, max);
    return budget;
}

void ew__budget_release(ew__budget *budget) { give_back(budget, 1); }

void ew__budget_set(ew__budget *budget, const ew_env *inner, uint64_t max) {
    uint64_t most = max < UINT64_MAX / 2 ? max : UINT64_MAX / 2; /* so that the reserve can be added */
    atomic_store_explicit(&budget->inner, inner, memory_order_release);
    atomic_store_explicit(&budget->max, most, memory_order_relaxed);
}
