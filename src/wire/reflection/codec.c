/*
 * wire/reflection/codec.c: see codec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/codec.h"
#include "wire/hops.h"
#include "wire/put.h"

#define NONE ((ew_str){NULL, 0})

/* ---- reading ---- */

static bool is_string(ew_str value) { return value.len > 0 && value.ptr[0] == '"'; }
static ew_str unless_null(ew_str value) { return value.len > 0 && value.ptr[0] == 'n' ? NONE : value; }

/* Trace ids and contexts are plain ASCII; one with escapes is nobody's. */
static ew_str plain(ew_str string) {
    return is_string(string) && !memchr(string.ptr, '\\', string.len) ? ew__str(string.ptr + 1, string.len - 2) : NONE;
}

/* true, false or null (false). */
static bool read_flag(ew_str value, bool *ret) {
    *ret = ew__str_is(value, EW_STR("true"));
    return *ret || unless_null(value).len == 0 || ew__str_is(value, EW_STR("false"));
}

static bool labels_ok(ew_str labels) {
    ew_json_iter it = {.offset_ = 0};
    if (labels.len && ew_json_typeof(labels) != EW_JSON_OBJECT)
        return false;
    while (labels.len && ew_json_next(labels, &it))
        if (!is_string(it.value))
            return false;
    return true;
}

const char *ew__rf_read_run(const ew__json_doc *doc, ew_str params, ew__rf_run *ret) {
    enum { KEY, INPUT, INIT, CONTEXT, LABELS, STREAM, STREAM_INPUT, TRACEPARENT, HOPS, N };
    static const ew_str names[N] = {
        {"key", 3},    {"input", 5},        {"init", 4},         {"context", 7},       {"telemetryLabels", 15},
        {"stream", 6}, {"streamInput", 11}, {"traceparent", 11}, {"everywireHops", 13}};
    ew_str value[N];
    if (ew_json_typeof(params) != EW_JSON_OBJECT)
        return "params must be an object";
    if (!ew__json_members(doc, params, names, N, value))
        return "a member of params is repeated";
    if (!is_string(value[KEY]))
        return "key must be a string";
    ret->key = ew__rpc_text(value[KEY], ret->text, sizeof ret->text);
    ret->input = value[INPUT];
    ret->init = value[INIT];
    ret->context = unless_null(value[CONTEXT]);
    ret->labels = unless_null(value[LABELS]);
    ret->traceparent = plain(value[TRACEPARENT]);
    ret->hops = ew__hops_read(value[HOPS]);
    if (ret->key.len == 0)
        return "key must be a string that is not empty, and not too long";
    if (!read_flag(value[STREAM], &ret->stream))
        return "stream must be true or false";
    if (!read_flag(value[STREAM_INPUT], &ret->stream_input))
        return "streamInput must be true or false";
    return labels_ok(ret->labels) ? NULL : "telemetryLabels must be an object of strings";
}

void ew__rf_read_about(const ew__json_doc *doc, ew_str params, ew__rf_about *ret) {
    enum { REQUEST_ID, CHUNK, STATE, TRACE_ID, N };
    static const ew_str names[N] = {{"requestId", 9}, {"chunk", 5}, {"state", 5}, {"traceId", 7}};
    ew_str value[N];
    if (!ew__json_members(doc, params, names, N, value))
        memset(value, 0, sizeof value); /* nobody's */
    ret->request_id = unless_null(value[REQUEST_ID]);
    ret->chunk = value[CHUNK];
    ret->trace_id = plain(value[TRACE_ID]);
    if (value[STATE].len && value[STATE].ptr[0] == '{')
        ret->trace_id = plain(ew_json_member(value[STATE], names[TRACE_ID]));
}

ew_str ew__rf_member_text(ew_str object, ew_str name, char *buf, size_t capacity) {
    return ew__rpc_text(ew_json_member(object, name), buf, capacity);
}

/* Python writes 1234.0. */
static bool read_pid(ew_str value, int64_t *ret) {
    if (ew_json_typeof(value) != EW_JSON_NUMBER)
        return false;
    double number = 0;
    (void)ew_json_double(value, &number);
    if (ew_json_int64(value, ret) != EW_OK)
        *ret = number > -9e15 && number < 9e15 ? (int64_t)number : 0;
    return true;
}

static bool optional_text(ew_str params, const char *name, char *buf, ew_str *ret) {
    ew_str value = unless_null(ew_json_member(params, ew_str_from(name)));
    *ret = ew__rpc_text(value, buf, EW__RF_TEXT_ROOM);
    return value.len == 0 || (is_string(value) && (ret->len > 0 || value.len == 2));
}

const char *ew__rf_read_register(ew_str params, ew__rf_who *ret) {
    if (ew_json_typeof(params) != EW_JSON_OBJECT)
        return "params must be an object";
    ret->id = ew__rf_member_text(params, EW_STR("id"), ret->text[0], sizeof ret->text[0]);
    if (ret->id.len == 0 || ret->id.len > 256)
        return "id must be a string of 1 to 256 bytes";
    if (!read_pid(ew_json_member(params, EW_STR("pid")), &ret->pid))
        return "pid must be a number";
    if (!optional_text(params, "name", ret->text[1], &ret->name))
        return "name must be a string";
    if (!optional_text(params, "genkitVersion", ret->text[2], &ret->version))
        return "genkitVersion must be a string";
    return NULL;
}

ew_err ew__rf_read_result(const ew__json_doc *doc, ew_str result, ew__rf_result *ret) {
    enum { RESULT, TELEMETRY, N };
    static const ew_str names[N] = {{"result", 6}, {"telemetry", 9}};
    ew_str value[N];
    *ret = (ew__rf_result){.result = EW_STR("null")};
    if (result.len == 0 || result.ptr[0] != '{' || !ew__json_members(doc, result, names, N, value))
        return EW_EPROTO;
    if (value[RESULT].len)
        ret->result = value[RESULT];
    if (value[TELEMETRY].len && value[TELEMETRY].ptr[0] == '{')
        ret->trace_id = plain(ew_json_member(value[TELEMETRY], EW_STR("traceId")));
    return EW_OK;
}

/* ---- faults ---- */

/* Peers that give no Status: what their JSON-RPC code says. */
static ew_status status_of(int64_t code, ew_str message) {
    static const char missing[] = "not found";
    size_t n = sizeof missing - 1;
    bool not_found = message.len >= n && memcmp(message.ptr + message.len - n, missing, n) == 0;
    switch (code) {
    case EW__RPC_METHOD_NOT_FOUND:
        return EW_STATUS_UNIMPLEMENTED;
    case EW__RPC_INVALID_PARAMS:
        return not_found ? EW_STATUS_NOT_FOUND : EW_STATUS_INVALID_ARGUMENT;
    case EW__RPC_INVALID_REQUEST:
    case EW__RPC_PARSE_ERROR:
        return EW_STATUS_INVALID_ARGUMENT;
    case 404: /* older runtimes, and the Dart one */
        return EW_STATUS_NOT_FOUND;
    case EW__RPC_INTERNAL_ERROR:
        return EW_STATUS_INTERNAL;
    default:
        return EW_STATUS_UNKNOWN;
    }
}

/* Genkit's runtimes write the name of the status in front of their messages; everybody else keeps it apart. */
static ew_str without_status(ew_str message, ew_status status) {
    ew_str name = ew_str_from(ew_status_name(status));
    if (message.len > name.len + 2 && ew__str_has_prefix(message, name) && message.ptr[name.len] == ':' &&
        message.ptr[name.len + 1] == ' ')
        return ew__str(message.ptr + name.len + 2, message.len - name.len - 2);
    return message;
}

/*
 * Of the Status' details: our own runtime keeps the action's details in a member, since the object itself is Genkit's,
 * with the trace id in it; other runtimes put a stack there, which is worth handing on.
 */
static void read_details(ew_str details, ew_fault *ret, ew_str *ret_trace) {
    ew_json_iter it = {.offset_ = 0};
    bool more = false;
    if (ew_json_typeof(details) != EW_JSON_OBJECT) {
        ret->details = unless_null(details);
        return;
    }
    while (ew_json_next(details, &it)) {
        if (ew__str_is(it.key, EW_STR("\"traceId\"")))
            *ret_trace = plain(it.value);
        else if (ew__str_is(it.key, EW_STR("\"details\"")))
            ret->details = it.value;
        else if (ew__str_is(it.key, EW_STR("\"retryable\"")))
            ret->retryable = ew__str_is(it.value, EW_STR("true"));
        else if (ew__str_is(it.key, EW_STR("\"retryAfterMs\"")))
            (void)ew_json_uint64(it.value, &ret->retry_after_ms);
        else if (ew__str_is(it.key, EW_STR("\"refused\"")))
            ret->refused = ew__str_is(it.value, EW_STR("true"));
        else
            more = true;
    }
    if (ret->details.len == 0 && more)
        ret->details = details;
}

void ew__rf_read_fault(ew_str error, char *text, size_t capacity, ew_fault *ret, ew_str *ret_trace) {
    ew__rpc_error e;
    int64_t number = 0;
    ew__rpc_read_error(error, text, capacity, &e);
    *ret_trace = NONE;
    *ret = (ew_fault){.status = status_of(e.code, e.message), .message = e.message};
    bool object = ew_json_typeof(e.data) == EW_JSON_OBJECT;
    if (object && ew_json_int64(ew_json_member(e.data, EW_STR("code")), &number) == EW_OK && number > 0 &&
        number < EW_STATUS_COUNT) {
        ret->status = (ew_status)number;
        read_details(ew_json_member(e.data, EW_STR("details")), ret, ret_trace);
    } else {
        ret->details = e.data;
    }
    ret->message = without_status(ret->message, ret->status);
}

ew_err ew__rf_write_fault(ew__buf *buf, int64_t code, const ew_fault *fault, ew_str trace_id) {
    ew_str message = fault->message.len ? fault->message : ew_str_from(ew_status_name(fault->status));
    const char *comma = "";
    (void)ew__json_format(buf, "{\"code\":%lld,\"message\":%q,\"data\":{\"code\":%d,\"message\":%q,\"details\":{",
                          (long long)(code ? code : EW__RPC_SERVER_ERROR), message, (int)fault->status, message);
    if (trace_id.len) {
        (void)ew__json_format(buf, "\"traceId\":%q", trace_id);
        comma = ",";
    }
    if (fault->details.len) {
        (void)ew__json_format(buf, "%s\"details\":%j", comma, fault->details);
        comma = ",";
    }
    if (fault->retryable || fault->retry_after_ms) {
        (void)ew__json_format(buf, "%s\"retryable\":%b", comma, fault->retryable);
        comma = ",";
    }
    if (fault->retry_after_ms) {
        (void)ew__json_format(buf, "%s\"retryAfterMs\":%llu", comma, (unsigned long long)fault->retry_after_ms);
        comma = ",";
    }
    if (fault->refused)
        (void)ew__json_format(buf, "%s\"refused\":true", comma);
    return ew__buf_cstr(buf, "}}}");
}

/* ---- messages ---- */

void ew__rf_put_state(ew__rpc_out *out, ew_str id, ew_str trace_id) {
    ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"runActionState\",\"params\":{\"requestId\":"));
    ew__rpc_out_add(out, id);
    ew__rpc_out_add(out, EW_STR(",\"state\":{\"traceId\":\""));
    ew__rpc_out_add(out, trace_id);
    ew__rpc_out_add(out, EW_STR("\"}}}"));
}

#define CHUNK_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"streamChunk\",\"params\":{\"requestId\":")
#define CHUNK_MIDDLE EW_STR(",\"chunk\":")
#define CHUNK_TAIL EW_STR("}}")

static void put_piece_of_stream(ew__rpc_out *out, ew_str head, ew_str id, ew_str chunk) {
    ew__rpc_out_begin(out, head);
    ew__rpc_out_add(out, id);
    ew__rpc_out_add(out, CHUNK_MIDDLE);
    ew__rpc_out_add(out, chunk);
    ew__rpc_out_add(out, CHUNK_TAIL);
}

void ew__rf_put_chunk(ew__rpc_out *out, ew_str id, ew_str chunk) { put_piece_of_stream(out, CHUNK_HEAD, id, chunk); }

size_t ew__rf_around_chunk(ew_str id) { return CHUNK_HEAD.len + id.len + CHUNK_MIDDLE.len + CHUNK_TAIL.len; }

uint8_t *ew__rf_write_chunk(uint8_t *at, ew_str id, ew_str chunk) {
    at = ew__put_str(ew__put_str(ew__put_str(at, CHUNK_HEAD), id), CHUNK_MIDDLE);
    return ew__put_str(ew__put_str(at, chunk), CHUNK_TAIL);
}

/* Whether a chunk stands between head and tail, whatever it is. */
static bool stands_around(ew_str text, ew_str id, size_t *ret_before) {
    const ew_str head = CHUNK_HEAD, middle = CHUNK_MIDDLE, tail = CHUNK_TAIL;
    *ret_before = head.len + id.len + middle.len;
    return text.len > *ret_before + tail.len && memcmp(text.ptr, head.ptr, head.len) == 0 &&
           memcmp(text.ptr + head.len + id.len, middle.ptr, middle.len) == 0 &&
           memcmp(text.ptr + head.len, id.ptr, id.len) == 0 &&
           memcmp(text.ptr + text.len - tail.len, tail.ptr, tail.len) == 0;
}

bool ew__rf_is_chunk(ew_str text, ew_str id, ew_str *ret_chunk) {
    size_t before = 0;
    return stands_around(text, id, &before) && ew__json_value_between(text, before, CHUNK_TAIL.len, ret_chunk);
}

bool ew__rf_is_simple_chunk(ew_str text, ew_str id, ew_str *ret_chunk) {
    size_t before = 0;
    if (!stands_around(text, id, &before))
        return false;
    *ret_chunk = ew__str(text.ptr + before, text.len - before - CHUNK_TAIL.len);
    const char *end = ret_chunk->ptr + ret_chunk->len;
    return ew__json_simple_end(ret_chunk->ptr, end) == end;
}

void ew__rf_put_result(ew__rpc_out *out, ew_str id, ew_str result, ew_str trace_id) {
    ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"result\":{\"result\":"));
    ew__rpc_out_add(out, result);
    ew__rpc_out_add(out, EW_STR(",\"telemetry\":{\"traceId\":\""));
    ew__rpc_out_add(out, trace_id);
    ew__rpc_out_add(out, EW_STR("\"}},\"id\":"));
    ew__rpc_out_add(out, id);
    ew__rpc_out_add(out, EW_STR("}"));
}

void ew__rf_put_input(ew__rpc_out *out, ew_str id, ew_str chunk) {
    put_piece_of_stream(
        out, EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"sendInputStreamChunk\",\"params\":{\"requestId\":"), id, chunk);
}

void ew__rf_put_input_end(ew__rpc_out *out, ew_str id) {
    ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"endInputStream\",\"params\":{\"requestId\":"));
    ew__rpc_out_add(out, id);
    ew__rpc_out_add(out, EW_STR("}}"));
}
