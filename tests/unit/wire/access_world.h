/*
 * tests/unit/wire/access_world.h: a rig whose server requires tokens (support/tokens.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_WIRE_ACCESS_WORLD_H
#define EW_TESTS_WIRE_ACCESS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "support/rig.h"
#include "support/tokens.h"

typedef struct access_world {
    rig r;
    ew__clients clients;
    ew__access access;
    ew__gate gate;
} access_world;

static inline void access_begin(access_world *w, const ew__wire *wire, const rig_options *options) {
    rig_init(&w->r, wire, options);
    const ew_env *env = ew_env_default(); /* its memory is not counted by the rig */
    ew__clients_init(&w->clients, env);
    ew__access_init(&w->access, env, &w->clients);
    w->access.required = true;
    ew__access_set(&w->access, access_list(env, false));
    ew__gate_init(&w->gate, &w->access);
    w->r.side[RIG_SERVER].executor.gate = &w->gate;
}

static inline void access_end(access_world *w) {
    rig_finish(&w->r);
    ew__gate_done(&w->gate);
    ew__access_done(&w->access);
    ew__clients_done(&w->clients);
}

#endif
