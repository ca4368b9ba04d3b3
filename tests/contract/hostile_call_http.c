/*
 * tests/contract/hostile_call_http.c: scenarios of test_hostile_call.c that only HTTP has: every status
 * code with every kind of body, and streams of events.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/hostile.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- status codes ---- */

/* One exchange with that status line and body. The server closes behind it. */
static void answer_status(hostile *h, unsigned status, const char *type, const char *body) {
    char head[200];
    hostile_call call;
    hostile_call_plain(h, hostile_connect(h), &call);
    bool no_body = status < 200 || status == 204 || status == 304;
    int n = snprintf(head, sizeof head, "HTTP/1.1 %u X\r\nContent-Type: %s\r\n", status, type);
    if (!no_body)
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
    rig_say(call.pair, head, (size_t)n);
    rig_say(call.pair, "\r\n", 2);
    if (!no_body)
        rig_say(call.pair, body, strlen(body));
    rig_run(&h->r);
    rig_say_eof(call.pair);
    rig_advance(&h->r, 10);
    if (call.rc->ended != 1)
        fail_msg("%s: status %u with %s %s: %u ends", h->wire->name, status, type, body, call.rc->ended);
    if (call.rc->status == EW_STATUS_OK && (status < 200 || status > 299))
        fail_msg("%s: status %u with %s %s counts as success", h->wire->name, status, type, body);
}

/* Each status in a world of its own, beside a call that must not notice. */
static void answer_every_way(const hostile_wire *wire, unsigned status) {
    static const char *const forms[][2] = {{"application/json", "{\"result\":1}"},
                                           {"application/json", "{\"error\":{\"status\":\"OK\",\"message\":\"no\"}}"},
                                           {"application/json", "[1]"},
                                           {"application/json", "{"},
                                           {"application/json", ""},
                                           {"text/html", "<html>"},
                                           {"text/event-stream", "data: {\"result\":1}\n\n"},
                                           {"text/event-stream", "error: {}\n\n"},
                                           {"text/event-stream", ""}};
    hostile h;
    hostile_call other;
    hostile_init(&h, wire, RIG_SERVER);
    hostile_call_plain(&h, hostile_connect(&h), &other);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        answer_status(&h, status, forms[i][0], forms[i][1]);
    hostile_check_answered(&h, &other);
    hostile_finish(&h);
}

static bool is_other_success(unsigned status) { return status > 200 && status < 300 && status != 204; }

void hostile_http_2xx(hostile *h) {
    for (unsigned status = 200; status < 300; status++)
        if (is_other_success(status))
            answer_every_way(h->wire, status);
}

void hostile_http_statuses(hostile *h) {
    for (unsigned status = 100; status < 600; status++)
        if (!is_other_success(status))
            answer_every_way(h->wire, status);
    answer_every_way(h->wire, 999);
}

/* ---- streams of events ---- */

static void answer_events(hostile *h, const char *events, bool chunked) {
    hostile_call call;
    char head[200], size[20];
    hostile_open(h, hostile_connect(h),
                 &(rig_request){.key = "/test/chunks", .input = EW_STR("{}"), .stream = !h->wire->guest}, &call);
    (void)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n",
                   chunked ? "Transfer-Encoding: chunked\r\n" : "");
    (void)snprintf(size, sizeof size, "%zx\r\n", strlen(events));
    char *text = hostile_text(events, &(hostile_values){.id = call.id});
    rig_say(call.pair, head, strlen(head));
    if (chunked) /* what is announced is the length before the id stands in it: also a hostile length */
        rig_say(call.pair, size, strlen(size));
    rig_say(call.pair, text, strlen(text));
    free(text);
    if (chunked)
        rig_say(call.pair, "\r\n0\r\n\r\n", 7);
    rig_run(&h->r);
    rig_say_eof(call.pair);
    rig_advance(&h->r, 10);
    if (call.rc->ended != 1)
        fail_msg("%s: %u ends after %s", h->wire->name, call.rc->ended, events);
}

void hostile_http_events(hostile *h) {
    static const char *const events[] = {
        "",
        "\n\n\n\n",
        "data\n\n",
        "data:\n\n",
        "data: \n\n",
        "data: {\n\n",
        "data: {}\n\n",
        "data: null\n\n",
        "data: []\n\n",
        "error: {}\n\n",
        "error: x\n\n",
        "error: {'error':{'status':'OK','message':'x'}}\n\n",
        "data: {'result':1}\n\ndata: {'result':2}\n\n",
        "data: {'result':1}\n\ndata: {'message':2}\n\n",
        "data: {'result':1}\n\nerror: {'error':{'status':'ABORTED'}}\n\n",
        "error: {'error':{'status':'ABORTED'}}\n\ndata: {'result':1}\n\n",
        "data: {'message':1,'result':2}\n\n",
        "data: {'message':1}\n\ndata: {'message':2}\n\n",
        "data: {'result':1,'result':2}\n\n",
        "data: {'jsonrpc':'2.0','id':$I,'result':{'output':1}}\n\ndata: {'jsonrpc':'2.0','id':$I,'result':{}}\n\n",
        "data: {'jsonrpc':'2.0','id':'nope','result':{'output':1}}\n\n",
        "data: {'jsonrpc':'2.0','id':'x','method':'blobs/get','params':{'blob_id':'x'}}\n\n",
        "data: {'jsonrpc':'2.0','id':$I,'method':'nope','params':{}}\n\n",
        "data: [{'jsonrpc':'2.0','id':$I,'result':{'output':1}}]\n\n",
    };
    hostile_call other;
    hostile_call_plain(h, hostile_connect(h), &other);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        answer_events(h, events[i], false);
        answer_events(h, events[i], true);
    }
    hostile_check_answered(h, &other);
}
