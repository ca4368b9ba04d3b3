/*
 * cli/jobs_text.c: answers about jobs for people: tables, fields, times. Widths are those of a terminal, and a text is never cut
 * inside a character.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "cli/jobs.h"
#include <string.h>
#include <unistd.h>

#define COLUMNS_MAX 12
#define ROWS_MAX 10000

int64_t ew__now_ms(void) {
    const ew_env *env = ew_env_default();
    return (int64_t)env->wall_ms(env->ud);
}

/* ---- texts ---- */

/* The columns that a terminal needs for the character that begins here: by its first byte, two for most of those of East Asia. */
static size_t width_at(char byte) {
    unsigned char c = (unsigned char)byte;
    return (c & 0xc0) == 0x80 ? 0 : (c >= 0xe3 && c <= 0xed) || c >= 0xf0 ? 2 : 1;
}

size_t ew__width(ew_str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        n += width_at(text.ptr[i]);
    }
    return n;
}

ew_err ew__text_cut(ew__text *text, size_t start, size_t max) {
    size_t n = 0, at = start;
    if (max == 0 || ew__width((ew_str){text->ptr + start, text->len - start}) <= max) {
        return EW_OK;
    }
    while (at < text->len && n + width_at(text->ptr[at]) < max) {
        n += width_at(text->ptr[at++]);
    }
    while (at > start && at < text->len && width_at(text->ptr[at]) == 0) {
        at--; /* not inside a character */
    }
    text->len = at;
    return ew__text_cstr(text, "\xe2\x80\xa6");
}

void ew__cli_span(uint64_t ms, char *out, size_t size) {
    unsigned long long s = (unsigned long long)(ms / 1000);
    if (ms < 1000) {
        (void)snprintf(out, size, "%llums", (unsigned long long)ms);
    } else if (s < 60) {
        (void)snprintf(out, size, "%llu.%llus", s, (unsigned long long)(ms % 1000 / 100));
    } else if (s < 3600) {
        (void)snprintf(out, size, "%llum %llus", s / 60, s % 60);
    } else if (s < 86400) {
        (void)snprintf(out, size, "%lluh %llum", s / 3600, s % 3600 / 60);
    } else {
        (void)snprintf(out, size, "%llud %lluh", s / 86400, s % 86400 / 3600);
    }
}

/* Strings are decoded; all else is JSON in one line. Both are printable. */
ew_err ew__cell_text(ew__text *out, ew_str value, const char *none) {
    ew_json_type type = ew_json_typeof(value);
    if (type == EW_JSON_NONE || type == EW_JSON_NULL) {
        return ew__text_cstr(out, none);
    }
    if (type == EW_JSON_STRING) {
        return ew__cli_plain(out, value);
    }
    return ew__cli_printable(out, value, EW__PRINTABLE_JSON);
}

static bool time_of(ew_str value, int64_t *ret_ms) {
    char text[64];
    size_t len = 0;
    return ew_json_string(value, text, sizeof text, &len) == EW_OK && ew__when_parse((ew_str){text, len}, ret_ms);
}

static ew_err age_text(ew__text *out, ew_str value) {
    int64_t at, now = ew__now_ms();
    char span[32];
    if (!time_of(value, &at)) {
        return ew__cell_text(out, value, "-");
    }
    ew__cli_span((uint64_t)(now >= at ? now - at : at - now), span, sizeof span);
    ew_err err = ew__text_cstr(out, now >= at ? "" : "in ");
    err = err == EW_OK ? ew__text_cstr(out, span) : err;
    return err == EW_OK && now >= at ? ew__text_cstr(out, " ago") : err;
}

static ew_err elapsed_text(ew__text *out, ew_str job) {
    int64_t start, end;
    char span[32];
    if (!time_of(ew_json_get(job, "/start_time"), &start)) {
        return ew__text_cstr(out, "-");
    }
    if (!time_of(ew_json_get(job, "/completion_time"), &end)) {
        if (!ew__cli_is(job, "/status", "ACTIVE")) {
            return ew__text_cstr(out, "-");
        }
        end = ew__now_ms();
    }
    ew__cli_span((uint64_t)(end > start ? end - start : 0), span, sizeof span);
    return ew__text_cstr(out, span);
}

static ew_err cell(ew__text *out, const ew__column *column, ew_str row) {
    ew_str value = ew_json_get(row, column->pointer);
    double ms;
    char text[64];
    switch (column->kind) {
    case EW__COLUMN_AGE:
        return age_text(out, value);
    case EW__COLUMN_MS:
        if (ew_json_double(value, &ms) != EW_OK || ms < 0 || ms > (double)INT64_MAX) {
            return ew__text_cstr(out, "-");
        }
        ew__cli_span((uint64_t)ms, text, sizeof text);
        return ew__text_cstr(out, text);
    case EW__COLUMN_ELAPSED:
        return elapsed_text(out, row);
    case EW__COLUMN_RETRIES:
        (void)snprintf(text, sizeof text, "%lld/%lld", ew__cli_count(row, "/attempts"),
                       ew__cli_count(row, "/max_retries"));
        return ew__text_cstr(out, text);
    case EW__COLUMN_BOOL:
        return ew__text_cstr(out, ew__cli_flag(value, "") ? "yes" : "");
    default:
        return ew__cell_text(out, value, "-");
    }
}

/* ---- tables ---- */

typedef struct table {
    const ew__column *columns;
    size_t n_columns;
    size_t widths[COLUMNS_MAX];
    ew__text cells; /* one after the other, each ended by NUL */
    size_t n_rows;
} table;

static bool is_right(ew__column_kind kind) { return kind == EW__COLUMN_COUNT || kind == EW__COLUMN_MS; }

static ew_err add_cell(table *t, size_t column, ew_str row, bool title) {
    size_t start = t->cells.len;
    ew_err err = title ? ew__text_cstr(&t->cells, t->columns[column].title) : cell(&t->cells, &t->columns[column], row);
    if (err == EW_OK) {
        err = ew__text_cut(&t->cells, start, t->columns[column].max);
    }
    if (err == EW_OK) {
        size_t width = ew__width((ew_str){t->cells.ptr + start, t->cells.len - start});
        t->widths[column] = width > t->widths[column] ? width : t->widths[column];
        for (size_t i = start; i < t->cells.len; i++) {
            t->cells.ptr[i] = t->cells.ptr[i] ? t->cells.ptr[i] : ' ';
        }
        err = ew__text_add(&t->cells, (ew_str){"", 1});
    }
    return err;
}

static ew_err add_row(table *t, ew_str row, bool title) {
    ew_err err = EW_OK;
    for (size_t i = 0; i < t->n_columns && err == EW_OK; i++) {
        err = add_cell(t, i, row, title);
    }
    t->n_rows++;
    return err;
}

static void print_rows(const table *t) {
    bool colour = ew__cli_colour(STDOUT_FILENO);
    const char *at = t->cells.ptr;
    for (size_t row = 0; row < t->n_rows; row++) {
        (void)fputs(row == 0 && colour ? "\033[1m" : "", stdout);
        for (size_t i = 0; i < t->n_columns; i++) {
            ew_str text = ew_str_from(at);
            int pad = (int)(t->widths[i] - ew__width(text));
            bool right = is_right(t->columns[i].kind), last = i + 1 == t->n_columns;
            (void)printf("%s%*s%s%*s", i ? "  " : "", right ? pad : 0, "", at, right || last ? 0 : pad, "");
            at += text.len + 1;
        }
        (void)fputs(row == 0 && colour ? "\033[0m\n" : "\n", stdout);
    }
}

ew_err ew__table_print(ew_str array, const ew__column *columns, const char *none) {
    table t = {.columns = columns};
    ew_json_iter it = {.offset_ = 0};
    while (columns[t.n_columns].title && t.n_columns < COLUMNS_MAX) {
        t.n_columns++;
    }
    ew_err err = add_row(&t, (ew_str){NULL, 0}, true);
    while (err == EW_OK && t.n_rows <= ROWS_MAX && ew_json_next(array, &it)) {
        err = add_row(&t, it.value, false);
    }
    if (err == EW_OK && t.n_rows == 1) {
        (void)printf("%s\n", none);
    } else if (err == EW_OK) {
        print_rows(&t);
    }
    ew__text_free(&t.cells);
    return err;
}

ew_err ew__fields_print(ew_str object) {
    bool colour = ew__cli_colour(STDOUT_FILENO);
    ew__text line = {0};
    ew_json_iter it = {.offset_ = 0};
    ew_err err = EW_OK;
    while (err == EW_OK && ew_json_next(object, &it)) {
        line.len = 0;
        err = ew__cli_plain(&line, it.key);
        size_t name = line.len;
        if (err == EW_OK && ew_json_typeof(it.value) != EW_JSON_NULL) {
            err = ew__cell_text(&line, it.value, "");
            (void)printf("%s%.*s%s%*s%.*s\n", colour ? "\033[1m" : "", (int)name, line.ptr, colour ? "\033[0m" : "",
                         (int)(name < 24 ? 26 - name : 2), "", (int)(line.len - name), line.ptr + name);
        }
    }
    ew__text_free(&line);
    return err;
}

/* ---- jobs ---- */

const ew__column ew__job_columns[] = {
    {"Job ID", "/id", EW__COLUMN_TEXT, 40},
    {"Function", "/function_name", EW__COLUMN_TEXT, 30},
    {"Queue", "/queue_name", EW__COLUMN_TEXT, 20},
    {"Status", "/status", EW__COLUMN_TEXT, 0},
    {"Enqueued", "/enqueue_time", EW__COLUMN_AGE, 0},
    {"Duration", "", EW__COLUMN_ELAPSED, 0},
    {NULL, NULL, EW__COLUMN_TEXT, 0},
};

ew_err ew__job_show(ew__jobs_cmd *cmd, ew_str json) {
    (void)cmd;
    return ew__fields_print(json);
}
