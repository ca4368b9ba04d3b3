/*
 * wire/jsonrpc/ask.c: finds out whether the peer is an everywire instance.
 *
 * Result streams (?stream=...) and hop counts (?hops=N) are extensions that only everywire
 * understands. Before the first call that needs one of them, the connection sends rpc.discover, once.
 * The calls that need the answer wait for it.
 *
 * Silence decides nothing: the peer may be paused or overloaded. A plain call would lose its chunks
 * without an error, or its hop count, and a forwarding loop would never end. So a call waits until its
 * own deadline, or for limits.stream_idle_ms if it has none, and then fails. An answer counts whenever
 * it arrives.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define NO_ANSWER                                                                                                      \
    "the peer has not answered rpc.discover, which a call with chunks or with a hop count needs; if the peer is not "  \
    "everywire, add ?discover=no to its target"

/* The list has the newest call first; calls are sent in the order in which they were made. */
static ew__jr_call *next_asking(const ew__jr_peer *peer) {
    ew__jr_call *oldest = NULL;
    for (ew__rpc_call *entry = peer->calls.sent.first; entry; entry = entry->next)
        if (ew__jr_call_of(entry)->phase == EW__JR_ASKING)
            oldest = ew__jr_call_of(entry);
    return oldest;
}

void ew__jr_learn(ew__jr_peer *peer, bool everywire) {
    ew__jr_call *entry;
    peer->kind = everywire ? EW__JR_EVERYWIRE : EW__JR_OTHER;
    while ((entry = next_asking(peer)) != NULL) {
        ew__timer_stop(&peer->peer.conn->executor->timers, &entry->base.timer);
        ew__jr_send_now(entry);
    }
}

static void on_no_answer(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__jr_fail(ew__container_of(timer, ew__jr_call, base.timer), EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, NO_ANSWER);
}

static void send_discover(ew__jr_peer *peer) {
    ew__rpc_out message;
    peer->kind = EW__JR_ASKED;
    peer->asked_id_len = (uint8_t)ew__rpc_ids_next(&peer->ids, peer->asked_id);
    ew__rpc_put_request(&message, ew__str(peer->asked_id, peer->asked_id_len), EW_STR("\"rpc.discover\""), 0,
                        EW_STR("{}"));
    ew__jr_send(peer, &message, NULL);
}

void ew__jr_ask(ew__jr_peer *peer, ew__jr_call *entry) {
    ew__executor *executor = peer->peer.conn->executor;
    uint64_t until = executor->now + EW__MS(executor->limits->stream_idle_ms);
    entry->phase = EW__JR_ASKING;
    if (peer->kind == EW__JR_UNKNOWN)
        send_discover(peer);
    if (entry->base.call->deadline == EW__NEVER &&
        ew__timer_set(&executor->timers, &entry->base.timer, until, on_no_answer) != EW_OK)
        ew__jr_fail(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

bool ew__jr_asks_first(const ew__jr_peer *peer, const ew_call *call) {
    return peer->kind <= EW__JR_ASKED && call->kind == EW__CALL_RUN &&
           (call->hops || (call->wants_chunks && !call->outgoing.notify));
}

bool ew__jr_asked(const ew__jr_peer *peer, ew_str id) {
    return peer->kind == EW__JR_ASKED && ew__str_is(id, ew__str(peer->asked_id, peer->asked_id_len));
}
