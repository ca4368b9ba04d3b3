/*
 * base/suggestion.h: spelling suggestions: the nearest of many names for a mistyped one.
 */
#ifndef EW_BASE_SUGGESTION_H
#define EW_BASE_SUGGESTION_H

#include <everywire/base.h>

/*
 * Insertions, deletions, replacements and swaps of neighbours between two words; UINT_MAX when one has more than 63
 * bytes.
 */
unsigned ew__edit_distance(ew_str a, ew_str b);

/* Finds the nearest of many names: init, try each, read best (ptr NULL: none is near enough to be meant). */
typedef struct ew__suggestion {
    ew_str word;
    ew_str best;
    unsigned distance;
} ew__suggestion;

void ew__suggestion_init(ew__suggestion *near, ew_str word);
void ew__suggestion_try(ew__suggestion *near, ew_str candidate);

#endif
