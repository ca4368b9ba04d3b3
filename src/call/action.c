/*
 * call/action.c: see action.h. A version shares the actions of the one before it; making one costs a walk over all
 * actions, which happens when the list changes, not when a call comes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/action.h"
#include "base/buf.h"
#include "base/util.h"
#include "json/json.h"
#include "json/text.h"

/* Stands in by_name for a name that several actions have. */
static const ew__action ambiguous;

/* ---- one action ---- */

void ew__action_unref(ew__action *action) {
    if (atomic_fetch_sub_explicit(&action->refs, 1, memory_order_acq_rel) != 1)
        return;
    const ew_env *env = action->env;
    if (action->drop)
        action->drop(action->ops_ud);
    ew__contract_done(&action->contract);
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

/* The program's metadata; an action that reads an input stream is marked as Genkit marks it. */
static void add_metadata(ew__buf *out, const ew_action_options *options) {
    ew_json_iter it = {.offset_ = 0};
    if (!options->input_stream) {
        add_json_member(out, "metadata", options->metadata);
        return;
    }
    ew__buf_cstr(out, ",\"metadata\":{\"bidi\":true");
    while (ew_json_next(ew_str_from(options->metadata), &it)) {
        if (ew__json_name_is(ew__str(it.key.ptr + 1, it.key.len - 2), EW_STR("bidi")))
            continue;
        (void)ew__json_format(out, ",%j:", it.key);
        (void)ew__json_minify(out, it.value);
    }
    ew__buf_char(out, '}');
}

static void add_secrets(ew__buf *out, const char *const *pointers) {
    for (size_t i = 0; pointers && pointers[i]; i++)
        (void)ew__json_format(out, "%s%Q%s", i ? "," : ",\"x-everywire-secrets\":[", pointers[i],
                              pointers[i + 1] ? "" : "]");
}

static bool options_ok(const ew_action_options *options) {
    return !options || (json_ok(options->input_schema, EW_JSON_NONE) && json_ok(options->output_schema, EW_JSON_NONE) &&
                        json_ok(options->stream_schema, EW_JSON_NONE) && json_ok(options->metadata, EW_JSON_OBJECT));
}

ew_err ew__descriptor_begin(ew__buf *out, ew_str key, const ew_action_options *options) {
    ew_str type, name;
    if (!split_key(key, &type, &name))
        return EW_EINVAL;
    if (!options_ok(options))
        return EW_ESYNTAX;
    (void)ew__json_format(out, "{\"key\":%q,\"name\":%q,\"actionType\":%q", key, name, type);
    if (options && options->description)
        (void)ew__json_format(out, ",\"description\":%Q", options->description);
    if (options) {
        add_json_member(out, "inputSchema", options->input_schema);
        add_json_member(out, "outputSchema", options->output_schema);
        add_json_member(out, "streamSchema", options->stream_schema);
        add_metadata(out, options);
        add_secrets(out, options->secrets);
    }
    return out->err;
}

static ew_err write_descriptor(ew__action *action, const ew_action_options *options) {
    ew__buf out;
    ew__buf_init(&out, action->env, (size_t)1024 * 1024);
    ew_err err = ew__descriptor_begin(&out, action->key, options);
    ew__buf_char(&out, '}');
    if (err == EW_OK)
        err = out.err ? out.err : ew__arena_str(&action->arena, ew__buf_view(&out), &action->descriptor);
    ew__buf_done(&out);
    return err;
}

/* Of our own actions and of others' alike: the descriptor says it, and goes along. */
static ew_err find_secrets(ew__action *action) {
    ew_str pointers = ew_json_member(action->descriptor, EW_STR("x-everywire-secrets"));
    ew_err err = ew__secrets_find(&action->arena, ew_json_member(action->descriptor, EW_STR("inputSchema")), pointers,
                                  &action->secret_input);
    if (err == EW_OK)
        err = ew__secrets_find(&action->arena, ew_json_member(action->descriptor, EW_STR("outputSchema")), pointers,
                               &action->secret_output);
    return err == EW_OK ? ew__secrets_find(&action->arena, ew_json_member(action->descriptor, EW_STR("streamSchema")),
                                           pointers, &action->secret_chunk)
                        : err;
}

static ew_err new_action(const ew_env *env, ew_str key, const ew_action_options *options, ew__action **ret) {
    ew_str type, name;
    if (!split_key(key, &type, &name))
        return EW_EINVAL;
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
    if (err == EW_OK)
        err = find_secrets(action);
    if (err == EW_OK)
        err = ew__contract_make(env, options, &action->contract, NULL);
    if (err != EW_OK) {
        ew__action_unref(action);
        return err;
    }
    *ret = action;
    return EW_OK;
}

static ew_err fill_remote(ew__action *action, ew_str runtime, ew_str key, ew_str type, ew_str descriptor) {
    char *text = ew__arena_alloc(&action->arena, runtime.len + 1 + key.len);
    if (!text || ew__arena_str(&action->arena, descriptor, &action->descriptor) != EW_OK)
        return EW_ENOMEM;
    memcpy(text, runtime.ptr, runtime.len);
    text[runtime.len] = ':';
    memcpy(text + runtime.len + 1, key.ptr, key.len);
    action->long_key = ew__str(text, runtime.len + 1 + key.len);
    action->key = ew__str(text + runtime.len + 1, key.len);
    action->type = ew__str(action->key.ptr + 1, type.len);
    action->name = ew__str(action->key.ptr + 2 + type.len, key.len - type.len - 2);
    return find_secrets(action);
}

ew_err ew__action_new_remote(const ew_env *env, ew_str runtime, ew_str key, ew_str descriptor,
                             const ew__callee_ops *ops, void *ops_ud, void (*drop)(void *ops_ud), ew__action **ret) {
    ew_str type, name;
    if (runtime.len == 0 || !split_key(key, &type, &name))
        return EW_EINVAL;
    ew__action *action = ew__zalloc(env, sizeof *action);
    if (!action)
        return EW_ENOMEM;
    atomic_init(&action->refs, 1);
    action->env = env;
    ew__arena_init(&action->arena, env, NULL, 0);
    if (fill_remote(action, runtime, key, type, descriptor) != EW_OK) {
        ew__action_unref(action);
        return EW_ENOMEM;
    }
    action->ops = ops;
    action->ops_ud = ops_ud;
    action->drop = drop;
    action->id = EW__NO_ID;
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
    for (uint32_t i = 0; i < actions->by_long_key.n; i++)
        ew__action_unref(actions->by_long_key.entries[i].value);
    ew__map_done(&actions->by_key);
    ew__map_done(&actions->by_long_key);
    ew__map_done(&actions->shared);
    ew__map_done(&actions->by_name);
    ew__free(actions->env, (void *)(uintptr_t)actions->listing.ptr, actions->listing_cap);
    ew__free(actions->env, actions, sizeof *actions);
}

static ew_err put_name(ew__actions *actions, ew__action *action) {
    bool taken = ew__map_get(&actions->by_name, action->name) != NULL;
    return ew__map_put(&actions->by_name, action->name, taken ? (void *)(uintptr_t)&ambiguous : action);
}

static ew_err put_key(ew__map *map, ew_str key, ew__action *action) {
    ew_err err = ew__map_put(map, key, action);
    if (err == EW_OK)
        ew__action_ref(action);
    return err;
}

static ew_err put_action(ew__actions *actions, ew__action *action) {
    ew_err err = put_key(&actions->by_key, action->key, action);
    return err == EW_OK ? put_name(actions, action) : err;
}

static bool is_remote(const ew__action *action) { return action->long_key.len > 0; }

/* After our own, which win. A second one of a key takes it from the first. */
static ew_err put_remote(ew__actions *actions, ew__action *action) {
    if (ew__map_get(&actions->by_long_key, action->long_key))
        return EW_OK;
    ew_err err = put_key(&actions->by_long_key, action->long_key, action);
    if (err != EW_OK)
        return err;
    ew__action *holder = ew__map_get(&actions->by_key, action->key);
    if (holder && (!is_remote(holder) || holder->ours || action->away))
        return EW_OK;
    if (holder) {
        err = ew__map_put(&actions->shared, holder->key, (void *)(uintptr_t)&ambiguous);
        if (err == EW_OK)
            ew__action_unref(ew__map_remove(&actions->by_key, action->key));
    } else if (!ew__map_get(&actions->shared, action->key)) {
        err = put_key(&actions->by_key, action->key, action);
    }
    ew__action *named = ew__map_get(&actions->by_name, action->name);
    /* whoever connects takes no name from us */
    bool ours = named && (named == &ambiguous || !is_remote(named) || named->ours || action->away);
    return err == EW_OK && !ours ? put_name(actions, action) : err;
}

/* What stands for an action in a list. */
static ew_str shown_key(const ew__actions *actions, const ew__action *action) {
    return ew__map_get(&actions->by_key, action->key) == action ? action->key : action->long_key;
}

static void write_entry(const ew__actions *actions, const ew__action *action, ew__buf *out) {
    if (out->len > 1)
        ew__buf_char(out, ',');
    (void)ew__json_write_str(out, shown_key(actions, action), false);
    ew__buf_char(out, ':');
    ew__buf_str(out, action->descriptor);
}

ew_err ew__actions_write(const ew__actions *actions, ew__buf *out,
                         bool (*keep)(const void *ud, const ew__action *action), const void *ud) {
    ew__buf_char(out, '{');
    for (uint32_t i = 0; i < actions->by_key.n; i++) {
        const ew__action *action = actions->by_key.entries[i].value;
        if (!is_remote(action) && (!keep || keep(ud, action)))
            write_entry(actions, action, out);
    }
    for (uint32_t i = 0; i < actions->by_long_key.n; i++) {
        const ew__action *action = actions->by_long_key.entries[i].value;
        bool replaced = action->away && ew__map_get(&actions->by_key, action->key) != action;
        if (!replaced && (!keep || keep(ud, action)))
            write_entry(actions, action, out);
    }
    return ew__buf_char(out, '}');
}

static ew_err write_listing(ew__actions *actions) {
    ew__buf out;
    ew__buf_init(&out, actions->env, SIZE_MAX / 2);
    (void)ew__actions_write(actions, &out, NULL, NULL);
    if (out.err) {
        ew_err err = out.err;
        ew__buf_done(&out);
        return err;
    }
    actions->listing.ptr = ew__buf_take(&out, &actions->listing.len, &actions->listing_cap);
    return EW_OK;
}

/* A version with all actions of our own in `old`, one more (either may be missing), and n of other programs. */
static ew_err new_version(const ew_env *env, const ew__actions *old, ew__action *action, ew__action *const *remotes,
                          size_t n, ew__actions **ret) {
    ew__actions *fresh = ew__zalloc(env, sizeof *fresh);
    if (!fresh)
        return EW_ENOMEM;
    atomic_init(&fresh->refs, 1);
    fresh->env = env;
    ew__map_init(&fresh->by_key, env);
    ew__map_init(&fresh->by_long_key, env);
    ew__map_init(&fresh->shared, env);
    ew__map_init(&fresh->by_name, env);
    ew_err err = EW_OK;
    for (uint32_t i = 0; old && i < old->by_key.n && err == EW_OK; i++)
        if (!is_remote(old->by_key.entries[i].value))
            err = put_action(fresh, old->by_key.entries[i].value);
    if (action && err == EW_OK)
        err = put_action(fresh, action);
    for (size_t i = 0; i < n && err == EW_OK; i++)
        err = put_remote(fresh, remotes[i]);
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
    bool key = may_be_key(key_or_name);
    ew__action *action = key ? ew__map_get(&actions->by_key, key_or_name) : NULL;
    if (!action && key && actions->shared.n > 0)
        action = ew__map_get(&actions->shared, key_or_name);
    if (!action && actions->by_long_key.n > 0)
        action = ew__map_get(&actions->by_long_key, without_slash(key_or_name));
    if (!action)
        action = ew__map_get(&actions->by_name, without_slash(key_or_name));
    if (!action)
        return EW_ENOTFOUND;
    if (action == &ambiguous)
        return EW_EEXISTS;
    *ret_action = action;
    return EW_OK;
}

/* Appends the action's key, if it is one of those that are meant. Returns the new length. */
static size_t add_match(const ew__actions *actions, const ew__action *action, ew_str wanted, char *out, size_t n,
                        size_t capacity) {
    ew_str key = shown_key(actions, action);
    bool meant = ew__str_is(action->name, without_slash(wanted)) || ew__str_is(action->key, wanted);
    if (!meant || n + 2 + key.len > capacity)
        return n;
    if (n > 0) {
        memcpy(out + n, ", ", 2);
        n += 2;
    }
    memcpy(out + n, key.ptr, key.len);
    return n + key.len;
}

size_t ew__actions_matches(const ew__actions *actions, ew_str name, char *out, size_t capacity) {
    size_t n = 0;
    for (uint32_t i = 0; i < actions->by_key.n; i++)
        if (!is_remote(actions->by_key.entries[i].value))
            n = add_match(actions, actions->by_key.entries[i].value, name, out, n, capacity);
    for (uint32_t i = 0; i < actions->by_long_key.n; i++)
        n = add_match(actions, actions->by_long_key.entries[i].value, name, out, n, capacity);
    return n;
}

/* ---- the registry ---- */

ew_err ew__registry_init(ew__registry *registry, const ew_env *env) {
    memset(registry, 0, sizeof *registry);
    registry->env = env;
    pthread_mutex_init(&registry->lock, NULL);
    ew__map_init(&registry->remote_ids, env);
    ew__arena_init(&registry->remote_keys, env, NULL, 0);
    ew_err err = new_version(env, NULL, NULL, NULL, 0, &registry->current);
    if (err != EW_OK)
        pthread_mutex_destroy(&registry->lock);
    return err;
}

static void drop_remotes(ew__registry *registry) {
    for (size_t i = 0; i < registry->n_remotes; i++)
        ew__action_unref(registry->remotes[i]);
    ew__free(registry->env, (void *)registry->remotes, registry->n_remotes * sizeof *registry->remotes);
    registry->remotes = NULL;
    registry->n_remotes = 0;
}

void ew__registry_done(ew__registry *registry) {
    ew__actions_unref(registry->current);
    registry->current = NULL;
    drop_remotes(registry);
    ew__map_done(&registry->remote_ids);
    ew__arena_done(&registry->remote_keys);
    pthread_mutex_destroy(&registry->lock);
}

static ew_err add_locked(ew__registry *registry, ew__action *action) {
    ew__actions *old = registry->current, *fresh = NULL;
    const ew__action *holder = ew__map_get(&old->by_key, action->key);
    if (holder && !is_remote(holder))
        return EW_EEXISTS;
    if (old->by_key.n >= EW__ACTIONS_MAX)
        return EW_ELIMIT;
    action->id = registry->next_id;
    ew_err err = new_version(registry->env, old, action, registry->remotes, registry->n_remotes, &fresh);
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

/* ---- other programs' actions ---- */

/*
 * The number that stands for its key. Without memory, or with too many keys, the statistics of several are one.
 */
static uint32_t remote_id(ew__registry *registry, ew_str key) {
    uintptr_t known = (uintptr_t)ew__map_get(&registry->remote_ids, key);
    if (known)
        return (uint32_t)(known - 1);
    ew_str copy = EW_STR(""); /* the number of all that have none of their own */
    if (registry->remote_ids.n < EW__ACTIONS_MAX && ew__arena_str(&registry->remote_keys, key, &copy) != EW_OK)
        copy = EW_STR("");
    if (copy.len == 0 && (known = (uintptr_t)ew__map_get(&registry->remote_ids, copy)) != 0)
        return (uint32_t)(known - 1);
    uint32_t id = registry->next_id;
    if (ew__map_put(&registry->remote_ids, copy, (void *)((uintptr_t)id + 1)) == EW_OK)
        registry->next_id++;
    return id;
}

static ew_err set_remotes_locked(ew__registry *registry, ew__action **copy, size_t n) {
    ew__actions *old = registry->current, *fresh = NULL;
    for (size_t i = 0; i < n; i++)
        if (copy[i]->id == EW__NO_ID)
            copy[i]->id = remote_id(registry, copy[i]->key);
    ew_err err = new_version(registry->env, old, NULL, copy, n, &fresh);
    if (err != EW_OK)
        return err;
    registry->current = fresh;
    ew__actions_unref(old);
    drop_remotes(registry);
    registry->remotes = copy;
    registry->n_remotes = n;
    return EW_OK;
}

ew_err ew__registry_set_remotes(ew__registry *registry, ew__action *const *actions, size_t n) {
    n = n < EW__ACTIONS_MAX ? n : EW__ACTIONS_MAX;
    ew__action **copy = ew__alloc(registry->env, n * sizeof *copy);
    if (!copy && n > 0)
        return EW_ENOMEM;
    for (size_t i = 0; i < n; i++)
        copy[i] = ew__action_ref(actions[i]);
    pthread_mutex_lock(&registry->lock);
    ew_err err = set_remotes_locked(registry, copy, n);
    pthread_mutex_unlock(&registry->lock);
    for (size_t i = 0; i < n && err != EW_OK; i++)
        ew__action_unref(copy[i]);
    if (err != EW_OK)
        ew__free(registry->env, (void *)copy, n * sizeof *copy);
    return err;
}

const char *ew__actions_list_problem(const ew_limits *limits, ew_str list) {
    ew_json_iter it = {.offset_ = 0};
    uint64_t n = 0;
    if (list.len > limits->list_bytes)
        return "it is longer than the limit list_bytes";
    while (ew_json_next(list, &it))
        if (++n > limits->list_actions)
            return "it has more actions than the limit list_actions";
    return NULL;
}

/* ---- secrets ---- */

static bool any_secret(const ew__map *actions, ew_str name) {
    for (uint32_t i = 0; i < actions->n; i++) {
        const ew__action *action = actions->entries[i].value;
        if (ew__secrets_in(action->secret_input, name) || ew__secrets_in(action->secret_output, name) ||
            ew__secrets_in(action->secret_chunk, name))
            return true;
    }
    return false;
}

bool ew__registry_is_secret(const void *registry, ew_str name) {
    ew__actions *actions = ew__registry_get((ew__registry *)(uintptr_t)registry);
    bool secret = actions && (any_secret(&actions->by_key, name) || any_secret(&actions->by_long_key, name));
    ew__actions_unref(actions);
    return secret;
}
