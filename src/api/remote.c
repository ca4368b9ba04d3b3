/*
 * api/remote.c: which runtimes are connected to an app, and what they add to its list of actions; see remote.h. An
 * action may outlive its runtime in an old version of the list: it holds the ew__remote, which knows that.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/app.h"

/* ---- memory ---- */

ew__remote *ew__remote_ref(ew__remote *remote) {
    atomic_fetch_add_explicit(&remote->refs, 1, memory_order_relaxed);
    return remote;
}

void ew__remote_unref(ew__remote *remote) {
    if (atomic_fetch_sub_explicit(&remote->refs, 1, memory_order_acq_rel) == 1)
        ew__free(remote->all->app->env, remote, sizeof *remote);
}

static void drop_action(void *remote) { ew__remote_unref(remote); }

static void free_actions(const ew_env *env, ew__action **actions, size_t n) {
    for (size_t i = 0; i < n; i++)
        ew__action_unref(actions[i]);
    ew__free(env, (void *)actions, n * sizeof *actions);
}

/* ---- what is published ---- */

/* Under the lock. */
static void publish(ew__remotes *all) {
    const ew_env *env = all->app->env;
    size_t n = 0, at = 0;
    for (const ew__remote *remote = all->first; remote; remote = remote->next)
        n += remote->replaced ? 0 : remote->n_actions;
    ew__action **actions = ew__alloc(env, n * sizeof *actions);
    for (const ew__remote *remote = all->first; remote && actions; remote = remote->next)
        for (size_t i = 0; i < remote->n_actions && !remote->replaced; i++)
            actions[at++] = remote->actions[i];
    if (!actions || ew__registry_set_remotes(&all->app->registry, actions, n) != EW_OK)
        ew__log(env, EW_LOG_ERROR, "runtime", "out of memory: the list of actions stays as it was");
    ew__free(env, (void *)actions, n * sizeof *actions);
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
        err = ew__action_new_remote(env, runtime->self.id, offer->key, offer->descriptor, &ew__remote_callee, remote,
                                    drop_action, &actions[n]);
        if (err != EW_OK)
            continue;
        ew__remote_ref(remote);
        n++;
    }
    ew__action **fit =
        err != EW_ENOMEM ? ew__realloc(env, (void *)actions, room * sizeof *actions, n * sizeof *actions) : NULL;
    if (!fit) {
        for (size_t i = 0; i < n; i++)
            ew__action_unref(actions[i]);
        ew__free(env, (void *)actions, room * sizeof *actions);
        return EW_ENOMEM;
    }
    *ret = fit;
    *ret_n = n;
    return EW_OK;
}

/* ---- two connections with one id ---- */

static void leave(ew__task *task) {
    ew__remote *remote = ew__container_of(task, ew__remote, leave_task);
    if (remote->runtime)
        ew__link_close(remote->runtime->link, EW_EEXISTS);
    ew__remote_unref(remote);
}

/* Under the lock: the newer one wins. On its own loop the runtimes have seen to that themselves. */
static void replace_others(const ew__remote *newer) {
    for (ew__remote *older = newer->all->first; older; older = older->next) {
        if (older == newer || older->replaced || strcmp(older->id, newer->id) != 0)
            continue;
        older->replaced = true;
        older->leave_task.fn = leave;
        ew__remote_ref(older);
        older->home->ops->post(older->home, &older->leave_task);
    }
}

/* ---- hooks ---- */

static ew__remote *new_remote(ew__remotes *all, ew__server *server, ew__runtime *runtime) {
    ew__remote *remote = ew__zalloc(all->app->env, sizeof *remote);
    if (!remote)
        return NULL;
    atomic_init(&remote->refs, 1);
    remote->all = all;
    remote->home = &server->loop->home;
    remote->runtime = runtime;
    runtime->ud = remote;
    pthread_mutex_lock(&all->lock);
    EW__LIST_ADD(all->first, remote);
    pthread_mutex_unlock(&all->lock);
    return remote;
}

void ew__remote_changed(ew__server *server, ew__runtime *runtime) {
    ew__remotes *all = &((ew__app_loop *)server->ud)->app->remotes;
    ew__remote *remote = runtime->ud ? runtime->ud : new_remote(all, server, runtime);
    ew__action **actions = NULL;
    size_t n = 0, len = runtime->self.id.len;
    if (!remote || len >= sizeof remote->id || make_actions(remote, runtime, &actions, &n) != EW_OK) {
        ew__log(all->app->env, EW_LOG_ERROR, "runtime", "a runtime cannot be offered: %s",
                len >= sizeof remote->id ? "its id is too long" : "out of memory");
        return;
    }
    pthread_mutex_lock(&all->lock);
    free_actions(all->app->env, remote->actions, remote->n_actions);
    remote->actions = actions;
    remote->n_actions = n;
    memcpy(remote->id, runtime->self.id.ptr, len);
    remote->id[len] = '\0';
    replace_others(remote);
    publish(all);
    pthread_mutex_unlock(&all->lock);
    ew__app_refresh(all->app);
}

void ew__remote_gone(ew__server *server, ew__runtime *runtime) {
    ew__remotes *all = &((ew__app_loop *)server->ud)->app->remotes;
    ew__remote *remote = runtime->ud;
    if (!remote)
        return;
    remote->runtime = NULL;
    pthread_mutex_lock(&all->lock);
    EW__LIST_REMOVE(all->first, remote);
    remote->gone = true;
    free_actions(all->app->env, remote->actions, remote->n_actions);
    remote->actions = NULL;
    remote->n_actions = 0;
    publish(all);
    pthread_mutex_unlock(&all->lock);
    ew__app_refresh(all->app);
    ew__remote_unref(remote);
}

void ew__remotes_init(ew__remotes *all, ew_app *app) {
    all->app = app;
    pthread_mutex_init(&all->lock, NULL);
}

void ew__remotes_done(ew__remotes *all) { pthread_mutex_destroy(&all->lock); }
