/*
 * wire/http/respond.c: answers of the serving side: plain ones, errors, results, streams. This is the caller's end of
 * the calls that came by HTTP.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/serve.h"
#include "wire/rpc_calls.h"

#define JSON EW_STR("application/json")
#define NONE ((ew_str){NULL, 0})

const char *ew__http_date_now(ew__conn *conn) {
    ew__http_scratch *scratch = conn->scratch;
    ew__executor *executor = conn->executor;
    if (executor->now >= scratch->date_until) {
        uint64_t wall = executor->env->wall_ms(executor->env->ud);
        ew__http_date(wall, scratch->date);
        scratch->date_until = executor->now + EW__MS(1000 - wall % 1000);
    }
    return scratch->date;
}

void ew__http_send_out(ew__http_server *server) {
    ew__conn *conn = server->peer.conn;
    if (conn->out.err)
        conn->ops->abort(conn);
    else
        conn->ops->send(conn);
}

ew__http_answer ew__http_answer_to(ew__http_server *server, int status, const ew__trace *trace) {
    if (server->peer.conn->site->draining)
        server->keep_alive = false;
    return (ew__http_answer){.status = status,
                             .trace = trace,
                             .close = !server->keep_alive,
                             .keep = server->keep_alive && server->minor == 0};
}

void ew__http_respond(ew__http_server *server, int status, ew_str type, ew_str extra, ew_str body,
                      const ew__trace *trace) {
    ew__conn *conn = server->peer.conn;
    ew__http_answer answer = ew__http_answer_to(server, status, trace);
    answer.type = type;
    answer.extra = extra;
    answer.length = body.len;
    answer.until_close = status == 204;
    ew__http_write_head(&conn->out, &answer, ew__http_date_now(conn));
    if (!server->is_head && status != 204)
        ew__out_str(&conn->out, body);
    ew__http_send_out(server);
    ew__http_exchange_done(server);
}

void ew__http_respond_fault(ew__http_server *server, int status, ew_str extra, const ew_fault *fault,
                            const ew__trace *trace) {
    ew__buf body;
    ew__buf_init(&body, server->peer.conn->executor->env, SIZE_MAX / 2);
    if (ew__http_error_body(&body, status, fault) == EW_OK)
        ew__http_respond(server, status, JSON, extra, ew__buf_view(&body), trace);
    else /* no memory for the whole story: the short one is constant */
        ew__http_respond(server, 503, JSON, NONE,
                         EW_STR("{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"out of memory\"}"), trace);
    ew__buf_done(&body);
}

void ew__http_respond_error(ew__http_server *server, int status, ew_str extra, const char *message) {
    ew_fault fault = {.status = ew__http_status_of(status), .message = ew_str_from(message)};
    fault.refused = status == 429 || status == 503; /* another server may accept the request */
    if (server->call && server->call->trace.trace_id[0]) {
        ew__http_respond_fault(server, status, extra, &fault, &server->call->trace);
        return;
    }
    ew__trace fresh;
    ew__trace_new(&fresh, &server->peer.conn->executor->rng);
    ew__http_respond_fault(server, status, extra, &fault, &fresh);
}

/* ---- results ---- */

static void respond_result(ew__http_server *server, ew_call *call, ew_str result) {
    ew__conn *conn = server->peer.conn;
    ew__http_answer answer = ew__http_answer_to(server, 200, &call->trace);
    ew__rpc_out body;
    ew__rpc_out_begin(&body, EW_STR("{\"result\":"));
    ew__rpc_out_add(&body, result);
    ew__rpc_out_add(&body, EW_STR("}"));
    answer.type = JSON;
    answer.length = body.len;
    ew__http_write_head(&conn->out, &answer, ew__http_date_now(conn));
    ew__rpc_write(&conn->out, &body, call);
    ew__http_send_out(server);
}

static void respond_failure(ew__http_server *server, ew_call *call, const ew_fault *fault) {
    char extra[64];
    size_t n = 0;
    if (fault->retry_after_ms) {
        static const char name[] = "Retry-After: ";
        memcpy(extra, name, sizeof name - 1);
        n = sizeof name - 1;
        n += ew__u64_text((fault->retry_after_ms + 999) / 1000, extra + n);
        memcpy(extra + n, "\r\n", 2);
        n += 2;
    }
    ew__http_respond_fault(server, ew_status_http(fault->status), ew__str(extra, n), fault, &call->trace);
}

/* ---- streams ---- */

void ew__http_open_stream(ew__http_server *server, const ew__trace *trace, ew_str fields) {
    ew__conn *conn = server->peer.conn;
    server->stream_open = true;
    if (server->minor == 0)
        server->keep_alive = false; /* the end of the body is the end of the connection */
    ew__http_answer answer = ew__http_answer_to(server, 200, trace);
    answer.type = EW_STR("text/event-stream");
    answer.extra = fields;
    answer.chunked = server->minor > 0;
    answer.until_close = server->minor == 0;
    ew__http_write_head(&conn->out, &answer, ew__http_date_now(conn));
    ew__http_send_out(server);
}

/*
 * A block is one line: white space between tokens that breaks it goes. And it is ASCII, unless the caller says that
 * it can do better: Genkit's JavaScript client decodes each read by itself and so spoils a character that two reads
 * share. The values are the same.
 */
static ew_err write_block(ew__http_server *server, ew_str prefix, ew_str json, ew_str suffix) {
    ew__conn *conn = server->peer.conn;
    ew__buf line;
    if (EW__LIKELY(ew__json_is_plain_line(json))) {
        ew__http_write_block(&conn->out, server->minor > 0, prefix, json, suffix);
        return conn->out.err;
    }
    ew_err err = ew__json_line(conn->executor->env, json, !server->raw, &line, &json);
    if (err == EW_OK)
        ew__http_write_block(&conn->out, server->minor > 0, prefix, json, suffix);
    ew__buf_done(&line);
    return err == EW_OK ? conn->out.err : err;
}

static bool has_place(const ew__conn *conn, size_t bytes) {
    return conn->out.bytes + bytes <= conn->executor->limits->out_max_bytes;
}

/* Chunks were written: they leave, or err says why not. */
static ew_err send_chunks(ew__http_server *server, ew_err err) {
    ew__conn *conn = server->peer.conn;
    if (err != EW_OK)
        return err;
    conn->ops->send(conn);
    /*
     * once it has been told to wait, chunks that were under way do not change that: room is told when all has drained
     */
    server->waiting = server->waiting || conn->out.bytes >= conn->executor->limits->out_high_bytes;
    return server->waiting ? EW_FULL : EW_OK;
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    ew__http_server *server = call->caller_ud;
    if (!has_place(server->peer.conn, json.len))
        return EW_ELIMIT;
    return send_chunks(server, write_block(server, EW__HTTP_MESSAGE_HEAD, json, EW_STR("}")));
}

static ew_err on_row(ew_call *call, const ew_str *row, size_t *n) {
    ew__http_server *server = call->caller_ud;
    ew__conn *conn = server->peer.conn;
    if (!has_place(conn, ew__row_bytes(row, *n)))
        return EW_ELIMIT;
    ew__http_write_row(&conn->out, server->minor > 0, row, *n);
    return send_chunks(server, conn->out.err);
}

static void end_stream(ew__http_server *server, const ew__end *end) {
    ew__conn *conn = server->peer.conn;
    ew_err err;
    if (end->status == EW_STATUS_OK) {
        err = write_block(server, EW_STR("data: {\"result\":"), end->result, EW_STR("}"));
    } else {
        ew__buf fault;
        ew__buf_init(&fault, conn->executor->env, SIZE_MAX / 2);
        (void)ew__json_format(&fault, "{\"status\":%Q,\"message\":%q", ew_status_name(end->status), end->fault.message);
        if (end->fault.details.len) {
            ew__buf_cstr(&fault, ",\"details\":");
            ew__buf_str(&fault, end->fault.details);
        }
        err = ew__buf_char(&fault, '}');
        if (err == EW_OK)
            err = write_block(server, EW_STR("error: {\"error\":"), ew__buf_view(&fault), EW_STR("}"));
        ew__buf_done(&fault);
    }
    if (err != EW_OK) { /* without its terminal block a stream must not look complete */
        conn->ops->abort(conn);
        return;
    }
    if (server->minor > 0)
        ew__out_str(&conn->out, EW__HTTP_LAST_CHUNK);
    ew__http_send_out(server);
}

/* ---- the caller's end ---- */

static void on_accepted(ew_call *call) {
    ew__http_server *server = call->caller_ud;
    if (!server->stream)
        return;
    server->peer.conn->unhurried = ew__call_is_elsewhere(call);
    ew__http_open_stream(server, &call->trace, EW__HTTP_UNBUFFERED);
    server->peer.conn->unhurried = false;
}

static void on_end(ew_call *call, const ew__end *end) {
    ew__http_server *server = call->caller_ud;
    if (server->stream_open) {
        end_stream(server, end);
        ew__http_exchange_done(server);
    } else if (end->status == EW_STATUS_OK) {
        respond_result(server, call, end->result);
        ew__http_exchange_done(server);
    } else {
        respond_failure(server, call, &end->fault); /* is an exchange of its own */
    }
}

const ew__caller_ops ew__http_caller = {.accepted = on_accepted, .chunk = on_chunk, .chunk_row = on_row, .end = on_end};
