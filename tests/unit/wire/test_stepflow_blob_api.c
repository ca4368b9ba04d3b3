/*
 * tests/unit/wire/test_stepflow_blob_api.c: the Blob HTTP API, both sides: against each other, and each against a test
 * that says what real peers say.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "support/corpus.h"
#include "support/json_or.h"
#include "unit/wire/stepflow_http_world.h"
#include "wire/stepflow/blob_id.h"

#define BASE "/api/v1/blobs"
#define VALUE_ID "666c1aa02e8068c6d5cc1d3295009432c16790bec28ec8ce119d0d1a18d61319" /* of {"k":"v"} */
#define E_ID "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086"     /* of "e", with an accent */

static ew__blobs *blobs_init_as(world *w, rig_options options, size_t max_bytes) {
    ew__blobs *blobs = NULL;
    world_init(w, &ew__wire_blobs, &ew__blobs_guest, options);
    assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, max_bytes, &blobs), EW_OK);
    server_site(w)->blobs = blobs;
    server_site(w)->path = client_site(w)->path = EW_STR(BASE);
    return blobs;
}

static ew__blobs *blobs_init(world *w) { return blobs_init_as(w, (rig_options){.seed = 1}, 100000); }

static void blobs_done(world *w, ew__blobs *blobs) {
    world_done(w);
    blobs->free(blobs);
}

static rig_call *call_with(world *w, rig_pair *pair, const char *key, const char *input) {
    char *json = expand(w, input);
    rig_call *rc = rig_open(pair, &(rig_request){.key = key, .input = ew_str_from(json)});
    rig_run(&w->r);
    if (rc->call)
        assert_int_equal(ew__arena_str(&rc->call->arena, rc->call->input, &rc->call->input), EW_OK);
    free(json);
    return rc;
}

/* ---- against each other ---- */

static void test_wire_stepflow_blob_api__both(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        world w;
        ew__blobs *blobs = blobs_init_as(&w, (rig_options){.split = (rig_split)split}, 100000);
        rig_pair *pair = rig_connect(&w.r);
        rig_call *rc = call_with(&w, pair, "blobs/put", "{'data':{'k':'v'},'blob_type':'data'}");
        check_done(&w, rc, "{'blob_id':'" VALUE_ID "'}");
        rc = call_with(&w, pair, "blobs/put", "{'data':\n '\xc3\xa9','blob_type':'flow','observability':null}");
        check_done(&w, rc, "{'blob_id':'" E_ID "'}");
        rc = call_with(&w, pair, "blobs/get", "{'blob_id':'" VALUE_ID "'}");
        check_done(&w, rc, "{'data':{'k':'v'},'blob_type':'data'}");
        rc = call_with(&w, pair, "blobs/get", "{'blob_id':'" E_ID "'}");
        check_done(&w, rc, "{'data':'\\u00e9','blob_type':'flow'}");
        rc = call_with(&w, pair, "blobs/put", "{'data':null}");
        check_done(&w, rc, "{'blob_id':'74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b'}");
        rc = call_with(&w, pair, "blobs/get", "{'blob_id':'nope'}");
        check_failed(rc, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "Blob 'nope' not found");
        assert_int_equal(rig_capacity(pair), 1); /* all on one connection */
        blobs_done(&w, blobs);
    }
}

static void test_wire_stepflow_blob_api__large(void **state) {
    (void)state;
    enum { N = 300 * 1000 };
    char *input = malloc(N + 100), *got = malloc(N + 100), get[200];
    assert_true(input && got);
    (void)snprintf(input, N + 100, "{'data':'%0*d'}", N, 7);
    (void)snprintf(got, N + 100, "{'data':'%0*d','blob_type':'data'}", N, 7);
    world w;
    ew__blobs *blobs = blobs_init_as(&w, (rig_options){.split = RIG_RANDOM, .pipe_room = 9000}, 1000000);
    rig_pair *pair = rig_connect(&w.r);
    char *json = expand(&w, input);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "blobs/put", .input = ew_str_from(json)});
    rig_run(&w.r);
    assert_int_equal(rc->status, EW_STATUS_OK);
    (void)snprintf(get, sizeof get, "{'blob_id':%.66s}", rc->result + 11);
    rc = call_with(&w, pair, "blobs/get", get);
    check_done(&w, rc, got);
    blobs_done(&w, blobs);
    free(json);

    blobs = blobs_init_as(&w, (rig_options){.limits = {.frame_bytes = 1000}}, 1000000); /* too large for a payload */
    pair = rig_connect(&w.r);
    json = expand(&w, input);
    rc = rig_open(pair, &(rig_request){.key = "blobs/put", .input = ew_str_from(json)});
    rig_run(&w.r);
    check_failed(rc, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
                 "the input is too large: 300011 bytes, the limit is 875 (set by frame_bytes)");
    blobs_done(&w, blobs);
    free(json);
    free(input);
    free(got);
}

/* ---- what we ask ---- */

static void test_wire_stepflow_blob_api__requests(void **state) {
    (void)state;
    world w;
    ew__blobs *blobs = blobs_init(&w);
    rig_pair *pair = server(&w);
    rig_call *rc = call_with(&w, pair, "blobs/put", "{'blob_type':'flow','data':['\xc3\xa9',\n1]}");
    assert_string_equal(raw_end(pair)->got, "POST " BASE " HTTP/1.1\r\n" HOST "User-Agent: everywire/" EW_VERSION_STRING
                                            "\r\nAccept: application/json\r\n" JSON "Content-Length: 39\r\n\r\n"
                                            "{\"data\":[\"\\u00e9\",1],\"blobType\":\"flow\"}");
    rig_forget(pair, raw_end(pair)->got_len);
    assert_int_equal(rig_capacity(pair), 0);
    answer(&w, pair, "{'blobId':'b1','filename':'x'}");
    check_done(&w, rc, "{'blob_id':'b1'}");
    rc = call_with(&w, pair, "blobs/get", "{'blob_id':'a-Z_09'}");
    assert_string_equal(raw_end(pair)->got,
                        "GET " BASE "/a-Z_09 HTTP/1.1\r\n" HOST "User-Agent: everywire/" EW_VERSION_STRING
                        "\r\nAccept: application/json\r\n\r\n");
    rig_forget(pair, raw_end(pair)->got_len);
    answer(&w, pair, "{'data':[1, 2],'blobId':'a-Z_09'}");
    check_done(&w, rc, "{'data':[1, 2],'blob_type':'data'}");
    client_site(&w)->path = EW_STR(""); /* at the root */
    (void)call_with(&w, pair, "blobs/get", "{'blob_id':'x'}");
    assert_memory_equal(raw_end(pair)->got, "GET /x HTTP/1.1\r\n", 17);
    rig_forget(pair, raw_end(pair)->got_len);
    answer(&w, pair, "{'data':1}");
    rc = call_with(&w, pair, "blobs/put", "{'data':1}");
    assert_memory_equal(raw_end(pair)->got, "POST / HTTP/1.1\r\n", 17);
    rig_forget(pair, raw_end(pair)->got_len);
    answer(&w, pair, "{'blobId':'1'}");
    check_done(&w, rc, "{'blob_id':'1'}");
    blobs_done(&w, blobs);
}

/* What is no request is not sent: an id is one segment of a path, or it might be another path. */
static void test_wire_stepflow_blob_api__refused(void **state) {
    (void)state;
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    static const struct {
        const char *key, *input, *message;
    } table[] = {
        {"blobs/get", "{'blob_id':''}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'..'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'a/b'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'a\\/b'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'a?b'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'a%2fb'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'a\\r\\nb'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'a b'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'\xc3\xa9'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':'" X64 X64 "x'}", "blobs/get wants a blob_id"},
        {"blobs/get", "{'blob_id':7}", "blobs/get wants a blob_id"},
        {"blobs/get", "{}", "blobs/get wants a blob_id"},
        {"blobs/get", "'x'", "blobs/get wants a blob_id"},
        {"blobs/put", "{}", "blobs/put wants data, and data or flow as its blob_type"},
        {"blobs/put", "{'data':1,'blob_type':'binary'}", "blobs/put wants data, and data or flow as its blob_type"},
        {"blobs/put", "[]", "blobs/put wants data, and data or flow as its blob_type"},
    };
    world w;
    ew__blobs *blobs = blobs_init(&w);
    rig_pair *pair = server(&w);
    for (size_t i = 0; i < N_OF(table); i++) {
        rig_call *rc = call_with(&w, pair, table[i].key, table[i].input);
        peer_check_failed(rc, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_LOCAL, table[i].message, (int)i);
        hear_nothing(pair);
        assert_int_equal(rig_capacity(pair), 1);
    }
    (void)call_with(&w, pair, "blobs/get", "{'blob_id':'" X64 X64 "'}"); /* the longest one */
    assert_memory_equal(raw_end(pair)->got, "GET " BASE "/" X64 X64 " HTTP/1.1\r\n", 157);
    blobs_done(&w, blobs);
}

/* ---- what we are answered ---- */

static void test_wire_stepflow_blob_api__answers(void **state) {
    (void)state;
#define NONE_AT_ALL "the blob store's answer is none"
    static const struct {
        bool put;
        const char *head, *body, *result; /* result NULL: it failed */
        ew_status status;
        ew_origin origin;
        const char *message;
        bool retryable;
    } table[] = {
        {false, "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n",
         "{'code':404,'message':'Blob ^x^ not found'}", NULL, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION,
         "Blob 'x' not found", false},
        {false, "HTTP/1.1 404 Not Found\r\n", "no such thing", NULL, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "Not Found",
         false},
        {true, "HTTP/1.1 413 Payload Too Large\r\n", "length limit exceeded", NULL, EW_STATUS_RESOURCE_EXHAUSTED,
         EW_ORIGIN_ACTION, "Content Too Large", false},
        {true, "HTTP/1.1 400 Bad Request\r\n", "{'code':400,'message':'b\\u00e4d'}", NULL, EW_STATUS_INVALID_ARGUMENT,
         EW_ORIGIN_ACTION,
         "b\xc3\xa4"
         "d",
         false},
        {true, "HTTP/1.1 503 Service Unavailable\r\n", "{'message':7}", NULL, EW_STATUS_UNAVAILABLE, EW_ORIGIN_ACTION,
         "Service Unavailable", true},
        {false, "HTTP/1.1 500 Oops\r\n", "", NULL, EW_STATUS_INTERNAL, EW_ORIGIN_ACTION, "Internal Server Error",
         false},
        {true, "HTTP/1.1 200 OK\r\n", "{'blobId':'x','blobType':'data'}", "{'blob_id':'x'}", 0, 0, NULL, false},
        {true, "HTTP/1.1 200 OK\r\n", "{'blob_id':'x'}", NULL, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, NONE_AT_ALL,
         false},
        {true, "HTTP/1.1 200 OK\r\n", "[]", NULL, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, NONE_AT_ALL, false},
        {true, "HTTP/1.1 200 OK\r\n", "{", NULL, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, NONE_AT_ALL, false},
        {false, "HTTP/1.1 200 OK\r\n", "{'blobId':'x'}", NULL, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, NONE_AT_ALL,
         false},
        {false, "HTTP/1.1 200 OK\r\n", "{'data':null,'blobType':'flow'}", "{'data':null,'blob_type':'flow'}", 0, 0,
         NULL, false},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        world w;
        ew__blobs *blobs = blobs_init_as(&w, (rig_options){.split = i % 2 ? RIG_BYTES : RIG_WHOLE}, 1000);
        rig_pair *pair = server(&w);
        rig_call *rc = table[i].put ? call_with(&w, pair, "blobs/put", "{'data':1}")
                                    : call_with(&w, pair, "blobs/get", "{'blob_id':'x'}");
        say_message(&w, pair, table[i].head, table[i].body);
        if (table[i].result)
            check_done_at(&w, rc, table[i].result, (int)i);
        else
            peer_check_failed(rc, table[i].status, table[i].origin, table[i].message, (int)i);
        assert_int_equal(rc->retryable, table[i].retryable);
        assert_int_equal(rig_capacity(pair), 1);
        blobs_done(&w, blobs);
    }
}

static void test_wire_stepflow_blob_api__lost(void **state) {
    (void)state;
    world w;
    ew__blobs *blobs = blobs_init(&w);
    rig_pair *pair = server(&w);
    rig_call *rc = call_with(&w, pair, "blobs/put", "{'data':1}");
    rig_say_eof(pair);
    rig_run(&w.r);
    check_failed(rc, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, "the server closed the connection before it answered");
    pair = server(&w);
    rc = call_with(&w, pair, "blobs/put", "{'data':1}");
    rig_call_cancel(rc);
    rig_run(&w.r);
    check_failed(rc, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    assert_true(is_over(pair));
    pair = server(&w);
    rc = rig_open(pair, &(rig_request){.key = "blobs/get", .input = EW_STR("{\"blob_id\":\"x\"}"), .timeout_ms = 10});
    rig_advance(&w.r, 10);
    check_failed(rc, EW_STATUS_DEADLINE_EXCEEDED, EW_ORIGIN_DEADLINE, "the deadline has passed");
    assert_true(is_over(pair));
    blobs_done(&w, blobs);
}

/* ---- what we serve ---- */

static const struct {
    const char *head, *body; /* NULL: a request without a body */
    int status;
    const char *answer; /* NULL: the http wire's own */
} served[] = {
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'data':{'k':'v'}}", 200, "{'blobId':'" VALUE_ID "'}"},
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON "Accept: */*\r\n", "{'data':'\xc3\xa9','blobType':'flow'}", 200,
     "{'blobId':'" E_ID "'}"},
    {"GET " BASE "/" VALUE_ID " HTTP/1.1\r\n" HOST "Accept: */*\r\n", NULL, 200,
     "{'blobId':'" VALUE_ID "','blobType':'data','data':{'k':'v'}}"},
    {"GET " BASE "/" E_ID "?x=1 HTTP/1.1\r\n" HOST, NULL, 200,
     "{'blobId':'" E_ID "','blobType':'flow','data':'\\u00e9'}"},
    {"GET " BASE "/nope HTTP/1.1\r\n" HOST, NULL, 404, "{'code':404,'message':'Blob ^nope^ not found'}"},
    {"GET " BASE "/a/b HTTP/1.1\r\n" HOST, NULL, 404, "{'code':404,'message':'Blob ^a/b^ not found'}"},
    {"GET " BASE "/%22%c3%a9 HTTP/1.1\r\n" HOST, NULL, 404, "{'code':404,'message':'Blob ^\\'\xc3\xa9^ not found'}"},
    {"GET " BASE "/%ff HTTP/1.1\r\n" HOST, NULL, 400, NULL},
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'data':1,'blobType':'binary'}", 415,
     "{'code':415,'message':'blobType is data or flow here'}"},
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'data':1,'blobType':7}", 415,
     "{'code':415,'message':'blobType is data or flow here'}"},
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'blobType':'data'}", 400, "{'code':400,'message':'there is no data'}"},
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'data':", 400, "{'code':400,'message':'the body is no JSON object'}"},
    {"POST " BASE " HTTP/1.1\r\n" HOST JSON, "[1]", 400, "{'code':400,'message':'the body is no JSON object'}"},
    {"POST " BASE " HTTP/1.1\r\n" HOST "Content-Type: application/octet-stream\r\n", "raw", 415, NULL},
    {"POST " BASE " HTTP/1.1\r\n" HOST, "{'data':1}", 415, NULL},
    {"POST " BASE "/x HTTP/1.1\r\n" HOST JSON, "{'data':1}", 404, NULL},
    {"GET " BASE " HTTP/1.1\r\n" HOST, NULL, 405, NULL},
    {"GET " BASE "/ HTTP/1.1\r\n" HOST, NULL, 404, NULL},
    {"GET /api/v1/blobsx HTTP/1.1\r\n" HOST, NULL, 404, NULL},
    {"GET /api/v1/blobsx" VALUE_ID " HTTP/1.1\r\n" HOST, NULL, 404, NULL},
    {"GET / HTTP/1.1\r\n" HOST, NULL, 404, NULL},
    {"DELETE " BASE "/" VALUE_ID " HTTP/1.1\r\n" HOST, NULL, 404, NULL},
    {"GET " BASE "/" VALUE_ID " HTTP/1.1\r\nHost: evil.example\r\n", NULL, 403, NULL},
};

static void test_wire_stepflow_blob_api__served(void **state) {
    (void)state;
    world w;
    ew__blobs *blobs = blobs_init(&w);
    rig_pair *pair = runtime(&w);
    for (size_t i = 0; i < N_OF(served); i++) {
        if (served[i].body) {
            say_message(&w, pair, served[i].head, served[i].body);
        } else {
            say_text(pair, served[i].head);
            say_text(pair, "\r\n");
        }
        free(hear_head_at(&w, pair, served[i].status, served[i].answer, (int)i));
        assert_false(is_over(pair));
        hear_nothing(pair);
    }
    blobs_done(&w, blobs);
}

static void test_wire_stepflow_blob_api__served_limits(void **state) {
    (void)state;
    world w;
    ew__blobs *blobs = blobs_init_as(&w, (rig_options){.limits = {.frame_bytes = 300}}, 400);
    char text[500];
    rig_pair *pair = runtime(&w);
    for (int i = 0; i < 20; i++) { /* until it is full */
        (void)snprintf(text, sizeof text, "{'data':%d}", 100 + i);
        say_message(&w, pair, "POST " BASE " HTTP/1.1\r\n" HOST JSON, text);
        rig_forget(pair, raw_end(pair)->got_len);
    }
    say_message(&w, pair, "POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'data':7}");
    hear(&w, pair, 507, "{'code':507,'message':'the store is full'}");
    (void)snprintf(text, sizeof text, "{'data':'%0300d'}", 1);
    say_message(&w, pair, "POST " BASE " HTTP/1.1\r\n" HOST JSON, text);
    hear(&w, pair, 413, NULL);
    assert_true(is_over(pair));
    server_site(&w)->blobs = NULL; /* who has none has no such paths */
    pair = runtime(&w);
    say_message(&w, pair, "POST " BASE " HTTP/1.1\r\n" HOST JSON, "{'data':7}");
    hear(&w, pair, 404, NULL);
    blobs_done(&w, blobs);
}

/* ---- what a real worker asked, and what a runtime's API answered ---- */

/* The request as it was, with the port and the length that it has here. */
static void play_request(world *w, rig_pair *pair, ew_str frame) {
    ew_str line = json_str_or(frame, "/blob-api", EW_STR("")), body = ew_json_get(frame, "/body");
    ew_json_iter it = {.offset_ = 0};
    char head[800], compact[300];
    int n = snprintf(head, sizeof head, "%.*s HTTP/1.1\r\n" HOST, (int)line.len, line.ptr);
    while (ew_json_next(ew_json_get(frame, "/headers"), &it))
        if (!ew__str_is(it.key, EW_STR("\"Host\"")) && !ew__str_is(it.key, EW_STR("\"Content-Length\"")))
            n += snprintf(head + n, sizeof head - (size_t)n, "%.*s: %.*s\r\n", (int)it.key.len - 2, it.key.ptr + 1,
                          (int)it.value.len - 2, it.value.ptr + 1);
    int len = body.len ? ew_json_minify(body, compact, sizeof compact - 1) : 0;
    assert_true(len >= 0);
    compact[len] = '\0';
    if (body.len) {
        say_message(w, pair, head, compact);
    } else {
        say_text(pair, head);
        say_text(pair, "\r\n");
    }
}

/* The answer has all members of the recorded one, with the same values. */
static void check_like(rig_pair *pair, ew_str recorded) {
    char *head = take_head_at(pair, __LINE__), *body = take_body_at(pair, head, __LINE__), theirs[300], ours[300];
    ew_json_iter it = {.offset_ = 0};
    size_t n = 0;
    check_line(head, "HTTP/1.1 200 OK");
    while (ew_json_next(recorded, &it)) {
        ew_str value = ew_json_member(ew_str_from(body), ew__str(it.key.ptr + 1, it.key.len - 2));
        int a = ew_json_minify(it.value, theirs, sizeof theirs), b = ew_json_minify(value, ours, sizeof ours);
        if (a <= 0 || a != b || memcmp(theirs, ours, (size_t)a) != 0)
            fail_msg("%s: not as recorded: %.*s", body, (int)recorded.len, recorded.ptr);
        n++;
    }
    assert_true(n > 0);
    free(head);
    free(body);
}

/* One value of the recording was put by the runtime itself. */
#define PUT_BEFORE "NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN"

static void test_wire_stepflow_blob_api__captured(void **state) {
    (void)state;
    world w;
    corpus c;
    size_t n = 0;
    char id[EW__BLOB_ID_LEN];
    if (!corpus_open(&c, EW_SHARED, "../captures/stepflow/2026-03-py0112-http.jsonl"))
        skip();
    ew__blobs *blobs = blobs_init(&w);
    assert_int_equal(blobs->put(blobs, EW_STR("\"" PUT_BEFORE "\""), EW_STR("data"), id), EW_OK);
    rig_pair *pair = runtime(&w);
    while (corpus_next(&c)) {
        ew_str frame = ew_json_get(c.row, "/frame"), what = ew_json_get(frame, "/blob-api");
        if (ew_json_typeof(what) == EW_JSON_STRING)
            play_request(&w, pair, frame);
        else if (ew_json_typeof(what) == EW_JSON_NUMBER && ++n)
            check_like(pair, ew_json_get(frame, "/body"));
    }
    corpus_close(&c);
    assert_int_equal(n, 5);
    blobs_done(&w, blobs);
}

/* The same answers to our own requests for the same things. */
static void test_wire_stepflow_blob_api__captured_answers(void **state) {
    (void)state;
    world w;
    corpus c;
    char input[300];
    rig_call *rc = NULL;
    if (!corpus_open(&c, EW_SHARED, "../captures/stepflow/2026-03-py0112-http.jsonl"))
        skip();
    ew__blobs *blobs = blobs_init(&w);
    rig_pair *pair = server(&w);
    while (corpus_next(&c)) {
        ew_str frame = ew_json_get(c.row, "/frame"), what = ew_json_get(frame, "/blob-api");
        ew_str body = ew_json_get(frame, "/body"), line = json_str_or(frame, "/blob-api", EW_STR(""));
        if (line.len && line.ptr[0] == 'P') {
            ew_str data = ew_json_get(body, "/data");
            (void)snprintf(input, sizeof input, "{'data':%.*s}", (int)data.len, data.ptr);
            rc = call_with(&w, pair, "blobs/put", input);
        } else if (line.len) {
            (void)snprintf(input, sizeof input, "{'blob_id':'%.64s'}", line.ptr + strlen("GET " BASE "/"));
            rc = call_with(&w, pair, "blobs/get", input);
        }
        if (ew_json_typeof(what) != EW_JSON_NUMBER)
            continue;
        char *text = strndup(body.ptr, body.len);
        rig_forget(pair, raw_end(pair)->got_len);
        answer(&w, pair, text);
        assert_true(rc && rc->ended && rc->status == EW_STATUS_OK);
        ew_str got = ew_str_from(rc ? rc->result : ""), data = ew_json_get(body, "/data"),
               id = ew_json_get(body, "/blobId");
        assert_true(data.len ? ew__str_is(ew_json_get(got, "/data"), data)
                             : ew__str_is(ew_json_get(got, "/blob_id"), id));
        free(text);
    }
    corpus_close(&c);
    assert_non_null(rc);
    blobs_done(&w, blobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_blob_api__both),
        cmocka_unit_test(test_wire_stepflow_blob_api__large),
        cmocka_unit_test(test_wire_stepflow_blob_api__requests),
        cmocka_unit_test(test_wire_stepflow_blob_api__refused),
        cmocka_unit_test(test_wire_stepflow_blob_api__answers),
        cmocka_unit_test(test_wire_stepflow_blob_api__lost),
        cmocka_unit_test(test_wire_stepflow_blob_api__served),
        cmocka_unit_test(test_wire_stepflow_blob_api__served_limits),
        cmocka_unit_test(test_wire_stepflow_blob_api__captured),
        cmocka_unit_test(test_wire_stepflow_blob_api__captured_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
