/*
 * A client of a strict JSON-RPC peer: a conversation of several calls and a notification on one connection. The peer is
 * a Model Context Protocol server that this program starts.
 * Usage: mcp_call COMMAND ARGS...      prints the result of each step as one line
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>

#define LIMIT_MS 15000

static int step(ew_client *client, const char *action, const char *input, bool notify, bool stream) {
    ew_request *request = NULL;
    ew_end end;
    ew_request_options options = {.action = ew_str_from(action),
                                  .input = ew_str_from(input),
                                  .timeout_ms = LIMIT_MS,
                                  .notify = notify,
                                  .stream = stream};
    ew_err err = ew_client_call(client, &options, &request);
    if (err != EW_OK || ew_request_wait(request, (uint64_t)2 * LIMIT_MS, &end) != EW_OK) {
        printf("%s not called: %s\n", action, ew_err_text(err));
        ew_request_free(request);
        return 1;
    }
    bool ok = end.status == EW_STATUS_OK;
    ew_str text = ok ? end.result : end.fault.message;
    printf("%s %s %.*s\n", action, ew_status_name(end.status), (int)text.len, text.ptr);
    ew_request_free(request);
    return ok ? 0 : 1;
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    const char *problem = NULL;
    int bad = 0;
    if (argc < 2)
        return 2;
    ew_client_options options = {.command = (const char *const *)(argv + 1)};
    if (ew_client_new("jsonrpc+stdio:", &options, &client, &problem) != EW_OK) {
        fprintf(stderr, "mcp_call: %s\n", problem ? problem : "no client");
        return 1;
    }
    bad += step(client, "initialize",
                "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
                "\"clientInfo\":{\"name\":\"everywire\",\"version\":\"0\"}}",
                false, false);
    bad += step(client, "notifications/initialized", "{}", true, false);
    bad += step(client, "tools/list", "{}", false, false);
    bad += step(client, "tools/call", "{\"name\":\"add\",\"arguments\":{\"a\":19,\"b\":23}}", false, false);
    bad += step(client, "tools/call", "{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":1}}", false, true);
    ew_client_free(client);
    return bad ? 1 : 0;
}
