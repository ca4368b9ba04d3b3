/*
 * wire/http/upgrade.c: a request that wants to become a WebSocket. Who may ask is decided before, as for every request;
 * what the WebSocket then carries is the business of site->upgrade, on which we are the one who calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ws_handshake.h"
#include "wire/http/serve.h"

#define NONE ((ew_str){NULL, 0})

bool ew__http_can_upgrade(const ew__http_server *server) {
    const ew__conn *conn = server->peer.conn;
    return conn->site->upgrade && conn->ops->become;
}

void ew__http_judge_upgrade(ew__http_server *server, const ew__http_head *head) {
    ew__ws_verdict verdict;
    server->websocket = true;
    if (server->peer.conn->site->draining) {
        server->keep_alive = false;
        ew__http_reject(server, 503, "the server is going down", NULL);
        return;
    }
    ew__ws_accept(head, &verdict);
    if (verdict.status != 101)
        ew__http_reject(server, verdict.status, verdict.why, verdict.fields);
}

void ew__http_require_upgrade(ew__http_server *server) {
    ew__http_reject(server, 426, "this listener takes Genkit runtimes over WebSocket",
                    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
}

void ew__http_answer_upgrade(ew__http_server *server, const ew__http_head *head) {
    ew__conn *conn = server->peer.conn;
    ew__ws_verdict verdict;
    ew__buf answer;
    ew__buf_init(&answer, conn->executor->env, 1024);
    ew__ws_accept(head, &verdict); /* again: a request without a body is complete while its head still stands */
    if (ew__ws_accept_write(head, &verdict, NONE, &answer) == EW_OK) {
        ew__out_str(&conn->out, ew__buf_view(&answer));
        ew__http_server_rest(server);
        server->upgraded = conn->out.err == EW_OK;
        if (server->upgraded)
            conn->ops->send(conn);
        else
            conn->ops->abort(conn);
    } else {
        server->keep_alive = false;
        ew__http_respond_error(server, 503, NONE, "out of memory");
    }
    ew__buf_done(&answer);
}

void ew__http_hand_over(ew__http_server *server, const uint8_t *rest, size_t n) {
    ew__conn *conn = server->peer.conn;
    conn->ops->become(conn, conn->site->upgrade, EW__CALL, rest, n);
}
