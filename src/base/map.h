/*
 * base/map.h: a hash map from byte strings to pointers, keyed by SipHash-1-3 so that a peer cannot make keys collide.
 * Keys are borrowed: they must outlive their entry. Iteration (over entries) is in order of insertion; removal moves
 * the last entry into the gap.
 */
#ifndef EW_BASE_MAP_H
#define EW_BASE_MAP_H

#include <everywire/env.h>

typedef struct ew__map_entry {
    ew_str key;
    void *value;
    uint64_t hash;
} ew__map_entry;

typedef struct ew__map {
    const ew_env *env;
    uint64_t seed[2];
    ew__map_entry *entries; /* dense, n of them */
    uint32_t *slots;        /* open addressing; 0 = free, else index + 1 */
    uint32_t n;
    uint32_t cap;     /* entries allocated */
    uint32_t n_slots; /* power of two */
} ew__map;

void ew__map_init(ew__map *map, const ew_env *env);        /* draws its seed from env->random */
void ew__map_done(ew__map *map);                           /* the values are the owner's */
void *ew__map_get(const ew__map *map, ew_str key);         /* NULL if absent */
ew_err ew__map_put(ew__map *map, ew_str key, void *value); /* replaces value and key; EW_ENOMEM: as it was */
/*
 * Adds what is not there yet. The value that is there if the key was (nothing has changed then), else NULL; *ret_err is
 * EW_OK or EW_ENOMEM.
 */
void *ew__map_add(ew__map *map, ew_str key, void *value, ew_err *ret_err);
void *ew__map_remove(ew__map *map, ew_str key); /* the value that was there, or NULL */
uint64_t ew__siphash13(const uint64_t seed[2], const void *bytes, size_t n);

#endif
