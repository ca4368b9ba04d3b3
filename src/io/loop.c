/*
 * io/loop.c: see loop.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/loop.h"
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

static void loop_post(ew__executor *executor, ew__task *task) {
    ew__loop *loop = ew__loop_of(executor);
    task->next = NULL;
    bool here = loop_here(executor);
    if (here)
        loop->own_posts = true; /* seen before the loop waits: it need not wake itself */
    pthread_mutex_lock(&loop->lock);
    if (loop->posted_last)
        loop->posted_last->next = task;
    else
        loop->posted = task;
    loop->posted_last = task;
    /* a closed loop has nothing to wake; what comes this late is seen by ew__loop_run's end, or by nobody */
    if (!here && !loop->closing)
        uv_async_send(&loop->wake);
    pthread_mutex_unlock(&loop->lock);
}

static const ew__executor_ops loop_ops = {.here = loop_here, .post = loop_post};

static void run_posted(ew__loop *loop) {
    loop->own_posts = false;
    pthread_mutex_lock(&loop->lock);
    ew__task *task = loop->posted;
    loop->posted = loop->posted_last = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (task) {
        ew__task *next = task->next;
        task->fn(task);
        task = next;
    }
}

void ew__loop_run_own(ew__loop *loop) {
    if (loop->own_posts)
        run_posted(loop);
}

/* ---- a turn ---- */

/* Streams that become dirty while we flush wait for the next turn, so that no stream keeps the others waiting. */
static void flush_dirty(ew__loop *loop) {
    ew__stream *stream = loop->dirty;
    loop->dirty = NULL;
    while (stream) {
        ew__stream *next = stream->next_dirty;
        stream->next_dirty = NULL;
        stream->dirty = false;
        ew__stream_flush(stream);
        stream = next;
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

/* ---- looking before sleeping ---- */

#define MOST_LUCK 8
#define IN_VAIN 4 /* what a look in vain takes of it: it should pay four times out of five */

static void stop_looking(ew__spin *look) {
    if (look->here)
        atomic_store_explicit(look->taken, false, memory_order_release);
    look->here = false;
}

static bool may_look(ew__spin *look) {
    if (!look->here)
        look->here = !atomic_exchange_explicit(look->taken, true, memory_order_acquire);
    return look->here;
}

static void change_luck(ew__spin *look, int by) {
    int luck = look->luck + by;
    look->luck = (int8_t)(luck > MOST_LUCK ? MOST_LUCK : luck < -MOST_LUCK ? -MOST_LUCK : luck);
}

/* Something has come. After a sleep our own waking up was part of the wait, which looking would have spared. */
static void learn(ew__spin *look, uint64_t now, uint64_t most) {
    uint64_t gap = now - look->last_event;
    change_luck(look, gap <= (look->here ? most : 2 * most) ? 1 : -1);
    look->last_event = now;
    look->woken = false;
}

/* Whether the next wait is to be none at all. */
static bool looks_on(ew__loop *loop) {
    ew__spin *look = &loop->look;
    uint64_t now = loop->executor.now, most = loop->executor.limits->spin_us * 1000;
    if (!look->taken)
        return false;
    if (loop->n_read > 0 || look->woken)
        learn(look, now, most);
    bool in_time = now - look->last_event < most;
    if (look->expects && look->luck >= 0 && in_time && may_look(look)) {
        if (loop->n_read == 0)
            (void)sched_yield(); /* nothing is there yet: whoever waits for this core goes first */
        return true;
    }
    if (look->here && !in_time) {
        change_luck(look, -IN_VAIN);
        look->expects = false;
    }
    stop_looking(look);
    return false;
}

static void arm_timer(ew__loop *loop, uint64_t next) {
    bool at_once = next <= loop->executor.now || loop->dirty || loop->own_posts || looks_on(loop);
    if (at_once != (uv_is_active((uv_handle_t *)&loop->idle) != 0)) {
        if (at_once)
            uv_idle_start(&loop->idle, on_idle);
        else
            uv_idle_stop(&loop->idle);
    }
    if (at_once || next == loop->timer_armed)
        return;
    loop->timer_armed = next;
    if (next == EW__NEVER) {
        uv_timer_stop(&loop->timer);
        return;
    }
    uv_update_time(loop->uv);
    uv_timer_start(&loop->timer, on_timer, (next - loop->executor.now + 999999) / 1000000, 0);
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
    loop->look.woken = true;
    run_posted(loop);
}

/* ---- life ---- */

static void init_handles(ew__loop *loop) {
    uv_prepare_init(loop->uv, &loop->before_wait);
    uv_check_init(loop->uv, &loop->after_wait);
    uv_timer_init(loop->uv, &loop->timer);
    uv_idle_init(loop->uv, &loop->idle);
    loop->wake.data = loop->before_wait.data = loop->after_wait.data = loop->timer.data = loop->idle.data = loop;
    loop->timer_armed = EW__NEVER;
    uv_prepare_start(&loop->before_wait, before_wait);
    uv_check_start(&loop->after_wait, after_wait);
    loop->n_handles = 5;
}

ew_err ew__loop_init(ew__loop *loop, const ew_env *env, const ew_limits *limits, uv_loop_t *host) {
    memset(loop, 0, sizeof *loop);
    loop->executor.ops = &loop_ops;
    loop->turn = 1;
    loop->read_buffer = ew__alloc(env, EW__READ_BUFFER);
    if (!loop->read_buffer)
        return EW_ENOMEM;
    loop->uv = host ? host : &loop->own;
    loop->owns_uv = host == NULL;
    if (loop->owns_uv && uv_loop_init(&loop->own) != 0) {
        ew__free(env, loop->read_buffer, EW__READ_BUFFER);
        return EW_EIO;
    }
    if (uv_async_init(loop->uv, &loop->wake, on_wake) != 0) {
        if (loop->owns_uv)
            uv_loop_close(&loop->own);
        ew__free(env, loop->read_buffer, EW__READ_BUFFER);
        return EW_EIO;
    }
    ew__executor_init(&loop->executor, env, limits);
    pthread_mutex_init(&loop->lock, NULL);
    init_handles(loop);
    return EW_OK;
}

void ew__loop_adopt_thread(ew__loop *loop) {
    loop->thread = pthread_self();
    atomic_store_explicit(&loop->running, true, memory_order_release);
}

void ew__loop_run(ew__loop *loop) {
    ew__loop_adopt_thread(loop);
    uv_run(loop->uv, UV_RUN_DEFAULT);
    run_posted(loop); /* letters that came too late for the last wake-up still want their memory freed */
}

static void on_handle_closed(uv_handle_t *handle) {
    ew__loop *loop = handle->data;
    if (--loop->n_handles == 0 && loop->on_closed)
        loop->on_closed(loop, loop->on_closed_ud);
}

void ew__loop_close(ew__loop *loop, void (*on_closed)(ew__loop *loop, void *ud), void *ud) {
    if (loop->closing)
        return;
    pthread_mutex_lock(&loop->lock);
    loop->closing = true;
    pthread_mutex_unlock(&loop->lock);
    loop->on_closed = on_closed;
    loop->on_closed_ud = ud;
    stop_looking(&loop->look);
    loop->look.taken = NULL;
    uv_close((uv_handle_t *)&loop->wake, on_handle_closed);
    uv_close((uv_handle_t *)&loop->before_wait, on_handle_closed);
    uv_close((uv_handle_t *)&loop->after_wait, on_handle_closed);
    uv_close((uv_handle_t *)&loop->timer, on_handle_closed);
    uv_close((uv_handle_t *)&loop->idle, on_handle_closed);
}

void ew__loop_done(ew__loop *loop) {
    const ew_env *env = loop->executor.env;
    if (loop->owns_uv)
        (void)uv_loop_close(&loop->own);
    ew__executor_done(&loop->executor);
    pthread_mutex_destroy(&loop->lock);
    ew__tls_loop_done(loop);
    ew__free(env, loop->read_buffer, EW__READ_BUFFER);
}

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
