/*
 * frame/http_guard.h: the strict reading of HTTP/1 framing that stands before llhttp. Looks at every byte of a head and at
 * every byte of the framing of a chunked body, and refuses what two readers could read in two ways. It takes nothing
 * apart: slices come from llhttp, and http1.c compares what both understood. Keeps numbers only, never a pointer into
 * the bytes it saw, so that bytes may move.
 * Not for use outside frame.
 */
#ifndef EW_FRAME_HTTP_GUARD_H
#define EW_FRAME_HTTP_GUARD_H

#include "frame/http1.h"

#define EW__GUARD_METHOD_MAX 32 /* bytes of a method; the longest known one has 13 */
#define EW__GUARD_LINE_SLACK 48 /* a request line without its target: method, two spaces, version, CRLF */

typedef struct ew__http_guard {
    uint64_t length; /* Content-Length; in a chunked body: bytes left of the chunk */
    const char *why; /* after a refusal */
    uint32_t used;   /* chunked: bytes of extensions, then of trailers */
    uint16_t n_fields;
    uint16_t status; /* responses */
    uint8_t digits;  /* of the chunk size */
    uint8_t state;   /* place in a chunked body */
    uint8_t minor;
    bool request;
    bool http2; /* after a refusal: the line is the beginning of HTTP/2's connection preface */
    bool host, has_length, chunked, expect_continue;
    bool close, upgrade_option, upgrade_field; /* Connection: close, Connection: upgrade, Upgrade */
} ew__http_guard;

/* What the first byte of a line must be for the line to be worth waiting for: of the message, of a field. */
bool ew__http_guard_begins(const ew__http_guard *guard, char first);
bool ew__http_guard_field_begins(char first);

/*
 * Each takes one line without its CRLF, or the end of the head, and answers 0 or the HTTP status of the refusal
 * (guard->why says it in words). Lines come in order; *guard is all zero but `request` before the first.
 */
int ew__http_guard_first_line(ew__http_guard *guard, const char *line, size_t n, const ew__http1_limits *limits);
int ew__http_guard_field_line(ew__http_guard *guard, const char *line, size_t n, const ew__http1_limits *limits);
int ew__http_guard_head_end(ew__http_guard *guard);

/* What may stand behind a field's colon. */
bool ew__http_guard_value_clean(const char *value, size_t n);
/* Whether guard or llhttp draw conclusions from the value of a field of that name (a token). */
bool ew__http_guard_reads(ew_str name);

/* Whether the authority of an absolute-form target is the one in Host (empty if there was none). Other forms: true. */
bool ew__http_guard_authority(ew_str target, ew_str host);

/*
 * Walks a chunked body until it has passed one run of data, the ';' before the extensions of a chunk, the CR behind
 * them, the last chunk, the whole body, or n bytes. *ret_used gets how many; 0 or a status as above. ew__http_guard_chunks_begin first, once the head is done.
 */
void ew__http_guard_chunks_begin(ew__http_guard *guard);
int ew__http_guard_chunks(ew__http_guard *guard, const char *bytes, size_t n, const ew__http1_limits *limits,
                          size_t *ret_used);
/*
 * The chunk that nearly all of a stream consists of: a size of up to four digits without extensions, and all of its
 * data and of its line ends among the n bytes. Returns its length with all that, and its data; 0: take the ordinary
 * way, nothing has happened. The guard stays between two chunks.
 */
size_t ew__http_guard_whole_chunk(const ew__http_guard *guard, const char *bytes, size_t n, ew_str *ret_data);
/* Whether a chunk's data has been passed and the end of its line has not. */
bool ew__http_guard_behind_data(const ew__http_guard *guard);
/* Whether the next byte belongs to the extensions of a chunk, or is the CR behind them. */
bool ew__http_guard_in_extension(const ew__http_guard *guard);
bool ew__http_guard_in_trailer(const ew__http_guard *guard); /* past the last chunk */
bool ew__http_guard_chunks_over(const ew__http_guard *guard);

#endif
