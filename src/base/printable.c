/*
 * base/printable.c: see printable.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/printable.h"
#include <stdio.h>
#include <string.h>

#define ESCAPE_SIZE 8 /* of "\u202e" and its NUL */
#define NOT_UTF8 0xfffdu

/*
 * The code point at `at`, and its size in bytes. Bytes that are not UTF-8 (RFC 3629) are U+FFFD,
 * one at a time.
 */
static uint32_t decode(ew_str text, size_t at, size_t *ret_size) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* less is an overlong form */
    const unsigned char *p = (const unsigned char *)text.ptr + at;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    *ret_size = 1;
    if (n == 1) {
        return p[0];
    }
    if (n == 0 || p[0] > 0xf4 || n > text.len - at) {
        return NOT_UTF8;
    }
    uint32_t code = p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return NOT_UTF8;
        }
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < least[n] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) {
        return NOT_UTF8;
    }
    *ret_size = n;
    return code;
}

static bool is_shown(uint32_t code) {
    return code >= 0x20 && (code < 0x7f || code >= 0xa0) && (code < 0x202a || code > 0x202e) &&
           (code < 0x2066 || code > 0x2069);
}

size_t ew__printable_size(ew_str text, size_t at) {
    size_t n = 1;
    uint32_t code = decode(text, at, &n);
    bool broken = code == NOT_UTF8 && n == 1;
    return is_shown(code) && !broken ? n : 0;
}

/* Valid JSON holds raw control bytes between its values only, as white space. */
static size_t escape_json(ew_str text, size_t at, char out[ESCAPE_SIZE]) {
    size_t n = 1;
    uint32_t code = decode(text, at, &n);
    bool space = code == '\t' || code == '\n' || code == '\r';
    if (space) {
        memcpy(out, " ", 2);
    } else {
        (void)snprintf(out, ESCAPE_SIZE, "\\u%04x", (unsigned)code & 0xffffu);
    }
    return n;
}

/* Writes the escape of what is at `at`; returns how many bytes it stands for. */
static size_t escape(ew_str text, size_t at, ew__printable_form form, char out[ESCAPE_SIZE]) {
    if (form == EW__PRINTABLE_JSON) {
        return escape_json(text, at, out);
    }
    (void)snprintf(out, ESCAPE_SIZE, "\\x%02x", (unsigned)(unsigned char)text.ptr[at]);
    return 1;
}

size_t ew__printable(ew_str text, ew__printable_form form, char *out, size_t size) {
    size_t len = 0, written = 0;
    for (size_t at = 0; at < text.len;) {
        char escaped[ESCAPE_SIZE];
        const char *from = text.ptr + at;
        bool stays = form == EW__PRINTABLE_LINES && (*from == '\n' || *from == '\t');
        size_t n = stays ? 1 : ew__printable_size(text, at), taken = n;
        if (n == 0) {
            taken = escape(text, at, form, escaped);
            from = escaped;
            n = strlen(escaped);
        }
        if (written == len && len + n < size) {
            memcpy(out + len, from, n);
            written += n;
        }
        len += n;
        at += taken;
    }
    if (size > 0) {
        out[written] = '\0';
    }
    return len;
}
