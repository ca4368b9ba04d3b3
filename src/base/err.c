/*
 * base/err.c: the small public words of everywire/base.h: names of error codes, the version, slices. No state.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"

const char *ew_err_name(ew_err err) {
    switch (err) {
    case EW_OK:
        return "EW_OK";
    case EW_FULL:
        return "EW_FULL";
#define NAME(name, number, text)                                                                                       \
    case name:                                                                                                         \
        return #name;
        EW_ERR_MAP(NAME)
#undef NAME
    }
    return "EW_?"; /* a number that is no code: a caller's mistake, still printable */
}

const char *ew_err_text(ew_err err) {
    switch (err) {
    case EW_OK:
        return "success";
    case EW_FULL:
        return "taken; wait for room before sending more";
#define TEXT(name, number, text)                                                                                       \
    case name:                                                                                                         \
        return text;
        EW_ERR_MAP(TEXT)
#undef TEXT
    }
    return "not an error code of this library";
}

const char *ew_version(void) { return EW_VERSION_STRING; }

ew_str ew_str_from(const char *text) { return ew__str(text, text == NULL ? 0 : strlen(text)); }

bool ew_str_eq(ew_str a, ew_str b) { return ew__str_is(a, b); }
