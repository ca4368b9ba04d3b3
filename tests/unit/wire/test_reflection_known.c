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

#define PARENT "00-" TRACE "-b7ad6b7169203331-01"
#define RUN(between, input, id)                                                                                        \
    "{'jsonrpc':'2.0','method':'runAction','params':{'key':'/flow/a','traceparent':'" between ",'input':" input        \
    "},'id':" id "}"

static bool same_slice(ew_str a, ew_str b) { return a.len == b.len && a.ptr == b.ptr; }

static bool read_message(ew_str text, ew__json_doc *doc, ew__rpc *message) {
    if (ew__json_parse(doc, text) != EW_OK)
        return false;
    ew__rpc_read(doc, 0, message);
    return true;
}

/* An id that is that of a call in each byte: ours are plain strings. */
static bool could_be_ours(ew_str id) {
    return id.len >= 2 && id.ptr[0] == '"' && id.ptr[id.len - 1] == '"' &&
           ew__json_is_plain(ew__str(id.ptr + 1, id.len - 2));
}

/* Whether the quick way took it. */
static bool compare_state(ew_str text) {
    ew_str id, trace;
    ew__json_doc doc;
    ew__rpc message;
    ew__rf_about about;
    if (!ew__rf_is_state(text, &id, &trace) || !could_be_ours(id))
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
    if (!ew__rf_is_result(text, &id, &quick) || !could_be_ours(id))
        return false;
    if (!read_message(text, &doc, &message) || message.kind != EW__RPC_RESULT || !same_slice(message.id, id) ||
        ew__rf_read_result(&doc, message.result, &slow) != EW_OK || !same_slice(quick.result, slow.result) ||
        !same_slice(quick.trace_id, slow.trace_id))
        fail_msg("the two differ on %.*s", (int)text.len, text.ptr);
    return true;
}

static bool compare_run(ew_str text) {
    ew_str id, params;
    ew__json_doc doc;
    ew__rpc message;
    ew__rf_run quick, slow;
    memset(&quick, 0xff, sizeof quick);
    if (!ew__rf_is_run(text, &id, &params, &quick))
        return false;
    if (!read_message(text, &doc, &message) || message.kind != EW__RPC_REQUEST || !same_slice(message.id, id) ||
        !ew_str_eq(message.method, EW_STR("\"runAction\"")) || !same_slice(message.params, params) ||
        ew__rf_read_run(&doc, message.params, &slow) || !same_slice(quick.key, slow.key) ||
        !same_slice(quick.input, slow.input) || !same_slice(quick.traceparent, slow.traceparent) ||
        quick.hops != slow.hops || !same_slice(quick.context, slow.context) || slow.init.len || slow.labels.len ||
        slow.stream || slow.stream_input || quick.init.len || quick.labels.len || quick.stream || quick.stream_input)
        fail_msg("the two differ on %.*s", (int)text.len, text.ptr);
    return true;
}

static void compare_all(const char *text, size_t n) {
    (void)compare_run(ew__str(text, n));
    (void)compare_state(ew__str(text, n));
    (void)compare_result(ew__str(text, n));
}

/* Every byte is left out, comes twice, is another one, or is the last. */
static void change(const char *text) {
    static const char others[] = "{}[],:\"\\ 0n\t\x80";
    char changed[300];
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at++) {
        compare_all(text, at);
        memcpy(changed, text, at);
        memcpy(changed + at, text + at + 1, n - at - 1);
        compare_all(changed, n - 1);
        memcpy(changed + at, text + at, n - at);
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = others[i];
            compare_all(changed, n);
        }
        memcpy(changed + at + 1, text + at, n - at);
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = others[i];
            compare_all(changed, n + 1);
        }
    }
}

static void test_wire_reflection__known(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum { OTHER, STATE_OF_RUN, RESULT_OF_RUN, REQUEST } as;
    } rows[] = {
        {STATE("'ew00-1'"), STATE_OF_RUN},
        {STATE("''"), STATE_OF_RUN},
        {STATE("1"), OTHER},
        {STATE("'a\\n'"), OTHER},
        {STATE("'a','requestId':'b'"), OTHER},
        {STATE("'a'") " ", OTHER},
        {RESULT("[1]", "'ew00-1'"), RESULT_OF_RUN},
        {RESULT("{'telemetry':{'traceId':'" TRACE "'},'t':'}\\''}", "'i'"), RESULT_OF_RUN},
        {RESULT("null", "''"), RESULT_OF_RUN},
        {RESULT("1", "1"), OTHER},
        {RESULT("1", "null"), OTHER},
        {RESULT("1", "'a\\''"), OTHER},
        {RESULT("1", "'a','id':'b'"), OTHER},
        {RESULT("1,'result':2", "'i'"), OTHER},
        {RESULT("", "'i'"), OTHER},
        {RESULT(" 1", "'i'"), OTHER},
        {RESULT("[1", "'i'"), OTHER},
        {"{'jsonrpc':'2.0','result':{'result':1},'id':'i'}", OTHER},
        {"{'jsonrpc':'2.0','result':{'result':'" TRACE TRACE TRACE "'}", OTHER},
        {"", OTHER},
        {RUN(PARENT "'", "{'a':1}", "'ew00-1'"), REQUEST},
        {RUN(PARENT "','everywireHops':1", "null", "''"), REQUEST},
        {RUN(PARENT "','everywireHops':255", "'},\\'id\\':\\''", "'i'"), REQUEST},
        {RUN(PARENT "','everywireHops':999", "1", "'i'"), REQUEST},
        {RUN(PARENT "'", "{},'context':{'job_id':'j'}", "'i'"), REQUEST},
        {RUN(PARENT "'", "{},'context':0", "'i'"), REQUEST},
        {RUN(PARENT "'", "{},'context':{'a':{},'context':1}", "'i'"), REQUEST},
        {RUN(PARENT "'", "{'a':{},'context':1}", "'i'"), OTHER},
        {RUN(PARENT "'", "{},'context':null", "'i'"), OTHER},
        {RUN(PARENT "'", "{},'context':", "'i'"), OTHER},
        {RUN(PARENT "'", "{},'context':1,'context':2", "'i'"), OTHER},
        {RUN(PARENT "'", "{},'context':{},'telemetryLabels':{}", "'i'"), OTHER},
        {RUN(PARENT "','everywireHops':1000", "1", "'i'"), OTHER},
        {RUN(PARENT "','everywireHops':01", "1", "'i'"), OTHER},
        {RUN(PARENT "','everywireHops':", "1", "'i'"), OTHER},
        {RUN(PARENT "','everywireHops':'1'", "1", "'i'"), OTHER},
        {RUN(PARENT "','stream':true", "1", "'i'"), OTHER},
        {RUN(PARENT "'", "1,'stream':true", "'i'"), OTHER},
        {RUN(PARENT "'", "1,'key':'b'", "'i'"), OTHER},
        {RUN(PARENT "'", "", "'i'"), OTHER},
        {RUN(PARENT "'", "1", "1"), OTHER},
        {RUN(PARENT "'", "1", "'\\u0031'"), OTHER},
        {RUN(PARENT "'", "1", "'a','id':'b'"), OTHER},
        {RUN("'", "1", "'i'"), OTHER},
        {"{'jsonrpc':'2.0','method':'runAction','params':{'key':'/flow/a','input':1},'id':'i'}", OTHER},
        {"{'jsonrpc':'2.0','method':'runAction','params':{'key':'','traceparent':'" PARENT "','input':1},'id':'i'}",
         OTHER},
        {"{'jsonrpc':'2.0','method':'runAction','params':{'key':'},'id':'i'}", OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[250];
        size_t n = strlen(rows[i].text);
        assert_true(n < sizeof text);
        for (size_t k = 0; k <= n; k++)
            text[k] = rows[i].text[k] == '\'' ? '"' : rows[i].text[k];
        ew_str whole = ew__str(text, n);
        if (compare_state(whole) != (rows[i].as == STATE_OF_RUN) ||
            compare_result(whole) != (rows[i].as == RESULT_OF_RUN) || compare_run(whole) != (rows[i].as == REQUEST))
            fail_msg("%s: %s", rows[i].as != OTHER ? "not taken" : "taken", text);
        change(text);
    }
}

static void test_wire_reflection__plain(void **state) {
    (void)state;
    char text[40];
    for (size_t n = 0; n <= sizeof text; n++) {
        memset(text, '~', sizeof text);
        assert_true(ew__rf_is_plain(ew__str(text, n)));
        for (size_t at = 0; at < n; at++) {
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                assert_int_equal(ew__rf_is_plain(ew__str(text, n)), ew__json_is_plain(ew__str(text, n)));
            }
            text[at] = '~';
        }
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
                                       cmocka_unit_test(test_wire_reflection__plain),
                                       cmocka_unit_test(test_wire_reflection__known_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
