/*
 * wire/stepflow/call.c: calls that leave and what comes back for them, and what a server asks of us meanwhile; whatever
 * carries it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/stepflow.h"

#define NONE ((ew_str){NULL, 0})
#define MESSAGE_ROOM 1024 /* messages of errors with escapes are decoded, up to here */

const char *ew__sf_refuses(const ew_request_options *options) {
    if (options->input_stream)
        return "the stepflow wire carries no input stream";
    if (options->labels.len)
        return "the stepflow wire carries no labels";
    if (options->context.len && ew_json_typeof(options->context) != EW_JSON_OBJECT)
        return "the context of a Stepflow component is an object";
    return NULL;
}

bool ew__sf_is_everywire(ew_str result) {
    return ew_json_typeof(result) == EW_JSON_OBJECT && ew_json_member(result, EW_STR("x-everywire")).len > 0;
}

/* ---- answers ---- */

static void fail(ew_call *call, ew_str error) {
    char text[MESSAGE_ROOM];
    ew_fault fault;
    ew__sf_read_fault(error, text, sizeof text, &fault);
    if (call->kind == EW__CALL_LIST && fault.status == EW_STATUS_NOT_FOUND)
        fault.status = EW_STATUS_UNIMPLEMENTED;
    ew__call_fault(call, &fault);
}

static void end_listing(ew_call *call, ew_str result) {
    ew__buf listing;
    ew__buf_init(&listing, call->executor->env, SIZE_MAX / 2);
    ew_err err = ew__sf_read_components(&listing, result);
    if (err == EW_OK)
        (void)ew__call_done_valid(call, ew__buf_view(&listing));
    else
        ew__call_fail_as(call, err == EW_EPROTO ? EW_ORIGIN_PROTOCOL : EW_ORIGIN_LOCAL,
                         err == EW_EPROTO ? EW_STATUS_INTERNAL : EW_STATUS_RESOURCE_EXHAUSTED,
                         err == EW_EPROTO ? EW_STR("the answer to components/list is no list of components")
                                          : EW_STR("out of memory"));
    ew__buf_done(&listing);
}

bool ew__sf_end_call(ew_call *call, const ew__rpc *message, bool bare) {
    if (message->kind == EW__RPC_ERROR) {
        if (!bare && call->kind == EW__CALL_RUN && ew__sf_is_bare(call->key) && ew__sf_is_not_found(message->error))
            return false; /* the TypeScript SDK registers names without a slash */
        fail(call, message->error);
        return true;
    }
    if (call->kind == EW__CALL_LIST) {
        end_listing(call, message->result);
        return true;
    }
    ew_str output = ew_json_typeof(message->result) == EW_JSON_OBJECT
                        ? ew__json_find_in(message->result, EW_STR("output"), NULL)
                        : NONE;
    if (output.len)
        (void)ew__call_done_valid(call, output);
    else
        ew__call_fail_as(call, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, EW_STR("the server's result has no output"));
    return true;
}

void ew__sf_end_back(ew_call *call, const ew__rpc *message) {
    if (message->kind == EW__RPC_ERROR)
        fail(call, message->error);
    else
        (void)ew__call_done_valid(call, message->result);
}

/* ---- what a server asks ---- */

/* Errors of a runtime have data, if only null. */
static ew_err refuse(ew__buf *out, int64_t code, const char *text, ew_str what, bool *ret_error) {
    *ret_error = true;
    (void)ew__json_format(out, "{\"code\":%lld,\"message\":", (long long)code);
    (void)ew__json_write_str(out, ew_str_from(text), true);
    if (what.len) { /* behind the text, inside its quotes */
        out->len -= out->err ? 0 : 1;
        (void)ew__buf_str(out, ew__str(what.ptr + 1, what.len - 1));
    }
    return ew__buf_cstr(out, ",\"data\":null}");
}

static ew_err put_blob(ew__blobs *blobs, ew_str params, ew__buf *out, bool *ret_error) {
    ew_str data, type;
    char id[EW__BLOB_ID_LEN];
    if (!ew__sf_read_put(params, &data, &type))
        return refuse(out, EW__RPC_INVALID_PARAMS, "blobs/put wants data, and data or flow as its blob_type", NONE,
                      ret_error);
    ew_err err = blobs->put(blobs, data, type, id);
    if (err == EW_OK)
        return ew__json_format(out, "{\"blob_id\":%q}", ew__str(id, sizeof id));
    return refuse(out, EW__RPC_SERVER_ERROR,
                  err == EW_ELIMIT ? "Failed to put blob: the store is full" : "Failed to put blob", NONE, ret_error);
}

static ew_err get_blob(ew__blobs *blobs, ew_str params, ew__buf *out, bool *ret_error) {
    char buf[2 * EW__BLOB_ID_LEN];
    ew__buf data, line;
    ew_str type = NONE, text;
    ew_str raw = ew_json_typeof(params) == EW_JSON_OBJECT ? ew_json_member(params, EW_STR("blob_id")) : NONE;
    if (ew_json_typeof(raw) != EW_JSON_STRING)
        return refuse(out, EW__RPC_INVALID_PARAMS, "blobs/get wants a blob_id", NONE, ret_error);
    ew__buf_init(&data, out->env, SIZE_MAX / 2);
    ew_err err = blobs->get(blobs, ew__rpc_text(raw, buf, sizeof buf), &data, &type);
    if (err == EW_OK) {
        err = ew__sf_plain(out->env, ew__buf_view(&data), &line, &text);
        if (err == EW_OK)
            err = ew__json_format(out, "{\"data\":%j,\"blob_type\":%q}", text, type);
        ew__buf_done(&line);
    } else {
        err = refuse(out, EW__RPC_SERVER_ERROR,
                     err == EW_ENOTFOUND ? "Failed to get blob: there is none of that id" : "Failed to get blob", NONE,
                     ret_error);
    }
    ew__buf_done(&data);
    return err;
}

ew_err ew__sf_serve_ask(const ew__site *site, const ew__rpc *message, ew__buf *out, bool *ret_error) {
    ew__sf_method method = ew__sf_method_of(message->method);
    ew__buf line;
    ew_str name;
    *ret_error = false;
    if (site->blobs && method == EW__SF_BLOB_PUT)
        return put_blob(site->blobs, message->params, out, ret_error);
    if (site->blobs && method == EW__SF_BLOB_GET)
        return get_blob(site->blobs, message->params, out, ret_error);
    ew_err err = ew__sf_plain(out->env, message->method, &line, &name);
    if (err == EW_OK)
        err = refuse(out, EW__RPC_METHOD_NOT_FOUND,
                     "Method not found (components are run here one by one: there are no flows and no runs): ", name,
                     ret_error);
    ew__buf_done(&line);
    return err;
}
