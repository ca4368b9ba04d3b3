/*
 * tests/unit/wire/test_reflection_codec.c: what the messages of the reflection wire say, both ways, with peers of all
 * makes and with hostile ones. Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/codec.h"
#include "support/json_or.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BIG 100000

static char *quoted(const char *text) {
    size_t n = strlen(text);
    char *copy = malloc(n + 1);
    assert_non_null(copy);
    for (size_t i = 0; i <= n; i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

/* A message with these params (or this result), in memory of exactly its size. */
typedef struct message {
    char *text;
    ew__json_doc doc;
    ew__rpc rpc;
} message;

static void read_message(message *m, const char *member, const char *value) {
    size_t n = strlen(value) + 100;
    char *text = malloc(n);
    assert_non_null(text);
    (void)snprintf(text, n, "{'jsonrpc':'2.0',%s'%s':%s,'id':1}", strcmp(member, "params") == 0 ? "'method':'m'," : "",
                   member, value);
    char *json = quoted(text);
    free(text);
    m->text = malloc(strlen(json));
    assert_non_null(m->text);
    memcpy(m->text, json, strlen(json));
    assert_int_equal(ew__json_parse(&m->doc, ew__str(m->text, strlen(json))), EW_OK);
    ew__rpc_read(&m->doc, 0, &m->rpc);
    assert_int_not_equal(m->rpc.kind, EW__RPC_INVALID);
    free(json);
}

static void check_str_at(ew_str got, const char *expected, int line) {
    char *text = quoted(expected);
    if (!ew_str_eq(got, ew_str_from(text)))
        fail_msg("line %d: %.*s, not %s", line, (int)got.len, got.len ? got.ptr : "", text);
    free(text);
}
#define check_str(got, expected) check_str_at((got), (expected), __LINE__)

/* ---- runAction ---- */

static const char *problem_of(const char *params) {
    message m;
    ew__rf_run run;
    read_message(&m, "params", params);
    const char *problem = ew__rf_read_run(&m.doc, m.rpc.params, &run);
    free(m.text);
    return problem ? problem : "";
}

static void test_wire_reflection_codec__run(void **state) {
    (void)state;
    message m;
    ew__rf_run run;
    read_message(&m, "params",
                 "{'key':'/flow/x','input':{'a':1},'init':[2],'context':{'c':3},'telemetryLabels':{'l':'4'},"
                 "'stream':true,'streamInput':true,'traceparent':'00-a','runtimeId':'r','x':{'key':1}}");
    assert_null(ew__rf_read_run(&m.doc, m.rpc.params, &run));
    check_str(run.key, "/flow/x");
    check_str(run.input, "{'a':1}");
    check_str(run.init, "[2]");
    check_str(run.context, "{'c':3}");
    check_str(run.labels, "{'l':'4'}");
    check_str(run.traceparent, "00-a");
    assert_true(run.stream && run.stream_input);
    free(m.text);
    read_message(&m, "params",
                 "{'key':'x','input':null,'context':null,'telemetryLabels':null,'stream':null,"
                 "'streamInput':false,'traceparent':17}");
    assert_null(ew__rf_read_run(&m.doc, m.rpc.params, &run));
    check_str(run.input, "null"); /* a value like others */
    assert_true(run.init.len == 0 && run.context.len == 0 && run.labels.len == 0 && run.traceparent.len == 0);
    assert_true(!run.stream && !run.stream_input);
    free(m.text);
}

/* Members whose names are spelled with escapes are the same members; a key is decoded. */
static void test_wire_reflection_codec__run_escapes(void **state) {
    (void)state;
    message m;
    ew__rf_run run;
    read_message(&m, "params", "{'\\u006bey':'/\\u0066low\\/\\u00e4','\\u0069nput':'\\u0041','stream':true}");
    assert_null(ew__rf_read_run(&m.doc, m.rpc.params, &run));
    check_str(run.key, "/flow/\xc3\xa4");
    check_str(run.input, "'\\u0041'"); /* payloads stay as they are */
    assert_true(run.stream);
    free(m.text);
    assert_string_equal(problem_of("{'key':'a','\\u006bey':'b'}"), "a member of params is repeated");
    assert_string_equal(problem_of("{'key':'a\\ud800'}"), "key must be a string that is not empty, and not too long");
    assert_string_equal(problem_of("{'key':'a','traceparent':'\\u0030'}"), "");
}

static void test_wire_reflection_codec__run_problems(void **state) {
    (void)state;
    static const struct {
        const char *params, *problem;
    } cases[] = {
        {"null", "params must be an object"},
        {"'x'", "params must be an object"},
        {"[]", "params must be an object"},
        {"{}", "key must be a string"},
        {"{'key':null}", "key must be a string"},
        {"{'key':['x']}", "key must be a string"},
        {"{'key':''}", "key must be a string that is not empty, and not too long"},
        {"{'Key':'x'}", "key must be a string"},
        {"{'key':'x','stream':0}", "stream must be true or false"},
        {"{'key':'x','stream':'true'}", "stream must be true or false"},
        {"{'key':'x','stream':{}}", "stream must be true or false"},
        {"{'key':'x','streamInput':[true]}", "streamInput must be true or false"},
        {"{'key':'x','telemetryLabels':[]}", "telemetryLabels must be an object of strings"},
        {"{'key':'x','telemetryLabels':{'a':'b','c':null}}", "telemetryLabels must be an object of strings"},
        {"{'key':'x','telemetryLabels':{}}", ""},
        {"{'key':'x','input':1,'input':2}", "a member of params is repeated"},
        {"{'key':'x','input':null,'input':null}", "a member of params is repeated"},
        {"{'key':'x','other':1,'other':2}", ""},
        {"{'input':{'key':'x'}}", "key must be a string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(problem_of(cases[i].params), cases[i].problem) != 0)
            fail_msg("%s: %s", cases[i].params, problem_of(cases[i].params));
}

/* More members than the parser notes, and texts of any length. */
static void test_wire_reflection_codec__run_huge(void **state) {
    (void)state;
    message m;
    ew__rf_run run;
    char *text = malloc(BIG + 200);
    assert_non_null(text);
    size_t n = (size_t)snprintf(text, 100, "{'stream':true");
    for (unsigned i = 0; n < BIG; i++)
        n += (size_t)snprintf(text + n, 100, ",'m%u':{'key':%u}", i, i);
    (void)snprintf(text + n, 100, ",'key':'k','input':7}");
    read_message(&m, "params", text);
    assert_null(ew__rf_read_run(&m.doc, m.rpc.params, &run));
    check_str(run.key, "k");
    check_str(run.input, "7");
    assert_true(run.stream);
    free(m.text);
    (void)snprintf(text + n, 100, ",'key':'k','stream':1}");
    assert_string_equal(problem_of(text), "a member of params is repeated");
    for (int escapes = 0; escapes < 2; escapes++) { /* in place a key may be of any length */
        memset(text, 'x', BIG);
        memcpy(text, "{'key':'\\n", 8 + (escapes ? 2 : 0));
        (void)snprintf(text + BIG, 100, "'}");
        assert_string_equal(problem_of(text),
                            escapes ? "key must be a string that is not empty, and not too long" : "");
    }
    free(text);
}

/* ---- notifications ---- */

static void test_wire_reflection_codec__about(void **state) {
    (void)state;
    static const struct {
        const char *params, *id, *chunk, *trace;
    } cases[] = {
        {"{'requestId':'1','chunk':{'a':[1]}}", "'1'", "{'a':[1]}", ""},
        {"{'chunk':null,'requestId':1.50}", "1.50", "null", ""},
        {"{'requestId':null}", "", "", ""},
        {"{'requestId':'a','state':{'traceId':'t','spanId':'s'}}", "'a'", "", "t"},
        {"{'requestId':'a','state':{'traceId':null}}", "'a'", "", ""},
        {"{'requestId':'a','state':{'traceId':['t']}}", "'a'", "", ""},
        {"{'requestId':'a','state':'traceId'}", "'a'", "", ""},
        {"{'requestId':'a','state':[{'traceId':'t'}]}", "'a'", "", ""},
        {"{'traceId':'t'}", "", "", "t"},
        {"{'traceId':17}", "", "", ""},
        {"{'traceId':'\\u0074'}", "", "", ""}, /* nobody's: trace ids are plain */
        {"{'traceId':''}", "", "", ""},
        {"{'request\\u0049d':'a','chunk':1}", "'a'", "1", ""},
        {"{'requestId':'a','requestId':'b','chunk':1}", "", "", ""},
        {"{'requestId':'a','chunk':1,'chunk':2}", "", "", ""},
        {"{'requestId':{'a':1},'chunk':1}", "{'a':1}", "1", ""}, /* found nowhere */
        {"[]", "", "", ""},
        {"'requestId'", "", "", ""},
        {"null", "", "", ""},
        {"{}", "", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        message m;
        ew__rf_about about;
        read_message(&m, "params", cases[i].params);
        ew__rf_read_about(&m.doc, m.rpc.params, &about);
        check_str(about.request_id, cases[i].id);
        check_str(about.chunk, cases[i].chunk);
        check_str(about.trace_id, cases[i].trace);
        free(m.text);
    }
}

/* ---- register ---- */

static const char *read_who(const char *params, ew__rf_who *who, char **ret_text) {
    *ret_text = quoted(params);
    return ew__rf_read_register(ew_str_from(*ret_text), who);
}

static void test_wire_reflection_codec__register(void **state) {
    (void)state;
    static const struct {
        const char *params, *id, *name, *version;
        int64_t pid;
    } cases[] = {
        {"{'id':'4711','pid':4711,'name':'app','genkitVersion':'nodejs/"
         "1.42.0','reflectionApiSpecVersion':1,'envs':['dev']}",
         "4711", "app", "nodejs/1.42.0", 4711},
        {"{'id':'py','pid':1234.0,'reflectionApiSpecVersion':1.0}", "py", "", "", 1234},
        {"{'pid':-1,'id':'\\u00e4\\n','name':null,'genkitVersion':''}", "\xc3\xa4\n", "", "", -1},
        {"{'id':'a','pid':1e300}", "a", "", "", 0},
        {"{'id':'a','pid':-1e300}", "a", "", "", 0},
        {"{'id':'a','pid':99999999999999999999999}", "a", "", "", 0},
        {"{'id':'a','pid':0.5}", "a", "", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew__rf_who who;
        char *text;
        const char *problem = read_who(cases[i].params, &who, &text);
        if (problem)
            fail_msg("%s: %s", cases[i].params, problem);
        check_str(who.id, cases[i].id);
        check_str(who.name, cases[i].name);
        check_str(who.version, cases[i].version);
        assert_int_equal(who.pid, cases[i].pid);
        free(text);
    }
}

static void test_wire_reflection_codec__register_problems(void **state) {
    (void)state;
    static const struct {
        const char *params, *problem;
    } cases[] = {
        {"", "params must be an object"},
        {"null", "params must be an object"},
        {"[]", "params must be an object"},
        {"{'pid':1}", "id must be a string of 1 to 256 bytes"},
        {"{'id':1,'pid':1}", "id must be a string of 1 to 256 bytes"},
        {"{'id':'','pid':1}", "id must be a string of 1 to 256 bytes"},
        {"{'id':'\\ud800','pid':1}", "id must be a string of 1 to 256 bytes"},
        {"{'id':'a'}", "pid must be a number"},
        {"{'id':'a','pid':null}", "pid must be a number"},
        {"{'id':'a','pid':'1'}", "pid must be a number"},
        {"{'id':'a','pid':1,'name':1}", "name must be a string"},
        {"{'id':'a','pid':1,'name':'\\udfff'}", "name must be a string"},
        {"{'id':'a','pid':1,'genkitVersion':[]}", "genkitVersion must be a string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew__rf_who who;
        char *text;
        const char *problem = read_who(cases[i].params, &who, &text);
        if (!problem || strcmp(problem, cases[i].problem) != 0)
            fail_msg("%s: %s", cases[i].params, problem ? problem : "no problem");
        free(text);
    }
    for (int n = 256; n <= 257; n++) {
        char text[400];
        ew__rf_who who;
        (void)snprintf(text, sizeof text, "{\"pid\":1,\"id\":\"%0*d\"}", n, 7);
        assert_int_equal(ew__rf_read_register(ew_str_from(text), &who) == NULL, n == 256);
    }
}

static void test_wire_reflection_codec__member_text(void **state) {
    (void)state;
    char buf[8];
    const ew_str object = EW_STR("{\"a\":\"long enough\",\"b\":\"x\\ny\",\"c\":\"long\\nenough\",\"d\":1}");
    check_str(ew__rf_member_text(object, EW_STR("a"), buf, sizeof buf), "long enough");
    check_str(ew__rf_member_text(object, EW_STR("b"), buf, sizeof buf), "x\ny");
    assert_int_equal(ew__rf_member_text(object, EW_STR("c"), buf, sizeof buf).len, 0); /* no room */
    assert_int_equal(ew__rf_member_text(object, EW_STR("d"), buf, sizeof buf).len, 0);
    assert_int_equal(ew__rf_member_text(object, EW_STR("e"), buf, sizeof buf).len, 0);
}

/* ---- results ---- */

static void test_wire_reflection_codec__result(void **state) {
    (void)state;
    static const struct {
        const char *result, *value, *trace;
    } cases[] = {
        {"{'result':{'a':1},'telemetry':{'traceId':'t'}}", "{'a':1}", "t"},
        {"{'telemetry':{'traceId':'t','spanId':'s'},'result':null,'genkitVersion':'1'}", "null", "t"},
        {"{}", "null", ""},
        {"{'result':'x'}", "'x'", ""},
        {"{'result':1,'telemetry':null}", "1", ""},
        {"{'result':1,'telemetry':'t'}", "1", ""},
        {"{'result':1,'telemetry':{'traceId':null}}", "1", ""},
        {"{'result':1,'telemetry':{'traceId':'\\n'}}", "1", ""},
        {"{'res\\u0075lt':1}", "1", ""},
        {"{'x':{'result':2}}", "null", ""},
        {"null", NULL, NULL},
        {"17", NULL, NULL},
        {"[1]", NULL, NULL},
        {"{'result':1,'result':1}", NULL, NULL},
        {"{'result':1,'res\\u0075lt':1}", NULL, NULL},
        {"{'telemetry':{},'telemetry':{}}", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        message m;
        ew__rf_result got;
        read_message(&m, "result", cases[i].result);
        assert_int_equal(ew__rf_read_result(&m.doc, m.rpc.result, &got), cases[i].value ? EW_OK : EW_EPROTO);
        if (cases[i].value) {
            check_str(got.result, cases[i].value);
            check_str(got.trace_id, cases[i].trace);
        }
        free(m.text);
    }
}

/* ---- faults ---- */

static void test_wire_reflection_codec__read_fault(void **state) {
    (void)state;
    static const struct {
        const char *error;
        ew_status status;
        const char *message, *details, *trace;
    } cases[] = {
        {"{'code':-32000,'message':'NOT_FOUND: "
         "x','data':{'code':5,'message':'m','details':{'stack':'s','traceId':'t'}}}",
         EW_STATUS_NOT_FOUND, "x", "{'stack':'s','traceId':'t'}", "t"},
        {"{'code':-32000,'message':'INTERNAL: x','data':{'code':5}}", EW_STATUS_NOT_FOUND, "INTERNAL: x", "", ""},
        {"{'code':-32000,'message':'NOT_FOUND:','data':{'code':5,'details':null}}", EW_STATUS_NOT_FOUND,
         "NOT_FOUND:", "", ""},
        {"{'code':-32000,'message':'x','data':{'code':16,'details':{'traceId':'t'}}}", EW_STATUS_UNAUTHENTICATED, "x",
         "", "t"},
        {"{'code':-32000,'message':'x','data':{'code':16,'details':{'traceId':17,'details':[1]}}}",
         EW_STATUS_UNAUTHENTICATED, "x", "[1]", ""},
        {"{'code':-32000,'message':'x','data':{'code':3,'details':'text'}}", EW_STATUS_INVALID_ARGUMENT, "x", "'text'",
         ""},
        {"{'code':-32000,'message':'x','data':{'code':0}}", EW_STATUS_UNKNOWN, "x", "{'code':0}", ""},
        {"{'code':-32000,'message':'x','data':{'code':17}}", EW_STATUS_UNKNOWN, "x", "{'code':17}", ""},
        {"{'code':-32000,'message':'x','data':{'code':-1}}", EW_STATUS_UNKNOWN, "x", "{'code':-1}", ""},
        {"{'code':-32000,'message':'x','data':{'code':4294967301}}", EW_STATUS_UNKNOWN, "x", "{'code':4294967301}", ""},
        {"{'code':-32000,'message':'x','data':{'code':'5'}}", EW_STATUS_UNKNOWN, "x", "{'code':'5'}", ""},
        {"{'code':-32000,'message':'x','data':{'stack':'s'}}", EW_STATUS_UNKNOWN, "x", "{'stack':'s'}", ""},
        {"{'code':-32000,'message':'x','data':'s'}", EW_STATUS_UNKNOWN, "x", "'s'", ""},
        {"{'code':-32000,'message':'x','data':null}", EW_STATUS_UNKNOWN, "x", "", ""},
        {"{'code':-32601,'message':'x'}", EW_STATUS_UNIMPLEMENTED, "x", "", ""},
        {"{'code':-32602,'message':'action /a/b not found'}", EW_STATUS_NOT_FOUND, "action /a/b not found", "", ""},
        {"{'code':-32602,'message':'not found: x'}", EW_STATUS_INVALID_ARGUMENT, "not found: x", "", ""},
        {"{'code':-32600,'message':'x'}", EW_STATUS_INVALID_ARGUMENT, "x", "", ""},
        {"{'code':-32700,'message':'x'}", EW_STATUS_INVALID_ARGUMENT, "x", "", ""},
        {"{'code':-32603,'message':'x'}", EW_STATUS_INTERNAL, "x", "", ""},
        {"{'code':404,'message':'x'}", EW_STATUS_NOT_FOUND, "x", "", ""},
        {"{'message':'a\\nb'}", EW_STATUS_UNKNOWN, "a\nb", "", ""},
        {"{'code':1}", EW_STATUS_UNKNOWN, "{'code':1}", "", ""},
        {"'boom'", EW_STATUS_UNKNOWN, "boom", "", ""},
        {"[1]", EW_STATUS_UNKNOWN, "[1]", "", ""},
        {"false", EW_STATUS_UNKNOWN, "false", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *error = quoted(cases[i].error), text[64];
        ew_fault fault;
        ew_str trace;
        ew__rf_read_fault(ew_str_from(error), text, sizeof text, &fault, &trace);
        if (fault.status != cases[i].status)
            fail_msg("%s: %s", cases[i].error, ew_status_name(fault.status));
        check_str(fault.message, cases[i].message);
        check_str(fault.details, cases[i].details);
        check_str(trace, cases[i].trace);
        assert_true(!fault.retryable && fault.retry_after_ms == 0);
        free(error);
    }
}

/* What our runtime writes, our manager reads. */
static void test_wire_reflection_codec__fault_round_trip(void **state) {
    (void)state;
    for (int i = 0; i < 16; i++) {
        const ew_fault fault = {.status = (ew_status)(1 + i),
                                .message = i & 1 ? EW_STR("a \"b\"\n\xc3\xa4") : EW_STR(""),
                                .details = i & 2 ? EW_STR("{\"traceId\":1}") : ew__str(NULL, 0),
                                .retryable = (i & 4) != 0,
                                .retry_after_ms = i & 8 ? UINT64_MAX : 0};
        char text[200];
        ew_fault got;
        ew_str trace;
        ew__buf buf;
        ew__buf_init(&buf, ew_env_default(), 10000);
        assert_int_equal(ew__rf_write_fault(&buf, 0, &fault, i & 1 ? EW_STR("0af7") : ew__str(NULL, 0)), EW_OK);
        assert_int_equal(ew_json_check(ew__buf_view(&buf), NULL), EW_OK);
        assert_int_equal(json_int_or(ew__buf_view(&buf), "/code", 0), -32000);
        ew__rf_read_fault(ew__buf_view(&buf), text, sizeof text, &got, &trace);
        assert_int_equal(got.status, fault.status);
        check_str(got.message, i & 1 ? "a \"b\"\n\xc3\xa4" : ew_status_name(fault.status));
        check_str(got.details, i & 2 ? "{'traceId':1}" : "");
        check_str(trace, i & 1 ? "0af7" : "");
        assert_int_equal(got.retryable, fault.retryable);
        assert_true(got.retry_after_ms == fault.retry_after_ms);
        ew__buf_done(&buf);
    }
}

static void test_wire_reflection_codec__write_fault(void **state) {
    (void)state;
    ew__buf buf;
    ew__buf_init(&buf, ew_env_default(), 10000);
    const ew_fault fault = {.status = EW_STATUS_NOT_FOUND,
                            .message = EW_STR("m"),
                            .details = EW_STR("[1]"),
                            .retryable = true,
                            .retry_after_ms = 5};
    assert_int_equal(ew__rf_write_fault(&buf, -32602, &fault, EW_STR("t")), EW_OK);
    check_str(ew__buf_view(&buf),
              "{'code':-32602,'message':'m','data':{'code':5,'message':'m','details':{'traceId':'t',"
              "'details':[1],'retryable':true,'retryAfterMs':5}}}");
    ew__buf_done(&buf);
    ew__buf_init(&buf, ew_env_default(), 20);
    assert_int_equal(ew__rf_write_fault(&buf, 0, &fault, EW_STR("t")), EW_ELIMIT);
    ew__buf_done(&buf);
}

/* ---- messages ---- */

static void check_out_at(const ew__rpc_out *out, const char *expected, int line) {
    char text[1000];
    size_t n = 0;
    for (unsigned i = 0; i < out->n; i++) {
        assert_true(n + out->piece[i].len < sizeof text);
        memcpy(text + n, out->piece[i].ptr, out->piece[i].len);
        n += out->piece[i].len;
    }
    assert_int_equal(n, out->len);
    assert_int_equal(ew_json_check(ew__str(text, n), NULL), EW_OK);
    check_str_at(ew__str(text, n), expected, line);
}
#define check_out(out, expected) check_out_at((out), (expected), __LINE__)

static void test_wire_reflection_codec__messages(void **state) {
    (void)state;
    ew__rpc_out out;
    ew__rf_put_state(&out, EW_STR("1.0"), EW_STR("0af7"));
    check_out(&out,
              "{'jsonrpc':'2.0','method':'runActionState','params':{'requestId':1.0,'state':{'traceId':'0af7'}}}");
    ew__rf_put_chunk(&out, EW_STR("\"a\""), EW_STR("[1]"));
    check_out(&out, "{'jsonrpc':'2.0','method':'streamChunk','params':{'requestId':'a','chunk':[1]}}");
    ew__rf_put_result(&out, EW_STR("null"), EW_STR("{\"r\":1}"), EW_STR("0af7"));
    check_out(&out, "{'jsonrpc':'2.0','result':{'result':{'r':1},'telemetry':{'traceId':'0af7'}},'id':null}");
    ew__rf_put_input(&out, EW_STR("\"a\""), EW_STR("null"));
    check_out(&out, "{'jsonrpc':'2.0','method':'sendInputStreamChunk','params':{'requestId':'a','chunk':null}}");
    ew__rf_put_input_end(&out, EW_STR("\"a\""));
    check_out(&out, "{'jsonrpc':'2.0','method':'endInputStream','params':{'requestId':'a'}}");
}

/* A chunk that is told by its bytes is one; every other text is left to the reader of messages. */
static void test_wire_reflection_codec__plain_chunks(void **state) {
    (void)state;
#define CHUNK "{\"jsonrpc\":\"2.0\",\"method\":\"streamChunk\",\"params\":{\"requestId\":\"a\",\"chunk\":"
    const ew_str id = EW_STR("\"a\"");
    static const char *const others[] = {CHUNK "1}",           CHUNK " 1}}", CHUNK "1,\"chunk\":2}}", CHUNK "}}",
                                         CHUNK "1},\"id\":2}", CHUNK "1]}",  CHUNK "tru}}",           "{}"};
    ew_str chunk;
    assert_true(ew__rf_is_chunk(EW_STR(CHUNK "{\"i\":[1]}}}"), id, &chunk));
    assert_true(ew_str_eq(chunk, EW_STR("{\"i\":[1]}")));
    assert_false(ew__rf_is_chunk(EW_STR(CHUNK "1}}"), EW_STR("\"b\""), &chunk));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(ew__rf_is_chunk(ew_str_from(others[i]), id, &chunk));
        assert_false(ew__rf_is_simple_chunk(ew_str_from(others[i]), id, &chunk));
    }
    assert_true(ew__rf_is_simple_chunk(EW_STR(CHUNK "{\"i\":[1]}}}"), id, &chunk));
    assert_true(ew_str_eq(chunk, EW_STR("{\"i\":[1]}")));
    assert_false(ew__rf_is_simple_chunk(EW_STR(CHUNK "1}}"), EW_STR("\"b\""), &chunk));
    assert_false(ew__rf_is_simple_chunk(EW_STR(CHUNK "\"\xc3\xa4\"}}"), id, &chunk)); /* but it is one */
    assert_true(ew__rf_is_chunk(EW_STR(CHUNK "\"\xc3\xa4\"}}"), id, &chunk));
    uint8_t text[200];
    size_t n = (size_t)(ew__rf_write_chunk(text, id, EW_STR("[1]")) - text);
    assert_true(ew_str_eq(ew__str(text, n), EW_STR(CHUNK "[1]}}")));
    assert_int_equal(n, ew__rf_around_chunk(id) + 3);
#undef CHUNK
}

/* ---- lists ---- */

static void check_listing(const char *listing, bool flat, bool wrapped, const char *expected, int line) {
    char *text = quoted(listing);
    ew__buf out;
    ew__buf_init(&out, ew_env_default(), 10000);
    assert_int_equal(ew__rf_write_listing(&out, ew_str_from(text), flat, wrapped), EW_OK);
    assert_int_equal(ew_json_check(ew__buf_view(&out), NULL), EW_OK);
    check_str_at(ew__buf_view(&out), expected, line);
    ew__buf_done(&out);
    free(text);
}

static void test_wire_reflection_codec__write_listing(void **state) {
    (void)state;
    const char *one = "{'/f/x':{'name':'x','inputSchema':null}}";
    check_listing(one, true, false, "{'/f/x':{'name':'x','inputSchema':null}}", __LINE__);
    check_listing(one, false, true, "{'actions':{'/f/x':{'name':'x','inputSchema':null}}}", __LINE__);
    check_listing(one, true, true,
                  "{'actions':{'/f/x':{'name':'x','inputSchema':null}},'/f/x':{'name':'x','inputSchema':null}}",
                  __LINE__);
    check_listing("{}", true, false, "{}", __LINE__);
    check_listing("{}", false, true, "{'actions':{}}", __LINE__);
    check_listing("{}", true, true, "{'actions':{}}", __LINE__);
}

/* One member that the CLI does not like would cost the whole list. */
static void test_wire_reflection_codec__write_listing_welcome(void **state) {
    (void)state;
    static const struct {
        const char *descriptor, *expected;
    } cases[] = {
        {"{'name':'x','key':null,'actionType':1,'description':null}", "{'name':'x'}"},
        {"{'description':'','name':'x'}", "{'description':'','name':'x'}"},
        {"{'name':'x','metadata':null}", "{'name':'x'}"},
        {"{'name':'x','metadata':[1]}", "{'name':'x'}"},
        {"{'name':'x','metadata':{}}", "{'name':'x','metadata':{}}"},
        {"{'metadata':{'a':null,'b':1,'c':[1,'2',{}],'d':[[1]],'e':[null],'f':{'g':null}},'name':'x'}",
         "{'metadata':{'b':1,'c':[1,'2',{}],'f':{'g':null}},'name':'x'}"},
        {"{'metadata':{'a':null},'name':'x','z':[[null]]}", "{'metadata':{},'name':'x','z':[[null]]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char listing[300], expected[300];
        (void)snprintf(listing, sizeof listing, "{'/f/x':%s}", cases[i].descriptor);
        (void)snprintf(expected, sizeof expected, "{'/f/x':%s}", cases[i].expected);
        check_listing(listing, true, false, expected, __LINE__);
    }
    /* without a name it is no action; the others stay */
    check_listing("{'/f/a':{},'/f/b':{'name':null},'/f/c':17,'/f/d':{'name':'d'},'/f/e':[]}", true, false,
                  "{'/f/d':{'name':'d'}}", __LINE__);
}

static void test_wire_reflection_codec__write_listing_limit(void **state) {
    (void)state;
    ew__buf out;
    ew__buf_init(&out, ew_env_default(), 20);
    assert_int_equal(ew__rf_write_listing(&out, EW_STR("{\"/f/x\":{\"name\":\"a long name\"}}"), true, true),
                     EW_ELIMIT);
    ew__buf_done(&out);
}

static void test_wire_reflection_codec__read_listing(void **state) {
    (void)state;
    static const struct {
        const char *result, *listing;
    } cases[] = {
        {"{'actions':{'/f/x':{}}}", "{'/f/x':{}}"},
        {"{'/f/x':{}}", "{'/f/x':{}}"},
        {"{'/f/x':1,'actions':{'/f/y':{}}}", "{'/f/y':{}}"},
        {"{}", "{}"},
        {"{'actions':{}}", "{}"},
        {"[]", ""},
        {"null", ""},
        {"17", ""},
        {"'x'", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = quoted(cases[i].result);
        check_str(ew__rf_read_listing(ew_str_from(text)), cases[i].listing);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection_codec__run),
        cmocka_unit_test(test_wire_reflection_codec__run_escapes),
        cmocka_unit_test(test_wire_reflection_codec__run_problems),
        cmocka_unit_test(test_wire_reflection_codec__run_huge),
        cmocka_unit_test(test_wire_reflection_codec__about),
        cmocka_unit_test(test_wire_reflection_codec__register),
        cmocka_unit_test(test_wire_reflection_codec__register_problems),
        cmocka_unit_test(test_wire_reflection_codec__member_text),
        cmocka_unit_test(test_wire_reflection_codec__result),
        cmocka_unit_test(test_wire_reflection_codec__read_fault),
        cmocka_unit_test(test_wire_reflection_codec__fault_round_trip),
        cmocka_unit_test(test_wire_reflection_codec__write_fault),
        cmocka_unit_test(test_wire_reflection_codec__messages),
        cmocka_unit_test(test_wire_reflection_codec__plain_chunks),
        cmocka_unit_test(test_wire_reflection_codec__write_listing),
        cmocka_unit_test(test_wire_reflection_codec__write_listing_welcome),
        cmocka_unit_test(test_wire_reflection_codec__write_listing_limit),
        cmocka_unit_test(test_wire_reflection_codec__read_listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
