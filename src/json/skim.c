/*
 * json/skim.c: see skim.h. One pass, byte by byte outside strings; the rest of a string is searched for its end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/skim.h"
#include "json/json.h"

void ew__skim_init(ew__skim *skim, const ew__skim_name *names, size_t n) {
    memset(skim, 0, sizeof *skim);
    skim->names = names;
    skim->n = n < EW__SKIM_NAMES ? n : EW__SKIM_NAMES;
    skim->slot = -1;
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* ---- names ---- */

static bool is_key(const ew__skim *skim, size_t level, const char *name) {
    size_t n = strlen(name);
    return n < EW__SKIM_KEY && skim->key_len[level] == n && memcmp(skim->key[level], name, n) == 0;
}

/* The slot of the member whose name was read last; -1: it is not looked for. */
static int find_slot(const ew__skim *skim) {
    for (size_t i = 0; i < skim->n; i++) {
        const ew__skim_name *wanted = &skim->names[i];
        bool here = wanted->parent ? skim->depth == 2 && is_key(skim, 1, wanted->parent) : skim->depth == 1;
        if (here && is_key(skim, (size_t)skim->depth, wanted->name))
            return (int)i;
    }
    return -1;
}

static void add_to_key(ew__skim *skim, char c) {
    uint8_t *len = &skim->key_len[skim->depth];
    if (*len + 1 >= EW__SKIM_KEY || c == '\\')
        *len = EW__SKIM_KEY;
    else
        skim->key[skim->depth][(*len)++] = c;
}

/* ---- values ---- */

static void begin_slot(ew__skim *skim) {
    skim->slot = skim->depth <= 2 ? find_slot(skim) : -1;
    if (skim->slot < 0)
        return;
    ew__skim_slot *slot = &skim->slots[skim->slot];
    slot->unusable = slot->unusable || slot->found;
    slot->found = true;
    slot->at = skim->used;
    slot->len = 0;
}

static void keep(ew__skim *skim, const char *bytes, size_t n) {
    if (skim->slot < 0)
        return;
    ew__skim_slot *slot = &skim->slots[skim->slot];
    if (slot->unusable || n > sizeof skim->text - skim->used) {
        slot->unusable = true;
        return;
    }
    memcpy(skim->text + skim->used, bytes, n);
    skim->used = (uint16_t)(skim->used + n);
    slot->len = (uint16_t)(slot->len + n);
}

/* Only the bracket of a container is kept. */
static void open_container(ew__skim *skim, char c) {
    keep(skim, &c, 1);
    skim->slot = -1;
    skim->depth++;
    if (skim->depth <= 2)
        skim->level_kind[skim->depth] = c == '{';
    skim->want_key = skim->depth <= 2 && c == '{';
}

static void close_container(ew__skim *skim) {
    skim->slot = -1;
    skim->want_key = false;
    skim->depth -= skim->depth > 0;
    skim->done = skim->depth == 0;
}

static void take_token(ew__skim *skim, char c) {
    skim->stray = skim->stray || (skim->depth == 0 && c != '{' && c != '[' && !is_space(c));
    bool noted = skim->depth >= 1 && skim->depth <= 2;
    switch (c) {
    case '{':
    case '[':
        open_container(skim, c);
        break;
    case '}':
    case ']':
        close_container(skim);
        break;
    case ',':
        skim->slot = -1;
        skim->want_key = noted && skim->level_kind[skim->depth];
        break;
    case ':':
        if (noted && skim->level_kind[skim->depth])
            begin_slot(skim);
        break;
    case '"':
        skim->in_string = true;
        skim->in_key = skim->want_key;
        skim->want_key = false;
        if (skim->in_key)
            skim->key_len[skim->depth] = 0;
        else
            keep(skim, &c, 1);
        break;
    default:
        if (!is_space(c))
            keep(skim, &c, 1);
    }
}

/* Inside a string, from `at` on; returns behind what was read. */
static size_t take_string(ew__skim *skim, const char *bytes, size_t at, size_t n) {
    size_t start = at;
    if (!skim->in_key && skim->slot < 0) { /* of no interest: only its end counts */
        for (; at < n && (skim->escaped || (bytes[at] != '"' && bytes[at] != '\\')); at++)
            skim->escaped = false;
        if (at > start)
            return at;
    }
    char c = bytes[at];
    if (skim->escaped)
        skim->escaped = false;
    else if (c == '\\')
        skim->escaped = true;
    else if (c == '"')
        skim->in_string = false;
    if (skim->in_key && skim->in_string)
        add_to_key(skim, c);
    else if (!skim->in_key)
        keep(skim, &c, 1);
    return at + 1;
}

size_t ew__skim_feed(ew__skim *skim, ew_str bytes) {
    size_t i = 0;
    while (i < bytes.len && !skim->done) {
        if (skim->in_string)
            i = take_string(skim, bytes.ptr, i, bytes.len);
        else
            take_token(skim, bytes.ptr[i++]);
    }
    return i;
}

ew_str ew__skim_value(const ew__skim *skim, size_t i) {
    const ew__skim_slot *slot = &skim->slots[i];
    if (!slot->found || slot->unusable || slot->len == 0)
        return ew__str(NULL, 0);
    ew_str text = ew__str(skim->text + slot->at, slot->len);
    bool container = text.len == 1 && (*text.ptr == '{' || *text.ptr == '[');
    return container || ew__json_validate(text, NULL) == EW_OK ? text : ew__str(NULL, 0);
}
