/*
 * tests/store/contract.h: what every store of jobs must do (jobs/store.h), as tests over any ew__store. A test program
 * fills in a contract, which says how to make a store, and runs it. Nothing here knows SQLite or Redis.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STORE_CONTRACT_H
#define EW_TESTS_STORE_CONTRACT_H

#include "jobs/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct contract contract;

struct contract {
    const char *name;
    const ew_env *env;
    /* A store; fresh: with nothing in it, whatever was there before. */
    ew__store *(*open)(contract *c, bool fresh);
    void (*close)(contract *c, ew__store *store);
    ew_err (*run)(contract *c, ew__store *store,
                  ew__store_request *op);    /* submits, waits, gives op->err. NULL: ew__store_do */
    void (*sleep)(contract *c, uint64_t ms); /* lets both clocks of the store go on. NULL: time passes */
    int64_t (*now)(contract *c);             /* wall clock. NULL: that of env */
    uint64_t lease_ms;                       /* 0: 300 */
    uint64_t ttl_ms;                         /* of keys, and of results; 0: 1000 */
    bool kept;                               /* what was written is there after close and open(false) */
    bool shared;                             /* two stores that are open at once see what the other does */
    bool threads;                            /* it has a thread of its own; several threads may use it */
    bool checks;                             /* what no job can be is refused: EW_EINVAL and a problem */
    void *ud;

    /* the suite's: one test */
    ew__store *store;
    ew__arena arena;
};

/* Runs all of it; how many tests have failed. */
int contract_run(contract *c);

/* ---- for the tests ---- */

typedef struct contract_tests {
    const struct CMUnitTest *tests;
    size_t n;
} contract_tests;
contract_tests contract_tests_jobs(void);
contract_tests contract_tests_claims(void);
contract_tests contract_tests_leases(void);
contract_tests contract_tests_dedup(void);
contract_tests contract_tests_looks(void);
contract_tests contract_tests_lists(void);
contract_tests contract_tests_threads(void);

#define S(text) ew_str_from(text)
#define assert_text(text, expected)                                                                                    \
    do {                                                                                                               \
        ew_str text_ = (text), expected_ = ew_str_from(expected);                                                      \
        if (!ew__str_is(text_, expected_))                                                                             \
            fail_msg("\"%.*s\", not \"%.*s\"", (int)text_.len, text_.ptr, (int)expected_.len, expected_.ptr);          \
    } while (0)

int64_t contract_now(contract *c);
void contract_sleep(contract *c, uint64_t ms);
uint64_t contract_lease(const contract *c);
uint64_t contract_ttl(const contract *c);
/* Closes the test's store and opens it again with what it has, if the contract says that this is kept. */
void contract_reopen(contract *c);
ew_str contract_text(contract *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An operation in the memory of the test. */
ew__store_request *contract_op(contract *c, ew__op_kind kind);
ew_err contract_do(contract *c, ew__store_request *op);

/* A job for queue "q" that is due now: function "f", params {}. */
ew__job contract_job(contract *c, const char *id);
ew__store_request *contract_enqueue_op(contract *c, ew__job job);
/* Enqueues it; it must be new. */
void contract_add(contract *c, ew__job job);
void contract_add_id(contract *c, const char *id);
/* Enqueues with a dedup key; returns the operation with its result. */
ew__op_enqueue *contract_dedup_enqueue(contract *c, ew__job job, ew__dedup_mode dedup, const char *key);

/* Up to max jobs of queue "q" (or another), for this worker, now. */
ew__op_claim *contract_claim_of(contract *c, const char *worker, const char *queue, uint32_t max);
/* Exactly this one job, which must be the next of "q". */
ew__job contract_claim(contract *c, const char *worker, const char *id);

/* A change of a claimed job by its worker, to be changed further and done. */
ew__store_request *contract_change(contract *c, const ew__job *job, ew__job_status status);
/* Does one that must succeed. */
void contract_must_change(contract *c, const ew__job *job, ew__job_status status);
ew_err contract_chunk(contract *c, const ew__job *job, const char *json);
ew__lease_state contract_renew(contract *c, const ew__job *job);
ew__op_expired *contract_expired(contract *c, uint32_t max);

/* The job, which must be there. */
ew__job contract_get(contract *c, const char *id);
ew_err contract_get_err(contract *c, const char *id);
ew__op_list *contract_list(contract *c, const ew__op_list *filter);
/* The ids of a list, "a b c". */
ew_str contract_ids(contract *c, const ew__job *jobs, size_t n);
void contract_pause(contract *c, const char *queue, bool on);
const ew__queue_stats *contract_queue(contract *c, const char *name, bool counts);
uint64_t contract_sweep(contract *c, uint32_t max);

#endif
