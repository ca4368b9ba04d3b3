/*
 * tests/store_redis/world.h: a server, a store on it and the words of the contract, for tests that look at Redis
 * itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STORE_REDIS_WORLD_H
#define EW_TESTS_STORE_REDIS_WORLD_H

#include "store/contract.h"
#include "store_redis/server.h"

typedef struct world {
    contract c; /* the words of the contract take it */
    server s;
} world;

extern world the_world;

/* For cmocka: an empty server and a store before each test. */
int world_setup(void **state);
int world_teardown(void **state);

/* A hash exactly: names and values by turns, NULL-ended; a value "*" is any. */
void world_expect_hash(world *w, const char *key, ...) __attribute__((sentinel));
/* All keys of the server, in order, each followed by a space. */
const char *world_keys(world *w);
/* A job as RRQ's producer writes it, due now in rrq:queue:q; further names and values, NULL-ended. */
void world_rrq_job(world *w, const char *id, ...) __attribute__((sentinel));
/* The job is ACTIVE with this worker, as RRQ's claim leaves it; with its lock if lock is not NULL (its owner). */
void world_rrq_claim(world *w, const char *id, const char *worker, const char *lock);

#define assert_says(text, expected)                                                                                    \
    do {                                                                                                               \
        const char *says_ = (text);                                                                                    \
        if (strcmp(says_, (expected)) != 0)                                                                            \
            fail_msg("\"%s\", not \"%s\"", says_, (expected));                                                         \
    } while (0)

#endif
