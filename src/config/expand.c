/*
 * config/expand.c: variables in a text. See tree.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "config/tree.h"
#include <stdio.h>

#define NAME_SIZE 64

static bool starts_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
static bool goes_on(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

static bool has(ew_str text, size_t at, const char *what) {
    size_t n = strlen(what);
    return text.len - at >= n && memcmp(text.ptr + at, what, n) == 0;
}

static ew_err bad(ew__expand_problem *problem, size_t offset, const char *before, const char *name, const char *after) {
    problem->offset = offset;
    (void)snprintf(problem->message, sizeof problem->message, "%s%s%s", before, name, after);
    return EW_EINVAL;
}

/* *at is behind "${" and moves behind its "}". */
static ew_err one_variable(ew_str text, size_t *at, ew__variable_fn variable, void *ud, ew__buf *out,
                           ew__expand_problem *problem) {
    char name[NAME_SIZE];
    size_t start = *at - 2, n = 0;
    const char *close = memchr(text.ptr + *at, '}', text.len - *at);
    if (!close) {
        return bad(problem, start, "${ without a }; $${ stands for ${ itself", "", "");
    }
    size_t end = (size_t)(close - text.ptr), i = *at;
    for (; i < end && n < NAME_SIZE - 1 && (n ? goes_on(text.ptr[i]) : starts_name(text.ptr[i])); i++) {
        name[n++] = text.ptr[i];
    }
    name[n] = 0;
    bool has_default = has(text, i, ":-") && i + 2 <= end;
    if (n == 0 || (i < end && !has_default)) {
        return bad(problem, start, "not ${NAME} or ${NAME:-DEFAULT}; $${ stands for ${ itself", "", "");
    }
    *at = end + 1;
    const char *value = variable(ud, name);
    if (has_default && !(value && *value)) {
        return ew__buf_add(out, text.ptr + i + 2, end - i - 2);
    }
    return value ? ew__buf_cstr(out, value) : bad(problem, start, "the variable ", name, " is not set");
}

ew_err ew__expand(ew_str text, ew__variable_fn variable, void *ud, ew__buf *out, ew__expand_problem *ret_problem) {
    ew_err err = EW_OK;
    for (size_t at = 0; at < text.len && err == EW_OK;) {
        if (has(text, at, "$${")) {
            err = ew__buf_cstr(out, "${");
            at += 3;
        } else if (has(text, at, "${")) {
            at += 2;
            err = one_variable(text, &at, variable, ud, out, ret_problem);
        } else {
            err = ew__buf_char(out, text.ptr[at++]);
        }
    }
    return err;
}
