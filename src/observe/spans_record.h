/*
 * observe/spans_record.h: one start or end of a span, as it waits in the queue. Used by the files spans*.c.
 */
#ifndef EW_OBSERVE_SPANS_RECORD_H
#define EW_OBSERVE_SPANS_RECORD_H

#include "observe/spans.h"

/* The texts of a record lie behind it in this order. */
typedef enum ew__span_part {
    EW__SPAN_KEY,
    EW__SPAN_PATH, /* of the call above it */
    EW__SPAN_LABELS,
    EW__SPAN_CONTEXT,
    EW__SPAN_INPUT,
    EW__SPAN_OUTPUT,   /* the result, or the fault's message */
    EW__SPAN_UPSTREAM, /* the trace id of the upstream, where it is another one */
    EW__SPAN_PARTS
} ew__span_part;

struct ew__span {
    ew__span *next;
    size_t size;               /* of its memory */
    uint64_t start_us, end_us; /* wall clock; end 0: it runs */
    ew__trace trace;
    uint8_t status; /* ew_status */
    bool outgoing;
    bool truncated;
    const ew__span_style *style; /* of a served call's wire; NULL: the default */
    bool retry;                  /* whoever made the call was asked to try again, */
    uint64_t retry_after_ms;     /* after that long, or 0 */
    uint32_t len[EW__SPAN_PARTS];
    char bytes[];
};

/* ---- spans_text.c ---- */

/* Writes one TraceData of the first n records, which belong to one trace. */
void ew__spans_write(ew__buf *out, const ew__span *first, uint32_t n);

#endif
