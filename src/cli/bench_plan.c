/*
 * cli/bench_plan.c: how many connections, threads and calls at a time a run of everywire bench has, given what was asked
 * and what its target can do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include <string.h>

#define DEFAULT_CONNECTIONS 10
#define CONNECTIONS_MAX 16000
#define SLOTS_MAX 100000
#define PROCESSES_MAX 64
#define THREADS_MAX 64

/* Wires whose connections carry one call at a time. */
static bool is_single(const char *target) {
    const ew_scheme *scheme = ew__cli_scheme(target);
    return scheme->http && scheme->reach == EW_REACH_TCP;
}

static bool is_stdio(const char *target) { return ew__cli_scheme(target)->reach == EW_REACH_CHILD; }

static const char *check_numbers(const ew__bench_plan *plan) {
    if (plan->connections > CONNECTIONS_MAX) {
        return "-c: at most 16000 connections";
    }
    if (plan->connections * plan->depth > SLOTS_MAX) {
        return "-c times -d: at most 100000 calls at a time";
    }
    if (plan->threads > THREADS_MAX) {
        return "--threads: at most 64";
    }
    return NULL;
}

/* Each process is a connection, and has a client with a thread of its own. */
static const char *arrange_stdio(ew__bench_plan *plan) {
    if (plan->connections > PROCESSES_MAX) {
        return "-c: at most 64 over standard input and output, where each connection is a process";
    }
    plan->links = plan->clients = (unsigned)plan->connections;
    if (plan->links > 1) {
        (void)snprintf(plan->note_room, sizeof plan->note_room, "each of the %u connections is a process of its own",
                       plan->links);
        plan->note = plan->note_room;
    }
    return NULL;
}

static const char *arrange_single(ew__bench_plan *plan) {
    if (plan->connections * plan->depth > CONNECTIONS_MAX) {
        return "-c times -d: at most 16000 on this wire, where a connection carries one call at a time";
    }
    plan->links = (unsigned)(plan->connections * plan->depth);
    plan->per_link = 1;
    if (plan->depth > 1) {
        (void)snprintf(plan->note_room, sizeof plan->note_room,
                       "a connection of this wire carries one call at a time: -d %u makes %u connections",
                       (unsigned)plan->depth, plan->links);
        plan->note = plan->note_room;
    }
    return NULL;
}

/* Where a program stands behind --: that is one peer, and belongs to one client. */
static const char *check_command(const ew__bench_plan *plan) {
    if (ew__cli_has_processes(plan->calling.words[0]) && plan->connections > PROCESSES_MAX) {
        return "-c: at most 64 with a runner behind --, where each connection has a process";
    }
    return plan->threads > 1 ? "--threads: one, where a program stands behind --" : NULL;
}

const char *ew__bench_arrange(ew__bench_plan *plan) {
    const char *target = plan->calling.words[0];
    bool awaited = ew__cli_is_awaited(target);
    bool runner = ew__cli_has_processes(target) && plan->calling.command;
    const char *problem = check_numbers(plan);
    if (!problem && awaited && plan->connections > 1) {
        problem = "-c: one, where the peer dials us; -d is how many calls it gets at a time";
    }
    if (problem) {
        return problem;
    }
    if (plan->connections == 0) {
        plan->connections = awaited || is_stdio(target) || runner ? 1 : DEFAULT_CONNECTIONS;
    }
    plan->links = (unsigned)plan->connections;
    plan->per_link = (unsigned)plan->depth;
    plan->slots = (unsigned)(plan->connections * plan->depth);
    plan->clients = 1;
    if (is_stdio(target)) {
        return arrange_stdio(plan);
    }
    if (plan->calling.command || awaited) {
        problem = check_command(plan);
    }
    if (!problem && is_single(target)) {
        problem = arrange_single(plan);
    }
    if (plan->threads > 1) {
        plan->clients = plan->threads < plan->links ? (unsigned)plan->threads : plan->links;
    }
    return problem;
}
