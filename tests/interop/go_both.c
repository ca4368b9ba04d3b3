/*
 * The other side of go/both: on one connection it calls the Go program, and is called by it meanwhile.
 * Usage: go_both TARGET
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define ROUNDS 500
#define LIMIT_MS 60000

static void negate(ew_call *call, void *arg) {
    int64_t number = 0;
    atomic_fetch_add((atomic_int *)arg, 1);
    if (ew_call_input_int(call, "", &number))
        ew_call_donef(call, "%d", -number);
}

static int64_t wait_for(ew_request *request) {
    ew_end end;
    int64_t got = -1;
    if (request && ew_request_wait(request, LIMIT_MS, &end) == EW_OK && end.status == EW_STATUS_OK)
        (void)ew_json_int64(end.result, &got);
    ew_request_free(request);
    return got;
}

int main(int argc, char **argv) {
    ew_request *requests[ROUNDS] = {0};
    ew_client *client = NULL;
    atomic_int served = 0;
    int bad = 0;
    ew_app *app = ew_app_new("both");
    if (argc < 2 || !app)
        return 2;
    ew_app_action(app, "/flow/negate", negate, &served, NULL);
    ew_client_options options = {.limits = {.client_connections = 1}, .actions = app};
    if (ew_client_new(argv[1], &options, &client, NULL) != EW_OK)
        return 2;
    for (int i = 0; i < ROUNDS; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "%d", i);
        (void)ew_client_call(
            client,
            &(ew_request_options){.action = EW_STR("twice"), .input = {text, (size_t)n}, .timeout_ms = LIMIT_MS},
            &requests[i]);
    }
    for (int i = 0; i < ROUNDS; i++)
        bad += wait_for(requests[i]) != 2 * i;
    /* Its own calls must all have come before we say that we are done: our answers to them then precede that. */
    for (int ms = 0; atomic_load(&served) < ROUNDS && ms < LIMIT_MS; ms += 10)
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    ew_request *bye = NULL;
    (void)ew_client_call(
        client, &(ew_request_options){.action = EW_STR("bye"), .input = EW_STR("0"), .timeout_ms = LIMIT_MS}, &bye);
    bad += wait_for(bye) != 0 || atomic_load(&served) != ROUNDS;
    printf("%s 1 - %d calls while it was called %d times\n", bad ? "FAIL" : "ok", ROUNDS, atomic_load(&served));
    printf("interop go both ways: %d passed, %d failed\n", bad ? 0 : 1, bad ? 1 : 0);
    ew_client_free(client);
    ew_app_free(app);
    return bad ? 1 : 0;
}
