/*
 * tests/unit/wire/test_unread.c: a peer that sends requests and reads no answers. On each wire, and for each kind of
 * request, the queued output stays within its limit, and every request is answered once the peer reads.
 *
 * Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/rig.h"
#include "support/ws_peer.h"
#include "wire/http/http.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/reflection/reflection.h"
#include "wire/rrq/rrq.h"
#include "wire/stepflow/lines.h"
#include "wire/stepflow/stepflow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define OUT_MAX ((size_t)128 * 1024)
#define ONE_ANSWER ((size_t)64 * 1024) /* no answer of this test is longer */
#define PAD 2000

typedef enum framing { PLAIN, LINE, LENGTH, WEBSOCKET } framing;

typedef struct protocol {
    const char *name;
    const ew__wire *wire;
    const ew__http_guest *guest;
    bool stdio;
    framing framing;
    const char *hold; /* a request for /test/hold, or NULL; FILL fills the queue while it runs */
    const char *fill;
} protocol;

/* One kind of request. @ in its text becomes PAD letters. Each answer has `mark` in it once. */
typedef struct kind {
    const char *protocol;
    const char *text;
    const char *mark;
    unsigned n;
} kind;

#define HOST "Host: 127.0.0.1:3400\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define POST(path, more, length, body) "POST " path " HTTP/1.1\r\n" HOST more "Content-Length: " #length "\r\n\r\n" body
#define JSON_BODY "Content-Type: application/json\r\n"
#define RPC(rest) "{'jsonrpc':'2.0','id':7," rest "}"
#define EXECUTE(action, input)                                                                                         \
    RPC("'method':'components/execute','params':{'component':'" action "','input':" input "}")
#define RUN(action, more) RPC("'method':'runAction','params':{'key':'" action "'" more "}")
#define JOB(function, params)                                                                                          \
    "{'type':'request','payload':{'protocol_version':'2','request_id':'r','job_id':'j','function_name':'" function     \
    "','params':" params                                                                                               \
    ",'context':{'job_id':'j','attempt':1,'enqueue_time':'2026-01-01T12:00:00Z','queue_name':'q'}}}"
#define DISCOVER RPC("'method':'rpc.discover'")

static const protocol protocols[] = {
    {.name = "http", .wire = &ew__wire_http, .framing = PLAIN},
    {.name = "jsonrpc",
     .wire = &ew__wire_jsonrpc,
     .framing = LINE,
     .hold = RPC("'method':'/test/hold'"),
     .fill = "{'jsonrpc':'2.0','id':8,'method':'/test/echo','params':['@']}"},
    {.name = "reflection",
     .wire = &ew__wire_reflection,
     .framing = WEBSOCKET,
     .hold = RUN("/test/hold", ""),
     .fill = "{'jsonrpc':'2.0','id':8,'method':'runAction','params':{'key':'/test/echo','input':'@'}}"},
    {.name = "rrq",
     .wire = &ew__wire_rrq,
     .framing = LENGTH,
     .hold = JOB("/test/hold", "{}"),
     .fill = JOB("/test/echo", "{'pad':'@'}")},
    {.name = "stepflow",
     .wire = &ew__wire_stepflow,
     .stdio = true,
     .framing = LINE,
     .hold = EXECUTE("/test/hold", "{}"),
     .fill = "{'jsonrpc':'2.0','id':8,'method':'components/execute',"
             "'params':{'component':'/test/echo','input':'@'}}"},
    {.name = "stepflow http", .wire = &ew__wire_http, .guest = &ew__stepflow_guest, .framing = PLAIN},
};

static const kind kinds[] = {
    {"http", GET("/healthz"), "HTTP/1.1 200", 2000},
    {"http", GET("/api/actions"), "HTTP/1.1 200", 300},
    {"http", GET("/metrics"), "HTTP/1.1 404", 2000},
    {"http", GET("/nothing"), "HTTP/1.1 405", 2000},
    {"http", POST("/nothing", JSON_BODY, 11, "{'data':{}}"), "HTTP/1.1 404", 2000},
    {"http", POST("/test/echo", "Content-Type: text/plain\r\n", 2, "{}"), "HTTP/1.1 415", 2000},
    {"http", POST("/test/echo", JSON_BODY, 9, "{'data':["), "HTTP/1.1 400", 2000},
    {"http", POST("/test/echo", JSON_BODY, 2011, "{'data':'@'}"), "HTTP/1.1 200", 300},
    {"http", POST("/test/fail", JSON_BODY, 11, "{'data':{}}"), "HTTP/1.1 ", 2000},
    {"http", POST("/test/say?stream=true", JSON_BODY, 2013, "{'data':['@']}"), "HTTP/1.1 200", 300},
    {"jsonrpc", DISCOVER, "'id':7", 300},
    {"jsonrpc", "[" DISCOVER "," DISCOVER "," DISCOVER "]", "[{'jsonrpc'", 100},
    {"jsonrpc", RPC("'method':'/test/echo','params':['@']"), "'id':7", 300},
    {"jsonrpc", RPC("'method':'/test/nothing'"), "'id':7", 2000},
    {"jsonrpc", RPC("'method':7"), "'id':7", 2000},
    {"jsonrpc", RPC("'method':'/test/fail','params':{}"), "'id':7", 2000},
    {"jsonrpc", RPC("'method':'/test/say?stream=true','params':['@']"), "'stream':3", 300},
    {"reflection", RPC("'method':'listActions'"), "'id':7", 300},
    {"reflection", RUN("/test/echo", ",'input':'@'"), "'id':7", 300},
    {"reflection", RUN("/test/say", ",'stream':true,'input':['@']"), "'id':7", 300},
    {"reflection", RUN("/test/nothing", ""), "'id':7", 2000},
    {"reflection", RPC("'method':'nothing'"), "'id':7", 2000},
    {"rrq", JOB("everywire.actions", "{}"), "'type':'response'", 300},
    {"rrq", JOB("/test/echo", "{'pad':'@'}"), "'type':'response'", 300},
    {"rrq", JOB("/test/nothing", "{}"), "'type':'response'", 2000},
    {"rrq", JOB("/test/fail", "{}"), "'type':'response'", 2000},
    {"stepflow", RPC("'method':'components/list','params':{}"), "'id':7", 300},
    {"stepflow", EXECUTE("/test/echo", "'@'"), "'id':7", 300},
    {"stepflow", EXECUTE("/test/nothing", "{}"), "'id':7", 2000},
    {"stepflow", RPC("'method':'nothing','params':{}"), "'id':7", 2000},
    {"stepflow http", POST("/", JSON_BODY, 63, RPC("'method':'components/list','params':{}")), "HTTP/1.1 200", 300},
    {"stepflow http", POST("/", JSON_BODY, 55, RPC("'method':'nothing','params':{}")), "HTTP/1.1 200", 2000},
};

/* ---- texts ---- */

/* The text as it stands on the wire, for free(). */
static char *expand(const char *text, size_t *ret_len) {
    size_t n = 0;
    char *out = malloc(strlen(text) + PAD + 1);
    assert_non_null(out);
    for (; *text; text++) {
        if (*text == '@') {
            memset(out + n, 'x', PAD);
            n += PAD;
        } else {
            out[n++] = *text == '\'' ? '"' : *text;
        }
    }
    out[n] = '\0';
    *ret_len = n;
    return out;
}

/* Says a message n times; nothing is delivered yet. */
static void say(rig_pair *pair, framing how, const char *text, unsigned n) {
    size_t len = 0;
    char *bytes = expand(text, &len);
    uint8_t *framed = malloc(len + WS_PEER_HEAD + EW__LENPFX_HEAD);
    assert_non_null(framed);
    size_t size = len;
    memcpy(framed, bytes, len);
    if (how == LINE) {
        framed[size++] = '\n';
    } else if (how == LENGTH) {
        assert_true(ew__lenpfx_head(len, UINT32_MAX, framed));
        memcpy(framed + EW__LENPFX_HEAD, bytes, len);
        size += EW__LENPFX_HEAD;
    } else if (how == WEBSOCKET) {
        size = ws_peer_frame(framed, WS_FIN | WS_TEXT, false, bytes, len);
    }
    for (unsigned i = 0; i < n; i++)
        rig_say(pair, framed, size);
    free(framed);
    free(bytes);
}

/* What came, with the mask of a WebSocket taken off; for free(). */
static char *heard(const rig_pair *pair, framing how, size_t *ret_len) {
    const rig_end *end = &pair->end[RIG_CLIENT];
    const char *got = end->got_len ? end->got : "";
    if (how == WEBSOCKET)
        return ws_peer_lines(got, end->got_len, true, ret_len);
    char *copy = malloc(end->got_len + 1);
    assert_non_null(copy);
    memcpy(copy, got, end->got_len);
    copy[end->got_len] = '\0';
    *ret_len = end->got_len;
    return copy;
}

static unsigned count(const rig_pair *pair, framing how, const char *mark) {
    size_t n_mark = 0, n = 0;
    char *expanded = expand(mark, &n_mark), *text = heard(pair, how, &n);
    unsigned found = 0;
    for (size_t i = 0; i + n_mark <= n; i++)
        found += memcmp(text + i, expanded, n_mark) == 0;
    free(text);
    free(expanded);
    return found;
}

/* ---- the world ---- */

static const protocol *protocol_of(const char *name) {
    size_t i = 0;
    while (strcmp(protocols[i].name, name) != 0)
        i++;
    return &protocols[i];
}

static rig_pair *begin(rig *r, const protocol *p) {
    rig_options options = {.seed = 1, .guest = p->guest, .stdio = p->stdio, .pipe_room = 16 * 1024};
    options.limits = (ew_limits){
        .out_high_bytes = 16 * 1024, .out_low_bytes = 4 * 1024, .out_max_bytes = OUT_MAX, .pipeline_bytes = 16 * 1024};
    rig_init(r, p->wire, &options);
    rig_pair *pair = rig_connect_raw(r, RIG_CLIENT);
    rig_run(r);
    rig_stall(pair, RIG_SERVER, true);
    return pair;
}

/* ---- tests ---- */

/* Each kind of request: the queue stays short, further requests wait, and all are answered in the end. */
static void test_wire_unread__held_back(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        const protocol *p = protocol_of(k->protocol);
        rig r;
        rig_pair *pair = begin(&r, p);
        say(pair, p->framing, k->text, k->n);
        rig_run(&r);
        if (pair->end[RIG_SERVER].peak_out >= OUT_MAX + ONE_ANSWER)
            fail_msg("%s: %s: %zu bytes are queued", k->protocol, k->text, pair->end[RIG_SERVER].peak_out);
        rig_stall(pair, RIG_SERVER, false);
        rig_run(&r);
        unsigned found = count(pair, p->framing, k->mark);
        if (found != k->n)
            fail_msg("%s: %s: %u of %u were answered", k->protocol, k->text, found, k->n);
        rig_finish(&r);
    }
}

/* A peer that never reads is given up after the stall grace. */
static void test_wire_unread__given_up(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const protocol *p = protocol_of(kinds[i].protocol);
        rig r;
        rig_pair *pair = begin(&r, p);
        say(pair, p->framing, kinds[i].text, kinds[i].n);
        rig_run(&r);
        rig_advance(&r, r.limits.stall_ms + 1000);
        if (!pair->end[RIG_SERVER].closing)
            fail_msg("%s: %s: the connection is still open", kinds[i].protocol, kinds[i].text);
        rig_finish(&r);
    }
}

/* A call that fails while the queue is full is told its status; its details would exceed the limit. */
static void test_wire_unread__late_fault(void **state) {
    (void)state;
    char *details = malloc(OUT_MAX);
    assert_non_null(details);
    memset(details, 'd', OUT_MAX);
    details[0] = details[OUT_MAX - 1] = '"';
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        const protocol *p = &protocols[i];
        if (!p->hold)
            continue;
        rig r;
        rig_pair *pair = begin(&r, p);
        say(pair, p->framing, p->hold, 1);
        say(pair, p->framing, p->fill, 20);
        rig_run(&r);
        assert_non_null(r.held);
        assert_true(pair->end[RIG_SERVER].conn.out.bytes > 0);
        ew_fault fault = {.status = EW_STATUS_ABORTED, .message = EW_STR("late"), .details = {details, OUT_MAX}};
        assert_int_equal(ew_call_fail_with(r.held, &fault), EW_OK);
        ew_call_unref(r.held);
        r.held = NULL;
        rig_run(&r);
        assert_true(pair->end[RIG_SERVER].peak_out < OUT_MAX);
        rig_stall(pair, RIG_SERVER, false);
        rig_run(&r);
        assert_int_equal(count(pair, p->framing, "dddd"), 0);
        assert_int_equal(count(pair, p->framing, p->framing == LENGTH ? "'status':'error'" : "'error'"), 1);
        rig_finish(&r);
    }
    free(details);
}

/* Batches that one slow call each keeps open: their answers so far count as queued output. */
static void test_wire_unread__open_batches(void **state) {
    (void)state;
    const protocol *p = protocol_of("jsonrpc");
    rig r;
    rig_pair *pair = begin(&r, p);
    rig_stall(pair, RIG_SERVER, false);
    char text[400];
    for (int i = 0; i < 500; i++) {
        (void)snprintf(text, sizeof text,
                       "[{'jsonrpc':'2.0','id':'n%d','method':'/test/never'},"
                       "{'jsonrpc':'2.0','id':'e%d','method':'/test/echo','params':['@']}]",
                       i, i);
        say(pair, p->framing, text, 1);
        rig_run(&r);
    }
    const ew__jr_peer *peer = (const ew__jr_peer *)(const void *)pair->end[RIG_SERVER].peer;
    assert_int_equal(peer->calls.served.n, 500);
    assert_true(peer->batch_bytes > OUT_MAX / 2);
    assert_true(peer->batch_bytes < OUT_MAX + 500 * 200); /* and a short error for each of the others */
    rig_finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_unread__held_back),
        cmocka_unit_test(test_wire_unread__given_up),
        cmocka_unit_test(test_wire_unread__late_fault),
        cmocka_unit_test(test_wire_unread__open_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
