/*
 * call/span_style.h: how a wire describes the spans of the calls that it serves, where its peers expect more than the
 * default. Read by observe/, filled in by wires. May include: base.
 */
#ifndef EW_CALL_SPAN_STYLE_H
#define EW_CALL_SPAN_STYLE_H

#include "base/buf.h"

/* The recorded facts of one span. Slices are borrowed. */
typedef struct ew__span_facts {
    ew_str key, context;
    ew_str message;            /* of the fault; set once the call has failed */
    uint64_t start_us, end_us; /* wall clock; end 0: the call runs */
    uint64_t retry_after_ms;   /* after which the caller may try again, or 0 */
    ew_status status;          /* OK while the call runs */
    bool retry;                /* the caller was asked to try again */
} ew__span_facts;

typedef struct ew__span_style {
    const char *name; /* display name */
    const char *kind; /* "CONSUMER" */
    /* Writes further attributes, each with a comma before it. Any thread. */
    void (*write)(ew__buf *out, const ew__span_facts *facts);
} ew__span_style;

#endif
