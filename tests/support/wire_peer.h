/*
 * tests/support/wire_peer.h: what a test needs that is the peer of a wire on the rig: texts with placeholders, the two
 * ends of a raw connection, and what the caller of a call received.
 *
 * Texts are written with ' for " and ^ for '. $1 to $9 stand for ids that the wire makes, with their quotes: the first
 * one received is stored and must not change; in a text that is sent, $n is replaced by it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_WIRE_PEER_H
#define EW_TESTS_WIRE_PEER_H

#include "support/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PEER_ID_ROOM 80
typedef char peer_ids[10][PEER_ID_ROOM];

#define RPC "{'jsonrpc':'2.0',"
#define FAULT(code, message, status) "{'code':" #code ",'message':'" message "','data':{'status':'" status "'}}"
/* The same for a call that was refused before its handler started. */
#define REFUSAL(code, message, status)                                                                                 \
    "{'code':" #code ",'message':'" message "','data':{'status':'" status "','refused':true}}"
/* Stepflow's messages, on both of its transports. */
#define EXECUTE(id, component, input)                                                                                  \
    RPC "'id':" id ",'method':'components/execute','params':{'component':'" component "','input':" input "}}"
#define OUTPUT(id, output) RPC "'id':" id ",'result':{'output':" output "}}"

/* ---- texts ---- */

char *peer_expand(peer_ids ids, const char *text); /* for free() */
bool peer_matches(peer_ids ids, const char *pattern, const char *got, size_t n);
/* Fails the test at `line` if it does not match. */
void peer_check_text(peer_ids ids, const char *pattern, const char *got, size_t n, int line);

/* ---- a connection with a raw end ---- */

static inline rig_end *raw_end(rig_pair *pair) { return &pair->end[pair->end[0].raw ? 0 : 1]; }
static inline rig_end *wire_end(rig_pair *pair) { return &pair->end[pair->end[0].raw ? 1 : 0]; }
void say_bytes(rig_pair *pair, const void *bytes, size_t n);

/* ---- what callers received ---- */

void peer_check_done(const rig_call *rc, const char *result, int line);
void peer_check_failed(const rig_call *rc, ew_status status, ew_origin origin, const char *message, int line);
#define check_failed(rc, status, origin, message) peer_check_failed((rc), (status), (origin), (message), __LINE__)
#define check_runs(rc) assert_int_equal((rc)->ended, 0)

#endif
