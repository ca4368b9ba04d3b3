/*
 * tests/unit/wire/stepflow_http_world.h: Stepflow over HTTP, and a test that is one of the two sides: it says whole
 * requests or answers and takes those that come apart by itself, without src/frame.
 *
 * Texts: support/wire_peer.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_HTTP_WORLD_H
#define EW_TESTS_STEPFLOW_HTTP_WORLD_H

#include "support/wire_peer.h"
#include "wire/http/http.h"
#include "wire/stepflow/stepflow.h"

#define ERROR(id, error) RPC "'id':" id ",'error':" error "}"

#define HOST "Host: 127.0.0.1:3400\r\n"
#define BOTH "Accept: application/json, text/event-stream\r\n"
#define JSON "Content-Type: application/json\r\n"

#define N_OF(array) (sizeof(array) / sizeof *(array))

typedef struct world {
    rig r;
    ew__instance instance;
    peer_ids ids;
} world;

/* The http wire serves with this guest (NULL: Stepflow's), the other side is the test or that wire. */
static inline void world_init(world *w, const ew__wire *calls, const ew__http_guest *guest, rig_options options) {
    memset(w, 0, sizeof *w);
    options.seed = options.seed ? options.seed : 1;
    options.serve = options.serve ? options.serve : &ew__wire_http;
    options.guest = guest ? guest : &ew__stepflow_guest;
    rig_init(&w->r, calls ? calls : &ew__wire_stepflow_http, &options);
    w->instance = (ew__instance){.service = EW_STR("tests"), .lock = PTHREAD_MUTEX_INITIALIZER};
    memcpy(w->instance.id, "0123456789abcdef", sizeof w->instance.id);
}

static inline void world_plain(world *w) { world_init(w, NULL, NULL, (rig_options){.seed = 1}); }

static inline void world_done(world *w) { rig_finish(&w->r); }

static inline ew__site *server_site(world *w) { return &w->r.side[RIG_SERVER].site; }
static inline ew__site *client_site(world *w) { return &w->r.side[RIG_CLIENT].site; }
static inline rig_pair *runtime(world *w) { return rig_connect_raw(&w->r, RIG_CLIENT); }
static inline rig_pair *server(world *w) { return rig_connect_raw(&w->r, RIG_SERVER); }
/* Whether the wire has closed, or said that it will say no more. */
static inline bool is_over(rig_pair *pair) { return raw_end(pair)->saw_eof || wire_end(pair)->closing; }

/* ---- saying ---- */

static inline char *expand(world *w, const char *text) { return peer_expand(w->ids, text); }

static inline void say_text(rig_pair *pair, const char *text) { say_bytes(pair, text, strlen(text)); }

/* A first line, fields (each with its CRLF), and a body behind its length. */
static inline void say_message(world *w, rig_pair *pair, const char *head, const char *body) {
    char *text = expand(w, body), length[60];
    (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", strlen(text));
    rig_say(pair, head, strlen(head));
    rig_say(pair, length, strlen(length));
    say_text(pair, text);
    free(text);
}

static inline void post(world *w, rig_pair *pair, const char *body) {
    say_message(w, pair, "POST / HTTP/1.1\r\n" HOST JSON BOTH, body);
}

static inline void answer_as(world *w, rig_pair *pair, const char *status, const char *body) {
    char head[200];
    (void)snprintf(head, sizeof head, "HTTP/1.1 %s\r\n" JSON, status);
    say_message(w, pair, head, body);
}

static inline void answer(world *w, rig_pair *pair, const char *body) { answer_as(w, pair, "200 OK", body); }

/* ---- hearing ---- */

/* The head of the next message, with the CRLF of its last line; for free(). It is dropped. */
static inline char *take_head_at(rig_pair *pair, int line) {
    rig_end *end = raw_end(pair);
    const char *blank = end->got_len ? strstr(end->got, "\r\n\r\n") : NULL;
    if (!blank)
        fail_msg("line %d: no head came: %s", line, end->got_len ? end->got : "");
    size_t n = (size_t)(blank - end->got) + 2;
    char *head = calloc(1, n + 1);
    assert_non_null(head);
    memcpy(head, end->got, n);
    rig_forget(pair, n + 2);
    return head;
}

static inline bool has_line(const char *head, const char *text) {
    const char *at = strstr(head, text);
    return at && (at == head || at[-1] == '\n') && strncmp(at + strlen(text), "\r\n", 2) == 0;
}

static inline void check_line_at(const char *head, const char *text, int line) {
    if (!has_line(head, text))
        fail_msg("line %d: there is no \"%s\" in\n%s", line, text, head);
}
#define check_line(head, text) check_line_at((head), (text), __LINE__)

/* The body of a message with that head; for free(). It is dropped. */
static inline char *take_body_at(rig_pair *pair, const char *head, int line) {
    const char *field = strstr(head, "\r\nContent-Length: ");
    if (!field)
        fail_msg("line %d: a message without a length: %s", line, head);
    size_t n = field ? strtoul(field + 18, NULL, 10) : 0;
    rig_end *end = raw_end(pair);
    if (end->got_len < n)
        fail_msg("line %d: %zu bytes of %zu came", line, end->got_len, n);
    char *body = calloc(1, n + 1);
    assert_non_null(body);
    if (n)
        memcpy(body, end->got, n);
    if (n)
        rig_forget(pair, n);
    return body;
}

/* The next message is an answer with that status and body (NULL: any). Its head, for free(). */
static inline char *hear_head_at(world *w, rig_pair *pair, int status, const char *body, int line) {
    char first[40], *head = take_head_at(pair, line);
    (void)snprintf(first, sizeof first, "HTTP/1.1 %d ", status);
    if (strncmp(head, first, strlen(first)) != 0)
        fail_msg("line %d: not %d but\n%s%s", line, status, head, raw_end(pair)->got);
    char *got = take_body_at(pair, head, line);
    if (body)
        peer_check_text(w->ids, body, got, strlen(got), line);
    if (*got)
        check_line_at(head, "Content-Type: application/json", line);
    free(got);
    return head;
}
#define hear_head(w, pair, status, body) hear_head_at((w), (pair), (status), (body), __LINE__)
#define hear(w, pair, status, body) free(hear_head_at((w), (pair), (status), (body), __LINE__))
#define hear_nothing(pair) assert_int_equal(raw_end(pair)->got_len, 0)

/* An answer that is a stream begins; what tells the server among several may be missing. */
static inline void hear_stream_at(rig_pair *pair, bool instance, int line) {
    char *head = take_head_at(pair, line);
    check_line_at(head, "HTTP/1.1 200 OK", line);
    check_line_at(head, "Content-Type: text/event-stream", line);
    check_line_at(head, "Cache-Control: no-cache", line);
    check_line_at(head, "X-Accel-Buffering: no", line);
    check_line_at(head, "Transfer-Encoding: chunked", line);
    if (instance)
        check_line_at(head, "Stepflow-Instance-Id: 0123456789abcdef", line);
    else
        assert_null(strstr(head, "Instance"));
    free(head);
}
#define hear_stream(pair, instance) hear_stream_at((pair), (instance), __LINE__)

/* The next chunk is one event, to the byte. */
static inline void hear_event_at(world *w, rig_pair *pair, const char *pattern, int line) {
    rig_end *end = raw_end(pair);
    char *behind = NULL;
    size_t n = end->got_len ? strtoul(end->got, &behind, 16) : 0;
    if (!behind || n < 8 || strncmp(behind, "\r\ndata: ", 8) != 0)
        fail_msg("line %d: no event came: %s", line, end->got_len ? end->got : "");
    size_t head = (size_t)(behind - end->got) + 2;
    assert_true(end->got_len >= head + n + 2);
    assert_memory_equal(end->got + head + n - 2, "\n\n\r\n", 4);
    for (size_t i = head; i < head + n; i++)
        assert_true((unsigned char)end->got[i] < 0x7f);
    peer_check_text(w->ids, pattern, end->got + head + 6, n - 8, line);
    rig_forget(pair, head + n + 2);
}
#define hear_event(w, pair, pattern) hear_event_at((w), (pair), (pattern), __LINE__)

static inline void hear_stream_end(rig_pair *pair) {
    assert_true(raw_end(pair)->got_len >= 5);
    assert_memory_equal(raw_end(pair)->got, "0\r\n\r\n", 5);
    rig_forget(pair, 5);
}

/* The next message is a POST with that body. Its head, for free(). */
static inline char *hear_post_head_at(world *w, rig_pair *pair, const char *body, int line) {
    char *head = take_head_at(pair, line);
    check_line_at(head, "Host: 127.0.0.1:3400", line);
    check_line_at(head, "Content-Type: application/json", line);
    check_line_at(head, "Accept: application/json, text/event-stream", line);
    char *got = take_body_at(pair, head, line);
    peer_check_text(w->ids, body, got, strlen(got), line);
    free(got);
    return head;
}
#define hear_post_head(w, pair, body) hear_post_head_at((w), (pair), (body), __LINE__)
#define hear_post(w, pair, body) free(hear_post_head_at((w), (pair), (body), __LINE__))

/* ---- what callers are told ---- */

static inline void check_done_at(world *w, const rig_call *rc, const char *result, int line) {
    char *text = expand(w, result);
    if (!rc->ended || rc->status != EW_STATUS_OK || strcmp(rc->result, text) != 0)
        fail_msg("line %d: %s: %s, not %s", line, rc->ended ? ew_status_name(rc->status) : "not ended",
                 rc->result ? rc->result : rc->message, text);
    free(text);
}
#define check_done(w, rc, result) check_done_at((w), (rc), (result), __LINE__)

#endif
