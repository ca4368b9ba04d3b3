/*
 * call/clients.c: see clients.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/clients.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/util.h"

#define SECOND EW__MS(1000)

void ew__clients_init(ew__clients *clients, const ew_env *env) {
    memset(clients, 0, sizeof *clients);
    clients->env = env;
    pthread_mutex_init(&clients->lock, NULL);
    ew__map_init(&clients->rows, env);
}

void ew__clients_done(ew__clients *clients) {
    for (uint32_t i = 0; i < clients->rows.n; i++)
        ew__free(clients->env, clients->rows.entries[i].value, sizeof(ew__client_row));
    ew__map_done(&clients->rows);
    pthread_mutex_destroy(&clients->lock);
}

static ew_str key_of(const ew__client_row *row) { return ew__str(row->key, sizeof row->key); }

static void idle_remove(ew__clients *clients, ew__client_row *row) {
    ew__list_remove(&clients->idle, &row->node);
    clients->n_idle--;
}

static void idle_append(ew__clients *clients, ew__client_row *row) {
    ew__list_add_last(&clients->idle, &row->node);
    clients->n_idle++;
}

static ew__client_row *add(ew__clients *clients, const uint8_t key[EW__CLIENT_KEY], bool local) {
    ew__client_row *row = ew__zalloc(clients->env, sizeof *row);
    if (!row)
        return NULL;
    memcpy(row->key, key, sizeof row->key);
    row->local = local;
    if (ew__map_put(&clients->rows, key_of(row), row) == EW_OK)
        return row;
    ew__free(clients->env, row, sizeof *row);
    return NULL;
}

ew__client_row *ew__clients_enter(ew__clients *clients, const uint8_t key[EW__CLIENT_KEY], bool local) {
    pthread_mutex_lock(&clients->lock);
    ew__client_row *row = ew__map_get(&clients->rows, ew__str(key, EW__CLIENT_KEY));
    bool counted = clients->connections && (clients->count_local || !local);
    if (row && row->connections == 0)
        idle_remove(clients, row);
    else if (!row)
        row = add(clients, key, local);
    else if (counted && row->connections >= clients->connections)
        row = NULL;
    if (row)
        row->connections++;
    pthread_mutex_unlock(&clients->lock);
    return row;
}

void ew__clients_leave(ew__clients *clients, ew__client_row *row) {
    pthread_mutex_lock(&clients->lock);
    if (--row->connections == 0)
        idle_append(clients, row);
    while (clients->n_idle > EW__CLIENTS_IDLE) {
        ew__client_row *oldest = EW__ITEM(clients->idle.first, ew__client_row, node);
        idle_remove(clients, oldest);
        (void)ew__map_remove(&clients->rows, key_of(oldest));
        ew__free(clients->env, oldest, sizeof *oldest);
    }
    pthread_mutex_unlock(&clients->lock);
}

/* The bucket holds the calls of one second; next_call is when it is full again, if nobody calls. */
uint64_t ew__clients_take_call(const ew__clients *clients, ew__client_row *row, uint64_t now) {
    const uint64_t rate = clients->calls_per_second;
    if (rate == 0)
        return 0;
    const uint64_t step = rate < SECOND ? SECOND / rate : 1, burst = step * (rate - 1);
    unsigned long long next = atomic_load_explicit(&row->next_call, memory_order_relaxed);
    for (;;) {
        uint64_t from = next > now ? next : now;
        if (from - now > burst)
            return (from - now - burst + 999999) / 1000000;
        if (atomic_compare_exchange_weak_explicit(&row->next_call, &next, from + step, memory_order_relaxed,
                                                  memory_order_relaxed))
            return 0;
    }
}

uint64_t ew__clients_shut(ew__clients *clients, const ew__client_row *row, uint64_t now) {
    pthread_mutex_lock(&clients->lock);
    uint64_t until = row->shut_until;
    pthread_mutex_unlock(&clients->lock);
    return until > now ? (until - now + 999999) / 1000000 : 0;
}

void ew__clients_failed(ew__clients *clients, ew__client_row *row, uint64_t now) {
    pthread_mutex_lock(&clients->lock);
    if (row->failures == 0 || now - row->failing_since >= SECOND) {
        row->failing_since = now;
        row->failures = 0;
    }
    if (++row->failures >= EW__CLIENT_FAILURES) {
        row->shut_until = now + EW__MS(EW__CLIENT_SHUT_MS);
        row->failures = 0;
    }
    pthread_mutex_unlock(&clients->lock);
}
