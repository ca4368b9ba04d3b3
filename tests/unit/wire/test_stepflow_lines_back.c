/*
 * tests/unit/wire/test_stepflow_lines_back.c: handlers that ask the runtime that runs them, over the stepflow wire on
 * standard input and output, or at the URL where it keeps its blobs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_lines_world.h"
#include "support/json_or.h"

#define HELLO(id)                                                                                                      \
    RPC "'id':" id ",'result':{'server_protocol_version':1,'serverProtocolVersion':1,'supportsBlobRefs':false,"        \
        "'x-everywire':{'version':'" EW_VERSION_STRING "'}}}"

/* ---- back to the runtime ---- */

/* A call that goes back on the held one. */
typedef struct back {
    world *w;
    ew_call *call; /* NULL once it has ended */
    unsigned ended;
    ew_err refused; /* what call_back said, if not EW_OK */
    ew_status status;
    ew_origin origin;
    char text[200]; /* result or message */
} back;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    back *b = call->caller_ud;
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    b->call = NULL;
    b->ended++;
    b->status = end->status;
    b->origin = end->origin;
    (void)snprintf(b->text, sizeof b->text, "%.*s", (int)text.len, text.ptr);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

/* As client/request.c does. */
static void on_open(ew_call *call) {
    back *b = call->callee_ud;
    ew_call *origin = b->w->r.held;
    b->refused = origin->caller_open ? origin->caller->call_back(origin, call) : EW_EENDED;
    if (b->refused != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("refused"));
}

static const ew__callee_ops opening = {.open = on_open};

static void call_back_with(world *w, back *b, const char *method, const char *input, bool notify) {
    *b = (back){.w = w};
    b->call = ew__call_new(&w->r.side[RIG_SERVER].executor, &caller, b);
    assert_non_null(b->call);
    b->call->key = ew_str_from(method);
    b->call->input = ew_str_from(input);
    b->call->outgoing.notify = notify;
    ew__call_open_on(b->call, &opening, b);
    rig_run(&w->r);
}

static void call_back(world *w, back *b, const char *method, const char *input) {
    call_back_with(w, b, method, input, false);
}

#define OBSERVABILITY "'observability':{'trace_id':'0af7651916cd43dd8448eb211c80319c','span_id':'b7ad6b7169203331'}"

static void hold(world *w, bool traced) {
    say(w, traced ? RPC "'id':'h','method':'components/execute','params':{'component':'/hold','input':0," OBSERVABILITY
                        "}}"
                  : EXECUTE("'h'", "/hold", "0"));
    assert_non_null(w->r.held);
}

static void let_go(world *w) {
    if (w->r.held->callee_open)
        (void)ew_call_done(w->r.held, EW_STR("0"));
    w->r.held = ew_call_unref(w->r.held);
    rig_run(&w->r);
    world_done(w);
}

static void check_back_at(const back *b, ew_status status, ew_origin origin, const char *text, int line) {
    if (b->ended != 1 || b->status != status || b->origin != origin || strcmp(b->text, text) != 0)
        fail_msg("line %d: ended %u times, %s (origin %d): %s", line, b->ended, ew_status_name(b->status),
                 (int)b->origin, b->text);
}
#define check_back(b, status, origin, text) check_back_at((b), (status), (origin), (text), __LINE__)

static void test_wire_stepflow_lines__back(void **state) {
    (void)state;
    world w;
    back a, b, c;
    lines_serve(&w);
    hold(&w, false);
    call_back(&w, &a, "blobs/put", "{\"data\":\"\xc3\xa4\",\n\"blob_type\":\"data\"}");
    hear(&w, RPC "'id':$1,'method':'blobs/put','params':{'data':'\\u00e4','blob_type':'data'}}");
    call_back(&w, &b, "flows/evaluate", "{}");
    hear(&w, RPC "'id':$2,'method':'flows/evaluate','params':{}}");
    call_back(&w, &c, "runs/get", "{\"runId\":1}");
    hear(&w, RPC "'id':$3,'method':'runs/get','params':{'runId':1}}");
    say(&w, RPC "'id':$3,'error':{'code':-32000,'message':'Failed','data':null}}");
    check_back(&c, EW_STATUS_UNKNOWN, EW_ORIGIN_ACTION, "Failed");
    say(&w, RPC "'id':$2,'result':null}");
    check_back(&b, EW_STATUS_OK, EW_ORIGIN_ACTION, "null");
    say(&w, EXECUTE("$1", "/echo", "1")); /* the runtime's own ids are others, even when they look the same */
    hear(&w, OUTPUT("$1", "1"));
    say(&w, RPC "'id':$1,'result':{'blob_id':'x'}}");
    check_back(&a, EW_STATUS_OK, EW_ORIGIN_ACTION, "{\"blob_id\":\"x\"}");
    say(&w, RPC "'id':$1,'result':{'blob_id':'y'}}"); /* once more */
    assert_int_equal(world_dropped(&w), 1);
    call_back(&w, &a, "blobs/get", "{}");
    hear(&w, RPC "'id':$4,'method':'blobs/get','params':{}}");
    say(&w, RPC "'id':$4}");
    check_back(&a, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, "neither method, result nor error");
    let_go(&w);
}

/* Who sent us an observability gets one. */
static void test_wire_stepflow_lines__back_trace(void **state) {
    (void)state;
    world w;
    back a;
    lines_serve(&w);
    hold(&w, true);
    call_back(&w, &a, "blobs/put", "{\"data\":1}");
    char *line = hear_request_at(&w, 1, "blobs/put", __LINE__);
    assert_int_equal(json_str_or(ew_str_from(line), "/params/observability/trace_id", EW_STR("")).len, 32);
    free(line);
    let_go(&w);
    check_back(&a, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST); /* with its connection */
}

static void test_wire_stepflow_lines__back_refused(void **state) {
    (void)state;
    world w;
    back a;
    lines_with(&w, RIG_CLIENT, (rig_options){.limits = {.calls_per_connection = 1, .frame_bytes = 300}});
    hold(&w, false);
    call_back(&w, &a, "blobs/put", "[1]");
    check_back(&a, EW_STATUS_INVALID_ARGUMENT, EW_ORIGIN_LOCAL, "a method of a Stepflow runtime takes an object");
    call_back_with(&w, &a, "progress_update", "{}", true);
    check_back(&a, EW_STATUS_UNIMPLEMENTED, EW_ORIGIN_LOCAL, "a Stepflow runtime takes no notifications");
    char large[400] = "{\"data\":\"";
    memset(large + 9, 'x', 300);
    memcpy(large + 309, "\"}", 3);
    call_back(&w, &a, "blobs/put", large);
    check_back(&a, EW_STATUS_RESOURCE_EXHAUSTED, EW_ORIGIN_LOCAL,
               "the input is too large: 311 bytes, the limit is 263 (set by frame_bytes)");
    hear_nothing(&w);
    call_back(&w, &a, "blobs/put", "{}");
    hear(&w, RPC "'id':$1,'method':'blobs/put','params':{}}");
    back b;
    call_back(&w, &b, "blobs/put", "{}"); /* one too many */
    assert_int_equal(b.refused, EW_EBUSY);
    ew__call_cancel(a.call, EW__CANCEL_ASKED); /* there is no word for it */
    check_back(&a, EW_STATUS_CANCELLED, EW_ORIGIN_CANCEL, "the call was cancelled");
    say(&w, RPC "'id':$1,'result':{}}");
    assert_int_equal(world_dropped(&w), 1);
    hear_nothing(&w);
    let_go(&w);
}

/* ---- blobs that are reached by a URL ---- */

static char asked_url[100];
static ew_err way_says;

static ew_err open_way(struct ew__outbound *ways, ew__executor *executor, const ew__wire *wire, ew_str url,
                       ew_call *call) {
    (void)ways;
    (void)executor;
    assert_ptr_equal(wire, &ew__wire_blobs);
    (void)snprintf(asked_url, sizeof asked_url, "%.*s", (int)url.len, url.ptr);
    if (way_says == EW_OK)
        (void)ew__call_done_valid(call, EW_STR("{\"blob_id\":\"u\"}"));
    return way_says;
}

static void test_wire_stepflow_lines__back_by_url(void **state) {
    (void)state;
    world w;
    back a;
    static ew__instance instance = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct ew__outbound ways = {.open = open_way};
    lines_serve(&w);
    w.r.side[RIG_SERVER].site.instance = &instance;
    w.r.side[RIG_SERVER].site.outbound = &ways;
    say(&w, RPC "'id':1,'method':'initialize','params':{'runtimeProtocolVersion':1,'capabilities':{'blobApiUrl':"
                "'http://h:1\\/blobs'}}}");
    hear(&w, HELLO("1"));
    hold(&w, false);
    way_says = EW_OK;
    call_back(&w, &a, "blobs/put", "{\"data\":1}");
    check_back(&a, EW_STATUS_OK, EW_ORIGIN_ACTION, "{\"blob_id\":\"u\"}");
    assert_string_equal(asked_url, "http://h:1/blobs");
    way_says = EW_EINVAL;
    call_back(&w, &a, "blobs/get", "{}");
    check_back(&a, EW_STATUS_FAILED_PRECONDITION, EW_ORIGIN_LOCAL,
               "the runtime's blobs are at a URL that is not used here");
    way_says = EW_EBUSY;
    call_back(&w, &a, "blobs/get", "{}");
    assert_int_equal(a.refused, EW_EBUSY);
    hear_nothing(&w);
    call_back(&w, &a, "runs/get", "{}"); /* not a blob's */
    hear(&w, RPC "'id':$1,'method':'runs/get','params':{}}");
    let_go(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_lines__back),
        cmocka_unit_test(test_wire_stepflow_lines__back_trace),
        cmocka_unit_test(test_wire_stepflow_lines__back_refused),
        cmocka_unit_test(test_wire_stepflow_lines__back_by_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
