/*
 * wire/reflection/codec.h: what the messages of Genkit Reflection V2 say, both ways, pure: params and results out of
 * JSON, and the pieces of messages to send. The envelope is wire/jsonrpc_envelope. May include: base, json, call.
 */
#ifndef EW_WIRE_REFLECTION_CODEC_H
#define EW_WIRE_REFLECTION_CODEC_H

#include "call/call.h"
#include "wire/jsonrpc_envelope.h"

#define EW__RF_TEXT_ROOM 1024 /* names and ids with escapes are decoded, up to here */

/* ---- reading; slices are raw JSON in the message unless said otherwise, empty: absent or null ---- */

/* The params of runAction. */
typedef struct ew__rf_run {
    ew_str key;         /* plain text, in the message or in `text` */
    ew_str input;       /* a null stays */
    ew_str init;        /* what a run with an input stream begins with; a null stays */
    ew_str context;     /* any JSON */
    ew_str labels;      /* an object whose values are strings */
    ew_str traceparent; /* plain text: our own managers say whose span the run belongs to */
    uint8_t hops;       /* ... and how many everywires are behind it */
    bool stream;
    bool stream_input;
    char text[EW__RF_TEXT_ROOM];
} ew__rf_run;

/* NULL, or what is wrong with them. params: as ew__rpc_read gave them. */
const char *ew__rf_read_run(const ew__json_doc *doc, ew_str params, ew__rf_run *ret);

/*
 * known.c: whether a text is, to the byte, a runAction as call.c writes it for our own runtimes, of a call without
 * streams and labels. Then it is what ew__rpc_read and ew__rf_read_run would say. False: they are to be asked.
 */
bool ew__rf_is_run(ew_str text, ew_str *ret_id, ew_str *ret_params, ew__rf_run *ret);

/* The params of streamChunk, sendInputStreamChunk, endInputStream, runActionState and cancelAction. */
typedef struct ew__rf_about {
    ew_str request_id; /* with its quotes, if it is a string */
    ew_str chunk;      /* a null stays */
    ew_str trace_id;   /* plain text without escapes: cancelAction's, or that of state */
} ew__rf_about;
void ew__rf_read_about(const ew__json_doc *doc, ew_str params, ew__rf_about *ret);

/* The params of register: plain texts. */
typedef struct ew__rf_who {
    ew_str id, name, version;
    int64_t pid;
    char text[3][EW__RF_TEXT_ROOM];
} ew__rf_who;
const char *ew__rf_read_register(ew_str params, ew__rf_who *ret); /* NULL, or what is wrong with them */

/* A member that is a string, as plain text (in place or in buf); empty: there is none. */
ew_str ew__rf_member_text(ew_str object, ew_str name, char *buf, size_t capacity);

/* The result of runAction. EW_OK or EW_EPROTO: it is none. */
typedef struct ew__rf_result {
    ew_str result;   /* "null" if there is none */
    ew_str trace_id; /* plain text, or empty */
} ew__rf_result;
ew_err ew__rf_read_result(const ew__json_doc *doc, ew_str result, ew__rf_result *ret);

/*
 * An error as a fault; its slices lie in the error or in text. *ret_trace: what the runtime calls the trace, or
 * empty.
 */
void ew__rf_read_fault(ew_str error, char *text, size_t capacity, ew_fault *ret, ew_str *ret_trace);

/* ---- writing ---- */

/* The error object: code 0 is that of a failed action. trace_id may be empty. */
ew_err ew__rf_write_fault(ew__buf *buf, int64_t code, const ew_fault *fault, ew_str trace_id);

/* Whether a text is, to the byte, what ew__rf_put_chunk writes for this id. False: it may say the same otherwise. */
bool ew__rf_is_chunk(ew_str text, ew_str id, ew_str *ret_chunk);
/* The same, if the chunk is also one that ew__json_simple_end knows. */
bool ew__rf_is_simple_chunk(ew_str text, ew_str id, ew_str *ret_chunk);

bool ew__rf_is_plain(ew_str text); /* known.c: ew__json_is_plain, quick for short texts */
/*
 * known.c: the same for ew__rf_put_state and ew__rf_put_result, with a trace id as ours are. Nobody has looked at the id:
 * it is good for comparing it with that of a call, in each of its bytes.
 */
bool ew__rf_is_state(ew_str text, ew_str *ret_id, ew_str *ret_trace);
bool ew__rf_is_result(ew_str text, ew_str *ret_id, ew__rf_result *ret);

void ew__rf_put_state(ew__rpc_out *out, ew_str id, ew_str trace_id);
void ew__rf_put_chunk(ew__rpc_out *out, ew_str id, ew_str chunk);
/* The same, written into memory that has room for it: what is around the chunk, and the chunk. Returns its end. */
size_t ew__rf_around_chunk(ew_str id);
uint8_t *ew__rf_write_chunk(uint8_t *at, ew_str id, ew_str chunk);
void ew__rf_put_result(ew__rpc_out *out, ew_str id, ew_str result, ew_str trace_id);
void ew__rf_put_input(ew__rpc_out *out, ew_str id, ew_str chunk);
void ew__rf_put_input_end(ew__rpc_out *out, ew_str id);

/* ---- the list of actions: listing.c ---- */

/*
 * Writes the result of listActions from our own listing (an object, key to descriptor). Descriptors are made such that
 * the CLI takes them: it refuses the whole list for one member that it does not like.
 */
ew_err ew__rf_write_listing(ew__buf *out, ew_str listing, bool flat, bool wrapped);
/* The map inside a result of listActions, flat or wrapped; empty: it is none. */
ew_str ew__rf_read_listing(ew_str result);

#endif
