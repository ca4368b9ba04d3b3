/*
 * tests/bridge/scenarios_hard.c: what goes wrong: cancelling, deadlines, lost connections on either side, a gateway that
 * goes, many calls at once.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"
#include "support/json_or.h"

/* ---- cancel ---- */

static void cancel(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    int before = seen_now(w, "cancelled");
    for (int i = 1; i <= 4; i++) {
        ew_request *request = begin_forever(w, &o, 0, i % 2);
        ew_request_cancel(request);
        finish(request, &o);
        must_fail(&o, EW_STATUS_CANCELLED);
        seen_becomes(w, "cancelled", before + i);
        seen_becomes(w, "running", 0);
    }
    ask(w, "/flow/echo", "{}", &o);
    must_be(&o, "{}");
    outcome_done(&o);
    w->crossed |= MARK_CANCEL;
}

/* At any moment: before it has left, under way, while it ends. */
static void cancel_storm(world *w) {
    enum { N = 60 };
    static outcome outcomes[N];
    ew_request *requests[N];
    for (int i = 0; i < N; i++) {
        ew_request_options options = {.action = ew_str_from(i % 3 ? "/flow/forever" : "/flow/count"),
                                      .input = EW_STR("{\"n\":100}"),
                                      .stream = i % 2};
        requests[i] = begin_on(w->caller, &options, &outcomes[i]);
        if (i % 4)
            ew_request_cancel(requests[i]);
        if (i % 10 == 9)
            (void)usleep(2000);
    }
    for (int i = 0; i < N; i++)
        if (i % 4 == 0)
            ew_request_cancel(requests[i]);
    for (int i = 0; i < N; i++) {
        finish(requests[i], &outcomes[i]);
        if (i % 3 || outcomes[i].status != EW_STATUS_OK)
            must_fail(&outcomes[i], EW_STATUS_CANCELLED);
        outcome_done(&outcomes[i]);
    }
    seen_settles(w);
}

/* ---- the caller is gone ---- */

static void caller_lost(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    for (int i = 0; i < 2; i++) {
        int before = seen_now(w, "cancelled");
        ew_request *request = begin_forever(w, &o, 0, i);
        cut(w->near_port, i == 0);
        finish(request, &o);
        must_fail(&o, EW_STATUS_UNAVAILABLE);
        assert_int_equal(o.origin, EW_ORIGIN_CONNECT);
        ask_until(w->caller, "/flow/echo", EW_STATUS_OK);
        seen_becomes(w, "cancelled", before + 1);
        seen_becomes(w, "running", 0);
    }
    outcome_done(&o);
}

/* ... and so is its program. */
static void caller_freed(world *w) {
    static outcome outcomes[5];
    ew_request *requests[5];
    if (!w->origin)
        return; /* who would ask the child? */
    for (int i = 0; i < 5; i++)
        requests[i] = begin_forever(w, &outcomes[i], 0, i % 2);
    w->caller = ew_client_free(w->caller);
    for (int i = 0; i < 5; i++) {
        ew_request_free(requests[i]);
        outcome_done(&outcomes[i]);
    }
    seen_becomes(w, "cancelled", 5);
    seen_becomes(w, "running", 0);
}

/* ---- deadlines ---- */

/*
 * The call ends for its caller when its time is up, and the handler is told to stop. How long that takes to get there
 * says nothing about bridges, so a call that has not arrived in time is made again with more.
 */
static void deadline(world *w) {
    bool both = both_carry(w->near, w->far, EW__CAN_DEADLINE);
    outcome o = {.status = EW_STATUS_OK};
    int opened = seen_now(w, "opened"), cancelled = seen_now(w, "cancelled");
    int timeout = 200;
    for (; timeout <= 6400 && seen_now(w, "opened") == opened; timeout *= 2) {
        finish(begin_forever(w, &o, (uint64_t)timeout, false), &o);
        must_fail(&o, EW_STATUS_DEADLINE_EXCEEDED);
        assert_int_equal(o.origin, EW_ORIGIN_DEADLINE);
        assert_true(timeout < 6400);
        (void)usleep(20000); /* what is late may still arrive */
    }
    seen_becomes(w, "opened", opened + 1);
    int left = seen_now(w, "deadline_ms");
    if (both)
        assert_in_range(left, 0, timeout / 2);
    else
        assert_int_equal(left, -1);
    seen_becomes(w, "cancelled", cancelled + 1);
    seen_becomes(w, "running", 0);
    outcome_done(&o);
    w->crossed |= both ? MARK_DEADLINE : 0;
}

static void deadline_kept(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ask_on(
        w->caller,
        &(ew_request_options){.action = EW_STR("/flow/sleep"), .input = EW_STR("{\"ms\":20}"), .timeout_ms = WAIT_MS},
        &o);
    must_be(&o, "{\"slept_ms\":20}");
    ask_on(w->caller,
           &(ew_request_options){.action = EW_STR("/flow/context"), .input = EW_STR("{}"), .timeout_ms = WAIT_MS}, &o);
    assert_int_equal(o.status, EW_STATUS_OK);
    int64_t left = json_int_or(ew_str_from(o.text), "/deadline_ms", -1);
    if (both_carry(w->near, w->far, EW__CAN_DEADLINE))
        assert_in_range(left, 1, WAIT_MS);
    else
        assert_int_equal(left, -1);
    outcome_done(&o);
}

/* ---- the origin is gone ---- */

/* In the middle of a call: it fails at once, is not made a second time, and the next one works. */
static void lose_peer(const world *w, bool stream, bool reset) {
    outcome o = {.status = EW_STATUS_OK};
    int opened = w->origin ? seen_now(w, "opened") : -1, cancelled = w->origin ? seen_now(w, "cancelled") : 0;
    ew_request *request = begin_forever(w, &o, 0, stream);
    if (stream && both_carry(w->near, w->far, EW__CAN_CHUNKS))
        assert_true(becomes(&o.n_chunks, 1));
    cut_far(w, reset);
    finish(request, &o);
    must_fail(&o, EW_STATUS_UNAVAILABLE);
    assert_int_equal(o.origin, EW_ORIGIN_ACTION); /* for the caller it is the gateway's answer */
    ask_until(w->caller, "/flow/echo", EW_STATUS_OK);
    if (w->origin)
        seen_becomes(w, "cancelled", cancelled + 1);
    assert_int_equal(seen_now(w, "opened"), opened + 1); /* a child that was killed begins anew */
    outcome_done(&o);
}

static void peer_lost(world *w) {
    lose_peer(w, true, false);
    lose_peer(w, false, true);
    if (!w->far->listen)
        return; /* who dials waits longer each time, a child is always killed */
    lose_peer(w, true, true);
    lose_peer(w, false, false);
}

/* The whole program. */
static void peer_freed(world *w) {
    static outcome outcomes[4];
    ew_request *requests[4];
    outcome o = {.status = EW_STATUS_OK};
    if (!w->origin)
        return; /* peer_lost has killed it */
    for (int i = 0; i < 4; i++)
        requests[i] = begin_forever(w, &outcomes[i], 0, i % 2);
    w->origin = ew_app_free(w->origin);
    for (int i = 0; i < 4; i++) {
        finish(requests[i], &outcomes[i]);
        must_fail(&outcomes[i], EW_STATUS_UNAVAILABLE);
        outcome_done(&outcomes[i]);
    }
    assert_int_equal(atomic_load(&seen.opened), 4);
    ask(w, "/flow/echo", "{}", &o);
    if (o.status != EW_STATUS_UNAVAILABLE && o.status != EW_STATUS_NOT_FOUND)
        fail_msg("ended %s: %s", ew_status_name(o.status), o.text);
    outcome_done(&o);
}

/* ---- the gateway is gone ---- */

static void gateway_freed(world *w) {
    outcome o = {.status = EW_STATUS_OK}, second = {.status = EW_STATUS_OK};
    ew_request *request = begin_forever(w, &o, 0, false), *other = begin_forever(w, &second, 0, true);
    w->gateway = ew_app_free(w->gateway);
    finish(request, &o);
    finish(other, &second);
    must_fail(&o, EW_STATUS_UNAVAILABLE);
    must_fail(&second, EW_STATUS_UNAVAILABLE);
    if (w->origin) {
        seen_becomes(w, "cancelled", 2);
        seen_becomes(w, "running", 0);
    }
    outcome_done(&o);
    outcome_done(&second);
}

/* It drains: what runs may finish, new calls are refused. */
static void gateway_drains(world *w) {
    outcome o = {.status = EW_STATUS_OK}, second = {.status = EW_STATUS_OK};
    ew_request_options options = {.action = EW_STR("/flow/sleep"), .input = EW_STR("{\"ms\":300}")};
    ew_request *request = begin_on(w->caller, &options, &o);
    (void)usleep(100000); /* it should be there by now; if it is not, it is refused, which is right, too */
    ew_app_stop(w->gateway);
    finish(request, &o);
    if (o.status != EW_STATUS_UNAVAILABLE)
        must_be(&o, "{\"slept_ms\":300}");
    ask_on(w->caller, &(ew_request_options){.action = EW_STR("/flow/echo"), .input = EW_STR("{}"), .timeout_ms = 300},
           &second);
    assert_true(second.status == EW_STATUS_UNAVAILABLE || second.status == EW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(ew_app_wait(w->gateway), EW_OK);
    outcome_done(&o);
    outcome_done(&second);
}

/* ---- many ---- */

static void many(world *w) {
    enum { N = 200 };
    static outcome outcomes[N];
    ew_request *requests[N];
    bool chunks = both_carry(w->near, w->far, EW__CAN_CHUNKS);
    char text[N][64];
    for (int i = 0; i < N; i++) {
        ew_request_options options = {.action = ew_str_from(i % 4 == 3 ? "/flow/stream" : "/flow/echo"),
                                      .stream = i % 4 == 3};
        (void)snprintf(text[i], sizeof text[i], "{\"n\":20,\"i\":%d}", i);
        options.input = ew_str_from(text[i]);
        requests[i] = begin_on(w->caller, &options, &outcomes[i]);
    }
    for (int i = 0; i < N; i++) {
        finish(requests[i], &outcomes[i]);
        must_be(&outcomes[i], text[i]);
        assert_int_equal(atomic_load(&outcomes[i].n_chunks), i % 4 == 3 && chunks ? 20 : 0);
        outcome_done(&outcomes[i]);
    }
}

/* 200 that all run at the same time. */
static void many_running(world *w) {
    enum { N = 200 };
    static outcome outcomes[N];
    ew_request *requests[N];
    int opened = seen_now(w, "opened");
    for (int i = 0; i < N; i++)
        requests[i] = begin_on(
            w->caller, &(ew_request_options){.action = EW_STR("/flow/forever"), .input = EW_STR("{}")}, &outcomes[i]);
    seen_becomes(w, "opened", opened + N);
    seen_becomes(w, "running", N);
    for (int i = 0; i < N; i++)
        ew_request_cancel(requests[i]);
    for (int i = 0; i < N; i++) {
        finish(requests[i], &outcomes[i]);
        must_fail(&outcomes[i], EW_STATUS_CANCELLED);
        outcome_done(&outcomes[i]);
    }
    seen_becomes(w, "running", 0);
}

const scenario scenarios_hard[] = {
    {.name = "cancel", .run = cancel},
    {.name = "cancel_storm", .run = cancel_storm},
    {.name = "deadline", .run = deadline},
    {.name = "deadline_kept", .run = deadline_kept},
    {.name = "many", .run = many},
    {.name = "many_running", .run = many_running},
    {.name = "caller_lost", .run = caller_lost},
    {.name = "peer_lost", .run = peer_lost},
    {.name = "caller_freed", .run = caller_freed, .ends_world = true},
    {.name = "peer_freed", .run = peer_freed, .ends_world = true},
    {.name = "gateway_freed", .run = gateway_freed, .ends_world = true},
    {.name = "gateway_drains", .run = gateway_drains, .ends_world = true},
    {.name = NULL},
};
