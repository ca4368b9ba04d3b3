/*
 * wire/rpc_calls.c: the calls of one connection: lists and look-up, and back pressure. JSON-RPC has no credit: a
 * producer of ours waits while the connection's queue is long, and a peer's producer is held back by not reading, which
 * its transport passes on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rpc_calls.h"

#include "base/mem.h"

#define KEY_ROOM 512  /* ids with escapes are looked up decoded, up to here */
#define RECENT 128u   /* places for calls that are found by the end of their id */
#define GUARD_MS 5000 /* a taker that is behind may hold up the connection for that long */

void ew__rpc_calls_init(ew__rpc_calls *all, ew__conn *conn, const ew__rpc_calls_ops *ops) {
    *all = (ew__rpc_calls){.conn = conn, .ops = ops};
}

void ew__rpc_calls_done(ew__rpc_calls *all) {
    ew__timer_stop(&all->conn->home->timers, &all->guard);
    if (all->served.has_map)
        ew__map_done(&all->served.by_key);
    if (all->sent.has_map)
        ew__map_done(&all->sent.by_key);
    ew__free(all->conn->home->env, all->sent.recent, RECENT * sizeof *all->sent.recent);
    all->sent.recent = NULL;
}

/* ---- which there are ---- */

void ew__rpc_call_add(ew__rpc_call *entry) {
    ew__rpc_list *list = ew__rpc_list_of(entry);
    EW__LIST_ADD(list->first, entry);
    list->n++;
    entry->all->served_bytes += entry->size;
}

void ew__rpc_call_remove(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    ew__rpc_list *list = ew__rpc_list_of(entry);
    EW__LIST_REMOVE(list->first, entry);
    list->n--;
    all->served_bytes -= entry->size;
    if (all->speaks == entry)
        all->speaks = NULL;
    if (entry->place)
        list->recent[entry->place - 1] = NULL;
    else if (entry->key.len)
        (void)ew__map_remove(&list->by_key, entry->key);
    entry->place = 0; /* it may be added again, by another id */
    ew__timer_stop(&all->conn->home->timers, &entry->timer);
    ew__rpc_call_stop_waiting(entry);
    ew__rpc_call_unblock(entry);
}

/* Where a call with this key may be found: by the three bytes before its closing quote, read as digits. */
static uint32_t place_of(ew_str key) {
    const char *end = key.ptr + key.len - 1;
    uint32_t number = 0;
    if (EW__LIKELY(key.len > 4))
        number = (uint32_t)(uint8_t)end[-1] + (uint32_t)(uint8_t)end[-2] * 10 + (uint32_t)(uint8_t)end[-3] * 100;
    return number % RECENT;
}

static ew__rpc_call *find_recent(const ew__rpc_list *list, ew_str key) {
    ew__rpc_call *entry = list->recent && key.len ? list->recent[place_of(key)] : NULL;
    return entry && ew__str_is(entry->key, key) ? entry : NULL;
}

static ew__rpc_call *find_by_key(const ew__rpc_list *list, ew_str key) {
    return list->has_map && list->by_key.n > 0 ? ew__map_get(&list->by_key, key) : NULL;
}

ew__rpc_call *ew__rpc_call_find(const ew__rpc_list *list, ew_str id) {
    char buf[KEY_ROOM];
    ew_str key = ew__rpc_key(id, buf, sizeof buf);
    ew__rpc_call *entry = find_recent(list, key);
    return entry ? entry : find_by_key(list, key);
}

/* Of the id nothing is known but its bytes, so it must be that of the call in each of them. */
ew__rpc_call *ew__rpc_call_of_result(const ew__rpc_calls *all, ew_str text, ew__rpc *ret) {
    *ret = (ew__rpc){.kind = EW__RPC_RESULT};
    if (all->sent.n == 0 || !ew__rpc_is_result(text, &ret->id, &ret->result))
        return NULL;
    ew__rpc_call *entry = ew__rpc_call_find(&all->sent, ret->id);
    return entry && ew__str_is(entry->id, ret->id) ? entry : NULL;
}

/* false: it is for the map, or is there already. Without memory for the places there are none. */
static bool take_place(ew__rpc_list *list, ew__rpc_call *entry, ew_str key) {
    if (!entry->sent || key.len == 0 || find_by_key(list, key))
        return false;
    if (EW__UNLIKELY(!list->recent) &&
        !(list->recent = ew__zalloc(entry->all->conn->home->env, RECENT * sizeof *list->recent)))
        return false;
    uint32_t place = place_of(key);
    if (list->recent[place])
        return false;
    list->recent[place] = entry;
    entry->place = (uint16_t)(place + 1);
    entry->key = key;
    return true;
}

static ew_err add_key(ew__rpc_list *list, ew__rpc_call *entry, ew_str key) {
    if (!list->has_map) {
        ew__map_init(&list->by_key, entry->all->conn->home->env);
        list->has_map = true;
    }
    ew_err err;
    if (ew__map_add(&list->by_key, key, entry, &err))
        return EW_EEXISTS;
    if (err == EW_OK)
        entry->key = key;
    return err;
}

ew_err ew__rpc_call_index(ew__rpc_call *entry) {
    ew__rpc_list *list = ew__rpc_list_of(entry);
    char buf[KEY_ROOM];
    ew_str key = ew__rpc_key(entry->id, buf, sizeof buf);
    if (key.ptr != entry->id.ptr && ew__arena_str(&entry->call->arena, key, &key) != EW_OK)
        return EW_ENOMEM;
    if (find_recent(list, key))
        return EW_EEXISTS;
    return take_place(list, entry, key) ? EW_OK : add_key(list, entry, key);
}

ew_err ew__rpc_call_send(ew__rpc_call *entry, const ew__callee_ops *callee) {
    ew_call *call = entry->call;
    entry->sent = true;
    entry->input_open = call->has_input;
    ew_err err = ew__rpc_call_index(entry);
    if (err != EW_OK)
        return err;
    ew__rpc_call_add(entry);
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
    atomic_fetch_add_explicit(&all->conn->home->dropped, 1, memory_order_relaxed);
}

/* ---- producers of ours ---- */

void ew__rpc_write(ew__out *out, const ew__rpc_out *message, ew_call *owner) {
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

/* The wire knows whether it has paused at all. */
static void resume_if_may(ew__rpc_calls *all) {
    if (!ew__rpc_must_pause(all))
        all->ops->resume(all);
}

/* Only those that wait now, in turn: who goes on may wait again, end calls or fill the queue. */
void ew__rpc_calls_drained(ew__rpc_calls *all) {
    for (uint32_t n = all->n_waiting; n > 0 && all->waiting && ew__rpc_has_room(all); n--)
        go_on(all->waiting);
    resume_if_may(all);
}

/* ---- producers of the peer ---- */

static ew__rpc_call *first_blocked(const ew__rpc_list *list) {
    for (ew__rpc_call *entry = list->first; entry; entry = entry->next)
        if (entry->blocked)
            return entry;
    return NULL;
}

/*
 * They held up everybody else on the connection for too long: they lose their calls. Nothing is read meanwhile, so none
 * is added to them; a wire that is closed already may leave them to the connection's end.
 */
static void on_guard(ew__timer *timer, uint64_t now) {
    ew__rpc_calls *all = ew__container_of(timer, ew__rpc_calls, guard);
    (void)now;
    for (uint32_t n = all->n_blocked; n > 0; n--) {
        ew__rpc_call *entry = first_blocked(&all->served);
        if (!entry)
            entry = first_blocked(&all->sent);
        if (entry) /* the end of one may have ended others */
            all->ops->overrun(entry);
    }
}

void ew__rpc_call_block(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    ew__home *home = all->conn->home;
    if (entry->blocked)
        return;
    entry->blocked = true;
    if (all->n_blocked++ == 0 &&
        ew__timer_set(&home->timers, &all->guard, home->now + EW__MS(GUARD_MS), on_guard) != EW_OK)
        all->ops->abort(all);
}

void ew__rpc_call_unblock(ew__rpc_call *entry) {
    ew__rpc_calls *all = entry->all;
    ew__home *home = all->conn->home;
    if (!entry->blocked)
        return;
    entry->blocked = false;
    entry->heard_at = home->now; /* the silence was ours */
    if (--all->n_blocked > 0)
        return;
    ew__timer_stop(&home->timers, &all->guard);
    resume_if_may(all);
}

/* The timer looks again when it fires: a piece only notes its time. */
ew_err ew__rpc_call_watch_silence(ew__rpc_call *entry, ew__timer_fn fn) {
    ew__home *home = entry->all->conn->home;
    uint64_t at = entry->heard_at + EW__MS(home->limits->stream_idle_ms);
    return ew__timer_set(&home->timers, &entry->timer, at, fn);
}
