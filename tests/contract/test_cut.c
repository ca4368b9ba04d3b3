/*
 * tests/contract/test_cut.c: the connection is lost at every byte of a scenario, in both directions, as a reset and
 * as an end of input. Each call must end exactly once, each callee must be cancelled, nothing may be left (rig_finish
 * checks all of that).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct cut {
    int sender;
    uint64_t at; /* UINT64_MAX: nowhere */
    rig_cut_kind kind;
    uint64_t total[2]; /* out: bytes that arrived from each end, over the first connection */
} cut;

static cut *wanted; /* of the run that is going on */

/* The first connection of a run is the one that is cut. */
static void arm(rig *r) {
    rig_pair *first = r->pairs;
    while (first && first->next)
        first = first->next;
    if (first && first->pipe[wanted->sender].cut_at == UINT64_MAX && first->pipe[wanted->sender].delivered == 0) {
        first->pipe[wanted->sender].cut_at = wanted->at;
        first->pipe[wanted->sender].cut_kind = wanted->kind;
    }
}

static void run_cut(const contract_wire *w, const scenario *s, rig_split split, cut *c) {
    rig r;
    rig_options options = contract_options(w, s, split, 7);
    rig_init(&r, w->wire, &options);
    r.strict = false;
    r.objects = w->objects;
    r.on_connect = arm;
    wanted = c;
    s->run(&r, w);
    rig_pair *first = r.pairs;
    while (first && first->next)
        first = first->next;
    for (int i = 0; i < 2 && first; i++)
        c->total[i] = first->pipe[i].delivered;
    rig_check_no_hang(&r);
    rig_finish(&r);
}

typedef struct param {
    const contract_wire *wire;
    const scenario *scenario;
} param;

static void cut_everywhere(void **state) {
    const param *p = *state;
    cut whole = {.at = UINT64_MAX};
    run_cut(p->wire, p->scenario, RIG_WHOLE, &whole);
    for (int sender = 0; sender < 2; sender++) {
        for (uint64_t at = 0; at <= whole.total[sender]; at++) {
            for (int kind = RIG_RESET; kind <= RIG_EOF; kind++) {
                cut c = {.sender = sender, .at = at, .kind = (rig_cut_kind)kind};
                run_cut(p->wire, p->scenario, at % 2 ? RIG_WHOLE : RIG_RANDOM, &c);
            }
        }
    }
}

int main(int argc, char **argv) {
    enum { NAME = 80, MOST = 800 };
    const char *only = argc > 1 ? argv[1] : "";
    static struct CMUnitTest tests[MOST];
    static param params[MOST];
    static char names[MOST][NAME];
    size_t n = 0;
    const contract_wire *wire;
    for (size_t w = 0; (wire = contract_wire_at(w)) != NULL; w++) {
        const scenario *s;
        for (size_t i = 0; (s = scenario_at(i)) != NULL && n < MOST; i++) {
            if (s->large || (wire->wire->caps & s->needs) != s->needs)
                continue;
            params[n] = (param){wire, s};
            (void)snprintf(names[n], NAME, "cut/%s/%s", contract_name(wire), s->name);
            tests[n] = (struct CMUnitTest){.name = names[n], .test_func = cut_everywhere, .initial_state = &params[n]};
            n += strstr(names[n], only) != NULL;
        }
    }
    return _cmocka_run_group_tests("cut", tests, n, NULL, NULL);
}
