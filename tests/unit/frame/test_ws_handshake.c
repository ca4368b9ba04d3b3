/*
 * tests/unit/frame/test_ws_handshake.c: how a WebSocket begins, both sides: the corpus own-ws-handshake through the
 * HTTP/1 reader, and answers in every shape and at every cut.
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
#include "frame/sha1.h"
#include "frame/ws.h"
#include "frame/ws_handshake.h"
#include "support/corpus.h"
#include "support/fail_env.h"
#include "support/http_trace.h"
#include "support/json_or.h"

#define BYTES(literal) literal, sizeof(literal) - 1
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" /* for the key of the RFC, "the sample nonce" */

static void expect_sha1(const char *text, size_t n, const char *hex) {
    uint8_t digest[EW__SHA1_SIZE];
    char out[2 * EW__SHA1_SIZE + 1] = "";
    ew__sha1(ew__str(text, n), digest);
    ew__hex(digest, sizeof(digest), out);
    assert_string_equal(out, hex);
}

static void test_frame_ws_handshake__sha1(void **state) {
    (void)state;
    char *many = malloc(1000000);
    assert_non_null(many);
    memset(many, 'a', 1000000);
    expect_sha1("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect_sha1(BYTES("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect_sha1(BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    expect_sha1(many, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    expect_sha1(many, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    expect_sha1(many, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    free(many);
}

/* ---- a server ---- */

typedef struct outcome {
    int status;
    char fields[200];
    char answer[400]; /* 101 */
    char early[32];   /* a message that came behind the request */
} outcome;

static void read_early(const char *bytes, size_t n, outcome *ret) {
    ew__ws_scratch *scratch = malloc(sizeof(*scratch));
    ew__ws ws;
    assert_non_null(scratch);
    ew__ws_scratch_init(scratch, ew_env_default());
    ew__ws_init(&ws, scratch, true, 1000);
    assert_int_equal(ew__ws_feed(&ws, bytes, n), EW_OK);
    if (ew__ws_next(&ws, 0) == EW__WS_TEXT) {
        ew_str text = ew__ws_payload(&ws);
        (void)snprintf(ret->early, sizeof(ret->early), "%.*s", (int)text.len, text.ptr);
    }
    ew__ws_done(&ws);
    ew__ws_scratch_done(scratch);
    free(scratch);
}

/* Reads a request by the HTTP/1 reader, in pieces, and judges it. */
static void ask(const char *bytes, size_t n, size_t piece, ew_str protocol, outcome *ret) {
    ew__http1_scratch *scratch = calloc(1, sizeof(*scratch));
    ew__http1 *http = aligned_alloc(16, (ew__http1_size() + 15) / 16 * 16);
    ew__http_event event = EW__HTTP_MORE;
    ew__buf out;
    *ret = (outcome){0};
    assert_true(scratch != NULL && http != NULL);
    ew__buf_init(&out, ew_env_default(), 1000);
    ew__http1_init(http, ew_env_default(), &http_trace_limits, true, scratch);
    for (size_t at = 0; at < n && ret->status == 0; at += piece) {
        size_t len = piece < n - at ? piece : n - at;
        assert_int_equal(ew__http1_feed(http, bytes + at, len), EW_OK);
        event = ew__http1_next(http);
        if (event == EW__HTTP_HEAD_DONE) {
            ew__ws_verdict verdict;
            const ew__http_head *head = ew__http1_head(http);
            ew__ws_accept(head, &verdict);
            ret->status = verdict.status;
            (void)snprintf(ret->fields, sizeof(ret->fields), "%s", verdict.fields);
            ew_err err = ew__ws_accept_write(head, &verdict, protocol, &out);
            assert_true(verdict.status == 101 ? err == EW_OK || protocol.len > 0 : err == EW_EINVAL);
            (void)snprintf(ret->answer, sizeof(ret->answer), "%.*s", (int)out.len, out.ptr != NULL ? out.ptr : "");
            assert_true(verdict.status == 101 || strlen(verdict.why) > 0);
            if (verdict.status == 101 && ew__http1_next(http) == EW__HTTP_END && ew__http1_unread(http) > 0) {
                size_t unread = ew__http1_unread(http);
                read_early(bytes + at + len - unread, unread, ret);
            }
        } else if (event == EW__HTTP_ERROR) {
            ret->status = ew__http1_error_status(http);
        }
    }
    ew__http1_done(http);
    ew__buf_done(&out);
    free(http);
    free(scratch);
}

static bool is_allowed(ew_str allowed, int status) {
    ew_json_iter it = {0};
    if (ew_json_typeof(allowed) == EW_JSON_NUMBER) {
        return json_int_or(allowed, "", 0) == status;
    }
    while (ew_json_next(allowed, &it)) {
        if (json_int_or(it.value, "", 0) == status) {
            return true;
        }
    }
    return false;
}

static bool contains(const char *text, const char *part) { return part != NULL && strstr(text, part) != NULL; }

static void check_case(const corpus *c, const char *id, const outcome *o) {
    char *header = corpus_text(c, "/expect/header"), *without = corpus_text(c, "/expect/no_header");
    char *accept = corpus_text(c, "/expect/accept");
    if (!is_allowed(ew_json_get(c->row, "/expect/status"), o->status)) {
        fail_msg("%s: %d", id, o->status);
    }
    assert_true(header == NULL || contains(o->fields, header));
    assert_true(accept == NULL || contains(o->answer, accept));
    assert_false(contains(o->answer, without) || contains(o->fields, without));
    if (o->status == 101) {
        assert_true(contains(o->answer, "HTTP/1.1 101 ") && contains(o->answer, "\r\nUpgrade: websocket\r\n"));
        assert_true(contains(o->answer, "\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n"));
        assert_string_equal(o->answer + strlen(o->answer) - 4, "\r\n\r\n");
    }
    free(header);
    free(without);
    free(accept);
}

static void test_frame_ws_handshake__corpus(void **state) {
    (void)state;
    static const char early[] = "\x81\x89\0\0\0\0{\"a\":[]}\n";
    corpus c;
    size_t n_cases = 0;
    if (!corpus_open(&c, EW_SHARED, "own-ws-handshake/handshake-cases.jsonl")) {
        skip();
    }
    while (corpus_next(&c)) {
        char *id = corpus_text(&c, "/id");
        size_t n;
        unsigned char *request = corpus_hex(&c, "/request_hex", &n);
        request = realloc(request, n + sizeof(early));
        assert_non_null(request);
        if (strcmp(id, "early-frame") == 0) {
            memcpy(request + n, early, sizeof(early) - 1);
            n += sizeof(early) - 1;
        }
        for (size_t piece = n; piece > 0; piece = piece > 20 ? 1 + piece / 3 : piece - 1) {
            outcome o;
            ask((const char *)request, n, piece, EW_STR(""), &o);
            check_case(&c, id, &o);
            if (strcmp(id, "early-frame") == 0 && piece == n) {
                assert_string_equal(o.early, "{\"a\":[]}\n");
            }
        }
        n_cases++;
        free(request);
        free(id);
    }
    corpus_close(&c);
    assert_true(n_cases >= 19);
}

#define REQUEST(line, fields) line "\r\nHost: h\r\n" fields "\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void test_frame_ws_handshake__verdicts(void **state) {
    (void)state;
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {REQUEST("GET /a?b HTTP/1.1", UPGRADE VERSION KEY), 101},
        {REQUEST("GET / HTTP/1.1", UPGRADE VERSION KEY "Content-Length: 0\r\n"), 101},
        {REQUEST("GET / HTTP/1.1", "Upgrade: h2c, WEBSOCKET\r\nConnection: x,upgrade\r\n" VERSION KEY), 101},
        {REQUEST("GET / HTTP/1.1", "Upgrade: websocket\r\nConnection: a\r\nConnection: Upgrade\r\n" VERSION KEY), 101},
        {REQUEST("GET / HTTP/1.0", UPGRADE VERSION KEY), 400},
        {REQUEST("HEAD / HTTP/1.1", UPGRADE VERSION KEY), 405},
        {REQUEST("GET / HTTP/1.1", VERSION KEY), 426},
        {REQUEST("GET / HTTP/1.1", "Upgrade: websockets\r\nConnection: Upgrade\r\n" VERSION KEY), 426},
        {REQUEST("GET / HTTP/1.1", "Upgrade: websocket\r\nConnection: keep-alive\r\n" VERSION KEY), 426},
        {REQUEST("GET / HTTP/1.1", UPGRADE "Sec-WebSocket-Version: 8\r\n" KEY), 426},
        {REQUEST("GET / HTTP/1.1", UPGRADE "Sec-WebSocket-Version: 13, 8\r\n" KEY), 426},
        {REQUEST("GET / HTTP/1.1", UPGRADE VERSION VERSION KEY), 426},
        {REQUEST("GET / HTTP/1.1", UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ_==\r\n"), 400},
        {REQUEST("GET / HTTP/1.1", UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=A\r\n"), 400},
        {REQUEST("GET / HTTP/1.1", UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j=Q==\r\n"), 400},
        {REQUEST("GET / HTTP/1.1", UPGRADE VERSION KEY "Content-Length: 1\r\n"), 400},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        outcome o;
        ask(cases[i].request, strlen(cases[i].request), 9999, EW_STR(""), &o);
        if (o.status != cases[i].status) {
            fail_msg("case %zu: %d", i, o.status);
        }
        assert_int_equal(contains(o.fields, "Sec-WebSocket-Version: 13\r\n"), o.status == 426);
        assert_int_equal(contains(o.fields, "Allow: GET\r\n"), o.status == 405);
    }
}

static void test_frame_ws_handshake__subprotocols(void **state) {
    (void)state;
    static const char request[] = REQUEST("GET / HTTP/1.1", UPGRADE VERSION KEY "Sec-WebSocket-Protocol: a, chat\r\n");
    outcome o;
    ask(BYTES(request), 9999, EW_STR("chat"), &o);
    assert_true(contains(o.answer, "\r\nSec-WebSocket-Protocol: chat\r\n\r\n"));
    ask(BYTES(request), 9999, EW_STR("cha"), &o); /* not offered: no answer is written */
    assert_string_equal(o.answer, "");
    ask(BYTES(request), 9999, EW_STR("Chat"), &o);
    assert_string_equal(o.answer, "");
}

/* ---- a client ---- */

static const uint8_t nonce[EW__WS_KEY_SIZE] = "the sample nonce";

static void test_frame_ws_handshake__request(void **state) {
    (void)state;
    ew__ws_dial dial;
    ew__buf out;
    ew__ws_dial_init(&dial, ew_env_default(), nonce, EW_STR("chat"));
    ew__buf_init(&out, ew_env_default(), 1000);
    assert_int_equal(ew__ws_dial_write(&dial, EW_STR("h:1"), EW_STR("/a?b=c"), EW_STR("Origin: null\r\n"), &out),
                     EW_OK);
    assert_int_equal(ew__buf_char(&out, '\0'), EW_OK);
    assert_string_equal(out.ptr, "GET /a?b=c HTTP/1.1\r\nHost: h:1\r\n" UPGRADE KEY VERSION
                                 "Sec-WebSocket-Protocol: chat\r\nOrigin: null\r\n\r\n");
    outcome o;
    ask(out.ptr, out.len - 1, 9999, EW_STR("chat"), &o); /* what we ask we grant */
    assert_int_equal(o.status, 101);
    static const struct {
        const char *host, *target, *fields;
    } bad[] = {{"", "/", ""},
               {"h\r\nx: y", "/", ""},
               {"h", "", ""},
               {"h", "a", ""},
               {"h", "/a b", ""},
               {"h", "/\r\n", ""},
               {"h", "/#x", ""},
               {"h", "/", "A: b"},
               {"h", "/", "A: b\n"},
               {"h", "/", "A: b\r\n\r\n"},
               {"h", "/", "\r\n"},
               {"h", "/", " A: b\r\n"},
               {"h", "/", "A b\r\n"},
               {"h", "/", ": b\r\n"},
               {"h", "/", "A: \x01\r\n"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ew__buf_clear(&out);
        ew_err err = ew__ws_dial_write(&dial, ew__str(bad[i].host, strlen(bad[i].host)),
                                       ew__str(bad[i].target, strlen(bad[i].target)),
                                       ew__str(bad[i].fields, strlen(bad[i].fields)), &out);
        if (err != EW_EINVAL || out.len != 0) {
            fail_msg("case %zu", i);
        }
    }
    ew__buf_done(&out);
    ew__ws_dial_done(&dial);
}

/* What an answer says at every cut: "open[PROTOCOL] USED", "refused STATUS REASON", "bad", "more". */
static void expect_answer(const char *offered, const char *bytes, size_t n, const char *want) {
    for (size_t cut = 0; cut <= n; cut++) {
        ew__test_env env;
        ew__ws_dial dial;
        char text[200] = "more";
        size_t used = 0, at = 0;
        ew__test_env_init(&env, 1);
        ew__ws_dial_init(&dial, &env.env, nonce, ew__str(offered, strlen(offered)));
        ew__ws_dialled event = ew__ws_dial_feed(&dial, bytes, cut, &used);
        at += used;
        if (event == EW__WS_DIAL_MORE) {
            assert_int_equal(used, cut);
            event = ew__ws_dial_feed(&dial, bytes + cut, n - cut, &used);
            at += used;
        }
        if (event == EW__WS_DIAL_OPEN) {
            (void)snprintf(text, sizeof(text), "open[%.*s] %zu", (int)dial.protocol.len,
                           dial.protocol.len > 0 ? dial.protocol.ptr : "", at);
        } else if (event == EW__WS_DIAL_REFUSED) {
            (void)snprintf(text, sizeof(text), "refused %d %.*s", dial.status, (int)dial.reason.len,
                           dial.reason.len > 0 ? dial.reason.ptr : "");
        } else if (event == EW__WS_DIAL_BAD) {
            (void)snprintf(text, sizeof(text), "bad");
            assert_true(strlen(dial.why) > 0);
        }
        if (strcmp(text, want) != 0) {
            fail_msg("\"%s\" instead of \"%s\" at %zu: %.*s (%s)", text, want, cut, (int)n, bytes, dial.why);
        }
        assert_int_equal(ew__ws_dial_feed(&dial, "", 0, &used), event);
        ew__ws_dial_done(&dial);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
    }
}

#define OK_LINE "HTTP/1.1 101 Switching Protocols\r\n"
#define OK_ACCEPT "Sec-WebSocket-Accept: " ACCEPT "\r\n"
#define OK_ANSWER OK_LINE UPGRADE OK_ACCEPT

static void test_frame_ws_handshake__opens(void **state) {
    (void)state;
    expect_answer("", BYTES(OK_ANSWER "\r\n"), "open[] 129");
    expect_answer("", BYTES(OK_ANSWER "\r\n\x81\x01x\r\n\r\n"), "open[] 129"); /* frames behind it */
    expect_answer("", BYTES("HTTP/1.1 101 \r\nUPGRADE:WebSocket\r\nconnection: a, UPGRADE\r\n" OK_ACCEPT "\r\n"),
                  "open[] 112");
    expect_answer("", BYTES(OK_ANSWER "Content-Length: 0\r\n\r\n"), "open[] 148");
    expect_answer("a, chat", BYTES(OK_ANSWER "Sec-WebSocket-Protocol: chat\r\n\r\n"), "open[chat] 159");
    expect_answer("a, chat", BYTES(OK_ANSWER "\r\n"), "open[] 129");
}

static void test_frame_ws_handshake__refused(void **state) {
    (void)state;
    expect_answer("", BYTES("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"), "refused 403 Forbidden");
    expect_answer("", BYTES("HTTP/1.0 200 OK\r\n\r\n"), "refused 200 OK");
    expect_answer("", BYTES("HTTP/1.1 426 \r\nUpgrade: websocket\r\n\r\n"), "refused 426 ");
    expect_answer("", BYTES("HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n"), "refused 301 Moved");
}

static void test_frame_ws_handshake__bad_answers(void **state) {
    (void)state;
    expect_answer("", BYTES(OK_ANSWER), "more");
    expect_answer("", BYTES("{\"a\""), "bad"); /* told at once */
    expect_answer("", BYTES("HTTP/2"), "bad");
    expect_answer("", BYTES("HTTP/1.0 101 x\r\n" UPGRADE OK_ACCEPT "\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE "Upgrade: websocket\r\n" OK_ACCEPT "\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE "Connection: Upgrade\r\n" OK_ACCEPT "\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE "Upgrade: h2c\r\nConnection: Upgrade\r\n" OK_ACCEPT "\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE "Upgrade: websocket\r\n" UPGRADE OK_ACCEPT "\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE UPGRADE "\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE UPGRADE "Sec-WebSocket-Accept: t3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_LINE UPGRADE "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER OK_ACCEPT "\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Sec-WebSocket-Protocol: chat\r\n\r\n"), "bad");
    expect_answer("a,chat", BYTES(OK_ANSWER "Sec-WebSocket-Protocol: Chat\r\n\r\n"), "bad");
    expect_answer("a,chat", BYTES(OK_ANSWER "Sec-WebSocket-Protocol: \r\n\r\n"), "bad");
    expect_answer("a,b", BYTES(OK_ANSWER "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Content-Length: 5\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Transfer-Encoding: chunked\r\n\r\n"), "bad");
    expect_answer("", BYTES("HTTP/1.1 101 x\nUpgrade: websocket\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER " folded\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Name : x\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Name: a\rb\r\n\r\n"), "bad");
    expect_answer("", BYTES(OK_ANSWER "Name: a\0b\r\n\r\n"), "bad");
}

static void test_frame_ws_handshake__answer_limit(void **state) {
    (void)state;
    static const char end[] = "\r\n\r\n";
    char *bytes = malloc(EW__WS_ANSWER_MAX + 10);
    assert_non_null(bytes);
    for (size_t n = EW__WS_ANSWER_MAX - 1; n <= EW__WS_ANSWER_MAX + 1; n++) {
        ew__ws_dial dial;
        size_t used;
        memset(bytes, 'x', n);
        memcpy(bytes, BYTES(OK_ANSWER "Padding: "));
        memcpy(bytes + n - 4, end, 4);
        ew__ws_dial_init(&dial, ew_env_default(), nonce, EW_STR(""));
        assert_int_equal(ew__ws_dial_feed(&dial, bytes, n, &used),
                         n <= EW__WS_ANSWER_MAX ? EW__WS_DIAL_OPEN : EW__WS_DIAL_BAD);
        ew__ws_dial_done(&dial);
    }
    free(bytes);
}

static void test_frame_ws_handshake__no_memory(void **state) {
    (void)state;
    ew__test_env env;
    ew__ws_dial dial;
    size_t used;
    ew__test_env_init(&env, 1);
    ew__ws_dial_init(&dial, &env.env, nonce, EW_STR(""));
    ew__test_env_fail_at(&env, 1, true);
    assert_int_equal(ew__ws_dial_feed(&dial, BYTES("HTTP/1.1 101"), &used), EW__WS_DIAL_BAD);
    ew__ws_dial_done(&dial);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_ws_handshake__sha1),
        cmocka_unit_test(test_frame_ws_handshake__corpus),
        cmocka_unit_test(test_frame_ws_handshake__verdicts),
        cmocka_unit_test(test_frame_ws_handshake__subprotocols),
        cmocka_unit_test(test_frame_ws_handshake__request),
        cmocka_unit_test(test_frame_ws_handshake__opens),
        cmocka_unit_test(test_frame_ws_handshake__refused),
        cmocka_unit_test(test_frame_ws_handshake__bad_answers),
        cmocka_unit_test(test_frame_ws_handshake__answer_limit),
        cmocka_unit_test(test_frame_ws_handshake__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
