/*
 * tests/jobs_sim/sim.h: one simulated life of a few workers with one store: what is known of each job and each run of it
 * (sim_check.c: what must hold always), and what the runs do (sim_runs.c). sim.c makes the story.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_QUEUE_SIM_H
#define EW_TESTS_QUEUE_SIM_H

#include "jobs_sim/world.h"

#define SIM_LEASE_MS 3000
#define SIM_QUEUES 3
#define SIM_POISON 3

typedef struct sim sim;
typedef struct record record;
typedef struct srun srun;

/* One run of a job, as its runner sees it. */
struct srun {
    srun *next;    /* of the sim */
    srun *sibling; /* of the record */
    sim *s;
    record *r;
    node *n;
    uint32_t life;
    ew__run *run; /* NULL once it has ended, or its node is gone */
    uint64_t epoch;
    int queue;
    uint64_t started;
    bool stopped;
    ew__stop_why why;
    uint64_t stopped_at;
    bool ended;
    ew__outcome_kind kind; /* how it ended */
    int64_t retry_after_ms;
    bool rude; /* minds no stop */
    unsigned chunks_wanted, chunks_said;
};

/* What is known of a job; stays when the store has forgotten the job. */
struct record {
    record *next;
    char *id, *tick; /* tick: the key of a schedule, or NULL */
    int number;
    bool acked, early; /* early: from before the healing */
    bool cancel_asked;
    unsigned finals;
    ew__job_status final;
    uint64_t epoch, started_epoch;
    srun *runs;
};

/* What may happen in this life: drawn once. */
typedef struct sim_options {
    int nodes, jobs;
    uint64_t length_ms;
    unsigned crashes, stalls, stops, jumps, downs, cancels, pauses, requeues;
    bool dedup, crons, calm; /* calm: node 0 has no troubles of its own */
    bool retry_timeouts, no_jitter;
    uint32_t concurrency, queue_concurrency, rate, room;
    unsigned rude;
    world_faults faults;
} sim_options;

typedef struct sim_runs {
    ew__runs runs;
    sim *s;
    int index; /* of the node */
} sim_runs;

struct sim {
    world w;
    sim_options o;
    line producers;
    record *records;
    int n_records;
    srun *runs;
    sim_runs node_runs[WORLD_NODES];
    uint64_t rate_starts[WORLD_NODES][8];
    bool healed;
    bool stopping[WORLD_NODES];
    bool over;
    uint64_t n_acked, n_final, n_stale;
};

static inline sim *sim_of(world *w) { return ew__container_of(w, sim, w); }

/* ---- sim_check.c ---- */

void sim_watch(sim *s); /* sets the hooks of the store */
record *sim_record(sim *s, ew_str id);
srun *sim_find_run(const record *r, uint64_t epoch);
void sim_check_start(sim *s, node *n, const ew__run *run);
void sim_check_stop(const srun *run, ew__stop_why why);
void sim_check_settled(sim *s);
bool sim_is_settled(sim *s);
void sim_check_ticks(sim *s, const char *name, int64_t from, int64_t to, int64_t every);
void sim_free_records(sim *s);

/* ---- sim_runs.c ---- */

void sim_runs_init(sim *s, int index);
void sim_end_owed(sim *s, const node *n); /* runs that were given up come to an end */

/* ---- sim.c ---- */

extern const char *const sim_queues[SIM_QUEUES];
int sim_queue(ew_str name);

#endif
