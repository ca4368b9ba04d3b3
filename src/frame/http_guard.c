/*
 * frame/http_guard.c: refuses heads and chunk framing that llhttp would let pass or that two readers could understand in two
 * ways. Only bytes and numbers; the events are made in http1.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/http_guard.h"
#include "base/util.h"

enum { TOKEN = 1, VISIBLE = 2, VALUE = 4, HOST = 8, HEX = 16 };

/* The classes above of every byte; VALUE is what may stand in a field value (tab, space, visible, 0x80 and above). */
/* clang-format off */
static const uint8_t class_of[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    4, 7, 6, 7, 7, 7, 7, 7, 6, 6, 7, 7, 6, 15, 15, 6,
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 6, 6, 6, 6, 6, 6,
    6, 31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6, 6, 6, 7, 15,
    7, 31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6, 7, 6, 15, 0,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
};
/* clang-format on */

static inline bool is(char c, int class) { return (class_of[(uint8_t)c] & class) != 0; }

static bool all(const char *p, size_t n, int class) {
    for (size_t i = 0; i < n; i++) {
        if (!is(p[i], class)) {
            return false;
        }
    }
    return true;
}

/* Whether one of eight bytes is no VALUE; wrongly true for a tab. */
static bool suspect(const char *p) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t w;
    memcpy(&w, p, 8);
    uint64_t del = w ^ (ones * 0x7f);
    return (((w - ones * 0x20) & ~w) | ((del - ones) & ~del)) & (ones << 7);
}

/* all(p, n, VALUE), eight bytes at a time; the last eight may overlap the ones before. */
bool ew__http_guard_value_clean(const char *p, size_t n) {
    if (n < 8) {
        return all(p, n, VALUE);
    }
    for (size_t i = 0; i < n - 8; i += 8) {
        if (EW__UNLIKELY(suspect(p + i)) && !all(p + i, 8, VALUE)) {
            return false;
        }
    }
    return !suspect(p + n - 8) || all(p + n - 8, 8, VALUE);
}

/* Whether the text is `word` (lower case letters, digits, '-') in any case. No control byte may be left in the text. */
static bool is_word(ew_str text, const char *word, size_t n) {
    if (text.len != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if ((text.ptr[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return true;
}
#define IS_WORD(text, word) is_word((text), "" word, sizeof(word) - 1)

static int refuse(ew__http_guard *guard, int status, const char *why) {
    guard->why = why;
    return status;
}

/* ---- first lines ---- */

bool ew__http_guard_begins(const ew__http_guard *guard, char first) {
    return guard->request ? first >= 'A' && first <= 'Z' : first == 'H';
}

bool ew__http_guard_field_begins(char first) { return first == '\r' || is(first, TOKEN); }

/* "HTTP/1.0" or "HTTP/1.1": 0; another version: 505; no version: 400. */
static int check_version(ew__http_guard *guard, const char *p, size_t n) {
    if (n != 8 || memcmp(p, "HTTP/", 5) != 0 || p[5] < '0' || p[5] > '9' || p[6] != '.' || p[7] < '0' || p[7] > '9') {
        return refuse(guard, 400, "no HTTP version");
    }
    if (p[5] != '1' || p[7] > '1') {
        return refuse(guard, 505, "HTTP version not supported");
    }
    guard->minor = (uint8_t)(p[7] - '0');
    return 0;
}

static bool has_scheme(ew_str target, size_t *ret_len) {
    size_t n = 0;
    if (target.len >= 7 && IS_WORD(ew__str(target.ptr, 4), "http") && memcmp(target.ptr + 4, "://", 3) == 0) {
        n = 7;
    } else if (target.len >= 8 && IS_WORD(ew__str(target.ptr, 5), "https") && memcmp(target.ptr + 5, "://", 3) == 0) {
        n = 8;
    }
    *ret_len = n;
    return n != 0;
}

static int check_target(ew__http_guard *guard, ew_str method, ew_str target) {
    size_t scheme;
    if (memchr(target.ptr, '#', target.len) != NULL) {
        return refuse(guard, 400, "fragment in the request target");
    }
    if (ew__str_is(method, EW_STR("CONNECT"))) {
        return refuse(guard, 501, "CONNECT is not supported");
    }
    bool star = target.len == 1 && target.ptr[0] == '*' && ew__str_is(method, EW_STR("OPTIONS"));
    if (target.ptr[0] != '/' && !star && !has_scheme(target, &scheme)) {
        return refuse(guard, 400, "bad form of request target");
    }
    return 0;
}

static int check_request_line(ew__http_guard *guard, const char *line, size_t n, const ew__http1_limits *limits) {
    const char *end = line + n;
    size_t head = n <= EW__GUARD_METHOD_MAX ? n : EW__GUARD_METHOD_MAX + 1;
    const char *sp1 = memchr(line, ' ', head);
    if (sp1 == NULL || sp1 == line || !all(line, (size_t)(sp1 - line), TOKEN)) {
        return refuse(guard, 400, "bad method");
    }
    const char *at = sp1 + 1;
    const char *sp2 = memchr(at, ' ', (size_t)(end - at));
    if (sp2 == NULL) {
        return refuse(guard, 400, "no HTTP version");
    }
    ew_str method = ew__str(line, (size_t)(sp1 - line)), target = ew__str(at, (size_t)(sp2 - at));
    /*
     * Before any other status than 400: a lone CR must get the same answer whether it came in the middle of a piece or
     * at its end.
     */
    if (target.len == 0 || !all(target.ptr, target.len, VISIBLE)) {
        return refuse(guard, 400, "bad byte in the request target");
    }
    int status = check_version(guard, sp2 + 1, (size_t)(end - sp2 - 1));
    guard->http2 = status == 505 && ew__str_is(ew__str(line, n), EW_STR("PRI * HTTP/2.0"));
    if (status != 0) {
        return status;
    }
    if (target.len > limits->target_bytes) {
        return refuse(guard, 414, "request target too long");
    }
    return check_target(guard, method, target);
}

static int check_status_line(ew__http_guard *guard, const char *line, size_t n) {
    int status = check_version(guard, line, n < 8 ? n : 8);
    if (status != 0) {
        return status;
    }
    const char *p = line + 8;
    if (n < 12 || p[0] != ' ' || p[1] < '1' || p[1] > '9' || p[2] < '0' || p[2] > '9' || p[3] < '0' || p[3] > '9' ||
        (n > 12 && p[4] != ' ')) {
        return refuse(guard, 400, "bad status code");
    }
    if (!ew__http_guard_value_clean(line + 12, n - 12)) {
        return refuse(guard, 400, "bad byte in the reason phrase");
    }
    guard->status = (uint16_t)((p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0'));
    return 0;
}

int ew__http_guard_first_line(ew__http_guard *guard, const char *line, size_t n, const ew__http1_limits *limits) {
    return guard->request ? check_request_line(guard, line, n, limits) : check_status_line(guard, line, n);
}

/* ---- fields ---- */

/* host, host:port, [v6], [v6]:port: no user, path, list or space. Which hosts are ours is not asked here. */
static bool host_sane(ew_str value) {
    const char *p = value.ptr, *end = value.ptr + value.len;
    if (p < end && *p == '[') {
        const char *close = memchr(p, ']', value.len);
        if (close == NULL || close == p + 1) {
            return false;
        }
        for (p++; p < close; p++) {
            if (!is(*p, HEX) && *p != ':' && *p != '.') {
                return false;
            }
        }
        p++;
    } else {
        const char *start = p;
        while (p < end && is(*p, HOST)) {
            p++;
        }
        if (p == start) {
            return false;
        }
    }
    if (p == end) {
        return true;
    }
    uint64_t port;
    return *p == ':' && end - p <= 6 && ew__u64_parse(ew__str(p + 1, (size_t)(end - p - 1)), &port) && port <= 65535;
}

static int check_host(ew__http_guard *guard, ew_str value) {
    if (guard->host) {
        return refuse(guard, 400, "more than one Host");
    }
    guard->host = true;
    return !guard->request || host_sane(value) ? 0 : refuse(guard, 400, "bad Host");
}

static int check_length(ew__http_guard *guard, ew_str value) {
    if (guard->has_length) {
        return refuse(guard, 400, "more than one Content-Length");
    }
    if (guard->chunked) {
        return refuse(guard, 400, "Content-Length beside Transfer-Encoding");
    }
    guard->has_length = true;
    if (!ew__u64_parse(value, &guard->length) || guard->length > INT64_MAX) {
        return refuse(guard, 400, "bad Content-Length");
    }
    return 0;
}

static int check_encoding(ew__http_guard *guard, ew_str value) {
    if (guard->chunked) {
        return refuse(guard, 400, "more than one Transfer-Encoding");
    }
    if (guard->has_length) {
        return refuse(guard, 400, "Transfer-Encoding beside Content-Length");
    }
    if (guard->minor == 0) {
        return refuse(guard, 400, "Transfer-Encoding in HTTP/1.0");
    }
    guard->chunked = true;
    return IS_WORD(value, "chunked") ? 0 : refuse(guard, 501, "only the transfer coding chunked is supported");
}

/* llhttp 8 overlooks an option with a tab behind it, so a "close" is looked for here. */
static void note_options(ew__http_guard *guard, ew_str value) {
    while (value.len > 0) {
        const char *comma = memchr(value.ptr, ',', value.len);
        size_t n = comma != NULL ? (size_t)(comma - value.ptr) : value.len;
        ew_str option = ew__str_trim(ew__str(value.ptr, n));
        guard->close = guard->close || IS_WORD(option, "close");
        guard->upgrade_option = guard->upgrade_option || IS_WORD(option, "upgrade");
        n += comma != NULL ? 1 : 0;
        value = ew__str(value.ptr + n, value.len - n);
    }
}

static int check_known(ew__http_guard *guard, ew_str name, ew_str value) {
    switch (name.len) {
    case 4:
        return IS_WORD(name, "host") ? check_host(guard, value) : 0;
    case 6:
        if (IS_WORD(name, "expect")) {
            guard->expect_continue = guard->minor > 0 && IS_WORD(value, "100-continue");
        }
        return 0;
    case 7:
        guard->upgrade_field = guard->upgrade_field || IS_WORD(name, "upgrade");
        return 0;
    case 10:
        if (IS_WORD(name, "connection")) {
            note_options(guard, value);
        }
        return 0;
    case 14:
        return IS_WORD(name, "content-length") ? check_length(guard, value) : 0;
    case 17:
        return IS_WORD(name, "transfer-encoding") ? check_encoding(guard, value) : 0;
    default:
        return 0;
    }
}

/* The lengths of the names that check_known knows, as bits (modulo 32: it looks closer itself). */
#define KNOWN_LENGTHS (1u << 4 | 1u << 6 | 1u << 7 | 1u << 10 | 1u << 14 | 1u << 17)

int ew__http_guard_field_line(ew__http_guard *guard, const char *line, size_t n, const ew__http1_limits *limits) {
    size_t name = 0;
    while (name < n && is(line[name], TOKEN)) {
        name++;
    }
    /* A fold, a space before the colon, an empty name and a line without a colon all end here. */
    if (name == 0 || name == n || line[name] != ':') {
        return refuse(guard, 400, "bad header field name");
    }
    if (!ew__http_guard_value_clean(line + name + 1, n - name - 1)) {
        return refuse(guard, 400, "bad byte in a header field");
    }
    if (guard->n_fields >= limits->head_fields || guard->n_fields >= EW__HTTP_FIELDS_MAX) {
        return refuse(guard, 431, "too many header fields");
    }
    guard->n_fields++;
    if ((KNOWN_LENGTHS >> (name & 31) & 1) == 0) {
        return 0;
    }
    return check_known(guard, ew__str(line, name), ew__str_trim(ew__str(line + name + 1, n - name - 1)));
}

/* The names of check_known, and one more that llhttp takes for Connection. */
bool ew__http_guard_reads(ew_str name) {
    return IS_WORD(name, "host") || IS_WORD(name, "expect") || IS_WORD(name, "upgrade") ||
           IS_WORD(name, "connection") || IS_WORD(name, "content-length") || IS_WORD(name, "transfer-encoding") ||
           IS_WORD(name, "proxy-connection");
}

int ew__http_guard_head_end(ew__http_guard *guard) {
    if (guard->request) {
        return guard->host || guard->minor == 0 ? 0 : refuse(guard, 400, "no Host");
    }
    if (guard->status == 101) {
        return refuse(guard, 400, "the peer switched protocols unasked");
    }
    if (guard->status < 200 && (guard->chunked || guard->length > 0)) {
        return refuse(guard, 400, "an interim answer with a body");
    }
    return 0;
}

bool ew__http_guard_authority(ew_str target, ew_str host) {
    size_t scheme;
    if (!has_scheme(target, &scheme)) {
        return true;
    }
    size_t n = scheme;
    while (n < target.len && target.ptr[n] != '/' && target.ptr[n] != '?') {
        n++;
    }
    ew_str authority = ew__str(target.ptr + scheme, n - scheme);
    return host.ptr != NULL ? ew__str_is_nocase(authority, host) : host_sane(authority);
}

/* ---- chunked bodies ---- */

enum {
    SIZE_FIRST, /* the first digit of a chunk size */
    SIZE,       /* further digits */
    NAME_FIRST, /* after ';': the name of an extension */
    NAME,
    ARG_FIRST, /* after '=' */
    ARG,
    QUOTED,
    QUOTED_PAIR, /* after a backslash */
    QUOTED_END,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST, /* at the start of a trailer line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    OVER,
    BROKEN
};

void ew__http_guard_chunks_begin(ew__http_guard *guard) {
    guard->state = SIZE_FIRST;
    guard->length = 0;
    guard->used = 0;
    guard->digits = 0;
    guard->n_fields = 0;
}

static bool is_extension(int state) { return state >= NAME_FIRST && state < SIZE_LF; }

bool ew__http_guard_in_extension(const ew__http_guard *guard) { return is_extension(guard->state); }

bool ew__http_guard_in_trailer(const ew__http_guard *guard) { return guard->state >= TRAILER_FIRST; }

bool ew__http_guard_chunks_over(const ew__http_guard *guard) { return guard->state == OVER; }

static uint64_t digit(char c) { return c <= '9' ? (uint64_t)(c - '0') : (uint64_t)((c | 0x20) - 'a' + 10); }

static int size_step(ew__http_guard *guard, char c) {
    if (is(c, HEX)) {
        guard->length = guard->length << 4 | digit(c);
        return ++guard->digits <= 16 ? SIZE : BROKEN;
    }
    if (guard->state == SIZE_FIRST || guard->length > INT64_MAX) {
        return BROKEN;
    }
    return c == ';' ? NAME_FIRST : c == '\r' ? SIZE_LF : BROKEN;
}

static int extension_end(char c) { return c == ';' ? NAME_FIRST : c == '\r' ? SIZE_LF : BROKEN; }

static int extension_step(ew__http_guard *guard, char c) {
    switch (guard->state) {
    case NAME_FIRST:
        return is(c, TOKEN) ? NAME : BROKEN;
    case NAME:
        return is(c, TOKEN) ? NAME : c == '=' ? ARG_FIRST : extension_end(c);
    case ARG_FIRST:
        return c == '"' ? QUOTED : is(c, TOKEN) ? ARG : BROKEN;
    case ARG:
        return is(c, TOKEN) ? ARG : extension_end(c);
    case QUOTED:
        return c == '"' ? QUOTED_END : c == '\\' ? QUOTED_PAIR : is(c, VALUE) ? QUOTED : BROKEN;
    case QUOTED_PAIR:
        return is(c, VALUE) ? QUOTED : BROKEN;
    default:
        return extension_end(c);
    }
}

static int chunk_start(ew__http_guard *guard, char c) {
    if (c != '\n') {
        return BROKEN;
    }
    guard->digits = 0;
    if (guard->length == 0) {
        guard->used = 0; /* from here it counts trailers */
        return TRAILER_FIRST;
    }
    return DATA;
}

static int trailer_step(ew__http_guard *guard, char c) {
    switch (guard->state) {
    case TRAILER_FIRST:
        return c == '\r' ? LAST_LF : is(c, TOKEN) ? TRAILER_NAME : BROKEN;
    case TRAILER_NAME:
        return is(c, TOKEN) ? TRAILER_NAME : c == ':' ? TRAILER_VALUE : BROKEN;
    case TRAILER_VALUE:
        return is(c, VALUE) ? TRAILER_VALUE : c == '\r' ? TRAILER_LF : BROKEN;
    case TRAILER_LF:
        guard->n_fields++;
        return c == '\n' ? TRAILER_FIRST : BROKEN;
    default:
        return c == '\n' ? OVER : BROKEN;
    }
}

static int framing_step(ew__http_guard *guard, char c) {
    switch (guard->state) {
    case SIZE_FIRST:
    case SIZE:
        return size_step(guard, c);
    case SIZE_LF:
        return chunk_start(guard, c);
    case DATA_CR:
        return c == '\r' ? DATA_LF : BROKEN;
    case DATA_LF:
        return c == '\n' ? SIZE_FIRST : BROKEN;
    default:
        return is_extension(guard->state) ? extension_step(guard, c) : trailer_step(guard, c);
    }
}

/* Counts what a peer could send without end; `state` is the one in which the byte was met. */
static int count_framing(ew__http_guard *guard, int state, const ew__http1_limits *limits) {
    if (is_extension(state) && ++guard->used > limits->chunk_extension_bytes) {
        return refuse(guard, 400, "chunk extensions too long");
    }
    if (state >= TRAILER_FIRST && (++guard->used > limits->head_bytes || guard->n_fields > limits->head_fields)) {
        return refuse(guard, 431, "trailer too long");
    }
    return 0;
}

bool ew__http_guard_behind_data(const ew__http_guard *guard) { return guard->state == DATA_CR; }

size_t ew__http_guard_whole_chunk(const ew__http_guard *guard, const char *bytes, size_t n, ew_str *ret_data) {
    size_t i = 0, size = 0;
    if (guard->state != SIZE_FIRST) {
        return 0;
    }
    while (i < 4 && i < n && is(bytes[i], HEX)) {
        size = size << 4 | digit(bytes[i++]);
    }
    size_t end = i + 2 + size; /* of the data */
    if (size == 0 || n < end + 2 || memcmp(bytes + i, "\r\n", 2) != 0 || memcmp(bytes + end, "\r\n", 2) != 0) {
        return 0;
    }
    *ret_data = ew__str(bytes + i + 2, size);
    return end + 2;
}

int ew__http_guard_chunks(ew__http_guard *guard, const char *bytes, size_t n, const ew__http1_limits *limits,
                          size_t *ret_used) {
    size_t i = 0;
    while (i < n && guard->state != OVER) {
        if (guard->state == DATA) {
            size_t take = guard->length < n - i ? (size_t)guard->length : n - i;
            guard->length -= take;
            guard->state = guard->length == 0 ? DATA_CR : DATA;
            i += take;
            break;
        }
        int state = guard->state;
        guard->state = (uint8_t)framing_step(guard, bytes[i++]);
        if (guard->state == BROKEN) {
            return refuse(guard, 400, "bad chunk");
        }
        int status = count_framing(guard, state, limits);
        if (status != 0) {
            return status;
        }
        bool last_chunk = state == SIZE_LF && guard->state == TRAILER_FIRST;
        if (last_chunk || is_extension(state) != is_extension(guard->state)) {
            break;
        }
    }
    *ret_used = i;
    return 0;
}
