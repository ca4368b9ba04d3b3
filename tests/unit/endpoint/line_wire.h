/*
 * tests/unit/endpoint/line_wire.h: the wire of test_pool_manage.c.
 *
 *     we: "run N KEY\n"   "aside TEXT\n" on a connection of its own       the process: "ok N TEXT\n"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_ENDPOINT_LINE_WIRE_H
#define EW_TESTS_ENDPOINT_LINE_WIRE_H

#include "unit/io/world.h"
#include "wire/wire.h"

typedef struct line_peer {
    ew__peer peer;
    ew_call *calls[64]; /* by number */
    unsigned next;
    size_t n;
    char line[512];
} line_peer;

static uint32_t most; /* calls on a connection */

static inline ew_call *take_call(line_peer *p, unsigned number) {
    ew_call *call = number < 64 ? p->calls[number] : NULL;
    if (call)
        p->calls[number] = NULL;
    return call;
}

/* Cancelling a call "stuck" is too much for the peer; of any other it is told aside. */
static inline void line_cancel(ew_call *call, ew__cancel_why why) {
    line_peer *p = call->callee_ud;
    ew__conn *conn = p->peer.conn;
    char text[32] = "";
    (void)why;
    for (unsigned i = 0; i < 64; i++) {
        if (p->calls[i] != call)
            continue;
        p->calls[i] = NULL;
        (void)snprintf(text, sizeof text, "aside cancel %u\n", i);
    }
    conn->stuck = ew__str_is(call->key, EW_STR("stuck"));
    if (conn->stuck)
        conn->ops->abort(conn);
    else
        assert_int_equal(conn->ops->one_shot(conn, text, strlen(text)), EW_OK);
    ew__call_fail_as(call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("cancelled"));
}

static const ew__callee_ops line_callee = {.cancel = line_cancel};

static inline ew_err line_open(ew__peer *peer, ew_call *call) {
    line_peer *p = (line_peer *)peer;
    char text[200];
    call->callee = &line_callee;
    call->callee_ud = p;
    p->calls[p->next] = call;
    int n = snprintf(text, sizeof text, "run %u %.*s\n", p->next, (int)call->key.len, call->key.ptr);
    p->next = (p->next + 1) % 64;
    ew__out_add(&peer->conn->out, text, (size_t)n);
    if (peer->conn->out.err == EW_OK)
        peer->conn->ops->send(peer->conn);
    else
        peer->conn->ops->abort(peer->conn);
    return EW_OK;
}

static inline uint32_t line_capacity(const ew__peer *peer) {
    const line_peer *p = (const line_peer *)peer;
    uint32_t busy = 0;
    for (unsigned i = 0; i < 64; i++)
        busy += p->calls[i] != NULL;
    return busy < most ? most - busy : 0;
}

static inline void line_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    line_peer *p = (line_peer *)peer;
    for (size_t i = 0; i < n; i++) {
        unsigned number = 0;
        int at = 0;
        assert_true(p->n < sizeof p->line);
        p->line[p->n++] = (char)bytes[i];
        if (bytes[i] != '\n')
            continue;
        p->line[p->n - 1] = '\0';
        p->n = 0;
        ew_call *call = sscanf(p->line, "ok %u %n", &number, &at) >= 1 ? take_call(p, number) : NULL;
        if (call)
            (void)ew__call_done_valid(call, ew_str_from(p->line + at));
        peer->conn->ops->acknowledge(peer->conn);
        peer->conn->ops->ready(peer->conn);
    }
}

static inline void line_lose(ew__peer *peer) {
    line_peer *p = (line_peer *)peer;
    for (unsigned i = 0; i < 64; i++) {
        ew_call *call = take_call(p, i);
        if (call)
            ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("lost"));
    }
}

static inline void line_gone(ew__peer *peer, ew_err why) {
    (void)why;
    line_lose(peer);
}

static inline ew_err line_init(ew__peer *peer) {
    (void)peer;
    return EW_OK;
}

/* Its calls do not wait until the connection is closed. */
static inline void line_eof(ew__peer *peer) {
    line_lose(peer);
    peer->conn->ops->abort(peer->conn);
}

static inline uint64_t line_most(const ew_limits *limits) {
    (void)limits;
    return most;
}

static const ew__wire line_wire = {.name = "line",
                                   .caps = EW__CAN_CALL | EW__CAN_MANY,
                                   .call_size = sizeof(line_peer),
                                   .init = line_init,
                                   .input = line_input,
                                   .eof = line_eof,
                                   .gone = line_gone,
                                   .open = line_open,
                                   .capacity = line_capacity,
                                   .most = line_most};

#endif
