/*
 * tests/bridge/test_pairs.c: every scenario on every pair of wires, over real sockets. Prints what was seen to cross,
 * which must be what the wires' capabilities promise.
 *
 *     test_bridge_pairs [NEAR [FAR[,FAR]... [WORD]]]     all pairs, or some ("all": all); only tests whose name has WORD
 *     test_bridge_pairs --docs FILE [--write]            compares a paper with the tables, or mends it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"

#define MOST 3000

typedef struct param {
    const bridge_wire *near, *far;
    const scenario *scenario;
} param;

static world shared;                    /* of one pair after the other */
static unsigned crossed[N_NEAR][N_FAR]; /* marks */
static bool whole = true;               /* all scenarios ran, so that the marks say something */
static bool broken;                     /* a scenario did not come to its end: its world is left as it is */

static size_t index_of(const bridge_wire *wire) { return (size_t)(wire - bridge_wires); }

static bool can(const bridge_wire *wire, unsigned needs) { return (wire->caps & needs) == needs; }

static void close_world(void) {
    if (shared.near && !broken)
        world_close(&shared);
    shared.near = NULL;
}

static void want_world(const param *p) {
    if (shared.near != p->near || shared.far != p->far || p->scenario->ends_world || broken) {
        close_world();
        world_open(&shared, p->near, p->far);
    }
}

static void run_one(void **state) {
    const param *p = *state;
    want_world(p);
    shared.crossed = 0;
    broken = true;
    p->scenario->run(&shared);
    broken = false;
    crossed[index_of(p->near)][index_of(p->far)] |= shared.crossed;
    if (p->scenario->ends_world)
        close_world();
}

/* What was seen is what the wires promise, and nothing else. */
static void check_marks(void **state) {
    const param *p = *state;
    char is[9], wanted[9];
    unsigned marks = crossed[index_of(p->near)][index_of(p->far)];
    if (marks != expected_marks(p->near, p->far))
        fail_msg("%s crossed, not %s", letters_of(marks, is), letters_of(expected_marks(p->near, p->far), wanted));
}

static void wires_are_known(void **state) {
    (void)state;
    check_wires();
}

static const scenario marks_scenario = {.name = "marks"};

static const scenario *scenario_at(size_t i) {
    const scenario *const groups[] = {scenarios_plain, scenarios_payload, scenarios_hard};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const scenario *s = groups[g]; s->name; s++)
            if (i-- == 0)
                return s;
    return i == 0 && whole ? &marks_scenario : NULL;
}

/* Whether a name is one of a list with commas; NULL and "all": it is. */
static bool is_in(const char *list, const char *name) {
    size_t n = strlen(name);
    if (!list || strcmp(list, "all") == 0)
        return true;
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static void print_matrix(const char *near) {
    char letters[9];
    printf("what crosses (rows: the near wire, columns: the far one; u unary, s status, c chunks, i input stream,\n"
           "x cancel, d deadline, t trace, k context, - where a wire cannot)\n%-12s",
           "");
    for (size_t f = 0; f < N_FAR; f++)
        printf("%-15s", bridge_wires[f].name);
    printf("\n");
    for (size_t n = 0; n < N_NEAR; n++) {
        if (!is_in(near, bridge_wires[n].name))
            continue;
        printf("%-12s", bridge_wires[n].name);
        for (size_t f = 0; f < N_FAR; f++)
            printf("%-15s", letters_of(crossed[n][f], letters));
        printf("\n");
    }
}

static size_t fill(struct CMUnitTest *tests, param *params, const char *near, const char *far, const char *part) {
    static char names[MOST][64];
    size_t n = 0;
    tests[n++] = (struct CMUnitTest){.name = "wires_are_known", .test_func = wires_are_known};
    for (size_t pair = 0; pair < (size_t)N_NEAR * N_FAR; pair++) {
        const scenario *s;
        param p = {.near = &bridge_wires[pair / N_FAR], .far = &bridge_wires[pair % N_FAR]};
        if (!is_in(near, p.near->name) || !is_in(far, p.far->name))
            continue;
        for (size_t i = 0; (s = scenario_at(i)) != NULL && n < MOST; i++) {
            p.scenario = s;
            if (!can(p.near, s->near_needs) || !can(p.far, s->far_needs))
                continue;
            params[n] = p;
            (void)snprintf(names[n], sizeof names[n], "%s<-%s/%s", p.near->name, p.far->name, s->name);
            tests[n] = (struct CMUnitTest){
                .name = names[n], .test_func = s->run ? run_one : check_marks, .initial_state = &params[n]};
            n += !part || strstr(names[n], part);
        }
    }
    return n;
}

int main(int argc, char **argv) {
    static struct CMUnitTest tests[MOST];
    static param params[MOST];
    if (argc > 1 && strcmp(argv[1], "--docs") == 0)
        return check_papers(argc > 2 ? argv[2] : NULL, argc > 3 && strcmp(argv[3], "--write") == 0);
    const char *near = argc > 1 ? argv[1] : NULL, *far = argc > 2 ? argv[2] : NULL;
    whole = argc <= 3;
    size_t n = fill(tests, params, near, far, argc > 3 ? argv[3] : NULL);
    if (n == 1) {
        fprintf(stderr, "no such pair of wires, or no such test\n");
        return 2;
    }
    int failed = _cmocka_run_group_tests("bridge pairs", tests, n, NULL, NULL);
    close_world();
    print_matrix(near);
    return failed > 255 ? 255 : failed;
}
