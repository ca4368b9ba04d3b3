/*
 * wire/stepflow/serve.c: what a runtime asks of us, whatever carries it; and what a handler asks of the runtime.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/stepflow.h"

#define NONE ((ew_str){NULL, 0})
#define MISSING_ROOM 256
#define OUT_OF_MEMORY EW_STR("{\"code\":-32603,\"message\":\"out of memory\"}")

/* ---- errors ---- */

/* What is in buf, as the wire writes it; what does not work out is told in short. */
static ew_str plain_error(ew__buf *buf, ew_err err) {
    ew__buf line;
    ew_str text;
    if (err == EW_OK && ew__sf_plain(buf->env, ew__buf_view(buf), &line, &text) == EW_OK) {
        if (line.len) {
            ew__buf_done(buf);
            *buf = line;
            return ew__buf_view(buf);
        }
        ew__buf_done(&line);
        return text;
    }
    if (err == EW_OK)
        ew__buf_done(&line);
    return OUT_OF_MEMORY;
}

ew_str ew__sf_error(const ew_env *env, ew__buf *buf, int64_t code, ew_status status, ew_str message, ew_str component) {
    ew_fault fault = {.status = status, .message = message};
    ew__buf_init(buf, env, SIZE_MAX / 2);
    return plain_error(buf, ew__sf_write_fault(buf, code, &fault, component));
}

ew_str ew__sf_fault(const ew__executor *executor, ew__buf *buf, int64_t code, const ew_fault *fault) {
    ew_fault plain = {.status = fault->status};
    ew__buf_init(buf, executor->env, SIZE_MAX / 2);
    ew_err err = ew__sf_write_fault(buf, code, fault, NONE);
    if (err == EW_OK && buf->len + 4096 > executor->limits->frame_bytes) {
        ew__buf_clear(buf);
        err = ew__sf_write_fault(buf, code, &plain, NONE); /* the status is what matters */
    }
    return plain_error(buf, err);
}

/* ---- requests that run nothing ---- */

/* Every generation finds its own spelling, and ignores the others. */
static ew_err write_hello(ew__buf *out) {
    return ew__json_format(out,
                           "{\"server_protocol_version\":1,\"serverProtocolVersion\":1,\"supportsBlobRefs\":false,"
                           "\"x-everywire\":{\"version\":%Q}}",
                           ew_version());
}

/* Some runtimes show their users nothing but the message. */
static ew_str missing_text(ew_str component, char out[MISSING_ROOM]) {
    static const char prefix[] = "no such component: ";
    const size_t room = MISSING_ROOM - sizeof prefix;
    size_t n = component.len < room ? component.len : room;
    memcpy(out, prefix, sizeof prefix - 1);
    memcpy(out + sizeof prefix - 1, component.ptr, n);
    return ew__str(out, sizeof prefix - 1 + n);
}

static ew_err write_missing(ew__buf *out, ew_str component, bool *ret_error) {
    char text[MISSING_ROOM];
    ew_fault fault = {.status = EW_STATUS_NOT_FOUND, .message = missing_text(component, text)};
    *ret_error = true;
    return ew__sf_write_fault(out, EW__SF_COMPONENT_NOT_FOUND, &fault, component);
}

static ew_err write_refusal(ew__buf *out, const ew_fault *fault, bool *ret_error) {
    *ret_error = true;
    return ew__sf_write_fault(out, 0, fault, NONE);
}

static ew_err write_info(ew__conn *conn, const ew__who *who, ew_str params, ew__buf *out, bool *ret_error) {
    const ew__site *site = conn->site;
    ew_fault refusal;
    char buf[EW__SF_NAME_ROOM];
    ew__action *action = NULL;
    ew_str component = ew__sf_read_component(params, buf, sizeof buf);
    ew_fault bad = {.status = EW_STATUS_INVALID_ARGUMENT,
                    .message = EW_STR("params.component must be the name of a component")};
    bool found = component.len && site->actions && ew__actions_find(site->actions, component, &action) == EW_OK;
    if (found && !ew__gate_authorize(conn->executor, who, EW__STEPFLOW_NAME, action->key, &refusal))
        return write_refusal(out, &refusal, ret_error);
    if (found)
        return ew__sf_write_info(out, site->actions, action);
    if (component.len)
        return write_missing(out, component, ret_error);
    *ret_error = true;
    return ew__sf_write_fault(out, EW__RPC_INVALID_PARAMS, &bad, NONE);
}

static void keep_blob_url(const ew__conn *conn, const ew__who *who, ew_str params) {
    char buf[EW__INSTANCE_URL_MAX];
    ew__principal owner = ew__principal_of(conn->executor, who);
    if (conn->site->instance)
        ew__instance_set_blob_url(conn->site->instance, &owner, ew__sf_read_blob_url(params, buf, sizeof buf));
}

static ew_err write_unknown(ew__buf *out, ew_str method, bool *ret_error) {
    char name[128], text[200];
    ew_str plain = ew__rpc_text(method, name, sizeof name);
    static const char prefix[] = "no such method: ";
    size_t n = plain.len < sizeof text - sizeof prefix ? plain.len : sizeof text - sizeof prefix;
    memcpy(text, prefix, sizeof prefix - 1);
    if (n)
        memcpy(text + sizeof prefix - 1, plain.ptr, n);
    ew_fault fault = {.status = EW_STATUS_UNIMPLEMENTED, .message = ew__str(text, sizeof prefix - 1 + n)};
    *ret_error = true;
    return ew__sf_write_fault(out, EW__RPC_METHOD_NOT_FOUND, &fault, NONE);
}

static ew_err write_list(ew__conn *conn, const ew__who *who, ew__buf *out, bool *ret_error) {
    ew__buf own;
    ew_str list;
    ew_fault refusal;
    ew_err err = ew__gate_list(conn->executor, who, EW__STEPFLOW_NAME, conn->site->actions, &own, &list, &refusal);
    if (err == EW_OK)
        err = ew__sf_write_components(out, conn->site->actions, list);
    else if (err == EW_EACCESS)
        err = write_refusal(out, &refusal, ret_error);
    ew__buf_done(&own);
    return err;
}

static ew_err answer(ew__conn *conn, const ew__who *who, const ew__rpc *message, ew__sf_method method, ew__buf *out,
                     bool *ret_error) {
    ew_fault refusal;
    if (!ew__gate_is_authenticated(conn->executor, who, &refusal))
        return write_refusal(out, &refusal, ret_error);
    switch (method) {
    case EW__SF_INITIALIZE:
        keep_blob_url(conn, who, message->params);
        return write_hello(out);
    case EW__SF_INITIALIZED: /* with an id: somebody wants to be told */
        return ew__buf_cstr(out, "{}");
    case EW__SF_LIST:
        return write_list(conn, who, out, ret_error);
    case EW__SF_INFO:
        return write_info(conn, who, message->params, out, ret_error);
    default:
        return write_unknown(out, message->method, ret_error);
    }
}

ew_err ew__sf_answer(ew__conn *conn, const ew__who *who, const ew__rpc *message, ew__sf_method method, ew__buf *out,
                     bool *ret_error) {
    ew__buf raw, line;
    ew_str text;
    *ret_error = false;
    ew__buf_init(&raw, out->env, SIZE_MAX / 2);
    ew_err err = answer(conn, who, message, method, &raw, ret_error);
    if (err == EW_OK) {
        err = ew__sf_plain(out->env, ew__buf_view(&raw), &line, &text);
        if (err == EW_OK)
            err = ew__buf_str(out, text);
        ew__buf_done(&line);
    }
    ew__buf_done(&raw);
    return err;
}

/* ---- components/execute ---- */

ew__action *ew__sf_find(const ew__site *site, const ew_env *env, const ew__json_doc *doc, const ew__rpc *message,
                        ew__sf_run *ret_run, char *name_buf, ew__buf *buf, ew_str *ret_error) {
    static const char several[] = "several actions have this name, use a key: ";
    char text[400];
    ew__action *action = NULL;
    const char *problem = ew__sf_read_run(doc, message->params, name_buf, EW__SF_NAME_ROOM, ret_run);
    if (problem) {
        *ret_error =
            ew__sf_error(env, buf, EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, ew_str_from(problem), NONE);
        return NULL;
    }
    ew_err err = site->actions ? ew__actions_find(site->actions, ret_run->component, &action) : EW_ENOTFOUND;
    if (EW__LIKELY(err == EW_OK)) {
        ew__buf_init(buf, env, 0);
        return action;
    }
    if (err != EW_EEXISTS) {
        *ret_error = ew__sf_error(env, buf, EW__SF_COMPONENT_NOT_FOUND, EW_STATUS_NOT_FOUND,
                                  missing_text(ret_run->component, text), ret_run->component);
        return NULL;
    }
    memcpy(text, several, sizeof several - 1);
    size_t n = sizeof several - 1;
    n += ew__actions_matches(site->actions, ret_run->component, text + n, sizeof text - n);
    *ret_error = ew__sf_error(env, buf, EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT, ew__str(text, n),
                              ret_run->component);
    return NULL;
}

/* ---- the other way ---- */

const char *ew__sf_refuses_back(const ew_call *outgoing) {
    if (outgoing->outgoing.notify)
        return "a Stepflow runtime takes no notifications";
    if (outgoing->wants_chunks || outgoing->has_input)
        return "the stepflow wire carries no streams";
    if (ew_json_typeof(outgoing->input) != EW_JSON_OBJECT)
        return "a method of a Stepflow runtime takes an object";
    return NULL;
}

/* Who sent us an observability understands one. */
static void write_trace(ew__buf *out, const ew_call *origin, const ew_call *outgoing) {
    if (!origin->context.len || !ew_json_member(origin->context, EW_STR("trace_id")).len ||
        ew_json_member(outgoing->input, EW_STR("observability")).len)
        return;
    (void)ew__json_format(out, "%s\"observability\":{\"trace_id\":%q,\"span_id\":%q}",
                          ew_json_next(outgoing->input, &(ew_json_iter){.offset_ = 0}) ? "," : "",
                          ew__str(outgoing->trace.trace_id, 32), ew__str(outgoing->trace.span_id, 16));
}

ew_err ew__sf_write_back(ew__buf *out, const ew_call *origin, const ew_call *outgoing, ew_str id) {
    ew__buf line;
    ew_str params;
    ew_str input = ew_json_get(outgoing->input, ""); /* without white space around it */
    ew_err err = ew__sf_plain(out->env, input, &line, &params);
    if (err == EW_OK) {
        (void)ew__json_format(out, "{\"jsonrpc\":\"2.0\",\"id\":%j,\"method\":", id);
        (void)ew__json_write_str(out, outgoing->key, true);
        (void)ew__buf_cstr(out, ",\"params\":");
        (void)ew__buf_str(out, ew__str(params.ptr, params.len - 1)); /* more may follow before its brace */
        write_trace(out, origin, outgoing);
        err = ew__buf_cstr(out, "}}");
    }
    ew__buf_done(&line);
    return err;
}

static void refuse_back(ew_call *outgoing, ew_status status, ew_str why) {
    ew__call_fail_as(outgoing, EW_ORIGIN_LOCAL, status, why);
}

ew_err ew__sf_back_by_url(const ew__site *site, ew__executor *executor, const ew__who *who, ew_call *outgoing) {
    char text[EW__INSTANCE_URL_MAX];
    ew_fault fault;
    bool blob = ew__str_is(outgoing->key, EW_STR("blobs/put")) || ew__str_is(outgoing->key, EW_STR("blobs/get"));
    if (!blob || !site->instance || !site->outbound)
        return EW_ENOTFOUND;
    ew__principal owner = ew__principal_of(executor, who);
    ew_str url = ew__instance_blob_url(site->instance, &owner, text);
    if (!url.len)
        return EW_ENOTFOUND;
    if (!ew__gate_authorize(executor, who, EW__STEPFLOW_NAME, EW_STR(EW__SF_BLOBS_KEY), &fault)) {
        refuse_back(outgoing, fault.status,
                    EW_STR("the runtime's token may not use a blob URL: it needs the action " EW__SF_BLOBS_KEY));
        return EW_OK;
    }
    ew_err err = site->outbound->open(site->outbound, executor, &ew__wire_blobs, url, outgoing);
    if (err == EW_EINVAL)
        refuse_back(outgoing, EW_STATUS_FAILED_PRECONDITION,
                    EW_STR("the runtime's blobs are at a URL that is not used here"));
    return err == EW_EINVAL ? EW_OK : err;
}
