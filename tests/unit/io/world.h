/*
 * tests/unit/io/world.h: a real loop on the test's thread, owners of streams that keep or echo what comes, and a log
 * that is kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_IO_WORLD_H
#define EW_TESTS_IO_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call/context.h"
#include "io/child.h"
#include "io/handle.h"
#include "io/stream.h"

#define PATIENCE_NS EW__MS(40000) /* a test that waits longer has failed */

typedef struct world {
    ew__loop loop;
    ew__call_context calls;
    ew_env env;
    ew_limits limits;
    uv_timer_t tick;  /* so that a wait sees its deadline */
    uint64_t skipped; /* nanoseconds that the loop's clock is ahead of the machine's */
    bool closed;
    uint64_t n_allocations, fail_at; /* the allocation with that number fails; 0: none */
    char *log;
    size_t n_log, n_lines;
    ew_log_level worst;
} world;

/* One stream and what happened to it. */
typedef struct end {
    world *world;
    ew__stream stream;
    ew__out out;
    ew__dial *dial;
    bool echo;   /* send back what comes; finish at eof */
    bool forget; /* only count what comes */
    char *in;
    size_t n_in;
    unsigned n_eof, n_closed, n_drained, n_dialled;
    ew_err why, dialled;
    char detail[256];
} end;

/* ---- the env ---- */

static inline void *count_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    world *w = ud;
    if (new_size > old_size && ++w->n_allocations == w->fail_at)
        return NULL;
    return ew_env_default()->alloc(NULL, ptr, old_size, new_size);
}

static inline uint64_t skewed_now(void *ud) { return ew_env_default()->now_ns(NULL) + ((world *)ud)->skipped; }

static inline void keep_line(void *ud, ew_log_level level, const char *room, ew_str line) {
    world *w = ud;
    (void)room;
    w->n_lines++;
    w->worst = level < w->worst ? level : w->worst;
    if (w->n_log + line.len + 4 > 1 << 20)
        return;
    w->n_log += (size_t)snprintf(w->log + w->n_log, line.len + 4, "%c %.*s\n", "EWID"[level], (int)line.len, line.ptr);
}

static inline bool logged(const world *w, const char *text) { return strstr(w->log, text) != NULL; }

/* ---- the loop ---- */

static inline void on_tick(uv_timer_t *timer) { (void)timer; }

static inline void world_init(world *w) {
    memset(w, 0, sizeof *w);
    w->env = *ew_env_default();
    w->env.alloc = count_alloc;
    w->env.now_ns = skewed_now;
    w->env.log = keep_line;
    w->env.ud = w;
    w->log = calloc(1, (1 << 20) + 1);
    assert_non_null(w->log);
    w->worst = EW_LOG_DEBUG;
    ew_limits_complete(&w->limits);
    assert_int_equal(ew__loop_init(&w->loop, &w->env, &w->limits, NULL), EW_OK);
    ew__call_context_init(&w->calls, &w->loop.executor);
    ew__loop_adopt_thread(&w->loop);
    uv_timer_init(w->loop.uv, &w->tick);
    uv_timer_start(&w->tick, on_tick, 20, 20);
}

static inline void on_world_closed(ew__loop *loop, void *ud) {
    (void)loop;
    ((world *)ud)->closed = true;
}

/* Everything else must be closed: a handle that is left keeps this from ending. */
static inline void world_done(world *w) {
    uv_close((uv_handle_t *)&w->tick, NULL);
    ew__loop_close(&w->loop, on_world_closed, w);
    for (int i = 0; i < 1000 && uv_run(w->loop.uv, UV_RUN_NOWAIT) != 0; i++)
        ;
    assert_true(w->closed);
    assert_int_equal(uv_loop_alive(w->loop.uv), 0);
    ew__call_context_done(&w->calls);
    ew__loop_done(&w->loop);
    free(w->log);
}

/* Runs until *number reaches n. */
static inline void run_until(world *w, const unsigned *number, unsigned n) {
    uint64_t until = ew__executor_read_clock(&w->loop.executor) + PATIENCE_NS;
    while (*number < n) {
        if (ew__executor_read_clock(&w->loop.executor) > until)
            fail_msg("waited in vain; the log:\n%s", w->log);
        uv_run(w->loop.uv, UV_RUN_ONCE);
    }
}

static inline void run_turn(world *w, uv_run_mode mode, uint64_t until, const char *condition) {
    if (ew__executor_read_clock(&w->loop.executor) > until)
        fail_msg("waited in vain while %s; the log:\n%s", condition, w->log);
    uv_run(w->loop.uv, mode);
}

/* Runs the loop while the condition holds; the test fails when that takes too long. */
#define RUN_WHILE_IN(w, mode, condition)                                                                               \
    for (uint64_t until_ = ew__executor_read_clock(&(w)->loop.executor) + PATIENCE_NS; (condition);                    \
         run_turn((w), (mode), until_, #condition))
#define RUN_WHILE(w, condition)                                                                                        \
    RUN_WHILE_IN(w, UV_RUN_ONCE, condition) {}

static inline void run_until_bytes(world *w, const size_t *number, size_t n) {
    uint64_t until = ew__executor_read_clock(&w->loop.executor) + PATIENCE_NS;
    while (*number < n) {
        if (ew__executor_read_clock(&w->loop.executor) > until)
            fail_msg("waited in vain for %zu bytes, have %zu", n, *number);
        uv_run(w->loop.uv, UV_RUN_ONCE);
    }
}

static inline void run_until_logged(world *w, const char *text) {
    uint64_t until = ew__executor_read_clock(&w->loop.executor) + PATIENCE_NS;
    while (!logged(w, text)) {
        if (ew__executor_read_clock(&w->loop.executor) > until)
            fail_msg("never logged: %s; the log:\n%s", text, w->log);
        uv_run(w->loop.uv, UV_RUN_ONCE);
    }
}

static inline void run_ms(world *w, uint64_t ms) {
    uint64_t until = ew__executor_read_clock(&w->loop.executor) + EW__MS(ms);
    while (ew__executor_read_clock(&w->loop.executor) < until)
        uv_run(w->loop.uv, UV_RUN_ONCE);
}

/* ---- streams ---- */

static inline end *end_of(ew__stream *stream) { return ew__container_of(stream, end, stream); }

static inline uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    (void)stream;
    (void)ret_size;
    return NULL;
}

static inline void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    end *e = end_of(stream);
    if (!e->forget && !e->echo) {
        e->in = realloc(e->in, e->n_in + n + 1);
        assert_non_null(e->in);
        memcpy(e->in + e->n_in, bytes, n);
        e->in[e->n_in + n] = '\0';
    }
    e->n_in += n;
    if (!e->echo)
        return;
    ew__out_add(&e->out, bytes, n);
    ew__stream_send(stream);
    if (e->out.bytes >= e->world->limits.out_high_bytes)
        ew__stream_read(stream, false);
}

static inline void on_eof(ew__stream *stream) {
    end *e = end_of(stream);
    e->n_eof++;
    if (e->echo)
        ew__stream_finish(stream);
}

static inline void on_drained(ew__stream *stream) {
    end_of(stream)->n_drained++;
    if (end_of(stream)->echo)
        ew__stream_read(stream, true);
}

static inline void on_closed(ew__stream *stream, ew_err why) {
    end *e = end_of(stream);
    e->n_closed++;
    e->why = why;
    ew__out_done(&e->out);
}

static const ew__stream_events end_events = {
    .reserve = on_reserve, .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

static inline void end_init(end *e, world *w) {
    memset(e, 0, sizeof *e);
    e->world = w;
    ew__out_init(&e->out, &w->loop.executor.blocks);
}

static inline void end_start(end *e) { ew__stream_start(&e->stream, &e->world->loop, &end_events, &e->out); }

static inline void end_send(end *e, const void *bytes, size_t n) {
    ew__out_add(&e->out, bytes, n);
    assert_int_equal(e->out.err, EW_OK);
    ew__stream_send(&e->stream);
}

static inline void end_free(end *e) {
    assert_int_equal(e->n_closed, 1);
    free(e->in);
}

static inline void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    end *e = end_of(stream);
    e->n_dialled++;
    e->dialled = err;
    (void)snprintf(e->detail, sizeof e->detail, "%s", detail ? detail : "");
    if (err == EW_OK)
        end_start(e);
}

/* Returns when the dial is over. */
static inline ew_err end_dial(end *e, const ew__where *where) {
    assert_int_equal(ew__dial_start(&e->world->loop, &e->stream, where, 30000, on_dialled, &e->dial), EW_OK);
    assert_int_equal(e->n_dialled, 0);
    run_until(e->world, &e->n_dialled, 1);
    return e->dialled;
}

static inline void end_close(end *e) {
    ew__stream_close(&e->stream, EW_OK);
    run_until(e->world, &e->n_closed, 1);
    end_free(e);
}

/* ---- what the process has ---- */

static inline unsigned count_descriptors(void) {
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* False: it is gone, or a zombie that its new parent has not reaped yet. */
static inline bool runs(pid_t pid) {
    char path[64], text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    const char *paren = strrchr(text, ')');
    return paren && strlen(paren) > 2 && paren[2] != 'Z' && paren[2] != 'X';
}

static inline void assert_no_children(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

#endif
