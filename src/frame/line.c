/*
 * frame/line.c: where messages of JSON-RPC begin and end. The common case, one value on a line that is all there, costs
 * one search for its newline. Everything else (a value that is cut by a read or goes over lines, several on a line)
 * is followed byte by byte with the structure of JSON, from where the last read left off. What stands inside strings
 * and scalars is left to the one who parses the value.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/line.h"

#include "base/util.h"

enum state {
    FRESH, /* between messages */
    SKIP,  /* up to the next newline */
    /* inside a value: what may come next */
    VALUE,
    ELEMENT_OR_END, /* behind `[` */
    KEY,
    KEY_OR_END, /* behind `{` */
    COLON,
    COMMA_OR_END,
    STRING,
    ESCAPE, /* behind the backslash in a string */
    SCALAR,
    /* headers */
    HEAD,
    BODY,
    BODY_SKIP,
    /* for good */
    NO_HEADER,
    NO_START
};

enum flag {
    STRICT = 1,      /* how the stream begins is not told yet, and has to be right */
    MID_LINE = 2,    /* a closer look was needed on this line: do not search for its end again for each of its values */
    CLOSER = 4,      /* the value at `left` needs a closer look */
    IN_KEY = 8,      /* the string is a name */
    HAS_LENGTH = 16, /* `left` holds the Content-Length of this header block */
    CUT = 32         /* the value was followed only because the end of its line had not come yet */
};

#define LONG ((size_t)32 * 1024) /* lines from here on are not followed before they may be whole */

typedef enum verdict { GO_ON, WHOLE, WRONG } verdict;

static void set_flag(ew__line *line, enum flag flag) { line->flags = (uint8_t)(line->flags | flag); }
static void clear_flag(ew__line *line, enum flag flag) { line->flags = (uint8_t)(line->flags & ~(unsigned)flag); }
static bool has_flag(const ew__line *line, enum flag flag) { return (line->flags & flag) != 0; }

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_in_scalar(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '+' || c == '.'; }
static bool begins_scalar(char c) { return is_digit(c) || c == '-' || c == 't' || c == 'f' || c == 'n'; }

/* ---- the structure of a value ---- */

/* Whether the innermost level is an object; there must be one. */
static bool in_object(const ew__line *line) {
    unsigned top = line->depth - 1u;
    return (line->nesting[top / 8] >> top % 8 & 1) != 0;
}

static verdict open_level(ew__line *line, bool object) {
    if (line->depth == EW_JSON_DEPTH) {
        line->deeper = 1;
        return GO_ON;
    }
    unsigned bit = 1u << line->depth % 8;
    uint8_t *bits = &line->nesting[line->depth / 8];
    *bits = (uint8_t)(object ? *bits | bit : *bits & ~bit);
    line->depth++;
    line->state = object ? KEY_OR_END : ELEMENT_OR_END;
    return GO_ON;
}

static verdict end_value(ew__line *line) {
    line->state = COMMA_OR_END;
    return line->depth == 0 ? WHOLE : GO_ON;
}

static verdict close_level(ew__line *line, bool object) {
    bool empty = line->state == (object ? KEY_OR_END : ELEMENT_OR_END);
    if (!empty && (line->state != COMMA_OR_END || in_object(line) != object)) {
        return WRONG;
    }
    line->depth--;
    return end_value(line);
}

static verdict take_quote(ew__line *line) {
    bool key = line->state == KEY || line->state == KEY_OR_END;
    if (!key && line->state != VALUE && line->state != ELEMENT_OR_END) {
        return WRONG;
    }
    clear_flag(line, IN_KEY);
    if (key) {
        set_flag(line, IN_KEY);
    }
    line->state = STRING;
    return GO_ON;
}

/* The same beyond EW_JSON_DEPTH levels: the value is only delimited; the parser refuses it. */
static verdict take_deep(ew__line *line, char c) {
    if (c == '{' || c == '[') {
        line->deeper++;
    } else if (c == '}' || c == ']') {
        line->deeper--;
        line->state = COMMA_OR_END;
    } else if (c == '"') {
        clear_flag(line, IN_KEY);
        line->state = STRING;
    }
    return GO_ON;
}

/* One byte outside strings and scalars. */
static verdict take_token(ew__line *line, char c) {
    bool value_fits = line->state == VALUE || line->state == ELEMENT_OR_END;
    if (line->deeper > 0) {
        return take_deep(line, c);
    }
    switch (c) {
    case ' ':
    case '\n':
    case '\r':
    case '\t':
        return GO_ON;
    case '{':
    case '[':
        return value_fits ? open_level(line, c == '{') : WRONG;
    case '}':
    case ']':
        return close_level(line, c == '}');
    case '"':
        return take_quote(line);
    case ':':
        if (line->state != COLON) {
            return WRONG;
        }
        line->state = VALUE;
        return GO_ON;
    case ',':
        if (line->state != COMMA_OR_END) {
            return WRONG;
        }
        line->state = in_object(line) ? KEY : VALUE;
        return GO_ON;
    default:
        if (!value_fits || !begins_scalar(c)) {
            return WRONG;
        }
        line->state = SCALAR;
        return GO_ON;
    }
}

/* The first byte from i on that is a quote, a backslash or a control byte, or n. Eight at once: strings can be long. */
static size_t find_special(const char *p, size_t i, size_t n) {
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        uint64_t quote = w ^ ones * '"', backslash = w ^ ones * '\\';
        uint64_t found = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | ((w - ones * 0x20) & ~w);
        if ((found & highs) != 0) {
            break;
        }
    }
    while (i < n && p[i] != '"' && p[i] != '\\' && (unsigned char)p[i] >= 0x20) {
        i++;
    }
    return i;
}

/* Inside a string, from *i on. */
static verdict take_string(ew__line *line, const char *p, size_t *i, size_t n) {
    if (line->state == ESCAPE) {
        if ((unsigned char)p[*i] < 0x20) {
            return WRONG;
        }
        ++*i;
        line->state = STRING;
    }
    *i = find_special(p, *i, n);
    if (*i == n) {
        return GO_ON;
    }
    if (p[*i] == '\\') {
        line->state = ESCAPE;
    } else if (p[*i] != '"') {
        return WRONG;
    } else if (has_flag(line, IN_KEY)) {
        line->state = COLON;
    } else {
        ++*i;
        return end_value(line);
    }
    ++*i;
    return GO_ON;
}

/* Follows a value from *i on. WHOLE: it ends before *i; WRONG: the byte at *i cannot be; GO_ON: *i is n. */
static verdict follow(ew__line *line, const char *p, size_t *i, size_t n) {
    verdict out = GO_ON;
    while (*i < n && out == GO_ON) {
        if (line->state == STRING || line->state == ESCAPE) {
            out = take_string(line, p, i, n);
        } else if (line->state == SCALAR) {
            while (*i < n && is_in_scalar(p[*i])) {
                ++*i;
            }
            out = *i < n ? end_value(line) : GO_ON;
        } else {
            out = take_token(line, p[*i]);
            *i += out != WRONG;
        }
    }
    return out;
}

/* ---- lines ---- */

/* A message or a header block ended, one way or another: `state` comes next. */
static ew__line_event end_with(ew__line *line, enum state state, ew__line_event event) {
    line->state = (uint8_t)state;
    line->scanned = 0;
    return event;
}

/* Reads on in the value that begins at `at`. */
static ew__line_event read_value(ew__line *line, ew_str bytes, size_t at, ew_str *ret_value, size_t *ret_used) {
    const char *p = bytes.ptr + at;
    size_t n = bytes.len - at, i = line->scanned;
    bool over = n > line->max;
    verdict out = follow(line, p, &i, over ? line->max : n);
    if (out == GO_ON && over && line->state == SCALAR && line->depth == 0 && !is_in_scalar(p[i])) {
        out = WHOLE; /* of the greatest length: only the byte behind it shows that it ended */
    }
    *ret_used = at + i;
    switch (out) {
    case WHOLE:
        *ret_value = ew__str(p, i);
        return end_with(line, FRESH, EW__LINE_VALUE);
    case WRONG:
        return end_with(line, SKIP, EW__LINE_BAD);
    case GO_ON:
        break;
    }
    if (over) {
        return end_with(line, SKIP, EW__LINE_TOO_LONG);
    }
    *ret_used = at;
    line->scanned = i;
    return EW__LINE_MORE;
}

static ew__line_event begin_value(ew__line *line, ew_str bytes, size_t at, ew_str *ret_value, size_t *ret_used) {
    set_flag(line, MID_LINE);
    clear_flag(line, CUT);
    line->state = VALUE;
    line->depth = 0;
    line->deeper = 0;
    return read_value(line, bytes, at, ret_value, ret_used);
}

/*
 * Whether the line that begins with a bracket at `at` ends with its partner. Then it is nearly always one value, and
 * who parses it will see. Over the limit it may still be several that are not. There is no newline in the first `from`
 * bytes of it.
 */
static bool is_likely(const ew__line *line, ew_str bytes, size_t at, size_t from, ew_str *ret_value, size_t *ret_used) {
    const char *p = bytes.ptr + at;
    const char *newline = memchr(p + from, '\n', bytes.len - at - from);
    if (newline == NULL) {
        return false;
    }
    const char *end = newline;
    while (is_space(end[-1])) { /* the bracket at p ends this */
        end--;
    }
    size_t len = (size_t)(end - p);
    if (end[-1] != (*p == '{' ? '}' : ']') || len > line->max) {
        return false;
    }
    *ret_value = ew__str(p, len);
    *ret_used = (size_t)(newline + 1 - bytes.ptr);
    return true;
}

static verdict match_name(ew_str text, ew_str name) {
    size_t n = text.len < name.len ? text.len : name.len;
    if (!ew__str_is_nocase(ew__str(text.ptr, n), ew__str(name.ptr, n))) {
        return WRONG;
    }
    return n == name.len ? WHOLE : GO_ON;
}

/* Whether the text begins with a header of this framing; GO_ON: more of it will tell. */
static verdict match_header(ew_str text) {
    verdict length = match_name(text, EW_STR("content-length:")), type = match_name(text, EW_STR("content-type:"));
    return length == WRONG ? type : length;
}

int ew__line_begins(ew_str bytes) {
    size_t at = 0;
    while (at < bytes.len && is_space(bytes.ptr[at])) {
        at++;
    }
    if (at == bytes.len) {
        return 0;
    }
    if (bytes.ptr[at] == '{' || bytes.ptr[at] == '[') {
        return 1;
    }
    verdict header = match_header(ew__str(bytes.ptr + at, bytes.len - at));
    return header == WHOLE ? 1 : header == GO_ON ? 0 : -1;
}

static ew__line_event read_headers(ew__line *line, ew_str bytes, size_t at, ew_str *ret_value, size_t *ret_used);

/* The text at `at` begins neither an object nor an array. */
static ew__line_event begin_other(ew__line *line, ew_str bytes, size_t at, ew_str *ret_value, size_t *ret_used) {
    verdict header = match_header(ew__str(bytes.ptr + at, bytes.len - at));
    *ret_used = at;
    if (header == GO_ON) {
        line->scanned = bytes.len - at; /* looked at again, but that is less than the name of a header */
        return EW__LINE_MORE;
    }
    line->scanned = 0;
    if (header == WHOLE) {
        clear_flag(line, STRICT);
        if (line->framing == EW__FRAMING_AUTO && !has_flag(line, MID_LINE)) {
            line->framing = EW__FRAMING_HEADERS;
            line->state = HEAD;
            return read_headers(line, bytes, at, ret_value, ret_used);
        }
    }
    if (has_flag(line, STRICT)) {
        return end_with(line, NO_START, EW__LINE_FOREIGN);
    }
    return begin_value(line, bytes, at, ret_value, ret_used);
}

/*
 * Whether a long line that is not all there may hold a whole value at its end. If not, nothing is followed byte by byte
 * yet: the rest comes in many reads, and seen as a whole it is likely one value. (A value that ends before that, with
 * half of another behind it on the same line, waits for the other half, or for the end of the stream.)
 *
 * Earlier reads have scanned the bytes before `from` and found that they end with no whole value. White space alone
 * does not change that, so it is not scanned again.
 */
static bool may_be_whole(ew_str bytes, size_t from) {
    size_t end = bytes.len;
    while (end > from && is_space(bytes.ptr[end - 1])) {
        end--;
    }
    return end > from && (bytes.ptr[end - 1] == '}' || bytes.ptr[end - 1] == ']');
}

/* A message begins at `at`. */
static ew__line_event begin(ew__line *line, ew_str bytes, size_t at, ew_str *ret_value, size_t *ret_used) {
    if (bytes.ptr[at] != '{' && bytes.ptr[at] != '[') {
        return begin_other(line, bytes, at, ret_value, ret_used);
    }
    size_t from = line->scanned, n = bytes.len - at;
    line->framing = EW__FRAMING_LINES;
    line->scanned = 0;
    clear_flag(line, STRICT);
    if (!has_flag(line, MID_LINE) && is_likely(line, bytes, at, from, ret_value, ret_used)) {
        line->left = at;
        return EW__LINE_LIKELY;
    }
    bool cut = !has_flag(line, MID_LINE) && memchr(bytes.ptr + at + from, '\n', n - from) == NULL;
    if (cut && n >= LONG && n <= line->max && !may_be_whole(bytes, at + from)) {
        line->scanned = n;
        *ret_used = at;
        return EW__LINE_MORE;
    }
    ew__line_event event = begin_value(line, bytes, at, ret_value, ret_used);
    if (cut) {
        set_flag(line, CUT);
    }
    return event;
}

/* The end of a line that was cut by a read has come: seen as a whole it is as likely one value as any other. */
static bool is_likely_now(ew__line *line, ew_str bytes, ew_str *ret_value, size_t *ret_used) {
    if (memchr(bytes.ptr + line->scanned, '\n', bytes.len - line->scanned) == NULL) {
        return false;
    }
    clear_flag(line, CUT);
    if (!is_likely(line, bytes, 0, 0, ret_value, ret_used)) {
        return false;
    }
    clear_flag(line, MID_LINE);
    line->left = 0;
    return true;
}

static ew__line_event read_lines(ew__line *line, ew_str bytes, ew_str *ret_value, size_t *ret_used) {
    size_t at = 0;
    bool between = line->state == FRESH && line->flags == 0 && line->scanned == 0; /* mostly: nothing to be looked at */
    if (EW__LIKELY(between && bytes.ptr[0] == '{' && is_likely(line, bytes, 0, 0, ret_value, ret_used))) {
        line->framing = EW__FRAMING_LINES;
        line->left = 0;
        return EW__LINE_LIKELY;
    }
    if (has_flag(line, CLOSER)) { /* what stands before it was passed over: it may have been skipped text */
        clear_flag(line, CLOSER);
        return begin_value(line, bytes, line->left, ret_value, ret_used);
    }
    if (line->state == SKIP) {
        const char *newline = memchr(bytes.ptr, '\n', bytes.len);
        if (newline == NULL) {
            *ret_used = bytes.len;
            return EW__LINE_MORE;
        }
        at = (size_t)(newline - bytes.ptr); /* it is white space, and ends the line as such */
        line->state = FRESH;
    }
    if (line->state != FRESH) {
        if (has_flag(line, CUT) && is_likely_now(line, bytes, ret_value, ret_used)) {
            return end_with(line, FRESH, EW__LINE_LIKELY);
        }
        return read_value(line, bytes, at, ret_value, ret_used);
    }
    for (; at < bytes.len && is_space(bytes.ptr[at]); at++) {
        if (bytes.ptr[at] == '\n') {
            clear_flag(line, MID_LINE);
        }
    }
    if (at == bytes.len) {
        *ret_used = at;
        return EW__LINE_MORE;
    }
    return begin(line, bytes, at, ret_value, ret_used);
}

/* ---- whole lines ---- */

#define SPACE_MAX 64 /* bytes of white space at the end of a line that do not count towards its limit */

static ew__line_event read_whole_line(ew__line *line, ew_str bytes, ew_str *ret_value, size_t *ret_used) {
    size_t at = 0;
    if (line->state == SKIP) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        line->state = end != NULL ? FRESH : SKIP;
        at = end != NULL ? (size_t)(end - bytes.ptr) : bytes.len;
    }
    while (at < bytes.len && is_space(bytes.ptr[at])) {
        at++;
    }
    const char *p = bytes.ptr + at;
    size_t rest = bytes.len - at;
    const char *newline = memchr(p + line->scanned, '\n', rest - line->scanned);
    size_t raw = newline != NULL ? (size_t)(newline - p) : rest, len = raw;
    while (len > 0 && raw - len <= SPACE_MAX && is_space(p[len - 1])) {
        len--;
    }
    *ret_used = at + raw;
    if (len > line->max) {
        return end_with(line, SKIP, EW__LINE_TOO_LONG);
    }
    if (newline == NULL) {
        line->scanned = rest;
        *ret_used = at;
        return EW__LINE_MORE;
    }
    *ret_value = ew__str(p, len);
    return end_with(line, FRESH, EW__LINE_VALUE);
}

/* ---- headers ---- */

static bool is_in_name(char c) {
    return c != '\0' && (is_letter(c) || is_digit(c) || memchr("!#$%&'*+-.^_`|~", c, 15) != NULL);
}

/* The value of a parameter without the quotes that it may have. */
static ew_str unquote(ew_str text) {
    text = ew__str_trim(text);
    bool quoted = text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"';
    return quoted ? ew__str(text.ptr + 1, text.len - 2) : text;
}

/* Whether a Content-Type names no other charset than UTF-8. */
static bool is_utf8(ew_str type) {
    const ew_str name = EW_STR("charset=");
    const char *semicolon;
    while (type.len > 0 && (semicolon = memchr(type.ptr, ';', type.len)) != NULL) {
        type = ew__str_trim(ew__str(semicolon + 1, type.len - (size_t)(semicolon + 1 - type.ptr)));
        if (match_name(type, name) == WHOLE) {
            ew_str value = ew__str(type.ptr + name.len, type.len - name.len);
            const char *end = memchr(value.ptr, ';', value.len);
            value = unquote(ew__str(value.ptr, end != NULL ? (size_t)(end - value.ptr) : value.len));
            if (!ew__str_is_nocase(value, EW_STR("utf-8")) && !ew__str_is_nocase(value, EW_STR("utf8"))) {
                return false;
            }
        }
    }
    return true;
}

/* One header line without its end. False: it makes the framing unusable. */
static bool take_header(ew__line *line, ew_str text) {
    const char *colon = memchr(text.ptr, ':', text.len);
    size_t name_len = colon != NULL ? (size_t)(colon - text.ptr) : 0;
    for (size_t i = 0; i < name_len; i++) {
        if (!is_in_name(text.ptr[i])) {
            return false;
        }
    }
    if (name_len == 0) {
        return false;
    }
    ew_str name = ew__str(text.ptr, name_len);
    ew_str value = ew__str_trim(ew__str(colon + 1, text.len - name_len - 1));
    if (ew__str_is_nocase(name, EW_STR("content-type"))) {
        return is_utf8(value);
    }
    if (!ew__str_is_nocase(name, EW_STR("content-length"))) {
        return true;
    }
    uint64_t length;
    if (!ew__u64_parse(value, &length) || length == 0 || length > SIZE_MAX) {
        return false;
    }
    if (has_flag(line, HAS_LENGTH) && line->left != length) {
        return false;
    }
    set_flag(line, HAS_LENGTH);
    line->left = (size_t)length;
    return true;
}

/* The block ended with a blank line. MORE: the body follows. */
static ew__line_event end_head(ew__line *line) {
    bool usable = has_flag(line, HAS_LENGTH);
    line->head = 0;
    clear_flag(line, HAS_LENGTH);
    if (!usable) {
        return end_with(line, NO_HEADER, EW__LINE_BAD_HEADER);
    }
    if (line->left > line->max) {
        return end_with(line, BODY_SKIP, EW__LINE_TOO_LONG);
    }
    return end_with(line, BODY, EW__LINE_MORE);
}

/* Takes the header line at *at, if it is all there; otherwise the state stays HEAD and *at stays. */
static ew__line_event read_head_line(ew__line *line, ew_str bytes, size_t *at) {
    const char *p = bytes.ptr + *at;
    size_t n = bytes.len - *at;
    if (!is_in_name(*p) && *p != '\r' && *p != '\n') {
        return end_with(line, NO_HEADER, EW__LINE_BAD_HEADER); /* the line may be JSON, and its end far away */
    }
    const char *newline = memchr(p + line->scanned, '\n', n - line->scanned);
    size_t len = newline != NULL ? (size_t)(newline - p) : n;
    if (line->head + len + (newline != NULL) > EW__LINE_HEAD_MAX) {
        return end_with(line, NO_HEADER, EW__LINE_BAD_HEADER);
    }
    if (newline == NULL) {
        line->scanned = n;
        return EW__LINE_MORE;
    }
    *at += len + 1;
    line->head += (uint32_t)len + 1;
    line->scanned = 0;
    if (len > 0 && p[len - 1] == '\r') {
        len--;
    }
    if (len == 0) {
        return end_head(line);
    }
    return take_header(line, ew__str(p, len)) ? EW__LINE_MORE : end_with(line, NO_HEADER, EW__LINE_BAD_HEADER);
}

/* Header lines up to the body; each is used as soon as it is whole. */
static ew__line_event read_head(ew__line *line, ew_str bytes, size_t *at) {
    ew__line_event event = EW__LINE_MORE;
    while (line->head == 0 && *at < bytes.len && is_space(bytes.ptr[*at])) {
        ++*at;
    }
    while (event == EW__LINE_MORE && line->state == HEAD && *at < bytes.len && line->scanned < bytes.len - *at) {
        event = read_head_line(line, bytes, at);
    }
    return event;
}

static ew__line_event read_headers(ew__line *line, ew_str bytes, size_t at, ew_str *ret_value, size_t *ret_used) {
    if (line->state == BODY_SKIP) {
        at = line->left < bytes.len ? line->left : bytes.len;
        line->left -= at;
        line->state = line->left == 0 ? HEAD : BODY_SKIP;
    }
    ew__line_event event = EW__LINE_MORE;
    if (line->state == HEAD) {
        event = read_head(line, bytes, &at);
    }
    *ret_used = at;
    if (line->state != BODY || bytes.len - at < line->left) {
        return event;
    }
    *ret_value = ew__str(bytes.ptr + at, line->left);
    *ret_used = at + line->left;
    return end_with(line, HEAD, EW__LINE_VALUE);
}

/* ---- the reader ---- */

void ew__line_init(ew__line *line, ew__framing framing, size_t max, bool strict) {
    *line = (ew__line){.max = max,
                       .framing = (uint8_t)framing,
                       .state = framing == EW__FRAMING_HEADERS ? HEAD : FRESH,
                       .flags = strict ? STRICT : 0};
}

ew__line_event ew__line_read(ew__line *line, ew_str bytes, ew_str *ret_value, size_t *ret_used) {
    *ret_value = ew__str(NULL, 0);
    *ret_used = 0;
    if (EW__UNLIKELY(line->state >= NO_HEADER)) {
        return line->state == NO_START ? EW__LINE_FOREIGN : EW__LINE_BAD_HEADER;
    }
    if (bytes.len == 0) {
        return EW__LINE_MORE;
    }
    switch (line->framing) {
    case EW__FRAMING_HEADERS:
        return read_headers(line, bytes, 0, ret_value, ret_used);
    case EW__FRAMING_WHOLE_LINES:
        return read_whole_line(line, bytes, ret_value, ret_used);
    default:
        return read_lines(line, bytes, ret_value, ret_used);
    }
}

void ew__line_look_closer(ew__line *line) { set_flag(line, CLOSER); }

void ew__line_skip(ew__line *line) {
    if (line->state == FRESH) {
        line->state = SKIP;
    }
}

size_t ew__line_skipped(const ew__line *line, ew_str bytes, bool *ret_end) {
    size_t n = 0;
    if (line->state == BODY_SKIP) {
        n = line->left < bytes.len ? line->left : bytes.len;
        *ret_end = n == line->left;
    } else if (line->state == SKIP) {
        const char *newline = bytes.len > 0 ? memchr(bytes.ptr, '\n', bytes.len) : NULL;
        n = newline != NULL ? (size_t)(newline - bytes.ptr) : bytes.len;
        *ret_end = newline != NULL;
    } else {
        *ret_end = true;
    }
    return n;
}

bool ew__line_is_between(const ew__line *line) {
    return line->framing == EW__FRAMING_LINES && line->state == FRESH && line->scanned == 0 && !has_flag(line, CLOSER);
}

bool ew__line_is_inside(const ew__line *line) {
    switch (line->state) {
    case FRESH:
        return line->scanned > 0;
    case HEAD:
        return line->head > 0 || line->scanned > 0;
    case SKIP:
    case NO_HEADER:
    case NO_START:
        return false;
    default:
        return true;
    }
}

size_t ew__line_head(ew__framing framing, size_t len, char out[EW__LINE_HEAD_ROOM]) {
    static const char name[] = "Content-Length: ", end[] = "\r\n\r\n";
    if (framing != EW__FRAMING_HEADERS) {
        return 0;
    }
    char digits[20];
    size_t n_digits = ew__u64_text(len, digits), n = sizeof(name) - 1;
    memcpy(out, name, n);
    memcpy(out + n, digits, n_digits);
    memcpy(out + n + n_digits, end, sizeof(end) - 1);
    return n + n_digits + sizeof(end) - 1;
}
