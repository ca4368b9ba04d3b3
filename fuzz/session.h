/*
 * fuzz/session.h: what the targets share that play a whole session of a wire: a world without chance and with a clock of
 * its own, actions of ours, and the way of a call to its peer.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_FUZZ_SESSION_H
#define EW_FUZZ_SESSION_H

#include "wire/wire.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t now_ns;

static inline void check(bool holds) {
    if (!holds)
        abort();
}

static inline uint64_t fuzz_now(void *ud) {
    (void)ud;
    return now_ns;
}

/* Ids and keys of ours are always the same, so that an input can name them. */
static inline void fuzz_random(void *ud, void *bytes, size_t n) {
    (void)ud;
    memset(bytes, 0, n);
}

static inline bool always_here(const ew__executor *executor) {
    (void)executor;
    return true;
}

static const ew__executor_ops executor_ops = {.here = always_here};

/* ---- actions ---- */

static inline void echo(ew_call *call, void *arg) {
    (void)arg;
    check(ew_json_check(ew_call_input(call), NULL) == EW_OK); /* what reaches a handler was validated */
    check(ew_call_context(call).len == 0 || ew_json_check(ew_call_context(call), NULL) == EW_OK);
    (void)ew_call_chunk(call, ew_call_input(call));
    (void)ew_call_done(call, ew_call_input(call));
}

static inline void on_input(ew_call *call, ew_str chunk, bool end, void *arg) {
    (void)arg;
    if (end || ew_json_typeof(chunk) == EW_JSON_BOOL) /* some end in the middle of their input */
        (void)ew_call_done(call, EW_STR("true"));
    else
        (void)ew_call_chunk(call, chunk);
}

static inline void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

/* Looks at its input after a while; without one it is done then. */
static inline void look(ew_call *call, void *arg) {
    if (ew_call_on_input(call, on_input, arg) != EW_OK)
        (void)ew_call_done(call, EW_STR("false"));
}

static inline void relay(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    look(call, arg);
}

static inline void later(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    check(ew_call_after(call, 500, look, arg) == EW_OK);
}

/* Fails with all that a fault can carry. */
static inline void fail_with_all(ew_call *call, void *arg) {
    ew_fault fault = {.status = EW_STATUS_UNAVAILABLE,
                      .message = EW_STR("not now"),
                      .details = ew_call_input(call),
                      .retryable = true,
                      .retry_after_ms = 1500};
    (void)arg;
    (void)ew_call_fail_with(call, &fault);
}

/* Sends a chunk, then a result, that are nested too deep for a payload. */
static inline void send_deep(ew_call *call, void *arg) {
    char text[2 * (EW_PAYLOAD_DEPTH + 1)];
    (void)arg;
    memset(text, '[', sizeof text / 2);
    memset(text + sizeof text / 2, ']', sizeof text / 2);
    (void)ew_call_chunk(call, ew__str(text, sizeof text));
    (void)ew_call_done(call, ew__str(text, sizeof text));
}

/* Sends chunks as one batch. */
static inline void send_chunks(ew_call *call, void *arg) {
    const ew_str chunks[] = {EW_STR("1"), EW_STR("\"two\""), EW_STR("[3]"), EW_STR("{\"four\":4}")};
    size_t n = sizeof chunks / sizeof chunks[0];
    (void)arg;
    if (ew__call_chunk_row(call, chunks, &n) >= 0)
        (void)ew_call_done(call, ew_call_input(call));
    else
        (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static inline void add_session_actions(ew__registry *registry, const ew_env *env) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } actions[] = {{"/f/echo", echo},         {"/f/relay", relay},    {"/f/later", later}, {"/f/fail", fail_with_all},
                   {"/f/batch", send_chunks}, {"/f/deep", send_deep}, {"/f/same", echo},   {"/g/same", echo}};
    ew_action_options options = {.description = "with metadata",
                                 .input_stream = true,
                                 .input_schema = "{\"type\":\"object\",\"properties\":{\"a\":{}}}",
                                 .metadata = "{\"a\":[1,\"x\",[]],\"b\":null,\"c\":{\"d\":true}}"};
    check(ew__registry_init(registry, env) == EW_OK);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        check(ew__registry_add(registry, actions[i].key, &ew__local_callee, NULL, actions[i].fn, NULL, NULL) == EW_OK);
    check(ew__registry_add(registry, "/f/typed", &ew__local_callee, NULL, echo, NULL, &options) == EW_OK);
}

/* ---- the callee's end of a call of ours, until its peer has it ---- */

static inline void on_open(ew_call *call) {
    ew__peer *peer = call->callee_ud;
    if (peer->wire->open(peer, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("busy"));
}

static const ew__callee_ops opening = {.open = on_open};

#endif
