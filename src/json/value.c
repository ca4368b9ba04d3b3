/*
 * json/value.c: single values out of JSON text: strings decoded, integers exact, doubles rounded correctly, booleans.
 *
 * Doubles without the locale: strtod reads the decimal point of the locale, but its input here never has one. The
 * number is given to it as DIGITSeEXPONENT, which every locale reads alike. Most numbers never get there: up to 15
 * digits and a small power of ten are one exact multiplication or division.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "json/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static ew_str trimmed(ew_str value) {
    const char *end = ew__json_end(value), *at = ew__json_space(value.ptr, end);
    while (end > at && ew__json_is_space(end[-1])) {
        end--;
    }
    return ew__str(at, (size_t)(end - at));
}

/* Why a value could not be read as the type that was asked for. */
static ew_err other_type(ew_str value) { return value.len == 0 ? EW_ENOTFOUND : EW_ETYPE; }

/* ---- strings ---- */

static bool is_string(ew_str value) { return value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"'; }

ew_err ew_json_string(ew_str value, char *buf, size_t capacity, size_t *ret_len) {
    size_t len = 0;
    value = trimmed(value);
    *ret_len = 0;
    if (!is_string(value)) {
        return other_type(value);
    }
    const char *at = value.ptr + 1, *end = value.ptr + value.len - 1;
    while (at < end) {
        char utf8[4];
        const char *from = at;
        size_t n = ew__json_plain_run(at, end, true);
        at += n;
        if (n == 0) {
            uint32_t point = ew__json_char(&at, end);
            if (point >= 0xd800 && point <= 0xdfff) {
                *ret_len = 0;
                return EW_ETYPE;
            }
            n = ew__json_utf8_put(point, utf8);
            from = utf8;
        }
        if (len <= capacity && n <= capacity - len) {
            memcpy(buf + len, from, n);
        }
        len += n;
    }
    *ret_len = len;
    return len <= capacity ? EW_OK : EW_ELIMIT;
}

ew_str ew__json_text(ew_str value, char *buf, size_t capacity) {
    size_t n = 0;
    if (!is_string(value)) {
        return ew__str(NULL, 0);
    }
    if (memchr(value.ptr, '\\', value.len) == NULL) {
        return ew__str(value.ptr + 1, value.len - 2);
    }
    return ew_json_string(value, buf, capacity, &n) == EW_OK ? ew__str(buf, n) : ew__str(NULL, 0);
}

/* ---- integers ---- */

/* Sign and digits, nothing else. */
static bool magnitude(ew_str value, bool *ret_negative, uint64_t *ret_number) {
    value = trimmed(value);
    *ret_negative = value.len > 0 && value.ptr[0] == '-';
    if (*ret_negative) {
        value = ew__str(value.ptr + 1, value.len - 1);
    }
    return ew__u64_parse(value, ret_number);
}

ew_err ew_json_int64(ew_str value, int64_t *ret_number) {
    bool negative;
    uint64_t number;
    if (!magnitude(value, &negative, &number) || number > (uint64_t)INT64_MAX + negative) {
        return other_type(value);
    }
    *ret_number = negative && number > 0 ? -(int64_t)(number - 1) - 1 : (int64_t)number;
    return EW_OK;
}

ew_err ew_json_uint64(ew_str value, uint64_t *ret_number) {
    bool negative;
    uint64_t number;
    if (!magnitude(value, &negative, &number) || (negative && number != 0)) {
        return other_type(value);
    }
    *ret_number = number;
    return EW_OK;
}

/* ---- doubles ---- */

/* Enough digits to round any decimal correctly, if one more tells whether something was cut off behind them. */
#define DIGITS_MAX 770

typedef struct decimal {
    bool negative;
    char digits[DIGITS_MAX + 32]; /* significant ones, without leading zeros; room for the exponent's text */
    size_t n;
    bool cut;         /* digits other than zero were left out */
    int64_t exponent; /* of the last digit kept */
} decimal;

static void add_digit(decimal *d, char c, bool fraction) {
    if (d->n == 0 && c == '0') {
        d->exponent -= fraction;
    } else if (d->n < DIGITS_MAX) {
        d->digits[d->n++] = c;
        d->exponent -= fraction;
    } else {
        d->cut = d->cut || c != '0';
        d->exponent += !fraction;
    }
}

static const char *read_exponent(const char *at, const char *end, int64_t *ret_exponent) {
    int64_t exponent = 0;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        exponent = exponent < 100000000 ? exponent * 10 + (*at - '0') : exponent; /* far beyond any double either way */
    }
    *ret_exponent = negative ? -exponent : exponent;
    return at;
}

static bool read_decimal(ew_str value, decimal *d) {
    const char *at = value.ptr, *end = ew__json_end(value);
    if (value.len == 0) {
        return false;
    }
    d->negative = *at == '-';
    at += d->negative;
    d->n = 0;
    d->cut = false;
    d->exponent = 0;
    if (at == end || *at < '0' || *at > '9') {
        return false;
    }
    for (bool fraction = false; at < end && ((*at >= '0' && *at <= '9') || (*at == '.' && !fraction)); at++) {
        if (*at == '.') {
            fraction = true;
        } else {
            add_digit(d, *at, fraction);
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        int64_t exponent;
        at = read_exponent(at + 1, end, &exponent);
        d->exponent += exponent;
    }
    return at == end;
}

static double to_double(decimal *d) {
    static const double powers[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t number = 0;
    if (d->n == 0) {
        return 0;
    }
    if (d->n <= 15 && d->exponent >= -22 && d->exponent <= 22) {
        for (size_t i = 0; i < d->n; i++) {
            number = number * 10 + (uint64_t)(d->digits[i] - '0');
        }
        return d->exponent < 0 ? (double)number / powers[-d->exponent] : (double)number * powers[d->exponent];
    }
    if (d->cut) {
        d->digits[d->n++] = '1';
        d->exponent--;
    }
    snprintf(d->digits + d->n, sizeof d->digits - d->n, "e%lld", (long long)d->exponent);
    return strtod(d->digits, NULL); /* allow-banned: digits and exponent, no decimal point: alike in every locale */
}

ew_err ew_json_double(ew_str value, double *ret_number) {
    decimal d;
    value = trimmed(value);
    if (!read_decimal(value, &d)) {
        return other_type(value);
    }
    double number = to_double(&d);
    if (!isfinite(number)) {
        return EW_ETYPE;
    }
    *ret_number = d.negative ? -number : number;
    return EW_OK;
}

/* ---- booleans ---- */

ew_err ew_json_bool(ew_str value, bool *ret_flag) {
    value = trimmed(value);
    if (ew_json_typeof(value) != EW_JSON_BOOL) {
        return other_type(value);
    }
    *ret_flag = value.ptr[0] == 't';
    return EW_OK;
}
