/*
 * tests/bridge/more_upstreams.c: imports with two upstreams, of which one is away or goes down.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"

/* A gateway on a near wire that imports two upstreams as one. */
typedef struct two {
    const bridge_wire *wire;
    int ports[2];
    ew_app *origins[2]; /* NULL: away */
    ew_app *gateway;
    ew_client *client;
    world w;
} two;

static const char *const ids[2] = {"first", "second"};

static void open_two(two *t, const bridge_wire *near, const bridge_wire *far, unsigned present, const char *names) {
    char targets[200], first[64], second[64];
    int port = free_port();
    seen_reset();
    *t = (two){.wire = far};
    for (int i = 0; i < 2; i++) {
        t->ports[i] = free_port();
        if (present & 1u << i)
            t->origins[i] = start_origin(far, ids[i], t->ports[i]);
    }
    (void)snprintf(targets, sizeof targets, "%s,%s%s", target_of(far, t->ports[0], first),
                   target_of(far, t->ports[1], second), names);
    t->gateway = make_gateway(near, port, &(ew_app_options){.threads = 2, .limits = {.runtime_wait_ms = 100}});
    import(t->gateway, targets, NULL);
    start_app(t->gateway);
    assert_int_equal(ew_app_wait_imports(t->gateway, WAIT_MS), EW_OK);
    t->client = client_to(target_of(near, port, first));
    t->w = world_around(t->client, NULL);
}

static void close_two(two *t) {
    ew_client_free(t->client);
    ew_app_free(t->gateway);
    for (int i = 0; i < 2; i++)
        if (t->origins[i])
            ew_app_free(t->origins[i]);
}

/* Waits until calls reach both of them. */
static void both_are_there(const two *t) {
    bool there[2] = {false, false};
    for (int i = 0; i < 2000 && !(there[0] && there[1]); i++) {
        outcome o = {.status = EW_STATUS_OK};
        ask(&t->w, "/flow/who", "{}", &o);
        for (int k = 0; k < 2; k++)
            there[k] = there[k] || (o.status == EW_STATUS_OK && strstr(o.text, ids[k]));
        outcome_done(&o);
        if (i > 4)
            (void)usleep(10000);
    }
    assert_true(there[0] && there[1]);
    atomic_store(&seen.asked, 0);
}

/* ---- one is away ---- */

static void sum_up(ew_client *client) {
    outcome o = {.status = EW_STATUS_OK};
    ew_request_options options = {.action = EW_STR("/flow/sum"), .input_stream = true, .timeout_ms = WAIT_MS};
    ew_request *request = begin_on(client, &options, &o);
    for (int k = 0; k < 3; k++)
        assert_int_equal(ew_request_send(request, EW_STR("7")), EW_OK);
    assert_int_equal(ew_request_send_end(request), EW_OK);
    finish(request, &o);
    must_be(&o, "21");
    outcome_done(&o);
}

/* A call that moves on to the upstream that is there takes all of its input along. */
static void input_moves_on(const bridge_wire *far) {
    for (int away = 0; away < 2; away++) {
        two t;
        open_two(&t, bridge_wire_by_name("jsonrpc"), far, 3, "");
        both_are_there(&t);
        t.origins[away] = ew_app_free(t.origins[away]);
        for (int i = 0; i < 4; i++)
            sum_up(t.client);
        close_two(&t);
    }
}

static void input_moves_on_jsonrpc(void **state) {
    (void)state;
    input_moves_on(bridge_wire_by_name("jsonrpc"));
}

static void input_moves_on_reflection(void **state) {
    (void)state;
    input_moves_on(bridge_wire_by_name("reflection"));
}

/* ---- one goes down ---- */

/* A call keeps the connections of the gateway open while the upstream drains. */
static void goes_down(const bridge_wire *far) {
    enum { N = 40 };
    two t;
    char target[64];
    outcome running[2] = {{.status = EW_STATUS_OK}, {.status = EW_STATUS_OK}}, o = {.status = EW_STATUS_OK};
    ew_request *requests[2];
    open_two(&t, bridge_wire_by_name("jsonrpc"), far, 3, "");
    both_are_there(&t);
    for (int i = 0; i < 2; i++)
        requests[i] = begin_forever(&t.w, &running[i], 0, false);
    both_are_there(&t); /* where a connection carries one call, there is one more now */
    ew_client *direct = client_to(target_of(far, t.ports[0], target));
    ask_until(direct, "/flow/echo", EW_STATUS_OK);
    ew_app_stop(t.origins[0]);
    ask_until(direct, "/flow/echo", EW_STATUS_UNAVAILABLE); /* it drains */
    for (int i = 0; i < N; i++) {
        ask(&t.w, "/flow/who", "{}", &o);
        if (o.status != EW_STATUS_OK)
            fail_msg("%s: call %d ended %s: %s", far->name, i, ew_status_name(o.status), o.text);
        assert_non_null(strstr(o.text, ids[1]));
    }
    assert_int_equal(atomic_load(&seen.asked), N); /* none ran twice */
    for (int i = 0; i < 2; i++) {
        ew_request_cancel(requests[i]);
        finish(requests[i], &running[i]);
        outcome_done(&running[i]);
    }
    outcome_done(&o);
    ew_client_free(direct);
    close_two(&t);
}

static void goes_down_http(void **state) {
    (void)state;
    goes_down(bridge_wire_by_name("http"));
}

static void goes_down_rrq(void **state) {
    (void)state;
    goes_down(bridge_wire_by_name("rrq"));
}

static void goes_down_stepflow(void **state) {
    (void)state;
    goes_down(bridge_wire_by_name("stepflow"));
}

static void goes_down_jsonrpc(void **state) {
    (void)state;
    goes_down(bridge_wire_by_name("jsonrpc"));
}

/* ---- a cancel that is answered with a result ---- */

static void say_farewell(ew_call *call, void *arg) {
    (void)arg;
    for (int i = 0; i < 20; i++)
        (void)ew_call_chunk(call, EW_STR("\"farewell\""));
    (void)ew_call_done(call, EW_STR("\"gone\""));
}

static void farewell(ew_call *call, void *arg) {
    bool wait = false;
    (void)arg;
    if (!ew_call_input_bool(call, "/wait", &wait))
        return;
    if (!wait) {
        (void)ew_call_done(call, EW_STR("null"));
        return;
    }
    (void)ew_call_chunk(call, EW_STR("\"begun\""));
    (void)ew_call_on_cancel(call, say_farewell, NULL);
}

/* The upstream is on another loop than the call: what it streams between the cancel and its result is not lost. */
static void farewell_of_another_loop(void **state) {
    const bridge_wire *far = bridge_wire_by_name("reflection"), *near = bridge_wire_by_name("jsonrpc");
    char target[64];
    int port = free_port(), far_port = free_port();
    (void)state;
    static const char *const names[] = {"/flow/farewell", NULL}; /* a client does it, on a thread of its own */
    ew_app *gateway = start_gateway(near, port, target_of(far, far_port, target), &(ew_import_options){.names = names});
    ew_app *origin = start_origin(far, "origin", far_port);
    ew_client *client = client_to(target_of(near, port, target));
    assert_int_equal(ew_app_action(origin, "/flow/farewell", farewell, NULL, NULL), EW_OK);
    ask_until(client, "/flow/farewell", EW_STATUS_OK);
    for (int i = 0; i < 20; i++) {
        outcome o = {.status = EW_STATUS_OK};
        ew_request_options options = {
            .action = EW_STR("/flow/farewell"), .input = EW_STR("{\"wait\":true}"), .stream = true};
        ew_request *request = begin_on(client, &options, &o);
        assert_true(becomes(&o.n_chunks, 1));
        ew_request_cancel(request);
        finish(request, &o);
        must_be(&o, "\"gone\"");
        assert_int_equal(atomic_load(&o.n_chunks), 21);
        outcome_done(&o);
    }
    ew_client_free(client);
    ew_app_free(origin);
    ew_app_free(gateway);
}

const struct CMUnitTest tests_upstreams[] = {
    cmocka_unit_test(input_moves_on_jsonrpc),   cmocka_unit_test(input_moves_on_reflection),
    cmocka_unit_test(goes_down_http),           cmocka_unit_test(goes_down_rrq),
    cmocka_unit_test(goes_down_stepflow),       cmocka_unit_test(goes_down_jsonrpc),
    cmocka_unit_test(farewell_of_another_loop), {.name = NULL}};
