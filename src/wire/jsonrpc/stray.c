/*
 * wire/jsonrpc/stray.c: frames of calls that have not come yet, or have gone. The reference codec may send the first
 * frame of a stream before the request that opens it: such a frame is kept for a moment. And a peer whose call was
 * answered early goes on sending input: that is dropped until its close frame, so that it is not taken for the former.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"
#include "base/list.h"

#define IDS_MAX 1024
#define FRAMES_MAX 16 /* of one id */
#define BYTES_MAX (256 * 1024)
#define EARLY_MS 2000 /* a request that its frames have overtaken comes soon */
#define GONE_MS (60 * 1000)
#define KEY_ROOM 512

typedef struct stray {
    struct stray *next, *prev;
    ew__jr_row frames;
    uint64_t until;
    bool gone; /* its call has ended: nothing is kept */
    bool lost; /* too much came before its request */
    size_t key_len;
    char key[];
} stray;

struct ew__jr_strays {
    ew__map by_key;
    stray *first;
    uint32_t n;
    size_t bytes;
    ew__timer timer;
    ew__jr_peer *peer;
};

/* ---- rows ---- */

ew_err ew__jr_row_add(const ew_env *env, ew__jr_row *row, ew_str json, bool close) {
    ew__jr_held *item = ew__alloc(env, sizeof *item + json.len);
    if (!item)
        return EW_ENOMEM;
    *item = (ew__jr_held){.len = json.len, .close = close};
    if (json.len)
        memcpy(item->bytes, json.ptr, json.len);
    EW__TAIL_ADD(row->first, row->last, item);
    row->n++;
    row->bytes += (uint32_t)json.len;
    return EW_OK;
}

ew__jr_held *ew__jr_row_take(ew__jr_row *row) {
    ew__jr_held *item = row->first;
    if (!item)
        return NULL;
    row->first = item->next;
    row->n--;
    row->bytes -= (uint32_t)item->len;
    return item;
}

void ew__jr_held_free(const ew_env *env, ew__jr_held *item) { ew__free(env, item, sizeof *item + item->len); }

uint32_t ew__jr_row_clear(const ew_env *env, ew__jr_row *row) {
    uint32_t n = row->n;
    ew__jr_held *item;
    while ((item = ew__jr_row_take(row)) != NULL)
        ew__jr_held_free(env, item);
    return n;
}

/* ---- strays ---- */

static const ew_env *env_of(const ew__jr_peer *peer) { return peer->peer.conn->executor->env; }

static void forget(struct ew__jr_strays *all, stray *s) {
    const ew_env *env = env_of(all->peer);
    (void)ew__map_remove(&all->by_key, ew__str(s->key, s->key_len));
    EW__LIST_REMOVE(all->first, s);
    all->n--;
    all->bytes -= s->frames.bytes;
    for (uint32_t n = ew__jr_row_clear(env, &s->frames); n > 0; n--)
        ew__rpc_late(&all->peer->calls);
    ew__free(env, s, sizeof *s + s->key_len);
}

static void on_time(ew__timer *timer, uint64_t now) {
    struct ew__jr_strays *all = ew__container_of(timer, struct ew__jr_strays, timer);
    for (stray *s = all->first, *next; s; s = next) {
        next = s->next;
        if (s->until <= now)
            forget(all, s);
    }
    if (all->first &&
        ew__timer_set(&all->peer->peer.conn->executor->timers, timer, now + EW__MS(EARLY_MS), on_time) != EW_OK)
        ew__jr_strays_free(all->peer);
}

static struct ew__jr_strays *strays_of(ew__jr_peer *peer) {
    if (peer->strays)
        return peer->strays;
    struct ew__jr_strays *all = ew__zalloc(env_of(peer), sizeof *all);
    if (all) {
        ew__map_init(&all->by_key, env_of(peer));
        all->peer = peer;
        peer->strays = all;
    }
    return all;
}

static stray *find(const ew__jr_peer *peer, ew_str id) {
    char buf[KEY_ROOM];
    return peer->strays ? ew__map_get(&peer->strays->by_key, ew__rpc_key(id, buf, sizeof buf)) : NULL;
}

/* NULL when there is no memory, or too many, or the id is too long to be kept for nothing. */
static stray *add(ew__jr_peer *peer, ew_str id, uint64_t ms) {
    ew__executor *executor = peer->peer.conn->executor;
    struct ew__jr_strays *all = strays_of(peer);
    char buf[KEY_ROOM];
    ew_str key = ew__rpc_key(id, buf, sizeof buf);
    stray *s = all && all->n < IDS_MAX && key.len <= KEY_ROOM ? ew__zalloc(executor->env, sizeof *s + key.len) : NULL;
    if (!s)
        return NULL;
    s->key_len = key.len;
    memcpy(s->key, key.ptr, key.len);
    s->until = executor->now + EW__MS(ms);
    bool timed = ew__timer_active(&all->timer) ||
                 ew__timer_set(&executor->timers, &all->timer, executor->now + EW__MS(EARLY_MS), on_time) == EW_OK;
    if (!timed || ew__map_put(&all->by_key, ew__str(s->key, s->key_len), s) != EW_OK) {
        ew__free(executor->env, s, sizeof *s + s->key_len);
        return NULL;
    }
    EW__LIST_ADD(all->first, s);
    all->n++;
    return s;
}

/* A stream with a hole is none any more: its request will be refused. */
static void lose(struct ew__jr_strays *all, stray *s) {
    all->bytes -= s->frames.bytes;
    for (uint32_t n = ew__jr_row_clear(env_of(all->peer), &s->frames); n > 0; n--)
        ew__rpc_late(&all->peer->calls);
    s->lost = true;
}

void ew__jr_stray(ew__jr_peer *peer, const ew__rpc *message) {
    bool close = message->stream == EW__RPC_STREAM_CLOSE;
    bool may_come = message->id.len && peer->peer.conn->site->actions && !peer->reader.eof;
    stray *s = may_come ? find(peer, message->id) : NULL;
    if (may_come && !s)
        s = add(peer, message->id, EARLY_MS);
    if (s && !s->gone && !s->lost && s->frames.n < FRAMES_MAX && peer->strays->bytes + message->data.len <= BYTES_MAX &&
        ew__jr_row_add(env_of(peer), &s->frames, message->data, close) == EW_OK) {
        peer->strays->bytes += message->data.len;
        return;
    }
    ew__rpc_late(&peer->calls);
    if (s && s->gone && close)
        forget(peer->strays, s);
    else if (s && !s->gone)
        lose(peer->strays, s);
}

ew_err ew__jr_stray_claim(ew__jr_peer *peer, ew_str id, ew__jr_row *ret) {
    stray *s = find(peer, id);
    *ret = (ew__jr_row){.n = 0};
    if (!s)
        return EW_OK;
    bool lost = s->lost;
    *ret = s->frames;
    peer->strays->bytes -= ret->bytes;
    s->frames = (ew__jr_row){.n = 0};
    forget(peer->strays, s);
    return lost ? EW_ELIMIT : EW_OK;
}

void ew__jr_stray_refuse(ew__jr_peer *peer, ew_str id) {
    stray *s = find(peer, id);
    if (s)
        forget(peer->strays, s);
    s = add(peer, id, GONE_MS);
    if (s)
        s->gone = true;
}

void ew__jr_strays_free(ew__jr_peer *peer) {
    struct ew__jr_strays *all = peer->strays;
    if (!all)
        return;
    while (all->first)
        forget(all, all->first);
    ew__timer_stop(&peer->peer.conn->executor->timers, &all->timer);
    ew__map_done(&all->by_key);
    ew__free(env_of(peer), all, sizeof *all);
    peer->strays = NULL;
}
