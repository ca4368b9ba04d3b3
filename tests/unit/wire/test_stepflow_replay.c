/*
 * tests/unit/wire/test_stepflow_replay.c: what Stepflow's component servers and their runtime said to each other over
 * pipes, as it was recorded: the runtime's lines to our serving side, the servers' lines to our calling side.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "unit/wire/stepflow_lines_replay.h"
#include "support/json_or.h"
#include "wire/stepflow/blob_id.h"

/* ---- the components of the recorded servers ---- */

/* One that asks its runtime: what it asks and what comes of it is what was recorded. */
typedef struct script {
    ew_call *call;
    size_t at;
    ew_str id;
} script;

static void go_on(script *s);

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_replied(ew_call *call, const ew__end *end) {
    script *s = call->caller_ud;
    (void)end;
    ew__call_release(call);
    go_on(s);
}

static const ew__caller_ops asker = {.chunk = on_chunk, .end = on_replied};

static void on_ask(ew_call *call) {
    ew_call *origin = call->callee_ud;
    assert_int_equal(origin->caller->call_back(origin, call), EW_OK);
}

static const ew__callee_ops asking = {.open = on_ask};

static void ask(script *s, ew_str request) {
    ew_call *call = ew__call_new(s->call->executor, &asker, s);
    assert_non_null(call);
    call->key = json_str_or(request, "/method", EW_STR(""));
    call->input = ew_json_get(request, "/params");
    ew__call_open_on(call, &asking, s->call);
}

static void go_on(script *s) {
    for (size_t i = s->at; i < rec->n; i++) {
        if (rec->to_server[i])
            continue;
        s->at = i + 1;
        if (asks(i)) {
            ask(s, row(i));
            return;
        }
        if (answers(i) && ew_str_eq(id_of(i), s->id)) {
            ew_str output = ew_json_get(row(i), "/result/output");
            if (output.len)
                (void)ew_call_done(s->call, output);
            else
                (void)ew_call_fail(s->call, EW_STATUS_INTERNAL, "the runtime refused");
            return;
        }
    }
}

static void scripted(ew_call *call, void *arg) {
    script *s = ew_call_alloc(call, sizeof *s);
    (void)arg;
    assert_non_null(s);
    *s = (script){.call = call, .id = ((const ew__sl_call *)call->caller_ud)->base.id};
    while (s->at < rec->n && !(rec->to_server[s->at] && asks(s->at) && ew_str_eq(id_of(s->at), s->id)))
        s->at++;
    go_on(s);
}

static void echo(ew_call *call, void *arg) {
    ew_str message = ew_json_get(ew_call_input(call), "/message");
    (void)arg;
    if (message.len)
        (void)ew_call_donef(call, "{\"echo\":%j}", message);
    else
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "Object missing required field `message`");
}

static void boom(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_INTERNAL, "boom");
}

static void null_out(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("null"));
}

static void skip_it(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("{\"outcome\":\"skipped\",\"reason\":\"not needed\"}"));
}

static void slept(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "{\"slept\":%d}", (int)json_int_or(ew_call_input(call), "/ms", 0));
}

static void nap(ew_call *call, void *arg) {
    assert_int_equal(ew_call_after(call, (uint64_t)json_int_or(ew_call_input(call), "/ms", 0), slept, arg), EW_OK);
}

static void add_up(ew_call *call, void *arg) {
    ew_str input = ew_call_input(call);
    (void)arg;
    (void)ew_call_donef(call, "{\"sum\":%d}", (int)(json_int_or(input, "/a", 0) + json_int_or(input, "/b", 0)));
}

static ew__registry registry;
static ew__actions *actions;

static int setup(void **state) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } table[] = {{"/c/echo", echo},           {"/c/boom", boom},     {"/c/null_out", null_out},
                 {"/c/skip", skip_it},        {"/c/sleep", nap},     {"/c/add", add_up},
                 {"/c/roundtrip", scripted},  {"/c/eval", scripted}, {"/c/parallel_blobs", scripted},
                 {"/c/eval_flow", scripted},  {"/c/meta", scripted}, {"/c/get_missing", scripted},
                 {"/c/store_blob", scripted}, {"/c/batch", scripted}};
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

/* ---- to our serving side ---- */

static const struct session {
    const char *name;
    int session;
} sessions[] = {{"2025-08-python-stdio", 0}, {"2025-08-typescript-stdio", 0},
                {"2025-10-py070-stdio", 0},  {"2026-01-python-last-stdio", 0},
                {"compat-union", 0},         {"compat-union", 1},
                {"compat-union", 2},         {"composed-rust-runtime", 0}};
#define N_SESSIONS (sizeof sessions / sizeof *sessions)

#define PY "2025-08-python-stdio"
#define TS "2025-08-typescript-stdio"
#define LAST "2026-01-python-last-stdio"
#define FAILED(id, message, status) RPC "'id':'" id "','error':" FAULT(-32100, message, status) "}"
#define REFUSED(id, code, message, status) RPC "'id':'" id "','error':" FAULT(code, message, status) "}"
#define NO_VERSION "jsonrpc must be \\'2.0\\'"

/* Where we say something else, and why. Rows of one id count in turn. */
static const struct difference {
    const char *name;
    const char *key;      /* the id as it was recorded, or the whole text where there is none */
    const char *expected; /* a line; "": nothing; "*": a result; "list": a list of components */
    bool silent;          /* the recorded server said nothing */
} differences[] = {
    /* the codes of 0.11: a component that fails is -32100, and says its status */
    {PY, "'ex-4'", FAILED("ex-4", "Object missing required field `message`", "INVALID_ARGUMENT"), false},
    {PY, "'ex-5'", FAILED("ex-5", "boom", "INTERNAL"), false},
    {PY, "'rt-3'", FAILED("rt-3", "the runtime refused", "INTERNAL"), false},
    {LAST, "'ex-3'", FAILED("ex-3", "boom", "INTERNAL"), false},
    {TS, "'blob'", FAILED("blob", "the runtime refused", "INTERNAL"), false},
    /* names are found with a slash and without one; a scheme is no part of a name */
    {PY, "'ex-2'", "*", false},
    {TS, "'ex:/add'", "*", false},
    {TS, "'boom'", FAILED("boom", "boom", "INTERNAL"), false},
    {TS, "'ex:typescript://add'",
     RPC "'id':'ex:typescript://add','error':{'code':-32001,'message':'no such component: "
         "typescript://add','data':{'status':'NOT_FOUND',"
         "'component':'typescript://add'}}}",
     false},
    {TS, "'ex://add'",
     RPC "'id':'ex://add','error':{'code':-32001,'message':'no such component: //add','data':{'status':'NOT_FOUND',"
         "'component':'//add'}}}",
     false},
    /* the protocol's page has the component as an object */
    {PY, "'info-3'", "*", true},
    /* a request is served before anybody has said initialize */
    {TS, "'pre'", "list", false},
    {TS, "'mid'", "list", false},
    /* whatever has an id is answered; parameters that a method does not need may be missing */
    {PY, "'bad-1'", REFUSED("bad-1", -32601, "no such method: foo/bar", "UNIMPLEMENTED"), true},
    {PY, "'bad-3'", "list", true},
    {PY, "'bad-4'", "list", true},
    {PY, "'bad-5'", "list", true},
    {PY, "'bad-6'", REFUSED("bad-6", -32600, NO_VERSION, "INVALID_ARGUMENT"), true},
    {PY, "1.5", "list", true},
    {LAST, "'infer'", REFUSED("infer", -32601, "no such method: components/infer_schema", "UNIMPLEMENTED"), true},
    {LAST, "'ex-old'", "*", true},
    {"2025-10-py070-stdio", "'old'", "*", true},
    /* what is no message is told so, as the protocol's page says */
    {PY, "this is not json", NOT_JSON, true},
    {TS, "nope", NOT_JSON, true},
    {PY, "[{'jsonrpc':'2.0','id':'b1','method':'components/list','params':{}}]",
     RPC "'id':null,'error':" INVALID("this protocol has no batches") "}", true},
    /* an id that is in use is refused */
    {PY, "'dup'", REFUSED("dup", -32600, "a call with this id still runs", "INVALID_ARGUMENT"), false},
    /* there is no cliff at 64 or 512 KiB, and what was said last is answered, too */
    {PY, "'big'", "*", true},
    {PY, "'alive2'", "*", true},
    {LAST, "'big300k'", "*", true},
    {LAST, "'big600k'", "*", true},
    /* a notification is not answered, least of all with an id of its own; 0 is an id like any other */
    {TS, "''", "", false},
    {TS, "''", "", false},
    {TS, "0", "list", true},
    {TS, "''", "", false},
};
#define N_DIFFERENCES (sizeof differences / sizeof *differences)

static bool used[N_DIFFERENCES];

static bool same_text(const char *quoted, ew_str text) {
    size_t i = 0;
    for (; quoted[i] && i < text.len; i++)
        if ((quoted[i] == '\'' ? '"' : quoted[i]) != text.ptr[i])
            return false;
    return i == text.len && !quoted[i];
}

/* What we say instead; NULL: the same. */
static const char *instead(const char *name, size_t i, bool silent) {
    for (size_t k = 0; k < N_DIFFERENCES; k++) {
        if (used[k] || differences[k].silent != silent || strcmp(differences[k].name, name) != 0 ||
            !(same_text(differences[k].key, id_of(i)) || same_text(differences[k].key, row(i))))
            continue;
        used[k] = true;
        return differences[k].expected;
    }
    return NULL;
}

static void must_be_list(const char *line) {
    ew_str listed = ew_json_get(ew_str_from(line), "/result/components");
    ew_json_iter it = {.offset_ = 0};
    unsigned n = 0;
    while (ew_json_next(listed, &it))
        n += json_str_or(it.value, "/component", EW_STR("")).ptr[0] == '/';
    assert_int_equal(n, 14);
}

/* The recorded answer and ours. */
static void compare_answer(const char *line, size_t i) {
    ew_str method = request_of(i) < rec->n ? json_str_or(row(request_of(i)), "/method", EW_STR("")) : NONE;
    if (ew_json_get(row(i), "/error").len)
        must_be("/error/code", line, row(i));
    else if (ew_str_eq(method, EW_STR("initialize")))
        must_be("/result/server_protocol_version", line, row(i));
    else if (ew_str_eq(method, EW_STR("components/list")))
        must_be_list(line);
    else if (ew_str_eq(method, EW_STR("components/info")))
        must_be("/result/info/component", line, row(i));
    else
        must_be("/result", line, row(i));
}

static void hear_answer(world *w, size_t i, const char *expected) {
    if (expected && !*expected)
        return;
    for (int waited = 0; waited < 50 && heard_so_far(w).len == 0; waited++)
        rig_advance(&w->r, 20);
    if (expected && strcmp(expected, "*") != 0 && strcmp(expected, "list") != 0) {
        hear_line(w, expected);
        return;
    }
    char *line = next_line_at(w, __LINE__);
    must_be("/id", line, row(i));
    if (expected && strcmp(expected, "list") == 0)
        must_be_list(line);
    else if (expected)
        assert_true(ew_json_get(ew_str_from(line), "/result").len > 0);
    else
        compare_answer(line, i);
    free(line);
}

static void hear_callback(world *w, size_t i, ids *known) {
    char *line = next_line_at(w, __LINE__);
    must_be("/method", line, row(i));
    must_be("/params", line, row(i));
    learn_id(known, id_of(i), ew_json_get(ew_str_from(line), "/id"));
    free(line);
}

static void replay_to_server(const char *name) {
    world w;
    ids known = {.n = 0};
    lines_serve(&w);
    w.r.side[RIG_SERVER].site.actions = actions;
    bool composed = strcmp(name, "composed-rust-runtime") == 0; /* its component asks more than ours does */
    for (size_t i = 0; i < rec->n; i++) {
        if (rec->to_server[i]) {
            say_row(&w, i, answers(i) ? find_id(&known, id_of(i)) : NULL);
            const char *expected = instead(name, i, true);
            if (expected)
                hear_answer(&w, i, expected);
        } else if (asks(i) && !composed) {
            hear_callback(&w, i, &known);
        } else if (answers(i)) {
            hear_answer(&w, i, instead(name, i, false));
        }
    }
    hear_nothing(&w);
    say_eof(&w);
    hear_nothing(&w);
    assert_true(world_over(&w));
    world_done(&w);
}

static void test_wire_stepflow__replay_to_server(void **state) {
    (void)state;
    memset(used, 0, sizeof used);
    for (size_t i = 0; i < N_SESSIONS; i++) {
        recording r;
        if (!load(&r, sessions[i].name, sessions[i].session))
            skip();
        assert_true(r.n > 3);
        rec = &r;
        replay_to_server(sessions[i].name);
        unload(&r);
    }
    for (size_t k = 0; k < N_DIFFERENCES; k++)
        if (!used[k])
            fail_msg("%s %s: was never met", differences[k].name, differences[k].key);
}

/* ---- to our calling side ---- */

typedef struct sent {
    size_t row;
    rig_call *rc;
} sent;

static bool is_call(size_t i) {
    ew_str method = rec->to_server[i] && asks(i) ? ew_json_get(row(i), "/method") : NONE, id = id_of(i);
    if (!same_text("'components/execute'", method) && !same_text("'components/list'", method))
        return false;
    bool has_params = ew_json_typeof(ew_json_get(row(i), "/params")) == EW_JSON_OBJECT;
    return has_params && id.len && id.ptr[0] != 'n' && !same_text("'dup'", id); /* ours are never the same */
}

/* Opens the call of that row; its request is on the wire then. */
static rig_call *open_row(world *w, size_t i, bool first, ids *known) {
    static char key[LINES][40];
    ew_str component = json_str_or(row(i), "/params/component", EW_STR(""));
    (void)snprintf(key[i], sizeof key[i], "%.*s", (int)component.len, component.ptr);
    rig_call *rc = rig_open(w->pair, &(rig_request){.key = component.len ? key[i] : NULL,
                                                    .input = ew_json_get(row(i), "/params/input"),
                                                    .list = component.len == 0});
    rig_run(&w->r);
    for (size_t k = 0; first && k < rec->n; k++) { /* the handshake, whenever it was */
        size_t request = rec->to_server[k] || !answers(k) ? rec->n : request_of(k);
        if (request == rec->n || !same_text("'initialize'", ew_json_get(row(request), "/method")))
            continue;
        hear_request(w, 9, "initialize");
        say_row(w, k, w->ids[9]);
        hear_line(w, INITIALIZED);
        first = false;
    }
    hear_request(w, 1, component.len ? "components/execute" : "components/list");
    learn_id(known, id_of(i), ew_str_from(w->ids[1]));
    return rc;
}

/* A name without a slash is asked for twice: the answer was the same. */
static void answer_again(world *w, size_t i, ids *known) {
    if (heard_so_far(w).len == 0)
        return;
    hear_request(w, 1, "components/execute");
    learn_id(known, id_of(i), ew_str_from(w->ids[1]));
    say_row(w, i, w->ids[1]);
}

/* What a server asks is answered as it was, but that we run no flows, and say more about it. */
static void answer_ask(world *w, size_t i) {
    ew_str theirs = NONE;
    say_row(w, i, NULL);
    char *line = next_line_at(w, __LINE__);
    for (size_t k = i; k < rec->n && !theirs.len; k++)
        if (rec->to_server[k] && answers(k) && ew_str_eq(id_of(k), id_of(i)))
            theirs = row(k);
    must_be("/id", line, row(i));
    bool blob = strncmp(ew_json_get(row(i), "/method").ptr, "\"blobs/", 7) == 0;
    bool typed = ew_json_get(row(i), "/params/blob_type").len || ew_json_get(row(i), "/params/blob_id").len;
    if (!blob)
        assert_int_equal(json_int_or(ew_str_from(line), "/error/code", 0), -32601);
    else if (!typed && ew_json_get(theirs, "/error").len) /* the oldest servers name no type: that is data */
        assert_true(ew_json_get(ew_str_from(line), "/result/blob_id").len > 0);
    else
        must_be(ew_json_get(theirs, "/error").len ? "/error/code" : "/result", line, theirs);
    free(line);
}

static ew_status status_of(int64_t code) {
    return code == -32001   ? EW_STATUS_NOT_FOUND
           : code == -32002 ? EW_STATUS_FAILED_PRECONDITION
           : code == -32601 ? EW_STATUS_UNIMPLEMENTED
                            : EW_STATUS_UNKNOWN;
}

/* The caller was told what the server has said. */
static void check_outcome(const sent *s) {
    size_t k = 0;
    while (k < rec->n && !(answers(k) && !rec->to_server[k] && ew_str_eq(id_of(k), id_of(s->row))))
        k++;
    if (k == rec->n) { /* nothing: it was lost with the connection */
        check_failed(s->rc, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
        return;
    }
    ew_str output = ew_json_get(row(k), "/result/output"), error = ew_json_get(row(k), "/error");
    if (error.len) {
        char message[300];
        size_t n = 0;
        assert_int_equal(ew_json_string(ew_json_get(error, "/message"), message, sizeof message - 1, &n), EW_OK);
        message[n] = '\0';
        check_failed(s->rc, status_of(json_int_or(error, "/code", 0)), EW_ORIGIN_ACTION, message);
    } else {
        assert_int_equal(s->rc->status, EW_STATUS_OK);
        if (output.len)
            assert_true(ew_str_eq(ew_str_from(s->rc->result), output));
        else
            assert_int_equal(s->rc->result[0], '{');
    }
}

static void replay_to_caller(void) {
    world w;
    ids known = {.n = 0};
    sent calls[IDS];
    size_t n = 0;
    ew__blobs *blobs = NULL;
    assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 100000, &blobs), EW_OK);
    lines_call(&w);
    w.r.side[RIG_CLIENT].site.blobs = blobs;
    for (size_t i = 0; i < rec->n; i++) {
        if (is_call(i)) {
            assert_true(n < IDS);
            calls[n] = (sent){.row = i, .rc = open_row(&w, i, n == 0, &known)};
            n++;
        } else if (!rec->to_server[i] && asks(i)) {
            answer_ask(&w, i);
        } else if (!rec->to_server[i]) { /* to what we have not asked, too */
            say_row(&w, i, find_id(&known, id_of(i)));
            answer_again(&w, i, &known);
        }
    }
    assert_false(world_over(&w));
    say_eof(&w);
    for (size_t i = 0; i < n; i++)
        check_outcome(&calls[i]);
    hear_nothing(&w);
    world_done(&w);
    blobs->free(blobs);
}

static void test_wire_stepflow__replay_to_caller(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SESSIONS; i++) {
        recording r;
        if (!load(&r, sessions[i].name, sessions[i].session))
            skip();
        rec = &r;
        replay_to_caller();
        unload(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow__replay_to_server),
        cmocka_unit_test(test_wire_stepflow__replay_to_caller),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
