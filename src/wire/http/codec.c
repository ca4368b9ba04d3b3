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
    if (fault->refused)
        ew__buf_cstr(out, ",\"refused\":true");
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

void ew__http_write_http2_refusal(ew__out *out) {
    static const char frames[] = "\0\0\0\4\0\0\0\0\0"   /* SETTINGS, empty: the server's preface */
                                 "\0\0\x15\7\0\0\0\0\0" /* GOAWAY, 8 + 13 bytes */
                                 "\0\0\0\0"             /* the last stream that was processed: none */
                                 "\0\0\0\xd"            /* HTTP_1_1_REQUIRED */
                                 "HTTP/1.1 only";       /* debug data */
    ew__out_add(out, frames, sizeof frames - 1);
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

/*
 * Whether a body without "data" has members that are likely the input itself. Genkit's clients leave
 * "data" out if the input is undefined; "init" may then be the only member.
 */
static bool has_misplaced_input(ew_str object) {
    ew_json_iter it = {0};
    while (ew_json_next(object, &it))
        if (!ew__str_is(it.key, EW_STR("\"init\"")))
            return true;
    return false;
}

const char *ew__http_read_envelope(ew_str body, ew_str *ret_input) {
    ew__json_doc doc;
    ew_err err = ew__json_parse(&doc, body);
    if (err == EW_ELIMIT)
        return "the body is nested too deep: the limit of the input is 120 levels";
    if (err != EW_OK)
        return "the body is not valid JSON";
    if (doc.type != EW_JSON_OBJECT)
        return "the body must be a JSON object: {\"data\": INPUT}";
    bool repeated = false;
    ew_str data = ew__json_find(&doc, EW_STR("data"), &repeated);
    if (repeated)
        return "the member \"data\" stands more than once";
    if (EW__UNLIKELY(data.len == 0) && has_misplaced_input(doc.root))
        return "the body has no member \"data\"; the input belongs there: {\"data\": INPUT}";
    if (EW__UNLIKELY(doc.deep) && data.len && !ew__json_is_payload(data))
        return "the input is nested too deep: the limit is 120 levels";
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

/* "*.example.com" matches every name below example.com. */
static bool name_matches(ew_str name, ew_str pattern) {
    if (!ew__str_has_prefix(pattern, EW_STR("*.")))
        return ew__str_is_nocase(name, pattern);
    const ew_str suffix = ew__str(pattern.ptr + 1, pattern.len - 1);
    return name.len > suffix.len && ew__str_is_nocase(ew__str(name.ptr + name.len - suffix.len, suffix.len), suffix);
}

/*
 * Whether an entry of allow_hosts matches. An entry without a port matches the listener's port and no
 * port. An entry with a port matches that port; a client leaves out 80 and 443, and a proxy may have
 * ended its TLS, so that either may be meant then.
 */
static bool is_allowed(const ew__site *site, ew_str pattern, ew_str name, ew_str port) {
    ew_str wanted;
    if (!name_matches(name, split_port(pattern, &wanted)))
        return false;
    if (!wanted.ptr)
        return !port.ptr || port_ok(site, port);
    return port.ptr ? ew__str_is(port, wanted) : ew__str_is(wanted, EW_STR("80")) || ew__str_is(wanted, EW_STR("443"));
}

bool ew__http_host_ok(const ew__site *site, ew_str host, bool port_required) {
    if (host.len == 0)
        return false;
    ew_str port;
    ew_str name = split_port(host, &port);
    for (const char *const *allowed = site->allow_hosts; allowed && *allowed; allowed++)
        if (is_allowed(site, ew_str_from(*allowed), name, port))
            return true;
    if (port.ptr ? !port_ok(site, port) : port_required && site->port != (site->secure ? 443 : 80))
        return false;
    return ew__str_is_nocase(name, EW_STR("localhost")) || ew__str_is(name, EW_STR("127.0.0.1")) ||
           ew__str_is(name, EW_STR("[::1]"));
}

/* A byte that a host name, an IPv4 address or (in brackets) an IPv6 address may have. */
static bool is_host_byte(char c, bool brackets) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || c == '.' || (brackets ? c == ':' : c == '-' || c == '_');
}

static bool is_host_name(ew_str name) {
    bool brackets = name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']';
    if (brackets)
        name = ew__str(name.ptr + 1, name.len - 2);
    else if (ew__str_has_prefix(name, EW_STR("*.")))
        name = ew__str(name.ptr + 2, name.len - 2);
    for (size_t i = 0; i < name.len; i++)
        if (!is_host_byte(name.ptr[i], brackets))
            return false;
    return name.len > 0;
}

const char *ew__http_host_problem(ew_str pattern) {
    ew_str port;
    ew_str name = split_port(pattern, &port);
    uint64_t number = 0;
    if (ew__str_is(pattern, EW_STR("*")))
        return "a single * is not supported: use *.DOMAIN";
    for (size_t i = 0; i + 3 <= pattern.len; i++)
        if (memcmp(pattern.ptr + i, "://", 3) == 0)
            return "it is a URL: leave the scheme out";
    if (port.ptr && memchr(port.ptr, ':', port.len))
        return "an IPv6 address needs brackets";
    if (port.ptr && (!ew__u64_parse(port, &number) || number == 0 || number > UINT16_MAX || port.ptr[0] == '0'))
        return "its port is not a number from 1 to 65535";
    if (!is_host_name(name))
        return "expected NAME, *.DOMAIN or an address, with or without :PORT";
    return NULL;
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
