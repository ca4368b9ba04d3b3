/*
 * tests/e2e/stepflow_calls.c: one client, many calls: stepflow_calls TARGET [COMMAND ARGS]. Each line of standard input is
 * "ACTION INPUT"; each is answered by a line with the result, or with "STATUS: message". What the client logs goes to
 * standard error.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <string.h>

static void log_line(void *ud, ew_log_level level, const char *room, ew_str line) {
    (void)ud;
    (void)room;
    if (level <= EW_LOG_INFO)
        (void)fprintf(stderr, "%.*s\n", (int)line.len, line.ptr);
}

static void call(ew_client *client, char *line) {
    char *space = strchr(line, ' ');
    if (space)
        *space = '\0';
    ew_request_options options = {
        .action = ew_str_from(line), .input = ew_str_from(space ? space + 1 : "null"), .timeout_ms = 60000};
    ew_request *request = NULL;
    ew_end end;
    if (ew_client_call(client, &options, &request) != EW_OK || ew_request_wait(request, 0, &end) != EW_OK)
        (void)printf("not started\n");
    else if (end.status == EW_STATUS_OK)
        (void)printf("%.*s\n", (int)end.result.len, end.result.ptr);
    else
        (void)printf("%s: %.*s\n", ew_status_name(end.status), (int)end.fault.message.len, end.fault.message.ptr);
    (void)fflush(stdout);
    (void)ew_request_free(request);
}

int main(int argc, char **argv) {
    ew_env env = *ew_env_default();
    env.log = log_line;
    ew_client_options options = {.env = &env, .command = argc > 2 ? (const char *const *)argv + 2 : NULL};
    const char *problem = NULL;
    ew_client *client = NULL;
    char line[4096];
    if (argc < 2 || ew_client_new(argv[1], &options, &client, &problem) != EW_OK) {
        (void)fprintf(stderr, "%s\n", problem ? problem : "no client");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        call(client, line);
    }
    (void)ew_client_free(client);
    return 0;
}
