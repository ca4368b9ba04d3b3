/*
 * wire/stepflow/codec_call.c: the calling half of codec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/codec.h"
#include "json/sink.h"
#include "wire/put.h"

#define NONE ((ew_str){NULL, 0})
#define ROOM 896                             /* for what a request has beside its id, its component and its context */
#define NAME_ROOM(name) (6 * (name).len + 3) /* with quotes and a slash, all of it escaped */

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

static uint8_t *put_context(uint8_t *p, ew_str context) {
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(context, &it)) {
        if (is_ours(it.key))
            continue;
        p = ew__put_str(EW__PUT(p, ","), it.key);
        p = ew__put_str(EW__PUT(p, ":"), it.value);
    }
    return p;
}

static uint8_t *put_observability(uint8_t *p, const ew_call *call, ew_str context, const run_ids *ids) {
    p = ew__put(EW__PUT(p, "{\"trace_id\":\""), call->trace.trace_id, 32);
    p = ew__put(EW__PUT(p, "\",\"span_id\":\""), call->trace.span_id, 16);
    p = ew__put_str(EW__PUT(p, "\",\"run_id\":"), ids->run);
    p = ew__put_str(EW__PUT(p, ",\"flow_id\":"), ids->flow);
    p = ew__put_str(EW__PUT(p, ",\"step_id\":"), ids->step);
    if (context.len)
        p = put_context(p, context);
    return EW__PUT(p, "}");
}

static uint8_t *put_name(uint8_t *p, ew_str name, bool slash) {
    uint8_t *text = slash ? p + 1 : p;
    if (EW__LIKELY(ew__json_is_plain(name))) {
        p = slash ? EW__PUT(p, "\"/") : EW__PUT(p, "\"");
        return EW__PUT(ew__put_str(p, name), "\"");
    }
    ew__json_sink sink = {.memory = (char *)text, .capacity = NAME_ROOM(name)};
    ew__json_put_str(&sink, name, true);
    if (slash) /* over the first quote, which moves before it */
        (void)EW__PUT(p, "\"/");
    return text + sink.len;
}

/* One shape for every generation: what one of them does not know, it ignores; what it wants, it must have. */
static void write_execute(ew__sf_request *request, uint8_t *start, const ew_call *call, ew_str context, ew_str id,
                          bool bare, bool everywire) {
    run_ids ids;
    choose_ids(call, context, &ids);
    uint8_t *p = ew__put_str(EW__PUT(start, "{\"jsonrpc\":\"2.0\",\"id\":"), id);
    p = EW__PUT(p, ",\"method\":\"components/execute\",\"params\":{\"component\":");
    p = EW__PUT(put_name(p, call->key, !bare && ew__sf_is_bare(call->key)), ",\"input\":");
    uint8_t *tail = p;
    request->head = ew__str((char *)start, (size_t)(tail - start));
    p = ew__put_number(EW__PUT(p, ",\"attempt\":"), call->attempt ? call->attempt : 1);
    if (!everywire) { /* ours finds them in the observability */
        p = ew__put_str(EW__PUT(p, ",\"step_id\":"), ids.step);
        p = ew__put_str(EW__PUT(p, ",\"run_id\":"), ids.run);
        p = ew__put_str(EW__PUT(p, ",\"flow_id\":"), ids.flow);
    }
    p = put_observability(EW__PUT(p, ",\"observability\":"), call, context, &ids);
    if (everywire && call->hops)
        p = ew__put_number(EW__PUT(p, ",\"everywireHops\":"), call->hops);
    p = EW__PUT(p, "}}");
    request->tail = ew__str((char *)tail, (size_t)(p - tail));
}

bool ew__sf_is_bare(ew_str name) { return name.len > 0 && name.ptr[0] != '/'; }

static void write_list(ew__sf_request *request, uint8_t *start, ew_str id) {
    uint8_t *p = ew__put_str(EW__PUT(start, "{\"jsonrpc\":\"2.0\",\"id\":"), id);
    p = EW__PUT(p, ",\"method\":\"components/list\",\"params\":{}}");
    request->head = ew__str((char *)start, (size_t)(p - start));
}

/* Ids that the context has are written up to three times. */
ew_err ew__sf_write_request(ew__sf_request *request, const ew_env *env, ew_call *call, ew_str id, bool bare,
                            bool everywire) {
    ew__buf line;
    ew_str context;
    request->head = request->tail = NONE;
    request->memory = NULL;
    ew_err err = ew__json_line(env, call->context, true, &line, &context);
    request->room = ROOM + id.len + NAME_ROOM(call->key) + 3 * context.len;
    if (request->room > sizeof request->small)
        request->memory = ew__alloc(env, request->room);
    uint8_t *start = request->room > sizeof request->small ? request->memory : request->small;
    err = err ? err : start ? EW_OK : EW_ENOMEM;
    if (err == EW_OK && call->kind == EW__CALL_LIST)
        write_list(request, start, id);
    else if (err == EW_OK)
        write_execute(request, start, call, context, id, bare, everywire);
    ew__buf_done(&line);
    return err;
}

void ew__sf_request_done(ew__sf_request *request, const ew_env *env) {
    if (request->memory)
        ew__free(env, request->memory, request->room);
}

/* ---- answers ---- */

bool ew__sf_read_output(ew_str text, ew_str id, ew_str *ret_output) {
    const ew_str begin = EW_STR("{\"jsonrpc\":\"2.0\",\"id\":"), middle = EW_STR(",\"result\":{\"output\":");
    const ew_str end = EW_STR("}}");
    size_t before = begin.len + id.len + middle.len;
    return text.len > before + end.len && memcmp(text.ptr, begin.ptr, begin.len) == 0 &&
           memcmp(text.ptr + begin.len, id.ptr, id.len) == 0 &&
           memcmp(text.ptr + begin.len + id.len, middle.ptr, middle.len) == 0 &&
           memcmp(text.ptr + text.len - end.len, end.ptr, end.len) == 0 &&
           ew__json_value_between(text, before, end.len, ret_output);
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
    int64_t code = 0;
    (void)ew_json_int64(ew_json_get(error, "/code"), &code);
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
