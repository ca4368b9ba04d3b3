/*
 * tests/unit/wire/test_stepflow_http_replay_call.c: what Stepflow's own component servers answered, answered to calls of
 * ours; and what they asked meanwhile.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_http_ear.h"
#include "unit/wire/stepflow_replay.h"
#include "support/json_or.h"
#include "wire/stepflow/blob_id.h"

/* How calls ended that did not succeed. */
static const struct {
    const char *name;
    ew_status status;
} failures[] = {
    {"ex-2", EW_STATUS_UNKNOWN},          /* -32003 and -32100 */
    {"ex-3", EW_STATUS_NOT_FOUND},        /* -32001 */
    {"ex-5", EW_STATUS_INVALID_ARGUMENT}, /* 400, -32600: without an attempt; we always send one */
    {"sse-3", EW_STATUS_UNKNOWN},
    {"sse-4", EW_STATUS_UNKNOWN},
    {"h-1", EW_STATUS_UNKNOWN}, /* 406, a text */
    {"h-2", EW_STATUS_UNKNOWN},
    {"h-3", EW_STATUS_UNKNOWN},
    {"h-4", EW_STATUS_INVALID_ARGUMENT}, /* 415 */
    {"bad-3", EW_STATUS_INVALID_ARGUMENT},
    {"bad-4", EW_STATUS_INVALID_ARGUMENT},
};

typedef struct called {
    world w;
    ew__blobs *blobs;
    const char *file;
    rig_pair *pair;
    rig_call *rc;    /* NULL: the present row is no answer to a call */
    char name[60];   /* the id that the recorded runtime gave it */
    char *hello;     /* the recorded answer to initialize */
    char *texts[60]; /* that calls borrow */
    char *said;      /* our reply to what was asked, until the recorded one is seen */
    size_t n_texts, n_done, n_failed, n_asked;
} called;

static char *keep(called *c, char *text) {
    assert_true(text && c->n_texts < N_OF(c->texts));
    return c->texts[c->n_texts++] = text;
}

/* The server that was recorded says hello as it did then. */
static void greet(called *c) {
    hear_initialize(&c->w, c->pair);
    ew_str hello = ew_str_from(c->hello);
    char *ours = replaced(hello, ew_json_get(hello, "/id"), c->w.ids[9]);
    answer(&c->w, c->pair, ours);
    free(ours);
    hear_post(&c->w, c->pair, INITIALIZED);
    say_text(c->pair, "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n\"\"");
}

/* The same call, by us. */
static void on_request(called *c, ew_str row) {
    ew_str body = ew_json_get(row, "/frame/body"), method = json_str_or(body, "/method", EW_STR(""));
    ew_str id = json_str_or(body, "/id", EW_STR("")), component = ew_json_get(body, "/params/component");
    c->rc = NULL;
    if (!ew__str_is(method, EW_STR("components/execute")) && !ew__str_is(method, EW_STR("components/list")))
        return;
    ew_str input = ew_json_get(body, "/params/input");
    char *given = keep(c, strndup(input.len ? input.ptr : "1", input.len ? input.len : 1));
    char *key = keep(c, ew_json_typeof(component) == EW_JSON_STRING ? text_of(component) : strdup("/echo"));
    (void)snprintf(c->name, sizeof c->name, "%.*s", (int)id.len, id.ptr);
    c->pair = server(&c->w);
    c->rc = ew__str_is(method, EW_STR("components/list")) ? open_list(c->pair) : open_call(c->pair, key, given);
    if (strstr(raw_end(c->pair)->got, "\"initialize\""))
        greet(c);
    char *head = take_head_at(c->pair, __LINE__), *text = take_body_at(c->pair, head, __LINE__);
    ew_str ours = ew_str_from(text), our_id = ew_json_get(ours, "/id");
    assert_true(ew__str_is(json_str_or(ours, "/method", EW_STR("")), method));
    assert_true(!input.len || ew__str_is(ew_json_get(ours, "/params/input"), input));
    (void)snprintf(c->w.ids[1], sizeof c->w.ids[1], "%.*s", (int)our_id.len, our_id.ptr);
    heard.len = heard.n = 0;
    free(head);
    free(text);
}

/* What was answered is what our caller is told. */
static void check_end(called *c, ew_str body) {
    const rig_call *rc = c->rc;
    ew_str output = ew_json_get(body, "/result/output"), message = ew_json_get(body, "/error/message");
    if (!rc->ended)
        fail_msg("%s, %s: not ended", c->file, c->name);
    if (ew_json_get(body, "/result").len) {
        assert_int_equal(rc->status, EW_STATUS_OK);
        if (output.len)
            assert_true(ew__str_is(ew_str_from(rc->result), output));
        else
            assert_non_null(
                strstr(rc->result, "\"/echo\":{\"key\":\"/echo\",\"name\":\"echo\",\"actionType\":\"component\""));
        c->n_done++;
        return;
    }
    for (size_t i = 0; i < N_OF(failures); i++) {
        if (strcmp(failures[i].name, c->name) != 0)
            continue;
        char *text = text_of(message.len ? message : ew_json_get(body, "/error"));
        assert_string_equal(rc->message, text);
        assert_int_equal(rc->status, failures[i].status);
        assert_int_equal(rc->origin, EW_ORIGIN_ACTION);
        c->n_failed++;
        free(text);
        return;
    }
    fail_msg("%s, %s: %s", c->file, c->name, rc->message);
}

static char *with_our_id(called *c, ew_str text) {
    ew_str id = ew_json_get(text, "/id");
    return id.len ? replaced(text, id, c->w.ids[1]) : strndup(text.ptr, text.len);
}

static void say_head(called *c, ew_str row) {
    char head[800];
    ew_str line = json_str_or(row, "/frame/http", EW_STR(""));
    (void)snprintf(head, sizeof head, "%.*s\r\n", (int)line.len, line.ptr);
    add_fields(head, sizeof head, row);
    rig_say(c->pair, head, strlen(head));
}

static void on_answer(called *c, ew_str row) {
    char length[60], *text = text_of(ew_json_get(row, "/frame/body_text"));
    if (!c->hello && ew_json_get(ew_str_from(text), "/result").len)
        c->hello = strdup(text);
    if (c->rc) {
        char *body = with_our_id(c, ew_str_from(text));
        say_head(c, row);
        (void)snprintf(length, sizeof length, "content-length: %zu\r\n\r\n", strlen(body));
        rig_say(c->pair, length, strlen(length));
        say_text(c->pair, body);
        check_end(c, ew_str_from(text));
        free(body);
    }
    c->rc = NULL;
    free(text);
}

static void say_chunk(called *c, const char *text) {
    char size[20];
    (void)snprintf(size, sizeof size, "%zx\r\n", strlen(text));
    rig_say(c->pair, size, strlen(size));
    rig_say(c->pair, text, strlen(text));
    say_text(c->pair, "\r\n");
}

static void on_event(called *c, ew_str row) {
    char *raw = text_of(ew_json_get(row, "/raw"));
    ew_str event = ew__str(raw + 6, strlen(raw) - 8);
    if (ew_json_get(event, "/method").len) {
        say_chunk(c, raw);
        c->n_asked++;
        assert_int_equal(heard.n, 1);
        c->said = strdup(strstr(heard.bytes, "\r\n\r\n") + 4);
        heard.len = heard.n = 0;
    } else {
        char *ours = with_our_id(c, event), *text = malloc(strlen(ours) + 20);
        assert_non_null(text);
        (void)snprintf(text, strlen(ours) + 20, "data: %s\n\n", ours);
        say_chunk(c, text);
        check_end(c, event);
        c->rc = NULL;
        free(ours);
        free(text);
    }
    free(raw);
}

/* The recorded runtime replied: we did, too, and alike; but there are no runs here. */
static void on_reply(called *c, ew_str row) {
    char theirs[500] = "", ours[500] = "";
    ew_str body = ew_json_get(row, "/frame/body"), said = ew_str_from(c->said);
    assert_true(ew__str_is(ew_json_get(body, "/id"), ew_json_get(said, "/id")));
    if (ew_json_get(body, "/result/runId").len) {
        assert_int_equal(json_int_or(said, "/error/code", 0), -32601);
    } else if (ew_json_get(body, "/result").len) {
        add_compact(theirs, sizeof theirs, "", ew_json_get(body, "/result"));
        add_compact(ours, sizeof ours, "", ew_json_get(said, "/result"));
    } else {
        add_compact(theirs, sizeof theirs, "", ew_json_get(body, "/error/code"));
        add_compact(ours, sizeof ours, "", ew_json_get(said, "/error/code"));
    }
    assert_string_equal(ours, theirs);
    free(c->said);
    c->said = NULL;
}

static void on_row(called *c, ew_str row) {
    switch (kind_of(row)) {
    case ROW_REQUEST:
        on_request(c, row);
        break;
    case ROW_REPLY:
        on_reply(c, row);
        break;
    case ROW_EVENT:
        on_event(c, row);
        break;
    case ROW_STREAM:
        say_head(c, row);
        say_text(c->pair, "\r\n");
        break;
    case ROW_ANSWER:
        if (!begins(json_str_or(row, "/frame/http", EW_STR("")), "HTTP/1.1 202"))
            on_answer(c, row);
        break;
    default:
        break;
    }
}

static void test_wire_stepflow_http_replay__to_client(void **state) {
    (void)state;
    static const struct {
        const char *file;
        size_t done, failed, asked;
    } files[] = {{"2025-08-python-http", 4, 10, 6}, {"2026-01-py092-http", 6, 3, 3}, {"2026-03-py0112-http", 8, 3, 1}};
    for (size_t i = 0; i < N_OF(files); i++) {
        recording rec;
        if (!load(&rec, files[i].file))
            skip();
        called *c = calloc(1, sizeof *c);
        assert_non_null(c);
        world_init(&c->w, NULL, NULL, (rig_options){.serve = &ear});
        c->file = files[i].file;
        assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 100000, &c->blobs), EW_OK);
        client_site(&c->w)->blobs = c->blobs;
        rig_pair *open = server(&c->w); /* as long as one is there, nobody is greeted again */
        for (size_t k = 0; k < rec.n; k++)
            on_row(c, ew_str_from(rec.row[k]));
        hear_nothing(open);
        assert_int_equal(c->n_done, files[i].done);
        assert_int_equal(c->n_failed, files[i].failed);
        assert_int_equal(c->n_asked, files[i].asked);
        world_done(&c->w);
        c->blobs->free(c->blobs);
        for (size_t k = 0; k < c->n_texts; k++)
            free(c->texts[k]);
        free(c->hello);
        free(c);
        unload(&rec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_replay__to_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
