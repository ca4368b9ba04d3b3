/*
 * Durable jobs in a file: enqueues one for each name, works until nothing is due, and says what became of them. The file
 * keeps jobs and results; another program may enqueue, or work, at the same time. See docs/jobs.md.
 *     worker sqlite:jobs.db Ada Grace
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>

static void greet(ew_call *call, void *arg) {
    ew_str name = EW_STR("world");
    (void)arg;
    if (!ew_call_input_str(call, "/name", &name))
        return; /* it is not a string: the call has failed with INVALID_ARGUMENT */
    (void)ew_call_chunk(call, EW_STR("\"thinking\"")); /* kept, too: ew_jobs_wait and GET /jobs/ID/stream tell it */
    (void)ew_call_donef(call, "{\"greeted\":%q}", name);
}

static int work(const char *store) {
    ew_app *app = ew_app_new("worker");
    int bad = !app || ew_app_action(app, "/flow/greet", greet, NULL, NULL) || ew_app_jobs(app, store, NULL) ||
              ew_app_worker(app, &(ew_worker_options){.concurrency = 4, .burst = true}) || ew_app_start(app) ||
              ew_app_wait(app); /* a burst ends by itself; without it a worker goes on until ew_app_stop */
    if (bad) {
        fprintf(stderr, "cannot work: %s\n", app ? ew_app_error(app) : "out of memory");
    }
    ew_app_free(app);
    return bad;
}

int main(int argc, char **argv) {
    char problem[200] = "usage: worker STORE NAME...";
    char input[200], id[100];
    ew_jobs *jobs = NULL;
    if (argc < 3 || ew_jobs_open(argv[1], NULL, &jobs, problem, sizeof problem) != EW_OK) {
        fprintf(stderr, "%s\n", problem);
        return 2;
    }
    int bad = 0;
    for (int i = 2; i < argc && !bad; i++) {
        ew_answer *answer = NULL;
        ew_json_format(input, sizeof input, "{\"name\":%Q}", argv[i]);
        snprintf(id, sizeof id, "greet-%.80s", argv[i]); /* an id of ours: a second run does not enqueue it again */
        ew_err err = ew_jobs_enqueue(
            jobs, &(ew_job_options){.function = EW_STR("greet"), .params = ew_str_from(input), .id = ew_str_from(id)},
            &answer);
        bad = err != EW_OK && err != EW_EEXISTS;
        fprintf(stderr, "%s: %s\n", id, err == EW_OK ? "enqueued" : ew_answer_problem(answer));
        ew_answer_free(answer);
    }
    bad = bad || work(argv[1]);
    for (int i = 2; i < argc && !bad; i++) {
        ew_answer *answer = NULL;
        snprintf(id, sizeof id, "greet-%.80s", argv[i]);
        bad = ew_jobs_wait(jobs, ew_str_from(id), 10000, NULL, NULL, &answer) != EW_OK;
        ew_str result = ew_json_get(ew_answer_json(answer), "/result");
        printf("%s %.*s\n", id, (int)result.len, result.ptr ? result.ptr : "");
        ew_answer_free(answer);
    }
    ew_jobs_free(jobs);
    return bad;
}
