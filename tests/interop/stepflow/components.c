/*
 * Components on the library, as a user writes them: what the real orchestrator runs in flows.py. The same stand in
 * components.py. STEPFLOW_MARKS names a file that gets a line when a component begins, ends or is cancelled.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 30000
#define MANY_MAX 100

static int marks = -1; /* set before the start */

static void mark(const char *event, const ew_call *call) {
    char line[200];
    ew_str key = ew_call_key(call);
    char id[100] = "-";
    ew_str run = {id, 1};
    if (ew_json_string(ew_json_get(ew_call_context(call), "/run_id"), id, sizeof id, &run.len) != EW_OK)
        run.len = 1;
    size_t skip = strlen("/component/");
    int n = snprintf(line, sizeof line, "%s %.*s %.*s %u %ld\n", event, (int)(key.len - skip), key.ptr + skip,
                     (int)run.len, run.ptr, (unsigned)ew_call_attempt(call), (long)getpid());
    if (marks >= 0 && (n >= (int)sizeof line || write(marks, line, (size_t)n) != n))
        fputs("components: a mark was lost\n", stderr);
}

/* ---- by themselves ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    ew_call_done(call, ew_call_input(call));
}

static void greet(ew_call *call, void *arg) {
    char text[1024];
    ew_str name = EW_STR("world");
    int64_t times = 1;
    size_t n = 0;
    (void)arg;
    if (!ew_call_input_str(call, "/name", &name) || !ew_call_input_int(call, "/times", &times))
        return;
    for (int64_t i = 0; i < times && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%sHello, %.*s!", i > 0 ? " " : "", (int)name.len, name.ptr);
    if (n < sizeof text)
        ew_call_donef(call, "{\"text\":%q}", ((ew_str){text, n}));
    else
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, "too often");
}

static void boom(ew_call *call, void *arg) {
    char text[1024];
    size_t n = 0;
    (void)arg;
    mark("begin", call);
    if (ew_json_string(ew_json_get(ew_call_input(call), "/message"), text, sizeof text - 1, &n) != EW_OK)
        n = 0;
    text[n] = '\0';
    ew_call_fail(call, EW_STATUS_INTERNAL, text);
}

static void disturbed(ew_call *call, void *arg) {
    (void)arg;
    mark("cancelled", call);
    ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

/* Has `then` called after the `ms` of the input. */
static void sleep_(ew_call *call, ew_call_fn then, void *arg) {
    mark("begin", call);
    int64_t ms = 0;
    if (!ew_call_input_int(call, "/ms", &ms))
        return;
    ew_call_on_cancel(call, disturbed, NULL);
    ew_call_after(call, (uint64_t)ms, then, arg);
}

static void awake(ew_call *call, void *arg) {
    (void)arg;
    mark("end", call);
    ew_call_donef(call, "{\"slept_ms\":%j}", ew_json_get(ew_call_input(call), "/ms"));
}

static void slow(ew_call *call, void *arg) { sleep_(call, awake, arg); }

static void tell_where(ew_call *call, void *arg) {
    ew_str context = ew_call_context(call);
    (void)arg;
    mark("end", call);
    ew_call_donef(call, "{\"run_id\":%j,\"flow_id\":%j,\"step_id\":%j,\"attempt\":%u}", ew_json_get(context, "/run_id"),
                  ew_json_get(context, "/flow_id"), ew_json_get(context, "/step_id"), (unsigned)ew_call_attempt(call));
}

static void where(ew_call *call, void *arg) { sleep_(call, tell_where, arg); }

static void big(ew_call *call, void *arg) {
    int64_t n = 0;
    if (!ew_call_input_int(call, "/bytes", &n))
        return;
    char *text = n >= 0 && n < (1 << 30) ? malloc((size_t)n + 2) : NULL;
    (void)arg;
    if (!text) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    memset(text, 'x', (size_t)n + 2);
    text[0] = text[n + 1] = '"';
    ew_call_done(call, (ew_str){text, (size_t)n + 2});
    free(text);
}

static void pid(ew_call *call, void *arg) {
    (void)arg;
    ew_call_donef(call, "{\"pid\":%d}", (int)getpid());
}

static void crash(ew_call *call, void *arg) {
    (void)arg;
    mark("begin", call);
    _exit(7);
}

/* ---- with the runtime's help ---- */

typedef void (*end_fn)(ew_request *request, const ew_end *end, void *ud);

/* JSON text by ew_json_format, to be freed; its length in *ret_len. NULL: no memory. */
static char *text_of(size_t *ret_len, const char *format, const ew_arg *args, size_t n_args) {
    int n = ew_json_format_args(NULL, 0, format, args, n_args);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text)
        *ret_len = (size_t)ew_json_format_args(text, (size_t)n + 1, format, args, n_args);
    return text;
}

/* Calls the runtime with such params. The call is referred to until on_end gives that back. */
#define ask(call, on_end, ud, method, ...) ask_args(call, on_end, ud, method, EW_FORMAT(__VA_ARGS__))
static void ask_args(ew_call *call, end_fn on_end, void *ud, const char *method, const char *format, const ew_arg *args,
                     size_t n_args) {
    ew_request_options options = {.action = ew_str_from(method), .timeout_ms = WAIT_MS, .on_end = on_end, .ud = ud};
    char *params = text_of(&options.input.len, format, args, n_args);
    options.input.ptr = params;
    ew_call_ref(call);
    ew_err err = params ? ew_call_back(call, &options, NULL) : EW_ENOMEM;
    free(params);
    if (err != EW_OK) {
        ew_call_fail(call, EW_STATUS_FAILED_PRECONDITION, ew_err_text(err));
        ew_call_unref(call);
    }
}

#define PUT "{\"data\":%j,\"blob_type\":\"data\"}"
#define GET "{\"blob_id\":%j}"

static void pass_id(ew_request *request, const ew_end *end, void *ud) {
    ew_call *call = ud;
    (void)request;
    if (end->status == EW_STATUS_OK)
        ew_call_donef(call, "{\"blob_id\":%j}", ew_json_get(end->result, "/blob_id"));
    else
        ew_call_fail_with(call, &end->fault);
    ew_call_unref(call);
}

static void put_blob(ew_call *call, void *arg) {
    (void)arg;
    ask(call, pass_id, call, "blobs/put", PUT, ew_json_get(ew_call_input(call), "/data"));
}

static void pass_data(ew_request *request, const ew_end *end, void *ud) {
    ew_call *call = ud;
    (void)request;
    if (end->status == EW_STATUS_OK)
        ew_call_donef(call, "{\"data\":%j}", ew_json_get(end->result, "/data"));
    else
        ew_call_fail_with(call, &end->fault);
    ew_call_unref(call);
}

static void get_blob(ew_call *call, void *arg) {
    (void)arg;
    ask(call, pass_data, call, "blobs/get", GET, ew_json_get(ew_call_input(call), "/blob_id"));
}

/* There and back: in memory of the call's. */
typedef struct trip {
    ew_call *call;
    char text[80];
    ew_str id; /* a JSON string, in text */
} trip;

static void compare(ew_request *request, const ew_end *end, void *ud) {
    trip *t = ud;
    ew_call *call = t->call;
    ew_str wanted = ew_json_get(ew_call_input(call), "/data");
    (void)request;
    if (end->status == EW_STATUS_OK)
        ew_call_donef(call, "{\"blob_id\":%j,\"equal\":%b}", t->id,
                      ew_str_eq(ew_json_get(end->result, "/data"), wanted));
    else
        ew_call_fail_with(call, &end->fault);
    ew_call_unref(call);
}

static void get_back(ew_call *call, void *arg) {
    trip *t = arg;
    mark("end", call);
    ask(call, compare, t, "blobs/get", GET, t->id);
}

static void wait_then_get(ew_request *request, const ew_end *end, void *ud) {
    trip *t = ud;
    ew_call *call = t->call;
    ew_str id = ew_json_get(end->result, "/blob_id");
    (void)request;
    if (end->status != EW_STATUS_OK) {
        ew_call_fail_with(call, &end->fault);
    } else if (id.len == 0 || id.len > sizeof t->text) {
        ew_call_fail(call, EW_STATUS_INTERNAL, "no id");
    } else {
        memcpy(t->text, id.ptr, id.len);
        t->id = (ew_str){t->text, id.len};
        sleep_(call, get_back, t);
    }
    ew_call_unref(call);
}

static void roundtrip(ew_call *call, void *arg) {
    trip *t = ew_call_alloc(call, sizeof *t);
    (void)arg;
    if (!t) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    t->call = call;
    ask(call, wait_then_get, t, "blobs/put", PUT, ew_json_get(ew_call_input(call), "/data"));
}

/* For worker threads: a request that is waited for later; NULL when it could not leave. */
static ew_request *start(ew_call *call, const char *method, const char *format, ew_str value) {
    char params[200];
    ew_request *request = NULL;
    int n = ew_json_format(params, sizeof params, format, value);
    ew_request_options options = {.action = ew_str_from(method), .input = {params, n > 0 ? (size_t)n : 0}};
    if (n <= 0 || n >= (int)sizeof params || ew_call_back(call, &options, &request) != EW_OK)
        return NULL;
    return request;
}

/* Puts n blobs at once, then gets them all at once; on a worker thread, where it may wait. */
static void many_blobs(ew_call *call, void *arg) {
    ew_request *puts[MANY_MAX] = {0}, *gets[MANY_MAX] = {0};
    char data[MANY_MAX][24];
    int different = 0;
    int64_t n = 1;
    if (!ew_call_input_int(call, "/n", &n))
        return;
    bool equal = n <= MANY_MAX;
    ew_end put = {0}, get = {0}, other = {0};
    (void)arg;
    for (int i = 0; equal && i < n; i++) {
        (void)snprintf(data[i], sizeof data[i], "{\"i\":%d}", i);
        puts[i] = start(call, "blobs/put", PUT, ew_str_from(data[i]));
    }
    for (int i = 0; equal && i < n; i++) {
        equal = puts[i] && ew_request_wait(puts[i], WAIT_MS, &put) == EW_OK && put.status == EW_STATUS_OK;
        if (equal)
            gets[i] = start(call, "blobs/get", GET, ew_json_get(put.result, "/blob_id"));
    }
    for (int i = 0; equal && i < n; i++) {
        equal = gets[i] && ew_request_wait(gets[i], WAIT_MS, &get) == EW_OK &&
                ew_str_eq(ew_json_get(get.result, "/data"), ew_str_from(data[i]));
        bool seen = false;
        (void)ew_request_wait(puts[i], WAIT_MS, &put);
        for (int k = 0; k < i && !seen; k++)
            seen = ew_request_wait(puts[k], WAIT_MS, &other) == EW_OK && ew_str_eq(put.result, other.result);
        different += !seen;
    }
    for (int i = 0; i < n && i < MANY_MAX; i++) {
        ew_request_free(puts[i]);
        ew_request_free(gets[i]);
    }
    ew_call_donef(call, "{\"different\":%d,\"equal\":%b}", different, equal);
}

static void pass_result(ew_request *request, const ew_end *end, void *ud) {
    ew_call *call = ud;
    (void)request;
    if (end->status == EW_STATUS_OK)
        ew_call_donef(call, "{\"result\":%j}", ew_json_get(end->result, "/results/0/result/result"));
    else
        ew_call_fail_with(call, &end->fault);
    ew_call_unref(call);
}

/* The key tells the runtime that a second attempt means the same run; one per run of ours is enough here. */
static void evaluate(ew_call *call, void *arg) {
    ew_str input = ew_call_input(call);
    (void)arg;
    ask(call, pass_result, call, "runs/submit", "{\"flowId\":%j,\"inputs\":[%j],\"wait\":true,\"subflowKey\":%j}",
        ew_json_get(input, "/flow_id"), ew_json_get(input, "/input"), ew_json_get(ew_call_context(call), "/run_id"));
}

#define GREETING                                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"times\":{\"type\":\"integer\"}},"           \
    "\"required\":[\"name\"]}"
#define GREETED "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"

static void add(ew_app *app, const char *key, ew_handler_fn fn, const char *description) {
    ew_app_action(app, key, fn, NULL, &(ew_action_options){.description = description});
}

int main(int argc, char **argv) {
    const char *path = getenv("STEPFLOW_MARKS");
    if (path)
        marks = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ew_app *app = ew_app_new("components");
    add(app, "/component/echo", echo, "Returns its input.");
    ew_app_action(app, "/component/greet", greet, NULL,
                  &(ew_action_options){.description = "Greets somebody, more than once if need be.",
                                       .input_schema = GREETING,
                                       .output_schema = GREETED});
    add(app, "/component/boom", boom, "Fails with `message`.");
    add(app, "/component/slow", slow, "Sleeps for `ms`.");
    add(app, "/component/where", where, "Says what came with the call, after `ms`.");
    add(app, "/component/big", big, "Returns a string of `bytes` letters.");
    add(app, "/component/pid", pid, "Says which process it is in.");
    add(app, "/component/crash", crash, "Takes the process down.");
    add(app, "/component/put_blob", put_blob, "Has the runtime keep `data`.");
    add(app, "/component/get_blob", get_blob, "Has the runtime return what it keeps.");
    add(app, "/component/roundtrip", roundtrip, "Puts `data`, gets it, and compares; waits for `ms` between the two.");
    ew_app_action(
        app, "/component/many_blobs", many_blobs, NULL,
        &(ew_action_options){.description = "Puts `n` blobs at once, then gets them all at once.", .may_block = true});
    add(app, "/component/evaluate", evaluate, "Has the runtime run the flow that it keeps as `flow_id`.");
    return ew_app_main(app, argc, argv);
}
