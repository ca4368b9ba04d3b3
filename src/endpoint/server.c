/*
 * endpoint/server.c: see server.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/server.h"
#include "base/list.h"

#define ACCESS_CHECK_MS 1000

static const char *on_runtime_claim(ew__runtimes *all, ew__runtime *runtime) {
    ew__server *server = all->ud;
    return server->on_runtime_claim ? server->on_runtime_claim(server, runtime) : NULL;
}

static void on_runtime(ew__runtimes *all, ew__runtime *runtime) {
    ew__server *server = all->ud;
    if (server->on_runtime)
        server->on_runtime(server, runtime);
}

static void on_runtime_gone(ew__runtimes *all, ew__runtime *runtime) {
    ew__server *server = all->ud;
    if (server->on_runtime_gone)
        server->on_runtime_gone(server, runtime);
}

static void on_runtime_answered(ew__runtimes *all, ew__runtime *runtime) {
    ew__server *server = all->ud;
    if (server->on_runtime_answered)
        server->on_runtime_answered(server, runtime);
}

static const ew__runtimes_hooks hooks = {
    .claim = on_runtime_claim, .changed = on_runtime, .answered = on_runtime_answered, .gone = on_runtime_gone};

ew_err ew__server_init(ew__server *server, ew__loop *loop, ew__registry *registry, size_t max_listeners,
                       atomic_uint *connections) {
    memset(server, 0, sizeof *server);
    server->loop = loop;
    server->registry = registry;
    server->connections = connections;
    server->max_listeners = max_listeners;
    ew__runtimes_init(&server->runtimes, &loop->executor, &hooks, server);
    server->listeners = ew__zalloc(loop->executor.env, sizeof *server->listeners * max_listeners);
    return server->listeners ? EW_OK : EW_ENOMEM;
}

/* ---- the end of it ---- */

static void check_closed(ew__server *server) {
    if (!server->closing || server->n_closing > 0 || server->links || !server->on_closed)
        return;
    void (*on_closed)(ew__server * server) = server->on_closed;
    server->on_closed = NULL;
    on_closed(server);
}

static void on_link_eof(ew__link *link) {
    ew__server *server = link->owner_ud;
    if (link->conn.stdio && server->on_stdio_end)
        server->on_stdio_end(server);
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__server *server = link->owner_ud;
    (void)why;
    on_link_eof(link);
    ew__runtimes_closed(&server->runtimes, link);
    if (link->conn.who.client)
        ew__clients_leave(server->clients, link->conn.who.client);
    EW__LIST_REMOVE(server->links, link);
    server->n_links--;
    atomic_fetch_sub_explicit(server->connections, 1, memory_order_relaxed);
    check_closed(server);
}

static const char *on_link_greet(ew__link *link, const ew__runtime_identity *who) {
    ew__server *server = link->owner_ud;
    return link->conn.site->draining ? "the manager is going down" : ew__runtimes_greet(&server->runtimes, link, who);
}

static void on_link_ready(ew__link *link) {
    if (link->runtime)
        ew__runtimes_ready(link->runtime->all, link);
}

static const ew__link_owner owner = {.greets_strangers = true,
                                     .eof = on_link_eof,
                                     .ready = on_link_ready,
                                     .greet = on_link_greet,
                                     .closed = on_link_closed};

static void on_listener_closed(ew__listener *listener) {
    ew__server_listener *entry = ew__container_of(listener, ew__server_listener, listener);
    entry->server->n_closing--;
    check_closed(entry->server);
}

static void close_listeners(ew__server *server) {
    for (size_t i = 0; i < server->n_listeners; i++) {
        ew__server_listener *entry = &server->listeners[i];
        if (!entry->open)
            continue;
        entry->open = false;
        server->n_closing++;
        ew__listener_close(&entry->listener, on_listener_closed);
    }
}

/* ---- tokens that are no longer valid ---- */

/* A connection that was upgraded carries a runtime, which needs a permission of its own. */
static bool is_still_allowed(ew__link *link) {
    ew__executor *executor = link->conn.executor;
    const ew__who *who = &link->conn.who;
    ew_fault fault;
    if (who->kind != EW__WHO_TOKEN || !who->accepted)
        return true; /* no token was needed, or limits->auth_ms applies */
    if (link->conn.upgraded && link->peer)
        return ew__gate_authorize(executor, who, link->peer->wire->name, EW_STR("/runtimes"), &fault);
    return ew__gate_is_authenticated(executor, who, &fault);
}

static void close_revoked(ew__server *server) {
    unsigned n = 0;
    for (ew__link *link = server->links, *next; link; link = next) {
        next = link->next;
        if (link->stream.closing || is_still_allowed(link))
            continue;
        ew__link_close(link, EW_EACCESS);
        n++;
    }
    if (n)
        ew__log(server->loop->executor.env, EW_LOG_INFO, "access",
                "closed %u connections: their token was revoked or has expired", n);
}

static void on_access_check(ew__timer *timer, uint64_t now) {
    ew__server *server = ew__container_of(timer, ew__server, access_check);
    ew__executor *executor = &server->loop->executor;
    if (ew__gate_changed(executor))
        close_revoked(server);
    (void)ew__timer_set(&executor->timers, timer, now + EW__MS(ACCESS_CHECK_MS),
                        on_access_check); /* its place is free */
}

static ew_err watch_access(ew__server *server) {
    ew__executor *executor = &server->loop->executor;
    uint64_t at = ew__executor_read_clock(executor) + EW__MS(ACCESS_CHECK_MS);
    if (!executor->calls->gate || !executor->calls->gate->access->required || ew__timer_active(&server->access_check))
        return EW_OK;
    return ew__timer_set(&executor->timers, &server->access_check, at, on_access_check);
}

/* ---- connections ---- */

static void add_link(ew__server *server, ew__link *link) {
    EW__LIST_ADD(server->links, link);
    server->n_links++;
    ew__count(&server->traffic.accepted, 1);
}

/* Whoever reaches a Unix socket is this user; others are told apart by their address. EW_ELIMIT: too many from there. */
static ew_err recognise(ew__server *server, const ew__server_listener *entry, ew__link *link) {
    uint8_t key[EW__CLIENT_KEY];
    ew__who *who = &link->conn.who;
    if (link->stream.kind != EW__STREAM_TCP) { /* unless others may connect, as a file says that is not ours */
        who->kind = entry->listener.any_user ? EW__WHO_STRANGER : EW__WHO_OWNER;
        who->local = true;
        return EW_OK;
    }
    if (!ew__stream_origin(&link->stream, key, &who->local) || !server->clients)
        return EW_OK;
    who->client = ew__clients_enter(server->clients, key, who->local);
    return link->conn.who.client ? EW_OK : EW_ELIMIT;
}

static void on_connection(ew__listener *listener) {
    ew__server_listener *entry = ew__container_of(listener, ew__server_listener, listener);
    ew__server *server = entry->server;
    const ew__executor *executor = &server->loop->executor;
    bool room =
        atomic_fetch_add_explicit(server->connections, 1, memory_order_relaxed) < executor->limits->connections &&
        !(executor->budget && ew__budget_is_spent(executor->budget));
    ew__link *link =
        room ? ew__link_new(server->loop, &entry->site, &server->scratches, &server->traffic, &owner, server) : NULL;
    if (!link) {
        atomic_fetch_sub_explicit(server->connections, 1, memory_order_relaxed);
        ew__count(&server->traffic.refused, 1);
        ew__accept_refuse(listener);
        return;
    }
    add_link(server, link);
    ew__executor_read_clock(&server->loop->executor);
    ew_err err = ew__accept(listener, &link->stream);
    if (err == EW_OK)
        err = recognise(server, entry, link);
    if (err == EW_ELIMIT)
        ew__count(&server->traffic.refused, 1);
    if (err == EW_OK && entry->tls)
        err = ew__stream_secure_accepted(&link->stream, server->loop, entry->tls, entry->speaks_http);
    ew__link_start(link, server->loop, entry->wire, EW__SERVE);
    if (err != EW_OK)
        ew__link_close(link, err);
}

static ew__server_listener *add_listener(ew__server *server, const ew__wire *wire, const ew__site *site) {
    ew__server_listener *entry = &server->listeners[server->n_listeners++];
    entry->server = server;
    entry->wire = wire;
    entry->site = *site;
    entry->site.actions = ew__registry_get(server->registry);
    return entry;
}

ew_err ew__server_listen(ew__server *server, ew__address *address, const ew__wire *wire, const ew__site *site,
                         ew__tls_context *tls) {
    if (server->n_listeners == server->max_listeners)
        return EW_ELIMIT;
    ew__server_listener *entry = &server->listeners[server->n_listeners];
    ew_err err = watch_access(server);
    if (err == EW_OK)
        err = ew__listen(&entry->listener, server->loop, address, on_connection);
    if (err != EW_OK)
        return err;
    add_listener(server, wire, site);
    entry->site.port = address->port;
    entry->site.secure = tls != NULL;
    entry->tls = tls;
    entry->speaks_http = !wire || wire == ew__wire_carrier();
    entry->open = true;
    return EW_OK;
}

ew_err ew__server_stdio(ew__server *server, const ew__wire *wire, ew__choose_wire choose, const ew__site *site) {
    if (server->n_listeners == server->max_listeners)
        return EW_ELIMIT;
    ew__server_listener *entry = add_listener(server, wire, site);
    ew__link *link = ew__link_new(server->loop, &entry->site, &server->scratches, &server->traffic, &owner, server);
    ew_err err = link ? ew__stream_open_stdio(&link->stream, server->loop) : EW_ENOMEM;
    if (err != EW_OK) {
        if (link)
            ew__link_discard(link);
        return err;
    }
    link->conn.stdio = true;
    link->conn.who = ew__who_owner;
    atomic_fetch_add_explicit(server->connections, 1, memory_order_relaxed);
    add_link(server, link);
    if (wire)
        ew__link_start(link, server->loop, wire, EW__SERVE);
    else
        ew__link_start_choosing(link, server->loop, choose);
    return EW_OK;
}

void ew__server_refresh(ew__server *server) {
    for (size_t i = 0; i < server->n_listeners; i++) {
        ew__actions *old = server->listeners[i].site.actions;
        server->listeners[i].site.actions = ew__registry_get(server->registry);
        ew__actions_unref(old);
    }
}

void ew__server_drain(ew__server *server) {
    close_listeners(server);
    ew__runtimes_silence(&server->runtimes);
    for (size_t i = 0; i < server->n_listeners; i++)
        server->listeners[i].site.draining = true;
    for (ew__link *link = server->links, *next; link; link = next) {
        next = link->next;
        if (link->peer && link->peer->wire->drain)
            link->peer->wire->drain(link->peer);
    }
}

void ew__server_close(ew__server *server, bool now, void (*on_closed)(ew__server *server)) {
    if (!server->closing) {
        server->closing = true;
        server->on_closed = on_closed;
        ew__timer_stop(&server->loop->executor.timers, &server->access_check);
        close_listeners(server);
        ew__runtimes_silence(&server->runtimes);
    }
    for (ew__link *link = server->links, *next; link; link = next) {
        next = link->next;
        if (now)
            ew__link_close(link, EW_OK);
        else
            ew__link_finish(link);
    }
    check_closed(server);
}

void ew__server_done(ew__server *server) {
    const ew_env *env = server->loop->executor.env;
    ew__timer_stop(&server->loop->executor.timers, &server->access_check);
    for (size_t i = 0; i < server->n_listeners; i++)
        ew__actions_unref(server->listeners[i].site.actions);
    ew__scratches_done(&server->scratches, env);
    ew__free(env, server->listeners, sizeof *server->listeners * server->max_listeners);
}
