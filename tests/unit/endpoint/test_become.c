/*
 * tests/unit/endpoint/test_become.c: a connection goes on as another wire's.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/endpoint/fake.h"

static void test_switch(void **state) {
    (void)state;
    fake fake_;
    end client;
    fake_init(&fake_, &wire_front);
    fake_dial(&client);
    end_send(&client, "a", 1);
    run_until(&f->w, &f->n_links, 1);
    run_ms(&f->w, 30);
    end_send(&client, "b!rest", 6);
    run_until_bytes(&f->w, &client.n_in, 9);
    assert_string_equal(client.in, "over;rest");
    end_send(&client, "!more", 5);
    run_until_bytes(&f->w, &client.n_in, 14);
    assert_string_equal(client.in, "over;rest!more");
    assert_int_equal(f->n_ready, 1);
    assert_int_equal(f->n_greet, 1);
    ew__stream_finish(&client.stream);
    run_until(&f->w, &client.n_closed, 1);
    end_free(&client);
    fake_done();
    assert_int_equal(f->why, EW_OK);
    assert_string_equal(f->diary,
                        "front+ front.input front.input front- back+ back.input back.input back.eof back- scratch-");
}

/* Bytes that come before the switch are the new peer's. */
static void test_meanwhile(void **state) {
    (void)state;
    fake fake_;
    end client;
    enum { N = 300000 };
    static char big[N];
    fake_init(&fake_, &wire_front);
    fake_dial(&client);
    memset(big, 'x', sizeof big);
    big[0] = '!';
    end_send(&client, big, sizeof big);
    run_until_bytes(&f->w, &client.n_in, N - 1 + 5);
    end_close(&client);
    fake_done();
    assert_non_null(strstr(f->diary, "front+ front.input front- back+ back.input"));
    assert_non_null(strstr(f->diary, "back.eof back- scratch-"));
    assert_null(strstr(f->diary, "front.eof"));
}

/* In the very same turn, and so is the end. */
static void test_same_turn(void **state) {
    (void)state;
    fake fake_;
    end client;
    fake_init(&fake_, &wire_front);
    f->more_meanwhile = true;
    fake_dial(&client);
    end_send(&client, "!rest", 5);
    run_until(&f->w, &client.n_eof, 1);
    assert_string_equal(client.in, "over;rest+mid");
    end_close(&client);
    fake_done();
    assert_string_equal(f->diary, "front+ front.input front- back+ back.input back.eof back- scratch-");
}

static void test_empty_rest_and_eof(void **state) {
    (void)state;
    fake fake_;
    end client;
    fake_init(&fake_, &wire_front);
    f->greet_refused = true;
    fake_dial(&client);
    end_send(&client, "!", 1);
    ew__stream_flush(&client.stream);
    assert_int_equal(shutdown(client.stream.fd, SHUT_WR), 0);
    run_until(&f->w, &client.n_eof, 1);
    assert_string_equal(client.in, "over;");
    end_close(&client);
    fake_done();
    assert_string_equal(f->diary, "front+ front.input front- back+ unwelcome back.eof back- scratch-");
}

static void test_closed_before(void **state) {
    (void)state;
    fake fake_;
    end client;
    fake_init(&fake_, &wire_front);
    f->abort_at_once = true;
    fake_dial(&client);
    end_send(&client, "!rest", 5);
    run_until(&f->w, &f->n_closed, 1);
    run_ms(&f->w, 30);
    end_close(&client);
    fake_done();
    assert_string_equal(f->diary, "front+ front.input front-");
}

static void test_init_fails(void **state) {
    (void)state;
    fake fake_;
    end client;
    fake_init(&fake_, &wire_front);
    f->back_init = EW_ELIMIT;
    fake_dial(&client);
    end_send(&client, "!rest", 5);
    run_until(&f->w, &f->n_closed, 1);
    assert_int_equal(f->why, EW_ELIMIT);
    end_close(&client);
    fake_done();
    assert_string_equal(f->diary, "front+ front.input front- back+ scratch-");
}

static void test_drains_meanwhile(void **state) {
    (void)state;
    fake fake_;
    end client;
    fake_init(&fake_, &wire_front);
    f->drain_meanwhile = true;
    fake_dial(&client);
    end_send(&client, "!rest", 5);
    run_until(&f->w, &client.n_eof, 1);
    assert_string_equal(client.in, "over;rest");
    end_close(&client);
    fake_done();
    assert_string_equal(f->diary, "front+ front.input front- back+ back.input back.drain back- scratch-");
}

/* Whichever allocation fails: the switch happens, or the connection closes. */
static void test_no_memory(void **state) {
    (void)state;
    unsigned n_switched = 0, n_lost = 0;
    for (unsigned nth = 1; n_switched < 3 && nth < 60; nth++) {
        fake fake_;
        end client;
        fake_init(&fake_, &wire_front);
        fake_dial(&client);
        run_until(&f->w, &f->n_links, 1);
        end_send(&client, "!rest", 5);
        f->w.fail_at = f->w.n_allocations + nth;
        uint64_t until = ew__executor_read_clock(&f->w.loop.executor) + PATIENCE_NS;
        while (client.n_in < 9 && client.n_eof + client.n_closed == 0) {
            assert_true(ew__executor_read_clock(&f->w.loop.executor) < until);
            uv_run(f->w.loop.uv, UV_RUN_ONCE);
        }
        f->w.fail_at = 0;
        n_switched += client.n_in == 9;
        n_lost += client.n_in < 9;
        if (client.n_closed == 0)
            end_close(&client);
        else
            end_free(&client);
        fake_done();
    }
    assert_int_equal(n_switched, 3);
    assert_true(n_lost >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switch),           cmocka_unit_test(test_meanwhile),
        cmocka_unit_test(test_same_turn),        cmocka_unit_test(test_empty_rest_and_eof),
        cmocka_unit_test(test_closed_before),    cmocka_unit_test(test_init_fails),
        cmocka_unit_test(test_drains_meanwhile), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
