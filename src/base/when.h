/*
 * base/when.h: points in time as text (RFC 3339), and ids that are unique without asking anybody (UUID version 4).
 */
#ifndef EW_BASE_WHEN_H
#define EW_BASE_WHEN_H

#include "base/util.h"

/*
 * Reads "2026-03-01T10:00:00.123456789Z" to milliseconds since 1970 (a fraction is cut, never rounded up). Also with an
 * offset ("+02:00"), with "t", "z" or a space for the letters, with any number of digits in the fraction, and without
 * an offset (then it is UTC). A leap second counts as the one before it. Years 0000 to 9999. false: it is none.
 */
bool ew__when_parse(ew_str text, int64_t *ret_ms);

/* Writes "2026-03-01T10:00:00.123Z", no NUL: EW__WHEN_LEN bytes. Times after the year 9999 become its last moment. */
#define EW__WHEN_LEN 24
void ew__when_write(uint64_t ms, char out[EW__WHEN_LEN]);
/* The same for times most of which are of one second: the calendar is looked at once in each. Starts as zeros. */
typedef struct ew__when_memo {
    uint64_t second; /* of the text, from 1 on; 0: there is none */
    char text[EW__WHEN_LEN];
} ew__when_memo;
void ew__when_write_again(ew__when_memo *memo, uint64_t ms, char out[EW__WHEN_LEN]);

/* "3f0e8c1e-....": EW__UUID_LEN bytes, no NUL. */
#define EW__UUID_LEN 36
void ew__uuid_write(ew__rng *rng, char out[EW__UUID_LEN]);

#endif
