/*
 * tests/unit/base/test_buf.c: the growing buffer.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/util.h"
#include "support/fail_env.h"

static void test_base_buf__appends(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__buf buf;
    ew__buf_init(&buf, &t.env, 10000);
    assert_int_equal(ew__buf_view(&buf).len, 0);
    assert_int_equal(ew__buf_str(&buf, ew__str(NULL, 0)), EW_OK);
    assert_int_equal(ew__test_env_allocations(&t), 0);
    assert_int_equal(ew__buf_add(&buf, "a\0b", 3), EW_OK);
    assert_int_equal(ew__buf_str(&buf, EW_STR("cd")), EW_OK);
    assert_int_equal(ew__buf_cstr(&buf, "ef"), EW_OK);
    assert_int_equal(ew__buf_char(&buf, 'g'), EW_OK);
    assert_int_equal(ew__buf_u64(&buf, 0), EW_OK);
    assert_int_equal(ew__buf_u64(&buf, UINT64_MAX), EW_OK);
    assert_int_equal(ew__buf_printf(&buf, "<%d %s>", -5, "x"), EW_OK);
    assert_true(ew__str_is(ew__buf_view(&buf), EW_STR("a\0bcdefg018446744073709551615<-5 x>")));
    assert_int_equal(buf.cap, 256);
    ew__buf_drop(&buf, 0);
    ew__buf_drop(&buf, 3);
    assert_true(ew__str_is(ew__buf_view(&buf), EW_STR("cdefg018446744073709551615<-5 x>")));
    ew__buf_drop(&buf, 1000);
    assert_int_equal(ew__buf_view(&buf).len, 0);
    ew__buf_done(&buf);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
    assert_int_equal(ew__buf_cstr(&buf, "again"), EW_OK);
    assert_true(ew__str_is(ew__buf_view(&buf), EW_STR("again")));
    ew__buf_done(&buf);
    ew__buf_done(&buf);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_buf__doubles(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__buf buf;
    ew__buf_init(&buf, &t.env, SIZE_MAX);
    size_t expected = 256;
    for (size_t i = 1; i <= 100000; i++) {
        assert_int_equal(ew__buf_char(&buf, (char)i), EW_OK);
        if (i > expected) {
            expected *= 2;
        }
        assert_int_equal(buf.cap, expected);
    }
    for (size_t i = 1; i <= 100000; i++) {
        assert_int_equal(buf.ptr[i - 1], (char)i);
    }
    assert_int_equal(ew__buf_reserve(&buf, 1000000), EW_OK);
    assert_int_equal(buf.cap, 256 * 8192);
    assert_int_equal(ew__buf_reserve(&buf, SIZE_MAX - 100000), EW_ENOMEM); /* doubling must not run over */
    ew__buf_done(&buf);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_base_buf__limit_to_the_byte(void **state) {
    (void)state;
    static const size_t limits[] = {0, 1, 100, 255, 256, 257, 300, 511, 512, 513, 1000};
    static const char text[1100] = {0};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        size_t max = limits[i];
        for (size_t start = 0; start <= max; start += 50) {
            ew__test_env t;
            ew__test_env_init(&t, 1);
            ew__buf buf;
            ew__buf_init(&buf, &t.env, max);
            assert_int_equal(ew__buf_add(&buf, text, start), EW_OK);
            assert_int_equal(ew__buf_add(&buf, text, max - start), EW_OK);
            assert_true(buf.cap <= max);
            uint64_t before = ew__test_env_allocations(&t);
            assert_int_equal(ew__buf_char(&buf, 'x'), EW_ELIMIT);
            assert_int_equal(ew__test_env_allocations(&t), before);
            assert_int_equal(buf.len, max);
            assert_int_equal(ew__buf_add(&buf, text, 0), EW_ELIMIT); /* it sticks */
            ew__buf_clear(&buf);
            assert_int_equal(ew__buf_reserve(&buf, max), EW_OK);
            assert_int_equal(ew__buf_reserve(&buf, max + 1), EW_ELIMIT);
            assert_int_equal(buf.err, EW_ELIMIT);
            ew__buf_clear(&buf);
            assert_int_equal(ew__buf_reserve(&buf, SIZE_MAX), EW_ELIMIT);
            assert_true(ew__test_env_peak_bytes(&t) <= 2 * max + 1);
            ew__buf_done(&buf);
            assert_int_equal(ew__test_env_live_blocks(&t), 0);
        }
    }
}

static void test_base_buf__error_sticks(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__buf buf;
    ew__buf_init(&buf, &t.env, 4096);
    assert_int_equal(ew__buf_cstr(&buf, "kept"), EW_OK);
    ew__test_env_fail_at(&t, 1, false);
    assert_int_equal(ew__buf_reserve(&buf, 1000), EW_ENOMEM);
    assert_int_equal(ew__buf_char(&buf, 'x'), EW_ENOMEM);
    assert_int_equal(ew__buf_u64(&buf, 1), EW_ENOMEM);
    assert_int_equal(ew__buf_printf(&buf, "%s", "x"), EW_ENOMEM);
    assert_int_equal(ew__buf_reserve(&buf, 5000), EW_ENOMEM); /* the first failure, not the last */
    assert_true(ew__str_is(ew__buf_view(&buf), EW_STR("kept")));
    ew__buf_clear(&buf);
    assert_int_equal(ew__buf_cstr(&buf, "new"), EW_OK);
    assert_int_equal(buf.cap, 256);
    ew__buf_done(&buf);
}

static void test_base_buf__printf_of_every_length(void **state) {
    (void)state;
    char text[1201];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    for (int n = 0; n <= 1200; n += n >= 500 && n < 520 ? 1 : 20) {
        for (int spare = -1; spare <= 1; spare++) {
            ew__test_env t;
            ew__test_env_init(&t, 1);
            ew__buf buf;
            ew__buf_init(&buf, &t.env, (size_t)(n + 3 + spare));
            assert_int_equal(ew__buf_printf(&buf, "a%.*sb%d", n, text, 7), spare < 0 ? EW_ELIMIT : EW_OK);
            if (spare >= 0) {
                assert_int_equal(buf.len, n + 3);
                assert_int_equal(buf.ptr[0], 'a');
                assert_memory_equal(buf.ptr + 1, text, (size_t)n);
                assert_memory_equal(buf.ptr + 1 + n, "b7", 2);
            } else {
                assert_int_equal(buf.len, 0);
            }
            ew__buf_done(&buf);
            assert_int_equal(ew__test_env_live_blocks(&t), 0);
        }
    }
}

static void test_base_buf__take(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    ew__buf buf;
    size_t len = 99, cap = 99;
    ew__buf_init(&buf, &t.env, 4096);
    assert_null(ew__buf_take(&buf, &len, &cap));
    assert_int_equal(len + cap, 0);
    assert_int_equal(ew__buf_cstr(&buf, "mine"), EW_OK);
    char *mine = ew__buf_take(&buf, &len, &cap);
    assert_int_equal(len, 4);
    assert_int_equal(cap, 256);
    assert_memory_equal(mine, "mine", 4);
    assert_int_equal(ew__buf_cstr(&buf, "other"), EW_OK);
    assert_ptr_not_equal(buf.ptr, mine);
    ew__free(&t.env, mine, cap);
    ew__buf_clear(&buf);
    assert_null(ew__buf_take(&buf, &len, &cap)); /* its memory is not lost */
    assert_int_equal(len + cap, 0);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static ew_err fill(ew__buf *buf) {
    char text[700];
    memset(text, 'z', sizeof(text));
    for (int i = 0; i < 20; i++) {
        (void)ew__buf_add(buf, text, sizeof(text));
        (void)ew__buf_printf(buf, "%.*s", 600, text);
        (void)ew__buf_u64(buf, 12345);
    }
    return buf->err;
}

static void test_base_buf__every_allocation_may_fail(void **state) {
    (void)state;
    ew_err err = EW_ENOMEM;
    for (uint64_t n = 1; err != EW_OK; n++) {
        ew__test_env t;
        ew__test_env_init(&t, n);
        ew__buf buf;
        ew__buf_init(&buf, &t.env, 1000000);
        ew__test_env_fail_at(&t, n, false);
        err = fill(&buf);
        assert_int_equal(err, ew__test_env_failed(&t) == 0 ? EW_OK : EW_ENOMEM);
        ew__test_env_fail_at(&t, 0, false);
        ew__buf_clear(&buf);
        assert_int_equal(fill(&buf), EW_OK);
        assert_int_equal(buf.len, 20 * 1305);
        ew__buf_done(&buf);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        assert_true(n < 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_buf__appends),
        cmocka_unit_test(test_base_buf__doubles),
        cmocka_unit_test(test_base_buf__limit_to_the_byte),
        cmocka_unit_test(test_base_buf__error_sticks),
        cmocka_unit_test(test_base_buf__printf_of_every_length),
        cmocka_unit_test(test_base_buf__take),
        cmocka_unit_test(test_base_buf__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
