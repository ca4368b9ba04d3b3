/*
 * compat/rrq/producer/enqueue.h: a request to enqueue, with RRQ's rules, as a job of this library. May include: base json.
 */
#ifndef EW_COMPAT_RRQ_PRODUCER_ENQUEUE_H
#define EW_COMPAT_RRQ_PRODUCER_ENQUEUE_H

#include "compat/rrq/producer/config.h"
#include <everywire/jobs.h>

typedef struct ew__enqueue {
    ew_job_options options;
    unsigned max_retries; /* where options points to */
    uint64_t result_ttl_ms;
} ew__enqueue;

/* now: milliseconds since 1970. The result must not move, and borrows from request, config and arena. */
bool ew__enqueue_read(ew__arena *arena, const char *request, const ew__producer_config *config, int64_t now,
                      ew__enqueue *ret, ew__trouble *trouble);

#endif
