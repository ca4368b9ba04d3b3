/*
 * gateway/import.c: imports: the peers behind their targets, and the calls to them. See gateway.h, sources.h, import.h.
 *
 * Each target has a client, on a thread of its own, which asks for the list and is the way to a peer that only one can
 * reach (a program of ours, a runtime that dials us). To a peer that is dialled each loop has connections of its own, so
 * that a call stays on the loop that it came to.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/import.h"
#include "base/thread.h"
#include "json/json.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define REFRESH_MS 5000
#define REFRESH_RUNTIMES_MS 1000 /* they come and go */
#define ASK_MS 10000             /* for the list */
#define PAUSE_MS 250             /* until one that did not answer is asked again; doubling */
#define PAUSE_MAX_MS 2000

static ew_err fail(ew_app *app, ew_err err, const char *format, ...) __attribute__((format(printf, 3, 4)));
static ew_err fail(ew_app *app, ew_err err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(app->error, sizeof app->error, format, args);
    va_end(args);
    return err;
}

/* ---- memory ---- */

static void import_unref(ew__import *import) {
    const ew_env *env = import->arena.env;
    if (atomic_fetch_sub_explicit(&import->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < import->n_targets; i++)
        ew__buf_done(&import->targets[i].list);
    ew__arena_done(&import->arena);
    ew__free(env, import, sizeof *import);
}

static void free_target(ew__upstream *upstream) {
    import_unref(ew__container_of(upstream, ew__import_target, upstream.base)->import);
}

static void free_import(ew__source *source) {
    ew__import *import = ew__container_of(source, ew__import, source);
    const ew_env *env = import->arena.env;
    for (uint32_t i = 0; i < import->n_targets; i++) {
        ew__import_target *target = &import->targets[i];
        ew__free(env, target->loops, target->n_loops * sizeof *target->loops);
        target->loops = NULL;
        ew__upstream_unref(&target->upstream.base);
    }
    import_unref(import);
}

/* ---- the list ---- */

/* What was named and nobody has: the log is told once. */
static void miss_names(ew__import *import) {
    for (size_t i = 0; i < import->n_names; i++) {
        ew__import_name *name = &import->names[i];
        if (!name->found && !name->missed)
            ew__log(import->arena.env, EW_LOG_WARN, "import", "%s has no action %.*s", import->targets[0].text,
                    (int)name->there.len, name->there.ptr);
        name->missed = !name->found;
    }
}

/* Under the lock. */
static void offer(ew__import *import) {
    ew__action **actions = NULL;
    size_t n = 0;
    if (ew__import_actions(import, &actions, &n) == EW_OK) {
        ew__source_offer(&import->source, actions, n);
        miss_names(import);
        return;
    }
    ew__log(import->arena.env, EW_LOG_ERROR, "import", "%s: out of memory: its list stays as it was",
            import->targets[0].text);
}

static void on_again(ew__timer *timer, uint64_t now);

/* On the client's thread: when to ask next. */
static void plan(ew__import_target *target, bool answered) {
    ew__import *import = target->import;
    ew__executor *executor = &target->client->loop.executor;
    uint64_t ms = import->refresh_ms;
    if (target->cannot_list)
        return; /* it would only be bothered */
    if (answered) {
        target->pause_ms = PAUSE_MS;
    } else {
        ms = target->pause_ms < ms ? target->pause_ms : ms;
        target->pause_ms = target->pause_ms * 2 < PAUSE_MAX_MS ? target->pause_ms * 2 : PAUSE_MAX_MS;
    }
    (void)ew__timer_set(&executor->timers, &target->again, executor->now + EW__MS(ms), on_again);
}

/* Under the lock. Whether the list exceeds a limit; logged once, until the target is accepted again. */
static bool refuses_list(ew__import_target *target, ew_str list) {
    const char *problem = ew__actions_list_problem(target->client->loop.executor.limits, list);
    if (problem && !target->complained)
        ew__log(target->import->arena.env, EW_LOG_WARN, "import", "the list of actions of %s is refused: %s",
                target->text, problem);
    target->complained = target->complained || problem;
    return problem != NULL;
}

/* Under the lock. Whether what it said differs from before. */
static bool keep_list(ew__import_target *target, ew_str list) {
    if (ew__str_is(ew__buf_view(&target->list), list) || refuses_list(target, list))
        return false;
    ew__buf_clear(&target->list);
    return ew_json_typeof(list) == EW_JSON_OBJECT && ew__buf_str(&target->list, list) == EW_OK;
}

/* Under the lock. The log is told once of what does not change. */
static void complain(ew__import_target *target, const ew_end *end) {
    const ew_env *env = target->import->arena.env;
    bool cannot = end->status == EW_STATUS_UNIMPLEMENTED && end->origin == EW_ORIGIN_ACTION;
    target->cannot_list = cannot;
    bool waits = target->client->target.kind == EW__WHERE_LISTEN; /* nobody has dialled us yet, which is no news */
    if (target->complained || waits || (cannot && target->import->n_names))
        return;
    target->complained = true;
    if (cannot)
        ew__log(env, EW_LOG_ERROR, "import", "%s does not list its actions: name them, '%s#NAME,NAME'", target->text,
                target->text);
    else
        ew__log(env, EW_LOG_WARN, "import", "%s does not say what it has: %.*s", target->text,
                (int)end->fault.message.len, end->fault.message.ptr ? end->fault.message.ptr : "");
}

static void note_asked(ew__import *import, ew__import_target *target) {
    bool asked = true, answered = true;
    target->asked = true;
    for (uint32_t i = 0; i < import->n_targets; i++) {
        asked = asked && import->targets[i].asked;
        answered = answered && import->targets[i].answered;
    }
    import->source.answered = answered;
    if (!asked)
        return;
    import->source.asked = true;
    pthread_cond_broadcast(&import->source.app->sources.changed);
}

static void on_list(ew_request *request, const ew_end *end, void *ud) {
    ew__import_target *target = ud;
    ew__import *import = target->import;
    ew__sources *sources = &import->source.app->sources;
    bool answered = end->status == EW_STATUS_OK;
    (void)request;
    pthread_mutex_lock(&sources->lock);
    if (!target->stopped && !sources->silent) {
        bool changed = answered && keep_list(target, end->result);
        if (!answered)
            complain(target, end);
        bool settled = import->source.provisional && (answered || target->cannot_list);
        import->source.provisional = import->source.provisional && !settled;
        if (changed || settled) {
            if (target->complained && answered)
                ew__log(import->arena.env, EW_LOG_INFO, "import", "%s is there", target->text);
            target->complained = target->complained && !answered;
            offer(import);
        }
        plan(target, answered);
    }
    target->answered = target->answered || answered || target->cannot_list;
    note_asked(import, target);
    pthread_mutex_unlock(&sources->lock);
}

static ew_err ask(ew__import_target *target) {
    ew_request_options options = {.timeout_ms = ASK_MS, .on_end = on_list, .ud = target};
    return ew_client_list(target->client, &options, NULL);
}

static void on_again(ew__timer *timer, uint64_t now) {
    ew__import_target *target = ew__container_of(timer, ew__import_target, again);
    ew_err err = ask(target);
    (void)now;
    if (err != EW_OK && err != EW_ECLOSED)
        plan(target, false); /* no memory, say: later */
}

/* ---- calls ---- */

/* One that only the client reaches: on its thread. */
static void open_on_client(ew__loop_upstream *upstream, ew_call *call) {
    ew__import_target *target = ew__container_of(upstream, ew__import_target, upstream);
    if (ew__pool_take(&target->client->pool, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("too many calls wait for the peer"));
}

static void on_pool_closed(ew__pool *pool) {
    ew__import_loop *at = pool->ud;
    ew__sources *sources = &at->target->import->source.app->sources;
    ew__pool_done(&at->pool);
    ew__part_closed(&at->part);
    pthread_mutex_lock(&sources->lock);
    at->made = false;
    at->target->n_open--;
    pthread_cond_broadcast(&sources->changed);
    pthread_mutex_unlock(&sources->lock);
}

static void close_part(ew__part *part) {
    ew__pool_close(&ew__container_of(part, ew__import_loop, part)->pool, on_pool_closed);
}

static void close_loop(ew__task *task) {
    ew__import_loop *at = ew__container_of(task, ew__import_loop, close_task);
    if (at->made)
        ew__part_close(&at->part);
}

/* The first call from this loop. False: there can be none any more. */
static bool make_pool(ew__import_target *target, ew__app_loop *loop, ew__import_loop *at) {
    ew__sources *sources = &loop->app->sources;
    pthread_mutex_lock(&sources->lock);
    bool ok = target->client && !target->stopped && !sources->silent;
    target->n_open += ok;
    at->made = ok;
    pthread_mutex_unlock(&sources->lock);
    if (!ok)
        return false;
    ew_client *client = target->client; /* all texts are its own */
    ew__pool_init(&at->pool, &loop->loop, client->target.wire, &client->site, &client->where);
    at->pool.ud = at;
    at->pool.most_links = loop->loop.executor.limits->import_connections;
    at->pool.apart = true; /* callers of a gateway do not know each other */
    at->target = target;
    at->part.close = close_part;
    ew__part_add(loop, &at->part);
    return true;
}

static void refuse(ew_call *call) {
    ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the peer is no longer imported"));
}

static const ew__callee_ops refused = {.open = refuse};

static void open_on_loop(ew__upstream *upstream, ew_call *call) {
    ew__import_target *target = ew__container_of(upstream, ew__import_target, upstream.base);
    ew__app_loop *loop = ew__container_of(ew__loop_of(call->executor), ew__app_loop, loop);
    ew__import_loop *at = &target->loops[loop - loop->app->loops];
    ew__loop_expect(&loop->loop);
    if (at->made || make_pool(target, loop, at))
        ew__pool_open(&at->pool, call);
    else
        ew__call_open_on(call, &refused, NULL);
}

/* ---- life ---- */

static ew_tls_options tls_of(const ew__import_target *target) {
    const ew_tls_options *own = &target->import->client.tls;
    if (!target->tls)
        return (ew_tls_options){.certificate = NULL};
    return ew__tls_is_set(own) ? *own : target->import->source.app->tls.options;
}

static ew_err start_target(ew__import_target *target) {
    ew__import *import = target->import;
    ew_app *app = import->source.app;
    const char *problem = NULL;
    ew_client_options options = import->client;
    options.env = app->env;
    options.limits = app->limits;
    if (import->runner)
        options.limits.runner_calls = import->client.limits.runner_calls;
    options.allow_remote = app->allow_remote;
    options.tls = tls_of(target);
    if (!target->loops) /* a second try has them */
        target->loops = ew__zalloc(app->env, app->n_loops * sizeof *target->loops);
    if (!target->loops)
        return EW_ENOMEM;
    target->stopped = target->upstream.gone = false; /* nobody else knows it yet */
    target->n_loops = app->n_loops;
    ew_err err = ew_client_new(target->text, &options, &target->client, &problem);
    if (err != EW_OK)
        return fail(app, err, "import %.120s: %s", target->text, problem ? problem : ew_err_text(err));
    target->upstream.executor = &target->client->loop.executor;
    return EW_OK;
}

static void stop(ew__source *source);

static ew_err start(ew__source *source) {
    ew__import *import = ew__container_of(source, ew__import, source);
    ew_err err = EW_OK;
    for (uint32_t i = 0; i < import->n_targets && err == EW_OK; i++)
        err = start_target(&import->targets[i]);
    if (err != EW_OK) {
        stop(source);
        return err;
    }
    pthread_mutex_lock(&source->app->sources.lock);
    import->source.provisional = import->n_names > 0;
    if (import->n_names)
        offer(import); /* they can be called at once, whatever the peer lists */
    for (uint32_t i = 0; i < import->n_targets; i++) {
        import->targets[i].pause_ms = PAUSE_MS;
        if (import->targets[i].client->target.kind == EW__WHERE_LISTEN)
            note_asked(import, &import->targets[i]); /* nobody knows when one will dial us */
    }
    pthread_mutex_unlock(&source->app->sources.lock);
    for (uint32_t i = 0; i < import->n_targets && import->runner; i++)
        ew__client_warm(import->targets[i].client);
    for (uint32_t i = 0; i < import->n_targets && err == EW_OK && !import->runner; i++)
        err = ask(&import->targets[i]);
    if (err != EW_OK)
        stop(source);
    return err;
}

/* Has its connections on the loops closed, unless these are about to do so themselves; and waits for that. */
static void stop_target(ew__import_target *target) {
    ew_app *app = target->import->source.app;
    ew__sources *sources = &app->sources;
    pthread_mutex_lock(&sources->lock);
    target->stopped = true;
    for (size_t i = 0; i < target->n_loops && !sources->silent; i++) {
        ew__import_loop *at = &target->loops[i];
        at->close_task.fn = close_loop;
        app->loops[i].loop.executor.ops->post(&app->loops[i].loop.executor, &at->close_task);
    }
    while (target->n_open > 0)
        pthread_cond_wait(&sources->changed, &sources->lock);
    target->upstream.gone = true;
    pthread_mutex_unlock(&sources->lock);
    ew_client *client = target->client;
    if (client)
        (void)ew_client_free(client);
    target->client = NULL;
}

static void stop(ew__source *source) {
    ew__import *import = ew__container_of(source, ew__import, source);
    for (uint32_t i = 0; i < import->n_targets; i++)
        stop_target(&import->targets[i]);
}

static bool is_busy(const ew__source *source) {
    const ew__import *import = ew__container_of(source, ew__import, source);
    for (uint32_t i = 0; i < import->n_targets; i++)
        if (atomic_load(&import->targets[i].upstream.base.calls) > 0)
            return true;
    return false;
}

/* Under the lock. */
static ew_err renew_tls(ew__source *source) {
    ew__import *import = ew__container_of(source, ew__import, source);
    ew_err first = EW_OK;
    for (uint32_t i = 0; i < import->n_targets; i++) {
        ew__import_target *target = &import->targets[i];
        ew_tls_options tls = tls_of(target);
        char problem[EW__TLS_PROBLEM];
        if (!target->client || !target->client->tls)
            continue;
        ew_err err = ew__tls_context_renew(target->client->tls, &tls, problem);
        if (err != EW_OK)
            ew__log(import->arena.env, EW_LOG_ERROR, "import", "%s: %s; it goes on as it was", target->text, problem);
        first = first == EW_OK ? err : first;
    }
    return first;
}

static void say(const ew__source *source, ew__buf *out) {
    const ew__import *import = ew__container_of(source, ew__import, source);
    for (uint32_t i = 0; i < import->n_targets; i++)
        (void)ew__json_format(out, "{\"event\":\"importing\",\"wire\":%Q,\"target\":%Q,\"actions\":%zu}\n",
                              import->targets[i].client ? import->targets[i].client->target.wire->name : "",
                              import->targets[i].text, source->n_actions);
}

static const ew__source_ops ops = {
    .start = start, .is_busy = is_busy, .stop = stop, .free = free_import, .say = say, .renew_tls = renew_tls};

/* ---- what was asked for ---- */

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
        return fail(import->source.app, EW_EINVAL, "'%.100s' is neither NAME nor NAME:AS", copy);
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
        return fail(app, err, "%s%s%s", several ? copy : "", several ? ": " : "", problem ? problem : ew_err_text(err));
    *target = (ew__import_target){.import = import, .text = copy, .tls = parsed.scheme->tls};
    ew__buf_init(&target->list, import->arena.env, SIZE_MAX / 2); /* limited by list_bytes */
    ew__upstream *upstream = &target->upstream.base;
    atomic_init(&upstream->refs, 1);
    upstream->free = free_target;
    upstream->refuses = parsed.wire->refuses;
    upstream->wire = parsed.wire->name;
    upstream->traces = (parsed.wire->caps & EW__CAN_TRACE) != 0;
    bool dialled = parsed.kind == EW__WHERE_TCP || parsed.kind == EW__WHERE_UNIX;
    upstream->open = dialled && !import->client.command ? open_on_loop : ew__source_open_upstream;
    target->upstream.open = open_on_client;
    target->upstream.lock = &app->sources.lock;
    if (import->n_targets == 0 && ew__arena_str(&import->arena, label_of(import, &parsed), &import->label) != EW_OK)
        return EW_ENOMEM;
    if (!(options && options->refresh_ms))
        import->refresh_ms = parsed.kind == EW__WHERE_LISTEN ? REFRESH_RUNTIMES_MS : REFRESH_MS;
    import->n_targets++;
    atomic_fetch_add(&import->refs, 1);
    return EW_OK;
}

static ew_err read_targets(ew__import *import, ew_str text, const ew_import_options *options) {
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == ',';
    if (n > EW__IMPORT_TARGETS_MAX)
        return fail(import->source.app, EW_ELIMIT, "more than %d targets in one import", EW__IMPORT_TARGETS_MAX);
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
        return fail(import->source.app, EW_EINVAL, "a description is for one name");
    ew__buf out;
    ew__buf_init(&out, import->arena.env, (size_t)1024 * 1024);
    ew_err err = ew__descriptor_begin(&out, import->names[0].here, describe);
    char why[400];
    if (err == EW_OK && ew__contract_say(import->arena.env, describe, why, sizeof why)) {
        ew__buf_done(&out);
        return fail(import->source.app, EW_EINVAL, "%s", why);
    }
    if (err == EW_OK)
        err = ew__arena_str(&import->arena, ew__buf_view(&out), &import->descriptor);
    ew__buf_done(&out);
    if (err == EW_EINVAL)
        return fail(import->source.app, err, "a description wants a name with its key here, NAME:/TYPE/NAME");
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
        return fail(import->source.app, EW_EINVAL, "'%.100s' cannot stand before a name", options->prefix);
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
    import->source = (ew__source){.ops = &ops, .app = app, .import = true};
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
        err = fail(app, EW_EINVAL, "a runner is one target, and takes all names");
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
    ew_err err = ew_app_listen(app, listener);
    if (err == EW_OK)
        app->listeners[app->n_listeners - 1].for_peers = true;
    return err;
}

ew_err ew_app_wait_imports(ew_app *app, uint64_t ms) {
    ew__sources *sources = &app->sources;
    struct timespec until = ew__cond_until(ms);
    int err = 0;
    bool all = false;
    pthread_mutex_lock(&sources->lock);
    while (!all && err != ETIMEDOUT && !sources->silent) {
        all = true;
        for (const ew__source *source = sources->first; source && all; source = source->next)
            all = !source->import || source->asked;
        if (!all)
            err = pthread_cond_timedwait(&sources->changed, &sources->lock, &until);
    }
    pthread_mutex_unlock(&sources->lock);
    return all ? EW_OK : EW_ETIMEOUT;
}

ew_err ew_app_import(ew_app *app, const char *targets, const ew_import_options *options) {
    ew__source *source = NULL;
    if (!app)
        return EW_EINVAL;
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
        return fail(app, err, "more than %d imports", EW__IMPORTS_MAX);
    }
    return EW_OK;
}
