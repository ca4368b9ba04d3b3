/*
 * io/loop.c: see loop.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/tls.h"
#include <sched.h>

/*
 * A producer that has room again goes on by a timer: a thousand busy streams must not keep a new request waiting until
 * each of them has had its turn.
 */
#define TIMERS_PER_TURN 64
#define BUSY_READS 4 /* in one turn: more than that is many */

/* ---- the executor's table ---- */

static bool loop_here(const ew__executor *executor) {
    const ew__loop *loop = ew__container_of(executor, const ew__loop, executor);
    return atomic_load_explicit(&loop->running, memory_order_acquire) && pthread_equal(loop->thread, pthread_self());
}

static void loop_wake(ew__executor *executor) { uv_async_send(&ew__loop_of(executor)->handles->wake); }

static const ew__executor_ops loop_ops = {.here = loop_here, .wake = loop_wake};

void ew__loop_run_own(ew__loop *loop) {
    if (loop->executor.has_own_tasks)
        (void)ew__executor_run_tasks(&loop->executor);
}

/* ---- a turn ---- */

/* Streams that become dirty while we flush wait for the next turn, so that no stream keeps the others waiting. */
static void flush_dirty(ew__loop *loop) {
    ew__fifo_node *node = loop->dirty;
    loop->dirty = NULL;
    while (node) {
        ew__stream *stream = EW__ITEM(node, ew__stream, node);
        node = node->next;
        stream->dirty = false;
        ew__stream_flush(stream);
    }
}

static void on_timer(uv_timer_t *timer) {
    ew__loop *loop = timer->data;
    loop->timer_armed = EW__NEVER; /* what is due runs in this turn's after_wait */
}

static void on_idle(uv_idle_t *idle) { (void)idle; /* its being active keeps the loop from waiting */ }

static void after_wait(uv_check_t *check) {
    ew__loop *loop = check->data;
    ew__executor_read_clock(&loop->executor);
    ew__loop_run_own(loop);
    ew__timers_run_some(&loop->executor.timers, loop->executor.now, TIMERS_PER_TURN);
    flush_dirty(loop);
}

/* ---- polling before sleeping ---- */

#define SCORE_MAX 8
#define TIMED_OUT 4 /* a spin that timed out costs so much: four of five spins must succeed */

static void spin_stop(ew__spin *spin) {
    if (spin->here)
        atomic_store_explicit(spin->taken, false, memory_order_release);
    spin->here = false;
}

static bool spin_try(ew__spin *spin) {
    if (!spin->here)
        spin->here = !atomic_exchange_explicit(spin->taken, true, memory_order_acquire);
    return spin->here;
}

static void spin_rate(ew__spin *spin, int by) {
    int score = spin->score + by;
    spin->score = (int8_t)(score > SCORE_MAX ? SCORE_MAX : score < -SCORE_MAX ? -SCORE_MAX : score);
}

/* An event has come. After a sleep the wait includes the wake-up, which spinning would have avoided. */
static void spin_learn(ew__spin *spin, uint64_t now, uint64_t most) {
    uint64_t gap = now - spin->last_event;
    spin_rate(spin, gap <= (spin->here ? most : 2 * most) ? 1 : -1);
    spin->last_event = now;
    spin->woken = false;
}

/* Whether the loop is not to sleep in its next wait. */
static bool spin_on(ew__loop *loop) {
    ew__spin *spin = &loop->spin;
    uint64_t now = loop->executor.now, most = loop->executor.limits->spin_us * 1000;
    if (!spin->taken)
        return false;
    if (loop->n_read > 0 || spin->woken)
        spin_learn(spin, now, most);
    bool in_time = now - spin->last_event < most;
    if (spin->expects && spin->score >= 0 && in_time && spin_try(spin)) {
        if (loop->n_read == 0)
            (void)sched_yield(); /* nothing has come: let a thread that is ready for this core run */
        return true;
    }
    if (spin->here && !in_time) {
        spin_rate(spin, -TIMED_OUT);
        spin->expects = false;
    }
    spin_stop(spin);
    return false;
}

static void arm_timer(ew__loop *loop, uint64_t next) {
    bool at_once = next <= loop->executor.now || loop->dirty || loop->executor.has_own_tasks || spin_on(loop);
    if (at_once != (uv_is_active((uv_handle_t *)&loop->handles->idle) != 0)) {
        if (at_once)
            uv_idle_start(&loop->handles->idle, on_idle);
        else
            uv_idle_stop(&loop->handles->idle);
    }
    if (at_once || next == loop->timer_armed)
        return;
    loop->timer_armed = next;
    if (next == EW__NEVER) {
        uv_timer_stop(&loop->handles->timer);
        return;
    }
    uv_update_time(loop->uv);
    uv_timer_start(&loop->handles->timer, on_timer, (next - loop->executor.now + 999999) / 1000000, 0);
}

static void before_wait(uv_prepare_t *prepare) {
    ew__loop *loop = prepare->data;
    loop->turn++;
    loop->busy = loop->n_read > BUSY_READS;
    flush_dirty(loop);
    arm_timer(loop, ew__timers_next(&loop->executor.timers));
    loop->n_read = 0;
}

static void on_wake(uv_async_t *async) {
    ew__loop *loop = async->data;
    ew__executor_read_clock(&loop->executor);
    loop->spin.woken = true;
    (void)ew__executor_run_tasks(&loop->executor);
}

/* ---- life ---- */

/* 0 or an error of libuv: then nothing is left. */
static int init_uv(ew__loop *loop, uv_loop_t *host) {
    struct ew__loop_handles *handles = loop->handles;
    loop->owns_uv = host == NULL;
    loop->uv = host ? host : &handles->own;
    int err = host ? 0 : uv_loop_init(&handles->own);
    if (err != 0)
        return err;
    err = uv_async_init(loop->uv, &handles->wake, on_wake);
    if (err != 0 && loop->owns_uv)
        uv_loop_close(&handles->own);
    return err;
}

static void init_handles(ew__loop *loop, struct ew__loop_handles *handles) {
    uv_prepare_init(loop->uv, &handles->before_wait);
    uv_check_init(loop->uv, &handles->after_wait);
    uv_timer_init(loop->uv, &handles->timer);
    uv_idle_init(loop->uv, &handles->idle);
    handles->wake.data = handles->before_wait.data = handles->after_wait.data = loop;
    handles->timer.data = handles->idle.data = loop;
    loop->timer_armed = EW__NEVER;
    uv_prepare_start(&handles->before_wait, before_wait);
    uv_check_start(&handles->after_wait, after_wait);
    loop->n_handles = 5;
}

static void free_memory(ew__loop *loop, const ew_env *env) {
    ew__free(env, loop->read_buffer, EW__READ_BUFFER);
    ew__free(env, loop->handles, sizeof *loop->handles);
}

ew_err ew__loop_init(ew__loop *loop, const ew_env *env, const ew_limits *limits, uv_loop_t *host) {
    memset(loop, 0, sizeof *loop);
    loop->executor.ops = &loop_ops;
    loop->turn = 1;
    loop->read_buffer = ew__alloc(env, EW__READ_BUFFER);
    loop->handles = ew__zalloc(env, sizeof *loop->handles);
    ew_err err = !loop->read_buffer || !loop->handles ? EW_ENOMEM : init_uv(loop, host) != 0 ? EW_EIO : EW_OK;
    if (err != EW_OK) {
        free_memory(loop, env);
        return err;
    }
    ew__executor_init(&loop->executor, env, limits);
    init_handles(loop, loop->handles);
    return EW_OK;
}

void ew__loop_adopt_thread(ew__loop *loop) {
    loop->thread = pthread_self();
    atomic_store_explicit(&loop->running, true, memory_order_release);
}

void ew__loop_run(ew__loop *loop) {
    ew__loop_adopt_thread(loop);
    uv_run(loop->uv, UV_RUN_DEFAULT);
    (void)ew__executor_run_tasks(&loop->executor); /* tasks posted after the last wake-up free their memory */
}

void ew__loop_turn(ew__loop *loop, bool wait) { (void)uv_run(loop->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT); }

void ew__loop_stop(ew__loop *loop) { uv_stop(loop->uv); }

static void on_handle_closed(uv_handle_t *handle) {
    ew__loop *loop = handle->data;
    if (--loop->n_handles == 0 && loop->on_closed)
        loop->on_closed(loop, loop->on_closed_ud);
}

void ew__loop_close(ew__loop *loop, void (*on_closed)(ew__loop *loop, void *ud), void *ud) {
    if (loop->closing)
        return;
    loop->closing = true;
    ew__mailbox_close(&loop->executor.mailbox); /* what comes from now on is run by the end of ew__loop_run */
    loop->on_closed = on_closed;
    loop->on_closed_ud = ud;
    spin_stop(&loop->spin);
    loop->spin.taken = NULL;
    struct ew__loop_handles *handles = loop->handles;
    uv_close((uv_handle_t *)&handles->wake, on_handle_closed);
    uv_close((uv_handle_t *)&handles->before_wait, on_handle_closed);
    uv_close((uv_handle_t *)&handles->after_wait, on_handle_closed);
    uv_close((uv_handle_t *)&handles->timer, on_handle_closed);
    uv_close((uv_handle_t *)&handles->idle, on_handle_closed);
}

void ew__loop_done(ew__loop *loop) {
    const ew_env *env = loop->executor.env;
    if (loop->owns_uv)
        (void)uv_loop_close(&loop->handles->own);
    ew__executor_done(&loop->executor);
    ew__tls_loop_done(loop);
    free_memory(loop, env);
}

unsigned ew__cores(void) { return (unsigned)uv_available_parallelism(); }

ew_err ew__err_from_uv(int error) {
    switch (error) {
    case 0:
        return EW_OK;
    case UV_ENOMEM:
        return EW_ENOMEM;
    case UV_EADDRINUSE:
        return EW_EADDRINUSE;
    case UV_EACCES:
    case UV_EPERM:
        return EW_EACCESS;
    case UV_ETIMEDOUT:
        return EW_ETIMEOUT;
    case UV_ECANCELED:
        return EW_ECANCELLED;
    case UV_EOF:
    case UV_ECONNRESET:
    case UV_EPIPE:
        return EW_ECLOSED;
    default:
        return EW_EIO;
    }
}
