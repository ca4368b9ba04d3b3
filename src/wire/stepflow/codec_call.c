/*
 * wire/stepflow/codec_call.c: the calling half of codec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/codec.h"

#define NONE ((ew_str){NULL, 0})
#define HEAD_ROOM 128 /* of a request, beside its id and its component */
#define TAIL_ROOM 640

/* ---- requests ---- */

ew_err ew__sf_write_initialize(ew__buf *out, ew_str id, ew_str blob_api) {
    (void)ew__json_format(
        out,
        "{\"jsonrpc\":\"2.0\",\"id\":%j,\"method\":\"initialize\",\"params\":{"
        "\"runtime_protocol_version\":1,\"runtimeProtocolVersion\":1,\"protocol_prefix\":\"everywire\"",
        id);
    if (blob_api.len)
        (void)ew__json_format(out, ",\"capabilities\":{\"blobApiUrl\":%q}", blob_api);
    return ew__buf_cstr(out, "}}");
}

/* What a runtime says of a run; the call's context has the first word. JSON strings. */
typedef struct run_ids {
    ew_str step, run, flow;
    char run_text[38]; /* with quotes */
} run_ids;

static ew_str string_of(ew_str context, const char *name) {
    ew_str value = context.len ? ew_json_member(context, ew_str_from(name)) : NONE;
    return ew_json_typeof(value) == EW_JSON_STRING ? value : NONE;
}

/* A run without a runtime: its id is that of the trace, written as a UUID; there is no flow. */
static void choose_ids(const ew_call *call, ew_str context, run_ids *ids) {
    static const char no_flow[] = "\"0000000000000000000000000000000000000000000000000000000000000000\"";
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    size_t n = 0, from = 0;
    ids->run_text[n++] = '"';
    for (size_t i = 0; i < sizeof groups; i++) {
        if (i)
            ids->run_text[n++] = '-';
        memcpy(ids->run_text + n, call->trace.trace_id + from, groups[i]);
        n += groups[i];
        from += groups[i];
    }
    ids->run_text[n++] = '"';
    ids->step = string_of(context, "step_id");
    ids->run = string_of(context, "run_id");
    ids->flow = string_of(context, "flow_id");
    if (!ids->step.len)
        ids->step = EW_STR("\"call\"");
    if (!ids->run.len)
        ids->run = ew__str(ids->run_text, n);
    if (!ids->flow.len)
        ids->flow = ew__str(no_flow, sizeof no_flow - 1);
}

static bool is_ours(ew_str quoted_name) {
    static const ew_str names[] = {
        {"\"trace_id\"", 10}, {"\"span_id\"", 9}, {"\"step_id\"", 9}, {"\"run_id\"", 8}, {"\"flow_id\"", 9},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ew__str_is(quoted_name, names[i]))
            return true;
    return false;
}

/* A request is written for every call: no format strings where everything is there. */
#define PUT(buf, text) (void)ew__buf_add(buf, text, sizeof(text) - 1)

static void write_observability(ew__buf *out, const ew_call *call, ew_str context, const run_ids *ids) {
    ew_json_iter it = {.offset_ = 0};
    PUT(out, "{\"trace_id\":\"");
    (void)ew__buf_add(out, call->trace.trace_id, 32);
    PUT(out, "\",\"span_id\":\"");
    (void)ew__buf_add(out, call->trace.span_id, 16);
    PUT(out, "\",\"run_id\":");
    (void)ew__buf_str(out, ids->run);
    PUT(out, ",\"flow_id\":");
    (void)ew__buf_str(out, ids->flow);
    PUT(out, ",\"step_id\":");
    (void)ew__buf_str(out, ids->step);
    while (ew_json_next(context, &it))
        if (!is_ours(it.key))
            (void)ew__json_format(out, ",%j:%j", it.key, it.value);
    PUT(out, "}");
}

static void write_name(ew__buf *out, ew_str name, bool slash) {
    if (slash)
        (void)ew__buf_cstr(out, "\"/");
    size_t quote = out->len;
    if (ew__json_write_str(out, name, true) == EW_OK && slash) { /* without its first quote */
        memmove(out->ptr + quote, out->ptr + quote + 1, out->len - quote - 1);
        out->len--;
    }
}

/* One shape for every generation: what one of them does not know, it ignores; what it wants, it must have. */
static void write_execute(ew__buf *head, ew__buf *tail, const ew_call *call, ew_str context, ew_str id, bool bare,
                          bool everywire) {
    run_ids ids;
    choose_ids(call, context, &ids);
    (void)ew__buf_reserve(head, HEAD_ROOM + id.len + call->key.len);
    PUT(head, "{\"jsonrpc\":\"2.0\",\"id\":");
    (void)ew__buf_str(head, id);
    PUT(head, ",\"method\":\"components/execute\",\"params\":{\"component\":");
    write_name(head, call->key, !bare && ew__sf_is_bare(call->key));
    PUT(head, ",\"input\":");
    (void)ew__buf_reserve(tail, TAIL_ROOM + context.len);
    PUT(tail, ",\"attempt\":");
    (void)ew__buf_u64(tail, call->attempt ? call->attempt : 1);
    PUT(tail, ",\"step_id\":");
    (void)ew__buf_str(tail, ids.step);
    PUT(tail, ",\"run_id\":");
    (void)ew__buf_str(tail, ids.run);
    PUT(tail, ",\"flow_id\":");
    (void)ew__buf_str(tail, ids.flow);
    PUT(tail, ",\"observability\":");
    write_observability(tail, call, context, &ids);
    if (everywire && call->hops)
        (void)ew__json_format(tail, ",\"everywireHops\":%u", (unsigned)call->hops);
    PUT(tail, "}}");
}

bool ew__sf_is_bare(ew_str name) { return name.len > 0 && name.ptr[0] != '/'; }

ew_err ew__sf_write_request(ew__buf *head, ew__buf *tail, ew_call *call, ew_str id, bool bare, bool everywire) {
    if (call->kind == EW__CALL_LIST)
        return ew__json_format(head, "{\"jsonrpc\":\"2.0\",\"id\":%j,\"method\":\"components/list\",\"params\":{}}",
                               id);
    ew__buf line;
    ew_str context = NONE;
    ew_err err = ew__json_line(head->env, call->context, true, &line, &context);
    if (err == EW_OK)
        write_execute(head, tail, call, context, id, bare, everywire);
    ew__buf_done(&line);
    return err ? err : head->err ? head->err : tail->err;
}

/* ---- listings ---- */

static ew_str inside(ew_str string) { return ew__str(string.ptr + 1, string.len - 2); }

/* A component of another program: its path is its key, as calls name it. */
static void read_foreign(ew__buf *out, ew_str component, ew_str info) {
    static const struct {
        const char *theirs, *ours;
        ew_json_type type;
    } members[] = {{"description", "description", EW_JSON_STRING},
                   {"input_schema", "inputSchema", EW_JSON_OBJECT},
                   {"output_schema", "outputSchema", EW_JSON_OBJECT}};
    ew_str name = inside(component);
    if (name.len > 1 && name.ptr[0] == '/')
        name = ew__str(name.ptr + 1, name.len - 1);
    (void)ew__json_format(out, "%j:{\"key\":%j,\"name\":\"", component, component);
    (void)ew__buf_str(out, name);
    (void)ew__buf_cstr(out, "\",\"actionType\":\"component\"");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        ew_str value = ew_json_member(info, ew_str_from(members[i].theirs));
        if (ew_json_typeof(value) == members[i].type)
            (void)ew__json_format(out, ",%Q:%j", members[i].ours, value);
    }
    (void)ew__buf_char(out, '}');
}

ew_err ew__sf_read_components(ew__buf *out, ew_str result) {
    ew_str components = ew_json_typeof(result) == EW_JSON_OBJECT ? ew_json_member(result, EW_STR("components")) : NONE;
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    if (ew_json_typeof(components) != EW_JSON_ARRAY)
        return EW_EPROTO;
    (void)ew__buf_char(out, '{');
    while (ew_json_next(components, &it)) {
        ew_str component = ew_json_member(it.value, EW_STR("component"));
        ew_str ours = ew_json_member(it.value, EW_STR("x-everywire"));
        ew_str key = ew_json_member(ours, EW_STR("key")), descriptor = ew_json_member(ours, EW_STR("descriptor"));
        if (ew_json_typeof(component) != EW_JSON_STRING)
            return EW_EPROTO;
        (void)ew__buf_cstr(out, comma);
        if (ew_json_typeof(key) == EW_JSON_STRING && ew_json_typeof(descriptor) == EW_JSON_OBJECT)
            (void)ew__json_format(out, "%j:%j", key, descriptor);
        else
            read_foreign(out, component, it.value);
        comma = ",";
    }
    return ew__buf_char(out, '}');
}

/* ---- faults ---- */

/*
 * By 0.11's table, where the codes of the others do not contradict it. What an older server means by -32003 and -32004
 * (a component that raised, or its input) it does not tell apart.
 */
static const struct {
    int64_t code;
    ew_status status;
    bool retryable;
} codes[] = {
    {EW__SF_COMPONENT_NOT_FOUND, EW_STATUS_NOT_FOUND, false},
    {EW__SF_NOT_INITIALIZED, EW_STATUS_FAILED_PRECONDITION, false},
    {EW__SF_VALUE_ERROR, EW_STATUS_INVALID_ARGUMENT, false},
    {EW__SF_RESOURCE_UNAVAILABLE, EW_STATUS_UNAVAILABLE, true},
    {EW__SF_BAD_REQUEST, EW_STATUS_INVALID_ARGUMENT, false},
    {EW__SF_TRANSPORT_ERROR, EW_STATUS_UNAVAILABLE, true},
    {EW__SF_TRANSPORT_ERROR - 1, EW_STATUS_UNAVAILABLE, true},
    {EW__SF_TRANSPORT_ERROR - 2, EW_STATUS_UNAVAILABLE, true},
    {EW__SF_TRANSPORT_ERROR - 3, EW_STATUS_UNAVAILABLE, true},
    {EW__RPC_METHOD_NOT_FOUND, EW_STATUS_UNIMPLEMENTED, false},
    {EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, false},
    {EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, false},
    {EW__RPC_PARSE_ERROR, EW_STATUS_INVALID_ARGUMENT, false},
    {EW__RPC_INTERNAL_ERROR, EW_STATUS_INTERNAL, false},
};

void ew__sf_read_fault(ew_str error, char *text, size_t capacity, ew_fault *ret) {
    ew__rpc_error e;
    ew__rpc_read_error(error, text, capacity, &e);
    bool has_data = e.data.len && !ew__str_is(e.data, EW_STR("null")) && !ew__str_is(e.data, EW_STR("{}"));
    *ret = (ew_fault){.status = EW_STATUS_UNKNOWN, .message = e.message, .details = has_data ? e.data : NONE};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].code != e.code)
            continue;
        ret->status = codes[i].status;
        ret->retryable = codes[i].retryable;
    }
    ew__rpc_read_fault_data(e.data, ret);
}

bool ew__sf_is_not_found(ew_str error) {
    int64_t code = ew_json_get_int(error, "/code", 0);
    return code == EW__SF_COMPONENT_NOT_FOUND || code == EW__RPC_METHOD_NOT_FOUND;
}

/* ---- what a server asks ---- */

/* Runtimes before 2025-08-05 knew no blob_type; it was data. */
bool ew__sf_read_put(ew_str params, ew_str *ret_data, ew_str *ret_type) {
    ew_str type = ew_json_typeof(params) == EW_JSON_OBJECT ? ew_json_member(params, EW_STR("blob_type")) : NONE;
    *ret_data = ew_json_typeof(params) == EW_JSON_OBJECT ? ew_json_member(params, EW_STR("data")) : NONE;
    *ret_type = type.len ? inside(type) : EW_STR("data");
    return ret_data->len && (!type.len || ew__str_is(type, EW_STR("\"data\"")) || ew__str_is(type, EW_STR("\"flow\"")));
}
