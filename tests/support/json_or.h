/*
 * tests/support/json_or.h: a value of a JSON text at a pointer, or a fallback that makes the assertion fail. For tests
 * only: a program must not take a default for a value that is there (everywire/json.h).
 */
#ifndef EW_TESTS_JSON_OR_H
#define EW_TESTS_JSON_OR_H

#include <everywire/json.h>

/* The inside of a string as it is in the text; a test that expects escapes compares them undecoded. */
static inline ew_str json_str_or(ew_str json, const char *pointer, ew_str fallback) {
    ew_str value = ew_json_get(json, pointer);
    if (ew_json_typeof(value) != EW_JSON_STRING)
        return fallback;
    value.ptr++;
    value.len -= 2;
    return value;
}

static inline int64_t json_int_or(ew_str json, const char *pointer, int64_t fallback) {
    (void)ew_json_int64(ew_json_get(json, pointer), &fallback);
    return fallback;
}

static inline double json_double_or(ew_str json, const char *pointer, double fallback) {
    (void)ew_json_double(ew_json_get(json, pointer), &fallback);
    return fallback;
}

static inline bool json_bool_or(ew_str json, const char *pointer, bool fallback) {
    (void)ew_json_bool(ew_json_get(json, pointer), &fallback);
    return fallback;
}

#endif
