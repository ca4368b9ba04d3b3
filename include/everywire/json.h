/*
 * everywire/json.h: reading and writing JSON text. Values stay text: a getter hands out a slice of the text it was
 * given, so nothing is copied, re-ordered or rounded. All readers expect text that was validated before; everything a
 * call hands to a handler was. Foreign text goes through ew_json_check first.
 *
 * All functions here may be used from any thread; none keeps a pointer.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_JSON_H
#define EVERYWIRE_JSON_H

#include <everywire/base.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ew_json_type {
    EW_JSON_NONE, /* no such value */
    EW_JSON_NULL,
    EW_JSON_BOOL,
    EW_JSON_NUMBER,
    EW_JSON_STRING,
    EW_JSON_ARRAY,
    EW_JSON_OBJECT
} ew_json_type;

/*
 * Validates one JSON value with optional white space around it: RFC 8259, UTF-8, at most 128 levels deep.
 * Returns EW_OK, EW_ESYNTAX or EW_ELIMIT (too deep); ret_position, if not NULL, then gets the byte where it failed.
 */
EW_API ew_err ew_json_check(ew_str text, size_t *ret_position);

/* The type of the value that `value` holds; EW_JSON_NONE for an empty slice. */
EW_API ew_json_type ew_json_typeof(ew_str value);

/*
 * The value at a JSON pointer (RFC 6901) such as "/user/name" or "/items/0"; "" is the whole value. The answer is a
 * slice of `json`, without white space around it; empty (ptr NULL) when there is no such value. Of members with the
 * same name the first counts.
 */
EW_API ew_str ew_json_get(ew_str json, const char *pointer);

/* The same for a member of an object by its plain name: no escapes, one level. */
EW_API ew_str ew_json_member(ew_str object, ew_str name);

/*
 * The inside of the string at `pointer`, or `fallback` when it is missing, no string, or holds an escape (\n, \u00e9):
 * such a string has no slice that is its value; use ew_json_string for it. "" as pointer reads `json` itself.
 */
EW_API ew_str ew_json_get_str(ew_str json, const char *pointer, ew_str fallback);

/*
 * The integer at `pointer`, exact over the whole range of int64_t; `fallback` when it is missing, no integer or too
 * large.
 */
EW_API int64_t ew_json_get_int(ew_str json, const char *pointer, int64_t fallback);

/* The number at `pointer` as a double, or `fallback`. */
EW_API double ew_json_get_double(ew_str json, const char *pointer, double fallback);

/* The boolean at `pointer`, or `fallback`. */
EW_API bool ew_json_get_bool(ew_str json, const char *pointer, bool fallback);

/*
 * Decodes a JSON string value (with its quotes) to UTF-8 into buf. *ret_len gets the length needed, also when the
 * buffer was too small. Returns EW_OK, EW_ETYPE (no string, or a lone surrogate that UTF-8 cannot hold) or EW_ELIMIT
 * (capacity too small).
 */
EW_API ew_err ew_json_string(ew_str value, char *buf, size_t capacity, size_t *ret_len);

/*
 * The number as an exact int64_t or uint64_t. Accepts integers only (also "-0", no fraction or exponent): EW_OK or
 * EW_ETYPE.
 */
EW_API ew_err ew_json_int64(ew_str value, int64_t *ret_number);
EW_API ew_err ew_json_uint64(ew_str value, uint64_t *ret_number);

/* Walks an array or object. Start with {0}; see ew_json_next. */
typedef struct ew_json_iter {
    ew_str key;     /* objects: the member's name as it stands in the text, with its quotes */
    ew_str value;   /* the element or member's value, without white space around it */
    size_t offset_; /* private */
} ew_json_iter;

/*
 * The next member or element of `container`: true and it->key, it->value; false at the end, or when it is no
 * container.
 */
EW_API bool ew_json_next(ew_str container, ew_json_iter *it);

/*
 * Writes formatted JSON text into buf, like snprintf: returns the length of the whole text (without the NUL that ends
 * it), or a negative ew_err for a bad format. Directives: %q an ew_str as a JSON string (quoted, escaped; bytes that
 * are no UTF-8 become U+FFFD), %Q the same for a C string (NULL becomes null), %j an ew_str of JSON text as it stands
 * (empty becomes null), %s a C string as it stands, %d int, %u unsigned, %lld, %llu, %zu, %g double (null when not
 * finite), %b bool, %%.
 */
EW_API int ew_json_format(char *buf, size_t capacity, const char *format, ...);
EW_API int ew_json_vformat(char *buf, size_t capacity, const char *format, va_list args);

/*
 * Writes the value without white space between its tokens into buf, without a NUL; what stands inside strings stays
 * as it is. The answer is the length, never more than json.len, or EW_ELIMIT when capacity is too small. buf may be
 * where json lies: it is then done in place.
 */
EW_API int ew_json_minify(ew_str json, char *buf, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
