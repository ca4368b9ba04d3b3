/*
 * Jobs on a pool of runners, without a queue: starts two processes of any RRQ runner, gives them N jobs at once, each with
 * a deadline, and says how they end. With any program on this library, or a runner in another language:
 *     jobs greet 5 ./serve
 *     jobs send_email 5 rrq-runner --settings app.runner.settings
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>

static void on_end(ew_request *request, const ew_end *end, void *ud) {
    int *failed = ud; /* on the client's thread, as each ends */
    (void)request;
    if (end->status == EW_STATUS_OK) {
        printf("done   %.*s\n", (int)end->result.len, end->result.ptr);
        return;
    }
    (*failed)++;
    printf("failed %s: %.*s%s\n", ew_status_name(end->status), (int)end->fault.message.len, end->fault.message.ptr,
           end->fault.retryable ? " (try again)" : "");
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    const char *problem = NULL;
    int failed = 0;
    size_t n = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (n == 0 || n > 1000) {
        fprintf(stderr, "usage: jobs FUNCTION N PROGRAM [ARGS]\n");
        return 2;
    }
    /* Each process gets --tcp-socket with a free port of its own, and is started again if it dies. */
    ew_client_options options = {.command = (const char *const *)argv + 3, .processes = 2};
    if (ew_client_new("rrq://127.0.0.1:0", &options, &client, &problem) != EW_OK) {
        fprintf(stderr, "cannot begin: %s\n", problem ? problem : "?");
        return 2;
    }
    ew_request **requests = calloc(n, sizeof *requests);
    for (size_t i = 0; requests && i < n; i++) {
        char input[60], context[60];
        snprintf(input, sizeof input, "{\"name\":\"number %zu\"}", i);
        snprintf(context, sizeof context, "{\"job_id\":\"job-%zu\",\"queue_name\":\"example\"}", i);
        ew_client_call(client,
                       &(ew_request_options){.action = ew_str_from(argv[1]),
                                             .input = ew_str_from(input),
                                             .context = ew_str_from(context), /* becomes RRQ's */
                                             .timeout_ms = 30000,
                                             .on_end = on_end,
                                             .ud = &failed},
                       &requests[i]);
    }
    for (size_t i = 0; requests && i < n; i++) {
        ew_end end;
        if (requests[i]) {
            ew_request_wait(requests[i], 0, &end);
        }
        ew_request_free(requests[i]);
    }
    free(requests);
    ew_client_free(client); /* the processes end with it */
    return failed > 0;
}
