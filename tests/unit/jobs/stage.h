/*
 * tests/unit/jobs/stage.h: a simulated world without chance for tests of the worker, with a runner that does nothing
 * by itself: the test looks at what was begun, and ends it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_UNIT_QUEUE_STAGE_H
#define EW_TESTS_UNIT_QUEUE_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "jobs_sim/world.h"

#define MAX_RUNS 256

/* A worker. */
typedef struct actor {
    ew__runs runs;
    int index;
    ew__worker *worker;
    bool ended;
} actor;

/* A run that was begun. */
typedef struct seen {
    ew__run *run; /* NULL: it has ended */
    char id[40], queue[20];
    int node;
    uint64_t at;
    int stopped; /* ew__stop_why, -1: not */
    uint64_t stopped_at;
    unsigned rooms;
} seen;

typedef struct stage {
    world w;
    actor actors[WORLD_NODES];
    seen runs[MAX_RUNS];
    int n_runs;
    uint32_t room; /* for all queues together; 0: any */
    bool obedient; /* a stop ends the run at once */
} stage;

extern stage *s; /* of the present test */

int stage_begin(void **state); /* set-up and tear-down of each test */
int stage_end(void **state);

ew__worker_options usual(void);
actor *begin(int index, const ew__worker_options *options);
void on_ended(ew__worker *worker, void *ud);
static inline const ew__worker_stats *stats(const actor *a) { return ew__worker_stats_of(a->worker); }
void stop_worker(actor *a, uint64_t grace_ms);
void release(actor *a); /* it must have ended; nothing of it is left */
void quit(actor *a);    /* stops it, and that */

void end(seen *run, ew__outcome outcome);
void succeed(seen *run);
seen *run_of(const char *id); /* the last of this job */

int64_t wall(void);
void do_now(ew__store_request *op); /* by hand, at once, without a line */
void order(const char *id, const char *queue, int64_t delay_ms);
ew__job *job(const char *id);

#define ASSERT_STATUS(id, expected) assert_string_equal(ew__job_status_name(job(id)->status).ptr, expected)

#endif
