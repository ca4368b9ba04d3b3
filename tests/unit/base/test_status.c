/*
 * tests/unit/base/test_status.c: the canonical statuses against a table written here by hand.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <everywire/status.h>
#include <string.h>

/* By hand, from the protocol document, so that a slip in the header is seen. */
static const struct {
    ew_status status;
    int number;
    const char *name;
    int http;
    ew_status back; /* what its HTTP code alone is read as */
} table[] = {
    {EW_STATUS_OK, 0, "OK", 200, EW_STATUS_OK},
    {EW_STATUS_CANCELLED, 1, "CANCELLED", 499, EW_STATUS_CANCELLED},
    {EW_STATUS_UNKNOWN, 2, "UNKNOWN", 500, EW_STATUS_INTERNAL},
    {EW_STATUS_INVALID_ARGUMENT, 3, "INVALID_ARGUMENT", 400, EW_STATUS_INVALID_ARGUMENT},
    {EW_STATUS_DEADLINE_EXCEEDED, 4, "DEADLINE_EXCEEDED", 504, EW_STATUS_DEADLINE_EXCEEDED},
    {EW_STATUS_NOT_FOUND, 5, "NOT_FOUND", 404, EW_STATUS_NOT_FOUND},
    {EW_STATUS_ALREADY_EXISTS, 6, "ALREADY_EXISTS", 409, EW_STATUS_ABORTED},
    {EW_STATUS_PERMISSION_DENIED, 7, "PERMISSION_DENIED", 403, EW_STATUS_PERMISSION_DENIED},
    {EW_STATUS_RESOURCE_EXHAUSTED, 8, "RESOURCE_EXHAUSTED", 429, EW_STATUS_RESOURCE_EXHAUSTED},
    {EW_STATUS_FAILED_PRECONDITION, 9, "FAILED_PRECONDITION", 400, EW_STATUS_INVALID_ARGUMENT},
    {EW_STATUS_ABORTED, 10, "ABORTED", 409, EW_STATUS_ABORTED},
    {EW_STATUS_OUT_OF_RANGE, 11, "OUT_OF_RANGE", 400, EW_STATUS_INVALID_ARGUMENT},
    {EW_STATUS_UNIMPLEMENTED, 12, "UNIMPLEMENTED", 501, EW_STATUS_UNIMPLEMENTED},
    {EW_STATUS_INTERNAL, 13, "INTERNAL", 500, EW_STATUS_INTERNAL},
    {EW_STATUS_UNAVAILABLE, 14, "UNAVAILABLE", 503, EW_STATUS_UNAVAILABLE},
    {EW_STATUS_DATA_LOSS, 15, "DATA_LOSS", 500, EW_STATUS_INTERNAL},
    {EW_STATUS_UNAUTHENTICATED, 16, "UNAUTHENTICATED", 401, EW_STATUS_UNAUTHENTICATED},
};

static void test_base_status__table(void **state) {
    (void)state;
    assert_int_equal(sizeof(table) / sizeof(table[0]), EW_STATUS_COUNT);
    for (size_t i = 0; i < EW_STATUS_COUNT; i++) {
        assert_int_equal(table[i].status, table[i].number);
        assert_string_equal(ew_status_name(table[i].status), table[i].name);
        assert_int_equal(ew_status_http(table[i].status), table[i].http);
        assert_int_equal(ew_status_from_http(table[i].http), table[i].back);
        ew_status back = EW_STATUS_OK;
        assert_int_equal(ew_status_from_name(ew_str_from(table[i].name), &back), EW_OK);
        assert_int_equal(back, table[i].status);
    }
}

static void test_base_status__outside_the_table(void **state) {
    (void)state;
    const int numbers[] = {-1, 17, 1000};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(ew_status_name((ew_status)numbers[i]), "UNKNOWN");
        assert_int_equal(ew_status_http((ew_status)numbers[i]), 500);
    }
}

static void test_base_status__other_names_are_not_found(void **state) {
    (void)state;
    const char *names[] = {"", "ok", "NOT FOUND", "NOT_FOUN", "NOT_FOUNDX", "not_found"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ew_status status = EW_STATUS_ABORTED;
        assert_int_equal(ew_status_from_name(ew_str_from(names[i]), &status), EW_ENOTFOUND);
        assert_int_equal(status, EW_STATUS_ABORTED);
    }
}

static void test_base_status__http_codes_without_a_status(void **state) {
    (void)state;
    static const struct {
        int code;
        ew_status status;
    } rows[] = {
        {204, EW_STATUS_OK},
        {302, EW_STATUS_UNKNOWN},
        {405, EW_STATUS_UNIMPLEMENTED},
        {408, EW_STATUS_DEADLINE_EXCEEDED},
        {412, EW_STATUS_FAILED_PRECONDITION},
        {414, EW_STATUS_RESOURCE_EXHAUSTED},
        {416, EW_STATUS_OUT_OF_RANGE},
        {422, EW_STATUS_INVALID_ARGUMENT},
        {413, EW_STATUS_RESOURCE_EXHAUSTED},
        {415, EW_STATUS_INVALID_ARGUMENT},
        {418, EW_STATUS_UNKNOWN},
        {431, EW_STATUS_RESOURCE_EXHAUSTED},
        {502, EW_STATUS_UNAVAILABLE},
        {505, EW_STATUS_INTERNAL},
        {599, EW_STATUS_INTERNAL},
        {600, EW_STATUS_UNKNOWN},
        {0, EW_STATUS_UNKNOWN},
        {-5, EW_STATUS_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(ew_status_from_http(rows[i].code), rows[i].status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_status__table),
        cmocka_unit_test(test_base_status__outside_the_table),
        cmocka_unit_test(test_base_status__other_names_are_not_found),
        cmocka_unit_test(test_base_status__http_codes_without_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
