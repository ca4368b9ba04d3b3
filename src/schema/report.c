/*
 * schema/report.c: how a text fails, for people and for programs. What stands in the text may be secret: only types,
 * numbers of things and names of members are told; what the schema says is not.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "schema/run.h"
#include <everywire/limits.h>
#include <stdio.h>

#define LINE_MAX_BYTES ((size_t)1024)
#define ERRORS_MAX_BYTES ((size_t)64 * 1024)
#define NAME_SHOWN 128 /* bytes of one name in a path */
#define MESSAGE_MAX 256

void ew__schema_report_init(ew__schema_report *report, const ew_env *env, ew_str before) {
    report->before = before;
    ew__buf_init(&report->line, env, LINE_MAX_BYTES);
    ew__buf_init(&report->errors, env, ERRORS_MAX_BYTES);
    report->n = 0;
}

void ew__schema_report_done(ew__schema_report *report) {
    ew__buf_done(&report->line);
    ew__buf_done(&report->errors);
}

/* The steps are linked from the last one; the text of a value is at most so deep. */
static void write_path(const ew__checking *run, const ew__schema_path *path, ew__buf *out) {
    const ew__schema_path *steps[EW_JSON_DEPTH + 1];
    size_t n = 0;
    for (; path != NULL && n <= EW_JSON_DEPTH; path = path->up) {
        steps[n++] = path;
    }
    while (n > 0) {
        const ew__schema_path *step = steps[--n];
        if (step->name == 0) {
            (void)ew__buf_char(out, '/');
            (void)ew__buf_u64(out, step->index);
            continue;
        }
        ew_str name = ew__tape_string(&run->tape, step->name);
        bool cut = name.len > NAME_SHOWN;
        ew__json_pointer_add(out, cut ? ew__str(name.ptr, NAME_SHOWN) : name);
        if (cut) {
            (void)ew__buf_cstr(out, "...");
        }
    }
}

static void write_error(ew__schema_report *report, ew_str path, ew_str schema_path, const char *keyword,
                        const char *message) {
    ew__buf *out = &report->errors;
    (void)ew__buf_cstr(out, report->n == 0 ? "{\"errors\":[" : ",");
    (void)ew__json_format(out, "{\"path\":%q,\"keyword\":%Q,\"schema_path\":%q,\"message\":%Q}", path, keyword,
                          schema_path, message);
    if (report->n++ == 0) {
        (void)ew__buf_str(&report->line, report->before);
        (void)ew__buf_str(&report->line, path.len > 0 && path.len < 512 ? path : ew__str(NULL, 0));
        (void)ew__buf_cstr(&report->line, path.len > 0 && path.len < 512 ? ": " : "");
        (void)ew__buf_cstr(&report->line, message);
    }
}

/* below: whether the keyword is a member of the node's schema, and not what the node stands under. */
static bool tell(ew__checking *run, const ew__visit *visit, const char *keyword, bool below, const char *message) {
    ew__buf path, schema_path;
    if (run->quiet > 0 || run->report == NULL || run->err != EW_OK || run->report->n >= EW__SCHEMA_ERRORS_MAX) {
        return false;
    }
    const ew__schema_doc *doc = visit->node->doc;
    ew__buf_init(&path, run->env, ERRORS_MAX_BYTES);
    ew__buf_init(&schema_path, run->env, ERRORS_MAX_BYTES);
    write_path(run, visit->path, &path);
    (void)ew__buf_cstr(&schema_path, doc->uri);
    (void)ew__tape_pointer(&doc->tape, visit->node->item, &schema_path);
    if (below) {
        (void)ew__buf_char(&schema_path, '/');
        (void)ew__buf_cstr(&schema_path, keyword);
    }
    if (path.err == EW_ENOMEM || schema_path.err == EW_ENOMEM) {
        run->err = EW_ENOMEM;
    } else {
        write_error(run->report, ew__buf_view(&path), ew__buf_view(&schema_path), keyword, message);
    }
    ew__buf_done(&path);
    ew__buf_done(&schema_path);
    return false;
}

bool ew__checking_fail(ew__checking *run, const ew__visit *visit, const char *keyword, const char *format, ...) {
    char message[MESSAGE_MAX];
    va_list args;
    if (run->quiet > 0) {
        return false;
    }
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tell(run, visit, keyword, true, message);
}

bool ew__checking_fail_false(ew__checking *run, const ew__visit *visit) {
    return tell(run, visit, visit->node->keyword[0] != '\0' ? visit->node->keyword : "false", false,
                visit->path == NULL      ? "nothing is allowed here"
                : visit->path->name != 0 ? "no such member is allowed"
                                         : "no such element is allowed");
}

static const char *type_name(unsigned type) {
    static const char *const names[] = {"nothing", "null", "boolean", "number", "string", "array", "object", "integer"};
    return names[type];
}

bool ew__checking_fail_type(ew__checking *run, const ew__visit *visit, unsigned types) {
    char list[96];
    size_t len = 0, left = 0;
    if (run->quiet > 0) {
        return false;
    }
    for (unsigned type = 0; type < 8; type++) {
        left += types >> type & 1;
    }
    list[0] = '\0';
    for (unsigned type = 0; type < 8; type++) {
        if ((types >> type & 1) == 0) {
            continue;
        }
        left--;
        int n = snprintf(list + len, sizeof list - len, "%s%s", type_name(type),
                         left > 1    ? ", "
                         : left == 1 ? " or "
                                     : "");
        len += n > 0 ? (size_t)n : 0;
    }
    ew_json_type type = ew__tape_type(&run->tape, visit->item);
    bool integer = type == EW_JSON_NUMBER && ew__checking_is_integer(run, visit->item);
    return ew__checking_fail(run, visit, "type", "expected %s, got %s", len > 0 ? list : "nothing",
                             type_name(integer ? 7 : (unsigned)type));
}

/* A short list of values is shown: it is the schema's, not the text's. */
bool ew__checking_fail_choice(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    ew__buf shown;
    const ew__tape *tape = &visit->node->doc->tape;
    if (run->quiet > 0) {
        return false;
    }
    ew__buf_init(&shown, run->env, 120);
    const char *at = ew__tape_at(tape, rule->u.choice.item);
    const char *end = ew__json_skip_value(at, ew__json_end(tape->text));
    ew_err err = ew__json_minify(&shown, ew__str(at, (size_t)(end - at)));
    bool fits = err == EW_OK && shown.len > 2;
    run->err = err == EW_ENOMEM ? err : run->err;
    (void)ew__checking_fail(run, visit, "enum", fits ? "must be one of %.*s" : "is none of the values that are allowed",
                            fits ? (int)shown.len - 2 : 0, fits ? shown.ptr + 1 : "");
    ew__buf_done(&shown);
    return false;
}
