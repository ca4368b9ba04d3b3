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

#define ASK_MS 10000 /* for the list */
#define PAUSE_MS 250 /* until one that did not answer is asked again; doubling */
#define PAUSE_MAX_MS 2000

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
    return ew__client_list(target->client, &options, NULL);
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
    if (ew__pool_take(target->client->pool, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("too many calls wait for the peer"));
}

static void on_pool_closed(ew__pool *pool) {
    ew__import_loop *at = pool->ud;
    ew__sources *sources = &at->target->import->source.app->sources;
    ew__pool_free(pool);
    ew__part_closed(&at->part);
    pthread_mutex_lock(&sources->lock);
    at->pool = NULL;
    at->target->n_open--;
    pthread_cond_broadcast(&sources->changed);
    pthread_mutex_unlock(&sources->lock);
}

static void close_part(ew__part *part) {
    ew__pool_close(ew__container_of(part, ew__import_loop, part)->pool, on_pool_closed);
}

static void close_loop(ew__task *task) {
    ew__import_loop *at = ew__container_of(task, ew__import_loop, close_task);
    if (at->pool)
        ew__part_close(&at->part);
}

static ew_err dial_target(ew__import_target *target, ew__app_loop *loop, ew__import_loop *at) {
    const ew_client *client = target->client; /* all texts are its own */
    ew__pool_config config = {.loop = &loop->loop,
                              .wire = client->target.wire,
                              .site = &client->site,
                              .where = &client->where,
                              .max_links = loop->loop.executor.limits->import_connections,
                              .apart = true, /* the callers of a gateway are independent of each other */
                              .ud = at};
    return ew__pool_dial(&config, &at->pool);
}

/* For the first call from this loop. EW_OK; EW_ECLOSED: the target is no longer imported; EW_ENOMEM. */
static ew_err make_pool(ew__import_target *target, ew__app_loop *loop, ew__import_loop *at) {
    ew__sources *sources = &loop->app->sources;
    pthread_mutex_lock(&sources->lock);
    bool closed = !target->client || target->stopped || sources->silent;
    ew_err err = closed ? EW_ECLOSED : dial_target(target, loop, at);
    target->n_open += err == EW_OK;
    pthread_mutex_unlock(&sources->lock);
    if (err != EW_OK)
        return err;
    at->target = target;
    at->part.close = close_part;
    ew__part_add(loop, &at->part);
    return EW_OK;
}

static void refuse(ew_call *call) {
    ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the peer is no longer imported"));
}

static void refuse_memory(ew_call *call) {
    ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
}

static const ew__callee_ops refused = {.open = refuse}, no_memory = {.open = refuse_memory};

static void open_on_loop(ew__upstream *upstream, ew_call *call) {
    ew__import_target *target = ew__container_of(upstream, ew__import_target, upstream.base);
    ew__app_loop *loop = ew__container_of(ew__loop_of(call->executor), ew__app_loop, loop);
    ew__import_loop *at = &target->loops[loop - loop->app->loops];
    ew__loop_expect(&loop->loop);
    ew_err err = EW__LIKELY(at->pool != NULL) ? EW_OK : make_pool(target, loop, at);
    if (err == EW_OK)
        ew__pool_open(at->pool, call);
    else
        ew__call_open_on(call, err == EW_ENOMEM ? &no_memory : &refused, NULL);
}

void ew__import_target_set(ew__import_target *target, const ew__target *parsed) {
    ew__upstream *upstream = &target->upstream.base;
    bool dialled = parsed->kind == EW__WHERE_TCP || parsed->kind == EW__WHERE_UNIX;
    atomic_init(&upstream->refs, 1);
    atomic_fetch_add(&target->import->refs, 1);
    upstream->free = free_target;
    upstream->refuses = parsed->wire->refuses;
    upstream->wire = parsed->wire->name;
    upstream->traces = (parsed->wire->caps & EW__CAN_TRACE) != 0;
    upstream->open = dialled && !target->import->client.command ? open_on_loop : ew__source_open_upstream;
    target->upstream.open = open_on_client;
    target->upstream.lock = &target->import->source.app->sources.lock;
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
    ew_err err = ew__client_new(target->text, &options, NULL, &target->client, &problem);
    if (err != EW_OK)
        return ew__app_fail(app, err, "import %.120s: %s", target->text, problem ? problem : ew_err_text(err));
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
        ew__executor_post(&app->loops[i].loop.executor, &at->close_task);
    }
    while (target->n_open > 0)
        pthread_cond_wait(&sources->changed, &sources->lock);
    target->upstream.gone = true;
    pthread_mutex_unlock(&sources->lock);
    ew_client *client = target->client;
    if (client)
        (void)ew__client_free(client);
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

const ew__source_ops ew__import_ops = {
    .start = start, .is_busy = is_busy, .stop = stop, .free = free_import, .say = say, .renew_tls = renew_tls};
