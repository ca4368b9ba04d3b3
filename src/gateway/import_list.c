/*
 * gateway/import_list.c: what the targets of an import list, and what becomes of it here: which actions, by what keys, how
 * described, and at which of the targets.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/import.h"
#include "json/json.h"
#include <stdio.h>

#define HOPS_MEMBER "everywireHops"
#define DEFAULT_TYPE "flow" /* of a name that is no key */
#define KEY_MAX 512

/* An action to be, and who has it. */
typedef struct entry {
    struct entry *next;
    ew_str key;
    ew_str descriptor;
    uint32_t n;
    ew__upstream *upstreams[EW__IMPORT_TARGETS_MAX];
    ew_str names[EW__IMPORT_TARGETS_MAX];
} entry;

typedef struct builder {
    ew__import *import;
    ew__arena arena;
    ew__map by_key;
    entry *first, **last;
    size_t n;
    ew_err err;
} builder;

/* ---- names ---- */

bool ew__import_name_read(ew_str text, ew__import_name *ret) {
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    size_t n = colon ? (size_t)(colon - text.ptr) : text.len;
    ret->there = ew__str(text.ptr, n);
    ret->here = colon ? ew__str(colon + 1, text.len - n - 1) : ew__str(NULL, 0);
    return n > 0 && (!colon || ret->here.len > 0);
}

static ew_str without_slash(ew_str text) {
    return text.len > 0 && text.ptr[0] == '/' ? ew__str(text.ptr + 1, text.len - 1) : text;
}

/* The type and name that something has at the peer. A text that is no key is a name. */
static void split(ew_str there, ew_str *type, ew_str *name) {
    ew__key_split(there, type, name);
    if (type->len == 0) {
        *type = EW_STR(DEFAULT_TYPE);
        *name = without_slash(there);
    }
}

/* "PROGRAM:/flow/x": one that the peer itself cannot tell apart by its key. */
static bool is_long_key(ew_str there) {
    const char *colon = there.len && there.ptr[0] != '/' ? memchr(there.ptr, ':', there.len) : NULL;
    return colon && colon + 1 < there.ptr + there.len && colon[1] == '/';
}

static ew__import_name *find_name(const ew__import *import, ew_str there) {
    ew_str type, name;
    split(there, &type, &name);
    for (size_t i = 0; i < import->n_names; i++)
        if (ew__str_is(import->names[i].there, there) || ew__str_is(import->names[i].there, name))
            return &import->names[i];
    return NULL;
}

/* The key that it has here, in the builder's memory. */
static ew_err make_key(builder *b, ew_str there, const ew__import_name *as, ew_str *ret) {
    ew_str type, name, prefix = b->import->prefix;
    split(there, &type, &name);
    if (as && as->here.len) {
        ew_str own_type, own_name;
        ew__key_split(as->here, &own_type, &own_name);
        if (own_type.len) { /* a whole key is what was asked for */
            *ret = as->here;
            return EW_OK;
        }
        name = without_slash(as->here);
    }
    size_t n = 1 + type.len + 1 + (prefix.len ? prefix.len + 1 : 0) + name.len;
    char *text = n <= KEY_MAX ? ew__arena_alloc(&b->arena, n + 1) : NULL;
    if (!text)
        return n <= KEY_MAX ? EW_ENOMEM : EW_ELIMIT;
    (void)snprintf(text, n + 1, "/%.*s/%.*s%s%.*s", (int)type.len, type.ptr, (int)prefix.len,
                   prefix.len ? prefix.ptr : "", prefix.len ? "/" : "", (int)name.len, name.ptr);
    *ret = ew__str(text, n);
    return EW_OK;
}

/* ---- descriptors ---- */

static bool is_ours_to_say(ew_str quoted_name) {
    static const ew_str names[] = {
        {"\"key\"", 5}, {"\"name\"", 6}, {"\"actionType\"", 12}, {"\"" HOPS_MEMBER "\"", sizeof HOPS_MEMBER + 1}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ew__str_is(quoted_name, names[i]))
            return true;
    return false;
}

/* What the peer says, but for what is different here; or what we were told to say. */
static ew_err write_descriptor(builder *b, ew_str key, ew_str theirs, int64_t hops, ew_str *ret) {
    ew__buf out;
    ew_json_iter it = {.offset_ = 0};
    ew__buf_init(&out, b->arena.env, (size_t)1024 * 1024);
    if (b->import->descriptor.len) {
        ew__buf_str(&out, b->import->descriptor);
    } else {
        (void)ew__descriptor_begin(&out, key, NULL);
        while (ew_json_next(theirs, &it))
            if (!is_ours_to_say(it.key))
                (void)ew__json_format(&out, ",%j:%j", it.key, it.value);
    }
    (void)ew__json_format(&out, ",\"" HOPS_MEMBER "\":%lld}", (long long)hops);
    ew_err err = out.err ? out.err : ew__arena_str(&b->arena, ew__buf_view(&out), ret);
    ew__buf_done(&out);
    return err;
}

/* ---- entries ---- */

static entry *entry_of(builder *b, ew_str key, ew_str theirs, int64_t hops) {
    entry *e = ew__map_get(&b->by_key, key);
    if (e || b->n >= EW__ACTIONS_MAX)
        return e;
    e = ew__arena_alloc(&b->arena, sizeof *e);
    if (!e)
        return NULL;
    *e = (entry){.key = key};
    b->err = write_descriptor(b, key, theirs, hops, &e->descriptor);
    if (b->err != EW_OK || (b->err = ew__map_put(&b->by_key, key, e)) != EW_OK)
        return NULL;
    *b->last = e;
    b->last = &e->next;
    b->n++;
    return e;
}

/* One action of one target. theirs: its descriptor there, or empty. */
static void place(builder *b, ew__import_target *target, ew_str there, ew_str theirs) {
    ew__import_name *as = find_name(b->import, there);
    int64_t hops = 0;
    ew_str key, name;
    if (ew_json_int64(ew_json_get(theirs, "/" HOPS_MEMBER), &hops) == EW_ETYPE || hops < 0 || hops >= EW__HOPS_MAX)
        return;
    hops++;
    if ((b->import->n_names && !as) || (!as && is_long_key(there)))
        return;
    if (as)
        as->found = true;
    b->err = make_key(b, there, as, &key);
    if (b->err == EW_ELIMIT) {
        b->err = EW_OK; /* nobody could call it */
        return;
    }
    entry *e = b->err == EW_OK ? entry_of(b, key, theirs, hops) : NULL;
    if (!e || e->n == EW__IMPORT_TARGETS_MAX || (e->n > 0 && e->upstreams[e->n - 1] == &target->upstream.base))
        return;
    b->err = ew__arena_str(&b->arena, there, &name);
    e->upstreams[e->n] = &target->upstream.base;
    e->names[e->n++] = name;
}

static void place_listed(builder *b, ew__import_target *target) {
    char there[KEY_MAX];
    size_t n = 0;
    ew_json_iter it = {.offset_ = 0};
    while (b->err == EW_OK && ew_json_next(ew__buf_view(&target->list), &it))
        if (ew_json_string(it.key, there, sizeof there, &n) == EW_OK)
            place(b, target, ew__str(there, n), it.value);
}

static void place_all(builder *b) {
    ew__import *import = b->import;
    for (size_t i = 0; i < import->n_names; i++)
        import->names[i].found = false;
    for (uint32_t i = 0; i < import->n_targets && b->err == EW_OK; i++) {
        if (import->targets[i].list.len)
            place_listed(b, &import->targets[i]);
        else /* it has not answered yet, or cannot list: what was named is there */
            for (size_t k = 0; k < import->n_names && b->err == EW_OK; k++)
                place(b, &import->targets[i], import->names[k].there, ew__str(NULL, 0));
    }
}

/* ---- actions ---- */

/* EW_EINVAL: its key is none, it is left out. */
static ew_err make_action(const ew__import *import, const entry *e, ew__action **ret) {
    const ew_env *env = import->arena.env;
    ew__bridge *bridge = ew__bridge_new(env, e->upstreams, e->names, e->n);
    if (!bridge)
        return EW_ENOMEM;
    ew_err err = ew__action_new_remote(env, import->label, e->key, e->descriptor, &ew__bridge_callee, bridge,
                                       ew__bridge_drop, ret);
    if (err != EW_OK)
        ew__bridge_drop(bridge);
    return err;
}

static ew_err make_actions(builder *b, ew__action ***ret, size_t *ret_n) {
    const ew_env *env = b->arena.env;
    ew__action **actions = ew__alloc(env, b->n * sizeof *actions);
    size_t n = 0;
    ew_err err = actions ? EW_OK : EW_ENOMEM;
    for (const entry *e = b->first; e && err != EW_ENOMEM; e = e->next) {
        err = make_action(b->import, e, &actions[n]);
        n += err == EW_OK;
    }
    return ew__actions_fit(env, actions, b->n, n, err, ret, ret_n);
}

ew_err ew__import_actions(ew__import *import, ew__action ***ret, size_t *ret_n) {
    builder b = {.import = import, .last = &b.first};
    ew__arena_init(&b.arena, import->arena.env, NULL, 0);
    ew__map_init(&b.by_key, import->arena.env);
    place_all(&b);
    ew_err err = b.err == EW_OK ? make_actions(&b, ret, ret_n) : EW_ENOMEM;
    ew__map_done(&b.by_key);
    ew__arena_done(&b.arena);
    return err;
}
