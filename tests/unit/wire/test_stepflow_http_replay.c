/*
 * tests/unit/wire/test_stepflow_http_replay.c: what a runtime said to Stepflow's own component servers, said to ours,
 * which has components of the same names.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_replay.h"
#include "support/json_or.h"
#include "wire/stepflow/blob_id.h"

/* ---- the components of the recorded servers ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    ew_str message = ew_json_get(ew_call_input(call), "/message");
    if (message.len)
        (void)ew_call_donef(call, "{\"echo\":%j}", message);
    else
        (void)ew_call_fail(call, EW_STATUS_UNKNOWN, "Object missing required field `message`");
}

static void boom(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_UNKNOWN, "boom");
}

static void wild(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("{\"matched\":\"a/b/c\"}"));
}

/* Those that call back are played by the test. */
static void held(ew_call *call, void *arg) {
    (void)arg;
    rig_of(call)->held = ew_call_ref(call);
}

static ew__registry registry;
static ew__actions *actions;

static int setup(void **state) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } table[] = {{"/py/echo", echo},       {"/py/ctx_unused", echo},    {"/py/boom", boom},
                 {"/py/core/a/b/c", wild}, {"/py/roundtrip", held},     {"/py/get_missing", held},
                 {"/py/eval_flow", held},  {"/py/parallel_blobs", held}};
    (void)state;
    ew_err err = ew__registry_init(&registry, ew_env_default());
    for (size_t i = 0; i < N_OF(table) && err == EW_OK; i++)
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

/* ---- blobs that are reached by a URL: here from a store at hand ---- */

typedef struct ways {
    struct ew__outbound base;
    ew__blobs *blobs;
    unsigned n;
} ways;

static ew_err on_way(struct ew__outbound *base, ew__executor *executor, const ew__wire *wire, ew_str url,
                     ew_call *call) {
    ways *by = (ways *)(void *)base;
    (void)executor;
    assert_ptr_equal(wire, &ew__wire_blobs);
    assert_true(begins(url, "http://127.0.0.1:") &&
                ew__str_is(ew__str(url.ptr + url.len - 13, 13), EW_STR("/api/v1/blobs")));
    ew__json_doc doc;
    char text[400];
    bool error = false;
    int n = snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%.*s\",\"params\":%.*s}",
                     (int)call->key.len, call->key.ptr, (int)call->input.len, call->input.ptr);
    ew__rpc message;
    ew__buf out;
    assert_int_equal(ew__json_parse(&doc, ew__str(text, (size_t)n)), EW_OK);
    ew__rpc_read(&doc, 0, &message);
    ew__buf_init(&out, ew_env_default(), 10000);
    assert_int_equal(ew__sf_serve_ask(&(ew__site){.blobs = by->blobs}, &message, &out, &error), EW_OK);
    assert_false(error);
    by->n++;
    (void)ew__call_done_valid(call, ew__buf_view(&out));
    ew__buf_done(&out);
    return EW_OK;
}

/* ---- to our serving side ---- */

#define MAX_ASKS 4

typedef struct served {
    world w;
    ways by;
    const char *file;
    char name[100];      /* of the request, in the table */
    rig_pair *pair;      /* where it was said */
    ew_call *call;       /* its handler is the test */
    back asks[MAX_ASKS]; /* what that has asked */
    char params[MAX_ASKS][300];
    unsigned n_asks, n_heard;
    char theirs[MAX_ASKS][40], ours[MAX_ASKS][64]; /* ids of what was asked, with quotes */
    bool replied;                                  /* the next answer is to a reply */
    size_t n_checked, n_differences;
} served;

/* Where ours answers otherwise, and why. */
static const struct {
    const char *file, *name, *ours;
} differences[] = {
    /* any code of an execution that failed is the same to runtimes before 0.11; this is 0.11's */
    {"2025-08", "ex-2", "200 error -32100"},
    {"2025-08", "sse-3", "200 error -32100"},
    {"2025-08", "sse-4", "200 error -32100"},
    {"2026-01", "ex-2", "200 error -32100"},
    /* everything is accepted by who says so, or says nothing */
    {"2025-08", "h-2", "200 list"},
    {"2025-08", "h-3", "200 list"},
    /* a listener of its own: every path is that of messages */
    {"2025-08", "POST /other", "400 error -32600"},
    /* the codes and ids of JSON-RPC, as the protocol's own page has them */
    {"2025-08", "bad JSON", "400 error -32700"},
    {"2025-08", "empty body", "400 error -32700"},
    {"2025-08", "bad-1", "200 error -32601"},
    {"2026-01", "infer", "200 error -32601"},
    {"2026-03", "infer", "200 error -32601"},
    /* params may be missing, a component may be an object: as on that page (but this one has no message to echo) */
    {"2025-08", "bad-3", "200 list"},
    {"2025-08", "bad-4", "200 error -32100"},
    /* and a notification is never answered with an error */
    {"2025-08", "unknown notification", "202"},
    /* all generations are served at once */
    {"2026-01", "init-camel", "200 hello"},
    {"2026-03", "init-snake", "200 hello"},
    {"2026-01", "ex-5", "200 result {\"echo\":\"x\"}"},
    {"2026-03", "ex-5", "200 result {\"echo\":\"x\"}"},
    /* references to blobs are not resolved: initialize is answered with supportsBlobRefs false */
    {"2026-03", "blobify-1",
     "200 result "
     "{\"echo\":\"MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM"
     "MMMMMMMMM\"}"},
};

static const char *difference_of(const served *s) {
    for (size_t i = 0; i < N_OF(differences); i++)
        if (strncmp(s->file, differences[i].file, 7) == 0 && strcmp(s->name, differences[i].name) == 0)
            return differences[i].ours;
    return NULL;
}

static void check_short(served *s, const char *theirs, const char *ours) {
    const char *expected = difference_of(s);
    s->n_differences += expected != NULL && strcmp(theirs, ours) != 0;
    if (strcmp(ours, expected ? expected : theirs) != 0)
        fail_msg("%s, %s: %s; the recorded server: %s", s->file, s->name, ours, theirs);
    s->n_checked++;
}

static void say_request(served *s, rig_pair *pair, ew_str row, const char *body) {
    char head[800];
    ew_str line = json_str_or(row, "/frame/http", EW_STR("")),
           host = json_str_or(row, "/frame/headers/Host", EW_STR(""));
    server_site(&s->w)->port = (uint16_t)strtoul(host.ptr + strlen("127.0.0.1:"), NULL, 10);
    (void)snprintf(head, sizeof head, "%.*s HTTP/1.1\r\n", (int)line.len, line.ptr);
    add_fields(head, sizeof head, row);
    rig_say(pair, head, strlen(head));
    (void)snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", strlen(body));
    rig_say(pair, head, strlen(head));
    say_text(pair, body);
}

/* The handler's next step: what it asks, or its end. */
static void ask_next(served *s, const char *method, const char *params) {
    assert_true(s->n_asks < MAX_ASKS);
    (void)snprintf(s->params[s->n_asks], sizeof s->params[0], "%s", params);
    ask(&s->w, s->call, &s->asks[s->n_asks], method, s->params[s->n_asks]);
    s->n_asks++;
}

static void end_with(served *s, const char *result) {
    ew_call *call = s->call;
    s->call = NULL;
    if (result)
        assert_int_equal(ew_call_done(call, ew_str_from(result)), EW_OK);
    else
        assert_int_equal(ew_call_fail(call, EW_STATUS_UNKNOWN, "Component execution failed"), EW_OK);
    rig_run(&s->w.r);
    ew_call_unref(call);
}

static void act_roundtrip(served *s, ew_str data) {
    char text[300];
    if (s->n_asks == 0 && data.len) {
        (void)snprintf(text, sizeof text, "{\"data\":%.*s,\"blob_type\":\"data\"}", (int)data.len, data.ptr);
        ask_next(s, "blobs/put", text);
    }
    if (s->n_asks == 1 && s->asks[0].ended)
        ask_next(s, "blobs/get", s->asks[0].text);
    if (s->n_asks == 2 && s->asks[1].ended) {
        ew_str id = ew_json_get(ew_str_from(s->asks[0].text), "/blob_id");
        (void)snprintf(text, sizeof text, "{\"blob_id\":%.*s,\"same\":true}", (int)id.len, id.ptr);
        end_with(s, text);
    } else if (!data.len) {
        end_with(s, NULL);
    }
}

static void act_parallel(served *s) {
    char text[400] = "{\"ids\":[";
    for (unsigned i = 0; s->n_asks < 3; i++) {
        char params[60];
        (void)snprintf(params, sizeof params, "{\"data\":{\"i\":%u},\"blob_type\":\"data\"}", i);
        ask_next(s, "blobs/put", params);
    }
    for (unsigned i = 0; i < 3; i++) {
        if (!s->asks[i].ended)
            return;
        ew_str id = ew_json_get(ew_str_from(s->asks[i].text), "/blob_id");
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%s%.*s", i ? "," : "", (int)id.len, id.ptr);
    }
    size_t n = strlen(text);
    (void)snprintf(text + n, sizeof text - n, "]}");
    end_with(s, text);
}

static void act_flow(served *s, ew_str input) {
    char text[400];
    ew_str flow = ew_json_get(input, "/flow_id"), value = ew_json_get(input, "/input");
    if (s->n_asks == 0) {
        (void)snprintf(text, sizeof text, "{\"flowId\":%.*s,\"inputs\":[%.*s],\"wait\":true}", (int)flow.len, flow.ptr,
                       (int)value.len, value.ptr);
        ask_next(s, "runs/submit", text);
    } else if (s->asks[0].ended) {
        ew_str result = ew_json_get(ew_str_from(s->asks[0].text), "/results/0/result/result");
        (void)snprintf(text, sizeof text, "{\"r\":%.*s}", (int)result.len, result.ptr);
        end_with(s, text);
    }
}

static void act(served *s) {
    if (!s->call)
        return;
    ew_str key = ew_call_key(s->call), input = ew_call_input(s->call);
    if (ew__str_is(key, EW_STR("/py/roundtrip")))
        act_roundtrip(s, ew_json_get(input, "/data"));
    else if (ew__str_is(key, EW_STR("/py/parallel_blobs")))
        act_parallel(s);
    else if (ew__str_is(key, EW_STR("/py/eval_flow")))
        act_flow(s, input);
    else if (s->n_asks == 0)
        ask_next(s, "blobs/get", "{\"blob_id\":\"0000000000000000000000000000000000000000000000000000000000000000\"}");
    else if (s->asks[0].ended)
        end_with(s, s->asks[0].status == EW_STATUS_OK ? "null" : NULL);
}

static void on_request(served *s, ew_str row, ew_str note) {
    char *body = body_of(row);
    ew_str id = json_str_or(row, "/frame/body/id", EW_STR("")),
           length = ew_json_get(row, "/frame/headers/Content-Length");
    if (!id.len)
        id = note;
    (void)snprintf(s->name, sizeof s->name, "%.*s", (int)id.len, id.ptr);
    assert_true(!length.len || strtoul(length.ptr + 1, NULL, 10) == strlen(body)); /* as it was, to the byte */
    s->n_asks = s->n_heard = 0;
    s->pair = runtime(&s->w);
    say_request(s, s->pair, row, body);
    s->call = s->w.r.held;
    s->w.r.held = NULL;
    act(s);
    free(body);
}

/* The recorded runtime replies to what the recorded server asked: the same to ours, with the id that ours has made. */
static void on_reply(served *s, ew_str row) {
    char *body = body_of(row), *ours = NULL;
    ew_str id = ew_json_get(ew_str_from(body), "/id");
    for (unsigned i = 0; i < s->n_heard && !ours; i++)
        if (ew__str_is(id, ew_str_from(s->theirs[i])))
            ours = replaced(ew_str_from(body), id, s->ours[i]);
    assert_non_null(ours);
    rig_pair *pair = runtime(&s->w);
    say_request(s, pair, row, ours ? ours : "");
    hear(&s->w, pair, 202, "");
    s->replied = true;
    free(ours);
    free(body);
    act(s);
}

/* The same question, whatever is asked besides: each member of ours is the recorded one. */
static void on_ask(served *s, ew_str theirs) {
    rig_end *end = raw_end(s->pair);
    assert_true(s->n_heard < s->n_asks);
    const char *data = strstr(end->got, "data: ");
    assert_non_null(data);
    size_t n = (size_t)(strstr(data, "\n\n") - data) - 6;
    ew_str ours = ew__str(data + 6, n), id = ew_json_get(ours, "/id"), their_id = ew_json_get(theirs, "/id");
    ew_json_iter it = {.offset_ = 0};
    assert_true(ew__str_is(ew_json_get(ours, "/method"), ew_json_get(theirs, "/method")));
    while (ew_json_next(ew_json_get(ours, "/params"), &it)) {
        ew_str recorded = ew_json_member(ew_json_get(theirs, "/params"), ew__str(it.key.ptr + 1, it.key.len - 2));
        bool trace = ew__str_is(it.key, EW_STR("\"observability\"")); /* it had none; ours tells of its own */
        if (!trace && !ew__str_is(it.value, recorded))
            fail_msg("%s, %s: %.*s", s->file, s->name, (int)ours.len, ours.ptr);
    }
    (void)snprintf(s->ours[s->n_heard], sizeof s->ours[0], "%.*s", (int)id.len, id.ptr);
    (void)snprintf(s->theirs[s->n_heard++], sizeof s->theirs[0], "%.*s", (int)their_id.len, their_id.ptr);
    rig_forget(s->pair, (size_t)(data - end->got) + 6 + n + 2);
}

/* Our whole answer, plain or as the last event. */
static void take_answer(served *s, char *out, size_t size) {
    rig_end *end = raw_end(s->pair);
    char *last = end->got_len ? strstr(end->got, "data: {\"jsonrpc\"") : NULL;
    if (last) {
        *strstr(last, "\n\n") = '\0';
        shorten(out, size, 200, ew_str_from(last + 6));
        return;
    }
    char *head = take_head_at(s->pair, __LINE__), *body = take_body_at(s->pair, head, __LINE__);
    shorten(out, size, (int)strtol(head + 9, NULL, 10), ew_str_from(body));
    free(head);
    free(body);
}

static void on_answer(served *s, int status, ew_str body) {
    char theirs[400], ours[400];
    shorten(theirs, sizeof theirs, status, body);
    take_answer(s, ours, sizeof ours);
    check_short(s, theirs, ours);
    if (strcmp(s->name, "init-snake") == 0) /* to which the recorded server did not listen */
        ew__instance_set_blob_url(&s->w.instance, &(ew__principal){.kind = EW__WHO_STRANGER},
                                  EW_STR("http://127.0.0.1:45885/api/v1/blobs"));
}

static void on_row(served *s, ew_str row, ew_str *note) {
    char *text = NULL;
    switch (kind_of(row)) {
    case ROW_NOTE:
        *note = json_str_or(row, "/frame/note", EW_STR(""));
        break;
    case ROW_REQUEST:
        on_request(s, row, *note);
        break;
    case ROW_REPLY:
        on_reply(s, row);
        break;
    case ROW_EVENT:
        text = text_of(ew_json_get(row, "/raw"));
        ew_str event = ew__str(text + 6, strlen(text) - 8);
        if (ew_json_get(event, "/method").len)
            on_ask(s, event);
        else
            on_answer(s, 200, event);
        break;
    case ROW_ANSWER:
        if (!s->replied) {
            text = text_of(ew_json_get(row, "/frame/body_text"));
            on_answer(s, (int)strtol(ew_json_get(row, "/frame/http").ptr + 10, NULL, 10), ew_str_from(text));
        }
        s->replied = false;
        break;
    default:
        break;
    }
    free(text);
}

static void test_wire_stepflow_http_replay__to_server(void **state) {
    (void)state;
    static const struct {
        const char *file;
        size_t n_answers;
        unsigned n_ways;
    } files[] = {{"2025-08-python-http", 31, 0}, {"2026-01-py092-http", 14, 0}, {"2026-03-py0112-http", 17, 2}};
    size_t n_differences = 0;
    for (size_t i = 0; i < N_OF(files); i++) {
        recording rec;
        ew_str note = EW_STR("");
        if (!load(&rec, files[i].file))
            skip();
        served *s = calloc(1, sizeof *s);
        assert_non_null(s);
        world_plain(&s->w);
        s->file = files[i].file;
        s->by = (ways){.base = {.open = on_way}};
        assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 100000, &s->by.blobs), EW_OK);
        server_site(&s->w)->actions = actions;
        server_site(&s->w)->instance = &s->w.instance;
        server_site(&s->w)->outbound = &s->by.base;
        for (size_t k = 0; k < rec.n; k++)
            on_row(s, ew_str_from(rec.row[k]), &note);
        assert_int_equal(s->n_checked, files[i].n_answers);
        assert_int_equal(s->by.n, files[i].n_ways);
        n_differences += s->n_differences;
        world_done(&s->w);
        s->by.blobs->free(s->by.blobs);
        unload(&rec);
        free(s);
    }
    assert_int_equal(n_differences, N_OF(differences)); /* the table tells of no others */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_replay__to_server),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
