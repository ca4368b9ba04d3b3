/*
 * wire/jsonrpc/ask.c: finds out whether the peer is an everywire instance.
 *
 * Result streams (?stream=true) and hop counts (?hops=N) are extensions that only everywire
 * understands. Before the first call that needs one of them, the connection sends rpc.discover.
 * A peer that answers with an error, or with another document, receives plain calls.
 *
 * A peer that is silent is not yet known to be another program: it may be paused or overloaded.
 * After ANSWER_MS, calls that only asked for chunks are sent as plain calls. Calls with a hop count
 * fail, because a plain call would drop the count and a forwarding loop would never end. A late
 * answer still identifies the peer for all later calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define ANSWER_MS 10000

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
    ew__timer_stop(&peer->peer.conn->home->timers, &peer->answer);
    peer->kind = everywire ? EW__JR_EVERYWIRE : EW__JR_OTHER;
    while ((entry = next_asking(peer)) != NULL)
        ew__jr_send_now(entry);
}

static void on_no_answer(ew__timer *timer, uint64_t now) {
    ew__jr_peer *peer = ew__container_of(timer, ew__jr_peer, answer);
    ew__jr_call *entry;
    (void)now;
    peer->kind = EW__JR_SILENT;
    while ((entry = next_asking(peer)) != NULL) {
        if (entry->base.call->hops)
            ew__jr_fail(entry, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                        "the peer did not answer rpc.discover within 10 s, so the call cannot carry "
                        "its hop count");
        else
            ew__jr_send_now(entry);
    }
}

static void send_discover(ew__jr_peer *peer) {
    ew__rpc_out message;
    peer->asked_id_len = (uint8_t)ew__rpc_ids_next(&peer->ids, peer->asked_id);
    ew__rpc_put_request(&message, ew__str(peer->asked_id, peer->asked_id_len), EW_STR("\"rpc.discover\""), 0,
                        EW_STR("{}"));
    ew__jr_send(peer, &message, NULL);
}

void ew__jr_ask(ew__jr_peer *peer) {
    ew__home *home = peer->peer.conn->home;
    bool first = peer->kind == EW__JR_UNKNOWN;
    if (peer->kind == EW__JR_ASKED)
        return;
    peer->kind = EW__JR_ASKED;
    if (first)
        send_discover(peer);
    if (ew__timer_set(&home->timers, &peer->answer, home->now + EW__MS(ANSWER_MS), on_no_answer) != EW_OK)
        on_no_answer(&peer->answer, home->now);
}

bool ew__jr_asks_first(const ew__jr_peer *peer, const ew_call *call) {
    if (call->kind != EW__CALL_RUN || peer->kind >= EW__JR_EVERYWIRE)
        return false;
    if (call->hops)
        return true;
    return peer->kind != EW__JR_SILENT && call->wants_chunks && !call->notify;
}

bool ew__jr_asked(const ew__jr_peer *peer, ew_str id) {
    return peer->kind < EW__JR_EVERYWIRE && peer->asked_id_len &&
           ew__str_is(id, ew__str(peer->asked_id, peer->asked_id_len));
}
