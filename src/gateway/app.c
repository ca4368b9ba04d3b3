/*
 * gateway/app.c: making an app and telling it what to serve. Its running life is in run.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "io/supervisor.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#define RUNTIME_GRACE_MS 60000

static void set_error(ew_app *app, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_error(ew_app *app, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(app->error, sizeof app->error, format, args);
    va_end(args);
}

ew_err ew__app_fail(ew_app *app, ew_err err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(app->error, sizeof app->error, format, args);
    va_end(args);
    return err;
}

ew_err ew__app_failed(ew_app *app, ew_err err, const char *what) {
    if (err != EW_OK && !app->error[0])
        set_error(app, "%s: %s", what, ew_err_text(err));
    return err;
}

ew_err ew__app_may_change(ew_app *app, const char *what) {
    app->error[0] = '\0';
    return app->lifecycle.started ? ew__app_fail(app, EW_EINVAL, "%s: the app has been started already", what) : EW_OK;
}

/* ---- options ---- */

static char *copy_text(const ew_env *env, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = ew__alloc(env, n);
    return copy ? memcpy(copy, text, n) : NULL;
}

static void free_text(const ew_env *env, char *text) {
    if (text)
        ew__free(env, text, strlen(text) + 1);
}

/* NULL and "" are none. On failure the old one stays. */
static ew_err replace_text(const ew_env *env, char **text, const char *with) {
    char *copy = with && *with ? copy_text(env, with) : NULL;
    if (with && *with && !copy)
        return EW_ENOMEM;
    free_text(env, *text);
    *text = copy;
    return EW_OK;
}

static void free_hosts(const ew_env *env, char **hosts, size_t n) {
    for (size_t i = 0; hosts && i < n && hosts[i]; i++)
        ew__free(env, hosts[i], strlen(hosts[i]) + 1);
    if (hosts)
        ew__free(env, (void *)hosts, sizeof(char *) * (n + 1));
}

/* The new list may be the app's own: it is copied before the old one goes. */
static ew_err copy_hosts(ew_app *app, const char *const *hosts) {
    size_t n = 0;
    while (hosts && hosts[n])
        n++;
    char **copy = ew__zalloc(app->env, sizeof(char *) * (n + 1));
    bool ok = copy != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = (copy[i] = copy_text(app->env, hosts[i])) != NULL;
    if (!ok) {
        free_hosts(app->env, copy, n);
        return EW_ENOMEM;
    }
    free_hosts(app->env, app->allow_hosts, app->n_allow_hosts);
    app->allow_hosts = copy;
    app->n_allow_hosts = n;
    return EW_OK;
}

ew_err ew__app_configure(ew_app *app, const ew_app_options *options) {
    static const ew_app_options none;
    if (app->lifecycle.started)
        return EW_EINVAL;
    if (!options)
        options = &none;
    app->limits = options->limits;
    ew_limits_complete(&app->limits);
    app->threads = options->threads;
    app->host = options->loop;
    app->drain_ms = options->drain_ms;
    app->final_statuses = options->final_statuses;
    app->runtime_grace_ms = options->runtime_grace_ms;
    app->allow_remote = options->allow_remote;
    app->stack_traces = options->stack_traces;
    ew__tapping_init(&app->tapping, options->trace_frames, options->trace_ud, options->trace_bytes);
    app->tapping.is_secret = ew__registry_is_secret;
    app->tapping.secrets = &app->registry;
    ew__app_telemetry_configure(app, options->telemetry, options->telemetry_realtime);
    ew__budget_set(app->budget, options->env ? options->env : ew__budget_inner(app->budget), app->limits.memory_bytes);
    ew_err err = copy_hosts(app, options->allow_hosts);
    if (err == EW_OK)
        err = replace_text(app->env, &app->runtime_id, options->runtime_id);
    if (err == EW_OK)
        err = replace_text(app->env, &app->telemetry_url, options->telemetry);
    if (err == EW_OK)
        err = ew__app_access_configure(app, options);
    if (err == EW_OK)
        err = ew__app_tls_configure(app, &options->tls);
    return err;
}

uint32_t ew__app_final_statuses(const ew_app *app) {
    uint32_t usual = EW_STATUS_BIT(EW_STATUS_INVALID_ARGUMENT) | EW_STATUS_BIT(EW_STATUS_UNIMPLEMENTED);
    return (app->final_statuses ? app->final_statuses : usual) & ~EW_FINAL_NONE;
}

uint64_t ew__app_runtime_grace_ms(const ew_app *app) {
    uint64_t ms = app->runtime_grace_ms;
    return ms == 0 ? RUNTIME_GRACE_MS : ms == EW_NO_GRACE ? 0 : ms;
}

/* ---- life ---- */

static void destroy(ew_app *app) {
    free_hosts(app->env, app->allow_hosts, app->n_allow_hosts);
    ew__app_connects_free(app);
    ew__app_access_free(app);
    free_text(app->env, app->runtime_id);
    free_text(app->env, app->telemetry_url);
    free_text(app->env, app->name);
    ew__app_jobs_free(app);
    ew__sources_done(app);
    ew__app_tls_free(app);
    ew__registry_done(&app->registry);
    pthread_cond_destroy(&app->lifecycle.changed);
    pthread_mutex_destroy(&app->lifecycle.lock);
    pthread_mutex_destroy(&app->instance.lock);
    ew__app_plugins plugins = app->plugins;
    ew__budget *budget = app->budget;
    ew__free(app->env, app, sizeof *app);
    ew__app_plugins_unload(&plugins); /* last: everything of the app may point into their code */
    ew__budget_release(budget);
}

ew_app *ew__app_new(const char *name, const ew_app_options *options) {
    const ew_env *env = options && options->env ? options->env : ew_env_default();
    ew__budget *budget = ew__budget_new(env, UINT64_MAX); /* ew__app_configure sets the limit */
    ew_app *app = budget ? ew__zalloc(&budget->env, sizeof *app) : NULL;
    if (!app) {
        if (budget)
            ew__budget_release(budget);
        return NULL;
    }
    app->budget = budget;
    app->env = &budget->env;
    ew__arena_init(&app->tls_texts, app->env, NULL, 0);
    if (ew__registry_init(&app->registry, app->env) != EW_OK) {
        ew__free(app->env, app, sizeof *app);
        ew__budget_release(budget);
        return NULL;
    }
    pthread_mutex_init(&app->lifecycle.lock, NULL);
    pthread_mutex_init(&app->instance.lock, NULL);
    pthread_cond_init(&app->lifecycle.changed, NULL);
    app->remotes.app = app;
    ew__sources_init(&app->sources);
    app->name = copy_text(app->env, name ? name : "everywire");
    if (!app->name || ew__app_configure(app, options) != EW_OK) {
        destroy(app);
        return NULL;
    }
    return app;
}

ew_app *ew__app_free(ew_app *app) {
    if (!app)
        return NULL;
    if (app->lifecycle.started && !ew__app_end(app))
        return NULL; /* a handler still holds a call: leaking is the safe choice */
    if (app->workers)
        (void)ew__workers_free(app->workers, 0); /* never started */
    destroy(app);
    return NULL;
}

/* ---- actions ---- */

static void refresh_loop(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, refresh_task);
    atomic_store(&loop->refresh_sent, false); /* first: an action added from now on posts again */
    ew__server_refresh(&loop->server);
    ew__app_connects_refresh(loop);
    ew__away_refresh(loop);
    ew__app_jobs_refresh(loop);
}

void ew__app_refresh(ew_app *app) {
    for (size_t i = 0; i < app->n_loops; i++) {
        ew__app_loop *loop = &app->loops[i];
        if (atomic_exchange(&loop->refresh_sent, true))
            continue;
        loop->refresh_task.fn = refresh_loop;
        ew__executor_post(&loop->loop.executor, &loop->refresh_task);
    }
}

ew_err ew__app_add_action(ew_app *app, const char *key, ew_handler_fn handler, void *arg,
                          const ew_action_options *options) {
    app->error[0] = '\0';
    if (!key || !handler)
        return ew__app_fail(app, EW_EINVAL, "action %.120s: the %s is NULL", key ? key : "", key ? "handler" : "key");
    const ew__callee_ops *ops = &ew__local_callee;
    void *ud = NULL;
    if (options && options->may_block) {
        if (!app->workers && !(app->workers = ew__workers_new(app->env, &app->limits)))
            return ew__app_failed(app, EW_ENOMEM, "cannot make the worker threads");
        ops = ew__workers_callee(app->workers);
        ud = app->workers;
    }
    ew_err err = ew__registry_add(&app->registry, key, ops, ud, handler, arg, options);
    if (err != EW_OK) {
        char why[400];
        bool schema = ew__contract_say(app->env, options, why, sizeof why);
        set_error(app, "action %.120s: %s", key, schema ? why : ew_err_text(err));
        return err;
    }
    pthread_mutex_lock(&app->lifecycle.lock);
    bool running = app->lifecycle.started && !app->lifecycle.stopped;
    pthread_mutex_unlock(&app->lifecycle.lock);
    if (running)
        ew__app_refresh(app);
    return EW_OK;
}

/* ---- listeners ---- */

static ew_err split_wire(ew_app *app, const char **address, const ew__wire **wire, bool *ret_tls) {
    const char *equals = strchr(*address, '=');
    *wire = NULL;
    if (!equals)
        return EW_OK;
    ew_str name = ew__str(*address, (size_t)(equals - *address));
    *address = equals + 1;
    *ret_tls = ew__str_is(name, EW_STR("tls"));
    if (*ret_tls || ew__str_is(name, EW_STR("any")))
        return EW_OK;
    *wire = ew__wire_of_listener(name, ret_tls);
    if (*wire)
        return EW_OK;
    set_error(app, "there is no wire %.*s in this build", (int)(name.len < 60 ? name.len : 60), name.ptr);
    return EW_EINVAL;
}

static ew_err refuse_stdio(ew_app *app) {
    char names[200] = "";
    const ew__wire *const *wires = ew__wires(), *last = NULL;
    for (size_t i = 0; wires[i]; i++)
        last = wires[i]->caps & EW__CAN_STDIO ? wires[i] : last;
    for (size_t i = 0; wires[i]; i++) {
        size_t n = strlen(names);
        if (wires[i]->caps & EW__CAN_STDIO)
            (void)snprintf(names + n, sizeof names - n, "%s%s=stdio",
                           n == 0             ? ""
                           : wires[i] == last ? " or "
                                              : ", ",
                           wires[i]->name);
    }
    set_error(app, "standard input and output carry %s; stdio alone finds out which", names);
    return EW_EINVAL;
}

/* A socket that was handed to this program, "fd:N"; or an address as text. */
static ew_err read_address(ew_app *app, const char *text, ew__address *ret) {
    uint64_t fd;
    if (strncmp(text, "fd:", 3) == 0) {
        if (ew__u64_parse(ew_str_from(text + 3), &fd) && fd <= INT_MAX && ew__address_passed((int)fd, ret) == EW_OK)
            return EW_OK;
        set_error(app, "%.100s is no socket that listens (systemd: ListenStream=, and Accept=no)", text);
        return EW_EINVAL;
    }
    if (ew__address_parse(text, ret) == EW_OK)
        return EW_OK;
    set_error(app, "%.100s is no address: want HOST:PORT with a numeric host or localhost, unix:PATH, stdio or fd:N",
              text);
    return EW_EINVAL;
}

/* Whoever has handed over a socket has bound it already: an address that names the same is that one. */
static bool is_passed(ew_app *app, const ew__address *address, const ew__wire *wire) {
    for (size_t i = 0; i < app->n_listeners; i++) {
        ew__app_listener *other = &app->listeners[i];
        if (!other->address.passed || address->passed || strcmp(other->address.text, address->text) != 0)
            continue;
        other->wire = wire ? wire : other->wire;
        return true;
    }
    return false;
}

ew_err ew__app_add_listener(ew_app *app, const char *address) {
    const ew__wire *wire = NULL;
    bool tls = false;
    ew_err err = ew__app_may_change(app, "cannot add a listener");
    if (err != EW_OK)
        return err;
    if (!address)
        return ew__app_fail(app, EW_EINVAL, "cannot add a listener: the address is NULL");
    err = split_wire(app, &address, &wire, &tls);
    if (err != EW_OK)
        return err;
    if (app->n_listeners == EW__LISTENERS_MAX) {
        set_error(app, "more than %d listeners", EW__LISTENERS_MAX);
        return EW_ELIMIT;
    }
    ew__app_listener *listener = &app->listeners[app->n_listeners];
    if (read_address(app, address, &listener->address) != EW_OK)
        return EW_EINVAL;
    if (is_passed(app, &listener->address, wire))
        return EW_OK;
    if (listener->address.kind == EW__ADDR_STDIO && wire && !(wire->caps & EW__CAN_STDIO))
        return refuse_stdio(app);
    if (listener->address.kind == EW__ADDR_STDIO && tls) {
        set_error(app, "standard input and output carry no TLS");
        return EW_EINVAL;
    }
    if (!listener->address.loopback && !app->allow_remote) {
        set_error(app, "%s can be reached from other machines; --allow-remote (allow_remote) permits that",
                  listener->address.text);
        return EW_EACCESS;
    }
    listener->wire = wire;
    listener->tls = tls;
    app->n_listeners++;
    return EW_OK;
}

bool ew__app_listener_is_tls(const ew_app *app, size_t index) {
    return index < ew__app_n_listeners(app) && app->listeners[index].tls;
}

size_t ew__app_n_listeners(const ew_app *app) { return app->lifecycle.started ? app->n_listeners : 0; }

ew_err ew__app_listener_at(const ew_app *app, size_t index, const char **ret_wire, const char **ret_address,
                           int *ret_port) {
    if (index >= ew__app_n_listeners(app))
        return EW_ENOTFOUND;
    const ew__app_listener *listener = &app->listeners[index];
    if (ret_wire)
        *ret_wire = listener->wire ? listener->wire->name : "any";
    if (ret_address)
        *ret_address = listener->address.text;
    if (ret_port)
        *ret_port = listener->address.port;
    return EW_OK;
}
