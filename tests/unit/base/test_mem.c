/*
 * tests/unit/base/test_mem.c: the words for the env's allocator, and the pool of blocks.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "support/fail_env.h"

static void test_base_mem__sizes_go_back_as_they_came(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    char *p = ew__alloc(&t.env, 10);
    p = ew__realloc(&t.env, p, 10, 1000);
    memset(p, 1, 1000);
    p = ew__realloc(&t.env, p, 1000, 7);
    assert_int_equal(ew__test_env_live_bytes(&t), 7);
    ew__free(&t.env, p, 7);
    ew__free(&t.env, NULL, 123);
    p = ew__realloc(&t.env, NULL, 0, 5);
    assert_non_null(p);
    ew__free(&t.env, p, 5);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_mem__no_bytes_is_a_block_too(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    void *p = ew__alloc(&t.env, 0);
    assert_non_null(p);
    p = ew__realloc(&t.env, p, 0, 20);
    assert_non_null(p);
    p = ew__realloc(&t.env, p, 20, 0);
    assert_non_null(p);
    assert_int_equal(ew__test_env_live_blocks(&t), 1);
    ew__free(&t.env, p, 0);
    p = ew__zalloc(&t.env, 0);
    assert_non_null(p);
    ew__free(&t.env, p, 0);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_mem__zalloc_clears(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    const uint8_t zeros[100] = {0};
    uint8_t *p = ew__alloc(&t.env, 100);
    assert_memory_not_equal(p, zeros, 100);
    uint8_t *z = ew__zalloc(&t.env, 100);
    assert_memory_equal(z, zeros, 100);
    ew__free(&t.env, p, 100);
    ew__free(&t.env, z, 100);
    ew__test_env_fail_at(&t, 1, true);
    assert_null(ew__zalloc(&t.env, 100));
    assert_null(ew__alloc(&t.env, 100));
}

static void test_base_mem__failed_realloc_leaves_the_block(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    char *p = ew__alloc(&t.env, 4);
    memcpy(p, "keep", 4);
    ew__test_env_fail_at(&t, 1, false);
    assert_null(ew__realloc(&t.env, p, 4, 400));
    assert_memory_equal(p, "keep", 4);
    ew__free(&t.env, p, 4);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_mem__pool_keeps_at_most_max_free(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__blocks pool;
    ew__blocks_init(&pool, &t.env, 3);
    ew__block *blocks[5];
    for (int i = 0; i < 5; i++) {
        blocks[i] = ew__block_get(&pool);
        assert_non_null(blocks[i]);
        assert_int_equal(blocks[i]->start, 0);
        assert_int_equal(blocks[i]->end, 0);
        assert_null(blocks[i]->next);
        memset(blocks[i]->data, i, sizeof(blocks[i]->data));
        blocks[i]->start = 5;
        blocks[i]->end = 6;
    }
    assert_int_equal(ew__test_env_live_bytes(&t), 5 * EW__BLOCK_SIZE);
    const uint32_t expected[] = {1, 2, 3, 3, 3};
    for (int i = 0; i < 5; i++) {
        ew__block_put(&pool, blocks[i]);
        assert_int_equal(pool.n_free, expected[i]);
    }
    ew__block_put(&pool, NULL);
    assert_int_equal(ew__test_env_live_blocks(&t), 3);
    ew__blocks_done(&pool);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_mem__steady_traffic_allocates_nothing(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__blocks pool;
    ew__blocks_init(&pool, &t.env, 2);
    for (int i = 0; i < 100; i++) {
        ew__block *a = ew__block_get(&pool);
        ew__block *b = ew__block_get(&pool);
        assert_ptr_not_equal(a, b);
        assert_int_equal(b->start + b->end + a->start + a->end, 0);
        a->end = b->end = 9;
        ew__block_put(&pool, a);
        ew__block_put(&pool, b);
    }
    assert_int_equal(ew__test_env_allocations(&t), 2);
    ew__blocks_trim(&pool, 2);
    assert_int_equal(pool.n_free, 2);
    ew__blocks_trim(&pool, 1);
    assert_int_equal(ew__test_env_live_blocks(&t), 1);
    ew__blocks_done(&pool);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_mem__pool_without_memory(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__blocks pool;
    ew__blocks_init(&pool, &t.env, 0);
    ew__test_env_fail_at(&t, 1, false);
    assert_null(ew__block_get(&pool));
    ew__block *block = ew__block_get(&pool);
    assert_non_null(block);
    ew__block_put(&pool, block);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
    ew__blocks_done(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_mem__sizes_go_back_as_they_came),
        cmocka_unit_test(test_base_mem__no_bytes_is_a_block_too),
        cmocka_unit_test(test_base_mem__zalloc_clears),
        cmocka_unit_test(test_base_mem__failed_realloc_leaves_the_block),
        cmocka_unit_test(test_base_mem__pool_keeps_at_most_max_free),
        cmocka_unit_test(test_base_mem__steady_traffic_allocates_nothing),
        cmocka_unit_test(test_base_mem__pool_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
