/*
 * cli/bench_lane.h: what the two files of the driver of everywire bench share: bench_lane.c, which makes calls, and
 * bench_run.c, which decides when that begins and ends.
 */
#ifndef EW_CLI_BENCH_LANE_H
#define EW_CLI_BENCH_LANE_H

#include "cli/bench.h"
#include <pthread.h>

#define EW__BENCH_NS 1000000000u
#define EW__BENCH_MS 1000000u

/* One call at a time, again and again. */
typedef struct ew__bench_slot {
    ew_request *request;
    struct ew__bench_lane *lane;
    uint64_t began; /* or ought to have */
    uint64_t first; /* its first chunk */
    uint32_t chunks;
    bool ticket; /* it is one of the number of calls that was asked for */
    struct ew__bench_slot *next;
} ew__bench_slot;

/* A client with its thread, and its share of the connections. */
typedef struct ew__bench_lane {
    struct ew__bench_course *run;
    unsigned index;
    ew_client *client;
    ew__bench_slot *slots;
    unsigned n_slots;
    /* written by the lane's thread, read by the main one */
    ew__hdr *latency, *first_chunk;
    atomic_ullong calls, chunks, heard_at;
    atomic_ullong statuses[EW__BENCH_STATUSES], origins[EW__BENCH_ORIGINS];
    /* under lock */
    pthread_mutex_t lock;
    ew__bench_slot *idle;
    uint64_t sent; /* open loop: how many times of the schedule have been used */
    uint64_t late, late_max;
} ew__bench_lane;

/* One run. */
typedef struct ew__bench_course {
    ew__bench_plan *plan;
    ew__bench_result *result;
    ew__bench_lane *lanes;
    uint64_t schedule, t0, t1; /* the first call, the measured time; set before calls begin */
    atomic_bool probing, stopping;
    atomic_llong tickets;
    atomic_uint busy; /* calls under way */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool interrupted; /* under lock, like the first error in result */
    ew_traffic before;
    double cpu_before;
    pthread_t pacer;
    bool paced;
} ew__bench_course;

uint64_t ew__bench_now(void); /* monotonic ns */
/* The connections of lane i are made when its first call begins. 0, or an exit code after a message. */
int ew__bench_lane_open(ew__bench_course *r, unsigned i);
void ew__bench_lane_close(ew__bench_lane *lane);
/* The slot's next call, which was prepared: its first is made, later ones are the same again. Any thread. */
ew_err ew__bench_begin(ew__bench_slot *slot);
/* Begins what can begin now; until (if not NULL) gets the time at which the next one can, if that is earlier. */
void ew__bench_begin_idle(ew__bench_lane *lane, uint64_t *until);
/* Open loop: when the lane's next call is due. */
uint64_t ew__bench_due(const ew__bench_lane *lane);

#endif
