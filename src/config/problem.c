/*
 * config/problem.c: see problem.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/problem.h"
#include "base/printable.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_SIZE 512
#define SHOWN_BYTES 60

void ew__problems_init(ew__problems *problems, ew__arena *arena) { *problems = (ew__problems){.arena = arena}; }

/* The length of what is left when a character that is cut at the end goes altogether. */
static size_t whole_characters(const char *text, size_t n) {
    size_t start = n;
    while (start > 0 && n - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    if (start == 0) {
        return n;
    }
    unsigned char lead = (unsigned char)text[start - 1];
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return length > n - start + 1 ? start - 1 : n;
}

static void add(ew__problems *problems, unsigned line, unsigned column, const char *format, va_list args) {
    char message[MESSAGE_SIZE];
    int n = vsnprintf(message, sizeof message, format, args);
    size_t len = n < 0 ? 0 : (size_t)n;
    if (len >= sizeof message) {
        len = whole_characters(message, sizeof message - 1);
        message[len] = 0;
    }
    for (size_t i = 0; i < len;) {
        size_t shown = ew__printable_size((ew_str){message, len}, i);
        message[i] = shown == 0 ? '?' : message[i];
        i += shown == 0 ? 1 : shown;
    }
    char *copy = ew__arena_copy(problems->arena, message, len + 1);
    if (!copy) {
        problems->no_memory = true;
        return;
    }
    problems->list[problems->n++] = (ew__problem){line, column, copy};
}

void ew__problem_add(ew__problems *problems, unsigned line, unsigned column, const char *format, ...) {
    if (problems->n == EW__PROBLEMS_MAX) {
        problems->left_out++;
        return;
    }
    va_list args;
    va_start(args, format);
    add(problems, line, column, format, args);
    va_end(args);
}

static bool stands_before(const ew__problem *a, const ew__problem *b) {
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

void ew__problems_sort(ew__problems *problems) {
    for (size_t i = 1; i < problems->n; i++) {
        ew__problem problem = problems->list[i];
        size_t at = i;
        for (; at > 0 && stands_before(&problem, &problems->list[at - 1]); at--) {
            problems->list[at] = problems->list[at - 1];
        }
        problems->list[at] = problem;
    }
}

ew__shown ew__show(ew_str text) {
    ew__shown shown;
    bool cut = text.len > SHOWN_BYTES;
    size_t n = cut ? whole_characters(text.ptr, SHOWN_BYTES) : text.len;
    (void)snprintf(shown.text, sizeof shown.text, "%.*s%s", (int)n, n ? text.ptr : "", cut ? "..." : "");
    return shown;
}
