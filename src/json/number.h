/*
 * json/number.h: numbers of JSON as the decimals that they are: compared and divided exactly, never as doubles. Nothing
 * is allocated; a decimal points into the text it was read from.
 */
#ifndef EW_JSON_NUMBER_H
#define EW_JSON_NUMBER_H

#include "json/text.h"

/* Digits from `first` to `last` (a point may stand between them) times a power of ten. Exponents end at 10^15. */
typedef struct ew__decimal {
    bool negative;
    bool zero;         /* then nothing else is set */
    const char *first; /* first digit that is not 0 */
    const char *last;  /* last digit that is not 0 */
    int64_t top;       /* power of ten of the first */
    int64_t low;       /* power of ten of the last */
} ew__decimal;

ew__decimal ew__decimal_read(ew_str number); /* a valid number */
int ew__decimal_compare(const ew__decimal *a, const ew__decimal *b);
bool ew__decimal_is_integer(const ew__decimal *a);
/* A count: an integer that is not negative, also written as 2.0; large ones become UINT64_MAX. False: it is none. */
bool ew__decimal_count(const ew__decimal *a, uint64_t *ret);

#define EW__DIVISOR_DIGITS 18 /* significant ones */

/* What a number may have to be a multiple of. */
typedef struct ew__divisor {
    uint64_t digits;
    int64_t low; /* times ten to this */
} ew__divisor;

/* False: not above zero, or too many digits. */
bool ew__divisor_make(const ew__decimal *a, ew__divisor *ret);
bool ew__decimal_is_multiple(const ew__decimal *a, const ew__divisor *of);

/* The digits of a number, one after the other; -1 at their end. */
static inline int ew__decimal_digit(const ew__decimal *a, const char **at) {
    if (*at > a->last) {
        return -1;
    }
    *at += **at == '.';
    return *(*at)++ - '0';
}

#endif
