/*
 * tests/unit/wire/test_stepflow_codec.c: what runtimes of all generations ask, and what they are told. Texts are written
 * with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_texts.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

/* ---- small readers ---- */

static void test_wire_stepflow_codec__methods(void **state) {
    (void)state;
    static const struct {
        const char *text;
        ew__sf_method method;
    } table[] = {
        {"'initialize'", EW__SF_INITIALIZE},
        {"'initialized'", EW__SF_INITIALIZED},
        {"'components/list'", EW__SF_LIST},
        {"'components/info'", EW__SF_INFO},
        {"'components/execute'", EW__SF_EXECUTE},
        {"'components\\/execute'", EW__SF_EXECUTE},
        {"'components\\u002flist'", EW__SF_LIST},
        {"'\\u0062lobs/put'", EW__SF_BLOB_PUT},
        {"'blobs/put'", EW__SF_BLOB_PUT},
        {"'blobs/get'", EW__SF_BLOB_GET},
        {"'$/cancelRequest'", EW__SF_CANCEL},
        {"'components/infer_schema'", EW__SF_OTHER},
        {"'Initialize'", EW__SF_OTHER},
        {"'initialize '", EW__SF_OTHER},
        {"'/components/list'", EW__SF_OTHER},
        {"''", EW__SF_OTHER},
        {"7", EW__SF_OTHER},
        {"'components\\/execute, and so long that it does not fit into any name'", EW__SF_OTHER},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        char *text = quoted(table[i].text);
        if (ew__sf_method_of(ew_str_from(text)) != table[i].method)
            fail_msg("%s", text);
        free(text);
    }
}

static void test_wire_stepflow_codec__plain(void **state) {
    (void)state;
    static const struct {
        const char *json, *plain; /* NULL: as it is */
    } table[] = {
        {"{'a': [1, 2]}", NULL},
        {" 1 ", NULL},
        {"'a\\u00e9b'", NULL},
        {"{'a':\n [1,\r\n '\xc3\xa9'] }", "{'a':[1,'\\u00e9']}"},
        {"{'b':1,\n'b':2}", "{'b':1,'b':2}"},
        {"'\xf0\x9f\x98\x80\x7f'", "'\\ud83d\\ude00\\u007f'"},
        {"12345678901234567890123", NULL},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        char *json = quoted(table[i].json);
        ew__buf buf;
        ew_str plain;
        assert_int_equal(ew__sf_plain(ew_env_default(), ew_str_from(json), &buf, &plain), EW_OK);
        check_str(plain, table[i].plain ? table[i].plain : table[i].json);
        assert_int_equal(plain.ptr == json, !table[i].plain); /* what needs no change is not copied */
        ew__buf_done(&buf);
        free(json);
    }
}

static void test_wire_stepflow_codec__blob_url(void **state) {
    (void)state;
    static const struct {
        const char *params, *url;
    } table[] = {
        {"{'runtimeProtocolVersion':1,'capabilities':{'blobApiUrl':'http://h:1/b','blobThreshold':64}}",
         "http://h:1/b"},
        {"{'capabilities':{'blobApiUrl':'http:\\/\\/h\\u002fb'}}", "http://h/b"},
        {"{'capabilities':{'blobApiUrl':'http:\\/\\/a-name-that-has-no-room'}}", ""},
        {"{'capabilities':{'blobApiUrl':''}}", ""},
        {"{'capabilities':{'blobApiUrl':null}}", ""},
        {"{'capabilities':{'blobApiUrl':{'a':'b'}}}", ""},
        {"{'capabilities':{}}", ""},
        {"{'capabilities':'blobApiUrl'}", ""},
        {"{'runtime_protocol_version':1}", ""},
        {"[]", ""},
        {"", ""},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        char buf[20], *params = quoted(table[i].params);
        check_str(ew__sf_read_blob_url(ew_str_from(params), buf, sizeof buf), table[i].url);
        free(params);
    }
}

static void test_wire_stepflow_codec__component(void **state) {
    (void)state;
    static const struct {
        const char *params, *component;
    } table[] = {
        {"{'component':'/echo'}", "/echo"},
        {"{'component':{'name':'echo'}}", "echo"},
        {"{'component':'\\/a\\u00e9'}", "/a\xc3\xa9"},
        {"{'component':{'name':1}}", ""},
        {"{'component':{}}", ""},
        {"{'component':7}", ""},
        {"{'component':null}", ""},
        {"{'component':''}", ""},
        {"{'component':['/echo']}", ""},
        {"{'name':'/echo'}", ""},
        {"{'component':'\\/longer than fits'}", ""},
        {"['component']", ""},
        {"", ""},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        char buf[12], *params = quoted(table[i].params);
        check_str(ew__sf_read_component(ew_str_from(params), buf, sizeof buf), table[i].component);
        free(params);
    }
}

/* ---- components/execute ---- */

#define NO_OBJECT "params must be an object with a component and an input"
#define NO_NAME "params.component must be the name of a component"
#define TWICE "params has a member twice"

static const struct {
    const char *params;
    const char *problem; /* NULL: good */
    const char *component, *input, *observability, *step, *run, *flow;
    uint32_t attempt;
} runs[] = {
    /* G0, G1 */
    {"{'component':'/e','input':{'a': 1}}", NULL, "/e", "{'a': 1}", "", "", "", "", 0},
    {"{'component':{'name':'e'},'input':[1]}", NULL, "e", "[1]", "", "", "", "", 0}, /* the protocol's own page */
    /* G1b */
    {"{'component':'/e','input':1,'step_id':'s','run_id':'r','flow_id':'f'}", NULL, "/e", "1", "", "'s'", "'r'", "'f'",
     0},
    {"{'component':'/e','input':1,'step_id':'s','run_id':'r','flow_id':'f','attempt':2}", NULL, "/e", "1", "", "'s'",
     "'r'", "'f'", 2},
    /* G2 and later */
    {"{'component':'/e','input':null,'attempt':1,'observability':{}}", NULL, "/e", "null", "{}", "", "", "", 1},
    {"{'component':'/e','input':'x','attempt':3,'observability':{'trace_id':'t'}}", NULL, "/e", "'x'",
     "{'trace_id':'t'}", "", "", "", 3},
    /* what is not there, or is something else */
    {"{'component':'/e'}", NULL, "/e", "null", "", "", "", "", 0},
    {"{'component':'/e','observability':null,'attempt':null,'step_id':1,'run_id':{},'flow_id':[]}", NULL, "/e", "null",
     "", "", "", "", 0},
    {"{'component':'/e','attempt':4294967295}", NULL, "/e", "null", "", "", "", "", UINT32_MAX},
    {"{'component':'/e','attempt':4294967296}", NULL, "/e", "null", "", "", "", "", 0},
    {"{'component':'/e','attempt':-1,'observability':[1]}", NULL, "/e", "null", "", "", "", "", 0},
    {"{'component':'/e','attempt':1.5,'other':{'component':'/x'}}", NULL, "/e", "null", "", "", "", "", 0},
    {"{'c\\u006fmponent':'\\/e\\u00e9','input':2}", NULL, "/e\xc3\xa9", "2", "", "", "", "", 0},
    {"{'component':'/e','x':1,'x':2,'input':{'input':1,'input':2}}", NULL, "/e", "{'input':1,'input':2}", "", "", "",
     "", 0},
    /* bad */
    {"", NO_OBJECT, "", "", "", "", "", "", 0},
    {"null", NO_OBJECT, "", "", "", "", "", "", 0},
    {"['/e',1]", NO_OBJECT, "", "", "", "", "", "", 0},
    {"{}", NO_NAME, "", "", "", "", "", "", 0},
    {"{'component':''}", NO_NAME, "", "", "", "", "", "", 0},
    {"{'component':5,'input':1}", NO_NAME, "", "", "", "", "", "", 0},
    {"{'component':{'component':'/e'}}", NO_NAME, "", "", "", "", "", "", 0},
    {"{'component':'\\/this name is too long for its place'}", NO_NAME, "", "", "", "", "", "", 0},
    {"{'component':'/e','component':'/e'}", TWICE, "", "", "", "", "", "", 0},
    {"{'component':'/e','input':1,'input':1}", TWICE, "", "", "", "", "", "", 0},
    {"{'component':'/e','input':1,'\\u0069nput':1}", TWICE, "", "", "", "", "", "", 0},
    {"{'component':'/e','observability':{},'observability':{}}", TWICE, "", "", "", "", "", "", 0},
    {"{'component':'/e','run_id':'r','run_id':'r'}", TWICE, "", "", "", "", "", "", 0},
};

/* More values than a reader takes notes of. */
#define MANY                                                                                                           \
    "'many':[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"

static void check_run(size_t i, bool many) {
    char buf[20], text[600];
    const char *params = runs[i].params;
    (void)snprintf(text, sizeof text, "{%s'jsonrpc':'2.0','id':1,'method':'m'%s%s}", many ? MANY : "",
                   *params ? ",'params':" : "", params);
    char *json = quoted(text);
    ew__json_doc doc;
    ew__rpc message;
    ew__sf_run run;
    assert_int_equal(ew__json_parse(&doc, ew_str_from(json)), EW_OK);
    ew__rpc_read(&doc, 0, &message);
    const char *problem = ew__sf_read_run(&doc, message.params, buf, sizeof buf, &run);
    if (problem || runs[i].problem) {
        if (!problem || !runs[i].problem || strcmp(problem, runs[i].problem) != 0)
            fail_msg("%s: %s", params, problem ? problem : "good");
    } else {
        check_str(run.component, runs[i].component);
        check_str(run.input, runs[i].input);
        check_str(run.observability, runs[i].observability);
        check_str(run.step_id, runs[i].step);
        check_str(run.run_id, runs[i].run);
        check_str(run.flow_id, runs[i].flow);
        assert_int_equal(run.attempt, runs[i].attempt);
    }
    free(json);
}

static void test_wire_stepflow_codec__run(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OF(runs); i++) {
        check_run(i, true);
        check_run(i, false);
    }
}

/* ---- what comes with a call ---- */

static ew_err no_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void no_end(ew_call *call, const ew__end *end) {
    (void)call;
    (void)end;
}

static const ew__caller_ops nobody = {.chunk = no_chunk, .end = no_end};

static const struct {
    const char *params, *context;
    bool traced;
} contexts[] = {
    {"{'component':'/e'}", "", false},
    {"{'component':'/e','observability':{}}", "{}", false},
    {"{'component':'/e','observability':{'trace_id':'" TRACE "','span_id':'" SPAN "','run_id':'r'}}",
     "{'trace_id':'" TRACE "','span_id':'" SPAN "','run_id':'r'}", true},
    {"{'component':'/e','step_id':'s','run_id':'r','flow_id':'f'}", "{'step_id':'s','run_id':'r','flow_id':'f'}",
     false},
    {"{'component':'/e','run_id':'r\\u00e9'}", "{'run_id':'r\\u00e9'}", false},
    /* beside each other: the ids of an older runtime are added, nothing is said twice */
    {"{'component':'/e','step_id':'s','run_id':'r','observability':{}}", "{'step_id':'s','run_id':'r'}", false},
    {"{'component':'/e','step_id':'s','run_id':'r','observability':{'x':[1, 2],'step_id':'o'}}",
     "{'x':[1, 2],'step_id':'o','run_id':'r'}", false},
    {"{'component':'/e','step_id':'s','run_id':'r','flow_id':'f',"
     "'observability':{'run_id':'o','flow_id':'p','step_id':'q'}}",
     "{'run_id':'o','flow_id':'p','step_id':'q'}", false},
    {"{'component':'/e','step_id':'s','flow_id':'f','observability':{'run_id':'o'}}",
     "{'run_id':'o','step_id':'s','flow_id':'f'}", false},
    {"{'component':'/e','run_id':'r','observability':{'trace_id':'" TRACE "','span_id':'" SPAN "'}}",
     "{'trace_id':'" TRACE "','span_id':'" SPAN "','run_id':'r'}", true},
    /* no traces */
    {"{'component':'/e','observability':{'trace_id':'" TRACE "'}}", "{'trace_id':'" TRACE "'}", false},
    {"{'component':'/e','observability':{'trace_id':7,'span_id':'" SPAN "'}}", "{'trace_id':7,'span_id':'" SPAN "'}",
     false},
    {"{'component':'/e','observability':{'trace_id':'" TRACE "','span_id':'short'}}",
     "{'trace_id':'" TRACE "','span_id':'short'}", false},
    {"{'component':'/e','observability':{'trace_id':'zzf7651916cd43dd8448eb211c80319c','span_id':'" SPAN "'}}",
     "{'trace_id':'zzf7651916cd43dd8448eb211c80319c','span_id':'" SPAN "'}", false},
};

static void check_context(rig *r, size_t i, bool copy) {
    char buf[20], *params = quoted(contexts[i].params);
    ew__json_doc doc;
    ew__sf_run run;
    ew_call *call = ew__call_new(&r->side[RIG_SERVER].executor, &nobody, NULL);
    assert_non_null(call);
    assert_int_equal(ew__json_parse(&doc, ew_str_from(params)), EW_OK);
    assert_null(ew__sf_read_run(&doc, doc.root, buf, sizeof buf, &run));
    run.input = EW_STR("[7]");
    run.attempt = 4;
    assert_int_equal(ew__sf_fill_call(call, &run, copy), EW_OK);
    if (copy)
        memset(params, 'x', strlen(params));
    check_str(call->context, contexts[i].context);
    check_str(call->input, "[7]");
    assert_int_equal(call->attempt, 4);
    assert_int_equal(call->trace.has_parent, contexts[i].traced);
    if (contexts[i].traced) {
        assert_memory_equal(call->trace.trace_id, TRACE, 32);
        assert_memory_equal(call->trace.parent_id, SPAN, 16);
    }
    ew__call_release(call);
    free(params);
}

static void test_wire_stepflow_codec__context(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    for (size_t i = 0; i < N_OF(contexts); i++) {
        check_context(&w.r, i, false);
        check_context(&w.r, i, true);
    }
    world_done(&w);
}

/* The longest time that a call may take holds where nobody has said less. */
static void test_wire_stepflow_codec__longest(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL, NULL, (rig_options){.limits = {.call_ms = 500}});
    ew__executor *executor = &w.r.side[RIG_SERVER].executor;
    ew__sf_run run = {.input = EW_STR("1")};
    for (int own = 0; own < 2; own++) {
        ew_call *call = ew__call_new(executor, &nobody, NULL);
        assert_non_null(call);
        if (own)
            call->deadline = 77;
        assert_int_equal(ew__sf_fill_call(call, &run, false), EW_OK);
        assert_true(call->deadline == (own ? 77 : executor->now + EW__MS(500)));
        ew__call_release(call);
    }
    world_done(&w);
}

/* ---- what runtimes are told ---- */

#define OURS(key, descriptor) ",'x-everywire':{'key':'" key "','descriptor':{'key':'" key "'," descriptor "}}}"

static void check_listing_at(shelf *s, const char *expected, int line) {
    ew__buf out = fresh();
    s->actions = ew__registry_get(&s->registry);
    assert_int_equal(ew__sf_write_components(&out, s->actions, s->actions->listing), EW_OK);
    check_buf_at(&out, expected, line);
    shelf_done(s);
}
#define check_listing(s, expected) check_listing_at((s), (expected), __LINE__)

static void test_wire_stepflow_codec__listing(void **state) {
    (void)state;
    shelf s = {.actions = NULL};
    ew__buf out = fresh();
    assert_int_equal(ew__sf_write_components(&out, NULL, EW_STR("{}")), EW_OK);
    check_buf(&out, "{'components':[]}");
    shelf_init(&s);
    check_listing(&s, "{'components':[]}");
    shelf_init(&s);
    shelf_add(&s, "/flow/a",
              &(ew_action_options){
                  .description = "d\xc3\xa9", .input_schema = "{\"type\":\"string\"}", .output_schema = "true"});
    shelf_add(&s, "/flow/same", NULL);
    shelf_add(&s, "/tool/same", NULL);
    check_listing(&s,
                  "{'components':["
                  "{'component':'/a','description':'d\xc3\xa9','input_schema':{'type':'string'}" OURS(
                      "/flow/a",
                      "'name':'a','actionType':'flow','description':'d\xc3\xa9',"
                      "'inputSchema':{'type':'string'},'outputSchema':true") ","
                                                                             "{'component':'/flow/same'" OURS(
                                                                                 "/flow/same",
                                                                                 "'name':'same','actionType':'"
                                                                                 "flow'") ","
                                                                                          "{'component':'/tool/"
                                                                                          "same'" OURS("/tool/same",
                                                                                                       "'name':'same','"
                                                                                                       "actionType':'"
                                                                                                       "tool'") "]}");
}

/* A name with a slash may look like another action's key: what is listed must reach what it stands for. */
static void test_wire_stepflow_codec__listing_reaches(void **state) {
    (void)state;
    static const char *const keys[] = {"/x/a/b",    "/a/b", "/y/deep/er/est", "/z/plain", "/flow/caf\xc3\xa9",
                                       "/flow/q\"t"};
    shelf s = {.actions = NULL};
    shelf_init(&s);
    for (size_t i = 0; i < N_OF(keys); i++)
        shelf_add(&s, keys[i], NULL);
    s.actions = ew__registry_get(&s.registry);
    ew__buf out = fresh();
    assert_int_equal(ew__sf_write_components(&out, s.actions, s.actions->listing), EW_OK);
    ew_str components = ew_json_get(ew__buf_view(&out), "/components");
    ew_json_iter it = {.offset_ = 0};
    size_t n = 0;
    while (ew_json_next(components, &it)) {
        char name[100], key[100];
        size_t name_len = 0, key_len = 0;
        ew__action *action = NULL;
        assert_int_equal(ew_json_string(ew_json_get(it.value, "/component"), name, sizeof name, &name_len), EW_OK);
        assert_int_equal(ew_json_string(ew_json_get(it.value, "/x-everywire/key"), key, sizeof key, &key_len), EW_OK);
        assert_int_equal(ew__actions_find(s.actions, ew__str(name, name_len), &action), EW_OK);
        assert_true(ew__str_is(action->key, ew_str_from(keys[n])));
        assert_true(ew__str_is(action->key, ew__str(key, key_len)));
        n++;
    }
    assert_int_equal(n, N_OF(keys));
    ew__buf_done(&out);
    shelf_done(&s);
}

/* Actions of programs that are connected to us: by name where that is theirs alone, else by their long key. */
static void test_wire_stepflow_codec__listing_remote(void **state) {
    (void)state;
    shelf s = {.actions = NULL};
    ew__action *remotes[2] = {NULL, NULL};
    static const char *const same = "{\"key\":\"/flow/a\",\"name\":\"a\",\"actionType\":\"flow\"}";
    shelf_init(&s);
    shelf_add(&s, "/flow/a", NULL);
    assert_int_equal(ew__action_new_remote(ew_env_default(), EW_STR("r1"), EW_STR("/flow/a"), ew_str_from(same),
                                           &ew__local_callee, NULL, NULL, &remotes[0]),
                     EW_OK);
    assert_int_equal(ew__action_new_remote(ew_env_default(), EW_STR("r1"), EW_STR("/flow/b"),
                                           EW_STR("{\"name\":\"shown\"}"), &ew__local_callee, NULL, NULL, &remotes[1]),
                     EW_OK);
    assert_int_equal(ew__registry_set_remotes(&s.registry, remotes, 2), EW_OK);
    s.actions = ew__registry_get(&s.registry);
    ew__buf out = fresh();
    assert_int_equal(ew__sf_write_components(&out, s.actions, s.actions->listing), EW_OK);
    check_buf(&out, "{'components':["
                    "{'component':'/a','x-everywire':{'key':'/flow/a','descriptor':{'key':'/flow/a','name':'a',"
                    "'actionType':'flow'}}},"
                    "{'component':'r1:/flow/a','x-everywire':{'key':'r1:/flow/a','descriptor':{'key':'/flow/a',"
                    "'name':'a','actionType':'flow'}}},"
                    "{'component':'/b','x-everywire':{'key':'/flow/b','descriptor':{'name':'shown'}}}]}");
    assert_int_equal(ew__sf_write_info(&out, s.actions, remotes[0]), EW_OK);
    check_buf(&out, "{'info':{'component':'r1:/flow/a','x-everywire':{'key':'r1:/flow/a','descriptor':"
                    "{'key':'/flow/a','name':'a','actionType':'flow'}}}}");
    ew__action_unref(remotes[0]);
    ew__action_unref(remotes[1]);
    shelf_done(&s);
}

static void test_wire_stepflow_codec__info(void **state) {
    (void)state;
    shelf s = {.actions = NULL};
    ew__action *action = NULL;
    ew__buf out = fresh();
    shelf_init(&s);
    shelf_add(&s, "/flow/a", &(ew_action_options){.output_schema = "{}", .input_schema = "true"});
    shelf_add(&s, "/flow/same", NULL);
    shelf_add(&s, "/tool/same", NULL);
    s.actions = ew__registry_get(&s.registry);
    assert_int_equal(ew__actions_find(s.actions, EW_STR("/a"), &action), EW_OK);
    assert_int_equal(ew__sf_write_info(&out, s.actions, action), EW_OK);
    check_buf(&out, "{'info':{'component':'/a','output_schema':{}" OURS(
                        "/flow/a", "'name':'a','actionType':'flow','inputSchema':true,'outputSchema':{}") "}");
    assert_int_equal(ew__actions_find(s.actions, EW_STR("/tool/same"), &action), EW_OK);
    assert_int_equal(ew__sf_write_info(&out, s.actions, action), EW_OK);
    check_buf(&out, "{'info':{'component':'/tool/same'" OURS("/tool/same", "'name':'same','actionType':'tool'") "}");
    shelf_done(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_codec__methods),
        cmocka_unit_test(test_wire_stepflow_codec__plain),
        cmocka_unit_test(test_wire_stepflow_codec__blob_url),
        cmocka_unit_test(test_wire_stepflow_codec__component),
        cmocka_unit_test(test_wire_stepflow_codec__run),
        cmocka_unit_test(test_wire_stepflow_codec__context),
        cmocka_unit_test(test_wire_stepflow_codec__longest),
        cmocka_unit_test(test_wire_stepflow_codec__listing),
        cmocka_unit_test(test_wire_stepflow_codec__listing_reaches),
        cmocka_unit_test(test_wire_stepflow_codec__listing_remote),
        cmocka_unit_test(test_wire_stepflow_codec__info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
