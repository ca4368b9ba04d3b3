/*
 * wire/stepflow/sniff.c: see sniff.h. Reads as much of an unfinished JSON text as it needs: names and values of the
 * message itself, names in its params. Whether the text is valid is not its business.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/sniff.h"
#include <everywire/limits.h>

/* What has been read so far. */
typedef struct look {
    ew_str text;
    size_t at;
    unsigned depth;
    ew_str word;      /* the last string that could be a name */
    bool wants;       /* behind a colon */
    bool is_method;   /* the value that follows is the message's method */
    bool in_params;   /* the member of the message that we are in is its params */
    bool has_init;    /* its method is "initialize" */
    bool has_version; /* its params name the version of a runtime */
} look;

/* The next string, without its quotes. 1; 0: it has not come to its end; -1: it is none. */
static int take_string(look *l, ew_str *ret) {
    size_t i = l->at + 1;
    for (; i < l->text.len && l->text.ptr[i] != '"'; i++) {
        if ((unsigned char)l->text.ptr[i] < 0x20)
            return -1;
        i += l->text.ptr[i] == '\\' ? 1 : 0;
    }
    if (i >= l->text.len)
        return 0;
    *ret = ew__str(l->text.ptr + l->at + 1, i - l->at - 1);
    l->at = i + 1;
    return 1;
}

static bool is_component_method(ew_str method) {
    return ew__str_has_prefix(method, EW_STR("components/")) || ew__str_has_prefix(method, EW_STR("components\\/"));
}

static int judge_method(look *l, ew_str method) {
    if (is_component_method(method))
        return 1;
    l->has_init = ew__str_is(method, EW_STR("initialize"));
    return l->has_init ? 0 : -1;
}

static void take_name(look *l) {
    ew_str name = l->word;
    l->wants = true;
    l->word = ew__str(NULL, 0);
    if (l->depth == 1) {
        l->is_method = ew__str_is(name, EW_STR("method"));
        l->in_params = ew__str_is(name, EW_STR("params"));
    } else if (l->depth == 2 && l->in_params) {
        l->has_version = l->has_version || ew__str_is(name, EW_STR("runtime_protocol_version")) ||
                         ew__str_is(name, EW_STR("runtimeProtocolVersion"));
    }
}

/* One token. 0: go on; else the verdict. */
static int take_mark(look *l, char c) {
    l->at++;
    switch (c) {
    case ':':
        take_name(l);
        return 0;
    case '{':
    case '[':
        l->depth++;
        break;
    case '}':
    case ']':
        l->depth--; /* the walk ends at 0 */
        break;
    case ',':
        break;
    case '\n': /* a runtime's message is one line */
        return -1;
    default:
        return 0;
    }
    l->wants = false;
    l->word = ew__str(NULL, 0);
    return l->depth == 0 || l->depth > EW_JSON_DEPTH ? -1 : 0;
}

static int step(look *l) {
    ew_str string;
    if (l->text.ptr[l->at] != '"')
        return take_mark(l, l->text.ptr[l->at]);
    int whole = take_string(l, &string);
    if (whole <= 0) {
        l->at = whole == 0 ? l->text.len : l->at; /* the walk ends here for now */
        return whole;
    }
    if (!l->wants) {
        l->word = string;
        return 0;
    }
    l->wants = false;
    return l->depth == 1 && l->is_method ? judge_method(l, string) : 0;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int ew__sf_sniff_line(const uint8_t *bytes, size_t n) {
    look l = {.text = ew__str(bytes, n)};
    while (l.at < n && is_space(l.text.ptr[l.at]))
        l.at++;
    if (l.at < n && l.text.ptr[l.at] != '{')
        return -1;
    while (l.at < n) {
        int verdict = step(&l);
        if (verdict != 0)
            return verdict;
        if (l.has_init && l.has_version)
            return 1;
    }
    return 0;
}
