/*
 * tests/unit/wire/stepflow_lines_replay.h: recordings of Stepflow over pipes, row by row, and the ids in them: the
 * recorded ones, and what they are here.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_LINES_REPLAY_H
#define EW_TESTS_STEPFLOW_LINES_REPLAY_H

#include "support/corpus.h"
#include "unit/wire/stepflow_lines_world.h"

#define NONE ((ew_str){NULL, 0})

/* ---- recordings ---- */

enum { LINES = 120, IDS = 40 };

typedef struct recording {
    char *line[LINES];
    bool to_server[LINES];
    bool cut[LINES]; /* half a line: no newline follows */
    size_t n;
} recording;

static const recording *rec; /* the one that is replayed */

/* A long text was left out when it was written down: "AAA...(elided; N chars in all)". `all`: N counts all of it. */
static inline char *unelide(const char *text, bool all) {
    const char *mark = strstr(text, "...(elided; ");
    assert_non_null(mark);
    size_t n = (size_t)strtoul(mark + strlen("...(elided; "), NULL, 10), head = (size_t)(mark - text);
    const char *rest = strchr(mark, ')') + 1;
    while (!all && head > 0 && text[head - 1] == 'A')
        head--;
    char *out = calloc(1, head + n + strlen(rest) + 1);
    assert_non_null(out);
    memcpy(out, text, head);
    memset(out + head, 'A', all ? n - head : n);
    memcpy(out + (all ? n : head + n), rest, strlen(rest));
    return out;
}

static inline void add_row(recording *r, const corpus *c, char *raw, bool to_server) {
    assert_true(r->n < LINES);
    size_t n = strlen(raw);
    if (strstr(raw, "...(elided; ")) {
        ew_str frame = ew_json_get(c->row, "/frame");
        char *text = frame.len ? strndup(frame.ptr, frame.len) : NULL;
        char *whole = unelide(text ? text : raw, !text);
        r->cut[r->n] = !text;
        free(text);
        free(raw);
        raw = whole;
    } else if (n > 0 && raw[n - 1] == '\r') {
        raw[n - 1] = ' ';
    }
    r->to_server[r->n] = to_server;
    r->line[r->n++] = raw;
}

/* A file may hold several sessions, one after the other; only those over pipes are taken. */
static inline bool load(recording *r, const char *name, int session) {
    corpus c;
    char path[200];
    memset(r, 0, sizeof *r);
    (void)snprintf(path, sizeof path, "../captures/stepflow/%s.jsonl", name);
    if (!corpus_open(&c, EW_SHARED, path))
        return false;
    while (session >= 0 && corpus_next(&c)) {
        char *dir = corpus_text(&c, "/dir"), *raw = corpus_text(&c, "/raw"), *note = corpus_text(&c, "/frame/note");
        bool http = raw && strncmp(raw, "POST ", 5) == 0;
        if (raw && session == 0 && !http && !corpus_has(&c, "/transport"))
            add_row(r, &c, raw, strcmp(dir, "runtime->server") == 0);
        else
            free(raw);
        if (http || (note && strncmp(note, "stdin closed", 12) == 0))
            session--;
        free(dir);
        free(note);
    }
    corpus_close(&c);
    return true;
}

static inline void unload(recording *r) {
    for (size_t i = 0; i < r->n; i++)
        free(r->line[i]);
}

static inline ew_str row(size_t i) { return ew_str_from(rec->line[i]); }
static inline bool is_json(size_t i) { return ew_json_check(row(i), NULL) == EW_OK; }
static inline ew_str id_of(size_t i) { return is_json(i) ? ew_json_get(row(i), "/id") : NONE; }
static inline bool asks(size_t i) { return is_json(i) && ew_json_get(row(i), "/method").len > 0; }
static inline bool answers(size_t i) { return is_json(i) && !asks(i) && id_of(i).len > 0; }

/* The request that row i answers; rec->n: there is none. */
static inline size_t request_of(size_t i) {
    for (size_t k = 0; k < rec->n; k++)
        if (asks(k) && rec->to_server[k] != rec->to_server[i] && ew_str_eq(id_of(k), id_of(i)))
            return k;
    return rec->n;
}

/* ---- ids: the recorded ones, and what they are here ---- */

typedef struct ids {
    ew_str theirs[IDS];
    char ours[IDS][EW__RPC_ID_ROOM];
    size_t n;
} ids;

static inline void learn_id(ids *all, ew_str theirs, ew_str ours) {
    assert_true(all->n < IDS && ours.len < EW__RPC_ID_ROOM);
    all->theirs[all->n] = theirs;
    memcpy(all->ours[all->n++], ours.ptr, ours.len);
}

static inline const char *find_id(const ids *all, ew_str theirs) {
    for (size_t i = all->n; i > 0; i--)
        if (theirs.len && ew_str_eq(all->theirs[i - 1], theirs))
            return all->ours[i - 1];
    return NULL;
}

/* Says the row with the id that it has here. */
static inline void say_row(world *w, size_t i, const char *id) {
    ew_str text = row(i), theirs = id_of(i);
    size_t at = id ? (size_t)(theirs.ptr - text.ptr) : text.len;
    rig_say(w->pair, text.ptr, at);
    if (id) {
        rig_say(w->pair, id, strlen(id));
        rig_say(w->pair, theirs.ptr + theirs.len, text.len - at - theirs.len);
    }
    say_bytes(w->pair, "\n", rec->cut[i] ? 0 : 1);
}

/* A part of a line of ours is that part of a recorded one, but for how characters are written. */
static inline void must_be(const char *what, const char *line, ew_str theirs) {
    ew__buf ascii;
    ew_str expected, ours = ew_json_get(ew_str_from(line), what);
    assert_int_equal(ew__sf_plain(ew_env_default(), ew_json_get(theirs, what), &ascii, &expected), EW_OK);
    if (!ew_str_eq(ours, expected))
        fail_msg("%s: expected\n%.*s\ngot\n%s", what, (int)expected.len, expected.ptr, line);
    ew__buf_done(&ascii);
}

#endif
