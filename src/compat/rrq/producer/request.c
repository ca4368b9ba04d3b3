/*
 * compat/rrq/producer/request.c: see request.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/producer/request.h"
#include "base/when.h"
#include "json/text.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define REQUEST_MAX ((size_t)256 * 1024 * 1024)
#define SECONDS_MAX 1e11 /* three thousand years: milliseconds of it can be added to any date */

bool ew__trouble_set(ew__trouble *trouble, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(trouble->text, sizeof trouble->text, format, args);
    va_end(args);
    return false;
}

bool ew__request_is_blank(ew_str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (!ew__json_is_space(text.ptr[i]) && text.ptr[i] != '\v' && text.ptr[i] != '\f') {
            return false;
        }
    }
    return true;
}

/* ---- the text as a whole ---- */

static bool check_utf8(ew_str text, ew__trouble *trouble) {
    const char *at = text.ptr, *end = text.ptr + text.len;
    while (at < end) {
        uint32_t point;
        size_t n = ew__json_utf8(at, end, &point);
        if (n == 0) {
            return ew__trouble_set(trouble, "invalid utf-8 sequence from index %zu", (size_t)(at - text.ptr));
        }
        at += n;
    }
    return true;
}

/* An escaped half of a character: JSON's grammar allows it, but no text has it, and RRQ's workers could not read it. */
static bool has_lone_surrogate(ew_str json) {
    const char *at = json.ptr, *end = json.ptr + json.len;
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        uint32_t point = ew__json_char(&at, end);
        if (point >= 0xd800 && point <= 0xdfff) {
            return true;
        }
    }
    return false;
}

bool ew__request_check(const char *text, const char *what, ew__trouble *trouble) {
    size_t position = 0;
    if (text == NULL) {
        return ew__trouble_set(trouble, "received null pointer");
    }
    ew_str json = ew_str_from(text);
    if (json.len > REQUEST_MAX) {
        return ew__trouble_set(trouble, "invalid %s: it is too large", what);
    }
    if (!check_utf8(json, trouble)) {
        return false;
    }
    ew_err err = ew_json_check(json, &position);
    if (err == EW_ELIMIT) {
        return ew__trouble_set(trouble, "invalid %s: recursion limit exceeded at byte %zu", what, position);
    }
    if (err != EW_OK) {
        return ew__trouble_set(trouble, "invalid %s: no JSON: %s at byte %zu", what,
                               position >= json.len ? "it ends too early" : "unexpected character", position);
    }
    if (has_lone_surrogate(json)) {
        return ew__trouble_set(trouble, "invalid %s: a lone surrogate is no character", what);
    }
    return true;
}

/* ---- its members ---- */

static const char *kind_of(ew_str value) {
    static const char *const kinds[] = {
        [EW_JSON_NULL] = "null",     [EW_JSON_BOOL] = "boolean",   [EW_JSON_NUMBER] = "number",
        [EW_JSON_STRING] = "string", [EW_JSON_ARRAY] = "sequence", [EW_JSON_OBJECT] = "map",
    };
    ew_json_type type = ew_json_typeof(value);
    return type == EW_JSON_NONE ? "nothing" : kinds[type];
}

static bool wrong_type(const char *what, const char *name, ew_str value, const char *expected, ew__trouble *trouble) {
    bool number = ew_json_typeof(value) == EW_JSON_NUMBER && value.len < 40;
    return ew__trouble_set(trouble, "invalid %s: invalid type: %s%s%.*s%s, expected %s (%s)", what, kind_of(value),
                           number ? " `" : "", number ? (int)value.len : 0, value.ptr, number ? "`" : "", expected,
                           name);
}

static bool decode(ew__arena *arena, ew_str value, ew_str *ret, ew__trouble *trouble) {
    size_t len = value.len;
    char *copy = ew__arena_alloc(arena, len);
    if (copy == NULL || ew_json_string(value, copy, len, &len) != EW_OK) {
        return ew__trouble_set(trouble, "out of memory");
    }
    *ret = ew__str(copy, len);
    return true;
}

static bool all_strings(ew_str object) {
    ew_json_iter it = {0};
    while (ew_json_next(object, &it)) {
        if (ew_json_typeof(it.value) != EW_JSON_STRING) {
            return false;
        }
    }
    return true;
}

static bool read_value(ew__arena *arena, ew_str json, const char *what, const ew__member *member,
                       ew__member_value *value, ew__trouble *trouble) {
    ew_json_type type = ew_json_typeof(json);
    switch (member->type) {
    case EW__MEMBER_TEXT:
        return type == EW_JSON_STRING ? decode(arena, json, &value->text, trouble)
                                      : wrong_type(what, member->name, json, "a string", trouble);
    case EW__MEMBER_INT:
        return type == EW_JSON_NUMBER && ew_json_int64(json, &value->integer) == EW_OK
                   ? true
                   : wrong_type(what, member->name, json, "i64", trouble);
    case EW__MEMBER_SECONDS:
        if (ew_json_double(json, &value->seconds) != EW_OK) {
            value->seconds = (double)INFINITY; /* too large for a double */
        }
        return type == EW_JSON_NUMBER ? true : wrong_type(what, member->name, json, "f64", trouble);
    case EW__MEMBER_STRINGS:
    case EW__MEMBER_OBJECT:
        value->text = json;
        if (type != EW_JSON_OBJECT) {
            return wrong_type(what, member->name, json, "a map", trouble);
        }
        return member->type == EW__MEMBER_OBJECT || all_strings(json)
                   ? true
                   : ew__trouble_set(trouble, "invalid %s: invalid type: expected strings in %s", what, member->name);
    }
    return false;
}

/* The field of that name (with its quotes, perhaps with escapes); NULL: none. */
static const ew__member *member_of(ew_str key, const ew__member *members, size_t n) {
    ew_str raw = ew__str(key.ptr + 1, key.len - 2);
    for (size_t i = 0; i < n; i++) {
        if (ew__json_name_is(raw, ew_str_from(members[i].name))) {
            return &members[i];
        }
    }
    return NULL;
}

bool ew__request_read(ew__arena *arena, ew_str object, const char *what, const ew__member *members, size_t n,
                      ew__member_value *values, ew__trouble *trouble) {
    ew_json_iter it = {0};
    uint64_t seen = 0; /* one bit for each field: no table has more than 64 */
    memset(values, 0, n * sizeof *values);
    if (ew_json_typeof(object) != EW_JSON_OBJECT) {
        return wrong_type(what, "the whole of it", object, "a map", trouble);
    }
    while (ew_json_next(object, &it)) {
        const ew__member *member = member_of(it.key, members, n);
        if (member == NULL) {
            continue;
        }
        size_t i = (size_t)(member - members);
        if ((seen >> i & 1) != 0) {
            return ew__trouble_set(trouble, "invalid %s: duplicate field `%s`", what, member->name);
        }
        seen |= UINT64_C(1) << i;
        if (ew_json_typeof(it.value) == EW_JSON_NULL && !member->required) {
            continue;
        }
        if (!read_value(arena, it.value, what, member, &values[i], trouble)) {
            return false;
        }
        values[i].set = true;
    }
    for (size_t i = 0; i < n; i++) {
        if (members[i].required && !values[i].set) {
            return ew__trouble_set(trouble, "invalid %s: missing field `%s`", what, members[i].name);
        }
    }
    return true;
}

/* ---- times ---- */

bool ew__request_ms(const ew__member_value *value, const char *name, bool positive, int64_t *ret_ms,
                    ew__trouble *trouble) {
    double seconds = value->seconds;
    if (!isfinite(seconds)) {
        return ew__trouble_set(trouble, "%s must be finite", name);
    }
    if (seconds < 0 || (positive && !(seconds > 0))) {
        return ew__trouble_set(trouble, "%s must be positive", name);
    }
    if (seconds > SECONDS_MAX) {
        return ew__trouble_set(trouble, "%s is too large", name);
    }
    *ret_ms = (int64_t)ceil(seconds * 1000);
    return true;
}

bool ew__request_when(const ew__member_value *value, const char *name, int64_t *ret_ms, ew__trouble *trouble) {
    ew_str text = value->text;
    bool ok = ew__when_parse(text, ret_ms) && text.len > 19;
    if (ok) { /* an offset must be there: whose clock it is would be a guess */
        char last = text.ptr[text.len - 1], sign = text.ptr[text.len - 6];
        ok = last == 'Z' || last == 'z' || sign == '+' || sign == '-';
    }
    return ok ? true : ew__trouble_set(trouble, "%s is no time with an offset (RFC 3339)", name);
}
