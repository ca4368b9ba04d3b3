/*
 * A manager for Genkit runtimes: starts a program, waits until it has dialled us, lists its actions and streams from
 * one of them. With any program on this library, or a Genkit app in any language:
 *     manager greet '{"name":"Ada"}' ./serve
 *     manager /flow/hello '"Ada"' node app.js
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    (void)request;
    (void)ud;
    printf("chunk  %.*s\n", (int)chunk.len, chunk.ptr); /* on the client's thread, as it arrives */
}

/* Waits for the end of a call and says what it was. */
static int finish(const char *what, ew_err err, ew_request *request) {
    ew_end end = {.status = EW_STATUS_INTERNAL, .fault.message = ew_str_from(ew_err_text(err))};
    if (err == EW_OK) {
        ew_request_wait(request, 0, &end);
    }
    if (end.status == EW_STATUS_OK) {
        printf("%s %.*s\n", what, (int)end.result.len, end.result.ptr);
    } else {
        fprintf(stderr, "failed %s: %.*s\n", ew_status_name(end.status), (int)end.fault.message.len,
                end.fault.message.ptr);
    }
    ew_request_free(request);
    return end.status == EW_STATUS_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    ew_request *request = NULL;
    const char *problem = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: manager ACTION INPUT PROGRAM [ARGS]\n");
        return 2;
    }
    /* The program gets the address in GENKIT_REFLECTION_V2_SERVER; port 0 picks a free one. */
    ew_client_options options = {.command = (const char *const *)argv + 3};
    if (ew_client_new("reflection://127.0.0.1:0", &options, &client, &problem) != EW_OK) {
        fprintf(stderr, "cannot listen: %s\n", problem ? problem : "?");
        return 2;
    }
    ew_request_options list = {.timeout_ms = 30000};
    ew_err err = ew_client_list(client, &list, &request);
    int bad = finish("list  ", err, request);
    ew_request_options run = {
        .action = ew_str_from(argv[1]), .input = ew_str_from(argv[2]), .stream = true, .on_chunk = on_chunk};
    request = NULL;
    err = ew_client_call(client, &run, &request);
    bad = finish("result", err, request) || bad;
    ew_client_free(client); /* the program ends with it */
    return bad;
}
