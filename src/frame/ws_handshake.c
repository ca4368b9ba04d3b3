/*
 * frame/ws_handshake.c: the opening handshake. A request is judged on the head that the HTTP/1 reader took apart; an
 * answer is read here, line by line, because that reader refuses 101 as an answer to anything else. The guard of
 * HTTP/1 reads its lines first.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ws_handshake.h"

#include "base/util.h"
#include "frame/http_guard.h"
#include "frame/sha1.h"

/* ---- texts ---- */

static void base64(const uint8_t *bytes, size_t n, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3, out += 4) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < n ? (uint32_t)bytes[i + 2] : 0);
        out[0] = digits[three >> 18];
        out[1] = digits[three >> 12 & 63];
        out[2] = i + 1 < n ? digits[three >> 6 & 63] : '=';
        out[3] = i + 2 < n ? digits[three & 63] : '=';
    }
}

static bool is_base64(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

/* Whether a text is 16 bytes in base64. The bits that stand for nothing may be anything: some clients make keys so. */
static bool is_key(ew_str text) {
    if (text.len != EW__WS_KEY_TEXT || text.ptr[22] != '=' || text.ptr[23] != '=') {
        return false;
    }
    for (size_t i = 0; i < 22; i++) {
        if (!is_base64(text.ptr[i])) {
            return false;
        }
    }
    return true;
}

static void make_accept(const char key[EW__WS_KEY_TEXT], char out[EW__WS_ACCEPT_TEXT]) {
    static const char name[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, section 1.3 */
    char text[EW__WS_KEY_TEXT + sizeof(name) - 1];
    uint8_t digest[EW__SHA1_SIZE];
    memcpy(text, key, EW__WS_KEY_TEXT);
    memcpy(text + EW__WS_KEY_TEXT, name, sizeof(name) - 1);
    ew__sha1(ew__str(text, sizeof(text)), digest);
    base64(digest, sizeof(digest), out);
}

/* Takes the first item off a list with commas, trimmed; false at its end. */
static bool next_item(ew_str *list, ew_str *ret_item) {
    if (list->ptr == NULL) {
        return false;
    }
    const char *comma = list->len > 0 ? memchr(list->ptr, ',', list->len) : NULL;
    size_t n = comma != NULL ? (size_t)(comma - list->ptr) : list->len;
    *ret_item = ew__str_trim(ew__str(list->ptr, n));
    *list = comma != NULL ? ew__str(comma + 1, list->len - n - 1) : ew__str(NULL, 0);
    return true;
}

static bool has_item(ew_str list, ew_str name, bool nocase) {
    ew_str item;
    while (next_item(&list, &item)) {
        if (nocase ? ew__str_is_nocase(item, name) : ew__str_is(item, name)) {
            return true;
        }
    }
    return false;
}

/* ---- a server ---- */

/* Whether a list in the fields of that name (there may be several) has the item. */
static bool head_has(const ew__http_head *head, ew_str name, ew_str item, bool nocase) {
    for (uint32_t i = 0; i < head->n_fields; i++) {
        const ew__http_field *field = &head->fields[i];
        if (ew__str_is_nocase(field->name, name) && has_item(field->value, item, nocase)) {
            return true;
        }
    }
    return false;
}

static void refuse(ew__ws_verdict *ret, int status, const char *why) {
    static const char upgrade[] = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
    ret->status = status;
    ret->why = why;
    ret->fields = status == 426 ? upgrade : status == 405 ? "Allow: GET\r\n" : "";
}

void ew__ws_accept(const ew__http_head *head, ew__ws_verdict *ret) {
    uint32_t n_keys, n_versions;
    ew_str key = ew__http_head_field(head, EW_STR("sec-websocket-key"), &n_keys);
    ew_str version = ew__http_head_field(head, EW_STR("sec-websocket-version"), &n_versions);
    *ret = (ew__ws_verdict){.status = 101, .why = "", .fields = ""};
    if (head->method != EW__HTTP_GET) {
        refuse(ret, 405, "a WebSocket begins with GET");
    } else if (head->minor < 1) {
        refuse(ret, 400, "a WebSocket needs HTTP/1.1");
    } else if (head->chunked || (head->has_length && head->length > 0)) {
        refuse(ret, 400, "a request for a WebSocket has no body");
    } else if (!head_has(head, EW_STR("upgrade"), EW_STR("websocket"), true) ||
               !head_has(head, EW_STR("connection"), EW_STR("upgrade"), true)) {
        refuse(ret, 426, "not a request for a WebSocket");
    } else if (n_versions != 1 || !ew__str_is(version, EW_STR("13"))) {
        refuse(ret, 426, "the WebSocket version is 13");
    } else if (n_keys != 1 || !is_key(key)) {
        refuse(ret, 400, "Sec-WebSocket-Key is not 16 bytes in base64");
    } else {
        make_accept(key.ptr, ret->accept);
    }
}

bool ew__ws_offers(const ew__http_head *head, ew_str protocol) {
    return protocol.len > 0 && head_has(head, EW_STR("sec-websocket-protocol"), protocol, false);
}

ew_err ew__ws_accept_write(const ew__http_head *head, const ew__ws_verdict *verdict, ew_str protocol, ew__buf *out) {
    if (verdict->status != 101 || (protocol.len > 0 && !ew__ws_offers(head, protocol))) {
        return EW_EINVAL;
    }
    (void)ew__buf_cstr(out, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Accept: ");
    (void)ew__buf_add(out, verdict->accept, sizeof(verdict->accept));
    if (protocol.len > 0) {
        (void)ew__buf_cstr(out, "\r\nSec-WebSocket-Protocol: ");
        (void)ew__buf_str(out, protocol);
    }
    return ew__buf_cstr(out, "\r\n\r\n");
}

/* ---- a client ---- */

void ew__ws_dial_init(ew__ws_dial *dial, const ew_env *env, const uint8_t key[EW__WS_KEY_SIZE], ew_str offered) {
    *dial = (ew__ws_dial){.offered = offered, .why = ""};
    ew__buf_init(&dial->head, env, EW__WS_ANSWER_MAX);
    base64(key, EW__WS_KEY_SIZE, dial->key);
}

void ew__ws_dial_done(ew__ws_dial *dial) { ew__buf_done(&dial->head); }

/* Visible ASCII only. */
static bool is_plain(ew_str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~') {
            return false;
        }
    }
    return text.len > 0;
}

/* Whether texts are header lines, each good and with its CRLF; no blank one. */
static bool are_fields(ew_str fields) {
    while (fields.len > 0) {
        const char *end = memchr(fields.ptr, '\n', fields.len);
        size_t n = end != NULL ? (size_t)(end - fields.ptr) : 0;
        if (n < 2 || end[-1] != '\r' || memchr(fields.ptr, ':', n) == NULL || fields.ptr[0] == ':' ||
            !ew__http_guard_field_begins(fields.ptr[0]) || !ew__http_value_ok(ew__str(fields.ptr, n - 1))) {
            return false;
        }
        fields = ew__str(end + 1, fields.len - n - 1);
    }
    return true;
}

ew_err ew__ws_dial_write(const ew__ws_dial *dial, ew_str host, ew_str target, ew_str fields, ew__buf *out) {
    bool good = is_plain(host) && is_plain(target) && target.ptr[0] == '/' &&
                memchr(target.ptr, '#', target.len) == NULL && are_fields(fields) && ew__http_value_ok(dial->offered);
    if (!good) {
        return EW_EINVAL;
    }
    (void)ew__buf_cstr(out, "GET ");
    (void)ew__buf_str(out, target);
    (void)ew__buf_cstr(out, " HTTP/1.1\r\nHost: ");
    (void)ew__buf_str(out, host);
    (void)ew__buf_cstr(out, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ");
    (void)ew__buf_add(out, dial->key, sizeof(dial->key));
    (void)ew__buf_cstr(out, "\r\nSec-WebSocket-Version: 13\r\n");
    if (dial->offered.len > 0) {
        (void)ew__buf_cstr(out, "Sec-WebSocket-Protocol: ");
        (void)ew__buf_str(out, dial->offered);
        (void)ew__buf_cstr(out, "\r\n");
    }
    (void)ew__buf_str(out, fields);
    return ew__buf_cstr(out, "\r\n");
}

/* What the fields of an answer say. */
typedef struct answer {
    uint32_t n_upgrade, n_accept, n_protocol;
    bool upgrade, connection, accept;
    ew_str protocol;
} answer;

/* One field of a 101. Returns what is wrong with it, or NULL. */
static const char *take_field(const ew__ws_dial *dial, answer *a, ew_str name, ew_str value) {
    if (ew__str_is_nocase(name, EW_STR("upgrade"))) {
        a->n_upgrade++;
        a->upgrade = ew__str_is_nocase(value, EW_STR("websocket"));
    } else if (ew__str_is_nocase(name, EW_STR("connection"))) {
        a->connection = a->connection || has_item(value, EW_STR("upgrade"), true);
    } else if (ew__str_is_nocase(name, EW_STR("sec-websocket-accept"))) {
        char accept[EW__WS_ACCEPT_TEXT];
        make_accept(dial->key, accept);
        a->n_accept++;
        a->accept = ew__str_is(value, ew__str(accept, sizeof(accept)));
    } else if (ew__str_is_nocase(name, EW_STR("sec-websocket-protocol"))) {
        a->n_protocol++;
        a->protocol = value;
    } else if (ew__str_is_nocase(name, EW_STR("sec-websocket-extensions"))) {
        return "the server chose an extension that was not offered";
    } else if (ew__str_is_nocase(name, EW_STR("transfer-encoding")) ||
               (ew__str_is_nocase(name, EW_STR("content-length")) && !ew__str_is(value, EW_STR("0")))) {
        return "an answer 101 with a body";
    }
    return NULL;
}

static const char *judge_answer(ew__ws_dial *dial, const answer *a) {
    if (a->n_upgrade != 1 || !a->upgrade || !a->connection) {
        return "an answer 101 that does not upgrade to websocket";
    }
    if (a->n_accept != 1 || !a->accept) {
        return "Sec-WebSocket-Accept is missing or wrong";
    }
    if (a->n_protocol > 1) {
        return "the server chose two subprotocols";
    }
    ew_str list = dial->offered, item;
    while (a->n_protocol == 1 && next_item(&list, &item)) {
        if (a->protocol.len > 0 && ew__str_is(item, a->protocol)) {
            dial->protocol = item;
        }
    }
    return a->n_protocol == 1 && dial->protocol.len == 0 ? "the server chose a subprotocol that was not offered" : NULL;
}

/* Takes a line with its CRLF off the head; the guard has seen that there is one. */
static ew_str take_line(ew_str *head) {
    const char *end = memchr(head->ptr, '\n', head->len);
    ew_str line = ew__str(head->ptr, (size_t)(end - head->ptr) - 1);
    *head = ew__str(end + 1, head->len - line.len - 2);
    return line;
}

/* The guard's verdict on the head, which ends with a blank line: NULL, or what is wrong. */
static const char *guard_head(ew_str head, ew__http_guard *guard) {
    static const ew__http1_limits limits = {EW__WS_ANSWER_MAX, EW__HTTP_FIELDS_MAX, EW__WS_ANSWER_MAX, 0};
    for (bool first = true; head.len > 2; first = false) {
        const char *end = memchr(head.ptr, '\n', head.len);
        size_t n = (size_t)(end - head.ptr);
        if (n == 0 || end[-1] != '\r') {
            return "a line of the answer does not end with CRLF";
        }
        int refusal = first ? ew__http_guard_first_line(guard, head.ptr, n - 1, &limits)
                            : ew__http_guard_field_line(guard, head.ptr, n - 1, &limits);
        if (refusal != 0) {
            return guard->why;
        }
        head = ew__str(end + 1, head.len - n - 1);
    }
    /* The guard of HTTP takes no 101, as nobody asked; here somebody did. */
    return guard->status != 101 && ew__http_guard_head_end(guard) != 0 ? guard->why : NULL;
}

static ew__ws_dialled say(ew__ws_dial *dial, ew__ws_dialled event, const char *why) {
    dial->event = (uint8_t)event;
    dial->why = why != NULL ? why : "";
    return event;
}

/* The head is all there. */
static ew__ws_dialled read_head(ew__ws_dial *dial) {
    ew_str head = ew__buf_view(&dial->head);
    ew__http_guard guard = {0};
    answer a = {0};
    const char *why = guard_head(head, &guard);
    if (why != NULL) {
        return say(dial, EW__WS_DIAL_BAD, why);
    }
    ew_str line = take_line(&head);
    if (guard.status != 101) {
        dial->status = guard.status;
        dial->reason = line.len > 13 ? ew__str(line.ptr + 13, line.len - 13) : ew__str(NULL, 0);
        return say(dial, EW__WS_DIAL_REFUSED, NULL);
    }
    if (guard.minor < 1) {
        return say(dial, EW__WS_DIAL_BAD, "an answer 101 needs HTTP/1.1");
    }
    while (why == NULL && head.len > 2) {
        line = take_line(&head);
        size_t n_name = (size_t)((const char *)memchr(line.ptr, ':', line.len) - line.ptr);
        why = take_field(dial, &a, ew__str(line.ptr, n_name),
                         ew__str_trim(ew__str(line.ptr + n_name + 1, line.len - n_name - 1)));
    }
    why = why == NULL ? judge_answer(dial, &a) : why;
    if (why != NULL) {
        return say(dial, EW__WS_DIAL_BAD, why);
    }
    ew__buf_done(&dial->head);
    return say(dial, EW__WS_DIAL_OPEN, NULL);
}

/* Whether what has come so far can be the beginning of an answer: a peer that speaks something else is told at once. */
static bool begins_well(ew_str head) {
    const ew_str begin = EW_STR("HTTP/1.");
    size_t n = head.len < begin.len ? head.len : begin.len;
    return memcmp(head.ptr, begin.ptr, n) == 0;
}

ew__ws_dialled ew__ws_dial_feed(ew__ws_dial *dial, const void *bytes, size_t n, size_t *ret_used) {
    const char *p = bytes;
    *ret_used = 0;
    if (dial->event != EW__WS_DIAL_MORE) {
        return (ew__ws_dialled)dial->event;
    }
    while (*ret_used < n) { /* line by line: behind the blank one nothing is ours */
        const char *newline = memchr(p + *ret_used, '\n', n - *ret_used);
        size_t len = (newline != NULL ? (size_t)(newline - p) + 1 : n) - *ret_used;
        ew_err err = ew__buf_add(&dial->head, p + *ret_used, len);
        if (err != EW_OK) {
            return say(dial, EW__WS_DIAL_BAD, err == EW_ENOMEM ? "no memory" : "the head of the answer is too long");
        }
        *ret_used += len;
        ew_str head = ew__buf_view(&dial->head);
        if (!begins_well(head)) {
            return say(dial, EW__WS_DIAL_BAD, "not an HTTP answer");
        }
        bool bare = newline != NULL && (head.len < 2 || head.ptr[head.len - 2] != '\r');
        if (bare) {
            return say(dial, EW__WS_DIAL_BAD, "a line of the answer does not end with CRLF");
        }
        if (newline != NULL && head.len >= 4 && memcmp(head.ptr + head.len - 4, "\r\n\r\n", 4) == 0) {
            return read_head(dial);
        }
    }
    return EW__WS_DIAL_MORE;
}
