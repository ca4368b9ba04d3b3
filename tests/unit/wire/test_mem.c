/*
 * tests/unit/wire/test_mem.c: the frames of the mem wire, and what it does with bad ones.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/rig.h"
#include "wire/mem/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX 1000

/* A frame as bytes. */
static size_t bytes_of(const ew__mem_frame *frame, char *into, size_t size) {
    ew__blocks pool;
    ew__out out;
    ew__out_vec vec[1];
    ew__blocks_init(&pool, ew_env_default(), 0);
    ew__out_init(&out, &pool);
    ew__mem_write(&out, frame);
    assert_int_equal(ew__out_peek(&out, vec, 1), 1);
    assert_true(vec[0].len <= size);
    memcpy(into, vec[0].ptr, vec[0].len);
    size_t n = vec[0].len;
    ew__out_done(&out);
    ew__blocks_done(&pool);
    return n;
}

static const ew__mem_frame samples[] = {
    {.event = EW__MEM_OPEN,
     .id = 7,
     .flags = 6,
     .number = UINT64_MAX,
     .attempt = 2,
     .hops = 200,
     .key = {"/a/b", 4},
     .payload = {"[1]", 3},
     .context = {"{}", 2},
     .traceparent = {"t", 1}},
    {.event = EW__MEM_CHUNK_IN, .id = 1, .payload = {" 1 ", 3}},
    {.event = EW__MEM_END_IN, .id = 2},
    {.event = EW__MEM_CANCEL, .id = UINT32_MAX},
    {.event = EW__MEM_ACCEPTED, .id = 3, .payload = {"abc", 3}},
    {.event = EW__MEM_CHUNK_OUT, .id = 4, .payload = {"\"x\"", 3}},
    {.event = EW__MEM_DONE, .id = 5, .payload = {"null", 4}},
    {.event = EW__MEM_FAIL,
     .id = 6,
     .status = 5,
     .flags = 1,
     .number = 1234567890123,
     .message = {"no", 2},
     .details = {"[]", 2}},
    {.event = EW__MEM_ROOM_OUT, .id = 8, .number = 5},
    {.event = EW__MEM_ROOM_IN, .id = 9, .number = 6},
};
#define N_SAMPLES (sizeof samples / sizeof *samples)

static void test_wire_mem__frames(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        char bytes[200], again[200];
        ew__mem_frame frame;
        size_t n = bytes_of(&samples[i], bytes, sizeof bytes), size = 0;
        assert_int_equal(n, 4 + ew__mem_length(&samples[i]));
        for (size_t part = 0; part < n; part++) { /* not yet a frame */
            assert_int_equal(ew__mem_read(ew__str(bytes, part), MAX, &frame, &size), EW_OK);
            assert_int_equal(size, 0);
        }
        assert_int_equal(ew__mem_read(ew__str(bytes, n), MAX, &frame, &size), EW_OK);
        assert_int_equal(size, n);
        assert_int_equal(bytes_of(&frame, again, sizeof again), n);
        assert_memory_equal(bytes, again, n);
    }
}

static void test_wire_mem__limit(void **state) {
    (void)state;
    char bytes[200];
    ew__mem_frame frame;
    size_t n = bytes_of(&samples[6], bytes, sizeof bytes), size = 0;
    assert_int_equal(ew__mem_read(ew__str(bytes, n), n - 5, &frame, &size), EW_ELIMIT);
    assert_int_equal(ew__mem_read(ew__str(bytes, n), n - 4, &frame, &size), EW_OK);
    assert_int_equal(ew__mem_read(ew__str(bytes, n), n - 3, &frame, &size), EW_OK);
    assert_int_equal(ew__mem_read(ew__str(bytes, 4), n - 5, &frame, &size), EW_ELIMIT); /* by its length alone */
}

/* Every changed byte: refused, or another frame; never a read outside (the memory checkers look). */
static void test_wire_mem__damaged(void **state) {
    (void)state;
    unsigned refused = 0;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        char bytes[200];
        size_t n = bytes_of(&samples[i], bytes, sizeof bytes);
        for (size_t at = 0; at < n; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                char *copy = malloc(n);
                ew__mem_frame frame;
                size_t size = 0;
                assert_non_null(copy);
                memcpy(copy, bytes, n);
                copy[at] = (char)(copy[at] ^ (1 << bit));
                refused += ew__mem_read(ew__str(copy, n), MAX, &frame, &size) != EW_OK;
                assert_true(size <= n);
                free(copy);
            }
        }
    }
    assert_true(refused > 300);
}

/* ---- a whole connection ---- */

static void say(rig_pair *pair, const ew__mem_frame *frame) {
    char bytes[300];
    rig_say(pair, bytes, bytes_of(frame, bytes, sizeof bytes));
    rig_run(pair->rig);
}

/* The next frame that came; event 0: none. */
static ew__mem_frame hear(rig_pair *pair) {
    static char kept[20000];
    rig_end *end = &pair->end[pair->end[RIG_SERVER].raw ? RIG_SERVER : RIG_CLIENT];
    ew__mem_frame frame = {0};
    size_t size = 0;
    assert_true(end->got_len < sizeof kept);
    if (end->got_len)
        memcpy(kept, end->got, end->got_len);
    assert_int_equal(ew__mem_read(ew__str(kept, end->got_len), sizeof kept, &frame, &size), EW_OK);
    if (size)
        rig_forget(pair, size);
    return size ? frame : (ew__mem_frame){0};
}

static ew__mem_frame open_frame(uint32_t id, const char *key) {
    return (ew__mem_frame){
        .event = EW__MEM_OPEN, .id = id, .number = UINT64_MAX, .key = ew_str_from(key), .payload = EW_STR("1")};
}

static rig_pair *serve(rig *r, const ew_limits *limits) {
    rig_init(r, &ew__wire_mem, &(rig_options){.seed = 1, .limits = limits ? *limits : (ew_limits){0}});
    return rig_connect_raw(r, RIG_CLIENT);
}

static void test_wire_mem__bad_frames_close(void **state) {
    (void)state;
    static const char bad[][14] = {
        {0, 0, 0, 4, 1, 0, 0, 0},                /* shorter than a head */
        {0, 0, 0, 5, 0, 0, 0, 0, 1},             /* no such event */
        {0, 0, 0, 5, 11, 0, 0, 0, 1},            /* no such event */
        {0, 0, 0, 6, 4, 0, 0, 0, 1, 0},          /* a byte too many */
        {0, 0, 0, 9, 2, 0, 0, 0, 1, 0, 0, 0, 0}, /* an empty chunk is no JSON */
        {0, 0, 0, 9, 2, 0, 0, 0, 1, 0, 0, 0, 9}, /* a text longer than its frame */
        {1, 0, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 9}, /* over the limit */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rig r;
        rig_pair *pair = serve(&r, NULL);
        ew__mem_frame never = open_frame(1, "/test/never");
        say(pair, &never);
        assert_int_equal(hear(pair).event, EW__MEM_ACCEPTED);
        rig_say(pair, bad[i], sizeof bad[i]);
        rig_run(&r);
        assert_true(pair->end[RIG_SERVER].gone);
        assert_int_equal(r.n_cancelled, 1);
        rig_finish(&r);
    }
}

static void test_wire_mem__id_in_use(void **state) {
    (void)state;
    rig r;
    rig_pair *pair = serve(&r, NULL);
    ew__mem_frame echo = open_frame(1, "/test/echo"), never = open_frame(1, "/test/never");
    say(pair, &echo);
    say(pair, &echo); /* the first has ended: its id is free */
    say(pair, &never);
    assert_false(pair->end[RIG_SERVER].gone);
    say(pair, &echo);
    assert_true(pair->end[RIG_SERVER].gone);
    assert_int_equal(r.n_opened, 3);
    rig_finish(&r);
}

static void test_wire_mem__late(void **state) {
    (void)state;
    static const uint8_t events[] = {EW__MEM_CHUNK_IN, EW__MEM_END_IN,   EW__MEM_CANCEL,
                                     EW__MEM_ROOM_OUT, EW__MEM_ACCEPTED, EW__MEM_CHUNK_OUT,
                                     EW__MEM_DONE,     EW__MEM_FAIL,     EW__MEM_ROOM_IN};
    rig r;
    rig_pair *pair = serve(&r, NULL);
    for (size_t i = 0; i < sizeof events; i++) {
        say(pair, &(ew__mem_frame){.event = events[i], .id = 99, .status = 1, .payload = EW_STR("1")});
        assert_int_equal(rig_dropped(&r, RIG_SERVER), i + 1);
    }
    assert_false(pair->end[RIG_SERVER].closing);
    rig_finish(&r);
}

static void test_wire_mem__too_many(void **state) {
    (void)state;
    rig r;
    rig_pair *pair = serve(&r, &(ew_limits){.calls_per_connection = 2});
    for (uint32_t id = 1; id <= 3; id++) {
        ew__mem_frame frame = open_frame(id, "/test/never");
        say(pair, &frame);
    }
    assert_int_equal(hear(pair).event, EW__MEM_ACCEPTED);
    assert_int_equal(hear(pair).event, EW__MEM_ACCEPTED);
    ew__mem_frame third = hear(pair);
    assert_int_equal(third.event, EW__MEM_FAIL);
    assert_int_equal(third.id, 3);
    assert_int_equal(third.status, EW_STATUS_RESOURCE_EXHAUSTED);
    rig_finish(&r);
}

/* A peer that gives room back which it never took has lost count. */
static void test_wire_mem__too_much_room(void **state) {
    (void)state;
    rig r;
    rig_pair *pair = serve(&r, NULL);
    ew__mem_frame never = open_frame(1, "/test/never");
    say(pair, &never);
    say(pair, &(ew__mem_frame){.event = EW__MEM_ROOM_OUT, .id = 1, .number = 0});
    assert_false(pair->end[RIG_SERVER].closing);
    say(pair, &(ew__mem_frame){.event = EW__MEM_ROOM_OUT, .id = 1, .number = 1});
    assert_true(pair->end[RIG_SERVER].gone);
    rig_finish(&r);
}

/* The calling side: a peer that breaks the protocol fails the call as such; statuses out of range are UNKNOWN. */
static void test_wire_mem__broken_answers(void **state) {
    (void)state;
    rig r;
    rig_init(&r, &ew__wire_mem, &(rig_options){.seed = 1});
    rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/x/y"});
    rig_call *broken = rig_open(pair, &(rig_request){.key = "/x/y"});
    rig_run(&r);
    say(pair, &(ew__mem_frame){.event = EW__MEM_FAIL, .id = hear(pair).id, .status = 77, .message = EW_STR("odd")});
    assert_int_equal(rc->status, EW_STATUS_UNKNOWN);
    rig_say(pair, "\0\0\0\1xxxx", 8);
    rig_run(&r);
    assert_int_equal(broken->status, EW_STATUS_INTERNAL);
    assert_int_equal(broken->origin, EW_ORIGIN_PROTOCOL);
    assert_int_equal(rig_capacity(pair), 0);
    rig_finish(&r);
}

/* After our deadline the peer's answer is late. */
static void test_wire_mem__answer_after_deadline(void **state) {
    (void)state;
    rig r;
    rig_init(&r, &ew__wire_mem, &(rig_options){.seed = 1});
    rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/x/y", .timeout_ms = 50});
    rig_run(&r);
    ew__mem_frame opened = hear(pair);
    assert_int_equal(opened.number, 50);
    rig_advance(&r, 50);
    assert_int_equal(rc->status, EW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(hear(pair).event, EW__MEM_CANCEL);
    assert_int_equal(r.side[RIG_CLIENT].executor.calls->live, 0); /* nothing waits for a peer that may never answer */
    uint64_t before = rig_dropped(&r, RIG_CLIENT);
    say(pair, &(ew__mem_frame){.event = EW__MEM_DONE, .id = opened.id, .payload = EW_STR("1")});
    assert_int_equal(rig_dropped(&r, RIG_CLIENT), before + 1);
    rig_finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_mem__frames),         cmocka_unit_test(test_wire_mem__limit),
        cmocka_unit_test(test_wire_mem__damaged),        cmocka_unit_test(test_wire_mem__bad_frames_close),
        cmocka_unit_test(test_wire_mem__id_in_use),      cmocka_unit_test(test_wire_mem__late),
        cmocka_unit_test(test_wire_mem__too_many),       cmocka_unit_test(test_wire_mem__too_much_room),
        cmocka_unit_test(test_wire_mem__broken_answers), cmocka_unit_test(test_wire_mem__answer_after_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
