/*
 * tests/unit/wire/test_stepflow_principals.c: several runtimes with tokens of their own use one component server. A blob
 * URL applies to the principal that named it, and only the principal of a call answers what that call asks.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/principals.h"
#include "unit/wire/stepflow_http_back.h"

#define EVENT(id, method, params) RPC "'id':" id ",'method':'" method "','params':" params "}"
#define PUT "{\"data\":1}"

typedef struct ways {
    struct ew__outbound base;
    unsigned n;
    char url[100]; /* of the last call */
} ways;

static ew_err on_way(struct ew__outbound *base, ew__executor *executor, const ew__wire *wire, ew_str url,
                     ew_call *call) {
    ways *by = (ways *)(void *)base;
    (void)executor;
    assert_ptr_equal(wire, &ew__wire_blobs);
    by->n++;
    (void)snprintf(by->url, sizeof by->url, "%.*s", (int)url.len, url.ptr);
    (void)ew__call_done_valid(call, EW_STR("{\"blob_id\":\"u\"}"));
    return EW_OK;
}

typedef struct scene {
    world w;
    guarded_rig g;
    ways by;
} scene;

static void begin(scene *s) {
    world_plain(&s->w);
    s->by = (ways){.base = {.open = on_way}};
    server_site(&s->w)->instance = &s->w.instance;
    server_site(&s->w)->outbound = &s->by.base;
    guard_rig(&s->g, &s->w.r, principals());
}

static void end(scene *s) {
    world_done(&s->w);
    unguard_rig(&s->g);
}

static rig_pair *post_as(scene *s, const char *token, const char *body) {
    char head[300];
    rig_pair *pair = runtime(&s->w);
    (void)snprintf(head, sizeof head, "POST / HTTP/1.1\r\n" HOST JSON BOTH "Authorization: Bearer %s\r\n", token);
    say_message(&s->w, pair, head, body);
    return pair;
}

static void name_url(scene *s, const char *token, const char *url) {
    char text[300];
    (void)snprintf(text, sizeof text, RPC "'id':1,'method':'initialize','params':{'capabilities':{'blobApiUrl':'%s'}}}",
                   url);
    hear(&s->w, post_as(s, token, text), 200, NULL);
}

/* components/execute of a handler that the test plays; the call, for finish(). */
static ew_call *execute_as(scene *s, const char *token, rig_pair **ret_pair) {
    assert_null(s->w.r.held);
    *ret_pair = post_as(s, token, EXECUTE("'x'", "/hold", "1"));
    ew_call *call = s->w.r.held;
    assert_non_null(call);
    s->w.r.held = NULL;
    return call;
}

static void test_wire_stepflow_principals__blob_urls(void **state) {
    (void)state;
    scene s;
    back b;
    rig_pair *pair, *other;
    begin(&s);
    name_url(&s, ADA, "http://127.0.0.1:1/ada");
    ew_call *call = execute_as(&s, BOB, &pair); /* ADA's URL does not apply: BOB's runtime is asked itself */
    ask(&s.w, call, &b, "blobs/put", PUT);
    hear_stream(pair, true);
    hear_event(&s.w, pair, EVENT("$1", "blobs/put", "{'data':1}"));
    assert_int_equal(s.by.n, 0);
    name_url(&s, BOB, "http://127.0.0.1:1/bob");
    ew_call *of_ada = execute_as(&s, ADA, &other); /* ... nor does BOB's to ADA */
    back c;
    ask(&s.w, of_ada, &c, "blobs/put", PUT);
    check_back(&c, EW_STATUS_OK, EW_ORIGIN_ACTION, "{'blob_id':'u'}");
    assert_string_equal(s.by.url, "http://127.0.0.1:1/ada");
    ask(&s.w, call, &c, "blobs/put", PUT);
    assert_string_equal(s.by.url, "http://127.0.0.1:1/bob");
    finish(&s.w, of_ada, "1");
    finish(&s.w, call, "1");
    end(&s);
}

/* Using a URL needs access to /stepflow/blobs, whatever initialize has named. */
static void test_wire_stepflow_principals__scope(void **state) {
    (void)state;
    scene s;
    back b;
    rig_pair *pair;
    begin(&s);
    name_url(&s, LOW, "http://127.0.0.1:1/low");
    ew_call *call = execute_as(&s, LOW, &pair);
    ask(&s.w, call, &b, "blobs/put", PUT);
    check_back(&b, EW_STATUS_PERMISSION_DENIED, EW_ORIGIN_LOCAL,
               "the runtime^s token may not use a blob URL: it needs the action /stepflow/blobs");
    assert_int_equal(s.by.n, 0);
    hear_nothing(pair);
    ask(&s.w, call, &b, "runs/submit", "{}"); /* callbacks are part of the call */
    hear_stream(pair, true);
    hear_event(&s.w, pair, EVENT("$1", "runs/submit", "{}"));
    finish(&s.w, call, "1");
    end(&s);
}

static void reply_as(scene *s, const char *token, int status, const char *answer) {
    hear(&s->w, post_as(s, token, RPC "'id':$1,'result':1}"), status, answer);
}

static void test_wire_stepflow_principals__replies(void **state) {
    (void)state;
    scene s;
    back b;
    rig_pair *pair;
    begin(&s);
    ew_call *call = execute_as(&s, ADA, &pair);
    ask(&s.w, call, &b, "m", "{}");
    hear_stream(pair, true);
    hear_event(&s.w, pair, EVENT("$1", "m", "{}"));
    reply_as(&s, BOB, 400, NOBODY); /* as for an id that does not exist */
    reply_as(&s, LOW, 400, NOBODY);
    reply_as(&s, "ewt_unknown", 401, NULL);
    check_runs(&b);
    reply_as(&s, ADA, 202, "");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "1");
    finish(&s.w, call, "1");
    end(&s);
}

static void tell(scene *s, const char *token) {
    char *text = expand(&s->w, RPC "'id':$1,'result':1}");
    ew__principal sender = principal_with(token);
    ew__wire_stepflow.on_broadcast(s->w.r.side[RIG_SERVER].shared, &s->w.r.side[RIG_SERVER].executor, &sender,
                                   ew_str_from(text));
    rig_run(&s->w.r);
    free(text);
}

/* A reply that has arrived on another loop. */
static void test_wire_stepflow_principals__other_loop(void **state) {
    (void)state;
    scene s;
    back b;
    rig_pair *pair;
    begin(&s);
    ew_call *call = execute_as(&s, ADA, &pair);
    ask(&s.w, call, &b, "m", "{}");
    hear_stream(pair, true);
    hear_event(&s.w, pair, EVENT("$1", "m", "{}"));
    tell(&s, BOB);
    check_runs(&b);
    assert_int_equal(rig_dropped(&s.w.r, RIG_SERVER), 1);
    tell(&s, ADA);
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "1");
    finish(&s.w, call, "1");
    end(&s);
}

/* Ids are the loop and 128 random bits: one says nothing about the next. */
static void test_wire_stepflow_principals__ids(void **state) {
    (void)state;
    scene s;
    back b[2];
    rig_pair *pair;
    begin(&s);
    ew_call *call = execute_as(&s, ADA, &pair);
    ask(&s.w, call, &b[0], "m", "{}");
    ask(&s.w, call, &b[1], "m", "{}");
    hear_stream(pair, true);
    hear_event(&s.w, pair, EVENT("$1", "m", "{}"));
    hear_event(&s.w, pair, EVENT("$2", "m", "{}"));
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(strlen(s.w.ids[i]), sizeof "\"0-ew\"" - 1 + 32);
        assert_int_equal(strspn(s.w.ids[i] + 5, "0123456789abcdef"), 32);
    }
    assert_memory_not_equal(s.w.ids[1] + 5, s.w.ids[2] + 5, 16);
    assert_memory_not_equal(s.w.ids[1] + 21, s.w.ids[2] + 21, 16);
    finish(&s.w, call, "1");
    end(&s);
}

static void set_url(ew__instance *instance, unsigned i, const char *url) {
    ew__principal owner = {.kind = EW__WHO_TOKEN, .digest = {(uint8_t)i, (uint8_t)(i >> 8)}};
    ew__instance_set_blob_url(instance, &owner, ew_str_from(url));
}

static void check_url(ew__instance *instance, unsigned i, const char *expected) {
    char buf[EW__INSTANCE_URL_MAX];
    ew__principal owner = {.kind = EW__WHO_TOKEN, .digest = {(uint8_t)i, (uint8_t)(i >> 8)}};
    ew_str url = ew__instance_blob_url(instance, &owner, buf);
    if (!ew__str_is(url, ew_str_from(expected)))
        fail_msg("principal %u has \"%.*s\", not \"%s\"", i, (int)url.len, url.ptr, expected);
}

/* The table is bounded: one principal more than fits replaces the one that named its URL longest ago. */
static void test_wire_stepflow_principals__table(void **state) {
    (void)state;
    static ew__instance instance = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char longest[EW__INSTANCE_URL_MAX + 2] = "";
    for (unsigned i = 0; i < EW__INSTANCE_URLS_MAX; i++)
        set_url(&instance, i, "a");
    set_url(&instance, 0, "b"); /* its own entry, which is the newest now */
    set_url(&instance, 1000, "c");
    check_url(&instance, 0, "b");
    check_url(&instance, 1, "");
    check_url(&instance, 2, "a");
    check_url(&instance, 1000, "c");
    set_url(&instance, 5, ""); /* frees an entry */
    check_url(&instance, 5, "");
    set_url(&instance, 1001, "d");
    check_url(&instance, 2, "a");
    memset(longest, 'x', EW__INSTANCE_URL_MAX);
    set_url(&instance, 2, longest);
    check_url(&instance, 2, longest);
    longest[EW__INSTANCE_URL_MAX] = 'x'; /* too long: as if none was named */
    set_url(&instance, 2, longest);
    check_url(&instance, 2, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_principals__blob_urls),
        cmocka_unit_test(test_wire_stepflow_principals__scope),
        cmocka_unit_test(test_wire_stepflow_principals__replies),
        cmocka_unit_test(test_wire_stepflow_principals__other_loop),
        cmocka_unit_test(test_wire_stepflow_principals__ids),
        cmocka_unit_test(test_wire_stepflow_principals__table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
