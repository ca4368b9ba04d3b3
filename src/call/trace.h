/*
 * call/trace.h: W3C trace context: parse, continue, generate.
 */
#ifndef EW_CALL_TRACE_H
#define EW_CALL_TRACE_H

#include "base/buf.h"
#include "base/util.h"

typedef struct ew__trace {
    char trace_id[32];  /* lower-case hex, no NUL */
    char span_id[16];   /* of this call */
    char parent_id[16]; /* of the caller's span, when has_parent */
    bool has_parent;
    bool sampled;
} ew__trace;

/* A fresh trace with a fresh span. */
void ew__trace_new(ew__trace *trace, ew__rng *rng);
/* A fresh span in the trace that a traceparent names; EW_ESYNTAX (and a fresh trace) when it is none. */
ew_err ew__trace_continue(ew__trace *trace, ew__rng *rng, ew_str traceparent);
/* A fresh span in the trace of another span, which is its parent. */
void ew__trace_child(ew__trace *trace, ew__rng *rng, const ew__trace *parent);
/* Writes the traceparent that tells a callee that this span is its parent: 55 bytes, no NUL. */
#define EW__TRACEPARENT_LEN 55
void ew__trace_parent(const ew__trace *trace, char out[EW__TRACEPARENT_LEN]);
/* The parts of a key: "/flow/greet" is flow and greet. A text that is no key is a name without a type. */
void ew__key_split(ew_str key, ew_str *ret_type, ew_str *ret_name);
/*
 * Appends where a call stands in its trace, as Genkit writes it: "/{greet,t:flow}" behind the path of the call above
 * it, if there is one. last: as the end of a path, which tells more than what others begin with.
 */
ew_err ew__trace_path(ew__buf *out, ew_str above, ew_str key, bool last);
/* Whether a tracestate may be passed on: at most 32 well-formed members, 512 bytes. */
bool ew__tracestate_ok(ew_str tracestate);

#endif
