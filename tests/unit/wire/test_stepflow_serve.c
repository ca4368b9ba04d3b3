/*
 * tests/unit/wire/test_stepflow_serve.c: what runtimes are told, whatever carries it: answers to requests that run
 * nothing, and faults. Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_texts.h"

/* ---- answers to what runs nothing ---- */

static void ask(const ew__site *site, const char *method, const char *params, bool error, const char *expected) {
    char text[400];
    (void)snprintf(text, sizeof text, "{'jsonrpc':'2.0','id':1,'method':'%s'%s%s}", method, *params ? ",'params':" : "",
                   params);
    char *json = quoted(text);
    ew__json_doc doc;
    ew__rpc message;
    ew__buf out = fresh();
    bool is_error = !error;
    assert_int_equal(ew__json_parse(&doc, ew_str_from(json)), EW_OK);
    ew__rpc_read(&doc, 0, &message);
    ew__call_context calls = {.gate = NULL};
    ew__executor executor = {.env = out.env, .calls = &calls};
    ew__site copy = *site;
    ew__conn conn = {.executor = &executor, .site = &copy};
    assert_int_equal(ew__sf_answer(&conn, NULL, &message, ew__sf_method_of(message.method), &out, &is_error), EW_OK);
    assert_int_equal(is_error, error);
    check_buf(&out, expected);
    free(json);
}

#define HELLO                                                                                                          \
    "{'server_protocol_version':1,'serverProtocolVersion':1,'supportsBlobRefs':false,'x-everywire':{'version':"        \
    "'" EW_VERSION_STRING "'}}"

static void test_wire_stepflow_serve__answers(void **state) {
    (void)state;
    world w;
    shelf s = {.actions = NULL};
    char url[EW__INSTANCE_URL_MAX];
    const ew__principal everybody = {.kind = EW__WHO_STRANGER};
    world_plain(&w);
    shelf_init(&s);
    shelf_add(&s, "/flow/a", &(ew_action_options){.description = "d\xc3\xa9"});
    s.actions = ew__registry_get(&s.registry);
    ew__site site = {.actions = s.actions, .instance = &w.instance};
    ask(&site, "initialize", "{'runtime_protocol_version':1}", false, HELLO);
    assert_int_equal(ew__instance_blob_url(&w.instance, &everybody, url).len, 0);
    ask(&site, "initialize", "{'runtimeProtocolVersion':1,'capabilities':{'blobApiUrl':'http://h/b'}}", false, HELLO);
    check_str(ew__instance_blob_url(&w.instance, &everybody, url), "http://h/b");
    ask(&site, "initialize", "", false, HELLO); /* the last word counts */
    assert_int_equal(ew__instance_blob_url(&w.instance, &everybody, url).len, 0);
    ask(&site, "initialized", "{}", false, "{}");
#define A                                                                                                              \
    "{'component':'/a','description':'d\\u00e9','x-everywire':{'key':'/flow/a','descriptor':{'key':'/flow/a',"         \
    "'name':'a','actionType':'flow','description':'d\\u00e9'}}}"
    ask(&site, "components/list", "{}", false, "{'components':[" A "]}");
    ask(&site, "components/list", "", false, "{'components':[" A "]}");
    ask(&site, "components/info", "{'component':'/flow/a'}", false, "{'info':" A "}");
    ask(&site, "components/info", "{'component':{'name':'a'}}", false, "{'info':" A "}");
    ask(&site, "components/info", "{'component':'/b\xc3\xa9'}", true,
        "{'code':-32001,'message':'no such component: "
        "/b\\u00e9','data':{'status':'NOT_FOUND','component':'/b\\u00e9'}}");
    ask(&site, "components/info", "{}", true,
        FAULT(-32602, "params.component must be the name of a component", "INVALID_ARGUMENT"));
    ask(&site, "components/infer_schema", "{}", true,
        FAULT(-32601, "no such method: components/infer_schema", "UNIMPLEMENTED"));
    ask(&site, "blobs\\/get\\u00e9", "{}", true, FAULT(-32601, "no such method: blobs/get\\u00e9", "UNIMPLEMENTED"));
    site = (ew__site){.actions = NULL};
    ask(&site, "initialize", "{}", false, HELLO);
    ask(&site, "components/list", "{}", false, "{'components':[]}");
    ask(&site, "components/info", "{'component':'a'}", true,
        "{'code':-32001,'message':'no such component: a','data':{'status':'NOT_FOUND','component':'a'}}");
    shelf_done(&s);
    world_done(&w);
}

/* The name of an unknown method may be long, and end anywhere. */
static void test_wire_stepflow_serve__long_method(void **state) {
    (void)state;
    ew__site site = {.actions = NULL};
    for (size_t n = 50; n < 90; n++) {
        char json[600];
        ew__json_doc doc;
        ew__rpc message;
        ew__buf out = fresh();
        bool error = false;
        size_t at =
            (size_t)snprintf(json, sizeof json, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s", n % 2 ? "a" : "");
        for (size_t i = 0; i < n; i++, at += 3)
            memcpy(json + at, "\xe2\x82\xac", 3);
        memcpy(json + at, "\"}", 3);
        assert_int_equal(ew__json_parse(&doc, ew_str_from(json)), EW_OK);
        ew__rpc_read(&doc, 0, &message);
        ew__call_context calls = {.gate = NULL};
        ew__executor executor = {.env = out.env, .calls = &calls};
        ew__conn conn = {.executor = &executor, .site = &site};
        assert_int_equal(ew__sf_answer(&conn, NULL, &message, EW__SF_OTHER, &out, &error), EW_OK);
        assert_true(error && out.len < 600);
        assert_int_equal(ew_json_check(ew__buf_view(&out), NULL), EW_OK);
        ew__buf_done(&out);
    }
}

/* ---- faults ---- */

static void test_wire_stepflow_serve__faults(void **state) {
    (void)state;
    ew__buf out = fresh();
    ew_fault fault = {.status = EW_STATUS_ABORTED, .message = EW_STR("m\xc3\xa9"), .details = EW_STR("[ 1]")};
    assert_int_equal(ew__sf_write_fault(&out, 0, &fault, ew__str(NULL, 0)), EW_OK);
    check_buf(&out, "{'code':-32100,'message':'m\xc3\xa9','data':{'status':'ABORTED','details':[ 1]}}");
    fault = (ew_fault){.status = EW_STATUS_UNAVAILABLE, .retryable = true, .retry_after_ms = 1500};
    assert_int_equal(ew__sf_write_fault(&out, -32300, &fault, EW_STR("/a\"b")), EW_OK);
    check_buf(&out, "{'code':-32300,'message':'UNAVAILABLE','data':{'status':'UNAVAILABLE','component':'/a\\'b',"
                    "'retryable':true,'retry_after_ms':1500}}");
    ew_str error =
        ew__sf_error(ew_env_default(), &out, -32601, EW_STATUS_UNIMPLEMENTED, EW_STR("n\xc3\xa9"), EW_STR("c"));
    check_str(error, "{'code':-32601,'message':'n\\u00e9','data':{'status':'UNIMPLEMENTED','component':'c'}}");
    ew__buf_done(&out);
    ew__rpc_out message;
    ew__sf_put_output(&message, EW_STR("7"), EW_STR("null"));
    uint8_t bytes[100];
    size_t n = (size_t)(ew__rpc_out_copy(&message, bytes) - bytes);
    assert_int_equal(n, message.len);
    check_str(ew__str((char *)bytes, n), "{'jsonrpc':'2.0','id':7,'result':{'output':null}}");
}

/* A fault that is too large for a message is told in short. */
static void test_wire_stepflow_serve__large_fault(void **state) {
    (void)state;
    world w;
    char message[3000];
    ew__buf buf;
    memset(message, 'm', sizeof message);
    world_init(&w, NULL, NULL, (rig_options){.limits = {.frame_bytes = 6000}});
    const ew__executor *executor = &w.r.side[RIG_SERVER].executor;
    ew_fault fault = {.status = EW_STATUS_DATA_LOSS, .message = ew__str(message, 1000), .details = EW_STR("{}")};
    assert_true(ew__sf_fault(executor, &buf, 0, &fault).len > 1000);
    ew__buf_done(&buf);
    fault.message.len = sizeof message;
    check_str(ew__sf_fault(executor, &buf, 0, &fault), FAULT(-32100, "DATA_LOSS", "DATA_LOSS"));
    ew__buf_done(&buf);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_serve__answers),
        cmocka_unit_test(test_wire_stepflow_serve__long_method),
        cmocka_unit_test(test_wire_stepflow_serve__faults),
        cmocka_unit_test(test_wire_stepflow_serve__large_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
