/*
 * wire/rpc_calls.c: the calls of one connection: lists and look-up, and back pressure. JSON-RPC has no credit: a
 * producer of ours waits while the connection's queue is long, and a peer's producer is held back by not reading, which
 * its transport passes on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rpc_calls.h"
#include "base/list.h"

#include "base/mem.h"
#include "wire/put.h"

#define KEY_ROOM 512        /* ids with escapes are looked up decoded, up to here */
#define PLACES 128u         /* for calls that are found by the end of their id */
#define AT_ONCE 2048        /* shorter messages are copied into one run of memory */
#define STREAM_HOLD_MS 1000 /* takers of streams that are behind may hold up other calls for that long */
#define INPUT_HOLD_MS 5000  /* the same if one of them is a handler that takes its input */
#define CHUNK_BYTES 64      /* what a taker's wire adds to a chunk, about */
#define UNNAMED_MAX 100     /* errors without an id that are logged per connection */
#define UNNAMED_ROOM 200

/* A place has room for one. Who finds it taken is in the map. */
struct ew__rpc_places {
    ew__rpc_call *call[PLACES];
    uint32_t n_others[PLACES]; /* those in the map that are for this place too: mostly none, so nobody looks there */
};

void ew__rpc_calls_init(ew__rpc_calls *all, ew__conn *conn, const ew__rpc_calls_ops *ops) {
    *all = (ew__rpc_calls){.conn = conn, .ops = ops};
}

static void list_done(ew__rpc_list *list, const ew_env *env) {
    if (list->has_map)
        ew__map_done(&list->by_key);
    ew__free(env, list->places, sizeof *list->places);
    list->places = NULL;
}

void ew__rpc_calls_done(ew__rpc_calls *all) {
    ew__timer_stop(&all->conn->executor->timers, &all->guard);
    list_done(&all->served, all->conn->executor->env);
    list_done(&all->sent, all->conn->executor->env);
}

static void mark(const ew__rpc_list *list) {
    for (ew__rpc_call *entry = list->first; entry; entry = entry->next)
        entry->call->deep = true;
}

void ew__rpc_calls_mark_all(ew__rpc_calls *all) {
    all->deep = true;
    mark(&all->served);
    mark(&all->sent);
}

/* ---- how one is found ---- */

/* Which place a key is for: by its last three bytes, without a closing quote, read as digits. */
static uint32_t place_of(ew_str key) {
    size_t n = key.len - (key.ptr[key.len - 1] == '"');
    const uint8_t *end = (const uint8_t *)key.ptr + n;
    uint32_t number = n > 0 ? end[-1] : 0;
    if (EW__LIKELY(n > 2))
        number += end[-2] * UINT32_C(10) + end[-3] * UINT32_C(100);
    return number % PLACES;
}

static ew__rpc_call *find_key(const ew__rpc_list *list, ew_str key) {
    const ew__rpc_places *places = list->places;
    if (key.len == 0)
        return NULL;
    if (EW__LIKELY(places != NULL)) {
        uint32_t place = place_of(key);
        ew__rpc_call *entry = places->call[place];
        if (entry && ew__str_is(entry->key, key))
            return entry;
        if (EW__LIKELY(places->n_others[place] == 0))
            return NULL;
    }
    return list->has_map ? ew__map_get(&list->by_key, key) : NULL;
}

/* NULL: there is no memory for places, or was none when the first of those came that are there now. */
static ew__rpc_places *places_of(ew__rpc_list *list, const ew_env *env) {
    if (EW__UNLIKELY(!list->places) && (!list->has_map || list->by_key.n == 0))
        list->places = ew__zalloc(env, sizeof *list->places);
    return list->places;
}

static ew_err add_to_map(ew__rpc_list *list, ew__rpc_call *entry, ew_str key) {
    if (!list->has_map) {
        ew__map_init(&list->by_key, entry->all->conn->executor->env);
        list->has_map = true;
    }
    ew_err err;
    (void)ew__map_add(&list->by_key, key, entry, &err);
    if (err == EW_OK && list->places)
        list->places->n_others[place_of(key)]++;
    return err;
}

/* The key is nobody's. EW_OK, EW_ENOMEM. */
static ew_err add_key(ew__rpc_list *list, ew__rpc_call *entry, ew_str key) {
    ew__rpc_places *places = places_of(list, entry->all->conn->executor->env);
    uint32_t place = key.len ? place_of(key) : 0;
    if (EW__LIKELY(places && key.len && !places->call[place])) {
        places->call[place] = entry;
        entry->place = (uint16_t)(place + 1);
    } else if (key.len && add_to_map(list, entry, key) != EW_OK) {
        return EW_ENOMEM;
    }
    entry->key = key;
    return EW_OK;
}

static void remove_key(ew__rpc_list *list, ew__rpc_call *entry) {
    if (entry->place) {
        list->places->call[entry->place - 1] = NULL;
    } else if (entry->key.len) {
        (void)ew__map_remove(&list->by_key, entry->key);
        if (list->places)
            list->places->n_others[place_of(entry->key)]--;
    }
    entry->place = 0; /* it may be added again, by another id */
}

/* ---- which there are ---- */

/* The wire knows whether it has paused at all. */
static void resume_if_may(ew__rpc_calls *all) {
    if (!ew__rpc_must_pause(all))
        all->ops->resume(all);
}

void ew__rpc_call_add(ew__rpc_call *entry) {
    ew__rpc_list *list = ew__rpc_list_of(entry);
    EW__LIST_ADD(list->first, entry);
    list->n++;
    entry->all->served_bytes += entry->size;
    if (EW__UNLIKELY(entry->all->n_blocked > 0)) /* those that were alone on the connection no longer are */
        resume_if_may(entry->all);
}

void ew__rpc_call_remove(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    ew__rpc_list *list = ew__rpc_list_of(entry);
    EW__LIST_REMOVE(list->first, entry);
    list->n--;
    all->served_bytes -= entry->size;
    if (all->speaks == entry)
        all->speaks = NULL;
    remove_key(list, entry);
    ew__timer_stop(&all->conn->executor->timers, &entry->timer);
    ew__rpc_call_stop_waiting(entry);
    ew__rpc_call_unblock(entry);
    all->n_streams -= entry->stream;
    entry->stream = false;
}

ew__rpc_call *ew__rpc_call_find(const ew__rpc_list *list, ew_str id) {
    char buf[KEY_ROOM];
    return find_key(list, ew__rpc_key(id, buf, sizeof buf));
}

ew__rpc_call *ew__rpc_call_sent(const ew__rpc_calls *all, ew_str id) {
    ew__rpc_call *entry = find_key(&all->sent, id);
    return entry && ew__str_is(entry->id, id) ? entry : NULL;
}

ew__rpc_call *ew__rpc_call_of_result(const ew__rpc_calls *all, ew_str text, ew__rpc *ret) {
    *ret = (ew__rpc){.kind = EW__RPC_RESULT};
    if (all->sent.n == 0 || !ew__rpc_is_result(text, &ret->id, &ret->result))
        return NULL;
    return ew__rpc_call_sent(all, ret->id);
}

ew_err ew__rpc_call_index(ew__rpc_call *entry) {
    ew__rpc_list *list = ew__rpc_list_of(entry);
    char buf[KEY_ROOM];
    if (EW__LIKELY(entry->own_id))
        return add_key(list, entry, entry->id);
    ew_str key = ew__rpc_key(entry->id, buf, sizeof buf);
    if (key.ptr != entry->id.ptr && ew__arena_str(&entry->call->arena, key, &key) != EW_OK)
        return EW_ENOMEM;
    return find_key(list, key) ? EW_EEXISTS : add_key(list, entry, key);
}

ew_err ew__rpc_call_send(ew__rpc_call *entry, const ew__callee_ops *callee) {
    ew_call *call = entry->call;
    entry->sent = true;
    entry->input_open = call->has_input;
    call->deep = call->deep || entry->all->deep;
    ew_err err = ew__rpc_call_index(entry);
    if (err != EW_OK)
        return err;
    ew__rpc_call_add(entry);
    entry->stream = call->wants_chunks || call->has_input;
    entry->all->n_streams += entry->stream;
    ew_call_ref(call);
    call->callee = callee;
    call->callee_ud = entry;
    return EW_OK;
}

uint32_t ew__rpc_capacity(const ew__rpc_calls *all) {
    const ew_limits *limits = ew__rpc_limits(all);
    bool full = all->conn->out.bytes >= limits->out_max_bytes / 2;
    return full || all->sent.n >= limits->calls_per_connection ? 0
                                                               : (uint32_t)(limits->calls_per_connection - all->sent.n);
}

void ew__rpc_late(const ew__rpc_calls *all) {
    atomic_fetch_add_explicit(&all->conn->executor->calls->dropped, 1, memory_order_relaxed);
}

/* ---- producers of ours ---- */

void ew__rpc_write(ew__out *out, const ew__rpc_out *message, ew_call *owner) {
    uint8_t *start = message->len > 0 && message->len <= AT_ONCE ? ew__out_room(out, message->len) : NULL;
    if (EW__LIKELY(start != NULL)) {
        uint8_t *at = start;
        for (unsigned i = 0; i < message->n; i++)
            at = ew__put_str(at, message->piece[i]);
        ew__out_commit(out, message->len);
        return;
    }
    for (unsigned i = 0; i < message->n; i++)
        ew__call_write(owner, out, message->piece[i]);
}

ew_err ew__rpc_call_wait(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    if (entry->waiting)
        return EW_FULL;
    entry->waiting = true;
    entry->wait_prev = all->waiting_last;
    entry->wait_next = NULL;
    if (all->waiting_last)
        all->waiting_last->wait_next = entry;
    else
        all->waiting = entry;
    all->waiting_last = entry;
    all->n_waiting++;
    return EW_FULL;
}

void ew__rpc_call_stop_waiting(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    if (!entry->waiting)
        return;
    entry->waiting = false;
    if (entry->wait_prev)
        entry->wait_prev->wait_next = entry->wait_next;
    else
        all->waiting = entry->wait_next;
    if (entry->wait_next)
        entry->wait_next->wait_prev = entry->wait_prev;
    else
        all->waiting_last = entry->wait_prev;
    all->n_waiting--;
}

static void go_on(ew__rpc_call *entry) {
    ew__rpc_call_stop_waiting(entry);
    if (entry->sent)
        ew__call_input_room(entry->call);
    else
        ew__call_room(entry->call);
}

/* Only those that wait now, in turn: who goes on may wait again, end calls or fill the queue. */
void ew__rpc_calls_drained(ew__rpc_calls *all) {
    for (uint32_t n = all->n_waiting; n > 0 && all->waiting && ew__rpc_has_room(all); n--)
        go_on(all->waiting);
    resume_if_may(all);
}

/* ---- producers of the peer ---- */

static ew__rpc_call *furthest_behind(const ew__rpc_list *list, ew__rpc_call *most) {
    for (ew__rpc_call *entry = list->first; entry; entry = entry->next)
        if (entry->blocked && (!most || entry->behind > most->behind))
            most = entry;
    return most;
}

static void watch_hold(ew__rpc_calls *all);

static uint64_t hold_until(const ew__rpc_calls *all) {
    const ew__rpc_call *served = furthest_behind(&all->served, NULL);
    return all->conn->executor->now + EW__MS(served ? INPUT_HOLD_MS : STREAM_HOLD_MS);
}

/*
 * Reading has stopped for too long because of calls whose takers are behind. The one that is furthest behind is lost,
 * and more until the rest may be read; but not a stream of a call of ours if no other call waits for its answer. A wire
 * that is closed already may leave them to the connection's end.
 */
static void on_guard(ew__timer *timer, uint64_t now) {
    ew__rpc_calls *all = ew__container_of(timer, ew__rpc_calls, guard);
    (void)now;
    for (uint32_t n = all->n_blocked; n > 0 && ew__rpc_is_held_up(all); n--) {
        ew__rpc_call *entry = furthest_behind(&all->sent, furthest_behind(&all->served, NULL));
        if (!entry || (entry->sent && all->n_blocked == all->sent.n + all->served.n))
            break;
        uint32_t n_blocked = all->n_blocked;
        all->ops->overrun(entry);
        if (all->n_blocked == n_blocked)
            return; /* the wire is closed */
    }
    watch_hold(all);
}

/* The guard runs while reading is held up by what is behind, not while a call is alone. */
static void watch_hold(ew__rpc_calls *all) {
    ew__executor *executor = all->conn->executor;
    if (all->n_blocked == 0 || all->behind_bytes < ew__rpc_behind_max(all))
        ew__timer_stop(&executor->timers, &all->guard);
    else if (!ew__timer_active(&all->guard) &&
             ew__timer_set(&executor->timers, &all->guard, hold_until(all), on_guard) != EW_OK)
        all->ops->abort(all);
}

void ew__rpc_call_block(ew__rpc_call *entry, size_t n_chunks, size_t n_bytes) {
    ew__rpc_calls *all = entry->all;
    uint64_t behind = entry->sent ? n_bytes + n_chunks * CHUNK_BYTES : ew__rpc_behind_max(all);
    if (!entry->blocked) {
        entry->blocked = true;
        entry->behind = 0;
        all->n_blocked++;
    }
    entry->behind += behind;
    all->behind_bytes += behind;
    watch_hold(all);
}

void ew__rpc_call_unblock(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    if (!entry->blocked)
        return;
    entry->blocked = false;
    entry->heard_at = all->conn->executor->now; /* the silence was ours */
    all->n_blocked--;
    all->behind_bytes -= entry->behind;
    watch_hold(all);
    resume_if_may(all);
}

uint32_t ew__rpc_calls_count(const ew__rpc_calls *all, bool (*is)(const ew__rpc_call *entry), ew__rpc_call **ret_one) {
    uint32_t n = 0;
    *ret_one = NULL;
    for (ew__rpc_call *entry = all->sent.first; entry; entry = entry->next)
        if (is(entry)) {
            *ret_one = entry;
            n++;
        }
    return n;
}

void ew__rpc_log_unnamed(ew__rpc_calls *all, ew_str error) {
    char text[UNNAMED_ROOM];
    ew__rpc_error e;
    if (all->n_unnamed >= UNNAMED_MAX)
        return;
    all->n_unnamed++;
    ew__rpc_read_error(error, text, sizeof text, &e);
    int shown = (int)(e.message.len < UNNAMED_ROOM ? e.message.len : UNNAMED_ROOM);
    ew__log(all->conn->executor->env, EW_LOG_WARN, "rpc", "the peer reports an error without an id: code %lld, %.*s",
            (long long)e.code, shown, e.message.ptr);
}

/* The timer looks again when it fires: a piece only notes its time. */
ew_err ew__rpc_call_watch_silence(ew__rpc_call *entry, ew__timer_fn fn) {
    ew__executor *executor = entry->all->conn->executor;
    uint64_t at = entry->heard_at + EW__MS(executor->limits->stream_idle_ms);
    return ew__timer_set(&executor->timers, &entry->timer, at, fn);
}
