/*
 * The histogram: where values go, what it says of them, how far off that may be.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/hdr.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_cli_hdr__buckets(void **state) {
    (void)state;
    for (uint64_t v = 0; v < 5000; v++) {
        size_t bucket = ew__hdr_bucket(v);
        assert_true(v <= ew__hdr_bucket_top(bucket));
        assert_true(bucket == 0 || v > ew__hdr_bucket_top(bucket - 1));
    }
    assert_int_equal(ew__hdr_bucket(2047), 2047);
    assert_int_equal(ew__hdr_bucket(2048), 2048);
    assert_int_equal(ew__hdr_bucket(2049), 2048);
    assert_int_equal(ew__hdr_bucket(2050), 2049);
    assert_int_equal(ew__hdr_bucket(EW__HDR_MOST - 1), EW__HDR_BUCKETS - 1);
    assert_int_equal(ew__hdr_bucket(EW__HDR_MOST), EW__HDR_BUCKETS - 1);
    assert_int_equal(ew__hdr_bucket(EW__HDR_MOST + 1), EW__HDR_BUCKETS - 1);
    assert_int_equal(ew__hdr_bucket(UINT64_MAX), EW__HDR_BUCKETS - 1);
    assert_true(ew__hdr_bucket_top(EW__HDR_BUCKETS - 1) == EW__HDR_MOST);
    for (size_t i = 0; i + 1 < EW__HDR_BUCKETS; i++) { /* each bucket begins where the one before ends */
        assert_true(ew__hdr_bucket(ew__hdr_bucket_top(i)) == i);
        assert_true(ew__hdr_bucket(ew__hdr_bucket_top(i) + 1) == i + 1);
    }
}

static void test_cli_hdr__three_digits(void **state) {
    (void)state;
    for (uint64_t v = 1; v < EW__HDR_MOST / 3; v += v / 7 + 1) {
        uint64_t top = ew__hdr_bucket_top(ew__hdr_bucket(v));
        assert_true(top >= v && top - v <= v / 1000);
    }
}

static void test_cli_hdr__empty(void **state) {
    (void)state;
    ew__hdr *hdr = ew__hdr_new();
    assert_non_null(hdr);
    assert_true(ew__hdr_at(hdr, 0.5) == 0 && ew__hdr_at(hdr, 1) == 0);
    assert_true(ew__hdr_mean(hdr) <= 0);
    ew__hdr_free(hdr);
    ew__hdr_free(NULL);
}

static void test_cli_hdr__percentiles(void **state) {
    (void)state;
    ew__hdr *hdr = ew__hdr_new();
    assert_non_null(hdr);
    for (uint64_t v = 1; v <= 1000; v++) {
        ew__hdr_record(hdr, v);
    }
    assert_true(hdr->n == 1000 && hdr->min == 1 && hdr->max == 1000);
    assert_true(ew__hdr_mean(hdr) > 500.4 && ew__hdr_mean(hdr) < 500.6);
    assert_true(ew__hdr_at(hdr, 0) == 1);
    assert_true(ew__hdr_at(hdr, 0.5) == 500);
    assert_true(ew__hdr_at(hdr, 0.999) == 999);
    assert_true(ew__hdr_at(hdr, 0.9999) == 1000); /* a part of a value is a value */
    assert_true(ew__hdr_at(hdr, 1) == 1000);
    ew__hdr_record(hdr, (uint64_t)1 << 50); /* beyond what it tells apart */
    assert_true(ew__hdr_at(hdr, 1) == (uint64_t)1 << 50);
    assert_true(ew__hdr_at(hdr, 0.5) == 501);
    ew__hdr_free(hdr);
}

/* A percentile is never above the largest value, though its bucket may be. */
static void test_cli_hdr__at_most_max(void **state) {
    (void)state;
    ew__hdr *hdr = ew__hdr_new();
    assert_non_null(hdr);
    ew__hdr_record(hdr, 1000000);
    assert_true(ew__hdr_at(hdr, 0.5) == 1000000 && ew__hdr_at(hdr, 1) == 1000000);
    ew__hdr_free(hdr);
}

static void test_cli_hdr__add(void **state) {
    (void)state;
    ew__hdr *a = ew__hdr_new(), *b = ew__hdr_new();
    assert_true(a && b);
    ew__hdr_add(a, b);
    assert_true(a->n == 0 && a->max == 0);
    ew__hdr_record(a, 50);
    ew__hdr_record(b, 10);
    ew__hdr_record(b, 90);
    ew__hdr_add(a, b);
    assert_true(a->n == 3 && a->min == 10 && a->max == 90 && a->sum == 150);
    assert_true(ew__hdr_at(a, 0.5) == 50);
    ew__hdr_add(b, a);
    assert_true(b->n == 5 && b->min == 10);
    ew__hdr_free(a);
    ew__hdr_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_hdr__buckets),     cmocka_unit_test(test_cli_hdr__three_digits),
        cmocka_unit_test(test_cli_hdr__empty),       cmocka_unit_test(test_cli_hdr__percentiles),
        cmocka_unit_test(test_cli_hdr__at_most_max), cmocka_unit_test(test_cli_hdr__add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
