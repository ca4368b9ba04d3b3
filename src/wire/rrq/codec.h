/*
 * wire/rrq/codec.h: the messages of RRQ's runner protocol, both ways, pure: what the text of a frame says, and the
 * pieces of one to send. Ids are slices of the text with their quotes: echoed as they came. May include: base, json.
 */
#ifndef EW_WIRE_RRQ_CODEC_H
#define EW_WIRE_RRQ_CODEC_H

#include "base/when.h"
#include "json/json.h"
#include "wire/jsonrpc_envelope.h"
#include <everywire/status.h>

#define EW__RRQ_LIST "everywire.actions" /* the function that lists what a runner has */
#define EW__RRQ_HOPS "everywire-hops"    /* in a trace_context, which is a map of strings */
#define EW__RRQ_ID_MAX 1024              /* bytes of an id, with its quotes */

typedef enum ew__rrq_kind { EW__RRQ_NONE, EW__RRQ_REQUEST, EW__RRQ_RESPONSE, EW__RRQ_CANCEL } ew__rrq_kind;

/* ---- reading ---- */

/* A frame's text: its doc, and the payload (an object) in it. */
typedef struct ew__rrq_message {
    ew__json_doc doc;
    ew__rrq_kind kind;
    ew_str payload;
} ew__rrq_message;
/* NULL, or what is wrong with it; then nothing in it can be relied on but the payload, if there is one. */
const char *ew__rrq_read(ew_str text, ew__rrq_message *ret);
extern const char ew__rrq_too_deep[]; /* what is wrong with a text of more than EW_JSON_DEPTH levels */

/* Whose message it is, as far as that can be read; what is no usable string is empty. */
typedef struct ew__rrq_ids {
    ew_str request, job;
} ew__rrq_ids;
/* The same for a frame that is refused unread (json/skim.h). Returns what it is. */
void ew__rrq_skim_init(ew__skim *skim);
ew__rrq_kind ew__rrq_read_skim(const ew__skim *skim, ew__rrq_ids *ret);
void ew__rrq_read_ids(const ew__rrq_message *message, ew__rrq_ids *ret);

/*
 * What of a context that came can be copied into one that we write, in bytes: of its job's id, of its beginning, up to
 * the queue's name, and of its end, behind the trace. Zeros: it is not written as we would.
 */
typedef struct ew__rrq_spans {
    uint32_t job, lead, rest;
} ew__rrq_spans;

/* Absent and null are the same everywhere. */
typedef struct ew__rrq_request {
    ew__rrq_ids ids;
    ew_str function;     /* a string, with its quotes */
    ew_str params;       /* an object */
    ew_str context;      /* an object */
    ew_str labels;       /* its correlation_context: an object of strings, or empty */
    ew_str trace;        /* its trace_context: an object, or empty */
    int64_t deadline_ms; /* wall clock, when has_deadline */
    bool has_deadline;
    bool foreign; /* of another version of the protocol: nothing but the ids was read */
    uint8_t hops; /* its trace has them, if it comes from one of ours */
    uint32_t attempt;
    ew__rrq_spans spans; /* ew__rrq_read_known: of the context */
} ew__rrq_request;
/*
 * known.c: a whole frame that is a request, written as the orchestrators there are write it, in a third of the time.
 * false: it is something else, or written in another way, or bad: it is to be read by the two functions around this.
 */
bool ew__rrq_read_known(ew_str text, ew__rrq_request *ret);
/*
 * The same for the outcome of a call that has succeeded: whose it is, and its result, which was validated.
 */
bool ew__rrq_read_known_success(ew_str text, ew__rrq_ids *ret_ids, ew_str *ret_result);
/* The members of a context that the protocol knows, in the order in which the orchestrators write them. */
enum {
    EW__RRQ_JOB,
    EW__RRQ_ATTEMPT,
    EW__RRQ_ENQUEUED,
    EW__RRQ_QUEUE,
    EW__RRQ_DEADLINE,
    EW__RRQ_TRACE,
    EW__RRQ_CORRELATION,
    EW__RRQ_WORKER,
    EW__RRQ_N_CONTEXT
};
/* A context in that order and with nothing else: its members; what is absent is empty. false: it is another one. */
bool ew__rrq_split_known(ew_str context, ew_str ret[EW__RRQ_N_CONTEXT]);
bool ew__rrq_is_plain(ew_str text); /* in quotes it is a JSON string as it is. false: that is not known */
/* NULL, or what is wrong with it; the ids are set in any case, as ew__rrq_read_ids does. */
const char *ew__rrq_read_request(const ew__rrq_message *message, ew__rrq_request *ret);

typedef struct ew__rrq_cancel {
    ew__rrq_ids ids; /* request empty: all of the job */
    bool foreign;    /* of another version: nothing else was read */
} ew__rrq_cancel;
const char *ew__rrq_read_cancel(const ew__rrq_message *message, ew__rrq_cancel *ret); /* NULL, or what is wrong */

/* How a call ended, as its runner says. */
typedef struct ew__rrq_outcome {
    ew__rrq_ids ids;
    bool success;
    ew_str result;   /* success; never empty */
    ew_fault fault;  /* else; its message and details may lie in the two below */
    bool no_handler; /* the runner does not know the function */
    char *text;      /* room for a message with escapes, and its size; the caller's */
    size_t room;
    ew__buf
        details; /* made when the error says more than a fault can hold; the caller frees it, also after a failure */
} ew__rrq_outcome;
/* ids, text, room and details (initialised) are set. NULL, or what is wrong with it. */
const char *ew__rrq_read_outcome(const ew__rrq_message *message, ew__rrq_outcome *ret);

/* ---- writing ---- */

void ew__rrq_put_success(ew__rpc_out *out, const ew__rrq_ids *ids, ew_str result);
/* The same, written at once where there is room for its length; returns its end. */
size_t ew__rrq_success_len(const ew__rrq_ids *ids, ew_str result);
char *ew__rrq_write_success(char *at, const ew__rrq_ids *ids, ew_str result);
/* job empty: "unknown"; request empty: left out. rest: as ew__rrq_write_fault wrote it. */
void ew__rrq_put_fault(ew__rpc_out *out, const ew__rrq_ids *ids, ew_str rest);
void ew__rrq_put_cancel(ew__rpc_out *out, const ew__rrq_ids *ids);

/* Appends the status and the error of an outcome: "timeout","error":{...}. type NULL: by the status. */
ew_err ew__rrq_write_fault(ew__buf *buf, const char *type, const ew_fault *fault);

/* What a caller's context says: the first of each of the protocol's members, and whether there are others. */
typedef struct ew__rrq_context {
    ew_str text; /* an object, or empty */
    ew_str value[EW__RRQ_N_CONTEXT];
    bool others;
    ew_str lead, rest; /* what is copied from it as it is; then the values but for the job's do not count */
} ew__rrq_context;
void ew__rrq_read_context(ew_str text, ew__rrq_context *ret);
/* The same for one that has come in a request, with its spans, which are not zeros. */
void ew__rrq_reuse_context(ew_str text, const ew__rrq_spans *spans, ew__rrq_context *ret);

/* A request without its input: what stands before it in head, behind it in tail. */
typedef struct ew__rrq_ask {
    ew__rrq_ids ids;
    ew_str function; /* plain text */
    uint64_t now_ms; /* wall clock */
    uint64_t deadline_ms;
    bool has_deadline;
    uint32_t attempt; /* 0: what the context says, or 1 */
    uint8_t hops;
    const ew__rrq_context *context; /* the caller's, whose members are added; NULL: none */
    ew_str labels;                  /* an object, or empty */
    ew_str traceparent, tracestate;
    ew__when_memo *memos; /* two, kept from one request to the next; NULL: none */
} ew__rrq_ask;
size_t ew__rrq_ask_most(const ew__rrq_ask *ask); /* bytes of head and tail together, at most */
/* Write where there is room for that; return the end. */
char *ew__rrq_put_head(char *at, const ew__rrq_ask *ask);
char *ew__rrq_put_tail(char *at, const ew__rrq_ask *ask);
ew_err ew__rrq_write_request(ew__buf *head, ew__buf *tail, const ew__rrq_ask *ask); /* EW_OK, EW_ENOMEM */
/* Whether a caller's context can go along: NULL, or why not. An empty one can. */
const char *ew__rrq_context_problem(ew_str context);
/* The handler of "runner#handler"; a name without '#' is itself. Empty: there is none. */
ew_str ew__rrq_handler_of(ew_str function);

#endif
