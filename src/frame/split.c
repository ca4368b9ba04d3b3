/*
 * frame/split.c: see split.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "frame/lenpfx.h"
#include "frame/split.h"
#include "frame/ws.h"
#include <string.h>

#define HEAD_MAX ((uint64_t)64 * 1024) /* bytes of a head of HTTP; beyond that it is none */

enum { FRAMING_UNKNOWN, FRAMING_HTTP, FRAMING_WS, FRAMING_LENGTH, FRAMING_LINES, FRAMING_BYTES };

/* HTTP: what comes next. */
enum { HTTP_START, HTTP_FIELDS, HTTP_BODY, HTTP_BODY_TO_END, HTTP_CHUNK, HTTP_DATA, HTTP_DATA_END, HTTP_TRAILERS };

/* Frames with a head of their own: what comes next. */
enum { FRAME_HEAD, FRAME_PAYLOAD };

/* ---- the frame at hand ---- */

static void keep_some(ew__buf *buf, const void *bytes, size_t n, size_t keep) {
    size_t room = buf->len < keep ? keep - buf->len : 0;
    if (room > 0)
        (void)ew__buf_add(buf, bytes, n < room ? n : room); /* no memory: less is shown */
}

static void add_raw(ew__split *split, ew__split_way *way, const void *bytes, size_t n) {
    keep_some(&way->raw, bytes, n, split->keep);
    way->raw_size += n;
}

static void add_text(ew__split *split, ew__split_way *way, const void *bytes, size_t n) {
    keep_some(&way->text, bytes, n, split->keep);
    way->text_size += n;
}

static void add_both(ew__split *split, ew__split_way *way, const void *bytes, size_t n) {
    add_raw(split, way, bytes, n);
    add_text(split, way, bytes, n);
}

static void emit(ew__split *split, ew__split_way *way, ew_frame_kind kind) {
    if (way->raw_size == 0)
        return;
    ew_frame frame = {.kind = kind,
                      .out = way == &split->ways[1],
                      .opcode = way->opcode,
                      .fin = way->fin,
                      .bytes = ew__buf_view(&way->raw),
                      .text = ew__buf_view(&way->text),
                      .size = way->raw_size,
                      .text_size = way->text_size};
    split->fn(split, &frame);
    ew__buf_clear(&way->raw);
    ew__buf_clear(&way->text);
    way->raw_size = way->text_size = 0;
}

/* It cannot be followed any more: what there is of it, and all that comes, is bytes. */
static void give_up(ew__split_way *way) { way->framing = FRAMING_BYTES; }

static void begin(ew__split_way *way, uint8_t framing) {
    way->framing = framing;
    way->state = 0;
    way->n_short = 0;
}

/* ---- HTTP: heads ---- */

static bool begins(ew_str text, const char *with) {
    size_t n = strlen(with);
    for (size_t i = 0; i < n; i++)
        if (i >= text.len || ((unsigned char)text.ptr[i] | 0x20) != (unsigned char)with[i])
            return false;
    return true;
}

static bool contains(ew_str text, const char *what) {
    for (size_t i = 0; i < text.len; i++)
        if (begins(ew__str(text.ptr + i, text.len - i), what))
            return true;
    return false;
}

static uint64_t number(ew_str text, unsigned base, bool *ret_some) {
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text.len; i++) {
        unsigned char c = (unsigned char)(text.ptr[i] | 0x20);
        unsigned digit = text.ptr[i] >= '0' && text.ptr[i] <= '9' ? (unsigned)(text.ptr[i] - '0')
                         : c >= 'a' && c <= 'f'                   ? (unsigned)(c - 'a') + 10
                                                                  : 99;
        if (digit >= base || value > UINT64_MAX / 32)
            break;
        value = value * base + digit;
    }
    *ret_some = i > 0;
    return value;
}

static void push_method(ew__split *split, bool head) {
    if (split->n_heads == 64)
        return;
    split->heads |= (uint64_t)head << split->n_heads++;
}

static bool pop_method(ew__split *split) {
    bool head = split->heads & 1;
    split->heads >>= 1;
    split->n_heads -= split->n_heads > 0;
    return head;
}

/* "POST /greet HTTP/1.1" or "HTTP/1.1 200 OK". False: neither. */
static bool first_line(ew__split *split, ew__split_way *way, ew_str line) {
    bool some;
    way->chunked = way->has_length = way->upgrades = way->events = false;
    way->length = 0;
    way->request = !begins(line, "http/1.");
    if (!way->request) {
        way->status = line.len > 9 ? (uint16_t)(number(ew__str(line.ptr + 9, line.len - 9), 10, &some) % 1000) : 0;
        return true;
    }
    /* a long target does not fit into what is kept of the line: then its end is not looked for */
    bool whole = line.len < sizeof way->head;
    if (!memchr(line.ptr, ' ', line.len) || (whole && !contains(line, " http/")))
        return false;
    push_method(split, begins(line, "head "));
    return true;
}

static void field(ew__split_way *way, ew_str line) {
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon)
        return;
    ew_str value = ew__str(colon + 1, line.len - (size_t)(colon + 1 - line.ptr));
    while (value.len > 0 && *value.ptr == ' ')
        value = ew__str(value.ptr + 1, value.len - 1);
    if (begins(line, "content-length:"))
        way->length = number(value, 10, &way->has_length);
    else if (begins(line, "transfer-encoding:"))
        way->chunked = contains(value, "chunked");
    else if (begins(line, "content-type:"))
        way->events = begins(value, "text/event-stream") || begins(value, "text/plain");
    else if (begins(line, "upgrade:"))
        way->upgrades = contains(value, "websocket");
}

/* What follows the head. */
static uint8_t after_head(ew__split *split, ew__split_way *way) {
    bool info = !way->request && way->status < 200;
    bool no_body = info || way->status == 204 || way->status == 304;
    if (!way->request && !info && pop_method(split))
        no_body = true;
    if (!way->request && no_body)
        return HTTP_START;
    if (way->chunked)
        return HTTP_CHUNK;
    if (way->has_length || way->request) {
        way->left = way->length;
        return way->length > 0 ? HTTP_BODY : HTTP_START;
    }
    return HTTP_BODY_TO_END;
}

static void end_head(ew__split *split, ew__split_way *way) {
    bool upgraded = !way->request && way->status == 101 && way->upgrades;
    emit(split, way, EW_FRAME_HTTP_HEAD);
    way->state = after_head(split, way);
    way->line_empty = true;
    if (upgraded) {
        for (int i = 0; i < 2; i++)
            begin(&split->ways[i], FRAMING_WS);
    }
}

/* ---- HTTP: lines and bodies ---- */

/* Takes bytes up to the end of a line. How many; *ret_line when it is whole: without its end. */
static size_t take_line(ew__split_way *way, const uint8_t *bytes, size_t n, ew_str *ret_line) {
    const uint8_t *newline = memchr(bytes, '\n', n);
    size_t used = newline ? (size_t)(newline - bytes) + 1 : n, room = sizeof way->head - way->n_short;
    size_t part = newline ? used - 1 : used;
    part = part < room ? part : room;
    memcpy(way->head + way->n_short, bytes, part);
    way->n_short = (uint8_t)(way->n_short + part);
    ret_line->ptr = NULL;
    if (newline) {
        size_t len = way->n_short;
        len -= len > 0 && way->head[len - 1] == '\r';
        *ret_line = ew__str(way->head, len);
        way->n_short = 0;
    }
    return used;
}

static size_t http_line(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    ew_str line;
    size_t used = take_line(way, bytes, n, &line);
    bool head = way->state == HTTP_START || way->state == HTTP_FIELDS;
    if (head)
        add_both(split, way, bytes, used);
    else
        add_raw(split, way, bytes, used);
    if (way->raw_size > HEAD_MAX && head) {
        give_up(way);
        return used;
    }
    if (!line.ptr)
        return used;
    switch (way->state) {
    case HTTP_START:
        if (line.len == 0) { /* a stray line end before a message is often seen */
            ew__buf_clear(&way->text);
            way->text_size = 0;
        } else if (first_line(split, way, line)) {
            way->state = HTTP_FIELDS;
        } else {
            give_up(way);
        }
        break;
    case HTTP_FIELDS:
        if (line.len > 0)
            field(way, line);
        else
            end_head(split, way);
        break;
    case HTTP_CHUNK: {
        bool some;
        way->left = number(line, 16, &some);
        if (!some)
            give_up(way);
        else
            way->state = way->left > 0 ? HTTP_DATA : HTTP_TRAILERS;
        break;
    }
    case HTTP_DATA_END:
        if (line.len > 0)
            give_up(way);
        else
            way->state = HTTP_CHUNK;
        break;
    default: /* trailers */
        if (line.len == 0) {
            emit(split, way, EW_FRAME_HTTP_BODY);
            way->state = HTTP_START;
        }
    }
    return used;
}

/* Part of a streamed body: a block ends with an empty line. */
static void add_events(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        bool block_ends = bytes[i] == '\n' && way->line_empty;
        if (bytes[i] != '\r')
            way->line_empty = bytes[i] == '\n';
        if (!block_ends || way->text_size + (i - from) == 0)
            continue;
        add_both(split, way, bytes + from, i + 1 - from);
        emit(split, way, EW_FRAME_SSE);
        from = i + 1;
    }
    if (from < n)
        add_both(split, way, bytes + from, n - from);
}

static size_t http_body(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    bool to_end = way->state == HTTP_BODY_TO_END;
    size_t part = to_end || n < way->left ? n : (size_t)way->left;
    if (way->events)
        add_events(split, way, bytes, part);
    else
        add_both(split, way, bytes, part);
    if (to_end) {
        if (!way->events)
            emit(split, way, EW_FRAME_HTTP_BODY);
        return part;
    }
    way->left -= part;
    if (way->left > 0)
        return part;
    if (way->state == HTTP_BODY || !way->events)
        emit(split, way, EW_FRAME_HTTP_BODY);
    way->state = way->state == HTTP_BODY ? HTTP_START : HTTP_DATA_END;
    return part;
}

static size_t http_step(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    bool body = way->state == HTTP_BODY || way->state == HTTP_BODY_TO_END || way->state == HTTP_DATA;
    return body ? http_body(split, way, bytes, n) : http_line(split, way, bytes, n);
}

/* ---- frames with a head: WebSocket, lengths ---- */

/* How many bytes the head has, as far as the bytes in way->head tell. */
static size_t ws_head_size(const ew__split_way *way) {
    const uint8_t *head = (const uint8_t *)way->head;
    if (way->n_short < 2)
        return 2;
    uint8_t length = head[1] & 0x7f;
    return (size_t)2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + (head[1] & 0x80 ? 4 : 0);
}

/* False: longer than can be followed. */
static bool ws_head(const ew__split *split, ew__split_way *way) {
    const uint8_t *head = (const uint8_t *)way->head;
    size_t extra = (head[1] & 0x7f) == 126 ? 2 : (head[1] & 0x7f) == 127 ? 8 : 0;
    way->fin = head[0] & 0x80;
    way->opcode = head[0] & 0x0f;
    way->masked = head[1] & 0x80;
    way->left = extra ? 0 : head[1] & 0x7f;
    for (size_t i = 0; i < extra; i++)
        way->left = way->left << 8 | head[2 + i];
    if (way->masked)
        memcpy(way->key, head + 2 + extra, sizeof way->key);
    return way->left <= split->max;
}

static bool length_head(const ew__split *split, ew__split_way *way) {
    ew_str body;
    size_t size;
    ew__lenpfx_event event = ew__lenpfx_read(ew__str(way->head, EW__LENPFX_HEAD), split->max, &body, &size);
    if (event != EW__LENPFX_MORE)
        return false;
    way->left = size - EW__LENPFX_HEAD;
    return true;
}

static ew_frame_kind kind_of(const ew__split_way *way) {
    return way->framing == FRAMING_WS ? EW_FRAME_WEBSOCKET : EW_FRAME_LENGTH;
}

static size_t head_step(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    size_t used = 0;
    bool ws = way->framing == FRAMING_WS;
    while (used < n && way->n_short < (ws ? ws_head_size(way) : EW__LENPFX_HEAD))
        way->head[way->n_short++] = (char)bytes[used++];
    add_raw(split, way, bytes, used);
    if (way->n_short < (ws ? ws_head_size(way) : EW__LENPFX_HEAD))
        return used;
    way->n_short = 0;
    if (!(ws ? ws_head(split, way) : length_head(split, way)))
        give_up(way);
    else if (way->left == 0)
        emit(split, way, kind_of(way));
    else
        way->state = FRAME_PAYLOAD;
    return used;
}

static size_t payload_step(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    size_t part = n < way->left ? n : (size_t)way->left, from = way->text.len;
    uint64_t offset = way->text_size;
    add_both(split, way, bytes, part);
    if (way->framing == FRAMING_WS && way->masked && way->text.len > from)
        ew__ws_mask(way->text.ptr + from, way->text.len - from, way->key, offset);
    way->left -= part;
    if (way->left == 0) {
        way->state = FRAME_HEAD;
        emit(split, way, kind_of(way));
    }
    return part;
}

/* ---- lines ---- */

/* The first n bytes of what waits are those of a frame, whose text is a part of them. */
static void use(ew__split *split, ew__split_way *way, size_t n) {
    add_raw(split, way, way->pending.ptr + way->done, n);
    way->done += n;
}

static void lines_step(ew__split *split, ew__split_way *way) {
    for (;;) {
        ew_str rest = ew__str(way->pending.ptr + way->done, way->pending.len - (size_t)way->done), value = {NULL, 0};
        size_t used = 0;
        ew__line_event event = ew__line_read(&way->line, rest, &value, &used);
        switch (event) {
        case EW__LINE_MORE:
            use(split, way, used);
            ew__buf_drop(&way->pending, (size_t)way->done);
            way->done = 0;
            return;
        case EW__LINE_LIKELY:
        case EW__LINE_VALUE:
            use(split, way, used);
            add_text(split, way, value.ptr, value.len);
            emit(split, way, EW_FRAME_LINE);
            break;
        case EW__LINE_BAD:
        case EW__LINE_TOO_LONG:
            use(split, way, used);
            emit(split, way, EW_FRAME_BYTES);
            break;
        default: /* the framing is lost */
            use(split, way, rest.len);
            give_up(way);
            ew__buf_done(&way->pending);
            return;
        }
    }
}

/* ---- all ---- */

/* Told by the first byte, as the wires themselves tell it; no method that we know begins as Content-Length does. */
static uint8_t recognise(uint8_t first) {
    bool http = first >= 'A' && first <= 'Z' && first != 'C';
    return first < '\t' ? FRAMING_LENGTH : http ? FRAMING_HTTP : FRAMING_LINES;
}

static size_t step(ew__split *split, ew__split_way *way, const uint8_t *bytes, size_t n) {
    switch (way->framing) {
    case FRAMING_UNKNOWN:
        begin(way, recognise(bytes[0]));
        return 0;
    case FRAMING_HTTP:
        return http_step(split, way, bytes, n);
    case FRAMING_WS:
    case FRAMING_LENGTH:
        return way->state == FRAME_HEAD ? head_step(split, way, bytes, n) : payload_step(split, way, bytes, n);
    case FRAMING_LINES:
        if (ew__buf_add(&way->pending, bytes, n) == EW_OK) {
            lines_step(split, way);
            return n;
        }
        use(split, way, way->pending.len - (size_t)way->done); /* no memory for what waits */
        ew__buf_done(&way->pending);
        give_up(way);
        return 0;
    default:
        add_raw(split, way, bytes, n);
        return n;
    }
}

void ew__split_init(ew__split *split, const ew_env *env, size_t keep, size_t max, ew__split_fn fn, void *ud) {
    *split = (ew__split){.fn = fn, .ud = ud, .keep = keep, .max = max};
    for (int i = 0; i < 2; i++) {
        ew__split_way *way = &split->ways[i];
        ew__buf_init(&way->raw, env, SIZE_MAX / 2);
        ew__buf_init(&way->text, env, SIZE_MAX / 2);
        ew__buf_init(&way->pending, env, SIZE_MAX / 2);
        ew__line_init(&way->line, EW__FRAMING_AUTO, max, false);
        way->line_empty = true;
    }
}

void ew__split_feed(ew__split *split, bool out, const void *bytes, size_t n) {
    ew__split_way *way = &split->ways[out];
    const uint8_t *at = bytes;
    while (n > 0) {
        size_t used = step(split, way, at, n);
        at += used;
        n -= used;
    }
    if (way->framing == FRAMING_BYTES)
        emit(split, way, EW_FRAME_BYTES);
}

/* What a frame is called of which the end is missing. */
static ew_frame_kind last_kind(const ew__split_way *way, bool cut) {
    if (way->framing == FRAMING_LINES && !cut)
        return EW_FRAME_LINE; /* the white space behind the last one */
    if (way->framing != FRAMING_HTTP || way->state < HTTP_BODY)
        return EW_FRAME_BYTES;
    return way->events ? EW_FRAME_SSE : EW_FRAME_HTTP_BODY;
}

void ew__split_end(ew__split *split) {
    for (int i = 0; i < 2; i++) {
        ew__split_way *way = &split->ways[i];
        bool cut = way->pending.len > way->done;
        if (cut)
            use(split, way, way->pending.len - (size_t)way->done);
        ew__buf_clear(&way->pending);
        way->done = 0;
        emit(split, way, last_kind(way, cut));
    }
}

void ew__split_done(ew__split *split) {
    for (int i = 0; i < 2; i++) {
        ew__buf_done(&split->ways[i].raw);
        ew__buf_done(&split->ways[i].text);
        ew__buf_done(&split->ways[i].pending);
    }
}
