/*
 * tests/unit/endpoint/test_upgrade.c: a request of HTTP that becomes a WebSocket, up to the hand-over to its wire.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/action.h"
#include "unit/endpoint/fake.h"
#include "wire/http/http.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define ASKS "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define HANDSHAKE ASKS KEY VERSION
#define TAKEN                                                                                                          \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "          \
    "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

static ew__registry registry;

static void setup(fake *fake_) {
    fake_init(fake_, &ew__wire_http);
    assert_int_equal(ew__registry_init(&registry, &f->w.env), EW_OK);
    f->site.actions = ew__registry_get(&registry);
    f->site.upgrade = &wire_back;
    f->site.port = 3400;
}

static void teardown(void) {
    ew__actions_unref(f->site.actions);
    ew__registry_done(&registry);
    fake_done();
}

/* Sends a request, then `rest` behind it; returns when `until` has come back (or everything, with until NULL). */
static const char *ask(end *client, const char *request, const char *rest, const char *until) {
    fake_dial(client);
    end_send(client, request, strlen(request));
    end_send(client, rest, strlen(rest));
    uint64_t end_at = ew__executor_read_clock(&f->w.loop.executor) + PATIENCE_NS;
    while (!(client->in && until && strstr(client->in, until)) && !client->n_eof) {
        if (ew__executor_read_clock(&f->w.loop.executor) > end_at)
            fail_msg("never said: %s, but: %s", until, client->in ? client->in : "nothing");
        uv_run(f->w.loop.uv, UV_RUN_ONCE);
    }
    return client->in;
}

static void leave(end *client) {
    end_close(client);
    run_until(&f->w, &f->n_closed, f->n_links);
}

static void test_taken(void **state) {
    (void)state;
    fake fake_;
    end client;
    setup(&fake_);
    const char *said =
        ask(&client, "GET /any?x=1 HTTP/1.1\r\nHost: localhost:3400\r\n" HANDSHAKE "\r\n", "early", "early");
    assert_string_equal(said, TAKEN "early");
    end_send(&client, "late", 4);
    run_until_bytes(&f->w, &client.n_in, strlen(TAKEN) + 9);
    assert_string_equal(client.in, TAKEN "earlylate");
    leave(&client);
    assert_int_equal(f->n_greet, 1);
    teardown();
}

static void test_byte_by_byte(void **state) {
    (void)state;
    fake fake_;
    end client;
    static const char text[] = "GET / HTTP/1.1\r\nHost: localhost:3400\r\n" HANDSHAKE "\r\nframes";
    setup(&fake_);
    fake_dial(&client);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        end_send(&client, text + i, 1);
        ew__stream_flush(&client.stream);
        run_ms(&f->w, 1);
    }
    run_until_bytes(&f->w, &client.n_in, strlen(TAKEN) + 6);
    assert_string_equal(client.in, TAKEN "frames");
    leave(&client);
    teardown();
}

/* Behind another request, in the same segment. */
static void test_pipelined(void **state) {
    (void)state;
    fake fake_;
    end client;
    setup(&fake_);
    const char *said = ask(&client,
                           "GET /healthz HTTP/1.1\r\nHost: localhost:3400\r\n\r\n"
                           "GET / HTTP/1.1\r\nHost: localhost:3400\r\n" HANDSHAKE "\r\n",
                           "early", "early");
    assert_int_equal(strncmp(said, "HTTP/1.1 200 OK", 15), 0);
    assert_non_null(strstr(said, TAKEN "early"));
    leave(&client);
    teardown();
}

static const struct {
    const char *request, *answer, *field;
} refused[] = {
    {"GET / HTTP/1.1\r\nHost: evil.example\r\n" HANDSHAKE "\r\n", "403", ""},
    {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n" HANDSHAKE "\r\n", "403", ""},
    {"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n" HANDSHAKE "\r\n", "403", ""},
    {"GET /%00 HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "400", ""},
    {"GET / HTTP/1.1\r\nHost: localhost\r\n" ASKS KEY "\r\n", "426", "\r\nSec-WebSocket-Version: 13\r\n"},
    {"GET / HTTP/1.1\r\nHost: localhost\r\n" ASKS KEY "Sec-WebSocket-Version: 8\r\n\r\n", "426", "Upgrade: websocket"},
    {"GET / HTTP/1.1\r\nHost: localhost\r\n" ASKS VERSION "\r\n", "400", ""},
    {"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n" KEY VERSION "\r\n", "426", ""},
    {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n" KEY VERSION "\r\n", "426", ""},
    {"GET / HTTP/1.0\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "400", ""},
    {"POST /flow/echo HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "405", "Allow: GET"},
    {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n" HANDSHAKE "\r\n", "400", "Connection: close"},
    {"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" HANDSHAKE "\r\n", "400", ""},
};

static void test_refused(void **state) {
    (void)state;
    fake fake_;
    setup(&fake_);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        end client;
        char begin[16];
        (void)snprintf(begin, sizeof begin, "HTTP/1.1 %s ", refused[i].answer);
        const char *said = ask(&client, refused[i].request, "", "\"message\":");
        if (strncmp(said, begin, strlen(begin)) != 0 || !strstr(said, refused[i].field))
            fail_msg("not %s with %s: %s\nfor\n%s", begin, refused[i].field, said, refused[i].request);
        leave(&client);
    }
    assert_int_equal(f->n_greet, 0);
    teardown();
}

/* A refusal does not end the connection: the client may ask again, better. */
static void test_refused_then_taken(void **state) {
    (void)state;
    fake fake_;
    end client;
    setup(&fake_);
    const char *said = ask(&client, "GET / HTTP/1.1\r\nHost: localhost\r\n" ASKS KEY "\r\n",
                           "GET / HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\nearly", "early");
    assert_int_equal(strncmp(said, "HTTP/1.1 426 ", 13), 0);
    assert_non_null(strstr(said, TAKEN "early"));
    leave(&client);
    teardown();
}

static void test_draining(void **state) {
    (void)state;
    fake fake_;
    end client;
    setup(&fake_);
    f->site.draining = true;
    const char *said = ask(&client, "GET / HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "", NULL);
    assert_int_equal(strncmp(said, "HTTP/1.1 503 ", 13), 0);
    leave(&client);
    teardown();
}

/* Nobody takes WebSockets here: such a request is one like any other. */
static void test_no_upgrade(void **state) {
    (void)state;
    fake fake_;
    end client;
    setup(&fake_);
    f->site.upgrade = NULL;
    const char *said = ask(&client, "GET / HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "", "\"message\":");
    assert_int_equal(strncmp(said, "HTTP/1.1 405 ", 13), 0);
    leave(&client);
    said = ask(&client, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "", "ok\n");
    assert_int_equal(strncmp(said, "HTTP/1.1 200 ", 13), 0);
    leave(&client);
    teardown();
}

static void test_only_upgrade(void **state) {
    (void)state;
    static const char *const others[] = {
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /api/actions HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /flow/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    };
    fake fake_;
    end client;
    setup(&fake_);
    f->site.only_upgrade = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *said = ask(&client, others[i], "", "over WebSocket\"");
        assert_int_equal(strncmp(said, "HTTP/1.1 426 Upgrade Required\r\n", 31), 0);
        assert_non_null(strstr(said, "\r\nUpgrade: websocket\r\n"));
        assert_non_null(strstr(said, "\"message\":\"this listener takes Genkit runtimes over WebSocket\""));
        leave(&client);
    }
    const char *said = ask(&client, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "ok\n");
    assert_int_equal(strncmp(said, "HTTP/1.1 200 ", 13), 0);
    leave(&client);
    said = ask(&client, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "ok\n");
    assert_int_equal(strncmp(said, "HTTP/1.1 200 ", 13), 0);
    leave(&client);
    said = ask(&client, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "", "\"message\":");
    assert_int_equal(strncmp(said, "HTTP/1.1 403 ", 13), 0);
    leave(&client);
    said = ask(&client, "GET / HTTP/1.1\r\nHost: localhost\r\n" HANDSHAKE "\r\n", "early", "early");
    assert_string_equal(said, TAKEN "early");
    leave(&client);
    teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),      cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_pipelined),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_draining),   cmocka_unit_test(test_refused_then_taken),
        cmocka_unit_test(test_no_upgrade), cmocka_unit_test(test_only_upgrade),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
