/*
 * base/map.c: the hash map of base/map.h. Linear probing over a table of 32-bit indexes into dense entries; removal
 * shifts the following slots back, so that no tombstones pile up under steady change.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/map.h"

#include "base/mem.h"
#include "base/util.h"

#define FIRST_SLOTS 16u
#define MAX_SLOTS (1u << 26) /* its arrays still have sizes that fit 32 bits */

/* ---- SipHash with one round per word and three at the end ---- */

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t rotate(uint64_t x, unsigned bits) { return (x << bits) | (x >> (64 - bits)); }

static inline void sip_round(sip *s) {
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static inline void sip_word(sip *s, uint64_t word) {
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

/* Written by bytes to be the same on every machine; compilers make one load of it. */
static inline uint64_t load64(const uint8_t *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

uint64_t ew__siphash13(const uint64_t seed[2], const void *bytes, size_t n) {
    sip s = {
        seed[0] ^ 0x736f6d6570736575u,
        seed[1] ^ 0x646f72616e646f6du,
        seed[0] ^ 0x6c7967656e657261u,
        seed[1] ^ 0x7465646279746573u,
    };
    const uint8_t *p = bytes;
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        sip_word(&s, load64(p));
    }
    uint64_t last = (uint64_t)n << 56; /* the length is part of the last word, so that trailing zero bytes count */
    for (size_t i = 0; i < left; i++) {
        last |= (uint64_t)p[i] << (8 * i);
    }
    sip_word(&s, last);
    s.c ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* ---- the map ---- */

static uint32_t executor(const ew__map *map, uint64_t hash) { return (uint32_t)hash & (map->n_slots - 1); }

static uint32_t after(const ew__map *map, uint32_t slot) { return (slot + 1) & (map->n_slots - 1); }

/* The slot of a key, or the free slot where the search ended. The table is never full. */
static uint32_t find(const ew__map *map, ew_str key, uint64_t hash) {
    uint32_t slot = executor(map, hash);
    for (; map->slots[slot] != 0; slot = after(map, slot)) {
        const ew__map_entry *entry = &map->entries[map->slots[slot] - 1];
        if (entry->hash == hash && ew__str_is(entry->key, key)) {
            break;
        }
    }
    return slot;
}

/* The slot that holds an entry that is known to be there. */
static uint32_t slot_of(const ew__map *map, uint32_t index) {
    uint32_t slot = executor(map, map->entries[index].hash);
    while (map->slots[slot] != index + 1) {
        slot = after(map, slot);
    }
    return slot;
}

void ew__map_init(ew__map *map, const ew_env *env) {
    *map = (ew__map){.env = env};
    env->random(env->ud, map->seed, sizeof(map->seed));
}

void ew__map_done(ew__map *map) {
    ew__free(map->env, map->entries, map->cap * sizeof(*map->entries));
    ew__free(map->env, map->slots, map->n_slots * sizeof(*map->slots));
    map->entries = NULL;
    map->slots = NULL;
    map->n = map->cap = map->n_slots = 0;
}

void *ew__map_get(const ew__map *map, ew_str key) {
    if (map->n == 0) {
        return NULL;
    }
    uint32_t index = map->slots[find(map, key, ew__siphash13(map->seed, key.ptr, key.len))];
    return index == 0 ? NULL : map->entries[index - 1].value;
}

/* Entries first, then the slots: a failure between the two leaves longer memory and the same map. */
static ew_err grow(ew__map *map) {
    if (map->n_slots >= MAX_SLOTS) {
        return EW_ENOMEM;
    }
    uint32_t n_slots = map->n_slots == 0 ? FIRST_SLOTS : map->n_slots * 2;
    uint32_t cap = n_slots / 4 * 3;
    if (map->cap < cap) {
        ew__map_entry *entries =
            ew__realloc(map->env, map->entries, map->cap * sizeof(*entries), cap * sizeof(*entries));
        if (entries == NULL) {
            return EW_ENOMEM;
        }
        map->entries = entries;
        map->cap = cap;
    }
    uint32_t *slots = ew__zalloc(map->env, n_slots * sizeof(*slots));
    if (slots == NULL) {
        return EW_ENOMEM;
    }
    ew__free(map->env, map->slots, map->n_slots * sizeof(*slots));
    map->slots = slots;
    map->n_slots = n_slots;
    for (uint32_t i = 0; i < map->n; i++) {
        uint32_t slot = executor(map, map->entries[i].hash);
        while (slots[slot] != 0) {
            slot = after(map, slot);
        }
        slots[slot] = i + 1;
    }
    return EW_OK;
}

/* The entry of a key, if there is one; else it is added, and NULL returned. */
static ew__map_entry *find_or_add(ew__map *map, ew_str key, void *value, ew_err *ret_err) {
    uint64_t hash = ew__siphash13(map->seed, key.ptr, key.len);
    uint32_t slot = 0;
    *ret_err = EW_OK;
    if (map->n_slots > 0) {
        slot = find(map, key, hash);
        if (map->slots[slot] != 0) {
            return &map->entries[map->slots[slot] - 1];
        }
    }
    if (map->n >= map->n_slots / 4 * 3) {
        *ret_err = grow(map);
        if (*ret_err != EW_OK) {
            return NULL;
        }
        slot = find(map, key, hash);
    }
    map->entries[map->n] = (ew__map_entry){key, value, hash};
    map->slots[slot] = ++map->n;
    return NULL;
}

ew_err ew__map_put(ew__map *map, ew_str key, void *value) {
    ew_err err;
    ew__map_entry *entry = find_or_add(map, key, value, &err);
    if (entry != NULL) {
        /* The key goes with the value: the old one often lies in the old value and dies with it. */
        entry->key = key;
        entry->value = value;
    }
    return err;
}

void *ew__map_add(ew__map *map, ew_str key, void *value, ew_err *ret_err) {
    const ew__map_entry *entry = find_or_add(map, key, value, ret_err);
    return entry == NULL ? NULL : entry->value;
}

/* Frees a slot and moves back those behind it that would no longer be found across the gap. */
static void close_gap(ew__map *map, uint32_t gap) {
    uint32_t mask = map->n_slots - 1;
    for (uint32_t slot = after(map, gap); map->slots[slot] != 0; slot = after(map, slot)) {
        uint32_t from_home = (slot - executor(map, map->entries[map->slots[slot] - 1].hash)) & mask;
        if (from_home >= ((slot - gap) & mask)) {
            map->slots[gap] = map->slots[slot];
            gap = slot;
        }
    }
    map->slots[gap] = 0;
}

void *ew__map_remove(ew__map *map, ew_str key) {
    if (map->n == 0) {
        return NULL;
    }
    uint32_t slot = find(map, key, ew__siphash13(map->seed, key.ptr, key.len));
    if (map->slots[slot] == 0) {
        return NULL;
    }
    uint32_t index = map->slots[slot] - 1;
    void *value = map->entries[index].value;
    close_gap(map, slot);
    uint32_t last = map->n - 1;
    if (index != last) {
        map->slots[slot_of(map, last)] = index + 1;
        map->entries[index] = map->entries[last];
    }
    map->n = last;
    return value;
}
