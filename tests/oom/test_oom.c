/*
 * tests/oom/test_oom.c: every scenario of the contract with its n-th allocation failing, once and from then on, for
 * every n. No crash, no leak, each call still ends exactly once (rig_finish checks that); when memory was short only
 * once, the next call on a new connection works.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"

#include <stdio.h>

#define MOST 3000 /* allocations of a scenario */

typedef struct param {
    const contract_wire *wire;
    const scenario *scenario;
} param;

/* Whether an allocation failed: false when the scenario has fewer than n. */
static bool run_failing(const param *p, rig_split split, uint64_t n, bool from_then_on) {
    rig r;
    rig_options options = contract_options(p->wire, p->scenario, split, n);
    rig_init(&r, p->wire->wire, &options);
    r.objects = p->wire->objects;
    ew__test_env_fail_at(&r.env, n, from_then_on);
    p->scenario->run(&r, p->wire);
    bool failed = ew__test_env_failed(&r.env) > 0;
    rig_check_no_hang(&r);
    if (failed && !from_then_on) { /* memory is back: so is service */
        r.side[RIG_SERVER].site.draining = false;
        r.limits.calls = 1000;
        r.strict = true;
        must_succeed(&r, call_plain(rig_connect(&r), "/test/echo", "\"again\""), "\"again\"");
    }
    rig_finish(&r);
    return failed;
}

static void fail_everywhere(void **state) {
    const param *p = *state;
    for (int mode = 0; mode < 2; mode++) {
        static const rig_split splits[] = {RIG_WHOLE, RIG_RANDOM};
        for (size_t i = 0; i < 2; i++) {
            uint64_t n = 1;
            while (n < MOST && run_failing(p, splits[i], n, mode == 1))
                n++;
            assert_true(n > 1 && n < MOST);
        }
    }
}

int main(int argc, char **argv) {
    enum { NAME = 80, ROWS = 800 };
    const char *only = argc > 1 ? argv[1] : "";
    static struct CMUnitTest tests[ROWS];
    static param params[ROWS];
    static char names[ROWS][NAME];
    size_t n = 0;
    const contract_wire *wire;
    for (size_t w = 0; (wire = contract_wire_at(w)) != NULL; w++) {
        const scenario *s;
        for (size_t i = 0; (s = scenario_at(i)) != NULL && n < ROWS; i++) {
            if ((wire->wire->caps & s->needs) != s->needs)
                continue;
            params[n] = (param){wire, s};
            (void)snprintf(names[n], NAME, "oom/%s/%s", contract_name(wire), s->name);
            tests[n] = (struct CMUnitTest){.name = names[n], .test_func = fail_everywhere, .initial_state = &params[n]};
            n += strstr(names[n], only) != NULL;
        }
    }
    return _cmocka_run_group_tests("oom", tests, n, NULL, NULL);
}
