/*
 * tests/contract/wires.c: the wires under contract, and what the scenarios share.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/scenarios.h"
#include "wire/http/http.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/mem/mem.h"
#include "wire/reflection/reflection.h"
#include "wire/rrq/rrq.h"
#include "wire/stepflow/stepflow.h"

/* What differs from wire to wire. A wire of the table that is not here is under contract as it is. */
static const contract_wire rows[] = {
    {.wire = &ew__wire_mem},
    {.wire = &ew__wire_jsonrpc,
     .skips_large = true,
     .lines = true,
     .all_lines = true,
     .asks_first = true,
     .eof_ms = 1000},
    {.wire = &ew__wire_jsonrpc,
     .name = "jsonrpc-events",
     .told = "jsonrpc",
     .options = EW__JR_PEER_EVENTS,
     .skips_large = true,
     .lines = true,
     .all_lines = true,
     .asks_first = true,
     .eof_ms = 1000},
    {.wire = &ew__wire_reflection, .skips_large = true},
    {.wire = &ew__wire_rrq, .skips_large = true, .objects = true, .no_trace_back = true, .late_ms = 1000},
    {.wire = &ew__wire_stepflow,
     .skips_large = true,
     .stdio = true,
     .ascii = true,
     .lines = true,
     .all_lines = true,
     .no_trace_back = true},
    {.wire = &ew__wire_stepflow_http,
     .name = "stepflow-http",
     .told = "stepflow",
     .ascii = true,
     .serve = &ew__wire_http,
     .guest = &ew__stepflow_guest,
     .all_lines = true,
     .cancel_is_ours = true,
     .no_trace_back = true},
    {.wire = &ew__wire_http, .lines = true, .cancel_is_ours = true},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static bool has_row(const ew__wire *wire) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].wire == wire)
            return true;
    return false;
}

const contract_wire *contract_wire_at(size_t i) {
    static contract_wire others[16];
    size_t n = 0;
    if (i < N_ROWS)
        return &rows[i];
    for (const ew__wire *const *wires = ew__wires(); *wires && n < sizeof others / sizeof *others; wires++)
        if (!has_row(*wires) && n++ == i - N_ROWS) {
            others[n - 1].wire = *wires;
            return &others[n - 1];
        }
    return NULL;
}

const scenario *scenario_at(size_t i) {
    const scenario *const groups[] = {scenarios_plain, scenarios_hard, scenarios_limits};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const scenario *s = groups[g]; s->name; s++)
            if (i-- == 0)
                return s;
    return NULL;
}

const char *contract_name(const contract_wire *w) { return w->name ? w->name : w->wire->name; }

static void set_limits(const scenario *s, ew_limits *limits) {
    *limits = (ew_limits){.out_high_bytes = 16 * 1024,
                          .out_low_bytes = 4 * 1024,
                          .out_max_bytes = 2 * 1024 * 1024,
                          .pipeline_bytes = 4 * 1024,
                          .in_queue_items = 8,
                          .calls_per_connection = 20,
                          .runner_calls = 20};
    if (s->limits)
        s->limits(limits);
}

rig_options contract_options(const contract_wire *w, const scenario *s, rig_split split, uint64_t seed) {
    rig_options options = {.split = split,
                           .seed = seed,
                           .pipe_room = CONTRACT_PIPE_ROOM,
                           .serve = w->serve,
                           .guest = w->guest,
                           .stdio = w->stdio,
                           .options = w->options};
    set_limits(s, &options.limits);
    return options;
}

rig_pair *connect_known(rig *r, const contract_wire *w) {
    rig_pair *pair = rig_connect(r);
    if (w->asks_first) {
        (void)rig_open(pair, &(rig_request){.list = true});
        rig_run(r);
    }
    return pair;
}

rig_call *call_plain(rig_pair *pair, const char *key, const char *input) {
    rig_call *rc = rig_open(pair, &(rig_request){.key = key, .input = ew_str_from(input)});
    rig_run(pair->rig);
    return rc;
}

rig_call *call_stream(rig_pair *pair, const char *key, const char *input) {
    rig_call *rc = rig_open(pair, &(rig_request){.key = key, .input = ew_str_from(input), .stream = true});
    rig_run(pair->rig);
    return rc;
}

void must_succeed(rig *r, const rig_call *rc, const char *result) {
    if (!r->strict)
        return;
    assert_int_equal(rc->ended, 1);
    if (rc->status != EW_STATUS_OK)
        fail_msg("ended %s: %s", ew_status_name(rc->status), rc->message);
    assert_int_equal(rc->origin, EW_ORIGIN_ACTION);
    assert_string_equal(rc->result, result);
}

void must_fail(rig *r, const rig_call *rc, ew_status status) {
    if (!r->strict)
        return;
    assert_int_equal(rc->ended, 1);
    if (rc->status != status)
        fail_msg("ended %s (%s), not %s", ew_status_name(rc->status), rc->message ? rc->message : rc->result,
                 ew_status_name(status));
}
