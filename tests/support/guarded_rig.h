/*
 * tests/support/guarded_rig.h: access control for the serving side of a rig.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_GUARDED_RIG_H
#define EW_TESTS_GUARDED_RIG_H

#include "support/rig.h"

typedef struct guarded_rig {
    ew__clients clients;
    ew__access access;
    ew__gate gate;
} guarded_rig;

/* A token is required. Takes over the list. The rig does not count this memory. */
static inline void guard_rig(guarded_rig *g, rig *r, ew__tokens *tokens) {
    ew__clients_init(&g->clients, ew_env_default());
    ew__access_init(&g->access, ew_env_default(), &g->clients);
    g->access.required = true;
    ew__access_set(&g->access, tokens);
    ew__gate_init(&g->gate, &g->access);
    r->side[RIG_SERVER].executor.calls->gate = &g->gate;
}

/* After rig_finish. */
static inline void unguard_rig(guarded_rig *g) {
    ew__gate_done(&g->gate);
    ew__access_done(&g->access);
    ew__clients_done(&g->clients);
}

#endif
