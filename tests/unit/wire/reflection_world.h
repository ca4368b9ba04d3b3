/*
 * tests/unit/wire/reflection_world.h: one end of the reflection wire, and a test that is its peer, message by message.
 *
 * Texts are written with ' for ". $1 to $9 stand for strings that the wire makes (ids, trace ids), with their quotes: the
 * first time one is heard it is remembered, from then on it must be the same, and what is said with it says that one.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_REFLECTION_WORLD_H
#define EW_TESTS_REFLECTION_WORLD_H

#include "support/rig.h"
#include "support/ws_peer.h"
#include "wire/reflection/reflection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RPC "{'jsonrpc':'2.0',"
#define ID_ROOM 80

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
#define FAULT(id, code, status, message, details)                                                                      \
    RPC "'id':" id ",'error':{'code':" #code ",'message':'" message "','data':{'code':" #status ",'message':'" message \
        "','details':{" details "}}}}\n"
/* What the manager under test says. */
#define ASK(id, key, more) RPC "'method':'runAction','params':{'key':'" key "'" more "},'id':" id "}\n"

typedef struct world {
    rig r;
    rig_pair *pair;
    int raw; /* the test's side */
    char ids[10][ID_ROOM];
} world;

static inline void world_init(world *w, int raw, const rig_options *options) {
    rig_options all = *options;
    memset(w, 0, sizeof *w);
    w->raw = raw;
    all.seed = all.seed ? all.seed : 1;
    rig_init(&w->r, &ew__wire_reflection, &all);
    w->pair = rig_connect_raw(&w->r, raw);
}

static inline ew__rf_peer *world_peer(const world *w) { return (ew__rf_peer *)(void *)w->pair->end[1 - w->raw].peer; }
static inline void world_done(world *w) { rig_finish(&w->r); }
/* Whether the wire has closed, or said that it will say no more. */
static inline bool world_over(const world *w) { return w->pair->end[w->raw].saw_eof; }
static inline uint64_t world_dropped(world *w) { return rig_dropped(&w->r, 1 - w->raw); }

/* ---- saying ---- */

static inline char *world_expand(const world *w, const char *text) {
    size_t n = 0;
    char *out = malloc(strlen(text) + 32 * ID_ROOM);
    assert_non_null(out);
    for (; *text; text++) {
        if (*text == '$' && text[1] >= '1' && text[1] <= '9') {
            const char *id = w->ids[*++text - '0'];
            memcpy(out + n, id, strlen(id));
            n += strlen(id);
        } else {
            out[n++] = *text == '\'' ? '"' : *text;
        }
    }
    out[n] = '\0';
    return out;
}

static inline void say_bytes(world *w, const void *bytes, size_t n) {
    rig_say(w->pair, bytes, n);
    rig_run(&w->r);
}

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

static inline size_t world_match_id(char kept[ID_ROOM], const char *got, size_t n) {
    const char *end = n > 1 && got[0] == '"' ? memchr(got + 1, '"', n - 1) : NULL;
    size_t len = end ? (size_t)(end + 1 - got) : 0;
    if (len == 0 || len >= ID_ROOM || (kept[0] && (strlen(kept) != len || memcmp(kept, got, len) != 0)))
        return 0;
    memcpy(kept, got, len);
    return len;
}

static inline bool world_matches(world *w, const char *pattern, const char *got, size_t n) {
    for (; *pattern; pattern++) {
        size_t used = 1;
        if (*pattern == '$' && pattern[1] >= '1' && pattern[1] <= '9')
            used = world_match_id(w->ids[*++pattern - '0'], got, n);
        else if (n == 0 || *got != (*pattern == '\'' ? '"' : *pattern))
            used = 0;
        if (used == 0)
            return false;
        got += used;
        n -= used;
    }
    return n == 0;
}

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
    if (!world_matches(w, pattern, lines, n))
        fail_msg("line %d: expected\n%s\ngot\n%.*s", line, pattern, (int)n, lines);
    free(lines);
}

/* All that came since is exactly these lines (each with its newline), as ws_peer_lines writes them. */
#define hear(w, lines) hear_at((w), lines, __LINE__)
#define hear_nothing(w) hear_at((w), "", __LINE__)

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

static inline rig_call *call_plain(world *w, const char *key, const char *input) {
    rig_call *rc = rig_open(w->pair, &(rig_request){.key = key, .input = ew_str_from(input)});
    rig_run(&w->r);
    return rc;
}

static inline rig_call *call_stream(world *w, const char *key) {
    rig_call *rc = rig_open(w->pair, &(rig_request){.key = key, .stream = true});
    rig_run(&w->r);
    return rc;
}

static inline void check_done_at(const rig_call *rc, const char *result, int line) {
    if (rc->ended != 1 || rc->status != EW_STATUS_OK || strcmp(rc->result, result) != 0)
        fail_msg("line %d: %s: %s", line, rc->ended ? ew_status_name(rc->status) : "has not ended",
                 rc->result ? rc->result : rc->message);
    assert_int_equal(rc->origin, EW_ORIGIN_ACTION);
}

static inline void check_failed_at(const rig_call *rc, ew_status status, ew_origin origin, const char *message,
                                   int line) {
    if (rc->ended != 1 || rc->status != status || rc->origin != origin || !rc->message ||
        strcmp(rc->message, message) != 0)
        fail_msg("line %d: %s (origin %d): %s", line, rc->ended ? ew_status_name(rc->status) : "has not ended",
                 (int)rc->origin, rc->message ? rc->message : rc->result);
}
#define check_done(rc, result) check_done_at((rc), (result), __LINE__)
#define check_failed(rc, status, origin, message) check_failed_at((rc), (status), (origin), (message), __LINE__)
#define check_runs(rc) assert_int_equal((rc)->ended, 0)

#endif
