/*
 * tests/unit/frame/test_ws.c: the WebSocket reader: verdicts on frames, limits, states, memory. Frames are spelled out
 * in bytes; every one is also fed cut at every place. (The Autobahn cases: test_ws_autobahn.c.)
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/ws.h"
#include "support/fail_env.h"

#define BYTES(literal) literal, sizeof(literal) - 1
#define KEY0 "\0\0\0\0" /* a mask that changes nothing, so that frames can be read */

typedef struct world {
    ew__test_env env;
    ew__ws_scratch scratch;
    ew__ws ws;
} world;

static void open_world(world *w, bool server, size_t max) {
    ew__test_env_init(&w->env, 3);
    ew__ws_scratch_init(&w->scratch, &w->env.env);
    ew__ws_init(&w->ws, &w->scratch, server, max);
}

static void close_world(world *w) {
    ew__ws_done(&w->ws);
    ew__ws_scratch_done(&w->scratch);
    assert_int_equal(ew__test_env_live_blocks(&w->env), 0);
}

/* What comes out: "T<text>|", "B", "I" ping, "O" pong, "C<code><reason>|", "!<code>". */
static void drain(world *w, FILE *out) {
    static const char names[] = "?TBIOC!";
    for (int turns = 0; turns < 300000; turns++) {
        ew__ws_event event = ew__ws_next(&w->ws, w->env.now_ns);
        ew_str payload = ew__ws_payload(&w->ws);
        if (event == EW__WS_MORE) {
            assert_int_equal(ew__ws_unread(&w->ws), 0);
            return;
        }
        (void)fputc(names[event], out);
        if (event == EW__WS_CLOSE || event == EW__WS_ERROR) {
            (void)fprintf(out, "%u", ew__ws_code(&w->ws));
        }
        if (event == EW__WS_ERROR) {
            assert_true(strlen(ew__ws_error_text(&w->ws)) > 0);
            assert_int_equal(ew__ws_next(&w->ws, w->env.now_ns), EW__WS_ERROR);
            assert_int_equal(ew__ws_feed(&w->ws, "x", 1), EW_OK);
            return;
        }
        (void)fwrite(payload.len > 0 ? payload.ptr : "", 1, payload.len, out);
        (void)fputc('|', out);
    }
    fail_msg("no end of events");
}

static char *run(bool server, size_t max, const char *bytes, size_t n, size_t cut, size_t step) {
    char *text = NULL;
    size_t text_len;
    FILE *out = open_memstream(&text, &text_len);
    world *w = malloc(sizeof(*w));
    assert_non_null(out);
    assert_non_null(w);
    open_world(w, server, max);
    for (size_t at = 0; at < n && w->ws.event != EW__WS_ERROR;) {
        size_t piece = step > 0 ? step : at < cut ? cut : n - at;
        piece = piece < n - at ? piece : n - at;
        char *copy = malloc(piece); /* freed as soon as the reader may not look at it */
        assert_non_null(copy);
        memcpy(copy, bytes + at, piece);
        assert_int_equal(ew__ws_feed(&w->ws, copy, piece), EW_OK);
        drain(w, out);
        free(copy);
        at += piece;
    }
    close_world(w);
    free(w);
    (void)fclose(out);
    return text;
}

static void expect_max(bool server, size_t max, const char *bytes, size_t n, const char *want) {
    for (size_t cut = 0; cut < n + 3; cut++) { /* whole, cut in two everywhere, in pieces of 1 to 3 */
        char *text = run(server, max, bytes, n, cut < n ? cut : 0, cut >= n ? cut - n + 1 : 0);
        if (strcmp(text, want) != 0) {
            fail_msg("at %zu: \"%s\" instead of \"%s\"", cut, text, want);
        }
        free(text);
    }
}

static void expect_in(const char *bytes, size_t n, const char *want) { expect_max(true, 1000, bytes, n, want); }

static void test_frame_ws__reads_messages(void **state) {
    (void)state;
    expect_in(BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "THello|"); /* RFC 6455, 5.7 */
    expect_max(false, 1000, BYTES("\x81\x05Hello"), "THello|");
    expect_max(false, 1000, BYTES("\x01\x03Hel\x80\x02lo"), "THello|");
    expect_in(BYTES("\x82\x80" KEY0 "\x81\x80" KEY0), "B|T|");
    expect_in(BYTES("\x81\x81" KEY0 "a\x82\x82" KEY0 "bc\x81\x81" KEY0 "d"), "Ta|Bbc|Td|");
    expect_in(BYTES("\x01\x80" KEY0 "\x00\x80" KEY0 "\x80\x80" KEY0), "T|");
    expect_in(BYTES("\x01\x81" KEY0 "a\x89\x82" KEY0 "hi\x00\x81" KEY0 "b\x8a\x80" KEY0 "\x80\x81" KEY0 "c"),
              "Ihi|O|Tabc|");
    expect_in(BYTES("\x02\x81" KEY0 "\xff\x80\x81" KEY0 "\x80"), "B\xff\x80|");
    expect_max(false, 1000, BYTES("\x89\x02hi\x8a\x01!\x82\x01x"), "Ihi|O!|Bx|");
}

static void test_frame_ws__lengths(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 124, 125, 126, 127, 65535, 65536, 65537};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (int server = 0; server < 2; server++) {
            size_t n = lengths[i];
            world *w = malloc(sizeof(*w));
            ew__ws peer;
            char *bytes = malloc(n + 20);
            assert_non_null(w);
            assert_non_null(bytes);
            open_world(w, server != 0, 1 << 20);
            ew__ws_init(&peer, &w->scratch, server == 0, 1 << 20);
            size_t head = ew__ws_head(&peer, true, n, (uint8_t *)bytes);
            memset(bytes + head, 'z', n);
            if (server != 0) {
                ew__ws_mask(bytes + head, n, (uint8_t *)bytes + head - 4, 0);
            }
            assert_int_equal(ew__ws_feed(&w->ws, bytes, head + n), EW_OK);
            assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_BINARY);
            ew_str payload = ew__ws_payload(&w->ws);
            assert_int_equal(payload.len, n);
            for (size_t k = 0; k < n; k++) {
                assert_int_equal(payload.ptr[k], 'z');
            }
            if (server == 0) { /* nothing was copied */
                assert_true(payload.ptr == bytes + head);
            }
            assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_MORE);
            assert_true(ew__ws_is_idle(&w->ws));
            ew__ws_done(&peer);
            close_world(w);
            free(bytes);
            free(w);
        }
    }
}

static void test_frame_ws__refuses_frames(void **state) {
    (void)state;
    static const char valid[] = "\x81\x81" KEY0 "a";
    for (unsigned first = 0; first < 256; first++) { /* every first byte */
        char frame[sizeof(valid)];
        memcpy(frame, valid, sizeof(valid));
        frame[0] = (char)first;
        unsigned opcode = first & 15;
        const char *want = (first & 0x70) != 0 || opcode == 0 || (opcode > 2 && opcode < 8) || opcode > 10 ? "!1002"
                           : opcode >= 8 && first < 0x80                                                   ? "!1002"
                           : opcode == 8                                                                   ? "!1002"
                           : first < 0x80                                                                  ? ""
                           : opcode == 1                                                                   ? "Ta|"
                           : opcode == 2                                                                   ? "Ba|"
                           : opcode == 9                                                                   ? "Ia|"
                                                                                                           : "Oa|";
        expect_in(frame, sizeof(valid) - 1, want);
    }
    expect_in(BYTES("\x81\x01"), "!1002");               /* not masked: told by the second byte */
    expect_max(false, 1000, BYTES("\x81\x81"), "!1002"); /* masked */
    expect_in(BYTES("\x89\xfe"), "!1002");               /* a control frame of 126 bytes or more */
    expect_in(BYTES("\x81\xfe\x00\x7d"), "!1002");       /* lengths that are too long for what they say */
    expect_in(BYTES("\x81\xff\x00\x00\x00\x00\x00\x00\xff\xff"), "!1002");
    expect_in(BYTES("\x81\xff\x80\x00\x00\x00\x00\x00\x00\x00"), "!1002"); /* the top bit */
    expect_in(BYTES("\x01\x81" KEY0 "a\x81"), "!1002");                    /* a message inside a message */
    expect_in(BYTES("\x81\x81" KEY0 "a\x80"), "Ta|!1002");                 /* nothing to continue */
    expect_in(BYTES("\x01\x81" KEY0 "a\x80\x81" KEY0 "b\x00"), "Tab|!1002");
}

/* Frames that lie whole in what was read are told in one look: it must see what the guard sees, byte by byte. */
static void test_frame_ws__whole_or_not(void **state) {
    (void)state;
    static const uint8_t firsts[] = {0x81, 0x82, 0x01, 0x89, 0xc1};
    static const uint16_t lengths[] = {0, 125, 126, 301};
    char bytes[320];
    for (size_t i = 0; i < sizeof(firsts) * 256 * 4 * 2; i++) {
        uint16_t length = lengths[i / 2 % 4];
        memset(bytes, 'a', sizeof(bytes));
        bytes[0] = (char)firsts[i / 2 / 4 / 256];
        bytes[1] = (char)(i / 2 / 4 % 256);
        bytes[2] = (char)(length >> 8);
        bytes[3] = (char)length;
        char *whole = run(i % 2, 300, bytes, sizeof(bytes), 0, 0),
             *pieces = run(i % 2, 300, bytes, sizeof(bytes), 3, 0);
        if (strcmp(whole, pieces) != 0) {
            fail_msg("%x %x %u: \"%s\", else \"%s\"", firsts[i / 2 / 4 / 256], (uint8_t)bytes[1], length, whole,
                     pieces);
        }
        free(whole);
        free(pieces);
    }
}

static void test_frame_ws__text_fails_fast(void **state) {
    (void)state;
    expect_in(BYTES("\x81\x83" KEY0 "\xe2\x82\xac"), "T\xe2\x82\xac|");
    expect_in(BYTES("\x01\x81" KEY0 "\xe2\x00\x81" KEY0 "\x82\x80\x81" KEY0 "\xac"), "T\xe2\x82\xac|");
    expect_in(BYTES("\x81\x82" KEY0 "\xe2\x82"), "!1007"); /* ends inside a character */
    expect_in(BYTES("\x01\x82" KEY0 "\xe2\x82\x80\x80" KEY0), "!1007");
    expect_in(BYTES("\x01\xe4" KEY0 "ab\xf4\x90"), "!1007"); /* the frame is far from its end */
    expect_in(BYTES("\x01\x81" KEY0 "\xf4\x89\x81" KEY0 "x\x00\x85" KEY0 "\x90"), "Ix|!1007");
    expect_max(false, 1000, BYTES("\x81\x01\xff"), "!1007");
    /* The check begins anew with each message, also after a binary one. */
    expect_in(BYTES("\x02\x81" KEY0 "\xe2\x80\x80" KEY0 "\x01\x81" KEY0 "a\x80\x80" KEY0), "B\xe2|Ta|");
}

static void test_frame_ws__close_frames(void **state) {
    (void)state;
    expect_in(BYTES("\x88\x80" KEY0 "\x81\x81" KEY0 "a"), "C1005|"); /* what follows is not read */
    expect_in(BYTES("\x88\x84" KEY0 "\x03\xe8ok\xff\xff\xff"), "C1000ok|");
    expect_in(BYTES("\x01\x81" KEY0 "a\x88\x82" KEY0 "\x03\xe9"), "C1001|"); /* inside a message */
    expect_in(BYTES("\x88\x81" KEY0 "\x03"), "!1002");
    expect_in(BYTES("\x88\x83" KEY0 "\x03\xe8\xff"), "!1007");
    expect_in(BYTES("\x88\x84" KEY0 "\x03\xe8\xc3\xa9"), "C1000\xc3\xa9|");
    expect_in(BYTES("\x88\x83" KEY0 "\x03\xe8\xc3"), "!1007");
    for (unsigned code = 0; code < 65536; code += code >= 5001 ? 997 : 1) {
        bool good = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
        assert_int_equal(ew__ws_code_ok((uint16_t)code), good);
    }
    expect_in(BYTES("\x88\x82" KEY0 "\x03\xed"), "!1002"); /* 1005 */
}

static void test_frame_ws__size_limit(void **state) {
    (void)state;
    expect_max(true, 4, BYTES("\x81\x84" KEY0 "abcd"), "Tabcd|");
    expect_max(true, 4, BYTES("\x81\x83" KEY0 "abc"), "Tabc|");
    expect_max(true, 4, BYTES("\x81\x85"), "!1009"); /* told by the head, before the mask */
    expect_max(true, 4, BYTES("\x01\x83" KEY0 "abc\x80\x81" KEY0 "d"), "Tabcd|");
    expect_max(true, 4, BYTES("\x01\x83" KEY0 "abc\x80\x82"), "!1009");
    expect_max(true, 4, BYTES("\x01\x83" KEY0 "abc\x89\x85" KEY0 "12345\x80\x81" KEY0 "d\x81\x84" KEY0 "wxyz"),
               "I12345|Tabcd|Twxyz|");
    expect_max(true, 1 << 20, BYTES("\x82\xff\x00\x00\x00\x00\x00\x10\x00\x01"), "!1009");
    expect_max(false, 1 << 20, BYTES("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), "!1009");
    expect_max(false, 0, BYTES("\x82\x00\x82\x01"), "B|!1009");
}

/* Feeds the same frame n times; the last event that is not MORE. */
static ew__ws_event repeat(world *w, const char *frame, size_t size, size_t n) {
    ew__ws_event last = EW__WS_MORE, event;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ew__ws_feed(&w->ws, frame, size), EW_OK);
        while ((event = ew__ws_next(&w->ws, w->env.now_ns)) != EW__WS_MORE) {
            last = event;
            if (event == EW__WS_ERROR) {
                return last;
            }
        }
    }
    return last;
}

static void test_frame_ws__fragment_limit(void **state) {
    (void)state;
    static const char begin[] = "\x02\x80" KEY0, more[] = "\x00\x80" KEY0, end[] = "\x80\x80" KEY0;
    world *w = malloc(sizeof(*w));
    assert_non_null(w);
    open_world(w, true, 100);
    for (int twice = 0; twice < 2; twice++) { /* the count begins anew with each message */
        assert_int_equal(repeat(w, BYTES(begin), 1), EW__WS_MORE);
        assert_int_equal(repeat(w, BYTES(more), EW__WS_FRAMES_MAX - 2), EW__WS_MORE);
        assert_int_equal(repeat(w, BYTES(end), 1), EW__WS_BINARY);
    }
    assert_int_equal(repeat(w, BYTES(begin), 1), EW__WS_MORE);
    assert_int_equal(repeat(w, BYTES(more), EW__WS_FRAMES_MAX - 1), EW__WS_MORE);
    assert_int_equal(repeat(w, BYTES(end), 1), EW__WS_ERROR);
    assert_int_equal(ew__ws_code(&w->ws), EW__WS_POLICY);
    close_world(w);
    free(w);
}

static void test_frame_ws__control_limit(void **state) {
    (void)state;
    static const char ping[] = "\x89\x80" KEY0, pong[] = "\x8a\x80" KEY0, text[] = "\x81\x80" KEY0;
    world *w = malloc(sizeof(*w));
    assert_non_null(w);
    open_world(w, true, 100);
    for (int second = 0; second < 3; second++) {
        assert_int_equal(repeat(w, BYTES(ping), 60), EW__WS_PING);
        assert_int_equal(repeat(w, BYTES(text), 200), EW__WS_TEXT); /* messages do not count */
        assert_int_equal(repeat(w, BYTES(pong), 40), EW__WS_PONG);
        ew__test_env_advance(&w->env, UINT64_C(1000000000));
    }
    assert_int_equal(repeat(w, BYTES(ping), 100), EW__WS_PING);
    ew__test_env_advance(&w->env, UINT64_C(999999999));
    assert_int_equal(repeat(w, BYTES(pong), 1), EW__WS_ERROR);
    assert_int_equal(ew__ws_code(&w->ws), EW__WS_POLICY);
    assert_true(w->scratch.n_decoders <= 4);
    close_world(w);
    /* A close frame is always taken. */
    open_world(w, true, 100);
    assert_int_equal(repeat(w, BYTES(ping), 100), EW__WS_PING);
    assert_int_equal(repeat(w, BYTES("\x88\x80" KEY0), 1), EW__WS_CLOSE);
    close_world(w);
    free(w);
}

static void test_frame_ws__memory_goes_back(void **state) {
    (void)state;
    world *w = malloc(sizeof(*w));
    char *big = calloc(1, 100006);
    assert_non_null(w);
    assert_non_null(big);
    assert_true(sizeof(ew__ws) <= 200);
    open_world(w, true, 1 << 20);
    /* Whole messages ask for no memory. */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(repeat(w, BYTES("\x81\x83" KEY0 "abc\x82\x81" KEY0 "x"), 1), EW__WS_BINARY);
    }
    assert_int_equal(ew__test_env_allocations(&w->env), 0);
    assert_true(ew__ws_is_idle(&w->ws));
    /* Cut ones do once, then reuse it. */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(repeat(w, BYTES("\x81\x83" KEY0 "a"), 1), EW__WS_MORE);
        assert_false(ew__ws_is_idle(&w->ws));
        assert_int_equal(repeat(w, BYTES("bc"), 1), EW__WS_TEXT);
        assert_true(ew__ws_is_idle(&w->ws));
        assert_true(w->ws.message.ptr == NULL && w->ws.decoder == NULL);
    }
    assert_true(ew__test_env_allocations(&w->env) <= 2);
    /* A head that was cut holds nothing. */
    size_t before = ew__test_env_live_bytes(&w->env);
    assert_int_equal(repeat(w, BYTES("\x02\xfe\xff"), 1), EW__WS_MORE);
    assert_false(ew__ws_is_idle(&w->ws));
    assert_int_equal(ew__test_env_live_bytes(&w->env), before);
    assert_int_equal(repeat(w, BYTES("\xff" KEY0), 1), EW__WS_MORE);
    assert_true(ew__test_env_peak_bytes(&w->env) < 2000); /* what was promised is not asked for before it comes */
    assert_int_equal(repeat(w, big, 65535, 1), EW__WS_MORE);
    assert_int_equal(repeat(w, BYTES("\x80\x80" KEY0), 1), EW__WS_BINARY);
    assert_true(ew__test_env_peak_bytes(&w->env) <= 2 * 65536 + 2000);
    assert_true(ew__ws_is_idle(&w->ws));
    assert_true(ew__test_env_live_bytes(&w->env) <= before);
    /* A close frame inside a message: the rest of it will not come. */
    assert_int_equal(repeat(w, BYTES("\x02\xfe\x60\x00" KEY0), 1), EW__WS_MORE);
    assert_int_equal(repeat(w, big, 0x6000, 1), EW__WS_MORE);
    assert_true(ew__test_env_live_bytes(&w->env) >= 0x6000);
    assert_int_equal(repeat(w, BYTES("\x88\x80" KEY0), 1), EW__WS_CLOSE);
    assert_true(ew__test_env_live_bytes(&w->env) <= before && ew__ws_is_idle(&w->ws));
    close_world(w);
    free(big);
    free(w);
}

static void test_frame_ws__no_memory(void **state) {
    (void)state;
    static const char bytes[] = "\x01\x83" KEY0 "abc\x89\x82" KEY0 "hi\x80\x82" KEY0 "de";
    uint64_t n_failed = 1;
    for (uint64_t n = 1; n_failed > 0; n++) {
        world *w = malloc(sizeof(*w));
        assert_non_null(w);
        assert_true(n < 20);
        open_world(w, true, 1 << 20);
        ew__test_env_fail_at(&w->env, n, true);
        ew__ws_event last = repeat(w, BYTES(bytes), 1);
        n_failed = ew__test_env_failed(&w->env);
        assert_int_equal(last, n_failed > 0 ? EW__WS_ERROR : EW__WS_TEXT);
        if (n_failed > 0) {
            assert_int_equal(ew__ws_code(&w->ws), EW__WS_INTERNAL);
        }
        close_world(w);
        free(w);
    }
}

/* A decoder may go from one connection to the next only between two frames. */
static void test_frame_ws__connections_share_a_scratch(void **state) {
    (void)state;
    world *w = malloc(sizeof(*w));
    ew__ws other;
    assert_non_null(w);
    open_world(w, true, 1000);
    ew__ws_init(&other, &w->scratch, true, 1000);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ew__ws_feed(&w->ws, BYTES("\x81\x84" KEY0 "ab")), EW_OK);
        assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_MORE);
        assert_int_equal(ew__ws_feed(&other, BYTES("\x81\x84\1\1\1\1\x62\x63")), EW_OK);
        assert_int_equal(ew__ws_next(&other, 0), EW__WS_MORE);
        assert_int_equal(ew__ws_feed(&w->ws, BYTES("cd")), EW_OK);
        assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_TEXT);
        assert_memory_equal(ew__ws_payload(&w->ws).ptr, "abcd", 4);
        assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_MORE);
        assert_int_equal(ew__ws_feed(&other, BYTES("\x64\x65")), EW_OK);
        assert_int_equal(ew__ws_next(&other, 0), EW__WS_TEXT);
        assert_memory_equal(ew__ws_payload(&other).ptr, "cbed", 4);
        assert_int_equal(ew__ws_next(&other, 0), EW__WS_MORE);
    }
    /* One that is given up inside a frame leaves nothing behind for the next. */
    assert_int_equal(ew__ws_feed(&other, BYTES("\x81\x84" KEY0 "ab")), EW_OK);
    assert_int_equal(ew__ws_next(&other, 0), EW__WS_MORE);
    ew__ws_done(&other);
    assert_int_equal(repeat(w, BYTES("\x89\x81" KEY0 "x"), 1), EW__WS_PING);
    close_world(w);
    free(w);
}

static void test_frame_ws__keeps_its_bytes(void **state) {
    (void)state;
    static const char two[] = "\x81\x01"
                              "a\x81\x01"
                              "b";
    world *w = malloc(sizeof(*w));
    assert_non_null(w);
    open_world(w, false, 1000);
    assert_int_equal(ew__ws_feed(&w->ws, BYTES(two)), EW_OK);
    assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_TEXT);
    assert_int_equal(ew__ws_feed(&w->ws, "x", 1), EW_EINVAL);
    assert_int_equal(ew__ws_unread(&w->ws), 3);
    ew__ws_forget(&w->ws);
    assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_MORE);
    assert_true(ew__ws_is_idle(&w->ws));
    assert_int_equal(ew__ws_feed(&w->ws, two + 3, 3), EW_OK);
    assert_int_equal(ew__ws_next(&w->ws, 0), EW__WS_TEXT);
    assert_memory_equal(ew__ws_payload(&w->ws).ptr, "b", 1);
    close_world(w);
    free(w);
}

/*
 * The same messages come out if they are taken many at once, and some of them go back: whatever else is said between
 * them, and however they were cut.
 */
static void drain_rows(world *w, FILE *out, size_t max, size_t keep) {
    for (int turns = 0; turns < 1000; turns++) {
        ew_str row[8];
        size_t n = ew__ws_row(&w->ws, row, max), kept = n < keep ? n : keep;
        assert_true(n <= max);
        for (size_t i = 0; i < kept; i++) {
            (void)fprintf(out, "T%.*s|", (int)row[i].len, row[i].ptr);
        }
        ew__ws_row_back(&w->ws, row + kept, n - kept);
        if (n > 0) {
            continue;
        }
        ew__ws_event event = ew__ws_next(&w->ws, w->env.now_ns);
        if (event == EW__WS_MORE || event == EW__WS_ERROR) {
            (void)fputs(event == EW__WS_ERROR ? "!" : "", out);
            return;
        }
        (void)fprintf(out, "%c%.*s|", event == EW__WS_TEXT ? 'T' : '.', (int)ew__ws_payload(&w->ws).len,
                      ew__ws_payload(&w->ws).len ? ew__ws_payload(&w->ws).ptr : "");
    }
    fail_msg("no end of rows");
}

static void check_rows(bool server, const char *bytes, size_t n, const char *want) {
    for (size_t cut = 1; cut <= n; cut++) {
        for (size_t keep = 1; keep < 4; keep++) {
            char *text = NULL;
            size_t text_len;
            FILE *out = open_memstream(&text, &text_len);
            world *w = malloc(sizeof(*w));
            assert_true(out != NULL && w != NULL);
            open_world(w, server, 1000);
            assert_int_equal(ew__ws_feed(&w->ws, bytes, cut), EW_OK);
            drain_rows(w, out, 4, keep);
            assert_int_equal(ew__ws_feed(&w->ws, bytes + cut, n - cut), EW_OK);
            if (w->ws.event != EW__WS_ERROR) {
                drain_rows(w, out, 4, keep);
            }
            close_world(w);
            free(w);
            (void)fclose(out);
            assert_string_equal(text, want);
            free(text);
        }
    }
}

static void test_frame_ws__rows(void **state) {
    (void)state;
    char frames[600], *at = frames;
    memcpy(at,
           "\x81\x01"
           "a"
           "\x81\x01"
           "b"
           "\x89\x01p"
           "\x81\x02"
           "\xc3\xa4"
           "\x01\x01x"
           "\x80\x01y",
           19);
    at += 19;
    memcpy(at, "\x81\x7e\x00\x80", 4); /* a longer head */
    memset(at + 4, 'l', 128);
    memcpy(at + 132,
           "\x81\x01"
           "c"
           "\x82\x01"
           "d",
           6);
    at += 138;
    char want[400];
    (void)snprintf(want, sizeof(want), "Ta|Tb|.p|T\xc3\xa4|Txy|T%.*s|Tc|.d|", 128, frames + 23);
    check_rows(false, frames, (size_t)(at - frames), want);
    check_rows(false,
               BYTES("\x81\x01"
                     "a"
                     "\x81\x01\xff"),
               "Ta|!"); /* no UTF-8: refused, and nothing before it is lost */
    check_rows(true,
               BYTES("\x81\x81\1\2\3\4`"
                     "\x81\x82\4\3\2\1fa"
                     "\x89\x80" KEY0 "\x81\x82" KEY0 "\xc3\xa4"
                     "\x81\x81" KEY0 "c"),
               "Ta|Tbb|.|T\xc3\xa4|Tc|");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_ws__reads_messages),  cmocka_unit_test(test_frame_ws__lengths),
        cmocka_unit_test(test_frame_ws__refuses_frames),  cmocka_unit_test(test_frame_ws__whole_or_not),
        cmocka_unit_test(test_frame_ws__text_fails_fast), cmocka_unit_test(test_frame_ws__close_frames),
        cmocka_unit_test(test_frame_ws__size_limit),      cmocka_unit_test(test_frame_ws__fragment_limit),
        cmocka_unit_test(test_frame_ws__control_limit),   cmocka_unit_test(test_frame_ws__memory_goes_back),
        cmocka_unit_test(test_frame_ws__no_memory),       cmocka_unit_test(test_frame_ws__connections_share_a_scratch),
        cmocka_unit_test(test_frame_ws__keeps_its_bytes), cmocka_unit_test(test_frame_ws__rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
