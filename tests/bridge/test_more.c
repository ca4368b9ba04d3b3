/*
 * tests/bridge/test_more.c: what gateways do beside passing calls on. With the name of a group: that one; with a further
 * word: only tests whose name has it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        const struct CMUnitTest *tests;
    } groups[] = {{"chain", tests_chain}, {"hops", tests_hops}, {"round", tests_round},
                  {"names", tests_names}, {"life", tests_life}, {"late", tests_late},
                  {"odd", tests_odd},     {"many", tests_many}, {"upstreams", tests_upstreams}};
    struct CMUnitTest chosen[64];
    size_t n = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const struct CMUnitTest *test = groups[g].tests; test->name && n < 64; test++)
            if ((argc < 2 || strcmp(argv[1], groups[g].name) == 0) && (argc < 3 || strstr(test->name, argv[2])))
                chosen[n++] = *test;
    return n ? _cmocka_run_group_tests("bridge more", chosen, n, NULL, NULL) : 2;
}
