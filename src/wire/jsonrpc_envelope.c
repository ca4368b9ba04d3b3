/*
 * wire/jsonrpc_envelope.c: see jsonrpc_envelope.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc_envelope.h"

/* ---- reading ---- */

/* The members that an envelope has, in the order of the slices below. */
enum { JSONRPC, ID, METHOD, STREAM, DATA, PARAMS, RESULT, ERROR, N_MEMBERS };

static const ew_str names[N_MEMBERS] = {
    {"jsonrpc", 7}, {"id", 2}, {"method", 6}, {"stream", 6}, {"data", 4}, {"params", 6}, {"result", 6}, {"error", 5},
};

typedef struct members {
    ew_str value[N_MEMBERS];
    unsigned repeated; /* one bit per member */
} members;

static int member_of(const char *name, size_t n) {
    switch (n) {
    case 2:
        return memcmp(name, "id", 2) == 0 ? ID : -1;
    case 4:
        return memcmp(name, "data", 4) == 0 ? DATA : -1;
    case 5:
        return memcmp(name, "error", 5) == 0 ? ERROR : -1;
    case 6:
        return memcmp(name, "method", 6) == 0   ? METHOD
               : memcmp(name, "params", 6) == 0 ? PARAMS
               : memcmp(name, "result", 6) == 0 ? RESULT
               : memcmp(name, "stream", 6) == 0 ? STREAM
                                                : -1;
    case 7:
        return memcmp(name, "jsonrpc", 7) == 0 ? JSONRPC : -1;
    default:
        return -1;
    }
}

/* One walk over the noted members; only a text that has too many, or names with escapes, is searched name by name. */
static void find_members(const ew__json_doc *doc, members *m) {
    memset(m, 0, sizeof *m);
    if (EW__LIKELY(doc->root_complete && !doc->escaped_keys)) {
        for (uint16_t i = doc->n_nodes > 1 ? 1 : 0; i; i = doc->nodes[i].next) {
            const ew__json_node *node = &doc->nodes[i];
            int which = member_of(doc->text.ptr + node->key, node->key_len);
            if (which < 0)
                continue;
            if (m->value[which].ptr)
                m->repeated |= 1u << which;
            else
                m->value[which] = ew__str(doc->text.ptr + node->value, node->value_len);
        }
        return;
    }
    for (int i = 0; i < N_MEMBERS; i++) {
        bool repeated = false;
        m->value[i] = ew__json_find(doc, names[i], &repeated);
        if (repeated)
            m->repeated |= 1u << i;
    }
}

static bool is_string(ew_str value) { return value.len > 0 && value.ptr[0] == '"'; }
static bool is_null(ew_str value) { return value.len > 0 && value.ptr[0] == 'n'; }

static bool id_ok(ew_str id) {
    char c = id.len ? id.ptr[0] : 'n';
    return c == '"' || c == 'n' || c == '-' || (c >= '0' && c <= '9');
}

/* -1: none of the four. */
static int read_stream(ew_str value) {
    if (value.len == 0 || is_null(value))
        return EW__RPC_STREAM_NONE;
    if (value.len == 1 && value.ptr[0] >= '0' && value.ptr[0] <= '3')
        return value.ptr[0] - '0';
    return -1;
}

static void invalid(ew__rpc *ret, const char *problem) {
    ret->kind = EW__RPC_INVALID;
    ret->problem = problem;
}

static void read_asking(const members *m, ew__rpc *ret) {
    ret->method = m->value[METHOD];
    ret->params = m->value[PARAMS];
    ret->kind = ret->id.len ? EW__RPC_REQUEST : EW__RPC_NOTIFICATION;
    if (m->value[JSONRPC].len != 5 || memcmp(m->value[JSONRPC].ptr, "\"2.0\"", 5) != 0)
        invalid(ret, "jsonrpc must be \"2.0\"");
    else if (!is_string(ret->method) || ret->method.len == 2)
        invalid(ret, "method must be a string that is not empty");
    else if (ret->stream == EW__RPC_STREAM_OPEN && (ret->id.len == 0 || is_null(ret->id)))
        invalid(ret, "a stream needs an id");
}

/* An error that is null is none: some peers write both members. */
static void read_answer(const members *m, ew__rpc *ret) {
    ret->result = m->value[RESULT];
    ret->error = m->value[ERROR];
    if (ret->error.len && !is_null(ret->error))
        ret->kind = EW__RPC_ERROR;
    else if (ret->result.len)
        ret->kind = EW__RPC_RESULT;
    else
        invalid(ret, "neither method, result nor error");
}

void ew__rpc_read(const ew__json_doc *doc, unsigned with, ew__rpc *ret) {
    members m;
    *ret = (ew__rpc){.kind = EW__RPC_INVALID};
    if (doc->type != EW_JSON_OBJECT) {
        invalid(ret, "a message is an object");
        return;
    }
    find_members(doc, &m);
    if (!(with & EW__RPC_WITH_STREAMS)) {
        m.value[STREAM] = m.value[DATA] = ew__str(NULL, 0);
        m.repeated &= ~(1u << STREAM | 1u << DATA);
    }
    if (m.repeated & 1u << ID || !id_ok(m.value[ID])) {
        invalid(ret, m.repeated & 1u << ID ? "a member is repeated" : "id must be a string, a number or null");
        return;
    }
    ret->id = m.value[ID];
    ret->stream = read_stream(m.value[STREAM]);
    ret->data = m.value[DATA];
    bool answers = m.value[RESULT].len || (m.value[ERROR].len && !is_null(m.value[ERROR]));
    if (m.repeated)
        invalid(ret, "a member is repeated");
    else if (ret->stream < 0)
        invalid(ret, "stream must be 0, 1, 2 or 3");
    else if (ret->stream >= EW__RPC_STREAM_DATA)
        ret->kind = EW__RPC_FRAME;
    else if (m.value[METHOD].len && !(is_null(m.value[METHOD]) && answers))
        read_asking(&m, ret);
    else
        read_answer(&m, ret);
}

enum { SKIM_ID, SKIM_METHOD, SKIM_STREAM, SKIM_RESULT, SKIM_ERROR, SKIM_REQUEST_ID, N_SKIM };

void ew__rpc_skim_init(ew__skim *skim) {
    static const ew__skim_name wanted[N_SKIM] = {{NULL, "id"},     {NULL, "method"}, {NULL, "stream"},
                                                 {NULL, "result"}, {NULL, "error"},  {"params", "requestId"}};
    ew__skim_init(skim, wanted, N_SKIM);
}

void ew__rpc_read_skim(const ew__skim *skim, ew__rpc *ret, ew_str *ret_request_id) {
    ew_str id = ew__skim_value(skim, SKIM_ID), method = ew__skim_value(skim, SKIM_METHOD);
    ew_str error = ew__skim_value(skim, SKIM_ERROR), request_id = ew__skim_value(skim, SKIM_REQUEST_ID);
    bool result = skim->slots[SKIM_RESULT].found;
    *ret = (ew__rpc){.kind = EW__RPC_INVALID, .problem = EW__RPC_TOO_LARGE};
    ret->stream = read_stream(ew__skim_value(skim, SKIM_STREAM));
    ret->id = id_ok(id) && !is_null(id) ? id : ew__str(NULL, 0);
    if (ret_request_id)
        *ret_request_id = id_ok(request_id) && !is_null(request_id) ? request_id : ew__str(NULL, 0);
    if (ret->stream >= EW__RPC_STREAM_DATA && ret->id.len)
        ret->kind = EW__RPC_FRAME;
    else if (is_string(method))
        ret->kind = ret->id.len ? EW__RPC_REQUEST : EW__RPC_NOTIFICATION;
    else if (ret->id.len && (result || (error.len && !is_null(error))))
        ret->kind = result ? EW__RPC_RESULT : EW__RPC_ERROR;
    ret->method = method;
}

#define FRAME_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"id\":")
#define FRAME_MIDDLE EW_STR(",\"stream\":2,\"data\":")
#define RESULT_MIDDLE EW_STR(",\"result\":")

static bool is_frame_head(const char *at, ew_str id) {
    const ew_str head = FRAME_HEAD, middle = FRAME_MIDDLE;
    return memcmp(at, head.ptr, head.len) == 0 && memcmp(at + head.len + id.len, middle.ptr, middle.len) == 0 &&
           memcmp(at + head.len, id.ptr, id.len) == 0;
}

bool ew__rpc_is_data_frame(ew_str text, ew_str id, ew_str *ret_data) {
    size_t before = FRAME_HEAD.len + id.len + FRAME_MIDDLE.len;
    return text.len > before && is_frame_head(text.ptr, id) && text.ptr[text.len - 1] == '}' &&
           ew__json_value_between(text, before, 1, ret_data);
}

size_t ew__rpc_read_row(ew_str lines, ew_str id, ew_str *row, size_t max, size_t *ret_used) {
    const size_t before = FRAME_HEAD.len + id.len + FRAME_MIDDLE.len;
    const char *at = lines.ptr, *end = at + lines.len;
    size_t n = 0;
    /* the first one shows how they all begin */
    while (n < max && (size_t)(end - at) > before + 2 &&
           (n > 0 ? memcmp(at, lines.ptr, before) == 0 : is_frame_head(at, id))) {
        const char *data = at + before, *behind = ew__json_simple_end(data, end);
        if (!behind || end - behind < 2 || behind[0] != '}' || behind[1] != '\n')
            break;
        row[n++] = ew__str(data, (size_t)(behind - data));
        at = behind + 2;
    }
    *ret_used = (size_t)(at - lines.ptr);
    return n;
}

bool ew__rpc_is_result(ew_str text, ew_str *ret_id, ew_str *ret_result) {
    const ew_str head = FRAME_HEAD, middle = RESULT_MIDDLE;
    const char *id = text.ptr + head.len;
    if (text.len < head.len + 2 || memcmp(text.ptr, head.ptr, head.len) != 0 || *id != '"')
        return false;
    const char *quote = memchr(id + 1, '"', text.len - head.len - 1);
    size_t id_len = quote ? (size_t)(quote - id) + 1 : 0, before = head.len + id_len + middle.len;
    *ret_id = ew__str(id, id_len);
    return quote && text.len > before && memcmp(quote + 1, middle.ptr, middle.len) == 0 &&
           text.ptr[text.len - 1] == '}' && ew__json_value_between(text, before, 1, ret_result);
}

ew_str ew__rpc_text(ew_str string, char *buf, size_t capacity) { return ew__json_text(string, buf, capacity); }

/* The decoded form keeps its opening quote, so that "\u0031" and 1 stay two ids. */
ew_str ew__rpc_key(ew_str id, char *buf, size_t capacity) {
    size_t n = 0;
    if (!is_string(id) || !memchr(id.ptr, '\\', id.len))
        return id;
    if (capacity < 3 || ew_json_string(id, buf + 1, capacity - 2, &n) != EW_OK)
        return id; /* a lone surrogate has no other spelling that matters */
    buf[0] = '"';
    buf[n + 1] = '"';
    return ew__str(buf, n + 2);
}

void ew__rpc_read_error(ew_str error, char *buf, size_t capacity, ew__rpc_error *ret) {
    *ret = (ew__rpc_error){.message = error};
    if (ew_json_typeof(error) == EW_JSON_OBJECT) {
        ew_str message = ew_json_member(error, EW_STR("message"));
        (void)ew_json_int64(ew_json_member(error, EW_STR("code")), &ret->code);
        ret->data = ew_json_member(error, EW_STR("data"));
        if (is_null(ret->data))
            ret->data = ew__str(NULL, 0);
        if (is_string(message))
            ret->message = message;
    }
    if (is_string(ret->message)) {
        ew_str text = ew__rpc_text(ret->message, buf, capacity);
        if (text.ptr)
            ret->message = text;
    }
}

/* ---- ids of our own ---- */

void ew__rpc_ids_init(ew__rpc_ids *ids, const ew_env *env) {
    uint8_t chance[5];
    env->random(env->ud, chance, sizeof chance);
    memcpy(ids->prefix, "\"ew", 3);
    ew__hex(chance, sizeof chance, ids->prefix + 3);
    ids->prefix[13] = '-';
    ids->next = 1;
}

size_t ew__rpc_ids_next(ew__rpc_ids *ids, char out[EW__RPC_ID_ROOM]) {
    memcpy(out, ids->prefix, 14);
    size_t n = 14 + ew__u64_text(ids->next++, out + 14);
    out[n] = '"';
    return n + 1;
}

/* ---- writing ---- */

/* Begins a message. */
static void add_id(ew__rpc_out *out, ew_str id) {
    ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    ew__rpc_out_add(out, id.len ? id : EW_STR("null"));
}

void ew__rpc_put_request(ew__rpc_out *out, ew_str id, ew_str method, int stream, ew_str params) {
    if (id.len) {
        add_id(out, id);
        ew__rpc_out_add(out, EW_STR(",\"method\":"));
    } else {
        ew__rpc_out_begin(out, EW_STR("{\"jsonrpc\":\"2.0\",\"method\":"));
    }
    ew__rpc_out_add(out, method);
    if (stream)
        ew__rpc_out_add(out, EW_STR(",\"stream\":1"));
    if (params.len) {
        ew__rpc_out_add(out, EW_STR(",\"params\":"));
        ew__rpc_out_add(out, params);
    }
    ew__rpc_out_add(out, EW_STR("}"));
}

void ew__rpc_put_result(ew__rpc_out *out, ew_str id, int stream, ew_str result) {
    add_id(out, id);
    ew__rpc_out_add(out, stream ? EW_STR(",\"stream\":1,\"result\":") : EW_STR(",\"result\":"));
    ew__rpc_out_add(out, result);
    ew__rpc_out_add(out, EW_STR("}"));
}

void ew__rpc_put_error(ew__rpc_out *out, ew_str id, ew_str error) {
    add_id(out, id);
    ew__rpc_out_add(out, EW_STR(",\"error\":"));
    ew__rpc_out_add(out, error);
    ew__rpc_out_add(out, EW_STR("}"));
}

void ew__rpc_put_frame(ew__rpc_out *out, ew_str id, int stream, ew_str data) {
    bool close = stream == EW__RPC_STREAM_CLOSE;
    add_id(out, id);
    if (data.len) {
        ew__rpc_out_add(out, close ? EW_STR(",\"stream\":3,\"data\":") : EW_STR(",\"stream\":2,\"data\":"));
        ew__rpc_out_add(out, data);
        ew__rpc_out_add(out, EW_STR("}"));
    } else {
        ew__rpc_out_add(out, close ? EW_STR(",\"stream\":3}") : EW_STR(",\"stream\":2}"));
    }
}

size_t ew__rpc_data_frame_len(ew_str id, ew_str data) {
    return FRAME_HEAD.len + id.len + FRAME_MIDDLE.len + data.len + 1;
}

uint8_t *ew__rpc_write_data_frame(uint8_t *at, ew_str id, ew_str data) {
    const ew_str head = FRAME_HEAD, middle = FRAME_MIDDLE;
    memcpy(at, head.ptr, head.len);
    at += head.len;
    memcpy(at, id.ptr, id.len);
    at += id.len;
    memcpy(at, middle.ptr, middle.len);
    at += middle.len;
    memcpy(at, data.ptr, data.len);
    at[data.len] = '}';
    return at + data.len + 1;
}

void ew__rpc_put_close(ew__rpc_out *out, ew_str id, bool error, ew_str value) {
    add_id(out, id);
    ew__rpc_out_add(out, error ? EW_STR(",\"stream\":3,\"data\":{\"error\":")
                               : EW_STR(",\"stream\":3,\"data\":{\"result\":"));
    ew__rpc_out_add(out, value);
    ew__rpc_out_add(out, EW_STR("}}"));
}

void ew__rpc_put_event(ew__rpc_out *out, ew_str id, ew__rpc_event event, ew_str value) {
    ew_str member = event == EW__RPC_EVENT_CHUNK    ? EW_STR(",\"stream\":2,\"data\":{\"chunk\":")
                    : event == EW__RPC_EVENT_RESULT ? EW_STR(",\"stream\":2,\"data\":{\"result\":")
                                                    : EW_STR(",\"stream\":2,\"data\":{\"error\":");
    add_id(out, id);
    ew__rpc_out_add(out, member);
    ew__rpc_out_add(out, value);
    ew__rpc_out_add(out, EW_STR("}}"));
}

ew_err ew__rpc_write_error(ew__buf *buf, int64_t code, ew_str message, ew_str data) {
    (void)ew__json_format(buf, "{\"code\":%lld,\"message\":%q", (long long)code, message);
    if (data.len) {
        (void)ew__buf_cstr(buf, ",\"data\":");
        (void)ew__buf_str(buf, data);
    }
    return ew__buf_char(buf, '}');
}

/* ---- faults ---- */

ew_err ew__rpc_write_fault_rest(ew__buf *buf, const ew_fault *fault) {
    if (fault->details.len) {
        (void)ew__buf_cstr(buf, ",\"details\":");
        (void)ew__buf_str(buf, fault->details);
    }
    if (fault->retryable || fault->retry_after_ms)
        (void)ew__json_format(buf, ",\"retryable\":%b", fault->retryable);
    if (fault->retry_after_ms)
        (void)ew__json_format(buf, ",\"retry_after_ms\":%llu", (unsigned long long)fault->retry_after_ms);
    if (fault->refused)
        (void)ew__buf_cstr(buf, ",\"refused\":true");
    return buf->err;
}

void ew__rpc_read_fault_data(ew_str data, ew_fault *fault) {
    char buf[32];
    ew_str name = ew__json_text(ew_json_get(data, "/status"), buf, sizeof buf);
    ew_status status = EW_STATUS_OK;
    if (ew_status_from_name(name, &status) != EW_OK || status == EW_STATUS_OK)
        return; /* data is the peer's own */
    fault->status = status;
    fault->details = ew_json_member(data, EW_STR("details"));
    fault->retryable = false;
    (void)ew_json_bool(ew_json_get(data, "/retryable"), &fault->retryable);
    fault->refused = false;
    (void)ew_json_bool(ew_json_get(data, "/refused"), &fault->refused);
    (void)ew_json_uint64(ew_json_member(data, EW_STR("retry_after_ms")), &fault->retry_after_ms);
}
