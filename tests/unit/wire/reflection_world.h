/*
 * tests/unit/wire/reflection_world.h: one end of the reflection wire, and a test that is its peer, message by message.
 *
 * Texts: support/wire_peer.h; $1 to $9 are ids and trace ids.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_REFLECTION_WORLD_H
#define EW_TESTS_REFLECTION_WORLD_H

#include "support/wire_world.h"
#include "support/ws_peer.h"
#include "wire/reflection/reflection.h"

/* What the wire says, and what is said to it, most of the time. */
#define REGISTER                                                                                                       \
    RPC "'id':$9,'method':'register','params':{'id':'rig','pid':1,'name':'rig','genkitVersion':'everywire/0',"         \
        "'reflectionApiSpecVersion':1,'envs':['dev']}}\n"
#define RUN(id, key, more) RPC "'method':'runAction','params':{'key':'" key "'" more "},'id':" id "}"
#define STATE(id, trace) RPC "'method':'runActionState','params':{'requestId':" id ",'state':{'traceId':" trace "}}}\n"
#define CHUNK(id, chunk) RPC "'method':'streamChunk','params':{'requestId':" id ",'chunk':" chunk "}}\n"
#define INPUT(id, chunk) RPC "'method':'sendInputStreamChunk','params':{'requestId':" id ",'chunk':" chunk "}}\n"
#define INPUT_END(id) RPC "'method':'endInputStream','params':{'requestId':" id "}}\n"
#define RESULT(id, result, trace) RPC "'result':{'result':" result ",'telemetry':{'traceId':" trace "}},'id':" id "}\n"
#define RUN_FAULT(id, code, status, message, details)                                                                  \
    RPC "'id':" id ",'error':{'code':" #code ",'message':'" message "','data':{'code':" #status ",'message':'" message \
        "','details':{" details "}}}}\n"
/* What the manager under test says. */
#define ASK(id, key, more) RPC "'method':'runAction','params':{'key':'" key "'" more "},'id':" id "}\n"

static inline void world_init(world *w, int raw, const rig_options *options) {
    world_start(w, &ew__wire_reflection, raw, options);
}

static inline ew__rf_peer *world_peer(const world *w) { return (ew__rf_peer *)(void *)world_wire(w); }

/* ---- saying ---- */

/* A frame of any kind, masked if the test is the runtime; it is not delivered yet. */
static inline void put_frame(world *w, int first, const void *payload, size_t n) {
    uint8_t *frame = malloc(n + WS_PEER_HEAD);
    assert_non_null(frame);
    rig_say(w->pair, frame, ws_peer_frame(frame, first, w->raw == RIG_SERVER, payload, n));
    free(frame);
}

/* A message that goes in one segment with those after it, up to the next that is said. */
static inline void put(world *w, const char *message) {
    char *bytes = world_expand(w, message);
    put_frame(w, WS_FIN | WS_TEXT, bytes, strlen(bytes));
    free(bytes);
}

static inline void say_frame(world *w, int first, const char *payload) {
    put_frame(w, first, payload, strlen(payload));
    rig_run(&w->r);
}

static inline void say(world *w, const char *message) {
    put(w, message);
    rig_run(&w->r);
}

/* A message of exactly n bytes: with space behind it. */
static inline void say_padded(world *w, const char *message, size_t n) {
    char *bytes = world_expand(w, message), *padded = malloc(n);
    size_t len = strlen(bytes);
    assert_true(padded && len <= n);
    memset(padded, ' ', n);
    memcpy(padded, bytes, len);
    put_frame(w, WS_FIN | WS_TEXT, padded, n);
    free(padded);
    free(bytes);
    rig_run(&w->r);
}

/* ---- hearing ---- */

/* All that came since, as lines; for free(). */
static inline char *heard(world *w, size_t *ret_len) {
    const rig_end *end = &w->pair->end[w->raw];
    rig_run(&w->r);
    char *lines = ws_peer_lines(end->got, end->got_len, w->raw == RIG_CLIENT, ret_len);
    if (end->got_len)
        rig_forget(w->pair, end->got_len);
    return lines;
}

static inline void hear_at(world *w, const char *pattern, int line) {
    size_t n = 0;
    char *lines = heard(w, &n);
    peer_check_text(w->ids, pattern, lines, n, line);
    free(lines);
}

/* All that came since is exactly these lines (each with its newline), as ws_peer_lines writes them. */
#define hear(w, lines) hear_at((w), lines, __LINE__)

/* Some text is in what came. */
#define hear_part(w, part) hear_part_at((w), (part), __LINE__)
static inline void hear_part_at(world *w, const char *part, int line) {
    size_t n = 0;
    char *lines = heard(w, &n), *text = world_expand(w, part);
    if (!strstr(lines, text))
        fail_msg("line %d: %s is not in\n%.*s", line, text, (int)n, lines);
    free(text);
    free(lines);
}

/* What a server would answer to the key of the request that came; false: none did. */
static inline bool world_accept(const world *w, char accept[EW__WS_ACCEPT_TEXT + 1]) {
    const char *got = w->pair->end[w->raw].got, *key = got ? strstr(got, "Sec-WebSocket-Key: ") : NULL;
    if (!key)
        return false;
    const ew__http_field fields[] = {{EW_STR("Upgrade"), EW_STR("websocket")},
                                     {EW_STR("Connection"), EW_STR("Upgrade")},
                                     {EW_STR("Sec-WebSocket-Version"), EW_STR("13")},
                                     {EW_STR("Sec-WebSocket-Key"), ew__str(key + 19, EW__WS_KEY_TEXT)}};
    const ew__http_head head = {.method = EW__HTTP_GET, .minor = 1, .n_fields = 4, .fields = fields};
    ew__ws_verdict verdict;
    ew__ws_accept(&head, &verdict);
    assert_int_equal(verdict.status, 101);
    memcpy(accept, verdict.accept, EW__WS_ACCEPT_TEXT);
    accept[EW__WS_ACCEPT_TEXT] = '\0';
    return true;
}

/* ---- the wire is the runtime (with the actions of the rig), the test its manager ---- */

static inline void world_runtime_with(world *w, const rig_options *options) {
    world_init(w, RIG_CLIENT, options);
    hear(w, REGISTER);
    say(w, RPC "'id':$9,'result':{}}");
}
static inline void world_runtime(world *w) { world_runtime_with(w, &(rig_options){.seed = 1}); }

/* ---- the wire is the manager, the test a runtime made with `version` ---- */

static inline void world_manager_with(world *w, const char *version, const rig_options *options) {
    char text[200];
    world_init(w, RIG_SERVER, options);
    (void)snprintf(text, sizeof text,
                   RPC "'id':'1','method':'register','params':{'id':'r','pid':1,'genkitVersion':'%s'}}", version);
    say(w, text);
    hear(w, RPC "'id':'1','result':null}\n");
}
static inline void world_manager(world *w) { world_manager_with(w, "nodejs/1.42.0", &(rig_options){.seed = 1}); }

#endif
