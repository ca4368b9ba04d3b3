/*
 * call/stack_trace.c: see stack_trace.h. One pass over the text, without recursion: an upstream chooses its size and its
 * depth.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/stack_trace.h"
#include <everywire/app.h>

bool ew__stack_trace_is_shown(const ew__executor *executor, const ew__who *who) {
    switch ((ew_stack_traces)executor->calls->stack_traces) {
    case EW_STACK_TRACES_ALL:
        return true;
    case EW_STACK_TRACES_NONE:
        return false;
    default:
        return who && who->local;
    }
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static size_t skip_space(ew_str json, size_t at) {
    while (at < json.len && is_space(json.ptr[at]))
        at++;
    return at;
}

/* Behind the string whose first quote is at `at`. */
static size_t skip_string(ew_str json, size_t at) {
    for (at++; at < json.len && json.ptr[at] != '"'; at++)
        at += json.ptr[at] == '\\';
    return at < json.len ? at + 1 : json.len;
}

static bool names_trace(ew_str key) {
    static const char *const names[] = {"\"stack\"", "\"stackTrace\"", "\"stack_trace\"", "\"stacktrace\"",
                                        "\"traceback\""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ew__str_is(key, ew_str_from(names[i])))
            return true;
    return false;
}

/* The next member to remove, from `from` on, where no string has begun. false: there is none. */
static bool find_trace(ew_str json, size_t from, size_t *ret_start, size_t *ret_end) {
    for (size_t at = from; at < json.len; at++) {
        const char *quote = memchr(json.ptr + at, '"', json.len - at);
        if (!quote)
            return false;
        at = (size_t)(quote - json.ptr);
        size_t end = skip_string(json, at), colon = skip_space(json, end);
        if (colon < json.len && json.ptr[colon] == ':' && names_trace(ew__str(quote, end - at))) {
            size_t value = skip_space(json, colon + 1);
            if (value < json.len && json.ptr[value] == '"') {
                *ret_start = at;
                *ret_end = skip_string(json, value);
                return true;
            }
        }
        at = end - 1;
    }
    return false;
}

/* The member that was left out was the last of its object. */
static void drop_comma(ew__buf *out) {
    while (out->len > 0 && is_space(out->ptr[out->len - 1]))
        out->len--;
    if (out->len > 0 && out->ptr[out->len - 1] == ',')
        out->len--;
}

void ew__stack_trace_remove(ew__arena *arena, const ew_env *env, ew_str *json) {
    const ew_str text = *json;
    size_t start, end, at = 0;
    ew__buf out;
    if (!find_trace(text, 0, &start, &end))
        return;
    ew__buf_init(&out, env, text.len);
    do {
        (void)ew__buf_add(&out, text.ptr + at, start - at);
        at = skip_space(text, end);
        if (at < text.len && text.ptr[at] == ',')
            at = skip_space(text, at + 1);
        else
            drop_comma(&out);
    } while (find_trace(text, at, &start, &end));
    (void)ew__buf_add(&out, text.ptr + at, text.len - at);
    *json = out.err || ew__str_is(ew__buf_view(&out), EW_STR("{}")) ? ew__str(NULL, 0) : ew__buf_view(&out);
    if (ew__arena_str(arena, *json, json) != EW_OK)
        *json = ew__str(NULL, 0);
    ew__buf_done(&out);
}
