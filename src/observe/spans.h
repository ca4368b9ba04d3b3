/*
 * observe/spans.h: every call is a span: notes what calls do, and hands out texts (Genkit's TraceData) for a telemetry
 * server. No I/O and no lock: one per loop, used by its thread; only the two counters are read by others.
 *
 * When a call opens or ends only raw facts are copied, into a queue with a limit; what does not fit is dropped and
 * counted. The text is written when somebody asks for it. May include: base, json, call.
 */
#ifndef EW_OBSERVE_SPANS_H
#define EW_OBSERVE_SPANS_H

#include "base/buf.h"
#include "call/call.h"

#define EW__SPAN_CUT ((size_t)64 * 1024) /* bytes of an input or output that are kept */

typedef struct ew__span ew__span;
typedef struct ew__spans ew__spans;

struct ew__spans {
    ew__observer observer; /* in the executor's chain from init to done */
    ew__executor *executor;
    ew__span *first, *last;
    ew__pieces pieces; /* most records have this size */
    size_t bytes, start_bytes;
    uint32_t n_items, n_starts;
    uint32_t handed; /* records of the text that was handed out last */
    bool realtime;
    int64_t wall_offset_us; /* what makes monotonic microseconds wall-clock ones */
    uint64_t anchored_at;   /* when that was looked at */
    /* Told when the queue has something again; may be NULL. Nothing may be taken from the queue in it. */
    void (*wake)(ew__spans *spans, void *ud);
    void *ud;
    atomic_ullong exported, dropped; /* records: starts and ends */
};

/* Off at first. The limits and the observers' chain are the executor's. */
void ew__spans_init(ew__spans *spans, ew__executor *executor);
void ew__spans_done(ew__spans *spans);
/* realtime: tells of starts too. Off, a call costs one branch more; what is queued stays. */
void ew__spans_enable(ew__spans *spans, bool on, bool realtime);
/*
 * The next text: one TraceData as JSON, replacing what body holds. Spans of one trace that lie next to each other share
 * a text. false: nothing is queued. What there is no memory to write is dropped and counted.
 */
bool ew__spans_next(ew__spans *spans, ew__buf *body);
/* What became of the text that was handed out last; for the counters. */
void ew__spans_told(ew__spans *spans, bool sent);

#endif
