/*
 * tests/transcripts/back.h: handlers that a transcript plays itself: the call of /test/hold calls back and ends as the
 * file says. And the wires that have another name in transcripts than in the program.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_TRANSCRIPTS_BACK_H
#define EW_TESTS_TRANSCRIPTS_BACK_H

#include "support/rig.h"
#include "wire/http/http.h"
#include "wire/stepflow/stepflow.h"

#include <stdio.h>

/* "stepflow-http" is two: a guest of the http wire, and a wire that calls. */
static inline const ew__wire *wire_named(const char *name, rig_options *options) {
    if (strcmp(name, "stepflow-http") != 0)
        return ew__wire_by_name(ew_str_from(name));
    options->serve = &ew__wire_http;
    options->guest = &ew__stepflow_guest;
    return &ew__wire_stepflow_http;
}

/* The last call back, and what came of it. */
static struct {
    ew_call *origin;
    char method[100], params[1000], told[400];
} last_back;

static inline void back_end(ew_call *call, const ew__end *end) {
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    (void)snprintf(last_back.told, sizeof last_back.told, "back %s %.*s",
                   end->status == EW_STATUS_OK ? "done" : ew_status_name(end->status), (int)text.len, text.ptr);
    ew__call_release(call);
}

static inline void back_open(ew_call *call) {
    ew_call *origin = last_back.origin;
    if (!origin->caller_open || !origin->caller->call_back || origin->caller->call_back(origin, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_UNAVAILABLE, EW_STR("not taken"));
}

static const ew__caller_ops back_caller = {.end = back_end};
static const ew__callee_ops back_opening = {.open = back_open};

static inline bool call_back(rig *r, const char *line) {
    size_t n = strcspn(line, " ");
    ew_call *call = ew__call_new(&r->side[RIG_SERVER].executor, &back_caller, NULL);
    if (!call)
        return false;
    (void)snprintf(last_back.method, sizeof last_back.method, "%.*s", (int)n, line);
    (void)snprintf(last_back.params, sizeof last_back.params, "%s", line[n] ? line + n + 1 : "{}");
    (void)snprintf(last_back.told, sizeof last_back.told, "back nothing");
    last_back.origin = r->held;
    call->key = ew_str_from(last_back.method);
    call->input = ew_str_from(last_back.params);
    ew__trace_new(&call->trace, &call->executor->rng);
    ew__call_open_on(call, &back_opening, NULL);
    return true;
}

/* back METHOD PARAMS, done JSON, fail MESSAGE. false: it is none of them, or no call is held. */
static inline bool back_line(rig *r, const char *line) {
    ew_call *held = r->held;
    if (held && strncmp(line, "back ", 5) == 0)
        return call_back(r, line + 5);
    if (held && strncmp(line, "done ", 5) == 0)
        (void)ew_call_done(held, ew_str_from(line + 5));
    else if (held && strncmp(line, "fail ", 5) == 0)
        (void)ew_call_fail(held, EW_STATUS_UNKNOWN, line + 5);
    else
        return false;
    r->held = ew_call_unref(held);
    return true;
}

#endif
