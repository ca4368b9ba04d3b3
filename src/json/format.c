/*
 * json/format.c: JSON text from a template. The directives are those of <everywire/json.h>, and no others. Every argument
 * carries its type (<everywire/format.h>), which is compared with its directive before the argument is read.
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
        double back;
        if (ew_json_double(ew__str(text, (size_t)len), &back) == EW_OK && back == number) {
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

/* ---- arguments ---- */

static bool is_text(const ew_arg *arg) { return arg->type == EW_ARG_STR || arg->type == EW_ARG_CSTR; }

static ew_str text_of(const ew_arg *arg) {
    return arg->type == EW_ARG_STR ? arg->value.str : ew_str_from(arg->value.cstr);
}

static bool put_quoted(ew__json_sink *sink, const ew_arg *arg) {
    if (!is_text(arg)) {
        return false;
    }
    if (arg->type == EW_ARG_CSTR && arg->value.cstr == NULL) {
        put_cstr(sink, "null");
    } else {
        ew__json_put_str(sink, text_of(arg), false);
    }
    return true;
}

static bool put_json(ew__json_sink *sink, const ew_arg *arg) {
    if (!is_text(arg)) {
        return false;
    }
    ew_str json = text_of(arg);
    if (json.len == 0) {
        json = EW_STR("null");
    }
    ew__json_put(sink, json.ptr, json.len);
    return true;
}

static bool put_text(ew__json_sink *sink, const ew_arg *arg) {
    if (!is_text(arg) || (arg->type == EW_ARG_CSTR && arg->value.cstr == NULL)) {
        return false;
    }
    ew_str text = text_of(arg);
    ew__json_put(sink, text.ptr, text.len);
    return true;
}

static bool put_integer(ew__json_sink *sink, const ew_arg *arg) {
    switch (arg->type) {
    case EW_ARG_INT:
        put_signed(sink, arg->value.i);
        return true;
    case EW_ARG_UINT:
        put_unsigned(sink, arg->value.u);
        return true;
    case EW_ARG_BOOL:
        put_unsigned(sink, arg->value.b);
        return true;
    default:
        return false;
    }
}

static bool put_number(ew__json_sink *sink, const ew_arg *arg) {
    if (arg->type != EW_ARG_DOUBLE) {
        return false;
    }
    put_double(sink, arg->value.d);
    return true;
}

/* A comparison is an int in C, so integers count as well. */
static bool put_flag(ew__json_sink *sink, const ew_arg *arg) {
    bool flag;
    switch (arg->type) {
    case EW_ARG_BOOL:
        flag = arg->value.b;
        break;
    case EW_ARG_INT:
        flag = arg->value.i != 0;
        break;
    case EW_ARG_UINT:
        flag = arg->value.u != 0;
        break;
    default:
        return false;
    }
    put_cstr(sink, flag ? "true" : "false");
    return true;
}

/* ---- directives ---- */

/* How long the directive at `at` (after the percent sign) is: 0 for an unknown one. */
static size_t directive_length(const char *at) {
    switch (*at) {
    case 'l':
        return at[1] == 'l' && (at[2] == 'd' || at[2] == 'u') ? 3 : 0;
    case 'z':
        return at[1] == 'u' ? 2 : 0;
    case 'q':
    case 'Q':
    case 'j':
    case 's':
    case 'd':
    case 'u':
    case 'g':
    case 'b':
        return 1;
    default:
        return 0;
    }
}

/* Whether the argument has a type that the directive takes; then it has been written. */
static bool put_argument(ew__json_sink *sink, char directive, const ew_arg *arg) {
    switch (directive) {
    case 'q':
    case 'Q':
        return put_quoted(sink, arg);
    case 'j':
        return put_json(sink, arg);
    case 's':
        return put_text(sink, arg);
    case 'g':
        return put_number(sink, arg);
    case 'b':
        return put_flag(sink, arg);
    default:
        return put_integer(sink, arg);
    }
}

static ew_err format_into(ew__json_sink *sink, const char *format, const ew_arg *args, size_t n_args) {
    size_t used = 0;
    for (;;) {
        size_t plain = strcspn(format, "%");
        ew__json_put(sink, format, plain);
        format += plain;
        if (*format == '\0') {
            return used == n_args ? EW_OK : EW_EINVAL;
        }
        format++;
        if (*format == '%') {
            ew__json_put(sink, format++, 1);
            continue;
        }
        size_t n = directive_length(format);
        if (n == 0 || used == n_args || !put_argument(sink, *format, &args[used])) {
            return EW_EINVAL;
        }
        used++;
        format += n;
    }
}

ew_err ew__json_format_args(ew__buf *out, const char *format, const ew_arg *args, size_t n_args) {
    ew__json_sink sink = {.buf = out};
    size_t before = out->len;
    ew_err err = format_into(&sink, format, args, n_args);
    if (err != EW_OK && out->err == EW_OK) {
        out->len = before; /* half a text helps nobody */
        out->err = err;
    }
    return out->err;
}

int ew_json_format_args(char *buf, size_t capacity, const char *format, const ew_arg *args, size_t n_args) {
    ew__json_sink sink = {.memory = buf, .capacity = capacity > 0 ? capacity - 1 : 0};
    ew_err err = format_into(&sink, format, args, n_args);
    if (capacity > 0) {
        buf[err == EW_OK ? (sink.len < capacity ? sink.len : capacity - 1) : 0] = '\0';
    }
    if (err != EW_OK) {
        return err;
    }
    return sink.len > INT_MAX ? EW_ELIMIT : (int)sink.len;
}
