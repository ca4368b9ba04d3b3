/*
 * tests/unit/bridge/test_cross_loop.c: a call whose upstream lives on another loop, on two simulated executors: what
 * crosses, backpressure both ways, ends; and random orders of events with failing allocations, after which the caller was
 * told one end and all memory is back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/cross_loop.h"
#include "unit/call/world.h"

#define LARGE_SIZE ((size_t)100000)

static world *current; /* the executor whose thread this is now */

static bool is_current(const ew__executor *executor) { return executor == &current->executor; }

static const ew__executor_ops two_ops = {.here = is_current, .wake = world_wake};

typedef struct setting {
    world inbound, outbound; /* the loops of these calls */
    pthread_mutex_t lock;
    ew__loop_upstream upstream;
    unsigned n_frees;
    ew_call *call;                      /* inbound */
    unsigned n_ends, n_chunks, n_rooms; /* of its caller */
    bool chunks_full, owned;
    ew_status status;
    ew_origin origin;
    char text[64];
    ew_call *remote; /* at the upstream */
    unsigned n_opens, n_inputs, n_input_ends, n_cancels, n_room;
    char inputs[256];
    bool input_full, fails;
} setting;

static setting s;

/* ---- the caller ---- */

static ew_err caller_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    s.n_chunks++;
    return s.chunks_full ? EW_FULL : EW_OK;
}

static void caller_end(ew_call *call, const ew__end *end) {
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    s.n_ends++;
    s.status = end->status;
    s.origin = end->origin;
    s.owned = ew__call_owns(call, end->result);
    (void)snprintf(s.text, sizeof s.text, "%.*s", (int)(text.len < 60 ? text.len : 60), text.ptr ? text.ptr : "");
}

static void caller_input_room(ew_call *call) {
    (void)call;
    s.n_rooms++;
}

static const ew__caller_ops caller_ops = {.chunk = caller_chunk, .end = caller_end, .input_room = caller_input_room};

/* ---- the upstream ---- */

static ew_err remote_input(ew_call *call, ew_str chunk) {
    size_t n = strlen(s.inputs);
    (void)call;
    s.n_inputs++;
    (void)snprintf(s.inputs + n, sizeof s.inputs - n, "%.*s,", (int)chunk.len, chunk.ptr);
    return s.input_full ? EW_FULL : EW_OK;
}

static void remote_input_end(ew_call *call) {
    (void)call;
    s.n_input_ends++;
}

static void remote_cancel(ew_call *call, ew__cancel_why why) {
    (void)call;
    (void)why;
    s.n_cancels++;
}

static void remote_room(ew_call *call) {
    (void)call;
    s.n_room++;
}

static const ew__callee_ops remote_ops = {
    .input = remote_input, .input_end = remote_input_end, .cancel = remote_cancel, .room = remote_room};

static void open_remote(ew__loop_upstream *upstream, ew_call *call) {
    assert_ptr_equal(upstream, &s.upstream);
    s.n_opens++;
    call->callee = &remote_ops;
    call->outgoing.begun = !s.fails;
    if (s.fails)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("unreachable"));
    else
        s.remote = call;
}

static void remote_done(ew_str result) {
    ew_call *call = s.remote;
    s.remote = NULL;
    (void)ew__call_done_valid(call, result);
}

static void free_upstream(ew__upstream *upstream) {
    (void)upstream;
    s.n_frees++;
}

/* ---- both ---- */

/* False if there was nothing. */
static bool run(world *w) {
    bool any = false;
    current = w;
    while (ew__executor_run_tasks(&w->executor))
        any = true;
    return any;
}

static void run_all(void) {
    bool more = true;
    while (more) {
        more = run(&s.outbound);
        more = run(&s.inbound) || more;
    }
}

static ew_call *begin(void) {
    memset(&s, 0, sizeof s);
    world_init(&s.inbound, 1);
    world_init(&s.outbound, 2);
    s.inbound.executor.ops = s.outbound.executor.ops = &two_ops;
    pthread_mutex_init(&s.lock, NULL);
    atomic_init(&s.upstream.base.refs, 1);
    s.upstream.base.free = free_upstream;
    s.upstream.executor = &s.outbound.executor;
    s.upstream.open = open_remote;
    s.upstream.lock = &s.lock;
    current = &s.inbound;
    s.call = ew__call_new(&s.inbound.executor, &caller_ops, NULL);
    assert_non_null(s.call);
    s.call->wants_chunks = true;
    return s.call;
}

static void open_call(void) { ew__loop_upstream_open(&s.upstream.base, s.call); }

static void finish(void) {
    run_all();
    current = &s.inbound;
    ew__call_release(s.call);
    run_all();
    assert_int_equal(s.n_ends, 1);
    ew__upstream_unref(&s.upstream.base);
    assert_int_equal(s.n_frees, 1);
    world_done(&s.inbound);
    world_done(&s.outbound);
    pthread_mutex_destroy(&s.lock);
}

static void test_what_crosses(void **state) {
    (void)state;
    ew_call *call = begin();
    call->key = EW_STR("/flow/x");
    call->input = EW_STR("{\"a\":1}");
    call->context = EW_STR("{\"c\":1}");
    call->labels = EW_STR("{\"l\":\"1\"}");
    call->deadline = s.inbound.executor.now + EW__MS(1000);
    call->attempt = 3;
    call->hops = 2;
    open_call();
    assert_int_equal(s.n_opens, 0);
    run_all();
    assert_int_equal(s.n_opens, 1);
    assert_ptr_equal(s.remote->executor, &s.outbound.executor);
    assert_true(ew__str_is(s.remote->key, EW_STR("/flow/x")));
    assert_true(ew__str_is(s.remote->input, call->input) && ew__call_owns(s.remote, s.remote->input));
    assert_true(ew__str_is(s.remote->context, call->context));
    assert_true(ew__str_is(s.remote->labels, call->labels));
    assert_true(s.remote->deadline == call->deadline);
    assert_int_equal(s.remote->attempt, 3);
    assert_int_equal(s.remote->hops, 2);
    assert_true(s.remote->wants_chunks && !s.remote->has_input && s.remote->outgoing.cross_loop);
    assert_memory_equal(s.remote->trace.trace_id, call->trace.trace_id, sizeof call->trace.trace_id);
    s.remote->outgoing.remote_trace_id = EW_STR("abc");
    current = &s.outbound;
    remote_done(EW_STR("\"ok\""));
    assert_int_equal(s.n_ends, 0);
    run_all();
    assert_string_equal(s.text, "\"ok\"");
    assert_true(call->outgoing.begun && ew__str_is(call->outgoing.remote_trace_id, EW_STR("abc")));
    finish();
}

/* A large result is not copied a second time: the inbound call owns it, so that it can be sent from there. */
static void test_large_result(void **state) {
    (void)state;
    char *large = malloc(LARGE_SIZE);
    begin();
    open_call();
    run_all();
    memset(large, '1', LARGE_SIZE);
    current = &s.outbound;
    remote_done(ew__str(large, LARGE_SIZE));
    run_all();
    assert_int_equal(s.status, EW_STATUS_OK);
    assert_true(s.owned);
    free(large);
    finish();
}

static void test_same_loop(void **state) {
    (void)state;
    begin();
    s.upstream.executor = &s.inbound.executor;
    open_call();
    assert_ptr_equal(s.remote, s.call);
    remote_done(EW_STR("1"));
    finish();
}

/* The upstream has gone, or cannot be reached: another one may get the call. */
static void test_not_begun(void **state) {
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        begin();
        s.upstream.gone = gone;
        s.fails = true;
        open_call();
        run_all();
        assert_int_equal(s.n_opens, !gone);
        assert_int_equal(s.status, EW_STATUS_UNAVAILABLE);
        assert_int_equal(s.origin, EW_ORIGIN_CONNECT);
        assert_false(s.call->outgoing.begun);
        finish();
    }
}

static void test_chunks_and_room(void **state) {
    (void)state;
    begin();
    open_call();
    run_all();
    current = &s.outbound;
    assert_int_equal(ew__call_chunk_valid(s.remote, EW_STR("1")), EW_OK);
    s.chunks_full = true;
    run_all();
    assert_int_equal(s.n_chunks, 1);
    current = &s.outbound;
    assert_int_equal(ew__call_chunk_valid(s.remote, EW_STR("2")), EW_FULL); /* taken */
    run_all();
    assert_int_equal(s.n_chunks, 2);
    assert_int_equal(s.n_room, 0);
    s.chunks_full = false;
    current = &s.inbound;
    ew__call_room(s.call);
    run_all();
    assert_int_equal(s.n_room, 1);
    current = &s.outbound;
    assert_int_equal(ew__call_chunk_valid(s.remote, EW_STR("3")), EW_OK);
    remote_done(EW_STR("4"));
    run_all();
    assert_int_equal(s.n_chunks, 3);
    finish();
}

/* Input waits until the upstream takes it, stays in order, and its end comes last. */
static void test_input(void **state) {
    (void)state;
    ew_call *call = begin();
    call->has_input = call->input_full = true;
    open_call();
    run_all();
    assert_true(s.remote->input_full);
    assert_int_equal(s.n_rooms, 0);
    current = &s.outbound;
    ew__call_input_room(s.remote);
    run_all();
    assert_int_equal(s.n_rooms, 1);
    s.input_full = true;
    current = &s.inbound;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ew__call_input(call, i == 0 ? EW_STR("1") : i == 1 ? EW_STR("2") : EW_STR("3")), EW_OK);
    ew__call_input_end(call);
    run_all();
    assert_string_equal(s.inputs, "1,");
    assert_int_equal(s.n_input_ends, 0);
    s.input_full = false;
    current = &s.outbound;
    ew__call_input_room(s.remote);
    assert_string_equal(s.inputs, "1,2,3,");
    assert_int_equal(s.n_input_ends, 1);
    remote_done(EW_STR("1"));
    finish();
}

/* A sender that is asked to wait is told when half of what is under way has been taken. */
static void test_input_stalls(void **state) {
    (void)state;
    ew_call *call = begin();
    size_t size = (size_t)s.inbound.limits.in_queue_bytes / 2 + 1;
    char *chunk = malloc(size);
    memset(chunk, '1', size);
    call->has_input = true;
    open_call();
    run_all();
    current = &s.outbound;
    ew__call_input_room(s.remote);
    run_all();
    assert_int_equal(ew__call_input(call, ew__str(chunk, size)), EW_OK);
    assert_int_equal(ew__call_input(call, ew__str(chunk, size)), EW_FULL);
    assert_int_equal(s.n_rooms, 0);
    run_all();
    assert_int_equal(s.n_inputs, 2);
    assert_int_equal(s.n_rooms, 1);
    current = &s.outbound;
    remote_done(EW_STR("1"));
    run_all();
    free(chunk);
    finish();
}

/* The outbound call ends and the inbound side does not know yet: what it sends is dropped. */
static void test_late_events(void **state) {
    (void)state;
    ew_call *call = begin();
    call->has_input = true;
    open_call();
    (void)run(&s.outbound);
    ew__call_input_room(s.remote);
    (void)run(&s.inbound);
    (void)ew__call_input(call, EW_STR("1")); /* under way */
    current = &s.outbound;
    remote_done(EW_STR("1"));
    current = &s.inbound;
    assert_int_equal(ew__call_input(call, EW_STR("2")), EW_OK);
    ew__call_input_end(call);
    ew__call_cancel(call, EW__CANCEL_ASKED);
    run_all();
    assert_int_equal(s.n_inputs + s.n_input_ends + s.n_cancels, 0);
    finish();
}

static void test_deadline(void **state) {
    (void)state;
    ew_call *call = begin();
    call->deadline = s.inbound.executor.now + EW__MS(50);
    open_call();
    run_all();
    current = &s.inbound;
    world_advance(&s.inbound, 60);
    assert_int_equal(s.n_ends, 1);
    assert_int_equal(s.origin, EW_ORIGIN_DEADLINE);
    run_all();
    assert_int_equal(s.n_cancels, 1);
    current = &s.outbound;
    remote_done(EW_STR("1"));
    finish();
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void act_inbound(uint32_t what) {
    current = &s.inbound;
    switch (what % 5) {
    case 0:
        (void)ew__call_input(s.call, EW_STR("1"));
        break;
    case 1:
        ew__call_room(s.call);
        break;
    case 2:
        if (what & 2048)
            ew__call_input_end(s.call);
        break;
    case 3:
        if (what & 4096)
            ew__call_cancel(s.call, EW__CANCEL_ASKED);
        break;
    default:
        (void)run(&s.inbound);
    }
}

static void act_outbound(uint32_t what) {
    current = &s.outbound;
    if (what % 4 == 0 || !s.remote)
        (void)run(&s.outbound);
    else if (what % 4 == 1)
        (void)ew__call_chunk_valid(s.remote, EW_STR("1"));
    else if (what % 4 == 2)
        ew__call_input_room(s.remote);
    else if ((what & 12288) == 0)
        remote_done(EW_STR("1"));
}

static void test_any_order(void **state) {
    (void)state;
    for (uint32_t i = 1; i <= 3000; i++) {
        uint32_t seed = i;
        begin()->has_input = true;
        ew__test_env_fail_at(&s.inbound.env, i % 7 == 0 ? i % 5 + 1 : 0, false);
        ew__test_env_fail_at(&s.outbound.env, i % 11 == 0 ? i % 5 + 1 : 0, false);
        open_call();
        for (int n = 0; n < 60; n++) {
            uint32_t what = next_random(&seed);
            s.chunks_full = (what & 64) != 0;
            s.input_full = (what & 128) != 0;
            if (what & 256)
                act_inbound(what >> 9);
            else
                act_outbound(what >> 9);
        }
        ew__test_env_fail_at(&s.inbound.env, 0, false);
        ew__test_env_fail_at(&s.outbound.env, 0, false);
        run_all();
        current = &s.outbound;
        if (s.remote)
            remote_done(EW_STR("1"));
        finish();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_crosses), cmocka_unit_test(test_large_result),    cmocka_unit_test(test_same_loop),
        cmocka_unit_test(test_not_begun),    cmocka_unit_test(test_chunks_and_room), cmocka_unit_test(test_input),
        cmocka_unit_test(test_input_stalls), cmocka_unit_test(test_late_events),     cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
