/*
 * endpoint/pool.c: see pool.h. What pools of all kinds share: the queue of calls without a connection, and the end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/pool_kind.h"

#define LEAVE_MS 1000 /* the longest that cancels may take to leave when the pool is closed */

/* ---- the queue ---- */

/*
 * A stream whose reader is slow holds up every call of its connection, because the wire has no credit: only reading can
 * stop. So a stream has a connection of its own while the pool may dial another.
 */
static bool wants_own_link(const ew__pool *pool, const ew_call *call) {
    return pool->apart && (call->wants_chunks || call->has_input);
}

static void enqueue(ew__pool *pool, struct ew__pool_wait *wait) {
    ew__list_add_last(&pool->queue.calls, &wait->node);
    pool->queue.n++;
    wait->stream = wants_own_link(pool, wait->call);
    pool->queue.n_streams += wait->stream;
    wait->number = ++pool->queue.n_ever;
}

ew_call *ew__pool_dequeue(struct ew__pool_wait *wait) {
    ew__pool *pool = wait->pool;
    ew__list_remove(&pool->queue.calls, &wait->node);
    pool->queue.n--;
    pool->queue.n_streams -= wait->stream;
    if (pool->queue.cursor == &wait->node)
        pool->queue.cursor = wait->node.next;
    return wait->call;
}

void ew__pool_fail_waiting(ew__pool *pool, ew_origin origin, ew_status status, ew_str message) {
    uint32_t n = pool->queue.n; /* only those that wait now: an end may open another call */
    while (n-- > 0 && pool->queue.calls.first)
        ew__call_fail_as(ew__pool_dequeue(ew__pool_first(pool)), origin, status, message);
}

/* ---- the callee's end of a call that waits ---- */

static void on_open(ew_call *call) {
    struct ew__pool_wait *wait = call->callee_ud;
    ew__pool *pool = wait->pool;
    if (pool->closing) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_UNAVAILABLE, EW_STR("the client is closed"));
    } else if (pool->queue.n >= pool->loop->executor.limits->client_queue) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("too many calls wait for a connection"));
    } else {
        enqueue(pool, wait);
        pool->ops->serve(pool, wait);
    }
}

static void on_cancel(ew_call *call, ew__cancel_why why) {
    struct ew__pool_wait *wait = call->callee_ud;
    (void)why;
    (void)ew__pool_dequeue(wait);
    ew__call_fail_as(call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("the call was cancelled"));
}

static const ew__callee_ops waiting = {.open = on_open, .cancel = on_cancel};

static void open_refused(ew_call *call) {
    ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
}

static const ew__callee_ops refused = {.open = open_refused};

void ew__pool_open(ew__pool *pool, ew_call *call) {
    struct ew__pool_wait *wait = ew__arena_alloc(&call->arena, sizeof *wait);
    if (!wait) {
        ew__call_open_on(call, &refused, NULL);
        return;
    }
    *wait = (struct ew__pool_wait){.call = call, .pool = pool, .since = pool->loop->executor.now};
    ew__call_open_on(call, &waiting, wait);
}

ew_err ew__pool_take(ew__pool *pool, ew_call *call) {
    if (pool->closing || pool->queue.n >= pool->loop->executor.limits->client_queue)
        return EW_EBUSY;
    struct ew__pool_wait *wait = ew__arena_alloc(&call->arena, sizeof *wait);
    if (!wait)
        return EW_ENOMEM;
    *wait = (struct ew__pool_wait){.call = call, .pool = pool, .since = pool->loop->executor.now};
    call->callee = &waiting;
    call->callee_ud = wait;
    call->outgoing.begun = false;
    enqueue(pool, wait);
    pool->ops->serve(pool, wait);
    return EW_OK;
}

/* ---- the end ---- */

/* Whether cancels are under way: on connections of their own, or behind what a peer has not taken yet. */
static bool is_leaving(const ew__pool *pool) {
    bool leaving = pool->one_shots.n > 0 && !(pool->wire->caps & EW__ONE_SHOTS_WAIT);
    for (const ew__link *link = pool->links; link && !leaving; link = link->next)
        leaving = link->stream.finishing && !link->stream.lingering && !link->stream.closing;
    return leaving;
}

/* The last cancels have left, or had their time: closes what is left. */
static void close_rest(ew__pool *pool) {
    pool->leaving = false;
    ew__timer_stop(&pool->loop->executor.timers, &pool->leave);
    pool->ops->close(pool);
    ew__one_shots_close(&pool->one_shots);
    for (ew__link *link = pool->links, *next; link; link = next) {
        next = link->next;
        ew__link_close(link, EW_OK);
    }
}

void ew__pool_check_closed(ew__pool *pool) {
    if (pool->leaving && ew__timer_active(&pool->leave) && !is_leaving(pool))
        close_rest(pool);
    if (!pool->closing || pool->leaving || pool->links || pool->one_shots.n > 0 || !pool->ops->is_closed(pool) ||
        !pool->on_closed)
        return;
    void (*on_closed)(ew__pool * pool) = pool->on_closed;
    pool->on_closed = NULL;
    on_closed(pool);
}

static void on_leave_timeout(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__pool *pool = ew__container_of(timer, ew__pool, leave);
    close_rest(pool);
    ew__pool_check_closed(pool);
}

/* Sends the cancels that are still owed. What the peer does not take at once leaves as it takes it. */
static void send_cancels(ew__pool *pool) {
    for (ew__link *link = pool->links, *next; link; link = next) {
        next = link->next;
        if (!link->peer || !link->peer->wire->leave || link->peer->role != EW__CALL || link->stream.closing)
            continue;
        link->peer->wire->leave(link->peer);
        if (link->conn.out.bytes > 0)
            ew__stream_flush(&link->stream);
        if (link->conn.out.bytes > 0 || link->stream.raw->bytes > 0)
            ew__stream_finish(&link->stream);
    }
}

static void on_one_shots_gone(ew__one_shots *one_shots) {
    ew__pool_check_closed(ew__container_of(one_shots, ew__pool, one_shots));
}

void ew__pool_close(ew__pool *pool, void (*on_closed)(ew__pool *pool)) {
    pool->closing = true;
    pool->on_closed = on_closed;
    pool->leaving = true;
    ew__pool_fail_waiting(pool, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("the client is closed"));
    send_cancels(pool);
    ew__executor *executor = &pool->loop->executor;
    uint64_t until = ew__executor_read_clock(executor) + EW__MS(LEAVE_MS);
    if (!is_leaving(pool) || ew__timer_set(&executor->timers, &pool->leave, until, on_leave_timeout) != EW_OK)
        close_rest(pool);
    ew__pool_check_closed(pool);
}

/* ---- life ---- */

void *ew__pool_new(const ew__pool_ops *ops, const ew__pool_config *config) {
    ew__pool *pool = ew__zalloc(config->loop->executor.env, ops->size);
    if (!pool)
        return NULL;
    pool->ops = ops;
    pool->loop = config->loop;
    pool->wire = config->wire;
    pool->site = *config->site;
    pool->where = *config->where;
    pool->apart = config->apart && config->wire->sharing;
    pool->ud = config->ud;
    ew__one_shots_init(&pool->one_shots, config->loop, on_one_shots_gone);
    return pool;
}

void ew__pool_free(ew__pool *pool) {
    if (!pool)
        return;
    const ew_env *env = pool->loop->executor.env;
    if (pool->ops->done)
        pool->ops->done(pool);
    ew__scratches_done(&pool->scratches, env);
    ew__free(env, pool, pool->ops->size);
}

void ew__pool_warm(ew__pool *pool) {
    if (pool->ops->warm && !pool->closing)
        pool->ops->warm(pool);
}

uint32_t ew__pool_runtimes(const ew__pool *pool) { return pool->ops->runtimes ? pool->ops->runtimes(pool) : 0; }

const char *ew__pool_child_end(const ew__pool *pool) { return pool->ops->child_end ? pool->ops->child_end(pool) : ""; }
