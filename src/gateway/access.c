/*
 * gateway/access.c: see access.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include <stdarg.h>
#include <stdio.h>

static ew_err refuse(ew_app *app, ew_err err, const char *format, ...) __attribute__((format(printf, 3, 4)));
static ew_err refuse(ew_app *app, ew_err err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(app->error, sizeof app->error, format, args);
    va_end(args);
    return err;
}

ew_err ew__app_access_configure(ew_app *app, const ew_app_options *options) {
    ew__app_access *self = &app->access;
    const char *problem = NULL;
    self->no_token = options->no_token;
    self->count_local = options->limits.connections_per_address > 0;
    self->shown[0] = 0;
    if (options->token && *options->token)
        problem = ew__token_read(options->token, self->shown);
    if (problem)
        return refuse(app, EW_EINVAL, "%s", problem);
    return ew__app_access_tokens(app, options->tokens);
}

ew_err ew__app_access_tokens(ew_app *app, const char *tokens) {
    ew__app_access *self = &app->access;
    size_t n = tokens && *tokens ? strlen(tokens) + 1 : 0;
    char *copy = n ? ew__alloc(app->env, n) : NULL;
    if (n && !copy)
        return EW_ENOMEM;
    ew__app_access_free(app);
    self->path = copy ? memcpy(copy, tokens, n) : NULL;
    return EW_OK;
}

void ew__app_access_free(ew_app *app) {
    if (app->access.path)
        ew__free(app->env, app->access.path, strlen(app->access.path) + 1);
    app->access.path = NULL;
}

const char *ew__app_reachable(const ew_app *app) {
    for (size_t i = 0; i < app->n_listeners; i++) {
        const ew__app_listener *listener = &app->listeners[i];
        bool knows_all = listener->tls && app->tls.options.client_ca; /* who comes in has shown a certificate */
        if (!listener->address.loopback && !knows_all)
            return listener->address.text;
    }
    return NULL;
}

/* ---- the file ---- */

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_uid == b->st_uid && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/*
 * A file that cannot be read, or should not be trusted, leaves the tokens as they were: a slip of an editor must not lock
 * everybody out. One that is gone has none any more.
 */
static void read_again(ew_app *app) {
    ew__app_access *self = &app->access;
    char problem[512] = "";
    ew__tokens *tokens = NULL;
    struct stat seen;
    memset(&seen, 0, sizeof seen);
    ew_err err = ew__tokens_load(app->env, self->path, &tokens, &seen, problem, sizeof problem);
    if (err == EW_OK || err == EW_ENOTFOUND) {
        ew__log(app->env, EW_LOG_INFO, "access", "%zu tokens in %s", tokens ? tokens->n : 0, self->path);
        ew__access_set(&self->shared, tokens);
        self->failing = false;
    } else if (!self->failing) {
        ew__log(app->env, EW_LOG_ERROR, "access", "%s; the tokens stay as they were", problem);
        self->failing = true;
    }
    self->seen = seen;
}

void ew__app_access_look(ew_app *app, bool in_any_case) {
    ew__app_access *self = &app->access;
    struct stat now;
    if (!self->made || !self->path || pthread_mutex_trylock(&self->look_lock) != 0)
        return;
    memset(&now, 0, sizeof now);
    (void)stat(self->path, &now);
    if (in_any_case || !same_file(&now, &self->seen))
        read_again(app);
    pthread_mutex_unlock(&self->look_lock);
}

static void look(ew__access *access) {
    ew__app_access_look(ew__container_of(ew__container_of(access, ew__app_access, shared), ew_app, access), false);
}

static ew_err read_first(ew_app *app) {
    ew__app_access *self = &app->access;
    char problem[320] = "";
    ew__tokens *tokens = NULL;
    ew_err err = ew__tokens_load(app->env, self->path, &tokens, &self->seen, problem, sizeof problem);
    if (err != EW_OK && err != EW_ENOTFOUND)
        return refuse(app, err, "%s", problem);
    if (!tokens || tokens->n == 0) {
        ew__tokens_unref(tokens);
        const char *reachable = ew__app_reachable(app);
        return refuse(app, EW_EACCESS,
                      "%s%sthere is no token in %.150s: everywire token new --tokens %.150s makes one%s",
                      reachable ? reachable : "", reachable ? " can be reached from other machines, and " : "",
                      self->path, self->path, reachable ? "; --no-token serves everybody without" : "");
    }
    ew__access_set(&self->shared, tokens);
    return EW_OK;
}

/* ---- the start ---- */

static ew_err check(ew_app *app, const char *reachable) {
    ew__app_access *self = &app->access;
    if (self->no_token && self->path)
        return refuse(app, EW_EINVAL, "tokens and no_token contradict each other");
    if (reachable && !self->path && !self->no_token)
        return refuse(app, EW_EACCESS,
                      "%s can be reached from other machines, and nothing would be asked of them: make a token with "
                      "everywire token new and name its file (--tokens FILE, tokens), or serve everybody with "
                      "--no-token (no_token)",
                      reachable);
    if (reachable && self->no_token)
        ew__log(app->env, EW_LOG_WARN, "access", "%s: EVERYBODY who reaches it can run every action, without a token",
                reachable);
    return EW_OK;
}

static void warn_hosts(const ew_app *app) {
    for (size_t i = 0; i < app->n_allow_hosts; i++) {
        const char *problem = ew__wire_carrier()->host_problem(ew_str_from(app->allow_hosts[i]));
        if (problem)
            ew__log(app->env, EW_LOG_WARN, "access", "allowed host \"%s\" matches no request: %s", app->allow_hosts[i],
                    problem);
    }
}

ew_err ew__app_access_start(ew_app *app) {
    ew__app_access *self = &app->access;
    warn_hosts(app);
    const char *reachable = ew__app_reachable(app);
    bool rate = app->limits.calls_per_second_per_address > 0;
    ew_err err = check(app, reachable);
    if (err != EW_OK || (!self->path && !rate && !reachable && !self->count_local))
        return err;
    ew__clients_init(&self->clients, app->env);
    ew__access_init(&self->shared, app->env, &self->clients);
    pthread_mutex_init(&self->look_lock, NULL);
    self->clients.connections = app->limits.connections_per_address;
    self->clients.count_local = self->count_local;
    self->clients.calls_per_second = app->limits.calls_per_second_per_address;
    self->shared.required = self->path != NULL;
    self->shared.look = look;
    self->made = true;
    self->gated = self->path || rate;
    return self->path ? read_first(app) : EW_OK;
}

void ew__app_access_attach(ew__app_loop *loop) {
    ew__app_access *self = &loop->app->access;
    loop->calls.stack_traces = (uint8_t)loop->app->stack_traces;
    if (self->made)
        loop->server.clients = &self->clients;
    if (!self->gated)
        return;
    ew__gate_init(&loop->gate, &self->shared);
    loop->calls.gate = &loop->gate;
}

void ew__app_access_detach(ew__app_loop *loop) {
    if (loop->calls.gate)
        ew__gate_done(&loop->gate);
}

void ew__app_access_stop(ew_app *app) {
    ew__app_access *self = &app->access;
    if (!self->made)
        return;
    self->made = self->gated = false;
    ew__access_done(&self->shared);
    ew__clients_done(&self->clients);
    pthread_mutex_destroy(&self->look_lock);
}
