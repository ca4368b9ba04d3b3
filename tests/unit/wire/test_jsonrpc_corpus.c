/*
 * tests/unit/wire/test_jsonrpc_corpus.c: the serving side over the corpora own-jsonrpc and own-ndjson-stream, on a
 * socket and on stdio. Where we do otherwise than a case of the first expects, a table says what and why; the second
 * is written out in full.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"
#include "support/json_or.h"
#include "unit/wire/jsonrpc_world.h"

/* ---- the actions that the cases call ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

static void subtract(ew_call *call, void *arg) {
    (void)arg;
    ew_str in = ew_call_input(call);
    bool named = ew_json_typeof(in) == EW_JSON_OBJECT;
    (void)ew_call_donef(
        call, "%lld",
        (long long)(json_int_or(in, named ? "/minuend" : "/0", 0) - json_int_or(in, named ? "/subtrahend" : "/1", 0)));
}

static void sum(ew_call *call, void *arg) {
    (void)arg;
    ew_json_iter it = {0};
    int64_t total = 0;
    while (ew_json_next(ew_call_input(call), &it))
        total += json_int_or(it.value, "", 0);
    (void)ew_call_donef(call, "%lld", (long long)total);
}

static void get_data(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("[\"hello\",5]"));
}

static bool upload_reads;

static void on_upload(ew_call *call, ew_str chunk, bool end, void *arg) {
    int *n = arg;
    if (end)
        (void)ew_call_donef(call, "%d", *n);
    else
        *n += (int)json_int_or(chunk, "", 100);
}

static void on_cancel(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static void upload(ew_call *call, void *arg) {
    (void)arg;
    int *n = ew_call_alloc(call, sizeof *n);
    assert_non_null(n);
    *n = 0;
    (void)ew_call_on_cancel(call, on_cancel, NULL);
    if (upload_reads)
        assert_int_equal(ew_call_on_input(call, on_upload, n), EW_OK);
}

static ew__registry registry;
static ew__actions *actions;

static int setup(void **state) {
#define TOO_DEEP "the message is nested too deep: the limit of a payload is 120 levels"

    static const struct {
        const char *key;
        ew_handler_fn fn;
    } table[] = {{"/m/echo", echo},   {"/m/subtract", subtract}, {"/m/sum", sum},         {"/m/get_data", get_data},
                 {"/m/update", echo}, {"/m/notify_hello", echo}, {"/m/notify_sum", echo}, {"/m/upload", upload}};
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

static void begin(world *w, bool stdio, ew_limits limits) {
    world_init(w, RIG_CLIENT, &(world_options){.stdio = stdio, .limits = limits});
    w->r.side[RIG_SERVER].site.actions = actions;
}

/* ---- own-jsonrpc ---- */

enum { SOCKET = 1, STDIO = 2 };

#define FOREIGN                                                                                                        \
    RPC "'id':null,'error':{'code':-32700,'message':'the stream begins neither with an object or array nor with a "    \
        "Content-Length header'}}\n"

static const struct {
    const char *id;
    int where;
    const char *got, *why;
} differences[] = {
    {"params-string", SOCKET | STDIO, RPC "'id':1,'result':'x'}\n",
     "any JSON may be params, as in the reference codec"},
    {"params-number", SOCKET | STDIO, RPC "'id':1,'result':1}\n", "the same"},
    {"text-null", SOCKET, FOREIGN, "a socket must begin with an object, an array or a header"},
    {"text-null", STDIO, "", "null is passed over, as in the reference codec"},
    {"text-string", SOCKET, FOREIGN, "a socket must begin with an object, an array or a header"},
    {"text-trailing-garbage", SOCKET | STDIO,
     RPC "'id':1,'result':{'x': 1}}\n" RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}\n",
     "a value ends where its JSON ends; what follows it is the next one"},
    {"depth-128", SOCKET | STDIO, RPC "'id':1,'error':" FAULT(-32000, TOO_DEEP, "RESOURCE_EXHAUSTED") "}\n",
     "a message has at most 128 levels and a payload 120; the call fails, the connection goes on"},
    {"depth-512", SOCKET | STDIO, RPC "'id':1,'error':" FAULT(-32000, TOO_DEEP, "RESOURCE_EXHAUSTED") "}\n",
     "the same"},
};

/* Whether two JSON texts are the same but for white space. */
static bool same(ew_str a, ew_str b) {
    ew__buf x, y;
    ew__buf_init(&x, ew_env_default(), SIZE_MAX / 2);
    ew__buf_init(&y, ew_env_default(), SIZE_MAX / 2);
    bool is = a.len && b.len && ew__json_minify(&x, a) == EW_OK && ew__json_minify(&y, b) == EW_OK &&
              ew_str_eq(ew__buf_view(&x), ew__buf_view(&y));
    ew__buf_done(&x);
    ew__buf_done(&y);
    return is;
}

/* One answer against {"error","id"} or {"result","id"} or {"result","id_text"}. */
static bool answer_is(ew_str expect, ew_str answer) {
    char text[2000];
    size_t n = 0;
    ew_str id = ew_json_member(answer, EW_STR("id")), id_text = ew_json_member(expect, EW_STR("id_text"));
    ew_str result = ew_json_member(expect, EW_STR("result"));
    if (id_text.len) {
        assert_int_equal(ew_json_string(id_text, text, sizeof text, &n), EW_OK);
        if (!ew_str_eq(id, ew__str(text, n)))
            return false;
    } else if (!same(id, ew_json_member(expect, EW_STR("id")))) {
        return false;
    }
    if (!result.len)
        return json_int_or(answer, "/error/code", 0) == json_int_or(expect, "/error", 1) &&
               ew_json_get(answer, "/error/message").len > 2 && !ew_json_get(answer, "/result").len;
    if (ew_str_eq(result, EW_STR("[\"1e999 unchanged\"]")))
        result = EW_STR("[1e999]");
    ew_str got = ew_json_member(answer, EW_STR("result"));
    return !ew_json_get(answer, "/error").len && got.len && (ew_str_eq(result, EW_STR("\"any\"")) || same(result, got));
}

static bool lines_are(ew_str expect, const char *got);

static bool one_of(ew_str any, const char *got) {
    ew_json_iter it = {0};
    while (ew_json_next(any, &it))
        if (lines_are(it.value, got))
            return true;
    return false;
}

/* The array that answers a batch. */
static bool batch_is(ew_str expect, ew_str answers) {
    ew_json_iter want = {0}, have = {0};
    bool same_length;
    for (;;) {
        bool more = ew_json_next(expect, &want);
        same_length = more == ew_json_next(answers, &have);
        if (!more || !same_length)
            break;
        if (!answer_is(want.value, have.value))
            return false;
    }
    return same_length;
}

static bool lines_are(ew_str expect, const char *got) {
    const char *newline = strchr(got, '\n');
    size_t n_lines = 0;
    for (const char *p = got; (p = strchr(p, '\n')) != NULL; p++)
        n_lines++;
    if (ew_str_eq(expect, EW_STR("null")) || ew_str_eq(expect, EW_STR("\"ignored\"")))
        return n_lines == 0;
    if (ew_str_eq(expect, EW_STR("\"two results\"")))
        return n_lines == 2;
    if (ew_json_get(expect, "/any").len)
        return one_of(ew_json_get(expect, "/any"), got);
    if (n_lines != 1 || ew_json_typeof(expect) == EW_JSON_STRING)
        return false;
    ew_str line = ew__str(got, (size_t)(newline - got));
    assert_int_equal(ew_json_check(line, NULL), EW_OK);
    return ew_json_typeof(expect) == EW_JSON_ARRAY ? batch_is(expect, line) : answer_is(expect, line);
}

static const char *difference(const char *id, int where) {
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (strcmp(differences[i].id, id) == 0 && differences[i].where & where)
            return differences[i].got;
    return NULL;
}

static void run_case(const corpus *c, const char *id, int where, rig_split split) {
    world w;
    size_t n = 0;
    char *text = corpus_text(c, "/send");
    unsigned char *bytes = text ? NULL : corpus_hex(c, "/send_hex", &n);
    begin(&w, where == STDIO, (ew_limits){0});
    w.r.split = split;
    rig_say(w.pair, text ? (const void *)text : bytes, text ? strlen(text) : n);
    say_bytes(w.pair, "\n", 1);
    const char *got = w.pair->end[RIG_CLIENT].got ? w.pair->end[RIG_CLIENT].got : "", *expected = difference(id, where);
    if (expected ? !world_matches(&w, expected, got, strlen(got)) : !lines_are(ew_json_get(c->row, "/expect"), got))
        fail_msg("%s (%s): %.400s", id, where == STDIO ? "stdio" : "socket", got);
    world_done(&w);
    free(text);
    free(bytes);
}

static void test_wire_jsonrpc__corpus(void **state) {
    (void)state;
    corpus c;
    size_t n = 0;
    if (!corpus_open(&c, EW_SHARED, "own-jsonrpc/jsonrpc-cases.jsonl"))
        skip();
    while (corpus_next(&c)) {
        char *id = corpus_text(&c, "/id"), *wire = corpus_text(&c, "/wire");
        if (!wire || strcmp(wire, "any") == 0 || strcmp(wire, "jsonrpc") == 0) {
            run_case(&c, id, SOCKET, RIG_WHOLE);
            run_case(&c, id, STDIO, RIG_WHOLE);
            run_case(&c, id, SOCKET, RIG_RANDOM);
            n++;
        }
        free(id);
        free(wire);
    }
    corpus_close(&c);
    assert_true(n >= 50);
}

/* ---- own-ndjson-stream ---- */

#define ECHO(id) RPC "'id':" id ",'result':null}\n"
#define INVALID(problem) FAULT(-32600, problem, "INVALID_ARGUMENT")
#define BAD_JSON RPC "'id':null,'error':{'code':-32700,'message':'not JSON'}}\n"

static const struct {
    const char *id, *got, *got_stdio; /* got_stdio NULL: the same */
    uint64_t dropped;
    bool closes; /* a socket */
} streams[] = {
    {"plain", RPC "'id':'1','result':{}}\n", NULL, 0, false},
    {"open-data-close", RPC "'id':'s1','result':3}\n", NULL, 0, false},
    {"data-before-open", "", NULL, 1, false},
    {"data-after-close", RPC "'id':'s1','result':0}\n", NULL, 1, false},
    {"open-twice", RPC "'id':'s1','error':" INVALID("a call with this id still runs") "}\n", NULL, 0, false},
    {"stream-4", RPC "'id':'s1','error':" INVALID("stream must be 0, 1, 2 or 3") "}\n", NULL, 0, false},
    {"stream-string", RPC "'id':'s1','error':" INVALID("stream must be 0, 1, 2 or 3") "}\n", NULL, 0, false},
    {"stream-frame-with-method", "", NULL, 1, false},
    {"null-message", FOREIGN, ECHO("'1'"), 0, true}, /* null is passed over, but not as the first line of a socket */
    {"empty-lines", ECHO("'1'"), NULL, 0, false},
    {"two-on-a-line", ECHO("'1'") ECHO("'2'"), NULL, 0, false},
    {"pretty-printed", ECHO("'1'"), NULL, 0, false},
    {"line-over-limit", "", NULL, 0, false}, /* it is skipped: its end has not come, and its time is not over */
    {"unread-flood", "", NULL, 0, false},
    {"open-never-closed",
     RPC "'id':'s1','error':" FAULT(-32000, "the input stream was silent for too long", "DEADLINE_EXCEEDED") "}\n",
     NULL, 0, false},
    {"response-opens-stream", "", NULL, 3, false},
    {"id-number", ECHO("1"), NULL, 0, false},
    {"utf8-split", RPC "'id':'1','result':{'x':'\xe2\x82\xac\xf0\x9f\x98\x80'}}\n", NULL, 0, false},
    {"http-get-on-port", "", BAD_JSON BAD_JSON, 0, true},
    {"garbage-then-call", FOREIGN, BAD_JSON ECHO("'1'"), 0, true},
};

static void run_stream(const corpus *c, size_t row, bool stdio, rig_split split) {
    world w;
    size_t n;
    const char *id = streams[row].id,
               *expected = stdio && streams[row].got_stdio ? streams[row].got_stdio : streams[row].got;
    bool flood = strcmp(id, "unread-flood") == 0, waits = strcmp(id, "open-never-closed") == 0;
    unsigned char *bytes = corpus_hex(c, "/send_hex", &n);
    upload_reads = !flood;
    begin(&w, stdio, (ew_limits){.frame_bytes = 32 * 1024});
    w.r.split = split;
    say_bytes(w.pair, bytes, n);
    free(bytes);
    if (flood) /* reading stops when the receiver does not take items */
        assert_false(w.pair->end[RIG_SERVER].reading);
    if (waits || streams[row].dropped) /* a frame of no call is kept for a moment */
        rig_advance(&w.r, waits ? 30 * 1000 : 4000);
    const char *got = w.pair->end[RIG_CLIENT].got ? w.pair->end[RIG_CLIENT].got : "";
    if (!world_matches(&w, expected, got, strlen(got)))
        fail_msg("%s (%s): %.400s", id, stdio ? "stdio" : "socket", got);
    if (streams[row].dropped)
        assert_int_equal(world_dropped(&w), streams[row].dropped);
    assert_int_equal(world_over(&w), streams[row].closes && !stdio);
    world_done(&w);
}

static void test_wire_jsonrpc__stream_corpus(void **state) {
    (void)state;
    corpus c;
    size_t n = 0;
    if (!corpus_open(&c, EW_SHARED, "own-ndjson-stream/ndjson-stream-cases.jsonl"))
        skip();
    while (corpus_next(&c)) {
        char *id = corpus_text(&c, "/id");
        size_t row = 0;
        while (row < sizeof streams / sizeof *streams && strcmp(streams[row].id, id) != 0)
            row++;
        if (row == sizeof streams / sizeof *streams)
            fail_msg("%s is in no table", id);
        for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
            run_stream(&c, row, false, (rig_split)split);
            run_stream(&c, row, true, (rig_split)split);
        }
        free(id);
        n++;
    }
    corpus_close(&c);
    assert_true(n >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_jsonrpc__corpus),
        cmocka_unit_test(test_wire_jsonrpc__stream_corpus),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
