/*
 * tests/unit/base/test_arena.c: the bump arena.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/util.h"
#include "support/fail_env.h"

static bool is_aligned(const void *ptr) { return ((uintptr_t)ptr & 15) == 0; }

static void test_base_arena__random_sizes_do_not_overlap(void **state) {
    (void)state;
    const uint64_t seed = 20260101;
    print_message("seed %llu\n", (unsigned long long)seed);
    ew__test_env t;
    ew__test_env_init(&t, seed);
    ew__rng rng;
    ew__rng_init(&rng, &t.env);
    uint8_t first[777];
    ew__arena arena;
    ew__arena_init(&arena, &t.env, first + 1, sizeof(first) - 1);
    enum { N = 2000 };
    uint8_t *ptr[N];
    size_t size[N];
    for (int i = 0; i < N; i++) {
        uint64_t r = ew__rng_next(&rng);
        size[i] = (size_t)(r >> 8) % (r % 50 == 0 ? 40000 : 100);
        ptr[i] = ew__arena_alloc(&arena, size[i]);
        assert_non_null(ptr[i]);
        assert_true(is_aligned(ptr[i]));
        assert_true(ew__arena_owns(&arena, first + 1, sizeof(first) - 1, ptr[i]));
        memset(ptr[i], i & 255, size[i]);
    }
    for (int i = 0; i < N; i++) {
        for (size_t k = 0; k < size[i]; k++) {
            assert_int_equal(ptr[i][k], i & 255);
        }
    }
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

#if !defined(EW_DEBUG_ARENA)
static void test_base_arena__first_piece_to_its_last_byte(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    _Alignas(16) uint8_t first[256];
    ew__arena arena;
    ew__arena_init(&arena, &t.env, first, sizeof(first));
    assert_ptr_equal(ew__arena_alloc(&arena, 1), first);
    assert_ptr_equal(ew__arena_alloc(&arena, 240), first + 16);
    assert_int_equal(ew__test_env_allocations(&t), 0);
    assert_non_null(ew__arena_alloc(&arena, 1));
    assert_int_equal(ew__test_env_allocations(&t), 1);
    ew__arena_done(&arena);

    ew__arena_init(&arena, &t.env, first, sizeof(first));
    uint8_t *p = ew__arena_alloc(&arena, 257);
    assert_int_equal(ew__test_env_allocations(&t), 2);
    memset(p, 1, 257);
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_arena__pieces_double_to_64_kib(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__arena arena;
    ew__arena_init(&arena, &t.env, NULL, 0);
    for (int i = 0; i < 10000; i++) {
        assert_non_null(ew__arena_alloc(&arena, 100));
    }
    /* 1 + 2 + ... + 32 KiB, then 64 KiB each, for 1.12 MB */
    assert_in_range(ew__test_env_allocations(&t), 20, 26);
    while (arena.end - arena.at >= 16 * 1024) {
        assert_non_null(ew__arena_alloc(&arena, 1000));
    }
    uint64_t before = ew__test_env_allocations(&t);
    uint8_t *at = arena.at;
    void *large = ew__arena_alloc(&arena, 300000);
    assert_non_null(large);
    assert_int_equal(ew__test_env_allocations(&t), before + 1);
    assert_ptr_equal(arena.at, at);                      /* the current piece goes on being used */
    assert_non_null(ew__arena_alloc(&arena, 16 * 1024)); /* the smallest that is large */
    assert_ptr_equal(arena.at, at);
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}
#else
static void test_base_arena__each_allocation_is_its_own(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    uint8_t first[256];
    ew__arena arena;
    ew__arena_init(&arena, &t.env, first, sizeof(first));
    for (uint64_t i = 1; i < 50; i++) {
        assert_non_null(ew__arena_alloc(&arena, i));
        assert_int_equal(ew__test_env_live_blocks(&t), i);
    }
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}
#endif

static void test_base_arena__small_first_pieces(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    _Alignas(16) uint8_t room[96];
    for (size_t offset = 0; offset < 16; offset++) {
        for (size_t size = 0; size <= 64; size++) {
            ew__arena arena;
            memset(room, 0xee, sizeof(room));
            ew__arena_init(&arena, &t.env, room + offset, size);
            for (int i = 0; i < 6; i++) {
                size_t n = 1 + (size_t)i * 7 % 17;
                uint8_t *p = ew__arena_alloc(&arena, n);
                assert_true(p != NULL && is_aligned(p));
                memset(p, 0, n);
            }
            for (size_t i = 0; i < sizeof(room); i++) {
                assert_true(room[i] == 0xee || (i >= offset && i < offset + size));
            }
            ew__arena_done(&arena);
        }
    }
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_arena__copies(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__arena arena;
    ew__arena_init(&arena, &t.env, NULL, 0);
    assert_non_null(ew__arena_copy(&arena, NULL, 0));
    char text[] = "hello";
    char *copy = ew__arena_copy(&arena, text, 5);
    ew_str str = {0};
    assert_int_equal(ew__arena_str(&arena, ew__str(text, 5), &str), EW_OK);
    text[0] = 'j';
    assert_memory_equal(copy, "hello", 5);
    assert_true(ew__str_is(str, EW_STR("hello")));
    assert_ptr_not_equal(str.ptr, copy);
    assert_int_equal(ew__arena_str(&arena, ew__str(text, 0), &str), EW_OK);
    assert_int_equal(str.len, 0);
    assert_int_equal(ew__arena_str(&arena, ew__str(NULL, 0), &str), EW_OK);
    assert_int_equal(str.len, 0);
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_arena__adopts_and_owns(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    _Alignas(16) uint8_t first[64];
    ew__arena arena;
    ew__arena_init(&arena, &t.env, first, sizeof(first));
    uint8_t *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = ew__alloc(&t.env, 10 + i);
        assert_false(ew__arena_owns(&arena, first, sizeof(first), blocks[i]));
        assert_int_equal(ew__arena_adopt(&arena, blocks[i], 10 + i), EW_OK);
    }
    assert_int_equal(ew__arena_adopt(&arena, NULL, 0), EW_OK);
    for (size_t i = 0; i < 20; i++) {
        assert_true(ew__arena_owns(&arena, first, sizeof(first), blocks[i]));
        assert_true(ew__arena_owns(&arena, first, sizeof(first), blocks[i] + 9 + i));
    }
    assert_true(ew__arena_owns(&arena, first, sizeof(first), first));
    assert_true(ew__arena_owns(&arena, first, sizeof(first), first + 63));
    assert_false(ew__arena_owns(&arena, first, sizeof(first), first + 64));
    assert_false(ew__arena_owns(&arena, first, sizeof(first), &arena));
    assert_false(ew__arena_owns(&arena, NULL, 0, NULL));
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
    /* Done leaves an empty arena that may be used and done again. */
    assert_non_null(ew__arena_alloc(&arena, 10));
    ew__arena_done(&arena);
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_arena__too_large_is_no_memory(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__arena arena;
    ew__arena_init(&arena, &t.env, NULL, 0);
    for (size_t less = 0; less < 80; less++) {
        assert_null(ew__arena_alloc(&arena, SIZE_MAX - less));
    }
    assert_non_null(ew__arena_alloc(&arena, 1));
    ew__arena_done(&arena);
}

/* Uses all functions; true if all of them succeeded. On failure the adopted block stays ours. */
static bool use(ew__test_env *t, ew__arena *arena) {
    ew_str copy;
    bool ok = true;
    for (int i = 0; i < 30; i++) {
        ok = ew__arena_alloc(arena, 500) != NULL && ok;
        ok = ew__arena_alloc(arena, 70000) != NULL && ok;
        ok = ew__arena_str(arena, EW_STR("some text"), &copy) == EW_OK && ok;
        void *block = ew__alloc(&t->env, 50);
        if (block == NULL || ew__arena_adopt(arena, block, 50) != EW_OK) {
            ew__free(&t->env, block, 50);
            ok = false;
        }
    }
    return ok;
}

static void test_base_arena__every_allocation_may_fail(void **state) {
    (void)state;
    for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
        bool ok = false;
        for (uint64_t n = 1; !ok; n++) {
            ew__test_env t;
            ew__test_env_init(&t, n);
            ew__arena arena;
            ew__arena_init(&arena, &t.env, NULL, 0);
            ew__test_env_fail_at(&t, n, from_then_on != 0);
            ok = use(&t, &arena);
            assert_int_equal(ok, ew__test_env_failed(&t) == 0);
            ew__arena_done(&arena);
            assert_int_equal(ew__test_env_live_blocks(&t), 0);
            assert_true(n < 1000);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_arena__random_sizes_do_not_overlap),
#if !defined(EW_DEBUG_ARENA)
        cmocka_unit_test(test_base_arena__first_piece_to_its_last_byte),
        cmocka_unit_test(test_base_arena__pieces_double_to_64_kib),
#else
        cmocka_unit_test(test_base_arena__each_allocation_is_its_own),
#endif
        cmocka_unit_test(test_base_arena__small_first_pieces),
        cmocka_unit_test(test_base_arena__copies),
        cmocka_unit_test(test_base_arena__adopts_and_owns),
        cmocka_unit_test(test_base_arena__too_large_is_no_memory),
        cmocka_unit_test(test_base_arena__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
