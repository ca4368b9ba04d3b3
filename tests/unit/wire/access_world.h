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

#include "support/guarded_rig.h"
#include "support/tokens.h"

typedef struct access_world {
    rig r;
    guarded_rig guarded;
} access_world;

static inline void access_begin(access_world *w, const ew__wire *wire, const rig_options *options) {
    rig_init(&w->r, wire, options);
    guard_rig(&w->guarded, &w->r, access_list(ew_env_default(), false));
}

static inline void access_end(access_world *w) {
    rig_finish(&w->r);
    unguard_rig(&w->guarded);
}

#endif
