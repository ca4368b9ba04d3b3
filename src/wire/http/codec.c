/*
 * wire/http/codec.c: the serving half of codec.h. The calling half is codec_call.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/codec.h"
#include "wire/http_guest.h"
#include "wire/put.h"
#include <time.h>

/* ---- heads ---- */

static uint8_t *put_status_line(uint8_t *p, int status) {
    if (EW__LIKELY(status == 200))
        return EW__PUT(p, "HTTP/1.1 200 OK\r\n");
    const char *reason = ew__http_reason(status);
    p = ew__put_number(EW__PUT(p, "HTTP/1.1 "), (uint64_t)status);
    *p++ = ' ';
    p = ew__put(p, reason, strlen(reason));
    return EW__PUT(p, "\r\n");
}

void ew__http_write_head(ew__out *out, const ew__http_answer *answer, const char *date) {
    uint8_t *start = ew__out_room(out, 512 + answer->extra.len + answer->type.len);
    if (!start)
        return;
    uint8_t *p = put_status_line(start, answer->status);
    if (answer->type.len) {
        p = ew__put(EW__PUT(p, "Content-Type: "), answer->type.ptr, answer->type.len);
        p = EW__PUT(p, "\r\n");
    }
    if (answer->trace) {
        p = ew__put(EW__PUT(p, "x-genkit-trace-id: "), answer->trace->trace_id, 32);
        p = ew__put(EW__PUT(p, "\r\nx-genkit-span-id: "), answer->trace->span_id, 16);
        p = EW__PUT(p, "\r\n");
    }
    p = ew__put(EW__PUT(p, "Date: "), date, 29);
    p = EW__PUT(p, "\r\n");
    p = ew__put_str(p, answer->extra);
    if (answer->close)
        p = EW__PUT(p, "Connection: close\r\n");
    else if (answer->keep)
        p = EW__PUT(p, "Connection: keep-alive\r\n");
    if (answer->chunked)
        p = EW__PUT(p, "Transfer-Encoding: chunked\r\n\r\n");
    else if (answer->until_close)
        p = EW__PUT(p, "\r\n");
    else
        p = EW__PUT(ew__put_number(EW__PUT(p, "Content-Length: "), answer->length), "\r\n\r\n");
    ew__out_commit(out, (size_t)(p - start));
}

void ew__http_date(uint64_t wall_ms, char out[29]) {
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    unsigned year = (unsigned)tm.tm_year + 1900;
    const unsigned parts[] = {(unsigned)tm.tm_mday, year / 100,          year % 100,
                              (unsigned)tm.tm_hour, (unsigned)tm.tm_min, (unsigned)tm.tm_sec};
    static const uint8_t places[] = {5, 12, 14, 17, 20, 23};
    memcpy(out, "xxx, 00 xxx 0000 00:00:00 GMT", 29);
    memcpy(out, days + 3 * (unsigned)tm.tm_wday, 3);
    memcpy(out + 8, months + 3 * (unsigned)tm.tm_mon, 3);
    for (size_t i = 0; i < sizeof places; i++) {
        out[places[i]] = (char)('0' + parts[i] / 10 % 10);
        out[places[i] + 1] = (char)('0' + parts[i] % 10);
    }
}

/* ---- errors ---- */

ew_err ew__http_error_body(ew__buf *out, int code, const ew_fault *fault) {
    (void)ew__json_format(out, "{\"code\":%d,\"status\":%Q,\"message\":%q", code, ew_status_name(fault->status),
                          fault->message);
    if (fault->details.len) {
        ew__buf_cstr(out, ",\"details\":");
        ew__buf_str(out, fault->details);
    }
    return ew__buf_char(out, '}');
}

ew_status ew__http_status_of(int code) {
    switch (code) {
    case 400:
    case 415:
    case 417:
        return EW_STATUS_INVALID_ARGUMENT;
    case 401:
        return EW_STATUS_UNAUTHENTICATED;
    case 403:
        return EW_STATUS_PERMISSION_DENIED;
    case 404:
        return EW_STATUS_NOT_FOUND;
    case 408:
        return EW_STATUS_DEADLINE_EXCEEDED;
    case 413:
    case 414:
    case 429:
    case 431:
        return EW_STATUS_RESOURCE_EXHAUSTED;
    case 405:
    case 426:
    case 501:
    case 505:
        return EW_STATUS_UNIMPLEMENTED;
    case 503:
        return EW_STATUS_UNAVAILABLE;
    default:
        return EW_STATUS_INTERNAL;
    }
}

/* ---- blocks ---- */

static uint8_t *put_hex(uint8_t *p, size_t number) {
    unsigned digits = 1;
    while (digits < 16 && number >> (4 * digits))
        digits++;
    for (unsigned i = digits; i-- > 0;)
        *p++ = (uint8_t) "0123456789abcdef"[number >> (4 * i) & 15];
    return p;
}

size_t ew__http_chunk_head(size_t length, char out[EW__HTTP_CHUNK_HEAD]) {
    uint8_t *start = (uint8_t *)out;
    return (size_t)(EW__PUT(put_hex(start, length), "\r\n") - start);
}

void ew__http_write_block(ew__out *out, bool chunked, ew_str prefix, ew_str json, ew_str suffix) {
    size_t length = prefix.len + json.len + suffix.len + 2;
    size_t whole = length + 22;
    if (EW__LIKELY(whole <= 2048)) { /* the usual small chunk: one run of copies into one block */
        uint8_t *start = ew__out_room(out, whole);
        if (!start)
            return;
        uint8_t *p = chunked ? EW__PUT(put_hex(start, length), "\r\n") : start;
        p = ew__put(p, prefix.ptr, prefix.len);
        p = ew__put(p, json.ptr, json.len);
        p = ew__put(p, suffix.ptr, suffix.len);
        p = EW__PUT(p, "\n\n");
        if (chunked)
            p = EW__PUT(p, "\r\n");
        ew__out_commit(out, (size_t)(p - start));
        return;
    }
    char size[EW__HTTP_CHUNK_HEAD];
    if (chunked)
        ew__out_add(out, size, ew__http_chunk_head(length, size));
    ew__out_str(out, prefix);
    ew__out_str(out, json);
    ew__out_str(out, suffix);
    ew__out_add(out, "\n\n\r\n", chunked ? 4 : 2);
}

#define ROW_ROOM ((size_t)4096 - 2 * EW__HTTP_CHUNK_HEAD) /* for blocks, in one run of the queue */

/* As many blocks as there is room for, in one chunk of HTTP: it is cheaper than many, for those who read it as well. */
static size_t write_messages(ew__out *out, bool chunked, const ew_str *row, size_t n) {
    const ew_str head = EW__HTTP_MESSAGE_HEAD, tail = EW__HTTP_MESSAGE_TAIL;
    size_t length = 0, k = 0;
    for (; k < n && length + head.len + row[k].len + tail.len <= ROW_ROOM; k++)
        length += head.len + row[k].len + tail.len;
    uint8_t *start = ew__out_room(out, length + (size_t)2 * EW__HTTP_CHUNK_HEAD);
    if (!start)
        return n;
    uint8_t *p = chunked ? EW__PUT(put_hex(start, length), "\r\n") : start;
    for (size_t i = 0; i < k; i++)
        p = ew__put_str(ew__put_str(ew__put_str(p, head), row[i]), tail);
    if (chunked)
        p = EW__PUT(p, "\r\n");
    ew__out_commit(out, (size_t)(p - start));
    return k;
}

void ew__http_write_row(ew__out *out, bool chunked, const ew_str *row, size_t n) {
    for (size_t i = 0; i < n;)
        i += write_messages(out, chunked, row + i, n - i);
}

/* ---- requests ---- */

const char *ew__http_read_envelope(ew_str body, ew_str *ret_input) {
    ew__json_doc doc;
    ew_err err = ew__json_parse(&doc, body);
    if (err == EW_ELIMIT)
        return "the body nests more than 128 levels deep";
    if (err != EW_OK)
        return "the body is not valid JSON";
    if (doc.type != EW_JSON_OBJECT)
        return "the body must be a JSON object: {\"data\": INPUT}";
    bool repeated = false;
    ew_str data = ew__json_find(&doc, EW_STR("data"), &repeated);
    if (repeated)
        return "the member \"data\" stands more than once";
    *ret_input = data.len ? data : EW_STR("null");
    return NULL;
}

static bool port_ok(const ew__site *site, ew_str port) {
    uint64_t number = 0;
    return ew__u64_parse(port, &number) && number == site->port;
}

/* Splits "name:port"; a bracketed IPv6 address keeps its brackets. */
static ew_str split_port(ew_str host, ew_str *port) {
    size_t from = 0;
    *port = ew__str(NULL, 0);
    if (host.len > 0 && host.ptr[0] == '[') {
        const char *close = memchr(host.ptr, ']', host.len);
        from = close ? (size_t)(close - host.ptr) : 0;
    }
    const char *colon = memchr(host.ptr + from, ':', host.len - from);
    if (!colon)
        return host;
    size_t n = (size_t)(colon - host.ptr);
    *port = ew__str(colon + 1, host.len - n - 1);
    return ew__str(host.ptr, n);
}

bool ew__http_host_ok(const ew__site *site, ew_str host, bool port_required) {
    if (host.len == 0)
        return false;
    for (const char *const *allowed = site->allow_hosts; allowed && *allowed; allowed++)
        if (ew__str_is_nocase(host, ew_str_from(*allowed)))
            return true;
    ew_str port;
    ew_str name = split_port(host, &port);
    if (port.ptr ? !port_ok(site, port) : port_required && site->port != (site->secure ? 443 : 80))
        return false;
    for (const char *const *allowed = site->allow_hosts; allowed && *allowed; allowed++)
        if (ew__str_is_nocase(name, ew_str_from(*allowed)))
            return true;
    return ew__str_is_nocase(name, EW_STR("localhost")) || ew__str_is(name, EW_STR("127.0.0.1")) ||
           ew__str_is(name, EW_STR("[::1]"));
}

bool ew__http_origin_ok(const ew__site *site, ew_str origin) {
    const ew_str scheme = site->secure ? EW_STR("https://") : EW_STR("http://");
    if (!ew__str_has_prefix(origin, scheme))
        return false;
    return ew__http_host_ok(site, ew__str(origin.ptr + scheme.len, origin.len - scheme.len), true);
}

bool ew__http_is_json(ew_str content_type) {
    return ew__str_is(content_type, EW_STR("application/json")) ||
           ew__str_is_nocase(ew__http_media_type(content_type), EW_STR("application/json"));
}

static uint8_t accepts_type(ew_str type) {
    if (ew__str_is_nocase(type, EW_STR("application/json")))
        return EW__ACCEPTS_JSON;
    if (ew__str_is_nocase(type, EW_STR("text/event-stream")))
        return EW__ACCEPTS_STREAM;
    return ew__str_is(type, EW_STR("*/*")) ? EW__ACCEPTS_ANY : 0;
}

uint8_t ew__http_accepts(ew_str accept) {
    uint8_t all = 0;
    if (EW__LIKELY(ew__str_is(accept, EW_STR("application/json"))))
        return EW__ACCEPTS_JSON;
    while (accept.len > 0) {
        const char *comma = memchr(accept.ptr, ',', accept.len);
        size_t n = comma ? (size_t)(comma - accept.ptr) : accept.len;
        all |= accepts_type(ew__http_media_type(ew__str(accept.ptr, n)));
        size_t step = comma ? n + 1 : n;
        accept = ew__str(accept.ptr + step, accept.len - step);
    }
    return all;
}
