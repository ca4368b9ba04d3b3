/*
 * cli/cmd_health.c: everywire health: which workers are alive.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/jobs.h"

static const ew__opt options[] = {EW__JOPTS_COMMON};

static size_t count(ew_str array) {
    size_t n = 0;
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(array, &it)) {
        n++;
    }
    return n;
}

static const ew__column columns[] = {
    {"Worker ID", "/worker_id", EW__COLUMN_TEXT, 40},
    {"Status", "/status", EW__COLUMN_TEXT, 24},
    {"Active Jobs", "/active_jobs", EW__COLUMN_COUNT, 0},
    {"Limit", "/concurrency_limit", EW__COLUMN_COUNT, 0},
    {"Last Heartbeat", "/timestamp", EW__COLUMN_AGE, 0},
    {"TTL (s)", "/ttl_seconds", EW__COLUMN_COUNT, 0},
    {NULL, NULL, EW__COLUMN_TEXT, 0},
};

static ew_err show(ew__jobs_cmd *cmd, ew_str json) {
    ew_str workers = ew_json_get(json, "/workers");
    size_t n = count(workers);
    (void)cmd;
    if (n == 0) {
        (void)printf("Worker Health Check: FAIL (No active workers found)\n");
        return EW_OK;
    }
    (void)printf("Worker Health Check: Found %zu active worker(s)\n\n", n);
    return ew__table_print(workers, columns, "");
}

static int run(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_workers(cmd->jobs, &answer);
    if (err != EW_OK) {
        return ew__jobs_failed(cmd, err, answer);
    }
    bool alive = count(ew_json_get(ew_answer_json(answer), "/workers")) > 0;
    int code = ew__jobs_answer(cmd, EW_OK, answer, show);
    return code != EW__EXIT_OK ? code : alive ? EW__EXIT_OK : EW__EXIT_FAILED;
}

static const ew__jobs_verb verbs[] = {
    {"", "", "tell which workers are alive",
     "Exit codes: 0 a worker is alive, 1 none is, 3 the store was not reached.\n", 0, 0, options, NULL, run},
    {NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};

const ew__jobs_noun ew__noun_health = {
    "health",
    "Tells which workers are alive.",
    "  everywire health\n"
    "  everywire health --store redis://localhost:6379/0 --json\n",
    verbs,
};

int ew__cmd_health(int argc, char **argv) { return ew__noun_run(&ew__noun_health, argc, argv); }
void ew__cmd_health_help(FILE *out) { ew__noun_help(&ew__noun_health, out); }
