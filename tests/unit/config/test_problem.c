/*
 * tests/unit/config/test_problem.c: the list of problems: order, limit, what it makes of long and of strange texts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/problem.h"
#include "support/fail_env.h"
#include <stdio.h>
#include <string.h>

typedef struct list {
    ew__test_env env;
    ew__arena arena;
    ew__problems problems;
} list;

static void list_init(list *l) {
    ew__test_env_init(&l->env, 1);
    ew__arena_init(&l->arena, &l->env.env, NULL, 0);
    ew__problems_init(&l->problems, &l->arena);
}

static void list_done(list *l) {
    ew__arena_done(&l->arena);
    assert_int_equal(ew__test_env_live_blocks(&l->env), 0);
}

static void test_config_problem__order(void **state) {
    (void)state;
    static const unsigned places[][2] = {{3, 1}, {1, 9}, {0, 0}, {3, 1}, {1, 2}, {2, 5}};
    static const char order[] = "cebfad";
    list l;
    list_init(&l);
    for (unsigned i = 0; i < 6; i++) {
        ew__problem_add(&l.problems, places[i][0], places[i][1], "%c", (int)('a' + i));
    }
    ew__problems_sort(&l.problems);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(l.problems.list[i].message[0], order[i]);
    }
    list_done(&l);
}

static void test_config_problem__limit(void **state) {
    (void)state;
    list l;
    list_init(&l);
    for (unsigned i = 1; i <= EW__PROBLEMS_MAX + 7; i++) {
        ew__problem_add(&l.problems, i, 1, "x");
    }
    assert_int_equal(l.problems.n, EW__PROBLEMS_MAX);
    assert_int_equal(l.problems.left_out, 7);
    assert_false(l.problems.no_memory);
    list_done(&l);
}

/* No byte of a file reaches a terminal that could drive it, and no character is cut in two. */
static void test_config_problem__texts(void **state) {
    (void)state;
    char text[700];
    list l;
    list_init(&l);
    ew__problem_add(&l.problems, 1, 1, "a\nb\033[1m%s", "\x7f\x01");
    assert_string_equal(l.problems.list[0].message, "a?b?[1m??");
    for (size_t start = 0; start < 4; start++) { /* a character of three bytes at every place of the cut */
        memset(text, 'x', sizeof text);
        for (size_t i = start; i + 3 < sizeof text; i += 3) {
            memcpy(text + i, "\xe2\x82\xac", 3);
        }
        text[sizeof text - 1] = 0;
        ew__problem_add(&l.problems, 1, 1, "%s", text);
        const char *message = l.problems.list[l.problems.n - 1].message;
        size_t n = strlen(message);
        assert_true(n > 500 && n < 512 && (n - start) % 3 == 0);
        ew__shown shown = ew__show((ew_str){text, 600});
        size_t m = strlen(shown.text);
        assert_true(m > 55 && m <= 63 && (m - 3 - start) % 3 == 0);
        assert_string_equal(shown.text + m - 3, "...");
    }
    assert_string_equal(ew__show((ew_str){NULL, 0}).text, "");
    assert_string_equal(ew__show((ew_str){"abc", 2}).text, "ab");
    list_done(&l);
}

static void test_config_problem__memory(void **state) {
    (void)state;
    list l;
    list_init(&l);
    ew__test_env_fail_at(&l.env, 1, true);
    ew__problem_add(&l.problems, 1, 1, "x");
    assert_true(l.problems.no_memory);
    assert_int_equal(l.problems.n, 0);
    list_done(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_problem__order),
        cmocka_unit_test(test_config_problem__limit),
        cmocka_unit_test(test_config_problem__texts),
        cmocka_unit_test(test_config_problem__memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
