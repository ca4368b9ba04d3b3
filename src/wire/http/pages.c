/*
 * wire/http/pages.c: what is not a call: health, readiness, metrics, the list of actions, and the answer to methods
 * that run nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "wire/http/serve.h"
#include "wire/instance.h"

#define NONE ((ew_str){NULL, 0})
#define TEXT EW_STR("text/plain; charset=utf-8")

static const struct {
    ew_str path;
    ew__http_page_id page;
} pages[] = {
    {{"/healthz", 8}, EW__PAGE_HEALTH},  {{"/health", 7}, EW__PAGE_INSTANCE},      {{"/readyz", 7}, EW__PAGE_READY},
    {{"/metrics", 8}, EW__PAGE_METRICS}, {{"/api/actions", 12}, EW__PAGE_ACTIONS},
};

ew__http_page_id ew__http_page(ew__http_method method, ew_str path) {
    if (method == EW__HTTP_OPTIONS)
        return EW__PAGE_OPTIONS;
    if (method != EW__HTTP_GET && method != EW__HTTP_HEAD)
        return EW__PAGE_NOT_ALLOWED;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (ew__str_is(path, pages[i].path))
            return pages[i].page;
    return EW__PAGE_NOT_ALLOWED;
}

static void respond_actions(ew__http_server *server) {
    ew__conn *conn = server->peer.conn;
    ew__buf own;
    ew_str list;
    ew_fault fault = {.status = EW_STATUS_UNAVAILABLE, .message = EW_STR("out of memory")};
    ew_err err =
        ew__gate_list(conn->executor, &server->who, ew__wire_http.name, conn->site->actions, &own, &list, &fault);
    if (err == EW_OK)
        ew__http_respond(server, 200, EW_STR("application/json"), NONE, list, NULL);
    else
        ew__http_respond_error(server, ew_status_http(fault.status), NONE, fault.message.ptr);
    ew__buf_done(&own);
}

static void respond_metrics(ew__http_server *server) {
    ew__conn *conn = server->peer.conn;
    struct ew__scrape *scrape = conn->site->scrape;
    ew__buf out;
    ew__buf_init(&out, conn->executor->env, (size_t)64 * 1024 * 1024);
    if (!scrape)
        ew__http_respond_error(server, 404, NONE, "this listener has no metrics");
    else if (scrape->write(scrape, &out) == EW_OK)
        ew__http_respond(server, 200, EW_STR("text/plain; version=0.0.4; charset=utf-8"), NONE, ew__buf_view(&out),
                         NULL);
    else
        ew__http_respond_error(server, 503, NONE, "out of memory");
    ew__buf_done(&out);
}

/* As Stepflow's runtimes and load balancers read it. */
static void respond_instance(ew__http_server *server) {
    ew__conn *conn = server->peer.conn;
    const ew__instance *instance = conn->site->instance;
    bool draining = conn->site->draining;
    char now[EW__WHEN_LEN];
    ew__buf out;
    if (!instance) {
        ew__http_respond(server, draining ? 503 : 200, TEXT, NONE, draining ? EW_STR("draining\n") : EW_STR("ok\n"),
                         NULL);
        return;
    }
    ew__when_write(conn->executor->env->wall_ms(conn->executor->env->ud), now);
    ew__buf_init(&out, conn->executor->env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"status\":%Q,\"instanceId\":%q,\"timestamp\":%q,\"service\":%q}",
                          draining ? "draining" : "healthy", ew__str(instance->id, sizeof instance->id),
                          ew__str(now, sizeof now), instance->service);
    if (out.err == EW_OK)
        ew__http_respond(server, draining ? 503 : 200, EW_STR("application/json"), NONE, ew__buf_view(&out), NULL);
    else
        ew__http_respond_error(server, 503, NONE, "out of memory");
    ew__buf_done(&out);
}

void ew__http_respond_page(ew__http_server *server, ew__http_page_id page) {
    const ew__site *site = server->peer.conn->site;
    switch (page) {
    case EW__PAGE_HEALTH:
        ew__http_respond(server, 200, TEXT, NONE, EW_STR("ok\n"), NULL);
        break;
    case EW__PAGE_INSTANCE:
        respond_instance(server);
        break;
    case EW__PAGE_READY:
        if (site->draining)
            ew__http_respond(server, 503, TEXT, NONE, EW_STR("draining\n"), NULL);
        else
            ew__http_respond(server, 200, TEXT, NONE, EW_STR("ok\n"), NULL);
        break;
    case EW__PAGE_METRICS:
        respond_metrics(server);
        break;
    case EW__PAGE_ACTIONS:
        respond_actions(server);
        break;
    case EW__PAGE_OPTIONS:
        ew__http_respond(server, 204, NONE, EW_STR("Allow: GET, HEAD, OPTIONS, POST\r\n"), NONE, NULL);
        break;
    case EW__PAGE_NOT_ALLOWED:
    case EW__PAGE_NONE:
        ew__http_respond_error(
            server, 405, EW_STR("Allow: POST\r\n"),
            "this method runs nothing here: call an action with POST, list them with GET /api/actions");
        break;
    }
}
