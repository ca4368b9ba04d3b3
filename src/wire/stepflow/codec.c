/*
 * wire/stepflow/codec.c: see codec.h. The serving half.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/codec.h"
#include "wire/hops.h"

#define NONE ((ew_str){NULL, 0})

ew__sf_method ew__sf_method_of(ew_str method) {
    static const struct {
        ew_str name;
        ew__sf_method method;
    } methods[] = {
        {{"\"components/execute\"", 20}, EW__SF_EXECUTE}, {{"\"initialize\"", 12}, EW__SF_INITIALIZE},
        {{"\"initialized\"", 13}, EW__SF_INITIALIZED},    {{"\"components/list\"", 17}, EW__SF_LIST},
        {{"\"components/info\"", 17}, EW__SF_INFO},       {{"\"blobs/put\"", 11}, EW__SF_BLOB_PUT},
        {{"\"blobs/get\"", 11}, EW__SF_BLOB_GET},         {{"\"$/cancelRequest\"", 17}, EW__SF_CANCEL},
    };
    char buf[32];
    ew_str text = ew__rpc_text(method, buf, sizeof buf); /* a slash may be written with an escape */
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        ew_str name = methods[i].name;
        if (ew__str_is(text, ew__str(name.ptr + 1, name.len - 2)))
            return methods[i].method;
    }
    return EW__SF_OTHER;
}

ew_err ew__sf_plain(const ew_env *env, ew_str json, ew__buf *buf, ew_str *ret) {
    if (EW__LIKELY(ew__json_is_plain_line(json))) {
        ew__buf_init(buf, env, SIZE_MAX / 2);
        *ret = json;
        return EW_OK;
    }
    return ew__json_line(env, json, true, buf, ret);
}

/* ---- what a runtime asks ---- */

ew_str ew__sf_read_blob_url(ew_str params, char *buf, size_t capacity) {
    ew_str url = ew_json_get(params, "/capabilities/blobApiUrl");
    return ew_json_typeof(url) == EW_JSON_STRING ? ew__rpc_text(url, buf, capacity) : NONE;
}

/* A bare string; the protocol's own page writes {"name": ...}. */
static ew_str component_text(ew_str component, char *buf, size_t capacity) {
    if (ew_json_typeof(component) == EW_JSON_OBJECT)
        component = ew__json_find_in(component, EW_STR("name"), NULL);
    return ew_json_typeof(component) == EW_JSON_STRING ? ew__rpc_text(component, buf, capacity) : NONE;
}

ew_str ew__sf_read_component(ew_str params, char *buf, size_t capacity) {
    if (ew_json_typeof(params) != EW_JSON_OBJECT)
        return NONE;
    return component_text(ew__json_find_in(params, EW_STR("component"), NULL), buf, capacity);
}

enum { COMPONENT, INPUT, ATTEMPT, OBSERVABILITY, STEP_ID, RUN_ID, FLOW_ID, HOPS, N_PARAMS };

static ew_str string_only(ew_str value) { return ew_json_typeof(value) == EW_JSON_STRING ? value : NONE; }

const char *ew__sf_read_run(const ew__json_doc *doc, ew_str params, char *buf, size_t capacity, ew__sf_run *ret) {
    static const ew_str names[N_PARAMS] = {
        {"component", 9}, {"input", 5},  {"attempt", 7}, {"observability", 13},
        {"step_id", 7},   {"run_id", 6}, {"flow_id", 7}, {"everywireHops", 13},
    };
    ew_str value[N_PARAMS];
    uint64_t attempt = 0;
    memset(ret, 0, sizeof *ret);
    if (ew_json_typeof(params) != EW_JSON_OBJECT)
        return "params must be an object with a component and an input";
    if (!ew__json_members(doc, params, names, N_PARAMS, value))
        return "params has a member twice";
    ret->component = component_text(value[COMPONENT], buf, capacity);
    if (ret->component.len == 0)
        return "params.component must be the name of a component";
    if (value[ATTEMPT].len && ew_json_uint64(value[ATTEMPT], &attempt) == EW_OK && attempt <= UINT32_MAX)
        ret->attempt = (uint32_t)attempt;
    ret->input = value[INPUT].len ? value[INPUT] : EW_STR("null");
    if (ew_json_typeof(value[OBSERVABILITY]) == EW_JSON_OBJECT)
        ret->observability = value[OBSERVABILITY];
    ret->step_id = string_only(value[STEP_ID]);
    ret->run_id = string_only(value[RUN_ID]);
    ret->flow_id = string_only(value[FLOW_ID]);
    ret->hops = ew__hops_read(value[HOPS]);
    return NULL;
}

/* ---- what came with a call ---- */

static ew_str inside(ew_str string) {
    return ew_json_typeof(string) == EW_JSON_STRING ? ew__str(string.ptr + 1, string.len - 2) : NONE;
}

static void read_trace(ew_call *call, ew_str observability) {
    ew_str trace = inside(ew__json_find_in(observability, EW_STR("trace_id"), NULL));
    ew_str span = inside(ew__json_find_in(observability, EW_STR("span_id"), NULL));
    char parent[EW__TRACEPARENT_LEN];
    if (trace.len != 32 || span.len != 16)
        return;
    memcpy(parent, "00-", 3);
    memcpy(parent + 3, trace.ptr, 32);
    parent[35] = '-';
    memcpy(parent + 36, span.ptr, 16);
    memcpy(parent + 52, "-01", 3);
    (void)ew__trace_continue(&call->trace, &call->executor->rng, ew__str(parent, sizeof parent));
}

/* Older runtimes have the ids beside the observability, or have no observability: the context has them all. */
enum { N_IDS = 3 };
static const ew_str id_names[N_IDS] = {{"\"step_id\"", 9}, {"\"run_id\"", 8}, {"\"flow_id\"", 9}};

/* Those that only stand beside it. Returns whether there are any. */
static bool find_ids_beside(const ew__sf_run *run, ew_str ids[N_IDS]) {
    ew_json_iter it = {.offset_ = 0};
    ids[0] = run->step_id;
    ids[1] = run->run_id;
    ids[2] = run->flow_id;
    if (!ids[0].len && !ids[1].len && !ids[2].len)
        return false;
    while (ew_json_next(run->observability, &it))
        for (size_t i = 0; i < N_IDS; i++)
            if (ew__str_is(it.key, id_names[i]))
                ids[i] = NONE;
    return ids[0].len || ids[1].len || ids[2].len;
}

static ew_err merge_context(ew_call *call, const ew__sf_run *run, const ew_str ids[N_IDS]) {
    ew__buf out;
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    ew__buf_init(&out, call->executor->env, SIZE_MAX / 2);
    (void)ew__buf_char(&out, '{');
    while (ew_json_next(run->observability, &it)) {
        (void)ew__json_format(&out, "%s%j:%j", comma, it.key, it.value);
        comma = ",";
    }
    for (size_t i = 0; i < N_IDS; i++) {
        if (!ids[i].len)
            continue;
        (void)ew__json_format(&out, "%s%j:%j", comma, id_names[i], ids[i]);
        comma = ",";
    }
    (void)ew__buf_char(&out, '}');
    ew_err err = out.err ? out.err : ew__arena_str(&call->arena, ew__buf_view(&out), &call->context);
    ew__buf_done(&out);
    return err;
}

static ew_err keep(ew_call *call, ew_str slice, bool copy, ew_str *ret) {
    if (copy)
        return ew__arena_str(&call->arena, slice, ret);
    *ret = slice;
    return EW_OK;
}

ew_err ew__sf_fill_call(ew_call *call, const ew__sf_run *run, bool copy) {
    uint64_t most = call->executor->limits->call_ms;
    ew_str ids[N_IDS];
    if (most && call->deadline == EW__NEVER)
        call->deadline = call->executor->now + EW__MS(most);
    call->attempt = run->attempt;
    call->hops = run->hops;
    ew_err err = keep(call, run->input, copy, &call->input);
    if (err == EW_OK && find_ids_beside(run, ids))
        err = merge_context(call, run, ids);
    else if (err == EW_OK && run->observability.len)
        err = keep(call, run->observability, copy, &call->context);
    if (run->observability.len > 2)
        read_trace(call, run->observability);
    return err;
}

/* ---- what a runtime is told ---- */

static void write_member(ew__buf *out, const char *name, ew_str value, ew_json_type type) {
    if (ew_json_typeof(value) == type)
        (void)ew__json_format(out, ",%Q:%j", name, value);
}

/*
 * "/flow/greet" is reached as "/greet" too, unless others have that name, or it is another's key ("/a/b" is that of
 * "/flow/a/b" as well). Empty: by its key only.
 */
static ew_str short_name(const ew__actions *actions, ew_str key) {
    ew__action *found = NULL;
    ew_str plain = inside(key);
    const char *type = plain.len ? memchr(plain.ptr, '/', plain.len) : NULL, *end = plain.ptr + plain.len;
    const char *name = type ? memchr(type + 1, '/', (size_t)(end - type) - 1) : NULL;
    if (!name || memchr(plain.ptr, '\\', plain.len))
        return NONE;
    ew_str path = ew__str(name, (size_t)(end - name));
    bool reached = ew__actions_find(actions, path, &found) == EW_OK &&
                   (ew__str_is(plain, found->key) || ew__str_is(plain, found->long_key));
    return reached ? path : NONE;
}

/*
 * A component is called by the name of the action, where that is enough, as Stepflow's own servers do; else by its key.
 * What Stepflow has no word for stands in a member of our own, which others ignore.
 */
static void write_component(ew__buf *out, const ew__actions *actions, ew_str key, ew_str descriptor) {
    ew_str name = short_name(actions, key);
    (void)ew__buf_cstr(out, "{\"component\":");
    if (name.len) {
        (void)ew__buf_char(out, '"');
        (void)ew__buf_str(out, name);
        (void)ew__buf_char(out, '"');
    } else {
        (void)ew__buf_str(out, key);
    }
    write_member(out, "description", ew_json_member(descriptor, EW_STR("description")), EW_JSON_STRING);
    write_member(out, "input_schema", ew_json_member(descriptor, EW_STR("inputSchema")), EW_JSON_OBJECT);
    write_member(out, "output_schema", ew_json_member(descriptor, EW_STR("outputSchema")), EW_JSON_OBJECT);
    (void)ew__json_format(out, ",\"x-everywire\":{\"key\":%j,\"descriptor\":%j}}", key, descriptor);
}

ew_err ew__sf_write_components(ew__buf *out, const ew__actions *actions, ew_str listing) {
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    (void)ew__buf_cstr(out, "{\"components\":[");
    while (actions && ew_json_next(listing, &it)) {
        (void)ew__buf_cstr(out, comma);
        write_component(out, actions, it.key, it.value);
        comma = ",";
    }
    return ew__buf_cstr(out, "]}");
}

ew_err ew__sf_write_info(ew__buf *out, const ew__actions *actions, const ew__action *action) {
    ew__buf key;
    ew__buf_init(&key, out->env, SIZE_MAX / 2);
    ew_err err = ew__json_write_str(&key, action->long_key.len ? action->long_key : action->key, false);
    (void)ew__buf_cstr(out, "{\"info\":");
    if (err == EW_OK)
        write_component(out, actions, ew__buf_view(&key), action->descriptor);
    ew__buf_done(&key);
    (void)ew__buf_char(out, '}');
    return err == EW_OK ? out->err : err;
}

ew_err ew__sf_write_fault(ew__buf *out, int64_t code, const ew_fault *fault, ew_str component) {
    ew_str message = fault->message.len ? fault->message : ew_str_from(ew_status_name(fault->status));
    (void)ew__json_format(out, "{\"code\":%lld,\"message\":%q,\"data\":{\"status\":%Q",
                          (long long)(code ? code : EW__SF_EXECUTION_FAILED), message, ew_status_name(fault->status));
    if (component.len)
        (void)ew__json_format(out, ",\"component\":%q", component);
    (void)ew__rpc_write_fault_rest(out, fault);
    return ew__buf_cstr(out, "}}");
}

void ew__sf_put_output(ew__rpc_out *out, ew_str id, ew_str output) {
    ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    ew__rpc_out_add(out, id);
    ew__rpc_out_add(out, EW_STR(",\"result\":{\"output\":"));
    ew__rpc_out_add(out, output);
    ew__rpc_out_add(out, EW_STR("}}"));
}
