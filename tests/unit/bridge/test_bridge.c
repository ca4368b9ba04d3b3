/*
 * tests/unit/bridge/test_bridge.c: the bridge between two scripted ends: every event in both directions, who gets a call
 * that one peer could not have, and random orders of events, after which each side must have ended once and everything
 * be back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/bridge.h"
#include "base/out.h"
#include "unit/call/world.h"

#define N_FARS 3

/* The near caller's side. */
typedef struct near_side {
    ew_call *call;
    unsigned n_ends, n_chunks, n_rooms;
    ew_status status;
    ew_origin origin;
    char text[256]; /* result or message */
    ew_fault fault;
    bool full;
    bool goes; /* at the next chunk */
    ew_err chunk_error;
} near_side;

/* The far callee's side: one of those that a bridge has. */
typedef struct far_side {
    ew__far far;
    ew_call *call; /* that is open now */
    unsigned n_opens, n_inputs, n_input_ends, n_cancels, n_rooms, n_frees;
    ew__cancel_why why;
    char inputs[256];
    bool input_full;
    bool unreachable; /* every call ends at once, and was never sent */
    bool loses;       /* every call is lost at once after it was sent */
    bool ends;        /* as soon as it is told to stop */
} far_side;

static near_side near_one;
static far_side fars[N_FARS];

/* ---- near ---- */

static ew_err near_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    if (near_one.chunk_error)
        return near_one.chunk_error;
    near_one.n_chunks++;
    if (near_one.goes) {
        ew__call_release(near_one.call);
        near_one.call = NULL;
    }
    return near_one.full ? EW_FULL : EW_OK;
}

static void near_end(ew_call *call, const ew__end *end) {
    (void)call;
    ew_str said = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    near_one.n_ends++;
    near_one.status = end->status;
    near_one.origin = end->origin;
    near_one.fault = end->fault;
    (void)snprintf(near_one.text, sizeof near_one.text, "%.*s", (int)said.len, said.ptr ? said.ptr : "");
}

static void near_input_room(ew_call *call) {
    (void)call;
    near_one.n_rooms++;
}

static const ew__caller_ops near_ops = {.chunk = near_chunk, .end = near_end, .input_room = near_input_room};

/* ---- far ---- */

static void far_fail(far_side *f, ew_status status, const char *message) {
    ew_call *call = f->call;
    f->call = NULL;
    (void)ew_call_fail(call, status, message);
}

static ew_err far_input(ew_call *call, ew_str chunk) {
    far_side *f = call->callee_ud;
    size_t n = strlen(f->inputs);
    f->n_inputs++;
    (void)snprintf(f->inputs + n, sizeof f->inputs - n, "%.*s,", (int)chunk.len, chunk.ptr);
    return f->input_full ? EW_FULL : EW_OK;
}

static void far_input_end(ew_call *call) { ((far_side *)call->callee_ud)->n_input_ends++; }

static void far_cancel(ew_call *call, ew__cancel_why why) {
    far_side *f = call->callee_ud;
    f->n_cancels++;
    f->why = why;
    if (f->ends)
        far_fail(f, EW_STATUS_CANCELLED, "stopped");
}

static void far_room(ew_call *call) { ((far_side *)call->callee_ud)->n_rooms++; }

static void far_open(ew_call *call) {
    far_side *f = call->callee_ud;
    f->n_opens++;
    f->call = call;
    call->begun = !f->unreachable;
    if (f->unreachable || f->loses) {
        f->call = NULL;
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         f->loses ? EW_STR("lost") : EW_STR("nobody there"));
    }
}

static const ew__callee_ops far_ops = {
    .open = far_open, .input = far_input, .input_end = far_input_end, .cancel = far_cancel, .room = far_room};

static void open_far(ew__far *far, ew_call *call) {
    ew__call_open_on(call, &far_ops, ew__container_of(far, far_side, far));
}

static void free_far(ew__far *far) { ew__container_of(far, far_side, far)->n_frees++; }

static void far_done(far_side *f, ew_str result) {
    ew_call *call = f->call;
    f->call = NULL;
    (void)ew__call_done_valid(call, result);
}

/* ---- both ---- */

typedef struct setting {
    world w;
    ew__bridge *bridge;
    ew__action *action;
} setting;

static void begin(setting *s, uint32_t n) {
    ew__far *list[N_FARS];
    ew_str names[N_FARS] = {EW_STR("/flow/a"), EW_STR("b"), EW_STR("c")};
    world_init(&s->w, 1);
    memset(&near_one, 0, sizeof near_one);
    memset(fars, 0, sizeof fars);
    for (uint32_t i = 0; i < n; i++) {
        atomic_init(&fars[i].far.refs, 1);
        fars[i].far.open = open_far;
        fars[i].far.free = free_far;
        list[i] = &fars[i].far;
    }
    s->bridge = ew__bridge_new(s->w.home.env, list, names, n);
    assert_non_null(s->bridge);
    assert_int_equal(ew__action_new_remote(s->w.home.env, EW_STR("peer"), EW_STR("/flow/x"), EW_STR("{}"),
                                           &ew__bridge_callee, s->bridge, ew__bridge_drop, &s->action),
                     EW_OK);
}

static ew_call *make(setting *s) {
    near_one.call = ew__call_new(&s->w.home, &near_ops, NULL);
    assert_non_null(near_one.call);
    near_one.call->wants_chunks = true;
    return near_one.call;
}

static void open_near(setting *s) { ew__call_open(near_one.call, s->action); }

static void finish(setting *s, uint32_t n) {
    if (near_one.call)
        ew__call_release(near_one.call);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(atomic_load(&fars[i].far.calls), 0);
    ew__action_unref(s->action);
    for (uint32_t i = 0; i < n; i++) {
        ew__far_unref(&fars[i].far);
        assert_int_equal(fars[i].n_frees, 1);
    }
    world_done(&s->w);
}

/* ---- what crosses ---- */

static void test_what_crosses(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    ew_call *near = make(&s);
    near->input = EW_STR("{\"big\":12345678901234567890}");
    near->context = EW_STR("{\"user\":1}");
    near->labels = EW_STR("{\"a\":\"b\"}");
    near->deadline = s.w.home.now + EW__MS(500);
    near->attempt = 3;
    near->hops = 2;
    open_near(&s);
    ew_call *far = fars[0].call;
    assert_non_null(far);
    assert_true(ew__str_is(far->key, EW_STR("/flow/a")));
    assert_ptr_equal(far->input.ptr, near->input.ptr); /* the very bytes */
    assert_ptr_equal(far->context.ptr, near->context.ptr);
    assert_ptr_equal(far->labels.ptr, near->labels.ptr);
    assert_int_equal(far->deadline, near->deadline);
    assert_int_equal(far->attempt, 3);
    assert_int_equal(far->hops, 3);
    assert_true(far->wants_chunks);
    assert_int_equal(atomic_load(&fars[0].far.calls), 1);
    assert_int_equal(ew__call_chunk_valid(far, EW_STR("1")), EW_OK);
    assert_int_equal(near_one.n_chunks, 1);
    far_done(&fars[0], EW_STR("\"good\""));
    assert_int_equal(near_one.n_ends, 1);
    assert_int_equal(near_one.status, EW_STATUS_OK);
    assert_string_equal(near_one.text, "\"good\"");
    finish(&s, 1);
}

static void test_a_fault_crosses(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_near(&s);
    ew_call *call = fars[0].call;
    ew_fault fault = {.status = EW_STATUS_ABORTED,
                      .message = EW_STR("no"),
                      .details = EW_STR("{\"x\":1}"),
                      .retryable = true,
                      .retry_after_ms = 1500};
    assert_int_equal(ew_call_fail_with(call, &fault), EW_OK);
    assert_int_equal(near_one.status, EW_STATUS_ABORTED);
    assert_string_equal(near_one.text, "no");
    assert_int_equal(near_one.fault.retry_after_ms, 1500);
    assert_true(near_one.fault.retryable);
    finish(&s, 1);
}

/* The child's trace, where the wire carries one; nothing is made where nobody wants it. */
static void test_trace(void **state) {
    (void)state;
    setting s;
    for (int traces = 0; traces < 2; traces++) {
        begin(&s, 1);
        fars[0].far.traces = traces != 0;
        ew_call *near = make(&s);
        open_near(&s);
        assert_int_equal(fars[0].call->trace.trace_id[0] != 0, traces != 0);
        if (traces) {
            assert_memory_equal(fars[0].call->trace.trace_id, near->trace.trace_id, 32);
            assert_memory_equal(fars[0].call->trace.span_id, near->trace.span_id, 16);
        }
        far_done(&fars[0], EW_STR("1"));
        finish(&s, 1);
    }
    ew__observer spans = {.spans = true};
    begin(&s, 1);
    s.w.home.observer = &spans;
    ew_call *near = make(&s);
    open_near(&s);
    assert_memory_equal(fars[0].call->trace.trace_id, near->trace.trace_id, 32);
    assert_memory_equal(fars[0].call->trace.parent_id, near->trace.span_id, 16);
    assert_memory_not_equal(fars[0].call->trace.span_id, near->trace.span_id, 16);
    assert_true(ew__str_is(fars[0].call->trace_path, EW_STR("/{x,t:flow}")));
    far_done(&fars[0], EW_STR("1"));
    s.w.home.observer = NULL;
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
        fars[0].far.refuses = refuses_extras;
        ew_call *near = make(&s);
        near->input = way == 1 ? EW_STR("5") : EW_STR("{}");
        near->has_input = way == 2;
        near->context = EW_STR("{\"c\":1}");
        near->labels = EW_STR("{\"l\":\"1\"}");
        open_near(&s);
        if (way == 0) {
            assert_int_equal(fars[0].call->context.len, 7);
            assert_int_equal(fars[0].call->labels.len, 0); /* left behind */
            far_done(&fars[0], EW_STR("1"));
        } else {
            assert_int_equal(fars[0].n_opens, 0);
            assert_int_equal(near_one.status, way == 1 ? EW_STATUS_INVALID_ARGUMENT : EW_STATUS_UNIMPLEMENTED);
            assert_string_equal(near_one.text, way == 1 ? "objects only" : "no input streams");
        }
        finish(&s, 1);
    }
}

static void test_hops_end(void **state) {
    (void)state;
    setting s;
    for (int here = 0; here < 2; here++) {
        begin(&s, 1);
        fars[0].far.here = here != 0;
        make(&s)->hops = EW__HOPS_MAX;
        open_near(&s);
        assert_int_equal(fars[0].n_opens, here);
        if (here)
            far_done(&fars[0], EW_STR("1"));
        assert_int_equal(near_one.status, here ? EW_STATUS_OK : EW_STATUS_FAILED_PRECONDITION);
        finish(&s, 1);
        begin(&s, 1);
        make(&s)->hops = EW__HOPS_MAX - 1;
        open_near(&s);
        assert_int_equal(fars[0].call->hops, EW__HOPS_MAX);
        far_done(&fars[0], EW_STR("1"));
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
    ew__out_init(&out, &s.w.home.blocks);
    ew_call *near = make(&s);
    char *input = ew__arena_alloc(&near->arena, size);
    memset(input, '1', size);
    near->input = ew__str(input, size);
    open_near(&s);
    ew_call *far = fars[0].call;
    ew__call_write(far, &out, far->input);
    assert_int_equal(out.bytes, size);
    assert_true(atomic_load(&near->refs) >= 3); /* the caller's, the callee's, the bridge's, and the queue's */
    unsigned before = atomic_load(&near->refs);
    ew__out_consume(&out, size);
    assert_int_equal(atomic_load(&near->refs), before - 1);
    far_done(&fars[0], EW_STR("1"));
    ew__out_done(&out);
    finish(&s, 1);
}

/* ---- streams ---- */

static void test_back_pressure_of_chunks(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_near(&s);
    near_one.full = true;
    assert_int_equal(ew__call_chunk_valid(fars[0].call, EW_STR("1")), EW_FULL);
    assert_int_equal(fars[0].n_rooms, 0);
    near_one.full = false;
    ew__call_room(near_one.call);
    assert_int_equal(fars[0].n_rooms, 1);
    assert_int_equal(ew__call_chunk_valid(fars[0].call, EW_STR("2")), EW_OK);
    assert_int_equal(near_one.n_chunks, 2);
    far_done(&fars[0], EW_STR("3"));
    finish(&s, 1);
}

/* The reader's buffer is full: both calls are over for their callers, and the far callee is told to stop. */
static void test_a_lost_chunk(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_near(&s);
    near_one.chunk_error = EW_ELIMIT;
    assert_int_equal(ew__call_chunk_valid(fars[0].call, EW_STR("1")), EW_ELIMIT);
    assert_int_equal(near_one.n_ends, 1);
    assert_int_equal(near_one.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(fars[0].n_cancels, 1);
    far_fail(&fars[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(near_one.n_ends, 1);
    finish(&s, 1);
}

static void test_input_waits_for_the_far_side(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->has_input = true;
    open_near(&s);
    ew_call *near = near_one.call, *far = fars[0].call;
    assert_true(far->input_full); /* until its wire says that it takes some */
    assert_int_equal(ew__call_input(near, EW_STR("1")), EW_OK);
    assert_int_equal(ew__call_input(near, EW_STR("2")), EW_OK);
    assert_int_equal(fars[0].n_inputs, 0);
    ew__call_input_room(far);
    assert_string_equal(fars[0].inputs, "1,2,");
    fars[0].input_full = true;
    assert_int_equal(ew__call_input(near, EW_STR("3")), EW_FULL);
    assert_int_equal(ew__call_input(near, EW_STR("4")), EW_OK); /* kept */
    ew__call_input_end(near);
    assert_int_equal(fars[0].n_input_ends, 0);
    assert_string_equal(fars[0].inputs, "1,2,3,");
    fars[0].input_full = false;
    ew__call_input_room(far);
    assert_string_equal(fars[0].inputs, "1,2,3,4,");
    assert_int_equal(fars[0].n_input_ends, 1);
    assert_int_equal(near_one.n_rooms, 1);
    far_done(&fars[0], EW_STR("10"));
    finish(&s, 1);
}

/* ... also one that was passed on at once, and filled the far side. */
static void test_input_goes_on(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->has_input = true;
    open_near(&s);
    ew__call_input_room(fars[0].call);
    fars[0].input_full = true;
    assert_int_equal(ew__call_input(near_one.call, EW_STR("1")), EW_FULL);
    assert_int_equal(near_one.n_rooms, 0);
    fars[0].input_full = false;
    ew__call_input_room(fars[0].call);
    assert_int_equal(near_one.n_rooms, 1);
    assert_int_equal(ew__call_input(near_one.call, EW_STR("2")), EW_OK);
    assert_string_equal(fars[0].inputs, "1,2,");
    far_done(&fars[0], EW_STR("3"));
    finish(&s, 1);
}

static void test_input_is_bounded(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->has_input = true;
    open_near(&s);
    ew_err err = EW_OK;
    unsigned n = 0;
    while (err == EW_OK && n < 10000) {
        err = ew__call_input(near_one.call, EW_STR("1"));
        n++;
    }
    assert_int_equal(err, EW_FULL);
    assert_int_equal(n, s.w.limits.in_queue_items);
    ew__call_input_room(fars[0].call);
    assert_int_equal(fars[0].n_inputs, n);
    assert_int_equal(near_one.n_rooms, 1);
    ew__call_input_end(near_one.call);
    assert_int_equal(fars[0].n_input_ends, 1);
    far_done(&fars[0], EW_STR("1"));
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
        open_near(&s);
        ew__call_cancel(near_one.call, whys[i]);
        assert_int_equal(fars[0].n_cancels, 1);
        assert_int_equal(fars[0].why, whys[i]);
        assert_int_equal(near_one.n_ends, 0); /* it still ends once */
        far_fail(&fars[0], EW_STATUS_CANCELLED, "stopped");
        assert_int_equal(near_one.n_ends, 1);
        assert_int_equal(near_one.status, EW_STATUS_CANCELLED);
        finish(&s, 1);
    }
}

static void test_the_caller_goes(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_near(&s);
    ew__call_release(near_one.call);
    near_one.call = NULL;
    assert_int_equal(fars[0].n_cancels, 1);
    assert_int_equal(ew__call_chunk_valid(fars[0].call, EW_STR("1")), EW_OK); /* late: nobody listens */
    far_done(&fars[0], EW_STR("1"));
    assert_int_equal(near_one.n_ends, 0);
    finish(&s, 1);
}

/* ... and the far side ends inside of being told: what is left of the join goes with the near call. */
static void test_the_caller_goes_and_all_ends(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    fars[0].ends = true;
    make(&s);
    open_near(&s);
    ew__call_release(near_one.call);
    near_one.call = NULL;
    assert_int_equal(fars[0].n_cancels, 1);
    assert_null(fars[0].call);
    assert_int_equal(near_one.n_ends, 0);
    finish(&s, 1);
}

/* ... while a chunk is being given to it. */
static void test_the_caller_goes_in_a_chunk(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s);
    open_near(&s);
    near_one.goes = true;
    assert_int_equal(ew__call_chunk_valid(fars[0].call, EW_STR("1")), EW_ECANCELLED);
    assert_int_equal(fars[0].n_cancels, 1);
    far_fail(&fars[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(near_one.n_ends, 0);
    finish(&s, 1);
}

static void test_deadline(void **state) {
    (void)state;
    setting s;
    begin(&s, 1);
    make(&s)->deadline = s.w.home.now + EW__MS(100);
    open_near(&s);
    world_advance(&s.w, 101);
    assert_int_equal(near_one.n_ends, 1);
    assert_int_equal(near_one.status, EW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(fars[0].n_cancels, 1);
    far_fail(&fars[0], EW_STATUS_CANCELLED, "stopped");
    assert_int_equal(near_one.n_ends, 1);
    finish(&s, 1);
}

/* ---- several homes of one action ---- */

static void run_one(setting *s, const char *expected) {
    make(s);
    near_one.n_ends = 0;
    open_near(s);
    for (uint32_t i = 0; i < N_FARS; i++)
        if (fars[i].call)
            far_done(&fars[i], EW_STR("\"ok\""));
    assert_int_equal(near_one.n_ends, 1);
    assert_string_equal(near_one.text, expected);
    ew__call_release(near_one.call);
    near_one.call = NULL;
}

static void test_calls_go_round(void **state) {
    (void)state;
    setting s;
    begin(&s, 3);
    for (int i = 0; i < 9; i++)
        run_one(&s, "\"ok\"");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(fars[i].n_opens, 3);
    finish(&s, 3);
}

static void test_one_that_is_away_is_passed_over(void **state) {
    (void)state;
    setting s;
    begin(&s, 3);
    fars[1].unreachable = true;
    for (int i = 0; i < 9; i++)
        run_one(&s, "\"ok\"");
    assert_int_equal(fars[1].n_opens, 1); /* then it has a pause */
    assert_int_equal(fars[0].n_opens + fars[2].n_opens, 9);
    world_advance(&s.w, EW__FAR_PAUSE_MS + 1);
    fars[1].unreachable = false;
    for (int i = 0; i < 3; i++)
        run_one(&s, "\"ok\"");
    assert_int_equal(fars[1].n_opens, 2);
    finish(&s, 3);
}

static void test_all_are_away(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    fars[0].unreachable = fars[1].unreachable = true;
    for (int i = 0; i < 3; i++) {
        unsigned before = fars[0].n_opens + fars[1].n_opens;
        run_one(&s, "nobody there");
        assert_int_equal(near_one.status, EW_STATUS_UNAVAILABLE);
        assert_int_equal(fars[0].n_opens + fars[1].n_opens, before + 2); /* each was tried, once */
    }
    finish(&s, 2);
}

/* The peer may have run it: nobody else gets it. */
static void test_what_has_begun_is_not_repeated(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    fars[0].loses = true;
    run_one(&s, "lost");
    assert_int_equal(fars[1].n_opens, 0);
    finish(&s, 2);
}

static void test_a_cancelled_call_goes_nowhere_else(void **state) {
    (void)state;
    setting s;
    begin(&s, 2);
    make(&s);
    open_near(&s);
    fars[0].call->begun = false; /* it waits for a connection */
    ew__call_cancel(near_one.call, EW__CANCEL_ASKED);
    ew_call *call = fars[0].call;
    ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("away"));
    assert_int_equal(near_one.n_ends, 1);
    assert_int_equal(fars[1].n_opens, 0);
    finish(&s, 2);
}

/* ---- memory, and any order ---- */

static void test_no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 12; n++) {
        setting s;
        begin(&s, 1);
        ew_call *near = make(&s);
        near->has_input = true;
        ew__test_env_fail_at(&s.w.env, n, false);
        open_near(&s);
        if (near_one.n_ends == 0)
            (void)ew__call_input(near, EW_STR("1"));
        ew__test_env_fail_at(&s.w.env, 0, false);
        if (fars[0].call)
            far_done(&fars[0], EW_STR("1"));
        assert_int_equal(near_one.n_ends, 1);
        finish(&s, 1);
    }
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void do_something(setting *s, uint32_t what) {
    ew_call *near = near_one.call;
    far_side *f = fars[0].call ? &fars[0] : &fars[1];
    near_one.full = (what & 64) != 0;
    f->input_full = (what & 128) != 0;
    switch (what % 10) {
    case 0:
        ew__call_cancel(near, EW__CANCEL_ASKED);
        break;
    case 1:
    case 2:
        if (f->call)
            (void)ew__call_chunk_valid(f->call, EW_STR("1"));
        break;
    case 3:
    case 4:
        (void)ew__call_input(near, EW_STR("1"));
        break;
    case 5:
        ew__call_input_end(near);
        break;
    case 6:
        if (f->call)
            ew__call_input_room(f->call);
        break;
    case 7:
        ew__call_room(near);
        break;
    case 8:
        if (f->call && what & 256)
            far_done(f, EW_STR("1"));
        break;
    default:
        world_advance(&s->w, 10);
    }
}

static void test_any_order(void **state) {
    (void)state;
    for (uint32_t run = 1; run <= 3000; run++) {
        setting s;
        uint32_t seed = run;
        begin(&s, 2);
        fars[run & 1].unreachable = run % 3 == 0;
        ew_call *near = make(&s);
        near->has_input = true;
        near->deadline = s.w.home.now + EW__MS(200);
        open_near(&s);
        for (int i = 0; i < 40; i++)
            do_something(&s, next_random(&seed));
        for (uint32_t i = 0; i < 2; i++)
            if (fars[i].call)
                far_fail(&fars[i], EW_STATUS_ABORTED, "over");
        assert_int_equal(near_one.n_ends, 1);
        assert_true(fars[0].n_input_ends + fars[1].n_input_ends <= 1);
        finish(&s, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_crosses),
        cmocka_unit_test(test_a_fault_crosses),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_what_a_wire_cannot_carry),
        cmocka_unit_test(test_hops_end),
        cmocka_unit_test(test_large_payloads_are_lent),
        cmocka_unit_test(test_back_pressure_of_chunks),
        cmocka_unit_test(test_a_lost_chunk),
        cmocka_unit_test(test_input_waits_for_the_far_side),
        cmocka_unit_test(test_input_goes_on),
        cmocka_unit_test(test_input_is_bounded),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_the_caller_goes),
        cmocka_unit_test(test_the_caller_goes_and_all_ends),
        cmocka_unit_test(test_the_caller_goes_in_a_chunk),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_calls_go_round),
        cmocka_unit_test(test_one_that_is_away_is_passed_over),
        cmocka_unit_test(test_all_are_away),
        cmocka_unit_test(test_what_has_begun_is_not_repeated),
        cmocka_unit_test(test_a_cancelled_call_goes_nowhere_else),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
