/*
 * endpoint/runtimes.c: see runtimes.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/runtimes.h"

#define ANSWER_MS (30 * 1000) /* for one question */
#define FIRST_PAUSE_MS 100    /* between the first questions; doubled each time */
#define LAST_PAUSE_MS 5000    /* up to this */
#define PAUSE_MS 10000        /* and then for ever */
#define YOUNG_MS 10000        /* so long a runtime may still be starting */

/* ---- what a runtime offers ---- */

static void free_offers(const ew_env *env, ew__offers *offers) {
    if (!offers)
        return;
    ew__map_done(&offers->by_key);
    ew__map_done(&offers->by_name);
    ew__arena_done(&offers->arena);
    ew__free(env, offers, sizeof *offers);
}

bool ew__is_key(ew_str text) {
    const char *slash = text.len > 2 && text.ptr[0] == '/' ? memchr(text.ptr + 1, '/', text.len - 1) : NULL;
    return slash && slash > text.ptr + 1 && slash < text.ptr + text.len - 1;
}

static ew_str name_of(ew_str key) {
    if (!ew__is_key(key))
        return key;
    const char *slash = memchr(key.ptr + 1, '/', key.len - 1);
    return ew__str(slash + 1, key.len - (size_t)(slash + 1 - key.ptr));
}

/* Of a key that stands twice the first counts, as everywhere. */
static ew_err add_offer(ew__offers *offers, const ew_json_iter *it) {
    ew__offer *offer = &offers->items[offers->n];
    size_t len = 0;
    char *key = ew__arena_alloc(&offers->arena, it->key.len);
    if (!key)
        return EW_ENOMEM;
    if (ew_json_string(it->key, key, it->key.len, &len) != EW_OK || len == 0)
        return EW_OK; /* no text: nobody could ask for it */
    *offer = (ew__offer){.key = ew__str(key, len), .descriptor = it->value};
    offer->name = name_of(offer->key);
    if (ew__map_get(&offers->by_key, offer->key))
        return EW_OK;
    ew__offer *same = ew__map_get(&offers->by_name, offer->name);
    ew_err err = ew__map_put(&offers->by_key, offer->key, offer);
    if (err == EW_OK && !same)
        err = ew__map_put(&offers->by_name, offer->name, offer);
    if (err != EW_OK)
        return err;
    if (same) {
        offer->same = same->same;
        same->same = offer;
    }
    offers->n++;
    return EW_OK;
}

/* Descriptors that are no objects are left out. */
static ew_err fill_offers(ew__offers *offers, ew_str text) {
    ew_json_iter it = {.offset_ = 0};
    uint32_t n = 0; /* at most list_actions */
    ew_err err = ew__arena_str(&offers->arena, text, &offers->text);
    while (err == EW_OK && ew_json_next(offers->text, &it))
        n += ew_json_typeof(it.value) == EW_JSON_OBJECT;
    offers->items = err == EW_OK ? ew__arena_alloc(&offers->arena, (n + 1) * sizeof *offers->items) : NULL;
    if (!offers->items)
        return EW_ENOMEM;
    it = (ew_json_iter){.offset_ = 0};
    while (err == EW_OK && offers->n < n && ew_json_next(offers->text, &it))
        if (ew_json_typeof(it.value) == EW_JSON_OBJECT)
            err = add_offer(offers, &it);
    return err;
}

static ew__offers *read_offers(const ew_env *env, ew_str text) {
    ew__offers *offers = ew__zalloc(env, sizeof *offers);
    if (!offers)
        return NULL;
    ew__arena_init(&offers->arena, env, NULL, 0);
    ew__map_init(&offers->by_key, env);
    ew__map_init(&offers->by_name, env);
    if (fill_offers(offers, text) == EW_OK)
        return offers;
    free_offers(env, offers);
    return NULL;
}

/* ---- asking ---- */

static void ask(ew__runtime *runtime);

static void on_time(ew__timer *timer, uint64_t now) {
    (void)now;
    ask(ew__container_of(timer, ew__runtime, timer));
}

/* Without memory for the timer it is asked again only when a call wants to know. */
static void ask_later(ew__runtime *runtime) {
    ew__executor *executor = runtime->all->executor;
    if (runtime->all->silent)
        return;
    (void)ew__timer_set(&executor->timers, &runtime->timer, executor->now + EW__MS(runtime->pause_ms), on_time);
    runtime->pause_ms = runtime->pause_ms >= LAST_PAUSE_MS       ? PAUSE_MS
                        : runtime->pause_ms * 2 >= LAST_PAUSE_MS ? LAST_PAUSE_MS
                                                                 : runtime->pause_ms * 2;
}

/* Whether the list exceeds a limit. The first refusal is logged as a warning: a runtime is asked again and again. */
static bool refuses_list(ew__runtime *runtime, ew_str list) {
    const ew__executor *executor = runtime->all->executor;
    const char *problem = ew__actions_list_problem(executor->limits, list);
    if (problem)
        ew__log(executor->env, runtime->list_refused ? EW_LOG_DEBUG : EW_LOG_WARN, "runtime",
                "the list of actions of %.*s is refused: %s", (int)runtime->self.id.len, runtime->self.id.ptr, problem);
    runtime->list_refused = problem != NULL;
    return problem != NULL;
}

/* Whether something changed. */
static bool take_answer(ew__runtime *runtime, const ew__end *end) {
    ew__executor *executor = runtime->all->executor;
    if (end->status != EW_STATUS_OK || ew_json_typeof(end->result) != EW_JSON_OBJECT) {
        ew__log(executor->env, EW_LOG_DEBUG, "runtime", "%.*s does not list its actions: %.*s",
                (int)runtime->self.id.len, runtime->self.id.ptr, (int)end->fault.message.len, end->fault.message.ptr);
        return false;
    }
    if (runtime->offers && ew__str_is(runtime->offers->text, end->result))
        return false;
    if (refuses_list(runtime, end->result))
        return false;
    ew__offers *offers = read_offers(executor->env, end->result);
    if (!offers)
        return false; /* no memory: as it was */
    free_offers(executor->env, runtime->offers);
    runtime->offers = offers;
    runtime->changed_at = executor->now;
    return true;
}

static void on_answer(ew_call *call, const ew__end *end) {
    ew__runtime *runtime = call->caller_ud;
    ew__runtimes *all = runtime->all;
    runtime->asking = NULL;
    runtime->known_at = runtime->asked_at;
    bool changed = take_answer(runtime, end);
    ew__call_release(call);
    ask_later(runtime);
    if (changed)
        all->hooks->changed(all, runtime);
    if (all->hooks->answered)
        all->hooks->answered(all, runtime);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static const ew__caller_ops asker = {.chunk = on_chunk, .end = on_answer};

static void open_question(ew_call *call) {
    if (ew__runtime_send(call->callee_ud, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_UNAVAILABLE, EW_STR("the connection takes no call"));
}

static const ew__callee_ops question = {.open = open_question};

static void ask(ew__runtime *runtime) {
    ew__executor *executor = runtime->all->executor;
    if (runtime->asking || runtime->all->silent)
        return;
    ew__timer_stop(&executor->timers, &runtime->timer);
    ew_call *call = ew__call_new(executor, &asker, runtime);
    if (!call) {
        ask_later(runtime);
        return;
    }
    call->kind = EW__CALL_LIST;
    ew__trace_new(&call->trace, &executor->rng);
    call->deadline = ew__executor_read_clock(executor) + EW__MS(ANSWER_MS);
    runtime->asking = call;
    runtime->asked_at = executor->now;
    ew__call_open_on(call, &question, runtime);
}

/* ---- coming and going ---- */

static ew__runtime *by_id(const ew__runtimes *all, ew_str id) {
    for (ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime))
        if (ew__str_is(runtime->self.id, id))
            return runtime;
    return NULL;
}

static void drop(ew__runtime *runtime) {
    ew__runtimes *all = runtime->all;
    const ew_env *env = all->executor->env;
    ew__list_remove(&all->list, &runtime->node);
    all->n--;
    runtime->link->runtime = NULL;
    ew__timer_stop(&all->executor->timers, &runtime->timer);
    if (runtime->asking)
        ew__call_release(runtime->asking);
    all->hooks->gone(all, runtime);
    free_offers(env, runtime->offers);
    ew__free(env, runtime->text, runtime->text_size);
    ew__free(env, runtime, sizeof *runtime);
}

/* Copies who it says it is. */
static ew_err set_self(ew__runtime *runtime, const ew__runtime_identity *who) {
    const ew_env *env = runtime->all->executor->env;
    const ew_str from[] = {who->id, who->name, who->version};
    ew_str *const to[] = {&runtime->self.id, &runtime->self.name, &runtime->self.version};
    size_t size = who->id.len + who->name.len + who->version.len, at = 0;
    char *text = ew__alloc(env, size);
    if (!text)
        return EW_ENOMEM;
    for (size_t i = 0; i < 3; i++) {
        if (from[i].len)
            memcpy(text + at, from[i].ptr, from[i].len);
        *to[i] = ew__str(text + at, from[i].len);
        at += from[i].len;
    }
    ew__free(env, runtime->text, runtime->text_size);
    runtime->text = text;
    runtime->text_size = size;
    runtime->self.pid = who->pid;
    runtime->complete = ew__str_has_prefix(runtime->self.version, EW_STR("everywire/"));
    runtime->pause_ms = FIRST_PAUSE_MS; /* also one of ours: what it imports may come later */
    return EW_OK;
}

static bool same_self(const ew__runtime_identity *a, const ew__runtime_identity *b) {
    return ew__str_is(a->id, b->id) && ew__str_is(a->name, b->name) && ew__str_is(a->version, b->version) &&
           a->pid == b->pid;
}

static ew__runtime *add(ew__runtimes *all, ew__link *link, const ew__runtime_identity *who) {
    ew__runtime *runtime = ew__zalloc(all->executor->env, sizeof *runtime);
    if (!runtime)
        return NULL;
    runtime->all = all;
    runtime->link = link;
    runtime->came_at = runtime->changed_at = all->executor->now;
    if (set_self(runtime, who) != EW_OK) {
        ew__free(all->executor->env, runtime, sizeof *runtime);
        return NULL;
    }
    ew__list_add_last(&all->list, &runtime->node);
    all->n++;
    link->runtime = runtime;
    return runtime;
}

static void replace(ew__runtime *older) {
    ew__link *left = older->link;
    ew__log(older->all->executor->env, EW_LOG_WARN, "runtime",
            "%.*s has connected a second time: the older connection is closed", (int)older->self.id.len,
            older->self.id.ptr);
    drop(older);
    ew__link_close(left, EW_EEXISTS);
}

static const char *refuse(const ew__runtimes *all, const ew__runtime_identity *who, const char *why) {
    ew__log(all->executor->env, EW_LOG_WARN, "runtime", "refused runtime %.*s: %s", (int)who->id.len, who->id.ptr, why);
    return why;
}

const char *ew__runtimes_greet(ew__runtimes *all, ew__link *link, const ew__runtime_identity *who) {
    ew__runtime *runtime = link->runtime, *older = by_id(all, who->id);
    ew__principal principal = ew__principal_of(all->executor, ew__conn_who(&link->conn));
    if (who->id.len == 0)
        return "a runtime needs an id";
    if (runtime && same_self(&runtime->self, who))
        return NULL;
    if (older && !ew__principal_equal(&older->principal, &principal))
        return refuse(all, who, EW__RUNTIME_TAKEN);
    if (runtime ? set_self(runtime, who) != EW_OK : !(runtime = add(all, link, who)))
        return "out of memory";
    runtime->principal = principal;
    if (older && older != runtime)
        replace(older);
    const char *problem = all->hooks->claim ? all->hooks->claim(all, runtime) : NULL;
    if (problem) {
        drop(runtime);
        return refuse(all, who, problem);
    }
    all->hooks->changed(all, runtime);
    return NULL;
}

void ew__runtimes_ready(ew__runtimes *all, ew__link *link) {
    ew__runtime *runtime = link->runtime;
    (void)all;
    if (runtime && runtime->asked_at == 0 && ew__runtime_capacity(runtime) > 0)
        ask(runtime);
}

void ew__runtimes_closed(ew__runtimes *all, ew__link *link) {
    (void)all;
    if (link->runtime)
        drop(link->runtime);
}

void ew__runtimes_ask(ew__runtimes *all) {
    ew__runtime *next;
    for (ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = next) {
        next = ew__runtime_next(runtime);
        if (runtime->asked_at != 0)
            ask(runtime);
    }
}

void ew__runtimes_silence(ew__runtimes *all) {
    all->silent = true;
    for (ew__runtime *runtime = ew__runtimes_first(all); runtime; runtime = ew__runtime_next(runtime)) {
        ew_call *call = runtime->asking;
        runtime->asking = NULL;
        ew__timer_stop(&all->executor->timers, &runtime->timer);
        if (call)
            ew__call_release(call);
    }
}

void ew__runtimes_init(ew__runtimes *all, ew__executor *executor, const ew__runtimes_hooks *hooks, void *ud) {
    *all = (ew__runtimes){.executor = executor, .hooks = hooks, .ud = ud};
}

/* ---- one of them ---- */

bool ew__runtime_leaving(const ew__runtime *runtime) {
    const ew__stream *stream = &runtime->link->stream;
    return stream->closing || stream->finishing || !runtime->link->peer || runtime->link->conn.site->draining;
}

uint32_t ew__runtime_capacity(const ew__runtime *runtime) {
    const ew__link *link = runtime->link;
    return ew__runtime_leaving(runtime) ? 0 : link->peer->wire->capacity(link->peer);
}

ew_err ew__runtime_send(ew__runtime *runtime, ew_call *call) {
    ew__link *link = runtime->link;
    if (ew__runtime_capacity(runtime) == 0)
        return EW_EBUSY;
    call->outgoing.begun = true;
    return link->peer->wire->open(link->peer, call);
}

bool ew__runtime_settling(const ew__runtime *runtime, uint64_t quiet_ms, uint64_t *ret_until) {
    uint64_t now = runtime->all->executor->now;
    uint64_t grown_at = runtime->came_at + EW__MS(YOUNG_MS), quiet_at = runtime->changed_at + EW__MS(quiet_ms);
    *ret_until = quiet_at < grown_at ? quiet_at : grown_at;
    if (runtime->known_at == 0) { /* its first answer has its own time, and is told */
        *ret_until = runtime->came_at + EW__MS(ANSWER_MS);
        return now < *ret_until;
    }
    return !runtime->complete && now < *ret_until;
}
