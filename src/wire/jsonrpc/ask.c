/*
 * wire/jsonrpc/ask.c: what kind of peer this is. A stream of results must be asked for in a way that only everywire
 * knows (?stream=true), and so is what it crossed before (?hops=N): before the first call that has such a query the peer
 * is asked for its actions. One that does not answer soon, or says that it knows no such method, gets plain calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

#define ANSWER_MS 2000

/* The list has the newest call first; they leave in the order in which they were made. */
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
    (void)now;
    ew__jr_learn(ew__container_of(timer, ew__jr_peer, answer), false);
}

void ew__jr_ask(ew__jr_peer *peer) {
    ew__home *home = peer->peer.conn->home;
    ew__rpc_out message;
    if (peer->kind != EW__JR_UNKNOWN)
        return;
    peer->kind = EW__JR_ASKED;
    peer->asked_id_len = (uint8_t)ew__rpc_ids_next(&peer->ids, peer->asked_id);
    ew__rpc_put_request(&message, ew__str(peer->asked_id, peer->asked_id_len), EW_STR("\"rpc.discover\""), 0,
                        EW_STR("{}"));
    ew__jr_send(peer, &message, NULL);
    if (ew__timer_set(&home->timers, &peer->answer, home->now + EW__MS(ANSWER_MS), on_no_answer) != EW_OK)
        ew__jr_learn(peer, false);
}

bool ew__jr_asked(const ew__jr_peer *peer, ew_str id) {
    return peer->asked_id_len && ew__str_is(id, ew__str(peer->asked_id, peer->asked_id_len));
}
