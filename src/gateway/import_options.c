/*
 * gateway/import_options.c: reads and copies the targets, names and options of an import. See gateway.h, import.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/import.h"
#include "base/thread.h"
#include <errno.h>
#include <stdio.h>

#define REFRESH_MS 5000
#define REFRESH_RUNTIMES_MS 1000 /* they come and go */

static const char *copy_text(ew__import *import, ew_str text) {
    char *copy = ew__arena_alloc(&import->arena, text.len + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static size_t count(const char *const *list) {
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static ew_err copy_list(ew__import *import, const char *const *list, const char *const **ret) {
    size_t n = count(list);
    const char **copy = ew__arena_alloc(&import->arena, (n + 1) * sizeof *copy);
    if (!copy)
        return EW_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!(copy[i] = copy_text(import, ew_str_from(list[i]))))
            return EW_ENOMEM;
    copy[n] = NULL;
    *ret = copy;
    return EW_OK;
}

static ew_err add_name(ew__import *import, ew_str text) {
    const char *copy = copy_text(import, text);
    if (!copy)
        return EW_ENOMEM;
    if (!ew__import_name_read(ew__str(copy, text.len), &import->names[import->n_names]))
        return ew__app_fail(import->source.app, EW_EINVAL, "'%.100s' is neither NAME nor NAME:AS", copy);
    import->n_names++;
    return EW_OK;
}

/* Names of the options, and those behind the '#'. */
static ew_err read_names(ew__import *import, const char *hash, const char *const *names) {
    size_t room = count(names) + 1;
    for (const char *at = hash; at && *at; at++)
        room += *at == ',';
    import->names = ew__arena_alloc(&import->arena, room * sizeof *import->names);
    ew_err err = import->names ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; i < count(names) && err == EW_OK; i++)
        err = add_name(import, ew_str_from(names[i]));
    for (const char *at = hash; at && err == EW_OK; at = *at ? at + 1 : NULL) {
        size_t n = strcspn(at, ",");
        err = add_name(import, ew__str(at, n));
        at += n;
    }
    return err;
}

/* How clashing keys are told apart: by the prefix, else by where the peer is. */
static ew_str label_of(const ew__import *import, const ew__target *target) {
    if (import->prefix.len)
        return import->prefix;
    if (import->client.command && import->client.command[0]) {
        const char *slash = strrchr(import->client.command[0], '/');
        return ew_str_from(slash && slash[1] ? slash + 1 : import->client.command[0]);
    }
    return ew_str_from(target->kind == EW__WHERE_UNIX ? target->path : target->authority);
}

static ew_err add_target(ew__import *import, ew_str text, bool several, const ew_import_options *options) {
    ew_app *app = import->source.app;
    ew__import_target *target = &import->targets[import->n_targets];
    ew_client_options client = import->client;
    ew__target parsed;
    const char *problem = NULL;
    client.allow_remote = app->allow_remote;
    char *copy = (char *)(uintptr_t)copy_text(import, text);
    if (!copy)
        return EW_ENOMEM;
    ew_err err = ew__client_check(copy, &client, &parsed, &problem);
    if (err != EW_OK)
        return ew__app_fail(app, err, "%s%s%s", several ? copy : "", several ? ": " : "",
                            problem ? problem : ew_err_text(err));
    *target = (ew__import_target){.import = import, .text = copy, .tls = parsed.scheme->tls};
    ew__buf_init(&target->list, import->arena.env, SIZE_MAX / 2); /* limited by list_bytes */
    if (import->n_targets == 0 && ew__arena_str(&import->arena, label_of(import, &parsed), &import->label) != EW_OK)
        return EW_ENOMEM;
    if (!(options && options->refresh_ms))
        import->refresh_ms = parsed.kind == EW__WHERE_LISTEN ? REFRESH_RUNTIMES_MS : REFRESH_MS;
    ew__import_target_set(target, &parsed);
    import->n_targets++;
    return EW_OK;
}

static ew_err read_targets(ew__import *import, ew_str text, const ew_import_options *options) {
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == ',';
    if (n > EW__IMPORT_TARGETS_MAX)
        return ew__app_fail(import->source.app, EW_ELIMIT, "more than %d targets in one import",
                            EW__IMPORT_TARGETS_MAX);
    import->targets = ew__arena_alloc(&import->arena, n * sizeof *import->targets);
    ew_err err = import->targets ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; i < n && err == EW_OK; i++) {
        const char *comma = memchr(text.ptr, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;
        err = add_target(import, ew__str(text.ptr, len), n > 1, options);
        text = comma ? ew__str(comma + 1, text.len - len - 1) : ew__str(text.ptr + len, 0);
    }
    return err;
}

/* What is said of the one name in place of what the peer says. */
static ew_err read_describe(ew__import *import, const ew_action_options *describe) {
    if (!describe)
        return EW_OK;
    if (import->n_names != 1)
        return ew__app_fail(import->source.app, EW_EINVAL, "a description is for one name");
    ew__buf out;
    ew__buf_init(&out, import->arena.env, (size_t)1024 * 1024);
    ew_err err = ew__descriptor_begin(&out, import->names[0].here, describe);
    char why[400];
    if (err == EW_OK && ew__contract_say(import->arena.env, describe, why, sizeof why)) {
        ew__buf_done(&out);
        return ew__app_fail(import->source.app, EW_EINVAL, "%s", why);
    }
    if (err == EW_OK)
        err = ew__arena_str(&import->arena, ew__buf_view(&out), &import->descriptor);
    ew__buf_done(&out);
    if (err == EW_EINVAL)
        return ew__app_fail(import->source.app, err, "a description wants a name with its key here, NAME:/TYPE/NAME");
    return err;
}

static bool prefix_ok(ew_str prefix) {
    for (size_t i = 0; i < prefix.len; i++)
        if ((unsigned char)prefix.ptr[i] <= 0x20 || prefix.ptr[i] == 0x7f || prefix.ptr[i] == ':')
            return false;
    return prefix.len > 0 && prefix.len <= 128 && prefix.ptr[0] != '/' && prefix.ptr[prefix.len - 1] != '/';
}

static ew_err read_options(ew__import *import, const ew_import_options *options) {
    const char *shown = import->source.app->access.shown;
    import->client.no_token = import->source.app->access.no_token;
    if (*shown && !(import->client.token = copy_text(import, ew_str_from(shown))))
        return EW_ENOMEM;
    if (!options)
        return EW_OK;
    ew_err err = EW_OK;
    import->refresh_ms = options->refresh_ms;
    import->client.processes = options->processes;
    if (options->prefix)
        err = ew__arena_str(&import->arena, ew_str_from(options->prefix), &import->prefix);
    if (options->prefix && !prefix_ok(import->prefix))
        return ew__app_fail(import->source.app, EW_EINVAL, "'%.100s' cannot stand before a name", options->prefix);
    if (err == EW_OK)
        err = ew__tls_copy(&import->arena, &options->tls, &import->client.tls);
    if (err == EW_OK && options->command)
        err = copy_list(import, options->command, &import->client.command);
    if (err == EW_OK && options->command) /* NULL would be all that we have */
        err = copy_list(import, options->environment, &import->client.environment);
    if (err == EW_OK && options->blobs && !(import->client.blobs = copy_text(import, ew_str_from(options->blobs))))
        err = EW_ENOMEM;
    if (err == EW_OK && options->token && *options->token &&
        !(import->client.token = copy_text(import, ew_str_from(options->token))))
        err = EW_ENOMEM;
    return err;
}

ew_err ew__source_new_import(ew_app *app, const char *targets, const ew_import_options *options, ew__source **ret) {
    const char *hash = strchr(targets, '#');
    app->error[0] = '\0';
    ew__import *import = ew__zalloc(app->env, sizeof *import);
    if (!import)
        return EW_ENOMEM;
    atomic_init(&import->refs, 1);
    import->source = (ew__source){.ops = &ew__import_ops, .app = app, .import = true};
    ew__arena_init(&import->arena, app->env, NULL, 0);
    ew_err err = read_options(import, options);
    if (err == EW_OK)
        err = read_targets(import, ew__str(targets, hash ? (size_t)(hash - targets) : strlen(targets)), options);
    if (err == EW_OK)
        err = read_names(import, hash ? hash + 1 : NULL, options ? options->names : NULL);
    if (err == EW_OK)
        err = read_describe(import, options ? options->describe : NULL);
    if (err != EW_OK) {
        ew__source_free(&import->source);
        return err;
    }
    *ret = &import->source;
    return EW_OK;
}

ew_err ew__source_new_runner(ew_app *app, const ew_worker_runner *runner, ew__source **ret) {
    ew_import_options options = {
        .command = runner->command, .environment = runner->env, .processes = runner->command ? runner->processes : 0};
    ew_err err = ew__source_new_import(app, runner->target, &options, ret);
    if (err != EW_OK)
        return err;
    ew__import *import = ew__container_of(*ret, ew__import, source);
    import->runner = true;
    import->source.asked = true;
    import->client.limits.runner_calls = runner->max_in_flight ? runner->max_in_flight : 1;
    if (runner->cwd && !(import->client.folder = copy_text(import, ew_str_from(runner->cwd))))
        err = EW_ENOMEM;
    if (err == EW_OK && (import->n_targets != 1 || import->n_names))
        err = ew__app_fail(app, EW_EINVAL, "a runner is one target, and takes all names");
    if (err != EW_OK)
        ew__source_free(*ret);
    return err;
}

ew__upstream *ew__source_runner(ew__source *source) {
    return &ew__container_of(source, ew__import, source)->targets[0].upstream.base;
}

/*
 * Runtimes dial us: a listener does it, whose connections live on the loops. What it cannot do (other names, a program to
 * start) a client does.
 */
static bool is_listener(const char *targets, const ew_import_options *options) {
    bool plain = !options || (!options->prefix && !options->names && !options->command && !options->describe &&
                              !options->token && !ew__tls_is_set(&options->tls));
    const ew_scheme *scheme = ew_scheme_of(targets);
    return plain && scheme && scheme->reach == EW_REACH_LISTEN && !strpbrk(targets, "#,");
}

static ew_err listen_for_runtimes(ew_app *app, const char *target) {
    char listener[160];
    size_t n = strcspn(target, ":");
    (void)snprintf(listener, sizeof listener, "%.*s=%.140s", (int)n, target, target + n + strlen("://"));
    ew_err err = ew__app_add_listener(app, listener);
    if (err == EW_OK)
        app->listeners[app->n_listeners - 1].for_peers = true;
    return err;
}

ew_err ew__app_wait_imports(ew_app *app, uint64_t ms) {
    ew__sources *sources = &app->sources;
    struct timespec until = ew__cond_until(ms);
    int err = 0;
    bool all = false;
    pthread_mutex_lock(&sources->lock);
    while (!all && err != ETIMEDOUT && !sources->silent) {
        all = true;
        for (const ew__source *source = ew__sources_first(sources); source && all; source = ew__source_next(source))
            all = !source->import || source->asked;
        if (!all)
            err = pthread_cond_timedwait(&sources->changed, &sources->lock, &until);
    }
    pthread_mutex_unlock(&sources->lock);
    return all ? EW_OK : EW_ETIMEOUT;
}

ew_err ew__app_add_import(ew_app *app, const char *targets, const ew_import_options *options) {
    ew__source *source = NULL;
    if (ew__app_may_change(app, "cannot add an import") != EW_OK)
        return EW_EINVAL;
    if (!targets)
        return ew__app_fail(app, EW_EINVAL, "cannot add an import: the target is NULL");
    if (is_listener(targets, options))
        return listen_for_runtimes(app, targets);
    ew_err err = ew__source_new_import(app, targets, options, &source);
    if (err != EW_OK)
        return ew__app_failed(app, err, "cannot add an import");
    err = ew__app_sources_add(app, source);
    if (err != EW_OK) {
        ew__source_free(source);
        return ew__app_fail(app, err, "more than %d imports", EW__IMPORTS_MAX);
    }
    return EW_OK;
}
