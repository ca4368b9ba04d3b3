/*
 * json/text.c: skipping, decoding and comparing pieces of JSON text. See text.h.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/text.h"
#include "json/plain.h"
#include "json/scan.h"

/* The next quote or backslash, or end. */
static const char *find_mark(const char *at, const char *end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    for (; end - at >= 16; at += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i hits = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash));
        unsigned mask = (unsigned)_mm_movemask_epi8(hits);
        if (mask != 0) {
            return at + ew__bits_first(mask);
        }
    }
#else
    for (; end - at >= 8; at += 8) {
        uint64_t v = ew__json_load8(at);
        if ((ew__json_zeros(v ^ EW__JSON_EACH * '"') | ew__json_zeros(v ^ EW__JSON_EACH * '\\')) != 0) {
            break;
        }
    }
#endif
    while (at < end && *at != '"' && *at != '\\') {
        at++;
    }
    return at;
}

const char *ew__json_skip_string(const char *at, const char *end) {
    at++;
    for (;;) {
        at = find_mark(at, end);
        if (at >= end) {
            return end;
        }
        if (*at == '"') {
            return at + 1;
        }
        if (end - at < 2) {
            return end;
        }
        at += 2;
    }
}

const char *ew__json_skip_value(const char *at, const char *end) {
    if (at >= end) {
        return end;
    }
    if (*at == '"') {
        return ew__json_skip_string(at, end);
    }
    if (*at == '{' || *at == '[') {
        return ew__json_skip_container(at, end);
    }
    while (at < end && *at != ',' && *at != '}' && *at != ']' && !ew__json_is_space(*at)) {
        at++;
    }
    return at;
}

size_t ew__json_plain_run(const char *at, const char *end, bool ascii) {
    return (size_t)(ew__json_plain_end(at, end, ascii) - at);
}

static bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

size_t ew__json_utf8(const char *at, const char *end, uint32_t *ret_point) {
    static const uint32_t lowest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)at;
    size_t room = (size_t)(end - at);
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 0;
    if (n == 0 || n > room) {
        return 0;
    }
    uint32_t point = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (!is_continuation(p[i])) {
            return 0;
        }
        point = point << 6 | (p[i] & 0x3fu);
    }
    if (point < lowest[n] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    *ret_point = point;
    return n;
}

size_t ew__json_utf8_put(uint32_t point, char out[4]) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, point >>= 6) {
        out[i] = (char)(0x80 | (point & 0x3f));
    }
    out[0] = (char)((0xf00u >> n & 0xff) | point);
    return n;
}

static uint32_t hex_value(char c) { return (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10) & 15; }

/* The four hex digits at `at`; 0 when the text ends first. */
static uint32_t hex4(const char *at, const char *end) {
    if (end - at < 4) {
        return 0;
    }
    return hex_value(at[0]) << 12 | hex_value(at[1]) << 8 | hex_value(at[2]) << 4 | hex_value(at[3]);
}

static uint32_t unicode_escape(const char **at, const char *end) {
    const char *p = *at;
    uint32_t first = hex4(p, end);
    p = end - p < 4 ? end : p + 4;
    if (first >= 0xd800 && first < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        uint32_t second = hex4(p + 2, end);
        if (second >= 0xdc00 && second < 0xe000) {
            *at = p + 6;
            return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        }
    }
    *at = p;
    return first;
}

uint32_t ew__json_char(const char **at, const char *end) {
    uint32_t point = 0;
    const char *p = *at;
    if (*p != '\\' || end - p < 2) {
        size_t n = ew__json_utf8(p, end, &point);
        *at = p + (n > 0 ? n : 1);
        return n > 0 ? point : 0xfffd;
    }
    *at = p + 2;
    switch (p[1]) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        return unicode_escape(at, end);
    default:
        return (unsigned char)p[1];
    }
}

bool ew__json_name_is(ew_str raw, ew_str name) {
    if (raw.len < name.len) {
        return false; /* an escape is longer than what it stands for */
    }
    if (raw.len == 0 || memchr(raw.ptr, '\\', raw.len) == NULL) {
        return ew__str_is(raw, name);
    }
    const char *at = raw.ptr, *end = raw.ptr + raw.len;
    size_t done = 0;
    while (at < end) {
        char utf8[4];
        size_t n = ew__json_utf8_put(ew__json_char(&at, end), utf8);
        if (n > name.len - done || memcmp(utf8, name.ptr + done, n) != 0) {
            return false;
        }
        done += n;
    }
    return done == name.len;
}
