/*
 * endpoint/pool_listen.c: targets that are listened for: runtimes dial us, and each call finds the one that has its
 * action. A call without one waits: for the first runtime to connect, for what it offers, and, while a runtime is
 * young, for actions that it has not defined yet.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/managed_process.h"
#include "endpoint/pool_kind.h"
#include "endpoint/runtimes.h"
#include "io/tls.h"
#include <stdio.h>

#define QUIET_MS 2000     /* an action that is not there: so long nothing must have changed */
#define LIST_QUIET_MS 500 /* the same for a list of what is there */
#define SILENT_MS 1000    /* a runtime that has not said what it offers by then may be called by key all the same */

typedef struct ew__pool_listen {
    ew__pool *pool;
    ew__listener listener;
    ew__address *address;
    const ew__wire *door;
    ew__runtimes runtimes;
    ew__managed_process companion;
    ew__timer look; /* when a call has waited long enough */
    uint64_t look_at;
    atomic_uint n_runtimes;
    bool listening;
    bool had_runtime; /* at any time */
    bool busy, again; /* a walk over the queue goes on; it must be done once more */
} listening;

/* ---- what becomes of a call ---- */

/* It waits: until when, at the latest, it is to be looked at again. */
static void look_again(listening *self, uint64_t at) {
    if (at < self->look_at)
        self->look_at = at;
}

static void fail_unreached(ew_call *call, const char *text) {
    ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, ew_str_from(text));
}

static void fail_without_runtime(listening *self, struct ew__pool_wait *wait) {
    const ew__executor *executor = &self->pool->loop->executor;
    uint64_t until = wait->since + EW__MS(executor->limits->runtime_wait_ms);
    char text[400];
    if (self->companion.state == EW__COMPANION_ENDED) {
        (void)snprintf(text, sizeof text, "%s%s", self->companion.line,
                       self->had_runtime || !self->companion.ran ? "" : " before it connected");
        fail_unreached(ew__pool_dequeue(wait), text);
    } else if (executor->now >= until) {
        (void)snprintf(text, sizeof text, "no runtime has connected to %s://%s within %g s",
                       self->pool->where.tls ? "wss" : "ws", self->address->text,
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

static void fail_ambiguous(listening *self, struct ew__pool_wait *wait) {
    ew__buf text;
    ew__buf_init(&text, self->pool->loop->executor.env, (size_t)64 * 1024);
    ew__buf_cstr(&text, "several actions are meant by ");
    ew__buf_str(&text, wait->call->key);
    ew__buf_cstr(&text, "; one of ");
    ew__runtimes_matches(&self->runtimes, wait->call->key, &text);
    fail_with(wait, EW_STATUS_INVALID_ARGUMENT, &text);
}

static void fail_unknown(listening *self, struct ew__pool_wait *wait) {
    ew__buf text, near;
    ew__buf_init(&text, self->pool->loop->executor.env, (size_t)64 * 1024);
    ew__buf_init(&near, self->pool->loop->executor.env, (size_t)16 * 1024);
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
static bool all_known(listening *self, const struct ew__pool_wait *wait, uint64_t quiet_ms) {
    bool known = true, ask = false;
    for (const ew__runtime *runtime = self->runtimes.first; runtime; runtime = runtime->next) {
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

static void answer_list(listening *self, struct ew__pool_wait *wait) {
    ew__buf text;
    ew__buf_init(&text, self->pool->loop->executor.env, (size_t)self->pool->loop->executor.limits->out_max_bytes);
    ew_err err = ew__runtimes_list(&self->runtimes, &text);
    ew_call *call = ew__pool_dequeue(wait);
    if (err == EW_OK)
        (void)ew__call_done_valid(call, ew__buf_view(&text));
    else
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory, or too long"));
    ew__buf_done(&text);
}

/* One runtime answers for itself, errors included. */
static void serve_list(listening *self, struct ew__pool_wait *wait) {
    uint64_t until = 0;
    if (self->runtimes.n == 1 && !ew__runtime_settling(self->runtimes.first, LIST_QUIET_MS, &until))
        send_to(self->runtimes.first, wait);
    else if (self->runtimes.n == 1)
        look_again(self, until);
    else if (all_known(self, wait, LIST_QUIET_MS))
        answer_list(self, wait);
}

/* A runtime that does not list knows by itself what it has. */
static void send_unlisted(listening *self, ew__runtime *only, struct ew__pool_wait *wait) {
    uint64_t at = only->came_at + EW__MS(SILENT_MS);
    if (only->known_at != 0 || self->pool->loop->executor.now >= at)
        send_to(only, wait);
    else
        look_again(self, at);
}

static void serve_run(listening *self, struct ew__pool_wait *wait) {
    ew_call *call = wait->call;
    ew__runtime *only = self->runtimes.n == 1 ? self->runtimes.first : NULL;
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

static void serve_one(listening *self, struct ew__pool_wait *wait) {
    if (self->runtimes.n == 0)
        fail_without_runtime(self, wait);
    else if (wait->call->kind == EW__CALL_LIST)
        serve_list(self, wait);
    else
        serve_run(self, wait);
}

/* ---- the queue ---- */

static void on_look(ew__timer *timer, uint64_t now);

static void set_look(listening *self) {
    ew__executor *executor = &self->pool->loop->executor;
    if (self->look_at == EW__NEVER)
        ew__timer_stop(&executor->timers, &self->look);
    else if (ew__timer_set(&executor->timers, &self->look, self->look_at, on_look) != EW_OK)
        ew__pool_fail_waiting(self->pool, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
}

/* An end may open another call, or anything else: what comes meanwhile makes the walk begin again. */
static void serve_all(listening *self) {
    ew__pool *pool = self->pool;
    self->again = true;
    if (self->busy || pool->closing)
        return;
    self->busy = true;
    for (int rounds = 0; self->again && rounds < 100; rounds++) {
        self->again = false;
        self->look_at = EW__NEVER;
        pool->cursor = pool->first;
        while (pool->cursor) {
            struct ew__pool_wait *wait = pool->cursor;
            pool->cursor = wait->next; /* dequeue moves it on if that one leaves */
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
    serve_all(ew__container_of(timer, listening, look));
}

/* The program, if there is one: a call waits, and nobody is there who could have it. */
static void start_if_needed(listening *self) {
    if (self->runtimes.n == 0 && self->pool->first)
        ew__managed_process_start(&self->companion);
}

/* A call at the end of the queue overtakes nobody: whoever waits before it for the same runtime waits for room. */
static void serve(ew__pool *pool, struct ew__pool_wait *fresh) {
    listening *self = pool->listen;
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
    return pool->closing ? "the manager is closing" : ew__runtimes_greet(&pool->listen->runtimes, link, who);
}

static void on_link_ready(ew__link *link) {
    ew__pool *pool = link->owner_ud;
    if (pool->closing)
        return;
    ew__runtimes_ready(&pool->listen->runtimes, link);
    if (pool->first)
        serve_all(pool->listen);
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__pool *pool = link->owner_ud;
    (void)why;
    EW__LIST_REMOVE(pool->links, link);
    pool->n_links--;
    ew__runtimes_closed(&pool->listen->runtimes, link);
    ew__pool_check_closed(pool);
}

static const ew__link_owner owner = {
    .greets_strangers = true, .greet = on_link_greet, .ready = on_link_ready, .closed = on_link_closed};

static void on_connection(ew__listener *listener) {
    listening *self = ew__container_of(listener, listening, listener);
    ew__pool *pool = self->pool;
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
    ew__link_start(link, pool->loop, self->door ? self->door : pool->wire, self->door ? EW__SERVE : EW__CALL);
    if (err != EW_OK)
        ew__link_close(link, err);
}

/* ---- runtimes ---- */

static void count_runtimes(listening *self) { atomic_store(&self->n_runtimes, self->runtimes.n); }

static void on_changed(ew__runtimes *all, ew__runtime *runtime) {
    listening *self = all->ud;
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

static void on_companion_ended(ew__managed_process *companion) {
    serve_all(ew__container_of(companion, listening, companion));
}

/* ---- life ---- */

static void on_companion_closed(ew__managed_process *companion);

/* One that has ended is started again by the next call. */
static void prepare_companion(listening *self) {
    ew__managed_process_init(&self->companion, self->pool->loop, &self->pool->where);
    self->companion.ended = on_companion_ended;
    self->companion.closed = on_companion_closed;
}

static void on_companion_closed(ew__managed_process *companion) {
    listening *self = ew__container_of(companion, listening, companion);
    if (!self->pool->closing) {
        prepare_companion(self);
        start_if_needed(self); /* a call may have come since it has ended */
    }
    ew__pool_check_closed(self->pool);
}

static void on_listener_closed(ew__listener *listener) {
    listening *self = ew__container_of(listener, listening, listener);
    self->listening = false;
    ew__pool_check_closed(self->pool);
}

static void close_listening(ew__pool *pool) {
    listening *self = pool->listen;
    ew__timer_stop(&pool->loop->executor.timers, &self->look);
    ew__runtimes_silence(&self->runtimes);
    (void)ew__managed_process_close(&self->companion);
    if (self->listening)
        ew__listener_close(&self->listener, on_listener_closed);
}

static bool is_closed(const ew__pool *pool) {
    const listening *self = pool->listen;
    return !self->listening && !self->companion.dial && !self->companion.open;
}

static void done(ew__pool *pool) { ew__free(pool->loop->executor.env, pool->listen, sizeof *pool->listen); }

static const ew__pool_kind kind = {.serve = serve, .close = close_listening, .is_closed = is_closed, .done = done};

ew_err ew__pool_listen(ew__pool *pool, ew__address *address, const ew__wire *door) {
    listening *self = ew__zalloc(pool->loop->executor.env, sizeof *self);
    if (!self)
        return EW_ENOMEM;
    pool->listen = self;
    pool->kind = &kind;
    self->pool = pool;
    self->address = address;
    self->door = door;
    self->look_at = EW__NEVER;
    ew__runtimes_init(&self->runtimes, &pool->loop->executor, &hooks, self);
    prepare_companion(self);
    ew_err err = ew__address_probe(address);
    if (err == EW_OK)
        err = ew__listen(&self->listener, pool->loop, address, on_connection);
    self->listening = err == EW_OK;
    pool->site.port = address->port;
    pool->site.upgrade = pool->wire;
    pool->site.only_upgrade = true;
    return err;
}

uint32_t ew__pool_runtimes(const ew__pool *pool) { return pool->listen ? atomic_load(&pool->listen->n_runtimes) : 0; }
