/*
 * tests/contract/hostile.h: peers that break the protocol on purpose. The test is one end of a
 * connection of the rig, byte by byte; the wire under test is the other end. A hostile_wire holds what
 * differs between wires (framing and message templates), so that each scenario is written once.
 *
 * A template is JSON text with ' for ", and these placeholders: $I request id (JSON), $J job id (JSON),
 * $K action key, $V a value.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_HOSTILE_H
#define EW_TESTS_HOSTILE_H

#include "support/rig.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef enum hostile_framing { HOSTILE_LINES, HOSTILE_LENGTH, HOSTILE_WEBSOCKET, HOSTILE_HTTP } hostile_framing;

typedef struct hostile_wire {
    const char *name;
    const ew__wire *wire;  /* of the calling end */
    const ew__wire *serve; /* of the serving end; NULL: the same */
    const struct ew__http_guest *guest;
    bool stdio, handshake;
    hostile_framing framing;
    const char *path;           /* HTTP: target of a request; a template */
    const char *id_at, *job_at; /* JSON pointers into a request; NULL: it has none */
    /* sent by the callee; NULL: the wire has no such message */
    const char *result, *error, *chunk;
    /* sent by the caller; likewise */
    const char *request, *stream, *input_stream, *cancel, *input, *input_end;
    const char *const *strays; /* well-formed messages that belong to no call; NULL-terminated */
    const char *codes;         /* values of $V in `error`, separated by spaces */
} hostile_wire;

extern const hostile_wire hostile_wires[];
extern const size_t n_hostile_wires;

/* The world of one scenario. */
typedef struct hostile {
    rig r;
    const hostile_wire *wire;
    int raw;           /* the test's end: RIG_SERVER or RIG_CLIENT */
    size_t memory_max; /* bytes that both ends may use at once; a scenario with many calls raises it */
} hostile;

typedef struct hostile_values {
    const char *id, *job, *key, *value;
    const char *token; /* HTTP: sent as a bearer token; may be NULL */
} hostile_values;

/* A call of the wire under test that has reached the test. */
typedef struct hostile_call {
    rig_call *rc;
    rig_pair *pair;
    char id[80], job[80];
} hostile_call;

enum {
    HOSTILE_ANY = 0,
    HOSTILE_NEEDS_HTTP = 1,
    HOSTILE_NEEDS_IDS = 2, /* not HTTP: many calls on one connection */
    HOSTILE_NEEDS_HANDSHAKE = 4,
    HOSTILE_NEEDS_SOCKET = 8, /* not stdio, where the peer is one process */
    HOSTILE_NEEDS_TOKENS = 16 /* its server asks for tokens: not reflection, which dials its manager */
};

typedef struct hostile_scenario {
    const char *name;
    void (*run)(hostile *h);
    unsigned caps;  /* EW__CAN_*: wires without them are left out */
    unsigned needs; /* HOSTILE_NEEDS_* */
} hostile_scenario;

/*
 * Runs each scenario on each wire as "GROUP/WIRE/SCENARIO". argv[1]: only names that contain it.
 */
int hostile_main(const char *group, const hostile_scenario *scenarios, size_t n, int raw, int argc, char **argv);

void hostile_init(hostile *h, const hostile_wire *wire, int raw);
/* Checks that memory stayed bounded, then rig_finish: one end per call, no call and no memory left. */
void hostile_finish(hostile *h);
/* A connection on which a call may be opened (test serves) or sent (test calls). */
rig_pair *hostile_connect(hostile *h);
static inline rig_end *hostile_end(const hostile *h, rig_pair *pair) { return &pair->end[h->raw]; }
/* Whether the wire under test has closed the connection or sent its end. */
bool hostile_over(const hostile *h, rig_pair *pair);

/* ---- messages ---- */

char *hostile_text(const char *template, const hostile_values *values); /* for free() */
/* Frames one message; it is not delivered yet. */
void hostile_put(hostile *h, rig_pair *pair, const char *template, const hostile_values *values);
void hostile_say(hostile *h, rig_pair *pair, const char *template, const hostile_values *values);
void hostile_say_bytes(hostile *h, rig_pair *pair, const char *bytes, size_t n);
/* The same as hostile_put, into a buffer for free(). */
char *hostile_frame(const hostile *h, const char *template, const hostile_values *values, size_t *ret_len);
/* The next whole message that arrived, without its framing; NULL: none. For free(). */
char *hostile_take(hostile *h, rig_pair *pair);

/* The i-th text that is not a message; false: there are no more. */
bool hostile_garbage(size_t i, ew_str *ret);

/* ---- the test serves ---- */

/* Opens a call and reads its request, answering the wire's handshake on the way. */
void hostile_open(hostile *h, rig_pair *pair, const rig_request *request, hostile_call *ret);
void hostile_call_plain(hostile *h, rig_pair *pair, hostile_call *ret);
void hostile_answer(hostile *h, const hostile_call *call, const char *template, const char *value);

/* The call is open; it is answered now and must succeed: an attack elsewhere did not harm it. */
void hostile_check_answered(hostile *h, const hostile_call *call);

/* Scenarios of test_hostile_call.c that only HTTP has (hostile_call_http.c). */
void hostile_http_2xx(hostile *h);
void hostile_http_statuses(hostile *h);
void hostile_http_events(hostile *h);

/* ---- the test calls ---- */

/* Sends a request for an action of the rig. */
void hostile_request(hostile *h, rig_pair *pair, const char *key, const char *id, const char *value);
/* Counts arrived messages that contain the text, and drops all that arrived. */
unsigned hostile_count(hostile *h, rig_pair *pair, const char *text);
/* A second connection makes a call, which must succeed. */
void hostile_check_neighbour(hostile *h);

void hostile_check_done(const rig_call *rc, const char *result);

#endif
