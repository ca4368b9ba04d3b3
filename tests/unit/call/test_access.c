/*
 * tests/unit/call/test_access.c: tokens as text, what they allow, and the one point that asks for them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/call/world.h"

#include "json/json.h"

#define TOKEN(letter) "ewt_" letter letter letter letter letter letter letter letter

typedef struct scene {
    world w;
    ew__registry registry;
    ew__actions *actions;
    ew__clients clients;
    ew__access access;
    ew__gate gate;
    unsigned runs, accepted, ends;
    ew_status status;
    uint64_t retry_after_ms;
} scene;

static void handler(ew_call *call, void *arg) {
    ((scene *)arg)->runs++;
    (void)ew_call_done(call, EW_STR("1"));
}

static void write_token(ew__buf *out, const char *text, const char *name, const char *const *actions,
                        const char *const *wires, int64_t expires) {
    ew_str lists[2][4];
    size_t n[2] = {0, 0};
    for (; actions && actions[n[0]]; n[0]++) {
        lists[0][n[0]] = ew_str_from(actions[n[0]]);
    }
    for (; wires && wires[n[1]]; n[1]++) {
        lists[1][n[1]] = ew_str_from(wires[n[1]]);
    }
    ew__token token = {.name = ew_str_from(name),
                       .created_ms = 1,
                       .expires_ms = expires,
                       .actions = lists[0],
                       .n_actions = n[0],
                       .wires = lists[1],
                       .n_wires = n[1]};
    ew__sha256_of(text, strlen(text), token.digest);
    ew__token_write(out, &token);
}

static ew__tokens *make_tokens(const ew_env *env) {
    static const char *const flows[] = {"/flow/*", "/metrics", NULL}, *const http[] = {"http", "rrq", NULL};
    ew__buf text;
    ew__tokens *tokens = NULL;
    unsigned line;
    const char *problem;
    ew__buf_init(&text, env, 100000);
    write_token(&text, TOKEN("a"), "all", NULL, NULL, INT64_MAX);
    (void)ew__buf_cstr(&text, "\n");
    write_token(&text, TOKEN("f"), "flows", flows, http, INT64_MAX);
    write_token(&text, TOKEN("o"), "old", NULL, NULL, 5);
    assert_int_equal(text.err, EW_OK);
    assert_int_equal(ew__tokens_parse(env, ew__buf_view(&text), &tokens, &line, &problem), EW_OK);
    ew__buf_done(&text);
    return tokens;
}

static void begin(scene *s) {
    static const char *const keys[] = {"/flow/one", "/flow/deep/two", "/tool/three"};
    memset(s, 0, sizeof *s);
    world_init(&s->w, 7);
    const ew_env *env = &s->w.env.env;
    assert_int_equal(ew__registry_init(&s->registry, env), EW_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ew__registry_add(&s->registry, keys[i], &ew__local_callee, NULL, handler, s, NULL), EW_OK);
    }
    s->actions = ew__registry_get(&s->registry);
    ew__clients_init(&s->clients, env);
    ew__access_init(&s->access, env, &s->clients);
    s->access.required = true;
    ew__access_set(&s->access, make_tokens(env));
    ew__gate_init(&s->gate, &s->access);
    s->w.executor.calls->gate = &s->gate;
}

static void end(scene *s) {
    ew__gate_done(&s->gate);
    ew__access_done(&s->access);
    ew__clients_done(&s->clients);
    ew__actions_unref(s->actions);
    ew__registry_done(&s->registry);
    world_done(&s->w);
}

/* ---- text ---- */

static void test_call_access__tokens_survive_their_text(void **state) {
    (void)state;
    ew__test_env env;
    ew__test_env_init(&env, 1);
    ew__tokens *tokens = make_tokens(&env.env);
    assert_int_equal(tokens->n, 3);
    assert_true(ew__str_is(tokens->list[1].name, EW_STR("flows")));
    assert_int_equal(tokens->list[1].n_actions, 2);
    assert_true(ew__str_is(tokens->list[1].actions[0], EW_STR("/flow/*")));
    assert_true(ew__str_is(tokens->list[1].wires[1], EW_STR("rrq")));
    assert_int_equal(tokens->list[2].expires_ms, 5);
    assert_true(tokens->list[0].expires_ms == INT64_MAX);
    uint8_t digest[EW__SHA256_SIZE];
    ew__sha256_of(TOKEN("o"), strlen(TOKEN("o")), digest);
    assert_ptr_equal(ew__tokens_find(tokens, digest, 4), &tokens->list[2]);
    assert_null(ew__tokens_find(tokens, digest, 5)); /* its time is over */
    digest[31] ^= 1;
    assert_null(ew__tokens_find(tokens, digest, 4));
    assert_null(ew__tokens_find(NULL, digest, 4));
    ew__tokens_unref(tokens);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

static void test_call_access__bad_text(void **state) {
    (void)state;
#define DIGEST "\"digest\":\"0000000000000000000000000000000000000000000000000000000000000000\""
    static const struct {
        const char *text;
        unsigned line;
    } bad[] = {
        {"x", 1},
        {"{}", 1},
        {"[]", 1},
        {"\n\n{\"name\":\"a\"}", 3},
        {"{" DIGEST "}", 1},
        {"{\"name\":\"a\",\"digest\":\"00\"}", 1},
        {"{\"name\":\"a\"," DIGEST "}\n{\"name\":\"b\"," DIGEST ",\"actions\":\"/flow/x\"}", 2},
        {"{\"name\":\"a\"," DIGEST ",\"actions\":[1]}", 1},
        {"{\"name\":\"a\"," DIGEST ",\"wires\":[\"\"]}", 1},
        {"{\"name\":\"a\"," DIGEST ",\"expires\":\"soon\"}", 1},
    };
    ew__test_env env;
    ew__test_env_init(&env, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ew__tokens *tokens = NULL;
        unsigned line = 0;
        const char *problem = NULL;
        assert_int_equal(ew__tokens_parse(&env.env, ew_str_from(bad[i].text), &tokens, &line, &problem), EW_ESYNTAX);
        assert_int_equal(line, bad[i].line);
        assert_non_null(problem);
        assert_null(tokens);
    }
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

static void test_call_access__patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *key;
        bool fits;
    } rows[] = {
        {"/flow/echo", "/flow/echo", true},
        {"/flow/echo", "/flow/echo2", false},
        {"/flow/echo", "/flow/ech", false},
        {"/flow/*", "/flow/a/b", true},
        {"/flow/*", "/flow/", true},
        {"/flow/*", "/flo", false},
        {"*", "/any", true},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"/*/x", "/tool/x", true},
        {"/*/x", "/tool/xx", false},
        {"/a*b*c", "/aXbXbYc", true},
        {"/a*b*c", "/aXc", false},
        {"**", "/q", true},
        {"/flow/*a", "/flow/aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ew__pattern_fits(ew_str_from(rows[i].pattern), ew_str_from(rows[i].key)), rows[i].fits);
    }
}

/* ---- the point ---- */

static void on_accepted(ew_call *call) { ((scene *)call->caller_ud)->accepted++; }

static void on_end(ew_call *call, const ew__end *the_end) {
    scene *s = call->caller_ud;
    s->ends++;
    s->status = the_end->status;
    s->retry_after_ms = the_end->fault.retry_after_ms;
    ew__call_release(call);
}

static const ew__caller_ops caller = {.accepted = on_accepted, .end = on_end};

static ew_status call_it(scene *s, const ew__who *who, const char *wire, const char *key) {
    ew__action *action = NULL;
    unsigned ends = s->ends, runs = s->runs, accepted = s->accepted;
    assert_int_equal(ew__actions_find(s->actions, ew_str_from(key), &action), EW_OK);
    ew_call *call = ew__call_new(&s->w.executor, &caller, s);
    call->wire = wire;
    call->served.who = who;
    ew__call_open(call, action);
    assert_int_equal(s->ends, ends + 1);
    assert_int_equal(s->runs, runs + (s->status == EW_STATUS_OK));
    assert_int_equal(s->accepted, accepted + (s->status == EW_STATUS_OK));
    return s->status;
}

static ew__who show(scene *s, const char *token) {
    ew__who who = {.kind = EW__WHO_STRANGER};
    ew_fault fault;
    (void)ew__gate_present_token(&s->w.executor, &who, ew_str_from(token), &fault);
    return who;
}

static void test_call_access__who_may_call(void **state) {
    (void)state;
    scene s;
    begin(&s);
    ew__who stranger = {.kind = EW__WHO_STRANGER}, all = show(&s, TOKEN("a")), some = show(&s, TOKEN("f")),
            old = show(&s, TOKEN("o")), bad = show(&s, TOKEN("x"));
    assert_int_equal(call_it(&s, NULL, "http", "/flow/one"), EW_STATUS_UNAUTHENTICATED); /* a wire that says nothing */
    assert_int_equal(call_it(&s, &stranger, "http", "/flow/one"), EW_STATUS_UNAUTHENTICATED);
    assert_int_equal(call_it(&s, &bad, "http", "/flow/one"), EW_STATUS_UNAUTHENTICATED);
    assert_int_equal(call_it(&s, &old, "http", "/flow/one"), EW_STATUS_UNAUTHENTICATED);
    assert_int_equal(call_it(&s, &ew__who_owner, "http", "/tool/three"), EW_STATUS_OK);
    assert_int_equal(call_it(&s, &all, "jsonrpc", "/tool/three"), EW_STATUS_OK);
    assert_int_equal(call_it(&s, &some, "http", "/flow/one"), EW_STATUS_OK);
    assert_int_equal(call_it(&s, &some, "rrq", "/flow/deep/two"), EW_STATUS_OK);
    assert_int_equal(call_it(&s, &some, "http", "/tool/three"), EW_STATUS_PERMISSION_DENIED);
    assert_int_equal(call_it(&s, &some, "jsonrpc", "/flow/one"), EW_STATUS_PERMISSION_DENIED);
    ew_fault fault;
    assert_true(ew__gate_authorize(&s.w.executor, &some, "http", EW_STR("/metrics"), &fault));
    assert_false(ew__gate_authorize(&s.w.executor, &some, "http", EW_STR("/jobs/x"), &fault));
    assert_int_equal(fault.status, EW_STATUS_PERMISSION_DENIED);
    s.access.required = false; /* nobody asks */
    assert_int_equal(call_it(&s, NULL, "http", "/flow/one"), EW_STATUS_OK);
    end(&s);
}

static void test_call_access__revoked(void **state) {
    (void)state;
    scene s;
    begin(&s);
    ew__who all = show(&s, TOKEN("a"));
    assert_int_equal(call_it(&s, &all, "http", "/flow/one"), EW_STATUS_OK);
    ew__access_set(&s.access, NULL);
    assert_int_equal(call_it(&s, &all, "http", "/flow/one"), EW_STATUS_UNAUTHENTICATED);
    ew__access_set(&s.access, make_tokens(&s.w.env.env)); /* and there again */
    assert_int_equal(call_it(&s, &all, "http", "/flow/one"), EW_STATUS_OK);
    end(&s);
}

static size_t count(ew_str object) {
    ew_json_iter it = {.offset_ = 0};
    size_t n = 0;
    while (ew_json_next(object, &it)) {
        n++;
    }
    return n;
}

static void check_list(scene *s, const ew__who *who, const char *wire, ew_err want, size_t n) {
    ew__buf own;
    ew_str list;
    ew_fault fault = {.status = EW_STATUS_OK};
    assert_int_equal(ew__gate_list(&s->w.executor, who, wire, s->actions, &own, &list, &fault), want);
    if (want == EW_OK) {
        assert_int_equal(count(list), n);
        size_t at;
        assert_int_equal(ew_json_check(list, &at), EW_OK);
    } else {
        assert_int_equal(fault.status, n);
    }
    ew__buf_done(&own);
}

static void test_call_access__lists(void **state) {
    (void)state;
    scene s;
    begin(&s);
    ew__who all = show(&s, TOKEN("a")), some = show(&s, TOKEN("f"));
    check_list(&s, NULL, "http", EW_EACCESS, EW_STATUS_UNAUTHENTICATED);
    check_list(&s, &some, "jsonrpc", EW_EACCESS, EW_STATUS_PERMISSION_DENIED);
    check_list(&s, &some, "http", EW_OK, 2);
    check_list(&s, &all, "jsonrpc", EW_OK, 3);
    check_list(&s, &ew__who_owner, "jsonrpc", EW_OK, 3);
    s.w.executor.calls->gate = NULL;
    check_list(&s, NULL, "http", EW_OK, 3);
    s.w.executor.calls->gate = &s.gate;
    end(&s);
}

static void test_call_access__guesses_and_rates(void **state) {
    (void)state;
    static const uint8_t key[EW__CLIENT_KEY] = {1};
    scene s;
    ew_fault fault;
    begin(&s);
    ew__who who = {.client = ew__clients_enter(&s.clients, key, false)};
    for (int i = 0; i < EW__CLIENT_FAILURES; i++) {
        assert_false(ew__gate_present_token(&s.w.executor, &who, EW_STR(TOKEN("x")), &fault));
        assert_int_equal(fault.status, EW_STATUS_UNAUTHENTICATED);
    }
    assert_false(ew__gate_present_token(&s.w.executor, &who, EW_STR(TOKEN("x")), &fault));
    assert_int_equal(fault.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_in_range(fault.retry_after_ms, 1, EW__CLIENT_SHUT_MS);
    ew__who other = {.client = who.client}; /* a valid token of the same address is not held up */
    assert_true(ew__gate_present_token(&s.w.executor, &other, EW_STR(TOKEN("a")), &fault));
    assert_true(ew__gate_present_token(&s.w.executor, &who, EW_STR(TOKEN("a")), &fault));
    world_advance(&s.w, EW__CLIENT_SHUT_MS + 1);
    s.clients.calls_per_second = 2;
    assert_int_equal(call_it(&s, &who, "http", "/flow/one"), EW_STATUS_OK);
    assert_int_equal(call_it(&s, &who, "http", "/flow/one"), EW_STATUS_OK);
    assert_int_equal(call_it(&s, &who, "http", "/flow/one"), EW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(s.retry_after_ms, 500);
    ew__clients_leave(&s.clients, who.client);
    end(&s);
}

/* Whether a peer has yet to authenticate, and how many refusals it has. */
static void test_call_access__pending(void **state) {
    (void)state;
    scene s;
    ew_fault fault;
    begin(&s);
    ew__executor *executor = &s.w.executor;
    ew__who who = {.kind = EW__WHO_STRANGER};
    assert_true(ew__gate_is_pending(executor, &who));
    assert_false(ew__gate_is_pending(executor, &ew__who_owner));
    assert_false(ew__gate_present_token(executor, &who, EW_STR(TOKEN("x")), &fault));
    assert_true(ew__gate_is_pending(executor, &who));
    for (uint64_t i = 1; i < executor->limits->auth_refusals; i++)
        assert_false(ew__gate_is_last_refusal(executor, &who));
    assert_true(ew__gate_is_last_refusal(executor, &who));
    assert_true(ew__gate_present_token(executor, &who, EW_STR(TOKEN("a")), &fault));
    assert_false(ew__gate_is_pending(executor, &who));
    who.refusals = 0;
    assert_false(ew__gate_present_token(executor, &who, EW_STR(TOKEN("x")), &fault)); /* the identity is lost */
    assert_true(ew__gate_is_pending(executor, &who));
    assert_false(ew__gate_is_authenticated(executor, &who, &fault));
    assert_true(ew__gate_is_last_refusal(executor, &who));
    s.access.required = false;
    assert_false(ew__gate_is_pending(executor, &who));
    executor->calls->gate = NULL;
    assert_false(ew__gate_is_pending(executor, &who));
    end(&s);
}

static void test_call_access__changes_are_reported_once(void **state) {
    (void)state;
    scene s;
    begin(&s);
    ew__executor *executor = &s.w.executor;
    assert_true(ew__gate_changed(executor)); /* the first version */
    assert_false(ew__gate_changed(executor));
    ew__access_set(&s.access, make_tokens(&s.w.env.env));
    ew__who all = show(&s, TOKEN("a")); /* the version is in use already */
    assert_true(all.accepted);
    assert_true(ew__gate_changed(executor));
    assert_false(ew__gate_changed(executor));
    s.gate.expires_ms = (int64_t)executor->env->wall_ms(executor->env->ud); /* a token expires now */
    assert_true(ew__gate_changed(executor));
    assert_false(ew__gate_changed(executor));
    s.access.required = false;
    ew__access_set(&s.access, NULL);
    assert_false(ew__gate_changed(executor));
    executor->calls->gate = NULL;
    assert_false(ew__gate_changed(executor));
    end(&s);
}

static void test_call_access__principals(void **state) {
    (void)state;
    enum { ALL, ALL_AGAIN, FLOWS, OWNER, CERT_A, CERT_B, N };
    scene s;
    begin(&s);
    ew__executor *executor = &s.w.executor;
    ew__who who[N] = {[ALL] = show(&s, TOKEN("a")), [ALL_AGAIN] = show(&s, TOKEN("a")), [FLOWS] = show(&s, TOKEN("f"))};
    ew__principal id[N], none = {.kind = EW__WHO_STRANGER}, bare[N];
    who[OWNER] = ew__who_owner;
    ew__who_set_certificate(&who[CERT_A], "CN=all");
    ew__who_set_certificate(&who[CERT_B], "CN=b");
    for (int i = 0; i < N; i++)
        id[i] = ew__principal_of(executor, &who[i]);
    assert_true(ew__principal_equal(&id[ALL], &id[ALL_AGAIN]));
    for (int i = ALL_AGAIN; i < N; i++)
        for (int k = i + 1; k < N; k++)
            assert_false(ew__principal_equal(&id[i], &id[k]));
    executor->calls->gate = NULL;
    for (int i = 0; i < N; i++)
        bare[i] = ew__principal_of(executor, &who[i]);
    for (int i = 0; i < CERT_A; i++)
        assert_true(ew__principal_equal(&bare[i], &none));
    assert_false(ew__principal_equal(&bare[CERT_A], &none));
    assert_false(ew__principal_equal(&bare[CERT_A], &bare[CERT_B]));
    none = ew__principal_of(executor, NULL);
    assert_true(ew__principal_equal(&bare[ALL], &none));
    end(&s);
}

static void test_call_access__without_memory(void **state) {
    (void)state;
    ew__test_env plain, env;
    ew__buf text;
    ew__test_env_init(&plain, 1);
    ew__buf_init(&text, &plain.env, 100000);
    static const char *const flows[] = {"/flow/*", NULL};
    write_token(&text, TOKEN("a"), "all", flows, flows, 7);
    for (uint64_t n = 1;; n++) {
        ew__tokens *tokens = NULL;
        unsigned line;
        const char *problem;
        ew__test_env_init(&env, 1);
        ew__test_env_fail_at(&env, n, false);
        if (ew__tokens_parse(&env.env, ew__buf_view(&text), &tokens, &line, &problem) == EW_OK) {
            ew__tokens_unref(tokens);
        }
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        if (ew__test_env_failed(&env) == 0) {
            break;
        }
    }
    ew__buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_access__tokens_survive_their_text),
        cmocka_unit_test(test_call_access__bad_text),
        cmocka_unit_test(test_call_access__patterns),
        cmocka_unit_test(test_call_access__who_may_call),
        cmocka_unit_test(test_call_access__revoked),
        cmocka_unit_test(test_call_access__lists),
        cmocka_unit_test(test_call_access__guesses_and_rates),
        cmocka_unit_test(test_call_access__pending),
        cmocka_unit_test(test_call_access__changes_are_reported_once),
        cmocka_unit_test(test_call_access__principals),
        cmocka_unit_test(test_call_access__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
