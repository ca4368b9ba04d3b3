/*
 * frame/cutter.c: see cutter.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "base/mem.h"
#include "base/util.h"
#include "frame/http1_state.h"
#include "frame/lenpfx.h"
#include "frame/ws_decoder.h"

#define HEAD_MAX (64 * 1024) /* bytes of a head of HTTP */

enum { CUT_UNKNOWN, CUT_HTTP, CUT_BAD_HEAD, CUT_WS, CUT_LENGTH, CUT_LINES, CUT_BYTES };

struct ew__cutter_http {
    ew__http1 reader;
    ew__http1_scratch scratch;
};

/* ---- the current frame ---- */

static void keep_some(ew__buf *buf, const void *bytes, size_t n, size_t keep) {
    size_t room = buf->len < keep ? keep - buf->len : 0;
    if (room > 0)
        (void)ew__buf_add(buf, bytes, n < room ? n : room); /* no memory: less is shown */
}

static void add_raw(ew__cutter *cutter, ew__cutter_way *way, const void *bytes, size_t n) {
    keep_some(&way->raw, bytes, n, cutter->keep);
    way->raw_size += n;
}

static void add_text(ew__cutter *cutter, ew__cutter_way *way, const void *bytes, size_t n) {
    keep_some(&way->text, bytes, n, cutter->keep);
    way->text_size += n;
}

static void add_both(ew__cutter *cutter, ew__cutter_way *way, const void *bytes, size_t n) {
    add_raw(cutter, way, bytes, n);
    add_text(cutter, way, bytes, n);
}

static void emit(ew__cutter *cutter, ew__cutter_way *way, ew_frame_kind kind) {
    if (way->raw_size == 0)
        return;
    ew_frame frame = {.kind = kind,
                      .out = way == &cutter->ways[1],
                      .opcode = way->opcode,
                      .fin = way->fin,
                      .bytes = ew__buf_view(&way->raw),
                      .text = ew__buf_view(&way->text),
                      .size = way->raw_size,
                      .text_size = way->text_size};
    cutter->fn(cutter, &frame);
    ew__buf_clear(&way->raw);
    ew__buf_clear(&way->text);
    way->raw_size = way->text_size = 0;
}

/* The framing is lost: what there is of the frame, and all that follows, is plain bytes. */
static void give_up(ew__cutter_way *way) { way->framing = CUT_BYTES; }

/* ---- HTTP ---- */

static void begin_http(ew__cutter *cutter, ew__cutter_way *way) {
    static const ew__http1_limits limits = {HEAD_MAX, EW__HTTP_FIELDS_MAX, HEAD_MAX, HEAD_MAX};
    const ew_env *env = way->raw.env;
    way->http = ew__zalloc(env, sizeof *way->http);
    way->framing = way->http ? CUT_HTTP : CUT_BYTES;
    if (!way->http)
        return;
    ew__http1_init(&way->http->reader, env, &limits, way == cutter->first, &way->http->scratch);
    way->http->reader.tells_interim = true;
}

static void end_http(ew__cutter_way *way) {
    if (way->http)
        ew__http1_done(&way->http->reader);
    ew__free(way->raw.env, way->http, sizeof *way->http);
    way->http = NULL;
}

static void push_method(ew__cutter *cutter, bool head) {
    if (cutter->n_heads == 64)
        return;
    cutter->heads |= (uint64_t)head << cutter->n_heads++;
}

static bool pop_method(ew__cutter *cutter) {
    bool head = cutter->heads & 1;
    cutter->heads >>= 1;
    cutter->n_heads -= cutter->n_heads > 0;
    return head;
}

/* How many bytes there are up to the end of the next empty line; 0: it does not end here. */
static size_t block_size(ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool ends = bytes[i] == '\n' && way->line_empty;
        if (bytes[i] != '\r')
            way->line_empty = bytes[i] == '\n';
        if (ends)
            return i + 1;
    }
    return 0;
}

static void emit_head(ew__cutter *cutter, ew__cutter_way *way) {
    size_t lead = 0; /* the line end that may stand before a message */
    while (lead < way->text.len && memchr("\r\n", way->text.ptr[lead], 2))
        lead++;
    ew__buf_drop(&way->text, lead);
    way->text_size -= lead;
    emit(cutter, way, EW_FRAME_HTTP_HEAD);
}

static void end_head(ew__cutter *cutter, ew__cutter_way *way) {
    const ew__http_head *head = ew__http1_head(&way->http->reader);
    ew_str type = ew__http_media_type(ew__http_head_field(head, EW_STR("content-type"), NULL));
    way->events = ew__str_is_nocase(type, EW_STR("text/event-stream")) || ew__str_is_nocase(type, EW_STR("text/plain"));
    way->line_empty = true;
    if (way == cutter->first)
        push_method(cutter, head->method == EW__HTTP_HEAD);
    else if (head->status >= 200)
        (void)pop_method(cutter);
    emit_head(cutter, way);
}

static void end_message(ew__cutter *cutter, ew__cutter_way *way) {
    emit(cutter, way, EW_FRAME_HTTP_BODY); /* what follows the last chunk, or is left of the last block */
    way->line_empty = false;
    if (!ew__http1_head(&way->http->reader)->keep_alive)
        give_up(way);
}

/* Part of a streamed body: a block ends with an empty line. */
static void add_blocks(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    while (n > 0) {
        size_t size = block_size(way, bytes, n), part = size ? size : n;
        add_both(cutter, way, bytes, part);
        if (size && way->text_size > 1)
            emit(cutter, way, EW_FRAME_SSE);
        bytes += part;
        n -= part;
    }
}

static void add_body(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    ew_str body = ew__http1_body(&way->http->reader);
    const uint8_t *from = (const uint8_t *)body.ptr, *behind = from + body.len;
    add_raw(cutter, way, bytes, (size_t)(from - bytes));
    if (way->events)
        add_blocks(cutter, way, from, body.len);
    else
        add_both(cutter, way, from, body.len);
    add_raw(cutter, way, behind, (size_t)(bytes + n - behind));
    if (!way->events && way->http->reader.guard.length == 0)
        emit(cutter, way, EW_FRAME_HTTP_BODY);
}

static bool is_in_head(const ew__http1 *reader) {
    return reader->state == START || reader->state == HEAD || reader->state == ENDED;
}

static size_t http_step(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    ew__http1 *reader = &way->http->reader;
    bool in_head = is_in_head(reader);
    if (in_head && reader->state != HEAD && way != cutter->first)
        reader->skip_body = cutter->heads & 1;
    (void)ew__http1_feed(reader, bytes, n);
    ew__http_event event = ew__http1_next(reader);
    size_t used = n - ew__http1_unread(reader);
    ew__http1_forget(reader);
    switch (event) {
    case EW__HTTP_HEAD_DONE:
        add_both(cutter, way, bytes, used);
        end_head(cutter, way);
        break;
    case EW__HTTP_BODY:
        add_body(cutter, way, bytes, used);
        break;
    case EW__HTTP_MORE:
        (in_head ? add_both : add_raw)(cutter, way, bytes, used);
        if (in_head)
            (void)block_size(way, bytes, used);
        break;
    case EW__HTTP_END:
        add_raw(cutter, way, bytes, used);
        end_message(cutter, way);
        break;
    case EW__HTTP_ERROR: /* behind the first line, what is refused still is a head, and may have secrets */
        way->framing = in_head && reader->line > 0 ? CUT_BAD_HEAD : CUT_BYTES;
        return 0;
    }
    if (reader->state == ENDING) {
        (void)ew__http1_next(reader);
        end_message(cutter, way);
    }
    return used;
}

/* The head that was refused ends with an empty line. The reader refuses the answer to an upgrade, too. */
static size_t bad_head_step(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    const ew__http_guard *guard = &way->http->reader.guard;
    size_t size = block_size(way, bytes, n), used = size ? size : n;
    add_both(cutter, way, bytes, used);
    if (!size && way->raw_size <= HEAD_MAX)
        return used;
    give_up(way);
    if (size)
        emit_head(cutter, way);
    if (size && guard->status == 101 && guard->upgrade_field)
        cutter->ways[0].framing = cutter->ways[1].framing = CUT_WS;
    return used;
}

/* ---- frames with a head: WebSocket, lengths ---- */

/* The size of the head, or of as much of it as tells its size. */
static size_t head_size(const ew__cutter_way *way) {
    if (way->framing == CUT_LENGTH)
        return EW__LENPFX_HEAD;
    return way->n_head < 2 ? 2 : ew__ws_head_size(way->head);
}

/* False: longer than can be followed. */
static bool read_head(const ew__cutter *cutter, ew__cutter_way *way) {
    if (way->framing == CUT_WS) {
        way->fin = way->head[0] & 0x80;
        way->opcode = way->head[0] & 0x0f;
        return ew__ws_head_length(way->head, way->n_head, &way->left) && way->left <= cutter->max;
    }
    ew_str body;
    size_t size;
    ew__lenpfx_event event =
        ew__lenpfx_read(ew__str((const char *)way->head, EW__LENPFX_HEAD), cutter->max, &body, &size);
    way->left = size - EW__LENPFX_HEAD;
    return event == EW__LENPFX_MORE;
}

static void end_frame(ew__cutter *cutter, ew__cutter_way *way) {
    way->in_payload = false;
    way->n_head = 0;
    emit(cutter, way, way->framing == CUT_WS ? EW_FRAME_WEBSOCKET : EW_FRAME_LENGTH);
}

static size_t head_step(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    size_t used = 0;
    while (used < n && way->n_head < head_size(way))
        way->head[way->n_head++] = bytes[used++];
    add_raw(cutter, way, bytes, used);
    if (way->n_head < head_size(way))
        return used;
    way->in_payload = true;
    if (!read_head(cutter, way))
        give_up(way);
    else if (way->left == 0)
        end_frame(cutter, way);
    return used;
}

static size_t payload_step(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    size_t part = n < way->left ? n : (size_t)way->left, from = way->text.len;
    uint64_t offset = way->text_size;
    add_both(cutter, way, bytes, part);
    if (way->framing == CUT_WS && way->head[1] & 0x80 && way->text.len > from)
        ew__ws_mask(way->text.ptr + from, way->text.len - from, way->head + way->n_head - 4, offset);
    way->left -= part;
    if (way->left == 0)
        end_frame(cutter, way);
    return part;
}

/* ---- lines ---- */

/* The first n pending bytes belong to the current frame; its text is a part of them. */
static void use(ew__cutter *cutter, ew__cutter_way *way, size_t n) {
    add_raw(cutter, way, way->pending.ptr + way->done, n);
    way->done += n;
}

static void lines_step(ew__cutter *cutter, ew__cutter_way *way) {
    for (;;) {
        ew_str rest = ew__str(way->pending.ptr + way->done, way->pending.len - (size_t)way->done), value = {NULL, 0};
        size_t used = 0;
        ew__line_event event = ew__line_read(&way->line, rest, &value, &used);
        switch (event) {
        case EW__LINE_MORE:
            use(cutter, way, used);
            ew__buf_drop(&way->pending, (size_t)way->done);
            way->done = 0;
            return;
        case EW__LINE_LIKELY:
        case EW__LINE_VALUE:
            use(cutter, way, used);
            add_text(cutter, way, value.ptr, value.len);
            emit(cutter, way, EW_FRAME_LINE);
            break;
        case EW__LINE_BAD:
        case EW__LINE_TOO_LONG:
            use(cutter, way, used);
            emit(cutter, way, EW_FRAME_BYTES);
            break;
        default: /* the framing is lost */
            use(cutter, way, rest.len);
            give_up(way);
            ew__buf_done(&way->pending);
            return;
        }
    }
}

/* ---- all ---- */

/* By the first byte, as the wires sniff it; no known method begins as Content-Length does. */
static void begin(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    uint8_t first = bytes[0];
    unsigned frames = cutter->frames;
    if (frames == 0 || (frames & (frames - 1)) != 0)
        frames = first < '\t'                                   ? EW__FRAMES_LENGTH
                 : first >= 'A' && first <= 'Z' && first != 'C' ? EW__FRAMES_HTTP
                                                                : EW__FRAMES_LINES;
    if (!cutter->first) { /* a server may refuse a connection before it was asked */
        bool answers = n > 1 && first == 'H' && bytes[1] == 'T';
        cutter->first = &cutter->ways[(way == &cutter->ways[1]) != answers];
    }
    if (frames == EW__FRAMES_HTTP)
        begin_http(cutter, way);
    else
        way->framing = frames == EW__FRAMES_LENGTH ? CUT_LENGTH : CUT_LINES;
}

static size_t step(ew__cutter *cutter, ew__cutter_way *way, const uint8_t *bytes, size_t n) {
    switch (way->framing) {
    case CUT_UNKNOWN:
        begin(cutter, way, bytes, n);
        return 0;
    case CUT_HTTP:
        return http_step(cutter, way, bytes, n);
    case CUT_BAD_HEAD:
        return bad_head_step(cutter, way, bytes, n);
    case CUT_WS:
    case CUT_LENGTH:
        return way->in_payload ? payload_step(cutter, way, bytes, n) : head_step(cutter, way, bytes, n);
    case CUT_LINES:
        if (ew__buf_add(&way->pending, bytes, n) == EW_OK) {
            lines_step(cutter, way);
            return n;
        }
        use(cutter, way, way->pending.len - (size_t)way->done); /* no memory for what waits */
        ew__buf_done(&way->pending);
        give_up(way);
        return 0;
    default:
        add_raw(cutter, way, bytes, n);
        return n;
    }
}

void ew__cutter_init(ew__cutter *cutter, const ew_env *env, size_t keep, size_t max, ew__cutter_fn fn, void *ud) {
    *cutter = (ew__cutter){.fn = fn, .ud = ud, .keep = keep, .max = max};
    for (int i = 0; i < 2; i++) {
        ew__cutter_way *way = &cutter->ways[i];
        ew__buf_init(&way->raw, env, SIZE_MAX / 2);
        ew__buf_init(&way->text, env, SIZE_MAX / 2);
        ew__buf_init(&way->pending, env, SIZE_MAX / 2);
        ew__line_init(&way->line, EW__FRAMING_AUTO, max, false);
    }
}

void ew__cutter_feed(ew__cutter *cutter, bool out, const void *bytes, size_t n) {
    ew__cutter_way *way = &cutter->ways[out];
    const uint8_t *at = bytes;
    while (n > 0) {
        size_t used = step(cutter, way, at, n);
        at += used;
        n -= used;
    }
    if (way->framing == CUT_BYTES)
        emit(cutter, way, EW_FRAME_BYTES);
}

/* The kind of an unfinished frame. */
static ew_frame_kind last_kind(const ew__cutter_way *way, bool cut) {
    if (way->framing == CUT_LINES && !cut)
        return EW_FRAME_LINE; /* the white space behind the last one */
    if (way->framing != CUT_HTTP || is_in_head(&way->http->reader))
        return EW_FRAME_BYTES;
    return way->events ? EW_FRAME_SSE : EW_FRAME_HTTP_BODY;
}

void ew__cutter_end(ew__cutter *cutter) {
    for (int i = 0; i < 2; i++) {
        ew__cutter_way *way = &cutter->ways[i];
        bool cut = way->pending.len > way->done;
        if (cut)
            use(cutter, way, way->pending.len - (size_t)way->done);
        ew__buf_clear(&way->pending);
        way->done = 0;
        emit(cutter, way, last_kind(way, cut));
    }
}

void ew__cutter_done(ew__cutter *cutter) {
    for (int i = 0; i < 2; i++) {
        ew__buf_done(&cutter->ways[i].raw);
        ew__buf_done(&cutter->ways[i].text);
        ew__buf_done(&cutter->ways[i].pending);
        end_http(&cutter->ways[i]);
    }
}
