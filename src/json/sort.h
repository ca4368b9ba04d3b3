/*
 * json/sort.h: sorts in place: no recursion, no memory, never slower than n log n, which the C library's does not
 * promise.
 */
#ifndef EW_JSON_SORT_H
#define EW_JSON_SORT_H

#include <stdbool.h>
#include <stddef.h>

#define EW__SORT_ITEM_MAX 64

typedef bool (*ew__before_fn)(const void *a, const void *b);

/* Items of `size` bytes, at most EW__SORT_ITEM_MAX. Those of which neither is before the other may change places. */
void ew__sort(void *items, size_t n, size_t size, ew__before_fn before);

#endif
