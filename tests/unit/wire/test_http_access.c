/*
 * tests/unit/wire/test_http_access.c: the access decision of the http wire, for the whole product
 * of path, method, upgrade, guest and token. The expected result is computed here from the
 * documented rules alone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/access_world.h"
#include "wire/http/http.h"
#include "wire/http_guest.h"
#include "wire/reflection/reflection.h"

static unsigned n_upgrades, n_guest, n_jobs;

/* ---- what a request may reach ---- */

static void become(ew__conn *conn, const ew__wire *wire, ew__role role, const uint8_t *rest, size_t n) {
    (void)rest;
    (void)n;
    assert_ptr_equal(wire, &ew__wire_reflection);
    assert_int_equal(role, EW__CALL);
    n_upgrades++;
    conn->ops->finish(conn); /* in place of the wire that would go on */
}

static bool guest_takes(const ew__site *site, ew__http_method method, ew_str path) {
    (void)path;
    return method == EW__HTTP_POST || (site->only_guest && method == EW__HTTP_GET);
}

static bool jobs_takes(const ew__site *site, ew__http_method method, ew_str path) {
    (void)site;
    (void)method;
    return ew__str_has_prefix(path, EW_STR("/jobs"));
}

static void answer(ew__exchange *exchange) {
    ew__rpc_out message;
    ew__rpc_out_begin(&message, EW_STR("{}"));
    exchange->ops->answer(exchange, 200, &message, NULL);
}

static void guest_request(ew__exchange *exchange, ew_str body) {
    (void)body;
    n_guest++;
    answer(exchange);
}

static void jobs_request(ew__exchange *exchange, ew_str body) {
    (void)body;
    n_jobs++;
    answer(exchange);
}

static const ew__http_guest guest = {.takes = guest_takes, .request = guest_request};
static const ew__http_guest jobs = {.takes = jobs_takes, .request = jobs_request};

/* ---- the product ---- */

static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS", "DELETE", "PUT"};
static const char *const paths[] = {"/healthz", "/readyz",      "/health",    "/healthz/",  "/%68ealthz",
                                    "/metrics", "/api/actions", "/jobs/test", "/test/echo", "/"};

enum { LISTEN_ALL, LISTEN_UPGRADE, LISTEN_GUEST, LISTEN_PLAIN, N_LISTEN };
enum { UPGRADE_NO, UPGRADE_WHOLE, UPGRADE_KEY_ONLY, N_UPGRADE };

typedef struct point {
    unsigned method, path, upgrade, listen, token;
} point;

static void set_site(ew__site *site, unsigned listen) {
    site->upgrade = listen == LISTEN_PLAIN ? NULL : &ew__wire_reflection;
    site->only_upgrade = listen == LISTEN_UPGRADE;
    site->guest = listen == LISTEN_GUEST ? &guest : NULL;
    site->only_guest = listen == LISTEN_GUEST;
    site->jobs = listen == LISTEN_ALL ? &jobs : NULL;
}

static size_t write_request(const point *at, char *out, size_t size) {
    static const char whole[] = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    static const char key[] = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const char *upgrade = at->upgrade == UPGRADE_WHOLE ? whole : at->upgrade == UPGRADE_KEY_ONLY ? key : "";
    const char *token = access_tokens[at->token];
    bool post = strcmp(methods[at->method], "POST") == 0 && at->upgrade == UPGRADE_NO;
    int n = snprintf(out, size, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s%s%s\r\n%s", methods[at->method],
                     paths[at->path], token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "",
                     upgrade, post ? "Content-Type: application/json\r\nContent-Length: 10\r\n" : "",
                     post ? "{\"data\":1}" : "");
    assert_in_range(n, 1, size - 1);
    return (size_t)n;
}

static bool is_open_page(const point *at) {
    bool reads = at->method < 2;
    bool health = at->path < 3 || at->path == 4; /* the last is "/healthz", percent-encoded */
    bool upgrades = at->upgrade != UPGRADE_NO && at->listen != LISTEN_PLAIN;
    bool guests = at->listen == LISTEN_GUEST && at->method == 0; /* it takes every GET, health included */
    return reads && health && !upgrades && !guests;
}

static void check(const point *at, int status) {
    bool good = at->token >= TOKEN_RIGHT, upgrades = at->upgrade != UPGRADE_NO && at->listen != LISTEN_PLAIN;
    if (is_open_page(at))
        assert_int_equal(status, 200);
    else if (!good)
        assert_int_equal(status, 401);
    else
        assert_int_not_equal(status, 401);
    if (upgrades && good && at->token == TOKEN_ACTION)
        assert_int_equal(status, 403);
    bool taken = upgrades && at->upgrade == UPGRADE_WHOLE && at->method == 0 &&
                 (at->token == TOKEN_RIGHT || at->token == TOKEN_RUNTIME);
    assert_int_equal(status == 101, taken);
    assert_int_equal(n_upgrades, taken);
    if (!good || upgrades)
        assert_int_equal(n_guest + n_jobs, 0);
    if (n_jobs)
        assert_int_equal(at->token, TOKEN_RIGHT); /* the others may not use /jobs */
}

static void ask(access_world *w, ew__conn_ops *ops, const point *at) {
    char text[1024];
    rig_pair *pair = rig_connect_raw(&w->r, RIG_CLIENT);
    ew__conn *conn = &pair->end[RIG_SERVER].conn;
    unsigned opened = w->r.n_opened;
    int status = 0;
    *ops = *conn->ops;
    ops->become = become;
    conn->ops = ops;
    n_upgrades = n_guest = n_jobs = 0;
    rig_say(pair, text, write_request(at, text, sizeof text));
    rig_run(&w->r);
    const char *got = pair->end[RIG_CLIENT].got;
    if (!got || sscanf(got, "HTTP/1.1 %3d", &status) != 1)
        fail_msg("no answer to %s", text);
    check(at, status);
    if (at->token != TOKEN_RIGHT)
        assert_int_equal(w->r.n_opened, opened);
    rig_close(pair, RIG_CLIENT);
    rig_run(&w->r);
}

static void run_product(unsigned listen) {
    static ew__conn_ops ops;
    point at = {.listen = listen};
    for (at.token = 0; at.token < N_TOKENS; at.token++) {
        access_world w;
        access_begin(&w, &ew__wire_http, &(rig_options){.seed = 3});
        set_site(&w.r.side[RIG_SERVER].site, listen);
        for (at.method = 0; at.method < sizeof methods / sizeof *methods; at.method++)
            for (at.path = 0; at.path < sizeof paths / sizeof *paths; at.path++)
                for (at.upgrade = 0; at.upgrade < N_UPGRADE; at.upgrade++)
                    ask(&w, &ops, &at);
        access_end(&w);
    }
}

static void test_wire_http_access__all(void **state) {
    (void)state;
    run_product(LISTEN_ALL);
}

static void test_wire_http_access__only_upgrade(void **state) {
    (void)state;
    run_product(LISTEN_UPGRADE);
}

static void test_wire_http_access__only_guest(void **state) {
    (void)state;
    run_product(LISTEN_GUEST);
}

static void test_wire_http_access__plain(void **state) {
    (void)state;
    run_product(LISTEN_PLAIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_http_access__all),
        cmocka_unit_test(test_wire_http_access__only_upgrade),
        cmocka_unit_test(test_wire_http_access__only_guest),
        cmocka_unit_test(test_wire_http_access__plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
