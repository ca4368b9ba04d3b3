/*
 * tests/unit/base/test_map.c: the hash map and its hash.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/util.h"
#include "support/fail_env.h"

/* ---- the hash ---- */

/* SipHash-c-d in its plainest form, the rounds as arguments, so that the published vector of 2-4 proves it. */
static uint64_t rotl(uint64_t x, int b) { return x << b | x >> (64 - b); }

static void rounds(uint64_t v[4], int n) {
    for (int i = 0; i < n; i++) {
        v[0] += v[1];
        v[1] = rotl(v[1], 13);
        v[1] ^= v[0];
        v[0] = rotl(v[0], 32);
        v[2] += v[3];
        v[3] = rotl(v[3], 16);
        v[3] ^= v[2];
        v[0] += v[3];
        v[3] = rotl(v[3], 21);
        v[3] ^= v[0];
        v[2] += v[1];
        v[1] = rotl(v[1], 17);
        v[1] ^= v[2];
        v[2] = rotl(v[2], 32);
    }
}

static uint64_t sip(const uint64_t k[2], const uint8_t *bytes, size_t n, int c, int d) {
    static const char text[] = "somepseudorandomlygeneratedbytes";
    uint64_t v[4];
    for (int i = 0; i < 4; i++) {
        v[i] = 0;
        for (int j = 0; j < 8; j++) {
            v[i] = v[i] << 8 | (uint8_t)text[8 * i + j];
        }
        v[i] ^= k[i & 1];
    }
    for (size_t at = 0; at <= n; at += 8) {
        uint64_t m = 0;
        for (size_t j = 0; j < 8 && at + j < n; j++) {
            m |= (uint64_t)bytes[at + j] << (8 * j);
        }
        if (n - at < 8) {
            m |= (uint64_t)(n & 255) << 56;
        }
        v[3] ^= m;
        rounds(v, c);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    rounds(v, d);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static const uint64_t counting_key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

static void test_base_map__siphash_against_plain_form(void **state) {
    (void)state;
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    assert_true(sip(counting_key, bytes, 15, 2, 4) == 0xa129ca6149be45e5u); /* the example of the paper */
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        assert_true(ew__siphash13(counting_key, bytes, n) == sip(counting_key, bytes, n, 1, 3));
    }
    assert_true(ew__siphash13(counting_key, NULL, 0) == 0xabac0158050fc4dcu);
}

/* What another implementation (CPython's hash of bytes with the zero key) answers for the bytes 0, 1, ..., n - 1. */
static void test_base_map__siphash_against_another_implementation(void **state) {
    (void)state;
    static const struct {
        size_t n;
        uint64_t hash;
    } rows[] = {
        {1, 0x68a914128e01e473u},  {2, 0x010bac45c41e3669u},  {3, 0x4d4c9a4a8ef6e0adu},  {7, 0x2f098ab0c751325au},
        {8, 0xead411e67ebe2eeau},  {9, 0x75927f9d95124362u},  {15, 0xf30eb725bb91c9eau}, {16, 0x8972188433a5c5b7u},
        {17, 0x4883c49a2c009c1du}, {63, 0x385d3e39e5f37359u},
    };
    const uint64_t zero[2] = {0, 0};
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(ew__siphash13(zero, bytes, rows[i].n) == rows[i].hash);
    }
}

/* ---- the map ---- */

/* All that must hold between entries and slots. Returns the longest way from an executor slot to its entry. */
static uint32_t check(const ew__map *map) {
    uint32_t used = 0, longest = 0;
    assert_true(map->n <= map->cap || map->n == 0);
    assert_true((map->n_slots & (map->n_slots - 1)) == 0);
    assert_true(map->n <= map->n_slots / 4 * 3);
    for (uint32_t i = 0; i < map->n_slots; i++) {
        if (map->slots[i] == 0) {
            continue;
        }
        used++;
        assert_true(map->slots[i] <= map->n);
        const ew__map_entry *entry = &map->entries[map->slots[i] - 1];
        uint32_t way = (i - (uint32_t)entry->hash) & (map->n_slots - 1);
        for (uint32_t k = 0; k <= way; k++) {
            assert_int_not_equal(map->slots[(i - k) & (map->n_slots - 1)], 0);
        }
        longest = way > longest ? way : longest;
    }
    assert_int_equal(used, map->n);
    return longest;
}

static void test_base_map__put_get_remove(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__map map;
    int a, b, c;
    ew__map_init(&map, &t.env);
    assert_null(ew__map_get(&map, EW_STR("a")));
    assert_null(ew__map_remove(&map, EW_STR("a")));
    assert_int_equal(ew__test_env_allocations(&t), 0);
    assert_int_equal(ew__map_put(&map, EW_STR("a"), &a), EW_OK);
    assert_int_equal(ew__map_put(&map, EW_STR(""), &b), EW_OK);
    assert_int_equal(ew__map_put(&map, EW_STR("a\0x"), &c), EW_OK);
    assert_ptr_equal(ew__map_get(&map, EW_STR("a")), &a);
    assert_ptr_equal(ew__map_get(&map, ew__str(NULL, 0)), &b);
    assert_ptr_equal(ew__map_get(&map, EW_STR("a\0x")), &c);
    assert_null(ew__map_get(&map, EW_STR("a\0y")));
    assert_null(ew__map_get(&map, EW_STR("A")));
    assert_null(ew__map_remove(&map, EW_STR("b")));
    assert_int_equal(map.n, 3);

    char key[] = "a";
    assert_int_equal(ew__map_put(&map, ew__str(key, 1), &b), EW_OK); /* replaces value and key */
    assert_int_equal(map.n, 3);
    assert_ptr_equal(ew__map_get(&map, EW_STR("a")), &b);
    assert_ptr_equal(map.entries[0].key.ptr, key);

    assert_ptr_equal(ew__map_remove(&map, EW_STR("a")), &b);
    assert_null(ew__map_get(&map, EW_STR("a")));
    assert_null(ew__map_remove(&map, EW_STR("a")));
    assert_ptr_equal(map.entries[0].value, &c); /* the last moved into the gap */
    assert_ptr_equal(map.entries[1].value, &b);
    (void)check(&map);
    ew__map_done(&map);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
    assert_null(ew__map_get(&map, EW_STR("a")));
    ew__map_done(&map);
}

/* Two keys with the same hash cannot be found in time; the entry is bent by hand instead. */
static void test_base_map__same_hash_is_not_same_key(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__map map;
    int a, b;
    ew__map_init(&map, &t.env);
    assert_int_equal(ew__map_put(&map, EW_STR("a"), &a), EW_OK);
    map.entries[0].hash = ew__siphash13(map.seed, "b", 1);
    memset(map.slots, 0, map.n_slots * sizeof(*map.slots));
    map.slots[map.entries[0].hash & (map.n_slots - 1)] = 1;
    assert_null(ew__map_get(&map, EW_STR("b")));
    assert_int_equal(ew__map_put(&map, EW_STR("b"), &b), EW_OK);
    assert_int_equal(map.n, 2);
    assert_ptr_equal(ew__map_get(&map, EW_STR("b")), &b);
    assert_ptr_equal(ew__map_remove(&map, EW_STR("b")), &b);
    assert_int_equal(map.n, 1);
    ew__map_done(&map);
}

enum { N_KEYS = 3000 };

static char key_bytes[N_KEYS][24];

static ew_str key_of(size_t i) {
    (void)snprintf(key_bytes[i], sizeof(key_bytes[i]), "/flow/action-%zu", i);
    return ew_str_from(key_bytes[i]);
}

static void test_base_map__order_of_insertion_and_growth(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 2);
    ew__map map;
    ew__map_init(&map, &t.env);
    for (size_t i = 0; i < N_KEYS; i++) {
        assert_int_equal(ew__map_put(&map, key_of(i), key_bytes[i]), EW_OK);
        uint32_t slots = 16;
        while (slots / 4 * 3 < i + 1) {
            slots *= 2;
        }
        assert_int_equal(map.n_slots, slots);
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        assert_ptr_equal(map.entries[i].value, key_bytes[i]);
        assert_ptr_equal(ew__map_get(&map, key_of(i)), key_bytes[i]);
    }
    (void)check(&map);
    ew__map_done(&map);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

/* Random puts and removes beside an array that says what must be there. */
static void test_base_map__random_operations_against_a_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        ew__test_env t;
        ew__test_env_init(&t, seed);
        ew__rng rng;
        ew__rng_init(&rng, &t.env);
        ew__map map;
        ew__map_init(&map, &t.env);
        void *model[N_KEYS] = {NULL};
        size_t n = 0;
        size_t range = seed == 1 ? 12 : seed == 2 ? 13 : 200 * seed;
        for (int step = 0; step < 20000; step++) {
            uint64_t r = ew__rng_next(&rng);
            size_t i = (size_t)(r >> 20) % range;
            void *value = key_bytes[(r >> 40) % N_KEYS];
            if (r % 5 < 2) {
                n += model[i] == NULL;
                assert_int_equal(ew__map_put(&map, key_of(i), value), EW_OK);
                model[i] = value;
            } else if (r % 5 < 4) {
                n -= model[i] != NULL;
                assert_ptr_equal(ew__map_remove(&map, key_of(i)), model[i]);
                model[i] = NULL;
            } else {
                assert_ptr_equal(ew__map_get(&map, key_of(i)), model[i]);
            }
            assert_int_equal(map.n, n);
            if (step % 512 == 0) {
                (void)check(&map);
            }
        }
        for (size_t i = 0; i < range; i++) {
            assert_ptr_equal(ew__map_get(&map, key_of(i)), model[i]);
        }
        (void)check(&map);
        ew__map_done(&map);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
    }
}

/* Steady change at a constant size must neither grow the map nor fill it with remains. */
static void test_base_map__churn_does_not_grow(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 3);
    ew__map map;
    ew__map_init(&map, &t.env);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(ew__map_put(&map, key_of(i), &map), EW_OK);
    }
    for (size_t i = 0; i + 12 < N_KEYS; i++) {
        assert_ptr_equal(ew__map_remove(&map, key_of(i)), &map);
        assert_int_equal(ew__map_put(&map, key_of(i + 12), &map), EW_OK);
    }
    assert_int_equal(map.n_slots, 16);
    assert_int_equal(ew__test_env_allocations(&t), 2);
    (void)check(&map);
    ew__map_done(&map);
}

/*
 * Keys that an attacker could pick: counting numbers, one byte apart, long common beginnings. With a keyed hash they
 * spread as chance would: at a load of at most 3/4 no key of 100,000 is far from its executor.
 */
static void test_base_map__many_keys_stay_near_their_home(void **state) {
    (void)state;
    enum { N = 98304 }; /* 3/4 of 2^17: the table as full as it gets */
    static char keys[N][48];
    for (uint64_t seed = 1; seed <= 3; seed++) {
        ew__test_env t;
        ew__test_env_init(&t, seed);
        ew__map map;
        ew__map_init(&map, &t.env);
        for (size_t i = 0; i < N; i++) {
            int n = snprintf(keys[i], sizeof(keys[i]), "aaaaaaaaaaaaaaaaaaaaaaaa%016zx", i << (8 * (seed - 1)));
            assert_int_equal(n, 40);
            assert_int_equal(ew__map_put(&map, ew__str(keys[i], 40), keys[i]), EW_OK);
        }
        assert_int_equal(map.n, N);
        uint32_t longest = check(&map);
        print_message("seed %llu: %u keys, longest way %u\n", (unsigned long long)seed, map.n, longest);
        assert_in_range(longest, 1, 400);
        ew__map_done(&map);
    }
}

static void test_base_map__seeds_differ(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__map a, b;
    ew__map_init(&a, &t.env);
    ew__map_init(&b, &t.env);
    assert_memory_not_equal(a.seed, b.seed, sizeof(a.seed));
    ew__map_done(&a);
    ew__map_done(&b);
}

static void test_base_map__every_allocation_may_fail(void **state) {
    (void)state;
    bool passed = false;
    for (uint64_t n = 1; !passed; n++) {
        ew__test_env t;
        ew__test_env_init(&t, n);
        ew__map map;
        ew__map_init(&map, &t.env);
        ew__test_env_fail_at(&t, n, false);
        for (size_t i = 0; i < 500; i++) {
            ew_err err = ew__map_put(&map, key_of(i), key_bytes[i]);
            if (err != EW_OK) {
                assert_int_equal(err, EW_ENOMEM);
                assert_int_equal(map.n, i);
                assert_null(ew__map_get(&map, key_of(i)));
                for (size_t k = 0; k < i; k++) {
                    assert_ptr_equal(ew__map_get(&map, key_of(k)), key_bytes[k]);
                }
                (void)check(&map);
                assert_int_equal(ew__map_put(&map, key_of(i), key_bytes[i]), EW_OK);
            }
        }
        passed = ew__test_env_failed(&t) == 0;
        for (size_t i = 0; i < 500; i++) {
            assert_ptr_equal(ew__map_remove(&map, key_of(i)), key_bytes[i]);
        }
        ew__map_done(&map);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_map__siphash_against_plain_form),
        cmocka_unit_test(test_base_map__siphash_against_another_implementation),
        cmocka_unit_test(test_base_map__put_get_remove),
        cmocka_unit_test(test_base_map__same_hash_is_not_same_key),
        cmocka_unit_test(test_base_map__order_of_insertion_and_growth),
        cmocka_unit_test(test_base_map__random_operations_against_a_model),
        cmocka_unit_test(test_base_map__churn_does_not_grow),
        cmocka_unit_test(test_base_map__many_keys_stay_near_their_home),
        cmocka_unit_test(test_base_map__seeds_differ),
        cmocka_unit_test(test_base_map__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
