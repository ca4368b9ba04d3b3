/*
 * gateway/exec.c: exec actions of an app: each lives on one loop, calls from other loops are cross-loop calls. See gateway.h,
 * sources.h, handler/exec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "bridge/cross_loop.h"
#include "handler/exec.h"
#include <stdio.h>

#define LABEL "exec" /* by which a key that another has, too, is told apart */

typedef struct exec_source {
    ew__source source;
    ew__loop_upstream upstream;
    atomic_uint refs; /* the source's, and that of `upstream` */
    ew__exec *exec;
    ew__action *action;
    ew__part part;
    ew__task settle_task, close_task;
    bool open; /* its part is, on the loop; under the lock */
} exec_source;

static void unref(exec_source *self) {
    if (atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) != 1)
        return;
    const ew_env *env = self->source.app->env;
    if (self->exec)
        ew__exec_free(self->exec);
    ew__free(env, self, sizeof *self);
}

static void free_upstream(ew__upstream *base) { unref(ew__container_of(base, exec_source, upstream.base)); }

static void free_source(ew__source *source) {
    exec_source *self = ew__container_of(source, exec_source, source);
    if (self->action)
        ew__action_unref(self->action);
    ew__upstream_unref(&self->upstream.base);
    unref(self);
}

static void open_exec(ew__loop_upstream *upstream, ew_call *call) {
    exec_source *self = ew__container_of(upstream, exec_source, upstream);
    call->callee = &ew__exec_callee;
    call->callee_ud = self->exec;
    ew__exec_callee.open(call);
}

/* ---- life ---- */

static void on_closed(void *ud) {
    exec_source *self = ud;
    ew__sources *sources = &self->source.app->sources;
    ew__part_closed(&self->part);
    pthread_mutex_lock(&sources->lock);
    self->open = false;
    self->upstream.gone = true;
    pthread_cond_broadcast(&sources->changed);
    pthread_mutex_unlock(&sources->lock);
}

static void close_part(ew__part *part) {
    exec_source *self = ew__container_of(part, exec_source, part);
    ew__exec_close(self->exec, on_closed, self);
}

static void settle(ew__task *task) {
    exec_source *self = ew__container_of(task, exec_source, settle_task);
    ew__part_add(ew__container_of(ew__loop_of(self->upstream.executor), ew__app_loop, loop), &self->part);
}

static void close_exec(ew__task *task) { ew__part_close(&ew__container_of(task, exec_source, close_task)->part); }

/* Its action is offered from now on. Under the lock. */
static ew_err offer(exec_source *self) {
    ew__action **actions = ew__alloc(self->source.app->env, sizeof *actions);
    if (!actions)
        return EW_ENOMEM;
    actions[0] = ew__action_ref(self->action);
    ew__source_offer(&self->source, actions, 1);
    return EW_OK;
}

/* Each lives on one of the loops, in turn. */
static ew_err start(ew__source *source) {
    exec_source *self = ew__container_of(source, exec_source, source);
    ew_app *app = source->app;
    ew__app_loop *loop = &app->loops[app->n_execs++ % app->n_loops];
    self->upstream.executor = &loop->loop.executor;
    ew__exec_settle(self->exec, &loop->loop);
    self->part.close = close_part;
    self->settle_task.fn = settle;
    pthread_mutex_lock(&app->sources.lock);
    ew_err err = app->sources.silent ? EW_ECLOSED : offer(self);
    self->open = err == EW_OK;
    if (err == EW_OK && app->lifecycle.started)
        ew__executor_post(self->upstream.executor, &self->settle_task);
    else if (err == EW_OK)
        settle(&self->settle_task); /* no thread runs the loop yet */
    pthread_mutex_unlock(&app->sources.lock);
    return err;
}

static void stop(ew__source *source) {
    exec_source *self = ew__container_of(source, exec_source, source);
    ew__sources *sources = &source->app->sources;
    pthread_mutex_lock(&sources->lock);
    if (self->open && !sources->silent) {
        self->close_task.fn = close_exec;
        ew__executor_post(self->upstream.executor, &self->close_task);
    }
    while (self->open)
        pthread_cond_wait(&sources->changed, &sources->lock);
    pthread_mutex_unlock(&sources->lock);
}

static bool is_busy(const ew__source *source) {
    return atomic_load(&ew__container_of(source, exec_source, source)->upstream.base.calls) > 0;
}

static const ew__source_ops ops = {.start = start, .is_busy = is_busy, .stop = stop, .free = free_source};

/* ---- making one ---- */

static ew_err make_action(exec_source *self, ew_str key, const ew_action_options *options) {
    const ew_env *env = self->source.app->env;
    ew__upstream *upstream = &self->upstream.base;
    ew__buf descriptor;
    ew__buf_init(&descriptor, env, (size_t)1024 * 1024);
    ew_err err = ew__descriptor_begin(&descriptor, key, options);
    if (err == EW_OK)
        err = ew__buf_char(&descriptor, '}');
    ew__bridge *bridge = err == EW_OK ? ew__bridge_new(env, &upstream, &key, 1) : NULL;
    if (err == EW_OK)
        err = bridge ? ew__action_new_remote(env, EW_STR(LABEL), key, ew__buf_view(&descriptor), &ew__bridge_callee,
                                             bridge, ew__bridge_drop, &self->action)
                     : EW_ENOMEM;
    if (err != EW_OK && bridge)
        ew__bridge_drop(bridge); /* no action has it */
    if (err == EW_OK) {
        self->action->ours = true;
        err = ew__contract_make(env, options, &self->action->contract, NULL);
    }
    ew__buf_done(&descriptor);
    return err;
}

ew_err ew__source_new_exec(ew_app *app, const char *key, const ew_exec_options *options,
                           const ew_action_options *action, ew__source **ret) {
    const char *problem = NULL;
    app->error[0] = '\0';
    exec_source *self = ew__zalloc(app->env, sizeof *self);
    if (!self)
        return EW_ENOMEM;
    atomic_init(&self->refs, 2);
    self->source = (ew__source){.ops = &ops, .app = app};
    atomic_init(&self->upstream.base.refs, 1);
    self->upstream.base.free = free_upstream;
    self->upstream.base.open = ew__source_open_upstream;
    self->upstream.base.terminal = true;
    self->upstream.open = open_exec;
    self->upstream.lock = &app->sources.lock;
    ew_err err = ew__exec_new(app->env, &app->limits, key, options, &self->exec, &problem);
    if (err == EW_OK)
        err = make_action(self, ew_str_from(key), action);
    if (err != EW_OK) {
        char why[400];
        bool schema = !problem && ew__contract_say(app->env, action, why, sizeof why);
        (void)snprintf(app->error, sizeof app->error, "action %.100s: %s", key,
                       schema    ? why
                       : problem ? problem
                                 : ew_err_text(err));
        ew__source_free(&self->source);
        return err;
    }
    *ret = &self->source;
    return EW_OK;
}

/* Whether a function of the app, or another program, has the key. */
static bool is_taken(ew_app *app, const char *key) {
    ew__actions *actions = ew__registry_get(&app->registry);
    bool taken = ew__map_get(&actions->by_key, ew_str_from(key)) != NULL;
    ew__actions_unref(actions);
    for (const ew__source *source = ew__sources_first(&app->sources); source && !taken;
         source = ew__source_next(source))
        taken = source->ops == &ops &&
                ew__str_is(ew__container_of(source, exec_source, source)->action->key, ew_str_from(key));
    return taken;
}

ew_err ew__app_add_exec(ew_app *app, const char *key, const ew_exec_options *options, const ew_action_options *action) {
    ew__source *source = NULL;
    if (ew__app_may_change(app, "cannot add an executable") != EW_OK)
        return EW_EINVAL;
    if (!key || !options)
        return ew__app_fail(app, EW_EINVAL, "cannot add an executable: the %s NULL", key ? "options are" : "key is");
    if (is_taken(app, key)) {
        (void)snprintf(app->error, sizeof app->error, "action %.200s: there is one already", key);
        return EW_EEXISTS;
    }
    ew_err err = ew__source_new_exec(app, key, options, action, &source);
    if (err == EW_OK && (err = ew__app_sources_add(app, source)) != EW_OK)
        ew__source_free(source);
    return ew__app_failed(app, err, "cannot add an executable");
}
