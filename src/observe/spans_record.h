/*
 * observe/spans_record.h: one start or end of a span, as it waits in the queue. Used by spans.c and spans_text.c.
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
    EW__SPAN_OUTPUT, /* the result, or the fault's message */
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
    uint32_t len[EW__SPAN_PARTS];
    char bytes[];
};

/* Writes one TraceData of the first n records, which belong to one trace. */
void ew__spans_write(ew__buf *out, const ew__span *first, uint32_t n);

#endif
