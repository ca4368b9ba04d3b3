/*
 * tests/jobs_sim/test_model.c: the model store keeps the contract that the real ones keep (tests/store): what the
 * simulation shows of workers on the model is worth as much as that.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"

#include "jobs_sim/model.h"

#define WALL_MS INT64_C(1750000000000)

typedef struct place {
    model m;
    ew__store store;
} place;

static ew__store *open_model(contract *c, bool fresh) {
    place *p = c->ud;
    if (fresh) {
        uint64_t now = p->m.now;
        model_done(&p->m);
        model_init(&p->m, now);
    }
    return &p->store;
}

static void close_model(contract *c, ew__store *store) {
    (void)c;
    (void)store;
}

static ew_err run(contract *c, ew__store *store, ew__store_request *op) {
    (void)store;
    model_do(&((place *)c->ud)->m, op);
    return op->err;
}

static void pass(contract *c, uint64_t ms) { ((place *)c->ud)->m.now += EW__MS(ms); }
static int64_t now(contract *c) { return WALL_MS + (int64_t)(((place *)c->ud)->m.now / 1000000); }

int main(void) {
    place p = {.store = {.env = ew_env_default(), .name = "model"}};
    contract c = {.name = "model",
                  .env = ew_env_default(),
                  .open = open_model,
                  .close = close_model,
                  .run = run,
                  .sleep = pass,
                  .now = now,
                  .checks = true,
                  .kept = true,
                  .shared = true,
                  .ud = &p};
    model_init(&p.m, EW__MS(1000));
    int failed = contract_run(&c);
    model_done(&p.m);
    return failed;
}
