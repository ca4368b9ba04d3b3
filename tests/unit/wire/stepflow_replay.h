/*
 * tests/unit/wire/stepflow_replay.h: recordings of Stepflow's own component servers on HTTP, and messages of theirs and
 * ours in short, so that they can be compared.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_REPLAY_H
#define EW_TESTS_STEPFLOW_REPLAY_H

#include "store/blobs/blobs.h"
#include "support/corpus.h"
#include "support/json_or.h"
#include "unit/wire/stepflow_http_back.h"
#include "unit/wire/stepflow_http_call.h"

#define MAX_ROWS 200

typedef struct recording {
    char *row[MAX_ROWS];
    size_t n;
} recording;

static inline bool load(recording *rec, const char *name) {
    corpus c;
    char path[200];
    rec->n = 0;
    (void)snprintf(path, sizeof path, "../captures/stepflow/%s.jsonl", name);
    if (!corpus_open(&c, EW_SHARED, path))
        return false;
    while (corpus_next(&c)) {
        assert_true(rec->n < MAX_ROWS);
        rec->row[rec->n] = strndup(c.row.ptr, c.row.len);
        assert_non_null(rec->row[rec->n++]);
    }
    corpus_close(&c);
    return true;
}

static inline void unload(recording *rec) {
    for (size_t i = 0; i < rec->n; i++)
        free(rec->row[i]);
}

/* ---- rows ---- */

typedef enum row_kind { ROW_OTHER, ROW_NOTE, ROW_REQUEST, ROW_REPLY, ROW_ANSWER, ROW_STREAM, ROW_EVENT } row_kind;

static inline bool begins(ew_str text, const char *with) {
    return text.len >= strlen(with) && memcmp(text.ptr, with, strlen(with)) == 0;
}

static inline row_kind kind_of(ew_str row) {
    ew_str dir = json_str_or(row, "/dir", EW_STR("")), http = json_str_or(row, "/frame/http", EW_STR(""));
    ew_str body = ew_json_get(row, "/frame/body");
    if (ew__str_is(dir, EW_STR("note")))
        return ROW_NOTE;
    if (!ew__str_is(json_str_or(row, "/transport", EW_STR("")), EW_STR("http")))
        return ROW_OTHER;
    if (ew_json_get(row, "/raw").len)
        return ROW_EVENT;
    if (ew__str_is(dir, EW_STR("runtime->server"))) /* the recorded runtime knew what it was asked */
        return !ew_json_get(body, "/method").len && json_str_or(body, "/id", EW_STR("")).len == 36 ? ROW_REPLY
                                                                                                   : ROW_REQUEST;
    if (!begins(http, "HTTP/1.1 "))
        return ROW_OTHER;
    return begins(json_str_or(row, "/frame/body", EW_STR("")), "(SSE") ? ROW_STREAM : ROW_ANSWER;
}

/* What a text of a row stands for; for free(). */
static inline char *text_of(ew_str json) {
    char *text = malloc(json.len + 1);
    size_t n = 0;
    assert_non_null(text);
    assert_int_equal(ew_json_string(json, text, json.len, &n), EW_OK);
    text[n] = '\0';
    return text;
}

/* The body of a request as it was on the wire: bad ones are kept as texts. For free(). */
static inline char *body_of(ew_str row) {
    ew_str body = ew_json_get(row, "/frame/body");
    if (ew_json_typeof(body) == EW_JSON_STRING)
        return text_of(body);
    char *text = malloc(body.len + 1);
    assert_non_null(text);
    int n = ew_json_minify(body, text, body.len);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

/* Header lines of a row, without some that are told by the caller; appended. */
static inline void add_fields(char *head, size_t size, ew_str row) {
    ew_json_iter it = {.offset_ = 0};
    size_t n = strlen(head);
    while (ew_json_next(ew_json_get(row, "/frame/headers"), &it)) {
        if (it.key.len == 16 && strncasecmp(it.key.ptr, "\"content-length\"", 16) == 0)
            continue;
        n += (size_t)snprintf(head + n, size - n, "%.*s: %.*s\r\n", (int)it.key.len - 2, it.key.ptr + 1,
                              (int)it.value.len - 2, it.value.ptr + 1);
        assert_true(n < size);
    }
}

/* The text with another in the place of a slice of it; for free(). */
static inline char *replaced(ew_str text, ew_str old, const char *with) {
    char *copy = malloc(text.len + strlen(with) + 1);
    assert_non_null(copy);
    size_t before = (size_t)(old.ptr - text.ptr);
    (void)snprintf(copy, text.len + strlen(with) + 1, "%.*s%s%.*s", (int)before, text.ptr, with,
                   (int)(text.len - before - old.len), old.ptr + old.len);
    return copy;
}

/* ---- in short ---- */

static inline void add_compact(char *out, size_t size, const char *what, ew_str json) {
    size_t n = strlen(out);
    n += (size_t)snprintf(out + n, size - n, "%s", what);
    int len = ew_json_minify(json, out + n, size - n - 1);
    assert_true(len >= 0);
    out[n + (size_t)len] = '\0';
}

/* "200 result 7", "400 error -32600", "406": who says it in which order or words does not count. */
static inline void shorten(char *out, size_t size, int status, ew_str body) {
    (void)snprintf(out, size, "%d", status);
    bool http = status == 202 || status == 404 || status == 405 || status == 406 || status == 415;
    if (http || ew_json_check(body, NULL) != EW_OK)
        return;
    ew_str result = ew_json_get(body, "/result"), code = ew_json_get(body, "/error/code");
    if (ew_json_get(result, "/server_protocol_version").len || ew_json_get(result, "/serverProtocolVersion").len)
        (void)snprintf(out, size, "%d hello", status);
    else if (ew_json_get(result, "/components").len)
        (void)snprintf(out, size, "%d list", status);
    else if (ew_json_get(result, "/info").len)
        add_compact(out, size, " info ", ew_json_get(result, "/info/component"));
    else if (ew_json_get(result, "/output").len)
        add_compact(out, size, " result ", ew_json_get(result, "/output"));
    else if (code.len)
        add_compact(out, size, " error ", code);
    else if (ew_json_get(body, "/instanceId").len || ew_json_get(body, "/service").len)
        add_compact(out, size, " ", ew_json_get(body, "/status"));
}

#endif
