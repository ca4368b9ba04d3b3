/*
 * program/config.c: see config.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/config.h"
#include "program/default_store.h"
#include "endpoint/exporter.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define TURN_OVER_MS 2000 /* how long what goes waits for imports that come, when the file is read again */

/* Goes through a file for an app. */
typedef struct pass {
    ew_app *app;
    ew__config *config;
    bool check; /* the app is for this alone: no plug-in is loaded */
    bool live;  /* the app runs: what is made is not added to it yet */
    ew__app_config_items items;
} pass;

/* What has become of an item. */
typedef struct made {
    ew__source *source; /* NULL: a listener */
    bool is;
} made;

/* ---- problems ---- */

static void problem_at(pass *p, const ew__node *node, const char *what, const char *why) {
    ew__problem_add(&p->config->problems, node ? node->line : 0, node ? node->column : 0, "%s%s%s", what,
                    *what ? ": " : "", why);
}

/* What the app's function has answered, with the app's own words. */
static void app_problem(pass *p, const ew__node *node, const char *what, ew_err err) {
    if (err == EW_ENOMEM) {
        p->config->problems.no_memory = true;
    } else {
        problem_at(p, node, *p->app->error ? "" : what, *p->app->error ? p->app->error : ew_err_text(err));
    }
}

/* ---- settings ---- */

/* The file's limits, where it has some, over those that there are. */
static void set_limits(const ew_limits *from, ew_limits *to) {
#define SET_LIMIT(member, value, text)                                                                                 \
    if (from->member)                                                                                                  \
        to->member = from->member;
    EW_LIMITS_MAP(SET_LIMIT)
#undef SET_LIMIT
}

void ew__app_config_options(const ew__config *config, ew_app_options *options) {
    set_limits(&config->limits.values, &options->limits);
    options->threads = config->threads ? config->threads : options->threads;
    options->drain_ms = config->drain_ms ? config->drain_ms : options->drain_ms;
    if (ew__node_get(config->node, "runtime_grace"))
        options->runtime_grace_ms = config->runtime_grace_ms ? config->runtime_grace_ms : EW_NO_GRACE;
    if (config->final_statuses)
        options->final_statuses = 0;
    for (size_t i = 0; config->final_statuses && config->final_statuses[i]; i++)
        (void)ew__final_statuses_read(ew_str_from(config->final_statuses[i]), &options->final_statuses);
    options->allow_remote = ew__node_get(config->node, "allow_remote") ? config->allow_remote : options->allow_remote;
    options->tokens = config->tokens ? config->tokens : options->tokens;
    options->token = config->token ? config->token : options->token;
    options->no_token = options->no_token || config->no_token;
    if (ew__node_get(config->node, "stack_traces"))
        options->stack_traces = config->stack_traces;
    options->runtime_id = config->runtime_id ? config->runtime_id : options->runtime_id;
    options->telemetry = config->telemetry.url ? config->telemetry.url : options->telemetry;
    options->telemetry_realtime = options->telemetry_realtime || config->telemetry.realtime;
    if (config->tls.node)
        options->tls = config->tls.options;
}

static void check_telemetry(pass *p) {
    ew__export_target aim;
    const char *url = p->config->telemetry.url, *problem = NULL;
    const ew__node *node = p->config->telemetry.node;
    if (url && ew__export_target_parse(ew_str_from(url), false, &aim, &problem) != EW_OK) {
        problem_at(p, node->kind == EW__NODE_MAP ? ew__node_get(node, "url") : node, url, problem);
    }
}

static void check_final_statuses(pass *p) {
    const char *const *names = p->config->final_statuses;
    const ew__node *list = ew__node_get(p->config->node, "final_statuses");
    uint32_t set = 0;
    for (size_t i = 0; names && names[i]; i++)
        if (!ew__final_statuses_read(ew_str_from(names[i]), &set))
            problem_at(p, ew__node_at(list, i), names[i],
                       "not the name of a status, such as INVALID_ARGUMENT, or none");
}

/*
 * The files are opened, as they will be at the start: what is wrong with them is better known now. Without a certificate
 * here the command line may have one.
 */
static void check_tls(pass *p) {
    const ew_tls_options *tls = &p->config->tls.options;
    ew_err err = p->check && (tls->certificate || tls->key) ? ew__app_tls_start(p->app) : EW_OK;
    if (err != EW_OK) {
        app_problem(p, p->config->tls.node, "tls", err);
    }
}

/* ---- listeners and managers ---- */

static void add_all(pass *p, const char *const *texts, const char *key, ew_err (*with)(ew_app *app, const char *text)) {
    const ew__node *list = ew__node_get(p->config->node, key);
    for (size_t i = 0; texts && texts[i]; i++) {
        p->app->error[0] = 0;
        ew_err err = with(p->app, texts[i]);
        if (err != EW_OK) {
            app_problem(p, ew__node_at(list, i), texts[i], err);
        }
    }
}

/* ---- imports and actions ---- */

static ew_err print_item(const pass *p, const ew__node *node, const ew__config_action *action,
                         uint8_t digest[EW__SHA256_SIZE]) {
    ew__buf text;
    ew__buf_init(&text, p->config->arena.env, 8 * EW__CONFIG_BYTES);
    (void)ew__buf_cstr(&text, p->config->folder); /* relative paths are part of what it says */
    (void)ew__buf_char(&text, 0);
    if (node->key) {
        (void)ew__node_print(node->key, &text);
    }
    ew_err err = ew__node_print(node, &text);
    if (action) {
        ew__app_config_print_schemas(action, &text);
        err = err == EW_OK ? text.err : err;
    }
    ew__sha256_of(text.ptr, text.len, digest);
    ew__buf_done(&text);
    return err;
}

static ew__source *last_source(const ew_app *app) {
    const ew__fifo *list = &app->sources.list;
    return list->first ? EW__ITEM(list->last, ew__source, node) : NULL;
}

/* To an app that runs nothing is added before all of it is made. Without a source it has become a listener. */
static ew_err add_import(pass *p, const char *targets, const ew_import_options *options, made *ret) {
    ew__source *before = last_source(p->app);
    ew_err err = p->live ? ew__source_new_import(p->app, targets, options, &ret->source)
                         : ew__app_add_import(p->app, targets, options);
    if (err == EW_OK && !p->live && last_source(p->app) != before) {
        ret->source = last_source(p->app);
    }
    ret->is = err == EW_OK;
    return err;
}

static ew_err add_exec(pass *p, const ew__config_action *action, made *ret) {
    const char *key = action->node->key->text.ptr;
    const ew_exec_options *options = &action->exec.options;
    ew_err err = p->live ? ew__source_new_exec(p->app, key, options, &action->describe, &ret->source)
                         : ew__app_add_exec(p->app, key, options, &action->describe);
    if (err == EW_OK && !p->live) {
        ret->source = last_source(p->app);
    }
    ret->is = err == EW_OK;
    return err;
}

/* A remote action is an import of one name. NULL: a problem was added. */
static const char *remote_name(pass *p, const ew__config_action *action) {
    const ew__config_import *remote = &action->remote;
    ew__reading reading = {&p->config->arena, &p->config->problems, p->config->folder};
    if (strchr(remote->action, ':')) {
        problem_at(p, ew__node_get(remote->node, "action"), "action", "a name must not have a colon in it");
        return NULL;
    }
    return ew__join(&reading, ew_str_from(remote->action), ':', action->node->key->text);
}

static ew_err add_remote(pass *p, const ew__config_action *action, made *ret) {
    const ew_action_options *say = &action->describe;
    const char *names[] = {remote_name(p, action), NULL};
    ew_import_options options = action->remote.options;
    options.names = names;
    options.describe = say->description || say->input_schema || say->output_schema || say->stream_schema ||
                               say->metadata || say->input_stream
                           ? say
                           : NULL;
    return names[0] ? add_import(p, action->remote.joined, &options, ret) : EW_OK;
}

/* Schemas and metadata that stood there as texts. */
static bool check_json(pass *p, const ew__node *map, const char *name, const char *json) {
    size_t position = 0;
    char why[80];
    if (json && ew_json_check(ew_str_from(json), &position) != EW_OK) {
        (void)snprintf(why, sizeof why, "this text is no JSON, from its byte %zu on", position + 1);
        problem_at(p, ew__node_get(map, name), name, why);
        return false;
    }
    if (json && strcmp(name, "metadata") == 0 && ew_json_typeof(ew_json_get(ew_str_from(json), "")) != EW_JSON_OBJECT) {
        problem_at(p, ew__node_get(map, name), name, "this is no map");
        return false;
    }
    return true;
}

static bool check_action(pass *p, const ew__config_action *action) {
    const ew_action_options *say = &action->describe;
    bool ok = check_json(p, action->node, "input_schema", say->input_schema);
    ok = check_json(p, action->node, "output_schema", say->output_schema) && ok;
    ok = check_json(p, action->node, "stream_schema", say->stream_schema) && ok;
    ok = check_json(p, action->node, "metadata", say->metadata) && ok;
    return ok && ew__app_config_check_schemas(p->config, action);
}

/* What has had a problem before is left out, without another one. */
static ew_err add_action(pass *p, const ew__config_action *action, made *ret) {
    const ew__config_import *remote = &action->remote;
    if (!check_action(p, action)) {
        return EW_OK;
    }
    if (action->exec.options.argv && !remote->node) {
        return add_exec(p, action, ret);
    }
    return remote->joined && remote->action && !action->exec.node ? add_remote(p, action, ret) : EW_OK;
}

/* Where an item says what the app may refuse. */
static const ew__node *place_of(const ew__node *node, const ew__config_action *action) {
    if (action && action->exec.node) {
        return action->exec.node;
    }
    node = action ? action->remote.node : node;
    const ew__node *target = ew__node_get(node, "target"), *targets = ew__node_get(node, "targets");
    return target ? target : targets ? targets : node;
}

/* What the file's last version had for the same words, or NULL; each serves once. */
static ew__app_config_item *find_old(ew__app_config_items *old, const uint8_t digest[EW__SHA256_SIZE]) {
    for (size_t i = 0; old && i < old->n; i++) {
        if (!old->list[i].taken && memcmp(old->list[i].print, digest, EW__SHA256_SIZE) == 0) {
            return &old->list[i];
        }
    }
    return NULL;
}

/* Makes what an import or (the other is NULL) an action says, unless it is there. */
static void make_item(pass *p, const ew__node *node, const ew__config_import *import, ew__config_action *action,
                      ew__app_config_items *old) {
    ew__app_config_item item = {.source = NULL};
    made result = {.source = NULL};
    if (node->bad) {
        return;
    }
    if (action) {
        ew__app_config_load_schemas(p->config, action);
    }
    ew_err err = print_item(p, node, action, item.print);
    ew__app_config_item *same = err == EW_OK ? find_old(old, item.print) : NULL;
    p->app->error[0] = 0;
    if (same) {
        same->taken = item.taken = true;
        result = (made){same->source, true};
    } else if (err == EW_OK && action) {
        err = add_action(p, action, &result);
    } else if (err == EW_OK && import && import->joined) {
        err = add_import(p, import->joined, &import->options, &result);
    }
    item.source = result.source;
    if (err != EW_OK) {
        app_problem(p, place_of(node, action), import ? import->joined : node->key->text.ptr, err);
    } else if (result.is) {
        p->items.list[p->items.n++] = item;
    }
}

/* Imports, then actions, as items of the pass; those of `old` (NULL: none) are used again. */
static void make_items(pass *p, ew__app_config_items *old) {
    const ew__config_import *imports = p->config->imports.items;
    ew__config_action *actions = p->config->actions.items;
    size_t room = p->config->imports.n + p->config->actions.n + (old ? old->n : 0) + 1; /* never none */
    p->items.list = ew__alloc(p->config->arena.env, room * sizeof *p->items.list);
    if (!p->items.list) {
        p->config->problems.no_memory = true;
        return;
    }
    p->items.room = room;
    for (size_t i = 0; i < p->config->imports.n; i++) {
        make_item(p, imports[i].node, &imports[i], NULL, old);
    }
    for (size_t i = 0; i < p->config->actions.n; i++) {
        make_item(p, actions[i].node, NULL, &actions[i], old);
    }
}

static void free_items(const ew_env *env, ew__app_config_items *items) {
    ew__free(env, items->list, items->room * sizeof *items->list);
    *items = (ew__app_config_items){.list = NULL};
}

/* ---- plug-ins ---- */

/* Whoever may write to it may run code as us. */
static const char *plugin_problem(const char *path) {
    struct stat file;
    if (stat(path, &file) != 0) {
        return errno == ENOENT ? "there is no such file" : "it cannot be reached";
    }
    return !S_ISREG(file.st_mode) ? "it is no regular file" : ew__config_distrusts(&file);
}

static void add_plugins(pass *p) {
    const ew__config_plugin *plugins = p->config->plugins.items;
    for (size_t i = 0; i < p->config->plugins.n; i++) {
        const ew__config_plugin *plugin = &plugins[i];
        const char *problem = plugin->path ? plugin_problem(plugin->path) : NULL;
        p->app->error[0] = 0;
        if (problem) {
            problem_at(p, plugin->node, plugin->path, problem);
        } else if (plugin->path && !p->check) {
            ew_err err = ew__app_add_plugin(p->app, plugin->path, plugin->config);
            if (err != EW_OK) {
                app_problem(p, plugin->node, plugin->path, err);
            }
        }
    }
}

/* ---- the start ---- */

static void apply(pass *p) {
    check_telemetry(p);
    check_final_statuses(p);
    add_all(p, p->config->listen, "listen", ew_app_listen);
    add_all(p, p->config->connect, "connect", ew_app_connect);
    check_tls(p);
    make_items(p, NULL);
    add_plugins(p);
    ew__config_check_jobs(p->config->arena.env, p->config);
    ew__problems_sort(&p->config->problems);
}

ew_err ew__app_config_open(ew__app_config *file, const ew_env *env, const char *path) {
    *file = (ew__app_config){.env = env, .path = path};
    return ew__config_load(env, path, ew__rrq_load, &file->config);
}

void ew__app_config_close(ew__app_config *file) {
    if (file->config) {
        free_items(file->env, &file->items);
        ew__config_free(file->config);
        file->config = NULL;
    }
}

ew_err ew__app_config_apply(ew__app_config *file, ew_app *app) {
    pass p = {.app = app, .config = file->config};
    const ew__problems *problems = &file->config->problems;
    apply(&p);
    file->items = p.items;
    return problems->no_memory ? EW_ENOMEM : problems->n ? EW_ESYNTAX : EW_OK;
}

void ew__app_config_rehearse(const ew_env *env, ew__config *config, bool allow_remote) {
    ew_app_options options = {.env = env};
    ew__app_config_options(config, &options);
    options.allow_remote = options.allow_remote || allow_remote;
    pass p = {.app = ew__app_new("check", &(ew_app_options){.env = env}), .config = config, .check = true};
    ew_err err = p.app ? ew__app_configure(p.app, &options) : EW_ENOMEM;
    if (err == EW_OK) {
        apply(&p);
        free_items(env, &p.items);
    } else if (err == EW_ENOMEM) {
        config->problems.no_memory = true;
    } else { /* the options have no place in the file */
        ew__problem_add(&config->problems, 0, 0, "%s", p.app->error);
    }
    (void)ew__app_free(p.app);
}

/* ---- the check ---- */

void ew__app_config_tell(const char *path, ew__config *config, ew_config_problem_fn told, void *ud) {
    const ew__problems *problems = &config->problems;
    char more[64];
    for (size_t i = 0; told && i < problems->n; i++) {
        const ew__problem *problem = &problems->list[i];
        told(&(ew_config_problem){path, problem->line, problem->column, problem->message}, ud);
    }
    if (told && problems->left_out) {
        (void)snprintf(more, sizeof more, "and %zu more problems", problems->left_out);
        told(&(ew_config_problem){path, 0, 0, more}, ud);
    }
}

ew_err ew__app_config_check(const ew_env *env, const char *path, ew_config_problem_fn told, void *ud) {
    ew__config *config = NULL;
    ew_err err = ew__config_load(env, path, ew__rrq_load, &config);
    if (err == EW_OK) {
        ew__app_config_rehearse(env, config, false);
        err = config->problems.no_memory ? EW_ENOMEM : config->problems.n ? EW_ESYNTAX : EW_OK;
    }
    if (err == EW_ESYNTAX || err == EW_EIO) {
        ew__app_config_tell(path, config, told, ud);
    }
    ew__config_free(config);
    return err;
}

/* ---- again, while it runs ---- */

static void log_problem(const ew_config_problem *problem, void *ud) {
    const ew_app *app = ud;
    if (problem->line) {
        ew__log(app->env, EW_LOG_ERROR, "config", "%s:%u:%u: %s", problem->file, problem->line, problem->column,
                problem->message);
    } else {
        ew__log(app->env, EW_LOG_ERROR, "config", "%s: %s", problem->file, problem->message);
    }
}

/* Whether two nodes (NULL: none) say the same. */
static bool say_the_same(const ew_env *env, const ew__node *a, const ew__node *b) {
    ew__buf text_a, text_b;
    if (!a || !b) {
        return a == b;
    }
    ew__buf_init(&text_a, env, 8 * EW__CONFIG_BYTES);
    ew__buf_init(&text_b, env, 8 * EW__CONFIG_BYTES);
    bool same = ew__node_print(a, &text_a) == EW_OK && ew__node_print(b, &text_b) == EW_OK &&
                ew__str_is(ew__buf_view(&text_a), ew__buf_view(&text_b));
    ew__buf_done(&text_a);
    ew__buf_done(&text_b);
    return same;
}

/* What a running app cannot change is compared with what it was started with. */
static void log_rest(const ew__app_config *file, const ew_app *app, const ew__config *config) {
    if (config->foreign && !say_the_same(file->env, file->config->node, config->node)) {
        ew__log(app->env, EW_LOG_WARN, "config", "%s has changed, which needs a restart", file->path);
    }
    for (const ew__field *field = ew__config_group.fields; field->name; field++) {
        const ew__node *old = ew__node_get(file->config->node, field->name);
        const ew__node *new = ew__node_get(config->node, field->name);
        if (field->live || say_the_same(file->env, old, new)) {
            continue;
        }
        if (new) {
            ew__log(app->env, EW_LOG_WARN, "config", "%s:%u:%u: %s has changed, which needs a restart", file->path,
                    new->key->line, new->key->column, field->name);
        } else {
            ew__log(app->env, EW_LOG_WARN, "config", "%s: %s is gone, which needs a restart", file->path, field->name);
        }
    }
}

static bool is_item(const ew__app_config_items *items, const ew__source *source) {
    size_t i = 0;
    while (i < items->n && items->list[i].source != source) {
        i++;
    }
    return i < items->n;
}

/*
 * Sources that are not the file's stay, and stand before its own. So do, behind all, those that go, until the new ones
 * have begun: an action that has changed is always there. false: no memory.
 */
static bool replace_sources(const ew__app_config *file, ew_app *app, const ew__app_config_items *items) {
    size_t room = items->n + file->items.n + 1, n = 0; /* never none */
    for (const ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
        room++;
    }
    ew__source **all = ew__alloc(file->env, room * sizeof *all);
    if (!all) {
        return false;
    }
    for (ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
        if (!is_item(&file->items, source)) {
            all[n++] = source;
        }
    }
    for (size_t i = 0; i < items->n; i++) {
        if (items->list[i].source) {
            all[n++] = items->list[i].source;
        }
    }
    size_t end = n;
    for (size_t i = 0; i < file->items.n; i++) {
        if (!file->items.list[i].taken && file->items.list[i].source) {
            all[end++] = file->items.list[i].source;
        }
    }
    ew__app_sources_replace(app, all, end, end - n);
    if (end > n) {
        (void)ew__app_wait_imports(app, TURN_OVER_MS);
        ew__app_sources_replace(app, all, n, 0);
    }
    ew__free(file->env, (void *)all, room * sizeof *all);
    return true;
}

/* A listener cannot go while the app runs. */
static void keep_listeners(const ew__app_config *file, const ew_app *app, ew__app_config_items *items) {
    for (size_t i = 0; i < file->items.n; i++) {
        const ew__app_config_item *old = &file->items.list[i];
        if (!old->taken && !old->source) {
            ew__log(app->env, EW_LOG_WARN, "config",
                    "%s: an import that listens for runtimes is gone, which needs a restart", file->path);
            items->list[items->n] = *old;
            items->list[items->n++].taken = true;
        }
    }
}

/* Those that were made for nothing. */
static void drop_new(ew__app_config_items *items) {
    for (size_t i = 0; i < items->n; i++) {
        if (!items->list[i].taken && items->list[i].source) {
            ew__source_free(items->list[i].source);
        }
    }
}

/* What stays, what comes, what goes. */
static void log_items(const ew__app_config *file, const ew_app *app, const ew__app_config_items *items) {
    size_t stay = 0, go = 0;
    for (size_t i = 0; i < items->n; i++) {
        stay += items->list[i].taken;
    }
    for (size_t i = 0; i < file->items.n; i++) {
        go += !file->items.list[i].taken && file->items.list[i].source;
    }
    ew__log(app->env, EW_LOG_INFO, "config", "%s was read again: of its imports and actions %zu stay, %zu come, %zu go",
            file->path, stay, items->n - stay, go);
}

/* Makes the app have what the new version says. false: everything stays. */
static bool renew(ew__app_config *file, ew_app *app, ew__config *config) {
    pass p = {.app = app, .config = config, .live = true};
    for (size_t i = 0; i < file->items.n; i++) {
        file->items.list[i].taken = false;
    }
    make_items(&p, &file->items);
    ew__problems_sort(&config->problems);
    if (config->problems.n || config->problems.no_memory || !replace_sources(file, app, &p.items)) {
        drop_new(&p.items);
        free_items(file->env, &p.items);
        return false;
    }
    log_rest(file, app, config);
    keep_listeners(file, app, &p.items);
    log_items(file, app, &p.items);
    free_items(file->env, &file->items);
    file->items = p.items;
    return true;
}

bool ew__app_config_reload(ew__app_config *file, ew_app *app, ew_log_level usual, ew_log_level *ret_level) {
    ew__config *config = NULL;
    bool taken = false;
    if (ew__config_load(file->env, file->path, ew__rrq_load, &config) == EW_OK) {
        ew__app_config_rehearse(file->env, config, app->allow_remote);
        if (file->no_programs && ew__config_runs_code(config)) {
            ew__problem_add(&config->problems, 0, 0,
                            "programs and plug-ins need a restart: the sandbox denies child processes");
        }
        taken = !config->problems.n && !config->problems.no_memory && renew(file, app, config);
    }
    if (taken) {
        *ret_level = config->log.has_level ? config->log.level : usual;
    } else {
        if (config) {
            ew__app_config_tell(file->path, config, log_problem, app);
        }
        ew__log(app->env, EW_LOG_ERROR, "config", "%s: %s; everything stays as it is", file->path,
                config && config->problems.n ? "it has problems" : "out of memory");
    }
    ew__config_free(config);
    return taken;
}
