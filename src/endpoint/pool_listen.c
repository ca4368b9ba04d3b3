/*
 * endpoint/pool_listen.c: targets that are listened for: runtimes dial us, and each call finds the one that has its
 * action. A call without one waits: for the first runtime to connect, for what it offers, and, while a runtime is
 * young, for actions that it has not defined yet.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/managed_process.h"
#include "base/list.h"
#include "endpoint/pool_kind.h"
#include "endpoint/runtimes.h"
#include "io/tls.h"
#include <stdio.h>

#define QUIET_MS 2000     /* an action that is not there: so long nothing must have changed */
#define LIST_QUIET_MS 500 /* the same for a list of what is there */
#define SILENT_MS 1000    /* a runtime that has not said what it offers by then may be called by key all the same */

typedef struct listen_pool {
    ew__pool core;
    ew__listener listener;
    ew__address *address;
    const ew__wire *first; /* that connections begin with; NULL: the pool's */
    ew__runtimes runtimes;
    ew__managed_process process;
    ew__timer look; /* when a call has waited long enough */
    uint64_t look_at;
    atomic_uint n_runtimes;
    bool listening;
    bool had_runtime; /* at any time */
    bool busy, again; /* a walk over the queue goes on; it must be done once more */
} listen_pool;

static listen_pool *self_of(const ew__pool *pool) {
    return (listen_pool *)(uintptr_t)ew__container_of(pool, const listen_pool, core);
}

/* ---- what becomes of a call ---- */

/* It waits: until when, at the latest, it is to be looked at again. */
static void look_again(listen_pool *self, uint64_t at) {
    if (at < self->look_at)
        self->look_at = at;
}

static void fail_unreached(ew_call *call, const char *text) {
    ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, ew_str_from(text));
}

static void fail_without_runtime(listen_pool *self, struct ew__pool_wait *wait) {
    const ew__executor *executor = &self->core.loop->executor;
    uint64_t until = wait->since + EW__MS(executor->limits->runtime_wait_ms);
    char text[400];
    if (self->process.state == EW__PROCESS_ENDED) {
        (void)snprintf(text, sizeof text, "%s%s", self->process.line,
                       self->had_runtime || !self->process.ran ? "" : " before it connected");
        fail_unreached(ew__pool_dequeue(wait), text);
    } else if (executor->now >= until) {
        (void)snprintf(text, sizeof text, "no runtime has connected to %s://%s within %g s",
                       self->core.where.tls ? "wss" : "ws", self->address->text,
                       (double)executor->limits->runtime_wait_ms / 1000);
        fail_unreached(ew__pool_dequeue(wait), text);
    } else {
        look_again(self, until);
    }
}

/* Ends with a message that has been written into a buffer. */
static void fail_with(struct ew__pool_wait *wait, ew_status status, ew__buf *message) {
    ew_fault fault = {.status = status, .message = message->err ? EW_STR("no such action") : ew__buf_view(message)};
    ew__call_fault(ew__pool_dequeue(wait), &fault);
    ew__buf_done(message);
}

static void fail_ambiguous(listen_pool *self, struct ew__pool_wait *wait) {
    ew__buf text;
    ew__buf_init(&text, self->core.loop->executor.env, (size_t)64 * 1024);
    ew__buf_cstr(&text, "several actions are meant by ");
    ew__buf_str(&text, wait->call->key);
    ew__buf_cstr(&text, "; one of ");
    ew__runtimes_matches(&self->runtimes, wait->call->key, &text);
    fail_with(wait, EW_STATUS_INVALID_ARGUMENT, &text);
}

static void fail_unknown(listen_pool *self, struct ew__pool_wait *wait) {
    ew__buf text, near;
    ew__buf_init(&text, self->core.loop->executor.env, (size_t)64 * 1024);
    ew__buf_init(&near, self->core.loop->executor.env, (size_t)16 * 1024);
    ew__runtimes_near(&self->runtimes, wait->call->key, &near);
    ew__buf_cstr(&text, "no action ");
    ew__buf_str(&text, wait->call->key);
    if (near.len > 0 && !near.err) {
        ew__buf_cstr(&text, "; did you mean ");
        ew__buf_str(&text, ew__buf_view(&near));
        ew__buf_char(&text, '?');
    }
    ew__buf_done(&near);
    fail_with(wait, EW_STATUS_NOT_FOUND, &text);
}

/*
 * Whether the list of every runtime is newer than the call, and than the time at which the runtime was expected to have
 * defined all of its actions. Otherwise the call waits: for that time, then for one more answer.
 */
static bool all_known(listen_pool *self, const struct ew__pool_wait *wait, uint64_t quiet_ms) {
    bool known = true, ask = false;
    for (const ew__runtime *runtime = ew__runtimes_first(&self->runtimes); runtime;
         runtime = ew__runtime_next(runtime)) {
        uint64_t until = 0;
        if (ew__runtime_settling(runtime, quiet_ms, &until)) {
            look_again(self, until);
            known = false;
            continue;
        }
        bool may_grow = !runtime->complete && runtime->offers;
        uint64_t newest = may_grow && until > wait->since ? until : wait->since;
        bool stale = runtime->asked_at != 0 && runtime->known_at < newest && runtime->came_at < newest;
        known = known && !stale;
        ask = ask || (stale && runtime->asked_at < newest);
    }
    if (ask)
        ew__runtimes_ask(&self->runtimes);
    return known;
}

static void send_to(ew__runtime *runtime, struct ew__pool_wait *wait) {
    if (ew__runtime_capacity(runtime) == 0)
        return; /* it waits until ready is told */
    ew_call *call = ew__pool_dequeue(wait);
    if (ew__runtime_send(runtime, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("the connection refused the call"));
}

static void answer_list(listen_pool *self, struct ew__pool_wait *wait) {
    ew__buf text;
    ew__buf_init(&text, self->core.loop->executor.env, (size_t)self->core.loop->executor.limits->out_max_bytes);
    ew_err err = ew__runtimes_list(&self->runtimes, &text);
    ew_call *call = ew__pool_dequeue(wait);
    if (err == EW_OK)
        (void)ew__call_done_valid(call, ew__buf_view(&text));
    else
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory, or too long"));
    ew__buf_done(&text);
}

/* One runtime answers for itself, errors included. */
static void serve_list(listen_pool *self, struct ew__pool_wait *wait) {
    uint64_t until = 0;
    if (self->runtimes.n == 1 && !ew__runtime_settling(ew__runtimes_first(&self->runtimes), LIST_QUIET_MS, &until))
        send_to(ew__runtimes_first(&self->runtimes), wait);
    else if (self->runtimes.n == 1)
        look_again(self, until);
    else if (all_known(self, wait, LIST_QUIET_MS))
        answer_list(self, wait);
}

/* A runtime that does not list knows by itself what it has. */
static void send_unlisted(listen_pool *self, ew__runtime *only, struct ew__pool_wait *wait) {
    uint64_t at = only->came_at + EW__MS(SILENT_MS);
    if (only->known_at != 0 || self->core.loop->executor.now >= at)
        send_to(only, wait);
    else
        look_again(self, at);
}

static void serve_run(listen_pool *self, struct ew__pool_wait *wait) {
    ew_call *call = wait->call;
    ew__runtime *only = self->runtimes.n == 1 ? ew__runtimes_first(&self->runtimes) : NULL;
    ew__runtime_match found = ew__runtimes_find(&self->runtimes, call->key);
    if (found.n == 1) {
        if (ew__runtime_capacity(found.runtime) == 0)
            return;
        if (ew__arena_str(&call->arena, found.offer->key, &call->key) == EW_OK)
            send_to(found.runtime, wait);
        else
            ew__call_fail_as(ew__pool_dequeue(wait), EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                             EW_STR("out of memory"));
    } else if (found.n > 1) {
        fail_ambiguous(self, wait);
    } else if (only && !only->offers && ew__is_key(call->key)) {
        send_unlisted(self, only, wait);
    } else if (!all_known(self, wait, QUIET_MS)) {
        return;
    } else {
        fail_unknown(self, wait);
    }
}

static void serve_one(listen_pool *self, struct ew__pool_wait *wait) {
    if (self->runtimes.n == 0)
        fail_without_runtime(self, wait);
    else if (wait->call->kind == EW__CALL_LIST)
        serve_list(self, wait);
    else
        serve_run(self, wait);
}

/* ---- the queue ---- */

static void on_look(ew__timer *timer, uint64_t now);

static void set_look(listen_pool *self) {
    ew__executor *executor = &self->core.loop->executor;
    if (self->look_at == EW__NEVER)
        ew__timer_stop(&executor->timers, &self->look);
    else if (ew__timer_set(&executor->timers, &self->look, self->look_at, on_look) != EW_OK)
        ew__pool_fail_waiting(&self->core, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
}

/* An end may open another call, or anything else: what comes meanwhile makes the walk begin again. */
static void serve_all(listen_pool *self) {
    ew__pool *pool = &self->core;
    self->again = true;
    if (self->busy || pool->closing)
        return;
    self->busy = true;
    for (int rounds = 0; self->again && rounds < 100; rounds++) {
        self->again = false;
        self->look_at = EW__NEVER;
        pool->queue.cursor = pool->queue.calls.first;
        while (pool->queue.cursor) {
            struct ew__pool_wait *wait = EW__ITEM(pool->queue.cursor, struct ew__pool_wait, node);
            pool->queue.cursor = wait->node.next; /* dequeue moves it on if that one leaves */
            serve_one(self, wait);
        }
    }
    if (self->again) /* a program that opens a call at each end: the others' turn */
        look_again(self, pool->loop->executor.now);
    self->busy = false;
    set_look(self);
}

static void on_look(ew__timer *timer, uint64_t now) {
    (void)now;
    serve_all(ew__container_of(timer, listen_pool, look));
}

/* Starts the program, if the pool has one: a call waits, and no runtime is connected. */
static void start_if_needed(listen_pool *self) {
    if (self->runtimes.n == 0 && self->core.queue.calls.first)
        ew__managed_process_start(&self->process);
}

/* A call at the end of the queue overtakes no other: those before it for the same runtime wait for room. */
static void serve(ew__pool *pool, struct ew__pool_wait *fresh) {
    listen_pool *self = self_of(pool);
    start_if_needed(self);
    if (self->busy) {
        self->again = true;
        return;
    }
    uint64_t before = self->look_at;
    self->busy = true;
    self->again = false;
    serve_one(self, fresh);
    self->busy = false;
    if (self->again)
        serve_all(self);
    else if (self->look_at != before)
        set_look(self);
}

/* ---- connections ---- */

static const char *on_link_greet(ew__link *link, const ew__runtime_identity *who) {
    ew__pool *pool = link->owner_ud;
    return pool->closing ? "the manager is closing" : ew__runtimes_greet(&self_of(pool)->runtimes, link, who);
}

static void on_link_ready(ew__link *link) {
    ew__pool *pool = link->owner_ud;
    if (pool->closing)
        return;
    ew__runtimes_ready(&self_of(pool)->runtimes, link);
    if (pool->queue.calls.first)
        serve_all(self_of(pool));
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__pool *pool = link->owner_ud;
    (void)why;
    EW__LIST_REMOVE(pool->links, link);
    pool->n_links--;
    ew__runtimes_closed(&self_of(pool)->runtimes, link);
    ew__pool_check_closed(pool);
}

static const ew__link_owner owner = {
    .greets_strangers = true, .greet = on_link_greet, .ready = on_link_ready, .closed = on_link_closed};

static void on_connection(ew__listener *listener) {
    listen_pool *self = ew__container_of(listener, listen_pool, listener);
    ew__pool *pool = &self->core;
    bool room = pool->n_links < pool->loop->executor.limits->client_connections && !pool->closing;
    ew__link *link =
        room ? ew__link_new(pool->loop, &pool->site, &pool->scratches, &pool->traffic, &owner, pool) : NULL;
    if (!link) {
        ew__count(&pool->traffic.refused, 1);
        ew__accept_refuse(listener);
        return;
    }
    EW__LIST_ADD(pool->links, link);
    pool->n_links++;
    ew__count(&pool->traffic.accepted, 1);
    ew__executor_read_clock(&pool->loop->executor);
    ew_err err = ew__accept(listener, &link->stream);
    if (err == EW_OK && pool->where.tls)
        err = ew__stream_secure_accepted(&link->stream, pool->loop, pool->where.tls, true);
    ew__link_start(link, pool->loop, self->first ? self->first : pool->wire, self->first ? EW__SERVE : EW__CALL);
    if (err != EW_OK)
        ew__link_close(link, err);
}

/* ---- runtimes ---- */

static void count_runtimes(listen_pool *self) { atomic_store(&self->n_runtimes, self->runtimes.n); }

static void on_changed(ew__runtimes *all, ew__runtime *runtime) {
    listen_pool *self = all->ud;
    (void)runtime;
    self->had_runtime = true;
    count_runtimes(self);
    serve_all(self);
}

static void on_answered(ew__runtimes *all, ew__runtime *runtime) {
    (void)runtime;
    serve_all(all->ud);
}

static void on_gone(ew__runtimes *all, ew__runtime *runtime) {
    (void)runtime;
    count_runtimes(all->ud);
    serve_all(all->ud);
}

static const ew__runtimes_hooks hooks = {.changed = on_changed, .answered = on_answered, .gone = on_gone};

static void on_process_ended(ew__managed_process *process) {
    serve_all(ew__container_of(process, listen_pool, process));
}

/* ---- life ---- */

static void on_process_closed(ew__managed_process *process);

/* One that has ended is started again by the next call. */
static void prepare_process(listen_pool *self) {
    ew__managed_process_init(&self->process, self->core.loop, &self->core.where);
    self->process.ended = on_process_ended;
    self->process.closed = on_process_closed;
}

static void on_process_closed(ew__managed_process *process) {
    listen_pool *self = ew__container_of(process, listen_pool, process);
    if (!self->core.closing) {
        prepare_process(self);
        start_if_needed(self); /* a call may have come since it has ended */
    }
    ew__pool_check_closed(&self->core);
}

static void on_listener_closed(ew__listener *listener) {
    listen_pool *self = ew__container_of(listener, listen_pool, listener);
    self->listening = false;
    ew__pool_check_closed(&self->core);
}

static void close_listening(ew__pool *pool) {
    listen_pool *self = self_of(pool);
    ew__timer_stop(&pool->loop->executor.timers, &self->look);
    ew__runtimes_silence(&self->runtimes);
    (void)ew__managed_process_close(&self->process);
    if (self->listening)
        ew__listener_close(&self->listener, on_listener_closed);
}

static bool is_closed(const ew__pool *pool) {
    const listen_pool *self = self_of(pool);
    return !self->listening && !self->process.dial && !self->process.open;
}

static uint32_t runtimes(const ew__pool *pool) { return atomic_load(&self_of(pool)->n_runtimes); }

static const ew__pool_ops ops = {.size = sizeof(listen_pool),
                                 .serve = serve,
                                 .close = close_listening,
                                 .is_closed = is_closed,
                                 .runtimes = runtimes};

ew_err ew__pool_listen(const ew__pool_config *config, ew__address *address, const ew__wire *first, ew__pool **ret) {
    listen_pool *self = ew__pool_new(&ops, config);
    if (!self)
        return EW_ENOMEM;
    ew__pool *pool = &self->core;
    self->address = address;
    self->first = first;
    self->look_at = EW__NEVER;
    ew__runtimes_init(&self->runtimes, &pool->loop->executor, &hooks, self);
    prepare_process(self);
    ew_err err = ew__address_probe(address);
    if (err == EW_OK)
        err = ew__listen(&self->listener, pool->loop, address, on_connection);
    if (err != EW_OK) {
        ew__pool_free(pool);
        return err;
    }
    self->listening = true;
    pool->site.port = address->port;
    pool->site.upgrade = pool->wire;
    pool->site.only_upgrade = true;
    *ret = pool;
    return EW_OK;
}
