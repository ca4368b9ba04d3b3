/*
 * tests/unit/wire/test_rpc_envelope.c: what a message of JSON-RPC says, and the texts of those to send. In the tables
 * ' stands for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/fail_env.h"
#include "wire/jsonrpc_envelope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void swap_quotes(char *text) {
    for (; *text; text++)
        *text = *text == '\'' ? '"' : *text == '"' ? '\'' : *text;
}

static const char *const kinds[] = {"invalid", "request", "notification", "result", "error", "frame"};

static size_t add_part(char *out, size_t n, size_t size, const char *name, ew_str value) {
    if (!value.ptr)
        return n;
    return n + (size_t)snprintf(out + n, size - n, " %s=%.*s", name, (int)value.len, value.ptr);
}

/* Everything that was read, as one line. */
static const char *describe(const char *text, unsigned with) {
    static char copy[20000], out[4000];
    ew__json_doc doc;
    ew__rpc rpc;
    assert_true(strlen(text) < sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    swap_quotes(copy);
    assert_int_equal(ew__json_parse(&doc, ew_str_from(copy)), EW_OK);
    ew__rpc_read(&doc, with, &rpc);
    size_t n = (size_t)snprintf(out, sizeof out, "%s", kinds[rpc.kind]);
    if (rpc.stream)
        n += (size_t)snprintf(out + n, sizeof out - n, " stream=%d", rpc.stream);
    n = add_part(out, n, sizeof out, "id", rpc.id);
    n = add_part(out, n, sizeof out, "method", rpc.method);
    n = add_part(out, n, sizeof out, "params", rpc.params);
    n = add_part(out, n, sizeof out, "result", rpc.result);
    n = add_part(out, n, sizeof out, "error", rpc.error);
    n = add_part(out, n, sizeof out, "data", rpc.data);
    if (rpc.problem)
        (void)snprintf(out + n, sizeof out - n, " (%s)", rpc.problem);
    assert_int_equal(rpc.kind == EW__RPC_INVALID, rpc.problem != NULL);
    swap_quotes(out);
    return out;
}

typedef struct row {
    const char *text, *expected;
} row;

static void check_rows(const row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *got = describe(rows[i].text, EW__RPC_WITH_STREAMS);
        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", rows[i].text, rows[i].expected, got);
    }
}
#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof *(rows))

#define RPC "{'jsonrpc':'2.0',"
#define WRONG_VERSION "(jsonrpc must be '2.0')"
#define WRONG_METHOD "(method must be a string that is not empty)"
#define WRONG_ID "invalid (id must be a string, a number or null)"
#define NEITHER "(neither method, result nor error)"

/* ---- reading ---- */

static void test_wire_rpc__version(void **state) {
    (void)state;
    static const row rows[] = {
        {"{'jsonrpc':'2.0','method':'m','id':1}", "request id=1 method='m'"},
        {"{'method':'m','id':1}", "invalid id=1 method='m' " WRONG_VERSION},
        {"{'jsonrpc':'1.0','method':'m','id':1}", "invalid id=1 method='m' " WRONG_VERSION},
        {"{'jsonrpc':'2','method':'m','id':1}", "invalid id=1 method='m' " WRONG_VERSION},
        {"{'jsonrpc':'2.0 ','method':'m','id':1}", "invalid id=1 method='m' " WRONG_VERSION},
        {"{'jsonrpc':2.0,'method':'m','id':1}", "invalid id=1 method='m' " WRONG_VERSION},
        {"{'jsonrpc':null,'method':'m'}", "invalid method='m' " WRONG_VERSION},
        /* answers and frames are taken without it: the reference codec does not look, and nothing else can be meant */
        {"{'id':1,'result':2}", "result id=1 result=2"},
        {"{'jsonrpc':'1.0','id':1,'result':2}", "result id=1 result=2"},
        {"{'id':'a','stream':2,'data':3}", "frame stream=2 id='a' data=3"},
    };
    CHECK_ROWS(rows);
}

static void test_wire_rpc__method(void **state) {
    (void)state;
    static const row rows[] = {
        {RPC "'method':'m'}", "notification method='m'"},
        {RPC "'method':'\\u006d','id':1}", "request id=1 method='\\u006d'"},
        {RPC "'method':'rpc.x','id':1}", "request id=1 method='rpc.x'"},
        {RPC "'method':1,'id':1}", "invalid id=1 method=1 " WRONG_METHOD},
        {RPC "'method':{},'id':1}", "invalid id=1 method={} " WRONG_METHOD},
        {RPC "'method':[],'id':1}", "invalid id=1 method=[] " WRONG_METHOD},
        {RPC "'method':true,'id':1}", "invalid id=1 method=true " WRONG_METHOD},
        {RPC "'method':'','id':1}", "invalid id=1 method='' " WRONG_METHOD},
        {RPC "'method':null,'id':1}", "invalid id=1 method=null " WRONG_METHOD},
        {RPC "'method':null,'id':1,'result':2}", "result id=1 result=2"},
        {RPC "'method':null,'id':1,'error':2}", "error id=1 error=2"},
        {RPC "'method':null,'id':1,'error':null}", "invalid id=1 method=null " WRONG_METHOD},
        {RPC "'method':'m','id':1,'result':2}", "request id=1 method='m'"},
        /* names are exact */
        {RPC "'Method':'m','id':1}", "invalid id=1 " NEITHER},
        {RPC "'method':'m','ID':1}", "notification method='m'"},
        {RPC "'method':'m','PARAMS':1,'id':1}", "request id=1 method='m'"},
    };
    CHECK_ROWS(rows);
}

static void test_wire_rpc__params(void **state) {
    (void)state;
    static const row rows[] = {
        {RPC "'method':'m','params':[1, 2],'id':1}", "request id=1 method='m' params=[1, 2]"},
        {RPC "'method':'m','params':{'a' : 1},'id':1}", "request id=1 method='m' params={'a' : 1}"},
        {RPC "'method':'m','params':'x','id':1}", "request id=1 method='m' params='x'"},
        {RPC "'method':'m','params':0,'id':1}", "request id=1 method='m' params=0"},
        {RPC "'method':'m','params':null,'id':1}", "request id=1 method='m' params=null"},
        {RPC "'method':'m','params':false}", "notification method='m' params=false"},
        {RPC "'method':'m','unknown':{'id':2},'id':1}", "request id=1 method='m'"},
    };
    CHECK_ROWS(rows);
}

/* Ids are slices: the very text comes back. */
static void test_wire_rpc__ids(void **state) {
    (void)state;
    static const char *const good[] = {"0",
                                       "1",
                                       "-1",
                                       "1.5",
                                       "1.0",
                                       "1e400",
                                       "-0",
                                       "9007199254740993",
                                       "18446744073709551615",
                                       "''",
                                       "'1'",
                                       "'\\u0031'",
                                       "'\\ud83d\\ude00'",
                                       "'\\ud800'",
                                       "'\xc3\xa9'",
                                       "null"};
    static const char *const bad[] = {"true", "false", "[]", "[1]", "{}", "{'id':1}"};
    char text[200], expected[200];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        (void)snprintf(text, sizeof text, RPC "'id': %s ,'method':'m'}", good[i]);
        (void)snprintf(expected, sizeof expected, "request id=%s method='m'", good[i]);
        assert_string_equal(describe(text, 0), expected);
        (void)snprintf(text, sizeof text, RPC "'result':[],'id':%s}", good[i]);
        (void)snprintf(expected, sizeof expected, "result id=%s result=[]", good[i]);
        assert_string_equal(describe(text, EW__RPC_WITH_STREAMS), expected);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(text, sizeof text, RPC "'id':%s,'method':'m'}", bad[i]);
        assert_string_equal(describe(text, 0), WRONG_ID);
        (void)snprintf(text, sizeof text, RPC "'id':%s,'stream':2}", bad[i]);
        assert_string_equal(describe(text, EW__RPC_WITH_STREAMS), WRONG_ID);
    }
}

static void test_wire_rpc__answers(void **state) {
    (void)state;
    static const row rows[] = {
        {RPC "'id':1,'result':null}", "result id=1 result=null"},
        {RPC "'id':1,'result':false,'error':null}", "result id=1 result=false error=null"},
        {RPC "'id':1,'result':1,'error':{'code':1}}", "error id=1 result=1 error={'code':1}"},
        {RPC "'id':1,'error':''}", "error id=1 error=''"},
        {RPC "'id':1,'error':0}", "error id=1 error=0"},
        {RPC "'id':1,'error':false}", "error id=1 error=false"},
        {RPC "'id':1,'error':null}", "invalid id=1 error=null " NEITHER},
        {RPC "'id':1}", "invalid id=1 " NEITHER},
        {RPC "'error':{}}", "error error={}"},
        {RPC "'id':null,'error':{}}", "error id=null error={}"},
        {"{}", "invalid " NEITHER},
        {"{'foo':'boo'}", "invalid " NEITHER},
        {RPC "'id':1,'stream':1,'result':{}}", "result stream=1 id=1 result={}"},
        {RPC "'id':1,'stream':1,'error':{}}", "error stream=1 id=1 error={}"},
    };
    CHECK_ROWS(rows);
}

#define WRONG_STREAM "(stream must be 0, 1, 2 or 3)"

static void test_wire_rpc__streams(void **state) {
    (void)state;
    static const row rows[] = {
        {RPC "'id':1,'stream':0,'method':'m'}", "request id=1 method='m'"},
        {RPC "'id':1,'stream':null,'method':'m'}", "request id=1 method='m'"},
        {RPC "'id':1,'stream':1,'method':'m'}", "request stream=1 id=1 method='m'"},
        {RPC "'stream':1,'method':'m'}", "invalid stream=1 method='m' (a stream needs an id)"},
        {RPC "'id':null,'stream':1,'method':'m'}", "invalid stream=1 id=null method='m' (a stream needs an id)"},
        {RPC "'id':1,'stream':2,'data':[]}", "frame stream=2 id=1 data=[]"},
        {RPC "'id':1,'stream':2}", "frame stream=2 id=1"},
        {RPC "'id':1,'stream':2,'data':null}", "frame stream=2 id=1 data=null"},
        {RPC "'stream':2,'data':1}", "frame stream=2 data=1"},
        {RPC "'id':1,'stream':2,'method':'m','params':1,'data':1}", "frame stream=2 id=1 data=1"},
        {RPC "'id':1,'stream':2,'result':1,'data':1}", "frame stream=2 id=1 data=1"},
        {RPC "'id':1,'stream':3}", "frame stream=3 id=1"},
        {RPC "'id':1,'stream':3,'data':{'result':1}}", "frame stream=3 id=1 data={'result':1}"},
        {RPC "'id':1,'stream':4}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':10}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':-1}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':1.0,'method':'m'}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':1e0,'method':'m'}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':'1','method':'m'}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':true,'method':'m'}", "invalid stream=-1 id=1 " WRONG_STREAM},
        {RPC "'id':1,'stream':[2],'method':'m'}", "invalid stream=-1 id=1 " WRONG_STREAM},
    };
    CHECK_ROWS(rows);
    /* a wire without streams does not know these members, repeated or not */
    assert_string_equal(describe(RPC "'id':1,'stream':2,'stream':'x','data':1,'data':2,'method':'m'}", 0),
                        "request id=1 method='m'");
    assert_string_equal(describe(RPC "'id':1,'stream':2,'data':1}", 0), "invalid id=1 " NEITHER);
}

#define REPEATED "(a member is repeated)"

static void test_wire_rpc__repeated(void **state) {
    (void)state;
    static const row rows[] = {
        {RPC "'method':'a','method':'b','id':1}", "invalid id=1 " REPEATED},
        {RPC "'method':'a','\\u006dethod':'b','id':1}", "invalid id=1 " REPEATED},
        {RPC "'\\u006dethod':'a','method':'b','id':1}", "invalid id=1 " REPEATED},
        {RPC "'m\\u0065thod':'b','id':1}", "request id=1 method='b'"},
        {RPC "'method':'a','id':1,'id':2}", "invalid " REPEATED},
        {RPC "'method':'a','id':1,'\\u0069d':1}", "invalid " REPEATED},
        {RPC "'jsonrpc':'2.0','method':'a','id':1}", "invalid id=1 " REPEATED},
        {RPC "'id':1,'result':1,'result':1}", "invalid id=1 " REPEATED},
        {RPC "'id':1,'error':{},'error':{}}", "invalid id=1 " REPEATED},
        {RPC "'id':1,'method':'m','params':1,'params':2}", "invalid id=1 " REPEATED},
        {RPC "'id':1,'stream':2,'stream':2,'data':1}", "invalid stream=2 id=1 data=1 " REPEATED},
        {RPC "'id':1,'stream':2,'data':1,'data':1}", "invalid stream=2 id=1 data=1 " REPEATED},
        {RPC "'id':1,'method':'m','x':1,'x':2}", "request id=1 method='m'"},
        {RPC "'id':1,'method':'m','params':{'a':1,'a':2}}", "request id=1 method='m' params={'a':1,'a':2}"},
    };
    CHECK_ROWS(rows);
}

/* More members than the parser notes: they are found all the same, and so are repetitions. */
static void test_wire_rpc__many_members(void **state) {
    (void)state;
    char text[8000], many[4000] = "";
    size_t n = 0;
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "'x%d':{'id':%d},", i, i);
    (void)snprintf(text, sizeof text, "{%s'jsonrpc':'2.0','id':7,'method':'m','params':[8]}", many);
    assert_string_equal(describe(text, 0), "request id=7 method='m' params=[8]");
    (void)snprintf(text, sizeof text, "{'id':7,%s'jsonrpc':'2.0','method':'m','stream':1,'params':[8]}", many);
    assert_string_equal(describe(text, EW__RPC_WITH_STREAMS), "request stream=1 id=7 method='m' params=[8]");
    (void)snprintf(text, sizeof text, "{'id':7,%s'stream':2,'data':1}", many);
    assert_string_equal(describe(text, EW__RPC_WITH_STREAMS), "frame stream=2 id=7 data=1");
    (void)snprintf(text, sizeof text, "{'id':7,'method':'a',%s'method':'b'}", many);
    assert_string_equal(describe(text, 0), "invalid id=7 " REPEATED);
    (void)snprintf(text, sizeof text, "{'id':7,'result':1,%s'i\\u0064':8}", many);
    assert_string_equal(describe(text, 0), "invalid " REPEATED);
    n = 0; /* children of params use up the nodes as well */
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "%s%d", i ? "," : "", i);
    (void)snprintf(text, sizeof text, "{'params':[%s],'jsonrpc':'2.0','method':'m','id':'z'}", many);
    n = strlen("request id='z' method='m' params=[");
    assert_memory_equal(describe(text, 0), "request id='z' method='m' params=[", n);
}

static void test_wire_rpc__no_object(void **state) {
    (void)state;
    static const char *const texts[] = {"1", "'x'", "true", "null", "[]", "[{}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(describe(texts[i], EW__RPC_WITH_STREAMS), "invalid (a message is an object)");
}

/* ---- look-ups ---- */

static void test_wire_rpc__key(void **state) {
    (void)state;
    static const struct {
        const char *id, *key;
    } rows[] = {
        {"\"a\"", "\"a\""},       {"\"\\u0061\"", "\"a\""},
        {"\"\\/\"", "\"/\""},     {"\"\\u00e9\"", "\"\xc3\xa9\""},
        {"\"\\u0031\"", "\"1\""}, {"1", "1"},
        {"null", "null"},         {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
    };
    char buf[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew_str key = ew__rpc_key(ew_str_from(rows[i].id), buf, sizeof buf);
        assert_true(ew_str_eq(key, ew_str_from(rows[i].key)));
    }
    /* without room it stays as it is written, and the buffer's end is respected */
    char *small = malloc(4);
    assert_non_null(small);
    ew_str id = EW_STR("\"\\u0061bc\"");
    assert_true(ew_str_eq(ew__rpc_key(id, small, 4), id));
    assert_true(ew_str_eq(ew__rpc_key(id, small, 2), id));
    assert_true(ew_str_eq(ew__rpc_key(EW_STR("\"\\u0061b\""), small, 4), EW_STR("\"ab\"")));
    free(small);
}

static void test_wire_rpc__text(void **state) {
    (void)state;
    char buf[8];
    assert_true(ew_str_eq(ew__rpc_text(EW_STR("\"plain text\""), buf, sizeof buf), EW_STR("plain text")));
    assert_true(ew_str_eq(ew__rpc_text(EW_STR("\"a\\n\\\"b\""), buf, sizeof buf), EW_STR("a\n\"b")));
    assert_int_equal(ew__rpc_text(EW_STR("\"\\n12345678\""), buf, sizeof buf).len, 0);
    assert_int_equal(ew__rpc_text(EW_STR("12"), buf, sizeof buf).len, 0);
    assert_int_equal(ew__rpc_text(EW_STR("\"\""), buf, sizeof buf).len, 0);
}

/* ---- errors ---- */

static void test_wire_rpc__read_error(void **state) {
    (void)state;
    static const struct {
        const char *error;
        int64_t code;
        const char *message, *data;
    } rows[] = {
        {"{'code':-32601,'message':'no','data':{'a':[1]}}", -32601, "no", "{'a':[1]}"},
        {"{'code':-32000,'message':'a\\n\\u00e9','data':null}", -32000, "a\n\xc3\xa9", ""},
        {"{'message':'only'}", 0, "only", ""},
        {"{'code':'x','message':'m'}", 0, "m", ""},
        {"{'code':1.5,'message':'m'}", 0, "m", ""},
        {"{'code':9223372036854775807,'message':''}", INT64_MAX, "", ""},
        {"{'code':99999999999999999999,'message':'m'}", 0, "m", ""},
        {"{'code':5,'data':[1]}", 5, "{'code':5,'data':[1]}", "[1]"},
        {"{'code':5,'message':{'x':1}}", 5, "{'code':5,'message':{'x':1}}", ""},
        {"{}", 0, "{}", ""},
        {"'plain failure: \\u003cx\\u003e'", 0, "plain failure: <x>", ""},
        {"''", 0, "", ""},
        {"42", 0, "42", ""},
        {"true", 0, "true", ""},
        {"null", 0, "null", ""},
        {"[1, 2]", 0, "[1, 2]", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char error[200], message[200], data[50], buf[100];
        ew__rpc_error e;
        (void)snprintf(error, sizeof error, "%s", rows[i].error);
        (void)snprintf(message, sizeof message, "%s", rows[i].message);
        (void)snprintf(data, sizeof data, "%s", rows[i].data);
        swap_quotes(error);
        swap_quotes(message);
        swap_quotes(data);
        ew__rpc_read_error(ew_str_from(error), buf, sizeof buf, &e);
        assert_int_equal(e.code, rows[i].code);
        if (!ew_str_eq(e.message, ew_str_from(message)) || !ew_str_eq(e.data, ew_str_from(data)))
            fail_msg("%s: message %.*s, data %.*s", error, (int)e.message.len, e.message.ptr, (int)e.data.len,
                     e.data.ptr ? e.data.ptr : "");
    }
    char small[4]; /* a message with escapes that does not fit stays as it is written */
    ew__rpc_error e;
    ew__rpc_read_error(EW_STR("{\"message\":\"\\t123456\"}"), small, sizeof small, &e);
    assert_true(ew_str_eq(e.message, EW_STR("\"\\t123456\"")));
}

/* ---- writing ---- */

/* The message as text, valid JSON, and as long as it says. */
static const char *text_of(const ew__rpc_out *out) {
    static char text[500];
    size_t n = 0;
    assert_true(out->n <= EW__RPC_PIECES);
    for (unsigned i = 0; i < out->n; i++) {
        assert_true(n + out->piece[i].len < sizeof text);
        if (out->piece[i].len)
            memcpy(text + n, out->piece[i].ptr, out->piece[i].len);
        n += out->piece[i].len;
    }
    text[n] = '\0';
    assert_int_equal(n, out->len);
    assert_int_equal(ew_json_check(ew__str(text, n), NULL), EW_OK);
    swap_quotes(text);
    return text;
}

static void test_wire_rpc__put(void **state) {
    (void)state;
    const ew_str none = ew__str(NULL, 0), id = EW_STR("\"i\""), method = EW_STR("\"m\""), data = EW_STR("[1]");
    ew__rpc_out out;
    ew__rpc_put_request(&out, id, method, 0, data);
    assert_string_equal(text_of(&out), RPC "'id':'i','method':'m','params':[1]}");
    ew__rpc_put_request(&out, id, method, 1, data);
    assert_string_equal(text_of(&out), RPC "'id':'i','method':'m','stream':1,'params':[1]}");
    ew__rpc_put_request(&out, id, method, 0, none);
    assert_string_equal(text_of(&out), RPC "'id':'i','method':'m'}");
    ew__rpc_put_request(&out, none, method, 0, data);
    assert_string_equal(text_of(&out), RPC "'method':'m','params':[1]}");
    ew__rpc_put_result(&out, EW_STR("12"), 0, data);
    assert_string_equal(text_of(&out), RPC "'id':12,'result':[1]}");
    ew__rpc_put_result(&out, EW_STR("null"), 1, data);
    assert_string_equal(text_of(&out), RPC "'id':null,'stream':1,'result':[1]}");
    ew__rpc_put_error(&out, none, EW_STR("{}"));
    assert_string_equal(text_of(&out), RPC "'id':null,'error':{}}");
    ew__rpc_put_error(&out, id, EW_STR("{}"));
    assert_string_equal(text_of(&out), RPC "'id':'i','error':{}}");
    ew__rpc_put_frame(&out, id, EW__RPC_STREAM_DATA, data);
    assert_string_equal(text_of(&out), RPC "'id':'i','stream':2,'data':[1]}");
    ew__rpc_put_frame(&out, id, EW__RPC_STREAM_CLOSE, none);
    assert_string_equal(text_of(&out), RPC "'id':'i','stream':3}");
    ew__rpc_put_close(&out, id, false, data);
    assert_string_equal(text_of(&out), RPC "'id':'i','stream':3,'data':{'result':[1]}}");
}

/* A frame that is told by its bytes is what the reader of envelopes finds; others are left to that. */
static void test_wire_rpc__data_frames(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *data; /* NULL: it is not told */
    } rows[] = {
        {RPC "'id':'i','stream':2,'data':[1]}", "[1]"},
        {RPC "'id':'i','stream':2,'data':{'data':{}}}", "{'data':{}}"},
        {RPC "'id':'i','stream':2,'data':'}'}", "'}'"},
        {RPC "'id':'j','stream':2,'data':[1]}", NULL},
        {RPC "'id':'i','stream':3,'data':[1]}", NULL},
        {RPC "'id':'i','stream':2,'data':[1] }", NULL},
        {RPC "'id':'i','stream':2,'data': [1]}", NULL},
        {RPC "'id':'i','stream':2,'data':1,'data':2}", NULL},
        {RPC "'id':'i','stream':2,'data':1,'id':'j'}", NULL},
        {RPC "'id':'i','stream':2,'data':1}}", NULL},
        {RPC "'id':'i','stream':2,'data':}", NULL},
        {RPC "'id':'i','stream':2,'data':1]", NULL},
        {RPC "'id':'i','stream':2}", NULL},
        {"{'id':'i'}", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200], data[50], frame[200];
        ew_str got;
        (void)snprintf(text, sizeof text, "%s", rows[i].text);
        (void)snprintf(data, sizeof data, "%s", rows[i].data ? rows[i].data : "");
        swap_quotes(text);
        swap_quotes(data);
        assert_int_equal(ew__rpc_is_data_frame(ew_str_from(text), EW_STR("\"i\""), &got), rows[i].data != NULL);
        if (!rows[i].data)
            continue;
        assert_true(ew_str_eq(got, ew_str_from(data)));
        size_t n = ew__rpc_data_frame_len(EW_STR("\"i\""), got);
        assert_int_equal(ew__rpc_write_data_frame((uint8_t *)frame, EW_STR("\"i\""), got) - (uint8_t *)frame, n);
        assert_true(ew_str_eq(ew__str(frame, n), ew_str_from(text)));
    }
}

/* Frames of one stream, a line each, up to the first that is anything else. */
static void test_wire_rpc__frame_rows(void **state) {
    (void)state;
#define FRAME RPC "'id':'i','stream':2,'data':"
    static const char *const others[] = {FRAME "3}",
                                         FRAME "3}\r\n",
                                         FRAME "3} \n",
                                         FRAME "3}}\n",
                                         FRAME " 3}\n",
                                         FRAME "\xc3\xa4}\n",
                                         FRAME "3\n}",
                                         FRAME "01}\n",
                                         FRAME,
                                         "\n",
                                         "",
                                         RPC "'id':'j','stream':2,'data':3}\n",
                                         RPC "'id':'i','stream':3,'data':3}\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[400];
        ew_str frames[4];
        size_t used = 7, rest = strlen(others[i]);
        (void)snprintf(text, sizeof text, "%s%s%s", FRAME "[1, 'x']}\n", FRAME "2}\n", others[i]);
        swap_quotes(text);
        assert_int_equal(ew__rpc_read_row(ew_str_from(text), EW_STR("\"i\""), frames, 4, &used), 2);
        assert_int_equal(used, strlen(text) - rest);
        assert_true(ew_str_eq(frames[0], EW_STR("[1, \"x\"]")) && ew_str_eq(frames[1], EW_STR("2")));
        assert_int_equal(ew__rpc_read_row(ew_str_from(text), EW_STR("\"i\""), frames, 1, &used), 1);
        assert_int_equal(used, strlen(FRAME "[1, 'x']}\n"));
        assert_int_equal(ew__rpc_read_row(ew_str_from(text), EW_STR("\"h\""), frames, 4, &used), 0);
        assert_int_equal(used, 0);
    }
#undef FRAME
}

/* Whether a result is told by its bytes; if its id is a good one, the reader of envelopes must find the same. */
static bool told_result(ew_str text) {
    ew_str id, result;
    ew__json_doc doc;
    ew__rpc message;
    if (!ew__rpc_is_result(text, &id, &result))
        return false;
    if (ew__json_parse(&doc, id) != EW_OK)
        return true; /* no request has it */
    bool parsed = ew__json_parse(&doc, text) == EW_OK;
    if (parsed)
        ew__rpc_read(&doc, EW__RPC_WITH_STREAMS, &message);
    if (!parsed || message.kind != EW__RPC_RESULT || message.stream != 0 || message.error.len || message.method.len ||
        message.result.ptr != result.ptr || message.result.len != result.len || message.id.ptr != id.ptr ||
        message.id.len != id.len)
        fail_msg("the two differ on %.*s", (int)text.len, text.ptr);
    return true;
}

/* Every byte of results is left out, comes twice, is another one, or is the last. */
static void change_result(const char *text) {
    static const char others[] = "{}[],:\"\\ 0n\t\x80";
    char changed[200];
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at++) {
        (void)told_result(ew__str(text, at));
        memcpy(changed, text, at);
        memcpy(changed + at, text + at + 1, n - at - 1);
        (void)told_result(ew__str(changed, n - 1));
        memcpy(changed + at, text + at, n - at);
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = others[i];
            (void)told_result(ew__str(changed, n));
        }
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = others[i];
            memcpy(changed + at + 1, text + at, n - at);
            (void)told_result(ew__str(changed, n + 1));
        }
    }
}

static void test_wire_rpc__results(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool told;
    } rows[] = {
        {RPC "'id':'i-1','result':[1]}", true},
        {RPC "'id':'i','result':{'id':{},'error':1,'t':'}\\''}}", true},
        {RPC "'id':'i','result':null}", true},
        {RPC "'id':'','result':-1.5e3}", true},
        {RPC "'id':'i\\n','result':'x'}", true},
        {RPC "'id':'i\\'','result':1}", false},
        {RPC "'id':1,'result':1}", false},
        {RPC "'id':null,'result':1}", false},
        {RPC "'id':'i','result':1,'result':2}", false},
        {RPC "'id':'i','result':1,'error':null}", false},
        {RPC "'id':'i','result':1,'stream':1}", false},
        {RPC "'id':'i','stream':1,'result':1}", false},
        {RPC "'id':'i','result':1}}", false},
        {RPC "'id':'i','result': 1}", false},
        {RPC "'id':'i','result':1 }", false},
        {RPC "'id':'i','result':}", false},
        {RPC "'id':'i','result':[1}", false},
        {RPC "'id':'i','error':{}}", false},
        {RPC "'id':'i", false},
        {RPC "'id':'", false},
        {RPC "'id':", false},
        {"{'id':'i','result':1}", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[150];
        (void)snprintf(text, sizeof text, "%s", rows[i].text);
        swap_quotes(text);
        if (told_result(ew_str_from(text)) != rows[i].told)
            fail_msg("%s: %s", rows[i].told ? "not told" : "told", text);
        change_result(text);
    }
}

static void test_wire_rpc__write_error(void **state) {
    (void)state;
    ew__buf buf;
    ew__buf_init(&buf, ew_env_default(), 1000);
    assert_int_equal(ew__rpc_write_error(&buf, -32700, EW_STR("a \"b\"\n"), ew__str(NULL, 0)), EW_OK);
    assert_true(ew_str_eq(ew__buf_view(&buf), EW_STR("{\"code\":-32700,\"message\":\"a \\\"b\\\"\\n\"}")));
    ew__buf_clear(&buf);
    assert_int_equal(ew__rpc_write_error(&buf, INT64_MIN, EW_STR(""), EW_STR("{}")), EW_OK);
    assert_true(ew_str_eq(ew__buf_view(&buf), EW_STR("{\"code\":-9223372036854775808,\"message\":\"\",\"data\":{}}")));
    ew__buf_done(&buf);
    ew__buf_init(&buf, ew_env_default(), 10); /* what does not fit is told */
    assert_int_not_equal(ew__rpc_write_error(&buf, 1, EW_STR("message"), ew__str(NULL, 0)), EW_OK);
    ew__buf_done(&buf);
}

/* Strings that are no decimal numbers, never twice, and others on another connection. */
static void test_wire_rpc__own_ids(void **state) {
    (void)state;
    ew__test_env env;
    ew__rpc_ids ids[2];
    char out[2][EW__RPC_ID_ROOM];
    ew__test_env_init(&env, 1);
    ew__rpc_ids_init(&ids[0], &env.env);
    ew__rpc_ids_init(&ids[1], &env.env);
    for (int i = 1; i <= 12; i++) {
        char end[8];
        size_t n = ew__rpc_ids_next(&ids[0], out[0]), m = ew__rpc_ids_next(&ids[1], out[1]);
        size_t end_len = (size_t)snprintf(end, sizeof end, "-%d\"", i);
        assert_int_equal(n, m);
        assert_memory_equal(out[0], "\"ew", 3);
        assert_memory_equal(out[0] + n - end_len, end, end_len);
        assert_memory_not_equal(out[0], out[1], n);
        for (size_t k = 3; k < 13; k++)
            assert_non_null(memchr("0123456789abcdef", out[0][k], 16));
    }
    ids[0].next = UINT64_MAX;
    assert_true(ew__rpc_ids_next(&ids[0], out[0]) <= EW__RPC_ID_ROOM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rpc__version),     cmocka_unit_test(test_wire_rpc__method),
        cmocka_unit_test(test_wire_rpc__params),      cmocka_unit_test(test_wire_rpc__ids),
        cmocka_unit_test(test_wire_rpc__answers),     cmocka_unit_test(test_wire_rpc__streams),
        cmocka_unit_test(test_wire_rpc__repeated),    cmocka_unit_test(test_wire_rpc__many_members),
        cmocka_unit_test(test_wire_rpc__no_object),   cmocka_unit_test(test_wire_rpc__key),
        cmocka_unit_test(test_wire_rpc__text),        cmocka_unit_test(test_wire_rpc__read_error),
        cmocka_unit_test(test_wire_rpc__put),         cmocka_unit_test(test_wire_rpc__write_error),
        cmocka_unit_test(test_wire_rpc__own_ids),     cmocka_unit_test(test_wire_rpc__frame_rows),
        cmocka_unit_test(test_wire_rpc__data_frames), cmocka_unit_test(test_wire_rpc__results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
