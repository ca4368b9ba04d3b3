/*
 * tests/unit/handler/exec_world.h: an exec action on a real loop, and callers that keep what they are told.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_HANDLER_EXEC_WORLD_H
#define EW_TESTS_HANDLER_EXEC_WORLD_H

#include "unit/io/world.h"

#include "handler/exec.h"

#define SHELL(script) ((const char *const[]){"/bin/sh", "-c", script, NULL})
#define PYTHON(script) ((const char *const[]){"python3", "-c", script, NULL})

typedef struct shop {
    world w;
    ew__exec *exec;
    unsigned n_closed;
} shop;

/* A call and what its caller was told. */
typedef struct visit visit;
struct visit {
    shop *shop;
    bool closes; /* the action, as soon as this has ended; it is freed at the first opportunity */
    visit *then; /* opened as soon as this has ended, in the same breath */
    const char *then_input;
    ew_call *call;
    ew_str input;
    uint64_t deadline_ms;
    bool chunks;    /* it wants them */
    bool has_input; /* it sends a stream */
    bool slow;      /* each chunk fills it */
    ew_err refuse;  /* chunks cannot be taken */
    unsigned n_ends, n_chunks, n_rooms;
    ew_status status;
    bool retryable;
    uint64_t retry_ms;
    char *result, *message, *details;
    char *said; /* chunks, each with a newline behind it */
    size_t n_said;
};

static inline void visit_open(visit *v, shop *s, const char *input);

/* ---- the action ---- */

static inline void on_exec_closed(void *ud) { ((shop *)ud)->n_closed++; }

static inline void on_exec_closed_free(void *ud) {
    shop *s = ud;
    s->n_closed++;
    ew__exec_free(s->exec);
    s->exec = NULL;
}

static inline void shop_open(shop *s, const ew_exec_options *options) {
    const char *problem = NULL;
    s->n_closed = 0;
    assert_int_equal(ew__exec_new(&s->w.env, &s->w.limits, "/tool/test", options, &s->exec, &problem), EW_OK);
    ew__exec_settle(s->exec, &s->w.loop);
}

static inline void shop_init(shop *s, const ew_exec_options *options) {
    memset(s, 0, sizeof *s);
    world_init(&s->w);
    shop_open(s, options);
}

static inline void shop_close(shop *s) {
    ew__exec_close(s->exec, on_exec_closed, s);
    run_until(&s->w, &s->n_closed, 1);
    assert_int_equal(s->n_closed, 1);
    ew__exec_free(s->exec);
    s->exec = NULL;
    assert_no_children();
}

static inline void shop_done(shop *s) {
    shop_close(s);
    assert_int_equal(s->w.loop.executor.calls->live, 0);
    world_done(&s->w);
}

/* "EW_TEST_MARK=...", of this run of the test only. */
static inline const char *own_mark(void) {
    static char mark[64];
    (void)snprintf(mark, sizeof mark, "EW_TEST_MARK=%d-%d", (int)getpid(), (int)getppid());
    return mark;
}

/*
 * How many processes have this in their environment (own_mark is only in those that the test has started, and theirs).
 * Zombies have none.
 */
static inline unsigned count_marked(const char *mark) {
    unsigned n = 0;
    DIR *folder = opendir("/proc");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], text[65536];
        (void)snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        FILE *file = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (!file)
            continue;
        size_t len = fread(text, 1, sizeof text, file);
        n += len > 0 && memmem(text, len, mark, strlen(mark)) != NULL;
        (void)fclose(file);
    }
    closedir(folder);
    return n;
}

/* Runs until no call is left, told or not. */
static inline void run_until_idle(shop *s) {
    uint64_t until = ew__executor_read_clock(&s->w.loop.executor) + PATIENCE_NS;
    while (s->w.loop.executor.calls->live > 0) {
        if (ew__executor_read_clock(&s->w.loop.executor) > until)
            fail_msg("%u calls do not end; the log:\n%s", s->w.loop.executor.calls->live, s->w.log);
        uv_run(s->w.loop.uv, UV_RUN_ONCE);
    }
}

/* ---- callers ---- */

static inline visit *visit_of(ew_call *call) { return call->caller_ud; }

static inline char *keep(ew_str text) {
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static inline ew_err visit_chunk(ew_call *call, ew_str json) {
    visit *v = visit_of(call);
    if (v->refuse != EW_OK)
        return v->refuse;
    assert_int_equal(ew_json_check(json, NULL), EW_OK);
    v->n_chunks++;
    v->said = realloc(v->said, v->n_said + json.len + 2);
    assert_non_null(v->said);
    memcpy(v->said + v->n_said, json.ptr, json.len);
    v->n_said += json.len;
    v->said[v->n_said++] = '\n';
    v->said[v->n_said] = '\0';
    return v->slow ? EW_FULL : EW_OK;
}

static inline void visit_end(ew_call *call, const ew__end *how) {
    visit *v = visit_of(call);
    v->n_ends++;
    v->status = how->status;
    v->result = keep(how->result);
    v->message = keep(how->fault.message);
    v->details = keep(how->fault.details);
    v->retryable = how->fault.retryable;
    v->retry_ms = how->fault.retry_after_ms;
    if (how->status == EW_STATUS_OK)
        assert_int_equal(ew_json_check(how->result, NULL), EW_OK);
    if (v->closes)
        ew__exec_close(v->shop->exec, on_exec_closed_free, v->shop);
    if (v->then)
        visit_open(v->then, v->shop, v->then_input);
}

static inline void visit_room(ew_call *call) { visit_of(call)->n_rooms++; }

static const ew__caller_ops visit_ops = {.chunk = visit_chunk, .end = visit_end, .input_room = visit_room};

/* Members that say how it is to be are set before; input NULL: null. */
static inline void visit_open(visit *v, shop *s, const char *input) {
    v->shop = s;
    v->call = ew__call_new(&s->w.loop.executor, &visit_ops, v);
    assert_non_null(v->call);
    v->call->input = v->input.len ? v->input : ew_str_from(input ? input : "null");
    v->call->key = EW_STR("/tool/test");
    v->call->wants_chunks = v->chunks;
    v->call->has_input = v->has_input;
    if (v->deadline_ms)
        v->call->deadline = ew__executor_read_clock(&s->w.loop.executor) + EW__MS(v->deadline_ms);
    ew__call_open_on(v->call, &ew__exec_callee, s->exec);
}

static inline void visit_wait(visit *v) { run_until(&v->shop->w, &v->n_ends, 1); }

static inline void visit_free(visit *v) {
    if (v->call)
        ew__call_release(v->call);
    free(v->result);
    free(v->message);
    free(v->details);
    free(v->said);
    memset(v, 0, sizeof *v);
}

/* One whole call; *v is zeros, or says how it is to be. */
static inline void ask(visit *v, shop *s, const char *input) {
    visit_open(v, s, input);
    visit_wait(v);
}

/* A call that is done with this result. */
static inline void assert_answer(shop *s, const char *input, const char *result) {
    visit v = {0};
    ask(&v, s, input);
    if (v.status != EW_STATUS_OK)
        fail_msg("%s: %s", ew_status_name(v.status), v.message);
    assert_string_equal(v.result, result);
    visit_free(&v);
}

/* One call of a program that is there for this call only. */
static inline void ask_once(visit *v, const ew_exec_options *options, const char *input) {
    shop s;
    shop_init(&s, options);
    ask(v, &s, input);
    ew__call_release(v->call);
    v->call = NULL;
    shop_done(&s);
}

static inline void assert_fault(const visit *v, ew_status status, const char *message) {
    assert_int_equal(v->n_ends, 1);
    assert_string_equal(ew_status_name(v->status), ew_status_name(status));
    assert_string_equal(v->message, message);
}

#endif
