/*
 * tests/unit/wire/test_auth_limits.c: what a peer may send before a token was accepted, on each wire:
 * the size of a message, the number of refusals; and that a valid token lifts both limits.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/access_world.h"
#include "wire/http/http.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/rrq/rrq.h"

#include <stdlib.h>

#define AUTH_BYTES 2048
#define LARGE ((size_t)1024 * 1024)
#define REFUSALS 3

static void begin(access_world *w, const ew__wire *wire, rig_split split) {
    rig_options options = {.seed = 5, .split = split};
    options.limits.auth_bytes = AUTH_BYTES;
    options.limits.auth_refusals = REFUSALS;
    access_begin(w, wire, &options);
}

/* ---- messages of each wire ---- */

typedef struct kind {
    const ew__wire *wire;
    /* A request whose input has so many bytes of padding. token: that it presents. Returns its size. */
    size_t (*request)(char *out, size_t pad, const char *token);
    size_t (*auth)(char *out, const char *token); /* NULL: each request presents it */
    const char *good;                             /* in the answer to a request */
} kind;

static size_t padded(char *out, const char *before, size_t pad, const char *after) {
    size_t n = strlen(before);
    memcpy(out, before, n);
    memset(out + n, 'x', pad);
    memcpy(out + n + pad, after, strlen(after));
    return n + pad + strlen(after);
}

static size_t jsonrpc_request(char *out, size_t pad, const char *token) {
    (void)token;
    return padded(out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"/test/echo\",\"params\":[\"", pad, "\"]}\n");
}

static size_t jsonrpc_auth(char *out, const char *token) {
    char text[200];
    (void)snprintf(text, sizeof text,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"everywire.auth\",\"params\":{\"token\":\"%s\"}}\n", token);
    return padded(out, text, 0, "");
}

static size_t rrq_frame(char *out, size_t n) {
    uint8_t head[EW__LENPFX_HEAD];
    assert_true(ew__lenpfx_head(n, UINT32_MAX, head));
    memcpy(out, head, sizeof head);
    return n + sizeof head;
}

static size_t rrq_message(char *out, const char *function, const char *member, const char *value, size_t pad) {
    char before[600];
    (void)snprintf(
        before, sizeof before,
        "{\"type\":\"request\",\"payload\":{\"protocol_version\":\"2\",\"request_id\":\"r\",\"job_id\":\"j\","
        "\"function_name\":\"%s\",\"params\":{\"%s\":\"%s",
        function, member, value);
    return rrq_frame(out, padded(out + EW__LENPFX_HEAD, before, pad,
                                 "\"},\"context\":{\"job_id\":\"j\",\"attempt\":1,\"enqueue_time\":"
                                 "\"2026-01-01T00:00:00Z\",\"queue_name\":\"q\"}}}"));
}

static size_t rrq_request(char *out, size_t pad, const char *token) {
    (void)token;
    return rrq_message(out, "/test/echo", "pad", "", pad);
}

static size_t rrq_auth(char *out, const char *token) { return rrq_message(out, "everywire.auth", "token", token, 0); }

static size_t http_request(char *out, size_t pad, const char *token) {
    char before[400];
    (void)snprintf(before, sizeof before,
                   "POST /test/echo HTTP/1.1\r\nHost: localhost\r\n%s%s%sContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n{\"data\":\"",
                   token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "", pad + 11);
    return padded(out, before, pad, "\"}");
}

static const kind kinds[] = {
    {&ew__wire_jsonrpc, jsonrpc_request, jsonrpc_auth, "\"result\":[\""},
    {&ew__wire_rrq, rrq_request, rrq_auth, "\"success\""},
    {&ew__wire_http, http_request, NULL, "HTTP/1.1 200"},
};

/* ---- what is checked ---- */

static bool is_closed(const rig_pair *pair) {
    return pair->end[RIG_SERVER].finishing || pair->end[RIG_SERVER].closing || pair->end[RIG_CLIENT].saw_eof;
}

static bool has_said(const rig_pair *pair, const char *text) {
    const rig_end *end = &pair->end[RIG_CLIENT];
    return end->got && memmem(end->got, end->got_len, text, strlen(text)) != NULL;
}

static void test_large_message_of_a_stranger(const kind *k, rig_split split, char *text) {
    access_world w;
    begin(&w, k->wire, split);
    rig_pair *pair = rig_connect_raw(&w.r, RIG_CLIENT);
    size_t before = ew__test_env_live_bytes(&w.r.env), n = k->request(text, LARGE, NULL), sent = 0, most = 0;
    while (sent < n && !is_closed(pair)) {
        size_t piece = n - sent < 1024 ? n - sent : 1024;
        rig_say(pair, text + sent, piece);
        rig_run(&w.r);
        sent += piece;
        size_t live = ew__test_env_live_bytes(&w.r.env);
        most = live > before + most ? live - before : most;
    }
    assert_true(is_closed(pair));
    assert_true(sent < LARGE / 2); /* its end was not waited for */
    assert_true(most < (size_t)64 * 1024);
    assert_int_equal(w.r.n_opened, 0);
    access_end(&w);
}

static void test_large_message_with_a_token(const kind *k, rig_split split, char *text) {
    access_world w;
    begin(&w, k->wire, split);
    rig_pair *pair = rig_connect_raw(&w.r, RIG_CLIENT);
    size_t n = k->auth ? k->auth(text, "ewt_right") : 0; /* both in one piece: the limit is lifted between them */
    n += k->request(text + n, 20 * AUTH_BYTES, "ewt_right");
    rig_say(pair, text, n);
    rig_run(&w.r);
    assert_true(has_said(pair, k->good));
    assert_false(is_closed(pair));
    access_end(&w);
}

static void test_refusals(const kind *k, char *text) {
    access_world w;
    begin(&w, k->wire, RIG_WHOLE);
    for (int wrong = 0; wrong < 2; wrong++) { /* a wrong token counts as none does */
        rig_pair *pair = rig_connect_raw(&w.r, RIG_CLIENT);
        for (int i = 0; i < REFUSALS; i++) {
            assert_false(is_closed(pair));
            rig_say(pair, text,
                    wrong && k->auth ? k->auth(text, "ewt_wrong") : k->request(text, 0, wrong ? "ewt_wrong" : NULL));
            rig_run(&w.r);
        }
        assert_true(is_closed(pair));
    }
    assert_int_equal(w.r.n_opened, 0);
    access_end(&w);
}

static void test_refusals_then_token(const kind *k, char *text) {
    access_world w;
    begin(&w, k->wire, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&w.r, RIG_CLIENT);
    for (int i = 0; i < REFUSALS - 1; i++)
        rig_say(pair, text, k->request(text, 0, NULL));
    if (k->auth)
        rig_say(pair, text, k->auth(text, "ewt_right"));
    for (int i = 0; i < 2 * REFUSALS; i++) {
        rig_say(pair, text, k->request(text, 0, "ewt_right"));
        rig_run(&w.r);
        assert_true(has_said(pair, k->good));
        rig_forget(pair, pair->end[RIG_CLIENT].got_len);
    }
    assert_false(is_closed(pair));
    access_end(&w);
}

/* A wrong token after a valid one: the connection has no identity any more, and closes. */
static void test_identity_lost(const kind *k, char *text) {
    access_world w;
    begin(&w, k->wire, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&w.r, RIG_CLIENT);
    rig_say(pair, text, k->auth(text, "ewt_right"));
    rig_say(pair, text, k->auth(text, "ewt_wrong"));
    rig_say(pair, text, k->request(text, 0, NULL));
    rig_run(&w.r);
    assert_true(is_closed(pair));
    assert_int_equal(w.r.n_opened, 0);
    access_end(&w);
}

static void test_wire_auth_limits__all(void **state) {
    char *text = malloc(LARGE + 4096);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        test_large_message_of_a_stranger(&kinds[i], RIG_WHOLE, text);
        test_large_message_of_a_stranger(&kinds[i], RIG_RANDOM, text);
        test_large_message_with_a_token(&kinds[i], RIG_WHOLE, text);
        test_large_message_with_a_token(&kinds[i], RIG_RANDOM, text);
        test_refusals(&kinds[i], text);
        test_refusals_then_token(&kinds[i], text);
        if (kinds[i].auth)
            test_identity_lost(&kinds[i], text);
    }
    free(text);
}

/* Behind a Content-Length header: the announced length decides, not a byte of the body is waited for. */
static void test_wire_auth_limits__announced(void **state) {
    static const char head[] = "Content-Length: 2049\r\n\r\n";
    access_world w;
    (void)state;
    begin(&w, &ew__wire_jsonrpc, RIG_WHOLE);
    rig_pair *pair = rig_connect_raw(&w.r, RIG_CLIENT);
    rig_say(pair, head, sizeof head - 1);
    rig_run(&w.r);
    assert_true(is_closed(pair));
    access_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_auth_limits__all),
        cmocka_unit_test(test_wire_auth_limits__announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
