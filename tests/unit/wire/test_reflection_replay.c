/*
 * tests/unit/wire/test_reflection_replay.c: what Genkit's command line and Genkit's runtimes said to each other, once as
 * it was recorded: the manager's messages to our runtime, the runtimes' messages to our manager. Ids and trace ids are
 * each side's own: where a recorded message names one, the one that ours has in its place is put in.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/reflection_replay.h"
#include "support/json_or.h"

/* ---- the actions of the recorded app ---- */

static talk *talking; /* the handlers' */

/* The format's texts are JSON already. */
static ew_str written(char *buf, size_t cap, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buf, cap, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < cap);
    return ew__str(buf, (size_t)n);
}

static void hello(ew_call *call, void *arg) {
    (void)arg;
    ew_str name = json_str_or(ew_call_input(call), "", EW_STR(""));
    char buf[100];
    (void)ew_call_done(call, written(buf, sizeof buf, "\"Hello, %.*s!\"", (int)name.len, name.ptr));
}

static void streamy(ew_call *call, void *arg) {
    (void)arg;
    int n = (int)json_int_or(ew_call_input(call), "", 0);
    for (int i = 0; i < n; i++)
        (void)ew_call_chunkf(call, "{\"i\":%d}", i);
    (void)ew_call_donef(call, "\"done %d\"", n);
}

typedef struct failure {
    ew_status status;
    const char *message;
} failure;

static void fail_so(ew_call *call, void *arg) {
    const failure *f = arg;
    (void)ew_call_fail(call, f->status, f->message);
}

static void constant(ew_call *call, void *arg) { (void)ew_call_done(call, ew_str_from(arg)); }

static void context(ew_call *call, void *arg) {
    (void)arg;
    ew_str text = ew_call_context(call);
    char buf[200];
    text = text.len ? text : EW_STR("{}");
    (void)ew_call_done(call, written(buf, sizeof buf, "{\"context\":%.*s}", (int)text.len, text.ptr));
}

static void cancelled(ew_call *call, void *arg) {
    (void)arg;
    for (size_t i = 0; i < talking->n_held; i++) {
        if (talking->held[i] != call)
            continue;
        talking->held[i] = talking->held[--talking->n_held];
        (void)ew_call_unref(call);
    }
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "Action was cancelled");
}

/* Goes on until the recorded one ends. arg: its first chunk. */
static void hold(ew_call *call, void *arg) {
    (void)ew_call_chunk(call, ew_str_from(arg));
    talking->held[talking->n_held++] = ew_call_ref(call);
    assert_int_equal(ew_call_on_cancel(call, cancelled, NULL), EW_OK);
}

static void finish_held(talk *t, ew_str result) {
    assert_true(t->n_held > 0);
    ew_call *call = t->held[0];
    memmove(t->held, t->held + 1, --t->n_held * sizeof *t->held);
    if (memmem(result.ptr, result.len, "slept", 5))
        (void)ew_call_chunk(call, EW_STR("\"awake\""));
    (void)ew_call_done(call, result);
    (void)ew_call_unref(call);
    rig_run(&t->r);
    hear(t);
}

typedef struct bidi_state {
    int n;
    char prefix[10];
} bidi_state;

static void on_input(ew_call *call, ew_str chunk, bool over, void *arg) {
    bidi_state *b = arg;
    char buf[100];
    ew_str text = json_str_or(chunk, "", EW_STR(""));
    if (over)
        (void)ew_call_donef(call, "\"got %d\"", b->n);
    else
        (void)ew_call_chunk(call, written(buf, sizeof buf, "\"%s%.*s\"", b->prefix, (int)text.len, text.ptr));
    b->n++;
}

static void bidi(ew_call *call, void *arg) {
    (void)arg;
    bidi_state *b = ew_call_alloc(call, sizeof *b);
    assert_non_null(b);
    b->n = 0;
    ew_str prefix = json_str_or(ew_call_input(call), "/prefix", EW_STR("?"));
    (void)snprintf(b->prefix, sizeof b->prefix, "%.*s", (int)prefix.len, prefix.ptr);
    if (!ew_call_has_input_stream(call))
        (void)ew_call_done(call, EW_STR("\"got 1\""));
    else if (strcmp(b->prefix, "?") == 0)
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "no init");
    else if (ew_call_on_cancel(call, cancelled, NULL) != EW_OK || ew_call_on_input(call, on_input, b) != EW_OK)
        fail();
}

static ew__registry registry;
static ew__actions *actions;

static int setup(void **state) {
    static failure boom = {EW_STATUS_INTERNAL, "boom"}, no_such = {EW_STATUS_NOT_FOUND, "no such thing"},
                   denied = {EW_STATUS_PERMISSION_DENIED, "not for you"},
                   bad = {EW_STATUS_INVALID_ARGUMENT, "a: number"};
    static char null[] = "null", abc[] = "\"ABC!\"", started[] = "\"started\"", zzz[] = "\"zzz\"";
    const struct {
        const char *key;
        ew_handler_fn fn;
        void *arg;
    } table[] = {{"/flow/hello", hello, NULL},          {"/flow/streamy", streamy, NULL},
                 {"/flow/plainError", fail_so, &boom},  {"/flow/genkitError", fail_so, &no_such},
                 {"/flow/userError", fail_so, &denied}, {"/flow/obj", fail_so, &bad},
                 {"/flow/nothing", constant, null},     {"/flow/nullflow", constant, null},
                 {"/flow/nested", constant, abc},       {"/flow/ctx", context, NULL},
                 {"/flow/slow", hold, started},         {"/flow/sleepMs", hold, zzz},
                 {"/custom/bidi", bidi, NULL}};
    (void)state;
    ew_err err = ew__registry_init(&registry, ew_env_default());
    for (size_t i = 0; i < sizeof table / sizeof *table && err == EW_OK; i++)
        err = ew__registry_add(&registry, table[i].key, &ew__local_callee, NULL, table[i].fn, table[i].arg, NULL);
    actions = ew__registry_get(&registry);
    return err == EW_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    ew__actions_unref(actions);
    ew__registry_done(&registry);
    return 0;
}

/* ---- a manager's messages to our runtime ---- */

static void heard_runtime(talk *t, ew_str message) {
    if (ew__str_is(json_str_or(message, "/method", EW_STR("")), EW_STR("register"))) {
        keep(t->register_id, ew_json_get(message, "/id"));
        return;
    }
    run *about = find(t, id_of(message), false);
    if (!about)
        about = add_run(t, id_of(message));
    if (ew_json_get(message, "/params/state").len)
        keep(about->our_trace, json_str_or(message, "/params/state/traceId", EW_STR("")));
    note_message(about->said, message);
}

static const char *our_trace(talk *t, ew_str recorded) {
    for (size_t i = 0; i < t->n_runs; i++)
        if (recorded.len && ew__str_is(recorded, ew_str_from(t->runs[i].trace)))
            return t->runs[i].our_trace;
    return NULL;
}

static void play_to_runtime(talk *t, ew_str message) {
    ew_str trace = json_str_or(message, "/params/traceId", EW_STR(""));
    if (ew_json_get(message, "/method").len && ew_json_get(message, "/id").len &&
        !find(t, ew_json_get(message, "/id"), false))
        (void)add_run(t, ew_json_get(message, "/id"));
    if (!ew_json_get(message, "/method").len && ew_json_get(message, "/id").len && *t->register_id) {
        say_with(t, message, ew_json_get(message, "/id"), t->register_id);
        *t->register_id = '\0';
    } else if (our_trace(t, trace)) {
        say_with(t, message, trace, our_trace(t, trace));
    } else {
        say(t, message);
    }
}

static void play_of_runtime(talk *t, ew_str message) {
    ew_str result = ew_json_get(message, "/result/result");
    run *about = find(t, id_of(message), false);
    if (!about)
        return;
    note_message(about->expected, message);
    if (ew_json_get(message, "/params/state").len)
        keep(about->trace, json_str_or(message, "/params/state/traceId", EW_STR("")));
    if (!ew__str_is(json_str_or(message, "/result/telemetry/traceId", EW_STR("")), ew_str_from(about->trace)))
        return; /* also of a run of an earlier connection */
    if (t->n_held && (ew__str_is(result, EW_STR("\"finished\"")) || ew__str_has_prefix(result, EW_STR("\"slept"))))
        finish_held(t, result);
}

/* Where ours is to say something else than the JavaScript runtime. Ids without their quotes; "*" stands for both probes. */
static const struct {
    const char *capture, *id, *said;
} otherwise[] = {
    /* each error has a status */
    {"start", "7", "fail -32602/5;"},
    {"start", "16", "fail -32602/3;"},
    {"start", "17", "fail -32602/5;"},
    {"start", "23", "fail -32602/5;"},
    {"*", "14", "fail -32601/12;"},
    {"*", "18", "fail -32602/5;"},
    /* bad parameters have a code of their own */
    {"*", "8", "fail -32602/3;"},
    {"*", "9", "fail -32602/3;"},
    {"*", "12", "fail -32602/3;"},
    {"*", "17", "fail -32602/3;"},
    {"*", "19", "fail -32602/3;"},
    /* inputs are not checked before the call runs */
    {"start", "8", "state;fail -32000/3;"},
    {"start", "25", "state;fail -32000/3;"},
    /* names, any id, null for false, any context: taken */
    {"*", "7", "state;done \"Hello, x!\";"},
    {"*", "0", "state;done \"Hello, x!\";"},
    {"*", "", "state;done \"Hello, x!\";"},
    {"*", "13", "state;done \"Hello, x!\";"},
    {"*", "10", "state;done {\"context\":\"str\"};"},
    /* whatever has an id is answered */
    {"*", "15", "null;"},
    {"*", "16", "null;"},
    {"*", "21", "fail -32602/5;"},
    {"*", "22", "fail -32602/5;"},
    {"*", "null", "fail -32700/3;fail -32600/3;fail -32600/3;"},
    {"*", "nojsonrpc", "fail -32600/3;"},
    /* numbers are ids like any other */
    {"seed", "4", "state;done \"Hello, Ann!\";"},
    {"seed", "5", "state;{\"i\":0};{\"i\":1};done \"done 2\";"},
    {"seed", "6", "state;done \"done 2\";"},
    {"seed", "11", "state;done {\"context\":{}};"},
    {"seed", "23", "state;\"started\";"},
    {"seed", "24", "state;\"started\";"},
    /* nothing of another connection's run */
    {"drop 2", "1", "state;\"zzz\";\"awake\";done \"slept 4000\";"},
    /* input behind the request is not lost */
    {"pipelined", "1", "state;\"a\";\"b\";done \"got 2\";"},
};

static const struct {
    const char *name, *file, *member, *where;
} served[] = {
    {"flowrun", "v2_cli143_js142_flowrun_session", "/conn", "1"},
    {"start", "v2_cli143_js142_start_session", "/conn", "1"},
    {"probe", "v2_js142_runtime_vs_probe_manager", NULL, NULL},
    {"seed", "v2_js142_runtime_vs_seed_dialect_manager", NULL, NULL},
    {"drop 1", "v2_js142_runtime_drop_and_reconnect", "/conn", "1"},
    {"drop 2", "v2_js142_runtime_drop_and_reconnect", "/conn", "2"},
    {"pipelined", "v2_js142_runtime_pipelined_bidi_input_lost", NULL, NULL},
};

static const char *expected_of(const char *capture, const run *about) {
    bool probe = strcmp(capture, "probe") == 0 || strcmp(capture, "seed") == 0;
    ew_str id = ew_str_from(about->recorded);
    if (*about->recorded == '"')
        id = ew__str(about->recorded + 1, id.len - 2);
    for (size_t i = 0; i < sizeof otherwise / sizeof *otherwise; i++)
        if ((strcmp(otherwise[i].capture, capture) == 0 || (probe && *otherwise[i].capture == '*')) &&
            ew__str_is(id, ew_str_from(otherwise[i].id)))
            return otherwise[i].said;
    return about->expected;
}

/* How many runs did not go as expected. */
static size_t replay_to_runtime(const recording *rec, const char *name) {
    talk *t = malloc(sizeof *t);
    size_t wrong = 0;
    assert_non_null(t);
    talking = t;
    begin(t, RIG_CLIENT, actions, heard_runtime);
    for (size_t i = 0; i < rec->n; i++) {
        if (rec->message[i].len && rec->to_runtime[i])
            play_to_runtime(t, rec->message[i]);
        else if (rec->message[i].len)
            play_of_runtime(t, rec->message[i]);
    }
    for (size_t i = 0; i < t->n_runs; i++) {
        const char *expected = expected_of(name, &t->runs[i]);
        if (strcmp(t->runs[i].said, expected) == 0)
            continue;
        print_error("%s, id %s: expected %s got %s\n", name, t->runs[i].recorded, expected, t->runs[i].said);
        wrong++;
    }
    assert_false(t->pair->end[RIG_CLIENT].saw_eof);
    end(t);
    free(t);
    return wrong;
}

static void test_wire_reflection__replay_to_runtime(void **state) {
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        recording rec = {.n = 0};
        if (!load(&rec, served[i].file, served[i].member, served[i].where))
            skip();
        wrong += replay_to_runtime(&rec, served[i].name);
        unload(&rec);
    }
    assert_int_equal(wrong, 0);
}

/* ---- a runtime's messages to our manager ---- */

static run *opening; /* whose request is to be heard next */

static void heard_manager(talk *t, ew_str message) {
    ew_str method = json_str_or(message, "/method", EW_STR(""));
    if (!method.len)
        note(t->greeted, ew_json_get(message, "/result").len ? "yes " : "no ", ew_json_get(message, "/id"));
    else if (opening && (ew__str_is(method, EW_STR("runAction")) || ew__str_is(method, EW_STR("listActions"))))
        keep(opening->ours, ew_json_get(message, "/id"));
    if (opening)
        note(opening->said, "", ew__str_is(method, EW_STR("runAction")) ? ew_json_get(message, "/params") : method);
}

/* The members of what our manager sends that the recorded one sends too are the same. */
static void check_params(const run *about, ew_str recorded) {
    static const char *const members[] = {"/key",    "/input",      "/init", "/context", "/telemetryLabels",
                                          "/stream", "/streamInput"};
    ew_str ours = ew__str(about->said, strlen(about->said) - 1);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        ew_str was = ew_json_get(recorded, members[i]), is = ew_json_get(ours, members[i]);
        bool absent =
            was.len == 0 || ew__str_is(was, EW_STR("false")); /* no input is null with us; false is left out */
        if (strcmp(members[i], "/init") == 0 && !json_bool_or(recorded, "/streamInput", false))
            continue; /* a call has one of the two */
        if (strcmp(members[i], "/stream") == 0 && ew_json_typeof(was) != EW_JSON_BOOL)
            continue; /* a probe that no manager sends */
        if (!absent && !ew__str_is(was, is))
            fail_msg("%s of %s: %.*s instead of %.*s", members[i], about->recorded, (int)is.len, is.ptr, (int)was.len,
                     was.ptr);
    }
}

static char *text_of(ew_str slice) { return slice.len ? copy_text(slice) : NULL; }

static void open_recorded(talk *t, ew_str message) {
    ew_str params = ew_json_get(message, "/params");
    bool list = !ew_json_get(params, "/key").len, input = json_bool_or(params, "/streamInput", false);
    run *about = opening = add_run(t, ew_json_get(message, "/id"));
    about->texts[0] = text_of(json_str_or(params, "/key", EW_STR("")));
    about->texts[1] = text_of(ew_json_get(params, "/context"));
    about->texts[2] = text_of(ew_json_get(params, "/telemetryLabels"));
    about->call = rig_open(t->pair, &(rig_request){.key = about->texts[0],
                                                   .input = ew_json_get(params, input ? "/init" : "/input"),
                                                   .context = about->texts[1],
                                                   .labels = about->texts[2],
                                                   .list = list,
                                                   .stream = json_bool_or(params, "/stream", false),
                                                   .input_stream = input});
    rig_run(&t->r);
    hear(t);
    opening = NULL;
    if (!list)
        check_params(about, params);
    about->said[0] = '\0';
}

static run *by_trace(talk *t, ew_str trace) {
    for (size_t i = 0; i < t->n_runs; i++)
        if (trace.len && ew__str_is(trace, ew_str_from(t->runs[i].trace)))
            return &t->runs[i];
    return NULL;
}

/* What the recorded manager did, ours does. What ours has no use for (listValues) is left out. */
static void play_of_manager(talk *t, ew_str message) {
    ew_str method = json_str_or(message, "/method", EW_STR(""));
    ew_str id = ew_json_get(message, "/params/requestId");
    run *about = id.len ? find(t, id, false) : by_trace(t, json_str_or(message, "/params/traceId", EW_STR("")));
    if (ew__str_is(method, EW_STR("runAction")) || ew__str_is(method, EW_STR("listActions")))
        open_recorded(t, message);
    else if (about && about->call && ew__str_is(method, EW_STR("sendInputStreamChunk")))
        (void)rig_call_send(about->call, ew_json_get(message, "/params/chunk"));
    else if (about && about->call && ew__str_is(method, EW_STR("endInputStream")))
        rig_call_send_end(about->call);
    else if (about && about->call && !about->call->ended && ew__str_is(method, EW_STR("cancelAction")))
        rig_call_cancel(about->call);
    rig_run(&t->r);
    hear(t);
}

/* What a caller is to be told of a recorded message. */
static void note_expected(run *about, ew_str message) {
    ew_str listing = ew_json_get(message, "/result/actions"), error = ew_json_get(message, "/error");
    int64_t code = json_int_or(error, "/data/code", -1);
    if (listing.len)
        note(about->expected, listing.len > 300 ? "list" : "done ", listing.len > 300 ? EW_STR("") : listing);
    else if (error.len)
        note(about->expected, "fail ", ew_str_from(code > 0 ? ew_status_name((ew_status)code) : "?"));
    else if (!ew_json_get(message, "/params/state").len)
        note_message(about->expected, message);
}

static void play_to_manager(talk *t, ew_str message) {
    ew_str id = id_of(message);
    run *about = find(t, id, false);
    if (about && about->call) {
        note_expected(about, message);
        if (ew_json_get(message, "/params/state").len)
            keep(about->trace, json_str_or(message, "/params/state/traceId", EW_STR("")));
        say_with(t, message, id, about->ours);
        return;
    }
    say(t, message); /* register, or an answer to nothing that we asked */
}

/* What our caller was told, in the same short form. */
static void note_told(run *about) {
    const rig_call *call = about->call;
    bool listing = call->result_len > 300;
    for (size_t i = 0; i < call->n_chunks; i++)
        note(about->said, "", ew__str(call->chunks[i], call->chunk_len[i]));
    if (call->ended && call->status == EW_STATUS_OK)
        note(about->said, listing ? "list" : "done ", listing ? EW_STR("") : ew__str(call->result, call->result_len));
    else if (call->ended)
        note(about->said, "fail ", ew_str_from(ew_status_name(call->status)));
}

/* An error without a status: by its code and text ("7" is "not found" in all recordings that have one). */
static const char *told_of(const run *about) {
    if (strcmp(about->expected, "fail ?;") != 0)
        return about->expected;
    return strcmp(about->recorded, "\"7\"") == 0 ? "fail NOT_FOUND;" : "fail UNKNOWN;";
}

/* expected: of all runs; NULL: what the recorded runtime said. */
static size_t replay_to_manager(const recording *rec, const char *name, const char *expected) {
    talk *t = malloc(sizeof *t);
    size_t wrong = 0;
    char all[600] = "";
    assert_non_null(t);
    begin(t, RIG_SERVER, NULL, heard_manager);
    for (size_t i = 0; i < rec->n; i++) {
        if (rec->message[i].len && rec->to_runtime[i])
            play_of_manager(t, rec->message[i]);
        else if (rec->message[i].len)
            play_to_manager(t, rec->message[i]);
    }
    for (size_t i = 0; i < t->n_runs; i++) {
        note_told(&t->runs[i]);
        (void)strncat(all, t->runs[i].said, sizeof all - strlen(all) - 1);
        if (expected || strcmp(t->runs[i].said, told_of(&t->runs[i])) == 0)
            continue;
        print_error("%s, id %s: expected %s told %s\n", name, t->runs[i].recorded, told_of(&t->runs[i]),
                    t->runs[i].said);
        wrong++;
    }
    (void)snprintf(t->said, sizeof t->said, "%s%s", t->greeted, all);
    for (char *c = t->said; *c; c++)
        *c = *c == '"' ? '\'' : *c;
    if (expected && strcmp(t->said, expected) != 0) {
        print_error("%s: expected %s told %s\n", name, expected, t->said);
        wrong++;
    }
    end(t);
    free(t);
    return wrong;
}

/* Odd runtimes, by the name of their scenario: what our manager says to their register, and what the caller is told. */
static const struct {
    const char *name, *expected;
} probes[] = {
    {"listFlat", "yes '1';done {'/flow/x':{'key':'/flow/x','name':'x'}};"},
    {"listBoth", "yes '1';done {'/flow/x':{'key':'/flow/x','name':'x'}};"},
    {"descr:nullDescription", "yes '1';done {'/flow/x':{'name':'x','description':null}};"},
    {"descr:nullMeta", "yes '1';done {'/flow/x':{'name':'x','metadata':null}};"},
    {"descr:metaNullValue", "yes '1';done {'/flow/x':{'name':'x','metadata':{'a':null}}};"},
    {"descr:metaNestedNull", "yes '1';done {'/flow/x':{'name':'x','metadata':{'a':{'b':null,'c':[[1]]}}}};"},
    {"descr:metaArrArr", "yes '1';done {'/flow/x':{'name':'x','metadata':{'a':[[1]]}}};"},
    {"descr:noName", "yes '1';done {'/flow/x':{'key':'/flow/x'}};"},
    {"descr:noKey", "yes '1';done {'/flow/x':{'name':'x'}};"},
    {"descr:schemaTrue", "yes '1';done {'/flow/x':{'name':'x','inputSchema':true}};"},
    {"descr:extra",
     "yes '1';done "
     "{'/flow/"
     "x':{'name':'x','initSchema':{'type':'object'},'streamSchema':{'type':'string'},'actionType':'flow','foo':1}};"},
    {"descr:keyMismatch", "yes '1';done {'/flow/x':{'name':'x','key':'/flow/other'}};"},
    {"numericId", "yes 1;done 'string';"},
    {"result:noTelemetry", "yes '1';done 1;"},
    {"result:nullTelemetry", "yes '1';done 1;"},
    {"result:nullTrace", "yes '1';done 1;"},
    {"result:missingResult", "yes '1';done null;"},
    {"result:nullWhole", "yes '1';fail INTERNAL;"},
    {"result:strWhole", "yes '1';fail INTERNAL;"},
    {"result:extra", "yes '1';done 1;"},
    {"error:noData", "yes '1';fail INVALID_ARGUMENT;"},
    {"error:dataStr", "yes '1';fail UNKNOWN;"},
    {"error:status", "yes '1';fail NOT_FOUND;"},
    {"error:statusNoDetails", "yes '1';fail NOT_FOUND;"},
    {"error:stackOnly", "yes '1';fail UNKNOWN;"},
    {"reg:numericReqId", "yes 7;"},
    {"reg:zeroReqId", "yes 0;"},
    {"reg:nullName", "yes '1';"},
    {"reg:minimal", "yes 'u-u-i-d';"},
    {"reg:pidStr", "no '1';"},
    {"reg:noPid", "no '1';"},
    {"reg:noJsonrpc", "no '1';"},
    {"reg:floatSpec", "yes '1';"},
    {"junk", "no null;no null;no null;no null;no '9';no null;yes '1';"},
    {"twoIds", "yes '1';yes '2';"},
    {"lateChunk", "yes '1';1;null;null;done 'r';"},
};

static const struct {
    const char *file, *member, *where;
} called[] = {
    {"v2_cli143_js142_flowrun_session", "/conn", "1"},     {"v2_cli143_js142_start_session", "/conn", "1"},
    {"v2_cli143_vs_foreign_stdlib_runtime", NULL, NULL},   {"v2_js142_runtime_vs_probe_manager", NULL, NULL},
    {"v2_js142_runtime_drop_and_reconnect", "/conn", "1"}, {"v2_js142_runtime_pipelined_bidi_input_lost", NULL, NULL},
};

static void test_wire_reflection__replay_to_manager(void **state) {
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof called / sizeof *called; i++) {
        recording rec = {.n = 0};
        if (!load(&rec, called[i].file, called[i].member, called[i].where))
            skip();
        wrong += replay_to_manager(&rec, called[i].file, NULL);
        unload(&rec);
    }
    assert_int_equal(wrong, 0);
}

static void test_wire_reflection__replay_odd_runtimes(void **state) {
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        recording rec = {.n = 0};
        char name[60];
        (void)snprintf(name, sizeof name, "\"%s\"", probes[i].name);
        if (!load(&rec, "v2_cli143_manager_vs_probe_runtime", "/scn", name))
            skip();
        wrong += replay_to_manager(&rec, probes[i].name, probes[i].expected);
        unload(&rec);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection__replay_to_runtime),
        cmocka_unit_test(test_wire_reflection__replay_to_manager),
        cmocka_unit_test(test_wire_reflection__replay_odd_runtimes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
