/*
 * tests/unit/frame/test_cutter.c: connections cut into frames for somebody who looks on: what comes out of each framing,
 * however the bytes are cut, and that no byte is lost whatever they are.
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
#include "frame/cutter.h"
#include "support/fail_env.h"

#define KEEP ((size_t)100000)
#define MAX ((size_t)100000)

/* What came out: one line per frame, "> head POST / HTTP/1.1|...", and all bytes of both directions. */
typedef struct sight {
    ew__cutter cutter;
    char log[20000];
    size_t n_log;
    char bytes[2][20000];
    size_t n_bytes[2];
    uint64_t size[2];
} sight;

static void note(sight *s, const char *text, size_t n) {
    for (size_t i = 0; i < n && s->n_log + 8 < sizeof s->log; i++) {
        if (text[i] != '\r')
            s->log[s->n_log++] = text[i] == '\n' ? '|' : text[i];
    }
    s->log[s->n_log] = 0;
}

static void on_frame(ew__cutter *cutter, const ew_frame *frame) {
    static const char *const kinds[] = {"opened", "closed", "bytes", "head", "body", "sse", "ws", "length", "line"};
    sight *s = cutter->ud;
    char label[64];
    int n = snprintf(label, sizeof label, "%s%c %s", s->n_log ? "\n" : "", frame->out ? '>' : '<', kinds[frame->kind]);
    if (frame->kind == EW_FRAME_WEBSOCKET)
        n += snprintf(label + n, sizeof label - (size_t)n, "%u%s", frame->opcode, frame->fin ? "" : "+");
    bool blank = frame->kind == EW_FRAME_LINE && frame->text_size == 0; /* a line end that came alone */
    n = blank ? 0 : n;
    memcpy(s->log + s->n_log, label, (size_t)n);
    s->n_log += (size_t)n;
    note(s, " ", blank ? 0 : 1);
    note(s, frame->text.ptr, frame->text.len);
    assert_true(frame->bytes.len <= frame->size && frame->text.len <= frame->text_size);
    assert_true(frame->text_size <= frame->size);
    s->size[frame->out] += frame->size;
    if (s->n_bytes[frame->out] + frame->bytes.len <= sizeof s->bytes[0] && frame->bytes.len > 0) {
        memcpy(s->bytes[frame->out] + s->n_bytes[frame->out], frame->bytes.ptr, frame->bytes.len);
        s->n_bytes[frame->out] += frame->bytes.len;
    }
}

/* One thing that was said, by us (out) or by the other side. */
typedef struct said {
    bool out;
    const char *bytes;
    size_t n;
} said;

#define SAID(out, text)                                                                                                \
    { out, text, sizeof(text) - 1 }

static sight *look(const said *all, size_t n, size_t piece, size_t keep) {
    sight *s = calloc(1, sizeof *s);
    size_t fed[2] = {0};
    char *whole[2] = {calloc(1, 20000), calloc(1, 20000)};
    assert_true(s && whole[0] && whole[1]);
    ew__cutter_init(&s->cutter, ew_env_default(), keep, MAX, on_frame, s);
    for (size_t i = 0; i < n; i++) {
        memcpy(whole[all[i].out] + fed[all[i].out], all[i].bytes, all[i].n);
        fed[all[i].out] += all[i].n;
        for (size_t at = 0; at < all[i].n; at += piece) {
            size_t part = all[i].n - at < piece ? all[i].n - at : piece;
            char *copy = malloc(part); /* of its own, so that AddressSanitizer sees a look past its end */
            assert_non_null(copy);
            memcpy(copy, all[i].bytes + at, part);
            ew__cutter_feed(&s->cutter, all[i].out, copy, part);
            free(copy);
        }
    }
    ew__cutter_end(&s->cutter);
    ew__cutter_done(&s->cutter);
    for (int out = 0; out < 2; out++) {
        assert_int_equal(s->size[out], fed[out]);
        if (keep == KEEP) {
            assert_int_equal(s->n_bytes[out], fed[out]);
            assert_memory_equal(s->bytes[out], whole[out], fed[out]);
        }
        free(whole[out]);
    }
    return s;
}

static void expect(const said *all, size_t n, const char *want) {
    static const size_t pieces[] = {20000, 1, 2, 3, 7};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        sight *s = look(all, n, pieces[i], KEEP);
        assert_string_equal(s->log, want);
        free(s);
    }
}

#define EXPECT(want, ...)                                                                                              \
    do {                                                                                                               \
        const said all_[] = {__VA_ARGS__};                                                                             \
        expect(all_, sizeof all_ / sizeof *all_, want);                                                                \
    } while (0)

static void test_frame_cutter__http_bodies_end_where_their_heads_say(void **state) {
    (void)state;
    EXPECT("> head POST /a HTTP/1.1|Host: a|Content-Length: 2||\n> body {}\n< head HTTP/1.1 200 "
           "OK|content-length:3||\n< body abc",
           SAID(true, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"),
           SAID(false, "HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabc"));
    EXPECT("> head HEAD / HTTP/1.1|Host: a||\n> head GET / HTTP/1.1|Host: a||\n< head HTTP/1.1 200 OK|Content-Length: "
           "5||\n"
           "< head HTTP/1.1 204 No||",
           SAID(true, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
           SAID(false, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 No\r\n\r\n"));
    EXPECT("> head GET / HTTP/1.0||\n< head HTTP/1.1 100 Continue||\n< head HTTP/1.1 500 No|Transfer-Encoding: "
           "chunked||\n< body ab\n< body c\n"
           "< body \n< head HTTP/1.1 200 OK|Content-Length: 0||",
           SAID(true, "GET / HTTP/1.0\r\n\r\n"),
           SAID(false,
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc"
                "\r\n0\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
}

static void test_frame_cutter__streamed_blocks_are_whole_whatever_the_chunks_are(void **state) {
    (void)state;
    EXPECT("> head GET / HTTP/1.0||\n< head HTTP/1.1 200 OK|Content-Type: text/event-stream|Transfer-Encoding: "
           "chunked||\n< sse data: 1||\n"
           "< sse data: 2||\n< body |",
           SAID(true, "GET / HTTP/1.0\r\n\r\n"),
           SAID(false, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "b\r\ndata: 1\n\nda\r\n9\r\nta: 2\r\n\r\n\r\n1\r\n\n\r\n0\r\n\r\n"));
    EXPECT("> head GET / HTTP/1.0||\n< head HTTP/1.1 200 OK|content-type: text/plain||\n< sse data: 1||\n< sse data: 2",
           SAID(true, "GET / HTTP/1.0\r\n\r\n"),
           SAID(false, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\ndata: 1\n\ndata: 2"));
}

static void test_frame_cutter__an_upgrade_leads_to_frames_both_ways(void **state) {
    (void)state;
    EXPECT("> head GET / HTTP/1.1|Upgrade: websocket||\n< head HTTP/1.1 101 Yes|Upgrade: websocket||\n< ws1 hi\n"
           "> ws1+ He\n> ws9 \n> ws0 llo\n< ws8 \x03\xe8",
           SAID(true, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
           SAID(false, "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\n\r\n\x81\x02hi"),
           SAID(true, "\x01\x82\x01\x02\x03\x04\x49\x67"), SAID(true, "\x89\x80\x01\x02\x03\x04"),
           SAID(true, "\x80\x83\x01\x02\x03\x04\x6d\x6e\x6c"), SAID(false, "\x88\x02\x03\xe8"));
}

static void test_frame_cutter__lengths_and_lines(void **state) {
    (void)state;
    EXPECT("> length {}\n> length [1]\n< length x", SAID(true, "\0\0\0\2{}\0\0\0\3[1]"), SAID(false, "\0\0\0\1x"));
    EXPECT("> line {\"a\":1}\n> line {|\"b\":2}\n> line [3]", SAID(true, "{\"a\":1}\n{\n\"b\":2}\r\n[3]\n"));
    EXPECT("> line {}\n> line []", SAID(true, "Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]"));
}

/* A head that the reader refuses is still shown as a head; the formatter hides its secrets. What follows is bytes. */
static void test_frame_cutter__a_refused_head_is_a_head(void **state) {
    (void)state;
    EXPECT("> head POST / HTTP/1.1|Content-Length: 2|Content-Length: 3|Authorization: x||\n> bytes ",
           SAID(true, "POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\nAuthorization: x\r\n\r\n"),
           SAID(true, "m"));
    EXPECT("> head GET / HTTP/1.1|no field|Cookie: x||\n< head HTTP/1.1 400 Bad|Content-Length: 0||",
           SAID(true, "GET / HTTP/1.1\r\nno field\r\nCookie: x\r\n\r\n"),
           SAID(false, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"));
}

/* What is no frame comes out as bytes, and what the others say is still understood. */
static void test_frame_cutter__garbage_is_shown_as_it_is(void **state) {
    (void)state;
    static const said garbage[] = {SAID(true, "GARBAGE\r\nmore\r\n"),
                                   SAID(true, "\0\0\0\0more"),
                                   SAID(true, "\x08\xff\xff\xffmore"),
                                   SAID(true, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nmore"),
                                   SAID(true, "Content-Length: x\r\n\r\nmore"),
                                   SAID(true, "}]\nmore\n{}\n"),
                                   SAID(true, "{\"cut\":"),
                                   SAID(true, "POST / HT"),
                                   SAID(true, "\0\0\0\5ab")};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        for (size_t piece = 1; piece < 9; piece += 3) {
            sight *s = look(&garbage[i], 1, piece, KEEP); /* which compares the bytes */
            assert_non_null(strstr(s->log, "> bytes"));
            free(s);
        }
    }
}

static void test_frame_cutter__of_a_long_frame_only_the_beginning_is_kept(void **state) {
    (void)state;
    char bytes[3100] = "\0\0\x0c\x00";
    memset(bytes + 4, 'x', 3072);
    const said all[] = {{true, bytes, 3076}};
    for (size_t keep = 9; keep <= 11; keep++) {
        sight *s = look(all, 1, 100, keep);
        assert_int_equal(s->n_bytes[1], keep);
        assert_int_equal(strlen(s->log), strlen("> length ") + keep);
        free(s);
    }
}

static void test_frame_cutter__random_bytes_are_not_lost(void **state) {
    (void)state;
    static const char *const begins[] = {"", "POST / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\n\r\n", "{", "\0\0\0\x09x", "C"};
    uint64_t chance = 88172645463325252;
    for (int round = 0; round < 300; round++) {
        char bytes[400];
        size_t n = strlen(begins[round % 6]);
        memcpy(bytes, begins[round % 6], n);
        while (n < sizeof bytes) {
            chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
            bytes[n++] = chance % 3 ? "\r\n{}[]\":,012ab Ht/"[chance / 3 % 18] : (char)(chance >> 20);
        }
        const said all[] = {{round & 1, bytes, sizeof bytes}};
        free(look(all, 1, 1 + (size_t)round % 50, KEEP));
    }
}

/* Without memory less is shown, and nothing else happens. */
static void test_frame_cutter__a_failed_allocation_costs_the_sight_only(void **state) {
    (void)state;
    static const char text[] = "{\"a\":1}\n{\"b\":2}\n";
    for (uint64_t n = 1; n < 8; n++) {
        sight *s = calloc(1, sizeof *s);
        ew__test_env env;
        ew__test_env_init(&env, 1);
        ew__test_env_fail_at(&env, n, n % 2 == 0);
        assert_non_null(s);
        ew__cutter_init(&s->cutter, &env.env, KEEP, MAX, on_frame, s);
        for (size_t i = 0; i < sizeof text - 1; i++)
            ew__cutter_feed(&s->cutter, true, text + i, 1);
        ew__cutter_end(&s->cutter);
        ew__cutter_done(&s->cutter);
        assert_int_equal(s->size[1], sizeof text - 1);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_cutter__http_bodies_end_where_their_heads_say),
        cmocka_unit_test(test_frame_cutter__streamed_blocks_are_whole_whatever_the_chunks_are),
        cmocka_unit_test(test_frame_cutter__an_upgrade_leads_to_frames_both_ways),
        cmocka_unit_test(test_frame_cutter__lengths_and_lines),
        cmocka_unit_test(test_frame_cutter__a_refused_head_is_a_head),
        cmocka_unit_test(test_frame_cutter__garbage_is_shown_as_it_is),
        cmocka_unit_test(test_frame_cutter__of_a_long_frame_only_the_beginning_is_kept),
        cmocka_unit_test(test_frame_cutter__random_bytes_are_not_lost),
        cmocka_unit_test(test_frame_cutter__a_failed_allocation_costs_the_sight_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
