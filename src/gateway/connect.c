/*
 * gateway/connect.c: see connect.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "endpoint/authority.h"
#include <stdio.h>
#include <unistd.h>

#define VERSION "everywire/" EW_VERSION_STRING

/* ---- URLs ---- */

static ew_err fail(ew_err err, const char *text, const char **ret_problem) {
    *ret_problem = text;
    return err;
}

static ew_err take_scheme(ew_str *rest, bool *ret_tls, const char **ret_problem) {
    static const ew_str schemes[] = {{"ws://", 5}, {"http://", 7}, {"wss://", 6}, {"https://", 8}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = schemes[i].len;
        if (rest->len < n || !ew__str_is_nocase(ew__str(rest->ptr, n), schemes[i]))
            continue;
        *rest = ew__str(rest->ptr + n, rest->len - n);
        *ret_tls = i >= 2;
        return EW_OK;
    }
    return fail(EW_EINVAL, "a manager's URL looks like ws://HOST:PORT[/PATH][?QUERY], or wss:// for TLS", ret_problem);
}

static ew_err read_authority(ew_str text, ew__manager_url *ret, const char **ret_problem) {
    ew__authority authority;
    ew__authority_verdict verdict = ew__authority_parse(text, &authority);
    if (verdict == EW__AUTHORITY_NO_HOST || authority.host.len >= sizeof ret->host || text.len >= sizeof ret->authority)
        return fail(EW_EINVAL, "the URL has no valid host", ret_problem);
    if (verdict == EW__AUTHORITY_NO_PORT || (authority.has_port && authority.port == 0))
        return fail(EW_EINVAL, "the URL has no valid port", ret_problem);
    memcpy(ret->host, authority.host.ptr, authority.host.len);
    memcpy(ret->authority, text.ptr, text.len);
    ret->port = authority.has_port ? authority.port : ret->tls ? 443 : 80;
    return EW_OK;
}

static ew_err read_path(ew_str text, ew__manager_url *ret, const char **ret_problem) {
    size_t n = 0;
    if (text.len == 0 || text.ptr[0] == '?')
        ret->path[n++] = '/';
    bool ok = n + text.len < sizeof ret->path;
    for (size_t i = 0; i < text.len && ok; i++)
        ok = text.ptr[i] > ' ' && text.ptr[i] <= '~' && text.ptr[i] != '#';
    if (!ok)
        return fail(EW_EINVAL, "the URL's path is too long or has what no path has", ret_problem);
    if (text.len)
        memcpy(ret->path + n, text.ptr, text.len);
    return EW_OK;
}

ew_err ew__manager_url_parse(const char *text, ew__manager_url *ret, const char **ret_problem) {
    ew_str rest = ew_str_from(text);
    memset(ret, 0, sizeof *ret);
    ew_err err = take_scheme(&rest, &ret->tls, ret_problem);
    if (err != EW_OK)
        return err;
    size_t n = 0;
    while (n < rest.len && rest.ptr[n] != '/' && rest.ptr[n] != '?' && rest.ptr[n] != '#')
        n++;
    err = read_authority(ew__str(rest.ptr, n), ret, ret_problem);
    return err == EW_OK ? read_path(ew__str(rest.ptr + n, rest.len - n), ret, ret_problem) : err;
}

/* ---- adding ---- */

/* What is printed has no secret in it. */
static void hide_token(char *url) {
    char *at = strstr(url, "?token=");
    at = at ? at : strstr(url, "&token=");
    if (!at)
        return;
    at += strlen("?token=");
    size_t n = strcspn(at, "&"), stars = n < 3 ? n : 3;
    memcpy(at, "***", stars);
    memmove(at + stars, at + n, strlen(at + n) + 1);
}

ew_err ew__app_add_manager(ew_app *app, const char *url) {
    const char *problem = NULL;
    if (ew__app_may_change(app, "cannot add a manager") != EW_OK)
        return EW_EINVAL;
    if (!url)
        return ew__app_fail(app, EW_EINVAL, "cannot add a manager: the URL is NULL");
    if (app->n_connects == EW__CONNECTS_MAX) {
        (void)snprintf(app->error, sizeof app->error, "more than %d managers", EW__CONNECTS_MAX);
        return EW_ELIMIT;
    }
    ew__app_connect *connect = ew__zalloc(app->env, sizeof *connect);
    if (!connect)
        return ew__app_failed(app, EW_ENOMEM, "cannot add a manager");
    ew_err err = ew__wire_upgrade() ? ew__manager_url_parse(url, &connect->url, &problem)
                                    : fail(EW_EUNSUPPORTED, "this build has no wire for managers", &problem);
    if (err != EW_OK) {
        (void)snprintf(app->error, sizeof app->error, "%s", problem);
        ew__free(app->env, connect, sizeof *connect);
        return err;
    }
    connect->app = app;
    (void)snprintf(connect->text, sizeof connect->text, "%s://%s%s", connect->url.tls ? "wss" : "ws",
                   connect->url.authority, connect->url.path[1] ? connect->url.path : "");
    hide_token(connect->text);
    app->connects[app->n_connects++] = connect;
    return EW_OK;
}

/* ---- starting ---- */

static void on_telemetry(ew__site *site, ew_str url) {
    ew__connector *connector = ew__container_of(site, ew__connector, site);
    ew__app_telemetry_pushed(((ew__app_connect *)connector->ud)->app, url);
}

/*
 * The first connection has the plain name; each further one is a runtime of its own, also for one and the same
 * manager.
 */
static ew_err introduce(ew__app_connect *connect, size_t index) {
    const ew_app *app = connect->app;
    char pid[24], suffix[24] = "";
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    if (index > 0)
        (void)snprintf(suffix, sizeof suffix, "-%zu", index + 1);
    const char *id = app->runtime_id ? app->runtime_id : pid;
    connect->id_size = strlen(id) + strlen(suffix) + 1;
    connect->id = ew__alloc(app->env, connect->id_size);
    if (!connect->id)
        return EW_ENOMEM;
    (void)snprintf(connect->id, connect->id_size, "%s%s", id, suffix);
    connect->self = (ew__runtime_identity){.id = ew_str_from(connect->id),
                                           .name = ew_str_from(app->name),
                                           .version = EW_STR(VERSION),
                                           .pid = (int64_t)getpid()};
    return EW_OK;
}

static ew_err start(ew__app_connect *connect, size_t index) {
    ew_app *app = connect->app;
    ew_err err = introduce(connect, index);
    if (err != EW_OK)
        return err;
    ew__site site = {.authority = ew_str_from(connect->url.authority),
                     .token = ew_str_from(app->access.shown),
                     .path = ew_str_from(connect->url.path),
                     .secure = connect->url.tls,
                     .identity = &connect->self,
                     .on_telemetry = on_telemetry};
    ew__where where = {.kind = EW__WHERE_TCP,
                       .port = connect->url.port,
                       .host = connect->url.host,
                       .tls = connect->url.tls ? app->tls.dials : NULL,
                       .tls_http = true};
    err = ew__connector_init(&connect->connector, &app->loops[index % app->n_loops].loop, ew__wire_upgrade(), &site,
                             &app->registry, &where);
    if (err != EW_OK)
        return err;
    connect->made = true;
    connect->connector.ud = connect;
    return ew__connector_start(&connect->connector);
}

ew_err ew__app_connects_start(ew_app *app) {
    ew_err err = EW_OK;
    for (size_t i = 0; i < app->n_connects && err == EW_OK; i++)
        err = start(app->connects[i], i);
    return err;
}

/* ---- those of a loop ---- */

/* Manager i is dialled from loop i modulo their number. */
static size_t first_of(const ew__app_loop *loop) { return (size_t)(loop - loop->app->loops); }

size_t ew__app_connects_count(const ew__app_loop *loop) {
    size_t n = 0;
    for (size_t i = first_of(loop); i < loop->app->n_connects; i += loop->app->n_loops)
        n++;
    return n;
}

void ew__app_connects_refresh(ew__app_loop *loop) {
    for (size_t i = first_of(loop); i < loop->app->n_connects; i += loop->app->n_loops)
        ew__connector_refresh(&loop->app->connects[i]->connector);
}

void ew__app_connects_drain(ew__app_loop *loop) {
    for (size_t i = first_of(loop); i < loop->app->n_connects; i += loop->app->n_loops)
        ew__connector_drain(&loop->app->connects[i]->connector);
}

static void on_closed(ew__connector *connector) {
    ew__app_connect *connect = connector->ud;
    connect->on_closed(ew__container_of(connector->loop, ew__app_loop, loop));
}

void ew__app_connects_close(ew__app_loop *loop, bool now, void (*told)(ew__app_loop *loop)) {
    for (size_t i = first_of(loop); i < loop->app->n_connects; i += loop->app->n_loops) {
        loop->app->connects[i]->on_closed = told;
        ew__connector_close(&loop->app->connects[i]->connector, now, on_closed);
    }
}

void ew__app_connects_done(ew__app_loop *loop) {
    for (size_t i = first_of(loop); i < loop->app->n_connects; i += loop->app->n_loops) {
        ew__app_connect *connect = loop->app->connects[i];
        if (connect->made)
            ew__connector_done(&connect->connector);
        connect->made = false;
        ew__free(loop->app->env, connect->id, connect->id_size);
        connect->id = NULL;
    }
}

/* ---- of the app ---- */

void ew__app_connects_measure(const ew_app *app, ew__metrics_extra *extra) {
    for (size_t i = 0; i < app->n_connects; i++) {
        const ew__traffic *traffic = &app->connects[i]->connector.traffic;
        extra->connections_open += atomic_load(&traffic->open);
        extra->bytes_in += atomic_load(&traffic->bytes_in);
        extra->bytes_out += atomic_load(&traffic->bytes_out);
    }
}

void ew__app_connects_free(ew_app *app) {
    for (size_t i = 0; i < app->n_connects; i++)
        ew__free(app->env, app->connects[i], sizeof *app->connects[i]);
    app->n_connects = 0;
}
