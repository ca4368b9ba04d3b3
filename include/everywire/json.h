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
#include <everywire/format.h>

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
 * Validates one JSON value with optional white space around it: RFC 8259, UTF-8, at most EW_PAYLOAD_DEPTH levels.
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
 * The readers below take a value, as ew_json_get or ew_json_member gave it, and never replace it by a default. They
 * return EW_OK; EW_ENOTFOUND if the slice is empty (there is no such value); EW_ETYPE if the value has another type or
 * does not fit. A handler reads its input with ew_call_input_str and its relatives (call.h) instead.
 */

/*
 * Decodes a JSON string (with its quotes) to UTF-8 into buf, which needs at most value.len bytes. *ret_len gets the length
 * needed, also when the buffer was too small, and 0 if there is no text. EW_OK, EW_ENOTFOUND, EW_ETYPE (also an unpaired
 * surrogate, which UTF-8 cannot hold) or EW_ELIMIT (capacity too small).
 */
EW_API ew_err ew_json_string(ew_str value, char *buf, size_t capacity, size_t *ret_len);

/*
 * The number as an exact int64_t or uint64_t. Integers only (also "-0", no fraction or exponent). *ret_number is written
 * on EW_OK only, so that it may hold a default. EW_OK, EW_ENOTFOUND, EW_ETYPE.
 */
EW_API ew_err ew_json_int64(ew_str value, int64_t *ret_number);
EW_API ew_err ew_json_uint64(ew_str value, uint64_t *ret_number);

/*
 * The number as the nearest double. *ret_number is written on EW_OK only. EW_OK, EW_ENOTFOUND, EW_ETYPE (also beyond the
 * range of a double).
 */
EW_API ew_err ew_json_double(ew_str value, double *ret_number);

/* The boolean. *ret_flag is written on EW_OK only. EW_OK, EW_ENOTFOUND, EW_ETYPE. */
EW_API ew_err ew_json_bool(ew_str value, bool *ret_flag);

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
 * it), EW_ELIMIT if that is more than INT_MAX, or EW_EINVAL for an unknown directive, an argument of a type that its
 * directive does not take, or too few or too many arguments; buf then holds "". Directives:
 *
 * %q or %Q: an ew_str or C string as a JSON string, quoted and escaped. Bytes that are not UTF-8 become U+FFFD; a C
 * string that is NULL becomes null.
 *
 * %j: an ew_str or C string that holds JSON text, as it is; empty or NULL becomes null. %s: any text as it is, not NULL.
 *
 * %d, %u, %lld, %llu or %zu: an integer of any type, bool too, with its exact value. %g: a float or
 * double, null when not finite.
 *
 * %b: a bool, or an integer (0 is false). %%: a percent sign.
 *
 * ew_json_format(buf, capacity, "[%d,%q]", n, name) makes the array of arguments from their types (format.h).
 */
EW_API int ew_json_format_args(char *buf, size_t capacity, const char *format, const ew_arg *args, size_t n_args);
#ifndef __cplusplus
#define ew_json_format(buf, capacity, ...) ew_json_format_args(buf, capacity, EW_FORMAT(__VA_ARGS__))
#endif

/*
 * Writes the value without white space between its tokens into buf, without a NUL; what stands inside strings stays
 * as it is. The answer is the length, never more than json.len, or EW_ELIMIT when capacity is too small. buf may be
 * where json lies: it is then done in place.
 */
EW_API int ew_json_minify(ew_str json, char *buf, size_t capacity);

#ifdef __cplusplus
}

template <typename... T> int ew_json_format(char *buf, size_t capacity, const char *format, const T &...args) {
    return ew_json_format_args(buf, capacity, format, ew_arg_list<T...>(args...).items, sizeof...(T));
}
#endif
#endif
