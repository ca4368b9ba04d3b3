/*
 * tests/contract/test_two_callers.c: two clients of one server, "victim" and "attacker", on connections
 * of their own; without access control, and with one token each. The attacker must not see, cancel,
 * answer or starve calls of the victim.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/hostile.h"
#include "wire/reflection/reflection.h"

#include <stdio.h>
#include <stdlib.h>

#define VICTIM "ewt_victim"
#define ATTACKER "ewt_attacker"
#define LIMITED "ewt_limited" /* may call /test/echo only */

/* ---- access control ---- */

static ew__clients clients;
static ew__access access_control;
static ew__gate gate;

static void write_token(ew__buf *out, const char *text, const ew_str *actions, size_t n) {
    ew__token token = {
        .name = ew_str_from(text), .created_ms = 1, .expires_ms = INT64_MAX, .actions = actions, .n_actions = n};
    ew__sha256_of(text, strlen(text), token.digest);
    ew__token_write(out, &token);
}

static int init_access(void) {
    const ew_str echo = EW_STR("/test/echo");
    const ew_env *env = ew_env_default();
    ew__tokens *tokens = NULL;
    unsigned line;
    const char *problem;
    ew__buf text;
    ew__buf_init(&text, env, 10000);
    write_token(&text, VICTIM, NULL, 0);
    write_token(&text, ATTACKER, NULL, 0);
    write_token(&text, LIMITED, &echo, 1);
    ew_err err = ew__tokens_parse(env, ew__buf_view(&text), &tokens, &line, &problem);
    ew__buf_done(&text);
    if (err != EW_OK)
        return -1;
    ew__clients_init(&clients, env);
    ew__access_init(&access_control, env, &clients);
    access_control.required = true;
    ew__access_set(&access_control, tokens);
    ew__gate_init(&gate, &access_control);
    return 0;
}

static void finish_access(void) {
    ew__gate_done(&gate);
    ew__access_done(&access_control);
    ew__clients_done(&clients);
}

/* ---- clients ---- */

typedef struct client {
    rig_pair *pair;
    const char *token; /* NULL: none */
} client;

static hostile_values values_of(const client *c, const char *key, const char *id, const char *value) {
    return (hostile_values){.id = id, .job = "\"job\"", .key = key, .value = value, .token = c->token};
}

static void say(hostile *h, const client *c, const char *template, const char *key, const char *id, const char *value) {
    hostile_values values = values_of(c, key, id, value);
    hostile_say(h, c->pair, template, &values);
}

static void request(hostile *h, const client *c, const char *key, const char *id, const char *value) {
    say(h, c, h->wire->request, key, id, value);
}

/* Wires without a place for a token take it as their first message. */
static void present_token(hostile *h, const client *c) {
    char params[60];
    if (!h->r.side[RIG_SERVER].executor.calls->gate || !c->token || h->wire->framing == HOSTILE_HTTP)
        return;
    (void)snprintf(params, sizeof params, "{'token':'%s'}", c->token);
    request(h, c, "everywire.auth", "\"auth\"", params);
    assert_int_equal(hostile_count(h, c->pair, "auth"), 1);
}

static client connect_as(hostile *h, const char *token) {
    client c = {.pair = hostile_connect(h), .token = token};
    if (h->wire->framing == HOSTILE_WEBSOCKET) /* a runtime has dialled its manager and trusts it */
        c.pair->end[RIG_SERVER].conn.who = ew__who_owner;
    else
        present_token(h, &c);
    return c;
}

static void require_tokens(hostile *h) { h->r.side[RIG_SERVER].executor.calls->gate = &gate; }

typedef struct scene {
    client victim, attacker;
} scene;

static scene begin(hostile *h) { return (scene){.victim = connect_as(h, VICTIM), .attacker = connect_as(h, ATTACKER)}; }

#define SLEEP "{'ms':1000,'out':{'secret':1}}"
#define SECRET "{\"secret\":1}"

/* The victim's call of /test/sleep ends undisturbed, once. The attacker sees nothing of it. */
static void check_victim(hostile *h, const scene *s) {
    rig_advance(&h->r, 2000);
    const rig_end *attacker = hostile_end(h, s->attacker.pair);
    assert_true(!attacker->got_len || !strstr(attacker->got, "secret"));
    assert_int_equal(hostile_count(h, s->attacker.pair, "secret"), 0);
    assert_int_equal(hostile_count(h, s->victim.pair, SECRET), 1);
    assert_int_equal(h->r.n_cancelled, 0);
}

/* ---- see ---- */

/* Both use one id at one time; each receives its own answer. */
static void same_id(hostile *h) {
    scene s = begin(h);
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    request(h, &s.attacker, "/test/sleep", "\"x\"", "{'ms':1000,'out':{'mine':1}}");
    rig_advance(&h->r, 999);
    assert_int_equal(hostile_end(h, s.victim.pair)->got_len && hostile_count(h, s.victim.pair, "mine"), 0);
    rig_advance(&h->r, 1);
    assert_int_equal(hostile_count(h, s.attacker.pair, "{\"mine\":1}"), 1);
    check_victim(h, &s);
}

/* ---- cancel ---- */

/* RRQ without access control: any connection may cancel any job, as the protocol has it. */
static void cancel_of_other(hostile *h) {
    scene s = begin(h);
    if (h->wire->job_at && !h->r.side[RIG_SERVER].executor.calls->gate)
        return;
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    for (int i = 0; i < 3; i++)
        say(h, &s.attacker, h->wire->cancel, NULL, "\"x\"", NULL);
    check_victim(h, &s);
}

/* Reflection cancels by trace id as well. */
static void cancel_by_trace(hostile *h) {
    scene s = begin(h);
    if (h->wire->framing != HOSTILE_WEBSOCKET)
        return;
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    char *state = hostile_take(h, s.victim.pair);
    assert_non_null(state);
    ew_str trace = ew_json_get(ew_str_from(state), "/params/state/traceId");
    char *text = calloc(1, trace.len + 1);
    assert_true(text && trace.len > 2);
    memcpy(text, trace.ptr, trace.len);
    say(h, &s.attacker, "{'jsonrpc':'2.0','id':'c','method':'cancelAction','params':{'traceId':$V}}", NULL, "\"c\"",
        text);
    free(text);
    free(state);
    check_victim(h, &s);
}

/* The attacker reuses the victim's id and disconnects: only its own call is cancelled. */
static void leaves_with_same_id(hostile *h) {
    scene s = begin(h);
    client other = connect_as(h, ATTACKER);
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    request(h, &other, "/test/never", "\"x\"", "{}");
    assert_int_equal(h->r.side[RIG_SERVER].executor.calls->live, 2);
    rig_cut(other.pair, RIG_CLIENT, RIG_RESET);
    rig_run(&h->r);
    assert_int_equal(h->r.n_cancelled, 1);
    h->r.n_cancelled = 0;
    check_victim(h, &s);
}

/* ---- answer ---- */

static void answer_of_other(hostile *h) {
    scene s = begin(h);
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    if (h->wire->id_at)
        say(h, &s.attacker, h->wire->result, "/", "\"x\"", "666");
    if (h->wire->chunk)
        say(h, &s.attacker, h->wire->chunk, NULL, "\"x\"", "666");
    if (h->wire->error)
        say(h, &s.attacker, h->wire->error, "/", "\"x\"", "666");
    check_victim(h, &s);
}

static void input_of_other(hostile *h) {
    scene s = begin(h);
    say(h, &s.victim, h->wire->input_stream, "/test/sum", "\"x\"", "null");
    say(h, &s.attacker, h->wire->input, NULL, "\"x\"", "100");
    say(h, &s.attacker, h->wire->input_end, NULL, "\"x\"", NULL);
    say(h, &s.victim, h->wire->input, NULL, "\"x\"", "1");
    say(h, &s.victim, h->wire->input_end, NULL, "\"x\"", NULL);
    assert_int_equal(hostile_count(h, s.victim.pair, "{\"sum\":1,\"n\":1}"), 1);
}

/* The server calls the victim back; the attacker sends the answer. */
static void answer_of_call_to_other(hostile *h) {
    scene s = begin(h);
    request(h, &s.victim, "/test/echo", "\"x\"", "{}");
    (void)hostile_count(h, s.victim.pair, "");
    rig_call *rc = rig_open_from(s.victim.pair, RIG_SERVER, &(rig_request){.key = "/client/ask"});
    rig_run(&h->r);
    char *text = hostile_take(h, s.victim.pair), id[80] = "";
    assert_non_null(text);
    ew_str found = ew_json_get(ew_str_from(text), "/id");
    (void)snprintf(id, sizeof id, "%.*s", (int)found.len, found.ptr);
    free(text);
    say(h, &s.attacker, h->wire->result, NULL, id, "666");
    say(h, &s.attacker, h->wire->error, NULL, id, "1");
    assert_int_equal(rc->ended, 0);
    say(h, &s.victim, h->wire->result, NULL, id, "1");
    hostile_check_done(rc, "1");
}

/* ---- answer a call back over HTTP, where the answer is a request of its own ---- */

typedef struct back {
    ew_call *origin;
    unsigned ended;
    char id[80];
} back;

static ew_err back_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void back_end(ew_call *call, const ew__end *end) {
    (void)end;
    ((back *)call->caller_ud)->ended++;
    ew__call_release(call);
}

static const ew__caller_ops back_caller = {.chunk = back_chunk, .end = back_end};

static void back_open(ew_call *call) {
    ew_call *origin = ((back *)call->callee_ud)->origin;
    if (origin->caller->call_back(origin, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("not taken"));
}

static const ew__callee_ops back_opening = {.open = back_open};

/* The client's call of /test/hold calls back; the id is read from the stream of its response. */
static void call_back(hostile *h, const client *c, back *b) {
    request(h, c, "/test/hold", "\"x\"", "{}");
    *b = (back){.origin = h->r.held};
    assert_non_null(b->origin);
    h->r.held = NULL;
    ew_call *call = ew__call_new(b->origin->executor, &back_caller, b);
    assert_non_null(call);
    call->key = EW_STR("runs/submit");
    call->input = EW_STR("{}");
    ew__call_open_on(call, &back_opening, b);
    rig_run(&h->r);
    const char *got = hostile_end(h, c->pair)->got, *event = got ? strstr(got, "data: ") : NULL;
    assert_non_null(event);
    const char *id = strstr(event, "\"id\":\"");
    assert_non_null(id);
    const char *end = strchr(id + 6, '"');
    assert_true(end && (size_t)(end - id) < sizeof b->id);
    memcpy(b->id, id + 5, (size_t)(end + 1 - (id + 5)));
}

static void end_back(hostile *h, back *b) {
    assert_int_equal(ew_call_done(b->origin, EW_STR("1")), EW_OK);
    ew_call_unref(b->origin);
    rig_run(&h->r);
    assert_int_equal(b->ended, 1);
}

static void reply_of_other(hostile *h) {
    scene s = begin(h);
    back victim;
    call_back(h, &s.victim, &victim);
    say(h, &s.attacker, "{'jsonrpc':'2.0','id':$I,'result':{'forged':1}}", "/", victim.id, NULL);
    assert_int_equal(victim.ended, 0);
    end_back(h, &victim);
}

/* The attacker knows an id of its own and tries all others that differ in the last two characters. */
static void guessed_reply(hostile *h) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    scene s = begin(h);
    back mine, victim;
    call_back(h, &s.attacker, &mine);
    call_back(h, &s.victim, &victim);
    char guess[80];
    memcpy(guess, mine.id, sizeof guess);
    size_t n = strlen(guess);
    client other = connect_as(h, ATTACKER);
    for (size_t i = 0; i < 37 * 36 && !victim.ended; i++) {
        guess[n - 3] = i < 36 ? mine.id[n - 3] : digits[i / 36 - 1];
        guess[n - 2] = digits[i % 36];
        if (strcmp(guess, mine.id) == 0)
            continue;
        say(h, &other, "{'jsonrpc':'2.0','id':$I,'result':{'forged':1}}", "/", guess, NULL);
        (void)hostile_count(h, other.pair, "");
    }
    assert_int_equal(victim.ended, 0);
    end_back(h, &mine);
    end_back(h, &victim);
}

/* ---- starve ---- */

/* The attacker fills its connections, reads nothing, and leaves. */
static void starves_other(hostile *h) {
    enum { CONNECTIONS = 20, CALL_BYTES = 6 * 1024 /* a call, its entry, a pooled piece and its timers */ };
    client attackers[CONNECTIONS];
    scene s = begin(h);
    char id[24];
    h->memory_max += CONNECTIONS * h->r.limits.calls_per_connection * CALL_BYTES;
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    for (int c = 0; c < CONNECTIONS; c++) {
        attackers[c] = connect_as(h, ATTACKER);
        rig_stall(attackers[c].pair, RIG_SERVER, true);
        for (int i = 0; i < 30; i++) {
            (void)snprintf(id, sizeof id, "\"%d\"", i);
            request(h, &attackers[c], "/test/never", id, "{}");
        }
    }
    assert_true(h->r.n_opened <= 1 + CONNECTIONS * h->r.limits.calls_per_connection);
    check_victim(h, &s);
    if (!hostile_over(h, s.victim.pair)) {
        request(h, &s.victim, "/test/echo", "\"y\"", "{'y':1}");
        assert_int_equal(hostile_count(h, s.victim.pair, "{\"y\":1}"), 1);
    }
    for (int c = 0; c < CONNECTIONS; c++)
        rig_cut(attackers[c].pair, RIG_CLIENT, RIG_RESET);
    rig_advance(&h->r, 2000);
    assert_int_equal(h->r.side[RIG_SERVER].executor.calls->live, 0);
}

/* ---- with less than the victim may do ---- */

/* No token, a wrong one, or one for another action: nothing runs, nothing is cancelled. */
static void without_permission(hostile *h) {
    static const char *const tokens[] = {NULL, "ewt_wrong", LIMITED};
    scene s = begin(h);
    request(h, &s.victim, "/test/sleep", "\"x\"", SLEEP);
    for (size_t t = 0; t < 3; t++) {
        client c = {.pair = hostile_connect(h), .token = tokens[t]};
        if (t == 2)
            present_token(h, &c);
        for (int i = 0; i < 300; i++) {
            request(h, &c, "/test/never", "\"x\"", "{}");
            if (h->wire->cancel)
                say(h, &c, h->wire->cancel, NULL, "\"x\"", NULL);
            assert_int_equal(hostile_count(h, c.pair, "secret"), 0);
        }
        assert_int_equal(h->r.n_opened, 1);
    }
    check_victim(h, &s);
}

/* A token counts for its request, not for the connection. */
static void token_per_request(hostile *h) {
    scene s = begin(h);
    request(h, &s.victim, "/test/echo", "\"x\"", "{'y':1}");
    assert_int_equal(hostile_count(h, s.victim.pair, "{\"y\":1}"), 1);
    s.victim.token = NULL;
    request(h, &s.victim, "/test/echo", "\"x\"", "{'y':2}");
    assert_int_equal(hostile_count(h, s.victim.pair, "HTTP/1.1 401 "), 1);
    assert_int_equal(h->r.n_opened, 1);
}

static unsigned n_upgrades;

static void on_become(ew__conn *conn, const ew__wire *wire, ew__role role, const uint8_t *rest, size_t n) {
    (void)wire;
    (void)role;
    (void)rest;
    (void)n;
    n_upgrades++;
    conn->ops->abort(conn);
}

/* A WebSocket without a token, at each of the paths. */
static void upgrade_at(hostile *h, const char *const *paths, size_t n_paths) {
    static ew__conn_ops ops;
    char text[300];
    h->r.side[RIG_SERVER].site.upgrade = &ew__wire_reflection;
    n_upgrades = 0;
    for (size_t i = 0; i < n_paths; i++) {
        rig_pair *pair = hostile_connect(h);
        ops = *pair->end[RIG_SERVER].conn.ops;
        ops.become = on_become;
        pair->end[RIG_SERVER].conn.ops = &ops;
        int n = snprintf(text, sizeof text,
                         "GET %s HTTP/1.1\r\nHost: 127.0.0.1:3400\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                         paths[i]);
        hostile_say_bytes(h, pair, text, (size_t)n);
        assert_int_equal(hostile_count(h, pair, "HTTP/1.1 101 "), 0);
        assert_int_equal(n_upgrades, 0);
    }
}

static void upgrade_without_token(hostile *h) {
    static const char *const paths[] = {"/", "/metrics", "/api/actions", "/test/echo", "/jobs", "/nope"};
    upgrade_at(h, paths, sizeof paths / sizeof *paths);
}

/* At the pages that are open to all. */
static void upgrade_at_open_page(hostile *h) {
    static const char *const paths[] = {"/healthz", "/readyz", "/health", "/healthz?x=1"};
    upgrade_at(h, paths, sizeof paths / sizeof *paths);
}

/* ---- the list ---- */

#define WITH_TOKENS(name)                                                                                              \
    static void name##_tokens(hostile *h) {                                                                            \
        require_tokens(h);                                                                                             \
        name(h);                                                                                                       \
    }
WITH_TOKENS(same_id)
WITH_TOKENS(cancel_of_other)
WITH_TOKENS(cancel_by_trace)
WITH_TOKENS(leaves_with_same_id)
WITH_TOKENS(answer_of_other)
WITH_TOKENS(input_of_other)
WITH_TOKENS(answer_of_call_to_other)
WITH_TOKENS(reply_of_other)
WITH_TOKENS(guessed_reply)
WITH_TOKENS(starves_other)
WITH_TOKENS(without_permission)
WITH_TOKENS(token_per_request)
WITH_TOKENS(upgrade_without_token)
WITH_TOKENS(upgrade_at_open_page)

#define SOCKET HOSTILE_NEEDS_SOCKET
#define BOTH(name, caps, needs)                                                                                        \
    {#name, name, caps, (needs) | SOCKET}, { #name "/tokens", name##_tokens, caps, (needs) | SOCKET }
#define TOKENS(name, caps, needs)                                                                                      \
    { #name "/tokens", name##_tokens, caps, (needs) | SOCKET | HOSTILE_NEEDS_TOKENS }
static const hostile_scenario scenarios[] = {
    BOTH(same_id, 0, HOSTILE_ANY),
    BOTH(cancel_of_other, EW__CAN_MANY, HOSTILE_NEEDS_IDS),
    BOTH(cancel_by_trace, EW__CAN_MANY | EW__CAN_INPUT, HOSTILE_NEEDS_HANDSHAKE),
    BOTH(leaves_with_same_id, 0, HOSTILE_ANY),
    BOTH(answer_of_other, 0, HOSTILE_ANY),
    BOTH(input_of_other, EW__CAN_INPUT, HOSTILE_NEEDS_IDS),
    BOTH(answer_of_call_to_other, EW__CAN_DUPLEX, HOSTILE_NEEDS_IDS),
    TOKENS(reply_of_other, 0, HOSTILE_NEEDS_HTTP | HOSTILE_NEEDS_HANDSHAKE),
    BOTH(guessed_reply, 0, HOSTILE_NEEDS_HTTP | HOSTILE_NEEDS_HANDSHAKE),
    BOTH(starves_other, 0, HOSTILE_ANY),
    TOKENS(without_permission, 0, HOSTILE_ANY),
    TOKENS(token_per_request, 0, HOSTILE_NEEDS_HTTP),
    TOKENS(upgrade_without_token, 0, HOSTILE_NEEDS_HTTP),
    TOKENS(upgrade_at_open_page, 0, HOSTILE_NEEDS_HTTP),
};

int main(int argc, char **argv) {
    if (init_access() != 0)
        return 1;
    int failed = hostile_main("two", scenarios, sizeof scenarios / sizeof *scenarios, RIG_CLIENT, argc, argv);
    finish_access();
    return failed;
}
