/*
 * frame/http1.h: HTTP/1 messages out of bytes, both roles. Bytes in, events out; no socket, no clock, no JSON.
 *
 * The reader collects a whole head, checks it with a guard of its own (guard.c: everything that llhttp leaves open),
 * then lets llhttp (strict) take it apart. Chunked bodies go through llhttp as they arrive (but for small chunks that are
 * all there, for which the guard is enough). Bodies are handed out as slices of the bytes given: nothing is copied.
 * May include: base, llhttp.
 */
#ifndef EW_FRAME_HTTP1_H
#define EW_FRAME_HTTP1_H

#include "base/buf.h"
#include <everywire/limits.h>

typedef enum ew__http_method {
    EW__HTTP_OTHER, /* a known method that we give no meaning to */
    EW__HTTP_GET,
    EW__HTTP_HEAD,
    EW__HTTP_POST,
    EW__HTTP_OPTIONS,
    EW__HTTP_DELETE
} ew__http_method;

typedef struct ew__http_field {
    ew_str name;  /* as sent */
    ew_str value; /* without white space around it */
} ew__http_field;

#define EW__HTTP_FIELDS_MAX 100 /* upper bound of limits->head_fields */
#define EW__HTTP_KNOWN_BYTES 8192

/*
 * Room for the field table of the head taken apart last. One per event loop, shared by all its readers, so that an idle
 * connection holds none and a request allocates none: what is in it lasts until another reader of that loop is asked
 * for its next event.
 */
typedef struct ew__http1_scratch {
    ew__http_field fields[EW__HTTP_FIELDS_MAX];
    /*
     * Heads that were read lately (known_heads.c). Peers repeat them but for some values, so most can be recognised
     * instead of being read again. All zero: none yet.
     */
    uint32_t next_known;
    _Alignas(16) uint8_t known[EW__HTTP_KNOWN_BYTES];
} ew__http1_scratch;

/* A head. How long its slices and its field table last: ew__http1_head. */
typedef struct ew__http_head {
    ew__http_method method; /* requests */
    ew_str target;          /* requests: path and query as sent (absolute form: still whole) */
    int status;             /* responses */
    int minor;              /* HTTP/1.minor */
    bool keep_alive;        /* the connection may be used again after this message */
    bool expect_continue;   /* requests: Expect: 100-continue */
    bool upgrade;           /* requests: Connection: upgrade and an Upgrade field */
    bool chunked;
    bool has_length;
    uint64_t length; /* when has_length */
    uint32_t n_fields;
    const ew__http_field *fields;
} ew__http_head;

typedef enum ew__http_event {
    EW__HTTP_MORE, /* nothing more to say: feed again */
    EW__HTTP_HEAD_DONE,
    EW__HTTP_BODY, /* one slice of the body */
    EW__HTTP_END,  /* the message is complete */
    EW__HTTP_ERROR /* framing lost: answer error_status (servers), close; every further call says the same */
} ew__http_event;

typedef struct ew__http1 ew__http1;

typedef struct ew__http1_limits {
    uint32_t head_bytes, head_fields, target_bytes, chunk_extension_bytes;
} ew__http1_limits;

/* The size of the reader, so that an owner can embed or pool it; align to 16. */
size_t ew__http1_size(void);

/*
 * request: read requests (a server), else responses (a client). limits and scratch are borrowed for the reader's life.
 */
void ew__http1_init(ew__http1 *http, const ew_env *env, const ew__http1_limits *limits, bool request,
                    ew__http1_scratch *scratch);
void ew__http1_done(ew__http1 *http);

/*
 * Responses only, before feeding: the answer to a HEAD request has no body. Holds for one answer (its 1xx forerunners
 * aside).
 */
void ew__http1_expect_no_body(ew__http1 *http);

/*
 * Gives the reader bytes; it keeps the pointer until all events were taken (ew__http1_next returned MORE), after which
 * the bytes may go. Only an unfinished head is copied (bounded by head_bytes; no memory for it is an ERROR event with
 * status 503).
 * EW_OK, or EW_EINVAL while unread bytes remain (then nothing changed).
 */
ew_err ew__http1_feed(ew__http1 *http, const void *bytes, size_t n);

/*
 * The peer has closed its side: completes a response that ends with the connection, else an error if a message was cut.
 */
void ew__http1_feed_eof(ew__http1 *http);

/*
 * The next event. After END the reader goes on with the next message when called again; if the message closes the
 * connection (keep_alive false), whatever follows it is dropped unread and only MORE comes. Until that call the unread
 * bytes stay: after an upgrade the owner takes them over, they are the last ew__http1_unread bytes of those fed last.
 * Responses: 1xx answers are passed over in silence, 101 is an ERROR.
 */
ew__http_event ew__http1_next(ew__http1 *http);

/*
 * The head, from HEAD_DONE until the call of ew__http1_next that follows END. Its numbers last that long; its slices
 * only until MORE (they may lie in the fed bytes) and its field table only until control returns to the loop (it lies
 * in the scratch).
 */
const ew__http_head *ew__http1_head(const ew__http1 *http);
/*
 * While slices and field table are still good: copies both into memory of the reader, so that they last as long as the
 * head.
 * EW_OK or EW_ENOMEM (the head stays as it was).
 */
ew_err ew__http1_keep_head(ew__http1 *http);
/* After BODY: the slice, inside the bytes fed last. */
ew_str ew__http1_body(const ew__http1 *http);
/*
 * After BODY: the next chunk, if it is one that is all there. As ew__http1_next would say BODY again, for those who take
 * many at once. False: ew__http1_next tells what comes.
 */
bool ew__http1_next_chunk(ew__http1 *http, ew_str *ret_body);
/* After ERROR: 400, 414, 431, 501, 503 (no memory), 505 for requests (0 for responses), and a reason for people. */
int ew__http1_error_status(const ew__http1 *http);
const char *ew__http1_error_text(const ew__http1 *http);
/* After ERROR: whether the peer speaks HTTP/2 with prior knowledge (RFC 9113, 3.3). */
bool ew__http1_is_http2(const ew__http1 *http);

/* Bytes fed but not yet looked at. */
size_t ew__http1_unread(const ew__http1 *http);
/* The owner keeps the unread bytes (after END) and feeds them again later: the reader lets go of them. */
void ew__http1_forget(ew__http1 *http);
/* Whether no message has begun: the connection is between two messages and nothing is buffered. */
bool ew__http1_idle(const ew__http1 *http);

/* The value of the first field of that name (any case), or ptr NULL. *ret_count (may be NULL): how many there are. */
ew_str ew__http_head_field(const ew__http_head *head, ew_str name, uint32_t *ret_count);

/* "OK" for 200 and so on; "Unknown" for a code outside the table. */
const char *ew__http_reason(int status);

/* A Content-Type without its parameters. */
ew_str ew__http_media_type(ew_str value);

/* Whether a text may stand as a header value: no CR, LF, NUL or other control byte but tab. */
bool ew__http_value_ok(ew_str value);

/*
 * Splits a request target (origin or absolute form) into a decoded path and the raw query. Refuses (EW_ESYNTAX) what is
 * no path: bad or truncated escapes, %00 and control bytes, a dot segment after decoding, '#', non-UTF-8, the asterisk
 * form. `out` is for the decoded path, if there is something to decode; it must have room for target.len bytes (at least
 * 1). The path keeps its leading slash. No '?': the query's ptr is NULL.
 */
ew_err ew__http_target(ew_str target, char *out, ew_str *ret_path, ew_str *ret_query);

/* The raw value of a query parameter ("stream" in "a=1&stream=true"), ptr NULL if absent. *ret_count may be NULL. */
ew_str ew__http_query(ew_str query, ew_str name, uint32_t *ret_count);

#endif
