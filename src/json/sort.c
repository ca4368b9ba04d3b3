/*
 * json/sort.c: heap sort.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/sort.h"
#include <string.h>

static void swap(char *a, char *b, size_t size) {
    char kept[EW__SORT_ITEM_MAX];
    memcpy(kept, a, size);
    memcpy(a, b, size);
    memcpy(b, kept, size);
}

static void sift(char *list, size_t from, size_t n, size_t size, ew__before_fn before) {
    for (size_t child = 2 * from + 1; child < n; child = 2 * from + 1) {
        if (child + 1 < n && before(list + child * size, list + (child + 1) * size)) {
            child++;
        }
        if (!before(list + from * size, list + child * size)) {
            return;
        }
        swap(list + from * size, list + child * size, size);
        from = child;
    }
}

void ew__sort(void *items, size_t n, size_t size, ew__before_fn before) {
    char *list = items;
    for (size_t i = n / 2; i > 0; i--) {
        sift(list, i - 1, n, size, before);
    }
    for (size_t left = n; left > 1; left--) {
        swap(list, list + (left - 1) * size, size);
        sift(list, 0, left - 1, size, before);
    }
}
