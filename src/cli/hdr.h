/*
 * cli/hdr.h: a histogram of times with a fixed size: three significant digits from 1 ns to 2.4 hours. Buckets are
 * log-linear: 1024 of the same width for each power of two, so a value is off by less than a thousandth of itself.
 *
 * One thread records; others may read meanwhile and see figures of about now.
 */
#ifndef EW_CLI_HDR_H
#define EW_CLI_HDR_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EW__HDR_BUCKETS (34u * 1024u)
#define EW__HDR_MOST (((uint64_t)1 << 43) - 1) /* what is larger counts as this; max tells it exactly */

typedef struct ew__hdr {
    atomic_ullong n;
    atomic_ullong sum;
    atomic_ullong min; /* valid when n > 0 */
    atomic_ullong max;
    atomic_ullong counts[EW__HDR_BUCKETS];
} ew__hdr;

ew__hdr *ew__hdr_new(void); /* empty; NULL when there is no memory */
void ew__hdr_free(ew__hdr *hdr);
void ew__hdr_record(ew__hdr *hdr, uint64_t value);
void ew__hdr_add(ew__hdr *hdr, const ew__hdr *other); /* everything that other has */
double ew__hdr_mean(const ew__hdr *hdr);              /* 0 when it is empty */
/*
 * The smallest value that at least this part of all (0 to 1) does not exceed, as the upper end of its bucket, and never
 * above max. 0 when it is empty.
 */
uint64_t ew__hdr_at(const ew__hdr *hdr, double part);

/* The bucket of a value, and the largest value that is in a bucket. For tests. */
size_t ew__hdr_bucket(uint64_t value);
uint64_t ew__hdr_bucket_top(size_t bucket);

#endif
