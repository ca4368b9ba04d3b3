/*
 * Tests of base/budget.h: the limit at n - 1, n and n + 1, the reserve, and that every byte is counted
 * once, also when the inner env fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/budget.h"
#include "call/context.h"
#include "base/mem.h"
#include "support/fail_env.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAX (8 * EW__BUDGET_LARGE)
#define RESERVE (MAX / 8)

typedef struct world {
    ew__test_env t;
    ew__budget *budget;
} world;

static void init(world *w) {
    ew__test_env_init(&w->t, 1);
    w->budget = ew__budget_new(&w->t.env, MAX);
    assert_non_null(w->budget);
}

static void finish(world *w) {
    assert_int_equal(ew__budget_used(w->budget), 0);
    ew__budget_release(w->budget);
    assert_int_equal(ew__test_env_live_blocks(&w->t), 0);
}

static void test_base_budget__large(void **state) {
    (void)state;
    world w;
    init(&w);
    const ew_env *env = &w.budget->env;
    void *first = ew__alloc(env, MAX - EW__BUDGET_LARGE - 1);
    assert_non_null(first);
    assert_null(ew__alloc(env, EW__BUDGET_LARGE + 2));
    void *second = ew__alloc(env, EW__BUDGET_LARGE);
    assert_non_null(second);
    assert_int_equal(ew__budget_used(w.budget), MAX - 1);
    assert_false(ew__budget_is_spent(w.budget));
    second = ew__realloc(env, second, EW__BUDGET_LARGE, EW__BUDGET_LARGE + 1);
    assert_true(ew__budget_is_spent(w.budget));
    assert_null(ew__realloc(env, second, EW__BUDGET_LARGE + 1, EW__BUDGET_LARGE + 2));
    assert_int_equal(ew__budget_used(w.budget), MAX);
    ew__free(env, first, MAX - EW__BUDGET_LARGE - 1);
    ew__free(env, second, EW__BUDGET_LARGE + 1);
    finish(&w);
}

static void test_base_budget__small_ones_have_a_reserve(void **state) {
    (void)state;
    world w;
    init(&w);
    const ew_env *env = &w.budget->env;
    void *all = ew__alloc(env, MAX);
    void *small = ew__alloc(env, RESERVE - 1);
    assert_non_null(all);
    assert_non_null(small);
    assert_null(ew__alloc(env, 2));
    void *last = ew__alloc(env, 1);
    assert_non_null(last);
    assert_null(ew__alloc(env, 1));
    ew__free(env, last, 1);
    ew__free(env, small, RESERVE - 1);
    ew__free(env, all, MAX);
    finish(&w);
}

static void test_base_budget__a_failed_allocation_is_not_counted(void **state) {
    (void)state;
    world w;
    init(&w);
    const ew_env *env = &w.budget->env;
    void *block = ew__alloc(env, 100);
    ew__test_env_fail_at(&w.t, 1, false);
    assert_null(ew__alloc(env, 50));
    ew__test_env_fail_at(&w.t, 1, false);
    assert_null(ew__realloc(env, block, 100, 300));
    assert_int_equal(ew__budget_used(w.budget), 100);
    block = ew__realloc(env, block, 100, 40);
    assert_int_equal(ew__budget_used(w.budget), 40);
    ew__free(env, block, 40);
    finish(&w);
}

static void test_base_budget__set(void **state) {
    (void)state;
    world w;
    init(&w);
    const ew_env *env = &w.budget->env;
    void *block = ew__alloc(env, 1000);
    ew__budget_set(w.budget, &w.t.env, 1000);
    assert_true(ew__budget_is_spent(w.budget));
    ew__budget_set(w.budget, &w.t.env, UINT64_MAX);
    assert_false(ew__budget_is_spent(w.budget));
    void *more = ew__alloc(env, EW__BUDGET_LARGE);
    assert_non_null(more);
    ew__free(env, more, EW__BUDGET_LARGE);
    ew__free(env, block, 1000);
    finish(&w);
}

/* Memory that outlives the owner keeps the env. */
static void test_base_budget__outlives_its_owner(void **state) {
    (void)state;
    world w;
    init(&w);
    const ew_env *env = &w.budget->env;
    void *block = ew__alloc(env, 100);
    ew__budget_release(w.budget);
    block = ew__realloc(env, block, 100, 200);
    assert_int_equal(ew__test_env_live_blocks(&w.t), 2);
    ew__free(env, block, 200);
    assert_int_equal(ew__test_env_live_blocks(&w.t), 0);
    ew__test_env_fail_at(&w.t, 1, false);
    assert_null(ew__budget_new(&w.t.env, MAX));
}

/* Under AddressSanitizer a freed call must not be reused at once (EW__POOL_KEEP). */
static void test_base_budget__pools_of_a_home(void **state) {
    (void)state;
    world w;
    ew_limits limits = {.calls = 0};
    ew__executor executor = {.ops = NULL};
    init(&w);
    ew_limits_complete(&limits);
    ew__executor_init(&executor, &w.budget->env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    uint64_t before = ew__budget_used(w.budget);
    ew__piece_put(&calls.memory, ew__piece_get(&calls.memory));
    ew__piece_put(&calls.pieces, ew__piece_get(&calls.pieces));
    ew__block_put(&executor.blocks, ew__block_get(&executor.blocks));
    uint64_t kept = ew__budget_used(w.budget) - before;
    assert_int_equal(kept, EW__POOL_KEEP(1) * (calls.memory.size + calls.pieces.size + EW__BLOCK_SIZE));
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    finish(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_budget__large),
        cmocka_unit_test(test_base_budget__small_ones_have_a_reserve),
        cmocka_unit_test(test_base_budget__a_failed_allocation_is_not_counted),
        cmocka_unit_test(test_base_budget__set),
        cmocka_unit_test(test_base_budget__outlives_its_owner),
        cmocka_unit_test(test_base_budget__pools_of_a_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
