/*
 * wire/http/codec.h: the texts of the http wire, pure: heads, envelopes, blocks, errors, both ways. No connection, no
 * call state.
 */
#ifndef EW_WIRE_HTTP_CODEC_H
#define EW_WIRE_HTTP_CODEC_H

#include "call/call.h"
#include "frame/http1.h"
#include "json/json.h"
#include "wire/http/http.h"

/* ---- writing answers (serving) ---- */

typedef struct ew__http_answer {
    int status;
    const ew__trace *trace; /* NULL: no trace headers */
    ew_str type;            /* Content-Type, empty for none */
    ew_str extra;           /* further header lines, each ending CRLF; constant text */
    bool close;             /* Connection: close */
    bool keep;              /* Connection: keep-alive (HTTP/1.0 clients must be told) */
    bool chunked;           /* Transfer-Encoding: chunked instead of a length */
    bool until_close;       /* neither: the body ends with the connection (HTTP/1.0 streams) */
    size_t length;
} ew__http_answer;

/* Appends a head. `date` is 29 bytes. */
void ew__http_write_head(ew__out *out, const ew__http_answer *answer, const char *date);

/* The date of a moment, 29 bytes. */
void ew__http_date(uint64_t wall_ms, char out[29]);

/* {"code":..,"status":..,"message":..,"details":..} */
ew_err ew__http_error_body(ew__buf *out, int code, const ew_fault *fault);
/* The status that goes with an HTTP code of ours that no action chose (405, 408, 413 ...). */
ew_status ew__http_status_of(int code);

/*
 * Appends one block of a stream, in an HTTP chunk of its own if chunked: PREFIX JSON SUFFIX, blank line. json must
 * have no raw newline.
 */
void ew__http_write_block(ew__out *out, bool chunked, ew_str prefix, ew_str json, ew_str suffix);
/* What is around a chunk, in a block. */
#define EW__HTTP_MESSAGE_HEAD EW_STR("data: {\"message\":")
#define EW__HTTP_MESSAGE_TAIL EW_STR("}\n\n")
/* Appends a block for each of a row of chunks (ew__call_chunk_row). */
void ew__http_write_row(ew__out *out, bool chunked, const ew_str *row, size_t n);
#define EW__HTTP_LAST_CHUNK EW_STR("0\r\n\r\n")
/* What stands before a chunk of that length; returns how long it is. The chunk ends with CRLF. */
#define EW__HTTP_CHUNK_HEAD 20
size_t ew__http_chunk_head(size_t length, char out[EW__HTTP_CHUNK_HEAD]);

/*
 * Appends the answer to a client that speaks HTTP/2 with prior knowledge, in HTTP/2: SETTINGS, then
 * GOAWAY with HTTP_1_1_REQUIRED.
 */
void ew__http_write_http2_refusal(ew__out *out);

/* ---- reading requests (serving) ---- */

/*
 * Takes the "data" member out of {"data":X}. Without it the input is null, if the object has no other
 * member than "init". Returns NULL, or a constant text that describes the error.
 */
const char *ew__http_read_envelope(ew_str body, ew_str *ret_input);

/*
 * Whether a Host (or the authority of an Origin) names this site: loopback names or allowed ones, with the site's
 * port or none.
 */
bool ew__http_host_ok(const ew__site *site, ew_str host, bool port_required);
/* Why an entry of allow_hosts can match no Host: a constant text; NULL if it can match. */
const char *ew__http_host_problem(ew_str pattern);
bool ew__http_origin_ok(const ew__site *site, ew_str origin);
bool ew__http_is_json(ew_str content_type);
/* What an Accept field names: EW__ACCEPTS_... (wire/http_guest.h). */
uint8_t ew__http_accepts(ew_str accept);

/* ---- writing requests, reading answers (calling) ---- */

void ew__http_write_request(ew__out *out, const ew__site *site, ew_call *call, uint64_t now);

/* What an answer or a block of a stream means. Slices point into the text. */
typedef enum ew__http_meaning {
    EW__HTTP_CHUNK,
    EW__HTTP_RESULT,
    EW__HTTP_FAULT,
    EW__HTTP_NOTHING, /* an empty block: some servers end a stream without a result so */
    EW__HTTP_NONSENSE
} ew__http_meaning;

typedef struct ew__http_said {
    ew__http_meaning meaning;
    ew_str payload; /* chunk or result */
    ew_fault fault; /* of a fault only */
    bool deep;      /* for ew_call.deep */
} ew__http_said;

/* One block of a stream; from_error: it had the error: prefix. memory is for a message that had to be decoded. */
void ew__http_read_block(ew__arena *memory, ew_str json, bool from_error, ew__http_said *ret);
/*
 * Takes blocks off the front of a piece of a stream, as long as they are chunks spelled as most are: those go into row,
 * up to max of them. The piece begins where a block does. Returns how many there were.
 */
size_t ew__http_read_row(ew_str *piece, ew_str *row, size_t max);
/* A whole unary answer. */
void ew__http_read_answer(ew__arena *memory, int status, ew_str body, ew__http_said *ret);

#endif
