/*
 * wire/http/request.c: what a request's head asks for: who may ask, which action, how the answer is wanted. Runs
 * nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/hops.h"
#include "wire/http/serve.h"

#define NONE ((ew_str){NULL, 0})

void ew__http_reject(ew__http_server *server, int status, const char *text, const char *fields) {
    if (server->reject)
        return;
    server->reject = (uint16_t)status;
    server->reject_text = text;
    server->reject_fields = fields;
}

static void reject(ew__http_server *server, int status, const char *text) {
    ew__http_reject(server, status, text, NULL);
}

/* ---- the fields we read ---- */

typedef struct field {
    ew_str value; /* of the first one */
    uint32_t count;
} field;

/* One pass over the head: most requests have a handful of fields, and each is wanted by at most one question. */
typedef struct fields {
    field host, origin, fetch_site, type, encoding, timeout, hops, traceparent, tracestate, authorization, protocols;
    bool accepts_stream;
    bool has_accept;
    uint8_t accepts; /* EW__ACCEPTS_... */
    bool raw;
    bool websocket; /* by the fields of its handshake, good or bad */
} fields;

static void note(field *into, ew_str value) {
    if (into->count++ == 0)
        into->value = value;
}

/* Whether a list of protocols has that one; a version may follow it. */
static bool names_websocket(ew_str list) {
    static const ew_str name = {"websocket", 9};
    for (size_t i = 0; i + name.len <= list.len; i++)
        if (ew__str_is_nocase(ew__str(list.ptr + i, name.len), name))
            return true;
    return false;
}

static void read_accept(fields *all, ew_str value) {
    uint8_t named = ew__http_accepts(value);
    all->has_accept = true;
    all->accepts |= named;
    all->accepts_stream = all->accepts_stream || (named & EW__ACCEPTS_STREAM) != 0;
}

static void read_field(fields *all, ew_str name, ew_str value) {
#define IS(text) ew__str_is_nocase(name, EW_STR(text))
    switch (name.len) {
    case 4:
        if (IS("host"))
            note(&all->host, value);
        break;
    case 6:
        if (IS("origin"))
            note(&all->origin, value);
        else if (IS("accept"))
            read_accept(all, value);
        break;
    case 7:
        if (IS("upgrade"))
            all->websocket = all->websocket || names_websocket(value);
        break;
    case 10:
        if (IS("tracestate"))
            note(&all->tracestate, value);
        break;
    case 11:
        if (IS("traceparent"))
            note(&all->traceparent, value);
        break;
    case 12:
        if (IS("content-type"))
            note(&all->type, value);
        break;
    case 13:
        if (IS("authorization"))
            note(&all->authorization, value);
        break;
    case 14:
        if (IS("sec-fetch-site"))
            note(&all->fetch_site, value);
        break;
    case 15:
        if (IS("x-everywire-raw"))
            all->raw = ew__str_is(value, EW_STR("1"));
        break;
    case 16:
        if (IS("content-encoding"))
            note(&all->encoding, value);
        else if (IS("x-everywire-hops"))
            note(&all->hops, value);
        break;
    case 17:
        if (IS("sec-websocket-key"))
            all->websocket = true;
        break;
    case 22:
        if (IS("x-everywire-timeout-ms"))
            note(&all->timeout, value);
        else if (IS("sec-websocket-protocol"))
            note(&all->protocols, value);
        break;
    default:
        break;
    }
#undef IS
}

static void read_fields(fields *all, const ew__http_head *head) {
    memset(all, 0, sizeof *all);
    for (uint32_t i = 0; i < head->n_fields; i++)
        read_field(all, head->fields[i].name, head->fields[i].value);
}

/* ---- who asks ---- */

/*
 * A page in the user's browser must not reach us: neither under a foreign name (DNS rebinding) nor from a foreign
 * origin.
 */
static const char *unwelcome(const ew__site *site, const ew__http_head *head, const fields *all) {
    if ((all->host.count > 0 || head->minor > 0) && !ew__http_host_ok(site, all->host.value, false))
        return "this Host is not served here; --allow-host NAME[:PORT] (allow_hosts in the configuration file) allows "
               "it";
    if (all->origin.count > 0 && (all->origin.count > 1 || !ew__http_origin_ok(site, all->origin.value)))
        return "requests from this Origin are not allowed; --allow-host NAME[:PORT] (allow_hosts in the configuration "
               "file) allows its host";
    if (all->fetch_site.count > 0 && ew__str_is_nocase(all->fetch_site.value, EW_STR("cross-site")))
        return "requests from other sites are not allowed";
    return NULL;
}

/* ---- POST ---- */

/* "/greet/" is "/greet", unless an action has a name that ends with the slash. */
static ew_err find_action(const ew__actions *actions, ew_str *path, ew__action **ret) {
    ew_err err = ew__actions_find(actions, *path, ret);
    if (err != EW_ENOTFOUND || path->len < 3 || path->ptr[path->len - 1] != '/')
        return err;
    path->len--;
    return ew__actions_find(actions, *path, ret);
}

static void read_action(ew__http_server *server, ew_str path) {
    const ew__actions *actions = server->peer.conn->site->actions;
    ew__action *action = NULL;
    ew_err err = find_action(actions, &path, &action);
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

static void read_content(ew__http_server *server, const ew__http_head *head, const fields *all) {
    if (all->type.count != 1 || !ew__http_is_json(all->type.value))
        reject(server, 415, "Content-Type must be application/json");
    if (all->encoding.count > 0 && !ew__str_is_nocase(all->encoding.value, EW_STR("identity")))
        reject(server, 415, "a Content-Encoding is not supported");
    if (head->has_length && head->length > server->peer.conn->executor->limits->frame_bytes) {
        server->reject = 413; /* before every other reason: the body will not be read */
        server->reject_fields = NULL;
        server->reject_text = "the body is larger than this server accepts";
    }
}

static void read_stream_wish(ew__http_server *server, const fields *all, ew_str query) {
    uint32_t count = 0;
    ew_str value = query.len ? ew__http_query(query, EW_STR("stream"), &count) : NONE;
    bool asked = count == 1 && (ew__str_is(value, EW_STR("true")) || ew__str_is(value, EW_STR("1")));
    server->stream = server->call->wants_chunks = asked || all->accepts_stream;
    server->raw = all->raw;
}

static void read_deadline(ew__http_server *server, const field *timeout) {
    ew__executor *executor = server->peer.conn->executor;
    uint64_t ms = executor->limits->call_ms;
    if (timeout->count > 0) {
        uint64_t asked = 0;
        if (timeout->count > 1 || !ew__u64_parse(timeout->value, &asked)) {
            reject(server, 400, "x-everywire-timeout-ms must be a number of milliseconds");
            return;
        }
        ms = ms && ms < asked ? ms : asked;
    } else if (ms == 0) {
        return;
    }
    uint64_t now = ew__executor_read_clock(executor);
    server->call->deadline = ms >= (EW__NEVER - now) / 1000000 ? EW__NEVER - 1 : now + EW__MS(ms);
}

static void read_trace(ew_call *call, const fields *all) {
    ew__rng *rng = &call->executor->rng;
    if (all->traceparent.count != 1) {
        ew__trace_new(&call->trace, rng);
        return;
    }
    if (ew__trace_continue(&call->trace, rng, all->traceparent.value) != EW_OK)
        return; /* not one we understand: it is a new trace */
    if (all->tracestate.count == 1 && ew__tracestate_ok(all->tracestate.value))
        (void)ew__arena_str(&call->arena, all->tracestate.value, &call->tracestate);
}

static void on_post(ew__http_server *server, const ew__http_head *head, const fields *all, ew_str path, ew_str query) {
    ew__conn *conn = server->peer.conn;
    server->call = ew__call_new(conn->executor, &ew__http_caller, server);
    if (!server->call) {
        reject(server, 429, "too many calls are running, or no memory is left for another");
        return;
    }
    server->call->wire = ew__wire_http.name;
    server->call->served.who = &server->who;
    read_trace(server->call, all);
    if (conn->site->draining) {
        server->keep_alive = false;
        reject(server, 503, "the server is going down");
    }
    read_action(server, path);
    read_content(server, head, all);
    read_stream_wish(server, all, query);
    read_deadline(server, &all->timeout);
    if (all->hops.count == 1)
        server->call->hops = ew__hops_read(all->hops.value);
}

/* ---- all ---- */

static const char *read_target(const ew__http_head *head, char *memory, ew_str *path, ew_str *query) {
    *path = *query = NONE;
    if (head->method == EW__HTTP_OPTIONS && ew__str_is(head->target, EW_STR("*")))
        return NULL;
    return ew__http_target(head->target, memory, path, query) == EW_OK ? NULL
                                                                       : "the request target is not a valid path";
}

/* A request for another wire, whose guest we have. */
static void on_guest(ew__http_server *server, const ew__http_guest *guest, const ew__http_head *head, const fields *all,
                     ew_str path, ew_str query) {
    ew__http_invite(server, guest, head, path, query, all->has_accept ? all->accepts : EW__ACCEPTS_ANY);
    if (!server->call)
        return;
    if (head->method == EW__HTTP_POST)
        read_content(server, head, all);
    if (all->traceparent.count == 1)
        read_trace(server->call, all);
    read_deadline(server, &all->timeout);
}

/* ---- routes ---- */

typedef enum route_kind {
    ROUTE_UPGRADE, /* becomes a connection of site->upgrade */
    ROUTE_JOBS,    /* for site->jobs */
    ROUTE_GUEST,   /* for site->guest */
    ROUTE_ACTION,  /* a call */
    ROUTE_PAGE     /* everything else: health, metrics, lists, methods that are not allowed */
} route_kind;

typedef struct route {
    route_kind kind;
    ew__http_page_id page; /* ROUTE_PAGE; else EW__PAGE_NONE */
} route;

/* An upgrade is never a page, whatever its path: access is decided from the route alone. */
static route find_route(const ew__http_server *server, const ew__http_head *head, const fields *all, ew_str path) {
    const ew__site *site = server->peer.conn->site;
    bool runs_actions = !site->only_upgrade && !site->only_guest;
    route found = {.kind = ROUTE_PAGE, .page = EW__PAGE_NONE};
    if (all->websocket && ew__http_can_upgrade(server))
        found.kind = ROUTE_UPGRADE;
    else if (site->jobs && site->jobs->takes(site, head->method, path))
        found.kind = ROUTE_JOBS;
    else if (site->guest && site->guest->takes(site, head->method, path))
        found.kind = ROUTE_GUEST;
    else if (head->method == EW__HTTP_POST && runs_actions)
        found.kind = ROUTE_ACTION;
    else
        found.page = ew__http_page(head->method, path);
    return found;
}

static bool is_health(ew__http_page_id page) {
    return page == EW__PAGE_HEALTH || page == EW__PAGE_INSTANCE || page == EW__PAGE_READY;
}

/*
 * The access decision for a request: health pages are open, everything else requires a token. The
 * permission for a single action is checked where it is opened or listed. false: rejected.
 */
static bool authorize(ew__http_server *server, const route *to, const fields *all, ew_str path, ew_str query) {
    const ew__site *site = server->peer.conn->site;
    if (is_health(to->page))
        return true;
    ew__http_shown shown = {.authorization = all->authorization.value,
                            .n_authorization = all->authorization.count,
                            .protocols = all->protocols.value,
                            .query = query,
                            .websocket = to->kind == ROUTE_UPGRADE};
    if (!ew__http_admit(server, &shown))
        return false;
    if (to->kind == ROUTE_UPGRADE)
        return ew__http_lets(server, site->upgrade->name, EW_STR("/runtimes"));
    if (to->kind == ROUTE_JOBS || to->page == EW__PAGE_METRICS)
        return ew__http_lets(server, ew__wire_http.name, path);
    return true;
}

/* A request that runs nothing. Dedicated listeners serve fewer pages. */
static void on_page(ew__http_server *server, ew__http_page_id page, ew_str path) {
    const ew__site *site = server->peer.conn->site;
    server->page = (uint8_t)page;
    if (site->only_upgrade && !is_health(page))
        ew__http_require_upgrade(server);
    if (!site->only_guest || is_health(page) || page == EW__PAGE_METRICS)
        return;
    if (site->guest && site->guest->takes(site, EW__HTTP_POST, path))
        ew__http_reject(server, 405, "this method runs nothing here: use POST", "Allow: POST\r\n");
    else
        reject(server, 404, "nothing is here");
}

static void read_request(ew__http_server *server, const ew__http_head *head, const fields *all, ew_str path,
                         ew_str query) {
    const ew__site *site = server->peer.conn->site;
    const route to = find_route(server, head, all, path);
    if (EW__UNLIKELY(server->peer.conn->executor->calls->gate != NULL) && !authorize(server, &to, all, path, query))
        return;
    switch (to.kind) {
    case ROUTE_UPGRADE:
        ew__http_judge_upgrade(server, head);
        break;
    case ROUTE_JOBS:
        on_guest(server, site->jobs, head, all, path, query);
        break;
    case ROUTE_GUEST:
        on_guest(server, site->guest, head, all, path, query);
        break;
    case ROUTE_ACTION:
        on_post(server, head, all, path, query);
        break;
    case ROUTE_PAGE:
        on_page(server, to.page, path);
        break;
    }
}

void ew__http_on_head(ew__http_server *server, const ew__http_head *head) {
    ew__conn *conn = server->peer.conn;
    server->minor = (uint8_t)head->minor;
    server->keep_alive = head->keep_alive;
    server->is_head = head->method == EW__HTTP_HEAD;
    server->stream = server->stream_open = server->waiting = false;
    server->reject = 0;
    server->reject_fields = NULL;
    server->websocket = false;
    server->page = EW__PAGE_NONE;
    server->exchange.guest = NULL;
    server->who.local = conn->who.local;
    if (EW__UNLIKELY(conn->executor->calls->gate != NULL))
        ew__http_identify(server);
    char stack[1024];
    char *memory = head->target.len <= sizeof stack ? stack : ew__alloc(conn->executor->env, head->target.len);
    ew_str path, query;
    const char *problem = memory ? read_target(head, memory, &path, &query) : "out of memory";
    fields all;
    read_fields(&all, head);
    const char *stranger = unwelcome(conn->site, head, &all);
    if (stranger)
        reject(server, 403, stranger);
    else if (problem)
        reject(server, memory ? 400 : 503, problem);
    else
        read_request(server, head, &all, path, query);
    if (memory != stack)
        ew__free(conn->executor->env, memory, head->target.len);
}
