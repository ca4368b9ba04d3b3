/*
 * json/scan.c: validation from outside: picks the scanner for this processor, and asks locate.c where a bad text is
 * wrong.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/scan.h"
#include "base/util.h"
#include "json/note.h"
#include "json/plain.h"
#include <everywire/limits.h>

#define SMALL 128           /* bytes: from here on the scanner is as quick as looking at each value */
#define TEXT_MAX UINT32_MAX /* offsets of nodes have 32 bits */

static bool scan_best(ew__json_doc *doc, ew_str text, uint32_t limit) {
#if EW__JSON_AVX2
    if (ew__json_has_avx2()) {
        return ew__json_scan_avx2(doc, text, limit);
    }
#endif
    return ew__json_scan_portable(doc, text, limit);
}

static ew_err refuse(ew_str text, unsigned limit, size_t *ret_position) {
    size_t at = 0;
    ew_err err = ew__json_locate(text, limit, &at);
    if (ret_position != NULL) {
        *ret_position = at;
    }
    return err == EW_OK ? EW_ESYNTAX : err; /* the scanner's verdict counts, should the two ever differ */
}

static ew_str trimmed(ew_str text) {
    size_t start = 0, end = text.len;
    while (start < end && ew__json_is_space(text.ptr[start])) {
        start++;
    }
    while (end > start && ew__json_is_space(text.ptr[end - 1])) {
        end--;
    }
    return ew__str(text.ptr + start, end - start);
}

typedef bool scanner_fn(ew__json_doc *doc, ew_str text, uint32_t limit);

static ew_err parse_with(scanner_fn *scanner, ew__json_doc *doc, ew_str text) {
    doc->text = text;
    doc->error_at = 0;
    doc->n_nodes = 1;
    doc->type = EW_JSON_NONE;
    doc->root = ew__str(NULL, 0);
    if (text.len >= TEXT_MAX) {
        return EW_ELIMIT;
    }
    doc->deep = !scanner(doc, text, EW_PAYLOAD_DEPTH);
    if (EW__UNLIKELY(doc->deep) && !scanner(doc, text, EW_JSON_DEPTH)) {
        doc->n_nodes = 1;
        doc->complete = doc->root_complete = true;
        return refuse(text, EW_JSON_DEPTH, &doc->error_at);
    }
    doc->root = trimmed(text);
    doc->type = ew__json_type_of_byte(doc->root.ptr[0]);
    return EW_OK;
}

ew_err ew__json_parse(ew__json_doc *doc, ew_str text) { return parse_with(scan_best, doc, text); }

ew_err ew__json_parse_portable(ew__json_doc *doc, ew_str text) { return parse_with(ew__json_scan_portable, doc, text); }

/* A small text in which ew__json_simple_end sees nothing unusual is valid, and far from the limit of depth. */
static bool is_valid(ew_str text, uint32_t limit) {
    if (text.len > 0 && text.len <= SMALL &&
        ew__json_simple_end(text.ptr, text.ptr + text.len) == text.ptr + text.len) {
        return true;
    }
    return scan_best(NULL, text, limit);
}

ew_err ew__json_validate(ew_str text, size_t *ret_position) {
    if (text.len >= TEXT_MAX) {
        if (ret_position != NULL) {
            *ret_position = 0;
        }
        return EW_ELIMIT;
    }
    return EW__LIKELY(is_valid(text, EW_PAYLOAD_DEPTH)) ? EW_OK : refuse(text, EW_PAYLOAD_DEPTH, ret_position);
}

bool ew__json_is_payload(ew_str text) { return text.len < TEXT_MAX && is_valid(text, EW_PAYLOAD_DEPTH); }

/* ---- small values ---- */

#define SIMPLE_DEPTH 32

static const char *skip_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/* Behind a whole number or one with a fraction; NULL: it is none. What follows is for the caller to see. */
static inline const char *simple_number(const char *at, const char *end) {
    at += *at == '-';
    const char *whole = at;
    at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
    if (EW__UNLIKELY(at == whole)) {
        return NULL;
    }
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction, end);
        return at > fraction ? at : NULL;
    }
    return at;
}

static const char *simple_word(const char *at, const char *end) {
    ew_str rest = ew__str(at, (size_t)(end - at));
    if (ew__str_has_prefix(rest, EW_STR("true")) || ew__str_has_prefix(rest, EW_STR("null"))) {
        return at + 4;
    }
    return ew__str_has_prefix(rest, EW_STR("false")) ? at + 5 : NULL;
}

/* From behind the quote that opens a string to behind that which closes it. */
EW__JSON_INLINE const char *simple_string(const char *at, const char *end) {
    at = ew__json_plain_end(at, end, true);
    while (at < end && *at == '\\') {
        if (end - at < 2 || at[1] == 0 || strchr("\"\\/bfnrt", at[1]) == NULL) {
            return NULL;
        }
        at = ew__json_plain_end(at + 2, end, true);
    }
    return EW__LIKELY(at < end && *at == '"') ? at + 1 : NULL;
}

/* A value that is no container. */
EW__JSON_INLINE const char *simple_scalar(const char *at, const char *end) {
    if (*at == '"') {
        return simple_string(at + 1, end);
    }
    return *at <= '9' ? simple_number(at, end) : simple_word(at, end);
}

/* A name with its colon. */
EW__JSON_INLINE const char *simple_name(const char *at, const char *end) {
    at = at < end && *at == '"' ? simple_string(at + 1, end) : NULL;
    if (EW__UNLIKELY(at == NULL || at == end || *at != ':')) {
        return NULL;
    }
    at++;
    return at + (at < end && *at == ' ');
}

/* The containers around a value that are open; a bit for each: it is an object. The innermost is the lowest. */
typedef struct nest {
    uint32_t objects;
    unsigned depth;
    char closer; /* what ends the innermost */
} nest;

EW__JSON_INLINE bool open_container(nest *in, char opener) {
    in->objects = in->objects << 1 | (opener == '{');
    in->closer = opener == '{' ? '}' : ']';
    return ++in->depth <= SIMPLE_DEPTH;
}

EW__JSON_INLINE void close_container(nest *in) {
    in->objects >>= 1;
    in->closer = in->objects & 1 ? '}' : ']';
    in->depth--;
}

/* A value has ended: on to where the next one begins, or to the end of all of them (depth 0). */
EW__JSON_INLINE const char *simple_next(nest *in, const char *at, const char *end) {
    for (; in->depth > 0 && at < end && *at == in->closer; at++) {
        close_container(in);
    }
    if (in->depth == 0) {
        return at;
    }
    if (EW__UNLIKELY(at == end || *at != ',')) {
        return NULL;
    }
    at++;
    at += at < end && *at == ' ';
    return in->objects & 1 ? simple_name(at, end) : at;
}

/*
 * The spelling that most have: no escapes but those of one letter, nothing beyond ASCII, no exponents, no white space
 * but one blank behind commas and colons. The scanner is made for long texts; for a piece of a stream its beginning and
 * end cost more than all the bytes between them.
 */
const char *ew__json_simple_end(const char *at, const char *end) {
    nest in = {0};
    end = end - at > EW__JSON_SIMPLE_MAX ? at + EW__JSON_SIMPLE_MAX : end;
    while (at < end) {
        if ((*at | 0x20) != '{') { /* nor a square one */
            at = simple_scalar(at, end);
        } else if (!open_container(&in, *at++)) {
            return NULL;
        } else if (at == end || *at != in.closer) { /* it is not empty: its first value */
            at = in.objects & 1 ? simple_name(at, end) : at;
            if (EW__UNLIKELY(at == NULL)) {
                return NULL;
            }
            continue;
        }
        at = at != NULL ? simple_next(&in, at, end) : NULL;
        if (at == NULL || in.depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* The longest text that cannot nest too deep for a payload: each level of it has two brackets. */
#define BETWEEN_MAX ((size_t)2 * EW_PAYLOAD_DEPTH + 1)

bool ew__json_value_between(ew_str text, size_t before, size_t behind, ew_str *ret_value) {
    if (text.len <= before + behind || text.len - before - behind > BETWEEN_MAX) {
        return false;
    }
    ew_str value = ew__str(text.ptr + before, text.len - before - behind);
    const char *end = value.ptr + value.len;
    if (ew__json_simple_end(value.ptr, end) != end &&
        (ew__json_is_space(value.ptr[0]) || ew__json_is_space(value.ptr[value.len - 1]) ||
         !scan_best(NULL, value, EW_PAYLOAD_DEPTH))) {
        return false;
    }
    *ret_value = value;
    return true;
}

ew_err ew_json_check(ew_str text, size_t *ret_position) { return ew__json_validate(text, ret_position); }

const char *ew__json_skip_container(const char *at, const char *end) {
#if EW__JSON_AVX2
    if (ew__json_has_avx2()) {
        return ew__json_skip_container_avx2(at, end);
    }
#endif
    return ew__json_skip_container_portable(at, end);
}
