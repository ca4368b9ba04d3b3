/*
 * tests/unit/endpoint/pool_world.h: a pool on a loop of the test's own, and calls that remember how they ended. The
 * wire is a tiny one of lines (line_wire.h), the processes are the test's program once more (line_runner.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_ENDPOINT_POOL_WORLD_H
#define EW_TESTS_ENDPOINT_POOL_WORLD_H

#include "endpoint/pool_kind.h"
#include "unit/endpoint/line_runner.h"
#include "unit/endpoint/line_wire.h"

typedef struct asked {
    unsigned n_ends;
    ew_status status;
    ew_origin origin;
    char text[600];
    char child[300]; /* what was known of the process by then */
    ew_call *call;
} asked;

static world w;
static ew__pool *pool;
static unsigned n_pool_closed;
static char self[4096]; /* the path of this program */

/* The test keeps where; what it points to must outlive the pool. */
static inline ew__pool_config config_of(const ew__where *where) {
    static const ew__site site = {.port = 0};
    return (ew__pool_config){.loop = &w.loop, .wire = &line_wire, .site = &site, .where = where};
}

static inline ew_err asked_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static inline void asked_end(ew_call *call, const ew__end *how) {
    asked *a = call->caller_ud;
    ew_str text = how->status == EW_STATUS_OK ? how->result : how->fault.message;
    a->n_ends++;
    a->status = how->status;
    a->origin = how->origin;
    a->call = NULL;
    (void)snprintf(a->text, sizeof a->text, "%.*s", (int)text.len, text.ptr);
    (void)snprintf(a->child, sizeof a->child, "%s", ew__pool_child_end(pool));
    ew__call_release(call);
}

static const ew__caller_ops asker = {.chunk = asked_chunk, .end = asked_end};

static inline void start_call(asked *a, const char *action, uint64_t ms) {
    memset(a, 0, sizeof *a);
    ew__executor_read_clock(&w.loop.executor);
    a->call = ew__call_new(&w.loop.executor, &asker, a);
    assert_non_null(a->call);
    a->call->key = ew_str_from(action);
    if (ms)
        a->call->deadline = w.loop.executor.now + EW__MS(ms);
    ew__pool_open(pool, a->call);
}

static inline void expect(asked *a, ew_status status, const char *text) {
    run_until(&w, &a->n_ends, 1);
    if (a->status != status || !strstr(a->text, text))
        fail_msg("%d: %s is not in: %s; the log:\n%s", a->status, text, a->text, w.log);
    assert_int_equal(a->n_ends, 1);
    if (status == EW_STATUS_UNAVAILABLE)
        assert_int_equal(a->origin, EW_ORIGIN_CONNECT);
}

/* The number that a call ends with. */
static inline long ask(const char *action) {
    asked a;
    start_call(&a, action, 0);
    expect(&a, EW_STATUS_OK, "");
    return strtol(a.text, NULL, 10);
}

static inline void on_pool_closed(ew__pool *closed) {
    (void)closed;
    n_pool_closed++;
}

static inline void finish(void) {
    ew__pool_close(pool, on_pool_closed);
    run_until(&w, &n_pool_closed, 1);
    ew__pool_free(pool);
    assert_int_equal(w.loop.executor.calls->live, 0);
    world_done(&w);
    assert_no_children();
}

static inline bool lives(long pid) { return runs((pid_t)pid); }

#endif
