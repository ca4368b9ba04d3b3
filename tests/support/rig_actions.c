/*
 * tests/support/rig_actions.c: the actions of the rig's server. Each handles every error that it can meet, so that
 * one that never ends is not their fault.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/json_or.h"
#include "support/rig.h"

#include <stdio.h>
#include <stdlib.h>

static void opened(ew_call *call) {
    rig_of(call)->n_opened++;
    rig_of(call)->seen_deadline_ms = ew_call_deadline_ms(call);
    rig_of(call)->seen_hops = call->hops;
}

static void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    rig_of(call)->n_cancelled++;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "stopped");
}

static void fail_no_memory(ew_call *call) {
    (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, "the action has no memory");
}

/* ---- without a stream ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    (void)ew_call_done(call, ew_call_input(call));
}

static void fail_with(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    ew_str input = ew_call_input(call);
    char text[200];
    size_t n = 0;
    bool told = ew_json_string(ew_json_get(input, "/message"), text, sizeof text, &n) == EW_OK;
    ew_fault fault = {.status = EW_STATUS_UNKNOWN,
                      .message = told ? ew__str(text, n) : EW_STR("it failed"),
                      .details = ew_json_get(input, "/details"),
                      .retry_after_ms = (uint64_t)json_int_or(input, "/retry_after_ms", 0)};
    (void)ew_status_from_name(json_str_or(input, "/status", EW_STR("UNKNOWN")), &fault.status);
    fault.retryable = fault.retry_after_ms > 0;
    (void)ew_call_fail_with(call, &fault);
}

static void never(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    (void)ew_call_on_cancel(call, on_cancel, NULL);
}

static void end_sleep(ew_call *call, void *arg) {
    (void)arg;
    ew_str out = ew_json_get(ew_call_input(call), "/out");
    (void)ew_call_done(call, out.len ? out : EW_STR("\"slept\""));
}

static void sleep_a_while(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    (void)ew_call_on_cancel(call, on_cancel, NULL);
    if (ew_call_after(call, (uint64_t)json_int_or(ew_call_input(call), "/ms", 10), end_sleep, NULL) != EW_OK)
        fail_no_memory(call);
}

static void stubborn(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    if (ew_call_after(call, (uint64_t)json_int_or(ew_call_input(call), "/ms", 10), end_sleep, NULL) != EW_OK)
        fail_no_memory(call);
}

static void hold(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    (void)ew_call_on_cancel(call, on_cancel, NULL);
    if (!rig_of(call)->held)
        rig_of(call)->held = ew_call_ref(call);
    else
        (void)ew_call_fail(call, EW_STATUS_ALREADY_EXISTS, "one is held already");
}

/* Asks from another thread, as a worker would. */
static void ask_elsewhere(ew_call *call, void *arg) {
    rig_side *side = ew__container_of(call->executor, rig_side, executor);
    (void)arg;
    opened(call);
    side->elsewhere = true;
    ew_err err = json_bool_or(ew_call_input(call), "/room", false) ? ew_call_on_room(call, end_sleep, NULL)
                                                                   : ew_call_after(call, 10, end_sleep, NULL);
    if (err != EW_OK)
        fail_no_memory(call);
    side->elsewhere = false;
}

static void twice(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    ew_call_ref(call);
    (void)ew_call_done(call, EW_STR("1"));
    (void)ew_call_done(call, EW_STR("2"));
    (void)ew_call_chunk(call, EW_STR("3"));
    (void)ew_call_fail(call, EW_STATUS_ABORTED, "again");
    ew_call_unref(call);
}

static void invalid(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    (void)ew_call_done(call, EW_STR("{\"a\":"));
}

static void about(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    (void)ew_call_donef(call, "{\"context\":%j,\"labels\":%j,\"trace\":%q,\"wire\":%q,\"key\":%q}",
                        ew_call_context(call), ew_call_labels(call), ew_call_trace_id(call), ew_call_wire(call),
                        ew_call_key(call));
}

/* ---- chunks ---- */

struct producer {
    int64_t n, i, every_ms;
    size_t size;
    char *text;
    bool wait; /* for room */
};

static void produce(ew_call *call, void *arg);

/* True: go on at once. */
static bool after_chunk(ew_call *call, struct producer *p, ew_err err) {
    p->i++;
    if (err == EW_FULL && p->wait) {
        rig_of(call)->n_waits++;
        if (ew_call_on_room(call, produce, p) != EW_OK)
            fail_no_memory(call);
        return false;
    }
    if (err < 0) {
        (void)ew_call_fail(call, EW_STATUS_ABORTED, "the chunk was not taken");
        return false;
    }
    if (p->every_ms == 0)
        return true;
    if (ew_call_after(call, (uint64_t)p->every_ms, produce, p) != EW_OK)
        fail_no_memory(call);
    return false;
}

static void produce(ew_call *call, void *arg) {
    struct producer *p = arg;
    bool more = true;
    ew_call_ref(call); /* a chunk that is lost cancels the call, and cancelling ends it */
    while (more && p->i < p->n) {
        int n = snprintf(p->text, p->size + 64, "{\"i\":%lld,\"pad\":\"%*s\"}", (long long)p->i, (int)p->size, "");
        more = after_chunk(call, p, ew_call_chunk(call, ew__str(p->text, (size_t)n)));
    }
    if (more)
        (void)ew_call_donef(call, "{\"n\":%lld}", (long long)p->n);
    ew_call_unref(call);
}

static void start_producer(ew_call *call, int64_t n, bool wait) {
    ew_str input = ew_call_input(call);
    struct producer *p = ew_call_alloc(call, sizeof *p);
    size_t size = (size_t)json_int_or(input, "/size", 0);
    char *text = p ? ew_call_alloc(call, size + 64) : NULL;
    opened(call);
    if (!text) {
        fail_no_memory(call);
        return;
    }
    *p = (struct producer){
        .n = n, .every_ms = json_int_or(input, "/every_ms", 0), .size = size, .text = text, .wait = wait};
    (void)ew_call_on_cancel(call, on_cancel, NULL);
    produce(call, p);
}

static void chunks(ew_call *call, void *arg) {
    (void)arg;
    start_producer(call, json_int_or(ew_call_input(call), "/n", 3), true);
}

static void flood(ew_call *call, void *arg) {
    (void)arg;
    start_producer(call, 1000000, false);
}

static void say(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    ew_call_ref(call);
    ew_json_iter it = {0};
    while (ew_json_next(ew_call_input(call), &it))
        (void)ew_call_chunk(call, it.value);
    (void)ew_call_done(call, ew_call_input(call));
    ew_call_unref(call);
}

/* ---- input ---- */

struct counter {
    int64_t sum, n;
    bool relay;
};

static void on_input(ew_call *call, ew_str chunk, bool end, void *arg) {
    struct counter *counter = arg;
    if (end) {
        (void)ew_call_donef(call, "{\"sum\":%lld,\"n\":%lld}", (long long)counter->sum, (long long)counter->n);
        return;
    }
    counter->n++;
    counter->sum += json_int_or(chunk, "", 0);
    if (counter->relay)
        (void)ew_call_chunk(call, chunk);
}

static void look_at_input(ew_call *call, void *arg) {
    if (ew_call_on_input(call, on_input, arg) != EW_OK)
        (void)ew_call_fail(call, EW_STATUS_FAILED_PRECONDITION, "there is no input stream");
}

static struct counter *new_counter(ew_call *call, bool relay) {
    struct counter *counter = ew_call_alloc(call, sizeof *counter);
    opened(call);
    if (!counter) {
        fail_no_memory(call);
        return NULL;
    }
    *counter = (struct counter){.relay = relay};
    (void)ew_call_on_cancel(call, on_cancel, NULL);
    return counter;
}

static void sum(ew_call *call, void *arg) {
    (void)arg;
    struct counter *counter = new_counter(call, false);
    if (counter)
        look_at_input(call, counter);
}

static void relay(ew_call *call, void *arg) {
    (void)arg;
    struct counter *counter = new_counter(call, true);
    if (counter)
        look_at_input(call, counter);
}

static void lazy(ew_call *call, void *arg) {
    (void)arg;
    struct counter *counter = new_counter(call, false);
    if (counter && ew_call_after(call, (uint64_t)json_int_or(ew_call_input(call), "/after_ms", 10), look_at_input,
                                 counter) != EW_OK)
        fail_no_memory(call);
}

/* ---- payloads that nothing has checked, as another program would send them: {"as","depth","bytes"} ---- */

static void unchecked(ew_call *call, void *arg) {
    (void)arg;
    opened(call);
    ew_str input = ew_call_input(call), as = json_str_or(input, "/as", EW_STR("result"));
    size_t depth = (size_t)json_int_or(input, "/depth", 0), bytes = (size_t)json_int_or(input, "/bytes", 0);
    size_t n = depth ? 2 * depth + 1 : bytes;
    char *text = ew_call_alloc(call, n);
    if (!text) {
        fail_no_memory(call);
        return;
    }
    memset(text, depth ? '[' : 'x', n);
    if (depth) {
        text[depth] = '1';
        memset(text + depth + 1, ']', depth);
    } else {
        text[0] = text[n - 1] = '"';
    }
    ew_str value = ew__str(text, n);
    ew_fault fault = {.status = EW_STATUS_ABORTED, .message = EW_STR("aborted"), .details = value};
    if (ew__str_is(as, EW_STR("details"))) {
        ew__call_fault(call, &fault);
        return;
    }
    bool chunk = ew__str_is(as, EW_STR("chunk"));
    if (chunk)
        (void)ew__call_chunk_valid(call, value);
    (void)ew__call_done_valid(call, chunk ? EW_STR("1") : value);
}

/* ---- the list ---- */

static const struct {
    const char *key;
    ew_handler_fn fn;
} table[] = {
    {"/test/echo", echo},         {"/test/chunks", chunks},
    {"/test/flood", flood},       {"/test/say", say},
    {"/test/sum", sum},           {"/test/relay", relay},
    {"/test/lazy", lazy},         {"/test/sleep", sleep_a_while},
    {"/test/fail", fail_with},    {"/test/never", never},
    {"/test/stubborn", stubborn}, {"/test/twice", twice},
    {"/test/invalid", invalid},   {"/test/unchecked", unchecked},
    {"/test/about", about},       {"/one/same", echo},
    {"/two/same", echo},          {"/test/deep/er", echo},
    {"/test/hold", hold},         {"/test/elsewhere", ask_elsewhere},
};

static ew__registry registry;
static ew__actions *actions;

static void forget_actions(void) {
    ew__actions_unref(actions);
    ew__registry_done(&registry);
}

ew__actions *rig_actions(void) {
    if (actions)
        return actions;
    ew_err err = ew__registry_init(&registry, ew_env_default());
    for (size_t i = 0; i < sizeof table / sizeof *table && err == EW_OK; i++)
        err = ew__registry_add(&registry, table[i].key, &ew__local_callee, NULL, table[i].fn, NULL, NULL);
    if (err != EW_OK)
        abort();
    actions = ew__registry_get(&registry);
    (void)atexit(forget_actions);
    return actions;
}
