/*
 * json/write.c: JSON text out: strings with their escapes, values without white space, values in ASCII.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/plain.h"
#include "json/sink.h"
#include "json/text.h"
#include <limits.h>

void ew__json_put(ew__json_sink *sink, const char *bytes, size_t n) {
    if (sink->buf != NULL) {
        ew__buf_add(sink->buf, bytes, n);
        return;
    }
    if (sink->len < sink->capacity && n > 0) {
        size_t room = sink->capacity - sink->len;
        memcpy(sink->memory + sink->len, bytes, n < room ? n : room);
    }
    sink->len += n;
}

static void put_u(ew__json_sink *sink, uint32_t unit) {
    static const char digits[] = "0123456789abcdef";
    char text[6] = {
        '\\', 'u', digits[unit >> 12 & 15], digits[unit >> 8 & 15], digits[unit >> 4 & 15], digits[unit & 15]};
    ew__json_put(sink, text, sizeof text);
}

/* A code point as \uXXXX, or as two of them. */
static void put_escaped(ew__json_sink *sink, uint32_t point) {
    if (point >= 0x10000) {
        put_u(sink, 0xd800 + ((point - 0x10000) >> 10));
        point = 0xdc00 + ((point - 0x10000) & 0x3ff);
    }
    put_u(sink, point);
}

/* A byte below 0x80 that cannot stand as it is. */
static void put_special(ew__json_sink *sink, char c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c != '\0' ? strchr(from, c) : NULL;
    if (at == NULL) {
        put_u(sink, (unsigned char)c);
        return;
    }
    ew__json_put(sink, (char[2]){'\\', to[at - from]}, 2);
}

void ew__json_put_str(ew__json_sink *sink, ew_str text, bool ascii) {
    const char *at = text.ptr, *end = ew__json_end(text);
    ew__json_put(sink, "\"", 1);
    while (at < end) {
        size_t plain = ew__json_plain_run(at, end, true);
        ew__json_put(sink, at, plain);
        at += plain;
        if (at == end) {
            break;
        }
        uint32_t point = 0;
        size_t n = ew__json_utf8(at, end, &point);
        if (n == 1 && (point != 0x7f || ascii)) {
            put_special(sink, *at);
        } else if (n == 0 || ascii) {
            put_escaped(sink, n == 0 ? 0xfffd : point);
        } else {
            ew__json_put(sink, at, n);
        }
        at += n == 0 ? 1 : n;
    }
    ew__json_put(sink, "\"", 1);
}

ew_err ew__json_write_str(ew__buf *out, ew_str text, bool ascii) {
    ew__json_sink sink = {.buf = out};
    ew__json_put_str(&sink, text, ascii);
    return out->err;
}

bool ew__json_is_plain(ew_str text) { return ew__json_plain_run(text.ptr, ew__json_end(text), true) == text.len; }

/* How many bytes from `at` on are neither white space nor a string's beginning. */
static size_t token_run(const char *at, const char *end) {
    const char *start = at;
    while (at < end && *at != '"' && !ew__json_is_space(*at)) {
        at++;
    }
    return (size_t)(at - start);
}

/* The next run of bytes without white space between tokens, from *at on; empty at the end. */
static ew_str next_run(const char **at, const char *end) {
    const char *start = ew__json_space(*at, end), *p = start;
    while (p < end && !ew__json_is_space(*p)) {
        p = *p == '"' ? ew__json_skip_string(p, end) : p + token_run(p, end);
    }
    *at = p;
    return ew__str(start, (size_t)(p - start));
}

ew_err ew__json_minify(ew__buf *out, ew_str json) {
    const char *at = json.ptr, *end = ew__json_end(json);
    for (ew_str run; (run = next_run(&at, end)).len > 0;) {
        ew__buf_add(out, run.ptr, run.len);
    }
    return out->err;
}

int ew_json_minify(ew_str json, char *buf, size_t capacity) {
    const char *at = json.ptr, *end = ew__json_end(json);
    size_t len = 0;
    for (ew_str run; (run = next_run(&at, end)).len > 0; len += run.len) {
        if (run.len > capacity - len || run.len > (size_t)INT_MAX - len) {
            return EW_ELIMIT;
        }
        memmove(buf + len, run.ptr, run.len); /* buf may be the text itself */
    }
    return (int)len;
}

/* Not 0: one of eight bytes is above 0x7e or below 0x20. */
static inline uint64_t odd_of_eight(const char *at) {
    uint64_t v = ew__json_load8(at);
    return (v | (v + EW__JSON_EACH) | (v - 0x20 * EW__JSON_EACH)) & EW__JSON_TOPS;
}

/* The same of sixteen. */
static inline uint64_t odd_of_sixteen(const char *at) {
#if defined(__SSE2__)
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)at); /* signed: from 0x80 on they are below 0 */
    __m128i odd = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)), _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f)));
    return (unsigned)_mm_movemask_epi8(odd);
#else
    return odd_of_eight(at) | odd_of_eight(at + 8);
#endif
}

bool ew__json_is_plain_line(ew_str json) {
    const char *at = json.ptr;
    if (json.len < 8 || json.len > 128) {
        return false;
    }
    if (json.len < 16) {
        return (odd_of_eight(at) | odd_of_eight(at + json.len - 8)) == 0;
    }
    const char *last = at + json.len - 16;
    uint64_t odd = odd_of_sixteen(last);
    for (; at < last; at += 16) {
        odd |= odd_of_sixteen(at);
    }
    return odd == 0;
}

bool ew__json_has_newline(ew_str json) {
    if (json.len == 0 || ew__json_is_plain_line(json)) {
        return false;
    }
    return memchr(json.ptr, '\n', json.len) != NULL || memchr(json.ptr, '\r', json.len) != NULL;
}

/* How many bytes from `at` on are below 0x7f. */
static size_t ascii_run(const char *at, const char *end) {
    const char *start = at;
    for (; end - at >= 8; at += 8) {
        uint64_t v;
        memcpy(&v, at, 8);
        if (((v | (v + 0x0101010101010101u)) & 0x8080808080808080u) != 0) {
            break;
        }
    }
    while (at < end && (unsigned char)*at < 0x7f) {
        at++;
    }
    return (size_t)(at - start);
}

ew_err ew__json_write_ascii(ew__buf *out, ew_str json) {
    ew__json_sink sink = {.buf = out};
    const char *at = json.ptr, *end = ew__json_end(json);
    while (at < end) {
        size_t plain = ascii_run(at, end);
        ew__json_put(&sink, at, plain);
        at += plain;
        if (at < end) {
            uint32_t point = 0xfffd;
            size_t n = ew__json_utf8(at, end, &point);
            put_escaped(&sink, point);
            at += n == 0 ? 1 : n;
        }
    }
    return out->err;
}

static ew_err rewrite_line(const ew_env *env, ew_str json, bool ascii, ew__buf *buf) {
    ew__buf line;
    ew__buf_init(&line, env, SIZE_MAX / 2);
    ew_err err = EW_OK;
    if (ew__json_has_newline(json)) {
        err = ew__json_minify(ascii ? &line : buf, json);
        json = ew__buf_view(&line);
    }
    if (err == EW_OK && ascii) {
        err = ew__json_write_ascii(buf, json);
    }
    ew__buf_done(&line);
    return err;
}

ew_err ew__json_line(const ew_env *env, ew_str json, bool ascii, ew__buf *buf, ew_str *ret) {
    ew__buf_init(buf, env, SIZE_MAX / 2);
    *ret = json;
    ascii = ascii && ascii_run(json.ptr, ew__json_end(json)) < json.len;
    if (EW__LIKELY(!ascii && !ew__json_has_newline(json))) {
        return EW_OK;
    }
    ew_err err = rewrite_line(env, json, ascii, buf);
    *ret = ew__buf_view(buf);
    return err;
}
