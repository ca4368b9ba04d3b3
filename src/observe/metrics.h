/*
 * observe/metrics.h: counts what calls do, one set of counters per loop, so that counting takes no lock; and writes
 * the sum of all sets in Prometheus' text format. May include: base, json, call.
 */
#ifndef EW_OBSERVE_METRICS_H
#define EW_OBSERVE_METRICS_H

#include "base/buf.h"
#include "call/call.h"

#define EW__BUCKETS 17

typedef struct ew__metrics_row ew__metrics_row;

/* The counters of one loop. The loop's thread writes, others read. */
typedef struct ew__metrics {
    ew__observer observer;
    const ew_env *env;
    pthread_mutex_t lock;   /* of the table's shape: taken when it grows and when it is read from outside */
    ew__metrics_row **rows; /* by action id; further wires of one action are chained */
    uint32_t n_rows;
} ew__metrics;

/* Counters that are not about calls, summed by the caller. */
typedef struct ew__metrics_extra {
    uint64_t connections_open, connections_accepted, connections_refused;
    uint64_t bytes_in, bytes_out;
    uint64_t events_dropped;
    uint64_t spans_exported, spans_dropped;
    uint64_t loops;
    uint64_t memory_bytes, memory_max;
} ew__metrics_extra;

void ew__metrics_init(ew__metrics *metrics, const ew_env *env);
void ew__metrics_done(ew__metrics *metrics);
/* Any thread. EW_OK or EW_ENOMEM. */
ew_err ew__metrics_write(ew__buf *out, ew__metrics *const *sets, size_t n, const ew__metrics_extra *extra);

#endif
