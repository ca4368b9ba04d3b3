/*
 * tests/unit/handler/test_exec_line.c: what lines of a program mean.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "handler/exec_line.h"

static void kinds(void **state) {
    static const struct {
        const char *line;
        ew__exec_line_kind kind;
        const char *value;
    } cases[] = {
        {"{\"chunk\":1}", EW__EXEC_CHUNK, "1"},
        {" { \"chunk\" : { \"a\" : [ 1 ] } } ", EW__EXEC_CHUNK, "{ \"a\" : [ 1 ] }"},
        {"{\"result\":null}", EW__EXEC_RESULT, "null"},
        {"{\"result\":12345678901234567890.10}", EW__EXEC_RESULT, "12345678901234567890.10"},
        {"{\"resul\\u0074\":2}", EW__EXEC_RESULT, "2"},
        {"{\"result\":{\"a\":1,\"a\":2}}", EW__EXEC_RESULT, "{\"a\":1,\"a\":2}"},
        {"{\"error\":\"no\"}", EW__EXEC_ERROR, "\"no\""},
        {"{\"error\":{}}", EW__EXEC_ERROR, "{}"},
        {"{\"error\":5}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"error\":null}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"error\":[]}", EW__EXEC_TEXT_LINE, NULL},
        {"", EW__EXEC_TEXT_LINE, NULL},
        {"{}", EW__EXEC_TEXT_LINE, NULL},
        {"[]", EW__EXEC_TEXT_LINE, NULL},
        {"\"{\"", EW__EXEC_TEXT_LINE, NULL},
        {"hello {\"result\":1}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"result\":1} x", EW__EXEC_TEXT_LINE, NULL},
        {"{\"result\":1}{\"result\":2}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"result\":1", EW__EXEC_TEXT_LINE, NULL},
        {"{\"result\":1,\"result\":2}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"result\":1,\"x\":2}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"x\":2,\"result\":1}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"results\":1}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"Result\":1}", EW__EXEC_TEXT_LINE, NULL},
        {"[{\"result\":1}]", EW__EXEC_TEXT_LINE, NULL},
        {"{\"result\":\"\xff\"}", EW__EXEC_TEXT_LINE, NULL},
        {"{\"a\":{\"result\":1}}", EW__EXEC_TEXT_LINE, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew_str value = {0};
        ew__exec_line_kind kind = ew__exec_line_read(ew_str_from(cases[i].line), &value);
        if (kind != cases[i].kind)
            fail_msg("%s is of kind %d", cases[i].line, (int)kind);
        if (cases[i].value) {
            assert_int_equal(value.len, strlen(cases[i].value));
            assert_memory_equal(value.ptr, cases[i].value, value.len);
        }
    }
}

/* More members than are noted in one pass. */
static void wide(void **state) {
    char line[4000] = "{\"result\":[";
    ew_str value = {0};
    (void)state;
    for (size_t n = strlen(line), i = 0; i < 1000; i++, n += 2)
        memcpy(line + n, i < 999 ? "1," : "1]", 3);
    memcpy(line + strlen(line), "}", 2);
    assert_int_equal(ew__exec_line_read(ew_str_from(line), &value), EW__EXEC_RESULT);
    assert_int_equal(value.len, 2001);
    char many[4000] = "{\"result\":1";
    for (size_t n = strlen(many), i = 0; i < 200; i++, n += 6)
        memcpy(many + n, ",\"a\":1", 7);
    memcpy(many + strlen(many), "}", 2);
    assert_int_equal(ew__exec_line_read(ew_str_from(many), &value), EW__EXEC_TEXT_LINE);
}

static void faults(void **state) {
    static const struct {
        const char *value;
        ew_status status;
        const char *message, *details;
        bool retryable;
        uint64_t retry_ms;
    } cases[] = {
        {"\"no luck\"", EW_STATUS_INTERNAL, "no luck", "", false, 0},
        {"\"a\\n\\u00e9\"", EW_STATUS_INTERNAL, "a\n\xc3\xa9", "", false, 0},
        {"\"\"", EW_STATUS_INTERNAL, "", "", false, 0},
        {"\"\\ud800\"", EW_STATUS_INTERNAL, "\\ud800", "", false, 0},
        {"{}", EW_STATUS_INTERNAL, "INTERNAL", "", false, 0},
        {"{\"status\":\"NOT_FOUND\"}", EW_STATUS_NOT_FOUND, "NOT_FOUND", "", false, 0},
        {"{\"status\":\"OK\",\"message\":\"m\"}", EW_STATUS_INTERNAL, "m", "", false, 0},
        {"{\"status\":\"SO_SO\",\"message\":\"m\"}", EW_STATUS_INTERNAL, "m", "", false, 0},
        {"{\"status\":5,\"message\":7}", EW_STATUS_INTERNAL, "7", "", false, 0},
        {"{\"message\":\"m\",\"details\":{\"a\":[1 ]},\"more\":1}", EW_STATUS_INTERNAL, "m", "{\"a\":[1 ]}", false, 0},
        {"{\"details\":null}", EW_STATUS_INTERNAL, "INTERNAL", "", false, 0},
        {"{\"status\":\"UNAVAILABLE\",\"message\":\"m\",\"retry_after\":1.5}", EW_STATUS_UNAVAILABLE, "m", "", true,
         1500},
        {"{\"retry_after\":0}", EW_STATUS_INTERNAL, "INTERNAL", "", true, 0},
        {"{\"retry_after\":-3}", EW_STATUS_INTERNAL, "INTERNAL", "", true, 0},
        {"{\"retry_after\":1e300}", EW_STATUS_INTERNAL, "INTERNAL", "", true, 31622400000},
        {"{\"retry_after\":\"1\"}", EW_STATUS_INTERNAL, "INTERNAL", "", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew_fault fault;
        ew__buf text;
        ew__buf_init(&text, ew_env_default(), SIZE_MAX / 2);
        assert_int_equal(ew__exec_line_fault(ew_str_from(cases[i].value), &text, &fault), EW_OK);
        assert_int_equal(fault.status, cases[i].status);
        assert_int_equal(fault.message.len, strlen(cases[i].message));
        assert_memory_equal(fault.message.ptr, cases[i].message, fault.message.len);
        assert_int_equal(fault.details.len, strlen(cases[i].details));
        if (fault.details.len)
            assert_memory_equal(fault.details.ptr, cases[i].details, fault.details.len);
        assert_int_equal(fault.retryable, cases[i].retryable);
        assert_true(fault.retry_after_ms == cases[i].retry_ms);
        ew__buf_done(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(wide),
        cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
