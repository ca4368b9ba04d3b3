/*
 * endpoint/pool_dial.c: targets that are dialled. A dial is begun for a call that waits if the limit allows. A connection
 * that has room again, or a dial that succeeds, takes the call that has waited longest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/pool_kind.h"
#include "base/list.h"
#include <stdio.h>

#define IDLE_MS                                                                                                        \
    4000 /* shorter than the keep-alive of common servers (5 s), so that they do not close under a call of ours */
#define PATIENCE_MS 10 /* so long a few calls wait for a place on a connection that carries many */
#define CROWD_SHARE 4  /* one in so many of those that a connection takes are no longer few */
#define SHARE_MS 1000  /* after a refused dial streams share connections for that long */

struct ew__pool_dial {
    struct ew__pool_dial *next, *prev;
    ew__dial_pool *pool;
    ew__link *link;
    ew__dial *dial;
};

/* ---- connections ---- */

/* Connections that carry many calls: one is enough for them, and it stays until the client goes. */
static bool is_session(const ew__pool *pool) { return (pool->wire->caps & EW__CAN_MANY) != 0; }

static ew__link *roomy_link(ew__list_node *node) { return EW__ITEM(node, ew__link, roomy_node); }

/*
 * The list of links that may have room. A link joins when it reports room and leaves when it is found full. So a call
 * does not search a thousand full links for the one whose call has just ended. The link that was used last comes first,
 * unless they take turns: a session is filled up before another is used, and of links that carry one call the others
 * become idle and are closed.
 */
static void row_join(ew__dial_pool *self, ew__link *link, bool front) {
    if (link->roomy)
        return;
    link->roomy = true;
    if (front)
        ew__list_add_first(&self->roomy, &link->roomy_node);
    else
        ew__list_add_last(&self->roomy, &link->roomy_node);
}

static void row_leave(ew__dial_pool *self, ew__link *link) {
    if (!link->roomy)
        return;
    link->roomy = false;
    ew__list_remove(&self->roomy, &link->roomy_node);
}

static ew__sharing sharing_of(const ew__pool *pool, const ew__link *link) {
    return pool->apart ? pool->wire->sharing(link->peer) : EW__SHARING_ANY;
}

/* Whether the link, one of n_live, carries no call. A session stays, but not the further connections that streams have had. */
static bool is_spare(const ew__pool *pool, const ew__link *link, uint32_t n_live) {
    if (is_session(pool))
        return n_live > 1 && sharing_of(pool, link) == EW__SHARING_IDLE;
    return pool->wire->capacity(link->peer) > 0;
}

static void on_idle(ew__timer *timer, uint64_t now) {
    ew__dial_pool *self = ew__container_of(timer, ew__dial_pool, idle);
    ew__pool *pool = &self->core;
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
    ew__dial_pool *self = ew__dial_pool_of(pool);
    link->idle_since = pool->loop->executor.now;
    bool idle_session = sharing_of(pool, link) == EW__SHARING_IDLE;
    row_join(self, link, !self->fixed && !idle_session);
    pool->ops->serve(pool, NULL);
    bool spare = !is_session(pool) || (idle_session && pool->n_links > 1);
    if (spare && !ew__timer_active(&self->idle) && !pool->closing)
        (void)ew__timer_set(&pool->loop->executor.timers, &self->idle, link->idle_since + EW__MS(IDLE_MS), on_idle);
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__pool *pool = link->owner_ud;
    EW__LIST_REMOVE(pool->links, link);
    row_leave(ew__dial_pool_of(pool), link);
    pool->n_links--;
    if (pool->ops->lost && (link->lost || why != EW_OK))
        pool->ops->lost(pool);
    if (pool->ops->link_closed)
        pool->ops->link_closed(pool, link);
    if (!pool->closing)
        pool->ops->serve(pool, NULL);
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
    return pool->ops->holds_eof && pool->ops->holds_eof(pool, link);
}

static ew_err on_link_one_shot(ew__link *link, const void *bytes, size_t n) {
    ew__pool *pool = link->owner_ud;
    return pool->closing && !pool->leaving ? EW_EBUSY
                                           : ew__one_shot_send(&pool->one_shots, &pool->where, bytes, n,
                                                               (pool->wire->caps & EW__ONE_SHOTS_WAIT) != 0);
}

static ew_err on_link_again(ew__link *link, ew_call *call) { return ew__pool_take(link->owner_ud, call); }

static const ew__link_owner owner = {.holds_eof = on_link_holds_eof,
                                     .lost = on_link_lost,
                                     .ready = on_link_ready,
                                     .one_shot = on_link_one_shot,
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
    ew__dial_pool *self = entry->pool;
    EW__LIST_REMOVE(self->dials, entry);
    self->n_dials--;
    ew__free(self->core.loop->executor.env, entry, sizeof *entry);
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

static void serve_waiting(ew__dial_pool *self);

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    ew__link *link = ew__container_of(stream, ew__link, stream);
    struct ew__pool_dial *entry = link->owner_ud;
    ew__dial_pool *self = entry->pool;
    ew__pool *pool = &self->core;
    link->owner_ud = pool;
    forget_dial(entry);
    if (err == EW_OK) {
        adopt(pool, link);
        if (pool->closing)
            ew__link_close(link, EW_OK);
        return;
    }
    ew__link_discard(link);
    self->share_until = pool->loop->executor.now + EW__MS(SHARE_MS);
    if (!pool->closing && pool->n_links == 0 && self->n_dials == 0 &&
        !(pool->ops->dial_failed && pool->ops->dial_failed(pool, detail)))
        fail_unreached(pool, detail);
    else if (!pool->closing)
        serve_waiting(self); /* streams that waited for this one share the others */
    ew__pool_check_closed(pool);
}

static ew_err dial(ew__dial_pool *self) {
    ew__pool *pool = &self->core;
    ew__loop *loop = pool->loop;
    struct ew__pool_dial *entry = ew__zalloc(loop->executor.env, sizeof *entry);
    if (!entry)
        return EW_ENOMEM;
    entry->pool = self;
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
    EW__LIST_ADD(self->dials, entry);
    self->n_dials++;
    return EW_OK;
}

static bool has_room(const ew__pool *pool, const ew__link *link) {
    return link->peer && !link->stream.closing && pool->wire->capacity(link->peer) > 0;
}

static uint64_t max_links(const ew__dial_pool *self) {
    if (self->fixed)
        return self->fixed;
    return self->max_links ? self->max_links : self->core.loop->executor.limits->client_connections;
}

/* Whether streams are kept apart from other calls now. */
static bool keeps_apart(const ew__dial_pool *self) {
    const ew__pool *pool = &self->core;
    return pool->apart && pool->n_links + self->n_dials < max_links(self) &&
           pool->loop->executor.now >= self->share_until;
}

/* A link that can take a call. Those that have room again and did not say so are found when the row is empty. */
static ew__link *shared_link(ew__dial_pool *self) {
    const ew__pool *pool = &self->core;
    ew__link *link;
    while ((link = roomy_link(self->roomy.first)) != NULL) {
        if (!has_room(pool, link)) {
            row_leave(self, link);
            continue;
        }
        if (self->fixed) { /* the next call is the next one's */
            row_leave(self, link);
            row_join(self, link, false);
        }
        return link;
    }
    for (link = pool->links; link; link = link->next)
        if (has_room(pool, link)) {
            row_join(self, link, !self->fixed);
            return link;
        }
    return NULL;
}

/*
 * The same where streams are kept apart. Idle links are at the end of the row, where streams look for one; links with
 * calls are at its beginning. A link with a stream is not in the row: it joins when it is ready again.
 */
static ew__link *separate_link(ew__dial_pool *self, bool stream) {
    const ew__pool *pool = &self->core;
    ew__link *link = roomy_link(stream ? self->roomy.last : self->roomy.first), *next;
    for (; link; link = next) {
        next = roomy_link(stream ? link->roomy_node.prev : link->roomy_node.next);
        ew__sharing sharing = has_room(pool, link) ? sharing_of(pool, link) : EW__SHARING_STREAM;
        if (sharing == EW__SHARING_STREAM)
            row_leave(self, link);
        else if (!stream || sharing != EW__SHARING_CALLS)
            break;
    }
    if (link && !stream && link->roomy_node.prev) { /* the next calls find it at once */
        row_leave(self, link);
        row_join(self, link, true);
    }
    return link;
}

/* The first call in the queue that a link can take, and that link. NULL: there is none. */
static struct ew__pool_wait *next_servable(ew__dial_pool *self, ew__link **ret_link) {
    const ew__pool *pool = &self->core;
    struct ew__pool_wait *wait = ew__pool_first(pool);
    if (!wait)
        return NULL;
    bool apart = keeps_apart(self);
    *ret_link = apart ? separate_link(self, wait->stream) : shared_link(self);
    if (*ret_link || !apart || !wait->stream || pool->queue.n_streams == pool->queue.n)
        return *ret_link ? wait : NULL;
    while (wait->stream) /* those behind the streams need not wait for what is dialled for these */
        wait = EW__ITEM(wait->node.next, struct ew__pool_wait, node);
    *ret_link = separate_link(self, false);
    return *ret_link ? wait : NULL;
}

static uint32_t min_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint64_t calls_per_link(const ew__wire *wire, const ew_limits *limits) {
    return wire->most ? wire->most(limits) : limits->calls_per_connection;
}

static void on_patience(ew__timer *timer, uint64_t now) {
    ew__pool *pool = &ew__container_of(timer, ew__dial_pool, patience)->core;
    (void)now;
    if (!pool->closing)
        pool->ops->serve(pool, NULL);
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
static bool can_wait(ew__dial_pool *self, uint64_t per_link, uint32_t n_coming) {
    const ew__pool *pool = &self->core;
    ew__executor *executor = &pool->loop->executor;
    const struct ew__pool_wait *oldest = ew__pool_first(pool);
    uint64_t few = n_coming * per_link + per_link / CROWD_SHARE;
    if (!oldest || pool->queue.n >= few || !(n_coming || has_live_link(pool)))
        return false;
    uint64_t until = oldest->since + EW__MS(PATIENCE_MS); /* no call waits for longer than the first */
    if (executor->now >= until)
        return false;
    return ew__timer_active(&self->patience) ||
           ew__timer_set(&executor->timers, &self->patience, until, on_patience) == EW_OK;
}

static bool wants_dial(ew__dial_pool *self) {
    ew__pool *pool = &self->core;
    const ew_limits *limits = pool->loop->executor.limits;
    uint64_t per_link = is_session(pool) ? calls_per_link(pool->wire, limits) : 1;
    uint32_t n_streams = pool->queue.n_streams > 0 && keeps_apart(self) ? pool->queue.n_streams : 0;
    uint32_t n_calls = pool->queue.n - n_streams, n_coming = self->n_dials - min_of(self->n_dials, n_streams);
    bool wanted = n_streams > self->n_dials ||
                  (n_calls > n_coming * per_link && (self->fixed || !can_wait(self, per_link, n_coming))) ||
                  (self->fixed && self->opening);
    wanted = wanted && pool->n_links + self->n_dials < max_links(self);
    return wanted && (!pool->ops->may_dial || pool->ops->may_dial(pool));
}

/* Gives calls to links that can take them. */
static void serve_waiting(ew__dial_pool *self) {
    ew__pool *pool = &self->core;
    ew__link *link;
    struct ew__pool_wait *wait;
    while ((wait = next_servable(self, &link)) != NULL) {
        ew_call *call = ew__pool_dequeue(wait);
        link->idle_since = pool->loop->executor.now;
        call->outgoing.begun = true;
        if (pool->wire->open(link->peer, call) != EW_OK)
            ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("the connection refused the call"));
    }
}

void ew__dial_pool_serve(ew__pool *pool) {
    ew__dial_pool *self = ew__dial_pool_of(pool);
    serve_waiting(self);
    while (wants_dial(self)) {
        if (dial(self) == EW_OK)
            continue;
        if (pool->n_links + self->n_dials == 0)
            ew__pool_fail_waiting(pool, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
}

static void serve(ew__pool *pool, struct ew__pool_wait *fresh) {
    ew__dial_pool *self = ew__dial_pool_of(pool);
    self->opening = fresh != NULL;
    ew__dial_pool_serve(pool);
    self->opening = false;
}

bool ew__pool_is_idle(const ew__pool *pool) {
    bool idle = pool->queue.n == 0 && ew__dial_pool_is_closed(pool);
    for (const ew__link *link = pool->links; link && idle; link = link->next)
        idle = link->stream.closing || (link->peer && pool->wire->capacity(link->peer) > 0);
    return idle;
}

/* ---- life ---- */

void ew__dial_pool_cancel(ew__pool *pool) {
    for (struct ew__pool_dial *entry = ew__dial_pool_of(pool)->dials, *next; entry; entry = next) {
        next = entry->next;
        ew__dial_cancel(entry->dial);
    }
}

void ew__dial_pool_close(ew__pool *pool) {
    ew__timers *timers = &pool->loop->executor.timers;
    ew__timer_stop(timers, &ew__dial_pool_of(pool)->idle);
    ew__timer_stop(timers, &ew__dial_pool_of(pool)->patience);
    ew__dial_pool_cancel(pool);
}

bool ew__dial_pool_is_closed(const ew__pool *pool) { return !ew__dial_pool_of(pool)->dials; }

void *ew__dial_pool_new(const ew__pool_ops *ops, const ew__pool_config *config) {
    ew__dial_pool *self = ew__pool_new(ops, config);
    if (!self)
        return NULL;
    self->fixed = config->fixed;
    self->max_links = config->max_links;
    return self;
}

static const ew__pool_ops ops = {
    .size = sizeof(ew__dial_pool), .serve = serve, .close = ew__dial_pool_close, .is_closed = ew__dial_pool_is_closed};

ew_err ew__pool_dial(const ew__pool_config *config, ew__pool **ret) {
    if (config->where->kind == EW__WHERE_CHILD)
        return ew__pool_child(config, ret);
    ew__dial_pool *self = ew__dial_pool_new(&ops, config);
    if (self)
        *ret = &self->core;
    return self ? EW_OK : EW_ENOMEM;
}
