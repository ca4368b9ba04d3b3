/*
 * tests/unit/endpoint/test_one_shot.c: bytes on a connection of their own: they arrive whole, with an end, and whatever the
 * other side does, nothing is left of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/one_shot.h"
#include "support/port.h"
#include "unit/io/world.h"

#define MOST 64

static world w;
static ew__one_shots asides;
static ew__listener listener;
static ew__address address;
static end ends[MOST];
static unsigned n_ends, n_gone, n_listener_closed;

static void on_connection(ew__listener *from) {
    assert_true(n_ends < MOST);
    end *e = &ends[n_ends++];
    end_init(e, &w);
    ew_err err = ew__accept(from, &e->stream);
    end_start(e);
    assert_int_equal(err, EW_OK);
}

static void on_gone(ew__one_shots *all) {
    assert_ptr_equal(all, &asides);
    assert_int_equal(all->n, 0);
    n_gone++;
}

static void begin(const char *text) {
    world_init(&w);
    n_ends = n_gone = n_listener_closed = 0;
    memset(&listener, 0, sizeof listener);
    ew__one_shots_init(&asides, &w.loop, on_gone);
    assert_int_equal(ew__address_parse(text, &address), EW_OK);
    assert_int_equal(ew__listen(&listener, &w.loop, &address, on_connection), EW_OK);
}

static void on_listener_closed(ew__listener *closed) {
    (void)closed;
    n_listener_closed++;
}

static void finish(void) {
    assert_int_equal(asides.n, 0);
    for (unsigned i = 0; i < n_ends; i++)
        end_close(&ends[i]);
    ew__listener_close(&listener, on_listener_closed);
    run_until(&w, &n_listener_closed, 1);
    world_done(&w);
}

static ew__where there(void) { return (ew__where){.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = address.port}; }

static void arrives(void **state) {
    (void)state;
    begin("127.0.0.1:0");
    ew__where where = there();
    char *bytes = calloc(1, 100000); /* more than one block */
    assert_non_null(bytes);
    bytes[99999] = '!';
    assert_int_equal(ew__one_shot_send(&asides, &where, "hello", 5, false), EW_OK);
    run_until(&w, &n_ends, 1);
    run_until(&w, &ends[0].n_eof, 1);
    assert_string_equal(ends[0].in, "hello");
    end_send(&ends[0], "nobody reads this", 17);
    assert_int_equal(n_gone, 0);
    ew__stream_finish(&ends[0].stream);
    run_until(&w, &n_gone, 1);
    assert_int_equal(ew__one_shot_send(&asides, &where, bytes, 100000, false), EW_OK);
    memset(bytes, 1, 100000); /* they were copied */
    run_until(&w, &n_ends, 2);
    run_until(&w, &ends[1].n_eof, 1);
    assert_int_equal(ends[1].n_in, 100000);
    assert_true(ends[1].in[0] == 0 && ends[1].in[99999] == '!');
    run_until(&w, &n_gone, 2); /* the other side does not close: it is not waited for */
    free(bytes);
    finish();
}

/* The other side takes nothing: that has its limit, too, and not that of other connections. */
static void nobody_reads(void **state) {
    (void)state;
    const size_t n = (size_t)16 << 20;
    char *bytes = calloc(1, n);
    assert_non_null(bytes);
    begin("127.0.0.1:0");
    w.limits.stall_ms = 1000 * 1000;
    ew__where where = there();
    assert_int_equal(ew__one_shot_send(&asides, &where, bytes, n, false), EW_OK);
    run_until(&w, &n_ends, 1);
    ew__stream_read(&ends[0].stream, false);
    run_until(&w, &n_gone, 1);
    assert_true(ends[0].n_in < n);
    free(bytes);
    finish();
}

static void over_unix(void **state) {
    (void)state;
    char path[64], text[80];
    (void)snprintf(path, sizeof path, "/tmp/ew-aside-%ld.sock", (long)getpid());
    (void)snprintf(text, sizeof text, "unix:%s", path);
    begin(text);
    ew__where where = {.kind = EW__WHERE_UNIX, .path = path};
    assert_int_equal(ew__one_shot_send(&asides, &where, "hello", 5, false), EW_OK);
    run_until(&w, &n_ends, 1);
    run_until(&w, &ends[0].n_eof, 1);
    assert_string_equal(ends[0].in, "hello");
    run_until(&w, &n_gone, 1);
    finish();
}

/* A few at once; the others wait for their turn, and those that would be too many are refused. */
static void not_so_many(void **state) {
    (void)state;
    begin("127.0.0.1:0");
    ew__where where = there(), child = {.kind = EW__WHERE_CHILD, .argv = (const char *const[]){"cat", NULL}};
    assert_int_equal(ew__one_shot_send(&asides, &child, "x", 1, false), EW_EBUSY);
    for (int i = 0; i < EW__ONE_SHOTS_MAX + 20; i++)
        assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, true), EW_OK);
    run_until(&w, &n_ends, EW__ONE_SHOTS_MAX);
    run_ms(&w, 50);
    assert_int_equal(n_ends, EW__ONE_SHOTS_MAX);
    ew__stream_finish(&ends[3].stream); /* answered: the next may come */
    run_until(&w, &n_ends, EW__ONE_SHOTS_MAX + 1);
    for (int i = 0; i < EW__ONE_SHOTS_WAITING - 19; i++)
        assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, false), EW_OK);
    assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, false), EW_EBUSY);
    ew__one_shots_close(&asides);
    run_until(&w, &n_gone, 1);
    assert_int_equal(ew__one_shot_send(&asides, &where, "y", 1, false), EW_OK);
    run_until(&w, &n_gone, 2);
    finish();
}

/* What they hold together is limited, too; one that is large enough alone is taken when there is no other. */
static void not_so_much(void **state) {
    (void)state;
    const size_t n = EW__ONE_SHOTS_BYTES / 2 + 1;
    char *bytes = calloc(1, 2 * n);
    assert_non_null(bytes);
    begin("127.0.0.1:0");
    ew__where where = there();
    assert_int_equal(ew__one_shot_send(&asides, &where, bytes, n, true), EW_OK);
    assert_int_equal(ew__one_shot_send(&asides, &where, bytes, n, true), EW_EBUSY);
    assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, true), EW_OK);
    ew__one_shots_close(&asides);
    run_until(&w, &n_gone, 1);
    assert_int_equal(asides.bytes, 0);
    assert_int_equal(ew__one_shot_send(&asides, &where, bytes, 2 * n, true), EW_OK);
    ew__one_shots_close(&asides);
    run_until(&w, &n_gone, 2);
    free(bytes);
    finish();
}

/* Where the peer answers, our side stays open until it has. */
static void answered(void **state) {
    (void)state;
    begin("127.0.0.1:0");
    ew__where where = there();
    assert_int_equal(ew__one_shot_send(&asides, &where, "ask", 3, true), EW_OK);
    run_until(&w, &n_ends, 1);
    run_ms(&w, 50);
    assert_string_equal(ends[0].in, "ask");
    assert_int_equal(ends[0].n_eof, 0);
    assert_int_equal(n_gone, 0);
    end_send(&ends[0], "answer", 6);
    ew__stream_finish(&ends[0].stream);
    run_until(&w, &n_gone, 1);
    finish();
}

static void nobody_there(void **state) {
    uint16_t port = free_port();
    (void)state;
    begin("127.0.0.1:0");
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = port};
    assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, false), EW_OK);
    run_until(&w, &n_gone, 1);
    finish();
}

/* At any time: before it is connected, and while it waits for the other side's end. */
static void given_up(void **state) {
    (void)state;
    begin("127.0.0.1:0");
    ew__where where = there();
    ew__one_shots_close(&asides);
    assert_int_equal(n_gone, 0); /* there was none */
    assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, false), EW_OK);
    assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, false), EW_OK);
    ew__one_shots_close(&asides);
    ew__one_shots_close(&asides);
    run_until(&w, &n_gone, 1);
    run_ms(&w, 50);
    for (unsigned i = 0; i < n_ends; i++)
        assert_int_equal(ends[i].n_in, 0); /* it may have been connected, but nothing was sent */
    unsigned before = n_ends;
    assert_int_equal(ew__one_shot_send(&asides, &where, "x", 1, false), EW_OK);
    run_until(&w, &n_ends, before + 1);
    run_until(&w, &ends[before].n_eof, 1);
    ew__one_shots_close(&asides);
    run_until(&w, &n_gone, 2);
    finish();
}

static void no_memory(void **state) {
    (void)state;
    unsigned n_refused = 0;
    begin("127.0.0.1:0");
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = 1};
    for (uint64_t n = 1; n < 10; n++) {
        unsigned before = n_gone;
        w.n_allocations = 0;
        w.fail_at = n;
        ew_err err = ew__one_shot_send(&asides, &where, "x", 1, false);
        if (err == EW_OK)
            run_until(&w, &n_gone, before + 1);
        else
            assert_int_equal(err, EW_ENOMEM);
        n_refused += err != EW_OK;
        ew__blocks_trim(&w.loop.executor.blocks, 0);
    }
    assert_true(n_refused >= 2);
    w.fail_at = 0;
    finish();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrives),     cmocka_unit_test(nobody_reads), cmocka_unit_test(over_unix),
        cmocka_unit_test(not_so_many), cmocka_unit_test(nobody_there), cmocka_unit_test(given_up),
        cmocka_unit_test(no_memory),   cmocka_unit_test(answered),     cmocka_unit_test(not_so_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
