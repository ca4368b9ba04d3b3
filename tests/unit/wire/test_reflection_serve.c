/*
 * tests/unit/wire/test_reflection_serve.c: the runtime of the reflection wire, where a transcript cannot say it: actions
 * of the test's own, several connections, ends inside of callbacks, names that are too long; and the rows of the corpus
 * own-jsonrpc that are about this wire. The rest is in tests/transcripts/reflection_*.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"
#include "unit/wire/reflection_world.h"

#define STOPPED(id, trace) RUN_FAULT(id, -32000, 1, "stopped", "'traceId':" trace)

/* ---- the document's example ---- */

static void describe(ew_call *call, void *arg) {
    (void)arg;
    assert_true(ew_str_eq(ew_call_input(call), EW_STR("\"Describe a cat\"")));
    (void)ew_call_chunk(call, EW_STR("{ \"content\": [{ \"text\": \"A cat is \"}] }"));
    (void)ew_call_chunk(call, EW_STR("{ \"content\": [{ \"text\": \"a small \"}] }"));
    (void)ew_call_chunk(call, EW_STR("{ \"content\": [{ \"text\": \"feline.\"}] }"));
    (void)ew_call_done(call, EW_STR("\"A cat is a small feline.\""));
}

static void with_actions(world *w, ew__registry *registry, const char *key, ew_handler_fn fn) {
    assert_int_equal(ew__registry_init(registry, ew_env_default()), EW_OK);
    assert_int_equal(ew__registry_add(registry, key, &ew__local_callee, NULL, fn, NULL, NULL), EW_OK);
    w->r.side[RIG_SERVER].site.actions = ew__registry_get(registry);
}

static void without_actions(world *w, ew__registry *registry) {
    ew__actions *actions = w->r.side[RIG_SERVER].site.actions;
    world_done(w);
    ew__actions_unref(actions);
    ew__registry_done(registry);
}

/* "Example: Streaming Flow Execution": the manager's message as it is printed there, with its number for an id. */
static void test_wire_reflection_serve__example(void **state) {
    (void)state;
    world w;
    ew__registry registry;
    world_init(&w, RIG_CLIENT, &(rig_options){.seed = 1});
    with_actions(&w, &registry, "/flow/myFlow", describe);
    hear(&w, REGISTER);
    say(&w, RPC "'id':$9,'result':null}");
    say(&w, "{\n  'jsonrpc': '2.0',\n  'method': 'runAction',\n  'params': {\n    'key': '/flow/myFlow',\n"
            "    'input': 'Describe a cat',\n    'stream': true\n  },\n  'id': 100\n}");
    hear(&w, STATE("100", "$1") CHUNK("100", "{ 'content': [{ 'text': 'A cat is '}] }")
                 CHUNK("100", "{ 'content': [{ 'text': 'a small '}] }")
                     CHUNK("100", "{ 'content': [{ 'text': 'feline.'}] }")
                         RESULT("100", "'A cat is a small feline.'", "$1"));
    without_actions(&w, &registry);
}

/* ---- a run belongs to its connection ---- */

static void test_wire_reflection_serve__own_connection(void **state) {
    (void)state;
    world w;
    world_runtime(&w);
    say(&w, RUN("'1'", "/test/stubborn", ",'input':{'ms':100}"));
    hear(&w, STATE("'1'", "$1"));
    rig_cut(w.pair, RIG_CLIENT, RIG_RESET);
    rig_run(&w.r);
    w.pair = rig_connect_raw(&w.r, RIG_CLIENT);
    memset(w.ids, 0, sizeof w.ids);
    hear(&w, REGISTER);
    say(&w, RPC "'id':$9,'result':{}}");
    say(&w, RUN("'1'", "/test/never", ""));
    hear(&w, STATE("'1'", "$2"));
    rig_advance(&w.r, 200); /* the first ends now: its answer goes nowhere */
    hear_nothing(&w);
    assert_int_equal(world_dropped(&w), 1);
    world_done(&w);
}

/* Two connections, one of them to a manager of the first generation: each is spoken to in its own way. */
static void test_wire_reflection_serve__two_managers(void **state) {
    (void)state;
    world w;
    world_runtime(&w);
    rig_pair *first = w.pair;
    w.pair = rig_connect_raw(&w.r, RIG_CLIENT);
    memset(w.ids, 0, sizeof w.ids);
    hear(&w, REGISTER);
    say(&w, RPC "'id':$9,'result':null}");
    say(&w, RPC "'method':'listActions','id':1}");
    hear_part(&w, "'result':{'/test/echo'");
    say(&w, RUN("1", "/test/never", ""));
    hear(&w, STATE("1", "$1"));
    w.pair = first;
    say(&w, RPC "'method':'listActions','id':1}");
    hear_part(&w, "'result':{'actions':{'/test/echo'");
    say(&w, RPC "'method':'cancelAction','params':{'requestId':1},'id':2}"); /* that of the other */
    hear(&w, RUN_FAULT("2", -32602, 5, "Action not found or already completed", ""));
    say(&w, RPC "'method':'cancelAction','params':{'traceId':$1},'id':3}");
    hear(&w, RUN_FAULT("3", -32602, 5, "Action not found or already completed", ""));
    assert_int_equal(w.r.n_cancelled, 0);
    world_done(&w);
}

/* ---- ends inside of callbacks ---- */

static void end_at_input(ew_call *call, ew_str chunk, bool end, void *arg) {
    (void)arg;
    if (!end)
        (void)ew_call_done(call, chunk); /* with the bytes of the message itself */
}

static void take_one(ew_call *call, void *arg) { (void)ew_call_on_input(call, end_at_input, arg); }

/* The handler ends its call while it is given input; what follows in the same segment meets nobody. */
static void test_wire_reflection_serve__end_in_input(void **state) {
    (void)state;
    world w;
    ew__registry registry;
    world_init(&w, RIG_CLIENT, &(rig_options){.seed = 1});
    with_actions(&w, &registry, "/f/one", take_one);
    hear(&w, REGISTER);
    put(&w, RUN("1", "/f/one", ",'streamInput':true"));
    put(&w, INPUT("1", "{'a':1}"));
    put(&w, INPUT("1", "2"));
    put(&w, RPC "'method':'endInputStream','params':{'requestId':1},'id':2}");
    say(&w, RPC "'method':'cancelAction','params':{'requestId':1},'id':3}");
    hear(&w, STATE("1", "$1") RESULT("1", "{'a':1}", "$1")
                 RUN_FAULT("2", -32602, 5, "no run with this requestId takes input", "")
                     RUN_FAULT("3", -32602, 5, "Action not found or already completed", ""));
    assert_int_equal(world_dropped(&w), 1);
    without_actions(&w, &registry);
}

static void end_at_once(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "stopped");
}

static void wait_for_cancel(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_on_cancel(call, end_at_once, NULL);
}

static void test_wire_reflection_serve__end_in_cancel(void **state) {
    (void)state;
    world w;
    ew__registry registry;
    world_init(&w, RIG_CLIENT, &(rig_options){.seed = 1});
    with_actions(&w, &registry, "/f/wait", wait_for_cancel);
    hear(&w, REGISTER);
    put(&w, RUN("1", "/f/wait", ",'streamInput':true"));
    put(&w, RPC "'method':'cancelAction','params':{'requestId':1}}");
    put(&w, RPC "'method':'cancelAction','params':{'requestId':1}}");
    put(&w, INPUT("1", "2"));
    say(&w, RUN("1", "/f/wait", "")); /* the id is free again */
    hear(&w, STATE("1", "$1") STOPPED("1", "$1") STATE("1", "$2"));
    assert_int_equal(world_dropped(&w), 2);
    without_actions(&w, &registry);
}

/* ---- names ---- */

/* What a peer calls something is told back in part only, and never cut inside a character in a way that shows. */
static void test_wire_reflection_serve__long_names(void **state) {
    (void)state;
    world w;
    char text[2000];
    world_runtime(&w);
    size_t n = (size_t)snprintf(text, 100, RPC "'id':1,'method':'runAction','params':{'key':'/");
    for (int i = 0; i < 600; i++) {
        memcpy(text + n, "\xc3\xa4", 2);
        n += 2;
    }
    (void)snprintf(text + n, 100, "'}}");
    say(&w, text);
    size_t len;
    char *got = heard(&w, &len);
    assert_true(strstr(got, " not found\"") && len < 1500);
    assert_int_equal(ew_json_check(ew__str(got, len), NULL), EW_OK); /* it is UTF-8, too */
    free(got);
    say(&w, RPC "'id':2,'method':'a\\u0000b'}");
    hear_part(&w, "Method not found: a");
    say(&w, RPC "'id':3,'method':'run\\u0041ction','params':{'key':'echo'}}");
    hear(&w, STATE("3", "$1") RESULT("3", "null", "$1"));
    world_done(&w);
}

/* ---- traces ---- */

static void test_wire_reflection_serve__trace(void **state) {
    (void)state;
    world w;
    world_runtime(&w);
    say(&w, RUN("1", "/test/about", ",'traceparent':'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'"));
    hear(&w, STATE("1", "'0af7651916cd43dd8448eb211c80319c'")
                 RESULT("1",
                        "{'context':null,'labels':null,'trace':'0af7651916cd43dd8448eb211c80319c','wire':'reflection',"
                        "'key':'/test/about'}",
                        "'0af7651916cd43dd8448eb211c80319c'"));
    static const char *const bad[] = {",'traceparent':'00-0-0-01'", ",'traceparent':''", ",'traceparent':17", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, RPC "'id':1,'method':'runAction','params':{'key':'echo'%s}}", bad[i]);
        say(&w, text);
        memset(w.ids[1], 0, sizeof w.ids[1]);
        hear(&w, STATE("1", "$1") RESULT("1", "null", "$1"));
        assert_int_equal(strlen(w.ids[1]), 34);
    }
    world_done(&w);
}

/* ---- what the site says ---- */

static void test_wire_reflection_serve__deadline(void **state) {
    (void)state;
    world w;
    world_runtime_with(&w, &(rig_options){.limits = {.call_ms = 50}});
    say(&w, RUN("1", "/test/never", ""));
    hear(&w, STATE("1", "$1"));
    rig_advance(&w.r, 50);
    hear(&w, RUN_FAULT("1", -32000, 4, "the deadline has passed", "'traceId':$1"));
    assert_int_equal(w.r.n_cancelled, 1);
    world_done(&w);
}

static void test_wire_reflection_serve__site_drains(void **state) {
    (void)state;
    world w;
    world_runtime(&w);
    w.r.side[RIG_SERVER].site.draining = true;
    say(&w, RUN("1", "/test/echo", ""));
    hear(&w, RUN_FAULT("1", -32000, 14, "going down", "'refused':true"));
    say(&w, RPC "'method':'runAction','params':{'key':'echo'}}"); /* nobody to be told */
    hear_nothing(&w);
    assert_int_equal(world_dropped(&w), 1);
    world_done(&w);
}

/* A handler may ask for the end of everything in the middle of its call. */
static world *draining;
static void drain_now(ew_call *call, void *arg) {
    (void)arg;
    ew__peer *peer = draining->pair->end[RIG_SERVER].peer;
    peer->wire->drain(peer);
    (void)ew_call_done(call, EW_STR("1"));
}

static void test_wire_reflection_serve__drain_in_handler(void **state) {
    (void)state;
    world w;
    ew__registry registry;
    draining = &w;
    world_init(&w, RIG_CLIENT, &(rig_options){.seed = 1});
    with_actions(&w, &registry, "/f/stop", drain_now);
    hear(&w, REGISTER);
    put(&w, RUN("1", "/f/stop", ""));
    say(&w, RUN("2", "/f/stop", ""));
    hear(&w, STATE("1", "$1") RESULT("1", "1", "$1")
                 RUN_FAULT("2", -32000, 14, "going down", "'refused':true") "(close) 1001 going down\n");
    assert_true(world_over(&w));
    without_actions(&w, &registry);
}

static void test_wire_reflection_serve__nobody(void **state) {
    (void)state;
    world w;
    world_init(&w, RIG_CLIENT, &(rig_options){.seed = 1});
    w.r.side[RIG_SERVER].site.actions = NULL;
    hear(&w, REGISTER);
    say(&w, RUN("1", "/test/echo", ""));
    hear(&w, RUN_FAULT("1", -32602, 5, "action /test/echo not found", ""));
    say(&w, RPC "'method':'listActions','id':'2'}");
    hear(&w, RPC "'id':'2','result':{'actions':{}}}\n");
    world_done(&w);
}

/* ---- the corpus ---- */

static unsigned n_told;
static void count_telemetry(ew__site *site, ew_str url) {
    (void)site;
    assert_true(ew_str_eq(url, EW_STR("http://169.254.169.254/latest"))); /* whoever is told checks it */
    n_told++;
}

static void play_case(const char *id, char *send) {
    world w;
    if (strcmp(id, "genkit-register-twice") == 0 || strcmp(id, "genkit-chunk-no-id") == 0) {
        bool chunk = strcmp(id, "genkit-chunk-no-id") == 0;
        world_init(&w, RIG_SERVER, &(rig_options){.seed = 1});
        say(&w, send);
        if (chunk)
            hear_nothing(&w);
        else
            hear(&w, RPC "'id':1,'result':null}\n");
        assert_int_equal(world_dropped(&w), chunk);
    } else if (strcmp(id, "genkit-telemetry-ssrf") == 0) {
        world_runtime(&w);
        w.r.side[RIG_SERVER].site.on_telemetry = count_telemetry;
        say(&w, send);
        hear_nothing(&w);
        assert_int_equal(n_told, 1);
    } else {
        fail_msg("a case that nobody has looked at: %s", id);
    }
    world_done(&w);
}

static void test_wire_reflection_serve__corpus(void **state) {
    (void)state;
    corpus c;
    unsigned n = 0;
    if (!corpus_open(&c, EW_SHARED, "own-jsonrpc/jsonrpc-cases.jsonl"))
        skip();
    while (corpus_next(&c)) {
        char *wire = corpus_text(&c, "/wire"), *id = corpus_text(&c, "/id"), *send = corpus_text(&c, "/send");
        if (wire && id && send && strcmp(wire, "genkit-ws") == 0) {
            play_case(id, send);
            n++;
        }
        free(wire);
        free(id);
        free(send);
    }
    corpus_close(&c);
    assert_true(n >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection_serve__example),
        cmocka_unit_test(test_wire_reflection_serve__own_connection),
        cmocka_unit_test(test_wire_reflection_serve__two_managers),
        cmocka_unit_test(test_wire_reflection_serve__end_in_input),
        cmocka_unit_test(test_wire_reflection_serve__end_in_cancel),
        cmocka_unit_test(test_wire_reflection_serve__long_names),
        cmocka_unit_test(test_wire_reflection_serve__trace),
        cmocka_unit_test(test_wire_reflection_serve__deadline),
        cmocka_unit_test(test_wire_reflection_serve__site_drains),
        cmocka_unit_test(test_wire_reflection_serve__drain_in_handler),
        cmocka_unit_test(test_wire_reflection_serve__nobody),
        cmocka_unit_test(test_wire_reflection_serve__corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
