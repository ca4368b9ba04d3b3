/*
 * tests/unit/wire/test_stepflow_sniff.c: what begins on standard input: Stepflow, or other JSON-RPC.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/stepflow/sniff.h"
#include <stdio.h>
#include <stdlib.h>

/* In memory of exactly that size, so that a memory checker sees who reads past it. */
static int sniff(const char *text, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    int verdict = ew__sf_sniff_line(copy, n);
    free(copy);
    return verdict;
}

/* The whole text, and what is said before it is whole: nothing, or the same. */
static void expect(const char *text, int verdict) {
    size_t n = strlen(text);
    int got = sniff(text, n);
    if (got != verdict)
        fail_msg("%d, not %d: %s", got, verdict, text);
    for (size_t i = 0; i < n; i++) {
        got = sniff(text, i);
        if (got != 0 && got != verdict)
            fail_msg("%d after %zu bytes, %d after all: %s", got, i, verdict, text);
    }
}

static void yes(void **state) {
    static const char *const texts[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"initialize\",\"params\":{\"runtime_protocol_version\":1}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"runtimeProtocolVersion\":1,"
        "\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"observability\":{\"a\":[\"x\",{}]},"
        "\"runtime_protocol_version\":1}}",
        "{\"params\":{\"runtime_protocol_version\":1,\"protocol_prefix\":\"p\"},\"id\":1,\"method\":\"initialize\"}"
        "\r\n",
        "{\"id\":1,\"method\":\"components/execute\"",
        "  {\"id\" : 1 , \"method\" : \"components/list\" , \"params\":{}}",
        "{\"params\":{\"input\":\"a \\\" \\\\\",\"x\":[1,2,{\"method\":\"other\"}]},\"method\":\"components\\/info\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], 1);
}

static void no(void **state) {
    static const char *const texts[] = {
        "Content-Length: 20\r\n\r\n{}",
        "[{\"method\":\"components/list\"}]",
        "x",
        "{}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"greet\"",
        "{\"method\":\"component/list\"",
        "{\"method\":\"initialized\"",
        "{\"id\":1,\"method\":\"initialize\",\"params\":{\"x\":{\"runtime_protocol_version\":1}}}",
        "{\"id\":1,\"method\":\"initialize\",\"params\":[\"runtime_protocol_version\"]}",
        "{\"id\":1,\"method\":\"initialize\",\"data\":{\"runtime_protocol_version\":1}}",
        "{\"id\":1,\"method\":\"initialize\"}",
        "{\"id\":1,\"params\":{\"method\":\"components/list\"}}",
        "{\"id\":1,\n \"method\":\"components/list\"}", /* a runtime's message is one line */
        "{\"id\":\"a\nb\",\"method\":\"components/list\"}",
        "}",
        "{\"a\":1}}}}{\"method\":\"components/list\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], -1);
}

static void not_yet(void **state) {
    static const char *const texts[] = {
        "", " \r\n\t", "{\"method\":\"components", "{\"method\":\"initialize\",\"params\":{", "{\"method\"", "{\"a\\"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(sniff(texts[i], strlen(texts[i])), 0);
}

static void deep(void **state) {
    static char text[400];
    (void)state;
    memset(text, '[', sizeof text);
    memcpy(text, "{\"a\":", 5);
    assert_int_equal(sniff(text, 100), 0);
    assert_int_equal(sniff(text, sizeof text), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yes),
        cmocka_unit_test(no),
        cmocka_unit_test(not_yet),
        cmocka_unit_test(deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
