/*
 * tests/bridge/more_life.c: peers come and go: actions that are added, origins that are restarted, or not there yet.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"

/* A gateway on http that imports what is (or will be) at that port; a far wire that dials is listened for there. */
typedef struct place {
    const bridge_wire *far;
    int far_port;
    ew_app *gateway;
    ew_client *client;
    world w;
} place;

static void open_place(place *p, const bridge_wire *far, const ew_import_options *options) {
    char target[64];
    int port = free_port();
    seen_reset();
    p->far = far;
    p->far_port = free_port();
    p->gateway = start_gateway(&bridge_wires[0], port, target_of(far, p->far_port, target), options);
    p->client = client_to(target_of(&bridge_wires[0], port, target));
    p->w = world_around(p->client, NULL);
}

static void close_place(place *p) {
    ew_client_free(p->client);
    ew_app_free(p->gateway);
}

static void must_be_away(const place *p, const char *action) {
    outcome o = {.status = EW_STATUS_OK};
    ask(&p->w, action, "{}", &o);
    if (o.status != EW_STATUS_UNAVAILABLE && o.status != EW_STATUS_NOT_FOUND)
        fail_msg("ended %s: %s", ew_status_name(o.status), o.text);
    outcome_done(&o);
}

/* A call waits for a runtime to dial, as long as it may. */
static void must_wait(const place *p, const char *action) {
    outcome o = {.status = EW_STATUS_OK};
    ask_on(p->client, &(ew_request_options){.action = ew_str_from(action), .input = EW_STR("{}"), .timeout_ms = 200},
           &o);
    must_fail(&o, EW_STATUS_DEADLINE_EXCEEDED);
    outcome_done(&o);
}

/* The gateway starts without its peer, and has it when it comes; it goes, and comes again. */
static void comes_and_goes(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++) {
        place p;
        open_place(&p, &bridge_wires[i], NULL);
        assert_int_equal(ew_app_wait_imports(p.gateway, WAIT_MS), EW_OK);
        must_be_away(&p, "/flow/echo");
        for (int k = 0; k < 3; k++) {
            ew_app *origin = start_origin(p.far, "origin", p.far_port);
            ask_until(p.client, "/flow/echo", EW_STATUS_OK);
            ew_app_free(origin);
            must_be_away(&p, "/flow/echo");
        }
        close_place(&p);
    }
}

/* Names that are known need no list: whoever is away is UNAVAILABLE. */
static void named_but_away(void **state) {
    static const char *const names[] = {"/flow/echo", NULL};
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++) {
        place p;
        open_place(&p, &bridge_wires[i], &(ew_import_options){.names = names, .refresh_ms = REFRESH_MS});
        if (p.far->listen)
            must_be_away(&p, "/flow/echo");
        else
            must_wait(&p, "/flow/echo");
        ew_app *origin = start_origin(p.far, "origin", p.far_port);
        ask_until(p.client, "/flow/echo", EW_STATUS_OK);
        ask_until(p.client, "/flow/stream", EW_STATUS_NOT_FOUND);
        ew_app_free(origin);
        close_place(&p);
    }
}

static void fresh(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("\"fresh\""));
}

/* An action that comes later is here a moment later; the others go on meanwhile. */
static void add_later(const bridge_wire *far, const char *prefix) {
    char echo[40], added[40];
    place p;
    (void)snprintf(echo, sizeof echo, "/flow/%s%secho", prefix ? prefix : "", prefix ? "/" : "");
    (void)snprintf(added, sizeof added, "/flow/%s%sfresh", prefix ? prefix : "", prefix ? "/" : "");
    open_place(&p, far, &(ew_import_options){.prefix = prefix, .refresh_ms = REFRESH_MS});
    ew_app *origin = start_origin(p.far, "origin", p.far_port);
    ask_until(p.client, echo, EW_STATUS_OK);
    ask_until(p.client, added, EW_STATUS_NOT_FOUND);
    assert_int_equal(ew_app_action(origin, "/flow/fresh", fresh, NULL, NULL), EW_OK);
    ask_until(p.client, added, EW_STATUS_OK);
    ask_until(p.client, echo, EW_STATUS_OK);
    ew_app_free(origin);
    close_place(&p);
}

static void added_later(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++)
        add_later(&bridge_wires[i], bridge_wires[i].listen ? NULL : "there");
}

/* Runtimes that dial the gateway itself are asked less often. */
static void added_later_by_a_runtime(void **state) {
    (void)state;
    add_later(bridge_wire_by_name("reflection"), NULL);
}

/* ... also behind a gateway that is itself somebody's runtime. */
static void added_later_to_a_runtime(void **state) {
    char target[64];
    const bridge_wire *http = &bridge_wires[0];
    (void)state;
    ew_client *manager = client_to("reflection://127.0.0.1:0");
    ew_app *origin = start_origin(http, "origin", 0);
    ew_app *gateway = start_gateway(bridge_wire_by_name("reflection"), ew_client_port(manager),
                                    target_of(http, port_of(origin, NULL), target), NULL);
    ask_until(manager, "/flow/echo", EW_STATUS_OK);
    (void)sleep(6); /* it is not young any more */
    assert_int_equal(ew_app_action(origin, "/flow/fresh", fresh, NULL, NULL), EW_OK);
    ask_until(manager, "/flow/fresh", EW_STATUS_OK);
    ew_app_free(gateway);
    ew_app_free(origin);
    ew_client_free(manager);
}

/* Calls while the origin is restarted again and again: each ends once, well or with a reason. */
static void restless(void **state) {
    enum { N = 40, ROUNDS = 6 };
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++) {
        static outcome outcomes[N];
        ew_request *requests[N];
        place p;
        open_place(&p, &bridge_wires[i], NULL);
        for (int round = 0; round < ROUNDS; round++) {
            ew_app *origin = start_origin(p.far, "origin", p.far_port);
            for (int k = 0; k < N; k++) {
                ew_request_options options = {.action = ew_str_from(k % 2 ? "/flow/echo" : "/flow/count"),
                                              .input = EW_STR("{\"n\":20,\"delay_ms\":1}"),
                                              .stream = true};
                requests[k] = begin_on(p.client, &options, &outcomes[k]);
                (void)usleep(500);
            }
            ew_app_free(origin);
            for (int k = 0; k < N; k++) {
                finish(requests[k], &outcomes[k]);
                if (outcomes[k].status != EW_STATUS_OK && outcomes[k].status != EW_STATUS_NOT_FOUND &&
                    outcomes[k].status != EW_STATUS_UNAVAILABLE)
                    fail_msg("%s: %s", ew_status_name(outcomes[k].status), outcomes[k].text);
                outcome_done(&outcomes[k]);
            }
        }
        close_place(&p);
    }
}

const struct CMUnitTest tests_life[] = {cmocka_unit_test(comes_and_goes),
                                        cmocka_unit_test(named_but_away),
                                        cmocka_unit_test(added_later),
                                        cmocka_unit_test(restless),
                                        {.name = NULL}};
const struct CMUnitTest tests_late[] = {
    cmocka_unit_test(added_later_by_a_runtime), cmocka_unit_test(added_later_to_a_runtime), {.name = NULL}};
