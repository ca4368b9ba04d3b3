/*
 * wire/stepflow/blob_api.c: the Blob HTTP API of Stepflow 0.10 and later. As a wire it takes the two calls blobs/put and
 * blobs/get, which earlier runtimes serve as methods, with the same params and results. As a guest of the http wire it
 * lets component servers reach the store of a client of ours.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "wire/http_ask.h"
#include "wire/rpc_calls.h"
#include "wire/stepflow/stepflow.h"
#include "wire/stepflow/blob_id.h"

#define NONE ((ew_str){NULL, 0})
#define ID_MAX 128

/* ---- asking ---- */

/* Only what is surely one segment of a path. */
static bool is_id(ew_str id) {
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'))
            return false;
    }
    return id.len > 0 && id.len <= ID_MAX;
}

static ew_str string_member(ew_str object, const char *name, char *buf, size_t capacity) {
    ew_str value = ew_json_typeof(object) == EW_JSON_OBJECT ? ew_json_member(object, ew_str_from(name)) : NONE;
    return ew_json_typeof(value) == EW_JSON_STRING ? ew__rpc_text(value, buf, capacity) : NONE;
}

#define AGENT "User-Agent: everywire/" EW_VERSION_STRING "\r\n"

static const char *write_get(ew__out *out, const ew__site *site, const ew_call *call) {
    char buf[ID_MAX + 1];
    ew_str id = string_member(call->input, "blob_id", buf, sizeof buf);
    if (!is_id(id))
        return "blobs/get wants a blob_id";
    ew__out_str(out, EW_STR("GET "));
    ew__out_str(out, site->path);
    ew__out_str(out, EW_STR("/"));
    ew__out_str(out, id);
    ew__out_str(out, EW_STR(" HTTP/1.1\r\nHost: "));
    ew__out_str(out, site->authority);
    ew__out_str(out, EW_STR("\r\n" AGENT "Accept: application/json\r\n\r\n"));
    return NULL;
}

static const char *write_put(ew__out *out, const ew__site *site, ew_call *call) {
    ew_str data, type, plain;
    ew__buf line;
    ew__rpc_out body;
    if (!ew__sf_read_put(call->input, &data, &type))
        return "blobs/put wants data, and data or flow as its blob_type";
    ew_err err = ew__sf_plain(call->executor->env, data, &line, &plain);
    ew__rpc_out_begin(&body, EW_STR("{\"data\":"));
    ew__rpc_out_add(&body, plain);
    ew__rpc_out_add(&body, EW_STR(",\"blobType\":\""));
    ew__rpc_out_add(&body, type);
    ew__rpc_out_add(&body, EW_STR("\"}"));
    ew__http_write_post(out, site->path.len ? site->path : EW_STR("/"), site->authority, EW_STR(AGENT), body.len);
    ew__rpc_write(out, &body, NULL);
    if (err != EW_OK)
        out->err = err;
    ew__buf_done(&line);
    return NULL;
}

static bool is_put(const ew_call *call) { return ew__str_is(call->key, EW_STR("blobs/put")); }

/* ---- answers ---- */

static void on_head(ew__http_ask *ask, const ew__http_head *head) {
    (void)ask;
    (void)head;
}

static void on_piece(ew__http_ask *ask, ew_str piece) { ew__http_ask_collect(ask, piece); }

static void fail_by(ew_call *call, int status, ew_str body) {
    char buf[512];
    ew__json_doc doc;
    ew_fault fault = {.status = ew_status_from_http(status), .message = ew_str_from(ew__http_reason(status))};
    if (status < 400) {
        fault = ew__http_unexpected(&call->arena, status);
    } else if (ew__json_parse(&doc, body) == EW_OK) {
        ew_str message = string_member(doc.root, "message", buf, sizeof buf);
        fault.message = message.len ? message : fault.message;
    }
    fault.retryable = fault.status == EW_STATUS_UNAVAILABLE;
    ew__call_fault(call, &fault);
}

/* The answer in the words of the methods; false: it is none. */
static bool translate(ew__buf *out, bool put, ew_str body) {
    ew__json_doc doc;
    if (ew__json_parse(&doc, body) != EW_OK || doc.type != EW_JSON_OBJECT)
        return false;
    ew_str id = ew__json_find(&doc, EW_STR("blobId"), NULL), data = ew__json_find(&doc, EW_STR("data"), NULL);
    ew_str type = ew__json_find(&doc, EW_STR("blobType"), NULL);
    if (put)
        (void)ew__json_format(out, "{\"blob_id\":%j}", id);
    else
        (void)ew__json_format(out, "{\"data\":%j,\"blob_type\":%j}", data, type.len ? type : EW_STR("\"data\""));
    return put ? id.len > 0 : data.len > 0;
}

static void on_end(ew__http_ask *ask) {
    ew_call *call = ew__http_ask_detach(ask);
    ew_str body = ew__http_ask_body(ask);
    ew__buf result;
    if (!call)
        return;
    ew__buf_init(&result, call->executor->env, SIZE_MAX / 2);
    if (ask->status != 200)
        fail_by(call, ask->status, body);
    else if (!translate(&result, is_put(call), body))
        ew__call_fail_as(call, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, EW_STR("the blob store's answer is none"));
    else if (result.err)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
    else
        (void)ew__call_done_valid(call, ew__buf_view(&result));
    ew__buf_done(&result);
    ew_call_unref(call);
}

static const ew__http_ask_ops ask_ops = {.head = on_head, .piece = on_piece, .end = on_end};

/* ---- the wire ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach this wire opened (wire.h) */ }

static void on_cancel(ew_call *call, ew__cancel_why why) {
    (void)why;
    ew__http_ask_break_off(call->callee_ud, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, "the call was cancelled");
}

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel};

static ew__http_ask *ask_of(ew__peer *peer) { return (ew__http_ask *)(void *)peer; }

static ew_err init(ew__peer *peer) { return ew__http_ask_init(ask_of(peer), &ask_ops, peer->conn->scratch); }
static void input(ew__peer *peer, const uint8_t *bytes, size_t n) { ew__http_ask_input(ask_of(peer), bytes, n); }
static void eof(ew__peer *peer) { ew__http_ask_eof(ask_of(peer)); }
static void gone(ew__peer *peer, ew_err why) { ew__http_ask_gone(ask_of(peer), why); }

static uint32_t capacity(const ew__peer *peer) {
    return ew__http_ask_capacity((const ew__http_ask *)(const void *)peer);
}

static ew_err open_call(ew__peer *peer, ew_call *call) {
    ew__conn *conn = peer->conn;
    if (capacity(peer) == 0)
        return EW_EBUSY;
    ew__http_ask_take(ask_of(peer), call, &callee);
    call->wire = EW__STEPFLOW_NAME;
    const char *problem =
        is_put(call) ? write_put(&conn->out, conn->site, call) : write_get(&conn->out, conn->site, call);
    if (!problem) {
        ew__http_ask_send(ask_of(peer));
        return EW_OK;
    }
    ew_call *refused = ew__http_ask_detach(ask_of(peer));
    ew__call_fail_as(refused, EW_ORIGIN_LOCAL, EW_STATUS_INVALID_ARGUMENT, ew_str_from(problem));
    ew_call_unref(refused);
    return EW_OK;
}

static int sniff(const uint8_t *bytes, size_t n) {
    (void)bytes;
    (void)n;
    return -1; /* it is dialled */
}

const ew__wire ew__wire_blobs = {
    .name = "blobs",
    .caps = EW__CAN_CALL,
    .call_size = sizeof(ew__http_ask),
    .scratch_size = sizeof(ew__http_reading),
    .sniff = sniff,
    .frames = EW__FRAMES_HTTP,
    .init = init,
    .input = input,
    .eof = eof,
    .gone = gone,
    .open = open_call,
    .capacity = capacity,
};

/* ---- serving ---- */

static void answer_text(ew__exchange *exchange, int status, ew__buf *text) {
    ew__rpc_out message;
    ew__rpc_out_begin(&message,
                      text->err ? EW_STR("{\"code\":503,\"message\":\"out of memory\"}") : ew__buf_view(text));
    exchange->ops->answer(exchange, text->err ? 503 : status, &message, NULL);
}

static void answer_error(ew__exchange *exchange, int status, const char *text) {
    ew__buf out;
    ew__buf_init(&out, exchange->conn->executor->env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"code\":%d,\"message\":%Q}", status, text);
    answer_text(exchange, status, &out);
    ew__buf_done(&out);
}

static void serve_put(ew__exchange *exchange, ew_str body) {
    ew__blobs *blobs = exchange->conn->site->blobs;
    ew__json_doc doc;
    ew__buf out;
    char id[EW__BLOB_ID_LEN], buf[16];
    if (ew__json_parse(&doc, body) != EW_OK || doc.type != EW_JSON_OBJECT) {
        answer_error(exchange, 400, "the body is no JSON object");
        return;
    }
    ew_str data = ew__json_find(&doc, EW_STR("data"), NULL), type = ew__json_find(&doc, EW_STR("blobType"), NULL);
    type = type.len ? ew__rpc_text(type, buf, sizeof buf) : EW_STR("data");
    if (!data.len || !(ew__str_is(type, EW_STR("data")) || ew__str_is(type, EW_STR("flow")))) {
        answer_error(exchange, data.len ? 415 : 400, data.len ? "blobType is data or flow here" : "there is no data");
        return;
    }
    ew_err err = blobs->put(blobs, data, type, id);
    if (err != EW_OK) {
        answer_error(exchange, err == EW_ELIMIT ? 507 : 500,
                     err == EW_ELIMIT ? "the store is full" : "it was not stored");
        return;
    }
    ew__buf_init(&out, exchange->conn->executor->env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"blobId\":%q}", ew__str(id, sizeof id));
    answer_text(exchange, 200, &out);
    ew__buf_done(&out);
}

static void answer_missing(ew__exchange *exchange, ew_str id) {
    ew__buf out, text;
    ew__buf_init(&out, exchange->conn->executor->env, SIZE_MAX / 2);
    ew__buf_init(&text, exchange->conn->executor->env, SIZE_MAX / 2);
    (void)ew__buf_printf(&text, "Blob '%.*s' not found", (int)(id.len < 100 ? id.len : 100), id.ptr);
    (void)ew__json_format(&out, "{\"code\":404,\"message\":%q}", ew__buf_view(&text));
    answer_text(exchange, 404, &out);
    ew__buf_done(&text);
    ew__buf_done(&out);
}

static void serve_get(ew__exchange *exchange, ew_str id) {
    ew__blobs *blobs = exchange->conn->site->blobs;
    ew__buf data, line, head;
    ew__rpc_out message;
    ew_str type = NONE, plain;
    ew__buf_init(&data, exchange->conn->executor->env, SIZE_MAX / 2);
    ew_err err = blobs->get(blobs, id, &data, &type);
    if (err != EW_OK) {
        ew__buf_done(&data);
        if (err == EW_ENOTFOUND)
            answer_missing(exchange, id);
        else
            answer_error(exchange, 500, "it could not be read");
        return;
    }
    err = ew__sf_plain(exchange->conn->executor->env, ew__buf_view(&data), &line, &plain);
    ew__buf_init(&head, exchange->conn->executor->env, SIZE_MAX / 2);
    (void)ew__json_format(&head, "{\"blobId\":%q,\"blobType\":%q,\"data\":", id, type);
    ew__rpc_out_begin(&message, ew__buf_view(&head));
    ew__rpc_out_add(&message, plain);
    ew__rpc_out_add(&message, EW_STR("}"));
    if (err == EW_OK && head.err == EW_OK)
        exchange->ops->answer(exchange, 200, &message, NULL);
    else
        answer_error(exchange, 503, "out of memory");
    ew__buf_done(&head);
    ew__buf_done(&line);
    ew__buf_done(&data);
}

static bool takes(const ew__site *site, ew__http_method method, ew_str path) {
    bool below =
        ew__str_has_prefix(path, site->path) && path.len > site->path.len + 1 && path.ptr[site->path.len] == '/';
    return site->blobs &&
           ((method == EW__HTTP_POST && ew__str_is(path, site->path)) || (method == EW__HTTP_GET && below));
}

static void request(ew__exchange *exchange, ew_str body) {
    size_t base = exchange->conn->site->path.len + 1;
    if (exchange->method == EW__HTTP_POST)
        serve_put(exchange, body);
    else
        serve_get(exchange, ew__str(exchange->path.ptr + base, exchange->path.len - base));
}

const ew__http_guest ew__blobs_guest = {.takes = takes, .request = request};

const ew__blob_rules ew__sf_blobs = {.id = ew__blob_id, .guest = &ew__blobs_guest};
