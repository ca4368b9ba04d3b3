/*
 * json/number.c: see number.h.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/number.h"

#define EXPONENT_MAX INT64_C(1000000000000000)

static int64_t read_exponent(const char *at, const char *end) {
    int64_t exponent = 0;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end; at++) {
        exponent = exponent < EXPONENT_MAX / 10 ? exponent * 10 + (*at - '0') : EXPONENT_MAX;
    }
    return negative ? -exponent : exponent;
}

ew__decimal ew__decimal_read(ew_str number) {
    const char *at = number.ptr, *end = ew__json_end(number);
    ew__decimal d = {.zero = true};
    bool negative = at < end && *at == '-';
    int64_t power = -1; /* of the digit just read, where the point is still to come: 0 - those that follow it */
    bool fraction = false;
    int64_t before = 0; /* digits before the point */
    for (at += negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        power++;
        before += !fraction;
        if (*at == '0') {
            continue;
        }
        if (d.zero) {
            d.zero = false;
            d.first = at;
            d.top = power;
        }
        d.last = at;
        d.low = power;
    }
    if (d.zero) {
        return d;
    }
    int64_t exponent = at < end ? read_exponent(at + 1, end) : 0;
    d.negative = negative;
    d.top = before - 1 - d.top + exponent;
    d.low = before - 1 - d.low + exponent;
    return d;
}

static int compare_size(const ew__decimal *a, const ew__decimal *b) {
    if (a->top != b->top) {
        return a->top < b->top ? -1 : 1;
    }
    const char *p = a->first, *q = b->first;
    for (;;) {
        int x = ew__decimal_digit(a, &p), y = ew__decimal_digit(b, &q);
        if (x != y) {
            return x < y ? -1 : 1; /* the end is -1: what follows it is not 0 */
        }
        if (x < 0) {
            return 0;
        }
    }
}

static int sign(const ew__decimal *a) { return a->zero ? 0 : a->negative ? -1 : 1; }

int ew__decimal_compare(const ew__decimal *a, const ew__decimal *b) {
    int x = sign(a), y = sign(b);
    if (x != y) {
        return x < y ? -1 : 1;
    }
    return x == 0 ? 0 : x * compare_size(a, b);
}

bool ew__decimal_is_integer(const ew__decimal *a) { return a->zero || a->low >= 0; }

bool ew__decimal_count(const ew__decimal *a, uint64_t *ret) {
    uint64_t count = 0;
    if (a->negative || !ew__decimal_is_integer(a)) {
        return false;
    }
    *ret = a->zero ? 0 : UINT64_MAX;
    if (a->zero || a->top > 18) {
        return true;
    }
    const char *at = a->first;
    for (int digit = ew__decimal_digit(a, &at); digit >= 0; digit = ew__decimal_digit(a, &at)) {
        count = count * 10 + (uint64_t)digit;
    }
    for (int64_t i = 0; i < a->low; i++) {
        count *= 10;
    }
    *ret = count;
    return true;
}

bool ew__divisor_make(const ew__decimal *a, ew__divisor *ret) {
    if (a->zero || a->negative || a->top - a->low >= EW__DIVISOR_DIGITS) {
        return false;
    }
    ret->digits = 0;
    ret->low = a->low;
    const char *at = a->first;
    for (int digit = ew__decimal_digit(a, &at); digit >= 0; digit = ew__decimal_digit(a, &at)) {
        ret->digits = ret->digits * 10 + (uint64_t)digit;
    }
    return true;
}

/* a * b modulo m, all of them below 2^60: no wider type is needed. */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t m) {
    uint64_t product = 0;
    for (; b != 0; b >>= 1) {
        if ((b & 1) != 0) {
            product = (product + a) % m;
        }
        a = a * 2 % m;
    }
    return product;
}

/*
 * The last digit kept of either is not 0, so that the number cannot be a multiple if it has more places than the
 * divisor. Else: its digits, with zeros behind them down to the divisor's last place, modulo the divisor's digits.
 */
bool ew__decimal_is_multiple(const ew__decimal *a, const ew__divisor *of) {
    if (a->zero) {
        return true;
    }
    if (a->low < of->low) {
        return false;
    }
    uint64_t rest = 0;
    const char *at = a->first;
    for (int digit = ew__decimal_digit(a, &at); digit >= 0; digit = ew__decimal_digit(a, &at)) {
        rest = (rest * 10 + (uint64_t)digit) % of->digits;
    }
    uint64_t power = 10 % of->digits;
    for (uint64_t n = (uint64_t)(a->low - of->low); n != 0 && rest != 0; n >>= 1) {
        if ((n & 1) != 0) {
            rest = multiply(rest, power, of->digits);
        }
        power = multiply(power, power, of->digits);
    }
    return rest == 0;
}
