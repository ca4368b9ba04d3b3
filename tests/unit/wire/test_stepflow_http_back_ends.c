/*
 * tests/unit/wire/test_stepflow_http_back_ends.c: calls back that do not go well: runtimes that leave, handlers that do
 * not wait, deadlines, limits, what is refused; and blobs that are reached by a URL.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_http_back.h"

#define EVENT(id, method, params) RPC "'id':" id ",'method':'" method "','params':" params "}"

/* ---- who leaves ---- */

static void leave(rig_pair *pair, int how) {
    if (how == 0)
        rig_say_eof(pair);
    else
        rig_cut(pair, RIG_CLIENT, how == 1 ? RIG_RESET : RIG_EOF);
    rig_run(pair->rig);
}

/* The runtime goes: its call is cancelled, and so is what that has asked. */
static void test_wire_stepflow_http_back__runtime_gone(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        world w;
        back a, b;
        world_plain(&w);
        rig_pair *pair = runtime(&w);
        ew_call *call = executed(&w, pair);
        ask(&w, call, &a, "a", "{}");
        ask(&w, call, &b, "b", "{}");
        hear_stream(pair, false);
        hear_event(&w, pair, EVENT("$1", "a", "{}"));
        hear_event(&w, pair, EVENT("$2", "b", "{}"));
        leave(pair, how);
        check_back(&a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
        check_back(&b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
        assert_int_equal(w.r.n_cancelled, 1);
        hear_nothing(pair);
        uint64_t dropped = rig_dropped(&w.r, RIG_SERVER);
        reply(&w, 400, RPC "'id':$1,'result':1}", NOBODY);
        assert_int_equal(rig_dropped(&w.r, RIG_SERVER), dropped + 1);
        ask(&w, call, &a, "a", "{}"); /* too late */
        assert_int_equal(a.refused, EW_EENDED);
        ew_call_unref(call);
        world_done(&w);
    }
}

/* A handler that asks again as soon as it is told that it failed. */
static void test_wire_stepflow_http_back__asks_again(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        world w;
        back b = {.again = 1000};
        world_plain(&w);
        rig_pair *pair = runtime(&w);
        ew_call *call = executed(&w, pair);
        ask_with(&w, call, &b, "a", "{}");
        hear_stream(pair, false);
        hear_event(&w, pair, EVENT("$1", "a", "{}"));
        if (how < 3)
            leave(pair, how);
        else
            assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
        rig_run(&w.r);
        assert_int_equal(b.ended, 1001);
        assert_int_equal(b.refused, EW_EENDED); /* what was asked for after the end was never sent */
        if (how == 3) {
            hear_event(&w, pair, OUTPUT("'x'", "1"));
            hear_stream_end(pair);
        }
        hear_nothing(pair);
        ew_call_unref(call);
        world_done(&w);
    }
}

/* A handler that ends when it is told that what it has asked for has failed. */
static void test_wire_stepflow_http_back__ends_with_it(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        world w;
        back a = {.ends = true}, b = {.ends = true};
        world_plain(&w);
        rig_pair *pair = runtime(&w);
        ew_call *call = executed(&w, pair);
        ask_with(&w, call, &a, "a", "{}");
        ask_with(&w, call, &b, "b", "{}");
        hear_stream(pair, false);
        hear_event(&w, pair, EVENT("$1", "a", "{}"));
        hear_event(&w, pair, EVENT("$2", "b", "{}"));
        if (how < 3) {
            leave(pair, how);
            hear_nothing(pair);
        } else {
            reply(&w, 202, RPC "'id':$2,'error':{'code':-32000,'message':'no'}}", "");
            hear_event(&w, pair, ERROR("'x'", FAULT(-32100, "what I asked for has failed", "ABORTED")));
            hear_stream_end(pair);
            post(&w, pair, EXECUTE("2", "/echo", "3"));
            hear(&w, pair, 200, OUTPUT("2", "3"));
        }
        check_back(&a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
        assert_int_equal(b.ended, 1);
        assert_int_equal(w.r.n_cancelled, 0); /* it had ended before */
        ew_call_unref(call);
        world_done(&w);
    }
}

/* A stream in which nothing happens shows signs of life, while its reader takes them. */
static void test_wire_stepflow_http_back__alive(void **state) {
    (void)state;
    world w;
    back b;
    world_init(&w, NULL, NULL, (rig_options){.limits = {.stall_ms = 1000 * 1000}});
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    rig_advance(&w.r, 60 * 1000);
    hear_nothing(pair); /* it is no stream yet */
    ask(&w, call, &b, "a", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "a", "{}"));
    rig_advance(&w.r, 14999);
    hear_nothing(pair);
    for (int i = 0; i < 2; i++) {
        rig_advance(&w.r, i ? 15000 : 1);
        assert_string_equal(raw_end(pair)->got, "2\r\n:\n\r\n");
        rig_forget(pair, raw_end(pair)->got_len);
    }
    rig_stall(pair, RIG_SERVER, true);
    rig_advance(&w.r, 150 * 1000);
    assert_in_range(pair->end[RIG_SERVER].conn.out.bytes, 1, 8); /* one waits, not ten */
    rig_stall(pair, RIG_SERVER, false);
    rig_run(&w.r);
    rig_forget(pair, raw_end(pair)->got_len);
    finish(&w, call, "1");
    hear_event(&w, pair, OUTPUT("'x'", "1"));
    hear_stream_end(pair);
    rig_advance(&w.r, 20 * 1000);
    hear_nothing(pair);
    world_done(&w);
}

/* The handler does not wait for what it has asked. */
static void test_wire_stepflow_http_back__not_awaited(void **state) {
    (void)state;
    world w;
    back b;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "a", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "a", "{}"));
    finish(&w, call, "7");
    check_back(&b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
    hear_event(&w, pair, OUTPUT("'x'", "7"));
    hear_stream_end(pair);
    reply(&w, 400, RPC "'id':$1,'result':1}", NOBODY);
    assert_int_equal(rig_dropped(&w.r, RIG_SERVER), 1);
    world_done(&w);
}

static void test_wire_stepflow_http_back__cancelled(void **state) {
    (void)state;
    world w;
    back a, b, c = {.timeout_ms = 30};
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &a, "a", "{}");
    ask(&w, call, &b, "b", "{}");
    ask_with(&w, call, &c, "c", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "a", "{}"));
    hear_event(&w, pair, EVENT("$2", "b", "{}"));
    hear_event(&w, pair, EVENT("$3", "c", "{}"));
    ew__call_cancel(a.call, EW__CANCEL_ASKED);
    check_back(&a, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    rig_advance(&w.r, 30);
    check_back(&c, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    hear_nothing(pair); /* there is no word for it */
    uint64_t dropped = rig_dropped(&w.r, RIG_SERVER);
    reply(&w, 400, RPC "'id':$1,'result':1}", NOBODY);
    reply(&w, 400, RPC "'id':$3,'result':1}", NOBODY);
    assert_int_equal(rig_dropped(&w.r, RIG_SERVER), dropped + 2);
    ew_call *released = b.call;
    b.call = NULL;
    ew__call_release(released); /* nobody wants to know any more */
    reply(&w, 400, RPC "'id':$2,'result':1}", NOBODY);
    check_runs(&b);
    finish(&w, call, "1");
    hear_event(&w, pair, OUTPUT("'x'", "1"));
    hear_stream_end(pair);
    world_done(&w);
}

/* The deadline of the call itself: the stream ends with it. */
static void test_wire_stepflow_http_back__deadline(void **state) {
    (void)state;
    world w;
    back b;
    world_init(&w, NULL, NULL, (rig_options){.limits = {.call_ms = 100}});
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "a", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "a", "{}"));
    rig_advance(&w.r, 100);
    hear_event(&w, pair, ERROR("'x'", FAULT(-32100, "the deadline has passed", "DEADLINE_EXCEEDED")));
    hear_stream_end(pair);
    check_back(&b, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, GONE);
    assert_int_equal(w.r.n_cancelled, 1);
    ew_call_unref(call);
    world_done(&w);
}

/* ---- what is refused ---- */

static void test_wire_stepflow_http_back__refused(void **state) {
    (void)state;
    static const struct {
        back b;
        const char *params, *text;
    } table[] = {
        {{.notify = true}, "{}", "a Stepflow runtime takes no notifications"},
        {{.wants_chunks = true}, "{}", "the stepflow wire carries no streams"},
        {{.has_input = true}, "{}", "the stepflow wire carries no streams"},
        {{.notify = false}, "[1]", "a method of a Stepflow runtime takes an object"},
        {{.notify = false}, "null", "a method of a Stepflow runtime takes an object"},
        {{.notify = false}, "\"{}\"", "a method of a Stepflow runtime takes an object"},
    };
    world w;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    for (size_t i = 0; i < N_OF(table); i++) {
        back b = table[i].b;
        ask_with(&w, call, &b, "m", table[i].params);
        check_back(&b, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_LOCAL, table[i].text);
    }
    hear_nothing(pair); /* the answer may still be a plain one */
    finish(&w, call, "1");
    hear(&w, pair, 200, OUTPUT("'x'", "1"));
    world_done(&w);
}

static void test_wire_stepflow_http_back__limits(void **state) {
    (void)state;
    world w;
    back large, a, b, c;
    char text[600];
    (void)snprintf(text, sizeof text, "{\"pad\":\"%0500d\"}", 1);
    world_init(&w, NULL, NULL, (rig_options){.limits = {.frame_bytes = 500, .calls_per_connection = 2}});
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &large, "m", text);
    check_back(&large, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
               "the input is too large: 510 bytes, the limit is 438 (set by frame_bytes)");
    hear_nothing(pair);
    ask(&w, call, &a, "a", "{}");
    ask(&w, call, &b, "b", "{}");
    ask(&w, call, &c, "c", "{}");
    assert_int_equal(c.refused, EW_EBUSY);
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "a", "{}"));
    hear_event(&w, pair, EVENT("$2", "b", "{}"));
    hear_nothing(pair);
    reply(&w, 202, RPC "'id':$1,'result':1}", "");
    ask(&w, call, &c, "c", "{}"); /* one is done, so there is place */
    hear_event(&w, pair, EVENT("$3", "c", "{}"));
    finish(&w, call, "1");
    world_done(&w);
}

/* A runtime that does not read is not asked without end. */
static void test_wire_stepflow_http_back__slow_reader(void **state) {
    (void)state;
    world w;
    back b[40];
    char text[300];
    unsigned taken = 0;
    (void)snprintf(text, sizeof text, "{\"pad\":\"%0200d\"}", 1);
    world_init(&w, NULL, NULL,
               (rig_options){.limits = {.out_high_bytes = 500, .out_low_bytes = 200, .out_max_bytes = 4000}});
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    rig_stall(pair, RIG_SERVER, true);
    for (size_t i = 0; i < N_OF(b); i++) {
        ask(&w, call, &b[i], "m", text);
        taken += b[i].refused == EW_OK;
        assert_true(b[i].refused == EW_OK || b[i].refused == EW_EBUSY);
    }
    assert_in_range(taken, 5, 20);
    assert_true(pair->end[RIG_SERVER].peak_out <= 4500);
    rig_stall(pair, RIG_SERVER, false);
    rig_run(&w.r);
    ask(&w, call, &b[39], "m", text);
    assert_int_equal(b[39].refused, EW_OK);
    finish(&w, call, "1");
    world_done(&w);
}

/* ---- connections ---- */

static void test_wire_stepflow_http_back__old_http(void **state) {
    (void)state;
    world w;
    back b;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    say_message(&w, pair, "POST / HTTP/1.0\r\n" JSON BOTH "Connection: keep-alive\r\n", EXECUTE("'x'", "/hold", "1"));
    ew_call *call = w.r.held;
    w.r.held = NULL;
    ask(&w, call, &b, "m", "{}");
    char *head = take_head_at(pair, __LINE__);
    check_line(head, "Content-Type: text/event-stream");
    check_line(head, "Connection: close"); /* the end of the stream is that of the connection */
    assert_null(strstr(head, "chunked"));
    free(head);
    ew_str got = ew__str(raw_end(pair)->got, raw_end(pair)->got_len);
    assert_memory_equal(got.ptr, "data: {", 7);
    assert_memory_equal(got.ptr + got.len - 4, "}}\n\n", 4);
    ew_str id = ew_json_get(ew__str(got.ptr + 6, got.len - 8), "/id");
    memcpy(w.ids[1], id.ptr, id.len);
    rig_forget(pair, got.len);
    reply(&w, 202, RPC "'id':$1,'result':1}", "");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "1");
    finish(&w, call, "2");
    assert_string_equal(raw_end(pair)->got, "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"output\":2}}\n\n");
    assert_true(is_over(pair));
    world_done(&w);
}

/* What comes behind a stream waits for its end, even a reply that it waits for: those have connections of their own. */
static void test_wire_stepflow_http_back__pipelined(void **state) {
    (void)state;
    world w;
    back b;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "m", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "m", "{}"));
    post(&w, pair, EXECUTE("2", "/echo", "2"));
    post(&w, pair, RPC "'id':$1,'result':1}");
    hear_nothing(pair);
    check_runs(&b);
    reply(&w, 202, RPC "'id':$1,'result':7}", "");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "7");
    finish(&w, call, "1");
    hear_event(&w, pair, OUTPUT("'x'", "1"));
    hear_stream_end(pair);
    hear(&w, pair, 200, OUTPUT("2", "2"));
    hear(&w, pair, 400, NOBODY);
    world_done(&w);
}

/* While we go down a call that runs may still ask, and is answered. */
static void test_wire_stepflow_http_back__draining(void **state) {
    (void)state;
    world w;
    back b;
    world_plain(&w);
    rig_pair *pair = runtime(&w);
    ew_call *call = executed(&w, pair);
    server_site(&w)->draining = true;
    ask(&w, call, &b, "m", "{}");
    hear_stream(pair, false);
    hear_event(&w, pair, EVENT("$1", "m", "{}"));
    rig_pair *other = runtime(&w);
    post(&w, other, RPC "'id':$1,'result':1}");
    char *head = hear_head(&w, other, 202, "");
    check_line(head, "Connection: close");
    free(head);
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "1");
    finish(&w, call, "1");
    hear_event(&w, pair, OUTPUT("'x'", "1"));
    hear_stream_end(pair);
    assert_true(is_over(pair));
    world_done(&w);
}

/* ---- blobs that are reached by a URL ---- */

typedef struct ways {
    struct ew__outbound base;
    ew_err answer;
    unsigned n;
    char url[100];
    ew_call *call; /* the last one that was taken */
} ways;

static void way_open(ew_call *call) { (void)call; }
static const ew__callee_ops way_callee = {.open = way_open};

static ew_err on_way(struct ew__outbound *base, ew__executor *executor, const ew__wire *wire, ew_str url,
                     ew_call *call) {
    ways *by = (ways *)(void *)base;
    assert_ptr_equal(wire, &ew__wire_blobs);
    assert_ptr_equal(executor, call->executor);
    by->n++;
    (void)snprintf(by->url, sizeof by->url, "%.*s", (int)url.len, url.ptr);
    if (by->answer != EW_OK)
        return by->answer;
    by->call = call;
    call->callee = &way_callee;
    return EW_OK;
}

static void greet(world *w, rig_pair *pair, const char *params) {
    char text[300];
    (void)snprintf(text, sizeof text, RPC "'id':1,'method':'initialize','params':%s}", params);
    post(w, pair, text);
    hear(w, pair, 200, NULL);
}

static void test_wire_stepflow_http_back__blob_url(void **state) {
    (void)state;
    world w;
    back b;
    ways by = {.base = {.open = on_way}};
    world_plain(&w);
    server_site(&w)->instance = &w.instance;
    server_site(&w)->outbound = &by.base;
    rig_pair *pair = runtime(&w);
    greet(&w, pair, "{'runtimeProtocolVersion':1,'capabilities':{'blobApiUrl':'http://127.0.0.1:9/api/v1/blobs'}}");
    ew_call *call = executed(&w, pair);
    ask(&w, call, &b, "blobs/put", "{\"data\":1}");
    assert_string_equal(by.url, "http://127.0.0.1:9/api/v1/blobs");
    check_runs(&b);
    (void)ew__call_done_valid(by.call, EW_STR("{\"blob_id\":\"x\"}"));
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "{'blob_id':'x'}");
    by.answer = EW_EINVAL;
    ask(&w, call, &b, "blobs/get", "{\"blob_id\":\"x\"}");
    check_back(&b, EW_STATUS_FAILED_PRECONDITION, EW_ORIGIN_LOCAL,
               "the runtime^s blobs are at a URL that is not used here");
    by.answer = EW_EBUSY;
    ask(&w, call, &b, "blobs/get", "{\"blob_id\":\"x\"}");
    assert_int_equal(b.refused, EW_EBUSY);
    assert_int_equal(by.n, 3);
    ask(&w, call, &b, "blobs/put", "1"); /* no object: as everywhere */
    check_back(&b, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_LOCAL, "a method of a Stepflow runtime takes an object");
    hear_nothing(pair);
    ask(&w, call, &b, "runs/submit", "{}"); /* other methods are asked for */
    hear_stream(pair, true);
    hear_event(&w, pair, EVENT("$1", "runs/submit", "{}"));
    assert_int_equal(by.n, 3);
    rig_pair *other = runtime(&w);
    greet(&w, other, "{'runtime_protocol_version':1}"); /* now one that has none: the last word counts */
    by.answer = EW_OK;
    ask(&w, call, &b, "blobs/put", "{\"data\":1}");
    hear_event(&w, pair, EVENT("$2", "blobs/put", "{'data':1}"));
    assert_int_equal(by.n, 3);
    server_site(&w)->outbound = NULL;
    greet(&w, other, "{'capabilities':{'blobApiUrl':'http://127.0.0.1:9'}}");
    ask(&w, call, &b, "blobs/put", "{}");
    hear_event(&w, pair, EVENT("$3", "blobs/put", "{}"));
    finish(&w, call, "1");
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_back__runtime_gone),
        cmocka_unit_test(test_wire_stepflow_http_back__asks_again),
        cmocka_unit_test(test_wire_stepflow_http_back__ends_with_it),
        cmocka_unit_test(test_wire_stepflow_http_back__alive),
        cmocka_unit_test(test_wire_stepflow_http_back__not_awaited),
        cmocka_unit_test(test_wire_stepflow_http_back__cancelled),
        cmocka_unit_test(test_wire_stepflow_http_back__deadline),
        cmocka_unit_test(test_wire_stepflow_http_back__refused),
        cmocka_unit_test(test_wire_stepflow_http_back__limits),
        cmocka_unit_test(test_wire_stepflow_http_back__slow_reader),
        cmocka_unit_test(test_wire_stepflow_http_back__old_http),
        cmocka_unit_test(test_wire_stepflow_http_back__pipelined),
        cmocka_unit_test(test_wire_stepflow_http_back__draining),
        cmocka_unit_test(test_wire_stepflow_http_back__blob_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
