/*
 * tests/unit/wire/test_jsonrpc_codec.c: what the jsonrpc wire puts into the envelope: faults, methods, the document of
 * rpc.discover.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/fail_env.h"
#include "wire/jsonrpc/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static ew__buf buf;

static int setup(void **state) {
    (void)state;
    ew__buf_init(&buf, ew_env_default(), 100000);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    ew__buf_done(&buf);
    return 0;
}

/* What is in the buffer, with ' for "; the buffer is empty then. */
static const char *taken(void) {
    static char text[20000];
    assert_int_equal(buf.err, EW_OK);
    assert_true(buf.len < sizeof text);
    if (buf.len)
        memcpy(text, ew__buf_view(&buf).ptr, buf.len);
    text[buf.len] = '\0';
    for (char *p = text; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    ew__buf_clear(&buf);
    return text;
}

static ew_str quoted(const char *text) {
    static char out[4][4000];
    static unsigned turn;
    char *p = out[turn = (turn + 1) % 4];
    assert_true(strlen(text) < sizeof out[0]);
    memcpy(p, text, strlen(text) + 1);
    for (char *at = p; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return ew_str_from(p);
}

/* ---- faults ---- */

static const struct {
    ew_status status;
    int64_t code;
} codes[] = {
    {EW_STATUS_CANCELLED, -32800},
    {EW_STATUS_UNKNOWN, -32000},
    {EW_STATUS_INVALID_ARGUMENT, -32602},
    {EW_STATUS_DEADLINE_EXCEEDED, -32000},
    {EW_STATUS_NOT_FOUND, -32000}, /* what an action did not find is no missing method */
    {EW_STATUS_ALREADY_EXISTS, -32000},
    {EW_STATUS_PERMISSION_DENIED, -32000},
    {EW_STATUS_RESOURCE_EXHAUSTED, -32000},
    {EW_STATUS_FAILED_PRECONDITION, -32000},
    {EW_STATUS_ABORTED, -32000},
    {EW_STATUS_OUT_OF_RANGE, -32000},
    {EW_STATUS_UNIMPLEMENTED, -32000},
    {EW_STATUS_INTERNAL, -32603},
    {EW_STATUS_UNAVAILABLE, -32000},
    {EW_STATUS_DATA_LOSS, -32000},
    {EW_STATUS_UNAUTHENTICATED, -32000},
};

/* Each status there and back, alone and with everything that a fault has. */
static void test_wire_jsonrpc__faults_cross(void **state) {
    (void)state;
    assert_int_equal(sizeof codes / sizeof *codes, 16);
    for (size_t i = 0; i < 16; i++) {
        char expected[300], text[100];
        ew_fault back;
        const char *name = ew_status_name(codes[i].status);
        assert_int_equal(ew__jr_code_of(codes[i].status), codes[i].code);
        ew_fault plain = {.status = codes[i].status, .message = EW_STR("a \"b\"")};
        assert_int_equal(ew__jr_write_fault(&buf, 0, &plain), EW_OK);
        ew__jr_read_fault(ew__buf_view(&buf), text, sizeof text, &back);
        assert_int_equal(back.status, codes[i].status);
        assert_true(ew_str_eq(back.message, plain.message));
        assert_true(back.details.len == 0 && !back.retryable && back.retry_after_ms == 0);
        (void)snprintf(expected, sizeof expected, "{'code':%d,'message':'a \\'b\\'','data':{'status':'%s'}}",
                       (int)codes[i].code, name);
        assert_string_equal(taken(), expected);

        ew_fault full = {
            .status = codes[i].status, .details = EW_STR("{\"why\":[1]}"), .retryable = true, .retry_after_ms = 1500};
        assert_int_equal(ew__jr_write_fault(&buf, -7, &full), EW_OK);
        ew__jr_read_fault(ew__buf_view(&buf), text, sizeof text, &back);
        assert_int_equal(back.status, codes[i].status); /* not what the code says */
        assert_true(ew_str_eq(back.message, ew_str_from(name)));
        assert_true(ew_str_eq(back.details, full.details));
        assert_true(back.retryable && back.retry_after_ms == 1500);
        (void)snprintf(expected, sizeof expected,
                       "{'code':-7,'message':'%s','data':{'status':'%s','details':{'why':[1]},'retryable':true,"
                       "'retry_after_ms':1500}}",
                       name, name);
        assert_string_equal(taken(), expected);
    }
}

static void test_wire_jsonrpc__retry_members(void **state) {
    (void)state;
    char text[50];
    ew_fault back;
    assert_int_equal(ew__jr_write_fault(&buf, 0, &(ew_fault){.status = EW_STATUS_ABORTED, .retryable = true}), EW_OK);
    assert_string_equal(taken(), "{'code':-32000,'message':'ABORTED','data':{'status':'ABORTED','retryable':true}}");
    assert_int_equal(ew__jr_write_fault(&buf, 0, &(ew_fault){.status = EW_STATUS_ABORTED, .retry_after_ms = 9}), EW_OK);
    assert_string_equal(
        taken(),
        "{'code':-32000,'message':'ABORTED','data':{'status':'ABORTED','retryable':false,'retry_after_ms':9}}");
    ew__jr_read_fault(
        quoted("{'code':1,'message':'m','data':{'status':'ABORTED','retryable':'yes','retry_after_ms':-1}}"), text,
        sizeof text, &back);
    assert_int_equal(back.status, EW_STATUS_ABORTED);
    assert_true(!back.retryable && back.retry_after_ms == 0);
}

/* Errors of peers that know nothing of statuses. */
static void test_wire_jsonrpc__foreign_errors(void **state) {
    (void)state;
    static const struct {
        const char *error;
        ew_status status;
        const char *message, *details;
    } rows[] = {
        {"{'code':-32700,'message':'m'}", EW_STATUS_INVALID_ARGUMENT, "m", ""},
        {"{'code':-32600,'message':'m'}", EW_STATUS_INVALID_ARGUMENT, "m", ""},
        {"{'code':-32601,'message':'m'}", EW_STATUS_NOT_FOUND, "m", ""},
        {"{'code':-32602,'message':'m'}", EW_STATUS_INVALID_ARGUMENT, "m", ""},
        {"{'code':-32603,'message':'m'}", EW_STATUS_INTERNAL, "m", ""},
        {"{'code':-32800,'message':'m'}", EW_STATUS_CANCELLED, "m", ""},
        {"{'code':-32000,'message':'m'}", EW_STATUS_UNKNOWN, "m", ""},
        {"{'code':0,'message':'m'}", EW_STATUS_UNKNOWN, "m", ""},
        {"{'code':-32601,'message':'m','data':null}", EW_STATUS_NOT_FOUND, "m", ""},
        {"{'code':-32601,'message':'m','data':[1]}", EW_STATUS_NOT_FOUND, "m", "[1]"},
        {"{'code':-32601,'message':'m','data':{'status':'OK'}}", EW_STATUS_NOT_FOUND, "m", "{'status':'OK'}"},
        {"{'code':-32601,'message':'m','data':{'status':'odd'}}", EW_STATUS_NOT_FOUND, "m", "{'status':'odd'}"},
        {"{'code':-32601,'message':'m','data':{'status':5}}", EW_STATUS_NOT_FOUND, "m", "{'status':5}"},
        {"{'code':-32601,'message':'m','data':{'status':'ABORTED'}}", EW_STATUS_ABORTED, "m", ""},
        {"{'code':-32601,'message':'m','data':'text'}", EW_STATUS_NOT_FOUND, "m", "'text'"},
        {"'only text'", EW_STATUS_UNKNOWN, "only text", ""},
        {"42", EW_STATUS_UNKNOWN, "42", ""},
        {"{}", EW_STATUS_UNKNOWN, "{}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[50];
        ew_fault back;
        ew__jr_read_fault(quoted(rows[i].error), text, sizeof text, &back);
        if (back.status != rows[i].status || !ew_str_eq(back.message, quoted(rows[i].message)) ||
            !ew_str_eq(back.details, quoted(rows[i].details)))
            fail_msg("%s: %s, %.*s, %.*s", rows[i].error, ew_status_name(back.status), (int)back.message.len,
                     back.message.ptr, (int)back.details.len, back.details.ptr ? back.details.ptr : "");
    }
}

/* ---- methods ---- */

static void test_wire_jsonrpc__methods(void **state) {
    (void)state;
    static const struct {
        const char *method, *action;
        uint8_t stream;
        uint8_t hops;
    } rows[] = {
        {"greet", "greet", false, 0},
        {"greet?stream=true", "greet", true, 0},
        {"/flow/greet?stream=true", "/flow/greet", true, 0},
        {"greet?stream=true?stream=true", "greet?stream=true", true, 0},
        {"greet?stream=events", "greet", EW__JR_EVENTS, 0},
        {"greet?hops=3&stream=events", "greet", EW__JR_EVENTS, 3},
        {"greet?stream=event", "greet?stream=event", false, 0},
        {"greet?stream=", "greet?stream=", false, 0},
        {"greet?stream=true&stream=events", "greet?stream=true&stream=events", false, 0},
        {"greet?stream=false", "greet?stream=false", false, 0},
        {"greet?stream=true ", "greet?stream=true ", false, 0},
        {"?stream=true", "?stream=true", false, 0},
        {"", "", false, 0},
        {"greet?hops=1", "greet", false, 1},
        {"greet?hops=300", "greet", false, 255},
        {"greet?stream=true&hops=12", "greet", true, 12},
        {"greet?hops=12&stream=true", "greet", true, 12},
        {"a?b&c?hops=2", "a?b&c", false, 2},
        {"greet?hops=1?hops=2", "greet?hops=1", false, 2},
        {"greet?hops=-1", "greet", false, 0}, /* no number: it says nothing */
        {"greet?hops=", "greet", false, 0},
        {"greet?hops=+1&stream=true", "greet", true, 0},
        {"greet?hops", "greet?hops", false, 0},
        {"greet?Hops=1", "greet?Hops=1", false, 0},
        {"greet?hops=1&hops=1", "greet?hops=1&hops=1", false, 0},
        {"greet?hops=&hops=1", "greet?hops=&hops=1", false, 0},
        {"greet?stream=true&stream=true", "greet?stream=true&stream=true", false, 0},
        {"greet?stream=true&hops=1&x", "greet?stream=true&hops=1&x", false, 0},
        {"greet?stream=true&", "greet?stream=true&", false, 0},
        {"greet?&hops=1", "greet?&hops=1", false, 0},
        {"greet?", "greet?", false, 0},
        {"?", "?", false, 0},
        {"?hops=1", "?hops=1", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__jr_query query = {.stream = !rows[i].stream, .hops = 77};
        size_t n = strlen(rows[i].method);
        char *method = malloc(n ? n : 1); /* so that a sanitizer sees a byte too far */
        assert_non_null(method);
        memcpy(method, rows[i].method, n);
        ew_str action = ew__jr_action_of(ew__str(method, n), &query);
        if (!ew_str_eq(action, ew_str_from(rows[i].action)) || query.stream != rows[i].stream ||
            query.hops != rows[i].hops)
            fail_msg("%s: %.*s, %d, %u", rows[i].method, (int)action.len, action.ptr, query.stream, query.hops);
        free(method);
    }
}

static void test_wire_jsonrpc__write_method(void **state) {
    (void)state;
    static const struct {
        const char *action;
        ew__jr_query query;
        const char *text;
    } rows[] = {
        {"/flow/greet", {false, 0}, "'/flow/greet'"},
        {"/flow/greet", {true, 0}, "'/flow/greet?stream=true'"},
        {"a\"b\\c\n", {true, 0}, "'a\\'b\\\\c\\n?stream=true'"},
        {"\xc3\xa9\xe2\x82\xac", {false, 0}, "'\xc3\xa9\xe2\x82\xac'"},
        {"", {true, 0}, "'?stream=true'"},
        {"greet", {false, 1}, "'greet?hops=1'"},
        {"greet", {true, 255}, "'greet?stream=true&hops=255'"},
        {"greet", {EW__JR_EVENTS, 2}, "'greet?stream=events&hops=2'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ew__jr_write_method(&buf, ew_str_from(rows[i].action), &rows[i].query), EW_OK);
        assert_int_equal(ew_json_check(ew__buf_view(&buf), NULL), EW_OK);
        assert_string_equal(taken(), rows[i].text);
    }
    ew__buf small;
    ew__buf_init(&small, ew_env_default(), 8); /* no room for the suffix */
    assert_int_not_equal(ew__jr_write_method(&small, EW_STR("greet"), &(ew__jr_query){.stream = true}), EW_OK);
    ew__buf_done(&small);
    ew__buf_init(&small, ew_env_default(), 8);
    assert_int_not_equal(ew__jr_write_method(&small, EW_STR("greet"), &(ew__jr_query){.hops = 1}), EW_OK);
    ew__buf_done(&small);
}

/* ---- rpc.discover ---- */

#define HEAD(version)                                                                                                  \
    "{'openrpc':'1.3.2','info':{'title':'everywire','version':'" version "','x-everywire':{'streams':true,"            \
    "'streamForms':['true','events']}},'methods':"
#define GREET                                                                                                          \
    "'/flow/greet':{'key':'/flow/greet','name':'greet','actionType':'flow','description':'a \\'b\\'',"                 \
    "'inputSchema':{'type':'object','properties':{'name':{'type':'string'},'n':{}},'required':['n']},"                 \
    "'outputSchema':{'type':'string'}}"

static const char *document_of(const char *listing) {
    assert_int_equal(ew__jr_write_discover(&buf, quoted(listing)), EW_OK);
    assert_int_equal(ew_json_check(ew__buf_view(&buf), NULL), EW_OK);
    return taken();
}

static void test_wire_jsonrpc__discover(void **state) {
    (void)state;
    char expected[4000];
    (void)snprintf(expected, sizeof expected, HEAD("%s") "[]}", ew_version());
    assert_string_equal(document_of("{}"), expected);
    (void)snprintf(expected, sizeof expected,
                   HEAD("%s") "[{'name':'/a/b','paramStructure':'by-name','params':[{'name':'input','schema':{}}],"
                              "'result':{'name':'result','schema':{}},'x-everywire':{'name':'b'}},"
                              "{'name':'/a/c','paramStructure':'by-name','params':[{'name':'input','schema':{'type':"
                              "'number'}}],'result':{'name':'result','schema':{}},'x-everywire':{'inputSchema':"
                              "{'type':'number'}}}]}",
                   ew_version());
    assert_string_equal(document_of("{'/a/b':{'name':'b'},'/a/c':{'inputSchema':{'type':'number'}}}"), expected);
}

/* An object's members are the parameters, the description is the summary. */
static void test_wire_jsonrpc__discover_schemas(void **state) {
    (void)state;
    const char *text = document_of("{'/flow/greet':{'description':'a \\'b\\'','inputSchema':{'type':'object',"
                                   "'properties':{'name':{'type':'string'},'n':{}},'required':['n']},"
                                   "'outputSchema':{'type':'string'}}}");
    assert_non_null(strstr(text, "{'name':'/flow/greet','summary':'a \\'b\\'','paramStructure':'by-name','params':["
                                 "{'name':'name','required':false,'schema':{'type':'string'}},"
                                 "{'name':'n','required':true,'schema':{}}],"
                                 "'result':{'name':'result','schema':{'type':'string'}},'x-everywire':{"));
}

/* What we listed comes back as it was, in its order. */
static void test_wire_jsonrpc__discover_round(void **state) {
    (void)state;
    static const char *const listings[] = {"{}", "{" GREET "}",
                                           "{'/z/\\u00e9 \\'q\\'':{'n':1.50},'/a/b':{}," GREET "}"};
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
        char document[4000];
        (void)snprintf(document, sizeof document, "%s", document_of(listings[i]));
        assert_true(ew__jr_is_everywire(quoted(document)));
        assert_int_equal(ew__jr_read_discover(&buf, quoted(document)), EW_OK);
        assert_string_equal(taken(), listings[i]);
    }
}

static void test_wire_jsonrpc__discover_foreign(void **state) {
    (void)state;
    static const char document[] =
        "{'openrpc':'1.2.6','info':{'title':'x','version':'1'},'methods':[{'name':'eth_call','summary':'calls',"
        "'params':[{'name':'to','schema':{'type':'string'}},{'name':'data'},7],'result':{'name':'r','schema':{'type':'"
        "string'}}},{'name':'a\\u002fb "
        "\\'','summary':7,'x-everywire':1}]}";
    assert_false(ew__jr_is_everywire(quoted(document)));
    assert_int_equal(ew__jr_read_discover(&buf, quoted(document)), EW_OK);
    assert_int_equal(ew_json_check(ew__buf_view(&buf), NULL), EW_OK);
    assert_string_equal(
        taken(),
        "{'/method/eth_call':{'key':'/method/eth_call','name':'eth_call','actionType':'method','description':'calls',"
        "'inputSchema':{'type':'object','properties':{'to':{'type':'string'},'data':{}}},'outputSchema':{'type':'"
        "string'}},'/method/a\\u002fb \\'':{'key':'/method/a\\u002fb \\'','name':'a\\u002fb "
        "\\'',"
        "'actionType':'method'}}");
}

static void test_wire_jsonrpc__discover_junk(void **state) {
    (void)state;
    static const char *const junk[] = {"null",
                                       "1",
                                       "'x'",
                                       "[]",
                                       "{}",
                                       "{'methods':{}}",
                                       "{'methods':null}",
                                       "{'methods':[1]}",
                                       "{'methods':[{}]}",
                                       "{'methods':[{'name':1}]}",
                                       "{'methods':[{'name':'a'},null]}"};
    static const char *const others[] = {"null",
                                         "[]",
                                         "{'info':1}",
                                         "{'info':{'x-everywire':true}}",
                                         "{'info':{'x-everywire':{'streams':'true'}}}",
                                         "{'info':{'x-everywire':{'streams':false}}}"};
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        assert_int_equal(ew__jr_read_discover(&buf, quoted(junk[i])), EW_EPROTO);
        ew__buf_clear(&buf);
        assert_false(ew__jr_is_everywire(quoted(junk[i])));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(ew__jr_is_everywire(quoted(others[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__faults_cross),     cmocka_unit_test(test_wire_jsonrpc__retry_members),
        cmocka_unit_test(test_wire_jsonrpc__foreign_errors),   cmocka_unit_test(test_wire_jsonrpc__methods),
        cmocka_unit_test(test_wire_jsonrpc__write_method),     cmocka_unit_test(test_wire_jsonrpc__discover),
        cmocka_unit_test(test_wire_jsonrpc__discover_schemas), cmocka_unit_test(test_wire_jsonrpc__discover_round),
        cmocka_unit_test(test_wire_jsonrpc__discover_foreign), cmocka_unit_test(test_wire_jsonrpc__discover_junk),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
