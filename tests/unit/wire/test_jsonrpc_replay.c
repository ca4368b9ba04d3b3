/*
 * tests/unit/wire/test_jsonrpc_replay.c: what programs with the reference codec said to each other, once as it was
 * recorded: the client's lines to our serving side, the server's lines to our calling side.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"
#include "support/json_or.h"
#include "unit/wire/jsonrpc_world.h"

/* ---- the actions of the recorded server ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void slept(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("{\"text\":\"slept\"}"));
}

static void nap(ew_call *call, void *arg) {
    assert_int_equal(ew_call_after(call, (uint64_t)json_int_or(ew_call_input(call), "/ms", 0), slept, arg), EW_OK);
}

typedef struct frames {
    char text[500];
    size_t n, count;
} frames;

static void on_frame(ew_call *call, ew_str chunk, bool end, void *arg) {
    frames *f = arg;
    if (end) {
        (void)ew_call_donef(call, "{\"frames\":[%s],\"count\":%d}", f->text, (int)f->count);
        return;
    }
    f->n += (size_t)snprintf(f->text + f->n, sizeof f->text - f->n, "%s%.*s", f->count++ ? "," : "", (int)chunk.len,
                             chunk.ptr);
}

static void upload(ew_call *call, void *arg) {
    (void)arg;
    frames *f = ew_call_alloc(call, sizeof *f);
    assert_non_null(f);
    memset(f, 0, sizeof *f);
    assert_int_equal(ew_call_on_input(call, on_frame, f), EW_OK);
}

static void give_up(ew_call *call, ew_str chunk, bool end, void *arg) {
    (void)chunk;
    (void)end;
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_ABORTED, "gave up after one frame");
}

static void upload_fail(ew_call *call, void *arg) { assert_int_equal(ew_call_on_input(call, give_up, arg), EW_OK); }

static void download(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_chunk(call, EW_STR("0")); /* not asked for: not carried */
    (void)ew_call_done(call, EW_STR("{\"name\":\"download\"}"));
}

static void on_chat(ew_call *call, ew_str chunk, bool end, void *arg) {
    (void)arg;
    if (end)
        (void)ew_call_done(call, EW_STR("{\"name\":\"re:chat\"}"));
    else
        (void)ew_call_chunk(call, chunk);
}

static void chat(ew_call *call, void *arg) { assert_int_equal(ew_call_on_input(call, on_chat, arg), EW_OK); }

static ew__registry registry;
static ew__actions *actions;

static int setup(void **state) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } table[] = {{"/go/Svc.Echo", echo},        {"/go/echo", echo},     {"/go/Svc.Sleep", nap},
                 {"/go/Svc.Upload", upload},    {"/go/Svc.Chat", chat}, {"/go/Svc.Uploadfail", upload_fail},
                 {"/go/Svc.Download", download}};
    (void)state;
    ew_err err = ew__registry_init(&registry, ew_env_default());
    for (size_t i = 0; i < sizeof table / sizeof *table && err == EW_OK; i++)
        err = ew__registry_add(&registry, table[i].key, &ew__local_callee, NULL, table[i].fn, NULL, NULL);
    actions = ew__registry_get(&registry);
    return err == EW_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    ew__actions_unref(actions);
    ew__registry_done(&registry);
    return 0;
}

/* ---- recordings ---- */

typedef struct recording {
    char *line[40];
    bool to_server[40];
    size_t n;
} recording;

static bool load(recording *rec, const char *name) {
    corpus c;
    char path[200];
    memset(rec, 0, sizeof *rec);
    (void)snprintf(path, sizeof path, "../captures/jsonrpc2/%s.jsonl", name);
    if (!corpus_open(&c, EW_SHARED, path))
        return false;
    while (corpus_next(&c)) {
        char *dir = corpus_text(&c, "/dir"), *raw = corpus_text(&c, "/raw");
        if (raw) {
            assert_true(rec->n < 40);
            rec->to_server[rec->n] = strcmp(dir, "c2s") == 0;
            rec->line[rec->n++] = raw;
        }
        free(dir);
    }
    corpus_close(&c);
    return true;
}

static void unload(recording *rec) {
    for (size_t i = 0; i < rec->n; i++)
        free(rec->line[i]);
}

/* ---- to our serving side ---- */

#define NO_METHOD FAULT(-32601, "no such method", "NOT_FOUND")
#define NO(id) RPC "'id':'" id "','error':" NO_METHOD "}\n"

static const struct {
    const char *name, *got; /* NULL: what the recorded server said, to the letter */
} served[] = {
    {"go_unary", NULL},
    {"go_renamed_unary", NULL},
    {"go_pipeline", NULL},
    {"go_upload", NULL},
    {"go_early_frames", NULL},
    /* results are streamed only to those who ask for it by ?stream=true */
    {"go_download", RPC "'id':'0','result':{'name':'download'}}\n"},
    {"go_downloadlate", RPC "'id':'0','result':{'name':'download'}}\n"},
    {"go_downloadcancel",
     RPC "'id':'0','result':{'name':'download'}}\n" RPC "'id':'1','result':{'text':'still alive'}}\n"},
    {"go_chat", RPC "'id':'0','result':{'name':'re:chat'}}\n"},
    {"go_chatfull", RPC "'id':'0','result':{'name':'re:chat'}}\n"},
    /* its answers to what only the other side asked are late */
    {"go_bidi_both_roles", RPC "'id':'c-1','result':{'name':'re:chat'}}\n"},
    {"go_uploadfail", RPC "'id':'0','error':" FAULT(-32000, "gave up after one frame", "ABORTED") "}\n"},
    /* no such methods here; an array is as good as an object */
    {"go_errors", NO("0") NO("1") NO("2") NO("3") NO("4") NO("5") NO("6") RPC "'id':'7','result':[1]}\n"},
    {"go_renamed_errors",
     NO("c-1") NO("c-2") NO("c-3") NO("c-4") NO("c-5") NO("c-6") NO("c-7") RPC "'id':'c-8','result':[1]}\n"},
    {"go_race_frames_before_base", NO("r1") NO("r65") NO("r147") NO("r146") NO("r113")},
};

static void replay_to_server(const recording *rec, size_t row) {
    world w;
    char recorded[4000] = "";
    size_t n = 0;
    world_serve(&w);
    w.r.side[RIG_SERVER].site.actions = actions;
    for (size_t i = 0; i < rec->n; i++) {
        if (rec->to_server[i]) {
            rig_say(w.pair, rec->line[i], strlen(rec->line[i]));
            say_bytes(w.pair, "\n", 1);
        } else {
            n += (size_t)snprintf(recorded + n, sizeof recorded - n, "%s\n", rec->line[i]);
        }
    }
    rig_advance(&w.r, 100);
    const char *got = w.pair->end[RIG_CLIENT].got, *expected = served[row].got ? served[row].got : recorded;
    if (!world_matches(&w, expected, got, strlen(got)))
        fail_msg("%s: expected\n%s\ngot\n%s", served[row].name, expected, got);
    assert_false(world_over(&w));
    world_done(&w);
}

static void test_wire_jsonrpc__replay_to_server(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        recording rec;
        if (!load(&rec, served[i].name))
            skip();
        replay_to_server(&rec, i);
        unload(&rec);
    }
}

/* ---- to our calling side: calls with the recorded ids ---- */

typedef struct told {
    char text[600]; /* chunks and the end */
    size_t n;
} told;

static void tell(told *t, const char *what, ew_str text) {
    t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%s%.*s;", what, (int)text.len, text.ptr);
    assert_true(t->n < sizeof t->text);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    tell(call->caller_ud, "", json);
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    told *t = call->caller_ud;
    if (end->status == EW_STATUS_OK)
        tell(t, "done ", end->result);
    else
        tell(t, ew_status_name(end->status), end->fault.message);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};
static world *opening_world;

static void on_open(ew_call *call) {
    ew__peer *peer = opening_world->pair->end[RIG_CLIENT].peer;
    assert_int_equal(peer->wire->open(peer, call), EW_OK);
}

static const ew__callee_ops opening = {.open = on_open};

static void open_recorded(world *w, ew_str line, told *t) {
    ew_call *call = ew__call_new(&w->r.side[RIG_CLIENT].executor, &caller, t);
    assert_non_null(call);
    call->outgoing.wire_id = json_str_or(line, "/id", EW_STR(""));
    call->key = json_str_or(line, "/method", EW_STR(""));
    call->input = ew_json_get(line, "/params");
    call->wants_chunks = true;
    call->has_input = json_int_or(line, "/stream", 0) == 1;
    opening_world = w;
    ew__call_open_on(call, &opening, t);
    rig_run(&w->r);
}

#define DOWN(i) "{'i':" #i ",'html':'\\u003c\\u0026\\u003e'};"
#define FAILURES(method, service, dot)                                                                                 \
    "UNKNOWNplain failure: <x>;|INVALID_ARGUMENTbad x;|UNKNOWN42;|INTERNALneither method, result nor error;|"          \
    "NOT_FOUNDrpc: can't find method " method ";|NOT_FOUNDrpc: can't find service " service ";|NOT_FOUND" dot          \
    ";|UNKNOWNjson: cannot unmarshal array into Go value of type main.Text;|"
#define RACE "0;1;done {'name':'race'};|"

/* What each caller is told, in the order of the requests. */
static const struct {
    const char *name, *events;
} called[] = {
    {"go_unary", "done {'text':'hi \\u003cb\\u003e\\u0026\\u2028'};|"},
    {"go_renamed_unary", "done {'text':'hi \\u003cb\\u003e\\u0026\\u2028'};|"},
    {"go_pipeline", "done {'text':'slept'};|done {'text':'slept'};|done {'text':'slept'};|"},
    {"go_upload", "done {'frames':['chunk 0','chunk 1','chunk 2'],'count':3};|"},
    {"go_early_frames", "done {'frames':['e1','e2'],'count':2};|"},
    {"go_uploadfail", "UNKNOWNgave up after one frame;|"},
    {"go_download", DOWN(0) DOWN(1) DOWN(2) "done {'name':'download'};|"},
    {"go_downloadlate", DOWN(0) DOWN(1) DOWN(2) "done {'name':'download'};|"},
    {"go_downloadcancel",
     DOWN(0) DOWN(1) DOWN(2) DOWN(3) DOWN(4) "done {'name':'download'};|done {'text':'still alive'};|"},
    {"go_chat", "'echo \\'m0\\'';'echo \\'m1\\'';'echo \\'m2\\'';done {'name':'re:chat'};|"},
    {"go_chatfull", "'echo \\'m0\\'';'echo \\'m1\\'';'echo \\'m2\\'';done {'name':'re:chat'};|"},
    {"go_bidi_both_roles", "'echo \\'m0\\'';'echo \\'m1\\'';done {'name':'re:chat'};|"},
    {"go_errors", FAILURES("Svc.Nosuch", "Other.Echo", "rpc: service/method request ill-formed: nodot")},
    {"go_renamed_errors", FAILURES("Svc.Nosuch", "Svc.Other.Echo", "rpc: can't find method Svc.Nodot")},
    {"go_race_frames_before_base", RACE RACE RACE RACE RACE},
};

static void replay_to_caller(const recording *rec, size_t row) {
    world w;
    told t[10] = {{{0}, 0}};
    size_t n = 0;
    char all[3000] = "", *p = all;
    world_init(&w, RIG_SERVER, &(world_options){.client_actions = actions});
    rig_call *first = call_stream(&w, "first"); /* so that the peer was asked */
    answer_discover(&w, false);
    for (size_t i = 0; i < rec->n; i++) {
        ew_str line = ew_str_from(rec->line[i]);
        if (!rec->to_server[i]) {
            rig_say(w.pair, line.ptr, line.len);
            say_bytes(w.pair, "\n", 1);
        } else if (ew_json_get(line, "/method").len) {
            open_recorded(&w, line, &t[n++]);
        }
    }
    for (size_t i = 0; i < n; i++)
        p += snprintf(p, sizeof all - (size_t)(p - all), "%s|", t[i].text);
    for (p = all; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    if (strcmp(all, called[row].events) != 0)
        fail_msg("%s: expected\n%s\ngot\n%s", called[row].name, called[row].events, all);
    check_runs(first);
    world_done(&w);
}

static void test_wire_jsonrpc__replay_to_caller(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof called / sizeof *called; i++) {
        recording rec;
        if (!load(&rec, called[i].name))
            skip();
        replay_to_caller(&rec, i);
        unload(&rec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__replay_to_server),
        cmocka_unit_test(test_wire_jsonrpc__replay_to_caller),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
