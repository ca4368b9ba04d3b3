/*
 * tests/unit/call/test_local.c: what a handler may ask of its call: cancel, room, time, input.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/call/world.h"
#include "support/json_or.h"

typedef struct record {
    unsigned n_ends, n_fired, n_input, n_input_end, n_input_room;
    int64_t sum;
    ew_status status;
    bool full;
} record;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)json;
    return ((record *)call->caller_ud)->full ? EW_FULL : EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    record *rec = call->caller_ud;
    rec->n_ends++;
    rec->status = end->status;
    ew__call_release(call);
}

static void on_input_room(ew_call *call) { ((record *)call->caller_ud)->n_input_room++; }

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end, .input_room = on_input_room};

static void nothing(ew_call *call, void *arg) {
    (void)call;
    (void)arg;
}

static void fired(ew_call *call, void *arg) {
    (void)call;
    ((record *)arg)->n_fired++;
}

static void done(ew_call *call, void *arg) {
    ((record *)arg)->n_fired++;
    (void)ew_call_done(call, EW_STR("1"));
}

static void input(ew_call *call, ew_str chunk, bool end, void *arg) {
    record *rec = arg;
    (void)call;
    if (end)
        rec->n_input_end++;
    else
        rec->n_input++;
    rec->sum = rec->sum * 10 + json_int_or(chunk, "", 0);
}

static ew__registry registry;

static ew_call *open_call(world *w, record *rec) {
    ew__action *action = NULL;
    ew_call *call = ew__call_new(&w->executor, &caller, rec);
    assert_non_null(call);
    assert_int_equal(ew__actions_find(registry.current, EW_STR("/t/nothing"), &action), EW_OK);
    call->wants_chunks = call->has_input = true;
    ew__call_open(call, action);
    return call;
}

static void test_call_local__after(void **state) {
    (void)state;
    world w;
    record rec = {0};
    world_init(&w, 1);
    ew_call *call = open_call(&w, &rec);
    assert_int_equal(ew_call_after(call, 10, fired, &rec), EW_OK);
    assert_int_equal(ew_call_after(call, 20, fired, &rec), EW_OK); /* replaces the first */
    world_advance(&w, 19);
    assert_int_equal(rec.n_fired, 0);
    world_advance(&w, 1);
    assert_int_equal(rec.n_fired, 1);
    assert_int_equal(ew_call_after(call, UINT64_MAX, fired, &rec), EW_OK);
    world_advance(&w, 1000000);
    assert_int_equal(ew_call_after(call, 0, done, &rec), EW_OK);
    world_advance(&w, 0);
    assert_int_equal(rec.n_fired, 2);
    assert_int_equal(rec.n_ends, 1);
    world_done(&w);
}

static void test_call_local__cancel(void **state) {
    (void)state;
    world w;
    record rec = {0};
    world_init(&w, 1);
    ew_call *call = open_call(&w, &rec);
    assert_int_equal(ew_call_on_cancel(call, fired, &rec), EW_OK);
    assert_int_equal(ew_call_on_cancel(call, NULL, NULL), EW_OK);
    ew__call_cancel(call, EW__CANCEL_ASKED);
    assert_int_equal(rec.n_fired, 0);
    assert_true(ew_call_cancelled(call));
    assert_int_equal(ew_call_on_cancel(call, done, &rec), EW_OK); /* it already is: at once */
    assert_int_equal(rec.n_fired, 1);
    assert_int_equal(rec.n_ends, 1);
    world_done(&w);
}

static void test_call_local__room(void **state) {
    (void)state;
    world w;
    record rec = {.full = true};
    world_init(&w, 1);
    ew_call *call = open_call(&w, &rec);
    assert_int_equal(ew_call_chunk(call, EW_STR("1")), EW_FULL);
    assert_int_equal(ew_call_on_room(call, fired, &rec), EW_OK);
    world_advance(&w, 1000);
    assert_int_equal(rec.n_fired, 0);
    ew__call_room(call);
    assert_int_equal(rec.n_fired, 0); /* a later turn */
    world_advance(&w, 0);
    assert_int_equal(rec.n_fired, 1);
    assert_int_equal(ew_call_on_room(call, done, &rec), EW_OK); /* there is room */
    world_advance(&w, 0);
    assert_int_equal(rec.n_fired, 2);
    world_done(&w);
}

/* Without memory for a timer the producer is told at once instead of never. */
static void test_call_local__room_no_memory(void **state) {
    (void)state;
    world w;
    record rec = {.full = true};
    world_init(&w, 1);
    ew_call *call = open_call(&w, &rec);
    assert_int_equal(ew_call_chunk(call, EW_STR("1")), EW_FULL);
    assert_int_equal(ew_call_on_room(call, done, &rec), EW_OK);
    ew__test_env_fail_at(&w.env, 1, true);
    ew__call_room(call);
    assert_int_equal(rec.n_fired, 1);
    assert_int_equal(rec.n_ends, 1);
    world_done(&w);
}

static void test_call_local__early_input(void **state) {
    (void)state;
    world w;
    record rec = {0};
    world_init(&w, 1);
    w.limits.in_queue_items = 3;
    ew_call *call = open_call(&w, &rec);
    assert_int_equal(ew__call_input(call, EW_STR("1")), EW_OK);
    assert_int_equal(ew__call_input(call, EW_STR("2")), EW_OK);
    assert_int_equal(ew__call_input(call, EW_STR("3")), EW_FULL);
    assert_int_equal(rec.n_input_room, 0);
    assert_int_equal(ew_call_on_input(call, input, &rec), EW_OK);
    assert_int_equal(rec.sum, 123);
    assert_int_equal(rec.n_input_room, 1);
    assert_int_equal(ew__call_input(call, EW_STR("4")), EW_OK);
    assert_int_equal(rec.sum, 1234);
    assert_int_equal(rec.n_input_end, 0);
    ew__call_input_end(call);
    ew__call_input_end(call);
    assert_int_equal(ew__call_input(call, EW_STR("5")), EW_EENDED);
    assert_int_equal(rec.n_input_end, 1);
    assert_int_equal(rec.n_input, 4);
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    world_done(&w);
}

static void test_call_local__input_never_read(void **state) {
    (void)state;
    world w;
    record rec = {0};
    world_init(&w, 1);
    ew_call *call = open_call(&w, &rec);
    assert_int_equal(ew__call_input(call, EW_STR("1")), EW_OK);
    ew__call_input_end(call);
    assert_int_equal(ew_call_done(call, EW_STR("1")), EW_OK);
    world_done(&w);
}

static int setup(void **state) {
    (void)state;
    return ew__registry_init(&registry, ew_env_default()) != EW_OK ||
           ew__registry_add(&registry, "/t/nothing", &ew__local_callee, NULL, nothing, NULL, NULL) != EW_OK;
}

static int teardown(void **state) {
    (void)state;
    ew__registry_done(&registry);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_local__after),       cmocka_unit_test(test_call_local__cancel),
        cmocka_unit_test(test_call_local__room),        cmocka_unit_test(test_call_local__room_no_memory),
        cmocka_unit_test(test_call_local__early_input), cmocka_unit_test(test_call_local__input_never_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
