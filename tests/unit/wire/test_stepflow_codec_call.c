/*
 * tests/unit/wire/test_stepflow_codec_call.c: what we ask servers of all generations, and how we read what they say.
 * Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"
#include "support/json_or.h"
#include "unit/wire/stepflow_texts.h"

#define NONE ((ew_str){NULL, 0})

/* ---- requests ---- */

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

/* A call with a trace that is known. */
static ew_call *new_call(world *w, const char *key, const char *context) {
    ew_call *call = ew__call_new(&w->r.side[RIG_CLIENT].executor, &nobody, NULL);
    assert_non_null(call);
    call->key = ew_str_from(key);
    call->context = ew_str_from(context);
    memcpy(call->trace.trace_id, "0af7651916cd43dd8448eb211c80319c", 32);
    memcpy(call->trace.span_id, "b7ad6b7169203331", 16);
    return call;
}

/* The whole request around the input; for free(). The call is released. */
static char *write_request_to(bool everywire, ew_call *call, const char *id, bool bare, const char *input) {
    const ew_env *env = call->executor->env;
    ew__sf_request request;
    char *text = NULL;
    size_t n;
    assert_int_equal(ew__sf_write_request(&request, env, call, ew_str_from(id), bare, everywire), EW_OK);
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    (void)fprintf(out, "%.*s%s%.*s", (int)request.head.len, request.head.ptr, input, (int)request.tail.len,
                  request.tail.len ? request.tail.ptr : "");
    (void)fclose(out);
    ew__sf_request_done(&request, env);
    ew__call_release(call);
    return text;
}

static char *write_request(ew_call *call, const char *id, bool bare, const char *input) {
    return write_request_to(false, call, id, bare, input);
}

#define RUN_ID "'0af76519-16cd-43dd-8448-eb211c80319c'"
#define NO_FLOW "'0000000000000000000000000000000000000000000000000000000000000000'"
#define SEEN "'trace_id':'0af7651916cd43dd8448eb211c80319c','span_id':'b7ad6b7169203331',"
#define REQUEST(component, attempt, step, run, flow, more)                                                             \
    RPC "'id':'x','method':'components/execute','params':{'component':'" component "','input':1,'attempt':" attempt    \
        ",'step_id':" step ",'run_id':" run ",'flow_id':" flow ",'observability':{" SEEN "'run_id':" run               \
        ",'flow_id':" flow ",'step_id':" step more "}}}"

static const struct {
    const char *key, *context;
    uint32_t attempt;
    bool bare;
    const char *request;
} requests[] = {
    {"/echo", "", 0, false, REQUEST("/echo", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"echo", "", 0, false, REQUEST("/echo", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"echo", "", 7, true, REQUEST("echo", "7", "'call'", RUN_ID, NO_FLOW, "")},
    {"/echo", "", 0, true, REQUEST("/echo", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"/flow/a b", "", 0, false, REQUEST("/flow/a b", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"caf\xc3\xa9\"", "", 0, false, REQUEST("/caf\\u00e9\\'", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"caf\xc3\xa9", "", 0, true, REQUEST("caf\\u00e9", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"r1:/flow/a", "", 0, false, REQUEST("/r1:/flow/a", "1", "'call'", RUN_ID, NO_FLOW, "")},
    /* the context has the first word about ids, not about the trace; the rest goes along */
    {"/e", "{'step_id':'s','run_id':'r','flow_id':'f','a':[1, 2],'b':null,'a':3}", 0, false,
     REQUEST("/e", "1", "'s'", "'r'", "'f'", ",'a':[1, 2],'b':null,'a':3")},
    {"/e", "{'trace_id':'other','span_id':7,'step_id':1,'run_id':null}", 0, false,
     REQUEST("/e", "1", "'call'", RUN_ID, NO_FLOW, "")},
    {"/e", "{\n'flow_id':'\xc3\xa9',\n'k\xc3\xa9':'\xc3\xa9' }", 0, false,
     REQUEST("/e", "1", "'call'", RUN_ID, "'\\u00e9'", ",'k\\u00e9':'\\u00e9'")},
    {"/e", "{}", 0, false, REQUEST("/e", "1", "'call'", RUN_ID, NO_FLOW, "")},
};

static void test_wire_stepflow_codec_call__requests(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    for (size_t i = 0; i < N_OF(requests); i++) {
        char *context = quoted(requests[i].context);
        ew_call *call = new_call(&w, requests[i].key, context);
        call->attempt = requests[i].attempt;
        char *text = write_request(call, "\"x\"", requests[i].bare, "1");
        check_str(ew_str_from(text), requests[i].request);
        assert_int_equal(ew_json_check(ew_str_from(text), NULL), EW_OK);
        free(text);
        free(context);
    }
    ew_call *list = new_call(&w, "", "");
    list->kind = EW__CALL_LIST;
    char *text = write_request(list, "\"x\"", false, "");
    check_str(ew_str_from(text), RPC "'id':'x','method':'components/list','params':{}}");
    free(text);
    assert_true(ew__sf_is_bare(EW_STR("a")) && ew__sf_is_bare(EW_STR("a/b")));
    assert_false(ew__sf_is_bare(EW_STR("/a")) || ew__sf_is_bare(NONE));
    world_done(&w);
}

/* What a server of ours makes of a request; for free(). */
static char *context_at_server(world *w, const char *text) {
    char name[8192];
    ew__json_doc doc;
    ew__sf_run run;
    ew_call *call = new_call(w, "", "");
    assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
    assert_null(ew__sf_read_run(&doc, ew_json_get(doc.root, "/params"), name, sizeof name, &run));
    assert_int_equal(ew__sf_fill_call(call, &run, true), EW_OK);
    size_t room = call->context.len + run.component.len + 100;
    char *all = malloc(room);
    assert_non_null(all);
    (void)snprintf(all, room, "%.*s %.*s %.32s", (int)run.component.len, run.component.ptr, (int)call->context.len,
                   call->context.ptr, call->trace.trace_id);
    ew__call_release(call);
    return all;
}

/* A server of ours is told less, and knows the same. */
static void check_ours(world *w, const char *key, const char *context, bool bare) {
    char *full = write_request(new_call(w, key, context), "1", bare, "1");
    char *less = write_request_to(true, new_call(w, key, context), "1", bare, "1");
    assert_true(strlen(less) < strlen(full));
    char *of_full = context_at_server(w, full), *of_less = context_at_server(w, less);
    assert_string_equal(of_less, of_full);
    free(of_less);
    free(of_full);
    free(less);
    free(full);
}

static void test_wire_stepflow_codec_call__requests_to_ours(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    for (size_t i = 0; i < N_OF(requests); i++) {
        char *context = quoted(requests[i].context);
        check_ours(&w, requests[i].key, context, requests[i].bare);
        free(context);
    }
    /* long ones, every byte of which grows */
    static char name[1001], context[4096];
    memset(name, '\1', sizeof name - 1);
    (void)snprintf(context, sizeof context, "{\"run_id\":\"%01000d\",\"step_id\":\"%01000d\",\"a\":\"%01000d\"}", 1, 2,
                   3);
    check_ours(&w, name, context, false);
    check_ours(&w, name, "", true);
    check_ours(&w, "/a", context, true);
    world_done(&w);
}

/* As every answer is read. */
static bool read_long_way(ew_str text, ew_str id, ew_str *ret_output) {
    ew__json_doc doc;
    ew__rpc message;
    if (ew__json_parse(&doc, text) != EW_OK)
        return false;
    ew__rpc_read(&doc, 0, &message);
    if (message.kind != EW__RPC_RESULT || !ew__str_is(message.id, id))
        return false;
    *ret_output = ew__json_find_in(message.result, EW_STR("output"), NULL);
    return ret_output->len > 0;
}

/* Whatever is read the short way is read the same the long way. */
static void check_output(const char *text, size_t n, ew_str id) {
    ew_str output = NONE, other = NONE;
    if (!ew__sf_read_output(ew__str(text, n), id, &output))
        return;
    if (!read_long_way(ew__str(text, n), id, &other) || output.ptr != other.ptr || output.len != other.len)
        fail_msg("%.*s", (int)n, text);
}

static void test_wire_stepflow_codec_call__outputs(void **state) {
    (void)state;
    static const char *const outputs[] = {"1", "[1,{'a':'}}'}]", "'x'", "{'output':{}}", "null"};
    const ew_str id = EW_STR("\"a1-2\"");
    for (size_t i = 0; i < N_OF(outputs); i++) {
        char *output = quoted(outputs[i]), text[200];
        size_t n = (size_t)snprintf(text, sizeof text,
                                    "{\"jsonrpc\":\"2.0\",\"id\":\"a1-2\",\"result\":{\"output\":%s}}", output);
        ew_str got = NONE;
        assert_true(ew__sf_read_output(ew__str(text, n), id, &got));
        assert_true(ew__str_is(got, ew_str_from(output)));
        assert_false(ew__sf_read_output(ew__str(text, n), EW_STR("\"a1-3\""), &got));
        assert_false(ew__sf_read_output(ew__str(text, n), EW_STR("\"a1\""), &got));
        for (size_t at = 0; at < n; at++) {
            char was = text[at];
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                check_output(text, n, id);
            }
            text[at] = was;
            check_output(text, at, id);
            check_output(text + at, n - at, id);
        }
        free(output);
    }
    ew_str got;
    static const char more[] = "{\"jsonrpc\":\"2.0\",\"id\":\"a1-2\",\"result\":{\"output\":1,\"output\":2}}";
    assert_false(ew__sf_read_output(ew_str_from(more), id, &got));
    assert_false(ew__sf_read_output(NONE, id, &got));
}

static void test_wire_stepflow_codec_call__initialize(void **state) {
    (void)state;
    ew__buf out = fresh();
#define HELLO                                                                                                          \
    RPC "'id':'x','method':'initialize','params':{'runtime_protocol_version':1,'runtimeProtocolVersion':1,"            \
        "'protocol_prefix':'everywire'"
    assert_int_equal(ew__sf_write_initialize(&out, EW_STR("\"x\""), NONE), EW_OK);
    check_buf(&out, HELLO "}}");
    assert_int_equal(ew__sf_write_initialize(&out, EW_STR("\"x\""), EW_STR("http://127.0.0.1:1/b")), EW_OK);
    check_buf(&out, HELLO ",'capabilities':{'blobApiUrl':'http://127.0.0.1:1/b'}}}");
}

/* The text without the first piece that stands between two others. In place. */
static void cut_out(char *text, const char *from, const char *to) {
    char *begin = strstr(text, from), *end = begin ? strstr(begin, to) : NULL;
    assert_non_null(end);
    if (end)
        memmove(begin, end, strlen(end) + 1);
}

/* A frame that five generations of servers have understood: ours is the same, with a trace besides. */
static void check_union(world *w, ew_str raw) {
    char *text = malloc(raw.len);
    size_t n = 0;
    assert_non_null(text);
    assert_int_equal(ew_json_string(raw, text, raw.len - 1, &n), EW_OK);
    text[n] = '\0';
    ew_str frame = ew_str_from(text), params = ew_json_get(frame, "/params"), input = ew_json_get(params, "/input");
    ew_str name = json_str_or(params, "/component", EW_STR("")), seen = ew_json_get(params, "/observability");
    char *key = strndup(name.ptr, name.len), *context = strndup(seen.ptr, seen.len), *ours;
    char *given = strndup(input.ptr, input.len);
    ours = write_request(new_call(w, key, context), "\"ex\"", false, given);
    cut_out(ours, "\"trace_id\"", "\"run_id\"");
    assert_string_equal(ours, text);
    free(ours);
    free(given);
    free(context);
    free(key);
    free(text);
}

static void test_wire_stepflow_codec_call__union(void **state) {
    (void)state;
    world w;
    corpus c;
    size_t n = 0;
    if (!corpus_open(&c, EW_SHARED, "../captures/stepflow/compat-union.jsonl"))
        skip();
    world_plain(&w);
    while (corpus_next(&c)) {
        ew_str method = json_str_or(c.row, "/frame/method", EW_STR("")), raw = ew_json_get(c.row, "/raw");
        if (ew__str_is(method, EW_STR("components/execute")) && raw.len && ++n)
            check_union(&w, raw);
        if (!ew__str_is(method, EW_STR("initialize")))
            continue;
        ew__buf out = fresh();
        ew_json_iter it = {.offset_ = 0};
        assert_int_equal(ew__sf_write_initialize(&out, EW_STR("\"init\""), NONE), EW_OK);
        while (ew_json_next(ew_json_get(c.row, "/frame/params"), &it))
            assert_non_null(memmem(out.ptr, out.len, it.key.ptr, it.key.len));
        ew__buf_done(&out);
    }
    corpus_close(&c);
    assert_true(n >= 3);
    world_done(&w);
}

/* ---- listings ---- */

static const struct {
    const char *result, *listing; /* NULL: none */
} listings[] = {
    {"{'components':[]}", "{}"},
    {"{'components':[{'component':'/a','description':'d','input_schema':{'t':1},'output_schema':{}},"
     "{'component':'b','description':null,'input_schema':null}],'more':1}",
     "{'/a':{'key':'/a','name':'a','actionType':'component','description':'d','inputSchema':{'t':1},'outputSchema':{}},"
     "'b':{'key':'b','name':'b','actionType':'component'}}"},
    {"{'components':[{'component':'/','description':7,'input_schema':true},{'component':'/x/\\u00e9'}]}",
     "{'/':{'key':'/','name':'/','actionType':'component'},"
     "'/x/\\u00e9':{'key':'/x/\\u00e9','name':'x/\\u00e9','actionType':'component'}}"},
    {"{'components':[{'component':'/a','x-everywire':{'key':'/flow/a','descriptor':{'key':'/flow/a','metadata':{}}}}]}",
     "{'/flow/a':{'key':'/flow/a','metadata':{}}}"},
    {"{'components':[{'component':'/a','x-everywire':{'key':'/flow/a'}},{'component':'/b','x-everywire':null},"
     "{'component':'/c','x-everywire':{'key':1,'descriptor':{}}},{'component':'/d','x-everywire':{'key':'k',"
     "'descriptor':[]}}]}",
     "{'/a':{'key':'/a','name':'a','actionType':'component'},'/b':{'key':'/b','name':'b','actionType':'component'},"
     "'/c':{'key':'/c','name':'c','actionType':'component'},'/d':{'key':'/d','name':'d','actionType':'component'}}"},
    {"{'components':[{'name':'/a'}]}", NULL},
    {"{'components':[{'component':1}]}", NULL},
    {"{'components':['/a']}", NULL},
    {"{'components':{}}", NULL},
    {"{'components':null}", NULL},
    {"{}", NULL},
    {"[]", NULL},
    {"null", NULL},
};

static void test_wire_stepflow_codec_call__listings(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OF(listings); i++) {
        char *result = quoted(listings[i].result);
        ew__buf out = fresh();
        ew_err err = ew__sf_read_components(&out, ew_str_from(result));
        assert_int_equal(err, listings[i].listing ? EW_OK : EW_EPROTO);
        if (listings[i].listing)
            check_buf(&out, listings[i].listing);
        ew__buf_done(&out);
        free(result);
    }
}

/* What we write as a server we read as a client: keys and descriptors as they were. */
static void test_wire_stepflow_codec_call__listing_back(void **state) {
    (void)state;
    shelf s = {.actions = NULL};
    ew__buf text = fresh(), out = fresh();
    shelf_init(&s);
    shelf_add(&s, "/flow/a", &(ew_action_options){.description = "d\xc3\xa9", .metadata = "{\"x\":[1]}"});
    shelf_add(&s, "/flow/q\"t", &(ew_action_options){.input_schema = "true", .stream_schema = "{}"});
    s.actions = ew__registry_get(&s.registry);
    assert_int_equal(ew__sf_write_components(&text, s.actions, s.actions->listing), EW_OK);
    assert_int_equal(ew__sf_read_components(&out, ew__buf_view(&text)), EW_OK);
    assert_true(ew__str_is(ew__buf_view(&out), s.actions->listing));
    ew__buf_done(&text);
    ew__buf_done(&out);
    shelf_done(&s);
}

/* The lists of real servers of all generations. */
static void test_wire_stepflow_codec_call__captured_listings(void **state) {
    (void)state;
    static const struct {
        const char *file, *some;
    } files[] = {
        {"2025-08-python-http", "/udf"},        {"2025-08-python-stdio", "/udf"}, {"2026-01-py092-http", "/udf"},
        {"2026-01-python-last-stdio", "/echo"}, {"2026-03-py0112-http", "/echo"}, {"2025-08-typescript-stdio", "add"},
    };
    for (size_t i = 0; i < N_OF(files); i++) {
        corpus c;
        char path[100];
        size_t found = 0;
        (void)snprintf(path, sizeof path, "../captures/stepflow/%s.jsonl", files[i].file);
        if (!corpus_open(&c, EW_SHARED, path))
            skip();
        while (corpus_next(&c)) {
            ew_str over_http = ew_json_get(c.row, "/frame/body/result"), lines = ew_json_get(c.row, "/frame/result");
            ew_str result = over_http.len ? over_http : lines;
            if (!ew_json_get(result, "/components").len)
                continue;
            ew__buf out = fresh();
            assert_int_equal(ew__sf_read_components(&out, result), EW_OK);
            assert_int_equal(ew_json_check(ew__buf_view(&out), NULL), EW_OK);
            ew_str one = ew_json_member(ew__buf_view(&out), ew_str_from(files[i].some));
            assert_true(ew_json_get(one, "/name").len > 0);
            found++;
            ew__buf_done(&out);
        }
        corpus_close(&c);
        if (found == 0)
            fail_msg("%s: no list", files[i].file);
    }
}

/* ---- faults ---- */

static const struct {
    const char *error;
    ew_status status;
    const char *message, *details; /* NULL: none */
    bool retryable;
    uint64_t after;
} faults[] = {
    {"{'code':-32700,'message':'m'}", EW_STATUS_INVALID_ARGUMENT, "m", NULL, false, 0},
    {"{'code':-32600,'message':'m'}", EW_STATUS_INVALID_ARGUMENT, "m", NULL, false, 0},
    {"{'code':-32601,'message':'m','data':null}", EW_STATUS_UNIMPLEMENTED, "m", NULL, false, 0},
    {"{'code':-32602,'message':'m','data':{}}", EW_STATUS_INVALID_ARGUMENT, "m", NULL, false, 0},
    {"{'code':-32603,'message':'m'}", EW_STATUS_INTERNAL, "m", NULL, false, 0},
    {"{'code':-32000,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32001,'message':'m','data':{'component':'/x'}}", EW_STATUS_NOT_FOUND, "m", "{'component':'/x'}", false,
     0},
    {"{'code':-32002,'message':'m'}", EW_STATUS_FAILED_PRECONDITION, "m", NULL, false, 0},
    {"{'code':-32003,'message':'m','data':{}}", EW_STATUS_UNKNOWN, "m", NULL, false, 0}, /* two meanings */
    {"{'code':-32004,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32005,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32006,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32007,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32008,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32100,'message':'m','data':{}}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32101,'message':'m','data':[1]}", EW_STATUS_INVALID_ARGUMENT, "m", "[1]", false, 0},
    {"{'code':-32102,'message':'m'}", EW_STATUS_UNAVAILABLE, "m", NULL, true, 0},
    {"{'code':-32103,'message':'m'}", EW_STATUS_INVALID_ARGUMENT, "m", NULL, false, 0},
    {"{'code':-32110,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32200,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    {"{'code':-32300,'message':'m'}", EW_STATUS_UNAVAILABLE, "m", NULL, true, 0},
    {"{'code':-32301,'message':'m'}", EW_STATUS_UNAVAILABLE, "m", NULL, true, 0},
    {"{'code':-32302,'message':'m'}", EW_STATUS_UNAVAILABLE, "m", NULL, true, 0},
    {"{'code':-32303,'message':'m'}", EW_STATUS_UNAVAILABLE, "m", NULL, true, 0},
    {"{'code':-32304,'message':'m'}", EW_STATUS_UNKNOWN, "m", NULL, false, 0},
    /* of ours, whatever the code; or of somebody's who has a word that we have not */
    {"{'code':-32100,'message':'m','data':{'status':'ABORTED','details':{'d':1},'retryable':true,'retry_after_ms':9}}",
     EW_STATUS_ABORTED, "m", "{'d':1}", true, 9},
    {"{'code':-32300,'message':'m','data':{'status':'UNAVAILABLE'}}", EW_STATUS_UNAVAILABLE, "m", NULL, false, 0},
    {"{'code':-32001,'message':'m','data':{'status':'gone'}}", EW_STATUS_NOT_FOUND, "m", "{'status':'gone'}", false, 0},
    {"{'code':1,'message':'m','data':0}", EW_STATUS_UNKNOWN, "m", "0", false, 0},
    {"{'code':1,'message':'e\\u00e9\\n'}", EW_STATUS_UNKNOWN, "e\xc3\xa9\n", NULL, false, 0},
    {"{'message':'no code'}", EW_STATUS_UNKNOWN, "no code", NULL, false, 0},
    {"'only a text'", EW_STATUS_UNKNOWN, "only a text", NULL, false, 0},
    {"{'code':-32601}", EW_STATUS_UNIMPLEMENTED, "{'code':-32601}", NULL, false, 0},
};

static void test_wire_stepflow_codec_call__faults(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OF(faults); i++) {
        char text[100], *error = quoted(faults[i].error);
        ew_fault fault;
        ew__sf_read_fault(ew_str_from(error), text, sizeof text, &fault);
        if (fault.status != faults[i].status || fault.retryable != faults[i].retryable)
            fail_msg("%s: %s", error, ew_status_name(fault.status));
        check_str(fault.message, faults[i].message);
        check_str(fault.details, faults[i].details ? faults[i].details : "");
        assert_int_equal(fault.retry_after_ms, faults[i].after);
        int64_t code = json_int_or(ew_str_from(error), "/code", 0);
        assert_int_equal(ew__sf_is_not_found(ew_str_from(error)), code == -32001 || code == -32601);
        free(error);
    }
}

/* Each status of ours gets there and back, with its details. */
static void test_wire_stepflow_codec_call__faults_back(void **state) {
    (void)state;
    for (int status = EW_STATUS_CANCELLED; status <= EW_STATUS_UNAUTHENTICATED; status++) {
        char text[100];
        ew__buf out = fresh();
        ew_fault fault = {.status = (ew_status)status, .message = EW_STR("m"), .details = EW_STR("[2]")}, back;
        fault.retryable = status % 2 != 0;
        fault.retry_after_ms = (uint64_t)status * 3;
        assert_int_equal(ew__sf_write_fault(&out, 0, &fault, NONE), EW_OK);
        ew__sf_read_fault(ew__buf_view(&out), text, sizeof text, &back);
        assert_int_equal(back.status, status);
        check_str(back.message, "m");
        check_str(back.details, "[2]");
        assert_int_equal(back.retryable, fault.retryable);
        assert_int_equal(back.retry_after_ms, fault.retry_after_ms);
        ew__buf_done(&out);
    }
}

/* ---- what servers ask, and what we refuse to ask ---- */

static void test_wire_stepflow_codec_call__put(void **state) {
    (void)state;
    static const struct {
        const char *params, *data, *type; /* data NULL: bad */
    } table[] = {
        {"{'data':{'k':'v'},'blob_type':'data'}", "{'k':'v'}", "data"},
        {"{'data':null,'blob_type':'flow','observability':null}", "null", "flow"},
        {"{'data':[1]}", "[1]", "data"},
        {"{'blob_type':'data'}", NULL, NULL},
        {"{'data':1,'blob_type':'binary'}", NULL, NULL},
        {"{'data':1,'blob_type':7}", NULL, NULL},
        {"{'data':1,'blob_type':null}", NULL, NULL},
        {"{'data':1,'blob_type':''}", NULL, NULL},
        {"[]", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        char *params = quoted(table[i].params);
        ew_str data, type;
        assert_int_equal(ew__sf_read_put(ew_str_from(params), &data, &type), table[i].data != NULL);
        if (table[i].data) {
            check_str(data, table[i].data);
            check_str(type, table[i].type);
        }
        free(params);
    }
}

static void test_wire_stepflow_codec_call__refuses(void **state) {
    (void)state;
    assert_null(ew__sf_refuses(&(ew_request_options){.action = EW_STR("/a"), .input = EW_STR("1")}));
    assert_null(ew__sf_refuses(&(ew_request_options){.context = EW_STR("{}")}));
    assert_string_equal(ew__sf_refuses(&(ew_request_options){.input_stream = true}),
                        "the stepflow wire carries no input stream");
    assert_null(ew__sf_refuses(&(ew_request_options){.stream = true})); /* they do not come, that is all */
    assert_string_equal(ew__sf_refuses(&(ew_request_options){.labels = EW_STR("{}")}),
                        "the stepflow wire carries no labels");
    assert_string_equal(ew__sf_refuses(&(ew_request_options){.context = EW_STR("[]")}),
                        "the context of a Stepflow component is an object");
    assert_true(ew__sf_is_everywire(EW_STR("{\"x-everywire\":{}}")));
    assert_false(ew__sf_is_everywire(EW_STR("{\"server_protocol_version\":1}")));
    assert_false(ew__sf_is_everywire(EW_STR("\"x-everywire\"")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_codec_call__requests),
        cmocka_unit_test(test_wire_stepflow_codec_call__requests_to_ours),
        cmocka_unit_test(test_wire_stepflow_codec_call__outputs),
        cmocka_unit_test(test_wire_stepflow_codec_call__initialize),
        cmocka_unit_test(test_wire_stepflow_codec_call__union),
        cmocka_unit_test(test_wire_stepflow_codec_call__listings),
        cmocka_unit_test(test_wire_stepflow_codec_call__listing_back),
        cmocka_unit_test(test_wire_stepflow_codec_call__captured_listings),
        cmocka_unit_test(test_wire_stepflow_codec_call__faults),
        cmocka_unit_test(test_wire_stepflow_codec_call__faults_back),
        cmocka_unit_test(test_wire_stepflow_codec_call__put),
        cmocka_unit_test(test_wire_stepflow_codec_call__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
