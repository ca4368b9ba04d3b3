/*
 * tests/unit/call/test_call.c: the state machine of a call: single rules, and random orders of events against a small
 * model.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/call/world.h"

/* ---- both ends, recording ---- */

typedef struct book {
    ew_call *call; /* a reference of the test */
    unsigned n_ends, n_chunks, n_rows, n_cancels, n_inputs, n_input_ends, n_rooms, n_opens;
    ew_status status;
    ew_origin origin;
    bool released;
    /* how this run behaves */
    bool release_at_end, end_at_cancel, reader_full;
    ew_err chunk_error;
} book;

static void note_release(book *b) {
    b->released = true;
    ew__call_release(b->call);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    book *b = call->caller_ud;
    (void)json;
    if (b->chunk_error != EW_OK)
        return b->chunk_error;
    b->n_chunks++;
    return b->reader_full ? EW_FULL : EW_OK;
}

/* Takes three at a time. */
static ew_err on_row(ew_call *call, const ew_str *row, size_t *n) {
    book *b = call->caller_ud;
    assert_true(*n > 0 && row[0].len > 0);
    b->n_rows++;
    *n = *n < 3 ? *n : 3;
    if (b->chunk_error != EW_OK)
        return b->chunk_error;
    b->n_chunks += (unsigned)*n;
    return b->reader_full ? EW_FULL : EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    book *b = call->caller_ud;
    assert_false(b->released);
    b->n_ends++;
    b->status = end->status;
    b->origin = end->origin;
    if (b->release_at_end)
        note_release(b);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};
static const ew__caller_ops row_caller = {.chunk = on_chunk, .chunk_row = on_row, .end = on_end};

static void on_open(ew_call *call) { ((book *)call->callee_ud)->n_opens++; }

static ew_err on_input(ew_call *call, ew_str chunk) {
    (void)chunk;
    ((book *)call->callee_ud)->n_inputs++;
    return EW_OK;
}

static void on_input_end(ew_call *call) { ((book *)call->callee_ud)->n_input_ends++; }

static void on_cancel(ew_call *call, ew__cancel_why why) {
    book *b = call->callee_ud;
    (void)why;
    b->n_cancels++;
    if (b->end_at_cancel)
        (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static void on_room(ew_call *call) { ((book *)call->callee_ud)->n_rooms++; }

static const ew__callee_ops callee = {
    .open = on_open, .input = on_input, .input_end = on_input_end, .cancel = on_cancel, .room = on_room};

static void open_book(world *w, book *b, uint64_t deadline_ms) {
    ew_call *call = ew__call_new(&w->executor, &caller, b);
    assert_non_null(call);
    b->call = ew_call_ref(call);
    call->wants_chunks = true;
    call->has_input = true;
    if (deadline_ms)
        call->deadline = w->executor.now + EW__MS(deadline_ms);
    ew__call_open_on(call, &callee, b);
}

static void close_book(world *w, book *b) {
    (void)ew_call_done(b->call, EW_STR("0"));
    if (!b->released)
        note_release(b);
    ew_call_unref(b->call);
    (void)w;
}

/* ---- single rules ---- */

static void test_call_call__done_once(void **state) {
    (void)state;
    world w;
    book b = {.release_at_end = true};
    world_init(&w, 1);
    open_book(&w, &b, 0);
    assert_int_equal(b.n_opens, 1);
    assert_int_equal(w.executor.calls->live, 1);
    assert_int_equal(ew_call_chunk(b.call, EW_STR("1")), EW_OK);
    assert_int_equal(ew_call_chunk(b.call, EW_STR("{")), EW_ESYNTAX);
    assert_int_equal(ew_call_done(b.call, EW_STR("{}")), EW_OK);
    assert_int_equal(ew_call_done(b.call, EW_STR("{}")), EW_EENDED);
    assert_int_equal(ew_call_fail(b.call, EW_STATUS_ABORTED, "x"), EW_EENDED);
    assert_int_equal(ew_call_chunk(b.call, EW_STR("1")), EW_EENDED);
    assert_int_equal(ew_call_on_cancel(b.call, NULL, NULL), EW_EENDED);
    assert_int_equal(ew_call_after(b.call, 1, NULL, NULL), EW_EENDED);
    assert_int_equal(b.n_ends, 1);
    assert_int_equal(b.status, EW_STATUS_OK);
    assert_int_equal(atomic_load(&w.executor.calls->dropped), 2);
    close_book(&w, &b);
    world_done(&w);
}

static void test_call_call__invalid_result(void **state) {
    (void)state;
    world w;
    book b = {.release_at_end = true};
    world_init(&w, 1);
    open_book(&w, &b, 0);
    assert_int_equal(ew_call_done(b.call, EW_STR("nope")), EW_ESYNTAX);
    assert_int_equal(b.n_ends, 1);
    assert_int_equal(b.status, EW_STATUS_INTERNAL);
    close_book(&w, &b);
    b = (book){.release_at_end = true};
    open_book(&w, &b, 0);
    ew_fault ok = {.status = EW_STATUS_OK};
    assert_int_equal(ew_call_fail_with(b.call, &ok), EW_OK);
    assert_int_equal(b.n_ends, 1);
    assert_int_equal(b.status, EW_STATUS_UNKNOWN);
    close_book(&w, &b);
    world_done(&w);
}

static void test_call_call__deadline(void **state) {
    (void)state;
    world w;
    book b = {.release_at_end = true};
    world_init(&w, 1);
    open_book(&w, &b, 100);
    world_advance(&w, 99);
    assert_int_equal(b.n_ends, 0);
    assert_int_equal(ew_call_deadline_ms(b.call), 1);
    world_advance(&w, 1);
    assert_int_equal(b.n_ends, 1);
    assert_int_equal(b.status, EW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(b.origin, EW_ORIGIN_DEADLINE);
    assert_int_equal(b.n_cancels, 1);
    assert_int_equal(w.executor.calls->live, 1); /* the callee still owes its end */
    assert_int_equal(ew_call_chunk(b.call, EW_STR("1")), EW_ECANCELLED);
    assert_int_equal(ew_call_done(b.call, EW_STR("1")), EW_OK);
    assert_int_equal(b.n_ends, 1);
    assert_int_equal(atomic_load(&w.executor.calls->dropped), 1);
    close_book(&w, &b);
    world_done(&w);
}

static void test_call_call__lost_reader(void **state) {
    (void)state;
    world w;
    book b = {.release_at_end = true, .chunk_error = EW_ELIMIT};
    world_init(&w, 1);
    open_book(&w, &b, 0);
    assert_int_equal(ew_call_chunk(b.call, EW_STR("1")), EW_ELIMIT);
    assert_int_equal(b.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(b.n_cancels, 1);
    assert_true(ew_call_cancelled(b.call));
    close_book(&w, &b);
    world_done(&w);
}

static void test_call_call__too_many(void **state) {
    (void)state;
    world w;
    book books[3] = {{.release_at_end = true}, {.release_at_end = true}, {.release_at_end = true}};
    world_init(&w, 1);
    w.limits.calls = 2;
    open_book(&w, &books[0], 0);
    open_book(&w, &books[1], 0);
    assert_null(ew__call_new(&w.executor, &caller, NULL));
    close_book(&w, &books[0]);
    open_book(&w, &books[2], 0);
    close_book(&w, &books[1]);
    close_book(&w, &books[2]);
    world_done(&w);
}

/* ---- random orders against a model ---- */

typedef struct model {
    bool caller_open, callee_open, cancelled, full, input_ended;
    unsigned ends, chunks, cancels, inputs, input_ends, rooms, dropped;
} model;

static void model_end_told(model *m) {
    m->caller_open = false;
    m->ends++;
}

static void model_callee_end(model *m) {
    if (!m->callee_open) {
        m->dropped++;
        return;
    }
    m->callee_open = false;
    if (m->caller_open)
        model_end_told(m);
    else
        m->dropped++;
}

static void model_cancel(model *m, const book *b) {
    if (!m->callee_open || m->cancelled)
        return;
    m->cancelled = true;
    m->cancels++;
    if (b->end_at_cancel)
        model_callee_end(m);
}

static void model_room(model *m) {
    m->rooms += m->callee_open && m->full;
    m->full = m->full && !m->callee_open;
}

/* The caller is no longer there: nobody needs to wait for a reader. */
static void model_abandon(model *m, const book *b) {
    model_cancel(m, b);
    model_room(m);
}

static void model_chunk(model *m, const book *b, ew_err got) {
    ew_err expected = EW_OK;
    if (!m->callee_open) {
        expected = EW_EENDED;
    } else if (!m->caller_open) {
        expected = EW_ECANCELLED;
    } else if (b->chunk_error) {
        expected = b->chunk_error;
        model_end_told(m);
        model_abandon(m, b);
    } else {
        m->chunks++;
        m->full = m->full || b->reader_full;
        expected = b->reader_full ? EW_FULL : EW_OK;
    }
    assert_int_equal(got, expected);
}

static void step_callee(unsigned what, model *m, book *b, uint64_t chance) {
    switch (what) {
    case 0:
    case 1:
        b->reader_full = chance & 1;
        b->chunk_error = chance % 16 == 2 ? EW_ELIMIT : EW_OK;
        model_chunk(m, b, ew_call_chunk(b->call, EW_STR("[1]")));
        break;
    case 2:
        assert_int_equal(ew_call_done(b->call, EW_STR("2")), m->callee_open ? EW_OK : EW_EENDED);
        model_callee_end(m);
        break;
    default:
        assert_int_equal(ew_call_fail(b->call, EW_STATUS_ABORTED, NULL), m->callee_open ? EW_OK : EW_EENDED);
        model_callee_end(m);
        break;
    }
}

static void step_caller(unsigned what, world *w, model *m, book *b) {
    bool takes = m->callee_open && !m->input_ended;
    switch (what) {
    case 4:
        if (!b->released)
            ew__call_cancel(b->call, EW__CANCEL_ASKED), model_cancel(m, b);
        break;
    case 5:
        if (!b->released) {
            note_release(b);
            if (m->caller_open) {
                m->caller_open = false;
                model_abandon(m, b);
            }
        }
        break;
    case 6:
        ew__call_room(b->call);
        model_room(m);
        break;
    case 7:
        assert_int_equal(ew__call_input(b->call, EW_STR("1")), takes ? EW_OK : EW_EENDED);
        m->inputs += takes;
        break;
    case 8:
        ew__call_input_end(b->call);
        m->input_ends += takes;
        m->input_ended = m->input_ended || takes;
        break;
    default:
        world_advance(w, 1000);
        if (m->caller_open) {
            model_end_told(m);
            model_abandon(m, b);
        }
        break;
    }
}

static void compare(const world *w, const model *m, const book *b) {
    assert_int_equal(b->n_ends, m->ends);
    assert_true(b->n_ends <= 1 && b->n_cancels <= 1 && b->n_input_ends <= 1);
    assert_int_equal(b->n_chunks, m->chunks);
    assert_int_equal(b->n_cancels, m->cancels);
    assert_int_equal(b->n_inputs, m->inputs);
    assert_int_equal(b->n_input_ends, m->input_ends);
    assert_int_equal(b->n_rooms, m->rooms);
    assert_int_equal(ew_call_cancelled(b->call), m->cancelled);
    assert_int_equal(w->executor.calls->live, m->callee_open ? 1 : 0);
    assert_int_equal(atomic_load(&w->executor.calls->dropped), m->dropped);
}

static void test_call_call__random_orders(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        world w;
        world_init(&w, seed);
        book b = {.release_at_end = ew__rng_next(&w.executor.rng) & 1,
                  .end_at_cancel = ew__rng_next(&w.executor.rng) & 1};
        model m = {.caller_open = true, .callee_open = true};
        open_book(&w, &b, 500);
        for (int i = 0; i < 30; i++) {
            uint64_t chance = ew__rng_next(&w.executor.rng);
            /* chunks, input and room often; what ends something seldom */
            static const uint8_t weights[] = {0, 0, 0, 0, 0, 7, 7, 7, 6, 6, 2, 3, 4, 5, 8, 9};
            unsigned what = weights[chance >> 32 & 15];
            if (what <= 3)
                step_callee(what, &m, &b, chance & 0xff);
            else
                step_caller(what, &w, &m, &b);
            compare(&w, &m, &b);
        }
        assert_true(b.n_ends == 1 || m.callee_open || b.released);
        close_book(&w, &b);
        world_done(&w);
    }
}

/* ---- rows ---- */

static ew_err give_row(ew_call *call, size_t *n) {
    const ew_str row[5] = {EW_STR("1"), EW_STR("[2]"), EW_STR("\"3\""), EW_STR("4"), EW_STR("{}")};
    assert_true(*n <= 5);
    return ew__call_chunk_row(call, row, n);
}

static void check_row(const ew__caller_ops *ops, book *b, ew_err expected, size_t taken) {
    world w;
    size_t n = 5;
    world_init(&w, 1);
    open_book(&w, b, 0);
    b->call->caller = ops;
    assert_int_equal(give_row(b->call, &n), expected);
    assert_int_equal(n, taken);
    close_book(&w, b);
    world_done(&w);
}

/* All of them, however they are taken; those who are behind get no more than what they took when they said so. */
static void test_call_call__rows(void **state) {
    (void)state;
    book one_by_one = {0}, three = {0}, full = {.reader_full = true}, full_at_three = {.reader_full = true};
    check_row(&caller, &one_by_one, EW_OK, 5);
    assert_int_equal(one_by_one.n_chunks, 5);
    check_row(&row_caller, &three, EW_OK, 5);
    assert_int_equal(three.n_chunks, 5);
    assert_int_equal(three.n_rows, 2);
    check_row(&caller, &full, EW_FULL, 1);
    assert_int_equal(full.n_chunks, 1);
    check_row(&row_caller, &full_at_three, EW_FULL, 3);
    assert_int_equal(full_at_three.n_chunks, 3);
}

/* A row of which something is lost ends the call, once. */
static void test_call_call__lost_rows(void **state) {
    (void)state;
    book lost = {.chunk_error = EW_ELIMIT, .end_at_cancel = true};
    check_row(&row_caller, &lost, EW_ELIMIT, 3);
    assert_int_equal(lost.n_ends, 1);
    assert_int_equal(lost.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(lost.n_rows, 1);
}

/* Nobody wants them, or nobody is there any more. */
static void test_call_call__late_rows(void **state) {
    (void)state;
    world w;
    book b = {0};
    size_t n = 5;
    world_init(&w, 1);
    open_book(&w, &b, 0);
    b.call->caller = &row_caller;
    b.call->wants_chunks = false;
    assert_int_equal(give_row(b.call, &n), EW_OK);
    assert_int_equal(n, 5);
    assert_int_equal(ew_call_done(b.call, EW_STR("0")), EW_OK);
    assert_int_equal(give_row(b.call, &n), EW_EENDED);
    assert_int_equal(b.n_chunks, 0);
    assert_int_equal(b.n_rows, 0);
    close_book(&w, &b);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_call__done_once), cmocka_unit_test(test_call_call__invalid_result),
        cmocka_unit_test(test_call_call__deadline),  cmocka_unit_test(test_call_call__lost_reader),
        cmocka_unit_test(test_call_call__too_many),  cmocka_unit_test(test_call_call__random_orders),
        cmocka_unit_test(test_call_call__rows),      cmocka_unit_test(test_call_call__lost_rows),
        cmocka_unit_test(test_call_call__late_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
