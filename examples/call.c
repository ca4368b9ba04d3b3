/*
 * The other side: calls an action once for its result, once for its chunks. Needs a server, such as `everywire serve
 * --demo`:
 *     call http://127.0.0.1:3400
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    (void)request;
    (void)ud;
    printf("chunk  %.*s\n", (int)chunk.len, chunk.ptr); /* on the client's thread, as it arrives */
}

static int run(ew_client *client, const ew_request_options *options) {
    ew_request *request = NULL;
    ew_end end;
    ew_err err = ew_client_call(client, options, &request);
    if (err != EW_OK) {
        fprintf(stderr, "cannot call: %s\n", ew_err_text(err));
        return 1;
    }
    ew_request_wait(request, 0, &end);
    if (end.status == EW_STATUS_OK) {
        printf("result %.*s\n", (int)end.result.len, end.result.ptr);
    } else {
        fprintf(stderr, "failed %s: %.*s\n", ew_status_name(end.status), (int)end.fault.message.len,
                end.fault.message.ptr);
    }
    ew_request_free(request);
    return end.status == EW_STATUS_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    const char *problem = NULL;
    if (ew_client_new(argc > 1 ? argv[1] : "http://127.0.0.1:3400", NULL, &client, &problem) != EW_OK) {
        fprintf(stderr, "not a target: %s\n", problem ? problem : "?");
        return 2;
    }
    ew_request_options greet = {.action = EW_STR("greet"), .input = EW_STR("{\"name\":\"Ada\"}"), .timeout_ms = 5000};
    int bad = run(client, &greet);
    greet.stream = true;
    greet.on_chunk = on_chunk;
    bad = run(client, &greet) || bad;
    ew_client_free(client);
    return bad;
}
