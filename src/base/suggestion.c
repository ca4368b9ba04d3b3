/*
 * base/suggestion.c: see suggestion.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/suggestion.h"
#include <limits.h>
#include <string.h>

#define WORD_MAX 63

static unsigned min3(unsigned a, unsigned b, unsigned c) {
    unsigned low = a < b ? a : b;
    return low < c ? low : c;
}

unsigned ew__edit_distance(ew_str a, ew_str b) {
    unsigned rows[3][WORD_MAX + 1]; /* the row before the last, the last, the present one */
    if (a.len > WORD_MAX || b.len > WORD_MAX) {
        return UINT_MAX;
    }
    unsigned *older = rows[0], *old = rows[1], *row = rows[2];
    for (unsigned j = 0; j <= b.len; j++) {
        old[j] = j;
        older[j] = 0;
    }
    for (unsigned i = 1; i <= a.len; i++) {
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            bool same = a.ptr[i - 1] == b.ptr[j - 1];
            row[j] = min3(old[j] + 1, row[j - 1] + 1, old[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1]) {
                row[j] = min3(row[j], row[j], older[j - 2] + 1);
            }
        }
        unsigned *free_row = older;
        older = old;
        old = row;
        row = free_row;
    }
    return old[b.len];
}

void ew__suggestion_init(ew__suggestion *near, ew_str word) {
    *near = (ew__suggestion){.word = word, .distance = UINT_MAX};
}

void ew__suggestion_try(ew__suggestion *near, ew_str candidate) {
    unsigned limit = near->word.len < 6 ? 1 : (unsigned)(near->word.len > WORD_MAX ? 0 : near->word.len / 3);
    unsigned distance = ew__edit_distance(near->word, candidate);
    bool begun = near->word.len >= 3 && candidate.len > near->word.len &&
                 memcmp(candidate.ptr, near->word.ptr, near->word.len) == 0;
    if (begun) {
        distance = 1; /* a name that was only begun is as good as a single slip */
    }
    if (distance <= limit && distance < near->distance) {
        near->distance = distance;
        near->best = candidate;
    }
}
