/*
 * endpoint/pool.c: see pool.h. A call without a free connection waits; a dial is begun for it if the limit allows. A
 * connection that comes back, or a dial that succeeds, takes the call that has waited longest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/pool_kind.h"
#include <stdio.h>

#define IDLE_MS                                                                                                        \
    4000 /* shorter than the keep-alive of common servers (5 s), so that they do not close under a call of ours */
#define PATIENCE_MS 10 /* so long a few calls wait for a place on a connection that carries many */
#define LEAVE_MS 1000  /* the longest that cancels may take to leave when the pool is closed */
#define CROWD_SHARE 4  /* one in so many of those that a connection takes are no longer few */
#define SHARE_MS 1000  /* after a refused dial streams share connections for that long */

struct ew__pool_dial {
    struct ew__pool_dial *next, *prev;
    ew__pool *pool;
    ew__link *link;
    ew__dial *dial;
};

/* ---- the queue ---- */

/*
 * A stream whose reader is slow holds up every call of its connection, because the wire has no credit: only reading can
 * stop. So a stream has a connection of its own while the pool may dial another.
 */
static bool wants_own_link(const ew__pool *pool, const ew_call *call) {
    return pool->apart && pool->wire->sharing && (call->wants_chunks || call->has_input);
}

static void enqueue(ew__pool *pool, struct ew__pool_wait *wait) {
    wait->prev = pool->last;
    wait->next = NULL;
    if (pool->last)
        pool->last->next = wait;
    else
        pool->first = wait;
    pool->last = wait;
    pool->n_waiting++;
    wait->stream = wants_own_link(pool, wait->call);
    pool->n_streams_waiting += wait->stream;
    wait->number = ++pool->n_calls;
}

ew_call *ew__pool_dequeue(struct ew__pool_wait *wait) {
    ew__pool *pool = wait->pool;
    if (wait->prev)
        wait->prev->next = wait->next;
    else
        pool->first = wait->next;
    if (wait->next)
        wait->next->prev = wait->prev;
    else
        pool->last = wait->prev;
    pool->n_waiting--;
    pool->n_streams_waiting -= wait->stream;
    if (pool->cursor == wait)
        pool->cursor = wait->next;
    return wait->call;
}

void ew__pool_fail_waiting(ew__pool *pool, ew_origin origin, ew_status status, ew_str message) {
    uint32_t n = pool->n_waiting; /* only those that wait now: an end may open another call */
    while (n-- > 0 && pool->first)
        ew__call_fail_as(ew__pool_dequeue(pool->first), origin, status, message);
}

/* ---- connections ---- */

/* Whether cancels are under way: on connections of their own, or behind what a peer has not taken yet. */
static bool is_leaving(const ew__pool *pool) {
    bool leaving = pool->asides.n > 0 && !(pool->wire->caps & EW__ONE_SHOTS_WAIT);
    for (const ew__link *link = pool->links; link && !leaving; link = link->next)
        leaving = link->stream.finishing && !link->stream.lingering && !link->stream.closing;
    return leaving;
}

/* The last cancels have left, or had their time: closes what is left. */
static void close_rest(ew__pool *pool) {
    pool->leaving = false;
    ew__timer_stop(&pool->loop->executor.timers, &pool->leave);
    pool->kind->close(pool);
    ew__one_shots_close(&pool->asides);
    for (ew__link *link = pool->links, *next; link; link = next) {
        next = link->next;
        ew__link_close(link, EW_OK);
    }
}

void ew__pool_check_closed(ew__pool *pool) {
    if (pool->leaving && ew__timer_active(&pool->leave) && !is_leaving(pool))
        close_rest(pool);
    if (!pool->closing || pool->leaving || pool->links || pool->asides.n > 0 || !pool->kind->is_closed(pool) ||
        !pool->on_closed)
        return;
    void (*on_closed)(ew__pool * pool) = pool->on_closed;
    pool->on_closed = NULL;
    ew__timer_stop(&pool->loop->executor.timers, &pool->idle);
    ew__timer_stop(&pool->loop->executor.timers, &pool->patience);
    on_closed(pool);
}

/* Connections that carry many calls: one is enough for them, and it stays until the client goes. */
static bool is_session(const ew__pool *pool) { return (pool->wire->caps & EW__CAN_MANY) != 0; }

/*
 * The row of those that may have room. One that says it has room joins; one that is found full leaves. So nobody looks
 * at a thousand full ones to find the one whose call has just ended. The one that was used last comes first, unless they
 * take turns: a session is filled up before another is used, and of those that carry one call the others become idle and
 * are closed.
 */
static void row_join(ew__pool *pool, ew__link *link, bool front) {
    if (link->roomy)
        return;
    ew__link *prev = front ? NULL : pool->roomy_last, *next = front ? pool->roomy : NULL;
    link->roomy = true;
    link->roomy_prev = prev;
    link->roomy_next = next;
    if (prev)
        prev->roomy_next = link;
    else
        pool->roomy = link;
    if (next)
        next->roomy_prev = link;
    else
        pool->roomy_last = link;
}

static void row_leave(ew__pool *pool, ew__link *link) {
    if (!link->roomy)
        return;
    link->roomy = false;
    if (link->roomy_prev)
        link->roomy_prev->roomy_next = link->roomy_next;
    else
        pool->roomy = link->roomy_next;
    if (link->roomy_next)
        link->roomy_next->roomy_prev = link->roomy_prev;
    else
        pool->roomy_last = link->roomy_prev;
}

static ew__sharing sharing_of(const ew__pool *pool, const ew__link *link) {
    return pool->apart && pool->wire->sharing ? pool->wire->sharing(link->peer) : EW__SHARING_ANY;
}

/* Whether the link, one of n_live, carries no call. A session stays, but not the further connections that streams have had. */
static bool is_spare(const ew__pool *pool, const ew__link *link, uint32_t n_live) {
    if (is_session(pool))
        return n_live > 1 && sharing_of(pool, link) == EW__SHARING_IDLE;
    return pool->wire->capacity(link->peer) > 0;
}

static void on_idle(ew__timer *timer, uint64_t now) {
    ew__pool *pool = ew__container_of(timer, ew__pool, idle);
    bool more = false;
    uint32_t n_live = pool->n_links;
    for (ew__link *link = pool->links, *next; link; link = next) {
        next = link->next;
        if (!link->peer || link->stream.closing) {
            n_live--;
        } else if (!is_spare(pool, link, n_live)) {
            continue;
        } else if (now - link->idle_since >= EW__MS(IDLE_MS)) {
            ew__link_close(link, EW_OK);
            n_live--;
        } else {
            more = true;
        }
    }
    if (more)
        (void)ew__timer_set(&pool->loop->executor.timers, timer, now + EW__MS(1000), on_idle);
}

static void on_link_ready(ew__link *link) {
    ew__pool *pool = link->owner_ud;
    link->idle_since = pool->loop->executor.now;
    bool idle_session = sharing_of(pool, link) == EW__SHARING_IDLE;
    row_join(pool, link, !pool->fixed && !idle_session);
    pool->kind->serve(pool, NULL);
    bool spare = !is_session(pool) || (idle_session && pool->n_links > 1);
    if (spare && !ew__timer_active(&pool->idle) && !pool->closing)
        (void)ew__timer_set(&pool->loop->executor.timers, &pool->idle, link->idle_since + EW__MS(IDLE_MS), on_idle);
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__pool *pool = link->owner_ud;
    EW__LIST_REMOVE(pool->links, link);
    row_leave(pool, link);
    pool->n_links--;
    if (pool->kind->lost && (link->lost || why != EW_OK))
        pool->kind->lost(pool);
    if (pool->child.at_end == link)
        ew__pool_child_link_closed(pool);
    if (!pool->closing)
        pool->kind->serve(pool, NULL);
    ew__pool_check_closed(pool);
}

/*
 * The other side has ended a connection with a call on it. It has probably gone altogether: others to it that are idle
 * look alive a moment longer, and must not get the calls that follow.
 */
static void on_link_lost(ew__link *link) {
    ew__pool *pool = link->owner_ud;
    link->lost = link->peer && (is_session(pool) || pool->wire->capacity(link->peer) == 0);
    if (!link->lost || is_session(pool))
        return;
    for (ew__link *other = pool->links, *next; other; other = next) {
        next = other->next;
        if (other != link && other->peer && pool->wire->capacity(other->peer) > 0)
            ew__link_close(other, EW_OK);
    }
}

static bool on_link_holds_eof(ew__link *link) {
    ew__pool *pool = link->owner_ud;
    on_link_lost(link);
    return pool->where.kind == EW__WHERE_CHILD && ew__pool_child_holds_eof(pool, link);
}

static ew_err on_link_aside(ew__link *link, const void *bytes, size_t n) {
    ew__pool *pool = link->owner_ud;
    return pool->closing && !pool->leaving
               ? EW_EBUSY
               : ew__one_shot_send(&pool->asides, &pool->where, bytes, n, (pool->wire->caps & EW__ONE_SHOTS_WAIT) != 0);
}

static ew_err on_link_again(ew__link *link, ew_call *call) { return ew__pool_take(link->owner_ud, call); }

static const ew__link_owner owner = {.holds_eof = on_link_holds_eof,
                                     .lost = on_link_lost,
                                     .ready = on_link_ready,
                                     .aside = on_link_aside,
                                     .again = on_link_again,
                                     .closed = on_link_closed};

static void adopt(ew__pool *pool, ew__link *link) {
    EW__LIST_ADD(pool->links, link);
    pool->n_links++;
    ew__count(&pool->traffic.dialled, 1);
    link->conn.stdio = pool->where.kind == EW__WHERE_CHILD;
    ew__link_start(link, pool->loop, pool->wire, EW__CALL);
    on_link_ready(link);
}

static void forget_dial(struct ew__pool_dial *entry) {
    ew__pool *pool = entry->pool;
    EW__LIST_REMOVE(pool->dials, entry);
    pool->n_dialling--;
    ew__free(pool->loop->executor.env, entry, sizeof *entry);
}

static void fail_unreached(ew__pool *pool, const char *detail) {
    char text[700];
    if (pool->where.kind == EW__WHERE_CHILD)
        (void)snprintf(text, sizeof text, "%s", detail);
    else
        (void)snprintf(text, sizeof text, "cannot connect to %.*s: %s", (int)pool->site.authority.len,
                       pool->site.authority.ptr, detail);
    ew__pool_fail_waiting(pool, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, ew_str_from(text));
}

static void serve_waiting(ew__pool *pool);

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    ew__link *link = ew__container_of(stream, ew__link, stream);
    struct ew__pool_dial *entry = link->owner_ud;
    ew__pool *pool = entry->pool;
    link->owner_ud = pool;
    forget_dial(entry);
    if (err == EW_OK) {
        adopt(pool, link);
        if (pool->closing)
            ew__link_close(link, EW_OK);
        return;
    }
    ew__link_discard(link);
    pool->share_until = pool->loop->executor.now + EW__MS(SHARE_MS);
    if (!pool->closing && pool->n_links == 0 && pool->n_dialling == 0 &&
        !(pool->kind->dial_failed && pool->kind->dial_failed(pool, detail)))
        fail_unreached(pool, detail);
    else if (!pool->closing)
        serve_waiting(pool); /* streams that waited for this one share the others */
    ew__pool_check_closed(pool);
}

static ew_err dial(ew__pool *pool) {
    ew__loop *loop = pool->loop;
    struct ew__pool_dial *entry = ew__zalloc(loop->executor.env, sizeof *entry);
    if (!entry)
        return EW_ENOMEM;
    entry->pool = pool;
    entry->link = ew__link_new_ours(loop, &pool->site, &pool->scratches, &pool->traffic, &owner, entry);
    ew_err err = entry->link ? ew__dial_start(loop, &entry->link->stream, &pool->where,
                                              loop->executor.limits->connect_ms, on_dialled, &entry->dial)
                             : EW_ENOMEM;
    if (err != EW_OK) {
        if (entry->link)
            ew__link_discard(entry->link);
        ew__free(loop->executor.env, entry, sizeof *entry);
        return err;
    }
    EW__LIST_ADD(pool->dials, entry);
    pool->n_dialling++;
    return EW_OK;
}

static bool has_room(const ew__pool *pool, const ew__link *link) {
    return link->peer && !link->stream.closing && pool->wire->capacity(link->peer) > 0;
}

static uint64_t most_links(const ew__pool *pool) {
    if (pool->fixed)
        return pool->fixed;
    if (pool->where.kind == EW__WHERE_CHILD)
        return 1;
    return pool->most_links ? pool->most_links : pool->loop->executor.limits->client_connections;
}

/* Whether streams are kept apart from other calls now. */
static bool keeps_apart(const ew__pool *pool) {
    return pool->apart && pool->wire->sharing && pool->n_links + pool->n_dialling < most_links(pool) &&
           pool->loop->executor.now >= pool->share_until;
}

/* A link that can take a call. Those that have room again and did not say so are found when the row is empty. */
static ew__link *shared_link(ew__pool *pool) {
    ew__link *link;
    while ((link = pool->roomy) != NULL) {
        if (!has_room(pool, link)) {
            row_leave(pool, link);
            continue;
        }
        if (pool->fixed) { /* the next call is the next one's */
            row_leave(pool, link);
            row_join(pool, link, false);
        }
        return link;
    }
    for (link = pool->links; link; link = link->next)
        if (has_room(pool, link)) {
            row_join(pool, link, !pool->fixed);
            return link;
        }
    return NULL;
}

/*
 * The same where streams are kept apart. Idle links are at the end of the row, where streams look for one; links with
 * calls are at its beginning. A link with a stream is not in the row: it joins when it is ready again.
 */
static ew__link *separate_link(ew__pool *pool, bool stream) {
    ew__link *link = stream ? pool->roomy_last : pool->roomy, *next;
    for (; link; link = next) {
        next = stream ? link->roomy_prev : link->roomy_next;
        ew__sharing sharing = has_room(pool, link) ? sharing_of(pool, link) : EW__SHARING_STREAM;
        if (sharing == EW__SHARING_STREAM)
            row_leave(pool, link);
        else if (!stream || sharing != EW__SHARING_CALLS)
            break;
    }
    if (link && !stream && link->roomy_prev) { /* the next calls find it at once */
        row_leave(pool, link);
        row_join(pool, link, true);
    }
    return link;
}

/* The first call in the queue that a link can take, and that link. NULL: there is none. */
static struct ew__pool_wait *next_servable(ew__pool *pool, ew__link **ret_link) {
    struct ew__pool_wait *wait = pool->first;
    if (!wait)
        return NULL;
    bool apart = keeps_apart(pool);
    *ret_link = apart ? separate_link(pool, wait->stream) : shared_link(pool);
    if (*ret_link || !apart || !wait->stream || pool->n_streams_waiting == pool->n_waiting)
        return *ret_link ? wait : NULL;
    while (wait->stream) /* those behind the streams need not wait for what is dialled for these */
        wait = wait->next;
    *ret_link = separate_link(pool, false);
    return *ret_link ? wait : NULL;
}

static uint32_t min_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint64_t calls_per_link(const ew__wire *wire, const ew_limits *limits) {
    return wire->most ? wire->most(limits) : limits->calls_per_connection;
}

static void on_patience(ew__timer *timer, uint64_t now) {
    ew__pool *pool = ew__container_of(timer, ew__pool, patience);
    (void)now;
    if (!pool->closing)
        pool->kind->serve(pool, NULL);
}

/* Whether there is a link on which calls without a stream end and make room for others. */
static bool has_live_link(const ew__pool *pool) {
    const ew__link *link = pool->links;
    while (link && (!link->peer || link->stream.closing || sharing_of(pool, link) == EW__SHARING_STREAM))
        link = link->next;
    return link != NULL;
}

/*
 * There are more calls than connections have places. As long as they are a few more they get the places of those that
 * end: another connection would not make the peer faster, and what is sent and read at a time would be half as much on
 * each. It is dialled for those that have waited for a while: the peer is slow, or stuck.
 */
static bool can_wait(ew__pool *pool, uint64_t per_link, uint32_t n_coming) {
    ew__executor *executor = &pool->loop->executor;
    const struct ew__pool_wait *oldest = pool->first;
    uint64_t few = n_coming * per_link + per_link / CROWD_SHARE;
    if (!oldest || pool->n_waiting >= few || !(n_coming || has_live_link(pool)))
        return false;
    uint64_t until = oldest->since + EW__MS(PATIENCE_MS); /* nobody waits for longer than the first */
    if (executor->now >= until)
        return false;
    return ew__timer_active(&pool->patience) ||
           ew__timer_set(&executor->timers, &pool->patience, until, on_patience) == EW_OK;
}

static bool wants_dial(ew__pool *pool) {
    const ew_limits *limits = pool->loop->executor.limits;
    uint64_t per_link = is_session(pool) ? calls_per_link(pool->wire, limits) : 1;
    uint32_t n_streams = pool->n_streams_waiting > 0 && keeps_apart(pool) ? pool->n_streams_waiting : 0;
    uint32_t n_calls = pool->n_waiting - n_streams, n_coming = pool->n_dialling - min_of(pool->n_dialling, n_streams);
    bool wanted = n_streams > pool->n_dialling ||
                  (n_calls > n_coming * per_link && (pool->fixed || !can_wait(pool, per_link, n_coming))) ||
                  (pool->fixed && pool->opening);
    wanted = wanted && pool->n_links + pool->n_dialling < most_links(pool);
    return wanted && (!pool->kind->may_dial || pool->kind->may_dial(pool));
}

/* Gives calls to links that can take them. */
static void serve_waiting(ew__pool *pool) {
    ew__link *link;
    struct ew__pool_wait *wait;
    while ((wait = next_servable(pool, &link)) != NULL) {
        ew_call *call = ew__pool_dequeue(wait);
        link->idle_since = pool->loop->executor.now;
        call->begun = true;
        if (pool->wire->open(link->peer, call) != EW_OK)
            ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("the connection refused the call"));
    }
}

void ew__pool_serve_dialled(ew__pool *pool) {
    serve_waiting(pool);
    while (wants_dial(pool)) {
        if (dial(pool) == EW_OK)
            continue;
        if (pool->n_links + pool->n_dialling == 0)
            ew__pool_fail_waiting(pool, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
}

static void serve_dialled(ew__pool *pool, struct ew__pool_wait *fresh) {
    pool->opening = fresh != NULL;
    ew__pool_serve_dialled(pool);
    pool->opening = false;
}

void ew__pool_close_dials(ew__pool *pool) {
    for (struct ew__pool_dial *entry = pool->dials, *next; entry; entry = next) {
        next = entry->next;
        ew__dial_cancel(entry->dial);
    }
}

bool ew__pool_no_dials(const ew__pool *pool) { return !pool->dials; }

static const ew__pool_kind dialled = {
    .serve = serve_dialled, .close = ew__pool_close_dials, .is_closed = ew__pool_no_dials};

/* ---- the callee's end of a call that waits ---- */

static void on_open(ew_call *call) {
    struct ew__pool_wait *wait = call->callee_ud;
    ew__pool *pool = wait->pool;
    if (pool->closing) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_UNAVAILABLE, EW_STR("the client is closed"));
    } else if (pool->n_waiting >= pool->loop->executor.limits->client_queue) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("too many calls wait for a connection"));
    } else {
        enqueue(pool, wait);
        pool->kind->serve(pool, wait);
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
    if (pool->closing || pool->n_waiting >= pool->loop->executor.limits->client_queue)
        return EW_EBUSY;
    struct ew__pool_wait *wait = ew__arena_alloc(&call->arena, sizeof *wait);
    if (!wait)
        return EW_ENOMEM;
    *wait = (struct ew__pool_wait){.call = call, .pool = pool, .since = pool->loop->executor.now};
    call->callee = &waiting;
    call->callee_ud = wait;
    call->begun = false;
    enqueue(pool, wait);
    pool->kind->serve(pool, wait);
    return EW_OK;
}

bool ew__pool_is_idle(const ew__pool *pool) {
    bool idle = pool->n_waiting == 0 && pool->n_dialling == 0;
    for (const ew__link *link = pool->links; link && idle; link = link->next)
        idle = link->stream.closing || (link->peer && pool->wire->capacity(link->peer) > 0);
    return idle;
}

/* ---- life ---- */

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

static void on_asides_gone(ew__one_shots *asides) { ew__pool_check_closed(ew__container_of(asides, ew__pool, asides)); }

void ew__pool_init(ew__pool *pool, ew__loop *loop, const ew__wire *wire, const ew__site *site, const ew__where *where) {
    memset(pool, 0, sizeof *pool);
    pool->kind = &dialled;
    pool->loop = loop;
    pool->wire = wire;
    pool->site = *site;
    pool->where = *where;
    if (where->kind == EW__WHERE_CHILD)
        ew__pool_child_init(pool);
    ew__one_shots_init(&pool->asides, loop, on_asides_gone);
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

void ew__pool_done(ew__pool *pool) {
    if (pool->kind->done)
        pool->kind->done(pool);
    ew__scratches_done(&pool->scratches, pool->loop->executor.env);
}
