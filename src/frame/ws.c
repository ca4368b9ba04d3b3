/*
 * frame/ws.c: messages out of WebSocket frames. Every verdict on a frame depends on the bytes up to it only, never on
 * how they were cut: a head is judged byte by byte in order, text is checked as it comes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ws.h"

#include "base/mem.h"
#include "base/util.h"
#include "frame/ws_decoder.h"

#define SECOND UINT64_C(1000000000)
#define KEPT_MEMORY ((size_t)4096) /* memory of a message up to this size is kept for the next one */

enum { FIN = 0x80, MASKED = 0x80 };
enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

/* ---- life ---- */

void ew__ws_init(ew__ws *ws, ew__ws_scratch *scratch, bool server, size_t max) {
    *ws = (ew__ws){.scratch = scratch, .server = server};
    ew__buf_init(&ws->message, scratch->env, max);
}

/* The memory of the message goes back: to the scratch if it is small, so that the next cut message need not ask. */
static void drop_message(ew__ws *ws) {
    ew__ws_scratch *scratch = ws->scratch;
    ws->handed_message = false;
    if (scratch->memory == NULL && ws->message.cap <= KEPT_MEMORY) {
        size_t len;
        scratch->memory = ew__buf_take(&ws->message, &len, &scratch->memory_cap);
    }
    ew__buf_done(&ws->message);
}

static void drop_decoder(ew__ws *ws) {
    if (ws->decoder != NULL) {
        ew__ws_decoder_put(ws->scratch, ws->decoder, !ws->in_frame);
        ws->decoder = NULL;
    }
}

void ew__ws_done(ew__ws *ws) {
    drop_decoder(ws);
    drop_message(ws);
}

static ew_err add_to_message(ew__ws *ws, ew_str piece) {
    ew__ws_scratch *scratch = ws->scratch;
    if (ws->message.ptr == NULL && scratch->memory != NULL && piece.len > 0 && scratch->memory_cap <= ws->message.max) {
        ws->message.ptr = scratch->memory;
        ws->message.cap = scratch->memory_cap;
        scratch->memory = NULL;
        scratch->memory_cap = 0;
    }
    return ew__buf_str(&ws->message, piece);
}

/* Nothing more is read; what was being read goes. */
static ew__ws_event stop(ew__ws *ws, ew__ws_event event) {
    ws->in_len = 0;
    ws->event = (uint8_t)event;
    return event;
}

static ew__ws_event fail(ew__ws *ws, uint16_t code, const char *why) {
    drop_decoder(ws);
    drop_message(ws);
    ws->in_frame = false;
    ws->n_head = 0;
    ws->opcode = 0;
    ws->skipping = false;
    ws->payload = ew__str(NULL, 0);
    ws->code = code;
    ws->why = why;
    return stop(ws, EW__WS_ERROR);
}

/* ---- the guard: heads of frames ---- */

size_t ew__ws_head_size(const uint8_t *p) {
    unsigned length = p[1] & 0x7fu;
    return 2u + (length == 126 ? 2 : length == 127 ? 8 : 0) + (p[1] & 0x80 ? 4 : 0);
}

bool ew__ws_head_length(const uint8_t *p, size_t n, uint64_t *ret_length) {
    uint64_t length = p[1] & 0x7fu;
    size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (n < 2 + more) {
        return false;
    }
    for (size_t i = 0; i < more; i++) {
        length = (i == 0 ? 0 : length << 8) | p[2 + i];
    }
    *ret_length = length;
    return true;
}

/* What is wrong with the first byte, or NULL. */
static const char *judge_first(const ew__ws *ws, uint8_t first) {
    unsigned opcode = first & 0x0fu;
    if ((first & 0x70) != 0) {
        return "a reserved bit is set";
    }
    if (opcode > PONG || (opcode > BINARY && opcode < CLOSE)) {
        return "reserved opcode";
    }
    if (opcode >= CLOSE) {
        return first & 0x80 ? NULL : "a control frame is fragmented";
    }
    if (opcode == CONTINUATION) {
        return ws->opcode != 0 ? NULL : "a continuation of nothing";
    }
    return ws->opcode == 0 ? NULL : "a new message inside a fragmented one";
}

/* Whether a data frame of that length makes its message longer than the limit. */
static bool is_over(const ew__ws *ws, uint64_t length) {
    return ws->skipping || length > ws->message.max - ws->message.len;
}

/* How many bytes of a message over the limit may still be skipped. */
static uint64_t skip_room(const ew__ws *ws) {
    uint64_t used = ws->skipped + ws->message.len;
    return ws->skip_max > used ? ws->skip_max - used : 0;
}

/* What is wrong with the length, whose first 7 bits are `shortest`. */
static ew__ws_event judge_length(ew__ws *ws, unsigned opcode, unsigned shortest, uint64_t length) {
    if (length >> 63 != 0) {
        return fail(ws, EW__WS_PROTOCOL, "a length with its top bit set");
    }
    if ((shortest == 126 && length < 126) || (shortest == 127 && length <= UINT16_MAX)) {
        return fail(ws, EW__WS_PROTOCOL, "a length is not as short as it could be");
    }
    if (opcode < CLOSE && is_over(ws, length) && (ws->skim == NULL || length > skip_room(ws))) {
        return fail(ws, EW__WS_TOO_BIG, "message too big");
    }
    return EW__WS_MORE;
}

/* Judges as much of a head as there is (n >= 1): ERROR, or MORE if there is nothing wrong so far. */
static ew__ws_event judge(ew__ws *ws, const uint8_t *p, size_t n) {
    const char *why = judge_first(ws, p[0]);
    unsigned opcode = p[0] & 0x0fu;
    uint64_t length;
    if (why != NULL) {
        return fail(ws, EW__WS_PROTOCOL, why);
    }
    if (n < 2) {
        return EW__WS_MORE;
    }
    if (((p[1] & 0x80) != 0) != ws->server) {
        return fail(ws, EW__WS_PROTOCOL, ws->server ? "a client's frame is not masked" : "a server's frame is masked");
    }
    if (opcode >= CLOSE && (p[1] & 0x7f) > EW__WS_CONTROL_MAX) {
        return fail(ws, EW__WS_PROTOCOL, "a control frame is too long");
    }
    return ew__ws_head_length(p, n, &length) ? judge_length(ws, opcode, p[1] & 0x7fu, length) : EW__WS_MORE;
}

/* Limits on the number of frames; the head is good. */
static ew__ws_event count_frame(ew__ws *ws, unsigned opcode, uint64_t now_ns) {
    if (opcode < CLOSE) {
        ws->n_frames = opcode == CONTINUATION ? ws->n_frames + 1 : 1;
        return ws->n_frames <= EW__WS_FRAMES_MAX ? EW__WS_MORE : fail(ws, EW__WS_POLICY, "too many fragments");
    }
    if (opcode == CLOSE) {
        return EW__WS_MORE;
    }
    if (ws->n_controls == 0 || now_ns - ws->second >= SECOND) {
        ws->second = now_ns;
        ws->n_controls = 0;
    }
    if (ws->n_controls >= EW__WS_CONTROLS_A_SECOND) {
        return fail(ws, EW__WS_POLICY, "too many control frames");
    }
    ws->n_controls++;
    return EW__WS_MORE;
}

/* ---- messages ---- */

static ew__ws_event hand_out(ew__ws *ws, ew__ws_event event, ew_str payload) {
    ws->payload = payload;
    ws->event = (uint8_t)event;
    return event;
}

/*
 * The size of the head if a message in one frame comes next that lies whole in the bytes fed: the common case, in one
 * look. 0: the guard looks at the frame, byte by byte. Nothing is taken here that it would refuse.
 */
static size_t head_of_whole(const ew__ws *ws, size_t *ret_length) {
    const uint8_t *p = ws->in;
    if (ws->in_len < 4 || ws->n_head != 0 || ws->opcode != 0 || (p[0] != (FIN | TEXT) && p[0] != (FIN | BINARY))) {
        return 0;
    }
    size_t shortest = p[1] ^ (ws->server ? MASKED : 0u); /* 128 and more: masked, and should not be, or the other way */
    bool is_long = shortest == 126;
    size_t length = is_long ? (size_t)p[2] << 8 | p[3] : shortest;
    size_t n_head = (is_long ? 4u : 2u) + (ws->server ? 4u : 0u);
    size_t most = ws->server && ws->message.max > EW__WS_WHOLE_MAX ? EW__WS_WHOLE_MAX : ws->message.max;
    bool good = shortest <= 126 && (!is_long || length >= 126) && length <= most && n_head + length <= ws->in_len;
    *ret_length = length;
    return good ? n_head : 0;
}

static bool is_utf8(const void *bytes, size_t n) {
    ew__utf8 check = {0};
    return ew__utf8_feed(&check, bytes, n) && ew__utf8_is_whole(&check);
}

/* Such a message. Kept apart from everything else because this is where the time goes. */
static ew__ws_event whole_message(ew__ws *ws, size_t n_head, size_t length) {
    const uint8_t *payload = ws->in + n_head;
    bool text = ws->in[0] == (FIN | TEXT), ascii = false;
    if (ws->server) {
        ascii = ew__ws_xor(ws->scratch->bytes, payload, length, payload - 4);
        payload = ws->scratch->bytes;
    }
    ws->in += n_head + length;
    ws->in_len -= n_head + length;
    if (text && !ascii && !is_utf8(payload, length)) {
        return fail(ws, EW__WS_BAD_TEXT, "text is not UTF-8");
    }
    return hand_out(ws, text ? EW__WS_TEXT : EW__WS_BINARY, ew__str(payload, length));
}

static ew__ws_event end_close(ew__ws *ws, ew_str body) {
    const uint8_t *p = (const uint8_t *)body.ptr;
    uint16_t code = EW__WS_NO_CODE;
    if (body.len == 1) {
        return fail(ws, EW__WS_PROTOCOL, "a close frame with half a code");
    }
    if (body.len >= 2) {
        code = (uint16_t)(p[0] << 8 | p[1]);
        body = ew__str(body.ptr + 2, body.len - 2);
        if (!ew__ws_code_ok(code)) {
            return fail(ws, EW__WS_PROTOCOL, "a close code that may not be sent");
        }
        if (!is_utf8(body.ptr, body.len)) {
            return fail(ws, EW__WS_BAD_TEXT, "the reason of a close frame is not UTF-8");
        }
    }
    drop_message(ws);
    ws->opcode = 0;
    ws->close_got = true;
    ws->code = code;
    ws->payload = body;
    return stop(ws, EW__WS_CLOSE);
}

/* The frame was decoded to its end. MORE: it was a fragment. */
static ew__ws_event end_frame(ew__ws *ws) {
    const ew__ws_decoder *decoder = ws->decoder;
    ew_str control = ew__str(decoder->control, decoder->n_control);
    ws->in_frame = false;
    switch (decoder->frame.opcode) {
    case CLOSE:
        return end_close(ws, control);
    case PING:
        return hand_out(ws, EW__WS_PING, control);
    case PONG:
        return hand_out(ws, EW__WS_PONG, control);
    default:
        break;
    }
    if (!decoder->frame.fin) {
        drop_decoder(ws);
        return EW__WS_MORE;
    }
    if (!ew__utf8_is_whole(&ws->text)) {
        return fail(ws, EW__WS_BAD_TEXT, "text ends inside a character");
    }
    ew__ws_event event = ws->opcode == TEXT ? EW__WS_TEXT : EW__WS_BINARY;
    ws->opcode = 0;
    if (ws->skipping) {
        ws->skipping = false;
        return hand_out(ws, EW__WS_TOO_LARGE, ew__str(NULL, 0));
    }
    ws->handed_message = true;
    return hand_out(ws, event, ew__buf_view(&ws->message));
}

/* One piece of the payload. MORE or ERROR. */
static ew__ws_event take_piece(ew__ws *ws, ew_str piece) {
    ew__ws_decoder *decoder = ws->decoder;
    if (piece.len > ws->left) {
        return fail(ws, EW__WS_PROTOCOL, "a frame was read in two ways");
    }
    ws->left -= piece.len;
    if (decoder->frame.opcode >= CLOSE) { /* the guard has seen that it fits */
        memcpy(decoder->control + decoder->n_control, piece.ptr, piece.len);
        decoder->n_control = (uint8_t)(decoder->n_control + piece.len);
        return EW__WS_MORE;
    }
    if (ws->opcode == TEXT && !ew__utf8_feed(&ws->text, piece.ptr, piece.len)) {
        return fail(ws, EW__WS_BAD_TEXT, "text is not UTF-8");
    }
    if (ws->skipping) {
        ws->skipped += piece.len;
        ws->skim(ws->skim_ud, piece);
        return EW__WS_MORE;
    }
    return add_to_message(ws, piece) == EW_OK ? EW__WS_MORE : fail(ws, EW__WS_INTERNAL, "no memory");
}

/* Decodes what there is of the frame. MORE: it is not over, or was a fragment. */
static ew__ws_event read_payload(ew__ws *ws) {
    size_t n = ws->left < ws->in_len ? (size_t)ws->left : ws->in_len;
    ew_str piece = {0};
    ew__ws_decoder_feed(ws->decoder, ws->in, n);
    ws->in += n;
    ws->in_len -= n;
    while (n > 0) {
        if (!ew__ws_decoder_piece(ws->decoder, &piece) || piece.len == 0 || piece.len > n) {
            return fail(ws, EW__WS_PROTOCOL, "a frame was read in two ways");
        }
        n -= piece.len;
        if (take_piece(ws, piece) == EW__WS_ERROR) {
            return EW__WS_ERROR;
        }
    }
    return ws->left == 0 ? end_frame(ws) : EW__WS_MORE;
}

/* What was kept of the message so far is its beginning. */
static void begin_skipping(ew__ws *ws) {
    if (ws->skipping) {
        return;
    }
    ws->skipping = true;
    ws->skipped = ws->message.len;
    ws->skim(ws->skim_ud, ew__buf_view(&ws->message));
    drop_message(ws);
}

/* A frame for the decoder; p is its head, judged and whole. */
static ew__ws_event begin_frame(ew__ws *ws, const uint8_t *p, size_t n_head, uint64_t length) {
    ew__ws_frame frame = {
        .length = length, .opcode = p[0] & 0x0f, .fin = (p[0] & 0x80) != 0, .masked = (p[1] & 0x80) != 0};
    ws->decoder = ew__ws_decoder_get(ws->scratch);
    if (ws->decoder == NULL) {
        return fail(ws, EW__WS_INTERNAL, "no memory");
    }
    ws->in_frame = true;
    if (!ew__ws_decoder_begin(ws->decoder, &frame, p, n_head)) {
        return fail(ws, EW__WS_PROTOCOL, "a frame was read in two ways");
    }
    ws->left = length;
    if (frame.opcode < CLOSE && is_over(ws, length)) {
        begin_skipping(ws);
    }
    if (frame.opcode == TEXT || frame.opcode == BINARY) {
        ws->opcode = frame.opcode;
    }
    return read_payload(ws);
}

/* Completes a head that was cut. Returns whether it is all there; *ret_event: MORE, or an ERROR. */
static bool collect_head(ew__ws *ws, ew__ws_event *ret_event) {
    *ret_event = EW__WS_MORE;
    while (ws->in_len > 0 && *ret_event == EW__WS_MORE) {
        ws->head[ws->n_head++] = *ws->in++;
        ws->in_len--;
        if (ws->n_head >= 2 && ws->n_head == ew__ws_head_size(ws->head)) {
            *ret_event = judge(ws, ws->head, ws->n_head);
            return *ret_event == EW__WS_MORE;
        }
        *ret_event = judge(ws, ws->head, ws->n_head);
    }
    return false;
}

/* The next frame begins in the bytes fed, or goes on with its head. */
static ew__ws_event read_frame(ew__ws *ws, uint64_t now_ns) {
    const uint8_t *p = ws->in;
    size_t n_head = ws->n_head == 0 && ws->in_len >= 2 ? ew__ws_head_size(p) : SIZE_MAX;
    uint64_t length = 0;
    ew__ws_event event;
    if (n_head <= ws->in_len) {
        event = judge(ws, p, n_head);
        (void)ew__ws_head_length(p, n_head, &length);
        bool message = p[0] == (FIN | TEXT) || p[0] == (FIN | BINARY);
        if (event == EW__WS_MORE && message && !ws->server && !is_over(ws, length) && length <= ws->in_len - n_head) {
            return whole_message(ws, n_head, (size_t)length); /* a long one */
        }
        if (event == EW__WS_MORE) {
            ws->in += n_head;
            ws->in_len -= n_head;
        }
    } else {
        if (!collect_head(ws, &event)) {
            return event;
        }
        p = ws->head;
        n_head = ws->n_head;
        ws->n_head = 0;
        (void)ew__ws_head_length(p, n_head, &length);
    }
    event = event == EW__WS_MORE ? count_frame(ws, p[0] & 0x0fu, now_ns) : event;
    return event == EW__WS_MORE ? begin_frame(ws, p, n_head, length) : event;
}

/* ---- the reader ---- */

ew_err ew__ws_feed(ew__ws *ws, const void *bytes, size_t n) {
    if (ws->in_len > 0) {
        return EW_EINVAL;
    }
    if (ws->close_got || ws->event == EW__WS_ERROR) {
        return EW_OK; /* nothing is read any more */
    }
    ws->in = bytes;
    ws->in_len = n;
    return EW_OK;
}

size_t ew__ws_row(ew__ws *ws, ew_str *row, size_t max) {
    uint8_t *memory = ws->scratch->bytes, *memory_end = memory + sizeof(ws->scratch->bytes);
    size_t n = 0, length = 0, n_head;
    if (ws->event == EW__WS_ERROR || ws->in_frame || ws->decoder != NULL || ws->handed_message) {
        return 0;
    }
    ws->event = EW__WS_MORE;
    ws->payload = ew__str(NULL, 0);
    while (n < max && (n_head = head_of_whole(ws, &length)) > 0 && ws->in[0] == (FIN | TEXT)) {
        const uint8_t *payload = ws->in + n_head;
        if (ws->server) {
            if (length > (size_t)(memory_end - memory) || !ew__ws_xor(memory, payload, length, payload - 4)) {
                break; /* beyond ASCII: it is to be looked at */
            }
            payload = memory;
            memory += length;
        } else if (!is_utf8(payload, length)) {
            break;
        }
        row[n++] = ew__str(payload, length);
        ws->in += n_head + length;
        ws->in_len -= n_head + length;
    }
    return n;
}

/* A head is as short as it can be, so that it is known how long it was. */
void ew__ws_row_back(ew__ws *ws, const ew_str *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t bytes = (row[i].len < 126 ? 2u : 4u) + (ws->server ? 4u : 0u) + row[i].len;
        ws->in -= bytes;
        ws->in_len += bytes;
    }
}

ew__ws_event ew__ws_next(ew__ws *ws, uint64_t now_ns) {
    if (EW__UNLIKELY(ws->event == EW__WS_ERROR)) {
        return EW__WS_ERROR;
    }
    if (EW__UNLIKELY(ws->decoder != NULL && !ws->in_frame)) {
        drop_decoder(ws); /* what was handed out last is no longer needed */
    }
    if (EW__UNLIKELY(ws->handed_message)) {
        drop_message(ws);
    }
    ew__ws_event event = EW__WS_MORE;
    ws->event = EW__WS_MORE;
    ws->payload = ew__str(NULL, 0);
    size_t length, n_head = ws->in_frame ? 0 : head_of_whole(ws, &length);
    if (EW__LIKELY(n_head > 0)) {
        return whole_message(ws, n_head, length);
    }
    while (ws->in_len > 0 && event == EW__WS_MORE) {
        event = ws->in_frame ? read_payload(ws) : read_frame(ws, now_ns);
    }
    return event;
}

void ew__ws_forget(ew__ws *ws) { ws->in_len = 0; }

bool ew__ws_is_idle(const ew__ws *ws) {
    return ws->in_len == 0 && ws->n_head == 0 && !ws->in_frame && ws->opcode == 0 && ws->decoder == NULL &&
           !ws->handed_message;
}
