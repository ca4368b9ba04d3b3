/*
 * json/equal.h: whether JSON values are equal as JSON means it: 1 is 1.0, members have no order, a text is what its
 * escapes say. Sets of values by a keyed hash, so that nobody can make them slow.
 */
#ifndef EW_JSON_EQUAL_H
#define EW_JSON_EQUAL_H

#include "json/tape.h"

/* A value on a tape. */
typedef struct ew__value {
    const ew__tape *tape;
    uint32_t item;
} ew__value;

typedef struct ew__hashed {
    uint64_t hash;
    uint32_t item;
} ew__hashed;

/* Equal values have equal hashes. Takes one step for each value inside. */
uint64_t ew__value_hash(const uint64_t seed[2], ew__value value);

/* Memory is needed only where objects have many members. EW_OK and *ret, or EW_ENOMEM. */
ew_err ew__value_equal(const uint64_t seed[2], const ew_env *env, ew__value a, ew__value b, bool *ret);

/* By hash, then by item. In place, without recursion. */
void ew__hashed_sort(ew__hashed *list, size_t n);

/* The first in a sorted list that has this hash, or n. */
size_t ew__hashed_find(const ew__hashed *list, size_t n, uint64_t hash);

/* Whether the elements of an array differ from each other. EW_OK and *ret, or EW_ENOMEM. */
ew_err ew__value_unique(const uint64_t seed[2], const ew_env *env, ew__value array, bool *ret);

#endif
