/*
 * wire/jsonrpc_envelope.h: the messages of JSON-RPC 2.0, both ways, pure: what a text says, and the pieces of a text to
 * send. Shared by the wires that speak it; what a method means, and how the bytes are framed, is theirs. May include:
 * base, json.
 *
 * Ids are slices of the message: echoed as they came, never read as numbers. Each side of a connection gives its own
 * ids to its own requests, so a message that answers is looked up among the calls that left, one that asks among the
 * calls that came.
 */
#ifndef EW_WIRE_JSONRPC_ENVELOPE_H
#define EW_WIRE_JSONRPC_ENVELOPE_H

#include "base/util.h"
#include "json/json.h"
#include "json/skim.h"
#include <everywire/status.h>

/* The codes that the specification reserves, and those of LSP that callers know. */
enum {
    EW__RPC_PARSE_ERROR = -32700,
    EW__RPC_INVALID_REQUEST = -32600,
    EW__RPC_METHOD_NOT_FOUND = -32601,
    EW__RPC_INVALID_PARAMS = -32602,
    EW__RPC_INTERNAL_ERROR = -32603,
    EW__RPC_SERVER_ERROR = -32000,
    EW__RPC_CANCELLED = -32800
};

/* ---- reading ---- */

typedef enum ew__rpc_kind {
    EW__RPC_INVALID,      /* none of the others: `problem` says why; answered with -32600 */
    EW__RPC_REQUEST,      /* method and id */
    EW__RPC_NOTIFICATION, /* method, no id: never answered */
    EW__RPC_RESULT,       /* answers the request `id` */
    EW__RPC_ERROR,        /* likewise */
    EW__RPC_FRAME         /* stream is 2 or 3: a piece or the end of the stream `id` */
} ew__rpc_kind;

enum { EW__RPC_STREAM_NONE = 0, EW__RPC_STREAM_OPEN = 1, EW__RPC_STREAM_DATA = 2, EW__RPC_STREAM_CLOSE = 3 };

/* What a wire wants to have read. */
enum { EW__RPC_WITH_STREAMS = 1 /* the members `stream` and `data`; without it they are unknown ones, and ignored */ };

/* One message. All slices are raw JSON (strings with their quotes) inside the text; empty: not there. */
typedef struct ew__rpc {
    ew__rpc_kind kind;
    int stream;
    ew_str id;
    ew_str method;
    ew_str params;
    ew_str result;
    ew_str error;
    ew_str data;
    const char *problem; /* INVALID */
} ew__rpc;

/* Reads a parsed text that is no array. Never fails: what is wrong with it is its kind. */
void ew__rpc_read(const ew__json_doc *doc, unsigned with, ew__rpc *ret);

/*
 * A message that is refused unread, because it is too large or nested too deep: its kind, id, method and stream, as far
 * as a skim finds them. INVALID: it shows no id. ret_request_id: the params' requestId (reflection), or empty; may be
 * NULL.
 */
void ew__rpc_skim_init(ew__skim *skim);
void ew__rpc_read_skim(const ew__skim *skim, ew__rpc *ret, ew_str *ret_request_id);
#define EW__RPC_TOO_LARGE "the message is larger than this side accepts (limit frame_bytes)"
#define EW__RPC_TOO_DEEP "the message is nested too deep: the limit of a payload is 120 levels"

/*
 * Whether a text is, to the byte, a frame of stream `id` with data, as ew__rpc_put_frame and the Go codec write them: a
 * stream is many texts that differ in their data only. False: it may be one all the same, ew__rpc_read tells.
 */
bool ew__rpc_is_data_frame(ew_str text, ew_str id, ew_str *ret_data);
/*
 * The data of as many such frames as stand one behind the other, a line each, up to max of them, and have data that
 * ew__json_simple_end knows. Returns how many; *ret_used: how many bytes they have.
 */
size_t ew__rpc_read_row(ew_str lines, ew_str id, ew_str *row, size_t max, size_t *ret_used);

/*
 * Whether a text is, to the byte, a result as ew__rpc_put_result writes it, of no stream. The id is what stands between
 * two quotes, which nobody has looked at: good for comparing it with that of a request, to the byte too. False: as above.
 */
bool ew__rpc_is_result(ew_str text, ew_str *ret_id, ew_str *ret_result);

/* Whether an answer names no request: its id is null or absent. */
static inline bool ew__rpc_is_unnamed(const ew__rpc *message) {
    return message->id.len == 0 || message->id.ptr[0] == 'n';
}

/* What stands in a string without quotes and escapes: in place, or decoded into buf. Empty if it does not fit. */
ew_str ew__rpc_text(ew_str string, char *buf, size_t capacity);

/*
 * An id as a key for look-ups, so that two spellings of one string are one id: the raw text if it has no escape, else
 * its decoded form in buf (the raw text too where that does not fit).
 */
ew_str ew__rpc_key(ew_str id, char *buf, size_t capacity);

/* The members of an error. Peers send all kinds: what is no object with a message becomes a message itself. */
typedef struct ew__rpc_error {
    int64_t code;   /* 0: none was given */
    ew_str message; /* plain text: a slice of the error, or decoded into the buffer */
    ew_str data;    /* raw JSON, may be empty */
} ew__rpc_error;
void ew__rpc_read_error(ew_str error, char *buf, size_t capacity, ew__rpc_error *ret);

/* ---- ids of our own ---- */

/* Plain strings, no decimal numbers; different for each connection, over restarts too. */
typedef struct ew__rpc_ids {
    char prefix[16];
    uint64_t next;
} ew__rpc_ids;
#define EW__RPC_ID_ROOM 48
void ew__rpc_ids_init(ew__rpc_ids *ids, const ew_env *env);
size_t ew__rpc_ids_next(ew__rpc_ids *ids, char out[EW__RPC_ID_ROOM]); /* with quotes; returns the length */

/* ---- writing ---- */

/* A message as pieces, in order; they point to what was given and to constants. */
#define EW__RPC_PIECES 12
typedef struct ew__rpc_out {
    ew_str piece[EW__RPC_PIECES];
    unsigned n;
    size_t len; /* of all pieces */
} ew__rpc_out;

/* For messages of a wire's own: begin, then piece by piece. */
static inline void ew__rpc_out_add(ew__rpc_out *out, ew_str piece) {
    out->piece[out->n++] = piece;
    out->len += piece.len;
}
static inline void ew__rpc_out_begin(ew__rpc_out *out, ew_str piece) {
    out->n = 0;
    out->len = 0;
    ew__rpc_out_add(out, piece);
}

/* Writes all pieces one behind the other; returns where they end. */
static inline uint8_t *ew__rpc_out_copy(const ew__rpc_out *out, uint8_t *at) {
    for (unsigned i = 0; i < out->n; i++) {
        memcpy(at, out->piece[i].ptr, out->piece[i].len);
        at += out->piece[i].len;
    }
    return at;
}

/* id empty: a notification. method with its quotes. stream 0 or 1. params empty: the member is left out. */
void ew__rpc_put_request(ew__rpc_out *out, ew_str id, ew_str method, int stream, ew_str params);
void ew__rpc_put_result(ew__rpc_out *out, ew_str id, int stream, ew_str result);
/* id empty: null. error is a whole error object. */
void ew__rpc_put_error(ew__rpc_out *out, ew_str id, ew_str error);
/* data empty: the member is left out. */
void ew__rpc_put_frame(ew__rpc_out *out, ew_str id, int stream, ew_str data);
/* The same frame with data, written at once where there is room for its length; returns its end. id is not empty. */
size_t ew__rpc_data_frame_len(ew_str id, ew_str data);
uint8_t *ew__rpc_write_data_frame(uint8_t *at, ew_str id, ew_str data);
/* The frame that ends a stream with more than nothing: {"result":value} or {"error":value} as its data. */
void ew__rpc_put_close(ew__rpc_out *out, ew_str id, bool error, ew_str value);

/* A data frame whose data is an object with one member: {"chunk":value}, {"result":value} or {"error":value}. */
typedef enum ew__rpc_event { EW__RPC_EVENT_CHUNK, EW__RPC_EVENT_RESULT, EW__RPC_EVENT_ERROR } ew__rpc_event;
void ew__rpc_put_event(ew__rpc_out *out, ew_str id, ew__rpc_event event, ew_str value);

/*
 * Faults in the data of an error, as two of us write them: {"status":NAME, ..., and what this appends: details,
 * retryable, retry_after_ms.
 */
ew_err ew__rpc_write_fault_rest(ew__buf *buf, const ew_fault *fault);
/* The same the other way: where data has a status, all of it counts; else the fault stays as it is. */
void ew__rpc_read_fault_data(ew_str data, ew_fault *fault);

/* Appends an error object; data empty: left out. */
ew_err ew__rpc_write_error(ew__buf *buf, int64_t code, ew_str message, ew_str data);

#endif
