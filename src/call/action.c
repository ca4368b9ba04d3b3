/*
 * call/action.c: see action.h. A version shares the actions of the one before it; making one costs a walk over all
 * actions, which happens when the list changes, not when a call comes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/action.h"
#include "base/buf.h"
#include "base/util.h"
#include "json/json.h"

/* Stands in by_name for a name that several actions have. */
static const ew__action ambiguous;

/* ---- one action ---- */

void ew__action_unref(ew__action *action) {
    if (atomic_fetch_sub_explicit(&action->refs, 1, memory_order_acq_rel) != 1)
        return;
    const ew_env *env = action->env;
    ew__arena_done(&action->arena);
    ew__free(env, action, sizeof *action);
}

/* "/type/name": no empty part, nothing that would need escaping in a log or a path. */
static bool split_key(ew_str key, ew_str *type, ew_str *name) {
    if (key.len < 4 || key.len > 512 || key.ptr[0] != '/')
        return false;
    const char *slash = memchr(key.ptr + 1, '/', key.len - 1);
    if (!slash || slash == key.ptr + 1 || slash == key.ptr + key.len - 1)
        return false;
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.ptr[i] <= 0x20 || (unsigned char)key.ptr[i] == 0x7f)
            return false;
    *type = ew__str(key.ptr + 1, (size_t)(slash - key.ptr) - 1);
    *name = ew__str(slash + 1, key.len - (size_t)(slash - key.ptr) - 1);
    return true;
}

static bool json_ok(const char *text, ew_json_type type) {
    if (!text)
        return true;
    ew_str json = ew_str_from(text);
    if (ew__json_validate(json, NULL) != EW_OK)
        return false;
    return type == EW_JSON_NONE || ew_json_typeof(ew_json_get(json, "")) == type;
}

static void add_json_member(ew__buf *out, const char *name, const char *json) {
    if (!json)
        return;
    ew__buf_cstr(out, ",\"");
    ew__buf_cstr(out, name);
    ew__buf_cstr(out, "\":");
    (void)ew__json_minify(out, ew_str_from(json));
}

static ew_err write_descriptor(ew__action *action, const ew_action_options *options) {
    ew__buf out;
    ew__buf_init(&out, action->env, (size_t)1024 * 1024);
    (void)ew__json_format(&out, "{\"key\":%q,\"name\":%q,\"actionType\":%q", action->key, action->name, action->type);
    if (options && options->description)
        (void)ew__json_format(&out, ",\"description\":%Q", options->description);
    if (options) {
        add_json_member(&out, "inputSchema", options->input_schema);
        add_json_member(&out, "outputSchema", options->output_schema);
        add_json_member(&out, "streamSchema", options->stream_schema);
        add_json_member(&out, "metadata", options->metadata);
    }
    ew__buf_char(&out, '}');
    ew_err err = out.err ? out.err : ew__arena_str(&action->arena, ew__buf_view(&out), &action->descriptor);
    ew__buf_done(&out);
    return err;
}

static ew_err new_action(const ew_env *env, ew_str key, const ew_action_options *options, ew__action **ret) {
    ew_str type, name;
    if (!split_key(key, &type, &name))
        return EW_EINVAL;
    if (options && !(json_ok(options->input_schema, EW_JSON_NONE) && json_ok(options->output_schema, EW_JSON_NONE) &&
                     json_ok(options->stream_schema, EW_JSON_NONE) && json_ok(options->metadata, EW_JSON_OBJECT)))
        return EW_ESYNTAX;
    ew__action *action = ew__zalloc(env, sizeof *action);
    if (!action)
        return EW_ENOMEM;
    atomic_init(&action->refs, 1);
    action->env = env;
    ew__arena_init(&action->arena, env, NULL, 0);
    ew_err err = ew__arena_str(&action->arena, key, &action->key);
    if (err == EW_OK) {
        action->type = ew__str(action->key.ptr + 1, type.len);
        action->name = ew__str(action->key.ptr + 2 + type.len, name.len);
        err = write_descriptor(action, options);
    }
    if (err != EW_OK) {
        ew__action_unref(action);
        return err;
    }
    *ret = action;
    return EW_OK;
}

/* ---- versions ---- */

ew__actions *ew__actions_ref(ew__actions *actions) {
    atomic_fetch_add_explicit(&actions->refs, 1, memory_order_relaxed);
    return actions;
}

void ew__actions_unref(ew__actions *actions) {
    if (!actions || atomic_fetch_sub_explicit(&actions->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < actions->by_key.n; i++)
        ew__action_unref(actions->by_key.entries[i].value);
    ew__map_done(&actions->by_key);
    ew__map_done(&actions->by_name);
    ew__free(actions->env, (void *)(uintptr_t)actions->listing.ptr, actions->listing_cap);
    ew__free(actions->env, actions, sizeof *actions);
}

static ew_err put_action(ew__actions *actions, ew__action *action) {
    ew_err err = ew__map_put(&actions->by_key, action->key, action);
    if (err != EW_OK)
        return err;
    ew__action_ref(action);
    bool taken = ew__map_get(&actions->by_name, action->name) != NULL;
    return ew__map_put(&actions->by_name, action->name, taken ? (void *)(uintptr_t)&ambiguous : action);
}

static ew_err write_listing(ew__actions *actions) {
    ew__buf out;
    ew__buf_init(&out, actions->env, SIZE_MAX / 2);
    ew__buf_char(&out, '{');
    for (uint32_t i = 0; i < actions->by_key.n; i++) {
        const ew__action *action = actions->by_key.entries[i].value;
        if (i > 0)
            ew__buf_char(&out, ',');
        (void)ew__json_write_str(&out, action->key, false);
        ew__buf_char(&out, ':');
        ew__buf_str(&out, action->descriptor);
    }
    ew__buf_char(&out, '}');
    if (out.err) {
        ew_err err = out.err;
        ew__buf_done(&out);
        return err;
    }
    actions->listing.ptr = ew__buf_take(&out, &actions->listing.len, &actions->listing_cap);
    return EW_OK;
}

/* A version with all actions of `old` and one more (either may be missing). */
static ew_err new_version(const ew_env *env, const ew__actions *old, ew__action *action, ew__actions **ret) {
    ew__actions *fresh = ew__zalloc(env, sizeof *fresh);
    if (!fresh)
        return EW_ENOMEM;
    atomic_init(&fresh->refs, 1);
    fresh->env = env;
    ew__map_init(&fresh->by_key, env);
    ew__map_init(&fresh->by_name, env);
    ew_err err = EW_OK;
    for (uint32_t i = 0; old && i < old->by_key.n && err == EW_OK; i++)
        err = put_action(fresh, old->by_key.entries[i].value);
    if (action && err == EW_OK)
        err = put_action(fresh, action);
    if (err == EW_OK)
        err = write_listing(fresh);
    if (err != EW_OK) {
        ew__actions_unref(fresh);
        return err;
    }
    *ret = fresh;
    return EW_OK;
}

/* A key has two slashes or more; "/greet" is a path made of a name. */
static bool may_be_key(ew_str text) {
    return text.len > 1 && text.ptr[0] == '/' && memchr(text.ptr + 1, '/', text.len - 1);
}

static ew_str without_slash(ew_str text) {
    return text.len > 0 && text.ptr[0] == '/' ? ew__str(text.ptr + 1, text.len - 1) : text;
}

ew_err ew__actions_find(const ew__actions *actions, ew_str key_or_name, ew__action **ret_action) {
    ew__action *action = may_be_key(key_or_name) ? ew__map_get(&actions->by_key, key_or_name) : NULL;
    if (!action)
        action = ew__map_get(&actions->by_name, without_slash(key_or_name));
    if (!action)
        return EW_ENOTFOUND;
    if (action == &ambiguous)
        return EW_EEXISTS;
    *ret_action = action;
    return EW_OK;
}

size_t ew__actions_matches(const ew__actions *actions, ew_str name, char *out, size_t capacity) {
    size_t n = 0;
    name = without_slash(name);
    for (uint32_t i = 0; i < actions->by_key.n; i++) {
        const ew__action *action = actions->by_key.entries[i].value;
        if (!ew__str_is(action->name, name) || n + 2 + action->key.len > capacity)
            continue;
        if (n > 0) {
            memcpy(out + n, ", ", 2);
            n += 2;
        }
        memcpy(out + n, action->key.ptr, action->key.len);
        n += action->key.len;
    }
    return n;
}

/* ---- the registry ---- */

ew_err ew__registry_init(ew__registry *registry, const ew_env *env) {
    memset(registry, 0, sizeof *registry);
    registry->env = env;
    pthread_mutex_init(&registry->lock, NULL);
    ew_err err = new_version(env, NULL, NULL, &registry->current);
    if (err != EW_OK)
        pthread_mutex_destroy(&registry->lock);
    return err;
}

void ew__registry_done(ew__registry *registry) {
    ew__actions_unref(registry->current);
    registry->current = NULL;
    pthread_mutex_destroy(&registry->lock);
}

static ew_err add_locked(ew__registry *registry, ew__action *action) {
    ew__actions *old = registry->current, *fresh = NULL;
    if (ew__map_get(&old->by_key, action->key))
        return EW_EEXISTS;
    if (old->by_key.n >= EW__ACTIONS_MAX)
        return EW_ELIMIT;
    action->id = registry->next_id;
    ew_err err = new_version(registry->env, old, action, &fresh);
    if (err != EW_OK)
        return err;
    registry->next_id++;
    registry->current = fresh;
    ew__actions_unref(old);
    return EW_OK;
}

ew_err ew__registry_add(ew__registry *registry, const char *key, const ew__callee_ops *ops, void *ops_ud,
                        ew_handler_fn fn, void *arg, const ew_action_options *options) {
    ew__action *action = NULL;
    ew_err err = new_action(registry->env, ew_str_from(key), options, &action);
    if (err != EW_OK)
        return err;
    action->ops = ops;
    action->ops_ud = ops_ud;
    action->fn = fn;
    action->arg = arg;
    pthread_mutex_lock(&registry->lock);
    err = add_locked(registry, action);
    pthread_mutex_unlock(&registry->lock);
    ew__action_unref(action);
    return err;
}

ew__actions *ew__registry_get(ew__registry *registry) {
    pthread_mutex_lock(&registry->lock);
    ew__actions *actions = ew__actions_ref(registry->current);
    pthread_mutex_unlock(&registry->lock);
    return actions;
}
