/*
 * wire/reflection/greet.c: who is at the other end: register, its answer, configure; both sides of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/reflection.h"

#define NONE ((ew_str){NULL, 0})
#define VERSION_OF_PROTOCOL 1

/* ---- the runtime ---- */

void ew__rf_register(ew__rf_peer *peer) {
    static const ew__runtime_identity nobody = {.id = {"0", 1}};
    const ew__runtime_identity *self = peer->peer.conn->site->identity;
    ew__rpc_out message;
    ew__buf params;
    self = self ? self : &nobody;
    ew__buf_init(&params, ew__rf_executor(peer)->env, SIZE_MAX / 2);
    (void)ew__json_format(&params, "{\"id\":%q,\"pid\":%lld,\"name\":%q,\"genkitVersion\":%q", self->id,
                          (long long)self->pid, self->name.len ? self->name : self->id, self->version);
    (void)ew__json_format(&params, ",\"reflectionApiSpecVersion\":%d,\"envs\":[\"dev\"]}", VERSION_OF_PROTOCOL);
    peer->register_id_len = (uint8_t)ew__rpc_ids_next(&peer->ids, peer->register_id);
    ew__rpc_put_request(&message, ew__str(peer->register_id, peer->register_id_len), EW_STR("\"register\""), 0,
                        ew__buf_view(&params));
    if (params.err)
        ew__rf_abort(peer);
    else
        ew__rf_send(peer, &message, NULL);
    ew__buf_done(&params);
}

/* Where spans go is not this wire's to judge: whoever is told checks the address. */
static void tell_telemetry(ew__rf_peer *peer, ew_str object) {
    ew__site *site = peer->peer.conn->site;
    char buf[EW__RF_TEXT_ROOM];
    ew_str url = ew_json_typeof(object) == EW_JSON_OBJECT
                     ? ew__rf_member_text(object, EW_STR("telemetryServerUrl"), buf, sizeof buf)
                     : NONE;
    if (url.len && site->on_telemetry)
        site->on_telemetry(site, url);
}

void ew__rf_registered(ew__rf_peer *peer, const ew__rpc *message) {
    char buf[EW__RF_TEXT_ROOM];
    ew__rpc_error error;
    peer->register_id_len = 0;
    if (message->kind == EW__RPC_ERROR) {
        ew__rpc_read_error(message->error, buf, sizeof buf, &error);
        ew__log(ew__rf_executor(peer)->env, EW_LOG_WARN, "reflection", "the manager refuses us: %.*s",
                (int)(error.message.len < 200 ? error.message.len : 200), error.message.ptr);
        ew__rf_close(peer, EW__WS_NORMAL, "refused");
        return;
    }
    peer->dialect = ew_json_typeof(message->result) == EW_JSON_OBJECT ? EW__RF_CURRENT : EW__RF_FIRST;
    tell_telemetry(peer, message->result);
}

void ew__rf_configured(ew__rf_peer *peer, ew_str params) { tell_telemetry(peer, params); }

/* ---- the manager ---- */

/*
 * Runtimes whose library drops a connection, and with it every call on it, because of one long message. Refusing that
 * message is the smaller harm.
 */
static uint32_t message_limit(ew_str version) {
    if (ew__str_has_prefix(version, EW_STR("go/")))
        return 32 * 1024;
    return ew__str_has_prefix(version, EW_STR("py/")) ? 1024 * 1024 : 0;
}

static void answer(ew__rf_peer *peer, ew_str id) {
    ew_str url = peer->peer.conn->site->telemetry;
    ew__rpc_out message;
    ew__buf object;
    ew__buf_init(&object, ew__rf_executor(peer)->env, SIZE_MAX / 2);
    if (url.len)
        (void)ew__json_format(&object, "{\"telemetryServerUrl\":%q}", url);
    if (id.len) {
        ew__rpc_put_result(&message, id, 0, url.len && !object.err ? ew__buf_view(&object) : EW_STR("null"));
        ew__rf_send(peer, &message, NULL);
    }
    if (url.len && !object.err) { /* runtimes of the first generation know it only from here */
        ew__rpc_put_request(&message, NONE, EW_STR("\"configure\""), 0, ew__buf_view(&object));
        ew__rf_send(peer, &message, NULL);
    }
    ew__buf_done(&object);
}

void ew__rf_on_register(ew__rf_peer *peer, const ew__rpc *message) {
    ew__conn *conn = peer->peer.conn;
    ew__rf_who who;
    const char *problem = ew__rf_read_register(message->params, &who);
    ew_status status = EW_STATUS_INVALID_ARGUMENT;
    if (!problem && conn->ops->greet) {
        const ew__runtime_identity self = {.id = who.id, .name = who.name, .version = who.version, .pid = who.pid};
        problem = conn->ops->greet(conn, &self);
        status = EW_STATUS_FAILED_PRECONDITION;
    }
    if (problem && message->id.len)
        ew__rf_refuse(peer, message->id, EW__RPC_INVALID_PARAMS, status, problem);
    if (problem || peer->closed)
        return;
    peer->everywire = ew__str_has_prefix(who.version, EW_STR("everywire/"));
    peer->message_limit = message_limit(who.version);
    peer->registered = true;
    answer(peer, message->id);
    if (!peer->closed && conn->ops->ready)
        conn->ops->ready(conn);
}
