/*
 * endpoint/runtimes_find.c: which runtime has an action, by key, by name, or by both of them; see runtimes.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/suggestion.h"
#include "endpoint/runtimes.h"

/* ---- walking over all that an action could mean ---- */

/* Told of one meaning; false ends the walk. */
typedef bool (*visit)(void *ud, ew__runtime *runtime, const ew__offer *offer);

static ew_str without_slash(ew_str text) {
    return text.len > 0 && text.ptr[0] == '/' ? ew__str(text.ptr + 1, text.len - 1) : text;
}

/* Exact key, else all of that name. */
static uint32_t visit_runtime(ew__runtime *runtime, ew_str action, bool names, visit fn, void *ud) {
    const ew__offers *offers = runtime->offers;
    uint32_t n = 0;
    if (!offers)
        return 0;
    if (!names) {
        const ew__offer *offer = ew__map_get(&offers->by_key, action);
        if (offer)
            fn(ud, runtime, offer);
        return offer ? 1 : 0;
    }
    for (const ew__offer *offer = ew__map_get(&offers->by_name, without_slash(action)); offer; offer = offer->same, n++)
        if (!fn(ud, runtime, offer))
            return n + 1;
    return n;
}

/* What stands behind "RUNTIME:", or an empty slice. */
static ew_str behind(ew_str action, ew_str runtime) {
    bool is = runtime.len > 0 && action.len > runtime.len + 1 && action.ptr[runtime.len] == ':' &&
              memcmp(action.ptr, runtime.ptr, runtime.len) == 0;
    return is ? ew__str(action.ptr + runtime.len + 1, action.len - runtime.len - 1) : ew__str(NULL, 0);
}

static uint32_t visit_named(const ew__runtimes *all, ew_str action, bool by_id, visit fn, void *ud) {
    uint32_t n = 0;
    for (ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime)) {
        ew_str rest = behind(action, by_id ? runtime->self.id : runtime->self.name);
        uint32_t here = rest.len ? visit_runtime(runtime, rest, false, fn, ud) : 0;
        if (rest.len && here == 0)
            here = visit_runtime(runtime, rest, true, fn, ud);
        n += here;
    }
    return n;
}

/* In order of precedence; the first that has a meaning counts. */
static void visit_all(const ew__runtimes *all, ew_str action, visit fn, void *ud) {
    for (int names = 0; names < 2; names++) {
        uint32_t n = 0;
        for (ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime))
            n += visit_runtime(runtime, action, names == 1, fn, ud);
        if (n > 0)
            return;
    }
    if (action.len > 0 && action.ptr[0] != '/' && memchr(action.ptr, ':', action.len) &&
        visit_named(all, action, true, fn, ud) == 0)
        (void)visit_named(all, action, false, fn, ud);
}

static bool count(void *ud, ew__runtime *runtime, const ew__offer *offer) {
    ew__runtime_match *found = ud;
    found->runtime = runtime;
    found->offer = offer;
    found->n++;
    return true;
}

ew__runtime_match ew__runtimes_find(const ew__runtimes *all, ew_str action) {
    ew__runtime_match found = {.n = 0};
    visit_all(all, action, count, &found);
    return found;
}

/* ---- texts ---- */

#define SHOWN_MAX 20 /* of a list in a message */

struct list {
    ew__buf *out;
    uint32_t n;
};

static bool write_match(void *ud, ew__runtime *runtime, const ew__offer *offer) {
    struct list *list = ud;
    if (list->n++ == SHOWN_MAX)
        ew__buf_cstr(list->out, ", ...");
    if (list->n > SHOWN_MAX)
        return false;
    ew__buf_cstr(list->out, list->n > 1 ? ", " : "");
    ew__buf_str(list->out, runtime->self.id);
    ew__buf_char(list->out, ':');
    ew__buf_str(list->out, offer->key);
    return true;
}

void ew__runtimes_matches(const ew__runtimes *all, ew_str action, ew__buf *out) {
    struct list list = {.out = out};
    visit_all(all, action, write_match, &list);
}

static bool is_near(ew_str word, ew_str candidate) {
    ew__suggestion near;
    ew__suggestion_init(&near, word);
    ew__suggestion_try(&near, candidate);
    return near.best.ptr != NULL;
}

static ew_str name_in(ew_str action) {
    const char *slash = ew__is_key(action) ? memchr(action.ptr + 1, '/', action.len - 1) : NULL;
    return slash ? ew__str(slash + 1, action.len - (size_t)(slash + 1 - action.ptr)) : without_slash(action);
}

void ew__runtimes_near(const ew__runtimes *all, ew_str action, ew__buf *out) {
    uint32_t n = 0;
    const char *colon = action.len && action.ptr[0] != '/' ? memchr(action.ptr, ':', action.len) : NULL;
    ew_str rest = colon ? ew__str(colon + 1, action.len - (size_t)(colon + 1 - action.ptr)) : action;
    for (const ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime))
        for (uint32_t i = 0; runtime->offers && i < runtime->offers->n && n < 5; i++) {
            const ew__offer *offer = &runtime->offers->items[i];
            if (!is_near(rest, offer->key) && !is_near(name_in(rest), offer->name))
                continue;
            ew__buf_cstr(out, n++ > 0 ? ", " : "");
            ew__buf_str(out, offer->key);
        }
}

/* ---- one list of all ---- */

static bool is_shared(const ew__runtimes *all, const ew__runtime *owner, ew_str key) {
    for (const ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime))
        if (runtime != owner && runtime->offers && ew__map_get(&runtime->offers->by_key, key))
            return true;
    return false;
}

static ew_err write_json(ew__buf *out, const char *format, ew_str a, ew_str b) {
    int n = ew_json_format(NULL, 0, format, a, b);
    ew_err err = n < 0 ? (ew_err)n : ew__buf_reserve(out, (size_t)n + 1);
    if (err != EW_OK)
        return err;
    (void)ew_json_format(out->ptr + out->len, (size_t)n + 1, format, a, b);
    out->len += (size_t)n;
    return EW_OK;
}

static ew_err write_offer(const ew__runtime *runtime, const ew__offer *offer, ew__buf *out) {
    ew__buf long_key;
    if (!is_shared(runtime->all, runtime, offer->key))
        return write_json(out, "%q:%j", offer->key, offer->descriptor);
    ew__buf_init(&long_key, out->env, SIZE_MAX / 2);
    ew__buf_str(&long_key, runtime->self.id);
    ew__buf_char(&long_key, ':');
    ew_err err = ew__buf_str(&long_key, offer->key);
    if (err == EW_OK)
        err = write_json(out, "%q:%j", ew__buf_view(&long_key), offer->descriptor);
    ew__buf_done(&long_key);
    return err;
}

ew_err ew__runtimes_list(const ew__runtimes *all, ew__buf *out) {
    bool first = true;
    ew_err err = ew__buf_char(out, '{');
    for (const ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime))
        for (uint32_t i = 0; runtime->offers && i < runtime->offers->n && err == EW_OK; i++, first = false) {
            if (!first)
                err = ew__buf_char(out, ',');
            if (err == EW_OK)
                err = write_offer(runtime, &runtime->offers->items[i], out);
        }
    return err == EW_OK ? ew__buf_char(out, '}') : err;
}
