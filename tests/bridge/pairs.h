/*
 * tests/bridge/pairs.h: what the tests of bridges share. A world is a chain over real sockets in one process: an origin
 * (an app with actions) that is served on the far wire, a gateway that imports it and serves the near wire, and a caller
 * (a client) on the near wire.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_PAIRS_H
#define EW_TESTS_PAIRS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/wire.h"
#include <everywire/everywire.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 20000   /* for what is to happen at once */
#define REFRESH_MS 200  /* how often gateways ask for lists here */
#define CHUNKS_KEPT 128 /* of an outcome */

/* ---- wires.c: the wires, as these tests know them ---- */

typedef struct bridge_wire {
    const char *name;
    const char *serves, *calls; /* the tables of its two sides (ew__wire_by_name) */
    const char *listen;         /* where a program listens that serves it; NULL: it dials, or is a child */
    const char *target;         /* of who calls it, with the port behind it */
    unsigned caps;              /* of BRIDGE_CAPS: what it carries, written down once more to be compared */
    bool child;                 /* the program that serves it is started, and spoken with over its stdio */
    bool objects;               /* inputs are objects */
    bool labels;                /* labels cross */
    bool inside;                /* a context that is an object crosses, inside the protocol's own */
    bool all_lines;             /* a payload has no raw newline */
    bool lines;                 /* ... nor has a payload of a stream */
    bool ascii;                 /* text is written with \u escapes */
    bool no_trace_back;         /* an answer does not say what its trace is called */
} bridge_wire;

#define BRIDGE_CAPS                                                                                                    \
    (EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_DEADLINE | EW__CAN_TRACE | EW__CAN_CONTEXT |            \
     EW__CAN_LIST)
#define N_NEAR 5
#define N_FAR 6 /* the last is another carrier of a wire that is there already */

extern const bridge_wire bridge_wires[N_FAR];
const bridge_wire *bridge_wire_by_name(const char *name);
/* What crosses a bridge between the two: what both carry. */
static inline bool both_carry(const bridge_wire *near, const bridge_wire *far, unsigned cap) {
    return (near->caps & far->caps & cap) != 0;
}
/* Fails if the table is not what the library's wires say of themselves. */
void check_wires(void);

/* ---- actions.c: what an origin offers ---- */

/* What the handlers of this process have seen. */
typedef struct origin_seen {
    atomic_int opened;      /* calls of /flow/forever */
    atomic_int running;     /* ... that have not ended */
    atomic_int cancelled;   /* ... that were told to stop */
    atomic_int deadline_ms; /* what was left for the last one; -1: it has none */
    atomic_int pouring;     /* calls of /flow/pour that have not ended */
    atomic_int waits;       /* how often they had to wait for room */
    atomic_int asked;       /* calls of /flow/who */
    atomic_int look;        /* said by the test: /flow/gather may look at its input */
} origin_seen;
extern origin_seen seen;

/* What /flow/gather returns of its input stream, [bytes,hash]: begin with {0}. */
typedef struct gathered {
    uint64_t bytes, hash;
} gathered;
void gathered_add(gathered *g, ew_str chunk);
const char *gathered_text(const gathered *g, char out[64]);

void seen_reset(void);
/* id is what /flow/who answers; it must outlive the app. */
void add_actions(ew_app *app, const char *id);

/* ---- outcomes ---- */

typedef struct outcome {
    ew_status status;
    ew_origin origin;
    char *text; /* the result, or the message */
    char *details;
    bool retryable;
    uint64_t retry_after_ms;
    char trace_id[33];
    atomic_int n_chunks;
    char *chunks[CHUNKS_KEPT];
    bool holds; /* the reader takes nothing behind the first chunk before a producer (/flow/pour) waits for it */
} outcome;

void outcome_done(outcome *o);

/* ---- world.c ---- */

typedef struct world {
    const bridge_wire *near, *far;
    ew_app *origin; /* NULL: a child */
    ew_app *gateway;
    ew_client *caller;
    int near_port, far_port;
    char far_target[64]; /* what the gateway imports */
    unsigned crossed;    /* marks */
} world;

/* What was seen to cross. */
enum {
    MARK_UNARY = 1,
    MARK_STATUS = 2,
    MARK_CHUNKS = 4,
    MARK_INPUT = 8,
    MARK_CANCEL = 16,
    MARK_DEADLINE = 32,
    MARK_TRACE = 64,
    MARK_CONTEXT = 128
};

/* An app with the actions, served on a wire: on that port (0: any), or dialling ws://127.0.0.1:port. */
ew_app *start_origin(const bridge_wire *wire, const char *id, int port);
/* Of the n-th listener; or of the one for a wire, by its name. */
int port_of(const ew_app *app, const char *wire);
/* Imports it; NULL options: asked every REFRESH_MS. */
void import(ew_app *app, const char *target, const ew_import_options *options);
ew_client *client_to(const char *target);
void world_open(world *w, const bridge_wire *near, const bridge_wire *far);
void world_close(world *w);

/* Begins a call; what comes of it is kept in o (which is cleared, but for holds). */
ew_request *begin_on(ew_client *client, const ew_request_options *options, outcome *o);
/* Waits for its end and lets go of it. */
void finish(ew_request *request, outcome *o);
/* Both. */
void ask_on(ew_client *client, const ew_request_options *options, outcome *o);
void ask(const world *w, const char *action, const char *input, outcome *o);
void ask_stream(const world *w, const char *action, const char *input, outcome *o);
/* Asks until it ends so; fails after WAIT_MS. */
void ask_until(ew_client *client, const char *action, ew_status status);

void must_be(const outcome *o, const char *result);
void must_fail(const outcome *o, ew_status status);

/* Waits until a number becomes that. */
bool becomes(atomic_int *value, int wanted);
/* The same for what the origin's handlers see, wherever they run: "running" and so on. */
int seen_now(const world *w, const char *name);
void seen_becomes(const world *w, const char *name, int wanted);
void seen_settles(const world *w); /* nothing runs, and nothing that was given up is on its way any more */
/* The start of a call of /flow/forever has been seen. */
ew_request *begin_forever(const world *w, outcome *o, uint64_t timeout_ms, bool stream);

/* Ends all connections of this process to one of its ports, as if the network had: by a reset, or an end of input. */
void cut(int port, bool reset);
/* The far peer is gone from one moment to the next. It comes back by itself. */
void cut_far(const world *w, bool reset);

/* ---- scenarios ---- */

typedef struct scenario {
    const char *name;
    void (*run)(world *w);
    unsigned near_needs, far_needs; /* of BRIDGE_CAPS; else the scenario says nothing about the pair */
    bool ends_world;                /* it is not usable afterwards */
} scenario;

extern const scenario scenarios_plain[], scenarios_payload[], scenarios_hard[]; /* ended by one without a name */

/* ---- papers.c ---- */

/* Compares (or, with write, replaces) what stands between the marks of a file. Returns an exit code. */
int check_papers(const char *path, bool write);
/* The letters of what crosses, as BRIDGE_CAPS says: "usc-x-t-". */
const char *letters_of(unsigned marks, char out[9]);
unsigned expected_marks(const bridge_wire *near, const bridge_wire *far);

#endif
