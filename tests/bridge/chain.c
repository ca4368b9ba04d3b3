/*
 * tests/bridge/chain.c: gateways by hand, and chains of them; and what must hold of a bridge of a bridge.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"

#define MOST_HOPS 8

const char *target_of(const bridge_wire *wire, int port, char out[64]) {
    (void)snprintf(out, 64, "%s:%d", wire->target, port);
    return out;
}

ew_app *make_gateway(const bridge_wire *wire, int port, const ew_app_options *options) {
    char text[64];
    ew_app *app = ew_app_new_with("gateway", options ? options : &(ew_app_options){.threads = 2});
    assert_non_null(app);
    (void)snprintf(text, sizeof text, "%s:%d", wire->listen ? wire->listen : "ws://127.0.0.1", port);
    assert_int_equal(wire->listen ? ew_app_listen(app, text) : ew_app_connect(app, text), EW_OK);
    return app;
}

void start_app(ew_app *app) {
    ew_err err = ew_app_start(app);
    if (err != EW_OK)
        fail_msg("cannot start: %s: %s", ew_err_name(err), ew_app_error(app));
}

ew_app *start_gateway(const bridge_wire *wire, int port, const char *targets, const ew_import_options *options) {
    ew_app *app = make_gateway(wire, port, NULL);
    import(app, targets, options);
    start_app(app);
    return app;
}

world world_around(ew_client *caller, ew_app *origin) { return (world){.caller = caller, .origin = origin}; }

/* Ports are chosen before anybody runs, so that it does not matter who listens and who dials. */
void chain_open(chain *c, const char *const *names, size_t n) {
    char target[64];
    *c = (chain){.n = n};
    seen_reset();
    for (size_t i = 0; i < n; i++) {
        c->wires[i] = bridge_wire_by_name(names[i]);
        assert_non_null(c->wires[i]);
        c->ports[i] = free_port();
        c->apps[i] =
            i == 0 ? start_origin(c->wires[i], "origin", c->ports[i])
                   : start_gateway(c->wires[i], c->ports[i], target_of(c->wires[i - 1], c->ports[i - 1], target), NULL);
    }
}

void chain_close(chain *c) {
    for (size_t i = c->n; i-- > 0;)
        c->apps[i] = ew_app_free(c->apps[i]);
}

/* ---- a bridge of a bridge ---- */

static void stop_in_chain(const world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ew_request *request = begin_forever(w, &o, 0, true);
    ew_request_cancel(request);
    finish(request, &o);
    must_fail(&o, EW_STATUS_CANCELLED);
    seen_becomes(w, "running", 0);
    outcome_done(&o);
}

static void one_chain(const char *const names[3]) {
    chain c;
    char target[64];
    bool chunks = true;
    outcome o = {.status = EW_STATUS_OK};
    chain_open(&c, names, 3);
    for (int i = 0; i < 3; i++)
        chunks = chunks && (c.wires[i]->caps & EW__CAN_CHUNKS);
    ew_client *client = client_to(target_of(c.wires[2], c.ports[2], target));
    world w = world_around(client, c.apps[0]);
    ask_until(client, "/flow/echo", EW_STATUS_OK);
    ask(&w, "/flow/echo", "{\"a\":1e400,\"a\":[12345678901234567890]}", &o);
    must_be(&o, "{\"a\":1e400,\"a\":[12345678901234567890]}");
    ask(&w, "/flow/fail", "{\"status\":\"ABORTED\",\"message\":\"m\",\"details\":[1]}", &o);
    must_fail(&o, EW_STATUS_ABORTED);
    assert_string_equal(o.text, "m");
    assert_string_equal(o.details, "[1]");
    ask_stream(&w, "/flow/count", "{\"n\":50}", &o);
    must_be(&o, "{\"count\":50}");
    assert_int_equal(atomic_load(&o.n_chunks), chunks ? 50 : 0);
    stop_in_chain(&w);
    ew_request *request = begin_forever(&w, &o, 0, false);
    c.apps[1] = ew_app_free(c.apps[1]); /* the one in the middle */
    finish(request, &o);
    must_fail(&o, EW_STATUS_UNAVAILABLE);
    seen_becomes(&w, "running", 0);
    outcome_done(&o);
    ew_client_free(client);
    chain_close(&c);
}

static void three_in_a_row(void **state) {
    static const char *const chains[][3] = {{"rrq", "jsonrpc", "http"},
                                            {"http", "reflection", "jsonrpc"},
                                            {"jsonrpc", "http", "reflection"},
                                            {"reflection", "jsonrpc", "http"},
                                            {"stepflow", "rrq", "stepflow"}};
    (void)state;
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
        one_chain(chains[i]);
}

/* ---- how far a call may go ---- */

static void own(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

/* A chain over all wires. Where a call would not be taken any more, its action may be left out of the list, too. */
static void hops(void **state) {
    static const char *const names[] = {"http",     "jsonrpc", "rrq",     "reflection", "stepflow", "http",
                                        "stepflow", "rrq",     "jsonrpc", "http",       "jsonrpc"};
    enum { N = sizeof names / sizeof *names };
    chain c;
    char target[64];
    outcome o = {.status = EW_STATUS_OK};
    (void)state;
    chain_open(&c, names, N);
    for (size_t i = 1; i < N; i++) {
        if (!c.wires[i]->listen)
            continue; /* its port is the next one's */
        ew_client *client = client_to(target_of(c.wires[i], c.ports[i], target));
        world w = world_around(client, c.apps[0]);
        if (i <= MOST_HOPS)
            ask_until(client, "/flow/echo", EW_STATUS_OK);
        else
            (void)usleep(5 * 1000 * REFRESH_MS); /* its list would have it by now */
        int asked = atomic_load(&seen.asked);
        ask(&w, "/flow/who", "{}", &o);
        if (i > MOST_HOPS && o.status != EW_STATUS_NOT_FOUND)
            must_fail(&o, EW_STATUS_FAILED_PRECONDITION);
        else if (i <= MOST_HOPS)
            must_fail(&o, EW_STATUS_OK);
        assert_int_equal(atomic_load(&seen.asked), asked + (i <= MOST_HOPS));
        ew_client_free(client);
    }
    outcome_done(&o);
    chain_close(&c);
}

/* Two gateways have each other's actions. What is behind one of them is lost: calls go round, and end. */
static void go_round(const bridge_wire *wire) {
    const bridge_wire *http = bridge_wire_by_name("http");
    int at = free_port(), a = free_port(), b = free_port();
    char targets[200], to_a[64], to_b[64], to_origin[64];
    outcome o = {.status = EW_STATUS_OK};
    ew_app *origin = start_origin(http, "origin", at);
    (void)snprintf(targets, sizeof targets, "%s,%s", target_of(http, at, to_origin), target_of(wire, b, to_b));
    ew_app *first = start_gateway(http, a, targets, NULL);
    ew_app *second = start_gateway(wire, b, target_of(http, a, to_a), NULL);
    ew_client *client = client_to(to_a);
    world w = world_around(client, origin);
    ask_until(client, "/flow/echo", EW_STATUS_OK);
    (void)usleep(3 * 1000 * REFRESH_MS);
    for (int k = 0; k < 20; k++) { /* some of them go round once or twice before they get there */
        ask(&w, "/flow/who", "{}", &o);
        assert_int_equal(o.status, EW_STATUS_OK);
    }
    origin = ew_app_free(origin);
    ask_until(client, "/flow/echo", EW_STATUS_FAILED_PRECONDITION); /* now both know of each other */
    for (int k = 0; k < 20; k++) {
        ask(&w, "/flow/echo", "{}", &o);
        if (o.status != EW_STATUS_FAILED_PRECONDITION)
            fail_msg("%s, call %d: %s: %s", wire->name, k, ew_status_name(o.status), o.text);
    }
    outcome_done(&o);
    ew_client_free(client);
    ew_app_free(first);
    ew_app_free(second);
}

static void round_and_round(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++)
        go_round(&bridge_wires[i]);
}

/* Two that import each other under prefixes would find new names for ever. */
static void prefixes_end(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++) {
        const bridge_wire *wire = &bridge_wires[i];
        int a = free_port(), b = free_port();
        char target[64];
        if (!wire->listen)
            continue;
        ew_app *first = make_gateway(wire, a, NULL), *second = make_gateway(wire, b, NULL);
        assert_int_equal(ew_app_action(first, "/flow/own", own, NULL, NULL), EW_OK);
        import(first, target_of(wire, b, target), &(ew_import_options){.prefix = "b", .refresh_ms = 20});
        import(second, target_of(wire, a, target), &(ew_import_options){.prefix = "a", .refresh_ms = 20});
        start_app(first);
        start_app(second);
        ew_client *client = client_to(target_of(wire, b, target));
        ask_until(client, "/flow/a/own", EW_STATUS_OK);
        ask_until(client, "/flow/a/b/a/own", EW_STATUS_OK);
        (void)sleep(1);
        ask_until(client, "/flow/a/b/a/b/a/b/a/b/a/b/a/b/a/own", EW_STATUS_NOT_FOUND);
        ew_client_free(client);
        ew_app_free(first);
        ew_app_free(second);
    }
}

const struct CMUnitTest tests_chain[] = {cmocka_unit_test(three_in_a_row), {.name = NULL}};
const struct CMUnitTest tests_hops[] = {cmocka_unit_test(hops), {.name = NULL}};
const struct CMUnitTest tests_round[] = {
    cmocka_unit_test(round_and_round), cmocka_unit_test(prefixes_end), {.name = NULL}};
