/*
 * json/locate.c: a JSON checker that goes byte by byte. It is not on the path of a good text: it runs when the scanner
 * has refused one, to say where and why. Tests also hold the scanners against it.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "json/note.h"
#include "json/scan.h"
#include <everywire/limits.h>

typedef struct place {
    const unsigned char *text;
    size_t len;
    size_t at;
} place;

/* What may come next. */
typedef enum want {
    WANT_VALUE,
    WANT_VALUE_OR_END,
    WANT_NAME,
    WANT_NAME_OR_END,
    WANT_COLON,
    WANT_COMMA_OR_END,
    WANT_NOTHING
} want;

/* The byte `ahead` of the place, or -1 past the end. */
static int peek(const place *p, size_t ahead) { return p->at + ahead < p->len ? p->text[p->at + ahead] : -1; }

static void skip_space(place *p) {
    while (peek(p, 0) == ' ' || peek(p, 0) == '\n' || peek(p, 0) == '\r' || peek(p, 0) == '\t') {
        p->at++;
    }
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_hex(int c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/* The length of the UTF-8 sequence at the place, 0 if it is none. */
static size_t utf8_len(const place *p) {
    int c = peek(p, 0), second = peek(p, 1);
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (n < 2) {
        return n;
    }
    int lowest = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    int highest = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (second < lowest || second > highest) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if (peek(p, i) < 0x80 || peek(p, i) > 0xbf) {
            return 0;
        }
    }
    return n;
}

static bool pass_escape(place *p) {
    p->at++;
    int c = peek(p, 0);
    if (c <= 0 || strchr("\"\\/bfnrtu", c) == NULL) {
        return false;
    }
    p->at++;
    for (int i = 0; c == 'u' && i < 4; i++, p->at++) {
        if (!is_hex(peek(p, 0))) {
            return false;
        }
    }
    return true;
}

static bool pass_string(place *p) {
    p->at++;
    for (;;) {
        int c = peek(p, 0);
        if (c == '"') {
            p->at++;
            return true;
        }
        if (c < 0x20) {
            return false;
        }
        if (c == '\\') {
            if (!pass_escape(p)) {
                return false;
            }
            continue;
        }
        size_t n = utf8_len(p);
        if (n == 0) {
            return false;
        }
        p->at += n;
    }
}

static bool pass_digits(place *p) {
    if (!is_digit(peek(p, 0))) {
        return false;
    }
    while (is_digit(peek(p, 0))) {
        p->at++;
    }
    return true;
}

static bool pass_number(place *p) {
    if (peek(p, 0) == '-') {
        p->at++;
    }
    if (peek(p, 0) == '0') {
        p->at++;
    } else if (!pass_digits(p)) {
        return false;
    }
    if (peek(p, 0) == '.') {
        p->at++;
        if (!pass_digits(p)) {
            return false;
        }
    }
    if (peek(p, 0) == 'e' || peek(p, 0) == 'E') {
        p->at++;
        if (peek(p, 0) == '+' || peek(p, 0) == '-') {
            p->at++;
        }
        return pass_digits(p);
    }
    return true;
}

static bool pass_word(place *p, const char *word) {
    for (; *word != '\0'; word++, p->at++) {
        if (peek(p, 0) != *word) {
            return false;
        }
    }
    return true;
}

static bool pass_scalar(place *p) {
    switch (peek(p, 0)) {
    case '"':
        return pass_string(p);
    case 't':
        return pass_word(p, "true");
    case 'f':
        return pass_word(p, "false");
    case 'n':
        return pass_word(p, "null");
    default:
        return pass_number(p);
    }
}

static const char *digits_end(const char *at, const char *end) {
    while (at < end && (unsigned)(*at - '0') <= 9) {
        at++;
    }
    return at;
}

/* After the whole part of a number: the end of the number, or NULL. */
static const char *rest_end(const char *at, const char *end) {
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        at = digits_end(fraction, end);
        if (at == fraction) {
            return NULL;
        }
    }
    if (at < end && (*at | 0x20) == 'e') {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        const char *exponent = at;
        at = digits_end(exponent, end);
        if (at == exponent) {
            return NULL;
        }
    }
    return at;
}

bool ew__json_scalar_ok(const char *at, const char *end) {
    const char *digits = at + (*at == '-');
    const char *next = digits_end(digits, end);
    if (next == digits) {
        static const char *const words[] = {"true", "false", "null"};
        for (size_t i = 0; i < 3; i++) {
            size_t n = strlen(words[i]);
            if ((size_t)(end - at) >= n && memcmp(at, words[i], n) == 0) {
                next = at + n;
            }
        }
        if (next == digits) {
            return false;
        }
    } else if ((*digits == '0' && next - digits > 1) || (next = rest_end(next, end)) == NULL) {
        return false;
    }
    return next == end || *next == ',' || *next == '}' || *next == ']' || ew__json_is_space(*next);
}

/* One token other than a bracket; moves *next on. */
static bool pass_token(place *p, want *next, bool object) {
    int c = peek(p, 0);
    switch (*next) {
    case WANT_NAME:
    case WANT_NAME_OR_END:
        *next = WANT_COLON;
        return c == '"' && pass_string(p);
    case WANT_COLON:
        *next = WANT_VALUE;
        break;
    case WANT_COMMA_OR_END:
        *next = object ? WANT_NAME : WANT_VALUE;
        p->at += c == ',';
        return c == ',';
    case WANT_VALUE:
    case WANT_VALUE_OR_END:
        *next = WANT_COMMA_OR_END;
        return pass_scalar(p);
    default:
        return false;
    }
    p->at += c == ':';
    return c == ':';
}

static bool may_open(want next) { return next == WANT_VALUE || next == WANT_VALUE_OR_END; }
static bool may_close(want next) {
    return next == WANT_COMMA_OR_END || next == WANT_VALUE_OR_END || next == WANT_NAME_OR_END;
}

ew_err ew__json_locate(ew_str text, unsigned limit, size_t *ret_position) {
    place p = {(const unsigned char *)text.ptr, text.len, 0};
    bool objects[EW_JSON_DEPTH + 1] = {false};
    size_t depth = 0;
    want next = WANT_VALUE;
    ew_err err = EW_OK;
    for (skip_space(&p); err == EW_OK && (p.at < p.len || next != WANT_NOTHING); skip_space(&p)) {
        int c = peek(&p, 0);
        bool object = c == '{' || c == '}';
        if ((c == '{' || c == '[') && may_open(next)) {
            if (depth == limit) {
                err = EW_ELIMIT;
                break;
            }
            objects[++depth] = object;
            next = object ? WANT_NAME_OR_END : WANT_VALUE_OR_END;
            p.at++;
        } else if ((c == '}' || c == ']') && depth > 0 && may_close(next) && objects[depth] == object) {
            depth--;
            next = WANT_COMMA_OR_END;
            p.at++;
        } else if (!pass_token(&p, &next, objects[depth])) {
            err = EW_ESYNTAX;
            break;
        }
        if (depth == 0) {
            next = WANT_NOTHING;
        }
    }
    *ret_position = p.at;
    return err;
}
