/*
 * tests/e2e/stepflow_server.c: a component server with the components that the captured sessions were made with, and
 * `wait`, which calls back and never gets enough. Not an example: see examples/components.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_MS 60000

typedef void (*answered_fn)(ew_request *request, const ew_end *end, void *ud);

/* Calls the runtime. params: JSON text. */
static void ask(ew_call *call, const char *method, const char *params, answered_fn answered, void *ud) {
    ew_request_options options = {.action = ew_str_from(method),
                                  .input = ew_str_from(params),
                                  .timeout_ms = ASK_MS,
                                  .on_end = answered,
                                  .ud = ud};
    if (ew_call_back(call, &options, NULL) != EW_OK)
        exit(70);
}

static void fail_as_python(ew_call *call, const ew_end *end) {
    char text[300];
    (void)snprintf(text, sizeof text, "Component execution failed: %.*s", (int)end->fault.message.len,
                   end->fault.message.ptr);
    ew_call_fail(call, end->fault.status, text);
}

/* ---- plain ones ---- */

static void echo(ew_call *call, void *arg) {
    ew_str message = ew_json_get(ew_call_input(call), "/message");
    (void)arg;
    if (message.len)
        ew_call_donef(call, "{\"echo\":%j}", message);
    else
        ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT,
                     "Component execution failed: Object missing required field `message`");
}

static void boom(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail(call, EW_STATUS_UNKNOWN, "Component execution failed: boom: hi");
}

/* What came with the call. */
static void observed(ew_call *call, void *arg) {
    ew_str context = ew_call_context(call);
    (void)arg;
    ew_call_donef(call, "{\"wire\":%q,\"attempt\":%d,\"trace_id\":%q,\"context\":%j}", ew_call_wire(call),
                  (int)ew_call_attempt(call), ew_call_trace_id(call), context.len ? context : EW_STR("null"));
}

/* ---- those that call back ---- */

typedef struct trip trip;

typedef struct blob {
    trip *trip;
    char id[80]; /* JSON text */
} blob;

/* Lives in the memory of its call. */
struct trip {
    ew_call *call;
    blob blobs[3];
    int n_done;
    bool failed;
};

static trip *new_trip(ew_call *call) {
    trip *t = ew_call_alloc(call, sizeof *t);
    if (!t)
        exit(70);
    *t = (trip){.call = call};
    for (int i = 0; i < 3; i++)
        t->blobs[i].trip = t;
    return t;
}

static void take_id(char out[80], ew_str result) {
    ew_str id = ew_json_get(result, "/blob_id");
    (void)snprintf(out, 80, "%.*s", (int)id.len, id.ptr);
}

static void on_got(ew_request *request, const ew_end *end, void *ud) {
    trip *t = ud;
    ew_str data = ew_json_get(end->result, "/data"), sent = ew_json_get(ew_call_input(t->call), "/data");
    (void)request;
    if (end->status != EW_STATUS_OK)
        fail_as_python(t->call, end);
    else
        ew_call_donef(t->call, "{\"blob_id\":%s,\"same\":%b}", t->blobs[0].id,
                      data.len == sent.len && memcmp(data.ptr, sent.ptr, data.len) == 0);
}

static void on_put(ew_request *request, const ew_end *end, void *ud) {
    trip *t = ud;
    char params[100];
    (void)request;
    if (end->status != EW_STATUS_OK) {
        fail_as_python(t->call, end);
        return;
    }
    take_id(t->blobs[0].id, end->result);
    (void)snprintf(params, sizeof params, "{\"blob_id\":%s}", t->blobs[0].id);
    ask(t->call, "blobs/get", params, on_got, t);
}

static void roundtrip(ew_call *call, void *arg) {
    ew_str data = ew_json_get(ew_call_input(call), "/data");
    (void)arg;
    if (!data.len) {
        ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT,
                     "Component execution failed: Object missing required field `data`");
        return;
    }
    size_t room = data.len + 64;
    char *params = malloc(room);
    if (!params)
        exit(70);
    (void)ew_json_format(params, room, "{\"data\":%j,\"blob_type\":\"data\"}", data);
    ask(call, "blobs/put", params, on_put, new_trip(call));
    free(params);
}

static void on_one_put(ew_request *request, const ew_end *end, void *ud) {
    blob *one = ud;
    trip *t = one->trip;
    (void)request;
    t->failed = t->failed || end->status != EW_STATUS_OK;
    take_id(one->id, end->result);
    if (++t->n_done < 3)
        return;
    if (t->failed)
        ew_call_fail(t->call, EW_STATUS_UNKNOWN, "one of them failed");
    else
        ew_call_donef(t->call, "{\"ids\":[%s,%s,%s]}", t->blobs[0].id, t->blobs[1].id, t->blobs[2].id);
}

static void parallel_blobs(ew_call *call, void *arg) {
    char params[100];
    trip *t = new_trip(call);
    (void)arg;
    ew_call_ref(call); /* the last one may be answered before this returns */
    for (int i = 0; i < 3; i++) {
        (void)snprintf(params, sizeof params, "{\"data\":{\"i\":%d},\"blob_type\":\"data\"}", i);
        ask(call, "blobs/put", params, on_one_put, &t->blobs[i]);
    }
    ew_call_unref(call);
}

static void on_missing(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    if (end->status == EW_STATUS_OK)
        ew_call_donef(ud, "%j", end->result);
    else
        fail_as_python(ud, end);
}

static void get_missing(ew_call *call, void *arg) {
    (void)arg;
    ask(call, "blobs/get", "{\"blob_id\":\"0000000000000000000000000000000000000000000000000000000000000000\"}",
        on_missing, call);
}

static void on_run(ew_request *request, const ew_end *end, void *ud) {
    ew_str result = ew_json_get(end->result, "/results/0/result/result");
    (void)request;
    if (end->status == EW_STATUS_OK)
        ew_call_donef(ud, "{\"r\":%j}", result.len ? result : EW_STR("null"));
    else
        fail_as_python(ud, end);
}

static void eval_flow(ew_call *call, void *arg) {
    ew_str input = ew_call_input(call);
    char params[400];
    (void)arg;
    (void)ew_json_format(params, sizeof params, "{\"flowId\":%j,\"inputs\":[%j],\"wait\":true}",
                         ew_json_get(input, "/flow_id"), ew_json_get(input, "/input"));
    ask(call, "runs/submit", params, on_run, call);
}

/* ---- one that is cancelled ---- */

static void on_left(ew_call *call, void *arg) {
    (void)arg;
    (void)fprintf(stderr, "cancelled\n");
    ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

static void forget(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    (void)ud;
    (void)fprintf(stderr, "asked %s\n", ew_status_name(end->status));
}

static void wait_for_ever(ew_call *call, void *arg) {
    bool asks = false;
    (void)arg;
    if (!ew_call_input_bool(call, "/ask", &asks))
        return;
    ew_call_on_cancel(call, on_left, NULL);
    if (asks)
        ask(call, "blobs/get", "{\"blob_id\":\"x\"}", forget, NULL);
}

int main(int argc, char **argv) {
    static const struct {
        const char *key;
        ew_handler_fn handler;
    } components[] = {{"/component/echo", echo},
                      {"/component/boom", boom},
                      {"/component/observed", observed},
                      {"/component/ctx_unused", echo},
                      {"/component/roundtrip", roundtrip},
                      {"/component/parallel_blobs", parallel_blobs},
                      {"/component/get_missing", get_missing},
                      {"/component/eval_flow", eval_flow},
                      {"/component/wait", wait_for_ever}};
    ew_app *app = ew_app_new("stepflow-test");
    ew_action_options options = {.description = "Echo a message"};
    for (size_t i = 0; i < sizeof components / sizeof *components; i++)
        (void)ew_app_action(app, components[i].key, components[i].handler, NULL, i == 0 ? &options : NULL);
    (void)setvbuf(stderr, NULL, _IOLBF, 0);
    return ew_app_main(app, argc, argv);
}
