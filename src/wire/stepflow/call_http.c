/*
 * wire/stepflow/call_http.c: a runtime's connection to a component server on HTTP. One call at a time, answered by a
 * JSON body, or by a stream of events in which the server may ask us things; our replies are POSTs of their own.
 *
 * The server is greeted (initialize, initialized) once, by the first connection that has a call, not by each: the calls
 * of the others wait for that. When the last connection has gone, it may be another server that comes next; but a
 * server that closes after each answer is greeted over several connections, and known for a while without any.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "base/list.h"
#include "frame/sse.h"
#include "wire/http_ask.h"
#include "wire/put.h"
#include "wire/rpc_calls.h"
#include "wire/stepflow/stepflow.h"
#include <stdio.h>

#define NONE ((ew_str){NULL, 0})

#define MEMORY_MS 10000 /* for a server that closes after each answer */

/* ew__sf_greeting.state; ANSWERED: it is still to be told that it is initialized */
enum { STRANGE, GREETED, ANSWERED, KNOWN };

enum { IDLE, WAITS, HELLO, HELLO_DONE, ASKED }; /* what the connection is at */

typedef struct sf_client {
    ew__http_ask ask;
    struct sf_client *next, *prev; /* among those that wait for the greeting */
    ew__timer patience;            /* of the one that greets */
    ew__sse sse;
    ew__rpc_ids ids;
    char id[EW__RPC_ID_ROOM]; /* of the request under way, with quotes */
    uint8_t id_len;
    uint8_t phase;
    bool bare;         /* the component was named without a slash */
    bool streaming;    /* the answer is a stream of events */
    bool polite;       /* the server has answered, and said that it closes */
    char instance[80]; /* the server among several, as it calls itself; may be empty */
} sf_client;

static sf_client *client_of(ew__http_ask *ask) { return (sf_client *)(void *)ask; }

static ew__site *site_of(const sf_client *client) { return client->ask.peer.conn->site; }

static ew__sf_greeting *greeting_of(const sf_client *client) { return ew__sf_greeting_of(site_of(client)); }

/* ---- requests ---- */

static size_t head_room(const ew__site *site, const char *instance) {
    return 512 + site->path.len + site->authority.len + site->token.len + (instance ? strlen(instance) : 0);
}

static uint8_t *put_head(uint8_t *p, const ew__site *site, size_t length, const char *instance) {
    p = ew__put_str(EW__PUT(p, "POST "), site->path.len ? site->path : EW_STR("/"));
    p = ew__put_str(EW__PUT(p, " HTTP/1.1\r\nHost: "), site->authority);
    p = EW__PUT(p, "\r\nUser-Agent: everywire/" EW_VERSION_STRING "\r\nContent-Type: application/json\r\n"
                   "Accept: application/json, text/event-stream\r\nContent-Length: ");
    p = ew__put_number(p, length);
    if (site->token.len)
        p = ew__put_str(EW__PUT(p, "\r\nAuthorization: Bearer "), site->token);
    if (instance && instance[0])
        p = ew__put_str(EW__PUT(p, "\r\nStepflow-Instance-Id: "), ew_str_from(instance));
    return instance ? EW__PUT(p, "\r\nConnection: close\r\n\r\n") : EW__PUT(p, "\r\n\r\n");
}

static void post(sf_client *client, const ew__rpc_out *message, ew_call *owner) {
    ew__conn *conn = client->ask.peer.conn;
    size_t room = head_room(conn->site, NULL);
    uint8_t *start = ew__put_begin(&conn->out, room);
    if (start) {
        ew__put_end(&conn->out, start, room, put_head(start, conn->site, message->len, NULL));
        ew__rpc_write(&conn->out, message, owner);
    }
    ew__http_ask_send(&client->ask);
}

static void no_memory(sf_client *client) {
    ew__http_ask_break_off(&client->ask, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

static ew_str next_id(sf_client *client) {
    client->id_len = (uint8_t)ew__rpc_ids_next(&client->ids, client->id);
    return ew__str(client->id, client->id_len);
}

static void send_call(sf_client *client) {
    ew_call *call = client->ask.call;
    const ew_env *env = call->executor->env;
    ew__sf_request request;
    ew__buf line;
    ew__rpc_out message;
    ew_str input;
    client->phase = ASKED;
    ew_err line_err = ew__sf_plain(env, call->input, &line, &input);
    ew_err err =
        ew__sf_write_request(&request, env, call, next_id(client), client->bare, greeting_of(client)->everywire);
    ew__rpc_out_begin(&message, request.head);
    if (call->kind == EW__CALL_RUN) {
        ew__rpc_out_add(&message, input);
        ew__rpc_out_add(&message, request.tail);
    }
    if (err == EW_OK && line_err == EW_OK)
        post(client, &message, line.len ? NULL : call);
    else
        no_memory(client);
    ew__buf_done(&line);
    ew__sf_request_done(&request, env);
}

/* ---- the greeting ---- */

static void on_no_hello(ew__timer *timer, uint64_t now);

static void greet(sf_client *client) {
    ew__site *site = site_of(client);
    ew__executor *executor = client->ask.peer.conn->executor;
    uint64_t until = executor->now + EW__MS(executor->limits->runtime_wait_ms);
    ew__buf text;
    ew__rpc_out message;
    greeting_of(client)->state = GREETED;
    client->phase = HELLO;
    ew__buf_init(&text, executor->env, SIZE_MAX / 2);
    if (ew__sf_write_initialize(&text, next_id(client), site->blob_api) == EW_OK &&
        ew__timer_set(&executor->timers, &client->patience, until, on_no_hello) == EW_OK) {
        ew__rpc_out_begin(&message, ew__buf_view(&text));
        post(client, &message, NULL);
    } else {
        no_memory(client);
    }
    ew__buf_done(&text);
}

/* The second half: it is told that it is initialized. */
static void confirm(sf_client *client) {
    ew__executor *executor = client->ask.peer.conn->executor;
    uint64_t until = executor->now + EW__MS(executor->limits->runtime_wait_ms);
    ew__rpc_out text;
    greeting_of(client)->state = GREETED;
    client->phase = HELLO_DONE;
    ew__rpc_out_begin(&text, EW__SF_INITIALIZED_TEXT);
    if (ew__timer_active(&client->patience) || /* the time of the first half goes on */
        ew__timer_set(&executor->timers, &client->patience, until, on_no_hello) == EW_OK)
        post(client, &text, NULL);
    else
        no_memory(client);
}

static void wait_for_greeting(sf_client *client) {
    sf_client *first = greeting_of(client)->waiting;
    client->phase = WAITS;
    EW__LIST_ADD(first, client);
    greeting_of(client)->waiting = first;
}

static void stop_waiting(sf_client *client) {
    sf_client *first = greeting_of(client)->waiting;
    EW__LIST_REMOVE(first, client);
    greeting_of(client)->waiting = first;
    client->phase = IDLE;
}

/* One that still has its call: the connections of others may have been lost, and nobody was told yet. */
static sf_client *next_waiting(ew__site *site) {
    sf_client *next;
    while ((next = ew__sf_greeting_of(site)->waiting) != NULL) {
        stop_waiting(next);
        if (next->ask.call)
            break;
    }
    return next;
}

static void end_greeting(sf_client *client, uint8_t state) {
    ew__timer_stop(&client->ask.peer.conn->executor->timers, &client->patience);
    greeting_of(client)->state = state;
}

/* It is over without success, and nobody said why: the next one tries. */
static void pass_greeting_on(sf_client *client) {
    end_greeting(client, STRANGE);
    sf_client *next = next_waiting(site_of(client));
    if (next)
        greet(next);
}

static void leave(sf_client *client) {
    uint8_t phase = client->phase;
    if (phase == WAITS)
        stop_waiting(client);
    client->phase = IDLE;
    if (phase == HELLO || phase == HELLO_DONE)
        pass_greeting_on(client);
}

/* The server does not want to be spoken to like that, or not at all: whoever waits has failed, too. */
static void fail_all(sf_client *client, ew_origin origin, ew_status status, const char *text) {
    ew__site *site = site_of(client);
    end_greeting(client, STRANGE);
    client->phase = IDLE;
    ew__http_ask_break_off(&client->ask, origin, status, text);
    for (sf_client *next; (next = next_waiting(site)) != NULL;)
        ew__http_ask_break_off(&next->ask, origin, status, text);
}

static void on_no_hello(ew__timer *timer, uint64_t now) {
    (void)now;
    fail_all(ew__container_of(timer, sf_client, patience), EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
             "the server has not answered initialize");
}

static void know(sf_client *client) {
    ew__site *site = site_of(client);
    end_greeting(client, KNOWN);
    client->phase = IDLE;
    if (client->ask.keep_alive)
        send_call(client);
    for (sf_client *next; (next = next_waiting(site)) != NULL;)
        send_call(next);
}

/* ---- answers ---- */

static bool is_ours(const sf_client *client, ew_str id) {
    char buf[2 * EW__RPC_ID_ROOM];
    return ew__str_is(ew__rpc_key(id, buf, sizeof buf), ew__str(client->id, client->id_len));
}

/* A server that cannot read a request answers it with an error without an id: it came by the same exchange. */
static bool is_unreadable(const sf_client *client, const ew__rpc *message) {
    return message->kind == EW__RPC_ERROR && ew__rpc_is_unnamed(message) && client->ask.status < 400;
}

static void end_call(sf_client *client) {
    client->phase = IDLE;
    ew_call_unref(ew__http_ask_detach(&client->ask));
}

/* Ends the call, or asks again with the other spelling of the name. */
static void on_answer(sf_client *client, const ew__rpc *message) {
    ew_call *call = client->ask.call;
    if (!ew__sf_end_call(call, message, client->bare || client->streaming || !client->ask.keep_alive)) {
        client->bare = true;
        send_call(client);
        return;
    }
    end_call(client);
}

/* 4xx and 5xx: a whole JSON-RPC error, or one without its envelope, or a text, or anything. Slices, or in text. */
static void read_refusal(const sf_client *client, const ew__json_doc *doc, char *text, size_t capacity, ew_fault *ret) {
    int status = client->ask.status;
    ew_str error = doc && doc->type == EW_JSON_OBJECT ? ew__json_find(doc, EW_STR("error"), NULL) : NONE;
    *ret = (ew_fault){.status = EW_STATUS_UNKNOWN, .message = ew_str_from(ew__http_reason(status))};
    ew_str told = ew__rpc_text(error, text, capacity);
    if (ew_json_typeof(error) == EW_JSON_OBJECT)
        ew__sf_read_fault(error, text, capacity, ret);
    else if (!told.len && doc && doc->type == EW_JSON_OBJECT) /* as the http wire of everywire says it */
        told = ew__rpc_text(ew__json_find(doc, EW_STR("message"), NULL), text, capacity);
    if (doc && doc->type == EW_JSON_OBJECT && !error.len)
        (void)ew_json_bool(ew_json_get(doc->root, "/refused"), &ret->refused);
    if (told.len && ew_json_typeof(error) != EW_JSON_OBJECT)
        ret->message = told;
    if (ret->status == EW_STATUS_UNKNOWN) /* its code says nothing: then HTTP's does */
        ret->status = ew_status_from_http(status);
}

static void on_refusal(sf_client *client, const ew__json_doc *doc) {
    char text[512];
    ew_fault fault;
    read_refusal(client, doc, text, sizeof text, &fault);
    client->phase = IDLE;
    ew_call *call = ew__http_ask_detach(&client->ask);
    ew__call_fault(call, &fault);
    ew_call_unref(call);
}

/* The number does not count: all generations say 1. That there is one does: others than Stepflow have an initialize. */
static bool is_version(ew_str result) {
    return ew_json_typeof(result) == EW_JSON_OBJECT && (ew_json_member(result, EW_STR("server_protocol_version")).len ||
                                                        ew_json_member(result, EW_STR("serverProtocolVersion")).len);
}

static void refused_hello(sf_client *client, const ew__json_doc *doc, const ew__rpc *message) {
    char buf[512], text[300];
    ew_fault fault;
    if (client->ask.status >= 400)
        read_refusal(client, doc, buf, sizeof buf, &fault);
    else
        ew__sf_read_fault(message->error, buf, sizeof buf, &fault);
    bool not_us = fault.status == EW_STATUS_UNAUTHENTICATED || fault.status == EW_STATUS_PERMISSION_DENIED ||
                  fault.status == EW_STATUS_RESOURCE_EXHAUSTED; /* it is a server; it does not want us, or not now */
    int n = fault.message.len < 200 ? (int)fault.message.len : 200;
    (void)snprintf(text, sizeof text, "the server refuses the handshake: %.*s", n, n ? fault.message.ptr : "");
    fail_all(client, not_us ? EW_ORIGIN_ACTION : EW_ORIGIN_PROTOCOL, fault.status, text);
}

/* It has answered. If it closes, somebody else goes on with it. */
static void answered(sf_client *client) {
    sf_client *next = client;
    if (!client->ask.keep_alive) {
        end_greeting(client, ANSWERED);
        client->phase = IDLE;
        next = next_waiting(site_of(client));
    }
    if (next)
        confirm(next);
}

/* message: the answer, if what came is one. doc: any other JSON. */
static void on_hello(sf_client *client, const ew__json_doc *doc, const ew__rpc *message) {
    if (client->ask.status >= 400 || (message && message->kind == EW__RPC_ERROR)) {
        refused_hello(client, doc, message);
    } else if (!message || !is_version(message->result)) {
        fail_all(client, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL,
                 "the server did not answer initialize as a Stepflow component server does");
    } else {
        greeting_of(client)->everywire = ew__sf_is_everywire(message->result);
        answered(client);
    }
}

static void on_body_end(sf_client *client) {
    ew__json_doc doc;
    ew__rpc message;
    ew_str body = ew__http_ask_body(&client->ask), output;
    if (EW__LIKELY(client->phase == ASKED && client->ask.call->kind == EW__CALL_RUN &&
                   ew__sf_read_output(body, ew__str(client->id, client->id_len), &output))) {
        (void)ew__call_done_valid(client->ask.call, output);
        end_call(client);
        return;
    }
    bool good = ew__json_parse(&doc, body) == EW_OK;
    if (good) {
        ew__call_mark_depth(client->ask.call, &doc);
        ew__rpc_read(&doc, 0, &message);
    }
    bool answers = good && (message.kind == EW__RPC_RESULT || message.kind == EW__RPC_ERROR);
    if (client->phase == HELLO)
        on_hello(client, good ? &doc : NULL, answers ? &message : NULL);
    else if (answers && (is_ours(client, message.id) || is_unreadable(client, &message)))
        on_answer(client, &message);
    else if (client->ask.status >= 400)
        on_refusal(client, good ? &doc : NULL);
    else
        ew__http_ask_protocol_error(&client->ask, "the server's answer is no JSON-RPC response to this request");
}

/* ---- events ---- */

/* What the server wants to know goes to it as a request of its own, which finds its instance by the name it gave. */
static ew_err reply(const sf_client *client, const ew__rpc_out *message) {
    ew__conn *conn = client->ask.peer.conn;
    ew__buf bytes;
    ew__buf_init(&bytes, conn->executor->env, SIZE_MAX / 2);
    if (ew__buf_reserve(&bytes, head_room(conn->site, client->instance)) == EW_OK)
        bytes.len =
            (size_t)(put_head((uint8_t *)bytes.ptr, conn->site, message->len, client->instance) - (uint8_t *)bytes.ptr);
    for (unsigned i = 0; i < message->n; i++)
        (void)ew__buf_str(&bytes, message->piece[i]);
    ew_err err = bytes.err;
    if (err == EW_OK)
        err = conn->ops->one_shot ? conn->ops->one_shot(conn, bytes.ptr, bytes.len) : EW_EBUSY;
    ew__buf_done(&bytes);
    return err;
}

static void on_asked(sf_client *client, const ew__rpc *message) {
    ew__conn *conn = client->ask.peer.conn;
    ew__buf out, line;
    ew__rpc_out text;
    ew_str id;
    bool error = false;
    ew__buf_init(&out, conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__sf_serve_ask(conn->site, message, &out, &error);
    ew_err line_err = ew__sf_plain(conn->executor->env, message->id, &line, &id);
    if (error)
        ew__rpc_put_error(&text, id, ew__buf_view(&out));
    else
        ew__rpc_put_result(&text, id, 0, ew__buf_view(&out));
    err = err ? err : line_err ? line_err : reply(client, &text);
    ew__buf_done(&line);
    ew__buf_done(&out);
    if (err != EW_OK) /* the server would wait for ever */
        ew__http_ask_break_off(&client->ask, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                               "what the server asked for could not be sent to it");
}

/* What cannot be read is passed over, as Stepflow's own runtime does. */
static void on_event(sf_client *client, ew_str text) {
    ew__json_doc doc;
    ew__rpc message = {.kind = EW__RPC_INVALID};
    if (ew__json_parse(&doc, text) == EW_OK) {
        ew__call_mark_depth(client->ask.call, &doc);
        ew__rpc_read(&doc, 0, &message);
    }
    bool answers = message.kind == EW__RPC_RESULT || message.kind == EW__RPC_ERROR;
    if (message.kind == EW__RPC_REQUEST && !ew__str_is(message.id, EW_STR("null"))) /* that is a notification */
        on_asked(client, &message);
    else if (answers && is_ours(client, message.id))
        on_answer(client, &message);
    else
        atomic_fetch_add_explicit(&client->ask.peer.conn->executor->calls->dropped, 1, memory_order_relaxed);
}

static void init_events(sf_client *client) {
    const ew__executor *executor = client->ask.peer.conn->executor;
    ew__sse_init(&client->sse, executor->env, (size_t)executor->limits->frame_bytes);
}

static void take_events(sf_client *client) {
    while (client->ask.call && client->phase == ASKED) {
        ew__sse_kind kind = ew__sse_next(&client->sse);
        if (kind == EW__SSE_MORE)
            return;
        if (kind == EW__SSE_BAD)
            ew__http_ask_protocol_error(&client->ask, client->sse.err == EW_ELIMIT
                                                          ? "an event of the stream is too large"
                                                          : "the server sent a line that belongs to no stream");
        else if (kind == EW__SSE_DATA)
            on_event(client, ew__sse_payload(&client->sse));
    }
}

/* ---- the connection ---- */

static void on_head(ew__http_ask *ask, const ew__http_head *head) {
    sf_client *client = client_of(ask);
    ew_str type = ew__http_head_field(head, EW_STR("content-type"), NULL);
    client->streaming = client->phase == ASKED && head->status == 200 &&
                        ew__str_is_nocase(ew__http_media_type(type), EW_STR("text/event-stream"));
    client->instance[0] = '\0';
    if (!client->streaming)
        return;
    ew_str instance = ew__http_head_field(head, EW_STR("stepflow-instance-id"), NULL);
    if (instance.len < sizeof client->instance && instance.len > 0 && ew__http_value_ok(instance)) {
        memcpy(client->instance, instance.ptr, instance.len);
        client->instance[instance.len] = '\0';
    }
}

static void on_piece(ew__http_ask *ask, ew_str piece) {
    sf_client *client = client_of(ask);
    if (client->streaming) {
        ew__sse_feed(&client->sse, piece.ptr, piece.len);
        take_events(client);
    } else {
        ew__http_ask_collect(ask, piece);
    }
}

static void on_end(ew__http_ask *ask) {
    sf_client *client = client_of(ask);
    bool streamed = client->streaming;
    client->polite = !ask->keep_alive;
    if (ask->call && streamed) {
        ew__sse_feed_eof(&client->sse);
        take_events(client);
        if (ask->call)
            ew__http_ask_break_off(ask, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                                   "the stream ended without an answer to the call");
    } else if (ask->call && client->phase == HELLO_DONE) {
        if (ask->status < 300)
            know(client);
        else
            fail_all(client, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL,
                     "the server did not take the notification that it is initialized");
    } else if (ask->call) {
        on_body_end(client);
    }
    if (streamed) {
        ew__sse_done(&client->sse);
        init_events(client);
    }
    client->streaming = false;
}

static const ew__http_ask_ops ask_ops = {.head = on_head, .piece = on_piece, .end = on_end};

/* ---- the callee's slots ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach this wire opened (wire.h) */ }

static void on_cancel(ew_call *call, ew__cancel_why why) {
    sf_client *client = client_of(call->callee_ud);
    (void)why;
    ew__http_ask_break_off(&client->ask, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
    leave(client);
}

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel};

/* ---- the peer's slots ---- */

static ew_err init(ew__peer *peer) {
    sf_client *client = (sf_client *)(void *)peer;
    init_events(client);
    ew__rpc_ids_init(&client->ids, peer->conn->executor->env);
    ew_err err = ew__http_ask_init(&client->ask, &ask_ops, peer->conn->scratch);
    if (err == EW_OK)
        ew__sf_greeting_of(peer->conn->site)->n_peers++;
    return err;
}

/*
 * With its last event a stream is done. If its end came with it, the connection is free; else it is closed: some servers
 * break off there, and nobody waits for what they do not say.
 */
static void input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    sf_client *client = (sf_client *)(void *)peer;
    ew__http_ask_input(&client->ask, bytes, n);
    if (client->streaming && !client->ask.call && !client->ask.closed)
        ew__http_ask_break_off(&client->ask, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, "");
}

static void eof(ew__peer *peer) { ew__http_ask_eof((ew__http_ask *)(void *)peer); }

static void gone(ew__peer *peer, ew_err why) {
    sf_client *client = (sf_client *)(void *)peer;
    ew__sf_greeting *greeting = greeting_of(client);
    ew__http_ask_gone(&client->ask, why);
    leave(client);
    ew__sse_done(&client->sse);
    if (--greeting->n_peers > 0)
        return;
    bool keep = client->polite && greeting->state >= ANSWERED;
    greeting->until = peer->conn->executor->now + EW__MS(MEMORY_MS);
    if (!keep)
        *greeting = (ew__sf_greeting){.state = STRANGE};
}

static uint32_t capacity(const ew__peer *peer) {
    return ew__http_ask_capacity((const ew__http_ask *)(const void *)peer);
}

static ew_err open_call(ew__peer *peer, ew_call *call) {
    sf_client *client = (sf_client *)(void *)peer;
    ew__sf_greeting *greeting = ew__sf_greeting_of(peer->conn->site);
    if (capacity(peer) == 0)
        return EW_EBUSY;
    if (greeting->n_peers == 1 && greeting->until && peer->conn->executor->now > greeting->until)
        greeting->state = STRANGE;
    greeting->until = 0;
    ew__http_ask_take(&client->ask, call, &callee);
    call->wire = EW__STEPFLOW_NAME;
    client->bare = false;
    if (greeting->state == KNOWN)
        send_call(client);
    else if (greeting->state == GREETED)
        wait_for_greeting(client);
    else if (greeting->state == ANSWERED)
        confirm(client);
    else
        greet(client);
    return EW_OK;
}

static int sniff(const uint8_t *bytes, size_t n) {
    (void)bytes;
    (void)n;
    return -1; /* it is dialled */
}

static const ew_scheme schemes[] = {
    {.text = "stepflow+http://",
     .form = "stepflow+http://HOST:PORT",
     .help = "a Stepflow component server: HOST:PORT[/PATH]",
     .hint = EW__SF_HINT,
     .wire = EW__STEPFLOW_NAME,
     .reach = EW_REACH_TCP,
     .command = EW_SCHEME_COMMAND_ANNOUNCES,
     .http = true,
     .slow_start = true,
     .verbatim_path = true},
    {.text = "stepflow+http:",
     .form = "stepflow+http:",
     .help = "the same, a program behind --",
     .hint = EW__SF_HINT,
     .wire = EW__STEPFLOW_NAME,
     .reach = EW_REACH_TCP,
     .command = EW_SCHEME_COMMAND_ANNOUNCES,
     .http = true,
     .slow_start = true,
     .rest = "127.0.0.1:0",
     .verbatim_path = true},
    {.text = "stepflow+https://",
     .form = "stepflow+https://HOST:PORT",
     .help = "a Stepflow component server with TLS",
     .hint = EW__SF_HINT,
     .wire = EW__STEPFLOW_NAME,
     .reach = EW_REACH_TCP,
     .tls = true,
     .http = true,
     .slow_start = true,
     .verbatim_path = true},
    {.text = NULL},
};

static const ew__descriptor about = {.schemes = schemes, .takes = EW__TAKES_BLOBS, .refusal = EW__SF_BLOBS_REFUSAL};

const ew__wire ew__wire_stepflow_http = {
    .name = "stepflow+http",
    .about = &about,
    .blobs = &ew__sf_blobs,
    .caps = EW__CAN_CALL | EW__CAN_TRACE | EW__CAN_LIST | EW__ONE_SHOTS_WAIT,
    .call_size = sizeof(sf_client),
    .scratch_size = sizeof(ew__http_reading),
    .sniff = sniff,
    .frames = EW__FRAMES_HTTP,
    .init = init,
    .input = input,
    .eof = eof,
    .gone = gone,
    .open = open_call,
    .capacity = capacity,
    .refuses = ew__sf_refuses,
};
