/*
 * tests/unit/wire/test_stepflow_http_back.c: handlers that call their runtime back: the answer becomes a stream, and
 * replies come as requests of their own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_http_back.h"

#define EVENT(id, method, params) RPC "'id':" id ",'method':'" method "','params':" params "}"

/* ---- one call back ---- */

static void go_through(rig_split split) {
    world w;
    back b;
    world_init(&w, NULL, NULL, (rig_options){.split = split});
    server_site(&w)->instance = &w.instance;
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    rig_advance(&w.r, 100);
    hear_nothing(pair); /* only with the first of them it becomes a stream */
    ask(&w, call, &b, "blobs/put", "{\"data\":{\"k\":\"v\"},\"blob_type\":\"data\"}");
    hear_stream(pair, true);
    hear_event(&w, pair, EVENT("$1", "blobs/put", "{'data':{'k':'v'},'blob_type':'data'}"));
    hear_nothing(pair);
    check_runs(&b);
    reply(&w, 202, RPC "'id':$1,'result':{'blob_id':'b'}}", "");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "{'blob_id':'b'}");
    hear_nothing(pair);
    ask(&w, call, &b, "runs/submit", "{}");
    hear_event(&w, pair, EVENT("$2", "runs/submit", "{}"));
    assert_string_not_equal(w.ids[1], w.ids[2]);
    reply(&w, 202, RPC "'id':$2,'result':[1,\n2]}", "");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "[1,\n2]");
    reply(&w, 400, RPC "'id':$2,'result':1}", NOBODY); /* once */
    finish(&w, call, "{\"done\":\n\"\xc3\xa9\"}");
    hear_event(&w, pair, OUTPUT("'x'", "{'done':'\\u00e9'}"));
    hear_stream_end(pair);
    hear_nothing(pair);
    assert_false(is_over(pair));
    post(&w, pair, EXECUTE("2", "/echo", "3")); /* the connection goes on */
    hear(&w, pair, 200, OUTPUT("2", "3"));
    assert_int_equal(w.r.n_cancelled, 0);
    assert_int_equal(rig_dropped(&w.r, RIG_SERVER), 1);
    world_done(&w);
}

static void test_wire_stepflow_http_back__there_and_back(void **state) {
    (void)state;
    go_through(RIG_WHOLE);
    go_through(RIG_BYTES);
    go_through(RIG_RANDOM);
}

/* Whatever the handler asks, an event is one line of ASCII. */
static void test_wire_stepflow_http_back__texts(void **state) {
    (void)state;
    static const struct {
        const char *method, *params, *event_method, *event_params;
    } table[] = {
        {"blobs/get", "{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"}", "blobs/get", "{'a':'\\u00e9\\ud83d\\ude00\\u007f'}"},
        {"a\"\xc3\xa9\n", "{}", "a\\'\\u00e9\\n", "{}"},
        {"m", "{\r\n \"a\" :\n1 }\n", "m", "{'a':1}"},
        {"m", "{ \"a\" : 1 } ", "m", "{ 'a' : 1 }"},
        {"m", "  {}\t", "m", "{}"},
        {"m", "{\"x\":12345678901234567890.50,\"x\":2}", "m", "{'x':12345678901234567890.50,'x':2}"},
    };
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    for (size_t i = 0; i < N_OF(table); i++) {
        back b;
        char pattern[300];
        ask(&w, call, &b, table[i].method, table[i].params);
        if (i == 0)
            hear_stream(pair, false);
        (void)snprintf(pattern, sizeof pattern, EVENT("$1", "%s", "%s"), table[i].event_method, table[i].event_params);
        w.ids[1][0] = '\0';
        hear_event(&w, pair, pattern);
        reply(&w, 202, RPC "'id':$1,'result':null}", "");
        check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "null");
    }
    finish(&w, call, "1");
    world_done(&w);
}

/* A runtime that told us of a trace is told of ours. */
static void test_wire_stepflow_http_back__observability(void **state) {
    (void)state;
    static const char with[] =
        "'observability':{'trace_id':'11112222333344445555666677778888','span_id':'aaaabbbbccccdddd'}";
    world w;
    back b;
    char pattern[300];
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = take_execute(&w, pair,
                                 RPC "'id':1,'method':'components/execute','params':{'component':'/hold','input':1,"
                                     "'observability':{'trace_id':'0af7651916cd43dd8448eb211c80319c','span_id':"
                                     "'b7ad6b7169203331'}}}");
    ask(&w, call, &b, "m", "{\"a\":1} ");
    hear_stream(pair, false);
    (void)snprintf(pattern, sizeof pattern, EVENT("$1", "m", "{'a':1,%s}"), with);
    hear_event(&w, pair, pattern);
    reply(&w, 202, RPC "'id':$1,'result':1}", "");
    ask(&w, call, &b, "m", "{}");
    (void)snprintf(pattern, sizeof pattern, EVENT("$2", "m", "{%s}"), with);
    hear_event(&w, pair, pattern);
    reply(&w, 202, RPC "'id':$2,'result':1}", "");
    ask(&w, call, &b, "m", "{\"observability\":null}"); /* the handler's own word counts */
    hear_event(&w, pair, EVENT("$3", "m", "{'observability':null}"));
    reply(&w, 202, RPC "'id':$3,'result':1}", "");
    finish(&w, call, "1");
    world_done(&w);
    world_plain(&w);
    pair = runtime(&w);
    call = take_execute(&w, pair,
                        RPC "'id':1,'method':'components/execute','params':{'component':'/hold',"
                            "'observability':{'run_id':'r'}}}");
    ask(&w, call, &b, "m", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "m", "{}"));
    finish(&w, call, "1");
    world_done(&w);
}

/* ---- replies ---- */

static void test_wire_stepflow_http_back__errors(void **state) {
    (void)state;
    world w;
    back b;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "blobs/get", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "blobs/get", "{}"));
    reply(&w, 202, RPC "'id':$1,'error':{'code':-32000,'message':'Failed to get blob','data':null}}", "");
    check_back(&b, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "Failed to get blob");
    ask(&w, call, &b, "blobs/get", "{}");
    hear_event(&w, pair, EVENT("$2", "blobs/get", "{}"));
    reply(&w, 202, RPC "'id':$2,'error':{'code':-32300,'message':'n\xc3\xa9','data':{'x':1}}}", "");
    check_back(&b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_ACTION, "n\xc3\xa9");
    assert_true(b.retryable);
    assert_string_equal(b.details, "{\"x\":1}");
    ask(&w, call, &b, "blobs/get", "{}");
    hear_event(&w, pair, EVENT("$3", "blobs/get", "{}"));
    reply(&w, 400, RPC "'id':$3}", NULL); /* that is no reply: it is still waited for */
    reply(&w, 400, RPC "'id':$3,'result':1,'result':2}", NULL);
    check_runs(&b);
    reply(&w, 202, RPC "'id':$3,'error':{'code':-32601,'message':'no'}}", "");
    check_back(&b, EW_STATUS_UNIMPLEMENTED, EW_ORIGIN_ACTION, "no");
    assert_int_equal(ew_call_fail(call, EW_STATUS_ABORTED, "it went \xc3\xa9"), EW_OK);
    rig_run(&w.r);
    ew_call_unref(call);
    hear_event(&w, pair, ERROR("'x'", FAULT(-32100, "it went \\u00e9", "ABORTED")));
    hear_stream_end(pair);
    world_done(&w);
}

static void test_wire_stepflow_http_back__out_of_order(void **state) {
    (void)state;
    world w;
    back a, b, c;
    world_plain(&w);
    rig_pair *pair = runtime(&w), *other = runtime(&w);
    ew_call *call = executed(&w, pair), *second = executed(&w, other);
    ask(&w, call, &a, "a", "{}");
    ask(&w, call, &b, "b", "{}");
    ask(&w, second, &c, "c", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "a", "{}"));
    hear_event(&w, pair, EVENT("$2", "b", "{}"));
    hear_stream(other, false);
    hear_event(&w, other, EVENT("$3", "c", "{}"));
    assert_string_not_equal(w.ids[1], w.ids[3]);
    reply(&w, 202, RPC "'id':$2,'result':'for b'}", "");
    check_runs(&a);
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "'for b'");
    finish(&w, call, "1"); /* with it goes what it waited for, and nothing else */
    check_back(&a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
    check_runs(&c);
    reply(&w, 202, RPC "'id':$3,'result':'for c'}", "");
    check_back(&c, EW_STATUS_OK, EW_ORIGIN_ACTION, "'for c'");
    reply(&w, 400, RPC "'id':$1,'result':'for a'}", NOBODY);
    finish(&w, second, "2");
    hear_event(&w, other, OUTPUT("'x'", "2"));
    world_done(&w);
}

/* Ids may come back in another spelling; others are nobody's. */
static void test_wire_stepflow_http_back__ids(void **state) {
    (void)state;
    world w;
    back b;
    char text[1000], *id = NULL;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "m", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "m", "{}"));
    assert_memory_equal(w.ids[1], "\"0-ew", 5); /* they begin with the number of the loop */
    id = w.ids[1] + 1;
    id[strlen(id) - 1] = '\0';
    static const char *const strange[] = {"''", "'0-'", "'0'", "7", "null", "'0-ew'", "'-'", "'4294967296-x'", "'x-0'"};
    for (size_t i = 0; i < N_OF(strange); i++) {
        (void)snprintf(text, sizeof text, RPC "'id':%s,'result':1}", strange[i]);
        reply(&w, 400, text, NOBODY);
    }
    (void)snprintf(text, sizeof text, RPC "'id':'%sx','result':1}", id);
    reply(&w, 400, text, NOBODY);
    (void)snprintf(text, sizeof text, RPC "'id':' %s','result':1}", id);
    reply(&w, 400, text, NOBODY);
    check_runs(&b);
    assert_int_equal(rig_dropped(&w.r, RIG_SERVER), N_OF(strange) + 2);
    (void)snprintf(text, sizeof text, RPC "'id':'\\u0030%s','result':1}", id + 1);
    reply(&w, 202, text, "");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "1");
    finish(&w, call, "1");
    world_done(&w);
}

/* ---- several loops ---- */

typedef struct others {
    struct ew__broadcast base;
    bool takes;
    unsigned n, to;
    const ew__executor *from;
    char text[300];
} others;

static bool on_tell(struct ew__broadcast *base, const ew__executor *from, const ew__wire *wire, unsigned to,
                    const ew__principal *sender, ew_str text) {
    others *o = (others *)(void *)base;
    assert_ptr_equal(wire, &ew__wire_stepflow);
    assert_int_equal(sender->kind, EW__WHO_STRANGER); /* no access control: one principal */
    o->n++;
    o->to = to;
    o->from = from;
    (void)snprintf(o->text, sizeof o->text, "%.*s", (int)text.len, text.ptr);
    return o->takes;
}

static void test_wire_stepflow_http_back__other_loop(void **state) {
    (void)state;
    world w;
    others o = {.base = {.send = on_tell}, .takes = true};
    world_plain(&w);
    server_site(&w)->loop = 2;
    reply(&w, 400, RPC "'id':'7-ew0-1','result':1}", NOBODY); /* there is no other */
    server_site(&w)->broadcast = &o.base;
    reply(&w, 202, RPC "'id':'7-ew0-1','result':1}", "");
    assert_int_equal(o.n, 1);
    assert_int_equal(o.to, 7);
    assert_ptr_equal(o.from, &w.r.side[RIG_SERVER].executor);
    assert_string_equal(o.text, "{\"jsonrpc\":\"2.0\",\"id\":\"7-ew0-1\",\"result\":1}");
    o.takes = false;
    reply(&w, 503, RPC "'id':'\\u0030-ew0-1','error':{}}",
          ERROR("null", FAULT(-32300, "too many replies wait", "RESOURCE_EXHAUSTED")));
    assert_int_equal(o.to, 0);
    reply(&w, 400, RPC "'id':'2-ew0-1','result':1}", NOBODY); /* this one: it knows best */
    reply(&w, 400, RPC "'id':'4294967295-ew0-1','result':1}", NOBODY);
    reply(&w, 400, RPC "'id':'x','result':1}", NOBODY);
    assert_int_equal(o.n, 2);
    world_done(&w);
}

static void tell(world *w, const char *body) {
    char *text = expand(w, body);
    const ew__principal everybody = {.kind = EW__WHO_STRANGER};
    ew__wire_stepflow.on_broadcast(w->r.side[RIG_SERVER].shared, &w->r.side[RIG_SERVER].executor, &everybody,
                                   ew_str_from(text));
    rig_run(&w->r);
    free(text);
}

static void test_wire_stepflow_http_back__told(void **state) {
    (void)state;
    world w;
    back b;
    world_plain(&w);
    server_site(&w)->loop = 12;
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "m", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "m", "{}"));
    assert_memory_equal(w.ids[1], "\"12-ew", 6);
    tell(&w, RPC "'id':'12-ew0-1','result':1}");
    tell(&w, "nonsense");
    tell(&w, RPC "'id':$1,'method':'m'}");
    tell(&w, "[]");
    check_runs(&b);
    assert_int_equal(rig_dropped(&w.r, RIG_SERVER), 4);
    tell(&w, RPC "'id':$1,'result':{'a':1}}");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "{'a':1}");
    tell(&w, RPC "'id':$1,'result':{'a':1}}");
    assert_int_equal(rig_dropped(&w.r, RIG_SERVER), 5);
    ask(&w, call, &b, "m", "{}");
    hear_event(&w, pair, EVENT("$2", "m", "{}"));
    tell(&w, RPC "'id':$2,'error':{'code':-32602,'message':'bad'}}");
    check_back(&b, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_ACTION, "bad");
    finish(&w, call, "1");
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_back__there_and_back),
        cmocka_unit_test(test_wire_stepflow_http_back__texts),
        cmocka_unit_test(test_wire_stepflow_http_back__observability),
        cmocka_unit_test(test_wire_stepflow_http_back__errors),
        cmocka_unit_test(test_wire_stepflow_http_back__out_of_order),
        cmocka_unit_test(test_wire_stepflow_http_back__ids),
        cmocka_unit_test(test_wire_stepflow_http_back__other_loop),
        cmocka_unit_test(test_wire_stepflow_http_back__told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
