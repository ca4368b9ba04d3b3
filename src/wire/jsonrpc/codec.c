/*
 * wire/jsonrpc/codec.c: see codec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/codec.h"
#include "wire/hops.h"

#define STREAM EW_STR("stream=")
#define CHUNKS EW_STR("stream=true")
#define EVENTS EW_STR("stream=events")
#define HOPS EW_STR("hops=")

/* ---- faults ---- */

/* Statuses that have a code of their own; all others share one, and are told apart by data.status. */
static const struct {
    int64_t code;
    ew_status status;
} codes[] = {
    {EW__RPC_INVALID_PARAMS, EW_STATUS_INVALID_ARGUMENT},  {EW__RPC_METHOD_NOT_FOUND, EW_STATUS_NOT_FOUND},
    {EW__RPC_INTERNAL_ERROR, EW_STATUS_INTERNAL},          {EW__RPC_CANCELLED, EW_STATUS_CANCELLED},
    {EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT}, {EW__RPC_PARSE_ERROR, EW_STATUS_INVALID_ARGUMENT},
};

/* NOT_FOUND of a handler is not a method that is missing: it has no code of its own on the way out. */
int64_t ew__jr_code_of(ew_status status) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status && status != EW_STATUS_NOT_FOUND)
            return codes[i].code;
    return EW__RPC_SERVER_ERROR;
}

ew_status ew__jr_status_of(int64_t code) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].status;
    return EW_STATUS_UNKNOWN;
}

ew_err ew__jr_write_fault(ew__buf *buf, int64_t code, const ew_fault *fault) {
    ew_str message = fault->message.len ? fault->message : ew_str_from(ew_status_name(fault->status));
    (void)ew__json_format(buf, "{\"code\":%lld,\"message\":%q,\"data\":{\"status\":%Q",
                          (long long)(code ? code : ew__jr_code_of(fault->status)), message,
                          ew_status_name(fault->status));
    (void)ew__rpc_write_fault_rest(buf, fault);
    return ew__buf_cstr(buf, "}}");
}

void ew__jr_read_fault(ew_str error, char *text, size_t capacity, ew_fault *ret) {
    ew__rpc_error e;
    ew__rpc_read_error(error, text, capacity, &e);
    *ret = (ew_fault){.status = ew__jr_status_of(e.code), .message = e.message, .details = e.data};
    ew__rpc_read_fault_data(e.data, ret); /* else data is the peer's own: all of it is the details */
}

/* ---- methods ---- */

static uint8_t read_stream(ew_str member) {
    return ew__str_is(member, CHUNKS) ? EW__JR_CHUNKS : ew__str_is(member, EVENTS) ? EW__JR_EVENTS : EW__JR_NO_STREAM;
}

/* false: there is something in it that is not known, or comes again. */
static bool read_query(ew_str query, ew__jr_query *ret) {
    bool has_hops = false, more = true;
    while (more) {
        const char *next = memchr(query.ptr, '&', query.len);
        size_t n = next ? (size_t)(next - query.ptr) : query.len;
        ew_str member = ew__str(query.ptr, n);
        if (!ret->stream && ew__str_has_prefix(member, STREAM)) {
            ret->stream = read_stream(member);
            if (!ret->stream)
                return false;
        } else if (!has_hops && ew__str_has_prefix(member, HOPS)) {
            has_hops = true;
            ret->hops = ew__hops_read(ew__str(member.ptr + HOPS.len, member.len - HOPS.len));
        } else {
            return false;
        }
        more = next != NULL;
        query = ew__str(query.ptr + n + more, query.len - n - more);
    }
    return true;
}

ew_str ew__jr_action_of(ew_str method, ew__jr_query *ret) {
    *ret = (ew__jr_query){.stream = EW__JR_NO_STREAM};
    const char *mark = method.len ? memrchr(method.ptr, '?', method.len) : NULL;
    size_t n = mark ? (size_t)(mark - method.ptr) : 0;
    if (EW__LIKELY(n == 0))
        return method;
    if (read_query(ew__str(mark + 1, method.len - n - 1), ret))
        return ew__str(method.ptr, n);
    *ret = (ew__jr_query){.stream = EW__JR_NO_STREAM};
    return method;
}

ew_err ew__jr_write_method(ew__buf *buf, ew_str action, const ew__jr_query *query) {
    ew_err err = ew__json_write_str(buf, action, false);
    if (err != EW_OK || (!query->stream && !query->hops))
        return err;
    buf->len--; /* the quote comes again */
    (void)ew__buf_char(buf, '?');
    if (query->stream)
        (void)ew__buf_str(buf, query->stream == EW__JR_EVENTS ? EVENTS : CHUNKS);
    if (query->stream && query->hops)
        (void)ew__buf_char(buf, '&');
    if (query->hops) {
        (void)ew__buf_str(buf, HOPS);
        (void)ew__buf_u64(buf, query->hops);
    }
    return ew__buf_char(buf, '"');
}

/* ---- rpc.discover ---- */

static bool is_required(ew_str schema, ew_str quoted_name) {
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(ew_json_member(schema, EW_STR("required")), &it))
        if (ew__str_is(it.value, quoted_name))
            return true;
    return false;
}

/* The members of an object are the parameters; an input of any other kind is the one parameter there is. */
static void write_params(ew__buf *buf, ew_str schema) {
    ew_json_iter it = {.offset_ = 0};
    ew_str properties = ew_json_member(schema, EW_STR("properties"));
    const char *comma = "";
    if (ew_json_typeof(properties) != EW_JSON_OBJECT) {
        (void)ew__json_format(buf, "{\"name\":\"input\",\"schema\":%j}", schema.len ? schema : EW_STR("{}"));
        return;
    }
    while (ew_json_next(properties, &it)) {
        (void)ew__json_format(buf, "%s{\"name\":%j,\"required\":%b,\"schema\":%j}", comma, it.key,
                              is_required(schema, it.key), it.value);
        comma = ",";
    }
}

static void write_method(ew__buf *buf, ew_str key, ew_str descriptor) {
    ew_str description = ew_json_member(descriptor, EW_STR("description"));
    ew_str output = ew_json_member(descriptor, EW_STR("outputSchema"));
    (void)ew__json_format(buf, "{\"name\":%j", key);
    if (ew_json_typeof(description) == EW_JSON_STRING)
        (void)ew__json_format(buf, ",\"summary\":%j", description);
    (void)ew__buf_cstr(buf, ",\"paramStructure\":\"by-name\",\"params\":[");
    write_params(buf, ew_json_member(descriptor, EW_STR("inputSchema")));
    (void)ew__json_format(buf, "],\"result\":{\"name\":\"result\",\"schema\":%j},\"x-everywire\":%j}",
                          output.len ? output : EW_STR("{}"), descriptor);
}

ew_err ew__jr_write_discover(ew__buf *buf, ew_str listing) {
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    (void)ew__json_format(buf,
                          "{\"openrpc\":\"1.3.2\",\"info\":{\"title\":\"everywire\",\"version\":%Q,"
                          "\"x-everywire\":{\"streams\":true,\"streamForms\":[\"true\",\"events\"]}},\"methods\":[",
                          ew_version());
    while (ew_json_next(listing, &it)) {
        (void)ew__buf_cstr(buf, comma);
        write_method(buf, it.key, it.value);
        comma = ",";
    }
    return ew__buf_cstr(buf, "]}");
}

bool ew__jr_is_everywire(ew_str document) {
    bool streams = false;
    (void)ew_json_bool(ew_json_get(document, "/info/x-everywire/streams"), &streams);
    return streams;
}

/* Only everywire names a status in the data of an error. */
bool ew__jr_is_everywire_error(ew_str error) {
    ew_fault fault = {.status = EW_STATUS_OK};
    if (ew_json_typeof(error) == EW_JSON_OBJECT)
        ew__rpc_read_fault_data(ew_json_member(error, EW_STR("data")), &fault);
    return fault.status != EW_STATUS_OK;
}

/* The parameters of a foreign method as the schema of its input: an object with these members. */
static void write_input_schema(ew__buf *buf, ew_str params) {
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    (void)ew__buf_cstr(buf, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
    while (ew_json_next(params, &it)) {
        ew_str name = ew_json_member(it.value, EW_STR("name")), schema = ew_json_member(it.value, EW_STR("schema"));
        if (ew_json_typeof(name) != EW_JSON_STRING)
            continue;
        (void)ew__json_format(buf, "%s%j:%j", comma, name, schema.len ? schema : EW_STR("{}"));
        comma = ",";
    }
    (void)ew__buf_cstr(buf, "}}");
}

/* A foreign method becomes an action of type "method". */
static void read_method(ew__buf *buf, ew_str method) {
    ew_str name = ew_json_member(method, EW_STR("name")), ours = ew_json_member(method, EW_STR("x-everywire"));
    ew_str summary = ew_json_member(method, EW_STR("summary"));
    if (ew_json_typeof(ours) == EW_JSON_OBJECT) {
        (void)ew__json_format(buf, "%j:%j", name, ours);
        return;
    }
    ew_str inside = ew__str(name.ptr + 1, name.len - 2);
    (void)ew__buf_cstr(buf, "\"/method/");
    (void)ew__buf_str(buf, inside);
    (void)ew__buf_cstr(buf, "\":{\"key\":\"/method/");
    (void)ew__buf_str(buf, inside);
    (void)ew__json_format(buf, "\",\"name\":%j,\"actionType\":\"method\"", name);
    if (ew_json_typeof(summary) == EW_JSON_STRING)
        (void)ew__json_format(buf, ",\"description\":%j", summary);
    ew_str params = ew_json_member(method, EW_STR("params"));
    if (ew_json_typeof(params) == EW_JSON_ARRAY)
        write_input_schema(buf, params);
    ew_str output = ew_json_get(method, "/result/schema");
    if (output.len)
        (void)ew__json_format(buf, ",\"outputSchema\":%j", output);
    (void)ew__buf_char(buf, '}');
}

ew_err ew__jr_read_discover(ew__buf *buf, ew_str document) {
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    ew_str methods = ew_json_member(document, EW_STR("methods"));
    if (ew_json_typeof(methods) != EW_JSON_ARRAY)
        return EW_EPROTO;
    (void)ew__buf_char(buf, '{');
    while (ew_json_next(methods, &it)) {
        if (ew_json_typeof(ew_json_member(it.value, EW_STR("name"))) != EW_JSON_STRING)
            return EW_EPROTO;
        (void)ew__buf_cstr(buf, comma);
        read_method(buf, it.value);
        comma = ",";
    }
    return ew__buf_char(buf, '}');
}
