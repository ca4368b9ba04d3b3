/*
 * cli/hdr.c: see hdr.h. Values below 2048 have a bucket each; above, a value's bucket is its power of two and its next
 * ten bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/hdr.h"
#include "cli/text.h"

#define HALF 1024u /* buckets for one power of two */
#define BITS 10

ew__hdr *ew__hdr_new(void) { return ew__cli_alloc(sizeof(ew__hdr)); }

void ew__hdr_free(ew__hdr *hdr) { ew__cli_free(hdr, sizeof *hdr); }

size_t ew__hdr_bucket(uint64_t value) {
    if (value > EW__HDR_MOST) {
        value = EW__HDR_MOST;
    }
    if (value < 2 * HALF) {
        return (size_t)value;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - BITS;
    return (size_t)(shift + 1) * HALF + (size_t)((value >> shift) - HALF);
}

uint64_t ew__hdr_bucket_top(size_t bucket) {
    if (bucket < (size_t)2 * HALF) {
        return bucket;
    }
    unsigned shift = (unsigned)(bucket / HALF) - 1;
    return ((uint64_t)(bucket % HALF + HALF + 1) << shift) - 1;
}

static uint64_t get(const atomic_ullong *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

static void set(atomic_ullong *counter, uint64_t value) { atomic_store_explicit(counter, value, memory_order_relaxed); }

void ew__hdr_record(ew__hdr *hdr, uint64_t value) {
    atomic_ullong *count = &hdr->counts[ew__hdr_bucket(value)];
    uint64_t n = get(&hdr->n);
    if (n == 0 || value < get(&hdr->min)) {
        set(&hdr->min, value);
    }
    if (value > get(&hdr->max)) {
        set(&hdr->max, value);
    }
    set(&hdr->sum, get(&hdr->sum) + value);
    set(count, get(count) + 1);
    set(&hdr->n, n + 1);
}

void ew__hdr_add(ew__hdr *hdr, const ew__hdr *other) {
    uint64_t n = 0;
    for (size_t i = 0; i < EW__HDR_BUCKETS; i++) {
        uint64_t more = get(&other->counts[i]);
        if (more > 0) {
            set(&hdr->counts[i], get(&hdr->counts[i]) + more);
            n += more;
        }
    }
    if (n == 0) {
        return;
    }
    if (get(&hdr->n) == 0 || get(&other->min) < get(&hdr->min)) {
        set(&hdr->min, get(&other->min));
    }
    if (get(&other->max) > get(&hdr->max)) {
        set(&hdr->max, get(&other->max));
    }
    set(&hdr->sum, get(&hdr->sum) + get(&other->sum));
    set(&hdr->n, get(&hdr->n) + n); /* what was counted here, not what other says: it may be recording */
}

double ew__hdr_mean(const ew__hdr *hdr) {
    uint64_t n = get(&hdr->n);
    return n > 0 ? (double)get(&hdr->sum) / (double)n : 0;
}

uint64_t ew__hdr_at(const ew__hdr *hdr, double part) {
    uint64_t n = get(&hdr->n), max = get(&hdr->max), seen = 0;
    double exact = part * (double)n;
    uint64_t wanted = (uint64_t)exact;
    if ((double)wanted < exact) {
        wanted++;
    }
    wanted = wanted < 1 ? 1 : wanted;
    for (size_t i = 0; n > 0 && i < EW__HDR_BUCKETS; i++) {
        seen += get(&hdr->counts[i]);
        if (seen >= wanted) {
            uint64_t top = ew__hdr_bucket_top(i);
            return top < max && i + 1 < EW__HDR_BUCKETS ? top : max;
        }
    }
    return max;
}
