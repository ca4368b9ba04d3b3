/*
 * wire/rrq/index.c: the requests that run on one loop, by their ids. A cancel comes on any connection, so they are not
 * kept per connection; and an orchestrator may give an id twice, so an id names a chain of them. Most requests end
 * before anybody asks for one: until then they only stand in a row, so that each is indexed once at most.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/rrq.h"

#define WALL_MS 20 /* how often the wall clock is looked at */

static ew__rrq_scratch *scratch_of(const ew__rrq_call *entry) { return ew__rrq_peer_of(entry)->peer.conn->scratch; }

void ew__rrq_scratch_done(void *scratch) {
    ew__rrq_scratch *shared = scratch;
    if (shared->head.env) { /* a request has been written */
        ew__buf_done(&shared->head);
        ew__buf_done(&shared->tail);
    }
    if (shared->made) {
        ew__map_done(&shared->by_request);
        ew__map_done(&shared->by_job);
    }
}

uint64_t ew__rrq_wall_ms(ew__rrq_scratch *scratch, const ew__executor *executor) {
    if (executor->now - scratch->wall_at >= EW__MS(WALL_MS) || scratch->wall_ms == 0) {
        scratch->wall_at = executor->now;
        scratch->wall_ms = executor->env->wall_ms(executor->env->ud);
    }
    return scratch->wall_ms + (executor->now - scratch->wall_at) / EW__MS(1);
}

static ew_err add(ew__map *map, ew__rrq_place *place, ew_str id, ew__arena *arena) {
    char buf[EW__RRQ_ID_MAX];
    ew_str key = ew__rpc_key(id, buf, sizeof buf);
    if (key.ptr != id.ptr && ew__arena_str(arena, key, &key) != EW_OK)
        return EW_ENOMEM;
    ew_err err;
    ew__rrq_place *first = ew__map_add(map, key, place, &err);
    if (err != EW_OK)
        return err;
    place->key = key;
    if (first) { /* behind the first, which the map knows */
        place->prev = first;
        place->next = first->next;
        if (first->next)
            first->next->prev = place;
        first->next = place;
    }
    return EW_OK;
}

static void remove_place(ew__map *map, ew__rrq_place *place) {
    if (place->key.len == 0)
        return;
    if (place->next)
        place->next->prev = place->prev;
    if (place->prev)
        place->prev->next = place->next;
    else if (place->next)
        (void)ew__map_put(map, place->next->key, place->next); /* the key is there: no memory is needed */
    else
        (void)ew__map_remove(map, place->key);
    *place = (ew__rrq_place){.key = {NULL, 0}};
}

void ew__rrq_index_add(ew__rrq_call *entry) {
    ew__rrq_scratch *scratch = scratch_of(entry);
    entry->row_prev = scratch->row_last;
    entry->row_next = NULL;
    if (scratch->row_last)
        scratch->row_last->row_next = entry;
    else
        scratch->row = entry;
    scratch->row_last = entry;
    entry->in_row = true;
}

static void leave_row(ew__rrq_scratch *scratch, ew__rrq_call *entry) {
    if (!entry->in_row)
        return;
    if (entry->row_prev)
        entry->row_prev->row_next = entry->row_next;
    else
        scratch->row = entry->row_next;
    if (entry->row_next)
        entry->row_next->row_prev = entry->row_prev;
    else
        scratch->row_last = entry->row_prev;
    entry->in_row = false;
}

static void remove_places(ew__rrq_scratch *scratch, ew__rrq_call *entry) {
    remove_place(&scratch->by_request, &entry->by_request);
    remove_place(&scratch->by_job, &entry->by_job);
}

void ew__rrq_index_remove(ew__rrq_call *entry) {
    ew__rrq_scratch *scratch = scratch_of(entry);
    leave_row(scratch, entry);
    remove_places(scratch, entry);
}

static ew_err move_to_maps(ew__rrq_scratch *scratch, ew__rrq_call *entry) {
    ew__arena *arena = &entry->base.call->arena;
    if (!scratch->made) {
        ew__map_init(&scratch->by_request, entry->base.call->executor->env);
        ew__map_init(&scratch->by_job, entry->base.call->executor->env);
        scratch->made = true;
    }
    ew_err err = add(&scratch->by_request, &entry->by_request, entry->ids.request, arena);
    if (err == EW_OK)
        err = add(&scratch->by_job, &entry->by_job, entry->ids.job, arena);
    if (err == EW_OK)
        leave_row(scratch, entry);
    else
        remove_places(scratch, entry);
    return err;
}

/* Whether this principal (NULL: any) opened the request. */
static bool is_owned(const ew__rrq_call *entry, const ew__principal *owner) {
    if (!owner)
        return true;
    ew__conn *conn = ew__rrq_peer_of(entry)->peer.conn;
    ew__principal principal = ew__principal_of(conn->executor, ew__conn_who(conn));
    return ew__principal_equal(&principal, owner);
}

/* Without memory for the maps: searches the requests that are left in the row. */
static ew__rrq_call *find_in_row(const ew__rrq_scratch *scratch, bool by_request, ew_str key,
                                 const ew__principal *owner) {
    char buf[EW__RRQ_ID_MAX];
    ew__rrq_call *entry = scratch->row;
    for (; entry; entry = entry->row_next) {
        ew_str id = by_request ? entry->ids.request : entry->ids.job;
        if (ew__str_is(ew__rpc_key(id, buf, sizeof buf), key) && is_owned(entry, owner))
            break;
    }
    return entry;
}

static ew__rrq_call *call_at(ew__rrq_place *place, bool by_request) {
    return by_request ? ew__container_of(place, ew__rrq_call, by_request)
                      : ew__container_of(place, ew__rrq_call, by_job);
}

ew__rrq_call *ew__rrq_index_find(ew__rrq_scratch *scratch, const ew__rrq_ids *ids, const ew__principal *owner) {
    char buf[EW__RRQ_ID_MAX];
    bool by_request = ids->request.len > 0;
    ew_str key = ew__rpc_key(by_request ? ids->request : ids->job, buf, sizeof buf);
    while (scratch->row && move_to_maps(scratch, scratch->row) == EW_OK)
        ;
    ew__rrq_place *place = NULL;
    if (scratch->made)
        place = ew__map_get(by_request ? &scratch->by_request : &scratch->by_job, key);
    while (place && !is_owned(call_at(place, by_request), owner))
        place = place->next;
    return place ? call_at(place, by_request) : find_in_row(scratch, by_request, key, owner);
}

/* ---- cancels that arrive before their request ---- */

void ew__rrq_early_add(ew__rrq_scratch *scratch, const ew__executor *executor, uint64_t from, const ew__rrq_ids *ids,
                       const ew__principal *owner) {
    char buf[EW__RRQ_ID_MAX];
    ew_str id = ids->request.len ? ew__rpc_key(ids->request, buf, sizeof buf) : ew__str(NULL, 0);
    if (id.len == 0 || id.len > EW__RRQ_EARLY_ID)
        return;
    ew__rrq_early *early = &scratch->early[scratch->early_at++ % EW__RRQ_EARLY_MAX];
    *early = (ew__rrq_early){
        .until = executor->now + EW__MS(EW__RRQ_EARLY_MS), .from = from, .owner = *owner, .len = (uint8_t)id.len};
    memcpy(early->id, id.ptr, id.len);
    scratch->early_until = early->until;
}

bool ew__rrq_early_take(ew__rrq_scratch *scratch, const ew__executor *executor, uint64_t from, ew_str request,
                        const ew__principal *owner) {
    char buf[EW__RRQ_ID_MAX];
    ew_str id = ew__rpc_key(request, buf, sizeof buf);
    for (size_t i = 0; i < EW__RRQ_EARLY_MAX; i++) {
        ew__rrq_early *early = &scratch->early[i];
        if (early->until < executor->now || early->from == from || !ew__str_is(id, ew__str(early->id, early->len)) ||
            !ew__principal_equal(&early->owner, owner))
            continue;
        early->until = 0;
        return true;
    }
    return false;
}
