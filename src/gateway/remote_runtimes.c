/*
 * gateway/remote_runtimes.c: which runtimes are connected to an app, and what they add to its list of actions; see remote_runtimes.h. An
 * action may outlive its runtime in an old version of the list: it holds the ew__remote, which knows that. When a
 * runtime leaves, its actions stay listed as away for a while (away.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "bridge/cross_loop.h"

#define AWAY_MAX 256                                /* runtimes that are away */
#define GRACE_MAX_MS (UINT64_C(366) * 86400 * 1000) /* a later time means nothing, and adding it must not overflow */

struct ew__remote {
    ew__loop_upstream upstream; /* the runtime, each action and each call hold a reference */
    ew__remotes *all;           /* upstream.lock is its lock */
    ew__list_node node;         /* under the lock */
    ew__runtime *runtime;       /* executor's thread only; NULL: it has gone */
    ew__action **actions;       /* what it offers; under the lock */
    size_t n_actions;
    char id[256]; /* under the lock, as its length; 0: none was claimed */
    size_t id_len;
    ew__principal principal; /* under the lock: of the runtime */
    bool replaced;           /* another connection has its id; under the lock */
    bool answered;           /* it was asked for its list, and has answered; under the lock */
    ew__task leave_task;
};

/* What a runtime that has left offered. It belongs to the loop that the runtime was on, and ends with the grace time. */
struct ew__away {
    ew__part part;
    ew__remotes *all;
    ew__list_node node; /* under the lock, as what follows */
    ew__action **actions;
    size_t n_actions;
    char id[256];
    size_t id_len;
    bool replaced; /* a runtime of this id is there again */
    ew__timer timer;
};

static ew__remote *first_of(const ew__remotes *all) { return EW__ITEM(all->list.first, ew__remote, node); }
static ew__remote *next_of(const ew__remote *remote) { return EW__ITEM(remote->node.next, ew__remote, node); }
static ew__away *first_away(const ew__remotes *all) { return EW__ITEM(all->away.first, ew__away, node); }
static ew__away *next_away(const ew__away *away) { return EW__ITEM(away->node.next, ew__away, node); }

/* ---- memory ---- */

static void free_remote(ew__upstream *upstream) {
    ew__remote *remote = ew__container_of(upstream, ew__remote, upstream.base);
    ew__free(remote->all->app->env, remote, sizeof *remote);
}

static void free_actions(const ew_env *env, ew__action **actions, size_t n) {
    for (size_t i = 0; i < n; i++)
        ew__action_unref(actions[i]);
    ew__free(env, (void *)actions, n * sizeof *actions);
}

/* ---- what is published ---- */

size_t ew__remotes_count(const ew__remotes *all) {
    size_t n = 0;
    for (const ew__remote *remote = first_of(all); remote; remote = next_of(remote))
        n += remote->replaced ? 0 : remote->n_actions;
    for (const ew__away *away = first_away(all); away; away = next_away(away))
        n += away->replaced ? 0 : away->n_actions;
    return n;
}

void ew__remotes_collect(const ew__remotes *all, ew__action **ret) {
    for (const ew__remote *remote = first_of(all); remote; remote = next_of(remote))
        for (size_t i = 0; i < remote->n_actions && !remote->replaced; i++)
            *ret++ = remote->actions[i];
    for (const ew__away *away = first_away(all); away; away = next_away(away))
        for (size_t i = 0; i < away->n_actions && !away->replaced; i++)
            *ret++ = away->actions[i];
}

bool ew__remotes_answered(const ew__remotes *all) {
    for (const ew__remote *remote = first_of(all); remote; remote = next_of(remote))
        if (!remote->answered && !remote->replaced)
            return false;
    return true;
}

/* What the runtime offers, as actions. EW_OK, EW_ENOMEM. What has no good key is left out. */
static ew_err make_actions(ew__remote *remote, const ew__runtime *runtime, ew__action ***ret, size_t *ret_n) {
    const ew_env *env = remote->all->app->env;
    const ew__offers *offers = runtime->offers;
    size_t room = offers ? offers->n : 0, n = 0;
    ew__action **actions = ew__alloc(env, room * sizeof *actions);
    ew_err err = actions ? EW_OK : EW_ENOMEM;
    for (size_t i = 0; i < room && err != EW_ENOMEM; i++) {
        const ew__offer *offer = &offers->items[i];
        ew__upstream *upstream = &remote->upstream.base;
        ew__bridge *bridge = ew__bridge_new(env, &upstream, &offer->key, 1);
        err = bridge ? ew__action_new_remote(env, runtime->self.id, offer->key, offer->descriptor, &ew__bridge_callee,
                                             bridge, ew__bridge_drop, &actions[n])
                     : EW_ENOMEM;
        if (err == EW_OK)
            n++;
        else if (bridge)
            ew__bridge_drop(bridge);
    }
    return ew__actions_fit(env, actions, room, n, err, ret, ret_n);
}

/* ---- two connections with one id ---- */

static void leave(ew__task *task) {
    ew__remote *remote = ew__container_of(task, ew__remote, leave_task);
    if (remote->runtime)
        ew__link_close(remote->runtime->link, EW_EEXISTS);
    ew__upstream_unref(&remote->upstream.base);
}

static ew_str id_of(const ew__remote *remote) { return ew__str(remote->id, remote->id_len); }

/* Under the lock: another identity has registered the id, on any loop. */
static bool is_taken(const ew__remotes *all, const ew__runtime *runtime) {
    for (const ew__remote *other = first_of(all); other; other = next_of(other))
        if (other != runtime->ud && !other->replaced && ew__str_is(id_of(other), runtime->self.id) &&
            !ew__principal_equal(&other->principal, &runtime->principal))
            return true;
    return false;
}

/* Under the lock: the newer one wins. On its own loop the runtimes have seen to that themselves. */
static void replace_others(const ew__remote *newer) {
    for (ew__remote *older = first_of(newer->all); older; older = next_of(older)) {
        if (older == newer || older->replaced || !ew__str_is(id_of(older), id_of(newer)))
            continue;
        older->replaced = true;
        older->leave_task.fn = leave;
        (void)ew__upstream_ref(&older->upstream.base);
        ew__executor_post(older->upstream.executor, &older->leave_task);
    }
}

/* ---- calls ---- */

static void open_on_runtime(ew__loop_upstream *upstream, ew_call *call) {
    ew__runtime *runtime = ew__container_of(upstream, ew__remote, upstream)->runtime;
    if (!runtime || ew__runtime_leaving(runtime))
        ew__away_fail(call, EW_STR("the runtime has gone"));
    else if (ew__runtime_send(runtime, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("the connection to the runtime takes no further call"));
}

/* ---- hooks ---- */

static ew__remote *new_remote(ew__remotes *all, ew__server *server, ew__runtime *runtime) {
    ew__remote *remote = ew__zalloc(all->app->env, sizeof *remote);
    if (!remote)
        return NULL;
    atomic_init(&remote->upstream.base.refs, 1);
    remote->upstream.base.free = free_remote;
    remote->upstream.base.open = ew__source_open_upstream;
    remote->upstream.base.refuses = ew__wire_upgrade()->refuses;
    remote->upstream.base.traces = true;
    remote->upstream.executor = &server->loop->executor;
    remote->upstream.open = open_on_runtime;
    remote->upstream.lock = &all->app->sources.lock;
    remote->all = all;
    remote->runtime = runtime;
    runtime->ud = remote;
    pthread_mutex_lock(&all->app->sources.lock);
    ew__list_add_first(&all->list, &remote->node);
    pthread_mutex_unlock(&all->app->sources.lock);
    return remote;
}

const char *ew__remote_claim(ew__server *server, ew__runtime *runtime) {
    ew__remotes *all = &((ew__app_loop *)server->ud)->app->remotes;
    ew__remote *remote = runtime->ud ? runtime->ud : new_remote(all, server, runtime);
    size_t len = runtime->self.id.len;
    if (!remote || len > sizeof remote->id)
        return remote ? "the id of the runtime is too long" : "out of memory";
    pthread_mutex_lock(&all->app->sources.lock);
    bool taken = is_taken(all, runtime);
    if (!taken) {
        memcpy(remote->id, runtime->self.id.ptr, len);
        remote->id_len = len;
        remote->principal = runtime->principal;
        replace_others(remote);
    }
    pthread_mutex_unlock(&all->app->sources.lock);
    return taken ? EW__RUNTIME_TAKEN : NULL;
}

void ew__remote_changed(ew__server *server, ew__runtime *runtime) {
    ew__remotes *all = &((ew__app_loop *)server->ud)->app->remotes;
    ew__remote *remote = runtime->ud;
    ew__action **actions = NULL;
    size_t n = 0;
    if (make_actions(remote, runtime, &actions, &n) != EW_OK) {
        ew__log(all->app->env, EW_LOG_ERROR, "runtime", "cannot publish the actions of a runtime: out of memory");
        return;
    }
    pthread_mutex_lock(&all->app->sources.lock);
    free_actions(all->app->env, remote->actions, remote->n_actions);
    remote->actions = actions;
    remote->n_actions = n;
    for (ew__away *away = first_away(all); away && n > 0; away = next_away(away))
        away->replaced = away->replaced || ew__str_is(ew__str(away->id, away->id_len), id_of(remote));
    ew__app_publish(all->app);
    pthread_mutex_unlock(&all->app->sources.lock);
}

void ew__remote_answered(ew__server *server, ew__runtime *runtime) {
    ew__app_loop *loop = server->ud;
    ew__remote *remote = runtime->ud;
    pthread_mutex_lock(&loop->app->sources.lock);
    if (remote)
        remote->answered = true;
    pthread_mutex_unlock(&loop->app->sources.lock);
}

/* ---- away ---- */

static void free_away(ew__away *away) {
    const ew_env *env = away->all->app->env;
    if (away->actions)
        free_actions(env, away->actions, away->n_actions);
    ew__free(env, away, sizeof *away);
}

static void close_away(ew__part *part) {
    ew__away *away = ew__container_of(part, ew__away, part);
    ew__remotes *all = away->all;
    ew__timer_stop(&part->loop->loop.executor.timers, &away->timer);
    pthread_mutex_lock(&all->app->sources.lock);
    ew__list_remove(&all->away, &away->node);
    all->n_away--;
    if (!all->app->sources.silent)
        ew__app_publish(all->app);
    pthread_mutex_unlock(&all->app->sources.lock);
    ew__part_closed(part);
    free_away(away);
}

static void on_grace_over(ew__timer *timer, uint64_t now) {
    ew__away *away = ew__container_of(timer, ew__away, timer);
    (void)now;
    pthread_mutex_lock(&away->all->app->sources.lock);
    bool replaced = away->replaced;
    pthread_mutex_unlock(&away->all->app->sources.lock);
    if (!replaced)
        ew__log(away->all->app->env, EW_LOG_INFO, "runtime", "%.*s has not come back: its actions are removed",
                (int)away->id_len, away->id);
    ew__part_close(&away->part);
}

static ew_err make_away_actions(ew__away *away, const ew__remote *remote) {
    const ew_env *env = away->all->app->env;
    size_t room = remote->n_actions, n = 0;
    ew__action **actions = ew__alloc(env, room * sizeof *actions);
    ew_err err = actions ? EW_OK : EW_ENOMEM;
    for (; n < room && err == EW_OK; n += err == EW_OK)
        err = ew__away_action_new(env, id_of(remote), remote->actions[n], &actions[n]);
    return ew__actions_fit(env, actions, room, n, err == EW_OK ? EW_OK : EW_ENOMEM, &away->actions, &away->n_actions);
}

/* What stays listed of a runtime that leaves; NULL: nothing. On its loop's thread. */
static ew__away *new_away(ew__remote *remote, ew__app_loop *loop) {
    ew_app *app = loop->app;
    uint64_t grace_ms = ew__app_runtime_grace_ms(app);
    ew__executor *executor = &loop->loop.executor;
    if (grace_ms == 0 || remote->n_actions == 0 || loop->closing || atomic_load(&app->lifecycle.draining))
        return NULL;
    ew__away *away = ew__zalloc(app->env, sizeof *away);
    if (!away)
        return NULL;
    away->all = remote->all;
    memcpy(away->id, remote->id, remote->id_len);
    away->id_len = remote->id_len;
    grace_ms = grace_ms < GRACE_MAX_MS ? grace_ms : GRACE_MAX_MS;
    if (make_away_actions(away, remote) != EW_OK ||
        ew__timer_set(&executor->timers, &away->timer, executor->now + EW__MS(grace_ms), on_grace_over) != EW_OK) {
        free_away(away);
        return NULL;
    }
    away->part.close = close_away;
    ew__log(app->env, EW_LOG_INFO, "runtime", "%.*s has left: %zu actions stay listed as away for %g s",
            (int)away->id_len, away->id, away->n_actions, (double)grace_ms / 1000);
    return away;
}

/* Under the lock. More of them than that are a runtime that fails again and again under new ids: it is not awaited. */
static bool keep_away(ew__remotes *all, ew__remote *remote, ew__away *away) {
    if (remote->replaced || all->n_away >= AWAY_MAX)
        return false;
    ew__list_add_first(&all->away, &away->node);
    all->n_away++;
    return true;
}

void ew__remote_gone(ew__server *server, ew__runtime *runtime) {
    ew__app_loop *loop = server->ud;
    ew__remotes *all = &loop->app->remotes;
    ew__remote *remote = runtime->ud;
    if (!remote)
        return;
    remote->runtime = NULL;
    ew__away *away = new_away(remote, loop);
    pthread_mutex_lock(&all->app->sources.lock);
    ew__list_remove(&all->list, &remote->node);
    remote->upstream.gone = true;
    bool kept = away && keep_away(all, remote, away);
    free_actions(all->app->env, remote->actions, remote->n_actions);
    remote->actions = NULL;
    remote->n_actions = 0;
    ew__app_publish(all->app);
    pthread_mutex_unlock(&all->app->sources.lock);
    if (kept) {
        ew__part_add(loop, &away->part);
    } else if (away) {
        ew__timer_stop(&loop->loop.executor.timers, &away->timer);
        free_away(away);
    }
    ew__upstream_unref(&remote->upstream.base);
}
