/*
 * json/format.c: JSON text from a template. The directives are those of <everywire/json.h>, and no others: an unknown
 * one is an error, not a guess, because the arguments after it could not be found.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "json/sink.h"
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void put_cstr(ew__json_sink *sink, const char *text) { ew__json_put(sink, text, strlen(text)); }

static void put_unsigned(ew__json_sink *sink, uint64_t number) {
    char digits[20];
    ew__json_put(sink, digits, ew__u64_text(number, digits));
}

static void put_signed(ew__json_sink *sink, int64_t number) {
    if (number < 0) {
        ew__json_put(sink, "-", 1);
    }
    put_unsigned(sink, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

/* The digits of a text like 1.25e-07, whatever stands for its point, and its exponent. */
static size_t take_digits(const char *text, char digits[20], int *ret_exponent) {
    size_t n = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9' && n < 20) {
            digits[n++] = *text;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    *ret_exponent = *text == 'e' ? (int)strtol(text + 1, NULL, 10) : 0;
    return n;
}

/*
 * The digits of a double, as few as 15 if they read back as the same one, and its exponent. printf writes the decimal
 * point of the locale; it is left out, and our own reader reads back.
 */
static size_t shortest(double number, char digits[20], int *ret_exponent) {
    size_t n = 0;
    for (int precision = 14; precision <= 16; precision++) {
        char text[64];
        snprintf(text, sizeof text, "%.*e", precision, number);
        n = take_digits(text, digits, ret_exponent);
        int len = snprintf(text, sizeof text, "%.*se%d", (int)n, digits, *ret_exponent - (int)n + 1);
        if (ew_json_get_double(ew__str(text, (size_t)len), "", -1) == number) {
            break;
        }
    }
    return n;
}

/* Plain notation from 1e-5 up to 1e17, else with an exponent. */
static void put_double(ew__json_sink *sink, double number) {
    char digits[20];
    int exponent;
    if (!isfinite(number)) {
        put_cstr(sink, "null");
        return;
    }
    if (signbit(number)) {
        ew__json_put(sink, "-", 1);
    }
    int n = (int)shortest(fabs(number), digits, &exponent);
    bool plain = exponent >= -5 && exponent < 17;
    int whole = plain ? exponent + 1 : 1; /* digits before the point */
    if (whole <= 0) {
        ew__json_put(sink, "0.00000", (size_t)(2 - whole));
        ew__json_put(sink, digits, (size_t)n);
        return;
    }
    ew__json_put(sink, digits, (size_t)(n < whole ? n : whole));
    for (int i = n; i < whole; i++) {
        ew__json_put(sink, "0", 1);
    }
    if (n > whole) {
        ew__json_put(sink, ".", 1);
        ew__json_put(sink, digits + whole, (size_t)(n - whole));
    }
    if (!plain) {
        ew__json_put(sink, "e", 1);
        put_signed(sink, exponent);
    }
}

static void put_json(ew__json_sink *sink, ew_str json) {
    if (json.len == 0) {
        put_cstr(sink, "null");
    } else {
        ew__json_put(sink, json.ptr, json.len);
    }
}

static void put_cstr_quoted(ew__json_sink *sink, const char *text) {
    if (text == NULL) {
        put_cstr(sink, "null");
    } else {
        ew__json_put_str(sink, ew__str(text, strlen(text)), false);
    }
}

/* A directive's letters and what it takes. va_list in a struct: passing one on to be moved is portable only so. */
typedef struct arguments {
    va_list list;
} arguments;

/* The directive at `at` (after the percent sign): its length, or 0 for an unknown one. */
static size_t directive(ew__json_sink *sink, const char *at, arguments *args) {
    if (strncmp(at, "lld", 3) == 0) {
        put_signed(sink, va_arg(args->list, long long));
        return 3;
    }
    if (strncmp(at, "llu", 3) == 0) {
        put_unsigned(sink, va_arg(args->list, unsigned long long));
        return 3;
    }
    if (strncmp(at, "zu", 2) == 0) {
        put_unsigned(sink, va_arg(args->list, size_t));
        return 2;
    }
    switch (*at) {
    case 'q':
        ew__json_put_str(sink, va_arg(args->list, ew_str), false);
        return 1;
    case 'Q':
        put_cstr_quoted(sink, va_arg(args->list, const char *));
        return 1;
    case 'j':
        put_json(sink, va_arg(args->list, ew_str));
        return 1;
    case 's':
        put_cstr(sink, va_arg(args->list, const char *));
        return 1;
    case 'd':
        put_signed(sink, va_arg(args->list, int));
        return 1;
    case 'u':
        put_unsigned(sink, va_arg(args->list, unsigned));
        return 1;
    case 'g':
        put_double(sink, va_arg(args->list, double));
        return 1;
    case 'b':
        put_cstr(sink, va_arg(args->list, int) != 0 ? "true" : "false");
        return 1;
    case '%':
        ew__json_put(sink, "%", 1);
        return 1;
    default:
        return 0;
    }
}

static ew_err format_into(ew__json_sink *sink, const char *format, va_list list) {
    arguments args;
    ew_err err = EW_OK;
    va_copy(args.list, list);
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        ew__json_put(sink, format, plain);
        format += plain;
        if (*format == '\0') {
            break;
        }
        size_t n = directive(sink, format + 1, &args);
        if (n == 0) {
            err = EW_EINVAL;
            break;
        }
        format += 1 + n;
    }
    va_end(args.list);
    return err;
}

ew_err ew__json_vformat(ew__buf *out, const char *format, va_list args) {
    ew__json_sink sink = {.buf = out};
    size_t before = out->len;
    ew_err err = format_into(&sink, format, args);
    if (err != EW_OK && out->err == EW_OK) {
        out->len = before; /* half a text helps nobody */
        out->err = err;
    }
    return out->err;
}

ew_err ew__json_format(ew__buf *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ew_err err = ew__json_vformat(out, format, args);
    va_end(args);
    return err;
}

int ew_json_vformat(char *buf, size_t capacity, const char *format, va_list args) {
    ew__json_sink sink = {.memory = buf, .capacity = capacity > 0 ? capacity - 1 : 0};
    ew_err err = format_into(&sink, format, args);
    if (capacity > 0) {
        buf[err == EW_OK ? (sink.len < capacity ? sink.len : capacity - 1) : 0] = '\0';
    }
    if (err != EW_OK) {
        return err;
    }
    return sink.len > INT_MAX ? EW_ELIMIT : (int)sink.len;
}

int ew_json_format(char *buf, size_t capacity, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int len = ew_json_vformat(buf, capacity, format, args);
    va_end(args);
    return len;
}
