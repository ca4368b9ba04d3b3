/*
 * tests/contract/scenarios.h: what every wire must do, as scenarios over the rig. A scenario checks what came out
 * only when rig->strict: the same ones run with connections cut and memory failing, where only the rig's own checks
 * hold (exactly one end, nothing left).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_SCENARIOS_H
#define EW_TESTS_SCENARIOS_H

#include "support/rig.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A wire under contract: each of the table, with what is special about it (wires.c). */
typedef struct contract_wire {
    const ew__wire *wire;
    const char *name;      /* NULL: the wire's */
    const char *told;      /* the name that calls are told; NULL: the wire's */
    const ew__wire *serve; /* rig_options.serve, .guest, .stdio */
    const struct ew__http_guest *guest;
    bool stdio;
    uint32_t options;    /* of the client's site */
    bool lines;          /* its streams are lines: chunks with a raw newline arrive without white space */
    bool ascii;          /* and they are ASCII: other characters arrive as escapes */
    bool all_lines;      /* so is everything else: inputs and results too */
    bool asks_first;     /* before the first stream of a connection the peer is asked what it is */
    uint64_t eof_ms;     /* how long calls of a peer that said "no more" still may run: it may want their answers */
    bool cancel_is_ours; /* cancelling ends the call here, whatever the callee says */
    bool objects;        /* inputs are objects only: the rig wraps others, and takes what comes back out again */
    bool skips_large;    /* a message that is too large is skipped; other wires close the connection */
    bool no_trace_back;  /* an answer does not say what its trace is called */
    uint64_t late_ms;    /* how long a callee whose deadline has passed may say so itself, before it is cancelled */
} contract_wire;
/* The n-th wire under contract; NULL at the end. */
const contract_wire *contract_wire_at(size_t i);

typedef struct scenario {
    const char *name;
    unsigned needs; /* EW__CAN_*; a wire that cannot is passed over, aloud */
    void (*run)(rig *r, const contract_wire *w);
    void (*limits)(ew_limits *limits); /* may be NULL */
    bool large;                        /* too many bytes to be cut at each of them */
} scenario;
extern const scenario scenarios_plain[], scenarios_hard[], scenarios_limits[]; /* ended by a NULL name */

/* The n-th of all; NULL at the end. */
const scenario *scenario_at(size_t i);

const char *contract_name(const contract_wire *w);

/* The world of a scenario: limits that are small enough to be reached quickly. */
rig_options contract_options(const contract_wire *w, const scenario *s, rig_split split, uint64_t seed);
#define CONTRACT_PIPE_ROOM ((size_t)16 * 1024)

/* ---- for scenarios ---- */

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (r->strict)                                                                                                 \
            assert_true(condition);                                                                                    \
    } while (0)
#define MUST_BE(text, expected)                                                                                        \
    do {                                                                                                               \
        if (r->strict) {                                                                                               \
            assert_non_null(text);                                                                                     \
            assert_string_equal(text, expected);                                                                       \
        }                                                                                                              \
    } while (0)

/* A connection whose ends know each other. */
rig_pair *connect_known(rig *r, const contract_wire *w);
/* Opens on a pair and lets everything happen. */
rig_call *call_plain(rig_pair *pair, const char *key, const char *input);
rig_call *call_stream(rig_pair *pair, const char *key, const char *input);
void must_succeed(rig *r, const rig_call *rc, const char *result);
void must_fail(rig *r, const rig_call *rc, ew_status status);

#endif
