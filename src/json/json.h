/*
 * json/json.h: one pass that validates a JSON text and notes where its first two levels of members lie.
 * The public readers and writers of <everywire/json.h> live in this room too. May include: base.
 */
#ifndef EW_JSON_JSON_H
#define EW_JSON_JSON_H

#include "base/buf.h"
#include <everywire/json.h>

/* A value noted by the pass: a member or element of the root (level 1) or of one of those (level 2). */
typedef struct ew__json_node {
    uint32_t key; /* offset of the member's name inside its quotes; 0 for elements of arrays */
    uint32_t key_len;
    uint32_t value; /* offset of the value's first byte */
    uint32_t value_len;
    uint16_t next; /* index of the next node of the same level and parent, 0 for none */
    uint8_t type;  /* ew_json_type */
    uint8_t level; /* 1 or 2; children of a level 1 node follow it directly */
} ew__json_node;

#define EW__JSON_NODES 48

/* Caller's memory, about 1 KiB; needs no cleaning up. Offsets are into `text`. */
typedef struct ew__json_doc {
    ew_str text;        /* the whole text, as given */
    ew_str root;        /* the root value without white space around it */
    ew_json_type type;  /* of the root */
    bool escaped_keys;  /* some key at level 1 or 2 holds an escape: names are then compared decoded */
    bool complete;      /* false: there were more values than nodes; lookups beyond them scan the text */
    bool root_complete; /* false: not even all of level 1 was noted */
    bool has_newline;   /* the text has a raw LF or CR between tokens somewhere (a line wire must minify) */
    bool deep;          /* more than EW_PAYLOAD_DEPTH levels: a payload in it may be too deep (ew__json_is_payload) */
    uint16_t n_nodes;
    size_t error_at;                     /* where validation failed */
    ew__json_node nodes[EW__JSON_NODES]; /* node 0 is unused, so that 0 can mean "none" */
} ew__json_doc;

/*
 * Validates `text` strictly (RFC 8259; UTF-8; depth <= EW_JSON_DEPTH; length < 4 GiB) and fills doc.
 * EW_OK, EW_ESYNTAX, EW_ELIMIT (too deep or too long). No allocation, no recursion.
 */
ew_err ew__json_parse(ew__json_doc *doc, ew_str text);

/*
 * Validates a payload without noting anything: at most EW_PAYLOAD_DEPTH levels; *ret_position as in ew_json_check.
 */
ew_err ew__json_validate(ew_str text, size_t *ret_position);
/* Whether the text is a valid payload, without a position. */
bool ew__json_is_payload(ew_str text);

/*
 * For an envelope whose bytes are known: whether the text is one small JSON value between its first `before` bytes and
 * its last `behind` bytes, which the caller has compared with what it knows to be an envelope of up to two levels. Then
 * the whole text is valid, and the envelope has no more members than those. False: it may be valid all the same.
 * A piece of a stream is hardly longer than its envelope, and finding its members costs more than checking it.
 */
bool ew__json_value_between(ew_str text, size_t before, size_t behind, ew_str *ret_value);

/*
 * Behind the value that begins at `at`, if it is short and spelled as most are: all of it is printable ASCII, and nests
 * at most 32 levels deep. NULL: it is not, but may be valid. What follows a number may still be part of it, so the
 * caller looks for the byte that ought to follow.
 */
#define EW__JSON_SIMPLE_MAX 1024 /* bytes */
const char *ew__json_simple_end(const char *at, const char *end);

/*
 * The value of the root's member `name` (raw slice), or empty. *ret_repeated (may be NULL) is set when the name stands
 * more than once, also when one of them is written with escapes: an envelope must then be refused.
 */
ew_str ew__json_find(const ew__json_doc *doc, ew_str name, bool *ret_repeated);

/*
 * The same one level deeper: `parent` is the value of a root member, as ew__json_find gave it. Does not scan the text
 * again, so long as the nodes sufficed.
 */
ew_str ew__json_find_under(const ew__json_doc *doc, ew_str parent, ew_str name, bool *ret_repeated);

/*
 * Several members of an object in one walk over the notes, where they suffice: of the root, or of an object that is the
 * value of a root member. values[k] is the first of names[k], or empty. Returns whether none of them was repeated.
 */
bool ew__json_members(const ew__json_doc *doc, ew_str object, const ew_str *names, size_t n, ew_str *values);

/* The same as ew__json_find in an object that is a slice of validated text, without a doc. */
ew_str ew__json_find_in(ew_str object, ew_str name, bool *ret_repeated);

/*
 * Follows a JSON pointer as far as there are values: the last one, and in *pointer the rest that leads nowhere, "" if the
 * value is the one that the pointer names.
 */
ew_str ew__json_follow(ew_str json, const char **pointer);

/*
 * The text of a JSON string: a slice of it, or decoded into buf if it has escapes. Empty if the value is not a string, or
 * one that has no UTF-8 form or does not fit into buf.
 */
ew_str ew__json_text(ew_str value, char *buf, size_t capacity);

/* Appends the value without white space between tokens. The text must be valid. */
ew_err ew__json_minify(ew__buf *out, ew_str json);

/* Whether a raw CR or LF stands in the (valid) text: they can only be between tokens. */
bool ew__json_has_newline(ew_str json);

/*
 * Appends text as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. ascii: also \u-escape
 * everything above 0x7e.
 */
ew_err ew__json_write_str(ew__buf *out, ew_str text, bool ascii);
bool ew__json_is_plain(ew_str text); /* ASCII that stands in a string as it is */

/* Appends a (valid) JSON value with everything above 0x7e in its strings escaped as \uXXXX. */
ew_err ew__json_write_ascii(ew__buf *out, ew_str json);

/*
 * A (valid) value as a line: itself, or rewritten in *buf: without raw newlines, and with `ascii` without bytes above
 * 0x7e. *buf is made here and to be freed by the caller in any case. EW_OK or EW_ENOMEM.
 */
ew_err ew__json_line(const ew_env *env, ew_str json, bool ascii, ew__buf *buf, ew_str *ret);

/*
 * Whether a short text is printable ASCII and nothing else, which most pieces of streams are: then it is such a line as
 * it stands, and one pass over its words has shown it. False: that has not been shown.
 */
bool ew__json_is_plain_line(ew_str json);

/* ew_json_format into a growing buffer. On EW_EINVAL the buffer keeps its text, and its error is set. */
ew_err ew__json_format_args(ew__buf *out, const char *format, const ew_arg *args, size_t n_args);
#define ew__json_format(out, ...) ew__json_format_args(out, EW_FORMAT(__VA_ARGS__))

#endif
