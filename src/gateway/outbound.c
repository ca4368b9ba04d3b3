/*
 * gateway/outbound.c: see app_ways.h. A caller chooses these URLs. They may lead to this machine only, unless the app
 * allows remote peers (--allow-remote), and never to link-local, metadata, unspecified or multicast addresses.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "endpoint/authority.h"
#include <stdio.h>

#define ALL_MAX (4 * EW__WAYS_MAX) /* with those that are being closed */

typedef struct ew__app_way {
    struct ew__app_way *next, *prev;
    ew__app_loop *loop;
    ew__pool *pool;
    bool closing;
    uint16_t port;
    char host[256];      /* for the resolver: no brackets */
    char authority[280]; /* HOST:PORT as it stands in the URL */
    char path[512];      /* no slash at its end */
} way;

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
static bool is_here(const way *w) {
    ew__address address;
    bool v6 = strchr(w->host, ':') != NULL;
    char text[sizeof w->host + 8];
    (void)snprintf(text, sizeof text, "%s%s%s:0", v6 ? "[" : "", w->host, v6 ? "]" : "");
    return ew__address_parse(text, &address) == EW_OK && address.loopback;
}

/* Fills in host, authority, path and port. */
static ew_err read_url(way *w, ew_app *app, ew_str url) {
    ew__authority parts;
    if (!take_scheme(&url, EW_STR("http://")))
        return EW_EINVAL;
    const char *slash = url.len ? memchr(url.ptr, '/', url.len) : NULL;
    size_t n = slash ? (size_t)(slash - url.ptr) : url.len;
    ew_str authority = ew__str(url.ptr, n), path = ew__str(url.ptr + n, url.len - n);
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (ew__authority_parse(authority, &parts) != EW__AUTHORITY_OK || (parts.has_port && parts.port == 0) ||
        parts.host.len >= sizeof w->host || authority.len >= sizeof w->authority || path.len >= sizeof w->path ||
        !path_ok(path))
        return EW_EINVAL;
    memcpy(w->host, parts.host.ptr, parts.host.len);
    memcpy(w->authority, authority.ptr, authority.len);
    if (path.len)
        memcpy(w->path, path.ptr, path.len);
    w->port = parts.has_port ? parts.port : 80;
    return app->allow_remote || is_here(w) ? EW_OK : EW_EINVAL;
}

static bool same(const way *a, const way *b, const ew__wire *wire) {
    return !a->closing && a->pool->wire == wire && strcmp(a->authority, b->authority) == 0 &&
           strcmp(a->path, b->path) == 0;
}

/* ---- pools ---- */

static void forget(ew__pool *pool) {
    way *w = pool->ud;
    ew__app_loop *loop = w->loop;
    EW__LIST_REMOVE(loop->ways.first, w);
    loop->ways.n_all--;
    ew__pool_free(pool);
    ew__free(loop->app->env, w, sizeof *w);
    if (loop->ways.closing)
        loop->ways.on_closed(loop);
}

static void close_way(way *w) {
    if (w->closing)
        return;
    w->closing = true;
    w->loop->ways.n--;
    ew__pool_close(w->pool, forget);
}

/* The one that was used longest ago, and is not used now. */
static bool make_room(ew__app_ways *ways) {
    way *oldest = NULL;
    for (way *w = ways->first; w; w = w->next)
        if (!w->closing && ew__pool_is_idle(w->pool))
            oldest = w;
    if (!oldest)
        return false;
    close_way(oldest);
    return ways->n_all < ALL_MAX;
}

static ew_err add(ew__app_loop *loop, const ew__wire *wire, const way *like, way **ret) {
    ew__app_ways *ways = &loop->ways;
    if (ways->n == EW__WAYS_MAX && !make_room(ways))
        return EW_EBUSY;
    way *w = ew__alloc(loop->app->env, sizeof *w);
    if (!w)
        return EW_ENOMEM;
    *w = *like;
    w->loop = loop;
    ew__site site = {.port = w->port, .authority = ew_str_from(w->authority), .path = ew_str_from(w->path)};
    ew__where where = {.kind = EW__WHERE_TCP,
                       .host = w->host,
                       .port = w->port,
                       .loopback_only = !loop->app->allow_remote,
                       .named_by_peer = true};
    ew__pool_config config = {.loop = &loop->loop, .wire = wire, .site = &site, .where = &where, .ud = w};
    ew_err err = ew__pool_dial(&config, &w->pool);
    if (err != EW_OK) {
        ew__free(loop->app->env, w, sizeof *w);
        return err;
    }
    EW__LIST_ADD(ways->first, w);
    ways->n++;
    ways->n_all++;
    *ret = w;
    return EW_OK;
}

static ew_err find(ew__app_loop *loop, const ew__wire *wire, const way *like, way **ret) {
    way *w = loop->ways.first;
    while (w && !same(w, like, wire))
        w = w->next;
    if (!w)
        return add(loop, wire, like, ret);
    EW__LIST_REMOVE(loop->ways.first, w);
    EW__LIST_ADD(loop->ways.first, w);
    *ret = w;
    return EW_OK;
}

ew_err ew__app_outbound_open(struct ew__outbound *ways, ew__executor *executor, const ew__wire *wire, ew_str url,
                             ew_call *call) {
    ew_app *app = ew__container_of(ways, ew_app, ways);
    ew__app_loop *loop = ew__container_of(ew__loop_of(executor), ew__app_loop, loop);
    way like = {.port = 0}, *w = NULL;
    if (take_scheme(&url, EW_STR("https://"))) {
        if (!loop->ways.told_tls)
            ew__log(app->env, EW_LOG_WARN, "app", "a peer names an https URL, but this build has no TLS");
        loop->ways.told_tls = true;
        return EW_EINVAL;
    }
    ew_err err = loop->ways.closing ? EW_EBUSY : read_url(&like, app, url);
    if (err == EW_OK)
        err = find(loop, wire, &like, &w);
    return err == EW_OK ? ew__pool_take(w->pool, call) : err;
}

/* ---- the end ---- */

size_t ew__app_outbound_count(const ew__app_loop *loop) { return loop->ways.n_all; }

void ew__app_outbound_close(ew__app_loop *loop, void (*told)(ew__app_loop *loop)) {
    if (loop->ways.closing)
        return;
    loop->ways.closing = true;
    loop->ways.on_closed = told;
    for (way *w = loop->ways.first, *next; w; w = next) {
        next = w->next;
        close_way(w);
    }
}
