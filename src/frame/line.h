/*
 * frame/line.h: messages of JSON-RPC on a byte stream, both framings, pure: no memory, no I/O.
 *
 *   lines    one JSON value after the other. A newline ends it usually, but is not needed: a value ends where its JSON
 *            ends. White space between values, blank lines and CRLF are fine; one value may span lines.
 *   headers  "Content-Length: N", perhaps other header lines, a blank line, N bytes (LSP). Names in any case; line ends
 *            may be CRLF or LF; the header block is limited.
 *   whole lines  every line that is not blank is one message, and is a VALUE, JSON or not (Stepflow over pipes).
 *
 * Which of the first two is told by the first bytes (AUTO) or fixed. After text that is no JSON reading goes on behind the next
 * newline; where a value begins is never guessed. However the bytes are cut, the same messages come out.
 * May include: base.
 */
#ifndef EW_FRAME_LINE_H
#define EW_FRAME_LINE_H

#include <everywire/limits.h>

typedef enum ew__framing {
    EW__FRAMING_AUTO,
    EW__FRAMING_LINES,
    EW__FRAMING_HEADERS,
    EW__FRAMING_WHOLE_LINES
} ew__framing;

typedef enum ew__line_event {
    EW__LINE_MORE,    /* no whole message yet; *ret_used bytes (white space, skipped text) may be dropped */
    EW__LINE_LIKELY,  /* one line, begins and ends like one value; if it is no JSON: ew__line_look_closer, read again */
    EW__LINE_VALUE,   /* one value, delimited exactly; if it is no JSON after all: ew__line_skip, then read on */
    EW__LINE_BAD,     /* no JSON from *ret_used on; reading goes on behind the next newline */
    EW__LINE_FOREIGN, /* the first bytes of the stream begin neither an object or array nor a header (`strict` only) */
    EW__LINE_TOO_LONG,  /* a message over the limit; if read on, what is left of it is skipped */
    EW__LINE_BAD_HEADER /* headers: no usable Content-Length, or the block is too long; the framing is lost */
} ew__line_event;

#define EW__LINE_HEAD_MAX 8192 /* bytes of one header block */

/* Where reading stands. Less than 64 bytes; all zeros is not a state: use init. */
typedef struct ew__line {
    size_t max;      /* bytes of one message */
    size_t scanned;  /* of the bytes not yet consumed, how many were looked at */
    size_t left;     /* headers: bytes of the body, to come or to be skipped; lines: where the likely value began */
    uint32_t head;   /* headers: bytes of this block that are used already */
    uint32_t deeper; /* open levels beyond EW_JSON_DEPTH, whose kinds are not known */
    uint8_t framing; /* ew__framing; AUTO until the first bytes have told */
    uint8_t state;
    uint8_t flags;
    uint8_t depth;
    uint8_t nesting[EW_JSON_DEPTH / 8]; /* one bit per level: object or array */
} ew__line;

/*
 * strict: the stream must begin as EW__LINE_FOREIGN says; otherwise a stray line is a BAD or VALUE like any other, and
 * does not tell the framing. In lines, a line that begins like a header is BAD once it can be seen to be one: what
 * stands at *ret_used shows a peer that uses the other framing.
 */
void ew__line_init(ew__line *line, ew__framing framing, size_t max, bool strict);

/*
 * Whether these first bytes of a stream begin messages in one of the framings: an object, an array, or
 * a Content-Length or Content-Type header. 1 yes, 0 not clear yet, -1 no.
 */
int ew__line_begins(ew_str bytes);

/*
 * What comes next. `bytes` begins with the first byte not yet used and holds everything that has come since; called
 * again with more bytes it does not look at the old ones twice. *ret_used: how many bytes are done with (those of a
 * value too: it is to be handled before they are dropped). For VALUE and LIKELY *ret_value is a slice of bytes; in
 * lines, without white space around it. A scalar ends with the byte behind it: at the end of a stream a newline brings
 * it out. After FOREIGN and BAD_HEADER every read says the same.
 */
ew__line_event ew__line_read(ew__line *line, ew_str bytes, ew_str *ret_value, size_t *ret_used);

/* After LIKELY: it was no JSON. Nothing of it counts as used: read again, with the same bytes; exact this time. */
void ew__line_look_closer(ew__line *line);

/* After VALUE (not LIKELY): it was no JSON. In lines, what stands before the next newline is skipped. */
void ew__line_skip(ew__line *line);

/*
 * After TOO_LONG: how many of the bytes that come next belong to what is skipped; *ret_end: it ends there. 0 and true if
 * nothing is skipped.
 */
size_t ew__line_skipped(const ew__line *line, ew_str bytes, bool *ret_end);

/*
 * Whether a message has begun and is not whole yet (a caller may want a deadline for the rest). A line that is skipped
 * is no message; a body that is skipped is one.
 */
bool ew__line_is_inside(const ew__line *line);

/* Whether all that was used so far were whole lines: whoever knows what comes may take more of them without us. */
bool ew__line_is_between(const ew__line *line);

/* What goes before and after a message of `len` bytes: a header, or nothing; and nothing, or a newline. */
#define EW__LINE_HEAD_ROOM 48
size_t ew__line_head(ew__framing framing, size_t len, char out[EW__LINE_HEAD_ROOM]); /* returns its length */
static inline size_t ew__line_tail(ew__framing framing) { return framing == EW__FRAMING_HEADERS ? 0 : 1; }

#endif
