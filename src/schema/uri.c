/*
 * schema/uri.c: see uri.h.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/uri.h"
#include "base/util.h"

typedef struct parts {
    ew_str scheme;    /* with its colon */
    ew_str authority; /* with its slashes */
    ew_str path;
    ew_str query; /* with its question mark */
} parts;

static ew_str take(ew_str *text, size_t n) {
    ew_str taken = ew__str(text->ptr, n);
    *text = n == text->len ? ew__str("", 0) : ew__str(text->ptr + n, text->len - n);
    return taken;
}

static size_t find_any(ew_str text, const char *marks) {
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(marks, text.ptr[i]) != NULL) {
            return i;
        }
    }
    return text.len;
}

static parts split(ew_str text) {
    parts p = {.scheme = {"", 0}, .authority = {"", 0}};
    size_t n = find_any(text, ":/?");
    if (n > 0 && n < text.len && text.ptr[n] == ':') {
        p.scheme = take(&text, n + 1);
    }
    if (ew__str_has_prefix(text, EW_STR("//"))) {
        ew_str rest = ew__str(text.ptr + 2, text.len - 2);
        p.authority = take(&text, 2 + find_any(rest, "/?"));
    }
    p.path = take(&text, find_any(text, "?"));
    p.query = text;
    return p;
}

bool ew__uri_split(ew_str text, ew_str *ret_uri, ew_str *ret_fragment) {
    const char *mark = text.len > 0 ? memchr(text.ptr, '#', text.len) : NULL;
    size_t n = mark != NULL ? (size_t)(mark - text.ptr) : text.len;
    *ret_uri = ew__str(text.ptr, n);
    *ret_fragment = mark != NULL ? ew__str(mark + 1, text.len - n - 1) : ew__str("", 0);
    return mark != NULL;
}

/* Takes the last segment off what stands in `out` behind `start`, with the slash before it. */
static void drop_segment(ew__buf *out, size_t start) {
    while (out->len > start && out->ptr[out->len - 1] != '/') {
        out->len--;
    }
    out->len -= out->len > start;
}

/* Appends a path without its "." and ".." segments. */
static void add_path(ew__buf *out, ew_str path) {
    size_t start = out->len;
    while (path.len > 0 && out->err == EW_OK) {
        if (ew__str_has_prefix(path, EW_STR("../"))) {
            (void)take(&path, 3);
        } else if (ew__str_has_prefix(path, EW_STR("./"))) {
            (void)take(&path, 2);
        } else if (ew__str_has_prefix(path, EW_STR("/./")) || ew__str_is(path, EW_STR("/."))) {
            (void)take(&path, path.len > 2 ? 2 : 1);
            path = path.len == 1 ? EW_STR("/") : path;
        } else if (ew__str_has_prefix(path, EW_STR("/../")) || ew__str_is(path, EW_STR("/.."))) {
            (void)take(&path, path.len > 3 ? 3 : 2);
            path = path.len == 1 ? EW_STR("/") : path;
            drop_segment(out, start);
        } else if (ew__str_is(path, EW_STR(".")) || ew__str_is(path, EW_STR(".."))) {
            (void)take(&path, path.len);
        } else {
            ew_str rest = ew__str(path.ptr + 1, path.len - 1);
            (void)ew__buf_str(out, take(&path, 1 + find_any(rest, "/")));
        }
    }
}

/* The base's path up to its last slash, then the reference's. */
static void add_merged(ew__buf *out, const parts *base, ew_str path) {
    ew__buf whole;
    size_t keep = base->path.len;
    ew__buf_init(&whole, out->env, out->max);
    while (keep > 0 && base->path.ptr[keep - 1] != '/') {
        keep--;
    }
    if (base->authority.len > 0 && base->path.len == 0) {
        (void)ew__buf_char(&whole, '/');
    }
    (void)ew__buf_str(&whole, ew__str(base->path.ptr, keep));
    (void)ew__buf_str(&whole, path);
    if (whole.err == EW_OK) {
        add_path(out, ew__buf_view(&whole));
    } else {
        out->err = whole.err;
    }
    ew__buf_done(&whole);
}

ew_err ew__uri_resolve(ew__buf *out, ew_str base_text, ew_str ref_text) {
    parts base = split(base_text), ref = split(ref_text);
    if (ref.scheme.len > 0) { /* whole: its path stays as it is, for a URN's dots mean nothing */
        return ew__buf_str(out, ref_text);
    }
    (void)ew__buf_str(out, base.scheme);
    (void)ew__buf_str(out, ref.authority.len > 0 ? ref.authority : base.authority);
    if (ref.authority.len > 0 || (ref.path.len > 0 && ref.path.ptr[0] == '/')) {
        add_path(out, ref.path);
    } else if (ref.path.len > 0) {
        add_merged(out, &base, ref.path);
    } else {
        (void)ew__buf_str(out, base.path);
        ref.query = ref.query.len > 0 ? ref.query : base.query;
    }
    return ew__buf_str(out, ref.query);
}

ew_err ew__uri_decode(ew__buf *out, ew_str text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '%') {
            (void)ew__buf_char(out, text.ptr[i]);
            continue;
        }
        unsigned value = 0;
        for (size_t k = 1; k <= 2; k++) {
            char c = i + k < text.len ? text.ptr[i + k] : ' ';
            c = c >= 'A' && c <= 'F' ? (char)(c + 32) : c;
            const char *digit = c != '\0' ? strchr(digits, c) : NULL;
            if (digit == NULL) {
                return EW_EINVAL;
            }
            value = value * 16 + (unsigned)(digit - digits);
        }
        (void)ew__buf_char(out, (char)value);
        i += 2;
    }
    return out->err;
}
