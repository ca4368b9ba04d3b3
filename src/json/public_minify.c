/*
 * json/public_minify.c: ew_json_minify: valid JSON text without its white space, into memory of the caller, also in
 * place. It checks nothing but the room: what is no JSON comes out as something that is none either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/json.h>
#include <limits.h>
#include <string.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The index behind the string that starts at `at`, or the end of a text that is cut inside it. */
static size_t string_end(ew_str json, size_t at) {
    for (at++; at < json.len && json.ptr[at] != '"'; at++) {
        if (json.ptr[at] == '\\') {
            at++;
        }
    }
    return at < json.len ? at + 1 : json.len;
}

/* The index behind the run of bytes at `at` that are neither white space nor a string. */
static size_t run_end(ew_str json, size_t at) {
    while (at < json.len && json.ptr[at] != '"' && !is_space(json.ptr[at])) {
        at++;
    }
    return at;
}

int ew_json_minify(ew_str json, char *buf, size_t capacity) {
    size_t len = 0;
    for (size_t at = 0; at < json.len;) {
        if (is_space(json.ptr[at])) {
            at++;
            continue;
        }
        size_t end = json.ptr[at] == '"' ? string_end(json, at) : run_end(json, at);
        if (end - at > capacity - len || end - at > (size_t)INT_MAX - len) {
            return EW_ELIMIT;
        }
        memmove(buf + len, json.ptr + at, end - at);
        len += end - at;
        at = end;
    }
    return (int)len;
}
