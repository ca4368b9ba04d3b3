/*
 * tests/bridge/more_names.c: what imported actions are called, who wins, several executors of the same actions.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"
#include "support/json_or.h"

#define STEPS_OF_LOSS 4000

static const bridge_wire *http(void) { return &bridge_wires[0]; }

/* An origin on http and a gateway on http. */
typedef struct place {
    ew_app *origin, *gateway;
    ew_client *client;
    world w;
    char target[64];
} place;

static void open_place(place *p, const ew_import_options *options, const char *behind_target) {
    char text[128];
    int port = free_port();
    seen_reset();
    p->origin = start_origin(http(), "origin", 0);
    (void)snprintf(text, sizeof text, "%s%s", target_of(http(), port_of(p->origin, NULL), p->target), behind_target);
    p->gateway = start_gateway(http(), port, text, options);
    assert_int_equal(ew_app_wait_imports(p->gateway, WAIT_MS), EW_OK);
    p->client = client_to(target_of(http(), port, text));
    p->w = world_around(p->client, p->origin);
}

static void close_place(place *p) {
    ew_client_free(p->client);
    ew_app_free(p->gateway);
    ew_app_free(p->origin);
}

static void must_echo(const world *w, const char *action) {
    outcome o = {.status = EW_STATUS_OK};
    ask(w, action, "{\"a\":1}", &o);
    if (o.status != EW_STATUS_OK)
        fail_msg("%s ended %s: %s", action, ew_status_name(o.status), o.text);
    assert_string_equal(o.text, "{\"a\":1}");
    outcome_done(&o);
}

static void must_miss(const world *w, const char *action) {
    outcome o = {.status = EW_STATUS_OK};
    ask(w, action, "{\"a\":1}", &o);
    must_fail(&o, EW_STATUS_NOT_FOUND);
    outcome_done(&o);
}

static void prefix(void **state) {
    place p;
    (void)state;
    open_place(&p, &(ew_import_options){.prefix = "py", .refresh_ms = REFRESH_MS}, "");
    must_echo(&p.w, "/flow/py/echo");
    must_echo(&p.w, "py/echo");
    must_miss(&p.w, "/flow/echo");
    must_miss(&p.w, "echo");
    close_place(&p);
}

static void names(void **state) {
    static const char *const some[] = {"echo", "/flow/stream:flow2", "say:/tool/deep/say", NULL};
    place p;
    (void)state;
    open_place(&p, &(ew_import_options){.names = some, .refresh_ms = REFRESH_MS}, "");
    must_echo(&p.w, "/flow/echo");
    must_echo(&p.w, "/flow/flow2");
    must_echo(&p.w, "/tool/deep/say");
    must_miss(&p.w, "/flow/stream");
    must_miss(&p.w, "/flow/say");
    must_miss(&p.w, "/flow/sleep");
    close_place(&p);
}

static void names_and_prefix(void **state) {
    static const char *const some[] = {"echo", "stream:other", NULL};
    place p;
    (void)state;
    open_place(&p, &(ew_import_options){.names = some, .prefix = "py", .refresh_ms = REFRESH_MS}, "");
    must_echo(&p.w, "/flow/py/echo");
    must_miss(&p.w, "/flow/echo");
    must_miss(&p.w, "/flow/stream");
    close_place(&p);
}

/* The same, said behind the target. */
static void names_behind(void **state) {
    place p;
    (void)state;
    open_place(&p, NULL, "#echo,stream:other");
    must_echo(&p.w, "/flow/echo");
    must_echo(&p.w, "/flow/other");
    must_miss(&p.w, "/flow/stream");
    must_miss(&p.w, "/flow/say");
    close_place(&p);
}

static void own(ew_call *call, void *arg) { (void)ew_call_donef(call, "{\"id\":%Q}", (const char *)arg); }

static bool is_id(const outcome *o, const char *id) {
    return o->status == EW_STATUS_OK &&
           ew_str_eq(json_str_or(ew_str_from(o->text), "/id", EW_STR("")), ew_str_from(id));
}

static void must_be_of(const world *w, const char *action, const char *id) {
    outcome o = {.status = EW_STATUS_OK};
    ask(w, action, "{}", &o);
    if (!is_id(&o, id))
        fail_msg("%s is not of %s: %s %s", action, id, ew_status_name(o.status), o.text);
    outcome_done(&o);
}

/* The gateway's own action wins. Two imports of one key: neither is meant by it, and who calls is told their long keys. */
static void clash(void **state) {
    ew_app *a = start_origin(http(), "a", 0), *b = start_origin(bridge_wire_by_name("jsonrpc"), "b", 0);
    int port = free_port();
    char target[64], long_a[64], long_b[64];
    outcome o = {.status = EW_STATUS_OK};
    (void)state;
    ew_app *gateway = make_gateway(http(), port, NULL);
    assert_int_equal(ew_app_action(gateway, "/flow/seen", own, (void *)(uintptr_t) "own", NULL), EW_OK);
    import(gateway, target_of(http(), port_of(a, NULL), target), NULL);
    (void)snprintf(long_a, sizeof long_a, "127.0.0.1:%d:/flow/who", port_of(a, NULL));
    import(gateway, target_of(bridge_wire_by_name("jsonrpc"), port_of(b, NULL), target), NULL);
    (void)snprintf(long_b, sizeof long_b, "127.0.0.1:%d:/flow/who", port_of(b, NULL));
    start_app(gateway);
    assert_int_equal(ew_app_wait_imports(gateway, WAIT_MS), EW_OK);
    ew_client *client = client_to(target_of(http(), port, target));
    world w = world_around(client, a);
    must_be_of(&w, "/flow/seen", "own");
    must_be_of(&w, "seen", "own");
    must_be_of(&w, long_a, "a");
    must_be_of(&w, long_b, "b");
    ask(&w, "/flow/who", "{}", &o);
    must_fail(&o, EW_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(o.text, long_a));
    assert_non_null(strstr(o.text, long_b));
    outcome_done(&o);
    ew_client_free(client);
    ew_app_free(gateway);
    ew_app_free(a);
    ew_app_free(b);
}

/* A prefix tells apart, too. */
static void clash_behind_prefix(void **state) {
    ew_app *a = start_origin(http(), "a", 0);
    int port = free_port();
    char target[64];
    (void)state;
    ew_app *gateway = make_gateway(http(), port, NULL);
    assert_int_equal(ew_app_action(gateway, "/flow/py/who", own, (void *)(uintptr_t) "own", NULL), EW_OK);
    import(gateway, target_of(http(), port_of(a, NULL), target),
           &(ew_import_options){.prefix = "py", .refresh_ms = REFRESH_MS});
    start_app(gateway);
    assert_int_equal(ew_app_wait_imports(gateway, WAIT_MS), EW_OK);
    ew_client *client = client_to(target_of(http(), port, target));
    world w = world_around(client, a);
    must_be_of(&w, "/flow/py/who", "own");
    must_be_of(&w, "py:/flow/py/who", "a");
    must_echo(&w, "/flow/py/echo");
    ew_client_free(client);
    ew_app_free(gateway);
    ew_app_free(a);
}

static void refused(void **state) {
    ew_app *app = ew_app_new("gateway");
    static const char *const bad[] = {"",
                                      "nothing://x",
                                      "http://",
                                      "http://127.0.0.1:1,",
                                      ",http://127.0.0.1:1",
                                      "http://127.0.0.1:1,nothing",
                                      "stepflow+stdio:",
                                      "https://"};
    (void)state;
    assert_non_null(app);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ew_err err = ew_app_import(app, bad[i], NULL);
        if (err != EW_EINVAL && err != EW_EUNSUPPORTED)
            fail_msg("'%s' is taken: %s", bad[i], ew_err_name(err));
        assert_true(ew_app_error(app)[0] != '\0');
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(ew_app_import(app, "http://127.0.0.1:1", NULL), EW_OK);
    assert_int_equal(ew_app_import(app, "http://127.0.0.1:1", NULL), EW_ELIMIT);
    ew_app_free(app);
}

/* ---- several executors ---- */

typedef struct executors {
    const bridge_wire *wire;
    ew_app *a, *b, *gateway;
    int port_a, port_b;
    ew_client *client;
    world w;
} executors;

static void open_homes(executors *h, const char *wire) {
    char targets[160], to_a[64], to_b[64];
    int port = free_port();
    seen_reset();
    h->wire = bridge_wire_by_name(wire);
    h->a = start_origin(h->wire, "a", 0);
    h->b = start_origin(h->wire, "b", 0);
    h->port_a = port_of(h->a, NULL);
    h->port_b = port_of(h->b, NULL);
    (void)snprintf(targets, sizeof targets, "%s,%s", target_of(h->wire, h->port_a, to_a),
                   target_of(h->wire, h->port_b, to_b));
    h->gateway = start_gateway(http(), port, targets, NULL);
    assert_int_equal(ew_app_wait_imports(h->gateway, WAIT_MS), EW_OK);
    h->client = client_to(target_of(http(), port, targets));
    h->w = world_around(h->client, h->a);
    ask_until(h->client, "/flow/echo", EW_STATUS_OK);
}

static void close_homes(executors *h) {
    ew_client_free(h->client);
    ew_app_free(h->gateway);
    ew_app_free(h->a);
    ew_app_free(h->b);
}

/* How many of n calls b has answered. None fails. */
static int share_of_b(const executors *h, int n) {
    outcome o = {.status = EW_STATUS_OK};
    int b = 0;
    for (int i = 0; i < n; i++) {
        ask(&h->w, "/flow/who", "{}", &o);
        if (o.status != EW_STATUS_OK)
            fail_msg("ended %s: %s", ew_status_name(o.status), o.text);
        b += is_id(&o, "b");
    }
    outcome_done(&o);
    return b;
}

static const char *const home_wires[] = {"http", "rrq", "stepflow", "jsonrpc"};
#define N_HOME_WIRES (sizeof home_wires / sizeof *home_wires)

static void in_turn(void **state) {
    (void)state;
    for (size_t i = 0; i < N_HOME_WIRES; i++) {
        executors h;
        open_homes(&h, home_wires[i]);
        assert_in_range(share_of_b(&h, 40), 10, 30);
        close_homes(&h);
    }
}

/* One of them goes: no call fails that could not begin there. It comes back: it has its share again. */
static void fail_over(void **state) {
    (void)state;
    for (size_t i = 0; i < N_HOME_WIRES; i++) {
        executors h;
        int b = 0;
        open_homes(&h, home_wires[i]);
        (void)share_of_b(&h, 10);
        h.b = ew_app_free(h.b);
        assert_int_equal(share_of_b(&h, 60), 0);
        h.b = start_origin(h.wire, "b", h.port_b);
        for (int k = 0; k < 400 && b == 0; k++) {
            b = share_of_b(&h, 10);
            (void)usleep(20000);
        }
        assert_true(b > 0);
        h.a = ew_app_free(h.a); /* the other one */
        assert_int_equal(share_of_b(&h, 20), 20);
        close_homes(&h);
    }
}

/* A call that has begun is not made again elsewhere. */
static void not_repeated(void **state) {
    (void)state;
    for (size_t i = 0; i < N_HOME_WIRES; i++) {
        enum { N = 8 };
        static outcome outcomes[N];
        ew_request *requests[N];
        int lost = 0;
        executors h;
        open_homes(&h, home_wires[i]);
        for (int k = 0; k < N; k++)
            requests[k] = begin_forever(&h.w, &outcomes[k], 0, false);
        cut(h.port_b, i % 2);
        for (int k = 0; k < STEPS_OF_LOSS && atomic_load(&seen.cancelled) == 0; k++)
            (void)usleep(5000);
        int cancelled = atomic_load(&seen.cancelled);
        assert_in_range(cancelled, 1, N - 1);
        (void)usleep(100000); /* for what must not happen */
        assert_int_equal(atomic_load(&seen.opened), N);
        for (int k = 0; k < N; k++)
            ew_request_cancel(requests[k]);
        for (int k = 0; k < N; k++) {
            finish(requests[k], &outcomes[k]);
            lost += outcomes[k].status == EW_STATUS_UNAVAILABLE;
            if (outcomes[k].status != EW_STATUS_UNAVAILABLE)
                must_fail(&outcomes[k], EW_STATUS_CANCELLED);
            outcome_done(&outcomes[k]);
        }
        assert_in_range(lost, 1, N - 1);
        close_homes(&h);
    }
}

const struct CMUnitTest tests_names[] = {cmocka_unit_test(prefix),
                                         cmocka_unit_test(names),
                                         cmocka_unit_test(names_and_prefix),
                                         cmocka_unit_test(names_behind),
                                         cmocka_unit_test(clash),
                                         cmocka_unit_test(clash_behind_prefix),
                                         cmocka_unit_test(refused),
                                         cmocka_unit_test(in_turn),
                                         cmocka_unit_test(fail_over),
                                         cmocka_unit_test(not_repeated),
                                         {.name = NULL}};
