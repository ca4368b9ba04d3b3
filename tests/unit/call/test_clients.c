/*
 * tests/unit/call/test_clients.c: those who connect, by their address: limits at n - 1, n and n + 1.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "call/clients.h"
#include "base/util.h"
#include "support/fail_env.h"

static void key_of(uint32_t number, uint8_t key[EW__CLIENT_KEY]) {
    memset(key, 0, EW__CLIENT_KEY);
    memcpy(key, &number, sizeof number);
}

typedef struct scene {
    ew__test_env env;
    ew__clients clients;
} scene;

static void begin(scene *s) {
    ew__test_env_init(&s->env, 1);
    ew__clients_init(&s->clients, &s->env.env);
}

static void end(scene *s) {
    ew__clients_done(&s->clients);
    assert_int_equal(ew__test_env_live_blocks(&s->env), 0);
}

static void test_base_clients__connections(void **state) {
    (void)state;
    scene s;
    uint8_t a[EW__CLIENT_KEY], b[EW__CLIENT_KEY];
    begin(&s);
    key_of(1, a);
    key_of(2, b);
    s.clients.connections = 3;
    ew__client_row *row = ew__clients_enter(&s.clients, a, false);
    assert_ptr_equal(ew__clients_enter(&s.clients, a, false), row);
    assert_ptr_equal(ew__clients_enter(&s.clients, a, false), row);
    assert_null(ew__clients_enter(&s.clients, a, false));
    ew__client_row *other = ew__clients_enter(&s.clients, b, false); /* another address has its own */
    assert_non_null(other);
    ew__clients_leave(&s.clients, row);
    assert_ptr_equal(ew__clients_enter(&s.clients, a, false), row);
    assert_null(ew__clients_enter(&s.clients, a, false));
    for (int i = 0; i < 3; i++) {
        ew__clients_leave(&s.clients, row);
    }
    ew__clients_leave(&s.clients, other);
    end(&s);
}

static void test_base_clients__this_machine_counts_by_hand_only(void **state) {
    (void)state;
    scene s;
    uint8_t a[EW__CLIENT_KEY];
    begin(&s);
    key_of(1, a);
    s.clients.connections = 1;
    ew__client_row *row = ew__clients_enter(&s.clients, a, true);
    assert_non_null(ew__clients_enter(&s.clients, a, true));
    s.clients.count_local = true;
    assert_null(ew__clients_enter(&s.clients, a, true));
    ew__clients_leave(&s.clients, row);
    ew__clients_leave(&s.clients, row);
    end(&s);
}

static void test_base_clients__rate(void **state) {
    (void)state;
    scene s;
    uint8_t a[EW__CLIENT_KEY];
    uint64_t now = EW__MS(5000);
    begin(&s);
    key_of(1, a);
    ew__client_row *row = ew__clients_enter(&s.clients, a, false);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ew__clients_take_call(&s.clients, row, now), 0); /* no limit */
    }
    s.clients.calls_per_second = 10;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ew__clients_take_call(&s.clients, row, now), 0);
    }
    assert_int_equal(ew__clients_take_call(&s.clients, row, now), 100);
    assert_int_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(99)), 1);
    assert_int_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(100)), 0);
    assert_int_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(100)), 100);
    for (int i = 0; i < 10; i++) { /* a second later it is full, and not more than full */
        assert_int_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(9000)), 0);
    }
    assert_int_not_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(9000)), 0);
    s.clients.calls_per_second = 1;
    assert_int_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(90000)), 0);
    assert_int_equal(ew__clients_take_call(&s.clients, row, now + EW__MS(90000)), 1000);
    ew__clients_leave(&s.clients, row);
    end(&s);
}

static void test_base_clients__wrong_tokens(void **state) {
    (void)state;
    scene s;
    uint8_t a[EW__CLIENT_KEY];
    uint64_t now = EW__MS(5000);
    begin(&s);
    key_of(1, a);
    ew__client_row *row = ew__clients_enter(&s.clients, a, false);
    for (int i = 0; i < EW__CLIENT_FAILURES; i++) {
        assert_int_equal(ew__clients_shut(&s.clients, row, now), 0);
        ew__clients_failed(&s.clients, row, now + (uint64_t)i);
    }
    assert_in_range(ew__clients_shut(&s.clients, row, now), EW__CLIENT_SHUT_MS - 1, EW__CLIENT_SHUT_MS + 1);
    ew__clients_leave(&s.clients, row); /* a new connection does not help */
    assert_ptr_equal(ew__clients_enter(&s.clients, a, false), row);
    assert_int_not_equal(ew__clients_shut(&s.clients, row, now + EW__MS(900)), 0);
    now += EW__MS(EW__CLIENT_SHUT_MS + 1);
    assert_int_equal(ew__clients_shut(&s.clients, row, now), 0);
    for (int i = 0; i < 100; i++) { /* slowly is fine */
        ew__clients_failed(&s.clients, row, now += EW__MS(200));
        assert_int_equal(ew__clients_shut(&s.clients, row, now), 0);
    }
    ew__clients_leave(&s.clients, row);
    end(&s);
}

static void test_base_clients__those_who_have_gone_are_forgotten(void **state) {
    (void)state;
    scene s;
    uint8_t key[EW__CLIENT_KEY];
    begin(&s);
    for (uint32_t i = 0; i < EW__CLIENTS_IDLE + 10; i++) {
        key_of(i, key);
        ew__clients_leave(&s.clients, ew__clients_enter(&s.clients, key, false));
    }
    assert_int_equal(s.clients.n_idle, EW__CLIENTS_IDLE);
    assert_int_equal(s.clients.rows.n, EW__CLIENTS_IDLE);
    key_of(0, key);
    assert_null(ew__map_get(&s.clients.rows, ew__str(key, sizeof key)));
    end(&s);
}

static void test_base_clients__without_memory(void **state) {
    (void)state;
    uint8_t key[EW__CLIENT_KEY];
    key_of(1, key);
    for (unsigned n = 1; n < 5; n++) {
        scene s;
        begin(&s);
        ew__test_env_fail_at(&s.env, n, false);
        ew__client_row *row = ew__clients_enter(&s.clients, key, false);
        if (row) {
            ew__clients_leave(&s.clients, row);
        }
        end(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_clients__connections),
        cmocka_unit_test(test_base_clients__this_machine_counts_by_hand_only),
        cmocka_unit_test(test_base_clients__rate),
        cmocka_unit_test(test_base_clients__wrong_tokens),
        cmocka_unit_test(test_base_clients__those_who_have_gone_are_forgotten),
        cmocka_unit_test(test_base_clients__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
