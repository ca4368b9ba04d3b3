/*
 * json/tape.c: see tape.h. One pass, without recursion.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "json/json.h"
#include "json/tape.h"
#include <everywire/limits.h>

void ew__tape_done(ew__tape *tape) {
    if (tape->items != tape->small) {
        ew__free(tape->env, tape->items, tape->cap * sizeof *tape->items);
    }
    tape->items = tape->small;
    tape->n = 0;
    tape->cap = EW__TAPE_SMALL;
}

static ew_err grow(ew__tape *tape) {
    if (tape->cap >= EW__TAPE_MAX) {
        return EW_ELIMIT;
    }
    uint32_t cap = tape->cap * 4 < EW__TAPE_MAX ? tape->cap * 4 : EW__TAPE_MAX;
    bool small = tape->items == tape->small;
    size_t old_size = small ? 0 : tape->cap * sizeof *tape->items;
    ew__tape_item *items = ew__realloc(tape->env, small ? NULL : tape->items, old_size, cap * sizeof *items);
    if (items == NULL) {
        return EW_ENOMEM;
    }
    if (small) {
        memcpy(items, tape->small, sizeof tape->small);
    }
    tape->items = items;
    tape->cap = cap;
    return EW_OK;
}

static ew_err add(ew__tape *tape, const char *at) {
    ew_err err = tape->n == tape->cap ? grow(tape) : EW_OK;
    if (err == EW_OK) {
        tape->items[tape->n] = (ew__tape_item){(uint32_t)(at - tape->text.ptr), tape->n + 1};
        tape->n++;
    }
    return err;
}

ew_err ew__tape_read(ew__tape *tape, const ew_env *env, ew_str text) {
    uint32_t open[EW_JSON_DEPTH];
    unsigned depth = 0;
    const char *at = text.ptr, *end = ew__json_end(text);
    ew_err err = EW_OK;
    tape->env = env;
    tape->text = text;
    tape->items = tape->small;
    tape->n = 0;
    tape->cap = EW__TAPE_SMALL;
    while (err == EW_OK && at < end) {
        switch (*at) {
        case '{':
        case '[':
            if (depth == EW_JSON_DEPTH) {
                return EW_ELIMIT;
            }
            open[depth++] = tape->n;
            err = add(tape, at++);
            break;
        case '}':
        case ']':
            if (depth == 0) {
                return EW_ESYNTAX;
            }
            tape->items[open[--depth]].after = tape->n;
            at++;
            break;
        case ',':
        case ':':
        case ' ':
        case '\t':
        case '\r':
        case '\n':
            at++;
            break;
        default:
            err = add(tape, at);
            at = ew__json_skip_value(at, end);
        }
    }
    if (err != EW_OK) {
        return err;
    }
    return depth == 0 && tape->n > 0 && tape->items[0].after == tape->n ? EW_OK : EW_ESYNTAX;
}

uint32_t ew__tape_count(const ew__tape *tape, uint32_t container) {
    uint32_t n = 0, step = *ew__tape_at(tape, container) == '{' ? 1 : 0;
    for (uint32_t i = container + 1; i < ew__tape_end(tape, container); i = ew__tape_next_element(tape, i + step)) {
        n++;
    }
    return n;
}

uint32_t ew__tape_member(const ew__tape *tape, uint32_t object, ew_str name) {
    if (ew__tape_type(tape, object) != EW_JSON_OBJECT) {
        return 0;
    }
    for (uint32_t i = object + 1; i < ew__tape_end(tape, object); i = ew__tape_next_member(tape, i)) {
        if (ew__json_name_is(ew__tape_string(tape, i), name)) {
            return i + 1;
        }
    }
    return 0;
}

void ew__json_pointer_add(ew__buf *out, ew_str raw) {
    const char *at = raw.ptr, *end = ew__json_end(raw);
    (void)ew__buf_char(out, '/');
    while (at < end) {
        char utf8[4];
        uint32_t point = ew__json_char(&at, end);
        if (point == '~' || point == '/') {
            (void)ew__buf_cstr(out, point == '~' ? "~0" : "~1");
        } else {
            (void)ew__buf_add(out, utf8, ew__json_utf8_put(point, utf8));
        }
    }
}

ew_err ew__tape_pointer(const ew__tape *tape, uint32_t item, ew__buf *out) {
    uint32_t at = 0;
    while (at != item) {
        bool object = *ew__tape_at(tape, at) == '{';
        uint32_t child = at + 1;
        size_t index = 0;
        if (object) {
            for (; tape->items[child + 1].after <= item; index++) {
                child = ew__tape_next_member(tape, child);
            }
            ew__json_pointer_add(out, ew__tape_string(tape, child));
            at = child + 1;
            item = item == child ? at : item;
        } else {
            for (; tape->items[child].after <= item; index++) {
                child = ew__tape_next_element(tape, child);
            }
            (void)ew__buf_char(out, '/');
            (void)ew__buf_u64(out, index);
            at = child;
        }
    }
    return out->err;
}
