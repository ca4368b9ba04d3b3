/*
 * frame/sse.c: lines, and blocks of lines, out of a streamed answer. A block that is one line of the fed bytes is
 * handed out where it lies; only what is cut by a feed or has several lines is copied. What a payload means is not
 * known here.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/sse.h"

#include "base/util.h"

#define LINE_SLACK ((size_t)16)  /* a line may be longer than its payload by the name, the colon and the space */
#define PLAIN_MAX ((size_t)1024) /* bytes of a block that is looked for at once */

void ew__sse_init(ew__sse *sse, const ew_env *env, size_t max_block) {
    *sse = (ew__sse){.max_block = max_block};
    ew__buf_init(&sse->line, env, max_block + LINE_SLACK);
    ew__buf_init(&sse->block, env, max_block);
}

void ew__sse_done(ew__sse *sse) {
    ew__buf_done(&sse->line);
    ew__buf_done(&sse->block);
}

void ew__sse_feed(ew__sse *sse, const void *bytes, size_t n) {
    sse->in = bytes;
    sse->in_len = n;
}

void ew__sse_feed_eof(ew__sse *sse) { sse->eof = true; }

ew_str ew__sse_payload(const ew__sse *sse) { return sse->view.ptr != NULL ? sse->view : ew__buf_view(&sse->block); }

static ew__sse_kind bad(ew__sse *sse, ew_err err) {
    sse->err = err;
    return EW__SSE_BAD;
}

/* ---- lines ---- */

static uint64_t zero_bytes(uint64_t w) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    return (w - ones) & ~w & ones << 7;
}

/* The place of the first CR or LF, or n. One pass: two searches would go over a text without LF again for each CR. */
static size_t find_end(const char *p, size_t n) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        if ((zero_bytes(w ^ ones * '\n') | zero_bytes(w ^ ones * '\r')) != 0) {
            break;
        }
    }
    while (i < n && p[i] != '\n' && p[i] != '\r') {
        i++;
    }
    return i;
}

/* Keeps a line that has not ended, at the end of the fed bytes. */
static ew_err keep_line(ew__sse *sse, const char *bytes, size_t n) {
    if (!sse->line_open) {
        ew__buf_clear(&sse->line);
        sse->line_open = true;
    }
    return ew__buf_add(&sse->line, bytes, n);
}

/* The payload of the block moves to where it outlives the fed bytes and the next unfinished line. */
static ew_err settle(ew__sse *sse) {
    if (sse->view.ptr == NULL) {
        return EW_OK;
    }
    ew_err err = ew__buf_str(&sse->block, sse->view);
    sse->view.ptr = NULL;
    return err;
}

/* Takes the next whole line off the fed bytes: 1 and *ret_text, 0 when there is none, or an error. */
static int read_line(ew__sse *sse, ew_str *ret_text) {
    if (sse->last_cr && sse->in_len > 0) {
        sse->last_cr = false;
        if (sse->in[0] == '\n') {
            sse->in++;
            sse->in_len--;
        }
    }
    const char *start = sse->in;
    size_t n = sse->in_len > 0 ? find_end(start, sse->in_len) : 0;
    bool ends = n < sse->in_len;
    ew_err err = EW_OK;
    *ret_text = ew__str(start, n);
    if (n > 0 && (sse->line_open || !ends)) {
        err = !ends ? settle(sse) : EW_OK;
        err = err == EW_OK ? keep_line(sse, start, n) : err;
    }
    if (err != EW_OK || !ends) {
        sse->in_len = 0;
        return err != EW_OK ? (int)err : 0;
    }
    sse->last_cr = start[n] == '\r';
    sse->in += n + 1;
    sse->in_len -= n + 1;
    if (sse->line_open) {
        *ret_text = ew__buf_view(&sse->line);
        sse->line_open = false;
    }
    return ret_text->len <= sse->max_block + LINE_SLACK ? 1 : (int)EW_ELIMIT;
}

/* ---- blocks ---- */

/* Adds one line of payload to the block. */
static ew_err add_payload(ew__sse *sse, ew_str value) {
    if (sse->kind == EW__SSE_MORE) {
        sse->view = value;
        return value.len <= sse->max_block ? EW_OK : EW_ELIMIT;
    }
    settle(sse); /* a failure sticks to the buffer and shows below */
    ew__buf_char(&sse->block, '\n');
    return ew__buf_str(&sse->block, value);
}

static ew__sse_kind hand_out(ew__sse *sse) {
    if (sse->kind == EW__SSE_DATA && ew__sse_payload(sse).len == 0) {
        sse->kind = EW__SSE_MORE;
    }
    sse->ready = sse->kind != EW__SSE_MORE;
    return (ew__sse_kind)sse->kind;
}

static ew__sse_kind payload_line(ew__sse *sse, ew_str text, ew__sse_kind kind, ew_str value) {
    if (sse->kind != EW__SSE_MORE && sse->kind != kind) {
        /* Some servers end a stream with an error line right behind a data line: two blocks. */
        sse->held = text;
        sse->holds = true;
        ew__sse_kind out = hand_out(sse);
        if (out != EW__SSE_MORE) {
            return out;
        }
        sse->holds = false;
    }
    ew_err err = add_payload(sse, value);
    sse->kind = (uint8_t)kind;
    return err == EW_OK ? EW__SSE_MORE : bad(sse, err);
}

/* Understands one line. MORE: go on reading. */
static ew__sse_kind take_line(ew__sse *sse, ew_str text) {
    if (text.len == 0 || ew__str_is(text, EW_STR("END"))) {
        return hand_out(sse);
    }
    const char *colon = memchr(text.ptr, ':', text.len < LINE_SLACK ? text.len : LINE_SLACK);
    ew_str name = ew__str(text.ptr, colon != NULL ? (size_t)(colon - text.ptr) : text.len);
    ew_str value = ew__str(text.ptr + name.len, 0);
    if (colon != NULL) {
        value = ew__str(colon + 1, text.len - name.len - 1);
        if (value.len > 0 && value.ptr[0] == ' ') {
            value.ptr++;
            value.len--;
        }
    }
    if (ew__str_is(name, EW_STR("data"))) {
        return payload_line(sse, text, EW__SSE_DATA, value);
    }
    if (ew__str_is(name, EW_STR("error"))) {
        return payload_line(sse, text, EW__SSE_FAULT, value);
    }
    bool known = name.len == 0 || ew__str_is(name, EW_STR("event")) || ew__str_is(name, EW_STR("id")) ||
                 ew__str_is(name, EW_STR("retry"));
    return known ? EW__SSE_MORE : bad(sse, EW_EPROTO);
}

static ew_str without_mark(ew__sse *sse, ew_str text) {
    if (!sse->started && ew__str_has_prefix(text, EW_STR("\xef\xbb\xbf"))) {
        text.ptr += 3;
        text.len -= 3;
    }
    sse->started = true;
    return text;
}

/* The bytes are used up. */
static ew__sse_kind run_dry(ew__sse *sse) {
    if (sse->eof && sse->line_open) {
        sse->line_open = false;
        ew__sse_kind out = take_line(sse, without_mark(sse, ew__buf_view(&sse->line)));
        if (out != EW__SSE_MORE) {
            return out;
        }
    }
    if (sse->eof) {
        return hand_out(sse);
    }
    ew_err err = settle(sse);
    return err == EW_OK ? EW__SSE_MORE : bad(sse, err);
}

/* The ordinary way: line by line. */
static ew__sse_kind take_any_block(ew__sse *sse) {
    for (;;) {
        if (sse->kind == EW__SSE_MORE) {
            sse->view = ew__str(NULL, 0);
            ew__buf_clear(&sse->block);
        }
        ew_str text = sse->held;
        int got = 1;
        if (!sse->holds) {
            got = read_line(sse, &text);
            text = got == 1 ? without_mark(sse, text) : text;
        }
        sse->holds = false;
        if (got != 1) {
            return got == 0 ? run_dry(sse) : bad(sse, (ew_err)got);
        }
        ew__sse_kind out = take_line(sse, text);
        if (out != EW__SSE_MORE) {
            return out;
        }
    }
}

/*
 * The block that nearly all of a stream consists of: "data: ", a payload, two LF, all of it here. One search in place of
 * two lines that are read and understood. Small ones only, so that a stream of other line ends is not searched through
 * for each of its lines.
 */
static bool take_plain_block(ew__sse *sse) {
    const ew_str name = EW_STR("data: ");
    size_t n = sse->in_len < PLAIN_MAX ? sse->in_len : PLAIN_MAX;
    if (sse->kind != EW__SSE_MORE || sse->holds || sse->line_open || sse->last_cr || !sse->started || n <= name.len ||
        memcmp(sse->in, name.ptr, name.len) != 0) {
        return false;
    }
    const char *lf = memchr(sse->in, '\n', n);
    size_t len = lf != NULL ? (size_t)(lf - sse->in) : 0;
    if (len <= name.len || len + 1 >= sse->in_len || lf[1] != '\n' || len - name.len > sse->max_block ||
        memchr(sse->in, '\r', len) != NULL) {
        return false;
    }
    sse->view = ew__str(sse->in + name.len, len - name.len);
    sse->in += len + 2;
    sse->in_len -= len + 2;
    sse->kind = EW__SSE_DATA;
    sse->ready = true;
    return true;
}

ew__sse_kind ew__sse_next(ew__sse *sse) {
    if (sse->err != EW_OK) {
        return EW__SSE_BAD;
    }
    if (sse->ready) {
        sse->ready = false;
        sse->kind = EW__SSE_MORE;
    }
    if (EW__LIKELY(take_plain_block(sse))) {
        return EW__SSE_DATA;
    }
    bool dry = sse->in_len == 0 && sse->kind == EW__SSE_MORE && !sse->holds && !sse->eof;
    return EW__LIKELY(dry) ? EW__SSE_MORE : take_any_block(sse);
}
