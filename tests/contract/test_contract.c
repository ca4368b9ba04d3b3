/*
 * tests/contract/test_contract.c: every scenario on every wire, with bytes arriving whole, one by one, and in random
 * pieces.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct param {
    const contract_wire *wire;
    const scenario *scenario;
    rig_split split;
    uint64_t seed;
} param;

static const struct {
    const char *name;
    rig_split split;
    uint64_t seed;
} deliveries[] = {{"whole", RIG_WHOLE, 1},
                  {"bytes", RIG_BYTES, 2},
                  {"random-3", RIG_RANDOM, 3},
                  {"random-4", RIG_RANDOM, 4},
                  {"random-5", RIG_RANDOM, 5}};
#define N_DELIVERIES (sizeof deliveries / sizeof *deliveries)

static void run_one(void **state) {
    const param *p = *state;
    if ((p->wire->wire->caps & p->scenario->needs) != p->scenario->needs) {
        if (p->split == RIG_WHOLE)
            printf("SKIP: the wire %s cannot carry what %s needs\n", contract_name(p->wire), p->scenario->name);
        skip();
    }
    rig r;
    rig_options options = contract_options(p->wire, p->scenario, p->split, p->seed);
    rig_init(&r, p->wire->wire, &options);
    r.strict = true;
    r.objects = p->wire->objects;
    p->scenario->run(&r, p->wire);
    rig_finish(&r);
}

static size_t count_scenarios(void) {
    size_t n = 0;
    while (scenario_at(n))
        n++;
    return n;
}

static void fill(struct CMUnitTest *test, param *p, char *name, size_t size) {
    (void)snprintf(name, size, "%s/%s/%s", contract_name(p->wire), p->scenario->name, deliveries[p->seed - 1].name);
    *test = (struct CMUnitTest){.name = name, .test_func = run_one, .initial_state = p};
}

int main(int argc, char **argv) {
    enum { NAME = 80 };
    const char *only = argc > 1 ? argv[1] : ""; /* a part of a name: mem/unary */
    size_t each = count_scenarios() * N_DELIVERIES, n_wires = 0, n = 0;
    while (contract_wire_at(n_wires))
        n_wires++;
    size_t all = each * n_wires;
    struct CMUnitTest *tests = calloc(all, sizeof *tests);
    param *params = calloc(all, sizeof *params);
    char *names = calloc(all, NAME);
    if (!tests || !params || !names)
        return 1;
    for (size_t w = 0; w < n_wires; w++) {
        for (size_t i = 0; i < each; i++) {
            const scenario *s = scenario_at(i / N_DELIVERIES);
            size_t d = i % N_DELIVERIES;
            params[n] = (param){contract_wire_at(w), s, deliveries[d].split, deliveries[d].seed};
            fill(&tests[n], &params[n], names + n * NAME, NAME);
            n += strstr(tests[n].name, only) != NULL;
        }
    }
    int failed = _cmocka_run_group_tests("contract", tests, n, NULL, NULL);
    free(tests);
    free(params);
    free(names);
    return failed;
}
