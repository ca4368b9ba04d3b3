/*
 * wire/http/admit.c: who asks, by what a request's head shows: Authorization: Bearer TOKEN; for a WebSocket also
 * ?token=TOKEN, because programs dial a URL that they were given as it stands, or the subprotocol bearer.TOKEN.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/serve.h"

#define NONE ((ew_str){NULL, 0})

/* What follows "Bearer " in any case; NONE: it is something else. */
static ew_str bearer(ew_str value) {
    static const ew_str scheme = {"bearer ", 7};
    bool is = value.len > scheme.len && ew__str_is_nocase(ew__str(value.ptr, scheme.len), scheme);
    return is ? ew__str_trim(ew__str(value.ptr + scheme.len, value.len - scheme.len)) : NONE;
}

/* Of a list with commas, what follows "bearer." in one of its items. */
static ew_str bearer_protocol(ew_str list) {
    static const ew_str prefix = {"bearer.", 7};
    while (list.len) {
        const char *comma = memchr(list.ptr, ',', list.len);
        ew_str item = ew__str_trim(ew__str(list.ptr, comma ? (size_t)(comma - list.ptr) : list.len));
        if (ew__str_has_prefix(item, prefix))
            return ew__str(item.ptr + prefix.len, item.len - prefix.len);
        size_t skip = comma ? (size_t)(comma - list.ptr) + 1 : list.len;
        list = ew__str(list.ptr + skip, list.len - skip);
    }
    return NONE;
}

static ew_str token_in(const ew__http_shown *shown) {
    uint32_t count = 0;
    if (shown->n_authorization)
        return shown->n_authorization == 1 ? bearer(shown->authorization) : NONE;
    if (!shown->websocket)
        return NONE;
    ew_str token = shown->query.len ? ew__http_query(shown->query, EW_STR("token"), &count) : NONE;
    return count == 1 ? token : count ? NONE : bearer_protocol(shown->protocols);
}

/* Each request presents its own token: that of the connection is the last one that was accepted. */
void ew__http_identify(ew__http_server *server) {
    const ew__who *who = ew__conn_who(server->peer.conn);
    server->who = who->kind == EW__WHO_TOKEN ? (ew__who){.client = who->client, .local = who->local} : *who;
}

/* The messages of the gate are constant texts. */
static bool reject(ew__http_server *server, const ew_fault *fault) {
    const char *fields = fault->status == EW_STATUS_UNAUTHENTICATED ? "WWW-Authenticate: Bearer realm=\"everywire\"\r\n"
                         : fault->status == EW_STATUS_RESOURCE_EXHAUSTED ? "Retry-After: 1\r\n"
                                                                         : NULL;
    if (ew__conn_is_last_refusal(server->peer.conn))
        server->keep_alive = false;
    ew__http_reject(server, ew_status_http(fault->status), fault->message.ptr, fields);
    return false;
}

bool ew__http_admit(ew__http_server *server, const ew__http_shown *shown) {
    ew__executor *executor = server->peer.conn->executor;
    ew_str token = token_in(shown);
    ew_fault fault;
    if (token.len && !ew__gate_present_token(executor, &server->who, token, &fault))
        return reject(server, &fault);
    if (!ew__gate_is_authenticated(executor, &server->who, &fault))
        return reject(server, &fault);
    if (server->who.accepted)
        server->peer.conn->who = server->who;
    return true;
}

bool ew__http_lets(ew__http_server *server, const char *wire, ew_str path) {
    ew_fault fault;
    return ew__gate_authorize(server->peer.conn->executor, &server->who, wire, path, &fault) || reject(server, &fault);
}
