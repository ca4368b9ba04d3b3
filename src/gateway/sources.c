/*
 * gateway/sources.c: see sources.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "base/thread.h"
#include "bridge/cross_loop.h"
#include <stdio.h>

#define RETIRE_MS 1000     /* at least: loops may use the list of before so long */
#define RETIRE_LOOK_MS 100 /* how often is looked whether its calls have ended */

/* ---- the list ---- */

void ew__sources_init(ew__sources *sources) {
    pthread_mutex_init(&sources->lock, NULL);
    ew__cond_init(&sources->changed);
}

static void drop_actions(ew__source *source) {
    const ew_env *env = source->app->env;
    for (size_t i = 0; i < source->n_actions; i++)
        ew__action_unref(source->actions[i]);
    ew__free(env, (void *)source->actions, source->n_actions * sizeof *source->actions);
    source->actions = NULL;
    source->n_actions = 0;
}

void ew__source_open_upstream(ew__upstream *upstream, ew_call *call) {
    ew__loop_expect(ew__loop_of(call->executor));
    ew__loop_upstream_open(upstream, call);
}

void ew__source_free(ew__source *source) {
    drop_actions(source);
    source->ops->free(source);
}

void ew__sources_done(ew_app *app) {
    ew__sources *sources = &app->sources;
    for (ew__source *source = ew__sources_first(sources), *next; source; source = next) {
        next = ew__source_next(source);
        ew__source_free(source);
    }
    pthread_cond_destroy(&sources->changed);
    pthread_mutex_destroy(&sources->lock);
}

ew_err ew__app_sources_add(ew_app *app, ew__source *source) {
    size_t n = 0, imports = 0;
    for (const ew__source *other = ew__sources_first(&app->sources); other; other = ew__source_next(other)) {
        n++;
        imports += other->import;
    }
    if (app->lifecycle.started)
        return EW_EINVAL;
    if (n >= EW__SOURCES_MAX || (source->import && imports >= EW__IMPORTS_MAX))
        return EW_ELIMIT;
    ew__fifo_push(&app->sources.list, &source->node);
    return EW_OK;
}

/* ---- publishing ---- */

ew_err ew__actions_fit(const ew_env *env, ew__action **actions, size_t room, size_t n, ew_err err, ew__action ***ret,
                       size_t *ret_n) {
    ew__action **fit =
        actions && err != EW_ENOMEM ? ew__realloc(env, (void *)actions, room * sizeof *actions, n * sizeof *fit) : NULL;
    if (fit) {
        *ret = fit;
        *ret_n = n;
        return EW_OK;
    }
    while (actions && n > 0)
        ew__action_unref(actions[--n]);
    ew__free(env, (void *)actions, room * sizeof *actions);
    return EW_ENOMEM;
}

/* While sources are replaced: who has a key that several offer; the lowest rank does. */
typedef enum rank { ANSWERED, LEAVING, PROVISIONAL, N_RANKS } rank;

static rank rank_of(const ew__source *source) {
    return source->leaving ? LEAVING : source->provisional ? PROVISIONAL : ANSWERED;
}

/* Adds the actions of one source; known: the keys of lower ranks, and of this one. EW_OK, EW_ENOMEM. */
static ew_err collect_source(const ew__source *source, ew__map *known, ew__action **all, size_t *at) {
    rank own = rank_of(source);
    static const rank ranks[N_RANKS] = {ANSWERED, LEAVING, PROVISIONAL}; /* for their addresses */
    ew_err err = EW_OK;
    for (size_t i = 0; i < source->n_actions && err == EW_OK; i++) {
        const rank *first = ew__map_get(known, source->actions[i]->key);
        if (!first)
            err = ew__map_put(known, source->actions[i]->key, (void *)(uintptr_t)&ranks[own]);
        if (!first || *first == own)
            all[(*at)++] = source->actions[i];
    }
    return err;
}

/* What the sources offer. Two that stay and offer the same key are ambiguous; one that leaves is not. */
static ew_err collect_sources(const ew_app *app, bool ranked, ew__action **all, size_t *at) {
    ew_err err = EW_OK;
    ew__map known;
    for (const ew__source *source = ew__sources_first(&app->sources); source && !ranked;
         source = ew__source_next(source))
        for (size_t i = 0; i < source->n_actions; i++)
            all[(*at)++] = source->actions[i];
    if (!ranked)
        return EW_OK;
    ew__map_init(&known, app->env);
    for (int now = ANSWERED; now < N_RANKS; now++)
        for (const ew__source *source = ew__sources_first(&app->sources); source && err == EW_OK;
             source = ew__source_next(source))
            if (rank_of(source) == (rank)now)
                err = collect_source(source, &known, all, at);
    ew__map_done(&known);
    return err;
}

void ew__app_publish(ew_app *app) {
    size_t n_remotes = ew__remotes_count(&app->remotes), room = n_remotes, at = 0;
    bool ranked = false;
    for (const ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
        room += source->n_actions;
        ranked = ranked || source->leaving;
    }
    ew__action **all = ew__alloc(app->env, room * sizeof *all);
    ew_err err = all ? collect_sources(app, ranked, all, &at) : EW_ENOMEM;
    if (err == EW_OK)
        ew__remotes_collect(&app->remotes, all + at);
    if (err != EW_OK || ew__registry_set_remotes(&app->registry, all, at + n_remotes) != EW_OK)
        ew__log(app->env, EW_LOG_ERROR, "app", "out of memory: the list of actions stays as it was");
    ew__free(app->env, (void *)all, room * sizeof *all);
    if (!app->sources.silent)
        ew__app_refresh(app);
}

void ew__source_offer(ew__source *source, ew__action **actions, size_t n) {
    drop_actions(source);
    source->actions = actions;
    source->n_actions = n;
    ew__app_publish(source->app);
}

/* ---- life ---- */

ew_err ew__app_sources_start(ew_app *app) {
    ew_err err = EW_OK;
    app->sources.silent = false;
    for (ew__source *source = ew__sources_first(&app->sources); source && err == EW_OK;
         source = ew__source_next(source)) {
        err = source->ops->start(source);
        source->started = err == EW_OK;
    }
    return err;
}

void ew__app_sources_silence(ew_app *app) {
    pthread_mutex_lock(&app->sources.lock);
    app->sources.silent = true;
    pthread_cond_broadcast(&app->sources.changed);
    pthread_mutex_unlock(&app->sources.lock);
}

ew_err ew__app_sources_renew_tls(ew_app *app) {
    ew_err first = EW_OK;
    pthread_mutex_lock(&app->sources.lock);
    for (ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
        ew_err err = source->started && source->ops->renew_tls ? source->ops->renew_tls(source) : EW_OK;
        first = first == EW_OK ? err : first;
    }
    pthread_mutex_unlock(&app->sources.lock);
    return first;
}

void ew__app_sources_say(ew_app *app, ew__buf *out) {
    pthread_mutex_lock(&app->sources.lock);
    for (const ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source))
        if (source->ops->say)
            source->ops->say(source, out);
    pthread_mutex_unlock(&app->sources.lock);
}

void ew__app_sources_known(ew_app *app, bool *ret_asked, bool *ret_answered) {
    pthread_mutex_lock(&app->sources.lock);
    *ret_asked = true;
    *ret_answered = ew__remotes_answered(&app->remotes);
    for (const ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
        *ret_asked = *ret_asked && (!source->import || source->asked);
        *ret_answered = *ret_answered && (!source->import || source->answered);
    }
    pthread_mutex_unlock(&app->sources.lock);
}

/* One that retires goes by itself, and takes itself off the list of those. */
void ew__app_sources_stop(ew_app *app) {
    ew__app_sources_silence(app);
    for (ew__source *source = ew__sources_first(&app->sources); source; source = ew__source_next(source)) {
        if (source->started)
            source->ops->stop(source);
        source->started = false;
    }
    for (ew__source *source; (source = EW__ITEM(ew__fifo_pop(&app->sources.retired), ew__source, node));) {
        pthread_join(source->retiring, NULL);
        ew__source_free(source);
    }
}

/* Waits for the last call, or the app's end. */
static void *retire(void *arg) {
    ew__source *source = arg;
    ew_app *app = source->app;
    uint64_t until = app->env->now_ns(app->env->ud) + EW__MS(RETIRE_MS);
    pthread_mutex_lock(&app->sources.lock);
    while (!app->sources.silent && (source->ops->is_busy(source) || app->env->now_ns(app->env->ud) < until)) {
        struct timespec look = ew__cond_until(RETIRE_LOOK_MS);
        (void)pthread_cond_timedwait(&app->sources.changed, &app->sources.lock, &look);
    }
    pthread_mutex_unlock(&app->sources.lock);
    source->ops->stop(source);
    return NULL;
}

/* What has retired to its end is freed with the app: its name may still stand in the statistics. */
static void send_off(ew__source *source) {
    ew_app *app = source->app;
    if (!source->started) {
        ew__source_free(source);
    } else if (ew__thread_start(&source->retiring, retire, source)) {
        ew__fifo_push(&app->sources.retired, &source->node);
    } else { /* then it goes now, and its calls with it */
        source->ops->stop(source);
        ew__source_free(source);
    }
}

static bool is_among(ew__source *const *sources, size_t n, const ew__source *source) {
    size_t i = 0;
    while (i < n && sources[i] != source)
        i++;
    return i < n;
}

/* One that cannot start stays, and its calls fail; the next time it is tried again. */
static void start_late(ew_app *app, ew__source *source) {
    if (source->started || !app->lifecycle.started)
        return;
    app->error[0] = '\0';
    ew_err err = source->ops->start(source);
    source->started = err == EW_OK;
    if (err != EW_OK)
        ew__log(app->env, EW_LOG_ERROR, "app", "%s", *app->error ? app->error : ew_err_text(err));
}

void ew__app_sources_replace(ew_app *app, ew__source *const *sources, size_t n, size_t n_leaving) {
    ew__source *source;
    ew__fifo gone = {NULL, NULL};
    pthread_mutex_lock(&app->sources.lock);
    while ((source = EW__ITEM(ew__fifo_pop(&app->sources.list), ew__source, node)))
        if (!is_among(sources, n, source))
            ew__fifo_push(&gone, &source->node);
    for (size_t i = 0; i < n; i++) {
        sources[i]->leaving = i >= n - n_leaving;
        ew__fifo_push(&app->sources.list, &sources[i]->node);
    }
    ew__app_publish(app);
    pthread_mutex_unlock(&app->sources.lock);
    while ((source = EW__ITEM(ew__fifo_pop(&gone), ew__source, node)))
        send_off(source);
    for (size_t i = 0; i < n; i++)
        start_late(app, sources[i]);
}

/* ---- parts ---- */

void ew__part_add(ew__app_loop *loop, ew__part *part) {
    part->loop = loop;
    part->closing = false;
    ew__list_add_first(&loop->parts, &part->node);
    loop->n_parts++;
}

void ew__part_close(ew__part *part) {
    if (part->closing)
        return;
    part->closing = true;
    part->close(part);
}

void ew__part_closed(ew__part *part) {
    ew__app_loop *loop = part->loop;
    ew__list_remove(&loop->parts, &part->node);
    loop->n_parts--;
    if (loop->parts_told)
        loop->parts_told(loop);
}

size_t ew__parts_count(const ew__app_loop *loop) { return loop->n_parts; }

void ew__parts_close(ew__app_loop *loop, void (*told)(ew__app_loop *loop)) {
    if (loop->parts_told)
        return;
    loop->parts_told = told;
    for (ew__list_node *node = loop->parts.first, *next; node; node = next) {
        next = node->next;
        ew__part_close(EW__ITEM(node, ew__part, node));
    }
}
