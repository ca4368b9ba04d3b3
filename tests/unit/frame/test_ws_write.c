/*
 * tests/unit/frame/test_ws_write.c: WebSocket frames to send, masks, the closing handshake.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/ws.h"
#include "support/fail_env.h"

#define BYTES(literal) literal, sizeof(literal) - 1
#define expect_frame(frame, n, literal)                                                                                \
    do {                                                                                                               \
        assert_int_equal(n, sizeof(literal) - 1);                                                                      \
        assert_memory_equal(frame, literal, sizeof(literal) - 1);                                                      \
    } while (0)

typedef struct world {
    ew__test_env env;
    ew__ws_scratch scratch;
    ew__ws server, client;
} world;

static int set_up(void **state) {
    world *w = malloc(sizeof(*w));
    if (w == NULL) {
        return -1;
    }
    ew__test_env_init(&w->env, 5);
    ew__ws_scratch_init(&w->scratch, &w->env.env);
    ew__ws_init(&w->server, &w->scratch, true, 1 << 20);
    ew__ws_init(&w->client, &w->scratch, false, 1 << 20);
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    world *w = *state;
    ew__ws_done(&w->server);
    ew__ws_done(&w->client);
    ew__ws_scratch_done(&w->scratch);
    int left = (int)ew__test_env_live_blocks(&w->env);
    free(w);
    return left;
}

static void test_frame_ws_write__heads(void **state) {
    world *w = *state;
    uint8_t out[EW__WS_HEAD_ROOM];
    expect_frame(out, ew__ws_head(&w->server, false, 0, out), "\x81\x00");
    expect_frame(out, ew__ws_head(&w->server, true, 125, out), "\x82\x7d");
    expect_frame(out, ew__ws_head(&w->server, false, 126, out), "\x81\x7e\x00\x7e");
    expect_frame(out, ew__ws_head(&w->server, false, 65535, out), "\x81\x7e\xff\xff");
    expect_frame(out, ew__ws_head(&w->server, false, 65536, out), "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00");
    assert_int_equal(ew__ws_head(&w->client, false, 5, out), 6);
    assert_memory_equal(out, "\x81\x85", 2);
    assert_int_equal(ew__ws_head(&w->client, true, 65536, out), 14);
    assert_memory_equal(out, "\x82\xff\x00\x00\x00\x00\x00\x01\x00\x00", 10);
    assert_int_equal(ew__ws_head(&w->server, true, UINT64_C(1) << 63, out), 0);
}

/* Every slice and offset gives the same as byte by byte. */
static void test_frame_ws_write__masks(void **state) {
    (void)state;
    static const uint8_t key[4] = {0x11, 0x22, 0x44, 0x88};
    uint8_t plain[100], masked[100];
    for (size_t i = 0; i < sizeof(plain); i++) {
        plain[i] = (uint8_t)(i * 7);
    }
    for (size_t n = 0; n <= sizeof(plain); n++) {
        for (size_t at = 0; at <= n; at += 1 + at / 4) {
            memcpy(masked, plain, sizeof(plain));
            ew__ws_mask(masked, at, key, 0);
            ew__ws_mask(masked + at, n - at, key, at);
            for (size_t i = 0; i < sizeof(plain); i++) {
                assert_int_equal(masked[i], i < n ? plain[i] ^ key[i % 4] : plain[i]);
            }
        }
    }
}

static void test_frame_ws_write__tells_ascii(void **state) {
    (void)state;
    static const uint8_t key[4] = {0x80, 0x80, 0x80, 0x80};
    uint8_t bytes[70], out[70];
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        memset(bytes, 'a' | 0x80, sizeof(bytes));
        assert_true(ew__ws_xor(out, bytes, n, key));
        for (size_t at = 0; at < n; at++) {
            bytes[at] = 'a';
            assert_false(ew__ws_xor(out, bytes, n, key));
            bytes[at] = 'a' | 0x80;
        }
    }
}

static void test_frame_ws_write__keys_are_used_once(void **state) {
    world *w = *state;
    uint8_t keys[300][4], out[EW__WS_HEAD_ROOM];
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(ew__ws_head(&w->client, false, 5, out), 6);
        memcpy(keys[i], out + 2, 4);
        for (size_t k = 0; k < i; k++) {
            assert_memory_not_equal(keys[i], keys[k], 4);
        }
    }
}

static void test_frame_ws_write__control_frames(void **state) {
    world *w = *state;
    uint8_t out[EW__WS_CONTROL_ROOM];
    char long_text[126];
    memset(long_text, 'x', sizeof(long_text));
    expect_frame(out, ew__ws_ping(&w->server, EW_STR("hi"), out), "\x89\x02hi");
    expect_frame(out, ew__ws_pong(&w->server, EW_STR(""), out), "\x8a\x00");
    assert_int_equal(ew__ws_ping(&w->server, ew__str(long_text, 125), out), 127);
    assert_int_equal(ew__ws_ping(&w->server, ew__str(long_text, 126), out), 0);
    size_t n = ew__ws_ping(&w->client, EW_STR("hello"), out);
    assert_int_equal(n, 11);
    assert_memory_equal(out, "\x89\x85", 2);
    assert_memory_not_equal(out + 6, "hello", 5);
    assert_int_equal(ew__ws_feed(&w->server, out, n), EW_OK);
    assert_int_equal(ew__ws_next(&w->server, 0), EW__WS_PING);
    assert_memory_equal(ew__ws_payload(&w->server).ptr, "hello", 5);
    expect_frame(out, ew__ws_answer(&w->server, out), "\x8a\x05hello");
    assert_int_equal(ew__ws_next(&w->server, 0), EW__WS_MORE);
    assert_int_equal(ew__ws_answer(&w->server, out), 0);
}

static void test_frame_ws_write__close_frames(void **state) {
    world *w = *state;
    uint8_t out[EW__WS_CONTROL_ROOM];
    char text[200];
    for (size_t i = 0; i < sizeof(text); i += 2) {
        memcpy(text + i, "\xc3\xa9", 2);
    }
    expect_frame(out, ew__ws_close(&w->server, 1001, EW_STR("bye"), out),
                 "\x88\x05\x03\xe9"
                 "bye");
    assert_int_equal(ew__ws_close(&w->server, 1000, EW_STR(""), out), 0); /* once */
    assert_int_equal(ew__ws_ping(&w->server, EW_STR(""), out), 0);
    assert_int_equal(ew__ws_pong(&w->server, EW_STR(""), out), 0);
    assert_int_equal(ew__ws_head(&w->server, false, 1, out), 0);
    assert_false(ew__ws_may_send(&w->server));
    static const struct {
        uint16_t code;
        const char *reason, *frame;
        size_t n;
    } cases[] = {{1005, "ignored", "\x88\x00", 2},
                 {1006, "", "\x88\x02\x03\xf3", 4},
                 {5000, "", "\x88\x02\x03\xf3", 4},
                 {4999, "", "\x88\x02\x13\x87", 4},
                 {1000, "\xff", "\x88\x02\x03\xe8", 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ew__ws_init(&w->server, &w->scratch, true, 100);
        assert_int_equal(
            ew__ws_close(&w->server, cases[i].code, ew__str(cases[i].reason, strlen(cases[i].reason)), out),
            cases[i].n);
        assert_memory_equal(out, cases[i].frame, cases[i].n);
    }
    for (size_t n = 120; n < 130; n++) { /* cut between two characters */
        ew__ws_init(&w->server, &w->scratch, true, 100);
        size_t fits = n <= 123 ? (n % 2 == 0 ? n : 0) : 122;
        assert_int_equal(ew__ws_close(&w->server, 1000, ew__str(text, n), out), 4 + fits);
    }
}

static void test_frame_ws_write__closing_handshake(void **state) {
    world *w = *state;
    uint8_t out[EW__WS_CONTROL_ROOM];
    size_t n = ew__ws_close(&w->client, 3001, EW_STR("enough"), out);
    assert_false(ew__ws_is_closed(&w->client));
    assert_int_equal(ew__ws_feed(&w->server, out, n), EW_OK);
    assert_int_equal(ew__ws_next(&w->server, 0), EW__WS_CLOSE);
    assert_int_equal(ew__ws_code(&w->server), 3001);
    assert_memory_equal(ew__ws_payload(&w->server).ptr, "enough", 6);
    assert_true(ew__ws_may_send(&w->server) && !ew__ws_is_closed(&w->server));
    /* Messages may still go out before the answer, and are read by the one that closes. */
    assert_int_equal(ew__ws_head(&w->server, false, 1, out), 2);
    assert_int_equal(ew__ws_feed(&w->client, BYTES("\x81\x01x\x89\x00")), EW_OK);
    assert_int_equal(ew__ws_next(&w->client, 0), EW__WS_TEXT);
    assert_int_equal(ew__ws_next(&w->client, 0), EW__WS_PING);
    assert_int_equal(ew__ws_answer(&w->client, out), 0);
    assert_int_equal(ew__ws_next(&w->client, 0), EW__WS_MORE);
    n = ew__ws_answer(&w->server, out);
    expect_frame(out, n, "\x88\x02\x0b\xb9");
    assert_true(ew__ws_is_closed(&w->server));
    assert_int_equal(ew__ws_feed(&w->client, out, n), EW_OK);
    assert_int_equal(ew__ws_next(&w->client, 0), EW__WS_CLOSE);
    assert_int_equal(ew__ws_answer(&w->client, out), 0);
    assert_true(ew__ws_is_closed(&w->client));
    assert_int_equal(ew__ws_feed(&w->client, BYTES("\xff\xff")), EW_OK); /* nothing more is read */
    assert_int_equal(ew__ws_next(&w->client, 0), EW__WS_MORE);
}

static void test_frame_ws_write__answers_errors(void **state) {
    world *w = *state;
    uint8_t out[EW__WS_CONTROL_ROOM];
    assert_int_equal(ew__ws_feed(&w->client, BYTES("\x81\x01\xff")), EW_OK);
    assert_int_equal(ew__ws_next(&w->client, 0), EW__WS_ERROR);
    size_t n = ew__ws_answer(&w->client, out);
    assert_true(n > 8 && out[0] == 0x88);
    assert_int_equal(ew__ws_answer(&w->client, out), 0); /* once */
    assert_int_equal(ew__ws_feed(&w->server, out, n), EW_OK);
    assert_int_equal(ew__ws_next(&w->server, 0), EW__WS_CLOSE);
    assert_int_equal(ew__ws_code(&w->server), 1007);
    assert_int_equal(ew__ws_payload(&w->server).len, strlen(ew__ws_error_text(&w->client)));
    expect_frame(out, ew__ws_answer(&w->server, out), "\x88\x02\x03\xef");
}

#define WS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WS_TEST(test_frame_ws_write__heads),
        cmocka_unit_test(test_frame_ws_write__masks),
        cmocka_unit_test(test_frame_ws_write__tells_ascii),
        WS_TEST(test_frame_ws_write__keys_are_used_once),
        WS_TEST(test_frame_ws_write__control_frames),
        WS_TEST(test_frame_ws_write__close_frames),
        WS_TEST(test_frame_ws_write__closing_handshake),
        WS_TEST(test_frame_ws_write__answers_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
