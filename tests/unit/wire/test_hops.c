/*
 * tests/unit/wire/test_hops.c: how many everywires a call has crossed, as the codecs write and read it. What is written
 * is seen by the peers that may see it only; nothing is written for none. (How it gets from end to end: tests/contract;
 * the jsonrpc wire's query: test_jsonrpc_codec.c.) Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/hops.h"
#include "unit/wire/stepflow_texts.h"
#include "wire/http/codec.h"
#include "wire/reflection/codec.h"
#include "wire/rrq/codec.h"

static void test_wire_hops__read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned hops;
    } rows[] = {{"", 0},
                {"0", 0},
                {"1", 1},
                {"007", 7},
                {"254", 254},
                {"255", 255},
                {"256", 255},
                {"999", 255},
                {"1000", 255},
                {"2550", 255},
                {"4294967296", 255},
                {"18446744073709551616", 255},
                {"99999999999999999999999999999999999999999999", 255},
                {"-1", 0},
                {"+1", 0},
                {"1.0", 0},
                {"1e2", 0},
                {" 1", 0},
                {"1 ", 0},
                {"0x10", 0},
                {"99999999999999999999x", 0},
                {"\"1\"", 0},
                {"null", 0},
                {"/", 0},
                {":", 0}};
    for (size_t i = 0; i < N_OF(rows); i++)
        if (ew__hops_read(ew_str_from(rows[i].text)) != rows[i].hops)
            fail_msg("%s: %u", rows[i].text, ew__hops_read(ew_str_from(rows[i].text)));
    assert_int_equal(ew__hops_read(ew__str(NULL, 0)), 0);
}

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

static ew_call *new_call(world *w, uint8_t hops) {
    ew_call *call = ew__call_new(&w->r.side[RIG_CLIENT].executor, &nobody, NULL);
    assert_non_null(call);
    call->key = EW_STR("/e");
    call->input = EW_STR("1");
    call->hops = hops;
    ew__trace_new(&call->trace, &call->executor->rng);
    return call;
}

/* ---- http ---- */

static void check_http(world *w, ew__call_kind kind, uint8_t hops, const char *expected) {
    static const ew__site site = {.authority = {"h", 1}};
    char text[1000];
    ew__out out;
    ew__out_vec vec[1];
    ew_call *call = new_call(w, hops);
    call->kind = (uint8_t)kind;
    ew__out_init(&out, &call->executor->blocks);
    ew__http_write_request(&out, &site, call, 0);
    assert_int_equal(ew__out_peek(&out, vec, 1), 1);
    (void)snprintf(text, sizeof text, "%.*s", (int)vec[0].len, (const char *)vec[0].ptr);
    ew__out_done(&out);
    ew__call_release(call);
    const char *found = strstr(text, "hops");
    assert_int_equal(found != NULL, expected[0] != '\0');
    if (found && !strstr(text, expected))
        fail_msg("%s", text);
}

static void test_wire_hops__http(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    check_http(&w, EW__CALL_RUN, 0, "");
    check_http(&w, EW__CALL_RUN, 1, "\r\nx-everywire-hops: 1\r\n");
    check_http(&w, EW__CALL_RUN, 255, "\r\nx-everywire-hops: 255\r\n");
    check_http(&w, EW__CALL_LIST, 7, "\r\nx-everywire-hops: 7\r\n");
    world_done(&w);
}

/* ---- stepflow ---- */

static void check_execute(world *w, uint8_t hops, bool everywire, const char *end) {
    char *want = quoted(end);
    ew_call *call = new_call(w, hops);
    const ew_env *env = call->executor->env;
    ew__sf_request request;
    assert_int_equal(ew__sf_write_request(&request, env, call, EW_STR("1"), false, everywire), EW_OK);
    ew_str head = request.head, tail = request.tail;
    size_t n = strlen(want);
    assert_true(tail.len > n);
    if (memcmp(tail.ptr + tail.len - n, want, n) != 0 || memmem(head.ptr, head.len, "Hops", 4))
        fail_msg("%.*s", (int)tail.len, tail.ptr);
    ew__sf_request_done(&request, env);
    free(want);
    ew__call_release(call);
}

static void test_wire_hops__stepflow(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    check_execute(&w, 0, true, "'step_id':'call'}}}");
    check_execute(&w, 0, false, "'step_id':'call'}}}");
    check_execute(&w, 9, false, "'step_id':'call'}}}"); /* somebody else's server */
    check_execute(&w, 9, true, "'step_id':'call'},'everywireHops':9}}");
    check_execute(&w, 255, true, "'step_id':'call'},'everywireHops':255}}");
    static const struct {
        const char *params;
        unsigned hops;
    } rows[] = {{"{'component':'/e'}", 0},
                {"{'component':'/e','everywireHops':9}", 9},
                {"{'everywireHops':300,'component':'/e'}", 255},
                {"{'component':'/e','everywireHops':'9'}", 0},
                {"{'component':'/e','everywireHops':[9]}", 0},
                {"{'component':'/e','input':{'everywireHops':9},'observability':{'everywireHops':9}}", 0},
                {"{'component':'/e','everywire\\u0048ops':9}", 9}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        char buf[20], *text = quoted(rows[i].params);
        ew__json_doc doc;
        ew__sf_run run;
        ew_call *call = new_call(&w, 77);
        assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
        assert_null(ew__sf_read_run(&doc, doc.root, buf, sizeof buf, &run));
        assert_int_equal(run.hops, rows[i].hops);
        assert_int_equal(ew__sf_fill_call(call, &run, true), EW_OK);
        assert_int_equal(call->hops, rows[i].hops);
        ew__call_release(call);
        free(text);
    }
    world_done(&w);
}

/* ---- rrq ---- */

static void check_ask(const ew__rrq_ask *ask, const char *trace, unsigned hops) {
    char text[2000], *want = quoted(trace);
    ew__buf head = fresh(), tail = fresh();
    ew__rrq_request known, other;
    ew__rrq_message m;
    assert_int_equal(ew__rrq_write_request(&head, &tail, ask), EW_OK);
    int n = snprintf(text, sizeof text, "%.*s{}%.*s", (int)head.len, head.ptr, (int)tail.len, tail.ptr);
    assert_int_equal(strstr(text, "trace_context") != NULL, want[0] != '\0');
    if (!strstr(text, want))
        fail_msg("%s", text);
    assert_null(ew__rrq_read(ew__str(text, (size_t)n), &m));
    assert_null(ew__rrq_read_request(&m, &other));
    assert_int_equal(other.hops, hops);
    assert_true(ew__rrq_read_known(ew__str(text, (size_t)n), &known)); /* ours is always read quickly */
    assert_int_equal(known.hops, hops);
    ew__buf_done(&head);
    ew__buf_done(&tail);
    free(want);
}

/* The map is made where there is none. */
static void test_wire_hops__rrq(void **state) {
    (void)state;
    ew__rrq_ask ask = {.ids = {{"\"r\"", 3}, {"\"j\"", 3}}, .function = EW_STR("f"), .now_ms = 1700000001000};
    check_ask(&ask, "", 0);
    ask.hops = 4;
    check_ask(&ask, ",'trace_context':{'everywire-hops':'4'},", 4);
    ask.tracestate = EW_STR("a=1"); /* of no trace */
    check_ask(&ask, ",'trace_context':{'everywire-hops':'4'},", 4);
    ask.traceparent = EW_STR("00-p");
    check_ask(&ask, ",'trace_context':{'traceparent':'00-p','tracestate':'a=1','everywire-hops':'4'},", 4);
    ask.tracestate = ew__str(NULL, 0);
    ask.hops = 255;
    ask.labels = EW_STR("{\"everywire-hops\":\"1\"}"); /* somebody's label */
    check_ask(&ask, ",'trace_context':{'traceparent':'00-p','everywire-hops':'255'},", 255);
    ask.hops = 0;
    check_ask(&ask, ",'trace_context':{'traceparent':'00-p'},", 0);
}

/* ---- reflection ---- */

static void test_wire_hops__reflection(void **state) {
    (void)state;
    static const struct {
        const char *params;
        unsigned hops;
    } rows[] = {{"{'key':'k'}", 0},
                {"{'key':'k','everywireHops':9}", 9},
                {"{'key':'k','everywireHops':12345}", 255},
                {"{'key':'k','everywireHops':'9'}", 0},
                {"{'key':'k','everywireHops':-9}", 0},
                {"{'key':'k','everywireHops':true}", 0},
                {"{'key':'k','input':{'everywireHops':9},'context':{'everywireHops':9}}", 0}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        char *text = quoted(rows[i].params);
        ew__json_doc doc;
        ew__rf_run run;
        memset(&run, 0x55, sizeof run);
        assert_int_equal(ew__json_parse(&doc, ew_str_from(text)), EW_OK);
        assert_null(ew__rf_read_run(&doc, doc.root, &run));
        assert_int_equal(run.hops, rows[i].hops);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_hops__read),       cmocka_unit_test(test_wire_hops__http),
        cmocka_unit_test(test_wire_hops__stepflow),   cmocka_unit_test(test_wire_hops__rrq),
        cmocka_unit_test(test_wire_hops__reflection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
