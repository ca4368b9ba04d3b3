/*
 * wire/http/guest.c: requests whose bodies are messages of another wire (http_guest.h). What is read here and how it is
 * answered on the connection is as for every request; what it means is the guest's business.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/serve.h"
#include "wire/rpc_calls.h"

static ew__http_server *server_of(ew__exchange *exchange) {
    return ew__container_of(exchange, ew__http_server, exchange);
}

/* ---- what the guest does ---- */

static void answer(ew__exchange *exchange, int status, const ew__rpc_out *message, ew_call *owner) {
    ew__http_server *server = server_of(exchange);
    ew__conn *conn = exchange->conn;
    ew__http_answer head = ew__http_answer_to(server, status, NULL);
    if (message) {
        head.type = EW_STR("application/json");
        head.length = message->len;
    }
    head.until_close = status == 204; /* which has no length */
    head.extra = exchange->extra;
    ew__http_write_head(&conn->out, &head, ew__http_date_now(conn));
    if (message)
        ew__rpc_write(&conn->out, message, owner);
    ew__http_send_out(server);
    ew__http_exchange_done(server);
}

static void begin(ew__exchange *exchange, ew_str fields) {
    exchange->streaming = true;
    ew__http_open_stream(server_of(exchange), NULL, fields);
}

static void write_event(ew__exchange *exchange, ew_str prefix, const ew__rpc_out *message, ew_call *owner) {
    ew__http_server *server = server_of(exchange);
    ew__out *out = &exchange->conn->out;
    char size[EW__HTTP_CHUNK_HEAD];
    if (server->minor > 0)
        ew__out_add(out, size, ew__http_chunk_head(prefix.len + message->len + 2, size)); /* and the blank line */
    ew__out_str(out, prefix);
    ew__rpc_write(out, message, owner);
    ew__out_str(out, server->minor > 0 ? EW_STR("\n\n\r\n") : EW_STR("\n\n"));
    ew__http_send_out(server);
}

static void event(ew__exchange *exchange, const ew__rpc_out *message, ew_call *owner) {
    write_event(exchange, EW_STR("data: "), message, owner);
}

static void block(ew__exchange *exchange, const ew__rpc_out *lines, ew_call *owner) {
    write_event(exchange, ew__str(NULL, 0), lines, owner);
}

/* Without a blank line: some parsers (httpx-sse) take it for the end of an empty event. */
static void comment(ew__exchange *exchange) {
    ew__out_str(&exchange->conn->out, server_of(exchange)->minor > 0 ? EW_STR("2\r\n:\n\r\n") : EW_STR(":\n"));
    ew__http_send_out(server_of(exchange));
}

static void end(ew__exchange *exchange) {
    ew__http_server *server = server_of(exchange);
    if (server->minor > 0)
        ew__out_str(&exchange->conn->out, EW__HTTP_LAST_CHUNK);
    ew__http_send_out(server);
    ew__http_exchange_done(server);
}

static const ew__exchange_ops exchange_ops = {
    .answer = answer, .begin = begin, .event = event, .block = block, .comment = comment, .end = end};

/* ---- what it is told ---- */

/* The fields that the guest wants, in the call's memory: the head's own are gone when it is asked. */
static ew_err keep_fields(ew__exchange *exchange, const ew__http_head *head) {
    ew__arena *arena = &exchange->call->arena;
    uint32_t n = 0;
    for (uint32_t i = 0; exchange->guest->wants && i < head->n_fields; i++)
        n += exchange->guest->wants(head->fields[i].name);
    ew__http_field *fields = n ? ew__arena_alloc(arena, n * sizeof *fields) : NULL;
    if (n == 0 || !fields)
        return n ? EW_ENOMEM : EW_OK;
    ew_err err = EW_OK;
    exchange->fields = fields;
    for (uint32_t i = 0; i < head->n_fields && err == EW_OK; i++) {
        const ew__http_field *field = &head->fields[i];
        if (!exchange->guest->wants(field->name))
            continue;
        ew__http_field *kept = &fields[exchange->n_fields++];
        err = ew__arena_str(arena, field->name, &kept->name);
        if (err == EW_OK)
            err = ew__arena_str(arena, field->value, &kept->value);
    }
    return err;
}

void ew__http_invite(ew__http_server *server, const ew__http_guest *guest, const ew__http_head *head, ew_str path,
                     ew_str query, uint8_t accepts) {
    ew__conn *conn = server->peer.conn;
    server->call = ew__call_new(conn->executor, &ew__http_caller, server);
    if (!server->call) {
        ew__http_reject(server, 429, "too many calls are running, or no memory is left for another", NULL);
        return;
    }
    server->exchange = (ew__exchange){.ops = &exchange_ops,
                                      .guest = guest,
                                      .conn = conn,
                                      .call = server->call,
                                      .method = (uint8_t)head->method,
                                      .accepts = accepts};
    server->guest_asked = false;
    server->call->served.who = &server->who;
    ew_err err = ew__arena_str(&server->call->arena, path, &server->exchange.path);
    if (err == EW_OK)
        err = ew__arena_str(&server->call->arena, query, &server->exchange.query);
    if (err == EW_OK)
        err = keep_fields(&server->exchange, head);
    if (err != EW_OK)
        ew__http_reject(server, 503, "out of memory", NULL);
}

void ew__http_ask_guest(ew__http_server *server, ew_str body) {
    server->guest_asked = true;
    server->exchange.guest->request(&server->exchange, body);
}

void ew__http_leave_guest(ew__http_server *server) {
    const ew__http_guest *guest = server->exchange.guest;
    server->exchange.guest = NULL;
    if (guest && server->guest_asked && guest->over)
        guest->over(&server->exchange);
    server->guest_asked = false;
}
