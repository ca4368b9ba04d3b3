/*
 * wire/http/codec_call.c: the calling half of codec.h: writing requests, and reading what every known server answers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/codec.h"
#include "wire/put.h"

/* ---- requests ---- */

static bool is_plain_char(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("-._~/:@!$&'()*+,;=", c));
}

/* The path of an action: its key as it stands, a bare name behind a slash; everything else percent-escaped. */
static uint8_t *put_path(uint8_t *p, ew_str action) {
    if (action.len == 0 || action.ptr[0] != '/')
        *p++ = '/';
    for (size_t i = 0; i < action.len; i++) {
        unsigned char c = (unsigned char)action.ptr[i];
        if (is_plain_char(c)) {
            *p++ = c;
        } else {
            *p++ = '%';
            *p++ = (uint8_t) "0123456789ABCDEF"[c >> 4];
            *p++ = (uint8_t) "0123456789ABCDEF"[c & 15];
        }
    }
    return p;
}

static uint8_t *put_common_fields(uint8_t *p, const ew__site *site, const ew_call *call, uint64_t now) {
    p = ew__put_str(EW__PUT(p, " HTTP/1.1\r\nHost: "), site->authority);
    p = EW__PUT(p, "\r\nUser-Agent: everywire/" EW_VERSION_STRING "\r\ntraceparent: ");
    ew__trace_parent(&call->trace, (char *)p);
    p += EW__TRACEPARENT_LEN;
    if (site->token.len)
        p = ew__put_str(EW__PUT(p, "\r\nAuthorization: Bearer "), site->token);
    if (call->tracestate.len)
        p = ew__put_str(EW__PUT(p, "\r\ntracestate: "), call->tracestate);
    if (call->deadline != EW__NEVER) {
        uint64_t left = call->deadline > now ? call->deadline - now : 0;
        p = ew__put_number(EW__PUT(p, "\r\nx-everywire-timeout-ms: "), (left + 999999) / 1000000);
    }
    if (call->hops)
        p = ew__put_number(EW__PUT(p, "\r\nx-everywire-hops: "), call->hops);
    return p;
}

static uint8_t *put_request(uint8_t *p, const ew__site *site, const ew_call *call, uint64_t now) {
    if (call->kind == EW__CALL_LIST) {
        p = EW__PUT(ew__put_str(EW__PUT(p, "GET "), site->path), "/api/actions");
        return EW__PUT(put_common_fields(p, site, call, now), "\r\nAccept: application/json\r\n\r\n");
    }
    p = put_path(ew__put_str(EW__PUT(p, "POST "), site->path), call->key);
    p = EW__PUT(put_common_fields(p, site, call, now), "\r\nContent-Type: application/json\r\nAccept: ");
    p = call->wants_chunks ? EW__PUT(p, "text/event-stream\r\nx-everywire-raw: 1") : EW__PUT(p, "application/json");
    p = ew__put_number(EW__PUT(p, "\r\nContent-Length: "), call->input.len + 9);
    return EW__PUT(p, "\r\n\r\n{\"data\":");
}

void ew__http_write_request(ew__out *out, const ew__site *site, ew_call *call, uint64_t now) {
    size_t room =
        512 + site->path.len + 3 * call->key.len + site->authority.len + site->token.len + call->tracestate.len;
    uint8_t *start = ew__put_begin(out, room);
    if (!start)
        return;
    ew__put_end(out, start, room, put_request(start, site, call, now));
    if (call->kind == EW__CALL_LIST)
        return;
    ew__call_write(call, out, call->input);
    ew__out_str(out, EW_STR("}"));
}

/* ---- answers ---- */

/* The inside of a JSON string as it stands; ptr NULL when it is none. */
static ew_str inside(ew_str string) {
    return ew_json_typeof(string) == EW_JSON_STRING ? ew__str(string.ptr + 1, string.len - 2) : ew__str(NULL, 0);
}

/* The text of a JSON string. One that cannot be decoded (no memory, a lone surrogate) is handed out as it stands. */
static ew_str decoded(ew__arena *memory, ew_str string) {
    ew_str raw = inside(string);
    if (raw.len == 0 || !memchr(raw.ptr, '\\', raw.len))
        return raw;
    size_t n = 0;
    char *text = ew__arena_alloc(memory, raw.len);
    if (!text || ew_json_string(string, text, raw.len, &n) != EW_OK)
        return raw;
    return ew__str(text, n);
}

/* {"status":..,"message":..,"details":..}; what is missing is filled in from the HTTP code. */
static void read_fault(ew__arena *memory, ew_str object, int http, ew_fault *fault) {
    *fault = (ew_fault){.status = http ? ew_status_from_http(http) : EW_STATUS_UNKNOWN};
    (void)ew_status_from_name(inside(ew_json_member(object, EW_STR("status"))), &fault->status);
    if (fault->status == EW_STATUS_OK)
        fault->status = EW_STATUS_UNKNOWN;
    fault->message = decoded(memory, ew_json_member(object, EW_STR("message")));
    fault->details = ew_json_member(object, EW_STR("details"));
    (void)ew_json_bool(ew_json_get(object, "/refused"), &fault->refused);
    if (!fault->message.ptr)
        fault->message = ew_str_from(ew_status_name(fault->status));
}

/* An "error" member may hold the fault, or a bare text. */
static void read_error_member(ew__arena *memory, ew_str error, int http, ew_fault *fault) {
    if (ew_json_typeof(error) == EW_JSON_OBJECT) {
        read_fault(memory, error, http, fault);
        return;
    }
    *fault =
        (ew_fault){.status = http ? ew_status_from_http(http) : EW_STATUS_UNKNOWN, .message = decoded(memory, error)};
    if (!fault->message.ptr)
        fault->message = error;
}

static bool read_object(ew_str text, ew__json_doc *doc) {
    return ew__json_parse(doc, text) == EW_OK && doc->type == EW_JSON_OBJECT;
}

/* A chunk or result as most servers write it. Other spellings take the long way, with the same outcome. */
static bool is_plain(ew_str json, ew_str head, ew_str *ret) {
    return ew__str_has_prefix(json, head) && json.ptr[json.len - 1] == '}' &&
           ew__json_value_between(json, head.len, 1, ret);
}

size_t ew__http_read_row(ew_str *piece, ew_str *row, size_t max) {
    const ew_str head = EW__HTTP_MESSAGE_HEAD, tail = EW__HTTP_MESSAGE_TAIL;
    const char *at = piece->ptr, *end = at + piece->len;
    size_t n = 0;
    while (n < max && (size_t)(end - at) > head.len + tail.len && memcmp(at, head.ptr, head.len) == 0) {
        const char *chunk = at + head.len, *behind = ew__json_simple_end(chunk, end);
        if (!behind || (size_t)(end - behind) < tail.len || memcmp(behind, tail.ptr, tail.len) != 0)
            break;
        row[n++] = ew__str(chunk, (size_t)(behind - chunk));
        at = behind + tail.len;
    }
    *piece = ew__str(at, (size_t)(end - at));
    return n;
}

void ew__http_read_block(ew__arena *memory, ew_str json, bool from_error, ew__http_said *ret) {
    ew__json_doc doc;
    if (EW__LIKELY(!from_error && is_plain(json, EW_STR("{\"message\":"), &ret->payload))) {
        ret->meaning = EW__HTTP_CHUNK;
        ret->deep = false;
        return;
    }
    *ret = (ew__http_said){.meaning = EW__HTTP_NONSENSE};
    if (!read_object(json, &doc))
        return;
    ret->deep = doc.deep;
    bool twice[3] = {false, false, false};
    ew_str message = ew__json_find(&doc, EW_STR("message"), &twice[0]);
    ew_str result = ew__json_find(&doc, EW_STR("result"), &twice[1]);
    ew_str error = ew__json_find(&doc, EW_STR("error"), &twice[2]);
    if (twice[0] || twice[1] || twice[2])
        return;
    if (error.len) {
        ret->meaning = EW__HTTP_FAULT;
        read_error_member(memory, error, 0, &ret->fault);
    } else if (from_error) { /* a server that leaves the envelope out */
        ret->meaning = EW__HTTP_FAULT;
        read_fault(memory, doc.root, 0, &ret->fault);
    } else if (message.len) {
        ret->meaning = EW__HTTP_CHUNK;
        ret->payload = message;
    } else if (result.len) {
        ret->meaning = EW__HTTP_RESULT;
        ret->payload = result;
    } else if (doc.n_nodes <= 1) {
        ret->meaning = EW__HTTP_NOTHING;
    }
}

static void read_success(ew__arena *memory, ew_str body, ew__http_said *ret) {
    ew__json_doc doc;
    bool twice[2] = {false, false};
    if (EW__LIKELY(is_plain(body, EW_STR("{\"result\":"), &ret->payload))) {
        ret->meaning = EW__HTTP_RESULT;
        return;
    }
    if (!read_object(body, &doc))
        return;
    ret->deep = doc.deep;
    ew_str error = ew__json_find(&doc, EW_STR("error"), &twice[0]);
    ew_str result = ew__json_find(&doc, EW_STR("result"), &twice[1]);
    if (twice[0] || twice[1])
        return;
    if (error.len && !result.len) {
        ret->meaning = EW__HTTP_FAULT;
        read_error_member(memory, error, 0, &ret->fault);
        return;
    }
    ret->meaning = EW__HTTP_RESULT;
    ret->payload = result.len ? result : EW_STR("null");
}

/* A message from a body that is no JSON: its first line, if it looks like text for people. */
static ew_str text_message(int status, ew_str body) {
    size_t n = 0;
    while (n < body.len && n < 300 && body.ptr[n] != '\n' && body.ptr[n] != '\r')
        n++;
    ew_str line = ew__str_trim(ew__str(body.ptr, n));
    return line.len > 0 && line.ptr[0] != '<' ? line : ew_str_from(ew__http_reason(status));
}

void ew__http_read_answer(ew__arena *memory, int status, ew_str body, ew__http_said *ret) {
    ew__json_doc doc;
    *ret = (ew__http_said){.meaning = EW__HTTP_NONSENSE};
    if (status == 200) {
        read_success(memory, body, ret);
        return;
    }
    ret->meaning = EW__HTTP_FAULT;
    if (status == 204) {
        ret->fault = (ew_fault){.status = EW_STATUS_NOT_FOUND,
                                .message = EW_STR("the server has no content for this call (204)")};
    } else if (status < 400) {
        ret->fault = ew__http_unexpected(memory, status);
    } else if (read_object(body, &doc)) {
        ret->deep = doc.deep;
        ew_str error = ew__json_find(&doc, EW_STR("error"), NULL);
        if (error.len)
            read_error_member(memory, error, status, &ret->fault);
        else
            read_fault(memory, doc.root, status, &ret->fault);
    } else {
        ret->fault = (ew_fault){.status = ew_status_from_http(status), .message = text_message(status, body)};
    }
}
