/*
 * wire/http/request.c: what a request's head asks for: who may ask, which action, how the answer is wanted. Runs nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/serve.h"

#define NONE ((ew_str){NULL, 0})

static void reject(ew__http_server *server, int status, const char *text) {
    if (server->reject)
        return; /* the first reason counts */
    server->reject = (uint16_t)status;
    server->reject_text = text;
}

/* ---- who asks ---- */

/* A page in the user's browser must not reach us: neither under a foreign name (DNS rebinding) nor from a foreign origin. */
static const char *unwelcome(const ew__site *site, const ew__http_head *head) {
    uint32_t hosts = 0, origins = 0;
    ew_str host = ew__http_head_field(head, EW_STR("host"), &hosts);
    if ((hosts > 0 || head->minor > 0) && !ew__http_host_ok(site, host, false))
        return "this Host is not served here; --allow-host NAME allows it";
    ew_str origin = ew__http_head_field(head, EW_STR("origin"), &origins);
    if (origins > 0 && (origins > 1 || !ew__http_origin_ok(site, origin)))
        return "requests from this Origin are not allowed";
    if (ew__str_is_nocase(ew__http_head_field(head, EW_STR("sec-fetch-site"), NULL), EW_STR("cross-site")))
        return "requests from other sites are not allowed";
    return NULL;
}

/* ---- POST ---- */

static void read_action(ew__http_server *server, ew_str path) {
    const ew__actions *actions = server->peer.conn->site->actions;
    ew__action *action = NULL;
    ew_err err = ew__actions_find(actions, path, &action);
    if (err == EW_OK) {
        server->action = ew__action_ref(action);
        return;
    }
    static const char several[] = "several actions have this name, use a key: ";
    enum { ROOM = 400 };
    char *text = err == EW_EEXISTS ? ew_call_alloc(server->call, ROOM) : NULL;
    if (text) {
        memcpy(text, several, sizeof several - 1);
        size_t n = sizeof several - 1;
        n += ew__actions_matches(actions, path, text + n, ROOM - 1 - n);
        text[n] = '\0';
        reject(server, 400, text);
        return;
    }
    reject(server, 404, "no such action; GET /api/actions lists them");
}

static void read_content(ew__http_server *server, const ew__http_head *head) {
    uint32_t types = 0;
    ew_str type = ew__http_head_field(head, EW_STR("content-type"), &types);
    if (types != 1 || !ew__http_is_json(type))
        reject(server, 415, "Content-Type must be application/json");
    ew_str encoding = ew__http_head_field(head, EW_STR("content-encoding"), NULL);
    if (encoding.ptr && !ew__str_is_nocase(encoding, EW_STR("identity")))
        reject(server, 415, "a Content-Encoding is not supported");
    if (head->has_length && head->length > server->peer.conn->home->limits->frame_bytes)
        reject(server, 413, "the body is larger than this server accepts");
}

static void read_stream_wish(ew__http_server *server, const ew__http_head *head, ew_str query) {
    uint32_t count = 0;
    ew_str value = ew__http_query(query, EW_STR("stream"), &count);
    bool asked = count == 1 && (ew__str_is(value, EW_STR("true")) || ew__str_is(value, EW_STR("1")));
    for (uint32_t i = 0; i < head->n_fields && !asked; i++)
        if (ew__str_is_nocase(head->fields[i].name, EW_STR("accept")))
            asked = ew__http_accepts_stream(head->fields[i].value);
    server->stream = server->call->wants_chunks = asked;
}

static void read_deadline(ew__http_server *server, const ew__http_head *head) {
    ew__home *home = server->peer.conn->home;
    uint64_t ms = home->limits->call_ms;
    uint32_t count = 0;
    ew_str text = ew__http_head_field(head, EW_STR("x-everywire-timeout-ms"), &count);
    if (count > 0) {
        uint64_t asked = 0;
        if (count > 1 || !ew__u64_parse(text, &asked)) {
            reject(server, 400, "x-everywire-timeout-ms must be a number of milliseconds");
            return;
        }
        ms = ms && ms < asked ? ms : asked;
    } else if (ms == 0) {
        return;
    }
    uint64_t now = ew__home_read_clock(home);
    server->call->deadline = ms >= (EW__NEVER - now) / 1000000 ? EW__NEVER - 1 : now + EW__MS(ms);
}

static void read_trace(ew_call *call, const ew__http_head *head) {
    uint32_t count = 0;
    ew_str parent = ew__http_head_field(head, EW_STR("traceparent"), &count);
    ew__rng *rng = &call->home->rng;
    if (count != 1 || ew__trace_continue(&call->trace, rng, parent) != EW_OK) {
        ew__trace_new(&call->trace, rng);
        return;
    }
    ew_str state = ew__http_head_field(head, EW_STR("tracestate"), &count);
    if (count == 1 && ew__tracestate_ok(state))
        (void)ew__arena_str(&call->arena, state, &call->tracestate);
}

static void on_post(ew__http_server *server, const ew__http_head *head, ew_str path, ew_str query) {
    ew__conn *conn = server->peer.conn;
    server->call = ew__call_new(conn->home, &ew__http_caller, server);
    if (!server->call) {
        reject(server, 429, "too many calls are running");
        return;
    }
    server->call->wire = ew__wire_http.name;
    read_trace(server->call, head);
    if (conn->site->draining) {
        server->keep_alive = false;
        reject(server, 503, "the server is going down");
    }
    read_action(server, path);
    read_content(server, head);
    read_stream_wish(server, head, query);
    read_deadline(server, head);
}

/* ---- all ---- */

static const char *read_target(ew__http_server *server, const ew__http_head *head, char *memory, ew_str *path, ew_str *query) {
    *path = *query = NONE;
    if (head->method == EW__HTTP_OPTIONS && ew__str_is(head->target, EW_STR("*")))
        return NULL;
    if (head->target.len > server->limits.target_bytes)
        return "the target is too long";
    return ew__http_target(head->target, memory, path, query) == EW_OK ? NULL : "the request target is not a valid path";
}

void ew__http_on_head(ew__http_server *server, const ew__http_head *head) {
    ew__conn *conn = server->peer.conn;
    server->minor = (uint8_t)head->minor;
    server->keep_alive = head->keep_alive;
    server->is_head = head->method == EW__HTTP_HEAD;
    server->stream = server->stream_open = server->waiting = false;
    server->reject = 0;
    server->page = EW__PAGE_NONE;
    char stack[1024];
    char *memory = head->target.len <= sizeof stack ? stack : ew__alloc(conn->home->env, head->target.len);
    ew_str path, query;
    const char *problem = memory ? read_target(server, head, memory, &path, &query) : "out of memory";
    const char *stranger = unwelcome(conn->site, head);
    if (stranger)
        reject(server, 403, stranger);
    else if (problem)
        reject(server, memory ? 400 : 503, problem);
    else if (head->method == EW__HTTP_POST)
        on_post(server, head, path, query);
    else
        server->page = (uint8_t)ew__http_page(head->method, path);
    if (memory != stack)
        ew__free(conn->home->env, memory, head->target.len);
}
