/*
 * gateway/outbound.c: see outbound.h. A caller chooses these URLs. They may lead to this machine only, unless the app
 * allows remote peers (--allow-remote), and never to link-local, metadata, unspecified or multicast addresses.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "endpoint/authority.h"
#include <stdio.h>

#define ALL_MAX (4 * EW__OUTBOUND_POOLS_MAX) /* with those that are being closed */

typedef struct outbound_pool {
    ew__list_node node;
    ew__app_loop *loop;
    ew__pool *pool;
    bool closing;
    uint16_t port;
    char host[256];      /* for the resolver: no brackets */
    char authority[280]; /* HOST:PORT as it stands in the URL */
    char path[512];      /* no slash at its end */
} outbound_pool;

static outbound_pool *first_of(const ew__app_loop *loop) {
    return EW__ITEM(loop->outbound.pools.first, outbound_pool, node);
}

static outbound_pool *next_of(const outbound_pool *p) { return EW__ITEM(p->node.next, outbound_pool, node); }

/* ---- URLs ---- */

static bool take_scheme(ew_str *url, ew_str scheme) {
    if (url->len < scheme.len || !ew__str_is_nocase(ew__str(url->ptr, scheme.len), scheme))
        return false;
    *url = ew__str(url->ptr + scheme.len, url->len - scheme.len);
    return true;
}

static bool path_ok(ew_str path) {
    for (size_t i = 0; i < path.len; i++)
        if (path.ptr[i] <= ' ' || path.ptr[i] > '~' || strchr("?#\\@", path.ptr[i]))
            return false;
    return true;
}

/* What is not plainly this machine is not: a name may mean anything a moment later, but for localhost. */
static bool is_loopback(const outbound_pool *p) {
    ew__address address;
    bool v6 = strchr(p->host, ':') != NULL;
    char text[sizeof p->host + 8];
    (void)snprintf(text, sizeof text, "%s%s%s:0", v6 ? "[" : "", p->host, v6 ? "]" : "");
    return ew__address_parse(text, &address) == EW_OK && address.loopback;
}

/* Fills in host, authority, path and port. */
static ew_err read_url(outbound_pool *p, ew_app *app, ew_str url) {
    ew__authority parts;
    if (!take_scheme(&url, EW_STR("http://")))
        return EW_EINVAL;
    const char *slash = url.len ? memchr(url.ptr, '/', url.len) : NULL;
    size_t n = slash ? (size_t)(slash - url.ptr) : url.len;
    ew_str authority = ew__str(url.ptr, n), path = ew__str(url.ptr + n, url.len - n);
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (ew__authority_parse(authority, &parts) != EW__AUTHORITY_OK || (parts.has_port && parts.port == 0) ||
        parts.host.len >= sizeof p->host || authority.len >= sizeof p->authority || path.len >= sizeof p->path ||
        !path_ok(path))
        return EW_EINVAL;
    memcpy(p->host, parts.host.ptr, parts.host.len);
    memcpy(p->authority, authority.ptr, authority.len);
    if (path.len)
        memcpy(p->path, path.ptr, path.len);
    p->port = parts.has_port ? parts.port : 80;
    return app->allow_remote || is_loopback(p) ? EW_OK : EW_EINVAL;
}

static bool same(const outbound_pool *a, const outbound_pool *b, const ew__wire *wire) {
    return !a->closing && a->pool->wire == wire && strcmp(a->authority, b->authority) == 0 &&
           strcmp(a->path, b->path) == 0;
}

/* ---- pools ---- */

static void forget(ew__pool *pool) {
    outbound_pool *p = pool->ud;
    ew__app_loop *loop = p->loop;
    ew__list_remove(&loop->outbound.pools, &p->node);
    loop->outbound.n_all--;
    ew__pool_free(pool);
    ew__free(loop->app->env, p, sizeof *p);
    if (loop->outbound.closing)
        loop->outbound.on_closed(loop);
}

static void close_pool(outbound_pool *p) {
    if (p->closing)
        return;
    p->closing = true;
    p->loop->outbound.n--;
    ew__pool_close(p->pool, forget);
}

/* The one that was used longest ago, and is not used now. */
static bool make_room(ew__app_loop *loop) {
    outbound_pool *oldest = NULL;
    for (outbound_pool *p = first_of(loop); p; p = next_of(p))
        if (!p->closing && ew__pool_is_idle(p->pool))
            oldest = p;
    if (!oldest)
        return false;
    close_pool(oldest);
    return loop->outbound.n_all < ALL_MAX;
}

static ew_err add(ew__app_loop *loop, const ew__wire *wire, const outbound_pool *like, outbound_pool **ret) {
    ew__app_outbound *outbound = &loop->outbound;
    if (outbound->n == EW__OUTBOUND_POOLS_MAX && !make_room(loop))
        return EW_EBUSY;
    outbound_pool *p = ew__alloc(loop->app->env, sizeof *p);
    if (!p)
        return EW_ENOMEM;
    *p = *like;
    p->loop = loop;
    ew__site site = {.port = p->port, .authority = ew_str_from(p->authority), .path = ew_str_from(p->path)};
    ew__where where = {.kind = EW__WHERE_TCP,
                       .host = p->host,
                       .port = p->port,
                       .loopback_only = !loop->app->allow_remote,
                       .named_by_peer = true};
    ew__pool_config config = {.loop = &loop->loop, .wire = wire, .site = &site, .where = &where, .ud = p};
    ew_err err = ew__pool_dial(&config, &p->pool);
    if (err != EW_OK) {
        ew__free(loop->app->env, p, sizeof *p);
        return err;
    }
    ew__list_add_first(&outbound->pools, &p->node);
    outbound->n++;
    outbound->n_all++;
    *ret = p;
    return EW_OK;
}

static ew_err find(ew__app_loop *loop, const ew__wire *wire, const outbound_pool *like, outbound_pool **ret) {
    outbound_pool *p = first_of(loop);
    while (p && !same(p, like, wire))
        p = next_of(p);
    if (!p)
        return add(loop, wire, like, ret);
    ew__list_remove(&loop->outbound.pools, &p->node);
    ew__list_add_first(&loop->outbound.pools, &p->node);
    *ret = p;
    return EW_OK;
}

ew_err ew__app_outbound_open(struct ew__outbound *outbound, ew__executor *executor, const ew__wire *wire, ew_str url,
                             ew_call *call) {
    ew_app *app = ew__container_of(outbound, ew_app, outbound);
    ew__app_loop *loop = ew__container_of(ew__loop_of(executor), ew__app_loop, loop);
    outbound_pool like = {.port = 0}, *p = NULL;
    if (take_scheme(&url, EW_STR("https://"))) {
        if (!loop->outbound.logged_tls)
            ew__log(app->env, EW_LOG_WARN, "app", "a peer names an https URL, but this build has no TLS");
        loop->outbound.logged_tls = true;
        return EW_EINVAL;
    }
    ew_err err = loop->outbound.closing ? EW_EBUSY : read_url(&like, app, url);
    if (err == EW_OK)
        err = find(loop, wire, &like, &p);
    return err == EW_OK ? ew__pool_take(p->pool, call) : err;
}

/* ---- the end ---- */

size_t ew__app_outbound_count(const ew__app_loop *loop) { return loop->outbound.n_all; }

void ew__app_outbound_close(ew__app_loop *loop, void (*on_closed)(ew__app_loop *loop)) {
    if (loop->outbound.closing)
        return;
    loop->outbound.closing = true;
    loop->outbound.on_closed = on_closed;
    for (outbound_pool *p = first_of(loop), *next; p; p = next) {
        next = next_of(p);
        close_pool(p);
    }
}
