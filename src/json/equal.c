/*
 * json/equal.c: see equal.h. Recursion is as deep as the values, which have at most EW_JSON_DEPTH levels.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "base/map.h"
#include "base/mem.h"
#include "json/equal.h"
#include "json/number.h"
#include "json/sort.h"

/* ---- hashes ---- */

#define PART 64

/* Hashes a run of bytes that comes in pieces: each full part, then the rest. */
typedef struct hasher {
    const uint64_t *seed;
    uint64_t sum;
    size_t n;
    char part[PART];
} hasher;

static void hash_part(hasher *h) {
    const uint64_t seed[2] = {h->seed[0] ^ h->sum, h->seed[1]};
    h->sum = ew__siphash13(seed, h->part, h->n);
    h->n = 0;
}

static void hash_bytes(hasher *h, const char *bytes, size_t n) {
    while (n > 0) {
        size_t take = n < PART - h->n ? n : PART - h->n;
        memcpy(h->part + h->n, bytes, take);
        h->n += take;
        bytes += take;
        n -= take;
        if (h->n == PART) {
            hash_part(h);
        }
    }
}

static uint64_t hash_string(const uint64_t seed[2], ew_str raw) {
    hasher h = {.seed = seed, .sum = EW_JSON_STRING};
    const char *at = raw.ptr, *end = ew__json_end(raw);
    while (at < end) {
        const char *from = at;
        char utf8[4];
        size_t n = ew__json_plain_run(at, end, false);
        at += n;
        if (n == 0) {
            n = ew__json_utf8_put(ew__json_char(&at, end), utf8);
            from = utf8;
        }
        hash_bytes(&h, from, n);
    }
    hash_part(&h);
    return h.sum;
}

static uint64_t hash_number(const uint64_t seed[2], ew_str number) {
    hasher h = {.seed = seed, .sum = EW_JSON_NUMBER};
    ew__decimal d = ew__decimal_read(number);
    if (!d.zero) {
        const char *at = d.first;
        char c = d.negative ? '-' : '+';
        hash_bytes(&h, &c, 1);
        hash_bytes(&h, (const char *)&d.top, sizeof d.top);
        for (int digit = ew__decimal_digit(&d, &at); digit >= 0; digit = ew__decimal_digit(&d, &at)) {
            c = (char)digit;
            hash_bytes(&h, &c, 1);
        }
    }
    hash_part(&h);
    return h.sum;
}

static uint64_t hash_two(const uint64_t seed[2], uint64_t a, uint64_t b) {
    const uint64_t both[2] = {a, b};
    return ew__siphash13(seed, both, sizeof both);
}

uint64_t ew__value_hash(const uint64_t seed[2], ew__value value) {
    const ew__tape *tape = value.tape;
    ew_json_type type = ew__tape_type(tape, value.item);
    uint32_t end = ew__tape_end(tape, value.item);
    uint64_t sum = type;
    switch (type) {
    case EW_JSON_STRING:
        return hash_string(seed, ew__tape_string(tape, value.item));
    case EW_JSON_NUMBER:
        return hash_number(seed, ew__tape_scalar(tape, value.item));
    case EW_JSON_ARRAY:
        for (uint32_t i = value.item + 1; i < end; i = ew__tape_next_element(tape, i)) {
            sum = hash_two(seed, sum, ew__value_hash(seed, (ew__value){tape, i}));
        }
        return hash_two(seed, sum, type);
    case EW_JSON_OBJECT: /* a sum, for members have no order */
        for (uint32_t i = value.item + 1; i < end; i = ew__tape_next_member(tape, i)) {
            uint64_t name = hash_string(seed, ew__tape_string(tape, i));
            sum += hash_two(seed, name, ew__value_hash(seed, (ew__value){tape, i + 1}));
        }
        return hash_two(seed, sum, type);
    default:
        return hash_two(seed, type, (uint64_t)*ew__tape_at(tape, value.item));
    }
}

/* ---- lists of hashes ---- */

static bool before(const void *first, const void *second) {
    const ew__hashed *a = first, *b = second;
    return a->hash != b->hash ? a->hash < b->hash : a->item < b->item;
}

void ew__hashed_sort(ew__hashed *list, size_t n) { ew__sort(list, n, sizeof *list, before); }

size_t ew__hashed_find(const ew__hashed *list, size_t n, uint64_t hash) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && list[low].hash == hash ? low : n;
}

/* ---- equality ---- */

static bool same_string(ew_str a, ew_str b) {
    const char *p = a.ptr, *p_end = ew__json_end(a), *q = b.ptr, *q_end = ew__json_end(b);
    if (a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0)) {
        return true;
    }
    if ((a.len == 0 || memchr(a.ptr, '\\', a.len) == NULL) && (b.len == 0 || memchr(b.ptr, '\\', b.len) == NULL)) {
        return false;
    }
    while (p < p_end && q < q_end) {
        if (ew__json_char(&p, p_end) != ew__json_char(&q, q_end)) {
            return false;
        }
    }
    return p == p_end && q == q_end;
}

static bool same_number(ew_str a, ew_str b) {
    ew__decimal x = ew__decimal_read(a), y = ew__decimal_read(b);
    return ew__decimal_compare(&x, &y) == 0;
}

static void list_names(const uint64_t seed[2], ew__value object, ew__hashed *list) {
    size_t n = 0;
    uint32_t end = ew__tape_end(object.tape, object.item);
    for (uint32_t i = object.item + 1; i < end; i = ew__tape_next_member(object.tape, i)) {
        list[n++] = (ew__hashed){hash_string(seed, ew__tape_string(object.tape, i)), i};
    }
    ew__hashed_sort(list, n);
}

#define SMALL_OBJECT 16

/* Members in the order of their names' hashes; a name that stands twice keeps the order of the text. */
static ew_err same_object(const uint64_t seed[2], const ew_env *env, ew__value a, ew__value b, bool *ret) {
    size_t n = ew__tape_count(a.tape, a.item);
    ew__hashed small[2 * SMALL_OBJECT], *list = small;
    ew_err err = EW_OK;
    *ret = n == ew__tape_count(b.tape, b.item);
    if (!*ret) {
        return EW_OK;
    }
    if (n > SMALL_OBJECT) {
        list = ew__alloc(env, 2 * n * sizeof *list);
        if (list == NULL) {
            return EW_ENOMEM;
        }
    }
    list_names(seed, a, list);
    list_names(seed, b, list + n);
    for (size_t i = 0; err == EW_OK && *ret && i < n; i++) {
        uint32_t x = list[i].item, y = list[n + i].item;
        *ret = list[i].hash == list[n + i].hash && same_string(ew__tape_string(a.tape, x), ew__tape_string(b.tape, y));
        if (*ret) {
            err = ew__value_equal(seed, env, (ew__value){a.tape, x + 1}, (ew__value){b.tape, y + 1}, ret);
        }
    }
    if (list != small) {
        ew__free(env, list, 2 * n * sizeof *list);
    }
    return err;
}

static ew_err same_array(const uint64_t seed[2], const ew_env *env, ew__value a, ew__value b, bool *ret) {
    uint32_t i = a.item + 1, i_end = ew__tape_end(a.tape, a.item), j = b.item + 1, j_end = ew__tape_end(b.tape, b.item);
    ew_err err = EW_OK;
    *ret = true;
    while (err == EW_OK && *ret && i < i_end && j < j_end) {
        err = ew__value_equal(seed, env, (ew__value){a.tape, i}, (ew__value){b.tape, j}, ret);
        i = ew__tape_next_element(a.tape, i);
        j = ew__tape_next_element(b.tape, j);
    }
    *ret = *ret && i >= i_end && j >= j_end;
    return err;
}

ew_err ew__value_equal(const uint64_t seed[2], const ew_env *env, ew__value a, ew__value b, bool *ret) {
    ew_json_type type = ew__tape_type(a.tape, a.item);
    *ret = false;
    if (type != ew__tape_type(b.tape, b.item)) {
        return EW_OK;
    }
    switch (type) {
    case EW_JSON_STRING:
        *ret = same_string(ew__tape_string(a.tape, a.item), ew__tape_string(b.tape, b.item));
        return EW_OK;
    case EW_JSON_NUMBER:
        *ret = same_number(ew__tape_scalar(a.tape, a.item), ew__tape_scalar(b.tape, b.item));
        return EW_OK;
    case EW_JSON_ARRAY:
        return same_array(seed, env, a, b, ret);
    case EW_JSON_OBJECT:
        return same_object(seed, env, a, b, ret);
    default:
        *ret = *ew__tape_at(a.tape, a.item) == *ew__tape_at(b.tape, b.item);
        return EW_OK;
    }
}

/* Those of one hash lie side by side, and are hardly ever not equal. */
static ew_err look_for_twins(const uint64_t seed[2], const ew_env *env, const ew__tape *tape, const ew__hashed *list,
                             size_t n, bool *ret) {
    ew_err err = EW_OK;
    bool same = false;
    for (size_t i = 0; err == EW_OK && !same && i < n; i++) {
        for (size_t k = i + 1; err == EW_OK && !same && k < n && list[k].hash == list[i].hash; k++) {
            err = ew__value_equal(seed, env, (ew__value){tape, list[i].item}, (ew__value){tape, list[k].item}, &same);
        }
    }
    *ret = !same;
    return err;
}

#define SMALL_SET 32

ew_err ew__value_unique(const uint64_t seed[2], const ew_env *env, ew__value array, bool *ret) {
    ew__hashed small[SMALL_SET], *list = small;
    size_t n = ew__tape_count(array.tape, array.item), k = 0;
    if (n > SMALL_SET) {
        list = ew__alloc(env, n * sizeof *list);
        if (list == NULL) {
            return EW_ENOMEM;
        }
    }
    for (uint32_t i = array.item + 1; k < n; i = ew__tape_next_element(array.tape, i)) {
        list[k++] = (ew__hashed){ew__value_hash(seed, (ew__value){array.tape, i}), i};
    }
    ew__hashed_sort(list, n);
    ew_err err = look_for_twins(seed, env, array.tape, list, n, ret);
    if (list != small) {
        ew__free(env, list, n * sizeof *list);
    }
    return err;
}
