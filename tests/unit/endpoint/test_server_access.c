/*
 * tests/unit/endpoint/test_server_access.c: the connections of a server that requires tokens: the time
 * to authenticate, tokens that are revoked or expire, and who may take over the id of a runtime. Real
 * sockets; timers are brought forward instead of waited for.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/server.h"
#include "support/tokens.h"
#include "support/ws_peer.h"
#include "unit/io/world.h"
#include "wire/http/http.h"
#include "wire/reflection/reflection.h"

typedef struct scene {
    world w;
    ew__registry registry;
    ew__clients clients;
    ew__access access;
    ew__gate gate;
    ew__server server;
    ew__address address;
    atomic_uint connections;
    unsigned n_closed;
} scene;

static uint64_t wall;

static uint64_t wall_ms(void *ud) {
    (void)ud;
    return wall;
}

static void begin(scene *s) {
    memset(s, 0, sizeof *s);
    world_init(&s->w);
    wall = ACCESS_EXPIRES_MS - 1;
    s->w.env.wall_ms = wall_ms;
    ew__clients_init(&s->clients, &s->w.env);
    ew__access_init(&s->access, &s->w.env, &s->clients);
    s->access.required = true;
    ew__access_set(&s->access, access_list(&s->w.env, false));
    ew__gate_init(&s->gate, &s->access);
    s->w.loop.executor.calls->gate = &s->gate;
    assert_int_equal(ew__registry_init(&s->registry, &s->w.env), EW_OK);
    assert_int_equal(ew__server_init(&s->server, &s->w.loop, &s->registry, 1, &s->connections), EW_OK);
    s->server.clients = &s->clients;
    s->server.ud = s;
    ew__site site = {.upgrade = &ew__wire_reflection};
    assert_int_equal(ew__address_parse("127.0.0.1:0", &s->address), EW_OK);
    assert_int_equal(ew__server_listen(&s->server, &s->address, NULL, &site, NULL), EW_OK);
}

static void on_server_closed(ew__server *server) { ((scene *)server->ud)->n_closed++; }

static void finish(scene *s) {
    ew__server_close(&s->server, true, on_server_closed);
    run_until(&s->w, &s->n_closed, 1);
    ew__server_done(&s->server);
    ew__registry_done(&s->registry);
    ew__gate_done(&s->gate);
    ew__access_done(&s->access);
    ew__clients_done(&s->clients);
    world_done(&s->w);
}

/* ---- clients ---- */

static uint64_t n_accepted(const scene *s) { return atomic_load(&s->server.traffic.accepted); }

/* A connection that the server has accepted. */
static ew__link *dial(scene *s, end *e) {
    uint64_t before = n_accepted(s);
    ew__where where = {.kind = EW__WHERE_TCP, .port = s->address.port, .host = "127.0.0.1"};
    end_init(e, &s->w);
    assert_int_equal(end_dial(e, &where), EW_OK);
    while (n_accepted(s) == before)
        uv_run(s->w.loop.uv, UV_RUN_ONCE);
    return s->server.links;
}

static void say(end *e, const char *text) { end_send(e, text, strlen(text)); }

static void run_until_said(scene *s, end *e, const char *text) {
    uint64_t until = ew__executor_read_clock(&s->w.loop.executor) + PATIENCE_NS;
    while (!e->in || !memmem(e->in, e->n_in, text, strlen(text))) {
        if (e->n_eof || e->n_closed || ew__executor_read_clock(&s->w.loop.executor) > until)
            fail_msg("never said: %s, but: %s", text, e->in ? e->in : "nothing");
        uv_run(s->w.loop.uv, UV_RUN_ONCE);
    }
}

/* The server has closed the connection: the client reads its end, or that it was reset. */
static void run_until_closed(scene *s, end *e) {
    uint64_t until = ew__executor_read_clock(&s->w.loop.executor) + PATIENCE_NS;
    while (!e->n_eof && !e->n_closed) {
        if (ew__executor_read_clock(&s->w.loop.executor) > until)
            fail_msg("the connection stays open");
        uv_run(s->w.loop.uv, UV_RUN_ONCE);
    }
}

static void leave(end *e) {
    if (e->n_closed)
        end_free(e);
    else
        end_close(e);
}

static void authenticate(scene *s, end *e, int token) {
    char text[200];
    (void)snprintf(
        text, sizeof text,
        "{\"jsonrpc\":\"2.0\",\"id\":\"auth\",\"method\":\"everywire.auth\",\"params\":{\"token\":\"%s\"}}\n",
        access_tokens[token]);
    say(e, text);
    run_until_said(s, e, "\"id\":\"auth\"");
}

static void forget(end *e) {
    free(e->in);
    e->in = NULL;
    e->n_in = 0;
}

static bool still_works(scene *s, end *e) {
    forget(e);
    say(e, "{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"method\":\"rpc.discover\"}\n");
    run_until_said(s, e, "\"id\":\"d\"");
    return strstr(e->in, "\"result\"") != NULL;
}

static void upgrade(scene *s, end *e, int token) {
    char text[400];
    (void)dial(s, e);
    (void)snprintf(text, sizeof text,
                   "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                   access_tokens[token]);
    say(e, text);
    run_until_said(s, e, "\r\n\r\n");
    assert_non_null(strstr(e->in, " 101 "));
}

/* Registers an id on an upgraded connection; what the server has answered is in e->in. */
static void registers(scene *s, end *e, const char *id) {
    char text[300];
    uint8_t frame[sizeof text + WS_PEER_HEAD];
    int n = snprintf(text, sizeof text,
                     "{\"jsonrpc\":\"2.0\",\"id\":\"reg\",\"method\":\"register\",\"params\":{\"id\":\"%s\",\"pid\":1,"
                     "\"name\":\"n\",\"genkitVersion\":\"js/1\",\"reflectionApiSpecVersion\":1}}",
                     id);
    forget(e);
    end_send(e, frame, ws_peer_frame(frame, WS_FIN | WS_TEXT, true, text, (size_t)n));
    run_until_said(s, e, "\"id\":\"reg\"");
}

static bool was_refused(const end *e) { return memmem(e->in, e->n_in, "another identity", 16) != NULL; }

static void bring_forward(scene *s, ew__timer *timer) {
    ew__executor *executor = &s->w.loop.executor;
    assert_true(ew__timer_active(timer));
    assert_int_equal(ew__timer_set(&executor->timers, timer, ew__executor_read_clock(executor), timer->fn), EW_OK);
}

/* ---- time ---- */

static const struct {
    const char *text, *answer; /* NULL: none comes */
} strangers[] = {
    {"", NULL},
    {"{", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n", "UNAUTHENTICATED"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"everywire.auth\",\"params\":{\"token\":\"no\"}}\n", "UNAUTHENTICATED"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"everywire.auth\"}\n", NULL},
    {"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", " 401 "},
    {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 "},
    {"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", NULL},
};

/* Each has the same time, whatever it sends; an answer does not extend it. */
static void test_time_to_authenticate(void **state) {
    (void)state;
    scene s;
    begin(&s);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        end e;
        ew__link *link = dial(&s, &e);
        uint64_t at = link->authenticating.at;
        assert_true(at <= s.w.loop.executor.now + EW__MS(s.w.limits.auth_ms));
        say(&e, strangers[i].text);
        if (strangers[i].answer)
            run_until_said(&s, &e, strangers[i].answer);
        assert_int_equal(link->authenticating.at, at);
        bring_forward(&s, &link->authenticating);
        run_until_closed(&s, &e);
        leave(&e);
    }
    finish(&s);
}

static void test_authenticated_in_time(void **state) {
    (void)state;
    scene s;
    end rpc, http;
    begin(&s);
    ew__link *link = dial(&s, &rpc);
    authenticate(&s, &rpc, TOKEN_RIGHT);
    bring_forward(&s, &link->authenticating);
    assert_true(still_works(&s, &rpc));
    link = dial(&s, &http);
    say(&http, "GET /api/actions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ewt_right\r\n\r\n");
    run_until_said(&s, &http, " 200 ");
    bring_forward(&s, &link->authenticating);
    say(&http, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    run_until_said(&s, &http, "ok\n");
    leave(&rpc);
    leave(&http);
    finish(&s);
}

/* ---- tokens that are no longer valid ---- */

static void test_revoked(void **state) {
    (void)state;
    scene s;
    end rpc, http, runtime, other;
    begin(&s);
    (void)dial(&s, &rpc);
    authenticate(&s, &rpc, TOKEN_RIGHT);
    (void)dial(&s, &other);
    authenticate(&s, &other, TOKEN_ACTION);
    (void)dial(&s, &http);
    say(&http, "GET /api/actions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ewt_right\r\n\r\n");
    run_until_said(&s, &http, " 200 ");
    upgrade(&s, &runtime, TOKEN_RIGHT);
    registers(&s, &runtime, "r");
    assert_int_equal(s.server.runtimes.n, 1);
    ew__access_set(&s.access, access_list(&s.w.env, true));
    bring_forward(&s, &s.server.access_check);
    run_until_closed(&s, &runtime);
    run_until_closed(&s, &rpc);
    run_until_closed(&s, &http);
    while (s.server.runtimes.n > 0)
        uv_run(s.w.loop.uv, UV_RUN_ONCE);
    assert_true(still_works(&s, &other));
    assert_true(ew__timer_active(&s.server.access_check)); /* it goes on */
    leave(&rpc);
    leave(&http);
    leave(&runtime);
    leave(&other);
    finish(&s);
}

static void test_expired(void **state) {
    (void)state;
    scene s;
    end brief, lasting;
    begin(&s);
    (void)dial(&s, &brief);
    authenticate(&s, &brief, TOKEN_EXPIRED);
    assert_true(still_works(&s, &brief));
    (void)dial(&s, &lasting);
    authenticate(&s, &lasting, TOKEN_RIGHT);
    bring_forward(&s, &s.server.access_check);
    assert_true(still_works(&s, &brief));
    wall = ACCESS_EXPIRES_MS;
    bring_forward(&s, &s.server.access_check);
    run_until_closed(&s, &brief);
    assert_true(still_works(&s, &lasting));
    leave(&brief);
    leave(&lasting);
    finish(&s);
}

/* ---- runtimes ---- */

static void test_takeover(void **state) {
    (void)state;
    scene s;
    end victim, thief, again;
    begin(&s);
    upgrade(&s, &victim, TOKEN_RUNTIME);
    registers(&s, &victim, "x");
    assert_false(was_refused(&victim));
    upgrade(&s, &thief, TOKEN_RIGHT);
    registers(&s, &thief, "x");
    assert_true(was_refused(&thief));
    assert_int_equal(s.server.runtimes.n, 1);
    registers(&s, &thief, "y"); /* and by another name, which is then changed */
    assert_false(was_refused(&thief));
    registers(&s, &thief, "x");
    assert_true(was_refused(&thief));
    assert_int_equal(s.server.runtimes.n, 2);
    assert_int_equal(victim.n_eof + victim.n_closed, 0);
    upgrade(&s, &again, TOKEN_RUNTIME); /* the same identity: it has lost its connection, say */
    registers(&s, &again, "x");
    assert_false(was_refused(&again));
    run_until_closed(&s, &victim);
    assert_int_equal(s.server.runtimes.n, 2);
    leave(&victim);
    leave(&thief);
    leave(&again);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_to_authenticate),
        cmocka_unit_test(test_authenticated_in_time),
        cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_expired),
        cmocka_unit_test(test_takeover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
