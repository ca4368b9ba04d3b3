/*
 * tests/unit/wire/reflection_replay.h: recordings of Genkit's peers, and a test that is one of them: its end of the
 * WebSocket, the runs that were talked about, and what was said of each in short.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_REFLECTION_REPLAY_H
#define EW_TESTS_REFLECTION_REPLAY_H

#include "support/corpus.h"
#include "support/json_or.h"
#include "support/rig.h"
#include "wire/reflection/reflection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_LINES 300
#define MAX_RUNS 60

/* ---- recordings ---- */

typedef struct recording {
    char *text[MAX_LINES];
    ew_str message[MAX_LINES]; /* empty: a note */
    bool to_runtime[MAX_LINES];
    size_t n;
} recording;

/* With a NUL behind it; a slice need not have one. */
static inline char *copy_text(ew_str text) {
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

/* A row with bytes that are not a message: from then on the row's memory is these bytes. */
static inline void load_raw(recording *rec, size_t i, ew_str raw) {
    size_t len = 0;
    char *text = malloc(raw.len);
    assert_non_null(text);
    assert_int_equal(ew_json_string(raw, text, raw.len, &len), EW_OK);
    free(rec->text[i]);
    rec->text[i] = text;
    rec->message[i] = (ew_str){text, len};
}

/* The messages of one connection (or scenario) of a file; where: its JSON text, NULL for all. */
static inline bool load(recording *rec, const char *name, const char *member, const char *where) {
    corpus c;
    char path[200];
    memset(rec, 0, sizeof *rec);
    (void)snprintf(path, sizeof path, "../captures/genkit/%s.jsonl", name);
    if (!corpus_open(&c, EW_SHARED, path))
        return false;
    while (corpus_next(&c)) {
        if (where && !ew__str_is(ew_json_get(c.row, member), ew_str_from(where)))
            continue;
        assert_true(rec->n < MAX_LINES);
        char *text = copy_text(c.row);
        assert_non_null(text);
        ew_str row = ew_str_from(text);
        rec->text[rec->n] = text;
        rec->to_runtime[rec->n] = ew__str_is(json_str_or(row, "/dir", EW_STR("")), EW_STR("mgr->rt"));
        rec->message[rec->n++] = ew_json_get(row, "/msg").len ? ew_json_get(row, "/msg") : EW_STR("");
        if (ew_json_get(row, "/raw").len)
            load_raw(rec, rec->n - 1, ew_json_get(row, "/raw"));
    }
    corpus_close(&c);
    assert_true(rec->n > 0);
    return true;
}

static inline void unload(recording *rec) {
    for (size_t i = 0; i < rec->n; i++)
        free(rec->text[i]);
}

/* ---- the test's end of the WebSocket ---- */

typedef struct run {
    char recorded[40], ours[40]; /* ids, as they stand in JSON */
    char trace[40], our_trace[40];
    char said[600], expected[600]; /* what was said about it, and what the recorded runtime said */
    rig_call *call;
    char *texts[3]; /* that the call borrows */
} run;

typedef struct talk {
    rig r;
    rig_pair *pair;
    int raw;
    ew__ws_scratch scratch;
    ew__ws ws;
    run runs[MAX_RUNS];
    size_t n_runs;
    char register_id[40];    /* of our runtime's request */
    char greeted[600];       /* what our manager said to register: "yes \"1\";" */
    ew_call *held[MAX_RUNS]; /* calls that go on until the recorded ones end */
    size_t n_held;
    char said[1300];
    void (*heard)(struct talk *t, ew_str message);
} talk;

static inline void hear(talk *t) {
    rig_end *end = &t->pair->end[t->raw];
    size_t n = end->got_len;
    if (n == 0)
        return;
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memcpy(bytes, end->got, n);
    rig_forget(t->pair, n);
    assert_int_equal(ew__ws_feed(&t->ws, bytes, n), EW_OK);
    for (ew__ws_event event; (event = ew__ws_next(&t->ws, 0)) != EW__WS_MORE;) {
        assert_int_equal(event, EW__WS_TEXT);
        ew_str message = ew__ws_payload(&t->ws);
        assert_int_equal(ew_json_check(message, NULL), EW_OK);
        char *copy = copy_text(message); /* the answer may ask the reader for more */
        t->heard(t, ew_str_from(copy));
        free(copy);
    }
    free(bytes);
}

static inline void say(talk *t, ew_str message) {
    uint8_t head[EW__WS_HEAD_ROOM];
    size_t n = ew__ws_head(&t->ws, false, message.len, head);
    char *copy = malloc(message.len + 1);
    assert_non_null(copy);
    memcpy(copy, message.ptr, message.len);
    if (t->raw == RIG_SERVER) /* the runtime is the WebSocket's client */
        ew__ws_mask(copy, message.len, head + n - 4, 0);
    rig_say(t->pair, head, n);
    rig_say(t->pair, copy, message.len);
    free(copy);
    rig_run(&t->r);
    hear(t);
}

/* The message with `text` in the place of `old`, a slice of it. */
static inline void say_with(talk *t, ew_str message, ew_str old, const char *text) {
    size_t before = (size_t)(old.ptr - message.ptr), cap = message.len + strlen(text) + 1;
    char *copy = malloc(cap);
    assert_non_null(copy);
    int n = snprintf(copy, cap, "%.*s%s%.*s", (int)before, message.ptr, text, (int)(message.len - before - old.len),
                     old.ptr + old.len);
    say(t, ew__str(copy, (size_t)n));
    free(copy);
}

static inline void begin(talk *t, int raw, ew__actions *actions, void (*heard)(talk *, ew_str)) {
    static const ew__runtime_identity self = {
        .id = {"r1", 2}, .name = {"replay", 6}, .version = {"everywire/0", 11}, .pid = 1};
    memset(t, 0, sizeof *t);
    t->raw = raw;
    t->heard = heard;
    rig_init(&t->r, &ew__wire_reflection, &(rig_options){.seed = 1});
    t->r.side[RIG_SERVER].site.identity = &self;
    if (actions)
        t->r.side[RIG_SERVER].site.actions = actions;
    ew__ws_scratch_init(&t->scratch, ew_env_default());
    ew__ws_init(&t->ws, &t->scratch, raw == RIG_CLIENT, (size_t)16 << 20);
    t->pair = rig_connect_raw(&t->r, raw);
    rig_run(&t->r);
    hear(t);
}

static inline void end(talk *t) {
    rig_finish(&t->r);
    assert_int_equal(t->n_held, 0); /* the connection's end has cancelled them */
    for (size_t i = 0; i < t->n_runs; i++)
        for (size_t k = 0; k < 3; k++)
            free(t->runs[i].texts[k]);
    ew__ws_done(&t->ws);
    ew__ws_scratch_done(&t->scratch);
}

static inline run *find(talk *t, ew_str id, bool ours) {
    for (size_t i = t->n_runs; i-- > 0;)
        if (ew__str_is(id, ew_str_from(ours ? t->runs[i].ours : t->runs[i].recorded)))
            return &t->runs[i];
    return NULL;
}

static inline void keep(char to[40], ew_str text) { (void)snprintf(to, 40, "%.*s", (int)text.len, text.ptr); }

static inline run *add_run(talk *t, ew_str id) {
    assert_true(t->n_runs < MAX_RUNS);
    keep(t->runs[t->n_runs].recorded, id);
    return &t->runs[t->n_runs++];
}

/* ---- messages of a runtime, in short: "state;{"i":0};done "x";" ---- */

static inline ew_str id_of(ew_str message) {
    return ew_json_get(message, "/method").len ? ew_json_get(message, "/params/requestId")
                                               : ew_json_get(message, "/id");
}

static inline void note(char text[600], const char *what, ew_str value) {
    size_t n = strlen(text);
    (void)snprintf(text + n, 600 - n, "%s%.*s;", what, (int)value.len, value.ptr);
}

static inline void note_error(char text[600], ew_str error) {
    char what[60];
    (void)snprintf(what, sizeof what, "fail %d/%d", (int)json_int_or(error, "/code", 0),
                   (int)json_int_or(error, "/data/code", -1));
    note(text, what, EW_STR(""));
}

static inline void note_message(char text[600], ew_str message) {
    ew_str method = json_str_or(message, "/method", EW_STR("")), result = ew_json_get(message, "/result");
    if (ew__str_is(method, EW_STR("runActionState")))
        note(text, "state", EW_STR(""));
    else if (ew__str_is(method, EW_STR("streamChunk")))
        note(text, "", ew_json_get(message, "/params/chunk"));
    else if (ew_json_get(message, "/error").len)
        note_error(text, ew_json_get(message, "/error"));
    else if (ew_json_get(result, "/actions").len || ew_json_get(result, "/~1flow~1hello").len)
        note(text, "list", EW_STR(""));
    else if (ew_json_get(result, "/values").len)
        note(text, "values", EW_STR(""));
    else if (ew_json_get(result, "/message").len)
        note(text, "", ew_json_get(result, "/message"));
    else if (ew_json_get(result, "/telemetry").len)
        note(text, "done ", ew_json_get(result, "/result").len ? ew_json_get(result, "/result") : EW_STR("null"));
    else
        note(text, "", result);
}

#endif
