/*
 * tests/unit/frame/test_ws_autobahn.c: the cases of the Autobahn test suite (all that need no compression) against an
 * echo on the codec, in both roles. Each runs as the suite sends it, byte by byte and in random pieces; the verdict
 * must be OK every time, the weaker NON-STRICT is a failure. The tester's frames are made and read by hand here, not by
 * the codec.
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
#include "support/corpus.h"
#include "support/fail_env.h"
#include "support/json_or.h"

#define MESSAGE_MAX ((size_t)16 * 1024 * 1024)
#define EVENTS_MAX 1100
#define BYTEWISE_MAX ((size_t)140 * 1024) /* longer cases are not cut at every byte */
#define RANDOM_MAX ((size_t)5 * 1024 * 1024)

typedef enum way { AS_SENT, BYTES, RANDOM, N_WAYS } way;

typedef struct heard {
    char kind; /* 'T', 'B', 'I' ping, 'O' pong, 'A'... time-out tag in lower case */
    size_t len;
    uint64_t hash;
} heard;

/* A tester, and the echo that it tests. */
typedef struct player {
    ew__test_env env;
    ew__ws_scratch scratch;
    ew__ws ws;
    bool server; /* the role of the echo */
    way way;
    uint64_t random;
    unsigned char *segment; /* what waits to be sent together */
    size_t n_segment, cap;
    size_t sent;
    heard events[EVENTS_MAX];
    size_t n_events;
    uint8_t key[4]; /* of a frame whose payload comes in pieces */
    size_t key_at;
    bool over;         /* the echo has closed the connection */
    bool failed;       /* it did so because of an error */
    bool tester_close; /* the tester has sent a close frame */
    bool no_code;      /* ... without a code */
    bool bad_order;    /* the echo sent something after its close frame */
    int close_code;    /* of the echo's close frame; 0: none came, 1005: it was empty */
} player;

static uint64_t hash_bytes(const unsigned char *p, size_t n) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t next_random(player *p) {
    p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return p->random >> 33;
}

/* ---- what the echo sends, seen by the tester ---- */

static void note(player *p, char kind, const unsigned char *bytes, size_t n) {
    assert_true(p->n_events < EVENTS_MAX);
    p->events[p->n_events++] = (heard){kind, n, hash_bytes(bytes, n)};
}

/* A whole frame of the echo: a head, then its payload, already unmasked. */
static void hear(player *p, const uint8_t *head, size_t n_head, const unsigned char *payload, size_t n) {
    size_t key = p->server ? 0 : 4, more = n < 126 ? 0 : n < 65536 ? 2 : 8;
    assert_int_equal(n_head, 2 + more + key);
    assert_int_equal(head[1] >> 7, !p->server);
    assert_int_equal(head[1] & 127, more == 0 ? n : more == 2 ? 126 : 127);
    size_t length = more == 0 ? n : 0;
    for (size_t i = 0; i < more; i++) {
        length = length << 8 | head[2 + i];
    }
    assert_int_equal(length, n);
    p->bad_order = p->bad_order || p->close_code != 0;
    switch (head[0]) {
    case 0x81:
    case 0x82:
        note(p, head[0] == 0x81 ? 'T' : 'B', payload, n);
        break;
    case 0x8a:
        note(p, 'O', payload, n);
        break;
    case 0x88:
        p->close_code = n >= 2 ? payload[0] << 8 | payload[1] : 1005;
        break;
    default:
        fail_msg("the echo sent a frame %02x", head[0]);
    }
}

static void hear_control(player *p, uint8_t *frame, size_t n) {
    size_t n_head = p->server ? 2 : 6;
    if (n == 0) {
        return;
    }
    for (size_t i = n_head; i < n && !p->server; i++) {
        frame[i] ^= frame[2 + (i - n_head) % 4];
    }
    hear(p, frame, n_head, frame + n_head, n - n_head);
}

/* ---- the echo ---- */

static void echo(player *p, bool binary, ew_str payload) {
    uint8_t head[EW__WS_HEAD_ROOM];
    size_t n = ew__ws_head(&p->ws, binary, payload.len, head);
    if (n == 0) {
        return;
    }
    unsigned char *copy = malloc(payload.len + 1);
    assert_non_null(copy);
    if (payload.len > 0) {
        memcpy(copy, payload.ptr, payload.len);
    }
    if (!p->server) { /* in two slices, then undone by hand */
        size_t half = payload.len / 3;
        ew__ws_mask(copy, half, head + n - 4, 0);
        ew__ws_mask(copy + half, payload.len - half, head + n - 4, half);
        for (size_t i = 0; i < payload.len; i++) {
            copy[i] ^= head[n - 4 + i % 4];
        }
    }
    hear(p, head, n, copy, payload.len);
    free(copy);
}

static void feed(player *p, const unsigned char *bytes, size_t n) {
    if (p->over) {
        return;
    }
    unsigned char *piece = malloc(n > 0 ? n : 1); /* of its own: a memory checker sees what outlives it */
    assert_non_null(piece);
    memcpy(piece, bytes, n);
    assert_int_equal(ew__ws_feed(&p->ws, piece, n), EW_OK);
    ew__ws_event event;
    while ((event = ew__ws_next(&p->ws, p->env.now_ns)) != EW__WS_MORE && !p->over) {
        uint8_t frame[EW__WS_CONTROL_ROOM];
        if (event == EW__WS_TEXT || event == EW__WS_BINARY) {
            echo(p, event == EW__WS_BINARY, ew__ws_payload(&p->ws));
        } else {
            hear_control(p, frame, ew__ws_answer(&p->ws, frame));
        }
        p->failed = event == EW__WS_ERROR;
        p->over = p->failed || ew__ws_is_closed(&p->ws);
    }
    free(piece);
}

/* ---- what the tester sends ---- */

static void flush_pieces(player *p, size_t chop) {
    for (size_t at = 0, n; at < p->n_segment; at += n) {
        n = p->way == BYTES ? 1 : p->way == RANDOM ? 1 + next_random(p) % 97 : chop > 0 ? chop : p->n_segment;
        if (p->way == RANDOM && next_random(p) % 8 == 0) {
            n *= 100;
        }
        n = n < p->n_segment - at ? n : p->n_segment - at;
        feed(p, p->segment + at, n);
    }
    p->sent += p->n_segment;
    p->n_segment = 0;
}

static void put(player *p, const void *bytes, size_t n) {
    if (n > p->cap - p->n_segment) {
        p->cap = 2 * p->cap + n;
        p->segment = realloc(p->segment, p->cap);
        assert_non_null(p->segment);
    }
    if (n > 0) {
        memcpy(p->segment + p->n_segment, bytes, n);
    }
    p->n_segment += n;
}

static void put_payload(player *p, const unsigned char *payload, size_t n) {
    size_t at = p->n_segment;
    put(p, payload, n);
    for (size_t i = 0; i < n && p->server; i++) {
        p->segment[at + i] ^= p->key[p->key_at++ % 4];
    }
}

static void put_head(player *p, int opcode, bool fin, int rsv, size_t n) {
    uint8_t head[14] = {(uint8_t)((fin ? 0x80 : 0) | rsv << 4 | opcode)};
    size_t more = n < 126 ? 0 : n < 65536 ? 2 : 8, n_head = 2 + more;
    head[1] = (uint8_t)((p->server ? 0x80 : 0) | (more == 0 ? (int)n : more == 2 ? 126 : 127));
    for (size_t i = 0; i < more; i++) {
        head[2 + i] = (uint8_t)((uint64_t)n >> (8 * (more - 1 - i)));
    }
    for (size_t i = 0; i < 4; i++) {
        p->key[i] = (uint8_t)next_random(p);
        head[n_head + i] = p->key[i];
    }
    p->key_at = 0;
    put(p, head, n_head + (p->server ? 4 : 0));
}

static void put_frame(player *p, int opcode, bool fin, int rsv, const unsigned char *payload, size_t n) {
    put_head(p, opcode, fin, rsv, n);
    put_payload(p, payload, n);
}

/* The bytes of a payload: a pattern, repeated to a length. For free(). */
static unsigned char *payload_of(ew_str value, const char *hex_at, const char *len_at, size_t *ret_len) {
    ew_str hex = json_str_or(value, hex_at, EW_STR(""));
    size_t n_pattern = hex.len / 2;
    *ret_len = (size_t)json_int_or(value, len_at, (int64_t)n_pattern);
    unsigned char *bytes = malloc((*ret_len > n_pattern ? *ret_len : n_pattern) + 1);
    assert_non_null(bytes);
    assert_true(ew__unhex(hex, bytes, n_pattern));
    for (size_t i = n_pattern; i < *ret_len; i++) {
        bytes[i] = bytes[i - n_pattern];
    }
    return bytes;
}

static void put_close(player *p, ew_str step) {
    unsigned char body[256];
    int64_t code = json_int_or(step, "/code", -1);
    size_t n = 0, n_reason;
    unsigned char *reason = payload_of(step, "/reason/hex", "/reason/len", &n_reason);
    if (code >= 0) {
        body[n++] = (unsigned char)(code >> 8);
        body[n++] = (unsigned char)code;
    }
    assert_true(n_reason <= sizeof(body) - n);
    memcpy(body + n, reason, n_reason);
    n += n_reason;
    put_frame(p, 8, true, 0, body, n);
    p->tester_close = true;
    p->no_code = n == 0;
    free(reason);
}

static void put_message(player *p, ew_str step, const unsigned char *payload, size_t n) {
    size_t most = (size_t)json_int_or(step, "/fragment", 0), at = 0;
    int opcode = json_bool_or(step, "/binary", false) ? 2 : 1;
    do {
        size_t piece = most > 0 && most < n - at ? most : n - at;
        put_frame(p, opcode, at + piece == n, 0, payload + at, piece);
        at += piece;
        opcode = 0;
    } while (at < n);
}

static bool is_op(ew_str step, const char *op) {
    return ew__str_is(json_str_or(step, "/op", EW_STR("")), ew__str(op, strlen(op)));
}

static void play_step(player *p, ew_str step) {
    size_t n, chop = (size_t)json_int_or(step, "/chop", 0);
    unsigned char *payload = payload_of(step, "/payload/hex", "/payload/len", &n);
    int opcode = (int)json_int_or(step, "/opcode", 0), rsv = (int)json_int_or(step, "/rsv", 0);
    bool fin = json_bool_or(step, "/fin", true), sync = json_bool_or(step, "/sync", false);
    if (chop > 0 || is_op(step, "wait")) {
        flush_pieces(p, 0);
    }
    if (is_op(step, "frame")) {
        put_frame(p, opcode, fin, rsv, payload, n);
    } else if (is_op(step, "message")) {
        put_message(p, step, payload, n);
    } else if (is_op(step, "frame-begin")) {
        put_head(p, opcode, fin, rsv, (size_t)json_int_or(step, "/length", 0));
    } else if (is_op(step, "frame-data")) {
        put_payload(p, payload, n);
    } else if (is_op(step, "close")) {
        put_close(p, step);
    } else if (is_op(step, "wait")) {
        ew_str tag = json_str_or(step, "/tag", EW_STR(""));
        if (tag.len == 1 && !p->over) {
            note(p, (char)(tag.ptr[0] | 0x20), NULL, 0);
        }
        ew__test_env_advance(&p->env, UINT64_C(1000000000));
    } else if (!is_op(step, "kill-after") && !is_op(step, "close-after")) {
        fail_msg("unknown step %.*s", (int)step.len, step.ptr);
    }
    if (chop > 0 || sync) {
        flush_pieces(p, chop);
    }
    free(payload);
}

/* ---- verdicts ---- */

static bool is_event(const heard *h, ew_str want) {
    ew_str ev = json_str_or(want, "/ev", EW_STR(""));
    char kind = ew__str_is(ev, EW_STR("pong"))         ? 'O'
                : ew__str_is(ev, EW_STR("timeout"))    ? (char)(json_str_or(want, "/tag", EW_STR("?")).ptr[0] | 0x20)
                : json_bool_or(want, "/binary", false) ? 'B'
                                                       : 'T';
    if (json_int_or(want, "/length", -1) >= 0) {
        return h->kind == kind && h->len == (size_t)json_int_or(want, "/length", -1);
    }
    size_t n;
    unsigned char *payload = payload_of(want, "/payload/hex", "/payload/len", &n);
    bool same = h->kind == kind && h->len == n && h->hash == hash_bytes(payload, n);
    free(payload);
    return same;
}

static bool events_are(const player *p, ew_str want) {
    ew_json_iter it = {0};
    size_t i = 0;
    while (ew_json_next(want, &it)) {
        if (i >= p->n_events || !is_event(&p->events[i], it.value)) {
            return false;
        }
        i++;
    }
    return i == p->n_events;
}

static bool code_allowed(const player *p, ew_str close) {
    ew_json_iter it = {0};
    if (p->close_code == 1005) { /* an empty frame answers an empty one, and nothing else */
        return p->no_code;
    }
    while (ew_json_next(ew_json_get(close, "/closeCode"), &it)) {
        if (json_int_or(it.value, "", -1) == p->close_code) {
            return true;
        }
    }
    return false;
}

/* NULL, or why the case failed. */
static const char *judge(const player *p, ew_str row) {
    ew_str close = ew_json_get(row, "/close"), want = ew_json_get(row, "/expect/OK");
    if (json_bool_or(row, "/informational", false)) {
        return p->over ? NULL : "the connection is still open";
    }
    if (!ew_json_get(row, "/rtt").ptr && !events_are(p, want)) {
        return "other events than expected";
    }
    if (!p->over || p->bad_order || p->close_code == 0) {
        return p->bad_order ? "something after the close frame" : "not closed";
    }
    if (!code_allowed(p, close)) {
        return "a close code that is not allowed";
    }
    if (json_bool_or(close, "/requireClean", false) && (p->failed || !p->tester_close)) {
        return "not a clean close";
    }
    if (!json_bool_or(close, "/closedByMe", false) && !p->failed) {
        return "closed by the tester";
    }
    return NULL;
}

static void play_steps(player *p, ew_str row) {
    ew_json_iter it = {0};
    while (ew_json_next(ew_json_get(row, "/steps"), &it)) {
        play_step(p, it.value);
    }
    flush_pieces(p, 0);
}

/* Messages one at a time, each echoed. */
static void play_rtt(player *p, ew_str rtt) {
    size_t n;
    unsigned char *payload = payload_of(rtt, "/pattern", "/len", &n);
    int64_t count = json_int_or(rtt, "/count", 0);
    int opcode = json_bool_or(rtt, "/binary", false) ? 2 : 1;
    for (int64_t i = 0; i < count && p->way != BYTES; i++) {
        put_frame(p, opcode, true, 0, payload, n);
        flush_pieces(p, 0);
        assert_int_equal(p->n_events, i + 1);
        assert_int_equal(p->events[i].kind, opcode == 2 ? 'B' : 'T');
        assert_true(p->events[i].hash == hash_bytes(payload, n) && p->events[i].len == n);
    }
    free(payload);
}

static void play(player *p, const corpus *c, bool server, way how, const char *id) {
    ew__test_env_init(&p->env, 7);
    ew__ws_scratch_init(&p->scratch, &p->env.env);
    ew__ws_init(&p->ws, &p->scratch, server, MESSAGE_MAX);
    p->server = server;
    p->way = how;
    p->random = hash_bytes((const unsigned char *)id, strlen(id));
    if (corpus_has(c, "/rtt")) {
        play_rtt(p, ew_json_get(c->row, "/rtt"));
    } else {
        play_steps(p, c->row);
    }
    bool by_me = json_bool_or(c->row, "/close/closedByMe", false);
    if (!p->over && by_me && !p->tester_close) {
        ew_str code = ew_json_get(c->row, "/close/closeCode/0");
        char step[64];
        (void)snprintf(step, sizeof(step), "{\"code\":%.*s}", (int)code.len, code.ptr);
        put_close(p, ew__str(step, strlen(step)));
        flush_pieces(p, 0);
    }
    const char *why = judge(p, c->row);
    if (why != NULL) {
        fail_msg("%s as a %s, way %d: %s (code %d, %zu events, %s)", id, server ? "server" : "client", (int)how, why,
                 p->close_code, p->n_events, p->failed ? ew__ws_error_text(&p->ws) : "no error");
    }
    ew__ws_done(&p->ws);
    ew__ws_scratch_done(&p->scratch);
    assert_int_equal(ew__test_env_live_blocks(&p->env), 0);
    free(p->segment);
}

static size_t play_all(bool server) {
    corpus c;
    size_t n_cases = 0;
    if (!corpus_open(&c, EW_SHARED, "autobahn/autobahn-cases.jsonl")) {
        skip();
    }
    player *p = malloc(sizeof(*p));
    assert_non_null(p);
    while (corpus_next(&c)) {
        char *id = corpus_text(&c, "/id");
        size_t sent = 0;
        if (strncmp(id, "12.", 3) == 0 || strncmp(id, "13.", 3) == 0) { /* compression */
            free(id);
            continue;
        }
        for (int how = AS_SENT; how < N_WAYS; how++) {
            if ((how == BYTES && sent > BYTEWISE_MAX) || (how == RANDOM && sent > RANDOM_MAX)) {
                continue;
            }
            memset(p, 0, sizeof(*p));
            play(p, &c, server, (way)how, id);
            sent = how == AS_SENT ? p->sent : sent;
        }
        n_cases++;
        free(id);
    }
    corpus_close(&c);
    free(p);
    return n_cases;
}

static void test_frame_ws_autobahn__server(void **state) {
    (void)state;
    assert_int_equal(play_all(true), 301);
}

static void test_frame_ws_autobahn__client(void **state) {
    (void)state;
    assert_int_equal(play_all(false), 301);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_ws_autobahn__server),
        cmocka_unit_test(test_frame_ws_autobahn__client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
