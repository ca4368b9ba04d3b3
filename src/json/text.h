/*
 * json/text.h: small steps over JSON text that is known to be valid, shared by the readers and writers of this room.
 * They trust its grammar but never leave [at, end): a bad text gives wrong answers, not wrong reads.
 */
#ifndef EW_JSON_TEXT_H
#define EW_JSON_TEXT_H

#include "base/util.h"
#include "json/note.h"

/* Places are pointers; `end` is one past the last byte. */

/* One past the last byte; an empty slice may be NULL, to which C adds nothing, not even 0. */
EW__JSON_INLINE const char *ew__json_end(ew_str text) { return text.len != 0 ? text.ptr + text.len : text.ptr; }

EW__JSON_INLINE const char *ew__json_space(const char *at, const char *end) {
    while (at < end && ew__json_is_space(*at)) {
        at++;
    }
    return at;
}

/* `at` is on the opening quote: the byte after the closing one, or end. */
const char *ew__json_skip_string(const char *at, const char *end);

/* The first byte of the value is at `at`: the byte after its last one. */
const char *ew__json_skip_value(const char *at, const char *end);

/*
 * How many bytes from `at` on are plain inside a string: neither quote, backslash nor control byte; with ascii also
 * none above 0x7e.
 */
size_t ew__json_plain_run(const char *at, const char *end, bool ascii);

/* The length of the UTF-8 sequence at `at` (RFC 3629), 0 if there is none. */
size_t ew__json_utf8(const char *at, const char *end, uint32_t *ret_point);

/*
 * Writes a code point as UTF-8; returns how many bytes. A surrogate becomes the three bytes that UTF-8 does not
 * allow.
 */
size_t ew__json_utf8_put(uint32_t point, char out[4]);

/*
 * One step through the inside of a string: a character, plain or escaped, a pair of surrogate escapes being one. Moves
 * *at past it and returns its code point; a lone surrogate gives itself. *at < end.
 */
uint32_t ew__json_char(const char **at, const char *end);

/* Whether the inside of a string in the text (`raw`) is the name. */
bool ew__json_name_is(ew_str raw, ew_str name);

#endif
