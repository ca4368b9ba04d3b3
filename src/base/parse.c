/*
 * base/parse.c: see parse.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/parse.h"
#include "base/util.h"
#include <string.h>

/* ---- durations ---- */

static bool unit_ms(ew_str unit, uint64_t *ret_ms) {
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) == unit.len && memcmp(units[i].name, unit.ptr, unit.len) == 0) {
            *ret_ms = units[i].ms;
            return true;
        }
    }
    return false;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits up to a limit; false when the number is larger. *at moves behind all of them in any case. */
static bool read_whole(ew_str text, size_t *at, uint64_t limit, uint64_t *ret) {
    uint64_t number = 0;
    bool fits = true;
    for (; *at < text.len && is_digit(text.ptr[*at]); (*at)++) {
        number = fits ? number * 10 + (uint64_t)(text.ptr[*at] - '0') : 0;
        fits = fits && number <= limit;
    }
    *ret = number;
    return fits;
}

ew_err ew__duration_parse(ew_str text, uint64_t *ret_ms) {
    uint64_t whole = 0, nanos = 0, unit = 0;
    size_t at = 0;
    bool beyond = false; /* something smaller than a billionth of the unit */
    bool fits = read_whole(text, &at, EW__DURATION_MAX_MS, &whole);
    bool digits = at > 0;
    if (at < text.len && text.ptr[at] == '.') {
        size_t start = ++at;
        uint64_t scale = 100000000;
        for (; at < text.len && is_digit(text.ptr[at]); at++, scale /= 10) {
            nanos += scale * (uint64_t)(text.ptr[at] - '0');
            beyond = beyond || (scale == 0 && text.ptr[at] != '0');
        }
        digits = digits && at > start;
    }
    if (!digits || !unit_ms((ew_str){text.ptr + at, text.len - at}, &unit)) {
        return EW_EINVAL;
    }
    if (!fits || whole > EW__DURATION_MAX_MS / unit) {
        return EW_ELIMIT;
    }
    uint64_t part = nanos * unit; /* in billionths of a millisecond: below 4e15 */
    uint64_t ms = whole * unit + part / 1000000000 + (part % 1000000000 != 0 || beyond ? 1 : 0);
    if (ms > EW__DURATION_MAX_MS) {
        return EW_ELIMIT;
    }
    *ret_ms = ms;
    return EW_OK;
}

/* ---- sizes and limits ---- */

bool ew__size_parse(ew_str text, uint64_t *ret_bytes) {
    uint64_t number;
    if (text.len == 0) {
        return false;
    }
    char suffix = text.ptr[text.len - 1];
    unsigned shift = suffix == 'K' ? 10 : suffix == 'M' ? 20 : suffix == 'G' ? 30 : 0;
    if (!ew__u64_parse((ew_str){text.ptr, text.len - (shift ? 1 : 0)}, &number) || number > UINT64_MAX >> shift) {
        return false;
    }
    *ret_bytes = number << shift;
    return true;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool ew__limit_parse(const char *name, ew_str text, uint64_t *ret) {
    if (ew__u64_parse(text, ret)) {
        return true;
    }
    return ends_with(name, "_ms") ? ew__duration_parse(text, ret) == EW_OK
                                  : ends_with(name, "_bytes") && ew__size_parse(text, ret);
}
