/*
 * tests/unit/wire/test_reflection_known.c: the quick way to read what a runtime sends for each call, held against the
 * ordinary one: whatever it accepts, the other accepts with the same values. Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define STATE(id)                                                                                                      \
    "{'jsonrpc':'2.0','method':'runActionState','params':{'requestId':" id ",'state':{'traceId':'" TRACE "'}}}"
#define RESULT(result, id)                                                                                             \
    "{'jsonrpc':'2.0','result':{'result':" result ",'telemetry':{'traceId':'" TRACE "'}},'id':" id "}"

static bool same_slice(ew_str a, ew_str b) { return a.len == b.len && a.ptr == b.ptr; }

static bool read_message(ew_str text, ew__json_doc *doc, ew__rpc *message) {
    if (ew__json_parse(doc, text) != EW_OK)
        return false;
    ew__rpc_read(doc, 0, message);
    return true;
}

/* Whether the quick way took it. */
static bool compare_state(ew_str text) {
    ew_str id, trace;
    ew__json_doc doc;
    ew__rpc message;
    ew__rf_about about;
    if (!ew__rf_is_state(text, &id, &trace))
        return false;
    bool same = read_message(text, &doc, &message) && message.kind == EW__RPC_NOTIFICATION &&
                ew_str_eq(message.method, EW_STR("\"runActionState\""));
    if (same)
        ew__rf_read_about(&doc, message.params, &about);
    if (!same || !same_slice(about.request_id, id) || !same_slice(about.trace_id, trace))
        fail_msg("the two differ on %.*s", (int)text.len, text.ptr);
    return true;
}

static bool compare_result(ew_str text) {
    ew_str id;
    ew__json_doc doc;
    ew__rpc message;
    ew__rf_result quick, slow;
    if (!ew__rf_is_result(text, &id, &quick))
        return false;
    if (!read_message(text, &doc, &message) || message.kind != EW__RPC_RESULT || !same_slice(message.id, id) ||
        ew__rf_read_result(&doc, message.result, &slow) != EW_OK || !same_slice(quick.result, slow.result) ||
        !same_slice(quick.trace_id, slow.trace_id))
        fail_msg("the two differ on %.*s", (int)text.len, text.ptr);
    return true;
}

static void compare_both(const char *text, size_t n) {
    (void)compare_state(ew__str(text, n));
    (void)compare_result(ew__str(text, n));
}

/* Every byte is left out, comes twice, is another one, or is the last. */
static void change(const char *text) {
    static const char others[] = "{}[],:\"\\ 0n\t\x80";
    char changed[300];
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at++) {
        compare_both(text, at);
        memcpy(changed, text, at);
        memcpy(changed + at, text + at + 1, n - at - 1);
        compare_both(changed, n - 1);
        memcpy(changed + at, text + at, n - at);
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = others[i];
            compare_both(changed, n);
        }
        memcpy(changed + at + 1, text + at, n - at);
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = others[i];
            compare_both(changed, n + 1);
        }
    }
}

static void test_wire_reflection__known(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool state, result;
    } rows[] = {
        {STATE("'ew00-1'"), true, false},
        {STATE("''"), true, false},
        {STATE("1"), false, false},
        {STATE("'a\\n'"), false, false},
        {STATE("'a','requestId':'b'"), false, false},
        {STATE("'a'") " ", false, false},
        {RESULT("[1]", "'ew00-1'"), false, true},
        {RESULT("{'telemetry':{'traceId':'" TRACE "'},'t':'}\\''}", "'i'"), false, true},
        {RESULT("null", "''"), false, true},
        {RESULT("1", "1"), false, false},
        {RESULT("1", "null"), false, false},
        {RESULT("1", "'a\\''"), false, false},
        {RESULT("1", "'a','id':'b'"), false, false},
        {RESULT("1,'result':2", "'i'"), false, false},
        {RESULT("", "'i'"), false, false},
        {RESULT(" 1", "'i'"), false, false},
        {RESULT("[1", "'i'"), false, false},
        {"{'jsonrpc':'2.0','result':{'result':1},'id':'i'}", false, false},
        {"{'jsonrpc':'2.0','result':{'result':'" TRACE TRACE TRACE "'}", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[250];
        size_t n = strlen(rows[i].text);
        assert_true(n < sizeof text);
        for (size_t k = 0; k <= n; k++)
            text[k] = rows[i].text[k] == '\'' ? '"' : rows[i].text[k];
        if (compare_state(ew__str(text, n)) != rows[i].state || compare_result(ew__str(text, n)) != rows[i].result)
            fail_msg("%s: %s", rows[i].state || rows[i].result ? "not taken" : "taken", text);
        change(text);
    }
}

/* What is written by us is read in the quick way. */
static void test_wire_reflection__known_written(void **state) {
    (void)state;
    ew__rpc_out out;
    uint8_t text[300];
    ew__rf_put_state(&out, EW_STR("\"i\""), EW_STR(TRACE));
    assert_true(compare_state(ew__str(text, (size_t)(ew__rpc_out_copy(&out, text) - text))));
    ew__rf_put_result(&out, EW_STR("\"i\""), EW_STR("{}"), EW_STR(TRACE));
    assert_true(compare_result(ew__str(text, (size_t)(ew__rpc_out_copy(&out, text) - text))));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire_reflection__known),
                                       cmocka_unit_test(test_wire_reflection__known_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
