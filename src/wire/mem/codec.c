/*
 * wire/mem/codec.c: see codec.h. One table says which members each event has; size, write and read walk it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/mem/codec.h"
#include "base/util.h"
#include "json/json.h"

#define HEAD 5 /* event and id */

enum type { END, BYTE, NUMBER, TEXT, JSON, MAYBE_JSON };

struct member {
    uint8_t type; /* enum type */
    uint8_t at;   /* offset in ew__mem_frame */
};

#define M(type, name)                                                                                                  \
    { type, (uint8_t)offsetof(ew__mem_frame, name) }
_Static_assert(sizeof(ew__mem_frame) <= UINT8_MAX, "offsets fit a byte");

static const struct member members[][11] = {
    [EW__MEM_OPEN] = {M(BYTE, flags), M(NUMBER, number), M(NUMBER, attempt), M(BYTE, hops), M(TEXT, key),
                      M(JSON, payload), M(MAYBE_JSON, context), M(MAYBE_JSON, labels), M(TEXT, traceparent),
                      M(TEXT, tracestate)},
    [EW__MEM_CHUNK_IN] = {M(JSON, payload)},
    [EW__MEM_END_IN] = {{END, 0}},
    [EW__MEM_CANCEL] = {{END, 0}},
    [EW__MEM_ACCEPTED] = {M(TEXT, payload)},
    [EW__MEM_CHUNK_OUT] = {M(JSON, payload)},
    [EW__MEM_DONE] = {M(JSON, payload)},
    [EW__MEM_FAIL] = {M(BYTE, status), M(BYTE, flags), M(NUMBER, number), M(TEXT, message), M(MAYBE_JSON, details)},
    [EW__MEM_ROOM_OUT] = {M(NUMBER, number)},
    [EW__MEM_ROOM_IN] = {M(NUMBER, number)},
};

static bool known(uint8_t event) { return event >= EW__MEM_OPEN && event <= EW__MEM_ROOM_IN; }

bool ew__mem_from_caller(uint8_t event) { return event <= EW__MEM_CANCEL || event == EW__MEM_ROOM_OUT; }

/* ---- writing ---- */

static const void *place(const ew__mem_frame *frame, const struct member *member) {
    return (const uint8_t *)frame + member->at;
}

static ew_str text_at(const ew__mem_frame *frame, const struct member *member) {
    ew_str text;
    memcpy(&text, place(frame, member), sizeof text);
    return text;
}

uint64_t ew__mem_length(const ew__mem_frame *frame) {
    uint64_t length = HEAD;
    for (const struct member *member = members[frame->event]; member->type != END; member++) {
        if (member->type == BYTE)
            length += 1;
        else if (member->type == NUMBER)
            length += 8;
        else
            length += 4 + (uint64_t)text_at(frame, member).len;
    }
    return length;
}

static void write_number(ew__out *out, uint64_t number, unsigned bytes) {
    uint8_t digits[8];
    for (unsigned i = 0; i < bytes; i++)
        digits[i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
    ew__out_add(out, digits, bytes);
}

static void write_member(ew__out *out, const ew__mem_frame *frame, const struct member *member) {
    if (member->type == BYTE) {
        ew__out_add(out, place(frame, member), 1);
    } else if (member->type == NUMBER) {
        uint64_t number;
        memcpy(&number, place(frame, member), sizeof number);
        write_number(out, number, 8);
    } else {
        ew_str text = text_at(frame, member);
        write_number(out, text.len, 4);
        ew__out_str(out, text);
    }
}

void ew__mem_write(ew__out *out, const ew__mem_frame *frame) {
    write_number(out, ew__mem_length(frame), 4);
    write_number(out, frame->event, 1);
    write_number(out, frame->id, 4);
    for (const struct member *member = members[frame->event]; member->type != END; member++)
        write_member(out, frame, member);
}

/* ---- reading ---- */

/* Takes a number off the front; false when there are too few bytes. */
static bool take_number(ew_str *rest, unsigned bytes, uint64_t *ret) {
    if (rest->len < bytes)
        return false;
    *ret = 0;
    for (unsigned i = 0; i < bytes; i++)
        *ret = *ret << 8 | (uint8_t)rest->ptr[i];
    *rest = ew__str(rest->ptr + bytes, rest->len - bytes);
    return true;
}

static bool take_text(ew_str *rest, ew_str *ret) {
    uint64_t length = 0;
    if (!take_number(rest, 4, &length) || rest->len < length)
        return false;
    *ret = ew__str(rest->ptr, (size_t)length);
    *rest = ew__str(rest->ptr + length, rest->len - (size_t)length);
    return true;
}

/* Payloads are validated once, on entry: everything above this room relies on that. */
static ew_err check_json(ew_str text, bool may_be_empty) {
    ew__json_doc doc;
    if (text.len == 0 && may_be_empty)
        return EW_OK;
    return ew__json_parse(&doc, text) == EW_OK ? EW_OK : EW_ESYNTAX; /* a call checks the limit of a payload itself */
}

static ew_err read_member(ew_str *rest, const struct member *member, ew__mem_frame *frame) {
    uint8_t *into = (uint8_t *)frame + member->at;
    uint64_t number = 0;
    ew_str text;
    if (member->type == BYTE || member->type == NUMBER) {
        if (!take_number(rest, member->type == BYTE ? 1 : 8, &number))
            return EW_EPROTO;
        if (member->type == BYTE)
            *into = (uint8_t)number;
        else
            memcpy(into, &number, sizeof number);
        return EW_OK;
    }
    if (!take_text(rest, &text))
        return EW_EPROTO;
    ew_err err = member->type == TEXT ? EW_OK : check_json(text, member->type == MAYBE_JSON);
    memcpy(into, &text, sizeof text);
    return err;
}

static ew_err read_body(ew_str body, ew__mem_frame *frame) {
    uint64_t number = 0;
    if (!take_number(&body, 1, &number) || !known((uint8_t)number))
        return EW_EPROTO;
    frame->event = (uint8_t)number;
    if (!take_number(&body, 4, &number))
        return EW_EPROTO;
    frame->id = (uint32_t)number;
    for (const struct member *member = members[frame->event]; member->type != END; member++) {
        ew_err err = read_member(&body, member, frame);
        if (err != EW_OK)
            return err;
    }
    return body.len == 0 ? EW_OK : EW_EPROTO;
}

ew_err ew__mem_read(ew_str bytes, uint64_t max, ew__mem_frame *ret, size_t *ret_size) {
    uint64_t length = 0;
    *ret_size = 0;
    if (!take_number(&bytes, 4, &length))
        return EW_OK;
    if (length < HEAD)
        return EW_EPROTO;
    if (length > max)
        return EW_ELIMIT;
    if (bytes.len < length)
        return EW_OK;
    memset(ret, 0, sizeof *ret);
    ew_err err = read_body(ew__str(bytes.ptr, (size_t)length), ret);
    if (err == EW_OK)
        *ret_size = 4 + (size_t)length;
    return err;
}
