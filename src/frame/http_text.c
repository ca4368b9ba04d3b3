/*
 * frame/http_text.c: small readers over parts of a head: field look-up, request targets, queries, reason phrases.
 * Nothing here keeps state or allocates.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "frame/http1.h"

ew_str ew__http_head_field(const ew__http_head *head, ew_str name, uint32_t *ret_count) {
    ew_str found = {NULL, 0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < head->n_fields; i++) {
        const ew__http_field *field = &head->fields[i];
        if (field->name.len == name.len && ew__str_is_nocase(field->name, name) && count++ == 0) {
            found = field->value;
        }
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return found;
}

ew_str ew__http_media_type(ew_str value) {
    const char *semicolon = value.len ? memchr(value.ptr, ';', value.len) : NULL;
    return ew__str_trim(ew__str(value.ptr, semicolon ? (size_t)(semicolon - value.ptr) : value.len));
}

const char *ew__http_reason(int status) {
    static const struct {
        int status;
        const char *reason;
    } table[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    if (status == 200) {
        return "OK"; /* nearly every answer */
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status == status) {
            return table[i].reason;
        }
    }
    return "Unknown";
}

bool ew__http_value_ok(ew_str value) {
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* ---- targets ---- */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The length of the UTF-8 sequence at p (shortest form, no surrogate, at most U+10FFFF), or 0. */
static size_t utf8_step(const unsigned char *p, size_t n) {
    unsigned char c = p[0];
    if (c < 0x80) {
        return 1;
    }
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || n < len) {
        return 0;
    }
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return len;
}

static bool utf8_ok(const char *text, size_t n) {
    const unsigned char *p = (const unsigned char *)text;
    while (n > 0) {
        size_t step = utf8_step(p, n);
        if (step == 0) {
            return false;
        }
        p += step;
        n -= step;
    }
    return true;
}

/* Whether one of the segments is "." or "..". */
static bool has_dot_segment(ew_str path) {
    size_t start = 0;
    for (size_t i = 0; i <= path.len; i++) {
        if (i < path.len && path.ptr[i] != '/') {
            continue;
        }
        size_t len = i - start;
        if ((len == 1 || len == 2) && path.ptr[start] == '.' && path.ptr[i - 1] == '.') {
            return true;
        }
        start = i + 1;
    }
    return false;
}

/* Escapes to bytes; false at a bad escape or a control byte. */
static bool decode_path(ew_str raw, char *out, size_t *ret_len) {
    size_t n = 0;
    for (size_t i = 0; i < raw.len; i++) {
        int c = (unsigned char)raw.ptr[i];
        if (c == '%') {
            int high = raw.len - i > 2 ? hex_digit(raw.ptr[i + 1]) : -1;
            int low = raw.len - i > 2 ? hex_digit(raw.ptr[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = high * 16 + low;
            i += 2;
        }
        if (c < 0x20 || c == 0x7f) {
            return false;
        }
        out[n++] = (char)c;
    }
    *ret_len = n;
    return true;
}

/* Cuts scheme and authority off an absolute target. */
static ew_str strip_origin(ew_str target) {
    size_t n = 0;
    if (target.len >= 7 && ew__str_is_nocase(ew__str(target.ptr, 7), EW_STR("http://"))) {
        n = 7;
    } else if (target.len >= 8 && ew__str_is_nocase(ew__str(target.ptr, 8), EW_STR("https://"))) {
        n = 8;
    } else {
        return target;
    }
    while (n < target.len && target.ptr[n] != '/' && target.ptr[n] != '?' && target.ptr[n] != '#') {
        n++;
    }
    return ew__str(target.ptr + n, target.len - n);
}

/* Whether nothing in it has a meaning of its own: only letters, digits, '/', '-' and '_'. */
static bool is_plain_path(ew_str target) {
    if (target.len == 0 || target.ptr[0] != '/') {
        return false;
    }
    for (size_t i = 1; i < target.len; i++) {
        char c = target.ptr[i], letter = (char)(c | 0x20);
        bool plain = (letter >= 'a' && letter <= 'z') || (c >= '/' && c <= '9') || c == '-' || c == '_';
        if (!plain) {
            return false;
        }
    }
    return true;
}

ew_err ew__http_target(ew_str target, char *out, ew_str *ret_path, ew_str *ret_query) {
    if (EW__LIKELY(is_plain_path(target))) {
        *ret_path = target;
        *ret_query = ew__str(NULL, 0);
        return EW_OK;
    }
    ew_str rest = strip_origin(target);
    bool absolute = rest.len != target.len;
    ew_str query = {NULL, 0};
    if (rest.len > 0 && memchr(rest.ptr, '#', rest.len) != NULL) {
        return EW_ESYNTAX;
    }
    const char *mark = rest.len > 0 ? memchr(rest.ptr, '?', rest.len) : NULL;
    if (mark != NULL) {
        query = ew__str(mark + 1, rest.len - (size_t)(mark - rest.ptr) - 1);
        rest.len = (size_t)(mark - rest.ptr);
    }
    size_t n = 1;
    if (rest.len == 0 && absolute) {
        out[0] = '/'; /* "http://host" and "http://host?query" name the root */
    } else if (rest.len == 0 || rest.ptr[0] != '/' || !decode_path(rest, out, &n)) {
        return EW_ESYNTAX;
    }
    if (!utf8_ok(out, n) || has_dot_segment(ew__str(out, n)) || !ew__http_value_ok(query)) {
        return EW_ESYNTAX;
    }
    *ret_path = ew__str(out, n);
    *ret_query = query;
    return EW_OK;
}

ew_str ew__http_query(ew_str query, ew_str name, uint32_t *ret_count) {
    ew_str found = {NULL, 0};
    uint32_t count = 0;
    while (query.len > 0) {
        const char *amp = memchr(query.ptr, '&', query.len);
        ew_str pair = ew__str(query.ptr, amp != NULL ? (size_t)(amp - query.ptr) : query.len);
        const char *eq = pair.len > 0 ? memchr(pair.ptr, '=', pair.len) : NULL;
        size_t n = eq != NULL ? (size_t)(eq - pair.ptr) : pair.len;
        if (pair.len > 0 && ew__str_is(ew__str(pair.ptr, n), name) && count++ == 0) {
            size_t skip = n + (eq != NULL ? 1 : 0);
            found = ew__str(pair.ptr + skip, pair.len - skip);
        }
        size_t used = pair.len + (amp != NULL ? 1 : 0);
        query = ew__str(query.ptr + used, query.len - used);
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return found;
}
