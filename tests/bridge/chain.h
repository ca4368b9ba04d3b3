/*
 * tests/bridge/chain.h: for the tests that need other worlds than one pair: gateways by hand, and chains of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_BRIDGE_CHAIN_H
#define EW_TESTS_BRIDGE_CHAIN_H

#include "bridge/pairs.h"
#include "support/port.h"

#define CHAIN_MAX 12

/* apps[0] is the origin, each further one imports the one before; n of them. wires[i] is what apps[i] serves. */
typedef struct chain {
    size_t n;
    const bridge_wire *wires[CHAIN_MAX];
    int ports[CHAIN_MAX];
    ew_app *apps[CHAIN_MAX];
} chain;

/* "http://127.0.0.1:PORT" and so on. */
const char *target_of(const bridge_wire *wire, int port, char out[64]);
/* A gateway, not started: serves the wire there. */
ew_app *make_gateway(const bridge_wire *wire, int port, const ew_app_options *options);
void start_app(ew_app *app);
/* make_gateway, import, start_app; NULL options as for import. */
ew_app *start_gateway(const bridge_wire *wire, int port, const char *targets, const ew_import_options *options);

/* names: n words for wires. */
void chain_open(chain *c, const char *const *names, size_t n);
void chain_close(chain *c);

/* The world that has that caller and that origin, for what works on worlds. The caller is freed by whoever made it. */
world world_around(ew_client *caller, ew_app *origin);

/* Ended by one without a name. */
extern const struct CMUnitTest tests_chain[], tests_hops[], tests_round[], tests_many[], tests_names[], tests_life[],
    tests_late[], tests_odd[], tests_upstreams[];

#endif
