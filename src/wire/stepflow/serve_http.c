/*
 * wire/stepflow/serve_http.c: a component server on HTTP, as a guest of the http wire: one message is one POST. To the
 * call model this is the caller's end of the calls that came.
 *
 * A call that needs nothing of the runtime is answered with one JSON body. When its handler calls back, the answer
 * becomes a stream of events; the runtime's reply is a POST of its own, on another connection and perhaps on another
 * loop, and is found by its id.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/stepflow.h"
#include "base/list.h"
#include "wire/rpc_calls.h"
#include <stdio.h>

#define NONE ((ew_str){NULL, 0})
#define ID_ROOM 64
#define ALIVE_MS 15000 /* between two signs of life in a stream: proxies give up silent ones */

struct posted;

/* A call back that waits for its reply; in its call's memory. */
typedef struct asked {
    struct asked *next, *prev; /* of its exchange */
    struct posted *posted;
    ew__sf_scratch *scratch;
    ew_call *call; /* a reference */
    ew_str key;    /* its id without quotes */
} asked;

/* components/execute; in its call's memory. */
typedef struct posted {
    ew__exchange *exchange; /* NULL: it is over */
    ew_str id;
    asked *first;
    uint32_t n_asked;
    ew__timer alive; /* while the answer is a stream */
} posted;

/* ---- answers ---- */

static void answer_error(ew__exchange *exchange, int status, ew_str id, ew_str error) {
    ew__rpc_out message;
    ew__buf line;
    ew_str plain;
    if (ew__sf_plain(exchange->conn->executor->env, id, &line, &plain) != EW_OK)
        plain = NONE;
    ew__rpc_put_error(&message, plain, error);
    exchange->ops->answer(exchange, status, &message, NULL);
    ew__buf_done(&line);
}

static void refuse(ew__exchange *exchange, int status, ew_str id, int64_t code, ew_status why, const char *text) {
    ew__buf buf;
    ew_str error = ew__sf_error(exchange->conn->executor->env, &buf, code, why, ew_str_from(text), NONE);
    answer_error(exchange, status, id, error);
    ew__buf_done(&buf);
}

/* As Stepflow's own server says it. */
static void refuse_accept(ew__exchange *exchange) {
    ew__rpc_out message;
    ew__rpc_out_begin(&message,
                      EW_STR("{\"error\":\"Accept header must include application/json and text/event-stream\"}"));
    exchange->ops->answer(exchange, 406, &message, NULL);
}

/* ---- calls back ---- */

static ew_call *detach(asked *entry) {
    ew_call *call = entry->call;
    (void)ew__map_remove(&entry->scratch->asked, entry->key);
    EW__LIST_REMOVE(entry->posted->first, entry);
    entry->posted->n_asked--;
    return call;
}

static void fail_asked(asked *entry, ew_origin origin, ew_status status, const char *text) {
    ew_call *call = detach(entry);
    ew__call_fail_as(call, origin, status, ew_str_from(text));
    ew_call_unref(call);
}

static void on_back_open(ew_call *call) { (void)call; /* it is open when it comes here */ }

static void on_back_cancel(ew_call *call, ew__cancel_why why) {
    (void)why; /* there is no word for it; the reply will be late */
    fail_asked(call->callee_ud, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

static const ew__callee_ops back = {.open = on_back_open, .cancel = on_back_cancel};

/* The principal that runs the call which has called back: only its replies count. */
static bool may_answer(const asked *entry, const ew__principal *sender) {
    const ew__exchange *exchange = entry->posted->exchange;
    ew__principal owner = ew__principal_of(exchange->conn->executor, exchange->call->served.who);
    return ew__principal_equal(&owner, sender);
}

/* Ends the call back that a reply answers. false: no call back of this sender waits here under its id. */
static bool deliver(ew__sf_scratch *scratch, const ew__principal *sender, const ew__rpc *message) {
    char buf[128];
    ew_str key = ew_json_typeof(message->id) == EW_JSON_STRING ? ew__rpc_text(message->id, buf, sizeof buf) : NONE;
    asked *entry = key.len && scratch->has_asked ? ew__map_get(&scratch->asked, key) : NULL;
    if (!entry || !may_answer(entry, sender))
        return false;
    ew_call *call = detach(entry);
    ew__sf_end_back(call, message);
    ew_call_unref(call);
    return true;
}

/*
 * An id names the loop that waits for the reply. The rest is 128 bits of env->random, so that a peer which has not
 * received the request cannot guess it. Written in quotes; returns the length.
 */
static size_t new_id(const ew__conn *conn, char out[ID_ROOM]) {
    const ew_env *env = conn->executor->env;
    uint8_t secret[16];
    env->random(env->ud, secret, sizeof secret);
    size_t n = (size_t)snprintf(out, ID_ROOM, "\"%u-ew", conn->site->loop);
    ew__hex(secret, sizeof secret, out + n);
    n += 2 * sizeof secret;
    out[n] = '"';
    return n + 1;
}

static ew_err add_asked(posted *self, ew__sf_scratch *scratch, ew_call *outgoing, ew_str id) {
    asked *entry = ew__arena_alloc(&outgoing->arena, sizeof *entry);
    if (!entry)
        return EW_ENOMEM;
    *entry = (asked){.posted = self, .scratch = scratch, .call = outgoing};
    if (!scratch->has_asked) {
        ew__map_init(&scratch->asked, outgoing->executor->env);
        scratch->has_asked = true;
    }
    ew_err err = ew__arena_str(&outgoing->arena, ew__str(id.ptr + 1, id.len - 2), &entry->key);
    if (err == EW_OK && ew__map_add(&scratch->asked, entry->key, entry, &err))
        err = EW_EBUSY; /* env->random has repeated itself */
    if (err != EW_OK)
        return err;
    EW__LIST_ADD(self->first, entry);
    self->n_asked++;
    ew_call_ref(outgoing);
    outgoing->callee = &back;
    outgoing->callee_ud = entry;
    return EW_OK;
}

static void on_alive(ew__timer *timer, uint64_t now) {
    posted *self = ew__container_of(timer, posted, alive);
    ew__executor *executor = self->exchange->conn->executor;
    if (self->exchange->conn->out.bytes == 0) /* else it is the reader that is silent */
        self->exchange->ops->comment(self->exchange);
    (void)ew__timer_set(&executor->timers, timer, now + EW__MS(ALIVE_MS), on_alive);
}

/* The answer becomes a stream; a load balancer finds us again by the name we give it. */
static void begin_stream(posted *self) {
    ew__exchange *exchange = self->exchange;
    ew__executor *executor = exchange->conn->executor;
    const ew__instance *instance = exchange->conn->site->instance;
    char fields[160];
    int n = snprintf(fields, sizeof fields, "%s%.*s%sCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n",
                     instance ? "Stepflow-Instance-Id: " : "", instance ? (int)sizeof instance->id : 0,
                     instance ? instance->id : "", instance ? "\r\n" : "");
    exchange->ops->begin(exchange, ew__str(fields, (size_t)n));
    (void)ew__timer_set(&executor->timers, &self->alive, executor->now + EW__MS(ALIVE_MS), on_alive);
}

static ew_err send_back(posted *self, ew__sf_scratch *scratch, ew_call *call, ew_call *outgoing) {
    ew__exchange *exchange = self->exchange;
    ew__conn *conn = exchange->conn;
    const ew_limits *limits = conn->executor->limits;
    char id[ID_ROOM];
    size_t n = new_id(conn, id);
    ew__buf text;
    ew__rpc_out message;
    ew__buf_init(&text, conn->executor->env, (size_t)limits->frame_bytes);
    ew_err err = ew__sf_write_back(&text, call, outgoing, ew__str(id, n));
    if (err == EW_OK && conn->out.bytes > 0 && conn->out.bytes + text.len > limits->out_max_bytes)
        err = EW_EBUSY;
    if (err == EW_OK)
        err = add_asked(self, scratch, outgoing, ew__str(id, n));
    if (err == EW_OK) {
        if (!exchange->streaming)
            begin_stream(self);
        ew__rpc_out_begin(&message, ew__buf_view(&text));
        exchange->ops->event(exchange, &message, NULL);
    }
    ew__buf_done(&text);
    return err;
}

static void refuse_back(ew_call *outgoing, ew_status status, const char *why) {
    ew__call_fail_as(outgoing, EW_ORIGIN_LOCAL, status, ew_str_from(why));
}

static ew_err on_call_back(ew_call *call, ew_call *outgoing) {
    posted *self = call->caller_ud;
    const char *why = ew__sf_refuses_back(outgoing);
    if (why) {
        refuse_back(outgoing, EW_STATUS_INVALID_ARGUMENT, why);
        return EW_OK;
    }
    if (!self->exchange) /* a handler that is told so may try again at once */
        return EW_EENDED;
    ew__conn *conn = self->exchange->conn;
    ew_err err = ew__sf_back_by_url(conn->site, conn->executor, call->served.who, outgoing);
    if (err != EW_ENOTFOUND)
        return err;
    ew__sf_scratch *scratch = conn->ops->shared ? conn->ops->shared(conn, &ew__wire_stepflow) : NULL;
    if (!scratch || self->n_asked >= conn->executor->limits->calls_per_connection)
        return EW_EBUSY;
    err = send_back(self, scratch, call, outgoing);
    if (err == EW_ELIMIT)
        refuse_back(outgoing, EW_STATUS_RESOURCE_EXHAUSTED, "this is too large for a message");
    return err == EW_ELIMIT ? EW_OK : err;
}

/* ---- components/execute: the caller's end ---- */

static void send_end(posted *self, const ew__rpc_out *message, ew_call *owner) {
    ew__exchange *exchange = self->exchange;
    if (exchange->streaming) {
        exchange->ops->event(exchange, message, owner);
        exchange->ops->end(exchange);
    } else {
        exchange->ops->answer(exchange, 200, message, owner);
    }
}

static void on_end(ew_call *call, const ew__end *end) {
    posted *self = call->caller_ud;
    const ew__executor *executor = call->executor;
    ew__rpc_out message;
    ew__buf id_line, line;
    ew_str id, payload = NONE;
    if (!self->exchange) /* its runtime has gone: the handler was told by what it had asked, and has ended the call */
        return;
    ew_err err = ew__sf_plain(executor->env, self->id, &id_line, &id);
    if (end->status == EW_STATUS_OK) {
        ew_err line_err = ew__sf_plain(executor->env, end->result, &line, &payload);
        err = err ? err : line_err;
        ew__sf_put_output(&message, id, payload);
    } else {
        payload = ew__sf_fault(executor, &line, 0, &end->fault);
        ew__rpc_put_error(&message, id, payload);
    }
    if (err != EW_OK) /* then it is ASCII already, or the runtime sees an id that it does not know */
        ew__rpc_put_error(&message, id, EW_STR("{\"code\":-32603,\"message\":\"out of memory\"}"));
    send_end(self, &message, line.len || err ? NULL : call);
    ew__buf_done(&line);
    ew__buf_done(&id_line);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK; /* not carried */
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end, .call_back = on_call_back};

static void execute(ew__exchange *exchange, const ew__json_doc *doc, const ew__rpc *message) {
    ew__conn *conn = exchange->conn;
    ew_call *call = exchange->call;
    char name[EW__SF_NAME_ROOM];
    ew__sf_run run;
    ew__buf buf;
    ew_str error = NONE;
    if (conn->site->draining) {
        ew_fault fault = ew__refusal(EW_STATUS_UNAVAILABLE, "the server is going down");
        answer_error(exchange, 503, message->id, ew__sf_fault(conn->executor, &buf, EW__SF_TRANSPORT_ERROR, &fault));
        ew__buf_done(&buf);
        return;
    }
    ew__action *action = ew__sf_find(conn->site, conn->executor->env, doc, message, &run, name, &buf, &error);
    posted *self = action ? ew_call_alloc(call, sizeof *self) : NULL;
    if (!action) {
        answer_error(exchange, 200, message->id, error);
    } else if (!self || ew__sf_fill_call(call, &run, false) != EW_OK) {
        refuse(exchange, 503, message->id, EW__SF_TRANSPORT_ERROR, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    } else {
        *self = (posted){.exchange = exchange, .id = message->id};
        exchange->ud = self;
        call->caller = &caller;
        call->caller_ud = self;
        call->wire = EW__STEPFLOW_NAME;
        ew__call_mark_depth(call, doc);
        ew__call_open(call, action);
    }
    ew__buf_done(&buf);
}

/* ---- other messages ---- */

static void serve_plain(ew__exchange *exchange, const ew__rpc *message, ew__sf_method method) {
    ew__buf out;
    ew__rpc_out text;
    bool error = false;
    ew__buf_init(&out, exchange->conn->executor->env, SIZE_MAX / 2);
    if (ew__sf_answer(exchange->conn, exchange->call->served.who, message, method, &out, &error) != EW_OK) {
        refuse(exchange, 503, message->id, EW__SF_TRANSPORT_ERROR, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    } else if (error) {
        answer_error(exchange, 200, message->id, ew__buf_view(&out));
    } else {
        ew__buf line;
        ew_str id;
        if (ew__sf_plain(exchange->conn->executor->env, message->id, &line, &id) != EW_OK)
            id = message->id;
        ew__rpc_put_result(&text, id, 0, ew__buf_view(&out));
        exchange->ops->answer(exchange, 200, &text, NULL);
        ew__buf_done(&line);
    }
    ew__buf_done(&out);
}

/* The loop that an id of ours names; EW__ALL_OTHER_LOOPS: it names none. */
static unsigned loop_of(ew_str id) {
    char buf[128];
    uint64_t loop = 0;
    ew_str text = ew_json_typeof(id) == EW_JSON_STRING ? ew__rpc_text(id, buf, sizeof buf) : NONE;
    const char *dash = text.len ? memchr(text.ptr, '-', text.len) : NULL;
    if (!dash || !ew__u64_parse(ew__str(text.ptr, (size_t)(dash - text.ptr)), &loop) || loop >= EW__ALL_OTHER_LOOPS)
        return EW__ALL_OTHER_LOOPS;
    return (unsigned)loop;
}

static void refuse_late(ew__exchange *exchange) {
    atomic_fetch_add_explicit(&exchange->conn->executor->calls->dropped, 1, memory_order_relaxed);
    refuse(exchange, 400, NONE, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, "no pending request has this id");
}

static void on_reply(ew__exchange *exchange, const ew__rpc *message, ew_str body) {
    ew__conn *conn = exchange->conn;
    struct ew__broadcast *broadcast = conn->site->broadcast;
    ew__sf_scratch *scratch = conn->ops->shared ? conn->ops->shared(conn, &ew__wire_stepflow) : NULL;
    unsigned loop = loop_of(message->id);
    ew__principal sender = ew__principal_of(conn->executor, exchange->call->served.who);
    if (scratch && deliver(scratch, &sender, message)) {
        exchange->ops->answer(exchange, 202, NULL, NULL);
        return;
    }
    bool elsewhere = broadcast && loop != EW__ALL_OTHER_LOOPS && loop != conn->site->loop;
    if (elsewhere && broadcast->send(broadcast, conn->executor, &ew__wire_stepflow, loop, &sender, body))
        exchange->ops->answer(exchange, 202, NULL, NULL);
    else if (elsewhere)
        refuse(exchange, 503, NONE, EW__SF_TRANSPORT_ERROR, EW_STATUS_RESOURCE_EXHAUSTED, "too many replies wait");
    else
        refuse_late(exchange);
}

void ew__sf_on_broadcast(void *scratch, ew__executor *executor, const ew__principal *sender, ew_str text) {
    ew__json_doc doc;
    ew__rpc message;
    bool good = ew__json_parse(&doc, text) == EW_OK;
    if (good)
        ew__rpc_read(&doc, 0, &message);
    bool reply = good && (message.kind == EW__RPC_RESULT || message.kind == EW__RPC_ERROR);
    if (!reply || !deliver(scratch, sender, &message))
        atomic_fetch_add_explicit(&executor->calls->dropped, 1, memory_order_relaxed);
}

void ew__sf_scratch_done(void *scratch) {
    ew__sf_scratch *shared = scratch;
    if (shared->has_asked)
        ew__map_done(&shared->asked);
}

/* Stepflow's runtimes take a request with a null id for a notification. */
static bool is_notification(const ew__rpc *message) {
    return message->kind == EW__RPC_NOTIFICATION ||
           (message->kind == EW__RPC_REQUEST && ew__str_is(message->id, EW_STR("null")));
}

static void take(ew__exchange *exchange, const ew__json_doc *doc, const ew__rpc *message, ew_str body) {
    ew__sf_method method = message->method.len ? ew__sf_method_of(message->method) : EW__SF_OTHER;
    if (message->kind == EW__RPC_INVALID)
        refuse(exchange, 400, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, message->problem);
    else if (message->kind == EW__RPC_RESULT || message->kind == EW__RPC_ERROR)
        on_reply(exchange, message, body);
    else if (is_notification(message))
        exchange->ops->answer(exchange, 202, NULL, NULL); /* whatever it says: nothing depends on it */
    else if (method == EW__SF_EXECUTE)
        execute(exchange, doc, message);
    else
        serve_plain(exchange, message, method);
}

/* ---- the guest ---- */

static bool takes(const ew__site *site, ew__http_method method, ew_str path) {
    return method == EW__HTTP_POST && (site->only_guest || ew__str_is(path, EW_STR("/")));
}

static void request(ew__exchange *exchange, ew_str body) {
    const uint8_t both = EW__ACCEPTS_JSON | EW__ACCEPTS_STREAM;
    ew__json_doc doc;
    ew__rpc message;
    if (!(exchange->accepts & EW__ACCEPTS_ANY) && (exchange->accepts & both) != both) {
        refuse_accept(exchange);
        return;
    }
    ew_err err = ew__json_parse(&doc, body);
    if (err != EW_OK) {
        refuse(exchange, 400, NONE, EW__RPC_PARSE_ERROR, EW_STATUS_INVALID_ARGUMENT,
               err == EW_ELIMIT ? "the JSON nests more than 128 levels deep" : "the JSON is malformed");
        return;
    }
    ew__rpc_read(&doc, 0, &message);
    take(exchange, &doc, &message, body);
}

/* Whoever waits for a reply waits in vain: with its stream the runtime has left this call. */
static void over(ew__exchange *exchange) {
    posted *self = exchange->ud;
    if (!self)
        return;
    ew__timer_stop(&exchange->conn->executor->timers, &self->alive);
    self->exchange = NULL;
    while (self->first)
        fail_asked(self->first, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                   "the call that it belongs to has ended, or its runtime has gone");
}

const ew__http_guest ew__stepflow_guest = {.takes = takes, .request = request, .over = over};
