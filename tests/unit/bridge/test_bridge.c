/*
 * tests/unit/bridge/test_bridge.c: the bridge between two scripted ends: every event in both directions.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/bridge/world.h"

/* ---- what crosses ---- */

static void test_what_crosses(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    ew_call *inbound = make(&s);
    inbound->input = EW_STR("{\"big\":12345678901234567890}");
    inbound->context = EW_STR("{\"user\":1}");
    inbound->labels = EW_STR("{\"a\":\"b\"}");
    inbound->deadline = s.w.executor.now + EW__MS(500);
    inbound->attempt = 3;
    inbound->hops = 2;
    open_inbound(&s);
    ew_call *outbound = upstreams[0].call;
    assert_non_null(outbound);
    assert_true(ew__str_is(outbound->key, EW_STR("/flow/a")));
    assert_ptr_equal(outbound->input.ptr, inbound->input.ptr); /* the very bytes */
    assert_ptr_equal(outbound->context.ptr, inbound->context.ptr);
    assert_ptr_equal(outbound->labels.ptr, inbound->labels.ptr);
    assert_int_equal(outbound->deadline, inbound->deadline);
    assert_int_equal(outbound->attempt, 3);
    assert_int_equal(outbound->hops, 3);
    assert_true(outbound->wants_chunks);
    assert_int_equal(atomic_load(&upstreams[0].base.calls), 1);
    assert_int_equal(ew__call_chunk_valid(outbound, EW_STR("1")), EW_OK);
    assert_int_equal(caller.n_chunks, 1);
    upstream_done(&upstreams[0], EW_STR("\"good\""));
    assert_int_equal(caller.n_ends, 1);
    assert_int_equal(caller.status, EW_STATUS_OK);
    assert_string_equal(caller.text, "\"good\"");
    finish(&s, 1);
}

static void test_a_fault_crosses(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_inbound(&s);
    ew_call *call = upstreams[0].call;
    ew_fault fault = {.status = EW_STATUS_ABORTED,
                      .message = EW_STR("no"),
                      .details = EW_STR("{\"x\":1}"),
                      .retryable = true,
                      .retry_after_ms = 1500};
    assert_int_equal(ew_call_fail_with(call, &fault), EW_OK);
    assert_int_equal(caller.status, EW_STATUS_ABORTED);
    assert_string_equal(caller.text, "no");
    assert_int_equal(caller.fault.retry_after_ms, 1500);
    assert_true(caller.fault.retryable);
    finish(&s, 1);
}

/* Only callers on this machine see the stack traces of upstreams, unless the executor says otherwise. */
static void test_stack_traces(void **state) {
    (void)state;
    static const char with[] = "{\"stack\":\"Error\\n at x\",\"traceId\":\"1\"}", without[] = "{\"traceId\":\"1\"}";
    static const ew__who remote = {.kind = EW__WHO_TOKEN, .accepted = true}, local = {.local = true};
    static const struct {
        ew_stack_traces policy;
        const ew__who *who;
        const char *details;
    } rows[] = {{EW_STACK_TRACES_LOCAL, &local, with},
                {EW_STACK_TRACES_LOCAL, &remote, without},
                {EW_STACK_TRACES_LOCAL, NULL, without},
                {EW_STACK_TRACES_ALL, &remote, with},
                {EW_STACK_TRACES_NONE, &local, without}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setting s;
        begin(&s, 1);
        s.w.executor.calls->stack_traces = (uint8_t)rows[i].policy;
        make(&s)->served.who = rows[i].who;
        open_inbound(&s);
        caller.call->served.who = NULL; /* it is valid until the call is opened */
        ew_fault fault = {.status = EW_STATUS_ABORTED, .message = EW_STR("no"), .details = ew_str_from(with)};
        assert_int_equal(ew_call_fail_with(upstreams[0].call, &fault), EW_OK);
        assert_string_equal(caller.text, "no");
        assert_string_equal(caller.details, rows[i].details);
        finish(&s, 1);
    }
}

/* The child's trace, where the wire carries one; nothing is made where nobody wants it. */
static void test_trace(void **state) {
    (void)state;
    setting s;
    for (int traces = 0; traces < 2; traces++) {
        begin(&s, 1);
        upstreams[0].base.traces = traces != 0;
        ew_call *inbound = make(&s);
        open_inbound(&s);
        assert_int_equal(upstreams[0].call->trace.trace_id[0] != 0, traces != 0);
        if (traces) {
            assert_memory_equal(upstreams[0].call->trace.trace_id, inbound->trace.trace_id, 32);
            assert_memory_equal(upstreams[0].call->trace.span_id, inbound->trace.span_id, 16);
        }
        upstream_done(&upstreams[0], EW_STR("1"));
        finish(&s, 1);
    }
    ew__observer spans = {.spans = true};
    begin(&s, 1);
    s.w.executor.calls->observer = &spans;
    ew_call *inbound = make(&s);
    open_inbound(&s);
    assert_memory_equal(upstreams[0].call->trace.trace_id, inbound->trace.trace_id, 32);
    assert_memory_equal(upstreams[0].call->trace.parent_id, inbound->trace.span_id, 16);
    assert_memory_not_equal(upstreams[0].call->trace.span_id, inbound->trace.span_id, 16);
    assert_true(ew__str_is(upstreams[0].call->outgoing.trace_path, EW_STR("/{x,t:flow}")));
    upstream_done(&upstreams[0], EW_STR("1"));
    s.w.executor.calls->observer = NULL;
    finish(&s, 1);
}

static const char *refuses_extras(const ew_request_options *options) {
    if (options->input_stream)
        return "no input streams";
    if (options->input.ptr[0] != '{')
        return "objects only";
    return options->labels.len ? "no labels" : NULL;
}

static void test_what_a_wire_cannot_carry(void **state) {
    (void)state;
    setting s;
    for (int way = 0; way < 3; way++) {
        begin(&s, 1);
        upstreams[0].base.refuses = refuses_extras;
        ew_call *inbound = make(&s);
        inbound->input = way == 1 ? EW_STR("5") : EW_STR("{}");
        inbound->has_input = way == 2;
        inbound->context = EW_STR("{\"c\":1}");
        inbound->labels = EW_STR("{\"l\":\"1\"}");
        open_inbound(&s);
        if (way == 0) {
            assert_int_equal(upstreams[0].call->context.len, 7);
            assert_int_equal(upstreams[0].call->labels.len, 0); /* left behind */
            upstream_done(&upstreams[0], EW_STR("1"));
        } else {
            assert_int_equal(upstreams[0].n_opens, 0);
            assert_int_equal(caller.status, way == 1 ? EW_STATUS_INVALID_ARGUMENT : EW_STATUS_UNIMPLEMENTED);
            assert_string_equal(caller.text, way == 1 ? "objects only" : "no input streams");
        }
        finish(&s, 1);
    }
}

static void test_hops_end(void **state) {
    (void)state;
    setting s;
    for (int here = 0; here < 2; here++) {
        begin(&s, 1);
        upstreams[0].base.terminal = here != 0;
        make(&s)->hops = EW__HOPS_MAX;
        open_inbound(&s);
        assert_int_equal(upstreams[0].n_opens, here);
        if (here)
            upstream_done(&upstreams[0], EW_STR("1"));
        assert_int_equal(caller.status, here ? EW_STATUS_OK : EW_STATUS_FAILED_PRECONDITION);
        finish(&s, 1);
        begin(&s, 1);
        make(&s)->hops = EW__HOPS_MAX - 1;
        open_inbound(&s);
        assert_int_equal(upstreams[0].call->hops, EW__HOPS_MAX);
        upstream_done(&upstreams[0], EW_STR("1"));
        finish(&s, 1);
    }
}

/* A large payload is sent from where it lies, and stays until it has left. */
static void test_large_payloads_are_lent(void **state) {
    (void)state;
    setting s;
    const size_t size = (size_t)64 * 1024;
    ew__out out;
    begin(&s, 1);
    ew__out_init(&out, &s.w.executor.blocks);
    ew_call *inbound = make(&s);
    char *input = ew__arena_alloc(&inbound->arena, size);
    memset(input, '1', size);
    inbound->input = ew__str(input, size);
    open_inbound(&s);
    ew_call *outbound = upstreams[0].call;
    ew__call_write(outbound, &out, outbound->input);
    assert_int_equal(out.bytes, size);
    assert_true(atomic_load(&inbound->refs) >= 3); /* the caller's, the callee's, the bridge's, and the queue's */
    unsigned before = atomic_load(&inbound->refs);
    ew__out_consume(&out, size);
    assert_int_equal(atomic_load(&inbound->refs), before - 1);
    upstream_done(&upstreams[0], EW_STR("1"));
    ew__out_done(&out);
    finish(&s, 1);
}

/* ---- streams ---- */

static void test_back_pressure_of_chunks(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_inbound(&s);
    caller.full = true;
    assert_int_equal(ew__call_chunk_valid(upstreams[0].call, EW_STR("1")), EW_FULL);
    assert_int_equal(upstreams[0].n_rooms, 0);
    caller.full = false;
    ew__call_room(caller.call);
    assert_int_equal(upstreams[0].n_rooms, 1);
    assert_int_equal(ew__call_chunk_valid(upstreams[0].call, EW_STR("2")), EW_OK);
    assert_int_equal(caller.n_chunks, 2);
    upstream_done(&upstreams[0], EW_STR("3"));
    finish(&s, 1);
}

/* The reader's buffer is full: both calls are over for their callers, and the upstream is cancelled. */
static void test_a_lost_chunk(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_inbound(&s);
    caller.chunk_error = EW_ELIMIT;
    assert_int_equal(ew__call_chunk_valid(upstreams[0].call, EW_STR("1")), EW_ELIMIT);
    assert_int_equal(caller.n_ends, 1);
    assert_int_equal(caller.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(upstreams[0].n_cancels, 1);
    upstream_fail(&upstreams[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(caller.n_ends, 1);
    finish(&s, 1);
}

static void test_input_waits_for_the_upstream(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->has_input = true;
    open_inbound(&s);
    ew_call *inbound = caller.call, *outbound = upstreams[0].call;
    assert_true(outbound->input_full); /* until its wire says that it takes some */
    assert_int_equal(ew__call_input(inbound, EW_STR("1")), EW_OK);
    assert_int_equal(ew__call_input(inbound, EW_STR("2")), EW_OK);
    assert_int_equal(upstreams[0].n_inputs, 0);
    ew__call_input_room(outbound);
    assert_string_equal(upstreams[0].inputs, "1,2,");
    upstreams[0].input_full = true;
    assert_int_equal(ew__call_input(inbound, EW_STR("3")), EW_FULL);
    assert_int_equal(ew__call_input(inbound, EW_STR("4")), EW_OK); /* kept */
    ew__call_input_end(inbound);
    assert_int_equal(upstreams[0].n_input_ends, 0);
    assert_string_equal(upstreams[0].inputs, "1,2,3,");
    upstreams[0].input_full = false;
    ew__call_input_room(outbound);
    assert_string_equal(upstreams[0].inputs, "1,2,3,4,");
    assert_int_equal(upstreams[0].n_input_ends, 1);
    assert_int_equal(caller.n_rooms, 1);
    upstream_done(&upstreams[0], EW_STR("10"));
    finish(&s, 1);
}

/* ... also one that was passed on at once, and filled the upstream. */
static void test_input_goes_on(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->has_input = true;
    open_inbound(&s);
    ew__call_input_room(upstreams[0].call);
    upstreams[0].input_full = true;
    assert_int_equal(ew__call_input(caller.call, EW_STR("1")), EW_FULL);
    assert_int_equal(caller.n_rooms, 0);
    upstreams[0].input_full = false;
    ew__call_input_room(upstreams[0].call);
    assert_int_equal(caller.n_rooms, 1);
    assert_int_equal(ew__call_input(caller.call, EW_STR("2")), EW_OK);
    assert_string_equal(upstreams[0].inputs, "1,2,");
    upstream_done(&upstreams[0], EW_STR("3"));
    finish(&s, 1);
}

static void test_input_is_bounded(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->has_input = true;
    open_inbound(&s);
    ew_err err = EW_OK;
    unsigned n = 0;
    while (err == EW_OK && n < 10000) {
        err = ew__call_input(caller.call, EW_STR("1"));
        n++;
    }
    assert_int_equal(err, EW_FULL);
    assert_int_equal(n, s.w.limits.in_queue_items);
    ew__call_input_room(upstreams[0].call);
    assert_int_equal(upstreams[0].n_inputs, n);
    assert_int_equal(caller.n_rooms, 1);
    ew__call_input_end(caller.call);
    assert_int_equal(upstreams[0].n_input_ends, 1);
    upstream_done(&upstreams[0], EW_STR("1"));
    finish(&s, 1);
}

/* ---- ends ---- */

static void test_cancel(void **state) {
    (void)state;
    static const ew__cancel_why whys[] = {EW__CANCEL_ASKED, EW__CANCEL_GONE, EW__CANCEL_SHUTDOWN};
    setting s;
    for (size_t i = 0; i < sizeof whys / sizeof *whys; i++) {
        begin(&s, 1);
        make(&s);
        open_inbound(&s);
        ew__call_cancel(caller.call, whys[i]);
        assert_int_equal(upstreams[0].n_cancels, 1);
        assert_int_equal(upstreams[0].why, whys[i]);
        assert_int_equal(caller.n_ends, 0); /* it still ends once */
        upstream_fail(&upstreams[0], EW_STATUS_CANCELLED, "stopped");
        assert_int_equal(caller.n_ends, 1);
        assert_int_equal(caller.status, EW_STATUS_CANCELLED);
        finish(&s, 1);
    }
}

static void test_the_caller_goes(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_inbound(&s);
    ew__call_release(caller.call);
    caller.call = NULL;
    assert_int_equal(upstreams[0].n_cancels, 1);
    assert_int_equal(ew__call_chunk_valid(upstreams[0].call, EW_STR("1")), EW_OK); /* late: nobody listens */
    upstream_done(&upstreams[0], EW_STR("1"));
    assert_int_equal(caller.n_ends, 0);
    finish(&s, 1);
}

/* ... and the upstream ends inside of the cancel: what is left of the bridged call goes with the inbound call. */
static void test_the_caller_goes_and_all_ends(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    upstreams[0].ends = true;
    make(&s);
    open_inbound(&s);
    ew__call_release(caller.call);
    caller.call = NULL;
    assert_int_equal(upstreams[0].n_cancels, 1);
    assert_null(upstreams[0].call);
    assert_int_equal(caller.n_ends, 0);
    finish(&s, 1);
}

/* ... while a chunk is being given to it. */
static void test_the_caller_goes_in_a_chunk(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_inbound(&s);
    caller.goes = true;
    assert_int_equal(ew__call_chunk_valid(upstreams[0].call, EW_STR("1")), EW_ECANCELLED);
    assert_int_equal(upstreams[0].n_cancels, 1);
    upstream_fail(&upstreams[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(caller.n_ends, 0);
    finish(&s, 1);
}

static void test_deadline(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->deadline = s.w.executor.now + EW__MS(100);
    open_inbound(&s);
    world_advance(&s.w, 101);
    assert_int_equal(caller.n_ends, 1);
    assert_int_equal(caller.status, EW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(upstreams[0].n_cancels, 1);
    upstream_fail(&upstreams[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(caller.n_ends, 1);
    finish(&s, 1);
}

/* The upstream keeps the outbound call after the deadline; the inbound one's caller has let go of it. */
static void test_deadline_and_late_upstream(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    ew_call *inbound = make(&s);
    assert_int_equal(ew__arena_str(&inbound->arena, EW_STR("{\"kept\":1}"), &inbound->input), EW_OK);
    inbound->deadline = s.w.executor.now + EW__MS(100);
    open_inbound(&s);
    world_advance(&s.w, 101);
    assert_int_equal(caller.n_ends, 1);
    ew__call_release(caller.call);
    caller.call = NULL;
    ew_call *other = ew__call_new(&s.w.executor, &caller_ops, NULL); /* takes memory that was given back */
    assert_non_null(other);
    void *memory = ew__arena_alloc(&other->arena, 32);
    assert_non_null(memory);
    memset(memory, 'x', 32);
    assert_true(ew__str_is(upstreams[0].call->input, EW_STR("{\"kept\":1}")));
    assert_true(ew__str_is(upstreams[0].call->key, EW_STR("/flow/a")));
    ew_call_unref(other);
    upstream_fail(&upstreams[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(caller.n_ends, 1);
    finish(&s, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_crosses),
        cmocka_unit_test(test_deadline_and_late_upstream),
        cmocka_unit_test(test_a_fault_crosses),
        cmocka_unit_test(test_stack_traces),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_what_a_wire_cannot_carry),
        cmocka_unit_test(test_hops_end),
        cmocka_unit_test(test_large_payloads_are_lent),
        cmocka_unit_test(test_back_pressure_of_chunks),
        cmocka_unit_test(test_a_lost_chunk),
        cmocka_unit_test(test_input_waits_for_the_upstream),
        cmocka_unit_test(test_input_goes_on),
        cmocka_unit_test(test_input_is_bounded),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_the_caller_goes),
        cmocka_unit_test(test_the_caller_goes_and_all_ends),
        cmocka_unit_test(test_the_caller_goes_in_a_chunk),
        cmocka_unit_test(test_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
