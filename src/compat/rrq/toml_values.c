/*
 * compat/rrq/toml_values.c: strings, numbers, truth values and dates of a TOML file. See toml.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "compat/rrq/toml.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int hex_value(char c) {
    char letter = (char)(c | 0x20);
    return is_digit(c) ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Appends; false: no memory, which the buffer remembers. */
static bool put(ew__toml *t, const char *bytes, size_t n) { return ew__buf_add(&t->scratch, bytes, n) == EW_OK; }

/* ---- strings ---- */

static bool put_character(ew__toml *t, uint32_t c) {
    char out[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3f));
    }
    out[0] = (char)(leads[n] | c);
    return put(t, out, n);
}

/* Behind \u or \U. */
static bool unicode_escape(ew__toml *t, size_t digits) {
    uint32_t c = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_value(ew__toml_peek(t, i));
        if (digit < 0) {
            return ew__toml_bad(t, t->at + i, "\\%c wants %zu hexadecimal digits", digits == 4 ? 'u' : 'U', digits);
        }
        c = c << 4 | (uint32_t)digit;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        return ew__toml_bad(t, t->at, "there is no such character");
    }
    t->at += digits;
    return put_character(t, c);
}

/* A backslash at the end of a line: white space and line ends up to the next text are no part of the string. */
static bool skip_line_end(ew__toml *t) {
    size_t backslash = t->at - 1;
    while (ew__toml_peek(t, 0) == ' ' || ew__toml_peek(t, 0) == '\t') {
        t->at++;
    }
    if (!ew__toml_newline(t)) {
        return ew__toml_bad(t, backslash, "a backslash here means nothing; \\\\ is one");
    }
    while (ew__toml_peek(t, 0) == ' ' || ew__toml_peek(t, 0) == '\t' || ew__toml_newline(t)) {
        t->at += ew__toml_peek(t, 0) == ' ' || ew__toml_peek(t, 0) == '\t';
    }
    return true;
}

/* Behind a backslash. */
static bool escape(ew__toml *t, bool multi) {
    static const char letters[] = "btnfr\"\\", bytes[] = "\b\t\n\f\r\"\\";
    char c = ew__toml_peek(t, 0);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        t->at++;
        return put(t, bytes + (letter - letters), 1);
    }
    if (c == 'u' || c == 'U') {
        t->at++;
        return unicode_escape(t, c == 'u' ? 4 : 8);
    }
    if (multi && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
        return skip_line_end(t);
    }
    return ew__toml_bad(t, t->at - 1, "not an escape: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX are");
}

/* Three quotes end it; up to two more before them are part of it. */
static bool closes_multi(ew__toml *t, char quote) {
    size_t n = 0;
    while (n < 5 && ew__toml_peek(t, n) == quote) {
        n++;
    }
    if (n < 3) {
        return false;
    }
    for (size_t i = 3; i < n; i++) {
        (void)put(t, &quote, 1);
    }
    t->at += n;
    return true;
}

static bool multi_line(ew__toml *t, char quote, unsigned line) {
    t->at += 3;
    (void)ew__toml_newline(t); /* right behind the quotes it does not count */
    for (;;) {
        char c = ew__toml_peek(t, 0);
        if (t->at >= t->text.len) {
            return ew__toml_bad(t, t->at, "the string that begins in line %u does not end", line);
        }
        if (c == quote && closes_multi(t, quote)) {
            return true;
        }
        if (ew__toml_newline(t)) {
            (void)put(t, "\n", 1);
        } else if (c == '\\' && quote == '"') {
            t->at++;
            if (!escape(t, true)) {
                return false;
            }
        } else if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7f) {
            return ew__toml_bad(t, t->at, "a control character in a string");
        } else {
            (void)put(t, &c, 1);
            t->at++;
        }
    }
}

bool ew__toml_string(ew__toml *t, bool multi) {
    char quote = ew__toml_peek(t, 0);
    size_t start = t->at;
    ew__buf_clear(&t->scratch);
    if (ew__toml_peek(t, 1) == quote && ew__toml_peek(t, 2) == quote) {
        return multi ? multi_line(t, quote, t->line) : ew__toml_bad(t, start, "a key goes over one line only");
    }
    for (t->at++;;) {
        char c = ew__toml_peek(t, 0);
        if (c == quote) {
            t->at++;
            return true;
        }
        if (t->at >= t->text.len || c == '\n' || c == '\r') {
            return ew__toml_bad(t, start, "the string does not end in its line");
        }
        if ((unsigned char)c < 0x20 ? c != '\t' : c == 0x7f) {
            return ew__toml_bad(t, t->at, "a control character in a string");
        }
        t->at++;
        if (c != '\\' || quote == '\'') {
            (void)put(t, &c, 1);
        } else if (!escape(t, false)) {
            return false;
        }
    }
}

/* ---- numbers ---- */

/* Digits with single underscores between them, appended without those. The number of digits; 0: not so. */
static size_t take_digits(ew__toml *t, ew_str word, size_t *at) {
    size_t n = 0;
    while (*at < word.len && (is_digit(word.ptr[*at]) || word.ptr[*at] == '_')) {
        bool line = word.ptr[*at] == '_';
        if (line && (n == 0 || *at + 1 >= word.len || !is_digit(word.ptr[*at + 1]))) {
            return 0;
        }
        if (!line) {
            (void)put(t, word.ptr + *at, 1);
            n++;
        }
        (*at)++;
    }
    return n;
}

/* 0x, 0o, 0b. */
static bool based(ew__toml *t, ew_str word, size_t start) {
    unsigned shift = word.ptr[1] == 'x' ? 4 : word.ptr[1] == 'o' ? 3 : 1;
    uint64_t value = 0;
    for (size_t i = 2; i < word.len; i++) {
        char c = word.ptr[i];
        int digit = hex_value(c);
        bool between = c == '_' && i > 2 && i + 1 < word.len && word.ptr[i - 1] != '_';
        if (between) {
            continue;
        }
        if (digit < 0 || digit >= 1 << shift) {
            return ew__toml_bad(t, start, "not a number: %s", ew__show(word).text);
        }
        if (value >> (63 - shift)) {
            return ew__toml_bad(t, start, "a number that does not fit into 64 bits");
        }
        value = value << shift | (uint64_t)digit;
    }
    if (word.len == 2) {
        return ew__toml_bad(t, start, "not a number: %s", ew__show(word).text);
    }
    return ew__buf_u64(&t->scratch, value) == EW_OK;
}

static bool fits(ew_str digits, bool minus) {
    uint64_t value;
    return ew__u64_parse(digits, &value) && value <= (uint64_t)INT64_MAX + minus;
}

/* Behind the whole part: a fraction, an exponent, or both. false: not so. */
static bool fraction(ew__toml *t, ew_str word, size_t *at) {
    bool any = false;
    if (*at < word.len && word.ptr[*at] == '.') {
        (*at)++;
        any = put(t, ".", 1) && take_digits(t, word, at) > 0;
        if (!any) {
            return false;
        }
    }
    if (*at < word.len && (word.ptr[*at] | 0x20) == 'e') {
        (*at)++;
        (void)put(t, "e", 1);
        if (*at < word.len && (word.ptr[*at] == '-' || word.ptr[*at] == '+')) {
            (void)put(t, word.ptr + (*at)++, 1);
        }
        any = take_digits(t, word, at) > 0;
    }
    return any;
}

static bool number(ew__toml *t, ew_str word, size_t start) {
    bool sign = word.ptr[0] == '-' || word.ptr[0] == '+', minus = word.ptr[0] == '-';
    ew_str rest = sign ? ew__str(word.ptr + 1, word.len - 1) : word;
    if (ew__str_is(rest, EW_STR("inf")) || ew__str_is(rest, EW_STR("nan"))) {
        (void)put(t, minus && rest.ptr[0] == 'i' ? "-." : ".", minus && rest.ptr[0] == 'i' ? 2 : 1);
        return put(t, rest.ptr, 3);
    }
    if (!sign && word.len > 1 && word.ptr[0] == '0' && strchr("xob", word.ptr[1])) {
        return based(t, word, start);
    }
    size_t at = sign, before = minus;
    (void)put(t, "-", minus);
    size_t n = take_digits(t, word, &at);
    if (t->scratch.err != EW_OK) {
        return true; /* no memory, which is seen when the text is taken */
    }
    if (n == 0) {
        return ew__toml_bad(t, start, "not a value: %s", ew__show(word).text);
    }
    ew_str digits = ew__str(t->scratch.ptr + before, n);
    if (n > 1 && digits.ptr[0] == '0') {
        return ew__toml_bad(t, start, "a number with a zero before it");
    }
    if (at == word.len) {
        return fits(digits, minus) || ew__toml_bad(t, start, "a number that does not fit into 64 bits");
    }
    return (fraction(t, word, &at) && at == word.len) || ew__toml_bad(t, start, "not a value: %s", ew__show(word).text);
}

/* ---- dates ---- */

/* Two digits at an index. -1: not so. */
static int two(ew_str text, size_t at) {
    return at + 1 < text.len && is_digit(text.ptr[at]) && is_digit(text.ptr[at + 1])
               ? (text.ptr[at] - '0') * 10 + text.ptr[at + 1] - '0'
               : -1;
}

static bool has(ew_str text, size_t at, char c) { return at < text.len && text.ptr[at] == c; }

static bool is_date(ew_str text) {
    static const int days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int century = two(text, 0), years = two(text, 2), month = two(text, 5), day = two(text, 8);
    if (century < 0 || years < 0 || !has(text, 4, '-') || !has(text, 7, '-') || month < 1 || month > 12) {
        return false;
    }
    int year = century * 100 + years;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month] + (month == 2 && leap);
}

/* HH:MM:SS[.F]; the length, 0: not so. */
static size_t time_length(ew_str text) {
    int hour = two(text, 0), minute = two(text, 3), second = two(text, 6);
    if (hour < 0 || hour > 23 || !has(text, 2, ':') || minute < 0 || minute > 59 || !has(text, 5, ':') || second < 0 ||
        second > 60) {
        return 0;
    }
    size_t n = 8;
    if (has(text, n, '.')) {
        for (n++; n < text.len && is_digit(text.ptr[n]); n++) {
        }
        return n > 9 ? n : 0;
    }
    return n;
}

/* "Z", "+02:00" or nothing. */
static bool is_offset(ew_str text) {
    if (text.len == 0 || (text.len == 1 && (text.ptr[0] | 0x20) == 'z')) {
        return true;
    }
    int hour = two(text, 1), minute = two(text, 4);
    return text.len == 6 && (text.ptr[0] == '+' || text.ptr[0] == '-') && text.ptr[3] == ':' && hour >= 0 &&
           hour < 24 && minute >= 0 && minute < 60;
}

static bool is_when(ew_str word) {
    if (has(word, 2, ':')) {
        return time_length(word) == word.len && word.len > 0;
    }
    if (!is_date(word) || word.len == 10) {
        return is_date(word);
    }
    ew_str rest = ew__str(word.ptr + 11, word.len - 11);
    size_t n = (word.ptr[10] | 0x20) == 't' || word.ptr[10] == ' ' ? time_length(rest) : 0;
    return n > 0 && is_offset(ew__str(rest.ptr + n, rest.len - n));
}

/* ---- all ---- */

static bool ends_word(char c) { return c == 0 || strchr(" \t\r\n,]}#=", c) != NULL; }

bool ew__toml_scalar(ew__toml *t, bool *ret_plain) {
    size_t start = t->at, n = 0;
    while (start + n < t->text.len && !ends_word(ew__toml_peek(t, n))) {
        n++;
    }
    if (n == 10 && ew__toml_peek(t, 4) == '-' && ew__toml_peek(t, n) == ' ' && is_digit(ew__toml_peek(t, n + 1))) {
        for (n++; !ends_word(ew__toml_peek(t, n)); n++) { /* a date and a time */
        }
    }
    ew_str word = ew__str(t->text.ptr + start, n);
    ew__buf_clear(&t->scratch);
    if (n == 0) {
        return ew__toml_bad(t, start, "a value is missing");
    }
    t->at += n;
    bool date = (n > 4 && word.ptr[4] == '-' && is_digit(word.ptr[0]) && is_digit(word.ptr[3])) ||
                (n > 2 && word.ptr[2] == ':');
    *ret_plain = !date;
    if (date) {
        return is_when(word) ? put(t, word.ptr, n)
                             : ew__toml_bad(t, start, "not a date or time: %s", ew__show(word).text);
    }
    if (ew__str_is(word, EW_STR("true")) || ew__str_is(word, EW_STR("false"))) {
        return put(t, word.ptr, n);
    }
    if (!is_digit(word.ptr[0]) && !strchr("+-.in_", word.ptr[0])) {
        return ew__toml_bad(t, start, "not a value: %s; a text needs quotes", ew__show(word).text);
    }
    return number(t, word, start);
}
