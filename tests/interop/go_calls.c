/*
 * Many streamed calls at once on one connection to go/server (a server on the codec of kimi-agent-sdk), nothing lost.
 * Usage: go_calls TARGET
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 3000
#define ITEMS 10
#define LIMIT_MS 60000

/* One call and what it has heard. Written on the loop's thread, read after its end. */
typedef struct job {
    ew_request *request;
    int chunks;
    int64_t sum;
    int factor; /* chunk number i must be i times this */
    bool disordered;
} job;

static int number, failed;

static void report(const char *name, int bad, const char *why) {
    number++;
    failed += bad > 0;
    if (bad)
        printf("FAIL %d - %s\n# %d calls: %s\n", number, name, bad, why);
    else
        printf("ok %d - %s\n", number, name);
}

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    job *j = ud;
    int64_t n = 0;
    (void)request;
    j->chunks++;
    if (ew_json_int64(chunk, &n) != EW_OK || n != (int64_t)j->chunks * j->factor)
        j->disordered = true;
    j->sum += n;
}

static const char *send_items(ew_request *request) {
    char text[16];
    for (int i = 1; i <= ITEMS; i++) {
        int n = snprintf(text, sizeof text, "%d", i);
        ew_err err = ew_request_send(request, (ew_str){text, (size_t)n});
        if (err == EW_FULL)
            err = ew_request_wait_room(request, LIMIT_MS);
        if (err < 0)
            return ew_err_text(err);
    }
    ew_err err = ew_request_send_end(request);
    return err == EW_OK ? NULL : ew_err_text(err);
}

static const char *look(job *j, bool stream, const char *result) {
    static char text[200];
    ew_end end;
    if (!j->request)
        return "not started";
    if (ew_request_wait(j->request, LIMIT_MS, &end) != EW_OK)
        return "no end";
    if (end.status != EW_STATUS_OK) {
        (void)snprintf(text, sizeof text, "%s: %.*s", ew_status_name(end.status), (int)end.fault.message.len,
                       end.fault.message.ptr);
        return text;
    }
    if (stream && (j->disordered || j->chunks != ITEMS)) {
        (void)snprintf(text, sizeof text, "%d chunks of %d%s", j->chunks, ITEMS, j->disordered ? ", not in order" : "");
        return text;
    }
    ew_str want = ew_str_from(result);
    if (end.result.len != want.len || memcmp(end.result.ptr, want.ptr, want.len) != 0) {
        (void)snprintf(text, sizeof text, "the result is %.*s", (int)end.result.len, end.result.ptr);
        return text;
    }
    return NULL;
}

static void run(ew_client *client, const char *name, ew_request_options options, int factor, const char *result) {
    job *jobs = calloc(MANY, sizeof *jobs);
    const char *why = jobs ? NULL : "out of memory";
    int bad = jobs ? 0 : 1;
    for (int i = 0; jobs && i < MANY; i++) {
        jobs[i].factor = factor;
        options.on_chunk = on_chunk;
        options.ud = &jobs[i];
        ew_err err = ew_client_call(client, &options, &jobs[i].request);
        if (err != EW_OK)
            why = ew_err_text(err);
    }
    for (int i = 0; jobs && options.input_stream && i < MANY; i++) {
        const char *problem = jobs[i].request ? send_items(jobs[i].request) : NULL;
        if (problem)
            why = problem;
    }
    for (int i = 0; jobs && i < MANY; i++) {
        const char *problem = look(&jobs[i], options.stream, result);
        bad += problem != NULL;
        if (problem)
            why = problem;
    }
    report(name, bad, why);
    for (int i = 0; jobs && i < MANY; i++)
        ew_request_free(jobs[i].request);
    free(jobs);
}

int main(int argc, char **argv) {
    ew_client *client = NULL;
    const char *problem = NULL;
    ew_client_options options = {.limits = {.client_connections = 1, .client_queue = MANY + 1}};
    if (argc < 2 || ew_client_new(argv[1], &options, &client, &problem) != EW_OK) {
        fprintf(stderr, "go_calls: %s\n", problem ? problem : "usage: go_calls TARGET");
        return 2;
    }
    ew_request_options ask = {.action = EW_STR("echo"), .input = EW_STR("7"), .timeout_ms = LIMIT_MS};
    run(client, "3000 unary calls at once", ask, 1, "7");
    ask = (ew_request_options){
        .action = EW_STR("download"), .input = EW_STR("{\"n\":10}"), .timeout_ms = LIMIT_MS, .stream = true};
    run(client, "3000 downloads at once", ask, 1, "{\"n\":10}");
    ask = (ew_request_options){
        .action = EW_STR("upload"), .input = EW_STR("{}"), .timeout_ms = LIMIT_MS, .input_stream = true};
    run(client, "3000 uploads at once", ask, 1, "55");
    ask.action = EW_STR("chat");
    ask.stream = true;
    run(client, "3000 both ways at once", ask, 2, "\"chat\"");
    ew_client_free(client);
    printf("interop go server many: %d passed, %d failed\n", number - failed, failed);
    return failed ? 1 : 0;
}
