/*
 * api/frames.c: a frame as lines for people (everywire/frames.h). Pure: text in, text out. What must not be seen is left
 * out here and nowhere else, so that whoever prints frames cannot forget it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/printable.h"
#include "base/util.h"
#include <everywire/frames.h>
#include <stdio.h>
#include <string.h>

#define HIDDEN "[redacted]"
#define HEX_MAX 64 /* bytes that are shown of what is no text; the rest would tell as little */

typedef struct writer {
    char *out;
    size_t size;
    size_t len; /* of the whole, written or not */
    const ew_frame *frame;
} writer;

static void put(writer *w, const char *bytes, size_t n) {
    if (w->len < w->size) {
        size_t room = w->size - w->len;
        memcpy(w->out + w->len, bytes, n < room ? n : room);
    }
    w->len += n;
}

static void puts_to(writer *w, const char *text) { put(w, text, strlen(text)); }

/* ---- what must not be seen ---- */

static const char *const secret_fields[] = {
    "authorization", "proxy-authorization", "cookie",       "set-cookie",    "x-api-key", "api-key",
    "token",         "x-auth-token",        "x-csrf-token", "x-goog-api-key"};

static const char
    *const secret_names[] = {"token",      "access_token",  "refresh_token", "id_token",      "auth_token",
                             "auth",       "authorization", "bearer",        "password",      "passwd",
                             "passphrase", "secret",        "secrets",       "client_secret", "api_key",
                             "apikey",     "api-key",       "private_key",   "cookie",        "signature",
                             "blobapiurl", "blob_api_url"}; /* a URL that nobody can guess is the key to what is there */

static bool same_name(ew_str a, const char *b) {
    size_t n = strlen(b);
    for (size_t i = 0; i < a.len && i < n; i++) {
        char c = a.ptr[i] >= 'A' && a.ptr[i] <= 'Z' ? (char)(a.ptr[i] | 0x20) : a.ptr[i];
        if (c != b[i])
            return false;
    }
    return a.len == n;
}

static bool is_one_of(ew_str name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (same_name(name, names[i]))
            return true;
    return false;
}

static bool is_secret_name(const ew_frame *frame, ew_str name) {
    return is_one_of(name, secret_names, sizeof secret_names / sizeof *secret_names) ||
           (frame->is_secret && frame->is_secret(frame->secrets, name));
}

/* What could be anything, cut anywhere: names do not tell what of it is secret. */
static bool is_part(const ew_frame *frame) {
    switch (frame->kind) {
    case EW_FRAME_WEBSOCKET:
        return (frame->opcode < 8 && !frame->fin) || frame->opcode == 0;
    case EW_FRAME_HTTP_BODY:
        return frame->text_size > 0 &&
               frame->size != frame->text_size; /* a chunk: it has a line of its own before it */
    default:
        return frame->kind == EW_FRAME_BYTES;
    }
}

static bool is_hidden(const ew_frame *frame) {
    if (!frame->is_secret || frame->kind == EW_FRAME_HTTP_HEAD)
        return false;
    /* a name with an escape may be any: it is secret as soon as one is */
    return frame->is_secret(frame->secrets, ew__str(NULL, 0)) ||
           (is_part(frame) && frame->is_secret(frame->secrets, EW_STR("\\")));
}

/* ---- text ---- */

static void put_escaped(writer *w, unsigned char c) {
    char text[8];
    int n = snprintf(text, sizeof text, c == '\t' ? "\\t" : "\\x%02x", c);
    put(w, text, (size_t)n);
}

/* Behind the string that begins at i; text.len if its end is missing. */
static size_t string_end(ew_str text, size_t i) {
    for (i++; i < text.len && text.ptr[i] != '"'; i++)
        i += text.ptr[i] == '\\';
    return i < text.len ? i + 1 : text.len;
}

/* Behind the object or array that begins at i; text.len if its end is missing. */
static size_t container_end(ew_str text, size_t i) {
    size_t depth = 0;
    while (i < text.len) {
        char c = text.ptr[i];
        i = c == '"' ? string_end(text, i) : i + 1;
        depth += c == '{' || c == '[';
        depth -= (c == '}' || c == ']') && depth > 0;
        if (depth == 0)
            return i;
    }
    return text.len;
}

static size_t skip_spaces(ew_str text, size_t i) {
    while (i < text.len && memchr(" \t\r\n", text.ptr[i], 4))
        i++;
    return i;
}

/* The member that begins at i has a secret name and a value: where the value ends, else 0. *ret_value: where it begins. */
static size_t secret_member(const ew_frame *frame, ew_str text, size_t i, size_t *ret_value) {
    size_t end = string_end(text, i), at = skip_spaces(text, end);
    if (end < i + 2 || at >= text.len || text.ptr[at] != ':' ||
        !is_secret_name(frame, ew__str(text.ptr + i + 1, end - i - 2)))
        return 0;
    at = skip_spaces(text, at + 1);
    *ret_value = at;
    if (at >= text.len)
        return 0;
    if (text.ptr[at] == '"')
        return string_end(text, at);
    if (text.ptr[at] == '{' || text.ptr[at] == '[')
        return container_end(text, at);
    while (at < text.len && !memchr(",}] \r\n", text.ptr[at], 6))
        at++;
    return at;
}

/* The same of "?token=..." or "&token=..." in a target. */
static size_t secret_query(const ew_frame *frame, ew_str text, size_t i, size_t *ret_value) {
    size_t at = i + 1;
    while (at < text.len && !memchr("=&? \"", text.ptr[at], 5))
        at++;
    if (at >= text.len || text.ptr[at] != '=' || !is_secret_name(frame, ew__str(text.ptr + i + 1, at - i - 1)))
        return 0;
    *ret_value = ++at;
    while (at < text.len && !memchr("& \"\r\n", text.ptr[at], 5))
        at++;
    return at;
}

/* Text as it is, but for what would drive a terminal and for line ends; i is moved on. */
static void put_character(writer *w, ew_str text, size_t *i) {
    size_t n = ew__printable_size(text, *i);
    if (n > 0)
        put(w, text.ptr + *i, n);
    else if (!memchr("\r\n", text.ptr[*i], 2))
        put_escaped(w, (unsigned char)text.ptr[*i]);
    *i += n > 0 ? n : 1;
}

/* One line, which begins at i and ends at end. Where it got to: behind it if a secret goes on in lines that follow. */
static size_t put_line(writer *w, ew_str text, size_t i, size_t end) {
    while (i < end) {
        char c = text.ptr[i];
        size_t value = 0, behind = c == '"'               ? secret_member(w->frame, text, i, &value)
                                   : c == '?' || c == '&' ? secret_query(w->frame, text, i, &value)
                                                          : 0;
        if (behind <= value) {
            put_character(w, text, &i);
            continue;
        }
        while (i < value)
            put_character(w, text, &i);
        puts_to(w, text.ptr[value] == '"' ? "\"" HIDDEN "\"" : HIDDEN);
        i = behind;
    }
    return i;
}

static void put_text(writer *w, ew_str text) { (void)put_line(w, text, 0, text.len); }

/* False: the line is not a header field with a secret; nothing was written. */
static bool put_secret_field(writer *w, ew_str line) {
    const char *colon = memchr(line.ptr, ':', line.len);
    ew_str name = ew__str(line.ptr, colon ? (size_t)(colon - line.ptr) : 0);
    if (!is_one_of(name, secret_fields, sizeof secret_fields / sizeof *secret_fields))
        return false;
    put(w, name.ptr, name.len);
    puts_to(w, ": " HIDDEN);
    return true;
}

static bool is_text(ew_str bytes) {
    for (size_t i = 0; i < bytes.len;) {
        size_t n = ew__printable_size(bytes, i);
        n = n == 0 && memchr("\r\n\t", bytes.ptr[i], 3) ? 1 : n;
        if (n == 0)
            return bytes.len - i < 4 && (unsigned char)bytes.ptr[i] >= 0x80; /* cut within a character */
        i += n;
    }
    return true;
}

static void put_hex(writer *w, ew_str bytes) {
    char text[8];
    for (size_t i = 0; i < bytes.len && i < HEX_MAX; i++) {
        int n = snprintf(text, sizeof text, i ? " %02x" : "%02x", (unsigned char)bytes.ptr[i]);
        put(w, text, (size_t)n);
    }
}

/* ---- lines ---- */

typedef struct layout {
    const ew_frame *frame;
    char first[160], next[64]; /* before the first line, and before those that follow */
    unsigned n;                /* lines so far */
} layout;

static void init_layout(layout *l, const ew_frame *frame, uint64_t since_ns, bool colour) {
    static const char directions[] = "<>*";
    bool event = frame->kind == EW_FRAME_OPENED || frame->kind == EW_FRAME_CLOSED;
    char mark = directions[event ? 2 : frame->out];
    const char *paint = !colour ? "" : event ? "\033[2m" : frame->out ? "\033[36m" : "\033[32m";
    const char *plain = colour ? "\033[0m" : "", *dim = colour ? "\033[2m" : "";
    char when[48];
    uint64_t ns = frame->at_ns > since_ns ? frame->at_ns - since_ns : 0;
    (void)snprintf(when, sizeof when, "+%llu.%llums #%llu", (unsigned long long)(ns / 1000000),
                   (unsigned long long)(ns / 100000 % 10), (unsigned long long)frame->connection);
    *l = (layout){.frame = frame};
    (void)snprintf(l->first, sizeof l->first, "%s%s%s %s%c%s ", dim, when, plain, paint, mark, plain);
    (void)snprintf(l->next, sizeof l->next, "%*s %s%c%s ", (int)strlen(when), "", paint, mark, plain);
}

static void begin_line(writer *w, layout *l) {
    if (l->n > 0)
        puts_to(w, "\n");
    puts_to(w, l->n++ ? l->next : l->first);
}

static const char *opcode_name(uint8_t opcode) {
    static const char *const names[16] = {
        [0] = "continuation ", [1] = "text ", [2] = "binary ", [8] = "close ", [9] = "ping ", [10] = "pong "};
    return names[opcode & 15] ? names[opcode & 15] : "unknown ";
}

/* What stands before the payload. */
static void put_label(writer *w, const ew_frame *frame) {
    char text[48];
    if (frame->kind == EW_FRAME_WEBSOCKET) {
        puts_to(w, "ws ");
        puts_to(w, opcode_name(frame->opcode));
        if (!frame->fin)
            puts_to(w, "(more follows) ");
    } else if (frame->kind == EW_FRAME_LENGTH) {
        put(w, text, (size_t)snprintf(text, sizeof text, "[%llu] ", (unsigned long long)frame->text_size));
    }
}

/* Each line of a text that has several. */
static void put_lines(writer *w, layout *l, ew_str text) {
    bool head = l->frame->kind == EW_FRAME_HTTP_HEAD, bytes = l->frame->kind == EW_FRAME_BYTES;
    for (size_t i = 0; i < text.len;) {
        const char *newline = memchr(text.ptr + i, '\n', text.len - i);
        size_t next = newline ? (size_t)(newline - text.ptr) + 1 : text.len, end = next - (newline != NULL);
        end -= end > i && text.ptr[end - 1] == '\r';
        if (end > i) {
            begin_line(w, l);
            if (l->n == 1)
                put_label(w, l->frame);
            bool may_be_field = bytes || (head && l->n > 1);
            if (!may_be_field || !put_secret_field(w, ew__str(text.ptr + i, end - i)))
                end = put_line(w, head ? ew__str(text.ptr, end) : text, i, end);
        }
        i = end > next ? end : next;
    }
}

static void put_cut(writer *w, size_t shown, uint64_t size) {
    char text[80];
    if (shown < size)
        put(w, text,
            (size_t)snprintf(text, sizeof text, " ... (%llu of %llu bytes)", (unsigned long long)shown,
                             (unsigned long long)size));
}

/* A close frame of a WebSocket begins with its code. */
static void put_close(writer *w, layout *l, ew_str text) {
    char code[16];
    begin_line(w, l);
    puts_to(w, "ws close ");
    if (text.len >= 2) {
        unsigned number = (unsigned)(unsigned char)text.ptr[0] << 8 | (unsigned char)text.ptr[1];
        put(w, code, (size_t)snprintf(code, sizeof code, "%u ", number));
        put_text(w, ew__str(text.ptr + 2, text.len - 2));
    }
}

static void put_event(writer *w, layout *l) {
    const ew_frame *frame = l->frame;
    begin_line(w, l);
    puts_to(w, frame->kind == EW_FRAME_OPENED ? "connection opened" : "connection closed");
    if (frame->kind == EW_FRAME_OPENED && strcmp(frame->wire, "?") != 0) {
        puts_to(w, ", ");
        puts_to(w, frame->wire);
    }
    if (frame->text.len > 0) {
        puts_to(w, ": ");
        put_text(w, frame->text);
    }
}

static void put_payload(writer *w, layout *l) {
    const ew_frame *frame = l->frame;
    ew_str text = frame->kind == EW_FRAME_BYTES ? frame->bytes : frame->text;
    uint64_t size = frame->kind == EW_FRAME_BYTES ? frame->size : frame->text_size;
    if (frame->kind == EW_FRAME_WEBSOCKET && frame->opcode == 8) {
        put_close(w, l, text);
        return;
    }
    if (size > 0 && is_hidden(frame)) {
        begin_line(w, l);
        put_label(w, frame);
        puts_to(w, HIDDEN);
        put_cut(w, 0, size);
        return;
    }
    bool may_be_binary = frame->kind == EW_FRAME_BYTES || (frame->kind == EW_FRAME_WEBSOCKET && frame->opcode != 1);
    if (!may_be_binary || is_text(text)) {
        put_lines(w, l, text);
        if (l->n == 0) { /* nothing to show, or nothing at all */
            begin_line(w, l);
            put_label(w, frame);
            puts_to(w, frame->kind == EW_FRAME_HTTP_BODY ? "(end of body)" : "(empty)");
        }
        put_cut(w, text.len, size);
        return;
    }
    begin_line(w, l);
    put_label(w, frame);
    puts_to(w, frame->kind == EW_FRAME_BYTES ? "bytes " : "hex ");
    put_hex(w, text);
    put_cut(w, text.len < HEX_MAX ? text.len : HEX_MAX, size);
}

size_t ew_frame_format(const ew_frame *frame, uint64_t since_ns, unsigned flags, char *out, size_t size) {
    writer w = {.out = out, .size = size > 0 ? size - 1 : 0, .frame = frame};
    layout l;
    init_layout(&l, frame, since_ns, flags & EW_FRAME_COLOUR);
    if (frame->kind == EW_FRAME_OPENED || frame->kind == EW_FRAME_CLOSED)
        put_event(&w, &l);
    else if (frame->kind == EW_FRAME_LINE && frame->text_size == 0)
        return size > 0 ? (size_t)(out[0] = 0) : 0; /* white space behind the last line */
    else
        put_payload(&w, &l);
    puts_to(&w, "\n");
    if (size > 0)
        out[w.len < w.size ? w.len : w.size] = 0;
    return w.len;
}
